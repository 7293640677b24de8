"""A run of an explicit integrator taken again step by step, and kept on a tape for its derivatives.

The tape has the steps that were accepted, each with the state where it began and its length, and the arrivals at the
times asked for. The steps are the same, to the last bit, as those of the run without a tape. Memory is bounded: the
steps of the oldest legs are dropped and taken again from the state at their beginning when they are needed.

On a card (`threads` is a `Place`) states and steps stay in its memory from one arrival to the next.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cardan.errors import InputError
from cardan.integrate.explicit.derivative import BLOCK, StepDerivatives, step_derivatives
from cardan.integrate.explicit.step import ExplicitEquations
from cardan.integrate.explicit.stepper import ExplicitStepper
from cardan.integrate.explicit.tableau import Tableau
from cardan.integrate.integrators import Request
from cardan.integrate.stepper import Arrival, Outcome, States, next_stop
from cardan.integrate.transition import Jump, Moment, Transition
from cardan.lazy import cached_property
from cardan.machines.cuda import driver
from cardan.machines.cuda.device_array import to_device
from cardan.machines.cuda.place import Place

MEMORY = 1 << 29  # bytes of steps on a tape
SHARE = 0.4  # of a card's free memory for a tape there
ROOM = 1 << 23  # bytes of memory that are asked for at once
REMEMBERED = ("s", "origin", "reached", "resting", "crossed", "side", "at_zero", "jumped", "parameters")
CONSTANT, FIXED_END = -2, -1  # how the length of a step follows from its start; from 0 on: it ends at that event


def tape_memory(threads: Any) -> int:
    """How many bytes of steps a tape may have, where they are taken."""
    return int(SHARE * driver.card(threads.card).free_bytes()) if isinstance(threads, Place) else MEMORY


@dataclass(frozen=True)
class Taken:
    """One step of some systems, `rows` (n,) of the batch, or of all (None): states `x` (n, ...) at its start.

    `h` (n,) is its length, s; `ends` (n,) says how it follows from the start: CONSTANT, FIXED_END, or an event's index.
    """

    rows: np.ndarray | None
    x: States
    h: np.ndarray
    ends: np.ndarray

    @property
    def size(self) -> int:
        """Bytes."""
        return sum(array.nbytes for array in (*self.x.values(), self.h, self.ends))


@dataclass(frozen=True)
class Block:
    """Several steps of all systems: `count` (B,) of them, in the rows of `X` (B, BLOCK * row), see `recorded_march`.

    `arrived` (B,) says for whom the last of them ends at a fixed time. `X` may be on a card.
    """

    count: np.ndarray
    X: Any
    arrived: np.ndarray
    kernels: StepDerivatives

    @property
    def size(self) -> int:
        """Bytes."""
        return self.X.nbytes + self.count.nbytes + self.arrived.nbytes

    def steps(self) -> list[Taken]:
        """The steps one by one, in order."""
        kernels = self.kernels
        sizes = [1, 1, *(port.size for port in kernels._ports(*kernels.moving))]
        X = on_host(self.X)
        parts = np.split(X.reshape(len(X), -1, kernels.row), np.cumsum(sizes)[:-1], axis=2)
        found = []
        for j in range(int(self.count.max(initial=0))):
            rows = np.flatnonzero(self.count > j)
            t, h, *rest = (part[rows, j] for part in parts)
            ends = np.where(self.arrived[rows] & (self.count[rows] == j + 1), FIXED_END, CONSTANT)
            x = {"t": t[:, 0], **dict(zip(kernels.moving, rest, strict=True))}
            found.append(Taken(None if len(rows) == len(X) else rows, x, h[:, 0], ends))
        return found


@dataclass(frozen=True)
class Started:
    """Steps of some `systems`, a mask (B,), began at states `x` of all: the accelerations were computed there."""

    x: States
    systems: np.ndarray


@dataclass(frozen=True)
class Jumped:
    """A transition that changed rates or parameters of some systems; `limited` where its events accumulate."""

    transition: Transition
    moment: Moment
    jump: Jump
    limited: bool


@dataclass(frozen=True)
class Sampled:
    """Samples at states `x` after a jump: which systems (B,) kept one, and the numbers (B,) of these."""

    x: States
    systems: np.ndarray
    numbers: np.ndarray


@dataclass
class Leg:
    """One advance: the steps, then a `branch` of steps that only a sample took, and where the systems arrived.

    `samples` are pairs: which systems (B,) kept the arrival as a sample, and the numbers (B,) of these samples.
    """

    target: float
    before: tuple[Any, ...]
    steps: list[Block | Taken | Started] | None = None
    branch: list[Block] = field(default_factory=list)
    x: States = field(default_factory=dict)
    samples: list[tuple[np.ndarray, np.ndarray]] = field(default_factory=list)

    @property
    def size(self) -> int:
        """Bytes of the steps."""
        return sum(step.size for step in (*(self.steps or ()), *self.branch) if not isinstance(step, Started))


class RecordingStepper(ExplicitStepper):
    """An explicit stepper that keeps what it does on a tape."""

    starts_by_march = False

    def __init__(self, motion: ExplicitEquations, tableau: Tableau, tau: np.ndarray, request: Request) -> None:
        super().__init__(motion, tableau, tau, request)
        if motion.looped:
            raise InputError(
                f"derivatives of a run: model {self.model.name!r} has {len(self.model.tree.links)} links, and steps of "
                "such large models are not differentiated yet; take a smaller one"
            )
        self.tape: list[Leg | Started | Jumped | Sampled] = []
        self.memory = self._kept = 0
        self.most_memory = tape_memory(self.threads)
        self.count: np.ndarray | None = None
        self._leg: Leg | None = None
        self._steps: list[Any] = []
        self._block: Any = None
        self._seen = (np.zeros(0), np.zeros(0))
        self._free = np.empty((0, 0))

    @cached_property
    def derivatives(self) -> StepDerivatives:
        """The kernels of the derivatives of its steps."""
        return step_derivatives(self.motion, self.tableau, self.events)

    @property
    def distance(self) -> float:
        """The least distance from a singular position, of all steps and systems: see `recorded_march`."""
        return float(self._seen[1].min(initial=np.inf))

    def sampled(self, systems: np.ndarray) -> None:
        """Note that the systems of a mask (B,) keep a sample of where they are."""
        count = np.zeros(len(systems), dtype=int) if self.count is None else self.count
        if self._leg is not None and isinstance(self.tape[-1], Jumped):
            own = {"t": self._leg.x["t"], "q": self._leg.x["q"], "v": self.s["v"], "x": self.s.get("x")}
            self.tape.append(Sampled({n: np.asarray(own[n]) for n in self.derivatives.place}, systems.copy(), count))
        elif self._leg is not None:
            self._leg.samples.append((systems.copy(), count))
        self.count = count + systems

    def changed(self, transition: Transition, moment: Moment, jump: Jump, limited: bool) -> None:
        """Note what a transition changes."""
        self.tape.append(Jumped(transition, moment, jump, limited))

    def begin(self, t: float, q: np.ndarray, v: np.ndarray) -> None:
        """Start at a state."""
        super().begin(t, q, v)
        self.tape.append(self._started(np.ones(len(q), dtype=bool)))

    def advance(self, t: float) -> Arrival:
        """Every system at time `t`, s."""
        self._leg = leg = Leg(float(t), self._snapshot())
        self.tape.append(leg)
        arrival = self._advance(leg)
        leg.x = {"t": arrival.t, "q": arrival.q, "v": arrival.v}
        if self.states and arrival.p is not None:
            leg.x["x"] = arrival.p[:, self.states]
        self.memory += leg.size
        while self.memory > self.most_memory and self.tape[self._kept] is not leg:
            old = self.tape[self._kept]
            self._kept += 1
            if isinstance(old, Leg):
                self.memory -= old.size
                old.steps, old.branch = None, []
        return arrival

    def steps_of(self, leg: Leg) -> tuple[list[Any], list[Block]]:
        """The steps and the branch of a leg, taken again if they were dropped."""
        if leg.steps is not None:
            return leg.steps, leg.branch
        for name, value in zip(REMEMBERED, leg.before, strict=True):
            setattr(self, name, copy(value))
        again = Leg(leg.target, leg.before)
        self._advance(again)
        assert again.steps is not None
        return again.steps, again.branch

    def _advance(self, leg: Leg) -> Arrival:
        self.target, leg.steps = leg.target, []
        self._steps, self._branch = leg.steps, leg.branch
        return super().advance(leg.target)

    def _snapshot(self) -> tuple[Any, ...]:
        return tuple(copy(getattr(self, name)) for name in REMEMBERED)

    def _started(self, systems: np.ndarray) -> Started:
        return Started({name: self.s[name] for name in self.derivatives.place}, systems)

    def _restart(self, at_event: np.ndarray) -> None:
        super()._restart(at_event)
        self._steps.append(self._started(at_event))

    def _run(self, s: States, end: np.ndarray, *data: np.ndarray) -> States:
        """Call the kernel until every system has arrived, stopped or failed; return the new state."""
        return self._run_on_card(s, end, data) if isinstance(self.threads, Place) else super()._run(s, end, *data)

    def _run_on_card(self, s: States, end: np.ndarray, data: Sequence[np.ndarray]) -> States:
        """The same with states that stay on the card; only what tells who has arrived comes back between two calls."""
        assert isinstance(self.threads, Place)
        kernels, card, B = self.derivatives, self.threads.card, len(s["t"])
        self._prepare_block(s)
        here = {name: to_device(s[name], card) for name in self.names}
        seen, block = [to_device(x, card) for x in self._seen], to_device(on_host(self._block), card)
        zero = to_device(np.zeros(B), card)
        fixed = [to_device(x, card) if np.ndim(x) else x for x in (end, *data)]
        told = {name: s[name] for name in ("t", "h", "outcome", "steps")}
        while True:
            less = self._less_spent(told, end)
            if less is not told:
                here["outcome"] = to_device(less["outcome"], card)
            most = np.asarray(float(BLOCK if self.max_steps is None else min(self._limited(told), BLOCK)))
            given = (*here.values(), *seen, zero, block, *fixed, most)
            *out, last, ahead, count, block = kernels.recorded_march(*given)
            here, seen = dict(zip(self.names, out, strict=True)), [last, ahead]
            told = {name: here[name].numpy() for name in told}
            number = count.numpy().astype(int)
            if number.any():
                arrived = (told["t"] == end) & (end == self.target)
                self._steps.append(Block(number, block, arrived, kernels))
            if not self._running(told, end).any():
                break
        self._block, self._seen = block, (last.numpy(), ahead.numpy())
        return {**s, **{name: value.numpy() for name, value in here.items()}}

    def _prepare_block(self, s: States) -> None:
        """Fill the first block with states: rows without a step count for nothing, but must be some."""
        if self._block is None:
            kernels, B = self.derivatives, len(s["t"])
            x = np.concatenate([s["t"][:, None], s["h"][:, None], *(s[name] for name in kernels.moving)], axis=1)
            self._block = np.tile(x, BLOCK)
            self._seen = np.zeros(B), np.full(B, np.inf)

    def _pass(self, s: States, end: np.ndarray, data: Sequence[np.ndarray], limit: np.ndarray) -> States:
        """At most BLOCK steps."""
        kernels, B = self.derivatives, len(s["t"])
        self._prepare_block(s)
        given = (*(s[name] for name in self.names), *self._seen, np.zeros(B), self._block, end, *data)
        most = np.minimum(limit, float(BLOCK))
        place = (*(None for _ in self.names), None, None, None, self._room(self._block))
        *out, last, ahead, count, self._block = kernels.recorded_march(*given, most, out=place, threads=self.threads)
        self._seen = last, ahead
        self.limit = BLOCK  # however short a call is, the next one takes no more
        after = {**s, **dict(zip(self.names, out, strict=True))}
        if count.any():
            arrived = (after["t"] == end) & (end == self.target)
            self._steps.append(Block(count.astype(int), self._block, arrived, kernels))
        return after

    def _room(self, like: np.ndarray) -> np.ndarray:
        """Memory for a block: a part of a large array, since the system gives many small ones slowly."""
        if not len(self._free):
            self._free = np.empty((max(ROOM // like.nbytes, 1), *like.shape))
        room, self._free = self._free[0], self._free[1:]
        return np.asarray(room)

    def _note(self, taken: np.ndarray, s: States, h: np.ndarray, ends: np.ndarray) -> None:
        names, rows = ("t", *self.derivatives.moving), np.flatnonzero(taken)
        self._steps.append(Taken(rows, {name: s[name][rows] for name in names}, h[rows], ends[rows]))

    def _looked_back(self, rows: np.ndarray, h: np.ndarray) -> None:
        names = ("t", *self.derivatives.moving)
        self._steps.append(Taken(rows, {name: self.s[name][rows] for name in names}, h, np.full(len(rows), CONSTANT)))

    def _partly(self, length: np.ndarray, t: float) -> States:
        main = self._steps
        if t < next_stop(self.stops, t):  # only a sample takes this step
            self._steps = self._branch
        part = super()._partly(length, t)
        self._steps = main
        return part

    def _locate(self) -> None:
        met = self.s["outcome"] == Outcome.EVENT
        before = dict(self.s)
        super()._locate()
        self._note(met, before, self.s["t"] - before["t"], self.s["event"].astype(int))

    def _with_care(self, s: States, end: np.ndarray) -> States:
        t = float(s["t"][s["outcome"] == Outcome.SINGULAR].min())
        raise InputError(
            f"derivatives of a run: at t = {t:.6g} s model {self.model.name!r} passes a singular position, where its "
            "constraints lose rank and motions branch; there is no derivative across it; end the run before"
        )


def on_host(x: Any) -> np.ndarray:
    """An array that may be on a card, in the host's memory."""
    return x if isinstance(x, np.ndarray) else np.asarray(x.numpy())
