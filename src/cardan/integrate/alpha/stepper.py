"""The generalised-alpha method at work: its kernels, and the stepper that calls them for many systems at once.

One pass of the march is one iteration of Newton's method; if it has converged, the step ends there. Lanes may be at
different iterations and times; none waits for another.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cardan.errors import InputError
from cardan.formulation.coordinates import into_own, out_of_own
from cardan.formulation.formulation import Formulation
from cardan.formulation.state_rates import state_rates
from cardan.formulation.tree import PLUS
from cardan.integrate.alpha import step as text
from cardan.integrate.alpha.step import CONTROL, AlphaEquations, AlphaPoint, AlphaState, NewtonEquations, NewtonUnknowns
from cardan.integrate.integrators import Request
from cardan.integrate.kernel import MANY_STEPS, Given, IntegratorKernels, Layout, layout_of
from cardan.integrate.stepper import BatchStepper, Outcome, States
from cardan.lazy import cached_property
from cardan.machines.ufunc.kernel import Kernel
from cardan.model.model import Model
from cardan.program.graph import Graph
from cardan.program.march import March
from cardan.program.program import Port
from cardan.program.values import Writer
from cardan.structure.assemble import opened
from cardan.structure.formulation import formulation_of
from cardan.structure.kernels import function_of, rates_facts

UNROLLED = 3_000  # instructions of Newton's equations past which they are solved in a separate part

STARTED = ("q", "v", "vdot", "a", "multipliers", "power", "g")  # the parts of the state that `begin` computes


@dataclass(frozen=True)
class AlphaKernels(IntegratorKernels):
    """The kernels of the generalised-alpha method for one model, formulation and events."""

    layout: Layout

    @property
    def facts(self) -> tuple[Any, ...]:
        """The method and the unknowns."""
        return "generalised alpha, angles ahead", self.layout.key, self.layout.lent, rates_facts(self.model.unbound)

    @property
    def way(self) -> tuple[Formulation, tuple[int, ...]]:
        """The formulation, and the constraint rows that it keeps."""
        return self.layout.formulation, self.layout.rows

    @property
    def places(self) -> tuple[int, ...]:
        """Places in `p` of the parameters that are integrated with the motion."""
        return self.model.parameters.states

    @property
    def n(self) -> int:
        """Number of rates, of the formulation and of states."""
        return self.layout.nv + len(self.places)

    @property
    def is_tree(self) -> bool:
        """Whether the formulation uses the tree's coordinates."""
        return self.layout.formulation.in_tree

    @cached_property
    def sizes(self) -> dict[str, int | None]:
        """Size of each port of the state; None for a scalar."""
        model, n, m = self.model, self.n, sum(self.layout.multipliers)
        sizes: dict[str, int | None] = {"t": None, "q": self.layout.nq, "v": n, "vdot": n, "a": n, "multipliers": m}
        if not self.is_tree:
            sizes |= {"x": model.nq, "w": model.nv}
        sizes |= {
            "iterate": n + m,
            **{name: None for name in ("h", "k", "steps", "outcome", "event", "work", "power", "speed")},
        }
        sizes |= {"g": len(self.events)}
        return {name: size for name, size in sizes.items() if size != 0}

    def march(self) -> Kernel:
        """Iterations and steps until a time: state and `end, rho, stop_at_events, tau, p, limit` to state."""
        state = tuple(self._port(name) for name in self.sizes)
        inputs = (*state, *self._data_ports(*CONTROL), Port("limit", ()))
        return self._kernel("march", inputs, state, self.recorded, MANY_STEPS)

    def begin(self) -> Kernel:
        """State at a start: `t, q, v, tau, p` of the tree to `q, v, vdot, a, multipliers, power, g`."""
        inputs = (Port("t", ()), Port("q", (self.model.nq,)), Port("v", (self.model.nv,)), *self._data_ports())
        outputs = tuple(self._port(name) for name in STARTED if name in self.sizes)
        return self._kernel("begin", inputs, outputs, self._record_begin)

    def _port(self, name: str) -> Port:
        size = self.sizes[name]
        return Port(name, () if size is None else (size,))

    # graphs

    def _record_begin(self) -> Any:
        import casadi as ca

        t, x, w = ca.SX.sym("t"), ca.SX.sym("q", self.model.nq), ca.SX.sym("v", self.model.nv)
        given, data = self._given()
        q, v = x, w
        if not self.is_tree:
            q, v = function_of(self.model, into_own(self.model, self.layout.formulation))(x, w, *given.parameters)
        first = function_of(self.model, text.first_accelerations(self.model, self.layout))
        vdot, lam, power, y = map(ca.densify, first(t, x, w, *data))
        if self.places:
            p = given.parameters[0]
            read = [y] if y.numel() else []
            xdot = function_of(self.model, state_rates(self.model))(x, w, t, *read, *given.parameters)
            v, vdot = ca.vertcat(v, *(p[k] for k in self.places)), ca.vertcat(vdot, ca.densify(xdot))
        eta = ca.SX.zeros(self.layout.multipliers[1], 1)
        values: dict[str, Any] = {
            "q": q,
            "v": v,
            "vdot": vdot,
            "a": vdot,
            "multipliers": ca.vertcat(lam, eta),
            "power": power,
        }
        values["g"] = self._events(t, x, w, given)
        return ca.Function("begin", [t, x, w, *data], [values[name] for name in STARTED if name in self.sizes])

    def recorded(self) -> March:
        """The march as one graph, or as three if they are long."""
        import casadi as ca

        symbols = {name: ca.SX.sym(name, size or 1) for name, size in self.sizes.items()}
        control = text.AlphaControl(*(ca.SX.sym(name) for name in CONTROL))
        s, c = self._state(symbols), text.AlphaCoefficients.of(control.rho)
        h = text.step_length(s, control)
        equations, (given, data) = AlphaEquations.record(self.model, self.layout), self._given()
        if not self.is_tree:  # measured angles are taken near where the step leads: it may be longer than half a turn
            ahead = function_of(self.model, PLUS)(s.x, h * s.w, *given.parameters)
            given = replace(given, about=(ahead,))
        x = text.iterate_or_guess(s, text.predict(c, s.point))
        linear = text.linearise(equations, c, s.point, x, h, given)
        state, controls = list(symbols.values()), [*(getattr(control, name) for name in CONTROL), *data]

        def finish(linear: NewtonEquations, correction: Any) -> list[Any]:
            found = text.correct(equations, c, s.point, x, h, linear, correction, given)
            new = found[1]
            v, states = ca.vertsplit(new.v, [0, self.layout.nv, self.n])
            tree = (new.q, v) if self.is_tree else self._tree(new.q, v, given.about[0], given)
            directions = np.array([event.direction for event in self.events])
            g = self._events(new.t, tree[0], tree[1], given.with_states(states, self.places))
            after, busy = text.finish_iteration(s, control, found, tree, g, directions)
            return [*self._columns(after), busy]

        values = list(vars(linear).values())
        first = ca.Function("linearise", [*state, *controls], values)
        if first.n_instructions() <= UNROLLED:
            done = finish(linear, text.solver(linear.K, self.n)(linear.b))
            return March(((ca.Function("iteration", [*state, *controls], ca.cse(done)), 1),), len(state))
        # the first part stores the nonzeros of Newton's equations in memory, but for constants; the second solves them,
        # and the third takes the step
        entries = [value.nonzeros() for value in values]
        stored = [[e for e in row if not e.is_constant()] for row in entries]
        kept = [ca.SX.sym("kept", len(row)) for row in stored]
        correction = ca.SX.sym("correction", linear.K.shape[0])
        inputs, scratch = [*state, *kept, correction, *controls], [*kept, correction]
        filled = [ca.vertcat(*row) for row in stored]
        held = NewtonEquations(*(_from_memory(*each) for each in zip(values, entries, kept, strict=True)))
        opening = ca.Function("linearise", inputs, [*state, *filled, correction, 0])
        done = finish(held, correction)
        closing = ca.Function("correct", inputs, [*done[:-1], *scratch, done[-1]])
        own = [*state, *scratch]
        solving = self._solving(held, len(state), [x.numel() for x in inputs], [x.numel() for x in own])
        return March(((opening, 1), (solving, 1), (closing, 1)), len(state), len(scratch))

    def _solving(self, held: NewtonEquations, first: int, inputs: list[int], own: list[int]) -> Graph:
        """The part that solves Newton's equations, which are stored from port `first` on, for the last port."""
        import casadi as ca

        writer = Writer(inputs, [*own, 1])
        known: dict[int, Any] = {}
        for port, value in enumerate(vars(held).values(), first):
            symbols = (e for e in value.nonzeros() if not e.is_constant())
            known |= {e.element_hash(): writer.input(port, k) for k, e in enumerate(symbols)}
        b = text.values_of(ca.densify(held.b), known)
        for k, value in enumerate(text.solved_values(held.K, self.n, known, b)):
            writer.output(len(own) - 1, k, value)
        return writer.graph

    def _tree(self, q: Any, v: Any, about: Any, given: Given) -> Any:
        """`q` and `v` of the tree."""
        own = out_of_own(self.model, self.layout.formulation)
        return function_of(self.model, own)(q, v, about, *given.parameters)

    def _state(self, symbols: dict[str, Any]) -> AlphaState:
        import casadi as ca

        n, (m, mp), nothing = self.n, self.layout.multipliers, ca.SX(0, 1)
        lam, eta = ca.vertsplit(symbols.get("multipliers", nothing), [0, m, m + mp])
        t, q, v, vdot, a = (symbols.get(name, nothing) for name in ("t", "q", "v", "vdot", "a"))
        point = AlphaPoint(t, q, v, vdot, a, lam, eta, symbols["power"])
        iterate = NewtonUnknowns(*ca.vertsplit(symbols.get("iterate", nothing), [0, n, n + m, n + m + mp]))
        x, w = (symbols.get("x", point.q), symbols.get("w", point.v[: self.layout.nv]))
        names = ("h", "k", "steps", "outcome", "event", "work", "speed", "g")
        rest = (symbols.get(name, nothing) for name in names)
        return AlphaState(point, x, w, iterate, *rest)

    def _columns(self, s: AlphaState) -> list[Any]:
        import casadi as ca

        p = s.point
        values = {"t": p.t, "q": p.q, "v": p.v, "vdot": p.vdot, "a": p.a, "multipliers": ca.vertcat(p.lam, p.eta)}
        values |= {"iterate": ca.vertcat(s.iterate.z, s.iterate.lam, s.iterate.eta)}
        values["power"] = p.power
        names = ("x", "w", "h", "k", "steps", "outcome", "event", "work", "speed", "g")
        values |= {name: getattr(s, name) for name in names}
        return [values[name] for name in self.sizes]


def _from_memory(value: Any, entries: list[Any], memory: Any) -> Any:
    """A matrix whose nonzeros, but for constants, are read from memory."""
    import casadi as ca

    read = iter(memory.nonzeros())
    return ca.SX(value.sparsity(), ca.vertcat(*(e if e.is_constant() else next(read) for e in entries)))


class AlphaStepper(BatchStepper):
    """Integrates a model by the generalised-alpha method, in any formulation.

    `rho` is the spectral radius at infinite frequency, from 0 (most damping) to 1 (none). Steps have the length
    that `request` gives.
    """

    def __init__(
        self, model: Model, formulation: str | Formulation, tau: np.ndarray, request: Request, rho: float = 0.9
    ) -> None:
        if not model.nv:
            raise InputError(f"model {model.name!r} has no moving joint; there is nothing to integrate")
        super().__init__(model, tau, request)
        self.rho = np.asarray(float(rho))
        layout = layout_of(model, formulation_of(model, formulation))
        self.kernels = AlphaKernels(model, self.events, sum(p.shape[-1] for p in self.parameters), layout)
        self.march, self.names = self.kernels.march(), tuple(self.kernels.sizes)

    def project(
        self, t: np.ndarray, q: np.ndarray, v: np.ndarray, p: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the samples unchanged: each step ends on the constraints. Also return which left one open."""
        return q, v, opened(self.model, q, t, p)

    def _first(self, q: np.ndarray, v: np.ndarray) -> States:
        iterate = np.zeros((len(q), self.kernels.sizes.get("iterate") or 0))
        found = {"x": q, "w": v, "h": np.full(len(q), self.step), "k": np.zeros(len(q)), "iterate": iterate}
        if self.states:
            found["v"] = np.hstack([np.zeros((len(q), self.kernels.layout.nv)), self._first_states(len(q))])
        return found

    def _evaluated(self) -> States:
        names = [name for name in STARTED if name in self.kernels.sizes]
        found: Any = self.kernels.begin()(self.s["t"], *self._tree(self.s), self.tau, *self.parameters_of(self.s))
        values = found if isinstance(found, tuple) else (found,)
        return {name: np.array(value) for name, value in zip(names, values, strict=True)}

    def _march(self, s: States, end: np.ndarray) -> States:
        return self._run(s, end, self.rho, np.asarray(1.0), self.tau, *self.parameters)

    def _with_length(self, s: States, h: np.ndarray) -> States:
        return {**s, "h": h, "a": text.rescaled(s, h)}

    def _stepped(self, start: States, h: np.ndarray, tau: np.ndarray, parameters: list[np.ndarray]) -> States:
        begun = {**self._with_length(start, h), "outcome": np.zeros(len(h))}
        far = self._run(begun, start["t"] + h, self.rho, np.asarray(0.0), tau, *parameters)
        return far | {"outcome": np.where(far["outcome"] == Outcome.ARRIVED, Outcome.EVENT, far["outcome"])}

    def _with_rates(self, s: States, v: np.ndarray) -> States:
        whole = np.hstack([v, self._states(s)]) if self.states else v
        return {**s, "w": v, **({"v": whole} if self.kernels.is_tree else {})}

    def _states(self, s: States) -> np.ndarray:
        return s["v"][:, self.kernels.layout.nv :]

    def _with_states(self, s: States, x: np.ndarray) -> States:
        return {**s, "v": np.hstack([s["v"][:, : self.kernels.layout.nv], x])}

    def _tree(self, s: States) -> tuple[np.ndarray, np.ndarray]:
        at_tree = self.kernels.is_tree and "q" in s
        return (s["q"], s["v"][:, : self.kernels.layout.nv]) if at_tree else (s["x"], s["w"])
