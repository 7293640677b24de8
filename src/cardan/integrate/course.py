"""What changes on the way of a run: at its events, and at times that are known beforehand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cardan.formulation.formulation import Formulation
from cardan.integrate.changes import transition_of
from cardan.integrate.driver import inner_breaks
from cardan.integrate.inputs import GivenInput
from cardan.integrate.integrators import Integrator, Request
from cardan.integrate.modes.events import LawEvent
from cardan.integrate.modes.transition import LawTransition, Then
from cardan.integrate.transition import NEGLIGIBLE, Transition
from cardan.model.model import Model
from cardan.model.modes import has_modes
from cardan.structure.law_state import NEWTON, GapError

UNSEEN = 100.0  # tolerances: multistep methods pass over flights that take this part of the time
Sampled = tuple[tuple[np.ndarray, Transition], ...]
"""Times, s, and changes of sampled variables."""


def changes_parameters(model: Model, request: Request, inputs: Sequence[GivenInput], sampled: Sampled) -> bool:
    """Whether rates or free parameters may change during a run other than by its motion."""
    by_events = any(event.action == "change" for event in request.events)
    return by_events or bool(inputs or sampled or model.parameters.states or model.laws)


@dataclass(frozen=True)
class Course:
    """`transitions` of the events, None of one that changes nothing; `updates` at times; which events `stops` a run.

    `negligible` is the part of the time since the start that bounces which accumulate may leave out.
    """

    transitions: tuple[Transition | None, ...]
    updates: tuple[tuple[Sequence[float], Transition], ...]
    stops: tuple[bool, ...]
    negligible: float

    @property
    def arguments(self) -> dict[str, Any]:
        """Arguments of `drive`."""
        return vars(self)


def course_of(
    model: Model, formulation: Formulation, integrator: Integrator, request: Request, tau: np.ndarray,
    times: np.ndarray, breaks: Sequence[float], inputs: Sequence[GivenInput], sampled: Sampled,
) -> Course:  # fmt: skip
    """What changes in a run of systems with drives tau (B, nv); `inputs` have their values over time."""
    start, end = float(times[0]), float(times[-1])
    found: list[Transition | None] = [
        None if isinstance(event, LawEvent) else transition_of(model, event) for event in request.events
    ]
    updates: list[tuple[Sequence[float], Transition]] = [
        ([start, *x.times[(x.times > start) & (x.times < end)].tolist()], x) for x in inputs
    ]
    updates += [(at[at < end].tolist(), transition) for at, transition in sampled]
    if has_modes(model):
        rule = getattr(integrator, "impact", None) or NEWTON
        step = None if integrator.chooses_steps else request.step
        error = GapError() if integrator.falls_exactly else GapError(request.rtol, request.atol)
        laws = LawTransition(model, formulation, tau, rule, step, error)
        found = [laws if own is None else Then(own, laws) for own in found]
        updates.append(((start, *inner_breaks(times, breaks)), laws))
    negligible = NEGLIGIBLE if integrator.falls_exactly else max(NEGLIGIBLE, UNSEEN * request.rtol)
    return Course(tuple(found), tuple(updates), tuple(event.action == "stop" for event in request.events), negligible)
