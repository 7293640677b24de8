"""Volume, centre of mass and inertia of a solid bounded by triangles.

    exact    signed pyramids: the true volume of a closed surface whose triangles face outwards
    convex   the same of the convex hull
    legacy   pyramids from the centroid of the surface, then from the centre of mass, all counted as positive
    shell    the triangles themselves

Notation: a triangle with corners `D`, `E`, `F` makes a pyramid with an apex; `P` are the second moments.

Source: Mirtich (1996) for second moments of simplices; MuJoCo's XML reference, page asset/mesh, for the four ways.
"""

from __future__ import annotations

from typing import Any

import numpy as np

NO_VOLUME = 1e-14
HULL = 150_000
"""Most vertices for a convex hull, which then takes about a second."""

Triangles = np.ndarray  # (n, 3, 3): triangle, corner, component
Unit = tuple[float, np.ndarray, np.ndarray]
"""Volume (m^3) or area (m^2), centre of mass (3,), and inertia (3, 3) about it for unit mass."""


def measure(triangles: Triangles, how: str) -> Unit:
    """Volume (or area) of triangles, centre of mass, and inertia about it for unit mass."""
    D, E, F = (triangles[:, k] for k in range(3))
    normal = np.cross(E - D, F - D)
    area = np.linalg.norm(normal, axis=1) / 2
    kept = area > NO_VOLUME / 2
    D, E, F, normal, area = D[kept], E[kept], F[kept], normal[kept], area[kept]
    centre = (D + E + F) / 3
    if not area.sum() > 0:
        raise ValueError("its triangles have no area")
    middle = (area @ centre) / area.sum()
    if how == "shell":
        return float(area.sum()), middle, _inertia(area / area.sum() / 12, D - middle, E - middle, F - middle)
    signed = how != "legacy"
    volume = _pyramids(centre - middle, normal, signed)
    if not volume.sum() > NO_VOLUME:
        raise ValueError(
            f"its volume is {volume.sum():.3g} m^3; it must be positive: are its triangles turned inwards?"
        )
    com = (volume @ (0.75 * centre + 0.25 * middle)) / volume.sum()
    D, E, F = D - com, E - com, F - com
    weight = _pyramids(centre - com, normal, signed)
    return float(weight.sum()), com, _inertia(weight / weight.sum() / 20, D, E, F)


def _pyramids(base: np.ndarray, normal: np.ndarray, signed: bool) -> np.ndarray:
    """Volume of each pyramid, from its apex to a point of its base."""
    volume = np.einsum("ij,ij->i", base, normal) / 6
    return volume if signed else np.abs(volume)


def _inertia(weight: np.ndarray, D: np.ndarray, E: np.ndarray, F: np.ndarray) -> np.ndarray:
    """Inertia from the weighted second moments `P` of triangles, or of pyramids with apex in the origin."""
    total = D + E + F
    P = sum((weight[:, None] * X).T @ X for X in (D, E, F, total))
    return np.trace(P) * np.eye(3) - P


def convex_hull(points: np.ndarray) -> np.ndarray:
    """Triangles (m, 3) of the convex hull of points (n, 3), facing outwards."""
    from scipy.spatial import ConvexHull, QhullError

    if len(points) > HULL:
        raise ValueError(f"it has {len(points)} vertices; a convex hull is made of at most {HULL}: simplify it")
    try:
        hull: Any = ConvexHull(points)
    except QhullError:
        raise ValueError("its vertices lie in a plane, or nearly; it has no volume") from None
    faces: np.ndarray = hull.simplices.copy()
    D, E, F = (points[faces[:, k]] for k in range(3))
    inwards = np.einsum("ij,ij->i", np.cross(E - D, F - D), hull.equations[:, :3]) < 0
    faces[inwards] = faces[inwards][:, [0, 2, 1]]
    return faces


def open_edges(vertices: np.ndarray, faces: np.ndarray) -> int:
    """How many edges do not join exactly two triangles that turn the same way; 0 of a closed surface.

    Vertices at the same place count as one, as files of separate triangles need it.
    """
    _, same = np.unique(vertices, axis=0, return_inverse=True)
    corners = same.reshape(-1)[faces]
    corners = corners[(corners != np.roll(corners, 1, axis=1)).all(axis=1)]  # degenerate triangles bound nothing
    edges = np.concatenate([corners[:, [k, (k + 1) % 3]] for k in range(3)])
    forwards = edges[:, 0] < edges[:, 1]
    number = np.sort(edges, axis=1) @ np.array([len(vertices), 1])
    _, at = np.unique(number, return_inverse=True)
    balance = np.bincount(at.reshape(-1), np.where(forwards, 1, -1))
    return int(np.count_nonzero(balance))
