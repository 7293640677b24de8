"""Steps are chosen by positions that no row holds: a blade whose heading is prescribed goes where it points."""

import casadi as ca
import numpy as np
from scipy.integrate import quad

import cardan as cd

SPEED, ONSET, TURN = 20.0, 0.5, 0.3  # m/s, s, rad


def heading(t: np.ndarray) -> np.ndarray:
    """Straight on, then to one side and back."""
    return np.where(abs(t - 2) < 1.5, TURN * np.sin(2 * np.pi * (t - ONSET) / 3) ** 4, 0.0)


def test_a_blade_goes_where_it_points():
    """A step that passes the onset of the turn is too long, though rates at its end fit the constraints."""
    m = cd.Mechanism("blade", gravity=(0, 0, 0))
    m.body("slide")
    m.body("cross")
    m.body("blade", mass=1.0, inertia=(0.1, 0.1, 0.1))
    m.joint("x", cd.Prismatic(axis=(1, 0, 0)), m.ground, "slide")
    m.joint("y", cd.Prismatic(axis=(0, 1, 0)), "slide", "cross")
    m.joint("heading", cd.Revolute(axis=(0, 0, 1)), "cross", "blade")
    m.knife_edge("edge", "blade")
    turned = lambda t: TURN * ca.sin(2 * np.pi * (t - ONSET) / 3) ** 4
    m.motion("turn", "heading", lambda t: ca.if_else(ca.fabs(t - 2) < 1.5, turned(t), 0))
    run = cd.simulate(m.build(), 4.0, v0=[SPEED, 0, 0], samples=41)
    for k in range(41):
        y = quad(lambda t: SPEED * np.sin(heading(t)), 0, run.time[k], epsabs=1e-9, points=[ONSET, 3.5])[0]
        assert abs(run.q[k, 1] - y) < 1e-6
    assert abs(np.hypot(run.v[:, 0], run.v[:, 1]) - SPEED).max() < 1e-5
