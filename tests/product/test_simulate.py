"""`cd.simulate` as a user meets it: batches, events, breaks, parameters, and what it says when it goes wrong."""

import pathlib
from typing import Any

import casadi as ca
import numpy as np
import pytest

import cardan as cd
from cardan import mechanisms

pytestmark = pytest.mark.usefixtures("quick_code")


def pendulum(**more: object) -> cd.Mechanism:
    m = cd.Mechanism("pendulum", gravity=(0, -9.81, 0))
    m.body("bob", mass=1.0, com=(0, -1, 0), inertia=0.1 * np.eye(3))
    m.joint("A", cd.Revolute(axis=(0, 0, 1)), m.ground, "bob")
    return m


@pytest.fixture(scope="module")
def four_bar() -> cd.Model:
    return mechanisms.four_bar().build()


@pytest.mark.parametrize("method", ["dormand_prince", "rk4", "euler"])
def test_a_batch_gives_the_bits_of_its_systems(method: str, four_bar: cd.Model) -> None:
    """Lanes, threads and neighbours that take other steps change nothing."""
    q, _ = cd.assemble(four_bar)
    rates = np.linspace(0.2, 2.0, 37)[:, None] * cd.assemble(four_bar, q, np.ones(four_bar.nv))[1]
    settings = {"method": method, "samples": 5} | ({} if method == "dormand_prince" else {"step": 2e-3})
    together = cd.simulate(four_bar, 0.4, q, rates, **settings)
    shared = cd.simulate(four_bar, 0.4, q, rates, threads=2, **settings)
    assert np.array_equal(together.q, shared.q)
    for k in (0, 17, 36):
        alone = cd.simulate(four_bar, 0.4, q, rates[k], **settings)
        assert np.array_equal(alone.q, together.q[k])
        assert np.array_equal(alone.v, together.v[k])


def test_an_event_with_random_numbers_or_state_is_refused(four_bar: cd.Model) -> None:
    rng, passed = np.random.default_rng(0), iter(range(1, 1000))
    for when in (lambda s: s.q[0] - rng.random(), lambda s: s.q[0] - next(passed)):
        with pytest.raises(cd.InputError, match="event 'e': its expression is another one each time it is run"):
            cd.simulate(four_bar, 0.01, samples=2, events=[cd.Event("e", when)])


@pytest.mark.parametrize(("method", "step"), [("dormand_prince", None), ("rk4", 1e-2), ("alpha", 1e-2)])
def test_a_system_that_fails_does_not_change_the_bits_of_others(method: str, step: float | None) -> None:
    model = cd.mechanisms.double_pendulum().build()
    q, v = np.random.default_rng(1).standard_normal((2, 20, 2))
    fast = v.copy()
    fast[7] = 1e160
    with np.errstate(all="ignore"):
        good, bad = (
            cd.simulate(model, 0.3, q, u, method=method, step=step, samples=3, failures="keep") for u in (v, fast)
        )
        broken = q.copy()
        broken[7] = np.nan
        answers = [np.delete(cd.forward_dynamics(model, x, v), 7, axis=0) for x in (q, broken)]
    assert bad.outcome[7] and not good.outcome.any()
    np.testing.assert_array_equal(np.delete(bad.q, 7, axis=0), np.delete(good.q, 7, axis=0))
    np.testing.assert_array_equal(*answers)


def test_a_run_says_which_argument_made_its_batch(four_bar: cd.Model) -> None:
    """Rows of tau are systems, not times."""
    q, v = cd.assemble(four_bar)
    given: list[tuple[str, dict[str, Any]]] = [
        ("tau", {"tau": np.zeros((4, 3))}),
        ("q0, tau", {"q0": np.tile(q, (4, 1)), "tau": np.zeros((4, 3))}),
        ("v0", {"q0": q, "v0": np.tile(v, (4, 1))}),
    ]
    for told, arguments in given:
        run = cd.simulate(four_bar, 0.01, samples=2, **arguments)
        assert run.settings["batch"] == told and f"4 systems (rows of {told})" in repr(run)
    free = four_bar.free("coupler.mass").at({"coupler.mass": [1.0, 2.0]})
    assert cd.simulate(free, 0.01, samples=2).settings["batch"] == "parameters"
    assert "batch" not in cd.simulate(four_bar, 0.01, q, samples=2).settings


def test_batches_of_any_shape_and_broadcast(four_bar: cd.Model) -> None:
    model = pendulum().build()
    run = cd.simulate(model, 0.5, np.zeros((2, 1, 1)), np.ones((3, 1)), samples=3)
    assert run.batch == (2, 3)
    assert run.q.shape == (2, 3, 3, 1)


def test_free_parameters_differ_from_system_to_system() -> None:
    model = pendulum().build()
    mass = np.array([0.5, 1.0, 4.0])
    com = np.array([[0, -1.0, 0], [0, -0.7, 0], [0, -2.0, 0]])
    run = cd.simulate(model.free("bob.mass", "bob.com").at({"bob.mass": mass, "bob.com": com}), 1.0, [1.0], samples=5)
    for k in range(3):
        m = cd.Mechanism("alone", gravity=(0, -9.81, 0))
        m.body("bob", mass=mass[k], com=com[k], inertia=0.1 * np.eye(3))
        m.joint("A", cd.Revolute(axis=(0, 0, 1)), m.ground, "bob")
        alone = cd.simulate(m.build(), 1.0, [1.0], samples=5)
        assert np.abs(run.q[k] - alone.q).max() < 1e-12
    assert np.ptp(run.energy, axis=-1).max() < 1e-6


@pytest.mark.parametrize("formulation", ["newton_euler", "absolute", "relative", "points"])
def test_formulations_give_one_motion(formulation: str, four_bar: cd.Model) -> None:
    q, v = cd.assemble(four_bar, v=np.ones(four_bar.nv))
    settings = {"samples": 4, "rtol": 1e-11, "atol": 1e-12}
    run = cd.simulate(four_bar, 0.5, q, v, formulation=formulation, **settings)
    assert np.abs(run.q - cd.simulate(four_bar, 0.5, q, v, **settings).q).max() < 1e-9


@pytest.mark.parametrize("name", ["four_bar", "slider_crank", "stewart_platform"])
def test_loops_stay_closed_and_energy_stays(name: str) -> None:
    """At default settings the residual is below 1e-10 of the size; at tight ones energy keeps 1e-8 for 100 s."""
    model = getattr(mechanisms, name)().build()
    long = name == "four_bar"
    settings = {"rtol": 1e-12, "atol": 1e-13} if long else {}
    run = cd.simulate(model, 100.0 if long else 1.0, samples=101, **settings)
    assert run.residuals.position.max() < 1e-10
    assert run.residuals.velocity.max() < 1e-10 * max(1.0, np.abs(run.v).max())
    if not (model.forces or model.couplings):
        largest = np.abs(run.kinetic).max()
        assert np.ptp(run.energy) < (1e-8 if long else 1e-5) * largest


def test_baumgarte_holds_a_loop_without_projection(four_bar: cd.Model) -> None:
    q, v = cd.assemble(four_bar, v=np.ones(four_bar.nv))
    run = cd.simulate(four_bar, 2.0, q, v, method=cd.DormandPrince(baumgarte=20.0), samples=50)
    exact = cd.simulate(four_bar, 2.0, q, v, samples=50, rtol=1e-11, atol=1e-12)
    assert 0 < run.residuals.position.max() < 1e-6
    assert np.abs(run.q - exact.q).max() < 1e-5


def test_events_are_found_where_they_happen() -> None:
    """A dropped body passes a height at a known time; a stop ends each system at its own."""
    m = cd.Mechanism("falling", gravity=(0, 0, -9.81))
    m.body("stone", mass=1.0, inertia=np.eye(3))
    m.joint("z", cd.Prismatic(axis=(0, 0, 1)), m.ground, "stone")
    model = m.build()
    events = [
        cd.Event("passes", lambda s: s.position("stone")[2] - 0.5, "record"),
        cd.Event("lands", lambda s: s.coordinate("z")[0], "stop", -1),
    ]
    height = np.array([1.0, 2.0, 3.5])
    for settings in ({}, {"method": "rk4", "step": 0.01}, {"method": "euler", "step": 1e-3}):
        run = cd.simulate(model, 2.0, height[:, None], events=events, samples=41, **settings)
        found = {(e.name, e.system): e.time for e in run.events}
        for k, h in enumerate(height):
            bound = 5e-3 if settings.get("method") == "euler" else 1e-12
            assert abs(found["passes", (k,)] - np.sqrt(2 * (h - 0.5) / 9.81)) < bound
            assert abs(found["lands", (k,)] - np.sqrt(2 * h / 9.81)) < bound
            end = np.nanmax(run.time[k])
            assert end == found["lands", (k,)]
            assert np.isnan(run.q[k][run.time[k] > end]).all()
        assert list(run.outcome) == ["stopped at an event"] * 3


def test_a_jump_is_stepped_on_exactly() -> None:
    """A force that is switched on at a stated time: with the break the motion is exact to rounding."""
    m = cd.Mechanism("pushed", gravity=(0, 0, 0))
    m.body("cart", mass=2.0, inertia=np.eye(3))
    m.joint("x", cd.Prismatic(axis=(1, 0, 0)), m.ground, "cart")
    m.drive("push", "x", lambda t, q, v: ca.if_else(t < 0.3, 0.0, 4.0))
    run = cd.simulate(m.build(), 1.0, samples=3, breaks=[0.3])
    assert abs(run.q[-1, 0] - 0.7**2) < 1e-12
    assert run.statistics["steps"] < 30


def test_samples_where_asked_and_a_start_at_any_time() -> None:
    run = cd.simulate(pendulum().build(), 2.0, [0.1], start=5.0, samples=[5.25, 6.0])
    assert list(run.time) == [5.0, 5.25, 6.0, 7.0]


BAD = [
    ({"method": "rk5"}, "method 'rk5' is not an integrator; did you mean 'rk4'?"),
    ({"method": "rk4"}, "method 'rk4' takes steps of fixed length; give it, e.g. step=1e-3"),
    ({"duration": -1.0}, "duration must be a positive number of seconds, got -1.0"),
    ({"q0": [0.0, 1.0]}, "q0 must have the shape (..., 1), got (2,)"),
    ({"q0": [np.nan]}, "q0[0] is nan; every entry must be a finite number"),
    ({"v0": "fast"}, "v0 must be numbers of shape (..., 1), got 'fast'"),
    ({"samples": 1}, "samples must be 2 or more"),
    ({"samples": [0.5, 0.2]}, "samples must be a number of samples or a list of increasing times, s, got [0.5, 0.2]"),
    ({"samples": [3.0]}, "sample times must lie between 0 s and 1 s"),
    ({"rtol": 0.0}, "rtol must be a positive number, got 0.0"),
    ({"failures": "ignore"}, "failures must be 'raise' or 'keep', got 'ignore'"),
    ({"formulation": "spacial"}, "did you mean 'spatial'?"),
    ({"events": [cd.Event("x", lambda s: s.q)] * 2}, "event 'x' is given twice"),
    ({"events": [cd.Event("x", lambda s: [1])]}, "event 'x': its expression must be a scalar of the instant"),
    ({"events": [cd.Event("x", lambda s: s.position("bib")[0])]}, "did you mean 'bob'?"),
]


@pytest.mark.parametrize(("arguments", "words"), BAD)
def test_bad_requests_are_refused_in_a_sentence(arguments: dict[str, object], words: str) -> None:
    given = {"duration": 1.0, "q0": [0.1]} | arguments
    with pytest.raises(cd.CardanError) as caught:
        cd.simulate(pendulum().build(), given.pop("duration"), **given)
    assert words in str(caught.value)


def test_an_open_start_is_refused_and_assembly_offered(four_bar: cd.Model) -> None:
    q, _ = cd.assemble(four_bar)
    with pytest.raises(cd.InputError, match=r"does not close joint 'C': a gap of .* assemble=True"):
        cd.simulate(four_bar, 1.0, q + 0.01)
    with pytest.raises(cd.InputError, match=r"velocities at the start violate joint 'C' by"):
        cd.simulate(four_bar, 1.0, q, np.ones(four_bar.nv))
    run = cd.simulate(four_bar, 0.1, q + 0.01, np.ones(four_bar.nv), assemble=True, samples=3)
    assert run.residuals.position.max() < 1e-10


@pytest.mark.parametrize("method", ["dormand_prince", "rk4"])
def test_a_force_that_is_not_a_number_is_named_with_its_time(method: str) -> None:
    m = pendulum()
    m.drive("motor", "A", lambda t, q, v: ca.sqrt(0.5 - t))
    settings = {"step": 1e-3} if method == "rk4" else {}
    with pytest.raises(cd.SimulationError, match=r"drive 'motor' does not return a finite number") as caught:
        cd.simulate(m.build(), 1.0, [0.1], method=method, **settings)
    error = caught.value
    assert abs(error.time - 0.5) < 2e-3
    assert error.partial.time[-1] == error.time
    assert len(error.partial.time) > 240


def test_a_motion_without_bound_says_where_and_what_to_try() -> None:
    """Driven by the cube of its rate it would be infinitely fast in finite time."""
    m = pendulum()
    m.drive("runaway", "A", lambda t, q, v: v**3)
    words = r"(below rounding|not a finite number); the largest acceleration is .* of joint 'A'"
    with pytest.raises(cd.SimulationError, match=words) as caught:
        cd.simulate(m.build(), 10.0, [0.1], [2.0])
    assert 0 < caught.value.time < 10
    assert caught.value.partial.time[-1] == caught.value.time


def test_too_many_steps() -> None:
    with pytest.raises(cd.SimulationError, match=r"100 steps were not enough; allow more with max_steps"):
        cd.simulate(pendulum().build(), 1000.0, [1.0], max_steps=100)


@pytest.mark.parametrize("method", ["rk4", "dormand_prince", "bdf"])
def test_too_many_steps_where_samples_are_as_close_as_steps(method: str) -> None:
    """Every interval between samples takes one step or less; the limit is for the whole run."""
    options = {"step": 0.01} if method == "rk4" else {"max_step": 0.01}
    run = lambda most: cd.simulate(
        pendulum().build(), 1.0, [[1.0], [0.5]], samples=101, method=method, max_steps=most, **options
    )
    with pytest.raises(cd.SimulationError, match=r"50 steps were not enough; allow more with max_steps") as caught:
        run(50)
    assert 0 < caught.value.time < 0.52
    assert run(100 if method == "rk4" else 1000).time[-1] == 1.0


def test_of_a_batch_the_others_go_on() -> None:
    m = pendulum()
    m.drive("motor", "A", lambda t, q, v: ca.sqrt(1.5 - q))
    q0 = np.array([[0.1], [1.4], [0.2]])
    with pytest.raises(cd.SimulationError, match=r"system 1 ended at") as caught:
        cd.simulate(m.build(), 0.2, q0, [[0.0], [3.0], [0.0]])
    partial = caught.value.partial
    assert np.isfinite(partial.q[[0, 2]]).all()
    kept = cd.simulate(m.build(), 0.2, q0, [[0.0], [3.0], [0.0]], failures="keep")
    assert list(kept.outcome) == ["", "not a finite number", ""]


def test_an_interruption_keeps_what_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    from cardan.integrate.explicit.stepper import ExplicitStepper

    real, calls = ExplicitStepper.advance, []

    def advance(self: ExplicitStepper, t: float) -> object:
        calls.append(t)
        if len(calls) == 40:
            raise KeyboardInterrupt
        return real(self, t)

    monkeypatch.setattr(ExplicitStepper, "advance", advance)
    with pytest.raises(KeyboardInterrupt) as caught:
        cd.simulate(pendulum().build(), 10.0, [1.0])
    assert isinstance(caught.value, cd.SimulationError)
    assert len(caught.value.partial.time) == 40


def test_a_stored_batch_is_the_batch(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from cardan.results import simulate as module

    monkeypatch.setattr(module, "CHUNK", 7)
    model, q0 = pendulum().build(), np.linspace(0.1, 1.0, 20)[:, None]
    stored = cd.simulate(model, 0.3, q0, samples=4, store=tmp_path / "run.nc")
    assert np.array_equal(stored.q, cd.simulate(model, 0.3, q0, samples=4).q)
    with pytest.raises(cd.CardanError, match="there is such a file already"):
        cd.simulate(model, 0.3, q0, samples=4, store=tmp_path / "run.nc")


def same_run(stored: cd.Trajectory, run: cd.Trajectory) -> None:
    """Everything that a run has, beside the padding of its times."""
    n = run.q.shape[-2]
    for name in ("q", "v"):
        np.testing.assert_array_equal(getattr(stored, name)[..., :n, :], getattr(run, name))
        assert np.isnan(getattr(stored, name)[..., n:, :]).all()
    assert stored.batch == run.batch and np.array_equal(stored.outcome, run.outcome)
    assert (stored.tau is None) == (run.tau is None)
    if run.tau is not None:
        np.testing.assert_array_equal(stored.tau, run.tau)
    assert stored.statistics == run.statistics and stored.settings == run.settings
    assert [(e.name, e.index, e.time) for e in stored.events] == [(e.name, e.index, e.time) for e in run.events]
    np.testing.assert_array_equal(stored.power[..., :n], run.power)


@pytest.mark.parametrize("batch", [(), (2, 9), (2, 3, 4)])
def test_a_stored_run_has_what_the_run_has(
    batch: tuple[int, ...], tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Shape of the batch, drives, values of parameters, events, outcomes, statistics; whatever the chunks cut."""
    from cardan.results import simulate as module

    monkeypatch.setattr(module, "CHUNK", 5)
    rng = np.random.default_rng(4)
    model = pendulum().build().free("bob.mass").at({"bob.mass": rng.uniform(1, 2, batch)})
    q0, tau = rng.uniform(0.1, 1.0, (*batch, 1)), rng.uniform(1, 3, (*batch, 1))
    events = [cd.Event("low", lambda s: s.q[0] - 0.05), cd.Event("far", lambda s: s.q[0] + 0.9, "stop")]
    for k, settings in enumerate(({}, {"events": events}, {"failures": "keep"})):
        run = cd.simulate(model, 1.0, q0, tau=tau, samples=6, **settings)
        stored = cd.simulate(model, 1.0, q0, tau=tau, samples=6, store=tmp_path / f"run{k}.nc", **settings)
        same_run(stored, run)
        same_run(cd.load_run(tmp_path / f"run{k}.nc", model.unbound), run)


def wall() -> cd.Model:
    """A drive that is not a number past 1.5 rad."""
    m = pendulum()
    m.drive("motor", "A", lambda t, q, v: ca.sqrt(1.5 - q))
    return m.build()


def test_systems_after_one_that_fails_are_computed_and_stored(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Failures in two chunks: all others are whole, and the error names the one that failed first."""
    from cardan.results import simulate as module

    monkeypatch.setattr(module, "CHUNK", 3)
    q0 = np.full((4, 2, 1), 0.1)
    v0 = np.zeros((4, 2, 1))
    q0[0, 1], v0[0, 1], q0[2, 1], v0[2, 1] = 1.2, 3.0, 1.4, 3.0
    with pytest.raises(cd.SimulationError, match=r"system \(2, 1\) and 1 more ended at") as caught:
        cd.simulate(wall(), 0.2, q0, v0, samples=5, store=tmp_path / "run.nc")
    kept = cd.simulate(wall(), 0.2, q0, v0, samples=5, failures="keep")
    for run in (caught.value.partial, cd.load_run(tmp_path / "run.nc")):
        np.testing.assert_array_equal(run.outcome, kept.outcome)
        assert (run.outcome != "").sum() == 2
        np.testing.assert_array_equal(run.q[kept.outcome == ""], kept.q[kept.outcome == ""])
        assert np.isfinite(run.q[kept.outcome == ""]).all()


@pytest.mark.parametrize("stored", [False, True])
def test_systems_that_an_interruption_left_out_say_so(
    stored: bool, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of three chunks the first is complete, the second on its way, the third not begun."""
    from cardan.integrate.explicit.stepper import ExplicitStepper
    from cardan.results import simulate as module

    real, calls = ExplicitStepper.advance, []

    def advance(self: ExplicitStepper, t: float) -> object:
        calls.append(t)
        if len(calls) == 6:
            raise KeyboardInterrupt
        return real(self, t)

    monkeypatch.setattr(ExplicitStepper, "advance", advance)
    monkeypatch.setattr(module, "CHUNK", 2)
    with pytest.raises(cd.InterruptedRunError) as caught:
        cd.simulate(
            pendulum().build(),
            1.0,
            np.full((3, 2, 1), 0.5),
            samples=5,
            **{"store": tmp_path / "r.nc"} if stored else {},
        )
    run = cd.load_run(tmp_path / "r.nc") if stored else caught.value.partial
    assert run.outcome.tolist() == [["", ""], ["interrupted"] * 2, ["not computed"] * 2]
    assert run.valid.sum(axis=-1).tolist() == [[5, 5], [2, 2], [0, 0]]


def test_more_than_memory_is_refused_with_a_way_out() -> None:
    q0 = np.broadcast_to(np.zeros(1), (10_000_000, 1))
    with pytest.raises(cd.InputError, match=r"take .* GB; take fewer samples, or give store='run.nc'"):
        cd.simulate(pendulum().build(), 1.0, q0)


def test_events_see_the_parameters_of_their_system() -> None:
    """A bob on longer and longer rods meets the same height at its own time, in every kind of integrator."""
    m = pendulum()
    m.joint("tip", cd.Rigid(), "bob", m.body("mark"), at=(0, -1, 0))
    com = np.array([[0, -1.0, 0], [0, -1.4, 0]])
    low = np.array([[0, -1.0, 0], [0, -1.4, 0]])
    model = m.build().free("bob.com", "tip.at").at({"bob.com": com, "tip.at": low})
    when = cd.Event("level", lambda s: s.position("mark")[0], "stop")
    for settings in ({}, {"method": "alpha", "step": 1e-3}, {"method": "gear"}):
        run = cd.simulate(model, 2.0, [0.5], events=[when], samples=21, **settings)
        ends = [run[k].q[-1, 0] if np.isfinite(run[k].q[-1, 0]) else run[k].q[run[k].valid][-1, 0] for k in range(2)]
        assert np.abs(ends).max() < 1e-9
        times = [event.time for event in run.events]
        assert times[1] > times[0] + 0.05


@pytest.mark.parametrize(("method", "step"), [("dormand_prince", None), ("rk4", 1e-3), ("alpha", 1e-3)])
def test_a_dead_point_is_named(method: str, step: float | None) -> None:
    """The rocker is turned further than the loop allows."""
    m = mechanisms.four_bar()
    start = cd.assemble(m.build())[0][-1]
    m.motion("turn", "D", lambda t: start + 0.8 * t)
    with pytest.raises(cd.SimulationError, match=r"ended at t = 1\.4.*singular value.*dead point") as caught:
        cd.simulate(m.build(), 10.0, method=method, step=step, assemble=True)
    assert 1.4 < caught.value.partial.time[-1] < 1.45


def test_a_full_disk_keeps_what_could_not_be_written(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from cardan.results.trajectory.store import Store

    def full(self: Store, *args: object, **more: object) -> None:
        raise cd.FileError("run.nc: cannot be written: no space left on device")

    monkeypatch.setattr(Store, "write", full)
    with pytest.raises(cd.SimulationError, match=r"no space left.*error\.partial") as caught:
        cd.simulate(pendulum().build(), 0.3, np.linspace(0.1, 1.0, 5)[:, None], samples=4, store=tmp_path / "run.nc")
    assert caught.value.partial.q.shape == (5, 4, 1)
    assert not list(tmp_path.iterdir())


def test_velocities_that_do_not_fit_the_loops_are_refused_with_and_without_q0() -> None:
    """They were replaced in silence where `q0` was not given."""
    model = mechanisms.four_bar().build()
    q, v = cd.assemble(model, v=[1.0, 0.0, 0.0])
    for q0 in (None, q):
        with pytest.raises(
            cd.InputError, match=r"the velocities at the start violate joint 'C' by 0\.\d+ .*assemble=T"
        ):
            cd.simulate(model, 0.1, q0, [1.0, 0.0, 0.0], samples=2)
        assert cd.simulate(model, 0.1, q0, v, samples=2).v[0] == pytest.approx(v, abs=1e-12)
        taken = cd.simulate(model, 0.1, q0, [1.0, 0.0, 0.0], samples=2, assemble=True)
        assert taken.v[0] == pytest.approx(v, abs=1e-12)
