"""Copies of elements under other names; and `<replicate>`, which copies what it holds many times.

Each copy of `<replicate>` is in a frame that is shifted and turned further, and has a number after its names. The
frames stand in place of the element. Actuators and constraints all of whose bodies, joints and sites are copied are
copied with them, and come after those that are not.

Source: MuJoCo's XML reference, page body/replicate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

import numpy as np

from cardan.io.mjcf.item import COUNTED, ELEMENTS, Item
from cardan.io.mjcf.placement import Angles, euler
from cardan.io.xml_element import walk
from cardan.model.pose import Pose

KINDS = {"body": "body", "joint": "joint", "freejoint": "joint", "site": "site"}
"""Elements that others refer to by name, and the kind that references use."""
NAMED = (*KINDS, "geom", "frame", "camera", "light")
REFERENCES = {
    "joint": "joint", "jointinparent": "joint", "joint1": "joint", "joint2": "joint", "body": "body", "body1": "body",
    "body2": "body", "site": "site", "refsite": "site", "slidersite": "site", "cranksite": "site", "site1": "site",
    "site2": "site",
}  # fmt: skip
"""Attributes that name a body, joint or site."""
SECTIONS = ("actuator", "equality")
"""Sections whose elements refer to others and are read."""

Names = set[tuple[str, str]]


def names_of(nodes: Iterable[Any]) -> Names:
    """Kinds and names of elements."""
    return {(KINDS[node.tag], node.get("name").strip()) for node in nodes if node.tag in KINDS and node.get("name")}


def references(node: Any) -> Iterator[tuple[str, str]]:
    """What an element of a section refers to."""
    return ((kind, node.get(name).strip()) for name, kind in REFERENCES.items() if node.get(name))


def made(like: Any, tag: str, attributes: dict[str, str]) -> Any:
    """A new node with the line, file and options of another."""
    node = type(like)(tag, attributes)
    node.line, node.file = like.line, like.file
    node.origin = getattr(like, "origin", None)
    return node


def copied(top: Any, change: Callable[[Any], dict[str, str]]) -> Any:
    """A copy of a node and all in it, with changed attributes."""
    result = made(top, top.tag, change(top))
    ahead = [(top, result)]
    while ahead:  # no recursion: elements may be nested deeper than Python's stack
        node, copy = ahead.pop()
        for child in node:
            copy.append(made(child, child.tag, change(child)))
            ahead.append((child, copy[-1]))
    return result


def renamed(node: Any, attributes: Iterable[str], rename: Callable[[str], str]) -> dict[str, str]:
    """Attributes of a node, with some of their values renamed."""
    return {key: rename(value.strip()) if key in attributes and value else value for key, value in node.attrib.items()}


ATTRIBUTES = ("childclass", "count", "euler", "offset", "sep")


def replicate(item: Item, angles: Angles, sections: dict[str, Section], size: int) -> int:
    """Turn a `<replicate>` into a frame with frames of copies; returns the number of elements, `size` before."""
    item.check(ATTRIBUTES)
    count, offset, turn, separator = _read(item)
    inside = list(walk(item.node))[1:]
    _check_inside(item)
    names = names_of(inside)
    moved = {tag: section.referring(names) for tag, section in sections.items()}
    each = len(inside) + 1 + sum(map(len, moved.values()))
    size += (count - 1) * each + 1
    if size > ELEMENTS:
        raise item.error(f"{count:g} copies of {each - 1} elements are more than the {ELEMENTS} read; make fewer")
    for tag, most in COUNTED.items():
        if count * sum(node.tag == tag for node in inside) > most:
            raise item.error(f"its {count} copies hold more than {most} elements <{tag}>; no more are read, make fewer")
    suffixes = [f"{separator}{k:0{len(str(count))}}" for k in range(count)]
    copies, at = [], Pose()
    for k, suffix in enumerate(suffixes):
        at = Pose(at.position, euler(k * turn * angles.unit, angles.sequence))
        frame = made(item.node, "frame", {"pos": _text(at.position), "quat": _text(at.quaternion)})
        frame.extend([copied(child, partial(_numbered, suffix=suffix)) for child in item.node])
        copies.append(frame)
        at = at @ Pose(offset)
    for tag, section in sections.items():
        section.replace(moved[tag], suffixes)
    childclass = item.get("childclass")
    item.node.tag, item.node.attrib = "frame", {"childclass": childclass} if childclass else {}
    item.node[:] = copies
    return size


def _read(item: Item) -> tuple[int, np.ndarray, np.ndarray, str]:
    item.text("count")
    count = item.integer("count", 0)
    if count < 0:
        raise item.error(f"'count' must not be negative, got {count}")
    return count, item.exactly("offset", (0.0,) * 3), item.exactly("euler", (0.0,) * 3), item.get("sep")


def _check_inside(item: Item) -> None:
    """Reject joints and inertia directly in `<replicate>`; they belong in a body."""
    ahead = list(item.node)
    while ahead:
        node = ahead.pop()
        if node.tag in ("joint", "freejoint", "inertial"):
            raise Item(node).error(f"<{node.tag}> is in <replicate>, and in no body of it; put it into a body")
        ahead += node if node.tag == "frame" else ()


class Section:
    """The elements of all sections of a name, with an index of what they refer to."""

    def __init__(self, top: Any, tag: str) -> None:
        self.top, self.tag = top, tag
        self.sections = [node for node in top if node.tag == tag]
        self.nodes: dict[int, Any] = {}  # by the order in which they came
        self.index: dict[tuple[str, str], dict[int, None]] = {}
        self.count = 0
        for section in self.sections:
            for node in section:
                self.add(node)

    def add(self, node: Any) -> None:
        """Put an element after the others."""
        self.nodes[self.count] = node
        for reference in references(node):
            self.index.setdefault(reference, {})[self.count] = None
        self.count += 1

    def referring(self, names: Names) -> list[int]:
        """Elements that refer to these names and to no others."""
        some = {k for name in names for k in self.index.get(name, ())}
        return sorted(k for k in some if names.issuperset(references(self.nodes[k])))

    def replace(self, which: list[int], suffixes: list[str]) -> None:
        """Replace elements by copies, one set for each suffix."""
        nodes = [self.nodes.pop(k) for k in which]
        for k, node in zip(which, nodes, strict=True):
            for reference in references(node):
                del self.index[reference][k]
        for suffix in suffixes:
            for node in nodes:
                self.add(copied(node, partial(_referring, suffix=suffix)))

    def write(self) -> None:
        """Put all elements into the first section."""
        if self.nodes and not self.sections:
            self.sections = [made(self.top, self.tag, {})]
            self.top.append(self.sections[0])
        for k, section in enumerate(self.sections):
            section[:] = list(self.nodes.values()) if k == 0 else []


def _numbered(node: Any, suffix: str) -> dict[str, str]:
    return renamed(node, ("name",) if node.tag in NAMED else (), lambda name: f"{name}{suffix}")


def _referring(node: Any, suffix: str) -> dict[str, str]:
    return renamed(node, ("name", *REFERENCES), lambda name: f"{name}{suffix}")


def _text(numbers: np.ndarray) -> str:
    return " ".join(repr(float(number)) for number in numbers)
