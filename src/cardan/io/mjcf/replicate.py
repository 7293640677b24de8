"""`<replicate>`: what it holds, many times, each copy further along and turned further, with a number after its names.

The copies stand in frames in place of the element, before anything else is read. Actuators and constraints all of whose
bodies, joints and sites are copied are copied with them, and come after those that are not.

Source: MuJoCo's XML reference, page body/replicate.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from cardan.io.element import walk
from cardan.io.mjcf.placement import Angles, euler
from cardan.io.mjcf.text import COUNTED, ELEMENTS, Item, check_counts
from cardan.model.pose import Pose

ATTRIBUTES = ("childclass", "count", "euler", "offset", "sep")
NESTED = 8
"""How deep copies of copies may go."""
KINDS = {"body": "body", "joint": "joint", "freejoint": "joint", "site": "site"}
"""Elements that others refer to by name, and what these call them."""
NAMED = (*KINDS, "geom", "frame", "camera", "light")
REFERENCES = {
    "joint": "joint", "jointinparent": "joint", "joint1": "joint", "joint2": "joint", "body": "body", "body1": "body",
    "body2": "body", "site": "site", "refsite": "site", "slidersite": "site", "cranksite": "site", "site1": "site",
    "site2": "site",
}  # fmt: skip
"""Attributes that name a body, joint or site."""
SECTIONS = ("actuator", "equality")

Names = set[tuple[str, str]]


def expand(top: Item, angles: Angles) -> None:
    """Put copies in place of every `<replicate>` of a file, the inner ones first."""
    # of the elements as `walk` gives them, the last come first: turned round, what is inside comes before what it is in
    worlds = [node for node in top.node if node.tag == "worldbody"]
    found = [node for world in reversed(worlds) for node in walk(world) if node.tag == "replicate"][::-1]
    if not found:
        return
    _check_nesting(top)
    sections = {tag: _Section(top.node, tag) for tag in SECTIONS}
    size = sum(1 for _ in walk(top.node))
    for node in found:
        size = _copy(Item(node), angles, sections, size)
    for section in sections.values():
        section.write()
    check_counts(top.node, top.source)


def _check_nesting(top: Item) -> None:
    ahead = [(top.node, 0)]
    while ahead:
        node, depth = ahead.pop()
        depth += node.tag == "replicate"
        if depth > NESTED:
            raise Item(node).error(f"more than {NESTED} <replicate> elements are in one another; no more are read")
        ahead += [(child, depth) for child in node]


def _copy(item: Item, angles: Angles, sections: dict[str, _Section], size: int) -> int:
    """Make a frame of an element, with frames of copies in it; how many elements there are then."""
    item.check(ATTRIBUTES)
    count, offset, turn, separator = _read(item)
    inside = list(walk(item.node))[1:]
    _check_inside(item)
    names = {(KINDS[node.tag], node.get("name", "")) for node in inside if node.tag in KINDS} - {
        (kind, "") for kind in KINDS.values()
    }
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
        frame = _made(item.node, "frame", {"pos": _text(at.position), "quat": _text(at.quaternion)})
        frame.extend([_with_suffix(child, suffix) for child in item.node])
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
    """Joints and inertia belong to a body, and there is none yet."""
    ahead = list(item.node)
    while ahead:
        node = ahead.pop()
        if node.tag in ("joint", "freejoint", "inertial"):
            raise Item(node).error(f"<{node.tag}> is in <replicate>, and in no body of it; put it into a body")
        ahead += node if node.tag == "frame" else ()


class _Section:
    """The elements of all sections of a name, and which refer to what."""

    def __init__(self, top: Any, tag: str) -> None:
        self.sections = [node for node in top if node.tag == tag]
        self.nodes: dict[int, Any] = {}  # by the order in which they came
        self.index: dict[tuple[str, str], dict[int, None]] = {}
        self.count = 0
        for section in self.sections:
            for node in section:
                self._add(node)

    def _add(self, node: Any) -> None:
        self.nodes[self.count] = node
        for reference in _references(node):
            self.index.setdefault(reference, {})[self.count] = None
        self.count += 1

    def referring(self, names: Names) -> list[int]:
        """Which elements refer to these and to no others."""
        some = {k for name in names for k in self.index.get(name, ())}
        return sorted(k for k in some if names.issuperset(_references(self.nodes[k])))

    def replace(self, which: list[int], suffixes: list[str]) -> None:
        """Put copies in place of elements, one set of them after the other."""
        nodes = [self.nodes.pop(k) for k in which]
        for k, node in zip(which, nodes, strict=True):
            for reference in _references(node):
                del self.index[reference][k]
        for suffix in suffixes:
            for node in nodes:
                self._add(_with_suffix(node, suffix, "name", *REFERENCES))

    def write(self) -> None:
        """Put all elements into the first section."""
        for k, section in enumerate(self.sections):
            section[:] = list(self.nodes.values()) if k == 0 else []


def _references(node: Any) -> Iterator[tuple[str, str]]:
    return ((kind, node.get(name).strip()) for name, kind in REFERENCES.items() if node.get(name))


def _with_suffix(top: Any, suffix: str, *attributes: str) -> Any:
    """A copy of a node and all in it, with a suffix after its names; after these attributes, if any are given."""
    result = _suffixed(top, suffix, attributes)
    ahead = [(top, result)]
    while ahead:
        node, copy = ahead.pop()
        for child in node:
            copy.append(_suffixed(child, suffix, attributes))
            ahead.append((child, copy[-1]))
    return result


def _suffixed(node: Any, suffix: str, attributes: tuple[str, ...]) -> Any:
    changed = attributes or (("name",) if node.tag in NAMED else ())
    own = {key: f"{value.strip()}{suffix}" if key in changed and value else value for key, value in node.attrib.items()}
    return _made(node, node.tag, own)


def _made(like: Any, tag: str, attributes: dict[str, str]) -> Any:
    """A node that is said to be where another one is."""
    node = type(like)(tag, attributes)
    node.line, node.file = like.line, like.file
    return node


def _text(numbers: np.ndarray) -> str:
    return " ".join(repr(float(number)) for number in numbers)
