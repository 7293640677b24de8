"""Putting a large mechanism together, as `structure.assemble` does, with sparse rows on the rates of the links.

A step of Levenberg and Marquardt's method moves the links by the least change that takes the gaps away. Only the rows
that close loops are damped: the step obeys those of the tree's joints, and its joint rates move the tree's coordinates.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cardan.model.model import Model
from cardan.structure.sparse_rows import Factor, SparseRows, sparse_rows

ITERATIONS = 60
LONGEST_STEP = 0.5  # rad or m, of a coordinate
STEEP = 1e3  # times a row: a steeper residual is that of directions that are opposite


def close_loops(
    model: Model, q: np.ndarray, free: np.ndarray, t: float, tolerance: float
) -> tuple[np.ndarray, np.ndarray]:
    """The configuration (nq,) nearest to q with every gap below the tolerance, or as near as it gets; and its gaps.

    `free` (nv,) are the coordinates that may move. The gaps (m, rad) are those of `model.rows`.
    """
    rows = sparse_rows(model)
    loops = ~rows.of_tree
    phi, C = rows.residual(q, t)
    weight = 1.0
    for _ in range(ITERATIONS):
        gap = float(np.linalg.norm(phi[loops]))
        if np.abs(phi[loops]).max(initial=0.0) <= tolerance:
            break
        damping = np.where(loops, weight * float(np.abs(phi[loops]).max()), 0.0)
        step = _step(rows, q, C, -phi, free, damping)
        length = float(np.abs(step).max(initial=0.0))
        moved = rows.plus(q, step * min(1.0, LONGEST_STEP / max(length, 1e-300)))
        new_phi, new_C = rows.residual(moved, t)
        if np.linalg.norm(new_phi[loops]) < gap:
            q, phi, C, weight = moved, new_phi, new_C, max(weight / 8, 1e-9)
        elif weight > 1e6 or length < 1e-15:
            break
        else:
            weight *= 8
    if phi[loops].any():  # closed to rounding by one more step, undamped
        moved = rows.plus(q, _step(rows, q, C, -phi, free, 0.0))
        new_phi, _ = rows.residual(moved, t)
        if np.linalg.norm(new_phi[loops]) < np.linalg.norm(phi[loops]):
            q, phi = moved, new_phi
    return q, rows.gaps(q, t)


def _step(
    rows: SparseRows, q: np.ndarray, C: Any, b: np.ndarray, free: np.ndarray, damping: np.ndarray | float
) -> np.ndarray:
    """Rates (nv,) of the tree's joints by which the links move least with `C x = b` (nl,); held joints stay."""
    E = rows.joint_rates(q)
    b = np.where(rows.of_tree, 0.0, b)  # which rounding alone makes others
    if not free.all():
        from scipy.sparse import vstack

        held = np.flatnonzero(~free)
        C, b = vstack([C, E[held]], format="csr"), np.concatenate([b, np.zeros(len(held))])
        damping = np.concatenate([np.broadcast_to(damping, len(b) - len(held)), np.zeros(len(held))])
    found: np.ndarray = E @ Factor(C, damping).smallest(b)
    found[~free] = 0.0
    return found


def steepest(model: Model, q: np.ndarray, t: float) -> str | None:
    """A joint that a closed configuration (nq,) closes with its directions opposite; see `assemble.flipped`."""
    rows = sparse_rows(model)
    C, J = rows.residual(q, t)[1], rows.velocity(q, t)[0]
    slope = abs(C - J).max(axis=1).toarray().ravel()
    far = rows.of_model(np.where(rows.at_position, slope, 0.0)) > STEEP * max(1.0, float(abs(J).max()))
    return model.rows[int(np.argmax(far))].owner if far.any() else None


def consistent_velocity(
    model: Model, q: np.ndarray, v: np.ndarray, free: np.ndarray, t: float, beta: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rates (nv,) with the free ones changed so that `J v = beta`, what is left of that (nl,), and `beta` (nl,).

    The links' rates change least. `beta` of `model.rows` is that at time t unless it is given.
    """
    rows = sparse_rows(model)
    C, given = rows.velocity(q, t)
    if beta is not None:
        given = np.where(rows.of_tree, 0.0, beta[rows.number])
    missing = given - C @ rows.link_rates(q, v)
    moved = v + _step(rows, q, C, missing, free, 0.0)
    left = given - C @ rows.link_rates(q, moved)
    return moved, rows.of_model(left), rows.of_model(given)
