"""One system on its way inside SUNDIALS: IDA or CVODE, stepped by scikit-sundae.

SUNDIALS calls back for residuals and Jacobians; here is what those calls tell of its steps, what stops it, and what
its return codes mean.
"""

from __future__ import annotations

import io
import math
import warnings
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from typing import Any

import numpy as np

from cardan.integrate.stepper import Outcome

STILL = 1e-9  # a step shorter than this part of the time (at least 1 s) that meets no numbers will not get past them
CODES = {-1: Outcome.STEPS, -2: Outcome.SMALL_STEP, -3: Outcome.SMALL_STEP, -4: Outcome.NEWTON}
EVENT_MET = 2


class NotFiniteError(Exception):
    """Raised in a callback: the equations have no finite value however short the step."""


class Progress:
    """What the callbacks learn of the solver's steps."""

    __slots__ = ("accepted", "nowhere", "steps", "tried", "y", "yp")

    def __init__(self, t: float) -> None:
        self.accepted = self.tried = t
        self.steps = 0
        self.nowhere: float | None = None
        self.y: Any = None
        self.yp: Any = None

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
        if t - self.accepted <= STILL * max(1.0, abs(t)):
            self.y, self.yp = y - (t - self.accepted) * yp, yp.copy()
            raise NotFiniteError


class Course:
    """A solver at a state; `y` and `yp` (n,) are where it arrived last."""

    def __init__(self, solver: Any, progress: Progress, t: float, start: Sequence[np.ndarray], max_steps: int) -> None:
        self.solver, self.progress, self.max_steps = solver, progress, max_steps
        self.t, self.y, self.yp = t, start[0], start[-1]
        self.outcome, self.event, self.words = Outcome.ARRIVED, -1, ""
        _quietly(lambda: solver.init_step(t, *start))

    def advance(self, t: float) -> None:
        """Move to time `t`, an event, or as far as it goes."""
        if self.outcome > Outcome.EVENT or t <= self.t:
            return
        self.outcome, self.event = Outcome.ARRIVED, -1
        try:
            result, said = _quietly(lambda: self.solver.step(t))
        except NotFiniteError:
            self.t, self.y, self.yp = self.progress.accepted, self.progress.y, self.progress.yp
            self.not_finite()
            return
        self.result = result
        self.t, self.y, self.yp = float(result.t), result.y, getattr(result, "yp", result.y)
        if result.status == EVENT_MET:
            self.outcome, self.event = Outcome.EVENT, int(np.flatnonzero(result.i_events[-1])[0])
        elif result.status < 0 and self.progress.nowhere is not None:
            self.not_finite()
        elif result.status < 0:
            self.outcome = CODES.get(result.status, Outcome.SOLVER)
            self.words = said or str(result.message)
        elif self.progress.steps > self.max_steps:
            self.outcome, self.words = Outcome.STEPS, f"more than {self.max_steps} steps taken"

    def not_finite(self) -> None:
        """Stop: nothing to go on with."""
        self.outcome = Outcome.NOT_A_NUMBER
        self.words = f"the equations of motion have no finite value just after t = {self.t:.9g} s"


def make(build: Callable[..., Any], function: Callable[..., None], **options: Any) -> Any:
    """Make a solver; its hints about options are not for the user."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return build(function, **options)


def _quietly(act: Callable[[], Any]) -> tuple[Any, str]:
    """Do something and return its result, and what SUNDIALS printed meanwhile, on one line."""
    said = io.StringIO()
    with redirect_stdout(said):
        result = act()
    return result, " ".join(said.getvalue().split())
