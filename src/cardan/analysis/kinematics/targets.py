"""What inverse kinematics asks of a frame: a pose, a position, an orientation, or where one of its axes points.

Notation: `R`, `p` axes and point of the frame; `w`, `u` its angular velocity and that of the point, as rows of
Jacobians; all in ground components. A target's error `e` is what remains to be done: it changes by `-J dq`. For
rotations it is the rotation vector from where the frame is to where it should be; then `J^T e` is the exact descent
direction of `|e|^2 / 2`, though `J` leaves out the derivative of the logarithm.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from cardan.algebra.matrix import Matrix, arctan2, constant, dot, sqrt, stack, vector, where
from cardan.algebra.rotation import TINY, cross, rotation_log, rotation_of_quaternion, rotation_to_axis, skew
from cardan.errors import InputError
from cardan.formulation.recursion import run
from cardan.formulation.spatial import BODY_POSES
from cardan.model.model import Model
from cardan.model.pose import Pose, unit_axis
from cardan.model.tree import GROUND
from cardan.model.values import batch, number, one, shown, whole

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

ORTHONORMAL = 1e-6  # deviation of a rotation matrix that is rounding
FARTHEST = 1e15  # m
ALONG = "xyz"


@dataclass(frozen=True, eq=False)
class Target:
    """Where a frame shall be. Give a pose, or a position, an orientation or a direction, or some of them.

    Args:
        frame: a body or named frame of the model.
        pose: homogeneous matrices (..., 4, 4) in ground axes, m, or a `cd.Pose`.
        position: of the frame's origin, or of `point`, (..., 3), m.
        orientation: rotation matrices (..., 3, 3), or quaternions (..., 4) as (w, x, y, z).
        direction: (..., 3) in ground axes, along which `axis` shall point.
        look_at: points (..., 3), m, to which `axis` shall point.
        axis: axis (3,) of the frame, in its own components, for `direction` and `look_at`.
        point: point (3,) of the frame, in its own components, m, that `position` and `look_at` mean.
        along: ground axes along which `position` counts: "xy" leaves z free.
        weight: how much errors count among targets of the same priority; rad, and m by the size of the mechanism.
        priority: 1 before 2: a target never yields to one of a larger number.

    """

    frame: str
    pose: ArrayLike | Pose | None = None
    position: ArrayLike | None = None
    orientation: ArrayLike | None = None
    direction: ArrayLike | None = None
    look_at: ArrayLike | None = None
    axis: ArrayLike = (0.0, 0.0, 1.0)
    point: ArrayLike = (0.0, 0.0, 0.0)
    along: str = ALONG
    weight: float = 1.0
    priority: int = 1


@dataclass(frozen=True, eq=False)
class Aim:
    """A target, checked: what enters the graph (`key`), and the arrays (..., size) that are its inputs."""

    frame: str
    turns: str
    """What is asked of the rotation: "", "orientation", "direction" or "look_at"."""
    along: tuple[int, ...]
    """Components of the position in ground axes."""
    axis: np.ndarray
    point: np.ndarray
    weight: float
    priority: int
    data: tuple[np.ndarray, ...]

    def key(self, model: Model) -> str:
        """All that distinguishes its graph from another's."""
        link, at = model.placement(self.frame)
        place = f"{link} {at.matrix.tobytes().hex()}"
        numbers = np.array([*self.axis, *self.point, self.weight]).tobytes().hex()
        return f"{place} {self.turns} {self.along} {numbers}"

    @property
    def sizes(self) -> tuple[int, ...]:
        """Numbers in each input."""
        return (*((9 if self.turns == "orientation" else 3,) if self.turns else ()), *((3,) if self.along else ()))

    def rows(self, model: Model, q: Matrix, data: list[Matrix], length: float) -> AimRows:
        """Errors and their Jacobian over symbols; positions are in units of `length` (m), all times the weight."""
        import casadi as ca

        data = list(data)
        R, p, w, u = _moving(model, q, self.frame, constant(self.point))
        errors, rows = [], []
        position = rotation = ca.SX(0)
        if self.turns == "orientation":
            e = rotation_log(ca.reshape(data.pop(0), 3, 3).T @ R.T)
            rotation = dot(e, e)
            errors.append(e)
            rows.append(w)
        elif self.turns:
            b = data.pop(0)
            if self.turns == "look_at":
                b = b - p
            distance = sqrt(dot(b, b) + TINY)
            b = b / distance
            turn = w + skew(b) @ u / distance if self.turns == "look_at" else w
            across = R @ constant(rotation_to_axis(self.axis)[:, :2])  # two axes across the one that points
            spare = across @ constant(np.array([0.8, 0.6]))  # about no axis that a mechanism may lack
            e = across.T @ _turn_onto(R @ constant(self.axis), b, spare)
            rotation = dot(e, e)
            errors.append(e)
            rows.append(across.T @ turn)
        if self.along:
            e = (data.pop(0) - p)[list(self.along), 0]
            position = dot(e, e)
            errors.append(e / length)
            rows.append(u[list(self.along), :] / length)
        return AimRows(self.weight * stack(*errors), self.weight * stack(*rows), position, rotation)


@dataclass(frozen=True)
class AimRows:
    """Errors (m,) and Jacobian (m, nv), weighted; squares of the plain errors in m and rad."""

    e: Matrix
    J: Matrix
    position: Matrix
    rotation: Matrix


def _moving(model: Model, q: Matrix, frame: str, c: Matrix) -> tuple[Matrix, Matrix, Matrix, Matrix]:
    """Axes `R` of a frame, its point `p` at c in it, and the Jacobians `w`, `u` (3, nv) of both, in ground axes."""
    i, at = model.placement(frame)
    links = run(BODY_POSES, model, {"q": q}).links
    R = links[i].R @ constant(at.rotation)
    p = links[i].r0 + links[i].R @ constant(at.position) + R @ c
    w, u = type(q)(3, model.nv), type(q)(3, model.nv)
    while i != GROUND:
        b, v = links[i], model.tree.links[i].v
        turning = b.R @ b.S[:3, :]
        w[:, v] = turning
        u[:, v] = b.R @ b.S[3:, :] - skew(p - b.r0) @ turning  # the point moves with w x r
        i = model.tree.links[i].parent
    return R, p, w, u


def _turn_onto(a: Matrix, b: Matrix, spare: Matrix) -> Matrix:
    """Rotation vector that turns unit vector a onto b the short way; about `spare` where they are opposite.

    A vector b of no length, that to a point which the frame is at, is a right angle away.
    """
    n = cross(a, b)
    s = sqrt(dot(n, n) + TINY)
    opposite = (s < 1e-9) * (dot(a, b) < 0.5)
    return arctan2(s, dot(a, b)) * vector(*(where(opposite, spare[k], n[k] / s) for k in range(3)))


def read_targets(owner: str, model: Model, targets: Any) -> list[Aim]:
    """Check what a user gave: a target, a list of them, or poses and positions by frame."""
    if isinstance(targets, dict):
        targets = [_plain_target(owner, frame, value) for frame, value in targets.items()]
    targets = [targets] if isinstance(targets, Target) else targets
    if not isinstance(targets, list | tuple) or not all(isinstance(x, Target) for x in targets):
        what = "cd.Target objects, or a dict of frames to poses (..., 4, 4) or positions (..., 3)"
        raise InputError(f"{owner}: targets must be {what}, got {shown(targets)}")
    if not targets:
        raise InputError(f"{owner}: there is no target; give a frame and where it shall be")
    return [_read(owner, model, target) for target in targets]


def _plain_target(owner: str, frame: Any, value: Any) -> Target:
    """A pose or a position, told by its shape."""
    if isinstance(value, Pose):
        return Target(frame, pose=value.matrix)
    shape = np.shape(value)
    if shape[-2:] == (4, 4):
        return Target(frame, pose=value)
    if shape[-1:] == (3,) and shape[-2:] != (3, 3):
        return Target(frame, position=value)
    raise InputError(
        f"{owner}: target of {frame!r} must be poses (..., 4, 4) or positions (..., 3), got the shape {shape}; "
        "write cd.Target(frame, orientation=...), direction=... or position=... to say which it is"
    )


def _read(owner: str, model: Model, target: Target) -> Aim:
    frame: Any = target.frame
    if not isinstance(frame, str):
        raise InputError(f"{owner}: the frame of a target is a name, got {shown(frame)}")
    link, _ = model.placement(frame)
    owner = f"{owner}: target of {target.frame!r}"
    if link < 0:
        raise InputError(f"{owner}: the frame is fixed to the ground and cannot move; name one of a moving body")
    pose, position, orientation = target.pose, target.position, target.orientation
    if isinstance(pose, Pose):
        pose = pose.matrix
    if pose is not None:
        if position is not None or orientation is not None:
            raise InputError(f"{owner}: a pose is a position and an orientation; give one or the other")
        matrix = batch(owner, "pose", pose, 4, 4)
        if not np.allclose(matrix[..., 3, :], (0, 0, 0, 1)):
            raise InputError(f"{owner}: the last row of a pose is 0, 0, 0, 1, got {shown(matrix[..., 3, :])}")
        position, orientation = matrix[..., :3, 3], matrix[..., :3, :3]
    turning = {"orientation": orientation, "direction": target.direction, "look_at": target.look_at}
    given = [name for name, value in turning.items() if value is not None]
    if len(given) > 1:
        raise InputError(f"{owner}: {' and '.join(given)} both say how it turns; give one of them")
    if not given and position is None:
        raise InputError(f"{owner}: nothing is asked; give pose=, position=, orientation=, direction= or look_at=")
    turns = given[0] if given else ""
    data = [_rotation_data(owner, turns, turning[turns])] if turns else []
    along = _read_along(owner, target.along) if position is not None else ()
    if position is not None:
        data.append(_points(owner, "position", position))
    return Aim(
        target.frame, turns, along, unit_axis(owner, "axis", target.axis), one(owner, "point", target.point, 3),
        number(owner, "weight", target.weight, above=0.0), whole(owner, "priority", target.priority), tuple(data),
    )  # fmt: skip


def _read_along(owner: str, along: Any) -> tuple[int, ...]:
    if not isinstance(along, str) or not along or not set(along) <= set(ALONG) or len(set(along)) < len(along):
        raise InputError(f"{owner}: along names ground axes, as in 'xy', got {shown(along)}")
    return tuple(sorted(ALONG.index(letter) for letter in along))


def _points(owner: str, what: str, value: Any) -> np.ndarray:
    """Positions (..., 3), m, whose squares are numbers too."""
    found = batch(owner, what, value, 3)
    if np.abs(found).max(initial=0.0) > FARTHEST:
        raise InputError(f"{owner}: {what} has {np.abs(found).max():.3g} m; is it in metres? At most {FARTHEST:g} m")
    return found


def _rotation_data(owner: str, turns: str, value: Any) -> np.ndarray:
    """Rotation matrices (..., 9), unit vectors (..., 3) or points (..., 3)."""
    if turns == "look_at":
        return _points(owner, turns, value)
    if turns == "direction":
        found = batch(owner, turns, value, 3)
        length = np.linalg.norm(found, axis=-1, keepdims=True)
        if not (length > 0).all():
            raise InputError(f"{owner}: direction is zero somewhere; it must point somewhere")
        return found / length
    if np.shape(value)[-2:] == (3, 3):
        R = batch(owner, turns, value, 3, 3)
    else:
        quaternion = batch(owner, turns, value, 4)
        if not (np.linalg.norm(quaternion, axis=-1) > 0).all():
            raise InputError(f"{owner}: orientation has a quaternion of zeros; (1, 0, 0, 0) is no rotation")
        rows = [rotation_of_quaternion(x) for x in quaternion.reshape(-1, 4)]
        R = np.reshape(rows, (*quaternion.shape[:-1], 3, 3))
    off = np.abs(R @ np.swapaxes(R, -1, -2) - np.eye(3)).max(initial=0.0)
    if off > ORTHONORMAL or (np.linalg.det(R) < 0).any():
        raise InputError(
            f"{owner}: a rotation matrix has orthonormal columns and determinant 1; one is off by {off:.2g}, or mirrors"
        )
    return R.reshape(*R.shape[:-2], 9)
