"""`DeviceArray`: an array on a card that belongs to Cardan, for use without torch, CuPy, JAX, Numba or Warp."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from cardan.errors import InputError
from cardan.machines.cuda import driver
from cardan.machines.cuda.dlpack import to_capsule
from cardan.machines.cuda.place import Place, place_of
from cardan.machines.cuda.streams import let_wait
from cardan.machines.cuda.view import DEFAULT_STREAM, FLOAT32, FLOAT64, View, contiguous_strides, ordered_strides
from cardan.on_card import CUDA


class DeviceArray:
    """An array on a card, float64 or float32, with any strides; made by `cd.to_device`, or as a result.

    It speaks DLPack and `__cuda_array_interface__`, so `torch.from_dlpack(a)` and `cupy.asarray(a)` share its memory.
    `numpy()` copies it to the host. Indexing, `reshape` and `T` give views.
    """

    __slots__ = ("_memory", "device", "dtype", "pointer", "shape", "stream", "strides")
    __array_ufunc__ = None  # NumPy's functions refuse it

    def __init__(
        self, memory: Any, pointer: int, shape: tuple[int, ...], strides: tuple[int, ...], dtype: np.dtype[Any],
        device: int, stream: int = DEFAULT_STREAM,
    ) -> None:  # fmt: skip
        self._memory, self.pointer, self.shape, self.strides = memory, pointer, shape, strides
        self.dtype, self.device, self.stream = dtype, device, stream

    @classmethod
    def empty(
        cls, shape: tuple[int, ...], dtype: Any, device: int = 0, *, order: Sequence[int] | None = None,
        stream: int = DEFAULT_STREAM,
    ) -> DeviceArray:  # fmt: skip
        """An array without values, in C order or with its axes in this `order` in memory, from the slowest on."""
        dtype = np.dtype(dtype)
        memory = driver.card(device).allocate(math.prod(shape) * dtype.itemsize)
        strides = ordered_strides(shape, range(len(shape)) if order is None else order, dtype.itemsize)
        return cls(memory, memory.pointer, shape, strides, dtype, device, stream)

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def nbytes(self) -> int:
        """Size of all elements, bytes."""
        return self.size * self.dtype.itemsize

    def __len__(self) -> int:
        """Length of the first axis."""
        if not self.shape:
            raise TypeError("a DeviceArray without axes has no length")
        return self.shape[0]

    def __repr__(self) -> str:
        """Shape, dtype and card."""
        return f"<DeviceArray {self.shape} {self.dtype} on gpu:{self.device}>"

    def view(self) -> View:
        """The array as kernels see it."""
        return View(self.pointer, self.shape, self.strides, self.dtype, self.device, self, self.stream)

    def constant(self) -> View:
        """The array as kernels see it where nobody writes to it any more: no stream needs to be waited for."""
        return View(self.pointer, self.shape, self.strides, self.dtype, self.device, self)

    def _like(self, offset: int, shape: tuple[int, ...], strides: tuple[int, ...]) -> DeviceArray:
        """Another array on the same memory."""
        return DeviceArray(self._memory, self.pointer + offset, shape, strides, self.dtype, self.device, self.stream)

    @property
    def T(self) -> DeviceArray:
        """The array with its axes in opposite order, on the same memory."""
        return self._like(0, self.shape[::-1], self.strides[::-1])

    def __getitem__(self, index: Any) -> DeviceArray:
        """A view: whole numbers, slices and `...` choose along the axes."""
        items = list(index) if isinstance(index, tuple) else [index]
        known = sum(1 for item in items if item is not Ellipsis)
        dots = [k for k, item in enumerate(items) if item is Ellipsis]
        if len(dots) > 1 or known > self.ndim:
            raise IndexError(f"a DeviceArray of shape {self.shape} cannot be indexed by {index!r}")
        place = dots[0] if dots else len(items)
        items[place : place + 1] = [slice(None)] * (self.ndim - known)
        offset, shape, strides = 0, list[int](), list[int]()
        for item, n, step in zip(items, self.shape, self.strides, strict=True):
            if isinstance(item, slice):
                start, stop, stride = item.indices(n)
                count = len(range(start, stop, stride))
                offset += start * step if count else 0
                shape.append(count)
                strides.append(step * stride)
            elif isinstance(item, int | np.integer) and not isinstance(item, bool):
                if not -n <= item < n:
                    raise IndexError(f"index {item} is outside an axis of {n} (shape {self.shape})")
                offset += (int(item) % n) * step
            else:
                raise InputError(
                    f"DeviceArray: {item!r} is no index of it; whole numbers, slices and ... are (for others use "
                    "torch.from_dlpack or cupy.asarray, which share its memory)"
                )
        return self._like(offset, tuple(shape), tuple(strides))

    def reshape(self, *shape: Any) -> DeviceArray:
        """The array with other axes, on the same memory; one may be -1."""
        wanted = [int(n) for n in (shape[0] if len(shape) == 1 and isinstance(shape[0], tuple | list) else shape)]
        others = math.prod(n for n in wanted if n >= 0)
        if wanted.count(-1) == 1 and others and self.size % others == 0:
            wanted[wanted.index(-1)] = self.size // others
        if any(n < 0 for n in wanted) or math.prod(wanted) != self.size:
            raise InputError(f"DeviceArray: shape {self.shape} cannot become {tuple(wanted)}")
        strides = _strides_after_reshape(self.shape, self.strides, tuple(wanted))
        if strides is None:
            raise InputError(
                f"DeviceArray: shape {self.shape} with strides {self.strides} cannot become {tuple(wanted)} without a "
                "copy; use torch.from_dlpack or cupy.asarray, which share its memory, to copy"
            )
        return self._like(0, tuple(wanted), strides)

    def numpy(self) -> np.ndarray:
        """A copy in the host's memory; waits until it is there."""
        card = driver.card(self.device)
        if not self.size:
            return np.empty(self.shape, self.dtype)
        low, high = self.view().bounds()
        raw = np.empty(high - low, np.uint8)
        card.download(raw.ctypes.data, low, high - low, self.stream)
        if self.strides == contiguous_strides(self.shape, self.dtype.itemsize):
            return raw.view(self.dtype).reshape(self.shape)
        seen = np.ndarray(self.shape, self.dtype, raw, self.pointer - low, self.strides)
        return np.ascontiguousarray(seen).reshape(self.shape)

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        """Refuse: a copy to the host is slow, and must be asked for."""
        raise InputError(f"{self!r} is not in the host's memory; copy it there with .numpy()")

    def __float__(self) -> float:
        """Refuse, as `__array__` does."""
        raise InputError(f"{self!r} is not in the host's memory; copy it there with .numpy()")

    def __bool__(self) -> bool:
        """Refuse, as `__array__` does."""
        raise InputError(f"{self!r} is not in the host's memory; copy it there with .numpy()")

    def __eq__(self, other: object) -> bool:
        """Refuse a comparison of numbers: they are on the card."""
        raise InputError(f"{self!r} is not in the host's memory; compare what .numpy() gives")

    __hash__ = object.__hash__

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """The array as CuPy, Numba, Warp and others read it (version 3)."""
        return {
            "shape": self.shape, "typestr": self.dtype.str, "data": (self.pointer, False), "version": 3,
            "strides": self.strides, "stream": self.stream,
        }  # fmt: skip

    def __dlpack_device__(self) -> tuple[int, int]:
        """The kind and number of the device, as DLPack numbers them."""
        return CUDA, self.device

    def __dlpack__(
        self, *, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: bool | None = None
    ) -> Any:
        """A DLPack capsule; work that the taker puts on its `stream` waits for work on this array."""
        if dl_device is not None and tuple(map(int, dl_device)) != (CUDA, self.device):
            raise BufferError(f"{self!r} cannot be handed to the DLPack device {dl_device}; copy it with .numpy()")
        if copy:
            raise BufferError(f"{self!r} is handed over without a copy; copy what you take")
        if stream != -1:  # which asks not to wait
            let_wait(self.device, DEFAULT_STREAM if stream is None else int(stream), self.stream)
        return to_capsule(self.view())


def to_device(array: Any, device: int | str = 0) -> DeviceArray:
    """Copy numbers to a card: float32 arrays stay float32, all other numbers become float64.

    `device` counts the cards from 0, or is "gpu:1". The result is taken by all functions that take arrays on a card.
    """
    if isinstance(device, bool) or not isinstance(device, int | np.integer):
        place = place_of("to_device", device)
        if not isinstance(place, Place):
            raise InputError(f"to_device: device must be the number of a card, or 'gpu:1', got {device!r:.60}")
        device = place.card
    if np.ma.is_masked(array):
        raise InputError("to_device: the array has masked entries; fill them, or leave their rows out")
    found = np.asarray(array)
    if found.dtype not in (FLOAT32, FLOAT64):
        if not np.can_cast(found.dtype, FLOAT64, "safe"):
            raise InputError(f"to_device: dtype {found.dtype} cannot become float64 safely; give numbers")
        found = found.astype(FLOAT64)
    found = np.ascontiguousarray(found, found.dtype.newbyteorder("=")).reshape(found.shape)
    made = DeviceArray.empty(found.shape, found.dtype, int(device))
    if found.size:
        driver.card(int(device)).upload(made.pointer, found.ctypes.data, found.nbytes, made.stream)
    return made


def _strides_after_reshape(
    shape: tuple[int, ...], strides: tuple[int, ...], wanted: tuple[int, ...]
) -> tuple[int, ...] | None:
    """Strides of the same memory under another shape of as many elements; None if there are none."""
    if 0 in shape:
        return contiguous_strides(wanted, 1)
    old: list[tuple[int, int]] = []  # axes that can be one are made one
    for n, step in zip(shape, strides, strict=True):
        if n != 1:
            joined = old and old[-1][1] == n * step
            old[-1:] = [(old[-1][0] * n, step)] if joined else [*old[-1:], (n, step)]
    found = [0] * len(wanted)
    left, step = old.pop() if old else (1, 0)
    for j in reversed(range(len(wanted))):
        if wanted[j] == 1:
            continue
        if left == 1:
            left, step = old.pop()
        if left % wanted[j]:
            return None
        found[j], left, step = step, left // wanted[j], step * wanted[j]
    return tuple(found)
