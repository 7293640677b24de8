"""Transitions: what changes rates and parameters of systems at an event or at a break, after which they go on.

A transition is applied to the systems that met its events, all at once. It sees where they are, a `Moment`, and
answers with a `Jump`: other rates, other parameters, or that no such jump exists. Positions do not jump.

Events may accumulate, infinitely many before a finite time: a ball that loses a part of its speed at every bounce.
Intervals between events then shrink as a geometric series, and `Accumulation` recognises it. Where they shrink fast,
the next flight is too short to be seen before there are enough of them: a bounce whose flights, all together, would
take a negligible time is the last one, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cardan.errors import InputError


def unchanged(at: Moment) -> np.ndarray:
    """The slopes of a jump that changes nothing."""
    (k, nv), size = at.v.shape, at.p.shape[1]
    D = np.zeros((k, nv + size, 1 + 2 * nv + size))
    D[:, :nv, 1 + nv : 1 + 2 * nv], D[:, nv:, 1 + 2 * nv :] = np.eye(nv), np.eye(size)
    return D


@dataclass(frozen=True)
class Moment:
    """Where k systems are at an event or a break: their numbers (k,), time (k,), s, state and parameters.

    `q` (k, nq), `v` (k, nv) and `p` (k, np) are before the jump; `crossed` (k, ne) says which events each met, none at
    a break; `tau` (k, nv) are the constant drives, N m and N. The systems are numbered as in the stepper, 0 to B - 1.
    """

    systems: np.ndarray
    t: np.ndarray
    q: np.ndarray
    v: np.ndarray
    p: np.ndarray
    crossed: np.ndarray
    tau: np.ndarray

    def of(self, chosen: np.ndarray) -> Moment:
        """Some of the systems, a mask (k,)."""
        return Moment(*(x[chosen] for x in vars(self).values()))


@dataclass(frozen=True)
class Jump:
    """Rates (k, nv) and parameters (k, np) after a jump.

    `failed` (k,) marks systems for which there is none, None if there is no such system; `message` says why.
    `impulse` (k, m) are those of the rows with laws, zero where there is no impact, None without such rows.
    """

    v: np.ndarray
    p: np.ndarray
    failed: np.ndarray | None = None
    message: str = ""
    impulse: np.ndarray | None = None

    def of(self, chosen: np.ndarray) -> Jump:
        """Those of some of the systems, a mask (k,)."""
        failed, impulse = (None if x is None else x[chosen] for x in (self.failed, self.impulse))
        return Jump(self.v[chosen], self.p[chosen], failed, self.message, impulse)


class Transition:
    """What happens to systems at an event or a break."""

    def apply(self, at: Moment) -> Jump:
        """The jump of the systems that are at the moment."""
        raise NotImplementedError(f"{type(self).__name__} has no jump")

    def limit(self, at: Moment) -> Jump | None:
        """The jump of systems whose events accumulate there; None if the motion has no continuation."""
        return None

    def approach(self, at: Moment, v: np.ndarray) -> np.ndarray | None:
        """Rates (k,) at which the value of its event changes by moving with rates v (k, nv); None if it has no such."""
        return None

    def slopes(self, at: Moment, jump: Jump, limited: bool) -> np.ndarray:
        """Derivatives (k, nv + np, 1 + 2 nv + np) of the rates and parameters after a jump by `t, q, v, p` before it.

        Those by `q` are along the tangent. `limited` says that the jump is that of `limit`. A transition that has none
        raises an InputError.
        """
        raise InputError(f"derivatives of a run: {self.told} is not differentiated")

    @property
    def told(self) -> str:
        """What it is called in messages."""
        return type(self).__name__


PERIOD = 6  # events whose intervals are summed: patterns of 1, 2, 3 or 6 events that repeat are recognised
ALIKE = 0.02  # relative difference of two ratios of a geometric series
SHRINKS = 0.999  # largest ratio of two intervals of a series that converges soon enough
NEGLIGIBLE = 1e-9  # of the time since the start: less time than that left until the accumulation counts as none
AT_ONCE = 4 * float(np.finfo(float).eps)  # of the time: events this near to each other are at the same time
ROUNDING = 8 * float(np.finfo(float).eps)  # of a coordinate: an event is located some roundings past zero
MOST_AT_ONCE = 100  # jumps of a system at one time


class Accumulation:
    """Times of the jumps of B systems, and whether they accumulate; `start` is the time at which the run began, s.

    Less than the part `negligible` of the time since the start counts as none.
    """

    def __init__(self, systems: int, start: float, negligible: float = NEGLIGIBLE) -> None:
        self.start, self.negligible = start, negligible
        self.bounced: dict[int, np.ndarray] = {}  # by event, the time (B,) of the last bounce of each system
        self.times = np.full((systems, 3 * PERIOD + 1), np.nan)
        self.at_once = np.zeros(systems, dtype=int)

    def note(self, systems: np.ndarray, t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Note jumps of some systems, by their numbers (k,), at times (k,), s.

        Return which (k,) of them cannot go on, since their jumps accumulate there, and the time (k,), s, at which.
        """
        last = self.times[systems, -1]
        together = t - last <= AT_ONCE * np.maximum(np.abs(t), abs(self.start))
        self.at_once[systems] = np.where(together, self.at_once[systems] + 1, 0)
        self.times[systems] = np.concatenate([self.times[systems, 1:], t[:, None]], axis=1)
        with np.errstate(all="ignore"):
            first, second, third = np.diff(self.times[systems, ::PERIOD], axis=1).T
            ratio = third / second
            left = third * ratio / (1 - ratio)
            geometric = (np.abs(ratio - second / first) <= ALIKE * ratio) & (ratio < SHRINKS)
            found = geometric & (left <= self.negligible * (t - self.start))
        endless = self.at_once[systems] >= MOST_AT_ONCE
        return found | endless, np.where(found, t + left, t)

    def too_short(
        self, event: int, systems: np.ndarray, t: np.ndarray, before: np.ndarray, after: np.ndarray, size: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Which (k,) systems bounce for the last time at an event, by the rates (k,) of its value before and after.

        Return also the time (k,), s, that all further flights would take. A flight takes as much less time than the one
        before as the rate is lower; the first, from a start at rest, twice the time since then. It rises by a quarter
        of its rate times its time, which is seen if it is above the rounding of coordinates of the `size` (k,).
        """
        last = self.bounced.setdefault(event, np.full(len(self.times), np.nan))
        with np.errstate(all="ignore"):
            bounces, ratio = before * after < 0, np.abs(after / before)
            flight = ratio * np.where(np.isnan(last[systems]), 2 * (t - self.start), t - last[systems])
            left = flight / (1 - ratio)
            short = (left <= self.negligible * (t - self.start)) | (np.abs(after) * flight / 4 <= ROUNDING * size)
        last[systems] = np.where(bounces, t, last[systems])
        return bounces & (ratio < SHRINKS) & (flight > 0) & short, left

    def forget(self, systems: np.ndarray) -> None:
        """Begin anew with some systems, by their numbers (k,)."""
        self.times[systems], self.at_once[systems] = np.nan, 0
        for last in self.bounced.values():
            last[systems] = np.nan


def grouped(transitions: Sequence[Transition | None], crossed: np.ndarray) -> list[tuple[Transition, np.ndarray]]:
    """The transitions whose events (n, ne) were met, each once, in order, with the mask (n,) of its systems."""
    found: dict[int, tuple[Transition, np.ndarray]] = {}
    for k, transition in enumerate(transitions):
        if transition is not None and crossed[:, k].any():
            before = found.get(id(transition), (transition, np.zeros(len(crossed), dtype=bool)))[1]
            found[id(transition)] = transition, before | crossed[:, k]
    return list(found.values())
