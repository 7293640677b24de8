"""Time on a card: events, launches repeated in a CUDA graph, and what was compiled and launched by a call."""

from __future__ import annotations

import ctypes
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any
from unittest.mock import patch

from cardan.machines.cuda import driver, ptx

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


@dataclass(frozen=True)
class Launch:
    """A kernel that was started: what and how, and the events around it."""

    function: driver.Function
    arguments: dict[str, Any]
    start: Event | None = None
    end: Event | None = None

    @property
    def seconds(self) -> float:
        """Time on the card; waits for the kernel."""
        assert self.start is not None and self.end is not None
        return self.start.seconds_to(self.end)

    def again(self, stream: int) -> None:
        """Start it again on a stream; the arrays that it had must still exist."""
        self.function.launch(**(self.arguments | {"stream": stream}))


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

    compiles: list[Compile] = field(default_factory=list)
    launches: list[Launch] = field(default_factory=list)
    held: list[driver.Memory] = field(default_factory=list)


@contextmanager
def watching(*, timed: bool = True, keep: bool = False) -> Iterator[Watch]:
    """Record each compilation and each launch inside.

    `timed`: with events around each launch; `keep`: hold all memory that is taken, so that launches can be repeated.
    """
    found, last = Watch(), {"llvm": 0.0}
    launch, compile_, to_ptx = driver.Function.launch, driver.Card.compile, ptx.to_ptx
    allocate = driver.Card.allocate
    signature = inspect.signature(launch)

    def launched(self: driver.Function, *args: Any, **options: Any) -> None:
        bound = signature.bind(self, *args, **options)
        bound.apply_defaults()
        arguments = dict(bound.arguments)
        del arguments["self"]
        start = Event(self.card).record(arguments["stream"]) if timed else None
        launch(self, *args, **options)
        end = Event(self.card).record(arguments["stream"]) if timed else None
        found.launches.append(Launch(self, arguments, start, end))

    def compiled(self: driver.Card, text: str, name: str, *args: Any, **options: Any) -> bytes:
        start = perf_counter()
        code = compile_(self, text, name, *args, **options)
        found.compiles.append(Compile(name, last["llvm"], perf_counter() - start, text.count("\n")))
        return code

    def printed(*args: Any, **options: Any) -> str:
        start = perf_counter()
        text = to_ptx(*args, **options)
        last["llvm"] = perf_counter() - start
        return text

    def allocated(self: driver.Card, *args: Any, **options: Any) -> driver.Memory:
        memory = allocate(self, *args, **options)
        if keep:
            found.held.append(memory)
        return memory

    with (
        patch.object(driver.Card, "allocate", allocated),
        patch.object(driver.Function, "launch", launched),
        patch.object(driver.Card, "compile", compiled),
        patch.object(ptx, "to_ptx", printed),
    ):
        yield found


def repeated(launch: Launch, *, rounds: int, least: float) -> list[float]:
    """Seconds of the launch, for each round; each round repeats it in a CUDA graph for about `least` seconds."""
    card = launch.function.card
    once = min(Graph(card, launch.again, 1).seconds(3))
    return Graph(card, launch.again, max(1, min(1000, round(least / once)))).seconds(rounds)
