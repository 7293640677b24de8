"""The explicit integrators at work: their kernels, and the stepper that calls them for many systems at once.

A step is recorded as one graph if that is small, else in parts, so that the equations of motion are compiled once and
run for every stage.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from time import perf_counter
from typing import Any

import numpy as np

from cardan.integrate.events import Event, keep_side, locate, trace_events
from cardan.integrate.explicit import step as text
from cardan.integrate.explicit.large_trees import large_tree_march
from cardan.integrate.explicit.step import CONTROL, STATE, ExplicitEquations, ExplicitState, Graphs, Step, StepControl
from cardan.integrate.explicit.tableau import Tableau
from cardan.integrate.kernel import MANY_STEPS, Given, integrator_kernel
from cardan.integrate.stepper import Arrival, BatchStepper, Outcome
from cardan.machines.ufunc.kernel import Kernel
from cardan.model.memory import Slot
from cardan.program.march import March
from cardan.program.program import Port
from cardan.structure.kernels import parameter_arguments, tree_kernel
from cardan.structure.projection import project

# Instructions of a whole step past which it is recorded in parts: compiling straight-line code takes more than linear
# time.
UNROLLED = 20_000


@dataclass(frozen=True)
class ExplicitKernels:
    """The kernels of one tableau for one model and its events; each is recorded when first used."""

    motion: ExplicitEquations
    tableau: Tableau
    events: tuple[Event, ...]
    parameters: int
    """Number of free parameters of the model."""

    @cached_property
    def march(self) -> Kernel:
        """Steps until a time: state and `end, rtol, atol, max_step, tau, p, limit` to state."""
        state, data = self._ports(*STATE), self._data_ports(*CONTROL)
        inputs = (*state, *data, Port("limit", ()))
        return self._kernel("march", inputs, state, lambda: self._record(self._controlled_step), MANY_STEPS)

    @cached_property
    def single_step(self) -> Kernel:
        """One step of length `h`, whatever its error: `t, q, v, a, g, h, tau, p, limit` to `t, q, v, a, g`."""
        state, data = self._ports("t", "q", "v", "a", "g"), self._data_ports("h")
        inputs = (*state, *data, Port("limit", ()))
        return self._kernel("single_step", inputs, state, lambda: self._record(self._given_step))

    @cached_property
    def evaluate(self) -> Kernel:
        """Accelerations and values of the events at a state: `t, q, v, tau, p` to `a, g`."""
        inputs = (*self._ports("t", "q", "v"), *self._data_ports())

        def record() -> Any:
            import casadi as ca

            graphs, s, given, data = self._symbols()
            a = s.v * 0 if graphs.loop is not None else graphs.accelerations(s.t, s.q, s.v, given)
            g = [self._events(s.t, s.q, s.v, given)] if self.events else []
            return ca.Function("evaluate", [s.t, s.q, s.v, *data], [a, *g])

        return self._kernel("evaluate", inputs, self._ports("a", "g"), record)

    # ports and symbols

    @property
    def _shapes(self) -> dict[str, tuple[int, ...]]:
        model = self.motion.model
        sizes = {"q": model.nq, "v": model.nv, "a": model.nv, "g": len(self.events)}
        return {name: (sizes[name],) if name in sizes else () for name in STATE}

    def _ports(self, *names: str) -> tuple[Port, ...]:
        """Ports of parts of the state; without events there is none for their values `g`."""
        shapes = self._shapes
        return tuple(Port(name, shapes[name]) for name in names if self.events or name != "g")

    def _parameter_port(self) -> tuple[Port, ...]:
        return (Port("p", (self.parameters,)),) if self.parameters else ()

    def _data_ports(self, *names: str) -> tuple[Port, ...]:
        tau = Port("tau", (self.motion.model.nv,))
        return (*(Port(name, ()) for name in names), tau, *self._parameter_port())

    def _symbols(self) -> tuple[Graphs, ExplicitState, Given, list[Any]]:
        import casadi as ca

        state = ExplicitState(*(ca.SX.sym(name, *(shape or (1,))) for name, shape in self._shapes.items()))
        p = [ca.SX.sym("p", self.parameters)] if self.parameters else []
        given = Given(ca.SX.sym("tau", self.motion.model.nv), p)
        return self._graphs, state, given, [given.tau, *p]

    @cached_property
    def _graphs(self) -> Graphs:
        return self.motion.graphs()

    def _events(self, t: Any, q: Any, v: Any, given: Given) -> Any:
        return trace_events(self.motion.model, self.events)(t, q, v, *given.parameters)

    # the step

    def _record(self, step_of: Any) -> March:
        """A march of steps, in one graph or in parts; `step_of` says how a step begins and ends."""
        import casadi as ca

        graphs, s, given, data = self._symbols()
        tableau, first = self.tableau, int(self.tableau.adaptive)
        if graphs.loop is not None:
            return large_tree_march(graphs, tableau, self.events, controlled=step_of == self._controlled_step)
        state, control, h, finish = step_of(graphs, s, given)
        known = text.first_stage(graphs, s.q, s.v, s.a, given) if first else None
        if graphs.forward.n_instructions() * (tableau.stages - first) <= UNROLLED:
            step = Step(s.t, s.q, s.v, h, [known] if known else [])
            for i in range(first, tableau.stages):
                step.K.append(text.stage(graphs, tableau, step, i, given))
            after, busy = finish(step)
            return March(((ca.Function("step", [*state, *control, *data], [*after, busy]), 1),), len(state))
        kq, kv = ca.SX.sym("kq", s.q.shape[0], tableau.stages), ca.SX.sym("kv", s.v.shape[0], tableau.stages)
        number, size = ca.SX.sym("i"), ca.SX.sym("length")
        step = Step(s.t, s.q, s.v, size, [(kq[:, k], kv[:, k]) for k in range(tableau.stages)])
        inputs = [*state, number, size, kq, kv, *control, *data]
        # set later stages to zero: their weights are zero, but zero times leftover NaN in memory would be NaN
        column = known or (ca.SX.zeros(s.q.shape[0]), ca.SX.zeros(s.v.shape[0]))
        filled = [ca.horzcat(k, ca.SX.zeros(k.shape[0], tableau.stages - 1)) for k in column]
        opening = ca.Function("begin", inputs, [*state, first, h, *filled, 0])
        k = text.stage(graphs, tableau, step, number, given)
        columns = [text.with_column(K, new, number) for new, K in zip(k, (kq, kv), strict=True)]
        middle = ca.Function("stage", inputs, [*state, number + 1, size, *columns, 0])
        after, busy = finish(step)
        closing = ca.Function("finish", inputs, [*after, number, size, kq, kv, busy])
        return March(((opening, 1), (middle, tableau.stages - first), (closing, 1)), len(state), 4)

    def _controlled_step(self, graphs: Graphs, s: ExplicitState, given: Given) -> Any:
        """State, controls, length of the step, and a function that finishes it: accept or retry."""
        import casadi as ca

        control = StepControl(*(ca.SX.sym(name) for name in CONTROL))
        directions = np.array([event.direction for event in self.events])

        def finish(step: Step) -> tuple[list[Any], Any]:
            new = text.result(graphs, self.tableau, step, given)
            g = self._events(step.t + step.h, new.q, new.v, given) if self.events else ca.SX(0, 1)
            after, busy = text.finish(self.tableau, s, control, step, new, g, directions)
            return self._carried(after.columns()), busy

        controls = [getattr(control, name) for name in CONTROL]
        return self._carried(s.columns()), controls, text.step_length(s, control), finish

    def _given_step(self, graphs: Graphs, s: ExplicitState, given: Given) -> Any:
        """The same for a step of given length that is always accepted."""
        import casadi as ca

        def finish(step: Step) -> tuple[list[Any], Any]:
            new = text.result(graphs, self.tableau, step, given)
            a = step.K[-1][1] if self.tableau.adaptive else s.a
            g = [self._events(step.t + step.h, new.q, new.v, given)] if self.events else []
            return [step.t + step.h, new.q, new.v, a, *g], ca.SX(0)

        state = [s.t, s.q, s.v, s.a, *([s.g] if self.events else [])]
        return state, [s.h], s.h, finish

    def _carried(self, columns: Sequence[Any]) -> list[Any]:
        return list(columns) if self.events else list(columns)[:-1]

    def _kernel(
        self, name: str, inputs: tuple[Port, ...], outputs: tuple[Port, ...], record: Any, repeats: int = 1
    ) -> Kernel:
        facts = (self.motion.key, self.tableau.key)
        return integrator_kernel(self.motion.model, name, facts, self.events, inputs, outputs, record, repeats)


_KERNELS: Slot[tuple[str, Any], ExplicitKernels] = Slot("kernels of explicit integrators, by equations and tableau")


def explicit_kernels(motion: ExplicitEquations, tableau: Tableau, events: tuple[Event, ...]) -> ExplicitKernels:
    """The kernels of an integrator; kept with the model unless there are events, which may differ at every call."""
    model = motion.model.unbound  # parameters are an input of the kernels
    size = model.parameters.size if model.parameters else 0

    def make() -> ExplicitKernels:
        return ExplicitKernels(replace(motion, model=model), tableau, events, size)

    return make() if events else _KERNELS.find(model, (motion.key, tableau.key), make)


OPEN = 1e-6  # m or rad: a larger gap before the last iteration means that they did not converge


class ExplicitStepper(BatchStepper):
    """Integrates a model by an explicit method; fills `integrate.stepper.Stepper`.

    Args:
        motion: the equations of motion.
        tableau: coefficients of the method.
        tau: constant drives (B, nv) or (nv,), N m and N.
        step: length of a fixed step, s; for an adaptive method the first step, None to choose it.
        rtol, atol: tolerances of an adaptive method.
        max_step: longest step, s.
        events: the events to look for.
        max_steps: largest number of steps.
        threads: number of threads, None for the default.

    """

    def __init__(
        self,
        motion: ExplicitEquations,
        tableau: Tableau,
        tau: np.ndarray,
        *,
        step: float | None,
        rtol: float = 1e-8,
        atol: float = 1e-10,
        max_step: float = np.inf,
        events: tuple[Event, ...] = (),
        max_steps: int | None = None,
        threads: int | None = None,
    ) -> None:
        self.tableau, self.motion, self.events, self.max_steps = tableau, motion, events, max_steps
        self.crossed: np.ndarray | None = None
        self.parameters = parameter_arguments(motion.model)
        self.kernels = explicit_kernels(motion, tableau, events)
        self.tau, self.step, self.threads = tau, step, threads
        self.control = tuple(np.asarray(x, dtype=float) for x in (rtol, atol, max_step))
        self.march = self.kernels.march
        super().__init__()

    def begin(self, t: float, q: np.ndarray, v: np.ndarray) -> None:
        """Start at a state."""
        B = len(q)
        before = self.s.get("g")
        steps = self.s["steps"] if self.s else np.zeros(B)
        h = self.s["h"] if self.s else np.full(B, 0.0 if self.step is None else self.step)
        flat = {name: np.zeros(B) for name in ("e", "outcome")}
        self.s = {"t": np.full(B, float(t)), "q": np.array(q, dtype=float), "v": np.array(v, dtype=float), "h": h}
        self.s |= {**flat, "steps": steps, "event": np.full(B, -1.0)}
        if self.resting is not None:
            self.s["outcome"][self.resting] = Outcome.RESTING
        self._evaluate()
        if before is not None:
            self.s["g"] = keep_side(before, self.s["g"])
        if self.tableau.adaptive and self.step is None:
            self.s["h"] = self._first_step()

    def _advance(self, t: float) -> Arrival:
        s = self.s
        at_event = s["outcome"] == Outcome.EVENT
        if at_event.any():
            s["outcome"] = np.where(at_event, 0.0, s["outcome"])
            s["event"] = np.full(len(at_event), -1.0)
            self._evaluate()
        if not self.tableau.adaptive:
            assert self.step is not None
            left = t - s["t"]
            s["h"] = left / np.maximum(np.ceil(left / self.step - 1e-6), 1.0)
        self._run(t)
        if self.events and (self.s["outcome"] == Outcome.EVENT).any():
            self._locate()
        s = self.s
        return Arrival(
            s["t"].copy(),
            s["q"].copy(),
            s["v"].copy(),
            s["outcome"].astype(int),
            s["event"].astype(int),
            s["steps"].astype(int),
            crossed=self.crossed,
        )

    def _run(self, t: float) -> None:
        """Call the kernel until every system has arrived, stopped or failed."""
        names = STATE if self.events else STATE[:-1]
        end = np.asarray(float(t))
        while True:
            began = perf_counter()
            state = [self.s[name] for name in names]
            limit = self.limit if self.max_steps is None else min(self.limit, self._steps_left())
            out = self.march(
                *state, end, *self.control, self.tau, *self.parameters, np.asarray(float(limit)), threads=self.threads
            )
            self.s = dict(zip(names, out, strict=True))
            running = (self.s["t"] < t) & (self.s["outcome"] == 0)
            if self.max_steps is not None and running.any():
                spent = running & (self.s["steps"] >= self.max_steps)
                self.s["outcome"] = np.where(spent, Outcome.TOO_MANY_STEPS, self.s["outcome"])
                running &= ~spent
            if not running.any():
                return
            self._adjust_limit(perf_counter() - began)

    def _steps_left(self) -> int:
        """How many steps every running system may still take."""
        assert self.max_steps is not None
        return max(int(self.max_steps - self.s["steps"][self.s["outcome"] == 0].max(initial=0)), 1)

    def _evaluate(self) -> None:
        """Accelerations and values of the events at the current state."""
        s = self.s
        found: Any = self.kernels.evaluate(s["t"], s["q"], s["v"], self.tau, *self.parameters)
        a, *g = found if self.events else (found,)
        if self.motion.looped:
            a = tree_kernel(self.motion.model, "forward_dynamics")(s["q"], s["v"], self.tau)
        s["a"] = np.array(a)
        if g:
            s["g"] = np.array(g[0])

    def _first_step(self) -> np.ndarray:
        """A cautious length (B,) of the first step: a hundredth of the state divided by its rate of change."""
        rtol, atol, max_step = self.control
        s = self.s
        y = np.concatenate([s["q"], s["v"]], axis=1)
        rate = np.concatenate([s["v"], s["a"]], axis=1)
        d0 = np.sqrt(np.mean((y / (atol + rtol * np.abs(y))) ** 2, axis=1))
        scale = atol + rtol * np.maximum(np.abs(rate), 1.0)
        d1 = np.sqrt(np.mean((rate / scale) ** 2, axis=1))
        h = np.where((d0 < 1e-5) | (d1 < 1e-5), 1e-6, 0.01 * d0 / np.maximum(d1, 1e-300))
        return np.minimum(np.clip(np.nan_to_num(h, nan=1e-6), 1e-6, 0.1), max_step)

    def project(self, t: np.ndarray, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Project samples at times (B, n) by Newton's method, all at once; also return which (B, n) stayed open."""
        if not self.motion.projects:
            return q, v, np.zeros(t.shape, dtype=bool)
        parameters = [p[..., None, :] for p in self.parameters]
        q, v, gap = project(self.motion.model, q, v, t, parameters=parameters, threads=self.threads)
        return q, v, gap >= OPEN

    def _locate(self) -> None:
        """Locate the events inside the steps that crossed them; each system ends just past its earliest one."""
        s = self.s
        rows = np.flatnonzero(s["outcome"] == Outcome.EVENT)
        directions = np.array([event.direction for event in self.events])
        start = {name: s[name][rows] for name in ("t", "q", "v", "a", "g")}
        tau = np.broadcast_to(self.tau, (len(s["t"]), self.motion.model.nv))[rows]
        parameters = [np.broadcast_to(p, (len(s["t"]), p.shape[-1]))[rows] for p in self.parameters]
        single_step, one = self.kernels.single_step, np.asarray(1.0)

        def at(h: np.ndarray) -> dict[str, np.ndarray]:
            out = single_step(*start.values(), h, tau, *parameters, one)
            return dict(zip(start, out, strict=True))

        far, crossed = locate(at, start, s["h"][rows], directions)
        self.crossed = np.zeros((len(s["t"]), len(directions)), dtype=bool)
        self.crossed[rows] = crossed
        for name, value in {**far, "event": np.argmax(crossed, axis=1)}.items():
            s[name] = s[name].copy()
            s[name][rows] = value
