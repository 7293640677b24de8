"""The kernel around a program's body, printed as LLVM IR for a GPU: one thread takes one row of a batch.

`@rows` has 64-bit arguments only (`forms.words_of` puts them together): the number of rows, then for each port its
address, its strides in bytes along up to three axes of the batch, and along the axes of a row. The first batch axis
runs along the threads, the others are the second and third axis of the grid. So arrays with any strides are read where
they are.

A graph is printed into the kernel. Any other body is the one that the CPU's loop calls, on one lane
(`machines/llvm/batch_loop.py`): a thread copies its row into arrays of its own, which LLVM turns into registers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cardan.machines.cuda.driver import rest_of
from cardan.machines.cuda.forms import ANY, DENSE, PACKED, SYMBOL
from cardan.machines.cuda.stages import stage_lines
from cardan.machines.llvm.batch_loop import print_body
from cardan.machines.llvm.module import SHARING, Lines, Module, VectorType
from cardan.machines.llvm.schedule import climbed, print_schedule
from cardan.machines.llvm.thread import AHEAD, ThreadLine, array, in_memory, memory
from cardan.program.graph import Graph
from cardan.program.program import Port, Program
from cardan.program.schedule import Schedule
from cardan.program.stages import Stages

if TYPE_CHECKING:
    from cardan.program.program import Recorded

FLAT = 10_000  # operations up to which stages are one line: the cache of instructions has room for 8,000
HELD, SPARE = 128, 16  # registers of a thread, and how many of them are not for values that wait
QUICK = 10_000  # operations up to which a line is first tried without branches for other than ordinary numbers
LONG = 5000  # operations from which on that line is two kernels in float64
# rows of so many numbers pass through memory of the block, of at most so many bytes
MANY, STAGED = 48, 36 * 1024
_LARGE = 64  # elements of a port that stays in memory past which it is copied in a loop: code takes time to compile

INDICES = {"tid": "tid.x", "ctaid": "ctaid.x", "ntid": "ntid.x", "y": "ctaid.y", "z": "ctaid.z"}


_COPY = """define internal void @{name}(ptr %array, i64 %row, i64 %rows, i64 %columns, i64 %m, i64 %n) {{
entry:
  %count = mul i64 %rows, %columns
  br label %element
element:
  %e = phi i64 [0, %entry], [%next, %element]
  %r = udiv i64 %e, %columns
  %c = urem i64 %e, %columns
  %down = mul i64 %r, %m
  %along = mul i64 %c, %n
  %begin = add i64 %row, %down
  %at = add i64 %begin, %along
  %there = inttoptr i64 %at to ptr addrspace(1)
{move}
  %next = add i64 %e, 1
  %more = icmp ult i64 %next, %count
  br i1 %more, label %element, label %done
done:
  ret void
}}"""


_SOME = """define internal void @{name}({p} %from, {q} %to, i64 %thread, i64 %count) {{
entry:
  br label %head
head:
  %e = phi i64 [%thread, %entry], [%next, %more]
  %inside = icmp slt i64 %e, %count
  br i1 %inside, label %more, label %done
more:
  %f = getelementptr {t}, {p} %from, i64 %e
  %x = load {t}, {p} %f, align {a}
  %o = getelementptr {t}, {q} %to, i64 %e
  store {t} %x, {q} %o, align {a}
  %next = add i64 %e, {step}
  br label %head
done:
  ret void
}}"""


def print_entry(recorded: Recorded, program: Program, dtype: str, form: str = ANY) -> str:
    """A module with the kernel `@rows` of what `program`, without empty ports, recorded, in "double" or "float".

    `form` says what `form_of` found of the arrays: addresses take fewer instructions the more is known.
    """
    module, symbols = Module(VectorType(dtype, 1), card=True, share=True), (SYMBOL, rest_of(SYMBOL))
    kernels = dict(zip(symbols, _parts(recorded, dtype), strict=False))
    if len(kernels) > 1 and form == DENSE:
        form = PACKED  # a kernel that stores whole rows would store those of the other one
    for symbol, part in kernels.items():
        module.functions[symbol] = _Entry(program, module, form).print(part, symbol)
    return finished_text(module, *kernels)


def _parts(recorded: Recorded, dtype: str) -> list[Recorded]:
    """What one kernel computes, or two one after the other.

    Stages that are not too long are one line. In float64 too many values would wait, and the line would leave the cache
    of instructions: so some of the results are left to a second kernel, if that repeats part of the work.
    """
    if not isinstance(recorded, Stages) or sum(recorded.operations().values()) > FLAT:
        return [recorded]
    whole = recorded.flattened()
    if dtype == "float" or sum(whole.operations().values()) <= LONG:
        return [whole]
    ports = range(len(whole.output_sizes))
    cuts = [(whole.of(ports[:k]), whole.of(ports[k:])) for k in ports[1:]]
    return [*min(cuts, key=lambda parts: max(sum(part.operations().values()) for part in parts))]


def finished_text(module: Module, *symbols: str) -> str:
    """The module's text with the largest number of threads of its kernels, and of registers of a thread.

    Where all that waits fits it, the compiler is held to `HELD` registers: 16 warps run on a multiprocessor then. A few
    more, which it would take to order freely, leave 12. Else one block at a time is enough: without this ptxas leaves
    long kernels 32 registers. Loops of stages stay loops.
    """
    size = module.type.bytes // 4
    fits = size * module.waiting <= HELD - SPARE and size * (module.waiting + module.standing) <= HELD
    bound = f'"maxnreg", i32 {HELD}' if fits else '"minctasm", i32 1'
    kernels = [f'!{{ptr @{symbol}, !"maxntidx", i32 {module.threads}, !{bound}}}' for symbol in symbols]
    numbers = [0, *range(4, 3 + len(kernels))]
    bounds = f"!nvvm.annotations = !{{{', '.join(f'!{n}' for n in numbers)}}}\n"
    bounds += "".join(f"!{n} = {kernel}\n" for n, kernel in zip(numbers, kernels, strict=True))
    bounds += '!1 = !{}\n!2 = distinct !{!2, !3}\n!3 = !{!"llvm.loop.unroll.disable"}\n'
    return module.text() + bounds


class _Entry(Lines):
    """The kernel under construction."""

    def __init__(self, program: Program, module: Module, form: str) -> None:
        super().__init__(module.type, "e")
        self.program, self.module, self.form = program, module, form
        self.narrow, self.packed, self.dense = form != ANY, form in (PACKED, DENSE), form == DENSE
        self.known: set[int] = set()  # ports whose row has its address

    def print(self, recorded: Recorded, symbol: str, *, careful: bool = False) -> str:
        """IR of the kernel; or, `careful`, of the function that it calls for a row that its quick line gets wrong."""
        parameters = ["i64 %n"]
        for j, port in enumerate(self.program.ports):
            parameters += [f"i64 %{name}{j}" for name in ("base", "x", "y", "z", *_core(port))]
        for name, register in INDICES.items():
            self.module.declarations.add(f"declare i32 @llvm.nvvm.read.ptx.sreg.{register}()")
            self.lines.append(f"  %{name} = call i32 @llvm.nvvm.read.ptx.sreg.{register}()")
        for name in ("tid", "ctaid", "ntid", "y", "z"):
            self.lines.append(f"  %{name}.l = zext i32 %{name} to i64")
        first = self.new("mul i64 %ctaid.l, %ntid.l")
        self.lines.append(f"  %i = add i64 {first}, %tid.l")
        numbers = sum(port.size for port in self.program.ports)
        size = numbers * SHARING * self.t.align
        whole = isinstance(recorded, Graph) and len({p for p, _, _ in recorded.outputs if p >= 0}) == len(
            self.program.outputs
        )
        if self.dense and isinstance(recorded, Graph) and whole and numbers >= MANY and size <= STAGED:
            return self._staged(recorded, parameters)
        if isinstance(recorded, Stages):
            head, body = stage_lines(recorded, self.program, self.module)
        elif isinstance(recorded, Graph):
            head, body = self._line(recorded, symbol, parameters, quick=not careful and _is_quick(recorded, self.t))
        else:
            head, body = self._call(recorded)
        inside = ["  %inside = icmp ult i64 %i, %n", "  br i1 %inside, label %row, label %done", "row:"]
        self.lines += [*head, *inside]
        if isinstance(recorded, Stages):
            for j in range(len(self.program.ports)):
                self._row(self, j)
        kind, end = ("internal", "noinline cold ") if careful else ("ptx_kernel", "")
        define = f"define {kind} void @{symbol}({', '.join(parameters)}) {end}{{"
        return "\n".join([define, "entry:", *self.lines, *body, "  br label %done", "done:", "  ret void", "}"])

    def _staged(self, graph: Graph, parameters: list[str]) -> str:
        """IR of the kernel of a graph whose rows pass through memory of the block, which loads and stores them whole.

        A thread that reads its own row alone would touch as many lines of the card's memory as there are rows.
        """
        t, module, ports, inputs = self.t, self.module, self.program.ports, len(self.program.inputs)
        module.threads, module.staged = SHARING, sum(port.size for port in ports)
        module.declarations.add("declare void @llvm.nvvm.barrier.cta.sync.aligned.all(i32)")
        barrier = "  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)"
        self.lines += [
            f"  %first = mul i64 %ctaid.l, {SHARING}",
            "  %left = sub i64 %n, %first",
            f"  %full = icmp uge i64 %left, {SHARING}",
        ]
        offset = 0
        for j, port in enumerate(ports):
            start = self.new(f"mul i64 %first, {port.size * t.align}")
            own = self.new(f"mul i32 %tid, {port.size}")
            self.lines += [
                f"  %count{j} = mul i64 %left, {port.size}",
                f"  %start{j} = add i64 %base{j}, {start}",
                f"  %rows{j} = inttoptr i64 %start{j} to ptr addrspace(1)",
                f"  %stage{j} = getelementptr {t.scalar}, ptr addrspace(3) @staged.of.block, i64 {offset * SHARING}",
                f"  %own{j} = getelementptr {t.scalar}, ptr addrspace(3) %stage{j}, i32 {own}",
            ]
            offset += port.size

        def load(port: int, element: int, further: str = "") -> str:
            at = line.new(f"getelementptr {t.scalar}, ptr addrspace(3) %own{port}, i64 {element}")
            if further:
                at = line.new(f"getelementptr {t.scalar}, ptr addrspace(3) {at}, i64 {further}")
            return line.new(f"load {t.scalar}, ptr addrspace(3) {at}, align {t.align}")

        def store(port: int, element: int, value: str) -> None:
            at = line.new(f"getelementptr {t.scalar}, ptr addrspace(3) %own{inputs + port}, i64 {element}")
            line.lines.append(f"  store {t.scalar} {value}, ptr addrspace(3) {at}, align {t.align}")

        line = ThreadLine(graph, module, load, store, looped=True)
        line.run()
        take, give = Lines(t, "t"), Lines(t, "g")
        self._copy_rows(take, "take", range(inputs))
        self._copy_rows(give, "give", range(inputs, len(ports)))
        define = f"define ptx_kernel void @{SYMBOL}({', '.join(parameters)}) {{"
        lines = [*self.lines, *line.head, *take.lines, barrier, *line.lines, barrier, *give.lines]
        return "\n".join([define, "entry:", *lines, "  ret void", "}"])

    def _copy_rows(self, lines: Lines, name: str, numbers: range) -> None:
        """Lines that copy rows of ports to or from memory of the block, neighbours by neighbouring threads."""
        t = self.t
        outside, inside = "ptr addrspace(1)", "ptr addrspace(3)"
        lines.lines += [f"  br i1 %full, label %{name}.whole, label %{name}.part", f"{name}.whole:"]
        for j in numbers:
            places = []
            for kind, base in ((outside, f"%rows{j}"), (inside, f"%stage{j}")):
                places.append((kind, lines.new(f"getelementptr {t.scalar}, {kind} {base}, i32 %tid")))
            (_, source), (_, target) = places if name == "take" else places[::-1]
            kinds = (outside, inside) if name == "take" else (inside, outside)
            values = []
            for k in range(self.program.ports[j].size):
                at = lines.new(f"getelementptr {t.scalar}, {kinds[0]} {source}, i64 {k * SHARING}")
                values.append(lines.new(f"load {t.scalar}, {kinds[0]} {at}, align {t.align}"))
            for k, value in enumerate(values):
                at = lines.new(f"getelementptr {t.scalar}, {kinds[1]} {target}, i64 {k * SHARING}")
                lines.lines.append(f"  store {t.scalar} {value}, {kinds[1]} {at}, align {t.align}")
        lines.lines += [f"  br label %{name}.done", f"{name}.part:"]
        symbol = f"{name}.some"
        self.module.functions[symbol] = _SOME.format(
            name=symbol, t=t.scalar, a=t.align, step=SHARING,
            **dict(zip(("p", "q"), (outside, inside) if name == "take" else (inside, outside), strict=True)),
        )  # fmt: skip
        for j in numbers:
            pair = (f"{outside} %rows{j}", f"{inside} %stage{j}")
            ends = ", ".join(pair if name == "take" else pair[::-1])
            lines.lines.append(f"  call void @{symbol}({ends}, i64 %tid.l, i64 %count{j})")
        lines.lines += [f"  br label %{name}.done", f"{name}.done:"]

    def _row(self, lines: Lines, j: int) -> str:
        """Address of this thread's row of a port, found where it is first needed."""
        if j not in self.known:
            self.known.add(j)
            at, axes = f"%base{j}", (("%i", f"%x{j}"), ("%y.l", f"%y{j}"), ("%z.l", f"%z{j}"))
            for index, stride in axes[: 1 if self.narrow else 3]:
                product = lines.new(f"mul i64 {self._word(lines, index)}, {self._word(lines, stride)}")
                at = lines.new(f"add i64 {at}, {product}")
            lines.lines.append(f"  %row{j} = add i64 {at}, 0")
            lines.lines.append(f"  %row{j}.at = inttoptr i64 {at} to ptr addrspace(1)")
        return f"%row{j}"

    def _word(self, lines: Lines, word: str) -> str:
        """A 64-bit number, of which the upper half is known to be 0 if `narrow`."""
        if not self.narrow:
            return word
        return lines.new(f"zext i32 {lines.new(f'trunc i64 {word} to i32')} to i64")

    def _line(
        self, graph: Graph, symbol: str, parameters: list[str], quick: bool
    ) -> tuple[list[str], list[str]]:  # fmt: skip
        """Lines of a graph, whose inputs are loaded where they are used, for the beginning and for the row.

        A quick line is followed by a call of the careful one, in the rare case that it is in doubt.
        """
        inputs, t = len(self.program.inputs), self.t

        def load(port: int, element: int, further: str = "") -> str:
            at = self._address(line, port, element)
            if further:
                step = str(t.align) if self.packed else self._word(line, f"%n{port}")
                at = line.new(f"getelementptr i8, ptr addrspace(1) {at}, i64 {line.new(f'mul i64 {further}, {step}')}")
            return line.new(f"load {t.scalar}, ptr addrspace(1) {at}, align {t.align}, !invariant.load !1")

        def store(port: int, element: int, value: str) -> None:
            at = self._address(line, inputs + port, element)
            line.lines.append(f"  store {t.scalar} {value}, ptr addrspace(1) {at}, align {t.align}")

        line = ThreadLine(graph, self.module, load, store, early=AHEAD, looped=True, quick=quick)
        line.run()
        if line.doubts:
            doubt, careful, module = line.doubts[0], f"{symbol}.careful", self.module
            for other in line.doubts[1:]:
                doubt = line.new(f"or i1 {doubt}, {other}")
            line.lines += [
                f"  br i1 {doubt}, label %again, label %done",
                "again:",
                f"  call void @{careful}({', '.join(parameters)})",
            ]
            module.functions[careful] = _Entry(self.program, module, self.form).print(graph, careful, careful=True)
        return line.head, line.lines

    def _call(self, recorded: Recorded) -> tuple[list[str], list[str]]:
        """Lines that copy the row into arrays, call the body of any program on them, and copy the results back."""
        t, ports, inputs = self.t, self.program.ports, len(self.program.inputs)
        head, body = [], Lines(t, "c")
        direct: frozenset[int] = frozenset()  # matrices that are written entry by entry, where they are
        if isinstance(recorded, Schedule) and climbed(recorded):
            direct, state = climbed(recorded), max(recorded.state_size, 1)
            print_schedule(recorded, "body", self.module, inputs, len(ports) - inputs, direct)
        else:
            state = print_body(recorded, self.program, self.module)
        sizes = {f"own{j}": port.size for j, port in enumerate(ports) if j - inputs not in direct}
        sizes |= {"state": state} if state else {}
        for name, size in sizes.items():
            head += memory(self.module, name, size) if in_memory(recorded, t) else array(self.module, name, size)
        for j, port in enumerate(ports):
            if j == inputs:
                places = []
                for k in range(len(ports)):
                    if k - inputs in direct:
                        at = self._address(body, k, 0)
                        own = body.new(f"addrspacecast ptr addrspace(1) {at} to ptr")
                        places += [f"ptr {own}", f"i64 %m{k}", f"i64 %n{k}"]
                    else:
                        places.append(f"ptr %own{k}")
                places += ["ptr %state"] if state else []
                body.lines.append(f"  call void @body({', '.join(places)})")
            if j - inputs in direct:
                continue
            if in_memory(recorded, t) and port.size > _LARGE:
                self._row(body, j)
                body.lines.append(self._loop(j, "give" if j >= inputs else "take"))
                continue
            for e in range(port.size):
                outside, own = self._address(body, j, e), body.element(f"%own{j}", e)
                if j < inputs:
                    body.store(body.new(f"load {t.scalar}, ptr addrspace(1) {outside}, align {t.align}"), own)
                else:
                    value = body.load(own)
                    body.lines.append(f"  store {t.scalar} {value}, ptr addrspace(1) {outside}, align {t.align}")
        return head, body.lines

    def _loop(self, j: int, name: str) -> str:
        """A call that copies a large port in a loop: `name` is "take" or "give"."""
        t, port = self.t, self.program.ports[j]
        own = f"  %own = getelementptr {t.scalar}, ptr %array, i64 %e\n"
        there = f"ptr addrspace(1) %there, align {t.align}"
        self.module.functions[name] = _COPY.format(
            name=name,
            move=f"{own}  %x = load {t.scalar}, {there}\n  store {t.scalar} %x, ptr %own, align {t.align}"
            if name == "take"
            else f"{own}  %x = load {t.scalar}, ptr %own, align {t.align}\n  store {t.scalar} %x, {there}",
        )
        m, n = port.matrix
        strides = [f"i64 %{stride}{j}" if stride in _core(port) else "i64 0" for stride in ("m", "n")]
        return f"  call void @{name}(ptr %own{j}, i64 %row{j}, i64 {m}, i64 {n}, {', '.join(strides)})"

    def _address(self, lines: Lines, j: int, element: int) -> str:
        """Address of an element of this thread's row of a port."""
        at = f"{self._row(lines, j)}.at"
        if self.packed:
            return lines.new(f"getelementptr {self.t.scalar}, ptr addrspace(1) {at}, i64 {element}")
        r, c = divmod(element, self.program.ports[j].matrix[1])
        for count, stride in ((r, f"%m{j}"), (c, f"%n{j}")):
            if count:
                offset = lines.new(f"mul i64 {self._word(lines, stride)}, {count}")
                at = lines.new(f"getelementptr i8, ptr addrspace(1) {at}, i64 {offset}")
        return at


def _is_quick(graph: Graph, t: VectorType) -> bool:
    """Whether the kernel of a graph is first tried without branches: in float it is faster so, in double not."""
    return t.scalar == "float" and sum(graph.operations().values()) <= QUICK


def _core(port: Port) -> tuple[str, ...]:
    """Names of the strides along the axes of a row."""
    return {0: (), 1: ("n",), 2: ("m", "n")}[len(port.shape)]
