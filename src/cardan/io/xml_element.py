"""One element of an XML model file; errors name the file, the owner, the rule and the value."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from cardan.errors import FileError
from cardan.io.text_file import shortened

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element as Node

NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?", re.ASCII)
LARGEST = 1e60
"""Largest mass, length or inertia, in SI units; squares of such numbers are still finite."""
ELEMENTS, ATTRIBUTES = 110_000, 200
"""Most elements of a file, and attributes of an element; a robot of a thousand bodies has 20,000 and 60."""
MOST = 1000
"""Words of an attribute that are counted, where fewer are expected."""
LONGEST = 1100
"""Most characters of a number; the smallest float, written out in full, has fewer."""
NOT_FINITE = re.compile(r"[+-]?(nan|inf|infinity)", re.ASCII | re.IGNORECASE)


class Element:
    """An element of the file `source`; `owner` is what messages call the thing that it describes.

    `unread` counts, for the whole file, the elements and attributes that no reader asked for.
    """

    def __init__(self, node: Node, source: str, owner: str, unread: Counter[str]) -> None:
        self.node, self.source, self.owner, self.unread = node, source, owner, unread

    @property
    def tag(self) -> str:
        """The element's name."""
        return _plain(self.node.tag)

    @property
    def local(self) -> str:
        """The element's name without the prefix of its namespace."""
        return self.tag.rpartition(":")[2]

    @property
    def children(self) -> Sequence[Element]:
        """Every element directly inside, in order."""
        return [Element(node, self.source, self.owner, self.unread) for node in self.node]

    def error(self, sentence: str) -> FileError:
        """An exception with this place and a sentence."""
        return FileError(f"{self.place}: {self.owner}: {sentence}")

    @property
    def place(self) -> str:
        """The file, and the line in it where that is known."""
        line = getattr(self.node, "line", None)
        return self.source if line is None else f"{self.source}: line {line}"

    @property
    def content(self) -> str:
        """The element with all its content as text, blanks normalised: equal text means equal elements."""
        parts: list[str] = []
        ahead: list[Any] = [self.node]
        while ahead:  # no recursion: elements may be nested deeper than Python's stack
            node = ahead.pop()
            if isinstance(node, str):
                parts.append(node)
                continue
            parts.append(f"<{node.tag} {node.attrib!r}>{' '.join((node.text or '').split())}")
            ahead.append(f"</{node.tag}>")
            for child in reversed(node):
                ahead += [" ".join((child.tail or "").split()), child]
        return "".join(parts)

    def all(self, tag: str) -> Iterator[Element]:
        """Every direct child of this name."""
        found = (node for node in self.node if _plain(node.tag) == tag)
        return (Element(node, self.source, self.owner, self.unread) for node in found)

    def one(self, tag: str) -> Element | None:
        """The direct child of this name, if there is one; two are an error."""
        found = list(self.all(tag))
        if len(found) > 1:
            raise self.error(f"it has {len(found)} <{tag}> elements and may have one; remove the others")
        return found[0] if found else None

    def needed(self, tag: str, example: str) -> Element:
        """The direct child of this name; `example` shows what to add where it is missing."""
        found = self.one(tag)
        if found is None:
            raise self.error(f"it has no <{tag}>; add one, such as {example}")
        return found

    def has(self, attribute: str) -> bool:
        """Whether the attribute is given."""
        return attribute in self.node.attrib

    def text(self, attribute: str) -> str:
        """Text of an attribute that must be there and not empty."""
        value = self.node.get(attribute)
        if value is None:
            raise self.error(f"<{self.tag}> has no attribute {attribute!r}; give it")
        if not value.strip():
            raise self.error(f"attribute {attribute!r} of <{self.tag}> is empty; give it")
        return value

    def number(self, attribute: str, *, largest: float = LARGEST) -> float:
        """One finite number that must be there."""
        return float(self.numbers(attribute, 1, largest=largest)[0])

    def number_or(self, attribute: str, default: float, *, largest: float = LARGEST) -> float:
        """One finite number, or the default where the attribute is not given."""
        return self.number(attribute, largest=largest) if self.has(attribute) else default

    def numbers(self, attribute: str, count: int, *, largest: float = LARGEST) -> np.ndarray:
        """Read `count` finite numbers, separated by blanks, that must be there."""
        text = self.text(attribute)
        words = text.split(None, max(count, MOST))
        values = [self.read(attribute, word) for word in words[:count]]
        if len(words) != count:
            many = "1 number" if count == 1 else f"{count} numbers, separated by blanks"
            got = f"{len(words)}{' or more' * (len(words) > MOST)}"
            raise self.error(f"{attribute!r} of <{self.tag}> must be {many}, got {got}: {shortened(text)}")
        if max(map(abs, values)) > largest:
            raise self.error(f"{attribute!r} of <{self.tag}> is too large: {shortened(text)}; check the unit")
        return np.array(values)

    def note_unread(self, elements: Iterable[str], attributes: Iterable[str]) -> None:
        """Count the child elements and the attributes that are not among those named."""
        elements, attributes = set(elements), set(attributes)
        tags = [_plain(node.tag) for node in self.node]
        self.unread.update(f"<{tag}> in <{self.tag}>" for tag in tags if tag not in elements)
        self.unread.update(
            f"{name!r} of <{self.tag}>" for name in map(_plain, self.node.keys()) if name not in attributes
        )

    def read(self, attribute: str, word: str) -> float:
        """Read a word of an attribute as a finite number."""
        where = f"{attribute!r} of <{self.tag}>"
        if len(word) > LONGEST:
            raise self.error(f"{where} has a number of {len(word)} characters, {shortened(word)}; round it")
        if "${" in word or "$(" in word:
            raise self.error(
                f"{where} has {word!r}, a macro of xacro; expand the file first: xacro in.xacro > out.urdf"
            )
        if NOT_FINITE.fullmatch(word):
            raise self.error(f"{where} must be finite, got {word!r}; leave out what is unknown or unlimited")
        if not NUMBER.fullmatch(word):
            comma = "; separate numbers by blanks, with a point before decimals" if "," in word else ""
            raise self.error(f"{where} has {word!r}, which is not a number{comma}")
        value = float(word)
        if not math.isfinite(value):
            raise self.error(f"{where} must be finite, and {word!r} is beyond the range of numbers")
        return value


def parse_top(text: str, source: str, top: str, most: int = ELEMENTS) -> Any:
    """Parse XML as `parse_nodes` does; the top element must be `top`."""
    node = parse_nodes(text, source, most=most)
    if node.tag != top:
        raise FileError(
            f"{source}: the top element is <{_plain(node.tag)}>, and must be <{top}>; is it another format?"
        )
    return node


def top_tag(text: str, source: str) -> str:
    """Name of the top element; what is inside it is not read."""
    return _plain(parse_nodes(text, source, top_only=True).tag)


class _TopMet(Exception):
    """Stops parsing at the top element."""


def parse_nodes(text: str, source: str, *, top_only: bool = False, most: int = ELEMENTS) -> Any:
    """The top node of XML, where every node knows its `file` and `line`; document types and entities are refused.

    At most `most` elements are read.
    """
    from xml.etree.ElementTree import ParseError

    from defusedxml import DefusedXmlException
    from defusedxml.ElementTree import DefusedXMLParser

    class Numbered(DefusedXMLParser):  # type: ignore[misc]
        count = 0

        def _start(self, tag: str, attributes: Any) -> Any:
            node = super()._start(tag, attributes)
            node.file, node.line = source, self.parser.CurrentLineNumber
            self.count += 1
            if self.count > most or len(node.attrib) > ATTRIBUTES:
                what = f"an element has more than {ATTRIBUTES} attributes"
                what = what if self.count <= most else f"more elements than the {most} that may stand here"
                raise FileError(f"{source}: line {node.line}: {what}; the file is not read")
            if top_only:
                raise _TopMet(node)
            return node

    parser = Numbered(forbid_dtd=True)
    try:
        parser.feed(text)
        return parser.close()
    except _TopMet as met:
        return met.args[0]
    except DefusedXmlException:
        raise FileError(
            f"{source}: the XML declares a document type or entities, which model files do not need and "
            "which are never read; remove the <!DOCTYPE ...>"
        ) from None
    except ParseError as error:
        line, column = error.position
        reason = str(error).split(":")[0]
        raise FileError(f"{source}: line {line}, column {column + 1}: the XML is malformed: {reason}") from None
    except ValueError as error:  # characters that XML forbids, such as lone surrogates
        raise FileError(f"{source}: the XML cannot be read: {error}") from None


def walk(top: Any) -> Iterator[Any]:
    """A node and all nodes in it, however deep; without recursion, unlike `iter` of the node itself."""
    ahead = [top]
    while ahead:
        node = ahead.pop()
        yield node
        ahead += node


def free_name(name: str, taken: Container[str]) -> str:
    """The name, with underscores added until it differs from those taken."""
    while name in taken:
        name += "_"
    return name


def _plain(name: str) -> str:
    """A name with the last word of its namespace as prefix, as files write it: xacro:macro."""
    space, _, local = name.rpartition("}")
    return f"{space.rstrip('/').rpartition('/')[2].lstrip('{')}:{local}" if space else name
