"""Solids and shells of common forms: volume (or area), and principal moments of inertia for unit mass.

The arguments are radii and half lengths, in m; the axis of round ones is z. Each gives the volume (m^3) or area (m^2),
and the moments (3,) about the centre, in m^2.
"""

from __future__ import annotations

from collections.abc import Callable
from math import pi
from typing import Any

import numpy as np

Solid = Callable[..., tuple[float, np.ndarray]]


def _around_z(across: float, along: float) -> np.ndarray:
    return np.array([across, across, along])


def together(*parts: tuple[float, np.ndarray]) -> tuple[float, np.ndarray]:
    """Parts with the same centre as one."""
    whole = sum(size for size, _ in parts)
    return whole, sum((size * moments for size, moments in parts), np.zeros(3)) / whole


_squares: Callable[..., np.ndarray] = lambda a, b, c: np.array([b * b + c * c, a * a + c * c, a * a + b * b])
sphere: Solid = lambda r: (4 / 3 * pi * r**3, np.full(3, 0.4 * r**2))
box: Solid = lambda a, b, c: (8 * a * b * c, _squares(a, b, c) / 3)
ellipsoid: Solid = lambda a, b, c: (4 / 3 * pi * a * b * c, _squares(a, b, c) / 5)
cylinder: Solid = lambda r, h: (2 * pi * r * r * h, _around_z((3 * r * r + 4 * h * h) / 12, r * r / 2))
disc: Solid = lambda r, h: (2 * pi * r * r, _around_z(r * r / 4 + h * h, r * r / 2))  # two, at the ends of a cylinder
tube: Solid = lambda r, h: (4 * pi * r * h, _around_z((6 * r * r + 4 * h * h) / 12, r * r))
sphere_shell: Solid = lambda r: (4 * pi * r * r, np.full(3, 2 / 3 * r**2))


def _with_ends(middle: tuple[float, np.ndarray], ends: tuple[float, np.ndarray], h: float, beyond: float) -> Any:
    """A capsule: its middle, and a sphere cut in two halves, whose centres of mass are `beyond` the ends `h`."""
    size, each = ends
    return together(middle, (size, _around_z(each[0] + h * (h + 2 * beyond), each[2])))


def box_shell(a: float, b: float, c: float) -> tuple[float, np.ndarray]:
    """Three pairs of faces."""
    squares = np.array([a * a, b * b, c * c])
    pairs = []
    for k, area in enumerate((8 * b * c, 8 * a * c, 8 * a * b)):
        moments = squares / 3
        moments[k] = squares[k]
        pairs.append((area, moments.sum() - moments))
    return together(*pairs)


def ellipsoid_shell(a: float, b: float, c: float) -> tuple[float, np.ndarray]:
    """A layer of MuJoCo's thickness, the same along each axis; its area is Thomsen's approximation."""
    p, d = 1.6075, 1e-6
    area = 4 * pi * (((a * b) ** p + (a * c) ** p + (b * c) ** p) / 3) ** (1 / p)
    outer = (a + d) * (b + d) * (c + d)
    # the difference of the two volumes, without cancellation
    layer = d * (a * b + a * c + b * c + d * (a + b + c) + d * d)
    grown = 2 * d * np.array([b + c + d, a + c + d, a + b + d])
    return area, (_squares(a, b, c) + outer / layer * grown) / 5


capsule: Solid = lambda r, h: _with_ends(cylinder(r, h), sphere(r), h, 3 / 8 * r)
capsule_shell: Solid = lambda r, h: _with_ends(tube(r, h), sphere_shell(r), h, r / 2)
cylinder_shell: Solid = lambda r, h: together(tube(r, h), disc(r, h))
