"""Steppers for mechanisms whose independent constraint rows change on the way (`structure.row_sets`).

One system at a time. Where another choice of rows is better, the integrator begins again with it, at the same state.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from cardan.integrate.stepper import Arrival, EnergyNotes, Outcome, Stepper
from cardan.model.model import Model
from cardan.structure.assemble import opened
from cardan.structure.kernels import parameter_arguments
from cardan.structure.projection import project
from cardan.structure.row_sets import rates_that_turn_rows, row_sets

TURN = 0.1  # rad or m: rows are looked at whenever the fastest of the coordinates that change them has moved so far


class RowChangingStepper:
    """Integrates one system, with rows that are good where it is; fills `Stepper`.

    `make` makes the integrator at work on a model with one choice of rows.
    """

    def __init__(self, model: Model, make: Callable[[Model], Stepper]) -> None:
        self.model, self.make, self.sets = model, make, row_sets(model)
        self.turning = rates_that_turn_rows(model)
        self.number, self.earlier, self.resting = -1, 0, False
        self.stepper: Stepper | None = None
        self.at: Arrival | None = None
        self.notes: EnergyNotes | None = None  # until the present stepper was made

    @property
    def parameters(self) -> tuple[np.ndarray, ...]:
        """Free parameters (1, np) of the system, where it has any."""
        return parameter_arguments(self.model)

    @property
    def states(self) -> list[int]:
        """Places of those that are integrated with the motion."""
        return list(self.model.parameters.states)

    def begin(self, t: float, q: np.ndarray, v: np.ndarray) -> None:
        """Start at a state: q (1, nq), v (1, nv), time in s."""
        best = int(self.sets.choose(self.model, q, t, max(self.number, 0))[0])
        if self.stepper is None or best != self.number:
            if self.at is not None:
                self.earlier += int(self.at.steps[0])
                self.notes = self.notes if self.at.notes is None else self.at.notes.after(self.notes)
            self.number, self.stepper = best, self.make(self._member)
            if self.resting:
                self.stepper.rest(np.array([True]))
        self.stepper.begin(t, q, v)
        none = np.zeros(1, dtype=int)
        self.at = Arrival(np.array([t]), q, v, none, none - 1, none)

    def advance(self, t: float) -> Arrival:
        """Give the system at time `t`."""
        assert self.at is not None and self.stepper is not None
        while True:
            here = float(self.at.t[0])
            speed = float(np.abs(self.at.v[:, self.turning]).max(initial=0.0))
            arrival = self.stepper.advance(min(t, here + TURN / speed) if speed > TURN / max(t - here, 1e-300) else t)
            if self.states and arrival.p is not None:
                self.model = self.model._bound(arrival.p)
            failed = Outcome.EVENT < arrival.outcome[0] != Outcome.RESTING
            if arrival.outcome[0] and not failed:
                break
            now = float(arrival.t[0])
            best = int(self.sets.choose(self.model, arrival.q, now, self.number)[0])
            if best == self.number and (failed or now >= t):
                break
            moved, self.at = now > here, arrival
            if best != self.number:
                if failed and not moved:
                    break
                self.begin(now, *self._projected(arrival))
                if now >= t:
                    arrival = replace(arrival, outcome=np.zeros(1, dtype=int))
                    break
        self.at = arrival
        q, v = self._projected(arrival)
        notes = None if arrival.notes is None else arrival.notes.after(self.notes)
        return replace(arrival, q=q, v=v, steps=arrival.steps + self.earlier, notes=notes)

    def rest(self, systems: np.ndarray) -> None:
        """From now on leave the system where it is."""
        self.resting = self.resting or bool(systems[0])
        if self.stepper is not None:
            self.stepper.rest(systems)

    def change(self, systems: np.ndarray, v: np.ndarray, p: np.ndarray) -> None:
        """Give the system other rates v (1, nv) and free parameters p (1, np)."""
        if not systems[0]:
            return
        if self.model.parameters:
            self.model = self.model._bound(p)
        if self.stepper is not None:
            self.stepper.change(systems, v, p)
        if self.at is not None:
            self.at = replace(self.at, v=v)

    def project(
        self, t: np.ndarray, q: np.ndarray, v: np.ndarray, p: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the samples as they are, each projected when it was reached; and which of them left a row open."""
        return q, v, opened(self.model, q, t, p)

    @property
    def _member(self) -> Model:
        member = self.sets.members[self.number]
        return member if self.model.values is None else member._bound(self.model.values)

    def _projected(self, arrival: Arrival) -> tuple[np.ndarray, np.ndarray]:
        p = parameter_arguments(self.model)
        q, v, gap = project(self._member, arrival.q, arrival.v, arrival.t, parameters=p)
        return (q, v) if np.isfinite(gap).all() else (arrival.q, arrival.v)
