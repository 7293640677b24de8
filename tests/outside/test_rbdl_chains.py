"""The chains and trees of RBDL's own tests: accelerations to the digits printed there."""

import json
from pathlib import Path

import numpy as np
import pytest

import cardan as cd

CHAINS = json.loads((Path(__file__).parent / "data" / "rbdl_chains.json").read_text())["chains"]


@pytest.mark.parametrize("formulation", ["spatial", "newton_euler"])
@pytest.mark.parametrize("name", CHAINS)
def test_accelerations_are_those_of_RBDL(name: str, formulation: str) -> None:
    chain = CHAINS[name]
    m = cd.Mechanism(name, gravity=(0, -9.81, 0))
    for k, b in enumerate(chain["bodies"]):
        m.body(f"b{k}", mass=b["mass"], com=b["com"], inertia=b["inertia"])
        near = m.ground if b["parent"] < 0 else f"b{b['parent']}"
        m.joint(f"j{k}", cd.Revolute(axis=b["axis"]), near, f"b{k}", at=b["offset"])
    model = m.build()
    a = cd.forward_dynamics(model, chain["q"], np.zeros(model.nv), formulation=formulation)
    expected = np.array(chain["accelerations"])
    assert np.all(np.abs(a - expected) <= 1e-12 * np.maximum(1, np.abs(expected)))
