"""The generalised-alpha method as text over symbols: order 2, damping as chosen, on the rotation manifold.

A step of length h, in any formulation's own coordinates, from (q, v, vdot, a) to the unknowns (q', v', vdot', a'):

    q' = q (+) D     D = h v + h^2 (1/2 - beta) a + h^2 beta z     z = a' + G^T eta
    v' = v + h (1 - gamma) a + h gamma a'
    (1 - alpha_m) a' + alpha_m a = (1 - alpha_f) vdot' + alpha_f vdot
    M vdot' + J^T lam = f          J v' = beta(t')          phi(q', t') = 0

`a` is an auxiliary variable of the method, near to `vdot` a little later. `rho`, between 0 and 1, is what the method
leaves of an infinitely fast vibration each step; the four coefficients follow from it. Positions and velocities both
satisfy the constraints, which `eta` makes possible (stabilised index 2); `G = d phi / d D`. Newton's method on
(z, lam, eta) takes the exact derivatives, but for the change of G that eta, of order h, multiplies; residuals of
positions are divided by h^2 beta and those of velocities by h gamma, so that nothing grows as h vanishes.

Source: J. Chung, G. M. Hulbert, J. Appl. Mech. 60 (1993) 371-375; O. Bruels, A. Cardona, J. Comput. Nonlinear Dyn. 5
(2010) 031002; M. Arnold, O. Bruels, A. Cardona, Numer. Math. 129 (2015) 149-179; C. L. Bottasso, D. Dopico,
L. Trainelli, Multibody Syst. Dyn. 19 (2008) 3-20 for the scaling.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from cardan.algebra.linsolve import lu_factor, lu_solve
from cardan.algebra.matrix import Matrix, Scalar, constant, where
from cardan.formulation import native
from cardan.integrate import dae
from cardan.integrate.explicit.motion import Loads
from cardan.integrate.explicit.step import LARGEST, STRETCH, crossing
from cardan.integrate.stepper import Outcome
from cardan.model.model import Model
from cardan.structure.kernels import symbolic

TOLERANCE = 1e-10  # of Newton's last correction: m, rad, and per second, beside 1 and the terms it is added to
ITERATIONS = 15
# near positions where rows lose rank, rounding keeps corrections above that: after so many iterations this is enough
PATIENCE, ROUGH = 12, 1e-5
CORRECTIONS = 4  # of the first accelerations, for what is lent and added to pivots
SINGULAR = 1e-12  # part of a multiplier's own pivot that is added to it: bounded where rows lose rank


@dataclass(frozen=True)
class Coefficients:
    """Those of the method, from the spectral radius at infinity (Chung and Hulbert)."""

    alpha_m: Scalar
    alpha_f: Scalar
    beta: Scalar
    gamma: Scalar

    @classmethod
    def of(cls, rho: Scalar) -> Coefficients:
        """For `rho` between 0, which forgets, and 1, which keeps all."""
        alpha_m, alpha_f = (2 * rho - 1) / (rho + 1), rho / (rho + 1)
        gamma = 0.5 - alpha_m + alpha_f
        return cls(alpha_m, alpha_f, 0.25 * (gamma + 0.5) * (gamma + 0.5), gamma)


@dataclass(frozen=True)
class Layout:
    """The formulation, its sizes, the rows of `J` and of `phi` kept, and what is lent.

    `lent` (nv,) is inertia for rates that only constraints give any. Newton's matrix has it, the equations have not:
    it costs iterations, not accuracy.
    """

    key: str
    nq: int
    nv: int
    rows: tuple[int, ...]
    places: tuple[int, ...]
    lent: tuple[float, ...]

    @property
    def m(self) -> int:
        """Multipliers."""
        return len(self.rows)


@dataclass(frozen=True)
class Equations:
    """CasADi functions of one model in one layout, called on symbols."""

    layout: Layout
    balance: Any
    geometry: Any
    start: Any
    plus: Any

    @classmethod
    def record(cls, model: Model, layout: Layout) -> Equations:
        """Write them: `r = M vdot + J^T lam - f`, `J v - beta`, `phi` and their derivatives."""
        import casadi as ca

        written, p = symbolic(model)
        sizes = {"t": 1, "q": layout.nq, "v": layout.nv, "vdot": layout.nv, "lam": layout.m, "tau": model.nv}
        t, q, v, vdot, lam, tau = (ca.SX.sym(name, n) for name, n in sizes.items())
        M, f, J, gamma, phi, beta, _ = dae.equations(written, layout.key, t, q, v, tau)
        rows, free = list(layout.rows), [p] if model.parameters else []
        J, phi = J[rows, :], phi[list(layout.places)]
        r, excess = M @ vdot + J.T @ lam - f, J @ v - beta[rows]
        slopes = ca.vertsplit(ca.jacobian(ca.vertcat(r, excess), q), [0, layout.nv, layout.nv + layout.m])
        D = ca.SX.sym("D", layout.nv)
        moved = native.plus(written, layout.key, {"q": q, "v": D})[0]
        return cls(
            layout,
            ca.Function("balance", [t, q, v, vdot, lam, tau, *free], [r, excess, M, J, -ca.jacobian(f, v), *slopes]),
            ca.Function("geometry", [t, q, *free], [phi, ca.jacobian(phi, q)]),
            ca.Function("start", [t, q, v, tau, *free], [M, f, J, gamma[rows]]),
            ca.Function("plus", [q, D, *free], [moved, ca.jacobian(moved, D)]),
        )

    def lend(self, M: Matrix) -> Matrix:
        """`M` with what is lent."""
        return M + constant(np.diag(self.layout.lent)) if any(self.layout.lent) else M


@dataclass
class Point:
    """What one step hands to the next: time, coordinates, rates, their derivative, `a` and the multipliers."""

    t: Scalar
    q: Matrix
    v: Matrix
    vdot: Matrix
    a: Matrix
    lam: Matrix
    eta: Matrix


@dataclass
class Unknown:
    """Newton's unknowns, scaled alike: accelerations, multipliers, and the correction of positions."""

    z: Matrix
    lam: Matrix
    eta: Matrix


def begin(eq: Equations, t: Scalar, q: Matrix, v: Matrix, loads: Loads) -> Point:
    """A start at a consistent state: accelerations from the equations themselves, `a = vdot`."""
    import casadi as ca

    M, f, J, gamma = eq.start(t, q, v, loads.tau, *loads.parameters)
    K = ca.blockcat([[M, J.T], [J, ca.SX(eq.layout.m, eq.layout.m)]])
    S = eq.lend(M)
    solve = _solver(ca.blockcat([[S, J.T], [J, -_small(J**2 @ (1 / ca.diag(S)))]]), eq.layout.nv)
    b = ca.vertcat(f, gamma)
    x = solve(b)
    for _ in range(CORRECTIONS):
        x = x + solve(b - K @ x)
    vdot, lam = ca.vertsplit(x, [0, eq.layout.nv, eq.layout.nv + eq.layout.m])
    return Point(t, q, v, vdot, vdot, lam, ca.SX.zeros(eq.layout.m, 1))


def predict(c: Coefficients, p: Point) -> Unknown:
    """First guess: `vdot` and the multipliers stay as they are."""
    return Unknown((p.vdot - c.alpha_m * p.a) / (1 - c.alpha_m), p.lam, p.eta)


@dataclass
class Linear:
    """Newton's equations `K (dz, dlam, deta) = b`, and `G`."""

    K: Matrix
    b: Matrix
    G: Matrix


def linearise(eq: Equations, c: Coefficients, p: Point, x: Unknown, h: Scalar, loads: Loads) -> Linear:
    """Newton's equations at an iterate; `u` is what velocities break the constraints by."""
    import casadi as ca

    m = eq.layout.m
    far, fast, heavy = _lengths(c, h)
    q, turned = eq.plus(p.q, _shift(c, p, x.z, h), *loads.parameters)
    phi, phi_q = eq.geometry(p.t + h, q, *loads.parameters)
    G = phi_q @ turned
    v, vdot = _rates(c, p, x.z - G.T @ x.eta, h)
    r, u, M, J, r_v, r_q, u_q = eq.balance(p.t + h, q, v, vdot, x.lam, loads.tau, *loads.parameters)
    S0 = heavy * eq.lend(M) + fast * r_v
    S = S0 + far * (r_q @ turned)
    # rows: balance, velocities, positions
    K = ca.blockcat([
        [S, J.T, -S0 @ G.T],
        [J + (far / fast) * (u_q @ turned), -_small(J**2 @ (1 / ca.diag(S))), -J @ G.T],
        [G, ca.SX(m, m), _small(ca.sum2(G**2))],
    ])  # fmt: skip
    return Linear(K, -ca.vertcat(r, u / fast, phi / far), G)


def correct(
    eq: Equations, c: Coefficients, p: Point, x: Unknown, h: Scalar, linear: Linear, loads: Loads
) -> tuple[Unknown, Point, Scalar]:
    """The unknowns after an iteration, the state they lead to, and the size of the correction."""
    import casadi as ca

    n, m, G = eq.layout.nv, eq.layout.m, linear.G
    dz, dlam, deta = ca.vertsplit(_solver(linear.K, n)(linear.b), [0, n, n + m, n + 2 * m])
    new = Unknown(x.z + dz, x.lam + dlam, x.eta + deta)
    a = new.z - G.T @ new.eta
    q = eq.plus(p.q, _shift(c, p, new.z, h), *loads.parameters)[0]
    v, vdot = _rates(c, p, a, h)
    far, fast, _ = _lengths(c, h)
    speed = ca.norm_inf(v) + ca.norm_inf(p.v) + h * ca.norm_inf(p.a)
    moved = far * ca.norm_inf(dz) / (1 + ca.norm_inf(q) + h * speed)
    sped = fast * ca.norm_inf(dz - G.T @ deta) / (1 + speed)
    return new, Point(p.t + h, q, v, vdot, a, new.lam, new.eta), ca.fmax(moved, sped)


def _lengths(c: Coefficients, h: Scalar) -> tuple[Scalar, Scalar, Scalar]:
    """What a unit of `a'` adds to position, velocity and `vdot'`."""
    return c.beta * h * h, c.gamma * h, (1 - c.alpha_m) / (1 - c.alpha_f)


def _shift(c: Coefficients, p: Point, z: Matrix, h: Scalar) -> Matrix:
    """`D`."""
    return h * p.v + h * h * ((0.5 - c.beta) * p.a + c.beta * z)


def _rates(c: Coefficients, p: Point, a: Matrix, h: Scalar) -> tuple[Matrix, Matrix]:
    """`v'` and `vdot'`."""
    v = p.v + h * ((1 - c.gamma) * p.a + c.gamma * a)
    return v, ((1 - c.alpha_m) * a + c.alpha_m * p.a - c.alpha_f * p.vdot) / (1 - c.alpha_f)


def _small(size: Matrix) -> Matrix:
    """What bounds multipliers where their rows lose rank, beside the size of their own pivots."""
    import casadi as ca

    return SINGULAR * ca.diag(size)


def _solver(K: Matrix, n: int) -> Callable[[Matrix], Matrix]:
    """Factor once and solve for any right side; multipliers, past n, come after all accelerations in their row."""
    columns = K[n:, :n].sparsity().T
    start, rows = columns.colind(), columns.row()
    lu = lu_factor(K, {n + k: set(rows[start[k] : start[k + 1]]) for k in range(K.shape[0] - n)})
    return lambda b: lu_solve(lu, b)


@dataclass
class State:
    """What a march carries: where the step began, Newton's iterate, and how the lane stands.

    `q`, `v` are the formulation's own and `x`, `w` the tree's, the same where the formulation is one of trees.
    `k` counts iterations of the step under way.
    """

    point: Point
    x: Matrix
    w: Matrix
    iterate: Unknown
    h: Matrix
    k: Matrix
    steps: Matrix
    outcome: Matrix
    event: Matrix
    g: Matrix


@dataclass
class Control:
    """Time to stop at, spectral radius, and whether events stop a lane (1) or pass (0)."""

    end: Scalar
    rho: Scalar
    heed: Scalar


def length(s: State, control: Control) -> Scalar:
    """The step to take: up to the end where that is near."""
    left = control.end - s.point.t
    return where(s.h * STRETCH >= left, left, s.h)


def first(s: State, guess: Unknown) -> Unknown:
    """Where Newton's method stands: at the guess, or further."""
    pairs = zip(vars(guess).values(), vars(s.iterate).values(), strict=True)
    return Unknown(*(where(s.k == 0, new, old) for new, old in pairs))


def commit(
    s: State,
    control: Control,
    found: tuple[Unknown, Point, Scalar],
    tree: tuple[Matrix, Matrix],
    g: Matrix,
    directions: np.ndarray,
) -> tuple[State, Scalar]:
    """The state after an iteration: one more to come, or a step done; and whether the lane goes on."""
    import casadi as ca

    x, new, size = found
    going = ca.logic_and(s.point.t < control.end, s.outcome == Outcome.ARRIVED)
    finite = ca.norm_1(new.q) + ca.norm_1(new.v) + ca.norm_1(new.vdot) + size <= LARGEST
    converged = ca.logic_and(finite, size <= where(s.k < PATIENCE, TOLERANCE, ROUGH))
    crossed, which = crossing(s.g, g, directions)
    crossed = ca.logic_and(ca.logic_and(converged, crossed), control.heed != 0)
    keep = ca.logic_and(going, ca.logic_and(converged, ca.logic_not(crossed)))
    more = ca.logic_and(going, ca.logic_and(finite, ca.logic_not(converged)))
    lost = where(s.k == 0, float(Outcome.NOT_A_NUMBER), float(Outcome.NEWTON))
    slow = where(ca.logic_and(more, s.k + 1 >= ITERATIONS), float(Outcome.NEWTON), float(Outcome.ARRIVED))
    stopped = where(finite, where(crossed, float(Outcome.EVENT), slow), lost)
    outcome = where(going, stopped, s.outcome)
    t = where(s.h * STRETCH >= control.end - s.point.t, control.end, new.t)

    def chosen(new: Any, old: Any, condition: Matrix) -> list[Matrix]:
        pairs = zip(vars(new).values(), vars(old).values(), strict=True)
        return [where(condition, fresh, kept) for fresh, kept in pairs]

    after = State(
        Point(*chosen(Point(**{**vars(new), "t": t}), s.point, keep)),
        where(keep, tree[0], s.x),
        where(keep, tree[1], s.w),
        Unknown(*chosen(x, s.iterate, more)),
        s.h,
        where(more, s.k + 1, where(going, 0.0, s.k)),
        s.steps + where(keep, 1.0, 0.0),
        outcome,
        where(ca.logic_and(going, crossed), which, s.event),
        where(keep, g, s.g) if g.shape[0] else g,
    )
    return after, ca.logic_and(after.point.t < control.end, outcome == Outcome.ARRIVED)
