"""Print a graph as a table, and the loop that carries it out: for long graphs that must answer soon.

LLVM takes about 15 s for a million lines of straight code, even of its quick kind. A table is data, which it copies.
The loop has a few lines for each kind of operation, printed as those of straight code are; so it has the same bits.

Values lie in memory, a vector of lanes each; a place serves again when its value is read no more. Operations of one
kind stand side by side where their operands allow it, so that a processor seldom guesses wrongly what comes next.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cardan.machines.llvm.graph import StraightLine, fused_products, with_choices
from cardan.machines.llvm.module import Module
from cardan.program.graph import Graph

if TYPE_CHECKING:
    import numpy as np

LEAST = 1000  # values of a graph from which on it is a table
WINDOW = 1024  # operations among which those of one kind are put side by side
ON_STACK = 1 << 17  # bytes of values past which malloc provides them: threads may have small stacks

# One kind of operation: how many numbers it reads, and what is done with them, as a graph of its own.
Kind = tuple[int, tuple[tuple[str, tuple[int, ...]], ...]]


@dataclass(frozen=True)
class Table:
    """Operations in order: kind, value computed and values read; the place in memory of every value, of `size` places.

    A place may belong to several values, one after the other. Constants and inputs have theirs from the beginning.
    """

    kinds: list[Kind]
    kind: list[int]
    value: list[int]
    reads: list[tuple[int, ...]]
    place: list[int]
    size: int
    constants: list[float]
    inputs: list[tuple[int, int, int]]
    """Port, element and place."""
    outputs: list[tuple[int, int, int]]
    """The same."""

    def encoded(self, unit: int) -> np.ndarray:
        """Runs of one kind: its number, a count, and for each the places of the result and the operands in bytes."""
        import numpy as np

        kind, place = np.array(self.kind, dtype=np.intp), np.array(self.place) * unit
        begins = np.flatnonzero(np.diff(kind, prepend=-1))
        counts = np.diff(begins, append=len(kind))
        width = np.array([1 + count for count, _ in self.kinds], dtype=np.intp)[kind]
        width[begins] += 2
        after = np.cumsum(width)
        table = np.empty(after[-1] + 2, "<i4")
        heads = after[begins] - width[begins]
        table[heads], table[heads + 1] = kind[begins], counts
        for number, (count, _) in enumerate(self.kinds):
            of = np.flatnonzero(kind == number)
            value = np.array([(self.value[n], *self.reads[n]) for n in of.tolist()], dtype=np.intp)
            table[after[of][:, None] + np.arange(-1 - count, 0)] = place[value]
        table[-2:] = len(self.kinds), 0
        return table


def tabulate(graph: Graph, cleared: bool = False) -> Table:
    """The operations that matter, products fused into sums as in straight code; with `cleared` zeros are no outputs."""
    import numpy as np

    graph = with_choices(graph)
    uses = graph.uses()
    fused = fused_products(graph, uses)
    number: dict[tuple[str, int], int] = {}  # of a kind, by the operation and the place of the product that it takes
    kinds: list[Kind] = []
    kind: list[int] = []
    value: list[int] = []
    reads: list[tuple[int, ...]] = []
    depth = [0] * len(graph.op)  # behind how many operations of its window each is, in windows that follow one another
    fixed: dict[str, list[int]] = {"const": [], "input": []}
    floor = 0
    for k, (op, args) in enumerate(zip(graph.op, graph.args, strict=True)):
        if not uses[k] or k in fused:
            continue
        if op in fixed:
            fixed[op].append(k)
            continue
        takes = -1
        if op == "add" or op == "sub":
            takes = 0 if fused.get(args[0]) == k else 1 if fused.get(args[1]) == k else -1
            if takes >= 0:
                factors = graph.args[args[takes]]
                args = (factors[0], factors[-1], args[1 - takes])
        found = number.get((op, takes))
        if found is None:
            found = number[op, takes] = len(kinds)
            kinds.append(_kind(op, len(args), takes))
        if len(value) % WINDOW == 0:
            floor += WINDOW
        depth[k] = 1 + max(floor, *[depth[a] for a in args])
        kind.append(found)
        value.append(k)
        reads.append(args)
    order = np.lexsort((kind, [depth[k] for k in value])).tolist()
    kind, value, reads = ([column[n] for n in order] for column in (kind, value, reads))
    stored = [o for o in graph.outputs if o[0] >= 0 and not (cleared and _is_zero(graph, o[2]))]
    first = [*fixed["const"], *fixed["input"]]
    place, size = _placed(len(graph.op), first, value, reads, {k for _, _, k in stored})
    return Table(
        kinds, kind, value, reads, place, size, [graph.args[k][0] for k in fixed["const"]],
        [(*graph.args[k], place[k]) for k in fixed["input"]], [(p, e, place[k]) for p, e, k in stored],
    )  # fmt: skip


def _kind(op: str, arity: int, takes: int) -> Kind:
    """An operation on numbers of its own; or a sum whose operand `takes` is the product of the first two numbers."""
    if takes < 0:
        return arity, ((op, tuple(range(arity))),)
    return 3, (("mul", (0, 1)), (op, (3, 2) if takes == 0 else (2, 3)))


def _is_zero(graph: Graph, k: int) -> bool:
    return graph.op[k] == "const" and graph.args[k][0] == 0.0


def _placed(
    count: int, first: list[int], value: list[int], reads: list[tuple[int, ...]], kept: set[int]
) -> tuple[list[int], int]:  # fmt: skip
    """A place for each of `count` values, and how many there are; `first` and `kept` have theirs to the end."""
    last = [-1] * count
    for n, operands in enumerate(reads):
        for a in operands:
            last[a] = n
    for k in (*first, *kept):
        last[k] = -1
    place, size, free = [0] * count, len(first), list[int]()
    for n, k in enumerate(first):
        place[k] = n
    for n, operands in enumerate(reads):
        for a in operands:
            if last[a] == n:
                last[a] = -1  # an operation may read a value twice
                free.append(place[a])
        if free:
            place[value[n]] = free.pop()
        else:
            place[value[n]], size = size, size + 1
    return place, size


def print_table(graph: Graph, symbol: str, module: Module, cleared: bool, ahead: int) -> None:
    """Define `@symbol` as `print_graph` does, as a table and the loop for it. It stores all outputs at the end.

    It does not use its last `ahead` pointers.
    """
    import numpy as np

    t, table = module.type, tabulate(graph, cleared)
    lines: list[str] = []

    def data(part: str, numbers: Any) -> str:
        hexadecimal = "\\" + numbers.tobytes().hex("\\")
        declared = f'@{symbol}.{part} = internal constant [{numbers.nbytes} x i8] c"{hexadecimal}", align 8'
        module.declarations.add(declared)
        return f"ptr @{symbol}.{part}"

    def move(part: str, to: str, source: str, pairs: list[tuple[int, int]]) -> None:
        if pairs:
            given = f"ptr {to}, ptr {source}, {data(part, np.array(pairs, '<i4') * np.int32(t.align))}"
            lines.append(f"  call void @table.move({given}, i64 {len(pairs)})")

    if table.constants:
        given = data("constants", np.array(table.constants, "<f8" if t.bytes == 8 else "<f4"))
        lines.append(f"  call void @table.spread(ptr %values, {given}, i64 {len(table.constants)})")
    for port, _ in enumerate(graph.input_sizes):
        move(f"in{port}", "%values", f"%in{port}", [(place, e) for p, e, place in table.inputs if p == port])
    lines.append(f"  call void @{symbol}.run(ptr %values, {data('table', table.encoded(t.align))})")
    for port, _ in enumerate(graph.output_sizes):
        move(f"out{port}", f"%out{port}", "%values", [(e, place) for p, e, place in table.outputs if p == port])
    names = {"in": len(graph.input_sizes), "out": len(graph.output_sizes), "ahead": ahead}
    params = [f"ptr %{name}{i}" for name, count in names.items() for i in range(count)]
    first, last = _memory(table.size * t.align, module)
    head = f"define internal void @{symbol}({', '.join(params)}) {{"
    module.functions[f"{symbol}.run"] = _loop(f"{symbol}.run", table.kinds, module)
    module.functions["table.move"] = _MOVE.format(v=t.vector, a=t.align)
    one = "x" if t.width == 1 else "one"
    spread = {"v": t.vector, "s": t.scalar, "a": t.align, "b": t.bytes, "one": one, "x": _splat(module)}
    module.functions["table.spread"] = _SPREAD.format(**spread)
    module.functions[symbol] = "\n".join([head, "entry:", *first, *lines, *last, "  ret void", "}"])


def _memory(size: int, module: Module) -> tuple[list[str], list[str]]:
    """Lines that provide `%values` of so many bytes, and that release it."""
    if size <= ON_STACK:
        return [f"  %values = alloca i8, i64 {max(size, 1)}, align 64"], []
    module.declarations |= {"declare ptr @malloc(i64)", "declare void @free(ptr)"}
    lines = [
        f"  %heap = call ptr @malloc(i64 {size + 64})",
        *module.unless_refused(size),
        "  %heap.i = ptrtoint ptr %heap to i64",
        "  %heap.up = add i64 %heap.i, 64",
        "  %heap.al = and i64 %heap.up, -64",
        "  %values = inttoptr i64 %heap.al to ptr",
    ]
    return lines, ["  call void @free(ptr %heap)"]


def _splat(module: Module) -> str:
    """Lines that spread `%one` over the lanes of `%x`; none for one lane."""
    v, s = module.type.vector, module.type.scalar
    if module.type.width == 1:
        return ""
    return (
        f"  %first = insertelement {v} poison, {s} %one, i64 0\n"
        f"  %x = shufflevector {v} %first, {v} poison, {module.type.of('i32')} zeroinitializer"
    )


def _loop(symbol: str, kinds: list[Kind], module: Module) -> str:
    """The loop over the runs of a table, with a loop for every kind over the operations of a run."""
    cases = " ".join(f"i32 {n}, label %k{n}" for n in range(len(kinds)))
    ends = ", ".join(["[%table, %entry]", *(f"[%k{n}.p1, %k{n}.end]" for n in range(len(kinds)))])
    lines = [
        f"define internal void @{symbol}(ptr %values, ptr %table) {{",
        "entry:",
        "  br label %next",
        "next:",
        f"  %p = phi ptr {ends}",
        "  %kind = load i32, ptr %p, align 4",
        "  %q = getelementptr i8, ptr %p, i64 4",
        "  %count = load i32, ptr %q, align 4",
        "  %begin = getelementptr i8, ptr %p, i64 8",
        f"  switch i32 %kind, label %done [{cases}]",
    ]
    for n, kind in enumerate(kinds):
        lines += _case(f"k{n}", kind, module)
    return "\n".join([*lines, "done:", "  ret void", "}"])


def _case(label: str, kind: Kind, module: Module) -> list[str]:
    """Lines of one kind: load the operands, do what straight code does, store the result."""
    n, steps = kind
    graph = Graph(["input"] * n, [(0, i) for i in range(n)], [(0, 0, n + len(steps) - 1)], [n], [1])
    for op, args in steps:
        graph.op.append(op)
        graph.args.append(args)
    line = StraightLine(graph, module, f"{label}.v")
    lines = [
        f"{label}:",
        f"  br label %{label}.again",
        f"{label}.again:",
        f"  %{label}.p = phi ptr [%begin, %{label}], [%{label}.p1, %{label}.end]",
        f"  %{label}.left = phi i32 [%count, %{label}], [%{label}.left1, %{label}.end]",
    ]
    addresses = []
    for i in range(n + 1):
        at = line.new(f"getelementptr i8, ptr %{label}.p, i64 {4 * i}")
        offset = line.new(f"zext i32 {line.new(f'load i32, ptr {at}, align 4')} to i64")
        addresses.append(line.new(f"getelementptr i8, ptr %values, i64 {offset}"))
    line.name = {i: line.load(address) for i, address in enumerate(addresses[1:])}
    line.store(line.value(len(graph.op) - 1), addresses[0])
    return [
        *lines,
        *line.lines,
        f"  br label %{label}.end",
        f"{label}.end:",
        f"  %{label}.p1 = getelementptr i8, ptr %{label}.p, i64 {4 * (n + 1)}",
        f"  %{label}.left1 = sub i32 %{label}.left, 1",
        f"  %{label}.more = icmp ne i32 %{label}.left1, 0",
        f"  br i1 %{label}.more, label %{label}.again, label %next",
    ]


_MOVE = """define internal void @table.move(ptr %to, ptr %from, ptr %table, i64 %size) {{
entry:
  br label %again
again:
  %i = phi i64 [0, %entry], [%i1, %again]
  %row = getelementptr [2 x i32], ptr %table, i64 %i
  %col = getelementptr i8, ptr %row, i64 4
  %t32 = load i32, ptr %row, align 4
  %f32 = load i32, ptr %col, align 4
  %t64 = zext i32 %t32 to i64
  %f64 = zext i32 %f32 to i64
  %t = getelementptr i8, ptr %to, i64 %t64
  %f = getelementptr i8, ptr %from, i64 %f64
  %x = load {v}, ptr %f, align {a}
  store {v} %x, ptr %t, align {a}
  %i1 = add i64 %i, 1
  %more = icmp slt i64 %i1, %size
  br i1 %more, label %again, label %done
done:
  ret void
}}"""

_SPREAD = """define internal void @table.spread(ptr %to, ptr %from, i64 %size) {{
entry:
  br label %again
again:
  %i = phi i64 [0, %entry], [%i1, %again]
  %f = getelementptr {s}, ptr %from, i64 %i
  %t = getelementptr {v}, ptr %to, i64 %i
  %{one} = load {s}, ptr %f, align {b}
{x}
  store {v} %x, ptr %t, align {a}
  %i1 = add i64 %i, 1
  %more = icmp slt i64 %i1, %size
  br i1 %more, label %again, label %done
done:
  ret void
}}"""
