"""Print a step and the loop around it as one body: a kernel that repeats a step until every lane is done.

The step is a graph `(state..., data...) -> (state..., busy)`. Lanes are independent: one that is done must be left as
it is by the step, while its neighbours go on. The body has the interface of a straight-line one, so that the same
loop over rows drives it: the state comes in and goes out, the data only come in, and the last input is the largest
number of repetitions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from cardan.kernels.graph import read
from cardan.kernels.llvm import Module, print_body


@dataclass(frozen=True)
class March:
    """A recorded step, of which the first `carried` inputs are the state, and its program's port sizes."""

    step: Any
    carried: int

    @property
    def sizes(self) -> list[int]:
        """Numbers in each port of the state."""
        return [int(self.step.numel_in(k)) for k in range(self.carried)]

    @property
    def state(self) -> int:
        """Numbers of state that one lane needs, `busy` included."""
        return sum(self.sizes) + 1

    def operations(self) -> dict[str, int]:
        """How many of each operation one step takes."""
        return read(self.step).operations()


def print_march(march: March, module: Module) -> None:
    """Define `@body(ptr %in0, ..., ptr %limit, ptr %out0, ..., ptr %state)` and the `@step` that it repeats."""
    t, n = module.lanes, march.carried
    n_in = int(march.step.n_in())
    graph = read(march.step)
    print_body(graph, "step", t.width, t.scalar, module=module, inputs=n_in, outputs=n + 1, in_place=True)
    align = t.bytes * t.width
    lines, places, offset = [], [], 0
    for k, size in enumerate([*march.sizes, 1]):
        lines.append(f"  %s{k} = getelementptr {t.vector}, ptr %state, i64 {offset}")
        places.append(f"ptr %s{k}")
        offset += size
    for k, size in enumerate(march.sizes):
        lines += [f"  call void @move(ptr %s{k}, ptr %in{k}, i64 {size})"]
    data = [f"ptr %in{k}" for k in range(n, n_in)]
    lines += [
        f"  %limit = load {t.scalar}, ptr %in{n_in}",  # the first lane's: the same for all
        f"  %most = fptosi {t.scalar} %limit to i64",
        "  br label %again",
        "again:",
        "  %count = phi i64 [0, %entry], [%next, %again]",
        f"  call void @step({', '.join([*places[:n], *data, *places])})",
        "  %next = add i64 %count, 1",
        f"  %busy = load {t.vector}, ptr %s{n}, align {align}",
        *_any(t, "%busy"),
        "  %left = icmp slt i64 %next, %most",
        "  %more = and i1 %left, %any",
        "  br i1 %more, label %again, label %done",
        "done:",
    ]
    lines += [f"  call void @move(ptr %out{k}, ptr %s{k}, i64 {size})" for k, size in enumerate(march.sizes)]
    params = [f"ptr %in{k}" for k in range(n_in + 1)] + [f"ptr %out{k}" for k in range(n)] + ["ptr %state"]
    module.functions["move"] = _MOVE.format(v=t.vector, a=align)
    body = ["define internal void @body(" + ", ".join(params) + ") {", "entry:", *lines, "  ret void", "}"]
    module.functions["body"] = "\n".join(body)


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
