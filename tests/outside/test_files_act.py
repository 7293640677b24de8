"""What files say of joints acts as in MuJoCo: damping, dry friction, limits, actuators; and exports keep it."""

from pathlib import Path

import numpy as np
import pytest

import cardan as cd
from cardan.errors import InputError

mujoco = pytest.importorskip("mujoco")
pytestmark = pytest.mark.usefixtures("quick_code")

URDF = """<robot name="r">
  <link name="base"/>
  <link name="a"><inertial><origin xyz="0.5 0 0"/><mass value="1"/>
    <inertia ixx="0.01" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <link name="b"><inertial><mass value="0.5"/>
    <inertia ixx="0.01" iyy="0.01" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="j" type="revolute"><parent link="base"/><child link="a"/><axis xyz="0 1 0"/>
    <limit lower="-0.5" upper="0.6" effort="30" velocity="3"/><dynamics damping="0.4" friction="0.7"/></joint>
  <joint name="k" type="prismatic"><parent link="a"/><child link="b"/><axis xyz="1 0 0"/>
    <limit lower="-1" upper="1" effort="30" velocity="3"/><dynamics damping="0.2"/></joint>
</robot>"""
MJCF = """<mujoco>
  <worldbody><body name="b">
    <joint name="h" type="hinge" axis="0 1 0" damping="0.2"/>
    <geom type="capsule" fromto="0 0 0 0.5 0 0" size="0.05" mass="1" contype="0" conaffinity="0"/>
    <body name="c" pos="0.5 0 0"><joint name="s" type="slide" axis="1 0 0"/><geom size="0.05" mass="0.5"/></body>
  </body></worldbody>
  <actuator>
    <motor name="m" joint="h" gear="3" ctrlrange="-2 2" forcerange="-1.5 1.5"/>
    <position name="p" joint="s" kp="40" kv="3" ctrlrange="-1 1"/>
    <velocity name="w" joint="h" kv="2"/>
    <general name="g" joint="s" gear="-2" gainprm="5" biastype="affine" biasprm="1 2 -3"/>
  </actuator>
</mujoco>"""


def accelerations(theirs, q, v, u=()):
    """MuJoCo's."""
    data = mujoco.MjData(theirs)
    data.qpos[:], data.qvel[:] = q, v
    data.ctrl[: len(u)] = u
    mujoco.mj_forward(theirs, data)
    return data.qacc.copy()


@pytest.fixture
def robot(tmp_path: Path) -> Path:
    (tmp_path / "r.urdf").write_text(URDF)
    return tmp_path / "r.urdf"


def test_damping_and_friction_of_urdf(robot: Path) -> None:
    """While joints slide, both programs have the same accelerations; at rest friction holds the arm."""
    theirs = mujoco.MjModel.from_xml_string(URDF)
    q, v = np.array([[0.1, 0.2], [-0.3, 0.1]]), np.array([[1.0, -0.5], [-0.8, 0.3]])
    wanted = np.array([accelerations(theirs, *state) for state in zip(q, v, strict=True)])
    for friction in ("stick", "smooth"):
        model = cd.load(robot, friction=friction)
        np.testing.assert_allclose(cd.forward_dynamics(model, q, v), wanted, rtol=1e-9)
        assert not any("friction" in loss or "damping" in loss for loss in model.losses)
        assert any(note.startswith("friction of 1 joint acts") for note in model.notes)
    theirs.dof_frictionloss[:] = 0
    model = cd.load(robot)
    wanted = np.array([accelerations(theirs, *state) for state in zip(q, v, strict=True)])
    np.testing.assert_allclose(cd.forward_dynamics(model, q, v), wanted, rtol=1e-9)
    assert model.notes[0].startswith("damping of 2 joints acts")
    assert any(loss.startswith("dry friction of 1 joint ('j')") for loss in model.losses)
    assert not cd.load(robot, damping=False).forces
    still = cd.load(robot, friction="stick", gravity=(0, 0, -0.5))  # 0.25 and 0.1 N m, below 0.7
    assert abs(cd.forward_dynamics(still, [0.1, 0.2], [0.0, 0.0])[0]) < 1e-12


def test_limits(robot: Path) -> None:
    """A falling arm comes to rest at its limit: exactly at a hard stop, and where a spring carries it."""
    hard = cd.simulate(cd.load(robot, limits="hard", friction="stick"), 3.0)
    assert hard.q[:, 0].max() <= 0.6 + 1e-9 and abs(hard.q[-1, 0] - 0.6) < 1e-9 and abs(hard.v[-1, 0]) < 1e-9
    soft = cd.load(robot, limits="spring")
    stop = next(force for force in soft.forces if force.name == "j stop")
    assert stop.numbers["stiffness"][0] == 3000.0 and stop.numbers["damping"][0] == 30.0
    run = cd.simulate(soft, 3.0)
    assert 0.6 < run.q[-1, 0] < 0.6 + 0.01 and abs(run.v[-1, 0]) < 1e-3
    assert any(note.startswith("limits of 2 joints act as hard stops") for note in hard.model.notes)
    assert any(loss.startswith("limits of 2 joints") for loss in cd.load(robot).losses)


def test_actuators(tmp_path: Path) -> None:
    """Forces of motors, servos and general actuators, within their ranges, for any command."""
    (tmp_path / "x.xml").write_text(MJCF)
    model, theirs = cd.load(tmp_path / "x.xml", actuators=True), mujoco.MjModel.from_xml_string(MJCF)
    rng = np.random.default_rng(0)
    q, v, u = rng.uniform(-1, 1, (12, 2)), rng.uniform(-1, 1, (12, 2)), rng.uniform(-3, 3, (12, 4))
    commands = {f"{name}.command": u[:, k] for k, name in enumerate("mpwg")}
    wanted = np.array([accelerations(theirs, *row) for row in zip(q, v, u, strict=True)])
    np.testing.assert_allclose(cd.forward_dynamics(model.at(commands), q, v), wanted, rtol=1e-10, atol=1e-11)
    assert not any("actuator" in loss for loss in model.losses)
    assert sum("its servo law" in loss for loss in cd.load(tmp_path / "x.xml").losses) == 3
    run = cd.simulate(model, 0.4, inputs={"m.command": ([0.0, 0.2], [1.0, -1.0])})
    other = cd.simulate(model, 0.4)
    assert np.abs(run.q[-1] - other.q[-1]).max() > 1e-2
    for name in ("a.yaml", "a.xml"):
        assert not [loss for loss in cd.save(model, tmp_path / name) if "actuator" in loss]
        again = cd.load(tmp_path / name, actuators=True)
        np.testing.assert_allclose(cd.forward_dynamics(again.at(commands), q, v), wanted, rtol=1e-10, atol=1e-11)
    assert {a.name: a.kind for a in again.actuators} == {"m": "motor", "p": "position", "w": "velocity", "g": "general"}


def test_exports_keep_what_acts(robot: Path, tmp_path: Path) -> None:
    """Damping, friction and stops are data of joints in URDF and MJCF, and act again when asked for."""
    asked = {"friction": "stick", "limits": "hard"}
    model = cd.load(robot, **asked)
    q, v = np.array([0.1, 0.2]), np.array([1.0, -0.5])
    wanted = cd.forward_dynamics(model, q, v)
    for name in ("b.urdf", "b.xml", "b.yaml"):
        losses = cd.save(model, tmp_path / name)
        assert not [loss for loss in losses if "friction" in loss or "stop" in loss or "damping" in loss]
        again = cd.load(tmp_path / name, **({} if name.endswith("yaml") else asked))
        np.testing.assert_allclose(cd.forward_dynamics(again, q, v), wanted, rtol=1e-12)
        assert again.joint("j").data.lower == -0.5 and len(again.laws) == len(model.laws)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"limits": "hrad"}, "limits must be one of 'hard', 'spring', 'ignore', got 'hrad'; did you mean 'hard'?"),
        ({"friction": 1}, "friction must be one of 'stick', 'smooth', 'ignore', got 1"),
        ({"damping": 0.3}, "damping must be True or False, got 0.3"),
    ],
)
def test_other_words(given, words, robot: Path) -> None:
    with pytest.raises(InputError) as caught:
        cd.load(robot, **given)
    assert words in str(caught.value)


BALL = """<mujoco><compiler angle="radian"/><option timestep="1e-4" integrator="RK4"/>
  <worldbody><body name="b"><joint name="j" type="ball" range="0 0.7"/>
    <inertial pos="0.3 0 0.05" mass="2" fullinertia="0.02 0.03 0.04 0 0 0"/></body></worldbody>
</mujoco>"""


def test_a_ball_joint_comes_to_rest_at_the_limit_of_its_angle(tmp_path: Path) -> None:
    """The fall to the limit is MuJoCo's; there MuJoCo gives way a little, and carries the same moment."""
    (tmp_path / "b.xml").write_text(BALL)
    model, theirs = cd.load(tmp_path / "b.xml", limits="hard"), mujoco.MjModel.from_xml_string(BALL)
    assert model.lawful_rows.names == ["j stop: angle"] and not any("limit" in loss for loss in model.losses)
    assert any("limits of 1 joint" in loss for loss in cd.load(tmp_path / "b.xml").losses)
    run = cd.simulate(model, 4.0, v0=[0.0, 0.0, 0.4], samples=5, rtol=1e-10)
    hit, data = run.events[0], mujoco.MjData(theirs)
    data.qvel[:] = 0.0, 0.0, 0.4
    while data.time < hit.time - 2e-4:
        mujoco.mj_step(theirs, data)
    same = cd.simulate(model, data.time, v0=[0.0, 0.0, 0.4], samples=2, rtol=1e-10)
    np.testing.assert_allclose(data.qvel, same.v[-1], atol=1e-6)
    np.testing.assert_allclose(data.qpos, same.q[-1], atol=1e-6)
    # then it slides along the limit for ever; with a damper it rests at the lowest point
    damped = BALL.replace('range="0 0.7"', 'range="0 0.7" damping="1"')
    (tmp_path / "b.xml").write_text(damped)
    model, theirs = cd.load(tmp_path / "b.xml", limits="hard"), mujoco.MjModel.from_xml_string(damped)
    run = cd.simulate(model, 12.0, v0=[0.0, 0.0, 0.4], samples=2)
    theirs.opt.timestep, data = 1e-3, mujoco.MjData(theirs)
    data.qvel[:] = 0.0, 0.0, 0.4
    mujoco.mj_step(theirs, data, 12000)
    assert np.abs(run.v[-1]).max() < 1e-6 and np.abs(data.qvel).max() < 1e-6
    assert run["j stop.gap"][-1] == pytest.approx(0.0, abs=1e-9) and data.ncon == 0 and data.nefc == 1
    np.testing.assert_allclose(data.qpos, run.q[-1], atol=0.02)
    assert data.efc_force[0] == pytest.approx(run["j stop.force"][-1], rel=0.02)
    for name in ("c.xml", "c.yaml"):
        assert not [loss for loss in cd.save(model, tmp_path / name) if "stop" in loss or "damping" in loss]
        again = cd.load(tmp_path / name, **({"limits": "hard"} if name == "c.xml" else {}))
        assert again.lawful_rows == model.lawful_rows and again.forces[0].numbers["viscous"][0] == 1.0
    soft = cd.load(tmp_path / "b.xml", limits="spring")
    rest = cd.simulate(soft, 12.0, v0=[0.0, 0.0, 0.4], samples=2)
    np.testing.assert_allclose(rest.q[-1], run.q[-1], atol=0.01)


def test_stops_along_the_coordinates_of_a_joint_become_those_of_a_hinge_and_a_slide(tmp_path: Path) -> None:
    m = cd.Mechanism("sleeve")
    m.body("b", mass=1.0, inertia=(1.0, 1.0, 1.0))
    m.joint("A", cd.Cylindrical(axis=(1, 0, 0)), m.ground, "b")
    m.stop("ends", "A", lower=(-1.0, -2.0), upper=(1.5, 2.5))
    m.friction("rub", "A[1]", viscous=0.3, coulomb=2.0, stick=True)
    model = m.build()
    assert not cd.save(model, tmp_path / "s.xml")
    again = cd.load(tmp_path / "s.xml", limits="hard", friction="stick")
    assert sorted(row.unit + row.law.value for row in again.lawful_rows) == sorted(
        row.unit + row.law.value for row in model.lawful_rows
    )
    q, v = np.array([0.2, 0.1]), np.array([0.3, -0.4])
    np.testing.assert_allclose(cd.forward_dynamics(again, q, v), cd.forward_dynamics(model, q, v), rtol=1e-12)
    assert [loss for loss in cd.save(model, tmp_path / "s.urdf") if "'ends'" in loss]


def test_damping_and_friction_of_planar_and_floating_joints_in_urdf(tmp_path: Path) -> None:
    """URDF gives them one damping and one friction, which act along every rate."""
    link = '<link name="{}"><inertial><mass value="2"/><inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/>'
    links = "".join(f"{link.format(name)}</inertial></link>" for name in "pf")
    joints = "".join(
        f'<joint name="{name}j" type="{type}"><parent link="base"/><child link="{name}"/><axis xyz="0 0 1"/>'
        '<dynamics damping="0.3" friction="0.2"/></joint>'
        for name, type in (("p", "planar"), ("f", "floating"))
    )
    (tmp_path / "r.urdf").write_text(f'<robot name="r"><link name="base"/>{links}{joints}</robot>')
    model = cd.load(tmp_path / "r.urdf", friction="stick", gravity=(0, 0, 0))
    assert not model.losses and len(model.lawful_rows) == 9
    v = {"pj": np.array([0.5, -0.4, 1.0]), "fj": np.array([0.0, 3.0, 4.0, 1.0, 0.0, 0.0])}
    moving = [model.joints[link.joint].name for link in model.tree.links if link.kind.nv]
    a = cd.forward_dynamics(model, model.start(), np.hstack([v[name] for name in moving]))
    planar, floating = (a[model.v_slice(name)] for name in ("pj", "fj"))
    np.testing.assert_allclose(planar, -(0.3 * v["pj"] + 0.2 * np.sign(v["pj"])) / [2.0, 2.0, 0.1], rtol=1e-9)
    one = np.array([0.0, 0.6, 0.8, 1.0, 0.0, 0.0])  # the directions of the spin and of the velocity
    turning = np.hstack([np.zeros(3), np.cross(v["fj"][:3], v["fj"][3:])])  # rates are in the body's axes
    np.testing.assert_allclose(floating, -(0.3 * v["fj"] + 0.2 * one) / ([0.1] * 3 + [2] * 3) - turning, atol=1e-9)
