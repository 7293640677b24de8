"""A named state of a model: what a file calls a keyframe."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, eq=False)
class State:
    """Configuration q (nq,), rates v (nv,) of the tree, and time (s)."""

    q: np.ndarray
    v: np.ndarray
    time: float = 0.0
