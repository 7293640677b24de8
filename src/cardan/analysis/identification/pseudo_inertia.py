"""Physical consistency of the ten parameters of a body: a distribution of mass exists that has them.

It does if and only if the pseudo-inertia

    P = [[Sigma, h], [h^T, m]],    Sigma = tr(I_O)/2 1 - I_O

is positive definite (P. Wensing, S. Kim, J.-J. Slotine, Linear matrix inequalities for physically consistent inertial
parameter identification, IEEE RA-L 3, 2018). `P` is linear in the ten parameters.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cardan.model.parameter import ENTRIES

if TYPE_CHECKING:
    from numpy.typing import NDArray


def pseudo_inertia(theta: NDArray[Any]) -> NDArray[Any]:
    """`P` (..., 4, 4) of parameters `m, m c, I_O` (..., 10)."""
    return np.einsum("ijk,...k->...ij", BASIS, theta)


def parameters_of(P: NDArray[Any]) -> NDArray[Any]:
    """`m, m c, I_O` (..., 10) of pseudo-inertias (..., 4, 4)."""
    S = P[..., :3, :3]
    I_O = np.trace(S, axis1=-2, axis2=-1)[..., None, None] * np.eye(3) - S
    return np.concatenate([P[..., 3, 3, None], P[..., 3, :3], I_O[..., ENTRIES[0], ENTRIES[1]]], axis=-1)


def is_consistent(theta: NDArray[Any]) -> Any:
    """Whether a distribution of mass has these parameters (..., 10): `P` is positive definite."""
    P = pseudo_inertia(theta)
    size = np.sqrt(np.maximum(np.einsum("...ii->...i", P), 1e-300))
    scaled = P / size[..., :, None] / size[..., None, :]
    return (theta[..., 0] > 0) & (np.linalg.eigvalsh(scaled)[..., 0] > 1e-12)


def thickened(theta: NDArray[Any], floor: float) -> NDArray[Any]:
    """Parameters (..., 10) whose pseudo-inertia is positive definite: along thin axes they get a little thickness.

    `floor` is the least part of the mean squared radius along any axis.
    """
    P = pseudo_inertia(theta)
    m, h = P[..., 3, 3], P[..., :3, 3]
    central = P[..., :3, :3] - h[..., :, None] * h[..., None, :] / m[..., None, None]
    values, vectors = np.linalg.eigh(central)
    least = floor * np.maximum(values.sum(-1), 1e-6 * np.trace(P, axis1=-2, axis2=-1))
    thick = (vectors * np.maximum(values, least[..., None])[..., None, :]) @ np.swapaxes(vectors, -1, -2)
    P = np.array(P)
    P[..., :3, :3] += thick - central
    return parameters_of(P)


def _basis() -> NDArray[Any]:
    """`P` (4, 4, 10) of a unit of each parameter."""
    found = np.zeros((4, 4, 10))
    found[3, 3, 0] = 1.0
    for k in range(3):
        found[k, 3, 1 + k] = found[3, k, 1 + k] = 1.0
    for k, (i, j) in enumerate(zip(*ENTRIES, strict=True)):
        I = np.zeros((3, 3))
        I[i, j] = I[j, i] = 1.0
        found[:3, :3, 4 + k] = np.trace(I) / 2 * np.eye(3) - I
    return found


BASIS = _basis()
