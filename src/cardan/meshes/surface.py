"""Surfaces made of triangles, and the surfaces of common solids.

Triangles have their corners counter-clockwise seen from outside. Lengths are in m.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import pi

import numpy as np

SEGMENTS = 60
"""Sides of the polygon that stands for a circle."""
FEWEST = 6
"""The same, where few triangles are asked for."""


@dataclass(frozen=True, eq=False)
class Surface:
    """Vertices (n, 3) in m, and triangles (m, 3) as indices of their corners."""

    vertices: np.ndarray
    faces: np.ndarray

    def moved(self, rotation: np.ndarray, position: np.ndarray) -> Surface:
        """The same surface seen from another frame; the rotation (3, 3) may contain a scale."""
        faces = self.faces if np.linalg.det(rotation) >= 0 else self.faces[:, [0, 2, 1]]  # a mirror turns it inside out
        return Surface(self.vertices @ rotation.T + position, faces)


def joined(surfaces: list[Surface]) -> Surface:
    """Several surfaces as one."""
    starts = np.cumsum([0, *(len(surface.vertices) for surface in surfaces)])
    return Surface(
        np.concatenate([surface.vertices for surface in surfaces] or [np.zeros((0, 3))]),
        np.concatenate(
            [surface.faces + start for surface, start in zip(surfaces, starts, strict=False)]
            or [np.zeros((0, 3), dtype=np.int64)]
        ),
    )


def segments_for(most_faces: int | None, faces_per_segment: int) -> int:
    """Sides of a circle so that a round solid stays below a number of triangles."""
    return SEGMENTS if most_faces is None else max(FEWEST, min(SEGMENTS, most_faces // faces_per_segment))


def box_surface(size: np.ndarray) -> Surface:
    """A box of edges (3,) about the origin."""
    corners = np.array([[x, y, z] for x in (-0.5, 0.5) for y in (-0.5, 0.5) for z in (-0.5, 0.5)])
    quads = [(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)]
    return Surface(corners * size, np.array([t for a, b, c, d in quads for t in ((a, b, c), (a, c, d))]))


def revolved(profile: np.ndarray, segments: int) -> Surface:
    """A profile (n, 2) of radius and height turned about z; it begins below and ends above, both at radius 0."""
    angles = 2 * pi * np.arange(segments) / segments
    rings, starts, count = [], [], 0
    for radius, height in profile:
        around = angles if radius > 0 else angles[:1]
        rings.append(np.column_stack([radius * np.cos(around), radius * np.sin(around), np.full(len(around), height)]))
        starts.append(count)
        count += len(around)
    k, after = np.arange(segments), (np.arange(segments) + 1) % segments
    faces = []
    for low in range(len(profile) - 1):
        a, b = starts[low], starts[low + 1]
        if len(rings[low]) > 1:
            upper = b + after if len(rings[low + 1]) > 1 else np.full(segments, b)
            faces.append(np.column_stack([a + k, a + after, upper]))
        if len(rings[low + 1]) > 1:
            lower = a + k if len(rings[low]) > 1 else np.full(segments, a)
            faces.append(np.column_stack([lower, b + after, b + k]))
    return Surface(np.concatenate(rings), np.concatenate(faces))


def cylinder_surface(radius: float, length: float, segments: int) -> Surface:
    """A cylinder along z about the origin."""
    half = length / 2
    return revolved(np.array([[0, -half], [radius, -half], [radius, half], [0, half]]), segments)


def capsule_surface(radius: float, length: float, segments: int) -> Surface:
    """A cylinder along z with half spheres beyond its ends; with length 0 a sphere."""
    turn = np.linspace(0, pi / 2, max(segments // 4, 2) + 1)
    cap = radius * np.column_stack([np.sin(turn), np.cos(turn)])
    cap[0, 0] = 0.0
    raised = np.array([0.0, length / 2])
    bottom, top = cap * [1, -1] - raised, (raised + cap)[::-1]
    return revolved(np.concatenate([bottom, top if length > 0 else top[1:]]), segments)


def extruded(rings: list[np.ndarray], thickness: float) -> Surface:
    """A plane figure in x and y with a thickness along z, half on each side.

    `rings` are its outline (n, 2), counter-clockwise, and the outlines of its holes, clockwise. Neither may cross
    itself or another.
    """
    flat = np.concatenate(rings)
    count = len(flat)
    lid = np.array(_ears(rings))
    walls = []
    start = 0
    for ring in rings:
        k = start + np.arange(len(ring))
        after = np.roll(k, -1)
        walls += [np.column_stack([k, after, after + count]), np.column_stack([k, after + count, k + count])]
        start += len(ring)
    low, high = (np.column_stack([flat, np.full(count, z)]) for z in (-thickness / 2, thickness / 2))
    faces = np.concatenate([lid[:, [0, 2, 1]], lid + count, *walls])
    return Surface(np.concatenate([low, high]), faces)


def _ears(rings: list[np.ndarray]) -> list[tuple[int, int, int]]:
    """Triangles of a plane figure: corners are cut off where no other corner lies inside.

    Holes are joined to the outline first, each by a pair of cuts to a corner that is seen from it.
    Source: Eberly, Triangulation by ear clipping, 2002.
    """
    flat = np.concatenate(rings)
    starts = np.cumsum([0, *(len(ring) for ring in rings)])
    loop = list(range(len(rings[0])))
    holes = [list(range(starts[k], starts[k + 1])) for k in range(1, len(rings))]
    for hole in sorted(holes, key=lambda hole: -flat[hole, 0].max()):
        at = int(np.argmax(flat[hole, 0]))
        loop = _bridged(flat, loop, hole[at:] + hole[:at], holes)
    triangles = []
    while len(loop) > 3:
        found = (k for touching in (False, True) for k in range(len(loop)) if _is_ear(flat, loop, k, touching))
        cut = next(found, next((k for k in range(len(loop)) if _turn_at(flat, loop, k) == 0), None))
        if cut is None:
            raise ValueError("the outline or a hole crosses itself or another")
        triangles.append((loop[cut - 1], loop[cut], loop[(cut + 1) % len(loop)]))
        del loop[cut]
    return [*triangles, (loop[0], loop[1], loop[2])]


def _turning(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """Twice the area of the triangles a, b, c (..., 2), positive where they turn counter-clockwise."""
    turning: np.ndarray = (b[..., 0] - a[..., 0]) * (c[..., 1] - a[..., 1]) - (b[..., 1] - a[..., 1]) * (
        c[..., 0] - a[..., 0]
    )
    return turning


def _turn_at(flat: np.ndarray, loop: list[int], k: int) -> float:
    """How a loop turns at its corner `k`; 0 on a straight edge."""
    return float(_turning(flat[loop[k - 1]], flat[loop[k]], flat[loop[(k + 1) % len(loop)]]))


def _is_ear(flat: np.ndarray, loop: list[int], k: int, touching: bool) -> bool:
    """Whether the corner `k` of a loop turns outwards and no other corner lies in its triangle, or touches it."""
    if _turn_at(flat, loop, k) <= 0:
        return False
    a, b, c = flat[loop[k - 1]], flat[loop[k]], flat[loop[(k + 1) % len(loop)]]
    others = flat[loop]
    sides = np.minimum(np.minimum(_turning(a, b, others), _turning(b, c, others)), _turning(c, a, others))
    at_corner = (others == a).all(axis=1) | (others == b).all(axis=1) | (others == c).all(axis=1)
    return not ((sides > 0 if touching else sides >= 0) & ~at_corner).any()


def _bridged(flat: np.ndarray, loop: list[int], hole: list[int], holes: list[list[int]]) -> list[int]:
    """A loop with a hole joined to it, from the hole's first corner to the nearest corner that it sees."""
    p = flat[hole[0]]
    A = flat[[corner for ring in (loop, *holes) for corner in ring]]
    B = flat[[corner for ring in (loop, *holes) for corner in np.roll(ring, -1)]]
    for k in sorted(range(len(loop)), key=lambda k: float(((flat[loop[k]] - p) ** 2).sum())):
        q = flat[loop[k]]
        before, beyond = flat[loop[k - 1]], flat[loop[(k + 1) % len(loop)]]
        convex = _turning(before, q, beyond) > 0
        left, right = _turning(q, beyond, p) > 0, _turning(before, q, p) > 0
        if not ((left and right) if convex else (left or right)):
            continue  # it would lie outside
        crossing = (_turning(p, q, A) * _turning(p, q, B) < 0) & (_turning(A, B, p) * _turning(A, B, q) < 0)
        touched = (np.abs(_turning(p, q, A)) <= 1e-12 * ((q - p) ** 2).sum()) & (((A - p) * (A - q)).sum(axis=1) < 0)
        if not (crossing | touched).any():
            return [*loop[: k + 1], *hole, hole[0], *loop[k:]]
    raise ValueError("a hole is not inside the outline")


def crossing_edges(rings: list[np.ndarray]) -> bool:
    """Whether edges of plane figures (n, 2) cross or touch each other, apart from neighbours at their corner."""
    A = np.concatenate(rings)
    B = np.concatenate([np.roll(ring, -1, axis=0) for ring in rings])
    number = np.arange(len(A))
    after = np.concatenate(
        [np.roll(number[s : s + len(ring)], -1) for s, ring in zip(_starts(rings), rings, strict=True)]
    )
    for k in range(len(A)):
        left = _turning(A[k], B[k], A) * _turning(A[k], B[k], B) <= 0
        across = _turning(A, B, A[k]) * _turning(A, B, B[k]) <= 0
        low, high = np.minimum(A[k], B[k]), np.maximum(A[k], B[k])
        near = ((np.maximum(A, B) >= low) & (np.minimum(A, B) <= high)).all(axis=1)
        own = (number == k) | (number == after[k]) | (after == k)
        if (left & across & near & ~own).any():
            return True
    return False


def _starts(rings: list[np.ndarray]) -> list[int]:
    return [0, *np.cumsum([len(ring) for ring in rings])[:-1].tolist()]
