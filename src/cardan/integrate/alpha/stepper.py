"""The stepper of the generalised-alpha method: many systems at once, in SIMD lanes and threads."""

from __future__ import annotations

from time import perf_counter
from typing import Any

import numpy as np

from cardan.errors import InputError
from cardan.formulation.formulation import Formulation
from cardan.formulation.registry import find_formulation
from cardan.integrate.alpha.kernels import STARTED, AlphaKernels
from cardan.integrate.events import Event, keep_side, locate, per_system
from cardan.integrate.layout import layout_of
from cardan.integrate.stepper import Arrival, BatchStepper, Outcome
from cardan.model.model import Model
from cardan.structure.kernels import parameter_arguments

LONGER = 10.0  # a step this many times as long as the last one cannot use its `a`


class AlphaStepper(BatchStepper):
    """Integrates a model by the generalised-alpha method, in any formulation; fills `integrate.stepper.Stepper`.

    Args:
        model: the mechanism.
        formulation: the formulation.
        tau: constant drives (B, nv) or (nv,), N m and N.
        step: length of a step, s; between two stops all steps are equal and at most this long.
        rho: spectral radius at infinite frequency, from 0 (most damping) to 1 (none).
        events: the events to look for.
        max_steps: largest number of steps.
        threads: number of threads, None for the default.

    """

    def __init__(
        self,
        model: Model,
        formulation: str | Formulation,
        tau: np.ndarray,
        *,
        step: float,
        rho: float = 0.9,
        events: tuple[Event, ...] = (),
        max_steps: int | None = None,
        threads: int | None = None,
    ) -> None:
        if not model.nv:
            raise InputError(f"model {model.name!r} has no moving joint; there is nothing to integrate")
        if not 0 <= rho <= 1:
            raise InputError(f"rho must be between 0 (most damping) and 1 (none), got {rho!r}")
        if not 0 < step < np.inf:
            raise InputError(f"step must be a positive time in s, got {step!r}")
        self.model, self.tau, self.step, self.rho = model, tau, step, np.asarray(float(rho))
        self.events, self.threads, self.max_steps = events, threads, max_steps
        self.crossed: np.ndarray | None = None
        self.parameters = parameter_arguments(model)
        self.kernels = AlphaKernels(
            model, layout_of(model, find_formulation(formulation)), events, sum(p.shape[-1] for p in self.parameters)
        )
        self.march = self.kernels.march()
        self.names = tuple(self.kernels.sizes)
        super().__init__()

    def begin(self, t: float, q: np.ndarray, v: np.ndarray) -> None:
        """Start at a state."""
        B = len(q)
        before = self.s.get("g")
        steps = self.s["steps"] if self.s else np.zeros(B)
        x, w = np.array(q, dtype=float), np.array(v, dtype=float)
        self.s = {"t": np.full(B, float(t)), "x": x, "w": w, "h": np.full(B, self.step), "steps": steps}
        self.s |= {"k": np.zeros(B), "outcome": np.zeros(B), "event": np.full(B, -1.0)}
        self.s |= {"iterate": np.zeros((B, self.kernels.sizes.get("iterate") or 0))}
        if self.resting is not None:
            self.s["outcome"][self.resting] = Outcome.RESTING
        self.s |= self._started()
        if before is not None and "g" in self.s:
            self.s["g"] = keep_side(before, self.s["g"])

    def project(self, t: np.ndarray, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the samples unchanged: each step ends on the constraints."""
        return q, v, np.zeros(t.shape, dtype=bool)

    def _advance(self, t: float) -> Arrival:
        s = self.s
        at_event = s["outcome"] == Outcome.EVENT
        if at_event.any():  # the step that ended there may have been too short to determine accelerations
            s |= {name: np.where(per_system(at_event, new), new, s[name]) for name, new in self._started().items()}
            s["outcome"] = np.where(at_event, 0.0, s["outcome"])
            s["event"] = np.full(len(at_event), -1.0)
        left = t - s["t"]
        self._change_step(left / np.maximum(np.ceil(left / self.step - 1e-6), 1.0))
        self.s = self._run(s, np.full(len(left), float(t)), True, self.tau, self.parameters)
        if (self.s["outcome"] == Outcome.EVENT).any():
            self._locate()
        s = self.s
        x, w = self._tree(s)
        outcome, event, steps = (s[name].astype(int) for name in ("outcome", "event", "steps"))
        return Arrival(s["t"].copy(), x.copy(), w.copy(), outcome, event, steps, crossed=self.crossed)

    def _change_step(self, h: np.ndarray) -> None:
        """Take steps of another length from now on; `a` is `vdot` a part of a step later, so it is adjusted too."""
        s = self.s
        ratio = h / s["h"]
        ratio = np.where(ratio < LONGER, ratio, 0.0)[:, None]  # 0: restart with a = vdot
        s["h"], s["a"] = h, s["vdot"] + ratio * (s["a"] - s["vdot"])

    def _tree(self, s: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """Coordinates and rates of the tree."""
        return (s["q"], s["v"]) if self.kernels.is_tree and "q" in s else (s["x"], s["w"])

    def _started(self) -> dict[str, np.ndarray]:
        """The parts of the state that `begin` computes, at the current states."""
        s, names = self.s, [name for name in STARTED if name in self.kernels.sizes]
        found: Any = self.kernels.begin()(s["t"], *self._tree(s), self.tau, *self.parameters)
        values = found if isinstance(found, tuple) else (found,)
        return {name: np.array(value) for name, value in zip(names, values, strict=True)}

    def _run(
        self, s: dict[str, np.ndarray], end: np.ndarray, stop_at_events: bool, tau: np.ndarray, parameters: Any
    ) -> dict[str, np.ndarray]:
        """Call the kernel until every system has arrived, stopped or failed."""
        data = (end, self.rho, np.asarray(float(stop_at_events)), tau, *parameters)
        while True:
            began = perf_counter()
            out = self.march(
                *(s[name] for name in self.names), *data, np.asarray(float(self.limit)), threads=self.threads
            )
            s = {**s, **dict(zip(self.names, out, strict=True))}
            running = (s["t"] < end) & (s["outcome"] == Outcome.ARRIVED)
            if self.max_steps is not None:
                s["outcome"] = np.where(running & (s["steps"] >= self.max_steps), Outcome.TOO_MANY_STEPS, s["outcome"])
                running &= s["outcome"] == Outcome.ARRIVED
            if not running.any():
                return s
            self._adjust_limit(perf_counter() - began)

    def _locate(self) -> None:
        """Locate the events inside the steps that crossed them; each system ends just past its earliest one."""
        s, B = self.s, len(self.s["t"])
        rows = np.flatnonzero(s["outcome"] == Outcome.EVENT)
        start = {name: s[name][rows] for name in self.names} | {"outcome": np.zeros(len(rows))}
        tau = np.broadcast_to(self.tau, (B, self.model.nv))[rows]
        parameters = [np.broadcast_to(p, (B, p.shape[-1]))[rows] for p in self.parameters]

        def at(h: np.ndarray) -> dict[str, np.ndarray]:
            return self._run({**start, "h": h}, start["t"] + h, False, tau, parameters)

        directions = np.array([event.direction for event in self.events])
        far, crossed = locate(at, start, s["h"][rows], directions)
        which = np.argmax(crossed, axis=1)
        self.crossed = np.zeros((B, len(directions)), dtype=bool)
        self.crossed[rows] = crossed
        failed = far["outcome"] != Outcome.ARRIVED
        far |= {"outcome": np.where(failed, far["outcome"], Outcome.EVENT), "event": np.where(failed, -1, which)}
        for name, value in far.items():
            s[name] = s[name].copy()
            s[name][rows] = value
