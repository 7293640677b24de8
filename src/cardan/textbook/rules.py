"""What numbers given to the textbook must obey, so that a wrong one is told and not computed with.

A rule takes an array with the core axes last and returns None, or how the sentence about it ends.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

Rule = Callable[[np.ndarray], str | None]
SMALL = 1e-9  # relative


def _first(a: np.ndarray, bad: np.ndarray) -> np.ndarray:
    """The first entry of a batch for which `bad` holds."""
    return a[tuple(np.argwhere(bad)[0])] if bad.ndim else a


def positive(a: np.ndarray) -> str | None:
    """Masses and lengths."""
    bad = ~(a > 0)
    return f"must be positive, got {_first(a, bad):.6g}" if bad.any() else None


def not_zero(a: np.ndarray) -> str | None:
    """Directions, lines and axes."""
    bad = ~(np.abs(a).max(axis=-1) > 0)
    return "must not be the zero vector; give the direction of the axis" if bad.any() else None


def unit(a: np.ndarray) -> str | None:
    """Directions whose length counts."""
    length = np.linalg.norm(a, axis=-1)
    bad = ~(np.abs(length - 1) <= SMALL)
    return f"must have the length 1, got {_first(length, bad):.6g}; divide it by its length" if bad.any() else None


def inertia(a: np.ndarray) -> str | None:
    """Symmetric and not negative in any direction."""
    size = np.abs(a).max(axis=(-1, -2))
    bad = ~(np.abs(a - np.swapaxes(a, -1, -2)).max(axis=(-1, -2)) <= SMALL * size)
    if bad.any():
        return f"must be symmetric, got\n{_first(a, bad)}"
    least = np.linalg.eigvalsh(a)[..., 0]
    bad = least < -SMALL * size
    if bad.any():
        return f"must not be negative in any direction, its least eigenvalue is {_first(least, bad):.4g}"
    return None


def rotation(a: np.ndarray) -> str | None:
    """Orthonormal and right-handed."""
    off = np.abs(a @ np.swapaxes(a, -1, -2) - np.eye(a.shape[-1])).max(axis=(-1, -2))
    if (~(off <= SMALL)).any():
        return f"must be a rotation matrix, but R R^T differs from 1 by {off.max():.2g}"
    if (np.linalg.det(a) < 0).any():
        return "must be right-handed, its determinant is -1; exchange two axes"
    return None


def full_rank(a: np.ndarray) -> str | None:
    """Columns that span as many motions as there are."""
    if a.shape[-1] == 0:
        return None
    singular = np.linalg.svd(a, compute_uv=False)
    bad = ~(singular[..., -1] > SMALL * singular[..., 0]) if a.shape[-1] <= a.shape[-2] else np.array(True)
    if bad.any():
        return (
            f"must have independent columns, got {a.shape[-1]} of rank {np.linalg.matrix_rank(a, SMALL).min()}; "
            "leave out the dependent ones"
        )
    return None
