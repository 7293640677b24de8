"""Stages in a kernel for a GPU: each graph is printed once, in loops over the columns that it serves.

Inputs are read, and outputs written, in the card's memory; what passes from stage to stage is memory of the thread.
Stages that share a graph and do not depend on each other become one loop: less code, which the card fetches from a
nearer cache and its driver compiles in less time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cardan.machines.llvm.module import Lines, Module
from cardan.machines.llvm.thread import ThreadLine, memory

if TYPE_CHECKING:
    from cardan.program.program import Program
    from cardan.program.stages import Stage, Stages, Window


def stage_lines(stages: Stages, program: Program, module: Module) -> tuple[list[str], list[str]]:
    """Lines for the beginning of a kernel and for its row; `%rowN` is the address of the row of port N.

    `%mN` and `%nN` are the strides in bytes along the axes of a row.
    """
    printer = _Stages(stages, program, module)
    for number, together in enumerate(alike(stages)):
        printer.group(number, together)
    head = memory(module, "scratch", stages.state_size) if stages.state_size else []
    return head, printer.lines


def alike(stages: Stages) -> list[list[Stage]]:
    """The stages in order; those that share a graph, and can be run where the first of them is, are together."""
    groups: list[list[Stage]] = []
    for stage in stages.stages:
        key = (id(stage.function), _strides(stage))
        home = next((g for g in groups if (id(g[0].function), _strides(g[0])) == key), None)
        passed = groups[groups.index(home) + 1 :] if home is not None else []
        if home is not None and not any(_depend(stage, other) for group in passed for other in group):
            home.append(stage)
        else:
            groups.append([stage])
    return groups


def _strides(stage: Stage) -> tuple[int, ...]:
    return tuple(window.stride for window in (*stage.reads, *stage.writes))


def _touched(stage: Stage) -> tuple[set[tuple[int, int]], set[tuple[int, int]]]:
    """(argument, element) of everything that a stage reads, and writes, in all its repetitions."""
    graph, read, written = stage.graph, set[tuple[int, int]](), set[tuple[int, int]]()
    places = [args for op, args in zip(graph.op, graph.args, strict=True) if op == "input"]
    for found, windows, used in (
        (read, stage.reads, places), (written, stage.writes, [(p, e) for p, e, _ in graph.outputs]),
    ):  # fmt: skip
        for port, element in used:
            w = windows[port]
            found |= {(w.argument, w.first + i * w.step + element) for i in range(stage.count)}
    return read, written


def _depend(one: Stage, other: Stage) -> bool:
    """Whether the order of two stages matters."""
    (read, written), (its_read, its_written) = _touched(one), _touched(other)
    return bool(written & (its_read | its_written) or read & its_written)


class _Stages(Lines):
    """The stages of a kernel under construction."""

    def __init__(self, stages: Stages, program: Program, module: Module) -> None:
        super().__init__(module.type, "s")
        self.ports, self.module = program.ports, module
        self.offsets, offset = [0] * len(self.ports), 0  # of scratch, by argument
        for size in stages.scratch:
            self.offsets.append(offset)
            offset += size

    def group(self, number: int, together: list[Stage]) -> None:
        """Call a graph for all columns of some stages."""
        symbol = f"stage{number}"
        windows = [(*stage.reads, *stage.writes) for stage in together]
        kinds = [self._columns(own[0]) for own in zip(*windows, strict=True)]
        self._define(symbol, together[0], kinds)
        many, repeated = len(together) > 1, any(stage.count > 1 for stage in together)
        which = self._begin(f"{symbol}.of") if many else "0"
        bases = [self._chosen(which, [self._base(w) for w in own]) for own in zip(*windows, strict=True)]
        counts = self._chosen(which, [(("i64", str(stage.count)),) for stage in together])
        i = self._begin(f"{symbol}.at") if repeated else "0"
        steps = [self._chosen(which, [(("i64", str(w.step)),) for w in own]) for own in zip(*windows, strict=True)]
        arguments = []
        for columns, base, ((_, step),) in zip(kinds, bases, steps, strict=True):
            (kind, place), *strides = base
            if step != "0" and repeated:
                move = self.new(f"mul i64 {i}, {step}")
                if columns:
                    move = self.new(f"mul i64 {move}, {strides[-1][1]}")
                    place = self.new(f"getelementptr i8, ptr addrspace(1) {place}, i64 {move}")
                else:
                    place = self.element(place, move)
            arguments += [f"{kind} {place}", *(f"i64 {stride}" for _, stride in strides)]
        self.lines.append(f"  call void @{symbol}({', '.join(arguments)})")
        if repeated:
            self._end(f"{symbol}.at", counts[0][1])
        if many:
            self._end(f"{symbol}.of", str(len(together)))

    def _columns(self, window: Window) -> int:
        """Columns of the port that a window is in; 0 for scratch."""
        return self.ports[window.argument].matrix[1] if window.argument < len(self.ports) else 0

    def _base(self, window: Window) -> tuple[tuple[str, str], ...]:
        """Address of a window's first element, and for a port the strides along its row's axes; each with its type."""
        a = window.argument
        if a >= len(self.ports):
            return (("ptr", self.element("%scratch", self.offsets[a] + window.first)),)
        r, c = divmod(window.first, self.ports[a].matrix[1])
        axes = len(self.ports[a].shape)
        m, n = (f"%m{a}" if axes == 2 else "0"), (f"%n{a}" if axes else "0")
        at = self.new(f"inttoptr i64 %row{a} to ptr addrspace(1)")
        for count, stride in ((r, m), (c, n)):
            if count:
                at = self.new(f"getelementptr i8, ptr addrspace(1) {at}, i64 {self.new(f'mul i64 {stride}, {count}')}")
        return ("ptr addrspace(1)", at), ("i64", m), ("i64", n)

    def _chosen(self, which: str, cases: list[tuple[tuple[str, str], ...]]) -> list[tuple[str, str]]:
        """For each place the value of the case of number `which`."""
        found = []
        for values in zip(*cases, strict=True):
            kind, chosen = values[0]
            for k, (_, other) in enumerate(values[1:], start=1):
                if other != values[0][1] or chosen != values[0][1]:
                    here = self.new(f"icmp eq i64 {which}, {k}")
                    chosen = self.new(f"select i1 {here}, {kind} {other}, {kind} {chosen}")
            found.append((kind, chosen))
        return found

    def _begin(self, label: str) -> str:
        """Begin a loop; its counter."""
        self.lines += [f"  br label %{label}.in", f"{label}.in:", f"  br label %{label}.again", f"{label}.again:"]
        self.lines.append(f"  %{label} = phi i64 [0, %{label}.in], [%{label}.next, %{label}.end]")
        return f"%{label}"

    def _end(self, label: str, count: str) -> None:
        """End a loop that is run `count` times."""
        self.lines += [f"  br label %{label}.end", f"{label}.end:", f"  %{label}.next = add i64 %{label}, 1"]
        more = self.new(f"icmp slt i64 %{label}.next, {count}")
        self.lines += [f"  br i1 {more}, label %{label}.again, label %{label}.out, !llvm.loop !2", f"{label}.out:"]

    def _define(self, symbol: str, stage: Stage, kinds: list[int]) -> None:
        """Define the graph of a stage as a function of its windows' addresses and strides."""
        t, inputs = self.t, len(stage.reads)
        parameters = []
        for k, columns in enumerate(kinds):
            parameters += [f"ptr addrspace(1) %w{k}", f"i64 %m{k}", f"i64 %n{k}"] if columns else [f"ptr %w{k}"]

        def address(k: int, element: int) -> str:
            """Address of an element, and its type."""
            if not kinds[k]:
                return f"ptr {line.element(f'%w{k}', element)}"
            r, c = divmod(element, kinds[k])
            at = f"%w{k}"
            for count, stride in ((r, f"%m{k}"), (c, f"%n{k}")):
                if count:
                    move = line.new(f"mul i64 {stride}, {count}")
                    at = line.new(f"getelementptr i8, ptr addrspace(1) {at}, i64 {move}")
            return f"ptr addrspace(1) {at}"

        def load(port: int, element: int) -> str:
            return line.new(f"load {t.scalar}, {address(port, element)}, align {t.align}")

        def store(port: int, element: int, value: str) -> None:
            line.lines.append(f"  store {t.scalar} {value}, {address(inputs + port, element)}, align {t.align}")

        line = ThreadLine(stage.graph, self.module, load, store)
        line.run()
        define = f"define internal void @{symbol}({', '.join(parameters)}) alwaysinline {{"
        self.module.functions[symbol] = "\n".join([define, "entry:", *line.head, *line.lines, "  ret void", "}"])
