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
        assert friction.joint is not None
        return self.affine(holding_force(self.parts.kin, friction.joint, self.solution.wrenches))

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
            R0, R = self.pressing(f) if f.joint is not None else (None, None)
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
    `normal`, or the reaction of the joint of that number, or there is none.
    """

    rows: tuple[int, ...]
    law: LawfulElement
    normal: int | None
    joint: int | None
    number: int = 0

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
    found = []
    for law, rows in row_numbers(model):
        normal = None if law.normal is None else rows[law.normal]
        for number, own in enumerate(law.discs):
            found.append(Friction(tuple(rows[k] for k in own), law, normal, law.joint, number))
    return found


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
