"""Random URDF files that are valid: every joint type, rotations of any size, links and joints in any order."""

from __future__ import annotations

import random
from xml.etree import ElementTree
from xml.etree.ElementTree import Element as Node

from hypothesis import strategies as st

from ..random_values import RandomValues, add

TYPES = ("revolute", "continuous", "prismatic", "fixed", "planar", "floating")
SCALAR = ("revolute", "continuous", "prismatic")
NAMES = ("{}", "{} of it", "é{}", "/{}", "{}-x", "{}.x", "Ω {}")
# xx, yy, zz, xy, xz, yz: solid, thin, turned
INERTIAS = (
    (1, 1, 1, 0, 0, 0), (0.3, 0.4, 0.5, 0, 0, 0), (0.02, 0.03, 0.04, 0.001, -0.002, 0.003),
    (0.3, 0.4, 0.5, 0.1, 0, 0.05), (0.1, 0.1, 0.2, 0, 0, 0),
)  # fmt: skip


@st.composite
def robots(draw: st.DrawFn) -> str:
    """The text of a file."""
    return _Robot(RandomValues(draw)).write()


class _Robot:
    """A tree of links, and joints that lead to all of them but the first."""

    def __init__(self, dice: RandomValues) -> None:
        self.dice = dice
        self.links: list[str] = []
        self.joints: list[tuple[str, str]] = []

    def write(self) -> str:
        dice, root = self.dice, Node("robot", name=self.dice.pick("robot", "a robot", "r-1"))
        parts = []
        for k in range(dice.whole(2, 7)):
            self.links.append(dice.pick(*NAMES).format(f"{dice.pick('link', 'body', 'l')}{k}"))
            parts.append(self._link(self.links[-1], k))
            if k:
                parts.append(self._joint(self.links[dice.whole(0, k - 1)], self.links[-1], k))
        if dice.some(50):
            random.Random(dice.whole(0, 99)).shuffle(parts)
        root.extend(parts)
        if dice.some(10):
            add(root, "material", name="grey")
        ElementTree.indent(root)
        return ElementTree.tostring(root, encoding="unicode")

    def _origin(self, node: Node, percent: int = 70) -> None:
        dice = self.dice
        if dice.some(percent):
            origin = add(node, "origin")
            if dice.some(80):
                origin.set("xyz", dice.vector(3))
            if dice.some(70):
                origin.set("rpy", dice.vector(3, dice.pick(1.0, 3.2, 12.0)))
            elif dice.some(10):
                origin.set(
                    "rpy", dice.pick("0 1.5707963267948966 0", "1 -1.5707963267948966 2", "3.141592653589793 0 0")
                )

    def _link(self, name: str, k: int) -> Node:
        dice, link = self.dice, Node("link", name=name)
        if dice.some(10):
            add(link, "visual")
        if not dice.some(5 if k else 50):
            inertial = add(link, "inertial")
            self._origin(inertial)
            add(inertial, "mass", value=dice.pick("1", "0.25", "3e0", " 2.5"))
            numbers = zip(("ixx", "iyy", "izz", "ixy", "ixz", "iyz"), dice.pick(*INERTIAS), strict=True)
            add(inertial, "inertia", **{entry: str(value) for entry, value in numbers})
        return link

    def _joint(self, parent: str, child: str, k: int) -> Node:
        dice, kind = self.dice, self.dice.pick(*TYPES[:3], *TYPES)
        joint = Node("joint", name=dice.pick(*NAMES).format(f"joint{k}"), type=kind)
        for tag, link in (("parent", parent), ("child", child)):
            add(joint, tag, link=link)
        self._origin(joint)
        if kind == "planar":  # the plane of Pinocchio is that of x and y, whatever the axis
            add(joint, "axis", xyz="0 0 1")
        elif dice.some(70):
            add(
                joint,
                "axis",
                xyz=dice.pick(dice.vector(3, zero=False), "0 0 1", "0 1 0", "-1 0 0", "2 0 0", " 0  0 -3 "),
            )
        if kind in ("revolute", "prismatic"):
            add(joint, "limit", lower="-1", upper="1.5", effort="10", velocity=dice.pick("2", "1e3"))
        if dice.some(20):
            add(joint, "dynamics", damping="0.5", friction="0.1")
        if kind in SCALAR:
            if self.joints and dice.some(25):
                mimic = add(joint, "mimic", joint=dice.pick(*self.joints)[0])
                if dice.some(70):
                    mimic.set("multiplier", dice.pick("-1", "0.5", "2", "1"))
                if dice.some(50):
                    mimic.set("offset", dice.number())
            self.joints.append((joint.get("name", ""), kind))
        if dice.some(30):
            random.Random(dice.whole(0, 99)).shuffle(inside := list(joint))
            joint[:] = inside
        return joint
