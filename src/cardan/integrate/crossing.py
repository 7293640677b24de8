"""Finding an event inside the step that met it: the Illinois method on the length of the step."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

States = dict[str, np.ndarray]


def locate(
    at: Callable[[np.ndarray], States], start: States, h: np.ndarray, directions: np.ndarray
) -> tuple[States, np.ndarray]:
    """States (n, ...) just past the earliest event of each system, and which events (n, ne) are met there.

    Events that are met at once are all told.

    `at(h)` gives the states after steps of lengths h (n,), s, from `start`; among them are the time `t` (n,) and the
    events' values `g` (n, ne). A step of the given length meets an event in every system.
    """
    far, hi = at(h), h.copy()
    lo, g_lo = np.zeros(len(h)), start["g"]
    side = np.zeros(len(h))
    weight_lo, weight_hi = np.ones(len(h)), np.ones(len(h))
    each = np.arange(len(h))
    for _ in range(80):
        which = _first_crossed(g_lo, far["g"], directions)
        a, b = weight_lo * g_lo[each, which], weight_hi * far["g"][each, which]
        tight = hi - lo <= 4 * np.finfo(float).eps * np.maximum(np.abs(start["t"]), hi)
        if tight.all():
            break
        with np.errstate(divide="ignore", invalid="ignore"):
            mid = np.where(b != a, hi - b * (hi - lo) / (b - a), 0.5 * (lo + hi))
        # never quite at an end, so that the bracket shrinks from both sides
        margin = np.maximum(0.01 * (hi - lo) * (np.abs(side) > 2), np.finfo(float).eps * np.abs(start["t"]))
        mid = np.clip(mid, lo + np.minimum(margin, 0.5 * (hi - lo)), hi - np.minimum(margin, 0.5 * (hi - lo)))
        there = at(mid)
        beyond: np.ndarray = np.any(_crossed(g_lo, there["g"], directions), axis=1)
        far = {name: np.where(_like(beyond, far[name]), there[name], far[name]) for name in far}
        hi, lo = np.where(beyond, mid, hi), np.where(beyond, lo, mid)
        g_lo = np.where(beyond[:, None], g_lo, there["g"])
        side = np.where(beyond, np.maximum(side, 0) + 1, np.minimum(side, 0) - 1)
        weight_lo = np.where(beyond & (side > 1), 0.5 * weight_lo, np.where(beyond, weight_lo, 1.0))
        weight_hi = np.where(~beyond & (side < -1), 0.5 * weight_hi, np.where(beyond, 1.0, weight_hi))
    return far, _crossed(g_lo, far["g"], directions)


def side_kept(before: np.ndarray, now: np.ndarray) -> np.ndarray:
    """Values of events (n, ne) at a new start: one that is just zero stays on its side, and is met."""
    return np.where((now == 0) & (before != 0), np.copysign(5e-324, before), now)


def _crossed(before: np.ndarray, after: np.ndarray, directions: np.ndarray) -> np.ndarray:
    """Which events (n, ne) changed sign as wanted."""
    up, down = (before < 0) & (after >= 0), (before > 0) & (after <= 0)
    return np.where(directions > 0, up, np.where(directions < 0, down, up | down))


def _first_crossed(before: np.ndarray, after: np.ndarray, directions: np.ndarray) -> np.ndarray:
    return np.argmax(_crossed(before, after, directions), axis=1)


def _like(mask: np.ndarray, array: np.ndarray) -> np.ndarray:
    return mask.reshape(-1, *([1] * (array.ndim - 1)))
