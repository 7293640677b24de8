"""Interleaved timing: in every round each block runs once, so that all have the same conditions."""

from __future__ import annotations

import gc
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import repeat
from time import perf_counter, sleep
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Block:
    """Something to time: calling `run` makes `evaluations` evaluations."""

    run: Callable[[], object]
    evaluations: int


@dataclass(frozen=True)
class Timing:
    """Seconds per evaluation, one number for each round."""

    seconds: np.ndarray

    @property
    def median(self) -> float:
        return float(np.median(self.seconds))

    @property
    def minimum(self) -> float:
        return float(self.seconds.min())

    def times_faster_than(self, other: Timing) -> float:
        """Median over the rounds of other / this."""
        return float(np.median(other.seconds / self.seconds))

    def least_times_faster_than(self, other: Timing) -> float:
        """The same from the best round of each."""
        return other.minimum / self.minimum


def interleave(blocks: dict[str, Block], *, rounds: int, least: float, pause: float = 0.0) -> dict[str, Timing]:
    """Time blocks alternately, `rounds` times; a block is repeated until it lasts `least` seconds.

    `pause` is a pause before each block, s, in which spinning threads of another program go to sleep.
    """
    repeats = {name: _repeats(block, least) for name, block in blocks.items()}
    seconds: dict[str, list[float]] = {name: [] for name in blocks}
    collecting = gc.isenabled()
    gc.disable()
    try:
        for _ in range(rounds):
            for name, block in blocks.items():
                if pause:
                    sleep(pause)
                taken = _lasting(block.run, repeats[name])
                seconds[name].append(taken / (repeats[name] * block.evaluations))
    finally:
        if collecting:
            gc.enable()
    return {name: Timing(np.array(values)) for name, values in seconds.items()}


def calls(function: Callable[..., object], states: Iterable[tuple[Any, ...]]) -> Block:
    """One Python call for each tuple of arguments."""
    states = list(states)

    def run() -> None:
        for state in states:
            function(*state)

    return Block(run, len(states))


def _lasting(run: Callable[[], object], count: int) -> float:
    start = perf_counter()
    for _ in repeat(None, count):
        run()
    return perf_counter() - start


def _repeats(block: Block, least: float) -> int:
    """Number of runs that last about `least` seconds; the first one, which compiles, is not counted."""
    block.run()
    return max(1, math.ceil(least / max(_lasting(block.run, 1), 1e-9)))
