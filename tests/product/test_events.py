"""Events and breaks, as a user meets them: directions, in every method, and the run that goes on afterwards."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import cardan as cd

pytestmark = pytest.mark.usefixtures("quick_code")

METHODS: dict[str, dict[str, Any]] = {
    "dormand_prince": {}, "rk4": {"step": 0.01}, "alpha": {"step": 0.005, "method": cd.Alpha(damping=1.0)},
    "gear": {"rtol": 1e-9, "atol": 1e-10}, "bdf": {"rtol": 1e-9, "atol": 1e-10}, "adams": {},
}  # fmt: skip


def oscillator() -> cd.Model:
    """A cart on a spring: q = cos t, down through zero at pi/2 and up at 3 pi/2."""
    m = cd.Mechanism("oscillator", gravity=(0, 0, 0))
    m.body("cart", mass=2.0, inertia=(1, 1, 1))
    m.joint("x", cd.Prismatic(axis=(1, 0, 0)), m.ground, "cart")
    m.torsion("spring", "x", stiffness=2.0)
    return m.build()


@pytest.mark.parametrize("method", METHODS)
def test_an_event_is_met_in_its_direction_only(method: str) -> None:
    """One model for all: the kernel of one direction does not serve another."""
    model, settings = oscillator(), {"method": method} | METHODS[method]
    crossings = {1: [1.5], -1: [0.5, 2.5], 0: [0.5, 1.5, 2.5]}
    for direction in (1, -1, 0):
        event = cd.Event("middle", lambda s: s.q[0], "record", direction)
        run = cd.simulate(model, 2.7 * np.pi, [1.0], events=[event], samples=5, **settings)
        assert [e.time / np.pi for e in run.events] == pytest.approx(crossings[direction], abs=1e-4)
        np.testing.assert_allclose(run.q[:, 0], np.cos(run.time), atol=2e-4)
        stop = cd.simulate(model, 2.7 * np.pi, [1.0], events=[cd.Event("m", event.when, "stop", direction)], **settings)
        assert stop.time[-1] / np.pi == pytest.approx(crossings[direction][0], abs=1e-4)


def test_every_point_of_a_body_is_seen_by_events() -> None:
    """The tip of a turning rod moves along x with speed -sin: the velocity of a point, not of the body's origin."""
    m = cd.Mechanism("turning", gravity=(0, 0, 0))
    m.body("rod", mass=1.0, inertia=(1, 1, 1))
    m.joint("A", cd.Revolute(), m.ground, "rod")
    events = [
        cd.Event("speed", lambda s: s.velocity("rod", (1.0, 0.0, 0.0))[0] + 0.5, "record"),
        cd.Event("place", lambda s: s.position("rod", (1.0, 0.0, 0.0))[1] - 0.8, "record"),
    ]
    run = cd.simulate(m.build(), 1.5, [0.0], [1.0], events=events, samples=3)
    found = {event.name: event.time for event in run.events}
    assert found == pytest.approx({"speed": np.arcsin(0.5), "place": np.arcsin(0.8)}, abs=1e-9)


@pytest.mark.parametrize("after", [1e-15, 1e-13])
def test_after_an_event_alpha_begins_again(after: float) -> None:
    """A step that ends just after another is too short to tell accelerations; a break begins again there as well."""
    model = cd.mechanisms.four_bar().build()
    q, v = cd.assemble(model, v=np.ones(model.nv))
    event = cd.Event("now", lambda s: s.t - (0.1 + after), "record")
    settings: dict[str, Any] = {"method": "alpha", "step": 0.01, "samples": 5}
    broken, met = (
        cd.simulate(model, 0.4, q, v, **settings, **words) for words in ({"breaks": [0.1]}, {"events": [event]})
    )
    assert [e.time for e in met.events] == pytest.approx([0.1], abs=1e-9)
    np.testing.assert_allclose(met.q, broken.q, atol=1e-9)
    np.testing.assert_allclose(met.v, broken.v, atol=1e-8)


@pytest.mark.parametrize("method", ["rk4", "euler", "alpha"])
def test_short_steps_before_breaks_are_counted(method: str) -> None:
    """Steps of 0.1 s from 0 to a break at 0.25 s, and from there to the end at 1 s: 3 and 8."""
    run = cd.simulate(oscillator(), 1.0, [1.0], method=method, step=0.1, breaks=[0.25], samples=2)
    assert run.statistics["steps"] == 11


@pytest.mark.parametrize("most", [10, 100, 300])
def test_no_more_steps_than_allowed(most: int) -> None:
    """The run ends after the last step allowed, not where a call of the kernel happens to end."""
    run = cd.simulate(oscillator(), 1000.0, [1.0], max_steps=most, failures="keep", samples=2)
    assert run.outcome == "too many steps" and run.statistics["steps"] == most
