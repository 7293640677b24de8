"""Bars and hinges of planar mechanisms: hinges about z, gravity along -y.

A bar's frame is at its first hinge, x along the bar. A hinge's coordinate is the angle of its second bar to its first.
"""

from __future__ import annotations

import numpy as np

from cardan.errors import ModelError
from cardan.model import inertia
from cardan.model.builder import Mechanism
from cardan.model.joint import Revolute

Z = (0.0, 0.0, 1.0)
DOWN = (0.0, -9.81, 0.0)
Place = float | tuple[float, float]
"""A place on a bar: m along it, or (x, y) in its frame."""


def bar(m: Mechanism, name: str, length: float, density: float) -> None:
    """A round bar along x from the frame's origin, a tenth as thick as it is long, of `density` kg/m."""
    mass = density * length
    m.body(name, mass=mass, com=(length / 2, 0, 0), inertia=inertia.cylinder(mass, length / 20, length, axis="x"))


def plate(m: Mechanism, name: str, length: float, third: np.ndarray, density: float) -> None:
    """Three bars welded to a triangle with corners at the origin, at `length` along x and at `third` (2,), m."""
    corners = [np.zeros(3), np.array([length, 0.0, 0.0]), np.array([*third, 0.0])]
    ends = [(corners[k], corners[(k + 1) % 3]) for k in range(3)]
    masses = np.array([density * np.linalg.norm(b - a) for a, b in ends])
    middles = np.array([(a + b) / 2 for a, b in ends])
    com = masses @ middles / masses.sum()
    I = np.zeros((3, 3))
    for (a, b), mass, r in zip(ends, masses, middles - com, strict=True):
        I += inertia.rod(float(mass), float(mass / density), axis=b - a) + mass * (r @ r * np.eye(3) - np.outer(r, r))
    m.body(name, mass=float(masses.sum()), com=com, inertia=I)


def hinge(
    m: Mechanism, name: str, parent: str, child: str, angles: dict[str, float], at: Place = 0.0, child_at: Place = 0.0
) -> None:
    """A hinge about z at these places on the two bars; `angles` of all bars to the ground at the start."""
    start = angles[child] - angles[parent]
    m.joint(name, Revolute(axis=Z), parent, child, at=_point(at), child_at=_point(child_at), start=start)


def direction(angle: float) -> np.ndarray:
    """The unit vector (2,) at an angle (rad) to x."""
    return np.array([np.cos(angle), np.sin(angle)])


def angle_of(d: np.ndarray) -> float:
    """The angle (rad) of a vector (2,) to x."""
    return float(np.arctan2(d[1], d[0]))


def corner(owner: str, P: np.ndarray, p: float, Q: np.ndarray, q: float) -> np.ndarray:
    """The point at distance p from P and q from Q, to the left of the line from P to Q: the law of cosines."""
    d = Q - P
    l = float(np.linalg.norm(d))
    along = (p * p + l * l - q * q) / (2 * l) if l > 0 else np.inf
    if abs(along) > p:
        raise ModelError(f"{owner}: bars of {p:g} m and {q:g} m do not meet over a distance of {l:.4g} m")
    return P + along * d / l + np.sqrt(p * p - along * along) * np.array([-d[1], d[0]]) / l


def _point(place: Place) -> tuple[float, float, float]:
    return (*place, 0.0) if isinstance(place, tuple) else (place, 0.0, 0.0)
