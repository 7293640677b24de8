"""The interface between an integrator at work and the code that drives it: begin at a state, advance to a time.

All arrays have the axis of systems first, `B` of them, in the tree's coordinates. Internally a stepper may work in
other coordinates.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from math import ceil, floor
from time import perf_counter
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from cardan.integrate.events import keep_side, locate, per_system
from cardan.model.model import Model
from cardan.structure.kernels import parameter_arguments

if TYPE_CHECKING:
    from cardan.integrate.integrators import Request


class Outcome(IntEnum):
    """How an advance ended: at the time asked for, at an event, or early, and why."""

    ARRIVED = 0
    EVENT = 1
    SMALL_STEP = 2  # the step size that the tolerance requires is below rounding
    NOT_FINITE = 3  # a force, an acceleration or the state is NaN or infinite
    NEWTON = 4  # Newton's method did not converge at the smallest step
    OPEN_LOOP = 5  # positions could not be brought back onto the constraints
    SOLVER_FAILED = 6  # the external solver failed; `Arrival.message` has its message
    TOO_MANY_STEPS = 7  # more steps than allowed
    SINGULAR = 8  # constraints nearly lose rank: careful steps are needed
    DEAD_POINT = 9  # constraints lose rank, and careful steps do not pass either
    RESTING = 10  # the system was told to stay where it is
    INTERRUPTED = 11  # Ctrl-C, before the system arrived
    NOT_COMPUTED = 12  # the run was interrupted before the system began
    NO_JUMP = 13  # an event's change is impossible there; `Arrival.message` says why
    ACCUMULATED = 14  # infinitely many events before a finite time

    @property
    def text(self) -> str:
        """What `run.outcome` says: empty for a system that arrived."""
        return _OUTCOME_TEXTS.get(self, "")


_OUTCOME_TEXTS = {
    Outcome.EVENT: "stopped at an event",
    Outcome.SMALL_STEP: "step size underflow",
    Outcome.NOT_FINITE: "not a finite number",
    Outcome.NEWTON: "Newton's method did not converge",
    Outcome.OPEN_LOOP: "a loop opened",
    Outcome.SOLVER_FAILED: "the solver failed",
    Outcome.TOO_MANY_STEPS: "too many steps",
    Outcome.SINGULAR: "a singular position",
    Outcome.DEAD_POINT: "a singular position",
    Outcome.INTERRUPTED: "interrupted",
    Outcome.NOT_COMPUTED: "not computed",
    Outcome.NO_JUMP: "no state after an event",
    Outcome.ACCUMULATED: "events accumulate",
}


@dataclass
class EnergyNotes:
    """What an integrator notes at every step since the first `begin`, for the energy balance of the run."""

    work: np.ndarray
    """Work (B,) of drives, force elements and prescribed motions, J, springs' less what they store."""
    speed: np.ndarray
    """The largest `v^T v` (B,)."""
    correction: np.ndarray
    """Largest kinetic energy (B,), J, that bringing velocities back onto the constraints took in one step."""
    correction_time: np.ndarray
    """Time (B,) of that step, s."""
    law_residual: np.ndarray
    """Largest relative residual (B,) of the laws of rows in one step of a method that solves them."""

    def after(self, earlier: EnergyNotes | None) -> EnergyNotes:
        """The same since an earlier start, with the notes until this one began."""
        if earlier is None:
            return self
        larger = self.correction >= earlier.correction
        return EnergyNotes(
            earlier.work + self.work,
            np.maximum(self.speed, earlier.speed),
            np.where(larger, self.correction, earlier.correction),
            np.where(larger, self.correction_time, earlier.correction_time),
            np.maximum(self.law_residual, earlier.law_residual),
        )


@dataclass
class Arrival:
    """Where each system is after `advance`."""

    t: np.ndarray
    """Time reached (B,), s: the time asked for where the outcome is ARRIVED."""
    q: np.ndarray
    """Configurations (B, nq)."""
    v: np.ndarray
    """Velocities (B, nv)."""
    outcome: np.ndarray
    """An `Outcome` for each system (B,)."""
    event: np.ndarray
    """Index (B,) of the event met, -1 where none."""
    steps: np.ndarray
    """Steps taken since the first `begin` (B,)."""
    message: str = ""
    """Message of an external solver that failed."""
    crossed: np.ndarray | None = None
    """All events (B, ne) met at that time."""
    notes: EnergyNotes | None = None
    """For the energy balance; None of an integrator that does not integrate the work."""
    p: np.ndarray | None = None
    """Free parameters (B, np) of each system there; None of an integrator that cannot change them."""


class Stepper(Protocol):
    """An integrator at work on one or many systems."""

    def begin(self, t: float, q: np.ndarray, v: np.ndarray) -> None:
        """Start, or restart after a discontinuity, at a consistent state: q (B, nq), v (B, nv), time in s."""

    def advance(self, t: float) -> Arrival:
        """Give every system at time `t`; one that meets an event or fails stops there.

        No step goes beyond the next of the `stops` of the request. A system that met an event goes on from there at
        the next call; one that failed stays where it is.
        """

    def rest(self, systems: np.ndarray) -> None:
        """From now on leave some systems, a mask (B,), where they are, also after another `begin`."""

    def change(self, systems: np.ndarray, v: np.ndarray, p: np.ndarray) -> None:
        """Give systems of a mask (B,) other rates v (B, nv) and free parameters p (B, np), where they are.

        Called of systems at an event before they go on from there, and of all before another `begin`, whose rates
        count then.
        """

    def project(
        self, t: np.ndarray, q: np.ndarray, v: np.ndarray, p: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Project samples (B, n, ...) at times (B, n) onto the constraints; also return which (B, n) stayed open.

        `p` (B, n, np) are their free parameters, where these changed during the run.
        """


STRETCH = 1.01  # the last step before a stop may be this much longer, to avoid a tiny one after it
FAR, AT_ZERO = 100.0, 1e-14  # steps ahead, and of the state: an event's value this small there stays at zero
LOOKS = 18  # steps, each a quarter of the one before, that look whether an event comes back
ON_STEP = 1e-6  # of a step: a time this near to the end of a step is the end of it


def next_stop(stops: Sequence[float], t: float) -> float:
    """The first of some times in order, s, that is not before `t`; infinity if there is none."""
    k = bisect_left(stops, t)
    return stops[k] if k < len(stops) else np.inf


LONGEST_CALL = 0.05  # s: Ctrl-C is noticed between two calls of a kernel
States = dict[str, np.ndarray]


class BatchStepper:
    """Base of the steppers whose kernel takes steps of many systems in one call; fills `Stepper`.

    `s` is the state of all systems, one array per name with the B systems first, in the order `names` of the kernel
    `march`. `tau` are constant drives (B, nv) or (nv,), N m and N. `limit` is the largest number of steps in one call.

    Steps of fixed length are counted from the time `origin`, s, where a system began or met its last event, one number
    as long as it is the same for all, whose whole steps then have `reached` a time. The last step before a stop is
    shorter. Any other time inside a step, also of a method that chooses its steps, is reached by a shorter step that is
    not kept. That is as accurate as the method, and samples change no step (docs/decisions/0065).
    """

    march: Callable[..., Any]
    names: tuple[str, ...]
    has_fixed_steps = True

    def __init__(self, model: Model, tau: np.ndarray, request: Request) -> None:
        self.model, self.tau, self.step = model, tau, request.step
        self.events, self.max_steps, self.threads = request.events, request.max_steps, request.threads
        self.stops = request.stops
        self.parameters: Sequence[np.ndarray] = parameter_arguments(model)
        self.states = list(model.parameters.states)  # places in `p` of those that are integrated with the motion
        self.limit = 64
        self.s: States = {}
        self.origin: float | np.ndarray = 0.0
        self.reached = 0.0
        self.resting: np.ndarray | None = None
        self.worked: np.ndarray | None = None  # work (B,), J, at the last arrival if that was inside a step
        self.crossed: np.ndarray | None = None
        self.side: np.ndarray | None = None  # signs (B, ne) of the events' values before the event that was met
        self.at_zero: np.ndarray | None = None  # events (B, ne) whose value stayed at zero when they were met
        self.jumped: np.ndarray | None = None  # systems (B,) that were changed at the event that they met

    # What a subclass says.

    def _first(self, q: np.ndarray, v: np.ndarray) -> States:
        """Parts of the state at a start that need no evaluation, given coordinates and rates of the tree."""
        raise NotImplementedError

    def _evaluated(self) -> States:
        """Parts of the state that follow from the others: accelerations and values of the events `g`, for example."""
        raise NotImplementedError

    def _restart(self, at_event: np.ndarray) -> None:
        """Prepare the systems of a mask, which met an event, to go on from there; the others stay as they are."""
        for name, new in self._evaluated().items():
            self.s[name] = np.where(per_system(at_event, new), new, self.s[name])

    def _march(self, s: States, end: np.ndarray) -> States:
        """Call the kernel until every system is at its time `end` (B,), or at the start of a step with an event."""
        raise NotImplementedError

    def _with_length(self, s: States, h: np.ndarray) -> States:
        """The state with another length (B,) of the next step."""
        return {**s, "h": h}

    def _stepped(self, start: States, h: np.ndarray, tau: np.ndarray, parameters: list[np.ndarray]) -> States:
        """States after one step of lengths `h` from `start`; a failed one has an `outcome` other than EVENT."""
        raise NotImplementedError

    def law_residual(self, s: States) -> np.ndarray:
        """Largest relative residual (B,) of the laws of rows so far, in a state."""
        return np.zeros(len(s["t"]))

    def _tree(self, s: States) -> tuple[np.ndarray, np.ndarray]:
        """Coordinates and rates of the tree in a state."""
        return s["q"], s["v"]

    def _with_rates(self, s: States, v: np.ndarray) -> States:
        """The state with other rates (B, nv) of the tree."""
        return {**s, "v": v}

    def _states(self, s: States) -> np.ndarray:
        """The parameters (B, nx) that are integrated with the motion, in a state."""
        return s["x"]

    def _with_states(self, s: States, x: np.ndarray) -> States:
        """The state with others of them."""
        return {**s, "x": x}

    def _first_states(self, B: int) -> np.ndarray:
        """Those at a start: as they are, or as the parameters give them."""
        if self.s:
            return self._states(self.s)
        return np.array(np.broadcast_to(self.parameters[0], (B, self.parameters[0].shape[-1]))[:, self.states])

    # What all do.

    def change(self, systems: np.ndarray, v: np.ndarray, p: np.ndarray) -> None:
        """Give systems of a mask (B,) other rates v (B, nv) and free parameters p (B, np)."""
        if self.parameters:
            old = np.broadcast_to(self.parameters[0], p.shape)
            self.parameters = (np.where(systems[:, None], p, old),)
        if self.s:
            self.jumped = systems
            if self.states:
                x = np.where(systems[:, None], p[:, self.states], self._states(self.s))
                self.s = self._with_states(self.s, x)
            self.s = self._with_rates(self.s, np.where(systems[:, None], v, self._tree(self.s)[1]))
            self.s["speed"] = np.where(systems, np.maximum(self.s["speed"], np.sum(v * v, axis=1)), self.s["speed"])

    def parameters_of(self, s: States) -> Sequence[np.ndarray]:
        """Free parameters (B, np) in a state, with those that are integrated; empty if there are none."""
        if not self.parameters:
            return ()
        p = np.broadcast_to(self.parameters[0], (len(s["t"]), self.parameters[0].shape[-1]))
        if self.states:
            p = p.copy()
            p[:, self.states] = self._states(s)
        return (p,)

    def begin(self, t: float, q: np.ndarray, v: np.ndarray) -> None:
        """Start at a state."""
        B, before = len(q), self.s.get("g")
        self.origin = self.reached = float(t)
        fresh = {"t": np.full(B, float(t)), "outcome": np.zeros(B)}
        for name in ("steps", "work", "correction", "correction_time"):
            fresh[name] = self.s.get(name, np.zeros(B))
        fresh["work"] = fresh["work"] if self.worked is None else self.worked.copy()
        fresh["speed"] = np.maximum(self.s.get("speed", 0.0), np.sum(np.square(v), axis=1))
        self.s = {**fresh, "event": np.full(B, -1.0), **self._first(np.array(q, dtype=float), np.array(v, dtype=float))}
        if self.resting is not None:
            self.s["outcome"][self.resting] = Outcome.RESTING
        self.s |= self._evaluated()
        if before is not None:
            self.s["g"] = keep_side(before, self.s["g"])

    def rest(self, systems: np.ndarray) -> None:
        """From now on leave some systems, a mask (B,), where they are."""
        self.resting = systems if self.resting is None else self.resting | systems
        self.s["outcome"] = np.where(systems, Outcome.RESTING, self.s["outcome"])

    def advance(self, t: float) -> Arrival:
        """Every system at time `t`, s."""
        self.leave_events(t)
        return self.resume(t)

    def leave_events(self, t: float = np.inf) -> None:
        """Let the systems that met an event go on from there, towards the time `t`, s."""
        at_event = self.s["outcome"] == Outcome.EVENT
        if not at_event.any():
            return
        with np.errstate(all="ignore"):
            self._restart(at_event)
            self.s["outcome"] = np.where(at_event, 0.0, self.s["outcome"])
            self.s["event"] = np.full(len(at_event), -1.0)
            if self.has_fixed_steps:
                self.origin, self.reached = np.where(at_event, self.s["t"], self.origin), -np.inf
                self.s = self._with_length(self.s, np.where(at_event, self.step or 0.0, self.s["h"]))
            if self.jumped is not None:
                self._look_back(np.flatnonzero(self.jumped & at_event), t)
                self.jumped = None

    def _look_back(self, rows: np.ndarray, end: float) -> None:
        """Take systems that were changed at an event back to its other side, if the motion turns back at once.

        A ball is a rounding below the floor when it leaves it. If a step is longer than its flight, the ball is below
        the floor at both ends. So shorter and shorter steps are tried, and the one after which an event's value is
        farthest on the side that it was on before is taken, not beyond the time `end`, s. An event whose value stays at
        zero, as the distance of bodies that were caught, is noted: rounding is no crossing.
        """
        if self.crossed is None or self.side is None:
            return
        crossed = self.crossed & np.array([event.turns_back for event in self.events])
        rows = rows[crossed[rows].any(axis=1)]
        if not len(rows):
            return
        k, n, s, B = len(rows), LOOKS + 1, self.s, len(self.s["t"])
        many = np.repeat(rows, n)
        start = {name: s[name][many] for name in self.names}
        lengths = np.array([FAR, *0.25 ** np.arange(LOOKS)])
        h = s["h"][many] * np.tile(lengths, k)
        tau = np.broadcast_to(self.tau, (B, self.model.nv))[many]
        parameters = [np.broadcast_to(p, (B, p.shape[-1]))[many] for p in self.parameters]
        far = self._stepped(start, h, tau, parameters)
        ahead = np.where(np.isfinite(far["g"]), far["g"] * self.side[many], -np.inf)
        ahead = np.where(crossed[many], ahead, -np.inf).max(axis=1)
        ahead = np.where((s["t"][many] + h < end), ahead, -np.inf).reshape(k, n)
        if self.at_zero is None:
            self.at_zero = np.zeros_like(crossed)
        there = np.abs(far["g"].reshape(k, n, -1)).max(axis=1) <= self._rounding(rows)
        self.at_zero[rows] |= crossed[rows] & there
        ahead[(self.at_zero & crossed)[rows].any(axis=1)] = -np.inf
        ahead[:, 0] = -np.inf  # too long a step to be taken
        best = np.argmax(ahead, axis=1)
        back = np.flatnonzero(ahead[np.arange(k), best] > 0)
        at = rows[back]
        taken = {name: far[name][back * n + best[back]] for name in set(far) - {"outcome", "h"}}
        others = keep_side(s["g"][at], taken["g"])  # events that are passed on the way are met in the next step
        taken["g"] = np.where(self.crossed[at], taken["g"], others)
        self._looked_back(at, h.reshape(k, n)[back, best[back]])
        for name, value in taken.items():
            s[name] = s[name].copy()
            s[name][at] = value
        s["steps"] = s["steps"] + np.isin(np.arange(B), at)
        if self.has_fixed_steps:
            self.origin = np.where(np.isin(np.arange(B), at), s["t"], self.origin)

    def _looked_back(self, rows: np.ndarray, h: np.ndarray) -> None:
        """Called before some systems, by their numbers (k,), are taken a step of lengths `h` (k,) by `_look_back`."""

    def _rounding(self, rows: np.ndarray) -> np.ndarray:
        """Values (k, 1) of events that may be rounding, of some systems by their numbers (k,)."""
        size = np.max([np.abs(x[rows]).max(axis=1, initial=1.0) for x in self._tree(self.s)], axis=0)
        return AT_ZERO * size[:, None]

    def resume(self, t: float) -> Arrival:
        """Every system at time `t`, s; one that crossed an event in its last step is taken to the event."""
        with np.errstate(all="ignore"):  # NaN and infinity are reported as an outcome, not as a warning
            sample = self._fixed_steps(t) if self.has_fixed_steps else self._chosen_steps(t)
        return self.halted(sample)

    def halted(self, sample: States | None = None) -> Arrival:
        """Where every system is; one that crossed an event in its last step is taken to the event.

        `sample` has the states of those that arrived inside a step.
        """
        with np.errstate(all="ignore"):
            if self.events and (self.s["outcome"] == Outcome.EVENT).any():
                self._locate()
        s = self.s
        if sample is not None:  # a system that met an event, or failed, is where that was
            s = chosen_states(s["outcome"] == 0, sample, s)
        q, v = self._tree(s)
        outcome, event, steps = s["outcome"].astype(int), s["event"].astype(int), s["steps"].astype(int)
        self.worked = None if sample is None else s["work"]
        notes = EnergyNotes(s["work"], s["speed"], s["correction"], s["correction_time"], self.law_residual(s))
        p = self.parameters_of(s)[0] if self.parameters else None
        return Arrival(
            s["t"].copy(), q.copy(), v.copy(), outcome, event, steps, crossed=self.crossed, notes=notes, p=p
        )  # fmt: skip

    def _fixed_steps(self, t: float) -> States | None:
        """Take all whole steps until `t`; the states at `t` if that is inside the next step, None if they are kept."""
        assert self.step is not None
        step, stop, near = self.step, next_stop(self.stops, t), ON_STEP * self.step
        if isinstance(self.origin, float):
            last = ceil((stop - self.origin) / step - (STRETCH - 1)) - 1 if stop < np.inf else np.inf
            at = self.origin + min(floor((t - self.origin) / step + ON_STEP), last) * step
            if at > self.reached + near:
                self.reached = t if abs(at - t) <= near else at
                self.s = self._march(self.s, np.asarray(self.reached))
            if self.reached == t:
                return None
        else:
            each = np.minimum(
                np.floor((t - self.origin) / step + ON_STEP), np.ceil((stop - self.origin) / step - (STRETCH - 1)) - 1
            )
            whole = self.origin + each * step
            here = self.s["t"]  # a system that is near enough to the end of a step takes none
            whole = np.where(whole <= here + near, here, np.where(np.abs(whole - t) <= near, t, whole))
            self.s = self._march(self.s, whole)
        inside = (self.s["t"] < t) & (self.s["outcome"] == 0)
        if not inside.any():
            return None
        length = np.where(inside, t - self.s["t"], self.s["h"])
        part = self._partly(length, t)
        kept = (part["outcome"] != self.s["outcome"]) | (t >= stop)  # an event or a failure ends the step there
        self.s = chosen_states(kept, part, self.s)
        return part

    def _chosen_steps(self, t: float) -> States | None:
        """The same of a method that chooses its steps."""
        raise NotImplementedError

    def _partly(self, length: np.ndarray, t: float) -> States:
        """The states after a shorter step, of lengths (B,), that ends at `t`."""
        return self._march(self._with_length(self.s, length), np.asarray(float(t)))

    def _run(self, s: States, end: np.ndarray, *data: np.ndarray) -> States:
        """Call the kernel until every system has arrived, stopped or failed; return the new state."""
        while True:
            began = perf_counter()
            s = self._less_spent(s, end)
            limit = np.asarray(float(self.limit if self.max_steps is None else self._limited(s)))
            s = self._pass(s, end, data, limit)
            if not self._running(s, end).any():
                return s
            seconds = perf_counter() - began  # the next call should take about as long as Ctrl-C may wait
            if seconds < LONGEST_CALL / 2:
                self.limit *= 2
            elif seconds > LONGEST_CALL:
                self.limit = max(self.limit // 2, 1)

    def _running(self, s: States, end: np.ndarray) -> np.ndarray:
        """Which systems (B,) have neither arrived nor stopped."""
        return np.asarray((s["t"] < end) & (s["outcome"] == 0))

    def _less_spent(self, s: States, end: np.ndarray) -> States:
        """The states, those that would need more than `max_steps` to arrive marked as failed."""
        if self.max_steps is None:
            return s
        spent = self._running(s, end) & (s["steps"] >= self.max_steps)
        return {**s, "outcome": np.where(spent, Outcome.TOO_MANY_STEPS, s["outcome"])} if spent.any() else s

    def _pass(self, s: States, end: np.ndarray, data: Sequence[np.ndarray], limit: np.ndarray) -> States:
        """The state after one call of the kernel, of at most `limit` steps."""
        out = self.march(*[s[name] for name in self.names], end, *data, limit, threads=self.threads)
        return {**s, **dict(zip(self.names, out, strict=True))}

    def _limited(self, s: States) -> int:
        """Largest number of passes in the next call of the kernel, where `max_steps` is given."""
        return self.limit

    def _located(
        self, start: States, h: np.ndarray, tau: np.ndarray, parameters: list[np.ndarray], directions: np.ndarray
    ) -> tuple[States, np.ndarray]:
        """States just past the earliest event in steps of lengths `h` from `start`, and the events met: `locate`."""
        return locate(lambda h: self._stepped(start, h, tau, parameters), start, h, directions)

    def _locate(self) -> None:
        """Locate the events inside the steps that crossed them; each system ends just past its earliest one."""
        s, B = self.s, len(self.s["t"])
        rows = np.flatnonzero(s["outcome"] == Outcome.EVENT)
        start = {name: s[name][rows] for name in self.names}
        tau = np.broadcast_to(self.tau, (B, self.model.nv))[rows]
        parameters = [np.broadcast_to(p, (B, p.shape[-1]))[rows] for p in self.parameters]
        directions = np.array([event.direction for event in self.events])
        far, crossed = self._located(start, s["h"][rows], tau, parameters, directions)
        if self.at_zero is not None:
            self.at_zero[rows] &= np.abs(s["g"][rows]) <= self._rounding(rows)
            crossed = crossed & ~self.at_zero[rows]
        self.crossed = np.zeros((B, len(directions)), dtype=bool)
        self.crossed[rows] = crossed
        self.side = np.sign(s["g"])
        met = (far.get("outcome", Outcome.EVENT) == Outcome.EVENT) & crossed.any(axis=1)
        for name, value in {**far, "event": np.where(met, np.argmax(crossed, axis=1), -1)}.items():
            s[name] = s[name].copy()
            s[name][rows] = value


def chosen_states(mask: np.ndarray, new: States, old: States) -> States:
    """The new states of the systems of a mask (B,), the old ones of the others."""
    if mask.all():
        return new
    return {name: np.where(per_system(mask, x), new[name], x) for name, x in old.items()} if mask.any() else old
