"""Mechanisms whose independent constraint rows change on the way: every formulation and method against the judge."""

import numpy as np
import pytest

import cardan as cd
from cardan.mechanisms import bennett, four_bar, n_four_bar, parallelogram, sarrus
from cardan.structure.row_sets import is_settled, row_sets

from ..judge.known_defects import coaxial_cranks, state_in_mode
from ..judge.maximal_coordinates import Judge

pytestmark = pytest.mark.usefixtures("quick_code")


def test_which_choices_are_settled():
    """Planar loops leave the same rows out everywhere; special lengths or axes do not."""
    settled = {
        make.__name__: is_settled(make().build()) for make in (four_bar, n_four_bar, parallelogram, bennett, sarrus)
    }
    assert settled == {"four_bar": True, "n_four_bar": True, "parallelogram": False, "bennett": False, "sarrus": False}


def test_a_loop_that_adds_no_constraint_changes_nothing():
    """A double pendulum in an oblique plane, its last body also on that plane: all rows are rounding."""

    def pendulum(loop):
        m = cd.Mechanism("double pendulum", gravity=(0.5, -9.81, 2.0))
        for name in ("upper", "lower"):
            m.body(name, mass=1.0, com=(0.3, -0.1, 0.2), inertia=(0.1, 0.1, 0.1))
        m.joint("A", cd.Revolute(axis=(1, 2, 3)), m.ground, "upper")
        m.joint("B", cd.Revolute(axis=(1, 2, 3)), "upper", "lower", at=(0.7, 0.2, -0.1))
        if loop:
            m.joint("C", cd.Planar(normal=(1, 2, 3)), m.ground, "lower", child_at=(-0.7, -0.2, 0.1))
        return m.build(cut=["C"]) if loop else m.build()

    closed, rng = pendulum(True), np.random.default_rng(0)
    assert is_settled(closed)
    for _ in range(20):
        q, v = rng.uniform(-1, 1, (2, 2))
        np.testing.assert_allclose(cd.assemble(closed, q, v), (q, v), rtol=1e-12)
    wanted = cd.forward_dynamics(pendulum(False), q, v)
    for formulation in ("spatial", "absolute", "points"):
        np.testing.assert_allclose(cd.forward_dynamics(closed, q, v, formulation=formulation), wanted, rtol=1e-11)
    assert cd.actuation(closed, q, ["A", "B"]).kind == "exact"
    tau = cd.inverse_dynamics(closed, q, v, wanted, driven=["A", "B"])
    np.testing.assert_allclose(cd.forward_dynamics(closed, q, v, tau), wanted, rtol=1e-11)


@pytest.mark.parametrize("built_at", [0.0, 0.7])
@pytest.mark.parametrize("formulation", ["spatial", "absolute", "relative", "points"])
def test_rows_judged_in_one_mode_are_not_used_in_the_other(built_at, formulation):
    """Two coaxial cranks, two bars and a slider: two freedoms with the slider on the axis, one elsewhere."""
    model = coaxial_cranks(built_at).build(cut=["C1", "C2"])
    judge, rng = Judge(model), np.random.default_rng(3)
    states = [state_in_mode(model, mode, rng) for mode in (0.0, 0.9, 0.0, 0.6)]
    q, v = (np.array(x) for x in zip(*states, strict=True))
    a = cd.forward_dynamics(model, q, v, formulation=formulation)
    right = np.array([judge.solve(*state).a for state in states])
    np.testing.assert_allclose(a, right, atol=1e-9 * np.abs(right).max())
    np.testing.assert_array_equal(cd.forward_dynamics(model, q[1], v[1], formulation=formulation), a[1])


@pytest.mark.parametrize(("method", "options"), [("dormand_prince", {}), ("gear", {}), ("alpha", {"step": 1e-3})])
def test_loops_stay_closed_in_both_modes(method, options):
    model = coaxial_cranks(0.0).build(cut=["C1", "C2"])
    for mode in (0.0, 0.9):
        q, v = state_in_mode(model, mode, np.random.default_rng(2))
        run = cd.simulate(model, 0.3, q, v, method=method, samples=4, **options)
        assert np.abs(cd.constraint_residual(model, run.q)).max() < 1e-9
        assert np.ptp(run.energy) < 1e-3 * np.abs(run.kinetic).max()


def test_free_parameters_have_their_own_choice():
    """A batch of masses: each state is solved with rows that are good where it is."""
    model = coaxial_cranks(0.0).build(cut=["C1", "C2"]).free("slider.mass")
    rng = np.random.default_rng(5)
    q, v = (np.array(x) for x in zip(*(state_in_mode(model, x, rng) for x in (0.0, 0.9, 0.9)), strict=True))
    masses = np.array([0.5, 1.0, 2.0])
    a = cd.forward_dynamics(model.at({"slider.mass": masses}), q, v)
    for k, mass in enumerate(masses):
        one = model.at({"slider.mass": mass})
        np.testing.assert_allclose(cd.forward_dynamics(one, q[k], v[k]), a[k], rtol=1e-12)
    assert len(row_sets(model).members) == 2
