"""Rows of several arrays in the memory of a card, kept there between launches.

An array of n numbers for each of B rows lies as (n, B): neighbouring threads take neighbouring rows, and read together.
Rows come and go in NumPy's order, (rows, n); a small kernel puts them in their places, all of them or some.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from cardan.machines.cuda import driver, ptx
from cardan.machines.cuda.forms import THREADS

_WORDS = {np.dtype(np.float64): "i64", np.dtype(np.float32): "i32"}

# Element by element from one array to another; each has rows by number, or by an index if that is not 0.
_MOVE = """declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ntid.x()

define internal i64 @row(i64 %i, i64 %index) {{
entry:
  %plain = icmp eq i64 %index, 0
  br i1 %plain, label %own, label %other
own:
  ret i64 %i
other:
  %o = mul i64 %i, 8
  %a = add i64 %index, %o
  %p = inttoptr i64 %a to ptr addrspace(1)
  %r = load i64, ptr addrspace(1) %p, align 8
  ret i64 %r
}}

define ptx_kernel void @move(i64 %n, i64 %size, i64 %from, i64 %fi, i64 %fx, i64 %fn, i64 %to, i64 %ti, i64 %tx,
                             i64 %tn) {{
entry:
  %tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %ctaid = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %ntid = call i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
  %tid.l = zext i32 %tid to i64
  %ctaid.l = zext i32 %ctaid to i64
  %ntid.l = zext i32 %ntid to i64
  %i.0 = mul i64 %ctaid.l, %ntid.l
  %i = add i64 %i.0, %tid.l
  %inside = icmp ult i64 %i, %n
  br i1 %inside, label %go, label %done
go:
  %f.r = call i64 @row(i64 %i, i64 %fi)
  %t.r = call i64 @row(i64 %i, i64 %ti)
  %f.o = mul i64 %f.r, %fx
  %t.o = mul i64 %t.r, %tx
  %f.b = add i64 %from, %f.o
  %t.b = add i64 %to, %t.o
  br label %each
each:
  %e = phi i64 [0, %go], [%e.1, %each]
  %f.e = mul i64 %e, %fn
  %t.e = mul i64 %e, %tn
  %f.a = add i64 %f.b, %f.e
  %t.a = add i64 %t.b, %t.e
  %f.p = inttoptr i64 %f.a to ptr addrspace(1)
  %t.p = inttoptr i64 %t.a to ptr addrspace(1)
  %x = load {word}, ptr addrspace(1) %f.p, align {bytes}
  store {word} %x, ptr addrspace(1) %t.p, align {bytes}
  %e.1 = add i64 %e, 1
  %more = icmp ult i64 %e.1, %size
  br i1 %more, label %each, label %done
done:
  ret void
}}
"""


@cache
def _move(card: driver.Card, dtype: np.dtype[Any]) -> driver.Function:
    text = _MOVE.format(word=_WORDS[dtype], bytes=dtype.itemsize)
    return card.load(card.compile(ptx.to_ptx(text, ptx.architecture_for(card.capability)), "move"), "move")


def move(
    card: driver.Card, dtype: np.dtype[Any], count: int, size: int, source: tuple[int, int, int, int],
    target: tuple[int, int, int, int],
) -> None:  # fmt: skip
    """Copy `size` numbers of each of `count` rows on a card.

    Source and target are an address, that of an index of rows or 0, and strides in bytes by row and by number.
    """
    _move(card, dtype).launch((-(-count // THREADS), 1, 1), THREADS, [count, size, *source, *target])


def uploaded(card: driver.Card, array: np.ndarray) -> driver.Memory:
    """Memory of a card with the bytes of an array, in C order."""
    array = np.ascontiguousarray(array)
    memory = card.allocate(array.nbytes)
    if array.nbytes:
        card.upload(memory.pointer, array.ctypes.data, array.nbytes)
    return memory


def downloaded(card: driver.Card, pointer: int, array: np.ndarray) -> np.ndarray:
    """Fill an array, contiguous in C order, from a card."""
    if array.nbytes:
        card.download(array.ctypes.data, pointer, array.nbytes)
    return array


class Rows:
    """Arrays by name with `sizes` numbers for each of `count` rows; a scalar has size 1 and no axis of its own."""

    def __init__(self, card: driver.Card, dtype: np.dtype[Any], shapes: dict[str, tuple[int, ...]], count: int) -> None:
        self.card, self.dtype, self.shapes, self.count = card, dtype, shapes, count
        self.sizes = {name: int(np.prod(shape, dtype=int)) for name, shape in shapes.items()}
        self._memory = card.allocate(sum(self.sizes.values()) * count * dtype.itemsize)
        self.at: dict[str, int] = {}
        pointer = self._memory.pointer
        for name, size in self.sizes.items():
            self.at[name] = pointer
            pointer += size * count * dtype.itemsize

    def place(self, name: str) -> tuple[int, int, int]:
        """Address of an array, and its strides in bytes from row to row and from number to number."""
        return self.at[name], self.dtype.itemsize, self.count * self.dtype.itemsize

    def put(self, arrays: dict[str, np.ndarray], rows: np.ndarray | None = None) -> None:
        """Store arrays (rows, ...) of all rows, or of some by their numbers."""
        self._exchange(arrays, rows, into=True)

    def get(self, names: tuple[str, ...], rows: np.ndarray | None = None) -> dict[str, np.ndarray]:
        """Arrays (rows, ...) of all rows, or of some by their numbers."""
        count = self.count if rows is None else len(rows)
        arrays = {name: np.empty((count, *self.shapes[name]), self.dtype) for name in names}
        self._exchange(arrays, rows, into=False)
        return arrays

    def _exchange(self, arrays: dict[str, np.ndarray], rows: np.ndarray | None, into: bool) -> None:
        count = self.count if rows is None else len(rows)
        if not count:
            return
        card, b = self.card, self.dtype.itemsize
        index = None if rows is None else uploaded(card, np.asarray(rows, dtype=np.int64))
        number = 0 if index is None else index.pointer
        for name, array in arrays.items():
            size = self.sizes[name]
            if not size:
                continue
            here = (self.at[name], number, b, self.count * b)
            if into:
                given = np.ascontiguousarray(array, dtype=self.dtype).reshape(count, size)
                same = count > 1 and _are_same(given)
                buffer = uploaded(card, given[:1] if same else given)
                move(card, self.dtype, count, size, (buffer.pointer, 0, 0 if same else size * b, b), here)
            else:
                buffer = card.allocate(array.nbytes)
                move(card, self.dtype, count, size, here, (buffer.pointer, 0, size * b, b))
                downloaded(card, buffer.pointer, array)


def _are_same(rows: np.ndarray) -> bool:
    """Whether all rows have the bits of the first: 0.0 and -0.0 are different numbers."""
    bits = rows.view(f"u{rows.itemsize}")
    return bool((bits[-1] == bits[0]).all() and (bits == bits[0]).all())
