"""The generalised-alpha method on large mechanisms: the same steps, with sparse matrices instead of one straight line.

The equations of a step are those of `alpha.step`. Residuals, and the blocks of Newton's matrix by automatic
differentiation, are sums over components (`integrate.large`). The matrix is factored by a sparse package.

Newton's method is modified: factors are kept, over steps too, as long as each correction is a small part of the one
before. They are made anew at the present iterate when one is not.

Past `WHOLE` unknowns the matrix is made block triangular: what `eta` adds to balance and velocities is left out. There
`eta` is a correction of positions along the constraints, and the solution of balance and velocities has none along
them, so that each correction is still about `h` times the angular velocity of the one before, however stiff the
springs. Where constraints lose rank this does not converge, and the whole matrix is factored.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from cardan.algebra.matrix import Matrix
from cardan.errors import InputError
from cardan.formulation.dynamics import entering_power
from cardan.formulation.formulation import Formulation, Parts
from cardan.integrate.alpha.step import (
    ITERATIONS,
    PATIENCE,
    ROUGH,
    TOLERANCE,
    AlphaCoefficients,
    AlphaPoint,
    NewtonUnknowns,
    predict,
    rates_after,
    rescaled,
    shift,
    slopes,
)
from cardan.integrate.events import changed_sign, trace_events
from cardan.integrate.explicit.step import LARGEST
from cardan.integrate.integrators import Request
from cardan.integrate.large import System, factored, is_sum, large_system, small_pivots, written_parts
from cardan.integrate.stepper import STRETCH, BatchStepper, Outcome, States
from cardan.integrate.whole import Columns, WholeSystem, whole_system
from cardan.machines.cuda.place import Place
from cardan.model.model import Model
from cardan.structure.assemble import OPENED
from cardan.structure.component_sums import Component, Symbols

WHOLE = 10_000  # unknowns up to which Newton's matrix is factored as a whole
LENGTHS = 6  # of steps whose factors are kept: samples inside a step are reached by shorter ones
LONG = 30_000  # instructions past which products with Newton's matrix are not compiled: factors are kept for many steps
SLOW = 0.1  # of the correction before: a larger one asks for new factors

STEP = {"t": "all", "q": "q", "D": "v", "v": "v", "vdot": "v", "lam": "rows", "tau": "tau", "about": "x"}
SLOPES = {"vdot_a": "all", "v_a": "all", "q_a": "all"}


def write_geometry(c: Component, s: Symbols) -> dict[str, Matrix]:
    """`phi`, and `G^T eta`."""
    import casadi as ca

    still = {**s, "v": ca.SX(s["D"].shape[0], 1)}
    q = c.formulation.plus(c.model, s["q"], c.wide(s["D"]))
    phi = written_parts(c, still, q).rows.kept(c.positions).phi
    return {"phi": phi, "pull": ca.jtimes(phi, s["D"], s["eta"], True)}


def _balanced(c: Component, s: Symbols) -> tuple[Parts, Matrix, Matrix]:
    """A component's equations after the shift `D`; `r = M vdot + J^T lam - f` and `u = J v - beta`."""
    parts = written_parts(c, s, c.formulation.plus(c.model, s["q"], c.wide(s["D"])))
    rows = parts.rows.kept(c.rows)
    r = c.formulation.inertia_force(parts, c.wide(s["vdot"])) + rows.J.T @ s["lam"] - parts.f
    return parts, c.narrow(r), rows.J @ c.wide(s["v"]) - rows.beta


def write_balance(c: Component, s: Symbols) -> dict[str, Matrix]:
    """`r`, `u`, and the power that enters."""
    parts, r, u = _balanced(c, s)
    return {"r": r, "u": u, "power": entering_power(parts, s["tau"], c.rows, s["lam"])}


def write_matrices(c: Component, s: Symbols) -> dict[str, Matrix]:
    """`S0`, `S`, `J`, `J + (q_a / v_a) du/dD` and `G` of Newton's matrix: see `alpha.step.linearise`."""
    import casadi as ca

    parts, r, u = _balanced(c, s)
    M, J, phi = parts.M, parts.rows.kept(c.rows).J, parts.rows.kept(c.positions).phi
    if c.basis is not None:
        M, J = c.basis.T @ M @ c.basis, J @ c.basis
    S0 = s["vdot_a"] * M - s["v_a"] * ca.jacobian(c.narrow(parts.f), s["v"])
    return {
        "S0": S0,
        "S": S0 + s["q_a"] * ca.jacobian(r, s["D"]),
        "J": J,
        "Ju": J + (s["q_a"] / s["v_a"]) * ca.jacobian(u, s["D"]),
        "G": ca.jacobian(phi, s["D"]),
    }


class WholeMatrices:
    """The same of a mechanism that is one component: from the changes of balance, velocities and positions with `a'`.

    They are `S`, `v_a Ju` and `q_a G` times the change of `a'`, and without the change of positions `S0`, `v_a J`, 0.
    """

    def __init__(self, system: WholeSystem) -> None:
        import casadi as ca

        self.nv, self.m = system.nv, system.m
        s: Symbols = system.symbols({**STEP, **SLOPES, "vector": "v"})
        vector = s.pop("vector")
        parts, r, u = _balanced(system.component, s)
        F = ca.vertcat(r, u, parts.rows.kept(system.component.positions).phi)
        moved = {"D": s["q_a"] * vector, "v": s["v_a"] * vector, "vdot": s["vdot_a"] * vector}
        product = ca.jtimes(F, ca.vertcat(*(s[x] for x in moved)), ca.vertcat(*moved.values()))
        patterns = {x: ca.jacobian_sparsity(F, s[x]) for x in moved}
        faster = patterns["v"] + patterns["vdot"]
        facts = f"alpha {system.layout.key} {system.model.key}"
        self.columns = Columns([*s.values(), system.p, vector], product, [patterns["D"] + faster, faster], facts, LONG)
        self.names = list(s)

    def __call__(self, numbers: Any, **given: Any) -> dict[str, Any]:
        """The matrices at inputs (n,)."""
        n, m, v_a, q_a = self.nv, self.m, given["v_a"], given["q_a"]
        K = self._matrix(given, numbers, 0)
        K0 = self._matrix({**given, "q_a": 0.0}, numbers, 1)
        return {"S": K[:n], "S0": K0[:n], "J": K0[n : n + m] / v_a, "Ju": K[n : n + m] / v_a, "G": K[n + m :] / q_a}

    def _matrix(self, given: dict[str, Any], numbers: Any, which: int) -> Any:
        from scipy.sparse import csc_array

        of = self.columns.patterns[which]
        values = self.columns(*(given[name] for name in self.names), numbers, which=which)
        return csc_array((values, of.row(), of.colind()), shape=of.shape)


@dataclass
class Factors:
    """Factors of Newton's matrix, and the `G` in it."""

    solve: Callable[[np.ndarray], np.ndarray]
    G: Any
    is_whole: bool


class FactorsByLength:
    """The last factors of steps of a few lengths, s."""

    def __init__(self) -> None:
        self.kept: dict[float, Factors] = {}

    def find(self, h: float) -> Factors | None:
        """Those of steps of this length, or else of the last length, which often do."""
        h = _rounded(h)
        return self.kept[h] if h in self.kept else next(reversed(self.kept.values()), None)

    def put(self, h: float, factors: Factors | None) -> None:
        """Keep those last used in a step of length `h`; None forgets all."""
        if factors is None:
            self.kept.clear()
            return
        self.kept.pop(_rounded(h), None)
        self.kept[_rounded(h)] = factors
        if len(self.kept) > LENGTHS:
            del self.kept[next(iter(self.kept))]


def _rounded(h: float) -> float:
    return float(f"{h:.9e}")


@dataclass(frozen=True)
class OneStep:
    """A system at the start of a step, with what stays constant during it."""

    point: AlphaPoint
    h: float
    c: AlphaCoefficients
    tau: np.ndarray
    about: np.ndarray
    numbers: Any


class LargeAlpha:
    """Steps of one system at a time."""

    def __init__(self, system: System) -> None:
        self.system = system
        of = system.sum
        at_position = lambda cls: cls.positions.shape[1] > 0
        ports = {name: STEP[name] for name in ("t", "q", "D", "tau", "about")}
        self.geometry = of(
            "geometry",
            {**ports, "eta": "positions"},
            {"phi": ("positions",), "pull": ("v",)},
            write_geometry,
            at_position,
        )
        self.balance = of("balance", STEP, {"r": ("v",), "u": ("rows",), "power": ("one",)}, write_balance)
        if isinstance(system, WholeSystem):
            self.matrices: Any = WholeMatrices(system)
            return
        matrices = {"S0": "v", "S": "v", "J": "rows", "Ju": "rows", "G": "positions"}
        self.matrices = of(
            "matrices", {**STEP, **SLOPES}, {name: (axis, "v") for name, axis in matrices.items()}, write_matrices
        )

    def begin(
        self, t: float, q: np.ndarray, v: np.ndarray, tau: np.ndarray, about: np.ndarray, numbers: Any
    ) -> AlphaPoint:
        """Start at a consistent state: accelerations from the equations of motion, `a = vdot`."""
        system = self.system
        vdot, lam = system.start(t, q, v, tau, about, numbers)
        none = np.zeros(system.nv)
        power = self.balance(numbers, t=t, q=q, D=none, v=v, vdot=vdot, lam=lam, tau=tau, about=about)["power"]
        return AlphaPoint(t, q, v, vdot, vdot, lam, np.zeros(system.mp), float(power[0]))

    def step(self, s: OneStep, factors: Factors | None) -> tuple[AlphaPoint | None, Factors | None]:
        """The state after a step and the factors last used; no state where Newton's method does not converge."""
        p, h, c = s.point, s.h, s.c
        system = self.system
        whole = system.nv + system.m + system.mp <= WHOLE
        x, before, old, k = predict(c, p), np.inf, factors is not None, 0
        while k < ITERATIONS:
            D = shift(c, p, x.z, h)
            phi, pull = self._geometry(s, D, x.eta)
            v, vdot = rates_after(c, p, x.z - pull, h)
            state = {"t": p.t + h, "q": p.q, "D": D, "v": v, "vdot": vdot, "lam": x.lam, "tau": s.tau, "about": s.about}
            if factors is None:
                factors = self._factors(s, state, whole)
            found = self.balance(s.numbers, **state)
            q_a, v_a, _ = slopes(c, h)
            dz, dlam, deta = self._split(factors.solve(-np.concatenate([found["r"], found["u"] / v_a, phi / q_a])))
            x = NewtonUnknowns(x.z + dz, x.lam + dlam, x.eta + deta)
            speed = _largest(v) + _largest(p.v) + h * _largest(p.a)
            moved = q_a * _largest(dz) / (1 + _largest(p.q) + h * speed)
            size = max(moved, v_a * _largest(dz - factors.G.T @ deta) / (1 + speed))
            if not size <= LARGEST or (
                size > before and (old or not factors.is_whole)
            ):  # begin again, with better ones
                if not old and factors.is_whole:
                    return None, None
                whole |= not old
                x, before, factors, old, k = predict(c, p), np.inf, None, False, 0
                continue
            if size <= (TOLERANCE if k < PATIENCE else ROUGH):
                return self._arrived(s, x, float(found["power"][0])), factors
            if size > SLOW * before:
                factors, old = None, False
            before, k = size, k + 1
        return None, None

    def _geometry(self, s: OneStep, D: np.ndarray, eta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        found = self.geometry(s.numbers, t=s.point.t + s.h, q=s.point.q, D=D, tau=s.tau, about=s.about, eta=eta)
        return found["phi"], found["pull"]

    def _factors(self, s: OneStep, state: dict[str, Any], whole: bool) -> Factors:
        """Factors of Newton's matrix at an iterate, or of its block triangle."""
        from scipy.sparse import block_array

        q_a, v_a, vdot_a = slopes(s.c, s.h)
        found = self.matrices(s.numbers, **state, vdot_a=vdot_a, v_a=v_a, q_a=q_a)
        S0, S, J, Ju, G = (found[name] for name in ("S0", "S", "J", "Ju", "G"))
        if self.system.lent.count_nonzero():
            lent = vdot_a * self.system.lent
            S0, S = S0 + lent, S + lent
        if not self.system.m:
            return Factors(factored(S), G, True)
        held = -small_pivots((J**2) @ (1 / S.diagonal()))
        if not whole:
            first = factored(block_array([[S, J.T], [Ju, held]], format="csc"))
            then = factored(G @ G.T + small_pivots((G**2).sum(axis=1)), definite=True)
            return Factors(partial(self._in_two, first, then, G), G, False)
        K = block_array(
            [
                [S, J.T, -(S0 @ G.T)],
                [Ju, held, -(J @ G.T)],
                [G, None, small_pivots((G**2).sum(axis=1))],
            ],
            format="csc",
        )
        return Factors(factored(K), G, True)

    def _in_two(self, first: Any, then: Any, G: Any, b: np.ndarray) -> np.ndarray:
        """Solve with the block triangle: balance and velocities first, then positions."""
        n = self.system.nv + self.system.m
        x = first(b[:n])
        a = x[: self.system.nv]
        eta = then(b[n:] - G @ a)
        return np.concatenate([a + G.T @ eta, x[self.system.nv :], eta])

    def _split(self, x: np.ndarray) -> list[np.ndarray]:
        return np.split(x, [self.system.nv, self.system.nv + self.system.m])

    def _arrived(self, s: OneStep, x: NewtonUnknowns, power: float) -> AlphaPoint:
        """The state at the end of a step."""
        D = shift(s.c, s.point, x.z, s.h)
        a = x.z - self._geometry(s, D, x.eta)[1]
        v, vdot = rates_after(s.c, s.point, a, s.h)
        return AlphaPoint(s.point.t + s.h, self.system.moved(s.point.q, D), v, vdot, a, x.lam, x.eta, power)


def _largest(x: np.ndarray) -> float:
    return float(np.abs(x).max(initial=0.0))


class LargeAlphaStepper(BatchStepper):
    """Integrates a large mechanism by the generalised-alpha method, one system after the other.

    `rho` is the spectral radius at infinite frequency, from 0 (most damping) to 1 (none).
    """

    names = (
        "t", "q", "v", "vdot", "a", "lam", "eta", "x", "w", "h", "steps", "outcome", "event", "work", "power", "speed",
        "g",
    )  # fmt: skip

    def __init__(
        self, model: Model, formulation: Formulation, tau: np.ndarray, request: Request, rho: float = 0.9
    ) -> None:
        if not model.nv:
            raise InputError(f"model {model.name!r} has no moving joint; there is nothing to integrate")
        if isinstance(request.threads, Place):
            raise InputError(
                f"simulate: model {model.name!r} has {len(model.tree.links)} links, and method 'alpha' integrates so "
                f"many on the CPU; leave out device='{request.threads}'"
            )
        super().__init__(model, tau, request)
        of = large_system if is_sum(formulation) else whole_system
        self.system: System = of(model, formulation)
        self.alpha, self.c = LargeAlpha(self.system), AlphaCoefficients.of(float(rho))
        self.factors: dict[int, FactorsByLength] = {}
        self.event_values = trace_events(model.unbound, self.events) if self.events else None

    def project(
        self, t: np.ndarray, q: np.ndarray, v: np.ndarray, p: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the samples unchanged: each step ends on the constraints. Also return which left one open."""
        found = np.zeros(q.shape[:-1], dtype=bool)
        for at in np.ndindex(found.shape) if self.model.has_rows else ():
            if np.isfinite(q[at]).all():
                numbers = self._numbers(at[0], len(q)) if p is None else self.system.components.at(p[at])
                found[at] = self.system.gap(float(t[at]), q[at], numbers) >= OPENED
        return q, v, found

    def _numbers(self, b: int, B: int) -> Any:
        return (
            self.system.components.at(self._parameters(b, B)[0]) if self.parameters else self.system.components.numbers
        )

    def _parameters(self, b: int, B: int) -> list[np.ndarray]:
        return [np.broadcast_to(p, (B, p.shape[-1]))[b] for p in self.parameters]

    def _first(self, q: np.ndarray, v: np.ndarray) -> States:
        self.factors = {}
        return {"x": q, "w": v, "h": np.full(len(q), self.step)}

    def _evaluated(self) -> States:
        return self._begun(self.s, self.tau, [*self.parameters])

    def _begun(self, s: States, tau: np.ndarray, parameters: list[np.ndarray]) -> States:
        B, rows = len(s["t"]), []
        for b in range(B):
            numbers, x, w = self._numbers(b, B), s["x"][b], s["w"][b]
            q, v = self.system.into(x, w, numbers)
            p = self.alpha.begin(float(s["t"][b]), q, v, np.broadcast_to(tau, (B, self.model.nv))[b], x, numbers)
            g = self._events(p.t, x, w, np.broadcast_to(tau, (B, self.model.nv))[b], self._parameters(b, B))
            rows.append({**{k: getattr(p, k) for k in ("q", "v", "vdot", "a", "lam", "eta", "power")}, "g": g})
        return {name: np.array([row[name] for row in rows], dtype=float) for name in rows[0]}

    def _events(self, t: float, x: np.ndarray, w: np.ndarray, tau: np.ndarray, p: list[np.ndarray]) -> np.ndarray:
        return np.zeros(0) if self.event_values is None else np.array(self.event_values(t, x, w, tau, *p)).ravel()

    def _march(self, s: States, end: np.ndarray) -> States:
        return self._marched(s, end, self.tau, True)

    def _marched(self, s: States, end: np.ndarray, tau: np.ndarray, stops: bool) -> States:
        """Take steps until the times `end` (B,) or until an event."""
        B = len(s["t"])
        s = {name: np.array(value, dtype=float) for name, value in s.items()}
        end, tau = np.broadcast_to(end, (B,)), np.broadcast_to(tau, (B, self.model.nv))
        for b in range(B):
            numbers, p = self._numbers(b, B), self._parameters(b, B)
            while s["t"][b] < end[b] and s["outcome"][b] == Outcome.ARRIVED:
                if self.max_steps is not None and s["steps"][b] >= self.max_steps:
                    s["outcome"][b] = Outcome.TOO_MANY_STEPS
                else:
                    self._step(s, b, float(end[b]), tau[b], numbers, p, stops)
        return s

    def _step(
        self, s: States, b: int, end: float, tau: np.ndarray, numbers: Any, parameters: list[np.ndarray], stops: bool
    ) -> None:
        """Take one step of system b in place; one that crosses an event is not kept."""
        t, left = float(s["t"][b]), end - float(s["t"][b])
        h = left if s["h"][b] * STRETCH >= left else float(s["h"][b])
        x, w, power = s["x"][b], s["w"][b], float(s["power"][b])
        q, v, vdot, a, lam, eta = state = [s[name][b] for name in ("q", "v", "vdot", "a", "lam", "eta")]
        about = self.system.ahead(x, w, h)
        one = OneStep(AlphaPoint(t, q, v, vdot, a, lam, eta, power), h, self.c, tau, about, numbers)
        kept = self.factors.setdefault(b, FactorsByLength())
        new, factors = self.alpha.step(one, kept.find(h))
        kept.put(h, factors)
        if new is None:
            finite = all(np.isfinite(part).all() for part in state)
            s["outcome"][b] = Outcome.NEWTON if finite else Outcome.NOT_FINITE
            return
        x, w = self.system.tree(new.q, new.v, about, numbers)
        new = replace(new, t=end if h == left else new.t)
        g = self._events(new.t, x, w, tau, parameters)
        crossed = changed_sign(s["g"][b][None], g[None], np.array([e.direction for e in self.events]))[0]
        if stops and crossed.any():
            s["outcome"][b], s["event"][b] = Outcome.EVENT, np.flatnonzero(crossed)[0]
            return
        for name in ("t", "q", "v", "vdot", "a", "lam", "eta", "power"):
            s[name][b] = getattr(new, name)
        s["x"][b], s["w"][b], s["g"][b] = x, w, g
        s["work"][b] += (new.t - t) * (power + new.power) / 2
        s["speed"][b] = max(s["speed"][b], float(w @ w))
        s["steps"][b] += 1

    def _with_rates(self, s: States, v: np.ndarray) -> States:
        self.factors = {}  # parameters may have changed too
        return {**s, "w": v}

    def _with_length(self, s: States, h: np.ndarray) -> States:
        return {**s, "h": h, "a": rescaled(s, h)}

    def _stepped(self, start: States, h: np.ndarray, tau: np.ndarray, parameters: list[np.ndarray]) -> States:
        kept, self.parameters = self.parameters, tuple(parameters)
        factors, self.factors = self.factors, {}  # the rows are other systems
        try:
            begun = {**self._with_length(start, h), "outcome": np.zeros(len(h))}
            far = self._marched(begun, start["t"] + h, tau, False)
        finally:
            self.parameters, self.factors = kept, factors
        return far | {"outcome": np.where(far["outcome"] == Outcome.ARRIVED, Outcome.EVENT, far["outcome"])}

    def _tree(self, s: States) -> tuple[np.ndarray, np.ndarray]:
        return s["x"], s["w"]
