"""Launches that are put together once: a later call fills in addresses and the stream."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

from cardan.machines.cuda import driver

_PARAMETERS, _PARAMETERS_SIZE = 1, 2  # CU_LAUNCH_PARAM_BUFFER_POINTER and _SIZE


class Launch:
    """A launch of a kernel with a grid and 64-bit arguments; those at `places` are addresses that a call gives."""

    __slots__ = ("_block", "_free", "_function", "_grid", "_offsets", "_places", "_size", "_words")

    def __init__(
        self, function: driver.Function, grid: tuple[int, int, int], block: int, words: Sequence[int],
        places: Sequence[int], offsets: Sequence[int],
    ) -> None:  # fmt: skip
        self._function = function
        self._grid, self._block = tuple(map(ctypes.c_uint, grid)), ctypes.c_uint(block)
        self._words, self._places, self._offsets = tuple(words), tuple(places), tuple(offsets)
        self._size = ctypes.c_size_t(8 * len(words))
        self._free: list[tuple[Any, Any]] = []  # buffers that no thread is using

    def _buffer(self) -> tuple[Any, Any]:
        """Memory for the arguments, and what points the driver to it."""
        buffer = (ctypes.c_int64 * len(self._words))(*self._words)
        at = ctypes.addressof
        return buffer, (ctypes.c_void_p * 5)(_PARAMETERS, at(buffer), _PARAMETERS_SIZE, at(self._size), None)

    def bound(self, pointers: Sequence[int]) -> Callable[[int], None]:
        """A function of the stream that starts it at these addresses."""
        buffer, extra = self._buffer()
        for place, offset, pointer in zip(self._places, self._offsets, pointers, strict=True):
            buffer[place] = pointer + offset
        start, grid, block = self._function.start, self._grid, self._block

        def launch(stream: int, held: Any = (self, buffer)) -> None:  # `extra` has addresses in both
            start(grid, block, extra, ctypes.c_void_p(stream))

        return launch

    def __call__(self, pointers: Sequence[int], stream: int) -> None:
        """Start it at these addresses on a stream; does not wait for it."""
        try:
            taken = self._free.pop()
        except IndexError:
            taken = self._buffer()
        buffer, extra = taken
        for place, offset, pointer in zip(self._places, self._offsets, pointers, strict=True):
            buffer[place] = pointer + offset
        self._function.start(self._grid, self._block, extra, ctypes.c_void_p(stream))
        self._free.append(taken)
