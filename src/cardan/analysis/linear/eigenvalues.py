"""Eigenvalues and eigenvectors of batches of linear models, real where the mechanics say so.

About rest, without damping and with symmetric stiffness, `x'' = -M^-1 K x` has real `lambda^2`: they are found from the
symmetric problem `K phi = -lambda^2 M phi`, so that eigenvalues are imaginary or real to the last digit. Everything
else is `A v = lambda v`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from cardan.analysis.linear.linear_model import LinearModel

SYMMETRIC = 1e-10  # of the largest stiffness
CLOSE = 1e-7  # of the largest: eigenvalues that are closer belong together
DEFECTIVE = 1e-9  # of unit vectors: left and right ones that are this close to orthogonal
LIGHT = 1e-14  # of the largest inertia: without inertia in some direction the symmetric problem has no solution
ZERO = 1e-13  # of the largest lambda^2: smaller ones are those of rigid-body motions


@dataclass(frozen=True)
class Eigen:
    """`values` (..., nx), and a function that gives right vectors (..., nx, nx) in columns.

    `undamped` (...) tells which were found from the symmetric problem.
    """

    values: NDArray[Any]
    vectors: Callable[[], NDArray[Any]]
    undamped: NDArray[Any]


def eigen(A: NDArray[Any], M: NDArray[Any] | None, usual: float = 0.0, K: NDArray[Any] | None = None) -> Eigen:
    """Eigenvalues by size, conjugate pairs together and the one with positive imaginary part first, and vectors.

    `M` (..., n, n) is the inertia of the independent rates; None where coordinates and rates differ in number. `usual`
    is a size of `lambda^2` that is usual for the mechanism, beside which others are rounding. `K` is the
    stiffness, from `A` by default.
    """
    nx = A.shape[-1]
    if nx == 0:
        return Eigen(np.zeros(A.shape[:-1], complex), lambda: np.zeros(A.shape, complex), np.zeros(A.shape[:-2], bool))
    symmetric, K = _symmetric(A, M, K)
    if nx == 2:
        values = _two(A)
        vectors = lambda: _vectors_of_two(A, values)
    else:
        values, V = _sorted(*(x.astype(complex) for x in np.linalg.eig(A))) if not symmetric.all() else _none(A)
        vectors = lambda: V
    if symmetric.any() and M is not None:
        own, columns = _undamped(np.broadcast_to(M, K.shape)[symmetric], K[symmetric], usual)
        values[symmetric] = own
        if nx > 2:
            V[symmetric] = columns
    return Eigen(values, vectors, symmetric)


def eigenvalues_of(A: NDArray[Any]) -> NDArray[Any]:
    """Eigenvalues (..., nx) alone."""
    return eigen(A, None).values


def finite_eigenvalues(linear: LinearModel) -> NDArray[Any]:
    """Those of a descriptor form that are finite."""
    from scipy.linalg import eig

    with np.errstate(all="ignore"):
        found = eig(linear.A, linear.E, right=False)
    held = [label.level for label in linear.model.rows if f"multipliers.{label.name}" in linear.states]
    count = len(linear.states) - 3 * held.count("position") - 2 * held.count("rate")
    found = found[np.argsort(np.abs(np.where(np.isfinite(found), found, np.inf)))][:count]
    return _sorted(found, np.eye(len(found), dtype=complex))[0]


# Derivatives.


def eigenvalue_rates(A: NDArray[Any], values: NDArray[Any], V: NDArray[Any], dA: NDArray[Any]) -> NDArray[Any]:
    """Rates (..., nx, p) `w dA v / w v` of the eigenvalues of `A` (..., nx, nx) for its rates `dA` (..., p, nx, nx).

    Equal eigenvalues have those of the block that belongs to them. NaN where vectors fall together.
    """
    V = V / np.linalg.norm(V, axis=-2, keepdims=True)
    with np.errstate(all="ignore"):
        try:
            W = np.linalg.inv(V)
        except np.linalg.LinAlgError:  # of some in the batch
            W = np.full(V.shape, np.nan)
        good = np.asarray(np.abs(W).max(axis=(-1, -2), initial=0.0) < 1 / DEFECTIVE)
        rates = W[..., None, :, :] @ dA @ V[..., None, :, :]
    found = np.einsum("...pkk->...kp", rates).copy()
    for index in np.ndindex(*values.shape[:-1]):
        if not good[index]:
            found[index] = _rates_of_one(A[index], values[index], dA[index])
            continue
        for block in _groups(values[index]):
            if len(block) > 1:
                for p in range(dA.shape[-3]):
                    found[index][block, p] = np.linalg.eigvals(rates[index][p][np.ix_(block, block)])
    return found


def _rates_of_one(A: NDArray[Any], values: NDArray[Any], dA: NDArray[Any]) -> NDArray[Any]:
    """The same (nx, p) of a matrix some of whose vectors fall together, with left and right ones apart."""
    from scipy.linalg import eig

    own, left, right = eig(A, left=True, right=True)
    places, open_places = [], list(range(len(own)))
    for value in values:
        places.append(min(open_places, key=lambda k: abs(own[k] - value)))
        open_places.remove(places[-1])
    U, V = left[:, places].conj().T, right[:, places]
    found = np.full((len(values), len(dA)), np.nan + 0j)
    for block in _groups(values):
        G = U[block] @ V[:, block]
        if np.linalg.svd(G, compute_uv=False)[-1] > np.sqrt(DEFECTIVE):
            for p, rate in enumerate(dA):
                found[block, p] = np.linalg.eigvals(np.linalg.solve(G, U[block] @ rate @ V[:, block]))
    return found


def _groups(values: NDArray[Any]) -> list[list[int]]:
    """Numbers of eigenvalues that are equal, or nearly so."""
    bound = CLOSE * float(np.abs(values).max(initial=0.0))
    left, found = list(range(len(values))), []
    while left:
        group = [left.pop(0)]
        for k in list(left):
            if min(abs(values[k] - values[g]) for g in group) <= bound:
                group.append(k)
                left.remove(k)
        found.append(group)
    return found


# By ways that fit.


def _none(A: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    return np.empty(A.shape[:-1], complex), np.empty(A.shape, complex)


def _symmetric(A: NDArray[Any], M: NDArray[Any] | None, K: NDArray[Any] | None) -> tuple[NDArray[Any], NDArray[Any]]:
    """Where the model is undamped and its stiffness (..., n, n) symmetric, and that stiffness."""
    n = A.shape[-1] // 2
    still: NDArray[Any] = np.zeros(A.shape[:-2], bool)
    if M is None or A.shape[-1] != 2 * M.shape[-1]:
        return still, np.zeros((*still.shape, n, n))
    still = np.asarray(~A[..., n:, n:].any(axis=(-1, -2)))
    if not still.any():
        return still, np.zeros((*still.shape, n, n))
    K = -M @ A[..., n:, :n] if K is None else K
    still &= ~A[..., :n, :n].any(axis=(-1, -2)) & (A[..., :n, n:] == np.eye(n)).all(axis=(-1, -2))
    light = np.linalg.eigvalsh(M) if n > 1 else M[..., 0]
    still &= light[..., 0] > LIGHT * light[..., -1]
    skew = np.abs(K - np.swapaxes(K, -1, -2)).max(axis=(-1, -2))
    return still & (skew <= SYMMETRIC * np.abs(K).max(axis=(-1, -2))), (K + np.swapaxes(K, -1, -2)) / 2


def _undamped(M: NDArray[Any], K: NDArray[Any], usual: float) -> tuple[NDArray[Any], NDArray[Any]]:
    """From `K phi = w2 M phi`, each twice, and `phi` normalised by the inertia."""
    n = K.shape[-1]
    if n == 1:
        w2, phi = K[..., 0] / M[..., 0], 1 / np.sqrt(M)
    else:
        factor = np.linalg.inv(np.linalg.cholesky(M))
        S = factor @ K @ np.swapaxes(factor, -1, -2)
        w2, y = np.linalg.eigh((S + np.swapaxes(S, -1, -2)) / 2)
        phi = np.swapaxes(factor, -1, -2) @ y
    w2 = np.where(np.abs(w2) <= ZERO * np.maximum(np.abs(w2).max(axis=-1, keepdims=True), usual), 0.0, w2)
    root = np.sqrt(np.abs(w2))
    values = np.empty((*w2.shape[:-1], 2 * n), complex)
    values[..., 0::2] = np.where(w2 > 0, 1j * root, root)
    values[..., 1::2] = -values[..., 0::2]
    V = np.empty((*w2.shape[:-1], 2 * n, 2 * n), complex)
    V[..., :n, 0::2] = V[..., :n, 1::2] = phi
    V[..., n:, :] = V[..., :n, :] * values[..., None, :]
    return _sorted(values, V)


def _two(A: NDArray[Any]) -> NDArray[Any]:
    """Eigenvalues (..., 2) of matrices (..., 2, 2) by the quadratic formula, ordered like the others."""
    a, b, c, d = A[..., 0, 0], A[..., 0, 1], A[..., 1, 0], A[..., 1, 1]
    half, bc = (a + d) / 2, b * c
    square = ((a - d) / 2) ** 2 + bc
    root = np.sqrt(np.abs(square))
    large = half + np.copysign(root, half)
    small = (a * d - bc) / np.where(large == 0, 1.0, large)
    first = np.where(np.abs(half) <= 1e-9 * root, half + root, small)  # of one size those that grow come first
    oscillates = square < 0
    values = np.empty((*half.shape, 2), complex)
    values.real[..., 0] = np.where(oscillates, half, first)
    values.real[..., 1] = np.where(oscillates, half, np.where(first == large, small, large))
    values.imag[..., 0] = np.where(oscillates, root, 0.0)
    values.imag[..., 1] = -values.imag[..., 0]
    return values


def _vectors_of_two(A: NDArray[Any], values: NDArray[Any]) -> NDArray[Any]:
    """Vectors (..., 2, 2) in columns of matrices (..., 2, 2), which are not diagonal: rates depend on coordinates."""
    a, b, c, d = A[..., 0, :1], A[..., 0, 1:], A[..., 1, :1], A[..., 1, 1:]
    shape = values.shape
    upper = np.stack([np.broadcast_to(b, shape).astype(complex), values - a], axis=-2)
    lower = np.stack([values - d, np.broadcast_to(c, shape).astype(complex)], axis=-2)
    return np.where((np.abs(b) >= np.abs(c))[..., None], upper, lower)


def _sorted(values: NDArray[Any], V: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """By size, of one size those that grow first; the order of conjugates, which are equal in both, stays."""
    scale = np.abs(values).max(axis=-1, keepdims=True)
    scale = np.where(scale > 0, scale, 1.0)
    size, growth = (np.round(x / scale, 9) for x in (np.abs(values), values.real))
    order = np.lexsort((-growth, size), axis=-1)
    if (np.diff(order, axis=-1) == 1).all():
        return values, V
    return np.take_along_axis(values, order, -1), np.take_along_axis(V, order[..., None, :], -1)
