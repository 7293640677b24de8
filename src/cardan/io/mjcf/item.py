"""The elements of an MJCF file and of the files it includes, each with its file and line; and their poses.

An included file replaces its `<include>`, without its top element. Its path is relative to the main file or, where
there is no such file, to the one that includes it. Only files inside one folder are read: absolute paths, and paths and
links that lead out of it, are rejected. No file is included twice.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from cardan.algebra.rotation import quaternion_product, rotation_of_quaternion
from cardan.errors import FileError, nearest
from cardan.io.mjcf.vocabulary import EXACTLY, ROTATIONS, UP_TO
from cardan.io.text_file import BODIES, SIZE_LIMIT, placing, read_text, shortened, too_many_states
from cardan.io.xml_element import MOST, Element, parse_nodes, parse_top, walk
from cardan.model.pose import Pose

ELEMENTS = 60_000
"""Most elements of a model, included files counted."""
INCLUDES, SECTIONS = 500, 2000
"""Most included files, and most sections, of a model."""
COUNTED = {"body": BODIES, "geom": 4 * BODIES, "site": 4 * BODIES, "joint": 2 * BODIES, "frame": 4 * BODIES}
COUNTED |= dict.fromkeys(("weld", "connect", "key"), BODIES)
"""Most elements of the kinds that take longest to read."""


LONGEST = 8
PARTIAL = ("stiffness", "damping", "size", "gear")
"""Attributes of several numbers of which an element or class may give the first few and inherit the others."""


def overlaid(inherited: Mapping[str, str], own: Mapping[str, str]) -> dict[str, str]:
    """Inherited attributes, overridden by own ones."""
    result = {**inherited, **own}
    for name in PARTIAL:
        if name in inherited and name in own:
            # a list that is too long is rejected when the numbers are read
            first, rest = own[name].split(None, LONGEST), inherited[name].split(None, LONGEST)[:LONGEST]
            result[name] = " ".join([*first, *rest[len(first) :]])
    return result


class Item(Element):
    """An element of an MJCF file, with its line; its attributes include those of its defaults class."""

    def __init__(self, node: Any, owner: str = "", defaults: Mapping[str, str] | None = None) -> None:
        merged = node
        if defaults:
            merged = type(node)(node.tag, overlaid(defaults, node.attrib))
            merged.line, merged.file = node.line, node.file
            merged.extend(list(node))
        name = merged.get("name", "").strip()
        super().__init__(
            merged, str(node.file), owner or (f"{node.tag} {name!r}" if name else f"<{node.tag}>"), Counter()
        )
        self.own: Mapping[str, str] = node.attrib
        self.line: int = node.line
        self.origin: Any = getattr(node, "origin", None)  # options of the model that it is attached from, if it is

    @property
    def children(self) -> list[Item]:
        """Every element directly inside, in order."""
        return [Item(node) for node in self.node]

    def get(self, attribute: str, default: str = "") -> str:
        """Text of an attribute, or the default."""
        return self.node.get(attribute, default).strip()

    def choice(self, attribute: str, options: Sequence[str], default: str) -> str:
        """One of several words."""
        value = self.get(attribute, default)
        if value not in options:
            raise self.error(f"{attribute!r} of <{self.tag}> must be one of {', '.join(options)}, got {value!r}")
        return value

    def yes(self, attribute: str, default: bool = False) -> bool:
        """Whether an attribute is true."""
        return self.choice(attribute, ("true", "false"), "true" if default else "false") == "true"

    def integer(self, attribute: str, default: int) -> int:
        """One whole number, or the default."""
        value = self.number_or(attribute, default)
        if value != int(value):
            raise self.error(f"{attribute!r} of <{self.tag}> must be a whole number, got {self.get(attribute)!r}")
        return int(value)

    def several(self, attribute: str, least: int, most: int) -> np.ndarray:
        """From `least` to `most` finite numbers; the attribute must be given."""
        return self.numbers(attribute, self._few(attribute, least, most))

    def _few(self, attribute: str, least: int, most: int) -> int:
        """How many numbers there are; reject fewer or more."""
        count = len(self.text(attribute).split(None, max(most, MOST)))
        if not least <= count <= most:
            raise self.error(
                f"{attribute!r} of <{self.tag}> must be from {least} to {most} numbers, "
                f"got {count}{' or more' * (count > MOST)}: {shortened(self.get(attribute))}"
            )
        return count

    def words(self, attribute: str, count: int) -> list[str]:
        """`count` words, numbers or not; the attribute must be given."""
        words = self.text(attribute).split(None, MOST)
        if len(words) != count:
            self.numbers(attribute, count)  # raises the error
        return words

    def up_to(self, attribute: str, default: Sequence[float]) -> np.ndarray:
        """As many numbers as the default has; missing ones at the end are taken from the default."""
        if not self.has(attribute):
            return np.array(default, dtype=float)
        given = self.several(attribute, 1, len(default))
        return np.array([*given, *default[len(given) :]], dtype=float)

    def exactly(self, attribute: str, default: Sequence[float]) -> np.ndarray:
        """As many numbers as the default has, all of them, or the default."""
        return self.numbers(attribute, len(default)) if self.has(attribute) else np.array(default, dtype=float)

    def check(self, attributes: Sequence[str], elements: Sequence[str] | None = None) -> None:
        """Reject attributes and child elements that MJCF does not have here, and wrong counts of numbers."""
        for name in self.own:
            if name not in attributes:
                raise self.error(f"<{self.tag}> has no attribute {name!r} in MJCF{nearest(name, attributes)}")
            if self.tag == "flag" or not self.get(name):  # attributes of <flag> are words
                continue
            if name in EXACTLY:
                self.words(name, EXACTLY[name])
            elif name in UP_TO:
                self._few(name, 1, UP_TO[name])
        for child in self.node if elements is not None else ():
            if elements is not None and child.tag not in elements:
                raise Item(child).error(
                    f"<{self.tag}> has no element <{child.tag}> in MJCF{nearest(child.tag, elements)}"
                )

    def naming(self) -> AbstractContextManager[None]:
        """Put file and line before the errors of the builder."""
        return placing(lambda sentence: f"{self.place}: {sentence}")


class Folder:
    """The one folder that files are read from."""

    def __init__(self, path: Path) -> None:
        self.path = Path(os.path.realpath(path))

    def find(self, item: Item, base: Path, name: str) -> Path:
        """The file that an element names, relative to `base`; it must be inside the folder."""
        if "\0" in name or "\\" in name or Path(name).is_absolute() or (len(name) > 1 and name[1] == ":"):
            raise item.error(
                f"its file {name!r} is not a path relative to the model's folder; only files inside that are read"
            )
        found = Path(os.path.realpath(base / name))
        if self.path != found and self.path not in found.parents:
            raise item.error(
                f"its file {name!r} is outside the folder {str(self.path)!r}, and only files inside that are read; "
                "pass folder=... to load if you trust the file"
            )
        return found


def read_tree(path: Path, text: str, folder: Folder) -> Item:
    """The top element of a file, with every included file in its place."""
    top = parse_top(text, str(path), "mujoco", ELEMENTS)
    seen: dict[Path, Item | None] = {Path(os.path.realpath(path)): None}
    left = SIZE_LIMIT - len(text), ELEMENTS - sum(1 for _ in walk(top))
    ahead = [top]
    while ahead:
        node = ahead.pop()
        inner: list[Any] = []
        for child in node:
            if child.tag == "include":
                nodes, left = _included(Item(child), path, folder, seen, left)
                # an included file may include more, so this element is looked at again
                inner += nodes
            else:
                inner.append(child)
        changed = len(inner) != len(node) or any(a is not b for a, b in zip(inner, node, strict=False))
        if changed:
            node[:] = inner
            ahead.append(node)
        else:
            ahead += inner
    check_counts(top, str(path))
    return Item(top, "mujoco")


def check_counts(top: Any, source: str) -> None:
    """Reject a model of unreasonable size early."""
    if len(top) > SECTIONS:
        raise FileError(f"{source}: the model has {len(top)} sections; at most {SECTIONS} are read")
    counts = Counter(node.tag for node in walk(top))
    for tag, most in COUNTED.items():
        if counts[tag] > most:
            raise FileError(f"{source}: the model has {counts[tag]} elements <{tag}>; at most {most} are read")
    if why := too_many_states(counts["key"], counts["joint"] + counts["freejoint"]):
        raise FileError(f"{source}: {why}")


def read_named(item: Item, file: Path, name: str, characters: int) -> str:
    """The text of a file that an element names, of at most so many characters."""
    try:
        return read_text(file, max(characters, 1))
    except FileError as error:
        raise item.error(f"its file {str(error).replace(str(file), repr(name), 1)}") from None


def _included(
    item: Item, main: Path, folder: Folder, seen: dict[Path, Item | None], left: tuple[int, int]
) -> tuple[list[Any], tuple[int, int]]:
    """The elements of an included file, and how many characters and elements may still be read."""
    item.check(("file",))
    name = item.text("file")
    # as in MuJoCo: beside the main file, or else beside the file that includes it
    places = (main.parent, Path(item.source).parent)
    file = folder.find(item, next((place for place in places if os.path.exists(place / name)), main.parent), name)
    if file in seen:
        before = seen[file]
        where = "it is the model itself" if before is None else f"line {before.line} of {before.source} includes it"
        raise item.error(f"{name!r} is included a second time ({where}); a file can be included once")
    seen[file] = item
    if len(seen) > INCLUDES:
        raise item.error(f"more than {INCLUDES} files are included; no more are read")
    characters, elements = left
    text = read_named(item, file, name, characters)
    included = parse_nodes(text, str(file), most=elements)
    nodes = list(included)
    if not nodes:
        raise item.error(f"its file {name!r} has no element inside its top element; there is nothing to include")
    return nodes, (characters - len(text), elements - sum(1 for _ in walk(included)))


SMALLEST = 1e-14
"""A vector shorter than this has no direction."""


@dataclass(frozen=True)
class Angles:
    """How a file writes angles: the unit in rad, and the sequence of axes of `euler`."""

    unit: float = np.pi / 180
    sequence: str = "xyz"


def pose_of(item: Item, angles: Angles) -> Pose:
    """The pose of an element in its parent."""
    position = item.numbers("pos", 3) if item.has("pos") else np.zeros(3)
    return Pose(position, rotation_of(item, angles))


def rotation_of(item: Item, angles: Angles) -> np.ndarray:
    """The rotation (3, 3) of an element in its parent; its own overrides that of its defaults class."""
    own = [name for name in ROTATIONS if name in item.own]
    given = own or [name for name in ROTATIONS if item.has(name)]
    if len(own) > 1:
        raise item.error(f"<{item.tag}> gives its rotation as {' and as '.join(map(repr, own))}; give it once")
    if not given:
        return np.eye(3)
    how = given[-1]
    angles = item.origin.angles if item.origin else angles
    if how == "quat":
        return rotation_of_quaternion(unit(item, how, item.numbers(how, 4)))
    if how == "axisangle":
        x, y, z, angle = item.numbers(how, 4)
        return turn(unit(item, how, np.array([x, y, z])), angle * angles.unit)
    if how == "euler":
        return euler(item.numbers(how, 3) * angles.unit, angles.sequence)
    if how == "xyaxes":
        numbers = item.numbers(how, 6)
        x = unit(item, how, numbers[:3])
        y = unit(item, how, numbers[3:] - x * (x @ numbers[3:]))
        return np.column_stack([x, y, np.cross(x, y)])
    return to_z(unit(item, how, item.numbers(how, 3)))


def unit(item: Item, what: str, vector: np.ndarray) -> np.ndarray:
    """A vector or quaternion of unit length."""
    length = float(np.linalg.norm(vector))
    if length < SMALLEST:
        raise item.error(
            f"{what!r} of <{item.tag}> has no direction: {item.get(what)!r}; give numbers that are not all 0"
        )
    return vector / length


def turn(axis: np.ndarray, angle: float) -> np.ndarray:
    """Rotation (3, 3) about a unit axis."""
    return rotation_of_quaternion(np.array([np.cos(angle / 2), *(np.sin(angle / 2) * axis)]))


def to_z(z: np.ndarray) -> np.ndarray:
    """The shortest rotation that takes the z axis to a direction."""
    axis = np.cross((0.0, 0.0, 1.0), z)
    sine = float(np.linalg.norm(axis))
    if sine < 1e-10:
        return turn(np.array([1.0, 0.0, 0.0]), float(np.arctan2(0.0, z[2])))
    return turn(axis / sine, float(np.arctan2(sine, z[2])))


def euler(angles: np.ndarray, sequence: str) -> np.ndarray:
    """Rotations in sequence about moving axes (lower case) or fixed axes (capitals)."""
    total = np.array([1.0, 0.0, 0.0, 0.0])
    for angle, letter in zip(angles, sequence, strict=True):
        own = np.array([np.cos(angle / 2), 0.0, 0.0, 0.0])
        own[1 + "xyz".index(letter.lower())] = np.sin(angle / 2)
        total = quaternion_product(total, own) if letter.islower() else quaternion_product(own, total)
    return rotation_of_quaternion(np.asarray(total, dtype=float).ravel())
