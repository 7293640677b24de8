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
