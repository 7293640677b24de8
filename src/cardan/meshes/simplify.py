"""Fewer triangles for a picture: vertices that lie in one cell of a grid become one.

The new vertex is where it is nearest to the planes of all triangles of its cell, so that edges and corners stay sharp.

Notation: a triangle's plane is `n . x + d = 0`, with `n` as long as twice its area; a cell adds up `A = sum n n^T` and
`b = sum d n`, and its vertex solves `A x = -b`.

Source: Lindstrom, Out-of-core simplification of large polygonal models, SIGGRAPH 2000.
"""

from __future__ import annotations

import numpy as np

from cardan.meshes.surface import Surface

ROUNDS = 8
"""How often the size of the cells is changed so that the number of triangles comes near to what is asked for."""
FLAT = 1e-3
"""Eigenvalues of `A` below this part of the largest define no position; the mean of the cell is kept along them."""


def simplified(surface: Surface, most_faces: int) -> Surface:
    """The surface with at most `most_faces` triangles, where that leaves any; as it is where it has no more."""
    whole = welded(surface)
    if len(whole.faces) <= most_faces:
        return whole
    low = whole.vertices.min(axis=0)
    size = max(float(np.ptp(whole.vertices, axis=0).max()), 1e-300)
    cells, best = max(2.0, np.sqrt(most_faces) / 2), (1.0, 0)
    for _ in range(ROUNDS):
        many = int(_kept(_cell_of(whole.vertices - low, size / cells)[whole.faces]).sum())
        if best[1] < many <= most_faces:
            best = cells, many
        if 0.9 * most_faces < many <= most_faces:
            break
        cells = max(1.0, cells * np.sqrt(0.96 * most_faces / max(many, 1)))
    if not best[1]:
        return whole
    return _clustered(whole, _cell_of(whole.vertices - low, size / best[0]), size / best[0])


def welded(surface: Surface) -> Surface:
    """Vertices at the same place made one, and triangles without area left out."""
    points = np.ascontiguousarray(surface.vertices + 0.0)  # -0 becomes 0
    rows = points.view([("", points.dtype)] * 3).reshape(-1)
    _, first, same = np.unique(rows, return_index=True, return_inverse=True)
    faces = same.reshape(-1)[surface.faces]
    return Surface(points[first], faces[_kept(faces)])


def _kept(faces: np.ndarray) -> np.ndarray:
    """Which triangles have three different corners (m,)."""
    kept: np.ndarray = (faces != np.roll(faces, 1, axis=1)).all(axis=1)
    return kept


def _cell_of(points: np.ndarray, size: float) -> np.ndarray:
    """Number of the cell that each point (n, 3) is in; numbers without a point in their cell do not occur."""
    at = np.floor(points / size).astype(np.int64)
    number = (at[:, 0] * 2_000_003 + at[:, 1]) * 2_000_003 + at[:, 2]
    cell: np.ndarray = np.unique(number, return_inverse=True)[1].reshape(-1)
    return cell


def _clustered(surface: Surface, cell: np.ndarray, size: float) -> Surface:
    """One vertex for each cell of a size (m), and the triangles between different cells."""
    count = int(cell.max()) + 1
    D, E, F = (surface.vertices[surface.faces[:, k]] for k in range(3))
    n = np.cross(E - D, F - D)
    sums = np.stack([np.bincount(cell, surface.vertices[:, k], count) for k in range(3)], axis=1)
    mean = sums / np.bincount(cell, minlength=count)[:, None]
    A, b = np.zeros((count, 3, 3)), np.zeros((count, 3))
    for k in range(3):
        at = cell[surface.faces[:, k]]
        d = np.einsum("ij,ij->i", n, mean[at] - D)  # planes seen from the mean of the cell
        for i in range(3):
            b[:, i] += np.bincount(at, n[:, i] * d, count)
            for j in range(3):
                A[:, i, j] += np.bincount(at, n[:, i] * n[:, j], count)
    values, axes = np.linalg.eigh(A)
    inverse = np.where(values > FLAT * values[:, 2:], 1 / np.maximum(values, 1e-300), 0.0)
    step = -np.einsum("nij,nj,nkj,nk->ni", axes, inverse, axes, b)
    near = np.linalg.norm(step, axis=1, keepdims=True) < size
    corners = cell[surface.faces]
    faces = corners[_kept(corners)]
    first = np.argmin(faces, axis=1)[:, None]
    faces = np.unique(np.take_along_axis(faces, (first + np.arange(3)) % 3, axis=1), axis=0)
    return Surface(mean + np.where(near, step, 0.0), faces)
