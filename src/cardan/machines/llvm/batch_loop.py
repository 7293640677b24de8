"""The loop over the rows of a batch around a body, printed as LLVM IR.

The body is any program as one function on lanes: `@body(ptr %in0, ..., ptr %out0, ..., <the rest>)`. Each pointer
addresses one vector of lanes per element of its port, in C order. The rest is `ptr %state`, memory of the body's own,
for a schedule, a march or stages, and the pointers to prefetch from, if any, for a graph. Nothing in it, or in what it
calls, depends on how the rows of a batch lie in memory, or on the machine; on one lane the same body can stand in a GPU
kernel that loads one row per thread.

Arrays come to the loop as pointers, with a stride in bytes from row to row and along every axis of a row. So W rows at
a time are loaded as vectors and transposed in registers, the body runs, and its results are transposed back. Rows whose
own elements are not contiguous, and the last rows of a batch that do not fill the lanes, go through a contiguous copy.
Nothing outside a row is read or written.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cardan.machines.llvm.graph import print_graph
from cardan.machines.llvm.library import without_library
from cardan.machines.llvm.march import print_march
from cardan.machines.llvm.module import Module, VectorType
from cardan.machines.llvm.schedule import print_schedule
from cardan.machines.llvm.stages import print_stages
from cardan.program.graph import Graph
from cardan.program.march import March
from cardan.program.program import Port, Program
from cardan.program.stages import Stages

if TYPE_CHECKING:
    from cardan.program.program import Recorded


def print_body(
    recorded: Recorded, program: Program, module: Module, ahead: tuple[int, ...] = (), cleared: bool = False
) -> int:
    """Define `@body` of what `program`, without empty ports, recorded; how many vectors `%state` addresses.

    `ahead` has, per port, how many cache lines to prefetch; only a graph does. If the number returned is 0, there is no
    `%state` among the parameters. With `cleared` the body of a graph may leave out zeros: its outputs are zero before.
    """
    if isinstance(recorded, Graph):
        print_graph(recorded, "body", module, ahead=ahead, cleared=cleared)
        return 0
    if isinstance(recorded, March):
        print_march(recorded, "body", module)
    elif isinstance(recorded, Stages):
        print_stages(recorded, "body", module)
    else:
        print_schedule(recorded, "body", module, len(program.inputs), len(program.outputs))
    return max(recorded.state_size, 1)


_LARGE = 256  # elements of a port past which its next rows are not prefetched
_ON_STACK = 1 << 17  # bytes of scratch past which it is on the heap: threads may have small stacks
_KEPT = 1 << 28  # bytes of scratch up to which it is kept for the next call: pages of new memory take as long as a call

# One block of memory is kept in the process, for any kernel (`machines.host`). First stands its size. A call that
# finds none, since another thread has it, or one too small, asks for its own; what comes back last is kept.
_MEMORY = """@cardan.kept.memory = external global ptr
define internal ptr @memory.take(i64 %size) {
entry:
  %old = atomicrmw xchg ptr @cardan.kept.memory, ptr null acq_rel
  %none = icmp eq ptr %old, null
  br i1 %none, label %new, label %look
look:
  %room = load i64, ptr %old
  %small = icmp ult i64 %room, %size
  br i1 %small, label %drop, label %done
drop:
  call void @free(ptr %old)
  br label %new
new:
  %heap = call ptr @malloc(i64 %size)
  %refused = icmp eq ptr %heap, null
  br i1 %refused, label %done, label %fresh
fresh:
  store i64 %size, ptr %heap
  br label %done
done:
  %found = phi ptr [%old, %look], [%heap, %new], [%heap, %fresh]
  ret ptr %found
}
define internal void @memory.give(ptr %heap) {
entry:
  %old = atomicrmw xchg ptr @cardan.kept.memory, ptr %heap acq_rel
  call void @free(ptr %old)
  ret void
}"""

_COPY = """define internal void @copy(ptr %dst, i64 %dr, i64 %dm, i64 %dn, ptr %src, i64 %sr, i64 %sm,
                           i64 %sn, i64 %rows, i64 %m, i64 %n) {{
entry:
  %some = icmp sgt i64 %rows, 0
  br i1 %some, label %row, label %done
row:
  %r = phi i64 [0, %entry], [%r1, %row.next]
  br label %outer
outer:
  %i = phi i64 [0, %row], [%i1, %outer.next]
  br label %inner
inner:
  %j = phi i64 [0, %outer], [%j1, %inner]
  %s0 = mul i64 %r, %sr
  %s1 = mul i64 %i, %sm
  %s2 = mul i64 %j, %sn
  %s3 = add i64 %s0, %s1
  %s4 = add i64 %s3, %s2
  %d0 = mul i64 %r, %dr
  %d1 = mul i64 %i, %dm
  %d2 = mul i64 %j, %dn
  %d3 = add i64 %d0, %d1
  %d4 = add i64 %d3, %d2
  %p = getelementptr i8, ptr %src, i64 %s4
  %o = getelementptr i8, ptr %dst, i64 %d4
  %x = load {s}, ptr %p, align 1
  store {s} %x, ptr %o, align 1
  %j1 = add i64 %j, 1
  %jc = icmp slt i64 %j1, %n
  br i1 %jc, label %inner, label %outer.next
outer.next:
  %i1 = add i64 %i, 1
  %ic = icmp slt i64 %i1, %m
  br i1 %ic, label %outer, label %row.next
row.next:
  %r1 = add i64 %r, 1
  %rc = icmp slt i64 %r1, %rows
  br i1 %rc, label %row, label %done
done:
  ret void
}}"""

# `direct`: the elements of a row are contiguous and the lanes are full
_FETCH = """define internal void @fetch(ptr %lanes, ptr %buf, ptr %src, i64 %rows, i64 %step, i64 %m, i64 %sm,
                            i64 %n, i64 %sn, i1 %direct) {{
  %size = mul i64 %m, %n
  br i1 %direct, label %go, label %stage
go:
  call void @gather(ptr %lanes, ptr %src, i64 %step, i64 %size)
  ret void
stage:
  %rb = mul i64 %size, {b}
  %nb = mul i64 %n, {b}
  call void @copy(ptr %buf, i64 %rb, i64 %nb, i64 {b}, ptr %src, i64 %step, i64 %sm, i64 %sn,
                  i64 %rows, i64 %m, i64 %n)
  %used = mul i64 %rows, %rb
  %rest = getelementptr i8, ptr %buf, i64 %used
  %pad = sub i64 {w}, %rows
  call void @copy(ptr %rest, i64 %rb, i64 %nb, i64 {b}, ptr %src, i64 0, i64 %sm, i64 %sn,
                  i64 %pad, i64 %m, i64 %n)
  call void @gather(ptr %lanes, ptr %buf, i64 %rb, i64 %size)
  ret void
}}"""

_GIVE = """define internal void @give(ptr %lanes, ptr %buf, ptr %dst, i64 %rows, i64 %step, i64 %m, i64 %sm,
                           i64 %n, i64 %sn, i1 %direct) {{
  %size = mul i64 %m, %n
  br i1 %direct, label %go, label %stage
go:
  call void @scatter(ptr %lanes, ptr %dst, i64 %step, i64 %size)
  ret void
stage:
  %rb = mul i64 %size, {b}
  %nb = mul i64 %n, {b}
  call void @scatter(ptr %lanes, ptr %buf, i64 %rb, i64 %size)
  call void @copy(ptr %dst, i64 %step, i64 %sm, i64 %sn, ptr %buf, i64 %rb, i64 %nb, i64 {b},
                  i64 %rows, i64 %m, i64 %n)
  ret void
}}"""

# on one lane a row is what the body takes: it is copied only where it is not contiguous
_FETCH_ONE = """define internal void @fetch(ptr %lanes, ptr %buf, ptr %src, i64 %rows, i64 %step, i64 %m,
                            i64 %sm, i64 %n, i64 %sn, i1 %direct) {{
  br i1 %direct, label %done, label %stage
stage:
  %nb = mul i64 %n, {b}
  call void @copy(ptr %lanes, i64 0, i64 %nb, i64 {b}, ptr %src, i64 0, i64 %sm, i64 %sn,
                  i64 1, i64 %m, i64 %n)
  br label %done
done:
  ret void
}}"""

_GIVE_ONE = """define internal void @give(ptr %lanes, ptr %buf, ptr %dst, i64 %rows, i64 %step, i64 %m,
                           i64 %sm, i64 %n, i64 %sn, i1 %direct) {{
  br i1 %direct, label %done, label %stage
stage:
  %nb = mul i64 %n, {b}
  call void @copy(ptr %dst, i64 0, i64 %sm, i64 %sn, ptr %lanes, i64 0, i64 %nb, i64 {b},
                  i64 1, i64 %m, i64 %n)
  br label %done
done:
  ret void
}}"""

# chooses which of the two loops takes the batch; %data holds their addresses, null while not compiled
_CHOOSE = """define void @loop(ptr %args, ptr %dims, ptr %steps, ptr %data) {{
  %n = load i64, ptr %dims
  %row = load ptr, ptr %data
  %at = getelementptr ptr, ptr %data, i64 1
  %wide = load ptr, ptr %at
  %no.row = icmp eq ptr %row, null
  %no.wide = icmp eq ptr %wide, null
  %few = icmp sle i64 %n, {few}
  %prefer = or i1 %few, %no.wide
  %not = xor i1 %no.row, true
  %use.row = and i1 %prefer, %not
  br i1 %use.row, label %one, label %many
one:
  tail call void %row(ptr %args, i64 %n, ptr %steps, ptr null)
  ret void
many:
  tail call void %wide(ptr %args, i64 %n, ptr %steps, ptr %row)
  ret void
}}"""


def _transpose(t: VectorType, name: list[str], lines: list[str], prefix: str) -> list[str]:
    """Transpose W vectors of W lanes: stage s swaps the off-diagonal s x s blocks, s = 1, 2, 4, ..."""
    w, v = t.width, t.vector
    s = 1
    while s < w:
        new = list(name)
        for i in range(w):
            if i & s:
                continue
            low = [e if not e & s else w + e - s for e in range(w)]
            high = [e + s if not e & s else w + e for e in range(w)]
            for k, mask in ((i, low), (i | s, high)):
                order = ", ".join(f"i32 {e}" for e in mask)
                new[k] = f"%{prefix}{s}.{k}"
                both = f"{v} {name[i]}, {v} {name[i | s]}"
                lines.append(f"  {new[k]} = shufflevector {both}, <{w} x i32> <{order}>")
        name = new
        s *= 2
    return name


def _blocks(t: VectorType, symbol: str, block: list[str], narrow: list[str]) -> str:
    """IR of a function over blocks of W columns, the last overlapping; `narrow` serves fewer columns."""
    w = t.width
    return "\n".join(
        [
            f"define internal void @{symbol}(ptr %lanes, ptr %rows, i64 %step, i64 %size) {{",
            *("entry:", f"  %last = sub i64 %size, {w}", "  %less = icmp slt i64 %last, 0"),
            *("  br i1 %less, label %narrow, label %wide", "narrow:", *narrow, "  ret void"),
            *("wide:", "  %j = phi i64 [0, %entry], [%j2, %wide]", *block, f"  %j1 = add i64 %j, {w}"),
            *("  %end = icmp sge i64 %j, %last", "  %over = icmp sgt i64 %j1, %last"),
            *("  %j2 = select i1 %over, i64 %last, i64 %j1", "  br i1 %end, label %done, label %wide"),
            *("done:", "  ret void", "}"),
        ]
    )


def _addresses(t: VectorType, prefix: str, j: str) -> list[str]:
    """Pointers to column `j` of each row (`r`) and to the lanes of each of W elements from `j` (`l`)."""
    lines = []
    for k in range(t.width):
        lines += [
            f"  %{prefix}o{k} = mul i64 %step, {k}",
            f"  %{prefix}b{k} = getelementptr i8, ptr %rows, i64 %{prefix}o{k}",
            f"  %{prefix}r{k} = getelementptr {t.scalar}, ptr %{prefix}b{k}, i64 {j}",
            f"  %{prefix}e{k} = add i64 {j}, {k}",
            f"  %{prefix}l{k} = getelementptr {t.vector}, ptr %lanes, i64 %{prefix}e{k}",
        ]
    return lines


def _print_gather(module: Module) -> None:
    """Define `@gather` and `@scatter`: W rows of `size` contiguous elements to and from lanes."""
    t = module.type
    w, v, a = t.width, t.vector, t.align
    masked = (f"<{w} x i1>", f"@llvm.masked.load.{t.suffix}.p0", f"@llvm.masked.store.{t.suffix}.p0")
    module.declarations.add(f"declare {v} {masked[1]}(ptr, i32, {masked[0]}, {v})")
    module.declarations.add(f"declare void {masked[2]}({v}, ptr, i32, {masked[0]})")
    numbers = ", ".join(f"i64 {k}" for k in range(w))
    mask = [
        f"  %size.0 = insertelement <{w} x i64> poison, i64 %size, i64 0",
        f"  %size.v = shufflevector <{w} x i64> %size.0, <{w} x i64> poison, <{w} x i32> zeroinitializer",
        f"  %mask = icmp ult <{w} x i64> <{numbers}>, %size.v",
    ]

    def both(prefix: str, j: str, load: str, store: str) -> list[str]:
        lines = _addresses(t, prefix, j)
        lines += ["  " + load.format(k=k, p=prefix) for k in range(w)]
        names = _transpose(t, [f"%{prefix}x{k}" for k in range(w)], lines, prefix + "t")
        return lines + ["  " + store.format(k=k, p=prefix, x=names[k]) for k in range(w)]

    # the lanes have room for W elements past the end, so that a narrow port may write whole blocks there
    load_row = f"%{{p}}x{{k}} = load {v}, ptr %{{p}}r{{k}}, align {t.bytes}"
    some = f"(ptr %{{p}}r{{k}}, i32 {t.bytes}, {masked[0]} %mask, {v} zeroinitializer)"
    load_some = f"%{{p}}x{{k}} = call {v} {masked[1]}{some}"
    to_lanes = f"store {v} {{x}}, ptr %{{p}}l{{k}}, align {a}"
    module.functions["gather"] = _blocks(
        t, "gather", both("w", "%j", load_row, to_lanes), mask + both("n", "0", load_some, to_lanes)
    )
    load_lanes = f"%{{p}}x{{k}} = load {v}, ptr %{{p}}l{{k}}, align {a}"
    to_row = f"store {v} {{x}}, ptr %{{p}}r{{k}}, align {t.bytes}"
    to_some = f"call void {masked[2]}({v} {{x}}, ptr %{{p}}r{{k}}, i32 {t.bytes}, {masked[0]} %mask)"
    module.functions["scatter"] = _blocks(
        t, "scatter", both("w", "%j", load_lanes, to_row), mask + both("n", "0", load_lanes, to_some)
    )


class _BatchLoop:
    """The loop over rows of one program, under construction."""

    def __init__(self, program: Program, module: Module, state: int, few: int, sparse: set[int]) -> None:
        self.inputs, self.outputs, self.ports = program.inputs, program.outputs, program.ports
        self.module, self.t = module, module.type
        self.state = state  # numbers per lane that the body keeps to itself
        self.few = few
        self.sparse = sparse  # outputs whose lanes are set to zero once, before the first rows
        self.lines: list[str] = []

    def _scratch(self) -> int:
        """Name the lane buffer and the copy buffer of each port in one scratch area; its size in bytes."""
        t, offset = self.t, 0
        for j, port in enumerate(self.ports):
            for kind, items in (("lanes", (port.size + t.width) * t.width), ("buf", port.size * t.width)):
                self.lines.append(f"  %{kind}{j} = getelementptr i8, ptr %scratch, i64 {offset}")
                offset += -(-items * t.bytes // 64) * 64
        self.lines.append(f"  %state = getelementptr i8, ptr %scratch, i64 {offset}")
        return offset + self.state * t.align

    def _clear(self) -> None:
        """Set the lanes of outputs with structural zeros to zero; the body stores the rest, again and again."""
        for k in sorted(self.sparse):
            self.module.declarations.add("declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)")
            place, size = f"ptr %lanes{len(self.inputs) + k}", self.outputs[k].size * self.t.align
            self.lines.append(f"  call void @llvm.memset.p0.i64({place}, i8 0, i64 {size}, i1 false)")

    def _describe(self, j: int, port: Port, axis: int) -> int:
        """Load pointer, step and core strides of port `j`, and test for contiguous rows; the next axis."""
        t, (m, n) = self.t, port.matrix
        out = self.lines
        out += [f"  %a{j} = getelementptr ptr, ptr %args, i64 {j}", f"  %base{j} = load ptr, ptr %a{j}"]
        out += [f"  %s{j} = getelementptr i64, ptr %steps, i64 {j}", f"  %step{j} = load i64, ptr %s{j}"]
        strides = {"sm": n * t.bytes, "sn": t.bytes}
        for name in {0: [], 1: ["sn"], 2: ["sm", "sn"]}[len(port.shape)]:
            out.append(f"  %{name}p{j} = getelementptr i64, ptr %steps, i64 {len(self.ports) + axis}")
            out.append(f"  %{name}{j} = load i64, ptr %{name}p{j}")
            out.append(f"  %{name}c{j} = icmp eq i64 %{name}{j}, {strides.pop(name)}")
            axis += 1
        for name, contiguous in strides.items():
            out += [f"  %{name}{j} = add i64 0, {contiguous}", f"  %{name}c{j} = icmp eq i64 0, 0"]
        # the stride along an axis of one element means nothing
        one = {"sm": m == 1, "sn": n == 1}
        tests = [f"%{name}c{j}" if not one[name] else "true" for name in ("sm", "sn")]
        out.append(f"  %whole{j} = and i1 {tests[0]}, {tests[1]}")
        return axis

    def print(self, symbol: str) -> str:
        """IR of `void @symbol(ptr args, i64 n, ptr steps, ptr row_loop)`."""
        head = [f"define void @{symbol}(ptr %args, i64 %n, ptr %steps, ptr %row) {{", "entry:"]
        size = self._scratch()
        if size <= _ON_STACK:
            scratch, free, ready = [f"  %scratch = alloca i8, i64 {size}, align 64"], [], "entry"
        else:
            self.module.declarations |= {"declare ptr @malloc(i64)", "declare void @free(ptr)"}
            take, give = ("memory.take", "memory.give") if size <= _KEPT else ("malloc", "free")
            if take == "memory.take":
                self.module.functions["memory.take"] = _MEMORY
            scratch = [
                f"  %heap = call ptr @{take}(i64 {size + 128})",
                *self.module.unless_refused(size),
                "  %heap.i = ptrtoint ptr %heap to i64",
                "  %heap.up = add i64 %heap.i, 127",  # past the size
                "  %heap.al = and i64 %heap.up, -64",
                "  %scratch = inttoptr i64 %heap.al to ptr",
            ]
            free, ready = [f"  call void @{give}(ptr %heap)"], "ready"
        axis = 0
        for j, port in enumerate(self.ports):
            axis = self._describe(j, port, axis)
        self._clear()
        head += [*scratch, f"  %shifted = alloca ptr, i64 {len(self.ports)}", *self.lines]
        self.lines = []
        w = self.t.width
        self.lines += [
            "  br label %head",
            "head:",
            f"  %i = phi i64 [0, %{ready}], [%next, %work]",
            "  %left = sub i64 %n, %i",
            "  %any = icmp sgt i64 %left, 0",
            "  br i1 %any, label %check, label %done",
            "check:",
            f"  %full = icmp sge i64 %left, {w}",
            f"  %rows = select i1 %full, i64 {w}, i64 %left",
            f"  %next = add i64 %i, {w}",
        ]
        if w > 1:
            self._tail()
        else:
            self.lines += ["  br label %work", "work:"]
        self._work()
        return "\n".join(head + self.lines + ["  br label %head", "done:", *free, "  ret void", "}"])

    def _tail(self) -> None:
        """Leave the last few rows to the one-lane loop if it is compiled."""
        p = len(self.ports)
        self.lines += [
            f"  %scant = icmp sle i64 %left, {self.few}",
            "  %have = icmp ne ptr %row, null",
            "  %by.row = and i1 %scant, %have",
            "  br i1 %by.row, label %tail, label %work",
            "tail:",
        ]
        for j in range(p):
            self.lines += [
                f"  %to{j} = mul i64 %i, %step{j}",
                f"  %tp{j} = getelementptr i8, ptr %base{j}, i64 %to{j}",
                f"  %ta{j} = getelementptr ptr, ptr %shifted, i64 {j}",
                f"  store ptr %tp{j}, ptr %ta{j}",
            ]
        self.lines += ["  call void %row(ptr %shifted, i64 %left, ptr %steps, ptr null)", "  br label %done", "work:"]

    def _call(self, what: str, j: int, port: Port) -> None:
        """Call `fetch` or `give` for port `j`."""
        m, n = port.matrix
        self.lines.append(
            f"  call void @{what}(ptr %lanes{j}, ptr %buf{j}, ptr %p{j}, i64 %rows, i64 %step{j}, "
            f"i64 {m}, i64 %sm{j}, i64 {n}, i64 %sn{j}, i1 %direct{j})"
        )

    def _work(self) -> None:
        """Fetch, compute, give: one pass over up to W rows."""
        first_out = len(self.inputs)
        for j, _ in enumerate(self.ports):
            self.lines += [
                f"  %o{j} = mul i64 %i, %step{j}",
                f"  %p{j} = getelementptr i8, ptr %base{j}, i64 %o{j}",
                f"  %direct{j} = and i1 %whole{j}, %full",
                f"  %n{j} = mul i64 %next, %step{j}",
                f"  %next{j} = getelementptr i8, ptr %base{j}, i64 %n{j}",
            ]
        name = "lanes"
        if self.t.width == 1:
            name = "where"
            for j, _ in enumerate(self.ports):
                self.lines.append(f"  %where{j} = select i1 %direct{j}, ptr %p{j}, ptr %lanes{j}")
        for j, port in enumerate(self.inputs):
            self._call("fetch", j, port)
        places = [f"ptr %{name}{j}" for j in range(len(self.ports))]
        if self.state:
            places.append("ptr %state")
        elif self.t.width > 1:
            places += [f"ptr %next{j}" for j in range(len(self.ports))]
        self.lines.append(f"  call void @body({', '.join(places)})")
        for j, port in enumerate(self.outputs, first_out):
            self._call("give", j, port)


def _cache_lines(port: Port, t: VectorType) -> int:
    """Cache lines of the next W rows to prefetch while the body runs; many would evict its spilled values."""
    return -(-port.size * t.align // 64) if port.size <= _LARGE else 0


def print_batch_loop(
    recorded: Recorded, program: Program, t: VectorType, few: int, tables: bool = False, library: bool = False
) -> str:  # fmt: skip
    """A complete module: `@rows` takes as many rows at a time as `t` has lanes, and `@loop` chooses.

    `@loop(ptr args, ptr dims, ptr steps, ptr data)` has the arguments of the inner loop of a NumPy ufunc. `data` holds
    the addresses of two such `@rows`, on one lane and on many; up to `few` rows go to the first. `program` has no empty
    ports. With `tables` long graphs are tables; with `library` functions of the library are named, and not there.
    """
    module = Module(t, tables=tables)
    ahead = () if t.width == 1 else tuple(_cache_lines(port, t) for port in program.ports)
    cleared = t.width > 1 and isinstance(recorded, Graph)  # on one lane the body writes to the rows themselves
    sparse = recorded.sparse_outputs() if cleared and isinstance(recorded, Graph) else set()
    state = print_body(recorded, program, module, ahead, cleared)
    print_moves(module)
    module.functions["loop"] = _CHOOSE.format(few=few)
    module.functions["rows"] = _BatchLoop(program, module, state, few, sparse).print("rows")
    return without_library(module) if library else module.text()


def print_moves(module: Module) -> None:
    """Define what moves rows of arrays to lanes and back."""
    t = module.type
    sizes = {"s": t.scalar, "b": t.bytes, "w": t.width}
    texts = {"copy": _COPY, "fetch": _FETCH, "give": _GIVE}
    if t.width == 1:
        texts |= {"fetch": _FETCH_ONE, "give": _GIVE_ONE}
    else:
        _print_gather(module)
    for name, text in texts.items():
        module.functions[name] = text.format(**sizes)
