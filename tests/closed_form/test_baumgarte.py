"""Baumgarte's feedback on a prescribed motion: the error obeys `e'' + 2 p e' + p^2 e = 0`."""

from __future__ import annotations

import numpy as np
import pytest

import cardan as cd
from cardan.formulation.spatial import SPATIAL
from cardan.integrate.integrators import Request

pytestmark = pytest.mark.usefixtures("quick_code")


def driven() -> cd.Model:
    """A rod whose hinge is told to turn by 0.3 sin 2t + 0.5 t."""
    m = cd.Mechanism("driven")
    m.body("rod", mass=1.0, com=(0.5, 0, 0), inertia=(0.1, 0.1, 0.1))
    m.joint("A", cd.Revolute(), m.ground, "rod")
    m.motion("turn", "A", lambda t: 0.3 * np.sin(2 * t) + 0.5 * t)
    return m.build()


@pytest.mark.parametrize("pull", [5.0, 20.0])
def test_a_prescribed_motion_is_followed(pull: float) -> None:
    """The feedback acts on what the velocities miss, `J v - beta`, not on the velocities themselves."""
    run = cd.simulate(driven(), 3.0, method=cd.DormandPrince(baumgarte=pull), samples=31)
    np.testing.assert_allclose(run.q[:, 0], 0.3 * np.sin(2 * run.time) + 0.5 * run.time, atol=1e-6)
    np.testing.assert_allclose(run.v[:, 0], 0.6 * np.cos(2 * run.time) + 0.5, atol=1e-5)


@pytest.mark.parametrize("pull", [2.0, 5.0])
def test_an_error_decays_as_it_should(pull: float) -> None:
    """Begun 0.01 rad off and 0.02 rad/s too fast."""
    e, rate, t = 0.01, 0.02, 0.7
    stepper = cd.DormandPrince(baumgarte=pull).stepper(driven(), SPATIAL, Request(), np.zeros((1, 1)))
    stepper.begin(0.0, np.array([[e]]), np.array([[1.1 + rate]]))
    found = stepper.advance(t)
    left = (e + (rate + pull * e) * t) * np.exp(-pull * t)
    assert found.q[0, 0] - (0.3 * np.sin(2 * t) + 0.5 * t) == pytest.approx(left, abs=1e-7)
