"""`cd.simulate`: simulate a mechanism, or a batch of them."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from cardan.errors import (
    DeviceError,
    DeviceMemoryError,
    FileError,
    InputError,
    InterruptedRunError,
    SimulationError,
    no_such_argument,
)
from cardan.formulation.formulation import Formulation
from cardan.integrate.course import changes_parameters, course_of
from cardan.integrate.driver import RunSamples, drive, stops_of
from cardan.integrate.events import Event, require_functions
from cardan.integrate.inputs import GivenInput, read_inputs, sampled_updates, snapped
from cardan.integrate.integrators import (
    DOUBLE,
    EVENTS,
    Integrator,
    Request,
    find_integrator,
    option_example,
    require_gpu,
    require_precision,
    require_step,
)
from cardan.integrate.modes.events import users_events, with_law_events
from cardan.integrate.row_changes import RowChangingStepper
from cardan.integrate.stepper import Outcome, Stepper
from cardan.integrate.transition import Transition
from cardan.machines.cuda.place import Place, place_of
from cardan.model.memory import require_model
from cardan.model.model import Model, State
from cardan.model.modes import has_modes, with_modes
from cardan.model.parameter import STATE
from cardan.model.values import batch, floats, number, one, shown
from cardan.on_card import is_device_array
from cardan.results.ends import warn_of_ends
from cardan.results.energy_balance import EnergyBalance, energy_balance, warn_of_energy
from cardan.results.failure import require_consistent, require_smooth_motions, warn_of_undefined_events, why
from cardan.results.laws import law_statistics
from cardan.results.progress import Report, progress_bar
from cardan.results.replay import Replay
from cardan.results.trajectory.interpolation import Knots
from cardan.results.trajectory.quantities import with_values
from cardan.results.trajectory.store import Store
from cardan.results.trajectory.trajectory import EventRecord, Trajectory
from cardan.structure.assemble import assemble as assembled
from cardan.structure.assemble import hint_at_degrees, named_state, project_velocity, read_configuration, read_rates
from cardan.structure.condition import take_as_closed, warn_of_condition
from cardan.structure.formulation import formulation_of
from cardan.structure.kernels import parameter_arguments
from cardan.structure.planarity import prepare
from cardan.structure.redundancy import require_motion
from cardan.structure.rounding import warn_outside
from cardan.structure.row_sets import is_settled

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from cardan.structure.assemble import Start

FEW_SAMPLES = 64  # of every system fit in a GPU's memory together
CHUNK = 16_384  # systems that are integrated together: their states fit into the processor's cache
MEMORY = 4 << 30  # bytes: more samples than that are refused unless they are stored in a file
MOST_SAMPLES = 10_000_000


def simulate(
    model: Model,
    duration: float,
    q0: Start = None,
    v0: ArrayLike | Mapping[str, Any] | None = None,
    *,
    tau: ArrayLike | None = None,
    formulation: str | Formulation = "spatial",
    method: str | Integrator = "dormand_prince",
    step: float | None = None,
    rtol: float = 1e-8,
    atol: float = 1e-10,
    max_step: float = np.inf,
    max_steps: int | None = None,
    samples: int | Sequence[float] | np.ndarray = 501,
    start: float = 0.0,
    breaks: Sequence[float] = (),
    events: Sequence[Event] = (),
    inputs: Mapping[str, Any] | None = None,
    assemble: bool = False,
    sensitivities: Sequence[str] | str = (),
    failures: str = "raise",
    store: Any = None,
    overwrite: bool = False,
    threads: int | None = None,
    device: str | None = None,
    precision: str = "float64",
    progress: bool | None = None,
    **removed: Any,
) -> Trajectory:
    """Simulate a mechanism, or a batch of systems, for a duration.

    Args:
        model: the mechanism; its free parameters (`model.free(...).at(...)`) may be a batch too.
        duration: simulated time, s.
        q0: configurations (..., nq), rad and m; by default the joints' start values, assembled. Coordinates of some
            joints by name, `{"A": 0.3, "B": cd.deg(30)}`, are kept, and the others assembled from their start. Or a
            `cd.State`, as `model.state(...)` gives, or the name of one of `model.states`.
        v0: velocities (..., nv), rad/s and m/s; at rest by default, as far as prescribed motions allow. They must fit
            loops and couplings; `assemble=True` takes the nearest that do. Rates of some joints by name, `{"A": 2.0}`,
            are kept, and the others are what loops make them.
        tau: constant drives (..., nv), N m and N; rows are systems, not times (`run.settings["batch"]` tells which
            arguments made the batch). Drives that vary with time are elements of the model.
        formulation: "spatial", "newton_euler", "absolute", "absolute_body", "relative", "points",
            or one of your own.
        method: the integrator, by name or as an object with its options: "dormand_prince" (explicit, order 5, chooses
            its steps; `cd.DormandPrince`), "rk4" (`cd.RK4`), "euler" (`cd.SemiImplicitEuler`), "moreau" (steps that
            contain impacts and friction; `cd.Moreau`), "gear" (BDF on the differential-algebraic equations, for stiff
            mechanisms; `cd.Gear`), "alpha" (generalised-alpha; `cd.Alpha`), "bdf", "adams" (trees only; `cd.BDF`,
            `cd.Adams`), or one of your own.
        step: length of the steps of "rk4", "euler", "moreau" and "alpha", s; of the others the first step. The last
            step before a break, an event or the end is shorter.
        rtol: relative tolerance of the methods that choose their steps.
        atol: absolute tolerance, rad and m, rad/s and m/s.
        max_step: longest step, s.
        max_steps: stop a system after this many steps.
        samples: number of samples, evenly spaced from start to end, or their times, s. They change no step: one inside
            a step is computed by a shorter step from its start, or interpolated by SUNDIALS.
        start: time at the start, s.
        breaks: times, s, of discontinuities: every method ends a step exactly there and restarts.
        events: events to look for (`cd.Event`).
        inputs: values of free parameters and variables over time, by name: `{"motor.command": (times, values)}`, times
            (n,) in s and values (n,) or (..., n), for every system of a batch its own. They are held from one time to
            the next, or follow straight lines where the variable was declared `linear`.
        assemble: first bring q0 and v0 onto the loops.
        sensitivities: "q0", "v0", "tau", "parameters": what the samples are differentiated by, exactly, for the steps
            that were taken; the results are in `run.sensitivity`. Explicit methods only. `run.gradient` needs none.
        failures: "raise" an error if a system of a batch fails, after all others have ended; or "keep" them and
            report in `run.outcome`.
        store: write a batch to this NetCDF file chunk by chunk, for results larger than memory.
        overwrite: whether an existing file may be replaced.
        threads: number of threads for a batch; all cores by default.
        device: "gpu", or "gpu:1" for the second one, computes the steps of all systems there, with the same results
            to the bit; "cpu" by default. States on a GPU are run there. The trajectory is NumPy's (docs/gpu.md).
        precision: "float32" computes steps of fixed length (rk4, euler) in float32, for speed on a GPU. Time, positions
            and velocities are carried as pairs of numbers, so that only the accelerations are rounded to float32.
            Events, breaks and samples are computed in float64 all the same.
        progress: show a progress bar; by default on a terminal and in a notebook, for long runs.
        **removed: arguments that were removed; an error says what to give instead.

    Raises:
        SimulationError: a system did not reach the end; `error.partial` is what was computed until then.

    """
    require_model("simulate", model)
    _reject_removed(removed, method)
    if failures not in ("raise", "keep"):
        raise InputError(f"simulate: failures must be 'raise' or 'keep', got {failures!r}")
    q0, v0, tau, threads = _from_cards(q0, v0, tau, device, threads, find_integrator(method))
    job = plan(
        model, duration, formulation=formulation, method=method, step=step, rtol=rtol, atol=atol, max_step=max_step,
        max_steps=max_steps, samples=samples, start=start, breaks=breaks, events=events, inputs=inputs,
        threads=threads, keep=failures == "keep", precision=precision,
    )  # fmt: skip
    wanted = (sensitivities,) if isinstance(sensitivities, str) else tuple(_listed("sensitivities", sensitivities))
    if wanted:
        _require_sensitivities(job, wanted, store)
        if precision != DOUBLE:
            raise InputError("simulate: sensitivities are of steps in float64; leave out precision='float32'")
    job, states = job.started(q0, v0, tau, assemble)
    label = f"{model.name}, {len(states.q)} systems" if len(states.q) > 1 else model.name
    begin, end = float(job.times[0]), float(job.times[-1])
    with progress_bar(progress, label, end - begin) as show:
        report: Report = lambda t: show(t - begin)
        if store is not None:
            return _stored(job, states, store, overwrite, report)
        each = model.nq + model.nv + (model.parameters.size if job.changes else 0)
        size = 8 * len(states.q) * len(job.times) * each
        if size > MEMORY:
            raise InputError(
                f"simulate: {len(states.q)} systems at {len(job.times)} times take {size / 1e9:.1f} GB; take fewer "
                "samples, or give store='run.nc' to write them to a file"
            )
        run, balance = job.run(states, report)
    if wanted:
        from cardan.results.motion_derivatives import sensitivities_of

        run.sensitivity = sensitivities_of(run, wanted)
    return warn_of_energy(run, balance, job.integrator, job.request)


def plan(
    model: Model, duration: float, *, formulation: str | Formulation = "spatial",
    method: str | Integrator = "dormand_prince", step: float | None = None, rtol: float = 1e-8, atol: float = 1e-10,
    max_step: float = np.inf, max_steps: int | None = None, samples: int | Sequence[float] | np.ndarray = 501,
    start: float = 0.0, breaks: Sequence[float] = (), events: Sequence[Event] = (),
    inputs: Mapping[str, Any] | None = None, threads: int | Place | None = None, keep: bool = False,
    precision: str = DOUBLE,
) -> Job:  # fmt: skip
    """A run without its start: the arguments of `simulate` that do not depend on it, checked."""
    integrator = find_integrator(method)
    require_step(integrator, step)
    require_gpu(integrator, threads)
    require_precision(integrator, precision)
    start = number("simulate", "start", start, "of seconds")
    if np.ndim(duration) == 1:
        raise InputError(
            f"simulate: duration is one number of seconds, got {shown(duration)}; the start is start=..., and times of "
            "results are samples=..."
        )
    duration = number("simulate", "duration", duration, "of seconds", above=0)
    events, breaks = _events(events), _listed("breaks", breaks)
    told = one("simulate", "breaks", breaks, len(breaks)).tolist()
    breaks = tuple(told)
    times = _times(start, duration, samples)
    model = _with_laws(model, integrator, precision)
    given = tuple(x.snapped(times) for x in read_inputs(model, {} if inputs is None else inputs))
    sampled = [(snapped(at, times), change) for at, change in sampled_updates(model, start, start + duration)]
    updates = np.concatenate([np.zeros(0), *(x.times for x in given), *(at for at, _ in sampled)])
    breaks = (*breaks, *updates.tolist())
    request = Request(step, rtol, atol, max_step, max_steps, events, threads, stops_of(times, breaks), precision)
    _require_steps(integrator, step, max_step, start, duration)
    _require_states(model, integrator, precision)
    if has_modes(model):
        request = replace(request, events=with_law_events(model, events))
    found = formulation_of(model, formulation)
    prepare(model, found)
    require_smooth_motions(model, start, start + duration)
    if model.has_rows:
        require_motion(model.unbound, (start, start + duration))
    warn_of_condition(model, found)
    take_as_closed(model)  # the start is checked later, and rejected if a loop is open
    if events:
        require_functions(model, events)
    settings = {**integrator.options, "rtol": rtol, "atol": atol, "start": start, "duration": duration}
    for name, value in (("step", step), ("max_step", max_step), ("max_steps", max_steps), ("breaks", told),
                        ("precision", precision), ("inputs", [x.name for x in given])):  # fmt: skip
        if value not in (None, np.inf, [], DOUBLE):
            settings[name] = value
    about = {"method": integrator.name, "formulation": found.name, "settings": settings}
    return Job(model, integrator, found, request, (), times, breaks, about, keep, given, tuple(sampled))


@dataclass(frozen=True)
class _States:
    """Start of B systems: q (B, nq), v (B, nv), drives (B, nv) and free parameters (B, np) or None."""

    q: np.ndarray
    v: np.ndarray
    tau: np.ndarray
    parameters: np.ndarray | None
    inputs: tuple[GivenInput, ...] = ()

    def part(self, lo: int, hi: int) -> _States:
        """The systems from `lo` to `hi`."""
        p = None if self.parameters is None else self.parameters[lo:hi]
        inputs = tuple(x.part(lo, hi) for x in self.inputs)
        return _States(self.q[lo:hi], self.v[lo:hi], self.tau[lo:hi], p, inputs)


@dataclass(frozen=True)
class Job:
    """A run to be computed."""

    model: Model
    integrator: Integrator
    formulation: Formulation
    request: Request
    batch: tuple[int, ...]
    times: np.ndarray
    breaks: tuple[float, ...]
    about: dict[str, Any]
    keep: bool
    inputs: tuple[GivenInput, ...] = ()
    sampled: tuple[tuple[np.ndarray, Transition], ...] = ()

    def started(self, q0: Any, v0: Any, tau: Any, assemble: bool) -> tuple[Job, _States]:
        """The run of systems from their start, all of one batch shape, and that start, checked."""
        named = _by_name(self.model, q0, v0, float(self.times[0]))
        start = float(self.times[0])
        systems, states = _states(self.model, *named, tau, start, assemble, self.request.threads, self.inputs)
        if not systems:
            return self, states
        rows: dict[str, Any] = {
            "q0": read_configuration("simulate", "q0", self.model, q0)[0],
            "v0": read_rates("simulate", "v0", self.model, q0, v0)[0],
            "tau": tau,
        }
        batch = [k for k, a in rows.items() if np.ndim(a) > 1] + ["parameters"] * bool(self.model.batch)
        batch += ["inputs"] * any(x.batch for x in self.inputs)
        settings = {**self.about["settings"], "batch": ", ".join(batch)}
        return replace(self, batch=systems, about={**self.about, "settings": settings}), states

    def run(self, states: _States, report: Report) -> tuple[Trajectory, EnergyBalance]:
        """Run all systems, a chunk at a time, in memory; also return the energy balance."""
        kept = self.in_parts(states, self.chunk, report)
        failures = _Failures()
        failures.add(kept)
        run = self.trajectory(kept, states, self.batch)
        balance = energy_balance(run, kept, self.integrator, self.request)
        run._note(balance.statistics)
        if self.integrator.laws == "steps":
            run._note(law_statistics(self.model, kept, self.integrator.name))
        run._changes, run._events = kept.p is not None, users_events(self.request.events)
        if self.request.precision == DOUBLE:
            run._replay = Replay(
                self.model, self.integrator, self.formulation, self.request, self.times, self.breaks, states.q,
                states.v, states.tau, states.parameters, int(kept.steps.max()), states.inputs, self.sampled,
            )  # fmt: skip
        warn_of_undefined_events(self.model.unbound, self.request.events, kept, states.parameters)
        return self.finished(run, states, failures, kept), balance

    @property
    def chunk(self) -> int:
        """How many systems are integrated together: on a GPU as many as fit in its memory."""
        place = self.request.threads
        if not isinstance(place, Place):
            return CHUNK
        from cardan.integrate.explicit.card_run import systems_at_once

        nq, nv, p = self.model.nq, self.model.nv, self.model.parameters
        numbers = 2 * (nq + 4 * nv + 2 * len(self.request.events) + 16) + (p.size if p else 0)
        return systems_at_once(8 * (numbers + min(len(self.times), FEW_SAMPLES) * (nq + nv + 2)), place)

    def in_parts(self, states: _States, size: int, report: Report) -> RunSamples:
        """Run some systems at a time, one part after the other, until interrupted."""
        return _joined([kept for _, _, kept in self.parts(states, size, report)], len(states.q))

    def parts(self, states: _States, size: int, report: Report) -> Iterator[tuple[int, _States, RunSamples]]:
        """The number of the first of some systems, their start and their run, until interrupted.

        Where a GPU has too little memory fewer systems are taken at a time. If it fails, or not even one system fits,
        the run ends there, with what the largest part had.
        """
        lo, last, first = 0, None, None  # `first`: the largest part that was tried from `lo` on
        while lo < len(states.q):
            part, kept, error = states.part(lo, lo + size), None, None
            try:
                kept = self.integrate(part, report)
            except DeviceError as found:
                error = found
            scarce = isinstance(error, DeviceMemoryError) if kept is None else kept.scarce
            if kept is not None and scarce:
                first = first or (lo, part, kept)
            if scarce and len(part.q) > 1:
                size = -(-len(part.q) // 2)
                continue
            if kept is None or scarce:
                if first is not None:
                    yield first
                elif last is not None:
                    last.interrupted, last.broken = True, str(error)
                elif error is not None:
                    raise error
                return
            yield lo, part, kept
            if kept.interrupted:
                return
            lo, last, first = lo + len(part.q), kept, None

    def integrate(self, states: _States, report: Report) -> RunSamples:
        """Run one chunk; its systems one by one if the integrator takes them so, or their rows change on the way."""
        settled = is_settled(self.model)
        if not settled and isinstance(self.request.threads, Place):
            raise InputError(
                f"simulate: model {self.model.name!r} changes its independent constraints on the way, so that its "
                f"systems run one by one, on the CPU; leave out device='{self.request.threads}'"
            )
        if (self.integrator.one_at_a_time or not settled) and len(states.q) > 1:
            return self.in_parts(states, 1, report)
        model = self.model if states.parameters is None else with_values(self.model, states.parameters)
        course = course_of(
            model, self.formulation, self.integrator, self.request, states.tau, self.times, self.breaks, states.inputs,
            self.sampled,
        )  # fmt: skip

        def make(one: Model) -> Stepper:
            return self.integrator.stepper(one, self.formulation, self.request, states.tau)

        stepper = make(model) if settled else RowChangingStepper(model, make)
        kept = drive(
            stepper, states.q, states.v, self.times, breaks=self.breaks, report=report, **course.arguments
        )  # fmt: skip
        kept.end_where_unbounded([x.name for x in model.parameters for _ in range(x.size)])
        return kept

    @property
    def changes(self) -> bool:
        """Whether free parameters may change during the run."""
        return changes_parameters(self.model, self.request, self.inputs, self.sampled)

    def trajectory(self, kept: RunSamples, states: _States, batch: tuple[int, ...]) -> Trajectory:
        """The samples as a trajectory."""
        most = max(int(kept.count.max()), 1)
        short = (kept.count < most).any() or (kept.t[:, :most] != self.times[:most]).any()
        shape = (*batch, most)
        more = (None if x is None else x.reshape(*batch, *x.shape[1:]) for x in (kept.knot_after, kept.knot_p))
        at_breaks = (x.reshape(*batch, *x.shape[1:]) for x in (kept.knot_q, kept.knot_v))
        knots = Knots(kept.knots, *at_breaks, *more) if len(kept.knots) else None
        p = None if kept.p is None or not kept.p.shape[-1] else _read_only(kept.p[:, :most].reshape(*shape, -1))
        return Trajectory(
            self.model,
            kept.t[:, :most].reshape(shape) if short else self.times[:most],
            _read_only(kept.q[:, :most].reshape(*shape, -1)),
            _read_only(kept.v[:, :most].reshape(*shape, -1)),
            tau=states.tau.reshape(*batch, -1) if states.tau.any() else None,
            parameters=p,
            events=self.records(kept, batch),
            outcome=_texts(kept).reshape(batch),
            statistics={"steps": int(kept.steps.sum()), "most_steps": int(kept.steps.max())},
            knots=knots,
            **self.about,
        )

    def records(self, kept: RunSamples, batch: tuple[int, ...], first: int = 0) -> list[EventRecord]:
        """The events met, by system and time."""
        names = [event.name for event in self.request.events]
        met = sorted(kept.met, key=lambda m: (m.system, m.t))
        numbers = np.array([first + m.system for m in met], dtype=int)
        systems = (
            zip(*(x.tolist() for x in np.unravel_index(numbers, batch)), strict=True) if batch else [()] * len(met)
        )
        return [
            replace(EventRecord(names[m.event], at, m.t, m.q, m.v, m.p, *(m.jump or (None, None))), impulse=m.impulse)
            for m, at in zip(met, systems, strict=True)
        ]

    def finished(self, run: Trajectory, states: _States, failures: _Failures, last: RunSamples) -> Trajectory:
        """The trajectory; raise an error if it is not complete. `last` is what was computed last."""
        if last.interrupted:
            t = float(np.nanmax(last.t))
            if last.broken:
                stored = "what was computed until then is in error.partial"
                raise SimulationError(f"simulation of {self.model.name!r}: {last.broken}; {stored}", run, t)
            done = f"interrupted after t = {t:g} s; what was computed until then is in error.partial"
            raise InterruptedRunError(f"simulation of {self.model.name!r} {done}", run, t)
        self._warn_of_accumulation(run)
        warn_of_ends(run)
        if not failures.count or self.keep:
            return run
        first, t = failures.system, failures.t
        here = states.part(first, first + 1)
        model = self.model if here.parameters is None else with_values(self.model, here.parameters[0])
        cause = why(
            model, self.integrator, self.request, failures.outcome, failures.message, t, failures.q, failures.v,
            here.tau[0],
        )  # fmt: skip
        system = tuple(map(int, np.unravel_index(first, self.batch))) if len(self.batch) > 1 else first
        more = f" and {failures.count - 1} more" if failures.count > 1 else ""
        who = f", system {system}{more}" if self.batch else ""
        raise SimulationError(f"simulation of {self.model.name!r}{who} ended at t = {t:.6g} s: {cause}", run, t)

    def _warn_of_accumulation(self, run: Trajectory) -> None:
        """Warn of systems that ended where their events accumulate."""
        texts = np.atleast_1d(np.asarray(run.outcome)).ravel()
        ended = np.flatnonzero([text.startswith(Outcome.ACCUMULATED.text) for text in texts])
        if len(ended) and not self.keep:
            more = f" and of {len(ended) - 1} more" if len(ended) > 1 else ""
            who = f", system {ended[0]}{more}" if run.batch else ""
            warn_outside(
                f"simulation of {self.model.name!r}{who}: {texts[ended[0]]}, infinitely many before that time, and the "
                "run ends there; give the event limit=, what becomes of the motion then"
            )


@dataclass
class _Failures:
    """Systems that failed: how many; of the first to end its number, time (s), state, outcome and solver's message."""

    count: int = 0
    system: int = 0
    t: float = np.inf
    q: np.ndarray = field(default_factory=lambda: np.zeros(0))
    v: np.ndarray = field(default_factory=lambda: np.zeros(0))
    outcome: Outcome = Outcome.ARRIVED
    message: str = ""

    def add(self, kept: RunSamples, lo: int = 0) -> None:
        """Count the failures in a chunk whose first system has the number `lo`."""
        early = (kept.outcome > Outcome.EVENT) & (kept.outcome < Outcome.RESTING)
        failed = np.flatnonzero(early | (kept.outcome == Outcome.NO_JUMP))
        self.count += len(failed)
        for i in failed:
            at = kept.count[i] - 1
            if kept.t[i, at] < self.t:
                self.system, self.t, self.q, self.v = lo + int(i), float(kept.t[i, at]), kept.q[i, at], kept.v[i, at]
                self.outcome, self.message = Outcome(kept.outcome[i]), kept.message


def _stored(job: Job, states: _States, path: Any, overwrite: bool, report: Report) -> Trajectory:
    """Run all systems, a chunk at a time, to a file; after Ctrl-C the file has what was computed until then."""
    events = job.request.events
    p = states.parameters
    model = job.model if p is None else with_values(job.model, p.reshape(*job.batch, p.shape[-1]))
    size = 8 * len(job.times) * (model.nq + model.nv)
    chunk = max(min(job.chunk, (MEMORY // 16) // size), 1)
    own_times = bool(events) or job.keep
    with Store(
        path, model, len(job.times) if own_times else job.times, job.batch,
        tau=states.tau.reshape(*job.batch, model.nv) if states.tau.any() else None, changes=job.changes,
        overwrite=overwrite, **job.about,
    ) as out:  # fmt: skip
        steps = most_steps = 0
        failures, balance = _Failures(), EnergyBalance()
        for lo, part, kept in job.parts(states, chunk, report):
            met = job.records(kept, job.batch, lo)
            outcome = _texts(kept).tolist()
            time = kept.t if own_times else None
            try:
                at_breaks = (kept.knot_q, kept.knot_v, kept.knot_after, kept.knot_p)
                knots = Knots(kept.knots, *at_breaks) if len(kept.knots) else None
                out.write(lo, kept.q, kept.v, time=time, outcome=outcome, events=met, knots=knots, parameters=kept.p)
            except FileError as error:
                last, t = job.trajectory(kept, part, (len(part.q),)), float(np.nanmax(kept.t))
                lost = f"the systems from {lo} to {lo + len(part.q) - 1}, which could not be written, are in"
                raise SimulationError(f"{error}; {lost} error.partial", last, t) from error
            steps, most_steps = steps + int(kept.steps.sum()), max(most_steps, int(kept.steps.max()))
            own = job if part.parameters is None else replace(job, model=with_values(job.model, part.parameters))
            here = energy_balance(own.trajectory(kept, part, (len(part.q),)), kept, job.integrator, job.request)
            balance = balance.joined(here, lo)
            failures.add(kept, lo)
            warn_of_undefined_events(model.unbound, job.request.events, kept, part.parameters)
        run = out.finish({"steps": steps, "most_steps": most_steps, **balance.statistics})
        run = job.finished(run, states, failures, kept)
    return warn_of_energy(run, balance, job.integrator, job.request)


def _with_laws(model: Model, integrator: Integrator, precision: str) -> Model:
    """The model for a run: with the modes of its rows with laws, if the integrator stops where they change."""
    if not model.laws:
        return model
    names = ", ".join(repr(law.name) for law in model.laws)
    if not integrator.laws:
        raise InputError(
            f"simulate: method {integrator.name!r} knows no hard stops, friction that sticks or locks, and model "
            f"{model.name!r} has {names}; take a built-in one"
        )
    if precision != DOUBLE:
        raise InputError(
            f"simulate: model {model.name!r} has {names}, for which steps are in float64; leave out precision"
        )
    if getattr(integrator, "baumgarte", None) is not None:
        raise InputError(f"simulate: model {model.name!r} has {names}, whose rows are projected; leave out baumgarte")
    return with_modes(model) if integrator.laws == EVENTS else model


def _texts(kept: RunSamples) -> np.ndarray:
    """What `run.outcome` says of each system (B,)."""
    outcome = kept.outcome
    if not outcome.any():
        return np.zeros(len(outcome), dtype="<U1")
    there = set(np.unique(outcome).tolist())
    texts = np.array([Outcome(o).text if o in there else "" for o in range(max(Outcome) + 1)])[outcome]
    if not kept.accumulated:
        return texts
    told = {i: f"{Outcome.ACCUMULATED.text} at t = {t:.9g} s" for i, t in kept.accumulated.items()}
    return np.array([told.get(i, text) for i, text in enumerate(texts.tolist())])


def _joined(parts: list[RunSamples], systems: int) -> RunSamples:
    """Join chunks; systems that were not reached have no samples, and the outcome says so."""
    first = parts[0]
    if len(parts) == 1 and len(first.t) == systems:
        return first
    whole = RunSamples.empty(systems, first.t.shape[1], first.q.shape[2], first.v.shape[2], first.knots)
    lo = 0
    for part in parts:
        at = slice(lo, lo + len(part.t))
        for name in ("t", "q", "v", "count", "outcome", "steps", "knot_q", "knot_v"):
            getattr(whole, name)[at] = getattr(part, name)
        whole.work[at] = part.work
        for name, noted in vars(part.notes).items():
            getattr(whole.notes, name)[at] = noted
        for met in part.met:
            met.system += lo
            whole.met.append(met)
        whole.accumulated |= {lo + i: t for i, t in part.accumulated.items()}
        if part.p is not None:
            if whole.p is None:
                whole.keep_parameters(part.p.shape[-1])
            for name in ("p", "knot_p", "knot_after"):
                getattr(whole, name)[at] = getattr(part, name)
        whole.message, whole.interrupted = whole.message or part.message, whole.interrupted or part.interrupted
        whole.broken = whole.broken or part.broken
        lo = at.stop
    whole.outcome[lo:] = Outcome.NOT_COMPUTED
    return whole


def _reject_removed(removed: dict[str, Any], method: Any) -> None:
    """Reject arguments that `simulate` does not have; for a removed one say what to give instead."""
    for name, value in removed.items():
        if example := option_example(method, name, value):
            raise InputError(f"simulate: {name} is now an option of the method: method={example}")
        known = [p.name for p in inspect.signature(simulate).parameters.values() if p.kind is not p.VAR_KEYWORD]
        raise no_such_argument("simulate", {name: value}, known)


def _from_cards(
    q0: Any, v0: Any, tau: Any, device: Any, threads: Any, integrator: Integrator
) -> tuple[Any, Any, Any, Any]:
    """States and drives as they are or, if on a GPU, fetched from there; and where to compute."""
    given = {"q0": q0, "v0": v0, "tau": tau}
    cards = set()
    for name, x in given.items():
        if is_device_array(x):
            from cardan.machines.cuda.arrays import fetched

            given[name], card = fetched("simulate", name, x)
            cards.add(card)
    if cards and device is None:
        if len(cards) > 1:
            raise InputError("simulate: q0, v0 and tau are on different GPUs; bring them to one, or give device=")
        device = f"gpu:{cards.pop()}"
        if not integrator.has_gpu:
            raise InputError(
                f"simulate: the states are on {device}, and method {integrator.name!r} computes on the CPU; give "
                "device='cpu', which copies them there"
            )
    return *given.values(), place_of("simulate", device, threads)


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


def _require_steps(integrator: Integrator, step: float | None, max_step: float, start: float, duration: float) -> None:
    """Reject steps so short that the run would never end, and a fixed length beyond the longest step allowed."""
    for name, value in (("step", None if integrator.chooses_steps else step), ("max_step", max_step)):
        if value is not None and value < 1e-15 * max(abs(start), abs(start + duration)):
            raise InputError(
                f"simulate: a {name} of {value:g} s is lost in the rounding of t = {start + duration:g} s; take longer"
            )
    if not integrator.chooses_steps and step is not None and step > max_step:
        raise InputError(
            f"simulate: method {integrator.name!r} takes steps of fixed length, and step={step:g} s is longer than "
            f"max_step={max_step:g} s; leave out max_step"
        )


def _require_states(model: Model, integrator: Integrator, precision: str) -> None:
    """Reject a method, or a precision, in which the variables of a model that have rates are not integrated."""
    named = [p.name for p in model.parameters if p.role == STATE]
    if named and not integrator.has_states:
        raise InputError(
            f"simulate: variable {named[0]!r} has a rate, and method {integrator.name!r} does not integrate such "
            "variables; take a built-in method"
        )
    if named and precision != DOUBLE:
        raise InputError(f"simulate: variable {named[0]!r} has a rate, which is integrated in float64 only")


def _require_sensitivities(job: Job, names: tuple[str, ...], store: Any) -> None:
    """Reject sensitivities that there are not."""
    from cardan.results.motion_derivatives import require_derivatives, require_names

    require_derivatives(job.integrator)
    require_names(job.model, names)
    if store is not None:
        raise InputError("simulate: sensitivities are kept in memory only; leave out store, or take fewer systems")


def _read_only(array: np.ndarray) -> np.ndarray:
    """Make an array read-only, so that a trajectory need not copy it."""
    array.flags.writeable = False
    return array


def _listed(what: str, values: Any) -> list[Any]:
    """Read a list."""
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise InputError(f"simulate: {what} must be a list, got {shown(values)}")
    return list(values)


def _events(events: Any) -> tuple[Event, ...]:
    listed = tuple(_listed("events", events))
    for event in listed:
        if not isinstance(event, Event):
            raise InputError(f"simulate: events must be a list of cd.Event(name, when), got {shown(event)} in it")
    return listed


def _by_name(model: Model, q0: Any, v0: Any, t: float) -> tuple[Any, Any]:
    """Arrays of a start that is given by name; others as they are."""
    if isinstance(q0, str):
        q0 = named_state("simulate", "q0", model, q0)
    if isinstance(q0, State):
        q0, v0 = q0.q, q0.v if v0 is None else v0
    if isinstance(q0, Mapping):
        read_configuration("simulate", "q0", model, q0)  # names this function in errors
        q0, still = assembled(model, q0, t=t)
        v0 = still if v0 is None else v0
    if isinstance(v0, Mapping):
        q0 = assembled(model, t=t)[0] if q0 is None else batch("simulate", "q0", q0, model.nq)
        v, free = read_rates("simulate", "v0", model, q0, v0)
        try:
            systems = np.broadcast_shapes(q0.shape[:-1], v.shape[:-1], model.batch)
        except ValueError:
            raise InputError(
                f"simulate: the batches do not fit together: q0 {q0.shape}, v0 {v.shape}, values of parameters "
                f"{model.batch}"
            ) from None
        v0 = project_velocity(model, q0, np.broadcast_to(v, (*systems, model.nv)), free, t)
    return q0, v0


def _states(
    model: Model, q0: Any, v0: Any, tau: Any, start: float, assemble: bool, threads: int | Place | None = None,
    inputs: Sequence[GivenInput] = (),
) -> tuple[tuple[int, ...], _States]:  # fmt: skip
    """The batch shape, and the checked start of every system."""
    if model.nv == 0:
        raise InputError(f"simulate: model {model.name!r} has no moving joint; there is nothing to simulate")
    given = (("q0", q0, model.nq), ("v0", v0, model.nv), ("tau", tau, model.nv))
    if callable(tau):
        raise InputError(
            "simulate: tau is a function, and takes constant numbers; a drive that depends on time, coordinate or rate "
            f"is an element of the model: mechanism.drive('motor', {model.coordinate_names[0]!r}, lambda t, q, v: ...)"
        )
    arrays = {
        name: batch("simulate", name, value, size, entries=model.entries(name))
        for name, value, size in given
        if value is not None
    }
    values = [p for p in parameter_arguments(model) if model.values is not None]
    try:
        systems = np.broadcast_shapes(*(a.shape[:-1] for a in (*arrays.values(), *values)), *(x.batch for x in inputs))
    except ValueError:
        shapes = ", ".join(f"{name} {a.shape}" for name, a in arrays.items())
        shapes += f", values of parameters {model.batch}" if model.batch else ""
        shapes += "".join(f", input {x.name!r} {x.batch}" for x in inputs if x.batch)
        raise InputError(f"simulate: the batches do not fit together: {shapes}") from None
    if 0 in systems:
        raise InputError(f"simulate: the batch is empty, of shape {systems}; there is nothing to simulate")
    rows = [a.ndim > 1 for a in (arrays.get("q0"), arrays.get("v0"), *values) if a is not None]
    if systems and not any(rows) and "tau" in arrays and arrays["tau"].ndim > 1:
        warn_outside(
            f"simulate: tau of shape {arrays['tau'].shape} makes {int(np.prod(systems))} systems, since its rows are "
            "systems, not times; a drive over time is an element of the model (mechanism.drive). If it is meant, give "
            "q0 these rows too"
        )
    own = model.start() if "q0" not in arrays else arrays["q0"]
    hint_at_degrees("simulate", "q0", model, own)
    v = arrays.get("v0", np.zeros(model.nv))
    if assemble or "q0" not in arrays:
        own, fitting = assembled(model, own, v, t=start)
        v = fitting if assemble or "v0" not in arrays else v  # velocities that were given are checked below
    q, v, drives = (
        np.ascontiguousarray(np.broadcast_to(a, (*systems, a.shape[-1]))).reshape(-1, a.shape[-1])
        for a in (own, v, arrays.get("tau", np.zeros(model.nv)))
    )
    p = np.broadcast_to(values[0], (*systems, values[0].shape[-1])).reshape(len(q), -1) if values else None
    require_consistent(model if p is None else with_values(model, p), q, v, start, threads)
    return systems, _States(q, v, drives, p, tuple(x.over(systems) for x in inputs))
