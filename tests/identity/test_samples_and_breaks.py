"""Samples change no step and are as accurate as the method; breaks are met from both sides."""

from __future__ import annotations

from typing import Any

import casadi as ca
import numpy as np
import pytest

import cardan as cd
from cardan import mechanisms

pytestmark = pytest.mark.usefixtures("quick_code")

ORDERS = {"rk4": 4, "euler": 1, "alpha": 2}
START = {"q0": [1.2, 0.4], "v0": [0.3, -1.0]}


@pytest.fixture(scope="module")
def model() -> cd.Model:
    """Two links under gravity."""
    return mechanisms.double_pendulum().build()


@pytest.fixture(scope="module")
def truth(model: cd.Model) -> cd.Trajectory:
    """A run whose error is far below that of the runs compared with it, at times that are the ends of no step."""
    times = np.sort(np.random.default_rng(3).uniform(0.0, 1.0, 60))
    return cd.simulate(model, 1.0, **START, rtol=1e-12, atol=1e-13, samples=times)


@pytest.mark.parametrize("method", ORDERS)
@pytest.mark.parametrize("step", [0.02, 0.031])
def test_samples_change_no_step_of_fixed_length(model: cd.Model, method: str, step: float) -> None:
    alone = cd.simulate(model, 1.0, **START, method=method, step=step, samples=2)
    assert alone.statistics["steps"] == np.ceil(1.0 / step)
    for samples in (51, 501, 1003, np.sort(np.random.default_rng(1).uniform(0.0, 1.0, 40))):
        run = cd.simulate(model, 1.0, **START, method=method, step=step, samples=samples)
        assert run.settings["step"] == step
        assert run.statistics["steps"] == alone.statistics["steps"]
        np.testing.assert_allclose(run.q[-1], alone.q[-1], atol=1e-11)


CHOOSING = ("dormand_prince", "gear", "bdf", "adams")


@pytest.mark.parametrize("method", CHOOSING)
@pytest.mark.parametrize("v0", [[0.3, -1.0], [0.0, 0.0]], ids=["moving", "at rest"])
def test_samples_change_no_step_that_a_method_chooses(model: cd.Model, method: str, v0: list[float]) -> None:
    """So errors follow the tolerance, with few samples or many. SUNDIALS rounds its interpolation.

    At rest the first step that CVODE would choose depends on the first sample.
    """
    start = START | {"v0": v0}
    within = 0.0 if method == "dormand_prince" else 1e-10
    alone = cd.simulate(model, 1.0, **start, method=method, samples=2)
    for samples in (501, np.sort(np.random.default_rng(1).uniform(0.0, 1.0, 40))):
        run = cd.simulate(model, 1.0, **start, method=method, samples=samples)
        assert run.statistics["steps"] == alone.statistics["steps"]
        np.testing.assert_allclose(run.q[-1], alone.q[-1], rtol=within, atol=within)
        np.testing.assert_allclose(run.v[-1], alone.v[-1], rtol=within, atol=within)


def test_errors_of_many_samples_follow_the_tolerance() -> None:
    """A loop, with far more samples than steps: none has an error far from that of the steps."""
    model = mechanisms.four_bar().build()
    truth = cd.simulate(model, 1.0, rtol=1e-12, atol=1e-13, samples=301)
    for rtol in (1e-4, 1e-6, 1e-8):
        run = cd.simulate(model, 1.0, rtol=rtol, atol=rtol, samples=301)
        assert run.statistics["steps"] < 150
        assert rtol < np.abs(run.q - truth.q).max() < 100 * rtol
        assert np.abs(run.v - truth.v).max() < 1000 * rtol
        assert np.abs(cd.constraint_residual(model, run.q)).max() < 1e-12


@pytest.mark.parametrize("method", ORDERS)
def test_samples_inside_steps_have_the_order_of_the_method(model: cd.Model, truth: cd.Trajectory, method: str) -> None:
    """The long steps of rk4 and alpha are longer than the mean distance of the samples."""
    errors = []
    for step in {"rk4": (0.04, 0.02), "euler": (0.002, 0.001), "alpha": (0.04, 0.02)}[method]:
        run = cd.simulate(model, 1.0, **START, method=method, step=step, samples=truth.time)
        errors.append(max(np.abs(run.q - truth.q).max(), np.abs(run.v - truth.v).max()))
    assert np.log2(errors[0] / errors[1]) == pytest.approx(ORDERS[method], abs=0.5), errors


@pytest.mark.parametrize("method", [*ORDERS, "dormand_prince"])
def test_samples_of_a_batch_with_events_change_no_step(model: cd.Model, method: str) -> None:
    """After an event the steps of its system are counted from there."""
    event = cd.Event("level", lambda s: s.q[0], action="record")
    q0 = np.array([[1.2, 0.4], [0.5, 0.1], [0.9, -0.3]])
    given: dict[str, Any] = {"method": method, "events": [event]} | ({"step": 0.02} if method in ORDERS else {})
    runs = [cd.simulate(model, 1.5, q0, **given, samples=n) for n in (2, 301)]
    assert len(runs[0].events) == len(runs[1].events) >= 3
    np.testing.assert_allclose([e.time for e in runs[0].events], [e.time for e in runs[1].events], atol=1e-10)
    np.testing.assert_allclose(runs[0].q[:, -1], runs[1].q[:, -1], atol=1e-10)
    for name in ("steps", "most_steps"):
        assert runs[0].statistics[name] == runs[1].statistics[name]
    for i in range(3):  # a batch is as its systems alone, to the bit: one that meets an event disturbs no other
        alone = cd.simulate(model, 1.5, q0[i], **given, samples=301)
        np.testing.assert_array_equal(alone.q, runs[1].q[i])
        assert [e.time for e in alone.events] == [e.time for e in runs[1].events if e.system == (i,)]


def test_a_step_longer_than_the_longest_allowed_is_an_error(model: cd.Model) -> None:
    with pytest.raises(cd.InputError, match=r"'rk4' takes steps of fixed length, and step=0.1 s is longer than max_st"):
        cd.simulate(model, 1.0, method="rk4", step=0.1, max_step=0.01)


# Breaks


def pushed(strict: bool, at: float = 0.7, size: float = 3.0) -> cd.Model:
    """A slider of 1 kg, pushed by a force of `size` N from time `at` on."""
    m = cd.Mechanism("pushed", gravity=(0, 0, 0))
    m.body("block", mass=1.0)
    m.joint("x", cd.Prismatic(axis=(1, 0, 0)), "ground", "block")
    m.drive("push", "x", lambda t, q, v: ca.if_else(t > at if strict else t >= at, size, 0.0))
    return m.build()


METHODS: dict[str, dict[str, Any]] = {
    **{name: {"method": name, "step": 0.2} for name in ORDERS},
    **{name: {"method": name} for name in ("dormand_prince", "gear", "bdf", "adams")},
}


@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize("method", [name for name in METHODS if name != "euler"])
def test_a_jump_at_a_break_is_seen_from_its_own_side(method: str, strict: bool) -> None:
    """A constant force is integrated exactly by every method of order 2 or more, if no step sees the other side."""
    run = cd.simulate(pushed(strict), 1.7, [0.0], [1.0], **METHODS[method], breaks=[0.7], samples=18)
    after = np.maximum(run.time - 0.7, 0.0)
    within = 1e-6 if method in ("gear", "bdf", "adams") else 1e-12
    np.testing.assert_allclose(run.q[:, 0], run.time + 1.5 * after**2, atol=within)
    np.testing.assert_allclose(run.v[:, 0], 1.0 + 3.0 * after, atol=within)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("direction", [-1, 0, 1])
def test_an_event_on_a_break_is_met(method: str, direction: int) -> None:
    """An event whose zero is the break itself ends the run, unless it is of the other direction."""
    for when in (lambda s: s.t - 0.5, lambda s: s.q[0] - 0.5, lambda s: ca.if_else(s.t < 0.5, -1.0, 2.0)):
        event = cd.Event("there", when, direction=direction)
        run = cd.simulate(pushed(True), 1.0, [0.0], [1.0], **METHODS[method], breaks=[0.5, 0.7], events=[event])
        if direction == -1:
            assert not run.events and run.time[-1] == 1.0
        else:
            assert run.outcome == "stopped at an event"
            assert run.time[-1] == pytest.approx(0.5, abs=1e-9) and run.events[0].time == pytest.approx(0.5, abs=1e-9)


# Between the samples


def kicked() -> cd.Model:
    """A pendulum whose drive jumps at t = 0.777 s, and once more at 1.3 s."""
    m = cd.Mechanism("kicked", gravity=(0, -9.81, 0))
    m.body("rod", mass=1.0, com=(0.5, 0, 0), inertia=(0.001, 0.0833, 0.0833))
    m.joint("A", cd.Revolute(), m.ground, "rod")
    m.drive("kick", "A", lambda t, q, v: ca.if_else(t > 0.777, ca.if_else(t >= 1.3, -15.0, 20.0), -10.0))
    return m.build()


BREAKS = (0.777, 1.3)


@pytest.mark.parametrize("samples", [101, 201, [0.3, 0.777, *np.linspace(0.8, 1.9, 111)]])
def test_interpolation_does_not_cross_a_break(samples: Any) -> None:
    """The error at times near breaks falls as the order says, whether or not a break is a sample."""
    model = kicked()
    times = np.concatenate([b + np.linspace(-0.02, 0.02, 41) for b in BREAKS])
    exact = cd.simulate(model, 2.0, [0.3], rtol=1e-12, atol=1e-12, breaks=BREAKS, samples=times)
    if not isinstance(samples, int):
        samples = [*np.linspace(0.0, 0.77, 78), *samples[1:]]
    run = cd.simulate(model, 2.0, [0.3], rtol=1e-12, atol=1e-12, breaks=BREAKS, samples=samples)
    q, v = run.at(exact.time[1:-1])
    np.testing.assert_allclose(q, exact.q[1:-1], atol=1e-7)
    np.testing.assert_allclose(v, exact.v[1:-1], atol=3e-5)
    assert run.at(0.777)[1] == pytest.approx(exact.at(0.777)[1], abs=1e-8)


def test_states_at_breaks_are_kept_in_files_and_parts_of_a_batch(tmp_path: Any) -> None:
    model, q0 = kicked(), np.array([[0.3], [0.4], [-0.2]])
    run = cd.simulate(model, 2.0, q0, breaks=BREAKS, samples=41)
    t = np.linspace(0.0, 2.0, 173)
    run.save(tmp_path / "run.nc")
    stored = cd.simulate(model, 2.0, q0, breaks=BREAKS, samples=41, store=tmp_path / "stored.nc")
    q, v = run.at(t)
    for other in (cd.load_run(tmp_path / "run.nc", model), stored, run[:]):
        np.testing.assert_array_equal(other.at(t)[0], q)
        np.testing.assert_array_equal(other.at(t)[1], v)
    np.testing.assert_allclose(run[1].at(t)[0], q[1], atol=1e-13)
    free = model.free("rod.mass")
    some = cd.simulate(free.at({"rod.mass": [1.0, 1.0, 1.0]}), 2.0, q0, tau=np.zeros((3, 1)), breaks=BREAKS, samples=41)
    np.testing.assert_allclose(some.at(t)[0], q, atol=1e-9)


def test_samples_too_far_apart_to_interpolate_are_told() -> None:
    model = kicked()
    with pytest.warns(RuntimeWarning, match=r"between the samples at t = 0 s and 0\.777 s .* may be off by [\d.]+ rad"):
        cd.simulate(model, 2.0, [0.3], breaks=BREAKS, samples=2).at(0.5)
    with pytest.warns(RuntimeWarning, match="give the times of jumps in breaks"):
        cd.simulate(model, 1.0, [0.3], samples=11).at(0.75)
