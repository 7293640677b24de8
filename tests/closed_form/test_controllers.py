"""Controllers: PID, state space and motors against closed forms; sampled loops; all formulations; what is refused."""

import pickle

import casadi as ca
import numpy as np
import pytest
from scipy import linalg, signal

import cardan as cd
from cardan import mechanisms

pytestmark = pytest.mark.usefixtures("quick_code")
MASS, KP, KI, KD, T_F = 2.0, 8.0, 3.0, 5.0, 0.1


def slider(start: float = 0.0) -> cd.Mechanism:
    """A mass on a line: a double integrator."""
    m = cd.Mechanism("slider", gravity=(0, 0, 0))
    m.body("mass", mass=MASS)
    m.joint("x", cd.Prismatic(axis=(1, 0, 0)), m.ground, "mass", start=start)
    return m


def test_pid_on_a_double_integrator_is_the_transfer_function():
    """The step response of `kp + ki/s + kd s/(T s + 1)` around `1/(m s^2)`, as PID and as state space; work counts."""
    numerator = np.polyadd(np.polyadd(np.polymul([KP], [T_F, 1, 0]), np.polymul([KI], [T_F, 1])), [KD, 0, 0])
    denominator = [T_F, 1, 0]
    loop = np.polyadd(np.polymul(denominator, [MASS, 0, 0]), numerator)
    by_scipy = signal.StateSpace(*signal.tf2ss(numerator, denominator))
    own = cd.StateSpace.of_transfer(numerator, denominator)
    at = 0.3 + 2j
    gain = own.C @ np.linalg.solve(at * np.eye(2) - own.A, own.B) + own.D
    assert np.allclose(gain, np.polyval(numerator, at) / np.polyval(denominator, at))
    for law in (cd.PID(KP, KI, KD, filter=T_F), cd.StateSpace(by_scipy)):
        m = slider()
        m.controller("c", "x", law)
        run = cd.simulate(m.build().at({"c.reference": 1.0}), 5.0, samples=26)
        _, y = signal.step((numerator, loop), T=run.time)
        assert np.abs(run["x.coordinate"] - y).max() < 1e-7
        assert run.statistics["energy_error"] < 1e-6
        assert np.allclose(run["c.power"], run["c.effort"] * run["x.rate"], rtol=1e-12, atol=1e-12)
        assert np.ptp(run.energy) > 0.1


def test_a_limited_pid_does_not_wind_up_and_a_batch_is_its_single_runs():
    """Within its limits; with tracking the overshoot is a part of that of an integral that winds up."""
    references = np.array([1.0, 3.0])
    over = []
    for tracking in (None, 1e9):
        m = slider()
        m.controller("pid", "x", cd.PID(KP, KI, KD, limits=(-1.0, 0.8), tracking=tracking))
        model = m.build()
        runs = cd.simulate(model.at({"pid.reference": references}), 12.0, samples=121)
        effort = runs["pid.effort"]
        assert effort.max() == pytest.approx(0.8, abs=1e-12) and effort.min() >= -1.0 - 1e-12
        over.append(runs["x.coordinate"].max(axis=1) / references - 1)
    assert (over[0][1] < over[1][1] / 2) and over[1][1] > 0.2
    one = cd.simulate(model.at({"pid.reference": 3.0}), 12.0, samples=121)
    assert (one.q == runs.q[1]).all()


@pytest.mark.parametrize("lag", [0, 2])
@pytest.mark.parametrize("python", [False, True])
def test_a_sampled_loop_is_the_discrete_one(lag, python):
    """`x+ = A x + B u` with efforts held over each interval, and given late by some of them."""
    T, K = 0.05, np.array([8.0, 5.0])
    m = slider(1.0)
    if python:
        law = lambda t, q, v, p: -K[0] * q - K[1] * v
        m.controller("c", "x", law, every=T, delay=lag * T, python=True)
    else:
        m.controller("c", "x", cd.StateFeedback([K]), every=T, delay=lag * T)
    run = cd.simulate(m.build(), 1.0, samples=21)
    A, B = np.array([[1, T], [0, 1]]), np.array([T * T / 2, T]) / MASS
    x, efforts, states = np.array([1.0, 0.0]), [0.0] * lag, []
    for k in range(21):
        states.append(x)
        efforts.append(-K @ x)
        x = A @ x + B * efforts[k]
    assert np.allclose(np.hstack([run.q, run.v]), states, rtol=0, atol=1e-12)


def test_a_sampled_pid_and_one_of_another_rate():
    """Difference equations of two controllers at two rates, on two masses that do not touch."""
    m = slider(1.0)
    m.body("other", mass=MASS)
    m.joint("y", cd.Prismatic(axis=(0, 1, 0)), m.ground, "other", start=1.0)
    m.controller("slow", "x", cd.PID(KP, KI, KD), every=0.1)
    m.controller("fast", "y", cd.PID(KP, KI, KD), every=0.05)
    run = cd.simulate(m.build(), 1.0, samples=11)
    for joint, T in (("x", 0.1), ("y", 0.05)):
        x, integral, before, found = np.array([1.0, 0.0]), 0.0, 0.0, []
        for _ in range(round(1 / T) + 1):
            found.append(x[0])
            e = -x[0]
            u = KP * e + integral + KD * (e - before) / T
            integral, before = integral + T * KI * e, e
            x = np.array([[1, T], [0, 1]]) @ x + np.array([T * T / 2, T]) / MASS * u
        assert np.allclose(run[f"{joint}.coordinate"], found[:: round(0.1 / T)], rtol=0, atol=1e-11)


def test_a_regulator_of_a_linear_model_in_one_line():
    """The closed loop has the eigenvalues of `A - B K`, and rights the pole from 0.3 rad; a motor has its current."""
    plain = mechanisms.cart_pole().build()
    linear = cd.linearise(plain, plain.state(hinge=0.0), inputs=["tau.rail"])
    K = linear.B.T @ linalg.solve_continuous_are(linear.A, linear.B, np.diag([1, 10, 1, 1.0]), np.eye(1))
    m = mechanisms.cart_pole()
    m.controller("lqr", "rail", cd.StateFeedback(K, linear))
    model = m.build()
    closed = cd.linearise(model, model.state(hinge=0.0)).eigenvalues
    assert np.allclose(np.sort_complex(closed), np.sort_complex(np.linalg.eigvals(linear.A - linear.B @ K)), rtol=1e-9)
    run = cd.simulate(model, 10.0, {"hinge": 0.3})
    assert np.abs(run.q[-1]).max() < 5e-3
    m = slider()
    m.controller("motor", "x", cd.Motor(constant=0.5, resistance=2.0, inductance=0.1, gear=3.0))
    run = cd.simulate(m.build().at({"motor.voltage": 6.0}), 2.0, samples=21)
    k = 0.5 * 3.0
    A = np.array([[0, k / MASS], [-k / 0.1, -2.0 / 0.1]])
    end = [np.linalg.solve(A, (linalg.expm(A * t) - np.eye(2)) @ [0, 6.0 / 0.1]) for t in run.time]
    assert np.allclose(np.stack([run["x.rate"], run["motor.current"]], axis=-1), end, rtol=0, atol=1e-6)


def test_filters_and_delays():
    """An RC filter of a step, one of second order with a zero, and a sine that comes late."""
    m = slider()
    m.filter("rc", lambda s: 1.0 + 0 * s.t, [1], [0.5, 1])
    m.filter("second", lambda s: 1.0, [2, 3], [2, 1, 4])
    m.delay("late", lambda s: ca.sin(2 * s.t), 0.3, order=4)
    run = cd.simulate(m.build(), 10.0, samples=101)
    assert np.abs(run["rc"] - (1 - np.exp(-run.time / 0.5))).max() < 1e-7
    assert np.abs(run["second"] - signal.step(([2, 3], [2, 1, 4]), T=run.time)[1]).max() < 1e-6
    assert np.abs(run["late"] - np.sin(2 * (run.time - 0.3)))[20:].max() < 1e-4
    for more in ({"numerator": [1, 1], "denominator": [1, 1]}, {"numerator": [1], "denominator": [0, 1]}):
        with pytest.raises(cd.ModelError, match="filter 'bad': the degree"):
            m.filter("bad", lambda s: 1.0, **more)
    with pytest.raises(cd.ModelError, match="delay 'bad': delay must be above 0"):
        m.delay("bad", lambda s: 1.0, 0.0)


def test_all_formulations_have_the_same_controller():
    """A law with a state that sees points, rates, a cut joint and time, on two joints and a body of a loop."""
    m = mechanisms.four_bar()
    gain = m.variable("gain", 3.0)

    def law(s):
        tip = s.position("coupler", (0.1, 0, 0))
        first = -s[gain] * tip[0] + s["x"] + ca.sin(s.t) * s.angular_velocity("crank")[1]
        wrench = ca.vertcat(0, s.coordinate("C"), 0, s.rotation("rocker").T @ s.velocity("rocker"))
        return {"A": first, "B": s.q[0] * s.rate("D"), "rocker": wrench}, {"x": s.rate("A") - s["x"]}

    m.controller("c", ["A", "B"], law, bodies="rocker", states={"x": 0.2})
    model = m.build()
    start = model.state(A=0.4, v={"A": 1.0})
    batch = model.at({"gain": [3.0, 5.0], "c.x": [0.2, 0.7]})
    want = cd.forward_dynamics(batch, start.q, start.v, t=0.7)
    assert np.abs(want[0] - want[1]).max() > 0.1
    for formulation in ("newton_euler", "absolute", "relative", "points"):
        found = cd.forward_dynamics(batch, start.q, start.v, t=0.7, formulation=formulation)
        assert np.allclose(found, want, rtol=1e-9), formulation
    run = cd.simulate(model, 0.2, start, samples=3, method="gear")
    assert run.statistics["energy_error"] < 1e-5 and np.ptp(run.energy) > 0.01


def test_controllers_in_files(tmp_path):
    """Ready-made laws by their numbers, laws of the user by expressions; what plain Python does is refused."""
    m = slider()
    for body in ("y", "z"):
        m.body(body, mass=1.0)
        m.joint(body, cd.Prismatic(axis=(0, 1, 0)), m.ground, body)
    m.controller("pid", "x", cd.PID(KP, KI, KD, limits=(-1, 4)), inputs={"reference": 1.0}, every=0.05, delay=0.1)
    m.controller("fb", ["y", "z"], cd.StateFeedback([[1, 2, 3, 4], [4, 3, 2, 1.0]], at=[1, 2, 0, 0]))
    m.controller("tf", "y", cd.StateSpace.of_transfer([1, 2], [1, 3, 2]), inputs={"reference": 2.0})
    m.controller("motor", "z", cd.Motor(0.5, 2.0, 0.1), inputs={"voltage": 1.0})
    law = lambda s: (
        {"x": s["h"] - s.position("y")[1] * s["x"] + ca.sin(s.t), "z": [0, 0, 0, *s.position("y").elements()]},
        {"x": s.rate("z") - s["x"]},
    )
    m.controller("own", "x", law, bodies="z", states={"x": 0.3}, inputs={"h": 1.0})
    model = m.build().at({"own.h": 1.5})
    cd.save(model, tmp_path / "m.yaml")
    again = cd.load(tmp_path / "m.yaml")
    runs = [cd.simulate(each, 0.5, samples=6) for each in (model, again)]
    assert np.array_equal(runs[0].q, runs[1].q) and np.abs(runs[0].q[-1]).min() > 1e-3
    sent = pickle.loads(pickle.dumps(model))
    assert np.array_equal(cd.simulate(sent, 0.5, samples=6).q, runs[0].q)
    m.controller("python", "x", lambda t, q, v, p: 0.0, every=0.1, python=True)
    with pytest.raises(cd.ModelError, match="controller 'python': its law is plain Python"):
        cd.save(m, tmp_path / "n.yaml")
    text = (tmp_path / "m.yaml").read_text().replace("coordinate: z", "coordinate: k").replace("{rate: z}", "{rate: k}")
    (tmp_path / "bad.yaml").write_text(text)
    with pytest.raises(cd.FileError, match=r"controller 'own'.*there is no joint 'k'"):
        cd.load(tmp_path / "bad.yaml")


class Remembers:
    """A PID as it is written for a loop in Python."""

    total, last, count, seen = 0.0, 0.0, 0, []

    def integral(self, s):
        """An integral that would stay at its first value."""
        self.total += 0.01 * s.coordinate("x")
        return -self.total

    def listed(self, s):
        """A list that grows."""
        seen = self.seen
        seen.append(s.coordinate("x"))
        return seen[-1] * 0 - 1.0

    def every_tenth(self, s):
        """The same in the first two runs."""
        self.count += 1
        return -s.coordinate("x") if self.count % 10 == 0 else 0.0

    def as_drive(self, t, q, v):
        """The same as a drive."""
        self.count += 1
        return -q if self.count % 10 == 0 else 0.0


def test_state_in_python_is_refused():
    """In attributes, lists and variables of the function around it; also where two runs agree, and without source."""
    keeper, last, rng = Remembers(), 0.0, np.random.default_rng(1)

    def nonlocal_state(s):
        nonlocal last
        d, last = s.coordinate("x") - last, s.coordinate("x")
        return -d

    names: dict = {"kept": []}
    exec("def hidden(s):\n    kept.append(s.coordinate('x'))\n    return kept[0]", names)
    for law in (keeper.integral, keeper.every_tenth, nonlocal_state, names["hidden"], lambda s: rng.random()):
        m = slider()
        m.controller("c", "x", law)
        with pytest.raises(cd.ModelError, match=r"controller 'c': .*states="):
            m.build()
    m = slider()
    m.drive("e", "x", keeper.as_drive)
    with pytest.raises(cd.ModelError, match=r"drive 'e': its function changes 'self.count'.*states="):
        m.build()


@pytest.mark.parametrize(
    ("law", "more", "message"),
    [
        (lambda s: [1.0, 2.0], {}, r"controller 'c': efforts must be 1 number, got 2"),
        (lambda s: s.coordinate("y"), {}, r"controller 'c': joint 'y' is not in model"),
        (lambda s: s.position("tip")[0], {}, r"controller 'c': body or frame 'tip'"),
        (lambda s: s["total"], {"states": {"integral": 0.0}}, r"controller 'c': 'total' is not a state"),
        (lambda s: 0.0, {"states": {"integral": 0.0}}, r"controller 'c': its law returns no rate of state 'integral'"),
        (lambda s: (0.0, {"i": 0.0}), {}, r"controller 'c': its law returns a rate of 'i', which is no state"),
        (lambda s: {"z": 1.0}, {}, r"controller 'c': it does not act on 'z'"),
        (lambda s: s.reaction("x")[0], {}, r"controller 'c': its effort on joint 'x'.* algebraic loop"),
        (cd.PID(-1.0), {}, r"controller 'c': kp must not be negative"),
        (cd.PID(1.0, limits=(1.0, -1.0)), {}, r"controller 'c': limits must be"),
        (cd.StateFeedback([[1.0]]), {}, r"controller 'c': K must be \(1, 2\)"),
        (cd.Motor(1.0, 0.0), {}, r"controller 'c': resistance must be above 0"),
        (lambda s: 0.0, {"every": -1.0}, r"controller 'c': every must be above 0 s"),
        (lambda s: 0.0, {"every": 0.1, "delay": 0.05}, r"controller 'c': delay must be a multiple"),
        (lambda s: 0.0, {"python": True}, r"controller 'c': a law in plain Python"),
        (lambda s: float("inf"), {}, r"controller 'c'"),
        (3.0, {}, r"controller 'c': law must be a function"),
    ],
)
def test_what_is_refused(law, more, message):
    """One sentence with the controller's name."""
    m = slider()
    with pytest.raises(cd.CardanError, match=message):
        m.controller("c", "x", law, **more)
        m.build()
