"""Rows with laws at states: their gaps and rates, and what an impact does to velocities."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cardan.formulation.complementarity import impact, lawful_state
from cardan.formulation.spatial import SPATIAL
from cardan.model.memory import Slot
from cardan.model.model import Model
from cardan.model.row import Law
from cardan.structure.kernels import compile_quantity, time_argument
from cardan.structure.rows import kept_rows

_KERNELS: Slot[str, Any] = Slot("rows with laws at states, and impacts by their rule")


def gaps_and_rates(
    model: Model, q: np.ndarray, v: np.ndarray, t: np.ndarray | float, parameters: Sequence[np.ndarray] = ()
) -> tuple[np.ndarray, np.ndarray]:
    """Gaps (..., m), m or rad, infinite in rows without one, and rates (..., m) of the rows with laws at states."""
    make = lambda: compile_quantity(model.unbound, lawful_state(model), "laws")
    kernel = _with_values(_KERNELS.find(model, "state", make), model, parameters)
    phi, u = kernel(q, v, *time_argument(model, t))
    unilateral = np.array([row.law is Law.UNILATERAL for row in model.lawful_rows])
    return np.where(unilateral, phi, np.inf), np.asarray(u)


def after_impact(
    model: Model, q: np.ndarray, v: np.ndarray, closed: np.ndarray, rule: str, t: np.ndarray | float = 0.0,
    parameters: Sequence[np.ndarray] = (),
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:  # fmt: skip
    """Velocities (..., nv) after an impact of the rows `closed` (..., m), impulses (..., m) and relative residual.

    `rule` is "newton" or "poisson".
    """
    rows = tuple(kept_rows(model.unbound, SPATIAL))
    make = lambda: compile_quantity(model.unbound, impact(model, rows, rule), f"laws rows {rows}")
    kernel = _with_values(_KERNELS.find(model, rule, make), model, parameters)
    found: tuple[np.ndarray, np.ndarray, np.ndarray] = kernel(q, v, closed, *time_argument(model, t))
    return found


def _with_values(kernel: Any, model: Model, parameters: Sequence[np.ndarray]) -> Any:
    if not model.parameters:
        return kernel
    values = parameters[0] if parameters else model.parameters.nominal if model.values is None else model.values
    return kernel.at_values(values)
