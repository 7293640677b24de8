"""The inertia of each solid is the integral over its volume."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.polynomial.legendre import leggauss

import cardan as cd

from ..trees import close, random_rotation

pytestmark = pytest.mark.usefixtures("quick_code")

MASS = 2.3


def integral(point, density, *ranges: tuple[float, float]) -> np.ndarray:
    """Inertia of mass spread with a density over parameters, by Gauss quadrature: sum of m (|r|^2 - r r^T)."""
    nodes, weights = leggauss(24)
    axes = [((b - a) / 2 * nodes + (a + b) / 2, (b - a) / 2 * weights) for a, b in ranges]
    grid = np.meshgrid(*(x for x, _ in axes), indexing="ij")
    share = density(*grid) * np.einsum("i,j,k->ijk", *(w for _, w in axes))
    r = np.stack(np.broadcast_arrays(*point(*grid)), -1)
    second = np.einsum("ijk,ijkm,ijkn->mn", MASS * share / share.sum(), r, r)
    return np.trace(second) * np.eye(3) - second


def test_box() -> None:
    half = np.array([0.4, 0.7, 1.1]) / 2
    got = integral(lambda x, y, z: (x, y, z), lambda x, y, z: 1 + 0 * x, *((-h, h) for h in half))
    close(cd.inertia.box(MASS, 2 * half), got, 1e-13)


def test_cylinder_about_any_axis() -> None:
    R, L = 0.3, 0.8
    got = integral(
        lambda r, t, z: (r * np.cos(t), r * np.sin(t), z), lambda r, t, z: r, (0, R), (0, 2 * np.pi), (-L / 2, L / 2)
    )
    close(cd.inertia.cylinder(MASS, R, L), got, 1e-12)
    turn = random_rotation(np.random.default_rng(0))
    close(cd.inertia.cylinder(MASS, R, L, axis=5 * turn[:, 2]), turn @ got @ turn.T, 1e-12)


def test_sphere() -> None:
    got = integral(
        lambda r, t, u: (r * np.sqrt(1 - u * u) * np.cos(t), r * np.sqrt(1 - u * u) * np.sin(t), r * u),
        lambda r, t, u: r * r, (0, 0.6), (0, 2 * np.pi), (-1, 1),
    )  # fmt: skip
    close(cd.inertia.sphere(MASS, 0.6), got, 1e-12)


@pytest.mark.parametrize(("axis", "k"), [("x", 0), ("y", 1), ("z", 2)])
def test_a_rod_is_a_cylinder_without_radius(axis: str, k: int) -> None:
    rod = cd.inertia.rod(MASS, 0.9, axis=axis)
    close(rod, cd.inertia.cylinder(MASS, 1e-9, 0.9, axis=axis), 1e-15)
    close(rod[k], np.zeros(3), 0)
    close(cd.inertia.point(MASS), np.zeros((3, 3)), 0)
