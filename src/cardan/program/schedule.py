"""A schedule: small graphs called for every node of a large model, at offsets into shared memory.

Nodes are links and bodies. One array holds the state of all nodes. A step is a small SX function

    (constants, inputs..., own state, carrier's state) -> (own state, carrier's state, outputs...)

recorded once for all nodes of a class; tables say which step is called for which node, in what order, and at which
offsets. The elements of a step's outputs that are structural zeros are not written.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from cardan.lazy import cached_property
from cardan.program.graph import Graph, elements, read, total_operations

if TYPE_CHECKING:
    import casadi


@dataclass(frozen=True, eq=False)
class Round:
    """Calls of steps, one for each row of `table`, in order.

    Columns of `table`: which of `calls`, then the offset of each of its pointers: constants, inputs, own state,
    carrier's state, and the outputs in `outputs` (own and carrier's state are written in place). `inputs` and
    `outputs` number the program's ports.
    """

    calls: tuple[casadi.Function, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    table: np.ndarray

    @cached_property
    def graphs(self) -> tuple[Graph, ...]:
        """The graph of each step."""
        return _read_steps(self.calls)

    @property
    def scratch_size(self) -> int:
        """Numbers of memory besides the state of the nodes: none."""
        return 0

    def operations(self) -> dict[str, int]:
        """How many of each operation the round takes."""
        return _counted(self.graphs, np.bincount(self.table[:, 0], minlength=len(self.calls)))


@dataclass(frozen=True, eq=False)
class ClimbRound:
    """Walks from every link to the root, which fill square matrices.

    A walk carries a message with one column for each coordinate of its link; a column has `message` numbers.
    `start[k]`, `carry[k]` and `give[k]` serve links of class k: `start` makes all columns, `carry` takes one column to
    the parent, `give` makes entries of the matrices from one column, two rows of entries for each. A row of `links`:
    class, constants, coordinates in `inputs`, state, parent's row or -1, first coordinate, number of coordinates. The
    matrices are the ports `outputs`, (size, size) each.
    """

    start: tuple[casadi.Function, ...]
    carry: tuple[casadi.Function, ...]
    give: tuple[casadi.Function, ...]
    inputs: tuple[int, ...]
    links: np.ndarray
    message: int
    outputs: tuple[int, ...]
    size: int

    @cached_property
    def graphs(self) -> dict[str, tuple[Graph, ...]]:
        """The graphs of the steps `start`, `carry` and `give`."""
        return {name: _read_steps(getattr(self, name)) for name in ("start", "carry", "give")}

    @property
    def widest(self) -> int:
        """The largest number of columns of a message, at least 1."""
        return max(int(self.links[:, -1].max(initial=0)), 1)

    @property
    def scratch_size(self) -> int:
        """Numbers of memory besides the state of the nodes: a message, and two rows of entries a matrix."""
        return (self.message + 2 * len(self.outputs)) * self.widest

    def operations(self) -> dict[str, int]:
        """How many of each operation the walks take."""
        kinds, parents, carried = self.links[:, 0], self.links[:, -3], self._columns_carried()
        above = np.where(parents >= 0, carried, 0)
        times = {
            "start": np.bincount(kinds, minlength=len(self.start)),
            "carry": np.bincount(kinds, above, minlength=len(self.carry)),
            "give": np.bincount(kinds, carried, minlength=len(self.give)),
        }
        return total_operations((_counted(self.graphs[name], count), 1) for name, count in times.items())

    def _columns_carried(self) -> np.ndarray:
        """For each link, the columns that climb past it: its own and those of all links beyond."""
        parents, carried = self.links[:, -3], self.links[:, -1].copy()
        for i in range(len(parents) - 1, -1, -1):
            if parents[i] >= 0:
                carried[parents[i]] += carried[i]
        return carried


@dataclass(frozen=True, eq=False)
class Schedule:
    """Rounds in order, the constants they read, and the state they share.

    `node_state` counts the numbers that all nodes keep together; `initial` has (place, value) of those that must be set
    before the first round.
    """

    rounds: tuple[Round | ClimbRound, ...]
    constants: np.ndarray
    node_state: int
    initial: tuple[tuple[int, float], ...]

    @property
    def state_size(self) -> int:
        """Numbers of memory that one evaluation needs besides its ports, scratch of the rounds included."""
        return self.node_state + max((r.scratch_size for r in self.rounds), default=0)

    def operations(self) -> dict[str, int]:
        """How many of each operation one evaluation takes."""
        return total_operations((r.operations(), 1) for r in self.rounds)


def _read_steps(functions: tuple[casadi.Function, ...]) -> tuple[Graph, ...]:
    return tuple(map(_read_step, functions))


def _read_step(function: casadi.Function) -> Graph:
    """The graph of a step, which writes only what is structurally there."""
    graph = read(function)
    written = [set(elements(function.sparsity_out(i))) for i in range(function.n_out())]
    graph.outputs = [(p, e, k) for p, e, k in graph.outputs if e in written[p]]
    return graph


def _counted(graphs: tuple[Graph, ...], times: np.ndarray) -> dict[str, int]:
    """Operations of graphs, each run so many times."""
    return total_operations((graph.operations(), int(count)) for graph, count in zip(graphs, times, strict=True))
