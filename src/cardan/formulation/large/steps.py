"""Steps of a program that loops over nodes of a few classes, and the memory that the nodes share.

A node is anything that has numbers of its own: a piece of a mechanism, a connection between pieces. All nodes of a
class have the same `Cell`: a list of places in memory, which grows as steps leave values there for later ones. A `Step`
is recorded once for all nodes of a class, or for all tuples of nodes of the same classes. A `Stage` runs its steps for
all their nodes, and the stages in order are a schedule. Places that no later step reads are never written.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from cardan.formulation.tracing import mapped
from cardan.program.fusion import fused
from cardan.program.schedule import Round, Schedule

if TYPE_CHECKING:
    import casadi


class Cell:
    """The places in memory of every node of a class; `count` nodes."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.symbols: list[Any] = []
        self.numbers: dict[int, int] = {}  # of each symbol's element
        self.needed: set[int] = set()
        self.first = 0  # of the first node in memory, known when all is recorded
        self.size = 0

    def place(self) -> int:
        """One more place."""
        import casadi as ca

        k = len(self.symbols)
        self.symbols.append(ca.SX.sym(f"s{k}"))
        self.numbers[self.symbols[k].element_hash()] = k
        return k

    def lay_out(self, first: int) -> int:
        """Give every needed place its address, nodes one after the other from `first` on; where they end."""
        self.order = {k: at for at, k in enumerate(sorted(self.needed))}
        self.first, self.size = first, len(self.order)
        return first + self.size * self.count

    def addresses(self, nodes: np.ndarray) -> np.ndarray:
        """Where nodes begin in memory."""
        return self.first + self.size * np.asarray(nodes)


class View:
    """What a step sees of one node: the values that earlier steps left, and what it leaves itself."""

    def __init__(self, cell: Cell, nodes: np.ndarray) -> None:
        self.cell, self.nodes = cell, nodes
        self.seen: dict[int, Any] = {}  # place -> this step's symbol for it
        self.writes: dict[int, Any] = {}
        self._kept: dict[int, int] = {}

    def read(self, value: Any) -> Any:
        """A value that an earlier step kept."""
        numbers = self.cell.numbers

        def look(e: Any) -> Any:
            return self.symbol(numbers[e.element_hash()])

        return mapped(value, lambda e: _changed(e, look))

    def symbol(self, place: int) -> Any:
        """What this step calls a place."""
        import casadi as ca

        if place not in self.seen:
            self.seen[place] = ca.SX.sym(f"v{place}")
        return self.seen[place]

    def keep(self, value: Any) -> Any:
        """Leave a value for later steps: the same with a stand-in for each number that is not constant."""

        def leave(e: Any) -> Any:
            key = e.element_hash()
            if key not in self._kept:
                self._kept[key] = place = self.cell.place()
                self.writes[place] = e
            return self.cell.symbols[self._kept[key]]

        return mapped(value, lambda e: _changed(e, leave))

    def room(self, like: Any) -> Any:
        """Stand-ins for a dense column that this and other steps add to; it starts as `like`."""
        import casadi as ca

        places = [self.cell.place() for _ in range(like.shape[0])]
        for k, place in enumerate(places):
            self.writes[place] = ca.densify(ca.SX(like[k]))
        return ca.vertcat(*(self.cell.symbols[k] for k in places)) if places else ca.SX(0, 1)

    def put(self, kept: Any, value: Any) -> None:
        """Write a value to places that are there already; entries that are literals of the class are not written."""
        for k, e in enumerate(kept.nonzeros()):
            if e.is_symbolic():
                self.writes[self.cell.numbers[e.element_hash()]] = value.nonzeros()[k]

    def add(self, kept: Any, more: Any) -> None:
        """Add to a column that `room` made; entries that are structurally zero are left alone."""
        numbers = self.cell.numbers
        for k in range(kept.shape[0]):
            place = numbers[kept[k].element_hash()]
            if not more[k].is_zero():
                self.writes[place] = self.writes.get(place, self.symbol(place)) + more[k]


def _changed(e: Any, change: Any) -> Any:
    """An element with what is neither a constant nor a sign of it changed."""
    import casadi as ca

    if e.is_constant():
        return e
    return -change(e.dep(0)) if e.is_op(ca.OP_NEG) else change(e)


@dataclass
class Block:
    """Memory at given addresses, apart from the cells: `symbols` (n,) as the step reads it, and what it writes."""

    symbols: Any
    addresses: np.ndarray
    written: Any = None


@dataclass
class Step:
    """One recorded step and the `count` tuples of nodes that it is for.

    `constants` (count, k) are read as `C` (k,). `inputs` and `outputs` are ports with their symbols or values and the
    offsets (count,) into them.
    """

    count: int
    constants: np.ndarray
    C: Any
    views: list[View] = field(default_factory=list)
    blocks: list[Block] = field(default_factory=list)
    inputs: list[tuple[int, Any, np.ndarray]] = field(default_factory=list)
    outputs: list[tuple[int, Any, np.ndarray]] = field(default_factory=list)
    order: np.ndarray | None = None
    """Where each comes among all of its stage; None: after one another."""
    members: np.ndarray | None = None
    """The rows of `constants` that they read; None: one after the other."""

    def view(self, cell: Cell, nodes: Any) -> View:
        """See one more node: for every tuple its number within its class."""
        self.views.append(View(cell, np.asarray(nodes)))
        return self.views[-1]

    def input(self, port: int, size: int, offsets: Any) -> Any:
        """Symbols (size,) of a part of an input port."""
        import casadi as ca

        symbols = ca.SX.sym(f"in{len(self.inputs)}", size)
        self.inputs.append((port, symbols, np.broadcast_to(offsets, self.count)))
        return symbols

    def output(self, port: int, value: Any, offsets: Any) -> None:
        """Write a column to a part of an output port."""
        self.outputs.append((port, value, np.broadcast_to(offsets, self.count)))

    def block(self, size: int, addresses: Any) -> Block:
        """See memory apart from the cells."""
        import casadi as ca

        self.blocks.append(Block(ca.SX.sym(f"b{len(self.blocks)}", size), np.broadcast_to(addresses, self.count)))
        return self.blocks[-1]

    def find_needs(self) -> bool:
        """Say what this step reads for what later ones need of it; whether that is more than was said before."""
        import casadi as ca

        values = [e for view in self.views for k, e in view.writes.items() if k in view.cell.needed]
        values += [ca.vec(block.written) for block in self.blocks if block.written is not None]
        values += [ca.vec(value) for _, value, _ in self.outputs]
        used = {s.element_hash() for s in ca.symvar(ca.vertcat(ca.SX(0, 1), *values))}
        before = sum(len(view.cell.needed) for view in self.views)
        for view in self.views:
            view.cell.needed |= {k for k, s in view.seen.items() if s.element_hash() in used}
        return sum(len(view.cell.needed) for view in self.views) > before

    def drop_unneeded(self) -> None:
        """Write nothing that no step reads."""
        for view in self.views:
            view.writes = {k: e for k, e in view.writes.items() if k in view.cell.needed}

    def function(self, inputs: Sequence[int], states: int, outputs: Sequence[int]) -> casadi.Function:
        """The step as a function of constants, inputs and memory; pointers that it has not are empty."""
        import casadi as ca

        none = ca.SX(0, 1)
        before, after = [], []
        for view in self.views:
            column = [view.symbol(k) for k in view.cell.order]
            written = ca.SX(len(column), 1)
            for k, e in view.writes.items():
                written[view.cell.order[k]] = e
            before.append(_stacked(column))
            after.append(written)
        for block in self.blocks:
            before.append(block.symbols)
            after.append(ca.SX(*block.symbols.shape) if block.written is None else block.written)
        pad = [none] * (states - len(before))
        ins = [none if found is None else found[1] for found in _in_places(inputs, self.inputs)]
        outs = [none if found is None else ca.densify(found[1]) for found in _in_places(outputs, self.outputs)]
        return ca.Function("step", [self.C, *ins, *before, *pad], [*after, *pad, *outs])

    def rows(self, number: int, constants: int, inputs: Sequence[int], states: int, outputs: Sequence[int]) -> Any:
        """The rows of the table: which call, constants, inputs, memory, outputs."""
        zero = np.zeros(self.count, dtype=np.int64)
        members = np.arange(self.count) if self.members is None else self.members
        at = constants + self.constants.shape[1] * members
        ins = [zero if found is None else found[2] for found in _in_places(inputs, self.inputs)]
        own = [view.cell.addresses(view.nodes) for view in self.views] + [b.addresses for b in self.blocks]
        outs = [zero if found is None else found[2] for found in _in_places(outputs, self.outputs)]
        columns = [zero + number, at, *ins, *own, *[zero] * (states - len(own)), *outs]
        return np.stack(columns, axis=1).astype(np.int64)


def _in_places(ports: Sequence[int], given: Sequence[tuple[int, Any, Any]]) -> list[tuple[int, Any, Any] | None]:
    """What is given for each of several ports, None where there is no more of that port."""
    left = list(given)
    found = []
    for port in ports:
        k = next((k for k, each in enumerate(left) if each[0] == port), None)
        found.append(None if k is None else left.pop(k))
    return found


def _stacked(column: Sequence[Any]) -> Any:
    import casadi as ca

    return ca.vertcat(*column) if column else ca.SX(0, 1)


@dataclass
class Stage:
    """Steps for nodes that do not depend on one another, or in the order that the steps say."""

    steps: list[Step]

    def round(self, constants: dict[int, int]) -> Round:
        """As a round of a schedule; `constants` says where those of each step begin."""
        steps = self.steps
        inputs = _common([[port for port, _, _ in step.inputs] for step in steps])
        outputs = _common([[port for port, _, _ in step.outputs] for step in steps])
        states = max(len(step.views) + len(step.blocks) for step in steps)
        calls = tuple(step.function(inputs, states, outputs) for step in steps)
        table = np.concatenate(
            [step.rows(k, constants[id(step)], inputs, states, outputs) for k, step in enumerate(steps)]
        )
        orders = [np.arange(step.count) if step.order is None else step.order for step in steps]
        table = table[np.argsort(np.concatenate(orders), kind="stable")]
        return Round(calls, inputs, outputs, table, states=states)


def _common(lists: list[list[int]]) -> tuple[int, ...]:
    """Every port as often as the list that has it most often."""
    ports = sorted({port for each in lists for port in each})
    return tuple(port for port in ports for _ in range(max(each.count(port) for each in lists)))


def schedule_of(stages: Sequence[Any], cells: Sequence[Cell], blocks: int) -> Schedule:
    """Stages in order, and rounds of others between them, as one schedule.

    The first `blocks` numbers of memory are apart from the cells.
    """
    stages = [stage for stage in stages if not isinstance(stage, Stage) or stage.steps]
    own = [stage for stage in stages if isinstance(stage, Stage)]
    for stage in reversed(own):
        while any([step.find_needs() for step in stage.steps]):  # steps of a sweep read what others of it write
            pass
        for step in stage.steps:
            step.drop_unneeded()
    end = blocks
    for cell in cells:
        end = cell.lay_out(end)
    places, tables, size = {}, {}, 0
    for step in (step for stage in own for step in stage.steps):
        if id(step.constants) not in tables:
            tables[id(step.constants)] = (size, step.constants.ravel())
            size += step.constants.size
        places[id(step)] = tables[id(step.constants)][0]
    constants = np.concatenate([np.zeros(0), *(values for _, values in tables.values())])
    rounds = [stage.round(places) if isinstance(stage, Stage) else stage for stage in stages]
    return fused(Schedule(tuple(rounds), constants, end, ()))
