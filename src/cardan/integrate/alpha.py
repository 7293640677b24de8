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

from cardan.algebra.linsolve import lu_factor, lu_solve
from cardan.algebra.matrix import Matrix, Scalar
from cardan.formulation import dae, native
from cardan.integrate.motion import Loads
from cardan.kernels.evaluate import symbolic
from cardan.model.model import Model

TOLERANCE = 1e-10  # of Newton's last correction: m, rad, and per second, beside 1 or the value if larger
ITERATIONS = 15
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
    """The formulation, its sizes, the rows of `J` and of `phi` kept, and `held`.

    `held` is zero, or a mass (kg) with which the rows of `J` support a mass matrix that has no inverse of its own.
    """

    key: str
    nq: int
    nv: int
    rows: tuple[int, ...]
    places: tuple[int, ...]
    held: float = 0.0

    @property
    def m(self) -> int:
        """Multipliers."""
        return len(self.rows)


@dataclass(frozen=True)
class Equations:
    """CasADi functions of one model in one layout, called on symbols."""

    layout: Layout
    balance: Any
    start: Any
    plus: Any

    @classmethod
    def record(cls, model: Model, layout: Layout) -> Equations:
        """Write them."""
        import casadi as ca

        written, p = symbolic(model)
        sizes = {"t": 1, "q": layout.nq, "v": layout.nv, "vdot": layout.nv, "lam": layout.m, "tau": model.nv}
        t, q, v, vdot, lam, tau = (ca.SX.sym(name, n) for name, n in sizes.items())
        M, f, J, gamma, phi, beta, _ = dae.equations(written, layout.key, t, q, v, tau)
        rows, free = list(layout.rows), [p] if model.parameters else []
        J, phi = J[rows, :], phi[list(layout.places)]
        r, excess = M @ vdot + J.T @ lam - f, J @ v - beta[rows]
        slopes = [ca.jacobian(r, q), -ca.jacobian(f, v), ca.jacobian(phi, q), ca.jacobian(excess, q)]
        D = ca.SX.sym("D", layout.nv)
        moved = native.plus(written, layout.key, {"q": q, "v": D})[0]
        return cls(
            layout,
            ca.Function("balance", [t, q, v, vdot, lam, tau, *free], [r, excess, phi, M, J, *slopes]),
            ca.Function("start", [t, q, v, tau, *free], [M, f, J, gamma[rows]]),
            ca.Function("plus", [q, D, *free], [moved, ca.jacobian(moved, D)]),
        )


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
    vdot, lam = _solve(eq.layout, M, J, J, -f, -gamma)
    return Point(t, q, v, vdot, vdot, lam, 0 * lam)


def predict(c: Coefficients, p: Point) -> Unknown:
    """First guess: `vdot` and the multipliers stay as they are."""
    return Unknown((p.vdot - c.alpha_m * p.a) / (1 - c.alpha_m), p.lam, p.eta)


def newton(eq: Equations, c: Coefficients, p: Point, x: Unknown, h: Scalar, loads: Loads) -> tuple[Unknown, Point, Scalar]:
    """One iteration: the unknowns after it, the state they lead to, and the size of the correction."""
    import casadi as ca

    layout, n = eq.layout, eq.layout.nv
    far, fast, heavy = c.beta * h * h, c.gamma * h, (1 - c.alpha_m) / (1 - c.alpha_f)
    D = h * p.v + h * h * (0.5 - c.beta) * p.a
    q, slope = eq.plus(p.q, D + far * x.z, *loads.parameters)

    def rates(z: Matrix, eta: Matrix, G: Matrix) -> tuple[Matrix, Matrix, Matrix]:
        a = z - G.T @ eta
        vdot = ((1 - c.alpha_m) * a + c.alpha_m * p.a - c.alpha_f * p.vdot) / (1 - c.alpha_f)
        return p.v + h * (1 - c.gamma) * p.a + fast * a, vdot, a

    # G does not depend on the rates: it is read first
    anywhere = eq.balance(p.t + h, q, p.v, p.vdot, x.lam, loads.tau, *loads.parameters)
    G = anywhere[7] @ slope
    v, vdot, _ = rates(x.z, x.eta, G)
    r, excess, phi, M, J, r_q, r_v, _, excess_q = eq.balance(p.t + h, q, v, vdot, x.lam, loads.tau, *loads.parameters)
    S0 = heavy * M + fast * r_v
    S = S0 + far * (r_q @ slope)
    C = J + (far / fast) * (excess_q @ slope)
    if layout.m == 0:
        dz = lu_solve(lu_factor(S), -r)
        dlam = deta = x.lam
    else:
        # rows: balance, velocities, positions; columns: z, lam, eta
        B = ca.horzcat(J.T, -S0 @ G.T)
        E = ca.vertcat(ca.horzcat(ca.SX(layout.m, layout.m), -J @ G.T), ca.SX(layout.m, 2 * layout.m))
        right = ca.vertcat(r, excess / fast, phi / far)
        dz, multipliers = _solve(layout, S, B, ca.vertcat(C, G), right[:n], right[n:], E, J)
        dlam, deta = multipliers[: layout.m], multipliers[layout.m :]
    new = Unknown(x.z + dz, x.lam + dlam, x.eta + deta) if layout.m else Unknown(x.z + dz, x.lam, x.eta)
    v, vdot, a = rates(new.z, new.eta, G)
    q, _ = eq.plus(p.q, D + far * new.z, *loads.parameters)
    point = Point(p.t + h, q, v, vdot, a, new.lam, new.eta)
    da = dz - G.T @ deta if layout.m else dz
    size = ca.fmax(far * ca.norm_inf(dz) / (1 + ca.norm_inf(q)), fast * ca.norm_inf(da) / (1 + ca.norm_inf(v)))
    return new, point, size
