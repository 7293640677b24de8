"""The interface between an integrator at work and the code that drives it: begin at a state, advance to a time.

All arrays have the axis of systems first, `B` of them, in the tree's coordinates. Internally a stepper may work in
other coordinates.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from time import perf_counter
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from cardan.integrate.events import keep_side, locate
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
    RESTING = 8  # the system was told to stay where it is
    INTERRUPTED = 9  # Ctrl-C, before the system arrived
    NOT_COMPUTED = 10  # the run was interrupted before the system began

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
    Outcome.INTERRUPTED: "interrupted",
    Outcome.NOT_COMPUTED: "not computed",
}


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


class Stepper(Protocol):
    """An integrator at work on one or many systems."""

    def begin(self, t: float, q: np.ndarray, v: np.ndarray) -> None:
        """Start, or restart after a discontinuity, at a consistent state: q (B, nq), v (B, nv), time in s."""

    def advance(self, t: float) -> Arrival:
        """Move every system to time `t`; one that meets an event or fails stops there.

        A system that met an event goes on from there at the next call; one that failed stays where it is.
        """

    def rest(self, systems: np.ndarray) -> None:
        """From now on leave some systems, a mask (B,), where they are, also after another `begin`."""

    def project(self, t: np.ndarray, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Project samples (B, n, ...) at times (B, n) onto the constraints; also return which (B, n) stayed open."""


LONGEST_CALL = 0.05  # s: Ctrl-C is noticed between two calls of a kernel
States = dict[str, np.ndarray]


class BatchStepper:
    """Base of the steppers whose kernel takes steps of many systems in one call; fills `Stepper`.

    `s` is the state of all systems, one array per name with the B systems first, in the order `names` of the kernel
    `march`. `tau` are constant drives (B, nv) or (nv,), N m and N. `limit` is the largest number of steps in one call.
    """

    march: Callable[..., Any]
    names: tuple[str, ...]

    def __init__(self, model: Model, tau: np.ndarray, request: Request) -> None:
        self.model, self.tau, self.step = model, tau, request.step
        self.events, self.max_steps, self.threads = request.events, request.max_steps, request.threads
        self.parameters = parameter_arguments(model)
        self.limit = 64
        self.s: States = {}
        self.resting: np.ndarray | None = None
        self.crossed: np.ndarray | None = None

    # What a subclass says.

    def _first(self, q: np.ndarray, v: np.ndarray) -> States:
        """Parts of the state at a start that need no evaluation, given coordinates and rates of the tree."""
        raise NotImplementedError

    def _evaluated(self) -> States:
        """Parts of the state that follow from the others: accelerations and values of the events `g`, for example."""
        raise NotImplementedError

    def _restart(self, at_event: np.ndarray) -> None:
        """Prepare the systems of a mask, which met an event, to go on from there."""
        self.s |= self._evaluated()

    def _march_to(self, t: float) -> None:
        """Move every system to time `t`, or to the start of the step in which it meets an event."""
        raise NotImplementedError

    def _stepped(self, start: States, h: np.ndarray, tau: np.ndarray, parameters: list[np.ndarray]) -> States:
        """States after one step of lengths `h` from `start`; a failed one has an `outcome` other than EVENT."""
        raise NotImplementedError

    def _tree(self) -> tuple[np.ndarray, np.ndarray]:
        """Coordinates and rates of the tree."""
        return self.s["q"], self.s["v"]

    # What all do.

    def begin(self, t: float, q: np.ndarray, v: np.ndarray) -> None:
        """Start at a state."""
        B, before = len(q), self.s.get("g")
        fresh = {"t": np.full(B, float(t)), "steps": self.s.get("steps", np.zeros(B)), "outcome": np.zeros(B)}
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
        """Move every system to time `t`, s."""
        with np.errstate(all="ignore"):  # NaN and infinity are reported as an outcome, not as a warning
            at_event = self.s["outcome"] == Outcome.EVENT
            if at_event.any():
                self._restart(at_event)
                self.s["outcome"] = np.where(at_event, 0.0, self.s["outcome"])
                self.s["event"] = np.full(len(at_event), -1.0)
            self._march_to(t)
            if self.events and (self.s["outcome"] == Outcome.EVENT).any():
                self._locate()
        s, (q, v) = self.s, self._tree()
        outcome, event, steps = s["outcome"].astype(int), s["event"].astype(int), s["steps"].astype(int)
        return Arrival(s["t"].copy(), q.copy(), v.copy(), outcome, event, steps, crossed=self.crossed)

    def _equal_steps(self, t: float) -> np.ndarray:
        """Lengths (B,) of the fixed steps to time `t`: all equal, and at most `step`."""
        assert self.step is not None
        left = t - self.s["t"]
        return left / np.maximum(np.ceil(left / self.step - 1e-6), 1.0)

    def _run(self, s: States, end: np.ndarray, *data: np.ndarray) -> States:
        """Call the kernel until every system has arrived, stopped or failed; `s` is changed, and returned."""
        while True:
            began = perf_counter()
            limit = np.asarray(float(self.limit if self.max_steps is None else self._limited(s)))
            out = self.march(*[s[name] for name in self.names], end, *data, limit, threads=self.threads)
            s.update(zip(self.names, out, strict=True))
            running = (s["t"] < end) & (s["outcome"] == 0)
            if self.max_steps is not None and running.any():
                spent = running & (s["steps"] >= self.max_steps)
                s["outcome"] = np.where(spent, Outcome.TOO_MANY_STEPS, s["outcome"])
                running &= ~spent
            if not running.any():
                return s
            seconds = perf_counter() - began  # the next call should take about as long as Ctrl-C may wait
            if seconds < LONGEST_CALL / 2:
                self.limit *= 2
            elif seconds > LONGEST_CALL:
                self.limit = max(self.limit // 2, 1)

    def _limited(self, s: States) -> int:
        """Largest number of passes in the next call of the kernel, where `max_steps` is given."""
        return self.limit

    def _locate(self) -> None:
        """Locate the events inside the steps that crossed them; each system ends just past its earliest one."""
        s, B = self.s, len(self.s["t"])
        rows = np.flatnonzero(s["outcome"] == Outcome.EVENT)
        start = {name: s[name][rows] for name in self.names}
        tau = np.broadcast_to(self.tau, (B, self.model.nv))[rows]
        parameters = [np.broadcast_to(p, (B, p.shape[-1]))[rows] for p in self.parameters]
        directions = np.array([event.direction for event in self.events])
        far, crossed = locate(lambda h: self._stepped(start, h, tau, parameters), start, s["h"][rows], directions)
        self.crossed = np.zeros((B, len(directions)), dtype=bool)
        self.crossed[rows] = crossed
        met = far.get("outcome", Outcome.EVENT) == Outcome.EVENT
        for name, value in {**far, "event": np.where(met, np.argmax(crossed, axis=1), -1)}.items():
            s[name] = s[name].copy()
            s[name][rows] = value
