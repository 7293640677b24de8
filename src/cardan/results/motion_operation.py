"""A run as an operation of libraries for automatic differentiation: from its start to its samples.

    q, v, (t) = motion(q0, v0, tau, (p))

Derivatives are by the numbers in `q0`, whose quaternions are normalised first, so that they fit the shapes of a
library. The first ones are those of the steps that were taken (`results.motion_derivatives`), forward and backward.
For higher ones the steps are written as rules, one after the other: they must have a fixed length then.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import ceil
from typing import Any

import numpy as np

from cardan.errors import InputError, no_such_argument
from cardan.formulation.coordinates import velocity_of_rates
from cardan.formulation.derivative import PARAMETERS
from cardan.formulation.differential import FREE
from cardan.formulation.quantity import Shape
from cardan.formulation.spatial import SPATIAL
from cardan.formulation.tree import RATES
from cardan.functions.differentiable import InSteps, Library, Operation, Rule
from cardan.integrate.driver import inner_breaks, sides
from cardan.integrate.explicit.derivative import StepDerivatives, step_derivatives
from cardan.integrate.stepper import ON_STEP, STRETCH
from cardan.lazy import cached_property
from cardan.machines.cuda.place import Place, place_of
from cardan.model.model import Model
from cardan.results.energy_balance import warn_of_energy
from cardan.results.motion_derivatives import (
    RunDerivatives,
    replay_of,
    require_derivatives,
    require_settled,
)
from cardan.results.simulate import Job, plan
from cardan.results.trajectory.quantities import with_values
from cardan.results.trajectory.trajectory import Trajectory
from cardan.structure.assemble import constraint_kernels
from cardan.structure.kernels import parameter_arguments, time_argument

CLOSED = 1e-10  # m or rad, and of rates: a start this near to the loops is taken as it is
NEAR = 1e-3  # within this Newton's method finds what assembly finds
FAR = 1e-6  # farther than this the derivatives of assembly are not those of the start that was given


class Motion(Operation):
    """A run of a model, with the arguments `q0`, `v0`, `tau` and, with free parameters, `p`.

    Results are the samples `q` (n, nq), `v` (n, nv) and, with events that stop, their times `t` (n,), s. A system that
    was stopped rests there: its later samples are those at the stop.
    """

    kernel = None

    def __init__(self, owner: str, job: Job) -> None:
        self.owner, self.job, self.model = owner, job, job.model.unbound
        nq, nv, n = self.model.nq, self.model.nv, len(job.times)
        self.stops = any(event.action == "stop" for event in job.request.events)
        self.results = ("q", "v", "t") if self.stops else ("q", "v")
        self.samples: dict[str, Shape] = {"q": (n, nq), "v": (n, nv), "t": (n,)}
        self.outputs = tuple(self.samples[name] for name in self.results)
        self.shapes = {"q0": (nq,), "v0": (nv,), "tau": (nv,)}
        if self.model.parameters:
            self.shapes[FREE] = (self.model.parameters.size,)
        self.arguments = tuple(self.shapes)
        self._last: tuple[Any, Run] | None = None
        self._placed: dict[Place, Motion] = {}

    def __repr__(self) -> str:
        """What it is a run of."""
        return f"<run of {self.model.name!r}>"

    def __call__(self, *arrays: np.ndarray) -> tuple[np.ndarray, ...]:
        """The samples; float32 where the arrays are."""
        run = self.run(arrays)
        return tuple(run.held[name].astype(arrays[0].dtype, copy=False) for name in self.results)

    def run(self, arrays: Sequence[np.ndarray]) -> Run:
        """The run from a start; the last one is remembered, since its derivatives are asked for next."""
        given = [np.ascontiguousarray(x, dtype=float) for x in arrays]
        key = tuple((x.shape, x.tobytes()) for x in given)
        last = self._last
        if last is None or last[0] != key:
            last = self._last = key, Run(self, given)
        return last[1]

    def on(self, place: Place) -> Motion:
        """The same with the steps taken on a card, and followed there for derivatives."""
        if place not in self._placed:
            request = replace(self.job.request, threads=place)
            self._placed[place] = Motion(self.owner, replace(self.job, request=request))
        return self._placed[place]

    def differential(self, names: Sequence[str]) -> Operation:
        """Rates of the samples."""
        return Differential(self, tuple(names), self.results)

    def transposed(self, names: Sequence[str], *, linear: bool = False) -> Operation:
        """Gradients by the start and what is given."""
        assert not linear
        return Transposed(self, tuple(names), self.results)

    @cached_property
    def steps(self) -> InSteps:
        """The run in steps of fixed length; an InputError where it has none."""
        job = self.job
        if job.integrator.chooses_steps or job.request.events or job.changes:
            reason = "events end steps early: leave them out"
            if job.changes:
                reason = "variables, inputs or events change what is between them: there are first derivatives only"
            if job.integrator.chooses_steps:
                reason = f"method {job.integrator.name!r} chooses its own: take method='rk4' with step=..."
            raise InputError(f"{self.owner}: second derivatives need steps of fixed length, and {reason}")
        stage, finish, sample = (Rule.of(self.model, job.formulation, x) for x in self.parts.quantities)
        assert job.request.step is not None
        grid, tableau = _grid(job.times, job.breaks, job.request.step), self.parts.tableau
        return InSteps(self.start, stage, finish, sample, tableau.A, tableau.c, *grid)

    @cached_property
    def parts(self) -> StepDerivatives:
        """What a run is made of."""
        job = self.job
        recorder = job.integrator.recorder(self.model, job.formulation, job.request, np.zeros((1, self.model.nv)))
        return step_derivatives(recorder.motion, recorder.tableau, ())

    @cached_property
    def start(self) -> Rule:
        """A start near the loops brought onto them, with the smallest change."""
        return Rule.of(self.model, self.job.formulation, self.parts.assembly)


class Run:
    """A run from arrays `q0`, `v0`, `tau`, (`p`) that all have the same batch axes, flattened to (B,)."""

    def __init__(self, motion: Motion, given: Sequence[np.ndarray]) -> None:
        self.motion, self.batch = motion, given[0].shape[:-1]
        B = int(np.prod(self.batch, dtype=int))
        if not B:
            raise InputError(f"{motion.owner}: the batch is empty, of shape {self.batch}; there is nothing to simulate")
        q0, v0, tau, *p = (x.reshape(B, -1) for x in given)
        self.length, self.p = _lengths(motion.model, q0), p
        self.q0 = q0 / self.length
        model = with_values(motion.model, p[0]) if p else motion.model
        t, q = float(motion.job.times[0]), self.q0
        self.gap = left = _gap(model, q, v0, t)
        if CLOSED < self.gap < NEAR:  # all at once; assembly takes them one by one
            q, v0 = motion.start(q, v0, tau, np.asarray(t), *p)
            left = _gap(model, q, v0, t)
        job, states = replace(motion.job, model=model).started(q, v0, tau, assemble=left > CLOSED)
        run, balance = job.run(states, lambda t: None)
        self.trajectory: Trajectory = warn_of_energy(run, balance, job.integrator, job.request)

    @cached_property
    def kept(self) -> np.ndarray:
        """For every sample asked for, (B, n), the number of the one that there is: after a stop the last one."""
        count = self.trajectory.valid.sum(axis=-1, keepdims=True)
        return np.minimum(np.arange(len(self.motion.job.times)), count - 1)

    @property
    def held(self) -> dict[str, np.ndarray]:
        """The samples (..., n, ...)."""
        run = self.trajectory
        return self.shaped({"q": run.q, "v": run.v, "t": np.broadcast_to(run.time, run.valid.shape)})

    def shaped(self, found: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Arrays (B, samples, ...) of the samples that there are as (..., n, ...) of those asked for."""
        each = np.arange(len(self.kept))[:, None]
        whole = {name: x[each, self.kept] for name, x in found.items()}
        return {name: x.reshape(*self.batch, *x.shape[1:]) for name, x in whole.items()}

    def derivatives(self, what: str) -> RunDerivatives:
        """The derivatives of its steps."""
        if self.gap > FAR:
            warnings.warn(
                f"{self.motion.owner}: the start given leaves loops open by {self.gap:.3g} (m, rad or rates), and "
                "derivatives by it are those at the start that was assembled; give q0, v0 = cd.assemble(model, q0, v0)",
                RuntimeWarning,
                stacklevel=2,
            )
        return RunDerivatives(replay_of(self.trajectory, what))


class Differential(Operation):
    """Rates of a run's samples along rates `d...` of some of its arguments."""

    kernel = None

    def __init__(self, motion: Motion, names: tuple[str, ...], results: tuple[str, ...]) -> None:
        self.motion, self.model, self.names, self.results = motion, motion.model, names, results
        self.shapes = _inserted(motion, {f"d{name}": motion.shapes[name] for name in names})
        self.arguments, self.linear = tuple(self.shapes), frozenset(f"d{name}" for name in names)
        self.outputs = tuple(motion.samples[name] for name in results)

    def on(self, place: Place) -> Differential:
        """The same with the work done on a card."""
        return Differential(self.motion.on(place), self.names, self.results)

    def __call__(self, *arrays: np.ndarray) -> tuple[np.ndarray, ...]:
        """The rates."""
        x, added = _parted(self.motion, arrays)
        run = self.motion.run(x)
        B, model = len(run.q0), self.model
        d = {name: np.zeros((B, *self.motion.shapes[name])) for name in self.motion.arguments}
        d |= {name: np.asarray(y, dtype=float).reshape(B, -1) for name, y in zip(self.names, added, strict=True)}
        if FREE in d:
            d[PARAMETERS] = d.pop(FREE)
        if model.quaternions:
            to_velocity = Rule.of(model, SPATIAL, velocity_of_rates(model))
            d["q0"] = to_velocity(run.q0, d["q0"] / run.length, *run.p)[0]
        found = run.derivatives("jvp").rates(d, run.trajectory.q.shape[-2])
        if model.quaternions:
            found["q"] = Rule.of(model, SPATIAL, RATES)(run.trajectory.q, found["q"], *(p[:, None] for p in run.p))[0]
        whole = run.shaped(found)
        return tuple(whole[name].astype(arrays[0].dtype, copy=False) for name in self.results)

    def transposed(self, names: Sequence[str], *, linear: bool = False) -> Operation:
        """The gradients by the rates, in which it is linear."""
        assert linear
        return Transposed(self.motion, tuple(name[1:] for name in names), self.results)

    def written(self, library: Library) -> Callable[..., Any]:
        """The same in steps."""
        run = library.rollout(self.motion.steps)

        def rates(*arrays: Any) -> Any:
            x, added = _parted(self.motion, arrays)
            of, moving = _by(self.motion, run, x, self.names)
            found = dict(zip(self.motion.results, library.jvp(of, moving, added), strict=True))
            return tuple(found[name] for name in self.results)

        return rates


class Transposed(Operation):
    """Gradients by some arguments of a run of its samples times weights `w...`; samples without weights count zero."""

    kernel = None

    def __init__(self, motion: Motion, names: tuple[str, ...], weighted: tuple[str, ...]) -> None:
        self.motion, self.model, self.names, self.weighted = motion, motion.model, names, weighted
        self.shapes = _inserted(motion, {f"w{name}": motion.samples[name] for name in weighted})
        self.arguments, self.linear = tuple(self.shapes), frozenset(f"w{name}" for name in weighted)
        self.outputs = tuple(motion.shapes[name] for name in names)

    def on(self, place: Place) -> Transposed:
        """The same with the work done on a card."""
        return Transposed(self.motion.on(place), self.names, self.weighted)

    def __call__(self, *arrays: np.ndarray) -> tuple[np.ndarray, ...]:
        """The gradients."""
        x, added = _parted(self.motion, arrays)
        run, model = self.motion.run(x), self.model
        B, samples = run.trajectory.valid.shape
        w = {name: np.zeros((B, *self.motion.samples[name])) for name in ("q", "v", "t")}
        for name, given in zip(self.weighted, added, strict=True):
            w[name] = np.asarray(given, dtype=float).reshape(w[name].shape)
        for name, each in w.items():
            if not np.isfinite(each).all():
                raise InputError(f"{self.motion.owner}: the gradient of the loss by {name} is not finite")
            total = np.zeros((B, samples, *each.shape[2:]))
            np.add.at(total, (np.arange(B)[:, None], run.kept), each)  # samples at rest are the same one
            w[name] = total
        if model.quaternions:
            of_rates = Rule.of(model, SPATIAL, RATES).transposed(("v",), linear=True)
            at = np.where(run.trajectory.valid[..., None], run.trajectory.q, 0.0)
            w["q"] = of_rates(at, w["q"], *(p[:, None] for p in run.p))[0]
        found = run.derivatives("vjp").gradient(w)
        found[FREE] = found.pop(PARAMETERS, np.zeros(0))
        if model.quaternions:
            of_velocity = Rule.of(model, SPATIAL, velocity_of_rates(model)).transposed(("qdot",), linear=True)
            found["q0"] = of_velocity(run.q0, found["q0"], *run.p)[0] / run.length
        whole = (found[name].reshape(*run.batch, -1) for name in self.names)
        return tuple(x.astype(arrays[0].dtype, copy=False) for x in whole)

    def transposed(self, names: Sequence[str], *, linear: bool = False) -> Operation:
        """The rates of the weighted samples."""
        assert linear
        return Differential(self.motion, self.names, tuple(name[1:] for name in names))

    def written(self, library: Library) -> Callable[..., Any]:
        """The same in steps."""
        assert self.weighted == self.motion.results
        run = library.rollout(self.motion.steps)

        def gradients(*arrays: Any) -> Any:
            x, added = _parted(self.motion, arrays)
            of, moving = _by(self.motion, run, x, self.names)
            return tuple(library.vjp(of, moving, added))

        return gradients


OPTIONS = (
    *(name for name in inspect.signature(plan).parameters if name not in ("model", "duration", "keep")),
    "device",
)  # of `simulate` that a differentiable run has too


def motion_of(owner: str, model: Model, duration: float, options: Mapping[str, Any]) -> Motion:
    """The operation of a run; what has no derivatives is an InputError."""
    unknown = {name: value for name, value in options.items() if name not in OPTIONS}
    if unknown:
        raise no_such_argument(owner, unknown, OPTIONS)
    given = dict(options)
    device = given.pop("device", None)
    if device is not None:
        given["threads"] = place_of(owner, device, given.get("threads"))
    job = plan(model, duration, **given)
    require_derivatives(job.integrator)
    if model.laws:
        names = ", ".join(repr(law.name) for law in model.laws)
        raise InputError(
            f"{owner}: rows with laws ({names}) add modes to the numbers of a run, which are no arguments here; take "
            "run.gradient or run.vjp of cd.simulate"
        )
    require_settled(model)
    return Motion(owner, job)


def arguments_of_run(motion: Motion, model: Model, q0: Any, v0: Any, tau: Any, p: Any) -> list[Any]:
    """The arguments in order; drives that are left out are zero, parameters have the model's values."""
    values = parameter_arguments(model)
    if p is not None and not values:
        raise InputError(f"{motion.owner}: p is given, but model {model.name!r} has no free parameter")
    rest = [] if not values else [values[0] if p is None else p]
    return [q0, v0, np.zeros(model.nv) if tau is None else tau, *rest]


def _inserted(motion: Motion, more: dict[str, Shape]) -> dict[str, Shape]:
    """The shapes of a run's arguments with more of them, ahead of the parameters."""
    own = dict(motion.shapes)
    last = {FREE: own.pop(FREE)} if FREE in own else {}
    return own | more | last


def _parted(motion: Motion, arrays: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """The arguments of a run, and those inserted ahead of its parameters."""
    last = [*arrays[-1:]] if FREE in motion.shapes else []
    return [*arrays[:3], *last], [*arrays[3 : len(arrays) - len(last)]]


def _by(motion: Motion, run: Callable[..., Any], x: Sequence[Any], names: Sequence[str]) -> tuple[Any, list[Any]]:
    """A run as a function of some of its arguments, and these."""
    places = [motion.arguments.index(name) for name in names]

    def of(*moving: Any) -> Any:
        whole = [*x]
        for k, y in zip(places, moving, strict=True):
            whole[k] = y
        return run(*whole)

    return of, [x[k] for k in places]


def _lengths(model: Model, q: np.ndarray) -> np.ndarray:
    """By which q (B, nq) must be divided to normalise its quaternions: 1 elsewhere."""
    found = np.ones_like(q)
    for at in model.quaternions:
        length = np.linalg.norm(q[:, at], axis=1, keepdims=True)
        found[:, at] = np.where(length > 0, length, 1.0)
    return found


def _gap(model: Model, q: np.ndarray, v: np.ndarray, t: float) -> float:
    """By how much states q (B, nq), v (B, nv) leave the constraints, in m, rad and their rates."""
    if not model.has_rows:
        return 0.0
    residual, rows = constraint_kernels(model)
    phi = np.asarray(residual(q, *time_argument(model, t))[0])
    J, beta = rows(q, *time_argument(model, t))
    rate = (J @ v[..., None])[..., 0] - beta
    return float(max(np.abs(phi).max(initial=0.0), np.abs(rate).max(initial=0.0)))


def _grid(times: np.ndarray, breaks: Sequence[float], step: float) -> tuple[np.ndarray, ...]:
    """Steps of fixed length as `integrate.stepper` takes them, and where the samples lie: see `InSteps`."""
    start, end = float(times[0]), float(times[-1])
    around = [sides(b, start) for b in inner_breaks(times, breaks)]
    starts, lengths = [], []
    begun, ended = [start, *(after for _, after in around)], [*(before for before, _ in around), end]
    for first, stop in zip(begun, ended, strict=True):
        count = max(ceil((stop - first) / step - (STRETCH - 1)), 1)
        at = first + step * np.arange(count)
        starts.append(at)
        lengths.append(np.diff(at, append=stop))
    t, h = np.concatenate(starts), np.concatenate(lengths)
    at = np.maximum(np.searchsorted(t, times - ON_STEP * step, side="left") - 1, 0)
    return t, h, at, np.clip(times - t[at], 0.0, h[at]), times
