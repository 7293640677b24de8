"""Closing the loops of many systems at once, each as if it were alone: damped least squares as in `assemble`.

A system that cannot be closed does not stop the others: the result says which could not, and why. What is computed for
a system depends on its own numbers alone, to the bit, not on those of the others or on how many there are.
"""

from __future__ import annotations

import numpy as np

from cardan.errors import ModelError
from cardan.model.model import Model
from cardan.structure.assemble import (
    ITERATIONS,
    LONGEST_STEP,
    STEEP,
    TOLERANCE,
    _cannot,
    _place,
    _reach,
    _require_same_rank,
    constraint_kernels,
)
from cardan.structure.kernels import time_argument, tree_kernel
from cardan.structure.rows import SMALL, independent_rows, row_sizes, scaled
from cardan.structure.sparse_rows import has_sparse_rows


def close_each(model: Model, q: np.ndarray, free: np.ndarray, t: float = 0.0) -> tuple[np.ndarray, dict[int, str]]:
    """Configurations (n, nq) near `q` (n, nq) with every loop closed, and why by number where that is impossible.

    Args:
        model: the mechanism; values of its free parameters, if any, are those of n systems.
        q: guesses (n, nq), rad and m.
        free: mask (nv,) of the rates along which they may be moved.
        t: time, s, for prescribed motions.

    """
    q = np.array(q, dtype=float)
    if not model.has_rows or not len(q):
        return q, {}
    if has_sparse_rows(model):
        return _one_by_one(model, q, free, t)
    found, phi, slope = _damped_steps(model, q, free, t)
    gap = np.abs(phi).max(axis=-1)
    reasons = {}
    for i in np.flatnonzero(~(gap <= 1e3 * TOLERANCE * max(1.0, _reach(model)))):
        reasons[int(i)] = str(_cannot(model.one_of((int(i),)), np.nan_to_num(phi[i], nan=np.inf), free, ()))
    for i in np.flatnonzero(slope > STEEP):  # a joint may be turned over there
        if int(i) not in reasons:
            try:
                found[i] = _place(model.one_of((int(i),)), q[i], free, t, TOLERANCE, ())
            except ModelError as error:
                reasons[int(i)] = str(error)
    return found, reasons


def _one_by_one(model: Model, q: np.ndarray, free: np.ndarray, t: float) -> tuple[np.ndarray, dict[int, str]]:
    """The same of large mechanisms, whose rows are sparse."""
    reasons = {}
    for i in range(len(q)):
        try:
            q[i] = _place(model.one_of((i,)), q[i], free, t, TOLERANCE, ())
        except ModelError as error:
            reasons[i] = str(error)
    return q, reasons


def ranks_that_differ(model: Model, q: np.ndarray) -> dict[int, str]:
    """Systems whose values of free parameters make constraints independent that nominally are redundant, and why.

    `q` (n, nq) are closed configurations of the n systems.
    """
    usual = len(independent_rows(model)) if model.has_rows else 0
    if model.values is None or not model.has_rows or usual == min(len(model.rows), model.nv):
        return {}
    doubtful = np.arange(len(q))
    if not has_sparse_rows(model):
        rows = np.asarray(constraint_kernels(model)[1](q, *time_argument(model, 0.0))[0])
        found = np.linalg.svd(_scaled_each(model, rows), compute_uv=False)[:, usual]
        doubtful = np.flatnonzero(found > SMALL / 10)
    reasons = {}
    for i in doubtful:
        try:
            _require_same_rank(model.one_of((int(i),)), q[i], ())
        except ModelError as error:
            reasons[int(i)] = str(error)
    return reasons


def _scaled_each(model: Model, rows: np.ndarray) -> np.ndarray:
    """Rows (n, nl, nv) of unit length, zeros where they are rounding."""
    return scaled(rows.reshape(-1, rows.shape[-1]), np.tile(row_sizes(model), len(rows))).reshape(rows.shape)


def _damped_steps(model: Model, q: np.ndarray, free: np.ndarray, t: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Configurations (n, nq), residuals (n, nl) there and their steepest slopes (n,), by Levenberg-Marquardt steps.

    After the gap of a system is below the tolerance one more step closes it to rounding.
    """
    plus, at = tree_kernel(model.unbound, "plus"), time_argument(model, t)
    q = q.copy()
    phi, G = _residuals(model, q, None, at)
    weight, last = np.ones(len(q)), np.zeros(len(q), dtype=bool)
    active = np.flatnonzero(np.isfinite(phi).all(axis=-1))
    for _ in range(ITERATIONS):
        gap = np.sqrt((phi[active] ** 2).sum(axis=-1))
        ended = last[active] | (gap == 0)
        active, gap = active[~ended], gap[~ended]
        if not len(active):
            break
        last[active] = np.abs(phi[active]).max(axis=-1) <= TOLERANCE
        J = G[active][..., free]
        A = J @ np.swapaxes(J, -1, -2)
        damping = np.maximum(np.where(last[active], 0.0, weight[active] * gap), 1e-14 * np.trace(A, axis1=-2, axis2=-1))
        damping = np.maximum(damping, np.finfo(float).tiny)
        A[..., range(A.shape[-1]), range(A.shape[-1])] += damping[:, None]
        step = np.zeros((len(active), model.nv))
        step[:, free] = -(np.swapaxes(J, -1, -2) @ np.linalg.solve(A, phi[active][..., None]))[..., 0]
        length = np.sqrt((step**2).sum(axis=-1))
        step *= np.minimum(1.0, LONGEST_STEP / np.maximum(length, 1e-300))[:, None]
        moved = np.asarray(plus(q[active], step))
        new_phi, new_G = _residuals(model, moved, active, at)
        closer = np.sqrt((new_phi**2).sum(axis=-1)) < gap
        taken = active[closer]
        q[taken], phi[taken], G[taken] = moved[closer], new_phi[closer], new_G[closer]
        weight[active] = np.where(closer, np.maximum(weight[active] / 4, 1e-6), weight[active] * 4)
        stuck = ~closer & ((weight[active] > 4e9) | (length < 1e-15))
        active = active[~stuck]
    return q, phi, np.abs(G).max(axis=(-1, -2), initial=0.0)


def _residuals(
    model: Model, q: np.ndarray, systems: np.ndarray | None, at: tuple[np.ndarray, ...]
) -> tuple[np.ndarray, np.ndarray]:
    """Residuals (k, nl) and their slopes (k, nl, nv) of some of the systems, all by default."""
    if systems is not None and model.values is not None and model.values.ndim > 1:
        model = model.unbound._bound(model.values[systems])
    phi, G = constraint_kernels(model)[0](q, *at)
    return np.array(phi), np.array(G)
