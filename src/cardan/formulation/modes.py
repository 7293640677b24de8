"""Motion with modes: a mechanism whose rows with laws are each closed or open, as its numbers say (`model.modes`).

Forces `x` (m,) of the rows act like drives and wrenches, so in any formulation accelerations and reactions are affine
in them. With the rates `u = J_c v - beta_c` of the rows,

    udot = b + W x      closed: udot = 0      open: x = 0, or x = -d bound for friction that slides along d

is one system of m equations, whatever the modes: one graph serves all of them. A bound that depends on the normal force
`x_n` of the same element makes it unsymmetric; one that depends on the magnitude of a joint's reaction makes it
nonlinear, and Newton's method solves it in a few steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cardan.algebra.matrix import Matrix, Scalar, dot, where
from cardan.formulation.elements import Loads
from cardan.formulation.formulation import Formulation, Parts
from cardan.formulation.kinematics import Kinematics
from cardan.formulation.law_forces import holding_force, with_law_forces
from cardan.formulation.rows import Rows
from cardan.model.law import AT_REST, LawfulElement
from cardan.model.model import Model
from cardan.model.modes import DIRECTION, MODE, entries
from cardan.model.row import Law

NEWTON_STEPS = 6  # for friction that depends on reactions
RATE_MARGIN, HELD = 1e-11, 1e-8  # m/s or rad/s: how far past rest friction that slides may be, or that others hold
TINY = 1e-300  # more than zero
CONE = 0.9  # cosine of the angle by which sliding in a plane turns before its direction is taken anew
REACTION = 3  # numbers of a reaction: the force of the joint


@dataclass(frozen=True)
class LawParts:
    """A mechanism with forces `x` (m,) of its rows with laws, at a state; everything is affine in x.

    `parts` are the equations with these forces, `rows` the rows with laws, in the formulation's rates. `vdot` and `lam`
    are what they solve to, `u` the rates of the rows.
    """

    parts: Parts
    rows: Rows
    x: Matrix
    vdot: Matrix
    lam: Matrix
    kept: tuple[int, ...]
    formulation: Formulation

    @property
    def model(self) -> Model:
        """The mechanism."""
        return self.parts.kin.model

    @property
    def u(self) -> Matrix:
        """Rates (m,) of the rows."""
        return self.rows.J @ self.parts.rates - self.rows.beta

    @property
    def udot(self) -> Matrix:
        """Rates (m,) of `u`, affine in x."""
        return self.rows.J @ self.vdot - self.rows.gamma

    @property
    def a(self) -> Matrix:
        """Accelerations (nv,) of the tree's coordinates, affine in x."""
        return self.formulation.tree_accelerations(self.parts, self.vdot)

    @property
    def power(self) -> Matrix:
        """Power (W) of the forces x."""
        return dot(self.x, self.rows.J @ self.parts.rates)

    def in_modes(self, values: Sequence[Matrix]) -> list[Matrix]:
        """Values that depend on the forces, with the forces that the modes of the rows give."""
        import casadi as ca

        return list(ca.substitute([ca.SX(y) for y in values], [self.x], [law_forces(self)]))

    def affine(self, y: Matrix) -> tuple[Matrix, Matrix]:
        """`y(0)` and the matrix `dy/dx` of something affine in x."""
        import casadi as ca

        found = ca.substitute([y, ca.jacobian(y, self.x)], [self.x], [ca.SX.zeros(self.x.shape)])
        return found[0], found[1]  # derivatives of tables, which are zero, may be multiplied by x

    def reactions(self) -> Matrix:
        """Wrenches (number of joints, 6) of all joints, affine in x."""
        every = type(self.lam)(len(self.parts.rows), 1)
        for k, row in enumerate(self.kept):
            every[row] = self.lam[k]
        return self.formulation.wrenches(self.parts, self.vdot, every)


def law_parts(formulation: Formulation, kin: Kinematics, loads: Loads, kept: Sequence[int]) -> LawParts:
    """The mechanism under loads, with symbols for the forces of its rows with laws."""
    import casadi as ca

    model = kin.model
    x = ca.SX.sym("x", sum(len(law.rows) for law in model.laws))
    parts = formulation.equations(model, kin, with_law_forces(kin, loads, x))
    vdot, lam = formulation.solve(parts, kept)
    rows = formulation.lawful_rows(kin, loads, vdot.shape[0])
    return LawParts(parts, rows, x, vdot, lam, tuple(kept), formulation)


@dataclass(frozen=True)
class Friction:
    """A friction row as its bound is written: its number, the other row of a disc or None, its element, its normal.

    `normal` is the number of the row whose force bounds it; `joint` the joint whose reaction does.
    """

    row: int
    other: int | None
    law: LawfulElement
    normal: int | None
    joint: int | None


def friction_rows(model: Model) -> list[Friction]:
    """The friction rows of a model, in order."""
    found, first = [], 0
    for law in model.laws:
        own = [first + k for k in law.friction_rows]
        normal = None if law.normal is None else first + law.normal
        for k in own:
            other = next((i for i in own if i != k), None)
            found.append(Friction(k, other, law, normal, law.joint))
        first += len(law.rows)
    return found


def modes_of(model: Model, what: str) -> Matrix:
    """`mode` or `direction` (m,) of all rows, in the equations."""
    import casadi as ca

    return ca.vertcat(ca.SX(0, 1), *(ca.SX(entry) for law in model.laws for entry in entries(law, what)))


def sliding(f: Friction, u: Matrix, d: Matrix) -> tuple[Matrix, Matrix]:
    """Speed of a friction row that slides, and the direction of its row; past rest it keeps that of before.

    So a step that goes a little beyond the moment of rest, before that moment is located, sees nothing jump.
    """
    import casadi as ca

    if f.other is None:
        return ca.fmax(d[f.row] * u[f.row], 2 * AT_REST), d[f.row]
    along = d[f.row] * u[f.row] + d[f.other] * u[f.other]
    speed = ca.sqrt(u[f.row] ** 2 + u[f.other] ** 2 + AT_REST**2)
    return ca.fmax(along, 2 * AT_REST), where(along > 0, u[f.row] / speed, d[f.row])


def law_forces(at: LawParts) -> Matrix:
    """Forces `x` (m,) of the rows in their modes."""
    import casadi as ca

    model, x = at.model, at.x
    m = x.shape[0]
    mode, direction = modes_of(model, MODE), modes_of(model, DIRECTION)
    b, W = at.affine(at.udot)
    unit = ca.vertcat(*(where(W[k, k] > 0, 1 / ca.sqrt(W[k, k]), 1.0) for k in range(m)))
    pull = bounds_sliding(at, direction)
    y = ca.SX.sym("y", m)
    given = ca.substitute(pull, x, unit * y)
    left = mode * unit * (b + W @ (unit * y)) + (1 - mode) * (y + given / unit)
    nonlinear = any(f.joint is not None for f in friction_rows(model))
    now, A = ca.SX.zeros(m), ca.jacobian(left, y)
    if not nonlinear:
        return ca.densify(unit * solve_small(*ca.substitute([A, -left], [y], [now])))  # A may have y times zero: tables
    for _ in range(NEWTON_STEPS):
        residual, slope = (ca.substitute(part, y, now) for part in (left, A))
        now = now - solve_small(slope, residual)
    return ca.densify(unit * now)


def mode_equations(at: LawParts, held: Matrix) -> Matrix:
    """Residuals (m,) of rows in their modes: `held` (m,) of a closed one, of an open one `x` less the given force."""
    mode = modes_of(at.model, MODE)
    return mode * held + (1 - mode) * (at.x + bounds_sliding(at, modes_of(at.model, DIRECTION)))


def solve_small(A: Matrix, right: Matrix) -> Matrix:
    """`A^-1 right` of a small dense matrix, by elimination with the largest pivot of each column."""
    import casadi as ca

    n = A.shape[0]
    if n == 1:
        return right / A
    rows = [[ca.SX(A[i, j]) for j in range(n)] + [ca.SX(right[i])] for i in range(n)]
    for k in range(n):
        for i in range(k + 1, n):  # bring the largest entry of the column up
            swap = ca.fabs(rows[i][k]) > ca.fabs(rows[k][k])
            for j in range(k, n + 1):
                high, low = rows[k][j], rows[i][j]
                rows[k][j], rows[i][j] = where(swap, low, high), where(swap, high, low)
        for i in range(k + 1, n):
            factor = rows[i][k] / rows[k][k]
            rows[i] = [*rows[i][: k + 1], *(rows[i][j] - factor * rows[k][j] for j in range(k + 1, n + 1))]
    x: list[Matrix] = [ca.SX(0)] * n
    for k in reversed(range(n)):
        rest = rows[k][n]
        for j in range(k + 1, n):
            rest = rest - rows[k][j] * x[j]
        x[k] = rest / rows[k][k]
    return ca.vertcat(*x)


def bounds_sliding(at: LawParts, direction: Matrix) -> Matrix:
    """`d bound` (m,) of sliding friction as a function of x; zero in other rows."""
    import casadi as ca

    u, pull = at.u, ca.SX(at.x.shape[0], 1)
    wrenches: Matrix | None = None
    for f in friction_rows(at.model):
        speed, d = sliding(f, u, direction)
        if f.joint is not None and wrenches is None:
            wrenches = at.reactions()
        pull[f.row] = d * f.law.bound(speed, normal_force(at, f, wrenches))
    return pull


def normal_force(at: LawParts, f: Friction, wrenches: Matrix | None) -> Scalar:
    """What presses a friction row, N, as a function of x."""
    import casadi as ca

    if f.normal is not None:
        return at.x[f.normal]
    if f.joint is None:
        return 0.0
    assert wrenches is not None
    r, A = at.affine(holding_force(at.model, f.joint, wrenches))
    return ca.sqrt(ca.sumsqr(r + A @ at.x) + 1e-40)


def law_values(at: LawParts, x: Matrix) -> Matrix:
    """Values (m,) at forces x that fall through zero where a row leaves its mode (`law_quantities.law_events`)."""
    import casadi as ca

    model = at.model
    mode, d = modes_of(model, MODE), modes_of(model, DIRECTION)
    laws = [law for element in model.laws for law in element.laws]
    values = ca.SX.ones(len(laws))
    for k, law in enumerate(laws):
        if law is Law.UNILATERAL:
            values[k] = where(mode[k] > 0.5, x[k], at.rows.phi[k] + d[k] + TINY)
    frictions = friction_rows(model)
    wrenches = at.reactions() if any(f.joint is not None for f in frictions) else None
    for f in frictions:
        k = f.row
        if f.other is not None and f.other < k:
            continue  # the first row of a disc speaks for both
        left = ca.substitute(ca.SX(f.law.bound(0.0, normal_force(at, f, wrenches))), at.x, x) - _size(f, x)
        if f.other is None:
            along = where(d[k] == 0, HELD - ca.fabs(at.u[k]), d[k] * at.u[k])
        else:
            speed = _size(f, at.u)
            along = d[k] * at.u[k] + d[f.other] * at.u[f.other] - CONE * speed
            along = along if f.normal is None else ca.fmin(along, speed - d[f.normal])
        values[k] = where(mode[k] > 0.5, left, along + RATE_MARGIN)
        if f.normal is not None:
            values[k] = where(mode[f.normal] > 0.5, values[k], 1.0)
    return values


def _size(f: Friction, y: Matrix) -> Matrix:
    """Magnitude of a friction row's entry of `y` (m,), of both rows of a disc."""
    import casadi as ca

    return ca.fabs(y[f.row]) if f.other is None else ca.sqrt(y[f.row] ** 2 + y[f.other] ** 2)
