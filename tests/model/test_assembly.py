"""Assembly: rough guesses close, held joints stay, rates fit; what cannot be is a sentence with a name and a size."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache

import numpy as np
import pytest

import cardan as cd
from cardan import mechanisms

from ..graphs import graph_model
from ..trees import close

pytestmark = pytest.mark.usefixtures("quick_code")

ROUGH = ("four_bar", "slider_crank", "parallelogram", "rscr", "bennett", "sarrus", "stewart_platform", "andrews")


@cache
def model_of(name: str) -> cd.Model:
    return mechanisms.CATALOGUE[name]().build()


@pytest.mark.parametrize("name", ROUGH)
def test_rough_guesses_assemble(name: str) -> None:
    model = model_of(name)
    rng = np.random.default_rng(2)
    guess = cd.plus(model, model.start(), rng.uniform(-0.15, 0.15, (4, model.nv)))
    q, v = cd.assemble(model, guess, rng.standard_normal((4, model.nv)))
    assert q.shape == guess.shape and v.shape == (4, model.nv)
    close(cd.constraint_residual(model, q), np.zeros((4, cd.redundancy(model).rows)), 1e-9)
    assert np.abs(cd.constraint_jacobian(model, q) @ v[..., None]).max() < 1e-10
    assert np.abs(guess - q).max() < 1.5  # not far away


def test_a_closed_state_is_left_as_it_is() -> None:
    model = graph_model(10)
    q, v = cd.assemble(model, None, np.random.default_rng(0).standard_normal(model.nv))
    again = cd.assemble(model, q, v)
    close(again[0], q, 1e-15)
    close(again[1], v, 1e-13)


@pytest.mark.parametrize("hold", [("A",), ("D",)])
def test_held_coordinates_and_rates_stay(hold: tuple[str, ...]) -> None:
    model = model_of("four_bar")
    guess, rates = model.start() + np.array([0.2, -0.1, 0.1]), np.array([1.3, -0.4, 0.7])
    q, v = cd.assemble(model, guess, rates, hold=hold)
    at = model.v_slice(hold[0])
    assert np.array_equal(q[at], guess[at]) and np.array_equal(v[at], rates[at])
    assert np.abs(cd.constraint_residual(model, q)).max() < 1e-11
    assert np.abs(cd.constraint_jacobian(model, q) @ v).max() < 1e-12


def test_rates_are_changed_least() -> None:
    """The change is orthogonal to every motion that the loops allow."""
    model = model_of("stewart_platform")
    q, _ = cd.assemble(model)
    wish = np.random.default_rng(3).standard_normal(model.nv)
    _, v = cd.assemble(model, q, wish)
    motions = np.linalg.svd(cd.constraint_jacobian(model, q))[2][cd.redundancy(model).rank :]
    assert motions.shape == (6, model.nv)
    close(motions @ (wish - v), np.zeros(6), 1e-12)


def test_prescribed_motion_sets_position_and_rate() -> None:
    m = mechanisms.four_bar()
    m.motion("spin", "A", lambda t: 1.0 + 2.0 * t + 0.5 * t * t)
    model = m.build()
    q, v = cd.assemble(model, t=0.3)
    at = model.v_slice("A").start
    assert abs(q[at] - (1 + 0.6 + 0.045)) < 1e-11
    assert abs(v[at] - 2.3) < 1e-12


def triangle(long: float, *, neighbour: bool = False) -> cd.Mechanism:
    """Two bars on hinges 1 m apart; with a neighbour, a sound four-bar is in the same model."""
    m = cd.Mechanism("triangle", gravity=(0, -9.81, 0))
    for name in ("left", "right"):
        m.body(name, mass=1.0, com=(long / 2, 0, 0), inertia=(0.1, 0.1, 0.1))
    m.joint("A", cd.Revolute(), m.ground, "left", start=0.5)
    m.joint("C", cd.Revolute(), m.ground, "right", at=(1, 0, 0), start=2.5)
    m.joint("B", cd.Revolute(), "left", "right", at=(long, 0, 0), child_at=(long, 0, 0))
    if neighbour:
        for name in ("bar1", "bar2", "bar3"):
            m.body(name, mass=1.0, com=(0.5, 0, 0), inertia=(0.1, 0.1, 0.1))
        m.joint("P", cd.Revolute(), m.ground, "bar1", start=1.4)
        m.joint("Q", cd.Revolute(), "bar1", "bar2", at=(1, 0, 0), start=-1.4)
        m.joint("R", cd.Revolute(), "bar2", "bar3", at=(1, 0, 0), child_at=(1, 0, 0))
        m.joint("S", cd.Revolute(), m.ground, "bar3", at=(1, 0, 0), start=1.4)
    return m


@pytest.mark.parametrize("neighbour", [False, True])
def test_bars_too_short_name_the_joint_and_the_gap(neighbour: bool) -> None:
    model = triangle(0.3, neighbour=neighbour).build()
    with pytest.raises(cd.ModelError) as error:
        cd.assemble(model)
    text = str(error.value)
    assert "model 'triangle' cannot be assembled: joint 'B' stays open by 0.4 (" in text
    with pytest.raises(cd.ModelError, match=re.escape("joint 'B' stays open by 0.4")):
        cd.forward_dynamics(model, model.start(), np.zeros(model.nv))


QUESTIONS: list[Callable[[cd.Model], object]] = [
    lambda model: cd.forward_dynamics(model, model.start(), np.zeros(model.nv)),
    lambda model: cd.reactions(model, *cd.assemble(model)),
    lambda model: cd.forward_dynamics(model, model.start(), np.zeros(model.nv), formulation="absolute"),
]


@pytest.mark.parametrize("ask", QUESTIONS)
def test_a_locked_mechanism_says_so(ask: Callable[[cd.Model], object]) -> None:
    model = triangle(0.6).build()
    assert cd.redundancy(model).freedoms == 0
    with pytest.raises(cd.ModelError) as error:
        ask(model)
    text = str(error.value)
    assert "model 'triangle' is locked" in text and "leave no freedom" in text and "'B'" in text


def test_a_motion_out_of_reach_names_what_stays_open() -> None:
    m = mechanisms.four_bar()
    m.motion("too far", "D", -3.0)
    with pytest.raises(
        cd.ModelError, match=r"model 'four_bar' cannot be assembled: (joint 'C'|motion 'too far') stays open by 0\.\d"
    ):
        cd.assemble(m.build())


def test_motions_that_conflict_in_position_or_in_rate() -> None:
    m = mechanisms.four_bar()
    m.motion("one", "A", lambda t: 1.0 + 2.0 * t)
    m.motion("two", "B", lambda t: -0.2 + t)
    with pytest.raises(cd.ModelError, match=r"cannot be assembled: .* stays open by"):
        cd.assemble(m.build())
    m = mechanisms.four_bar()
    closed = float(m.build().start()[1])
    m.motion("one", "A", lambda t: 1.0 + 2.0 * t)
    m.motion("two", "B", lambda t: closed + 5.0 * t)
    with pytest.raises(cd.ModelError, match=r"cannot move like that: .* a constraint is broken by \d"):
        cd.assemble(m.build())


def test_rates_held_against_the_loops_are_refused() -> None:
    model = model_of("four_bar")
    q, _ = cd.assemble(model)
    with pytest.raises(cd.ModelError, match="hold fewer joints"):
        cd.assemble(model, q, np.array([1.0, 1.0, 1.0]), hold=("A", "B", "D"))
