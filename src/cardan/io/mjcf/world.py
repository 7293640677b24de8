"""The bodies of a file in MuJoCo's order, each with the elements directly in it.

`<frame>` elements are folded into the poses of the elements inside them. Nesting may be of any depth.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from cardan.io.mjcf.defaults import Defaults
from cardan.io.mjcf.item import Angles, Item, pose_of
from cardan.io.mjcf.solids import Geom
from cardan.io.mjcf.vocabulary import ATTRIBUTES
from cardan.io.xml_element import free_name, walk
from cardan.model.pose import Pose

WORLD = "world"
INSIDE = (
    "inertial", "joint", "freejoint", "geom", "attach", "site", "camera", "light", "plugin", "flexcomp", "body",
    "frame", "replicate", "composite",
)  # fmt: skip


@dataclass(eq=False)
class BodyItem:
    """A body of the file; `name` is made up if the file gives none, `at` is the pose in the parent's frame."""

    item: Item
    name: str
    parent: int
    at: Pose
    inertial: tuple[Item, Pose] | None = None
    joints: list[tuple[Item, Pose]] = field(default_factory=list)
    geoms: list[Geom] = field(default_factory=list)
    sites: list[tuple[Item, Pose]] = field(default_factory=list)


@dataclass(frozen=True)
class _Place:
    """Place in the tree: body, frame in the body, and inherited class."""

    body: int
    frame: Pose
    childclass: str


def _bodies_named(node: Any) -> Iterator[str]:
    """Names of bodies in the attributes of an element."""
    yield from (node.get(attribute, "") for attribute in ("body", "body1", "body2", "target"))
    yield from (node.get(f"{end}name", "") for end in ("obj", "ref") if node.get(f"{end}type") in ("body", "xbody"))


class World:
    """All bodies; the first is the world itself. `plugins` are elements that only MuJoCo can run."""

    def __init__(self, top: Item, defaults: Defaults, angles: Angles) -> None:
        self.defaults, self.angles = defaults, angles
        self.bodies: list[BodyItem] = []
        self.plugins: list[Item] = []
        self.names: dict[str, Item] = {}
        sections = [item for item in top.children if item.tag == "worldbody"]
        self.bodies.append(BodyItem(sections[0] if sections else top, WORLD, -1, Pose()))
        ahead: list[tuple[Item, _Place]] = []
        ground = _Place(0, Pose(), "")
        for section in reversed(sections):
            section.check((), INSIDE)
            ahead += [(child, ground) for child in reversed(section.children)]
        while ahead:
            item, place = ahead.pop()
            inner = self._enter(item, place)
            if inner is not None:
                ahead += [(child, inner) for child in reversed(item.children)]
        self._name_all()
        self.referred = {name for node in walk(top.node) for name in _bodies_named(node)} - {""}
        """Names of bodies that other elements refer to."""

    def _enter(self, item: Item, place: _Place) -> _Place | None:
        """Add one element; the place of its own elements, if it may have any."""
        if item.tag in ("flexcomp", "composite"):
            raise item.error(
                f"<{item.tag}> makes bodies of its own, which is not read; save the compiled model as MJCF first"
            )
        if item.tag in ATTRIBUTES:
            item.check(ATTRIBUTES[item.tag], INSIDE if item.tag in ("body", "frame") else ("plugin",))
        if item.tag not in ("body", "frame"):
            self._put(item, place)
            return None
        childclass = item.get("childclass")
        if childclass:
            self.defaults.check(item, "childclass", childclass)
        at = place.frame @ pose_of(item, self.angles)
        inherited = childclass or place.childclass
        if item.tag == "frame":
            return _Place(place.body, at, inherited)
        self.bodies.append(BodyItem(item, item.get("name"), place.body, at))
        return _Place(len(self.bodies) - 1, Pose(), inherited)

    def _put(self, item: Item, place: _Place) -> None:
        """Add an element to its body."""
        body = self.bodies[place.body]
        if item.tag == "inertial":
            if place.body == 0:
                raise item.error("the world has no inertia; remove <inertial>, or put it into a body")
            if body.inertial is not None:
                raise item.error("the body has two <inertial> elements; remove one")
            body.inertial = item, place.frame
        elif item.tag in ("joint", "freejoint"):
            if place.body == 0:
                raise item.error(f"the world cannot move: put <{item.tag}> into a body")
            known = self.defaults.of(item, place.childclass) if item.tag == "joint" else item
            body.joints.append((known, place.frame))
        elif item.tag == "geom":
            geom = Geom(self.defaults.of(item, place.childclass), place.frame)
            body.geoms.append(geom)
            self.plugins += [child for child in item.children if child.tag == "plugin"]
        elif item.tag == "site":
            body.sites.append((self.defaults.of(item, place.childclass), place.frame))
        elif item.tag == "plugin":
            self.plugins.append(item)

    def _name_all(self) -> None:
        """Name bodies without a name; reject names given twice."""
        for body in self.bodies[1:]:
            if body.name in self.names or body.name == WORLD:
                raise body.item.error(
                    f"the name is given to two bodies{', one of them the world' * (body.name == WORLD)}"
                )
            if body.name:
                self.names[body.name] = body.item
        for k, body in enumerate(self.bodies):
            if not body.name:
                body.name = free_name(f"body_{k}", self.names)
                self.names[body.name] = body.item
