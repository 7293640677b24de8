"""States between the samples: quintic Hermite interpolation, then projection onto the loop constraints.

Between two samples `q(t)` is the polynomial of degree five that has the samples' `q`, `qdot = N(q) v` and `qddot`
at both ends, quaternions made unit again; `v` is what `N(q) v = qdot` gives. For samples `h` apart the error is of
order `h^6` in q and `h^5` in v. The state is then projected onto the constraints, which keeps the orders.

Notation: `s` in [0, 1] runs through a step of length `h`; `HERMITE` are the six Hermite polynomials of degree five.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from cardan.errors import InputError
from cardan.formulation.coordinates import configuration_acceleration, velocity_of_rates
from cardan.functions.dynamics import forward_dynamics, rates
from cardan.model.memory import KernelSlot
from cardan.model.model import Model
from cardan.results.trajectory.quantities import labels_of, with_values
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
# Coefficients (6, 6) of the six polynomials, powers first, and those of their first and second derivative.
DERIVATIVES = tuple(np.polynomial.polynomial.polyder(HERMITE.T, k) for k in range(3))
NEGLIGIBLE = 1e-6  # times 1 plus the size of the coordinates: less is never worth a warning
_KERNELS: KernelSlot[str] = KernelSlot("rates and second derivatives of the configuration")


@dataclass(frozen=True)
class Knots:
    """States at the breaks of a run, where forces jump: `time` (k, 3), s, of each, and just before and after it.

    `q` (..., k, nq) and `v` (..., k, nv) are NaN where a system did not get that far. Of a run that changes parameters
    `after` (..., k, nv) are the velocities after each break, and `p` (..., k, 2, np) the parameters before and after.
    """

    time: np.ndarray
    q: np.ndarray
    v: np.ndarray
    after: np.ndarray | None = None
    p: np.ndarray | None = None

    def part(self, index: Any) -> Knots:
        """Those of part of the batch."""
        more = (None if x is None else x[index] for x in (self.after, self.p))
        return Knots(self.time, self.q[index], self.v[index], *more)


@dataclass(frozen=True)
class _Nodes:
    """What a run is interpolated between: times (B, n), states and accelerations, and the number (B,) of each system.

    The last times are NaN where a system has fewer. A time is there more than once where something jumps.
    """

    time: np.ndarray
    q: np.ndarray
    v: np.ndarray
    a: np.ndarray
    count: np.ndarray
    p: np.ndarray | None = None
    """Free parameters (B, n, np) of a run that changes them."""

    def model(self, run: Trajectory, which: np.ndarray, ends: tuple[np.ndarray, np.ndarray], s: np.ndarray) -> Model:
        """The model at parts `s` (m,) between two nodes, by their numbers (m,), of some systems (m,)."""
        if self.p is None:
            return _model_of(run, which)
        first, last = (self.p[which, k] for k in ends)
        return with_values(run.model, first + s[:, None] * (last - first))


def states_at(run: Trajectory, t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """States q (..., m, nq) and v (..., m, nv) of a run at times (m,); NaN after the end of a system."""
    first, last = float(np.nanmin(run.time)), float(np.nanmax(run.time))
    if t.ndim != 1 or not ((first <= t) & (t <= last)).all():
        outside = t[~((first <= t) & (t <= last))] if t.ndim == 1 else t.shape
        raise InputError(
            f"trajectory: at() takes a time or a list of times between {first:g} s and {last:g} s, got {outside}"
        )
    nodes = _nodes(run)
    times, count = nodes.time, nodes.count
    k = np.stack([np.searchsorted(row[:c], t, side="right") - 1 for row, c in zip(times, count, strict=True)])
    inside = (k >= 0) & (
        t <= np.array([row[c - 1] if c else -np.inf for row, c in zip(times, count, strict=True)])[:, None]
    )
    which, column = np.nonzero(inside)
    k0 = np.minimum(k[inside], np.maximum(count[which] - 2, 0))
    k1 = np.minimum(k0 + 1, count[which] - 1)
    ends = tuple(x[which, k] for k in (k0, k1) for x in (nodes.q, nodes.v, nodes.a))
    h = times[which, k1] - times[which, k0]
    s = np.where(h > 0, (t[column] - times[which, k0]) / np.where(h > 0, h, 1.0), 1.0)
    found_q, found_v = interpolate(nodes.model(run, which, (k0, k1), s), ends, h, s, t[column])
    found_v[h == 0] = nodes.v[which, k1][h == 0]
    _warn_of_sparse_samples(run, nodes, which, k0)
    every = []
    for found in (found_q, found_v):
        rows = np.full((*inside.shape, found.shape[-1]), np.nan)
        rows[inside] = found
        every.append(rows.reshape(*run.batch, len(t), found.shape[-1]))
    return every[0], every[1]


def _nodes(run: Trajectory) -> _Nodes:
    """The samples, and the state at every break and jump twice: just before and just after it."""
    n, B = run.time.shape[-1], max(int(np.prod(run.batch)), 1)
    time = np.broadcast_to(run.time, run.valid.shape).reshape(B, n)
    q, v, a = (x.reshape(B, n, x.shape[-1]) for x in (run.q, run.v, run.a))
    p = None if run.parameters is None else run.parameters.reshape(B, n, -1)
    valid = run.valid.reshape(B, n)
    between = [_break_sides(run, B)] if run.knots is not None else []
    between += [_jump_sides(run, B)] if any(event.changed for event in run.events) else []
    if not between:
        return _Nodes(time, q, v, a, valid.sum(axis=-1), p)
    none = np.zeros((B, n, 0))
    before, after = ([pair[side] for pair in between] for side in (0, 1))
    parts = [*before, [np.where(valid, time, np.nan), q, v, a, none if p is None else p], *after]
    time, q, v, a, found = (np.concatenate([part[i] for part in parts], axis=1) for i in range(5))
    order = np.argsort(time, axis=1, kind="stable")  # at one time: before the break, a sample, after it
    time = np.take_along_axis(time, order, axis=1)
    q, v, a, found = (np.take_along_axis(x, order[..., None], axis=1) for x in (q, v, a, found))
    return _Nodes(time, q, v, a, np.isfinite(time).sum(axis=-1), None if p is None else found)


def _break_sides(run: Trajectory, B: int) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Times (B, k), states, accelerations and parameters at the breaks, just before and just after."""
    knots = run.knots
    assert knots is not None
    k = len(knots.time)
    rates = knots.v if knots.after is None else knots.after
    p = np.zeros((B, k, 2, 0)) if knots.p is None or run.parameters is None else knots.p.reshape(B, k, 2, -1)
    q, *both = (x.reshape(B, k, x.shape[-1]) for x in (knots.q, knots.v, rates))
    there = np.isfinite(q).all(axis=-1) & np.isfinite(both[0]).all(axis=-1)
    at = np.where(there, knots.time[:, 0], np.nan)
    aside = [np.broadcast_to(knots.time[:, side], there.shape) for side in (1, 2)]
    first, last = ([at, q, v, _moving(run, there, q, v, t, p[:, :, j]), p[:, :, j]]
                   for j, (v, t) in enumerate(zip(both, aside, strict=True)))  # fmt: skip
    return first, last


def _jump_sides(run: Trajectory, B: int) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """The same at the events that changed rates or parameters: k of the system that met most."""
    met: list[list[Any]] = [[] for _ in range(B)]
    for event in run.events:
        if event.changed:
            met[int(np.ravel_multi_index(event.index, run.batch)) if run.batch else 0].append(event)
    k, size = max(map(len, met)), 0 if run.parameters is None else run.parameters.shape[-1]
    t, q = np.full((B, k), np.nan), np.full((B, k, run.q.shape[-1]), np.nan)
    v, p = np.full((B, k, 2, run.v.shape[-1]), np.nan), np.full((B, k, 2, size), np.nan)
    for b, events in enumerate(met):
        for j, event in enumerate(events):
            t[b, j], q[b, j], v[b, j] = event.time, event.q, (event.v, event.v_after)
            if size:
                p[b, j] = event.p, event.p_after
    there = np.isfinite(t)
    first, last = ([t, q, v[:, :, j], _moving(run, there, q, v[:, :, j], t, p[:, :, j]), p[:, :, j]] for j in (0, 1))
    return first, last


def _moving(
    run: Trajectory, there: np.ndarray, q: np.ndarray, v: np.ndarray, t: np.ndarray, p: np.ndarray
) -> np.ndarray:
    """Accelerations (B, k, nv) at states and times (B, k) with parameters (B, k, np), where they are `there`."""
    system, _ = np.nonzero(there)
    model = with_values(run.model, p[there]) if p.shape[-1] else _model_of(run, system)
    a = np.full(v.shape, np.nan)
    a[there] = _accelerations(run, model, system, q[there], v[there], t[there])
    return a


def _model_of(run: Trajectory, system: np.ndarray) -> Model:
    """The model with the free parameters, if it has any, of some systems (m,), counted through the batch."""
    model = run.model
    if model.values is None:
        return model
    values = np.broadcast_to(model.values, (*run.batch, model.values.shape[-1]))
    return with_values(model, values.reshape(-1, values.shape[-1])[system])


def _accelerations(
    run: Trajectory, model: Model, system: np.ndarray, q: np.ndarray, v: np.ndarray, t: np.ndarray
) -> np.ndarray:
    """Accelerations (m, nv) of some systems (m,) at states (m, nq), (m, nv) and times (m,); the model is at their p."""
    tau = None if run.tau is None else np.broadcast_to(run.tau, (*run.batch, v.shape[-1])).reshape(-1, v.shape[-1])
    drives = None if tau is None else tau[system]
    return np.asarray(forward_dynamics(model, q, v, drives, t=t, formulation=run.formulation))


UNCERTAIN = 1e-3  # of the motion between two samples: a larger error of the interpolation gives a warning


def _warn_of_sparse_samples(run: Trajectory, nodes: _Nodes, which: np.ndarray, k0: np.ndarray) -> None:
    """Warn if samples used are too far apart: the polynomial's accelerations half-way are not those of the model.

    Of the polynomial, which is exact to second order at both ends, the error half-way is 1/24 of that of its second
    derivative, times the square of the distance.
    """
    which, k0 = np.unique(np.stack([which, k0]), axis=1)
    k1 = np.minimum(k0 + 1, nodes.count[which] - 1)
    t0, t1 = nodes.time[which, k0], nodes.time[which, k1]
    ends = tuple(x[which, k] for k in (k0, k1) for x in (nodes.q, nodes.v, nodes.a))
    h, half = t1 - t0, np.full(len(t0), 0.5)
    model = nodes.model(run, which, (k0, k1), half)
    q, v, bent = _hermite(model, ends, h, half)
    with np.errstate(all="ignore"):
        a = _accelerations(run, model, which, q, v, (t0 + t1) / 2)
        second = _kernel(model, configuration_acceleration)(q, v, a)
        off = h[:, None] ** 2 / 24 * np.abs(bent - second)
        moved = np.maximum(np.abs(ends[3] - ends[0]), h[:, None] * np.abs(rates(model, q, v)))
    units = np.array(labels_of(run.model).coordinate_unit)
    for unit in dict.fromkeys(units):
        at = units == unit
        error, motion = off[:, at].max(axis=1), moved[:, at].max(axis=1)
        uncertain = error > np.maximum(UNCERTAIN * motion, NEGLIGIBLE * (1 + np.abs(q[:, at]).max(axis=1)))
        if uncertain.any():
            k = int(np.argmax(np.where(uncertain, error, 0.0)))
            warnings.warn(
                f"trajectory: between the samples at t = {t0[k]:.6g} s and {t1[k]:.6g} s the interpolated state may be "
                f"off by {error[k]:.2g} {unit if unit != '1' else '(quaternion)'}; take more samples, or give the "
                "times of jumps in breaks",
                RuntimeWarning,
                stacklevel=4,
            )
            return


def interpolate(
    model: Model, ends: tuple[np.ndarray, ...], h: np.ndarray, s: np.ndarray, t: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """States at fractions `s` (m,) of steps of length `h` (m,), s, whose ends are q0, v0, a0, q1, v1, a1.

    The ends, and the free parameters of the model if it has any, have one row for each of the m times `t`.
    """
    q, v, _ = _hermite(model, ends, h, s)
    return project(model, q, v, t)[:2] if model.has_rows else (q, v)


def _hermite(
    model: Model, ends: tuple[np.ndarray, ...], h: np.ndarray, s: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """`q` and `v` before their projection, and the second derivative of the polynomial."""
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
    values = np.stack([*start, *end], axis=1)
    length = np.where(h > 0, h, 1.0)
    q, qdot, qddot = (
        np.einsum("mk,mki->mi", np.polynomial.polynomial.polyval(s, derivative).T, values) / length**order
        for order, derivative in enumerate(DERIVATIVES)
    )
    for at in model.quaternions:
        size = np.linalg.norm(q[:, at], axis=-1, keepdims=True)
        q[:, at] /= size
        qdot[:, at] /= size
    return q, _kernel(model, velocity_of_rates)(q, qdot), qddot


def _kernel(model: Model, make: Callable[[Model], Any]) -> Any:
    return _KERNELS.find(model, make.__name__, lambda: compile_quantity(model, make(model), "tree"))
