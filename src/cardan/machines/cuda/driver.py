"""The CUDA driver through ctypes: cards, memory, compiled modules and launches; its errors as sentences.

The functions used are a small part of the driver's interface, which NVIDIA keeps stable since CUDA 12. Cardan uses the
primary context of a card, as the runtime does: memory and streams of torch, CuPy and JAX are valid in it.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import cache
from typing import Any

from cardan.errors import DeviceError, DeviceMemoryError, InputError
from cardan.lazy import cached_property
from cardan.machines.cuda.ptx import OLDEST
from cardan.machines.host import interruptible


class CodeRefusedError(DeviceError):
    """The driver does not load machine code that was made earlier."""


__all__ = [
    "Card", "CodeRefusedError", "DeviceError", "DeviceMemoryError", "Function", "Memory", "call", "card", "card_count",
    "cuda", "driver_version",
]  # fmt: skip

_LOWEST = 12000  # CUDA 12.0: earlier drivers lack what is called here
_OUT_OF_MEMORY, _NOT_STARTED, _NO_CARD, _MISMATCH, _TAKEN = 2, 3, 100, 803, 46
_NO_BINARY, _INVALID_PTX, _NO_COMPILER, _UNSUPPORTED_PTX, _COMPILER_OFF = 209, 218, 221, 222, 223
_NOT_CODE = frozenset((200, _NO_BINARY, _INVALID_PTX, _UNSUPPORTED_PTX, 300, 500))  # invalid image or source, no symbol
# Illegal or misaligned address, illegal instruction, time-out, a memory fault of the card: nothing works after them.
_DEAD = frozenset((214, 220, 226, 700, 702, 709, 710, 714, 715, 716, 717, 718, 719))
_INPUT_PTX = 1  # CU_JIT_INPUT_PTX
_ERROR_LOG, _ERROR_LOG_SIZE = 5, 6  # CU_JIT_ERROR_LOG_BUFFER and its size
_MOST_THREADS, _REGISTERS, _LOCAL_BYTES, _MOST_SHARED = 0, 4, 3, 8  # attributes of functions
_MAJOR, _MINOR, _MULTIPROCESSORS = 75, 76, 16  # attributes of devices
_NOTHING = nullcontext()
_PARAMETERS, _PARAMETERS_SIZE = 1, 2  # CU_LAUNCH_PARAM_BUFFER_POINTER and _SIZE


def _open() -> Any:
    """The driver's library; OSError where there is none."""
    return ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")


@cache
def _library() -> Any:
    """The driver's library, initialised; DeviceError where it cannot be used."""
    if _forked:
        raise DeviceError(_FORKED)
    try:
        library = _open()
    except OSError:
        raise DeviceError(
            "device='gpu': no NVIDIA driver was found on this machine; install one, or compute on the CPU"
        ) from None
    version = ctypes.c_int()
    status = library.cuDriverGetVersion(ctypes.byref(version))
    if not status and version.value < _LOWEST:
        raise DeviceError(
            f"device='gpu': the NVIDIA driver is for CUDA {cuda(version.value)}; {cuda(_LOWEST)} or newer is needed: "
            "update the driver"
        )
    status = status or library.cuInit(0)
    if status:
        raise DeviceError(_AT_START.get(status, _AT_START[0]).format(name=_name_of(library, status)))
    return library


_FORKED = (
    "device='gpu': this process was forked from one that had already used the GPU, which only that one can use; start "
    "processes by 'spawn' (multiprocessing.get_context('spawn')), or use the GPU in the forked processes alone"
)
_AT_START = {
    0: "device='gpu': the NVIDIA driver does not start ({name}); `nvidia-smi` tells whether it finds a GPU",
    _NOT_STARTED: _FORKED,
    _NO_CARD: "device='gpu': the NVIDIA driver finds no GPU ({name}); does CUDA_VISIBLE_DEVICES hide it?",
    _MISMATCH: "device='gpu': the parts of the NVIDIA driver have different versions ({name}); restart the machine",
}
_forked = False  # whether a process that had started the driver is an ancestor of this one


def _after_fork(library: Any = _library) -> None:
    """Let a forked child know that it cannot use the driver that its parent started."""
    global _forked
    _forked = _forked or library.cache_info().currsize > 0
    library.cache_clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def cuda(version: int) -> str:
    """A version of CUDA as people write it, e.g. 13.0."""
    return f"{version // 1000}.{version % 1000 // 10}"


def _dotted(capability: int) -> str:
    return f"{capability // 10}.{capability % 10}"


def _name_of(library: Any, status: int) -> str:
    """The driver's name of an error."""
    text = ctypes.c_char_p()
    library.cuGetErrorName(status, ctypes.byref(text))
    return (text.value or b"error %d" % status).decode()


def call(name: str, *arguments: Any) -> None:
    """Call a function of the driver; DeviceError where it fails."""
    library = _library()
    status = getattr(library, name)(*arguments)
    if status:
        raise _failure(name, status)


def _failure(what: str, status: int) -> DeviceError:
    """The error for a status of the driver."""
    name = _name_of(_library(), status)
    if status == _OUT_OF_MEMORY:
        return DeviceMemoryError(f"the memory of the GPU is full ({what}); take a smaller batch, or release arrays")
    if status in _DEAD:
        return DeviceError(
            f"a kernel failed on the GPU ({name}, seen by {what}); this process cannot use the GPU any more: restart "
            "it, and report the error if Cardan alone was using the GPU"
        )
    if status == _TAKEN:
        return DeviceError(f"the GPU is not available ({name}): another process may hold it alone, see `nvidia-smi`")
    return DeviceError(f"the GPU driver failed: {what}: {name}")


def address_of(name: str) -> int:
    """The address of a function of the driver, for compiled code that calls it."""
    return ctypes.cast(getattr(_library(), name), ctypes.c_void_p).value or 0


def driver_version() -> int:
    """The CUDA version of the driver, e.g. 13000."""
    version = ctypes.c_int()
    call("cuDriverGetVersion", ctypes.byref(version))
    return version.value


def card_count() -> int:
    """How many cards there are; 0 without a driver."""
    count = ctypes.c_int()
    try:
        call("cuDeviceGetCount", ctypes.byref(count))
    except DeviceError:
        return 0
    return count.value


@cache
def card(index: int = 0) -> Card:
    """One of the cards of this machine."""
    count = ctypes.c_int()
    call("cuDeviceGetCount", ctypes.byref(count))
    if not 0 <= index < count.value:
        have = "no GPU" if not count.value else f"{count.value} GPU{'s' * (count.value > 1)}, numbered from 0"
        raise InputError(f"device='gpu:{index}': this machine has {have}")
    return Card(index)


class Card:
    """A card: its primary context and what is done in it."""

    def __init__(self, index: int) -> None:
        self.index = index
        handle, context = ctypes.c_int(), ctypes.c_void_p()
        call("cuDeviceGet", ctypes.byref(handle), index)
        self._handle = handle
        text = ctypes.create_string_buffer(256)
        call("cuDeviceGetName", text, 256, handle)
        self.name = text.value.decode(errors="replace")
        self.capability = 10 * self._attribute(_MAJOR) + self._attribute(_MINOR)
        self.multiprocessors = self._attribute(_MULTIPROCESSORS)
        if self.capability < OLDEST:
            raise DeviceError(
                f"gpu:{index}: {self.name} has compute capability {_dotted(self.capability)}; Cardan needs "
                f"{_dotted(OLDEST)} or newer"
            )
        call("cuDevicePrimaryCtxRetain", ctypes.byref(context), handle)
        self._context = context

    def __repr__(self) -> str:
        """Name and number."""
        return f"<{self.name}, gpu:{self.index}, sm_{self.capability}>"

    def _attribute(self, number: int) -> int:
        value = ctypes.c_int()
        call("cuDeviceGetAttribute", ctypes.byref(value), number, self._handle)
        return value.value

    def __enter__(self) -> Card:
        """Make the card's context current on this thread."""
        call("cuCtxPushCurrent_v2", self._context)
        return self

    def __exit__(self, error: type[BaseException] | None, *_: object) -> None:
        """Give the thread its former context back."""
        with suppress(*[DeviceError] if error else []):  # the first error tells more
            call("cuCtxPopCurrent_v2", ctypes.byref(ctypes.c_void_p()))

    def made_current(self) -> AbstractContextManager[Any]:
        """The same as `with card:`, quicker where the context is current already, as torch and CuPy leave it."""
        current = ctypes.c_void_p()
        _library().cuCtxGetCurrent(ctypes.byref(current))
        return _NOTHING if current.value == self._context.value else self

    # memory

    def free_bytes(self) -> int:
        """Free memory of the card."""
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        with self:
            call("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
        return free.value

    def allocate(self, size: int) -> Memory:
        """Memory of `size` bytes, freed when the object is."""
        pointer = ctypes.c_uint64()
        if size:
            with self:
                status = _library().cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(size))
            if status == _OUT_OF_MEMORY:
                raise self._full(f"{size / 2**20:.1f} MiB")
            if status:
                raise _failure(f"allocating {size} bytes on gpu:{self.index}", status)
        return Memory(self, pointer.value, size)

    def _full(self, what: str) -> DeviceMemoryError:
        """The error for something that does not fit."""
        try:
            free = f"{self.free_bytes() / 2**20:.1f} MiB are free"
        except DeviceError:
            free = "how much is free is unknown"
        return DeviceMemoryError(
            f"gpu:{self.index}: {what} do not fit in its memory, {free}; take a smaller batch, or release arrays"
        )

    def upload(self, pointer: int, source: int, size: int, stream: int = 0) -> None:
        """Copy `size` bytes from host address `source` to the card; returns when the host may reuse them."""
        with self:
            call("cuMemcpyHtoDAsync_v2", *map(ctypes.c_uint64, (pointer, source, size)), ctypes.c_void_p(stream))
            call("cuStreamSynchronize", ctypes.c_void_p(stream))

    def download(self, target: int, pointer: int, size: int, stream: int = 0) -> None:
        """Copy `size` bytes from the card to host address `target`; returns when they are there."""
        with self:
            call("cuMemcpyDtoHAsync_v2", *map(ctypes.c_uint64, (target, pointer, size)), ctypes.c_void_p(stream))
            call("cuStreamSynchronize", ctypes.c_void_p(stream))

    def synchronize(self, stream: int = 0) -> None:
        """Wait for all work on a stream."""
        with self:
            call("cuStreamSynchronize", ctypes.c_void_p(stream))

    # code

    def compile(self, ptx: str, name: str) -> bytes:
        """Machine code of the card from PTX. Ctrl-C ends the wait for it."""
        return interruptible(lambda: self._compiled(ptx, name))

    def _compiled(self, ptx: str, name: str) -> bytes:
        library, log = _library(), ctypes.create_string_buffer(4096)
        options = (ctypes.c_int * 2)(_ERROR_LOG, _ERROR_LOG_SIZE)
        values = (ctypes.c_void_p * 2)(ctypes.addressof(log), len(log))
        state, text, code, size = ctypes.c_void_p(), ptx.encode() + b"\0", ctypes.c_void_p(), ctypes.c_size_t()
        with self:
            status = library.cuLinkCreate_v2(2, options, values, ctypes.byref(state))
            if status:
                raise self._refusal(name, status, "")
            try:
                status = library.cuLinkAddData_v2(
                    state, _INPUT_PTX, text, ctypes.c_size_t(len(text)), name.encode(), 0, None, None
                )
                status = status or library.cuLinkComplete(state, ctypes.byref(code), ctypes.byref(size))
                if status:
                    raise self._refusal(name, status, log.value.decode(errors="replace"))
                return ctypes.string_at(code, size.value)
            finally:
                with suppress(DeviceError):
                    call("cuLinkDestroy", state)

    def _refusal(self, name: str, status: int, log: str) -> DeviceError:
        """Why the driver did not compile a kernel."""
        if status == _OUT_OF_MEMORY:
            return self._full(f"{name}: the compiler's data")
        if status in _DEAD:
            return _failure(f"compiling {name}", status)
        where = " ".join(log.split())[:300] or "without a message"
        if status == _INVALID_PTX and "Unsupported .version" in log:
            status = _UNSUPPORTED_PTX
        because = {
            _UNSUPPORTED_PTX: f"the driver, for CUDA {cuda(driver_version())}, is older than the code for {self.name} "
            f"(sm_{self.capability}); update the NVIDIA driver",
            _NO_BINARY: f"the driver has no compiler for {self.name} (sm_{self.capability}); update the NVIDIA driver",
            _NO_COMPILER: "the driver's compiler, libnvidia-ptxjitcompiler, is missing; install the whole driver (in a "
            "container: NVIDIA_DRIVER_CAPABILITIES=compute,utility)",
            _COMPILER_OFF: "the driver's compiler is switched off; unset CUDA_DISABLE_PTX_JIT",
        }.get(status, f"the driver refused the code ({_name_of(_library(), status)}): {where}")
        return DeviceError(f"{name}: {because}")

    def load(self, code: bytes, symbol: str) -> Function:
        """A function of machine code of the card; CodeRefusedError where the driver does not take the code."""
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        with self:
            status = _library().cuModuleLoadData(ctypes.byref(module), code)
            status = status or _library().cuModuleGetFunction(ctypes.byref(function), module, symbol.encode())
        if status == _OUT_OF_MEMORY:
            raise self._full(f"{len(code) / 2**20:.1f} MiB of code")
        if status in _NOT_CODE:
            name = _name_of(_library(), status)
            raise CodeRefusedError(f"gpu:{self.index}: the driver does not load its own machine code ({name})")
        if status:
            raise _failure("loading a kernel", status)
        rest = ctypes.c_void_p()
        with self:
            if _library().cuModuleGetFunction(ctypes.byref(rest), module, rest_of(symbol).encode()):
                return Function(self, module, function)
        return Function(self, module, function, rest)


def rest_of(symbol: str) -> str:
    """The name of a second kernel, for the rest of the results, where one kernel would be too long."""
    return f"{symbol}_rest"


class Memory:
    """Memory of a card, freed with this object."""

    pointer = 0  # of one that was never allocated

    def __init__(self, card: Card, pointer: int, size: int) -> None:
        self.card, self.pointer, self.size = card, pointer, size

    def __del__(self) -> None:
        """Free it; the driver waits for work that uses it."""
        if self.pointer:
            with suppress(Exception), self.card:  # at exit the driver may be gone
                call("cuMemFree_v2", ctypes.c_uint64(self.pointer))


class Function:
    """A compiled kernel on one card, and perhaps a second one, for the `rest` of its results, that starts after it."""

    def __init__(self, card: Card, module: Any, function: Any, rest: Any = None) -> None:
        self.card, self._module, self._function, self.rest = card, module, function, rest

    def __del__(self) -> None:
        """Unload the code."""
        with suppress(Exception), self.card:
            call("cuModuleUnload", self._module)

    def _attribute(self, number: int) -> int:
        value = ctypes.c_int()
        with self.card:
            call("cuFuncGetAttribute", ctypes.byref(value), number, self._function)
        return value.value

    @cached_property
    def threads(self) -> int:
        """The most threads that a block may have."""
        return self._attribute(_MOST_THREADS)

    @property
    def registers(self) -> int:
        """Registers of 4 bytes that a thread uses."""
        return self._attribute(_REGISTERS)

    @property
    def local_bytes(self) -> int:
        """Memory of a thread for what its registers do not hold."""
        return self._attribute(_LOCAL_BYTES)

    def launch(
        self, grid: tuple[int, int, int], block: int, words: Sequence[int], stream: int = 0, shared: int = 0
    ) -> None:
        """Start the kernel with 64-bit arguments `words` on a stream; does not wait for it."""
        buffer = (ctypes.c_int64 * len(words))(*words)
        size = ctypes.c_size_t(ctypes.sizeof(buffer))
        extra = (ctypes.c_void_p * 5)(
            _PARAMETERS, ctypes.addressof(buffer), _PARAMETERS_SIZE, ctypes.addressof(size), None
        )
        if shared > 48 * 1024:
            with self.card:
                call("cuFuncSetAttribute", self._function, _MOST_SHARED, shared)
        with self.card.made_current():
            sizes = tuple(map(ctypes.c_uint, (*grid, block, 1, 1, shared)))
            for kernel in filter(None, (self._function, self.rest)):
                status = _library().cuLaunchKernel(kernel, *sizes, ctypes.c_void_p(stream), None, extra)
                if status:
                    raise self.failure(status)

    @property
    def handles(self) -> tuple[int, int]:
        """The driver's handles of the card's context and of the kernel."""
        return self.card._context.value or 0, self._function.value or 0

    @property
    def rest_handle(self) -> int:
        """The driver's handle of the second kernel, 0 if there is none."""
        return 0 if self.rest is None else self.rest.value or 0

    def failure(self, status: int) -> DeviceError:
        """The error to raise for a launch that the driver refused."""
        if status == _OUT_OF_MEMORY:
            return self.card._full(f"{self.local_bytes} bytes for each thread that runs at once")
        return _failure("starting a kernel", status)
