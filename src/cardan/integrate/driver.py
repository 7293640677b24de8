"""Drive a stepper from start to end: stop at the sample times and breaks, keep samples and events."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from cardan.integrate.stepper import Arrival, Outcome, Stepper


@dataclass
class MetEvent:
    """An event that a system met: indices of the event and of the system, time in s, and the state there."""

    event: int
    system: int
    t: float
    q: np.ndarray
    v: np.ndarray


@dataclass
class RunSamples:
    """The results of a run so far: B systems at n times, NaN where a system did not get that far."""

    t: np.ndarray
    """Times (B, n), s."""
    q: np.ndarray
    """Configurations (B, n, nq)."""
    v: np.ndarray
    """Velocities (B, n, nv)."""
    count: np.ndarray
    """Number of samples of each system (B,)."""
    outcome: np.ndarray
    """How each system ended (B,), an `Outcome`."""
    steps: np.ndarray
    """Steps taken (B,)."""
    met: list[MetEvent] = field(default_factory=list)
    message: str = ""
    """Message of an external solver that failed."""
    interrupted: bool = False

    @classmethod
    def empty(cls, systems: int, times: int, nq: int, nv: int) -> RunSamples:
        """Allocate arrays for a run, filled with NaN."""
        q, v = (np.full((systems, times, n), np.nan) for n in (nq, nv))
        none = np.zeros(systems, dtype=int)
        return cls(np.full((systems, times), np.nan), q, v, none.copy(), none.copy(), none.copy())

    def add(self, systems: np.ndarray, t: np.ndarray | float, q: np.ndarray, v: np.ndarray) -> None:
        """Keep one more sample of the systems of a mask."""
        if systems.all() and (self.count == self.count[0]).all():
            at = self.count[0]
            self.t[:, at], self.q[:, at], self.v[:, at] = t, q, v
            self.count += 1
            return
        rows = np.flatnonzero(systems)
        at = self.count[rows]
        self.t[rows, at] = np.broadcast_to(t, systems.shape)[rows]
        self.q[rows, at], self.v[rows, at] = q[rows], v[rows]
        self.count[rows] += 1

    def project(self, stepper: Stepper) -> None:
        """Project the samples onto the constraints; a system's run ends before the first sample that stays open."""
        self.q, self.v, opened = stepper.project(self.t, self.q, self.v)
        for i in np.flatnonzero(opened.any(axis=1)):
            first = max(int(np.argmax(opened[i])), 1)
            if first < self.count[i]:
                self.count[i], self.outcome[i] = first, Outcome.OPEN_LOOP
                self.t[i, first:], self.q[i, first:], self.v[i, first:] = np.nan, np.nan, np.nan


def drive(
    stepper: Stepper, q: np.ndarray, v: np.ndarray, times: np.ndarray, *, breaks: Sequence[float] = (),
    stops: Sequence[bool] = (), report: Callable[[float], None] | None = None,
) -> RunSamples:  # fmt: skip
    """Run B systems from states q (B, nq), v (B, nv) at `times[0]` through all times, s.

    At `breaks` the stepper stops exactly and begins again. `stops` says for each event whether it ends the run of the
    system that meets it. `report` is called with the time reached. Ctrl-C ends the run and sets `interrupted`, and the
    outcome of the systems that were still on their way.
    """
    kept = RunSamples.empty(len(q), len(times), q.shape[1], v.shape[1])
    alive = np.ones(len(q), dtype=bool)
    kept.add(alive, times[0], q, v)
    wanted, again = set(times[1:].tolist()), {float(b) for b in breaks if times[0] < b < times[-1]}
    try:
        stepper.begin(float(times[0]), q, v)
        for t in sorted(wanted | again):
            # stop just before a jump, so that no stage of a step evaluates forces beyond it
            arrival = _advance(stepper, float(np.nextafter(t, -np.inf)) if t in again else t, alive, kept, stops)
            if t in wanted:
                kept.add(alive, t, arrival.q, arrival.v)
            if not alive.any():
                break
            if t in again:
                stepper.begin(t, arrival.q, arrival.v)
            if report is not None:
                report(t)
    except KeyboardInterrupt:
        kept.interrupted = True
        kept.outcome[alive & (kept.count < len(times))] = Outcome.INTERRUPTED
    kept.project(stepper)
    return kept


def _advance(stepper: Stepper, t: float, alive: np.ndarray, kept: RunSamples, stops: Sequence[bool]) -> Arrival:
    """Advance to a time through all events before it; clear `alive` for the systems that end on the way."""
    while True:
        arrival = stepper.advance(t)
        if not arrival.outcome.any():
            kept.steps = arrival.steps
            return arrival
        kept.steps = np.where(alive, arrival.steps, kept.steps)
        met = alive & (arrival.outcome == Outcome.EVENT)
        ended = alive & (arrival.outcome > Outcome.EVENT) & (arrival.outcome != Outcome.RESTING)
        kept.message = kept.message or (arrival.message if ended.any() else "")
        for i in np.flatnonzero(met):
            here = [arrival.event[i]] if arrival.crossed is None else np.flatnonzero(arrival.crossed[i])
            for k in map(int, here):
                kept.met.append(MetEvent(k, int(i), float(arrival.t[i]), arrival.q[i].copy(), arrival.v[i].copy()))
                ended[i] |= stops[k]
        if ended.any():
            further = ended & (arrival.t > kept.t[np.arange(len(alive)), kept.count - 1])
            kept.add(further, arrival.t, arrival.q, arrival.v)
            kept.outcome = np.where(ended, arrival.outcome, kept.outcome)
            alive &= ~ended
            if alive.any():
                stepper.rest(ended)
        if not (met & alive).any():
            return arrival
