"""The two formulations of one mechanism agree: every joint kind, both ways round, and random mixtures of them.

CasADi interprets the graphs; the public functions, which compile them, are compared on one tree.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

import cardan as cd
from cardan.structure.kernels import tree_graph

from ..formulations import RECURSIONS
from ..trees import KINDS, TREES, close, floating_model, kind_model, seeds, state, tree_model

pytestmark = pytest.mark.usefixtures("quick_code")

BATCH = 8
QUANTITIES: dict[str, Callable[..., np.ndarray]] = {
    "forward_dynamics": lambda m, q, v, t, w, **f: cd.forward_dynamics(m, q, v, t, **f),
    "forward_dynamics_loaded": lambda m, q, v, t, w, **f: cd.forward_dynamics(m, q, v, t, wrenches=w, **f),
    "inverse_dynamics": lambda m, q, v, t, w, **f: cd.inverse_dynamics(m, q, v, t, **f),
    "inverse_dynamics_loaded": lambda m, q, v, t, w, **f: cd.inverse_dynamics(m, q, v, t, wrenches=w, **f),
    "bias_force": lambda m, q, v, t, w, **f: cd.bias_force(m, q, v, **f),
    "gravity_force": lambda m, q, v, t, w, **f: cd.gravity_force(m, q, **f),
    "mass_matrix": lambda m, q, v, t, w, **f: cd.mass_matrix(m, q, **f),
    "inverse_mass_matrix": lambda m, q, v, t, w, **f: cd.inverse_mass_matrix(m, q, **f),
    "joint_wrenches": lambda m, q, v, t, w, **f: cd.joint_wrenches(m, q, v, t, wrenches=w, **f),
    "kinetic_energy": lambda m, q, v, t, w, **f: cd.kinetic_energy(m, q, v, **f),
    "potential_energy": lambda m, q, v, t, w, **f: cd.potential_energy(m, q, **f),
    "momentum": lambda m, q, v, t, w, **f: cd.momentum(m, q, v, **f),
    "centroidal_momentum": lambda m, q, v, t, w, **f: cd.centroidal_momentum(m, q, v, **f),
    "center_of_mass": lambda m, q, v, t, w, **f: cd.center_of_mass(m, q, **f),
    "body_poses": lambda m, q, v, t, w, **f: cd.body_poses(m, q, **f),
    "body_twists": lambda m, q, v, t, w, **f: cd.body_twists(m, q, v, **f),
}
SPATIAL_ONLY = {
    "coriolis_matrix", "joint_axes", "body_accelerations", "subtrees", "inverse_dynamics_derivatives",
    "inverse_dynamics_loaded_derivatives", "forward_dynamics_derivatives", "changed_axes",
}  # fmt: skip
SHARED = {"plus", "rates", "project"}  # one text for both


@cache
def graph(model: cd.Model, name: str, formulation: str) -> Any:
    """The CasADi function of a quantity; that of joint wrenches keeps the bodies that rigid joints join."""
    return tree_graph(model.unmerged if name == "joint_wrenches" else model, name, formulation)


def interpreted(model: cd.Model, name: str, formulation: str, given: tuple[np.ndarray, ...]) -> np.ndarray:
    """A quantity at each row of q, v, tau or a, and wrenches."""
    ports = dict(zip(("q", "v", "tau", "wrenches"), given, strict=True)) | {"a": given[2]}
    rows = zip(*(ports[port] for port in RECURSIONS[formulation][name].inputs), strict=True)
    return np.array([np.array(graph(model, name, formulation)(*row)) for row in rows])


def assert_agreement(model: cd.Model, seed: int) -> None:
    given_ = state(model, seed, BATCH)
    for name in QUANTITIES:
        expected = interpreted(model, name, "spatial", given_)
        for other in (f for f, table in RECURSIONS.items() if f != "spatial" and name in table):
            try:
                close(interpreted(model, name, other, given_), expected, 1e-10)
            except AssertionError as error:
                raise AssertionError(f"{name}, {other}, {model.name}: {error}") from None


@pytest.mark.parametrize("name", QUANTITIES)
def test_public_functions_agree_with_each_other_and_with_the_graphs(name: str) -> None:
    model = tree_model(1, 4)
    given_ = state(model, 0, BATCH)
    expected = interpreted(model, name, "spatial", given_)
    for formulation in (f for f, table in RECURSIONS.items() if name in table):
        got = QUANTITIES[name](model, *given_, formulation=formulation)
        close(got.reshape(expected.shape), expected, 1e-10)


def test_every_quantity_of_two_formulations_is_compared() -> None:
    assert set(RECURSIONS["newton_euler"]) == set(QUANTITIES) | SHARED
    assert set(RECURSIONS["spatial"]) == set(QUANTITIES) | SHARED | SPATIAL_ONLY


@pytest.mark.parametrize("backwards", [False, True], ids=["forwards", "backwards"])
@pytest.mark.parametrize("kind", KINDS)
def test_formulations_agree_on_every_joint_kind(kind: str, backwards: bool) -> None:
    model = kind_model(kind, backwards)
    assert any(joint.kind.name.startswith(kind) for joint in model.joints)
    assert_agreement(model, 0)


@pytest.mark.parametrize("tree", range(TREES))
@given(seed=seeds)
@settings(max_examples=4)
def test_formulations_agree_on_random_trees(tree: int, seed: int) -> None:
    assert_agreement(tree_model(tree), seed)


@pytest.mark.parametrize("number", range(3))
def test_formulations_agree_on_floating_trees(number: int) -> None:
    assert_agreement(floating_model(number), 1)


@pytest.mark.parametrize("formulation", ["newton_euler", "absolute", "absolute_body", "relative"])
def test_formulations_agree_across_a_massless_body(formulation: str) -> None:
    m = cd.Mechanism("massless between")
    m.body("base", mass=1.0, com=(0.1, 0.2, 0.3), inertia=(1, 1, 1))
    m.body("cross")
    m.body("tip", mass=1.0, com=(0.3, 0.1, 0.2), inertia=(1, 1, 1))
    m.joint("A", cd.Revolute(axis=(0, 0, 1)), m.ground, "base")
    m.joint("B", cd.Prismatic(axis=(1, 0, 0)), "base", "cross")
    m.joint("C", cd.Revolute(axis=(0, 1, 0)), "cross", "tip")
    model = m.build()
    q, v, tau, _ = state(model, 2, BATCH)
    got = cd.forward_dynamics(model, q, v, tau, formulation=formulation)
    close(got, cd.forward_dynamics(model, q, v, tau), 1e-10)
