"""Loops and gears beside the tree of a URDF file, in the ways in which files write them.

    <loop>                    URDF+: a joint between a predecessor and a successor, with an origin on each
    <coupling>                URDF+: `ratio * (angle of the predecessor) = angle of the successor`, each from the link
                              that carries both: the sum of the coordinates of the joints on the way
    <loop_joint>              Isaac Sim, and Drake until 2018: a joint between link1 and link2, with a pose on each
    <gazebo> with a <joint>   SDF: the joint's pose is on the child; on the parent it is where the file has it
    <drake:ball_constraint>   Drake: a point of one body held to a point of another

A joint that closes a loop is always cut, so that the tree is that of the file.

Source: Chignoli and others, URDF+: An Enhanced URDF for Robots with Kinematic Loops (2024); the documentation of the
URDF importer of Isaac Sim, of SDFormat (joint) and of Drake (XML tags).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from cardan.errors import nearest
from cardan.io.policy import Policy
from cardan.io.urdf_joint import TYPES, axis_of, naming, origin_of, pose_of
from cardan.io.xml_element import Element
from cardan.model.builder import Mechanism
from cardan.model.joint import JointType, Spherical
from cardan.model.pose import Pose

BALL: dict[str, tuple[Callable[[Any], JointType], bool]] = {
    name: (lambda axis: Spherical(), False) for name in ("spherical", "ball")
}
CLOSING = {name: how for name, how in (TYPES | BALL).items() if name != "floating"}
"""Types of joints that close loops; a floating one would hold nothing."""
BALL_CONSTRAINT = "ball_constraint"
MOST, LONGEST = 1000, 100
"""Most loops, couplings and `<gazebo>` elements of a file, and most joints that one coupling depends on."""
LOOPS = ("loop", "coupling", "loop_joint")
ENDS, WORLD = ("parent", "child"), "world"
HARMLESS = {
    "material", "sensor", "visual", "selfCollide", "self_collide", "mu", "mu1", "mu2", "kp", "kd", "fdir1", "maxVel",
    "minDepth", "maxContacts", "laserRetro", "provideFeedback", "preserveFixedJoint", "disableFixedJointLumping",
}  # fmt: skip
"""What a `<gazebo>` may hold that concerns looks, sensors and contact, which are not read elsewhere either."""


class Loops:
    """Adds the loops and gears of a file to a mechanism; `bodies` are the names of its links there."""

    def __init__(self, mechanism: Mechanism, links: Mapping[str, Element], joints: Mapping[str, Element],
                 bodies: Mapping[str, str], policy: Policy) -> None:  # fmt: skip
        self.mechanism, self.links, self.joints, self.bodies, self.policy = mechanism, links, joints, bodies, policy
        self.tags: set[str] = set()
        """Names, with the prefix of their namespace, of the elements that were read besides `LOOPS`."""
        self.zero: dict[str, Pose] = {}
        self.carrier = {joint.needed("child", "").text("link"): name for name, joint in joints.items()}
        self.parent = {name: joint.needed("parent", "").text("link") for name, joint in joints.items()}

    def add(self, robot: Element) -> None:
        """Add all of them."""
        count = sum(element.tag in (*LOOPS, "gazebo") or element.local == BALL_CONSTRAINT for element in robot.children)
        if count > MOST:
            raise robot.error(f"it has {count} loops, couplings and <gazebo> elements; at most {MOST} are read")
        for tag, read in (("loop", self._loop), ("loop_joint", self._loop_joint), ("coupling", self._coupling)):
            for number, element in enumerate(robot.all(tag), 1):
                element.owner = f"<{tag}> number {number}"
                element.owner = f"{tag} {element.text('name')!r}"
                read(element)
        for number, element in enumerate(robot.all("gazebo"), 1):
            element.owner = f"<gazebo> number {number}"
            self._gazebo(element)
        for number, element in enumerate(element for element in robot.children if element.local == BALL_CONSTRAINT):
            element.owner = f"<{element.tag}> number {number + 1}"
            self.tags.add(element.tag)
            self._ball_constraint(element, f"ball_constraint_{number + 1}")

    def _link(self, element: Element, name: str) -> str:
        """The body of a link that an element names."""
        if name not in self.links:
            raise element.error(f"{name!r} is not a link of this file{nearest(name, self.links)}")
        return self.bodies[name]

    def _close(
        self, element: Element, name: str, type: JointType, ends: tuple[str, str], at: tuple[Pose, Pose]
    ) -> None:
        """Add a joint that is cut."""
        with naming(element):
            self.mechanism.joint(name, type, *ends, at=at[0], child_at=at[1])
        self.mechanism.cut = (*self.mechanism.cut, name)

    def _type(self, element: Element, kind: str, axis: np.ndarray | None) -> JointType:
        """The joint type of a name; `axis` is None where the file gives none."""
        if kind not in CLOSING:
            raise element.error(f"type {kind!r} is not a type of joint that closes a loop{nearest(kind, CLOSING)}")
        make, has_axis = CLOSING[kind]
        if has_axis and axis is None:
            raise element.error(f'it is {kind} and has no <axis>; add one, such as <axis xyz="0 0 1"/>')
        with naming(element):
            return make(axis if has_axis else None)

    def _loop(self, element: Element) -> None:
        element.note_unread(("predecessor", "successor", "axis"), ("name", "type"))
        ends = [element.needed(tag, f'<{tag} link="..."/>') for tag in ("predecessor", "successor")]
        for end in ends:
            end.note_unread(("origin",), ("link",))
        one, two = (self._link(element, end.text("link")) for end in ends)
        at = origin_of(ends[0], self.policy), origin_of(ends[1], self.policy)
        kind = self._type(element, element.text("type"), axis_of(element))  # as of a joint, the axis is x by default
        self._close(element, element.text("name"), kind, (one, two), at)

    def _loop_joint(self, element: Element) -> None:
        element.note_unread(("link1", "link2", "axis"), ("name", "type"))
        ends = [element.needed(tag, f'<{tag} link="..." xyz="0 0 0" rpy="0 0 0"/>') for tag in ("link1", "link2")]
        for end in ends:
            end.note_unread((), ("link", "xyz", "rpy"))
        one, two = (self._link(element, end.text("link")) for end in ends)
        axis = axis_of(element) if element.one("axis") is not None else None
        kind = self._type(element, element.text("type"), axis)
        at = pose_of(ends[0], self.policy), pose_of(ends[1], self.policy)
        self._close(element, element.text("name"), kind, (one, two), at)

    def _coupling(self, element: Element) -> None:
        element.note_unread(("predecessor", "successor", "ratio"), ("name",))
        ends = [element.needed(tag, f'<{tag} link="..."/>').text("link") for tag in ("predecessor", "successor")]
        for end in ends:
            self._link(element, end)
        ratio = element.needed("ratio", '<ratio value="6.0"/>').number("value")
        one, two = (self._way(end) for end in ends)
        shared = set(one) & set(two)
        terms = {name: ratio for name in one if name not in shared} | {name: -1.0 for name in two if name not in shared}
        moving = {name: value for name, value in terms.items() if self.joints[name].text("type") != "fixed"}
        if len(moving) > LONGEST:
            raise element.error(f"it depends on the angles of {len(moving)} joints; at most {LONGEST} are read")
        if not moving:
            raise element.error(f"no joint moves {ends[0]!r} and {ends[1]!r} against each other; name two other links")
        with naming(element):
            self.mechanism.couple(element.text("name"), moving)

    def _way(self, link: str) -> list[str]:
        """Joints from a link to the root."""
        way: dict[str, None] = {}
        while link in self.carrier and self.carrier[link] not in way:
            name = self.carrier[link]
            way[name] = None
            link = self.parent[name]
        return list(way)

    def _ball_constraint(self, element: Element, name: str) -> None:
        parts = {child.local.removeprefix("ball_constraint_"): child for child in element.children}
        missing = [part for part in ("body_A", "body_B", "p_AP", "p_BQ") if part not in parts]
        if missing:
            raise element.error(f"it has no element of the name ball_constraint_{missing[0]}; add it")
        one, two = (self._link(element, parts[part].text("name")) for part in ("body_A", "body_B"))
        at = Pose(parts["p_AP"].numbers("value", 3)), Pose(parts["p_BQ"].numbers("value", 3))
        while any(joint.name == name for joint in self.mechanism.joints):
            name += "_"
        self._close(element, name, Spherical(), (one, two), at)

    # SDF in <gazebo>.

    def _gazebo(self, element: Element) -> None:
        """Add joints of SDF; count all else that may concern dynamics as unread."""
        for child in element.children:
            if child.tag == "joint":
                child.owner = f"joint {child.text('name')!r} of <gazebo>"
                self._sdf_joint(child)
        element.note_unread(("joint", *HARMLESS), ("reference", "xmlns"))

    def _sdf_joint(self, element: Element) -> None:
        element.note_unread(("parent", "child", "pose", "axis", "physics", "sensor"), ("name", "type"))
        parent, child = (_filled(element.needed(tag, f"<{tag}>link</{tag}>")).text("text").strip() for tag in ENDS)
        one, two = (
            self.mechanism.ground if end == WORLD and end not in self.links else self._link(element, end)
            for end in (parent, child)
        )
        pose, axis = element.one("pose"), element.one("axis")
        numbers = np.zeros(6) if pose is None else _filled(pose).numbers("text", 6)
        if pose is not None and (pose.has("relative_to") or pose.has("frame")):
            raise element.error("its pose is relative to another frame, which is not read; give it on the child link")
        direction = None
        if axis is not None:
            axis.note_unread(("xyz",), ())
            xyz = axis.needed("xyz", "<xyz>0 0 1</xyz>")
            if xyz.has("expressed_in"):
                raise element.error("its axis is given in another frame, which is not read; give it in the joint's")
            direction = _filled(xyz).numbers("text", 3)
        M = Pose(numbers[:3], rpy=numbers[3:])
        F = self._at_zero(parent).inverse @ self._at_zero(child) @ M
        kind = self._type(element, element.text("type"), direction)
        self._close(element, element.text("name"), kind, (one, two), (F, M))

    def _at_zero(self, link: str) -> Pose:
        """Pose of a link in the root's frame where all coordinates are zero."""
        pose = Pose()
        for name in reversed(self._way(link)):
            if name not in self.zero:
                self.zero[name] = pose @ origin_of(self.joints[name], self.policy)
            pose = self.zero[name]
        return pose


def _filled(element: Element) -> Element:
    """An element of SDF, whose content is the text inside it, with that text as its attribute `text`."""
    element.node.set("text", element.node.text or "")
    return element
