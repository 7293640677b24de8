"""Gear's method beside singular positions, which it hands to careful explicit steps (docs/decisions/0027).

Near a singular position Newton's method leaves errors across the constraints that the velocities magnify, and energy is
lost. So a system is stopped where its constraint rows come near to depending on one another, passes the position by
careful steps of Dormand and Prince's method, and begins again behind it.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from cardan.formulation.formulation import Formulation
from cardan.integrate.explicit.step import NEARLY_DEPENDENT, equations_of
from cardan.integrate.explicit.stepper import ExplicitStepper
from cardan.integrate.explicit.tableau import DORMAND_PRINCE
from cardan.integrate.integrators import Request
from cardan.integrate.stepper import Arrival, EnergyNotes, Stepper
from cardan.model.model import Model
from cardan.structure.kernels import parameter_arguments
from cardan.structure.projection import independence

FAR = 4.0  # times the independence at which careful steps begin: where they end
REACH = 0.3  # rad or m, times the root of the independence: so far a singular position is at least
SHORTEST = 0.02  # rad or m: rows are not looked at more often


class PassingStepper:
    """Integrates one system by another stepper, except near singular positions; fills `Stepper`."""

    def __init__(
        self, model: Model, formulation: Formulation, request: Request, tau: np.ndarray, stepper: Stepper
    ) -> None:
        self.model, self.request = model, replace(request, step=None)
        self.usual, self.tau, self.formulation = stepper, tau, formulation
        self.careful: ExplicitStepper | None = None
        self.near = False
        # of the two steppers, by whether it is near
        self.steps: dict[bool, int] = {False: 0, True: 0}
        self.notes: dict[bool, EnergyNotes | None] = {False: None, True: None}
        self.at: Arrival | None = None

    @property
    def parameters(self) -> tuple[np.ndarray, ...]:
        """Free parameters (1, np) of the system, where it has any."""
        return parameter_arguments(self.model)

    @property
    def states(self) -> list[int]:
        """Places of those that are integrated with the motion."""
        return list(self.model.parameters.states)

    @property
    def _stepper(self) -> Stepper:
        if not self.near:
            return self.usual
        if self.careful is None:
            motion = replace(equations_of(self.model, self.formulation), careful=True)
            self.careful = ExplicitStepper(motion, DORMAND_PRINCE, self.tau, self.request)
        return self.careful

    def begin(self, t: float, q: np.ndarray, v: np.ndarray) -> None:
        """Start at a state: q (1, nq), v (1, nv), time in s."""
        self.near = self._independence(t, q) < NEARLY_DEPENDENT
        self._begin(t, q, v)

    def _begin(self, t: float, q: np.ndarray, v: np.ndarray) -> None:
        """Start with the stepper that is right there."""
        self._stepper.begin(t, q, v)
        none = np.zeros(1, dtype=int)
        self.at = Arrival(np.array([t]), q, v, none, none - 1, none)

    def advance(self, t: float) -> Arrival:
        """Give the system at time `t`."""
        assert self.at is not None
        while True:
            here, speed = float(self.at.t[0]), float(np.abs(self.at.v).max(initial=0.0))
            free = self._independence(here, self.at.q)
            reach = max(REACH * np.sqrt(max(free, 0.0)), SHORTEST)
            stop = here + reach / speed if speed * (t - here) > reach else t
            arrival = self._stepper.advance(min(stop, t))
            self.steps[self.near], self.notes[self.near] = int(arrival.steps[0]), arrival.notes
            if arrival.outcome[0] or float(arrival.t[0]) >= t:
                break
            self.at = arrival
            free = self._independence(float(arrival.t[0]), arrival.q)
            near = free < NEARLY_DEPENDENT * (FAR if self.near else 1.0)
            if near != self.near:
                self.near = near
                if arrival.p is not None and self.states:  # what the other one integrated
                    self._stepper.change(np.array([True]), arrival.v, arrival.p)
                self._begin(float(arrival.t[0]), arrival.q, arrival.v)
        self.at = arrival
        usual, careful = self.notes[False], self.notes[True]
        notes = careful if usual is None else usual.after(careful)
        return replace(arrival, steps=np.array([sum(self.steps.values())]), notes=notes)

    def rest(self, systems: np.ndarray) -> None:
        """From now on leave the system where it is."""
        self.usual.rest(systems)
        if self.careful is not None:
            self.careful.rest(systems)

    def change(self, systems: np.ndarray, v: np.ndarray, p: np.ndarray) -> None:
        """Give the system other rates v (1, nv) and free parameters p (1, np)."""
        if not systems[0]:
            return
        if self.model.parameters:
            self.model = self.model._bound(p)
        for stepper in (self.usual, self.careful):
            if stepper is not None:
                stepper.change(systems, v, p)
        if self.at is not None:
            self.at = replace(self.at, v=v)

    def project(
        self, t: np.ndarray, q: np.ndarray, v: np.ndarray, p: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Project samples (1, n, ...)."""
        if self.careful is None:
            return self.usual.project(t, q, v, p)
        return self.careful.project(t, q, v, p)

    def _independence(self, t: float, q: np.ndarray) -> float:
        return float(independence(self.model, q[0], t, parameter_arguments(self.model)))
