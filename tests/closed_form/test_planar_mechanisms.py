"""Pendulums and the cart-pole against the equations that textbooks derive by hand."""

import numpy as np
import pytest

import cardan as cd
from cardan import mechanisms

from ..trees import close

pytestmark = pytest.mark.usefixtures("quick_code")

FORMULATIONS = ("spatial", "newton_euler")
G = 9.81


def assert_equations(model: cd.Model, q, v, M, bias, formulation: str) -> None:
    """`M a + bias = tau`, each part by itself and the whole."""
    tau = np.random.default_rng(1).standard_normal(v.shape)
    close(cd.mass_matrix(model, q, formulation=formulation), M, 1e-13)
    close(cd.bias_force(model, q, v, formulation=formulation), bias, 1e-13)
    a = np.linalg.solve(M, (tau - bias)[..., None])[..., 0]
    close(cd.forward_dynamics(model, q, v, tau, formulation=formulation), a, 1e-12)
    close(cd.inverse_dynamics(model, q, v, a, formulation=formulation), tau, 1e-12)


@pytest.mark.parametrize("formulation", FORMULATIONS)
def test_rod_pendulum_accelerates_by_3g_over_2l_sin_q(formulation: str) -> None:
    mass, length = 1.7, 0.6
    model = mechanisms.pendulum(mass=mass, length=length).build()
    q, v = np.random.default_rng(0).uniform(-9, 9, (2, 12, 1))
    a = cd.forward_dynamics(model, q, v, formulation=formulation)
    close(a, -(3 * G / (2 * length)) * np.sin(q), 1e-13)
    M = np.full((12, 1, 1), mass * length**2 / 3)
    assert_equations(model, q, v, M, mass * G * length / 2 * np.sin(q), formulation)
    close(cd.kinetic_energy(model, q, v, formulation=formulation), mass * length**2 / 6 * v[:, 0] ** 2, 1e-13)
    V = -mass * G * length / 2 * np.cos(q[:, 0])
    close(cd.potential_energy(model, q, formulation=formulation), V, 1e-13)


@pytest.mark.parametrize("formulation", FORMULATIONS)
def test_double_pendulum_obeys_Lagrange_in_absolute_angles(formulation: str) -> None:
    """With the rods' angles to the vertical t1 = q1, t2 = q1 + q2:

    T = m l^2/6 (t1'^2 + t2'^2) + m l^2/2 (t1'^2 + t1' t2' cos(t1 - t2)),  V = -m g l/2 (3 cos t1 + cos t2).
    """
    m, l = 1.3, 0.8
    model = mechanisms.double_pendulum(mass=m, length=l).build()
    q, v = np.random.default_rng(2).uniform(-4, 4, (2, 12, 2))
    absolute = np.array([[1.0, 0], [1, 1]])
    (t1, t2), (w1, w2) = (q @ absolute.T).T, (v @ absolute.T).T
    c, s = np.cos(t1 - t2), np.sin(t1 - t2)
    M = m * l**2 * np.moveaxis(np.array([[4 / 3 + 0 * c, c / 2], [c / 2, 1 / 3 + 0 * c]]), -1, 0)
    bias = m * l * np.stack([l / 2 * s * w2**2 + 1.5 * G * np.sin(t1), -l / 2 * s * w1**2 + 0.5 * G * np.sin(t2)], -1)
    assert_equations(model, q, v, absolute.T @ M @ absolute, bias @ absolute, formulation)


@pytest.mark.parametrize("formulation", FORMULATIONS)
def test_cart_pole_obeys_Lagrange(formulation: str) -> None:
    """The pole's centre is at (x + l/2 sin t, l/2 cos t)."""
    cart, pole, l = 1.5, 0.4, 1.1
    model = mechanisms.cart_pole(cart=cart, pole=pole, length=l).build()
    q, v = np.random.default_rng(3).uniform(-4, 4, (2, 12, 2))
    c, s = np.cos(q[:, 1]), np.sin(q[:, 1])
    one = np.ones(12)
    M = np.moveaxis(
        np.array([[(cart + pole) * one, pole * l / 2 * c], [pole * l / 2 * c, pole * l**2 / 3 * one]]), -1, 0
    )
    bias = -pole * l / 2 * s[:, None] * np.stack([v[:, 1] ** 2, G * one], -1)
    assert_equations(model, q, v, M, bias, formulation)


@pytest.mark.parametrize("formulation", FORMULATIONS)
def test_spherical_pendulum_on_a_universal_joint_obeys_Lagrange(formulation: str) -> None:
    """A point mass at l (-sin q2, sin q1 cos q2, -cos q1 cos q2): T = m l^2/2 (q2'^2 + cos^2 q2 q1'^2)."""
    m, l = 0.7, 1.2
    build = cd.Mechanism("spherical pendulum")
    build.body("bob", mass=m, com=(0, 0, -l), inertia=cd.inertia.point(m))
    build.joint("gimbal", cd.Universal(), build.ground, "bob")
    model = build.build()
    q, v = np.random.default_rng(4).uniform(-1, 1, (2, 12, 2))
    (c1, c2), (s1, s2), (w1, w2) = np.cos(q).T, np.sin(q).T, v.T
    M = m * l**2 * np.stack([c2**2, 0 * c2, 0 * c2, 1 + 0 * c2], -1).reshape(-1, 2, 2)
    bias = m * l * np.stack([-2 * l * c2 * s2 * w1 * w2 + G * s1 * c2, l * c2 * s2 * w1**2 + G * c1 * s2], -1)
    assert_equations(model, q, v, M, bias, formulation)
