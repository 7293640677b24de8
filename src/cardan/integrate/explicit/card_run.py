"""Runs of explicit integrators on a GPU: the whole run of a system in one thread, all its samples in one launch.

The kernel is the march of `ExplicitKernels` inside the loop over times of `machines.cuda.samples`. It stops a system
that meets an event or needs careful steps. Such systems are attended to by the stepper that the CPU uses, and go on in
the next launch; their kernels run on the card too, if they are many. Every system is integrated by the same arithmetic
as on the CPU, and no system depends on another: the results are those of the CPU, to the bit.

A launch takes as many steps as fit into `LONGEST_LAUNCH`, so that Ctrl-C is heard between two of them. Times are taken
in windows whose samples fit into the card's memory; after each window its samples are projected there, and fetched.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import dataclass
from struct import pack, unpack
from time import perf_counter

import numpy as np

from cardan.integrate.driver import MetEvent, RunSamples, inner_breaks, sides
from cardan.integrate.explicit.stepper import OPEN, ExplicitStepper, joined_state, split, split_state
from cardan.integrate.stepper import ON_STEP, STRETCH, Arrival, EnergyNotes, Outcome, States, next_stop
from cardan.machines.cuda import driver
from cardan.machines.cuda.forms import words_of
from cardan.machines.cuda.kernel import Entry, block_of
from cardan.machines.cuda.place import Place
from cardan.machines.cuda.rows import Rows, downloaded, move, uploaded
from cardan.machines.cuda.samples import SYMBOL, Launch, SamplePorts, Status, data_ports, print_samples
from cardan.structure.projection import NEWTON_STEPS, projection_kernel

LONGEST_LAUNCH = 0.25  # s: Ctrl-C is noticed between two launches
FIRST_BUDGET, NO_LIMIT = 32, 1 << 62  # steps of a system in the first launch, and in all if there is no limit
MANY = 1_000  # systems: fewer that need attention are computed on the CPU
SHARE = 0.5  # of the card's free memory for the samples of a window
MOST_TIMES = 65_535  # of a window: the grid has no more rows

NOTED = ("steps", "work", "speed", "correction", "correction_time", "e")  # of a system at its end
FLOAT = np.dtype(np.float64)


def systems_at_once(stepper_bytes: int, place: Place) -> int:
    """How many systems, of so many bytes each, are integrated together on a card."""
    return max(int(SHARE * driver.card(place.card).free_bytes() / max(stepper_bytes, 1)), 1)


def sample_ports(*, fixed: bool, paired: bool) -> SamplePorts:
    """What the ports of a march of explicit steps mean, of `fixed` length or not, with pairs of numbers or not."""
    return SamplePorts(
        "t", "h", "steps", "outcome", "end", "limit", ("q", "v", "work"), int(Outcome.TOO_MANY_STEPS),
        int(Outcome.SINGULAR), STRETCH, ON_STEP if fixed else None, "_lo" if paired else "",
    )  # fmt: skip


class _Targets:
    """Times to reach between two breaks, s: those of samples, and that just before the break at the end.

    `label` (K,) are the times that the samples carry, `sample` (K,) their numbers, -1 at a break without one. `count`
    and `last` (K + 1,) are how many samples there are before each target, and the time of the last of them.
    """

    def __init__(self, listed: list[tuple[float, float, int | None]], count: int, last: float) -> None:
        self.time = np.array([time for time, _, _ in listed])
        self.label = np.array([label for _, label, _ in listed])
        self.sample = np.array([-1 if number is None else number for _, _, number in listed])
        kept = self.sample >= 0
        self.count = count + np.concatenate([[0], np.cumsum(kept)])
        labels = np.concatenate([[last], np.where(kept, self.label, -np.inf)])
        self.last = np.maximum.accumulate(labels)


@dataclass
class _Patch:
    """Samples that were not written by the kernel: systems (n,), their sample numbers, and time, state and work."""

    rows: np.ndarray
    at: np.ndarray
    t: np.ndarray
    q: np.ndarray
    v: np.ndarray
    work: np.ndarray


def drive_on_card(
    stepper: ExplicitStepper, place: Place, q: np.ndarray, v: np.ndarray, times: np.ndarray, *,
    breaks: Sequence[float] = (), stops: Sequence[bool] = (), report: Callable[[float], None] | None = None,
) -> RunSamples:  # fmt: skip
    """Run B systems on a card as `integrate.driver.drive` does on the CPU, with the same results.

    If the card fails on the way, the result is marked as interrupted, and `broken` says why.
    """
    start = float(times[0])
    again = {b: (k, *sides(b, start)) for k, b in enumerate(inner_breaks(times, breaks))}
    knots = np.array([(b, *around) for b, (_, *around) in again.items()]).reshape(-1, 3)
    kept = RunSamples.empty(len(q), len(times), q.shape[1], v.shape[1], knots, filled=False)
    kept.knot_q[:], kept.knot_v[:] = np.nan, np.nan
    alive = np.ones(len(q), dtype=bool)
    kept.count[:] = 1
    numbers = {t: k for k, t in enumerate(times.tolist())}
    run: _CardRun | None = None
    segment: list[tuple[float, float, int | None]] = [(start, start, 0)]
    try:
        stepper.begin(start, q, v)
        run = _CardRun(stepper, place, kept, alive, stops, report)
        for t in sorted(set(times[1:].tolist()) | set(again)):
            segment.append((again[t][1] if t in again else t, t, numbers.get(t)))
            if t in again or t == times[-1]:
                run.through(segment)
                segment = []
                if not alive.any():
                    break
            if t in again:
                k, _, after = again[t]
                run.at_break(k, after)
    except KeyboardInterrupt:
        kept.interrupted = True
    except driver.DeviceError as error:
        if run is None:
            raise
        kept.interrupted, kept.broken, kept.scarce = True, str(error), isinstance(error, driver.DeviceMemoryError)
    if run is not None:
        run.finish()
    if run is None or not run.fetched:  # not even the first samples came back
        kept.t[:, 0], kept.q[:, 0], kept.v[:, 0], kept.work[:, 0] = start, q, v, 0.0
        kept.count[:] = 1
        kept.fill(np.arange(len(q)), kept.count)
    kept.outcome[alive & (kept.count < len(times))] = Outcome.INTERRUPTED
    return kept


class _CardRun:
    """A run on its way. `next` (B,) are the numbers of the targets to reach, in the present segment between breaks."""

    def __init__(
        self, stepper: ExplicitStepper, place: Place, kept: RunSamples, alive: np.ndarray, stops: Sequence[bool],
        report: Callable[[float], None] | None,
    ) -> None:  # fmt: skip
        self.stepper, self.place, self.kept, self.alive, self.stops = stepper, place, kept, alive, stops
        self.report, self.card, B = report, driver.card(place.card), len(kept.t)
        self.single = stepper.single is not None
        self.kind = np.dtype(np.float32) if self.single else FLOAT  # of the states on the card
        march = (stepper.single or stepper.kernels).march.on_card
        self.ports = ports = sample_ports(fixed=stepper.has_fixed_steps, paired=self.single)
        entry = Entry(SYMBOL, lambda recorded, program, kind: print_samples(recorded, program, ports, kind), ports.key)
        self.function = march.function(place.card, self.kind, entry)
        state = march.builder.compiled.outputs
        self.names = tuple(port.name for port in state)
        self.rows = Rows(self.card, self.kind, {port.name: port.shape for port in state}, B)
        self.data = {p.name: self._constant(p.name) for p in data_ports(march.builder.compiled, ports)}
        self.memory = {name: self.card.allocate(8 * B) for name in ("next", "status", "origin")}
        self.opened = np.zeros(kept.t.shape, dtype=bool)
        self.budget = FIRST_BUDGET
        self.targets = _Targets([], 0, -np.inf)
        self.next, self.origin = np.zeros(B, dtype=np.int64), np.zeros(B)
        self.window: tuple[int, int] | None = None  # of targets whose samples are on the card
        self.patches: list[_Patch] = []
        self.fetched = False  # whether samples came back
        self.gone = False  # whether the states on the card are newer than the stepper's

    def _constant(self, name: str) -> tuple[driver.Memory, int]:
        """A constant of the march on the card: its memory, and its stride in bytes from system to system."""
        stepper = self.stepper
        control = dict(zip(("rtol", "atol", "max_step"), stepper.control, strict=True))
        values = stepper.parameters[0] if name == "p" else {**control, "tau": stepper.tau}[name]
        each = values.shape[-1] if values.ndim else 1
        stride = self.kind.itemsize * each if values.size > each else 0
        return uploaded(self.card, np.asarray(values, dtype=self.kind)), stride

    # from break to break

    def through(self, listed: list[tuple[float, float, int | None]]) -> None:
        """Take all systems through the targets before a break or the end, or as far as they get."""
        stepper, card = self.stepper, self.card
        self.targets = targets = _Targets(listed, int(self.targets.count[-1]), float(self.targets.last[-1]))
        at_start = targets.count[0] == 0
        self.next[:] = int(at_start)
        self.origin[:] = stepper.origin
        self._put_states(stepper.s)
        self.gone = True
        self._put(next=self.next, origin=self._rounded(self.origin))
        stops = np.array([next_stop(stepper.stops, t) for t in targets.time])
        self.tables = {name: uploaded(card, self._rounded(x)) for name, x in (("t", targets.time), ("stop", stops))}
        most = self._room(len(listed))
        for low in range(0, len(listed), most):
            self.window = low, min(low + most, len(listed))
            if at_start and not low:
                self._sample_start()
            while (self.next[self.alive] < self.window[1]).any():
                self._launch()
            self._fetch()
            if not self.alive.any():
                break

    def _sample_start(self) -> None:
        """Let the states at the start be the first samples."""
        s = self.stepper.s
        for name in self.ports.sampled:
            size = self.rows.sizes[name]
            given = uploaded(self.card, s[name]) if self.single else None
            source = (*self.rows.place(name),) if given is None else (given.pointer, 8 * size, 8)
            x, _, n = self._strides(name)
            target = (self.samples[name].pointer, 0, x, n)
            move(self.card, FLOAT, len(self.next), size, (source[0], 0, *source[1:]), target)
            self.card.synchronize()

    def _put_states(self, states: States, rows: np.ndarray | None = None) -> None:
        """Bring states of all systems, or some, to the card."""
        given = split_state(states) if self.single else states
        self.rows.put({name: given[name] for name in self.names}, rows)

    def _get_states(self, names: tuple[str, ...], rows: np.ndarray | None = None) -> States:
        """States of all systems, or some, from the card."""
        found = self.rows.get(names, rows)
        return joined_state(found) if self.single else found

    def _rounded(self, times: np.ndarray) -> np.ndarray:
        """Times as the kernel can hold them."""
        if not self.single:
            return times
        high, low = split(times)
        return np.where(np.isfinite(times), high.astype(float) + low, times)

    def _room(self, times: int) -> int:
        """Take memory on the card for the samples of some of the times; how many."""
        sizes = {name: self.rows.sizes[name] for name in self.ports.sampled} | {"gap": 1}
        each = 8 * len(self.next) * sum(sizes.values())
        self.samples: dict[str, driver.Memory] = {}  # those of the segment before are given back first
        most = max(min(int(SHARE * self.card.free_bytes() / each), times, MOST_TIMES), 1)
        while True:
            try:
                self.samples = {name: self.card.allocate(8 * len(self.next) * most * n) for name, n in sizes.items()}
                return most
            except driver.DeviceMemoryError:
                if most == 1:
                    raise
                most //= 2

    def at_break(self, number: int, after: float) -> None:
        """Keep the states at a break, and begin again after it, s."""
        self._bring_back()
        stepper, alive = self.stepper, self.alive
        q, v = stepper.s["q"], stepper.s["v"]
        self.kept.knot_q[alive, number], self.kept.knot_v[alive, number] = q[alive], v[alive]
        stepper.resting = ~alive
        stepper.begin(after, q, v)

    def _bring_back(self) -> None:
        """Give the states to the stepper."""
        if self.gone:
            self.stepper.s |= self._get_states(self.names)
            self.gone = False

    def finish(self) -> None:
        """Complete the results: counts, steps, notes; what is still on the card is fetched, if that answers."""
        kept, stepper = self.kept, self.stepper
        kept.count = np.where(self.alive, self.targets.count[self.next], kept.count)
        try:
            self._fetch()
        except driver.DeviceError:  # a card that does not answer any more
            assert self.window is not None
            kept.count = np.clip(kept.count, 1, max(int(self.targets.count[self.window[0]]), 1))
        s = stepper.s
        with suppress(driver.DeviceError):
            if self.gone:
                s = s | self._get_states(tuple(name for name in NOTED if name in self.names))
        short = np.flatnonzero(kept.count < kept.t.shape[1])
        kept.fill(short, kept.count[short])
        kept.steps = s["steps"].astype(int)
        kept.notes = EnergyNotes(s["work"], s["speed"], s["correction"], s["correction_time"], stepper.law_residual(s))
        kept.end_where_opened(self.opened)
        if kept.broken:
            stepper.threads = None  # the CPU has the same bits
        kept.project_knots(stepper)

    # launches

    def _launch(self) -> None:
        """Start the kernel, and attend to the systems that stopped."""
        assert self.window is not None
        began = perf_counter()
        stepper, (low, high), B, memory = self.stepper, self.window, len(self.next), self.memory
        launch = Launch(
            B, high, self.budget, NO_LIMIT if stepper.max_steps is None else stepper.max_steps, low,
            self.tables["t"].pointer, self.tables["stop"].pointer, memory["next"].pointer, memory["status"].pointer,
            memory["origin"].pointer, _bits(stepper.step or 0.0), [self.rows.place(name) for name in self.names],
            [(constant.pointer, stride, self.kind.itemsize) for constant, stride in self.data.values()],
            [(self.samples[name].pointer, *self._strides(name)) for name in self.ports.sampled],
        )  # fmt: skip
        block = block_of(B, self.function)
        self.function.launch((-(-B // block), 1, 1), block, launch.words)
        status = downloaded(self.card, memory["status"].pointer, np.empty(B, dtype=np.int64))
        downloaded(self.card, memory["next"].pointer, self.next)
        seconds = perf_counter() - began
        if seconds < LONGEST_LAUNCH / 2:
            self.budget = min(self.budget * (8 if seconds < LONGEST_LAUNCH / 16 else 2), NO_LIMIT >> 4)
        elif seconds > LONGEST_LAUNCH:
            self.budget = max(self.budget // 2, 1)
        rows = np.flatnonzero(self.alive & (status >= Status.STOPPED))
        if len(rows):
            self._attend(rows)
        reached = int(self.next[self.alive].min(initial=high))
        if self.report is not None and reached:
            self.report(float(self.targets.label[reached - 1]))

    def _strides(self, name: str) -> tuple[int, int, int]:
        """Strides in bytes of samples on the card by system, time and element; they lie as in `RunSamples`."""
        assert self.window is not None
        size = 8 * (1 if name == "gap" else self.rows.sizes[name])
        return size * (self.window[1] - self.window[0]), size, 8

    def _fetch(self) -> None:
        """Project the samples of the window, and fetch them."""
        if self.window is None:
            return
        kept, targets, (low, high), B = self.kept, self.targets, self.window, len(self.next)
        projects = self.stepper.motion.projects
        if projects:
            self._project()
        passed = np.arange(low, high) < self.next[:, None]
        slots = np.flatnonzero(targets.sample[low:high] >= 0)
        at = targets.sample[low:high][slots]
        whole = len(slots) == high - low and bool(self.next.min() >= high)
        for name in self.ports.sampled:
            samples = getattr(kept, name)
            if whole and len(at) == samples.shape[1]:
                downloaded(self.card, self.samples[name].pointer, samples)
            else:
                values = np.empty((B, high - low, *samples.shape[2:]))
                downloaded(self.card, self.samples[name].pointer, values)
                _fill(samples, at, values, slots, None if whole else passed)
        _fill(kept.t, at, np.broadcast_to(targets.label[low:high], passed.shape), slots, None if whole else passed)
        if projects:
            gap = downloaded(self.card, self.samples["gap"].pointer, np.empty((B, high - low)))
            self.opened[:, at] = (passed & (gap >= OPEN))[:, slots]
        self.window, self.fetched = None, True
        for patch in self.patches:
            t, q, v = patch.t[:, None], patch.q[:, None], patch.v[:, None]
            q, v, opened = self._part(patch.rows).project(t, q, v)
            kept.t[patch.rows, patch.at], kept.work[patch.rows, patch.at] = patch.t, patch.work
            kept.q[patch.rows, patch.at], kept.v[patch.rows, patch.at] = q[:, 0], v[:, 0]
            self.opened[patch.rows, patch.at] = opened[:, 0]
        self.patches = []

    def _project(self) -> None:
        """Project the samples of the window where they are, as `ExplicitStepper.project` does."""
        assert self.window is not None
        (low, high), B, card = self.window, len(self.next), self.card
        kernel = projection_kernel(self.stepper.model).on_card
        constants = uploaded(card, np.array([0.0, float(NEWTON_STEPS)]))
        labels = uploaded(card, self.targets.label[low:high])
        places = {
            name: (self.samples[name].pointer, self._strides(name)[:2], (8,) if name != "gap" else ())
            for name in ("q", "v", "gap")
        }
        given = {
            "q": places["q"], "v": places["v"], "gap": (constants.pointer, (0, 0), ()),
            "t": (labels.pointer, (0, 8), ()), "limit": (constants.pointer + 8, (0, 0), ()),
        }  # fmt: skip
        if "p" in self.data:
            p = self.stepper.parameters[0]
            memory = uploaded(card, p) if self.single else self.data["p"][0]
            given["p"] = memory.pointer, (8 * p.shape[-1] if p.size > p.shape[-1] else 0, 0), (8,)
        program = kernel.builder.compiled
        ports = [given[port.name] for port in program.inputs] + [places[port.name] for port in program.outputs]
        function = kernel.function(self.place.card, FLOAT)
        block = block_of(B * (high - low), function)
        function.launch((-(-B // block), high - low, 1), block, words_of(B, ports))
        card.synchronize()  # before the constants are given back

    # systems that stopped

    def _attend(self, rows: np.ndarray) -> None:
        """Locate the events of some systems, and take careful steps of others; they go on then, or end."""
        state = self._get_states(self.names, rows)
        careful = (state["outcome"] == Outcome.ARRIVED) | (state["outcome"] == Outcome.SINGULAR)
        halted, waiting = np.flatnonzero(~careful), np.flatnonzero(careful)
        if len(halted):
            part = self._part(rows[halted], state, halted)
            self._settle(part, rows[halted], part.halted())
        numbers = self.next[rows[waiting]]  # as they are now: a system that arrives has the next one
        for number in np.unique(numbers):
            chosen = waiting[numbers == number]
            part = self._part(rows[chosen], state, chosen)
            self._settle(part, rows[chosen], part.resume(float(self.targets.time[number])))
        self._put(next=self.next, origin=self._rounded(self.origin))

    def _part(
        self, rows: np.ndarray, state: States | None = None, chosen: slice | np.ndarray = slice(None)
    ) -> ExplicitStepper:
        """The stepper with some systems only, in some states."""
        part, B = copy(self.stepper), len(self.next)
        part.s = {name: x[rows] for name, x in part.s.items()} | {n: x[chosen] for n, x in (state or {}).items()}
        part.tau = np.broadcast_to(part.tau, (B, part.model.nv))[rows]
        part.parameters = tuple(np.broadcast_to(p, (B, p.shape[-1]))[rows] for p in part.parameters)
        part.origin, part.reached, part.resting, part.crossed = self.origin[rows], -np.inf, None, None
        part.threads = self.place if len(rows) >= MANY else None
        return part

    def _settle(self, part: ExplicitStepper, rows: np.ndarray, arrival: Arrival) -> None:
        """Keep events and samples of some systems, and let those go on that neither ended nor failed."""
        kept, targets, numbers = self.kept, self.targets, self.next[rows]
        ended = arrival.outcome > Outcome.EVENT
        if arrival.crossed is not None:
            crossed = arrival.crossed & (arrival.outcome == Outcome.EVENT)[:, None]
            i, events = np.nonzero(crossed)
            told = (events.tolist(), rows[i].tolist(), arrival.t[i].tolist(), arrival.q[i], arrival.v[i])
            kept.met += map(MetEvent, *told)
            ended |= (crossed & np.array(self.stops)).any(axis=1)
        arrived = arrival.outcome == Outcome.ARRIVED
        at = targets.sample[numbers]
        self._patch(arrived & (at >= 0), rows, at, targets.label[numbers], arrival)
        further = ended & (arrival.t > targets.last[numbers])
        count = targets.count[numbers]
        self._patch(further, rows, count, arrival.t, arrival)
        kept.count[rows] = count + further
        kept.outcome[rows[ended]] = arrival.outcome[ended]
        self.alive[rows[ended]] = False
        self.next[rows] += arrived
        part.s["outcome"] = np.where(ended, float(Outcome.RESTING), part.s["outcome"])
        part.leave_events()
        self.origin[rows] = part.origin
        self._put_states(part.s, rows)

    def _patch(self, mask: np.ndarray, rows: np.ndarray, at: np.ndarray, t: np.ndarray, arrival: Arrival) -> None:
        """Note samples, numbers `at` at times `t`, of some of the systems that arrived somewhere."""
        assert arrival.notes is not None
        i = np.flatnonzero(mask)
        if len(i):
            self.patches.append(_Patch(rows[i], at[i], t[i], arrival.q[i], arrival.v[i], arrival.notes.work[i]))

    def _put(self, **arrays: np.ndarray) -> None:
        """Upload numbers of all systems."""
        for name, array in arrays.items():
            self.card.upload(self.memory[name].pointer, array.ctypes.data, array.nbytes)


def _fill(kept: np.ndarray, at: np.ndarray, values: np.ndarray, slots: np.ndarray, passed: np.ndarray | None) -> None:
    """Write samples (B, K, ...) of some slots to their numbers `at`, where they were `passed` (B, K)."""
    if passed is None and len(at):
        kept[:, at[0] : at[-1] + 1] = values  # the numbers of all slots in order
        return
    for number, slot in zip(at, slots, strict=True):
        rows = slice(None) if passed is None else passed[:, slot]
        kept[rows, number] = values[rows, slot]


def _bits(value: float) -> int:
    """The bits of a float64 as an integer."""
    return int(unpack("<q", pack("<d", value))[0])
