"""Mechanisms divided into pieces and connections against the same mechanisms as one straight-line graph."""

import warnings
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pytest

import cardan as cd
from cardan.analysis.statics import balance as statics
from cardan.analysis.statics import stability
from cardan.formulation.large import programs
from cardan.formulation.registry import find_formulation
from cardan.structure import kernels, large


@pytest.fixture
def divided(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Divide mechanisms of any size."""
    monkeypatch.setattr(large, "LOOP_PAST", 0)
    yield


def machine() -> cd.Model:
    """Two four-bars with a gear between their cranks, springs, a drive, a motion, a rod, and free numbers."""
    m = cd.Mechanism("machine", gravity=(0.3, -9.81, 0.2))
    for k in range(2):
        for name, length in (("crank", 1.0), ("coupler", 3.0), ("rocker", 2.5)):
            shape = cd.inertia.box(length, (length, 0.1, 0.2))
            m.body(f"{name}{k}", mass=length + 0.1 * k, com=(length / 2, 0.01, 0), inertia=shape)
        at = (4.0 * k, 0, 0)
        m.joint(f"A{k}", cd.Revolute(), m.ground, f"crank{k}", at=at, start=0.5)
        m.joint(f"B{k}", cd.Revolute(), f"crank{k}", f"coupler{k}", at=(1, 0, 0), start=0.2)
        m.joint(f"D{k}", cd.Revolute(), m.ground, f"rocker{k}", at=(3 + 4.0 * k, 0, 0), start=1.5)
        m.joint(f"C{k}", cd.Spherical(), f"coupler{k}", f"rocker{k}", at=(3, 0, 0), child_at=(2.5, 0, 0))
    m.body("ball", mass=0.7, com=(0.02, 0, 0.01), inertia=np.diag([0.02, 0.03, 0.04]))
    m.joint("hook", cd.Spherical(), "rocker1", "ball", at=(1, 0.3, 0))
    m.body("flap", mass=0.4, com=(0, -0.2, 0), inertia=np.diag([0.01, 0.01, 0.01]))
    m.joint("swing", cd.Revolute(axis=(1, 0, 0)), "crank0", "flap", at=(0.5, 0, 0))
    m.couple("gear", {"A0": 1.0, "A1": -1.0})
    m.spring("s", "coupler0", "rocker1", stiffness=50.0, damping=2.0, length=0.7, at1=(1, 0, 0.1))
    m.torsion("t", "B1", stiffness=2.0, rest=0.1, damping=0.3)
    m.drive("push", "D0", lambda t, q, v: 3 * t - 0.5 * v)
    m.motion("flutter", "swing", lambda t: 0.2 * t * t)
    m.distance("rod", "ball", "ground", at1=(0.3, 0, 0), at2=(6.8, 1.0, 1.0), length=0.9)
    return m.build().free("rocker1.mass", "s.stiffness", "B0.at", "rod.length")


@dataclass
class Whole:
    """What the machine as one straight-line graph answers."""

    q: np.ndarray
    v: np.ndarray
    tau: np.ndarray
    wrenches: np.ndarray
    values: dict[str, np.ndarray]
    a: np.ndarray
    power: np.ndarray
    phi: np.ndarray
    run: cd.Trajectory


@pytest.fixture(scope="module")
def whole() -> Whole:
    """At several values of free parameters, and in motion."""
    model, rng = machine(), np.random.default_rng(3)
    q, v = cd.assemble(model, t=0.3)
    tau, wrenches = rng.standard_normal((3, model.nv)), rng.standard_normal((model.nb, 6))
    values = {"rocker1.mass": rng.uniform(1, 3, 3), "s.stiffness": rng.uniform(10, 90, 3)}
    one, w = model.at(values), v + rng.standard_normal(model.nv)
    a = cd.forward_dynamics(one, q, w, tau, wrenches=wrenches, t=0.3)
    power, phi = cd.power(one, q, w, tau, t=0.3), cd.constraint_residual(one, q + 0.1, t=0.3)
    run = cd.simulate(model, 0.05, *cd.assemble(model), samples=3)
    return Whole(q, w, tau, wrenches, values, a, power, phi, run)


@pytest.mark.parametrize("formulation", ["spatial", "absolute"])
def test_answers_of_pieces_are_those_of_the_whole(whole: Whole, divided: None, formulation: str) -> None:
    """Accelerations, power and residuals, at several values of free parameters at once."""
    model, way = machine().at(whole.values), find_formulation(formulation)
    a = cd.forward_dynamics(model, whole.q, whole.v, whole.tau, wrenches=whole.wrenches, t=0.3, formulation=formulation)
    assert large.is_divided(model, way)
    np.testing.assert_allclose(a, whole.a, rtol=1e-9, atol=1e-9)
    _, _, power = large.motion_kernel(model, way)(whole.q, whole.v, whole.tau, np.asarray(0.3))
    np.testing.assert_allclose(power, whole.power, rtol=1e-9)
    phi = cd.constraint_residual(model, whole.q + 0.1, t=0.3)
    np.testing.assert_allclose(phi, whole.phi, rtol=1e-12, atol=1e-12)


def test_steps_of_pieces_are_those_of_the_whole(whole: Whole, divided: None) -> None:
    """Steps with error control and correction onto the constraints; a quaternion among the coordinates."""
    model, run = machine(), whole.run
    found = cd.simulate(model, 0.05, run.q[0], run.v[0], samples=3)
    np.testing.assert_allclose(found.q, run.q, atol=1e-11)
    np.testing.assert_allclose(found.v, run.v, atol=1e-10)
    assert np.abs(cd.constraint_residual(model, found.q[-1], t=0.05)).max() < 1e-12


def test_a_row_of_windows_moves_as_one_and_its_code_does_not_grow() -> None:
    """n_four_bar: `th'' = c sin th`; twice as many windows take the same steps with longer tables."""
    n, th = 70, 0.3
    model = cd.mechanisms.n_four_bar(n).build()
    way = np.r_[np.ones(n + 1), -np.ones(n)]
    c = 9.81 * ((n + 1) / 2 + n) / ((n + 1) / 3 + n)
    np.testing.assert_allclose(cd.forward_dynamics(model, th * way, 0.5 * way), c * np.sin(th) * way, atol=1e-10)
    steps, rows = [], []
    for count in (n, 2 * n):
        model = cd.mechanisms.n_four_bar(count).build()
        kept = [5 * k + r for k in range(count) for r in (2, 3)]
        rounds = programs.forward_dynamics(model, kept, ("q", "v", "tau"), ("a",)).rounds
        steps.append(sum(call.n_instructions() for r in rounds for call in r.calls))
        rows.append(sum(len(r.table) for r in rounds))
    assert steps[1] <= 1.1 * steps[0]
    assert rows[1] <= 2.1 * rows[0]


def test_rates_of_rows_are_linear_in_the_velocities() -> None:
    """Of a long subtree, whose links are pieces by themselves; at a second call memory is not what it was."""
    model, rng = cd.mechanisms.track(66).build(), np.random.default_rng(1)
    q, v = model.start(), rng.standard_normal(model.nv)
    once = large.row_residuals(model, q, v, 0.0)[1]
    np.testing.assert_allclose(large.row_residuals(model, q, -3 * v, 0.0)[1], -3 * once, rtol=1e-12, atol=1e-12)
    assert np.abs(once).max() > 0.1


@pytest.mark.usefixtures("quick_code")
def test_inverse_dynamics_undo_forward_dynamics(divided: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Drives found by loops give back the accelerations that drives made, springs and wrenches present."""
    monkeypatch.setattr(kernels, "LOOP_PAST", 0)
    m = cd.mechanisms.lattice(1)
    m.spring("s", "level0_0", "hanging1_0", at2=(0, 0.3, 0), stiffness=30.0, length=0.2, damping=1.0)
    m.torsion("t", "A1_0", stiffness=3.0, damping=0.2)
    model = m.build()
    rng = np.random.default_rng(2)
    q, v = cd.assemble(model, None, {"A0_0": 0.7}, hold=["A0_0"])
    tau, drives = np.zeros(model.nv), ["A0_0"]
    tau[model.v_slice("A0_0")] = rng.normal()
    wrenches = rng.normal(size=(model.nb, 6)) * [0, 0, 1, 1, 1, 0]
    a = cd.forward_dynamics(model, q, v, tau, wrenches=wrenches)
    assert np.allclose(cd.inverse_dynamics(model, q, v, a, driven=drives, wrenches=wrenches), tau, atol=1e-9)
    with pytest.raises(cd.InputError, match="would break"):
        cd.inverse_dynamics(model, q, v, a + rng.normal(size=model.nv), driven=drives)


@pytest.mark.usefixtures("quick_code")
def test_what_is_not_looped_is_told_beforehand(divided: None, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("LOOP_PAST", 0), ("LONG", 0.05)):
        monkeypatch.setattr(kernels, name, value)
    monkeypatch.setenv("CARDAN_CACHE", "0")
    model = cd.mechanisms.n_four_bar(2).build()
    q, v = cd.assemble(model)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cd.forward_dynamics(model, q, v)
    with pytest.warns(RuntimeWarning, match="forward_dynamics: for model 'n_four_bar_2' this is not looped"):
        cd.forward_dynamics(model, q, v, formulation="newton_euler")


def held_linkage() -> cd.Model:
    """A four-bar on springs, with a damper and a free mass."""
    m = cd.mechanisms.four_bar()
    m.torsion("t", "B", stiffness=30.0, rest=0.1, damping=0.3)
    m.spring("s", "ground", "rocker", stiffness=50.0, damping=2.0, length=0.7, at1=(1, 1, 0), at2=(2, 0, 0))
    return m.build().free("coupler.mass")


def test_equilibria_from_sums_are_those_of_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """At rest in a batch, with stability, and in steady motion, whose drive is found."""
    masses, sought = {"coupler.mass": np.array([1.0, 2.5])}, {"rates": {"A": 3.0}, "q": {"A": 0.7}}

    def both() -> tuple[cd.Equilibrium, cd.Equilibrium]:
        model = held_linkage()
        return cd.equilibrium(model.at(masses)), cd.equilibrium(model, strict=False, **sought)

    expected = both()
    monkeypatch.setattr(large, "LOOP_PAST", 0)
    monkeypatch.setattr(statics, "balance", None)
    monkeypatch.setattr(stability, "resistance", None)
    for found, known in zip(both(), expected, strict=True):
        for name in ("q", "v", "a", "tau", "multipliers", "eigenvalues"):
            np.testing.assert_allclose(getattr(found, name), getattr(known, name), rtol=1e-7, atol=1e-7)
        assert (found.kind == known.kind).all() and (found.is_steady == known.is_steady).all()
