"""Rings to be seen, as closed chains of straight rods."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from cardan.algebra.rotation import rotation_to_axis
from cardan.model.shape import Rod


def ring(
    radius: float, thickness: float, axis: Any = (0, 0, 1), *, at: Any = (0, 0, 0), colour: str, rods: int = 24
) -> list[Rod]:
    """A ring of a `radius` about the point `at` and an `axis` (3,), made of rods of a `thickness`; all in m."""
    turns = 2 * np.pi * np.arange(rods + 1) / rods
    across = rotation_to_axis(np.asarray(axis, float) / np.linalg.norm(axis))[:, :2]
    points = radius * np.column_stack([np.cos(turns), np.sin(turns)]) @ across.T
    return [Rod(a, b, thickness / 2, at=at, colour=colour) for a, b in pairwise(points)]
