"""Actuators with activations, dampers and cylinders of MJCF files, driven as MuJoCo drives them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import cardan as cd

mujoco = pytest.importorskip("mujoco")
pytestmark = pytest.mark.usefixtures("quick_code")

TIMES, COMMANDS = (0.0, 0.3, 0.6), (1.5, -2.0, 0.4)
HINGE = '<body><joint name="{0}" axis="0 1 0" damping="0.05"/><geom size="0.1" pos="0.2 0 0" mass="2"/></body>'


def file_with(actuators: dict[str, str]) -> str:
    """A file of hinges side by side, each with an actuator; both have the name given."""
    bodies = "".join(HINGE.format(name) for name in actuators)
    driven = "".join(text.replace('name="a" joint="j"', f'name="{n}" joint="{n}"') for n, text in actuators.items())
    return (
        '<mujoco><option integrator="RK4"><flag contact="disable"/></option>'
        f"<worldbody>{bodies}</worldbody><actuator>{driven}</actuator></mujoco>"
    )


ACTUATORS = {
    "integrator": '<general name="a" joint="j" dyntype="integrator" gainprm="5" biastype="affine" biasprm="0 -5 -1"/>',
    "limited integrator": (
        '<general name="a" joint="j" dyntype="integrator" gainprm="9" actlimited="true" actrange="-0.2 0.25"/>'
    ),
    "filter": '<general name="a" joint="j" dyntype="filter" dynprm="0.15" gainprm="3" gear="2"/>',
    "exact filter": (
        '<general name="a" joint="j" dyntype="filterexact" dynprm="0.15" gainprm="3" ctrlrange="-1 1" '
        'ctrllimited="true" forcerange="-2 2.5" forcelimited="true"/>'
    ),
    "position": '<position name="a" joint="j" kp="20" kv="0.5" timeconst="0.1"/>',
    "intvelocity": '<intvelocity name="a" joint="j" kp="20" kv="0.5" actrange="-0.3 0.3"/>',
    "damper": '<damper name="a" joint="j" kv="0.4" ctrlrange="0 2"/>',
    "cylinder": '<cylinder name="a" joint="j" timeconst="0.1" area="3" bias="0.5 -1 -0.2"/>',
    "affine gain": (
        '<general name="a" joint="j" gaintype="affine" gainprm="2 1 -0.5" biastype="affine" biasprm="0.3 -1 -0.1"/>'
    ),
}


def of_mujoco(text: str, step: float) -> tuple[np.ndarray, np.ndarray]:
    """Angles and activations every 0.1 s under commands that are held, the same for all."""
    model = mujoco.MjModel.from_xml_string(text)
    model.opt.timestep = step
    data, q, act, each = mujoco.MjData(model), [], [], round(0.1 / step)
    for k in range(9 * each + 1):
        if k % each == 0:
            q.append(data.qpos.copy())
            act.append(data.act.copy())
        data.ctrl[:] = COMMANDS[int(np.searchsorted(TIMES, data.time + 1e-9, side="right")) - 1]
        mujoco.mj_step(model, data)
    return np.array(q), np.array(act)


def test_driven_motions_are_mujocos_and_those_of_files_that_are_saved(tmp_path: Path) -> None:
    """Every actuator drives a hinge of its own; MuJoCo's activations are of first order in its step."""
    text = file_with(ACTUATORS)
    (tmp_path / "m.xml").write_text(text)
    model = cd.load(tmp_path / "m.xml", actuators=True)
    assert not any("actuator" in loss for loss in model.losses)
    inputs = {f"{name}.command": (TIMES, COMMANDS) for name in ACTUATORS}
    given = {"samples": 10, "inputs": inputs, "rtol": 1e-8, "atol": 1e-10}
    run = cd.simulate(model, 0.9, **given)
    (q, act), (fine_q, fine_act) = (of_mujoco(text, step) for step in (1e-3, 5e-4))
    q, act = 2 * fine_q - q, 2 * fine_act - act
    k = 0
    for j, name in enumerate(ACTUATORS):
        assert np.abs(run[f"{name}.coordinate"] - q[:, j]).max() < 1e-3 and np.ptp(q[:, j]) > 0.2, name
        if model.actuators[j].dynamics:
            assert np.abs(run[f"{name}.activation"] - act[:, k]).max() < 1e-3, name
            k += 1
    assert k == act.shape[1] == 7
    cd.save(model, tmp_path / "again.xml")
    cd.save(model, tmp_path / "again.yaml")
    for other in (cd.load(tmp_path / "again.xml", actuators=True), cd.load(tmp_path / "again.yaml")):
        assert [a.dynamics for a in other.actuators] == [a.dynamics for a in model.actuators]
        assert np.abs(cd.simulate(other, 0.9, **given).q - run.q).max() < 1e-6
    idle = [loss for loss in cd.load(tmp_path / "m.xml").losses if "data only" in loss]
    assert len(idle) == len(ACTUATORS)


LOST = {
    "muscle": ('<muscle name="a" joint="j" lengthrange="-1 1"/>', "law"),
    "damping ratio": ('<position name="a" joint="j" kp="2" dampratio="1"/>', "has 'dampratio'"),
    "muscle dynamics": ('<general name="a" joint="j" dyntype="muscle"/>', "the dynamics 'muscle'"),
    "no time constant": ('<general name="a" joint="j" dyntype="filter" dynprm="0"/>', "without a time constant"),
}


@pytest.mark.parametrize("name", LOST)
def test_what_cannot_be_expressed_is_a_loss_by_name(tmp_path: Path, name: str) -> None:
    actuator, why = LOST[name]
    (tmp_path / "m.xml").write_text(file_with({"a": actuator}))
    losses = cd.load(tmp_path / "m.xml", actuators=True).losses
    assert any("actuator 'a'" in loss and why in loss for loss in losses), losses


def test_numbers_of_an_actuator_that_contradict_each_other() -> None:
    m = cd.mechanisms.cart_pole()
    for more, message in (
        ({"dynamics": "filtre"}, r"actuator 'a': dynamics must be one of .*; did you mean 'filter'"),
        ({"dynamics": "filter", "time": 0.0}, r"actuator 'a': time must be above 0 s"),
        ({"activation": (0.0, 1.0)}, r"actuator 'a': activation must be .* of an actuator with dynamics"),
        ({"dynamics": "integrator", "activation": (1.0, 0.0)}, r"actuator 'a': activation must be the least and"),
    ):
        with pytest.raises(cd.ModelError, match=message):
            m.actuator("a", "rail", **more)
