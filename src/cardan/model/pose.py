"""The pose of a frame: position and rotation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cardan.algebra.free_number import is_free
from cardan.algebra.rotation import quaternion_of_rotation, rotation_of_quaternion, rotation_of_rpy
from cardan.errors import ModelError
from cardan.model.values import floats, shown

ArrayLike = Sequence[Any] | np.ndarray

# Largest deviation of a quaternion or rotation matrix that is taken for rounding and normalised.
ROUNDING = 1e-3
LARGEST = 1e100  # beyond this, squares overflow
UNTURNED = np.eye(3)
UNTURNED.flags.writeable = False


def numbers(owner: str, what: str, value: Any, shape: tuple[int, ...]) -> np.ndarray:
    """Read an array of finite numbers of a given shape; the error says in one sentence what is wrong."""
    try:
        array = floats(value)
    except TypeError:
        raise ModelError(f"{owner}: {what} must be {_described(shape)}, got {shown(value)}") from None
    if array.shape != shape:
        raise ModelError(f"{owner}: {what} must be {_described(shape)}, got {shown(value)} of shape {array.shape}")
    if all(abs(x) <= LARGEST for x in array.ravel().tolist()):  # false for NaN
        return array
    if not np.isfinite(array).all():
        raise ModelError(f"{owner}: {what} must be finite, got {shown(value)}")
    raise ModelError(f"{owner}: {what} {np.abs(array).max():g} is too large to compute with; check units")


def _described(shape: tuple[int, ...]) -> str:
    return "a number" if shape == () else f"{' x '.join(map(str, shape))} number{'s' * (shape != (1,))}"


@dataclass(frozen=True, eq=False)
class Pose:
    """A frame seen from another: `position` (3,) in m and `rotation` (3, 3) whose columns are its axes.

    Give the rotation as a matrix, as a `quaternion` (w, x, y, z), or as `rpy` (roll, pitch, yaw about the fixed
    axes, rad). A quaternion slightly off unit length is normalised; one that is far off is an error.
    """

    position: Any = (0.0, 0.0, 0.0)
    rotation: Any = None
    quaternion: Any = field(default=None, repr=False)
    rpy: Any = field(default=None, repr=False)

    def __post_init__(self) -> None:
        """Check and freeze the numbers."""
        free = is_free(self.position)  # free numbers come from the model itself, in a validated pose
        position = np.array(self.position) if free else numbers("pose", "position", self.position, (3,))
        given = [name for name in ("rotation", "quaternion", "rpy") if getattr(self, name) is not None]
        if len(given) > 1:
            raise ModelError(f"pose: give the rotation once, not as {' and as '.join(given)}")
        if is_free(self.rotation):
            rotation = np.array(self.rotation)
        elif self.quaternion is not None:
            rotation = rotation_of_quaternion(unit_quaternion("pose", self.quaternion))
        elif self.rpy is not None:
            rotation = rotation_of_rpy(numbers("pose", "rpy", self.rpy, (3,)))
        elif self.rotation is not None:
            rotation = _orthonormal(numbers("pose", "rotation", self.rotation, (3, 3)))
        else:
            rotation = np.eye(3)
        self._freeze(position, rotation)

    def _freeze(self, position: np.ndarray, rotation: np.ndarray) -> None:
        turned = not is_free(rotation) and not (rotation == UNTURNED).all()  # for most frames this saves time
        quaternion = quaternion_of_rotation(rotation) if turned else np.array([1.0, 0.0, 0.0, 0.0])
        for array in (position, rotation, quaternion):
            array.flags.writeable = False
        vars(self).update(position=position, rotation=rotation, quaternion=quaternion, rpy=None)

    @classmethod
    def _of(cls, position: np.ndarray, rotation: np.ndarray) -> Pose:
        """A pose of arrays that come from other poses: only rounding errors of the rotation are removed."""
        pose = cls.__new__(cls)
        pose._freeze(position, rotation if is_free(rotation) else _orthonormal(rotation))
        return pose

    def __matmul__(self, inner: Pose) -> Pose:
        """Chain two poses: `A_B @ B_C` is `A_C`."""
        if not isinstance(inner, Pose):
            raise ModelError(f"pose: @ chains it with another cd.Pose, got {shown(inner)}")
        return Pose._of(self.position + self.rotation @ inner.position, self.rotation @ inner.rotation)

    @property
    def inverse(self) -> Pose:
        """The first frame seen from the second."""
        return Pose._of(-(self.rotation.T @ self.position), self.rotation.T.copy(order="K"))

    @property
    def matrix(self) -> np.ndarray:
        """Homogeneous matrix (4, 4)."""
        result = np.eye(4, dtype=self.position.dtype)
        result[:3, :3], result[:3, 3] = self.rotation, self.position
        return result

    @property
    def is_identity(self) -> bool:
        """Whether the two frames coincide exactly."""
        return not self.position.any() and bool((self.rotation == UNTURNED).all())

    def __repr__(self) -> str:
        """Show position and quaternion."""
        digits = [np.array2string(a, precision=6, separator=", ") for a in (self.position, self.quaternion)]
        return f"Pose(position={digits[0]}, quaternion={digits[1]})"


def read_pose(owner: str, what: str, value: Any) -> Pose:
    """Read a pose given as `Pose` or as a bare position."""
    if isinstance(value, Pose):
        return value
    return Pose(numbers(owner, what, value, (3,)))


def unit_quaternion(owner: str, value: Any) -> np.ndarray:
    """Normalise a quaternion (w, x, y, z); reject one whose length is far from 1."""
    quaternion = numbers(owner, "quaternion", value, (4,))
    length = float(np.linalg.norm(quaternion))
    if abs(length - 1) > ROUNDING:
        raise ModelError(
            f"{owner}: quaternion {np.array2string(quaternion, separator=', ')} has length {length:.6g}, not 1; "
            "normalise it, and mind the order (w, x, y, z)"
        )
    return quaternion if abs(length - 1) < 1e-15 else quaternion / length  # so that reading it again changes nothing


def unit_axis(owner: str, what: str, value: Any) -> np.ndarray:
    """Normalise an axis; reject the zero vector."""
    axis = numbers(owner, what, value, (3,))
    length = float(np.linalg.norm(axis))
    if length < 1e-12:
        raise ModelError(f"{owner}: {what} {tuple(axis.tolist())} has no direction; give a non-zero vector")
    return axis / length


def _orthonormal(R: np.ndarray) -> np.ndarray:
    """Validate a rotation matrix and remove rounding errors."""
    error = float(np.abs(R.T @ R - UNTURNED).max())
    (a, b, c), (d, e, f), (g, h, i) = R.tolist()
    determinant = a * (e * i - f * h) - b * (d * i - f * g) + c * (d * h - e * g)
    if error > ROUNDING or determinant < 0:
        kind = "a reflection (determinant below 0)" if determinant < 0 else f"off by {error:.3g}"
        raise ModelError(f"pose: rotation is not a rotation matrix, R^T R = 1 is {kind}: {R.tolist()}")
    if error < 1e-14:
        return R
    U, _, V = np.linalg.svd(R)
    return U @ V
