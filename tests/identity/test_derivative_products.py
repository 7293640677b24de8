"""Products with derivatives and second derivatives: recursions, equations of an answer, and large trees put together.

Graphs are evaluated as they stand where compiling adds nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import cardan as cd
from cardan import mechanisms
from cardan.formulation.derivative import curved, pulled, pushed
from cardan.formulation.spatial import SPATIAL
from cardan.formulation.spatial_derivatives import FORWARD, INVERSE
from cardan.structure import kernels
from cardan.structure.kernels import function_of

from ..trees import close, kind_model, tree_mechanism, tree_model
from .test_derivative_recursions import geared
from .test_derivatives import differences

pytestmark = pytest.mark.usefixtures("quick_code")

PAIRS = {"inverse_dynamics": (INVERSE, "a"), "forward_dynamics": (FORWARD, "tau")}


def evaluated(model: cd.Model, quantity: Any) -> Callable[..., list[np.ndarray]]:
    graph = function_of(model, quantity)
    return lambda *at: [np.array(x) for x in graph.call(list(at))]


def assert_products_are_those_of_jacobians(model: cd.Model, name: str) -> None:
    """One sweep each, against the Jacobians of another recursion; in any order of the names."""
    rng = np.random.default_rng(3)
    jacobians, last = PAIRS[name]
    q, v = model.random_state(rng)
    x, w, *d = rng.standard_normal((5, model.nv))
    value, *D = (np.array(y) for y in function_of(model, jacobians)(q, v, x))
    D = dict(zip(("q", "v", last), D, strict=True))
    names, quantity = (last, "q", "v"), SPATIAL.quantities[name]
    product = pulled(quantity, names, model)
    assert product.recursion is not None
    got, *gradients = evaluated(model, product)(q, v, x, w)
    close(got, value, 1e-11)
    for key, gradient in zip(names, gradients, strict=True):
        close(gradient.ravel(), w @ D[key], 1e-11)
    got, rate = evaluated(model, pushed(quantity, names, model))(q, v, x, *d)
    close(rate.ravel(), sum(D[key] @ along for key, along in zip(names, d, strict=True)), 1e-11)


def test_products_of_joints_whose_axes_depend_on_q() -> None:
    """Met from their child, those with several freedoms; both trees hold the others."""
    for kind in ("universal", "planar", "cylindrical", "free"):
        assert_products_are_those_of_jacobians(kind_model(kind, True), "inverse_dynamics")


def test_products_of_trees_and_rotors() -> None:
    for tree in (1, 3):
        assert_products_are_those_of_jacobians(tree_model(tree, 5), "forward_dynamics")
    for name in PAIRS:
        assert_products_are_those_of_jacobians(geared(), name)


# Second derivatives: differences of gradients along the tangent.


def assert_hessian(model: cd.Model, names: tuple[str, ...], formulation: str = "spatial") -> None:
    rng = np.random.default_rng(1)
    q, v = model.random_state(rng)
    if model.has_rows:
        q, v = cd.assemble(model, q, v)
    tau, w = rng.standard_normal((2, model.nv))
    quantity = cd.equations(model, formulation=formulation).quantity("forward_dynamics")
    free = () if not model.parameters else (model.parameters.nominal,)
    gradient = evaluated(model, pulled(quantity, names, model))
    at = {"q": q, "v": v, "tau": tau} | ({"parameters": free[0]} if free else {})

    def call(**x: np.ndarray) -> np.ndarray:
        more = (x["parameters"],) if free else ()
        return np.concatenate([g.ravel() for g in gradient(x["q"], x["v"], x["tau"], w, *more)[1:]])

    expected = np.concatenate([differences(model, call, at, name) for name in names], axis=1)
    (H,) = evaluated(model, curved(quantity, names, model))(q, v, tau, w, *free)
    close(H, H.T, 1e-15)
    close(H, (expected + expected.T) / 2, 1e-8)


HESSIANS: dict[str, tuple[Callable[[], cd.Model], tuple[str, ...], str]] = {
    "a tree": (lambda: tree_model(1, 3), ("q", "v", "tau"), "spatial"),
    "rotors and a ball": (geared, ("tau", "q"), "spatial"),
    "a loop": (lambda: mechanisms.four_bar().build(), ("q", "v", "tau"), "spatial"),
    "springs": (lambda: sprung(tree_mechanism(1, 2)), ("q", "v"), "spatial"),
    "dimensions": (lambda: mechanisms.four_bar().build().free("B.at"), ("q", "parameters"), "spatial"),
}


@pytest.mark.parametrize("case", HESSIANS)
def test_second_derivatives_are_those_of_the_gradient(case: str) -> None:
    make, names, formulation = HESSIANS[case]
    assert_hessian(make(), names, formulation)


def sprung(m: cd.Mechanism) -> cd.Model:
    """With a spring in every hinge, and one between two bodies."""
    bare = m.build()
    for joint in bare.joints:
        if joint.kind.nv == 1:
            m.torsion(f"spring {joint.name}", joint.name, stiffness=3.0, damping=0.2)
    ends = bare.body_names[0], bare.body_names[-1]
    m.spring("spring", *ends, at1=(0.1, 0.2, 0), stiffness=5.0, damping=0.3, length=0.4)
    return m.build()


def test_products_with_a_loop_and_redundant_rows() -> None:
    """The equations are differentiated, and the gradient is that along any direction."""
    model = mechanisms.bennett().build()
    rng = np.random.default_rng(2)
    q, v = cd.assemble(model, model.start(), rng.standard_normal(model.nv))
    tau, w, *d = rng.standard_normal((5, model.nv))
    quantity, names = cd.equations(model).quantity("forward_dynamics"), ("q", "v", "tau")
    _, *gradients = evaluated(model, pulled(quantity, names, model))(q, v, tau, w)
    value, rate = evaluated(model, pushed(quantity, names, model))(q, v, tau, *d)
    close(value.ravel(), cd.forward_dynamics(model, q, v, tau), 1e-9)
    along = sum(g.ravel() @ x for g, x in zip(gradients, d, strict=True))
    close(along, w @ rate.ravel(), 1e-9)
    h = 1e-5
    ends = [
        cd.forward_dynamics(model, cd.plus(model, q, s * h * d[0]), v + s * h * d[1], tau + s * h * d[2])
        for s in (1, -1)
    ]
    close(rate.ravel(), (ends[0] - ends[1]) / (2 * h), 1e-5)


# Large trees.


def test_a_sprung_chain_of_200_is_differentiated_in_seconds() -> None:
    model = sprung(mechanisms.chain(200))
    rng = np.random.default_rng(5)
    q, v, tau, w = 0.3 * rng.standard_normal((4, model.nv))
    at = {"q": q, "v": v, "tau": tau}
    found = cd.forward_dynamics(model, **at, by=("q", "v", "tau"))
    close(found.value, cd.forward_dynamics(model, **at), 1e-12)
    back = cd.inverse_dynamics(model, q, v, found.value, by=("q", "a"))
    close(back.value, tau, 1e-6)
    close(back["a"] @ found["q"], -back["q"], 1e-9)
    along = rng.standard_normal(model.nv)
    h = 1e-6
    for name in at:
        ahead, behind = (cd.forward_dynamics(model, **(at | {name: at[name] + s * h * along})) for s in (1, -1))
        close(found[name] @ along, (ahead - behind) / (2 * h), 1e-5)
    gradient = cd.vjp(model, "forward_dynamics", at, w, by="q")[1]
    close(gradient["q"], w @ found["q"], 1e-9)
    with pytest.raises(cd.InputError, match=r"vjp of 'forward_dynamics': w must have the shape \(..., 200\), got"):
        cd.vjp(model, "forward_dynamics", at, w[:-1], by="q")
    with pytest.raises(cd.InputError, match=r"forward_dynamics: q must have the shape \(..., 200\), got"):
        cd.forward_dynamics(model, q[:-1], v, tau, by="q")


def test_products_of_a_plain_chain_of_200_are_looped() -> None:
    model = mechanisms.chain(200).build()
    rng = np.random.default_rng(6)
    q, v, tau, w, *d = 0.3 * rng.standard_normal((7, 2, model.nv))
    at = {"q": q, "v": v, "tau": tau}
    a, gradient = cd.vjp(model, "forward_dynamics", at, w, by=("q", "v", "tau"))
    value, rate = cd.jvp(model, "forward_dynamics", at, dict(zip(at, d, strict=True)))
    close(value, a, 1e-12)
    along = sum(np.sum(g * x, axis=-1) for g, x in zip(gradient.values(), d, strict=True))
    close(along, np.sum(w * rate, axis=-1), 1e-8)
    close(gradient["tau"], np.linalg.solve(cd.mass_matrix(model, q), w[..., None])[..., 0], 1e-8)


def test_what_is_put_together_for_large_trees(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every function, with every joint kind, force elements and wrenches: against differences."""
    monkeypatch.setattr(kernels, "LOOP_PAST", 0)
    model = sprung(tree_mechanism(1, 3))
    rng = np.random.default_rng(4)
    q, v = model.random_state(rng)
    a, wrenches = rng.standard_normal(model.nv), rng.standard_normal((model.nb, 6))
    every = {"q": q, "v": v, "a": a, "tau": a, "wrenches": wrenches}
    frame = {"frame": model.body_names[-1]}
    cases: dict[str, tuple[tuple[str, ...], dict[str, Any]]] = {
        "forward_dynamics": (("q", "v", "tau", "wrenches"), {}), "inverse_dynamics": (("q", "v", "a", "wrenches"), {}),
        "body_poses": (("q",), {}), "body_twists": (("q", "v"), {}), "body_accelerations": (("q", "v", "a"), {}),
        "bias_force": (("q", "v"), {}), "frame_pose": (("q",), frame),
    }  # fmt: skip
    for name, (names, more) in cases.items():
        x, function = {key: every[key] for key in names}, getattr(cd, name)
        found = function(model, **x, **more, by=names)
        close(found.value, function(model, **x, **more), 1e-12)
        for key in names:
            D = found[key].reshape(*found.value.shape, -1)
            close(D, differences(model, lambda **y: function(model, **y, **more), x, key), 1e-7)  # noqa: B023
    small = sprung(tree_mechanism(1, 3))
    monkeypatch.setattr(kernels, "LOOP_PAST", 64)
    close(
        cd.forward_dynamics(model, q, v, a, formulation="newton_euler"),
        cd.forward_dynamics(small, q, v, a), 1e-12,
    )  # fmt: skip


@pytest.mark.parametrize("ask", [
    lambda model, q: cd.mass_matrix(model, q, by="q"),
    lambda model, q: cd.weighted_hessian(model, "forward_dynamics", {"q": q}, q),
    lambda model, q: cd.forward_dynamics(model.free("gravity"), q, q, by="q"),
])  # fmt: skip
def test_long_compiling_is_told_beforehand(
    ask: Callable[[cd.Model, np.ndarray], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    class BeginsError(Exception):
        pass

    def begin(*args: Any, **options: Any) -> Any:
        raise BeginsError

    model = mechanisms.chain(100).build()
    for module in ("derivatives.compile_quantity", "derivative_products.compile_quantity", "dynamics.tree_kernel"):
        monkeypatch.setattr(f"cardan.functions.{module}", begin)
    told = r"not looped over its 100 links; compiling it may take .*cd.vjp"
    with pytest.warns(RuntimeWarning, match=told), pytest.raises(BeginsError):
        ask(model, np.zeros(model.nv))
