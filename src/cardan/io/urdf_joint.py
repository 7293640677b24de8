"""How URDF writes the type, the origin and the axis of a joint.

Roll, pitch and yaw turn about the fixed axes. SI units: m, rad.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from cardan.errors import ModelError
from cardan.io.policy import Policy
from cardan.io.text_file import placing
from cardan.io.xml_element import Element
from cardan.model.joint import Free, JointType, Planar, Prismatic, Revolute, Rigid
from cardan.model.pose import Pose

# How to make a joint of each type from its axis, and whether it has one.
TYPES: dict[str, tuple[Callable[[Any], JointType], bool]] = {
    "revolute": (Revolute, True),
    "continuous": (Revolute, True),
    "prismatic": (Prismatic, True),
    "planar": (Planar, True),
    "fixed": (lambda axis: Rigid(), False),
    "floating": (lambda axis: Free(), False),
}


def naming(where: Element | str, bodies: str = "link") -> AbstractContextManager[None]:
    """Put file and line before errors of the model, and call bodies links."""

    def placed(sentence: str) -> str:
        if sentence.startswith("body "):
            sentence = f"{bodies} " + sentence.removeprefix("body ")
        return f"{where if isinstance(where, str) else where.place}: {sentence}"

    return placing(placed)


def origin_of(element: Element, policy: Policy) -> Pose:
    """Read the `<origin>` of an element; the identity by default."""
    origin = element.one("origin")
    if origin is None:
        return Pose()
    origin.note_unread((), ("xyz", "rpy", "quat_xyzw"))
    return pose_of(origin, policy)


def pose_of(origin: Element, policy: Policy) -> Pose:
    """Read a pose: `xyz` (m), and `rpy` (rad) or, from URDF 1.2 on, `quat_xyzw`."""
    position = origin.numbers("xyz", 3) if origin.has("xyz") else np.zeros(3)
    if origin.has("quat_xyzw"):
        if origin.has("rpy"):
            raise origin.error(f"<{origin.tag}> has both 'rpy' and 'quat_xyzw'; give the rotation once")
        x, y, z, w = origin.numbers("quat_xyzw", 4)
        try:
            return Pose(position, quaternion=(w, x, y, z))
        except ModelError:
            length = f"has length {np.linalg.norm([x, y, z, w]):.6g}, not 1: {origin.text('quat_xyzw')!r}"
            fault = origin.error(
                f"'quat_xyzw' of <{origin.tag}> {length}; normalise it, and mind the order (x, y, z, w)"
            )
        return Pose(position, quaternion=policy.settle("quaternion", fault, (w, x, y, z)))
    return Pose(position, rpy=origin.numbers("rpy", 3) if origin.has("rpy") else np.zeros(3))


def axis_of(joint: Element) -> np.ndarray:
    """Read the axis, or a plane's normal, in the joint frame; x by default."""
    axis = joint.one("axis")
    if axis is None:
        return np.array([1.0, 0.0, 0.0])
    axis.note_unread((), ("xyz",))
    return axis.numbers("xyz", 3)
