"""The energy balance of a run: what is gained or lost beyond the work of all forces is told, whatever the method."""

from __future__ import annotations

import warnings
from typing import Any

import casadi as ca
import numpy as np
import pytest

import cardan as cd
from cardan.formulation import elements
from cardan.mechanisms import CATALOGUE, chain, four_bar
from cardan.structure.projection import Projection

pytestmark = pytest.mark.usefixtures("quick_code")

TREES = {"bdf": {}, "adams": {}}
METHODS: dict[str, dict[str, Any]] = {
    "dormand_prince": {}, "rk4": {"step": 1e-3}, "euler": {"step": 2e-5}, "alpha": {"step": 1e-3}, "gear": {}, **TREES,
}  # fmt: skip
OWN = cd.RungeKutta("midpoint", 2, [[0, 0], [0.5, 0]], [0, 1])


def swing(loop: bool = False, coulomb: float = 0.1) -> cd.Model:
    """A double pendulum, or a four-bar, with a damped spring, friction, a drive in time and a user's force."""
    m = four_bar() if loop else CATALOGUE["double_pendulum"]()
    first, second = [joint.name for joint in m.build().joints][:2]
    bodies = m.build().body_names
    m.spring("spring", m.ground, bodies[-1], stiffness=20.0, length=0.3, damping=0.5, at1=(2.0, 1.0, 0.0))
    m.torsion("torsion", second, stiffness=2.0, damping=0.1, rest=0.2)
    m.friction("friction", first, viscous=0.2, coulomb=coulomb, smoothing=0.1)
    m.drive("drive", first, lambda t, q, v: 3 * np.sin(5 * t))
    m.user_force("push", (bodies[0],), lambda t, poses, twists: [ca.vertcat(0, 0, 0.1, 0.5, 0, 0)])
    return m.build()


def simulated(model: cd.Model, duration: float, **options: Any) -> tuple[cd.Trajectory, list[str]]:
    """A run, and the warnings about its energy."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        run = cd.simulate(model, duration, progress=False, **options)
    return run, [str(w.message) for w in told if "not accounted for" in str(w.message)]


@pytest.mark.parametrize("method", [m for m in METHODS if m not in TREES])
@pytest.mark.parametrize("formulation", ["spatial", "points"])
def test_work_is_integrated(method: str, formulation: str) -> None:
    """Drives, dampers, friction and user forces: nothing is missing, with two samples, though nearly all energy is."""
    options = {**METHODS[method], "step": 1e-4} if method == "alpha" else METHODS[method]
    run, told = simulated(swing(loop=True), 0.3, method=method, formulation=formulation, samples=2, **options)
    exchanged = np.ptp(run.energy) + run.kinetic.max()
    assert not told
    assert np.ptp(run.energy) > 0.1
    assert run.statistics["energy_error"] < (2e-3 if method == "euler" else 2e-5) * exchanged


@pytest.mark.parametrize("method", METHODS)
def test_missing_work_is_told(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An integrator that loses energy that no force takes: here the power of the elements is left out."""
    monkeypatch.setenv("CARDAN_CACHE", "0")
    with monkeypatch.context() as m:
        m.setattr(elements, "element_power", lambda kin, t: ca.SX(1, 1))
        run, told = simulated(swing(), 0.5, method=method, samples=2, **METHODS[method])
    assert len(told) == 1
    assert "'double_pendulum'" in told[0]
    assert f"'{method}'" in told[0]
    gained = np.diff(run.energy)[0]
    assert run.statistics["energy_error"] == pytest.approx(abs(gained))
    run, told = simulated(swing(), 0.5, method=method, samples=2, **METHODS[method])
    assert not told
    assert run.statistics["energy_error"] < 0.01 * abs(gained)


@pytest.mark.parametrize("method", ["dormand_prince", "rk4", "euler"])
@pytest.mark.parametrize("samples", [2, 51])
def test_projection_that_takes_velocity_is_told(method: str, samples: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A correction that removes more velocity than it says, in every step."""
    monkeypatch.setenv("CARDAN_CACHE", "0")
    moved = Projection.moved_at_cost

    def leaking(self: Projection, *given: Any) -> Any:
        q, v, removed = moved(self, *given)
        return q, v * (1 - (1e-3 if method == "dormand_prince" else 1e-4)), removed

    options = {**METHODS[method], "step": 1e-3} if method == "euler" else METHODS[method]
    monkeypatch.setattr(Projection, "moved_at_cost", leaking)
    _, told = simulated(four_bar().build(), 1.0, method=method, samples=samples, **options)
    assert len(told) == 1


def test_batches_and_files(tmp_path: Any) -> None:
    """The worst system of a batch is named, in memory and in a file, and statistics are kept in the file."""
    model = four_bar().build()
    q0, _ = cd.assemble(model)
    along = np.linalg.svd(cd.constraint_jacobian(model, q0))[2][-1]
    v0 = along * np.array([[0.1], [0.1], [40.0]])
    options: dict[str, Any] = {"q0": q0, "v0": v0, "method": "rk4", "step": 0.02, "samples": 3}
    run, told = simulated(model, 0.3, **options)
    stored, again = simulated(model, 0.3, store=tmp_path / "run.nc", **options)
    assert len(told) == 1
    assert "system 2" in told[0]
    assert told == again
    assert run.statistics["energy_error"] == pytest.approx(np.abs(run.energy - run.energy[:, :1]).max())
    read = cd.load_run(tmp_path / "run.nc", model).statistics
    for name in ("energy_error", "energy_error_time", "largest_correction", "largest_correction_time"):
        assert read[name] == stored.statistics[name] == run.statistics[name]
    assert 0 < run.statistics["largest_correction_time"] <= 0.3


def test_prescribed_motion_and_events() -> None:
    """The work of a prescribed motion, across breaks and events that are not sampled."""
    m = CATALOGUE["double_pendulum"]()
    joint = m.build().joints[0].name
    m.motion("wave", joint, lambda t: 0.5 * t**3)
    model = m.build()
    event = cd.Event("down", lambda now: now.v[1], action="record")
    for method, options in (("dormand_prince", {}), ("alpha", {"step": 2e-4}), ("gear", {})):
        run, told = simulated(model, 1.0, method=method, samples=2, breaks=[0.3], events=[event], **options)
        assert not told
        assert np.ptp(run.energy) > 0.1
        assert run.statistics["energy_error"] < 1e-4 * np.ptp(run.energy)


def test_rate_constraint_gives_power() -> None:
    """A body that a constraint on its rate drives at constant speed: `cd.power` and the balance have its power."""
    m = cd.Mechanism("conveyor", gravity=(0, -9.81, 0))
    m.body("block", mass=2.0, inertia=np.eye(3))
    m.joint("slide", cd.Planar((0, 0, 1), (1, 0, 0)), m.ground, "block")
    m.constraint("belt", ("block",), lambda t, poses, twists: twists[0][3] - twists[0][4] - 1.0, unit="m/s")
    model = m.build()
    q0, v0 = cd.assemble(model)
    run, told = simulated(model, 1.0, q0=q0, v0=v0, samples=101)
    rate = np.gradient(run.energy, run.time, edge_order=2)
    assert np.abs(rate).min() > 1.0
    np.testing.assert_allclose(cd.power(model, run.q, run.v), rate, rtol=1e-6)
    assert not told
    assert run.statistics["energy_error"] < 1e-7


def test_order_of_the_work() -> None:
    """The work has the order of the method: halving the step of `rk4` divides the energy error by about 16."""
    model = swing(coulomb=0.0)
    runs = [simulated(model, 1.0, method="rk4", step=h, samples=2)[0] for h in (2e-3, 1e-3)]
    errors = [run.statistics["energy_error"] for run in runs]
    assert errors[0] > 10 * errors[1] > 0


def test_large_trees_and_own_methods() -> None:
    """The work of drives along a looped tree; a method of the user's."""
    model = chain(80).build()
    tau = np.linspace(1, 2, model.nv)
    for method, options in (("dormand_prince", {}), ("rk4", {"step": 1e-4})):
        run, told = simulated(model, 0.02, tau=tau, method=method, samples=2, **options)
        assert not told
        assert np.ptp(run.energy) > 1e-3
        assert run.statistics["energy_error"] < 1e-6 * np.ptp(run.energy)
    run, told = simulated(swing(), 0.5, method=OWN, step=2e-4, samples=3)
    assert not told
    assert 0 < run.statistics["energy_error"] < 1e-4


@pytest.mark.parametrize("name", ["cart_pole", "four_bar"])
def test_no_false_alarm(name: str) -> None:
    """Regular mechanisms at default tolerances and reasonable steps do not warn, with few samples or many."""
    model = CATALOGUE[name]().build()
    for method in ("dormand_prince", "rk4", "gear"):
        for samples in (2, 51):
            _, told = simulated(model, 1.0, method=method, samples=samples, **METHODS[method])
            assert not told


def test_work_beside_singular_positions_is_counted() -> None:
    """`gear` hands a parallelogram to explicit steps there and back again, eight times in this run."""
    m = cd.Mechanism("parallelogram", gravity=(0, 0, 0))
    for name, length in (("crank", 0.5), ("coupler", 1.0), ("rocker", 0.5)):
        m.body(name, mass=1.0, com=(length / 2, 0, 0), inertia=cd.inertia.rod(1.0, length))
    m.joint("A", cd.Revolute(), m.ground, "crank", start=1.0)
    m.joint("B", cd.Revolute(), "crank", "coupler", at=(0.5, 0, 0), start=-1.0)
    m.joint("D", cd.Revolute(), m.ground, "rocker", at=(1.0, 0, 0), start=1.0)
    m.joint("C", cd.Revolute(), "coupler", "rocker", at=(1, 0, 0), child_at=(0.5, 0, 0))
    m.drive("brake", "A", -0.2)
    run = cd.simulate(m.build(), 3.0, v0={"A": 5.0}, assemble=True, method="gear", samples=4)
    assert run.energy[0] - run.energy[-1] == pytest.approx(0.2 * (run.q[-1, 0] - 1.0), abs=1e-5)
    assert run.statistics["energy_error"] < 1e-5
