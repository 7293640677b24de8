"""Simple solids as triangles, from which symbols are made. Lengths are in m; some have unit length along z."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from cardan.algebra.rotation import rotation_to_axis

ROUND = 12  # corners of a circle


@dataclass(frozen=True, eq=False)
class Solid:
    """Corners (n, 3) and triangles (k, 3) of corner numbers, counter-clockwise from outside; edges split corners."""

    corners: np.ndarray
    triangles: np.ndarray

    def moved(self, position: np.ndarray, rotation: np.ndarray | None = None) -> Solid:
        """Rotate by a matrix (3, 3), then translate."""
        turned = self.corners if rotation is None else self.corners @ rotation.T
        return Solid(turned + position, self.triangles)


def joined(solids: Iterable[Solid]) -> Solid:
    """Join several solids into one."""
    corners, triangles, count = [np.zeros((0, 3))], [np.zeros((0, 3), int)], 0
    for solid in solids:
        corners.append(solid.corners)
        triangles.append(solid.triangles + count)
        count += len(solid.corners)
    return Solid(np.vstack(corners), np.vstack(triangles))


def lathe(profile: Iterable[tuple[float, float]], sides: int = ROUND) -> Solid:
    """A solid of revolution about z from a profile of (radius, height) points, with edges between its pieces."""
    angle = 2 * np.pi * np.arange(sides) / sides
    circle = np.column_stack([np.cos(angle), np.sin(angle), np.zeros(sides)])
    line = list(profile)
    pieces = []
    for (r1, z1), (r2, z2) in pairwise(line):
        corners = np.vstack([r1 * circle + (0, 0, z1), r2 * circle + (0, 0, z2)])
        here = np.arange(sides)
        there = (here + 1) % sides
        lower = np.column_stack([here, there, there + sides])
        upper = np.column_stack([here, there + sides, here + sides])
        pieces.append(Solid(corners, np.vstack([lower] * (r1 > 0) + [upper] * (r2 > 0))))
    return joined(pieces)


def rod(start: np.ndarray, end: np.ndarray, radius: float, sides: int = ROUND) -> Solid:
    """A cylinder between two points."""
    along = np.asarray(end, float) - start
    length = float(np.linalg.norm(along))
    if length == 0:
        return joined(())
    plain = lathe([(0, 0), (radius, 0), (radius, length), (0, length)], sides)
    return plain.moved(start, rotation_to_axis(along / length))


def ball(centre: np.ndarray, radius: float) -> Solid:
    """A sphere with a smooth surface."""
    rings, sides = 8, ROUND
    latitude = np.pi * np.arange(rings + 1) / rings
    angle = 2 * np.pi * np.arange(sides) / sides
    ring, round_z = np.meshgrid(latitude, angle, indexing="ij")
    sphere = [np.sin(ring) * np.cos(round_z), np.sin(ring) * np.sin(round_z), -np.cos(ring)]
    k = np.arange(rings * sides)
    right = k - k % sides + (k + 1) % sides
    triangles = np.vstack([np.column_stack([k, right, right + sides]), np.column_stack([k, right + sides, k + sides])])
    return Solid(radius * np.stack(sphere, axis=-1).reshape(-1, 3) + centre, triangles)


def box(half: Iterable[float]) -> Solid:
    """A box about the origin with given half sides."""
    faces = []
    for axis in range(3):
        for sign in (-1.0, 1.0):
            u, w = np.eye(3)[(axis + 1) % 3], np.eye(3)[(axis + 2) % 3]
            n = sign * np.eye(3)[axis]
            u = sign * u
            faces.append(
                Solid(np.array([n - u - w, n + u - w, n + u + w, n - u + w]), np.array([(0, 1, 2), (0, 2, 3)]))
            )
    every = joined(faces)
    return Solid(every.corners * np.array(list(half)), every.triangles)


def cone(base: float, height: float, sides: int = ROUND) -> Solid:
    """A cone with its tip at the origin that widens along -z; with four sides, a pyramid."""
    return lathe([(0, -height), (base, -height), (0, 0)], sides)


def arrow(heads: int = 1) -> Solid:
    """An arrow from the origin to (0, 0, 1), with two heads for a moment."""
    tips = [lathe([(0, z - 0.22), (0.075, z - 0.22), (0, z)]) for z in (1.0, 0.82)[:heads]]
    return joined([lathe([(0, 0), (0.025, 0), (0.025, 0.8)]), *tips])


def tube(points: np.ndarray, radius: float, sides: int = 6) -> Solid:
    """A tube along a smooth line of points."""
    tangent = np.gradient(points, axis=0)
    tangent /= np.linalg.norm(tangent, axis=1, keepdims=True)
    angle = 2 * np.pi * np.arange(sides) / sides
    u = rotation_to_axis(tangent[0])[:, 0]
    rings = []
    for p, t in zip(points, tangent, strict=True):
        u = u - t * (t @ u)  # transported along the line without twist
        u /= np.linalg.norm(u)
        rings.append(p + radius * (np.outer(np.cos(angle), u) + np.outer(np.sin(angle), np.cross(t, u))))
    corners = np.vstack(rings)
    k = np.arange((len(points) - 1) * sides)
    right = k - k % sides + (k + 1) % sides
    return Solid(corners, np.vstack([np.column_stack([k, right, right + sides]),
                                     np.column_stack([k, right + sides, k + sides])]))  # fmt: skip


def coil(radius: float, wire: float, turns: int = 7) -> Solid:
    """A coil spring from the origin to (0, 0, 1) with straight ends."""
    s = np.linspace(0, 1, 12 * turns + 1)
    swell = radius * np.clip(np.minimum(s, 1 - s) * 12, 0, 1)
    angle = 2 * np.pi * turns * s
    return tube(np.column_stack([swell * np.cos(angle), swell * np.sin(angle), s]), wire, 5)


def dashpot(radius: float) -> Solid:
    """A damper from the origin to (0, 0, 1): a cylinder and a piston rod."""
    thin = 0.25 * radius
    return lathe([(0, 0), (thin, 0), (thin, 0.3), (radius, 0.3), (radius, 0.7), (thin, 0.7), (thin, 1), (0, 1)])
