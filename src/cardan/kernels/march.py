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

from cardan.kernels.graph import Graph, read
from cardan.kernels.llvm import Module, print_body


@dataclass(frozen=True)
class March:
    """The recorded parts of a step, each with how often it runs, and how many of their inputs are state and scratch."""

    parts: tuple[tuple[Any, int], ...]
    carried: int
    scratch: int = 0

    @property
    def sizes(self) -> list[int]:
        """Numbers in each port of the state and of the scratch."""
        return [int(self.parts[0][0].numel_in(k)) for k in range(self.carried + self.scratch)]

    @property
    def state(self) -> int:
        """Numbers of memory that one lane needs, `busy` included."""
        return sum(self.sizes) + 1

    def operations(self) -> dict[str, int]:
        """How many of each operation one step takes."""
        total: Counter[str] = Counter()
        for function, times in self.parts:
            for op, count in read(function).operations().items():
                total[op] += times * count
        return dict(total)


def print_march(march: March, module: Module) -> None:
    """Define `@body(ptr %in0, ..., ptr %limit, ptr %out0, ..., ptr %state)` and the parts that it repeats."""
    t, n, own = module.lanes, march.carried, march.carried + march.scratch
    inputs = int(march.parts[0][0].n_in())
    for k, (function, _) in enumerate(march.parts):
        graph = _changes(read(function))
        print_body(graph, f"part{k}", t.width, t.scalar, module=module, inputs=inputs, outputs=own + 1, in_place=True)
    align = t.bytes * t.width
    lines, places, offset = [], [], 0
    for k, size in enumerate([*march.sizes, 1]):
        lines.append(f"  %s{k} = getelementptr {t.vector}, ptr %state, i64 {offset}")
        places.append(f"ptr %s{k}")
        offset += size
    lines += [f"  call void @move(ptr %s{k}, ptr %in{k}, i64 {size})" for k, size in enumerate(march.sizes[:n])]
    data = [f"ptr %in{n + k}" for k in range(inputs - own)]
    limit = n + len(data)
    lines += [
        f"  %limit = load {t.scalar}, ptr %in{limit}",  # the first lane's: the same for all
        f"  %most = fptosi {t.scalar} %limit to i64",
        "  br label %again",
        "again:",
        "  %count = phi i64 [0, %entry], [%next, %judge]",
    ]
    for k, (_, times) in enumerate(march.parts):
        lines += _repeated(k, times, ", ".join([*places[:own], *data, *places]))
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
    lines += [f"  call void @move(ptr %out{k}, ptr %s{k}, i64 {size})" for k, size in enumerate(march.sizes[:n])]
    params = [f"ptr %in{k}" for k in range(limit + 1)] + [f"ptr %out{k}" for k in range(n)] + ["ptr %state"]
    module.functions["move"] = _MOVE.format(v=t.vector, a=align)
    body = ["define internal void @body(" + ", ".join(params) + ") {", "entry:", *lines, "  ret void", "}"]
    module.functions["body"] = "\n".join(body)


def _changes(graph: Graph) -> Graph:
    """The graph without outputs that only write an input back to its own place."""
    outputs = [o for o in graph.outputs if graph.op[o[2]] != "input" or graph.args[o[2]] != (o[0], o[1])]
    return Graph(graph.op, graph.args, outputs)


def _repeated(k: int, times: int, arguments: str) -> list[str]:
    """Lines that call part `k` as often as it runs."""
    call = f"  call void @part{k}({arguments})"
    if times == 1:
        return [call]
    return [
        f"  br label %in{k}.enter",
        f"in{k}.enter:",
        f"  br label %in{k}.again",
        f"in{k}.again:",
        f"  %in{k}.count = phi i64 [0, %in{k}.enter], [%in{k}.next, %in{k}.again]",
        call,
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
