"""Print a graph as a table, and the loop that carries it out: for long graphs that must answer soon.

LLVM takes about 15 s for a million lines of straight code, even of its quick kind. A table is data, which it copies. The
loop has a few lines for each kind of operation. They are printed as those of straight code are, and so have its bits.

Values lie in memory, a vector of lanes each; a place serves again when its value is read no more. Operations of one
kind stand side by side where their operands allow it, so that a processor seldom guesses wrongly what comes next.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cardan.machines.llvm.graph import StraightLine, fused_products
from cardan.machines.llvm.module import Module
from cardan.program.graph import Graph

if TYPE_CHECKING:
    import numpy as np

LEAST = 1000  # values of a graph from which on it is a table
WINDOW = 1024  # operations among which those of one kind are put side by side
ON_STACK = 1 << 17  # bytes of values past which malloc provides them: threads may have small stacks

# One kind of operation: its inputs' number, and what is done with them, as a graph of its own.
Kind = tuple[int, tuple[tuple[str, tuple[int, ...]], ...]]


@dataclass(frozen=True)
class Operation:
    """One operation of a table: its kind, the value that it computes, and the values that it reads."""

    kind: int
    value: int
    reads: tuple[int, ...]


@dataclass(frozen=True)
class Table:
    """Operations in order, the kinds by number, and the place in memory of every value, of which `size` are needed.

    A place may belong to several values, one after the other. `constants` and `inputs` have theirs from the beginning.
    """

    kinds: list[Kind]
    operations: list[Operation]
    places: dict[int, int]
    size: int
    constants: list[float]
    inputs: list[tuple[int, int, int]]
    """Port, element and place."""
    outputs: list[tuple[int, int, int]]
    """The same."""

    def encoded(self, unit: int) -> np.ndarray:
        """Runs of one kind: its number, a count, and for each the places of the result and the operands in bytes."""
        import numpy as np

        numbers: list[int] = []
        place, last = self.places, -1
        head = 0
        for operation in self.operations:
            if operation.kind != last:
                last, head = operation.kind, len(numbers)
                numbers += (last, 0)
            numbers[head + 1] += 1
            numbers.append(unit * place[operation.value])
            numbers += [unit * place[a] for a in operation.reads]
        return np.array([*numbers, len(self.kinds), 0], "<i4")


def tabulate(graph: Graph, cleared: bool = False) -> Table:
    """The operations that matter, products fused into sums as in straight code; with `cleared` zeros are no outputs."""
    uses = graph.uses()
    fused = fused_products(graph, uses)
    number: dict[Kind, int] = {}
    operations: list[Operation] = []
    depth: list[int] = []  # how many operations of its window each waits for
    within: dict[int, int] = {}
    fixed: dict[str, list[int]] = {"const": [], "input": []}
    for k, (op, args) in enumerate(zip(graph.op, graph.args, strict=True)):
        if not uses[k] or k in fused:
            continue
        if op in fixed:
            fixed[op].append(k)
            continue
        kind, reads = _kind(graph, op, args, k, fused)
        if len(operations) % WINDOW == 0:
            within.clear()
        within[k] = 1 + max([within.get(a, 0) for a in reads])
        depth.append(within[k])
        operations.append(Operation(number.setdefault(kind, len(number)), k, reads))
    order = sorted(range(len(operations)), key=lambda n: (n // WINDOW, depth[n], operations[n].kind))
    operations = [operations[n] for n in order]
    stored = [o for o in graph.outputs if o[0] >= 0 and not (cleared and _is_zero(graph, o[2]))]
    begin = {k: n for n, k in enumerate([*fixed["const"], *fixed["input"]])}
    places, size = _placed(operations, begin, {k for _, _, k in stored})
    return Table(
        [*number], operations, places, size, [graph.args[k][0] for k in fixed["const"]],
        [(*graph.args[k], begin[k]) for k in fixed["input"]], [(p, e, places[k]) for p, e, k in stored],
    )  # fmt: skip


def _kind(
    graph: Graph, op: str, args: tuple[int, ...], k: int, fused: dict[int, int]
) -> tuple[Kind, tuple[int, ...]]:  # fmt: skip
    """The kind of an operation, and what it reads."""
    for place, a in enumerate(args):
        if fused.get(a) == k:
            factors = graph.args[a]
            reads = (factors[0], factors[-1], args[1 - place])
            return (3, (("mul", (0, 1)), (op, (3, 2) if place == 0 else (2, 3)))), reads
    return (len(args), ((op, tuple(range(len(args)))),)), args


def _is_zero(graph: Graph, k: int) -> bool:
    return graph.op[k] == "const" and graph.args[k][0] == 0.0


def _placed(operations: list[Operation], begin: dict[int, int], kept: set[int]) -> tuple[dict[int, int], int]:
    """A place for every value, and how many places there are; values in `begin` and `kept` keep theirs to the end."""
    last = {a: n for n, operation in enumerate(operations) for a in operation.reads}
    places, size, free = dict(begin), len(begin), list[int]()
    for n, operation in enumerate(operations):
        for a in {*operation.reads}:
            if last[a] == n and a not in begin and a not in kept:
                free.append(places[a])
        if free:
            places[operation.value] = free.pop()
        else:
            places[operation.value], size = size, size + 1
    return places, size


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
    t, (n, steps) = module.type, kind
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
