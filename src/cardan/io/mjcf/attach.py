"""`<attach>`: replaced by a body of another model, or by all of it, with a prefix before every name.

The classes and meshes of that model come with it, and those of its actuators and constraints that refer to attached
bodies only. Its angles, limits, inertias and mesh files are read under its own `<compiler>`; its `<option>` is not
read. `<attach>` and `<replicate>` are expanded before anything else is read.

Source: MuJoCo's XML reference, pages asset/model and body/attach.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from cardan.errors import FileError, nearest
from cardan.io.mjcf.item import ELEMENTS, Folder, Item, check_counts, read_tree
from cardan.io.mjcf.options import Options
from cardan.io.mjcf.placement import Angles
from cardan.io.mjcf.replicate import (
    NAMED,
    REFERENCES,
    SECTIONS,
    Section,
    copied,
    made,
    names_of,
    renamed,
    replicate,
)
from cardan.io.mjcf.vocabulary import TOP
from cardan.io.text_file import SIZE_LIMIT, read_text
from cardan.io.xml_element import walk

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
        try:
            text = read_text(file, max(self.characters, 1))
        except FileError as error:
            raise item.error(f"its file {str(error).replace(str(file), repr(name), 1)}") from None
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
