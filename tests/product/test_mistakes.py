"""Natural mistakes of engineers, roboticists and students: each gets one sentence with what to write instead."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np
import pytest
import sympy as sp

import cardan as cd
from cardan import mechanisms

pytestmark = pytest.mark.usefixtures("quick_code")

DOUBLE = mechanisms.double_pendulum().build()
FOUR_BAR = mechanisms.four_bar().build()
STILL = np.zeros(2)


def arm() -> cd.Mechanism:
    """One link on a pin `A`."""
    m = cd.Mechanism("arm")
    m.body("rod", mass=1.0, com=(0.5, 0, 0), inertia=cd.inertia.rod(1.0, 1.0))
    m.joint("A", cd.Revolute(axis=(0, 0, 1)), m.ground, "rod")
    return m


def robot(tmp_path: Path, **options: Any) -> cd.Model:
    """Two joints and a finger that mimics the second."""
    solid = "<mass value='1'/><inertia ixx='1' iyy='1' izz='1' ixy='0' ixz='0' iyz='0'/>"
    link = f"<link name='{{0}}'><inertial>{solid}</inertial></link>"
    joint = "<joint name='r_{0}' type='continuous'><parent link='{1}'/><child link='r_{2}'/>{3}</joint>"
    parts = [
        "<link name='base'/>", *(link.format(f"r_{name}") for name in ("arm", "hand", "finger")),
        joint.format("shoulder", "base", "arm", ""), joint.format("wrist", "r_arm", "hand", ""),
        joint.format("grip", "r_hand", "finger", "<mimic joint='r_wrist'/>"),
    ]  # fmt: skip
    path = tmp_path / "robot.urdf"
    path.write_text(f"<robot name='robot'>{''.join(parts)}</robot>")
    return cd.load(path, **options)


MISTAKES: dict[str, tuple[Callable[[], Any], str]] = {
    "a function as tau": (
        lambda: cd.forward_dynamics(DOUBLE, STILL, STILL, lambda t: t),
        "forward_dynamics: tau is a function; call it, and give the numbers that it returns",
    ),
    "a function as tau of a run": (
        lambda: cd.simulate(DOUBLE, 1.0, STILL, tau=lambda t, q, v: -q),
        "is an element of the model: mechanism.drive('motor', 'pivot', lambda t, q, v: ...)",
    ),
    "symbols": (
        lambda: cd.forward_dynamics(DOUBLE, ca.SX.sym("q", 2), STILL),
        "this function takes numbers; cd.casadi_function(model, 'forward_dynamics') takes it",
    ),
    "symbols of another kind": (lambda: cd.mass_matrix(DOUBLE, ca.MX.sym("q", 2)), "cd.casadi_function(model, 'mass_"),
    "symbols in a list": (lambda: cd.mass_matrix(DOUBLE, [sp.Symbol("q"), 0]), "q has symbols of SymPy, and this"),
    "a column": (lambda: cd.mass_matrix(DOUBLE, np.zeros((2, 1))), "so give its transpose"),
    "an argument with a typo": (
        lambda: cd.forward_dynamics(DOUBLE, STILL, STILL, taus=STILL),  # type: ignore[call-arg]
        "there is no argument 'taus'; did you mean 'tau'?",
    ),
    "an argument of others": (
        lambda: cd.load("robot.urdf", floating=True),  # type: ignore[call-arg]
        "load: there is no argument 'floating'; it is called root here",
    ),
    "a dict for numbers": (
        lambda: cd.mass_matrix(DOUBLE, {"pivot": 1}),
        "must be numbers of shape (..., 2), got a dict",
    ),
    "rows of different lengths": (lambda: cd.mass_matrix(DOUBLE, [[0, 0], [0]]), "its rows have different lengths"),
    "too few entries": (
        lambda: cd.mass_matrix(DOUBLE, [0.0]),
        "the model needs 2 (shape (1,)), for the joints 'pivot', 'elbow'",
    ),
    "too few entries of a start": (
        lambda: cd.simulate(DOUBLE, 1.0, [0.0]),
        "q0 must have the shape (..., 2), got (1,), for the joints 'pivot', 'elbow'",
    ),
    "a number for one coordinate": (
        lambda: cd.simulate(mechanisms.pendulum().build(), 1.0, 0.3),
        "got (), for the joints 'pivot'; write [0.3]",
    ),
    "equations as text": (
        lambda: cd.equations(DOUBLE).latex(),
        "Equations has no attribute 'latex'; write equations.sympy().latex()",
    ),
    "a force of a joint": (
        lambda: cd.simulate(DOUBLE, 0.01, STILL, samples=2)["pivot.force"],
        "there is 'pivot.reaction_force'",
    ),
    "an angle of a joint": (
        lambda: cd.simulate(DOUBLE, 0.01, STILL, samples=2).plot("pivot.angle"),
        "there are 'pivot.coordinate', 'pivot.rate'",
    ),
    "columns are systems": (
        lambda: cd.simulate(DOUBLE, 1.0, np.zeros((2, 5))),
        "rows of a batch come first, so give its transpose",
    ),
    "columns are states": (lambda: cd.mass_matrix(DOUBLE, np.zeros((2, 5))), "so give its transpose"),
    "threads in words": (lambda: cd.mass_matrix(DOUBLE, STILL, threads="all"), "threads must be a whole number"),
    "a drive of time only": (
        lambda: (m := arm(), m.drive("motor", "A", lambda t: 2 * t), m.build()),
        "drive 'motor': its function is called with 3 arguments, (t, q, v), and takes (t); write lambda t, q, v: ...",
    ),
    "a motion of state": (
        lambda: (m := arm(), m.motion("turn", "A", lambda t, q, v: t), m.build()),
        "motion 'turn': its function is called with 1 argument, (t), and takes (t, q, v); write lambda t: ...",
    ),
    "two motions of one joint": (
        lambda: (m := arm(), m.motion("turn", "A", lambda t: t), m.motion("again", "A", 0.0)),
        "motion 'again': joint 'A' is moved by motion 'turn' already; remove one of them",
    ),
    "two motions of one freedom": (
        lambda: (
            m := mechanisms.four_bar(),
            m.motion("turn", "A", lambda t: t),
            m.motion("rock", "D", lambda t: 2 * t),
            cd.simulate(m.build(), 1.0),
        ),
        "the prescribed motions 'turn', 'rock' conflict; a freedom follows one motion",
    ),
    "numbers without a name": (
        lambda: arm().body("block", 2.0),
        "body 'block': 2 arguments without a name, and it takes 1; name the others: body(name, mass=",
    ),
    "a spring's k": (
        lambda: arm().spring("s", "ground", "rod", k=1.0),
        "spring 's': there is no argument 'k'; it is called stiffness here",
    ),
    "a spring without length": (
        lambda: arm().spring("s", "ground", "rod", stiffness=1.0),
        "spring 's': length is missing: spring(name, body1, body2,",
    ),
    "an axis of a joint": (
        lambda: arm().joint("B", cd.Revolute(), "ground", "rod", axis=(0, 0, 1)),
        "joint 'B': there is no argument 'axis'; the axis belongs to the type: cd.Revolute(axis=...)",
    ),
    "the world": (lambda: arm().joint("B", cd.Revolute(), "world", "rod"), "what does not move is 'ground'"),
    "a force as wrench": (lambda: arm().wrench("w", "rod", (0, 0, 5)), "a force alone is (0, 0, 0, fx, fy, fz)"),
    "a frame for a body": (
        lambda: (
            (m := arm()).frame("tip", "rod", at=(1, 0, 0.5)) and m.spring("s", m.ground, "tip", stiffness=1, length=1)
        ),
        "body2 'tip' is not a body but a frame; give its body 'rod', and the point (1, 0, 0.5) as at2",
    ),
    "gravity as a number": (
        lambda: cd.Mechanism("m", gravity=-9.81),
        "gravity must be 3 numbers: gravity=(0, 0, -9.81)",
    ),
    "a typo of an attribute": (lambda: setattr(arm(), "gravty", (0, 0, 0)), "did you mean 'gravity'?"),
    "a number of a model": (
        lambda: setattr(FOUR_BAR.bodies[0], "mass", 2.0),
        "its mass cannot be changed; build it anew, or free the number: model.free('crank.mass'",
    ),
    "a method of others": (
        lambda: arm().add_body("b"),
        "a Mechanism has no attribute 'add_body'; write mechanism.body(...)",
    ),
    "a force": (lambda: arm().force("push", "rod", (0, 0, 1)), "a constant force is mechanism.wrench(...)"),
    "dt": (lambda: cd.simulate(DOUBLE, 1.0, STILL, dt=0.01), "there is no argument 'dt'; it is called step here"),
    "a time span": (
        lambda: cd.simulate(DOUBLE, (0, 10)),
        "duration is one number of seconds, got (0, 10); the start is",
    ),
    "a method in capitals": (lambda: cd.simulate(DOUBLE, 1.0, method="RK4"), "did you mean 'rk4'?"),
    "a method of SciPy": (lambda: cd.simulate(DOUBLE, 1.0, method="RK45"), "take 'dormand_prince': explicit, order 5"),
    "Kane's method": (lambda: cd.forward_dynamics(DOUBLE, STILL, STILL, formulation="Kane"), "take 'spatial'"),
    "a name of the catalogue": (lambda: cd.pendulum, "no attribute 'pendulum'; write cd.mechanisms.pendulum()"),
    "a function of others": (lambda: cd.rnea, "no attribute 'rnea'; write cd.inverse_dynamics"),
    "a typo": (lambda: cd.simulte, "did you mean 'simulate'?"),
    "degrees of freedom": (lambda: DOUBLE.dof, "a Model has no attribute 'dof'; write model.nv"),
    "build without brackets": (
        lambda: cd.simulate(arm().build, 1.0),
        "simulate: the first argument must be a model, got the function build; call it: mechanism.build()",
    ),
    "a file for a model": (lambda: cd.mass_matrix("panda.urdf", STILL), "got 'panda.urdf'; cd.load(file) reads a file"),
    "a picture of a configuration": (lambda: DOUBLE.draw("p.png"), "'p.png' looks like a file; write path='p.png'"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_gets_a_sentence_that_says_what_to_write(mistake: str) -> None:
    make, sentence = MISTAKES[mistake]
    with pytest.raises((cd.CardanError, AttributeError)) as caught:
        make()
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_robot_with_a_mimic_joint(tmp_path: Path) -> None:
    model = robot(tmp_path)
    with pytest.raises(cd.UnknownNameError, match=r"did you mean 'r_hand'\?"):
        cd.jacobian(model, np.zeros(3), "hand")
    with pytest.raises(cd.InputError, match=r"driven=\['r_shoulder'\]; or load it with mimic=False, and 'r_grip' will"):
        cd.inverse_dynamics(model, *np.zeros((3, 3)))
    assert cd.inverse_dynamics(robot(tmp_path, mimic=False), *np.zeros((3, 3))).shape == (3,)


def test_what_is_not_a_model_is_told_by_every_function() -> None:
    told = 0
    for name in cd.__all__:
        function = getattr(cd, name)
        if not inspect.isfunction(function):
            continue
        parameters = list(inspect.signature(function).parameters.values())
        if not parameters or parameters[0].name != "model":
            continue
        others = parameters[1:]
        needed = [p for p in others if p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD]
        by_name = {p.name: 1.0 for p in others if p.default is p.empty and p.kind is p.KEYWORD_ONLY}
        for thing in ("panda.urdf", None, STILL, cd.Mechanism.build):
            with pytest.raises(cd.CardanError):
                function(thing, *[1.0] * len(needed), **by_name)
            told += 1
    assert told > 150


def test_attributes_of_a_run_and_the_suffixes_of_its_files(tmp_path: Path) -> None:
    run = cd.simulate(DOUBLE, 0.01, STILL, samples=2)
    for name, own in (("t", "run.time"), ("qdot", "run.v"), ("kinetic_energy", "'kinetic'")):
        with pytest.raises(AttributeError, match=re.escape(own)):
            getattr(run, name)
    assert not hasattr(run, "t")
    for write, suffix, own in (
        (run.save, "csv", "run.to_csv(path)"),
        (run.to_csv, "nc", "run.save(path)"),
        (run.page, "pdf", "run.plot(path=...)"),
        (run.to_csv, "xlsx", "run.to_dataframe(...).to_excel(path)"),
    ):
        with pytest.raises(cd.FileError, match=re.escape(f"for a .{suffix} file call {own}")):
            write(tmp_path / f"run.{suffix}")
    assert not [*tmp_path.iterdir()]


def test_runs_and_models_taken_for_one_another(tmp_path: Path) -> None:
    run = cd.simulate(DOUBLE, 0.01, STILL, samples=2)
    run.save(tmp_path / "run.nc")
    cd.save(DOUBLE, tmp_path / "model.yaml")
    with pytest.raises(cd.FileError, match=r"it is a saved run, not a model; cd\.load_run\(path\) reads it"):
        cd.load(tmp_path / "run.nc")
    with pytest.raises(cd.FileError, match=r"it is a model file, which cd\.load\(path\) reads"):
        cd.load_run(tmp_path / "model.yaml")


def test_reactions_of_what_has_none() -> None:
    m = arm()
    m.motion("turn", "A", lambda t: t)
    run = cd.simulate(m.build(), 0.1, samples=2)
    with pytest.raises(cd.UnknownNameError, match=r"it is no joint, and its forces are run\['turn\.torque'\]"):
        run.reaction("turn")
    with pytest.raises(cd.InputError, match=r"got 'world'; those are 'ground' here"):
        run.reaction("A", axes="world")


def test_lengths_in_millimetres_are_doubted() -> None:
    with pytest.warns(RuntimeWarning, match=r"a mass of 3\.9e\+09 kg; lengths are in m"):
        arm().body("plate", shape=cd.shape.Box((100, 100, 50)), density=7850)


def test_drives_alone_make_a_batch_with_a_warning() -> None:
    """They are likely meant to be over time."""
    with pytest.warns(
        RuntimeWarning, match=r"tau of shape \(5, 2\) makes 5 systems, since its rows are systems"
    ) as told:
        cd.simulate(DOUBLE, 0.01, STILL, tau=np.zeros((5, 2)), samples=2)
    assert told[0].filename == __file__
    cd.simulate(DOUBLE, 0.01, np.zeros((5, 2)), tau=np.zeros((5, 2)), samples=2)
