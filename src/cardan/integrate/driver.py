"""Drive a stepper from start to end: stop at the sample times and breaks, keep samples and events."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from cardan.errors import DeviceError, DeviceMemoryError
from cardan.integrate.stepper import Arrival, BatchStepper, EnergyNotes, Outcome, Stepper


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
    knots: np.ndarray
    """Breaks (k, 3), s: the time of each, and just before and after it."""
    knot_q: np.ndarray
    """Configurations (B, k, nq) at the breaks."""
    knot_v: np.ndarray
    """Velocities (B, k, nv) at the breaks."""
    work: np.ndarray
    """Work (B, n) that has entered since the start, J; NaN from an integrator that does not integrate it."""
    notes: EnergyNotes
    """Notes for the energy balance at the end of the run."""
    met: list[MetEvent] = field(default_factory=list)
    message: str = ""
    """Message of an external solver that failed."""
    interrupted: bool = False
    broken: str = ""
    """Why a GPU could not go on, if it interrupted the run."""
    scarce: bool = False
    """Whether that was for too little memory: fewer systems may do."""
    sampled: Callable[[np.ndarray], None] | None = None
    """Called with a mask (B,) of the systems whenever a sample is kept."""

    @classmethod
    def empty(cls, systems: int, times: int, nq: int, nv: int, knots: np.ndarray, filled: bool = True) -> RunSamples:
        """Allocate arrays for a run with breaks at `knots` (k, 3), filled with NaN, or later with `fill`."""

        def new(*shape: int) -> np.ndarray:
            return np.full(shape, np.nan) if filled else np.empty(shape)

        q, v, knot_q, knot_v = (new(systems, k, n) for k in (times, len(knots)) for n in (nq, nv))
        t, work, none = new(systems, times), new(systems, times), np.zeros(systems, dtype=int)
        notes = EnergyNotes(*(np.zeros(systems) for _ in range(4)))
        return cls(t, q, v, none.copy(), none.copy(), none.copy(), knots, knot_q, knot_v, work, notes)

    def fill(self, rows: np.ndarray, first: np.ndarray) -> None:
        """Set the samples of some systems to NaN, from the numbers `first` of each on."""
        for i, k in zip(rows, first, strict=True):
            self.t[i, k:], self.q[i, k:], self.v[i, k:], self.work[i, k:] = (np.nan,) * 4

    def add(
        self, systems: np.ndarray, t: np.ndarray | float, q: np.ndarray, v: np.ndarray, notes: EnergyNotes | None
    ) -> None:
        """Keep one more sample of the systems of a mask."""
        self.notes = notes or self.notes
        if self.sampled is not None:
            self.sampled(systems)
        work = np.nan if notes is None else notes.work
        if systems.all() and (self.count == self.count[0]).all():
            at = self.count[0]
            self.t[:, at], self.q[:, at], self.v[:, at], self.work[:, at] = t, q, v, work
            self.count += 1
            return
        rows = np.flatnonzero(systems)
        at = self.count[rows]
        self.t[rows, at] = np.broadcast_to(t, systems.shape)[rows]
        self.q[rows, at], self.v[rows, at] = q[rows], v[rows]
        self.work[rows, at] = np.broadcast_to(work, systems.shape)[rows]
        self.count[rows] += 1

    def project(self, stepper: Stepper) -> None:
        """Project the samples onto the constraints; a system's run ends before the first sample that stays open."""
        self.q, self.v, opened = stepper.project(self.t, self.q, self.v)
        self.end_where_opened(opened)
        self.project_knots(stepper)

    def end_where_opened(self, opened: np.ndarray) -> None:
        """End a system's run before the first of its samples (B, n) that stayed open."""
        for i in np.flatnonzero(opened.any(axis=1)):
            first = max(int(np.argmax(opened[i])), 1)
            if first < self.count[i]:
                self.count[i], self.outcome[i] = first, Outcome.OPEN_LOOP
                self.t[i, first:], self.q[i, first:], self.v[i, first:] = np.nan, np.nan, np.nan

    def project_knots(self, stepper: Stepper) -> None:
        """Project the states at breaks onto the constraints."""
        if len(self.knots):
            times = np.broadcast_to(self.knots[:, 0], self.knot_q.shape[:2])
            self.knot_q, self.knot_v, _ = stepper.project(times, self.knot_q, self.knot_v)


BREAK = 4 * float(np.finfo(float).eps)  # half the width of a break, relative to the time


def sides(t: float, start: float) -> tuple[float, float]:
    """Times just before and just after a break at time `t`, s, of a run from `start`.

    They are a few roundings apart from it, so that no stage of a step evaluates forces on the other side, whether
    a jump is written `t > t0` or `t >= t0`.
    """
    aside = BREAK * max(abs(t), abs(start))
    return min(t - aside, float(np.nextafter(t, -np.inf))), max(t + aside, float(np.nextafter(t, np.inf)))


def inner_breaks(times: np.ndarray, breaks: Sequence[float]) -> list[float]:
    """The breaks between the first and the last of some times, s, in order, each once."""
    return sorted({float(b) for b in breaks if times[0] < b < times[-1]})


def stops_of(times: np.ndarray, breaks: Sequence[float]) -> tuple[float, ...]:
    """Times, s, that no step may cross: just before each break, and the last time."""
    start = float(times[0])
    return (*(sides(b, start)[0] for b in inner_breaks(times, breaks)), float(times[-1]))


def drive(
    stepper: Stepper, q: np.ndarray, v: np.ndarray, times: np.ndarray, *, breaks: Sequence[float] = (),
    stops: Sequence[bool] = (), report: Callable[[float], None] | None = None,
    sampled: Callable[[np.ndarray], None] | None = None,
) -> RunSamples:  # fmt: skip
    """Run B systems from states q (B, nq), v (B, nv) at `times[0]` through all times, s.

    At `breaks` the stepper stops and begins again; its request has their `stops_of`. `stops` says for each event
    whether it ends the run of the system that meets it. `report` is called with the time reached, `sampled` with the
    systems that keep a sample. Ctrl-C, and a GPU that fails, end the run and set `interrupted`, and the outcome of the
    systems that were still on their way.
    """
    place = getattr(stepper, "place", None)
    if place is not None and sampled is None:  # of an explicit integrator on a GPU
        from cardan.integrate.explicit.card_run import drive_on_card

        return drive_on_card(stepper, place, q, v, times, breaks=breaks, stops=stops, report=report)  # type: ignore[arg-type]
    start, alive = float(times[0]), np.ones(len(q), dtype=bool)
    again = {b: (k, *sides(b, start)) for k, b in enumerate(inner_breaks(times, breaks))}
    knots = np.array([(b, *around) for b, (_, *around) in again.items()]).reshape(-1, 3)
    kept = RunSamples.empty(len(q), len(times), q.shape[1], v.shape[1], knots)
    kept.sampled = sampled
    kept.add(alive, start, q, v, kept.notes)
    wanted = set(times[1:].tolist())
    try:
        stepper.begin(start, q, v)
        for t in sorted(wanted | set(again)):
            arrival = _advance(stepper, again[t][1] if t in again else t, alive, kept, stops)
            if t in wanted:
                kept.add(alive, t, arrival.q, arrival.v, arrival.notes)
            if not alive.any():
                break
            if t in again:
                k, _, after = again[t]
                kept.knot_q[alive, k], kept.knot_v[alive, k] = arrival.q[alive], arrival.v[alive]
                stepper.begin(after, arrival.q, arrival.v)
            if report is not None:
                report(t)
    except KeyboardInterrupt:
        kept.interrupted = True
    except DeviceError as error:
        kept.interrupted, kept.broken, kept.scarce = True, str(error), isinstance(error, DeviceMemoryError)
        if isinstance(stepper, BatchStepper):
            stepper.threads = None  # the CPU projects what there is
    if kept.interrupted:
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
            kept.add(further, arrival.t, arrival.q, arrival.v, arrival.notes)
            kept.outcome = np.where(ended, arrival.outcome, kept.outcome)
            alive &= ~ended
            if alive.any():
                stepper.rest(ended)
        if not (met & alive).any():
            return arrival
