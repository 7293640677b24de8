"""Limits, dry friction, ratios and rolling wheels in MuJoCo, whose constraints are soft: as they are made stiffer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cardan as cd

mujoco = pytest.importorskip("mujoco")
pytestmark = pytest.mark.usefixtures("quick_code")

ARM = """<mujoco>
  <compiler angle="radian"/>
  <option timestep="2e-4" integrator="implicitfast"/>
  <worldbody><body>
    <joint name="h" type="hinge" axis="0 1 0" range="-2 0.6" limited="{limited}" frictionloss="{friction}"
      solreflimit="1e-3 1" solreffriction="1e-3 1" solimpfriction="0.99 0.99 0.01"/>
    <geom type="capsule" fromto="0 0 0 0.5 0 0" size="0.03" mass="1.5" contype="0" conaffinity="0"/>
  </body></worldbody>
</mujoco>"""


def theirs(text: str, seconds: float, qvel: Any = None) -> Any:
    """MuJoCo's state after some time."""
    model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    if qvel is not None:
        data.qvel[:] = qvel
    mujoco.mj_step(model, data, round(seconds / model.opt.timestep))
    mujoco.mj_forward(model, data)
    return data


def test_an_arm_falls_on_its_limit(tmp_path: Path) -> None:
    """It comes to rest there without a bounce, and the limit holds its weight; MuJoCo's gives way a little."""
    text = ARM.format(limited="true", friction=0)
    (tmp_path / "arm.xml").write_text(text)
    data = theirs(text, 1.0)
    run = cd.simulate(cd.load(tmp_path / "arm.xml", limits="hard"), 1.0, samples=11)
    (name,) = {element.name for element in run.model.laws}
    assert [event.name for event in run.events] == [f"{name}: upper"]
    np.testing.assert_allclose(run.q[-1], 0.6, atol=1e-12)
    np.testing.assert_allclose(data.qpos, run.q[-1], atol=1e-3)
    np.testing.assert_allclose(run[f"{name}.force"][-1], [0.0, -data.qfrc_constraint[0]], rtol=1e-3)
    before = theirs(text, run.events[0].time - 2e-4)
    np.testing.assert_allclose(before.qvel, run.events[0].v, rtol=2e-3)


@pytest.mark.parametrize("friction", [1.0, 5.0])
def test_an_arm_with_dry_friction(friction: float, tmp_path: Path) -> None:
    """It swings down against 1 N m; 5 N m hold it, where MuJoCo's arm creeps."""
    text = ARM.format(limited="false", friction=friction)
    (tmp_path / "arm.xml").write_text(text)
    data = theirs(text, 0.4)
    run = cd.simulate(cd.load(tmp_path / "arm.xml", friction="stick"), 0.4, samples=11)
    if friction < 1.5 * 9.81 * 0.25:
        np.testing.assert_allclose(run.q[-1], data.qpos, rtol=2e-3)
        np.testing.assert_allclose(run.v[-1], data.qvel, rtol=2e-3)
        assert run.q[-1, 0] > 0.5
    else:
        assert abs(run.q[-1, 0]) < 1e-15 and 0 < data.qpos[0] < 5e-3
        (name,) = {element.name for element in run.model.laws}
        np.testing.assert_allclose(run[f"{name}.force"][-1], data.qfrc_constraint, rtol=2e-2)


def test_a_ratio_that_changes() -> None:
    """Two slides that a polynomial couples: `y = 0.3 x - 0.5 x^2 + 0.8 x^3`."""
    a = (0.0, 0.3, -0.5, 0.8)
    text = f"""<mujoco>
      <option timestep="2e-4" gravity="2 -9.81 0"/>
      <worldbody>
        <body><joint name="x" type="slide" axis="1 0 0" damping="0.5"/><geom size="0.05" mass="1"/></body>
        <body pos="0 0 1"><joint name="y" type="slide" axis="0 1 0"/><geom size="0.05" mass="0.4"/></body>
      </worldbody>
      <equality><joint joint1="y" joint2="x" polycoef="{" ".join(map(str, a))} 0" solref="1e-3 1"/></equality>
    </mujoco>"""
    data = theirs(text, 1.0)
    m = cd.Mechanism("ratio", gravity=(2, -9.81, 0))
    for joint, mass, axis in (("x", 1.0, (1, 0, 0)), ("y", 0.4, (0, 1, 0))):
        m.body(f"b{joint}", mass=mass)
        m.joint(joint, cd.Prismatic(axis=axis), m.ground, f"b{joint}")
    m.friction("air", "x", viscous=0.5)
    m.couple("ratio", ["y", "x"], lambda y, x: y - a[0] - a[1] * x - a[2] * x**2 - a[3] * x**3)
    run = cd.simulate(m.build(), 1.0, samples=2)
    np.testing.assert_allclose(run.q[-1], data.qpos, atol=2e-3)
    np.testing.assert_allclose(run.v[-1], data.qvel, atol=1e-2)


def test_a_cart_with_two_wheels_and_a_caster_ball() -> None:
    """Torques at the wheels drive it along a curve; friction is large, so that MuJoCo's tyres do not slip, nearly."""
    track, r, ahead = 0.4, 0.1, 0.35
    wheel = """<body name="{0}" pos="0 {1} 0"><joint name="{0}" type="hinge" axis="0 1 0"/>
      <geom type="ellipsoid" size="0.1 0.004 0.1" mass="0.5" friction="5 0 0" priority="1"/></body>"""
    text = f"""<mujoco>
      <option timestep="5e-4" cone="elliptic" impratio="500" integrator="implicitfast"/>
      <default><geom solref="4e-3 1" solimp="0.98 0.98 0.001" condim="3"/></default>
      <worldbody>
        <geom type="plane" size="20 20 0.1" friction="0 0 0"/>
        <body name="cart" pos="0 0 {r}"><freejoint/>
          <inertial pos="0.12 0 0" mass="6" diaginertia="0.1 0.15 0.2"/>
          <geom size="{r}" pos="{ahead} 0 0" friction="0 0 0"/>
          {wheel.format("left", track)}{wheel.format("right", -track)}
        </body>
      </worldbody>
      <actuator><motor joint="left"/><motor joint="right"/></actuator>
    </mujoco>"""
    model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    data.ctrl[:] = 0.6, 0.9
    mujoco.mj_step(model, data, 3000)
    m = cd.Mechanism("cart", gravity=(0, 0, -9.81))
    m.body("cart", mass=6.0, com=(0.12, 0, 0), inertia=(0.1, 0.15, 0.2))
    m.joint("float", cd.Planar(), m.ground, "cart", at=(0, 0, r))
    ellipsoid = 0.5 / 5 * np.array([r**2 + 0.004**2, 2 * r**2, r**2 + 0.004**2])
    for side, y in (("left", track), ("right", -track)):
        m.body(side, mass=0.5, inertia=ellipsoid)
        m.joint(side, cd.Revolute(axis=(0, 1, 0)), "cart", side, at=(0, y, 0))
        holds = ("longitudinal", "lateral") if side == "left" else "longitudinal"
        m.roll(f"{side} tyre", side, m.ground, radius=r, axis=(0, 1, 0), holds=holds)
    tau = {"left": 0.6, "right": 0.9}
    built = m.build()
    drive = np.zeros(built.nv)
    for side, torque in tau.items():
        drive[built.v_slice(side)] = torque
    run = cd.simulate(built, 1.5, tau=drive, samples=2)
    place, heading = run.position("cart")[-1, :2], run.q[-1, 2]
    a, b = data.qpos[3], data.qpos[6]
    assert np.linalg.norm(place) > 1.5 and heading > 0.5
    np.testing.assert_allclose(data.qpos[:2], place, atol=0.02 * float(np.linalg.norm(place)))
    assert abs(2 * np.arctan2(b, a) - heading) < 0.02 * heading
