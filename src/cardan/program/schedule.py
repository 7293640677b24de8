"""A schedule: small graphs called for every node of a large model, at offsets into shared memory.

Nodes are links, bodies, joints, or blocks of a matrix. One array holds the state of all nodes. A step is a small SX
function

    (constants, inputs..., state_1, ..., state_n) -> (state_1, ..., state_n, outputs...)

recorded once for all nodes of a class. Its states belong to the nodes that it reads or changes: a link and the one that
carries it, the two ends of a joint, three blocks of a matrix. Tables say which step is called for which nodes, in what
order, and at which offsets. The elements of a step's outputs that are structural zeros are not written, so a state that
is only read has an empty output.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from cardan.errors import CardanError
from cardan.lazy import cached_property
from cardan.program.fronts import FactorRound, SolveRound
from cardan.program.graph import Graph, elements, read, total_operations

if TYPE_CHECKING:
    import casadi


@dataclass(frozen=True, eq=False)
class Round:
    """Calls of steps, one for each row of `table`, in order.

    Columns of `table`: which of `calls`, then the offset of each of its pointers: constants, inputs, as many states as
    `states` says, and the outputs in `outputs`. States are written in place: a step reads all before it writes, so two
    of them may be the same node if at most one is written. `inputs` and `outputs` number the program's ports.
    """

    calls: tuple[casadi.Function, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    table: np.ndarray
    states: int = 2

    def __post_init__(self) -> None:
        pointers = 1 + len(self.inputs) + self.states
        for call in self.calls:
            ports, wanted = (call.n_in(), call.n_out()), (pointers, self.states + len(self.outputs))
            if ports != wanted:
                raise CardanError(f"round: step {call.name()!r} has {ports} ports in and out; the round needs {wanted}")
        columns = 1 + pointers + len(self.outputs)
        if self.table.ndim != 2 or self.table.shape[1] != columns:
            raise CardanError(f"round: a table of shape {self.table.shape} has not {columns} columns")

    @cached_property
    def graphs(self) -> tuple[Graph, ...]:
        """The graph of each step."""
        return _read_steps(self.calls)

    def with_table(self, table: np.ndarray) -> Round:
        """The same steps for other rows."""
        other = replace(self, table=table)
        vars(other)["graphs"] = self.graphs  # read once
        return other

    @property
    def scratch_size(self) -> int:
        """Numbers of memory besides the state of the nodes: none."""
        return 0

    @cached_property
    def runs(self) -> np.ndarray:
        """The table as runs of rows with one call, whose offsets grow by constant steps.

        Columns: call, number of rows, first offset of each pointer, its step from row to row.
        """
        table = self.table
        if len(table) < 2:
            return np.hstack([table[:, :1], np.ones((len(table), 1), int), table[:, 1:], 0 * table[:, 1:]])
        steps = np.diff(table, axis=0)
        alike = np.zeros(len(steps), bool)  # whether row i + 1 continues as row i came from row i - 1
        alike[1:] = (steps[1:] == steps[:-1]).all(axis=1)
        same_call = steps[:, 0] == 0
        starts = [0]
        ends = np.flatnonzero(~(alike & same_call)) + 1  # rows that do not continue a run of two or more
        for row in ends.tolist():
            if row > starts[-1] + 1 or not same_call[row - 1]:  # the second row of a run may lie anywhere
                starts.append(row)
        first = np.array(starts)
        counts = np.diff([*starts, len(table)])
        step = np.where(counts[:, None] > 1, steps[np.minimum(first, len(steps) - 1), 1:], 0)
        return np.hstack([table[first, :1], counts[:, None], table[first, 1:], step])

    def with_literals(self, constants: np.ndarray) -> Round:
        """The same with constants that are equal in all rows of a call as numbers in its graph, which fold there."""
        calls = []
        for k, call in enumerate(self.calls):
            at = self.table[self.table[:, 0] == k, 1]
            calls.append(_with_literals(call, constants[at[:, None] + np.arange(call.numel_in(0))]))
        return replace(self, calls=tuple(calls))

    def require_inside(self, constants: int, node_state: int) -> None:
        """Refuse a table with offsets that would read or write outside the memory."""
        first = 2 + len(self.inputs)
        for k, call in enumerate(self.calls):
            rows = self.table[self.table[:, 0] == k]
            for c, size in [(1, constants), *((c, node_state) for c in range(first, first + self.states))]:
                length = call.numel_in(c - 1)
                if c >= first:
                    length = max(length, call.numel_out(c - first))
                if len(rows) and (rows[:, c].min() < 0 or rows[:, c].max() + length > size):
                    what = "constants" if c == 1 else f"state {c - first}"
                    raise CardanError(
                        f"round: step {call.name()!r} would take its {what} from outside the {size} there"
                    )

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

    rounds: tuple[Round | ClimbRound | FactorRound | SolveRound, ...]
    constants: np.ndarray
    node_state: int
    initial: tuple[tuple[int, float], ...]

    def __post_init__(self) -> None:
        for r in self.rounds:
            if isinstance(r, Round):
                r.require_inside(len(self.constants), self.node_state)

    def with_literals(self) -> Schedule:
        """The same with constants that are equal in all rows of a call as numbers in its graph."""
        rounds = (r.with_literals(self.constants) if isinstance(r, Round) else r for r in self.rounds)
        return replace(self, rounds=tuple(rounds))

    @property
    def state_size(self) -> int:
        """Numbers of memory that one evaluation needs besides its ports, scratch of the rounds included."""
        return self.node_state + max((r.scratch_size for r in self.rounds), default=0)

    def operations(self) -> dict[str, int]:
        """How many of each operation one evaluation takes."""
        return total_operations((r.operations(), 1) for r in self.rounds)


def _read_steps(functions: tuple[casadi.Function, ...]) -> tuple[Graph, ...]:
    return tuple(map(read_step, functions))


def read_step(function: casadi.Function) -> Graph:
    """The graph of a step, which writes only what is structurally there."""
    graph = read(function)
    written = [set(elements(function.sparsity_out(i))) for i in range(function.n_out())]
    graph.outputs = [(p, e, k) for p, e, k in graph.outputs if e in written[p]]
    return graph


def _with_literals(function: casadi.Function, rows: np.ndarray) -> casadi.Function:
    """A step with those of its constants as numbers that are the same in every row (rows, constants)."""
    import casadi as ca

    if not rows.size:
        return function
    ports = [ca.SX.sym(f"p{i}", function.sparsity_in(i)) for i in range(function.n_in())]
    same = (rows == rows[0]).all(axis=0)
    constants = ca.vertcat(
        *(ca.SX(x) if s else ports[0][k] for k, (x, s) in enumerate(zip(rows[0], same, strict=True)))
    )
    return ca.Function(function.name(), ports, function.call([constants, *ports[1:]]))


def _counted(graphs: tuple[Graph, ...], times: np.ndarray) -> dict[str, int]:
    """Operations of graphs, each run so many times."""
    return total_operations((graph.operations(), int(count)) for graph, count in zip(graphs, times, strict=True))
