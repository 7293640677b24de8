"""What an integrator is to the code that drives it: it begins somewhere and advances to a time.

All arrays have one axis of systems first, `B` of them, in the tree's coordinates. A stepper keeps its own state in
whatever coordinates and formulation it works in.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Protocol

import numpy as np


class Outcome(IntEnum):
    """How a system arrived: as asked, at an event, or not at all and why."""

    ARRIVED = 0
    EVENT = 1
    SMALL_STEP = 2  # the step size that the tolerance asks for is below rounding
    NOT_A_NUMBER = 3  # a force, an acceleration or the state is not a finite number
    NEWTON = 4  # Newton's method did not converge at the smallest step
    OPEN_LOOP = 5  # positions could not be brought back onto the constraints
    SOLVER = 6  # an outside solver gave up; `Arrival.words` has what it said
    STEPS = 7  # more steps than allowed
    RESTING = 8  # told to stay where it is


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
    """An `Outcome` each (B,)."""
    event: np.ndarray
    """The number (B,) of the event met, -1 where none."""
    steps: np.ndarray
    """Steps taken since `begin` (B,)."""
    words: str = ""
    """What an outside solver said when it gave up."""
    crossed: np.ndarray | None = None
    """All events (B, ne) met there at once."""


class Stepper(Protocol):
    """An integrator at work on one or many systems."""

    def begin(self, t: float, q: np.ndarray, v: np.ndarray) -> None:
        """Start, or start again after a discontinuity, at a consistent state: q (B, nq), v (B, nv), time in s."""

    def advance(self, t: float) -> Arrival:
        """Move every system to time `t`; one that meets an event or fails stops there and is reported.

        A system that met an event goes on from there at the next call; one that failed stays where it is.
        """

    def rest(self, systems: np.ndarray) -> None:
        """From now on leave some systems, a mask (B,), where they are, also after another `begin`."""

    def settled(self, t: np.ndarray, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Samples (B, n, ...) of a run at times (B, n), brought well onto the constraints, and which stayed open."""
