"""Rotations and boxes over symbols, for the problems and figures of the pages. Lengths in m, angles in rad."""

from __future__ import annotations

from typing import Any

from cardan.algebra.rotation import rotation_of_quaternion

Symbol = Any  # casadi.SX


def direction(azimuth: Symbol, elevation: Symbol) -> Symbol:
    """Unit vector (3,) of two angles: elevation above the plane of x and y."""
    import casadi as ca

    return ca.vertcat(
        ca.cos(elevation) * ca.cos(azimuth), ca.cos(elevation) * ca.sin(azimuth), ca.sin(elevation)
    )  # fmt: skip


def quaternion_to(azimuth: Symbol, elevation: Symbol) -> Symbol:
    """Quaternion (4,) of a rotation that takes z to `direction(azimuth, elevation)`: about y, then about z."""
    import casadi as ca

    tilt = ca.pi / 4 - elevation / 2  # half the angle from z
    a, b, c, d = ca.cos(azimuth / 2), ca.sin(azimuth / 2), ca.cos(tilt), ca.sin(tilt)
    return ca.vertcat(a * c, -b * d, a * d, b * c)


def rotation(axis: Symbol, angle: Symbol) -> Symbol:
    """Rotation matrix (3, 3) about a unit vector."""
    import casadi as ca

    return rotation_of_quaternion(ca.vertcat(ca.cos(angle / 2), ca.sin(angle / 2) * axis))


def box_inertia(mass: Symbol, size: Symbol) -> Symbol:
    """Inertia (3, 3), kg m^2, of a solid box about its centre, along its edges."""
    import casadi as ca

    x, y, z = (size[k] ** 2 for k in range(3))
    return mass / 12 * ca.diag(ca.vertcat(y + z, x + z, x + y))


def box_corners(centre: Symbol, R: Symbol, size: Symbol) -> Symbol:
    """Corners (8, 3) of a box, the last axis fastest."""
    import casadi as ca

    signs = [(a, b, c) for a in (-0.5, 0.5) for b in (-0.5, 0.5) for c in (-0.5, 0.5)]
    return ca.vertcat(*((centre + R @ (ca.DM(s) * size)).T for s in signs))


def six(I: Symbol) -> Symbol:
    """Entries Ixx, Iyy, Izz, Ixy, Ixz, Iyz (6,) of an inertia, as `model.free` takes them."""
    import casadi as ca

    return ca.vertcat(I[0, 0], I[1, 1], I[2, 2], I[0, 1], I[0, 2], I[1, 2])
