"""Rotations: matrices, quaternions, exponential and logarithm.

Notation: `R` maps components in the rotated frame to components in the original frame (the columns of `R` are the
rotated axes); `E = R^T` is the coordinate transform of RBDA table 2.2. A quaternion is (w, x, y, z); any non-zero
multiple of it is the same rotation. A rotation vector is axis times angle, in rad.

Source: RBDA (Featherstone, Rigid Body Dynamics Algorithms, 2008), sections 2.8 and 4.5.
"""

from __future__ import annotations

from functools import cache
from typing import overload

import numpy as np

from cardan.algebra.matrix import (
    AnyMatrix,
    Matrix,
    Scalar,
    arctan2,
    cos,
    dot,
    eye,
    is_symbol,
    matrix,
    sin,
    sqrt,
    stack,
    vector,
    where,
)

# Added to a squared angle before its root is taken, so that sin(x)/x and its derivatives are finite at zero. It is too
# small to change a result, and representable in single precision.
TINY = 1e-36


def skew(r: AnyMatrix) -> AnyMatrix:
    """Make the 3x3 matrix `r x` with `skew(r) @ u = r x u`."""
    if is_symbol(r) and r.is_dense():
        result = +_skew_pattern()
        result.set_nz(r, False, [3, 4, 0])  # z, x and y of the columns [z -y], [-z x], [y -x]
        result.set_nz(-r, False, [5, 1, 2])
        return result
    x, y, z = r.tolist() if isinstance(r, np.ndarray) else (r[0], r[1], r[2])
    return matrix([[0, -z, y], [z, 0, -x], [-y, x, 0]])


@cache
def _skew_pattern() -> Matrix:
    """A 3x3 matrix with entries beside the diagonal."""
    import casadi as ca

    return ca.SX(ca.Sparsity(3, 3, [0, 2, 4, 6], [1, 2, 0, 2, 0, 1]))


def unskew(A: AnyMatrix) -> AnyMatrix:
    """Take the vector of the skew-symmetric part of a 3x3 matrix."""
    return vector(A[2, 1] - A[1, 2], A[0, 2] - A[2, 0], A[1, 0] - A[0, 1]) / 2


def cross(a: AnyMatrix, b: AnyMatrix) -> AnyMatrix:
    """Compute the vector product of two 3-vectors."""
    return skew(a) @ b


@overload
def turn_x(angle: float) -> np.ndarray: ...
@overload
def turn_x(angle: Matrix) -> Matrix: ...
def turn_x(angle: Scalar) -> np.ndarray | Matrix:
    """Rotation `R` about the x axis by an angle in rad."""
    c, s = cos(angle), sin(angle)
    return matrix([[1, 0, 0], [0, c, -s], [0, s, c]])


@overload
def turn_y(angle: float) -> np.ndarray: ...
@overload
def turn_y(angle: Matrix) -> Matrix: ...
def turn_y(angle: Scalar) -> np.ndarray | Matrix:
    """Rotation `R` about the y axis by an angle in rad."""
    c, s = cos(angle), sin(angle)
    return matrix([[c, 0, s], [0, 1, 0], [-s, 0, c]])


@overload
def turn_z(angle: float) -> np.ndarray: ...
@overload
def turn_z(angle: Matrix) -> Matrix: ...
def turn_z(angle: Scalar) -> np.ndarray | Matrix:
    """Rotation `R` about the z axis by an angle in rad."""
    c, s = cos(angle), sin(angle)
    return matrix([[c, -s, 0], [s, c, 0], [0, 0, 1]])


def rotation_of_rpy(rpy: AnyMatrix) -> AnyMatrix:
    """Rotation `R = Rz(yaw) Ry(pitch) Rx(roll)` of the angles (roll, pitch, yaw) about fixed axes, in rad."""
    return turn_z(rpy[2]) @ turn_y(rpy[1]) @ turn_x(rpy[0])


def rotation_of_quaternion(q: AnyMatrix) -> AnyMatrix:
    """Rotation `R` of a quaternion of any non-zero length.

    The division by `|q|^2` makes it valid for quaternions that are not of unit length.
    """
    w, x, y, z = q[0], q[1], q[2], q[3]
    k = 2 / dot(q, q)
    kx, ky, kz = k * x, k * y, k * z
    xx, yy, zz = kx * x, ky * y, kz * z
    xy, xz, yz = kx * y, kx * z, ky * z
    wx, wy, wz = kx * w, ky * w, kz * w
    return matrix(
        [[1 - (yy + zz), xy - wz, xz + wy], [xy + wz, 1 - (xx + zz), yz - wx], [xz - wy, yz + wx, 1 - (xx + yy)]]
    )


def quaternion_product(a: AnyMatrix, b: AnyMatrix) -> AnyMatrix:
    """Compute the quaternion of rotation `a` followed by `b` about the rotated axes: `R(a b) = R(a) R(b)`."""
    p, r = a[1:4], b[1:4]
    return stack(vector(a[0] * b[0] - dot(p, r)), a[0] * r + b[0] * p + cross(p, r))


def quaternion_exp(u: AnyMatrix) -> AnyMatrix:
    """Unit quaternion of a rotation vector (rad)."""
    angle = sqrt(dot(u, u) + TINY)
    return stack(vector(cos(angle / 2)), (sin(angle / 2) / angle) * u)


def quaternion_log(q: AnyMatrix) -> AnyMatrix:
    """Rotation vector (rad, length at most pi) of a quaternion of any non-zero length."""
    sign = where(q[0] < 0, -1.0, 1.0)
    p = sign * q[1:4]
    length = sqrt(dot(p, p) + TINY * dot(q, q))
    return (2 * arctan2(length, sign * q[0]) / length) * p


def rotation_exp(u: AnyMatrix) -> AnyMatrix:
    """Rotation `R = exp(u x)` of a rotation vector (rad), by Rodrigues' formula."""
    square = dot(u, u) + TINY
    angle = sqrt(square)
    half = sin(angle / 2) / angle  # (1 - cos a) / a^2 = 2 (sin(a/2) / a)^2 has no cancellation
    return eye(3, u) + (sin(angle) / angle) * skew(u) + (2 * half * half) * (skew(u) @ skew(u))


def rotation_log(R: AnyMatrix) -> AnyMatrix:
    """Rotation vector (rad, length at most pi) of a rotation matrix."""
    return quaternion_log(quaternion_of_rotation(R))


def quaternion_of_rotation(R: AnyMatrix) -> AnyMatrix:
    """Quaternion of a rotation matrix, by the one of four formulas with the largest pivot (Shepperd, 1978)."""
    E = R.tolist() if isinstance(R, np.ndarray) else [[R[i, j] for j in range(3)] for i in range(3)]
    trace = E[0][0] + E[1][1] + E[2][2]
    pivot, best = trace, [1 + trace, E[2][1] - E[1][2], E[0][2] - E[2][0], E[1][0] - E[0][1]]
    for i, j, k in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
        larger = E[i][i] > pivot
        if larger is False:
            continue
        entries: list[Scalar] = [E[k][j] - E[j][k], 0, 0, 0]
        entries[1 + i] = 1 + 2 * E[i][i] - trace
        entries[1 + j] = E[i][j] + E[j][i]
        entries[1 + k] = E[i][k] + E[k][i]
        best = [where(larger, ours, theirs) for ours, theirs in zip(entries, best, strict=True)]
        pivot = where(larger, E[i][i], pivot)
    q = vector(*best)
    return q / sqrt(dot(q, q))


def rotation_integral(u: AnyMatrix) -> AnyMatrix:
    """Integral of `exp(s u x)` over s from 0 to 1: maps a body's constant linear velocity to its displacement."""
    square = dot(u, u) + TINY
    angle = sqrt(square)
    half = sin(angle / 2) / angle
    # (a - sin a) / a^3 cancels for small angles; its series is exact to rounding below 1/4 rad
    series = 1 / 6 - square * (1 / 120 - square * (1 / 5040 - square * (1 / 362880 - square / 39916800)))
    third = where(square < 0.0625, series, (1 - sin(angle) / angle) / square)
    return eye(3, u) + (2 * half * half) * skew(u) + third * (skew(u) @ skew(u))


def rotation_to_axis(axis: np.ndarray) -> np.ndarray:
    """Rotation `R` (numbers) whose third column is the given unit vector, exact for the coordinate axes."""
    best = int(np.argmax(np.abs(axis)))
    first = np.zeros(3)
    first[(best + 1) % 3] = 1.0  # cyclic, so that +x, +y, +z give permutations
    first = first - axis * (axis @ first)
    first /= np.linalg.norm(first)
    return np.column_stack([first, np.cross(axis, first), axis]) + 0.0


def quaternion_rates(q: AnyMatrix, w: AnyMatrix) -> AnyMatrix:
    """Time derivative of a quaternion whose frame rotates with `w` (rad/s, in components of that frame)."""
    return quaternion_product(q, stack(vector(0 * w[0]), w)) / 2
