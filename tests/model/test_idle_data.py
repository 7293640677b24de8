"""Data of joints that nothing in the model makes act is listed in `model.losses`, from every source, and only then."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import cardan as cd

pytestmark = pytest.mark.usefixtures("quick_code")

HEADS = {
    "limits of ": ("lower", "upper"),
    "limits of speed of ": ("velocity",),
    "limits of effort of ": ("effort",),
    "damping of ": ("damping",),
    "dry friction of ": ("friction",),
}


def chain(data: list[cd.JointData]) -> cd.Mechanism:
    m = cd.Mechanism("chain")
    before = m.ground
    for k, each in enumerate(data):
        body = m.body(f"b{k}", mass=1.0, com=(0.5, 0, 0), inertia=(1, 1, 1))
        m.joint(f"j{k}", cd.Revolute(axis=(0, 1, 0)), before, body, at=(1, 0, 0), data=each)
        before = body
    return m


def listed(model: cd.Model, head: str) -> set[str]:
    """Joints that the sentence with this beginning names."""
    found = [loss for loss in model.losses if loss.startswith(head) and loss[len(head)].isdigit()]
    assert len(found) <= 1
    return {joint.name for joint in model.joints for loss in found if repr(joint.name) in loss}


def test_random_data_is_listed_unless_an_element_makes_it_act(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    for _ in range(8):
        given = [{name: 1.0 for names in HEADS.values() for name in names if rng.random() < 0.4} for _ in range(4)]
        m = chain([cd.JointData(**own) for own in given])
        acting: dict[str, set[str]] = {"damping": set(), "friction": set()}
        for k in range(4):
            draw = rng.random(3) < 0.3
            if draw[0]:
                m.friction(f"f{k}", f"j{k}", viscous=float(draw[1]), coulomb=float(draw[2]))
                acting["damping"] |= {f"j{k}"} if draw[1] else set()
                acting["friction"] |= {f"j{k}"} if draw[2] else set()
            elif draw[1]:
                m.torsion(f"t{k}", f"j{k}", stiffness=1.0, damping=float(draw[2]))
                acting["damping"] |= {f"j{k}"} if draw[2] else set()
        model = m.build()
        for head, names in HEADS.items():
            idle = {f"j{k}" for k, own in enumerate(given) if any(name in own for name in names)}
            assert listed(model, head) == idle - acting.get(names[0], set()), (head, model.losses)
        cd.save(model, tmp_path / "m.yaml", overwrite=True)
        assert cd.load(tmp_path / "m.yaml").losses == model.losses


def test_damping_and_limits_of_urdf_are_losses(tmp_path: Path) -> None:
    model = cd.load(Path(__file__).parents[1] / "data" / "arm.urdf", damping=False)
    heads = [loss.partition(" of ")[0] for loss in model.losses]
    assert heads == ["limits", "limits", "limits", "damping", "dry friction"]
    assert any(loss.startswith("damping of ") and "'lift'" in loss for loss in model.losses)
    assert all(f"lost: {loss}" in model.report() for loss in model.losses)
    with pytest.raises(cd.FileError, match="strict, and this would be lost: limits of "):
        cd.load(Path(__file__).parents[1] / "data" / "arm.urdf", strict=True)


def test_mimicry_is_a_loss_until_it_is_coupled() -> None:
    path = Path(__file__).parents[1] / "data" / "arm.urdf"
    assert not any("mimic" in loss for loss in cd.load(path).losses)
    assert "mimicry of 1 joint ('grip_right'): data only; a coupling makes it act" in cd.load(path, mimic=False).losses


def test_infinite_limits_and_zeros_are_no_losses() -> None:
    assert chain([cd.JointData(upper=np.inf, effort=np.inf, damping=0.0)]).build().losses == ()
    assert len(chain([cd.JointData(lower=0.0)]).build().losses) == 1
