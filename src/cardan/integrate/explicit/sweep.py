"""Derivatives of a whole run: along its tape forward with directions, or backward with weights.

A step of constant length takes (dt, dx) to (dt, x'_x dx + x'_t dt). One that ends at a fixed time has `dh = -dt`. One
that ends where an event's value `g(t, q, v, p)` vanishes has the length for which it does (saltation):

    g_t (dt + dh) + g_x (dx' + x'_h dh) + g_p dp = 0

A jump there takes `(dt, dx, dp)` to those after it, by the derivatives of what it does (`Transition.slopes`). So the
motion after it begins at another time and another state: that is the saltation matrix of hybrid systems.

Directions and weights are arrays (B, m, n): B systems, m of them for each, n numbers. Parameters that are states move
with the steps, under the name `x`; the others change at jumps only.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from cardan.errors import InputError
from cardan.integrate.explicit.derivative import BLOCK
from cardan.integrate.explicit.recording import (
    FIXED_END,
    Block,
    Jumped,
    RecordingStepper,
    Sampled,
    Started,
    Taken,
    on_host,
)
from cardan.machines.cuda.device_array import to_device
from cardan.machines.cuda.place import Place

Moving = dict[str, np.ndarray]
GRAZING = 1e-3  # of its mean rate in the step before it: an event that is met more slowly is grazed


class Sweep:
    """The derivatives of the run on a stepper's tape; `samples` is how many there are, `p` the parameters at the start.

    `changes` says whether those of parameters are asked for at the samples.
    """

    def __init__(
        self, stepper: RecordingStepper, samples: int, changes: bool = False, p: np.ndarray | None = None
    ) -> None:

        self.stepper, self.kernels, self.samples = stepper, stepper.derivatives, samples
        self.names, self.place = self.kernels.moving, self.kernels.place
        self.nv, self.threads = stepper.model.nv, stepper.threads
        self.states = stepper.states
        self.begun = next(x for x in stepper.tape if isinstance(x, Started))
        self.systems = len(self.begun.x["t"])
        given = (stepper.tau, *(() if p is None else (p,)))
        self.data = [np.array(np.broadcast_to(x, (self.systems, x.shape[-1]))) for x in given]
        self.projects = stepper.motion.projects
        self.slopes: dict[int, np.ndarray] = {}
        self.changes = changes
        self._grazed = False

    # Forward.

    def forward(self, start: Moving) -> Iterator[tuple[np.ndarray, np.ndarray, Moving]]:
        """Carry directions from the start to all samples.

        `start` has `q`, `v`, `tau` and `p` (B, m, n). The results are: systems (B,), the numbers (B,) of their samples
        and the directions `t` (B, m), `q`, `v` there, and `p` of a run that changes parameters.
        """
        B, m = start["q"].shape[:2]
        along = {"t": np.zeros((B, m)), "a": np.zeros((B, m, self.nv)), "q": start["q"], "v": start["v"]}
        self.directions = [start["tau"], *([start["p"].copy()] if len(self.data) > 1 else [])]
        if self.states:
            along["x"] = start["p"][..., self.states]
        for item in self.stepper.tape:
            if isinstance(item, Jumped):
                along = self._jump_along(item, along)
                continue
            if isinstance(item, Sampled):
                yield item.systems, item.numbers, self._sample_along(item.x, along)
                continue
            if isinstance(item, Started):
                if item is self.begun:
                    yield np.ones(B, dtype=bool), np.zeros(B, dtype=int), self._sample_along(item.x, along)
                along = self._start_along(item, along)
                continue
            steps, branch = self.stepper.steps_of(item)
            for step in _one_by_one(steps):
                along = self._step_along(step, along) if isinstance(step, Taken) else self._start_along(step, along)
            for mask, numbers in item.samples:
                there = along
                for block in branch:
                    for taken in block.steps():
                        there = self._step_along(taken, there)
                yield mask, numbers, self._sample_along(item.x, there)

    def _jump_along(self, item: Jumped, along: Moving) -> Moving:
        rows, D = item.moment.systems, self._slopes_of(item)
        free = [self.directions[1][rows]] if len(self.data) > 1 else []
        if self.states:
            free[0][..., self.states] = along["x"][rows]
        x = np.concatenate([along["t"][rows][..., None], along["q"][rows], along["v"][rows], *free], axis=-1)
        after = x @ np.swapaxes(D, 1, 2)
        along = along | {"v": along["v"].copy()}
        along["v"][rows] = after[..., : self.nv]
        if free:
            self.directions[1][rows] = after[..., self.nv :]
            self.data[1][rows] = item.jump.p
        if self.states:
            along["x"] = along["x"].copy()
            along["x"][rows] = after[..., self.nv :][..., self.states]
        return along

    def _slopes_of(self, item: Jumped) -> np.ndarray:
        """Derivatives (k, nv + np, 1 + 2 nv + np) of rates and parameters after a jump by `t, q, v, p` before it."""
        if id(item) not in self.slopes:
            self.slopes[id(item)] = item.transition.slopes(item.moment, item.jump, item.limited)
        return self.slopes[id(item)]

    def _start_along(self, item: Started, along: Moving) -> Moving:
        if "a" not in self.names:
            return along
        x, data = self._given(None, item.x)
        moving = (along[name] for name in self.place)
        a = self.kernels.pushed_start(*x, *moving, *data, *self.directions, threads=self.threads)
        return along | {"a": np.where(item.systems[:, None, None], a, along["a"])}

    def _sample_along(self, x: Moving, along: Moving) -> Moving:
        found = {name: along[name] for name in ("t", "q", "v")}
        if self.changes:
            found["p"] = self.directions[1].copy()
            if self.states:
                found["p"][..., self.states] = along["x"]
        if not self.projects:
            return found
        state, data = self._given(None, x)
        moving = (along[name] for name in self.place)
        q, v = self.kernels.pushed_sample(*state, *moving, *data, *self.directions, threads=self.threads)
        return found | {"q": q, "v": v}

    def _step_along(self, step: Taken, along: Moving) -> Moving:
        rows = step.rows
        here = along if rows is None else {name: value[rows] for name, value in along.items()}
        directions = self.directions if rows is None else [d[rows] for d in self.directions]
        dt = here["t"]
        dh = np.where((step.ends == FIXED_END)[:, None], -dt, 0.0)
        x, data = self._given(rows, step.x)
        given = (*x, step.h[:, None])
        after = dict(zip(self.names, self.kernels.pushed_step(
            *given, dt, *(here[name] for name in self.names), dh, *data, *directions, threads=self.threads
        ), strict=True)) | {"t": dt + dh}  # fmt: skip
        met = np.flatnonzero(step.ends >= 0)
        if len(met):
            g, by_length = self._at_event(step, met)
            dg = g["t"][:, None] * after["t"][met] + sum(
                (after[name][met] @ g[name][..., None])[..., 0] for name in self.place[1:]
            )
            for name, d in zip(("tau", "p"), directions, strict=False):
                dg = dg + (d[met] @ g[name][..., None])[..., 0]
            dh = -dg / g["rate"][:, None]
            after = {name: np.array(value) for name, value in after.items()}
            after["t"][met] += dh
            for name in self.names:
                after[name][met] += by_length[name][:, None] * dh[..., None]
        if rows is None:
            return along | after
        whole = {name: np.array(along[name]) for name in after}
        for name, value in after.items():
            whole[name][rows] = value
        return along | whole

    # Backward.

    def backward(self, weights: Moving) -> Moving:
        """Carry weights at the samples, `t` (B, samples), `q`, `v` (B, samples, nv), (`p`), back to the start.

        Returns weights of `q`, `v`, `tau` and, with parameters, `p` (B, n) at the start.
        """
        B = self.systems
        self.sums = [np.zeros_like(x) for x in self.data]
        for item in self.stepper.tape:  # to the parameters at the end
            if isinstance(item, Jumped) and len(self.data) > 1:
                self.data[1][item.moment.systems] = item.jump.p
        bar = {"t": np.zeros(B)} | self._none(B, self.names)
        for item in reversed(self.stepper.tape):
            if isinstance(item, Jumped):
                bar = self._jump_back(item, bar)
                continue
            if isinstance(item, Sampled):
                bar = self._joined(bar, self._sample_back(item.x, [], weights, item.systems, item.numbers))
                continue
            if isinstance(item, Started):
                bar = self._start_back(item, bar)
                if item is self.begun:
                    at_start = np.zeros(B, dtype=int)
                    own = self._sample_back(item.x, [], weights, np.ones(B, dtype=bool), at_start)
                    bar = self._joined(bar, own)
                continue
            steps, branch = self.stepper.steps_of(item)
            for mask, numbers in item.samples:
                bar = self._joined(bar, self._sample_back(item.x, branch, weights, mask, numbers))
            bar = self._steps_back(steps, bar)
        found = {"q": bar["q"], "v": bar["v"], **dict(zip(("tau", "p"), self.sums, strict=False))}
        if self.states:
            found["p"][..., self.states] = bar["x"]
        return found

    def _jump_back(self, item: Jumped, bar: Moving) -> Moving:
        rows, D, nv = item.moment.systems, self._slopes_of(item), self.nv
        bar = {name: x.copy() for name, x in bar.items()}
        free = [self.sums[1][rows]] if len(self.data) > 1 else []
        if self.states:
            free[0][:, self.states] = bar["x"][rows]
        w = np.concatenate([bar["v"][rows], *free], axis=-1)
        t, q, v, p = np.split((w[:, None, :] @ D)[:, 0], [1, 1 + nv, 1 + 2 * nv], axis=-1)
        bar["t"][rows] += t[:, 0]
        bar["q"][rows] += q
        bar["v"][rows] = v
        if free:
            self.sums[1][rows] = p
            self.data[1][rows] = item.moment.p
        if self.states:
            bar["x"][rows] = p[:, self.states]
            self.sums[1][rows[:, None], self.states] = 0.0
        return bar

    def _none(self, B: int, names: Sequence[str]) -> Moving:
        """Zeros for some of what is carried, of B systems."""
        return {name: np.zeros((B, len(self.states) if name == "x" else self.nv)) for name in names}

    def _joined(self, bar: Moving, more: Moving | None) -> Moving:
        return bar if more is None else {name: bar[name] + more[name] for name in bar}

    def _sample_back(
        self, there: Moving, branch: list[Block], weights: Moving, mask: np.ndarray, numbers: np.ndarray
    ) -> Moving | None:
        """Weights at the state from which a branch of steps leads `there`, of those of a sample; None if zero."""
        rows, numbers = np.arange(self.systems), np.minimum(numbers, self.samples - 1)  # of those in the mask
        w = {name: np.where(_like(mask, x[rows, numbers]), x[rows, numbers], 0.0) for name, x in weights.items()}
        if not any(x.any() for x in w.values()):
            return None
        free = w.pop("p", None)
        if self.projects:
            x = [there[name] for name in self.place]
            found = self.kernels.pulled_sample(*x, w["q"], w["v"], *self.data, *self.sums, threads=self.threads)
            self.sums = list(found[len(self.place) :])
            w = dict(zip(self.place, found, strict=False)) | {"t": w["t"] + found[0]}
        w = self._none(self.systems, self.names) | w
        if free is not None:
            held = np.ones(free.shape[-1], dtype=bool)
            held[self.states] = False
            self.sums[1] = self.sums[1] + free * held
            if self.states:
                w["x"] = w["x"] + free[:, self.states]
        return self._steps_back(branch, w)

    def _steps_back(self, steps: list[Any], bar: Moving) -> Moving:
        """Back through some steps. Without events the times are fixed, and whole blocks are followed in one call."""
        for step in reversed(steps if not self.stepper.events else [*_one_by_one(steps)]):
            if isinstance(step, Block):
                bar = self._block_back(step, bar)
            else:
                bar = self._from_card(bar)
                bar = self._step_back(step, bar) if isinstance(step, Taken) else self._start_back(step, bar)
        return self._from_card(bar)

    def _block_back(self, block: Block, bar: Moving) -> Moving:
        w = [bar[name] for name in self.names]
        zero, count, limit = np.zeros(self.systems), block.count.astype(float), np.asarray(float(BLOCK))
        given: list[Any] = [*w, *self.sums, zero, count, block.X, *self.data]
        if isinstance(self.threads, Place):  # where the weights stay until the next sample
            card = self.threads.card
            given = [to_device(x, card) if isinstance(x, np.ndarray) else x for x in given]
        found = self.kernels.pulled_block(*given, limit, threads=self.threads)
        n = len(self.names)
        self.sums = list(found[n:-1])
        return bar | dict(zip(self.names, found[:n], strict=True))

    def _from_card(self, bar: Moving) -> Moving:
        """The weights and sums, which may be on a card, in the host's memory."""
        self.sums = [on_host(x) for x in self.sums]
        return {name: on_host(x) for name, x in bar.items()}

    def _start_back(self, item: Started, bar: Moving) -> Moving:
        if "a" not in self.names or not bar["a"].any():
            return bar
        x = [item.x[name] for name in self.place]
        began = item.systems[:, None]
        w, rest = np.where(began, bar["a"], 0.0), np.where(began, 0.0, bar["a"])
        found = self.kernels.pulled_start(*x, w, *self.data, *self.sums, threads=self.threads)
        self.sums = list(found[len(self.place) :])
        return {name: bar[name] + more for name, more in zip(self.place, found, strict=False)} | {"a": rest}

    def _step_back(self, step: Taken, bar: Moving) -> Moving:
        rows = step.rows
        here = bar if rows is None else {name: value[rows] for name, value in bar.items()}
        data, sums = (x if rows is None else [y[rows] for y in x] for x in (self.data, self.sums))
        w = {name: here[name] for name in self.names}
        met = np.flatnonzero(step.ends >= 0)
        wt = np.where(step.ends == FIXED_END, 0.0, here["t"])
        if len(met):
            g, by_length = self._at_event(step, met)
            w, wt = {name: np.array(value) for name, value in w.items()}, np.array(wt)
            along = wt[met] + sum((w[name][met] * by_length[name]).sum(axis=-1) for name in self.names)
            mu = -along / g["rate"]
            wt[met] += mu * g["t"]
            for name in self.place[1:]:
                w[name][met] += mu[:, None] * g[name]
            sums = [np.array(x) for x in sums]
            for name, total in zip(("tau", "p"), sums, strict=False):
                total[met] += mu[:, None] * g[name]
        t, *found, wh = self._pulled(step, w, data, sums, rows)
        after = dict(zip(self.names, found, strict=True))
        after["t"] = wt + t - np.where(step.ends == FIXED_END, wh, 0.0)
        if rows is None:
            return after
        whole = {name: np.array(value) for name, value in bar.items()}
        for name, value in after.items():
            whole[name][rows] = value
        return whole

    def _pulled(
        self, step: Taken, w: Moving, data: list[np.ndarray], sums: list[np.ndarray], rows: np.ndarray | None
    ) -> list[np.ndarray]:
        x = [step.x[name] for name in ("t", *self.names)]
        found = self.kernels.pulled_step(*x, step.h, *w.values(), *data, *sums, threads=self.threads)
        n = len(found) - len(sums)
        if rows is None:
            self.sums = list(found[n:])
        else:
            for total, part in zip(self.sums, found[n:], strict=True):
                total[rows] = part
        return list(found[:n])

    # Both.

    def _given(self, rows: np.ndarray | None, x: Moving) -> tuple[list[Any], list[Any]]:
        """State and data with an axis for directions."""
        data = self.data if rows is None else [y[rows] for y in self.data]
        return [y[:, None] for y in x.values()], [y[:, None, :] for y in data]

    def _at_event(self, step: Taken, met: np.ndarray) -> tuple[Moving, Moving]:
        """Where some systems `met` an event: derivatives of its value, and of the state by the length of the step.

        `g["rate"]` is the rate of the event's value along the motion.
        """
        rows = met if step.rows is None else step.rows[met]
        x, data = [step.x[name][met] for name in ("t", *self.names)], [y[rows] for y in self.data]
        still = [np.zeros(len(met)), *self._none(len(met), self.names).values()]
        none = [np.zeros_like(y) for y in data]
        h = step.h[met]
        by_length = dict(zip(self.names, self.kernels.pushed_step(
            *x, h, *still, np.ones(len(met)), *data, *none, threads=self.threads
        ), strict=True))  # fmt: skip
        there = self.kernels.ended_step(*x, h, *data, threads=self.threads)
        names, each = ("", *self.place, "tau", "p"), np.arange(len(met))
        before, found = (
            self.kernels.event_rates(*place, *data, threads=self.threads)
            for place in (x[: len(self.place)], (x[0] + h, *there))
        )
        g = {name: value[each, step.ends[met]] for name, value in zip(names, found, strict=False)}
        g["rate"] = g["t"] + sum((g[name] * by_length[name]).sum(axis=-1) for name in self.place[1:])
        self._warn_of_grazing(x[0] + h, step.ends[met], g["rate"], (before[0] / h[:, None])[each, step.ends[met]])
        return g, by_length

    def _warn_of_grazing(self, t: np.ndarray, events: np.ndarray, rate: np.ndarray, mean: np.ndarray) -> None:
        """Refuse events whose value does not change where they are met, and warn of those where it hardly does."""
        slow = np.flatnonzero(~(np.abs(rate) > GRAZING * np.abs(mean)))
        if not len(slow):
            return
        k = int(slow[0])
        where = f"event {self.stepper.events[int(events[k])].name!r} at t = {t[k]:.6g} s"
        if not (np.isfinite(rate[k]) and rate[k] != 0.0):
            raise InputError(
                f"derivatives of a run: {where} is grazed: its value does not change there, and the time at which it "
                "is met has no derivative"
            )
        if not self._grazed:
            self._grazed = True
            warnings.warn(
                f"derivatives of a run: {where} is grazed: its value changes by {rate[k]:.3g} in a second there, and "
                "the derivatives hold for tiny changes only, beyond which the event is not met",
                RuntimeWarning,
                stacklevel=2,
            )


def _one_by_one(steps: list[Any]) -> Iterator[Taken | Started]:
    """The steps with those of blocks one after the other."""
    for step in steps:
        if isinstance(step, Block):
            yield from step.steps()
        else:
            yield step


def _like(mask: np.ndarray, x: np.ndarray) -> np.ndarray:
    """A mask (B,) that broadcasts against x (B, ...)."""
    return mask.reshape(-1, *([1] * (x.ndim - 1)))
