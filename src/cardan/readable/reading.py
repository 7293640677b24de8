"""From a numbered graph to SymPy expressions, shortened or as they come."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cardan.program.graph import Graph
from cardan.readable.letters import Letters
from cardan.readable.polynomial import Generators, Polynomial, Writer, constant, functions, number, rational
from cardan.readable.rotations import Rotations
from cardan.readable.shorten import Shortener

Turn = tuple[int, list[Any], list[list[Any]]]  # port of a rotation matrix, its quaternion, symbols of its entries


@dataclass(frozen=True)
class Reading:
    """Expressions of a graph's outputs by (port, element), what symbols of rotation matrices stand for, all symbols."""

    outputs: dict[tuple[int, int], Any]
    definitions: dict[Any, Any]
    symbols: set[Any]

    def renamed(self, new: Mapping[Any, Any]) -> Reading:
        """The same with other symbols for some."""
        outputs = {place: x.xreplace(new) for place, x in self.outputs.items()} if new else self.outputs
        return Reading(outputs, self.definitions, {new.get(x, x) for x in self.symbols})


def read_short(graph: Graph, letters: Letters, turns: Sequence[Turn], explicit: Sequence[int]) -> Reading:
    """Shortened; `turns` are abbreviated but in the ports that are `explicit`."""
    generators, rotations = Generators(), Rotations()
    shortener = Shortener(generators)
    writer = Writer(generators, shortener, rotations.reduce)
    leaf = letters.polynomial(generators)
    for x in letters.in_order():
        generators.index(x)
    symbols: dict[int, Any] = {}
    for port, quaternion, R in turns:
        own = [generators.index(x) for x in quaternion]
        writer.units.append({((g, 2),): 1 for g in own})
        shortener.units.append(own)
        rotations.learn([[generators.index(x) for x in row] for row in R])
        symbols |= {k: R[e // 3][e % 3] for p, e, k in graph.outputs if p == port and graph.op[k] != "const"}
    matrices = {port for port, _, _ in turns}
    outputs: dict[tuple[int, int], Any] = {}
    for abbreviated, ports in ((True, None), (False, set(explicit))):
        known = {k: generators.of(x) for k, x in symbols.items()} if abbreviated else {}
        own_outputs = [
            (p, e, k)
            for p, e, k in graph.outputs
            if (p in ports if ports is not None else p not in {*explicit, *matrices})
        ]
        values = evaluate(graph, [k for _, _, k in own_outputs], leaf, _constant, writer.write, known)
        outputs |= {(p, e): shortener(values[k]) for p, e, k in own_outputs}
    used = set().union(*(x.free_symbols for x in outputs.values())) if outputs else set()
    wanted = {k: x for k, x in symbols.items() if x in used}
    values = evaluate(graph, list(wanted), leaf, _constant, writer.write, {})
    return Reading(outputs, {x: shortener(values[k]) for k, x in wanted.items()}, used)


def read_plain(graph: Graph, letters: Letters, ports: Sequence[int]) -> Reading:
    """As the graph has it, operation by operation."""
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

    own = [(p, e, k) for p, e, k in graph.outputs if p in ports]
    values = evaluate(
        graph,
        [k for _, _, k in own],
        letters.expression,
        lambda x: rational(number(x)),
        lambda op, args: table[op](*args),
        {},
    )
    symbols = set().union(*(letters.expression(*graph.args[k]).free_symbols for k in values if graph.op[k] == "input"))
    return Reading({(p, e): values[k] for p, e, k in own}, {}, symbols)


def evaluate(
    graph: Graph,
    wanted: Sequence[int],
    leaf: Callable[[int, int], Any],
    constant_of: Callable[[float], Any],
    operation: Callable[[str, list[Any]], Any],
    known: Mapping[int, Any],
) -> dict[int, Any]:
    """Values of a graph over any arithmetic: those wanted, and what they need."""
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
    return constant(number(value))
