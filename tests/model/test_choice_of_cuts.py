"""Which joints close loops: never one whose coordinate matters, if another can."""

from __future__ import annotations

import numpy as np
import pytest

import cardan as cd
from cardan import mechanisms
from cardan.io.yaml.write import write_yaml

pytestmark = pytest.mark.usefixtures("quick_code")

HINGES = ("A", "B", "C", "D")


def four_bar(joint: str, what: str) -> cd.Mechanism:
    m = mechanisms.four_bar()
    {
        "spring": lambda: m.torsion("law", joint, stiffness=2.0, rest=0.1),
        "drive": lambda: m.drive("law", joint, lambda t, q, v: -2 * (q - 0.1)),
        "damper": lambda: m.torsion("law", joint, damping=0.3),
    }[what]()
    return m


@pytest.mark.parametrize("what", ["spring", "drive"])
@pytest.mark.parametrize("joint", HINGES)
def test_a_joint_with_a_law_of_its_angle_is_kept(joint: str, what: str) -> None:
    """It can only be counted there."""
    model = four_bar(joint, what).build()
    assert joint not in [model.joints[j].name for j in model.cuts]
    assert not model.notes


@pytest.mark.parametrize("joint", ["A", "B"])
def test_a_spring_that_is_wound_up_pulls_as_the_whole_angle_says(joint: str) -> None:
    """The crank turns round and round against a spring on a joint of its own; energy tells whether turns count."""
    model = four_bar(joint, "spring").build()
    links = {model.joints[link.joint].name: link for link in model.tree.links}
    turning = np.zeros(model.nv)
    turning[links["A"].v] = 30.0
    q, v = cd.assemble(model, v=turning, hold=["A"])
    run = cd.simulate(model, 2.0, q, v, samples=201)
    assert np.ptp(run.q[:, links[joint].q]) > 4 * np.pi
    energy = run.energy
    np.testing.assert_allclose(energy, energy[0], rtol=1e-6)


@pytest.mark.parametrize("what", ["spring", "drive", "damper"])
def test_a_law_of_an_angle_that_is_not_counted_is_told(what: str) -> None:
    """Where the user wants that joint cut; not of a damper, which reads the rate. Saving does not tell it twice."""
    model = four_bar("C", what).build(cut=["C"])
    told = [note for note in model.notes if "within half a turn" in note]
    assert len(told) == (what != "damper")
    if told:
        assert told[0].startswith(("torsion 'law': its joint 'C' closes a loop", "drive 'law': its joint 'C'"))
    if what != "drive":
        assert "half a turn" not in write_yaml(model)
