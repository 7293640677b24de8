"""The stepper of the generalised-alpha method: its kernels, and marches of many systems at once.

One pass of the march is one iteration of Newton's method, followed, where it has converged, by the end of the step.
Lanes are at different iterations and times; none waits for another's step.
"""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np

from cardan.errors import InputError
from cardan.formulation import dae, native
from cardan.integrate import alpha
from cardan.integrate.alpha import Coefficients, Control, Equations, Layout, Linear, Point, State, Unknown
from cardan.integrate.crossing import locate
from cardan.integrate.events import Event, trace_events
from cardan.integrate.independence import generic_configurations, pivots, scaled, usual
from cardan.integrate.marching import LONGEST_CALL
from cardan.integrate.motion import Loads
from cardan.integrate.stepper import Arrival, Outcome
from cardan.integrate.steps import compiled
from cardan.kernels.evaluate import function_of, parameter_arguments, symbolic
from cardan.kernels.kernel import Kernel
from cardan.kernels.march import March
from cardan.kernels.program import Port
from cardan.model.model import Model

LENT = 1e-3  # of the smallest inertia there is
UNROLLED = 3_000  # instructions of Newton's equations past which solving them is a part of its own
NONE = 1e-9  # of a coordinate's own inertia: less, in some direction, is none


@dataclass(frozen=True)
class Recipe:
    """All that the kernels depend on."""

    model: Model
    layout: Layout
    events: tuple[Event, ...]
    parameters: int
    """How many free parameters the model has."""

    @property
    def is_tree(self) -> bool:
        """Whether the formulation has the tree's own coordinates."""
        return self.layout.key in native.TREE

    @property
    def sizes(self) -> dict[str, int | None]:
        """Numbers in each port of the state; None for a scalar."""
        model, n, m = self.model, self.layout.nv, self.layout.m
        sizes: dict[str, int | None] = {"t": None, "q": self.layout.nq, "v": n, "vdot": n, "a": n, "multipliers": 2 * m}
        if not self.is_tree:
            sizes |= {"x": model.nq, "w": model.nv}
        sizes |= {"iterate": n + 2 * m, **{name: None for name in ("h", "k", "steps", "outcome", "event")}}
        sizes |= {"g": len(self.events)}
        return {name: size for name, size in sizes.items() if size != 0}

    def march(self) -> Kernel:
        """Iterations and steps until a time: state and `end, rho, heed, tau, p, limit` to state."""
        state = tuple(self._port(name) for name in self.sizes)
        data = (*(Port(name, ()) for name in ("end", "rho", "heed")), *self._data_ports(), Port("limit", ()))
        return self._compiled("march", (*state, *data), state, self.recorded)

    def begin(self) -> Kernel:
        """State at a start: `t, q, v, tau, p` of the tree to `q, v, vdot, a, multipliers, g`."""
        inputs = (Port("t", ()), Port("q", (self.model.nq,)), Port("v", (self.model.nv,)), *self._data_ports())
        outputs = tuple(self._port(name) for name in STARTED if name in self.sizes)
        return self._compiled("begin", inputs, outputs, self._record_begin)

    def _port(self, name: str) -> Port:
        size = self.sizes[name]
        return Port(name, () if size is None else (size,))

    def _data_ports(self) -> tuple[Port, ...]:
        return Port("tau", (self.model.nv,)), *((Port("p", (self.parameters,)),) if self.parameters else ())

    def _compiled(self, name: str, inputs: tuple[Port, ...], outputs: tuple[Port, ...], record: Any) -> Kernel:
        return compiled(self.model, name, ("alpha", self.layout), self.events, inputs, outputs, record)

    # graphs

    def _record_begin(self) -> Any:
        import casadi as ca

        equations, loads, data = self._equations()
        t, x, w = ca.SX.sym("t"), ca.SX.sym("q", self.model.nq), ca.SX.sym("v", self.model.nv)
        q, v = x, w
        if not self.is_tree:
            q, v = dae.into(self.model, self.layout.key).graph(symbolic(self.model)[0], {"q": x, "v": w})
            if self.parameters:
                own = ca.Function("into", [x, w, symbolic(self.model)[1]], [q, v])
                q, v = own(x, w, *loads.parameters)
        p = alpha.begin(equations, t, q, v, loads)
        values = {"q": p.q, "v": p.v, "vdot": p.vdot, "a": p.a, "multipliers": ca.vertcat(p.lam, p.eta)}
        values["g"] = self._events(t, x, w)
        return ca.Function("begin", [t, x, w, *data], [values[name] for name in STARTED if name in self.sizes])

    def recorded(self) -> March:
        """The march as graphs: one, or two where they are long."""
        import casadi as ca

        equations, loads, data = self._equations()
        symbols = {name: ca.SX.sym(name, size or 1) for name, size in self.sizes.items()}
        control = Control(*(ca.SX.sym(name) for name in ("end", "rho", "heed")))
        s, c = self._state(symbols), Coefficients.of(control.rho)
        h = alpha.length(s, control)
        x = alpha.first(s, alpha.predict(c, s.point))
        linear = alpha.linearise(equations, c, s.point, x, h, loads)
        state, controls = list(symbols.values()), [control.end, control.rho, control.heed, *data]

        def finish(linear: Linear) -> list[Any]:
            found = alpha.correct(equations, c, s.point, x, h, linear, loads)
            new = found[1]
            tree = (new.q, new.v) if self.is_tree else self._tree(new.q, new.v, s.x, loads)
            directions = np.array([event.direction for event in self.events])
            after, busy = alpha.commit(s, control, found, tree, self._events(new.t, *tree), directions)
            return [*self._columns(after), busy]

        values = list(vars(linear).values())
        first = ca.Function("linearise", [*state, *controls], ca.cse(values))
        if first.n_instructions() <= UNROLLED:
            return March(((ca.Function("iteration", [*state, *controls], ca.cse(finish(linear))), 1),), len(state))
        # the equations' values wait in memory, without their zeros, for the part that solves them
        kept = [ca.SX.sym("kept", value.nnz()) for value in values]
        inputs = [*state, *kept, *controls]
        filled = [ca.vertcat(*value.nonzeros()) for value in ca.cse(values)]
        held = Linear(*(ca.SX(value.sparsity(), memory) for value, memory in zip(values, kept, strict=True)))
        opening = ca.Function("linearise", inputs, [*state, *filled, 0])
        done = ca.cse(finish(held))
        closing = ca.Function("correct", inputs, [*done[:-1], *kept, done[-1]])
        return March(((opening, 1), (closing, 1)), len(state), len(kept))

    def _equations(self) -> tuple[Equations, Loads, list[Any]]:
        import casadi as ca

        p = [ca.SX.sym("p", self.parameters)] if self.parameters else []
        loads = Loads(ca.SX.sym("tau", self.model.nv), p)
        return Equations.record(self.model, self.layout), loads, [loads.tau, *p]

    def _tree(self, q: Any, v: Any, about: Any, loads: Loads) -> Any:
        """`q` and `v` of the tree."""
        return function_of(self.model, dae.out_of(self.model, self.layout.key))(q, v, about, *loads.parameters)

    def _events(self, t: Any, x: Any, w: Any) -> Any:
        import casadi as ca

        return trace_events(self.model, self.events)(t, x, w) if self.events else ca.SX(0, 1)

    def _state(self, symbols: dict[str, Any]) -> State:
        import casadi as ca

        n, m, nothing = self.layout.nv, self.layout.m, ca.SX(0, 1)
        lam, eta = ca.vertsplit(symbols.get("multipliers", nothing), [0, m, 2 * m])
        point = Point(*(symbols.get(name, nothing) for name in ("t", "q", "v", "vdot", "a")), lam, eta)
        iterate = Unknown(*ca.vertsplit(symbols.get("iterate", nothing), [0, n, n + m, n + 2 * m]))
        x, w = (symbols.get("x", point.q), symbols.get("w", point.v))
        rest = (symbols.get(name, nothing) for name in ("h", "k", "steps", "outcome", "event", "g"))
        return State(point, x, w, iterate, *rest)

    def _columns(self, s: State) -> list[Any]:
        import casadi as ca

        p = s.point
        values = {"t": p.t, "q": p.q, "v": p.v, "vdot": p.vdot, "a": p.a, "multipliers": ca.vertcat(p.lam, p.eta)}
        values |= {"iterate": ca.vertcat(s.iterate.z, s.iterate.lam, s.iterate.eta)}
        values |= {name: getattr(s, name) for name in ("x", "w", "h", "k", "steps", "outcome", "event", "g")}
        return [values[name] for name in self.sizes]


STARTED = ("q", "v", "vdot", "a", "multipliers", "g")


class Alpha:
    """Integrates a model by the generalised-alpha method, in any formulation; fills `integrate.stepper.Stepper`.

    Args:
        model: the mechanism.
        key: formulation, as `native.formulation_key` names it.
        tau: constant drives (B, nv) or (nv,), N m and N.
        step: length of a step, s; between two stops all steps are equal and at most this long.
        rho: spectral radius at infinity, from 0 (fast vibrations vanish in a step) to 1 (nothing is damped).
        events: what to look for.
        most: largest number of steps.
        threads: how many, None for the default.

    """

    def __init__(
        self,
        model: Model,
        key: str,
        tau: np.ndarray,
        *,
        step: float,
        rho: float = 0.9,
        events: tuple[Event, ...] = (),
        threads: int | None = None,
        most: int | None = None,
    ) -> None:
        if not 0 <= rho <= 1:
            raise InputError(f"rho must be between 0 (fast vibrations vanish) and 1 (none is damped), got {rho!r}")
        if not 0 < step < np.inf:
            raise InputError(f"step must be a positive time in s, got {step!r}")
        self.model, self.tau, self.step, self.rho = model, tau, step, np.asarray(float(rho))
        self.events, self.threads, self.most = events, threads, most
        self.parameters = parameter_arguments(model)
        self.recipe = Recipe(model, layout_of(model, key), events, sum(p.shape[-1] for p in self.parameters))
        self.march = self.recipe.march()
        self.names = tuple(self.recipe.sizes)
        self.limit = 64
        self.s: dict[str, np.ndarray] = {}
        self.resting: np.ndarray | None = None

    def begin(self, t: float, q: np.ndarray, v: np.ndarray) -> None:
        """Start at a state."""
        B = len(q)
        steps = self.s["steps"] if self.s else np.zeros(B)
        x, w = np.array(q, dtype=float), np.array(v, dtype=float)
        self.s = {"t": np.full(B, float(t)), "x": x, "w": w, "h": np.full(B, self.step), "steps": steps}
        self.s |= {"k": np.zeros(B), "outcome": np.zeros(B), "event": np.full(B, -1.0)}
        self.s |= {"iterate": np.zeros((B, self.recipe.sizes.get("iterate") or 0))}
        if self.resting is not None:
            self.s["outcome"][self.resting] = Outcome.RESTING
        self.s |= self._started()

    def rest(self, systems: np.ndarray) -> None:
        """Leave some systems, a mask (B,), where they are."""
        self.resting = systems if self.resting is None else self.resting | systems
        self.s["outcome"] = np.where(systems, Outcome.RESTING, self.s["outcome"])

    def advance(self, t: float) -> Arrival:
        """Go on to a time."""
        with np.errstate(all="ignore"):  # what is not a number is an outcome, not a warning
            return self._advance(t)

    def _advance(self, t: float) -> Arrival:
        s = self.s
        at_event = s["outcome"] == Outcome.EVENT
        if at_event.any():  # the step that ended there may have been too short to tell accelerations
            s |= {name: np.where(_like(at_event, new), new, s[name]) for name, new in self._started().items()}
            s["outcome"] = np.where(at_event, 0.0, s["outcome"])
            s["event"] = np.full(len(at_event), -1.0)
        left = t - s["t"]
        s["h"] = left / np.maximum(np.ceil(left / self.step - 1e-6), 1.0)
        self.s = self._run(s, np.full(len(left), float(t)), True, self.tau, self.parameters)
        if (self.s["outcome"] == Outcome.EVENT).any():
            self._locate()
        s = self.s
        x, w = self._tree(s)
        numbers = (s[name].astype(int) for name in ("outcome", "event", "steps"))
        return Arrival(s["t"].copy(), x.copy(), w.copy(), *numbers)

    def _tree(self, s: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """Coordinates and rates of the tree."""
        return (s["q"], s["v"]) if self.recipe.is_tree and "q" in s else (s["x"], s["w"])

    def _started(self) -> dict[str, np.ndarray]:
        """What a march needs at the states there are."""
        s = self.s
        found: Any = self.recipe.begin()(s["t"], *self._tree(s), self.tau, *self.parameters)
        names = [name for name in STARTED if name in self.recipe.sizes]
        values = found if isinstance(found, tuple) else (found,)
        return {name: np.array(value) for name, value in zip(names, values, strict=True)}

    def _run(
        self, s: dict[str, np.ndarray], end: np.ndarray, heed: bool, tau: np.ndarray, parameters: Any
    ) -> dict[str, np.ndarray]:
        """Call the kernel until every system has arrived, stopped or failed."""
        data = (end, self.rho, np.asarray(float(heed)), tau, *parameters)
        while True:
            began = perf_counter()
            out = self.march(
                *(s[name] for name in self.names), *data, np.asarray(float(self.limit)), threads=self.threads
            )
            s = {**s, **dict(zip(self.names, out, strict=True))}
            going = (s["t"] < end) & (s["outcome"] == Outcome.ARRIVED)
            if self.most is not None:
                s["outcome"] = np.where(going & (s["steps"] >= self.most), Outcome.STEPS, s["outcome"])
                going &= s["outcome"] == Outcome.ARRIVED
            if not going.any():
                return s
            seconds = perf_counter() - began
            if seconds < LONGEST_CALL / 2:
                self.limit *= 2
            elif seconds > LONGEST_CALL:
                self.limit = max(self.limit // 2, 1)

    def _locate(self) -> None:
        """Find the events inside the steps that met them; each system ends just past its earliest one."""
        s, B = self.s, len(self.s["t"])
        rows = np.flatnonzero(s["outcome"] == Outcome.EVENT)
        start = {name: s[name][rows] for name in self.names} | {"outcome": np.zeros(len(rows))}
        tau = np.broadcast_to(self.tau, (B, self.model.nv))[rows]
        parameters = [np.broadcast_to(p, (B, p.shape[-1]))[rows] for p in self.parameters]

        def at(h: np.ndarray) -> dict[str, np.ndarray]:
            return self._run({**start, "h": h}, start["t"] + h, False, tau, parameters)

        directions = np.array([event.direction for event in self.events])
        far, which = locate(at, start, s["h"][rows], directions)
        failed = far["outcome"] != Outcome.ARRIVED
        far |= {"outcome": np.where(failed, far["outcome"], Outcome.EVENT), "event": np.where(failed, -1, which)}
        for name, value in far.items():
            s[name] = s[name].copy()
            s[name][rows] = value


def layout_of(model: Model, key: str) -> Layout:
    """Rows of `J` and of `phi` that are independent where nothing is special, and what inertia to lend there."""
    place = ("alpha", key)
    kernels = model.unbound.kernels
    if place not in kernels:
        kernels[place] = _layout_of(model, key)
    layout: Layout = kernels[place]
    return layout


def _layout_of(model: Model, key: str) -> Layout:
    state = function_of(model, dae.state(model, key))
    into = None if key in native.TREE else function_of(model, dae.into(model, key))
    nominal = [model.parameters.nominal] if model.parameters else []
    still, found, inertias = np.zeros(model.nv), [], []
    for q in generic_configurations(model):
        own = (q, still) if into is None else into(q, still, *nominal)
        M, _, J, _, _, G, _, N = (np.array(x) for x in state(0.0, *own, still, *nominal))
        found.append((pivots(scaled(J)), pivots(scaled(G @ N))) if len(J) else ([], []))
        inertias.append(M)
    rank = usual([len(rows) for rows, _ in found])
    rows, places = next(pair for pair in found if len(pair[0]) == rank)
    lent = np.max([_lent(M) for M in inertias], axis=0, initial=0.0)
    return Layout(key, *native.sizes(model, key), tuple(sorted(rows)), tuple(sorted(places)), tuple(lent.tolist()))


def _lent(M: np.ndarray) -> np.ndarray:
    """What to add to the diagonal of a mass matrix (n, n) along what has no inertia; zero (n,) where it has an inverse."""
    own = np.diag(M)
    real = own > NONE * NONE * own.max(initial=0.0)
    size = np.where(real, np.sqrt(np.where(real, own, 1.0)), 1.0)
    values, vectors = np.linalg.eigh(np.where(np.outer(real, real), M / np.outer(size, size), 0.0))
    empty = np.abs(vectors[:, values < NONE]).max(axis=1, initial=0.0) > NONE
    return np.where(empty, LENT * own[real].min(initial=np.inf), 0.0)


def _like(mask: np.ndarray, array: np.ndarray) -> np.ndarray:
    return mask.reshape(-1, *([1] * (array.ndim - 1)))
