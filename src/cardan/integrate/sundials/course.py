"""One system on its way inside SUNDIALS: IDA or CVODE, stepped by scikit-sundae.

SUNDIALS calls back for residuals and Jacobians; here is what those calls tell of its steps, what stops it, and what
its return codes mean.
"""

from __future__ import annotations

import ctypes
import io
import math
import warnings
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from cardan.errors import InputError
from cardan.integrate.stepper import Arrival, Outcome
from cardan.model.model import Model
from cardan.structure.kernels import parameter_arguments

STILL = 1e-9  # a step shorter than this part of the time (at least 1 s) that meets no numbers will not get past them
PAUSE = 1000  # steps after which to see whether it makes sense to go on
LINEAR = (("dense", 400), ("sparse", np.inf))  # which linear solver, up to how many unknowns
CODES = {-1: Outcome.STEPS, -2: Outcome.SMALL_STEP, -3: Outcome.SMALL_STEP, -4: Outcome.NEWTON}
EVENT_MET = 2


@dataclass(frozen=True)
class Settings:
    """What every multistep method is told: tolerances on q and v (m, rad, and per s), order, steps (s)."""

    rtol: float = 1e-8
    atol: float = 1e-10
    max_order: int | None = None
    max_step: float = np.inf
    first_step: float = 0.0
    max_steps: int = 1_000_000

    def __post_init__(self) -> None:
        for name, least in (("rtol", 0.0), ("atol", 0.0), ("max_step", 0.0), ("max_steps", 0)):
            if not getattr(self, name) > least:
                raise InputError(f"{name} must be more than {least:g}, got {getattr(self, name)!r}")
        if not 0 <= self.first_step < np.inf:
            raise InputError(f"first_step must be a time in s, or 0 to have it chosen, got {self.first_step!r}")

    def options(self, highest: int) -> dict[str, Any]:
        """As SUNDIALS has them, for a method of orders up to `highest`."""
        order = highest if self.max_order is None else self.max_order
        if not 1 <= order <= highest:
            raise InputError(f"max_order must be from 1 to {highest} for this method, got {order!r}")
        return {
            "max_order": int(order),
            "max_step": 0.0 if np.isinf(self.max_step) else float(self.max_step),
            "first_step": float(min(self.first_step, self.max_step)),
            "max_num_steps": PAUSE,
        }


class NotFiniteError(Exception):
    """Raised in a callback: the equations have no finite value however short the step."""


class Progress:
    """What the callbacks learn of the solver's steps."""

    __slots__ = ("accepted", "nowhere", "steps", "tried", "y")

    def __init__(self, t: float) -> None:
        self.accepted = self.tried = t
        self.steps = 0
        self.nowhere: float | None = None
        self.y: Any = None

    def attempt(self, t: float) -> None:
        """Note a try to step to `t`: if later than the last try, that was accepted; if earlier, it was not."""
        if t > self.tried:
            self.accepted = self.tried
            self.steps += 1
        self.tried = t

    def look(self, t: float, y: np.ndarray, yp: np.ndarray, values: np.ndarray) -> None:
        """Look whether the equations have finite values at a new linearisation; stop where a step is hopeless."""
        if math.isfinite(values.sum()):
            self.nowhere = None
            return
        self.nowhere = t
        ahead = t - self.accepted
        if ahead <= STILL * max(1.0, abs(t)):
            self.y = np.where(np.isfinite(yp), y - ahead * yp, y)
            raise NotFiniteError


class Course:
    """A solver at a state; `y` (n,) is where it arrived last. `build` makes the solver when it is first needed."""

    def __init__(self, build: Callable[[], Any], progress: Progress, t: float, *start: np.ndarray) -> None:
        self.build, self.progress, self.start = build, progress, start
        self.solver: Any = None
        self.held = False
        self.t, self.y = t, start[0]
        self.outcome, self.event, self.words = Outcome.ARRIVED, -1, ""
        self.crossed: np.ndarray | None = None

    def _step(self, t: float) -> Any:
        """Let the solver go to time `t`.

        SuperLU frees memory that it has not got if it is given up before its first factors, so it is held until then.
        """
        if self.solver is None:
            self.solver = self.build()
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(self.solver))
            self.held = True
            self.solver.init_step(self.t, *self.start)
        result = self.solver.step(t)
        if self.held and self.progress.steps > 1:
            ctypes.pythonapi.Py_DecRef(ctypes.py_object(self.solver))
            self.held = False
        return result

    def advance(self, t: float) -> None:
        """Move to time `t`, to an event, or as far as it goes."""
        if self.outcome > Outcome.EVENT:
            return
        self.outcome, self.event = Outcome.ARRIVED, -1
        if t <= self.t:
            return
        try:
            result, said = _quietly(lambda: self._step(t))
        except NotFiniteError:
            self.t, self.y = self.progress.accepted, self.progress.y
            self.not_finite()
            return
        self.t, self.y = float(result.t), result.y
        if result.status == EVENT_MET:
            self.crossed = np.asarray(result.i_events[-1]) != 0
            self.outcome, self.event = Outcome.EVENT, int(np.flatnonzero(self.crossed)[0])
        elif result.status < 0 and self.progress.nowhere is not None:
            self.not_finite()
        elif result.status < 0:
            self.fail(CODES.get(result.status, Outcome.SOLVER), said or str(result.message))

    def go_on(self) -> None:
        """Forget that it paused: more steps are allowed."""
        self.outcome, self.words = Outcome.ARRIVED, ""

    def reached(self, q: np.ndarray, v: np.ndarray, steps: int) -> Reached:
        """Where this is in the tree's coordinates."""
        return Reached(self.t, q, v, steps, self.outcome, self.event, self.words, self.crossed)

    def fail(self, outcome: Outcome, words: str) -> None:
        """Stop here."""
        self.outcome, self.words = outcome, words

    def not_finite(self) -> None:
        """Stop: there is nothing to go on with."""
        self.fail(Outcome.NOT_A_NUMBER, f"the equations of motion have no finite value at t = {self.t:.9g} s")


@dataclass
class Reached:
    """Where one system is, in the tree's coordinates."""

    t: float
    q: np.ndarray
    v: np.ndarray
    steps: int
    outcome: Outcome = Outcome.RESTING
    event: int = -1
    words: str = ""
    crossed: np.ndarray | None = None


class Run(Protocol):
    """One system on its way."""

    def advance(self, t: float) -> Reached:
        """Move to time `t`, s, to an event, or as far as it goes."""


def _together(crossed: list[np.ndarray | None]) -> np.ndarray | None:
    """The events (B, ne) that systems met, none of those that met none."""
    some = next((mask for mask in crossed if mask is not None), None)
    return None if some is None else np.stack([some & False if mask is None else mask for mask in crossed])


class Serial:
    """Systems integrated one after another; `start` puts one of them on its way."""

    def __init__(self, model: Model, tau: Any) -> None:
        self.model = model
        self.tau = np.zeros(model.nv) if tau is None else np.asarray(tau, dtype=float)
        self.runs: list[Run] = []
        self.reached: list[Reached] = []
        self.resting = np.zeros(0, dtype=bool)

    def start(self, loads: Sequence[np.ndarray], at: Reached) -> Run:
        """Put a system on its way; `loads` are its drives and free parameters."""
        raise NotImplementedError

    def begin(self, t: float, q: np.ndarray, v: np.ndarray) -> None:
        """Start at a consistent state: q (B, nq), v (B, nv), time in s."""
        q, v = np.array(q, dtype=float), np.array(v, dtype=float)
        if len(self.resting) != len(q):
            self.resting = np.zeros(len(q), dtype=bool)
        arrays = (self.tau, *parameter_arguments(self.model))
        wide = [np.ascontiguousarray(np.broadcast_to(a, (len(q), a.shape[-1]))) for a in arrays]
        taken = [r.steps for r in self.reached] or [0] * len(q)
        self.reached = [Reached(float(t), q[k], v[k], taken[k]) for k in range(len(q))]
        self.runs = [
            self.start(tuple(a[k] for a in wide), at) if moves else Still(at)
            for k, (at, moves) in enumerate(zip(self.reached, ~self.resting, strict=True))
        ]

    def advance(self, t: float) -> Arrival:
        """Move every system to time `t`, s, or to an event before it."""
        self.reached = r = [run.advance(float(t)) for run in self.runs]
        return Arrival(
            np.array([x.t for x in r]),
            np.stack([x.q for x in r]),
            np.stack([x.v for x in r]),
            np.array([int(x.outcome) for x in r]),
            np.array([x.event for x in r]),
            np.array([x.steps for x in r]),
            next((x.words for x in r if x.words), ""),
            _together([x.crossed for x in r]),
        )

    def rest(self, systems: np.ndarray) -> None:
        """From now on leave some systems, a mask (B,), where they are, also after another `begin`."""
        self.resting = self.resting | systems
        for k in np.flatnonzero(systems):
            self.runs[k] = Still(self.reached[k])

    def settled(self, t: np.ndarray, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The samples as they are: the solver ends on the constraints."""
        return q, v, np.zeros(t.shape, dtype=bool)


class Still:
    """A system that stays where it is."""

    def __init__(self, at: Reached) -> None:
        self.at = Reached(at.t, at.q, at.v, at.steps)

    def advance(self, t: float) -> Reached:
        """Stay."""
        return self.at


def make(build: Callable[..., Any], function: Callable[..., None], **options: Any) -> Any:
    """Make a solver; its hints about options are not for the user."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return build(function, **options)


def linear_solver(n: int) -> str:
    """SUNDIALS' name of the linear solver for `n` unknowns."""
    return next(name for name, size in LINEAR if n <= size)


def spread(fill: Callable[..., Any], pattern: Any) -> Callable[..., None]:
    """As `fill`, which takes its inputs and an array of nonzeros by columns, into a matrix that starts as zeros."""
    columns = np.repeat(np.arange(pattern.shape[1]), np.diff(pattern.indptr))
    places = pattern.indices * pattern.shape[1] + columns
    values = np.zeros(pattern.nnz)

    def dense(*given: Any) -> None:
        fill(*given[:-1], values)
        given[-1].reshape(-1)[places] = values

    return dense


def _quietly(act: Callable[[], Any]) -> tuple[Any, str]:
    """Do something and return its result, and what SUNDIALS printed meanwhile, on one line."""
    said = io.StringIO()
    with redirect_stdout(said), np.errstate(all="ignore"):  # what is not a number is an outcome, not a warning
        result = act()
    return result, " ".join(said.getvalue().split())
