"""Inverse kinematics against closed forms: planar arms, legs of a Stewart platform, targets out of reach, limits."""

from functools import cache

import numpy as np
import pytest

import cardan as cd

pytestmark = pytest.mark.usefixtures("quick_code")
LENGTHS = (1.0, 0.7, 0.4)


@cache
def arm(n: int) -> cd.Model:
    """A planar arm of n links along x with hinges about z, and a frame `tip` at its end."""
    m = cd.Mechanism("arm")
    parent, at = m.ground, 0.0
    for k in range(n):
        body = m.body(f"link{k}", mass=1.0, com=(0.2, 0, 0), inertia=0.01 * np.eye(3))
        m.joint(f"joint{k}", cd.Revolute(axis=(0, 0, 1)), parent, body, at=(at, 0, 0))
        parent, at = body, LENGTHS[k]
    m.frame("tip", parent, at=(at, 0, 0))
    return m.build()


def elbows(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Both configurations (2, ..., 2) of the two-link arm at a point, by the law of cosines."""
    a, b = LENGTHS[:2]
    q2 = np.arccos((x * x + y * y - a * a - b * b) / (2 * a * b)) * np.reshape([1, -1], (2, *[1] * x.ndim))
    return np.stack([np.arctan2(y, x) - np.arctan2(b * np.sin(q2), a + b * np.cos(q2)), q2], axis=-1)


def test_two_link_arm_has_both_elbows_and_stops_at_the_circles() -> None:
    """All solutions of 200 targets in a batch (20, 10); beyond the reach and inside the hole the nearest point."""
    rng = np.random.default_rng(0)
    radius, angle = rng.uniform(0.35, 1.65, (20, 10)), rng.uniform(-3, 3, (20, 10))
    x, y = radius * np.cos(angle), radius * np.sin(angle)
    found = cd.inverse_kinematics(arm(2), {"tip": np.stack([x, y, 0 * x], axis=-1)}, all=True)
    assert found.reached.shape == (20, 10) and found.reached.all() and found.position_error.max() < 1e-9
    assert found.solutions is not None and {len(q) for q in found.solutions} == {2}
    expected = np.moveaxis(elbows(x, y), 0, -2).reshape(-1, 2, 2)
    turned = np.exp(1j * np.array(found.solutions))
    order = np.argsort(-turned[..., 1].imag, axis=1)  # elbow with a positive angle first
    assert np.abs(np.take_along_axis(turned, order[..., None], axis=1) - np.exp(1j * expected)).max() < 1e-8

    far = cd.inverse_kinematics(arm(2), {"tip": [[3.0, 4.0, 0.0], [0.06, 0.08, 0.0]]})
    assert not far.reached.any() and not far.held_back.any()
    assert np.allclose(far.position_error, [5 - 1.7, 0.3 - 0.1], atol=1e-9)
    assert np.allclose(cd.frame_pose(arm(2), far.q, "tip")[:, :2, 3], [[1.02, 1.36], [0.18, 0.24]], atol=1e-6)
    assert "out of reach" in far.why(0) and "0 of 2 targets" in str(far)

    # a batch of points to look at beside one position: the second link points along the line to them
    points = np.array([[3.0, 0.0, 0.0], [0.0, 3.0, 0.0], [2.0, 2.0, 0.0]])
    eye = cd.Target("link1", look_at=points, axis=[1, 0, 0], weight=2.0)
    seen = cd.inverse_kinematics(arm(2), [eye, cd.Target("link1", position=[0.6, 0.8, 0.0])])
    way = points - [0.6, 0.8, 0.0]
    assert seen.reached.all() and np.allclose(seen.q.sum(axis=1), np.arctan2(way[:, 1], way[:, 0]))


def test_priorities_limits_and_what_is_preferred() -> None:
    """A target never yields to a later one; a limit holds back and is named; freedom left is used as asked."""
    model = arm(3)
    reach = cd.Target("tip", position=[3.0, 0.0, 0.0])
    up = cd.Target("tip", direction=[0.0, 2.0, 0.0], axis=[1, 0, 0], priority=2)
    found = cd.inverse_kinematics(model, [reach, up], starts=4)
    assert np.allclose(found.errors, [[3 - sum(LENGTHS), 0], [0, np.pi / 2]], atol=1e-6)
    # the law of cosines for the first two links, turned by the limit of the third
    found = cd.inverse_kinematics(model, {"tip": [3.0, 0, 0]}, limits={"joint1": (0.5, 2.0)}, starts=4)
    for limits, told in (
        ((2.0, 0.5), "joint 'joint1': lower 2 is not below"),
        (([0, 1], 2), "must be one number or 1"),
    ):
        with pytest.raises(cd.InputError, match=told):
            cd.inverse_kinematics(model, {"tip": [3.0, 0, 0]}, limits={"joint1": limits})
    assert np.isclose(found.q[1], 0.5) and found.held_back.tolist() == [False, True, False]
    assert "'joint1' hold it back" in found.why()
    elbow = np.hypot(1 + 0.7 * np.cos(0.5), 0.7 * np.sin(0.5))
    bend = 0.5 - np.arctan2(0.7 * np.sin(0.5), 1 + 0.7 * np.cos(0.5))
    assert np.isclose(found.position_error, 3 - elbow - 0.4, atol=1e-8) and np.isclose(found.q[2], -bend, atol=1e-5)

    # nearest to q0 on the circle of solutions: the gradient of the distance is along the row of the target
    q0 = np.array([0.3, 0.4, 0.5])
    near = cd.inverse_kinematics(model, cd.Target("tip", position=[1.2, 0.6, 0.0]), q0, prefer="near", starts=6)
    J = cd.jacobian(model, near.q, "tip", axes="ground")[3:5]
    along = np.linalg.svd(J)[2][2]
    assert near.reached and abs(along @ (near.q - q0)) < 1e-4
    narrow = cd.inverse_kinematics(
        model, cd.Target("tip", position=[1.2, 0.6, 0.0]), q0, prefer="near", starts=6, tolerance=1e-12
    )
    assert narrow.reached and np.abs(narrow.q - near.q).max() < 1e-4
    sampled = cd.inverse_kinematics(model, {"tip": [1.2, 0.6, 0.0]}, all=True, starts=50)
    assert sampled.solutions is not None
    turns = (sampled.solutions[0] - q0 + np.pi) % (2 * np.pi) - np.pi
    assert np.linalg.norm(near.q - q0) <= np.linalg.norm(turns, axis=1).min() + 1e-9


def test_legs_of_a_stewart_platform() -> None:
    """The lengths of the legs in closed form at a batch of poses; an unreachable pose leaves all loops closed."""
    model = cd.mechanisms.stewart_platform().build()
    rng = np.random.default_rng(1)
    T = np.tile(np.eye(4), (20, 1, 1))
    T[:, :3, 3] = rng.uniform((-0.1, -0.1, 0.9), (0.1, 0.1, 1.1), (20, 3))
    turns = rng.uniform((1, -0.1, -0.1, -0.1), (1, 0.1, 0.1, 0.1), (20, 4))
    T[:, :3, :3] = [cd.Pose(quaternion=x / np.linalg.norm(x)).rotation for x in turns]
    found = cd.inverse_kinematics(model, {"platform": T})
    assert found.reached.all() and (found.start == 0).all()
    assert np.abs(cd.constraint_residual(model, found.q)).max() < 1e-14
    for k in range(1, 7):
        head = T[:, :3, :3] @ model.joint(f"ball{k}").child_at.position + T[:, :3, 3]
        length = np.linalg.norm(head - model.joint(f"foot{k}").at.position, axis=1)
        assert np.abs(found.q[:, model.q_slice(f"slider{k}").start] - length).max() < 1e-9


def test_a_limit_inside_a_loop() -> None:
    """A rocker with a limit stops the crank where the four-bar's closed form says; the loop stays closed."""
    model = cd.mechanisms.four_bar().build()  # base 1, crank 0.4, coupler 0.9, rocker 0.7
    lower = 1.6
    found = cd.inverse_kinematics(
        model, cd.Target("rocker", direction=[1, 0, 0], axis=[1, 0, 0]), limits={"D": (lower, 3.0)}
    )
    assert not found.reached and found.held_back.tolist() == [False, False, True]
    assert np.isclose(found.rotation_error, lower) and np.abs(cd.constraint_residual(model, found.q)).max() < 1e-14
    C = np.array([1 + 0.7 * np.cos(lower), 0.7 * np.sin(lower)])
    B = 0.4 * np.array([np.cos(found.q[0]), np.sin(found.q[0])])
    assert np.isclose(np.linalg.norm(C - B), 0.9)
    free = cd.inverse_kinematics(model, cd.Target("rocker", direction=[1, 0, 0], axis=[1, 0, 0]))
    assert np.isclose(free.rotation_error, np.pi - np.arccos((1 + 0.7**2 - 1.3**2) / 1.4))  # crank and coupler in line


@pytest.mark.parametrize(
    ("targets", "options", "words"),
    [
        ({"tap": [1, 0, 0]}, {}, "did you mean 'tip'"),
        ({}, {}, "no target"),
        ({"tip": [1, np.nan, 0]}, {}, "finite"),
        ({"tip": np.eye(3)}, {}, "say which it is"),
        ({"tip": np.ones((2, 3)), "link0": np.ones((3, 3, 3))[0]}, {}, "do not fit|say which"),
        (cd.Target("tip"), {}, "nothing is asked"),
        (cd.Target("tip", orientation=2 * np.eye(3)), {}, "orthonormal"),
        (cd.Target("tip", direction=[0, 0, 0]), {}, "zero"),
        (cd.Target("tip", look_at=[1e200, 0, 0]), {}, "in metres"),
        (cd.Target("ground", position=[0, 0, 0]), {}, "cannot move"),
        (cd.Target("tip", position=[1, 0, 0], along="xw"), {}, "ground axes"),
        ({"tip": [1, 0, 0]}, {"limits": {"joint0": (1, -1)}}, "not below"),
        ({"tip": [1, 0, 0]}, {"limits": {"joint9": (1, 2)}}, "joint9"),
        ({"tip": [1, 0, 0]}, {"hold": ["joint0", "joint1"]}, "no joint that is not held moves"),
        ({"tip": [1, 0, 0]}, {"prefer": "centring"}, "'centre'"),
        ({"tip": [1, 0, 0]}, {"starts": 0}, "1 or more"),
        ({"tip": [1, 0, 0]}, {"q0": [0.0]}, r"\(..., 2\)"),
    ],
)
def test_bad_input(targets: object, options: dict[str, object], words: str) -> None:
    """One sentence each."""
    with pytest.raises((cd.InputError, cd.ModelError, cd.UnknownNameError), match=words):
        cd.inverse_kinematics(arm(2), targets, **options)  # type: ignore[arg-type]
