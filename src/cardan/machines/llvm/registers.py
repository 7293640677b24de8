"""Which order computes values with few of them waiting at a time, and which wait in memory when registers run out.

A straight line may be printed in any order that puts a value after its operands. A thread of a card has 255 registers,
and its compiler keeps close to the order it is given: what an order holds at a time decides what spills.

Values are numbers. `reads` maps each value that is computed to the values it reads; a value that is read and not
computed is given at the beginning. `kept` are values that are read at the end.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

Reads = Mapping[int, Sequence[int]]

_END = 1 << 60


@dataclass(frozen=True)
class Compute:
    """Compute a value."""

    value: int


@dataclass(frozen=True)
class Put:
    """Store a value at a place in memory."""

    value: int
    place: int


@dataclass(frozen=True)
class Take:
    """Load a value from its place in memory."""

    value: int
    place: int


Move = Compute | Put | Take


@dataclass(frozen=True)
class Placement:
    """Moves in order, and how many places in memory they use."""

    moves: list[Move]
    places: int

    @property
    def traffic(self) -> int:
        """Number of loads and stores."""
        return sum(not isinstance(move, Compute) for move in self.moves)


def frugal_order(reads: Reads, kept: Collection[int] = (), recent: bool = True) -> list[int]:
    """An order in which few values wait at a time.

    Of the values that can be computed it takes one that ends the waiting of most others; among equals one of the
    youngest operands (`recent`: it finishes a branch before the next), or the first.
    """
    readers: dict[int, list[int]] = {}
    for k, operands in reads.items():
        for a in operands:
            readers.setdefault(a, []).append(k)
    left = {a: len(found) + (a in kept) for a, found in readers.items()}
    missing = {k: sum(a in reads for a in operands) for k, operands in reads.items()}
    stamp = {k: n for n, k in enumerate(reads)}
    age: dict[int, int] = {}
    ready: list[tuple[int, int, int, int]] = []

    def growth(k: int) -> int:
        """By how many more values wait after computing k."""
        return (k in left or k in kept) - sum(left[a] == 1 for a in reads[k])

    def offer(k: int) -> None:
        young = max([age.get(a, -1) for a in reads[k]], default=-1) if recent else 0
        heapq.heappush(ready, (growth(k), -young, stamp[k], k))

    for k in reads:
        if not missing[k]:
            offer(k)
    order: list[int] = []
    while ready:
        cost, _, _, k = heapq.heappop(ready)
        if k in age or cost != growth(k):
            continue  # computed, or offered again since
        age[k] = len(order)
        order.append(k)
        for a in reads[k]:
            left[a] -= 1
            if left[a] == 1:
                for reader in readers[a]:
                    if reader not in age and not missing[reader]:
                        offer(reader)
        for reader in readers.get(k, ()):
            missing[reader] -= 1
            if not missing[reader]:
                offer(reader)
    assert len(order) == len(reads)
    return order


def gathered(order: Sequence[int], reads: Reads, alike: Collection[int], most: int) -> list[int]:
    """The order with up to `most` values of `alike` side by side: later ones come forward once they can be computed."""
    queue = [k for k in order if k in alike]
    done: set[int] = set()
    result: list[int] = []
    for k in order:
        if k in done:
            continue
        group = [k]
        if k in alike:
            queue = [a for a in queue if a not in done]
            able = (a for a in queue if a != k and all(b in done or b not in reads for b in reads[a]))
            group += [a for a, _ in zip(able, range(most - 1), strict=False)]
        result += group
        done.update(group)
    return result


def place(order: Sequence[int], reads: Reads, room: int, kept: Collection[int] = ()) -> Placement:
    """Moves that compute values in an order while at most `room` of them are in registers.

    The value that is read last of all leaves the registers first; it is stored once. A place serves again when its
    value is read no more.
    """
    return _Placing(order, reads, room, kept).run()


class _Placing:
    """Where values are while an order is run."""

    def __init__(self, order: Sequence[int], reads: Reads, room: int, kept: Collection[int]) -> None:
        self.order, self.reads, self.room = order, reads, room
        self.times: dict[int, list[int]] = {}  # when each value is read, last time first
        for n in range(len(order) - 1, -1, -1):
            for a in reads[order[n]]:
                self.times.setdefault(a, []).append(n)
        for a in kept:
            self.times[a] = [_END - 1, *self.times.get(a, ())]
        self.here: set[int] = set()
        self.queue: list[tuple[int, int]] = []  # values in registers, the one that is read last first
        self.place: dict[int, int] = {}
        self.free: list[int] = []
        self.places = 0
        self.moves: list[Move] = []

    def run(self) -> Placement:
        """All moves."""
        for a in self.times:
            if a not in self.reads:
                self._enter(a, ())
        for k in self.order:
            operands = self.reads[k]
            for a in operands:
                if a not in self.here:
                    self._fetch(a, operands)
            for a in operands:
                self.times[a].pop()
                if self.times[a]:
                    heapq.heappush(self.queue, (-self.times[a][-1], a))
                else:
                    self._forget(a)
            self.moves.append(Compute(k))
            if self.times.get(k):
                self._enter(k, ())
        for a in [a for a, times in self.times.items() if times and a not in self.here]:
            self.moves.append(Take(a, self.place[a]))
        return Placement(self.moves, self.places)

    def _enter(self, a: int, wanted: Collection[int]) -> None:
        if len(self.here) >= self.room:
            self._leave(wanted)
        self.here.add(a)
        heapq.heappush(self.queue, (-self.times[a][-1], a))

    def _fetch(self, a: int, wanted: Collection[int]) -> None:
        self.moves.append(Take(a, self.place[a]))
        self._enter(a, wanted)

    def _leave(self, wanted: Collection[int]) -> None:
        """Let the value that is read last leave the registers, one of `wanted` excepted."""
        aside = []
        while True:
            entry = heapq.heappop(self.queue)
            a = entry[1]
            if a not in self.here or -entry[0] != self.times[a][-1]:
                continue  # gone, or read since
            if a not in wanted:
                break
            aside.append(entry)
        for entry in aside:
            heapq.heappush(self.queue, entry)
        self.here.discard(a)
        if a not in self.place:
            if not self.free:
                self.free.append(self.places)
                self.places += 1
            self.place[a] = self.free.pop()
            self.moves.append(Put(a, self.place[a]))

    def _forget(self, a: int) -> None:
        self.here.discard(a)
        if a in self.place:
            self.free.append(self.place.pop(a))


def most_waiting(order: Sequence[int], reads: Reads, kept: Collection[int] = ()) -> int:
    """The largest number of values that wait at a time."""
    last: dict[int, int] = {}
    for n, k in enumerate(order):
        for a in reads[k]:
            last[a] = n
    last |= dict.fromkeys(kept, len(order))
    change = [0] * (len(order) + 2)
    for n, k in enumerate(chain(order, _given(order, reads, kept))):
        if k in last:
            change[n if n < len(order) else 0] += 1
            change[last[k]] -= 1
    count = most = 0
    for c in change:
        count += c
        most = max(most, count)
    return most


def _given(order: Sequence[int], reads: Reads, kept: Collection[int]) -> Iterator[int]:
    """Values that are given at the beginning."""
    return iter({a for k in order for a in reads[k] if a not in reads} | {a for a in kept if a not in reads})
