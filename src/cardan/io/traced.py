"""A traced function as expressions: the instructions of a CasADi graph printed in the grammar of the native format.

A value that is used several times, or would be nested too deep, gets a name and is listed first, so that reading the
text back gives the same graph, operation by operation.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

from cardan.io.expression import LARGEST, Call, Name, Node, Number, as_text
from cardan.io.yaml_text import number

DEEPEST, LONGEST = 30, 200
"""Levels and operations of a printed expression before a part of it gets a name of its own."""

# CasADi's operation: the function of the format, where its name is another.
FUNCTIONS = {
    "neg": "neg", "add": "+", "sub": "-", "mul": "*", "div": "/", "pow": "^", "constpow": "^", "lt": "<", "le": "<=",
    "eq": "==", "ne": "!=", "fabs": "abs", "fmin": "min", "fmax": "max", "fmod": "mod",
    **{name: name for name in (
        "sqrt", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "exp",
        "log", "log1p", "expm1", "erf", "floor", "ceil", "sign", "not", "atan2", "hypot", "copysign", "and", "or")},
}  # fmt: skip


class Untranslatable(ValueError):
    """Why a graph is not an expression, as the tail of a sentence."""


class Text(NamedTuple):
    """Expressions of each output of a function, column by column, and the named values that they share."""

    where: dict[str, str]
    outputs: list[list[str]]


def as_expressions(function: Any, variable: Callable[[int, int], Name]) -> Text:
    """Print a `casadi.Function`; `variable(port, k)` names entry k of an argument."""
    if function.n_instructions() > LARGEST:
        raise Untranslatable(f"it takes {function.n_instructions()} operations, and at most {LARGEST} are written")
    values, outputs = _read(function, variable)
    _restore_choices(values, _uses(values, outputs))
    uses = _uses(values, outputs)
    where: dict[str, str] = {}
    nodes: list[Node] = []
    sizes: list[int] = []
    for k, value in enumerate(values):
        node = value.leaf or _node(value.op, [nodes[a] for a in value.arguments])
        size = 1 + sum(sizes[a] for a in value.arguments)
        if isinstance(node, Call) and value.leaf is None and (uses[k] > 1 or node.depth > DEEPEST or size > LONGEST):
            name, size = f"a{len(where) + 1}", 1
            where[name] = as_text(node)
            node = Name(name)
        nodes.append(node)
        sizes.append(size)
    return Text(where, [[as_text(nodes[k]) for k in column] for column in outputs])


class _Value(NamedTuple):
    """An operation and the numbers of its operands, or a leaf: a constant or a variable."""

    op: str
    arguments: tuple[int, ...] = ()
    leaf: Node | None = None


def _read(function: Any, variable: Callable[[int, int], Name]) -> tuple[list[_Value], list[list[int]]]:
    """Number the values of a graph, and list those of each output."""
    codes = _codes()
    values = [_Value("const", leaf=_constant(0.0))]
    outputs = [[0] * function.numel_out(port) for port in range(function.n_out())]
    work: dict[int, int] = {}
    for k in range(function.n_instructions()):
        op = codes.get(function.instruction_id(k), "")
        ins, outs = function.instruction_input(k), function.instruction_output(k)
        if op == "output":
            outputs[outs[0]][function.sparsity_out(outs[0]).find()[outs[1]]] = work[ins[0]]
            continue
        if op == "input":
            values.append(_Value(op, leaf=variable(*ins)))
        elif op == "const":
            values.append(_Value(op, leaf=_constant(float(function.instruction_constant(k)))))
        else:
            values.append(_Value(op, tuple(work[i] for i in ins)))
        work[outs[0]] = len(values) - 1
    return values, outputs


def _uses(values: list[_Value], outputs: list[list[int]]) -> Counter[int]:
    """How often each value is used."""
    uses = Counter(argument for value in values for argument in value.arguments)
    uses.update(k for column in outputs for k in column)
    return uses


def _restore_choices(values: list[_Value], uses: Counter[int]) -> None:
    """Put `if(c, x, y)` for what CasADi makes of it, `if(c, x, 0) + if(not(c), y, 0)`.

    Only where the parts are used for nothing else, so that reading it back makes them again.
    """
    for k, value in enumerate(values):
        parts = [values[a] for a in value.arguments]
        if value.op != "add" or [part.op for part in parts] != ["if_else_zero"] * 2:
            continue
        (c, x), (negated, y) = (part.arguments for part in parts)
        inner = [*value.arguments, negated]
        if values[negated] == _Value("not", (c,)) and all(uses[i] == 1 for i in inner):
            values[k] = _Value("if", (c, x, y))
            for i in inner:
                values[i] = values[0]


def _node(op: str, nodes: list[Node]) -> Node:
    """The node of an operation from those of its operands."""
    if op in FUNCTIONS:
        return _call(FUNCTIONS[op], *nodes)
    special: dict[str, Callable[..., Node]] = {
        "if": lambda c, x, y: _call("if", c, x, y),
        "sq": lambda x: _call("^", x, Number("2")),
        "twice": lambda x: _call("*", Number("2"), x),
        "inv": lambda x: _call("/", Number("1"), x),
        "if_else_zero": lambda c, x: _call("if", c, x, Number("0")),
        "copy": lambda x: x,
    }
    if op not in special:
        raise Untranslatable(f"it uses the operation {op or 'unknown'!r}, which expressions do not have")
    return special[op](*nodes)


def _call(function: str, *nodes: Node) -> Node:
    depth = 1 + max(node.depth if isinstance(node, Call) else 0 for node in nodes)
    return Call(function, nodes, depth=depth)


def _constant(value: float) -> Node:
    if not math.isfinite(value):
        raise Untranslatable(f"it contains the number {value:g}")
    text = number(abs(value))
    return Number(text) if math.copysign(1, value) > 0 else _call("neg", Number(text))


@cache
def _codes() -> dict[int, str]:
    """Names of CasADi's operations by code."""
    import casadi

    codes = {getattr(casadi, name): name[3:].lower() for name in dir(casadi) if name.startswith("OP_")}
    return codes | {casadi.OP_ASSIGN: "copy", casadi.OP_LIFT: "copy"}
