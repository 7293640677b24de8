"""Settings of the runs of a study: those arguments of `cd.simulate` that all members share."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from cardan.errors import InputError
from cardan.formulation.formulation import Formulation
from cardan.integrate.events import Event
from cardan.integrate.integrators import Integrator
from cardan.model.model import Model
from cardan.model.values import shown
from cardan.results.simulate import plan

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from cardan.structure.assemble import Start


@dataclass(frozen=True, eq=False)
class Run:
    """A run of each member of a study: the arguments of `cd.simulate` with the same meaning.

    Args:
        duration: simulated time, s.
        q0: configuration, as `cd.simulate` takes it; the members' own coordinates replace those named in the study, and
            the loops are closed from there for each member.
        v0: velocities, as `cd.simulate` takes them; at rest by default.
        tau: constant drives (nv,), N m and N.
        formulation: the formulation.
        method: the integrator.
        step: length of fixed steps, s.
        rtol: relative tolerance.
        atol: absolute tolerance.
        max_step: longest step, s.
        max_steps: stop a run after this many steps.
        samples: number of samples of each run, or their times, s. Reductions over time look at these samples.
        start: time at the start, s.
        breaks: times of discontinuities, s.
        events: events; one that stops a run is not a failure.
        inputs: values of free parameters and variables over time, by name, the same for all members.
        device: "cpu", "gpu", or "auto" for a GPU where a worker has one.
        precision: "float32" for steps of fixed length.

    """

    duration: float
    q0: Start = None
    v0: ArrayLike | Mapping[str, Any] | None = None
    tau: ArrayLike | None = None
    formulation: str | Formulation = "spatial"
    method: str | Integrator = "dormand_prince"
    step: float | None = None
    rtol: float = 1e-8
    atol: float = 1e-10
    max_step: float = np.inf
    max_steps: int | None = None
    samples: int | Sequence[float] | np.ndarray = 101
    start: float = 0.0
    breaks: Sequence[float] = ()
    events: Sequence[Event] = ()
    inputs: Mapping[str, Any] | None = None
    device: str | None = None
    precision: str = "float64"

    @property
    def settings(self) -> dict[str, Any]:
        """All that `cd.simulate` takes besides the start and the device."""
        apart = ("duration", "q0", "v0", "tau", "device")
        return {f.name: getattr(self, f.name) for f in fields(self) if f.name not in apart}

    def times(self, model: Model) -> np.ndarray:
        """Check the settings for a model; times (n,) of the samples, s."""
        if self.device is not None and not re.fullmatch(r"cpu|auto|(gpu|cuda)(:\d+)?", str(self.device)):
            raise InputError(
                f"sweep: device of a run must be 'cpu', 'gpu', 'gpu:1' or 'auto', got {shown(self.device)}"
            )
        if self.tau is not None and np.ndim(self.tau) != 1:
            raise InputError(f"sweep: tau of a run must have the shape ({model.nv},), the same for all members")
        return plan(model, self.duration, **self.settings).times
