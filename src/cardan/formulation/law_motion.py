"""How a mechanism answers to the forces x (m,) of its rows with laws (`model.law`), in any formulation.

Forces of these rows act like drives and wrenches, so accelerations and reactions are affine in them:

    a = a0 + Y x        udot = J_c vdot - gamma_c = b + W x        R = R0 + R_x x

with the rates `u = J_c v - beta_c` of the rows, Delassus' matrix `W` (m, m), and `R` what presses friction. The same
`Y` and `W` serve impulses P: `v+ = v- + Y P`, `u+ = u- + W P`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from cardan.algebra.complementarity import FrictionRows
from cardan.algebra.matrix import Matrix, Scalar, dot
from cardan.errors import ModelError
from cardan.formulation.formulation import Formulation, Parts
from cardan.formulation.law_forces import holding_force
from cardan.formulation.rows import Rows
from cardan.formulation.solution import Solution
from cardan.lazy import cached_property
from cardan.model.law import LawfulElement
from cardan.model.model import Model
from cardan.model.row import Law

REACTION = 3  # numbers of what presses friction: the force of a joint


@dataclass(frozen=True)
class LawMotion:
    """A mechanism with forces `x` (m,), symbols, of its rows with laws, at a state; everything is affine in x.

    `parts` are the equations with these forces, `rows` the rows with laws, in the formulation's rates. `vdot` and `lam`
    are what they solve to: the rates' rates, and the multipliers of the rows `kept`. `measured` are the same equations
    from coordinates of the tree, from which reactions follow, None where `parts` are.
    """

    formulation: Formulation
    rows: Rows
    kept: tuple[int, ...]
    x: Matrix
    parts: Parts
    vdot: Matrix
    lam: Matrix
    measured: Parts | None = None

    @property
    def model(self) -> Model:
        """The mechanism."""
        return self.parts.kin.model

    @property
    def u(self) -> Matrix:
        """Rates (m,) of the rows."""
        return self.rows.J @ self.parts.rates - self.rows.beta

    @property
    def power(self) -> Matrix:
        """Power (W) of the forces x."""
        return dot(self.x, self.rows.J @ self.parts.rates)

    @cached_property
    def rate(self) -> tuple[Matrix, Matrix]:
        """`b` (m,) and `W` (m, m) of the rates of `u`."""
        return self.affine(self.rows.J @ self.vdot - self.rows.gamma)

    @cached_property
    def acceleration(self) -> tuple[Matrix, Matrix]:
        """`a0` (nv,) and `Y` (nv, m) of the accelerations of the tree's coordinates."""
        return self.affine(self.formulation.tree_accelerations(self.parts, self.vdot))

    @cached_property
    def solution(self) -> Solution:
        """The answer of the mechanism, affine in x."""
        at = self.measured or self.parts
        return Solution(self.formulation, at, self.kept, self.vdot, self.lam, self.power, self.x)

    def pressing(self, friction: Friction) -> tuple[Matrix, Matrix]:
        """`R0` (3,) and `R_x` (3, m) of what presses rows of friction, whose length is the normal force, N."""
        import casadi as ca

        if friction.joint is not None:
            return self.affine(holding_force(self.parts.kin, friction.joint, self.solution.wrenches))
        own = [self.x[k] for k in friction.pressing]
        if not own:
            own = [self.solution.every[k] for k in self._determined(friction)]
        return self.affine(ca.vertcat(*own, ca.SX(REACTION - len(own), 1)))

    def _determined(self, friction: Friction) -> list[int]:
        """Rows of the element whose force presses friction."""
        labels, name = self.parts.rows.labels, friction.law.pressed
        rows = [k for k, label in enumerate(labels) if label.owner == friction.presser]
        rows = [k for k in rows if labels[k].force_unit == "N"] or rows
        if any(k not in self.kept for k in rows):
            raise ModelError(
                f"{friction.law.owner}: the force of {name!r}, which presses it, is not determined: other constraints "
                "hold the same; leave one of them out"
            )
        if len(rows) > REACTION:
            raise ModelError(
                f"{friction.law.owner}: {name!r}, which presses it, has {len(rows)} forces; at most {REACTION} are one "
                "normal force"
            )
        return rows

    def affine(self, y: Matrix) -> tuple[Matrix, Matrix]:
        """`y(0)` and the matrix `dy/dx` of something affine in x."""
        import casadi as ca

        found = ca.substitute([y, ca.jacobian(y, self.x)], [self.x], [ca.SX.zeros(self.x.shape)])
        return found[0], found[1]  # derivatives of tables, which are zero, may be multiplied by x

    def at(self, x: Matrix, values: Sequence[Matrix]) -> list[Matrix]:
        """Values that depend on the forces, at forces x (m,)."""
        import casadi as ca

        return list(ca.substitute([ca.SX(y) for y in values], [self.x], [x]))

    def bounds(self, speed: Callable[[Friction], Scalar]) -> list[FrictionRows]:
        """All friction with its bound as a function of x, at the sliding speeds (m/s or rad/s) that are given."""
        found = []
        for f in frictions(self.model):
            constant, coefficient = f.levels(speed(f))
            R0, R = self.pressing(f) if f.is_pressed else (None, None)
            found.append(FrictionRows(f.rows, constant, coefficient, f.normal, R0, R))
        return found


def law_motion(formulation: Formulation, parts: Parts, kept: Sequence[int], rows: Rows | None = None) -> LawMotion:
    """The mechanism of `parts`; `rows` are those with laws, where they are written already."""
    import casadi as ca

    x = ca.SX.sym("x", len(parts.kin.model.lawful_rows))
    rows = formulation.lawful_rows(parts.kin, parts.loads, parts.rates.shape[0]) if rows is None else rows
    return LawMotion(formulation, rows, tuple(kept), x, *formulation.solve_with_forces(parts, kept, rows, x))


@dataclass(frozen=True)
class Friction:
    """Friction of an element: the numbers of its rows among all with laws, one or a disc of two.

    Along several coordinates an element has several, of which this is `number`. Its normal force is that of the row
    `normal`, or the reaction of the joint of that number, or the force of the rows `pressing` with laws, or that of the
    element that its rows call `presser`, or there is none.
    """

    rows: tuple[int, ...]
    law: LawfulElement
    normal: int | None
    joint: int | None
    number: int = 0
    pressing: tuple[int, ...] = ()
    presser: str = ""

    @property
    def is_pressed(self) -> bool:
        """Whether its normal force is the length of a vector of forces (`LawMotion.pressing`)."""
        return self.joint is not None or bool(self.pressing or self.presser)

    def size(self, y: Matrix) -> Matrix:
        """Magnitude of its entries of `y` (m,)."""
        import casadi as ca

        own = [y[k] for k in self.rows]
        return ca.fabs(own[0]) if len(own) == 1 else ca.sqrt(ca.sumsqr(ca.vertcat(*own)))

    def levels(self, speed: Scalar) -> tuple[Scalar, Scalar]:
        """The constant part of its bound (N or N m) at a sliding speed, and what a unit of normal force adds."""
        return self.law.constant_bound(speed, self.number), self.law.coefficient(speed, self.number)


def frictions(model: Model) -> list[Friction]:
    """All friction of a model, in order."""
    found, numbers = [], row_numbers(model)
    for law, rows in numbers:
        normal = None if law.normal is None else rows[law.normal]
        pressing: tuple[int, ...] = ()
        presser = ""
        if law.pressed:
            owners = {x.name: x.owner for x in model.couplings} | {x.name: x.owner for x in model.constraints}
            pressing = next((pushing(other, own) for other, own in numbers if other.name == law.pressed), ())
            presser = "" if pressing else owners[law.pressed]
            if len(pressing) == 1 and pressing[0] in rows_of(model, Law.UNILATERAL):
                normal, pressing = pressing[0], ()
        for number, own in enumerate(law.discs):
            on = tuple(rows[k] for k in own)
            found.append(Friction(on, law, normal, law.joint, number, pressing, presser))
    return found


def pushing(law: LawfulElement, rows: Sequence[int]) -> tuple[int, ...]:
    """Of the rows of an element those whose force presses what it touches: its gaps, or all if it has none."""
    gaps = [k for k, own in zip(rows, law.laws, strict=True) if own is Law.UNILATERAL]
    return tuple(gaps or rows)


def row_numbers(model: Model) -> list[tuple[LawfulElement, list[int]]]:
    """The lawful elements with the numbers of their rows."""
    found, first = [], 0
    for law in model.laws:
        found.append((law, list(range(first, first + len(law.rows)))))
        first += len(law.rows)
    return found


def rows_of(model: Model, law: Law) -> list[int]:
    """Numbers of the rows with a law."""
    return [k for element, rows in row_numbers(model) for k, own in zip(rows, element.laws, strict=True) if own is law]


def restitutions(model: Model) -> Matrix:
    """Restitution (m,) of each row, zero in rows that have none."""
    import casadi as ca

    e = ca.SX(len(model.lawful_rows), 1)
    for law, rows in row_numbers(model):
        for k, own in zip(rows, law.laws, strict=True):
            if own is Law.UNILATERAL:
                e[k] = law.number("restitution")
    return e
