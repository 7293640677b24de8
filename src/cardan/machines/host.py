"""The machine code of the host: its vector lanes, IR to object code, and object code to loaded code, through LLVM.

Everything happens in this process; no compiler or linker needs to be installed.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import count
from threading import Event, RLock, Thread, current_thread, main_thread
from typing import Any

# Held while code is recorded, compiled or linked; LLVM works for one thread at a time in any case. A fork waits for it:
# otherwise the child could inherit a compilation that another thread of its parent had begun and that nobody finishes.
compiling = RLock()
_left_alone: list[Event] = []  # compilations that go on although Ctrl-C ended the wait for them


def _before_fork() -> None:
    compiling.acquire()
    for done in [*_left_alone]:
        done.wait()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=compiling.release, after_in_child=compiling.release)


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
    """How many rows at most go to the one-lane loop: one row there takes half as long as one pass of all lanes."""
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


def _import_runtime(library: Any) -> None:
    """Give a library malloc, free, and fma for processors without it; Windows does not search the C runtime itself."""
    runtime = ctypes.CDLL("ucrtbase")
    for name in ("malloc", "free", "fma", "fmaf"):
        library.import_symbol(name, ctypes.cast(getattr(runtime, name), ctypes.c_void_p).value)


def _target_machine(quick: bool = False) -> Any:
    """LLVM's code generator for the host; a `quick` one places values in registers block by block."""
    import llvmlite.binding as llvm

    h = host()
    # address constants relative to the code: absolute addresses make it longer, and fetching instructions is the limit
    return llvm.Target.from_triple(h.triple).create_target_machine(
        cpu=h.cpu, features=h.features, opt=0 if quick else 2, reloc="pic", codemodel="small"
    )


_NEEDS = "; needs "  # `machines.llvm.library`


def has_library() -> bool:
    """Whether code may call functions that were loaded before: how their names are written was tried on Linux."""
    return sys.platform == "linux"


def to_object(ir: str, quick: bool = False) -> bytes:
    """Object code of an IR module; `quick` code is made in an eighth of the time and has the same bits.

    LLVM's optimisation passes are left out: the graph has no redundancy for them to find. A first line that names
    functions of the library comes before the code, too.
    """
    head = (ir.partition("\n")[0] + "\n").encode() if ir.startswith(_NEEDS) else b""

    def compile_module() -> bytes:
        import llvmlite.binding as llvm

        return head + bytes(_target_machine(quick).emit_object(llvm.parse_assembly(ir, llvm.create_context())))

    return interruptible(compile_module)


@atexit.register
def _wait_at_exit() -> None:
    """Wait for LLVM: it aborts the process if it is at work while its own data is destroyed."""
    try:
        for done in _left_alone:
            while not done.wait(0.1):
                pass
    except KeyboardInterrupt:
        with suppress(OSError, ValueError):
            sys.stdout.flush()
        os._exit(130)


def interruptible(work: Callable[[], bytes]) -> bytes:
    """What `work` returns. Python hears Ctrl-C in the main thread only, and not while it is inside LLVM.

    So `work` has a thread of its own, for which the main thread waits. After Ctrl-C that thread goes on alone until
    LLVM returns: nothing can stop it. The process ends when it has; another Ctrl-C ends it at once.
    """
    if current_thread() is not main_thread():
        return work()
    done, results, errors = Event(), list[bytes](), list[BaseException]()

    def run() -> None:
        try:
            results.append(work())
        except BaseException as error:
            errors.append(error)
        finally:
            done.set()

    Thread(target=run, name="cardan compiler", daemon=True).start()
    try:
        while not done.wait(0.1):  # on Windows a wait without end would not hear Ctrl-C either
            pass
    except BaseException:
        _left_alone[:] = [done, *(other for other in _left_alone if not other.is_set())]
        raise
    if errors:
        raise errors[0]
    return results[0]


# Unloading code leaves 10 kB in its linker, and making a linker takes milliseconds. So one linker serves this many
# pieces of code and is released with the last of them.
_PER_LINKER = 64
_numbers = count()


@lru_cache(maxsize=1)
def _linker(generation: int) -> Any:
    """The linker for one generation of pieces of code."""
    import llvmlite.binding as llvm

    host()
    # JITLink puts the parts of an object side by side, as the small code model needs
    return llvm.create_lljit_compiler(_target_machine(), use_jit_link=True)


_kept_memory = ctypes.c_void_p()  # of kernels with much scratch: `machines.llvm.batch_loop`
_no_memory = ctypes.c_int64()  # bytes that a kernel asked for and did not get


def takes_memory(code: bytes) -> bool:
    """Whether code asks the system for memory, so that `refused_memory` is to be asked after each call."""
    return b"cardan.no.memory" in code


def refused_memory() -> int:
    """Bytes that code asked for since this was called last and did not get; 0 if all got theirs."""
    found = _no_memory.value
    if found:
        _no_memory.value = 0
    return int(found)


def load(code: bytes, *symbols: str) -> tuple[list[int], Any]:
    """Link object code into this process: the addresses of `symbols`, and an object that keeps the code loaded."""
    import llvmlite.binding as llvm

    with compiling:
        head = b""
        if code.startswith(_NEEDS.encode()):
            head, _, code = code.partition(b"\n")
        library = llvm.JITLibraryBuilder().add_object_img(code).add_current_process()
        library.import_symbol("cardan.kept.memory", ctypes.addressof(_kept_memory))
        library.import_symbol("cardan.no.memory", ctypes.addressof(_no_memory))
        if head:
            from cardan.machines.llvm.library import addresses

            for name, address in addresses(head.decode()).items():
                library.import_symbol(name, address)
        for symbol in symbols:
            library.export_symbol(symbol)
        if sys.platform == "win32":
            _import_runtime(library)
        number = next(_numbers)
        tracker = library.link(_linker(number // _PER_LINKER), f"kernel{number}")
        return [tracker[symbol] for symbol in symbols], tracker
