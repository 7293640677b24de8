"""The interface between an integrator at work and the code that drives it: begin at a state, advance to a time.

All arrays have the axis of systems first, `B` of them, in the tree's coordinates. Internally a stepper may work in
other coordinates.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Protocol

import numpy as np


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


class BatchStepper:
    """Base of the steppers whose kernel takes steps of many systems in one call.

    `s` is the state of all systems, one array per name with the B systems first. `limit` is the largest number of
    steps in one call of the kernel.
    """

    def __init__(self) -> None:
        self.limit = 64
        self.s: dict[str, np.ndarray] = {}
        self.resting: np.ndarray | None = None

    def rest(self, systems: np.ndarray) -> None:
        """From now on leave some systems, a mask (B,), where they are."""
        self.resting = systems if self.resting is None else self.resting | systems
        self.s["outcome"] = np.where(systems, Outcome.RESTING, self.s["outcome"])

    def advance(self, t: float) -> Arrival:
        """Move every system to time `t`, s."""
        with np.errstate(all="ignore"):  # NaN and infinity are reported as an outcome, not as a warning
            return self._advance(t)

    def _advance(self, t: float) -> Arrival:
        raise NotImplementedError

    def _adjust_limit(self, seconds: float) -> None:
        """Choose the number of steps of the next call by how long the last one took."""
        if seconds < LONGEST_CALL / 2:
            self.limit *= 2
        elif seconds > LONGEST_CALL:
            self.limit = max(self.limit // 2, 1)
