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
LENT_CORRECTIONS = 3

Solver = Callable[[Matrix, Matrix], tuple[Matrix, Matrix]]


def solve_saddle(
    apply_inverse: Callable[[Matrix], Matrix], J: Matrix, f: Matrix, gamma: Matrix
) -> tuple[Matrix, Matrix]:
    """Accelerations and multipliers; `apply_inverse(B)` gives `M^-1 B`."""
    return _solver(apply_inverse, J)(f, gamma)


def solve_lent(
    apply_inverse: Callable[[Matrix], Matrix], M: Matrix, J: Matrix, f: Matrix, gamma: Matrix
) -> tuple[Matrix, Matrix]:
    """The same where `M` alone cannot be inverted: `apply_inverse` is that of `M` with a little inertia lent to it.

    The answer is corrected for what was lent. Each correction leaves as little of the error as the lent inertia is
    of the whole that moves; what constraints keep from moving along with it leaves nothing.
    """
    solve = _solver(apply_inverse, J)
    a, lam = solve(f, gamma)
    for _ in range(LENT_CORRECTIONS):
        da, dlam = solve(f - M @ a - J.T @ lam, gamma - J @ a)
        a, lam = a + da, lam + dlam
    return a, lam


def _solver(apply_inverse: Callable[[Matrix], Matrix], J: Matrix) -> Solver:
    """Factor once; solve for any right-hand sides."""
    if J.shape[0] == 0:
        return lambda f, gamma: (apply_inverse(f), gamma)
    Y = apply_inverse(J.T)
    multipliers = semidefinite(mirrored(J @ Y))

    def solve(f: Matrix, gamma: Matrix) -> tuple[Matrix, Matrix]:
        a = apply_inverse(f)
        lam = multipliers(J @ a - gamma)
        return a - Y @ lam, lam

    return solve


def regularisation(A: Matrix) -> Matrix:
    """What is added to the diagonal: a little of it, and one where it is nothing, for a row that vanishes there."""
    import casadi as ca

    diagonal = ca.diag(A)
    return REGULARISATION * diagonal + (diagonal == 0)


def solve_semidefinite(A: Matrix, b: Matrix) -> Matrix:
    """Solve `A x = b` for a symmetric positive semidefinite sparse matrix, bounded where it is singular."""
    return semidefinite(A)(b)


def semidefinite(A: Matrix) -> Callable[[Matrix], Matrix]:
    """Factor such a matrix once, for any right-hand sides."""
    import casadi as ca

    E = regularisation(A)
    D, LT, p = ca.ldl(A + ca.diag(E), True)

    def solve(b: Matrix) -> Matrix:
        x = part = ca.ldl_solve(b, D, LT, p)
        for _ in range(CORRECTIONS):
            part = ca.ldl_solve(E * part, D, LT, p)  # what is left, b - A x, is E times the last part
            x = x + part
        return x

    return solve
