"""The physical parameters that fit best: a convex problem, solved with a barrier.

    least  |u|^2 / 2 + w^2 |(theta - theta_0) / s|^2 / 2     with  theta = theta_1 + U u + N z
    where  every pseudo-inertia P(theta) is positive definite, and other numbers are above their bounds

`u` is the distance of the base parameters from their estimate in units of its uncertainty, `z` moves what data do not
tell, `w` holds it near the nominal values. `P` is linear in `theta`, so that the problem is convex and its least value
the only one. Newton's method goes along `-mu (sum log det P + sum log(theta - bound))` as `mu` falls.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cardan.analysis.identification.pseudo_inertia import BASIS, pseudo_inertia, thickened

if TYPE_CHECKING:
    from numpy.typing import NDArray

LAST = 1e-10  # of the barrier's weight, in units of the noise squared
STEPS = 40  # of Newton at one weight


def nearest_physical(
    theta_1: NDArray[Any], U: NDArray[Any], N: NDArray[Any], nominal: NDArray[Any], scale: NDArray[Any], weight: float,
    lower: NDArray[Any], bodies: int,
) -> NDArray[Any]:  # fmt: skip
    """Parameters (n,) that are physical, from `theta_1` (n,) that fit, along `U` (n, base) and `N` (n, rest).

    `weight` holds them to `nominal` in units of `scale`; `lower` (n,) are bounds of those after the bodies' ten each.
    """
    bounded = [k for k in range(10 * bodies, len(nominal)) if np.isfinite(lower[k])]
    start = np.array(nominal)
    start[: 10 * bodies] = thickened(nominal[: 10 * bodies].reshape(-1, 10), 0.05).ravel()
    start[bounded] = np.maximum(start[bounded], lower[bounded] + 0.1 * scale[bounded])
    T = np.concatenate([U, N], axis=1) / scale[:, None]  # of theta in its scale
    size = np.maximum(np.linalg.norm(T, axis=0), 1e-300)
    x = np.linalg.solve(T / size, (start - theta_1) / scale)  # u and z, each times its size
    own = np.concatenate([1 / size[: U.shape[1]], np.zeros(N.shape[1])])  # u = own x
    D = T / size * scale[:, None]
    hold = weight * D / scale[:, None]

    def parts(x: NDArray[Any]) -> tuple[NDArray[Any], float]:
        theta = theta_1 + D @ x
        return theta, float(0.5 * ((own * x) ** 2).sum() + 0.5 * ((weight * (theta - nominal) / scale) ** 2).sum())

    def barrier(theta: NDArray[Any]) -> float:
        P = _scaled(theta, scale, bodies)
        try:
            triangle = np.linalg.cholesky(P)
        except np.linalg.LinAlgError:
            return float("inf")
        gap = (theta - lower)[bounded] / scale[bounded]
        if (gap <= 0).any():
            return float("inf")
        return float(-2 * np.log(np.einsum("bii->bi", triangle)).sum() - np.log(gap).sum())

    count = 4 * bodies + len(bounded)
    mu = max(parts(x)[1] / count, 1.0)
    while True:
        for _ in range(STEPS):
            theta, cost = parts(x)
            g, H = _derivatives(theta, scale, lower, bodies, bounded)
            gradient = own**2 * x + hold.T @ (weight * (theta - nominal) / scale) + mu * (D.T @ g)
            hessian = np.diag(own**2) + hold.T @ hold + mu * (D.T @ H @ D)
            unit = 1 / np.sqrt(np.maximum(np.diag(hessian), 1e-300))
            step = -unit * np.linalg.lstsq(hessian * np.outer(unit, unit), unit * gradient, rcond=1e-15)[0]
            slope, before, length = float(gradient @ step), cost + mu * barrier(theta), 1.0
            while length > 1e-12:
                there, new = parts(x + length * step)
                if new + mu * barrier(there) <= before + 1e-4 * length * slope:
                    break
                length *= 0.5
            else:
                break
            x = x + length * step
            if -slope <= 1e-6 * mu * count:
                break
        if mu <= LAST:
            return parts(x)[0]
        mu *= 0.1


def _scaled(theta: NDArray[Any], scale: NDArray[Any], bodies: int) -> NDArray[Any]:
    """Pseudo-inertias (bodies, 4, 4) with lengths in units of each body's radius, masses in units of its mass."""
    own = (theta / scale)[: 10 * bodies].reshape(-1, 10)
    return pseudo_inertia(own)


def _derivatives(
    theta: NDArray[Any], scale: NDArray[Any], lower: NDArray[Any], bodies: int, bounded: list[int]
) -> tuple[NDArray[Any], NDArray[Any]]:
    """First (n,) and second (n, n) derivatives of the barrier: `-tr(P^-1 B_k)`, `tr(P^-1 B_k P^-1 B_l)`."""
    n = len(theta)
    g, H = np.zeros(n), np.zeros((n, n))
    if bodies:
        inverse = np.linalg.inv(_scaled(theta, scale, bodies))
        M = np.einsum("bij,jlk->bkil", inverse, BASIS)
        first = -np.einsum("bkii->bk", M)
        second = np.einsum("bkij,blji->bkl", M, M)
        for b in range(bodies):
            at = slice(10 * b, 10 * b + 10)
            g[at] = first[b] / scale[at]
            H[at, at] = second[b] / np.outer(scale[at], scale[at])
    for k in bounded:
        g[k] = -1 / (theta[k] - lower[k])
        H[k, k] = 1 / (theta[k] - lower[k]) ** 2
    return g, H
