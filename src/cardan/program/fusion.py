"""Rounds that go over the same nodes in the same order, made into one.

Each round of a schedule goes over all nodes before the next begins, so that what one leaves for the next waits in
memory. Where the rows of several rounds follow each other with constant steps, one pass can take for each node the
steps of all of them: what one step leaves for the next stays in registers, what no later pass reads is not stored, and
chains of dependent operations of one step fill the time that another waits. A few nodes are taken at once, so that
what a node leaves for the next stays in registers too.

Every row gets a time: as early as what it reads and writes allows, and the rows of a long run one after the other. Rows
of the same time are taken in the order of their rounds. So every number is computed by the same operations as before.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, pairwise
from typing import Any

import numpy as np

from cardan.program.schedule import Round, Schedule

LONG = 8  # rows of a run that is taken in step with others
AT_ONCE = 4  # times that one step takes
APART = 16  # numbers between two places past which they have pointers of their own
MANY = 8  # runs of a round, and rounds for each that there was, past which they are left as they were
REGULAR = 0.5  # share of a round's rows in long runs


def fused(schedule: Schedule) -> Schedule:
    """The same with rounds that follow each other joined where they go over nodes in step."""
    schedule = schedule.with_literals()
    rounds: list[Any] = []
    constants = [schedule.constants]
    group: list[Round] = []
    for k, r in enumerate((*schedule.rounds, None)):
        if isinstance(r, Round) and _is_regular(r):
            group.append(r)
            continue
        rounds += _joined(group, schedule.node_state, schedule.rounds[k:], constants)
        group = []
        if r is not None:
            rounds.append(r)
    return replace(schedule, rounds=tuple(rounds), constants=np.concatenate(constants))


def _is_regular(r: Round) -> bool:
    counts = r.runs[:, 1]
    return len(r.table) < LONG or counts[counts >= LONG].sum() > REGULAR * len(r.table)


@dataclass(frozen=True)
class _Line:
    """A run of rows of a round: `count` rows from row `first` on; its times begin at `time`."""

    number: int
    first: int
    count: int
    time: int


def _joined(group: list[Round], node_state: int, later: Sequence[Any], constants: list[np.ndarray]) -> list[Round]:
    """Rounds that do what those of a group do; `later` are the rounds after them."""
    if len(group) < 2 or sum(len(r.runs) for r in group) > MANY * len(group):
        return group
    memory = _Memory(group, node_state)
    lines = list(_lines(group, memory))
    memory.read_later(later, node_state)
    changes = sorted({t for line in lines for t in (line.time, line.time + line.count)})
    result: list[Round] = []
    for start, end in pairwise(changes):
        here = sorted((line for line in lines if line.time <= start < line.time + line.count), key=_rank)
        parts = [(line.number, line.first + start - line.time) for line in here]
        if len(parts) == 1:
            result.append(_rows(group[parts[0][0]], parts[0][1], end - start))
        elif end - start < LONG:
            result += _in_turn(group, parts, end - start)
        else:
            joined = list(_passes(group, parts, start, end - start, memory, constants))
            if None in joined:
                return group
            result += [r for r in joined if r is not None]
    result = _merged(result)
    return result if len(result) <= MANY * len(group) else group


def _passes(
    group: list[Round], parts: list[tuple[int, int]], start: int, count: int, memory: _Memory,
    constants: list[np.ndarray],
) -> Iterator[Round | None]:  # fmt: skip
    """Several runs in step, some times at once and then the rest; None where that is not known to be the same."""
    whole = count // AT_ONCE
    yield _Fusion(group, parts, start, whole, AT_ONCE, memory, constants).round()
    rest = [(number, first + whole * AT_ONCE) for number, first in parts]
    yield from _in_turn(group, rest, count % AT_ONCE)


def _in_turn(group: list[Round], parts: list[tuple[int, int]], count: int) -> list[Round]:
    """The rows of several runs, time after time."""
    return [_rows(group[number], first + t, 1) for t in range(count) for number, first in parts]


def _rank(line: _Line) -> tuple[int, int]:
    return line.number, line.first


def _rows(r: Round, first: int, count: int) -> Round:
    """Some rows of a round."""
    return r.with_table(r.table[first : first + count])


def _merged(rounds: list[Round]) -> list[Round]:
    """Neighbours with the same steps as one."""
    result: list[Round] = []
    for r in rounds:
        if result and result[-1].calls is r.calls:
            result[-1] = r.with_table(np.vstack([result[-1].table, r.table]))
        else:
            result.append(r)
    return result


class _Memory:
    """When each number of the state, and of the outputs, was last written and last read."""

    def __init__(self, group: list[Round], node_state: int) -> None:
        room = max(map(_room, group), default=0)
        self.places = [_Places(r, node_state, room) for r in group]
        size = max((p.end for p in self.places), default=0) + 1
        self.written, self.read = np.full(size, -1), np.full(size, -1)

    def earliest(self, number: int, first: int, count: int) -> np.ndarray:
        """Times (count,) at which rows could be taken, after all before them that they depend on."""
        reads, writes = self.places[number].of(first, count)
        times = np.hstack([self.written[reads], self.written[writes], self.read[writes], np.zeros((count, 1), int)])
        found: np.ndarray = times.max(axis=1)
        return found

    def take(self, number: int, first: int, count: int, time: int) -> None:
        """Note that rows are taken one after the other, from a time on."""
        reads, writes = self.places[number].of(first, count)
        times = time + np.arange(count)[:, None]
        np.maximum.at(self.read, reads, np.broadcast_to(times, reads.shape))
        np.maximum.at(self.written, writes, np.broadcast_to(times, writes.shape))

    def read_later(self, rounds: Sequence[Any], node_state: int) -> None:
        """Note what rounds after all times read; of other rounds than those of steps that may be anything."""
        for r in rounds:
            if not isinstance(r, Round):
                self.read[:node_state] = NEVER
                return
            places = _Places(r, node_state, 0)
            for call, columns in enumerate(places.reads):
                rows = r.table[r.table[:, 0] == call]
                for c, elements in columns:
                    reads = (rows[:, c, None] + elements).ravel()
                    self.read[reads[reads < len(self.read)]] = NEVER


class _Places:
    """Which numbers each row of a round reads and writes, by address; outputs follow the state, `room` apart."""

    def __init__(self, r: Round, node_state: int, room: int) -> None:
        self.table = r.table
        first = 2 + len(r.inputs)
        self.columns = [*range(first, first + r.states + len(r.outputs))]
        self.reads: list[list[tuple[int, np.ndarray]]] = []
        self.writes: list[list[tuple[int, np.ndarray]]] = []
        self.shift = np.zeros(self.table.shape[1], int)
        for k, port in enumerate(r.outputs):
            self.shift[first + r.states + k] = node_state + port * room
        for graph in r.graphs:
            read: dict[int, set[int]] = {}
            used = graph.uses()
            for op, args, uses in zip(graph.op, graph.args, used, strict=True):
                if op == "input" and uses and args[0] > len(r.inputs):
                    read.setdefault(args[0] + 1, set()).add(args[1])
            write: dict[int, set[int]] = {}
            for port, element, _ in graph.outputs:
                write.setdefault(first + port, set()).add(element)
            self.reads.append([(c, np.array(sorted(e))) for c, e in sorted(read.items())])
            self.writes.append([(c, np.array(sorted(e))) for c, e in sorted(write.items())])
        largest = [self.table[:, c].max(initial=0) + self.shift[c] + _most(self, c) for c in self.columns]
        self.end = int(max(largest, default=0)) + 1

    def of(self, first: int, count: int) -> tuple[np.ndarray, np.ndarray]:
        """Addresses (count, .) that rows with the same call read, and those that they write."""
        rows = self.table[first : first + count]
        found = []
        for places in (self.reads[rows[0, 0]], self.writes[rows[0, 0]]):
            parts = [rows[:, c, None] + self.shift[c] + elements for c, elements in places]
            found.append(np.hstack([np.zeros((count, 0), int), *parts]))
        return found[0], found[1]


NEVER = 1 << 60  # a time after all others


def _room(r: Round) -> int:
    """Numbers of the longest output, as far as a round writes it."""
    sizes = [max(call.numel_out(r.states + k) for call in r.calls) for k in range(len(r.outputs))]
    columns = r.table[:, r.table.shape[1] - len(sizes) :]
    return max((int(columns[:, k].max(initial=0)) + size for k, size in enumerate(sizes)), default=0)


def _most(places: _Places, column: int) -> int:
    """The largest element of a column that a step reads or writes."""
    parts = [e.max() for group in (places.reads, places.writes) for call in group for c, e in call if c == column]
    return int(max(parts, default=0))


def _lines(group: list[Round], memory: _Memory) -> Iterator[_Line]:
    """Runs of rows with their times, round by round; the rows of a short run each by itself."""
    for number, r in enumerate(group):
        first = 0
        for rows in r.runs[:, 1].tolist():
            for count in [rows] if rows >= LONG else [1] * rows:
                time = int((memory.earliest(number, first, count) - np.arange(count)).max())
                time = max(time, 0)
                memory.take(number, first, count, time)
                yield _Line(number, first, count, time)
                first += count


Place = tuple[Any, int, int]  # what memory (None: the state; else kind and port), step from time to time, address


class _Fusion:
    """One step in the place of several at `at_once` times, `count` times over."""

    def __init__(
        self, group: list[Round], parts: list[tuple[int, int]], start: int, count: int, at_once: int,
        memory: _Memory, constants: list[np.ndarray],
    ) -> None:  # fmt: skip
        self.group, self.parts, self.start, self.count, self.at_once = group, parts, start, count, at_once
        self.memory, self.constants = memory, constants
        self.known: dict[Place, Any] = {}  # what is written, by place
        self.symbols: dict[Place, Any] = {}
        self.C: list[tuple[Any, np.ndarray]] = []  # constants, and their numbers from time to time

    def round(self) -> Round | None:
        """The joined round; None if steps could meet in memory in ways that are not known."""
        import casadi as ca

        for time in range(self.at_once):
            for number, first in self.parts:
                self._compose(self.group[number], first + time)
        kept = {place: value for place, value in self.known.items() if self._is_read_later(place)}
        used = {x.element_hash() for x in ca.symvar(ca.vertcat(ca.SX(0, 1), *kept.values()))}
        read = {place: x for place, x in self.symbols.items() if x.element_hash() in used}
        if self._may_overlap({*read, *self.known}):
            return None
        pointers = list(_clusters({*read, *kept}))
        ins = [p for p in pointers if p[0] is not None and p[0][0] == "in"]
        states = [p for p in pointers if p[0] is None]
        outs = [p for p in pointers if p[0] is not None and p[0][0] == "out"]
        before = [ca.vertcat(*(read.get((m, s, a), ca.SX.sym("unused")) for a in at)) for m, s, at in ins + states]
        after = []
        for m, s, at in states + outs:
            column = ca.SX(len(at), 1)
            for k, a in enumerate(at):
                if (m, s, a) in kept:
                    column[k] = kept[m, s, a]
            after.append(column)
        C = [(x, values) for x, values in self.C if x.element_hash() in used]
        own = sum(len(c) for c in self.constants)
        self.constants.append(np.array([values for _, values in C]).T.ravel())
        call = ca.Function("joined", [ca.vertcat(ca.SX(0, 1), *(x for x, _ in C)), *before], after)
        times = np.arange(self.count)
        columns = [0 * times, own + len(C) * times, *(at[0] + s * times for _, s, at in ins + states + outs)]
        numbers = tuple(p[0][1] for p in ins), tuple(p[0][1] for p in outs)
        return Round((call,), *numbers, np.stack(columns, axis=1), states=len(states))

    def _compose(self, r: Round, first: int) -> None:
        """Take one more step, of the memory as those before it left it."""
        import casadi as ca

        rows = r.table[first : first + self.count * self.at_once : self.at_once]
        call = r.calls[int(rows[0, 0])]
        steps = rows[1] - rows[0]
        memories: list[Any] = [("in", port) for port in r.inputs]
        memories += [None] * r.states
        C = ca.SX.sym("C", call.numel_in(0))
        arguments = [C]
        for c, memory in enumerate(memories, 2):
            at = int(rows[0, c])
            values = [self._value((memory, int(steps[c]), at + e)) for e in range(call.numel_in(c - 1))]
            arguments.append(ca.vertcat(ca.SX(0, 1), *values))
        self.C += [(C[e], self.constants[0][rows[:, 1] + e]) for e in range(call.numel_in(0))]
        results = call.call(arguments)
        outs = [None] * r.states + [("out", port) for port in r.outputs]
        for k, (memory, value) in enumerate(zip(outs, results, strict=True)):
            c = 2 + len(r.inputs) + k
            for e, x in zip(value.sparsity().row(), value.nonzeros(), strict=True):
                self.known[memory, int(steps[c]), int(rows[0, c]) + e] = x

    def _value(self, place: Place) -> Any:
        import casadi as ca

        if place in self.known:
            return self.known[place]
        if place not in self.symbols:
            self.symbols[place] = ca.SX.sym("x")
        return self.symbols[place]

    def _is_read_later(self, place: Place) -> bool:
        """Whether a number is read after the step that writes it; outputs are."""
        memory, step, at = place
        if memory is not None:
            return True
        times = np.arange(self.count)
        last = self.start + self.at_once * times + self.at_once - 1
        return bool((self.memory.read[at + step * times] > last).any())

    def _may_overlap(self, places: set[Place]) -> bool:
        """Whether places with different steps may be the same number at some time, one of them written."""
        by_step: dict[int, list[tuple[int, int, bool]]] = {}
        for memory, step, at in places:
            if memory is None:
                ends = sorted((at, at + step * (self.count - 1)))
                by_step.setdefault(step, []).append((ends[0], ends[1], (memory, step, at) in self.known))
        spans = []
        for step, found in by_step.items():
            for low, high in _spans([(a, b) for a, b, _ in found], abs(step)):
                spans.append((low, high, step, any(w for a, b, w in found if low <= a <= high)))
        return any(a[2] != b[2] and (a[3] or b[3]) and a[0] <= b[1] and b[0] <= a[1] for a, b in combinations(spans, 2))


def _spans(ranges: list[tuple[int, int]], gap: int) -> Iterator[tuple[int, int]]:
    """Ranges that touch, or lie closer than a step, as one."""
    low = high = None
    for a, b in sorted(ranges):
        if low is None or high is None:
            low, high = a, b
        elif a <= high + gap:
            high = max(high, b)
        else:
            yield low, high
            low, high = a, b
    if low is not None and high is not None:
        yield low, high


def _clusters(places: set[Place]) -> Iterator[tuple[Any, int, range]]:
    """Places near each other in the same memory and with the same step, as ranges of addresses."""
    groups: dict[tuple[Any, int], list[int]] = {}
    for memory, step, at in places:
        groups.setdefault((memory, step), []).append(at)
    for (memory, step), found in sorted(groups.items(), key=lambda item: (str(item[0][0]), item[0][1])):
        found.sort()
        first = last = found[0]
        for at in found[1:]:
            if at - last > APART:
                yield memory, step, range(first, last + 1)
                first = at
            last = at
        yield memory, step, range(first, last + 1)
