"""Linear models of mechanisms with controllers, motors, filters and delays against their transfer functions."""

import numpy as np
import pytest
from scipy.linalg import solve_continuous_are

import cardan as cd
from cardan import mechanisms

pytestmark = pytest.mark.usefixtures("quick_code")
RNG = np.random.default_rng(20)
FREQUENCIES = np.array([0.02, 0.3, 1.7, 11.0])
S = 2j * np.pi * FREQUENCIES


def slider() -> cd.Mechanism:
    """A mass of 2 kg on a slide `x`, without weight."""
    m = cd.Mechanism("slider", gravity=(0, 0, 0))
    m.body("mass", mass=2.0, inertia=cd.inertia.sphere(2.0, 0.1))
    m.joint("x", cd.Prismatic(axis=(1, 0, 0)), m.ground, "mass")
    return m


def roots_of(*coefficients: float) -> np.ndarray:
    return np.sort_complex(np.roots(coefficients))


def test_a_pid_on_a_mass_has_the_poles_and_the_response_of_its_polynomial() -> None:
    kp, ki, kd, T = 8.0, 3.0, 5.0, 0.05
    m = slider()
    m.controller("servo", "x", cd.PID(kp, ki, kd, filter=T))
    outputs = ["q.x", "servo.effort", "servo.integral", "acceleration.mass.x"]
    linear = cd.linearise(m.build(), inputs=["servo.reference", "tau.x"], outputs=outputs)
    assert linear.states == ("q.x", "v.x", "servo.integral", "servo.filtered")
    assert linear.outputs == tuple(outputs) and linear.units["servo.effort"] == "N"
    # 2 s^2 x = C (r - x) + f with C = kp + ki / s + kd s / (T s + 1), times s (T s + 1)
    poles = roots_of(2 * T, 2, kp * T + kd, kp + ki * T, ki)
    np.testing.assert_allclose(np.sort_complex(linear.eigenvalues), poles, rtol=1e-12)
    C = kp + ki / S + kd * S / (T * S + 1)
    x = np.stack([C, np.ones_like(S)], axis=-1) / (2 * S**2 + C)[:, None]
    e = np.array([1.0, 0.0]) - x
    wanted = np.stack([x, C[:, None] * e, ki / S[:, None] * e, S[:, None] ** 2 * x], axis=1)
    np.testing.assert_allclose(linear.response(FREQUENCIES), wanted, rtol=1e-11)
    whole = cd.linearise(m.build(), inputs=["servo.reference", "tau.x"], outputs=outputs, form="descriptor")
    np.testing.assert_allclose(whole.response(FREQUENCIES), wanted, rtol=1e-11)


def test_the_poles_of_a_regulated_cart_pole_are_those_of_its_gains() -> None:
    plain = mechanisms.cart_pole().build()
    upright = plain.state(hinge=0.0)
    linear = cd.linearise(plain, upright, inputs=["tau.rail"])
    K = linear.B.T @ solve_continuous_are(linear.A, linear.B, np.diag([1, 10, 1, 1]), np.eye(1))
    m = mechanisms.cart_pole()
    m.controller("lqr", "rail", cd.StateFeedback(K, linear))
    closed = cd.modes(m.build(), upright)
    assert closed.stability == "stable"
    wanted = np.sort_complex(np.linalg.eigvals(linear.A - linear.B @ K))
    np.testing.assert_allclose(np.sort_complex(closed.eigenvalues), wanted, rtol=1e-10)


def test_feedback_of_an_integral_has_the_poles_of_its_gains(tmp_path) -> None:
    """A regulator with the integral of its error as a state, about the weight that it bears; from a file, too."""

    def plant() -> cd.Mechanism:
        m = cd.Mechanism("lift", gravity=(0, 0, -9.81))
        m.body("car", mass=2.0)
        m.joint("x", cd.Prismatic(axis=(0, 0, 1)), m.ground, "car")
        m.variable("goal", 0.0)
        m.variable("sum", 0.0, rate=lambda s: s.coordinate("x") - s["goal"])
        return m

    linear = cd.linearise(plant().build(), {"q": [0.0], "tau": [19.62]}, inputs=["tau.x"])
    K = linear.B.T @ solve_continuous_are(linear.A, linear.B, np.diag([1, 1, 5.0]), np.eye(1))
    m = plant()
    m.controller("lqi", "x", cd.StateFeedback(K, linear))
    wanted = np.sort_complex(np.linalg.eigvals(linear.A - linear.B @ K))
    cd.save(m.build(), tmp_path / "lift.yaml")
    for model in (m.build(), cd.load(tmp_path / "lift.yaml")):
        rest = cd.equilibrium(model.at({"goal": 0.3}))
        assert rest.coordinate("x") == pytest.approx(0.3)
        np.testing.assert_allclose(np.sort_complex(cd.modes(rest.model, rest).eigenvalues), wanted, rtol=1e-10)
    with pytest.raises(cd.ModelError, match=r"controller 'c': K must be \(1, 3\), .* rate of x, then for each of sum"):
        m = plant()
        m.controller("c", "x", cd.StateFeedback([[1.0, 2.0, 3.0, 4.0]], ["x", "sum"]))
        m.build()


def test_a_motor_has_an_electrical_and_a_mechanical_pole() -> None:
    k, R, L, g, J = 0.05, 1.2, 2e-3, 30.0, 0.4
    m = cd.Mechanism("shaft", gravity=(0, 0, 0))
    m.body("rotor", mass=1.0, inertia=np.diag([J, J, J]))
    m.joint("spin", cd.Revolute(axis=(0, 0, 1)), m.ground, "rotor")
    m.controller("motor", "spin", cd.Motor(k, R, inductance=L, gear=g))
    linear = cd.linearise(m.build(), inputs=["motor.voltage"], outputs=["v.spin", "motor.current"])
    below = (L * S + R) * J * S + (g * k) ** 2
    wanted = np.stack([g * k / below, J * S / below], axis=-1)[..., None]
    np.testing.assert_allclose(linear.response(FREQUENCIES), wanted, rtol=1e-11)


def test_a_delay_is_pade_s_and_a_filter_its_transfer_function() -> None:
    control = pytest.importorskip("control")
    m = slider()
    m.variable("command", 0.0)
    m.delay("late", lambda s: s["command"], 0.1, order=3)
    m.filter("smooth", lambda s: s["command"], [3.0, 2.0], [0.1, 0.7, 1.0])
    own = {"late": lambda s: s["late"], "smooth": lambda s: s["smooth"]}
    linear = cd.linearise(m.build(), inputs=["command"], outputs=own)
    # the same to python-control, which numbers the states as Cardan does
    exported = linear.control()
    late = control.tf(*control.pade(0.1, 3, 2))(S)
    smooth = (3 * S + 2) / (0.1 * S**2 + 0.7 * S + 1)
    for H in (linear.response(FREQUENCIES)[:, :, 0].T, exported(S)[:, 0, :]):
        np.testing.assert_allclose(H, [late, smooth], rtol=1e-10)
    assert np.abs(late[:2] - np.exp(-0.1 * S[:2])).max() < 1e-4


def vector_law(s):
    y = s["y"]
    return -y[0] - 2.0 * y[1], {"y": [y[1], s["reach"] - s.coordinate("x")]}


def test_single_numbers_of_vectors_are_states_inputs_and_outputs() -> None:
    m = slider()
    m.controller("own", ["x"], vector_law, states={"y": [0.0, 0.0]}, inputs={"reach": 0.0})
    model = m.build().free("gravity")
    linear = cd.linearise(model, inputs=["gravity[0]", "own.reach"], outputs=["own.y[1]", "own.effort"])
    assert linear.states == ("q.x", "v.x", "own.y[0]", "own.y[1]")
    assert linear.inputs == ("gravity[0]", "own.reach")
    assert linear.outputs == ("own.y[1]", "own.effort")
    assert cd.linearise(model, outputs="state").outputs == ("own.y[0]", "own.y[1]")
    np.testing.assert_allclose(linear.B, [[0, 0], [1, 0], [0, 0], [0, 1]])
    np.testing.assert_allclose(linear.A, [[0, 1, 0, 0], [0, 0, -0.5, -1], [0, 0, 0, 1], [-1, 0, 0, 0]])


def test_a_cascade_is_its_loops_one_in_the_other() -> None:
    m = slider()
    m.variable("goal", 0.0)
    m.signal("error", lambda s: s["goal"] - s.coordinate("x"), unit="m")
    m.controller("outer", None, cd.PID(6.0, 1.0, sees=lambda s: s.coordinate("x")), inputs={"reference": "goal"})
    m.controller("inner", "x", lambda s: 4.0 * (s["outer.output"] - s.rate("x")))
    outputs = ["q.x", "error", "outer.output", "inner.effort"]
    linear = cd.linearise(m.build(), inputs=["goal"], outputs=outputs)
    assert linear.outputs == tuple(outputs) and linear.units["error"] == "m"
    x = (6 + 1 / S) * (inner := 4 / (2 * S**2 + 4 * S)) / (1 + (6 + 1 / S) * inner)
    wanted = np.stack([x, 1 - x, (6 + 1 / S) * (1 - x), 2 * S**2 * x], axis=1)
    np.testing.assert_allclose(linear.response(FREQUENCIES)[:, :, 0], wanted, rtol=1e-10)


def test_samples_close_no_continuous_loop() -> None:
    m = slider()
    m.controller("servo", "x", cd.PID(8.0, kd=5.0), every=0.01)
    m.variable("seen", 0.0, every=0.1, update=lambda s: s.coordinate("x"))  # acts on nothing
    model = m.build()
    with pytest.raises(cd.InputError, match=r"'servo.output' is sampled every 0.01 s, .*inputs=\['servo.output'\]"):
        cd.modes(model)
    plant = cd.linearise(model, inputs=["servo.output"])
    assert plant.states == ("q.x", "v.x")
    np.testing.assert_allclose(plant.B, [[0], [0.5]])
    with pytest.raises(cd.InputError, match=r"'servo.integral' has a rate and is a state"):
        other = slider()
        other.controller("servo", "x", cd.PID(8.0, 1.0))
        cd.linearise(other.build(), inputs=["servo.integral"])


def test_a_mode_of_a_variable_alone_is_told_by_its_name() -> None:
    m = slider()
    m.variable("lag", 0.0, rate=lambda s: s.coordinate("x") - 4.0 * s["lag"])
    m.torsion("s", "x", stiffness=2.0)
    found = cd.modes(m.build())
    np.testing.assert_allclose(found.eigenvalues, [1j, -1j, -4.0], atol=1e-12)
    assert [row[-1] for row in found.table()[1:]] == ["mass (100 %)", "lag"]
    with pytest.warns(UserWarning, match="its variables change with up to 1"):
        cd.modes(m.build().at({"lag": -0.25}))


def test_eigenvalues_of_a_regulated_loop_are_differentiated_by_its_numbers() -> None:
    m = mechanisms.four_bar()
    m.controller("servo", "A", cd.PID(8.0, 3.0, 5.0, filter=0.1))
    m.controller("motor", "A", cd.Motor(0.5, 1.0, inductance=0.1))
    model = m.build().free("coupler.mass")
    p = np.array(model.parameters.nominal)
    h = 1e-5 * np.eye(len(p))

    def eigenvalues(values: np.ndarray) -> np.ndarray:
        with pytest.warns(UserWarning, match="not in equilibrium"):
            return cd.modes(model._bound(values)).eigenvalues

    with pytest.warns(UserWarning, match="not in equilibrium"):
        found = cd.modes(model).derivatives()
    slopes = (eigenvalues(p + h) - eigenvalues(p - h)).T / 2e-5
    np.testing.assert_allclose(found, slopes, atol=1e-7 * np.abs(slopes).max())
    named = [found[:, model.parameters.slice_of(name)] for name in ("motor.current", "motor.voltage")]
    assert not named[1].any()  # enters linearly


def test_all_formulations_give_one_linear_model_of_a_regulated_loop() -> None:
    m = mechanisms.four_bar()
    m.controller("servo", "A", cd.PID(8.0, 3.0, 5.0, filter=0.1))
    model = m.build().free("coupler.mass").at({"coupler.mass": [1.0, 2.0]})
    asked = {"inputs": ["servo.reference", "coupler.mass"], "outputs": ["q.D", "servo.effort", "servo.filtered"]}
    found = [cd.linearise(model, formulation=way, **asked) for way in ("spatial", "absolute", "relative", "points")]
    assert found[0].A.shape == (2, 4, 4)
    for other in found[1:]:
        for one, same in zip(found[0], other, strict=True):
            np.testing.assert_allclose(same, one, atol=1e-10 * np.abs(one).max(initial=1.0))
