"""Surfaces to be rendered: triangles in the axes of what carries them, with colours and normals."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

CREASE = np.cos(np.radians(35.0))  # faces that meet at a larger angle have an edge between them
WELD = 1e-6  # vertices nearer than this, relative to the size of the surface, are one


@dataclass(frozen=True, eq=False)
class ColouredSurface:
    """Triangles of one carrier: vertices (n, 3), m; faces (k, 3); normals (k, 3, 3) at their corners.

    `colours` (k, 3) are from 0 to 1 and `opacity` (k,) too; `closed` (k,) tells that the back of a face is never seen.
    """

    vertices: np.ndarray
    faces: np.ndarray
    normals: np.ndarray
    colours: np.ndarray
    opacity: np.ndarray
    closed: np.ndarray


def coloured(
    vertices: np.ndarray, faces: np.ndarray, colour: Any, opacity: float = 1.0, weld: bool = True
) -> ColouredSurface:
    """A surface in one colour (r, g, b), from 0 to 1; with `weld` vertices at the same place become one."""
    vertices, faces = np.asarray(vertices, dtype=float), np.asarray(faces, dtype=np.int64)
    if weld:
        vertices, faces = _welded(vertices, faces)
    k = len(faces)
    closed = np.full(k, _is_closed(vertices, faces) and opacity == 1)
    colours = np.broadcast_to(np.asarray(colour, dtype=np.float32), (k, 3))
    return ColouredSurface(vertices, faces, corner_normals(vertices, faces), colours, np.full(k, opacity), closed)


def merged(surfaces: Iterable[ColouredSurface]) -> ColouredSurface:
    """Several surfaces as one."""
    listed = list(surfaces)
    firsts = np.cumsum([0, *(len(s.vertices) for s in listed)])
    return ColouredSurface(
        np.concatenate([s.vertices for s in listed]),
        np.concatenate([s.faces + first for s, first in zip(listed, firsts, strict=False)]),
        *(np.concatenate([getattr(s, name) for s in listed]) for name in ("normals", "colours", "opacity", "closed")),
    )


def corner_normals(vertices: np.ndarray, faces: np.ndarray) -> np.ndarray:
    """Unit normals (k, 3, 3) at the corners of faces (k, 3): means over the faces that join there without an edge."""
    across = np.cross(*(vertices[faces[:, k]] - vertices[faces[:, 0]] for k in (1, 2)))  # twice the area
    length = np.linalg.norm(across, axis=1, keepdims=True)
    unit = across / np.where(length == 0, 1, length)
    corner = np.argsort(faces.ravel(), kind="stable")  # corners by vertex
    vertex = faces.ravel()[corner]
    first = np.searchsorted(vertex, vertex, side="left")
    count = np.searchsorted(vertex, vertex, side="right") - first
    mine = np.repeat(np.arange(len(corner)), count)  # pairs of corners at the same vertex
    other = np.arange(len(mine)) - np.repeat(np.cumsum(count) - count, count) + np.repeat(first, count)
    a, b = corner[mine] // 3, corner[other] // 3
    joined = np.einsum("ij,ij->i", unit[a], unit[b]) > CREASE
    total = np.stack(
        [np.bincount(corner[mine[joined]], across[b[joined], k], 3 * len(faces)) for k in range(3)], axis=-1
    )
    size = np.linalg.norm(total, axis=1, keepdims=True)
    found = np.where(size > 0, total / np.where(size == 0, 1, size), np.repeat(unit, 3, axis=0))
    return found.reshape(-1, 3, 3)


def _welded(vertices: np.ndarray, faces: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The same faces on vertices of which no two are at the same place; faces without area are left out."""
    if not len(faces):
        return vertices, faces
    grain = WELD * max(float(np.ptp(vertices, axis=0).max()), 1e-12)
    _, kept, number = np.unique(np.round(vertices / grain).astype(np.int64), axis=0, return_index=True,
                                return_inverse=True)  # fmt: skip
    faces = number.reshape(-1)[faces]
    proper = (faces[:, 0] != faces[:, 1]) & (faces[:, 1] != faces[:, 2]) & (faces[:, 2] != faces[:, 0])
    return vertices[kept], faces[proper]


def _is_closed(vertices: np.ndarray, faces: np.ndarray) -> bool:
    """Whether every edge has a face on both sides, and the faces look outwards."""
    if not len(faces):
        return False
    ends = np.concatenate([faces[:, [0, 1]], faces[:, [1, 2]], faces[:, [2, 0]]])
    there, back = (np.sort(ends[:, i] * len(vertices) + ends[:, j]) for i, j in ((0, 1), (1, 0)))
    volume = np.einsum("ij,ij->", vertices[faces[:, 0]], np.cross(vertices[faces[:, 1]], vertices[faces[:, 2]]))
    return bool((there == back).all() and volume > 0)
