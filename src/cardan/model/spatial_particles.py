"""A rigid body in space replaced by particles: ten at places of your choice, or four.

All give the body's mass, centre of mass and inertia. Ten particles, at the vertices of any tetrahedron and the middles
of its edges, follow from one linear relation (`algebra.tetrahedron`); masses may be negative. Four particles follow
from a factor of the matrix of moments, `J4 = X X^T` with columns `sqrt(m_i) [r_i; 1]` of `X` (4, 4). Their masses are
positive, and only one of them can be placed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from cardan.algebra.tetrahedron import edge_particles, second_moments, vertex_inertia
from cardan.errors import ModelError
from cardan.model.inertia import check_inertia, read_inertia
from cardan.model.pose import numbers

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

FLAT = 1e-9  # of the cube of a tetrahedron's longest edge: less volume is none
AT_CENTRE = 1e-9  # of the mass: so little left beside particle 1 is none


@dataclass(frozen=True, eq=False)
class SpatialParticles:
    """Particles with the mass, centre of mass and inertia of a body: `masses` (n,), kg; `positions` (n, 3), m."""

    masses: np.ndarray
    positions: np.ndarray

    @property
    def mass(self) -> float:
        """Sum of the masses, kg."""
        return float(self.masses.sum())

    @property
    def com(self) -> np.ndarray:
        """Centre of mass (3,), m."""
        return np.asarray(self.masses @ self.positions / self.mass)

    @property
    def inertia(self) -> np.ndarray:
        """Inertia (3, 3) about the centre of mass, kg m^2."""
        r = self.positions - self.com
        second = (r.T * self.masses) @ r
        return np.asarray(np.trace(second) * np.eye(3) - second)


def particles_in_space(
    name: str, *, mass: float, com: ArrayLike = (0.0, 0.0, 0.0), inertia: ArrayLike, vertices: ArrayLike | None = None
) -> SpatialParticles:
    """Replace body `name` by ten particles: at four `vertices` (4, 3), m, and in the middles of their six edges.

    `mass` in kg; `com` (3,), m; `inertia` (3, 3), kg m^2, about the centre of mass, as for `m.body`. The order is that
    of the vertices, then the edges 12, 13, 14, 23, 24, 34. Any four points that are not in one plane will do; by
    default the first is the centre of mass and the others are a radius of gyration away along the axes. Masses may be
    negative: only their sums have a meaning.
    """
    owner = f"body {name!r}"
    m, c, I_C = _body(owner, mass, com, inertia)
    if vertices is None:
        radius = float(np.sqrt(np.trace(I_C) / (2 * m))) or 1.0
        places = c + radius * np.vstack([np.zeros(3), np.eye(3)])
    else:
        places = numbers(owner, "vertices", vertices, (4, 3))
    edges = places[1:] - places[0]
    volume, longest = abs(float(np.linalg.det(edges))), float(np.linalg.norm(edges, axis=1).max())
    if volume <= FLAT * longest**3:
        raise ModelError(
            f"{owner}: its four vertices must not be in one plane, the tetrahedron's volume is {volume / 6:.4g} m^3; "
            "move one of them out of the plane of the others"
        )
    return SpatialParticles(*edge_particles(vertex_inertia(m, I_C, places - c), places))


def four_particles(
    name: str, *, mass: float, com: ArrayLike = (0.0, 0.0, 0.0), inertia: ArrayLike, r1: ArrayLike | None = None
) -> SpatialParticles:
    """Replace body `name` by four particles of positive mass.

    `mass` in kg; `com` (3,), m; `inertia` (3, 3), kg m^2, about the centre of mass, as for `m.body`. By default all
    have a quarter of the mass. With `r1` (3,), m, particle 1 is there, a joint for example, with the mass that this
    asks for, and the other three share the rest equally.
    """
    owner = f"body {name!r}"
    m, c, I_C = _body(owner, mass, com, inertia)
    values, axes = np.linalg.eigh(second_moments(I_C) / m)
    A = axes * np.sqrt(np.maximum(values, 0.0))  # A A^T = S/m: places c + A t, with sum m_i t t^T = m 1
    corners = np.array([[1, 1, 1], [1, -1, -1], [-1, 1, -1], [-1, -1, 1]], dtype=float)
    if r1 is None:
        return SpatialParticles(np.full(4, m / 4), c + corners @ A.T)
    d = numbers(owner, "r1", r1, (3,)) - c
    t, *_ = np.linalg.lstsq(A, d, rcond=1e-9)
    square = float(t @ t)
    if np.linalg.norm(A @ t - d) > 1e-7 * np.linalg.norm(d):
        raise ModelError(
            f"{owner}: particle 1 cannot be at r1 = {np.add(d, c).tolist()} m, outside the plane or line that has all "
            "of the body's mass; choose r1 there, or use ten particles (cd.particles_in_space)"
        )
    if square <= AT_CENTRE:
        raise ModelError(
            f"{owner}: particle 1 cannot be at the centre of mass, r1 = {np.add(d, c).tolist()} m: it would take all "
            "of the mass and leave none for the inertia; choose another point"
        )
    # the columns sqrt(m_i/m) [t_i; 1] are orthonormal: the first gives m1, the others lie on its polar plane
    m1 = m / (1 + square)
    turns = 2 * np.pi / 3 * np.arange(3)
    around = np.column_stack([np.cos(turns), np.sin(turns)]) @ np.linalg.svd(t[None])[2][1:]
    places = np.vstack([t, np.sqrt(2 * m / (m - m1)) * around - t / square])
    return SpatialParticles(np.array([m1, *[(m - m1) / 3] * 3]), c + places @ A.T)


def _body(owner: str, mass: float, com: ArrayLike, inertia: ArrayLike) -> tuple[float, np.ndarray, np.ndarray]:
    """Mass, centre of mass and inertia about it, by the rules for bodies."""
    m, c = float(numbers(owner, "mass", mass, ())), numbers(owner, "com", com, (3,))
    if m <= 0:
        raise ModelError(f"{owner}: mass must be positive, got {m:g} kg; particles share the mass of their body")
    return m, c, check_inertia(owner, m, read_inertia(owner, inertia))
