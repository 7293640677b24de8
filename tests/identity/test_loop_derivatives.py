"""Derivatives of closed mechanisms: the equations' against automatic differentiation, and many right sides solved."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest

import cardan as cd
from cardan import mechanisms
from cardan.formulation import derivative, dynamics
from cardan.formulation.dynamics import parts_at
from cardan.formulation.formulation import tree_rates
from cardan.formulation.loop_derivatives import equation_changes, has_only_cut_joints
from cardan.formulation.solve import semidefinite, semidefinite_inverse
from cardan.formulation.spatial import SPATIAL
from cardan.structure.kernels import function_of
from cardan.structure.rows import kept_rows

from ..trees import KINDS, add_body, close, join, random_pose, state

pytestmark = pytest.mark.usefixtures("quick_code")


def loop(kind: str, backwards: bool) -> cd.Model:
    """Two branches on a moving base, and the joint in question between their tips: the base is before both."""
    rng = np.random.default_rng([sum(kind.encode()), backwards])
    m = cd.Mechanism(f"branches closed by {kind}", gravity=rng.uniform(-10, 10, 3))
    for name in ("base", "left", "right"):
        add_body(m, name, rng)
    m.joint("hinge", cd.Revolute(axis=(1, 2, 3)), m.ground, "base", at=random_pose(rng), armature=0.1)
    m.torsion("spring", "hinge", stiffness=3.0, damping=0.5)
    join(m, "universal", "base", "left", rng)
    join(m, "spherical", "base", "right", rng, backwards=True)
    ends = ("right", "left") if backwards else ("left", "right")
    m.joint("cut", KINDS[kind](rng), *ends, at=random_pose(rng), child_at=random_pose(rng))
    return m.build(cut=["cut"])


@pytest.mark.parametrize(("kind", "backwards"), [(kind, k % 2 == 0) for k, kind in enumerate(KINDS) if kind != "free"])
def test_every_kind_of_cut_joint(kind: str, backwards: bool) -> None:
    """At states that leave the loop open, under wrenches, with all rows but one."""
    model = loop(kind, backwards)
    assert has_only_cut_joints(model)
    rows = list(range(1, len(model.rows)))
    q, v, a, wrenches = state(model, 5)
    symbols = {name: ca.SX.sym(name, *x.shape) for name, x in {"q": q, "v": v, "tau": v, "wrenches": wrenches}.items()}
    parts, a0, lam0 = parts_at(model, SPATIAL, symbols), ca.SX.sym("a", model.nv), ca.SX.sym("lam", len(rows))
    J, gamma = parts.rows.kept(rows).J, parts.rows.kept(rows).gamma
    rest = ca.vertcat(SPATIAL.missing_force(parts, a0) - J.T @ lam0, gamma - J @ a0)
    rate = ca.SX.sym("rate", model.nv)
    N = ca.jacobian(tree_rates(model, symbols["q"], rate), rate)
    expected = [ca.jacobian(rest, symbols["q"]) @ N, ca.jacobian(rest, symbols["v"])]
    found = [ca.vertcat(x.f, x.gamma) for x in equation_changes(parts, rows, a0, lam0)]
    graph = ca.Function("both", [*symbols.values(), a0, lam0], expected + found)
    numbers = graph(q, v, 0 * v, wrenches, a, np.random.default_rng(6).standard_normal(len(rows)))
    for k in range(2):
        assert np.abs(np.array(numbers[k])[model.nv :]).max() > 0.1  # the rows do change
        close(np.array(numbers[k]), np.array(numbers[2 + k]), 1e-12)


def test_an_inverse_leaves_nothing_of_the_regularisation() -> None:
    """And stays bounded where the rank is lost, as the solution with factors does."""
    rng = np.random.default_rng(2)
    U = np.linalg.qr(rng.standard_normal((6, 6)))[0]
    for smallest in (1.0, 1e-4, 1e-8):
        A = U @ np.diag([*rng.uniform(0.5, 1, 5), smallest]) @ U.T
        inverse = np.array(ca.DM(semidefinite_inverse(ca.SX(A))))
        assert np.abs(inverse - inverse.T).max() == 0
        b = A @ np.ones(6)
        assert np.abs(inverse @ b - 1).max() < 1e-13 / smallest
        assert np.abs(np.array(ca.DM(semidefinite(ca.SX(A))(ca.SX(b)))) - 1).max() < 1e-13 / smallest
    J = rng.standard_normal((2, 4))[[0, 1, 0]]  # a row twice
    b = J @ rng.standard_normal(4)
    A = J @ J.T
    assert np.abs(A @ np.array(ca.DM(semidefinite_inverse(ca.SX(A)))) @ b - b).max() < 1e-2


@pytest.mark.parametrize("driven", [False, True], ids=["free", "driven"])
def test_column_by_column_as_differentiated(driven: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Against automatic differentiation of the accelerations themselves, through their solution."""
    monkeypatch.setattr(derivative, "MANY", 0)
    m = mechanisms.four_bar()
    m.gravity = np.array([1.0, -9.0, 0.0])  # not a model whose kernel another test compiles without stages
    if driven:
        m.motion("drive", "A", lambda t: 0.3 * t * t)
    model = m.build().free("B.at", "D.at", "coupler.mass")
    names = ("q", "v", "tau", "wrenches", "parameters", *(["t"] if driven else []))
    q, v, tau, wrenches = state(model, 1, 3)
    found = cd.forward_dynamics(model, q, v, tau, wrenches=wrenches, t=0.4, by=names)
    value = dynamics.forward_dynamics(model, SPATIAL, kept_rows(model, SPATIAL), True)
    graph = function_of(model, derivative.differentiated(value, derivative.By(names), model))
    time = [0.4] if driven else []
    for k in range(len(q)):
        expected = graph(q[k], v[k], tau[k], wrenches[k], *time, model.parameters.nominal)
        for mine, theirs in zip(found, expected, strict=True):
            assert np.isfinite(mine).all()
            close(mine[k].reshape(theirs.shape), np.array(theirs), 1e-10)


def test_one_coordinate_and_no_row_left() -> None:
    """All rows of the door's second hinge are redundant; what is left is a tree with one coordinate."""
    model = mechanisms.two_hinge_door().build()
    q, v, tau = model.start() + 0.3, np.array([0.7]), np.array([0.2])
    a, a_q, a_tau = cd.forward_dynamics(model, q, v, tau, by=("q", "tau"))
    assert a_q.item() == 0.0 and a_tau.item() == pytest.approx(1 / cd.mass_matrix(model, q).item(), rel=1e-14)
    value, pulled = cd.vjp(model, "forward_dynamics", {"q": q, "v": v, "tau": tau}, np.ones(1), by=("tau",))
    assert value == a and pulled["tau"] == a_tau[0]
