"""SUNDIALS' IDA and CVODE, stepped by scikit-sundae: one system at a time.

SUNDIALS calls back for residuals and Jacobians. This module follows its steps through these calls, stops it, and
translates its return codes.
"""

from __future__ import annotations

import ctypes
import io
import math
import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cardan.integrate.events import changed_sign
from cardan.integrate.integrators import Request
from cardan.integrate.modes.events import event_graph, keeps_side
from cardan.integrate.stepper import AT_ZERO, Arrival, EnergyNotes, Outcome, next_stop
from cardan.integrate.sundials.equations import DaeLayout, events_of_row
from cardan.model.model import Model
from cardan.structure.assemble import opened
from cardan.structure.kernels import parameter_arguments

HOPELESS = 1e-9  # relative to the time (at least 1 s): if a shorter step has no finite values, no step will
MOST_STEPS = 1_000_000  # unless the run asks for another limit
PAUSE = 1000  # steps after which SUNDIALS returns, so that it can be checked whether to go on
DENSE = 400  # unknowns up to which the linear solver takes a dense matrix
CODES = {-1: Outcome.TOO_MANY_STEPS, -2: Outcome.SMALL_STEP, -3: Outcome.SMALL_STEP, -4: Outcome.NEWTON}
EVENT_MET = 2
LOOKED_AT = 32  # every so many steps the rates are noted for the energy balance


class NotFiniteError(Exception):
    """Raised in a callback: the equations have no finite value however short the step."""


class SolverProgress:
    """What the callbacks know of the solver's steps."""

    __slots__ = ("accepted", "look", "not_finite_at", "steps", "tried", "y")

    def __init__(self, t: float, look: Callable[[np.ndarray], None]) -> None:
        self.accepted = self.tried = t
        self.look = look
        self.steps = 0
        self.not_finite_at: float | None = None
        self.y: Any = None

    def attempt(self, t: float, y: np.ndarray) -> None:
        """Note an attempt to step to `t`: if it is later than the last attempt, that one was accepted.

        `look` is called with some of the states on the way.
        """
        if t > self.tried:
            self.accepted = self.tried
            self.steps += 1
            if not self.steps % LOOKED_AT:
                self.look(y)
        self.tried = t

    def check(self, t: float, y: np.ndarray, yp: np.ndarray, values: np.ndarray) -> None:
        """Check at a new linearisation that the equations have finite values; stop if no step can reach any."""
        if math.isfinite(values.sum()):
            self.not_finite_at = None
            return
        self.not_finite_at = t
        ahead = t - self.accepted
        if ahead <= HOPELESS * max(1.0, abs(t)):
            self.y = np.where(np.isfinite(yp), y - ahead * yp, y)
            raise NotFiniteError


class Solver:
    """A SUNDIALS solver at a state; `y` (n,) is where it arrived last. `build` makes it when it is first needed.

    No step goes beyond the next of `stops`, s.
    """

    def __init__(
        self, build: Callable[[], Any], progress: SolverProgress, stops: Sequence[float], t: float, *start: np.ndarray
    ) -> None:
        self.build, self.progress, self.stops, self.start = build, progress, stops, start
        self.solver: Any = None
        self.held = False
        self.t, self.y = t, start[0]
        self.outcome, self.event, self.message = Outcome.ARRIVED, -1, ""
        self.crossed: np.ndarray | None = None

    def _step(self, t: float) -> Any:
        """Let the solver go to time `t`.

        SuperLU frees memory that it does not own if it is destroyed before its first factorisation. So a reference is
        held until then.
        """
        if self.solver is None:
            with _without_warnings():
                self.solver = self.build()
                ctypes.pythonapi.Py_IncRef(ctypes.py_object(self.solver))
                self.held = True
                self.solver.init_step(self.t, *self.start)
        stop = next_stop(self.stops, t)
        result = self.solver.step(t, tstop=float(stop) if stop < np.inf else None)
        if self.held and self.progress.steps > 1:
            ctypes.pythonapi.Py_DecRef(ctypes.py_object(self.solver))
            self.held = False
        return result

    def advance(self, t: float) -> None:
        """Move to time `t`, to an event, or as far as possible."""
        if self.outcome > Outcome.EVENT:
            return
        self.outcome, self.event = Outcome.ARRIVED, -1
        if t <= self.t:
            return
        try:
            result, printed = _quietly(lambda: self._step(t))
        except NotFiniteError:
            self.t, self.y = self.progress.accepted, self.progress.y
            self.not_finite()
            return
        self.t, self.y = float(result.t), result.y
        if result.status == EVENT_MET:
            self.crossed = np.asarray(result.i_events[-1]) != 0
            self.outcome, self.event = Outcome.EVENT, int(np.flatnonzero(self.crossed)[0])
        elif result.status < 0 and self.progress.not_finite_at is not None:
            self.not_finite()
        elif result.status < 0:
            self.fail(CODES.get(result.status, Outcome.SOLVER_FAILED), printed or str(result.message))

    def go_on(self) -> None:
        """Continue after a pause: more steps are allowed."""
        self.outcome, self.message = Outcome.ARRIVED, ""

    def arrival(self, q: np.ndarray, v: np.ndarray, steps: int) -> SystemArrival:
        """Where the system is, given its state in the tree's coordinates."""
        return SystemArrival(self.t, q, v, steps, self.outcome, self.event, self.message, self.crossed)

    def fail(self, outcome: Outcome, message: str) -> None:
        """Stop here."""
        self.outcome, self.message = outcome, message

    def not_finite(self) -> None:
        """Stop because the equations have no finite value."""
        self.fail(Outcome.NOT_FINITE, f"the equations of motion have no finite value at t = {self.t:.9g} s")


@dataclass
class SystemArrival:
    """Where one system is, in the tree's coordinates."""

    t: float
    q: np.ndarray
    v: np.ndarray
    steps: int
    outcome: Outcome = Outcome.RESTING
    event: int = -1
    message: str = ""
    crossed: np.ndarray | None = None
    work: float = 0.0
    speed: float = 0.0
    """The largest `v^T v` so far."""
    zones: np.ndarray | None = None
    """How near to zero (ne,) the value of an event that was met at a jump is rounding; 0 for the others."""


class SolverRun:
    """Base of the runs of one system by a SUNDIALS solver; `given` are its drives and free parameters."""

    progress: SolverProgress
    solver: Solver

    def __init__(self, owner: SerialStepper, given: Sequence[np.ndarray], at: SystemArrival) -> None:
        self.owner, self.parameters = owner, given[1:]
        self.about = at.q.copy()  # the tree's configuration a step ago
        self.earlier = at.steps  # steps before the solver was started
        self.work, self.speed = at.work, max(at.speed, float(at.v @ at.v))
        self.zones = at.zones

    def _silence(self, values: np.ndarray) -> None:
        """Set values of events that rest at zero since a jump to zero: SUNDIALS meets none until they are not zero."""
        if self.zones is not None:
            values[np.abs(values) <= self.zones] = 0.0

    def _noted(self, at: SystemArrival, y: np.ndarray) -> SystemArrival:
        """The arrival with the work in the solver's state `y`, and the largest speed so far; too many steps fail."""
        if at.outcome == Outcome.ARRIVED and self._steps > self.owner.max_steps:
            self.solver.fail(Outcome.TOO_MANY_STEPS, "")
            at = replace(at, outcome=Outcome.TOO_MANY_STEPS)
        self.work = float(y[-1])
        self._see(at.v)
        return replace(at, work=self.work, speed=self.speed, zones=self.zones)

    def _take_states(self, y: np.ndarray) -> None:
        """Put the states that are unknowns into the system's parameters."""
        layout = self.owner.layout
        if layout.states:
            self.parameters[0][list(layout.states)] = y[layout.x]

    def _see(self, v: np.ndarray) -> None:
        """Keep the speed of the tree if it is the largest so far."""
        self.speed = max(self.speed, float(v @ v))

    def advance(self, t: float) -> SystemArrival:
        """Move to time `t`, s, to an event, or as far as possible."""
        raise NotImplementedError

    @property
    def _steps(self) -> int:
        return self.earlier + self.progress.steps

    def _filler(self) -> Callable[..., Any]:
        """A function that fills the Jacobian as the linear solver takes it: its nonzeros by columns, or all of it."""
        fill, pattern = self.owner.jacobian, self.owner.pattern
        return fill if pattern.shape[0] > DENSE else _dense_from_nonzeros(fill, pattern)

    def _make(self, build: Callable[..., Any], function: Any, jacobian: Any, events: Any, **options: Any) -> Any:
        """Make a solver of the kind `build`, without warnings about its options: users do not set them."""
        owner = self.owner
        options = owner.options | {"jacfn": jacobian} | options
        if owner.events is not None:
            events.direction = [event.direction for event in owner.request.events]
            options |= {"eventsfn": events, "num_events": len(events.direction)}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return build(function, **options)


class SerialStepper:
    """Base of the steppers that integrate systems one after another; `start` makes the run of one of them.

    `tau` are constant drives (nv,) or (B, nv), N m and N. The step of `request` is the first one.
    """

    jacobian: Callable[..., Any]
    """Fills the nonzeros of the Jacobian, by columns."""
    pattern: Any
    """Their pattern, as a SciPy matrix."""
    layout: DaeLayout

    def __init__(self, model: Model, request: Request | None, tau: Any, max_order: int) -> None:
        self.model, self.request = model, request or Request()
        self.tau = np.zeros(model.nv) if tau is None else np.asarray(tau, dtype=float)
        asked, events = self.request, self.request.events
        self.max_steps = MOST_STEPS if asked.max_steps is None else asked.max_steps
        self.options: dict[str, Any] = {
            "max_order": max_order,
            "max_step": 0.0 if np.isinf(asked.max_step) else float(asked.max_step),
            "first_step": float(min(asked.step or 0.0, asked.max_step)),
            "max_num_steps": min(PAUSE, self.max_steps),
            "linsolver": "dense",
        }
        if self.pattern.shape[0] > DENSE:
            self.options |= {"linsolver": "sparse", "sparsity": self.pattern}
        self.events: Any = None
        if events:
            of = self.layout.of
            self.event_values = event_graph(model.unbound, of.formulation, of.rows, events)
            self.events = self.make_events(self.event_values)
        self.parameters: Sequence[np.ndarray] = parameter_arguments(model)
        self.states = list(model.parameters.states)
        self.passed: dict[int, np.ndarray] = {}  # events (ne,) that systems met where they were restarted
        self.runs: list[SolverRun | None] = []  # None for a system that stays where it is
        self.arrivals: list[SystemArrival] = []
        self.resting = np.zeros(0, dtype=bool)

    def make_events(self, graph: Any) -> Callable[..., Any]:
        """Events, a function `graph` of (t, q, v, tau, p) of the tree, as a function of (t, y, tau, about, p)."""
        return events_of_row(self.model.unbound, self.layout, graph)

    def start(self, given: Sequence[np.ndarray], at: SystemArrival) -> SolverRun:
        """Make the run of a system; `given` are its drives and free parameters."""
        raise NotImplementedError

    def begin(self, t: float, q: np.ndarray, v: np.ndarray) -> None:
        """Start at a consistent state: q (B, nq), v (B, nv), time in s."""
        q, v = np.array(q, dtype=float), np.array(v, dtype=float)
        if len(self.resting) != len(q):
            self.resting = np.zeros(len(q), dtype=bool)
        wide = self._given
        before, taken = self.arrivals, [r.steps for r in self.arrivals] or [0] * len(q)
        notes = [(r.work, r.speed) for r in self.arrivals] or [(0.0, 0.0)] * len(q)
        zones = [r.zones for r in self.arrivals] or [None] * len(q)
        self.arrivals = [
            SystemArrival(float(t), q[k], v[k], taken[k], work=work, speed=speed, zones=zones[k])
            for k, (work, speed) in enumerate(notes)
        ]
        self.passed = {} if self.events is None else self._passed(before)
        self.runs = [
            None if rests else self.start(tuple(a[k] for a in wide), at)
            for k, (at, rests) in enumerate(zip(self.arrivals, self.resting, strict=True))
        ]

    @property
    def _given(self) -> list[np.ndarray]:
        """Drives (B, nv) and free parameters (B, np) of all systems."""
        B = len(self.resting)
        return [np.array(np.broadcast_to(a, (B, a.shape[-1]))) for a in (self.tau, *self.parameters)]

    def change(self, systems: np.ndarray, v: np.ndarray, p: np.ndarray) -> None:
        """Give systems of a mask (B,) other rates v (B, nv) and free parameters p (B, np): each is started again."""
        if self.events is not None:
            for k in np.flatnonzero(systems[: len(self.runs)]):
                self.arrivals[k] = replace(self.arrivals[k], zones=self._zones(int(k)))
        if self.parameters:
            self.parameters = (np.where(systems[:, None], p, np.broadcast_to(self.parameters[0], p.shape)),)
        given = self._given
        for k in np.flatnonzero(systems[: len(self.runs)]):
            self.arrivals[k] = at = replace(self.arrivals[k], v=v[k].copy(), outcome=Outcome.RESTING, crossed=None)
            if self.runs[k] is not None:
                self.runs[k] = self.start(tuple(a[k] for a in given), at)

    def _zones(self, k: int) -> np.ndarray:
        """How near to zero (ne,) values of events are rounding where system k is: of those met here, and met before."""
        at, given = self.arrivals[k], [x[k] for x in self._given]
        kept = np.zeros(len(self.request.events)) if at.zones is None else at.zones
        if at.crossed is None:
            return kept
        size = max(1.0, float(np.abs(at.q).max(initial=0.0)), float(np.abs(at.v).max(initial=0.0)))
        g = np.abs(np.array(self.event_values(at.t, at.q, at.v, *given)).ravel())
        return np.where(at.crossed & ~keeps_side(self.request.events), AT_ZERO * size + 2 * g, kept)

    def _passed(self, before: list[SystemArrival]) -> dict[int, np.ndarray]:
        """The events (ne,), by system, between where it was and where it is restarted, which no step covers."""
        directions = np.array([event.direction for event in self.request.events])
        found = {}
        for k, pair in enumerate(zip(before, self.arrivals, strict=False)):
            given = [x[k] for x in self._given]
            g, now = (np.array(self.event_values(at.t, at.q, at.v, *given)).ravel() for at in pair)
            crossed = changed_sign(g, now, directions)
            if pair[1].zones is not None:
                crossed &= np.abs(now) > pair[1].zones
            if crossed.any() and not self.resting[k]:
                found[k] = crossed
        return found

    def advance(self, t: float) -> Arrival:
        """Move every system to time `t`, s, or to an event before it."""
        met, self.passed = self.passed, {}
        pairs = enumerate(zip(self.runs, self.arrivals, strict=True))
        self.arrivals = r = [
            replace(at, outcome=Outcome.EVENT, event=int(np.flatnonzero(met[k])[0]), crossed=met[k])
            if k in met
            else at
            if run is None
            else run.advance(float(t))
            for k, (run, at) in pairs
        ]
        if self.states:
            p = self._given[1]
            for k, run in enumerate(self.runs):
                p[k] = p[k] if run is None else run.parameters[0]
            self.parameters = (p,)
        none = np.zeros(len(r))
        return Arrival(
            np.array([x.t for x in r]),
            np.stack([x.q for x in r]),
            np.stack([x.v for x in r]),
            np.array([int(x.outcome) for x in r]),
            np.array([x.event for x in r]),
            np.array([x.steps for x in r]),
            next((x.message for x in r if x.message), ""),
            _stacked([x.crossed for x in r]),
            EnergyNotes(
                np.array([x.work for x in r]),
                np.array([x.speed for x in r]),
                none,
                none,
                none,
            ),
            self._given[1] if self.parameters else None,
        )

    def rest(self, systems: np.ndarray) -> None:
        """From now on leave some systems, a mask (B,), where they are, also after another `begin`."""
        self.resting = self.resting | systems
        for k in np.flatnonzero(systems):
            at = self.arrivals[k]
            rested = SystemArrival(at.t, at.q, at.v, at.steps, work=at.work, speed=at.speed)
            self.runs[k], self.arrivals[k] = None, rested

    def project(
        self, t: np.ndarray, q: np.ndarray, v: np.ndarray, p: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the samples unchanged: the solver ends on the constraints. Also return which left one open."""
        return q, v, opened(self.model, q, t, p)


def _stacked(crossed: list[np.ndarray | None]) -> np.ndarray | None:
    """The events (B, ne) that systems met; None if no system met any."""
    some = next((mask for mask in crossed if mask is not None), None)
    return None if some is None else np.stack([some & False if mask is None else mask for mask in crossed])


def _dense_from_nonzeros(fill: Callable[..., Any], pattern: Any) -> Callable[..., None]:
    """Make a function that fills a dense matrix of zeros from `fill`, which fills an array of nonzeros by columns."""
    columns = np.repeat(np.arange(pattern.shape[1]), np.diff(pattern.indptr))
    places = pattern.indices * pattern.shape[1] + columns
    values = np.zeros(pattern.nnz)

    def dense(*given: Any) -> None:
        fill(*given[:-1], values)
        given[-1].reshape(-1)[places] = values

    return dense


@contextmanager
def _without_warnings() -> Iterator[None]:
    """Let a solver that is made here print no warnings: it warns of events that rest at zero, which is intended.

    SUNDIALS reads this variable of the environment when a solver is made.
    """
    name = "SUNLOGGER_WARNING_FILENAME"
    if name in os.environ:
        yield
        return
    os.environ[name] = os.devnull
    try:
        yield
    finally:
        os.environ.pop(name, None)


def _quietly(act: Callable[[], Any]) -> tuple[Any, str]:
    """Call a function; return its result, and what SUNDIALS printed meanwhile, on one line."""
    printed = io.StringIO()
    with redirect_stdout(printed), np.errstate(all="ignore"):  # NaN is reported as an outcome, not as a warning
        result = act()
    return result, " ".join(printed.getvalue().split())
