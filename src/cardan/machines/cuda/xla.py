"""Kernels on a card called by XLA without Python: one handler of its foreign function interface, for CUDA.

The interface is that of `machines/ufunc/xla.py`. The call frame gives the stream that the program runs on: the handler
fills the buffers' addresses into the kernel's arguments and starts it there. It waits for nothing.
"""

from __future__ import annotations

import ctypes
from math import prod
from typing import Any

import numpy as np

from cardan.machines.cuda import driver
from cardan.machines.cuda.forms import words_of
from cardan.machines.cuda.kernel import block_of
from cardan.machines.ufunc.kernel import Kernel
from cardan.machines.ufunc.xla import BEGIN, is_empty, loaded_handler

# The table of the interface has the function for the stream 80 bytes from its beginning, that for errors 48 bytes.
_HANDLER = (
    BEGIN
    + """  %w = load [15 x ptr], ptr %what
  %functions = extractvalue [15 x ptr] %w, 0
  %cards.p = extractvalue [15 x ptr] %w, 1
  %cards = ptrtoint ptr %cards.p to i32
  %template = extractvalue [15 x ptr] %w, 2
  %count.p = extractvalue [15 x ptr] %w, 3
  %count = ptrtoint ptr %count.p to i64
  %places = extractvalue [15 x ptr] %w, 4
  %nin.p = extractvalue [15 x ptr] %w, 5
  %nin = ptrtoint ptr %nin.p to i64
  %n.p = extractvalue [15 x ptr] %w, 6
  %n = ptrtoint ptr %n.p to i64
  %grid.p = extractvalue [15 x ptr] %w, 7
  %grid = ptrtoint ptr %grid.p to i32
  %block.p = extractvalue [15 x ptr] %w, 8
  %block = ptrtoint ptr %block.p to i32
  %launch = extractvalue [15 x ptr] %w, 9
  %context.of = extractvalue [15 x ptr] %w, 10
  %push = extractvalue [15 x ptr] %w, 11
  %pop = extractvalue [15 x ptr] %w, 12
  %card.of = extractvalue [15 x ptr] %w, 13
  %text = extractvalue [15 x ptr] %w, 14
  %api.at = getelementptr i8, ptr %frame, i64 16
  %api = load ptr, ptr %api.at
  %ctx.at = getelementptr i8, ptr %frame, i64 24
  %ctx = load ptr, ptr %ctx.at
  %ask.at = getelementptr i8, ptr %api, i64 80
  %ask = load ptr, ptr %ask.at
  %question = alloca [4 x ptr]
  store i64 32, ptr %question
  %q1 = getelementptr ptr, ptr %question, i64 1
  store ptr null, ptr %q1
  %q2 = getelementptr ptr, ptr %question, i64 2
  store ptr %ctx, ptr %q2
  %q3 = getelementptr ptr, ptr %question, i64 3
  store ptr null, ptr %q3
  %refused = call ptr %ask(ptr %question)
  %is.refused = icmp ne ptr %refused, null
  br i1 %is.refused, label %no.stream, label %streamed
no.stream:
  ret ptr %refused
streamed:
  %stream = load ptr, ptr %q3
  %in.at = getelementptr i8, ptr %frame, i64 72
  %in = load ptr, ptr %in.at
  %out.at = getelementptr i8, ptr %frame, i64 112
  %out = load ptr, ptr %out.at
  %words = alloca i64, i64 %count
  br label %copy
copy:
  %c = phi i64 [0, %streamed], [%c.next, %copy]
  %from = getelementptr i64, ptr %template, i64 %c
  %word = load i64, ptr %from
  %to = getelementptr i64, ptr %words, i64 %c
  store i64 %word, ptr %to
  %c.next = add i64 %c, 1
  %c.more = icmp slt i64 %c.next, %count
  br i1 %c.more, label %copy, label %fill
fill:
  %k = phi i64 [0, %copy], [%next, %fill]
  %is.in = icmp slt i64 %k, %nin
  %from.in = sub i64 %k, %nin
  %place = select i1 %is.in, i64 %k, i64 %from.in
  %list = select i1 %is.in, ptr %in, ptr %out
  %buffer.at = getelementptr ptr, ptr %list, i64 %place
  %buffer = load ptr, ptr %buffer.at
  %data.at = getelementptr i8, ptr %buffer, i64 24
  %array = load i64, ptr %data.at
  %where.at = getelementptr i64, ptr %places, i64 %k
  %where = load i64, ptr %where.at
  %target = getelementptr i64, ptr %words, i64 %where
  store i64 %array, ptr %target
  %next = add i64 %k, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %fill, label %go
go:
  %context = alloca ptr
  %s0 = call i32 %context.of(ptr %stream, ptr %context)
  %bad0 = icmp ne i32 %s0, 0
  br i1 %bad0, label %failed, label %known
known:
  %current = load ptr, ptr %context
  %s1 = call i32 %push(ptr %current)
  %bad1 = icmp ne i32 %s1, 0
  br i1 %bad1, label %failed, label %pushed
pushed:
  %number.at = alloca i32
  store i32 -1, ptr %number.at
  %s2 = call i32 %card.of(ptr %number.at)
  %number = load i32, ptr %number.at
  %is.card = icmp ult i32 %number, %cards
  br i1 %is.card, label %start, label %back
start:
  %which = zext i32 %number to i64
  %function.at = getelementptr ptr, ptr %functions, i64 %which
  %function = load ptr, ptr %function.at
  %size = alloca i64
  %bytes = mul i64 %count, 8
  store i64 %bytes, ptr %size
  %extra = alloca [5 x ptr]
  store i64 1, ptr %extra
  %x1 = getelementptr ptr, ptr %extra, i64 1
  store ptr %words, ptr %x1
  %x2 = getelementptr ptr, ptr %extra, i64 2
  store i64 2, ptr %x2
  %x3 = getelementptr ptr, ptr %extra, i64 3
  store ptr %size, ptr %x3
  %x4 = getelementptr ptr, ptr %extra, i64 4
  store ptr null, ptr %x4
  %s3 = call i32 %launch(ptr %function, i32 %grid, i32 1, i32 1, i32 %block, i32 1, i32 1, i32 0, ptr %stream,
                         ptr null, ptr %extra)
  br label %back
back:
  %status = phi i32 [1, %pushed], [%s3, %start]
  %s4 = call i32 %pop(ptr %context)
  %bad = icmp ne i32 %status, 0
  br i1 %bad, label %failed, label %done
done:
  ret ptr null
failed:
  %error = alloca [4 x ptr]
  store i64 28, ptr %error
  %e1 = getelementptr ptr, ptr %error, i64 1
  store ptr null, ptr %e1
  %e2 = getelementptr ptr, ptr %error, i64 2
  store ptr %text, ptr %e2
  %e3 = getelementptr ptr, ptr %error, i64 3
  store i64 13, ptr %e3
  %tell.at = getelementptr i8, ptr %api, i64 48
  %tell = load ptr, ptr %tell.at
  %told = call ptr %tell(ptr %error)
  ret ptr %told
}
"""
)

_DRIVER = ("cuLaunchKernel", "cuStreamGetCtx", "cuCtxPushCurrent_v2", "cuCtxPopCurrent_v2", "cuCtxGetDevice")


class _Call(ctypes.Structure):
    """What the handler needs for one call in a program: a kernel on every card, and its arguments but for addresses."""

    _fields_ = (
        ("functions", ctypes.c_void_p),
        ("cards", ctypes.c_ssize_t),
        ("words", ctypes.c_void_p),
        ("count", ctypes.c_ssize_t),
        ("places", ctypes.c_void_p),
        *((name, ctypes.c_ssize_t) for name in ("inputs", "ports", "grid", "block")),
        *((name, ctypes.c_void_p) for name in (*_DRIVER, "text")),
    )


def handler() -> int:
    """Address of the handler for cards."""
    return loaded_handler(_HANDLER)


def call_address(kernel: Kernel, dtype: np.dtype[Any], rows: int) -> tuple[int, Any] | None:
    """The attribute for calls of `kernel` on so many rows, and what must live as long as the program; None if empty.

    Every array has all rows, in C order. The kernel is compiled for all cards of this machine.
    """
    ports, dtype = kernel.program.ports, np.dtype(dtype)
    if is_empty(kernel, rows):
        return None
    cards = [driver.card(0), *(driver.card(index) for index in range(1, driver.card_count()))]
    functions = [kernel.on_card.function(card.index, dtype) for card in cards]
    if any(function.rest is not None for function in functions):
        return None
    size, marks = dtype.itemsize, [-(2**62) - j for j in range(len(ports))]  # no size or stride
    words = words_of(
        rows,
        [
            (mark, (port.size * size,), [prod(port.shape[k + 1 :]) * size for k in range(len(port.shape))])
            for mark, port in zip(marks, ports, strict=True)
        ],
    )
    block = min(block_of(rows, function) for function in functions)
    handles = (ctypes.c_void_p * len(cards))(*(function.handles[1] for function in functions))
    table, places = (ctypes.c_int64 * len(words))(*words), (ctypes.c_int64 * len(ports))(*map(words.index, marks))
    text = ctypes.create_string_buffer(f"{kernel.program.name}: the GPU refused to start the kernel".encode())
    at = ctypes.addressof
    call = _Call(
        at(handles), len(cards), at(table), len(words), at(places), len(kernel.program.inputs), len(ports),
        -(-rows // block), block, *map(driver.address_of, _DRIVER), at(text),
    )  # fmt: skip
    return at(call), (call, handles, table, places, text, functions)
