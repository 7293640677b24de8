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

from ..random_values import RandomValues, add

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
    return _File(RandomValues(draw, (*[" "] * 20, "  ", "\t", "\n"))).write()


class _File:
    """One model as it grows."""

    def __init__(self, dice: RandomValues) -> None:
        self.dice = dice
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
        dice = self.dice
        self._compiler()
        self._option()
        if dice.some(10):
            self._mesh()
        if dice.some(50):
            self._defaults()
        world = add(self.root, "worldbody")
        self.left = dice.whole(1, 5)
        self._things(world, "main")
        while self.left:
            self._body(world, 0, "main")
        if dice.some(40):
            self._equality()
        if dice.some(40) and self.joints:
            self._actuator()
        if dice.some(20):
            self._keyframe()
        if dice.some(20):  # sections may come in any order, and in parts
            self.root.append(self.root[0])
            del self.root[0]
        if dice.some(10) and len(world):
            again = add(self.root, "worldbody")
            again.append(world[-1])
            world.remove(world[-1])
        if dice.some(5):
            add(self.root, "compiler", eulerseq="".join(dice.pick(*"xyzXYZ") for _ in range(3)))
        return self._include()

    # What holds for the whole file.

    def _compiler(self) -> None:
        dice, own = self.dice, {}
        angle = dice.pick("", "radian", "degree")
        self.unit = 1.0 if angle == "radian" else 57.0
        if angle:
            own["angle"] = angle
        if dice.some(50):
            own["eulerseq"] = "".join(dice.pick(*"xyzXYZ") for _ in range(3))
        for name, values in (
            ("inertiafromgeom", ("true", "false", "auto")), ("balanceinertia", ("true", "false")),
            ("boundmass", ("0.5", "0.001")), ("boundinertia", ("0.1", "0.0001")), ("settotalmass", ("3", "-1")),
            ("inertiagrouprange", ("0 2", "1 4", "2 2")), ("autolimits", ("true", "false")),
            ("fusestatic", ("true", "false")), ("discardvisual", ("true",)), ("coordinate", ("local",)),
            ("alignfree", ("true",)),
        ):  # fmt: skip
            if dice.some(10):
                own[name] = dice.pick(*values)
        self.limited = own.get("autolimits") == "false"
        if own:
            add(self.root, "compiler", **own)

    def _option(self) -> None:
        dice = self.dice
        if not dice.some(50):
            return
        option = add(self.root, "option")
        if dice.some(60):
            option.set("gravity", dice.vector(3, 10))
        if dice.some(30):
            flag = add(option, "flag")
            for name in ("gravity", "spring", "damper", "equality", "limit", "contact", "frictionloss", "constraint"):
                if dice.some(20):
                    flag.set(name, dice.pick("disable", "enable"))

    def _mesh(self) -> None:
        """A wedge or a box of points, whose convex hull is the solid."""
        dice, asset = self.dice, add(self.root, "asset")
        wedge, box = (
            "0 0 0  0.4 0 0  0 0.3 0  0 0 0.5",
            "0 0 0 0.1 0 0 0 0.2 0 0.1 0.2 0 0 0 0.3 0.1 0 0.3 0 0.2 0.3 0.1 0.2 0.3",
        )
        mesh = add(asset, "mesh", name="mesh", vertex=dice.pick(wedge, box))
        for name, values in (
            ("scale", ("2 2 2", "1 2 0.5", "-1 1 1")), ("refpos", ("0.1 0.2 0.3",)), ("refquat", ("1 2 3 4",)),
            ("inertia", ("convex", "exact", "legacy", "shell")),
        ):  # fmt: skip
            if dice.some(25):
                mesh.set(name, dice.pick(*values))
        self.meshes.append("mesh")

    def _defaults(self) -> None:
        top = add(self.root, "default")
        self._class(top, "main")
        for name in ("a", "b"):
            if self.dice.some(60):
                self._nest(top, "main", name)
        if self.dice.some(10):  # a second section adds to the main class, and not to those that it was nested in
            again = add(self.root, "default", **({"class": "main"} if self.dice.some(50) else {}))
            self._class(again, "main")

    def _nest(self, outer: Node, parent: str, name: str) -> None:
        inner = add(outer, "default", **{"class": name})
        self.classes[name] = {kind: dict(own) for kind, own in self.classes[parent].items()}
        self._class(inner, name)
        if self.dice.some(30) and len(name) < 3:
            self._nest(inner, name, name + "i")

    def _class(self, node: Node, name: str) -> None:
        dice = self.dice
        if dice.some(50):
            joint = add(node, "joint")
            if dice.some(30):
                joint.set("type", dice.pick("slide", "hinge", "ball"))
            self._joint_numbers(joint, 20)
        if dice.some(50):
            geom = add(node, "geom")
            if dice.some(40):
                geom.set("type", dice.pick(*SIZES))
            if dice.some(60):
                geom.set("size", dice.sizes(3))
            self._geom_numbers(geom, 15)
            if dice.some(10):
                self._rotation(geom)
        if dice.some(20):
            self._rotation(add(node, "site"))
        if dice.some(20):
            add(node, "equality", active=dice.pick("true", "false"))
        if dice.some(30):
            self._law(add(node, dice.pick(*ACTUATORS)), "hinge")
        for child in node:
            kind = "actuator" if child.tag in ACTUATORS else child.tag
            if kind != "default":
                self.classes[name].setdefault(kind, {}).update(child.attrib)

    def _known(self, node: Node, kind: str, childclass: str, attribute: str, default: str) -> str:
        """An attribute as classes have it."""
        return {**self.classes[node.get("class", childclass)].get(kind, {}), **node.attrib}.get(attribute, default)

    def _choose_class(self, node: Node, percent: int = 25) -> None:
        if self.dice.some(percent):
            node.set("class", self.dice.pick(*self.classes))

    # Bodies and what is in them.

    def _rotation(self, node: Node) -> None:
        dice = self.dice
        how = dice.pick("", "quat", "axisangle", "euler", "xyaxes", "zaxis")
        if how == "quat":
            node.set(how, dice.vector(4, zero=False))
        elif how == "axisangle":
            node.set(how, f"{dice.vector(3, zero=False)} {dice.number(3 * self.unit)}")
        elif how == "euler":
            node.set(how, dice.vector(3, 3 * self.unit))
        elif how == "xyaxes":
            x, y = dice.pick(("1 0 0", "0 1 0"), ("0.3 0.4 -1", "1 0.5 0.2"), ("0 0 -2", "1 1 1"), ("-1 0 0", "0 0 3"))
            node.set(how, f"{x} {y}")
        elif how == "zaxis":
            node.set(how, dice.vector(3, zero=False))

    def _pose(self, node: Node) -> None:
        if self.dice.some(70):
            node.set("pos", self.dice.vector(3))
        self._rotation(node)

    def _body(self, outer: Node, depth: int, childclass: str) -> None:
        """A body, or a frame around bodies."""
        dice = self.dice
        if dice.some(20) and depth < 6:
            frame = add(outer, "frame")
            self._pose(frame)
            childclass = self._childclass(frame, childclass)
            self._body(frame, depth + 1, childclass)
            return
        self.left -= 1
        body = add(outer, "body")
        if dice.some(80):
            self.bodies.append(dice.pick(*NAMES).format(f"body{len(self.bodies)}"))
            body.set("name", self.bodies[-1])
        self._pose(body)
        if dice.some(15):
            body.set("gravcomp", dice.pick("1", "0.5", "-1", "2"))
        childclass = self._childclass(body, childclass)
        self._joints(body, outer.tag == "worldbody", childclass)
        given = dice.some(40)
        if given:
            self._inertial(body)
        self._things(body, childclass, 0 if given or dice.some(5) else 1)
        while self.left and dice.some(50):
            self._body(body, depth + 1, childclass)

    def _childclass(self, node: Node, childclass: str) -> str:
        if self.dice.some(20):
            childclass = self.dice.pick(*self.classes)
            node.set("childclass", childclass)
        return childclass

    def _joints(self, body: Node, on_world: bool, childclass: str) -> None:
        dice = self.dice
        for k in range(dice.pick(1, 1, 1, 0, 2, 3)):
            place, own = body, childclass
            if dice.some(10):
                place = add(body, "frame")
                self._pose(place)
                own = self._childclass(place, childclass)
            joint = add(place, "joint")
            if dice.some(70):
                joint.set("name", dice.pick(*NAMES).format(f"joint{len(self.joints)}"))
            self._choose_class(joint)
            if dice.some(60):
                joint.set("type", dice.pick("hinge", "slide", "ball"))
            if on_world and not k and dice.some(15):
                joint.set("type", "free")
                if dice.some(50):
                    joint.tag, joint.attrib = "freejoint", {k: v for k, v in joint.attrib.items() if k == "name"}
                    if dice.some(10):
                        joint.set("align", dice.pick("true", "false", "auto"))
            if joint.tag == "joint":
                self._joint_numbers(joint, 30)
            kind = self._known(joint, "joint", own, "type", "hinge") if joint.tag == "joint" else "free"
            self.joints.append((joint.get("name", ""), kind))
            if kind in ("ball", "free"):
                break

    def _joint_numbers(self, joint: Node, percent: int) -> None:
        dice = self.dice
        for name, write in (
            ("pos", lambda: dice.vector(3)), ("axis", lambda: dice.vector(3, zero=False)),
            ("ref", lambda: dice.number(self.unit)), ("springref", lambda: dice.number(self.unit)),
            ("stiffness", lambda: dice.positives(dice.whole(1, 3))),
            ("damping", lambda: dice.positives(dice.whole(1, 3))),
            ("armature", lambda: dice.positives(1)), ("frictionloss", lambda: dice.positives(1)),
        ):  # fmt: skip
            if dice.some(percent):
                joint.set(name, write())
        if dice.some(percent // 2):
            ball = joint.get("type") == "ball"  # its range is from 0
            low = dice.decimal(0.1, 1.5) if not ball and dice.some(50) else 0.0
            joint.set("range", f"{-low * self.unit:g} {dice.decimal(0.1, 1.5) * self.unit:g}")
            if self.limited or dice.some(30):
                joint.set("limited", dice.pick("true", "false"))
        if dice.some(percent // 6):
            joint.set("springdamper", dice.positives(2))
        if dice.some(percent // 4):
            joint.set("actuatorfrcrange", "-3 2")
            if self.limited or dice.some(30):
                joint.set("actuatorfrclimited", dice.pick("true", "false"))
        if dice.some(percent // 6):
            joint.set("actuatorgravcomp", dice.pick("true", "false"))

    def _inertial(self, body: Node) -> None:
        dice = self.dice
        place = body
        if dice.some(10):
            place = add(body, "frame")
            self._pose(place)
        inertial = add(place, "inertial", pos=dice.vector(3), mass=dice.pick("1", "0.3", "2.5"))
        if dice.some(50):
            self._rotation(inertial)
            inertial.set("diaginertia", dice.pick("1 1 1", "0.3 0.4 0.5", "0.03 0.015 0.02", "0.2 0.1 0.3"))
        else:
            inertial.set(
                "fullinertia", dice.pick("0.3 0.4 0.5 0.1 0 0.05", "1 2 2.5 0 0 0", "0.02 0.02 0.01 0 -0.005 0")
            )

    def _things(self, node: Node, childclass: str, least: int = 0) -> None:
        """Geoms and sites, some of them in frames."""
        dice = self.dice
        for _ in range(dice.whole(least, least + 1)):
            place, own = node, childclass
            if dice.some(10):
                place = add(node, "frame")
                self._pose(place)
                own = self._childclass(place, childclass)
            self._geom(add(place, "geom"), own)
        if dice.some(40):
            self.sites.append(dice.pick(*NAMES).format(f"site{len(self.sites)}"))
            site = add(node, "site", name=self.sites[-1])
            self._choose_class(site)
            if dice.some(10):
                site.attrib |= {"fromto": dice.ends(), "type": "capsule", "size": "0.1"}
            else:
                self._pose(site)

    def _geom(self, geom: Node, childclass: str) -> None:
        dice = self.dice
        self._choose_class(geom)
        if dice.some(70):
            geom.set("type", dice.pick(*SIZES))
        kind = self._known(geom, "geom", childclass, "type", "sphere")
        count = SIZES[kind]
        if self.meshes and dice.some(40):
            geom.attrib |= {"type": "mesh", "mesh": self.meshes[0]}
            self._pose(geom)
        elif kind in LONG and dice.some(30):
            geom.set("fromto", dice.ends())
            geom.set("size", dice.sizes(dice.pick(1, count)))
        else:
            self._pose(geom)
            if dice.some(80) or not self._known(geom, "geom", childclass, "size", ""):
                geom.set("size", dice.sizes(dice.pick(count, count, 3)))
        self._geom_numbers(geom, 15)
        if geom.get("type") == "mesh":
            geom.set("shellinertia", "false")  # the mesh says

    def _geom_numbers(self, geom: Node, percent: int) -> None:
        dice = self.dice
        for name, values in (
            ("density", ("500", "20", "80", "0")), ("mass", ("1", "0.2", "3", "0")),
            ("group", ("0", "1", "2", "3", "5")), ("shellinertia", ("true", "false")),
            ("contype", ("0", "1")), ("conaffinity", ("0", "1")),
        ):  # fmt: skip
            if dice.some(percent):
                geom.set(name, dice.pick(*values))

    # What holds bodies together and moves them.

    def _equality(self) -> None:
        dice, equality = self.dice, add(self.root, "equality")
        scalars = [name for name, kind in self.joints if name and kind in ("hinge", "slide")]
        for k in range(dice.whole(1, 2)):
            tag = dice.pick("connect", "weld", "joint")
            own: dict[str, str] = {} if dice.some(20) else {"name": f"equality{k}"}
            if tag == "joint" and scalars:
                own["joint1"] = dice.pick(*scalars)
                others = [name for name in scalars if name != own["joint1"]]
                if others and dice.some(70):
                    own["joint2"] = dice.pick(*others)
                if dice.some(70):
                    own["polycoef"] = dice.pick("0.1", "0.2 -2", "0 0.5 0 0 0", "0.1 2 0.3", "0.1 1 0 0.5 -0.2")
            elif tag != "joint" and len(self.sites) > 1 and dice.some(40):
                own["site1"] = dice.pick(*self.sites)
                own["site2"] = dice.pick(*(site for site in self.sites if site != own["site1"]))
            elif tag != "joint" and self.bodies:
                own |= self._ends(tag)
            else:
                continue
            node = add(equality, tag, **own)
            if dice.some(20):
                node.set("active", dice.pick("true", "false"))
            self._choose_class(node, 15)

    def _ends(self, tag: str) -> dict[str, str]:
        """Two bodies, and where."""
        dice, own = self.dice, {"body1": self.dice.pick(*self.bodies)}
        others = ["world", *(body for body in self.bodies if body != own["body1"])]
        if dice.some(70):
            own["body2"] = dice.pick(*others)
        if tag == "connect" or dice.some(50):
            own["anchor"] = dice.vector(3)
        if tag == "weld" and dice.some(40):
            own["relpose"] = dice.pick(
                f"{dice.vector(3)} {dice.vector(4, zero=False)}", "0.1 0.2 0.3 0 0 0 0", "0 0 0 2 0 0 0"
            )
        if tag == "weld" and dice.some(20):
            own["torquescale"] = dice.pick("1", "0.5", "0")
        return own

    def _actuator(self) -> None:
        dice, actuator = self.dice, add(self.root, "actuator")
        named = [(name, kind) for name, kind in self.joints if name]
        for k in range(dice.whole(1, 3) if named else 0):
            name, kind = dice.pick(*named)
            attribute = "joint" if kind in ("hinge", "slide") or dice.some(60) else "jointinparent"
            node = add(actuator, dice.pick(*ACTUATORS), **{attribute: name})
            if dice.some(60):
                node.set("name", f"actuator{k}")
            self._choose_class(node)
            self._law(node, kind)

    def _law(self, node: Node, kind: str) -> None:
        dice, tag = self.dice, node.tag
        own: dict[str, Any] = {
            "position": ("kp", "kv"), "velocity": ("kv",), "general": ("gainprm", "biasprm", "biastype")
        }.get(tag, ())  # fmt: skip
        for name in own:
            if dice.some(50):
                count = {"gainprm": 1, "biasprm": dice.whole(1, 3)}.get(name, 1)
                node.set(name, dice.pick("none", "affine") if name == "biastype" else dice.positives(count))
        if dice.some(50):
            node.set("gear", dice.vector(1 if kind in ("hinge", "slide") else dice.whole(1, 6), 3, zero=False))
        if dice.some(25):
            node.set("ctrlrange", "-0.5 0.3")
            if self.limited or dice.some(30):
                node.set("ctrllimited", dice.pick("true", "false"))
        if dice.some(15):
            node.set("forcerange", "-2 3")
            if self.limited or dice.some(30):
                node.set("forcelimited", dice.pick("true", "false"))
        if kind in ("hinge", "slide") and dice.some(15):
            node.set("armature", dice.positives(1))
        if kind in ("hinge", "slide") and dice.some(15):
            node.set("damping", dice.positives(dice.whole(1, 3)))

    def _keyframe(self) -> None:
        dice, keyframe = self.dice, add(self.root, "keyframe")
        nq, nv = (sum(table[kind] for _, kind in self.joints) for table in (NQ, NV))
        for k in range(dice.whole(1, 2)):
            key = add(keyframe, "key", **({"name": f"key{k}"} if dice.some(60) else {}))
            if dice.some(30):
                key.set("time", dice.positives(1))
            if nq and dice.some(80):
                key.set("qpos", dice.vector(nq))
            if nv and dice.some(60):
                key.set("qvel", dice.vector(nv))

    def _include(self) -> dict[str, str]:
        """A section, a body or what is in one, moved to a second file."""
        dice, found = self.dice, {}
        if dice.some(20):
            inside = Node(dice.pick("mujoco", "mujocoinclude"))
            bodies = [node for node in self.root.iter("body") if len(node)]
            outer = dice.pick(self.root, *self.root.findall("worldbody"), *bodies)
            k = dice.whole(0, max(len(outer) - 1, 0))
            if len(outer):
                inside.append(outer[k])
                outer[k] = Node("include", file="part.xml")
                found["part.xml"] = _text(inside)
        return {MAIN: _text(self.root)} | found


def _text(node: Node) -> str:
    ElementTree.indent(node)
    return ElementTree.tostring(node, encoding="unicode")
