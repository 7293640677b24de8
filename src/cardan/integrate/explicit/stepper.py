"""The stepper of the explicit integrators: many systems at once, in SIMD lanes and threads."""

from __future__ import annotations

from time import perf_counter
from typing import Any

import numpy as np

from cardan.integrate.events import Event, keep_side, locate
from cardan.integrate.explicit.kernels import explicit_kernels
from cardan.integrate.explicit.motion import ExplicitEquations
from cardan.integrate.explicit.step import STATE
from cardan.integrate.explicit.tableau import Tableau
from cardan.integrate.stepper import Arrival, BatchStepper, Outcome
from cardan.structure.kernels import parameter_arguments, tree_kernel
from cardan.structure.projection import project

OPEN = 1e-6  # m or rad: a larger gap before the last iteration means that they did not converge


class ExplicitStepper(BatchStepper):
    """Integrates a model by an explicit method; fills `integrate.stepper.Stepper`.

    Args:
        motion: the equations of motion.
        tableau: coefficients of the method.
        tau: constant drives (B, nv) or (nv,), N m and N.
        step: length of a fixed step, s; for an adaptive method the first step, None to choose it.
        rtol, atol: tolerances of an adaptive method.
        max_step: longest step, s.
        events: the events to look for.
        max_steps: largest number of steps.
        threads: number of threads, None for the default.

    """

    def __init__(
        self,
        motion: ExplicitEquations,
        tableau: Tableau,
        tau: np.ndarray,
        *,
        step: float | None,
        rtol: float = 1e-8,
        atol: float = 1e-10,
        max_step: float = np.inf,
        events: tuple[Event, ...] = (),
        max_steps: int | None = None,
        threads: int | None = None,
    ) -> None:
        self.tableau, self.motion, self.events, self.max_steps = tableau, motion, events, max_steps
        self.crossed: np.ndarray | None = None
        self.parameters = parameter_arguments(motion.model)
        self.kernels = explicit_kernels(motion, tableau, events)
        self.tau, self.step, self.threads = tau, step, threads
        self.control = tuple(np.asarray(x, dtype=float) for x in (rtol, atol, max_step))
        self.march = self.kernels.march
        super().__init__()

    def begin(self, t: float, q: np.ndarray, v: np.ndarray) -> None:
        """Start at a state."""
        B = len(q)
        before = self.s.get("g")
        steps = self.s["steps"] if self.s else np.zeros(B)
        h = self.s["h"] if self.s else np.full(B, 0.0 if self.step is None else self.step)
        flat = {name: np.zeros(B) for name in ("e", "outcome")}
        self.s = {"t": np.full(B, float(t)), "q": np.array(q, dtype=float), "v": np.array(v, dtype=float), "h": h}
        self.s |= {**flat, "steps": steps, "event": np.full(B, -1.0)}
        if self.resting is not None:
            self.s["outcome"][self.resting] = Outcome.RESTING
        self._evaluate()
        if before is not None:
            self.s["g"] = keep_side(before, self.s["g"])
        if self.tableau.adaptive and self.step is None:
            self.s["h"] = self._first_step()

    def _advance(self, t: float) -> Arrival:
        s = self.s
        at_event = s["outcome"] == Outcome.EVENT
        if at_event.any():
            s["outcome"] = np.where(at_event, 0.0, s["outcome"])
            s["event"] = np.full(len(at_event), -1.0)
            self._evaluate()
        if not self.tableau.adaptive:
            assert self.step is not None
            left = t - s["t"]
            s["h"] = left / np.maximum(np.ceil(left / self.step - 1e-6), 1.0)
        self._run(t)
        if self.events and (self.s["outcome"] == Outcome.EVENT).any():
            self._locate()
        s = self.s
        return Arrival(
            s["t"].copy(),
            s["q"].copy(),
            s["v"].copy(),
            s["outcome"].astype(int),
            s["event"].astype(int),
            s["steps"].astype(int),
            crossed=self.crossed,
        )

    def _run(self, t: float) -> None:
        """Call the kernel until every system has arrived, stopped or failed."""
        names = STATE if self.events else STATE[:-1]
        end = np.asarray(float(t))
        while True:
            began = perf_counter()
            state = [self.s[name] for name in names]
            limit = self.limit if self.max_steps is None else min(self.limit, self._steps_left())
            out = self.march(
                *state, end, *self.control, self.tau, *self.parameters, np.asarray(float(limit)), threads=self.threads
            )
            self.s = dict(zip(names, out, strict=True))
            running = (self.s["t"] < t) & (self.s["outcome"] == 0)
            if self.max_steps is not None and running.any():
                spent = running & (self.s["steps"] >= self.max_steps)
                self.s["outcome"] = np.where(spent, Outcome.TOO_MANY_STEPS, self.s["outcome"])
                running &= ~spent
            if not running.any():
                return
            self._adjust_limit(perf_counter() - began)

    def _steps_left(self) -> int:
        """How many steps every running system may still take."""
        assert self.max_steps is not None
        return max(int(self.max_steps - self.s["steps"][self.s["outcome"] == 0].max(initial=0)), 1)

    def _evaluate(self) -> None:
        """Accelerations and values of the events at the current state."""
        s = self.s
        found: Any = self.kernels.evaluate(s["t"], s["q"], s["v"], self.tau, *self.parameters)
        a, *g = found if self.events else (found,)
        if self.motion.looped:
            a = tree_kernel(self.motion.model, "forward_dynamics")(s["q"], s["v"], self.tau)
        s["a"] = np.array(a)
        if g:
            s["g"] = np.array(g[0])

    def _first_step(self) -> np.ndarray:
        """A cautious length (B,) of the first step: a hundredth of the state divided by its rate of change."""
        rtol, atol, max_step = self.control
        s = self.s
        y = np.concatenate([s["q"], s["v"]], axis=1)
        rate = np.concatenate([s["v"], s["a"]], axis=1)
        d0 = np.sqrt(np.mean((y / (atol + rtol * np.abs(y))) ** 2, axis=1))
        scale = atol + rtol * np.maximum(np.abs(rate), 1.0)
        d1 = np.sqrt(np.mean((rate / scale) ** 2, axis=1))
        h = np.where((d0 < 1e-5) | (d1 < 1e-5), 1e-6, 0.01 * d0 / np.maximum(d1, 1e-300))
        return np.minimum(np.clip(np.nan_to_num(h, nan=1e-6), 1e-6, 0.1), max_step)

    def project(self, t: np.ndarray, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Project samples at times (B, n) by Newton's method, all at once; also return which (B, n) stayed open."""
        if not self.motion.projects:
            return q, v, np.zeros(t.shape, dtype=bool)
        parameters = [p[..., None, :] for p in self.parameters]
        q, v, gap = project(self.motion.model, q, v, t, parameters=parameters, threads=self.threads)
        return q, v, gap >= OPEN

    def _locate(self) -> None:
        """Locate the events inside the steps that crossed them; each system ends just past its earliest one."""
        s = self.s
        rows = np.flatnonzero(s["outcome"] == Outcome.EVENT)
        directions = np.array([event.direction for event in self.events])
        start = {name: s[name][rows] for name in ("t", "q", "v", "a", "g")}
        tau = np.broadcast_to(self.tau, (len(s["t"]), self.motion.model.nv))[rows]
        parameters = [np.broadcast_to(p, (len(s["t"]), p.shape[-1]))[rows] for p in self.parameters]
        single_step, one = self.kernels.single_step, np.asarray(1.0)

        def at(h: np.ndarray) -> dict[str, np.ndarray]:
            out = single_step(*start.values(), h, tau, *parameters, one)
            return dict(zip(start, out, strict=True))

        far, crossed = locate(at, start, s["h"][rows], directions)
        self.crossed = np.zeros((len(s["t"]), len(directions)), dtype=bool)
        self.crossed[rows] = crossed
        for name, value in {**far, "event": np.argmax(crossed, axis=1)}.items():
            s[name] = s[name].copy()
            s[name][rows] = value
