"""Functions for JAX, torch and CasADi: their derivatives are Cardan's, to any order and in any mode.

What they share needs none of the libraries and is tested without them. The rest is skipped where they are missing.
"""

import gc
import sys
from typing import Any

import numpy as np
import pytest
from tests.fake_card import fake_cards

import cardan as cd
from cardan.functions.differentiable import Rule, rule_of
from cardan.machines.cuda import driver
from cardan.mechanisms import four_bar

pytestmark = pytest.mark.usefixtures("quick_code")


@pytest.fixture
def jax() -> Any:
    found = pytest.importorskip("jax", reason="the extra 'jax' is not installed")
    found.config.update("jax_enable_x64", True)
    return found


@pytest.fixture
def torch() -> Any:
    return pytest.importorskip("torch", reason="the extra 'torch' is not installed")


def linkage() -> tuple[cd.Model, list[np.ndarray]]:
    model = four_bar().build()
    q, v = cd.assemble(model, model.start(), np.ones(3))
    return model.free("B.at"), [q, v, np.array([0.1, 0.2, 0.3])]


def floating() -> tuple[cd.Model, list[np.ndarray]]:
    m = cd.Mechanism("floating")
    for name in ("base", "arm"):
        m.body(name, mass=2.0, com=(0.1, 0.2, 0.3), inertia=np.diag([1.0, 1.2, 1.5]))
    m.joint("base", cd.Free(), m.ground, "base")
    m.joint("shoulder", cd.Spherical(), "base", "arm", at=(0.5, 0, 0))
    model = m.build()
    assert model.nq == model.nv + 2  # two quaternions
    q, v = model.random_state(np.random.default_rng(3))
    return model, [q, v, np.linspace(-1, 1, model.nv), np.linspace(-2, 1, 6 * model.nb).reshape(-1, 6)]


def along(rule: Rule, arrays: list[np.ndarray], rates: dict[str, np.ndarray], h: float = 1e-6) -> list[np.ndarray]:
    """Central differences of a rule."""
    ends = [
        rule(*(x + s * rates.get(name, 0.0) for name, x in zip(rule.arguments, arrays, strict=True))) for s in (h, -h)
    ]
    return [(a - b) / (2 * h) for a, b in zip(*ends, strict=True)]


@pytest.mark.parametrize(
    ("case", "name"),
    [(linkage, "forward_dynamics"), (floating, "inverse_dynamics_loaded"), (floating, "mass_matrix")],
)
def test_differential_and_transpose_agree_to_second_order(case: Any, name: str) -> None:
    model, arrays = case()
    rng = np.random.default_rng(0)
    rule = rule_of("test", model, name, "spatial")
    x = arrays[: len(rule.arguments)]
    if model.parameters:
        x = [*x, model.parameters.nominal]
    names = rule.arguments
    rates = {n: rng.standard_normal(a.shape) for n, a in zip(names, x, strict=True)}
    d = rule.differential(names)
    dy = d(*d.arranged(x, [*rates.values()]))
    for mine, theirs in zip(dy, along(rule, x, rates), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-6, atol=1e-6)
    w = [rng.standard_normal(y.shape) for y in dy]
    total = sum(np.sum(a * b) for a, b in zip(w, dy, strict=True))
    # the transpose, and the transpose of the differential, in which it is linear
    t = rule.transposed(names)
    g = t(*t.arranged(x, w))
    assert np.isclose(sum(np.sum(g_ * r) for g_, r in zip(g, rates.values(), strict=True)), total, rtol=1e-10)
    new = [n for n in d.arguments if n not in names]
    lt = d.transposed(new, linear=True)
    for mine, theirs in zip(lt(*lt.arranged(x, w)), g, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-10, atol=1e-10)
    # second order: the derivative of the gradient is symmetric, and that of differences
    other = {n: rng.standard_normal(a.shape) for n, a in zip(names, x, strict=True)}
    dt = t.differential(names)
    one = dt(*dt.arranged(t.arranged(x, w), [*rates.values()]))
    two = dt(*dt.arranged(t.arranged(x, w), [*other.values()]))
    left = sum(np.sum(a * b) for a, b in zip(one, other.values(), strict=True))
    right = sum(np.sum(a * b) for a, b in zip(two, rates.values(), strict=True))
    assert np.isclose(left, right, rtol=1e-9, atol=1e-9)
    dd = d.differential(names)
    curved = dd(*dd.arranged(d.arranged(x, [*rates.values()]), [*other.values()]))
    assert np.isclose(sum(np.sum(a * b) for a, b in zip(w, curved, strict=True)), left, rtol=1e-9, atol=1e-9)
    for mine, theirs in zip(one, along(t, t.arranged(x, w), rates), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-5, atol=1e-5)


def test_rules_are_made_once() -> None:
    model, _ = linkage()
    rule = rule_of("test", model, "forward_dynamics", "spatial")
    assert rule_of("test", model.at({"B.at": np.array([0.9, 0, 0])}), "forward_dynamics", "spatial") is rule
    assert rule.transposed(("q", "v")) is rule.transposed(("q", "v"))


@pytest.mark.parametrize("library", ["jax", "torch"])
def test_a_missing_extra_is_told(library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(cd.InputError, match=rf"not installed; pip install 'cardan\[{library}\]'"):
        getattr(cd, f"{library}_function")(four_bar().build(), "forward_dynamics")


@pytest.mark.parametrize("ways", ["jacrev hessian", pytest.param("jacfwd double_backward", marks=pytest.mark.bridges)])
def test_jax_derivatives_are_those_of_the_kernels(jax: Any, ways: str) -> None:
    model, (q, v, tau) = linkage()
    f, jnp = cd.jax_function(model, "forward_dynamics"), jax.numpy
    p = model.parameters.nominal
    want = cd.forward_dynamics(model, q, v, tau, by=("q", "v", "tau", "parameters"))
    np.testing.assert_array_equal(f(q, v, tau), cd.forward_dynamics(model, q, v, tau))
    s = lambda q: jnp.sum(jnp.sin(f(q, v, tau)))
    g = jax.grad(s)
    every = {"jacrev": jax.jacrev, "jacfwd": jax.jacfwd, "hessian": jax.hessian}
    every["double_backward"] = lambda s: jax.jacrev(jax.grad(s))
    first, second = (every[way] for way in ways.split())

    @jax.jit
    def both(q: Any, p: Any) -> Any:
        return first(f, argnums=(0, 1, 2, 3))(q, v, tau, p), g(q), second(s)(q)

    jacobians, _, H = both(q, p)
    for mine, theirs in zip(jacobians, want.by.values(), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-11, atol=1e-11)
    ends = [both(q + d, p)[1] - both(q - d, p)[1] for d in 1e-6 * np.eye(3)]
    np.testing.assert_allclose(H, np.array(ends) / 2e-6, rtol=1e-6, atol=1e-5)


def test_jax_vmap_is_a_batch(jax: Any) -> None:
    model, (q, v, tau) = linkage()
    f, jnp = cd.jax_function(model, "forward_dynamics"), jax.numpy
    qs, vs = q + np.linspace(0, 0.1, 5)[:, None], v * np.linspace(1, 2, 4)[:, None]
    with pytest.warns(RuntimeWarning, match="open by"):
        want = cd.forward_dynamics(model, qs, vs[:, None], tau)
    both = jax.vmap(jax.vmap(f, in_axes=(1, None, None)), in_axes=(None, 0, None))
    for found in (f(qs, vs[:, None], tau), jax.jit(both)(qs.T, vs, tau)):
        np.testing.assert_array_equal(found, want)
    g = jax.jit(jax.vmap(jax.grad(lambda q: jnp.sum(f(q, v, tau)))))(jnp.asarray(qs))
    one = cd.forward_dynamics(model, qs[2], v, tau, by="q")["q"].sum(axis=0)
    np.testing.assert_allclose(g[2], one, rtol=1e-12, atol=1e-12)


def test_jax_programs_call_the_kernel_without_python(jax: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    model, (q, v, tau) = linkage()
    wanted = cd.forward_dynamics(model, q, v, tau)
    program = jax.jit(cd.jax_function(model, "forward_dynamics"))
    assert "@cardan(" in program.lower(q, v, tau).as_text() and "callback" not in program.lower(q, v, tau).as_text()
    compiled = program.lower(q, v, tau).compile()
    del model, program
    gc.collect()  # the code lives as long as the program
    np.testing.assert_array_equal(compiled(q, v, tau), wanted)
    single = jax.jit(cd.jax_function(linkage()[0], "forward_dynamics", dtype="float32"))
    np.testing.assert_allclose(single(*(np.tile(x, (50, 1)) for x in (q, v, tau))), np.tile(wanted, (50, 1)), rtol=1e-4)
    # where the interface is not to be had, a callback does the same
    monkeypatch.setattr("cardan.functions.jax_function.call_address", lambda *given: None)
    program = jax.jit(cd.jax_function(linkage()[0], "forward_dynamics"))
    assert "callback" in program.lower(q, v, tau).as_text()
    np.testing.assert_array_equal(program(q, v, tau), wanted)


def test_jax_refuses_what_it_cannot_take(jax: Any) -> None:
    model, (q, v, tau) = linkage()
    f = cd.jax_function(model, "forward_dynamics")
    for given, message in [
        ((q, v), r"takes 4 arrays \(q, v, tau, p\), got 2"),
        ((q, v, np.zeros(3, int)), "tau has dtype int64; give floating-point numbers"),
        ((q, v, np.zeros(4)), r"tau has shape \(4,\), the model needs \(..., 3\)"),
        ((np.ones((2, 3)), np.ones((3, 3)), tau), "batch shapes do not broadcast"),
    ]:
        with pytest.raises(cd.InputError, match=message):
            f(*given)
    jax.config.update("jax_enable_x64", False)
    try:
        with pytest.raises(cd.InputError, match="JAX is set to 32 bits; call"):
            f(q, v, tau)
        single = cd.jax_function(model, "forward_dynamics", dtype="float32")(q, v, tau)
        assert single.dtype == np.float32
        np.testing.assert_allclose(single, cd.forward_dynamics(model, q, v, tau), rtol=1e-4)
    finally:
        jax.config.update("jax_enable_x64", True)


def test_torch_derivatives_are_those_of_the_kernels(torch: Any) -> None:
    model, arrays = linkage()
    want = cd.forward_dynamics(model, *arrays, by=("q", "v", "tau", "parameters"))
    f = cd.torch_function(model, "forward_dynamics")
    x = [torch.tensor(a, requires_grad=True) for a in (*arrays, model.parameters.nominal)]
    np.testing.assert_array_equal(f(*x[:3]).detach(), cd.forward_dynamics(model, *arrays))
    for mode in (torch.func.jacrev, torch.func.jacfwd):
        for mine, theirs in zip(mode(f, argnums=(0, 1, 2, 3))(*x), want.by.values(), strict=True):
            np.testing.assert_allclose(mine.detach(), theirs, rtol=1e-11, atol=1e-11)
    assert torch.autograd.gradcheck(f, x, check_forward_ad=True)
    assert torch.autograd.gradgradcheck(f, x)  # double backward
    assert torch.autograd.gradcheck(cd.torch_function(model, "kinetic_energy"), (x[0], x[1], x[3]))  # a scalar


def test_torch_vmap_is_a_batch(torch: Any) -> None:
    model, arrays = linkage()
    f = cd.torch_function(model, "forward_dynamics")
    q, v, tau = map(torch.tensor, arrays)
    qs, vs = q + torch.linspace(0, 0.1, 5)[:, None], v * torch.linspace(1, 2, 4)[:, None]
    both = torch.func.vmap(torch.func.vmap(f, in_dims=(1, None, None)), in_dims=(None, 0, None))
    want = f(qs, vs[:, None], tau)
    np.testing.assert_array_equal(both(qs.T, vs, tau), want)
    vs.requires_grad_()
    f(qs, vs[:, None], tau).sum().backward()
    sums = torch.func.vmap(torch.func.grad(lambda v: f(qs, v, tau).sum()))(vs.detach())
    np.testing.assert_allclose(vs.grad, sums, rtol=1e-12, atol=1e-12)


def test_torch_refuses_what_it_cannot_take(torch: Any) -> None:
    model, arrays = linkage()
    f = cd.torch_function(model, "forward_dynamics")
    q, v, tau = map(torch.tensor, arrays)
    for given, message in [
        ((q, v), r"takes 4 arrays \(q, v, tau, p\), got 2"),
        ((q, v, arrays[2]), "tau is a ndarray; give torch tensors"),
        ((q, v, torch.zeros(3, dtype=torch.int64)), "tau has dtype torch.int64; give float64 or float32"),
        ((q, v, tau.float()), "q is torch.float64 and tau torch.float32; give tensors of one dtype"),
        ((q, v, tau.to("meta")), r"tau is on meta; Cardan computes on the CPU and on NVIDIA GPUs: give tau.cpu\(\)"),
        ((q, v, torch.zeros(4, dtype=torch.float64)), r"tau has shape \(4,\), the model needs \(..., 3\)"),
    ]:
        with pytest.raises(cd.InputError, match=message):
            f(*given)
    assert f(q.float(), v.float(), tau.float()).dtype == torch.float32


def test_casadi_function_is_named_and_differentiable() -> None:
    import casadi as ca

    model, arrays = linkage()
    f = cd.casadi_function(model, "forward_dynamics")
    assert (f.name(), f.name_in(), f.name_out()) == ("forward_dynamics", ["q", "v", "tau", "p"], ["a"])
    want = cd.forward_dynamics(model, *arrays, by="q")
    p = model.parameters.nominal
    np.testing.assert_allclose(f(*arrays, p).full()[:, 0], want.value, rtol=1e-12)
    q = ca.MX.sym("q", 3)
    J = ca.Function("J", [q], [ca.jacobian(f(q, *arrays[1:], p), q)])(arrays[0]).full()
    np.testing.assert_allclose(J, want["q"], rtol=1e-10, atol=1e-10)


def test_casadi_nodes_are_compiled_with_their_derivatives() -> None:
    import casadi as ca

    model, (q, v, tau) = linkage()
    N, p = 3, model.parameters.nominal
    f, g = cd.casadi_function(model, "forward_dynamics"), cd.casadi_function(model, "forward_dynamics", nodes=N)
    assert (g.name(), g.name_in(), g.name_out()) == ("forward_dynamics", ["q", "v", "tau", "p"], ["a"])
    scale = np.array([1.0, 0.9, 1.1])
    at = [np.outer(x, scale) for x in (q, v, tau)]
    x, y, z, r = ca.MX.sym("q", 3, N), ca.MX.sym("v", 3, N), ca.MX.sym("tau", 3, N), np.tile(p[:, None], N)
    both = []
    for function in (f, g):
        a = function(x, y, z, r)
        variables = ca.vertcat(*map(ca.vec, (x, y, z)))
        H, gradient = ca.hessian(ca.sum1(ca.sum2(ca.sin(a))), variables)
        both.append(ca.Function("d", [x, y, z], [a, ca.jacobian(ca.vec(a), variables), gradient, H])(*at))
    for mine, theirs in zip(*both, strict=True):
        np.testing.assert_allclose(mine.full(), theirs.full(), rtol=1e-9, atol=1e-9)
    assert both[0][3].full().any()
    assert both[1][1].nnz() == N * 3 * 9  # a block for each node
    with pytest.raises(cd.InputError, match="nodes=0 must be a whole number, 1 or more"):
        cd.casadi_function(model, "forward_dynamics", nodes=0)


def test_casadi_nodes_of_matrices() -> None:
    import casadi as ca

    model, (q, v, a, wrenches) = floating()
    g = cd.casadi_function(model, "inverse_dynamics_loaded", nodes=2)
    at = [np.stack([x, 1.1 * x]) for x in (q, v, a, wrenches)]
    found = g(*(x.T for x in at[:3]), np.hstack([*at[3]])).full().T
    np.testing.assert_allclose(found, cd.inverse_dynamics(model, *at[:3], wrenches=at[3]), rtol=1e-12)
    W = ca.MX.sym("W", model.nb, 12)
    J = ca.Function("J", [W], [ca.jacobian(ca.vec(g(*(x.T for x in at[:3]), W)), W)])(0).full()
    want = cd.inverse_dynamics(model, *at[:3], wrenches=at[3], by="wrenches")["wrenches"]
    block = np.moveaxis(want[1], 2, 1).reshape(model.nv, -1)
    np.testing.assert_allclose(J[model.nv :, 6 * model.nb :], block, rtol=1e-10, atol=1e-10)
    assert not J[: model.nv, 6 * model.nb :].any()


def test_a_program_for_a_gpu_calls_the_kernel_itself(jax: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    model = cd.mechanisms.pendulum().build()
    q = np.ones((4, 1))
    with fake_cards():
        monkeypatch.setattr(driver, "address_of", lambda name: 1)  # of the driver's functions: nothing is run here
        f = jax.jit(jax.grad(lambda q: cd.jax_function(model, "forward_dynamics")(q, q, q).sum()))
        text = f.trace(q).lower(lowering_platforms=("cuda",)).as_text()
    assert text.count("custom_call @cardan(") == 1
    assert "callback" not in text
