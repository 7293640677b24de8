"""Derivatives of a whole run: along its tape forward with directions, or backward with weights.

A step of constant length takes (dt, dx) to (dt, x'_x dx + x'_t dt). One that ends at a fixed time has `dh = -dt`. One
that ends where an event's value `g(t, q, v, p)` vanishes has the length for which it does (saltation):

    g_t (dt + dh) + g_x (dx' + x'_h dh) + g_p dp = 0

Directions and weights are arrays (B, m, n): B systems, m of them for each, n numbers.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from cardan.integrate.explicit.derivative import BLOCK
from cardan.integrate.explicit.recording import FIXED_END, Block, Leg, RecordingStepper, Started, Taken, on_host
from cardan.machines.cuda.device_array import to_device
from cardan.machines.cuda.place import Place

Moving = dict[str, np.ndarray]


class Sweep:
    """The derivatives of the run on a stepper's tape; `samples` is how many there are, `p` its parameters."""

    def __init__(self, stepper: RecordingStepper, samples: int) -> None:
        self.stepper, self.kernels, self.samples = stepper, stepper.derivatives, samples
        self.names = self.kernels.moving
        self.nv, self.threads = stepper.model.nv, stepper.threads
        started = next(x for x in stepper.tape if isinstance(x, Started))
        self.systems = len(started.x["t"])
        given = (stepper.tau, *stepper.parameters)
        self.data = [np.broadcast_to(x, (self.systems, x.shape[-1])) for x in given]
        self.projects = stepper.motion.projects

    # Forward.

    def forward(self, start: Moving) -> Iterator[tuple[np.ndarray, np.ndarray, Moving]]:
        """Carry directions from the start to all samples.

        `start` has `q`, `v`, `tau` and `p` (B, m, n). The results are: systems (B,), the numbers (B,) of their samples
        and the directions `t` (B, m), `q`, `v` there.
        """
        B, m = start["q"].shape[:2]
        along = {"t": np.zeros((B, m)), "a": np.zeros((B, m, self.nv)), "q": start["q"], "v": start["v"]}
        self.directions = [start["tau"], *([start["p"]] if len(self.data) > 1 else [])]
        first = True
        for item in self.stepper.tape:
            if isinstance(item, Started):
                if first:
                    yield np.ones(B, dtype=bool), np.zeros(B, dtype=int), self._sample_along(item.x, along)
                    first = False
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

    def _start_along(self, item: Started, along: Moving) -> Moving:
        if "a" not in self.names:
            return along
        x, data = self._given(None, item.x)
        a = self.kernels.pushed_start(
            *x, along["t"], along["q"], along["v"], *data, *self.directions, threads=self.threads
        )
        return along | {"a": np.where(item.systems[:, None, None], a, along["a"])}

    def _sample_along(self, x: Moving, along: Moving) -> Moving:
        if not self.projects:
            return along
        state, data = self._given(None, x)
        q, v = self.kernels.pushed_sample(
            *state, along["t"], along["q"], along["v"], *data, *self.directions, threads=self.threads
        )
        return {"t": along["t"], "q": q, "v": v}

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
                (after[name][met] @ g[name][..., None])[..., 0] for name in ("q", "v")
            )
            if len(self.data) > 1:
                dg = dg + (directions[1][met] @ g["p"][..., None])[..., 0]
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
        """Carry weights at the samples, `t` (B, samples), `q`, `v` (B, samples, nv), back to the start.

        Returns weights of `q`, `v`, `tau` and, with parameters, `p` (B, n) at the start.
        """
        B = self.systems
        self.sums = [np.zeros_like(x) for x in self.data]
        bar = self._none(B)
        for item in reversed(self.stepper.tape):
            if isinstance(item, Started):
                bar = self._start_back(item, bar)
                last = item
                continue
            steps, branch = self.stepper.steps_of(item)
            for mask, numbers in item.samples:
                bar = self._joined(bar, self._sample_back(item, branch, weights, mask, numbers))
            bar = self._steps_back(steps, bar)
        at_start = np.zeros(B, dtype=int)
        own = self._sample_back(Leg(0.0, (), x=last.x), [], weights, np.ones(B, dtype=bool), at_start)
        bar = self._joined(bar, own)
        return {"q": bar["q"], "v": bar["v"], **dict(zip(("tau", "p"), self.sums, strict=False))}

    def _none(self, B: int) -> Moving:
        return {"t": np.zeros(B)} | {name: np.zeros((B, self.nv)) for name in self.names}

    def _joined(self, bar: Moving, more: Moving | None) -> Moving:
        return bar if more is None else {name: bar[name] + more[name] for name in bar}

    def _sample_back(
        self, leg: Leg, branch: list[Block], weights: Moving, mask: np.ndarray, numbers: np.ndarray
    ) -> Moving | None:
        """Weights at the state that a leg's steps lead to, of those of a sample; None if they are zero."""
        rows, numbers = np.arange(self.systems), np.minimum(numbers, self.samples - 1)  # of those in the mask
        w = {name: np.where(_like(mask, x[rows, numbers]), x[rows, numbers], 0.0) for name, x in weights.items()}
        if not any(x.any() for x in w.values()):
            return None
        if self.projects:
            x = [leg.x[name] for name in ("t", "q", "v")]
            t, q, v, *self.sums = self.kernels.pulled_sample(
                *x, w["q"], w["v"], *self.data, *self.sums, threads=self.threads
            )
            w = {"t": w["t"] + t, "q": q, "v": v}
        w = self._none(self.systems) | w
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
        x = [item.x[name] for name in ("t", "q", "v")]
        began = item.systems[:, None]
        w, rest = np.where(began, bar["a"], 0.0), np.where(began, 0.0, bar["a"])
        t, q, v, *self.sums = self.kernels.pulled_start(*x, w, *self.data, *self.sums, threads=self.threads)
        return {"t": bar["t"] + t, "q": bar["q"] + q, "v": bar["v"] + v, "a": rest}

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
            for name in ("q", "v"):
                w[name][met] += mu[:, None] * g[name]
            if len(sums) > 1:
                sums = [sums[0], np.array(sums[1])]
                sums[1][met] += mu[:, None] * g["p"]
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
        still = [np.zeros(len(met)), *(np.zeros((len(met), self.nv)) for _ in self.names)]
        none = [np.zeros_like(y) for y in data]
        h = step.h[met]
        by_length = dict(zip(self.names, self.kernels.pushed_step(
            *x, h, *still, np.ones(len(met)), *data, *none, threads=self.threads
        ), strict=True))  # fmt: skip
        q, v = self.kernels.ended_step(*x, h, *data, threads=self.threads)
        names = ("t", "q", "v", *(["p"] if len(data) > 1 else []))
        found = self.kernels.event_rates(x[0] + h, q, v, *data[1:], threads=self.threads)
        each = np.arange(len(met))
        g = {name: value[each, step.ends[met]] for name, value in zip(names, found, strict=True)}
        g["rate"] = g["t"] + sum((g[name] * by_length[name]).sum(axis=-1) for name in ("q", "v"))
        return g, by_length


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
