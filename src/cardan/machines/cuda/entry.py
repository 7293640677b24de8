"""The kernel around a program's body, printed as LLVM IR for a GPU: one thread takes one row of a batch.

`@rows` has 64-bit arguments only (`words_of` puts them together): the number of rows, then for each port its address,
its strides in bytes along up to three axes of the batch, and along the axes of a row. The first batch axis runs along
the threads, the others are the second and third axis of the grid. So arrays with any strides are read where they are.

The body is the one that the CPU's loop calls, on one lane (`machines/llvm/batch_loop.py`). A thread copies its row into
arrays of its own, which LLVM turns into registers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cardan.machines.llvm.batch_loop import print_body
from cardan.machines.llvm.module import Lines, Module, VectorType
from cardan.program.program import Port, Program

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cardan.program.program import Recorded

SYMBOL = "rows"
THREADS = 128  # of a block
BATCH_AXES = 3  # of a launch

_INDICES = {"tid": "tid.x", "ctaid": "ctaid.x", "ntid": "ntid.x", "y": "ctaid.y", "z": "ctaid.z"}


def print_entry(recorded: Recorded, program: Program, dtype: str) -> str:
    """A module with the kernel `@rows` of what `program`, without empty ports, recorded, in "double" or "float"."""
    module = Module(VectorType(dtype, 1))
    state = print_body(recorded, program, module)
    module.functions[SYMBOL] = _Entry(program, module, state).print()
    bounds = f'!nvvm.annotations = !{{!0}}\n!0 = !{{ptr @{SYMBOL}, !"maxntidx", i32 {THREADS}}}\n'
    return module.text() + bounds


def words_of(
    rows: int, ports: Sequence[tuple[int, Sequence[int], Sequence[int]]]
) -> list[int]:  # fmt: skip
    """Arguments of the kernel: each port has its address, its strides along the batch's axes, and along its own."""
    words = [rows]
    for address, batch, core in ports:
        words += [address, *batch, *([0] * (BATCH_AXES - len(batch))), *core]
    return words


class _Entry(Lines):
    """The kernel under construction."""

    def __init__(self, program: Program, module: Module, state: int) -> None:
        super().__init__(module.type, "e")
        self.program, self.module, self.state = program, module, state

    def print(self) -> str:
        """IR of the kernel."""
        inputs = len(self.program.inputs)
        parameters = ["i64 %n"]
        for j, port in enumerate(self.program.ports):
            parameters += [f"i64 %{name}{j}" for name in ("base", "x", "y", "z", *_core(port))]
        for name, register in _INDICES.items():
            self.module.declarations.add(f"declare i32 @llvm.nvvm.read.ptx.sreg.{register}()")
            self.lines.append(f"  %{name} = call i32 @llvm.nvvm.read.ptx.sreg.{register}()")
        for name in ("tid", "ctaid", "ntid", "y", "z"):
            self.lines.append(f"  %{name}.l = zext i32 %{name} to i64")
        first = self.new("mul i64 %ctaid.l, %ntid.l")
        self.lines.append(f"  %i = add i64 {first}, %tid.l")
        t = self.t
        for j, port in enumerate(self.program.ports):
            self.lines.append(f"  %own{j} = alloca [{port.size} x {t.scalar}], align {t.align}")
        if self.state:
            self.lines.append(f"  %state = alloca [{self.state} x {t.scalar}], align {t.align}")
        self.lines += ["  %inside = icmp ult i64 %i, %n", "  br i1 %inside, label %row, label %done", "row:"]
        for j, port in enumerate(self.program.inputs):
            self._copy(j, port, into=True)
        places = [f"ptr %own{j}" for j in range(len(self.program.ports))] + ["ptr %state"] * bool(self.state)
        self.lines.append(f"  call void @body({', '.join(places)})")
        for j, port in enumerate(self.program.outputs, inputs):
            self._copy(j, port, into=False)
        head = f"define ptx_kernel void @{SYMBOL}({', '.join(parameters)}) {{"
        return "\n".join([head, "entry:", *self.lines, "  br label %done", "done:", "  ret void", "}"])

    def _copy(self, j: int, port: Port, into: bool) -> None:
        """Copy a thread's row of a port from the card's memory into its own array, or back."""
        t = self.t
        at = f"%base{j}"
        for index, stride in (("%i", "x"), ("%y.l", "y"), ("%z.l", "z")):
            at = self.new(f"add i64 {at}, {self.new(f'mul i64 {index}, %{stride}{j}')}")
        m, n = port.matrix
        for r in range(m):
            row = at if not r else self.new(f"add i64 {at}, {self.new(f'mul i64 %m{j}, {r}')}")
            for c in range(n):
                place = row if not c else self.new(f"add i64 {row}, {self.new(f'mul i64 %n{j}, {c}')}")
                outside = self.new(f"inttoptr i64 {place} to ptr addrspace(1)")
                own = self.element(f"%own{j}", r * n + c)
                if into:
                    value = self.new(f"load {t.scalar}, ptr addrspace(1) {outside}, align {t.align}")
                    self.store(value, own)
                else:
                    self.lines.append(
                        f"  store {t.scalar} {self.load(own)}, ptr addrspace(1) {outside}, align {t.align}"
                    )


def _core(port: Port) -> tuple[str, ...]:
    """Names of the strides along the axes of a row."""
    return {0: (), 1: ("n",), 2: ("m", "n")}[len(port.shape)]
