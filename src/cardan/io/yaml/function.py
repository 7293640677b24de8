"""Functions of time and state in a YAML file: read from expressions, and written as expressions.

Expressions may use `t`, `q` and `v` of a joint, and pose and twist of bodies. A function has one expression for each
number it returns, and may list named values that several of them share under `where`. Reading: the expressions are
checked when the file is read, and run on CasADi symbols when the mechanism is built. Writing: the instructions of a
CasADi graph are printed in the grammar of `cardan.io.yaml.expression`. A value that is used several times, or would be
nested too deep, gets a name, so that reading the text back gives the same graph, operation by operation.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from cardan.errors import ModelError
from cardan.io.yaml.expression import (
    CONSTANTS,
    FUNCTIONS,
    LARGEST,
    Call,
    Expression,
    ExpressionError,
    Literal,
    Lookup,
    Measured,
    Name,
    Value,
    as_text,
    number,
)
from cardan.io.yaml.nodes import NodeReader, unknown_name
from cardan.lookup import LOOKUP, SOURCE, called_functions, kind_of, label_of
from cardan.model.body import Joint
from cardan.model.constraint import Constraint
from cardan.model.constraint_kind import ConstraintElement
from cardan.model.curve import CARRIED, Curve
from cardan.model.field import FUNCTION, GAP, TABLE
from cardan.model.force import Coupling, Force
from cardan.model.joint import Kind
from cardan.model.table import Table, table_of

Variables = dict[str, tuple[int, ...]]
"""Names of variables and their shapes: () for a number, (n,) for a column, (3, 3) for a rotation."""
TIME: Variables = {"t": ()}
OF_BODY: Variables = {"rotation": (3, 3), "position": (3,), "twist": (6,)}
RESERVED = re.compile(rf"t|q|v|({'|'.join(OF_BODY)})\d+")


def of_bodies(count: int) -> Variables:
    """Variables of a force on bodies, counted from 1: `rotation1` (3, 3), `position1` (3), `twist1` (6)."""
    return TIME | {f"{name}{k + 1}": shape for k in range(count) for name, shape in OF_BODY.items()}


@dataclass
class ExpressionFunction:
    """Expressions at their places in the file; a call computes their values from those of the variables."""

    variables: Variables
    outputs: list[NodeReader]
    quantities: list[str]
    where: dict[str, NodeReader] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Evaluate them on symbols once, so that mistakes are found now."""
        import casadi as ca

        own = {name: ca.SX.sym(name, *(shape or (1,))) for name, shape in self.variables.items()}
        self.results = self._read(own)
        graphs = [result for result in self.results if not isinstance(result, float)]
        self.graph = ca.Function("law", list(own.values()), graphs)

    def __call__(self, **values: Any) -> list[Any]:
        """A list of numbers and graphs."""
        graphs = iter(self.graph.call([values[name] for name in self.variables]))
        return [result if isinstance(result, float) else next(graphs) for result in self.results]

    def _read(self, values: dict[str, Any]) -> list[Any]:
        """Evaluate the expressions at these values of the variables."""
        local: dict[str, Value] = {}
        lookup = self._lookup(values, local)
        for name, reader in self.where.items():
            local[name] = reader.evaluated(reader.expression(), lookup) if reader.is_expression else reader.quantity()
        results = []
        for reader, quantity in zip(self.outputs, self.quantities, strict=True):
            value = reader.evaluated(reader.expression(), lookup) if reader.is_expression else reader.quantity(quantity)
            results.append(reader.checked(value, quantity) if isinstance(value, Measured) else value)
        return results

    def _lookup(self, values: dict[str, Any], local: dict[str, Value]) -> Lookup:
        def lookup(name: Name) -> Value:
            if name.name in local and not name.index:
                return local[name.name]
            if name.name in self.variables:
                return entry(name, self.variables[name.name], values[name.name])
            parameters = self.outputs[0].parameters
            if name.name in parameters and not name.index:
                return parameters[name.name]
            raise unknown_name(name, [*self.variables, *local, *parameters, "pi"])

        return lookup


def entry(name: Name, shape: tuple[int, ...], value: Any) -> Any:
    """An entry of a variable; a column with one entry needs no index."""
    index = name.index or ((0,) if shape == (1,) else ())
    if len(index) != len(shape):
        example = f"{name.name}[{', '.join('0' for _ in shape)}]"
        wanted = f"has {' x '.join(map(str, shape))} entries; write {example}" if shape else "is a single number"
        raise ExpressionError(f"{name.name!r} {wanted}", name.span)
    if any(i >= n for i, n in zip(index, shape, strict=True)):
        raise ExpressionError(f"{name.name!r} has {' x '.join(map(str, shape))} entries, counted from 0", name.span)
    if not shape:
        return value
    return value[index[0]] if len(index) == 1 else value[index[0], index[1]]


def taken(name: str) -> str:
    """Why a parameter or a shared value cannot have this name; empty where it can."""
    if not name.isascii() or not name.isidentifier():
        return "a name in expressions is letters, digits and _, and begins with a letter"
    if name in FUNCTIONS or name in CONSTANTS:
        return "that is a name of the format's own"
    return "that is a variable of functions" if RESERVED.fullmatch(name) else ""


def body_values(t: Any, poses: Any, twists: Any) -> dict[str, Any]:
    """Values of the variables `of_bodies`."""
    values = {"t": t}
    for k, (pose, twist) in enumerate(zip(poses, twists, strict=True), 1):
        values |= {f"rotation{k}": pose.rotation, f"position{k}": pose.position, f"twist{k}": twist}
    return values


# Writing.

Entries = dict[str, Any]


class WrittenTables:
    """The tables that written functions call, by the names that the file gives them; no two have one name.

    So are the curves that joints and constraints run along.
    """

    def __init__(self) -> None:
        """None so far."""
        self.found: dict[str, Table] = {}
        self._names: dict[str, str] = {}  # by source
        self.curves: dict[str, Curve] = {}

    def name_of(self, source: Any) -> str:
        """The name of a table that a source of a graph notes."""
        key = source.name()
        if key not in self._names:
            table = table_of(source)
            plain = table.name if not taken(table.name) else f"table_{table.name}"
            names = (plain, *(f"{plain}_{k}" for k in range(2, 10_000)))
            name = self._names[key] = next(name for name in names if name not in self.found)
            self.found[name] = table
        return self._names[key]

    def name_of_curve(self, curve: Curve) -> str:
        """The name of a curve."""
        names = (curve.name, *(f"{curve.name}_{k}" for k in range(2, 10_000)))
        name = next(name for name in names if self.curves.get(name, curve) is curve)
        self.curves[name] = curve
        return name


def curve_entries(curve: Curve, tables: WrittenTables) -> Entries:
    """What a curve is made of: its points, or expressions of the parameter u."""
    import casadi as ca

    u = ca.SX.sym("u")
    given = dict(curve.given)
    functions: dict[str, Any] = {} if curve.points is not None else {"xyz": curve.position(u)}
    entries: Entries = {}
    if curve.points is not None:
        entries["points"] = [[number(x) for x in point] for point in curve.points.tolist()]
    else:
        entries |= {"start": number(curve.start), "stop": number(curve.stop)}
    if curve.closed:
        entries["closed"] = "true"
    for what, graph in (("up", curve.up), ("bank", curve.bank)):
        if what in given:
            values = given[what].tolist()
            entries[what] = [[number(x) for x in row] if what == "up" else number(row) for row in values]
        elif graph is not None:
            value = ca.densify(graph(u))
            if not value.is_constant():
                functions[what] = value
                continue
            numbers = [float(x) for x in np.array(ca.evalf(value)).ravel()]
            if numbers != [0.0, 0.0, 1.0] or what != "up":
                entries[what] = [number(x) for x in numbers] if what == "up" else number(numbers[0])
        elif what == "up":
            entries[what] = CARRIED
    if functions:
        whole = ca.Function("curve", [u], [ca.densify(value) for value in functions.values()])
        text = printed(curve.owner, whole, lambda port, k: Name("u"), tables)
        for what, column in zip(functions, text.outputs, strict=True):
            written = [calculated(x) for x in column]
            entries |= (
                dict(zip("xyz", written, strict=True))
                if what == "xyz"
                else {what: written[0] if what == "bank" else written}
            )
        entries |= shared(text)
    return entries


def function_entries(force: Force, joints: tuple[Joint, ...], tables: WrittenTables) -> Entries:
    """The function of a force element as expressions."""
    traced = force.traced(joints) if not _is_graph(force.function) else force
    if force.kind.fields[force.kind.function].form == TABLE:
        sources = [f for f in called_functions(traced.function).values() if kind_of(f.name()) == SOURCE]
        return {force.kind.function: tables.name_of(sources[0])}
    if force.kind.on == "joint":
        text = printed(traced.owner, traced.function, _drive_variable(force.part_of(joints[force.on[0]].kind)), tables)
        efforts = [calculated(effort) for effort in text.outputs[0]]
        return {force.kind.function: efforts[0] if len(efforts) == 1 else efforts} | shared(text)
    text = printed(traced.owner, traced.function, _body_variable(len(force.on)), tables)
    if force.kind.fields[force.kind.function].form == GAP:
        rows = [calculated(x) for x in text.outputs[0]]
        return {force.kind.function: rows[0] if len(rows) == 1 else rows} | shared(text)
    wrenches = []
    for column in text.outputs:
        six = [calculated(x) for x in column]
        parts = {"moment": six[:3], "force": six[3:]}
        wrenches.append({key: part for key, part in parts.items() if part != ["0"] * 3})
    return {force.kind.function: wrenches} | shared(text)


def value_entries(element: Coupling | Constraint, tables: WrittenTables) -> Entries:
    """The function of a prescribed motion, of a relation, or of a user's constraint, as an expression."""
    traced = element if _is_graph(element.function) else element.traced()
    if isinstance(element, Coupling) and element.is_relation:
        text = printed(element.owner, traced.function, lambda port, k: Name(f"q{port}"), tables)
        return {"value": f"={text.outputs[0][0]}"} | shared(text)
    bodies = len(element.on) if isinstance(element, Constraint) else 0
    text = printed(element.owner, traced.function, _body_variable(bodies), tables)
    return {"value": f"={text.outputs[0][0]}"} | shared(text)


def plain_function_entries(element: ConstraintElement, tables: WrittenTables) -> Entries:
    """The functions of a constraint element as expressions of their arguments; they share their named values."""
    import casadi as ca

    entries: Entries = {}
    functions = {name: f for name, f in element.functions.items() if element.kind.fields[name].form == FUNCTION}
    if not functions:
        return entries
    names, graphs = [*functions], []
    for name, function in functions.items():
        graphs.append(function if _is_graph(function) else element.traced_function(name))
    arguments = element.kind.fields[names[0]].arguments
    if any(element.kind.fields[name].arguments != arguments for name in names):
        raise ModelError(f"{element.owner}: its functions have different arguments, and files cannot hold them")
    symbols = [ca.SX.sym(argument) for argument, _ in arguments]
    whole = ca.Function("law", symbols, [graph(*symbols) for graph in graphs])
    text = printed(element.owner, whole, lambda port, k: Name(arguments[port][0]), tables)
    entries = {name: calculated(column[0]) for name, column in zip(names, text.outputs, strict=True)}
    return entries | shared(text)


def _is_graph(function: Any) -> bool:
    return type(function).__module__.partition(".")[0] == "casadi"


def _drive_variable(kind: Kind) -> Any:
    ports = (("t", 1), ("q", kind.nq), ("v", kind.nv))
    return lambda port, k: Name(ports[port][0], (k,) if ports[port][1] > 1 else ())


def _body_variable(count: int) -> Any:
    """Arguments of a traced force or constraint: time, then rotation and position of each body, then the twists."""
    rotation, position, twist = OF_BODY

    def variable(port: int, k: int) -> Name:
        if port == 0:
            return Name("t")
        if port > 2 * count:
            return Name(f"{twist}{port - 2 * count}", (k,))
        body = (port + 1) // 2
        return Name(f"{rotation}{body}", (k % 3, k // 3)) if port % 2 else Name(f"{position}{body}", (k,))

    return variable


def printed(owner: str, function: Any, variable: Any, tables: WrittenTables) -> Printed:
    """The expressions of a graph whose arguments `variable(port, k)` names; a graph without any is rejected."""
    try:
        return as_expressions(function, variable, tables)
    except Untranslatable as error:
        raise ModelError(f"{owner}: its function cannot be written as expressions: {error}") from None


def calculated(text: str) -> str:
    """An expression with the sign that begins it; a plain number needs none."""
    return text if re.fullmatch(r"-?[\d.]+(e[+-]?\d+)?", text) else f"={text}"


def shared(text: Printed) -> Entries:
    """The entry of the named values that expressions share."""
    return {"where": {name: f"={value}" for name, value in text.where.items()}} if text.where else {}


DEEPEST, LONGEST = 30, 200
"""Levels and operations of a printed expression before a part of it gets a name of its own."""

# The function of the format for each of CasADi's operations.
PRINTED = {
    "neg": "neg", "add": "+", "sub": "-", "mul": "*", "div": "/", "pow": "^", "constpow": "^", "lt": "<", "le": "<=",
    "eq": "==", "ne": "!=", "fabs": "abs", "fmin": "min", "fmax": "max", "fmod": "mod",
    **{name: name for name in (
        "sqrt", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "exp",
        "log", "log1p", "expm1", "erf", "floor", "ceil", "sign", "not", "atan2", "hypot", "copysign", "and", "or")},
}  # fmt: skip


class Untranslatable(ValueError):
    """Why a graph cannot be written as an expression, as the end of a sentence."""


class Printed(NamedTuple):
    """Expressions of each output of a function, column by column, and the named values that they share."""

    where: dict[str, str]
    outputs: list[list[str]]


def as_expressions(
    function: Any, variable: Callable[[int, int], Name], tables: WrittenTables | None = None
) -> Printed:  # fmt: skip
    """Print a `casadi.Function`; `variable(port, k)` names entry k of an argument."""
    if function.n_instructions() > LARGEST:
        raise Untranslatable(f"it takes {function.n_instructions()} operations, and at most {LARGEST} are written")
    values, outputs = _read(function, variable)
    _restore_tables(values, outputs, called_functions(function), tables or WrittenTables())
    _restore_choices(values, _uses(values, outputs))
    uses = _uses(values, outputs)
    where: dict[str, str] = {}
    nodes: list[Expression] = []
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
    return Printed(where, [[as_text(nodes[k]) for k in column] for column in outputs])


class _Value(NamedTuple):
    """An operation and the numbers of its operands, or a leaf: a constant or a variable."""

    op: str
    arguments: tuple[int, ...] = ()
    leaf: Expression | None = None


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
            values.append(_Value(f"call {k}" if op == "call" else op, tuple(work[i] for i in ins)))
        work[outs[0]] = len(values) - 1
    return values, outputs


def _restore_tables(
    values: list[_Value], outputs: list[list[int]], called: dict[int, Any], tables: WrittenTables
) -> None:  # fmt: skip
    """Replace the polynomial that a table makes by a call of the table.

    The polynomial begins with the coefficient `c0`, or of two arguments with the polynomial that begins with `c0_c0`;
    the index of the coefficient is a source, which has the arguments of the table.
    """
    functions = {f"call {k}": f for k, f in called.items()}
    inner: dict[int, tuple[Any, tuple[int, ...]]] = {}  # polynomials of the second argument
    for k, value in enumerate(values):
        for a in value.arguments if value.op in ("add", "sub") else ():
            if a in inner:
                source, arguments = inner[a]
            else:
                found = functions.get(values[a].op)
                if found is None or kind_of(found.name()) != LOOKUP:
                    continue
                index = values[values[a].arguments[0]]
                source, arguments = functions.get(index.op), index.arguments[:-2]
                if source is None or kind_of(source.name()) != SOURCE:
                    continue
                if label_of(found.name()) != label_of(source.name()) + "_c0" * len(arguments):
                    continue
                if len(arguments) == 2:
                    inner[k] = source, arguments
                    break
            sign = "-" if value.op == "sub" and a == value.arguments[1] else ""  # CasADi takes b - a for -(a - b)
            values[k] = _Value(f"table {sign}{tables.name_of(source)}", arguments)
            break
    live, waiting = set[int](), [k for column in outputs for k in column]
    while waiting:
        k = waiting.pop()
        if k not in live:
            live.add(k)
            waiting += values[k].arguments
    for k in range(len(values)):
        if k not in live:
            values[k] = values[0]


def _uses(values: list[_Value], outputs: list[list[int]]) -> Counter[int]:
    """How often each value is used."""
    uses = Counter(argument for value in values for argument in value.arguments)
    uses.update(k for column in outputs for k in column)
    return uses


def _restore_choices(values: list[_Value], uses: Counter[int]) -> None:
    """Replace `if(c, x, 0) + if(not(c), y, 0)`, which CasADi makes of a choice, by `if(c, x, y)`.

    Only where the parts are used for nothing else, so that reading it back gives the same graph.
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


def _node(op: str, nodes: list[Expression]) -> Expression:
    """The node of an operation from those of its operands."""
    if op in PRINTED:
        return _call(PRINTED[op], *nodes)
    if op.startswith("table "):
        table = _call(op.removeprefix("table ").removeprefix("-"), *nodes)
        return _call("neg", table) if op.startswith("table -") else table
    special: dict[str, Callable[..., Expression]] = {
        "if": lambda c, x, y: _call("if", c, x, y),
        "sq": lambda x: _call("^", x, Literal("2")),
        "twice": lambda x: _call("*", Literal("2"), x),
        "inv": lambda x: _call("/", Literal("1"), x),
        "if_else_zero": lambda c, x: _call("if", c, x, Literal("0")),
        "copy": lambda x: x,
    }
    if op.startswith("call"):
        raise Untranslatable("it takes the integral or a derivative of a table, which expressions do not have")
    if op not in special:
        raise Untranslatable(f"it uses the operation {op or 'unknown'!r}, which expressions do not have")
    return special[op](*nodes)


def _call(function: str, *nodes: Expression) -> Expression:
    depth = 1 + max(node.depth if isinstance(node, Call) else 0 for node in nodes)
    return Call(function, nodes, depth=depth)


def _constant(value: float) -> Expression:
    if not math.isfinite(value):
        raise Untranslatable(f"it contains the number {value:g}")
    text = number(abs(value))
    return Literal(text) if math.copysign(1, value) > 0 else _call("neg", Literal(text))


@cache
def _codes() -> dict[int, str]:
    """Names of CasADi's operations by code."""
    import casadi

    codes = {getattr(casadi, name): name[3:].lower() for name in dir(casadi) if name.startswith("OP_")}
    return codes | {casadi.OP_ASSIGN: "copy", casadi.OP_LIFT: "copy"}
