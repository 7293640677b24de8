"""Time on a card: events, launches repeated in a CUDA graph, and what was compiled and launched by a call."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any
from unittest.mock import patch

from cardan.machines.cuda import driver, kernel, ptx

_WITHOUT_OTHERS = 1  # CU_STREAM_NON_BLOCKING
_THIS_THREAD = 1  # CU_STREAM_CAPTURE_MODE_THREAD_LOCAL


class Event:
    """A point in the work of a stream."""

    def __init__(self, card: driver.Card) -> None:
        self.card, self.handle = card, ctypes.c_void_p()
        with card:
            driver.call("cuEventCreate", ctypes.byref(self.handle), ctypes.c_uint(0))

    def __del__(self) -> None:
        """Give it back."""
        with suppress(Exception), self.card:
            driver.call("cuEventDestroy_v2", self.handle)

    def record(self, stream: int = 0) -> Event:
        """Put it behind the work that the stream has now."""
        with self.card:
            driver.call("cuEventRecord", self.handle, ctypes.c_void_p(stream))
        return self

    def seconds_to(self, later: Event) -> float:
        """Time until a later event; waits for it."""
        found = ctypes.c_float()
        with self.card:
            driver.call("cuEventSynchronize", later.handle)
            driver.call("cuEventElapsedTime", ctypes.byref(found), self.handle, later.handle)
        return found.value * 1e-3


class Graph:
    """Launches captured once; replaying them costs the host one call."""

    def __init__(self, card: driver.Card, launch: Callable[[int], object], count: int) -> None:
        self.card, self.count = card, count
        self.stream, self.graph, self.ready = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
        with card:
            driver.call("cuStreamCreate", ctypes.byref(self.stream), ctypes.c_uint(_WITHOUT_OTHERS))
            driver.call("cuStreamBeginCapture_v2", self.stream, ctypes.c_int(_THIS_THREAD))
            for _ in range(count):
                launch(self.stream.value or 0)
            driver.call("cuStreamEndCapture", self.stream, ctypes.byref(self.graph))
            driver.call("cuGraphInstantiateWithFlags", ctypes.byref(self.ready), self.graph, ctypes.c_ulonglong(0))

    def seconds(self, rounds: int) -> list[float]:
        """Time of one launch on the card, for each round, after one round that is not counted."""
        stream, found = self.stream.value or 0, []
        for k in range(rounds + 1):
            start = Event(self.card).record(stream)
            with self.card:
                driver.call("cuGraphLaunch", self.ready, self.stream)
            taken = start.seconds_to(Event(self.card).record(stream))
            if k:
                found.append(taken / self.count)
        return found


_LAUNCH = driver.Function.launch


class Launch:
    """A kernel that was started, with its arguments, and the events around it where it was timed."""

    def __init__(self, function: driver.Function, grid: Any, block: int, words: Any, shared: int) -> None:
        self.function, self._grid, self._block, self._words, self._shared = function, grid, block, [*words], shared
        self.start: Event | None = None
        self.end: Event | None = None

    @property
    def seconds(self) -> float:
        """Time on the card; waits for the kernel."""
        assert self.start is not None and self.end is not None
        return self.start.seconds_to(self.end)

    def again(self, stream: int) -> None:
        """Start it again on a stream; the arrays that it had must still exist."""
        _LAUNCH(self.function, self._grid, self._block, self._words, stream, self._shared)


class _Plain:
    """A launch of `machines.cuda.launch` that is not compiled, so that it can be watched."""

    def __init__(
        self, function: driver.Function, grid: Any, block: int, words: Any, places: Any, offsets: Any, shared: int = 0
    ) -> None:  # fmt: skip
        self._given = function, grid, block, [*words], [*zip(places, offsets, strict=True)], shared

    def bound(self, pointers: Any) -> Callable[[int], None]:
        """A function of the stream that starts it at these addresses."""
        return lambda stream: self(pointers, stream)

    def __call__(self, pointers: Any, stream: int) -> None:
        """Start it at these addresses on a stream."""
        function, grid, block, words, places, shared = self._given
        for (place, offset), pointer in zip(places, pointers, strict=True):
            words[place] = pointer + offset
        function.launch(grid, block, words, stream, shared)


@dataclass(frozen=True)
class Compile:
    """A kernel that was compiled: time of LLVM, which makes PTX, and of the driver; s."""

    name: str
    llvm: float
    driver: float
    lines: int


@dataclass
class Watch:
    """What a call compiled and launched, in order, and the memory that it took."""

    compiles: dict[driver.Function, Compile] = field(default_factory=dict)
    launches: list[Launch] = field(default_factory=list)
    held: list[driver.Memory] = field(default_factory=list)


@contextmanager
def watching(*, timed: bool = True, keep: bool = False) -> Iterator[Watch]:
    """Record each compilation and each launch inside.

    `timed`: with events around each launch; `keep`: hold all memory that is taken, so that launches can be repeated.
    """
    found, last = Watch(), dict[str, Any](llvm=0.0, made=None)
    compile_, to_ptx, allocate, load = driver.Card.compile, ptx.to_ptx, driver.Card.allocate, driver.Card.load

    def started(self: driver.Function, grid: Any, block: int, words: Any, stream: int = 0, shared: int = 0) -> None:
        launch = Launch(self, grid, block, words, shared)
        launch.start = Event(self.card).record(stream) if timed else None
        _LAUNCH(self, grid, block, words, stream, shared)
        launch.end = Event(self.card).record(stream) if timed else None
        found.launches.append(launch)

    def compiled(self: driver.Card, text: str, name: str, *args: Any, **options: Any) -> bytes:
        before = perf_counter()
        code = compile_(self, text, name, *args, **options)
        last["made"] = Compile(name, last["llvm"], perf_counter() - before, text.count("\n"))
        return code

    def loaded(self: driver.Card, *args: Any, **options: Any) -> driver.Function:
        function = load(self, *args, **options)
        if last["made"] is not None:
            found.compiles[function], last["made"] = last["made"], None
        return function

    def printed(*args: Any, **options: Any) -> str:
        before = perf_counter()
        text = to_ptx(*args, **options)
        last["llvm"] = perf_counter() - before
        return text

    def allocated(self: driver.Card, *args: Any, **options: Any) -> driver.Memory:
        memory = allocate(self, *args, **options)
        if keep:
            found.held.append(memory)
        return memory

    with (
        patch.object(driver.Card, "allocate", allocated),
        patch.object(driver.Function, "launch", started),
        patch.object(kernel, "Launch", _Plain),
        patch.object(driver.Card, "compile", compiled),
        patch.object(driver.Card, "load", loaded),
        patch.object(ptx, "to_ptx", printed),
    ):
        yield found


def repeated(launch: Launch, *, rounds: int, least: float) -> list[float]:
    """Seconds of the launch, for each round; each round repeats it in a CUDA graph for about `least` seconds."""
    card = launch.function.card
    once = min(Graph(card, launch.again, 1).seconds(3))
    return Graph(card, launch.again, max(1, min(1000, round(least / once)))).seconds(rounds)
