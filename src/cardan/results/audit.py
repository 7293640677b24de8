"""The energy of a run, kept as a book: what the mechanism has, beside what was brought to it.

Tolerances are kept step by step, and many small errors make a large one: a stiff spring whose vibration a method passes
over with loose tolerances can carry away what nobody took. The book shows it.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from cardan.results.trajectory import Trajectory

MISSING = 0.01  # of the energy exchanged: more is worth a warning, unless so much was asked for:
ASKED = 20  # times rtol
AT_REST = 100  # times atol: slower is none
SUSPECT = 0.01  # steps times tolerance: less cannot add up to it


def missing_energy(run: Trajectory) -> np.ndarray:
    """How much energy of a run (...,) no force accounts for, as a part of what was exchanged; the largest on its way.

    The power between samples is not known: what the trapezoidal rule may be off by is taken as accounted for.
    """
    t = np.broadcast_to(run.time, run.energy.shape)
    brought, rough = _integral(run.power, t), _integral(run.power[..., ::2], t[..., ::2])
    known = brought[..., ::2]
    off = np.abs(run.energy - run.energy[..., :1] - brought)[..., ::2] - 3 * np.abs(known - rough)
    swing = np.nanmax(run.kinetic, axis=-1) - np.nanmin(run.kinetic, axis=-1)
    exchanged = np.maximum(swing, np.nanmax(_integral(np.abs(run.power), t), axis=-1))
    return np.asarray(np.nanmax(off, axis=-1, initial=0.0) / np.maximum(exchanged, 1e-300))


def warn_of_energy(run: Trajectory, rtol: float, atol: float) -> Trajectory:
    """The run; a warning if tolerances and steps are many enough to matter, and its energy is not accounted for."""
    if run.statistics["most_steps"] * (rtol + atol) < SUSPECT:
        return run
    with np.errstate(all="ignore"):
        worst = float(np.nanmax(missing_energy(run), initial=0.0))
    if worst > max(MISSING, ASKED * rtol) and np.nanmax(np.abs(run.v)) > AT_REST * atol:
        warnings.warn(
            f"simulation of {run.model.name!r}: {100 * worst:.2g} percent of the energy exchanged is not accounted "
            f"for after {run.statistics['most_steps']} steps with rtol={rtol:g} and atol={atol:g}; tighten them, or "
            "take method='alpha', which passes over fast vibration",
            RuntimeWarning,
            stacklevel=3,
        )
    return run


def _integral(rate: np.ndarray, t: np.ndarray) -> np.ndarray:
    """What has come (..., n) since the first sample, by the trapezoidal rule."""
    parts = (rate[..., 1:] + rate[..., :-1]) / 2 * np.diff(t, axis=-1)
    return np.concatenate([np.zeros((*rate.shape[:-1], 1)), np.cumsum(parts, axis=-1)], axis=-1)
