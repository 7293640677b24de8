"""Event-driven runs of stops, contacts, friction that sticks, locks and latches against closed forms."""

from dataclasses import replace

import casadi as ca
import numpy as np
import pytest

import cardan as cd
from cardan.formulation.spatial import SPATIAL
from cardan.model.modes import with_modes
from cardan.structure.law_state import law_rows_of

pytestmark = pytest.mark.usefixtures("quick_code")
G = 9.81


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


def test_a_ball_bounces_at_the_times_of_the_series_and_comes_to_rest(ball):
    heights = np.array([[1.0], [0.3], [2.5]])
    run = cd.simulate(ball, 8.0, heights, samples=9)
    e = 0.5
    for system, height in enumerate(heights[:, 0]):
        fall = np.sqrt(2 * height / G)
        times = np.array([event.time for event in run.events if event.system == (system,)])
        # time of bounce k: fall (1 + 2 (e + ... + e^k)); all of them until fall (1 + e) / (1 - e)
        k = np.arange(15)
        np.testing.assert_allclose(times[:15], fall * (1 + 2 * e * (1 - e**k) / (1 - e)), rtol=1e-12)
        assert times[-1] == pytest.approx(fall * (1 + e) / (1 - e), rel=1e-8)
    assert run.statistics["event_energy"] == pytest.approx(-2.0 * G * heights.max(), rel=1e-9)
    assert np.abs(run.q[:, -1]).max() < 1e-14 and np.abs(run.v[:, -1]).max() < 1e-30
    np.testing.assert_allclose(run["floor.force"][:, -1], 2.0 * G, rtol=1e-13)
    np.testing.assert_allclose(run["floor.mode"][:, [0, -1], 0], [[0, 1]] * 3)
    alone = cd.simulate(ball, 8.0, heights[1], samples=9)
    assert (alone.q == run.q[1]).all() and (alone.v == run.v[1]).all()


def test_at_a_state_the_forces_follow_from_it(ball):
    a = cd.forward_dynamics(ball, [[0.0], [0.0], [0.5]], [[0.0], [1.0], [0.0]])
    np.testing.assert_allclose(a[:, 0], [0.0, -G, -G], atol=1e-13)
    assert cd.reactions(ball, [0.0], [0.0])[0, 5] == pytest.approx(2.0 * G)
    with pytest.raises(cd.InputError, match=r"'floor: lower' is closed and its rate is -1: there is an impact"):
        cd.forward_dynamics(ball, [0.0], [-1.0])
    with pytest.raises(cd.InputError, match=r"'floor: lower' is violated: its gap is -0.1 m"):
        cd.simulate(ball, 1.0, [-0.1])

    class Own(cd.Gear):
        name, laws = "own", ""

    with pytest.raises(cd.InputError, match=r"'own' knows no hard stops.*'floor'; take a built-in one"):
        cd.simulate(ball, 1.0, method=Own())
    with pytest.raises(cd.ModelError, match=r"equilibrium: .* 'floor', whose forces depend"):
        cd.equilibrium(ball)


def test_stick_and_slip_have_their_period_and_moreau_comes_to_it():
    k, speed, static, sliding = 4.0, 0.3, 2.0, 1.2
    m = slider(mass=1.0)
    m.drive("pull", "x", lambda t, q, v: k * (speed * t - q[0]))
    m.friction("f", "x", coulomb=sliding, static=static, stick=True)
    model, w, reach = m.build(), np.sqrt(k), (static - sliding) / k
    period = 2 * (np.pi - np.arctan2(reach * w, speed)) / w + 2 * reach / speed
    run = cd.simulate(model, 20.0, rtol=1e-10, atol=1e-12)
    times = np.array([event.time for event in run.events])
    assert times[0] == pytest.approx(static / k / speed, abs=1e-13)
    np.testing.assert_allclose(times[2:] - times[:-2], period, rtol=1e-9)
    stuck = run["f.mode"] == 1
    assert 0.3 < stuck.mean() < 0.6 and np.abs(run.v[stuck[:, 0]]).max() < 1e-12
    assert run.statistics["energy_error"] < 1e-8  # friction's work is in the balance
    exact = cd.simulate(model, 6.0, samples=61).q
    for step in (2e-3, 5e-4):
        assert np.abs(cd.simulate(model, 6.0, method="moreau", step=step, samples=61).q - exact).max() < 3 * step


def test_friction_by_the_reaction_slides_or_locks_itself():
    """A slide down a slope: below tan(slope) it goes on, above it stops and stays."""
    slope, mu = 0.3, np.array([0.2, 0.5])
    m = slider((np.cos(slope), 0, -np.sin(slope)))
    m.friction("f", "x", coefficient=0.1, stick=True)
    model, a = m.build().free("f.coefficient").at({"f.coefficient": mu}), G * (np.sin(slope) - mu * np.cos(slope))
    run = cd.simulate(model, 2.0, v0=[0.5], samples=3)
    assert mu[0] < np.tan(slope) < mu[1]
    np.testing.assert_allclose(run.q[:, -1, 0], [0.5 * 2 + a[0] * 2, 0.125 / -a[1]], rtol=1e-9)
    assert [event.time for event in run.events] == pytest.approx([-0.5 / a[1]], rel=1e-9)
    assert abs(run.v[1, -1, 0]) < 1e-14
    assert run["f.force"][1, -1] == pytest.approx(-2.0 * G * np.sin(slope))


@pytest.fixture(scope="module")
def puck() -> cd.Model:
    m = cd.Mechanism("puck", gravity=(0, 0, -G))
    m.body("along", mass=0.0)
    m.body("across", mass=0.0)
    m.body("puck", mass=0.5, inertia=cd.inertia.sphere(0.5, 0.1))
    m.joint("x", cd.Prismatic(axis=(1, 0, 0)), m.ground, "along")
    m.joint("y", cd.Prismatic(axis=(0, 1, 0)), "along", "across")
    m.joint("z", cd.Prismatic(axis=(0, 0, 1)), "across", "puck")
    m.contact(
        "ice", ["puck"], gap=lambda t, poses, twists: poses[0].position[2],
        tangent=lambda t, poses, twists: twists[0][3:5], friction=0.3, restitution=0.5,
    )  # fmt: skip
    return m.build()


def test_a_puck_slides_straight_until_it_stops_and_bounces_with_friction(puck):
    run = cd.simulate(puck, 1.0, v0=[1.0, 0.5, 0.0], samples=3)
    speed, mu = np.hypot(1.0, 0.5), 0.3
    assert run.events[0].time == pytest.approx(speed / mu / G, abs=1.01e-7 / mu / G)  # 1e-7 m/s counts as rest
    np.testing.assert_allclose(run.q[-1], np.array([1.0, 0.5, 0.0]) * speed / 2 / mu / G, atol=1e-9)
    thrown = cd.simulate(puck, 1.0, [0.0, 0.0, 0.2], [3.0, -4.0, 0.0], samples=3)
    down = np.sqrt(2 * G * 0.2)
    first = thrown.events[0]
    # friction's impulse is mu times the normal one, against the sliding
    np.testing.assert_allclose(first.v_after, [*(1 - mu * 1.5 * down / 5) * np.array([3.0, -4.0]), 0.5 * down])
    np.testing.assert_allclose(first.impulse[0], 0.5 * 1.5 * down)
    assert thrown.statistics["event_energy"] < 0


def test_a_rod_that_cannot_go_on_is_told():
    """Painleve's rod: pushed into the ground with much friction, no force at its tip fits."""
    import casadi as ca

    m = cd.Mechanism("rod", gravity=(0, 0, -G))
    m.body("along", mass=0.0)
    m.body("up", mass=0.0)
    m.body("rod", mass=1.0, inertia=np.diag([1e-3, 1 / 3, 1 / 3]))
    m.joint("x", cd.Prismatic(axis=(1, 0, 0)), m.ground, "along")
    m.joint("z", cd.Prismatic(axis=(0, 0, 1)), "along", "up")
    m.joint("turn", cd.Revolute(axis=(0, 1, 0)), "up", "rod")
    tip = ca.DM([-1.0, 0.0, 0.0])
    m.contact(
        "tip", ["rod"], gap=lambda t, P, T: (P[0].position + P[0].rotation @ tip)[2], friction=2.0,
        tangent=lambda t, P, T: (P[0].rotation @ (T[0][3:] + ca.cross(T[0][:3], tip)))[0],
    )  # fmt: skip
    model, lean = m.build(), 1.1
    with pytest.raises(cd.InputError, match=r"no forces of the rows with laws fit .*'tip: sliding' at q = "):
        cd.simulate(model, 0.1, [0.0, np.sin(lean), -lean], [-2.0, 0.0, 0.0])
    away = cd.simulate(model, 0.1, [0.0, np.sin(lean), -lean], [2.0, 0.0, 0.0])
    assert np.abs(away["tip.gap"]).max() < 1e-12 and away["tip.force"][:, 0].min() > 0


def test_a_latch_catches_by_an_impulse_and_lets_go():
    m = cd.Mechanism("two", gravity=(0, 0, 0))
    for name, mass, at in (("a", 2.0, 0.0), ("b", 1.0, 1.0)):
        m.body(name, mass=mass, inertia=cd.inertia.sphere(mass, 0.1))
        m.joint(name.upper(), cd.Prismatic(axis=(1, 0, 0)), m.ground, name, start=at)
    m.latch("catch", "a", "b")  # six rows, of which one matters
    m.drive("push", "B", 0.6)
    gap = lambda s: s.coordinate("B") - s.coordinate("A") - 0.5 + (s.t > 1.0)
    meet = cd.Event("meet", gap, then=lambda s: cd.Change(parameters={"catch.closed": 1.0}))
    part = cd.Event("part", lambda s: s.t - 2.0, then=lambda s: cd.Change(parameters={"catch.closed": 0.0}))
    run = cd.simulate(m.build(), 3.0, v0=[2.0, 0.0], events=[meet, part], samples=[1.0, 2.5])
    caught = run.events[0].time
    assert 1.0 + 0.3 * caught**2 - 2 * caught == pytest.approx(0.5, abs=1e-12)
    together = (2 * 2.0 + 0.6 * caught) / 3  # momentum is kept
    np.testing.assert_allclose(run.v[1], together + 0.2 * (1 - caught), rtol=1e-9)
    np.testing.assert_allclose(run["catch.force"][1][0], -0.4, rtol=1e-9)  # the heavy one holds the other back
    after = together + 0.2 * (2 - caught)
    np.testing.assert_allclose(run.v[2], [after, after + 0.6 * 0.5], rtol=1e-9)


def test_without_a_solution_of_its_law_an_impact_has_no_restitution():
    """Two gaps close at once in a mechanism of two freedoms, one with friction; no impulses fit Newton's law."""
    m = slider()
    m.body("c", mass=1.0)
    m.joint("y", cd.Prismatic(axis=(0, 0, 1)), "b", "c")
    m.stop("wall", "x", upper=0.0, restitution=1.0)
    m.contact(
        "floor", ["c"], gap=lambda t, P, V: P[0].position[2], tangent=lambda t, P, V: V[0][3], friction=0.6,
        restitution=0.7,
    )  # fmt: skip
    laws = law_rows_of(with_modes(m.build()), SPATIAL)
    J = np.array([[4.0362, 0.0], [-1.4026, 0.2394], [0.5167, -0.5331]])  # of the wall, of the floor, along the floor
    u = (J @ [-1.925, -1.88])[None]
    s = laws.state(0.0, *(np.zeros((1, n)) for n in (2, 2, 2)), laws.model.parameters.nominal[None])
    s = replace(s, phi=0 * u, u=u, W=(J @ J.T)[None])
    closed = np.zeros((1, 3), dtype=bool)
    plain, _ = laws.impact(s, closed, 0 * u)
    P, found = laws.impact(s, closed, s.restitution)
    assert found.found.all() and (plain == P).all() and (s.restitution[0] > 0).sum() == 2
    after = u + P @ s.W[0]
    assert (after[0, :2] > -1e-12).all() and (P[0, :2] >= 0).all() and abs(P[0, 2]) <= 0.6 * P[0, 1] + 1e-12


def test_balls_that_touch_are_hit():
    m = cd.Mechanism("cradle", gravity=(0, 0, 0))
    for k in range(3):
        m.body(f"b{k}", mass=1.0, inertia=cd.inertia.sphere(1.0, 0.1))
        m.joint(f"j{k}", cd.Prismatic(axis=(1, 0, 0)), m.ground, f"b{k}", start=0.2 * k - 0.5 * (k == 0))
    gap = lambda t, poses, twists: poses[1].position[0] - poses[0].position[0] - 0.2
    for k in range(2):
        m.contact(f"c{k}", [f"b{k}", f"b{k + 1}"], gap=gap, restitution=1.0)
    model = m.build()
    for rule, after in (("newton", [-1 / 3, 2 / 3, 2 / 3]), ("sequential", [0.0, 0.0, 1.0])):
        run = cd.simulate(model, 1.0, v0=[1.0, 0, 0], method=cd.DormandPrince(impact=rule), samples=2)
        np.testing.assert_allclose(run.v[-1], after, atol=1e-12)


def test_a_screw_locks_itself_under_its_load():
    """A nut on an upright screw: it holds if `mu r` is above the pitch; else the load turns it down."""
    mass, pitch, r, inertia = 5.0, 0.01, 0.02, 0.01  # pitch in m/rad
    m = cd.Mechanism("jack", gravity=(0, 0, -G))
    m.body("nut", mass=mass, inertia=(inertia,) * 3)
    m.joint("s", cd.Screw(pitch=pitch), m.ground, "nut")
    m.friction("thread", "s", coefficient=0.1, radius=r, stick=True)
    model = m.build().free("thread.coefficient").at({"thread.coefficient": [0.3, 0.6]})
    run = cd.simulate(model, 1.0, v0=[-2.0], samples=2)
    # m pitch a = F - m g and I a = -F pitch + mu r F, with the force F along the screw
    a = -mass * G / (mass * pitch + inertia / (pitch - np.array([0.3, 0.6]) * r))
    np.testing.assert_allclose(run.v[0, -1], -2.0 + a[0], rtol=1e-8)
    assert a[1] > 0 and abs(run.v[1, -1, 0]) < 1e-14
    np.testing.assert_allclose(run.q[1, -1], -(2.0**2) / 2 / a[1], rtol=1e-8)
    assert run.events[0].time == pytest.approx(2.0 / a[1], rel=1e-8)


def test_bounces_at_any_limit_come_to_rest():
    m = cd.Mechanism("ball")
    m.body("ball", mass=1.0)
    m.joint("x", cd.Prismatic(axis=(0, 0, 1)), "ground", "ball", start=1.0)
    m.stop("floor", "x", lower=-0.6, restitution=0.02)
    rng = np.random.default_rng(3)
    lower, e = rng.uniform(-5.0, 0.9, 16), 10 ** rng.uniform(-3, -0.5, 16)
    balls = m.build().free("floor.lower", "floor.restitution").at({"floor.lower": lower, "floor.restitution": e})
    run = cd.simulate(balls, 4.0, samples=3)
    assert np.allclose(run.q[:, -1, 0], lower, rtol=0, atol=1e-9) and not run.v[:, -1].any()
    assert len(run.events) < 16 * 60  # they do not bounce by their rounding for ever


def test_a_block_rocks_as_housner_says_and_comes_to_rest():
    b, h = 0.2, 0.6
    m = cd.Mechanism("block", gravity=(0, -G, 0))
    m.body("block", mass=1.0, inertia=(1, 1, (b**2 + h**2) / 3))
    m.joint("plane", cd.Planar((0, 0, 1)), m.ground, "block")
    for name, corner in (("left", (-b, -h, 0)), ("right", (b, -h, 0))):
        m.contact(
            name, ["block"], friction=1.0,
            gap=lambda t, poses, twists, c=corner: (poses[0].position + poses[0].rotation @ c)[1],
            tangent=lambda t, poses, twists, c=corner: (
                poses[0].rotation @ (twists[0][3:] + ca.cross(twists[0][:3], ca.vertcat(*c)))
            )[0],
        )  # fmt: skip
    tilt = 0.1  # about the left corner
    turn = np.array([[np.cos(tilt), -np.sin(tilt)], [np.sin(tilt), np.cos(tilt)]])
    run = cd.simulate(m.build(), 5.0, [*(turn @ [b, h]), tilt], samples=3)
    rates = np.array([(event.v[2], event.v_after[2]) for event in run.events[:10]])
    np.testing.assert_allclose(rates[:, 1] / rates[:, 0], 1 - 1.5 * b**2 / (b**2 + h**2), rtol=1e-9)
    np.testing.assert_allclose(run.q[-1], [b, h, 0], atol=1e-9)
    assert np.abs(run.v[-1]).max() < 1e-12 and len(run.events) < 200
    np.testing.assert_allclose(run["left.force"][-1][0] + run["right.force"][-1][0], G, rtol=1e-9)


def test_blocks_that_fall_on_one_another_come_to_rest():
    """Two of them fall alike, so that nothing closes their gap but what one of them lies on."""
    m, masses = cd.Mechanism("stack", gravity=(0, 0, -G)), (1.2, 0.7, 1.9)
    for k, mass in enumerate(masses):
        m.body(f"b{k}", mass=mass)
        m.joint(f"z{k}", cd.Prismatic(axis=(0, 0, 1)), m.ground, f"b{k}", start=0.5 * (k + 1))
    m.stop("c0", "z0", lower=0.0, restitution=0.4)
    gap = lambda t, poses, twists: poses[1].position[2] - poses[0].position[2] - 0.1
    for k in (1, 2):
        m.contact(f"c{k}", [f"b{k - 1}", f"b{k}"], gap=gap, restitution=0.3)
    run = cd.simulate(m.build(), 1.5, samples=2)
    assert len(run.events) < 100
    np.testing.assert_allclose(run.q[-1], [0.0, 0.1, 0.2], atol=1e-12)
    forces = [run[f"c{k}.force"][-1].item() for k in range(3)]
    np.testing.assert_allclose(forces, G * np.cumsum(masses[::-1])[::-1])
