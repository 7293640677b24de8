"""Linear systems without branches: dense L D L^T, L^T D L along a tree, and a sparse L U.

Notation: `A = L D L^T` with unit lower triangular `L`. In a graph the loops below are unrolled, and structural zeros
cost nothing. Pivoting is not needed: the matrices are positive definite or, in `lu_factor` for the unsymmetric matrices
of Newton's method, close to positive definite.

Source: RBDA section 6.5 for the tree-sparse factorisation, which creates no fill-in; H. M. Markowitz, The elimination
form of the inverse, Management Science 3 (1957) 255-269, for the order in which `lu_factor` eliminates.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

import numpy as np

from cardan.algebra.matrix import AnyMatrix, Matrix, Scalar, is_symbol


@dataclass(frozen=True)
class Factor:
    """`L` below the diagonal (list of rows) and the reciprocals of `D`."""

    L: list[list[Scalar]]
    reciprocal: list[Scalar]


def ldl_factor(A: AnyMatrix) -> Factor:
    """Factor a symmetric positive definite matrix as `L D L^T` (its upper triangle is read)."""
    n = A.shape[0]
    L: list[list[Scalar]] = [[0] * n for _ in range(n)]
    W: list[list[Scalar]] = [[0] * n for _ in range(n)]  # W = L D, so that each product is formed once
    reciprocal: list[Scalar] = []
    for j in range(n):
        d = A[j, j]
        for k in range(j):
            d = d - L[j][k] * W[j][k]
        reciprocal.append(1 / d)
        for i in range(j + 1, n):
            w = A[j, i]
            for k in range(j):
                w = w - W[i][k] * L[j][k]
            W[i][j], L[i][j] = w, w * reciprocal[j]
    return Factor(L, reciprocal)


def ldl_solve(factor: Factor, B: AnyMatrix) -> AnyMatrix:
    """Solve `A X = B` for a vector, or a matrix of columns."""
    n = len(factor.reciprocal)
    is_vector = not is_symbol(B) and B.ndim == 1
    if is_symbol(B):
        X = type(B)(B)
    else:
        X = B.reshape(n, 1).copy() if is_vector else B.copy()
    for i in range(n):
        for k in range(i):
            X[i, :] = X[i, :] - factor.L[i][k] * X[k, :]
    for i in range(n):
        X[i, :] = X[i, :] * factor.reciprocal[i]
    for i in reversed(range(n)):
        for k in range(i + 1, n):
            X[i, :] = X[i, :] - factor.L[k][i] * X[k, :]
    return X[:, 0] if is_vector else X


def tree_factor(H: AnyMatrix, ancestor: Sequence[int]) -> Factor:
    """Factor a joint-space inertia `H = L^T D L`, whose zeros follow the tree.

    `ancestor[i]` is the next coordinate from coordinate i towards the root, or -1.
    """
    n = H.shape[0]
    L: list[list[Scalar]] = [[0] * n for _ in range(n)]
    work = {(i, j): H[i, j] for i in range(n) for j in _path(i, ancestor)}
    reciprocal: list[Scalar] = [0] * n
    for k in reversed(range(n)):
        reciprocal[k] = 1 / work[k, k]
        for i in _path(ancestor[k], ancestor) if ancestor[k] >= 0 else []:
            L[k][i] = work[k, i] * reciprocal[k]
            for j in _path(i, ancestor):
                work[i, j] = work[i, j] - L[k][i] * work[k, j]
    return Factor(L, reciprocal)


def tree_solve(factor: Factor, ancestor: Sequence[int], b: AnyMatrix) -> AnyMatrix:
    """Solve `H x = b` with the factor of `tree_factor`; `b` is a vector or a matrix of columns."""
    n = len(factor.reciprocal)
    x = [b[i, :] if is_symbol(b) else np.array(b[i]) for i in range(n)]
    for k in reversed(range(n)):
        for i in _path(ancestor[k], ancestor) if ancestor[k] >= 0 else []:
            x[i] = x[i] - factor.L[k][i] * x[k]
    for i in range(n):
        x[i] = x[i] * factor.reciprocal[i]
    for k in range(n):
        for i in _path(ancestor[k], ancestor) if ancestor[k] >= 0 else []:
            x[k] = x[k] - factor.L[k][i] * x[i]
    if not is_symbol(b):
        return np.array(x)
    import casadi as ca

    return ca.vertcat(*x)


def tree_inverse_factor(factor: Factor, ancestor: Sequence[int], like: Matrix) -> Matrix:
    """`L^-1` of the factor of `tree_factor`, with the zeros of `L`: `H^-1 = L^-1 D^-1 L^-T`."""
    inverse = type(like).eye(len(ancestor))
    for k, parent in enumerate(ancestor):
        for i in _path(parent, ancestor):
            for j in _path(i, ancestor):
                inverse[k, j] = inverse[k, j] - factor.L[k][i] * inverse[i, j]
    return inverse


@dataclass(frozen=True)
class LU:
    """Pivots in order, and for each the entries `(row, L)` below it and `(column, U)` to its right."""

    order: list[int]
    reciprocal: dict[int, Any]
    L: dict[int, list[tuple[int, Any]]]
    U: dict[int, list[tuple[int, Any]]]


def lu_factor(
    A: Matrix, after: Mapping[int, Set[int]] | None = None, values: Sequence[Any] | None = None
) -> LU:  # fmt: skip
    """Factor a sparse matrix of symbols, with pivots on its diagonal in an order of little fill-in.

    `after` has, for some pivots, the pivots that must come before them. `values` may stand for the entries of A other
    than structural zeros, in their order; the factors then consist of such values.
    """
    rows, columns = A.sparsity().get_triplet()
    values = A.nonzeros() if values is None else values
    work = dict(zip(zip(rows, columns, strict=True), values, strict=True))
    left = set(range(A.shape[0]))
    below: dict[int, set[int]] = {k: set() for k in left}
    right: dict[int, set[int]] = {k: set() for k in left}
    for i, j in work:
        if i != j:
            below[j].add(i)
            right[i].add(j)
    lu = LU([], {}, {}, {})
    while left:
        ready = (k for k in left if after is None or left.isdisjoint(after.get(k, ())))
        p = min(ready, key=lambda k: (len(below[k] & left) * len(right[k] & left), -k))
        left.remove(p)
        lu.order.append(p)
        lu.reciprocal[p] = 1 / work[p, p]
        lu.U[p] = [(j, work[p, j]) for j in sorted(right[p] & left)]
        lu.L[p] = [(i, work[i, p] * lu.reciprocal[p]) for i in sorted(below[p] & left)]
        for i, l_ip in lu.L[p]:
            for j, u_pj in lu.U[p]:
                work[i, j] = work[i, j] - l_ip * u_pj if (i, j) in work else -l_ip * u_pj
                if i != j:
                    below[j].add(i)
                    right[i].add(j)
    return lu


def lu_solve(lu: LU, B: Matrix) -> Matrix:
    """Solve `A X = B` with the factor of `lu_factor`, for a matrix of columns."""
    import casadi as ca

    x = lu_solved(lu, [B[i, :] for i in range(len(lu.order))])
    return ca.vertcat(*x) if x else B


def lu_solved(lu: LU, rows: Sequence[Any]) -> list[Any]:
    """The same for a list of rows, or of the values of which the factors consist."""
    x = list(rows)
    for p in lu.order:
        for i, l_ip in lu.L[p]:
            x[i] = x[i] - l_ip * x[p]
    for p in reversed(lu.order):
        for j, u_pj in lu.U[p]:
            x[p] = x[p] - u_pj * x[j]
        x[p] = x[p] * lu.reciprocal[p]
    return x


def _path(i: int, ancestor: Sequence[int]) -> list[int]:
    """Coordinates from i to the root, i first."""
    path = []
    while i >= 0:
        path.append(i)
        i = ancestor[i]
    return path
