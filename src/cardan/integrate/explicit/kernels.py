"""The kernels of an explicit integrator: many steps in one call, one step of a given length, and a look at a state.

A march is recorded as one graph where that is small, else in parts, so that the equations of motion are compiled once
and run for every stage.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from cardan.integrate.events import Event, trace_events
from cardan.integrate.explicit import step as explicit
from cardan.integrate.explicit.large import roll
from cardan.integrate.explicit.motion import Graphs, Loads, Motion
from cardan.integrate.explicit.step import Control, Method, State, Step
from cardan.machines.ufunc.kernel import Kernel, compile_program
from cardan.model.model import Model
from cardan.program.march import March
from cardan.program.program import Port, Program

# Instructions of a whole step past which it is recorded in parts: compiling one long line takes more than linear time.
UNROLLED = 20_000
REPEATS = 100  # steps of a call, about


@dataclass(frozen=True)
class Recipe:
    """All that the kernels depend on."""

    motion: Motion
    method: Method
    events: tuple[Event, ...]
    parameters: int
    """How many free parameters the model has."""

    @cached_property
    def march(self) -> Kernel:
        """Steps until a time: state and `end, rtol, atol, longest, tau, p, limit` to state."""
        state, data = self._state_ports(), self._data_ports("end", "rtol", "atol", "longest")
        return self._program("march", (*state, *data, Port("limit", ())), state, lambda: self._record(self._whole_step))

    @cached_property
    def leap(self) -> Kernel:
        """One step of length `h`, whatever its error: `t, q, v, a, g, h, tau, p, limit` to `t, q, v, a, g`."""
        state, data = self._leap_ports(), self._data_ports("h")
        return self._program("leap", (*state, *data, Port("limit", ())), state, lambda: self._record(self._one_step))

    @cached_property
    def observe(self) -> Kernel:
        """Accelerations and values of the events at a state: `t, q, v, tau, p` to `a, g`."""
        ports = self._ports()
        inputs = (ports["t"], ports["q"], ports["v"], *self._data_ports())
        outputs = (ports["a"], *self._event_port())

        def record() -> Any:
            import casadi as ca

            graphs, s, loads, data = self._symbols()
            a = s.v * 0 if graphs.loop is not None else graphs.accelerations(s.t, s.q, s.v, loads)
            g = [self._events(s.t, s.q, s.v, loads)] if self.events else []
            return ca.Function("observe", [s.t, s.q, s.v, *data], [a, *g])

        return self._program("observe", inputs, outputs, record)

    @cached_property
    def settle(self) -> Kernel:
        """Newton's method on positions and velocities: `q, v, gap, t, p, limit` to `q, v` and the last step's gap."""
        ports = self._ports()
        state = (ports["q"], ports["v"], Port("gap", ()))

        def record() -> March:
            import casadi as ca

            graphs, s, loads, _ = self._symbols()
            q, v = graphs.nudged(graphs.correction(s.t, s.q, loads), s.q, s.v, loads)
            gap = ca.norm_inf(graphs.gap(s.t, s.q, loads))
            data = [s.t, *loads.parameters]
            return March(((ca.Function("settle", [s.q, s.v, s.h, *data], [q, v, gap, 1]), 1),), 3)

        return self._program("settle", (*state, ports["t"], *self._parameter_port(), Port("limit", ())), state, record)

    # ports and symbols

    def _ports(self) -> dict[str, Port]:
        model = self.motion.model
        shapes: dict[str, tuple[int, ...]] = {"q": (model.nq,), "v": (model.nv,), "a": (model.nv,)}
        shapes |= {name: () for name in ("t", "h", "e", "steps", "outcome", "event")}
        return {name: Port(name, shape) for name, shape in shapes.items()}

    def _event_port(self) -> tuple[Port, ...]:
        return (Port("g", (len(self.events),)),) if self.events else ()

    def _parameter_port(self) -> tuple[Port, ...]:
        return (Port("p", (self.parameters,)),) if self.parameters else ()

    def _state_ports(self) -> tuple[Port, ...]:
        names = ("t", "q", "v", "a", "h", "e", "steps", "outcome", "event")
        return (*(self._ports()[name] for name in names), *self._event_port())

    def _leap_ports(self) -> tuple[Port, ...]:
        return (*(self._ports()[name] for name in ("t", "q", "v", "a")), *self._event_port())

    def _data_ports(self, *names: str) -> tuple[Port, ...]:
        tau = Port("tau", (self.motion.model.nv,))
        return (*(Port(name, ()) for name in names), tau, *self._parameter_port())

    def _symbols(self) -> tuple[Graphs, State, Loads, list[Any]]:
        import casadi as ca

        model = self.motion.model
        sizes = (1, model.nq, model.nv, model.nv, 1, 1, 1, 1, 1, len(self.events))
        names = ("t", "q", "v", "a", "h", "e", "steps", "outcome", "event", "g")
        state = State(*(ca.SX.sym(name, size) for name, size in zip(names, sizes, strict=True)))
        p = [ca.SX.sym("p", self.parameters)] if self.parameters else []
        loads = Loads(ca.SX.sym("tau", model.nv), p)
        return self._graphs, state, loads, [loads.tau, *p]

    @cached_property
    def _graphs(self) -> Graphs:
        return self.motion.graphs()

    def _events(self, t: Any, q: Any, v: Any, loads: Loads) -> Any:
        return trace_events(self.motion.model, self.events)(t, q, v, *loads.parameters)

    # the step

    def _record(self, finish_of: Any) -> March:
        """A march of whole steps, in one graph or in parts; `finish_of` says how a step begins and ends."""
        import casadi as ca

        graphs, s, loads, data = self._symbols()
        method, first = self.method, int(self.method.adaptive)
        if graphs.loop is not None:
            return roll(graphs, method, self.events, whole=finish_of == self._whole_step)
        state, control, h, finish = finish_of(graphs, s, loads)
        known = explicit.first_stage(graphs, s.q, s.v, s.a, loads) if first else None
        if graphs.forward.n_instructions() * (method.stages - first) <= UNROLLED:
            step = Step(s.t, s.q, s.v, h, [known] if known else [])
            for i in range(first, method.stages):
                step.K.append(explicit.stage(graphs, method, step, i, loads))
            after, busy = finish(step)
            return March(((ca.Function("step", [*state, *control, *data], [*after, busy]), 1),), len(state))
        kq, kv = ca.SX.sym("kq", s.q.shape[0], method.stages), ca.SX.sym("kv", s.v.shape[0], method.stages)
        number, size = ca.SX.sym("i"), ca.SX.sym("length")
        step = Step(s.t, s.q, s.v, size, [(kq[:, k], kv[:, k]) for k in range(method.stages)])
        inputs = [*state, number, size, kq, kv, *control, *data]
        # stages to come are zero: their weights are, but zero times what memory held may not be a number
        column = known or (ca.SX.zeros(s.q.shape[0]), ca.SX.zeros(s.v.shape[0]))
        filled = [ca.horzcat(k, ca.SX.zeros(k.shape[0], method.stages - 1)) for k in column]
        opening = ca.Function("begin", inputs, [*state, first, h, *filled, 0])
        k = explicit.stage(graphs, method, step, number, loads)
        columns = [explicit.kept(new, K, number) for new, K in zip(k, (kq, kv), strict=True)]
        middle = ca.Function("stage", inputs, [*state, number + 1, size, *columns, 0])
        after, busy = finish(step)
        closing = ca.Function("finish", inputs, [*after, number, size, kq, kv, busy])
        return March(((opening, 1), (middle, method.stages - first), (closing, 1)), len(state), 4)

    def _whole_step(self, graphs: Graphs, s: State, loads: Loads) -> Any:
        """State, controls, the length of the step, and what to do at its end: judge it."""
        import casadi as ca

        control = Control(*(ca.SX.sym(name) for name in ("end", "rtol", "atol", "longest")))
        directions = np.array([event.direction for event in self.events])

        def finish(step: Step) -> tuple[list[Any], Any]:
            new = explicit.result(graphs, self.method, step, loads)
            g = self._events(step.t + step.h, new.q, new.v, loads) if self.events else ca.SX(0, 1)
            after, busy = explicit.commit(self.method, s, control, step, new, g, directions)
            return self._carried(after.columns()), busy

        controls = [control.end, control.rtol, control.atol, control.longest]
        return self._carried(s.columns()), controls, explicit.length(self.method, s, control), finish

    def _one_step(self, graphs: Graphs, s: State, loads: Loads) -> Any:
        """The same for a step that is taken as it is."""
        import casadi as ca

        def finish(step: Step) -> tuple[list[Any], Any]:
            new = explicit.result(graphs, self.method, step, loads)
            a = step.K[-1][1] if self.method.adaptive else s.a
            g = [self._events(step.t + step.h, new.q, new.v, loads)] if self.events else []
            return [step.t + step.h, new.q, new.v, a, *g], ca.SX(0)

        state = [s.t, s.q, s.v, s.a, *([s.g] if self.events else [])]
        return state, [s.h], s.h, finish

    def _carried(self, columns: Sequence[Any]) -> list[Any]:
        return list(columns) if self.events else list(columns)[:-1]

    def _program(self, name: str, inputs: tuple[Port, ...], outputs: tuple[Port, ...], record: Any) -> Kernel:
        facts = (self.motion.key, *self.method.facts)
        return compiled(self.motion.model, name, facts, self.events, inputs, outputs, record)


def recipe_of(motion: Motion, method: Method, events: tuple[Event, ...]) -> Recipe:
    """The kernels of an integrator; kept with the model where there are no events, which may be others each time."""
    model = motion.model.unbound  # parameters are passed, not bound
    place, kept = ("recipe", motion.key, method.name), model.kernels
    if events or place not in kept or kept[place].method is not method:
        recipe = Recipe(replace(motion, model=model), method, events, model.parameters.size if model.parameters else 0)
        if events:
            return recipe
        kept[place] = recipe
    found: Recipe = kept[place]
    return found


def compiled(
    model: Model,
    name: str,
    facts: tuple[Any, ...],
    events: tuple[Event, ...],
    inputs: tuple[Port, ...],
    outputs: tuple[Port, ...],
    record: Any,
) -> Kernel:
    """The kernel of an integrator, kept with the model; `facts` are what it depends on beside model and events."""
    graph = trace_events(model, events).serialize() if events else ""
    directions = [event.direction for event in events]
    all_facts = (model.key, *facts, name, directions, graph)
    key = hashlib.sha256(repr(all_facts).encode()).hexdigest()
    kernels = model.unbound.kernels  # parameters are passed, not bound
    if key not in kernels:
        repeats = REPEATS if name == "march" else 1
        kernels[key] = compile_program(Program(name, inputs, outputs, key, record, repeats))
    kernel: Kernel = kernels[key]
    return kernel
