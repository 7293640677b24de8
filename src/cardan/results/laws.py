"""How well a run obeyed the laws of its rows, for `run.statistics`."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import numpy as np

from cardan.structure.kernels import parameter_arguments
from cardan.structure.laws import gaps_and_rates

if TYPE_CHECKING:
    from cardan.integrate.driver import RunSamples
    from cardan.model.model import Model

UNSOLVED = 1e-6  # relative residual of the laws that warns
IMPOSSIBLE = 0.1  # and that no shorter step mends


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
