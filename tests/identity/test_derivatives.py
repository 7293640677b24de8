"""`by=` of every function of a state: against differences along the tangent, in every formulation, with loops."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import cardan as cd
from cardan import mechanisms

from ..trees import close, tree_model

Function = Callable[..., Any]
FORMULATIONS = ("spatial", "newton_euler", "absolute", "absolute_body", "relative")


def moved(model: cd.Model, x: dict[str, np.ndarray], name: str, k: int, h: float) -> dict[str, np.ndarray]:
    """The arguments with one number of one of them moved; `q` along a unit rate."""
    if name == "q":
        return x | {"q": cd.plus(model, x["q"], h * np.eye(model.nv)[k])}
    flat = x[name].ravel().copy()
    flat[k] += h
    return x | {name: flat.reshape(x[name].shape)}


def differences(model: cd.Model, call: Function, x: dict[str, np.ndarray], name: str, h: float = 1e-3) -> np.ndarray:
    """Derivative by differences of the sixth order, the columns last."""
    weights = {1: 3 / 4, 2: -3 / 20, 3: 1 / 60}
    columns = []
    for k in range(model.nv if name == "q" else x[name].size):
        at = lambda n, k=k: np.asarray(call(**moved(model, x, name, k, n * h)))
        columns.append(sum(w * (at(n) - at(-n)) for n, w in weights.items()) / h)
    return np.stack(columns, axis=-1)


def state(model: cd.Model, seed: int = 0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    q, v = model.random_state(rng)
    if model.has_rows:
        q, v = cd.assemble(model, q, v)
    a, tau = rng.normal(size=(2, model.nv))
    return {"q": q, "v": v, "a": a, "tau": tau, "wrenches": rng.normal(size=(model.nb, 6))}


CASES: dict[str, tuple[str, ...]] = {
    "forward_dynamics": ("q", "v", "tau"),
    "inverse_dynamics": ("q", "v", "a"),
    "mass_matrix": ("q",),
    "inverse_mass_matrix": ("q",),
    "bias_force": ("q", "v"),
    "gravity_force": ("q",),
    "coriolis_matrix": ("q", "v"),
    "kinetic_energy": ("q", "v"),
    "potential_energy": ("q",),
    "momentum": ("q", "v"),
    "centroidal_momentum": ("q", "v"),
    "center_of_mass": ("q",),
    "body_poses": ("q",),
    "body_twists": ("q", "v"),
    "body_accelerations": ("q", "v", "a"),
    "joint_axes": ("q",),
    "reactions": ("q", "v", "tau"),
}


@pytest.mark.parametrize("name", CASES)
def test_a_tree_with_every_kind_of_joint(name: str) -> None:
    model, names = tree_model(1, 3), CASES[name]
    x = {key: value for key, value in state(model).items() if key in names}
    function = getattr(cd, name)
    found = function(model, **x, by=names)
    close(found.value, function(model, **x), 1e-12)
    for key in names:
        close(found[key], differences(model, lambda **y: function(model, **y), x, key), 1e-7)


@pytest.mark.parametrize("formulation", [*FORMULATIONS, "points"])
@pytest.mark.parametrize("name", ["forward_dynamics", "reactions", "multipliers", "kinetic_energy"])
def test_a_loop_in_every_formulation(name: str, formulation: str) -> None:
    """The partial derivative of the equations as they stand; differences leave the loop open a little, as it does."""
    model = mechanisms.four_bar().build()
    names = CASES.get(name, ("q", "v", "tau"))
    x = {key: value for key, value in state(model).items() if key in names}
    call = lambda **y: getattr(cd, name)(model, **y, formulation=formulation)
    found = getattr(cd, name)(model, **x, by=names, formulation=formulation)
    for key in names:
        close(found[key], differences(model, call, x, key), 1e-6)
