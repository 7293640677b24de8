"""The woodpecker toy: impacts, jamming and sliding, in the limit cycle that the literature gives.

Model and dimensions of C. Glocker, Dynamik von Starrkoerpersystemen mit Reibung und Stoessen (1995), for small angles:
height y, angles of sleeve and bird. The example "Woodpecker" of Siconos (WoodPeckerConsts.h) starts on its limit cycle:
sleeve at -0.1036, where it jams, bird at -0.2788, rates -0.3411 m/s, 0 and -7.4583 rad/s.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import casadi as ca
import numpy as np
import pytest

import cardan as cd

pytestmark = pytest.mark.usefixtures("quick_code")

r_O, r_M, h_M = 2.5e-3, 3.1e-3, 5.8e-3
l_M, l_G, l_S, h_S = 10e-3, 15e-3, 20.1e-3, 20e-3
m_M, m_S, J_M, J_S, c_phi = 0.3e-3, 4.5e-3, 5e-9, 7e-7, 0.0056
SLEEVE, BIRD, SPEED, RATE = -0.1036, -0.2788, -0.3411, -7.4583


def woodpecker() -> cd.Mechanism:
    """Angles are slides with moments of inertia for masses; the bird's centre is carried by all three."""
    m = cd.Mechanism("woodpecker")
    for name, mass, axis in (
        ("y", m_M, (0, 0, 1)),
        ("G", m_S, (0, 0, 1)),
        ("M", J_M, (1, 0, 0)),
        ("S", J_S, (1, 0, 0)),
    ):
        m.body(name, mass=mass)
        m.joint(name, cd.Prismatic(axis=axis), m.ground, name)
    m.couple("carried", {"G": 1.0, "y": -1.0, "M": -l_M, "S": -l_G})

    def spring(t: Any, poses: Sequence[Any], twists: Sequence[Any]) -> list[Any]:
        torque = c_phi * (poses[1].position[0] - poses[0].position[0])
        return [ca.vertcat(0, 0, 0, sign * torque, 0, 0) for sign in (1, -1)]

    m.user_force("spring", ["M", "S"], spring)
    m.contact(
        "beak", ["y", "M", "S"], friction=0.3, restitution=0.5,
        gap=lambda t, P, V: l_M + l_G - l_S - r_O - h_S * P[2].position[0],
        tangent=lambda t, P, V: V[0][5] + l_M * V[1][3] + (l_G - l_S) * V[2][3],
    )  # fmt: skip
    for name, side in (("lower", 1.0), ("upper", -1.0)):
        m.contact(
            name, ["y", "M"], friction=0.3,
            gap=lambda t, P, V, side=side: r_M - r_O + side * h_M * P[1].position[0],
            tangent=lambda t, P, V: V[0][5] + r_M * V[1][3],
        )  # fmt: skip
    return m


def test_it_pecks_as_published() -> None:
    """From the published state it comes back to it; impacts and jams follow one another as the literature has them."""
    model = woodpecker().build()
    jam = -(r_M - r_O) / h_M
    assert jam == pytest.approx(SLEEVE, abs=2e-4)
    q, v = cd.assemble(model, {"y": 0.0, "M": jam, "S": BIRD}, {"y": SPEED, "M": 0.0, "S": RATE})
    section = cd.Event("section", lambda s: s.coordinate("S") - BIRD, action="record", direction=-1)
    run = cd.simulate(model, 0.75, q, v, samples=3, events=[section])
    at = [model.v_slice(name).start for name in ("y", "M", "S")]
    met = [event for event in run.events if event.name == "section" and event.time > 0.01]
    assert len(met) == 5
    for event in met[2:]:
        np.testing.assert_allclose(event.v[at], [SPEED, 0.0, RATE], rtol=1e-2, atol=1e-9)
        assert event.q[at[1]] == pytest.approx(jam, abs=1e-9)
    times = [event.time for event in met]
    np.testing.assert_allclose(np.diff(times)[2:], 0.146, rtol=2e-3)  # about 7 Hz
    cycle = [event.name.partition(":")[0] for event in run.events if times[-2] < event.time < times[-1]]
    assert cycle == ["lower", "lower", "lower", "upper", "beak", "upper", "upper", "lower", "lower"]
    assert run.statistics["energy_error"] < 1e-9
