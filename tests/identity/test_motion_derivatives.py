"""Derivatives of runs: backward against forward, against differences of the same steps, and closed forms."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import casadi as ca
import numpy as np
import pytest

import cardan as cd
from cardan import mechanisms
from cardan.integrate.explicit import recording
from cardan.results import motion_derivatives
from cardan.results.motion_derivatives import RunDerivatives
from cardan.structure.projection import project

pytestmark = [pytest.mark.usefixtures("quick_code"), pytest.mark.filterwarnings("ignore:simulation of")]
NAMES = ("q0", "v0", "tau", "parameters")
RK4 = {"method": "rk4", "step": 0.02}


def four_bar() -> tuple[cd.Model, np.ndarray, np.ndarray]:
    model = mechanisms.four_bar().build().free("B.at", "coupler.mass", "gravity")
    return (model, *cd.assemble(model, model.start(), np.ones(model.nv)))


def four_bars() -> tuple[cd.Model, np.ndarray, np.ndarray]:
    """Three at speeds of their own."""
    model, q, _ = four_bar()
    return (model, *cd.assemble(model, np.tile(q, (3, 1)), [[-3.0, 0, 0], [1.0, 0, 0], [3.0, 0, 0]], hold=["A"]))


def top() -> tuple[cd.Model, np.ndarray, np.ndarray]:
    """A heavy top: its coordinates are a quaternion."""
    m = cd.Mechanism("top")
    m.body("top", mass=1.0, com=[0.1, 0.0, 0.2], inertia=[0.3, 0.4, 0.5])
    m.joint("ball", cd.Spherical(), "ground", "top")
    model = m.build().free("top.com", "gravity")
    return (model, *model.random_state(np.random.default_rng(1)))


def pendulum() -> tuple[cd.Model, np.ndarray, np.ndarray]:
    """Driven: its equations depend on time."""
    m = mechanisms.pendulum()
    m.drive("kick", "pivot", lambda t, q, v: ca.sin(3 * t))
    return m.build().free("rod.mass", "gravity"), np.array([2.0]), np.array([0.1])


def servo(**more: Any) -> cd.Mechanism:
    """A mass on a slide with a spring, and a PID whose numbers are variables; `more` of the controller."""
    m = cd.Mechanism("servo", gravity=(0, 0, -9.81))
    m.body("mass", mass=2.0, inertia=cd.inertia.sphere(2.0, 0.1))
    m.joint("x", cd.Prismatic(axis=(1, 0, 0)), "ground", "mass")
    m.torsion("spring", "x", stiffness=30.0)
    m.variable("goal", 0.4, linear=True)
    m.variable("gain", 8.0)

    def law(s: Any) -> Any:
        e = s["goal"] - s.coordinate("x")
        rate = 3.0 * e - 0.2 * s["sum"] ** 3
        change = s["sum"] + 0.07 * rate if "every" in more else rate
        return s["gain"] * e + s["sum"] - 4.0 * s.rate("x"), {"sum": change}

    m.controller("pid", ["x"], law, states={"sum": 0.3}, **more)
    return m


def with_states() -> tuple[cd.Model, np.ndarray, np.ndarray]:
    """A controller with an integral."""
    return servo().build().free("mass.mass"), np.array([0.1]), np.array([0.5])


def with_samples() -> tuple[cd.Model, np.ndarray, np.ndarray]:
    """The same at its own rate, late."""
    return servo(every=0.07, delay=0.14).build(), np.array([0.1]), np.array([0.5])


def with_stops() -> tuple[cd.Model, np.ndarray, np.ndarray]:
    """The same with friction that sticks, and a stop."""
    m = servo()
    m.friction("rubs", "x", coulomb=1.5, static=2.0, stick=True)
    m.stop("wall", "x", upper=0.25, restitution=0.6)
    model = m.build().free("rubs.coulomb", "rubs.static", "wall.restitution", "wall.upper")
    return model, np.array([0.1]), np.array([1.5])


def rod() -> tuple[cd.Model, np.ndarray, np.ndarray]:
    """A rod that falls on its tip, which slides."""
    m = cd.Mechanism("rod", gravity=(0, 0, -9.81))
    for name in ("along", "up"):
        m.body(name, mass=0.1)
    m.body("rod", mass=1.0, inertia=np.diag([1e-3, 1 / 3, 1 / 3]))
    m.joint("x", cd.Prismatic(axis=(1, 0, 0)), "ground", "along")
    m.joint("z", cd.Prismatic(axis=(0, 0, 1)), "along", "up")
    m.joint("turn", cd.Revolute(axis=(0, 1, 0)), "up", "rod")
    tip = ca.DM([-1.0, 0.0, 0.0])
    m.contact(
        "tip", ["rod"], gap=lambda t, P, T: (P[0].position + P[0].rotation @ tip)[2], friction=0.2, restitution=0.4,
        tangent=lambda t, P, T: (P[0].rotation @ (T[0][3:] + ca.cross(T[0][:3], tip)))[0],
    )  # fmt: skip
    model = m.build().free("tip.coefficient", "tip.restitution", "rod.mass", "gravity")
    return model, np.array([0.0, np.sin(1.1) + 0.05, -1.1]), np.array([1.0, 0.3, 0.1])


def kicked() -> tuple[cd.Model, np.ndarray, np.ndarray]:
    """A four-bar that turns."""
    m = mechanisms.four_bar()
    m.variable("kick", 0.5)
    model = m.build().free("coupler.mass", "B.at")
    return (model, *cd.assemble(model, None, {"A": 3.0}))


def values_at(model: cd.Model, p: np.ndarray) -> cd.Model:
    return model.at({x.name: p[model.parameters.slice_of(x.name)].reshape(x.shape) for x in model.parameters})


def difference(model: cd.Model, run: Callable[..., cd.Trajectory], q: Any, v: Any, by: str, k: int, h: float) -> Any:
    """Derivatives of q, v, t, p of all samples by one number, by differences of order six; q along the tangent."""

    def at(n: int) -> tuple[np.ndarray, ...]:
        unit, p = n * h * np.eye(max(model.nv, model.parameters.size))[k], model.parameters.nominal
        found = run(
            values_at(model, p + unit[: p.size]) if by == "parameters" else model,
            cd.plus(model, q, unit[: model.nv]) if by == "q0" else q,
            v + unit[: model.nv] if by == "v0" else v,
        )
        p = np.zeros((*found.q.shape[:-1], 0)) if found.parameters is None else found.parameters
        return found.q, found.v, np.broadcast_to(found.time, found.q.shape[:-1]), p

    weights = {1: 3 / 4, 2: -3 / 20, 3: 1 / 60}
    each = {n: at(n) for n in (-3, -2, -1, 1, 2, 3)}
    dq, dv, dt, dp = (sum(w * (each[n][i] - each[-n][i]) for n, w in weights.items()) / h for i in range(4))
    centre = np.nan_to_num(run(model, q, v).q)
    N = cd.equations(model).N(centre)
    return (np.linalg.pinv(N) @ dq[..., None])[..., 0], dv, dt, dp


def agree(run: cd.Trajectory, tolerance: float = 1e-12) -> None:
    """The gradients of a weighted sum of all samples, backward, are those of the sensitivities, forward."""
    rng = np.random.default_rng(0)
    dq, dv = rng.normal(size=(2, *run.v.shape))
    dt = rng.normal(size=run.valid.shape)
    dp = None if run.parameters is None else rng.normal(size=run.parameters.shape)
    back = run.vjp(dq, dv, dt, dp)
    for name, forward in run.sensitivity.items():
        terms = [np.einsum("...sn,...snk->...sk", w, x) for w, x in ((dq, forward.q), (dv, forward.v))]
        terms.append(dt[..., None] * forward.t)
        terms += [] if dp is None else [np.einsum("...sn,...snk->...sk", dp, forward.p)]
        total = sum(np.where(run.valid[..., None], x, 0.0).sum(axis=-2) for x in terms)
        assert np.abs(back[name] - total).max() <= tolerance * max(1.0, np.abs(total).max()), name
        assert np.abs(total).max() > 1e-3


STOP = cd.Event("stop", lambda s: s.q[0] - 0.5 + 0.1 * s.t, direction=-1)
NOTED = cd.Event("noted", lambda s: s.q[0] + 0.3 * s.v[0] - 1.5, action="record")
RAISED = cd.Event("raised", lambda s: s.position("coupler")[1] - 0.36 + 0.01 * s.v[1], direction=1)
PASSED = cd.Event("passed", lambda s: s.q[2] - 1.555 + 0.002 * s.v[1] - 0.01 * s.t, action="record")
KICK = cd.Event(
    "kick", lambda s: s.coordinate("A") - s["kick"] - 0.9,
    then=lambda s: cd.Change(
        {"A": s.rate("A") * s["kick"] + s.coordinate("B") * s.t},
        {"coupler.mass": 1.5 * s["coupler.mass"] + s["kick"] * s.rate("D")},
    ),
)  # fmt: skip
NEAREST = cd.Event("nearest", KICK.when, then=lambda s: cd.Change(v=s["kick"] * s.v + s.q))
RAMP = {"goal": ([0.05, 0.31], [0.1, 0.9])}
CASES: dict[str, tuple[Any, float, dict[str, Any]]] = {
    "loop, samples inside steps": (four_bar, 0.5, {"method": "rk4", "step": 0.021}),
    "loop with feedback": (four_bar, 0.1, {"method": cd.SemiImplicitEuler(baumgarte=20.0), "step": 0.002}),
    "a quaternion": (top, 0.3, RK4),
    "time and a break": (pendulum, 0.5, {**RK4, "breaks": [0.2]}),
    "stops of some loops, after another event": (four_bars, 1.0, {**RK4, "events": [PASSED, RAISED]}),
    "states": (with_states, 0.5, {"method": "rk4", "step": 0.021}),
    "states, and an event": (with_states, 0.6, {**RK4, "events": [cd.Event("sum", lambda s: s["pid.sum"] - 0.55)]}),
    "samples and inputs over time": (with_samples, 0.63, {**RK4, "inputs": RAMP}),
    "stops and friction": (with_stops, 0.9, RK4),
    "a contact with friction": (rod, 0.27, RK4),
    "a change in a loop": (kicked, 0.4, {**RK4, "events": [KICK]}),
    "nearest rates in a loop": (kicked, 0.4, {**RK4, "events": [NEAREST]}),
    "recorded event": (pendulum, 1.0, {**RK4, "events": [NOTED]}),
}


LAWS = {case: set() for case in CASES} | {
    "stops and friction": {"rubs: sliding", "wall: upper"}, "a contact with friction": {"tip: gap"}
}  # fmt: skip
LAWS_AND_STATES = list(CASES)[list(CASES).index("states") : -1]


@pytest.mark.parametrize("case", CASES)
def test_against_differences_of_the_same_steps(case: str) -> None:
    make, duration, how = CASES[case]
    model, q, v = make()

    def run(model: cd.Model, q: Any, v: Any, **more: Any) -> cd.Trajectory:
        return cd.simulate(model, duration, q, v, samples=4, assemble=model.has_rows, **how, **more)

    found = run(model, q, v, sensitivities=NAMES)
    assert {event.name for event in found.events} == {event.name for event in how.get("events", ())} | LAWS[case]
    agree(found)
    every = range(min(model.parameters.size, 4) if case in LAWS_AND_STATES else 1)
    for name, k in (("q0", 0), ("v0", 0), *(("parameters", k) for k in every)):
        own = found.sensitivity[name]
        wanted = difference(model, run, q, v, name, k, 1e-4)
        size = max(1.0, np.abs(own.v[found.valid, :, k]).max())
        for mine, other in zip((x[..., k] for x in own), wanted, strict=True):
            assert np.abs(mine - other)[found.valid].max(initial=0.0) <= 1e-10 * size, (name, k)


def test_steps_that_a_tolerance_chose_against_differences_with_the_same_steps() -> None:
    """The accelerations are carried from step to step, from states that are not yet back on the loops."""
    model, q, v = four_bar()
    run = cd.simulate(model, 0.5, q, v, samples=3, rtol=1e-6, sensitivities="parameters")
    agree(run)
    stepper = RunDerivatives(run._replay).taped(slice(None))
    steps = [s for leg in stepper.tape if isinstance(leg, recording.Leg) for block in leg.steps for s in block.steps()]
    assert len(steps) == run.statistics["steps"] > 5
    k, h = model.parameters.slice_of("coupler.mass").start, 1e-2

    def end(n: int) -> np.ndarray:
        p = model.parameters.nominal + n * h * (np.arange(model.parameters.size) == k)
        x, y, a = q, v, cd.forward_dynamics(values_at(model, p), q, v)
        for step in steps:
            given = (step.x["t"][0], x, y, a, 0.0, 0.0, step.h[0], np.zeros(3), p, np.asarray(1.0))
            _, x, y, a, *_ = stepper.kernels.single_step(*given)
        return np.concatenate(project(model, x, y, 0.5, parameters=[p])[:2])

    wanted = sum(w * (end(n) - end(-n)) for n, w in {1: 3 / 4, 2: -3 / 20, 3: 1 / 60}.items()) / h
    S = run.sensitivity["parameters"]
    found = np.concatenate([S.q[-1, :, k], S.v[-1, :, k]])
    assert np.abs(found - wanted).max() <= 1e-11 * np.abs(wanted).max()


def oscillator() -> cd.Model:
    m = cd.Mechanism("oscillator", gravity=(0.0, 0.0, 0.0))
    m.body("mass", mass=2.0, inertia=[1.0, 1.0, 1.0])
    m.joint("slide", cd.Prismatic(axis=(1, 0, 0)), "ground", "mass")
    m.torsion("spring", "slide", stiffness=18.0)
    return m.build().free("spring.stiffness")


@pytest.mark.parametrize("method", ["rk4", "euler"])
def test_the_oscillator_is_a_power_of_a_matrix(method: str) -> None:
    """x' = R x with R a polynomial of hA: derivatives are R^n, and by stiffness those of R^n."""
    model, h, n = oscillator(), 0.05, 20
    run = cd.simulate(model, n * h, [0.3], [0.2], method=method, step=h, samples=n + 1, sensitivities=NAMES)

    def R(k: complex) -> np.ndarray:
        A = h * np.array([[0, 1], [-k / 2, 0]])
        if method == "euler":  # v' = v - h k/m q, q' = q + h v'
            return np.array([[1 - h * h * k / 2, h], [-h * k / 2, 1]])
        return np.eye(2) + A + A @ A / 2 + A @ A @ A / 6 + A @ A @ A @ A / 24

    by_state = np.linalg.matrix_power(R(18.0), n)
    small = 1e-30  # a complex step: no difference is taken, nothing is lost
    by_stiffness = (np.linalg.matrix_power(R(18.0 + 1j * small), n) @ [0.3, 0.2]).imag / small
    S = run.sensitivity
    found = np.array([[S[name].q[-1, 0, 0], S[name].v[-1, 0, 0]] for name in ("q0", "v0", "parameters")])
    assert np.abs(found - [*by_state.T, by_stiffness]).max() < 1e-14
    assert np.abs(run.vjp(dq=np.eye(n + 1)[-1:].T)["q0"] - by_state[0, 0]).max() < 1e-14


def test_a_long_run() -> None:
    """Ten thousand steps, undamped: the determinant of the derivatives is that of R, to the power of the steps."""
    run = cd.simulate(oscillator(), 10.0, [0.3], [0.2], method="rk4", step=1e-3, samples=2)
    rows = [[run.vjp(**{by: [[0.0], [1.0]]})[name][0] for name in ("q0", "v0")] for by in ("dq", "dv")]
    assert np.isclose(np.linalg.det(rows), 1.0, rtol=0, atol=1e-11)


def test_batches_are_their_systems(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every system has its own steps and stop; chunks, and legs that are taken again, change nothing."""
    model, _, _ = pendulum()
    many = model.at({"rod.mass": [[1.0], [2.0], [3.0]]})
    q, v = np.array([2.0]), np.array([[0.1], [0.2]])
    run = cd.simulate(many, 0.48, q, v, samples=5, events=[STOP], sensitivities=NAMES)
    assert run.q.shape[:2] == (3, 2) and (run.outcome == "stopped at an event").any() and (run.outcome == "").any()
    agree(run)
    loss = lambda s: s.q[0] ** 2 + s.t * s.v[0]
    whole = run.gradient(loss)
    for i in ((0, 0), (2, 1)):
        one = cd.simulate(many.one_of(i), 0.48, q, v[i[1]], samples=5, events=[STOP], sensitivities=NAMES)
        for name in NAMES:
            for mine, other in zip(run[i].sensitivity[name], one.sensitivity[name], strict=True):
                assert np.allclose(mine, other, rtol=0, atol=1e-13)
            assert np.allclose(run[i].gradient(loss)[name], whole[name][i], rtol=0, atol=1e-13)
            assert np.allclose(one.gradient(loss)[name], whole[name][i], rtol=0, atol=1e-12)
    monkeypatch.setattr(motion_derivatives, "CHUNK", 1)
    monkeypatch.setattr(recording, "MEMORY", 1)
    again = run.gradient(loss)
    assert all(np.array_equal(again[name], whole[name]) for name in NAMES)


def test_systems_of_a_batch_have_their_own_jumps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Systems that meet different events, with breaks for all: as one by one, also where legs are taken again."""
    model, q, _ = with_stops()
    v, how = np.array([[0.2], [1.5], [3.0]]), {"samples": 7, "breaks": [0.33], **RK4}
    run = cd.simulate(model, 0.9, q, v, **how)
    met = [[event.name for event in run.events if event.system == (k,)] for k in range(3)]
    assert len({tuple(names) for names in met}) > 1
    loss = lambda s: s.q[0] ** 2 + s.t * s.v[0] + s["pid.sum"]
    whole = run.gradient(loss)
    for k in range(3):
        one = cd.simulate(model, 0.9, q, v[k], **how).gradient(loss)
        assert all(np.allclose(one[name], whole[name][k], rtol=1e-11, atol=1e-12) for name in NAMES)
    monkeypatch.setattr(motion_derivatives, "CHUNK", 1)
    monkeypatch.setattr(recording, "MEMORY", 1)
    again = run.gradient(loss)
    assert all(np.array_equal(again[name], whole[name]) for name in NAMES)


def test_systems_of_a_batch_take_as_many_steps_as_they_need() -> None:
    model, _, _ = pendulum()
    q = np.linspace(0.01, 3.0, 32)[:, None]
    run = cd.simulate(model, 1.0, q, samples=3, sensitivities=NAMES)
    counts = [cd.simulate(model, 1.0, x, samples=3).statistics["steps"] for x in q[::8]]
    assert len(set(counts)) > 1
    agree(run)


def test_blocks_of_steps_are_followed_as_the_steps_are() -> None:
    """With an event that is never met the steps are followed one by one; without, block by block."""
    model, q, v = four_bar()
    never = cd.Event("never", lambda s: s.q[0] + 100.0)
    one, many = (cd.simulate(model, 0.5, q, v, samples=3, rtol=1e-6, events=e) for e in ([never], []))
    loss = lambda s: s.position("coupler")[0] + s.v[0] ** 2
    by_one, by_many = one.gradient(loss, over="end"), many.gradient(loss, over="end")
    for name in NAMES:
        assert np.allclose(by_one[name], by_many[name], rtol=1e-12, atol=1e-12)
    assert np.isclose(by_many.value, many.position("coupler")[-1, 0] + many.v[-1, 0] ** 2)
    # by the joint's placement the loss also depends directly: the sum over samples is that of the differences
    k, h = 0, 1e-5
    ends = [
        cd.simulate(values_at(model, model.parameters.nominal + n * h * (np.arange(7) == k)), 0.5, q, v, samples=3,
                    assemble=True, method="rk4", step=0.02)
        for n in (-1, 0, 1)
    ]  # fmt: skip
    values = [np.sum(x.position("coupler")[:, 0] + x.v[:, 0] ** 2) for x in ends]
    assert np.isclose(ends[1].gradient(loss)["parameters"][k], (values[2] - values[0]) / (2 * h), rtol=1e-7)


def turning(kite: cd.Model) -> tuple[np.ndarray, np.ndarray]:
    """A start from which the kite's crank turns backward, through the flat position."""
    return cd.assemble(kite, kite.start(), [-7.0, 0.0, 0.0], hold=["A"])


def test_a_flat_position_between_two_steps_is_warned_of() -> None:
    kite = mechanisms.four_bar(base=1.0, crank=1.0, coupler=2.0, rocker=2.0).build()
    run = cd.simulate(kite, 0.6, *turning(kite), method="rk4", step=0.025, samples=2)
    with pytest.warns(RuntimeWarning, match="comes near a singular position"):
        run.vjp(1.0)


def test_what_has_no_derivative_is_refused() -> None:
    model, q, v = pendulum()
    parallel = mechanisms.parallelogram().build()
    kite = mechanisms.four_bar(base=1.0, crank=1.0, coupler=2.0, rocker=2.0).build()
    start = turning(kite)
    run = cd.simulate(model, 0.1, q, v, samples=3, events=[STOP])
    cases: list[tuple[str, Callable[[], Any]]] = [
        ("method 'alpha' has none", lambda: cd.simulate(model, 1.0, q, method="alpha", step=0.1, sensitivities="q0")),
        ("'q' are not known", lambda: cd.simulate(model, 1.0, q, sensitivities=["q"])),
        ("'parameters' has a column", lambda: cd.simulate(model, 1.0, q, sensitivities=["rod.mass"])),
        ("twice", lambda: cd.simulate(model, 1.0, q, sensitivities=["q0", "q0"])),
        ("no free parameter", lambda: cd.simulate(kite, 1.0, sensitivities=["parameters"])),
        ("in memory", lambda: cd.simulate(model, 1.0, q, sensitivities=["q0"], store="run.nc")),
        ("does not know its steps", lambda: cd.Trajectory(model, run.time, run.q, run.v).vjp(0.0)),
        ("does not know its steps", lambda: pickle.loads(pickle.dumps(run)).vjp(0.0)),
        ("shape \\(3, 1\\)", lambda: run.vjp(np.zeros((5, 1)))),
        ("must be numbers", lambda: run.vjp("up")),
        ("finite", lambda: run.vjp(np.nan)),
        ("function of an instant", lambda: run.gradient(3.0)),
        ("run.gradient: the loss must be a scalar", lambda: run.gradient(lambda s: s.q * np.ones(2))),
        ("'samples' or 'end'", lambda: run.gradient(lambda s: s.q[0], over="last")),
        ("at t = 0.* passes a singular position", lambda: cd.simulate(kite, 0.6, *start, samples=2).vjp(1.0)),
        ("depends on the configuration", lambda: cd.simulate(parallel, 0.1, samples=2).vjp(1.0)),
        ("71 links", lambda: cd.simulate(mechanisms.chain(71).build(), 1e-3, samples=2).vjp(1.0)),
        ("a system ended early", lambda: cd.simulate(model, 1.0, q, max_steps=2, samples=2, failures="keep").vjp(1.0)),
    ]
    for words, call in cases:
        with pytest.raises(cd.CardanError, match=words):
            call()
