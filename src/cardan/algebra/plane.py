"""Vectors in a plane, and a body in plane motion as three particles.

Notation of AT: `K` is the unit normal; a body's frame is at particle 1; `m`, `rG`, `I0` are its mass, centre of mass
and polar moment of inertia about particle 1; `r31 = r3 - r1` is its line. Any other point of the body follows from two
constants, `r2 = r1 + nu r31 + lam K x r31`; its velocity and acceleration follow in the same way. Masses of particles
may be negative: only their sums have a meaning.

Equations: AT(1), AT(7)-(9).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from cardan.algebra.matrix import AnyMatrix, Matrix, vector
from cardan.errors import ModelError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

SMALL = 1e-12  # relative difference below which two numbers count as equal


def across(a: AnyMatrix) -> AnyMatrix:
    """Compute `K x a`: a quarter turn."""
    return vector(-a[1], a[0])


@overload
def moment(a: np.ndarray, b: np.ndarray) -> float: ...
@overload
def moment(a: Matrix, b: Matrix) -> Matrix: ...
def moment(a: Any, b: Any) -> Any:
    """Compute `K . (a x b)`."""
    return a[0] * b[1] - a[1] * b[0]


def carried(nu: float | AnyMatrix, lam: float | AnyMatrix, d: AnyMatrix) -> AnyMatrix:
    """Vector from particle 1 to a point of the body; with the rate of `d` it gives the point's relative velocity."""
    return vector(nu * d[0] - lam * d[1], nu * d[1] + lam * d[0])  # AT(7),(8),(9)


@overload
def invariants(r: np.ndarray, d: np.ndarray) -> tuple[float, float]: ...
@overload
def invariants(r: Matrix, d: Matrix) -> tuple[Matrix, Matrix]: ...
def invariants(r: Any, d: Any) -> tuple[Any, Any]:
    """`nu` and `lam` of a point at `r` from particle 1, where particle 3 is at `d`."""
    square = d[0] * d[0] + d[1] * d[1]
    return (r[0] * d[0] + r[1] * d[1]) / square, moment(d, r) / square  # AT(7)


@dataclass(frozen=True)
class Particles:
    """Three particles with the mass (kg), centre of mass and polar inertia of a body.

    `masses` (3,), kg; `positions` (3, 2), m, in the body's frame at particle 1.
    """

    masses: np.ndarray
    positions: np.ndarray

    @property
    def nu(self) -> float:
        """Position of particle 2 along the line from 1 to 3, relative to its length."""
        return float(invariants(self.positions[1], self.positions[2])[0])

    @property
    def lam(self) -> float:
        """Distance of particle 2 from that line, positive to its left, relative to its length."""
        return float(invariants(self.positions[1], self.positions[2])[1])


def particles(
    name: str, *, mass: float, com: ArrayLike, inertia: float, r3: ArrayLike, m3: float | None = None
) -> Particles:
    """Replace body `name` of `mass` (kg) and polar `inertia` (kg m^2) about its frame's origin by three particles.

    `com` (2,) is its centre of mass and `r3` (2,) the position of particle 3, m; particle 1 is at the origin. The mass
    `m3` (kg) may be chosen, except that `m3 r3 != mass com` and `m3 |r3|^2 != inertia`; by default it is chosen here.
    """
    try:
        rG, p3 = (np.asarray(x, dtype=float).reshape(2) for x in (com, r3))
        finite = bool(np.isfinite([mass, *rG, inertia, *p3, 0.0 if m3 is None else m3]).all())
    except (TypeError, ValueError):
        finite = False
    if not finite:
        raise ModelError(f"body {name!r}: mass, inertia, m3 and the pairs com and r3 must be finite numbers")
    square = float(p3 @ p3)
    size = max(float(np.abs(rG).max()), float(np.sqrt(inertia / mass)) if mass > 0 and inertia > 0 else 0.0)
    if square <= (SMALL * size) ** 2 or square == 0:
        raise ModelError(
            f"body {name!r}: its primary particles 1 and 3 must be apart, their distance is {np.sqrt(square):.4g} m"
        )
    if m3 is None:
        m3 = max((inertia / square / 2, inertia / square / 4), key=lambda m: float(np.linalg.norm(mass * rG - m * p3)))
    first = mass * rG - m3 * p3
    rest = inertia - m3 * square
    if np.linalg.norm(first) <= SMALL * max(float(np.linalg.norm(mass * rG)), abs(m3) * np.sqrt(square), 1e-300):
        raise ModelError(
            f"body {name!r}: m3 = {m3:.6g} kg is not allowed, m3 r3 must differ from m rG = "
            f"({mass * rG[0]:.4g}, {mass * rG[1]:.4g}) kg m; particle 2 would have no mass"
        )
    if abs(rest) <= SMALL * max(abs(inertia), abs(m3) * square):
        raise ModelError(
            f"body {name!r}: m3 = {m3:.6g} kg is not allowed, m3 |r3|^2 must differ from the polar inertia I0 = "
            f"{inertia:.6g} kg m^2; particle 2 would be at infinity"
        )
    m2 = float(first @ first) / rest  # AT(1)
    return Particles(np.array([mass - m2 - m3, m2, m3]), np.array([np.zeros(2), first / m2, p3]))


def rod_particles(name: str, *, mass: float, length: float, com: float, inertia: float) -> Particles:
    """Replace rod `name` by particles at its two ends and its middle.

    `mass` in kg, `length` and `com` (from particle 1) in m, `inertia` in kg m^2 about particle 1.
    """
    try:
        finite = bool(np.isfinite([mass, length, com, inertia]).all())
    except (TypeError, ValueError):
        finite = False
    if not finite:
        raise ModelError(f"body {name!r}: mass, length, com and inertia must be finite numbers")
    if not length > 0:
        raise ModelError(f"body {name!r}: its primary particles 1 and 3 must be apart, the rod's length is {length} m")
    m2 = 4 * (mass * length * com - inertia) / length**2  # AT(1)
    m3 = (2 * inertia - mass * length * com) / length**2  # AT(1)
    places = np.array([[0.0, 0.0], [length / 2, 0.0], [length, 0.0]])
    return Particles(np.array([mass - m2 - m3, m2, m3]), places)
