"""Rides and toys whose motion is known in closed form, as a user would write them."""

from __future__ import annotations

from typing import Any

import casadi as ca
import numpy as np
import pytest
from scipy.integrate import quad

import cardan as cd

pytestmark = pytest.mark.usefixtures("quick_code")

G = 9.81
DOWN = (0.0, 0.0, -G)


def test_the_chairs_of_a_swing_ride_hang_at_the_conical_angle() -> None:
    """`g tan(a) = w^2 (R + l sin(a))`, and the chain carries `m g / cos(a)`."""
    R, length, w = 3.0, 4.0, 1.2
    m = cd.Mechanism("swing ride", gravity=DOWN)
    m.body("carousel", mass=500.0, inertia=(1e3, 1e3, 2e3))
    m.joint("spin", cd.Revolute(), m.ground, "carousel")
    m.body("seat", mass=60.0, com=(0, 0, -length))
    m.joint("chain", cd.Revolute(axis=(0, -1, 0)), "carousel", "seat", at=(R, 0, 0), start=0.3)
    model = m.build()
    found = cd.equilibrium(model, rates={"spin": w})
    angle = found.q[1]
    assert np.isclose(G * np.tan(angle), w**2 * (R + length * np.sin(angle)), rtol=1e-9)
    force = cd.reactions(model, found.q, found.v)[1, 3:]
    assert np.isclose(np.linalg.norm(force), 60.0 * G / np.cos(angle))


def test_a_car_of_a_tilt_a_whirl_obeys_the_equation_of_Kautz_and_Huggard() -> None:
    """`p'' + (e - c^2 a) sin(p) + c^2 b cos(p) = 0` over 3 w t, Am. J. Phys. 62 (1994) 69, for small slopes a, b."""
    r1, r2, w, small = 4.3, 0.8, 6.5 * 2 * np.pi / 60, 1e-4
    a0, a1 = 0.036 * small, 0.058 * small

    def slope(u: Any) -> Any:  # of the floor, outwards
        return a0 - a1 * ca.cos(3 * u)

    track = cd.curve(
        lambda u: (r1 * ca.cos(u), r1 * ca.sin(u), r1 * slope(u)), start=0, stop=2 * np.pi, closed=True,
        up=lambda u: (-slope(u) * ca.cos(u), -slope(u) * ca.sin(u), 1), name="hills",
    )  # fmt: skip
    m = cd.Mechanism("tilt-a-whirl", gravity=DOWN)
    m.body("platform", mass=100.0, inertia=(10, 10, 20))
    m.joint("hills", cd.Curvilinear(track), m.ground, "platform")
    m.body("car", mass=80.0, com=(0, -r2, 0))  # outwards where its angle is 0
    m.joint("pivot", cd.Revolute(), "platform", "car")
    m.motion("drive", "hills", lambda t: w * r1 * t)
    model = m.build()
    t, p = np.linspace(0, 9, 7), np.linspace(-3, 3, 7)
    a = [
        cd.forward_dynamics(model, [w * r1 * time, angle], [w * r1, 0.7], t=time)[1]
        for time, angle in zip(t, p, strict=True)
    ]
    c2, e = G / r2 / (3 * w) ** 2, r1 / (9 * r2)
    alpha, beta = a0 - a1 * np.cos(3 * w * t), 3 * a1 * np.sin(3 * w * t)
    expected = -((3 * w) ** 2) * ((e - c2 * alpha) * np.sin(p) + c2 * beta * np.cos(p))
    flat = -((3 * w) ** 2) * e * np.sin(p)
    assert np.abs(expected - flat).max() > 1e-4
    assert np.allclose(a, expected, atol=1e-6)


def test_a_seat_of_spinning_teacups_has_the_sum_of_two_circles() -> None:
    table, cup, R, r = 1.0, 2.5, 4.0, 0.8
    m = cd.Mechanism("teacups", gravity=(0, 0, 0))
    for body in ("table", "cup"):
        m.body(body, mass=100.0, inertia=(160, 160, 300))
    m.joint("turn", cd.Revolute(), m.ground, "table")
    m.joint("cup", cd.Revolute(), "table", "cup", at=(R, 0, 0))
    m.frame("seat", "cup", at=(r, 0, 0))
    m.motion("motor", "turn", lambda t: table * t)
    m.motion("wheel", "cup", lambda t: cup * t)
    run = cd.simulate(m.build(), 2.0, assemble=True, samples=9)
    both = table + cup
    for k, part in enumerate((np.cos, np.sin)):
        expected = -(table**2) * R * part(table * run.time) - both**2 * r * part(both * run.time)
        assert np.allclose(run["seat.acceleration"][:, k], expected, atol=1e-7)


def test_bumper_cars_keep_their_momentum_and_part_with_the_restitution() -> None:
    m = cd.Mechanism("bumper cars", gravity=DOWN)
    for k, x in ((1, -2.0), (2, 2.0)):
        m.body(f"car{k}", mass=200.0 * k, inertia=(20, 20, 30))
        m.joint(f"floor{k}", cd.Planar(x=(1, 0, 0)), m.ground, f"car{k}", start=(x, 0.3 * k, 0))
    m.stop(
        "bump", ["car1", "car2"], gap=lambda t, P, V: ca.norm_2(P[0].position - P[1].position) - 1.2, restitution=0.7
    )
    run = cd.simulate(m.build(), 1.5, v0=[3.0, 0, 0, -1.0, 0, 0], samples=5)
    before, after = run.v[0].reshape(2, 3)[:, :2], run.v[-1].reshape(2, 3)[:, :2]
    mass = np.array([[200.0], [400.0]])
    assert np.allclose((mass * before).sum(axis=0), (mass * after).sum(axis=0), atol=1e-9)
    (event,) = run.events
    n = event.q[3:5] - event.q[:2]
    assert np.isclose((after[1] - after[0]) @ n, -0.7 * (before[1] - before[0]) @ n)


def test_a_gravity_racer_is_held_back_by_its_wheels() -> None:
    """`a = g sin(slope) m / (m + 4 I / r^2)` with the whole mass m."""
    slope, r, I = 0.2, 0.15, 0.03
    m = cd.Mechanism("gravity racer", gravity=(G * np.sin(slope), 0, -G * np.cos(slope)))
    m.body("cart", mass=40.0, inertia=(1, 4, 5))
    m.joint("way", cd.Planar(x=(1, 0, 0)), m.ground, "cart", at=(0, 0, r))
    for k, (x, y) in enumerate(((0.5, 0.3), (0.5, -0.3), (-0.5, 0.3), (-0.5, -0.3))):
        wheel = m.body(f"wheel{k}", mass=2.0, inertia=(I / 2, I, I / 2))
        m.joint(f"axle{k}", cd.Revolute(axis=(0, 1, 0)), "cart", wheel, at=(x, y, 0))
        m.roll(f"tyre{k}", wheel, m.ground, radius=r, axis=(0, 1, 0), holds=("longitudinal", "lateral"))
    model = m.build()
    a = cd.forward_dynamics(model, model.start(), np.zeros(model.nv))
    assert np.isclose(a[0], G * np.sin(slope) * 48 / (48 + 4 * I / r**2))


def test_a_yo_yo_falls_by_its_moment_of_inertia() -> None:
    """`a = g / (1 + I / (m r^2))`, and the string carries `m (g - a)`."""
    mass, r, I = 0.1, 0.01, 4.5e-5
    m = cd.Mechanism("yo-yo", gravity=DOWN)
    m.body("axle")
    m.body("yo-yo", mass=mass, inertia=(I, I, I))
    m.joint("fall", cd.Prismatic(axis=(0, 0, -1)), m.ground, "axle")
    m.joint("spin", cd.Revolute(axis=(0, 1, 0)), "axle", "yo-yo")
    m.couple("string", {"fall": 1, "spin": -r})
    model = m.build()
    a = cd.forward_dynamics(model, [0.0, 0.0], [1.0, 1.0 / r])[0]
    assert np.isclose(a, G / (1 + I / (mass * r**2)))
    assert np.isclose(abs(cd.multipliers(model, [0.0, 0.0], [1.0, 1.0 / r])[0]), mass * (G - a))


def test_a_roly_poly_swings_back() -> None:
    """`w^2 = m g h / (I + m (R - h)^2)` with its centre of mass h below the centre of its sphere."""
    R, h, mass, I = 0.1, 0.04, 0.5, 1e-3
    m = cd.Mechanism("roly-poly", gravity=DOWN)
    m.body("toy", mass=mass, com=(0, 0, -h), inertia=(I, I, I / 2))
    m.joint("free", cd.Free(), m.ground, "toy", start=(0, 0, R, 1, 0, 0, 0))
    m.roll("base", "toy", m.ground, radius=R)
    swing = np.sqrt(mass * G * h / (I + mass * (R - h) ** 2))
    found = np.sort(np.abs(cd.modes(m.build()).eigenvalues.imag))
    assert np.allclose(found[-4:], swing, rtol=1e-7) and np.allclose(found[:-4], 0, atol=1e-5)


def test_a_balancing_bird_hangs_from_its_beak() -> None:
    """Two swings, `w^2 = m g h / (I + m h^2)` about each axis, and no force that turns it about the vertical."""
    mass, h = 0.1, 0.02
    m = cd.Mechanism("balancing bird", gravity=DOWN)
    m.body("bird", mass=mass, com=(0, 0, -h), inertia=(2e-4, 1e-4, 2.5e-4))
    m.joint("beak", cd.Spherical(), m.ground, "bird")
    model = m.build()
    assert cd.equilibrium(model).kind == "neutral"
    found = np.unique(np.abs(cd.modes(model).eigenvalues.imag).round(7))
    assert np.allclose(found[found > 1e-3], [np.sqrt(mass * G * h / (I + mass * h**2)) for I in (2e-4, 1e-4)])


def test_littlewoods_hoop_leaves_the_ground_after_a_quarter_of_a_turn() -> None:
    """A weight on the rim of a hoop without mass, which rolls from where the weight is on top."""
    R = 0.3
    m = cd.Mechanism("hoop", gravity=DOWN)
    m.body("hoop", mass=1.0, com=(0, 0, R), inertia=(1e-9, 1e-9, 1e-9))
    m.joint("plane", cd.Planar(normal=(0, 1, 0), x=(1, 0, 0)), m.ground, "hoop", start=(0, -R, 0.01))
    m.roll("rim", "hoop", m.ground, radius=R, axis=(0, 1, 0), holds=("normal", "longitudinal"))
    model = m.build()
    start, _ = cd.assemble(model)
    speed = np.sqrt(G / R) * np.tan(0.01 / 2)  # as it is after it began on top
    start, rates = cd.assemble(model, start, v={"plane": np.array([R * speed, 0, speed])})
    run = cd.simulate(model, 2.0, start, rates, samples=2001, rtol=1e-10, atol=1e-12)
    angle, force = run.q[:, 2], run["rim.force"][:, 0]
    k = int(np.argmax(force < 0))
    assert np.isclose(
        angle[k - 1] + np.diff(angle)[k - 1] * force[k - 1] / (force[k - 1] - force[k]), np.pi / 2, atol=1e-4
    )


def test_a_tippe_top_inverts_and_keeps_jelletts_number() -> None:
    """No force at the point of contact changes the momentum along the line from there to the centre of mass.

    Friction grows with the speed of sliding: dry friction would stick before the top has risen.
    """
    R, a, mass = 0.02, 0.003, 0.006
    I3 = 2 / 5 * mass * R**2
    I1 = 131 / 132 * I3
    m = cd.Mechanism("tippe top", gravity=DOWN)
    m.body("top", mass=mass, com=(0, 0, -a), inertia=(I1, I1, I3))
    m.joint("free", cd.Free(), m.ground, "top", start=(0, 0, R, np.cos(0.1), np.sin(0.1), 0, 0))
    m.roll("tip", "top", m.ground, radius=R, holds="normal")

    def rub(t: Any, poses: Any, twists: Any) -> list[Any]:
        down = poses[0].rotation.T @ ca.vertcat(0, 0, -R)
        force = -2.0 * mass * G * (twists[0][3:] + ca.cross(twists[0][:3], down))
        return [ca.vertcat(ca.cross(down, force), force)]

    m.user_force("rub", ["top"], rub)
    model = m.build()
    start, rates = cd.assemble(model, v=[0, 0, 155.0, 0, 0, 0])
    run = cd.simulate(model, 2.0, start, rates, samples=21, rtol=1e-7, atol=1e-9)
    axes = run.poses[:, 0, :3, :3]
    momentum = np.einsum("tij,tj->ti", axes, run.v[:, :3] * [I1, I1, I3])
    to_contact = a * axes[:, :, 2] - [0, 0, R]
    jellett = (momentum * to_contact).sum(axis=1)
    assert np.abs(jellett / jellett[0] - 1).max() < 1e-6
    assert axes[0, 2, 2] > 0.97 and axes[-1, 2, 2] < -0.9


def test_the_tip_of_a_folded_chain_falls_faster_than_a_stone() -> None:
    """`v^2 = 2 g x (1 - x / 2 l) / (1 - x / l)`, Calkin and March, Am. J. Phys. 57 (1989) 154; here of links."""
    n, length = 9, 1.0
    link = length / n
    m = cd.Mechanism("folded chain", gravity=DOWN)
    last = m.ground
    for k in range(n):
        body = m.body(f"link{k}", mass=1 / n, com=(0, 0, -link / 2), inertia=cd.inertia.rod(1 / n, link, axis="z"))
        at = (0, 0, -link) if k else (0, 0, 0)
        turn = np.pi / 2 if k in (n // 2, n // 2 + 1) else 0.0  # down, one across, up
        m.joint(f"pin{k}", cd.Revolute(axis=(0, 1, 0)), last, body, at=at, start=turn)
        last = body
    m.frame("tip", last, at=(0, 0, -link))
    model = m.build()
    run = cd.simulate(model, 0.4, model.start(), samples=401, rtol=1e-6, atol=1e-8)
    fallen = run["tip.position"][0, 2] - run["tip.position"][:, 2]
    x = 0.75 * length
    speed = lambda y: np.sqrt(2 * G * y * (1 - y / (2 * length)) / (1 - y / length))
    expected = quad(lambda y: 1 / speed(y), 0, x)[0]
    assert np.isclose(np.interp(x, fallen, run.time), expected, rtol=5e-3)
    assert expected < 0.95 * np.sqrt(2 * x / G)
    assert run["tip.acceleration"][5:250, 2].min() < -1.2 * G
