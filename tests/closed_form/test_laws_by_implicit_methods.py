"""Stops, friction that sticks, locks and latches by the implicit and multistep methods, against closed forms."""

import casadi as ca
import numpy as np
import pytest

import cardan as cd

pytestmark = pytest.mark.usefixtures("quick_code")
G = 9.81
METHODS = ("gear", "alpha", "bdf", "adams")


def steps(method: str | cd.Gear, step: float = 1e-2) -> dict:
    """The method, and its step where it has one."""
    return {"method": method, **({"step": step} if method == "alpha" else {})}


def slider(axis=(1, 0, 0), mass=2.0, gravity=(0, 0, -G)) -> cd.Mechanism:
    """A body on one slide, `x`."""
    m = cd.Mechanism("slider", gravity=gravity)
    m.body("b", mass=mass, inertia=cd.inertia.sphere(mass, 0.1))
    m.joint("x", cd.Prismatic(axis=axis), m.ground, "b")
    return m


@pytest.fixture(scope="module")
def ball() -> cd.Model:
    m = slider((0, 0, 1))
    m.stop("floor", "x", lower=0.0, restitution=0.5)
    return m.build()


@pytest.mark.parametrize(
    ("method", "accuracy", "last"),
    [("gear", 1e-11, 3e-5), ("alpha", 1e-13, 1e-8), ("bdf", 1e-6, 3e-5), ("adams", 1e-8, 3e-5)],
)
def test_a_ball_bounces_and_comes_to_rest(ball, method, accuracy, last):
    """Bounces lower than the tolerance are lost in it: there the multistep methods let it rest."""
    heights, e = np.array([[1.0], [2.5]]), 0.5
    run = cd.simulate(ball, 4.0, heights, samples=9, **steps(method))
    for system, height in enumerate(heights[:, 0]):
        fall = np.sqrt(2 * height / G)
        times = np.array([event.time for event in run.events if event.system == (system,)])
        k = np.arange(12)
        np.testing.assert_allclose(times[:12], fall * (1 + 2 * e * (1 - e**k) / (1 - e)), rtol=accuracy)
        assert times[-1] == pytest.approx(fall * (1 + e) / (1 - e), rel=last) and len(times) < 40
    assert np.abs(run.q[:, -1]).max() < 1e-14 and np.abs(run.v[:, -1]).max() < 1e-14
    np.testing.assert_allclose(run["floor.force"][:, -1], 2.0 * G, rtol=1e-12)
    assert run.statistics["energy_error"] < 1e-6 * 2.0 * G * heights.max()
    alone = cd.simulate(ball, 4.0, heights[1], samples=9, **steps(method))
    assert (alone.q == run.q[1]).all() and (alone.v == run.v[1]).all()


def test_a_start_at_rest_stays_and_one_in_flight_hits(ball):
    for method in (cd.Gear(form="index1"), *METHODS):
        run = cd.simulate(ball, 0.3, [0.0], samples=3, **steps(method))
        assert not run.events and np.abs(run.q).max() < 1e-15 and run["floor.mode"].min() == 1
        hit = cd.simulate(ball, 0.1, [0.0], [-1.0], samples=3, **steps(method))
        assert hit.q[-1, 0] == pytest.approx(0.5 * 0.1 - G / 2 * 0.1**2, abs=1e-7)
    with pytest.raises(cd.InputError, match=r"'floor: lower' is violated: its gap is -0.1 m"):
        cd.simulate(ball, 1.0, [-0.1], method="gear")
    with pytest.raises(cd.InputError, match=r"Gear: impact must be"):
        cd.Gear(impact="elastic")


@pytest.fixture(scope="module")
def stick_slip() -> cd.Model:
    m = slider(mass=1.0)
    m.drive("pull", "x", lambda t, q, v: 4.0 * (0.3 * t - q[0]))
    m.friction("f", "x", coulomb=1.2, static=2.0, stick=True)
    return m.build()


PERIOD = np.pi - np.arctan2(0.2 * 2, 0.3) + 2 * 0.2 / 0.3  # of sliding, and of sticking


@pytest.mark.parametrize(("method", "accuracy"), [("gear", 3e-6), ("bdf", 3e-6), ("adams", 1e-7)])
def test_stick_and_slip_have_their_period(stick_slip, method, accuracy):
    run = cd.simulate(stick_slip, 12.0, samples=121, method=method)
    times = np.array([event.time for event in run.events])
    assert times[0] == pytest.approx(2.0 / 4 / 0.3, abs=1e-12)
    np.testing.assert_allclose(times[2:] - times[:-2], PERIOD, rtol=accuracy)
    stuck = run["f.mode"][:, 0] == 1
    assert 0.3 < stuck.mean() < 0.6 and np.abs(run.v[stuck]).max() < 1e-14
    assert run.statistics["energy_error"] < 1e-4


def test_alpha_keeps_its_order_between_events(stick_slip):
    """The error of the period and of the motion falls to a quarter with half the step, whatever the events."""
    exact = cd.simulate(stick_slip, 6.0, samples=31, rtol=1e-12, atol=1e-14)
    errors = []
    for step in (0.02, 0.01, 0.005):
        run = cd.simulate(stick_slip, 6.0, samples=31, method="alpha", step=step)
        times = np.array([event.time for event in run.events])
        errors.append([abs(times[2] - times[0] - PERIOD), np.abs(run.q - exact.q).max()])
    ratios = np.array(errors[:-1]) / np.array(errors[1:])
    assert (np.abs(ratios - 4) < 0.6).all()


@pytest.mark.parametrize("method", METHODS)
def test_friction_by_the_reaction_slides_or_locks_itself(method):
    """A slide down a slope: below tan(slope) it goes on, above it stops and stays."""
    slope, mu = 0.3, np.array([0.2, 0.5])
    m = slider((np.cos(slope), 0, -np.sin(slope)))
    m.friction("f", "x", coefficient=0.1, stick=True)
    model, a = m.build().free("f.coefficient").at({"f.coefficient": mu}), G * (np.sin(slope) - mu * np.cos(slope))
    run = cd.simulate(model, 2.0, v0=[0.5], samples=3, **steps(method))
    np.testing.assert_allclose(run.q[:, -1, 0], [0.5 * 2 + a[0] * 2, 0.125 / -a[1]], rtol=1e-7)
    assert [event.time for event in run.events] == pytest.approx([-0.5 / a[1]], rel=1e-7)
    assert abs(run.v[1, -1, 0]) < 1e-14
    assert run["f.force"][1, -1] == pytest.approx(-2.0 * G * np.sin(slope))


@pytest.mark.parametrize("method", ["gear", "bdf"])
def test_a_stop_before_a_damper_in_series(method):
    """One mass stops, and the damper stops the other at a rate of 1e6 1/s, which holds explicit steps below 3e-6 s."""
    c, v0 = 1e6, -2.0
    m = cd.Mechanism("pair", gravity=(0, 0, -G))
    for name in ("low", "high"):
        m.body(name, mass=1.0, inertia=(1, 1, 1))
    m.joint("A", cd.Prismatic(axis=(0, 0, 1)), m.ground, "low", start=0.5)
    m.joint("B", cd.Prismatic(axis=(0, 0, 1)), "low", "high")
    m.drive("damper", "B", lambda t, q, v: -c * v[0])
    m.stop("floor", "A", lower=0.0)
    run = cd.simulate(m.build(), 1.0, v0=[v0, 0.0], method=method, samples=21)
    hit = (v0 + np.sqrt(v0**2 + 2 * G * 0.5)) / G  # they fall together
    assert [event.time for event in run.events] == pytest.approx([hit], rel=1e-7)
    speed, creep = v0 - G * hit, -G / c
    assert run.q[-1, 1] == pytest.approx((speed - creep) / c + creep * (1.0 - hit), rel=1e-4)
    assert run["floor.force"][-1] == pytest.approx(2 * G, rel=1e-6) and abs(run.q[-1, 0]) < 1e-12
    assert run.statistics["steps"] < 1500


def test_a_latch_catches_and_lets_go_and_a_beam_stands_on_three_legs():
    m = cd.Mechanism("two", gravity=(0, 0, 0))
    for name, mass, at in (("a", 2.0, 0.0), ("b", 1.0, 1.0)):
        m.body(name, mass=mass, inertia=cd.inertia.sphere(mass, 0.1))
        m.joint(name.upper(), cd.Prismatic(axis=(1, 0, 0)), m.ground, name, start=at)
    m.latch("catch", "a", "b")  # six rows, of which one matters
    m.drive("push", "B", 0.6)
    meet = cd.Event("meet", lambda s: s.coordinate("B") - s.coordinate("A") - 0.5, then=cd.lock("catch"), direction=-1)
    part = cd.Event("part", lambda s: s.t - 2.0, then=cd.release("catch"))
    caught = (2.0 - np.sqrt(4.0 - 0.6)) / 0.6
    together, table = (2 * 2.0 + 0.6 * caught) / 3, standing()
    for method in ("gear", "alpha", "bdf"):
        run = cd.simulate(m.build(), 3.0, v0=[2.0, 0.0], events=[meet, part], samples=[1.0, 2.5], **steps(method, 1e-3))
        assert run.events[0].time == pytest.approx(caught, rel=1e-7)
        np.testing.assert_allclose(run.v[1], together + 0.2 * (1 - caught), rtol=1e-7)
        np.testing.assert_allclose(run["catch.force"][1][0], -0.4, rtol=1e-7)
        after = together + 0.2 * (2 - caught)
        np.testing.assert_allclose(run.v[2], [after, after + 0.6 * 0.5], rtol=1e-7)
        rest = cd.simulate(table, 0.2, samples=3, **steps(method, 1e-3))
        assert not rest.events and np.abs(rest.v).max() < 1e-12
        assert sum(rest[f"leg{k}.force"][-1] for k in range(3)) == pytest.approx(3.0 * G, rel=1e-9)


def standing() -> cd.Model:
    """A beam on three legs, of which any two carry it."""
    m = cd.Mechanism("table", gravity=(0, -G, 0))
    m.body("beam", mass=3.0, inertia=(0.2, 0.3, 0.4))
    m.joint("plane", cd.Planar((0, 0, 1)), m.ground, "beam", start=(0, 0.5, 0))
    for k in range(3):
        foot = ca.DM([0.3 * (k - 1), -0.5, 0])
        m.contact(f"leg{k}", ["beam"], gap=lambda t, P, T, c=foot: (P[0].position + P[0].rotation @ c)[1])
    return m.build()


def test_a_puck_slides_straight_until_it_stops():
    m = cd.Mechanism("puck", gravity=(0, 0, -G))
    m.body("along", mass=0.0)
    m.body("across", mass=0.0)
    m.body("puck", mass=0.5, inertia=cd.inertia.sphere(0.5, 0.1))
    m.joint("x", cd.Prismatic(axis=(1, 0, 0)), m.ground, "along")
    m.joint("y", cd.Prismatic(axis=(0, 1, 0)), "along", "across")
    m.joint("z", cd.Prismatic(axis=(0, 0, 1)), "across", "puck")
    m.contact(
        "ice", ["puck"], gap=lambda t, poses, twists: poses[0].position[2],
        tangent=lambda t, poses, twists: twists[0][3:5], friction=0.3,
    )  # fmt: skip
    model, speed, mu = m.build(), np.hypot(1.0, 0.5), 0.3
    for method in ("gear", "alpha", "bdf"):
        run = cd.simulate(model, 0.6, v0=[1.0, 0.5, 0.0], samples=3, **steps(method, 1e-3))
        assert run.events[-1].time == pytest.approx(speed / mu / G, rel=2e-6)
        np.testing.assert_allclose(run.q[-1], np.array([1.0, 0.5, 0.0]) * speed / 2 / mu / G, atol=1e-7)
        assert np.abs(run.v[-1]).max() < 1e-12


@pytest.mark.parametrize("method", ["gear", "alpha", "bdf"])
def test_a_variable_with_a_rate_is_integrated_through_stops(method):
    """A motor's current, with back-EMF, pushes a slide against a stop: there it rises to voltage over resistance."""
    R, k, voltage = 2.0, 1.5, 6.0
    m = slider(mass=0.5, gravity=(0, 0, 0))
    m.controller("motor", "x", cd.Motor(constant=k, resistance=R, inductance=0.05))
    m.stop("end", "x", upper=0.3)
    run = cd.simulate(m.build().at({"motor.voltage": voltage}), 1.5, samples=[1.0], **steps(method, 1e-3))
    assert len(run.events) == 1 and run.q[-1, 0] == pytest.approx(0.3, abs=1e-12)
    assert run["motor.current"][-1] == pytest.approx(voltage / R, rel=1e-6)
    assert run["end.force"][-1] == pytest.approx(k * voltage / R, rel=1e-6)


def test_a_variable_integrates_the_force_of_a_stop():
    """A point mass falls on a floor and stays: its weight acts from then on. No link of it has a moment of inertia."""
    m = cd.Mechanism("fall", gravity=(0, 0, -G))
    m.body("b", mass=2.0)
    m.joint("x", cd.Prismatic(axis=(0, 0, 1)), m.ground, "b", start=0.2)
    m.stop("floor", "x", lower=0.0)
    m.variable("impulse", 0.0, rate=lambda s: s.force("floor")[0])
    model, impulse = m.build(), 2.0 * G * (0.5 - np.sqrt(0.4 / G))
    for method, formulation in (("gear", "absolute"), ("alpha", "absolute"), ("bdf", "spatial")):
        run = cd.simulate(model, 0.5, formulation=formulation, samples=3, **steps(method))
        assert run["impulse"][-1] == pytest.approx(impulse, rel=1e-7)
