"""What steppers share that march many systems at once: who rests, and how long a call of their kernel may last."""

from __future__ import annotations

import numpy as np

from cardan.integrate.stepper import Arrival, Outcome

LONGEST_CALL = 0.05  # s: between two calls of a kernel an interruption is heard


class Lanes:
    """Systems in lanes: their state `s`, one array a name, B systems first, and the steps `limit` of a call."""

    def __init__(self) -> None:
        self.limit = 64
        self.s: dict[str, np.ndarray] = {}
        self.resting: np.ndarray | None = None

    def rest(self, systems: np.ndarray) -> None:
        """Leave some systems, a mask (B,), where they are."""
        self.resting = systems if self.resting is None else self.resting | systems
        self.s["outcome"] = np.where(systems, Outcome.RESTING, self.s["outcome"])

    def advance(self, t: float) -> Arrival:
        """Go on to a time, s."""
        with np.errstate(all="ignore"):  # what is not a number is an outcome, not a warning
            return self._advance(t)

    def _advance(self, t: float) -> Arrival:
        raise NotImplementedError

    def _pace(self, seconds: float) -> None:
        """Choose the steps of the next call by how long the last one took."""
        if seconds < LONGEST_CALL / 2:
            self.limit *= 2
        elif seconds > LONGEST_CALL:
            self.limit = max(self.limit // 2, 1)
