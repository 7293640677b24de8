"""What a run needs to be taken again, step by step: its derivatives are computed then."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from cardan.formulation.formulation import Formulation
from cardan.integrate.course import Sampled, changes_parameters
from cardan.integrate.inputs import GivenInput
from cardan.integrate.integrators import Integrator, Request
from cardan.model.model import Model
from cardan.results.trajectory.quantities import with_values


@dataclass(frozen=True, eq=False)
class Replay:
    """B systems from states q (B, nq), v (B, nv) under drives tau (B, nv), with parameters (B, size) or None.

    `times` are those of the samples, s; `steps` is the largest number of steps of a system; `inputs` and `sampled` are
    what changes at times that are known.
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
    inputs: tuple[GivenInput, ...] = ()
    sampled: Sampled = ()

    @property
    def changes(self) -> bool:
        """Whether free parameters may change on the way."""
        free = self.model.parameters.size > 0
        return free and changes_parameters(self.model, self.request, self.inputs, self.sampled)

    def part(self, systems: np.ndarray) -> Replay:
        """The same of some systems, by their numbers."""
        p = None if self.parameters is None else self.parameters[systems]
        inputs = tuple(replace(x, values=x.values[systems]) for x in self.inputs)
        state = {"q": self.q[systems], "v": self.v[systems], "tau": self.tau[systems]}
        return replace(self, **state, parameters=p, inputs=inputs)

    def model_at(self, systems: slice) -> Model:
        """The model with the parameters of some systems."""
        return self.model if self.parameters is None else with_values(self.model, self.parameters[systems])
