"""Linear models against what else is known of them: sensitivities of runs, the descriptor form, differences."""

import numpy as np
import pytest

import cardan as cd
from cardan import mechanisms
from cardan.analysis.linear import linearise
from cardan.formulation.spatial import SPATIAL
from cardan.integrate import large as integrate_large
from cardan.structure import large

pytestmark = pytest.mark.usefixtures("quick_code")


def test_axes_that_turn_are_in_the_rates_of_coordinates() -> None:
    """Of a spinning body on a ball joint: `dq' = dv - w x dq`, and the accelerations along the tangent."""
    m = cd.Mechanism("top")
    m.body("top", mass=1.0, com=(0.1, 0.2, -0.5), inertia=(0.1, 0.2, 0.15))
    m.joint("ball", cd.Spherical(), "ground", "top")
    model = m.build()
    q, v = model.random_state(np.random.default_rng(3), 2)
    linear = cd.linearise(model, (q, v), inputs=())
    a = cd.forward_dynamics(model, q, v, by=("q", "v"))
    turning = -np.stack([np.cross(v, e) for e in np.eye(3)], axis=-1)
    upper = np.concatenate([turning, np.broadcast_to(np.eye(3), (2, 3, 3))], axis=-1)
    wanted = np.concatenate([upper, np.concatenate([a["q"], a["v"]], axis=-1)], axis=-2)
    assert np.allclose(linear.A, wanted, rtol=0, atol=1e-12 * np.abs(wanted).max())
    assert np.array_equal(linear[1].A, linear.A[1])


def held_four_bar() -> tuple[cd.Model, np.ndarray, np.ndarray, np.ndarray]:
    """Held by its crank."""
    model = mechanisms.four_bar().build()
    q, v = cd.assemble(model)
    return model, q, v, cd.inverse_dynamics(model, q, v, np.zeros(model.nv), driven=["A"])


def test_both_forms_have_one_transfer_function() -> None:
    """Of drives and wrenches, to everything that can be asked for."""
    model, q, v, tau = held_four_bar()
    outputs = {"top": lambda s: s.acceleration("coupler", (0.2, 0.1, 0))}
    names = ("q", "v", "a", "position.coupler", "rotation.coupler", "energy", "reactions.C")
    options = {"inputs": ["A", "wrench.coupler.force x"], "outputs": outputs | {name: name for name in names}}
    linear = cd.linearise(model, (q, v, tau), **options)
    whole = cd.linearise(model, (q, v, tau), form="descriptor", **options)
    assert linear.inputs == ("tau.A", "wrench.coupler.force x")
    s = np.array([0.3j, 5j, 1 + 2j])
    wanted = linear.transfer(s)
    assert np.allclose(whole.transfer(s), wanted, rtol=0, atol=1e-12 * np.abs(wanted).max())
    assert np.allclose(whole.eigenvalues, linear.eigenvalues, rtol=1e-6)
    assert np.array_equal(linear.response([1.0])[0], linear.transfer(2j * np.pi))
    statics = linear.select(inputs="tau.A", outputs="reactions.C.force x")
    assert statics.D.shape == (1, 1)


def test_eigenvalues_are_differentiated_through_assembly() -> None:
    """By a length and a mass of a loop that is held: against differences with the loop closed again."""
    model, q, _, tau = held_four_bar()
    free = model.free("B.at", "coupler.mass")
    state = {"q": q, "tau": tau}
    found = cd.modes(free, state, coordinates=["A"])
    exact = found.derivatives()

    def at(step: float, k: int) -> np.ndarray:
        p = free.parameters.nominal + step * np.eye(4)[k]
        moved = free.at({"B.at": p[:3], "coupler.mass": p[3]})
        closed = cd.assemble(moved, q, hold=["A"])[0]
        with pytest.warns(UserWarning, match="not in equilibrium"):
            return cd.modes(moved, {"q": closed, "tau": tau}, coordinates=["A"]).eigenvalues

    for k in (0, 3):
        h = 1e-3
        rate = sum(w * (at(n * h, k) - at(-n * h, k)) for n, w in {1: 3 / 4, 2: -3 / 20, 3: 1 / 60}.items()) / h
        assert np.allclose(exact[:, k], rate, rtol=0, atol=1e-8 * np.abs(rate).max())


def test_a_moving_loop_in_several_formulations() -> None:
    """Redundant in space. `A` is the derivative along the constraints, whose curvature is in it."""
    model = mechanisms.four_bar().build()
    q, v = cd.assemble(model, model.start(), 2 * np.ones(model.nv))
    a = cd.forward_dynamics(model, q, v, by=("q", "v"), chart="independent")
    free = [model.coordinate_names.index(name) for name in cd.independent_coordinates(model)]
    wanted = np.concatenate([a["q"][free], a["v"][free]], axis=1)
    for formulation in ("spatial", "points"):
        found = cd.linearise(model, (q, v), inputs=(), formulation=formulation)
        assert np.allclose(found.A, np.vstack([[0, 1], wanted]), rtol=1e-12)


def linked() -> cd.Model:
    """A four-bar with a ball and a gear beside it, springs, dampers and a free mass."""
    m = cd.mechanisms.four_bar()
    m.body("wheel", mass=0.4, com=(0.1, 0, 0), inertia=cd.inertia.box(0.4, (0.3, 0.2, 0.1)))
    m.joint("W", cd.Revolute(), m.ground, "wheel", at=(0, 2, 0), start=0.3)
    m.body("ball", mass=0.7, com=(0.02, 0, 0.1), inertia=np.diag([0.02, 0.03, 0.04]))
    m.joint("hook", cd.Spherical(), "rocker", "ball", at=(1, 0.3, 0))
    m.couple("gear", {"A": 2.0, "W": -1.0})
    m.torsion("t", "B", stiffness=2.0, rest=0.1, damping=0.3)
    m.spring("s", "ball", "crank", stiffness=50.0, damping=2.0, length=0.7, at1=(0, 0, 0.1))
    return m.build().free("coupler.mass")


@pytest.mark.parametrize("apart", [False, True], ids=["subtrees", "links"])
def test_sparse_equations_give_the_same_linear_model(apart: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    model = linked()
    q, _ = cd.assemble(model, {"A": 0.9})
    tau = np.linspace(-1, 1, model.nv)
    at = model.at({"coupler.mass": np.array([1.0, 2.5])})
    expected = cd.linearise(at, q, tau=tau)
    names = [name.removeprefix("q.") for name in expected.states if name.startswith("q.")]
    monkeypatch.setattr(large, "LOOP_PAST", 0)
    monkeypatch.setattr(integrate_large, "LARGEST_PIECE", 0 if apart else 99)
    monkeypatch.setattr(linearise, "linear_kernel", None)
    found = cd.linearise(linked().at({"coupler.mass": np.array([1.0, 2.5])}), q, tau=tau, coordinates=names)
    assert integrate_large.large_system(model, SPATIAL).in_tree != apart
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-10)
