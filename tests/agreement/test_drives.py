"""One recursion driven two ways, unrolled and looped; both precisions, kernel and interpreter, small and looped."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import cardan as cd
from cardan import mechanisms
from cardan.formulation.quantity import Quantity, port_shape
from cardan.formulation.registry import find_formulation
from cardan.functions import looped
from cardan.structure import kernels as evaluate
from cardan.structure.kernels import compile_quantity, function_of

from ..formulations import RECURSIONS
from ..trees import KINDS, TREES, close, kind_model, state, tree_model

pytestmark = pytest.mark.usefixtures("quick_code")

DOUBLE, SINGLE = np.dtype(np.float64), np.dtype(np.float32)


def inputs(model: cd.Model, quantity: Quantity, batch: tuple[int, ...], dtype: np.dtype) -> list[np.ndarray]:
    q, v, tau, wrenches = state(model, 3, *batch)
    values = {"q": q, "v": v, "a": tau, "tau": tau, "wrenches": wrenches}
    return [values[port].astype(dtype) for port in quantity.inputs]


def by_graph(model: cd.Model, quantity: Quantity, given: list[np.ndarray]) -> np.ndarray:
    """A quantity at each row of a batch: CasADi interprets the unrolled graph."""
    graph, shape = function_of(model, quantity), quantity.outputs[0][1](model)
    if len(quantity.outputs) > 1:
        return np.array([in_one([np.array(x) for x in graph(*row)], 0) for row in zip(*given, strict=True)])
    return np.array([np.array(graph(*row)).reshape(shape) for row in zip(*given, strict=True)])


def in_one(result: Any, batch: int) -> np.ndarray:
    """Several arrays of a result, after the axes of the batch, as one; a single array as it is."""
    if not isinstance(result, (tuple, list)):
        return np.asarray(result)
    return np.concatenate([x.reshape(*x.shape[:batch], -1) for x in result], axis=-1)


@pytest.mark.parametrize("backwards", [False, True], ids=["forwards", "backwards"])
@pytest.mark.parametrize("kind", KINDS)
def test_the_looped_drive_holds_for_every_joint_kind(kind: str, backwards: bool) -> None:
    model = kind_model(kind, backwards)
    for name in ("forward_dynamics_loaded", "coriolis_matrix", "inverse_dynamics_derivatives"):
        quantity = RECURSIONS["spatial"][name]
        given = inputs(model, quantity, (5,), DOUBLE)
        got = in_one(compile_quantity(model, quantity, "spatial", looped=True)(*given), 1)
        close(got, by_graph(model, quantity, given), 1e-12)


@pytest.mark.parametrize("tree", range(TREES))
def test_the_looped_drive_holds_for_trees_with_branches_and_massless_bodies(tree: int) -> None:
    model, quantity = tree_model(tree).unmerged, RECURSIONS["newton_euler"]["joint_wrenches"]
    given = inputs(model, quantity, (5,), DOUBLE)
    got = compile_quantity(model, quantity, "newton_euler", looped=True)(*given)
    close(got, by_graph(model, quantity, given), 1e-12)


@pytest.mark.parametrize("formulation", ["spatial", "newton_euler"])
@pytest.mark.parametrize("tree", [1])
def test_what_large_models_put_together_is_what_the_graphs_say(tree: int, formulation: str) -> None:
    model = tree_model(tree, 4)
    q, v, tau, wrenches = state(model, 4, 5)
    options, found = {"formulation": formulation}, find_formulation(formulation)
    close(looped.inverse_mass_matrix(model, q, found), cd.inverse_mass_matrix(model, q, **options), 1e-11)
    close(looped.centroidal_momentum(model, q, v, found), cd.centroidal_momentum(model, q, v, **options), 1e-12)
    for w in (None, wrenches):
        got = looped.solve_forward(model, q, v, tau, w, found)
        close(got, cd.forward_dynamics(model, q, v, tau, wrenches=w, **options), 1e-11)
    for frame in ("tool", "b1", "mark", "ground"):
        close(looped.jacobian(model, q, frame), cd.jacobian(model, q, frame), 1e-12)


def test_a_chain_of_150_links_through_the_public_functions() -> None:
    model = mechanisms.chain(150).build()
    assert evaluate.is_large(model)
    rng = np.random.default_rng(5)
    q, v, tau = 0.3 * rng.standard_normal((3, 4, model.nv))
    a = cd.forward_dynamics(model, q, v, tau)
    close(cd.inverse_dynamics(model, q, v, a), tau, 1e-7)
    force = cd.inverse_dynamics(model, q, v, tau)
    close(cd.inverse_dynamics(model, q, v, tau, formulation="newton_euler"), force, 1e-10)
    close(cd.mass_matrix(model, q) @ tau[..., None] + cd.bias_force(model, q, v)[..., None], force[..., None], 1e-10)
    close(cd.kinetic_energy(model, q, v), np.einsum("bi,bij,bj->b", v, cd.mass_matrix(model, q), v) / 2, 1e-11)
    J = cd.jacobian(model, q, "link150")
    close((J @ v[..., None])[..., 0], cd.body_twists(model, q, v)[:, -1], 1e-10)


def test_a_chain_agrees_with_itself_on_both_sides_of_the_size_that_loops(monkeypatch: pytest.MonkeyPatch) -> None:
    q, v, tau = np.random.default_rng(6).standard_normal((3, 4, 9))
    expected = cd.forward_dynamics(mechanisms.chain(9).build(), q, v, tau)
    monkeypatch.setattr(evaluate, "LOOP_PAST", 5)
    model = mechanisms.chain(9).build()
    assert evaluate.is_large(model)
    close(cd.forward_dynamics(model, q, v, tau), expected, 1e-12)


@pytest.mark.parametrize("formulation", ["spatial", "newton_euler"])
@pytest.mark.parametrize("tree", range(TREES))
def test_float32_follows_float64(tree: int, formulation: str) -> None:
    model = tree_model(tree)
    q, v, tau, _ = state(model, 7, 12)
    single = cd.forward_dynamics(model, *(x.astype(SINGLE) for x in (q, v, tau)), formulation=formulation)
    assert single.dtype == SINGLE
    close(single, cd.forward_dynamics(model, q, v, tau, formulation=formulation), 1e-3)


@pytest.mark.parametrize("name", sorted(RECURSIONS["spatial"].keys() - {"project"}))
def test_the_kernel_is_the_graph_that_CasADi_interprets(name: str) -> None:
    for formulation in RECURSIONS:
        if name not in RECURSIONS[formulation]:
            continue
        model, quantity = tree_model(1, 4), RECURSIONS[formulation][name]
        given = inputs(model, quantity, (), DOUBLE)
        columns = [
            x.reshape([n or 1 for n in port_shape(model, p)]) for x, p in zip(given, quantity.inputs, strict=True)
        ]
        results = cd.equations(model, formulation=formulation).graph(name)(*columns)
        expected = in_one([np.array(x) for x in results] if isinstance(results, tuple) else np.array(results), 0)
        got = in_one(evaluate.tree_kernel(model, name, formulation)(*given), 0)
        close(got.reshape(expected.shape), expected, 1e-13)


@pytest.mark.parametrize("name", ["body_poses", "body_twists", "body_accelerations"])
def test_the_looped_drive_keeps_bodies_apart_that_share_a_link_or_the_ground(name: str) -> None:
    m = cd.Mechanism("shared")
    for k, (near, joint) in enumerate([("ground", cd.Rigid()), ("b0", cd.Revolute()), ("b1", cd.Rigid())]):
        m.body(f"b{k}", mass=1.0, inertia=(1, 1, 1))
        m.joint(f"j{k}", joint, near, f"b{k}", at=(0.1, 0.2, 0.3), child_at=(0.4, 0.5, 0.6))
    model, quantity = m.build(), RECURSIONS["spatial"][name]
    given = inputs(model, quantity, (5,), DOUBLE)
    got = compile_quantity(model, quantity, "spatial", looped=True)(*given)
    close(got, by_graph(model, quantity, given), 1e-12)


@pytest.mark.parametrize(
    ("what", "method"), [("motion", "rk4"), ("motion", "dormand_prince"), ("coupling", "dormand_prince")]
)
def test_a_joint_that_closes_a_loop_turns_on_past_half_a_turn(what: str, method: str) -> None:
    """A double crank driven, or geared to a wheel, at the joint where it is cut or at the same joint of the tree."""
    angle, ends = 0.30232374561321784, []  # of the rocker at the start
    for cut in ("D", "C"):
        m = cd.mechanisms.four_bar(base=0.4, crank=0.9, coupler=0.8, rocker=0.7)
        m.body("wheel", mass=0.3, inertia=(0.01, 0.01, 0.02))
        m.joint("W", cd.Revolute(), m.ground, "wheel")
        if what == "motion":
            m.motion("turn", "D", lambda t: angle + 6.0 * t)
        else:
            m.couple("pair", {"D": 2.0, "W": -1.0}, offset=2.0 * angle)
        model = m.build(cut=[cut])
        q, _ = cd.assemble(model)
        rates = np.array([8.0 if name == "A" and what == "coupling" else 0.0 for name in model.coordinate_names])
        q, v = cd.assemble(model, q, rates, hold=["A"] if what == "coupling" else [])
        run = cd.simulate(model, 2.0, q, v, method=method, samples=21, step=5e-3)
        assert run.residuals.position.max() < 1e-12
        ends.append(run.coordinate("A"))
    assert np.ptp(ends[0]) > 4 * np.pi - 1
    np.testing.assert_allclose(ends[0], ends[1], atol=1e-4)
