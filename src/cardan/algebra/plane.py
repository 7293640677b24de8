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


def second_mass(m: Any, rG: Any, I0: Any, m3: Any, r3: Any) -> Any:
    """Mass of particle 2 if particle 1 is at the origin; on numbers, symbols and letters in print."""
    return ((m * rG - m3 * r3).T @ (m * rG - m3 * r3)) / (I0 - m3 * (r3.T @ r3))  # AT(1)


def rod_masses(m: Any, l: Any, lG: Any, I0: Any) -> tuple[Any, Any]:
    """Masses of the particles in the middle and at the end of a rod, on numbers, symbols and letters in print."""
    return 4 * (m * l * lG - I0) / l**2, (2 * I0 - m * l * lG) / l**2  # AT(1)


def too_small(I0: float, least: float) -> str:
    """The end of the sentence about an inertia about particle 1 that is less than `least = m |rG|^2`, kg m^2."""
    return (
        f"the polar inertia about particle 1, I0 = {I0:.6g} kg m^2, is less than m |rG|^2 = {least:.6g} kg m^2; did "
        "you give the inertia about the centre of mass? about particle 1 it is "
        f"I_G + m |rG|^2 = {I0 + least:.6g} kg m^2"
    )


def _numbers(name: str, symbols_in: str, **given: Any) -> list[Any]:
    """Reject what is not a finite number, or a pair of them; and a mass or inertia that is not positive."""
    found: list[Any] = []
    for what, value in given.items():
        try:
            array = np.asarray(value, dtype=float) if np.asarray(value).dtype.kind in "fiu" else None
        except (TypeError, ValueError):
            array = None
        if array is None:
            raise ModelError(
                f"body {name!r}: {what} must be a number, got {type(value).__name__}; "
                f"cd.textbook.{symbols_in} takes symbols"
            )
        size = 2 if what in PAIRS[symbols_in] else 1
        if array.size != size or not np.isfinite(array).all():
            wanted = "a pair of finite numbers" if size == 2 else "a finite number"
            raise ModelError(f"body {name!r}: {what} must be {wanted}, got {value!r}")
        found.append(array.reshape(2) if size == 2 else float(array.reshape(())))
        if what in POSITIVE and not found[-1] > 0:
            raise ModelError(
                f"body {name!r}: {what} must be positive, got {found[-1]:g}; only masses of particles may be less"
            )
    return found


PAIRS = {"AT_particles": ("com", "r3"), "AT_rod": ()}
POSITIVE = ("mass", "inertia")
ROUNDED = 1e-9  # relative: an inertia that is less than a point mass has by this much is rounded


def particles(
    name: str, *, mass: float, com: ArrayLike, inertia: float, r3: ArrayLike, m3: float | None = None
) -> Particles:
    """Replace body `name` of `mass` (kg) and polar `inertia` (kg m^2) about its frame's origin by three particles.

    `com` (2,) is its centre of mass and `r3` (2,) the position of particle 3, m; particle 1 is at the origin. The mass
    `m3` (kg) may be chosen, except that `m3 r3 != mass com` and `m3 |r3|^2 != inertia`; by default it is chosen here.
    An inertia less than `mass |com|^2`, such as that about the centre of mass, is refused.
    """
    chosen = {} if m3 is None else {"m3": m3}
    mass, rG, inertia, p3, *given = _numbers(name, "AT_particles", mass=mass, com=com, inertia=inertia, r3=r3, **chosen)
    if inertia < mass * float(rG @ rG) * (1 - ROUNDED):
        raise ModelError(f"body {name!r}: {too_small(inertia, mass * float(rG @ rG))}")
    square = float(p3 @ p3)
    size = float(np.sqrt(inertia / mass))
    if square <= (SMALL * size) ** 2 or square == 0:
        raise ModelError(
            f"body {name!r}: its primary particles 1 and 3 must be apart, their distance is {np.sqrt(square):.4g} m"
        )
    if given:
        m3 = float(given[0])
    else:
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
    m2 = float(second_mass(mass, rG, inertia, m3, p3))
    return Particles(np.array([mass - m2 - m3, m2, m3]), np.array([np.zeros(2), first / m2, p3]))


def rod_particles(name: str, *, mass: float, length: float, com: float, inertia: float) -> Particles:
    """Replace rod `name` by particles at its two ends and its middle.

    `mass` in kg, `length` and `com` (from particle 1) in m, `inertia` in kg m^2 about particle 1.
    """
    mass, length, com, inertia = _numbers(name, "AT_rod", mass=mass, length=length, com=com, inertia=inertia)
    if not length > 0:
        raise ModelError(f"body {name!r}: its primary particles 1 and 3 must be apart, the rod's length is {length} m")
    if inertia < mass * com**2 * (1 - ROUNDED):
        raise ModelError(f"body {name!r}: {too_small(inertia, mass * com**2)}")
    m2, m3 = rod_masses(mass, length, com, inertia)
    places = np.array([[0.0, 0.0], [length / 2, 0.0], [length, 0.0]])
    return Particles(np.array([mass - m2 - m3, m2, m3]), places)
