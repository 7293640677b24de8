"""Motion with modes: a mechanism whose rows with laws are each closed or open, as its numbers say (`model.modes`).

With the rates `u` of the rows and their forces x (`formulation.law_motion`),

    udot = b + W x      closed: udot = 0      open: x = 0, or x = -d bound for friction that slides along d

is one system of m equations, whatever the modes: one graph serves all of them. It is symmetric and positive definite,
and eliminated without pivots, unless bounds depend on forces. A bound that depends on the normal force `x_n` of the
same element makes it unsymmetric; one that depends on the magnitude of what presses it makes it nonlinear, and Newton's
method solves it in a few steps.
"""

from __future__ import annotations

from cardan.algebra.linsolve import ldl_factor, ldl_solve
from cardan.algebra.matrix import Matrix, dot, where
from cardan.formulation.law_motion import Friction, LawMotion, frictions
from cardan.model.law import AT_REST
from cardan.model.model import Model
from cardan.model.modes import DIRECTION, MODE, entries
from cardan.model.row import Law

NEWTON_STEPS = 6  # for friction that depends on reactions
# Added to the diagonal of a disc that sticks: of rows that depend on one another the smallest force that holds.
SHARE, SHARE_STEPS = 1e-7, 2
RATE_MARGIN, HELD = 1e-11, 1e-8  # m/s or rad/s: how far past rest friction that slides may be, or that others hold
TORN = 2e-6  # m/s or rad/s: the rate of a lock that others hold, above which they do not
TINY = 1e-300  # more than zero
CONE = 0.9  # cosine of the angle by which sliding in a plane turns before its direction is taken anew


def modes_of(model: Model, what: str) -> Matrix:
    """`mode` or `direction` (m,) of all rows, in the equations."""
    import casadi as ca

    return ca.vertcat(ca.SX(0, 1), *(ca.SX(entry) for law in model.laws for entry in entries(law, what)))


def sliding(f: Friction, u: Matrix, d: Matrix) -> tuple[Matrix, Matrix]:
    """Speed of friction that slides, and its direction along its rows; past rest it keeps that of before.

    So a step that goes a little beyond the moment of rest, before that moment is located, sees nothing jump.
    """
    import casadi as ca

    rows = list(f.rows)
    along = dot(d[rows], u[rows])
    if len(rows) == 1:
        return ca.fmax(along, 2 * AT_REST), d[rows]
    ahead = u[rows] + AT_REST * d[rows]  # a direction of length 1 at rest, too
    return ca.fmax(along, 2 * AT_REST), where(along > 0, ahead / ca.sqrt(ca.sumsqr(ahead) + TINY), d[rows])


def law_forces(motion: LawMotion) -> Matrix:
    """Forces `x` (m,) of the rows in their modes."""
    import casadi as ca

    model, x = motion.model, motion.x
    m = x.shape[0]
    mode, direction = modes_of(model, MODE), modes_of(model, DIRECTION)
    b, W = motion.rate
    every, steps, size, shared = frictions(model), 1, ca.diag(W), ca.SX(m, 1)
    for f in every:
        rows = list(f.rows)
        steps = max(steps, NEWTON_STEPS if f.is_pressed else 1)
        if len(rows) > 1:
            size[rows], shared[rows], steps = ca.sum1(size[rows]), SHARE * mode[rows], max(steps, SHARE_STEPS)
    unit = 1 / ca.sqrt(where(size > 0, size, 1.0))
    y = ca.SX.sym("y", m)
    given = friction_sliding(motion, unit * y, direction)
    left = mode * unit * (b + W @ (unit * y)) + (1 - mode) * (y + given / unit)
    now, A = ca.SX.zeros(m), ca.jacobian(left, y)
    if m > 1 and not any(f.normal is not None or f.is_pressed for f in every):  # forces of open rows are known
        now = ca.densify((mode - 1) * given / unit)
        factor = ldl_factor(ca.diag(mode * unit) @ W @ ca.diag(mode * unit) + ca.diag(1 - mode + shared))
        for _ in range(steps):
            now = now - ldl_solve(factor, ca.densify(ca.substitute(left, y, now)))
        return ca.densify(unit * now)
    for _ in range(steps):
        residual, slope = ca.substitute([left, A], [y], [now])  # A may have y times zero: tables
        now = now - solve_small(slope + ca.diag(shared), residual)
    return ca.densify(unit * now)


def mode_equations(motion: LawMotion, held: Matrix) -> Matrix:
    """Residuals (m,) of rows in their modes: `held` (m,) of a closed one, of an open one `x` less the given force."""
    mode, direction = modes_of(motion.model, MODE), modes_of(motion.model, DIRECTION)
    return mode * held + (1 - mode) * (motion.x + friction_sliding(motion, motion.x, direction))


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


def friction_sliding(motion: LawMotion, x: Matrix, direction: Matrix) -> Matrix:
    """`d bound` (m,) of sliding friction at forces x; zero in other rows."""
    import casadi as ca

    moves = {f: sliding(f, motion.u, direction) for f in frictions(motion.model)}
    pull = ca.SX(x.shape[0], 1)
    for own, (f, (_, d)) in zip(motion.bounds(lambda f: moves[f][0]), moves.items(), strict=True):
        pull[list(f.rows)] = d * own.level(x)
    return pull


def law_values(motion: LawMotion, x: Matrix) -> Matrix:
    """Values (m,) at forces x that fall through zero where a row leaves its mode (`law_quantities.law_events`)."""
    import casadi as ca

    model, u = motion.model, motion.u
    mode, d = modes_of(model, MODE), modes_of(model, DIRECTION)
    laws = [(element, law) for element in model.laws for law in element.laws]
    values = ca.SX.ones(len(laws))
    for k, (element, law) in enumerate(laws):
        if law is Law.UNILATERAL:
            values[k] = where(mode[k] > 0.5, x[k], motion.rows.phi[k] + d[k] + TINY)
        elif law is Law.SWITCHED:
            loose = ca.logic_and(element.number("closed") > 0.5, mode[k] < 0.5)
            values[k] = where(loose, TORN - ca.fabs(u[k]), 1.0)
    for own, f in zip(motion.bounds(lambda f: 0.0), frictions(model), strict=True):
        rows, k = list(f.rows), f.rows[0]  # the first row speaks for all
        left = own.level(x) - f.size(x)
        if len(rows) == 1:
            along = where(d[k] == 0, HELD - ca.fabs(u[k]), d[k] * u[k])
        else:
            speed = f.size(u)
            along = dot(d[rows], u[rows]) - CONE * speed
            along = along if f.normal is None else ca.fmin(along, speed - d[f.normal])
        values[k] = where(mode[k] > 0.5, left, along + RATE_MARGIN)
        if f.normal is not None:
            values[k] = where(mode[f.normal] > 0.5, values[k], 1.0)
    return values
