"""Print a schedule as one function that loops over its tables.

Each step is an internal function, called through tables of offsets. State is read and written in place: a step's loads
come before its stores.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from cardan.machines.llvm.fronts import print_fronts
from cardan.machines.llvm.graph import print_graph
from cardan.machines.llvm.module import Loops, Module
from cardan.program.fronts import FactorRound, SolveRound
from cardan.program.graph import Graph
from cardan.program.schedule import ClimbRound, Round, Schedule

if TYPE_CHECKING:
    import casadi


def print_schedule(
    schedule: Schedule, symbol: str, module: Module, inputs: int, outputs: int, strided: Collection[int] = ()
) -> None:
    """Define `@symbol(ptr %in0, ..., ptr %out0, ..., ptr %state)` of so many ports, and all that it calls.

    `%state` addresses `schedule.state_size` vectors of lanes. The outputs `strided`, none or all that climbs write
    (`climbed`), lie in memory with any strides: two more parameters `i64 %outN.m, i64 %outN.n`, in bytes, follow the
    address of each.
    """
    _LoopsOverNodes(schedule, module, strided).print(symbol, inputs, outputs)


def climbed(schedule: Schedule) -> frozenset[int]:
    """The outputs that climbs write, entry by entry."""
    return frozenset(port for r in schedule.rounds if isinstance(r, ClimbRound) for port in r.outputs)


class _LoopsOverNodes(Loops):
    """The function under construction: one loop for each round."""

    def __init__(self, schedule: Schedule, module: Module, strided: Collection[int]) -> None:
        super().__init__(module.type, "x")
        self.schedule, self.module, self.strided = schedule, module, strided
        self.printed: dict[int, int] = {}  # numbers of rounds, which may occur again
        self.steps: dict[int, str] = {}  # symbols of steps, which several rounds may have
        self.fronts: dict[int, str] = {}

    def print(self, symbol: str, n_in: int, n_out: int) -> None:
        """Define the function."""
        self.symbol = symbol
        self._numbers("constants", self.schedule.constants)
        self._set_initial()
        for k, r in enumerate(self.schedule.rounds):
            if isinstance(r, ClimbRound):
                self._climb(k, r)
            elif isinstance(r, (FactorRound, SolveRound)):
                self._fronts(k, r)
            else:
                self._round(k, r)
        params = [f"ptr %in{j}" for j in range(n_in)]
        for j in range(n_out):
            params += [f"ptr %out{j}", *(f"i64 %out{j}.{axis}" for axis in "mn" if j in self.strided)]
        params.append("ptr %state")
        head = f"define internal void @{symbol}({', '.join(params)}) {self.module.attributes}{{"
        text = [head, "entry:", *self.lines, "  ret void", "}"]
        self.module.functions[symbol] = "\n".join(text)

    # small pieces

    def _integers(self, name: str, table: np.ndarray) -> None:
        """Define a table of integers."""
        self.module.integers(f"{self.symbol}.{name}", table)

    def _numbers(self, name: str, values: Any) -> None:
        """Define an array of numbers."""
        kind = np.float64 if self.t.scalar == "double" else np.float32
        self.module.data(f"{self.symbol}.{name}", np.asarray(values, kind))

    def _at(self, table: str, index: str) -> str:
        """Load an entry of a table."""
        return self.entry(f"{self.symbol}.{table}", index)

    def _choose(self, which: str, symbols: list[str], arguments: list[str]) -> None:
        """Call one of several functions of the same arguments."""
        text = ", ".join(f"ptr {a}" for a in arguments)
        if len(symbols) == 1:
            self.lines.append(f"  call void @{symbols[0]}({text})")
            return
        label = self._switch(which, len(symbols))
        for k, symbol in enumerate(symbols):
            self.lines += [f"{label}.{k}:", f"  call void @{symbol}({text})", f"  br label %{label}.join"]
        self.lines.append(f"{label}.join:")

    def _switch(self, which: str, count: int) -> str:
        """Go to one of `count` blocks; the prefix of their labels."""
        label = self.label("c")
        cases = " ".join(f"i64 {k}, label %{label}.{k}" for k in range(1, count))
        self.lines.append(f"  switch i64 {which}, label %{label}.0 [ {cases} ]")
        return label

    def _step(self, call: casadi.Function, graph: Graph) -> str:
        """Define the step of a round, unless it is defined; its symbol."""
        if id(call) not in self.steps:
            self.steps[id(call)] = symbol = f"{self.symbol}.step{len(self.steps)}"
            print_graph(graph, symbol, self.module, uniform=frozenset({0}), in_place=True)
        return self.steps[id(call)]

    def _steps(self, name: str, graphs: Sequence[Graph]) -> list[str]:
        """Define steps; their symbols. A step's first input, the constants, is the same for every lane."""
        symbols = [f"{self.symbol}.{name}.{k}" for k in range(len(graphs))]
        for symbol, graph in zip(symbols, graphs, strict=True):
            print_graph(graph, symbol, self.module, uniform=frozenset({0}), in_place=True)
        return symbols

    # rounds

    def _set_initial(self) -> None:
        """Set the state that must have a value before the first round."""
        if not self.schedule.initial:
            return
        places, values = zip(*self.schedule.initial, strict=True)
        self._integers("initial.at", np.array(places))
        self._numbers("initial", values)
        i, label = self.loop(str(len(values)))
        at = self.element("%state", self._at("initial.at", i))
        place = self.new(f"getelementptr {self.t.scalar}, ptr @{self.symbol}.initial, i64 {i}")
        self.store(self.splat(self.new(f"load {self.t.scalar}, ptr {place}")), at)
        self.end(label)

    def _round(self, k: int, r: Round) -> None:
        """For every run of rows: choose the step, and call it for each row."""
        runs = r.runs
        if id(r) not in self.printed:
            self.printed[id(r)] = k
            self._integers(f"runs{k}", runs)
        k, symbols = self.printed[id(r)], [*map(self._step, r.calls, r.graphs)]
        i, outer = self.loop(str(len(runs)))
        at = self.new(f"mul i64 {i}, {runs.shape[1]}")
        run = [self._at(f"runs{k}", self.new(f"add i64 {at}, {c}")) for c in range(runs.shape[1])]
        n = r.table.shape[1] - 1
        offsets, steps = run[2 : 2 + n], run[2 + n :]
        label = self._switch(run[0], len(symbols))
        for c, symbol in enumerate(symbols):
            self.lines.append(f"{label}.{c}:")
            row, inner = self.loop(run[1])
            here = [
                self.new(f"add i64 {first}, {self.new(f'mul i64 {row}, {step}')}")
                for first, step in zip(offsets, steps, strict=True)
            ]
            arguments = self._pointers(r.inputs, here, r.states)
            arguments += arguments[len(arguments) - r.states :]
            outs = here[n - len(r.outputs) :]
            arguments += [self.element(f"%out{port}", place) for port, place in zip(r.outputs, outs, strict=True)]
            self.lines.append(f"  call void @{symbol}({', '.join(f'ptr {a}' for a in arguments)})")
            self.end(inner)
            self.lines.append(f"  br label %{label}.join")
        self.lines.append(f"{label}.join:")
        self.end(outer)

    def _fronts(self, k: int, r: FactorRound | SolveRound) -> None:
        """Factor a matrix by fronts, or solve with the factor."""
        name = self.fronts.setdefault(id(r.fronts), f"{self.symbol}.fronts{k}")
        if name.endswith(f"fronts{k}"):
            print_fronts(r.fronts, name, self.module)
        if isinstance(r, FactorRound):
            self.lines.append(f"  call void @{name}.factor(ptr %state)")
        else:
            vector = self.element("%state", r.vector)
            self.lines.append(f"  call void @{name}.solve(ptr %state, ptr {vector})")

    def _pointers(self, inputs: Sequence[int], offsets: Sequence[str], states: int) -> list[str]:
        """Constants, inputs, states."""
        n = 1 + len(inputs)
        constants = self.new(f"getelementptr {self.t.scalar}, ptr @{self.symbol}.constants, i64 {offsets[0]}")
        ins = [self.element(f"%in{port}", at) for port, at in zip(inputs, offsets[1:n], strict=True)]
        return [constants, *ins, *(self.element("%state", at) for at in offsets[n : n + states])]

    def _climb(self, k: int, r: ClimbRound) -> None:
        """For every link and each of its columns: give, carry to the parent, give, ... and fill the matrices."""
        names = {what: self._steps(f"{what}{k}", graphs) for what, graphs in r.graphs.items()}
        self._integers(f"links{k}", r.links)
        scratch = self.element("%state", self.schedule.node_state)
        given = [self.element(scratch, (r.message + m) * r.widest) for m in range(2 * len(r.outputs))]
        self._clear(r)
        i, outer = self.loop(str(len(r.links)))
        own = self._link(k, r, i)
        self._choose(own["class"], names["start"], [*own["pointers"], scratch])
        column, inner = self.loop(own["count"])
        message = self.element(scratch, self.new(f"mul i64 {column}, {r.message}"))
        col = self.new(f"add i64 {own['first']}, {column}")
        walk = self.label("w")
        self.lines += [f"  br label %{walk}.in", f"{walk}.in:", f"  br label %{walk}", f"{walk}:"]
        self.lines += [f"  %{walk}.j = phi i64 [{i}, %{walk}.in], [%{walk}.up, %{walk}.end]"]
        j = self._link(k, r, f"%{walk}.j")
        self._choose(j["class"], names["give"], [*j["pointers"], message, *given])
        a, rows = self.loop(j["count"])
        row = self.new(f"add i64 {j['first']}, {a}")
        own_block = self.new(f"icmp eq i64 %{walk}.j, {i}")  # of the link's own block `up` is what stays
        below, beside = self._entries(r, row, col), self._entries(r, col, row)
        for port, up, across in zip(r.outputs, given[::2], given[1::2], strict=True):
            under = below(port)
            aside = self.new(f"select i1 {own_block}, ptr {under}, ptr {beside(port)}")
            for value, place in ((across, aside), (up, under)):
                self.store(self.load(self.element(value, a)), place)
        self.end(rows)
        self.lines += [f"  %{walk}.top = icmp slt i64 {j['parent']}, 0"]
        self.lines += [f"  br i1 %{walk}.top, label %{walk}.out, label %{walk}.carry", f"{walk}.carry:"]
        self._choose(j["class"], names["carry"], [*j["pointers"], message, message])
        self.lines += [f"  br label %{walk}.end", f"{walk}.end:", f"  %{walk}.up = add i64 {j['parent']}, 0"]
        self.lines += [f"  br label %{walk}", f"{walk}.out:"]
        self.end(inner)
        self.end(outer)

    def _clear(self, r: ClimbRound) -> None:
        """Set the matrices of a climb to zero."""
        nothing = "zeroinitializer" if self.t.width > 1 else "0.0"
        if not self.strided:
            zero, label = self.loop(str(r.size * r.size))
            for port in r.outputs:
                self.store(nothing, self.element(f"%out{port}", zero))
            self.end(label)
            return
        row, outer = self.loop(str(r.size))
        column, inner = self.loop(str(r.size))
        entry = self._entries(r, row, column)
        for port in r.outputs:
            self.store(nothing, entry(port))
        self.end(inner)
        self.end(outer)

    def _entries(self, r: ClimbRound, row: str, column: str) -> Callable[[int], str]:
        """The address of an entry, as a function of the matrix's port."""
        flat = "" if self.strided else self.new(f"add i64 {self.new(f'mul i64 {row}, {r.size}')}, {column}")

        def entry(port: int) -> str:
            if flat:
                return self.element(f"%out{port}", flat)
            at = f"%out{port}"
            for index, stride in ((row, "m"), (column, "n")):
                at = self.new(f"getelementptr i8, ptr {at}, i64 {self.new(f'mul i64 {index}, %out{port}.{stride}')}")
            return at

        return entry

    def _link(self, k: int, r: ClimbRound, i: str) -> dict[str, Any]:
        """Read a row of the links."""
        columns = r.links.shape[1]
        first = self.new(f"mul i64 {i}, {columns}")
        row = [self._at(f"links{k}", self.new(f"add i64 {first}, {c}")) for c in range(columns)]
        pointers = self._pointers(r.inputs, [*row[1:-3], row[-4]], 2)
        return {"class": row[0], "pointers": pointers, "parent": row[-3], "first": row[-2], "count": row[-1]}
