"""A step of the generalised-alpha method, as text over symbols: order 2, adjustable damping, on the rotation manifold.

A step of length h, in any formulation's own coordinates, from (q, v, vdot, a) to the unknowns (q', v', vdot', a'):

    q' = q (+) D     D = h v + h^2 (1/2 - beta) a + h^2 beta z     z = a' + G^T eta
    v' = v + h (1 - gamma) a + h gamma a'
    (1 - alpha_m) a' + alpha_m a = (1 - alpha_f) vdot' + alpha_f vdot
    M vdot' + J^T lam = f          J v' = beta(t')          phi(q', t') = 0

`a` is an auxiliary variable of the method; it approximates `vdot` at a slightly later time. `rho`, between 0 and 1, is
the spectral radius at infinite frequency: the factor by which an infinitely fast vibration decays in each step. The
four coefficients follow from it. Positions and velocities both satisfy the constraints, by means of `eta` (stabilised
index 2); `G = d phi / d D`. Newton's method on (z, lam, eta) uses the exact derivatives, except for the change of G,
which is multiplied by eta, of order h. Residuals of positions are divided by h^2 beta and those of velocities by
h gamma, so that Newton's matrix stays bounded as h vanishes.

A row with a law that is closed (`model.modes`) is a constraint like the others, with its force among `lam` and, if it
is a gap, a multiplier among `eta`. Of an open one the equations are that its force is the given one, and `eta = 0`.

States of the model beside the motion, `xdot = f(t, q, v, x)`, are below the rates: `v`, `vdot`, `a` and `z` are columns
of both, and the balance has the rows `xdot' - f = 0`. So they are integrated to the same order, with the same damping,
and Newton's matrix has their coupling with the motion.

Source: J. Chung, G. M. Hulbert, J. Appl. Mech. 60 (1993) 371-375; O. Bruels, A. Cardona, J. Comput. Nonlinear Dyn. 5
(2010) 031002; M. Arnold, O. Bruels, A. Cardona, Numer. Math. 129 (2015) 149-179; C. L. Bottasso, D. Dopico,
L. Trainelli, Multibody Syst. Dyn. 19 (2008) 3-20 for the scaling; O. Bruels, M. Arnold, J. Comput. Nonlinear Dyn. 3
(2008) 041007 for states.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from cardan.algebra.linsolve import lu_factor, lu_solve, lu_solved
from cardan.algebra.matrix import Matrix, Scalar, constant, stack, where, zeros
from cardan.formulation.coordinates import law_unknowns, own_equations
from cardan.formulation.dynamics import entering_power, law_motion_at, parts_at
from cardan.formulation.modes import law_forces, mode_equations, modes_of
from cardan.formulation.quantity import Inputs, Quantity, Shape, fixed
from cardan.formulation.solution import Solution, size_of
from cardan.formulation.state_rates import answers_read, rates_of_states
from cardan.integrate.events import crossing
from cardan.integrate.explicit.step import LARGEST
from cardan.integrate.kernel import Given, Layout, at_states
from cardan.integrate.stepper import STRETCH, Outcome
from cardan.model.model import Model
from cardan.model.modes import MODE
from cardan.structure.kernels import symbolic


@dataclass(frozen=True)
class AlphaEquations:
    """CasADi functions of one model in one layout, called on symbols.

    The layout's `lent` inertia is added to Newton's matrix but not to the equations: it costs iterations, not accuracy.
    """

    layout: Layout
    balance: Any
    geometry: Any
    plus: Any

    states: int = 0
    """Number of states beside the motion."""

    @property
    def n(self) -> int:
        """Number of rates, of the formulation and of states."""
        return self.layout.nv + self.states

    @property
    def m(self) -> int:
        """Number of multipliers `lam`, with the forces of rows with laws."""
        return self.layout.multipliers[0]

    @property
    def m_positions(self) -> int:
        """Number of multipliers `eta`, of rows at position level."""
        return self.layout.multipliers[1]

    @classmethod
    def record(cls, model: Model, layout: Layout) -> AlphaEquations:
        """Record `r = M vdot + J^T lam - f`, `J v - beta`, `phi` and their derivatives.

        States are rates beside: in their rows `M` and `R` are the derivatives of `r` by `vdot` and `lam`.
        """
        import casadi as ca

        (written, p), formulation, own = symbolic(model), layout.formulation, layout.nv
        places, m = model.parameters.states, layout.multipliers[0]
        n = own + len(places)
        sizes = {"t": 1, "q": layout.nq, "v": n, "vdot": n, "lam": m, "tau": model.nv}
        t, q, v, vdot, forces, tau = (ca.SX.sym(name, size) for name, size in sizes.items())
        lam, x = ca.vertsplit(forces, [0, len(layout.rows), m])
        about = [] if formulation.in_tree else [ca.SX.sym("about", model.nq)]
        state = {"t": t, "q": q, "v": v[:own], "tau": tau, **({"about": about[0]} if about else {})}
        parts = own_equations(written, formulation, state, x if layout.laws else None)
        rows, phi = parts.rows.kept(layout.rows), parts.rows.kept(layout.positions).phi
        M, f, free = parts.M, parts.f, [p] if model.parameters else []
        r = formulation.inertia_force(parts, vdot[:own]) + rows.J.T @ lam - f
        excess, R = rows.J @ v[:own] - rows.beta, rows.J.T
        power, off = entering_power(parts, tau, layout.rows, lam), ca.SX(len(layout.positions), 1)
        if layout.laws:
            at = law_unknowns(written, parts, formulation, layout.rows, state, (vdot[:own], lam, x))
            mode, gaps = modes_of(written, MODE), list(layout.gaps)
            excess, R = ca.vertcat(excess, mode_equations(at, at.u)), ca.horzcat(R, -ca.jacobian(f, x))
            phi = ca.vertcat(phi, mode[gaps, 0] * at.rows.phi[gaps, 0])
            power, off = power + at.power, ca.vertcat(off, 1 - mode[gaps, 0])
        if places:
            xdot = rates_of_states(model, parts, formulation, layout.rows, state, (vdot[:own], lam, x))
            r, f = ca.vertcat(r, vdot[own:] - xdot), ca.vertcat(f, xdot)
            M = ca.blockcat(M, ca.SX(own, len(places)), -ca.jacobian(xdot, vdot[:own]), ca.SX.eye(len(places)))
            R = ca.vertcat(R, -ca.jacobian(xdot, forces))
            r, f, excess, M, R, power = at_states(model, places, v[own:], [r, f, excess, M, R, power])
        slopes = ca.vertsplit(ca.jacobian(ca.vertcat(r, excess), q), [0, n, n + m])
        D = ca.SX.sym("D", n)
        moved, last = formulation.plus(written, q, D[:own]), [*about, *free]
        of_excess = (ca.jacobian(excess, v), ca.jacobian(excess, vdot), ca.jacobian(excess, forces))
        balance = [r, excess, M, R, *of_excess, -ca.jacobian(f, v), *slopes, ca.densify(power)]
        return cls(
            layout,
            ca.Function("balance", [t, q, v, vdot, forces, tau, *last], balance),
            ca.Function("geometry", [t, q, *last], [phi, ca.jacobian(phi, q), off]),
            ca.Function("plus", [q, D, *free], [moved, ca.jacobian(moved, D)]),
            len(places),
        )

    def lend(self, M: Matrix) -> Matrix:
        """`M` with the added inertia."""
        if not self.layout.lent:
            return M
        lent = np.pad(np.array(self.layout.lent), (0, self.states))
        return M + constant(lent)


TOLERANCE = 1e-10  # of Newton's last correction: m, rad, and per second, relative to 1 plus the size of the state
ITERATIONS = 15
# near positions where rows lose rank, rounding keeps corrections above the tolerance: after PATIENCE iterations a
# correction below ROUGH is accepted
PATIENCE, ROUGH = 12, 1e-5
SINGULAR = 1e-12  # part of a multiplier's pivot that is added to it, so that it stays bounded where rows lose rank


@dataclass(frozen=True)
class AlphaCoefficients:
    """Coefficients of the method, from the spectral radius at infinite frequency (Chung and Hulbert)."""

    alpha_m: Scalar
    alpha_f: Scalar
    beta: Scalar
    gamma: Scalar

    @classmethod
    def of(cls, rho: Scalar) -> AlphaCoefficients:
        """For `rho` between 0 (most damping) and 1 (no damping)."""
        alpha_m, alpha_f = (2 * rho - 1) / (rho + 1), rho / (rho + 1)
        gamma = 0.5 - alpha_m + alpha_f
        return cls(alpha_m, alpha_f, 0.25 * (gamma + 0.5) * (gamma + 0.5), gamma)


@dataclass
class AlphaPoint:
    """State at the end of a step: time, coordinates, rates, their derivative, `a`, the multipliers and the power.

    Symbols, or numbers on large mechanisms (`alpha.large`).
    """

    t: Any
    q: Any
    v: Any
    vdot: Any
    a: Any
    lam: Any
    eta: Any
    power: Any


@dataclass
class NewtonUnknowns:
    """Newton's unknowns, scaled alike: accelerations, multipliers, and the correction of positions."""

    z: Any
    lam: Any
    eta: Any


def first_accelerations(model: Model, layout: Layout) -> Quantity:
    """`vdot` of the formulation and multipliers from the equations of motion at a state of the tree, and the power.

    Last what the rates of states read of the answer. They are solved as in forward dynamics: in fewer operations than
    Newton's matrix would take.
    """
    n, m, rows, formulation = layout.nv, layout.multipliers[0], layout.rows, layout.formulation
    shapes: dict[str, Shape] = {"t": (), "q": (model.nq,), "v": (model.nv,), "tau": (model.nv,)}

    def write(model: Model, inputs: Inputs) -> list[Matrix]:
        if layout.laws:
            at = law_motion_at(model, formulation, rows, inputs)
            power = entering_power(at.parts, inputs["tau"], rows, at.lam) + at.power
            found = [at.vdot, at.lam, at.x, power, at.solution.column(sights)]
            vdot, lam, x, power, read = at.at(law_forces(at), found)
            return [vdot, stack(lam, x), power, read]
        parts = parts_at(model, formulation, inputs)
        vdot, lam = formulation.solve(parts, rows)
        solution = Solution(formulation, parts, rows, vdot, lam, zeros(1, 1, vdot))
        return [vdot, lam, entering_power(parts, inputs["tau"], rows, lam), solution.column(sights)]

    sights = answers_read(model)
    outputs = (("vdot", fixed(n)), ("lam", fixed(m)), ("P", fixed()), ("y", fixed(size_of(sights))))
    return Quantity("first_accelerations", tuple(shapes), outputs, write=write, shapes=shapes)


def predict(c: AlphaCoefficients, p: AlphaPoint) -> NewtonUnknowns:
    """First guess: `vdot` and the multipliers do not change."""
    return NewtonUnknowns((p.vdot - c.alpha_m * p.a) / (1 - c.alpha_m), p.lam, p.eta)


@dataclass
class NewtonEquations:
    """Newton's equations `K (dz, dlam, deta) = b`, `G`, and the power that enters at the iterate."""

    K: Matrix
    b: Matrix
    G: Matrix
    power: Matrix


def linearise(
    eq: AlphaEquations, c: AlphaCoefficients, p: AlphaPoint, x: NewtonUnknowns, h: Scalar, given: Given
) -> NewtonEquations:
    """Newton's equations at an iterate; `u` is the velocity residual of the constraints."""
    import casadi as ca

    q_a, v_a, vdot_a = slopes(c, h)
    q, turned = eq.plus(p.q, shift(c, p, x.z, h), *given.parameters)
    phi, phi_q, off = eq.geometry(p.t + h, q, *given.about, *given.parameters)
    G = phi_q @ turned
    v, vdot = rates_after(c, p, x.z - G.T @ x.eta, h)
    found = eq.balance(p.t + h, q, v, vdot, x.lam, given.tau, *given.about, *given.parameters)
    r, u, M, R, u_v, u_vdot, u_lam, r_v, r_q, u_q, power = found
    J = u_v + (vdot_a / v_a) * u_vdot
    S0 = vdot_a * eq.lend(M) + v_a * r_v
    S = S0 + q_a * (r_q @ turned)
    # rows: balance, velocities, positions
    K = ca.blockcat([
        [S, R, -S0 @ G.T],
        [J + (q_a / v_a) * (u_q @ turned), u_lam / v_a - _small(J**2 @ (1 / ca.diag(S))), -J @ G.T],
        [G, ca.SX(eq.m_positions, eq.m), _small(ca.sum2(G**2)) + ca.diag(off)],
    ])  # fmt: skip
    return NewtonEquations(K, -ca.vertcat(r, u / v_a, phi / q_a + off * x.eta), G, power)


def correct(
    eq: AlphaEquations, c: AlphaCoefficients, p: AlphaPoint, x: NewtonUnknowns, h: Scalar, linear: NewtonEquations,
    found: Matrix, given: Given,
) -> tuple[NewtonUnknowns, AlphaPoint, Scalar]:  # fmt: skip
    """The unknowns after an iteration that `found` a correction, the resulting state, and the correction's size."""
    import casadi as ca

    n, m, G = eq.n, eq.m, linear.G
    dz, dlam, deta = ca.vertsplit(found, [0, n, n + m, n + m + eq.m_positions])
    new = NewtonUnknowns(x.z + dz, x.lam + dlam, x.eta + deta)
    a = new.z - G.T @ new.eta
    q = eq.plus(p.q, shift(c, p, new.z, h), *given.parameters)[0]
    v, vdot = rates_after(c, p, a, h)
    q_a, v_a, _ = slopes(c, h)
    speed = ca.norm_inf(v) + ca.norm_inf(p.v) + h * ca.norm_inf(p.a)
    moved = q_a * ca.norm_inf(dz) / (1 + ca.norm_inf(q) + h * speed)
    sped = v_a * ca.norm_inf(dz - G.T @ deta) / (1 + speed)
    # the last correction is below the tolerance, so the power is that of the iterate before
    return new, AlphaPoint(p.t + h, q, v, vdot, a, new.lam, new.eta, linear.power), ca.fmax(moved, sped)


def slopes(c: AlphaCoefficients, h: Scalar) -> tuple[Any, Any, Any]:
    """Derivatives of position, velocity and `vdot'` by `a'`."""
    return c.beta * h * h, c.gamma * h, (1 - c.alpha_m) / (1 - c.alpha_f)


def shift(c: AlphaCoefficients, p: AlphaPoint, z: Any, h: Scalar) -> Any:
    """`D`."""
    return h * p.v + h * h * ((0.5 - c.beta) * p.a + c.beta * z)


def rates_after(c: AlphaCoefficients, p: AlphaPoint, a: Any, h: Scalar) -> tuple[Any, Any]:
    """`v'` and `vdot'`."""
    v = p.v + h * ((1 - c.gamma) * p.a + c.gamma * a)
    return v, ((1 - c.alpha_m) * a + c.alpha_m * p.a - c.alpha_f * p.vdot) / (1 - c.alpha_f)


LONGER = 10.0  # a step this many times as long as the last one cannot use its `a`


def rescaled(s: Mapping[str, np.ndarray], h: np.ndarray) -> np.ndarray:
    """`a` (B, n) of states whose next steps have other lengths `h` (B,): it is `vdot` a part of a step later."""
    ratio = h / s["h"]
    ratio = np.where(ratio < LONGER, ratio, 0.0)[:, None]  # 0: restart with a = vdot
    other = s["vdot"] + ratio * (s["a"] - s["vdot"])
    return np.where((h == s["h"])[:, None], s["a"], other)  # equal to the bit, whatever other systems do


def _small(size: Matrix) -> Matrix:
    """What is added to the pivots of multipliers, so that they stay bounded where their rows lose rank."""
    import casadi as ca

    return SINGULAR * ca.diag(size)


def solver(K: Matrix, n: int) -> Callable[[Matrix], Matrix]:
    """Factor `K`, and return a function that solves for a right side."""
    K, order, after = _ordered(K, n)
    lu = lu_factor(K, after)
    return lambda b: lu_solve(lu, b[order, :])


def solved_values(K: Matrix, n: int, known: Mapping[int, Any], b: Sequence[Any]) -> list[Any]:
    """The same for values: `known` has them by the hash of the symbols in K, and `b` is the right side."""
    K, order, after = _ordered(K, n)
    return lu_solved(lu_factor(K, after, values_of(K, known)), [b[i] for i in order])


def values_of(matrix: Matrix, known: Mapping[int, Any]) -> list[Any]:
    """What stands for the nonzeros of a matrix of symbols and numbers."""
    entries: list[Any] = matrix.nonzeros()
    return [float(e) if e.is_constant() else known[e.element_hash()] for e in entries]


def _ordered(K: Matrix, n: int) -> tuple[Matrix, list[int], dict[int, set[int]]]:
    """`K` with its rows in an order in which pivots are on the diagonal; the order; which pivots come before which.

    Each multiplier, beyond the first n unknowns, is eliminated after all accelerations in its row. A row that has one
    acceleration, with a constant factor, gives it directly: the row and that of the acceleration change places. In
    relative coordinates most rows do, and the factors have a fifth of the operations.
    """
    import casadi as ca

    K = ca.SX(K)
    columns = K[n:, :n].sparsity().T
    start, inside = columns.colind(), columns.row()
    rows = {n + k: inside[start[k] : start[k + 1]] for k in range(K.shape[0] - n)}
    order, after = list(range(K.shape[0])), {k: set(row) for k, row in rows.items()}
    for k, row in rows.items():
        if len(row) == 1 and order[row[0]] == row[0] and _is_constant(K[k, row[0]]) and _is_constant(K[row[0], k]):
            order[k], order[row[0]] = row[0], k
            after[k], K[k, k] = set(), 0  # such a row cannot lose rank
    return ca.sparsify(K)[order, :], order, after


def _is_constant(entry: Matrix) -> bool:
    """Whether an entry is a number other than zero, and none that is added for lost rank."""
    return bool(entry.nnz() and entry.is_constant() and abs(float(entry)) > SINGULAR)


@dataclass
class AlphaState:
    """What is carried from iteration to iteration: the start of the step, Newton's iterate, and the lane's outcome.

    `q`, `v` of the point are the formulation's coordinates, `x`, `w` the tree's; they are the same if the formulation
    uses the tree's. `k` counts the iterations of the current step. `work` (J) has entered by the trapezoidal rule, and
    `speed` is the largest `v^T v` of the tree so far.
    """

    point: AlphaPoint
    x: Matrix
    w: Matrix
    iterate: NewtonUnknowns
    h: Matrix
    k: Matrix
    steps: Matrix
    outcome: Matrix
    event: Matrix
    work: Matrix
    speed: Matrix
    g: Matrix


@dataclass
class AlphaControl:
    """Time to stop at, spectral radius, and whether events stop a lane (1) or are ignored (0)."""

    end: Scalar
    rho: Scalar
    stop_at_events: Scalar


CONTROL = tuple(f.name for f in fields(AlphaControl))


def step_length(s: AlphaState, control: AlphaControl) -> Scalar:
    """Length of the step to take: to the end if that is near."""
    left = control.end - s.point.t
    return where(s.h * STRETCH >= left, left, s.h)


def iterate_or_guess(s: AlphaState, guess: NewtonUnknowns) -> NewtonUnknowns:
    """The current iterate of Newton's method: the guess at the first iteration of a step."""
    pairs = zip(vars(guess).values(), vars(s.iterate).values(), strict=True)
    return NewtonUnknowns(*(where(s.k == 0, new, old) for new, old in pairs))


def finish_iteration(
    s: AlphaState, control: AlphaControl, found: tuple[NewtonUnknowns, AlphaPoint, Scalar], tree: tuple[Matrix, Matrix],
    g: Matrix, directions: np.ndarray,
) -> tuple[AlphaState, Scalar]:  # fmt: skip
    """The state after an iteration, the last of its step or not, and whether the lane goes on."""
    import casadi as ca

    x, new, size = found
    running = ca.logic_and(s.point.t < control.end, s.outcome == Outcome.ARRIVED)
    finite = ca.norm_1(new.q) + ca.norm_1(new.v) + ca.norm_1(new.vdot) + size <= LARGEST
    converged = ca.logic_and(finite, size <= where(s.k < PATIENCE, TOLERANCE, ROUGH))
    crossed, which = crossing(s.g, g, directions)
    crossed = ca.logic_and(ca.logic_and(converged, crossed), control.stop_at_events != 0)
    accept = ca.logic_and(running, ca.logic_and(converged, ca.logic_not(crossed)))
    more = ca.logic_and(running, ca.logic_and(finite, ca.logic_not(converged)))
    lost = where(s.k == 0, float(Outcome.NOT_FINITE), float(Outcome.NEWTON))
    slow = where(ca.logic_and(more, s.k + 1 >= ITERATIONS), float(Outcome.NEWTON), float(Outcome.ARRIVED))
    stopped = where(finite, where(crossed, float(Outcome.EVENT), slow), lost)
    outcome = where(running, stopped, s.outcome)
    t = where(s.h * STRETCH >= control.end - s.point.t, control.end, new.t)

    def chosen(new: Any, old: Any, condition: Matrix) -> list[Matrix]:
        pairs = zip(vars(new).values(), vars(old).values(), strict=True)
        return [where(condition, fresh, kept) for fresh, kept in pairs]

    after = AlphaState(
        AlphaPoint(*chosen(AlphaPoint(**{**vars(new), "t": t}), s.point, accept)),
        where(accept, tree[0], s.x),
        where(accept, tree[1], s.w),
        NewtonUnknowns(*chosen(x, s.iterate, more)),
        s.h,
        where(more, s.k + 1, where(running, 0.0, s.k)),
        s.steps + where(accept, 1.0, 0.0),
        outcome,
        where(ca.logic_and(running, crossed), which, s.event),
        where(accept, s.work + (t - s.point.t) * (s.point.power + new.power) / 2, s.work),
        where(accept, ca.fmax(s.speed, ca.sumsqr(tree[1])), s.speed),
        where(accept, g, s.g) if g.shape[0] else g,
    )
    return after, ca.logic_and(after.point.t < control.end, outcome == Outcome.ARRIVED)
