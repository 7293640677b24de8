"""Expressions of the YAML format: a small grammar, its parser, its printer, and the value of an expression.

    comparison  sum [ < | <= | > | >= | == | != sum ]
    sum         product { + | - product }
    product     unary { * | / unary }
    unary       - unary | + unary | power
    power       atom [ ^ unary ]
    atom        number [unit] | name | name[i] | name[i, j] | function(comparison, ...) | (comparison)

A unit after a number is one word, `12 mm`, or anything in brackets, `2.5 [N/m]`. There are no attributes, strings,
assignments, or functions but those in the table below and the tables of the file. Length, size and depth are limited,
so that reading any text is quick.

The value is a number with its dimension where that is known, or a CasADi graph where it contains symbols. A parameter
without a unit, and time, q and v, are plain SI numbers of unknown dimension. Different quantities cannot be added or
compared, except that angles are ignored, because a radius times an angle is a length.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from cardan.errors import nearest
from cardan.io.yaml.units import PLAIN, UNSIGNED, Dimension, UnitError, described, read_unit, to_si
from cardan.model.table import Table

LONGEST = 20_000
"""Characters of an expression."""
DEEPEST = 100
"""Levels of an expression."""
LARGEST = 5_000
"""Numbers, names and operations of an expression."""

FUNCTIONS: dict[str, tuple[int, int]] = {
    **dict.fromkeys(
        ("sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "sqrt", "exp",
         "expm1", "log", "log1p", "abs", "sign", "floor", "ceil", "erf", "not"), (1, 1),
    ),
    **dict.fromkeys(("atan2", "hypot", "mod", "copysign", "and", "or"), (2, 2)),
    **dict.fromkeys(("min", "max"), (2, 20)),
    "if": (3, 3),
}  # fmt: skip
"""Functions, and how many arguments each takes, at least and at most."""
CONSTANTS = ("pi",)
COMPARISONS = ("<=", ">=", "==", "!=", "<", ">")
# How tightly each operation binds, in the order of the grammar.
BINDING = {**dict.fromkeys(COMPARISONS, 1), "+": 2, "-": 2, "*": 3, "/": 3, "neg": 4, "^": 5}
ATOM = 6

_TOKEN = re.compile(
    rf"[ \t\r\n]*(?:(?P<number>{UNSIGNED})|(?P<name>[A-Za-z_]\w*)|(?P<sign>\*\*|<=|>=|==|!=|[-+*/^()\[\],<>]))",
    re.ASCII,
)
_BLANK = re.compile(r"[ \t\r\n]*")
Span = tuple[int, int]


class ExpressionError(ValueError):
    """A mistake in an expression, and its span in the text."""

    def __init__(self, sentence: str, span: Span) -> None:
        super().__init__(sentence)
        self.span = span


@dataclass(slots=True)
class Literal:
    """A number as written, and its unit."""

    text: str
    unit: str = ""
    span: Span = field(default=(0, 0), compare=False)


@dataclass(slots=True)
class Name:
    """A variable, a parameter or a constant; an entry of it where it has several."""

    name: str
    index: tuple[int, ...] = ()
    span: Span = field(default=(0, 0), compare=False)


@dataclass(slots=True)
class Call:
    """A function of the table or an operator (`neg` is the sign) and its arguments; `depth` counts levels."""

    function: str
    arguments: tuple[Expression, ...]
    span: Span = field(default=(0, 0), compare=False)
    depth: int = field(default=0, compare=False)


Expression = Literal | Name | Call
N = TypeVar("N", Literal, Name, Call)


Tables = Mapping[str, Table]
"""The tables of a file by name, which expressions call as functions."""


def parse(text: str, tables: Tables | None = None) -> Expression:
    """Read an expression, which may call tables; a mistake raises `ExpressionError`."""
    if len(text) > LONGEST:
        raise ExpressionError(f"the expression has {len(text)} characters; at most {LONGEST} are read", (0, 1))
    return _Parser(text, tables or {}).whole()


def number(value: float) -> str:
    """The shortest text that reads back as the same float."""
    value = float(value)
    if value == int(value) and abs(value) < 1e15 and not (value == 0 and repr(value)[0] == "-"):
        return str(int(value))
    return repr(value)


def as_text(node: Expression) -> str:
    """Print an expression with as few parentheses as possible; `parse` reads the same tree from it."""
    return _printed(node)[0]


def _printed(node: Expression) -> tuple[str, int]:
    """Text of a node, and how tightly it binds."""
    if isinstance(node, Literal):
        unit = node.unit if re.fullmatch(r"[^\W\d_]+", node.unit) else f"[{node.unit}]"
        return f"{node.text} {unit}" if node.unit else node.text, ATOM
    if isinstance(node, Name):
        return node.name + (f"[{', '.join(map(str, node.index))}]" if node.index else ""), ATOM
    binding = BINDING.get(node.function)
    if binding is None:
        return f"{node.function}({', '.join(as_text(argument) for argument in node.arguments)})", ATOM
    if node.function == "neg":
        return f"-{_wrapped(node.arguments[0], binding)}", binding
    left, right = node.arguments
    if node.function == "^":
        return f"{_wrapped(left, ATOM)}^{_wrapped(right, BINDING['neg'])}", binding
    # comparisons do not chain; the others associate to the left
    first = _wrapped(left, binding + (node.function in COMPARISONS))
    space = " " if binding < BINDING["*"] else ""
    return f"{first}{space}{node.function}{space}{_wrapped(right, binding + 1)}", binding


def _wrapped(node: Expression, binding: int) -> str:
    text, own = _printed(node)
    return text if own >= binding else f"({text})"


# What to write instead of a character that is not allowed.
HINTS = {
    ".": "; it has no attributes", "=": "; compare with ==", "%": "; write mod(a, b)", "'": "; it has no strings",
    '"': "; it has no strings", "&": "; write and(a, b)", "|": "; write or(a, b)", "!": "; write not(a)",
}  # fmt: skip


class _Parser:
    """One token of look-ahead over the text; each rule of the grammar is a method."""

    def __init__(self, text: str, tables: Tables) -> None:
        self.functions = FUNCTIONS | {name: (len(table.axes),) * 2 for name, table in tables.items()}
        self.text, self.at, self.last, self.count, self.level = text, 0, 0, 0, 0
        self.kind, self.word, self.start = "", "", 0
        self.advance()

    def whole(self) -> Expression:
        node = self.comparison()
        if self.kind != "end":
            raise self.unexpected("there")
        return node

    def comparison(self) -> Expression:
        node = self.sum()
        if self.word in COMPARISONS:
            node = self.binary(self.take(), node, self.sum())
            if self.word in COMPARISONS:
                raise self.error(f"comparisons do not chain; write and(a {node.function} b, ...)")
        return node

    def sum(self) -> Expression:
        return self.chain(("+", "-"), self.product)

    def product(self) -> Expression:
        return self.chain(("*", "/"), self.unary)

    def chain(self, signs: tuple[str, ...], operand: Callable[[], Expression]) -> Expression:
        node = operand()
        while self.word in signs:
            node = self.binary(self.take(), node, operand())
        return node

    def unary(self) -> Expression:
        start, signs = self.start, 0
        while self.word in ("-", "+"):
            signs += self.take() == "-"
            if signs > DEEPEST:
                raise self.too_deep()
        node = self.power()
        for _ in range(signs):
            node = self.call("neg", (node,), start)
        return node

    def power(self) -> Expression:
        node = self.atom()
        if self.word in ("^", "**"):
            self.take()
            self.deeper()
            node = self.binary("^", node, self.unary())
            self.level -= 1
        return node

    def atom(self) -> Expression:
        start = self.start
        if self.kind == "number":
            return self.number()
        if self.kind == "name":
            name = self.take()
            return self.function(name, start) if self.word == "(" else self.named(name, start)
        if self.word == "(":
            return self.parenthesis()[0]
        raise self.unexpected("where a number, a name or a parenthesis should be")

    def number(self) -> Expression:
        start, unit = self.start, ""
        text = self.word
        if self.text.startswith("[", self.blank()):
            opening = self.text.index("[", self.at)
            closing = self.text.find("]", opening)
            if closing < 0:
                raise ExpressionError("the bracket of a unit is not closed", (opening, opening + 1))
            unit, self.at = self.text[opening + 1 : closing].strip(), closing + 1
            self.check_unit(unit, (opening + 1, closing))
        self.advance()
        if not unit and self.kind == "name":
            unit = self.word
            self.check_unit(unit, (self.start, self.at), f"; to multiply, write {text}*{unit}")
            self.take()
        return self.counted(Literal(text, unit, (start, self.last)))

    def check_unit(self, unit: str, span: Span, hint: str = "") -> None:
        try:
            read_unit(unit)
        except UnitError as error:
            raise ExpressionError(f"{error}{hint}", span) from None

    def named(self, name: str, start: int) -> Expression:
        if self.word != "[":
            return self.counted(Name(name, (), (start, self.last)))
        self.take()
        index = [self.whole_number()]
        if self.word == ",":
            self.take()
            index.append(self.whole_number())
        self.close("]")
        return self.counted(Name(name, tuple(index), (start, self.last)))

    def whole_number(self) -> int:
        if self.kind != "number" or not self.word.isdigit() or len(self.word) > 3:
            raise self.unexpected("where the number of an entry should be, counted from 0")
        return int(self.take())

    def function(self, name: str, start: int) -> Expression:
        if name not in self.functions:
            table = ", nor a table of the file" if len(self.functions) > len(FUNCTIONS) else ""
            raise ExpressionError(
                f"{name!r} is not a function of this format{table}{nearest(name, self.functions)}",
                (start, start + len(name)),
            )
        arguments = self.parenthesis(many=True)
        least, most = self.functions[name]
        if not least <= len(arguments) <= most:
            wanted = f"{least}" if least == most else f"{least} to {most}"
            raise ExpressionError(
                f"{name} takes {wanted} argument{'s' * (most > 1)}, got {len(arguments)}", (start, self.last)
            )
        return self.call(name, tuple(arguments), start)

    def parenthesis(self, many: bool = False) -> list[Expression]:
        self.take()
        self.deeper()
        inside = [self.comparison()]
        while many and self.word == ",":
            self.take()
            inside.append(self.comparison())
        self.level -= 1
        self.close(")")
        return inside

    def binary(self, sign: str, left: Expression, right: Expression) -> Call:
        return self.call(sign, (left, right), left.span[0])

    def call(self, function: str, arguments: tuple[Expression, ...], start: int) -> Call:
        depth = 1 + max(argument.depth if isinstance(argument, Call) else 0 for argument in arguments)
        if depth > DEEPEST:
            raise self.too_deep()
        return self.counted(Call(function, arguments, (start, self.last), depth))

    def counted(self, node: N) -> N:
        self.count += 1
        if self.count > LARGEST:
            raise self.error(f"the expression has more than {LARGEST} parts")
        return node

    def deeper(self) -> None:
        self.level += 1
        if self.level > DEEPEST:
            raise self.too_deep()

    def too_deep(self) -> ExpressionError:
        return self.error(f"the expression is nested more than {DEEPEST} levels deep")

    def close(self, sign: str) -> None:
        if self.word != sign:
            found = "the end" if self.kind == "end" else repr(self.word)
            raise ExpressionError(f"{sign!r} is missing before {found}", (self.start, max(self.at, self.start + 1)))
        self.take()

    def take(self) -> str:
        word = self.word
        self.advance()
        return word

    def advance(self) -> None:
        """Go to the next token; `last` is where the one before ended."""
        self.last = self.at
        match = _TOKEN.match(self.text, self.at)
        if match is not None:
            self.kind = kind = match.lastgroup or ""
            self.word, (self.start, self.at) = match[kind], match.span(kind)
            return
        start = self.blank()
        if start < len(self.text):
            sign = self.text[start]
            raise ExpressionError(
                f"the character {sign!r} has no place in an expression{HINTS.get(sign, '')}", (start, start + 1)
            )
        self.kind, self.word, self.start, self.at = "end", "", start, start

    def blank(self) -> int:
        """Where the blanks at this place end."""
        match = _BLANK.match(self.text, self.at)
        return match.end() if match else self.at

    def unexpected(self, where: str) -> ExpressionError:
        if self.kind == "end":
            return ExpressionError(f"the expression ends {where}", (self.start, self.start + 1))
        return self.error(f"{self.word!r} does not belong {where}")

    def error(self, sentence: str) -> ExpressionError:
        return ExpressionError(sentence, (self.start, max(self.at, self.start + 1)))


@dataclass(slots=True)
class Measured:
    """A number in SI units with its dimension, None where it is not known; `bare` if it was written without a unit."""

    value: float
    dimension: Dimension | None = None
    bare: bool = False


Value = Any
"""A `Measured`, or a scalar `casadi.SX`."""
Lookup = Callable[[Name], Value]


def evaluate(node: Expression, lookup: Lookup, tables: Tables | None = None) -> Value:
    """Evaluate an expression; `lookup` gives the value of a name, or raises `ExpressionError`."""
    if isinstance(node, Literal):
        return _number(node)
    if isinstance(node, Name):
        return Measured(math.pi, PLAIN, bare=True) if node.name == "pi" and not node.index else lookup(node)
    values = [evaluate(argument, lookup, tables) for argument in node.arguments]
    if tables and node.function in tables:
        return _read_off(node, tables[node.function], values)
    if all([isinstance(value, Measured) for value in values]):
        return _numeric(node, values)
    return _symbolic(node.function, values)


def _read_off(node: Call, table: Table, values: list[Value]) -> Value:
    """What a table gives: a number of unknown dimension, or a graph."""
    found = table(*(value.value if isinstance(value, Measured) else value for value in values))
    if not isinstance(found, float):
        return found
    if not math.isfinite(found):
        shown = ", ".join(f"{value.value:g}" for value in values)
        raise ExpressionError(f"{node.function!r} is a table, and {shown} is outside it", node.span)
    return Measured(found)


def _number(node: Literal) -> Measured:
    try:
        unit = read_unit(node.unit) if node.unit else None
        return Measured(to_si(node.text, unit), PLAIN if unit is None else unit.dimension, bare=unit is None)
    except UnitError as error:
        raise ExpressionError(str(error), node.span) from None


# Numbers.

NUMERIC: dict[str, Callable[..., float]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "^": math.pow, "neg": operator.neg,
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq, "!=": operator.ne,
    "abs": abs, "min": min, "max": max, "mod": math.fmod, "sign": lambda x: (x > 0) - (x < 0),
    "and": lambda a, b: a != 0 and b != 0, "or": lambda a, b: a != 0 or b != 0, "not": lambda a: a == 0,
    "if": lambda c, x, y: x if c != 0 else y,
    **{name: getattr(math, name) for name in (
        "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "sqrt", "exp",
        "expm1", "log", "log1p", "floor", "ceil", "erf", "atan2", "hypot", "copysign")},
}  # fmt: skip
ALIKE = {"+", "-", "<", "<=", ">", ">=", "==", "!=", "min", "max", "mod", "atan2", "hypot", "copysign", "if"}
KEPT = {"+", "-", "neg", "abs", "min", "max", "mod", "hypot", "copysign", "if"}
"""Functions whose result has the dimension of their arguments."""
TRUTH = {"<", "<=", ">", ">=", "==", "!=", "and", "or", "not", "sign"}
OF_ANGLES = {"sin", "cos", "tan"}
ANGLES = {"asin", "acos", "atan", "atan2"}


def _numeric(node: Call, values: list[Measured]) -> Measured:
    try:
        number = float(NUMERIC[node.function](*[value.value for value in values]))
    except (ValueError, ZeroDivisionError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        shown = ", ".join(f"{value.value:g}" for value in values)
        sign = "the sign" if node.function == "neg" else repr(node.function)
        raise ExpressionError(f"{sign} of {shown} has no finite value", node.span)
    if all([value.bare for value in values]):
        angle = node.function in ANGLES
        return Measured(number, (0, 0, 0, 1) if angle else PLAIN, bare=not angle)
    return Measured(number, _dimension(node, values))


def _dimension(node: Call, values: list[Measured]) -> Dimension | None:
    """Dimension of the result, if it is known."""
    name = node.function
    compared = values[1:] if name == "if" else values
    common = _common(node, compared) if name in ALIKE else None
    if name in KEPT:
        return common if name not in ("neg", "abs") else values[0].dimension
    if name in TRUTH:
        return PLAIN
    if name in ANGLES:
        return (0, 0, 0, 1)
    if name in ("*", "/"):
        return _product(*values, sign=1 if name == "*" else -1)
    if name in ("^", "sqrt"):
        return _power(node, values)
    for value in values:
        if value.dimension is not None and any(value.dimension[:3]):
            wanted = "an angle" if name in OF_ANGLES else "a plain number"
            raise ExpressionError(f"{name} takes {wanted}, not {described(value.dimension)}", node.span)
    return PLAIN


def _common(node: Call, values: list[Measured]) -> Dimension | None:
    """The common dimension of values that must agree; zero without a unit agrees with all."""
    known = [v for v in values if v.dimension is not None and not (v.bare and v.value == 0)]
    for value in known[1:]:
        a, b = known[0].dimension, value.dimension
        assert a is not None and b is not None
        if a[:3] != b[:3]:
            raise ExpressionError(
                f"{node.function!r} of {described(a)} and {described(b)}; give both the same kind of unit", node.span
            )
    if len(known) < len([v for v in values if not v.bare or v.value != 0]):
        return None
    return known[0].dimension if known else PLAIN


def _product(a: Measured, b: Measured, *, sign: int) -> Dimension | None:
    if a.dimension is None or b.dimension is None:
        return None
    return tuple(x + sign * y for x, y in zip(a.dimension, b.dimension, strict=True))  # type: ignore[return-value]


def _power(node: Call, values: list[Measured]) -> Dimension | None:
    base, power = values[0], values[1] if node.function == "^" else Measured(0.5, PLAIN)
    if power.dimension is not None and any(power.dimension[:3]):
        raise ExpressionError(f"an exponent is a plain number, not {described(power.dimension)}", node.span)
    if base.dimension is None:
        return None
    powers = [power.value * n for n in base.dimension[:3]]
    if any(n != round(n) or abs(n) > 99 for n in powers):
        raise ExpressionError(f"the power {power.value:g} of {described(base.dimension)} is not a quantity", node.span)
    return int(powers[0]), int(powers[1]), int(powers[2]), 0


# Symbols: the same operations on CasADi graphs. A number among the operands is a constant of the graph.

SYMBOLIC: dict[str, str] = {
    "abs": "fabs", "min": "fmin", "max": "fmax", "mod": "fmod", "and": "logic_and", "or": "logic_or",
    "not": "logic_not",
}  # fmt: skip
OPERATORS: dict[str, Callable[..., Any]] = {
    **{name: NUMERIC[name] for name in ("+", "-", "*", "/", "<", "<=", ">", ">=", "==", "!=")},
    "^": operator.pow,
    "neg": operator.neg,
}


def _symbolic(name: str, values: list[Value]) -> Any:
    import casadi as ca

    symbols: list[Any] = [ca.SX(value.value) if isinstance(value, Measured) else value for value in values]
    if name in OPERATORS:
        return OPERATORS[name](*symbols)
    if name == "if":
        return ca.if_else(*symbols)
    function: Any = getattr(ca, SYMBOLIC.get(name, name))
    result = function(*symbols[:2])
    for symbol in symbols[2:]:  # min and max of more than two
        result = function(result, symbol)
    return result
