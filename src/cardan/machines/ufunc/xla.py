"""Kernels called by XLA, which compiles JAX programs, without Python: one handler of XLA's foreign function interface.

XLA documents the layout of what it hands over as a stable binary interface (`xla/ffi/api/c_api.h`, version 0.1 here):
a call frame with buffers in, buffers out and attributes. The one attribute is the address of a `_Call`.
"""

from __future__ import annotations

import ctypes
from functools import cache
from math import prod
from typing import Any

import numpy as np

from cardan.machines.host import compiling, few, host, load, to_object
from cardan.machines.ufunc.kernel import Kernel

# The beginning of a handler: `%what` is what the attribute points to. Offsets are in bytes. XLA asks once for the
# version, by a frame with an extension of type 1, and leaves room for it there.
BEGIN = """define ptr @handle(ptr %frame) {
  %x.at = getelementptr i8, ptr %frame, i64 8
  %x = load ptr, ptr %x.at
  %plain = icmp eq ptr %x, null
  br i1 %plain, label %call, label %extended
extended:
  %type.at = getelementptr i8, ptr %x, i64 8
  %type = load i32, ptr %type.at
  %asks = icmp eq i32 %type, 1
  br i1 %asks, label %version, label %call
version:
  %meta.at = getelementptr i8, ptr %x, i64 24
  %meta = load ptr, ptr %meta.at
  %major = getelementptr i8, ptr %meta, i64 24
  store i32 0, ptr %major
  %minor = getelementptr i8, ptr %meta, i64 28
  store i32 1, ptr %minor
  %traits = getelementptr i8, ptr %meta, i64 32
  store i32 0, ptr %traits
  ret ptr null
call:
  %attrs.at = getelementptr i8, ptr %frame, i64 160
  %attrs = load ptr, ptr %attrs.at
  %scalar = load ptr, ptr %attrs
  %value.at = getelementptr i8, ptr %scalar, i64 8
  %value = load ptr, ptr %value.at
  %what = load ptr, ptr %value
"""

_HANDLER = (
    BEGIN
    + """  %w = load [6 x ptr], ptr %what
  %loop = extractvalue [6 x ptr] %w, 0
  %dims = extractvalue [6 x ptr] %w, 1
  %steps = extractvalue [6 x ptr] %w, 2
  %data = extractvalue [6 x ptr] %w, 3
  %nin.p = extractvalue [6 x ptr] %w, 4
  %nin = ptrtoint ptr %nin.p to i64
  %n.p = extractvalue [6 x ptr] %w, 5
  %n = ptrtoint ptr %n.p to i64
  %in.at = getelementptr i8, ptr %frame, i64 72
  %in = load ptr, ptr %in.at
  %out.at = getelementptr i8, ptr %frame, i64 112
  %out = load ptr, ptr %out.at
  %args = alloca ptr, i64 %n
  br label %head
head:
  %k = phi i64 [0, %call], [%next, %body]
  %any = icmp slt i64 %k, %n
  br i1 %any, label %body, label %go
body:
  %is.in = icmp slt i64 %k, %nin
  %from.in = sub i64 %k, %nin
  %place = select i1 %is.in, i64 %k, i64 %from.in
  %list = select i1 %is.in, ptr %in, ptr %out
  %buffer.at = getelementptr ptr, ptr %list, i64 %place
  %buffer = load ptr, ptr %buffer.at
  %data.at = getelementptr i8, ptr %buffer, i64 24
  %array = load ptr, ptr %data.at
  %arg = getelementptr ptr, ptr %args, i64 %k
  store ptr %array, ptr %arg
  %next = add i64 %k, 1
  br label %head
go:
  call void %loop(ptr %args, ptr %dims, ptr %steps, ptr %data)
  ret ptr null
}
"""
)


class _Call(ctypes.Structure):
    """What the handler needs for one call in a program: the loop of a kernel and the batch it is for."""

    _fields_ = (
        *((name, ctypes.c_void_p) for name in ("loop", "dims", "steps", "data")),
        *((name, ctypes.c_ssize_t) for name in ("inputs", "ports")),
    )


@cache
def _loaded(text: str) -> tuple[int, Any]:
    (address,), held = load(to_object(text), "handle")
    return address, held


def loaded_handler(text: str) -> int:
    """Address of the handler of this IR; it stays as long as the process."""
    with compiling:
        return _loaded(text)[0]


def handler() -> int:
    """Address of the handler for the CPU."""
    return loaded_handler(_HANDLER)


def is_empty(kernel: Kernel, rows: int) -> bool:
    """Whether a call of `kernel` on so many rows has nothing to read or to write."""
    program = kernel.program
    return rows == 0 or not program.inputs or any(port.size == 0 for port in program.ports)


def call_address(kernel: Kernel, dtype: np.dtype[Any], rows: int) -> tuple[int, Any] | None:
    """The attribute for calls of `kernel` on so many rows, and what must live as long as the program; None if empty.

    Every array has all rows, in C order.
    """
    ports = kernel.program.ports
    if is_empty(kernel, rows):
        return None
    wide = rows > few(host().lanes("double" if dtype == np.float64 else "float"))
    variant = kernel.compiled(dtype, wide=wide)
    size = dtype.itemsize
    steps = [port.size * size for port in ports]
    steps += [prod(port.shape[k + 1 :]) * size for port in ports for k in range(len(port.shape))]
    table, dims = (ctypes.c_ssize_t * len(steps))(*steps), (ctypes.c_ssize_t * 1)(rows)
    at = ctypes.addressof
    call = _Call(variant.loop, at(dims), at(table), at(variant.loops), len(kernel.program.inputs), len(ports))
    return at(call), (call, dims, table, variant.ufunc)
