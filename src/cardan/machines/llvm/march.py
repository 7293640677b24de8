"""Print a step and the loop around it as one body: a kernel that repeats a step until every lane is done.

A step is one graph, or several in order, some of them repeated: `(state..., scratch..., data...) -> (state...,
scratch..., busy)`. Lanes are independent: one that is done must be left as it is by the step, while its neighbours go
on. The body has the interface of a straight-line one, so that the same loop over rows drives it: the state comes in
and goes out, scratch lasts as long as the call, the data only come in, and the last input is the largest number of
steps.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from cardan.errors import CardanError
from cardan.machines.llvm.body import Module, print_body
from cardan.machines.llvm.schedule import Schedule, count_operations, print_looped, state_size
from cardan.program.graph import Graph, read


@dataclass(frozen=True)
class Loop:
    """A schedule as a piece of a step: which of the step's arguments, by number, it reads and which it writes."""

    schedule: Schedule
    reads: tuple[int, ...]
    writes: tuple[int, ...]


BUSY = -1  # the number of what says whether a lane goes on, among what a piece writes


@dataclass(frozen=True)
class Each:
    """A graph as a piece of a step, of some of its arguments, by number; run for `count` elements in turn.

    For element i an argument of `count` rows is its row i; any other is the whole of it. What one element writes, the
    next one reads: so sums are taken.
    """

    graph: Any
    reads: tuple[int, ...]
    writes: tuple[int, ...]
    count: int = 1


@dataclass(frozen=True)
class March:
    """The recorded parts of a step, each with how often it runs, and how many of their inputs are state and scratch.

    A part is a graph of all arguments, or several pieces in order: such graphs, loops over a large model, and graphs
    for each element. `arguments` are the numbers in each argument of the step, where the first piece is not a graph of
    them all.
    """

    parts: tuple[tuple[Any, int], ...]
    carried: int
    scratch: int = 0
    arguments: tuple[int, ...] = ()

    @property
    def pieces(self) -> list[tuple[tuple[Any, ...], int]]:
        """The parts, each as a row of pieces."""
        return [(part if isinstance(part, tuple) else (part,), times) for part, times in self.parts]

    @property
    def sizes(self) -> list[int]:
        """Numbers in each port of the state and of the scratch."""
        return self.argument_sizes[: self.carried + self.scratch]

    @property
    def data(self) -> list[int]:
        """Numbers in each port that only comes in."""
        return self.argument_sizes[self.carried + self.scratch :]

    @property
    def input_sizes(self) -> list[int]:
        """Numbers in each input of the body: the state, the data, and how many steps at most."""
        return [*self.sizes[: self.carried], *self.data, 1]

    @property
    def output_sizes(self) -> list[int]:
        """Numbers in each output of the body."""
        return self.sizes[: self.carried]

    @property
    def argument_sizes(self) -> list[int]:
        """Numbers in each argument of the step: state, scratch, data."""
        first = self.pieces[0][0][0]
        return list(self.arguments) or [int(first.numel_in(k)) for k in range(first.n_in())]

    def sizes_of(self, piece: Each) -> list[int]:
        """Numbers in each argument that a piece reads or writes."""
        return [1 if k == BUSY else self.argument_sizes[k] for k in (*piece.reads, *piece.writes)]

    @property
    def state(self) -> int:
        """Numbers of memory that one lane needs, `busy` and the loops' own included."""
        loops = [piece for part, _ in self.pieces for piece in part if isinstance(piece, Loop)]
        return sum(self.sizes) + 1 + max((state_size(loop.schedule) for loop in loops), default=0)

    def operations(self) -> dict[str, int]:
        """How many of each operation one step takes."""
        total: Counter[str] = Counter()
        for part, times in self.pieces:
            for piece in part:
                for op, count in _operations(piece).items():
                    total[op] += times * count
        return dict(total)


def _operations(piece: Any) -> dict[str, int]:
    if isinstance(piece, Loop):
        return count_operations(piece.schedule)
    if isinstance(piece, Each):
        return {op: piece.count * count for op, count in read(piece.graph).operations().items()}
    return read(piece).operations()


def print_march(march: March, module: Module) -> None:
    """Define `@body(ptr %in0, ..., ptr %out0, ..., ptr %state)` and the parts that it repeats.

    The last input is the limit. Ports without elements are not among the parameters, as in `without_empty_ports`.
    """
    t, n, own = module.lanes, march.carried, march.carried + march.scratch
    align = t.bytes * t.width
    lines, places, offset = [], [], 0
    for k, size in enumerate([*march.sizes, 1]):
        lines.append(f"  %s{k} = getelementptr {t.vector}, ptr %state, i64 {offset}")
        places.append(f"ptr %s{k}")
        offset += size
    kept = [(k, size) for k, size in enumerate(march.output_sizes) if size]
    lines += [f"  call void @move(ptr %s{k}, ptr %in{k}, i64 {size})" for k, size in kept]
    data = [f"ptr %in{n + k}" if size else "ptr null" for k, size in enumerate(march.data)]
    limit = n + len(data)
    lines += [
        f"  %limit = load {t.scalar}, ptr %in{limit}",  # the first lane's: the same for all
        f"  %most = fptosi {t.scalar} %limit to i64",
    ]
    lines.append(f"  %loop = getelementptr {t.vector}, ptr %state, i64 {offset}")
    lines += [
        "  br label %again",
        "again:",
        "  %count = phi i64 [0, %entry], [%next, %judge]",
    ]
    printed: dict[Any, str] = {}
    for k, (part, times) in enumerate(march.pieces):
        named = [(f"part{k}.{j}", piece) for j, piece in enumerate(part)]
        calls = [_call(name, piece, march, module, printed, [*places[:own], *data], places) for name, piece in named]
        lines += _repeated(k, times, calls)
    lines += [
        "  br label %judge",
        "judge:",
        "  %next = add i64 %count, 1",
        f"  %busy = load {t.vector}, ptr %s{own}, align {align}",
        *_any(t, "%busy"),
        "  %left = icmp slt i64 %next, %most",
        "  %more = and i1 %left, %any",
        "  br i1 %more, label %again, label %done",
        "done:",
    ]
    lines += [f"  call void @move(ptr %out{k}, ptr %s{k}, i64 {size})" for k, size in kept]
    params = [f"ptr %in{k}" for k, size in enumerate(march.input_sizes) if size]
    params += [*(f"ptr %out{k}" for k, _ in kept), "ptr %state"]
    module.functions["move"] = _MOVE.format(v=t.vector, a=align)
    body = ["define internal void @body(" + ", ".join(params) + ") {", "entry:", *lines, "  ret void", "}"]
    module.functions["body"] = "\n".join(body)


def _changes(graph: Graph) -> Graph:
    """The graph without outputs that only write an input back to its own place."""
    outputs = [o for o in graph.outputs if graph.op[o[2]] != "input" or graph.args[o[2]] != (o[0], o[1])]
    return Graph(graph.op, graph.args, outputs)


def _call(
    symbol: str,
    piece: Any,
    march: March,
    module: Module,
    printed: dict[Any, str],
    arguments: list[str],
    results: list[str],
) -> str:
    """Define a piece, if none that is printed does the same with other arguments; the line that calls it."""
    if isinstance(piece, (Loop, Each)):
        given = [*(arguments[k] for k in piece.reads), *(results[k] for k in piece.writes)]
        if isinstance(piece, Loop):
            given.append("ptr %loop")
            key: Any = id(piece.schedule)
            if key not in printed:
                print_looped(piece.schedule, len(piece.reads), len(piece.writes), module, symbol)
        else:
            key = (id(piece.graph), piece.count, *march.sizes_of(piece))
            if key not in printed:
                _print_each(symbol, piece, march.sizes_of(piece), module)
        return f"  call void @{printed.setdefault(key, symbol)}({', '.join(given)})"
    t = module.lanes
    print_body(
        _changes(read(piece)), symbol, t.width, t.scalar, module=module, inputs=len(arguments), outputs=len(results),
        in_place=True,
    )  # fmt: skip
    return f"  call void @{symbol}({', '.join([*arguments, *results])})"


def _print_each(symbol: str, piece: Each, sizes: list[int], module: Module) -> None:
    """Define a loop over the elements, and what it does for one."""
    t, graph = module.lanes, piece.graph
    n, m = len(piece.reads), len(piece.writes)
    print_body(graph, f"{symbol}.one", t.width, t.scalar, module=module, inputs=n, outputs=m, in_place=True)
    rows = [int(graph.numel_in(k)) for k in range(n)] + [int(graph.numel_out(k)) for k in range(m)]
    lines, given = [], []
    for k, (row, size) in enumerate(zip(rows, sizes, strict=True)):
        if size == row:
            given.append(f"ptr %p{k}")
            continue
        if size != row * piece.count:
            raise CardanError(f"{graph.name()}: an argument of {size} numbers is not {piece.count} rows of {row}")
        lines += [f"  %o{k} = mul i64 %i, {row}", f"  %e{k} = getelementptr {t.vector}, ptr %p{k}, i64 %o{k}"]
        given.append(f"ptr %e{k}")
    module.functions[symbol] = "\n".join(
        [
            f"define internal void @{symbol}({', '.join(f'ptr %p{k}' for k in range(n + m))}) {{",
            "entry:",
            "  br label %again",
            "again:",
            "  %i = phi i64 [0, %entry], [%next, %again]",
            *lines,
            f"  call void @{symbol}.one({', '.join(given)})",
            "  %next = add i64 %i, 1",
            f"  %more = icmp slt i64 %next, {piece.count}",
            "  br i1 %more, label %again, label %done",
            "done:",
            "  ret void",
            "}",
        ]
    )


def _repeated(k: int, times: int, calls: list[str]) -> list[str]:
    """Lines that make the calls of part `k` as often as it runs."""
    if times == 1:
        return calls
    return [
        f"  br label %in{k}.enter",
        f"in{k}.enter:",
        f"  br label %in{k}.again",
        f"in{k}.again:",
        f"  %in{k}.count = phi i64 [0, %in{k}.enter], [%in{k}.next, %in{k}.again]",
        *calls,
        f"  %in{k}.next = add i64 %in{k}.count, 1",
        f"  %in{k}.more = icmp slt i64 %in{k}.next, {times}",
        f"  br i1 %in{k}.more, label %in{k}.again, label %in{k}.out",
        f"in{k}.out:",
    ]


def _any(t: Any, value: str) -> list[str]:
    """Lines that set `%any` where some lane of a value is not zero."""
    if t.width == 1:
        return [f"  %any = fcmp une {t.scalar} {value}, 0.0"]
    return [
        f"  %lanes.busy = fcmp une {t.vector} {value}, zeroinitializer",
        f"  %bits = bitcast <{t.width} x i1> %lanes.busy to i{t.width}",
        f"  %any = icmp ne i{t.width} %bits, 0",
    ]


_MOVE = """define internal void @move(ptr %to, ptr %from, i64 %size) {{
entry:
  br label %head
head:
  %i = phi i64 [0, %entry], [%i1, %next]
  %more = icmp slt i64 %i, %size
  br i1 %more, label %next, label %done
next:
  %f = getelementptr {v}, ptr %from, i64 %i
  %t = getelementptr {v}, ptr %to, i64 %i
  %x = load {v}, ptr %f, align {a}
  store {v} %x, ptr %t, align {a}
  %i1 = add i64 %i, 1
  br label %head
done:
  ret void
}}"""
