"""Random URDF files that are valid: every joint type, rotations of any size, links and joints in any order."""

from __future__ import annotations

import random
from xml.etree import ElementTree
from xml.etree.ElementTree import Element as Node

from hypothesis import strategies as st

from ..pen import Pen, add

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
    return _Robot(Pen(draw)).write()


class _Robot:
    """A tree of links, and joints that lead to all of them but the first."""

    def __init__(self, pen: Pen) -> None:
        self.pen = pen
        self.links: list[str] = []
        self.joints: list[tuple[str, str]] = []

    def write(self) -> str:
        pen, root = self.pen, Node("robot", name=self.pen.pick("robot", "a robot", "r-1"))
        parts = []
        for k in range(pen.whole(2, 7)):
            self.links.append(pen.pick(*NAMES).format(f"{pen.pick('link', 'body', 'l')}{k}"))
            parts.append(self._link(self.links[-1], k))
            if k:
                parts.append(self._joint(self.links[pen.whole(0, k - 1)], self.links[-1], k))
        if pen.some(50):
            random.Random(pen.whole(0, 99)).shuffle(parts)
        root.extend(parts)
        if pen.some(10):
            add(root, "material", name="grey")
        ElementTree.indent(root)
        return ElementTree.tostring(root, encoding="unicode")

    def _origin(self, node: Node, percent: int = 70) -> None:
        pen = self.pen
        if pen.some(percent):
            origin = add(node, "origin")
            if pen.some(80):
                origin.set("xyz", pen.vector(3))
            if pen.some(70):
                origin.set("rpy", pen.vector(3, pen.pick(1.0, 3.2, 12.0)))
            elif pen.some(10):
                origin.set(
                    "rpy", pen.pick("0 1.5707963267948966 0", "1 -1.5707963267948966 2", "3.141592653589793 0 0")
                )

    def _link(self, name: str, k: int) -> Node:
        pen, link = self.pen, Node("link", name=name)
        if pen.some(10):
            add(link, "visual")
        if not pen.some(5 if k else 50):
            inertial = add(link, "inertial")
            self._origin(inertial)
            add(inertial, "mass", value=pen.pick("1", "0.25", "3e0", " 2.5"))
            numbers = zip(("ixx", "iyy", "izz", "ixy", "ixz", "iyz"), pen.pick(*INERTIAS), strict=True)
            add(inertial, "inertia", **{entry: str(value) for entry, value in numbers})
        return link

    def _joint(self, parent: str, child: str, k: int) -> Node:
        pen, kind = self.pen, self.pen.pick(*TYPES[:3], *TYPES)
        joint = Node("joint", name=pen.pick(*NAMES).format(f"joint{k}"), type=kind)
        for tag, link in (("parent", parent), ("child", child)):
            add(joint, tag, link=link)
        self._origin(joint)
        if kind == "planar":  # the plane of Pinocchio is that of x and y, whatever the axis
            add(joint, "axis", xyz="0 0 1")
        elif pen.some(70):
            add(
                joint, "axis", xyz=pen.pick(pen.vector(3, zero=False), "0 0 1", "0 1 0", "-1 0 0", "2 0 0", " 0  0 -3 ")
            )
        if kind in ("revolute", "prismatic"):
            add(joint, "limit", lower="-1", upper="1.5", effort="10", velocity=pen.pick("2", "1e3"))
        if pen.some(20):
            add(joint, "dynamics", damping="0.5", friction="0.1")
        if kind in SCALAR:
            if self.joints and pen.some(25):
                mimic = add(joint, "mimic", joint=pen.pick(*self.joints)[0])
                if pen.some(70):
                    mimic.set("multiplier", pen.pick("-1", "0.5", "2", "1"))
                if pen.some(50):
                    mimic.set("offset", pen.number())
            self.joints.append((joint.get("name", ""), kind))
        if pen.some(30):
            random.Random(pen.whole(0, 99)).shuffle(inside := list(joint))
            joint[:] = inside
        return joint
