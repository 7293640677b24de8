"""Motions through positions where constraints lose rank, against closed forms: right, or an error that says so.

A kite four-bar, sides 1, 2, 2, 1, is flat whenever its crank has turned fully: there another motion branches off, in
which the crank stands still and the other two bars turn together. With the crank at the angle f the joint C is at
(B + D)/2 + sqrt(4 - sin^2(f/2)) (cos f/2, sin f/2), so the motion is that of one freedom.
"""

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.interpolate import CubicSpline

import cardan as cd

SPEEDS = np.linspace(5.0, 9.0, 41)
TIMES = np.linspace(0.0, 3.0, 38)
pytestmark = pytest.mark.usefixtures("quick_code")


def kite_angles(f):
    """Angles of crank, coupler and rocker to the ground; f may be complex."""
    half = np.arctan(np.sin(f / 2) / np.sqrt(4 - np.sin(f / 2) ** 2))
    return np.array([f, f / 2 - half, f / 2 + half])


def kite() -> cd.Model:
    """Thin uniform rods of 1 kg/m."""
    m = cd.Mechanism("kite", gravity=(0, -9.81, 0))
    for name, length in (("crank", 1.0), ("coupler", 2.0), ("rocker", 2.0)):
        m.body(name, mass=length, com=(length / 2, 0, 0), inertia=(0, length**3 / 12, length**3 / 12))
    m.joint("A", cd.Revolute(axis=(0, 0, 1)), m.ground, "crank")
    m.joint("B", cd.Revolute(axis=(0, 0, 1)), "crank", "coupler", at=(1, 0, 0))
    m.joint("D", cd.Revolute(axis=(0, 0, 1)), m.ground, "rocker", at=(1, 0, 0))
    m.joint("C", cd.Revolute(axis=(0, 0, 1)), "coupler", "rocker", at=(2, 0, 0), child_at=(2, 0, 0), start=0.5)
    return m.build(cut=["C"])


def kite_state(f: float, speed):
    """Coordinates (3,) and rates (..., 3) of the tree on the kite's motion."""
    angles, step = kite_angles(f), 1e-30
    rates = np.imag(kite_angles(f + 1j * step)) / step
    own = np.array([[1, 0, 0], [-1, 1, 0], [0, 0, 1]])  # B turns relative to the crank
    return own @ angles, np.multiply.outer(speed, own @ rates)


def reduced(f):
    """Inertia and potential energy of the one freedom at crank angles (n,)."""
    step = 1e-30
    th = kite_angles(f + 1j * step)
    e = np.array([np.cos(th), np.sin(th)])
    coms = [e[:, 0] / 2, e[:, 0] + e[:, 1], np.array([[1], [0]]) + e[:, 2]]
    inertia = potential = 0.0
    for mass, com, angle in zip((1.0, 2.0, 2.0), coms, th, strict=True):
        inertia = inertia + mass * (np.imag(com / step) ** 2).sum(axis=0) + mass**3 / 12 * np.imag(angle / step) ** 2
        potential = potential + mass * 9.81 * np.real(com[1])
    return inertia, potential


@pytest.fixture(scope="module")
def crank_angles() -> np.ndarray:
    """The crank (41, n) at the times, from its energy: its rate is sqrt(2 (E - V) / m)."""
    f = np.linspace(0, 4 * np.pi, 4001)
    m, V = (CubicSpline(f, np.append(y[:-1], y[0]), bc_type="periodic") for y in reduced(f))
    E = m(1.2) * SPEEDS**2 / 2 + V(1.2)

    def rates(_, f):
        return np.sqrt(2 * (E - V(f)) / m(f))

    return solve_ivp(rates, (0, 3), np.full(41, 1.2), "DOP853", rtol=1e-11, atol=1e-11, t_eval=TIMES).y


@pytest.mark.parametrize("formulation", ["spatial", "newton_euler", "absolute", "relative", "points"])
@pytest.mark.parametrize(("method", "options"), [("dormand_prince", {}), ("rk4", {"step": 1e-3})])
def test_a_kite_turns_through_its_flat_position(formulation, method, options, crank_angles):
    """All 41 speeds, as one batch; before, up to 40 of them stopped dead there, without a word."""
    model = kite()
    q, v = kite_state(1.2, SPEEDS)
    run = cd.simulate(
        model, 3.0, q, v, formulation=formulation, method=method, samples=TIMES, failures="keep", **options
    )
    stopped = run.outcome != ""
    assert stopped.sum() <= 3 and set(run.outcome[stopped]) <= {"a singular position"}
    error = np.abs(run.q[..., 0] - crank_angles)[~stopped]
    assert error.max() < 1e-3
    assert np.ptp(run.energy[~stopped], axis=-1).max() < 1e-3 * run.kinetic[~stopped].max()


@pytest.mark.parametrize("samples", [2, 7, 50, 333])
def test_the_choice_of_samples_does_not_matter(samples, crank_angles):
    q, v = kite_state(1.2, SPEEDS)
    run = cd.simulate(kite(), 3.0, q, v, samples=samples)
    assert np.abs(run.q[:, -1, 0] - crank_angles[:, -1]).max() < 1e-3


@pytest.mark.parametrize(("method", "options"), [("gear", {"rtol": 1e-9, "atol": 1e-11}), ("alpha", {"step": 1e-3})])
def test_implicit_methods_pass_too(method, options, crank_angles):
    q, v = kite_state(1.2, SPEEDS)
    some = slice(0, 41, 8)
    run = cd.simulate(kite(), 3.0, q, v[some], method=method, samples=TIMES, **options)
    assert np.abs(run.q[..., 0] - crank_angles[some]).max() < 0.05


@pytest.mark.parametrize("method", ["dormand_prince", "gear"])
def test_the_branch_at_a_bifurcation_is_that_of_the_velocity(method):
    """Started in the flat position itself, along the kite's motion."""
    q, v = kite_state(0.0, 8.0)
    run = cd.simulate(kite(), 0.4, q, v, method=method, samples=2)
    np.testing.assert_allclose(run.q[-1], kite_state(run.q[-1, 0], 1.0)[0], atol=1e-7)
    assert run.q[-1, 0] > 3


def test_a_bifurcation_where_the_motion_is_not_determined_is_told():
    model, (q, v) = kite(), kite_state(0.0, 8.0)
    beside = v + np.array([0.0, 1.0, 1.0])  # both motions at once: no acceleration keeps the loop closed
    with pytest.raises(cd.InputError, match=r"lose rank \('C: force .'\).* none of the motions that branch there"):
        cd.simulate(model, 0.1, q, beside)
    with pytest.warns(RuntimeWarning, match="at rest: which of the motions .* is not determined"):
        cd.simulate(model, 0.01, q, samples=2)
