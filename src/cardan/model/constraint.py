"""Constraints of the user's own: an expression of poses, and of rates, of some bodies that must stay zero.

    position level   phi(t, poses) = 0                  its rate is affine in the twists
    rate level       c(t, poses, twists) = 0            affine in the twists, such as a knife edge or rolling

Poses and twists are those of `model.force`. The user's function runs once on symbols and is a graph from then on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from cardan.algebra.matrix import Matrix, Scalar
from cardan.algebra.rotation import skew
from cardan.errors import ModelError
from cardan.model.body import Joint
from cardan.model.force import BodyPose, depends, digest, trace
from cardan.model.row import RowLabel
from cardan.model.table import require_smooth


@dataclass(frozen=True, eq=False)
class Constraint:
    """One scalar constraint between bodies (index -1 is ground).

    `function(t, poses, twists)` is what the user wrote; in a built model it is the `casadi.Function` that tracing made
    of it, of (t, R, r of each body, twist of each body).
    """

    name: str
    on: tuple[int, ...]
    function: Any
    unit: str = "m"

    @property
    def owner(self) -> str:
        """How error messages call it."""
        return f"constraint {self.name!r}"

    @property
    def depends_on_time(self) -> bool:
        """Whether time appears in it."""
        return depends(self.function, 0)

    @property
    def is_at_rate_level(self) -> bool:
        """Whether it is a constraint on rates only."""
        return any(depends(self.function, 1 + 2 * len(self.on) + k) for k in range(len(self.on)))

    def labels(self, joints: Sequence[Joint]) -> list[RowLabel]:
        """Its one row."""
        return [RowLabel(self.owner, self.name, self.unit, "rate" if self.is_at_rate_level else "position")]

    def traced(self) -> Constraint:
        """The same constraint with its function as a graph; refuse one that is not affine in the twists."""
        import casadi as ca

        t = ca.SX.sym("t")
        poses = [BodyPose(ca.SX.sym("R", 3, 3), ca.SX.sym("r", 3)) for _ in self.on]
        twists = [ca.SX.sym("v", 6) for _ in self.on]
        ports = [t, *(part for pose in poses for part in pose), *twists]
        result = replace(self, function=trace(self.owner, self.function, ports, (t, poses, twists), (1,)))
        if not result.is_at_rate_level:
            require_smooth(self.owner, result.function)
        u = ca.vertcat(*twists)
        value = result.function(*ports)
        if ca.jacobian(ca.jacobian(value, u), u).nnz():
            raise ModelError(f"{self.owner}: it must be affine in the twists of its bodies, and it is not")
        if not any(depends(result.function, k) for k in range(1, len(ports))):
            raise ModelError(f"{self.owner}: it depends on no pose and no twist of its bodies; it constrains nothing")
        return result

    def digest(self, place: Callable[[int], str]) -> bytes:
        """Digest of all that enters the equations."""
        return digest("constraint", list(self.on), {}, self.function)

    def written(
        self, t: Scalar, poses: Sequence[BodyPose], twists: Sequence[Matrix]
    ) -> tuple[list[Matrix], Matrix, Matrix, Matrix | None]:
        """Forces (6, 1) on each body, `gamma`, `beta` and `phi` (None at rate level).

        With twists `u` and spatial accelerations `a` of the bodies: `sum F^T u = beta`, `sum F^T a = gamma`.
        """
        import casadi as ca

        s = ca.SX.sym("s")
        P = [BodyPose(ca.SX.sym("R", 3, 3), ca.SX.sym("r", 3)) for _ in self.on]
        U = [ca.SX.sym("v", 6) for _ in self.on]
        u, x = ca.vertcat(*U), ca.vertcat(s, *(ca.vec(part) for pose in P for part in pose))
        moving = [ca.vec(part) for pose, v in zip(P, U, strict=True) for part in pose_rate(pose, v)]
        xdot = ca.vertcat(1, *moving)
        value = self.function(s, *(part for pose in P for part in pose), *U)
        phi = None if self.is_at_rate_level else value
        rate = value if phi is None else ca.jtimes(value, x, xdot)
        A = ca.jacobian(rate, u)
        beta = -ca.substitute(rate, u, ca.SX.zeros(u.shape))
        gamma = -ca.jtimes(rate, x, xdot)
        ports = [s, *(part for pose in P for part in pose), *U]
        own = ca.Function("constraint", ports, [A.T, gamma, beta, value])
        F, gamma, beta, value = own(t, *(part for pose in poses for part in pose), *twists)
        forces = [F[6 * k : 6 * k + 6, :] for k in range(len(self.on))]
        return forces, gamma, beta, None if phi is None else value


def pose_rate(pose: BodyPose, v: Matrix) -> tuple[Matrix, Matrix]:
    """Rates of a body's axes and origin from its twist in body components."""
    return pose.rotation @ skew(v[:3]), pose.rotation @ v[3:]
