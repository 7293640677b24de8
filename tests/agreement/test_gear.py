"""Gear's method and the multistep methods: the same motion in every formulation, events, failures, batches."""

import _thread
import threading
from dataclasses import replace
from typing import Any

import casadi as ca
import numpy as np
import pytest

import cardan as cd
from cardan import mechanisms
from cardan.errors import InputError, LoopError
from cardan.formulation.spatial import SPATIAL
from cardan.integrate.integrators import Request
from cardan.integrate.stepper import Outcome
from cardan.integrate.sundials.equations import ImplicitSystem
from cardan.integrate.sundials.stepper import GearStepper, MultistepStepper

pytestmark = pytest.mark.usefixtures("quick_code")

FORMULATIONS = ["spatial", "newton_euler", "absolute", "absolute_body", "relative", "points"]
FORMULAS = {"BDF": {}, "Adams": {"max_order": 12}}
TIGHT = Request(rtol=1e-11, atol=1e-12)


def run(stepper: Any, q: Any, v: Any, *times: float) -> tuple[np.ndarray, np.ndarray]:
    """States (len(times), B, n) of systems that start at time 0."""
    stepper.begin(0.0, np.atleast_2d(q), np.atleast_2d(v))
    found = [stepper.advance(t) for t in times]
    assert not any(a.outcome.any() for a in found), [a.message for a in found]
    return np.stack([a.q for a in found]), np.stack([a.v for a in found])


def pendulum(**more: Any) -> cd.Mechanism:
    """A point mass of 1 kg, 1 m from a hinge along z; gravity 1 m/s^2 along -y, so that `q'' = -sin q`."""
    m = cd.Mechanism("pendulum", gravity=(0, -1, 0), **more)
    m.body("bob", mass=1.0, com=(0, -1, 0), inertia=np.diag([1e-9, 1e-9, 1e-9]))
    m.joint("A", cd.Revolute(axis=(0, 0, 1)), m.ground, "bob")
    return m


def whirling_pendulum_time(v0: float, angle: float) -> float:
    """When a pendulum that starts at the bottom with `v0` > 2 has turned by an angle: an elliptic integral."""
    from scipy.special import ellipkinc

    return float(2 / v0 * ellipkinc(angle / 2, 4 / v0**2))


@pytest.mark.parametrize("formulation", FORMULATIONS)
def test_whirling_pendulum_keeps_count_of_its_turns(formulation: str) -> None:
    """The only sample is ten turns after the start, where an elliptic integral says."""
    end = whirling_pendulum_time(2.5, 20 * np.pi)
    q, v = run(GearStepper(pendulum().build(), formulation, TIGHT), [0.0], [2.5], end)
    assert abs(q[0, 0, 0] - 20 * np.pi) < 1e-6
    assert abs(v[0, 0, 0] - 2.5) < 1e-6


@pytest.mark.parametrize("formula", FORMULAS)
def test_whirling_pendulum_by_multistep_methods(formula: str) -> None:
    end = whirling_pendulum_time(2.5, 20 * np.pi)
    q, _ = run(MultistepStepper(pendulum().build(), formula, TIGHT, **FORMULAS[formula]), [0.0], [2.5], end)
    assert abs(q[0, 0, 0] - 20 * np.pi) < 1e-6


@pytest.mark.parametrize(
    ("formulation", "form"),
    [(case, "stabilised") for case in FORMULATIONS[1:]] + [(case, "index1") for case in FORMULATIONS[::5]],
)
def test_four_bar_moves_alike_in_every_formulation(formulation: str, form: str) -> None:
    model = mechanisms.four_bar().build()
    q0, v0 = cd.assemble(model, v=np.full(model.nv, 0.5))
    times = (0.3, 0.7, 1.5)
    q, v = run(GearStepper(model, request=TIGHT), q0, v0, *times)
    other_q, other_v = run(GearStepper(model, formulation, TIGHT, form=form), q0, v0, *times)
    assert np.abs(q - q0).max() > 0.1
    assert np.abs(other_q - q).max() < 1e-7
    assert np.abs(other_v - v).max() < 1e-6
    assert np.abs(cd.constraint_residual(model, other_q)).max() < 1e-12


@pytest.mark.parametrize("formulation", ["spatial", "absolute", "points"])
def test_prescribed_crank_turns_many_times(formulation: str) -> None:
    """A slider-crank whose crank follows time for four turns: nothing is left to integrate but the constraints."""
    m = mechanisms.slider_crank()
    crank = m.build().coordinate_names[0]
    start = float(m.build().start()[0])
    m.motion("drive", crank, lambda t: start + 8 * np.pi * t + 0.2 * ca.sin(3 * t))
    model = m.build()
    q0, v0 = cd.assemble(model)
    q, v = run(GearStepper(model, formulation), q0, v0, 0.4, 1.0)
    for k, t in enumerate((0.4, 1.0)):
        assert abs(q[k, 0, 0] - (start + 8 * np.pi * t + 0.2 * np.sin(3 * t))) < 1e-10
        assert abs(v[k, 0, 0] - (8 * np.pi + 0.6 * np.cos(3 * t))) < 1e-9
        assert np.abs(cd.constraint_residual(model, q[k], t=t)).max() < 1e-10


@pytest.mark.parametrize("formulation", ["absolute", "relative", "points"])
def test_springs_know_how_often_they_were_wound(formulation: str) -> None:
    """A wheel on a spring, let go after three turns, swings as a cosine."""
    m = cd.Mechanism("clockwork", gravity=(0, 0, 0))
    m.body("wheel", mass=1.0, com=(0, 0, 0), inertia=np.eye(3))
    m.joint("A", cd.Revolute(), m.ground, "wheel")
    m.torsion("spring", "A", stiffness=1.0)
    q, v = run(GearStepper(m.build(), formulation, TIGHT), [6 * np.pi], [0.0], 1.0, 4.0)
    assert np.abs(q[:, 0, 0] - 6 * np.pi * np.cos([1.0, 4.0])).max() < 1e-7
    assert np.abs(v[:, 0, 0] + 6 * np.pi * np.sin([1.0, 4.0])).max() < 1e-7


@pytest.mark.parametrize("formulation", ["spatial", "absolute", "relative"])
def test_gears_whose_ratio_is_no_fraction_turn_many_times(formulation: str) -> None:
    m = cd.Mechanism("gears", gravity=(0, 0, 0))
    for k, name in enumerate("ab"):
        m.body(name, mass=1.0, com=(0, 0, 0), inertia=np.eye(3))
        m.joint(f"on {name}", cd.Revolute(), m.ground, name, at=(k, 0, 0))
    m.couple("mesh", {"on a": 1.0, "on b": np.sqrt(2)})
    model = m.build()
    q0, v0 = cd.assemble(model, v=[1.0, -1 / np.sqrt(2)])
    q, _ = run(GearStepper(model, formulation), q0, v0, 20.0)
    assert np.abs(q[0, 0] - [20.0, -20 / np.sqrt(2)]).max() < 1e-6


def test_gears_whose_ratio_is_no_fraction_need_counted_angles() -> None:
    """Two joints that close loops, so that their turns are not counted, coupled by an irrational ratio."""
    m = cd.Mechanism("gears", gravity=(0, 0, 0))
    for k, name in enumerate("ab"):
        m.body(name, mass=1.0, com=(0, 0, 0), inertia=np.eye(3))
        m.joint(f"on {name}", cd.Revolute(), m.ground, name, at=(k, 0, 0))
        m.joint(f"beside {name}", cd.Revolute(), m.ground, name, at=(k, 0, 0))
    m.couple("mesh", {"beside a": 1.0, "beside b": np.sqrt(2)})
    model = m.build(cut=["beside a", "beside b"])
    with pytest.raises(cd.ModelError, match=r"'mesh': .* no simple fraction, .* 'beside a', whose turns are not"):
        cd.simulate(model, 1.0, method="gear")


def test_jacobian_is_the_derivative_of_the_residual() -> None:
    """By differences at a random point with mu = 0, on a loop with a ball joint in it."""
    model = mechanisms.rscr().build()
    system = ImplicitSystem(model, SPATIAL, stabilised=True)
    layout, rng = system.layout, np.random.default_rng(3)
    y, yp = rng.standard_normal((2, layout.n))
    y[sum(layout.sizes[:3]) :] = 0.0
    soft, tau, cj, h = np.array([1e-3, 1e-2]), rng.standard_normal(model.nv), 1.7, 1e-6
    K = np.zeros(system.pattern.nnz)
    system.jacobian(0.0, cj, y, yp, soft, tau, K)
    dense = system.pattern.copy()
    dense.data = K
    F = np.zeros((2, layout.n))
    for k in range(layout.n):
        for out, side in zip(F, (h, -h), strict=True):
            step = side * np.eye(layout.n)[k]
            system.residual(0.0, y + step, yp + cj * step, soft, tau, out)
        column = (F[0] - F[1]) / (2 * h)
        assert np.abs(dense.toarray()[:, k] - column).max() < 1e-7 * max(1.0, np.abs(column).max())


@pytest.mark.parametrize("formulation", ["spatial", "absolute"])
def test_events_stop_where_they_happen_and_let_go(formulation: str) -> None:
    """An angle, and the top passed downwards, each met at the time that the elliptic integral gives."""
    model = pendulum().build()
    events = cd.Event("angle", lambda s: s.q - 2.5 * np.pi), cd.Event("top", lambda s: ca.sin(s.q), direction=-1)
    stepper = GearStepper(model, formulation, replace(TIGHT, events=events))
    stepper.begin(0.0, np.zeros((1, 1)), np.array([[2.5]]))
    met = []
    for _ in range(5):
        a = stepper.advance(whirling_pendulum_time(2.5, 4 * np.pi))
        met.append((int(a.outcome[0]), int(a.event[0]), float(a.q[0, 0]), float(a.t[0])))
        if a.outcome[0] == Outcome.ARRIVED:
            break
    turned = [np.pi, 2.5 * np.pi, 3 * np.pi, 4 * np.pi]
    assert [m[0] for m in met] == [Outcome.EVENT, Outcome.EVENT, Outcome.EVENT, Outcome.ARRIVED]
    assert [m[1] for m in met] == [1, 0, 1, -1]
    assert np.abs(np.array([m[2] for m in met]) - turned).max() < 1e-8
    assert np.abs(np.array([m[3] for m in met]) - [whirling_pendulum_time(2.5, x) for x in turned]).max() < 1e-8


def test_events_of_multistep_methods() -> None:
    request = replace(TIGHT, events=(cd.Event("angle", lambda s: s.q - 1.0),))
    stepper = MultistepStepper(pendulum().build(), "Adams", request, max_order=12)
    stepper.begin(0.0, np.zeros((1, 1)), np.array([[2.5]]))
    a = stepper.advance(10.0)
    assert a.outcome[0] == Outcome.EVENT
    assert abs(a.t[0] - whirling_pendulum_time(2.5, 1.0)) < 1e-9
    assert stepper.advance(1.0).outcome[0] == Outcome.ARRIVED


@pytest.mark.parametrize("make", [GearStepper, lambda m: GearStepper(m, "absolute"), MultistepStepper])
def test_force_without_a_value_is_told_with_its_time(make: Any, capfd: Any) -> None:
    m = pendulum()
    m.drive("failing", "A", lambda t, q, v: ca.sqrt(0.5 - t))
    stepper = make(m.build())
    stepper.begin(0.0, np.zeros((1, 1)), np.zeros((1, 1)))
    assert stepper.advance(0.25).outcome[0] == Outcome.ARRIVED
    a = stepper.advance(1.0)
    assert a.outcome[0] == Outcome.NOT_FINITE
    assert abs(a.t[0] - 0.5) < 1e-6
    assert np.isfinite(a.q).all()
    assert np.isfinite(a.v).all()
    assert "t = 0.5" in a.message or "t = 0.49999" in a.message
    assert stepper.advance(2.0).outcome[0] == Outcome.NOT_FINITE  # stays where it is
    assert capfd.readouterr() == ("", "")


def test_motion_that_ends_is_told_in_the_solvers_words(capfd: Any) -> None:
    """`q'' = q'^2` from 1 rad/s reaches infinity after 1 s."""
    m = cd.Mechanism("blow up", gravity=(0, 0, 0))
    m.body("wheel", mass=1.0, com=(0, 0, 0), inertia=np.eye(3))
    m.joint("A", cd.Revolute(), m.ground, "wheel")
    m.drive("runaway", "A", lambda t, q, v: v**2)
    stepper = GearStepper(m.build())
    stepper.begin(0.0, np.zeros((1, 1)), np.ones((1, 1)))
    a = stepper.advance(2.0)
    assert a.outcome[0] in (Outcome.SMALL_STEP, Outcome.NEWTON, Outcome.TOO_MANY_STEPS, Outcome.NOT_FINITE)
    assert abs(a.t[0] - 1) < 1e-3
    assert a.message
    assert capfd.readouterr() == ("", "")


def test_too_many_steps_are_too_many() -> None:
    stepper = GearStepper(pendulum().build(), request=Request(max_steps=500, max_step=1e-3))
    stepper.begin(0.0, np.zeros((1, 1)), np.ones((1, 1)))
    a = stepper.advance(100.0)
    assert a.outcome[0] == Outcome.TOO_MANY_STEPS
    assert 500 <= a.steps[0] <= 2000


def test_interrupt_comes_through() -> None:
    stepper = GearStepper(pendulum().build(), request=Request(max_step=1e-5))
    stepper.begin(0.0, np.zeros((1, 1)), np.ones((1, 1)))
    threading.Timer(0.1, _thread.interrupt_main).start()
    with pytest.raises(KeyboardInterrupt):
        stepper.advance(1e4)


def test_batch_is_each_system_alone() -> None:
    model = mechanisms.four_bar().build()
    q0, _ = cd.assemble(model)
    tau = np.zeros((3, model.nv))
    tau[:, 0] = 0.0, 5.0, -5.0
    still = np.zeros((3, model.nv))
    q, v = run(GearStepper(model, tau=tau), np.tile(q0, (3, 1)), still, 0.2, 0.5)
    for k in range(3):
        alone_q, alone_v = run(GearStepper(model, tau=tau[k]), q0, still[k], 0.2, 0.5)
        assert np.array_equal(alone_q[:, 0], q[:, k])
        assert np.array_equal(alone_v[:, 0], v[:, k])
    assert np.abs(q[1, 1] - q[1, 2]).max() > 0.1


def test_systems_at_rest_stay() -> None:
    stepper = GearStepper(pendulum().build())
    stepper.begin(0.0, np.zeros((2, 1)), np.ones((2, 1)))
    first = stepper.advance(0.5)
    stepper.rest(np.array([True, False]))
    second = stepper.advance(1.0)
    assert list(second.outcome) == [Outcome.RESTING, Outcome.ARRIVED]
    assert second.q[0] == first.q[0]
    assert second.q[1] != first.q[1]
    stepper.begin(1.0, np.array([[np.nan], [0.0]]), np.ones((2, 1)))
    third = stepper.advance(1.5)
    assert list(third.outcome) == [Outcome.RESTING, Outcome.ARRIVED]
    assert abs(third.q[1, 0] - first.q[1, 0]) < 1e-8
    assert third.steps[1] > second.steps[1]


def test_free_parameters_are_those_of_each_system() -> None:
    """Pendulums of half and double weight of gravity's force: mass does not matter, a spring's stiffness does."""
    m = cd.Mechanism("oscillator", gravity=(0, 0, 0))
    m.body("wheel", mass=1.0, com=(0, 0, 0), inertia=np.eye(3))
    m.joint("A", cd.Revolute(), m.ground, "wheel")
    m.torsion("s", "A", stiffness=1.0)
    model = m.build().free("s.stiffness").at({"s.stiffness": np.array([1.0, 4.0])})
    for stepper in (GearStepper(model, request=TIGHT), MultistepStepper(model, request=TIGHT)):
        q, _ = run(stepper, np.ones((2, 1)), np.zeros((2, 1)), 1.0)
        assert np.abs(q[0, :, 0] - np.cos([1.0, 2.0])).max() < 1e-9


def test_loops_are_not_for_multistep_methods() -> None:
    with pytest.raises(LoopError, match="'bdf' integrates trees without couplings only; use method 'gear'"):
        cd.simulate(mechanisms.four_bar().build(), 1.0, method="bdf")


def test_open_loop_is_refused_at_the_start() -> None:
    model = mechanisms.four_bar().build()
    q0, v0 = cd.assemble(model)
    with pytest.raises(InputError, match=r"breaks a constraint by .*`cd\.assemble`"):
        GearStepper(model).begin(0.0, q0[None] + 0.01, v0[None])


def test_a_loop_that_a_free_joint_closes_has_no_rows() -> None:
    """Nothing holds it, and nothing can depend on anything."""
    m = cd.Mechanism("swing", gravity=(0, -9.81, 0))
    m.body("rod", mass=1.0, com=(0.5, 0, 0), inertia=(0.01, 0.1, 0.1))
    m.joint("A", cd.Revolute(), m.ground, "rod", start=0.3)
    plain = m.build()
    m.joint("free", cd.Free(), m.ground, "rod")
    closed = m.build(cut=["free"])
    runs = [cd.simulate(model, 0.5, method="gear", samples=3) for model in (plain, closed)]
    assert np.abs(runs[0].q - runs[1].q).max() < 1e-6
