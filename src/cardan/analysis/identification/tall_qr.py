"""QR of matrices with many rows and few columns, in blocks that fit into the cache."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


def triangle(A: NDArray[Any]) -> NDArray[Any]:
    """`R` (columns, columns) of `A = Q R` (rows, columns); `A` itself where it has no more rows than columns."""
    columns = A.shape[1]
    block = 4 * max(columns, 16)
    while A.shape[0] > columns:
        if A.shape[0] <= block:
            return np.asarray(np.linalg.qr(A, mode="r"))
        whole = A.shape[0] // block
        parts = np.asarray(np.linalg.qr(A[: whole * block].reshape(whole, block, columns), mode="r"))
        A = np.concatenate([parts.reshape(-1, columns), A[whole * block :]])
    return A


def least_squares(A: NDArray[Any], b: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """`x` with the least `|A x - b|`, and its covariance for units of noise; `A` has full rank."""
    size = np.linalg.norm(A, axis=0)
    n = len(size)
    R = triangle(np.concatenate([A / size, b[:, None]], axis=1))
    inverse = np.linalg.inv(R[:n, :n])
    return inverse @ R[:n, n] / size, inverse @ inverse.T / np.outer(size, size)
