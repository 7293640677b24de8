"""Random MJCF files that are valid: every way that the format has to say what concerns dynamics, mixed.

Nested bodies and frames, classes, several joints a body, all rotations and units, inertia given or from geoms,
springs, loops, couplings, actuators, keyframes, included files. `files` draws the text of each file by name; a few are
refused by MuJoCo all the same (a body whose geoms are all outside of `inertiagrouprange`, say).
"""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree
from xml.etree.ElementTree import Element as Node

from hypothesis import strategies as st

from ..pen import Pen, add

MAIN = "model.xml"
SIZES = {"sphere": 1, "capsule": 2, "ellipsoid": 3, "cylinder": 2, "box": 3}
LONG = ("capsule", "cylinder", "box", "ellipsoid")
JOINTS = ("hinge", "slide", "ball", "free")
NQ = {"hinge": 1, "slide": 1, "ball": 4, "free": 7}
NV = {"hinge": 1, "slide": 1, "ball": 3, "free": 6}
NAMES = ("{}", "{} of it", "é{}", "/{}", "{}_", "{0}/{0}")
ACTUATORS = ("motor", "position", "velocity", "general")


@st.composite
def files(draw: st.DrawFn) -> dict[str, str]:
    """The text of each file of a model; the main one is `model.xml`."""
    return _File(Pen(draw, (*[" "] * 20, "  ", "\t", "\n"))).write()


class _File:
    """One model as it grows."""

    def __init__(self, pen: Pen) -> None:
        self.pen = pen
        self.root = Node("mujoco", model="random")
        self.unit = 1.0
        self.classes: dict[str, dict[str, dict[str, str]]] = {"main": {}}
        self.bodies: list[str] = []
        self.joints: list[tuple[str, str]] = []
        self.sites: list[str] = []
        self.meshes: list[str] = []
        self.left = 0

    def write(self) -> dict[str, str]:
        """Section after section, some of them in files of their own."""
        pen = self.pen
        self._compiler()
        self._option()
        if pen.some(10):
            self._mesh()
        if pen.some(50):
            self._defaults()
        world = add(self.root, "worldbody")
        self.left = pen.whole(1, 5)
        self._things(world, "main")
        while self.left:
            self._body(world, 0, "main")
        if pen.some(40):
            self._equality()
        if pen.some(40) and self.joints:
            self._actuator()
        if pen.some(20):
            self._keyframe()
        if pen.some(20):  # sections may come in any order, and in parts
            self.root.append(self.root[0])
            del self.root[0]
        if pen.some(10) and len(world):
            again = add(self.root, "worldbody")
            again.append(world[-1])
            world.remove(world[-1])
        if pen.some(5):
            add(self.root, "compiler", eulerseq="".join(pen.pick(*"xyzXYZ") for _ in range(3)))
        return self._include()

    # What holds for the whole file.

    def _compiler(self) -> None:
        pen, own = self.pen, {}
        angle = pen.pick("", "radian", "degree")
        self.unit = 1.0 if angle == "radian" else 57.0
        if angle:
            own["angle"] = angle
        if pen.some(50):
            own["eulerseq"] = "".join(pen.pick(*"xyzXYZ") for _ in range(3))
        for name, values in (
            ("inertiafromgeom", ("true", "false", "auto")), ("balanceinertia", ("true", "false")),
            ("boundmass", ("0.5", "0.001")), ("boundinertia", ("0.1", "0.0001")), ("settotalmass", ("3", "-1")),
            ("inertiagrouprange", ("0 2", "1 4", "2 2")), ("autolimits", ("true", "false")),
            ("fusestatic", ("true", "false")), ("discardvisual", ("true",)), ("coordinate", ("local",)),
            ("alignfree", ("true",)),
        ):  # fmt: skip
            if pen.some(10):
                own[name] = pen.pick(*values)
        self.limited = own.get("autolimits") == "false"
        if own:
            add(self.root, "compiler", **own)

    def _option(self) -> None:
        pen = self.pen
        if not pen.some(50):
            return
        option = add(self.root, "option")
        if pen.some(60):
            option.set("gravity", pen.vector(3, 10))
        if pen.some(30):
            flag = add(option, "flag")
            for name in ("gravity", "spring", "damper", "equality", "limit", "contact", "frictionloss", "constraint"):
                if pen.some(20):
                    flag.set(name, pen.pick("disable", "enable"))

    def _mesh(self) -> None:
        """A wedge or a box of points, whose convex hull is the solid."""
        pen, asset = self.pen, add(self.root, "asset")
        wedge, box = (
            "0 0 0  0.4 0 0  0 0.3 0  0 0 0.5",
            "0 0 0 0.1 0 0 0 0.2 0 0.1 0.2 0 0 0 0.3 0.1 0 0.3 0 0.2 0.3 0.1 0.2 0.3",
        )
        mesh = add(asset, "mesh", name="mesh", vertex=pen.pick(wedge, box))
        for name, values in (
            ("scale", ("2 2 2", "1 2 0.5", "-1 1 1")), ("refpos", ("0.1 0.2 0.3",)), ("refquat", ("1 2 3 4",)),
            ("inertia", ("convex", "exact", "legacy", "shell")),
        ):  # fmt: skip
            if pen.some(25):
                mesh.set(name, pen.pick(*values))
        self.meshes.append("mesh")

    def _defaults(self) -> None:
        top = add(self.root, "default")
        self._class(top, "main")
        for name in ("a", "b"):
            if self.pen.some(60):
                self._nest(top, "main", name)
        if self.pen.some(10):  # a second section adds to the main class, and not to those that it was nested in
            again = add(self.root, "default", **({"class": "main"} if self.pen.some(50) else {}))
            self._class(again, "main")

    def _nest(self, outer: Node, parent: str, name: str) -> None:
        inner = add(outer, "default", **{"class": name})
        self.classes[name] = {kind: dict(own) for kind, own in self.classes[parent].items()}
        self._class(inner, name)
        if self.pen.some(30) and len(name) < 3:
            self._nest(inner, name, name + "i")

    def _class(self, node: Node, name: str) -> None:
        pen = self.pen
        if pen.some(50):
            joint = add(node, "joint")
            if pen.some(30):
                joint.set("type", pen.pick("slide", "hinge", "ball"))
            self._joint_numbers(joint, 20)
        if pen.some(50):
            geom = add(node, "geom")
            if pen.some(40):
                geom.set("type", pen.pick(*SIZES))
            if pen.some(60):
                geom.set("size", pen.sizes(3))
            self._geom_numbers(geom, 15)
            if pen.some(10):
                self._rotation(geom)
        if pen.some(20):
            self._rotation(add(node, "site"))
        if pen.some(20):
            add(node, "equality", active=pen.pick("true", "false"))
        if pen.some(30):
            self._law(add(node, pen.pick(*ACTUATORS)), "hinge")
        for child in node:
            kind = "actuator" if child.tag in ACTUATORS else child.tag
            if kind != "default":
                self.classes[name].setdefault(kind, {}).update(child.attrib)

    def _known(self, node: Node, kind: str, childclass: str, attribute: str, default: str) -> str:
        """An attribute as classes have it."""
        return {**self.classes[node.get("class", childclass)].get(kind, {}), **node.attrib}.get(attribute, default)

    def _choose_class(self, node: Node, percent: int = 25) -> None:
        if self.pen.some(percent):
            node.set("class", self.pen.pick(*self.classes))

    # Bodies and what is in them.

    def _rotation(self, node: Node) -> None:
        pen = self.pen
        how = pen.pick("", "quat", "axisangle", "euler", "xyaxes", "zaxis")
        if how == "quat":
            node.set(how, pen.vector(4, zero=False))
        elif how == "axisangle":
            node.set(how, f"{pen.vector(3, zero=False)} {pen.number(3 * self.unit)}")
        elif how == "euler":
            node.set(how, pen.vector(3, 3 * self.unit))
        elif how == "xyaxes":
            x, y = pen.pick(("1 0 0", "0 1 0"), ("0.3 0.4 -1", "1 0.5 0.2"), ("0 0 -2", "1 1 1"), ("-1 0 0", "0 0 3"))
            node.set(how, f"{x} {y}")
        elif how == "zaxis":
            node.set(how, pen.vector(3, zero=False))

    def _pose(self, node: Node) -> None:
        if self.pen.some(70):
            node.set("pos", self.pen.vector(3))
        self._rotation(node)

    def _body(self, outer: Node, depth: int, childclass: str) -> None:
        """A body, or a frame around bodies."""
        pen = self.pen
        if pen.some(20) and depth < 6:
            frame = add(outer, "frame")
            self._pose(frame)
            childclass = self._childclass(frame, childclass)
            self._body(frame, depth + 1, childclass)
            return
        self.left -= 1
        body = add(outer, "body")
        if pen.some(80):
            self.bodies.append(pen.pick(*NAMES).format(f"body{len(self.bodies)}"))
            body.set("name", self.bodies[-1])
        self._pose(body)
        if pen.some(15):
            body.set("gravcomp", pen.pick("1", "0.5", "-1", "2"))
        childclass = self._childclass(body, childclass)
        self._joints(body, outer.tag == "worldbody", childclass)
        given = pen.some(40)
        if given:
            self._inertial(body)
        self._things(body, childclass, 0 if given or pen.some(5) else 1)
        while self.left and pen.some(50):
            self._body(body, depth + 1, childclass)

    def _childclass(self, node: Node, childclass: str) -> str:
        if self.pen.some(20):
            childclass = self.pen.pick(*self.classes)
            node.set("childclass", childclass)
        return childclass

    def _joints(self, body: Node, on_world: bool, childclass: str) -> None:
        pen = self.pen
        for k in range(pen.pick(1, 1, 1, 0, 2, 3)):
            place, own = body, childclass
            if pen.some(10):
                place = add(body, "frame")
                self._pose(place)
                own = self._childclass(place, childclass)
            joint = add(place, "joint")
            if pen.some(70):
                joint.set("name", pen.pick(*NAMES).format(f"joint{len(self.joints)}"))
            self._choose_class(joint)
            if pen.some(60):
                joint.set("type", pen.pick("hinge", "slide", "ball"))
            if on_world and not k and pen.some(15):
                joint.set("type", "free")
                if pen.some(50):
                    joint.tag, joint.attrib = "freejoint", {k: v for k, v in joint.attrib.items() if k == "name"}
                    if pen.some(10):
                        joint.set("align", pen.pick("true", "false", "auto"))
            if joint.tag == "joint":
                self._joint_numbers(joint, 30)
            kind = self._known(joint, "joint", own, "type", "hinge") if joint.tag == "joint" else "free"
            self.joints.append((joint.get("name", ""), kind))
            if kind in ("ball", "free"):
                break

    def _joint_numbers(self, joint: Node, percent: int) -> None:
        pen = self.pen
        for name, write in (
            ("pos", lambda: pen.vector(3)), ("axis", lambda: pen.vector(3, zero=False)),
            ("ref", lambda: pen.number(self.unit)), ("springref", lambda: pen.number(self.unit)),
            ("stiffness", lambda: pen.positives(pen.whole(1, 3))), ("damping", lambda: pen.positives(pen.whole(1, 3))),
            ("armature", lambda: pen.positives(1)), ("frictionloss", lambda: pen.positives(1)),
        ):  # fmt: skip
            if pen.some(percent):
                joint.set(name, write())
        if pen.some(percent // 2):
            ball = joint.get("type") == "ball"  # its range is from 0
            low = pen.decimal(0.1, 1.5) if not ball and pen.some(50) else 0.0
            joint.set("range", f"{-low * self.unit:g} {pen.decimal(0.1, 1.5) * self.unit:g}")
            if self.limited or pen.some(30):
                joint.set("limited", pen.pick("true", "false"))
        if pen.some(percent // 6):
            joint.set("springdamper", pen.positives(2))
        if pen.some(percent // 4):
            joint.set("actuatorfrcrange", "-3 2")
            if self.limited or pen.some(30):
                joint.set("actuatorfrclimited", pen.pick("true", "false"))
        if pen.some(percent // 6):
            joint.set("actuatorgravcomp", pen.pick("true", "false"))

    def _inertial(self, body: Node) -> None:
        pen = self.pen
        place = body
        if pen.some(10):
            place = add(body, "frame")
            self._pose(place)
        inertial = add(place, "inertial", pos=pen.vector(3), mass=pen.pick("1", "0.3", "2.5"))
        if pen.some(50):
            self._rotation(inertial)
            inertial.set("diaginertia", pen.pick("1 1 1", "0.3 0.4 0.5", "0.03 0.015 0.02", "0.2 0.1 0.3"))
        else:
            inertial.set(
                "fullinertia", pen.pick("0.3 0.4 0.5 0.1 0 0.05", "1 2 2.5 0 0 0", "0.02 0.02 0.01 0 -0.005 0")
            )

    def _things(self, node: Node, childclass: str, least: int = 0) -> None:
        """Geoms and sites, some of them in frames."""
        pen = self.pen
        for _ in range(pen.whole(least, least + 1)):
            place, own = node, childclass
            if pen.some(10):
                place = add(node, "frame")
                self._pose(place)
                own = self._childclass(place, childclass)
            self._geom(add(place, "geom"), own)
        if pen.some(40):
            self.sites.append(pen.pick(*NAMES).format(f"site{len(self.sites)}"))
            site = add(node, "site", name=self.sites[-1])
            self._choose_class(site)
            if pen.some(10):
                site.attrib |= {"fromto": pen.ends(), "type": "capsule", "size": "0.1"}
            else:
                self._pose(site)

    def _geom(self, geom: Node, childclass: str) -> None:
        pen = self.pen
        self._choose_class(geom)
        if pen.some(70):
            geom.set("type", pen.pick(*SIZES))
        kind = self._known(geom, "geom", childclass, "type", "sphere")
        count = SIZES[kind]
        if self.meshes and pen.some(40):
            geom.attrib |= {"type": "mesh", "mesh": self.meshes[0]}
            self._pose(geom)
        elif kind in LONG and pen.some(30):
            geom.set("fromto", pen.ends())
            geom.set("size", pen.sizes(pen.pick(1, count)))
        else:
            self._pose(geom)
            if pen.some(80) or not self._known(geom, "geom", childclass, "size", ""):
                geom.set("size", pen.sizes(pen.pick(count, count, 3)))
        self._geom_numbers(geom, 15)
        if geom.get("type") == "mesh":
            geom.set("shellinertia", "false")  # the mesh says

    def _geom_numbers(self, geom: Node, percent: int) -> None:
        pen = self.pen
        for name, values in (
            ("density", ("500", "20", "80", "0")), ("mass", ("1", "0.2", "3", "0")),
            ("group", ("0", "1", "2", "3", "5")), ("shellinertia", ("true", "false")),
            ("contype", ("0", "1")), ("conaffinity", ("0", "1")),
        ):  # fmt: skip
            if pen.some(percent):
                geom.set(name, pen.pick(*values))

    # What holds bodies together and moves them.

    def _equality(self) -> None:
        pen, equality = self.pen, add(self.root, "equality")
        scalars = [name for name, kind in self.joints if name and kind in ("hinge", "slide")]
        for k in range(pen.whole(1, 2)):
            tag = pen.pick("connect", "weld", "joint")
            own: dict[str, str] = {} if pen.some(20) else {"name": f"equality{k}"}
            if tag == "joint" and scalars:
                own["joint1"] = pen.pick(*scalars)
                others = [name for name in scalars if name != own["joint1"]]
                if others and pen.some(70):
                    own["joint2"] = pen.pick(*others)
                if pen.some(70):
                    own["polycoef"] = pen.pick("0.1", "0.2 -2", "0 0.5 0 0 0", "0.1 2 0.3", "0.1 1 0 0.5 -0.2")
            elif tag != "joint" and len(self.sites) > 1 and pen.some(40):
                own["site1"] = pen.pick(*self.sites)
                own["site2"] = pen.pick(*(site for site in self.sites if site != own["site1"]))
            elif tag != "joint" and self.bodies:
                own |= self._ends(tag)
            else:
                continue
            node = add(equality, tag, **own)
            if pen.some(20):
                node.set("active", pen.pick("true", "false"))
            self._choose_class(node, 15)

    def _ends(self, tag: str) -> dict[str, str]:
        """Two bodies, and where."""
        pen, own = self.pen, {"body1": self.pen.pick(*self.bodies)}
        others = ["world", *(body for body in self.bodies if body != own["body1"])]
        if pen.some(70):
            own["body2"] = pen.pick(*others)
        if tag == "connect" or pen.some(50):
            own["anchor"] = pen.vector(3)
        if tag == "weld" and pen.some(40):
            own["relpose"] = pen.pick(
                f"{pen.vector(3)} {pen.vector(4, zero=False)}", "0.1 0.2 0.3 0 0 0 0", "0 0 0 2 0 0 0"
            )
        if tag == "weld" and pen.some(20):
            own["torquescale"] = pen.pick("1", "0.5", "0")
        return own

    def _actuator(self) -> None:
        pen, actuator = self.pen, add(self.root, "actuator")
        named = [(name, kind) for name, kind in self.joints if name]
        for k in range(pen.whole(1, 3) if named else 0):
            name, kind = pen.pick(*named)
            attribute = "joint" if kind in ("hinge", "slide") or pen.some(60) else "jointinparent"
            node = add(actuator, pen.pick(*ACTUATORS), **{attribute: name})
            if pen.some(60):
                node.set("name", f"actuator{k}")
            self._choose_class(node)
            self._law(node, kind)

    def _law(self, node: Node, kind: str) -> None:
        pen, tag = self.pen, node.tag
        own: dict[str, Any] = {
            "position": ("kp", "kv"), "velocity": ("kv",), "general": ("gainprm", "biasprm", "biastype")
        }.get(tag, ())  # fmt: skip
        for name in own:
            if pen.some(50):
                count = {"gainprm": 1, "biasprm": pen.whole(1, 3)}.get(name, 1)
                node.set(name, pen.pick("none", "affine") if name == "biastype" else pen.positives(count))
        if pen.some(50):
            node.set("gear", pen.vector(1 if kind in ("hinge", "slide") else pen.whole(1, 6), 3, zero=False))
        if pen.some(25):
            node.set("ctrlrange", "-0.5 0.3")
            if self.limited or pen.some(30):
                node.set("ctrllimited", pen.pick("true", "false"))
        if pen.some(15):
            node.set("forcerange", "-2 3")
            if self.limited or pen.some(30):
                node.set("forcelimited", pen.pick("true", "false"))
        if kind in ("hinge", "slide") and pen.some(15):
            node.set("armature", pen.positives(1))
        if kind in ("hinge", "slide") and pen.some(15):
            node.set("damping", pen.positives(pen.whole(1, 3)))

    def _keyframe(self) -> None:
        pen, keyframe = self.pen, add(self.root, "keyframe")
        nq, nv = (sum(table[kind] for _, kind in self.joints) for table in (NQ, NV))
        for k in range(pen.whole(1, 2)):
            key = add(keyframe, "key", **({"name": f"key{k}"} if pen.some(60) else {}))
            if pen.some(30):
                key.set("time", pen.positives(1))
            if nq and pen.some(80):
                key.set("qpos", pen.vector(nq))
            if nv and pen.some(60):
                key.set("qvel", pen.vector(nv))

    def _include(self) -> dict[str, str]:
        """A section, a body or what is in one, moved to a second file."""
        pen, found = self.pen, {}
        if pen.some(20):
            inside = Node(pen.pick("mujoco", "mujocoinclude"))
            bodies = [node for node in self.root.iter("body") if len(node)]
            outer = pen.pick(self.root, *self.root.findall("worldbody"), *bodies)
            k = pen.whole(0, max(len(outer) - 1, 0))
            if len(outer):
                inside.append(outer[k])
                outer[k] = Node("include", file="part.xml")
                found["part.xml"] = _text(inside)
        return {MAIN: _text(self.root)} | found


def _text(node: Node) -> str:
    ElementTree.indent(node)
    return ElementTree.tostring(node, encoding="unicode")
