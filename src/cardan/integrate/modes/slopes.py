"""Derivatives of impacts, and of the stopping of rows that close, by time, state and parameters.

The law of an impact is piecewise smooth. With the rows that close (`C`), slide (`S`, along `d`) and stay open, as they
were chosen, its impulses solve

    C: (1 + e) u + W P = 0        S: P + d mu P_n = 0        else: P = 0        v' = v + Y P

and their change follows from the change of `u`, `W P`, `mu`, `e`, `Y P` at fixed impulses (`formulation.law_impulses`):

    C: W dP = -((1 + e) du + u de + d(W P))        S: dP + d mu dP_n = -d P_n dmu        dv' = dv + d(Y P) + Y dP
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from cardan.errors import InputError
from cardan.formulation.derivative import PARAMETERS, By, differentiated
from cardan.formulation.law_quantities import law_impulses
from cardan.integrate.transition import Moment
from cardan.model.memory import KernelSlot
from cardan.model.row import Law
from cardan.structure.kernels import compile_quantity, time_argument
from cardan.structure.law_choice import CLOSED, OPEN, Choice
from cardan.structure.law_state import NEWTON, LawState, ModeLaws
from cardan.structure.planarity import prepare
from cardan.structure.rows import kept_rows

SAME = 1e-9  # of the impulses: those of the law itself, not between it and one without gain of energy
RANK = 1e-9
_SLOPES: KernelSlot[str] = KernelSlot("derivatives of what impacts follow from, by formulation")


@dataclass(frozen=True)
class Impulses:
    """Impulses `P` (k, m) on some systems, numbers (k,) of a moment's, at rates `v` (k, nv); `s` are their rows there.

    `found` says which rows closed and slid, `e` (k, m) are the restitutions, `rule` the law of impacts.
    """

    systems: np.ndarray
    v: np.ndarray
    s: LawState
    P: np.ndarray
    found: Choice
    e: np.ndarray
    rule: str = NEWTON

    @classmethod
    def stopping(cls, systems: np.ndarray, v: np.ndarray, s: LawState, P: np.ndarray, rows: np.ndarray) -> Impulses:
        """Those that bring some rows (k, m) to rest."""
        none, yes = np.zeros_like(P), np.ones(len(P), dtype=bool)
        return cls(systems, v, s, P, Choice(np.where(rows, CLOSED, OPEN), none, P, none, yes, yes), none)


def law_slopes(laws: ModeLaws, at: Moment, given: Impulses, tau: np.ndarray) -> np.ndarray:
    """Derivatives (k, nv, 1 + 2 nv + np) of the rates after impulses by `t, q, v, p`; `tau` (k, nv) are the drives."""
    _require_smooth(laws, at, given)
    s, P, m, nv = given.s, given.P, given.P.shape[1], given.v.shape[1]
    du, dWP, dmu, de, dYP = np.split(_by_state(laws, at, given, tau), [m, 2 * m, 3 * m, 4 * m], axis=1)
    closed = given.found.mode == CLOSED
    bounces = closed & (given.e != 0.0) & (s.u < 0.0)
    e = np.where(bounces, given.e, 0.0)[..., None]
    right = -((1 + e) * du + np.where(bounces, s.u, 0.0)[..., None] * de + dWP)
    A = np.where(closed[:, :, None], s.W, np.eye(m))
    right = np.where(closed[..., None], right, 0.0)
    for r, n in enumerate(laws.table.normal):
        slips = laws.table.of(Law.FRICTION)[r] & ~closed[:, r] & (given.found.direction[:, r] != 0) & (n >= 0)
        d = np.where(slips, given.found.direction[:, r], 0.0)
        if d.any():
            A[:, r, n] += d * s.bound[:, r, 1]
            right[:, r] -= (d * P[:, n])[:, None] * dmu[:, r]
    dP = np.linalg.pinv(A, rcond=RANK) @ right
    D = dYP + s.Y @ dP
    D[:, :, 1 + nv : 1 + 2 * nv] += np.eye(nv)
    return np.asarray(D)


def _require_smooth(laws: ModeLaws, at: Moment, given: Impulses) -> None:
    """Refuse impacts whose law is not one of those above."""
    disc = laws.table.in_disc
    by_reaction = (given.s.reaction != 0).any(axis=(0, 2, 3))
    slides = (given.found.mode == OPEN) & laws.table.of(Law.FRICTION) & (given.P != 0)
    apart = np.abs(given.P - given.found.x).max(axis=1) > SAME * np.abs(given.P).max(axis=1, initial=1e-300)
    for bad, why in (
        (
            np.full(len(given.P), given.rule != NEWTON),
            f"its law is {given.rule!r}, and only 'newton' is",
        ),
        ((slides & disc).any(axis=1), "friction in two directions slides in it"),
        ((slides & by_reaction).any(axis=1), "friction that depends on a reaction slides in it"),
        (apart, "friction and restitution together are limited there so that no energy is gained"),
    ):
        if bad.any() and given.P[bad].any():
            t = at.t[given.systems[np.flatnonzero(bad)[0]]]
            raise InputError(f"derivatives of a run: the impact at t = {t:.6g} s is not differentiated: {why}")


def _by_state(laws: ModeLaws, at: Moment, given: Impulses, tau: np.ndarray) -> np.ndarray:
    """Derivatives (k, 4 m + nv, 1 + 2 nv + np) of what `formulation.law_impulses` gives."""
    model, way, rows = laws.model, laws.formulation, given.systems
    time = ("t",) if model.depends_on_time else ()
    wanted = By((*time, "q", "v", PARAMETERS))

    def make() -> Any:
        prepare(model, way)
        kept = kept_rows(model, way)
        written = differentiated(law_impulses(model, way, kept), wanted, model)
        return compile_quantity(model, written, f"{way.facts(model)} rows {kept} {wanted.key}", looped=False)

    kernel = _SLOPES.find(model, way.key, make).at_values(np.ascontiguousarray(at.p[rows]))
    t = time_argument(model, at.t[rows])
    value, *found = kernel(at.q[rows], given.v, tau, *t, given.P)
    by_t = found.pop(0) if time else np.zeros((*value.shape, 1))
    return np.concatenate([by_t.reshape(*value.shape, 1), *found], axis=2)
