"""A CUDA driver for tests without a card: its functions in Python, with host memory for the card's; any can fail.

It takes the place of the library that `ctypes` loads, so all of `machines/cuda/driver.py` runs. Kernels are not
computed: a launch is recorded. `tests/fake_card.py` computes.
"""

import ctypes
import hashlib
import itertools
from collections.abc import Callable, Iterator
from threading import RLock
from typing import Any

import pytest
from tests.fake_card import address_of

from cardan.machines.cuda import driver

NAMES = {
    2: "CUDA_ERROR_OUT_OF_MEMORY",
    3: "CUDA_ERROR_NOT_INITIALIZED",
    34: "CUDA_ERROR_STUB_LIBRARY",
    46: "CUDA_ERROR_DEVICE_UNAVAILABLE",
    100: "CUDA_ERROR_NO_DEVICE",
    200: "CUDA_ERROR_INVALID_IMAGE",
    209: "CUDA_ERROR_NO_BINARY_FOR_GPU",
    218: "CUDA_ERROR_INVALID_PTX",
    221: "CUDA_ERROR_JIT_COMPILER_NOT_FOUND",
    222: "CUDA_ERROR_UNSUPPORTED_PTX_VERSION",
    223: "CUDA_ERROR_JIT_COMPILATION_DISABLED",
    300: "CUDA_ERROR_INVALID_SOURCE",
    700: "CUDA_ERROR_ILLEGAL_ADDRESS",
    701: "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES",
    719: "CUDA_ERROR_LAUNCH_FAILED",
    803: "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH",
    999: "CUDA_ERROR_UNKNOWN",
}


class StandInDriver:
    """`version` is that of CUDA, `cards` have their compute capabilities; `fails[function]` is the status to answer.

    A function as a value of `fails` is called with the driver's arguments and returns the status.
    """

    def __init__(self, version: int = 13000, cards: tuple[int, ...] = (90,), memory: int = 1 << 30) -> None:
        self.version, self.cards, self.free = version, cards, memory
        self.fails: dict[str, int | Callable[..., int]] = {}
        self.called: list[str] = []
        self.compiled: list[bytes] = []  # PTX
        self.loaded: list[bytes] = []
        self.launched: list[tuple[int, ...]] = []
        self.log = b""  # what the compiler says
        self.depth = 0  # of contexts pushed and not popped, over all threads
        self._kept: dict[int, Any] = {}
        self._one_at_a_time = RLock()
        self._numbers = itertools.count(1000)

    def __getattr__(self, name: str) -> Callable[..., int]:
        if not name.startswith("cu"):
            raise AttributeError(name)

        def function(*arguments: Any) -> int:
            self.called.append(name)
            status = self.fails.get(name, 0)
            if callable(status):
                status = status(*arguments)
            answer = getattr(type(self), "_" + name, None)
            with self._one_at_a_time:
                return status or (answer(self, *arguments) if answer else 0) or 0

        return function

    def _keep(self, thing: Any) -> int:
        number = next(self._numbers)
        self._kept[number] = thing
        return number

    def _cuDriverGetVersion(self, version: Any) -> None:
        version._obj.value = self.version

    def _cuGetErrorName(self, status: int, text: Any) -> None:
        text._obj.value = NAMES[status].encode()

    def _cuDeviceGetCount(self, count: Any) -> None:
        count._obj.value = len(self.cards)

    def _cuDeviceGet(self, handle: Any, index: int) -> None:
        handle._obj.value = index

    def _cuDeviceGetName(self, text: Any, size: int, handle: Any) -> None:
        text.value = f"Stand-in {handle.value}".encode()

    def _cuDeviceGetAttribute(self, value: Any, number: int, handle: Any) -> None:
        capability = self.cards[handle.value]
        value._obj.value = {75: capability // 10, 76: capability % 10, 16: 4}[number]

    def _cuCtxGetCurrent(self, context: Any) -> None:
        context._obj.value = None

    def _cuCtxPushCurrent_v2(self, context: Any) -> None:
        self.depth += 1

    def _cuCtxPopCurrent_v2(self, context: Any) -> None:
        self.depth -= 1

    def _cuMemGetInfo_v2(self, free: Any, total: Any) -> None:
        free._obj.value, total._obj.value = self.free, 1 << 30

    def _cuMemAlloc_v2(self, pointer: Any, size: Any) -> int:
        if size.value > self.free:
            return 2
        memory = ctypes.create_string_buffer(size.value)
        pointer._obj.value = ctypes.addressof(memory)
        self._kept[pointer._obj.value] = memory
        self.free -= size.value
        return 0

    def _cuMemFree_v2(self, pointer: Any) -> None:
        self.free += len(self._kept.pop(pointer.value))

    def _cuMemcpyHtoDAsync_v2(self, target: Any, source: Any, size: Any, stream: Any) -> None:
        ctypes.memmove(target.value, source.value, size.value)

    _cuMemcpyDtoHAsync_v2 = _cuMemcpyHtoDAsync_v2

    def _cuLinkCreate_v2(self, count: int, options: Any, values: Any, state: Any) -> None:
        ctypes.memmove(values[0], self.log + b"\0", len(self.log) + 1)
        state._obj.value = self._keep(None)

    def _cuLinkAddData_v2(self, state: Any, kind: int, text: bytes, size: Any, *_: Any) -> None:
        assert text[-1] == 0 and len(text) == size.value, "PTX ends in a zero, which counts"
        self._kept[state.value] = text

    def _cuLinkComplete(self, state: Any, code: Any, size: Any) -> None:
        ptx = self._kept[state.value]
        self.compiled.append(ptx)
        image = ctypes.create_string_buffer(b"machine code of " + hashlib.sha256(ptx).digest())
        self._kept[state.value] = image
        code._obj.value, size._obj.value = ctypes.addressof(image), len(image)

    def _cuModuleLoadData(self, module: Any, code: bytes) -> int:
        self.loaded.append(code)
        module._obj.value = self._keep(code)
        return 0 if code.startswith(b"machine code of ") else 200

    def _cuModuleGetFunction(self, function: Any, module: Any, symbol: bytes) -> int:
        function._obj.value = module.value
        return 0 if symbol == b"rows" else 500

    def _cuFuncGetAttribute(self, value: Any, number: int, function: Any) -> None:
        value._obj.value = {0: 64, 4: 40, 3: 16}[number]

    def _cuLaunchKernel(self, function: Any, *rest: Any) -> None:
        self.launched.append(tuple(size.value for size in rest[:7]))


@pytest.fixture
def use(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[StandInDriver], StandInDriver]]:
    """Makes a stand-in the driver of this process."""

    def forget() -> None:
        driver._library.cache_clear()
        driver.card.cache_clear()

    def use(library: StandInDriver) -> StandInDriver:
        forget()
        monkeypatch.setattr(driver, "_open", lambda: library)
        monkeypatch.setattr(driver, "address_of", address_of)
        return library

    yield use
    forget()
