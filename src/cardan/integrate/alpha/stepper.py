"""The stepper of the generalised-alpha method: many systems at once, in lanes and threads."""

from __future__ import annotations

from time import perf_counter
from typing import Any

import numpy as np

from cardan.errors import InputError
from cardan.integrate.alpha.kernels import STARTED, Recipe, layout_of
from cardan.integrate.crossing import locate, side_kept
from cardan.integrate.events import Event
from cardan.integrate.lanes import Lanes
from cardan.integrate.stepper import Arrival, Outcome
from cardan.model.model import Model
from cardan.structure.kernels import parameter_arguments

LONGER = 10.0  # times as long as the last step: its `a` tells nothing of one


class Alpha(Lanes):
    """Integrates a model by the generalised-alpha method, in any formulation; fills `integrate.stepper.Stepper`.

    Args:
        model: the mechanism.
        key: formulation, as `native.formulation_key` names it.
        tau: constant drives (B, nv) or (nv,), N m and N.
        step: length of a step, s; between two stops all steps are equal and at most this long.
        rho: spectral radius at infinity, from 0 (fast vibrations vanish in a step) to 1 (nothing is damped).
        events: what to look for.
        most: largest number of steps.
        threads: how many, None for the default.

    """

    def __init__(
        self,
        model: Model,
        key: str,
        tau: np.ndarray,
        *,
        step: float,
        rho: float = 0.9,
        events: tuple[Event, ...] = (),
        threads: int | None = None,
        most: int | None = None,
    ) -> None:
        if not model.nv:
            raise InputError(f"model {model.name!r} has no moving joint; there is nothing to integrate")
        if not 0 <= rho <= 1:
            raise InputError(f"rho must be between 0 (fast vibrations vanish) and 1 (none is damped), got {rho!r}")
        if not 0 < step < np.inf:
            raise InputError(f"step must be a positive time in s, got {step!r}")
        self.model, self.tau, self.step, self.rho = model, tau, step, np.asarray(float(rho))
        self.events, self.threads, self.most = events, threads, most
        self.crossed: np.ndarray | None = None
        self.parameters = parameter_arguments(model)
        self.recipe = Recipe(model, layout_of(model, key), events, sum(p.shape[-1] for p in self.parameters))
        self.march = self.recipe.march()
        self.names = tuple(self.recipe.sizes)
        super().__init__()

    def begin(self, t: float, q: np.ndarray, v: np.ndarray) -> None:
        """Start at a state."""
        B = len(q)
        before = self.s.get("g")
        steps = self.s["steps"] if self.s else np.zeros(B)
        x, w = np.array(q, dtype=float), np.array(v, dtype=float)
        self.s = {"t": np.full(B, float(t)), "x": x, "w": w, "h": np.full(B, self.step), "steps": steps}
        self.s |= {"k": np.zeros(B), "outcome": np.zeros(B), "event": np.full(B, -1.0)}
        self.s |= {"iterate": np.zeros((B, self.recipe.sizes.get("iterate") or 0))}
        if self.resting is not None:
            self.s["outcome"][self.resting] = Outcome.RESTING
        self.s |= self._started()
        if before is not None and "g" in self.s:
            self.s["g"] = side_kept(before, self.s["g"])

    def settled(self, t: np.ndarray, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The samples as they are: each step ends on the constraints."""
        return q, v, np.zeros(t.shape, dtype=bool)

    def _advance(self, t: float) -> Arrival:
        s = self.s
        at_event = s["outcome"] == Outcome.EVENT
        if at_event.any():  # the step that ended there may have been too short to tell accelerations
            s |= {name: np.where(_like(at_event, new), new, s[name]) for name, new in self._started().items()}
            s["outcome"] = np.where(at_event, 0.0, s["outcome"])
            s["event"] = np.full(len(at_event), -1.0)
        left = t - s["t"]
        self._lengthen(left / np.maximum(np.ceil(left / self.step - 1e-6), 1.0))
        self.s = self._run(s, np.full(len(left), float(t)), True, self.tau, self.parameters)
        if (self.s["outcome"] == Outcome.EVENT).any():
            self._locate()
        s = self.s
        x, w = self._tree(s)
        outcome, event, steps = (s[name].astype(int) for name in ("outcome", "event", "steps"))
        return Arrival(s["t"].copy(), x.copy(), w.copy(), outcome, event, steps, crossed=self.crossed)

    def _lengthen(self, h: np.ndarray) -> None:
        """Take steps of another length from now on: `a` is `vdot` a part of a step later, so that it changes too."""
        s = self.s
        ratio = h / s["h"]
        ratio = np.where(ratio < LONGER, ratio, 0.0)[:, None]  # else begin again
        s["h"], s["a"] = h, s["vdot"] + ratio * (s["a"] - s["vdot"])

    def _tree(self, s: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """Coordinates and rates of the tree."""
        return (s["q"], s["v"]) if self.recipe.is_tree and "q" in s else (s["x"], s["w"])

    def _started(self) -> dict[str, np.ndarray]:
        """What a march needs at the states there are."""
        s, names = self.s, [name for name in STARTED if name in self.recipe.sizes]
        found: Any = self.recipe.begin()(s["t"], *self._tree(s), self.tau, *self.parameters)
        values = found if isinstance(found, tuple) else (found,)
        return {name: np.array(value) for name, value in zip(names, values, strict=True)}

    def _run(
        self, s: dict[str, np.ndarray], end: np.ndarray, heed: bool, tau: np.ndarray, parameters: Any
    ) -> dict[str, np.ndarray]:
        """Call the kernel until every system has arrived, stopped or failed."""
        data = (end, self.rho, np.asarray(float(heed)), tau, *parameters)
        while True:
            began = perf_counter()
            out = self.march(
                *(s[name] for name in self.names), *data, np.asarray(float(self.limit)), threads=self.threads
            )
            s = {**s, **dict(zip(self.names, out, strict=True))}
            going = (s["t"] < end) & (s["outcome"] == Outcome.ARRIVED)
            if self.most is not None:
                s["outcome"] = np.where(going & (s["steps"] >= self.most), Outcome.STEPS, s["outcome"])
                going &= s["outcome"] == Outcome.ARRIVED
            if not going.any():
                return s
            self._pace(perf_counter() - began)

    def _locate(self) -> None:
        """Find the events inside the steps that met them; each system ends just past its earliest one."""
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


def _like(mask: np.ndarray, array: np.ndarray) -> np.ndarray:
    return mask.reshape(-1, *([1] * (array.ndim - 1)))
