"""Identification: the dynamics are linear in their parameters, and data give back what they were made from."""

from functools import cache

import numpy as np
import pytest

import cardan as cd
from cardan.analysis.identification.pseudo_inertia import is_consistent, parameters_of, pseudo_inertia
from cardan.analysis.identification.random_motions import random_motions
from cardan.analysis.identification.standard_parameters import central_of, derivative_of_central, standard_of
from cardan.mechanisms import slider_crank

from ..trees import tree_model

pytestmark = pytest.mark.usefixtures("quick_code")


@cache
def arm() -> cd.Model:
    """Two links in space with a ball joint, a rotor, springs, dampers and friction."""
    rng = np.random.default_rng(4)
    m = cd.Mechanism("arm", gravity=(0.5, -9.81, 1.0))
    for name in ("upper", "lower"):
        A = rng.uniform(-1, 1, (3, 3))
        P = A @ A.T + 0.1 * np.eye(3)
        m.body(name, mass=rng.uniform(1, 2), com=rng.uniform(-0.5, 0.5, 3), inertia=np.trace(P) * np.eye(3) - P)
    m.joint("shoulder", cd.Revolute(axis=(0, 1, 1)), m.ground, "upper", at=(0.1, 0.2, 0.3), armature=0.3)
    m.joint("elbow", cd.Spherical(), "upper", "lower", at=(0.7, -0.1, 0.2), child_at=(0.1, 0, 0))
    m.spring("s", m.ground, "lower", stiffness=10.0, length=0.2, damping=0.4, at1=(1, 0, 0))
    m.torsion("t", "shoulder", stiffness=3.0, rest=0.5)
    m.friction("f", "shoulder", viscous=0.2, coulomb=0.3)
    return m.build()


@pytest.mark.parametrize("formulation", ["spatial", "absolute"])
def test_regressor_times_parameters_is_inverse_dynamics(formulation: str) -> None:
    model, rng = arm(), np.random.default_rng(0)
    q, v = model.random_state(rng, 3)
    a, wrenches = rng.standard_normal((3, model.nv)), rng.standard_normal((3, model.nb, 6))
    W = cd.regressor(model, q, v, a, wrenches=wrenches, formulation=formulation)
    tau = cd.inverse_dynamics(model, q, v, a, wrenches=wrenches)
    assert W.shape == (3, model.nv, 26)
    assert {"shoulder.armature", "s.stiffness", "s.damping", "t.stiffness", "f.coulomb", "f.viscous"} < set(W.names)
    assert np.allclose(W @ W.nominal + W.rest, tau, rtol=1e-12, atol=1e-12)
    changed = {"s.stiffness": 70.0, "shoulder.armature": 2.0}  # the matrix is the same for other parameters
    free = model.free(*changed).at(changed)
    other = [changed.get(name, x) for name, x in zip(W.names, W.nominal, strict=True)]
    moved = cd.inverse_dynamics(free, q, v, a, wrenches=wrenches)
    assert np.abs(moved - tau).max() > 1
    assert np.allclose(W @ other + W.rest, moved, rtol=1e-12, atol=1e-12)


def test_regressors_of_random_trees_of_every_joint() -> None:
    model, rng = tree_model(1, 4), np.random.default_rng(1)
    q, v = model.random_state(rng, 2)
    a = rng.standard_normal((2, model.nv))
    W, h = cd.regressor(model, q, v, a), cd.regressor(model, q, v, of="momentum")
    assert np.allclose(W @ W.nominal + W.rest, cd.inverse_dynamics(model, q, v, a), atol=1e-11)
    assert np.allclose(h @ h.nominal, cd.momentum(model, q, v), atol=1e-11)


def test_rate_of_the_energy_regressor_is_power() -> None:
    # d/dt (W_E) theta = tau . v for every theta: both are linear in it, so column by column
    model, rng = arm(), np.random.default_rng(2)
    bodies = slice(20)  # dampers and friction take energy
    q, v = model.random_state(rng)
    a, h = rng.standard_normal(model.nv), 1e-4

    def energy(s: float) -> np.ndarray:
        at = cd.plus(model, q, s * v + s * s / 2 * a)
        return cd.regressor(model, at, v + s * a, of="energy").matrix[0, bodies]

    rate = (8 * (energy(h) - energy(-h)) - energy(2 * h) + energy(-2 * h)) / (12 * h)
    power = v @ cd.regressor(model, q, v, a).matrix[:, bodies]
    assert np.allclose(rate, power, atol=1e-7)
    E = cd.regressor(model, q, v, of="energy")
    assert np.isclose((E @ E.nominal + E.rest)[0], cd.kinetic_energy(model, q, v) + cd.potential_energy(model, q))


def test_loops_project_the_multipliers_away() -> None:
    model, (q, v, a, *_) = crank(), data()
    tau = cd.inverse_dynamics(model, q, v, a, driven=["bearing"])
    W = cd.regressor(model, q, v, a, driven=["bearing"])
    assert W.rows == ("bearing",)
    assert np.allclose(W @ W.nominal, tau[:, :1], atol=1e-9 * np.abs(tau).max())
    many = np.random.default_rng(3).standard_normal(tau.shape)  # more drives than freedoms
    moved = cd.forward_dynamics(model, q, v, many)
    W = cd.regressor(model, q, v, moved, driven=model.coordinate_names, formulation="points")
    assert np.allclose(W @ W.nominal, W.project(many), atol=1e-8 * np.abs(W.project(many)).max())


@cache
def crank() -> cd.Model:
    return slider_crank().build()


@cache
def data() -> tuple[np.ndarray, ...]:
    """Motions of the slider-crank, the drive of one with other parameters, and these."""
    model = crank()
    q, v, a = random_motions("test", model, 60, np.random.default_rng(5))
    W = cd.regressor(model, q, v, a, driven=["bearing"])
    theta = W.nominal * np.repeat([1.2, 1.3, 1.4], 10)
    return q, v, a, W @ theta, theta


@pytest.mark.parametrize("fit", ["torque", "motion"])
def test_data_without_noise_give_the_parameters_back(fit: str) -> None:
    q, v, a, tau, theta = data()
    found = cd.identify(crank(), q, v, a, tau, driven=["bearing"], fit=fit)
    assert np.allclose(found.base_values, found.base.of(theta), rtol=1e-9, atol=1e-11)
    assert np.allclose(found.base.of(found.theta), found.base.of(theta), rtol=1e-9, atol=1e-11)
    assert found.physical  # although thin rods have singular pseudo-inertias
    rod = found.model.body("rod")
    assert np.isclose(rod.mass, found["rod.mass"])
    assert np.isclose(rod.inertia[2, 2] + rod.mass * rod.com[:2] @ rod.com[:2], found["rod.Izz"])


def test_intervals_hold_as_often_as_they_say() -> None:
    q, v, a, tau, theta = data()
    rng, inside, squares = np.random.default_rng(6), [], []
    for _ in range(40):
        noisy = tau + 0.05 * rng.standard_normal(tau.shape)
        found = cd.identify(crank(), q, v, a, noisy, driven=["bearing"], noise=0.05, physical=False)
        low, high = found.base_intervals(0.9).T
        off = found.base_values - found.base.of(theta)
        inside.append((low < found.base.of(theta)) & (found.base.of(theta) < high))
        squares.append(off @ np.linalg.solve(found.base_covariance, off))
    assert 0.83 < np.mean(inside) < 0.96  # 240 intervals of 90 %, which are correlated
    assert 4.36 < np.mean(squares) < 7.64  # chi-squared of 6 freedoms: 6 +- 3 sqrt(12 / 40)
    estimated = cd.identify(crank(), q, v, a, noisy, driven=["bearing"])
    assert estimated.physical
    assert 0.035 < estimated.noise[0] < 0.065


def test_parameters_that_the_data_cannot_tell_apart_are_named() -> None:
    model = crank()
    q, _ = cd.assemble(model, model.start() + np.linspace(0, 0.5, 12)[:, None] * [1, -1, 0.1])
    v = np.zeros((12, model.nv))  # at rest: gravity alone
    a = cd.forward_dynamics(model, q, v)
    W = cd.regressor(model, q, v, a, driven=["bearing"])
    found = cd.identify(model, q, v, a, np.zeros((12, 1)), driven=["bearing"])
    assert W.shape == (12, 1, 30)
    assert len(found.base) < 6
    assert found.told[0].startswith("the data cannot tell these apart, only their combinations: ")
    assert all(name in found.told[0] for name in ("crank.mx", "crank.Izz", "rod.mx", "rod.Izz"))
    assert np.isinf(found.interval("rod.mass")[1])  # mechanisms tell it only in combination
    with pytest.raises(cd.UnknownNameError, match=r"'rod\.maas'"):
        found.interval("rod.maas")


def test_a_prior_tells_what_data_do_not() -> None:
    q, v, a, tau, _ = data()
    found = cd.identify(crank(), q, v, a, tau, driven=["bearing"], noise=0.01, prior=0.3)
    assert np.isfinite(found.std).all()
    assert found.physical
    assert np.allclose(found.base.of(found.theta), found.base_values, atol=5 * found.base_std.max())


def test_unphysical_estimates_are_replaced_by_the_nearest_physical_ones() -> None:
    m = cd.Mechanism("wheel", gravity=(0, 0, 0))
    m.body("wheel", mass=1.0, com=(0.2, 0, 0), inertia=(0.1, 0.1, 0.1))
    m.joint("axle", cd.Revolute(axis=(0, 0, 1)), m.ground, "wheel")
    m.friction("f", "axle", viscous=0.1)
    model = m.build()
    v, a = np.array([[1.0], [2.0], [-1.0], [0.5]]), np.array([[1.0], [-1.0], [2.0], [0.3]])
    tau = -0.5 * a - 0.2 * v  # what would be a negative inertia and negative friction
    bare = cd.identify(model, np.zeros((4, 1)), v, a, tau, noise=0.1, physical=False)
    assert np.allclose(bare.base_values, [-0.5, -0.2])
    found = cd.identify(model, np.zeros((4, 1)), v, a, tau, noise=0.1)
    assert not bare.physical
    assert found.physical
    assert 0 < found["wheel.Izz"] < 1e-3
    assert np.isclose(found["f.viscous"], (tau * v).sum() / (v * v).sum(), rtol=1e-3)  # the best without any inertia
    assert found.told[0].startswith("no mass distribution fits the data: they ask for wheel.Izz = -0.5")


def test_pseudo_inertia_is_the_distribution_of_mass() -> None:
    points = np.random.default_rng(8).standard_normal((5, 3))
    theta = np.zeros(10)
    for x in points:  # unit masses
        I = x @ x * np.eye(3) - np.outer(x, x)
        theta += [1, *x, I[0, 0], I[1, 1], I[2, 2], I[0, 1], I[0, 2], I[1, 2]]
    ones = np.concatenate([points, np.ones((5, 1))], axis=1)
    assert np.allclose(pseudo_inertia(theta), ones.T @ ones)
    assert np.allclose(parameters_of(pseudo_inertia(theta)), theta)
    assert is_consistent(theta)
    assert np.allclose(standard_of(central_of(theta)), theta)
    steps = 1e-5 * np.eye(10)
    differences = (central_of(theta + steps) - central_of(theta - steps)).T / 2e-5
    assert np.allclose(derivative_of_central(theta), differences, atol=1e-8)
    theta[4] += theta[5] + theta[6]
    assert not is_consistent(theta)


def test_an_excitation_keeps_its_limits_and_beats_chance() -> None:
    model = crank()
    found = cd.excitation(
        model, 4.0, driven=["bearing"], rate=6.0, acceleration=30.0, harmonics=2, samples=24, starts=16, generations=4
    )
    q, v, a = found.at(np.linspace(0, 4, 2000))
    assert np.abs(v).max() <= 6.0
    assert np.abs(a).max() <= 30.0
    assert np.ptp(q) <= 2.0
    assert np.abs(cd.constraint_residual(model, found.q)).max() < 1e-10
    W = found.base.regressor(cd.regressor(model, found.q, found.v, found.a, driven=["bearing"])).reshape(24, 6)
    assert np.isclose(np.linalg.cond(W), found.condition, rtol=1e-6)
    assert found.condition < found.condition_at_random


def test_bad_input_is_refused_with_a_sentence() -> None:
    model = crank()
    q, v, a = (x[:8] for x in data()[:3])
    with pytest.raises(cd.InputError, match="say which joints are driven"):
        cd.identify(model, q, v, a, np.zeros((8, 1)))
    with pytest.raises(cd.InputError, match="too few"):
        cd.identify(model, q[:3], v[:3], a[:3], np.zeros((3, 1)), driven=["bearing"])
    with pytest.raises(cd.InputError, match="noise must be above 0, got -1"):
        cd.identify(model, q, v, a, np.zeros((8, 1)), driven=["bearing"], noise=-1.0)
    with pytest.raises(cd.InputError, match="not driven"):
        cd.identify(model, q, v, a, np.ones((8, 3)), driven=["bearing"])
    with pytest.raises(cd.InputError, match="finite"):
        cd.regressor(model, q, v, a * np.nan)
    with pytest.raises(cd.UnknownNameError, match=r"'rodd' is neither .*'rod'"):
        cd.regressor(model, q, v, a, parameters=["rodd"])
    with pytest.raises(cd.UnknownNameError, match="no regressor of 'torque'"):
        cd.regressor(model, q, v, a, of="torque")
    with pytest.raises(cd.InputError, match="the batches do not fit"):
        cd.regressor(model, q, v[:3], a)
    with pytest.raises(cd.InputError, match="1 freedom, and 2 driven"):
        cd.excitation(model, driven=["bearing", "pin"])
    W = cd.regressor(model, q, v, a, driven=["bearing"])
    with pytest.raises(cd.InputError, match=r"tau must have the shape \(..., 3\), got \(2,\)"):
        W.project([1.0, 2.0])
    with pytest.raises(cd.InputError, match="parameters is empty"):
        cd.regressor(model, q, v, a, parameters=[])
    off = np.array([0, 0.3, 0])
    with pytest.warns(RuntimeWarning, match=r"joint 'wrist' open by .* close the loops"):
        cd.identify(model, q + off, v, a, W @ W.nominal, driven=["bearing"])
    with pytest.warns(RuntimeWarning, match="rates v that joint 'wrist' does not allow"):
        found = cd.identify(model, q, v + off, a, W @ W.nominal, driven=["bearing"])
    with pytest.raises(cd.InputError, match="positive number, at most 1, got"):
        found.base_intervals(1.5)
    with pytest.raises(cd.InputError, match="theta must have the shape"):
        found.base.of([1.0])


@pytest.mark.parametrize("power", [1, 2])
def test_numbers_of_a_users_force_are_parameters_if_they_are_linear(power: int) -> None:
    kind = cd.ForceKind(
        f"cubic {power}", "joint", lambda f, t, q, v: [-(f["k"] ** power) * q[0] ** 3],
        fields={"k": cd.Field("N m", "stiffness", linear=True)},
    )  # fmt: skip
    m = cd.Mechanism("own", gravity=(0, 0, 0))
    m.body("wheel", mass=1.0, inertia=(0.1, 0.1, 0.1))
    m.joint("axle", cd.Revolute(axis=(0, 0, 1)), m.ground, "wheel")
    m.force("cubic", kind, "axle", k=2.0)
    if power == 1:
        assert np.isclose(cd.regressor(m.build(), [2.0]).matrix[0, -1], 8.0)
    else:
        with pytest.raises(cd.InputError, match=r"cubic\.k is declared linear"):
            cd.regressor(m.build(), [2.0])
