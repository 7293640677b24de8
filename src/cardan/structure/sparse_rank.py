"""Which constraint rows of a large mechanism depend on one another, by sparse elimination.

Rows are eliminated one after the other; a pivot is the square of what a row has beyond those before it. First in an
order with little fill: where every pivot is far from rounding, all rows are independent. Otherwise with the rows of the
tree's joints first, which never depend on one another, so that a row without a pivot is one of a loop that can be left
out. The choice is checked: random combinations of the rows left out lie in the span of those kept.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cardan.errors import ModelError
from cardan.model.model import Model
from cardan.structure.sparse_rows import Factor, sparse_rows

PIVOTS = (1e-8, 1e-9, 1e-10, 1e-11)  # of rows of unit length: less is dependence, as far as the check agrees
SPANNED = 1e-6  # of rows of unit length: what a combination of rows has beyond others, at most, where these span it
TRIALS = 4


def independent_at(model: Model, q: np.ndarray, among: np.ndarray | None = None) -> list[int]:
    """Numbers of `model.rows` that are independent at a configuration (nq,) and span all of them.

    `among` (number of rows,) restricts the choice to some of them.
    """
    rows = sparse_rows(model)
    C = rows.velocity(q, 0.0)[0]
    chosen = np.ones(len(rows.of_tree), dtype=bool)
    if among is not None:
        chosen = rows.of_tree | among[rows.number]
    kept = _kept(model.name, C[chosen], rows.of_tree[chosen])
    numbers = rows.number[chosen][kept]
    return sorted(int(k) for k in numbers[numbers >= 0])


def spans(model: Model, q: np.ndarray, kept: list[int]) -> bool:
    """Whether some of `model.rows` are independent at a configuration (nq,), and span all of them."""
    rows = sparse_rows(model)
    C, own = rows.velocity(q, 0.0)[0], rows.of_tree.copy()
    own |= np.isin(rows.number, kept)
    factor = Factor(C[own])
    return bool((factor.pivots() > PIVOTS[0]).all()) and _in_span(factor, C[~own])


def left_out_by_plane(model: Model) -> list[int]:
    """Numbers of `model.rows` that are zero in the plane in which the tree's joints move the links."""
    return sparse_rows(model).out_of_plane


def _kept(name: str, C: Any, of_tree: np.ndarray) -> np.ndarray:
    """Which rows (nl,) to keep: those of the tree, and of the others as many as are independent."""
    factor = Factor(C)
    pivots = factor.pivots()
    if (pivots > PIVOTS[0]).all():
        return np.ones(len(of_tree), dtype=bool)
    order = np.argsort(factor.place)
    order = np.concatenate([order[of_tree[order]], order[~of_tree[order]]])
    pivots = Factor(C, order=order).pivots()
    for least in PIVOTS:
        kept = of_tree | (pivots > least)
        if kept.all() or _in_span(Factor(C[kept]), C[~kept]):
            return kept
    raise ModelError(
        f"model {name!r}: its constraint rows are too nearly dependent for a choice to be made at this size; change "
        "dimensions that almost coincide"
    )


def _in_span(factor: Factor, D: Any) -> bool:
    """Whether the rows D lie in the span of those factored, by random combinations."""
    rng = np.random.default_rng(5)
    length = np.sqrt(np.asarray(D.multiply(D).sum(axis=1)).ravel())
    for _ in range(TRIALS if len(length) else 0):
        weight = rng.choice([-1.0, 1.0], len(length)) / np.where(length > 0, length, 1.0)
        r = D.T @ weight
        left = r - factor.along(r)
        if np.abs(left).max() > SPANNED:
            return False
    return True
