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


def unrolled(stages: Stages) -> Graph:
    """One graph that does what the stages do.

    Its outputs besides the ports' have the port -1: what passes from stage to stage, so that it stays a value of its
    own, with the same rounding as in memory. Elements of outputs that no stage writes are left out.
    """
    n_in, n_out = stages.ports
    result = Graph()
    written: dict[tuple[int, int], int] = {}

    def add(op: str, args: tuple[Any, ...]) -> int:
        result.op.append(op)
        result.args.append(args)
        return len(result.op) - 1

    inputs: dict[tuple[int, int], int] = {}
    for stage in stages.stages:
        for i in range(stage.count):
            place = [0] * len(stage.graph.op)
            for k, (op, args) in enumerate(zip(stage.graph.op, stage.graph.args, strict=True)):
                if op == "input":
                    window = stage.reads[args[0]]
                    where = (window.argument, window.first + i * window.step + args[1])
                    if where[0] < n_in and where not in inputs:
                        inputs[where] = add(op, where)
                    place[k] = inputs[where] if where[0] < n_in else written[where]
                else:
                    place[k] = add(op, args if op == "const" else tuple([place[a] for a in args]))
            for port, element, k in stage.graph.outputs:
                window = stage.writes[port]
                written[window.argument, window.first + i * window.step + element] = place[k]
                result.outputs.append((-1, 0, place[k]))
    result.outputs += [(a - n_in, e, k) for (a, e), k in written.items() if n_in <= a < n_in + n_out]
    return result
