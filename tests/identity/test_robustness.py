"""Numerical robustness: extreme ratios, singular positions, non-unit quaternions, huge angles, stiff springs.

Every answer keeps the bound of `docs/robustness.md`, or comes with a warning or an error. The reference is computed
from the same equations with 60 digits. Random mechanisms are in `test_robustness_random.py`.
"""

import warnings
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cardan as cd
from cardan import mechanisms
from cardan.formulation import dynamics as general
from cardan.formulation.registry import find_formulation
from cardan.mechanisms import random_inertia
from cardan.structure.kernels import function_of
from cardan.structure.rounding import TOO_LARGE
from cardan.structure.rows import kept_rows

from ..high_precision import exact, exact_accelerations
from ..trees import KINDS, floating_model, random_rotation, seeds, state
from .robustness_errors import exact_answers, interpreted

pytestmark = pytest.mark.usefixtures("quick_code")

EPS = 2.0**-52  # times the condition: the bound
JOINT = cd.Revolute(axis=(0, 0, 1))


@cache
def harsh_tree(seed: int) -> cd.Model:
    """Three bodies of 1e-9 to 1e9 kg and 1e-6 to 1e6 m, one after another."""
    rng = np.random.default_rng([7, seed])
    m, near = cd.Mechanism(f"harsh {seed}", gravity=rng.uniform(-10, 10, 3)), "ground"
    for k in range(3):
        mass, length = 10 ** rng.uniform(-9, 9), 10 ** rng.uniform(-6, 6)
        inertia = 0.3 * mass * length**2 * random_inertia(rng)
        body = m.body(f"b{k}", mass=mass, com=length * rng.uniform(-0.5, 0.5, 3), inertia=inertia)
        kind = KINDS[str(rng.choice([name for name in KINDS if name != "rigid"]))](rng)
        at, child_at = (cd.Pose(length * rng.uniform(-0.5, 0.5, 3), random_rotation(rng)) for _ in range(2))
        near = m.joint(f"j{k}", kind, near, body, at=at, child_at=child_at) and body
    return m.build()


def four_bar(masses: tuple[float, float, float], size: float, lengths: tuple[float, ...] = (1, 3, 2.5, 3)) -> cd.Model:
    """A four-bar linkage of given masses; the lengths are of crank, coupler, rocker and base, times the size, m."""
    m = cd.Mechanism(f"four-bar {masses} {size} {lengths}", gravity=(0, -9.81, 0))
    a, b, c, d = (size * x for x in lengths)
    for name, mass, x in zip(("crank", "coupler", "rocker"), masses, (a, b, c), strict=True):
        m.body(name, mass=mass, com=(x / 2, 0, 0), inertia=mass * x**2 / 12 * np.array([1e-3, 1, 1]))
    m.joint("A", JOINT, m.ground, "crank", start=1.0)
    m.joint("B", JOINT, "crank", "coupler", at=(a, 0, 0), start=-0.5)
    m.joint("D", JOINT, m.ground, "rocker", at=(d, 0, 0), start=1.5)
    m.joint("C", JOINT, "coupler", "rocker", at=(b, 0, 0), child_at=(c, 0, 0))
    return m.build()


def elastic(stiffness: float, length: float, kind: cd.model.joint.JointType, gravity: float = 0.0) -> cd.Model:
    """A kilogram on a spring from the origin."""
    m = cd.Mechanism("elastic", gravity=(0, -gravity, 0))
    m.body("b", mass=1.0, inertia=(1e-3, 1e-3, 1e-3))
    m.joint("j", kind, m.ground, "b")
    m.spring("s", m.ground, "b", stiffness=stiffness, length=length)
    return m.build()


@pytest.mark.parametrize(
    ("masses", "size"),
    [((1, 1, 1), 1e-6), ((1e3, 1e-3, 1e3), 1), ((1e9, 1e-9, 1e9), 1)],
)
def test_loops(masses, size):
    """Errors of accelerations are within rounding times `cd.condition`, or a warning comes; loops close to rounding."""
    model = four_bar(masses, size)
    q, v = cd.assemble(model, None, np.ones(3))
    assert np.abs(cd.constraint_residual(model, q)).max() <= 20 * EPS * size
    for formulation in ("spatial", "absolute", "points"):
        right = exact_answers(model, formulation, q, v, np.zeros(3))[0]
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            a = cd.forward_dynamics(model, q, v, formulation=formulation)
        assert bool(caught) == bool(cd.condition(model, q, formulation=formulation) >= TOO_LARGE)
        k = cd.condition(model, q, v, formulation=formulation)
        assert caught or np.abs(a - right).max() <= EPS * k * np.abs(right).max()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        cd.simulate(four_bar(masses, size), 1e-9, q, v, samples=2)
    assert bool(caught) == (cd.condition(model, q) >= TOO_LARGE)


def test_reactions():
    """Errors of reactions are within rounding times the condition."""
    model = four_bar((1e3, 1e-3, 1e3), 1.0)
    q, v = cd.assemble(model, None, np.ones(3))
    for key in ("spatial", "absolute"):
        formulation = find_formulation(key)
        graph = function_of(model, general.reactions(model, formulation, kept_rows(model, formulation)))
        (right,) = exact(graph, q, v, np.zeros(3), np.zeros((3, 6)))
        error = np.abs(cd.reactions(model, q, v, formulation=key) - right)[:, 3:].max()
        assert error <= EPS * cd.condition(model, q, v, formulation=key) * np.abs(right[:, 3:]).max()


@settings(max_examples=10)
@given(scale=st.sampled_from([1e-6, 1e-3, 1e3, 1e6]))
def test_condition_has_no_units(scale):
    """The condition does not depend on the units of length and mass, and is at least 1."""
    model, other = four_bar((1, 2, 3), 1.0), four_bar((scale, 2 * scale, 3 * scale), scale)
    q, _ = cd.assemble(model)
    k = cd.condition(model, np.tile(q, (2, 1)))
    assert (k >= 1).all()
    assert 0.5 < cd.condition(other, q) / k[0] < 2  # gravity is not scaled, and other roundings are exact


def thin_rod(thin: float) -> cd.Model:
    """Two cranks and, between ball joints, a rod with so much less inertia about its own axis."""
    m = cd.Mechanism(f"thin rod {thin}", gravity=(0, 0, -9.81))
    m.body("crank", mass=1.0, com=(0.1, 0, 0), inertia=(0.01, 0.01, 0.01))
    m.body("rod", mass=1.0, com=(0.5, 0, 0), inertia=np.array([thin, 1, 1]) / 12)
    m.body("rocker", mass=1.0, com=(0.2, 0, 0), inertia=(0.02, 0.02, 0.02))
    m.joint("A", JOINT, m.ground, "crank", start=0.3)
    m.joint("B", cd.Spherical(), "crank", "rod", at=(0.3, 0, 0))
    m.joint("D", cd.Revolute(axis=(0, 1, 0)), m.ground, "rocker", at=(1, 0.2, 0.1), start=0.4)
    m.joint("C", cd.Spherical(), "rod", "rocker", at=(1, 0, 0), child_at=(0.4, 0, 0))
    return m.build()


@pytest.mark.parametrize("thin", [1e-4, 1e-8, 1e-10])
def test_thin_rods(thin):
    """Errors grow as a rod between ball joints becomes thin, and the condition with them, not with their root."""
    with interpreted(), warnings.catch_warnings():
        warnings.simplefilter("error")
        model = thin_rod(thin)
        q, v = cd.assemble(model, None, np.ones(model.nv))
        for key in ("spatial", "absolute", "relative"):
            right = exact_answers(model, key, q, v, np.zeros(model.nv))[0]
            a = cd.forward_dynamics(model, q, v, formulation=key)
            k = cd.condition(model, q, v, formulation=key)
            assert np.abs(a - right).max() <= EPS * k * np.abs(right).max()
            assert k <= 1e3 / thin


@pytest.mark.parametrize("kind", [JOINT, cd.Spherical()])
def test_welded_point_mass(kind):
    """A point mass welded to a body loses no digit, and the condition says so, in every formulation."""
    m = cd.Mechanism("welded", gravity=(0, -9.81, 0))
    m.body("b", mass=1.0, com=(0.5, 0, 0), inertia=(0.01, 0.1, 0.1))
    m.body("point", mass=2.0)
    m.joint("j", kind, m.ground, "b")
    m.joint("weld", cd.Rigid(), "b", "point", at=(1, 0, 0))
    with interpreted(), warnings.catch_warnings():
        warnings.simplefilter("error")
        model = m.build()
        q = cd.plus(model, model.start(), np.full(model.nv, 0.3))
        right = exact_accelerations(model, "spatial", q, np.ones(model.nv), np.zeros(model.nv))
        for key in ("spatial", "newton_euler", "absolute", "relative"):
            a = cd.forward_dynamics(model, q, np.ones(model.nv), formulation=key)
            assert np.abs(a - right).max() <= 100 * EPS * np.abs(right).max()
            assert cd.condition(model, q, formulation=key) < 1e4


def test_dead_point():
    """Near the dead point of a rhombus errors follow the condition. At it the answer is the limit."""
    model = four_bar((1, 1, 1), 1.0, (1, 1, 1, 1))
    for angle in (1e-2, 1e-5, 1e-8):
        q, v = cd.assemble(model, [angle, -angle, angle], np.ones(3), hold=["A"])
        right = exact_accelerations(model, "spatial", q, v, np.zeros(3))
        for formulation in ("spatial", "absolute", "points"):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of `absolute` at 1e-8 rad
                a = cd.forward_dynamics(model, q, v, formulation=formulation)
            assert cd.condition(model, q, formulation=formulation) > 0.1 / angle
            k = cd.condition(model, q, v, formulation=formulation)
            assert np.abs(a - right).max() <= min(EPS * k, 1e-6) * np.abs(right).max()
    flat = cd.forward_dynamics(model, np.zeros(3), np.zeros(3))
    np.testing.assert_allclose(flat, cd.forward_dynamics(model, [1e-9, -1e-9, 1e-9], np.zeros(3)), rtol=1e-6)


@settings(max_examples=10)
@given(off=st.sampled_from([1e-8, 1e-6, 1e-3, -1e-3, 1.0]), draw=seeds)
def test_quaternions_off_unit_length(off, draw):
    """A multiple of a quaternion is the same rotation: dynamics ignore its length, `simulate` rejects it."""
    model = floating_model(0)
    q, v, tau, _ = state(model, draw)
    scaled = q.copy()
    scaled[3:7] *= 1 + off
    for name in ("forward_dynamics", "inverse_dynamics"):
        right = getattr(cd, name)(model, q, v, tau)
        np.testing.assert_allclose(getattr(cd, name)(model, scaled, v, tau), right, atol=1e-11 * np.abs(right).max())
    np.testing.assert_allclose(cd.body_poses(model, scaled), cd.body_poses(model, q), atol=1e-14)
    if abs(off) > 1e-7:
        with pytest.raises(cd.InputError, match="must be 1"):
            cd.simulate(model, 0.1, scaled, v)


def test_nan_is_flagged():
    """A NaN that no NaN caused comes with NumPy's floating-point warning, in batches and single rows."""
    model = floating_model(0)
    with pytest.warns(RuntimeWarning, match="invalid value"):
        assert np.isnan(cd.body_poses(model, np.zeros(model.nq))).any()
    arm = harsh_tree(2)
    q, v, tau, _ = state(arm, 1, 40)
    for rows in (0, slice(None)):
        with np.errstate(all="raise"), pytest.raises(FloatingPointError):
            cd.forward_dynamics(arm, q[rows], 1e250 * v[rows], tau[rows])
    with pytest.raises(cd.SimulationError, match="finite"):
        cd.simulate(arm, 1.0, q[0], 1e150 * v[0], samples=2)


def test_huge_angles():
    """At angles of 1e8 rad the answer is right to rounding."""
    model = four_bar((1, 2, 3), 1.0)
    q, v = cd.assemble(model, None, np.ones(3))
    q = q + 2 * np.pi * np.array([1.6e7, -1.6e7, 1.6e6])  # rounds to 1.5e-8 rad: the loop opens by as much
    right = exact_accelerations(model, "spatial", q, v, np.zeros(3))
    for formulation in ("spatial", "newton_euler"):
        a = cd.forward_dynamics(model, q, v, formulation=formulation)
        assert np.abs(a - right).max() <= EPS * cd.condition(model, q, v) * np.abs(right).max()


@settings(max_examples=20)
@given(x=st.floats(-7, 6).map(lambda e: 10.0**e), stretch=st.floats(0.1, 1))
def test_springs_of_any_length(x, stretch):
    """Force and energy of springs from 1e-7 m to 1000 km; the force is zero at zero length."""
    model = elastic(1e4, 1.0, cd.Prismatic(axis=(1, 0, 0))).free("s.length").at({"s.length": x * (1 - stretch)})
    np.testing.assert_allclose(cd.forward_dynamics(model, [x], [0.0]), [-1e4 * x * stretch], rtol=20 * EPS / stretch)
    np.testing.assert_allclose(cd.potential_energy(model, [x]), 5e3 * (x * stretch) ** 2, rtol=40 * EPS / stretch)
    assert cd.forward_dynamics(model, [0.0], [1.0]) == 0


def test_stiffness():
    """With 1e12 N/m: vibrations as in the closed form, slow motion with `alpha`, or an error that says why not."""
    model = elastic(1e12, 1.0, cd.Prismatic(axis=(1, 0, 0)))
    for method in ("gear", "dormand_prince"):
        run = cd.simulate(model, 2e-5, [1.001], [0.0], method=method, samples=2)
        np.testing.assert_allclose(run.q[-1], 1 + 1e-3 * np.cos(20.0), atol=1e-7)
    swinging = elastic(1e12, 1.0, cd.Planar((0, 0, 1), (1, 0, 0)), gravity=9.81)
    rigid = cd.Mechanism("rigid", gravity=(0, -9.81, 0))
    rigid.joint("j", JOINT, rigid.ground, rigid.body("b", mass=1.0, com=(1, 0, 0), inertia=(1e-9, 1e-9, 1e-9)))
    angle = cd.simulate(rigid.build(), 0.5, [0.0], [0.0], samples=2).q[-1, 0]
    run = cd.simulate(swinging, 0.5, [1.0, 0, 0], method="alpha", step=1e-3, samples=2)
    np.testing.assert_allclose(run.q[-1, :2], [np.cos(angle), np.sin(angle)], atol=1e-4)
    for method, settings_ in (("rk4", {"step": 1e-3}), ("dormand_prince", {"max_steps": 2000})):
        with pytest.raises(cd.SimulationError, match="steps"):
            cd.simulate(swinging, 0.5, [1.0, 0, 0], method=method, samples=2, **settings_)


@pytest.mark.parametrize("formulation", ["spatial", "absolute", "points"])
def test_the_condition_at_nan_is_nan(formulation: str) -> None:
    """The other rows of a batch are not affected; an empty batch of free parameters works."""
    model = mechanisms.four_bar().build()
    q = np.array([model.start()] * 3)
    q[1, 0], q[2, 1] = np.nan, np.inf
    found = cd.condition(model, q, formulation=formulation)
    assert found[0] == cd.condition(model, q[0], formulation=formulation)
    assert np.isnan(found[1:]).all()
    nothing = model.free("coupler.mass").at({"coupler.mass": np.empty(0)})
    assert cd.forward_dynamics(nothing, q[0], np.zeros(model.nv), formulation=formulation).shape == (0, model.nv)
