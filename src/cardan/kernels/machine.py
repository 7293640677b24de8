"""The host: its lanes, and IR text to object code to running code, through LLVM in this process."""

from __future__ import annotations

import ctypes
import sys
from dataclasses import dataclass
from functools import cache
from typing import Any

_LIBM = (
    "sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh exp log log1p expm1 erf pow atan2 hypot fmod remainder"
).split()


@dataclass(frozen=True)
class Host:
    """The processor as LLVM names it, and its vector registers in bytes."""

    triple: str
    cpu: str
    features: str
    vector_bytes: int

    def lanes(self, dtype: str) -> int:
        """Lanes of "double" or "float" in one register."""
        return self.vector_bytes // (8 if dtype == "double" else 4)


@cache
def host() -> Host:
    """The processor this process runs on."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    if sys.platform == "win32":
        _name_libm(llvm)
    features = llvm.get_host_cpu_features()
    width = 64 if features.get("avx512f") else 32 if features.get("avx") else 16
    return Host(llvm.get_process_triple(), llvm.get_host_cpu_name(), features.flatten(), width)


def _name_libm(llvm: Any) -> None:
    # Windows does not search the C runtime for symbols of the process
    runtime = ctypes.CDLL("ucrtbase")
    for name in (*_LIBM, *(n + "f" for n in _LIBM), "malloc", "free"):
        if hasattr(runtime, name):
            llvm.add_symbol(name, ctypes.cast(getattr(runtime, name), ctypes.c_void_p).value)


def _target_machine() -> Any:
    import llvmlite.binding as llvm

    h = host()
    # a target machine belongs to its engine, so each gets its own
    return llvm.Target.from_triple(h.triple).create_target_machine(cpu=h.cpu, features=h.features, opt=2, jit=True)


def to_object(ir: str) -> bytes:
    """Object code of an IR module.

    LLVM's optimisation passes are left out: the graph has no redundancy for them to find.
    """
    import llvmlite.binding as llvm

    machine = _target_machine()
    module = llvm.parse_assembly(ir)
    return bytes(machine.emit_object(module))


# Engines live as long as the process: a ufunc may outlive the kernel that made it, and NumPy keeps bare pointers.
_ENGINES: list[Any] = []


def load(code: bytes, *symbols: str) -> list[int]:
    """Link object code into this process; the addresses of `symbols`."""
    import llvmlite.binding as llvm

    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), _target_machine())
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    _ENGINES.append(engine)
    return [engine.get_function_address(symbol) for symbol in symbols]
