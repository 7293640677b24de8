"""Print a march as one function: the pieces of a step, and a loop that runs them until every lane is done.

Lanes are independent: the step leaves a lane that is done as it is, while its neighbours go on.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from cardan.machines.llvm.graph import print_graph
from cardan.machines.llvm.module import Module, VectorType
from cardan.machines.llvm.schedule import print_schedule
from cardan.program.graph import Graph
from cardan.program.march import Each, March, Piece, Scheduled


def print_march(march: March, symbol: str, module: Module) -> None:
    """Define `@symbol(ptr %in0, ..., ptr %out0, ..., ptr %state)` and the pieces that it calls.

    The last input is the largest number of steps. Ports without elements are not among the parameters, as in
    `Program.without_empty_ports`. `%state` addresses `march.state_size` vectors of lanes.
    """
    t, n, own = module.type, march.carried, march.carried + march.scratch
    lines, places, offset = [], [], 0
    for k, size in enumerate([*march.own_sizes, 1]):
        lines.append(f"  %s{k} = getelementptr {t.vector}, ptr %state, i64 {offset}")
        places.append(f"ptr %s{k}")
        offset += size
    kept = [(k, size) for k, size in enumerate(march.output_sizes) if size]
    for k, size in kept:
        lines += _moved(module, f"%s{k}", f"%in{k}", size)
    data = [f"ptr %in{n + k}" if size else "ptr null" for k, size in enumerate(march.data_sizes)]
    limit = n + len(data)
    lines += [
        f"  %limit = load {t.scalar}, ptr %in{limit}",  # that of the first lane: all lanes have the same
        f"  %most = fptosi {t.scalar} %limit to i64",
    ]
    lines.append(f"  %loop = getelementptr {t.vector}, ptr %state, i64 {offset}")
    lines += ["  br label %again", "again:", "  %count = phi i64 [0, %entry], [%next, %judge]"]
    printed: dict[Any, str] = {}
    for k, (part, times) in enumerate(march.pieces):
        calls = [
            _call(f"part{k}.{j}", piece, march, module, printed, [*places[:own], *data], places)
            for j, piece in enumerate(part)
        ]
        lines += _repeated(k, times, calls)
    lines += [
        "  br label %judge",
        "judge:",
        "  %next = add i64 %count, 1",
        f"  %busy = load {t.vector}, ptr %s{own}, align {t.align}",
        *_any(t, "%busy"),
        "  %left = icmp slt i64 %next, %most",
        "  %more = and i1 %left, %any",
        "  br i1 %more, label %again, label %done",
        "done:",
    ]
    for k, size in kept:
        lines += _moved(module, f"%out{k}", f"%s{k}", size)
    params = [f"ptr %in{k}" for k, size in enumerate(march.input_sizes) if size]
    params += [*(f"ptr %out{k}" for k, _ in kept), "ptr %state"]
    head = f"define internal void @{symbol}({', '.join(params)}) {module.attributes}{{"
    module.functions[symbol] = "\n".join([head, "entry:", *lines, "  ret void", "}"])


def _moved(module: Module, to: str, source: str, size: int) -> list[str]:
    """Lines that copy `size` elements; on a card without a loop, so that they can be registers."""
    t = module.type
    if not module.card:
        module.functions["move"] = _MOVE.format(v=t.vector, a=t.align)
        return [f"  call void @move(ptr {to}, ptr {source}, i64 {size})"]
    lines = []
    for e in range(size):
        x = f"{to}.of{source[1:]}.{e}"
        lines += [f"  {x}.{p[1:]} = getelementptr {t.vector}, ptr {p}, i64 {e}" for p in (source, to)]
        lines.append(f"  {x} = load {t.vector}, ptr {x}.{source[1:]}, align {t.align}")
        lines.append(f"  store {t.vector} {x}, ptr {x}.{to[1:]}, align {t.align}")
    return lines


def _changes(graph: Graph) -> Graph:
    """The graph without outputs that only write an input back to its own place."""
    outputs = [o for o in graph.outputs if graph.op[o[2]] != "input" or graph.args[o[2]] != (o[0], o[1])]
    return replace(graph, outputs=outputs)


def _call(
    symbol: str, piece: Piece, march: March, module: Module, printed: dict[Any, str], arguments: list[str],
    results: list[str],
) -> str:  # fmt: skip
    """Define a piece, unless one that does the same with other arguments is `printed`; the line that calls it."""
    if isinstance(piece, Graph):
        print_graph(_changes(piece), symbol, module, in_place=True, same=True)
        return f"  call void @{symbol}({', '.join([*arguments, *results])})"
    given = [*(arguments[k] for k in piece.reads), *(results[k] for k in piece.writes)]
    if isinstance(piece, Scheduled):
        given.append("ptr %loop")
        key: Any = id(piece.schedule)
        if key not in printed:
            print_schedule(piece.schedule, symbol, module, len(piece.reads), len(piece.writes))
    else:
        key = (id(piece.function), piece.count, *march.sizes_of(piece))
        if key not in printed:
            _print_each(symbol, piece, march.sizes_of(piece), module)
    return f"  call void @{printed.setdefault(key, symbol)}({', '.join(given)})"


def _print_each(symbol: str, piece: Each, sizes: list[int], module: Module) -> None:
    """Define a loop over the elements, and the function for one of them."""
    t, graph = module.type, piece.graph
    print_graph(graph, f"{symbol}.one", module, in_place=True)
    rows = [*graph.input_sizes, *graph.output_sizes]
    lines, given = [], []
    for k, (row, size) in enumerate(zip(rows, sizes, strict=True)):
        if size == row:
            given.append(f"ptr %p{k}")
            continue
        lines += [f"  %o{k} = mul i64 %i, {row}", f"  %e{k} = getelementptr {t.vector}, ptr %p{k}, i64 %o{k}"]
        given.append(f"ptr %e{k}")
    module.functions[symbol] = "\n".join(
        [
            f"define internal void @{symbol}({', '.join(f'ptr %p{k}' for k in range(len(rows)))}) {{",
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


def _any(t: VectorType, value: str) -> list[str]:
    """Lines that set `%any` to whether some lane of a value is not zero."""
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
