"""Events at which rows with laws leave their modes, one for each row, beside those of the user."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cardan.algebra.matrix import Matrix, Scalar
from cardan.formulation.formulation import Formulation
from cardan.formulation.law_quantities import law_events
from cardan.integrate.events import Event, trace_events
from cardan.model.model import Model
from cardan.model.modes import has_modes
from cardan.structure.kernels import function_of


@dataclass(frozen=True)
class LawEvent(Event):
    """A row of a model with modes leaves its mode: its value falls through zero (`formulation.modes.law_values`)."""

    turns_back = False  # values are above zero when a system goes on

    def __post_init__(self) -> None:
        """Its name is that of the row."""


def with_law_events(model: Model, events: Sequence[Event]) -> tuple[Event, ...]:
    """The user's events, then those of the rows with laws."""
    if not has_modes(model):
        return tuple(events)
    return (*events, *(LawEvent(row.name, _none, "record", -1) for row in model.lawful_rows))


def keeps_side(events: Sequence[Event]) -> np.ndarray:
    """Which events (ne,) have a value that is not zero when a system goes on from them."""
    return np.array([not event.turns_back for event in events], dtype=bool)


def users_events(events: Sequence[Event]) -> tuple[Event, ...]:
    """The events of the user alone."""
    return tuple(event for event in events if not isinstance(event, LawEvent))


def event_values(
    model: Model, formulation: Formulation, rows: Sequence[int], events: Sequence[Event], t: Scalar, q: Matrix,
    v: Matrix, tau: Matrix | None, parameters: Sequence[Matrix],
) -> Any:  # fmt: skip
    """Values (ne,) of all events as a graph."""
    import casadi as ca

    own = users_events(events)
    values = trace_events(model, own)(t, q, v, tau, *parameters) if own else ca.SX(0, 1)
    if len(own) == len(events):
        return values
    graph = function_of(model, law_events(model, formulation, rows))
    time = (t,) if model.depends_on_time else ()
    return ca.vertcat(values, graph(q, v, tau, *time, *parameters))


def event_graph(model: Model, formulation: Formulation, rows: Sequence[int], events: Sequence[Event]) -> Any:
    """CasADi function `(t, q, v, tau, p) -> g` (ne,) of all events; a model without free parameters has no `p`."""
    import casadi as ca

    t, q, v, tau = ca.SX.sym("t"), ca.SX.sym("q", model.nq), ca.SX.sym("v", model.nv), ca.SX.sym("tau", model.nv)
    p = [ca.SX.sym("p", model.parameters.size)] if model.parameters else []
    return ca.Function("events", [t, q, v, tau, *p], [event_values(model, formulation, rows, events, t, q, v, tau, p)])


def _none(instant: Any) -> Any:
    """The value of such an event is not a function of the instant alone."""
    raise NotImplementedError("an event of a row with a law has no expression")
