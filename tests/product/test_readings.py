"""What is read off a run by name: elements, joints, points, reactions; each against another law of mechanics."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np
import pytest

import cardan as cd
from cardan.mechanisms import four_bar

pytestmark = pytest.mark.usefixtures("quick_code")


@cache
def machine() -> cd.Model:
    """A four-bar with an element of every kind, two of them on the joint that closes the loop."""
    m = four_bar()
    m.spring(
        "spring", m.ground, "coupler", stiffness=40.0, length=0.3, damping=2.0, at1=(0.3, 1.0, 0.1), at2=(0.4, 0.1, 0)
    )
    m.damper("damper", "crank", "rocker", damping=3.0, at1=(0.1, 0, 0), at2=(0.2, 0, 0))
    m.bushing("bushing", m.ground, "rocker", stiffness=5.0, damping=0.3, at1=(1.0, 0.2, 0.1))
    m.wrench("load", "coupler", (0, 0, 0.3, 1.0, -2.0, 0.5), at=(0.1, 0, 0))
    m.user_force("own", ["crank", "rocker"], lambda t, poses, twists: [ca.sin(t) * twists[0], -2 * twists[1]])
    m.torsion("torsion", "A", stiffness=3.0, rest=0.4, damping=0.2)
    m.torsion("closing", "C", stiffness=1.5, rest=1.0)
    m.friction("friction", "C", viscous=0.4, coulomb=0.1)
    m.drive("motor", "A", lambda t, q, v: 2.0 * ca.cos(t) - 0.1 * v)
    return m.build()


@cache
def states(count: int = 12) -> cd.Trajectory:
    """Consistent random states of two machines as the samples of a batch."""
    model, rng = machine(), np.random.default_rng(0)
    q, v = cd.assemble(model, model.start() + 0.2 * rng.standard_normal((2, count, model.nq)))
    v = cd.assemble(model, q, 3 * rng.standard_normal((2, count, model.nv)))[1]
    return cd.Trajectory(model, np.linspace(0.0, 1.0, count), q, v)


def along(run: cd.Trajectory, h: float) -> cd.Trajectory:
    """The same states a moment later."""
    model = run.model
    q = cd.plus(model, run.q, h * run.v + h * h / 2 * run.a)
    return cd.Trajectory(model, run.time, q, run.v + h * run.a)


def rate_of(run: cd.Trajectory, name: str, h: float = 1e-5) -> np.ndarray:
    return (along(run, h)[name] - along(run, -h)[name]) / (2 * h)


def close(a: Any, b: Any, tolerance: float = 1e-7) -> bool:
    return bool(np.abs(a - b).max() <= tolerance * max(np.abs(b).max(), 1e-12))


def test_elements_give_the_power_of_the_run() -> None:
    run = states()
    elements = [force.name for force in run.model.forces]
    stored = [name for name in elements if f"{name}.energy" in run.names()]
    assert stored == ["spring", "bushing", "torsion", "closing"]
    given = sum(run[f"{name}.power"] for name in elements) + sum(rate_of(run, f"{name}.energy") for name in stored)
    assert close(given, run.power)
    for name in ("spring", "damper"):
        assert close(run[f"{name}.power"], -run[f"{name}.force"] * run[f"{name}.rate"], 1e-12)
        assert close(rate_of(run, f"{name}.length"), run[f"{name}.rate"])
    assert close(run["closing.power"], run["closing.torque"] * run["closing.rate"], 1e-12)


def test_a_spring_is_between_its_points() -> None:
    run = states()
    d = run.position("coupler", (0.4, 0.1, 0)) - np.array([0.3, 1.0, 0.1])
    length = np.linalg.norm(d, axis=-1)
    assert run["spring.length"].shape == (2, 12) and close(run["spring.length"], length, 1e-13)
    assert close(run["spring.force"], 40 * (length - 0.3) + 2 * run["spring.rate"], 1e-12)
    push = run["own.wrench"].reshape(2, 12, 2, 6)
    assert close(push[..., 1, :], -2 * run.twists[..., run.model.body_index("rocker"), :], 1e-12)
    assert close(run["torsion.torque"], -3 * run["torsion.deflection"] - 0.2 * run["A.rate"], 1e-12)


def test_bodies_obey_newton_in_ground_axes() -> None:
    """Reactions in ground axes, and accelerations of centres of mass: each body's forces add up to m a."""
    model, rng = four_bar().build(), np.random.default_rng(1)
    q, v = cd.assemble(model, {"A": rng.uniform(0, 1, 21)}, {"A": rng.standard_normal(21)})
    run = cd.Trajectory(model, np.arange(21.0), q, v)
    forces = {body.name: body.mass * (model.gravity - run.acceleration(body.name, body.com)) for body in model.bodies}
    moments = {name: np.zeros((21, 3)) for name in forces}
    for joint in model.joints:
        w = run.reaction(joint.name, axes="ground")
        where = run.position(model.body_names[joint.child], joint.child_at.position)
        for body, sign in ((joint.child, 1.0), (joint.parent, -1.0)):
            if body >= 0:
                name = model.body_names[body]
                arm = where - run.position(name, model.bodies[body].com)
                forces[name] += sign * w[:, 3:]
                moments[name] += sign * (w[:, :3] + np.cross(arm, w[:, 3:]))
        child = run.poses[:, joint.child, :3, :3]
        assert close(np.einsum("nij,nj->ni", child, run.reaction(joint.name, axes="child")[:, 3:]), w[:, 3:], 1e-12)
        parent = np.eye(3) if joint.parent < 0 else run.poses[:, joint.parent, :3, :3]
        back = (parent @ run.reaction(joint.name, axes="parent")[:, 3:, None])[..., 0]
        assert close(back, w[:, 3:], 1e-12)
    for k, body in enumerate(model.bodies):
        spin = body.inertia[2, 2] * run.quantity("body_accelerations")[:, k, 2]
        assert np.abs(forces[body.name]).max() < 1e-9 and np.abs(moments[body.name][:, 2] - spin).max() < 1e-9
    assert close(run.acceleration("coupler", (0.3, 0.2, 0)), rate_of_velocity(run), 1e-6)
    with pytest.raises(cd.InputError, match=r"axes must be one of 'joint', 'child', 'parent', 'ground', got 'world'"):
        run.reaction("A", axes="world")
    words = "mobility: 1 freedom, 3 of the tree less 2 independent constraints; 3 more are redundant"
    assert words in model.report()
    figure = run.plot("energy", reactions="A", reaction_axes="ground")
    assert figure.axes[1].get_ylabel().startswith("force of A\nground axes")
    figure = run.plot("A.reaction_force", reactions="A")
    assert all("\njoint axes (" in axes.get_ylabel() for axes in figure.axes)
    with pytest.raises(cd.InputError, match="derivatives, and results on a GPU, are in joint axes"):
        cd.reactions(model, q, v, axes="ground", by="q")


def rate_of_velocity(run: cd.Trajectory, h: float = 1e-5) -> np.ndarray:
    later, before = (along(run, sign * h).velocity("coupler", (0.3, 0.2, 0)) for sign in (1, -1))
    return (later - before) / (2 * h)


def test_cut_joints_have_coordinates() -> None:
    """The angles of a loop add up, also after many turns and with samples half a turn apart."""
    m = cd.Mechanism("cranks", gravity=(0, 0, 0))
    for name, length in (("one", 1.0), ("bar", 3.0), ("two", 1.0)):
        m.body(name, mass=1.0, com=(length / 2, 0, 0), inertia=(1.0, 1.0, 1.0))
    m.joint("A", cd.Revolute(), m.ground, "one", start=0.5)
    m.joint("B", cd.Revolute(), "one", "bar", at=(1, 0, 0), start=-0.5)
    m.joint("D", cd.Revolute(), m.ground, "two", at=(3, 0, 0), start=0.5)
    m.joint("C", cd.Revolute(), "bar", "two", at=(3, 0, 0), child_at=(1, 0, 0))
    m.motion("turning", "A", lambda t: 0.5 + 20.0 * t)
    t = np.linspace(0.0, 2.0, 20)  # 2.1 rad from sample to sample
    run = cd.Trajectory(
        m.build(cut=["C"]), t, np.outer(0.5 + 20 * t, [1, -1, 1]), np.tile([20.0, -20.0, 20.0], (20, 1))
    )
    gap = run["A.coordinate"] + run["B.coordinate"] + run["C.coordinate"] - run["D.coordinate"]
    assert np.abs(gap - gap[0]).max() < 1e-9 and close(np.ptp(run["C.coordinate"]), 40.0)
    assert close(run["C.rate"], run["D.rate"] - run["A.rate"] - run["B.rate"], 1e-9)
    assert close(run["turning.power"], run.power, 1e-9) and close(run["turning.rate"], np.full(20, 20.0), 1e-9)


def test_a_motion_needs_the_torque_of_inverse_dynamics() -> None:
    m = cd.Mechanism("arm", gravity=(0, -9.81, 0))
    m.body("upper", mass=2.0, com=(0.5, 0, 0), inertia=cd.inertia.rod(2.0, 1.0))
    m.body("lower", mass=1.0, com=(0.4, 0, 0), inertia=cd.inertia.rod(1.0, 0.8))
    m.joint("shoulder", cd.Revolute(), m.ground, "upper")
    m.joint("elbow", cd.Revolute(), "upper", "lower", at=(1, 0, 0))
    free = m.build()
    m.motion("swing", "shoulder", lambda t: ca.sin(2 * t))
    t = np.linspace(0.0, 1.0, 11)
    q, v = np.stack([np.sin(2 * t), np.cos(3 * t)], axis=-1), np.stack([2 * np.cos(2 * t), -2 * np.sin(t)], axis=-1)
    run = cd.Trajectory(m.build(), t, q, v)
    tau = cd.inverse_dynamics(free, run.q, run.v, run.a)
    assert close(run["swing.torque"], tau[:, 0], 1e-9) and np.abs(tau[:, 1]).max() < 1e-9
    assert close(run["swing.power"], tau[:, 0] * run["shoulder.rate"], 1e-9)


def test_gears_and_constraints_do_no_work() -> None:
    """The forces of a gear along its joints, and of a constraint, are those that the equations of motion lack."""
    m = cd.Mechanism("train", gravity=(0, -9.81, 0))
    for name in ("one", "two"):
        m.body(name, mass=1.0, com=(0.3, 0, 0), inertia=(0.1, 0.1, 0.1))
        m.joint(name, cd.Revolute(), m.ground, name)
    m.body("slider", mass=1.0, inertia=(0.1, 0.1, 0.1))
    m.joint("plane", cd.Planar(), m.ground, "slider")
    free = m.build()
    m.couple("gear", {"one": 1.0, "two": 3.0})
    m.constraint("wall", ["slider"], lambda t, poses, twists: poses[0].position[0])
    rng = np.random.default_rng(3)
    q, v = cd.assemble(m.build(), rng.standard_normal((5, 5)), rng.standard_normal((5, 5)))
    run = cd.Trajectory(m.build(), np.arange(5.0), q, v)
    lacking = cd.inverse_dynamics(free, q, v, run.a)
    assert np.allclose(run["gear.torque"], lacking[:, :2]) and run.about("gear.torque").labels == ("one", "two")
    assert np.allclose(run["wall.force"], lacking[:, 2]) and run.about("wall.force").units == ("N",)
    assert np.allclose((run["gear.torque"] * v[:, :2]).sum(axis=-1), 0)


def test_names(tmp_path: Path) -> None:
    run = states()
    names = run.names()
    assert run._ipython_key_completions_() == names and len(set(names)) == len(names)
    for name in names:
        about, value = run.about(name), run[name]
        assert value.shape[:2] == (2, 12) and value[0, 0].size == max(len(about.labels), 1) == len(about.units), name
        if about.labels:
            assert np.array_equal(run[f"{name}.{about.labels[-1]}"], value.reshape(2, 12, -1)[..., -1]), name
    assert run.names("spring.") == [f"spring.{x}" for x in ("length", "rate", "force", "power", "energy")]
    for wrong, hint in (
        ("spring.forc", r"is not a quantity of a run; did you mean 'spring.force'\?$"),
        ("motor", r"there are 'motor.torque', 'motor.rate', 'motor.power'; run.names\(\) lists all"),
        ("A.q", r"there are 'A.coordinate', 'A.rate', .*; run.names"),
        ("crank.speed", r"there are 'crank.position', 'crank.velocity', .*; run.names"),
        ("reactions.A", r"there are 'reactions.A.moment x', 'reactions.A.moment y'"),
        (["q"], r"\['q'\] is not"),
    ):
        with pytest.raises((cd.UnknownNameError, cd.InputError), match=hint):
            run.quantity(wrong)  # type: ignore[arg-type]
    chosen = ("spring.force", "crank.position", "load.wrench", "C.coordinate")
    frame = run.to_dataframe(*chosen)
    assert frame.attrs["units"]["crank.position.y"] == "m" and frame.attrs["units"]["load.wrench.moment x"] == "N m"
    assert np.array_equal(frame["C.coordinate"], run["C.coordinate"].ravel())
    data = run.dataset(*chosen)
    assert data["crank.position"].sel(direction="y").dims == ("system", "time")
    run.save(tmp_path / "run.nc", *chosen)
    again = cd.load_run(tmp_path / "run.nc")
    assert all(np.array_equal(again[name], run[name]) for name in chosen)
    figure = run[0].plot("spring.force", "load.wrench", "energy")
    assert [at.get_ylabel() for at in figure.axes] == [
        "spring.force\n(N)", "load.wrench\n(N m)", "load.wrench\n(N)", "energy\n(J)",
    ]  # fmt: skip
    with pytest.raises(
        cd.UnknownNameError, match=r"neither a panel nor a quantity of the run; did you mean 'spring.rate'"
    ):
        run.plot("spring.rte")


def test_equal_names_are_told_apart_and_systems_that_stopped_are_padded() -> None:
    m = cd.Mechanism("same", gravity=(0, -9.81, 0))
    m.body("arm", mass=1.0, com=(0.5, 0, 0), inertia=(0.1, 0.1, 0.1))
    m.joint("arm", cd.Revolute(), m.ground, "arm")
    m.drive("arm", "arm", 1.0)
    model = m.build().free("arm.mass")
    q, v = np.random.default_rng(2).standard_normal((2, 2, 21, 1))
    time = np.tile(np.linspace(0, 1, 21), (2, 1))
    for x in (time, q, v):
        x[1, 12:] = np.nan
    run = cd.Trajectory(model.at({"arm.mass": [0.5, 5.0]}), time, q, v)
    with pytest.raises(cd.UnknownNameError, match=r"did you mean 'body arm.acceleration'|'joint arm.acceleration'"):
        run["arm.acceleration"]
    spin, moved = run["joint arm.acceleration"], run["body arm.acceleration"]
    assert np.isnan(spin[1, -1]) and np.isnan(moved[1, -1]).all() and np.isfinite(spin[0]).all()
    assert np.isnan(run["arm.torque"][1, -1]) and run["arm.torque"][0, -1] == 1.0
    tip = run.acceleration("arm", (1.0, 0, 0))
    assert np.allclose(np.linalg.norm(tip, axis=-1), np.hypot(spin, run["joint arm.rate"] ** 2), equal_nan=True)


def test_a_kind_of_ones_own_has_readings() -> None:
    def law(f: cd.model.force.Force, t: object, q: ca.SX, v: ca.SX) -> ca.SX:  # type: ignore[name-defined]
        return -f["k"] * q**3

    cubic = cd.ForceKind(
        "cubic", "joint", law, fields={"k": cd.Field("N m/rad^3", "N m/rad^3")},
        readings={"cube": cd.Reading("rad^3", "cube of the angle", lambda f, t, q, v: q**3)},
    )  # fmt: skip
    m = cd.Mechanism("own")
    m.body("arm", mass=1.0, com=(0.5, 0, 0), inertia=(0.1, 0.1, 0.1))
    m.joint("A", cd.Revolute(), m.ground, "arm")
    m.force("c", cubic, "A", k=2.0)
    run = cd.Trajectory(m.build(), [0.0, 1.0], [[0.5], [0.7]], [[0.0], [1.0]])
    assert np.allclose(run["c.cube"], [0.5**3, 0.7**3]) and np.allclose(run["c.torque"], -2 * run["c.cube"])


def hoop(friction: float | None) -> cd.Mechanism:
    """A hoop on a plane, which rolls, or may slip."""
    m = cd.Mechanism("hoop")
    m.body("hoop", mass=2.0, inertia=cd.inertia.cylinder(2.0, 0.3, 0.02, axis="y"))
    m.joint("float", cd.Free(), m.ground, "hoop", start=(0, 0, 0.3, 1, 0, 0, 0))
    m.roll("rim", "hoop", m.ground, radius=0.3, axis=(0, 1, 0), friction=friction)
    return m


def test_a_contact_that_sticks_is_one_that_rolls() -> None:
    """Point and force of a hard contact, found from the lines of its rows, are those of the constraint."""
    rolling = hoop(None).build()
    q, v = cd.assemble(rolling, rolling.start(), [0.3, 5.0, 0.8, 1.5, 0.0, 0.0])
    rolls = cd.simulate(rolling, 0.5, q, v, samples=6)
    sticks = cd.simulate(hoop(5.0).build(), 0.5, q, v, samples=6)
    for what, near in (("point", 1e-7), ("ground_force", 1e-4)):
        np.testing.assert_allclose(sticks[f"rim.{what}"][1:], rolls[f"rim.{what}"][1:], atol=near, err_msg=what)
    m = cd.Mechanism("puck")  # without friction: on the line through the origin of the body
    m.body("puck", mass=2.0, inertia=(1, 1, 1))
    m.joint("float", cd.Free(), m.ground, "puck", start=(0.4, 0, 0.2, 1, 0, 0, 0))
    m.contact("ice", ["puck"], gap=lambda t, poses, twists: poses[0].position[2] - 0.2)
    run = cd.simulate(m.build(), 0.1, v0=[0, 0, 0, 1.0, 0, 0], method="moreau", step=0.01, samples=3)
    np.testing.assert_allclose(run["ice.point"], run.position("puck"), atol=1e-12)
    np.testing.assert_allclose(run["ice.ground_force"][1:], [[0, 0, 2 * 9.81]] * 2, rtol=1e-12)
