"""Friction in ball and free joints: one moment, and one force, against the motion."""

from pathlib import Path

import numpy as np
import pytest

import cardan as cd

pytestmark = pytest.mark.usefixtures("quick_code")
G = 9.81


def ball(inertia=(0.1, 0.1, 0.1), com=(0, 0, 0), gravity=(0, 0, 0), mass=2.0, **friction) -> cd.Mechanism:
    """A body on a ball joint with friction."""
    m = cd.Mechanism("ball", gravity=gravity)
    m.body("b", mass=mass, com=com, inertia=inertia)
    m.joint("B", cd.Spherical(), m.ground, "b")
    m.friction("f", "B", **friction)
    return m


@pytest.mark.parametrize("pressed", [False, True])
def test_a_top_stops_in_the_time_of_its_spin_over_the_moment(pressed) -> None:
    """A hanging top that spins about the vertical: I w / M; by its reaction, M = mu r m g."""
    friction, M = {"coulomb": 0.05}, 0.05
    if pressed:
        friction, M = {"coefficient": 0.2, "radius": 0.01}, 0.2 * 0.01 * 2.0 * G
    m = ball((0.1, 0.1, 0.04), (0, 0, -0.2), (0, 0, -G), stick=True, **friction)
    run = cd.simulate(m.build(), 1.5 * 0.04 * 3.0 / M, v0=[0, 0, 3.0], samples=7)
    assert [e.time for e in run.events] == pytest.approx([0.04 * 3.0 / M], rel=1e-7)
    np.testing.assert_allclose(run.v[:, 2], np.maximum(3.0 - M / 0.04 * run.time, 0.0), atol=1e-8)
    np.testing.assert_allclose(np.linalg.norm(run["f.force"][:4], axis=-1), M, rtol=1e-8)
    assert run["f.mode"][-1].all() and not run["f.mode"][0].any()


def test_the_moment_is_against_the_motion_whatever_its_direction() -> None:
    """A sphere keeps its axis; events and `moreau` agree; a smoothed moment is the same vector while it turns."""
    w0, w = np.array([1.0, 2.0, -2.0]), np.array([1.0, 2.0, -2.0]) / 3
    model = ball(coulomb=0.05, static=0.08, stick=True).build()
    run = cd.simulate(model, 7.0, v0=w0, samples=8)
    assert run.events[0].time == pytest.approx(0.1 * 3.0 / 0.05, rel=1e-7)
    np.testing.assert_allclose(run["f.force"][:6], np.tile(-0.05 * w, (6, 1)), atol=1e-10)
    angle = 3.0 * run.time[:6] - 0.25 * run.time[:6] ** 2
    quaternions = np.column_stack([np.cos(angle / 2), np.sin(angle / 2)[:, None] * w])
    np.testing.assert_allclose(run.q[:6], quaternions, atol=1e-8)
    stepped = cd.simulate(model, 7.0, v0=w0, samples=8, method="moreau", step=1e-2)
    np.testing.assert_allclose(stepped.v, run.v, atol=1e-6)
    smooth = ball(coulomb=0.05).build()
    np.testing.assert_allclose(cd.forward_dynamics(smooth, [1, 0, 0, 0], w0), -0.5 * w, rtol=1e-12)
    faster = cd.simulate(model, 0.5, v0=np.array([w0, 2 * w0]), samples=2)
    alone = cd.simulate(model, 0.5, v0=2 * w0, samples=2)
    np.testing.assert_array_equal(faster.q[1], alone.q)
    assert cd.check(model).passed


def test_events_and_steps_agree_on_a_body_that_tumbles() -> None:
    model = ball((0.1, 0.15, 0.2), (0.1, 0.05, -0.3), (0, 0, -G), coulomb=1.5, viscous=0.1, stick=True).build()
    start = np.array([np.cos(0.6), np.sin(0.6), 0, 0])
    run = cd.simulate(model, 2.0, start, [1.0, 2.0, 4.0], samples=9)
    assert run.events and run.statistics["energy_error"] < 1e-5 * run.energy[0]
    assert np.abs(run.v[-1]).max() < 1e-9 and np.linalg.norm(run["f.force"][-1]) < 1.5  # it hangs askew, and stays
    errors = [
        np.abs(cd.simulate(model, 2.0, start, [1.0, 2.0, 4.0], method="moreau", step=h, samples=9).q - run.q).max()
        for h in (8e-3, 2e-3)
    ]
    assert errors[1] < 2e-3 and errors[1] < errors[0] / 2


def test_a_load_breaks_the_ball_away_where_it_is_above_static_friction() -> None:
    m = ball(coulomb=0.3, static=0.5, stick=True)
    m.drive("load", "B", lambda t, q, v: [0.0, 0.6 * t, 0.8 * t])
    run = cd.simulate(m.build(), 1.0, samples=5)
    assert run.events[0].time == pytest.approx(0.5, rel=1e-9)  # |(0.6, 0.8)| t = 0.5
    np.testing.assert_allclose(run["f.force"][1], [0.0, -0.15, -0.2], atol=1e-12)
    speed = ((1.0**2 - 0.5**2) / 2 - 0.3 * 0.5) / 0.1
    np.testing.assert_allclose(run.v[-1], [0.0, 0.6 * speed, 0.8 * speed], rtol=1e-7, atol=1e-9)


def test_a_free_body_loses_its_spin_and_its_speed_each_by_itself() -> None:
    m = cd.Mechanism("puck", gravity=(0, 0, 0))
    m.body("b", mass=2.0, inertia=(0.1, 0.1, 0.1))
    m.joint("F", cd.Free(), m.ground, "b")
    m.friction("f", "F", coulomb=(0.05, 0.05, 0.05, 1.5, 1.5, 1.5), stick=True)
    model = m.build()
    run = cd.simulate(model, 3.0, v0=[0, 0.6, 0.8, 3.0, 0.0, 4.0], samples=4, method="moreau", step=2e-3)
    np.testing.assert_allclose(np.linalg.norm(run.v[:, :3], axis=1), np.maximum(1 - 0.5 * run.time, 0), atol=1e-2)
    np.testing.assert_allclose(np.linalg.norm(run.v[:, 3:], axis=1), 5 - 0.75 * run.time, atol=1e-2)
    located = cd.simulate(model, 3.0, v0=[0, 0.6, 0.8, 3.0, 0.0, 4.0], samples=4)
    assert min(abs(e.time - 2.0) for e in located.events) < 1e-6  # others take the direction of sliding anew
    np.testing.assert_allclose(located.v[:, 3:], run.v[:, 3:], atol=1e-2)


def test_a_free_body_with_other_numbers_along_its_axes_is_refused() -> None:
    with pytest.raises(cd.ModelError, match=r"coulomb must be one number for rates 0 to 2 of joint 'B' \(spherical\)"):
        ball(coulomb=(1.0, 1.0, 2.0), stick=True)
    with pytest.raises(cd.ModelError, match="give the radius"):
        ball(coefficient=0.1, stick=True)


def test_dry_friction_of_a_ball_joint_in_mjcf(tmp_path: Path) -> None:
    """About an axis it is MuJoCo's, which has it along each axis by itself."""
    mujoco = pytest.importorskip("mujoco")
    text = """<mujoco><option gravity="0 0 0"/><worldbody><body><joint name="j" type="ball" frictionloss="0.3"/>
      <inertial pos="0 0 0" mass="1" fullinertia="0.1 0.2 0.3 0 0 0"/></body></worldbody></mujoco>"""
    (tmp_path / "b.xml").write_text(text)
    theirs, models = mujoco.MjModel.from_xml_string(text), {}
    for friction in ("stick", "smooth"):
        model = models[friction] = cd.load(tmp_path / "b.xml", friction=friction)
        assert not model.losses and any("one vector" in note for note in model.notes)
        for axis in np.eye(3):
            data = mujoco.MjData(theirs)
            data.qvel[:] = 4.0 * axis
            mujoco.mj_forward(theirs, data)
            np.testing.assert_allclose(cd.forward_dynamics(model, [1, 0, 0, 0], 4.0 * axis), data.qacc, rtol=1e-9)
    for name in ("c.xml", "c.yaml"):
        assert not cd.save(models["stick"], tmp_path / name)
        again = cd.load(tmp_path / name, **({"friction": "stick"} if name == "c.xml" else {}))
        assert again.lawful_rows == models["stick"].lawful_rows


def test_smooth_friction_of_a_ball_is_linear_near_rest() -> None:
    """A hanging body: each rate is damped by `viscous + coulomb / smoothing`, whatever the direction."""
    m = ball((0.1, 0.15, 0.2), (0, 0, -0.3), (0, 0, -G), viscous=0.1, coulomb=0.05, smoothing=1e-2)
    I = np.array([0.1 + 2.0 * 0.09, 0.15 + 2.0 * 0.09, 0.2])
    np.testing.assert_allclose(np.diag(cd.linearise(m.build()).A[3:, 3:]), -(0.1 + 5.0) / I, rtol=1e-9)


def test_a_lock_stops_a_ball_and_lets_it_go() -> None:
    """It holds the weight's moment; events and `moreau` agree."""
    m = cd.Mechanism("arm", gravity=(0, 0, -G))
    m.body("b", mass=2.0, com=(0, 0, -0.3), inertia=(0.1, 0.15, 0.2))
    m.joint("B", cd.Spherical(), m.ground, "b")
    m.lock("brake", "B")
    model = m.build().free("brake.closed")
    switch = [
        cd.Event(str(t), lambda s, t=t: s.t - t, then=lambda s, c=c: cd.Change(parameters={"brake.closed": c}))
        for t, c in ((0.3, 1.0), (0.6, 0.0))
    ]
    run = cd.simulate(model, 0.8, v0=[1.0, 2.0, 3.0], samples=9, events=switch)
    held = slice(4, 6)
    assert np.abs(run.v[held]).max() < 1e-12 and np.abs(run.v[-1]).max() > 0.1
    np.testing.assert_allclose(run.q[3], run.q[5], atol=1e-9)
    R = cd.Pose(quaternion=run.q[4]).rotation
    weight = np.cross([0, 0, -0.3], R.T @ [0, 0, -2.0 * G])
    np.testing.assert_allclose(run["brake.force"][4], -weight, atol=1e-9)
    stepped = cd.simulate(model, 0.8, v0=[1.0, 2.0, 3.0], samples=9, events=switch, method="moreau", step=2e-3)
    assert np.abs(stepped.q - run.q).max() < 5e-3
