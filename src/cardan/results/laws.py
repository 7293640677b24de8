"""Rows with laws in a run: how well it obeyed them, what events did to them, and when they held."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import numpy as np

from cardan.model.modes import MODE, has_modes, places
from cardan.model.row import Law
from cardan.structure.kernels import parameter_arguments
from cardan.structure.laws import gaps_and_rates

if TYPE_CHECKING:
    from cardan.integrate.driver import RunSamples
    from cardan.model.model import Model
    from cardan.results.trajectory.trajectory import EventRecord, Trajectory

UNSOLVED = 1e-6  # relative residual of the laws that warns
IMPOSSIBLE = 0.1  # and that no shorter step mends

# What an event does to a row, by its law and whether it held before and after.
DOES = {
    Law.UNILATERAL: {
        (False, True): "closes",
        (True, False): "opens",
        (False, False): "bounces",
        (True, True): "is hit",
    },
    Law.FRICTION: {(False, True): "sticks", (True, False): "slides", (False, False): "turns", (True, True): "sticks"},
    Law.SWITCHED: {(False, True): "closes", (True, False): "opens", (False, False): "", (True, True): ""},
}
HOLDS = {Law.UNILATERAL: "closed", Law.FRICTION: "sticks", Law.SWITCHED: "closed"}


def law_statistics(model: Model, kept: RunSamples, method: str) -> dict[str, float]:
    """Largest penetration (m or rad) at the samples, and largest relative residual of the laws in a step; warn of it.

    Empty for a model without laws.
    """
    if not model.laws:
        return {}
    parameters = [p[..., None, :] if p.ndim > 1 else p for p in parameter_arguments(model)]
    with np.errstate(all="ignore"):
        gaps, _ = gaps_and_rates(model, kept.q, kept.v, kept.t, parameters)
    deepest = np.nan_to_num(-gaps, nan=0.0, neginf=0.0).max(initial=0.0)
    residual = kept.notes.law_residual
    if (residual > UNSOLVED).any():
        worst = int(np.argmax(residual))
        remedy = "take a shorter step"
        if residual[worst] > IMPOSSIBLE:
            names = ", ".join(repr(law.name) for law in model.laws)
            remedy = f"no forces of {names} fit: a motion or a loop drives against a stop or a lock, or friction jams"
        warnings.warn(
            f"simulation of {model.name!r}: in a step of {method!r} the laws of its rows were solved to "
            f"{residual[worst]:.2g} only{f' in system {worst}' if len(residual) > 1 else ''}; {remedy}",
            category=RuntimeWarning,
            stacklevel=2,
        )
    return {"largest_penetration": float(deepest), "law_residual": float(residual.max(initial=0.0))}


def what_happens(model: Model | None, event: EventRecord) -> str:
    """What an event did to a row with a law, as in `"floor bounces"`; the name of any other event."""
    if model is None or event.p is None or event.p_after is None or not has_modes(model):
        return event.name
    if event.name not in model.lawful_rows.names:
        return event.name
    at = places(model, MODE)[model.lawful_rows.names.index(event.name)]
    for law in model.laws:
        for own, end, label in zip(law.laws, law.names, law.labels(model.joints), strict=True):
            if label.name == event.name:
                several = law.laws.count(own) > 1 and own is Law.UNILATERAL
                verb = DOES[own][bool(event.p[at] > 0.5), bool(event.p_after[at] > 0.5)]
                return f"{law.name}, {end}, {verb}" if several else f"{law.name} {verb}"
    return event.name


def held_intervals(run: Trajectory, element: str) -> tuple[str, list[tuple[float, float]]]:
    """When an element with laws held in a run of one system: a word for it, and intervals of time, s.

    Friction at a gap counts, not the gap. Without the modes of an event-driven run there are none.
    """
    model = run._model
    if model is None or run.batch or run.parameters is None or not has_modes(model):
        return "", []
    first = 0
    for law in model.laws:
        if law.name == element:
            break
        first += len(law.rows)
    else:
        return "", []
    row = next((k for k, own in enumerate(law.laws) if own is Law.FRICTION), 0)
    at, time = places(model, MODE)[first + row], run.time[run.valid]
    changes = [(float(time[0]), run.parameters[0, at])]
    changes += [(e.time, e.p_after[at]) for e in sorted(run.events, key=lambda e: e.time) if e.p_after is not None]
    ends = [t for t, _ in changes[1:]] + [float(time[-1])]
    found: list[tuple[float, float]] = []
    for (start, mode), end in zip(changes, ends, strict=True):
        if mode > 0.5 and end > start:
            joined = found and found[-1][1] == start
            found[-1:] = [(found[-1][0], end)] if joined else [*found[-1:], (start, end)]
    return HOLDS[law.laws[row]], found
