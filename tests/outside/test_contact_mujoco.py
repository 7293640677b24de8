"""A ball that slips until it rolls, in MuJoCo, whose contacts are soft: steps and time constants are made small."""

import numpy as np
import pytest

import cardan as cd

mujoco = pytest.importorskip("mujoco")
pytestmark = pytest.mark.usefixtures("quick_code")

BALL = """<mujoco>
  <option timestep="1e-4" cone="elliptic" impratio="100"/>
  <worldbody>
    <geom type="plane" size="5 5 0.1" friction="0.2 0 0" solref="1e-3 1"/>
    <body pos="0 0 0.1"><freejoint/><geom size="0.1" mass="2" friction="0.2 0 0" solref="1e-3 1"/></body>
  </worldbody>
</mujoco>"""


def test_a_ball_with_side_spin_slips_and_rolls() -> None:
    """The path on the plane, which is curved while it slips, and the velocity at the end."""
    theirs = mujoco.MjModel.from_xml_string(BALL)
    data = mujoco.MjData(theirs)
    data.qvel[:] = 2.0, 0.5, 0.0, 3.0, -4.0, 1.0  # of the centre, then the spin
    path = []
    for step in range(6000):
        mujoco.mj_step(theirs, data)
        if step % 1500 == 1499:
            path.append(data.qpos[:2].copy())
    m = cd.Mechanism("ball")
    m.body("ball", mass=2.0, inertia=cd.inertia.sphere(2.0, 0.1))
    m.joint("float", cd.Free(), m.ground, "ball", start=(0, 0, 0.1, 1, 0, 0, 0))
    m.roll("lane", "ball", m.ground, radius=0.1, friction=0.2)
    run = cd.simulate(m.build(), 0.6, v0=[3.0, -4.0, 1.0, 2.0, 0.5, 0.0], samples=5)
    np.testing.assert_allclose(run.position("ball")[1:, :2], path, atol=3e-4)
    np.testing.assert_allclose(run.velocity("ball")[-1, :2], data.qvel[:2], atol=2e-3)
    slip = run.velocity("ball")[-1] + np.cross(run.angular_velocity("ball")[-1], [0, 0, -0.1])
    assert np.abs(slip).max() < 1e-9 and run["lane.mode"][0, 1] == 0  # it rolls at the end, and slipped at first
