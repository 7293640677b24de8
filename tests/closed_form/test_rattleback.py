"""A rattleback: an ellipsoid that rolls on a plane, by constraints of the user's own, against its Euler equations.

Dimensions of T. R. Kane, D. A. Levinson, "Realistic mathematical modeling of the rattleback", Int. J. Non-Linear
Mechanics 17 (1982) 175-186. With the vertical g in body axes the lowest point is at `r(g)` from the centre of mass, and

    v = -w x r        m (v' + w x v) = F - m G g        I w' + w x I w = r x F        g' = g x w
"""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest

import cardan as cd

pytestmark = pytest.mark.usefixtures("quick_code")
G, MASS, ABOVE = 9.81, 1.0, 0.01  # ABOVE: of the middle of the ellipsoid above the centre of mass, m
AXES = np.array([0.2, 0.03, 0.02])
INERTIA = np.array([[2e-4, -2e-5, 0], [-2e-5, 1.6e-3, 0], [0, 0, 1.7e-3]])


@pytest.fixture(scope="module")
def stone() -> cd.Model:
    squares = ca.DM(np.diag(AXES**2))

    def lowest(pose):
        g = pose.rotation.T @ ca.DM([0, 0, 1])
        return ca.DM([0, 0, ABOVE]) - squares @ g / ca.sqrt(ca.dot(g, squares @ g))

    def slip(t, poses, twists):
        w, v = twists[0][:3], twists[0][3:]
        return poses[0].rotation @ (v + ca.cross(w, lowest(poses[0])))

    m = cd.Mechanism("rattleback", gravity=(0, 0, -G))
    m.body("stone", mass=MASS, inertia=INERTIA)
    m.joint("float", cd.Free(), m.ground, "stone", start=(0, 0, AXES[2] - ABOVE, 1, 0, 0, 0))
    m.constraint("touch", ["stone"], lambda t, P, V: (P[0].position + P[0].rotation @ lowest(P[0]))[2])
    for k in (0, 1):
        m.constraint(f"roll {k}", ["stone"], lambda t, P, V, k=k: slip(t, P, V)[k])
    return m.build()


def euler(w: np.ndarray, g: np.ndarray) -> np.ndarray:
    """Angular acceleration (3,) in body axes."""

    def skew(a: np.ndarray) -> np.ndarray:
        return np.cross(np.eye(3), a).T

    D = AXES**2
    n = np.sqrt(g @ (D * g))
    r, g_dot = np.array([0, 0, ABOVE]) - D * g / n, np.cross(g, w)
    r_dot = -D * g_dot / n + D * g * (g @ (D * g_dot)) / n**3
    v = -np.cross(w, r)
    # v' = r x w' - w x r'
    F0 = MASS * (-np.cross(w, r_dot) + np.cross(w, v) + G * g)
    return np.linalg.solve(INERTIA - MASS * skew(r) @ skew(r), np.cross(r, F0) - np.cross(w, INERTIA @ w))


def test_accelerations_are_eulers(stone: cd.Model) -> None:
    rng = np.random.default_rng(1)
    for _ in range(5):
        turn = rng.normal(size=4)
        q, v = cd.assemble(
            stone,
            [0, 0, 0.02, *(turn / np.linalg.norm(turn))],
            dict(zip(["float[0]", "float[1]", "float[2]"], rng.normal(size=3), strict=True)),
        )
        g = cd.body_poses(stone, q)[0, 2, :3]
        a = cd.forward_dynamics(stone, q, v)
        np.testing.assert_allclose(a[:3], euler(v[:3], g), rtol=1e-9, atol=1e-9 * np.abs(a[:3]).max())


def test_it_turns_back(stone: cd.Model) -> None:
    """Spun at -5 rad/s it rattles, and then turns the other way; its energy stays. The other way round it goes on."""
    tilt = np.deg2rad(0.5) / 2
    ends = []
    for spin in (-5.0, 5.0):
        rates = {"float[0]": 0.0, "float[1]": 0.0, "float[2]": spin}
        q, v = cd.assemble(stone, [0, 0, AXES[2] - ABOVE, np.cos(tilt), np.sin(tilt), 0, 0], rates)
        run = cd.simulate(stone, 5.0, q, v, samples=26, rtol=1e-8, atol=1e-10)
        assert np.ptp(run.energy) < 1e-6 * run.energy[0]
        ends.append(run.angular_velocity("stone")[-1, 2])
    assert ends[0] > 1.0 and ends[1] > 4.0
