"""The host: its lanes, and IR text to object code to running code, through LLVM in this process."""

from __future__ import annotations

import ctypes
import sys
from dataclasses import dataclass
from functools import cache
from threading import Lock
from typing import Any

_LIBM = [
    "sin",
    "cos",
    "tan",
    "asin",
    "acos",
    "atan",
    "sinh",
    "cosh",
    "tanh",
    "asinh",
    "acosh",
    "atanh",
    "exp",
    "log",
    "log1p",
    "expm1",
    "erf",
    "pow",
    "atan2",
    "hypot",
    "fmod",
    "remainder",
]


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


def few(lanes: int) -> int:
    """Up to how many rows the one-lane body beats the lanes padded: one row takes about half a pass."""
    return max(1, lanes // 4)


@cache
def host() -> Host:
    """The processor this process runs on."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    features = llvm.get_host_cpu_features()
    width = 64 if features.get("avx512f") else 32 if features.get("avx") else 16
    return Host(llvm.get_process_triple(), llvm.get_host_cpu_name(), features.flatten(), width)


def _import_libm(library: Any) -> None:
    # Windows does not search the C runtime for symbols of the process
    runtime = ctypes.CDLL("ucrtbase")
    for name in (*_LIBM, *(n + "f" for n in _LIBM), "malloc", "free"):
        if hasattr(runtime, name):
            library.import_symbol(name, ctypes.cast(getattr(runtime, name), ctypes.c_void_p).value)


def _target_machine() -> Any:
    import llvmlite.binding as llvm

    h = host()
    # constants relative to the code: with absolute addresses the code is longer, and fetching it is the limit
    return llvm.Target.from_triple(h.triple).create_target_machine(
        cpu=h.cpu, features=h.features, opt=2, reloc="pic", codemodel="small"
    )


def to_object(ir: str) -> bytes:
    """Object code of an IR module.

    LLVM's optimisation passes are left out: the graph has no redundancy for them to find.
    """
    import llvmlite.binding as llvm

    machine = _target_machine()
    module = llvm.parse_assembly(ir)
    return bytes(machine.emit_object(module))


# Linked code lives as long as the process: a ufunc, which holds bare pointers, may outlive its kernel.
_LINKED: list[Any] = []
_lock = Lock()


@cache
def _linker() -> Any:
    import llvmlite.binding as llvm

    host()
    # JITLink puts the parts of an object side by side, as the small code model needs
    return llvm.create_lljit_compiler(_target_machine(), use_jit_link=True)


def load(code: bytes, *symbols: str) -> list[int]:
    """Link object code into this process; the addresses of `symbols`."""
    import llvmlite.binding as llvm

    with _lock:
        library = llvm.JITLibraryBuilder().add_object_img(code).add_current_process()
        for symbol in symbols:
            library.export_symbol(symbol)
        if sys.platform == "win32":
            _import_libm(library)
        tracker = library.link(_linker(), f"kernel{len(_LINKED)}")
        _LINKED.append(tracker)
    return [tracker[symbol] for symbol in symbols]
