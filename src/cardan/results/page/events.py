"""Events that change a run, in its page: where they are met, and what they change, as programs.

The march of the page then has the events of the run, and two more kinds of programs:

    locate    from the start of a step with an event in it to just past the event (`integrate.explicit`)
    change k  rates and parameters after event k, from the state and the parameters there

`data/page/simulator.js` calls them as the driver of a run does.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

from cardan.integrate.changes import trace_change
from cardan.integrate.events import BISECTIONS, Event
from cardan.integrate.explicit.stepper import ExplicitKernels
from cardan.model.model import Model
from cardan.model.modes import CLOSED, is_switched
from cardan.program.program import Port, Program
from cardan.results.trajectory.trajectory import Trajectory

CALL = (
    "This page shows the run and does not simulate: what event {name!r} changes is plain Python, which a browser "
    "does not run. With then= in place of call= it would be simulated."
)
SHARED = (
    "This page shows the run and does not simulate: event {name!r} changes rates, which loops and couplings share by "
    "an impulse; a page has no such impulses."
)
FORGOTTEN = (
    "This page shows the run and does not simulate: event {name!r} changed it, and a run from a file does not know "
    "how. The page of the run before it was saved simulates."
)
ACCUMULATE = "Stopped: infinitely many events before a finite time."


def acting_events(thing: Model | Trajectory) -> tuple[Event, ...]:
    """The events that changed a run, or could have."""
    return () if isinstance(thing, Model) else tuple(event for event in thing._events if event.action == "change")


def why_no_events(thing: Model | Trajectory, model: Model) -> str:
    """Why a page cannot change the motion as events changed the run; empty if it can."""
    if isinstance(thing, Model):
        return ""
    events = acting_events(thing)
    known = {label.name for label in model.lawful_rows} | {event.name for event in events}
    for met in thing.events:
        if met.changed and met.name not in known:
            return FORGOTTEN.format(name=met.name)
    for event in events:
        if event.then is None:
            return CALL.format(name=event.name)
        slots = trace_change(f"event {event.name!r}: then", thing.model, event.then)[1]
        if model.has_rows and (slots.rates or slots.whole):
            return SHARED.format(name=event.name)
    return ""


def switches(model: Model) -> list[str]:
    """The numbers of locks and latches that close and open them."""
    return [f"{law.name}.{CLOSED}" for law in model.laws if is_switched(law)]


def with_switches(model: Model, events: Sequence[Event]) -> Model:
    """The model with its locks and latches free, as events find it that close and open them."""
    return model.free(*(name for name in switches(model) if events and name not in model.parameters.names))


def event_programs(
    model: Model, events: Sequence[Event], kernels: ExplicitKernels
) -> tuple[dict[str, Program], set[int]]:
    """The programs of the events, and the places in `p` that they change."""
    if not events:
        return {}, set()
    found, changed = {"locate": kernels.locate.program}, set()
    for k, event in enumerate(events):
        found[f"change {k}"], own = _change(model, event, k)
        changed |= own
    return found, changed


def told_of_events(events: Sequence[Event]) -> dict[str, Any]:
    """What the page is told."""
    listed = [{"name": event.name, "direction": event.direction} for event in events]
    return {"events": listed, "trials": BISECTIONS + 2, "accumulate": ACCUMULATE}


def _change(model: Model, event: Event, k: int) -> tuple[Program, set[int]]:
    """`t, q, v, tau, p` to the rates and parameters after an event, and which of `p` it changes."""
    assert event.then is not None
    graph, slots = trace_change(f"event {event.name!r}: then", model, event.then)
    nq, nv, size = model.nq, model.nv, model.parameters.size
    inputs = tuple(Port(name, (n,) if n else ()) for name, n in zip("tqv", (0, nq, nv), strict=True))
    inputs += (Port("tau", (nv,)), Port("p", (size,)))

    def record() -> Any:
        import casadi as ca

        symbols = [ca.SX.sym(port.name, port.size) for port in inputs]
        w, new = graph(*symbols)
        v, p = ca.SX(symbols[2]), ca.SX(symbols[-1])
        for at, value in zip(range(nv) if slots.whole else slots.rates, ca.vertsplit(w), strict=False):
            v[at] = value
        for at, value in zip(slots.parameters, ca.vertsplit(new), strict=False):
            p[at] = value
        return ca.Function("change", symbols, [v, p])

    key = hashlib.sha256(f"{model.key} change {k} in a page {graph.serialize()}".encode()).hexdigest()
    outputs = Port("v_after", (nv,)), Port("p_after", (size,))
    return Program(f"change {k}", inputs, outputs, key, record), set(slots.parameters)
