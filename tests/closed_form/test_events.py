"""Events that change a run: bouncing balls, switched springs, impulses through loops, and accumulation."""

import numpy as np
import pytest

import cardan as cd

pytestmark = pytest.mark.usefixtures("quick_code")
G = 9.81
METHODS = [("dormand_prince", None), ("rk4", 1e-3), ("alpha", 1e-3), ("gear", None), ("bdf", None), ("adams", None)]


def ball(stiffness: float | None = None) -> cd.Model:
    """A point of 2 kg that moves along z; with a stiffness, on a spring from the ground."""
    m = cd.Mechanism("ball", gravity=(0, 0, -G))
    m.body("ball", mass=2.0)
    m.joint("z", cd.Prismatic(axis=(0, 0, 1)), m.ground, "ball", start=1.0)
    if stiffness is not None:
        m.torsion("spring", "z", stiffness=stiffness)
    return m.build()


def bounce(e: float, **more) -> cd.Event:
    """The floor at z = 0, with restitution e."""
    return cd.Event("floor", lambda s: s.q[0], direction=-1, then=lambda s: cd.Change({"z": -e * s.rate("z")}), **more)


@pytest.mark.parametrize(("method", "step"), METHODS)
def test_a_ball_bounces_at_the_times_of_the_closed_form(method, step):
    """Flights of a ball take `2 v / g`, and each bounce leaves `e v`; the energy lost is that of the bounces."""
    e, fall = 0.8, np.sqrt(2 / G)
    run = cd.simulate(ball(), 3.0, events=[bounce(e)], method=method, step=step, samples=31)
    speeds = G * fall * e ** np.arange(1, 7)
    times = fall + np.concatenate([[0], np.cumsum(2 * speeds / G)])
    times = times[times < 3.0]
    found = np.array([event.time for event in run.events])
    assert len(found) == len(times) == 6
    assert np.abs(found - times).max() < (1e-6 if method in ("bdf", "adams") else 1e-9)
    k = np.searchsorted(times, run.time, side="right")
    since = run.time - np.concatenate([[0], times])[k]
    v0 = np.concatenate([[0], speeds])[k]
    height = np.where(k == 0, 1 - G * run.time**2 / 2, v0 * since - G * since**2 / 2)
    assert np.abs(run.q[:, 0] - height).max() < 1e-5
    kept = e ** (2 * 6) - 1
    assert run.statistics["event_energy"] == pytest.approx(2 * G * kept, rel=1e-6)
    assert run.statistics["energy_error"] < 1e-4


@pytest.mark.parametrize(("method", "step"), METHODS[:3])
def test_accumulation_is_recognised(method, step):
    """Infinitely many bounces end at `t1 (1 + e) / (1 - e)`; with a limit the run goes on from there, at rest."""
    e = 0.5
    end = np.sqrt(2 / G) * (1 + e) / (1 - e)
    with pytest.warns(RuntimeWarning, match="accumulate"):
        run = cd.simulate(ball(), 3.0, events=[bounce(e)], method=method, step=step, samples=4)
    assert float(run.outcome.split()[-2]) == pytest.approx(end, rel=1e-8)
    assert run.time[-1] == pytest.approx(end, rel=1e-8)
    held = ball(1e3).free("spring.stiffness").at({"spring.stiffness": 0.0})
    rest = bounce(e, limit=lambda s: cd.Change({"z": 0.0}, {"spring.stiffness": 4e3}))
    run = cd.simulate(held, 3.0, events=[rest], method=method, step=step, samples=301)
    assert run.outcome == "" and run["spring.stiffness"][-1] == 4e3
    after = run.time > end + 0.01
    assert np.abs(run.q[after, 0]).max() < 2 * 2 * G / 4e3 + 1e-6  # hangs on the spring from now on


@pytest.mark.parametrize(("method", "step"), METHODS)
def test_no_ball_falls_through_the_floor(method, step):
    """Flights soon are too short to be seen, with few bounces before: at 0.3 m rounding is 1e-17 m."""
    for e in (0.5, 0.1, 1e-3):
        floor = cd.Event(
            "floor", lambda s: s.q[0] - 0.3, direction=-1, then=lambda s, e=e: cd.Change({"z": -e * s.rate("z")})
        )
        end = np.sqrt(2 * 0.7 / G) * (1 + e) / (1 - e)
        with pytest.warns(RuntimeWarning, match="accumulate"):
            run = cd.simulate(ball(), 2.0, events=[floor], method=method, step=step, samples=4)
        assert run.time[-1] == pytest.approx(end, rel=1e-7 if method in ("dormand_prince", "rk4", "alpha") else 3e-5)
        assert run.q.min() > 0.3 - 1e-7


def test_slow_flights_are_no_accumulation():
    """Between walls each flight is longer than the last; after a soft wall one is a thousand times as long."""
    free = cd.Mechanism("free", gravity=(0, 0, 0))
    free.body("ball", mass=2.0)
    free.joint("z", cd.Prismatic(axis=(0, 0, 1)), free.ground, "ball", start=1.0)
    high = cd.Event("high", lambda s: s.q[0] - 2.0, direction=1, then=lambda s: cd.Change({"z": -0.3 * s.rate("z")}))
    low = cd.Event("low", lambda s: s.q[0], direction=-1, then=lambda s: cd.Change({"z": -1e-3 * s.rate("z")}))
    run = cd.simulate(free.build(), 2.0, v0=[1e3], events=[high, low], samples=4)
    assert run.outcome == "" and [event.name for event in run.events] == ["high", "low"]


def test_a_batch_is_its_systems_to_the_bit():
    """Systems meet their events at different times, and none depends on another."""
    heights = np.array([[1.0], [0.3], [2.5]])
    together = cd.simulate(ball(), 1.2, q0=heights, events=[bounce(0.7)], samples=13)
    for k, height in enumerate(heights):
        alone = cd.simulate(ball(), 1.2, q0=height, events=[bounce(0.7)], samples=13)
        assert np.array_equal(together[k].q, alone.q) and np.array_equal(together[k].v, alone.v)
        assert [event.time for event in together[k].events] == [event.time for event in alone.events]


def test_nothing_is_interpolated_across_a_jump():
    """On both sides of a bounce the state is that of the flight there, and at it that after the bounce."""
    run = cd.simulate(ball(), 1.0, events=[bounce(0.5)], samples=5)
    t = run.events[0].time
    q, v = run.at([t - 1e-6, t, t + 1e-6])
    assert np.allclose(v[:, 0], [-G * t, G * t / 2, G * t / 2], atol=1e-4) and (q[[0, 2]] > 0).all()
    assert run.events[0].changed and run.events[0].v_after[0] == pytest.approx(-run.events[0].v[0] / 2, rel=1e-14)


@pytest.mark.parametrize(("method", "step"), METHODS)
def test_a_parameter_changes_at_an_event(method, step):
    """A spring whose stiffness quadruples swings twice as fast from there on; the energy added is counted."""
    k, t1, mass = 50.0, 0.4, 2.0
    m = ball(k).free("spring.stiffness", "gravity").at({"gravity": (0, 0, 0)})
    harder = cd.Event("harder", lambda s: s.t - t1, then=lambda s: cd.Change({}, {"spring.stiffness": 4 * k}))
    run = cd.simulate(m, 1.0, events=[harder], method=method, step=step, samples=101)
    w = np.sqrt(k / mass)
    q1, v1, since = np.cos(w * t1), -w * np.sin(w * t1), run.time - t1
    swings = q1 * np.cos(2 * w * since) + v1 / (2 * w) * np.sin(2 * w * since)
    expected = np.where(since <= 0, np.cos(w * run.time), swings)
    assert np.abs(run.q[:, 0] - expected).max() < (2e-3 if method == "alpha" else 1e-5)
    assert run["spring.stiffness"][0] == k and run["spring.stiffness"][-1] == 4 * k
    assert run.statistics["event_energy"] == pytest.approx(1.5 * k * q1**2, rel=1e-2)
    assert np.ptp(run.energy[run.time > t1]) < 1e-3 * run.energy[-1]


def test_an_impulse_goes_through_loops():
    """Rates given by name are kept, and the others follow: a stopped crank stops a linkage of one freedom."""
    m = cd.mechanisms.four_bar().build()
    joint = m.coordinate_names[0]
    v0 = cd.simulate(m, 0.3, samples=2).v[-1]
    half = cd.Event("halved", lambda s: s.t - 0.3, then=lambda s: cd.Change({joint: s.rate(joint) / 2}))
    run = cd.simulate(m, 0.6, events=[half], samples=61)
    event = run.events[0]
    assert np.allclose(event.v_after, event.v / 2, rtol=1e-7) and np.abs(event.v).max() > 1e-3
    assert np.abs(run.residuals.velocity).max() < 1e-9 and np.allclose(event.v, v0, rtol=1e-5, atol=1e-6)


def test_python_callbacks_see_all_systems_at_once():
    """A callback computes the same as a traced change, for every system that meets the event at that time."""
    sizes = []

    def called(t, q, v, p):
        sizes.append(len(t))
        return cd.Change({"z": -0.5 * v[:, 0]})

    by_call = cd.Event("floor", lambda s: s.q[0], direction=-1, call=called)
    runs = [cd.simulate(ball(), 1.0, np.ones((3, 1)), events=[event], samples=5) for event in (by_call, bounce(0.5))]
    assert np.array_equal(runs[0].q, runs[1].q) and set(sizes) == {3}


def test_bad_changes_are_refused():
    """Names, shapes and contradictions are told with the event's name."""

    def event(**more):
        return cd.Event("e", lambda s: s.t - 0.1, **more)

    for wrong, words in (
        (event(then=lambda s: cd.Change({"zz": 0.0})), "'e'.*'zz'"),
        (event(then=lambda s: cd.Change({}, {"spring.stiffness": 1.0})), "'e'.*not free"),
        (event(then=lambda s: 3.0), "'e'.*cd.Change"),
        (event(then=lambda s: cd.Change({"z": [1.0, 2.0]})), "'e'.*1 numbers, got 2"),
        (event(call=lambda t, q, v, p: 1 / 0), "'e'.*ZeroDivisionError"),
        (event(call=lambda t, q, v, p: cd.Change({"z": np.nan})), "'e'.*finite"),
    ):
        with pytest.raises(cd.CardanError, match=words):
            cd.simulate(ball(1.0), 0.2, events=[wrong], samples=2)
    with pytest.raises(cd.InputError, match="needs then"):
        event(action="change")
    called = event(call=lambda t, q, v, p: cd.Change({"z": -0.5 * v[:, 0]}))
    with pytest.raises(cd.InputError, match=r"event '.*': call, plain Python, is not differentiated"):
        cd.simulate(ball(), 1.0, events=[called], samples=5).gradient(lambda s: s.q[0])


@pytest.mark.parametrize(("method", "step"), [("rk4", 0.01), ("gear", None), ("bdf", None), ("adams", None)])
def test_a_value_that_rests_at_zero_is_met_again_only_after_it_left(method, step, capfd):
    """Two masses of one frequency meet, go on together to rounding, part, and meet half a period later; no warnings."""
    m, w = cd.Mechanism("pair", gravity=(0, 0, 0)), np.sqrt(0.7)
    for name, mass in (("a", 1.0), ("b", 3.0)):
        m.body(name, mass=mass)
        m.joint(name, cd.Prismatic(axis=(1, 0, 0)), m.ground, name)
        m.torsion(f"spring {name}", name, stiffness=0.7 * mass, rest=0.3)
    m.variable("count", 0.0, every=0.25, update=lambda s: s["count"] + 1)  # breaks on the way
    distance = lambda s: s.coordinate("a") - s.coordinate("b")
    meet = cd.Event("meet", distance, then=lambda s: cd.Change({"a": 1.3, "b": 1.3}))
    part = cd.Event("part", lambda s: s.t - 2.0, then=lambda s: cd.Change({"a": 1.0, "b": -1.0}))
    run = cd.simulate(m.build(), 6.0, [0.0, 1.0], [2.0, -1.0], method=method, step=step, events=[meet, part], samples=7)
    assert [event.name for event in run.events] == ["meet", "part", "meet"]
    assert np.allclose([event.time for event in run.events], [np.arctan(w / 3) / w, 2.0, 2.0 + np.pi / w], atol=1e-5)
    assert "WARNING" not in capfd.readouterr().err


@pytest.mark.parametrize(("method", "step"), METHODS[:2])
def test_a_lock_stops_and_releases(method, step):
    """A lock takes the kinetic energy of its joint, holds it, and lets it go."""
    m = cd.Mechanism("carts", gravity=(0, 0, 0))
    m.body("cart", mass=3.0)
    m.joint("x", cd.Prismatic(axis=(1, 0, 0)), m.ground, "cart")
    m.torsion("spring", "x", stiffness=12.0, rest=1.0)
    m.lock("brake", "x")
    events = [
        cd.Event("stop", lambda s: s.coordinate("x") - 0.5, direction=1, then=cd.lock("brake")),
        cd.Event("go", lambda s: s.t - 1.5, then=cd.release("brake")),
    ]
    run = cd.simulate(m.build().free("brake.closed"), 3.0, events=events, method=method, step=step, samples=31)
    assert [event.name for event in run.events] == ["stop", "go"]  # what rests at zero is not met again by rounding
    stop, free = run.events[0].time, run.time > 1.5
    assert stop == pytest.approx(np.pi / 6, rel=1e-7)  # 1 - cos(2 t) = 0.5
    assert np.allclose(run.q[(run.time > stop) & ~free, 0], 0.5) and run.events[0].v_after[0] == 0.0
    assert np.allclose(run.q[free, 0], 1 - 0.5 * np.cos(2 * (run.time[free] - 1.5)), atol=1e-6)
    assert run.statistics["event_energy"] == pytest.approx(-0.5 * 3.0 * run.events[0].v[0] ** 2, rel=1e-9)
