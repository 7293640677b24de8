"""The answer of a mechanism to what acts on it: accelerations, multipliers, and what follows from them.

Reactions, forces of constraints and accelerations of points are read off it by name (`model.sight`), in any
formulation's coordinates.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from cardan.algebra.matrix import Matrix, constant, segment, zeros
from cardan.errors import InputError
from cardan.formulation.formulation import Formulation, Parts, tree_rates
from cardan.formulation.instant import Instant
from cardan.lazy import cached_property
from cardan.model.force import Coupling
from cardan.model.law import LawfulElement
from cardan.model.measured_force import find_force
from cardan.model.sight import Sight


@dataclass(frozen=True)
class Solution:
    """Accelerations `vdot` in a formulation's own rates, and multipliers `lam` of the rows `kept`, at its equations.

    `x` (m,) are the forces of rows with laws, None where there are none; `power` (W) is theirs.
    """

    formulation: Formulation
    parts: Parts
    kept: tuple[int, ...]
    vdot: Matrix
    lam: Matrix
    power: Matrix
    x: Matrix | None = None

    @property
    def every(self) -> Matrix:
        """Multipliers of all rows, zero for those left out."""
        every = type(self.lam)(len(self.parts.rows), 1)
        for k, row in enumerate(self.kept):
            every[row] = self.lam[k]
        return every

    @property
    def a(self) -> Matrix:
        """Accelerations (nv,) of the tree's coordinates."""
        return self.formulation.tree_accelerations(self.parts, self.vdot)

    @cached_property
    def wrenches(self) -> Matrix:
        """Wrench (number of joints, 6) of every joint on its child at M."""
        return self.formulation.wrenches(self.parts, self.vdot, self.every)

    def column(self, sights: Sequence[Sight]) -> Matrix:
        """What is read of it, one below the other."""
        import casadi as ca

        return ca.densify(ca.vertcat(ca.SX(0, 1), *(self.at(sight) for sight in sights)))

    def at(self, sight: Sight) -> Matrix:
        """What is read of it."""
        return READ[sight.what](self, *sight.of)

    def joint_wrench(self, joint: str) -> Matrix:
        """Wrench (6,) of a joint on its child."""
        return self.wrenches[self.parts.model.joint_names.index(joint), :].T

    def force(self, name: str) -> Matrix:
        """Force of a coupling, a constraint or an element with laws, as runs give it."""
        import casadi as ca

        model, element = self.parts.model, find_force(self.parts.model, name).element
        if isinstance(element, LawfulElement):
            if self.x is None:
                raise InputError(
                    f"the force of {element.owner}, which has a law, is not known here; read it with method "
                    "'dormand_prince' or 'rk4'"
                )
            first = 0
            for law in model.laws:
                if law.name == name:
                    break
                first += len(law.rows)
            return self.x[first : first + len(element.rows), 0]
        rows, every = self.parts.rows, self.every
        if isinstance(element, Coupling):
            own = -segment(every, rows.of(element.owner))
            many = not (element.is_relation or element.unit)
            return constant(element.coefficients.reshape(-1, 1)) * own if many else own
        owners = [c.owner for c in model.constraints if element in (c, c.element)]
        return ca.vertcat(*(-segment(every, rows.of(owner)) for owner in dict.fromkeys(owners)))

    def acceleration(self, body: str, point: tuple[float, ...]) -> Matrix:
        """Acceleration (3,) of a point, in ground components."""
        return self._rate(lambda s: s.velocity(body, point))

    def angular_acceleration(self, body: str) -> Matrix:
        """Angular acceleration (3,), in ground components."""
        return self._rate(lambda s: s.angular_velocity(body))

    def _rate(self, of: Callable[[Instant], Matrix]) -> Matrix:
        """The rate of something of the rates, along the motion."""
        import casadi as ca

        model = self.parts.model
        q, v = ca.SX.sym("q", model.nq), ca.SX.sym("v", model.nv)
        x = of(Instant(model, zeros(1, 1, q), q, v))
        a = ca.SX.sym("a", model.nv)
        rate = ca.jtimes(x, q, tree_rates(model, q, v)) + ca.jtimes(x, v, a)
        here = [ca.SX(y) for y in (*self.parts.kin.tree_state, self.a)]
        return ca.substitute([rate], [q, v, a], here)[0]


READ: dict[str, Callable[..., Matrix]] = {
    "joint_wrench": Solution.joint_wrench,
    "force": Solution.force,
    "acceleration": Solution.acceleration,
    "angular_acceleration": Solution.angular_acceleration,
}
"""How each kind of sight that is an answer is read."""


def size_of(sights: Sequence[Sight]) -> int:
    """Length of the column of some sights."""
    return sum(sight.shape[0] for sight in sights)


def read_off(column: Matrix, sights: Sequence[Sight]) -> Callable[[Sight], Matrix]:
    """What finds sights in their column."""
    places, at = {}, 0
    for sight in sights:
        places[sight] = slice(at, at + sight.shape[0])
        at += sight.shape[0]
    return lambda sight: column[places[sight], 0]
