"""Derivatives on a real card: Jacobians, products, runs, torch's autograd and JAX, against the CPU's numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import cardan as cd
from cardan import mechanisms

pytestmark = [pytest.mark.usefixtures("card"), pytest.mark.filterwarnings("ignore::RuntimeWarning")]
N = 300


def arm() -> cd.Model:
    """A chain of ten links with joints of one, two and three freedoms: its Jacobians come in stages."""
    m = cd.Mechanism("arm")
    kinds = [cd.Revolute(), cd.Universal(), cd.Prismatic(), cd.Spherical(), cd.Revolute(), cd.Revolute()]
    before: Any = m.ground
    for k, kind in enumerate(kinds):
        m.body(f"b{k}", mass=1.0 + k, com=(0.1, 0.2, 0.05), inertia=np.diag([0.3, 0.4, 0.5]))
        m.joint(f"j{k}", kind, before, f"b{k}", at=(0.3, 0.0, 0.1))
        before = f"b{k}"
    return m.build()


def states(model: cd.Model, rows: int = N) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(7)
    if model.has_rows:
        q, v = (np.tile(x, (rows, 1)) for x in cd.assemble(model))
    else:
        q, v = (np.array(x) for x in zip(*(model.random_state(rng) for _ in range(rows)), strict=True))
    return {"q": q, "v": v, "tau": rng.normal(size=(rows, model.nv))}


@pytest.mark.parametrize("make", [arm, lambda: mechanisms.four_bar().build()])
def test_jacobians_and_products_have_the_bits_of_the_cpu(make: Any) -> None:
    model = make()
    at = states(model)
    w = np.random.default_rng(8).normal(size=at["v"].shape)
    for compute in (
        lambda **more: [*cd.forward_dynamics(model, *at.values(), by=("q", "v", "tau"), **more)],
        lambda **more: (
            [*cd.inverse_dynamics(model, at["q"], at["v"], w, by=("q", "v"), **more)] if not model.has_rows else []
        ),
        lambda **more: [*cd.jvp(model, "forward_dynamics", at, {"q": w, "tau": w}, **more)],
        lambda **more: [*cd.vjp(model, "forward_dynamics", at, w, by=("q", "v", "tau"), **more)[1].values()],
        lambda **more: [cd.weighted_hessian(model, "forward_dynamics", at, w, by=("v",), **more)],
    ):
        for x, y in zip(compute(), compute(device="gpu"), strict=True):
            assert np.array_equal(x, y)


def test_jacobians_of_tensors_are_tensors(torch: Any) -> None:
    model = arm()
    at = states(model)
    cpu = cd.forward_dynamics(model, *at.values(), by=("q", "v"))
    for kind in (torch.float64, torch.float32):
        found = cd.forward_dynamics(model, *(torch.as_tensor(x, dtype=kind, device="cuda") for x in at.values()),
                                    by=("q", "v"))  # fmt: skip
        assert isinstance(found, cd.Derivatives)
        for x, y in zip(cpu, found, strict=True):
            assert y.is_cuda
            assert y.dtype == kind
            bound = 0.0 if kind is torch.float64 else 2e-3 * np.abs(x).max()
            assert np.abs(x - y.cpu().numpy()).max() <= bound


@pytest.mark.parametrize("make", [arm, lambda: mechanisms.four_bar().build()])
def test_autograd_on_the_card(make: Any, torch: Any) -> None:
    model = make()
    at = states(model, 50)
    f = cd.torch_function(model, "forward_dynamics")

    def gradients(where: str) -> list[Any]:
        x = [torch.tensor(value, device=where, requires_grad=True) for value in at.values()]
        a = f(*x)
        assert a.device.type == where
        first = torch.autograd.grad((a**2).sum(), x, create_graph=True)
        second = torch.autograd.grad(sum((g**2).sum() for g in first), x)
        rate = torch.func.jvp(lambda q: f(q, x[1].detach(), x[2].detach()), (x[0].detach(),), (x[0].detach(),))[1]
        many = torch.func.vmap(torch.func.grad(lambda q, v, tau: f(q, v, tau).sum()))(*(y.detach() for y in x))
        return [a, *first, *second, rate, many]

    for x, y in zip(gradients("cpu"), gradients("cuda"), strict=True):
        assert y.is_cuda
        x, y = x.detach().numpy(), y.detach().cpu().numpy()
        assert np.abs(x - y).max() <= 1e-9 * max(np.abs(x).max(), 1.0)  # sums of torch are in other orders


def test_autograd_uses_the_current_stream_and_no_host(torch: Any) -> None:
    model = arm()
    x = [torch.tensor(value, device="cuda", requires_grad=True) for value in states(model).values()]
    f = cd.torch_function(model, "forward_dynamics")
    usual = torch.autograd.grad(f(*x).sum(), x)
    stream = torch.cuda.Stream()
    torch.cuda.synchronize()
    torch.cuda.set_sync_debug_mode("error")  # torch raises where it would wait for the card
    try:
        with torch.cuda.stream(stream):
            other = torch.autograd.grad(f(*x).sum(), x)
    finally:
        torch.cuda.set_sync_debug_mode("default")
    stream.synchronize()
    for a, b in zip(usual, other, strict=True):
        assert torch.equal(a, b)


@pytest.mark.parametrize("name", ["four_bar", "double_pendulum"])
def test_gradients_of_runs(name: str) -> None:
    model = getattr(mechanisms, name)().build()
    at = states(model, 200)
    w = np.random.default_rng(9).normal(size=(200, 3, model.nv))
    for method in ({"method": "rk4", "step": 0.005}, {"method": "dormand_prince"}):
        runs = [
            cd.simulate(model, 0.3, at["q"], at["v"], samples=3, **method, **more) for more in ({}, {"device": "gpu"})
        ]
        cpu, card = (run.vjp(w, w) for run in runs)
        assert np.array_equal(runs[0].q, runs[1].q)
        for key, x in cpu.items():
            assert np.array_equal(x, card[key]), key


def test_runs_of_tensors(torch: Any) -> None:
    model = mechanisms.double_pendulum().build()
    at = states(model, 100)
    f = cd.torch_simulate(model, 0.2, method="rk4", step=0.01, samples=3)

    def found(where: str) -> list[Any]:
        q, v = (torch.tensor(at[key], device=where, requires_grad=True) for key in ("q", "v"))
        samples = f(q, v)
        first = torch.autograd.grad((samples[0] ** 2).sum(), (q, v), create_graph=True)
        second = torch.autograd.grad((first[0] ** 2).sum(), q)
        return [*samples, *first, *second]

    for x, y in zip(found("cpu"), found("cuda"), strict=True):
        assert y.is_cuda
        x, y = x.detach().numpy(), y.detach().cpu().numpy()
        assert np.abs(x - y).max() <= 1e-9 * max(np.abs(x).max(), 1.0)


@pytest.fixture
def jax(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # which leaves memory to others
    module = pytest.importorskip("jax", reason="JAX is not installed")
    module.config.update("jax_enable_x64", True)
    try:
        module.devices("gpu")
    except RuntimeError:
        pytest.skip("JAX is installed without CUDA")
    return module


@pytest.mark.parametrize("make", [arm, lambda: mechanisms.four_bar().build()])
def test_jax_on_the_card(make: Any, jax: Any) -> None:
    jnp, model = jax.numpy, make()
    at = states(model, 64)
    f = cd.jax_function(model, "forward_dynamics")
    ways = {
        "jit": jax.jit(f),
        "at once": f,
        "grad": jax.jit(jax.grad(lambda q, v, tau: (f(q, v, tau) ** 2).sum(), argnums=(0, 1, 2))),
        "vmap": jax.jit(jax.vmap(jax.jacrev(f))),
        "jacfwd": jax.jit(jax.vmap(jax.jacfwd(f))),
        "hessian": jax.jit(jax.vmap(jax.hessian(lambda q, v, tau: f(q, v, tau)[0]))),
    }
    for name, way in ways.items():
        found = []
        for device in (jax.devices("cpu")[0], jax.devices("gpu")[0]):
            with jax.default_device(device):
                result = way(*(jax.device_put(jnp.asarray(x), device) for x in at.values()))
            for leaf in jax.tree.leaves(result):
                assert leaf.devices() == {device}, name
            found.append([np.asarray(leaf) for leaf in jax.tree.leaves(result)])
        for x, y in zip(*found, strict=True):
            assert np.abs(x - y).max() <= 1e-9 * max(np.abs(x).max(), 1.0), name
    text = jax.jit(f).lower(*(jax.device_put(x, jax.devices("gpu")[0]) for x in at.values())).as_text()
    assert "callback" not in text


def test_jax_runs_on_the_card(jax: Any) -> None:
    model = mechanisms.double_pendulum().build()
    at = states(model, 16)
    f = cd.jax_simulate(model, 0.1, method="rk4", step=0.01, samples=3)
    gradient = jax.jit(jax.grad(lambda q, v: (f(q, v)[0] ** 2).sum()))
    cpu, card = (
        np.asarray(gradient(*(jax.device_put(at[key], device) for key in ("q", "v"))))
        for device in (jax.devices("cpu")[0], jax.devices("gpu")[0])
    )
    assert np.abs(cpu - card).max() <= 1e-9 * np.abs(cpu).max()
