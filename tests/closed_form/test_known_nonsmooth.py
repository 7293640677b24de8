"""Rolling, impacts and friction with closed forms that textbooks and papers have.

Sources: J. I. Neimark, N. A. Fufaev, Dynamics of Nonholonomic Systems (1972), chapter 6: a rolling disc is stable above
a speed. F. Genot, B. Brogliato, Eur. J. Mech. A 18 (1999) 653-677: Painleve's rod. S. W. Shaw, P. J. Holmes, J. Sound
Vib. 90 (1983) 129-155: orbits of period one of an oscillator with a stop. J. Guckenheimer, P. J. Holmes, Nonlinear
Oscillations (1983), section 2.4: the ball on a vibrating table.
"""

from __future__ import annotations

from typing import Any

import casadi as ca
import numpy as np
import pytest
from scipy.optimize import fsolve

import cardan as cd

pytestmark = pytest.mark.usefixtures("quick_code")
G = 9.81


def test_a_disc_that_rolls_or_spins_fast_enough_stays_upright() -> None:
    """Speeds `g r / 3` and `4 g / (5 r)` squared; leaning obeys `x'' = 4 g / (5 r) (1 - (rate / critical)^2) x`."""
    r, mass = 0.3, 2.0
    m = cd.Mechanism("disc")
    parts = (
        ("x", cd.Prismatic(axis=(1, 0, 0))), ("y", cd.Prismatic(axis=(0, 1, 0))), ("z", cd.Prismatic(axis=(0, 0, 1))),
        ("yaw", cd.Revolute(axis=(0, 0, 1))), ("lean", cd.Revolute(axis=(1, 0, 0))),
    )  # fmt: skip
    before = m.ground
    for name, joint in parts:
        m.body(f"{name} part")
        m.joint(name, joint, before, f"{name} part", start=r if name == "z" else 0.0)
        before = f"{name} part"
    m.body("disc", mass=mass, inertia=mass * r**2 / 4 * np.array([1, 2, 1]))
    m.joint("spin", cd.Revolute(axis=(0, 1, 0)), before, "disc")
    m.roll("rim", "disc", m.ground, radius=r, axis=(0, 1, 0))
    model = m.build()
    factor = np.array([0.5, 0.999, 1.001, 2.0])
    rolling, spinning = np.zeros((4, 6)), np.zeros((4, 6))
    rolling[:, 5] = factor * np.sqrt(G / 3 / r)
    rolling[:, 0] = r * rolling[:, 5]
    spinning[:, 3] = factor * np.sqrt(4 * G / 5 / r)
    expected = np.sqrt((4 * G / 5 / r * (1 - factor**2)).astype(complex))
    for rates in (rolling, spinning):
        found = cd.modes(model, np.broadcast_to(model.start(), (4, 6)), rates).eigenvalues
        nearest = np.abs(found[:, :, None] - expected[:, None, None] * np.array([1, -1])).min(axis=1)
        assert nearest.max() < 1e-9
        others = np.sort(np.abs(found), axis=1)[:, :-2]
        assert others.max() < 1e-5


def painleve(mu: float) -> cd.Mechanism:
    """A uniform rod of 2 m and 1 kg that slides on one end."""
    m = cd.Mechanism("rod", gravity=(0, 0, -G))
    m.body("along")
    m.body("up")
    m.body("rod", mass=1.0, inertia=(1e-3, 1 / 3, 1 / 3))
    m.joint("x", cd.Prismatic(axis=(1, 0, 0)), m.ground, "along")
    m.joint("z", cd.Prismatic(axis=(0, 0, 1)), "along", "up")
    m.joint("turn", cd.Revolute(axis=(0, 1, 0)), "up", "rod")
    tip = ca.DM([-1.0, 0.0, 0.0])
    m.contact(
        "tip", ["rod"], friction=mu, gap=lambda t, P, T: (P[0].position + P[0].rotation @ tip)[2],
        tangent=lambda t, P, T: (P[0].rotation @ (T[0][3:] + ca.cross(T[0][:3], tip)))[0],
    )  # fmt: skip
    return m


def test_painleve_begins_at_a_coefficient_of_four_thirds() -> None:
    """Below it every angle has one force; above it there is an angle, `tan = 2`, with none, or with two."""
    model, lean = painleve(1.0).build().free("tip.coefficient"), np.arctan(2.0)
    s, c = np.sin(lean), np.cos(lean)
    sliding = [-2.0, 0.0, 0.0]
    pushed = [-2.0 + 10 * s, -10 * c, 10.0]  # the other end turns down, so that the tip would lift off
    below, above = (model.at({"tip.coefficient": 4 / 3 * k}) for k in (1 - 1e-4, 1 + 1e-4))
    at = [0.0, s, -lean]
    N = G / (1 + 3 * c**2 - 3 * 4 / 3 * (1 - 1e-4) * s * c)
    np.testing.assert_allclose(cd.forward_dynamics(below, at, sliding)[1], N - G, rtol=1e-9)
    np.testing.assert_allclose(cd.forward_dynamics(below, at, pushed), [0.0, -G, 0.0], atol=1e-9)
    with pytest.raises(cd.InputError, match=r"no forces of the rows with laws fit \(Painleve"):
        cd.forward_dynamics(above, at, sliding)
    with pytest.raises(cd.InputError, match=r"several forces of the rows with laws fit \(Painleve"):
        cd.forward_dynamics(above, at, pushed)
    angles = np.linspace(0.05, np.pi / 2 - 0.05, 40)
    q = np.stack([0 * angles, np.sin(angles), -angles], axis=1)
    N = G / (1 + 3 * np.cos(angles) ** 2 - 4 * (1 - 1e-4) * np.sin(angles) * np.cos(angles))
    np.testing.assert_allclose(cd.forward_dynamics(below, q, sliding)[:, 1], N - G, rtol=1e-7)


def test_a_clutch_engages() -> None:
    """It slips for `w J1 J2 / ((J1 + J2) T)`, and turns half of the speed that is lost, times T, into heat."""
    J1, J2, T, w = 0.2, 0.5, 4.0, 100.0
    m = cd.Mechanism("clutch", gravity=(0, 0, 0))
    for name, J in (("engine", J1), ("load", J2)):
        m.body(name, mass=1.0, inertia=(1, 1, J))
    m.joint("shaft", cd.Revolute(), m.ground, "engine")
    m.joint("slip", cd.Revolute(), "engine", "load")
    m.friction("plates", "slip", coulomb=T, stick=True)
    run = cd.simulate(m.build(), 10.0, v0=[w, -w], samples=3)
    (engaged,) = run.events
    duration = w * J1 * J2 / (J1 + J2) / T
    assert engaged.time == pytest.approx(duration, rel=1e-12)
    np.testing.assert_allclose(run.v[-1], [w * J1 / (J1 + J2), 0.0], rtol=1e-12)
    np.testing.assert_allclose(run.energy[0] - run.energy[-1], T * w * duration / 2, rtol=1e-12)


@pytest.mark.parametrize("method", [{}, {"method": "moreau", "step": 5e-4}], ids=["events", "moreau"])
def test_a_ball_bounces_in_step_with_a_table(method: dict[str, Any]) -> None:
    """Where the table rises with `g T / 2 (1 - e) / (1 + e)` the ball meets it again after the time T."""
    e, size, w = 0.6, 0.02, 30.0
    T = 2 * 2 * np.pi / w  # two periods of the table
    phase = -np.arccos(G * T / 2 * (1 - e) / (1 + e) / (size * w))  # it rises and slows down: that orbit is stable
    m = cd.Mechanism("ball")
    m.body("ball", mass=1.0)
    m.joint("z", cd.Prismatic(axis=(0, 0, 1)), m.ground, "ball")
    m.stop("table", ["ball"], lambda t, P, V: P[0].position[2] - size * ca.sin(w * t - phase), restitution=e)
    run = cd.simulate(
        m.build(), 5.25 * T, [-size * np.sin(phase)], [G * T / 2], samples=[T * k + T / 2 for k in range(5)], **method
    )
    top = -size * np.sin(phase) + G * T**2 / 8
    np.testing.assert_allclose(run.q[1:-1, 0], top, rtol=0, atol=5e-3 if method else 1e-9)
    if not method:
        np.testing.assert_allclose([event.time for event in run.events], T * np.arange(1, 6), rtol=1e-10)


def test_an_oscillator_strikes_its_stop_once_in_a_period() -> None:
    """`x'' + x = cos(w t + phase)` with a stop at 0: from the closed form of the orbit it comes back."""
    w, e = 2.6, 0.8
    T, P = 2 * np.pi / w, 1 / (1 - w**2)

    def open_ends(z: np.ndarray) -> list[float]:
        phase, U = z  # after an impact x = 0 and x' = -U, at the next one x = 0 and x' = U / e
        C, D = -P * np.cos(phase), -U + P * w * np.sin(phase)
        x = C * np.cos(T) + D * np.sin(T) + P * np.cos(phase)
        return [x, -C * np.sin(T) + D * np.cos(T) - P * w * np.sin(phase) - U / e]

    phase, U = fsolve(open_ends, (3.0, 0.4), xtol=1e-14)
    assert np.abs(open_ends(np.array([phase, U]))).max() < 1e-13 and U > 0.1
    m = cd.Mechanism("oscillator", gravity=(0, 0, 0))
    m.body("mass", mass=1.0)
    m.joint("x", cd.Prismatic(axis=(1, 0, 0)), m.ground, "mass")
    m.torsion("spring", "x", stiffness=1.0)
    m.drive("shaker", "x", lambda t, q, v: ca.cos(w * t + phase))
    m.stop("wall", "x", upper=0.0, restitution=e)
    run = cd.simulate(m.build(), 4.5 * T, v0=[-U], samples=2, rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose([event.time for event in run.events], T * np.arange(1, 5), rtol=1e-9)
    np.testing.assert_allclose([event.v[0] for event in run.events], U / e, rtol=1e-8)


def test_a_tractor_with_trailers_turns() -> None:
    """In a steady turn each trailer follows on a circle with `R_k^2 = R_(k-1)^2 - L_k^2`."""
    lengths, steer = (2.0, 1.5, 1.0, 1.2), 0.4
    m = cd.Mechanism("train", gravity=(0, 0, 0))
    m.body("car 0", mass=1.0, inertia=(1, 1, 1))
    m.joint("road", cd.Planar(), m.ground, "car 0")
    m.body("front", mass=0.1, inertia=(0.1, 0.1, 0.1))
    m.joint("steer", cd.Revolute(), "car 0", "front", at=(lengths[0], 0, 0), start=steer)
    m.lock("hold", "steer", closed=True)
    m.knife_edge("front axle", "front")
    m.knife_edge("axle 0", "car 0")
    for k in (1, 2, 3):
        m.body(f"car {k}", mass=1.0, inertia=(1, 1, 1))
        m.joint(f"hitch {k}", cd.Revolute(), f"car {k - 1}", f"car {k}", child_at=(lengths[k], 0, 0))
        m.knife_edge(f"axle {k}", f"car {k}")
    model = m.build()
    q, v = cd.assemble(model, model.start(), {"road[0]": 1.0, "steer": 0.0})
    run = cd.simulate(model, 60.0, q, v, samples=61)
    assert np.ptp(run.energy) < 1e-6 * run.energy[0]
    centre = np.array([0.0, lengths[0] / np.tan(steer)])  # the axles of the first car meet there, for good
    away = [np.linalg.norm(run.position(f"car {k}")[-1, :2] - centre) for k in range(4)]
    squares = (lengths[0] / np.tan(steer)) ** 2 - np.cumsum(np.square([0.0, *lengths[1:]]))
    np.testing.assert_allclose(np.square(away), squares, rtol=1e-6)
