"""Stages: graphs in order, some of them repeated for columns of a matrix, with memory between them.

A long graph that does the same with every column of a matrix is printed once for all columns that have the same zeros:
less code, which the machine fetches from a nearer cache, and which takes less time to compile.

The arguments of the stages are the program's inputs, its outputs, and scratch, numbered in this order.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from cardan.lazy import cached_property
from cardan.program.graph import Graph, elements, read, total_operations

if TYPE_CHECKING:
    import casadi


class Window(NamedTuple):
    """Where a port of a stage is: element e, at the i-th repetition, is element `first + i step + e stride`."""

    argument: int
    first: int = 0
    step: int = 0
    stride: int = 1


@dataclass(frozen=True, eq=False)
class Stage:
    """An SX function, where its ports are, and how often it is run. What an output's sparsity leaves out stays."""

    function: casadi.Function
    reads: tuple[Window, ...]
    writes: tuple[Window, ...]
    count: int = 1

    @cached_property
    def graph(self) -> Graph:
        """The graph, its elements numbered as they are in the arguments, from the first of each window on."""
        graph, function = read(self.function), self.function
        written = [set(elements(function.sparsity_out(i))) for i in range(function.n_out())]
        args = [
            (a[0], a[1] * self.reads[a[0]].stride) if op == "input" else a
            for op, a in zip(graph.op, graph.args, strict=True)
        ]
        outputs = [(p, e * self.writes[p].stride, k) for p, e, k in graph.outputs if e in written[p]]
        return replace(graph, args=args, outputs=outputs)


@dataclass(frozen=True, eq=False)
class Stages:
    """Stages in order, and the numbers in each argument that is scratch; `ports` counts inputs and outputs."""

    stages: tuple[Stage, ...]
    ports: tuple[int, int]
    scratch: tuple[int, ...]

    @property
    def state_size(self) -> int:
        """Numbers of memory that one evaluation needs besides its ports."""
        return sum(self.scratch)

    def operations(self) -> dict[str, int]:
        """How many of each operation one evaluation takes."""
        return total_operations((stage.graph.operations(), stage.count) for stage in self.stages)

    def flattened(self) -> Graph:
        """The same as one graph, with all repetitions written out.

        What passes between stages are outputs too, of port -1, which no machine stores: so these numbers are rounded as
        in stages, where no product is fused into a sum of another stage.
        """
        n_in, n_out = self.ports
        known: dict[tuple[int, int], int] = {}  # number of the value by argument and element
        whole = Graph(output_sizes=[0] * n_out)
        number: dict[tuple[str, tuple[Any, ...]], int] = {}

        def value(op: str, args: tuple[Any, ...]) -> int:
            key = (op, args)
            if op != "const" or key not in number:
                number[key] = len(whole.op)
                whole.op.append(op)
                whole.args.append(args)
            return number[key]

        for stage in self.stages:
            graph = stage.graph
            for i in range(stage.count):
                mine: list[int] = []
                for op, args in zip(graph.op, graph.args, strict=True):
                    if op == "input":
                        window = stage.reads[args[0]]
                        place = (window.argument, window.first + i * window.step + args[1])
                        if place not in known:
                            assert place[0] < n_in  # scratch is written before it is read
                            known[place] = value("input", place)
                        mine.append(known[place])
                    else:
                        mine.append(value(op, args if op == "const" else tuple(mine[a] for a in args)))
                for port, element, k in graph.outputs:
                    window = stage.writes[port]
                    at = window.first + i * window.step + element
                    known[window.argument, at] = mine[k]
                    is_scratch = window.argument >= n_in + n_out
                    whole.outputs.append((-1, 0, mine[k]) if is_scratch else (window.argument - n_in, at, mine[k]))
        whole.input_sizes = [1 + max((e for a, e in known if a == j), default=-1) for j in range(n_in)]
        for port, element, _ in whole.outputs:
            if port >= 0:
                whole.output_sizes[port] = max(whole.output_sizes[port], element + 1)
        return whole
