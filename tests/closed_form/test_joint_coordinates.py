"""Stops, friction and locks along single coordinates of joints that have several, against closed forms."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

import cardan as cd
from cardan.model.joint import CYLINDRICAL

pytestmark = pytest.mark.usefixtures("quick_code")
G = 9.81


def sleeve(axis, gravity=(0, 0, -G), mass=2.0, spin=0.2, start=(0.0, 0.0)) -> cd.Mechanism:
    """A body that turns about and slides along an axis; `spin` is its inertia about it, kg m^2."""
    m = cd.Mechanism("sleeve", gravity=gravity)
    m.body("b", mass=mass, inertia=(0.3, 0.3, spin) if axis[2] else (spin, 0.3, 0.3))
    m.joint("A", cd.Cylindrical(axis=axis), m.ground, "b", start=start)
    return m


def test_a_sleeve_bounces_while_it_spins_on() -> None:
    """`A[1]` and a list with None say the same; a batch is its systems; `moreau` comes nearer as its step shrinks."""
    m = sleeve((0, 0, 1), start=(0.0, 1.0))
    m.stop("floor", "A[1]", lower=0.0, restitution=0.5)
    other = sleeve((0, 0, 1), start=(0.0, 1.0))
    other.stop("floor", "A", lower=(None, 0.0), restitution=0.5)
    model, starts = m.build(), np.array([[0.0, 1.0], [0.0, 0.4]])
    run = cd.simulate(model, 1.0, starts, [3.0, 0.0], samples=11)
    fall = np.sqrt(2 * starts[:, 1] / G)
    np.testing.assert_allclose(run.q[:, -1, 0], 3.0, rtol=1e-12)  # it turns on
    assert [e.time for e in run.events if e.system == (0,)] == pytest.approx([fall[0], 2 * fall[0]], rel=1e-12)
    after = 1.0 - 2 * fall[0]
    assert run.q[0, -1, 1] == pytest.approx(0.25 * G * fall[0] * after - G * after**2 / 2, rel=1e-9)
    np.testing.assert_array_equal(run["floor.gap"], run.q[..., 1])
    same = cd.simulate(other.build(), 1.0, starts[1], [3.0, 0.0], samples=11)
    np.testing.assert_array_equal(same.q, run.q[1])
    for h in (4e-3, 1e-3):
        stepped = cd.simulate(model, 1.0, starts[0], [3.0, 0.0], method="moreau", step=h, samples=11)
        assert np.abs(stepped.q - run.q[0]).max() < 8 * h


@pytest.mark.parametrize("pressed", [False, True])
def test_turn_and_slide_rub_each_by_itself(pressed) -> None:
    """A sleeve on a level rod: its turn stops in the time I w / M, its slide in m v / F.

    With a coefficient the force across the rod counts, here the weight: M = mu r m g and F = mu m g.
    """
    m = sleeve((1, 0, 0))
    mu, r, M, F = 0.1, 0.08, 0.3, 1.5
    if pressed:
        M, F = mu * r * 2.0 * G, mu * 2.0 * G
        m.friction("f", "A", coefficient=mu, radius=r, stick=True)
    else:
        m.friction("f", "A", coulomb=(M, F), stick=True)
    model, v0 = m.build(), np.array([1.0, -2.0])
    assert model.lawful_rows.names == ["f: sliding[0]", "f: sliding[1]"]
    stops = np.array([0.2 * 1.0 / M, 2.0 * 2.0 / F])
    run = cd.simulate(model, 1.2 * stops.max(), v0=v0, samples=9)
    assert sorted(e.time for e in run.events) == pytest.approx(sorted(stops), rel=1e-9)
    np.testing.assert_allclose(run.q[-1], v0 * stops / 2, rtol=1e-9)
    np.testing.assert_allclose(run["f.force"][0], [-M, F], rtol=1e-9)
    stepped = cd.simulate(model, 1.2 * stops.max(), v0=v0, samples=9, method="moreau", step=2e-3)
    np.testing.assert_allclose(stepped.q, run.q, atol=4e-3)
    assert np.abs(stepped.v[-1]).max() < 1e-12


def test_a_stop_of_a_universal_joint_leaves_its_other_angle_alone() -> None:
    """A pendulum on a cross: swinging about one axis alone, it is a physical pendulum between stops."""
    m = cd.Mechanism("cross", gravity=(0, 0, -G))
    m.body("b", mass=1.0, com=(0, 0, -0.5), inertia=(0.1, 0.1, 0.02))
    m.joint("U", cd.Universal(), m.ground, "b", start=(0.0, 0.4))
    m.stop("side", "U[1]", lower=-0.1, restitution=0.7)
    m.lock("held", "U[0]", closed=True)
    run = cd.simulate(m.build(), 1.0, samples=21)
    I, drop = 0.1 + 0.25, 0.5 * G * (np.cos(0.1) - np.cos(0.4))
    first = run.events[0]
    assert first.q[1] == pytest.approx(-0.1, abs=1e-12)
    speed = np.sqrt(2 * drop / I)
    assert first.v[1] == pytest.approx(-speed, rel=1e-7) and first.v_after[1] == pytest.approx(0.7 * speed, rel=1e-7)
    assert np.abs(run.q[:, 0]).max() < 1e-12 and run.q[:, 1].min() > -0.1 - 1e-12


def test_a_compliant_stop_of_one_coordinate_conserves_energy() -> None:
    m = sleeve((0, 0, 1), start=(0.0, 0.1))
    m.stop("floor", "A[1]", lower=0.0, stiffness=5e3)
    m.torsion("spring", "A[0]", stiffness=1.0, rest=0.5)
    run = cd.simulate(m.build(), 1.0, v0=[3.0, 0.0], samples=41, rtol=1e-10, atol=1e-12)
    assert np.ptp(run.energy) < 1e-7 and run.q[:, 1].min() < -0.02
    w = np.sqrt(1.0 / 0.2)
    turn = 0.5 - 0.5 * np.cos(w * run.time) + 3.0 / w * np.sin(w * run.time)
    np.testing.assert_allclose(run.q[:, 0], turn, atol=1e-7)
    np.testing.assert_allclose(run["spring.torque"], 0.5 - run.q[:, 0], atol=1e-12)


def slotted(cut: str) -> cd.Model:
    """A crank and a rod whose end runs in a slot, held there by a motion; the slot has ends and friction."""
    m = cd.Mechanism("slotted", gravity=(0, -G, 0))
    for name in ("crank", "rod"):
        m.body(name, mass=1.0, com=(0.5, 0, 0), inertia=cd.inertia.cylinder(1.0, 0.05, 1.0, axis="x"))
    m.joint("A", cd.Revolute(), m.ground, "crank", start=0.7)
    m.joint("B", cd.Revolute(), "crank", "rod", at=(1, 0, 0), start=-1.4)
    m.joint("C", cd.Planar(), m.ground, "rod", child_at=(1, 0, 0))
    m.motion("slot", "C[1]", 0.0)
    m.stop("end", "C[0]", upper=1.7, restitution=0.3)
    m.friction("f", "C[0]", coulomb=2.0, stick=True)
    m.cut = (cut,)
    return m.build()


def test_a_stop_acts_where_a_joint_closes_a_loop_as_in_the_tree() -> None:
    """The same machine cut at C, and with C in the tree; all formulations, of which one in a run; `moreau`."""
    runs = {}
    for cut in ("C", "B"):
        model = slotted(cut)
        q, v = cd.assemble(model, {"A": 0.7, "B": -1.4} if cut == "C" else None)
        if cut == "B":  # the same place in other coordinates
            q = cd.assemble(model, {"A": 0.7, "C": runs["C"]["C.coordinate"][0]})[0]
        runs[cut] = cd.simulate(model, 0.8, q, v, samples=9)
        if cut == "C":
            run = cd.simulate(model, 0.8, q, v, samples=9, formulation="points")
            np.testing.assert_allclose(run.q, runs["C"].q, atol=1e-7)
            stepped = cd.simulate(model, 0.8, q, v, samples=9, method="moreau", step=1e-3)
            np.testing.assert_allclose(stepped.q, run.q, atol=5e-3)
    one, two = runs["C"], runs["B"]
    assert len(one.events) > 2 and one.events[0].name == "end: upper"
    np.testing.assert_allclose(one["C.coordinate"], two["C.coordinate"], atol=1e-7)
    np.testing.assert_allclose(one["end.force"], two["end.force"], atol=1e-6)
    np.testing.assert_allclose(one["slot.force"], two["slot.force"], atol=1e-6)
    assert one["end.gap"].min() > -1e-9


def pump(cut: str) -> cd.Model:
    """A crank drives a piston that turns and slides, by a rod with two balls; all joints that may rub do."""
    m = cd.Mechanism("pump")
    m.body("crank", mass=1.0, com=(0.1, 0, 0), inertia=(0.01, 0.02, 0.02))
    m.body("rod", mass=0.5, com=(0.3, 0, 0), inertia=(0.001, 0.01, 0.01))
    m.body("piston", mass=2.0, inertia=(0.01, 0.02, 0.02))
    m.joint("A", cd.Revolute(axis=(0, 0.2, 1)), m.ground, "crank", start=0.5)
    m.joint("B", cd.Spherical(), "crank", "rod", at=(0.2, 0, 0))
    m.joint("C", cd.Spherical(), "piston", "rod", at=(0, 0.02, 0), child_at=(0.6, 0, 0))
    m.joint("D", cd.Cylindrical(axis=(1, 0, 0)), m.ground, "piston", at=(0, 0.05, 0.03), start=(0.0, 0.75))
    m.friction("bore", "D", coefficient=0.15, radius=0.04, static_coefficient=0.2, coulomb=(0.01, 0.3), stick=True)
    m.friction("ball", "B", coefficient=0.1, radius=0.01, stick=True)
    m.stop("end", "D[1]", lower=0.1)
    m.cut = (cut,)
    return m.build()


def test_friction_by_reactions_is_the_same_wherever_the_loop_is_cut() -> None:
    """Reactions of a cylindrical and of a ball joint bound their friction, in the tree and cut."""
    one, found = pump("D"), {}
    q = cd.assemble(one)[0]
    v = cd.assemble(one, q, [4.0, 1.0, -2.0, 3.0, *[0.0] * (one.nv - 4)])[1]
    run = cd.simulate(one, 1e-3, q, v, samples=2)
    at, rates = ({name: run[f"{name}.{what}"][0] for name in "ABCD"} for what in ("coordinate", "rate"))
    for cut in "DC":
        model = pump(cut)
        own = [model.joints[link.joint].name for link in model.tree.links]
        x = cd.assemble(model, {name: at[name] for name in own})[0]
        w = cd.assemble(model, x, {name: rates[name] for name in own})[1]
        a = cd.forward_dynamics(model, x, w)
        found[cut] = np.hstack([a[model.v_slice("A")], a[model.v_slice("B")]])
    np.testing.assert_allclose(found["C"], found["D"], rtol=1e-7)
    reaction = run["D.reaction_force"][0]
    bound = np.linalg.norm(reaction[:2])  # z of the joint frame is its axis
    expected = np.array([0.01 + 0.15 * 0.04 * bound, 0.3 + 0.15 * bound])
    np.testing.assert_allclose(np.abs(run["bore.force"][0]), expected, rtol=1e-7)
    whole = np.linalg.norm(run["B.reaction_force"][0])
    assert np.linalg.norm(run["ball.force"][0]) == pytest.approx(0.1 * 0.01 * whole, rel=1e-7)


OWN = replace(CYLINDRICAL, name="own sleeve")


@dataclass(frozen=True)
class OwnSleeve(cd.JointType):
    """A joint of the test's own with two coordinates."""

    kind = OWN


HARDENING = cd.ForceKind(
    "own spring", "joint", lambda f, t, q, v: -f["k"] * q**3, lambda f, q: f["k"] * q[0] ** 4 / 4, {"k": cd.Field()}
)


def test_joints_and_forces_of_ones_own_have_coordinates_too() -> None:
    runs = []
    for type in (OwnSleeve(), cd.Cylindrical()):
        m = cd.Mechanism("own", gravity=(0, 0, -G))
        m.body("b", mass=2.0, inertia=(0.3, 0.3, 0.2))
        m.joint("A", type, m.ground, "b", start=(0.5, 0.3))
        m.stop("floor", "A[1]", lower=0.0, restitution=0.5)
        m.force("spring", HARDENING, "A[0]", k=20.0)
        runs.append(cd.simulate(m.build(), 0.6, samples=7, rtol=1e-10, atol=1e-12))
    np.testing.assert_allclose(runs[0].q, runs[1].q, atol=1e-12)
    assert runs[0].q[:, 1].min() > -1e-12 and runs[0].events[0].name == "floor: lower"
    turning = 0.1 * runs[0].v[:, 0] ** 2 + 5.0 * runs[0].q[:, 0] ** 4
    np.testing.assert_allclose(turning, 5.0 * 0.5**4, rtol=1e-7)
