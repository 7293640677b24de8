"""A model written as URDF, and a sentence for everything that URDF cannot express.

A link's frame is at its joint, so the frame of a body is moved there. A joint of several motions becomes several joints
with links without mass between them. A frame becomes a link without mass. A model gets a link `world`, unless one body
is fixed to ground at the ground's frame and nothing else is connected to ground.

Source: the URDF specification of ROS, pages robot, link, inertial, joint.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING
from xml.etree import ElementTree

import numpy as np

from cardan.algebra.rotation import rotation_to_axis
from cardan.io.export import (
    Branch,
    add,
    branches,
    check_names,
    document,
    finite_data,
    followers,
    left_out,
    name_of,
    rpy_of_rotation,
    unlike,
    words,
)
from cardan.io.text_file import BODIES
from cardan.io.urdf.read import INERTIA, UNLIMITED
from cardan.io.xml_element import ELEMENTS
from cardan.model.body import Joint, JointData
from cardan.model.joint import PLANAR, RIGID
from cardan.model.model import Model
from cardan.model.pose import Pose
from cardan.model.tree import GROUND

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element as Node

DOWN = (0.0, 0.0, -9.81)
TYPE_OF = {"turn": "revolute", "slide": "prismatic"}
# What is lost where other joints stand for one that URDF lacks.
BALL = (
    "URDF has no such joint; three hinges about x, y and z stand for it, with angles in place of a quaternion, and "
    "they lock where the second is at 90 degrees"
)
SCREW = "URDF has no such joint; a hinge and a slider that mimics it stand for it, so that it has two coordinates"
FIXED = "URDF has no such joint; it is written as fixed, where its coordinates are neutral"


def write_urdf(model: Model) -> tuple[str, list[str]]:
    """The text of a URDF file, and a sentence for each loss; `load` makes the same tree of it."""
    model.require_one("save")
    check_names(model)
    writer = _Writer(model.settled())
    writer.losses += _losses(model)
    root = writer.robot()
    return document(root, model, writer.losses, {"link": BODIES, "*": ELEMENTS}), writer.losses


def _losses(model: Model) -> Iterator[str]:
    """What URDF cannot express in any model."""
    if not np.array_equal(model.gravity, DOWN):
        yield f"gravity {tuple(model.gravity.tolist())} m/s^2: URDF has none; give it to load"
    for j in model.cuts:
        yield f"joint {model.joints[j].name!r}: it closes a loop, and URDF knows only trees; left out"
    for force in model.forces:
        yield f"{force.kind.name} {force.name!r}: URDF has no force elements; left out"
    for joint in model.joints:
        if joint.armature is not None:
            yield f"joint {joint.name!r}: URDF has no armature, {words(joint.armature)}; left out of the mass matrix"
        if joint.start is not None:
            yield f"joint {joint.name!r}: URDF has no start, {words(joint.start)}; left out"
    yield from left_out(model, "URDF has none; ")
    if model.parameters:
        yield f"free numbers {', '.join(model.parameters.names)}: URDF has none; written as constants"


class _Writer:
    """Links and joints of one file."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.tree = list(branches(model))
        self.losses: list[str] = []
        self.link_names = {body.name for body in model.bodies} | {frame.name for frame in model.frames}
        self.joint_names = {joint.name for joint in model.joints}
        self.places: dict[int, Pose] = {GROUND: Pose()}  # of each link's frame, in its body's
        self.base = self._base()
        said = {branch.joint.name for branch in self.tree if branch.can_be_said}
        single = {j for j, joint in enumerate(model.joints) if joint.kind.nv == 1 and joint.name in said}
        self.following, left = followers(model, single)
        for coupling in left:
            self.losses.append(f"{coupling.owner}: URDF couples two joints by mimic and no others; left out")

    def robot(self) -> Node:
        """The whole file: links first, in the order of the bodies, then joints in that of the coordinates."""
        robot = ElementTree.Element("robot", name=self.model.name)
        links, joints = ElementTree.Element("links"), ElementTree.Element("joints")
        if self.base is None:
            self.base = unlike("world", self.link_names)
            add(links, "link", name=self.base)
        for branch in self.tree:
            self._place(branch)
        for body in range(self.model.nb):
            self._link(links, body)
        for branch in self.tree:
            if not self._is_base(branch):
                self._branch(links, joints, branch)
        for frame in self.model.frames:
            add(links, "link", name=frame.name)
            at = self.places[frame.body].inverse @ frame.at
            own = unlike(f"{frame.name}_frame", self.joint_names)
            self._joint(joints, own, "fixed", self._link_name(frame.body), frame.name, at)
        robot.extend([*links, *joints])
        return robot

    def _base(self) -> str | None:
        """The one body that stands for ground, if there is one."""
        on_ground = [branch for branch in self.tree if branch.near == GROUND]
        at_frame = any(frame.body == GROUND for frame in self.model.frames)
        if len(on_ground) != 1 or at_frame or on_ground[0].kind is not RIGID:
            return None
        seen = on_ground[0].F @ on_ground[0].M.inverse
        return name_of(self.model, on_ground[0].far) if seen.is_identity else None

    def _is_said(self, name: str) -> bool:
        """Whether the file has a joint of this name that moves."""
        return any(branch.joint.name == name and branch.can_be_said for branch in self.tree)

    def _is_base(self, branch: Branch) -> bool:
        return branch.near == GROUND and self.base == name_of(self.model, branch.far)

    def _link_name(self, body: int) -> str:
        assert self.base is not None
        return self.base if body == GROUND else self.model.bodies[body].name

    def _place(self, branch: Branch) -> None:
        """Choose the frame of a link: its body's where that is possible, else at the joint, with the body's axes."""
        M, kind = branch.M, branch.kind
        if branch.whole == "free" or (kind is PLANAR and not branch.backwards):
            place = Pose() if kind is PLANAR and _is_about_axis(M) else M
        elif all(what == "slide" for what, _ in branch.motions):
            place = Pose()
        else:
            place = Pose(M.position)
        self.places[branch.far] = place
        if not place.is_identity:
            body = name_of(self.model, branch.far)
            self.losses.append(
                f"body {body!r}: URDF has a link's frame at its joint, so its frame is moved to joint "
                f"{branch.joint.name!r}, by ({words(place.position)}) m"
                + ("" if np.array_equal(place.rotation, np.eye(3)) else " and turned")
            )

    def _link(self, links: Node, index: int) -> None:
        body, place = self.model.bodies[index], self.places[index]
        link = add(links, "link", name=body.name)
        if body.mass == 0 and not body.inertia.any():
            return
        R = place.rotation
        com, I = (
            (body.com, body.inertia)
            if place.is_identity
            else ((place.inverse @ Pose(body.com)).position, R.T @ body.inertia @ R)
        )
        inertial = add(link, "inertial")
        if com.any():
            add(inertial, "origin", xyz=words(com))
        add(inertial, "mass", value=words(body.mass))
        I = (I + I.T) / 2
        entries = zip(INERTIA, (I[0, 0], I[1, 1], I[2, 2], I[0, 1], I[0, 2], I[1, 2]), strict=True)
        add(inertial, "inertia", **{name: words(value) for name, value in entries})

    def _branch(self, links: Node, joints: Node, branch: Branch) -> None:
        """Write one joint of the model as one or several joints."""
        near, far = self._link_name(branch.near), self._link_name(branch.far)
        seen = self.places[branch.near].inverse @ branch.F
        back = branch.M.inverse @ self.places[branch.far]  # from M to the link's frame
        name, data = branch.joint.name, finite_data(branch.joint)
        if branch.whole == "free":
            if branch.backwards:
                self.losses.append(
                    f"joint {name!r}: a floating joint runs from parent to child, and this one is met from its child; "
                    "its coordinates are those of the opposite motion"
                )
            self._joint(joints, name, "floating", near, far, seen, data=data)
            return
        at = seen @ back
        if branch.kind is PLANAR and not branch.backwards:
            self._joint(joints, name, "planar", near, far, at, back.rotation.T @ np.eye(3)[2], data)
            return
        self._motions(links, joints, branch, near, far, at, back.rotation.T)

    def _motions(self, links: Node, joints: Node, branch: Branch, near: str, far: str, at: Pose, R: np.ndarray) -> None:
        """Motions one after the other, with links without mass between them; `R` takes axes of M to the link's."""
        name, data = branch.joint.name, finite_data(branch.joint)
        motions = branch.motions
        if ball := branch.whole == "ball":
            motions = [("turn", axis) for axis in np.eye(3)]
        called = f"joint {name!r} ({branch.kind.title})"
        if not branch.can_be_said:
            self.losses.append(f"{called}: {FIXED}")
        if not motions:
            self._joint(joints, name, "fixed", near, far, at, data=data if branch.can_be_said else None)
            return
        if ball or branch.ratio is not None:
            self.losses.append(f"{called}: {BALL if ball else SCREW}")
        elif branch.reorders:
            self.losses.append(f"joint {name!r}: it is met from its child; its coordinates come in the opposite order")
        if len(motions) > 1 and data != JointData():
            self.losses.append(f"joint {name!r}: several joints stand for it, and its limits and friction are left out")
        own = [
            name if len(motions) == 1 else unlike(f"{name}_{k}", self.joint_names) for k in range(1, 1 + len(motions))
        ]
        if branch.ratio is not None:
            own[0] = name  # so that couplings can name it
        for k, (what, axis) in enumerate(motions):
            last = k == len(motions) - 1
            next_link = far if last else unlike(f"{own[k]}_link", self.link_names)
            if not last:
                add(links, "link", name=next_link)
            joint = self._joint(
                joints, own[k], TYPE_OF[what], near, next_link, at if k == 0 else Pose(), R @ axis,
                data if len(motions) == 1 else JointData(),
            )  # fmt: skip
            if branch.ratio is not None and last:
                add(joint, "mimic", joint=own[0], multiplier=words(branch.ratio))
            elif k == 0 and (len(motions) == 1 or branch.ratio is not None):
                self._mimic(joint, branch.joint)
            near = next_link

    def _joint(
        self, joints: Node, name: str, type: str, near: str, far: str, at: Pose,
        axis: np.ndarray | None = None, data: JointData | None = None,
    ) -> Node:  # fmt: skip
        data = data or JointData()
        if type == "revolute" and data.lower is None and data.upper is None:
            type = "continuous"
        joint = add(joints, "joint", name=name, type=type)
        if not at.is_identity:
            rpy = {} if np.array_equal(at.rotation, np.eye(3)) else {"rpy": words(rpy_of_rotation(at.rotation))}
            add(joint, "origin", xyz=words(at.position), **rpy)
        add(joint, "parent", link=near)
        add(joint, "child", link=far)
        if axis is not None:
            add(joint, "axis", xyz=words(np.where(np.abs(axis) < 1e-15, 0.0, axis)))
        limit = _limit(type, data)
        if limit:
            add(joint, "limit", **{key: words(value) for key, value in limit.items()})
        if data.damping or data.friction:
            add(joint, "dynamics", damping=words(data.damping), friction=words(data.friction))
        return joint

    def _mimic(self, node: Node, joint: Joint) -> None:
        """Write the joint that this one follows, by a coupling of the model or by its data."""
        j = self.model.joint_names.index(joint.name)
        if j in self.following:
            other, multiplier, offset = self.following[j]
            name = self.model.joints[other].name
        elif joint.data.mimic is not None and self._is_said(joint.data.mimic[0]):
            name, multiplier, offset = joint.data.mimic
        else:
            return
        add(node, "mimic", joint=name, multiplier=words(multiplier), offset=words(offset))


def _limit(type: str, data: JointData) -> dict[str, float]:
    """Entries of `<limit>`; hinges and sliders must have them all, and the largest number stands for no limit."""
    given = {"lower": data.lower, "upper": data.upper, "velocity": data.velocity, "effort": data.effort}
    if type == "continuous":
        given = {key: value for key, value in given.items() if key in ("velocity", "effort")}
        return {key: value for key, value in given.items() if value is not None}
    if type not in ("revolute", "prismatic"):
        return {key: value for key, value in given.items() if value is not None}
    unlimited = {"lower": -UNLIMITED} | dict.fromkeys(("upper", "velocity", "effort"), UNLIMITED)
    return {key: unlimited[key] if value is None else value for key, value in given.items()}


def _is_about_axis(M: Pose) -> bool:
    """Whether a plane's frame is the one that follows from its normal alone."""
    axes = rotation_to_axis(M.rotation[:, 2])
    return not M.position.any() and bool(np.abs(axes - M.rotation).max() < 1e-15)
