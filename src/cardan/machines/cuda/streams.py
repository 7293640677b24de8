"""The order of work on a card: one stream waits for another, and memory is held until work that reads it is done."""

from __future__ import annotations

import ctypes
from collections import deque
from contextlib import suppress
from threading import Lock
from typing import Any

from cardan.machines.cuda import driver

_WITHOUT_TIMING = 2  # CU_EVENT_DISABLE_TIMING: such events are the cheapest
_ORDINAL = 9  # CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL


class Event:
    """A place in a stream: the end of all work that it was given so far."""

    def __init__(self, device: int, stream: int) -> None:
        self._card, self._handle = driver.card(device), ctypes.c_void_p()
        with self._card:
            driver.call("cuEventCreate", ctypes.byref(self._handle), ctypes.c_uint(_WITHOUT_TIMING))
            driver.call("cuEventRecord", self._handle, ctypes.c_void_p(stream))

    def __del__(self) -> None:
        """Release it; the driver does so when it is reached."""
        if self._handle:
            with suppress(Exception), self._card:  # at exit the driver may be gone
                driver.call("cuEventDestroy_v2", self._handle)

    def is_reached(self) -> bool:
        """Whether the work is done."""
        try:
            with self._card:
                driver.call("cuEventQuery", self._handle)
        except driver.DeviceError:
            return False
        return True

    def hold_up(self, stream: int) -> None:
        """Let what is put on a stream from now on wait for it; this thread does not wait."""
        with self._card:
            driver.call("cuStreamWaitEvent", ctypes.c_void_p(stream), self._handle, ctypes.c_uint(0))


def let_wait(device: int, stream: int, other: int) -> None:
    """Let what is put on `stream` from now on wait for all work that `other` has."""
    if not is_same(stream, other):
        Event(device, other).hold_up(stream)


def is_same(stream: int, other: int) -> bool:
    """Whether two numbers are the same stream: 0 and 1 are both the card's default stream."""
    return (stream or 1) == (other or 1)


def is_capturing(device: int, stream: int) -> bool:
    """Whether what is put on a stream is recorded in a CUDA graph instead of being done."""
    state = ctypes.c_int()
    with driver.card(device).made_current():
        driver.call("cuStreamIsCapturing", ctypes.c_void_p(stream), ctypes.byref(state))
    return state.value != 0


def device_of(pointer: int) -> int:
    """The number of the card that an address belongs to."""
    ordinal = ctypes.c_int(-1)
    driver.call("cuPointerGetAttribute", ctypes.byref(ordinal), ctypes.c_int(_ORDINAL), ctypes.c_uint64(pointer))
    return ordinal.value


_held: deque[tuple[Event, Any]] = deque()
_lock = Lock()


def hold(device: int, stream: int, owners: Any) -> None:
    """Keep objects alive until all work that a stream has now is done; they are released at a later call."""
    released = []  # outside the lock: releasing runs code of other libraries
    with _lock:
        while _held and _held[0][0].is_reached():
            released.append(_held.popleft())
        _held.append((Event(device, stream), owners))
