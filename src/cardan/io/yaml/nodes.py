"""YAML as nodes with their lines. Scalars stay text; the reader of an entry decides what they mean.

Only a part of YAML is read: one document of lists, tables and scalars. Anchors, aliases, merges and tags are rejected;
`parameters` replace them, and hostile files rely on them. `no`, `on` or `yes` are text, not booleans.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from cardan.errors import FileError

LARGEST = 80_000
"""Most nodes of a file; a mechanism of a thousand bodies has less than half of it."""
CALCULATED = 100_000
"""Most characters of all expressions of a file; each may be an operation, which takes five microseconds on symbols."""
DEEPEST = 20
"""Most levels of a file; the format needs eight."""


@dataclass(slots=True)
class Scalar:
    """A number or text; `plain` if it is written without quotes. Lines and columns count from 1."""

    text: str
    plain: bool
    line: int
    column: int
    one_line: bool = True


@dataclass(slots=True)
class List:
    """A list of nodes."""

    items: list[Node]
    line: int
    column: int


@dataclass(slots=True)
class Table:
    """Nodes by name, in the order written; `keys` has the place of each name."""

    line: int
    column: int
    entries: dict[str, Node] = field(default_factory=dict)
    keys: dict[str, Scalar] = field(default_factory=dict)


Node = Scalar | List | Table


def described(node: Node) -> str:
    """A node in a few words."""
    if isinstance(node, Scalar):
        short = node.text if len(node.text) <= 60 else node.text[:57] + "..."
        return repr(short) if node.text else "nothing"
    if isinstance(node, List):
        return f"a list of {len(node.items)}"
    return f"a table with {', '.join(list(node.entries)[:4]) or 'nothing in it'}"


def parse_yaml(text: str, source: str) -> Table:
    """Read the text of a file whose top level is a table."""
    _check_characters(text, source)
    import yaml

    # libyaml where it was built in, which is ten times as fast; the events are the same
    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        top = _Composer(yaml, yaml.parse(text, Loader=loader), source).document()
    except yaml.YAMLError as error:
        raise _malformed(error, source) from None
    if not isinstance(top, Table):
        raise FileError(
            f"{source}: line {top.line}: the file must be a table of sections such as 'bodies:', got {described(top)}"
        )
    return top


def _check_characters(text: str, source: str) -> None:
    for found, sentence in (
        (re.search(r"^ *\t", text, re.MULTILINE), "it is indented with a tab; YAML wants blanks"),
        (re.search("\0", text), "it contains the character NUL; is it a text file at all?"),
        (re.search("[\ud800-\udfff]", text), "it contains half a character, a lone surrogate; is it UTF-8 text?"),
    ):
        if found:
            line = text.count("\n", 0, found.end()) + 1
            raise FileError(f"{source}: line {line}: {sentence}")


def _malformed(error: Any, source: str) -> FileError:
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
    problem = getattr(error, "problem", None) or getattr(error, "reason", None) or "it cannot be parsed"
    return FileError(f"{source}: {where}the YAML is malformed: {problem}")


class _Composer:
    """Makes nodes from YAML events; rejects what the format does not use."""

    def __init__(self, yaml: Any, events: Iterator[Any], source: str) -> None:
        self.yaml, self.events, self.source, self.count = yaml, events, source, 0
        self.calculated = 0

    def document(self) -> Node:
        next(self.events)  # the stream begins
        event = next(self.events)
        if isinstance(event, self.yaml.StreamEndEvent):
            raise FileError(f"{self.source}: the file has no content but comments")
        node = self.node(next(self.events), 0)
        next(self.events)  # the document ends
        event = next(self.events)
        if not isinstance(event, self.yaml.StreamEndEvent):
            raise self.error(event, "a second document begins here; one file describes one mechanism")
        return node

    def node(self, event: Any, depth: int) -> Node:
        self.count += 1
        if self.count > LARGEST:
            raise self.error(event, f"the file has more than {LARGEST} entries; at most that many are read")
        if depth > DEEPEST:
            raise self.error(event, f"it is nested more than {DEEPEST} levels deep")
        kind = type(event)
        if kind is self.yaml.AliasEvent or event.anchor is not None:
            raise self.error(event, "anchors and aliases are not read; give the number a name under 'parameters'")
        if event.tag is not None and event.tag != "!":
            raise self.error(event, f"the tag {event.tag!r} is not read; leave it out")
        mark = event.start_mark
        line, column = mark.line + 1, mark.column + 1
        if kind is self.yaml.ScalarEvent:
            self.calculated += len(event.value) if event.value.lstrip()[:1] == "=" else 0
            if self.calculated > CALCULATED:
                raise self.error(event, f"the expressions of the file have more than {CALCULATED} characters")
            return Scalar(event.value, not event.style, line, column, mark.line == event.end_mark.line)
        if kind is self.yaml.SequenceStartEvent:
            items, end = [], self.yaml.SequenceEndEvent
            while type(event := next(self.events)) is not end:
                items.append(self.node(event, depth + 1))
            return List(items, line, column)
        table, end = Table(line, column), self.yaml.MappingEndEvent
        while type(event := next(self.events)) is not end:
            self.entry(table, event, depth)
        return table

    def entry(self, table: Table, event: Any, depth: int) -> None:
        key = self.node(event, depth + 1)
        if not isinstance(key, Scalar):
            raise self.error(event, f"a name should be here, not {described(key)}")
        if key.text in table.entries:
            before = table.keys[key.text].line
            raise self.error(event, f"{key.text!r} is given twice, first in line {before}; names in a table differ")
        table.keys[key.text] = key
        table.entries[key.text] = self.node(next(self.events), depth + 1)

    def error(self, event: Any, sentence: str) -> FileError:
        return FileError(f"{self.source}: line {event.start_mark.line + 1}: {sentence}")
