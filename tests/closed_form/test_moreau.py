"""Time stepping by Moreau's rule against closed forms: impacts, sticking, sliding, rolling."""

import casadi as ca
import numpy as np
import pytest

import cardan as cd

pytestmark = pytest.mark.usefixtures("quick_code")
G = 9.81


def sliding(gravity: tuple[float, float, float], mass: float = 1.0) -> cd.Mechanism:
    """A block on a slide along x."""
    m = cd.Mechanism("block", gravity=gravity)
    m.body("block", mass=mass, inertia=(1, 1, 1))
    m.joint("x", cd.Prismatic(axis=(1, 0, 0)), "ground", "block")
    return m


def test_bouncing_ball() -> None:
    """Its height after some bounces, to order one in the step; it rests after the accumulation time."""
    e, height = 0.6, 1.0
    m = cd.Mechanism("ball")
    m.body("ball", mass=2.0, inertia=(1, 1, 1))
    m.joint("z", cd.Prismatic(axis=(0, 0, 1)), "ground", "ball", start=height)
    m.stop("floor", "z", lower=0.0, restitution=e)
    model = m.build()
    first = np.sqrt(2 * height / G)
    since = 1.3 - first * (1 + 2 * e)  # between the second and the third bounce
    assert 0 < since < 2 * e**2 * first
    z = e**2 * G * first * since - G * since**2 / 2
    for step in (2e-3, 5e-4):
        run = cd.simulate(model, 3.0, method="moreau", step=step, samples=[0.0, 1.3, 3.0])
        assert abs(run.q[1, 0] - z) < 10 * step
        assert abs(run.q[2, 0]) < step and abs(run.v[2, 0]) < 1e-12  # accumulation is at 1.8 s
        assert run.statistics["largest_penetration"] < 5 * step
    np.testing.assert_allclose(run["floor.force"], [0, 0, 2.0 * G], atol=1e-9)
    np.testing.assert_allclose(run.a[:, 0], [-G, -G, 0], atol=1e-9)
    np.testing.assert_allclose(run.reaction("z")[-1], [0, 0, 0, 0, 0, 2.0 * G], atol=1e-9)


@pytest.mark.parametrize("mu", [0.3, 0.6])
def test_block_thrown_up_a_slope(mu: float) -> None:
    """It stops where work says, and stays if the slope is below the angle of friction; else it slides back."""
    angle, v0 = 0.4, 2.0
    m = sliding((-G * np.sin(angle), 0.0, -G * np.cos(angle)))
    m.friction("slope", "x", coefficient=mu, stick=True)
    up, down = (G * (np.sin(angle) + sign * mu * np.cos(angle)) for sign in (1, -1))
    run = cd.simulate(m.build(), 1.0, v0=[v0], method="moreau", step=1e-3, samples=11)
    top, stopped = v0**2 / 2 / up, v0 / up
    expected = top - max(down, 0.0) / 2 * (1.0 - stopped) ** 2
    assert abs(run.q[-1, 0] - expected) < 2e-3
    if down < 0:  # it stays where it is
        assert abs(run.v[-1, 0]) < 1e-12 and abs(run.q[-1, 0] - run.q[-3, 0]) < 1e-13


def test_stick_slip_oscillator() -> None:
    """A block pulled by a spring whose end moves steadily: the period of sticking and sliding."""
    k, speed, static, coulomb = 40.0, 0.2, 3.0, 2.0
    m = sliding((0.0, 0.0, -G))
    m.drive("spring", "x", lambda t, q, v: k * (speed * t - q))
    m.friction("ground", "x", coulomb=coulomb, static=static, stick=True)
    step = 1e-3
    run = cd.simulate(m.build(), 3.5, method="moreau", step=step, samples=3501)
    a, w = (static - coulomb) / k, np.sqrt(k)
    period = 2 * a / speed + (2 * np.pi - 2 * np.arctan(a * w / speed)) / w
    sticks = np.abs(run.v[:, 0]) < 1e-12
    begins = run.time[1:][sticks[:-1] & ~sticks[1:]]
    assert len(begins) >= 3 and abs(begins[0] - static / k / speed) < 3 * step
    np.testing.assert_allclose(np.diff(begins), period, atol=4 * step)


def test_ball_slips_until_it_rolls() -> None:
    """At 5/7 of its speed, whatever the friction; a contact with two directions of sliding."""
    r = 0.1
    m = cd.Mechanism("bowling")
    m.body("ball", mass=3.0, inertia=(0.4 * 3.0 * r**2,) * 3)
    m.joint("free", cd.Free(), "ground", "ball", start=(0, 0, r, 1, 0, 0, 0))

    def sliding_velocity(t, poses, twists):
        R, w, v = poses[0].rotation, twists[0][:3], twists[0][3:]
        return (R @ v + ca.cross(R @ w, ca.vertcat(0, 0, -r)))[:2]

    m.contact(
        "lane", ["ball"], gap=lambda t, P, V: P[0].position[2] - r, tangent=sliding_velocity, friction=0.3
    )  # fmt: skip
    model = m.build()
    run = cd.simulate(model, 0.5, v0=[0, 0, 0, 0.6, 0.8, 0], method="moreau", step=1e-3, samples=3)
    R = cd.body_poses(model, run.q[-1])[0, :3, :3]
    np.testing.assert_allclose(R @ run.v[-1, 3:], np.array([0.6, 0.8, 0]) * 5 / 7, atol=2e-4)
    assert run.statistics["largest_penetration"] < 5e-5
    np.testing.assert_allclose(run["lane.force"][0], [3.0 * G, -0.6 * 0.9 * G, -0.8 * 0.9 * G], rtol=1e-6)
    np.testing.assert_allclose(run["lane.force"][-1], [3.0 * G, 0, 0], atol=0.05)
    np.testing.assert_allclose(R @ run.v[-1, :3], np.array([-0.8, 0.6, 0]) * 5 / 7 / r, atol=2e-3)


@pytest.mark.parametrize("law", ["newton", "poisson", "sequential"])
def test_cradle(law: str) -> None:
    """One ball in, one ball out, by impacts one after the other; all at once, both laws with e = 1 share it."""
    touching = [0, 0, 0, 1] if law == "sequential" else [-0.5, 0.5, 0.5, 0.5]
    for gap, expected in ((0.01, [0, 0, 0, 1]), (0.0, touching)):
        m = cd.Mechanism("cradle", gravity=(0, 0, 0))
        for k in range(4):
            m.body(f"ball{k}", mass=0.5, inertia=(1, 1, 1))
            m.joint(f"x{k}", cd.Prismatic(axis=(1, 0, 0)), "ground", f"ball{k}", start=k * gap)
        for k in range(3):
            apart = lambda t, P, V: P[1].position[0] - P[0].position[0]
            m.stop(f"touch{k}", [f"ball{k}", f"ball{k + 1}"], apart, restitution=1.0)
        method = cd.Moreau(impact=law)
        run = cd.simulate(m.build(), 0.1, v0=[1, 0, 0, 0], method=method, step=1e-3, samples=2)
        np.testing.assert_allclose(run.v[-1], expected, atol=1e-12)


def test_compliant_stop() -> None:
    """Half a period of its spring in contact; without damping the speed comes back."""
    m = sliding((0.0, 0.0, 0.0), mass=2.0)
    m.stop("buffer", "x", upper=0.1, stiffness=800.0)
    model = m.build()
    assert not model.laws
    run = cd.simulate(model, 0.1 + np.pi * np.sqrt(2.0 / 800.0), v0=[1.0], samples=3, breaks=[0.1])
    np.testing.assert_allclose([run.q[-1, 0], run.v[-1, 0]], [0.1, -1.0], atol=1e-6)


BAD = {
    "the wrong way round": (lambda m: m.stop("s", "x", lower=1.0, upper=0.0), "stop 's': lower 1 is above upper 0"),
    "no limit": (lambda m: m.stop("s", "x"), "stop 's': it has no limit"),
    "restitution": (lambda m: m.stop("s", "x", lower=0.0, restitution=1.2), "restitution must be from 0 to 1, got 1.2"),
    "negative friction": (lambda m: m.friction("f", "x", coulomb=-1.0, stick=True), "coulomb must not be negative"),
    "static": (lambda m: m.friction("f", "x", coulomb=2.0, static=1.0, stick=True), "static 1 is below coulomb 2"),
    "no stick": (lambda m: m.friction("f", "x", coefficient=0.2), "give stick=True"),
    "no tangent": (
        lambda m: m.contact("c", ["block"], gap=lambda t, P, V: P[0].position[0], friction=0.3), "no tangent"
    ),
    "gap of twists": (
        lambda m: m.stop("c", ["block"], lambda t, P, V: V[0][3]), "its gap depends on twists"
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_bad_input(case: str) -> None:
    """One sentence with the element's name."""
    m = sliding((0.0, 0.0, 0.0))
    add, sentence = BAD[case]
    with pytest.raises(cd.ModelError, match=sentence) as error:
        add(m)
        m.build()
    assert "\n" not in str(error.value) and "'" in str(error.value)


def test_start_inside_a_stop_is_refused() -> None:
    """With the value and the element."""
    m = sliding((0.0, 0.0, 0.0))
    m.stop("end", "x", lower=0.5)
    with pytest.raises(cd.InputError, match=r"violates stop 'end', row 'end: lower': its gap is -0\.5 m"):
        cd.simulate(m.build(), 0.1, method="moreau", step=1e-3)


def test_a_moving_table_does_work() -> None:
    """The work of a contact that moves by itself is part of the energy balance: no energy is missing."""
    m = cd.Mechanism("ball")
    m.body("ball", mass=0.3)
    m.joint("z", cd.Prismatic(axis=(0, 0, 1)), "ground", "ball", start=0.4)
    m.contact("table", ["ball"], gap=lambda t, poses, _: poses[0].position[2] - 0.05 * ca.sin(30 * t), restitution=0.7)
    model = m.build()
    run = cd.simulate(model, 1.5, method="moreau", step=1e-3, samples=3)
    assert run.statistics["energy_error"] < 1e-10
    assert abs(run.q[-1, 0] - cd.simulate(model, 1.5, samples=3).q[-1, 0]) < 0.01


def test_numbers_that_would_have_no_effect_are_refused() -> None:
    """A radius of a slide, a Stribeck speed with nothing to fall from, a change within a function."""
    with pytest.raises(cd.ModelError, match=r"friction 'f': radius is of the pin of a turning joint, and 'x' slides"):
        sliding((0, 0, -G)).friction("f", "x", coefficient=0.2, radius=0.1, stick=True)
    with pytest.raises(cd.ModelError, match=r"friction 'f': it has a speed stribeck and no static to fall from"):
        sliding((0, 0, -G)).friction("f", "x", coulomb=1.0, stribeck=0.1, stick=True)
    m = sliding((0, 0, -G))
    m.friction("f", "x", coulomb=1.0, static=2.0, coefficient=0.1, stribeck=0.1, stick=True)
    m = sliding((-G, 0, 0))
    m.lock("brake", "x")
    wrong = cd.Event("low", lambda s: s.coordinate("x") + 0.5, then=lambda s: cd.lock("brake"))
    with pytest.raises(cd.InputError, match=r"it returns a function; .* then=cd.lock\('name'\)"):
        cd.simulate(m.build(), 1.0, events=[wrong])


def test_a_lock_stops_a_loop_and_free_numbers_have_forces() -> None:
    """Locked in motion, a linkage stops at once and stays; the event-driven run does the same."""
    m = cd.Mechanism("four_bar", gravity=(0, -G, 0))
    for name, length in (("crank", 1.0), ("coupler", 3.0), ("rocker", 2.5)):
        m.body(name, mass=length, com=(length / 2, 0, 0), inertia=cd.inertia.rod(length, length))
    m.joint("A", cd.Revolute(), m.ground, "crank", start=0.5)
    m.joint("B", cd.Revolute(), "crank", "coupler", at=(1, 0, 0), start=0.2)
    m.joint("D", cd.Revolute(), m.ground, "rocker", at=(3, 0, 0), start=1.5)
    m.joint("C", cd.Revolute(), "coupler", "rocker", at=(3, 0, 0), child_at=(2.5, 0, 0))
    m.lock("brake", "A")
    model = m.build().free("brake.closed")
    held = cd.Event("low", lambda s: s.coordinate("A") + 0.3, direction=-1, then=cd.lock("brake"))
    run = cd.simulate(model, 0.8, method="moreau", step=1e-3, samples=3, events=[held])
    assert abs(run["A.coordinate"][-1] + 0.3) < 3e-3 and np.abs(run.v[-1]).max() < 1e-9
    a = cd.forward_dynamics(model.at({"brake.closed": [0.0, 1.0]}), run.q[-1], 0 * run.v[-1])
    assert abs(a[0, 0]) > 1 and np.abs(a[1]).max() < 1e-9
