"""Print stages as one function that calls each stage as often as it is repeated."""

from __future__ import annotations

from cardan.machines.llvm.graph import print_graph
from cardan.machines.llvm.module import Lines, Module
from cardan.program.stages import Stages, Window


def print_stages(stages: Stages, symbol: str, module: Module) -> None:
    """Define `@symbol(ptr %in0, ..., ptr %out0, ..., ptr %state)` and the stages that it calls.

    `%state` addresses `stages.state_size` vectors of lanes. A function that serves several stages is printed once.
    """
    _Calls(stages, module).print(symbol)


class _Calls(Lines):
    """The function under construction."""

    def __init__(self, stages: Stages, module: Module) -> None:
        super().__init__(module.type, "x")
        self.stages, self.module = stages, module
        n_in, n_out = stages.ports
        self.parameters = [*(f"%in{k}" for k in range(n_in)), *(f"%out{k}" for k in range(n_out))]
        self.arguments = list(self.parameters)

    def print(self, symbol: str) -> None:
        """Define the function."""
        offset, printed = 0, dict[object, str]()
        for size in self.stages.scratch:
            self.arguments.append(self.element("%state", offset))
            offset += size
        for k, stage in enumerate(self.stages.stages):
            strides = tuple(window.stride for window in (*stage.reads, *stage.writes))
            name = printed.setdefault((id(stage.function), strides), f"{symbol}.{k}")
            if name not in self.module.functions:
                print_graph(stage.graph, name, self.module, sparse=True)
            self._calls(k, name, (*stage.reads, *stage.writes), stage.count)
        text = ", ".join(f"ptr {p}" for p in [*self.parameters, "%state"])
        body = [
            f"define internal void @{symbol}({text}) {self.module.attributes}{{",
            "entry:",
            *self.lines,
            "  ret void",
            "}",
        ]
        self.module.functions[symbol] = "\n".join(body)

    def _calls(self, k: int, name: str, windows: tuple[Window, ...], count: int) -> None:
        """Call a stage `count` times."""
        label = f"stage{k}"
        if count > 1:
            self.lines += [f"  br label %{label}.in", f"{label}.in:", f"  br label %{label}.again", f"{label}.again:"]
            self.lines.append(f"  %{label} = phi i64 [0, %{label}.in], [%{label}.next, %{label}.again]")
        places = [self._place(window, f"%{label}", count) for window in windows]
        self.lines.append(f"  call void @{name}({', '.join(f'ptr {place}' for place in places)})")
        if count > 1:
            self.lines.append(f"  %{label}.next = add i64 %{label}, 1")
            more = self.new(f"icmp slt i64 %{label}.next, {count}")
            self.lines += [f"  br i1 {more}, label %{label}.again, label %{label}.out", f"{label}.out:"]

    def _place(self, window: Window, i: str, count: int) -> str:
        """Address of a window at repetition `i`."""
        place = self.arguments[window.argument]
        if window.first:
            place = self.element(place, window.first)
        if window.step and count > 1:
            place = self.element(place, self.new(f"mul i64 {i}, {window.step}"))
        return place
