"""Friction that sticks in a closed loop: formulations find the same modes and accelerations."""

import numpy as np
import pytest

import cardan as cd
from cardan.formulation.law_quantities import law_events, law_problem
from cardan.formulation.spatial import SPATIAL
from cardan.model.modes import with_modes
from cardan.structure.kernels import function_of

pytestmark = pytest.mark.usefixtures("quick_code")


def rubbing_four_bar() -> cd.Mechanism:
    """A four-bar with friction in a tree joint, and by the reaction in the joint where the loop is cut."""
    m = cd.Mechanism("four_bar", gravity=(0, -9.81, 0))
    for name, length in (("crank", 1.0), ("coupler", 3.0), ("rocker", 2.5)):
        m.body(name, mass=length, com=(length / 2, 0, 0), inertia=cd.inertia.rod(length, length))
    m.joint("A", cd.Revolute(), m.ground, "crank", start=0.5)
    m.joint("B", cd.Revolute(), "crank", "coupler", at=(1, 0, 0), start=0.2)
    m.joint("D", cd.Revolute(), m.ground, "rocker", at=(3, 0, 0), start=1.5)
    m.joint("C", cd.Revolute(), "coupler", "rocker", at=(3, 0, 0), child_at=(2.5, 0, 0))
    m.friction("fA", "A", coulomb=2.0, static=3.0, stribeck=0.5, stick=True)
    m.friction("fC", "C", coefficient=0.3, radius=0.2, stick=True)
    return m


def four_bar() -> cd.Model:
    """The same as a model."""
    return rubbing_four_bar().build()


def test_formulations_agree_on_rows_with_laws():
    model = four_bar()
    start = cd.assemble(model)[0]
    v = cd.assemble(model, start, [1.0, 0.0, 0.0])[1]
    states = np.array([0.0, 2.0, -0.7])[:, None] * v  # at rest, and sliding both ways
    tau = np.array([[19.0, 0, 0], [60.0, 0, 0]])[:, None]  # about what holds it, and more
    with_spatial = cd.forward_dynamics(model, start, states, tau)
    assert np.abs(with_spatial[0, 0]).max() < 1e-12 and np.abs(with_spatial[1, 0]).min() > 0.1  # sticks; breaks away
    for name in ("absolute", "points"):
        a = cd.forward_dynamics(model, start, states, tau, formulation=name)
        np.testing.assert_allclose(a, with_spatial, rtol=1e-9, atol=1e-9)


def test_a_run_loses_what_friction_takes():
    run = cd.simulate(four_bar(), 1.0, samples=21)
    assert run.statistics["energy_error"] < 1e-7 * run.energy[0]
    lost = np.diff(run.energy)
    assert (lost < 1e-9).all() and run.energy[0] - run.energy[-1] > 1.0
    reaction = np.linalg.norm(run["C.reaction_force"], axis=-1)
    slides = run["fC.mode"][:, 0] == 0
    np.testing.assert_allclose(np.abs(run["fC.force"][slides]), 0.3 * 0.2 * reaction[slides], rtol=1e-9)


def hit_four_bar() -> cd.Model:
    """A four-bar that sticks, slides with friction by the reaction of a pin, and hits a stop."""
    m = rubbing_four_bar()
    m.stop("end", "A", lower=-2.5, restitution=0.4)
    return m.build()


def test_implicit_methods_agree_with_an_explicit_one_in_all_coordinates():
    """Impact, friction by a reaction, and reversal where the joint of the loop is at rest but the mechanism is not."""
    model = hit_four_bar()
    exact = cd.simulate(model, 2.0, assemble=True, samples=11, rtol=1e-11, atol=1e-13)
    assert [event.name for event in exact.events] == ["fC: sliding", "end: lower", "fA: sliding"]
    runs = [("gear", name) for name in ("spatial", "absolute")]
    for method, name in (*runs, ("alpha", "spatial")):
        step, bound = ({"step": 2e-3}, 4e-4) if method == "alpha" else ({}, 1e-5)
        run = cd.simulate(model, 2.0, assemble=True, samples=11, formulation=name, method=method, **step)
        assert [event.name for event in run.events] == [event.name for event in exact.events]
        np.testing.assert_allclose(run.q, exact.q, atol=bound, err_msg=f"{method} {name}")
        times = [[event.time for event in r.events] for r in (run, exact)]
        np.testing.assert_allclose(*times, atol=bound, err_msg=f"{method} {name}")
        np.testing.assert_allclose(run.events[1].impulse, exact.events[1].impulse, atol=10 * bound)
        assert run.statistics["energy_error"] < 10 * bound * exact.energy[0]


def test_tables_and_laws_in_one_model():
    """A drive by a table, with stops and friction by a reaction, moves as one by the function that it is made of."""
    x = np.linspace(-1, 1, 9)
    answers = []
    for pull in (cd.table(x, x**3), lambda x: x**3):
        m = cd.Mechanism("block")
        m.body("block", mass=1.0, inertia=(1.0, 1.0, 1.0))
        m.joint("slide", cd.Prismatic((1, 0, 0)), m.ground, "block")
        m.drive("pull", "slide", lambda t, q, v, pull=pull: -20 * pull(q))
        m.stop("ends", "slide", lower=-0.3, upper=0.3, restitution=0.5)
        m.friction("rub", "slide", coefficient=0.1, stick=True)
        answers.append(cd.forward_dynamics(m.build(), [[0.1], [0.3]], [[0.2], [0.0]]))
    np.testing.assert_allclose(answers[0], answers[1], rtol=1e-12)


def test_many_stops_take_few_operations():
    """Two stops of each of eight joints: their forces take less than their equations, in which there is no choice."""
    m = cd.Mechanism("chain")
    for k in range(8):
        m.body(f"b{k}", mass=1.0, com=(0.1, 0, 0), inertia=(0.01, 0.02, 0.03))
        m.joint(f"j{k}", cd.Revolute(axis=(0, 1, 0)), f"b{k - 1}" if k else "ground", f"b{k}", at=(0.3 * (k > 0), 0, 0))
        m.stop(f"s{k}", f"j{k}", lower=-1.0, upper=1.0)
    model = with_modes(m.build())
    equations, events = (
        function_of(model, quantity(model, SPATIAL, ())).n_instructions() for quantity in (law_problem, law_events)
    )
    assert events < 2 * equations


def test_a_sampled_controller_a_lock_and_inputs_with_a_stop_and_friction_by_implicit_methods():
    """A slide follows a reference into a stop, with a brake that events close and open; batches have their friction."""
    m = cd.Mechanism("servo")
    m.body("b", mass=1.0)
    m.joint("x", cd.Prismatic((1, 0, 0)), m.ground, "b")
    m.friction("rub", "x", coefficient=0.1, stick=True)
    m.stop("end", "x", upper=0.6, restitution=0.3)
    m.lock("brake", "x")
    m.controller("servo", "x", cd.PID(kp=20.0, ki=15.0, kd=3.0), every=0.05)
    hold = cd.Event("hold", lambda s: s.t - 1.73, then=cd.lock("brake"))
    go = cd.Event("go", lambda s: s.t - 2.1, then=cd.release("brake"))
    model = m.build().free("rub.coefficient").at({"rub.coefficient": [0.1, 0.3]})
    inputs = {"servo.reference": ([0.0, 0.5, 1.5], [0.0, 0.8, 0.2])}
    runs = []
    for method in ("dormand_prince", "gear", "alpha"):
        step = {"step": 1e-3} if method == "alpha" else {}
        runs.append(cd.simulate(model, 2.5, inputs=inputs, events=[hold, go], samples=11, method=method, **step))
    exact = runs[0]
    assert {event.name for event in exact.events} == {"hold", "go", "end: upper", "rub: sliding"}
    for run in runs[1:]:
        np.testing.assert_allclose(run.q, exact.q, atol=1e-6)
        np.testing.assert_allclose(run["servo.effort"], exact["servo.effort"], atol=1e-4)
        np.testing.assert_array_equal(run["rub.mode"], exact["rub.mode"])
