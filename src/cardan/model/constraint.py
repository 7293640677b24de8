"""Constraints of the user's own: an expression of poses, and of rates, of some bodies that must stay zero.

    position level   phi(t, poses) = 0                  its rate is affine in the twists
    rate level       c(t, poses, twists) = 0            affine in the twists, such as a knife edge or rolling

Poses and twists are those of `model.force`. The user's function runs once on symbols and is a graph from then on. The
rows of an element, such as a wheel that rolls, are constraints too: its kind (`model.constraint_kind`) writes them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from cardan.algebra.matrix import Matrix, Scalar
from cardan.algebra.rotation import skew
from cardan.errors import ModelError
from cardan.model.body import Joint
from cardan.model.force import BodyPose, depends, digest, trace
from cardan.model.row import RowLabel
from cardan.model.table import require_smooth

if TYPE_CHECKING:
    from cardan.model.constraint_kind import ConstraintElement


@dataclass(frozen=True, eq=False)
class Constraint:
    """One scalar constraint between bodies (index -1 is ground).

    `function(t, poses, twists)` is what the user wrote; in a built model it is the `casadi.Function` that tracing made
    of it, of (t, R, r of each body, twist of each body). Of a row of an element, the `element`, and which of its `rows`
    this is; `function` has the element's numbers as constants. `added` is a number, free or not, that is added to the
    expression, such as the limit of a stop.
    """

    name: str
    on: tuple[int, ...]
    function: Any
    unit: str = "m"
    element: ConstraintElement | None = None
    row: int = 0
    added: Any = 0.0

    @property
    def owner(self) -> str:
        """How error messages call it."""
        if self.element is None:
            return f"constraint {self.name!r}"
        direction = self.element.kind.rows[self.row].name
        return f"{self.element.owner}, {direction}" if direction else self.element.owner

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
        ports, arguments = symbols_of_bodies(len(self.on))
        result = replace(self, function=trace(self.owner, self.function, ports, arguments, (1,)))
        result.require_affine()
        return result

    def traced_rows(self) -> tuple[Constraint, ...]:
        """Its one row, traced."""
        return (self.traced(),)

    def require_affine(self) -> None:
        """Refuse a graph that is not affine in the twists, or that depends on no body."""
        import casadi as ca

        ports, (_, _, twists) = symbols_of_bodies(len(self.on))
        if not self.is_at_rate_level:
            require_smooth(self.owner, self.function)
        u = ca.vertcat(*twists)
        if ca.jacobian(ca.jacobian(self.function(*ports), u), u).nnz():
            raise ModelError(f"{self.owner}: it must be affine in the twists of its bodies, and it is not")
        if not any(depends(self.function, k) for k in range(1, len(ports))):
            raise ModelError(f"{self.owner}: it depends on no pose and no twist of its bodies; it constrains nothing")

    def of(self, element: ConstraintElement) -> Constraint:
        """The same row of its element with other numbers."""
        if element is self.element:
            return self
        return replace(self, element=element, function=self.function if element.is_freed else element.row(self.row))

    def value(self, *ports: Any) -> Matrix:
        """The expression at (t, R, r of each body, twist of each body); free numbers of its element stay free."""
        if self.element is None or not self.element.is_freed:
            return self.function(*ports)
        return self.element.written(*ports)[self.row]

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
        ports = [s, *(part for pose in P for part in pose), *U]
        free = ca.symvar(ca.veccat(*self.element.free)) if self.element is not None and self.element.is_freed else []
        value = self.value(*ports)
        phi = None if self.is_at_rate_level else value
        if phi is None:
            rate, A = value, ca.jacobian(value, u)
            at_rest = ca.Function("rate", [*ports, *free], [value])
            beta = -at_rest(*ports[: -len(U)], *(ca.SX.zeros(6) for _ in U), *free)
        else:  # by slopes of the positions alone: twists that a table's derivative was given would stay in them
            slope = ca.jacobian(value, x)
            rate, A, beta = slope @ xdot, slope @ ca.jacobian(xdot, u), -slope[0]
        gamma = -ca.jtimes(rate, x, xdot)
        own = ca.Function("constraint", [*ports, *free], [A.T, gamma, beta, value])
        F, gamma, beta, value = own(t, *(part for pose in poses for part in pose), *twists, *free)
        value = value + self.added
        forces = [F[6 * k : 6 * k + 6, :] for k in range(len(self.on))]
        return forces, gamma, beta, None if phi is None else value


def symbols_of_bodies(count: int) -> tuple[list[Any], tuple[Any, list[BodyPose], list[Any]]]:
    """Symbols for time, poses and twists of some bodies: one after the other, and as a user's function takes them."""
    import casadi as ca

    t = ca.SX.sym("t")
    poses = [BodyPose(ca.SX.sym("R", 3, 3), ca.SX.sym("r", 3)) for _ in range(count)]
    twists = [ca.SX.sym("v", 6) for _ in range(count)]
    return [t, *(part for pose in poses for part in pose), *twists], (t, poses, twists)


def pose_rate(pose: BodyPose, v: Matrix) -> tuple[Matrix, Matrix]:
    """Rates of a body's axes and origin from its twist in body components."""
    return pose.rotation @ skew(v[:3]), pose.rotation @ v[3:]
