"""Turn a recorded graph into SymPy expressions, simplified or operation by operation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from cardan.program.graph import Graph
from cardan.readable.naming import Letters
from cardan.readable.polynomial import (
    Expander,
    Generators,
    Polynomial,
    RotationIdentities,
    constant,
    exact,
    function_named,
    functions,
    rational,
)
from cardan.readable.simplify import Simplifier


class RotationMatrix(NamedTuple):
    """A rotation matrix among the outputs of a graph, with symbols (3, 3) for its entries.

    `definition` is the port of what it is said to be; `quaternion` is empty where it is made of none.
    """

    port: int
    definition: int
    quaternion: list[Any]
    entries: list[list[Any]]


@dataclass(frozen=True)
class Expressions:
    """The outputs of a graph by (port, element), definitions of symbols of rotation matrices, and all symbols used."""

    outputs: dict[tuple[int, int], Any]
    definitions: dict[Any, Any]
    symbols: set[Any]

    def renamed(self, new: Mapping[Any, Any]) -> Expressions:
        """Replace some symbols."""
        outputs = {place: x.xreplace(new) for place, x in self.outputs.items()} if new else self.outputs
        return Expressions(outputs, self.definitions, {new.get(x, x) for x in self.symbols})


def simplified(
    graph: Graph, letters: Letters, rotations: Sequence[RotationMatrix], explicit: Sequence[int],
    every_entry: bool = False,
) -> Expressions:  # fmt: skip
    """Short expressions. Entries of `rotations` are symbols, except in the ports that are `explicit`.

    Those that are used are defined, or `every_entry`.
    """
    generators, identities = Generators(), RotationIdentities()
    simplifier = Simplifier(generators)
    expander = Expander(generators, simplifier, identities.reduce)

    def leaf(port: int, element: int) -> Polynomial:
        return polynomial_of(letters.expression(port, element), generators)

    for x in letters.factoring_order():
        generators.index(x)
    symbols: dict[int, Any] = {}
    meant: dict[Any, int] = {}
    for port, definition, quaternion, R in rotations:
        if quaternion:
            own = [generators.index(x) for x in quaternion]
            expander.ones.append({((g, 2),): 1 for g in own})
            simplifier.unit_quaternions.append(own)
        identities.add([[generators.index(x) for x in row] for row in R])
        symbols |= {k: R[e // 3][e % 3] for p, e, k in graph.outputs if p == port and graph.op[k] != "const"}
        meant |= {R[e // 3][e % 3]: k for p, e, k in graph.outputs if p == definition}
    hidden = {*explicit, *(port for each in rotations for port in each[:2])}
    abbreviated = [output for output in graph.outputs if output[0] not in hidden]
    written_out = [output for output in graph.outputs if output[0] in explicit]
    outputs: dict[tuple[int, int], Any] = {}
    for own_outputs, known in ((abbreviated, {k: generators.of(x) for k, x in symbols.items()}), (written_out, {})):
        values = evaluate(graph, [k for _, _, k in own_outputs], leaf, _constant, expander.apply, known)
        outputs |= {(p, e): simplifier(values[k]) for p, e, k in own_outputs}
    used = set().union(*(x.free_symbols for x in outputs.values())) if outputs else set()
    wanted = {x: meant[x] for x in symbols.values() if every_entry or x in used}
    values = evaluate(graph, list(wanted.values()), leaf, _constant, expander.apply, {})
    return Expressions(outputs, {x: simplifier(values[k]) for x, k in wanted.items()}, used)


def verbatim(graph: Graph, letters: Letters, ports: Sequence[int]) -> Expressions:
    """Expressions operation by operation, as the graph has them."""
    own = Graph(graph.op, graph.args, [x for x in graph.outputs if x[0] in ports], graph.input_sizes)
    inputs = [args for op, args, n in zip(graph.op, graph.args, own.uses(), strict=True) if op == "input" and n]
    symbols = set().union(*(letters.expression(*place).free_symbols for place in inputs))
    return Expressions(written_out(own, letters.expression), {}, symbols)


def written_out(graph: Graph, leaf: Callable[[int, int], Any]) -> dict[tuple[int, int], Any]:
    """SymPy expressions of all outputs by (port, element), operation by operation; `leaf` gives those of the inputs."""
    table: dict[str, Callable[..., Any]] = {
        **functions(),
        "add": lambda a, b: a + b,
        "sub": lambda a, b: a - b,
        "mul": lambda a, b: a * b,
        "div": lambda a, b: a / b,
        "inv": lambda a: 1 / a,
        "neg": lambda a: -a,
        "twice": lambda a: 2 * a,
        "sq": lambda a: a**2,
    }
    wanted = [k for _, _, k in graph.outputs]
    values = evaluate(
        graph,
        wanted,
        leaf,
        lambda x: rational(exact(x)),
        lambda op, args: (table.get(op) or function_named(op))(*args),
        {},
    )
    return {(p, e): values[k] for p, e, k in graph.outputs}


def evaluate(
    graph: Graph, wanted: Sequence[int], leaf: Callable[[int, int], Any], constant_of: Callable[[float], Any],
    operation: Callable[[str, list[Any]], Any], known: Mapping[int, Any],
) -> dict[int, Any]:  # fmt: skip
    """Evaluate a graph in any arithmetic: the `wanted` values, and all that they depend on."""
    needed, stack = set(wanted), [k for k in wanted if k not in known]
    while stack:
        k = stack.pop()
        if graph.op[k] in ("input", "const"):
            continue
        for a in graph.args[k]:
            if a not in needed:
                needed.add(a)
                if a not in known:
                    stack.append(a)
    values: dict[int, Any] = {}
    for k in sorted(needed):
        op, args = graph.op[k], graph.args[k]
        if k in known:
            values[k] = known[k]
        elif op == "const":
            values[k] = constant_of(args[0])
        elif op == "input":
            values[k] = leaf(*args)
        else:
            values[k] = operation(op, [values[a] for a in args])
    return values


def _constant(value: float) -> Polynomial:
    """A constant of the graph as a polynomial."""
    return constant(exact(value))


def polynomial_of(expression: Any, generators: Generators) -> Polynomial:
    """A symbol, or a formula that the user gave, as a polynomial."""
    import sympy

    if expression.is_Symbol:
        return generators.of(expression)
    if expression.is_number:
        return constant(exact(float(expression)))
    symbols = sorted(expression.free_symbols, key=str)
    try:
        terms = sympy.Poly(expression, *symbols).terms()
    except sympy.PolynomialError:
        return generators.of(expression)
    own = [generators.index(x) for x in symbols]
    return {
        tuple(sorted((g, n) for g, n in zip(own, powers, strict=True) if n)): exact(float(c)) for powers, c in terms
    }
