"""States converted to Pinocchio's, MuJoCo's and ROS' conventions: the other program sees the same motion."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import cardan as cd

pytestmark = pytest.mark.usefixtures("quick_code")
INERTIAL = (
    '<inertial><mass value="{m}"/><origin xyz="0.1 0 0.05"/>'
    '<inertia ixx="0.1" iyy="0.2" izz="0.15" ixy="0" ixz="0" iyz="0"/></inertial>'
)
JOINT = (
    '<joint name="{name}" type="{type}"><parent link="{parent}"/><child link="{child}"/>'
    '<origin xyz="0.3 0.1 0" rpy="0.2 0.4 0"/><axis xyz="{axis}"/>{limit}</joint>'
)
LIMIT = '<limit lower="-1" upper="1" effort="1" velocity="1"/>'


def robot(tmp_path: Path) -> Path:
    """Joints of every type of a URDF, whose names are not in the order of the file."""
    links = "".join(f'<link name="{name}">{INERTIAL.format(m=k + 1)}</link>' for k, name in enumerate("abcdef"))
    joints = "".join(
        JOINT.format(name=name, type=kind, parent=parent, child=child, axis=axis, limit=LIMIT if limited else "")
        for name, kind, parent, child, axis, limited in (
            ("zulu", "revolute", "a", "b", "0 1 0", True), ("mike", "continuous", "b", "c", "0 0 1", False),
            ("alfa", "prismatic", "a", "d", "1 0 0", True), ("weld", "fixed", "a", "e", "1 0 0", False),
            ("echo", "planar", "e", "f", "0 0 1", False),
        )
    )  # fmt: skip
    path = tmp_path / "robot.urdf"
    path.write_text(f'<robot name="robot">{links}{joints}</robot>')
    return path


def test_pinocchio_sees_the_same_motion(tmp_path: Path) -> None:
    pin = pytest.importorskip("pinocchio")
    path = robot(tmp_path)
    model = cd.load(path, root="free")
    theirs = pin.buildModelFromUrdf(str(path), pin.JointModelFreeFlyer())
    data = theirs.createData()
    q, v = model.random_state(np.random.default_rng(0), 5)
    p, w = cd.state_to("pinocchio", model, q, v)
    assert p.shape == (5, theirs.nq) and w.shape == (5, theirs.nv)
    named = cd.state_to("pinocchio", model, q, v, names=list(theirs.names))
    assert np.array_equal(named[0], p) and np.array_equal(named[1], w)
    back = cd.state_from("pinocchio", model, p, w)
    assert np.allclose(back[0], q, atol=1e-14) and np.allclose(back[1], v, atol=1e-14)
    poses, energy = np.asarray(cd.body_poses(model, q)), np.asarray(cd.kinetic_energy(model, q, v))
    for k in range(5):
        assert np.isclose(pin.computeKineticEnergy(theirs, data, p[k], w[k]), energy[k], rtol=1e-12)
        pin.framesForwardKinematics(theirs, data, p[k])
        for b, name in enumerate(model.body_names):
            frame = theirs.getFrameId(name, pin.FrameType.BODY)
            assert np.allclose(data.oMf[frame].homogeneous, poses[k, b], atol=1e-13), name


def test_mujoco_sees_the_same_motion(tmp_path: Path) -> None:
    mujoco = pytest.importorskip("mujoco")
    geom = '<geom type="box" size="0.1 0.2 0.05" density="500"/>'
    path = tmp_path / "m.xml"
    path.write_text(
        f'<mujoco><option gravity="0 0 0"><flag energy="enable" contact="disable"/></option><worldbody>'
        f'<body name="base"><freejoint name="root"/>{geom}'
        f'<body name="arm" pos="0.3 0 0"><joint name="ball" type="ball"/>{geom}'
        f'<body name="tip" pos="0.3 0 0"><joint name="hinge" axis="0 1 0"/>{geom}</body></body>'
        f'<body name="side" pos="0 0.4 0"><joint name="slide" type="slide" axis="1 1 0"/>{geom}</body></body>'
        "</worldbody></mujoco>"
    )
    model, theirs = cd.load(path), mujoco.MjModel.from_xml_path(str(path))
    data = mujoco.MjData(theirs)
    q, v = model.random_state(np.random.default_rng(1), 4)
    names = [theirs.joint(j).name for j in range(theirs.njnt)]
    p, w = cd.state_to("mujoco", model, q, v)
    assert all(
        np.array_equal(a, b) for a, b in zip((p, w), cd.state_to("mujoco", model, q, v, names=names), strict=True)
    )
    back = cd.state_from("mujoco", model, p, w)
    assert np.allclose(back[0], q, atol=1e-14) and np.allclose(back[1], v, atol=1e-14)
    poses, energy = np.asarray(cd.body_poses(model, q)), np.asarray(cd.kinetic_energy(model, q, v))
    for k in range(4):
        data.qpos[:], data.qvel[:] = p[k], w[k]
        mujoco.mj_forward(theirs, data)
        assert np.isclose(data.energy[1], energy[k], rtol=1e-10)
        for name in ("base", "arm", "tip", "side"):
            assert np.allclose(data.body(name).xpos, poses[k, model.body_index(name), :3, 3], atol=1e-12)


def test_ros_messages_are_read_in_their_order(tmp_path: Path) -> None:
    text = robot(tmp_path).read_text().replace('type="planar"', 'type="fixed"')
    (tmp_path / "plain.urdf").write_text(text)
    model = cd.load(tmp_path / "plain.urdf", root="free")
    pose, twist = [1.0, 2.0, 3.0, 0.0, 0.0, np.sin(0.2), np.cos(0.2)], [4.0, 5.0, 6.0, 7.0, 8.0, 9.0]
    names = ["alfa", "mike", "zulu"]
    q, v = cd.state_from("ros", model, [*pose, 0.1, 0.2, 0.3], [*twist, -1.0, -2.0, -3.0], names=names)
    assert [q[model.q_slice(n)][0] for n in names] == [0.1, 0.2, 0.3]
    assert [v[model.v_slice(n)][0] for n in names] == [-1.0, -2.0, -3.0]
    assert q[model.q_slice("root")].tolist() == [1, 2, 3, np.cos(0.2), 0, 0, np.sin(0.2)]
    assert v[model.v_slice("root")].tolist() == [7, 8, 9, 4, 5, 6]
    again = cd.state_to("ros", model, q, v, names=names)
    assert again[0].tolist() == [*pose, 0.1, 0.2, 0.3] and again[1].tolist() == [*twist, -1.0, -2.0, -3.0]
    for wrong, message in (
        (lambda: cd.state_to("drake", model, q), r"'drake' is not a program; known: 'pinocchio', 'mujoco', 'ros'"),
        (lambda: cd.state_to("ros", model, q, names=["alfa", "mike"]), r"names lacks 'zulu' of model"),
        (
            lambda: cd.state_to("ros", model, q, names=[*names, "zulo"]),
            r"'zulo' is not a joint .*; did you mean 'zulu'",
        ),
        (lambda: cd.state_from("ros", model, q[:5]), r"q of ros must have the shape \(..., 10\), got \(5,\)"),
        (
            lambda: cd.state_from("ros", model, np.zeros((2, 10)), names=names),
            r"the quaternion \(x, y, z, w\) of joint 'root', q\[3:7\], must have length 1, got 0",
        ),
        (
            lambda: cd.state_from("pinocchio", cd.load(robot(tmp_path)), np.zeros(8)),
            r"the cosine and sine of joint '\w+', q\[\d:\d\], must have length 1, got 0",
        ),
        (lambda: cd.state_to("ros", q, model), r"the model comes second"),  # type: ignore[arg-type]
        (lambda: cd.state_to("ros", cd.load(robot(tmp_path)), np.zeros(6)), r"ros has no planar joint as 'echo'"),
    ):
        with pytest.raises(cd.CardanError, match=message):
            wrong()
