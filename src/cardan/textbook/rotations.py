"""Rotations by quaternions, matrices and rotation vectors: the text of `algebra.rotation`, compiled and batched."""

from __future__ import annotations

from cardan.algebra import rotation
from cardan.textbook import rules
from cardan.textbook.equation import Source
from cardan.textbook.notation import Quantity, Text

ROTATIONS = Source(
    "RBDA",
    "R. Featherstone, Rigid Body Dynamics Algorithms, Springer 2008",
    {
        "q": Quantity("q", (4,), "quaternion in the order (w, x, y, z), of any length", "1", rules.not_zero),
        "unit_q": Quantity("q", (4,), "unit quaternion in the order (w, x, y, z)", "1"),
        "R": Quantity("R", (3, 3), "rotation matrix", "1", rules.rotation),
        "u": Quantity("u", (3,), "rotation vector: axis times angle", "rad"),
    },
)


@ROTATIONS.equation("rotation_of_quaternion", gives="R", printed=False)
def rotation_of_quaternion(q: Text) -> Text:
    """Rotation matrix of a quaternion."""
    return rotation.rotation_of_quaternion(q)


@ROTATIONS.equation("quaternion_of_rotation", gives="unit_q", printed=False)
def quaternion_of_rotation(R: Text) -> Text:
    """Unit quaternion of a rotation matrix."""
    return rotation.quaternion_of_rotation(R)


@ROTATIONS.equation("rotation_exp", gives="R", printed=False)
def rotation_exp(u: Text) -> Text:
    """Rotation matrix of a rotation vector."""
    return rotation.rotation_exp(u)


@ROTATIONS.equation("rotation_log", gives="u", printed=False)
def rotation_log(R: Text) -> Text:
    """Rotation vector of a rotation matrix."""
    return rotation.rotation_log(R)
