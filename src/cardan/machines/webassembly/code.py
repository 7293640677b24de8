"""A program as a WebAssembly module: one call is one evaluation, or one march, of one system.

The module exports `call(ports)`: the address of the first number of the first port. All ports, inputs then outputs,
follow one another from there in float64, elements in C order, ports without elements left out; then come
`scratch` numbers of memory of the program's own. It imports the memory `env.__linear_memory`, of which the first
`pages` are its own (64 kB each), and the top of a stack, the mutable i32 `env.__stack_pointer`; `STACK` bytes are
enough for it.

The arithmetic is that of the kernels, the text is that of `machines.llvm`, except that WebAssembly has no fused
multiply-add: the last bits differ.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from functools import cache
from typing import Any

from cardan.errors import CardanError
from cardan.machines.build import Builder
from cardan.machines.host import interruptible
from cardan.machines.llvm.batch_loop import print_body
from cardan.machines.llvm.module import Module, VectorType
from cardan.machines.webassembly.arithmetic import FMA, MULTI3
from cardan.machines.webassembly.binary import module_of, sections
from cardan.program.program import Port

TRIPLE = "wasm32-unknown-unknown"
FEATURES = "+bulk-memory,+mutable-globals,+nontrapping-fptoint,+sign-ext"  # in all browsers since 2021
SYMBOL, SCRATCH = "call", "; numbers of scratch: "
DATA = 11  # the section of constants
STACK = 1 << 21


@dataclass(frozen=True, eq=False)
class WebAssemblyCode:
    """A compiled program: its module, its ports, and how many numbers of memory it needs beside them."""

    code: bytes
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    scratch: int

    @property
    def pages(self) -> int:
        """Pages of memory, 64 kB each, that its constants take."""
        data = [len(content) for number, content in sections(self.code) if number == DATA]
        return 1 + sum(data) // (1 << 16)  # LLVM places them from 0 on

    def described(self) -> dict[str, Any]:
        """What one needs to load it, as JSON: names and sizes of its ports, and its memory."""
        return {
            "inputs": [[port.name, port.size] for port in self.inputs],
            "outputs": [[port.name, port.size] for port in self.outputs],
            "scratch": self.scratch,
            "pages": self.pages,
        }


def compile_for_browser(builder: Builder) -> WebAssemblyCode:
    """Compile a program, or find it in the cache."""
    program = builder.compiled
    stored = builder.through_cache((TRIPLE, FEATURES), lambda: _text(builder), _compiled)
    (scratch,) = struct.unpack_from("<I", stored)
    return WebAssemblyCode(stored[4:], program.inputs, program.outputs, scratch)


def _text(builder: Builder) -> str:
    """IR of the program, and of the function that places its ports; its first line tells the scratch."""
    program, module = builder.compiled, Module(VectorType("double", 1))
    state = print_body(builder.recorded(), program, module)
    lines, given, at = [], [], 0
    for k, size in enumerate([*(port.size for port in program.ports), *([state] if state else [])]):
        lines.append(f"  %p{k} = getelementptr double, ptr %ports, i32 {at}")
        given.append(f"ptr %p{k}")
        at += size
    call = f"  call void @body({', '.join(given)})"
    entry = [f"define void @{SYMBOL}(ptr %ports) {{", *lines, call, "  ret void", "}"]
    return "\n".join([f"{SCRATCH}{state}", module.text(), *entry, *_missing(module)])


def _missing(module: Module) -> list[str]:
    """Definitions of what the module calls and WebAssembly does not have."""
    functions = "".join(module.functions.values())
    found = []
    if "@llvm.fma.f64" in functions:
        declared = any("@llvm.fabs.f64" in line for line in module.declarations)
        found += [FMA, *([] if declared else ["declare double @llvm.fabs.f64(double)"])]
    return [*found, *([MULTI3] if "mul i128" in functions else [])]


@cache
def _target_machine() -> Any:
    import llvmlite.binding as llvm

    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    try:
        target = llvm.Target.from_triple(TRIPLE)
    except RuntimeError:
        raise CardanError("webassembly: this build of llvmlite has no WebAssembly; install it from PyPI") from None
    return target.create_target_machine(opt=0, features=FEATURES)  # browsers optimise; LLVM would take ten times longer


def _compiled(ir: str) -> bytes:
    """The module of some IR."""

    def compile_module() -> bytes:
        import llvmlite.binding as llvm

        machine = _target_machine()
        head = f'target triple = "{TRIPLE}"\ntarget datalayout = "{machine.target_data}"\n'
        return bytes(machine.emit_object(llvm.parse_assembly(head + ir, llvm.create_context())))

    scratch = int(ir.partition("\n")[0].removeprefix(SCRATCH))
    return struct.pack("<I", scratch) + module_of(interruptible(compile_module), SYMBOL)
