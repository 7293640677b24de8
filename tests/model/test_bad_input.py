"""Every mistake a builder can make, and every wrong argument: one sentence that names the element, rule and value."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import cardan as cd
from cardan import mechanisms

from ..trees import close

pytestmark = pytest.mark.usefixtures("quick_code")

NAN, INF = float("nan"), float("inf")
SOLID: dict[str, Any] = {"mass": 1.0, "inertia": (1, 1, 1)}
Action = Callable[[], object]


def body(**options: Any) -> Action:
    return lambda: cd.Mechanism("m").body("crank", **options)


def crank() -> cd.Mechanism:
    m = cd.Mechanism("m")
    m.body("crank", **SOLID)
    return m


def joint(type: Any, parent: Any = "ground", child: Any = "crank", **options: Any) -> Action:
    return lambda: crank().joint("A", type, parent, child, **options)


def arm() -> cd.Mechanism:
    m = crank()
    m.joint("A", cd.Revolute(), m.ground, "crank")
    return m


def with_tip(type: Any, **tip: Any) -> Action:
    """The arm with another body at its end."""

    def action() -> cd.Model:
        m = arm()
        m.body("tip", **tip)
        m.joint("B", type, "crank", "tip", at=(1, 0, 0))
        return m.build()

    return action


def disconnected() -> cd.Model:
    m = arm()
    m.body("x", **SOLID)
    m.body("y", **SOLID)
    m.joint("B", cd.Revolute(), "x", "y")
    return m.build()


def alone(type: Any, **bob: Any) -> Action:
    def action() -> cd.Model:
        m = cd.Mechanism("m")
        m.body("bob", **bob)
        m.joint("A", type, m.ground, "bob")
        return m.build()

    return action


def triangle() -> cd.Model:
    """A loop without a freedom."""
    m = arm()
    m.body("rod", **SOLID)
    m.joint("B", cd.Revolute(), "crank", "rod", at=(1, 0, 0))
    m.joint("C", cd.Revolute(), m.ground, "rod", at=(2, 0, 0), child_at=(1, 0, 0))
    return m.build()


MODEL = arm().build()
LOOP = triangle()
Q, QQ = np.zeros(1), np.zeros(2)

# What is done, the exception, and words that the sentence must have, in order.
BUILDER: dict[str, tuple[Action, type[Exception], str]] = {
    "mass is text": (body(mass="heavy"), cd.ModelError, "body 'crank': mass .* a number, got 'heavy'"),
    "mass is a list": (body(mass=[1, 2]), cd.ModelError, r"'crank': mass .* a number, .* shape \(2,\)"),
    "mass is complex": (body(mass=1j), cd.ModelError, "'crank': mass .* a number, got 1j"),
    "mass is NaN": (body(mass=NAN), cd.ModelError, "'crank': mass must be finite, got nan"),
    "mass is infinite": (body(mass=INF), cd.ModelError, "'crank': mass must be finite, got inf"),
    "mass is negative": (body(mass=-1), cd.ModelError, "'crank': mass is negative: -1 kg"),
    "mass too large": (body(mass=1e200, inertia=(1e200,) * 3), cd.ModelError, "'crank': mass 1e.200 .* too large"),
    "com of two": (body(mass=1, com=(1, 2)), cd.ModelError, r"'crank': com must be 3 numbers, got \(1, 2\)"),
    "com is ragged": (body(mass=1, com=[[1], [2, 3]]), cd.ModelError, "'crank': com must be 3 numbers"),
    "com is NaN": (body(mass=1, com=(NAN, 0, 0)), cd.ModelError, "'crank': com must be finite"),
    "inertia of two": (body(mass=1, inertia=(1, 2)), cd.ModelError, "'crank': inertia must be a 3x3 .* got .1, 2."),
    "inertia is text": (body(mass=1, inertia="big"), cd.ModelError, "'crank': inertia must be a 3x3 .* got 'big'"),
    "inertia is NaN": (body(mass=1, inertia=(NAN, 1, 1)), cd.ModelError, "'crank': inertia must be finite"),
    "inertia without mass": (body(inertia=(1, 1, 1)), cd.ModelError, "'crank': mass is zero but its inertia is not"),
    "triangle rule": (body(mass=1, inertia=(10, 1, 1)), cd.ModelError, r"'crank': .* triangle rule: 10 > 1 \+ 1"),
    "not symmetric": (
        body(mass=1, inertia=[[1, 0.5, 0], [0, 1, 0], [0, 0, 1]]), cd.ModelError, "'crank': .* not symmetric: .* 0.5"
    ),
    "negative inertia": (body(mass=1, inertia=(-1, 1, 1)), cd.ModelError, "'crank': .* not positive: .* -1, 1, 1"),
    "inertia about a point too far": (
        body(mass=1, com=(1, 0, 0), inertia=(1, 1, 1), inertia_about=(0, 0, 0)), cd.ModelError, "'crank': .* triangle"
    ),
    "inertia axes of two": (body(**SOLID, inertia_axes=[1, 0]), cd.ModelError, "'crank': inertia_axes must be 3 x 3"),
    "inertia axes reflect": (body(**SOLID, inertia_axes=np.diag([1, 1, -1])), cd.ModelError, "reflection"),
    "body without a name": (lambda: cd.Mechanism("m").body(""), cd.ModelError, "body: .* non-empty string, got ''"),
    "body named None": (lambda: cd.Mechanism("m").body(None), cd.ModelError, "body: .* non-empty string, got None"),  # type: ignore[arg-type]
    "body named ground": (lambda: cd.Mechanism("m").body("ground"), cd.ModelError, "body 'ground': .* taken"),
    "two bodies of a name": (lambda: crank().body("crank"), cd.ModelError, "body 'crank': the name is taken"),
    "frame named as a body": (lambda: crank().frame("crank", "crank"), cd.ModelError, "frame 'crank': .* taken"),
    "frame on no body": (
        lambda: crank().frame("tool", "crnk"), cd.UnknownNameError, "frame 'tool': .*'crnk' .* did you mean 'crank'"
    ),
    "frame placed by two": (
        lambda: crank().frame("tool", "crank", at=(1, 2)), cd.ModelError, "frame 'tool': at must be 3 numbers"
    ),
    "two joints of a name": (
        lambda: arm().joint("A", cd.Revolute(), "ground", "crank"), cd.ModelError, "joint 'A': .* taken"
    ),
    "joint without a name": (
        lambda: crank().joint("", cd.Revolute(), "ground", "crank"), cd.ModelError, "joint: .* non-empty string"
    ),
    "joint type is text": (joint("hinge"), cd.ModelError, "joint 'A': type must be .* got 'hinge'"),
    "joint type is a class": (joint(cd.Revolute), cd.ModelError, "joint 'A': type must be"),
    "zero axis": (joint(cd.Revolute(axis=(0, 0, 0))), cd.ModelError, "joint 'A': axis .* no direction; .* non-zero"),
    "axis of two": (joint(cd.Prismatic(axis=(1, 0))), cd.ModelError, r"joint 'A': axis must be 3 .* got \(1, 0\)"),
    "axis is text": (joint(cd.Cylindrical(axis="z")), cd.ModelError, "joint 'A': axis must be 3 numbers, got 'z'"),
    "axis is NaN": (joint(cd.Screw(axis=(NAN, 0, 0))), cd.ModelError, "joint 'A': axis must be finite"),
    "axes of a universal joint": (
        joint(cd.Universal((1, 0, 0), (1, 1, 0))), cd.ModelError, "'A': axis1 and axis2 must be perpendicular, .* 45"
    ),
    "axes of a planar joint": (
        joint(cd.Planar((0, 0, 1), (0, 1, 1))), cd.ModelError, "'A': normal and x must be perpendicular, .* 45 deg"
    ),
    "pitch is NaN": (joint(cd.Screw(pitch=NAN)), cd.ModelError, "pitch must be finite, got nan"),
    "pitch is text": (joint(cd.Screw(pitch="x")), cd.ModelError, "pitch must be a number, got 'x'"),  # type: ignore[arg-type]
    "unknown child": (
        joint(cd.Revolute(), child="crnk"), cd.UnknownNameError, "'A': child 'crnk' .* did you mean 'crank'"
    ),
    "unknown parent": (
        joint(cd.Revolute(), parent="grund"), cd.UnknownNameError, "'A': parent 'grund' .* did you mean 'ground'"
    ),
    "parent is None": (joint(cd.Revolute(), parent=None), cd.UnknownNameError, "'A': parent None is not a body"),
    "joint of a body with itself": (joint(cd.Revolute(), parent="crank"), cd.ModelError, "'A': .* both 'crank'"),
    "joint of ground with itself": (joint(cd.Free(), child="ground"), cd.ModelError, "'A': .* both 'ground'"),
    "placed by two": (joint(cd.Revolute(), at=(1, 2)), cd.ModelError, r"'A': at must be 3 numbers, got \(1, 2\)"),
    "placed at NaN": (joint(cd.Revolute(), child_at=(NAN, 0, 0)), cd.ModelError, "'A': child_at must be finite"),
    "quaternion far off": (
        lambda: cd.Pose(quaternion=(1, 1, 0, 0)), cd.ModelError, "quaternion .* has length 1.41421, not 1; normalise"
    ),
    "quaternion is zero": (lambda: cd.Pose(quaternion=(0, 0, 0, 0)), cd.ModelError, "quaternion .* length 0, not 1"),
    "quaternion of three": (lambda: cd.Pose(quaternion=(1, 0, 0)), cd.ModelError, "quaternion must be 4 numbers"),
    "reflection": (lambda: cd.Pose(rotation=np.diag([1, 1, -1])), cd.ModelError, "not a rotation .* reflection"),
    "stretch": (lambda: cd.Pose(rotation=2 * np.eye(3)), cd.ModelError, "not a rotation matrix, .* off by 3"),
    "two rotations": (lambda: cd.Pose(rpy=(0, 0, 0), quaternion=(1, 0, 0, 0)), cd.ModelError, "once, .* rpy"),
    "gravity of two": (lambda: cd.Mechanism("m", gravity=(0, -9.81)), cd.ModelError, "mechanism 'm': gravity .* 3"),
    "gravity is a number": (lambda: cd.Mechanism("m", gravity=9.81), cd.ModelError, "gravity must be 3 numbers"),
    "gravity is NaN": (lambda: cd.Mechanism("m", gravity=(0, 0, NAN)), cd.ModelError, "gravity must be finite"),
    "mechanism without a name": (lambda: cd.Mechanism(""), cd.ModelError, "mechanism: .* non-empty string"),
    "nothing to build": (lambda: cd.Mechanism("m").build(), cd.ModelError, "mechanism 'm': it has no body"),
    "body with no joint": (lambda: crank().build(), cd.ModelError, "body 'crank': it has no joint; .*cd.Free"),
    "bodies off the ground": (disconnected, cd.ModelError, "body 'x': its joint 'B' leads to no ground"),
    "snapping too wide": (lambda: arm().build(snapping=1.0), cd.ModelError, "snapping must be from 0 to 0.001, got 1"),
    "massless leaf": (with_tip(cd.Revolute()), cd.ModelError, "body 'tip': .* no mass, so joint 'B' .*revolute"),
    "point mass on its own axis": (
        alone(cd.Revolute(), mass=1.0), cd.ModelError, "body 'bob': .* no inertia along .* joint 'A' .*revolute"
    ),
    "rod that spins about itself": (
        with_tip(cd.Spherical(), mass=1.0, com=(0.5, 0, 0), inertia=cd.inertia.rod(1, 1)), cd.ModelError,
        "body 'tip': .* no inertia along .* joint 'B'",
    ),
    "rod of negative mass": (lambda: cd.inertia.rod(-1, 1), cd.ModelError, "rod: mass must be positive.* got -1"),
    "rod along w": (lambda: cd.inertia.rod(1, 1, axis="w"), cd.ModelError, "rod: axis 'w' is not one of x, y, z"),
    "flat cylinder": (lambda: cd.inertia.cylinder(1, 0, 1), cd.ModelError, "cylinder: radius must be positive"),
    "sphere of NaN": (lambda: cd.inertia.sphere(1, NAN), cd.ModelError, "sphere: radius .* got nan"),
    "box of two": (lambda: cd.inertia.box(1, (1, 2)), cd.ModelError, "box: size must be 3 numbers"),
    "box inside out": (lambda: cd.inertia.box(1, (1, 2, -3)), cd.ModelError, "box: size z must be positive"),
}  # fmt: skip

FUNCTIONS: dict[str, tuple[Action, type[Exception], str]] = {
    "unknown formulation": (
        lambda: cd.forward_dynamics(MODEL, Q, Q, formulation="spatal"), cd.UnknownNameError,
        "'spatal' .* did you mean 'spatial'",
    ),
    "formulation of equations": (
        lambda: cd.equations(MODEL, formulation="lagrange"), cd.UnknownNameError, "'lagrange' .* 'newton_euler'"
    ),
    "q too long": (lambda: cd.forward_dynamics(MODEL, QQ, Q), cd.InputError, "forward_dynamics: q has 2 .* needs 1"),
    "v too long": (lambda: cd.inverse_dynamics(MODEL, Q, QQ, Q), cd.InputError, "inverse_dynamics: v has 2 .* needs 1"),
    "q is a number": (lambda: cd.mass_matrix(MODEL, 0.0), cd.InputError, r"mass_matrix: q has shape \(\)"),
    "q is text": (lambda: cd.mass_matrix(MODEL, ["x"]), cd.InputError, "mass_matrix: q must be numbers .*, got text"),
    "q is complex": (lambda: cd.mass_matrix(MODEL, [1j]), cd.InputError, "mass_matrix: q has dtype complex128"),
    "q is None": (lambda: cd.mass_matrix(MODEL, None), cd.InputError, "mass_matrix: q must be numbers .* got None"),
    "batches that do not fit": (
        lambda: cd.forward_dynamics(MODEL, np.zeros((3, 1)), np.zeros((4, 1))), cd.InputError,
        r"batch shapes \(3,\) of q and \(4,\) of v do not broadcast",
    ),
    "wrenches on no body": (
        lambda: cd.forward_dynamics(MODEL, Q, Q, wrenches=np.zeros(6)), cd.InputError, "wrenches has shape .* 1, 6"
    ),
    "out of another shape": (
        lambda: cd.mass_matrix(MODEL, Q, out=np.zeros(3)), cd.InputError, r"out for M has shape \(3,\)"
    ),
    "Jacobian of no frame": (
        lambda: cd.jacobian(MODEL, Q, "crnk"), cd.UnknownNameError, "'crnk' is not .* did you mean 'crank'"
    ),
    "Jacobian in no axes": (
        lambda: cd.jacobian(MODEL, Q, "crank", axes="world"), cd.InputError, "axes must be 'body' or 'ground'"
    ),
    "pose of no frame": (
        lambda: cd.frame_pose(MODEL, Q, "crnk"), cd.UnknownNameError, "'crnk' is not .* did you mean 'crank'"
    ),
    "coordinates of no joint": (lambda: MODEL.q_slice("B"), cd.UnknownNameError, "joint 'B' is not in model 'm'"),
    "no such body": (lambda: MODEL.body("crnk"), cd.UnknownNameError, "body 'crnk' .* did you mean 'crank'"),
    "no such graph": (lambda: cd.equations(MODEL).graph("mass"), cd.UnknownNameError, "has no 'mass'"),
    "textbook on a number": (lambda: cd.textbook.rotation_exp(3.0), cd.InputError, "rotation_exp: u"),
    "textbook on two": (lambda: cd.textbook.rotation_exp([1, 2]), cd.InputError, r"u, .*got shape \(2,\)"),
}  # fmt: skip


@pytest.mark.parametrize("case", [*BUILDER, *FUNCTIONS])
def test_a_mistake_gets_one_sentence_that_names_it(case: str) -> None:
    action, error, words = {**BUILDER, **FUNCTIONS}[case]
    with pytest.raises(error) as caught:
        action()
    sentence = str(caught.value)
    assert isinstance(caught.value, cd.CardanError)
    assert re.search(words, sentence), sentence
    assert "\n" not in sentence


@pytest.mark.parametrize(
    "action",
    [
        pytest.param(lambda: cd.inertia.rod(None, 1), id="rod of None"),
        pytest.param(lambda: cd.inertia.sphere(1, "big"), id="sphere of text"),
    ],
)
def test_solids_of_something_else_than_numbers_are_refused(action: Action) -> None:
    with pytest.raises(cd.ModelError, match=r"must be (positive|finite|a number)"):
        action()


def test_a_wrong_array_is_told_on_one_line() -> None:
    with pytest.raises(cd.ModelError) as caught:
        cd.Pose(rotation=np.full((3, 3), NAN))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("action", "owner"),
    [
        pytest.param(joint(cd.Screw(pitch=NAN)), "joint 'A'", id="pitch"),
        pytest.param(body(**SOLID, inertia_axes=-np.eye(3)), "body 'crank'", id="inertia_axes"),
    ],
)
def test_the_sentence_names_its_owner(action: Action, owner: str) -> None:
    with pytest.raises(cd.ModelError, match=owner):
        action()


def test_ground_is_a_frame_everywhere() -> None:
    close(cd.jacobian(MODEL, Q, "ground"), np.zeros((6, 1)), 0)
    close(cd.frame_pose(MODEL, Q, "ground"), np.eye(4), 0)


# What is odd but right.


def test_a_quaternion_and_a_rotation_slightly_off_are_normalised() -> None:
    e = np.array([0.5, 0.5, 0.5, 0.5])
    pose = cd.Pose(quaternion=e * (1 + 1e-4))
    close(pose.rotation.T @ pose.rotation, np.eye(3), 1e-15)
    close(pose.quaternion, e, 1e-15)
    R = pose.rotation @ (np.eye(3) + 1e-5)
    close(cd.Pose(rotation=R).rotation.T @ cd.Pose(rotation=R).rotation, np.eye(3), 1e-14)


def test_a_massless_body_inside_a_chain_is_fine() -> None:
    m = cd.Mechanism("m")
    m.body("cross")
    m.body("tip", **SOLID)
    m.joint("A", cd.Revolute(axis=(1, 0, 0)), m.ground, "cross")
    m.joint("B", cd.Revolute(axis=(0, 1, 0)), "cross", "tip")
    close(cd.mass_matrix(m.build(), QQ), np.eye(2), 1e-15)


def test_a_massless_body_on_a_rigid_joint_is_fine() -> None:
    assert with_tip(cd.Rigid())().nv == 1  # type: ignore[attr-defined]


def test_a_joint_that_closes_a_loop_is_cut_and_reported() -> None:
    assert [LOOP.joints[j].name for j in LOOP.cuts] == ["B"]
    report = LOOP.report()
    assert "1 cut joint" in report
    assert "5 constraint equations" in report
    assert "cut 'B' (revolute)" in report
    assert LOOP.nv == 2


@pytest.mark.parametrize(
    "ask",
    [
        pytest.param(lambda: cd.forward_dynamics(LOOP, QQ, QQ), id="forward dynamics"),
        pytest.param(lambda: cd.forward_dynamics(LOOP, QQ, QQ, formulation="newton_euler"), id="newton_euler"),
        pytest.param(lambda: cd.joint_wrenches(LOOP, QQ, QQ, QQ), id="joint wrenches"),
        pytest.param(lambda: cd.check(LOOP), id="check"),
    ],
)
def test_a_loop_that_cannot_move_is_refused_and_its_cut_joint_named(ask: Action) -> None:
    with pytest.raises(cd.CardanError, match="'B'"):
        ask()
    close(cd.body_poses(LOOP, QQ)[0], np.eye(4), 0)  # but where its bodies are can be asked


def test_a_coordinate_of_a_cut_or_rigid_joint_is_refused() -> None:
    with pytest.raises(cd.UnknownNameError, match="joint 'B' closes a loop"):
        LOOP.q_slice("B")
    with pytest.raises(cd.UnknownNameError, match="joint 'B' is rigid"):
        with_tip(cd.Rigid())().v_slice("B")  # type: ignore[attr-defined]


@pytest.mark.parametrize("mistake", [cd.InputError, cd.ModelError, cd.LoopError, cd.UnknownNameError, cd.FileError])
def test_one_except_catches_the_family(mistake: type[Exception]) -> None:
    assert issubclass(mistake, cd.CardanError)
    assert issubclass(mistake, (ValueError, KeyError))


def test_inertia_given_about_another_point_and_in_other_axes_is_the_same_body() -> None:
    rng = np.random.default_rng(0)
    I, com, point = mechanisms.random_inertia(rng), rng.standard_normal(3), rng.standard_normal(3)
    R = cd.Pose(rpy=rng.standard_normal(3)).rotation
    r = com - point
    about = R.T @ (I + 2.0 * (r @ r * np.eye(3) - np.outer(r, r))) @ R
    m = cd.Mechanism("m")
    m.body("a", mass=2.0, com=com, inertia=I)
    m.body("b", mass=2.0, com=com, inertia=about, inertia_about=point, inertia_axes=R)
    m.body("c", mass=2.0, com=com, inertia=I[[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]])
    for name in "abc":
        m.joint(name, cd.Free(), m.ground, name)
    a, b, c = m.build().bodies
    close(a.inertia, b.inertia, 1e-14)
    close(a.inertia, c.inertia, 0)
