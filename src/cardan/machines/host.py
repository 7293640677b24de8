"""The host: its lanes, and IR text to object code to running code, through LLVM in this process."""

from __future__ import annotations

import ctypes
import os
import sys
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import count
from threading import RLock
from typing import Any

# Held while code is recorded, compiled or linked; LLVM works for one thread at a time in any case. A fork waits for it,
# so that no child is left with a compilation that its parent's other thread will never finish.
compiling = RLock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=compiling.acquire, after_in_parent=compiling.release, after_in_child=compiling.release)


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
    from cardan.machines.llvm.vector_math import LIBM

    runtime = ctypes.CDLL("ucrtbase")
    for name in (*LIBM, *(n + "f" for n in LIBM), "malloc", "free"):
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


# Unloaded code leaves 10 kB in its linker, and a new linker takes milliseconds: one serves so many pieces of code, and
# goes with the last of them.
_PER_LINKER = 64
_numbers = count()


@lru_cache(maxsize=1)
def _linker(generation: int) -> Any:
    import llvmlite.binding as llvm

    host()
    # JITLink puts the parts of an object side by side, as the small code model needs
    return llvm.create_lljit_compiler(_target_machine(), use_jit_link=True)


def load(code: bytes, *symbols: str) -> tuple[list[int], Any]:
    """Link object code into this process; the addresses of `symbols`, and what keeps the code there."""
    import llvmlite.binding as llvm

    with compiling:
        library = llvm.JITLibraryBuilder().add_object_img(code).add_current_process()
        for symbol in symbols:
            library.export_symbol(symbol)
        if sys.platform == "win32":
            _import_libm(library)
        number = next(_numbers)
        tracker = library.link(_linker(number // _PER_LINKER), f"kernel{number}")
        return [tracker[symbol] for symbol in symbols], tracker
