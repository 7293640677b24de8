"""`<attach>` and `<replicate>`: elements that make copies of others, expanded before anything else is read.

`<replicate>` becomes frames, each shifted and turned further, with copies of what it holds and a number after their
names. Actuators and constraints all of whose bodies, joints and sites are copied are copied with them, and come after
those that are not.

`<attach>` becomes a body of another model, or all of it, with a prefix before every name. The classes and meshes of
that model come with it, and those of its actuators and constraints that refer to attached bodies only. Its angles,
limits, inertias and mesh files are read under its own `<compiler>`; its `<option>` is not read.

Source: MuJoCo's XML reference, pages body/replicate, asset/model and body/attach.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from cardan.errors import nearest
from cardan.io.mjcf.item import COUNTED, ELEMENTS, Angles, Folder, Item, check_counts, euler, read_named, read_tree
from cardan.io.mjcf.options import Options
from cardan.io.mjcf.vocabulary import TOP
from cardan.io.text_file import SIZE_LIMIT
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
    item.text("count")
    count, separator = item.integer("count", 0), item.get("sep")
    if count < 0:
        raise item.error(f"'count' must not be negative, got {count}")
    offset, turn = (item.exactly(name, (0.0,) * 3) for name in ("offset", "euler"))
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
                self.add(copied(node, partial(_numbered, suffix=suffix, names=("name", *REFERENCES))))

    def write(self) -> None:
        """Put all elements into the first section."""
        if self.nodes and not self.sections:
            self.sections = [made(self.top, self.tag, {})]
            self.top.append(self.sections[0])
        for k, section in enumerate(self.sections):
            section[:] = list(self.nodes.values()) if k == 0 else []


def _numbered(node: Any, suffix: str, names: tuple[str, ...] = ()) -> dict[str, str]:
    return renamed(node, names or (("name",) if node.tag in NAMED else ()), lambda name: f"{name}{suffix}")


def _text(numbers: np.ndarray) -> str:
    return " ".join(repr(float(number)) for number in numbers)


MACROS = ("attach", "replicate")
MODELS, ATTACHED, NESTED = 50, 2000, 8
"""Most model files to attach from, most `<attach>` elements, and deepest nesting of either and of copies."""
BROUGHT = ("asset", "tendon", "deformable", "extension")
"""Sections that come with an attached model; all but the first are only counted, as losses."""


class Source:
    """A model to attach from: its bodies by name, each with its inherited class, and its sections."""

    def __init__(self, top: Item, options: Options) -> None:
        self.top, self.options = top, options
        self.sections = {tag: Section(top.node, tag) for tag in SECTIONS}
        self.worlds = [node for node in top.node if node.tag == "worldbody"]
        self.bodies: dict[str, tuple[Any, str]] = {}
        ahead = [(world, "main") for world in self.worlds]
        while ahead:
            node, above = ahead.pop()
            if node.tag == "body":
                self.bodies[node.get("name", "").strip()] = node, above
            below = node.get("childclass", "").strip() or above
            ahead += [(inner, below) for inner in node if inner.tag in ("body", "frame")]

    def find(self, item: Item, name: str) -> tuple[list[Any], str]:
        """The nodes to attach, a body by name or all in the world, and their inherited class."""
        if not name:
            return [node for world in self.worlds for node in world], "main"
        if name not in self.bodies:
            raise item.error(f"its body {name!r} is not one of {self.top.source!r}{nearest(name, self.bodies)}")
        node, above = self.bodies[name]
        return [node], above


Models = dict[str, Source]


class Attacher:
    """Reads the models that a file names, and expands `<attach>` elements."""

    def __init__(self, path: Path, folder: Folder) -> None:
        self.folder = folder
        self.inside: list[Path] = [Path(os.path.realpath(path))]
        self.sources: dict[Path, Source] = {}
        self.characters, self.elements = SIZE_LIMIT, ELEMENTS
        self.done: set[tuple[int, int, str]] = set()
        self.notes: list[str] = []

    def expand(self, top: Item, path: Path, angles: Angles) -> None:
        """Expand every `<attach>` and `<replicate>` of a file, the inner ones first."""
        # `walk` gives the last elements first; reversed, inner elements come before outer ones
        worlds = [node for node in top.node if node.tag == "worldbody"]
        found = [node for world in reversed(worlds) for node in walk(world) if node.tag in MACROS][::-1]
        if not found:
            return
        _check_nesting(top)
        if sum(node.tag == "attach" for node in found) > ATTACHED:
            raise top.error(f"it has more than {ATTACHED} <attach> elements; no more are read")
        models = self._models(top, path)
        sections = {tag: Section(top.node, tag) for tag in SECTIONS}
        size = sum(1 for _ in walk(top.node))
        for node in found:
            item = Item(node)
            if item.tag == "attach":
                size = self._attach(top, item, models, sections, size)
            else:
                size = replicate(item, angles, sections, size)
        for section in sections.values():
            section.write()
        check_counts(top.node, top.source)

    def _models(self, top: Item, path: Path) -> Models:
        """The models that a file names."""
        found: Models = {}
        for section in top.children:
            for item in section.children if section.tag == "asset" else ():
                if item.tag == "model":
                    item.check(("content_type", "file", "name"))
                    source = self._source(item, path)
                    found[item.get("name") or source.top.get("model")] = source
        return found

    def _source(self, item: Item, path: Path) -> Source:
        """The model in the file that an asset names."""
        name = item.text("file")
        file = self.folder.find(item, path.parent, name)
        if file in self.sources:
            return self.sources[file]
        if file in self.inside:
            raise item.error(f"its file {name!r} takes bodies from itself, in a circle; break it")
        if len(self.inside) > NESTED or len(self.sources) >= MODELS:
            raise item.error(
                f"more than {MODELS} models are attached, or {NESTED} inside one another; no more are read"
            )
        text = read_named(item, file, name, self.characters)
        self.characters -= len(text)
        child = read_tree(file, text, self.folder)
        self.elements -= sum(1 for _ in walk(child.node))
        if self.elements < 0:
            raise item.error(f"the models that are attached have more than {ELEMENTS} elements; no more are read")
        child.check(("model",), TOP)
        options = Options(child)
        options.base = file.parent
        self.inside.append(file)
        self.expand(child, file, options.angles)
        self.inside.pop()
        self.sources[file] = Source(child, options)
        return self.sources[file]

    def _attach(self, top: Item, item: Item, models: Models, sections: dict[str, Section], size: int) -> int:
        """Turn an `<attach>` into a frame with the attached nodes; returns the new number of elements."""
        item.check(("body", "model", "prefix"))
        model = item.text("model").strip()
        if not item.has("prefix"):
            raise item.error("<attach> has no attribute 'prefix'; give it")
        if model not in models:
            raise item.error(f"its model {model!r} is not an asset{nearest(model, models)}")
        source = models[model]
        inside, childclass = source.find(item, item.get("body"))
        nodes = [node for one in inside for node in walk(one)]
        size += len(nodes)
        if size > ELEMENTS:
            raise item.error(f"with what it attaches there are more than {ELEMENTS} elements; no more are read")
        writer = _Prefix(item.get("prefix"), source.options)
        parts = [copied(one, writer.change) for one in inside]
        _set_origin(parts, source.options)
        item.node.tag, item.node.attrib = "frame", {"childclass": f"{writer.prefix}{childclass}"}
        item.node[:] = parts
        key = id(top.node), id(source), writer.prefix
        if key not in self.done:
            self.done.add(key)
            size += self._bring(top, source.top, writer)
        for tag, section in source.sections.items():  # elements that refer only to what is attached
            for k in section.referring(names_of(nodes)):
                own = copied(section.nodes[k], writer.reference)
                _set_origin([own], source.options)
                sections[tag].add(own)
                size += 1
        return size

    def _bring(self, top: Item, child: Item, writer: _Prefix) -> int:
        """Add the classes, meshes and losses of an attached model; returns the number of new elements."""
        new = [made(child.node, "default", {})]
        new += [copied(node, writer.change) for node in child.node if node.tag == "default"]
        for root in new:
            root.attrib.setdefault("class", f"{writer.prefix}main")
            root.root = True
        for section in [node for node in child.node if node.tag in BROUGHT]:
            own = made(section, section.tag, {})
            kept = [node for node in section if node.tag != "model"]
            own.extend([copied(node, writer.asset if node.tag == "mesh" else writer.change) for node in kept])
            new.append(own)
        _set_origin(new, writer.options)
        top.node.extend(new)
        for what in ("option", "keyframe"):
            if any(node.tag == what for node in child.node):
                self.notes.append(f"<{what}> of {child.source!r}, which is attached, is not read")
        if writer.options.total_mass > 0:
            self.notes.append(f"'settotalmass' of {child.source!r}, which is attached, is not applied")
        return sum(1 for node in new for _ in walk(node))


def _check_nesting(top: Item) -> None:
    ahead = [(top.node, 0)]
    while ahead:
        node, depth = ahead.pop()
        depth += node.tag == "replicate"
        if depth > NESTED:
            raise Item(node).error(f"more than {NESTED} <replicate> elements are in one another; no more are read")
        ahead += [(child, depth) for child in node]


class _Prefix:
    """Puts a prefix before the names in attributes."""

    def __init__(self, prefix: str, options: Options) -> None:
        self.prefix, self.options = prefix, options

    def _add(self, name: str) -> str:
        return f"{self.prefix}{name}"

    def change(self, node: Any) -> dict[str, str]:
        """An element of a body, or of a class."""
        names = ("name", "mesh") if node.tag in NAMED else ()
        return renamed(node, ("class", "childclass", *names), self._add)

    def asset(self, node: Any) -> dict[str, str]:
        """A mesh; without a name it is named after its file."""
        name = node.get("name") or Path(node.get("file", "").replace("\\", "/")).stem
        return self._classed(node, ("name",)) | {"name": self._add(name)}

    def reference(self, node: Any) -> dict[str, str]:
        """An element of a section."""
        return self._classed(node, ("name", *REFERENCES))

    def _classed(self, node: Any, attributes: tuple[str, ...]) -> dict[str, str]:
        return {"class": self._add("main")} | renamed(node, ("class", *attributes), self._add)


def _set_origin(nodes: list[Any], options: Options) -> None:
    """Mark nodes to be read under the options of their own file."""
    for top in nodes:
        for node in walk(top):
            node.origin = node.origin or options
