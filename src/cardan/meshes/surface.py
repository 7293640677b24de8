"""Surfaces made of triangles, and the surfaces of common solids.

Triangles have their corners counter-clockwise seen from outside. Lengths are in m.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import pi

import numpy as np

SEGMENTS = 32
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
