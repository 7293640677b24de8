"""Print a graph as JavaScript statements: one constant per graph value that is read more than once."""

from __future__ import annotations

from collections.abc import Sequence

from cardan.machines.javascript.operations import called, expression, number
from cardan.program.graph import Graph
from cardan.program.program import Port

DEEPEST = 16  # operations within one expression: parsers recurse
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"


def print_graph(graph: Graph, inputs: Sequence[Port]) -> tuple[list[str], list[list[str]], set[str]]:
    """Statements, the expression of every element of every output, and the functions that both call.

    `inputs` are the ports that have elements, in the graph's order. They are in scope by their names: a number for a
    scalar, else an array. Values are named `$0`, `$1`, ...
    """
    line = _StraightLine(graph, inputs)
    statements = line.statements()
    outputs = [["0"] * size for size in graph.output_sizes]
    for port, element, k in graph.outputs:
        outputs[port][element] = line.operand(k)
    return statements, outputs, line.functions


class _StraightLine:
    """Names of values, and expressions of those that have no name because they are read once."""

    def __init__(self, graph: Graph, inputs: Sequence[Port]) -> None:
        self.graph, self.inputs = graph, inputs
        self.uses = graph.uses()
        self.written_twice = {graph.args[k][0] for k, op in enumerate(graph.op) if op in ("sq", "twice")}
        self.text: dict[int, str] = {}
        self.depth: dict[int, int] = {}
        self.functions: set[str] = set()

    def statements(self) -> list[str]:
        """One for each value that has a name, in order."""
        lines: list[str] = []
        for k, op in enumerate(self.graph.op):
            if not self.uses[k] or op in ("input", "const"):
                continue
            args = self.graph.args[k]
            text = expression(op).format(*map(self.operand, args))
            function = called(op)
            if function is not None:
                self.functions.add(function)
            depth = 1 + max(self.depth.get(a, 0) for a in args)
            if self.uses[k] == 1 and depth < DEEPEST and k not in self.written_twice:
                self.text[k] = text if function is not None else f"({text})"
                self.depth[k] = depth
            else:
                name = self.text[k] = "$" + _short(len(lines))
                lines.append(f"const {name}={text};")
        return lines

    def operand(self, k: int) -> str:
        """A value as an operand."""
        op, args = self.graph.op[k], self.graph.args[k]
        if op == "const":
            return number(args[0])
        if op == "input":
            port = self.inputs[args[0]]
            return f"{port.name}[{args[1]}]" if port.shape else port.name
        return self.text[k]


def _short(k: int) -> str:
    """A number in base 36."""
    return _short(k // 36) + _DIGITS[k % 36] if k >= 36 else _DIGITS[k]
