"""Derivatives of runs through events, impacts and sticking friction, and of states, against closed forms."""

import casadi as ca
import numpy as np
import pytest
from scipy.linalg import expm

import cardan as cd

pytestmark = pytest.mark.usefixtures("quick_code")
G = 9.81


def slider(axis=(0, 0, 1), gravity=(0, 0, -G)) -> cd.Mechanism:
    """A body of 2 kg on one slide, `x`."""
    m = cd.Mechanism("slider", gravity=gravity)
    m.body("b", mass=2.0, inertia=cd.inertia.sphere(2.0, 0.1))
    m.joint("x", cd.Prismatic(axis=axis), m.ground, "b")
    return m


def twice_bounced(t: float) -> np.ndarray:
    """Height and rate at `t` after two bounces, from 1 m at rest, by height, rate, restitution 0.8 and gravity."""
    h, v, e, g = x = [ca.SX.sym(name) for name in ("h", "v", "e", "g")]
    w = ca.sqrt(v**2 + 2 * g * h)
    after = t - ((v + w) / g + 2 * e * w / g)
    y = ca.vertcat(e * e * w * after - g / 2 * after**2, e * e * w - g * after)
    return np.array(ca.Function("D", x, [ca.jacobian(y, ca.vertcat(*x))])(1.0, 0.0, 0.8, G))


def bouncing(by_stop: bool) -> tuple[cd.Model, list[cd.Event], str]:
    m = slider()
    if by_stop:
        m.stop("floor", "x", lower=0.0, restitution=0.8)
        return m.build().free("gravity", "floor.restitution"), [], "floor.restitution"
    m.variable("e", 0.8)
    m.variable("sum", 0.0)
    change = lambda s: cd.Change({"x": -s["e"] * s.rate("x")}, {"sum": s["sum"] - s.rate("x")})
    floor = cd.Event("floor", lambda s: s.coordinate("x"), direction=-1, then=change)
    return m.build().free("gravity"), [floor], "e"


@pytest.mark.parametrize("by_stop", [True, False])
def test_a_ball_after_two_bounces(by_stop: bool) -> None:
    model, events, e = bouncing(by_stop)
    for how in ({}, {"method": "rk4", "step": 0.03}):
        run = cd.simulate(
            model, 1.6, [1.0], samples=9, events=events, sensitivities=["q0", "v0", "parameters"], **how
        )  # fmt: skip
        assert len(run.events) == 2
        S, free = run.sensitivity, model.parameters
        at = [free.slice_of(e).start, free.slice_of("gravity").start + 2]
        for k, name in enumerate(("q", "v")):
            one = [getattr(S[by], name)[-1, 0, 0] for by in ("q0", "v0")]
            p = getattr(S["parameters"], name)[-1, 0, at] * [1, -1]
            np.testing.assert_allclose([*one, *p], twice_bounced(1.6)[k], rtol=1e-11)
        back = run.gradient(lambda s: s.q[0], over="end")
        np.testing.assert_allclose(back["parameters"], S["parameters"].q[-1, 0], rtol=1e-11, atol=1e-13)
        if not by_stop:  # the sum of the speeds of both impacts is (1 + e) sqrt(2 g h)
            np.testing.assert_allclose(S["q0"].p[-1, free.slice_of("sum"), 0], [1.8 * np.sqrt(2 * G) / 2], rtol=1e-11)
            np.testing.assert_allclose(S["parameters"].p[-1, free.slice_of("sum"), at[0]], [np.sqrt(2 * G)], rtol=1e-11)


def test_friction_that_stops_a_swing() -> None:
    """Every half swing takes 2 F / k; the block stays where it stops for good, and forgets its mass."""
    m = slider((1, 0, 0))
    m.torsion("spring", "x", stiffness=40.0)
    m.friction("rubs", "x", coulomb=1.5, stick=True)
    model = m.build().free("b.mass", "spring.stiffness", "rubs.coulomb")
    run = cd.simulate(model, 5.5, [0.5], samples=2, rtol=1e-10, sensitivities=["q0", "v0", "parameters"])
    halves = len(run.events)
    assert halves == 7 and abs(run.q[-1, 0]) < 1.5 / 40
    sign = (-1) ** halves
    np.testing.assert_allclose(run.q[-1], sign * (0.5 - halves * 2 * 1.5 / 40), atol=1e-8)
    S = run.sensitivity
    wanted = np.array([0.0, sign * halves * 2 * 1.5 / 40**2, -sign * halves * 2 / 40])
    np.testing.assert_allclose(S["parameters"].q[-1, 0], wanted, atol=1e-7)
    np.testing.assert_allclose([S["q0"].q[-1, 0, 0], S["v0"].q[-1, 0, 0]], [sign, 0.0], atol=1e-7)
    assert max(np.abs(S[name].v[-1]).max() for name in S) < 1e-12


def test_states_and_inputs_of_a_regulated_mass() -> None:
    """A linear system: derivatives by the start are the exponential of the matrix of `cd.linearise`."""
    m = slider((1, 0, 0))
    m.controller("servo", "x", cd.PID(8.0, 3.0, 5.0, filter=0.2))
    model = m.build()
    linear = cd.linearise(model, inputs=["servo.reference"])
    run = cd.simulate(
        model.at({"servo.integral": 0.3}), 0.7, [0.2], samples=[0.0, 0.7], rtol=1e-12, atol=1e-13,
        sensitivities=["q0", "v0", "parameters"],
    )  # fmt: skip
    S, free = run.sensitivity, model.parameters
    states = [free.slice_of(f"servo.{name}").start for name in ("integral", "filtered")]
    goal = free.slice_of("servo.reference").start
    whole = expm(0.7 * np.block([[linear.A, linear.B], [np.zeros((1, 5))]]))[:4]
    found = np.concatenate([
        np.concatenate([x.q[-1], x.v[-1], x.p[-1, states]])
        for x in (S["q0"], S["v0"], type(S["q0"])(*(y[..., [*states, goal]] for y in S["parameters"])))
    ], axis=1)  # fmt: skip
    np.testing.assert_allclose(found, whole, atol=1e-9)
    back = run.gradient(lambda s: s["servo.integral"] + s.q[0] ** 2, over="end")
    wanted = whole[2] + 2 * run.q[-1, 0] * whole[0]
    parts = [back["q0"][0], back["v0"][0], *back["parameters"][[*states, goal]]]
    np.testing.assert_allclose(parts, wanted, atol=1e-9)


def test_a_grazed_event_is_told() -> None:
    """A ball thrown up to a height that it hardly reaches."""
    top = cd.Event("top", lambda s: s.coordinate("x") - 0.5 + 1e-9, direction=1)
    run = cd.simulate(slider().build(), 1.0, [0.0], [np.sqrt(G)], samples=2, events=[top], breaks=[G**-0.5])
    with pytest.warns(RuntimeWarning, match=r"event 'top' at t = .* is grazed"):
        run.gradient(lambda s: s.t, over="end")


def test_impacts_without_derivatives_are_refused() -> None:
    m = slider()
    m.stop("floor", "x", lower=0.0, restitution=0.8)
    run = cd.simulate(m.build(), 0.6, [1.0], samples=2, method=cd.DormandPrince(impact="poisson"))
    with pytest.raises(cd.InputError, match=r"impact at t = 0.4515.* is not differentiated: its law is 'poisson'"):
        run.vjp(1.0)
