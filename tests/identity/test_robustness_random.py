"""Numerical robustness of random mechanisms: every answer keeps its bound, or comes with a warning or an error.

`python -m tests.identity.robustness_search` draws more; what it found is kept here as examples.
"""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import Phase, example, given, settings

import cardan as cd
from cardan.mechanisms import chain, scotch_yoke
from cardan.structure import rounding

from .robustness_errors import Comparison, interpreted
from .robustness_mechanisms import Case, Part, linkages, rings, trees
from .test_robustness import elastic, four_bar

pytestmark = pytest.mark.usefixtures("quick_code")

SIX = Part("free", 0, True, 1e3, 8e3, 1225)
FOUND = (
    # a reversed joint, kilometres away: rotations and translations differ in size
    Case((SIX,), keys=("spatial", "relative")),
    Case((replace(SIX, kind="planar"),), keys=("absolute", "points")),
    # no degree of freedom
    Case((Part("rigid", 0, False, 1.0, 1.0, 0),), keys=("spatial", "absolute", "relative", "points")),
    # 1e8 rad: `points` adds angles
    Case((Part("planar", 0, True, 0.25, 5e-4, 211),), angle=1e8, seed=536, keys=("spatial", "points")),
    # a light body that carries a heavy one far away, in absolute coordinates
    Case((Part("universal", 0, False, 1e3, 1e-5, 934), Part("screw", 1, False, 1e-9, 1e5, 8)), angle=1e3,
            keys=("absolute",)),
    # a dead point: constraint rows are independent, but small relative to the terms that they are computed from
    Case((Part("revolute", 0, False, 0.1, 2.5, 0), Part("revolute", 1, False, 1e-9, 0.63, 0),
             Part("revolute", 0, False, 1e-8, 1.0, 0)), closing="spherical", bent=1e-4, angle=1e3, seed=464,
            keys=("spatial",)),
    # a loop of 1000 km closed by a part of 30 micrometres
    Case((Part("revolute", 0, False, 0.8, 6e5, 18540), Part("revolute", 1, False, 2500.0, 2e5, 5740),
             Part("universal", 2, False, 2.5e-4, 3e-5, 22023)), closing="spherical", angle=1e3, seed=2628,
            keys=("spatial",)),
    # the same with free parameters
    Case((Part("revolute", 0, False, 4e3, 8e3, 0), Part("revolute", 1, False, 1.6e-8, 4e4, 0),
             Part("prismatic", 0, False, 2.5e-8, 4e3, 0)), closing="universal", bent=1e-12, gap=1e-6, seed=2083,
            keys=("spatial",), free=True),
)  # fmt: skip
FEW = {"phases": [Phase.explicit, Phase.generate]}  # a failure names itself; shrinking takes minutes


def check(w: Case) -> None:
    """Compare with exact answers; repeat with compiled kernels on NaN, since only these warn of it."""
    with interpreted():
        found = list(Comparison(w).answers())
    if not all(v.is_number for v in found):
        found = list(Comparison(w).answers())
    assert [v for v in found if not v.is_acceptable] == []


def test_found():
    """Cases that longer searches have found."""
    for w in FOUND:
        check(w)


@settings(max_examples=2, **FEW)
@given(w=trees(most=4))
def test_trees(w):
    """Trees of all joint kinds, on springs or not."""
    check(w)


@settings(max_examples=2, **FEW)
@given(w=rings())
def test_rings(w):
    """Chains closed by a joint of any kind."""
    check(w)


@settings(max_examples=2, **FEW)
@given(w=linkages())
def test_linkages(w):
    """Linkages, near dead points too, closed or open."""
    check(w)


@settings(max_examples=2, **FEW)
@given(w=trees(most=3))
@example(w=Case((Part("revolute", 0, False, 1e3, 1.0, 3), Part("spherical", 1, True, 1e-3, 10.0, 4))))
def test_compiled(w):
    """With compiled kernels."""
    assert [v for v in Comparison(w).answers() if not v.is_acceptable] == []


def hammer(light: float) -> cd.Mechanism:
    """A light body between two heavy ones: its joint moves very little inertia."""
    m = cd.Mechanism(f"hammer {light}")
    for name, mass, x in (("base", 1e3, 0.5), ("handle", light, 0.5), ("head", 1e3, 0.0)):
        m.body(name, mass=mass, com=(x, 0, 0), inertia=mass * np.array([0.01, 0.1, 0.1]))
    for name, near, far, x in (("a", m.ground, "base", 0), ("b", "base", "handle", 1), ("c", "handle", "head", 0)):
        m.joint(name, cd.Revolute(axis=(0, 1, 0)), near, far, at=(x, 0, 0))
    return m


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("formulation", ["spatial", "newton_euler"])
def test_warning_of_trees(formulation, monkeypatch):
    """An ill-conditioned tree warns once; a well-conditioned one does not."""
    q, v = np.array([0.3, 0.4, 0.5]), np.zeros(3)
    with interpreted():
        cd.forward_dynamics(hammer(1e-9).build(), q, v, formulation=formulation)  # some digits are left
        monkeypatch.setattr(rounding, "TOO_LARGE", 1e9)  # `build` rejects trees that lose them all
        cd.forward_dynamics(hammer(1e-3).build(), q, v, formulation=formulation)
        model = hammer(1e-9).build()
        with pytest.warns(RuntimeWarning, match="magnify rounding") as caught:
            cd.forward_dynamics(model, q, v, formulation=formulation)
        assert caught[0].filename == __file__
        cd.forward_dynamics(model, q, v, formulation=formulation)
        with pytest.warns(RuntimeWarning, match="magnify rounding"):
            cd.simulate(hammer(1e-9).build(), 1e-3, q, method="rk4", step=1e-3, samples=2, formulation=formulation)


@pytest.mark.filterwarnings("error")
def test_warning_of_free_parameters(monkeypatch):
    """Values of free parameters are checked at the first call, several of a batch."""
    q, v = np.array([0.3, 0.4, 0.5]), np.zeros(3)
    light = {"handle.mass": np.array([1.0, 1e-9]), "handle.inertia": np.outer([1.0, 1e-9], [0.01, 0.1, 0.1, 0, 0, 0])}
    bar, masses = four_bar((1, 1, 1), 1.0), {"crank": 1e9, "coupler": 1e-9, "rocker": 1e9}
    extreme = {f"{name}.mass": mass for name, mass in masses.items()}
    extreme |= {f"{name}.inertia": mass * bar.body(name).inertia for name, mass in masses.items()}
    with interpreted():
        at = bar.free(*extreme).at(extreme)
        with pytest.warns(RuntimeWarning, match="magnify rounding"):
            cd.forward_dynamics(at, cd.assemble(at)[0], v)
        monkeypatch.setattr(rounding, "TOO_LARGE", 1e9)
        cd.forward_dynamics(hammer(1.0).build().free("handle.mass").at({"handle.mass": [0.5, 2.0]}), q, v)
        with pytest.warns(RuntimeWarning, match="magnify rounding"):
            cd.forward_dynamics(hammer(1.0).build().free("handle.mass", "handle.inertia").at(light), q, v)


@pytest.mark.filterwarnings("error")
def test_no_warning_of_long_chains():
    """Long uniform chains do not warn, though their mass matrix is ill-conditioned: the recursion is accurate."""
    model = chain(200).build()
    assert model.tree.mobility[1] < 1e-2 * rounding.TREE_DOUBTFUL


def test_warning_of_open_loops():
    """A model's first call warns of an open loop; a closed one does not."""
    q, v = cd.assemble(four_bar((1, 1, 1), 1.0))
    with interpreted(), warnings.catch_warnings():
        warnings.simplefilter("error")
        cd.forward_dynamics(four_bar((1, 1, 1), 1.0), q + 1e-6, v)
        for ask in (cd.forward_dynamics, cd.reactions):
            model = four_bar((1, 1, 1), 1.0)
            with pytest.warns(RuntimeWarning, match="open by"):
                ask(model, q + 0.1, v)
            ask(model, q + 0.1, v)


def test_warning_of_lost_energy():
    """A run that loses energy over many steps with loose tolerances warns."""
    swinging = elastic(1e12, 1.0, cd.Planar((0, 0, 1), (1, 0, 0)), gravity=9.81)
    with pytest.warns(RuntimeWarning, match="energy exchanged is not accounted for"):
        cd.simulate(swinging, 0.4, [1.0, 0, 0], method="gear", rtol=1e-5, atol=1e-5, samples=51)


def test_loose_gear():
    """Constraint residuals of `gear` at loose tolerances are not reported as conflicting constraints."""
    model = scotch_yoke().build()
    run = cd.simulate(model, 0.1, method="gear", rtol=1e-3, atol=1e-3, samples=2)
    assert run.residuals.position.max() < 1e-3


def test_later_calls_are_watched():
    """A dead point at a later call, or in a later batch, warns once; a mechanism that stays away from one does not."""
    model = four_bar((1, 1, 1), 1.0, (1, 1, 1, 1))
    regular = [cd.assemble(model, [x, -x, x], hold=["A"])[0] for x in (1.0, 1.1)]
    dead, v = np.array([1e-8, -1e-8, 1e-8]), np.zeros(3)
    cd.condition(model, dead, formulation="absolute")  # recorded
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(20):
            cd.forward_dynamics(model, regular[0], v, formulation="absolute")
    with pytest.warns(RuntimeWarning, match="at a q given") as caught:
        for _ in range(45):
            cd.forward_dynamics(model, dead, v, formulation="absolute")
    assert len(caught) == 1
    batch = four_bar((1, 1, 1), 1.0, (1, 1, 1, 1))
    cd.forward_dynamics(batch, np.array(regular * 2), v, formulation="absolute")
    with pytest.warns(RuntimeWarning, match="at a q given"):
        cd.forward_dynamics(batch, np.array([*regular, dead]), v, formulation="absolute")
