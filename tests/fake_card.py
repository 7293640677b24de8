"""Cards that are not there: the CUDA driver, played in the host's memory, for tests on any machine.

`FakeDriver` has the functions of the driver that Cardan calls. Memory of a card is memory of the host, so its addresses
are real. "PTX" is the kernel's IR: it is compiled for the host, with the numbers of thread and block as variables, and
a launch calls it for every thread of every block, one after the other. So all but NVIDIA's own compiler is the real
thing, and results have the bits of the CPU's kernels.

Streams are numbers; work is done at once. Waits between streams are written down in `waits`, and what a stream records
while `capturing` in `recorded`.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any

import pytest

from cardan.machines.cuda import driver, ptx
from cardan.machines.host import load, to_object

_INDICES = ("tid.x", "ctaid.x", "ntid.x", "ctaid.y", "ctaid.z")
_OUT_OF_MEMORY, _INVALID, _NOT_FOUND = 2, 1, 500

# Models that tests share remember kernels and constants; these outlive a driver.
_ALLOCATED: dict[int, tuple[FakeDriver, int, Any, int]] = {}  # by address: driver, card, what holds the memory, size
_FUNCTIONS: dict[int, tuple[Any, int, Any]] = {}
_SYMBOLS: dict[tuple[int, bytes], int] = {}
_KERNEL = re.compile(r"define ptx_kernel void @(\w+)\((.*?)\)", re.DOTALL)
_THREADS: dict[int, int] = {}  # the most that a block of a function may have
_numbers = count(100)


class FakeDriver:
    """The driver's library, as `driver._library()` returns it, with `cards` cards of `memory` bytes each."""

    def __init__(self, cards: int = 2, memory: int = 2**30) -> None:
        self.cards, self.memory = cards, memory
        self.contexts: list[int] = [0]
        self.launches: list[tuple[int, ...]] = []
        self.waits: list[tuple[int, int]] = []
        self.events: dict[int, int] = {}
        self.capturing: set[int] = set()
        self._texts: dict[int, bytes] = {}

    def in_use(self, card: int | None = None) -> int:
        """Bytes allocated, on one card or all."""
        return sum(size for of, at, _, size in _ALLOCATED.values() if of is self and card in (None, at))

    # cards and contexts

    def cuDriverGetVersion(self, version: Any) -> int:
        version._obj.value = 13000
        return 0

    def cuInit(self, flags: int) -> int:
        return 0

    def cuGetErrorName(self, status: int, text: Any) -> int:
        text._obj.value = b"CUDA_ERROR_%d" % status
        return 0

    def cuDeviceGetCount(self, count: Any) -> int:
        count._obj.value = self.cards
        return 0

    def cuDeviceGet(self, handle: Any, index: int) -> int:
        handle._obj.value = index
        return 0

    def cuDeviceGetName(self, text: Any, size: int, handle: Any) -> int:
        text.value = b"Fake card"
        return 0

    def cuDeviceGetAttribute(self, value: Any, number: int, handle: Any) -> int:
        value._obj.value = {75: 9, 76: 0, 16: 4}.get(number, 1)
        return 0

    def cuDevicePrimaryCtxRetain(self, context: Any, handle: Any) -> int:
        context._obj.value = 1000 + handle.value
        return 0

    def cuCtxGetCurrent(self, context: Any) -> int:
        context._obj.value = self.contexts[-1] + 1000 if len(self.contexts) > 1 else None
        return 0

    def cuCtxPushCurrent_v2(self, context: Any) -> int:
        self.contexts.append(context.value - 1000)
        return 0

    def cuCtxPopCurrent_v2(self, context: Any) -> int:
        self.contexts.pop()
        return 0

    # memory

    def cuMemGetInfo_v2(self, free: Any, total: Any) -> int:
        free._obj.value, total._obj.value = self.memory - self.in_use(self.contexts[-1]), self.memory
        return 0

    def cuMemAlloc_v2(self, pointer: Any, size: Any) -> int:
        if self.capturing:
            return _INVALID
        if self.in_use(self.contexts[-1]) + size.value > self.memory:
            return _OUT_OF_MEMORY
        held = ctypes.create_string_buffer(b"\xff" * size.value, size.value + 1)  # values that nobody wrote are NaN
        pointer._obj.value = ctypes.addressof(held)
        _ALLOCATED[ctypes.addressof(held)] = (self, self.contexts[-1], held, size.value)
        return 0

    def cuMemFree_v2(self, pointer: Any) -> int:
        return 0 if _ALLOCATED.pop(pointer.value, None) else _INVALID

    def _inside(self, pointer: int, size: int) -> bool:
        """Whether addresses belong to memory of the current card."""
        return any(
            card == self.contexts[-1] and at <= pointer and pointer + size <= at + length
            for at, (_, card, _, length) in _ALLOCATED.items()
        )

    def cuMemcpyHtoDAsync_v2(self, pointer: Any, source: Any, size: Any, stream: Any) -> int:
        if not self._inside(pointer.value, size.value) or self.capturing:
            return _INVALID
        ctypes.memmove(pointer.value, source.value, size.value)
        return 0

    def cuMemcpyDtoHAsync_v2(self, target: Any, pointer: Any, size: Any, stream: Any) -> int:
        if not self._inside(pointer.value, size.value) or self.capturing:
            return _INVALID
        ctypes.memmove(target.value, pointer.value, size.value)
        return 0

    def cuPointerGetAttribute(self, value: Any, attribute: Any, pointer: Any) -> int:
        for at, (_, card, _, size) in _ALLOCATED.items():
            if at <= pointer.value < at + max(size, 1):
                value._obj.value = card
                return 0
        return _INVALID

    # streams and events

    def cuStreamSynchronize(self, stream: Any) -> int:
        return _INVALID if self.capturing else 0

    def cuStreamIsCapturing(self, stream: Any, state: Any) -> int:
        state._obj.value = int((stream.value or 1) in self.capturing)
        return 0

    def cuEventCreate(self, event: Any, flags: Any) -> int:
        event._obj.value = next(_numbers)
        return 0

    def cuEventRecord(self, event: Any, stream: Any) -> int:
        self.events[event.value] = stream.value or 1
        return 0

    def cuEventQuery(self, event: Any) -> int:
        return 0

    def cuEventDestroy_v2(self, event: Any) -> int:
        del self.events[event.value]
        return 0

    def cuStreamWaitEvent(self, stream: Any, event: Any, flags: Any) -> int:
        self.waits.append((stream.value or 1, self.events[event.value]))
        return 0

    # code

    def cuLinkCreate_v2(self, count: int, options: Any, values: Any, state: Any) -> int:
        state._obj.value = next(_numbers)
        return 0

    def cuLinkAddData_v2(self, state: Any, kind: int, text: bytes, size: Any, *rest: Any) -> int:
        self._texts[state.value] = text
        return 0

    def cuLinkComplete(self, state: Any, code: Any, size: Any) -> int:
        text = self._texts[state.value]
        code._obj.value = ctypes.cast(text, ctypes.c_void_p).value
        size._obj.value = len(text)
        return 0

    def cuLinkDestroy(self, state: Any) -> int:
        del self._texts[state.value]
        return 0

    def cuModuleLoadData(self, module: Any, code: bytes) -> int:
        module._obj.value = number = next(_numbers)
        text = code.rstrip(b"\0").decode()
        bound = re.search(r'"maxntidx", i32 (\d+)', text)
        for k, (symbol, arguments) in enumerate(_KERNEL.findall(text)):
            handle = next(_numbers) if k else number
            _SYMBOLS[number, symbol.encode()] = handle
            _THREADS[handle] = int(bound[1]) if bound else 1024
            (address,), held = load(to_object(host_text(text, k)), "launch")
            launch = ctypes.CFUNCTYPE(None, ctypes.c_void_p, *[ctypes.c_int32] * 4)(address)
            _FUNCTIONS[handle] = launch, len(arguments.split(",")), held
        return 0

    def cuModuleGetFunction(self, function: Any, module: Any, symbol: bytes) -> int:
        if (module.value, symbol) not in _SYMBOLS:
            return _NOT_FOUND
        function._obj.value = _SYMBOLS[module.value, symbol]
        return 0

    def cuModuleUnload(self, module: Any) -> int:
        _FUNCTIONS.pop(module.value, None)
        return 0

    def cuFuncGetAttribute(self, value: Any, number: int, function: Any) -> int:
        value._obj.value = _THREADS[function.value] if number == 0 else 0
        return 0

    def cuFuncSetAttribute(self, function: Any, number: int, value: int) -> int:
        return 0

    def cuLaunchKernel(self, function: Any, *rest: Any) -> int:
        x, y, z, block, _, _, _ = (part.value for part in rest[:7])
        stream, _, extra = rest[7:]
        if not (0 < x < 2**31 and 0 < y <= 65_535 and 0 < z <= 65_535 and 0 < block <= 1024):
            return _INVALID
        launch, words, _ = _FUNCTIONS[function.value]
        size = ctypes.c_size_t.from_address(extra[3]).value
        if (extra[0], extra[2], extra[4]) != (1, 2, None) or size != 8 * words:
            return _INVALID
        self.launches.append((x, y, z, block, stream.value or 1))
        launch(extra[1], x, y, z, block)
        return 0


def host_text(text: str, number: int = 0) -> str:
    """IR of a kernel for a card as IR for the host, with `launch(words, x, y, z, threads)` that runs all threads."""
    found = _KERNEL.findall(text)
    assert found, "the IR has no kernel"
    symbol, count = found[number][0], len(found[number][1].split(","))
    text = text.replace("define ptx_kernel void", "define internal void")
    for name in _INDICES:
        text = text.replace(f"declare i32 @llvm.nvvm.read.ptx.sreg.{name}()\n", "")
        text = text.replace(f"call i32 @llvm.nvvm.read.ptx.sreg.{name}()", f'load i32, ptr @"{name}"')
    name = "@llvm.nvvm.rcp.approx.ftz.f"
    exact = f"define internal float {name}(float %x) {{\n  %y = fdiv float 1.0, %x\n  ret float %y\n}}"
    text = text.replace(f"declare float {name}(float)", exact).replace(name, "@estimate")
    # threads run one after the other: after three turns each has seen what the others did before two barriers
    text, waits = re.subn(r".*@llvm.nvvm.barrier.cta.sync.aligned.all\(.*\n", "", text)
    assert "llvm.nvvm" not in text, f"the fake card does not know {re.search('llvm.nvvm[a-z.0-9]*', text)[0]}"
    variables = "".join(f'@"{name}" = internal global i32 0\n' for name in (*_INDICES, "turn"))
    words = "".join(
        f"  %a{k} = getelementptr i64, ptr %words, i64 {k}\n  %w{k} = load i64, ptr %a{k}\n" for k in range(count)
    )
    loops = {"ctaid.z": "z", "ctaid.y": "y", "ctaid.x": "x", "tid.x": "threads"}
    if waits:
        loops = {"ctaid.z": "z", "ctaid.y": "y", "ctaid.x": "x", "turn": "repeats", "tid.x": "threads"}
    heads, tails, before = "", "", "entry"
    for name, end in loops.items():
        v = end[0]
        heads += f"""  br label %{v}.head
{v}.head:
  %{v}.i = phi i32 [0, %{before}], [%{v}.next, %{v}.end]
  %{v}.any = icmp slt i32 %{v}.i, %{end}
  br i1 %{v}.any, label %{v}.body, label %{v}.done
{v}.body:
  store i32 %{v}.i, ptr @"{name}"
"""
        tails = (
            f"  br label %{v}.end\n{v}.end:\n  %{v}.next = add i32 %{v}.i, 1\n  br label %{v}.head\n{v}.done:\n" + tails
        )
        before = f"{v}.body"
    call = f"  call void @{symbol}({', '.join(f'i64 %w{k}' for k in range(count))})\n"
    launch = (
        "define void @launch(ptr %words, i32 %x, i32 %y, i32 %z, i32 %threads) {\nentry:\n"
        f'  %repeats = add i32 3, 0\n  store i32 %threads, ptr @"ntid.x"\n{words}{heads}{call}{tails}  ret void\n}}\n'
    )
    return variables + text + launch


@ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)
def _current(context: int) -> int:
    place = ctypes.c_void_p.from_address(context)
    return driver._library().cuCtxGetCurrent(ctypes.byref(place))


@ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, *[ctypes.c_uint] * 7, *[ctypes.c_void_p] * 3)
def _launch(function: int, *rest: Any) -> int:
    sizes, (stream, _, extra) = map(ctypes.c_uint, rest[:7]), rest[7:]
    options = (ctypes.c_void_p * 5).from_address(extra)
    return driver._library().cuLaunchKernel(ctypes.c_void_p(function), *sizes, ctypes.c_void_p(stream), None, options)


def address_of(name: str) -> int:
    """Addresses for compiled code: of functions that call the driver which is in use then."""
    return ctypes.cast({"cuCtxGetCurrent": _current, "cuLaunchKernel": _launch}[name], ctypes.c_void_p).value or 0


@contextmanager
def fake_cards(cards: int = 2, memory: int = 2**30) -> Iterator[FakeDriver]:
    """Let Cardan find such cards."""
    made = FakeDriver(cards, memory)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(driver, "_library", lambda: made)
        patch.setattr(driver, "address_of", address_of)
        patch.setattr(ptx, "to_ptx", lambda ir, *rest: ir)
        patch.setenv("CARDAN_CACHE", "0")
        driver.card.cache_clear()
        try:
            yield made
        finally:
            driver.card.cache_clear()
