"""Runs as functions for JAX and torch: derivatives by the numbers of the start, drives and parameters, to second order.

What they share needs neither library and is tested without them.
"""

from collections.abc import Callable
from typing import Any

import casadi as ca
import numpy as np
import pytest

import cardan as cd
from cardan.mechanisms import four_bar, pendulum
from cardan.results.motion_operation import motion_of

pytestmark = [pytest.mark.usefixtures("quick_code"), pytest.mark.filterwarnings("ignore:simulation of")]


@pytest.fixture
def jax() -> Any:
    found = pytest.importorskip("jax", reason="the extra 'jax' is not installed")
    found.config.update("jax_enable_x64", True)
    return found


@pytest.fixture
def torch() -> Any:
    return pytest.importorskip("torch", reason="the extra 'torch' is not installed")


def oscillator() -> cd.Model:
    m = cd.Mechanism("oscillator", gravity=(0.0, 0.0, 0.0))
    m.body("mass", mass=2.0, inertia=[1.0, 1.0, 1.0])
    m.joint("slide", cd.Prismatic(axis=(1, 0, 0)), "ground", "mass")
    m.torsion("spring", "slide", stiffness=18.0)
    return m.build().free("spring.stiffness")


H = 0.05  # s
EULER: dict[str, Any] = {"method": "euler", "step": H, "samples": [0.12, 0.2]}  # one inside a step, one at its end
START = np.array([0.3, 0.2, 0.7, 18.0])


def closed_form(x: np.ndarray) -> tuple[np.ndarray, ...]:
    """Steps of `2 a = tau - k q` from `x = (q, v, tau, k)`: samples, their Jacobian, Hessian of the sum of sines."""
    y = ca.SX.sym("x", 4)
    q, v, tau, k = ca.vertsplit(y)

    def step(q: Any, v: Any, h: float) -> Any:
        v = v + h * (tau - k * q) / 2
        return q + h * v, v

    states = [(q, v)]
    for _ in range(4):
        states.append(step(*states[-1], H))
    samples = [states[0], step(*states[2], 0.02), states[4]]
    whole = ca.vertcat(*(q for q, _ in samples), *(v for _, v in samples))
    second = ca.hessian(ca.sum1(ca.sin(3 * whole)), y)[0]
    found = ca.Function("f", [y], [whole, ca.jacobian(whole, y), second])(x)
    return found[0].full()[:, 0], found[1].full(), found[2].full()


STOP = cd.Event("stop", lambda s: s.q[0] - 0.5 + 0.1 * s.t, direction=-1)


def swinging() -> tuple[cd.Model, list[np.ndarray]]:
    """A driven pendulum, some of whose systems stop at an event."""
    m = pendulum()
    m.drive("kick", "pivot", lambda t, q, v: ca.sin(3 * t))
    model = m.build().free("rod.mass", "gravity")
    return model, [np.array([[2.0], [2.1]]), np.array([[0.1], [-2.0]]), np.zeros((2, 1)), model.parameters.nominal]


def top() -> tuple[cd.Model, list[np.ndarray]]:
    """A heavy top: its coordinates are a quaternion, here longer than 1."""
    m = cd.Mechanism("top")
    m.body("top", mass=1.0, com=[0.1, 0.0, 0.2], inertia=[0.3, 0.4, 0.5])
    m.joint("ball", cd.Spherical(), "ground", "top")
    model = m.build().free("top.com")
    q, v = model.random_state(np.random.default_rng(1))
    return model, [1.1 * q, v, np.array([0.1, 0.2, 0.3]), model.parameters.nominal]


def bead() -> tuple[cd.Model, list[np.ndarray]]:
    """A bead on a circle: two slides and a constraint."""
    m = cd.Mechanism("bead")
    m.body("rail", mass=0.5, inertia=[0.1, 0.1, 0.1])
    m.body("bead", mass=1.0, inertia=[0.1, 0.1, 0.1])
    m.joint("x", cd.Prismatic(axis=(1, 0, 0)), m.ground, "rail")
    m.joint("z", cd.Prismatic(axis=(0, 0, 1)), "rail", "bead", start=1.0)
    m.constraint("circle", ["bead"], lambda t, poses, twists: ca.sumsqr(poses[0].position) - 1.0)
    model = m.build().free("bead.mass")
    q, v = cd.assemble(model, [0.6, 0.8], [0.4, 0.0])
    return model, [q, v, np.array([0.1, 0.0]), model.parameters.nominal]


def regulated() -> tuple[cd.Model, list[np.ndarray]]:
    """A mass with a PID, whose integral an event lowers as it turns the motion back."""
    m = cd.Mechanism("regulated", gravity=(0.0, 0.0, 0.0))
    m.body("mass", mass=2.0, inertia=[1.0, 1.0, 1.0])
    m.joint("slide", cd.Prismatic(axis=(1, 0, 0)), "ground", "mass")
    m.controller("servo", "slide", cd.PID(8.0, 3.0, 5.0))
    model = m.build().free("mass.mass")
    p = model.parameters.vector({"servo.reference": 0.8}, model.parameters.nominal)
    return model, [np.array([[0.3], [0.7]]), np.array([[2.0], [0.1]]), np.zeros((2, 1)), p]


BACK = cd.Event(
    "back", lambda s: s.q[0] - 0.5,
    then=lambda s: cd.Change({"slide": -0.5 * s.v[0]}, {"servo.integral": 0.5 * s["servo.integral"] - s.v[0]}),
)  # fmt: skip
STEPPED: dict[str, tuple[Any, float, dict[str, Any]]] = {
    "time, a break, the last step shorter": (swinging, 0.27, {"method": "rk4", "step": 0.02, "breaks": [0.113]}),
    "a quaternion": (top, 0.1, {"method": "rk4", "step": 0.02}),
    "a constraint": (bead, 0.1, {"method": "euler", "step": 0.02}),
}
CASES: dict[str, tuple[Any, float, dict[str, Any]]] = STEPPED | {
    "states, and a jump of some systems": (regulated, 0.3, {"method": "rk4", "step": 0.02, "events": [BACK]}),
    "a stop of some systems": (swinging, 0.48, {"method": "rk4", "step": 0.02, "events": [STOP]}),
}


@pytest.mark.parametrize("case", CASES)
def test_differential_and_transpose_of_a_run(case: str) -> None:
    make, duration, how = CASES[case]
    model, x = make()
    motion = motion_of("test", model, duration, {"samples": [0.05, 0.9 * duration], **how})
    rng, batch = np.random.default_rng(0), x[0].shape[:-1]
    x = [np.broadcast_to(y, (*batch, y.shape[-1])) for y in x]
    dx = [0.1 * rng.standard_normal(y.shape) for y in x]
    found = motion(*x)
    assert [y.shape for y in found] == [(*batch, *shape) for shape in motion.outputs]
    d = motion.differential(motion.arguments)
    dy = d(*d.arranged(x, dx))
    at = {n: motion(*(y + n * 1e-3 * e for y, e in zip(x, dx, strict=True))) for n in (-3, -2, -1, 1, 2, 3)}
    for i, mine in enumerate(dy):
        wanted = sum(w * (at[n][i] - at[-n][i]) for n, w in {1: 3 / 4, 2: -3 / 20, 3: 1 / 60}.items()) / 1e-3
        assert np.abs(mine - wanted).max() <= 1e-10 * max(1.0, np.abs(wanted).max()), motion.results[i]
    w = [rng.standard_normal(y.shape) for y in dy]
    t = motion.transposed(motion.arguments)
    g = t(*t.arranged(x, w))
    total = sum(np.sum(a * b) for a, b in zip(w, dy, strict=True))
    assert np.isclose(sum(np.sum(a * b) for a, b in zip(g, dx, strict=True)), total, rtol=1e-11)
    if motion.stops:  # one system stops, and rests there
        q, _, times = found
        assert times[0, -1] == duration > times[1, -1] and (q[1, -1] == q[1, -2]).all() and dy[2][1, -1] != 0


@pytest.mark.parametrize("case", STEPPED)
def test_a_run_written_in_steps_is_the_run(case: str) -> None:
    make, duration, how = STEPPED[case]
    model, x = make()
    motion = motion_of("test", model, duration, {"samples": 8, **how})
    x = [np.broadcast_to(y, (*x[0].shape[:-1], y.shape[-1])) for y in x]
    steps, (q, v, tau, p) = motion.steps, x
    state = steps.start(q, v, tau, steps.when[0], p)
    call = lambda rule, x: rule(*x)
    before = []
    for t, h in zip(steps.t, steps.h, strict=True):
        before.append(state)
        state = steps.step(call, state, tau, np.asarray(t), np.asarray(h), [p])
    for i, (at, part, when) in enumerate(zip(steps.at, steps.part, steps.when, strict=True)):
        there = steps.step(call, before[at], tau, np.asarray(steps.t[at]), np.asarray(part), [p])
        for mine, other in zip(steps.sample(*there, tau, when, p), motion(*x), strict=True):
            np.testing.assert_allclose(mine, other[..., i, :], rtol=0, atol=1e-13)


def near(a: Any, b: Any) -> None:
    np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-11)


def of_jax(jax: Any) -> tuple[Any, Any, Any]:
    f = cd.jax_simulate(oscillator(), 0.2, **EULER)
    whole = lambda x: jax.numpy.concatenate([y[..., 0] for y in f(x[:1], x[1:2], x[2:3], x[3:])])
    return f, whole, lambda x: jax.numpy.sum(jax.numpy.sin(3 * whole(x)))


MANY = np.linspace(0.9, 1.1, 3)[:, None] * START


def test_jax_programs_of_runs(jax: Any) -> None:
    f, whole, loss = of_jax(jax)
    y, J, second = closed_form(START)
    wanted = [y, J, second, [3 * np.cos(3 * y) @ J for y, J, _ in map(closed_form, MANY)]]

    def everything(x: Any, many: Any) -> Any:
        double_backward = jax.jacrev(jax.grad(loss))
        return whole(x), jax.jacrev(whole)(x), double_backward(x), jax.vmap(jax.grad(loss))(many)

    for mine, other in zip(jax.jit(everything)(START, MANY), wanted, strict=True):
        near(mine, other)
    near(f(*(MANY[:, k : k + 1] for k in range(4)))[0][..., 0], [closed_form(x)[0][:3] for x in MANY])


@pytest.mark.bridges
def test_jax_runs_in_every_mode(jax: Any) -> None:
    _, whole, loss = of_jax(jax)
    y, J, second = closed_form(START)
    near(whole(START), y)
    near(jax.grad(loss)(START), 3 * np.cos(3 * y) @ J)
    near(jax.jacfwd(whole)(START), J)
    near(jax.jit(jax.jacfwd(whole))(START), J)
    near(jax.hessian(loss)(START), second)  # forward over reverse
    near(jax.jit(jax.jacfwd(jax.jacfwd(loss)))(START), second)
    near(jax.vmap(jax.grad(loss))(MANY)[1], 3 * np.cos(3 * y) @ J)
    third = jax.jit(jax.jacfwd(jax.hessian(loss)))(START)
    ends = [closed_form(START + np.array([0, 0, 0, d]))[2] for d in (-1e-3, 1e-3)]
    np.testing.assert_allclose(third[..., 3], (ends[1] - ends[0]) / 2e-3, rtol=1e-6, atol=1e-6)


def second_derivatives_by_steps(second: Any, gradient: Any) -> None:
    """Of runs on a constraint, against differences of the gradient, by what leaves the start on it."""
    model, (q, v, tau, p) = bead()
    x = np.concatenate([tau, p])
    H = np.asarray(second(model, q, v, x))
    e = 1e-3 * np.eye(3)
    G = {n: np.array([gradient(model, q, v, x + n * d) for d in e]) for n in (-2, -1, 1, 2)}
    np.testing.assert_allclose(H, (8 * (G[1] - G[-1]) - (G[2] - G[-2])) / 12e-3, rtol=1e-8, atol=1e-8)
    assert np.abs(H).max() > 1e-3


@pytest.mark.bridges
def test_jax_runs_on_a_constraint(jax: Any) -> None:
    def loss(model: cd.Model, q: Any, v: Any, x: Any) -> Any:
        f = cd.jax_simulate(model, 0.04, method="euler", step=0.02, samples=2)
        q, v = f(q, v, x[:2], x[2:])
        return 100 * jax.numpy.sum(q[-1] ** 3 + v[-1] ** 2)

    second_derivatives_by_steps(jax.hessian(loss, 3), jax.grad(loss, 3))


def test_jax_runs_refuse_what_they_cannot_take(jax: Any) -> None:
    model, (q, v, _, p) = swinging()
    f = cd.jax_simulate(model, 0.1, samples=2)
    stopped = pendulum()
    stopped.stop("floor", "pivot", lower=-3.0)
    cases: list[tuple[str, Callable[[], Any]]] = [
        ("q0 has dtype int64; give floating-point numbers", lambda: f(np.zeros((2, 1), int), v)),
        (r"v0 has shape \(2, 2\), the model needs \(..., 1\)", lambda: f(q, np.ones((2, 2)))),
        ("batch shapes do not broadcast", lambda: f(q, np.ones((3, 1)))),
        ("must be a finite number", lambda: f(q, np.nan * v)),
        ("must be above 0, got -2 kg", lambda: f(q, v, None, [-2.0, *p[1:]])),
        (r"the batch is empty, of shape \(0,\)", lambda: f(np.zeros((0, 1)), v[0])),
        ("no argument 'sensitivities'", lambda: cd.jax_simulate(model, 0.1, sensitivities=["q0"])),
        ("method 'alpha' has none", lambda: cd.jax_simulate(model, 0.1, method="alpha", step=0.01)),
        ("duration must be", lambda: cd.jax_simulate(model, -1.0)),
        ("neither 'float64' nor", lambda: cd.jax_simulate(model, 1.0, dtype="int32")),
        (
            "'dormand_prince' chooses its own: take method='rk4' with step",
            lambda: jax.eval_shape(jax.hessian(lambda v: f(q, v)[0].sum()), v),
        ),
        (r"rows with laws \('floor'\) .* take run.gradient", lambda: cd.jax_simulate(stopped.build(), 0.1)),
        ("has no free parameter", lambda: cd.jax_simulate(four_bar().build(), 0.1)(np.ones(3), np.ones(3), None, p)),
    ]
    for words, call in cases:
        with pytest.raises(cd.CardanError, match=words):
            call()


def test_torch_runs_have_all_derivatives(torch: Any) -> None:
    f, x = cd.torch_simulate(oscillator(), 0.2, **EULER), torch.tensor(START, requires_grad=True)
    whole = lambda x: torch.cat([y[..., 0] for y in f(x[:1], x[1:2], x[2:3], x[3:])])
    loss = lambda x: torch.sum(torch.sin(3 * whole(x)))
    y, J, second = closed_form(START)
    near(whole(x).detach(), y)
    near(torch.func.jacrev(whole)(x).detach(), J)
    near(torch.func.jacfwd(whole)(x).detach(), J)
    near(torch.func.hessian(loss)(x).detach(), second)  # forward over reverse
    near(torch.autograd.functional.hessian(loss, x), second)  # double backward
    assert torch.autograd.gradgradcheck(whole, [x])
    each = torch.func.vmap(torch.func.grad(loss))(torch.tensor(MANY))
    near(each, [3 * np.cos(3 * y) @ J for y, J, _ in map(closed_form, MANY)])
    single = torch.tensor(START, dtype=torch.float32, requires_grad=True)
    loss(single).backward()
    assert single.grad.dtype == torch.float32
    np.testing.assert_allclose(single.grad, 3 * np.cos(3 * y) @ J, rtol=1e-4)


def test_torch_runs_on_a_constraint(torch: Any) -> None:
    def loss(model: cd.Model, q: Any, v: Any, x: Any) -> Any:
        f = cd.torch_simulate(model, 0.04, method="euler", step=0.02, samples=2)
        q, v = f(torch.tensor(q), torch.tensor(v), x[:2], x[2:])
        return 100 * torch.sum(q[-1] ** 3 + v[-1] ** 2)

    def second(model: cd.Model, q: Any, v: Any, x: Any) -> Any:
        return torch.func.hessian(lambda x: loss(model, q, v, x))(torch.tensor(x))

    def gradient(model: cd.Model, q: Any, v: Any, x: Any) -> Any:
        return torch.func.grad(lambda x: loss(model, q, v, x))(torch.tensor(x)).numpy()

    second_derivatives_by_steps(second, gradient)


def test_torch_runs_refuse_what_they_cannot_take(torch: Any) -> None:
    model, arrays = swinging()
    f = cd.torch_simulate(model, 0.1, samples=2)
    q, v, tau, p = map(torch.tensor, arrays)
    v.requires_grad_()
    cases: list[tuple[str, Callable[[], Any]]] = [
        ("v0 is a ndarray; give torch tensors", lambda: f(q, arrays[1])),
        (r"v0 is on meta; Cardan computes on the CPU and on NVIDIA GPUs: give v0.cpu\(\)", lambda: f(q, v.to("meta"))),
        ("q0 has dtype torch.int64; give float64 or float32", lambda: f(q.long(), v)),
        ("q0 is torch.float64 and tau torch.float32", lambda: f(q, v, tau.float())),
        (r"p has shape \(3,\), the model needs \(..., 4\)", lambda: f(q, v, None, p[:3])),
        ("not finite", lambda: (f(q, v)[0] * torch.inf).sum().backward()),
        (
            "'dormand_prince' chooses its own: take method='rk4' with step",
            lambda: torch.func.hessian(lambda v: f(q, v)[0].sum())(v.detach()),
        ),
    ]
    for words, call in cases:
        with pytest.raises(cd.CardanError, match=words):
            call()
