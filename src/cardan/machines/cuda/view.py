"""An array on a card as kernels see it: where it is, its shape and its strides."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

FLOAT64, FLOAT32 = np.dtype(np.float64), np.dtype(np.float32)
DEFAULT_STREAM = 1  # the card's default stream, as DLPack and `__cuda_array_interface__` number it (CU_STREAM_LEGACY)


@dataclass(frozen=True, slots=True)
class View:
    """An array on a card as the kernels see it."""

    pointer: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    """In bytes."""
    dtype: np.dtype[Any]
    device: int
    owner: Any
    """Keeps the memory alive."""
    stream: int | None = None
    """The stream on which its producer still works at it, None if it is ordered already."""
    borrowed: bool = False
    """Whether its library may use the memory again as soon as `owner` is released, whatever a kernel still reads."""

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    def bounds(self) -> tuple[int, int]:
        """Addresses of its first byte and of the byte behind its last."""
        if not self.size:
            return self.pointer, self.pointer
        reach = [(n - 1) * step for n, step in zip(self.shape, self.strides, strict=True)]
        low, high = sum(r for r in reach if r < 0), sum(r for r in reach if r > 0)
        return self.pointer + low, self.pointer + high + self.dtype.itemsize

    def overlaps(self, other: View) -> bool:
        """Whether some element of one lies on an element of the other; also said where telling takes too long."""
        if self.device != other.device:
            return False
        (a, b), (c, d) = self.bounds(), other.bounds()
        if a >= d or c >= b:
            return False
        try:
            return np.shares_memory(_host_array(self), _host_array(other), max_work=10_000)  # type: ignore[arg-type]  # any number
        except np.exceptions.TooHardError:
            return True

    @property
    def is_columns_first(self) -> bool:
        """Whether neighbours along the first axis are nearest in memory."""
        return len(self.shape) > 1 and self.shape[0] > 1 and 0 < self.strides[0] < self.strides[-1]


def ordered_strides(shape: tuple[int, ...], order: Sequence[int], size: int) -> tuple[int, ...]:
    """Strides in bytes of an array without gaps, whose axes lie in memory in this `order`, from the slowest on."""
    steps = contiguous_strides(tuple(shape[axis] for axis in order), size)
    found = dict(zip(order, steps, strict=True))
    return tuple(found[axis] for axis in range(len(shape)))


def contiguous_strides(shape: tuple[int, ...], size: int) -> tuple[int, ...]:
    """Strides in bytes of an array in C order with elements of `size` bytes."""
    strides, step = [], size
    for n in reversed(shape):
        strides.append(step)
        step *= max(n, 1)
    return tuple(reversed(strides))


class _Interface:
    """What NumPy asks for to make an array of an address."""

    def __init__(self, view: View) -> None:
        self.__array_interface__ = {
            "data": (view.pointer, False), "shape": view.shape, "strides": view.strides, "typestr": view.dtype.str,
            "version": 3,
        }  # fmt: skip


def _host_array(view: View) -> np.ndarray:
    """A NumPy array that has the view's addresses and must never be read: for questions about addresses."""
    return np.asarray(_Interface(view))
