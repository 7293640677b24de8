"""Stops of the angle, the swing and the twist of ball joints, against closed forms."""

import casadi as ca
import numpy as np
import pytest

import cardan as cd

pytestmark = pytest.mark.usefixtures("quick_code")
G = 9.81
LENGTH, MASS, ACROSS, ALONG = 0.5, 1.5, 0.02, 0.01  # a pendulum: to its centre of mass, m; kg; kg m^2


def pendulum(gravity=(0, 0, -G), com=(0, 0, -LENGTH), **limits) -> cd.Model:
    """A body that hangs from a ball joint with a stop."""
    m = cd.Mechanism("pendulum", gravity=gravity)
    m.body("b", mass=MASS, com=com, inertia=(ACROSS, ACROSS, ALONG))
    m.joint("B", cd.Spherical(), m.ground, "b")
    m.stop("s", "B", **limits)
    return m.build()


def about(axis, angle) -> np.ndarray:
    """Quaternion of a turn."""
    axis = np.asarray(axis) / np.linalg.norm(axis)
    return np.array([np.cos(angle / 2), *(np.sin(angle / 2) * axis)])


def axes(model: cd.Model, q: np.ndarray) -> np.ndarray:
    """Axes of the first body in ground components."""
    return np.asarray(cd.body_poses(model, q))[..., 0, :3, :3]


@pytest.fixture(scope="module")
def cone() -> cd.Model:
    return pendulum(swing=0.8, restitution=0.6)


def test_a_spherical_pendulum_hits_a_cone(cone) -> None:
    """Its angular momentum about the vertical and its spin are kept; the rate of its swing is reversed by e."""
    q0, w0 = about((1, 0, 0), 0.5), np.array([[3.0, 1.2, 0.4], [3.2, -0.3, 0.0]])
    run = cd.simulate(cone, 1.5, q0, w0, samples=16, rtol=1e-10, atol=1e-12)
    I = np.diag([ACROSS + MASS * LENGTH**2] * 2 + [ALONG])
    for system in ((0,), (1,)):
        events = [e for e in run.events if e.system == system]
        assert len(events) > 1
        for e in events:
            R = axes(cone, e.q)
            assert np.arccos(R[2, 2]) == pytest.approx(0.8, abs=1e-12)
            spins = [(R @ w, w) for w in (e.v, e.v_after)]
            fall = np.cross([0, 0, 1], R[:, 2]) / np.sin(0.8)  # the swing grows about this axis
            before, after = (fall @ ground for ground, _ in spins)
            assert before > 0.1 and after == pytest.approx(-0.6 * before, rel=1e-12)
            momenta = [(R @ I @ w)[2] for _, w in spins]
            assert momenta[1] == pytest.approx(momenta[0], rel=1e-12) and e.v[2] == pytest.approx(e.v_after[2])
            assert e.impulse[0] == pytest.approx(1.6 * before * I[0, 0], rel=1e-10)  # N m s
    vertical = np.einsum("...ij,jk,...k->...i", axes(cone, run.q), I, run.v)[..., 2]
    np.testing.assert_allclose(vertical, vertical[:, :1] + 0 * vertical, rtol=1e-8)
    swing = np.arccos(axes(cone, run.q)[..., 2, 2])
    np.testing.assert_allclose(run["s.gap"], 0.8 - swing, atol=1e-9)
    alone = cd.simulate(cone, 1.5, q0, w0[1], samples=16, rtol=1e-10, atol=1e-12)
    np.testing.assert_array_equal(alone.q, run.q[1])


def test_steps_of_moreau_come_to_the_same_and_the_limit_may_be_free(cone) -> None:
    q0, w0 = about((1, 0, 0), 0.5), [3.0, 1.2, 0.4]
    exact = cd.simulate(cone.free("s.swing").at({"s.swing": 0.7}), 0.5, q0, w0, samples=6)
    assert exact["s.gap"].min() > -1e-9 and exact.events[0].name == "s: swing"
    other = pendulum(swing=0.7, restitution=0.6)
    np.testing.assert_allclose(exact.q, cd.simulate(other, 0.5, q0, w0, samples=6).q, atol=1e-9)
    for h in (2e-3, 5e-4):
        stepped = cd.simulate(other, 0.5, q0, w0, samples=6, method="moreau", step=h)
        assert np.abs(stepped.q - exact.q).max() < 5 * h


@pytest.mark.parametrize(("limits", "axis"), [({"angle": 0.9}, (1, 2, -2)), ({"twist": (-0.4, 0.9)}, (0, 0, 1))])
def test_a_ball_turns_to_and_fro(limits, axis) -> None:
    """Without gravity a body turns evenly about a main axis; at the limit its rate is reversed. It starts at zero."""
    m = cd.Mechanism("ball", gravity=(0, 0, 0))
    m.body("b", mass=1.0, inertia=(0.1, 0.1, 0.1))
    m.joint("B", cd.Spherical(), m.ground, "b")
    m.stop("s", "B", restitution=1.0, **limits)
    n = np.asarray(axis) / np.linalg.norm(axis)
    run = cd.simulate(m.build(), 2.0, v0=1.5 * n, samples=41)
    low = -0.4 if "twist" in limits else -0.9
    period = 2 * (0.9 - low)
    way = (1.5 * run.time - low) % period  # a triangle between the limits
    angle = low + np.where(way < period / 2, way, period - way)
    np.testing.assert_allclose(run.q, [about(n, x) for x in angle], atol=1e-9)
    ends = [0.9 - angle, angle - low] if "twist" in limits else [0.9 - np.abs(angle)]
    np.testing.assert_allclose(run["s.gap"].reshape(41, -1).min(axis=-1), np.min(ends, axis=0), atol=1e-9)


def test_a_load_rests_on_a_stop() -> None:
    """Horizontal, at its swing limit, the pendulum leans on the stop with m g l; a compliant stop gives way."""
    limit = np.pi / 2 - 0.3
    model = pendulum(gravity=(0, 0, G), swing=limit, twist=1.0)  # it falls up
    at, load = about((1, 0, 0), limit), MASS * G * LENGTH * np.sin(limit)
    run = cd.simulate(model, 0.3, at, samples=4)
    np.testing.assert_allclose(run["s.force"], [[load, 0, 0]] * 4, rtol=1e-9, atol=1e-9)
    assert np.abs(run.v).max() < 1e-12
    soft = pendulum(gravity=(0, 0, G), swing=limit, angle=3.0, stiffness=200.0)
    run = cd.simulate(soft, 1.0, about((1, 0, 0), 1.0), [0.3, 0.5, 2.0], samples=41, rtol=1e-10, atol=1e-12)
    assert np.ptp(run.energy) < 1e-7 and run["s.energy"].max() > 0.1
    damped = pendulum(gravity=(0, 0, G), swing=limit, stiffness=200.0, damping=20.0)
    run = cd.simulate(damped, 3.0, about((0, 1, 0), limit), samples=2)
    swing = np.arccos(axes(damped, run.q[-1])[2, 2])
    assert 200.0 * (swing - limit) == pytest.approx(MASS * G * LENGTH * np.sin(swing), rel=1e-6)


def rod_between_cranks(cut: str) -> cd.Model:
    """A spatial four-bar: a rod with ball joints between two cranks, the first of which is limited to a cone."""
    m = cd.Mechanism("cranks")
    m.body("a", mass=1.0, com=(0, 0, -0.25), inertia=(0.02, 0.02, 0.01))
    m.body("rod", mass=1.0, com=(0.5, 0, 0), inertia=(0.01, 0.1, 0.1))
    m.body("c", mass=1.0, com=(0, 0, -0.25), inertia=(0.02, 0.02, 0.01))
    m.joint("A", cd.Revolute(axis=(0, 1, 0)), m.ground, "a", start=0.6)
    m.joint("B", cd.Spherical(), "a", "rod", at=cd.Pose((0, 0, -0.5), rpy=(0.1, 0.2, 0)))
    m.joint("C", cd.Spherical(), "c", "rod", at=(0, 0, -0.5), child_at=(1, 0, 0))
    m.joint("D", cd.Revolute(axis=(1, 0, 0)), m.ground, "c", at=(0.7, 0.1, 0), start=0.4)
    m.stop("s", "B", swing=0.9, axis=(1, 0, 0), restitution=0.5)
    m.cut = (cut,)
    return m.build()


def test_a_ball_joint_that_closes_a_loop_has_the_same_stop() -> None:
    one, two = rod_between_cranks("B"), rod_between_cranks("C")
    q = cd.assemble(one)[0]
    given = {"samples": 9, "rtol": 1e-10, "atol": 1e-12}
    first = cd.simulate(one, 0.6, q, cd.assemble(one, q, {"A": 3.0})[1], **given)
    at = {name: first[f"{name}.coordinate"][0] for name in "ABD"}
    rates = {name: first[f"{name}.rate"][0] for name in "ABD"}
    start = cd.assemble(two, at)[0]
    second = cd.simulate(two, 0.6, start, cd.assemble(two, start, rates)[1], **given)
    assert len(first.events) > 1
    assert [e.time for e in first.events] == pytest.approx([e.time for e in second.events], abs=1e-7)
    for name in ("A.coordinate", "D.coordinate", "s.gap"):
        np.testing.assert_allclose(first[name], second[name], atol=1e-7)


def test_a_free_body_bounces_on_limits_of_its_position() -> None:
    """A ball between a floor and a wall, its frame turned; hard, and compliant."""
    m = cd.Mechanism("box", gravity=(0, 0, -G))
    m.body("b", mass=1.0, inertia=(0.1, 0.2, 0.3))
    m.joint(
        "F", cd.Free(), m.ground, "b", at=cd.Pose((1.0, 0, 0), rpy=(0, 0, np.pi / 2)), start=(0, 0, 1.0, 1, 0, 0, 0)
    )
    m.stop("floor", "F[2]", lower=0.0, restitution=0.8)
    m.stop("walls", "F", upper=(0.5, None, None), restitution=1.0)
    model = m.build()
    assert model.lawful_rows.names == ["floor: z lower", "walls: x upper"]
    start = np.array([0, 0, 1.0, np.cos(0.3), 0, np.sin(0.3), 0])
    R = cd.Pose(quaternion=start[3:]).rotation
    run = cd.simulate(model, 0.8, start, [0, 0, 1.0, *(R.T @ [1.0, 0.3, 0.0])], samples=9)
    x = 1.0 * run.time
    np.testing.assert_allclose(run.q[:, 0], np.where(x < 0.5, x, 1.0 - x), atol=1e-9)
    np.testing.assert_allclose(run.q[:, 1], 0.3 * run.time, atol=1e-9)
    fall = np.sqrt(2 / G)
    after = np.maximum(run.time - fall, 0)
    z = np.where(after > 0, 0.8 * G * fall * after - G * after**2 / 2, 1.0 - G * run.time**2 / 2)
    np.testing.assert_allclose(run.q[:, 2], z, atol=1e-9)
    np.testing.assert_allclose(run["floor.gap"], run.q[:, 2], atol=1e-12)
    soft = cd.Mechanism("soft", gravity=(0, 0, -G))
    soft.body("b", mass=1.0, inertia=(0.1, 0.2, 0.3))
    soft.joint("F", cd.Free(), soft.ground, "b")
    soft.stop("floor", "F[2]", lower=0.0, stiffness=100.0)
    rest = cd.simulate(soft.build(), 0.5, [0, 0, -G / 100, *start[3:]], [1.0, 2.0, 0.5, 0, 0, 0], samples=3)
    np.testing.assert_allclose(rest.q[:, 2], -G / 100, atol=1e-9)  # it lies on its spring while it tumbles


def cart(how: str, **limits) -> cd.Model:
    """A cart with a pendulum, whose shift and angle have limits by the joints, or by expressions."""
    m = cd.Mechanism("cart", gravity=(0, 0, -G))
    m.body("cart", mass=1.0, inertia=(1.0, 1.0, 1.0))
    m.body("arm", mass=1.0, com=(0, 0, -0.5), inertia=(0.1, 0.1, 0.1))
    m.joint("x", cd.Prismatic(axis=(1, 0, 0)), m.ground, "cart")
    m.joint("turn", cd.Revolute(axis=(0, 1, 0)), "cart", "arm")
    if how == "joints":
        m.stop("ends", "x", lower=-0.1, upper=0.2, **limits)
        m.stop("lean", "turn", lower=-0.15, upper=0.25, **limits)
    else:
        m.stop("ends", ["cart"], lambda t, P, T: P[0].position[0], lower=-0.1, upper=0.2, **limits)
        tilt = lambda t, P, T: ca.atan2(P[0].rotation[0, 2], P[0].rotation[2, 2])
        m.stop("lean", ["arm"], tilt, lower=-0.15, upper=0.25, unit="rad", **limits)
    return m.build()


@pytest.mark.parametrize("limits", [{"restitution": 0.6}, {"stiffness": 400.0, "damping": 3.0}])
def test_limits_of_an_expression_are_those_of_the_coordinate(limits) -> None:
    runs = [cd.simulate(cart(how, **limits), 1.5, v0=[1.0, 2.0], samples=16) for how in ("joints", "expressions")]
    np.testing.assert_allclose(runs[1].q, runs[0].q, atol=1e-6)
    assert runs[0].q[:, 0].max() > 0.15 and abs(runs[0].q[:, 1]).max() > 0.14
    if "restitution" in limits:
        assert [e.name for e in runs[0].events] == [e.name for e in runs[1].events] and len(runs[0].events) > 3
        np.testing.assert_allclose(runs[1]["lean.gap"], runs[0]["lean.gap"], atol=1e-6)
        units = {row.name: row.force_unit for row in runs[1].model.lawful_rows}
        assert units["ends: upper"] == "N" and units["lean: upper"] == "N m"
