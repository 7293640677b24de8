"""Solving `M vdot + J^T lam = f`, `J vdot = gamma` as straight-line text.

The multipliers come first: `A lam = J M^-1 f - gamma` with `A = J M^-1 J^T`, sparse wherever loops share no body,
factored in the order that creates least fill-in (CasADi's LDL^T with approximate minimum degree). `M^-1` is applied
by whatever fits the coordinates: along the tree, or body by body.

Where the rows lose rank at some configuration, `A` is singular there. So `A + eps D` is factored, with `D` its own
diagonal and `eps = 1e-12`, and the answer corrected twice for it: away from such configurations nothing is left of
eps (its cube), at them the answer stays bounded. In tree coordinates it is then the limit from either side; with six
coordinates a body it is, within about 1e-6 rad, that of the mechanism with its momentary freedoms (Gauss' principle).
Docs: docs/decisions/0008.
"""

from __future__ import annotations

from collections.abc import Callable

from cardan.algebra.matrix import Matrix, mirrored

REGULARISATION = 1e-12
CORRECTIONS = 2


def solve_saddle(
    apply_inverse: Callable[[Matrix], Matrix], J: Matrix, f: Matrix, gamma: Matrix
) -> tuple[Matrix, Matrix]:
    """Accelerations and multipliers; `apply_inverse(B)` gives `M^-1 B`."""
    a = apply_inverse(f)
    if J.shape[0] == 0:
        return a, gamma
    Y = apply_inverse(J.T)
    lam = solve_semidefinite(mirrored(J @ Y), J @ a - gamma)
    return a - Y @ lam, lam


def solve_augmented(
    M: Matrix, J: Matrix, f: Matrix, gamma: Matrix, weight: float, held: list[int] | None = None
) -> tuple[Matrix, Matrix]:
    """The same where `M` alone cannot be inverted: `M + w J^T J` and `f + w J^T gamma` have the same solution.

    `held` are the rows that lend their weight; all by default.
    """
    import casadi as ca

    rows = list(range(J.shape[0])) if held is None else held
    D, LT, p = ca.ldl(M + weight * (J[rows, :].T @ J[rows, :]), True)
    right = f + weight * (J[rows, :].T @ gamma[rows])
    return solve_saddle(lambda B: ca.ldl_solve(B, D, LT, p), J, right, gamma)


def solve_semidefinite(A: Matrix, b: Matrix) -> Matrix:
    """Solve `A x = b` for a symmetric positive semidefinite sparse matrix, bounded where it is singular."""
    import casadi as ca

    diagonal = ca.diag(A)
    D, LT, p = ca.ldl(A + ca.diag(REGULARISATION * diagonal), True)
    x = ca.ldl_solve(b, D, LT, p)
    for _ in range(CORRECTIONS):
        x = x + ca.ldl_solve(b - A @ x, D, LT, p)
    return x
