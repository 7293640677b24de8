"""Least squares over unknowns that all positions share and unknowns of each position, for all starts at once.

Rows `r` of position i change by `A_i du + B_i dz_i`. A damped step (Levenberg, Marquardt) makes

    sum_i |r_i + A_i du + B_i dz_i|^2 + |r0 + A0 du|^2 + lam (|du|^2 + sum_i |dz_i|^2)

smallest. The `dz_i` are eliminated first, position by position, so that its cost is proportional to their number.
Unknowns at a bound that descent pushes outwards are left out (Bertsekas, SIAM J. Control Optim. 20 (1982) 221-246).
"""

from __future__ import annotations

import numpy as np


def damped_step(
    r: np.ndarray, A: np.ndarray, B: np.ndarray, r0: np.ndarray, A0: np.ndarray, lam: np.ndarray, held: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """`du` (S, n) and `dz` (S, N, k) for rows `r` (S, N, m), `A` (S, N, m, n), `B` (S, N, m, k), `held` (S, n)."""
    k, n = B.shape[-1], A.shape[-1]
    Bt, At, A0t = (np.swapaxes(x, -1, -2) for x in (B, A, A0))
    inner = Bt @ B + lam[:, None, None, None] * np.eye(k)
    right = Bt @ np.concatenate([A, r[..., None]], axis=-1)
    X = np.linalg.solve(inner, right)
    H = (At @ A).sum(axis=1) + A0t @ A0 - (np.swapaxes(right[..., :n], -1, -2) @ X[..., :n]).sum(axis=1)
    g = gradient(r, A, r0, A0) - (np.swapaxes(right[..., :n], -1, -2) @ X[..., n:]).sum(axis=1)[..., 0]
    H = H + lam[:, None, None] * np.eye(n)
    H = np.where(held[:, None, :] | held[:, :, None], np.eye(n), H)
    du = -np.linalg.solve(H, np.where(held, 0.0, g)[..., None])[..., 0]
    return du, -(X[..., n] + (X[..., :n] @ du[:, None, :, None])[..., 0])


def gradient(r: np.ndarray, A: np.ndarray, r0: np.ndarray, A0: np.ndarray) -> np.ndarray:
    """Half the gradient (S, n) of the sum of squares by the shared unknowns."""
    return np.asarray(
        (np.swapaxes(A, -1, -2) @ r[..., None]).sum(axis=1)[..., 0] + (np.swapaxes(A0, -1, -2) @ r0[..., None])[..., 0]
    )


def held_at_bounds(u: np.ndarray, g: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Which unknowns (S, n) stay at a bound, since descent along `-g` leads out."""
    return np.asarray(((u <= low) & (g > 0)) | ((u >= high) & (g < 0)))
