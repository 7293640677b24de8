"""Rotational inertia of common solids, and the rules any inertia must obey.

All helpers give the inertia about the centre of mass, (3, 3) in kg m^2, in the body's axes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cardan.errors import ModelError
from cardan.model.pose import numbers, unit_axis
from cardan.model.values import floats, shown

ROUNDING = 1e-15  # m^2: the square of a radius of gyration of 30 nm; less is noise
SINGULAR = 1e-9  # a smallest principal moment below this part of the largest counts as none
AXES = {"x": (1.0, 0.0, 0.0), "y": (0.0, 1.0, 0.0), "z": (0.0, 0.0, 1.0)}


def rod(mass: float, length: float, axis: Any = "x") -> np.ndarray:
    """Thin rod of a length (m) along an axis ("x", "y", "z" or a vector)."""
    _positive("rod", mass=mass, length=length)
    return _round("rod", axis, along=0.0, across=mass * length**2 / 12)


def box(mass: float, size: Any) -> np.ndarray:
    """Solid box with edges `size` (3,) in m along the body's axes."""
    _positive("box", mass=mass)
    x, y, z = numbers("inertia of box", "size", size, (3,))
    _positive("box", **{"size x": x, "size y": y, "size z": z})
    return np.diag([y * y + z * z, x * x + z * z, x * x + y * y]) * mass / 12


def cylinder(mass: float, radius: float, length: float, axis: Any = "z") -> np.ndarray:
    """Solid cylinder of a radius and length (m) along an axis."""
    _positive("cylinder", mass=mass, radius=radius, length=length)
    across = mass * (3 * radius**2 + length**2) / 12
    return _round("cylinder", axis, along=mass * radius**2 / 2, across=across)


def sphere(mass: float, radius: float) -> np.ndarray:
    """Solid sphere of a radius (m)."""
    _positive("sphere", mass=mass, radius=radius)
    return np.eye(3) * (0.4 * mass * radius**2)


def point(mass: float) -> np.ndarray:
    """Point mass: no rotational inertia about itself."""
    _positive("point", mass=mass)
    return np.zeros((3, 3))


def _positive(solid: str, **values: float) -> None:
    for name, value in values.items():
        number = float(numbers(f"inertia of {solid}", name, value, ()))
        if number <= 0:
            raise ModelError(f"inertia of {solid}: {name} must be positive, got {number:g}")


def _round(solid: str, axis: Any, along: float, across: float) -> np.ndarray:
    if isinstance(axis, str) and axis not in AXES:
        raise ModelError(f"inertia of {solid}: axis {axis!r} is not one of x, y, z; or give a vector")
    u = unit_axis(f"inertia of {solid}", "axis", AXES[axis] if isinstance(axis, str) else axis)
    return across * np.eye(3) + (along - across) * np.outer(u, u)


def read_inertia(owner: str, value: Any) -> np.ndarray:
    """Read an inertia given as 3x3 matrix, as diagonal (3,), or as (Ixx, Iyy, Izz, Ixy, Ixz, Iyz)."""
    try:
        array = floats(value)
    except TypeError:
        array = np.array(np.nan)
    if array.shape == (3,):
        array = np.diag(array)
    elif array.shape == (6,):
        xx, yy, zz, xy, xz, yz = array
        array = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    if array.shape != (3, 3):
        raise ModelError(
            f"{owner}: inertia must be a 3x3 matrix, 3 principal values or 6 entries "
            f"(Ixx, Iyy, Izz, Ixy, Ixz, Iyz), got {shown(value)}"
        )
    if not np.isfinite(array).all():
        raise ModelError(f"{owner}: inertia must be finite, got {array.tolist()}")
    return array


def check_inertia(owner: str, mass: float, I_C: np.ndarray) -> np.ndarray:
    """Check mass and inertia about the centre of mass against the rules; return the symmetrised inertia.

    Rules: mass not negative, inertia symmetric, no negative principal value, and the triangle rule: no principal
    value above the sum of the other two. A body may have no mass at all. A body with inertia and no mass is a rotor
    whose mass is counted elsewhere, or a mistake; it is rejected, with both ways out.
    """
    mass, I_C = float(numbers(owner, "mass", mass, ())), numbers(owner, "inertia", I_C, (3, 3))
    if mass < 0:
        raise ModelError(f"{owner}: mass is negative: {mass:g} kg; a body has positive mass, or none (leave it out)")
    scale = float(np.abs(I_C).max())
    if mass == 0:
        if scale > 0:
            raise ModelError(
                f"{owner}: mass is zero but its inertia is not (largest entry {scale:g} kg m^2); give the mass, or "
                "keep it as a rotor whose mass is counted elsewhere, with judge='nothing' (of a file: load it with "
                "policy='warn')"
            )
        return I_C
    if scale <= ROUNDING * mass:  # a point mass, with rounding noise from a file
        return np.zeros((3, 3))
    asymmetry = float(np.abs(I_C - I_C.T).max())
    if asymmetry > 1e-6 * scale:
        raise ModelError(
            f"{owner}: inertia is not symmetric: entries differ by {asymmetry:g} kg m^2; "
            "did you mix up the products of inertia?"
        )
    I_C = (I_C + I_C.T) / 2
    a, b, c = np.linalg.eigvalsh(I_C)
    if a < -1e-6 * scale:
        raise ModelError(
            f"{owner}: inertia about the centre of mass is not positive: principal values "
            f"{a:.6g}, {b:.6g}, {c:.6g} kg m^2; check signs, or the point it is given about"
        )
    if c > (a + b) * (1 + 1e-6) + 1e-12 * scale:
        raise ModelError(
            f"{owner}: inertia about the centre of mass breaks the triangle rule: {c:.6g} > {a:.6g} + {b:.6g} "
            "(principal values, kg m^2); did you give it about another point?"
        )
    return I_C


def faults_of_inertia(I_C: np.ndarray, nominal: np.ndarray) -> list[tuple[np.ndarray, str]]:
    """Rules for inertias (..., 3, 3) that vary about a nominal one (3, 3): where each is broken (...), and its words.

    A nominal inertia that can be inverted must stay so: the equations are written accordingly.
    """
    moments = np.linalg.eigvalsh(np.where(np.isfinite(I_C), I_C, 0.0))
    a, b, c = (moments[..., k] for k in range(3))
    least, _, most = np.linalg.eigvalsh(nominal)
    faults = [
        (a < -1e-6 * np.abs(c), "about the centre of mass must not be negative along any axis"),
        (c > (a + b) * (1 + 1e-6) + 1e-12 * c, "about the centre of mass breaks the triangle rule"),
    ]
    if least > SINGULAR * most:
        faults.append((a <= SINGULAR * c, "must stay positive along every axis, as its nominal value is"))
    return faults
