"""A depth buffer: which of many triangles is nearest at every pixel, all of them at once with NumPy.

A triangle is cut into rows of pixels, the rows into pixels; each step is one operation on the arrays of all triangles.
The nearest triangle of a pixel is found by a maximum over whole numbers whose upper half is the depth and whose lower
half is the number of the triangle.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

NOTHING = -1


@dataclass(frozen=True, eq=False)
class Fragments:
    """Pixels covered by triangles: the number of each pixel (n,), row by row, and that of its triangle (n,)."""

    pixels: np.ndarray
    triangles: np.ndarray


@dataclass(frozen=True, eq=False)
class Planes:
    """Values that are linear over each triangle on the screen: a + b x + c y, each (n,), with pixels x, y."""

    a: np.ndarray
    b: np.ndarray
    c: np.ndarray

    def at(self, triangles: Any, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Values at pixels x, y (k,) of the triangles (k,)."""
        return self.a[triangles] + self.b[triangles] * x + self.c[triangles] * y


def planes_of(corners: np.ndarray, values: np.ndarray) -> Planes:
    """The linear functions through values (n, 3) at the corners (n, 3, 2) of triangles, pixels."""
    (x0, y0), (x1, y1), (x2, y2) = (corners[:, k].T for k in range(3))
    area = (x1 - x0) * (y2 - y0) - (x2 - x0) * (y1 - y0)
    area = np.where(np.abs(area) < 1e-6, np.inf, area)  # seen edge-on: constant
    d1, d2 = values[:, 1] - values[:, 0], values[:, 2] - values[:, 0]
    b = (d1 * (y2 - y0) - d2 * (y1 - y0)) / area
    c = (d2 * (x1 - x0) - d1 * (x2 - x0)) / area
    return Planes(values[:, 0] - b * x0 - c * y0, b, c)


def covered(corners: np.ndarray, width: int, height: int) -> Fragments:
    """The pixels whose centres lie in triangles with corners (n, 3, 2), pixels, x to the right and y downwards."""
    x = [np.ascontiguousarray(corners[:, k, 0]) for k in range(3)]
    y = [np.ascontiguousarray(corners[:, k, 1]) for k in range(3)]
    low = np.ceil(np.clip(np.minimum(np.minimum(y[0], y[1]), y[2]) - 0.5, 0, height)).astype(np.int32)
    high = np.floor(np.clip(np.maximum(np.maximum(y[0], y[1]), y[2]) - 0.5, -1, height - 1)).astype(np.int32)
    left, right = np.minimum(np.minimum(x[0], x[1]), x[2]), np.maximum(np.maximum(x[0], x[1]), x[2])
    # without a middle of a pixel between left and right there is none inside
    outside = (right < 0) | (left > width) | (np.floor(right - 0.5) < np.ceil(left - 0.5))
    some = np.flatnonzero((high >= low) & ~outside)
    x, y = [c[some] for c in x], [c[some] for c in y]
    rows, triangle = _expanded(low[some], (high - low + 1)[some])
    middle = rows + np.float32(0.5)
    left = np.full(len(rows), np.inf, dtype=np.float32)
    right = -left
    for i, j in ((0, 1), (1, 2), (2, 0)):  # where the row meets each side
        rise = y[j] - y[i]
        slope = (x[j] - x[i]) / np.where(rise == 0, np.inf, rise)
        at = (x[i] - slope * y[i])[triangle] + slope[triangle] * middle
        met = (y[i][triangle] <= middle) != (y[j][triangle] <= middle)
        np.minimum(left, at, out=left, where=met)
        np.maximum(right, at, out=right, where=met)
    first = np.ceil(np.clip(left - 0.5, 0, width)).astype(np.int32)
    last = np.floor(np.clip(right - 0.5, -1, width - 1)).astype(np.int32)
    columns, row = _expanded(first, last - first + 1)
    return Fragments(rows[row] * np.int32(width) + columns, some.astype(np.int32)[triangle][row])


def _expanded(first: np.ndarray, count: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The numbers first, first + 1, ... of each range, `count` of them, and the range that each belongs to."""
    count = np.maximum(count, 0)
    owner = np.repeat(np.arange(len(first), dtype=np.int32), count)
    start = np.cumsum(count) - count
    return np.arange(len(owner), dtype=np.int32) + (first - start.astype(np.int32))[owner], owner


class DepthBuffer:
    """Keys of the nearest fragment so far at every pixel, kept for the next picture to save the time of clearing it."""

    def __init__(self, width: int, height: int) -> None:
        self.width, self.height = width, height
        self._keys = np.full(width * height, NOTHING, dtype=np.int64)

    def nearest(self, fragments: Fragments, depth: Planes, keep: bool = False) -> Fragments:
        """Of fragments those that are nearest at their pixels, and nearer than what was kept before.

        Depth grows towards the viewer and must be positive. With `keep` the result covers what is farther until
        `clear` is called with it.
        """
        pixels, triangles = fragments.pixels, fragments.triangles
        y, x = np.divmod(pixels, np.int32(self.width))
        z = depth.at(triangles, x + np.float32(0.5), y + np.float32(0.5)).astype(np.float32)
        keys = np.maximum(z, np.float32(1e-30)).view(np.int32).astype(np.int64) << 32
        keys |= triangles
        before = None if keep else self._keys[pixels]
        np.maximum.at(self._keys, pixels, keys)
        won = np.flatnonzero(self._keys[pixels] == keys)
        if before is not None:
            self._keys[pixels] = before
        return Fragments(pixels[won], triangles[won])

    def clear(self, fragments: Fragments) -> None:
        """Forget fragments that were kept."""
        self._keys[fragments.pixels] = NOTHING
