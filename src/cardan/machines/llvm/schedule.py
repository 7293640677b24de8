"""Print a schedule of small graphs as one body that loops over the nodes of a model.

The body has the interface of a straight-line one, `@body(inputs, outputs, state)` on lanes, so that the same loop
over rows drives it. Each recorded step is an internal function, called through tables of offsets. State is read and
written in place: a step's loads come before its stores.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from cardan.machines.llvm.body import Module, print_body
from cardan.program.graph import Graph, elements, read


class Round(Protocol):
    """Calls of `calls[row[0]]`, one a row of `table`, at the offsets in the rest of the row."""

    calls: Sequence[Any]
    inputs: Sequence[int]
    outputs: Sequence[int]
    table: np.ndarray


class ClimbRound(Protocol):
    """Walks from every row of `links` to its root, filling a square matrix."""

    start: Sequence[Any]
    carry: Sequence[Any]
    give: Sequence[Any]
    inputs: Sequence[int]
    links: np.ndarray
    message: int
    output: int
    size: int


class Schedule(Protocol):
    """Rounds in order, the constants they read, and the state they share."""

    rounds: Sequence[Any]
    constants: np.ndarray
    state: int
    initial: Sequence[tuple[int, float]]


def is_schedule(recorded: object) -> bool:
    """Whether a program recorded a schedule instead of one graph."""
    return hasattr(recorded, "rounds")


def state_size(schedule: Schedule) -> int:
    """Numbers of state that one lane needs, scratch of climbs included."""
    climbs = [r for r in schedule.rounds if hasattr(r, "links")]
    return schedule.state + max((_scratch(r) for r in climbs), default=0)


def count_operations(schedule: Schedule) -> dict[str, int]:
    """How many of each operation one evaluation takes."""
    total: dict[str, int] = {}

    def add(functions: Sequence[Any], times: np.ndarray) -> None:
        for function, count in zip(functions, times, strict=True):
            for op, each in _graph(function).operations().items():
                total[op] = total.get(op, 0) + each * int(count)

    for r in schedule.rounds:
        if hasattr(r, "links"):
            kinds, carried = r.links[:, 0], _columns_carried(r.links)
            add(r.start, np.bincount(kinds, minlength=len(r.start)))
            add(r.give, np.bincount(kinds, carried, minlength=len(r.give)))
            above = np.where(r.links[:, -3] >= 0, carried, 0)
            add(r.carry, np.bincount(kinds, above, minlength=len(r.carry)))
        else:
            add(r.calls, np.bincount(r.table[:, 0], minlength=len(r.calls)))
    return total


def _columns_carried(links: np.ndarray) -> np.ndarray:
    """For each link, the columns that climb past it: its own and those of all beyond."""
    carried = links[:, -1].copy()
    for i in range(len(links) - 1, -1, -1):
        if links[i, -3] >= 0:
            carried[links[i, -3]] += carried[i]
    return carried


def print_looped(schedule: Schedule, n_in: int, n_out: int, module: Module, symbol: str = "body") -> None:
    """Define `@symbol(ptr %in0, ..., ptr %out0, ..., ptr %state)` and all that it calls; one schedule a module."""
    _Looped(schedule, module).print(n_in, n_out, symbol)


def _graph(function: Any) -> Graph:
    """The graph of a step, which writes only what is structurally there."""
    graph = read(function)
    written = [set(elements(function.sparsity_out(i))) for i in range(function.n_out())]
    graph.outputs = [(p, e, k) for p, e, k in graph.outputs if e in written[p]]
    return graph


def _scratch(climb: ClimbRound) -> int:
    widest = int(climb.links[:, -1].max(initial=0))
    return (climb.message + 2) * max(widest, 1)


class _Looped:
    """The IR of the body, under construction."""

    def __init__(self, schedule: Schedule, module: Module) -> None:
        self.schedule, self.module, self.t = schedule, module, module.lanes
        self.lines: list[str] = []
        self.count = 0
        self.globals: dict[bytes, str] = {}

    def print(self, n_in: int, n_out: int, symbol: str) -> None:
        values = ", ".join(f"{self.t.scalar} {self.t.number(x)}" for x in self.schedule.constants)
        self._global("constants", f"[{len(self.schedule.constants)} x {self.t.scalar}] [{values}]")
        self._set_initial()
        for k, r in enumerate(self.schedule.rounds):
            if hasattr(r, "links"):
                self._climb(k, r)
            else:
                self._round(k, r)
        params = [f"ptr %in{j}" for j in range(n_in)] + [f"ptr %out{j}" for j in range(n_out)] + ["ptr %state"]
        text = [
            f"define internal void @{symbol}({', '.join(params)}) {{",
            "entry:",
            *self.lines,
            "  ret void",
            "}",
        ]
        self.module.functions[symbol] = "\n".join(text)

    # small pieces

    def _new(self, text: str) -> str:
        self.count += 1
        self.lines.append(f"  %x{self.count} = {text}")
        return f"%x{self.count}"

    def _global(self, name: str, value: str) -> None:
        self.module.functions[f"data {name}"] = f"@{name} = internal constant {value}, align 64"

    def _integers(self, name: str, table: np.ndarray) -> None:
        flat = ", ".join(f"i32 {x}" for x in table.ravel())
        self._global(name, f"[{table.size} x i32] [{flat}]")

    def _at(self, table: str, index: str) -> str:
        place = self._new(f"getelementptr i32, ptr @{table}, i64 {index}")
        return self._new(f"sext i32 {self._new(f'load i32, ptr {place}')} to i64")

    def _lane(self, base: str, offset: str) -> str:
        return self._new(f"getelementptr {self.t.vector}, ptr {base}, i64 {offset}")

    def _for(self, count: str) -> tuple[str, str]:
        """Open a loop over 0..count-1; its index, and the label to close it with."""
        self.count += 1
        label = f"l{self.count}"
        self.lines += [
            f"  br label %{label}.in",
            f"{label}.in:",
            f"  br label %{label}.head",
            f"{label}.head:",
        ]
        self.lines += [f"  %{label} = phi i64 [0, %{label}.in], [%{label}.next, %{label}.end]"]
        self.lines += [f"  %{label}.more = icmp slt i64 %{label}, {count}"]
        self.lines += [f"  br i1 %{label}.more, label %{label}.do, label %{label}.out", f"{label}.do:"]
        return f"%{label}", label

    def _end(self, label: str) -> None:
        self.lines += [f"  br label %{label}.end", f"{label}.end:", f"  %{label}.next = add i64 %{label}, 1"]
        self.lines += [f"  br label %{label}.head", f"{label}.out:"]

    def _choose(self, which: str, symbols: list[str], arguments: list[str]) -> None:
        """Call one of several functions of the same arguments."""
        text = ", ".join(f"ptr {a}" for a in arguments)
        if len(symbols) == 1:
            self.lines.append(f"  call void @{symbols[0]}({text})")
            return
        self.count += 1
        label = f"c{self.count}"
        cases = " ".join(f"i64 {k}, label %{label}.{k}" for k in range(1, len(symbols)))
        self.lines.append(f"  switch i64 {which}, label %{label}.0 [ {cases} ]")
        for k, symbol in enumerate(symbols):
            self.lines += [f"{label}.{k}:", f"  call void @{symbol}({text})", f"  br label %{label}.join"]
        self.lines.append(f"{label}.join:")

    def _steps(self, name: str, functions: Sequence[Any]) -> list[str]:
        """Define the recorded steps; their symbols."""
        symbols = []
        for k, function in enumerate(functions):
            symbol = f"{name}.{k}"
            print_body(
                _graph(function), symbol, self.t.width, self.t.scalar, frozenset({0}), self.module,
                inputs=function.n_in(), outputs=function.n_out(), in_place=True,
            )  # fmt: skip
            symbols.append(symbol)
        return symbols

    # rounds

    def _set_initial(self) -> None:
        if not self.schedule.initial:
            return
        places, values = zip(*self.schedule.initial, strict=True)
        self._integers("initial.at", np.array(places))
        numbers = ", ".join(f"{self.t.scalar} {self.t.number(x)}" for x in values)
        self._global("initial", f"[{len(values)} x {self.t.scalar}] [{numbers}]")
        i, label = self._for(str(len(values)))
        at = self._lane("%state", self._at("initial.at", i))
        place = self._new(f"getelementptr {self.t.scalar}, ptr @initial, i64 {i}")
        self._store(self._splat(self._new(f"load {self.t.scalar}, ptr {place}")), at)
        self._end(label)

    def _splat(self, scalar: str) -> str:
        if self.t.width == 1:
            return scalar
        first = self._new(f"insertelement {self.t.vector} poison, {self.t.scalar} {scalar}, i64 0")
        mask = f"<{self.t.width} x i32> zeroinitializer"
        return self._new(f"shufflevector {self.t.vector} {first}, {self.t.vector} poison, {mask}")

    def _store(self, value: str, at: str) -> None:
        self.lines.append(f"  store {self.t.vector} {value}, ptr {at}, align {self.t.bytes * self.t.width}")

    def _round(self, k: int, r: Round) -> None:
        rows, columns = r.table.shape
        symbols = self._steps(f"round{k}", r.calls)
        self._integers(f"table{k}", r.table)
        i, label = self._for(str(rows))
        first = self._new(f"mul i64 {i}, {columns}")
        column = [self._at(f"table{k}", self._new(f"add i64 {first}, {c}")) for c in range(columns)]
        arguments = self._pointers(r.inputs, column[1:])
        outs = column[len(column) - len(r.outputs) :]
        arguments += arguments[-2:]
        arguments += [self._lane(f"%out{port}", at) for port, at in zip(r.outputs, outs, strict=True)]
        self._choose(column[0], symbols, arguments)
        self._end(label)

    def _pointers(self, inputs: Sequence[int], offsets: Sequence[str]) -> list[str]:
        """Constants, inputs, own state, carrier's state."""
        n = len(inputs)
        constants = self._new(f"getelementptr {self.t.scalar}, ptr @constants, i64 {offsets[0]}")
        ins = [self._lane(f"%in{port}", at) for port, at in zip(inputs, offsets[1 : 1 + n], strict=True)]
        return [constants, *ins, *(self._lane("%state", at) for at in offsets[1 + n : 3 + n])]

    def _climb(self, k: int, r: ClimbRound) -> None:
        """For every link and each of its columns: give, carry to the parent, give, ... and fill the matrix."""
        names = {what: self._steps(f"{what}{k}", getattr(r, what)) for what in ("start", "carry", "give")}
        self._integers(f"links{k}", r.links)
        scratch = self._lane("%state", str(self.schedule.state))
        widest = max(int(r.links[:, -1].max(initial=0)), 1)
        up = self._lane(scratch, str(r.message * widest))
        across = self._lane(up, str(widest))
        zero, label = self._for(str(r.size * r.size))
        self._store("zeroinitializer" if self.t.width > 1 else "0.0", self._lane(f"%out{r.output}", zero))
        self._end(label)
        i, outer = self._for(str(len(r.links)))
        own = self._link(k, r, i)
        self._choose(own["class"], names["start"], [*own["pointers"], scratch])
        column, inner = self._for(own["count"])
        message = self._lane(scratch, self._new(f"mul i64 {column}, {r.message}"))
        col = self._new(f"add i64 {own['first']}, {column}")
        self.count += 1
        walk = f"w{self.count}"
        self.lines += [f"  br label %{walk}.in", f"{walk}.in:", f"  br label %{walk}", f"{walk}:"]
        self.lines += [f"  %{walk}.j = phi i64 [{i}, %{walk}.in], [%{walk}.up, %{walk}.end]"]
        j = self._link(k, r, f"%{walk}.j")
        self._choose(j["class"], names["give"], [*j["pointers"], message, up, across])
        a, rows = self._for(j["count"])
        row = self._new(f"add i64 {j['first']}, {a}")
        for value, m, n in ((across, col, row), (up, row, col)):  # on the diagonal `up` is what stays
            flat = self._new(f"add i64 {self._new(f'mul i64 {m}, {r.size}')}, {n}")
            lane = self._new(f"load {self.t.vector}, ptr {self._lane(value, a)}, align {self.t.bytes * self.t.width}")
            self._store(lane, self._lane(f"%out{r.output}", flat))
        self._end(rows)
        self.lines += [f"  %{walk}.top = icmp slt i64 {j['parent']}, 0"]
        self.lines += [f"  br i1 %{walk}.top, label %{walk}.out, label %{walk}.carry", f"{walk}.carry:"]
        self._choose(j["class"], names["carry"], [*j["pointers"], message, message])
        self.lines += [f"  br label %{walk}.end", f"{walk}.end:", f"  %{walk}.up = add i64 {j['parent']}, 0"]
        self.lines += [f"  br label %{walk}", f"{walk}.out:"]
        self._end(inner)
        self._end(outer)

    def _link(self, k: int, r: ClimbRound, i: str) -> dict[str, Any]:
        """Read a row of the links."""
        columns = r.links.shape[1]
        first = self._new(f"mul i64 {i}, {columns}")
        row = [self._at(f"links{k}", self._new(f"add i64 {first}, {c}")) for c in range(columns)]
        pointers = self._pointers(r.inputs, [*row[1:-3], row[-4]])
        return {"class": row[0], "pointers": pointers, "parent": row[-3], "first": row[-2], "count": row[-1]}
