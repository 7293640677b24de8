"""`cd.simulate`: integrate the motion of a mechanism, or of a batch of mechanisms."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cardan.errors import FileError, InputError, InterruptedRunError, SimulationError
from cardan.formulation.dynamics import row_count
from cardan.functions.general import formulation_key
from cardan.integrate.driver import Samples, drive
from cardan.integrate.events import Event, trace_events
from cardan.integrate.integrators import SERIAL, Request, chooses_steps, make_stepper, require_method
from cardan.integrate.stepper import Outcome
from cardan.model.model import Model
from cardan.model.values import batch, floats, number, one, shown
from cardan.results.energy_balance import warn_of_energy
from cardan.results.failure import require_consistent, require_smooth_motions, why
from cardan.results.progress import ProgressBar
from cardan.results.trajectory.quantities import with_values
from cardan.results.trajectory.store import Store
from cardan.results.trajectory.trajectory import EventRecord, Trajectory
from cardan.structure.assemble import assemble as assembled
from cardan.structure.condition import warn_of_condition
from cardan.structure.kernels import parameter_arguments
from cardan.structure.redundancy import require_motion

CHUNK = 16_384  # systems integrated together, so that their states fit in the cache
MEMORY = 4 << 30  # largest size of the samples in memory, bytes; larger runs must be stored in a file
MOST_SAMPLES = 10_000_000


def simulate(
    model: Model,
    duration: float,
    q0: Any = None,
    v0: Any = None,
    *,
    tau: Any = None,
    formulation: str = "spatial",
    frame: str = "fixed",
    method: str = "dormand_prince",
    step: float | None = None,
    rtol: float = 1e-8,
    atol: float = 1e-10,
    longest_step: float = np.inf,
    most_steps: int | None = None,
    samples: int | Sequence[float] | np.ndarray = 501,
    start: float = 0.0,
    breaks: Sequence[float] = (),
    events: Sequence[Event] = (),
    assemble: bool = False,
    baumgarte: float | None = None,
    damping: float = 0.9,
    form: str = "stabilised",
    failures: str = "raise",
    store: Any = None,
    overwrite: bool = False,
    threads: int | None = None,
    progress: bool | None = None,
) -> Trajectory:
    """Simulate a mechanism, or a batch of systems, for a duration.

    Args:
        model: the mechanism; its free parameters (`model.free(...).at(...)`) may be a batch too.
        duration: how long, s.
        q0: configurations (..., nq), rad and m; the model's own start, assembled, by default.
        v0: velocities (..., nv), rad/s and m/s; at rest by default.
        tau: constant drives (..., nv), N m and N; drives that change with time are elements of the model.
        formulation: "spatial", "newton_euler", "absolute", "relative" or, for planar mechanisms, "points".
        frame: "fixed" or "body", for the angular rates of "absolute".
        method: "dormand_prince" (explicit, order 5, chooses its steps), "rk4", "euler" (semi-implicit), "gear" (BDF
            on the differential-algebraic equations, for stiff ones), "alpha" (generalised-alpha), "bdf", "adams"
            (trees only).
        step: length of the steps of "rk4", "euler" and "alpha", s; of the others the first one.
        rtol: relative tolerance of the methods that choose their steps.
        atol: absolute tolerance, rad and m, rad/s and m/s.
        longest_step: longest step, s.
        most_steps: give up after so many steps.
        samples: how many, evenly from start to end, or their times, s.
        start: time at the start, s.
        breaks: times, s, where something jumps: every method steps on them exactly and starts anew.
        events: what to look for on the way (`cd.Event`).
        assemble: first bring q0 and v0 onto the loops.
        baumgarte: for the explicit methods, pull loops together at this rate, 1/s, instead of projecting.
        damping: spectral radius at infinity of "alpha", 0 (most damping) to 1 (none).
        form: of "gear", "stabilised" (Gear-Gupta-Leimkuhler, index 2) or "index1".
        failures: of a batch, "raise" after all other systems have ended, or "keep" and tell in `run.outcome`.
        store: write a batch to this NetCDF file as it goes, for results larger than memory.
        overwrite: whether an existing file may be replaced.
        threads: how many for a batch; all cores by default.
        progress: show a bar; by default on a terminal, when it takes long.

    Raises:
        SimulationError: a system did not reach the end; `error.partial` is what was computed until then.

    """
    require_method(method, step)
    start = number("simulate", "start", start, "of seconds")
    duration = number("simulate", "duration", duration, "of seconds", above=0)
    _require_steps(method, step, longest_step, start, duration)
    times = _times(start, duration, samples)
    key = formulation_key(formulation, frame)
    require_smooth_motions(model, start, start + duration)
    if row_count(model.unbound):
        require_motion(model.unbound)
    warn_of_condition(model, key)
    model.kernels["closed"] = True  # the start is checked here
    events, breaks = _events(events), _listed("breaks", breaks)
    breaks = tuple(one("simulate", "breaks", breaks, len(breaks)).tolist())
    if events:
        trace_events(model, events)
    systems, states = _states(model, q0, v0, tau, start, assemble)
    if failures not in ("raise", "keep"):
        raise InputError(f"simulate: failures must be 'raise' or 'keep', got {failures!r}")
    settings: dict[str, Any] = {"rtol": rtol, "atol": atol, "start": start, "duration": duration}
    if step is not None:
        settings["step"] = step
    request = Request(
        key, method, step, rtol, atol, longest_step, most_steps, events, baumgarte, damping, form, threads
    )
    about = {"method": method, "formulation": formulation, "frame": frame, "settings": settings}
    job = _Job(model, request, systems, times, breaks, about, failures == "keep")
    with ProgressBar(progress, model.name, start, float(times[-1]), len(states.q)) as bar:
        if store is not None:
            return _stored(job, states, store, overwrite, bar)
        _require_memory(model, len(states.q), len(times))
        run = job.run(states, bar)
    return warn_of_energy(run, rtol, atol) if chooses_steps(method) else run


@dataclass(frozen=True)
class _States:
    """Start of B systems: q (B, nq), v (B, nv), drives (B, nv) and free parameters (B, np) or None."""

    q: np.ndarray
    v: np.ndarray
    tau: np.ndarray
    parameters: np.ndarray | None

    def part(self, lo: int, hi: int) -> _States:
        """The systems from `lo` to `hi`."""
        p = None if self.parameters is None else self.parameters[lo:hi]
        return _States(self.q[lo:hi], self.v[lo:hi], self.tau[lo:hi], p)


@dataclass(frozen=True)
class _Job:
    """A simulation to run."""

    model: Model
    request: Request
    batch: tuple[int, ...]
    times: np.ndarray
    breaks: tuple[float, ...]
    about: dict[str, Any]
    keep: bool

    def run(self, states: _States, bar: ProgressBar) -> Trajectory:
        """Integrate all systems in memory, one chunk at a time."""
        parts = []
        for lo in range(0, len(states.q), CHUNK):
            parts.append(self.march(states.part(lo, lo + CHUNK), bar))
            if parts[-1].interrupted:
                break
        kept = _joined(parts, len(states.q))
        return self.finished(kept, self.trajectory(kept, states, self.batch), states)

    def march(self, states: _States, bar: ProgressBar) -> Samples:
        """Integrate one chunk; system by system if the method takes only one."""
        if self.request.method in SERIAL and len(states.q) > 1:
            parts = []
            for k in range(len(states.q)):
                parts.append(self.march(states.part(k, k + 1), bar))
                if parts[-1].interrupted:
                    break
            return _joined(parts, len(states.q))
        model = self.model if states.parameters is None else with_values(self.model, states.parameters)
        stops = [event.action == "stop" for event in self.request.events]
        stepper = make_stepper(model, self.request, states.tau)
        return drive(stepper, states.q, states.v, self.times, breaks=self.breaks, stops=stops, tell=bar.tell)

    def trajectory(self, kept: Samples, states: _States, batch: tuple[int, ...]) -> Trajectory:
        """The samples as a trajectory."""
        most = max(int(kept.count.max()), 1)
        short = (kept.count < most).any() or (kept.t[:, :most] != self.times[:most]).any()
        shape = (*batch, most)
        return Trajectory(
            self.model,
            kept.t[:, :most].reshape(shape) if short else self.times[:most],
            _frozen(kept.q[:, :most].reshape(*shape, -1)),
            _frozen(kept.v[:, :most].reshape(*shape, -1)),
            tau=states.tau.reshape(*batch, -1) if states.tau.any() else None,
            events=self.records(kept, batch),
            outcome=np.array([_word(o) for o in kept.outcome]).reshape(batch),
            statistics={"steps": int(kept.steps.sum()), "most_steps": int(kept.steps.max())},
            **self.about,
        )

    def records(self, kept: Samples, batch: tuple[int, ...], first: int = 0) -> list[EventRecord]:
        """The events, sorted by system and time."""
        names = [event.name for event in self.request.events]
        return [
            EventRecord(names[m.event], tuple(map(int, np.unravel_index(first + m.system, batch))) if batch else (),
                        m.t, m.q, m.v)
            for m in sorted(kept.met, key=lambda m: (m.system, m.t))
        ]  # fmt: skip

    def finished(self, kept: Samples, run: Trajectory, states: _States) -> Trajectory:
        """Return the trajectory, or raise the error that tells why it is incomplete."""
        if kept.interrupted:
            t = float(np.nanmax(kept.t))
            raise InterruptedRunError(
                f"simulation of {self.model.name!r} interrupted after t = {t:g} s; what was computed until then is "
                "in error.partial",
                run,
                t,
            )
        failed = np.flatnonzero(kept.outcome > Outcome.EVENT)
        if not len(failed) or self.keep:
            return run
        first = int(failed[np.argmin([kept.t[i, kept.count[i] - 1] for i in failed])])
        at = kept.count[first] - 1
        t = float(kept.t[first, at])
        here = states.part(first, first + 1)
        model = self.model if here.parameters is None else with_values(self.model, here.parameters[0])
        cause = why(model, self.request, Outcome(kept.outcome[first]), kept.words, t, kept.q[first, at],
                    kept.v[first, at], here.tau[0])  # fmt: skip
        system = tuple(map(int, np.unravel_index(first, self.batch))) if len(self.batch) > 1 else first
        more = f" and {len(failed) - 1} more" if len(failed) > 1 else ""
        who = f", system {system}{more}" if self.batch else ""
        raise SimulationError(f"simulation of {self.model.name!r}{who} ended at t = {t:.6g} s: {cause}", run, t)


def _stored(job: _Job, states: _States, path: Any, overwrite: bool, bar: ProgressBar) -> Trajectory:
    """Integrate all systems to a file, one chunk at a time; after a failure the file holds what was computed."""
    count, events = len(states.q), job.request.events
    model = job.model if states.parameters is None else with_values(job.model, states.parameters)
    size = 8 * len(job.times) * (model.nq + model.nv)
    chunk = max(min(CHUNK, (MEMORY // 16) // size), 1)
    own_times = bool(events) or job.keep
    with Store(
        path, model, len(job.times) if own_times else job.times, count,
        tau=states.tau if states.tau.any() else None, overwrite=overwrite, **job.about,
    ) as out:  # fmt: skip
        steps = 0
        for lo in range(0, count, chunk):
            part = states.part(lo, lo + chunk)
            kept = job.march(part, bar)
            met = job.records(kept, (count,), lo)
            outcome = [_word(o) for o in kept.outcome]
            time = kept.t if own_times else None
            try:
                out.write(lo, kept.q, kept.v, time=time, outcome=outcome, events=met)
            except FileError as error:
                last = job.trajectory(kept, part, (len(part.q),))
                t = float(np.nanmax(kept.t))
                raise SimulationError(
                    f"{error}; the systems from {lo} to {lo + len(part.q) - 1}, which could not be written, are in "
                    "error.partial",
                    last,
                    t,
                ) from error
            steps += int(kept.steps.sum())
            if kept.interrupted or (not job.keep and (kept.outcome > Outcome.EVENT).any()):
                return job.finished(kept, out.finish({"steps": steps}), part)
        return out.finish({"steps": steps})


def _joined(parts: list[Samples], systems: int) -> Samples:
    """Join chunks; systems that were never reached have no samples."""
    first = parts[0]
    if len(parts) == 1 and len(first.t) == systems:
        return first
    whole = Samples.empty(systems, first.t.shape[1], first.q.shape[2], first.v.shape[2])
    lo = 0
    for part in parts:
        at = slice(lo, lo + len(part.t))
        for name in ("t", "q", "v", "count", "outcome", "steps"):
            getattr(whole, name)[at] = getattr(part, name)
        for met in part.met:
            met.system += lo
            whole.met.append(met)
        whole.words, whole.interrupted = whole.words or part.words, whole.interrupted or part.interrupted
        lo = at.stop
    return whole


def _times(start: float, duration: float, samples: Any) -> np.ndarray:
    """Times of the samples, including start and end."""
    if not start + duration / 2 > start:
        raise InputError(
            f"simulate: a duration of {duration:g} s is lost in the rounding of a start at {start:g} s; start at 0"
        )
    if isinstance(samples, int | np.integer) and not isinstance(samples, bool):
        if samples < 2:
            raise InputError(f"simulate: samples must be 2 or more, or a list of times, got {samples}")
        if samples > MOST_SAMPLES:
            raise InputError(f"simulate: samples must be at most {MOST_SAMPLES}, or a list of times, got {samples}")
        return np.linspace(start, start + duration, int(samples))
    try:
        times = floats(samples)
    except TypeError:
        times = np.zeros(())
    if times.ndim != 1 or not np.isfinite(times).all() or (np.diff(times) <= 0).any():
        raise InputError(
            f"simulate: samples must be a number of samples or a list of increasing times, s, got {shown(samples)}"
        )
    if len(times) and (times[0] < start or times[-1] > start + duration):
        raise InputError(
            f"simulate: sample times must lie between {start:g} s and {start + duration:g} s, got {times[0]:g} to "
            f"{times[-1]:g}"
        )
    return np.unique(np.concatenate([[start], times, [start + duration]]))


def _require_steps(method: str, step: float | None, longest: Any, start: float, duration: float) -> None:
    """Refuse steps so short that adding one does not change the time: the run would never end."""
    for name, value in (("step", None if chooses_steps(method) else step), ("longest_step", longest)):
        if isinstance(value, float | int) and 0 < value < 1e-15 * max(abs(start), abs(start + duration)):
            raise InputError(
                f"simulate: a {name} of {value:g} s is lost in the rounding of t = {start + duration:g} s; take longer"
            )


def _frozen(array: np.ndarray) -> np.ndarray:
    """Make an array read-only, so that the trajectory need not copy it."""
    array.flags.writeable = False
    return array


def _listed(what: str, values: Any) -> list[Any]:
    """Require a list."""
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise InputError(f"simulate: {what} must be a list, got {shown(values)}")
    return list(values)


def _events(events: Any) -> tuple[Event, ...]:
    listed = tuple(_listed("events", events))
    for event in listed:
        if not isinstance(event, Event):
            raise InputError(f"simulate: events must be a list of cd.Event(name, when), got {shown(event)} in it")
    return listed


def _states(model: Model, q0: Any, v0: Any, tau: Any, start: float, assemble: bool) -> tuple[tuple[int, ...], _States]:
    """The batch shape, and the checked start of every system."""
    if model.nv == 0:
        raise InputError(f"simulate: model {model.name!r} has no moving joint; there is nothing to simulate")
    given = {"q0": (q0, model.nq), "v0": (v0, model.nv), "tau": (tau, model.nv)}
    arrays = {}
    for name, (value, size) in given.items():
        if value is not None:
            arrays[name] = batch("simulate", name, value, size)
    values = [p for p in parameter_arguments(model) if model.values is not None]
    try:
        systems = np.broadcast_shapes(*(a.shape[:-1] for a in (*arrays.values(), *values)))
    except ValueError:
        shapes = ", ".join(f"{name} {a.shape}" for name, a in arrays.items())
        shapes += f", values of parameters {model.batch}" if model.batch else ""
        raise InputError(f"simulate: the batches do not fit together: {shapes}") from None
    if 0 in systems:
        raise InputError(f"simulate: the batch is empty, of shape {systems}; there is nothing to simulate")
    own = model.start() if "q0" not in arrays else arrays["q0"]
    v = arrays.get("v0", np.zeros(model.nv))
    if assemble or "q0" not in arrays:
        own, v = assembled(model, own, v, t=start)
    q, v, drives = (
        np.ascontiguousarray(np.broadcast_to(a, (*systems, a.shape[-1]))).reshape(-1, a.shape[-1])
        for a in (own, v, arrays.get("tau", np.zeros(model.nv)))
    )
    p = np.broadcast_to(values[0], (*systems, values[0].shape[-1])).reshape(len(q), -1) if values else None
    require_consistent(model if p is None else with_values(model, p), q, v, start)
    return systems, _States(q, v, drives, p)


def _require_memory(model: Model, systems: int, times: int) -> None:
    size = 8 * systems * times * (model.nq + model.nv)
    if size > MEMORY:
        raise InputError(
            f"simulate: {systems} systems at {times} times take {size / 1e9:.1f} GB; take fewer samples, or give "
            "store='run.nc' to write them to a file"
        )


def _word(outcome: int) -> str:
    words = {
        Outcome.ARRIVED: "",
        Outcome.EVENT: "stopped at an event",
        Outcome.SMALL_STEP: "step size underflow",
        Outcome.NOT_A_NUMBER: "not a number",
        Outcome.NEWTON: "Newton's method failed",
        Outcome.OPEN_LOOP: "a loop opened",
        Outcome.SOLVER: "the solver gave up",
        Outcome.STEPS: "too many steps",
        Outcome.RESTING: "",
    }
    return words[Outcome(outcome)]
