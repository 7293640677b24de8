"""Friction by forces of elements, along several coordinates or directions: closed forms by both methods."""

import casadi as ca
import numpy as np
import pytest

import cardan as cd
from cardan.model.constraint import Constraint
from cardan.model.field import NOT_NEGATIVE, Field
from cardan.model.force import ForceKind
from cardan.model.law import LawfulElement
from cardan.model.row import Law

pytestmark = pytest.mark.usefixtures("quick_code")


def turning_friction(f, joints):
    """Three rows that share a bound: the angular velocity of a body, in its axes."""
    rows = tuple(Constraint(f.name, f.on, lambda t, P, V, k=k: V[0][k], "rad").traced() for k in range(3))
    names = ("sliding 1", "sliding 2", "sliding 3")
    return LawfulElement(f, rows, (Law.FRICTION,) * 3, names, discs=((0, 1, 2),))


TURNING = ForceKind(
    "turning friction", "bodies", lambda f, t, P, V: [ca.SX(6, 1)], bodies=1, lawful=turning_friction,
    fields={"coulomb": Field("N m", "largest moment", rule=NOT_NEGATIVE), "static": Field("N m", "at rest")},
)  # fmt: skip


@pytest.mark.parametrize(
    ("method", "accuracy"),
    [({}, 2e-7), ({"method": "bdf"}, 2e-6), ({"method": "gear"}, 2e-6), ({"method": "moreau", "step": 1e-3}, 4e-3)],
)
def test_a_ball_turns_against_friction_in_all_directions_and_sticks(method, accuracy):
    """|m| <= M in three directions: the spin falls at M / I to zero; it sticks, until a load exceeds M at rest."""
    inertia, M, axis, spin = 0.4, 0.5, np.array([2.0, 1.0, -2.0]) / 3, np.array([0.6, -0.3, 0.2])
    m = cd.Mechanism("ball", gravity=(0, 0, 0))
    m.body("ball", mass=1.0, inertia=(inertia,) * 3)
    m.joint("turn", cd.Spherical(), "ground", "ball")
    m.force("socket", TURNING, "ball", coulomb=M, static=0.7)

    def load(t, P, V):
        return [ca.vertcat(P[0].rotation.T @ (0.1 * ca.fmax(t - 1, 0) ** 3 * axis), 0, 0, 0)]

    m.user_force("load", ["ball"], load)
    run = cd.simulate(m.build(), 3.4, v0=[spin], samples=18, **method)
    assert np.abs(run.v[0, 3:15]).max() < 1e-12  # 0.7 N m are reached at 2.913 s
    away = 7.0 ** (1 / 3)
    rate = ((2.4**4 - away**4) * 0.1 / 4 - M * (2.4 - away)) / inertia
    turning = cd.body_poses(run.model, run.q[0, -1])[0, :3, :3] @ run.v[0, -1]
    np.testing.assert_allclose(turning, rate * axis, rtol=accuracy)
    if "step" not in method:
        stop, leave = run.events[0], run.events[-1]
        assert stop.time == pytest.approx(inertia * 0.7 / M, abs=1e-7)
        assert leave.time == pytest.approx(1 + away, abs=1e-9)
        np.testing.assert_allclose(np.linalg.norm(run["socket.force"][0, 1]), M)


@pytest.mark.parametrize("method", [{}, {"method": "moreau", "step": 1e-3}])
def test_a_disc_whose_directions_the_mechanism_does_not_all_have(method):
    """A block that a guide lets move along one line only, at 30 degrees to the axes of its contact."""
    along, mu, push = np.array([np.cos(0.5), np.sin(0.5), 0.0]), 0.3, 4.0
    m = cd.Mechanism("guided")
    m.body("carrier", mass=0.5, inertia=(1, 1, 1))
    m.body("block", mass=2.0, inertia=(1, 1, 1))
    m.joint("lift", cd.Prismatic(axis=(0, 0, 1)), "ground", "carrier")
    m.joint("x", cd.Prismatic(axis=along), "carrier", "block")

    def sliding(t, P, V):
        return (P[0].rotation @ V[0][3:])[:2]

    m.contact("floor", ["block"], gap=lambda t, P, V: P[0].position[2], tangent=sliding, friction=mu)
    m.drive("push", "x", lambda t, q, v: push * t)
    run = cd.simulate(m.build(), 3.0, samples=13, **method)
    begin = mu * 2.5 * 9.81 / push  # the push reaches the friction
    assert np.abs(run.v[run.time < begin]).max() < 1e-9
    moving = run.time > begin + 0.01
    speed = push * (run.time[moving] - begin) ** 2 / 2 / 2.0
    np.testing.assert_allclose(run.v[moving, 1], speed, rtol=1e-6 if not method else 5e-3, atol=1e-6)
    held = run["floor.force"][3]
    np.testing.assert_allclose(held[1:], -push * 0.75 * along[:2], atol=1e-6 if not method else 3e-3)
