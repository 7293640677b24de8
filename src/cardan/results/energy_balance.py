"""Energy balance of a run: the change of energy compared with the work of all forces.

    E(t) - E(0) - W(t)      E = T + V, W the work of drives, dampers, friction, user forces and prescribed motions

is what the run has gained or lost by errors. What events change on purpose counts as work. The integrators integrate
`W` with the motion, so the balance holds to their own order, however few samples there are. It is computed for every
run, and a run whose balance is off by more than its tolerances explain warns: errors add up over many steps, a method
steps over the vibration of a stiff spring, or velocities jump where constraints lose rank.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from cardan.formulation.spatial import SPATIAL
from cardan.functions.energy import kinetic_energy, potential_energy
from cardan.integrate.driver import RunSamples
from cardan.integrate.integrators import Integrator, Request
from cardan.model.model import Model
from cardan.model.values import counted
from cardan.results.trajectory.quantities import with_values
from cardan.structure.rows import kept_rows

if TYPE_CHECKING:
    from cardan.results.trajectory.trajectory import Trajectory

MISSING = 0.01  # of the energy exchanged: more than that warns, even if the number of steps explains it,
ASKED = 20  # unless it is below this multiple of rtol
UNNOTICED = 1e-3  # of the energy exchanged: less than that does not warn
# Each step may have an error of the tolerance: that of the energy is then this many times the tolerance, the number of
# steps, and the energy exchanged; forces also do work along the errors of positions.
EXPLAINED = 10.0
ROUNDING = 1e-11  # of the energy itself
FEW = 64  # samples
STILL = 1e-10  # m or rad: of a run whose coordinates change by less, as friction holds it, the energy is rounding
AT_REST = 100  # times atol: smaller speeds are as good as rest


@dataclass(frozen=True)
class EnergyBalance:
    """Energy that runs gained or lost by errors, of the system where it is largest for its tolerances.

    `allowed` (J) is what tolerances and steps explain; `exchanged` (J) the largest kinetic energy, or the work, or the
    change of the potential energy. `time` (s) is the end of the interval between samples in which most of it happened.
    """

    error: float = 0.0
    allowed: float = np.inf
    exchanged: float = 0.0
    time: float = 0.0
    system: int = 0
    largest: float = 0.0
    correction: float = 0.0
    correction_time: float = 0.0
    by_events: float | None = None
    """Energy, J, that events and inputs added or took, of the system with most; None if they change nothing."""

    @property
    def statistics(self) -> dict[str, float]:
        """For `run.statistics`: the largest of all systems."""
        changed = {} if self.by_events is None else {"event_energy": self.by_events}
        return {
            "energy_error": self.largest,
            "energy_error_time": self.time,
            "largest_correction": self.correction,
            "largest_correction_time": self.correction_time,
            **changed,
        }

    def joined(self, other: EnergyBalance, first: int) -> EnergyBalance:
        """Of two parts of a batch; `first` is the number of the other's first system."""
        worst = other if other.error * self.allowed > self.error * other.allowed else self
        system = first + other.system if worst is other else self.system
        jump = other if other.correction > self.correction else self
        return EnergyBalance(
            worst.error, worst.allowed, worst.exchanged, worst.time, system, max(self.largest, other.largest),
            jump.correction, jump.correction_time,
            max((x for x in (self.by_events, other.by_events) if x is not None), key=abs, default=None),
        )  # fmt: skip


def energy_balance(run: Trajectory, kept: RunSamples, integrator: Integrator, request: Request) -> EnergyBalance:
    """The energy balance of a run with these samples, B systems at n times."""
    systems, n = len(kept.t), run.time.shape[-1]
    with np.errstate(all="ignore"):
        T, V = (run.quantity(name).reshape(systems, n) for name in ("kinetic", "potential"))
        W = kept.work[:, :n]
        if n > 1 and np.isnan(W[:, 1:]).all():  # an integrator of the user's, which does not integrate it
            W = work(run).reshape(systems, n)
        by_jumps = jump_energies(run, kept)
        W = W + by_jumps[:, :n]
        gained = T + V - W
        gained = gained - gained[:, :1]  # an impact at the start is before the first sample
        error, swing = _largest(np.abs(gained)), _largest(V) + _largest(-V)
        exchanged = np.maximum(_largest(T), swing + _largest(np.cumsum(np.abs(np.diff(W, axis=1, prepend=0)), axis=1)))
        allowed = (UNNOTICED if integrator.chooses_steps else MISSING) * exchanged
        if (error > allowed).any():
            allowed, exchanged = _allowed(run, kept, integrator, request, exchanged, swing)
        allowed = allowed + ROUNDING * (_largest(T) + _largest(np.abs(V))) + np.finfo(float).tiny
    worst = int(np.argmax(error / allowed))
    jumps = np.nan_to_num(np.abs(np.diff(gained[worst], prepend=0.0)))
    jump = int(np.argmax(kept.notes.correction))
    by_events = None if kept.p is None else _last(by_jumps)
    return EnergyBalance(
        float(error[worst]), float(allowed[worst]), float(exchanged[worst]), float(kept.t[worst, np.argmax(jumps)]),
        worst, float(error.max()), float(kept.notes.correction[jump]), float(kept.notes.correction_time[jump]),
        None if by_events is None else float(by_events[np.argmax(np.abs(by_events))]),
    )  # fmt: skip


def jump_energies(run: Trajectory, kept: RunSamples) -> np.ndarray:
    """Energy (B, n), J, that events and breaks have added until each sample by changing rates and parameters."""
    total: np.ndarray = np.zeros(kept.t.shape)
    if kept.p is None:
        return total
    parts: list[tuple[np.ndarray, ...]] = []
    met = [m for m in kept.met if m.jump is not None]
    if met:
        rows = [(m.system, m.t, m.q, m.v, m.p, *(m.jump or ())) for m in met]
        parts.append(tuple(np.array([np.asarray(row[c]) for row in rows]) for c in range(7)))
    if kept.knot_p is not None and kept.knot_after is not None:
        before, after = kept.knot_p[:, :, 0], kept.knot_p[:, :, 1]
        # a variable stores no energy, and sampled controllers change thousands of them
        stores = np.array([x.place[0] != "variable" for x in run.model.parameters for _ in range(x.size)], dtype=bool)
        changed = (before != after)[..., stores].any(axis=-1) | (kept.knot_v != kept.knot_after).any(axis=-1)
        i, k = np.nonzero(changed & np.isfinite(kept.knot_q).all(axis=-1))
        sides = kept.knot_v[i, k], before[i, k], kept.knot_after[i, k], after[i, k]
        parts.append((i, kept.knots[k, 0], kept.knot_q[i, k], *sides))
    parts = [part for part in parts if len(part[0])]
    if not parts:
        return total
    systems, t, q, v, p, v_after, p_after = [np.concatenate([part[c] for part in parts]) for c in range(7)]
    added = energy_at(run.model, q, v_after, p_after) - energy_at(run.model, q, v, p)
    order = np.argsort(systems, kind="stable")
    systems, t, added = systems[order].astype(int), t[order].astype(float), added[order]
    wide: np.ndarray = np.zeros((len(kept.t), kept.t.shape[1] + 1))
    for own in np.split(np.arange(len(systems)), np.flatnonzero(np.diff(systems)) + 1):
        i = systems[own[0]]
        np.add.at(wide[i], np.searchsorted(kept.t[i], t[own], side="left"), added[own])
    return np.cumsum(wide, axis=1)[:, :-1]


def energy_at(model: Model, q: np.ndarray, v: np.ndarray, p: np.ndarray) -> np.ndarray:
    """Kinetic and potential energy (k,), J, at states (k, ...) with free parameters (k, np)."""
    here = with_values(model, p) if p.shape[-1] else model.unbound
    return np.asarray(kinetic_energy(here, q, v) + potential_energy(here, q))


def _last(values: np.ndarray) -> np.ndarray:
    """The last finite entry of each row (B, n); zero if there is none."""
    count = np.isfinite(values).sum(axis=1)
    return np.where(count > 0, values[np.arange(len(values)), np.maximum(count - 1, 0)], 0.0)


def _allowed(
    run: Trajectory, kept: RunSamples, integrator: Integrator, request: Request, exchanged: np.ndarray,
    swing: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """Energy (B,) that the tolerances and the number of steps explain, J; also return that `exchanged`, completed.

    Of fixed steps it is a part of the energy exchanged.
    """
    first = np.zeros(run.valid.shape, dtype=bool)
    first[..., 0] = True
    model, (q, v) = run.model_at(first), _fastest(kept)
    fast = np.nan_to_num(kinetic_energy(model, q, v))
    exchanged = np.maximum(exchanged, fast)  # between samples it may have been faster
    moved = np.max(_largest(kept.q, axis=1) + _largest(-kept.q, axis=1), axis=1, initial=0.0)
    if not integrator.chooses_steps:
        return np.where(moved > STILL, MISSING * exchanged, np.inf), exchanged
    rtol, atol = request.rtol, request.atol
    reach = np.max(_largest(np.abs(kept.q), axis=1), axis=1, initial=0.0)
    slope = np.where(moved > 0, swing / moved, 0.0)
    slow = np.nan_to_num(kinetic_energy(model, q, v + np.copysign(atol / rtol, v))) - fast  # the part of atol
    each_step = rtol * (exchanged + np.abs(slow)) + (rtol * reach + atol) * slope
    at_rest = np.nan_to_num(kinetic_energy(model, q, np.full_like(v, AT_REST * atol)))
    explained = np.maximum(UNNOTICED * exchanged, EXPLAINED * kept.steps * each_step)
    allowed = np.minimum(max(MISSING, ASKED * rtol) * exchanged, explained) + at_rest
    return np.where(moved > STILL, allowed, np.inf), exchanged


def warn_of_energy(run: Trajectory, balance: EnergyBalance, integrator: Integrator, request: Request) -> Trajectory:
    """Return the run; warn if it gained or lost more energy than its tolerances explain."""
    if not balance.error > balance.allowed or _is_prescribed(run.model):
        return run
    system = f", system {balance.system}" if run.batch else ""
    part = 100 * balance.error / max(balance.exchanged, 1e-300)
    if integrator.chooses_steps:
        how = f"with rtol={request.rtol:g} and atol={request.atol:g}; tighten them, or take another method"
    else:
        how = f"with step={request.step} s; take a shorter step"
    if not integrator.for_stiff and not run.model.laws:
        how += "; method='alpha' steps over fast vibration"
    warnings.warn(
        f"simulation of {run.model.name!r}{system}: {balance.error:.3g} J, {part:.2g} percent of the energy exchanged "
        f"is not accounted for, most of it by t = {balance.time:.6g} s, after "
        f"{counted(run.statistics['steps'], 'step')} of {integrator.name!r} {how}",
        RuntimeWarning,
        stacklevel=3,
    )
    return run


def _is_prescribed(model: Model) -> bool:
    """Whether constraints leave no freedom: then the motion is exact, and only the work of motions is integrated."""
    return len(kept_rows(model.unbound, SPATIAL)) == model.nv


def _fastest(kept: RunSamples) -> tuple[np.ndarray, np.ndarray]:
    """About the state (B, nq), (B, nv) at which each system was fastest: its fastest sample, made as fast as it was."""
    speeds = np.nan_to_num(np.sum(np.square(kept.v), axis=-1))
    rows, at = np.arange(len(kept.v)), np.argmax(speeds, axis=1)
    q, v, seen = kept.q[rows, at], kept.v[rows, at], speeds[rows, at]
    v = np.where(seen[:, None] > 0, v, 1.0)
    size = np.sqrt(kept.notes.speed / np.maximum(np.sum(np.square(v), axis=-1), 1e-300))
    return q, v * size[:, None]


def _largest(values: np.ndarray, axis: int = 1) -> np.ndarray:
    """Largest value along an axis, NaN left out; zero if there is none."""
    count = values.shape[axis]
    if 0 < count < min(FEW, len(values)):  # NumPy is slow along short axes
        found: np.ndarray = reduce(np.fmax, np.moveaxis(values, axis, 0))
    else:
        found = np.fmax.reduce(values, axis=axis)
    return np.nan_to_num(found)


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
