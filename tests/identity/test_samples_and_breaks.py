"""Samples change no step of fixed length and are as accurate as the method; breaks are met from both sides."""

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


@pytest.mark.parametrize("method", ORDERS)
def test_samples_inside_steps_have_the_order_of_the_method(model: cd.Model, truth: cd.Trajectory, method: str) -> None:
    """The long steps of rk4 and alpha are longer than the mean distance of the samples."""
    errors = []
    for step in {"rk4": (0.04, 0.02), "euler": (0.002, 0.001), "alpha": (0.04, 0.02)}[method]:
        run = cd.simulate(model, 1.0, **START, method=method, step=step, samples=truth.time)
        errors.append(max(np.abs(run.q - truth.q).max(), np.abs(run.v - truth.v).max()))
    assert np.log2(errors[0] / errors[1]) == pytest.approx(ORDERS[method], abs=0.5), errors


@pytest.mark.parametrize("method", ORDERS)
def test_samples_of_a_batch_with_events_change_no_step(model: cd.Model, method: str) -> None:
    """After an event the steps of its system are counted from there."""
    event = cd.Event("level", lambda s: s.q[0], action="record")
    q0 = np.array([[1.2, 0.4], [0.5, 0.1], [0.9, -0.3]])
    runs = [cd.simulate(model, 1.5, q0, method=method, step=0.02, samples=n, events=[event]) for n in (2, 301)]
    assert len(runs[0].events) == len(runs[1].events) >= 3
    np.testing.assert_allclose([e.time for e in runs[0].events], [e.time for e in runs[1].events], atol=1e-10)
    np.testing.assert_allclose(runs[0].q[:, -1], runs[1].q[:, -1], atol=1e-10)
    assert runs[0].statistics == runs[1].statistics
    for i in range(3):  # a batch is as its systems alone
        alone = cd.simulate(model, 1.5, q0[i], method=method, step=0.02, samples=301, events=[event])
        np.testing.assert_allclose(alone.q, runs[1].q[i], atol=1e-10)


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
