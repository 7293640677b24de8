"""The explicit integrators at work: their kernels, and the stepper that calls them for many systems at once.

A step is recorded as one graph if that is small, else in parts, so that the equations of motion are compiled once and
run for every stage.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from cardan.algebra.matrix import where
from cardan.formulation.formulation import Formulation
from cardan.integrate.events import BISECTIONS, DONE, Bracket, Event, changed_sign, per_system
from cardan.integrate.explicit import step as text
from cardan.integrate.explicit.large_mechanisms import large_mechanism_march
from cardan.integrate.explicit.large_trees import large_tree_march
from cardan.integrate.explicit.step import (
    CONTROL,
    LOW,
    STATE,
    ExplicitEquations,
    ExplicitState,
    Graphs,
    Step,
    StepControl,
)
from cardan.integrate.explicit.tableau import Tableau
from cardan.integrate.integrators import SINGLE, Request
from cardan.integrate.kernel import MANY_STEPS, Given, IntegratorKernels
from cardan.integrate.stepper import STRETCH, BatchStepper, Outcome, States, chosen_states, next_stop
from cardan.lazy import cached_property
from cardan.machines.cuda.place import Place
from cardan.machines.ufunc.kernel import Kernel
from cardan.model.memory import Slot
from cardan.program.march import March
from cardan.program.program import Port
from cardan.structure.kernels import tree_kernel
from cardan.structure.large import correction_kernel, motion_kernel
from cardan.structure.projection import project

# Instructions of a whole step past which it is recorded in parts: compiling straight-line code takes more than linear
# time.
UNROLLED = 20_000
BRACKET = tuple(f.name for f in fields(Bracket))


@dataclass(frozen=True)
class ExplicitKernels(IntegratorKernels):
    """The kernels of one tableau for one model and its events; each is recorded when first used."""

    motion: ExplicitEquations
    tableau: Tableau
    paired: bool = False
    """Whether time, configuration and velocity are pairs of numbers, for steps in float32."""

    @property
    def way(self) -> tuple[Formulation, tuple[int, ...]]:
        """The formulation, and the constraint rows that it keeps."""
        return self.motion.formulation, self.motion.rows

    @property
    def facts(self) -> tuple[Any, ...]:
        """The equations and the method."""
        return self.motion.key, self.tableau.key, *(["paired"] if self.paired else [])

    @cached_property
    def march(self) -> Kernel:
        """Steps until a time: state and `end, rtol, atol, max_step, (pause), tau, p, limit` to state."""
        state, data = self._ports(*self.names), self._data_ports(*self.control)
        inputs = (*state, *data, Port("limit", ()))
        return self._kernel("march", inputs, state, lambda: self._record(self._controlled_step), MANY_STEPS)

    @cached_property
    def single_step(self) -> Kernel:
        """One step of length `h`, whatever its error: `stepped, h, tau, p, limit` to `stepped`."""
        state, data = self._ports(*self.stepped), self._data_ports("h")
        inputs = (*state, *data, Port("limit", ()))
        return self._kernel("single_step", inputs, state, lambda: self._record(self._given_step))

    @cached_property
    def locate(self) -> Kernel:
        """From the start of a step to just past the event in it: `located, tau, p, limit` to `located`.

        Before, `hi` is the length of the step, and the rest of the `Bracket` zero.
        """
        state, data = self._ports(*self.located), self._data_ports()
        inputs = (*state, *data, Port("limit", ()))
        return self._kernel("locate", inputs, state, lambda: self._record(self._trial_step))

    @cached_property
    def evaluate(self) -> Kernel:
        """Accelerations, power, rates of states and values of the events at a state: `t, q, v, tau, p` to them."""
        inputs = (*self._ports("t", "q", "v"), *self._data_ports())

        def record() -> Any:
            import casadi as ca

            graphs, s, given, data = self._symbols()
            rates, a, power = s.q * 0, s.v * 0, s.power * 0  # of a large model by other kernels
            if graphs.loop is None:
                rates, a, power = graphs.slopes(s.t, *graphs.near(s.t, s.q, s.v, given), given)
            values = replace(s, a=a, power=power, xdot=rates[self.model.nq :], g=self._events(s.t, s.q, s.v, given))
            return ca.Function("evaluate", [s.t, s.q, s.v, *data], [getattr(values, name) for name in self.evaluated])

        return self._kernel("evaluate", inputs, self._ports(*self.evaluated), record)

    # ports and symbols

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Parts of the state that the equations and events need."""
        return self._present(*STATE)

    @cached_property
    def stepped(self) -> tuple[str, ...]:
        """Parts of the state that a single step changes."""
        return self._present("t", "q", "v", "x", "a", "work", "power", "g", "xdot")

    @property
    def located(self) -> tuple[str, ...]:
        """Parts of the state that locating an event changes, and its bracket."""
        return (*self.stepped, *BRACKET)

    @cached_property
    def evaluated(self) -> tuple[str, ...]:
        """Parts of the state that follow from time, position and velocity."""
        return self._present("a", "power", "g", "xdot")

    @property
    def control(self) -> tuple[str, ...]:
        """Names of what controls the steps."""
        return (*CONTROL, *(["end_lo"] if self.paired else []), *(["pause"] if self.tableau.adaptive else []))

    def _present(self, *names: str) -> tuple[str, ...]:
        absent = set() if self.events else {"g"}
        if not self.motion.carries_power:
            absent |= {"power"}
        if not self.motion.projects:
            absent |= {"correction", "correction_time"}
        if not self.paired:
            absent |= {*LOW}
        if not self.motion.states:
            absent |= {"x"}
        if not self.motion.sights:
            absent |= {"xdot"}
        return tuple(name for name in names if name not in absent)

    @property
    def _shapes(self) -> dict[str, tuple[int, ...]]:
        nq, nv = self.model.nq, self.model.nv
        events = len(self.events)
        sizes = {
            "q": nq,
            "v": nv,
            "x": len(self.motion.states),
            "xdot": len(self.motion.states),
            "a": nv,
            "g": events,
            "g_lo": events,
            "g_hi": events,
            "q_lo": nq,
            "v_lo": nv,
        }
        return {name: (sizes[name],) if name in sizes else () for name in (*STATE, *BRACKET)}

    def _ports(self, *names: str) -> tuple[Port, ...]:
        """Ports of parts of the state."""
        shapes = self._shapes
        return tuple(Port(name, shapes[name]) for name in names)

    def _symbols(self) -> tuple[Graphs, ExplicitState, Given, list[Any]]:
        import casadi as ca

        shapes = self._shapes
        left_out = (*(() if self.paired else LOW), *(() if self.motion.states else ("x",)))
        left_out += () if self.motion.sights else ("xdot",)
        state = ExplicitState(
            *(ca.SX(0, 1) if name in left_out else ca.SX.sym(name, *(shapes[name] or (1,))) for name in STATE)
        )
        return self._graphs, state, *self._given()

    @cached_property
    def _graphs(self) -> Graphs:
        return self.motion.graphs()

    # the step

    def _record(self, step_of: Any) -> March:
        """A march of steps, in one graph or in parts; `step_of` says how a step begins and ends."""
        import casadi as ca

        graphs, s, given, data = self._symbols()
        tableau, first = self.tableau, int(self.tableau.adaptive)
        if graphs.loop is not None:
            march = large_tree_march if graphs.large is None else large_mechanism_march
            return march(graphs, tableau, self.events, controlled=step_of == self._controlled_step)
        state, control, h, finish = step_of(graphs, s, given)
        low = (s.q_lo, s.v_lo) if self.paired else None
        # the first stage of a method that controls its error is the last one of the step before
        power = s.power if self.motion.carries_power else given.power(s.v)
        at = given.with_states(s.x, self.motion.states)
        known = (graphs.first_rates(s, at), s.a, power) if first else None
        y = ca.vertcat(s.q, s.x) if self.motion.states else s.q
        if graphs.forward.n_instructions() * (tableau.stages - first) <= UNROLLED:
            step = Step(s.t, y, s.v, h, [known] if known else [], low)
            for i in range(first, tableau.stages):
                step.K.append(text.stage(graphs, tableau, step, i, given))
            after, busy = finish(step)
            return March(((ca.Function("step", [*state, *control, *data], [*after, busy]), 1),), len(state))
        rows = {"kq": y.shape[0], "kv": s.v.shape[0], "kw": 1}
        number, size, width = ca.SX.sym("i"), ca.SX.sym("length"), 2 if tableau.is_chain else tableau.stages
        stages = [ca.SX.sym(name, n, width) for name, n in rows.items()]
        each = [(stages[0][:, k], stages[1][:, k], stages[2][:, k]) for k in range(width)]
        step = Step(s.t, y, s.v, size, each[:1] if tableau.is_chain else each, low, tableau.is_chain)
        inputs = [*state, number, size, *stages, *control, *data]
        # set later stages to zero: their weights are zero, but zero times leftover NaN in memory would be NaN
        column = known or tuple(ca.SX.zeros(n) for n in rows.values())
        filled = [ca.horzcat(k, ca.SX.zeros(k.shape[0], width - 1)) for k in column]
        opening = ca.Function("begin", inputs, [*state, first, h, *filled, 0])
        k = text.stage(graphs, tableau, step, number, given)
        if tableau.is_chain:  # the stage before, and the sum of all
            w = text.pick(tableau.b, number)
            columns = [ca.horzcat(new, K[:, 1] + w * new) for new, K in zip(k, stages, strict=True)]
            step = replace(step, K=each[1:])
        else:
            columns = [
                ca.horzcat(*(where(number == j, new, K[:, j]) for j in range(width)))
                for new, K in zip(k, stages, strict=True)
            ]
        middle = ca.Function("stage", inputs, [*state, number + 1, size, *columns, 0])
        after, busy = finish(step)
        closing = ca.Function("finish", inputs, [*after, number, size, *stages, busy])
        return March(((opening, 1), (middle, tableau.stages - first), (closing, 1)), len(state), 2 + len(stages))

    def _controlled_step(self, graphs: Graphs, s: ExplicitState, given: Given) -> Any:
        """State, controls, length of the step, and a function that finishes it: accept or retry."""
        import casadi as ca

        control = StepControl(**{name: ca.SX.sym(name) for name in self.control})
        directions = np.array([event.direction for event in self.events])

        def finish(step: Step) -> tuple[list[Any], Any]:
            new = text.result(graphs, self.tableau, step, given)
            at = given.with_states(new.x, self.motion.states)
            g = self._events(step.t + step.h, new.q, new.v, at)
            after, busy = text.finish(self.tableau, s, control, step, new, g, directions, self.motion.careful)
            return self._columns(after), busy

        symbols = [getattr(control, name) for name in self.control]
        return self._columns(s), symbols, text.step_length(s, control), finish

    def _given_step(self, graphs: Graphs, s: ExplicitState, given: Given) -> Any:
        """The same for a step of given length that is always accepted."""
        import casadi as ca

        def finish(step: Step) -> tuple[list[Any], Any]:
            new = text.result(graphs, self.tableau, step, given)
            after = replace(s, t=step.t + step.h, q=new.q, v=new.v, work=s.work + text.work(self.tableau, step))
            at = given.with_states(new.x, self.motion.states)
            after.x = s.x if new.x is None else new.x
            if self.tableau.adaptive:
                after.a, after.power = step.K[-1][1:]
                after.xdot = step.K[-1][0][self.model.nq :] if self.motion.sights else s.xdot
            after.g = self._events(after.t, new.q, new.v, at)
            return [getattr(after, name) for name in self.stepped], ca.SX(0)

        return [getattr(s, name) for name in self.stepped], [s.h], s.h, finish

    def _trial_step(self, graphs: Graphs, s: ExplicitState, given: Given) -> Any:
        """The same for trial steps from one start; only the last one, to the event, is kept."""
        import casadi as ca

        shapes = self._shapes
        bracket = Bracket(*(ca.SX.sym(name, *(shapes[name] or (1,))) for name in BRACKET))
        directions = np.array([event.direction for event in self.events])
        h, last = bracket.trial(s.t, directions)
        begin, _, _, end = self._given_step(graphs, s, given)

        def finish(step: Step) -> tuple[list[Any], Any]:
            there, _ = end(step)
            narrower = bracket.narrowed(step.h, s.g, there[self.stepped.index("g")], directions)
            goes_on = ca.logic_and(bracket.turn >= 0, ca.logic_not(last))
            after = narrower.where(goes_on, replace(bracket, turn=ca.SX(DONE)))
            return [*(where(last, x, y) for x, y in zip(there, begin, strict=True)), *vars(after).values()], goes_on

        return [*begin, *vars(bracket).values()], [], h, finish

    def _columns(self, s: ExplicitState) -> list[Any]:
        return [getattr(s, name) for name in self.names]


_KERNELS: Slot[tuple[str, Any], ExplicitKernels] = Slot("kernels of explicit integrators, by equations and tableau")


def explicit_kernels(
    motion: ExplicitEquations, tableau: Tableau, events: tuple[Event, ...], paired: bool = False
) -> ExplicitKernels:
    """The kernels of an integrator; kept with the model unless there are events, which may differ at every call."""
    model = motion.model.unbound  # parameters are an input of the kernels
    size = model.parameters.size if model.parameters else 0

    def make() -> ExplicitKernels:
        kernels = motion.kernels or ExplicitKernels
        return kernels(model, events, size, replace(motion, model=model), tableau, paired)

    return make() if events else _KERNELS.find(model, (motion.key, (tableau.key, paired)), make)


def split(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Numbers as pairs in float32: each rounded, and what rounding took from it."""
    high = np.asarray(x, np.float32)
    return high, np.asarray(x - high, np.float32)


def split_state(s: States) -> States:
    """States in float32, with the low parts of those that are pairs."""
    found = {name: np.asarray(x, np.float32) for name, x in s.items()}
    return found | {name: split(s[name.removesuffix("_lo")])[1] for name in LOW}


def joined_state(s: States) -> States:
    """States in float64 from those in float32, pairs joined."""
    found = {name: np.asarray(x, float) for name, x in s.items() if name not in LOW}
    return found | {high: found[high] + s[low] for low in LOW if (high := low.removesuffix("_lo")) in found}


CAREFUL_STEPS = 16  # attempts at careful steps before the usual ones are tried again
STUCK = 1e-10  # of the time: careful steps that lead no farther lead nowhere
RECOVERED = 20.0  # the first careful step by the last refused one
NO_PAUSE = np.asarray(np.inf)
SUBSTEPS = ((1, 1), (1, 2), (1, 3), (2, 3), (2, 5), (3, 7))  # so many fixed steps become so many careful ones
OPEN = 1e-6  # m or rad: a larger gap before the last iteration means that they did not converge


class ExplicitStepper(BatchStepper):
    """Integrates a model by an explicit method.

    The step of `request` is the length of fixed steps; for an adaptive method the first step, None to choose it.
    """

    starts_by_march = True
    """Whether `march`, which it needs anyway, may find the accelerations at a start."""

    def __init__(self, motion: ExplicitEquations, tableau: Tableau, tau: np.ndarray, request: Request) -> None:
        super().__init__(motion.model, tau, request)
        self.motion, self.tableau = motion, tableau
        self.kernels = explicit_kernels(motion, tableau, request.events)
        self.march, self.names = self.kernels.march, self.kernels.names
        self.single = explicit_kernels(motion, tableau, request.events, True) if request.precision == SINGLE else None
        self.has_fixed_steps = not tableau.adaptive
        self.place = self.threads if isinstance(self.threads, Place) else None
        self.control = tuple(np.asarray(x, dtype=float) for x in (request.rtol, request.atol, request.max_step))
        self.pause = NO_PAUSE

    def begin(self, t: float, q: np.ndarray, v: np.ndarray) -> None:
        """Start at a state."""
        super().begin(t, q, v)
        if self.tableau.adaptive and self.step is None:
            self.s["h"] = self._first_step()

    def _first(self, q: np.ndarray, v: np.ndarray) -> States:
        goes_on = self.s and self.tableau.adaptive
        h = self.s["h"] if goes_on else np.full(len(q), 0.0 if self.step is None else self.step)
        found = {"q": q, "v": v, "h": h, "e": np.zeros(len(q))}
        if self.states:
            found["x"] = self._first_states(len(q))
        return found

    def _evaluated(self) -> States:
        s = self.s
        if not self.reads_accelerations and not self.events:
            return self._no_accelerations(len(s["t"]))
        found = self._by_step_of_no_length()
        if found is not None:
            return found
        found = self._values(self.kernels, s, self.tau, *self.parameters_of(s))
        if self.motion.looped and not self.motion.divided:
            found["a"] = np.array(tree_kernel(self.model, "forward_dynamics")(s["q"], s["v"], self.tau))
        return found

    @property
    def reads_accelerations(self) -> bool:
        """Whether a step begins with the accelerations at its start: the last stage of the step before."""
        return self.tableau.adaptive

    def _no_accelerations(self, B: int) -> States:
        """Zeros for the accelerations and the power of B systems."""
        found = {"a": np.zeros((B, self.model.nv)), "power": np.zeros(B)}
        return found | ({"xdot": np.zeros((B, len(self.motion.states)))} if self.motion.sights else {})

    def _by_step_of_no_length(self) -> States | None:
        """Accelerations and power at the states, from a step that leads nowhere; None where another kernel must.

        Its last stage evaluates them where the step begins. So forward dynamics is compiled once. A state off its
        constraints by more than a step may be is refused, as is one that is not finite.
        """
        on_host = self.place is None and self.single is None
        if not (self.starts_by_march and self.tableau.adaptive and on_host) or self.events or self.motion.looped:
            return None
        s, B = self.s, len(self.s["t"])
        begin = s | self._no_accelerations(B) | {name: np.zeros(B) for name in ("h", "outcome", "steps")}
        with np.errstate(all="ignore"):
            after = self._pass(begin, s["t"] + 1.0, (*self.control, NO_PAUSE, self.tau, *self.parameters), np.ones(()))
        return {name: after[name] for name in self.kernels.evaluated} if (after["steps"] == 1).all() else None

    def _values(self, kernels: ExplicitKernels, s: States, *given: np.ndarray) -> States:
        """Accelerations, power and values of events at states."""
        found: Any = kernels.evaluate(s["t"], s["q"], s["v"], *given)
        values = found if len(kernels.evaluated) > 1 else (found,)
        answer = {name: np.array(value) for name, value in zip(kernels.evaluated, values, strict=True)}
        if kernels.motion.divided:
            answer["a"], answer["power"] = self._divided_values(kernels.motion, s, *given)
        return answer

    def _divided_values(
        self, motion: ExplicitEquations, s: States, tau: np.ndarray, *parameters: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Accelerations and power of a mechanism that is divided into pieces, at states, or near them if `careful`."""
        model, (q, v) = self.model, (s["q"], s["v"])
        time = (s["t"],) if model.depends_on_time else ()
        kernels = [kernel(model, motion.formulation) for kernel in (correction_kernel, motion_kernel)]
        near, moving = (k.at_values(parameters[0]) if parameters else k for k in kernels)
        for _ in range(text.STAGE_NEWTON_STEPS if motion.careful and motion.projects else 0):
            q, v = near(q, v, *time)[:2]
        a, _, power = moving(q, v, tau, *time)
        return np.array(a), np.array(power)

    def _march(self, s: States, end: np.ndarray) -> States:
        s = self._run(s, end, *self._control, self.tau, *self.parameters)
        while (s["outcome"] == Outcome.SINGULAR).any():
            s = self._run(self._with_care(s, end), end, *self._control, self.tau, *self.parameters)
        return s

    @property
    def _control(self) -> tuple[np.ndarray, ...]:
        """What controls the steps, beside their end."""
        return (*self.control, self.pause) if self.tableau.adaptive else self.control

    def _chosen_steps(self, t: float) -> States | None:
        """Take all steps that end until `t`; the states at `t` if that is inside the next step, None if they are kept.

        Such a time is reached by a shorter step that is not kept, so that samples change no step.
        """
        stop = next_stop(self.stops, t)
        if stop == np.inf:  # nothing says how far steps may go
            self.s = self._march(self.s, np.asarray(float(t)))
            return None
        self.pause = np.asarray(float(t))
        if self._running(self.s, np.asarray(stop)).any():
            self.s = self._march(self.s, np.asarray(stop))
        self.pause = NO_PAUSE
        if not ((self.s["t"] < t) & (self.s["outcome"] == 0)).any():
            return None
        part = self._partly(self.s["h"], t)
        kept = part["outcome"] != self.s["outcome"]  # an event or a failure ends the step there
        self.s = chosen_states(kept, part, self.s)
        return part

    def _running(self, s: States, end: np.ndarray) -> np.ndarray:
        running = super()._running(s, end)
        if self.pause is NO_PAUSE:
            return running
        left, h = end - s["t"], np.minimum(s["h"], self.control[2])
        return running & (self.pause - s["t"] >= np.where(h * STRETCH >= left, left, h))

    def _restart(self, at_event: np.ndarray) -> None:
        super()._restart(at_event)
        if self.tableau.adaptive:  # the length of the last step depends on what followed the event
            self.s["h"] = np.where(at_event, self._first_step(), self.s["h"])

    def _with_care(self, s: States, end: np.ndarray) -> States:
        """The states after a few careful steps of the systems that need them; one that fails again has failed."""
        rows, B = np.flatnonzero(s["outcome"] == Outcome.SINGULAR), len(s["t"])
        start = {name: s[name][rows] for name in self.names}
        end = np.broadcast_to(end, (B,))[rows]
        tau = np.broadcast_to(self.tau, (B, self.model.nv))[rows]
        parameters = [p[rows] for p in self.parameters_of(s)]
        start["q"], start["v"], _ = project(
            self.model, start["q"], start["v"], start["t"], parameters=parameters, threads=self.threads
        )
        careful = explicit_kernels(replace(self.motion, careful=True), self.tableau, self.events)
        start |= {name: value for name, value in self._values(careful, start, tau, *parameters).items() if name != "g"}
        start["outcome"] = np.zeros(len(rows))

        def attempt(start: States, end: np.ndarray, limit: int) -> States:
            given = (*(start[name] for name in self.names), end, *self._control, tau, *parameters)
            out = careful.march(*given, np.asarray(float(limit)), threads=self.threads)
            return dict(zip(self.names, out, strict=True))

        if self.tableau.adaptive:
            longer = np.minimum(start["h"] * RECOVERED, self.pause - start["t"])
            after = attempt(start | {"h": np.maximum(start["h"], longer)}, end, CAREFUL_STEPS)
        else:
            after = start | {"outcome": np.full(len(rows), float(Outcome.SINGULAR))}
            for steps, parts in SUBSTEPS:
                till = np.minimum(start["t"] + steps * start["h"], end)
                tried = attempt(start | {"h": (till - start["t"]) / parts}, till, 2 * parts) | {"h": start["h"]}
                better = (tried["outcome"] <= Outcome.EVENT) & (after["outcome"] == Outcome.SINGULAR)
                after = {name: np.where(per_system(better, old), tried[name], old) for name, old in after.items()}
        little = STUCK * np.maximum(np.abs(end), np.abs(start["t"]))
        creeps = (after["t"] < end) & (after["t"] - start["t"] <= little) & (after["outcome"] == Outcome.ARRIVED)
        stuck = (after["outcome"] > Outcome.EVENT) | creeps
        finite = after["outcome"] != Outcome.NOT_FINITE
        after["outcome"] = np.where(stuck & finite, float(Outcome.DEAD_POINT), after["outcome"])
        s = {name: s[name].copy() for name in s}
        for name in self.names:
            s[name][rows] = after[name]
        return s

    def _pass(self, s: States, end: np.ndarray, data: Sequence[np.ndarray], limit: np.ndarray) -> States:
        """In float32 time, configuration and velocity are split into pairs before the call, and joined after it."""
        if self.single is None:
            return super()._pass(s, end, data, limit)
        end = np.asarray(end)
        ends = split(end)
        *control, tau, limit = (np.asarray(x, np.float32) for x in (*data[:3], data[3], limit))
        given = [*map(split_state(s).__getitem__, self.single.names), ends[0], *control, ends[1], tau]
        given += [np.asarray(p, np.float32) for p in data[4:]]
        out = dict(zip(self.single.names, self.single.march(*given, limit, threads=self.threads), strict=True))
        after = joined_state(out)
        there = (out["t"] == ends[0]) & (out["t_lo"] == ends[1])
        return {**s, **after, "t": np.where(there, end, after["t"])}

    def _limited(self, s: States) -> int:
        assert self.max_steps is not None
        left = self.max_steps - s["steps"][s["outcome"] == 0].max(initial=0)  # of every running system
        return min(self.limit, max(int(left), 1))

    def _located(
        self, start: States, h: np.ndarray, tau: np.ndarray, parameters: list[np.ndarray], directions: np.ndarray
    ) -> tuple[States, np.ndarray]:
        if self.motion.looped:  # a step of large trees has no trial steps inside its loop
            return super()._located(start, h, tau, parameters, directions)
        none = np.zeros(len(h))
        values = np.zeros((len(h), len(self.events)))
        bracket = {name: values if name.startswith("g") else none for name in BRACKET} | {"hi": h}
        names, most = self.kernels.located, np.asarray(float(BISECTIONS + 2))
        given = [(start | bracket)[name] for name in names]
        out = dict(zip(names, self.kernels.locate(*given, tau, *parameters, most, threads=self.threads), strict=True))
        return {name: out[name] for name in self.kernels.stepped}, changed_sign(out["g_lo"], out["g"], directions)

    def _stepped(self, start: States, h: np.ndarray, tau: np.ndarray, parameters: list[np.ndarray]) -> States:
        names = self.kernels.stepped
        out = self.kernels.single_step(*[start[name] for name in names], h, tau, *parameters, np.asarray(1.0))
        return dict(zip(names, out, strict=True))

    def _first_step(self) -> np.ndarray:
        """A cautious length (B,) of the first step: a hundredth of the state divided by its rate of change."""
        rtol, atol, max_step = self.control
        s = self.s
        y = np.concatenate([s["q"], s["v"]], axis=1)
        rate = np.concatenate([s["v"], s["a"]], axis=1)
        d0 = np.sqrt(np.mean((y / (atol + rtol * np.abs(y))) ** 2, axis=1))
        scale = atol + rtol * np.maximum(np.abs(rate), 1.0)
        d1 = np.sqrt(np.mean((rate / scale) ** 2, axis=1))
        h = np.where((d0 < 1e-5) | (d1 < 1e-5), 1e-6, 0.01 * d0 / np.maximum(d1, 1e-5))
        return np.minimum(np.clip(np.nan_to_num(h, nan=1e-6), 1e-6, 0.1), max_step)

    def project(
        self, t: np.ndarray, q: np.ndarray, v: np.ndarray, p: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Project samples at times (B, n) by Newton's method, all at once; also return which (B, n) stayed open."""
        if not self.motion.projects:
            return q, v, np.zeros(t.shape, dtype=bool)
        parameters = [x[..., None, :] for x in self.parameters] if p is None else [p]
        q, v, gap = project(self.model, q, v, t, parameters=parameters, threads=self.threads)
        return q, v, gap >= OPEN
