"""The generalised-alpha method on a mass and a spring, where its every step is known in closed form.

Source: J. Chung, G. M. Hulbert, J. Appl. Mech. 60 (1993) 371-375, equations (7)-(9) and (13).
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cardan as cd
from cardan.integrate.alpha.stepper import AlphaStepper
from cardan.integrate.integrators import Request

pytestmark = pytest.mark.usefixtures("quick_code")


@cache
def oscillator() -> cd.Model:
    """Mass 1 kg on a slide without gravity; stiffness and damping are free."""
    m = cd.Mechanism("oscillator", gravity=(0, 0, 0))
    body = m.body("mass", mass=1.0, inertia=np.eye(3))
    m.joint("slide", cd.Prismatic(axis=(1, 0, 0)), m.ground, body)
    m.torsion("spring", "slide", stiffness=1.0, damping=0.1)
    return m.build().free("spring.stiffness", "spring.damping")


def motion(stiffness: float, damping: float, rho: float, steps: int, v: float = 0.0) -> np.ndarray:
    """Positions and velocities (steps + 1, 2) from q = 1 m in steps of 1 s."""
    model = oscillator().at({"spring.stiffness": stiffness, "spring.damping": damping})
    stepper = AlphaStepper(model, "spatial", np.zeros(1), Request(step=1.0), rho)
    stepper.begin(0.0, np.ones((1, 1)), np.full((1, 1), v))
    found = [(1.0, v)]
    for k in range(steps):
        end = stepper.advance(k + 1.0)
        assert end.outcome[0] == 0
        found.append((end.q[0, 0], end.v[0, 0]))
    return np.array(found)


def closed_form(k: float, c: float, rho: float, steps: int, v: float) -> np.ndarray:
    """The same from the method's own equations, a linear system for (q', v', vdot', a')."""
    alpha_m, alpha_f = (2 * rho - 1) / (rho + 1), rho / (rho + 1)
    gamma, beta = 0.5 - alpha_m + alpha_f, (1 - alpha_m + alpha_f) ** 2 / 4
    new = np.array([[1, 0, 0, -beta], [0, 1, 0, -gamma], [0, 0, -(1 - alpha_f), 1 - alpha_m], [k, c, 1, 0]])
    old = np.array([[1, 1, 0, 0.5 - beta], [0, 1, 0, 1 - gamma], [0, 0, alpha_f, -alpha_m], [0, 0, 0, 0]])
    step = np.linalg.solve(new, old)
    x = [np.array([1.0, v, -k - c * v, -k - c * v])]
    for _ in range(steps):
        x.append(step @ x[-1])
    return np.array(x)[:, :2]


@given(st.floats(-2, 3), st.floats(0, 2), st.floats(0, 1), st.floats(-1, 1))
def test_every_step_is_that_of_the_method(log_stiffness: float, damping: float, rho: float, v: float) -> None:
    k = 10**log_stiffness
    expected = closed_form(k, damping, rho, 10, v)
    size = np.abs(expected).max(axis=0)
    assert (np.abs(motion(k, damping, rho, 10, v) - expected) <= 1e-9 * size).all()


@pytest.mark.parametrize("rho", [0.0, 0.3, 0.5, 0.9, 1.0])
def test_of_an_infinitely_fast_vibration_rho_is_left_each_step(rho: float) -> None:
    """All three roots of the recurrence are -rho there: (E + rho)^3 q = 0 with the shift E of one step."""
    q = motion(1e8, 0.0, rho, 9)[:, 0]
    left = q[3:] + 3 * rho * q[2:-1] + 3 * rho**2 * q[1:-2] + rho**3 * q[:-3]
    assert np.abs(left).max() < 1e-6 * np.abs(q).max()
    if 0 < rho < 1:
        late = np.abs(motion(1e8, 0.0, rho, 400)[-2:, 0])
        assert late[1] / late[0] == pytest.approx(rho, rel=0.05)


def test_without_damping_a_linear_oscillator_keeps_its_energy() -> None:
    x = motion(2.0, 0.0, 1.0, 1000, 0.7)
    energy = x[:, 1] ** 2 / 2 + 2.0 * x[:, 0] ** 2 / 2
    np.testing.assert_allclose(energy, energy[0], rtol=1e-11)
    assert np.ptp(x[:, 0]) > 1  # it swings


def test_less_rho_damps_more_and_slow_motion_hardly() -> None:
    fast, slow = (
        [np.abs(motion(k, 0.0, rho, 60)[-10:, 0]).max() for rho in (1.0, 0.9, 0.5, 0.0)] for k in (100.0, 0.01)
    )
    assert fast[0] > fast[1] > fast[2] > fast[3]
    assert fast[0] > 0.1 > 1e-3 > fast[2]
    assert min(slow) > 0.6


@pytest.mark.parametrize("formulation", ["absolute", "relative"])
def test_a_torsion_spring_counts_turns_in_steps_of_more_than_half_a_turn(formulation: str) -> None:
    """Turns of 4 rad a step; the angle of the spring was taken within half a turn of the last step's."""
    m = cd.Mechanism("wound", gravity=(0, 0, 0))
    m.body("disc", mass=1.0, inertia=(0.1, 0.1, 0.2))
    m.joint("A", cd.Revolute(), m.ground, "disc")
    m.torsion("spring", "A", stiffness=2.0)
    model = m.build()
    runs = [
        cd.simulate(model, 2.0, [0.0], [40.0], method="alpha", formulation=name, step=0.1, samples=21)
        for name in ("spatial", formulation)
    ]
    np.testing.assert_allclose(runs[1].q, runs[0].q, atol=1e-8)
    np.testing.assert_allclose(runs[1].q[:, 0], 40 / 10**0.5 * np.sin(10**0.5 * runs[1].time), atol=1.0)
