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
    return "must not be the zero vector" if bad.any() else None


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


def definite(a: np.ndarray) -> str | None:
    """Inertias that are inverted."""
    wrong = inertia(a)
    if wrong:
        return wrong
    values = np.linalg.eigvalsh(a)
    bad = ~(values[..., 0] > 1e-13 * values[..., -1])
    if bad.any():
        return (
            f"must have an inverse, its eigenvalues go from {_first(values[..., 0], bad):.3g} to "
            f"{_first(values[..., -1], bad):.3g}; a thin rod has no inertia about itself: give it a radius"
        )
    return None


def motion_transform(a: np.ndarray) -> str | None:
    """`[E 0; -E r~ E]` with a rotation `E`, as all transforms of motion vectors are."""
    E, B = a[..., :3, :3], a[..., 3:, :3]
    wrong = rotation(E)
    if wrong:
        return f"must be a transform of motion vectors, and its upper left part {wrong}"
    r = -np.swapaxes(E, -1, -2) @ B
    size = 1 + np.abs(a).max(axis=(-1, -2))
    off = np.abs(a[..., :3, 3:]).max(axis=(-1, -2)) + np.abs(a[..., 3:, 3:] - E).max(axis=(-1, -2))
    off = off + np.abs(r + np.swapaxes(r, -1, -2)).max(axis=(-1, -2))
    if (off > SMALL * size).any():
        return "must be a transform of motion vectors, [E 0; -E r~ E] with a rotation E"
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
