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

DEEPEST = 30
"""Levels of a printed expression before a part of it gets a name of its own."""

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
    uses = Counter(argument for _, arguments in values for argument in arguments)
    uses.update(k for column in outputs for k in column)
    where: dict[str, str] = {}
    nodes: list[Node] = []
    for k, (make, arguments) in enumerate(values):
        node = make(*(nodes[a] for a in arguments))
        if isinstance(node, Call) and (uses[k] > 1 or node.depth > DEEPEST):
            name = f"a{len(where) + 1}"
            where[name] = as_text(node)
            node = Name(name)
        nodes.append(node)
    return Text(where, [[as_text(nodes[k]) for k in column] for column in outputs])


Make = Callable[..., Node]


def _read(
    function: Any, variable: Callable[[int, int], Name]
) -> tuple[list[tuple[Make, tuple[int, ...]]], list[list[int]]]:
    """Number the values of a graph: how to make each from which others; and the values of each output."""
    codes = _codes()
    values: list[tuple[Make, tuple[int, ...]]] = [(lambda: _constant(0.0), ())]
    outputs = [[0] * function.numel_out(port) for port in range(function.n_out())]
    work: dict[int, int] = {}
    for k in range(function.n_instructions()):
        op = codes.get(function.instruction_id(k), "")
        ins, outs = function.instruction_input(k), function.instruction_output(k)
        if op == "output":
            outputs[outs[0]][function.sparsity_out(outs[0]).find()[outs[1]]] = work[ins[0]]
            continue
        if op == "input":
            name = variable(*ins)
            values.append((lambda name=name: name, ()))
        elif op == "const":
            number = _constant(float(function.instruction_constant(k)))
            values.append((lambda number=number: number, ()))
        else:
            values.append((_maker(op), tuple(work[i] for i in ins)))
        work[outs[0]] = len(values) - 1
    return values, outputs


def _maker(op: str) -> Make:
    """How the node of an operation is made from those of its operands."""
    if op in FUNCTIONS:
        return lambda *nodes: _call(FUNCTIONS[op], *nodes)
    special: dict[str, Make] = {
        "sq": lambda x: _call("^", x, Number("2")),
        "twice": lambda x: _call("*", Number("2"), x),
        "inv": lambda x: _call("/", Number("1"), x),
        "if_else_zero": lambda c, x: _call("if", c, x, Number("0")),
        "copy": lambda x: x,
    }
    if op not in special:
        raise Untranslatable(f"it uses the operation {op or 'unknown'!r}, which expressions do not have")
    return special[op]


def _call(function: str, *nodes: Node) -> Node:
    depth = 1 + max(node.depth if isinstance(node, Call) else 0 for node in nodes)
    return Call(function, nodes, depth=depth)


def _constant(value: float) -> Node:
    if not math.isfinite(value):
        raise Untranslatable(f"it contains the number {value:g}")
    number = Number(_shortest(abs(value)))
    return number if math.copysign(1, value) > 0 else _call("neg", number)


def _shortest(value: float) -> str:
    """The shortest text that reads back as the same float."""
    return repr(int(value)) if value == int(value) and value < 1e15 else repr(value)


@cache
def _codes() -> dict[int, str]:
    """Names of CasADi's operations by code."""
    import casadi

    codes = {getattr(casadi, name): name[3:].lower() for name in dir(casadi) if name.startswith("OP_")}
    return codes | {casadi.OP_ASSIGN: "copy", casadi.OP_LIFT: "copy"}
