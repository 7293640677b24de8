"""Stability of an equilibrium or a steady motion, in the directions that are open to disturbances.

Disturbances `z` obey `M z'' + D z' + K z = 0`. At rest, where the stiffness `K` is symmetric (forces have a potential)
and nothing feeds energy in, every negative eigenvalue of `K` is an unstable direction, with damping and without
(Kelvin and Tait; Chetaev), and a zero one a neutral direction. Else the
eigenvalues `s` of the motion `exp(s t)` decide: unstable directions are those that grow. So they do with variables `x`
that have a rate: `M z'' + D z' + K z + L x = 0`, `x' = G_z z + G_w z' + G_x x`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from cardan.algebra.free_number import nominal
from cardan.analysis.statics.balance import Point, displacement_sizes, point_at, resistance, variable_rates
from cardan.analysis.statics.large_balance import is_large_balance, large_balance
from cardan.formulation.spatial import SPATIAL
from cardan.formulation.tree import RATES
from cardan.functions.derivatives import with_derivatives
from cardan.structure.kernels import time_argument, tree_kernel

SOFT = 1e-10  # of the largest stiffness: less is none
STILL = 1e-6  # of the largest eigenvalue: rounding of a multiple eigenvalue grows to its root
SYMMETRIC = 1e-8


@dataclass(frozen=True, eq=False)
class Stability:
    """Counts of unstable and neutral directions (n,), and eigenvalues (n, 2 k), 1/s; NaN where there are fewer."""

    unstable: np.ndarray
    neutral: np.ndarray
    eigenvalues: np.ndarray
    stiffness: np.ndarray
    """Eigenvalues (n, k) of the symmetric part of the stiffness, ascending, N m and N."""


def stability(point: Point) -> Stability:
    """Judge balanced configurations. What a drive holds stays held; whatever no drive holds is free."""
    task = point.task
    if task.is_symmetric:
        return judged(point)
    kept = tuple(sorted(set(task.held) & set(task.driven)))
    states = task.changes[: len(task.variables)]
    given = replace(task, held=kept, driven=kept, changes=states, p=task.values(point.x), v=point.v, tau=point.tau)
    return judged(point_at(given, point.q, np.zeros((len(point.q), len(states)))))


def _inertia_and_damping(point: Point) -> tuple[np.ndarray, np.ndarray]:
    """Derivatives (n, nv, nv) of the forces by accelerations and by rates; the constraints' own accelerations too."""
    task, parts = point.task, point.parts
    if task.moving:
        M = parts.of(0, "a")
        return M, parts.of(0, "v") - M @ point.P @ parts.of(3, "v")
    model = task.model_at(point.x)
    M = np.asarray(tree_kernel(model, "mass_matrix")(point.q))
    if not model.has_loads:
        return M, np.zeros_like(M)
    if is_large_balance(model, task.formulation):
        still = np.zeros_like(point.v)
        none = np.zeros((len(point.q), len(model.rows)))
        return M, large_balance(model, task.t, True, point.q, still, still, none)[1]["v"][:, : model.nv]
    args = (point.q, np.zeros_like(point.v), *time_argument(model, task.t))
    written = resistance(task.model, task.formulation)
    return M, with_derivatives(task.owner, model, "v", "tangent", written, task.formulation, args)["v"]


def _turning(point: Point) -> np.ndarray:
    """`C` (n, nv, nv) with `delta' = dv + C delta`: how a displacement changes because its axes move with the rates.

    `q = plus(q0, delta)` moves with `N(q) v`, so that `N C delta` is the difference of the two second derivatives. It
    is zero for joints whose rates are those of their coordinates.
    """
    n, model, v = len(point.q), point.task.model, point.v
    if model.nq == model.nv or not point.task.moving:
        return np.zeros((n, model.nv, model.nv))

    def by_q(rates: np.ndarray) -> np.ndarray:
        q = point.q if rates.ndim == 2 else point.q[:, None]
        return with_derivatives(point.task.owner, model, "q", "tangent", RATES, SPATIAL, (q, rates))["q"]

    units = np.broadcast_to(np.eye(model.nv), (n, model.nv, model.nv))
    N = np.swapaxes(np.asarray(tree_kernel(model, "rates")(point.q[:, None], units)), 1, 2)
    own = np.swapaxes((by_q(units) @ v[:, None, :, None])[..., 0], 1, 2)
    return np.asarray(np.linalg.pinv(N) @ (by_q(v) - own))


def judged(point: Point) -> Stability:
    """Stability at a point whose held coordinates are those that are driven."""
    W, Y, n = point.W, point.Y, len(point.q)
    K = point.A[:, : Y.shape[-1], : point.n_directions]
    Yt = np.swapaxes(Y, 1, 2)
    M, D = (Yt @ part @ Y for part in _inertia_and_damping(point))
    D2 = displacement_sizes(point.task.model)[:, None] ** 2
    C = np.swapaxes(W / D2, 1, 2) @ _turning(point) @ W
    # the rate of motions that weight and forces of inertia cause: also where their parts of the stiffness cancel
    model, speed = point.task.model, np.abs(point.v).max(axis=-1, initial=0.0)
    reach = np.max([np.linalg.norm(nominal(x)) for link in model.tree.links for x in (link.r, link.com)], initial=0.0)
    rate = np.sqrt(speed**2 + np.linalg.norm(model.gravity) / (reach or 1.0))
    at_rest = np.abs(point.v).max(axis=-1, initial=0.0) == 0.0
    k = K.shape[-1]
    found = Stability(
        np.zeros(n, dtype=int),
        np.zeros(n, dtype=int),
        np.full((n, k + Y.shape[-1] + len(point.task.variables)), np.nan + 0j),
        np.full((n, k), np.nan),
    )
    # columns of zeros fill up where a system has fewer directions than others
    real = np.concatenate([np.abs(B).max(axis=1, initial=0.0) > 0 for B in (W, Y)], axis=1)
    for pattern in np.unique(real, axis=0):
        which = np.flatnonzero((real == pattern).all(axis=1))
        w, y = np.flatnonzero(pattern[:k]), np.flatnonzero(pattern[k:])
        blocks = ((M, y, y), (D, y, y), (K, y, w), (C, w, w))
        own = tuple(B[which][:, rows][:, :, columns] for B, rows, columns in blocks)
        along = Yt[which][:, y] @ (W / D2)[which][:, :, w]
        states = None if not point.task.variables else _states_of(point, which, y, w)
        _judge(found, which, at_rest[which], rate[which], own, along, states)
    return found


@dataclass(frozen=True)
class States:
    """Parts `L`, `G_z`, `G_w`, `G_x` of the equations of variables with a rate, and the derivatives of all of `F`."""

    L: np.ndarray
    G_z: np.ndarray
    G_w: np.ndarray
    G_x: np.ndarray
    whole: np.ndarray


def _states_of(point: Point, which: np.ndarray, y: np.ndarray, w: np.ndarray) -> States:
    """Those of systems with the same directions `y` of forces and `w` of displacements."""
    task, k = point.task, point.n_directions
    m = len(task.variables)
    sizes = np.array([c.size for c in task.changes[:m]])
    x = k + np.arange(m)
    model, weights = task.model_at(point.x), task.weights[which][..., None]
    by_rates = variable_rates(task, model, point.q, point.v)[1]["v"][which]
    forces, rates = point.A[which][:, y], point.A[which][:, -m:]
    scaled = np.concatenate([forces, rates], axis=1)
    whole = np.concatenate([scaled[:, :, w], scaled[:, :, x] * sizes], axis=2)
    return States(
        forces[:, :, x], rates[:, :, w] / weights, by_rates @ point.Y[which][:, :, y], rates[:, :, x] / weights, whole
    )


def _judge(
    found: Stability, which: np.ndarray, at_rest: np.ndarray, rate: np.ndarray, equations: tuple[np.ndarray, ...],
    along: np.ndarray, states: States | None,
) -> None:  # fmt: skip
    """Judge systems with equally many directions, and write the findings down."""
    M, D, K, C = equations
    s = motions(M, D, K, C, along, states)
    found.eigenvalues[which, : s.shape[1]] = s
    gross = np.abs(M).max(axis=(1, 2), initial=0.0) * rate**2
    soft = SOFT * np.maximum(np.abs(K).max(axis=(1, 2), initial=0.0), gross)[:, None]
    largest = np.maximum(np.nanmax(np.abs(s), axis=1, initial=0.0), rate)[:, None]
    unstable = (s.real > STILL * largest).sum(axis=1)
    neutral = K.shape[2] - (np.linalg.svd(K, compute_uv=False) > soft).sum(axis=1)
    if states is not None:
        sizes = np.linalg.svd(states.whole, compute_uv=False)
        neutral = states.whole.shape[2] - (sizes > SOFT * np.maximum(sizes[:, :1], soft / SOFT)).sum(axis=1)
    elif K.shape[1] == K.shape[2]:
        own = np.linalg.eigvalsh((K + _turned(K)) / 2)
        found.stiffness[which, : own.shape[1]] = own
        skew = np.abs(K - _turned(K)).max(axis=(1, 2), initial=0.0)[:, None]
        feeding = np.linalg.eigvalsh((D + _turned(D)) / 2).min(axis=1, initial=0.0)
        conservative = (skew * SOFT <= SYMMETRIC * soft)[:, 0]
        conservative &= feeding >= -1e-9 * np.abs(D).max(axis=(1, 2), initial=0.0)
        conservative &= at_rest | ((own > soft).all(axis=1) & ~C.any(axis=(1, 2)))
        unstable = np.where(conservative, (own < -soft).sum(axis=1), unstable)
    found.unstable[which], found.neutral[which] = unstable, neutral


def _turned(A: np.ndarray) -> np.ndarray:
    return np.swapaxes(A, 1, 2)


def motions(
    M: np.ndarray, D: np.ndarray, K: np.ndarray, C: np.ndarray, along: np.ndarray, states: States | None = None
) -> np.ndarray:
    """Eigenvalues `s` (n, k), 1/s, of `z' = along^T w + C z`, `M w' + D w + K z = 0`; largest real part first.

    With `states` those of the equations above. Freedoms without inertia have none: NaN.
    """
    n, y, w = K.shape
    m = 0 if states is None else states.G_x.shape[1]
    size, own = w + y + m, slice(w, w + y)
    found = np.full((n, size), np.nan + 0j)
    if size == 0:
        return found
    left = np.zeros((n, size, size))
    left[:, :w, :w], left[:, :w, own], left[:, own, :w], left[:, own, own] = C, _turned(along), -K, -D
    if states is not None:
        rest = slice(w + y, size)
        left[:, own, rest], left[:, rest, rest] = -states.L, states.G_x
        left[:, rest, :w], left[:, rest, own] = states.G_z, states.G_w
    heavy = np.ones(n, dtype=bool)
    if y:
        inertia = np.linalg.eigvalsh((M + _turned(M)) / 2)
        heavy = inertia[:, 0] > 1e-12 * inertia[:, -1]
        left[heavy, own] = np.linalg.solve(M[heavy], left[heavy, own])
    found[heavy] = np.linalg.eigvals(left[heavy])
    for i in np.flatnonzero(~heavy):
        from scipy.linalg import eigvals

        right = np.eye(size)
        right[own, own] = M[i]
        s, below = eigvals(left[i], right, homogeneous_eigvals=True)
        finite = np.abs(below) > 1e-12 * np.abs(s)
        found[i, : finite.sum()] = s[finite] / below[finite]
    order = np.lexsort((found.imag, -found.real), axis=-1)  # NaN comes last
    return np.take_along_axis(found, order, axis=1)
