"""Loops that cannot be: without inertia, with motions that conflict; and loops that hold massless bodies."""

import numpy as np
import pytest

import cardan as cd

pytestmark = pytest.mark.usefixtures("quick_code")


def four_bar(coupler: float = 3.0, rocker: float = 2.5, crank: float = 1.0) -> cd.Mechanism:
    """Masses as given (0 is massless); lengths 1, 3, 2.5 on a base of 3."""
    m = cd.Mechanism("four_bar", gravity=(0, -9.81, 0))
    for name, mass, length in (("crank", crank, 1.0), ("coupler", coupler, 3.0), ("rocker", rocker, 2.5)):
        I = cd.inertia.cylinder(mass, 0.05, length, axis="x") if mass else (0, 0, 0)
        m.body(name, mass=mass, com=(length / 2, 0, 0), inertia=I)
    m.joint("A", cd.Revolute(), m.ground, "crank", start=1.0)
    m.joint("B", cd.Revolute(), "crank", "coupler", at=(1, 0, 0), start=-0.7)
    m.joint("D", cd.Revolute(), m.ground, "rocker", at=(3, 0, 0), start=1.5)
    m.joint("C", cd.Revolute(), "coupler", "rocker", at=(3, 0, 0), child_at=(2.5, 0, 0))
    return m


@pytest.mark.parametrize("formulation", ["spatial", "newton_euler", "absolute", "relative"])
def test_a_massless_coupler_is_the_limit_of_a_light_one(formulation: str) -> None:
    massless, light = four_bar(coupler=0.0).build(), four_bar(coupler=1e-7).build()
    q, v = cd.assemble(massless, v=np.ones(3))
    a = cd.forward_dynamics(massless, q, v, formulation=formulation)
    np.testing.assert_allclose(a, cd.forward_dynamics(light, q, v), rtol=1e-5)


def test_a_loop_without_inertia_is_refused() -> None:
    model = four_bar(0.0, 0.0, 0.0).build()
    with pytest.raises(cd.ModelError, match="can move without moving any inertia"):
        cd.forward_dynamics(model, model.start(), np.zeros(3))


def test_two_motions_that_conflict_are_refused() -> None:
    m = four_bar()
    m.motion("turn", "A", lambda t: 1.0 + t)
    m.motion("rock", "D", lambda t: 1.5 + 2 * t)
    model = m.build()
    with pytest.raises(cd.ModelError, match=r"(conflicts with the other constraints|cannot be assembled)"):
        cd.forward_dynamics(model, model.start(), np.zeros(3))


def test_a_cut_that_takes_a_body_from_the_ground_is_refused() -> None:
    m = four_bar()
    with pytest.raises(cd.ModelError, match=r"body 'crank': .*'A'.* cut"):
        m.build(cut=["A", "B"])
    with pytest.raises(cd.UnknownNameError, match="cut 'E' is not a joint"):
        m.build(cut=["E"])


def test_rows_that_are_nothing_but_rounding_do_not_count() -> None:
    """A planar joint closing a mechanism that is planar anyway, in a plane askew to all axes."""
    R = cd.Pose(rpy=(0.3, 0.4, 0.5)).rotation
    m = cd.Mechanism("askew")
    for name in "ab":
        m.body(name, mass=1.0, com=(0.1, 0.05, 0), inertia=(0.1, 0.2, 0.25))
    m.joint("A", cd.Revolute(axis=R[:, 2]), m.ground, "a")
    m.joint("B", cd.Revolute(axis=R[:, 2]), "a", "b", at=R @ (0.3, 0.1, 0))
    m.joint("P", cd.Planar(normal=R[:, 2]), m.ground, "b", child_at=R @ (-0.3, -0.1, 0))
    model = m.build()
    assert (cd.redundancy(model).rank, cd.redundancy(model).freedoms) == (0, 2)
    q, v = cd.assemble(model, v=np.array([1.0, -2.0]))
    a = [cd.forward_dynamics(model, q, v, formulation=way) for way in ("spatial", "absolute", "relative")]
    np.testing.assert_allclose(a[1], a[0], rtol=1e-10)
    np.testing.assert_allclose(a[2], a[0], rtol=1e-10)


@pytest.mark.parametrize("formulation", ["spatial", "absolute", "points"])
def test_a_motion_is_needed_only_while_the_run_lasts(formulation: str) -> None:
    """The rocker's prescribed angle is out of reach at t = 0, and again soon after the end of the run."""
    m, free = four_bar(), four_bar().build()
    q, _ = cd.assemble(free)
    q, v = cd.assemble(free, q, [0.0, 0.0, 20.0], hold=("D",))
    m.motion("rock", "D", lambda t: q[2] + 20.0 * (t - 2.0))
    model = m.build()
    run = cd.simulate(model, 0.01, q, v, start=2.0, formulation=formulation, samples=3)
    np.testing.assert_allclose(run.coordinate("D"), q[2] + 20.0 * (run.time - 2.0), atol=1e-12)
    assert run.residuals.position.max() < 1e-12
    a = cd.forward_dynamics(model, q, v, t=2.0, formulation=formulation)
    assert a[2] == pytest.approx(0.0, abs=1e-9)


def test_two_motions_that_fit_one_another_are_taken() -> None:
    """A crank and a rocker of a parallelogram, both prescribed, at a time when they can be and at one when not."""
    m = cd.mechanisms.parallelogram()
    angle = float(m.build().start()[0])
    m.motion("one", "A1", lambda t: angle + (t - 5.0))
    m.motion("two", "A2", lambda t: angle + (t - 5.0) + 0.1 * ((t - 5.0) * (t - 6.0)) ** 2 * (t < 5.0))
    model = m.build()
    run = cd.simulate(model, 0.5, start=5.0, samples=3)
    np.testing.assert_allclose(run.coordinate("A1"), angle + run.time - 5.0, atol=1e-10)
    with pytest.raises(cd.ModelError, match=r"conflicts with the other constraints|cannot be assembled"):
        cd.simulate(model, 0.5, start=3.0)
