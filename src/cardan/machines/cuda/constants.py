"""Numbers that accompany arrays on a card: uploaded once for each content, and held there."""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock
from typing import Any

import numpy as np

from cardan.errors import InputError
from cardan.machines.cuda.device_array import DeviceArray, to_device
from cardan.machines.cuda.streams import is_capturing, let_wait
from cardan.machines.host_constant import HostConstant

_MOST_BYTES = 64 * 2**20
_MOST = 1024

Key = tuple[int, str, tuple[int, ...], bytes]


class Constants:
    """Arrays on cards by their content; the ones used longest ago are released where all together pass the bounds.

    What a CUDA graph was recorded with is never released: the graph reads it at every replay.
    """

    def __init__(self, most_bytes: int = _MOST_BYTES, most: int = _MOST) -> None:
        self._most_bytes, self._most = most_bytes, most
        self._found: OrderedDict[Key, DeviceArray] = OrderedDict()
        self._recorded: dict[Key, DeviceArray] = {}
        self._held: set[DeviceArray] = set()
        self._bytes = 0
        self._lock = Lock()

    def __len__(self) -> int:
        """How many there are."""
        return len(self._found.keys() | self._recorded.keys())

    def on_device(self, owner: str, name: str, array: np.ndarray, device: int, stream: int) -> DeviceArray:
        """The array on a card, ready for work on `stream`; `name` is the port it is for."""
        key = (device, array.dtype.char, array.shape, array.tobytes())  # contents are few bytes
        with self._lock:
            found = self._found.get(key)
            if found is not None:
                self._found.move_to_end(key)
        capturing = is_capturing(device, stream)
        if found is None:
            found = self._recorded.get(key)
        if found is None:
            found = _uploaded(owner, name, array, device, stream, capturing)
            self._put(key, found)
        if capturing:
            self._recorded[key] = found
        return found

    def copy_of(
        self, owner: str, name: str, constant: HostConstant, dtype: np.dtype[Any], device: int, stream: int
    ) -> DeviceArray:
        """The copy of a constant on a card, which the constant holds."""
        found: DeviceArray | None = constant.copies.get((device, dtype))
        capturing = is_capturing(device, stream)
        if found is None:
            array = np.asarray(constant.array, dtype)
            found = constant.copies[device, dtype] = _uploaded(owner, name, array, device, stream, capturing)
        if capturing:
            self._held.add(found)
        return found

    def _put(self, key: Key, array: DeviceArray) -> None:
        """Remember an array, and forget others where there are too many."""
        with self._lock:
            self._found[key] = array
            self._bytes += array.nbytes
            while len(self._found) > 1 and (self._bytes > self._most_bytes or len(self._found) > self._most):
                self._bytes -= self._found.popitem(last=False)[1].nbytes


def _uploaded(owner: str, name: str, array: np.ndarray, device: int, stream: int, capturing: bool) -> DeviceArray:
    """The array on a card; a CUDA graph that is being recorded has no place for the upload."""
    if capturing:
        raise InputError(
            f"{owner}: {name} is a number that is not on the card yet, and a CUDA graph is being recorded; call the "
            "function once with it before recording"
        )
    found = to_device(array, device)
    let_wait(device, stream, found.stream)
    return found
