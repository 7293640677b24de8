"""The CUDA driver through ctypes: cards, memory, compiled modules and launches; its errors as sentences.

The functions used are a small part of the driver's interface, which NVIDIA keeps stable since CUDA 12. Cardan uses the
primary context of a card, as the runtime does: memory and streams of torch, CuPy and JAX are valid in it.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from typing import Any

from cardan.errors import CardanError, InputError


class DeviceError(CardanError, RuntimeError):
    """There is no GPU that can be used, or it failed: what is missing, and what to do."""


class DeviceMemoryError(DeviceError, MemoryError):
    """The card has too little free memory for an array."""


_LOWEST = 12000  # CUDA 12.0: earlier drivers lack what is called here
_OUT_OF_MEMORY, _UNSUPPORTED_PTX, _NO_BINARY, _INVALID_PTX = 2, 222, 209, 218
_INPUT_PTX = 1  # CU_JIT_INPUT_PTX
_ERROR_LOG, _ERROR_LOG_SIZE = 5, 6  # CU_JIT_ERROR_LOG_BUFFER and its size
_REGISTERS, _LOCAL_BYTES, _MOST_SHARED = 4, 3, 8  # attributes of functions
_MAJOR, _MINOR, _MULTIPROCESSORS = 75, 76, 16  # attributes of devices
_PARAMETERS, _PARAMETERS_SIZE = 1, 2  # CU_LAUNCH_PARAM_BUFFER_POINTER and _SIZE


@cache
def _library() -> Any:
    """The driver's library, initialised; DeviceError where it cannot be used."""
    name = "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"
    try:
        library = ctypes.CDLL(name)
    except OSError:
        raise DeviceError(
            f"device='gpu': no NVIDIA driver is installed ({name} was not found); install one, or compute on the CPU"
        ) from None
    version = ctypes.c_int()
    library.cuDriverGetVersion(ctypes.byref(version))
    if version.value < _LOWEST:
        raise DeviceError(
            f"device='gpu': the NVIDIA driver is for CUDA {_cuda(version.value)}; {_cuda(_LOWEST)} or newer is needed: "
            "update the driver"
        )
    status = library.cuInit(0)
    if status:
        raise DeviceError(f"device='gpu': the NVIDIA driver finds no usable GPU ({_name_of(library, status)})")
    return library


def _cuda(version: int) -> str:
    return f"{version // 1000}.{version % 1000 // 10}"


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
        raise DeviceError(f"the GPU driver failed: {name}: {_name_of(library, status)}")


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

    def __exit__(self, *_: object) -> None:
        """Give the thread its former context back."""
        call("cuCtxPopCurrent_v2", ctypes.byref(ctypes.c_void_p()))

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
                raise DeviceMemoryError(
                    f"gpu:{self.index}: {size / 2**20:.1f} MiB do not fit, {self.free_bytes() / 2**20:.1f} "
                    "MiB are free; take a smaller batch, or release arrays"
                )
            if status:
                raise DeviceError(f"gpu:{self.index}: allocating {size} bytes failed: {_name_of(_library(), status)}")
        return Memory(self, pointer.value, size)

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
        """Machine code of the card from PTX."""
        library, log = _library(), ctypes.create_string_buffer(4096)
        options = (ctypes.c_int * 2)(_ERROR_LOG, _ERROR_LOG_SIZE)
        values = (ctypes.c_void_p * 2)(ctypes.addressof(log), len(log))
        state, text, code, size = ctypes.c_void_p(), ptx.encode() + b"\0", ctypes.c_void_p(), ctypes.c_size_t()
        with self:
            call("cuLinkCreate_v2", 2, options, values, ctypes.byref(state))
            try:
                status = library.cuLinkAddData_v2(
                    state, _INPUT_PTX, text, ctypes.c_size_t(len(text)), name.encode(), 0, None, None
                )
                status = status or library.cuLinkComplete(state, ctypes.byref(code), ctypes.byref(size))
                if status:
                    raise DeviceError(self._refusal(name, status, log.value.decode(errors="replace")))
                return ctypes.string_at(code, size.value)
            finally:
                with suppress(DeviceError):
                    call("cuLinkDestroy", state)

    def _refusal(self, name: str, status: int, log: str) -> str:
        """Why the driver did not compile a kernel."""
        if status == _UNSUPPORTED_PTX:
            return (
                f"{name}: the driver, for CUDA {_cuda(driver_version())}, is older than the code for {self.name} "
                f"(sm_{self.capability}); update the NVIDIA driver"
            )
        if status == _NO_BINARY:
            return f"{name}: {self.name} (sm_{self.capability}) is not supported by this version of Cardan's compiler"
        where = " ".join(log.split())[:300]
        return f"{name}: the driver refused the code ({_name_of(_library(), status)}): {where or 'without a message'}"

    def load(self, code: bytes, symbol: str) -> Function:
        """A function of machine code of the card."""
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        with self:
            call("cuModuleLoadData", ctypes.byref(module), code)
            call("cuModuleGetFunction", ctypes.byref(function), module, symbol.encode())
        return Function(self, module, function)


class Memory:
    """Memory of a card, freed with this object."""

    def __init__(self, card: Card, pointer: int, size: int) -> None:
        self.card, self.pointer, self.size = card, pointer, size

    def __del__(self) -> None:
        """Free it; the driver waits for work that uses it."""
        if self.pointer:
            with suppress(Exception), self.card:  # at exit the driver may be gone
                call("cuMemFree_v2", ctypes.c_uint64(self.pointer))


class Function:
    """A compiled kernel on one card."""

    def __init__(self, card: Card, module: Any, function: Any) -> None:
        self.card, self._module, self._function = card, module, function

    def __del__(self) -> None:
        """Unload the code."""
        with suppress(Exception), self.card:
            call("cuModuleUnload", self._module)

    def _attribute(self, number: int) -> int:
        value = ctypes.c_int()
        with self.card:
            call("cuFuncGetAttribute", ctypes.byref(value), number, self._function)
        return value.value

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
        with self.card:
            if shared > 48 * 1024:
                call("cuFuncSetAttribute", self._function, _MOST_SHARED, shared)
            call(
                "cuLaunchKernel", self._function, *map(ctypes.c_uint, (*grid, block, 1, 1, shared)),
                ctypes.c_void_p(stream), None, extra,
            )  # fmt: skip
