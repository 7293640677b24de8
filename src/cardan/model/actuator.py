"""Actuators of a file, carried as data; the user applies their forces."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np


@dataclass(frozen=True, eq=False)
class Actuator:
    """A named input on a joint, carried as data: it does not act by itself.

    With control `u`, its force is `F = gain u + bias[0] + bias[1] (gear . q) + bias[2] (gear . v)`, and it drives the
    joint with `gear F` (N m or N); `gear` has a number for each rate of the joint. `control` and `force` are ranges of
    u and F.
    """

    name: str
    kind: str
    joint: str
    gear: np.ndarray
    gain: float = 1.0
    bias: np.ndarray = field(default_factory=lambda: np.zeros(3))
    control: tuple[float, float] | None = None
    force: tuple[float, float] | None = None
