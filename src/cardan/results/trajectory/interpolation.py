"""States between the samples: quintic Hermite interpolation, then projection onto the loop constraints.

Between two samples `q(t)` is the polynomial of degree five that has the samples' `q`, `qdot = N(q) v` and `qddot`
at both ends, quaternions made unit again; `v` is what `N(q) v = qdot` gives. For samples `h` apart the error is of
order `h^6` in q and `h^5` in v. The state is then projected onto the constraints, which keeps the orders.

Notation: `s` in [0, 1] runs through a step of length `h`; `HERMITE` are the six Hermite polynomials of degree five.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from cardan.errors import InputError
from cardan.formulation.coordinates import configuration_acceleration, velocity_of_rates
from cardan.functions.dynamics import rates
from cardan.model.memory import KernelSlot
from cardan.model.model import Model
from cardan.structure.kernels import compile_quantity
from cardan.structure.projection import project

if TYPE_CHECKING:
    from cardan.results.trajectory.trajectory import Trajectory

# Coefficients of s^0 ... s^5 for the values q0, h q0', h^2 q0'', h^2 q1'', h q1', q1.
HERMITE = np.array(
    [
        [1, 0, 0, -10, 15, -6],
        [0, 1, 0, -6, 8, -3],
        [0, 0, 0.5, -1.5, 1.5, -0.5],
        [0, 0, 0, 0.5, -1, 0.5],
        [0, 0, 0, -4, 7, -3],
        [0, 0, 0, 10, -15, 6],
    ]
)
_KERNELS: KernelSlot[str] = KernelSlot("rates and second derivatives of the configuration")


def states_at(run: Trajectory, t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """States q (..., m, nq) and v (..., m, nv) of a run at times (m,); NaN after the end of a system."""
    first, last = float(np.nanmin(run.time)), float(np.nanmax(run.time))
    if t.ndim != 1 or not ((first <= t) & (t <= last)).all():
        outside = t[~((first <= t) & (t <= last))] if t.ndim == 1 else t.shape
        raise InputError(
            f"trajectory: at() takes a time or a list of times between {first:g} s and {last:g} s, got {outside}"
        )
    count = run.valid.sum(axis=-1).reshape(-1)  # samples of each system; the padding follows them
    n, m = run.time.shape[-1], len(t)
    times = np.broadcast_to(run.time, run.valid.shape).reshape(-1, n)
    k = np.stack([np.searchsorted(row[:c], t, side="right") - 1 for row, c in zip(times, count, strict=True)])
    inside = (k >= 0) & (
        t <= np.array([row[c - 1] if c else -np.inf for row, c in zip(times, count, strict=True)])[:, None]
    )
    which, column = np.nonzero(inside)
    k0 = np.minimum(k[inside], np.maximum(count[which] - 2, 0))
    k1 = np.minimum(k0 + 1, count[which] - 1)
    q, v, a = (x.reshape(len(count), n, x.shape[-1]) for x in (run.q, run.v, run.a))
    ends = tuple(x[which, k] for k in (k0, k1) for x in (q, v, a))
    h = times[which, k1] - times[which, k0]
    s = np.where(h > 0, (t[column] - times[which, k0]) / np.where(h > 0, h, 1.0), 1.0)
    model = run.model_at(inside.reshape(*run.batch, m))
    found_q, found_v = interpolate(model, ends, h, s, t[column])
    found_v[h == 0] = v[which, k1][h == 0]
    every = []
    for found in (found_q, found_v):
        rows = np.full((*inside.shape, found.shape[-1]), np.nan)
        rows[inside] = found
        every.append(rows.reshape(*run.batch, m, found.shape[-1]))
    return every[0], every[1]


def interpolate(
    model: Model, ends: tuple[np.ndarray, ...], h: np.ndarray, s: np.ndarray, t: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """States at fractions `s` (m,) of steps of length `h` (m,), s, whose ends are q0, v0, a0, q1, v1, a1.

    The ends, and the free parameters of the model if it has any, have one row for each of the m times `t`.
    """
    q0, v0, a0, q1, v1, a1 = ends
    second = _kernel(model, configuration_acceleration)
    h = h[:, None]
    start = [q0, h * rates(model, q0, v0), h * h * second(q0, v0, a0)]
    end = [h * h * second(q1, v1, a1), h * rates(model, q1, v1), q1]
    for at in model.quaternions:
        # q and -q are the same orientation: take the nearer one
        sign = np.where((q0[:, at] * q1[:, at]).sum(axis=-1, keepdims=True) < 0, -1.0, 1.0)
        for part in end:
            part[:, at] = sign * part[:, at]
    powers = s[:, None] ** np.arange(6)
    slopes = np.concatenate([np.zeros((len(s), 1)), np.arange(1, 6) * powers[:, :5]], axis=1)
    values = np.stack([*start, *end], axis=1)
    q = np.einsum("mk,mki->mi", powers @ HERMITE.T, values)
    qdot = np.einsum("mk,mki->mi", slopes @ HERMITE.T, values) / np.where(h > 0, h, 1.0)
    for at in model.quaternions:
        size = np.linalg.norm(q[:, at], axis=-1, keepdims=True)
        q[:, at] /= size
        qdot[:, at] /= size
    v = _kernel(model, velocity_of_rates)(q, qdot)
    return project(model, q, v, t)[:2] if model.has_rows else (q, v)


def _kernel(model: Model, make: Callable[[Model], Any]) -> Any:
    return _KERNELS.find(model, make.__name__, lambda: compile_quantity(model, make(model), "tree"))
