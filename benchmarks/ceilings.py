"""Measured limits of one core: multiply-adds in registers, bytes copied and written."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache

import numpy as np

from benchmarks.timing import Block
from cardan.machines.host import host, load, to_object

CHAINS = 12  # independent multiply-adds in flight: more than latency times units on any x86 core, fewer than registers
DEEP = 8  # multiply-adds of a chain in one turn of the loop
TURNS = 20_000
STREAM_BYTES = 1 << 28


@cache
def _multiply_adds() -> Callable[[int], float]:
    lanes = host().lanes("double")
    vector = f"<{lanes} x double>"
    one, small = (f"<{', '.join([f'double {x}'] * lanes)}>" for x in ("0.5", "1.0"))
    lines = ["define double @peak(i64 %turns) {", "entry:", "  br label %loop", "loop:"]
    lines.append("  %i = phi i64 [0, %entry], [%j, %loop]")
    for c in range(CHAINS):
        start = f"<{', '.join([f'double {c}.25'] * lanes)}>"
        lines.append(f"  %x{c}_0 = phi {vector} [{start}, %entry], [%x{c}_{DEEP}, %loop]")
    for d in range(DEEP):
        for c in range(CHAINS):
            lines.append(f"  %p{c}_{d} = fmul contract {vector} %x{c}_{d}, {one}")
            lines.append(f"  %x{c}_{d + 1} = fadd contract {vector} %p{c}_{d}, {small}")
    lines += [
        "  %j = add i64 %i, 1",
        "  %more = icmp slt i64 %j, %turns",
        "  br i1 %more, label %loop, label %done",
        "done:",
    ]
    total = f"%x0_{DEEP}"
    for c in range(1, CHAINS):
        lines.append(f"  %s{c} = fadd {vector} {total}, %x{c}_{DEEP}")
        total = f"%s{c}"
    lines += [f"  %r = extractelement {vector} {total}, i32 0", "  ret double %r", "}"]
    (address,), code = load(to_object("\n".join(lines)), "peak")
    function = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_int64)(address)
    function.code = code  # unloaded with it
    return function


def peak_block() -> Block:
    """Independent multiply-adds on all lanes, in registers; an evaluation is one floating-point operation."""
    function = _multiply_adds()
    return Block(lambda: function(TURNS), TURNS * CHAINS * DEEP * host().lanes("double") * 2)


def copy_block() -> Block:
    """A copy from memory to memory; an evaluation is one byte read or written."""
    source, target = np.ones(STREAM_BYTES, np.uint8), np.zeros(STREAM_BYTES, np.uint8)
    return Block(lambda: np.copyto(target, source), 2 * STREAM_BYTES)


def write_block() -> Block:
    """Memory filled; an evaluation is one byte written."""
    target = np.zeros(STREAM_BYTES // 8)
    return Block(lambda: target.fill(1.0), STREAM_BYTES)
