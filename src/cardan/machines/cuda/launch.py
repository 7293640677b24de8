"""Launches that are put together once: a later call fills in addresses and the stream.

The call is compiled, as in `machines/ufunc/bound.py`: a function for Python that copies the kernel's arguments, fills
in the addresses, and calls the driver. Through ctypes each launch would take some microseconds more.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

from cardan.machines.cuda import driver
from cardan.machines.host import compiling, load, to_object
from cardan.machines.ufunc.bound import Method, constructors

_METH_FASTCALL = 0x80  # part of Python's stable ABI
_OTHER_CONTEXT = -1  # another card's context is current, or none
FEW = 2  # starts through ctypes before the call is compiled: LLVM would take longer than the first call from the cache

# `launch(self, args, count)`: `args` are addresses and the stream; starts the kernel, and the second one if there is
# one, and returns the status. A thread fills in a copy of the arguments of its own, and lets others run while it is in
# the driver, which may wait for room in the stream.
_LAUNCH = """define ptr @launch(ptr %self, ptr %args, i64 %count) {{
entry:
  %frame = call ptr {pointer}(ptr %self, ptr null)
  %f = load [14 x i64], ptr %frame
  %start.i = extractvalue [14 x i64] %f, 0
  %start = inttoptr i64 %start.i to ptr
  %ask.i = extractvalue [14 x i64] %f, 1
  %ask = inttoptr i64 %ask.i to ptr
  %context = extractvalue [14 x i64] %f, 2
  %function.i = extractvalue [14 x i64] %f, 3
  %function = inttoptr i64 %function.i to ptr
  %x.l = extractvalue [14 x i64] %f, 4
  %x = trunc i64 %x.l to i32
  %y.l = extractvalue [14 x i64] %f, 5
  %y = trunc i64 %y.l to i32
  %z.l = extractvalue [14 x i64] %f, 6
  %z = trunc i64 %z.l to i32
  %block.l = extractvalue [14 x i64] %f, 7
  %block = trunc i64 %block.l to i32
  %shared.l = extractvalue [14 x i64] %f, 8
  %shared = trunc i64 %shared.l to i32
  %n = extractvalue [14 x i64] %f, 9
  %words.i = extractvalue [14 x i64] %f, 10
  %words = inttoptr i64 %words.i to ptr
  %pointers = extractvalue [14 x i64] %f, 11
  %places.i = extractvalue [14 x i64] %f, 12
  %places = inttoptr i64 %places.i to ptr
  %size = mul i64 %n, 8
  %own = alloca i64, i64 %n
  %size.at = alloca i64
  %current.at = alloca i64
  %extra = alloca [5 x ptr]
  store i64 0, ptr %current.at
  %asked = call i32 %ask(ptr %current.at)
  %current = load i64, ptr %current.at
  %same = icmp eq i64 %current, %context
  br i1 %same, label %copy, label %other
other:
  %no = call ptr {number}(i64 -1)
  ret ptr %no
copy:
  call void @llvm.memcpy.p0.p0.i64(ptr %own, ptr %words, i64 %size, i1 false)
  br label %head
head:
  %k = phi i64 [0, %copy], [%next, %body]
  %any = icmp slt i64 %k, %pointers
  br i1 %any, label %body, label %go
body:
  %arg.at = getelementptr ptr, ptr %args, i64 %k
  %arg = load ptr, ptr %arg.at
  %address = call i64 {address}(ptr %arg)
  %place.at = getelementptr i64, ptr %places, i64 %k
  %place = load i64, ptr %place.at
  %word.at = getelementptr i64, ptr %own, i64 %place
  %offset = load i64, ptr %word.at
  %there = add i64 %offset, %address
  store i64 %there, ptr %word.at
  %next = add i64 %k, 1
  br label %head
go:
  %last.at = getelementptr ptr, ptr %args, i64 %pointers
  %last = load ptr, ptr %last.at
  %stream.i = call i64 {address}(ptr %last)
  %stream = inttoptr i64 %stream.i to ptr
  store i64 %size, ptr %size.at
  %e1 = getelementptr ptr, ptr %extra, i64 1
  %e2 = getelementptr ptr, ptr %extra, i64 2
  %e3 = getelementptr ptr, ptr %extra, i64 3
  %e4 = getelementptr ptr, ptr %extra, i64 4
  store ptr inttoptr (i64 1 to ptr), ptr %extra
  store ptr %own, ptr %e1
  store ptr inttoptr (i64 2 to ptr), ptr %e2
  store ptr %size.at, ptr %e3
  store ptr null, ptr %e4
  %thread = call ptr {leave}()
  %first = call i32 %start(ptr %function, i32 %x, i32 %y, i32 %z, i32 %block, i32 1, i32 1, i32 %shared,
    ptr %stream, ptr null, ptr %extra)
  %rest.i = extractvalue [14 x i64] %f, 13
  %rest = inttoptr i64 %rest.i to ptr
  %has.rest = icmp ne i64 %rest.i, 0
  %started = icmp eq i32 %first, 0
  %two = and i1 %has.rest, %started
  br i1 %two, label %second, label %end
second:
  %other.status = call i32 %start(ptr %rest, i32 %x, i32 %y, i32 %z, i32 %block, i32 1, i32 1, i32 %shared,
    ptr %stream, ptr null, ptr %extra)
  br label %end
end:
  %status = phi i32 [%first, %go], [%other.status, %second]
  call void {back}(ptr %thread)
  %status.l = zext i32 %status to i64
  %result = call ptr {number}(i64 %status.l)
  ret ptr %result
}}
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
"""


@cache
def _method() -> tuple[Method, Any]:
    """The compiled `launch` as a method for Python; compiled once, held as long as the process."""

    def of(name: str) -> str:
        return f"inttoptr (i64 {ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value} to ptr)"

    text = _LAUNCH.format(
        pointer=of("PyCapsule_GetPointer"), number=of("PyLong_FromLongLong"), address=of("PyLong_AsUnsignedLongLong"),
        leave=of("PyEval_SaveThread"), back=of("PyEval_RestoreThread"),
    )  # fmt: skip
    (address,), held = load(to_object(text), "launch")
    return Method(b"launch", address, _METH_FASTCALL, b"Start a kernel at addresses on a stream."), held


class Launch:
    """A launch of a kernel with a grid and 64-bit arguments; those at `places` are addresses that a call gives."""

    __slots__ = ("_function", "_given", "_left", "_start")

    def __init__(
        self, function: driver.Function, grid: tuple[int, int, int], block: int, words: Sequence[int],
        places: Sequence[int], offsets: Sequence[int], shared: int = 0,
    ) -> None:  # fmt: skip
        self._function, self._left, self._start = function, FEW, None
        template = [*words]
        for place, offset in zip(places, offsets, strict=True):
            template[place] = offset
        self._given = grid, block, template, [*places], shared

    def _compiled(self) -> Any:
        """The compiled start of this launch."""
        if self._start is None:
            grid, block, template, places, shared = self._given
            function, own, at = self._function, (ctypes.c_int64 * len(template))(*template), ctypes.addressof
            where = (ctypes.c_int64 * len(places))(*places)
            frame = (ctypes.c_int64 * 14)(
                driver.address_of("cuLaunchKernel"), driver.address_of("cuCtxGetCurrent"), *function.handles, *grid,
                block, shared, len(template), at(own), len(places), at(where), function.rest_handle,
            )  # fmt: skip
            with compiling:
                method, _ = _method()
            capsule, make = constructors()
            self._start = make(at(method), capsule(at(frame), None, None), (frame, own, where, function))
        return self._start

    def bound(self, pointers: Sequence[int]) -> Callable[[int], None]:
        """A function of the stream that starts it at these addresses."""
        return partial(_start, self._function, partial(self._compiled(), *pointers))

    def __call__(self, pointers: Sequence[int], stream: int) -> None:
        """Start it at these addresses on a stream; does not wait for it."""
        if self._left:
            self._left -= 1
            grid, block, template, places, shared = self._given
            words = [*template]
            for place, pointer in zip(places, pointers, strict=True):
                words[place] += pointer
            self._function.launch(grid, block, words, stream, shared)
            return
        start = self._compiled()
        status = start(*pointers, stream)
        if status:
            _start(self._function, partial(start, *pointers), stream, status)


def _start(function: driver.Function, start: Callable[[int], int], stream: int, status: int | None = None) -> None:
    """Start a kernel, with its card's context made current where it is not; or say why an attempt failed."""
    status = start(stream) if status is None else status
    if status == _OTHER_CONTEXT:
        with function.card:
            status = start(stream)
    if status:
        raise function.failure(status)
