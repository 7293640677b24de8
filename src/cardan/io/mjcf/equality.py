"""Equality constraints: `connect` and `weld` close loops, `joint` couples two coordinates. All hold exactly here."""

from __future__ import annotations

import numpy as np

from cardan.algebra.rotation import rotation_of_quaternion
from cardan.errors import nearest
from cardan.io.mjcf.defaults import Defaults
from cardan.io.mjcf.item import Item, unit
from cardan.io.mjcf.joints import SCALAR, Joints
from cardan.io.xml_element import free_name
from cardan.model.builder import Mechanism
from cardan.model.joint import Rigid, Spherical
from cardan.model.pose import Pose

SHARED = ("active", "class", "name", "solimp", "solref")
ATTRIBUTES = {
    "connect": (*SHARED, "anchor", "body1", "body2", "site1", "site2"),
    "weld": (*SHARED, "anchor", "body1", "body2", "site1", "site2", "relpose", "torquescale"),
    "joint": (*SHARED, "joint1", "joint2", "polycoef"),
}
UNREAD = ("tendon", "flex", "flexvert", "flexstrain", "distance")


class Equalities:
    """Adds the constraints of a file to a mechanism.

    `names` are those of the bodies in the mechanism, in the order of the world's bodies; `sites` have body and pose.
    """

    def __init__(self, mechanism: Mechanism, joints: Joints, names: list[str], sites: dict[str, tuple[int, Pose]],
                 ) -> None:  # fmt: skip
        self.mechanism, self.joints, self.body_names, self.sites = mechanism, joints, names, sites
        self.lose, self.world, self.count = mechanism.lose, joints.world, 0
        self.at = [Pose()]  # of all bodies in the configuration of the file
        for body in self.world.bodies[1:]:
            self.at.append(self.at[body.parent] @ body.at)
        self.index = {body.name: k for k, body in enumerate(self.world.bodies)}
        self.names: set[str] = set()
        self.moved = {id(joint.body) for joint in joints.all.values() if joint.moved}
        self.taken = {joint.name for joint in mechanism.joints}
        self.laws = {*(x.name for x in mechanism.forces), *(x.name for x in mechanism.couplings)}

    def add(self, given: Item, defaults: Defaults) -> None:
        """Add one constraint."""
        if given.tag in UNREAD:
            self.lose(f"{given.owner} of <equality>, which is not read")
            return
        if given.tag not in ATTRIBUTES:
            raise given.error(f"<equality> has no element <{given.tag}> in MJCF{nearest(given.tag, ATTRIBUTES)}")
        given.check(ATTRIBUTES[given.tag], ())
        defaults.check(given, "class", given.get("class") or "main")
        item = Item(given.node, "", defaults.values(given.get("class") or "main", "connect"))
        self.count += 1
        name = item.get("name") or f"{item.tag}_{self.count}"
        item.owner = f"{item.tag} {name!r}"
        if name in self.names:
            raise item.error("the name is given to two constraints; their names must differ")
        self.names.add(name)
        if not item.yes("active", True):
            self.lose(f"{item.owner}, which is not active in the file and is left out")
            return
        with item.naming():
            self._joint(item, name) if item.tag == "joint" else self._loop(item, name)

    def _body(self, item: Item, attribute: str) -> int:
        """Index of the body that an attribute names; the world where it is not given."""
        name = item.get(attribute, "world")
        if name not in self.index:
            raise item.error(f"{attribute} {name!r} is not a body of this file{nearest(name, self.index)}")
        return self.index[name]

    def _site(self, item: Item, attribute: str) -> tuple[int, Pose]:
        """The body and pose of the site that an attribute names."""
        name = item.text(attribute).strip()
        if name not in self.sites:
            raise item.error(f"{attribute} {name!r} is not a site of this file{nearest(name, self.sites)}")
        return self.sites[name]

    def _loop(self, item: Item, name: str) -> None:
        weld = item.tag == "weld"
        rigid = weld and item.number_or("torquescale", 1.0) != 0  # with a torque scale of 0 it holds a point only
        if item.has("site1") or item.has("site2"):
            (one, F), (two, M) = self._site(item, "site1"), self._site(item, "site2")
        else:
            item.text("body1")
            one, two = self._body(item, "body1"), self._body(item, "body2")
            for body in (self.world.bodies[one], self.world.bodies[two]):
                if id(body) in self.moved:
                    self.lose(f"{item.owner}: MuJoCo has it in the principal axes of {body.name!r} ('align')")
                    return
            between = self.at[one].inverse @ self.at[two]
            anchor = Pose(item.exactly("anchor", (0.0, 0.0, 0.0)))
            if weld:
                F, M = self._relative(item, between, anchor), anchor
            else:
                if not item.has("anchor"):
                    raise item.error("it has no attribute 'anchor', the point on body1; give it, or site1 and site2")
                F, M = anchor, Pose((between.inverse @ anchor).position)
        if one == two:
            raise item.error("it holds a body to itself; name two bodies")
        joint = free_name(name, self.taken)
        self.taken.add(joint)
        self.mechanism.joint(
            joint, Rigid() if rigid else Spherical(), self.body_names[one], self.body_names[two], at=F, child_at=M
        )
        self.mechanism.cut = (*self.mechanism.cut, joint)

    def _relative(self, item: Item, between: Pose, anchor: Pose) -> Pose:
        """The weld's frame on body1: given by `relpose`, or where body2 is."""
        given = item.exactly("relpose", (0.0,) * 7)
        if not given[3:].any():
            return between @ anchor
        return Pose(given[:3], rotation_of_quaternion(unit(item, "relpose", given[3:])))

    def _joint(self, item: Item, name: str) -> None:
        first = item.text("joint1").strip()
        second = item.get("joint2")
        for attribute, joint in (("joint1", first), ("joint2", second)):
            if joint and joint not in self.joints.all:
                raise item.error(f"{attribute} {joint!r} is not a joint of this file{nearest(joint, self.joints.all)}")
            if joint and self.joints.all[joint].type not in SCALAR:
                raise item.error(f"{attribute} {joint!r} is {self.joints.all[joint].type}; it must be slide or hinge")
        a = item.up_to("polycoef", (0.0, 1.0, 0.0, 0.0, 0.0))
        y0 = float(self.joints.all[first].reference[0])
        name = free_name(name, self.laws)
        self.laws.add(name)
        if not second:
            self.mechanism.motion(name, first, y0 + float(a[0]))
        elif np.any(a[2:]):
            self.lose(f"{item.owner}: {first!r} as a polynomial of {second!r} of order {int(np.nonzero(a)[0][-1])}")
        else:
            x0 = float(self.joints.all[second].reference[0])
            self.mechanism.couple(name, {first: 1.0, second: -float(a[1])}, offset=y0 + float(a[0] - a[1] * x0))
