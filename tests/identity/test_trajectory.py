"""A trajectory against itself: energy and power, momentum, residuals, states between samples, parts of a batch."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import casadi as ca
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cardan as cd
from cardan import mechanisms
from cardan.integrate.explicit.stepper import ExplicitStepper
from cardan.integrate.integrators import Request
from cardan.structure.formulation import formulation_of

from ..graphs import consistent_states
from ..trees import close, floating_model

pytestmark = pytest.mark.usefixtures("quick_code")

Arrays = tuple[np.ndarray, np.ndarray, np.ndarray]


def march(model: cd.Model, q: np.ndarray, v: np.ndarray, h: float, n: int, tau: Any = None) -> Arrays:
    """Times (n + 1,) and states (..., n + 1, :) by the classical Runge-Kutta method on q itself."""

    def slope(t: float, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return cd.rates(model, q, v), cd.forward_dynamics(model, q, v, tau, t=t)

    qs, vs = [q], [v]
    for k in range(n):
        (q1, v1), t = (qs[-1], vs[-1]), k * h
        a = slope(t, q1, v1)
        b = slope(t + h / 2, q1 + h / 2 * a[0], v1 + h / 2 * a[1])
        c = slope(t + h / 2, q1 + h / 2 * b[0], v1 + h / 2 * b[1])
        d = slope(t + h, q1 + h * c[0], v1 + h * c[1])
        qs.append(q1 + h / 6 * (a[0] + 2 * b[0] + 2 * c[0] + d[0]))
        vs.append(v1 + h / 6 * (a[1] + 2 * b[1] + 2 * c[1] + d[1]))
    return h * np.arange(n + 1), np.stack(qs, axis=-2), np.stack(vs, axis=-2)


def four_bar() -> cd.Mechanism:
    """A linkage with every sort of force that takes or gives energy."""
    m = mechanisms.four_bar()
    m.spring("spring", "crank", "rocker", stiffness=60.0, length=0.5, at1=(0.4, 0.1, 0), at2=(0.3, 0, 0), damping=1.5)
    m.damper("damper", m.ground, "coupler", damping=0.8, at1=(1, -1, 0), at2=(0.5, 0.1, 0))
    m.friction("friction", "C", viscous=0.3, coulomb=0.2, smoothing=0.5)
    m.torsion("torsion", "B", stiffness=3.0, rest=0.2, damping=0.1)
    m.drive("drive", "A", lambda t, q, v: 2 * ca.sin(5 * t) - 0.1 * v)
    m.wrench("load", "rocker", (0, 0, 1, 2, 1, 0), at=(0.2, 0.3, 0), axes="body")
    m.user_force("wind", "coupler", lambda t, poses, twists: [ca.vertcat(0, 0, 0, -0.2 * twists[0][3:] * ca.cos(t))])
    return m


def driven_four_bar() -> cd.Mechanism:
    """The same with its crank moved as prescribed."""
    m = four_bar()
    m.motion("motion", "A", lambda t: 1.0 + 0.5 * t + 0.3 * ca.sin(4 * t))
    return m


def geared_arm() -> cd.Mechanism:
    """Bodies in space on a free one: a bushing, a ball joint, and two hinges geared together, one of them driven."""
    m = cd.Mechanism("geared arm", gravity=(0.3, -1.0, -9.81))
    for k, name in enumerate(("base", "link", "arm", "tip")):
        m.body(name, mass=1.0 + k, com=(0.1, 0.05 * k, -0.1), inertia=(0.3, 0.4, 0.5))
    m.joint("float", cd.Free(), m.ground, "base")
    m.joint("ball", cd.Spherical(), "base", "link", at=(0.3, 0, 0.1))
    m.joint("left", cd.Revolute(axis=(1, 2, 0)), "link", "arm", at=(0, 0.4, 0))
    m.joint("right", cd.Revolute(axis=(0, 1, 1)), "link", "tip", at=(0, -0.4, 0))
    m.bushing("bushing", m.ground, "base", stiffness=20.0, damping=(1, 2, 3, 4, 5, 6), at1=(0.1, 0, 0))
    m.couple("gear", {"left": 1.0, "right": -2.0})
    m.torsion("torsion", "left", stiffness=2.0, damping=0.3)
    m.drive("motor", "right", lambda t, q, v: ca.cos(3 * t) - 0.2 * v)
    return m


MECHANISMS: dict[str, Callable[[], cd.Mechanism]] = {
    make.__name__: make for make in (four_bar, driven_four_bar, geared_arm)
}


@cache
def built(name: str) -> cd.Model:
    return MECHANISMS[name]().build()


@cache
def short_run(name: str) -> cd.Trajectory:
    """Seven samples of two systems."""
    model = built(name)
    rng = np.random.default_rng(5)
    q, v = cd.assemble(model, np.stack([model.start()] * 2), 0.7 * rng.standard_normal((2, model.nv)))
    tau = rng.standard_normal((2, model.nv))
    t, q, v = march(model, q, v, 1e-3, 6, tau)
    return cd.Trajectory(model, t, q, v, tau=tau)


@pytest.mark.parametrize("name", MECHANISMS)
def test_energy_changes_by_power(name: str) -> None:
    run = short_run(name)
    E, h = run.energy, run.time[1]
    # differences of sixth order at the middle
    rate = (45 * (E[:, 4] - E[:, 2]) - 9 * (E[:, 5] - E[:, 1]) + E[:, 6] - E[:, 0]) / (60 * h)
    close(run.power[:, 3], rate, 1e-8)
    assert np.abs(rate).min() > 1e-2  # there was something to see
    close(run.energy, run.kinetic + run.potential, 1e-14)


@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=15, deadline=None)
def test_energy_changes_by_power_at_any_state(seed: int) -> None:
    model = built("four_bar")
    q, v, tau, _ = consistent_states(model, seed)
    a = cd.forward_dynamics(model, q, v, tau, t=0.3)

    def energy(h: float) -> float:
        moved, speed = cd.plus(model, q, h * v + h * h / 2 * a), v + h * a
        return float(cd.kinetic_energy(model, moved, speed) + cd.potential_energy(model, moved))

    h = 1e-4
    rate = (8 * (energy(h) - energy(-h)) - energy(2 * h) + energy(-2 * h)) / (12 * h)
    assert cd.power(model, q, v, tau, t=0.3) == pytest.approx(rate, rel=1e-7, abs=1e-7 * abs(energy(0.0)))


@pytest.mark.parametrize("name", ["driven_four_bar", "geared_arm"])
def test_multipliers_complete_the_equations(name: str) -> None:
    run = short_run(name)
    assert run.tau is not None
    eq = cd.equations(run.model)
    M, J = eq.M(run.q, run.time), eq.J(run.q, run.time)
    forces = eq.f(run.q, run.v, run.tau[:, None], t=run.time) - np.einsum("...li,...l", J, run.multipliers)
    close(np.einsum("...ij,...j", M, run.a), forces, 1e-9)
    assert np.abs(run.multipliers).max() > 1e-3


def test_momentum_is_kept_by_what_floats() -> None:
    model = floating_model(0)
    rng = np.random.default_rng(1)
    q, v = model.random_state(rng)
    t, q, v = march(model, q, 0.3 * v, 2e-3, 20)
    run = cd.Trajectory(model, t, q, v)
    close(run.momentum, np.broadcast_to(run.momentum[0], run.momentum.shape), 1e-9)
    close(run.power, np.zeros(21), 0.0)


def test_free_fall() -> None:
    m = cd.Mechanism("stone", gravity=(0, 0, -9.81))
    m.body("stone", mass=2.0, com=(0, 0, 0), inertia=(1, 2, 3))
    m.joint("float", cd.Free(), m.ground, "stone")
    m.frame("mark", "stone", at=(0.5, 0, 0))
    model = m.build()
    t = np.linspace(0, 1, 11)
    spin = 0.8  # rad/s about z, which is a principal axis
    w, p = np.zeros((11, 3)), np.zeros((11, 3))
    w[:, 2], p[:, 2] = spin, 1 + 3 * t - 9.81 / 2 * t**2
    half = spin * t / 2
    q = np.stack([*p.T, np.cos(half), 0 * t, 0 * t, np.sin(half)], axis=-1)
    v = np.concatenate([w, np.stack([0 * t, 0 * t, 3 - 9.81 * t], axis=-1)], axis=-1)
    run = cd.Trajectory(model, t, q, v)
    close(run.energy, np.full(11, 2 * 9.81 + 9 + 3 * spin**2 / 2), 1e-13)
    close(run.a, np.tile([0, 0, 0, 0, 0, -9.81], (11, 1)), 1e-13)
    mark = np.stack([0.5 * np.cos(2 * half), 0.5 * np.sin(2 * half), p[:, 2]], axis=-1)
    close(run.position("mark"), mark, 1e-14)
    close(run.position("stone", (0.5, 0, 0)), mark, 1e-14)
    close(run.velocity("mark"), np.stack([-spin * mark[:, 1], spin * mark[:, 0], v[:, 5]], axis=-1), 1e-14)
    close(run.momentum[:, 2], np.full(11, 3 * spin), 1e-14)
    assert run.coordinate("float").shape == (11, 7) and run.rate("float").shape == (11, 6)
    where, speed = run.at(0.33)  # a parabola with a constant turn: only the quaternion is not a polynomial
    close(where[2], 1 + 3 * 0.33 - 9.81 / 2 * 0.33**2, 1e-14)
    close(where[3:], [np.cos(spin * 0.165), 0, 0, np.sin(spin * 0.165)], 1e-10)
    close(speed, [0, 0, spin, 0, 0, 3 - 9.81 * 0.33], 1e-8)


def test_residuals_see_an_open_loop() -> None:
    run = short_run("four_bar")
    assert run.residuals.position.max() < 1e-10 and run.residuals.velocity.max() < 1e-9
    q, v = run.q.copy(), run.v.copy()
    q[1, 3, 0] += 1e-3
    v[0, 2, 1] += 1e-2
    moved = cd.Trajectory(run.model, run.time, q, v).residuals
    assert np.argwhere(moved.position > 1e-5).tolist() == [[1, 3]]
    assert [0, 2] in np.argwhere(moved.velocity > 1e-5).tolist()


@pytest.mark.parametrize("make", [mechanisms.four_bar, geared_arm])
def test_between_samples_the_error_falls_by_the_fifth_and_sixth_power(make: Callable[[], cd.Mechanism]) -> None:
    model = make().build()
    q, v = cd.assemble(model, v=0.5 * np.ones(model.nv))
    t, q, v = march(model, q, v, 5e-4, 160)
    errors = []
    for step in (40, 20):
        run = cd.Trajectory(model, t[::step], q[::step], v[::step])
        found = run.at(t)
        errors.append([np.abs(found[0] - q).max(), np.abs(found[1] - v).max()])
        between = cd.Trajectory(model, t, *found)
        assert between.residuals.position.max() < 1e-12 and between.residuals.velocity.max() < 1e-12
        close(found[0][::step], q[::step], 1e-10)
    orders = np.log2(np.array(errors[0]) / np.array(errors[1]))
    assert orders[0] > 5.3 and orders[1] > 4.4, orders


def test_between_samples_a_quaternion_may_change_sign() -> None:
    run = short_run("geared_arm")
    q = run.q.copy()
    for at in (slice(3, 7), slice(7, 11)):
        q[:, 3:, at] *= -1
    flipped = cd.Trajectory(run.model, run.time, q, run.v, tau=run.tau)
    t = np.array([0.0021, 0.0025, 0.0041])
    for body in run.model.body_names:
        a, b = (cd.Trajectory(run.model, t, *r.at(t)).position(body, (1, 2, 3)) for r in (run, flipped))
        close(a, b, 1e-12)


def test_padding_is_left_out() -> None:
    run = short_run("driven_four_bar")
    time, q, v = np.tile(run.time, (2, 1)), run.q.copy(), run.v.copy()
    for array in (time, q, v):
        array[1, 4:] = np.nan
    hit = cd.EventRecord("hit", 1, float(time[1, 3]), q[1, 3], v[1, 3])
    padded = cd.Trajectory(run.model, time, q, v, tau=run.tau, events=[hit], outcome=["", "it stopped"])
    for name in ("a", "power", "reactions", "multipliers", "momentum", "position_residual", "velocity_residual"):
        whole, part = run.quantity(name), padded.quantity(name)
        assert np.isnan(part[1, 4:]).all()
        close(part[0], whole[0], 0.0)
        close(part[1, :4], whole[1, :4], 0.0)
    q_at, _ = padded.at([0.0005, 0.0055])
    assert np.isnan(q_at[1, 1]).all() and not np.isnan(q_at[0]).any() and not np.isnan(q_at[1, 0]).any()
    one = padded[1]
    assert one.q.shape == (4, 3) and one.outcome == "it stopped" and one.events[0].system == ()
    close(one.power, run.power[1, :4], 0.0)
    close(one.at(0.0005)[0], q_at[1, 0], 0.0)
    assert padded[0].events == () and padded[1:].events[0].system == (0,)
    assert [len(part.time) for part in padded] == [7, 4]
    with pytest.raises(cd.InputError, match=r"between 0 s and 0\.003 s"):
        one.at(0.004)


def test_free_parameters_of_each_system() -> None:
    m = mechanisms.pendulum()
    model = m.build()
    body = model.body_names[0]
    mass = np.array([0.5, 2.0, 3.0])
    free = model.free(f"{body}.mass").at({f"{body}.mass": mass})
    t = np.linspace(0, 1, 5)
    q, v = np.full((3, 5, 1), 0.4), np.full((3, 5, 1), 0.2)
    q[1, 3:], v[1, 3:] = np.nan, np.nan
    run = cd.Trajectory(free, t, q, v)
    for k, value in enumerate(mass):
        one = cd.Trajectory(model.free(f"{body}.mass").at({f"{body}.mass": value}), t, q[k], v[k])
        for name in ("energy", "a", "reactions", "power"):
            np.testing.assert_allclose(run.quantity(name)[k], one.quantity(name), rtol=1e-12)
            np.testing.assert_allclose(run[k].quantity(name), one.quantity(name)[: len(run[k].time)], rtol=1e-12)
    assert len({float(E) for E in run.energy[:, 0]}) == 3


def test_a_batch_of_two_axes() -> None:
    run = short_run("four_bar")
    q, v = (np.stack([x, x, x]) for x in (run.q, run.v))
    grid = cd.Trajectory(run.model, run.time, q, v, events=[cd.EventRecord("e", (2, 1), 0.0, q[2, 1, 0], v[2, 1, 0])])
    assert grid.batch == (3, 2) and len(grid) == 3 and grid.energy.shape == (3, 2, 7)
    close(grid[2, 1].q, run[1].q, 0.0)
    assert grid[2].events[0].system == (1,) and grid[2, 1].events[0].system == ()
    assert grid.at(0.001)[0].shape == (3, 2, 3) and grid.dataset("energy").energy.dims == ("system0", "system1", "time")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"q": np.zeros((7, 4))}, r"q must have the shape \(\.\.\., n, 3\), got \(7, 4\)"),
        ({"v": np.zeros((6, 3))}, r"v must have the shape \(7, 3\), got \(6, 3\)"),
        ({"time": np.zeros(6)}, r"time must have the shape \(7,\)"),
        ({"time": -np.arange(7.0)}, "time must not decrease"),
        ({"tau": np.zeros(2)}, r"tau must have the shape \(3,\)"),
        ({"outcome": ["", ""]}, r"outcome must have the batch shape \(\), got \(2,\)"),
        ({"q": "no"}, "q must be an array of numbers, got 'no'"),
    ],
)
def test_what_does_not_fit_is_refused(change: dict[str, Any], words: str) -> None:
    run = short_run("four_bar")[0]
    given = {"time": run.time, "q": run.q, "v": run.v, **change}
    with pytest.raises(cd.InputError, match=words):
        cd.Trajectory(run.model, **given)


def test_unknown_names_are_refused() -> None:
    run = short_run("four_bar")[0]
    with pytest.raises(cd.UnknownNameError, match="did you mean 'energy'"):
        run.dataset("enrgy")
    with pytest.raises(cd.UnknownNameError, match="joint 'Q' is not in"):
        run.reaction("Q")
    with pytest.raises(cd.UnknownNameError, match="'C' closes a loop and has no coordinates"):
        run.plot("coordinates", joints=["C"])
    with pytest.raises(cd.InputError, match=r"point must have the shape \(3,\)"):
        run.position("crank", (1, 2))


def test_a_run_in_words() -> None:
    run = cd.Trajectory(built("four_bar"), *(x[..., :3] if x.ndim == 1 else x[0, :3] for x in (
        short_run("four_bar").time, short_run("four_bar").q, short_run("four_bar").v)), method="rk4")  # fmt: skip
    assert "'four_bar'" in repr(run) and "samples: 3" in repr(run) and "energy" not in repr(run)
    run.energy, run.residuals  # noqa: B018
    assert "change of energy" in repr(run) and "worst residual" in repr(run) and "rk4" in run._repr_html_()


@pytest.mark.parametrize("formulation", ["spatial", "points"])
def test_accelerations_at_a_start_are_those_of_forward_dynamics(formulation: str) -> None:
    # of closed loops they come from a step of no length, of open ones from a kernel of their own
    model = mechanisms.four_bar().build()
    q, v, tau, _ = consistent_states(model, 3, 4)
    stepper = cd.DormandPrince().stepper(model, formulation_of(model, formulation), Request(), tau)
    assert isinstance(stepper, ExplicitStepper)
    for start, compiled in ((v, False), (v + 0.1, True)):  # rates that open the loops
        stepper.begin(0.5, q, start)
        a, power = stepper.s["a"], stepper.s["power"]
        np.testing.assert_array_equal(stepper.s["v"], start)
        assert (stepper.s["steps"] == 0).all() and (stepper.s["t"] == 0.5).all() and (stepper.s["h"] > 0).all()
        close(a, cd.forward_dynamics(model, q, start, tau, formulation=formulation), 1e-11)
        close(power, np.sum(start * tau, axis=-1), 1e-11)
        assert ("evaluate" in vars(stepper.kernels)) is compiled
