"""States by name: the named are kept, the others follow; what cannot be is refused with a sentence."""

from __future__ import annotations

import warnings
from functools import cache

import numpy as np
import pytest

import cardan as cd
from cardan.mechanisms import four_bar

pytestmark = pytest.mark.usefixtures("quick_code")


@cache
def linkage() -> cd.Model:
    return four_bar().build()


@cache
def robot() -> cd.Model:
    """A free base, an arm with limits, a slide and a gripper that is rigid."""
    m = cd.Mechanism("robot")
    for name in ("base", "arm", "hand", "grip"):
        m.body(name, mass=1.0, com=(0.1, 0, 0), inertia=(0.1, 0.1, 0.1))
    m.joint("base", cd.Free(), m.ground, "base")
    m.joint("arm", cd.Revolute(), "base", "arm", data=cd.JointData(lower=-0.2, upper=0.5, velocity=0.1))
    m.joint("hand", cd.Prismatic(), "arm", "hand", data=cd.JointData(lower=2.0, upper=2.5), start=2.1)
    m.joint("grip", cd.Rigid(), "hand", "grip")
    return m.build()


def test_the_named_are_kept_and_the_others_follow() -> None:
    model, angles = linkage(), np.random.default_rng(0).uniform(0.2, 1.2, (3, 2))
    state = model.state(A=angles, v={"B": 0.7})
    q, v = cd.assemble(model, {"A": angles}, {"B": 0.7})
    assert np.array_equal(state.q, q) and np.array_equal(state.v, v)
    assert np.array_equal(q[..., 0], angles) and (v[..., 1] == 0.7).all()
    assert np.abs(cd.constraint_residual(model, q)).max() < 1e-12
    J = np.asarray(cd.constraint_jacobian(model, q))
    assert np.abs(J @ v[..., None]).max() < 1e-12
    for start in ((state,), ({"A": angles}, {"B": 0.7}), (q, {"B": 0.7})):
        run = cd.simulate(model, 1e-3, *start, samples=2)
        assert run.batch == (3, 2) and run.settings["batch"].startswith("q0")
        assert np.allclose(run.q[..., 0, :], q, rtol=1e-13) and np.allclose(run.v[..., 0, :], v, rtol=1e-12)
    run = cd.simulate(model, 1e-3, v0={"A": 2.0}, samples=2)
    assert np.allclose(run.q[0], cd.assemble(model)[0], rtol=1e-13) and np.isclose(run.v[0, 0], 2.0, rtol=1e-13)


def test_other_functions_take_the_same_names() -> None:
    model = linkage()
    q, v = cd.assemble(model, {"A": 0.4}, {"A": 1.0})
    named = cd.linearise(model, {"q": {"A": 0.4}, "v": {"A": 1.0}})
    assert np.array_equal(named.A, cd.linearise(model, (q, v)).A)
    assert np.array_equal(named.A, cd.linearise(model, model.state(A=0.4, v={"A": 1.0})).A)
    where = cd.body_poses(model, q)[model.body_index("coupler"), :3, 3]
    found = cd.inverse_kinematics(model, {"coupler": where}, {"A": 0.41})
    assert found.start == 0 and np.allclose(found.q[0], 0.4, atol=1e-5)
    assert cd.equilibrium(model, {"A": 0.4}, stable=True).q.shape == (3,)


def test_joints_with_several_coordinates() -> None:
    model = robot()
    turned = np.array([np.cos(0.3), 0, 0, np.sin(0.3)])
    state = model.state({"base": [1, 2, 3, *turned * 1.0001]}, {"base[5]": 4.0, "hand": -1.0}, arm=cd.deg(10), time=2.0)
    assert np.allclose(state.q, [1, 2, 3, *turned, np.pi / 18, 2.1]) and state.time == 2.0
    assert state.v.tolist() == [0, 0, 0, 0, 0, 4.0, 0, -1.0]
    batch = model.state(base=np.tile([0, 0, 0, 1, 0, 0, 0], (5, 1)), hand=np.full((4, 1), 2.2))
    assert batch.q.shape == (4, 5, model.nq) and (batch.q[..., -1] == 2.2).all()


@pytest.mark.parametrize(
    ("q", "v", "message"),
    [
        ({"D": 0.3, "A": 1.0}, None, r"cannot be assembled with 'A', 'D' as given: joint 'C' stays open by .* fewer"),
        (None, {"A": 1.0, "D": 3.0}, r"with the rate of 'A', 'D' as given, a constraint is broken by"),
        (None, [1.0, 0.0, 0.0], r"velocities at the start violate joint 'C' .* v0=\{'A': 1.0\}, and the others follow"),
        ({"C": 0.3}, None, r"q0: joint 'C' closes a loop, .* name one that has coordinates: 'A', 'B', 'D'"),
        ({"crank": 0.3}, None, r"q0: 'crank' is not a joint of model 'four_bar'; known: 'A', 'B', 'D'"),
        ({"A": "30deg"}, None, r"q0 of 'A' must be a number, got '30deg'; cd.deg\(30\) is 30 degrees"),
        ({"A": np.nan}, None, r"q0 of 'A' is nan"),
        ({"A": [0.3, 0.4], "B": [1.0, 2.0, 3.0]}, None, r"batches in q0 do not fit together: 'A' \(2,\), 'B' \(3,\)"),
        ({3: 0.3}, None, r"q0 takes names of joints, got 3"),
        ({"A": 0.3, "A[0]": 0.3}, None, r"q0 gives 'A' twice"),
        ({"A[1]": 0.3}, None, r"'A\[1\]' is no coordinate by itself: joint 'A' has 1"),
        ("home", None, r"'home' is not a state of model 'four_bar'; it has none"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused(q: object, v: object, message: str) -> None:
    with pytest.raises(cd.CardanError, match=message):
        cd.simulate(linkage(), 0.1, q, v)  # type: ignore[arg-type]


def test_quaternions_and_rigid_joints_are_refused() -> None:
    model = robot()
    for given, message in (
        ({"base": [0, 0, 0, 2, 0, 0, 0]}, r"the quaternion .* in q of 'base' has length 2"),
        ({"base[3]": 1.0}, r"joint 'base' has a quaternion; give all its numbers"),
        ({"base": [1, 2, 3]}, r"q of 'base' must be 7 numbers"),
        ({"grip": 0.1}, r"joint 'grip' is rigid; name one that has coordinates"),
    ):
        with pytest.raises(cd.InputError, match=message):
            model.state(given)


def test_degrees_are_guessed_once_and_without_false_alarms() -> None:
    model, m = four_bar().build(), cd.Mechanism("turn")
    with pytest.warns(RuntimeWarning, match=r"q0 of joint 'A' is 30 rad, 4.8 turns; .* write cd.deg\(30\)") as told:
        cd.simulate(model, 1e-3, {"A": 30}, samples=2)
    assert told[0].filename == __file__
    m.body("arm", mass=1.0, com=(1, 0, 0), inertia=(1, 1, 1))
    with pytest.warns(RuntimeWarning, match=r"joint 'J': start is -45 rad") as told:
        m.joint("J", cd.Revolute(), m.ground, "arm", start=-45)
    assert told[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cd.simulate(model, 1e-3, {"A": 30}, samples=2)  # told already
        other = robot()
        for q in ({"hand": 30.0}, {"arm": 3.0}, {"arm": 31.0}, {"arm": 12.5663706}, {"arm": [10.0, 11.0]}, {"arm": 5}):
            cd.simulate(other, 1e-3, q, samples=2)
    assert cd.deg(180) == np.pi and np.allclose(cd.deg([[90], [45]]), [[np.pi / 2], [np.pi / 4]])
    assert np.isclose(cd.rpm(60), 2 * np.pi)
    with pytest.raises(cd.InputError, match="deg: give a number"):
        cd.deg("30")


def test_random_states_are_within_limits() -> None:
    model = robot()
    q, v = model.random_state(np.random.default_rng(0), 1000)
    arm, hand = q[:, 7], q[:, 8]
    assert -0.2 <= arm.min() < -0.19 and 0.49 < arm.max() <= 0.5 and hand.min() >= 2.0 and hand.max() <= 2.5
    assert np.abs(v[:, 6]).max() == 0.1 and np.abs(v[:, 7]).max() > 2
    assert np.allclose(np.linalg.norm(q[:, 3:7], axis=1), 1)
