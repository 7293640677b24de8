"""Derivatives of a tree's dynamics by recursion: against automatic differentiation both ways, Pinocchio, identities."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import casadi as ca
import numpy as np
import pytest

import cardan as cd
from cardan import mechanisms
from cardan.algebra.spatial import crf, crf_bar, crm
from cardan.formulation import dynamics, spatial_derivatives
from cardan.formulation.derivative import By
from cardan.formulation.derivative import differentiated as automatic
from cardan.formulation.formulation import tree_rates
from cardan.formulation.quantity import climbs
from cardan.formulation.spatial import SPATIAL
from cardan.formulation.spatial_derivatives import FORWARD, INVERSE
from cardan.mechanisms import random_inertia
from cardan.structure.kernels import LOOP_PAST, compile_quantity, function_of, tree_kernel

from ..trees import KINDS, TREES, close, floating_model, kind_model, state, tree_model

pytestmark = pytest.mark.usefixtures("quick_code")

PAIRS = {"inverse": (INVERSE, "inverse_dynamics"), "forward": (FORWARD, "forward_dynamics")}


def differentiated(model: cd.Model, name: str, backwards: bool) -> Callable[..., list[np.ndarray]]:
    """The value of a quantity and its derivatives by its three inputs, by CasADi, forwards or backwards."""
    quantity = SPATIAL.quantities[name]
    symbols = [ca.SX.sym(port, *quantity.input_shape(model, port)) for port in quantity.inputs]
    value = quantity.graph(model, dict(zip(quantity.inputs, symbols, strict=True)))[0]
    rate = ca.SX.sym("rate", model.nv)
    N = ca.jacobian(tree_rates(model, symbols[0], rate), rate)
    options = {"helper_options": {"ad_weight": float(backwards), "ad_weight_sp": float(backwards)}}
    D = [ca.jacobian(value, x, options) for x in symbols]
    graph = ca.Function("differentiated", symbols, [value, D[0] @ N, *D[1:]])
    return lambda *at: [np.array(x) for x in graph(*at)]


def by_recursion(model: cd.Model, way: str) -> Callable[..., list[np.ndarray]]:
    graph = function_of(model, PAIRS[way][0])
    return lambda *at: [np.array(x) for x in graph(*at)]


def assert_as_differentiated(model: cd.Model, way: str, backwards: bool) -> None:
    at = state(model, 3)[:3]
    for got, expected in zip(
        by_recursion(model, way)(*at), differentiated(model, PAIRS[way][1], backwards)(*at), strict=True
    ):
        close(got, expected, 1e-11)


@pytest.mark.parametrize("backwards", [False, True], ids=["forwards", "backwards"])
@pytest.mark.parametrize("kind", KINDS)
def test_every_joint_kind_both_ways_round(kind: str, backwards: bool) -> None:
    """Automatic differentiation runs backwards where the joint does."""
    assert_as_differentiated(kind_model(kind, backwards), "inverse", backwards)


@pytest.mark.parametrize("tree", range(TREES))
def test_trees_with_branches_and_massless_links(tree: int) -> None:
    assert_as_differentiated(tree_model(tree), "forward" if tree in (1, 4) else "inverse", bool(tree % 2))


@pytest.mark.parametrize("way", PAIRS)
def test_a_floating_base_and_armature(way: str) -> None:
    assert_as_differentiated(floating_model(0) if way == "inverse" else geared(), way, True)
    assert_as_differentiated(geared(), way, False)


def geared() -> cd.Model:
    """A hinge and a ball with rotors."""
    m = cd.Mechanism("geared", gravity=(1.0, -2.0, -9.0))
    m.body("arm", mass=1.0, com=(0.1, 0.2, 0.3), inertia=(0.3, 0.4, 0.5))
    m.body("hand", mass=0.7, com=(0.2, 0, 0.1), inertia=(0.1, 0.2, 0.15))
    m.joint("hinge", cd.Revolute((1, 2, 0)), m.ground, "arm", armature=0.3)
    m.joint("ball", cd.Spherical(), "arm", "hand", at=(0.3, 0.1, 0), armature=(0.1, 0.2, 0.05))
    return m.build()


# Kernels: compiled in stages, looped, with free parameters, put together for large models.


def assert_kernel_is_graph(kernel: Any, graph: Any, given: list[np.ndarray], *more: Any) -> None:
    results = kernel(*given)
    for row in range(len(given[0])):
        for got, expected in zip(results, graph(*(x[row] for x in given), *more), strict=True):
            close(got[row], np.array(expected).reshape(got[row].shape), 1e-11)


@pytest.mark.parametrize("way", PAIRS)
@pytest.mark.parametrize("make", [lambda: tree_model(3), lambda: kind_model("rigid"), mechanisms.pendulum])
def test_kernels_are_the_graphs(make: Callable[[], Any], way: str) -> None:
    made = make()
    model = made if isinstance(made, cd.Model) else made.build()
    quantity, given = PAIRS[way][0], [*state(model, 5, 11)[:3]]
    kernel = compile_quantity(model, quantity, "spatial test")
    assert_kernel_is_graph(kernel, function_of(model, quantity), given)
    out = tuple(np.full_like(x, np.nan) for x in kernel(*given))
    kernel(*given, out=out)  # every element is written, zeros too
    for got, expected in zip(out, kernel(*given), strict=True):
        assert np.array_equal(got, expected)
    one = kernel(*(x[0] for x in given))
    for got, expected in zip(one, out, strict=True):
        close(got, expected[0], 1e-12)


def test_with_free_parameters() -> None:
    model = mechanisms.double_pendulum().build().free("rod.mass", "rod.com")
    given = [*state(model, 5, 9)[:3]]
    for quantity, _ in PAIRS.values():
        kernel = compile_quantity(model, quantity, "spatial test")
        assert_kernel_is_graph(kernel, function_of(model, quantity), given, model.parameters.nominal)


def test_a_chain_of_100_is_looped_and_put_together() -> None:
    model = mechanisms.chain(100).build()
    assert len(model.tree.links) > LOOP_PAST
    rng = np.random.default_rng(5)
    q, v, tau = 0.3 * rng.standard_normal((3, 2, model.nv))
    a, a_q, a_v, a_tau = tree_kernel(model, "forward_dynamics_derivatives")(q, v, tau)
    close(a, cd.forward_dynamics(model, q, v, tau), 1e-12)
    h, along = 1e-5, rng.standard_normal(model.nv)
    for D, step in ((a_q, (along, 0, 0)), (a_v, (0, along, 0)), (a_tau, (0, 0, along))):
        plus, minus = (
            cd.forward_dynamics(model, *(x + s * h * np.asarray(d) for x, d in zip((q, v, tau), step, strict=True)))
            for s in (1, -1)
        )
        close((plus - minus) / (2 * h), D @ along, 1e-6)
    out = tuple(np.zeros_like(x) for x in (a, a_q, a_v, a_tau))
    tree_kernel(model, "forward_dynamics_derivatives")(q, v, tau, out=out)
    assert np.array_equal(out[1], a_q)


def test_both_drives_agree_where_climbs_decide(monkeypatch: pytest.MonkeyPatch) -> None:
    """Past `MOST_CLIMBS` steps the recursion is looped, and forward dynamics put together."""
    model = tree_model(1, 4)
    given = [*state(model, 6, 3)[:3]]
    for quantity, _ in PAIRS.values():
        unrolled = compile_quantity(model, quantity, "spatial")(*given)
        assert climbs(model) < spatial_derivatives.MOST_CLIMBS == quantity.most_climbs
        low = type(quantity)(**(vars(quantity) | {"most_climbs": climbs(model) - 1}))
        for got, expected in zip(compile_quantity(model, low, "spatial")(*given), unrolled, strict=True):
            close(got, expected, 1e-11)


# Identities.


@cache
def at_a_state(seed: int = 2) -> tuple[cd.Model, tuple[np.ndarray, ...], list[np.ndarray]]:
    model = tree_model(seed)
    at = state(model, 8)[:3]
    return model, at, by_recursion(model, "inverse")(*at)


def test_tau_by_a_is_the_mass_matrix() -> None:
    model, (q, _, _), (_, _, _, M) = at_a_state()
    close(M, M.T, 1e-13)
    close(M, cd.mass_matrix(model, q), 1e-12)


def test_tau_by_v_is_twice_the_coriolis_matrix_less_what_is_skew() -> None:
    """Velocity forces are quadratic in v: `tau_v v = 2 C v`."""
    model, (q, v, _), (_, _, tau_v, _) = at_a_state()
    close(tau_v @ v, 2 * cd.coriolis_matrix(model, q, v) @ v, 1e-11)


def test_gravity_alone_has_a_symmetric_hessian() -> None:
    """Of the potential energy, where q is a set of coordinates."""
    m = cd.Mechanism("arm", gravity=(1.0, -3.0, -9.0))
    near = m.ground
    rng = np.random.default_rng(1)
    joints = (cd.Revolute((1, 2, 3)), cd.Universal(), cd.Prismatic((0, 1, 1)), cd.Planar(), cd.Screw((1, 0, 0), 0.2))
    for k, joint in enumerate(joints):
        body = m.body(f"b{k}", mass=1.0 + k, com=rng.standard_normal(3), inertia=random_inertia(rng))
        m.joint(f"j{k}", joint, near, body, at=rng.standard_normal(3))
        near = body
    model = m.build()
    rest = np.zeros(model.nv)
    _, hessian, _, _ = by_recursion(model, "inverse")(state(model, 3)[0], rest, rest)
    close(hessian, hessian.T, 1e-13)
    assert np.abs(hessian).max() > 1


def test_the_change_of_M_is_that_of_christoffel_symbols() -> None:
    """`dM/dq_k` from tau_q at unit accelerations; `C` from its Christoffel symbols gives the recursion's `C v`."""
    model = mechanisms.chain(4).build()
    q, v, _, _ = state(model, 4)
    graph, rest = by_recursion(model, "inverse"), np.zeros(model.nv)
    still = graph(q, rest, rest)[1]
    dM = np.array([graph(q, rest, e)[1] - still for e in np.eye(model.nv)])  # dM[j][i, k] = d M_ij/dq_k
    dM = np.transpose(dM, (1, 0, 2))
    christoffel = (dM + np.transpose(dM, (0, 2, 1)) - np.transpose(dM, (2, 0, 1))) / 2
    close(christoffel @ v @ v, cd.coriolis_matrix(model, q, v) @ v, 1e-11)


def test_half_of_the_velocity_product_matrix_is_zero() -> None:
    """`2 B = v x* I - I v x + (I v) xbar*` is `[K 0; P x 0]`, with numbers."""
    rng = np.random.default_rng(3)
    m = cd.Mechanism("body")
    m.body("b", mass=1.3, com=rng.standard_normal(3), inertia=random_inertia(rng))
    m.joint("free", cd.Free(), m.ground, "b")
    I, v = m.build().tree.links[0].I, rng.standard_normal(6)
    b = type("Body", (), {})()
    b.I, b.v, b.a = ca.SX(I), ca.SX(v), ca.SX(6, 1)
    spatial_derivatives._own_sums(b)
    B2 = crf(v) @ I - I @ crm(v) + crf_bar(I @ v)
    close(np.array(ca.DM(spatial_derivatives._twice_BC(b))), B2, 1e-13)
    close(np.array(ca.DM(b.f)).ravel(), crf(v) @ I @ v, 1e-13)


# Pinocchio: a hinge chain, and a tree on a free base with its conventions.


def test_pinocchio_agrees_on_a_free_base_with_two_legs() -> None:
    pin = pytest.importorskip("pinocchio")
    model, other = legged(pin)
    q, v, x, _ = state(model, 6)
    # Pinocchio: position and quaternion xyzw; linear before angular, in tangents too
    order = [3, 4, 5, 0, 1, 2, *range(6, model.nv)]
    q_other = np.concatenate([q[:3], q[4:7], q[3:4], q[7:]])
    data = other.createData()
    tau_q, tau_v, M = pin.computeRNEADerivatives(other, data, q_other, v[order], x[order])
    M = np.triu(M) + np.triu(M, 1).T
    got = by_recursion(model, "inverse")(q, v, x)
    for D, expected in zip(got[1:], (tau_q, tau_v, M), strict=True):
        close(D[np.ix_(order, order)], expected, 1e-10)
    a_q, a_v, Minv = pin.computeABADerivatives(other, data, q_other, v[order], x[order])
    Minv = np.triu(Minv) + np.triu(Minv, 1).T
    got = by_recursion(model, "forward")(q, v, x)
    for D, expected in zip(got[1:], (a_q, a_v, Minv), strict=True):
        close(D[np.ix_(order, order)], expected, 1e-10)


def legged(pin: Any) -> tuple[cd.Model, Any]:
    """A base with two legs of two hinges, in Cardan and in Pinocchio."""
    rng = np.random.default_rng(9)
    m, other = cd.Mechanism("legged", gravity=(0, 0, -9.81)), pin.Model()

    def body(name: str, joint: int) -> str:
        mass, com, inertia = rng.uniform(1, 2), rng.uniform(-0.3, 0.3, 3), random_inertia(rng)
        other.appendBodyToJoint(joint, pin.Inertia(mass, com, np.array(inertia)), pin.SE3.Identity())
        return m.body(name, mass=mass, com=com, inertia=inertia)

    base = other.addJoint(0, pin.JointModelFreeFlyer(), pin.SE3.Identity(), "root")
    m.joint("root", cd.Free(), m.ground, body("base", base))
    for leg in range(2):
        near, joint = "base", base
        for k in range(2):
            place, axis = rng.uniform(-0.4, 0.4, 3), np.eye(3)[(leg + k) % 3]
            joint = other.addJoint(
                joint, pin.JointModelRevoluteUnaligned(axis), pin.SE3(np.eye(3), place), f"{leg} {k}"
            )
            name = body(f"{leg} {k}", joint)
            m.joint(f"hinge {leg} {k}", cd.Revolute(axis), near, name, at=place)
            near = name
    return m.build(), other


def test_dampers_and_springs_along_joints_are_taken_along() -> None:
    """Against automatic differentiation of the whole."""
    m = cd.Mechanism("damped", gravity=(1.0, -2.0, -9.0))
    kinds = (cd.Revolute((1, 2, 0)), cd.Spherical(), cd.Prismatic((0, 1, 1)))
    for k, kind in enumerate(kinds):
        m.body(f"b{k}", mass=1.0 + k, com=(0.1, 0.2 - k, 0.3), inertia=(0.3, 0.4, 0.5))
        m.joint(f"j{k}", kind, m.ground if k == 0 else f"b{k - 1}", f"b{k}")
    m.torsion("hinge", "j0", stiffness=3.0, damping=0.7)
    m.drive("slide", "j2", lambda t, q, v: -2.0 * v - 5.0 * q**3)
    model = m.build()
    at = state(model, 5)[:3]
    assert spatial_derivatives.has_joint_laws(model)
    written = {"forward": dynamics.forward_dynamics(model, SPATIAL, (), False)}
    written["inverse"] = dynamics.inverse_dynamics(model, SPATIAL, loaded=False)
    for way, (_, name) in PAIRS.items():
        names = ("q", "v", written[way].inputs[2])
        expected = function_of(model, automatic(written[way], By(names), model))(*at)
        for got, right in zip(getattr(cd, name)(model, *at, by=names), expected, strict=True):
            close(got.reshape(np.array(right).shape), np.array(right), 1e-11)
