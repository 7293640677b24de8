"""YAML as nodes with their lines, and the reading of values from them; errors name file, line, element and entry.

Only a part of YAML is read: one document of lists, tables and scalars. Anchors, aliases, merges and tags are rejected;
`parameters` replace them, and hostile files rely on them. Scalars stay text, `no`, `on` and `yes` too; the reader of an
entry decides what they mean.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from cardan.errors import FileError, nearest
from cardan.io.policy import STRICT, Policy
from cardan.io.text_file import shortened
from cardan.io.yaml.expression import (
    FUNCTIONS,
    Expression,
    ExpressionError,
    Lookup,
    Measured,
    Name,
    Value,
    evaluate,
    parse,
)
from cardan.io.yaml.units import MEASURE, UNSIGNED, UnitError, called, fits, read_unit, to_si
from cardan.io.yaml.units import described as measured
from cardan.model import table as model_table
from cardan.model.curve import Curve
from cardan.model.joint import Kind

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
        return shortened(node.text) if node.text else "nothing"
    if isinstance(node, List):
        return f"a list of {len(node.items)}"
    return f"a table with {', '.join(list(node.entries)[:4]) or 'nothing in it'}"


def parse_yaml(text: str, source: str) -> Table:
    """Read the text of a file whose top level is a table."""
    for pattern, sentence in (
        (r"^ *\t", "it is indented with a tab; YAML wants blanks"),
        ("\0", "it contains the character NUL; is it a text file at all?"),
        ("[\ud800-\udfff]", "it contains half a character, a lone surrogate; is it UTF-8 text?"),
    ):
        if found := re.search(pattern, text, re.MULTILINE):
            raise FileError(f"{source}: line {text.count(chr(10), 0, found.end()) + 1}: {sentence}")
    import yaml

    # libyaml where it was built in, which is ten times as fast; the events are the same
    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        top = _Composer(yaml, yaml.parse(text, Loader=loader), source).document()
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
        where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        problem = getattr(error, "problem", None) or getattr(error, "reason", None) or "it cannot be parsed"
        raise FileError(f"{source}: {where}the YAML is malformed: {problem}") from None
    if not isinstance(top, Table):
        raise FileError(
            f"{source}: line {top.line}: the file must be a table of sections such as 'bodies:', got {described(top)}"
        )
    return top


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


LONGEST = 200
"""Most characters of a number with its unit."""


@dataclass(frozen=True)
class NodeReader:
    """A node of the file, the element that owns it, its entry `what`, and the parameters that its numbers may use.

    `kind` is the kind of joint whose coordinates decide the units of quantities along a joint. `policy` decides what
    happens where the file breaks a rule. `tables` are those that expressions may call, `curves` those that joints and
    constraints may name.
    """

    node: Node
    source: str
    owner: str = ""
    what: str = ""
    parameters: dict[str, Measured] = field(default_factory=dict, repr=False)
    kind: Kind | None = None
    policy: Policy = STRICT
    tables: dict[str, model_table.Table] = field(default_factory=dict, repr=False)
    curves: dict[str, Curve] = field(default_factory=dict, repr=False)

    def error(self, sentence: str, line: int | None = None) -> FileError:
        """An exception with this place and a sentence."""
        owner = f"{self.owner}: " if self.owner else ""
        what = f"{self.what} " if self.what else ""
        return FileError(f"{self.source}: line {line or self.node.line}: {owner}{what}{sentence}")

    def owned(self, owner: str, kind: Kind | None = None) -> NodeReader:
        """The same place, owned by an element."""
        return replace(self, owner=owner, what="", kind=kind)

    def inner(self, node: Node, what: str) -> NodeReader:
        """A place inside this one."""
        return replace(self, node=node, what=what)

    def table(self, example: str) -> Table:
        """The node, which must be a table."""
        if not isinstance(self.node, Table):
            raise self.error(f"must be a table such as {example}, got {described(self.node)}")
        return self.node

    def items(self) -> list[NodeReader]:
        """The entries of the node, which must be a list."""
        if not isinstance(self.node, List):
            raise self.error(f"must be a list, got {described(self.node)}")
        return [self.inner(node, f"{self.what}[{k}]") for k, node in enumerate(self.node.items)]

    def text(self) -> str:
        """The node, which must be text."""
        if not isinstance(self.node, Scalar):
            raise self.error(f"must be text, got {described(self.node)}")
        if not self.node.text.strip():
            raise self.error("is empty; give it")
        return self.node.text

    def choice(self, words: Sequence[str]) -> str:
        """The node, which must be one of some words."""
        text = self.text()
        if text not in words:
            raise self.error(f"must be one of {', '.join(words)}, got {text!r}{nearest(text, words)}")
        return text

    def number(self, *quantities: str) -> float:
        """A number of one of these quantities, in SI units: plain, with its unit, or an expression."""
        return self.checked(self.quantity(quantities[0]), *quantities)

    def checked(self, value: Measured, *quantities: str) -> float:
        """The number of a value that was read here; reject one of another dimension than these quantities."""
        if value.dimension is None or value.bare:
            return value.value
        strict = not self.is_expression
        if not any(fits(value.dimension, quantity, angles=strict) for quantity in quantities):
            wanted = " or ".join(called(quantity) for quantity in quantities)
            raise self.error(f"must be {wanted}, and {described(self.node)} is {measured(value.dimension)}")
        return value.value

    def quantity(self, wanted: str = "number") -> Measured:
        """A number with its dimension."""
        if not isinstance(self.node, Scalar):
            raise self.error(f"must be {called(wanted)}, got {described(self.node)}")
        text = self.node.text.strip()
        if self.is_expression:
            value = self.evaluated(self.expression(), self.parameter)
            assert isinstance(value, Measured)
            return value
        match = MEASURE.fullmatch(text) if len(text) <= LONGEST else None
        if match is None or re.match(r"[+-]?(0\d|[\d.]*[,_])", text):
            raise self.error(f"must be {called(wanted)}, got {_not_a_number(text)}")
        try:
            unit = read_unit(match[2]) if match[2] else None
            return Measured(to_si(match[1], unit), unit.dimension if unit else None)
        except UnitError as error:
            hint = "; a calculation begins with =" if re.search(r"[+*/(-]", match[2] or "") else ""
            raise self.error(f"cannot be {text!r}: {error}{hint}") from None

    @property
    def written(self) -> str:
        """The text of the node, if it is a scalar."""
        return self.node.text if isinstance(self.node, Scalar) else ""

    @property
    def is_expression(self) -> bool:
        """Whether the node is a calculation: text that begins with =."""
        return isinstance(self.node, Scalar) and self.node.text.lstrip().startswith("=")

    def expression(self) -> Expression:
        """The tree of the calculation after the sign =."""
        assert isinstance(self.node, Scalar)
        try:
            return parse(self.node.text.lstrip()[1:], self.tables)
        except ExpressionError as error:
            if self.node.plain and self.what.endswith("]") and str(error).endswith("before the end"):
                error = ExpressionError(f"{error}; put a calculation that has a comma in quotes", error.span)
            raise self.pointed(error) from None

    def evaluated(self, tree: Expression, lookup: Lookup) -> Value:
        """The value of a calculation written here."""
        try:
            return evaluate(tree, lookup, self.tables)
        except ExpressionError as error:
            raise self.pointed(error) from None

    def parameter(self, name: Name) -> Measured:
        """The value of a parameter that an expression names."""
        if name.name in self.parameters and not name.index:
            return self.parameters[name.name]
        raise unknown_name(name, [*self.parameters, "pi"])

    def pointed(self, error: ExpressionError) -> FileError:
        """An exception for a mistake in an expression, with an arrow to it."""
        assert isinstance(self.node, Scalar)
        blanks = len(self.node.text) - len(self.node.text.lstrip())
        start, stop = (place + blanks + 1 for place in error.span)
        shown, shift = _cut(self.node.text, start)
        length = max(1, min(stop, len(self.node.text) + 1) - start)
        arrow = " " * (start - shift) + "^" * min(length, len(shown) - (start - shift) + 1)
        column = ""
        if self.node.one_line:
            column = f", column {self.node.column + start + (not self.node.plain)}"
        owner = f"{self.owner}: " if self.owner else ""
        return FileError(
            f"{self.source}: line {self.node.line}{column}: {owner}{self.what}: {error}\n    {shown}\n    {arrow}"
        )


def unknown_name(name: Name, known: list[str]) -> ExpressionError:
    """An exception for a name that is not known in an expression."""
    if name.index and name.name in known:
        return ExpressionError(f"{name.name!r} is a single number and has no entries", name.span)
    if name.name in FUNCTIONS:
        return ExpressionError(f"{name.name!r} is a function; give its arguments in parentheses", name.span)
    hint = nearest(name.name, known)
    with suppress(UnitError):
        read_unit(name.name)
        hint += "; a unit of several parts is written in brackets, 2.5 [N/m]"
    return ExpressionError(f"{name.name!r} is neither a parameter nor a variable here{hint}", name.span)


def _cut(text: str, start: int) -> tuple[str, int]:
    """A piece of the text around a place, on one line, and its start."""
    text = re.sub(r"\s", " ", text)
    shift = max(0, start - 50) if len(text) > 100 else 0
    return text[shift : shift + 100], shift


def _not_a_number(text: str) -> str:
    """Why a word is not a number, as the end of a sentence."""
    if re.fullmatch(r"(?i:null|~|)", text):
        return "nothing; give it, or leave the line out"
    hints = (
        (r"[+-]?\.?(?i:nan|inf|infinity)$", "; it must be finite: leave out what is unknown or unlimited"),
        (r"(?i:true|false|yes|no|on|off|y|n)$", ", a word"),
        (r"[+-]?[\d.]+_", "; leave out the _"),
        (r"[+-]?0\d", "; leave out the leading zeros, which could mean an octal number"),
        (r"[+-]?\d+,\d", "; write a point before decimals"),
        (
            rf"(?![+-]?{UNSIGNED}).*[+*/^()]",
            "; a calculation begins with =, and stands in quotes if it contains a comma",
        ),
    )
    hint = next((hint for pattern, hint in hints if re.match(pattern, text, re.DOTALL | re.ASCII)), "")
    return shortened(text) + hint
