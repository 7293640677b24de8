"""What a run needs to be taken again, step by step: its derivatives are computed then."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from cardan.formulation.formulation import Formulation
from cardan.integrate.integrators import Integrator, Request
from cardan.model.model import Model
from cardan.results.trajectory.quantities import with_values


@dataclass(frozen=True, eq=False)
class Replay:
    """B systems from states q (B, nq), v (B, nv) under drives tau (B, nv), with parameters (B, size) or None.

    `times` are those of the samples, s; `steps` is the largest number of steps of a system.
    """

    model: Model
    integrator: Integrator
    formulation: Formulation
    request: Request
    times: np.ndarray
    breaks: tuple[float, ...]
    q: np.ndarray
    v: np.ndarray
    tau: np.ndarray
    parameters: np.ndarray | None
    steps: int

    def part(self, systems: np.ndarray) -> Replay:
        """The same of some systems, by their numbers."""
        p = None if self.parameters is None else self.parameters[systems]
        return replace(self, q=self.q[systems], v=self.v[systems], tau=self.tau[systems], parameters=p)

    def model_at(self, systems: slice) -> Model:
        """The model with the parameters of some systems."""
        return self.model if self.parameters is None else with_values(self.model, self.parameters[systems])
