"""Stability of an equilibrium or a steady motion, in the directions that are open to disturbances.

Disturbances `z` obey `M z'' + D z' + K z = 0`. At rest, where the stiffness `K` is symmetric (forces have a potential)
and nothing feeds energy in, every negative eigenvalue of `K` is an unstable direction, with damping and without
(Kelvin and Tait; Chetaev), and a zero one a neutral direction. Else the
eigenvalues `s` of the motion `exp(s t)` decide: unstable directions are those that grow.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from cardan.analysis.balance import Point, Task, point_at, resistance
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


def stability(task: Task, q: np.ndarray, x: np.ndarray) -> Stability:
    """Judge configurations (n, nq) that are balanced. What a drive holds stays held."""
    kept = tuple(sorted(set(task.held) & set(task.driven)))
    here = point_at(task, q, x)
    # the drives and rates found are now given, and whatever no drive holds is free
    full = replace(task, held=kept, driven=kept, changes=(), p=task.values(x), v=here.v, tau=here.tau)
    return judged(point_at(full, q, np.zeros((len(q), 0))))


def _inertia_and_damping(point: Point) -> tuple[np.ndarray, np.ndarray]:
    """Derivatives (n, nv, nv) of the forces by accelerations and by rates; the constraints' own accelerations too."""
    task, parts = point.task, point.parts
    if task.moving:
        M = parts.of(0, "a")
        return M, parts.of(0, "v") - M @ point.P @ parts.of(3, "v")
    model = task.model_at(point.x)
    M = np.asarray(tree_kernel(model, "mass_matrix")(point.q))
    if not model.forces:
        return M, np.zeros_like(M)
    args = (point.q, np.zeros_like(point.v), *time_argument(model, task.t))
    written = resistance(task.model, task.formulation)
    return M, with_derivatives(task.owner, model, "v", "tangent", written, task.formulation, args)["v"]


def judged(point: Point) -> Stability:
    """Stability at a point whose held coordinates are those that are driven."""
    W, Y, K, n = point.W, point.Y, point.A, len(point.q)
    Yt = np.swapaxes(Y, 1, 2)
    M, D = (Yt @ part @ Y for part in _inertia_and_damping(point))
    at_rest = np.abs(point.v).max(axis=-1, initial=0.0) == 0.0
    k = K.shape[-1]
    values = np.full((n, k + Y.shape[-1]), np.nan + 0j)
    unstable, neutral = np.zeros(n, dtype=int), np.zeros(n, dtype=int)
    stiffness = np.full((n, k), np.nan)
    for i in range(n):
        # columns of zeros fill up where a system has fewer directions than others
        w, y = (np.flatnonzero(np.abs(B[i]).max(axis=0, initial=0.0) > 0) for B in (W, Y))
        Ki, Di, Mi = K[i][np.ix_(y, w)], D[i][np.ix_(y, y)], M[i][np.ix_(y, y)]
        s = motions(Mi, Di, Ki, Yt[i][y] @ W[i][:, w])
        values[i, : len(s)] = s
        most = np.abs(Ki).max(initial=0.0)
        if len(w) == len(y) and len(w):
            stiffness[i, : len(w)] = np.linalg.eigvalsh((Ki + Ki.T) / 2)
        own = stiffness[i, : len(w)]
        conservative = len(w) == len(y) and np.abs(Ki - Ki.T).max(initial=0.0) <= SYMMETRIC * most
        feeds = len(y) and np.linalg.eigvalsh((Di + Di.T) / 2)[0] < -1e-9 * np.abs(Di).max(initial=0.0)
        if conservative and (not feeds) and (at_rest[i] or (own > SOFT * most).all()):
            unstable[i], neutral[i] = (own < -SOFT * most).sum(), (np.abs(own) <= SOFT * most).sum()
        else:
            largest = np.abs(s).max(initial=0.0)
            unstable[i] = (s.real > STILL * largest).sum()
            neutral[i] = len(w) - (np.linalg.svd(Ki, compute_uv=False) > SOFT * most).sum()
    return Stability(unstable, neutral, values, stiffness)


def motions(M: np.ndarray, D: np.ndarray, K: np.ndarray, along: np.ndarray) -> np.ndarray:
    """Eigenvalues `s`, 1/s, of `z' = along^T w`, `M w' + D w + K z = 0`; freedoms without inertia have none."""
    from scipy.linalg import eig

    w, y = K.shape[1], K.shape[0]
    if w + y == 0:
        return np.zeros(0, dtype=complex)
    left = np.block([[np.zeros((w, w)), along.T], [-K, -D]])
    right = np.block([[np.eye(w), np.zeros((w, y))], [np.zeros((y, w)), M]])
    s = eig(left, right, right=False, homogeneous_eigvals=True)
    finite = np.abs(s[1]) > 1e-12 * np.abs(s[0])
    found = s[0][finite] / s[1][finite]
    return np.asarray(found[np.lexsort((found.imag, -found.real))])
