"""Solving `M vdot + J^T lam = f`, `J vdot = gamma` as straight-line text.

The multipliers come first: `A lam = J M^-1 f - gamma` with `A = J M^-1 J^T`, sparse wherever loops share no body,
factored in the order that creates least fill-in (CasADi's LDL^T with approximate minimum degree). `M^-1` is applied
by whatever fits the coordinates: along the tree, or body by body. With six rates a body, `A` fills up where many joints
share a body, as at the trunk of a robot. Then rates and multipliers are eliminated together, from the leaves to the
root: a body, then the rows of its joint, which fill nothing but the block of its parent (D. Baraff, Linear-time
dynamics using Lagrange multipliers, SIGGRAPH 1996). Without loops this is always done, with loops where it takes fewer
operations.

Where the rows lose rank at some configuration, `A` is singular there, and a pivot `d` is nothing but rounding. So the
reciprocal of `d` is `d / (d^2 + e^2)`, with `eps = 1e-13` of the diagonal of `A` as `e`, as in `program.elimination`.
Away from such configurations nothing is left of eps (its square), at them the answer stays bounded. In tree coordinates
it is then the limit from either side; with six coordinates a body it is, within about 1e-6 rad, that of the mechanism
with its momentary freedoms (Gauss' principle). Docs: docs/decisions/0008, 0077.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import numpy as np

from cardan.algebra.linsolve import tree_factor, tree_solve
from cardan.algebra.matrix import Matrix, constant, mirrored
from cardan.model.model import Model

REGULARISATION = 1e-12
SMALL_PIVOT = 1e-13  # of the diagonal: pivots below count less and less
LENT_CORRECTIONS = 3
_ADDED: ContextVar[tuple[Any, Any]] = ContextVar("shares of eps and of lent inertia", default=(1.0, 1.0))

Inverse = Callable[[Matrix], Matrix]  # B -> M^-1 B


@dataclass(frozen=True)
class Elimination:
    """An order in which accelerations, and multipliers, which are counted after them, can be eliminated together.

    If `settled`, the rows are independent at every configuration.
    """

    order: tuple[int, ...]
    settled: bool


@contextmanager
def with_less_added(eps: Any, lent: Any) -> Iterator[None]:
    """Within this context graphs are written with these shares, numbers or symbols, of `eps` and of lent inertia.

    The answer must not change: `structure.magnification` looks whether it does.
    """
    token = _ADDED.set((eps, lent))
    try:
        yield
    finally:
        _ADDED.reset(token)


def solve_constrained(
    inverse: Callable[[Matrix], Inverse], M: Matrix, lent: np.ndarray, J: Matrix, f: Matrix, gamma: Matrix,
    together: Elimination | None = None,
) -> tuple[Matrix, Matrix]:  # fmt: skip
    """Accelerations and multipliers; `inverse(M)` applies the inverse of a matrix with the structure of `M`.

    `lent` (nv,) is inertia lent to rates that have none by themselves (`formulation.light`); the answer is corrected
    for it. `together` is how to eliminate accelerations and multipliers together, where that may be better.
    """
    if not lent.any():
        return _solver(inverse(M), M, J, together)(f, gamma)
    added = _ADDED.get()[1] * constant(np.diag(lent))
    solve = _solver(inverse(M + added), M + added, J, together)
    a, lam = solve(f, gamma)
    settled, da = together is not None and together.settled, a
    for k in range(LENT_CORRECTIONS):
        if settled and k < LENT_CORRECTIONS - 1:  # what is left in exact arithmetic; the last time also of rounding
            left = added @ da, type(gamma)(*gamma.shape)
        else:
            left = f - M @ a - J.T @ lam, gamma - J @ a
        da, dlam = solve(*left)
        a, lam = a + da, lam + dlam
    return a, lam


def along_tree(model: Model) -> Callable[[Matrix], Inverse]:
    """Invert a joint-space inertia by factoring it along the tree, without fill-in."""
    above = model.tree.coordinate_ancestor()

    def inverse(M: Matrix) -> Inverse:
        factor = tree_factor(M, above)
        return lambda B: tree_solve(factor, above, B)

    return inverse


def _solver(
    apply_inverse: Inverse, M: Matrix, J: Matrix, together: Elimination | None
) -> Callable[[Matrix, Matrix], tuple[Matrix, Matrix]]:
    """Factor once; solve for any right-hand sides."""
    if J.shape[0] == 0:
        return lambda f, gamma: (apply_inverse(f), gamma)
    Y = apply_inverse(J.T)
    if together is not None and (together.settled or _operations_together(M, J, together) < _operations_apart(J, Y)):
        return _together(M, J, Y, together)
    multipliers = semidefinite(mirrored(J @ Y))

    def solve(f: Matrix, gamma: Matrix) -> tuple[Matrix, Matrix]:
        a = apply_inverse(f)
        lam = multipliers(J @ a - gamma)
        return a - Y @ lam, lam

    return solve


def _together(
    M: Matrix, J: Matrix, Y: Matrix, together: Elimination
) -> Callable[[Matrix, Matrix], tuple[Matrix, Matrix]]:
    """Factor `[[M, J^T], [J, 0]]` in an order; `Y` is `M^-1 J^T`."""
    import casadi as ca

    n, m, order = M.shape[0], J.shape[0], list(together.order)
    K = ca.blockcat([[M, J.T], [J, ca.SX(m, m)]])
    if together.settled:  # by CasADi, in a tenth of the time
        factor, places = ca.ldl(K[order, order], False), [int(k) for k in np.argsort(order)]

        def solve_all(b: Matrix) -> Matrix:
            return ca.ldl_solve(b[order, :], *factor)[places, :]

    else:
        solve_all = _pivoted(K, order, ca.vertcat(ca.SX(n, 1), _small(ca.sum2(J * Y.T)))).solve

    def solve(f: Matrix, gamma: Matrix) -> tuple[Matrix, Matrix]:
        x = solve_all(ca.vertcat(f, gamma))
        return x[:n, :], x[n:, :]

    return solve


def _operations_together(M: Matrix, J: Matrix, together: Elimination) -> float:
    """About how many operations `_together` takes."""
    import casadi as ca

    order, rows, ones = list(together.order), ca.Sparsity.diag(J.shape[0]), ca.DM(J.sparsity(), 1)
    K = ca.blockcat([[ca.DM(M.sparsity(), 1), ones.T], [ones, ca.DM(rows, 1)]])[order, order].sparsity()
    return _operations_to_factor(K, amd=False)


def _operations_apart(J: Matrix, Y: Matrix) -> float:
    """About how many operations it takes to form `A = J Y` and to solve with it."""
    import casadi as ca

    A = ca.DM(J.sparsity(), 1) @ ca.DM(Y.sparsity(), 1)
    forming = float(ca.sum1(ca.sum2(A))) / 2
    return forming + _operations_to_factor(A.sparsity(), amd=True)


def _operations_to_factor(A: Any, amd: bool) -> float:
    """About how many operations it takes to factor a matrix of sparsity `A`, and to solve with the factors."""
    counts = np.bincount(A.ldl(amd)[0].row(), minlength=A.size1())
    return float((counts * (counts + 1) / 2 + 2 * counts).sum())


def regularisation(A: Matrix) -> Matrix:
    """What is added to the diagonal of a matrix whose solution need not be exact: a little of it, one where it is 0."""
    import casadi as ca

    return _small(ca.diag(A), REGULARISATION)


def _small(diagonal: Matrix, eps: float = SMALL_PIVOT) -> Matrix:
    """A little of a diagonal, and one where it is zero, for a row that vanishes there."""
    return _ADDED.get()[0] * (eps * diagonal + (diagonal == 0))


@dataclass(frozen=True)
class _Pivoted:
    """`L r^-1 L^T` of a symmetric matrix in an order: `L` below its unit diagonal, and the reciprocal pivots `r`."""

    order: list[int]
    L: Matrix
    r: Matrix
    below: list[list[int]]

    def solve(self, b: Matrix) -> Matrix:
        """Solve for columns."""
        x, L = b[self.order, :], self.L
        for k, below in enumerate(self.below):
            if below:
                x[below, :] -= L[below, k] @ x[k, :]
        for k, below in reversed([*enumerate(self.below)]):
            x[k, :] = self.r[k] * x[k, :] - (L[below, k].T @ x[below, :] if below else 0)
        return x[self.places, :]

    @property
    def places(self) -> list[int]:
        """The place of each row in the order."""
        return [int(k) for k in np.argsort(self.order)]


def _pivoted(A: Matrix, order: list[int], e: Matrix) -> _Pivoted:
    """Factor a symmetric sparse matrix in an order; a pivot `d` is divided by as `d / (d^2 + e^2)`.

    What is written above the diagonal is not read again and costs nothing.
    """
    import casadi as ca

    n = A.shape[0]
    whole = (ca.DM(A.sparsity(), 1) + ca.DM.eye(n))[order, order].sparsity()
    below: list[list[int]] = [[] for _ in range(n)]
    for k, i in zip(*whole.ldl(False)[0].get_triplet(), strict=True):
        below[k].append(i)
    rest, e, L, r = A[order, order], ca.sparsify(e[order]), ca.SX(n, n), ca.SX(n, 1)
    for k, own in enumerate(below):
        d = rest[k, k]
        r[k] = d / (d**2 + e[k] ** 2) if e[k].nnz() else 1 / d
        if own:
            column = rest[own, k]
            L[own, k] = column * r[k]
            rest[own, own] -= L[own, k] @ column.T
    return _Pivoted(order, L, r, below)


def _semidefinite(A: Matrix) -> _Pivoted:
    import casadi as ca

    return _pivoted(A, list(A.sparsity().ldl(True)[1]), _small(ca.diag(A)))


def semidefinite(A: Matrix) -> Callable[[Matrix], Matrix]:
    """Factor a symmetric positive semidefinite sparse matrix once, for any right-hand sides.

    Solutions stay bounded where it is singular.
    """
    return _semidefinite(A).solve


def semidefinite_inverse(A: Matrix) -> Matrix:
    """The inverse as `semidefinite` solves, symmetric."""
    import casadi as ca

    factor = _semidefinite(A)
    Li = _unit_lower_inverse(factor.L)
    return mirrored(Li.T @ (ca.diag(factor.r) @ Li))[factor.places, factor.places]


def divided(Y: Matrix, A: Matrix) -> Matrix:
    """`Y A^-1` of a symmetric positive semidefinite matrix, in the way that takes fewer operations.

    Row by row with the factors, where these are sparse, as in a chain of loops; else with the inverse.
    """
    import casadi as ca

    n = A.shape[0]
    factor = ca.ldl(A, True)[1]
    if 2 * factor.nnz() * Y.shape[0] < n**3 / 2 + Y.nnz() * n:
        return semidefinite(A)(Y.T).T
    return Y @ semidefinite_inverse(A)


def _unit_lower_inverse(L: Matrix) -> Matrix:
    """Inverse of `1 + L`, with `L` strictly lower triangular."""
    n = L.shape[0]
    inverse = type(L).eye(n)
    for k in range(n):
        below = L[k, :k]
        inverse[k, :k] = -(below @ inverse[:k, :k])
    return inverse
