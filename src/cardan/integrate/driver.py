"""Drive a stepper from start to end: stop at the sample times and breaks, keep samples and events."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from cardan.errors import DeviceError, DeviceMemoryError, InputError
from cardan.integrate.stepper import Arrival, BatchStepper, EnergyNotes, Outcome, Stepper
from cardan.integrate.transition import NEGLIGIBLE, Accumulation, Jump, Moment, Transition, grouped
from cardan.model.pose import LARGEST


@dataclass
class MetEvent:
    """An event that a system met: indices of the event and of the system, time in s, and the state there.

    `p` (np,) are the free parameters there, of a run that changes any. If the event changed something, `jump` has the
    rates (nv,) and the free parameters (np,) after it.
    """

    event: int
    system: int
    t: float
    q: np.ndarray
    v: np.ndarray
    p: np.ndarray | None = None
    jump: tuple[np.ndarray, np.ndarray] | None = None
    impulse: np.ndarray | None = None
    """Impulses (m,) of the rows with laws of the model."""


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
    p: np.ndarray | None = None
    """Free parameters (B, n, np) of a run that changes any."""
    knot_p: np.ndarray | None = None
    """Free parameters (B, k, 2, np) before and after each break, of a run that changes any."""
    knot_after: np.ndarray | None = None
    """Velocities (B, k, nv) after each break, of such a run."""
    accumulated: dict[int, float] = field(default_factory=dict)
    """By system, the time, s, at which its events accumulate."""
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
        notes = EnergyNotes(*(np.zeros(systems) for _ in range(5)))
        return cls(t, q, v, none.copy(), none.copy(), none.copy(), knots, knot_q, knot_v, work, notes)

    def fill(self, rows: np.ndarray, first: np.ndarray) -> None:
        """Set the samples of some systems to NaN, from the numbers `first` of each on."""
        for i, k in zip(rows, first, strict=True):
            self.t[i, k:], self.q[i, k:], self.v[i, k:], self.work[i, k:] = (np.nan,) * 4

    def keep_parameters(self, size: int) -> None:
        """Keep so many free parameters with each sample, since the run changes them."""
        systems, times = self.t.shape
        self.p = np.full((systems, times, size), np.nan)
        self.knot_p = np.full((systems, len(self.knots), 2, size), np.nan)
        self.knot_after = np.full_like(self.knot_v, np.nan)

    def add(
        self, systems: np.ndarray, t: np.ndarray | float, q: np.ndarray, v: np.ndarray, notes: EnergyNotes | None,
        p: np.ndarray | None = None,
    ) -> None:  # fmt: skip
        """Keep one more sample of the systems of a mask."""
        self.notes = notes or self.notes
        if self.sampled is not None:
            self.sampled(systems)
        work = np.nan if notes is None else notes.work
        if systems.all() and (self.count == self.count[0]).all():
            at = self.count[0]
            self.t[:, at], self.q[:, at], self.v[:, at], self.work[:, at] = t, q, v, work
            if self.p is not None:
                self.p[:, at] = p
            self.count += 1
            return
        rows = np.flatnonzero(systems)
        at = self.count[rows]
        self.t[rows, at] = np.broadcast_to(t, systems.shape)[rows]
        self.q[rows, at], self.v[rows, at] = q[rows], v[rows]
        if self.p is not None and p is not None:
            self.p[rows, at] = p[rows]
        self.work[rows, at] = np.broadcast_to(work, systems.shape)[rows]
        self.count[rows] += 1

    def add_knot(self, systems: np.ndarray, k: int, at: Arrival, v: np.ndarray, p: np.ndarray | None) -> None:
        """Keep the states of the systems of a mask at break `k`, and rates (B, nv) and parameters (B, np) after it."""
        self.knot_q[systems, k], self.knot_v[systems, k] = at.q[systems], at.v[systems]
        if self.knot_p is not None and self.knot_after is not None:
            self.knot_after[systems, k] = v[systems]
            if at.p is not None and p is not None:
                self.knot_p[systems, k, 0], self.knot_p[systems, k, 1] = at.p[systems], p[systems]

    def project(self, stepper: Stepper) -> None:
        """Project the samples onto the constraints; a system's run ends before the first sample that stays open."""
        given = () if self.p is None or not self.p.shape[-1] else (self.p,)  # a user's integrator need not take them
        self.q, self.v, opened = stepper.project(self.t, self.q, self.v, *given)
        self.end_where_opened(opened)
        self.project_knots(stepper)

    def end_where_opened(self, opened: np.ndarray) -> None:
        """End a system's run before the first of its samples (B, n) that stayed open."""
        for i in np.flatnonzero(opened.any(axis=1)):
            first = max(int(np.argmax(opened[i])), 1)
            if first < self.count[i]:
                self.count[i], self.outcome[i] = first, Outcome.OPEN_LOOP
                self.t[i, first:], self.q[i, first:], self.v[i, first:] = np.nan, np.nan, np.nan

    def end_where_unbounded(self, names: Sequence[str]) -> None:
        """End a system's run before the first sample at which a parameter, of these names, is too large a number."""
        if self.p is None:
            return
        large = np.abs(self.p) > LARGEST  # false for NaN
        for i in np.flatnonzero(large.any(axis=(1, 2))):
            first = max(int(np.argmax(large[i].any(axis=1))), 1)
            name = names[int(np.argmax(large[i, first]))]
            self.message = f"variable {name!r} grows beyond {LARGEST:g} before t = {self.t[i, first]:.6g} s"
            self.count[i], self.outcome[i] = first, Outcome.NOT_FINITE
            self.fill(np.array([i]), np.array([first]))
            self.p[i, first:] = np.nan

    def project_knots(self, stepper: Stepper) -> None:
        """Project the states at breaks onto the constraints."""
        if len(self.knots):
            times = np.broadcast_to(self.knots[:, 0], self.knot_q.shape[:2])
            given = () if self.knot_p is None or not self.knot_p.shape[-1] else (self.knot_p[:, :, 0],)
            same = self.knot_after == self.knot_v
            self.knot_q, self.knot_v, _ = stepper.project(times, self.knot_q, self.knot_v, *given)
            if self.knot_after is not None:
                self.knot_after = np.where(same, self.knot_v, self.knot_after)


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


Updates = Sequence[tuple[Sequence[float], Transition]]
"""Times, s, each the start or a break of a run, with what changes there."""
Changed = Callable[[Transition, Moment, Jump, bool], None]
"""Called with a transition, where the systems were, and their jump; the last says whether their events accumulate."""


def drive(
    stepper: Stepper, q: np.ndarray, v: np.ndarray, times: np.ndarray, *, breaks: Sequence[float] = (),
    stops: Sequence[bool] = (), transitions: Sequence[Transition | None] = (), updates: Updates = (),
    report: Callable[[float], None] | None = None, sampled: Callable[[np.ndarray], None] | None = None,
    changed: Changed | None = None, negligible: float = NEGLIGIBLE,
) -> RunSamples:  # fmt: skip
    """Run B systems from states q (B, nq), v (B, nv) at `times[0]` through all times, s.

    At `breaks` the stepper stops and begins again; its request has their `stops_of`. `stops` says for each event
    whether it ends the run of the system that meets it, `transitions` what else it changes. `updates` are what changes
    at breaks, or at the start. `report` is called with the time reached, `sampled` with the systems that keep a sample,
    `changed` with every transition, before the stepper changes what it says. Events that accumulate within the part
    `negligible` of the time since the start do so at once.
    Ctrl-C, and a GPU that fails, end the run and set `interrupted`, and the outcome of the systems that were still on
    their way.
    """
    place, changes = getattr(stepper, "place", None), _changes(stepper, transitions, updates)
    if place is not None and sampled is None and not changes:  # of an explicit integrator on a GPU
        from cardan.integrate.explicit.card_run import drive_on_card

        return drive_on_card(stepper, place, q, v, times, breaks=breaks, stops=stops, report=report)  # type: ignore[arg-type]
    return _Drive(stepper, q, v, times, breaks, stops, transitions, updates, sampled, changed, negligible).run(report)


def _changes(stepper: Stepper, transitions: Sequence[Transition | None], updates: Updates) -> bool:
    """Whether rates or parameters change at events or breaks, or parameters with the motion."""
    return any(transitions) or bool(updates) or bool(getattr(stepper, "states", ()))


class _Drive:
    """A run on its way: `alive` (B,) are the systems that have not ended."""

    def __init__(
        self, stepper: Stepper, q: np.ndarray, v: np.ndarray, times: np.ndarray, breaks: Sequence[float],
        stops: Sequence[bool], transitions: Sequence[Transition | None], updates: Updates,
        sampled: Callable[[np.ndarray], None] | None, changed: Changed | None, negligible: float,
    ) -> None:  # fmt: skip
        self.stepper, self.stops, self.transitions, self.changed = stepper, stops, transitions, changed
        self.q, self.v, self.times, self.start = q, v, times, float(times[0])
        self.alive = np.ones(len(q), dtype=bool)
        self.again = {b: (k, *sides(b, self.start)) for k, b in enumerate(inner_breaks(times, breaks))}
        knots = np.array([(b, *around) for b, (_, *around) in self.again.items()]).reshape(-1, 3)
        self.kept = RunSamples.empty(len(q), len(times), q.shape[1], v.shape[1], knots)
        self.kept.sampled = sampled
        self.updates: dict[float, list[Transition]] = {}
        for at, transition in updates:
            for t in map(float, at):
                self.updates.setdefault(t, []).append(transition)
        self.changes = _changes(stepper, transitions, updates)
        self.accumulation = Accumulation(len(q), self.start, negligible)
        self.p = self._first_parameters()
        self.tau = np.broadcast_to(getattr(stepper, "tau", 0.0), v.shape)
        if self.changes:
            self.kept.keep_parameters(self.p.shape[1])

    def _first_parameters(self) -> np.ndarray:
        """Free parameters (B, np) at the start; reject an integrator that cannot change them."""
        own = getattr(self.stepper, "parameters", ())
        if self.changes and not hasattr(self.stepper, "change"):
            raise InputError(
                f"simulate: {type(self.stepper).__name__} has no `change`, and cannot go on after an event or an input "
                "that changes rates or parameters; take a built-in method"
            )
        return np.array(np.broadcast_to(own[0], (len(self.q), own[0].shape[-1]))) if own else np.zeros((len(self.q), 0))

    def run(self, report: Callable[[float], None] | None) -> RunSamples:
        """From the start to the end."""
        kept, alive, wanted = self.kept, self.alive, set(self.times[1:].tolist())
        try:
            q, v = self.q, self._updated(self.start, self.q, self.v, self.p)
            kept.add(alive, self.start, q, v, kept.notes, self.p)
            self.stepper.begin(self.start, q, v)
            for t in sorted(wanted | set(self.again)):
                arrival = self._advance(self.again[t][1] if t in self.again else t)
                q, v, p = arrival.q, arrival.v, arrival.p
                if t in self.updates and alive.any():
                    v = self._updated(t, q, v, p)
                    p = self.p
                if t in wanted:
                    kept.add(alive, t, q, v, arrival.notes, p)
                if not alive.any():
                    break
                if t in self.again:
                    k, _, after = self.again[t]
                    kept.add_knot(alive, k, arrival, v, p)
                    self.stepper.begin(after, q, v)
                if report is not None:
                    report(t)
        except KeyboardInterrupt:
            kept.interrupted = True
        except DeviceError as error:
            kept.interrupted, kept.broken, kept.scarce = True, str(error), isinstance(error, DeviceMemoryError)
            if isinstance(self.stepper, BatchStepper):
                self.stepper.threads = None  # the CPU projects what there is
        if kept.interrupted:
            kept.outcome[alive & (kept.count < len(self.times))] = Outcome.INTERRUPTED
        kept.project(self.stepper)
        return kept

    def _advance(self, t: float) -> Arrival:
        """Advance to a time through all events before it; clear `alive` for the systems that end on the way."""
        kept, alive = self.kept, self.alive
        while True:
            arrival = self.stepper.advance(t)
            if not arrival.outcome.any():
                kept.steps = arrival.steps
                return arrival
            kept.steps = np.where(alive, arrival.steps, kept.steps)
            met = alive & (arrival.outcome == Outcome.EVENT)
            ended = alive & (arrival.outcome > Outcome.EVENT) & (arrival.outcome != Outcome.RESTING)
            kept.message = kept.message or (arrival.message if ended.any() else "")
            crossed = np.zeros((len(alive), len(self.stops)), dtype=bool)
            crossed[met] = _crossed(arrival, len(self.stops))[met]
            ended |= (crossed & np.array(self.stops, dtype=bool)).any(axis=1)
            here = self._record(arrival, crossed)
            if self.changes and (met & ~ended).any():
                ended |= self._jump(arrival, crossed & ~ended[:, None], here)
            if ended.any():
                further = ended & (arrival.t > kept.t[np.arange(len(alive)), kept.count - 1])
                kept.add(further, arrival.t, arrival.q, arrival.v, arrival.notes, arrival.p)
                kept.outcome = np.where(ended, arrival.outcome, kept.outcome)
                alive &= ~ended
                if alive.any():
                    self.stepper.rest(ended)
            if not (met & alive).any():
                return arrival

    def _record(self, arrival: Arrival, crossed: np.ndarray) -> dict[int, MetEvent]:
        """Keep the events that systems met; the last of each system by its number."""
        here = {}
        for i, k in zip(*(x.tolist() for x in np.nonzero(crossed)), strict=True):
            p = self._parameters(arrival)[i] if self.changes else None
            here[i] = MetEvent(k, i, float(arrival.t[i]), arrival.q[i].copy(), arrival.v[i].copy(), p)
            self.kept.met.append(here[i])
        return here

    # changes

    def _jump(self, arrival: Arrival, crossed: np.ndarray, here: dict[int, MetEvent]) -> np.ndarray:
        """Apply the transitions of the events met (B, ne); return which (B,) systems end there."""
        groups, B = grouped(self.transitions, crossed), len(self.alive)
        jumping = np.any([mask for _, mask in groups], axis=0) if groups else np.zeros(B, dtype=bool)
        ended, rows = np.zeros(B, dtype=bool), np.flatnonzero(jumping)
        if not len(rows):
            return ended
        gathers, when = self.accumulation.note(rows, arrival.t[rows])  # `rows` are in order
        limit = np.zeros(B, dtype=bool)
        limit[rows[gathers]] = True
        if gathers.any():
            self.accumulation.forget(rows[gathers])
        v, p = arrival.v.copy(), self._parameters(arrival)
        for transition, mask in groups:
            for limits, act in ((False, transition.apply), (True, transition.limit)):
                at = np.flatnonzero(mask & (limit == limits) & ~ended)
                if not len(at):
                    continue
                moment = Moment(at, arrival.t[at], arrival.q[at], v[at], p[at], crossed[at], self.tau[at])
                jump: Jump | None = act(moment)
                if jump is not None and not limits:
                    last, left = self._last_bounces(transition, moment, jump)
                    limit[at[last]] = True  # those are done in the next round
                    when[np.searchsorted(rows, at[last])] = (moment.t + left)[last]
                    if last.all():
                        continue
                    at, moment, jump = at[~last], moment.of(~last), jump.of(~last)
                if jump is None:
                    ended[at], arrival.outcome[at] = True, Outcome.ACCUMULATED
                    told = dict(zip(rows.tolist(), when.tolist(), strict=True))
                    self.kept.accumulated |= {int(i): told[int(i)] for i in at}
                    continue
                v[at], p[at] = jump.v, jump.p
                if self.changed is not None:
                    self.changed(transition, moment, jump, act == transition.limit)
                for i, impulse in zip(at, () if jump.impulse is None else jump.impulse, strict=False):
                    here[int(i)].impulse = impulse
                if jump.failed is not None and jump.failed.any():
                    ended[at[jump.failed]], arrival.outcome[at[jump.failed]] = True, Outcome.NO_JUMP
                    self.kept.message = self.kept.message or jump.message
        goes_on = jumping & ~ended
        for i in np.flatnonzero(goes_on):
            here[int(i)].jump = v[i].copy(), p[i].copy()
        if goes_on.any():
            self.stepper.change(goes_on, v, p)
        return ended

    def _last_bounces(self, transition: Transition, at: Moment, jump: Jump) -> tuple[np.ndarray, np.ndarray]:
        """Which (k,) systems bounce for the last time, and the time (k,), s, that all further flights would take."""
        before, after = transition.approach(at, at.v), transition.approach(at, jump.v)
        if before is None or after is None:
            return np.zeros(len(at.t), dtype=bool), np.zeros(len(at.t))
        size = np.abs(at.q).max(axis=1, initial=0.0)
        return self.accumulation.too_short(id(transition), at.systems, at.t, before, after, size)

    def _updated(self, t: float, q: np.ndarray, v: np.ndarray, p: np.ndarray | None) -> np.ndarray:
        """Rates (B, nv) after what changes at a break or the start; the stepper gets the new parameters."""
        acting = self.updates.get(t, ())
        if not acting:
            return v
        systems = np.flatnonzero(self.alive)
        new_v, new_p = v.copy(), np.array(self.p if p is None else p)
        for transition in acting:
            none = np.zeros((len(systems), len(self.stops)), dtype=bool)
            when = np.full(len(systems), t)
            state = (when, q[systems], new_v[systems], new_p[systems])
            moment = Moment(systems, *state, none, self.tau[systems])
            jump = transition.apply(moment)
            if self.changed is not None:
                self.changed(transition, moment, jump, False)
            new_v[systems], new_p[systems] = jump.v, jump.p
            if jump.failed is not None and jump.failed.any():
                raise InputError(f"simulate: at t = {t:.6g} s {jump.message}")
            if t == self.start and jump.impulse is not None:
                self._record_impacts(q, v, np.array(self.p), jump, systems)
        self.p = new_p
        self.stepper.change(self.alive, new_v, new_p)
        return new_v

    def _record_impacts(self, q: np.ndarray, v: np.ndarray, p: np.ndarray, jump: Jump, systems: np.ndarray) -> None:
        """Keep the impacts of rows with laws at the start as events of the rows, which are the last of all events."""
        assert jump.impulse is not None
        size = np.abs(jump.impulse)
        for k in np.flatnonzero(size.any(axis=1)):
            i, row = int(systems[k]), len(self.stops) - size.shape[1] + int(np.argmax(size[k]))
            after = jump.v[k].copy(), jump.p[k].copy()
            self.kept.met.append(MetEvent(row, i, self.start, q[i], v[i], p[i], after, jump.impulse[k]))

    def _parameters(self, arrival: Arrival) -> np.ndarray:
        """Free parameters (B, np) where the systems are."""
        return np.zeros((len(self.alive), 0)) if arrival.p is None else np.array(arrival.p)


def _crossed(arrival: Arrival, events: int) -> np.ndarray:
    """Which events (B, ne) the systems met."""
    if arrival.crossed is not None:
        return arrival.crossed
    return np.asarray(arrival.event[:, None] == np.arange(events))
