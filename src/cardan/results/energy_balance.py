"""Energy balance of a run: the change of energy compared with the work of all forces.

Tolerances bound the error of each step, and over many steps the errors add up. For example, energy disappears where a
method steps over the vibration of a stiff spring with loose tolerances. The balance shows such losses.
"""

from __future__ import annotations

import warnings
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from cardan.results.trajectory.trajectory import Trajectory

# A warning needs all of these:
MISSING = 0.01  # missing energy, relative to the energy exchanged, above this
ASKED = 20  # and above this multiple of rtol
AT_REST = 100  # speeds above this multiple of atol
SUSPECT = 0.01  # steps times tolerance above this: less cannot accumulate to such an error


def missing_energy(run: Trajectory) -> np.ndarray:
    """Energy (...,) that no force accounts for, relative to the energy exchanged; the largest over the run.

    The power between samples is not known, so the estimated error of the trapezoidal rule is subtracted.
    """
    t = np.broadcast_to(run.time, run.energy.shape)
    brought, rough = _integral(run.power, t), _integral(run.power[..., ::2], t[..., ::2])
    known = brought[..., ::2]
    off = np.abs(run.energy - run.energy[..., :1] - brought)[..., ::2] - 3 * np.abs(known - rough)
    swing = np.nanmax(run.kinetic, axis=-1) - np.nanmin(run.kinetic, axis=-1)
    exchanged = np.maximum(swing, np.nanmax(_integral(np.abs(run.power), t), axis=-1))
    return np.asarray(np.nanmax(off, axis=-1, initial=0.0) / np.maximum(exchanged, 1e-300))


def warn_of_energy(run: Trajectory, rtol: float, atol: float) -> Trajectory:
    """Return the run; warn if part of its energy is unaccounted for and the tolerances can explain that."""
    if run.statistics["most_steps"] * (rtol + atol) < SUSPECT:
        return run
    with np.errstate(all="ignore"):
        worst = float(np.nanmax(missing_energy(run), initial=0.0))
    if worst > max(MISSING, ASKED * rtol) and np.nanmax(np.abs(run.v)) > AT_REST * atol:
        warnings.warn(
            f"simulation of {run.model.name!r}: {100 * worst:.2g} percent of the energy exchanged is not accounted "
            f"for after {run.statistics['most_steps']} steps with rtol={rtol:g} and atol={atol:g}; tighten them, or "
            "take method='alpha', which steps over fast vibration",
            RuntimeWarning,
            stacklevel=3,
        )
    return run


def work(run: Trajectory) -> np.ndarray:
    """Work (..., n) of the power since the start, J: the integral of cubic splines between jumps of the state."""
    from scipy.interpolate import CubicSpline

    power = run.power.reshape(-1, run.power.shape[-1])
    times = np.broadcast_to(run.time, run.valid.shape).reshape(power.shape)
    total = np.full(power.shape, np.nan)
    for t, P, W in zip(times, power, total, strict=True):
        count = int((np.isfinite(t) & np.isfinite(P)).sum())
        ends = [0, *(np.flatnonzero(np.diff(t[:count]) <= 0) + 1), count]
        for lo, hi in pairwise(ends):
            W[lo:hi] = W[lo - 1] if lo else 0.0
            if hi - lo > 1:
                W[lo:hi] += CubicSpline(t[lo:hi], P[lo:hi]).antiderivative()(t[lo:hi])
    return total.reshape(run.power.shape)


def _integral(rate: np.ndarray, t: np.ndarray) -> np.ndarray:
    """Integral (..., n) of a rate since the first sample, by the trapezoidal rule."""
    parts = (rate[..., 1:] + rate[..., :-1]) / 2 * np.diff(t, axis=-1)
    return np.concatenate([np.zeros((*rate.shape[:-1], 1)), np.cumsum(parts, axis=-1)], axis=-1)
