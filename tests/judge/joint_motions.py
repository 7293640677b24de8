"""What each joint kind lets move, written down again from docs/joints.md: nothing is taken from the engine.

Frame F is on the parent, frame M on the child. Of each kind: the pose of M in F, the freedoms `S` (6, nv) in the axes
of M with the angular part first, their rate times the joint's rates, and the coordinates read off a pose.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

Array = np.ndarray


def turn(axis: int, angle: float) -> Array:
    """Rotation (3, 3) about a coordinate axis: 0, 1, 2."""
    i, j = (axis + 1) % 3, (axis + 2) % 3
    R = np.eye(3)
    R[i, i] = R[j, j] = np.cos(angle)
    R[j, i] = np.sin(angle)
    R[i, j] = -R[j, i]
    return R


def turn_by_quaternion(e: Array) -> Array:
    """Rotation (3, 3) of a quaternion (w, x, y, z) of any length."""
    w, u = e[0], np.asarray(e[1:], dtype=float)
    return ((w * w - u @ u) * np.eye(3) + 2 * np.outer(u, u) + 2 * w * cross_matrix(u)) / (w * w + u @ u)


def cross_matrix(u: Array) -> Array:
    """Matrix (3, 3) of the product `u x`."""
    return np.array([[0, -u[2], u[1]], [u[2], 0, -u[0]], [-u[1], u[0], 0]])


def quaternion_of(R: Array) -> Array:
    """Quaternion (w, x, y, z) of a rotation: the eigenvector of Bar-Itzhack's matrix with the largest eigenvalue."""
    K = np.zeros((4, 4))
    K[0, 0] = np.trace(R)
    K[0, 1:] = K[1:, 0] = R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]
    K[1:, 1:] = R + R.T - np.trace(R) * np.eye(3)
    return np.linalg.eigh(K)[1][:, -1]


def columns(*rows: int) -> Array:
    """Unit columns (6, k): 0 to 2 turn about x, y, z, and 3 to 5 shift along them."""
    S = np.zeros((6, len(rows)))
    S[list(rows), range(len(rows))] = 1.0
    return S


@dataclass(frozen=True)
class Motion:
    """A joint kind. `h` is the pitch of a screw, m/rad; the others ignore it."""

    nq: int
    nv: int
    pose: Callable[[Array, float], tuple[Array, Array]]
    freedoms: Callable[[Array, float], Array]
    measured: Callable[[Array, Array, float], Array]
    drift: Callable[[Array, Array], Array] = lambda q, v: np.zeros(6)
    rates: Callable[[Array, Array], Array] = lambda q, v: v


NOWHERE = np.zeros(3)


def angle_about_z(R: Array) -> float:
    """Angle of a turn about z."""
    return float(np.arctan2(R[1, 0] - R[0, 1], R[0, 0] + R[1, 1]))


def cardan_freedoms(q: Array, h: float) -> Array:
    """The first axis is x of F, seen from M after the second turn about y; the second axis is y of M."""
    S = columns(1, 1)
    S[:, 0] = [np.cos(q[1]), 0, np.sin(q[1]), 0, 0, 0]
    return S


def plane_freedoms(q: Array, h: float) -> Array:
    """Shifts along x and y of F, seen from M, and the turn."""
    S = columns(3, 4, 2)
    S[3:, :2] = turn(2, q[2]).T[:, :2]
    return S


def plane_drift(q: Array, v: Array) -> Array:
    """The directions of the shifts turn backwards, seen from M."""
    shift = turn(2, q[2]).T @ np.array([v[0], v[1], 0.0])
    return np.concatenate([NOWHERE, -v[2] * np.cross([0, 0, 1], shift)])


def quaternion_rate(e: Array, w: Array) -> Array:
    """Rate of a quaternion with an angular velocity in the axes that it turns to."""
    return np.concatenate([[-e[1:] @ w], e[0] * w + np.cross(e[1:], w)]) / 2


MOTIONS: dict[str, Motion] = {
    "rigid": Motion(0, 0, lambda q, h: (np.eye(3), NOWHERE), lambda q, h: columns(), lambda R, p, h: np.zeros(0)),
    "revolute": Motion(
        1, 1, lambda q, h: (turn(2, q[0]), NOWHERE), lambda q, h: columns(2),
        lambda R, p, h: np.array([angle_about_z(R)]),
    ),
    "prismatic": Motion(
        1, 1, lambda q, h: (np.eye(3), np.array([0, 0, q[0]])), lambda q, h: columns(5), lambda R, p, h: p[2:]
    ),
    "screw": Motion(
        1, 1, lambda q, h: (turn(2, q[0]), np.array([0, 0, h * q[0]])),
        lambda q, h: np.array([[0, 0, 1, 0, 0, h]]).T,
        lambda R, p, h: np.array([p[2] / h if h else angle_about_z(R)]),
    ),
    "cylindrical": Motion(
        2, 2, lambda q, h: (turn(2, q[0]), np.array([0, 0, q[1]])), lambda q, h: columns(2, 5),
        lambda R, p, h: np.array([angle_about_z(R), p[2]]),
    ),
    "universal": Motion(
        2, 2, lambda q, h: (turn(0, q[0]) @ turn(1, q[1]), NOWHERE), cardan_freedoms,
        lambda R, p, h: np.array([np.arctan2(R[2, 1], R[1, 1]), np.arctan2(R[0, 2], R[0, 0])]),
        drift=lambda q, v: v[0] * v[1] * np.array([-np.sin(q[1]), 0, np.cos(q[1]), 0, 0, 0]),
    ),
    "spherical": Motion(
        4, 3, lambda q, h: (turn_by_quaternion(q), NOWHERE), lambda q, h: columns(0, 1, 2),
        lambda R, p, h: quaternion_of(R), rates=quaternion_rate,
    ),
    "planar": Motion(
        3, 3, lambda q, h: (turn(2, q[2]), np.array([q[0], q[1], 0])), plane_freedoms,
        lambda R, p, h: np.array([p[0], p[1], angle_about_z(R)]), drift=plane_drift,
    ),
    "free": Motion(
        7, 6, lambda q, h: (turn_by_quaternion(q[3:]), np.asarray(q[:3])), lambda q, h: columns(0, 1, 2, 3, 4, 5),
        lambda R, p, h: np.concatenate([p, quaternion_of(R)]),
        rates=lambda q, v: np.concatenate([turn_by_quaternion(q[3:]) @ v[3:], quaternion_rate(q[3:], v[:3])]),
    ),
}  # fmt: skip
"""Joint kinds by the names of their types."""
