"""Inverse dynamics from every formulation's own equations: the joint forces of space, and the inverse of forward."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

import cardan as cd
from cardan.functions.check import consistent_states
from cardan.mechanisms import five_bar

from ..trees import close, seeds, state, tree_model
from .test_points import TREES, add_elements, planar_mechanism, planar_model_of

pytestmark = pytest.mark.usefixtures("quick_code")

OWN = ("absolute", "absolute_body", "relative")


@pytest.mark.parametrize("name", TREES)
@given(seed=seeds)
@settings(max_examples=3)
def test_points_on_random_planar_trees(name: str, seed: int) -> None:
    model = planar_model_of(name, seed % 2)
    q, v, a, wrenches = state(model, seed, 4)
    tau = cd.inverse_dynamics(model, q, v, a, wrenches=wrenches, formulation="points")
    close(tau, cd.inverse_dynamics(model, q, v, a, wrenches=wrenches), 1e-10)
    close(cd.forward_dynamics(model, q, v, tau, wrenches=wrenches, formulation="points"), a, 1e-9)


@pytest.mark.parametrize("formulation", OWN)
@given(seed=seeds)
@settings(max_examples=3)
def test_six_coordinates_a_body_on_random_trees(formulation: str, seed: int) -> None:
    model = tree_model(seed % 2, 4)
    q, v, a, wrenches = state(model, seed, 4)
    expected = cd.inverse_dynamics(model, q, v, a, wrenches=wrenches)
    tau = cd.inverse_dynamics(model, q, v, a, wrenches=wrenches, formulation=formulation)
    close(tau, expected, 1e-10)
    close(cd.inverse_dynamics(model, q, v, a, formulation=formulation), cd.inverse_dynamics(model, q, v, a), 1e-10)


@pytest.mark.parametrize("formulation", ["newton_euler", "absolute", "relative", "points"])
def test_force_elements_count(formulation: str) -> None:
    m = planar_mechanism("chain", 3, **TREES["chain"])  # type: ignore[arg-type]
    add_elements(m, ("revolute 0",), np.random.default_rng(3))
    model = m.build()
    q, v, a, wrenches = state(model, 1, 3)
    expected = cd.inverse_dynamics(model, q, v, a, wrenches=wrenches)
    close(cd.inverse_dynamics(model, q, v, a, wrenches=wrenches, formulation=formulation), expected, 1e-10)


@pytest.mark.parametrize("formulation", ["newton_euler", "absolute", "relative", "points"])
def test_drives_of_a_loop(formulation: str) -> None:
    model = five_bar().build()
    q, v = consistent_states(model, np.random.default_rng(0), 3)
    a = cd.forward_dynamics(model, q, v, np.ones(model.nv))
    expected = cd.inverse_dynamics(model, q, v, a, driven=["A", "E"])
    assert np.abs(expected).max() > 0.1
    close(cd.inverse_dynamics(model, q, v, a, driven=["A", "E"], formulation=formulation), expected, 1e-10)
    with pytest.raises(cd.InputError, match="say which joints are driven"):
        cd.inverse_dynamics(model, q, v, a, formulation=formulation)


def test_single_precision_and_the_callers_array() -> None:
    model = planar_model_of("tree", 0)
    q, v, a, _ = (x.astype(np.float32) for x in state(model, 0, 5))
    out = np.empty_like(v)
    tau = cd.inverse_dynamics(model, q, v, a, formulation="points", out=out)
    assert tau is out and tau.dtype == np.float32
    close(tau, cd.inverse_dynamics(model, *(x.astype(float) for x in (q, v, a))), 1e-4)
