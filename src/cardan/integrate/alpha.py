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

from dataclasses import dataclass
from typing import Any

import numpy as np

from cardan.algebra.linsolve import lu_factor, lu_solve
from cardan.algebra.matrix import Matrix, Scalar, constant, where
from cardan.formulation import dae, native
from cardan.integrate.explicit import LARGEST, STRETCH, crossing
from cardan.integrate.motion import Loads
from cardan.integrate.stepper import Outcome
from cardan.kernels.evaluate import symbolic
from cardan.model.model import Model

TOLERANCE = 1e-10  # of Newton's last correction: m, rad, and per second, beside 1 or the value if larger
ITERATIONS = 15
CORRECTIONS = 5  # of the first accelerations, for what is lent
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
        slopes = [ca.jacobian(r, q), -ca.jacobian(f, v), ca.jacobian(excess, q)]
        D = ca.SX.sym("D", layout.nv)
        moved = native.plus(written, layout.key, {"q": q, "v": D})[0]
        return cls(
            layout,
            ca.Function("balance", [t, q, v, vdot, lam, tau, *free], [r, excess, M, J, *slopes]),
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
    M, f, J, gamma = eq.start(t, q, v, loads.tau, *loads.parameters)
    solve = _solver(eq.lend(M), J.T, J, None)
    vdot, lam = solve(-f, -gamma)
    for _ in range(CORRECTIONS if any(eq.layout.lent) else 0):
        dvdot, dlam = solve(M @ vdot + J.T @ lam - f, J @ vdot - gamma)
        vdot, lam = vdot + dvdot, lam + dlam
    return Point(t, q, v, vdot, vdot, lam, 0 * lam)


def predict(c: Coefficients, p: Point) -> Unknown:
    """First guess: `vdot` and the multipliers stay as they are."""
    return Unknown((p.vdot - c.alpha_m * p.a) / (1 - c.alpha_m), p.lam, p.eta)


def newton(
    eq: Equations, c: Coefficients, p: Point, x: Unknown, h: Scalar, loads: Loads
) -> tuple[Unknown, Point, Scalar]:
    """One iteration: the unknowns after it, the state they lead to, and the size of the correction."""
    import casadi as ca

    far, fast, heavy = c.beta * h * h, c.gamma * h, (1 - c.alpha_m) / (1 - c.alpha_f)
    t, free = p.t + h, loads.parameters

    def place(z: Matrix) -> Any:
        return eq.plus(p.q, h * p.v + h * h * (0.5 - c.beta) * p.a + far * z, *free)

    def rates(a: Matrix) -> tuple[Matrix, Matrix]:
        v = p.v + h * (1 - c.gamma) * p.a + fast * a
        return v, ((1 - c.alpha_m) * a + c.alpha_m * p.a - c.alpha_f * p.vdot) / (1 - c.alpha_f)

    q, turned = place(x.z)
    phi, phi_q = eq.geometry(t, q, *free)
    G = phi_q @ turned
    v, vdot = rates(x.z - G.T @ x.eta)
    r, excess, M, J, r_q, r_v, excess_q = eq.balance(t, q, v, vdot, x.lam, loads.tau, *free)
    S0 = heavy * eq.lend(M) + fast * r_v
    S = S0 + far * (r_q @ turned)
    # rows: balance, velocities, positions; columns: z, lam, eta
    none = ca.SX(eq.layout.m, eq.layout.m)
    B = ca.horzcat(J.T, -S0 @ G.T)
    C = ca.vertcat(J + (far / fast) * (excess_q @ turned), G)
    E = ca.vertcat(ca.horzcat(none, -J @ G.T), ca.horzcat(none, none))
    dz, multipliers = _solver(S, B, C, E)(r, ca.vertcat(excess / fast, phi / far))
    dlam, deta = ca.vertsplit(multipliers, [0, eq.layout.m, 2 * eq.layout.m])
    new = Unknown(x.z + dz, x.lam + dlam, x.eta + deta)
    a = new.z - G.T @ new.eta
    q, (v, vdot) = place(new.z)[0], rates(a)
    moved = far * ca.norm_inf(dz) / (1 + ca.norm_inf(q))
    sped = fast * ca.norm_inf(dz - G.T @ deta) / (1 + ca.norm_inf(v))
    return new, Point(t, q, v, vdot, a, new.lam, new.eta), ca.fmax(moved, sped)


def _solver(S: Matrix, B: Matrix, C: Matrix, E: Matrix | None) -> Callable[[Matrix, Matrix], tuple[Matrix, Matrix]]:
    """Factor `S x + B y = -r`, `C x + E y = -s` once; solve for any r and s."""
    import casadi as ca

    lu = lu_factor(S)
    if not C.shape[0]:
        return lambda r, s: (-lu_solve(lu, r), s)
    Y = lu_solve(lu, B)
    A = C @ Y if E is None else C @ Y - E
    outer = lu_factor(A + ca.diag(SINGULAR * ca.diag(A)))

    def solve(r: Matrix, s: Matrix) -> tuple[Matrix, Matrix]:
        x = lu_solve(lu, r)
        y = lu_solve(outer, s - C @ x)
        return -x - Y @ y, y

    return solve


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
    h: Scalar
    k: Scalar
    steps: Scalar
    outcome: Scalar
    event: Scalar
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
    converged = ca.logic_and(finite, size <= TOLERANCE)
    crossed, which = crossing(s.g, g, directions)
    crossed = ca.logic_and(ca.logic_and(converged, crossed), control.heed != 0)
    keep = ca.logic_and(going, ca.logic_and(converged, ca.logic_not(crossed)))
    more = ca.logic_and(going, ca.logic_and(finite, ca.logic_not(converged)))
    lost = where(s.k == 0, float(Outcome.NOT_A_NUMBER), float(Outcome.NEWTON))
    slow = where(ca.logic_and(more, s.k + 1 >= ITERATIONS), float(Outcome.NEWTON), float(Outcome.ARRIVED))
    stopped = where(finite, where(crossed, float(Outcome.EVENT), slow), lost)
    outcome = where(going, stopped, s.outcome)
    t = where(s.h * STRETCH >= control.end - s.point.t, control.end, new.t)

    def chosen(new: Any, old: Any, condition: Scalar) -> list[Matrix]:
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
