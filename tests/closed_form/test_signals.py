"""Controllers that read reactions, forces and accelerations, and one another's outputs, against closed forms."""

import pickle

import casadi as ca
import numpy as np
import pytest
from scipy import linalg

import cardan as cd
from cardan import mechanisms

pytestmark = pytest.mark.usefixtures("quick_code")
MASS, T_F, METHODS = 2.0, 0.05, ("dormand_prince", "rk4", "gear", "alpha", "bdf", "adams", "moreau")


def slider(**more) -> cd.Mechanism:
    """A mass on a line."""
    m = cd.Mechanism("slider", gravity=(0, 0, 0))
    m.body("mass", mass=MASS)
    m.joint("x", cd.Prismatic(axis=(1, 0, 0)), m.ground, "mass", **more)
    return m


@pytest.mark.parametrize("method", METHODS)
def test_a_filtered_reaction_is_the_filter_of_the_reaction(method):
    """A pendulum's bearing force through a filter: by the state and by its closed form along the run; energy counts.

    `run["grip"]`, a signal, is the same reaction at every sample; an accelerometer shows it too.
    """
    m = cd.Mechanism("pendulum")
    m.body("arm", mass=MASS, com=(0.5, 0, 0), inertia=(0.1, 0.1, 0.1))
    m.joint("A", cd.Revolute(axis=(0, 1, 0)), m.ground, "arm")
    m.filter("held", lambda s: s.reaction("A", "child")[3], [1.0], [T_F, 1.0])
    m.filter("shown", lambda s: MASS * s.accelerometer("arm", (0.5, 0, 0))[0], [1.0], [T_F, 1.0])
    m.controller("brake", "A", lambda s: -0.01 * s["held"] * s.rate("A"))
    m.signal("grip", lambda s: [s.reaction("A", "child")[3], s.gyroscope("arm")[1]], unit="N")
    step = {"step": 1e-3} if method in ("rk4", "alpha", "moreau") else {}
    run = cd.simulate(m.build(), 1.0, samples=1001, method=method, **step)
    force = MASS * (-0.5 * run["A.rate"] ** 2 - 9.81 * np.sin(run["A.coordinate"]))  # inwards, in the arm's axes
    tight = 2e-2 if method == "moreau" else 1e-4
    assert np.abs(run["grip"][:, 0] - force).max() < 10 * tight
    assert np.abs(run["grip"][:, 1] - run["A.rate"]).max() < 1e-12
    decay = np.exp(-(run.time[1] - run.time[0]) / T_F)
    want, slope = np.zeros(1001), np.diff(force)
    for k in range(1000):  # exact for straight lines between the samples
        want[k + 1] = decay * want[k] + (1 - decay) * force[k] + slope[k] * (1 - (1 - decay) * T_F / 1e-3)
    assert np.abs(run["held"] - want).max() < 10 * tight
    assert np.abs(run["held"] - run["shown"]).max() < 1e-6
    assert run.statistics["energy_error"] < tight and np.ptp(run.energy) > 0.1


def test_all_formulations_read_the_same():
    """Reactions, forces of constraints and accelerations in rates of a loop; explicit, gear and alpha; a batch."""
    m = mechanisms.four_bar()
    m.drive("push", "A", lambda t, q, v: ca.sin(5 * t))
    tip = (0.1, 0, 0)
    m.filter("in", lambda s: s.reaction("C")[3] + s.reaction("B")[5], [1.0], [T_F, 1.0])
    m.filter("out", lambda s: s.acceleration("rocker", tip)[0] + s.angular_acceleration("coupler")[1], [1.0], [T_F, 1])
    m.controller("fb", "A", lambda s: 1e-3 * s["in"] - s["gain"] * s.rate("A"), inputs={"gain": 0.1})
    model = m.build()
    start = model.state(A=0.4, v={"A": 1.0})
    batch = model.at({"fb.gain": [0.1, 0.3]})
    want = cd.simulate(batch, 0.2, start, samples=3)
    one = cd.simulate(model, 0.2, start, samples=3)
    assert (one["in"] == want["in"][0]).all() and abs(want["in"][0, -1] - want["in"][1, -1]) > 1e-6
    every = [("absolute", "dormand_prince"), ("points", "dormand_prince"), ("absolute", "gear"), ("relative", "alpha")]
    for formulation, method in every:
        step = {"step": 5e-4} if method == "alpha" else {}
        run = cd.simulate(model, 0.2, start, samples=3, formulation=formulation, method=method, **step)
        tight = {"dormand_prince": 1e-8, "gear": 1e-5, "alpha": 1e-3}[method]
        for name in ("in", "out"):
            size = np.abs(want[name]).max()
            assert np.abs(run[name] - want[name][0]).max() < tight * size, (formulation, method, name)
    linear, h = cd.linearise(model, start, coordinates=["A"]), 1e-6
    slope = []
    for x in (0.4 + h, 0.4 - h):
        at = model.state(A=x, v={"A": 1.0})
        wrench = dict(zip(model.joint_names, cd.reactions(model, at.q, at.v), strict=True))
        slope.append(wrench["C"][3] + wrench["B"][5])
    k = linear.states.index("in")
    assert linear.A[k, linear.states.index("q.A")] == pytest.approx((slope[0] - slope[1]) / (2 * h) / T_F, rel=1e-5)
    assert linear.A[k, k] == pytest.approx(-1 / T_F, rel=1e-2)


@pytest.mark.parametrize("method", ["dormand_prince", "gear"])
def test_an_event_at_a_force(method):
    """A pendulum from the horizontal whose bearing bears four times its weight: where `m r v^2 / r + m g sin` is that.

    At samples, too: a variable keeps the largest force of a mesh, and a change reads the force after it.
    """
    m = cd.Mechanism("pendulum")
    m.body("bob", mass=MASS, com=(1, 0, 0), inertia=(1e-3, 1e-9, 1e-3))
    m.joint("A", cd.Revolute(axis=(0, 1, 0)), m.ground, "bob")
    m.variable("largest", 0.0, every=0.01, update=lambda s: ca.fmax(s["largest"], -s.reaction("A", "child")[3]))
    m.variable("met", 0.0)
    bears = lambda s: -s.reaction("A", axes="child")[3] - 2 * MASS * 9.81
    event = cd.Event("bears", bears, direction=1, then=lambda s: cd.Change(parameters={"met": bears(s)}))
    run = cd.simulate(m.build(), 0.6, events=[event], samples=61, method=method)
    met = run.events[0]
    assert np.sin(met.q[0]) == pytest.approx(2 / 3, abs=1e-5)  # 3 m g sin = 2 m g
    assert run["met"][-1] == pytest.approx(0.0, abs=1e-3)
    force = 3 * MASS * 9.81 * np.sin(run["A.coordinate"])
    assert np.abs(run["largest"] - np.maximum.accumulate(force)).max() < 1e-4


def test_force_control_of_a_slider_against_a_wall():
    """A drive presses a compliant wall with a set force, which it reads: third order, in closed form."""
    k, c, ki, target = 400.0, 60.0, 8.0, 7.0
    m = slider()
    m.torsion("wall", "x", stiffness=k)
    m.friction("film", "x", viscous=c)
    m.controller("press", "x", cd.PID(ki=ki, sees=lambda s: -s.force("wall")), inputs={"reference": target})
    run = cd.simulate(m.build(), 2.0, samples=41)
    A = np.array([[0, 1, 0], [-k / MASS, -c / MASS, 1 / MASS], [-ki * k, 0, 0]])
    want = [(linalg.expm(A * t) - np.eye(3)) @ np.linalg.solve(A, [0, 0, ki * target]) for t in run.time]
    assert np.allclose(np.stack([run["x.coordinate"], run["x.rate"], run["press.integral"]], -1), want, atol=1e-6)
    assert abs(run["wall.force"][-1] + target) < 0.1


def test_a_crane_with_a_limited_rope_force():
    """A hoist lifts by a rate loop; a sampled one sees the rope force with the effort held until then.

    The law takes the effort back by what the rope has too much, so that the force of the next interval is the limit.
    """
    load, drum, limit, T = 5.0, 3.0, 60.0, 0.01
    m = cd.Mechanism("crane")
    m.body("drum", mass=drum)
    m.joint("lift", cd.Prismatic(axis=(0, 0, 1)), m.ground, "drum")
    m.body("hook", mass=load)
    m.joint("rope", cd.Rigid(), "drum", "hook")

    def law(s):
        rope, u = s.reaction("rope")[5], s["hoist.output"]
        most = u + (limit - rope) * (load + drum) / load
        return ca.fmin((load + drum) * 9.81 + 100.0 * (2.0 - s.rate("lift")), most)

    m.controller("hoist", "lift", law, every=T)
    run = cd.simulate(m.build(), 2.0, samples=201)
    rope = run.reaction("rope")[..., 5]
    assert rope[1:].max() < limit + 1e-9 and rope[5] == pytest.approx(limit, abs=1e-9)
    assert run["lift.rate"][-1] == pytest.approx(2.0, abs=1e-3)


@pytest.mark.parametrize("method", ["dormand_prince", "rk4", "gear", "alpha"])
def test_a_shear_pin_breaks_at_its_force(method):
    """A pin holds a mass that a growing force pulls; it breaks at its limit, and the mass goes on in closed form."""
    rate, limit = 20.0, 10.0
    m = slider()
    m.drive("pull", "x", lambda t, q, v: rate * t)
    m.lock("pin", "x", closed=True)
    m.filter("load", lambda s: s.force("pin"), [1.0], [0.01, 1.0])
    model = m.build().free("pin.closed")
    breaks = cd.Event("breaks", lambda s: s.force("pin") + limit, direction=-1, then=cd.release("pin"))
    more = {"step": 1e-2} if method == "rk4" else {"step": 1e-3} if method == "alpha" else {}
    run = cd.simulate(model, 1.0, events=[breaks], samples=11, method=method, **more)
    at = limit / rate
    assert run.events[0].time == pytest.approx(at, abs=1e-9)
    x = np.where(run.time > at, (rate * (run.time**3 - at**3) / 6 - rate * at**2 / 2 * (run.time - at)) / MASS, 0)
    assert np.abs(run["x.coordinate"] - x).max() < 1e-6
    late = run.time - 0.01 * (1 - np.exp(-run.time / 0.01))  # a ramp through the filter
    assert np.abs(run["load"] + rate * late)[:5].max() < (1e-2 if method in ("rk4", "alpha") else 1e-5)


def test_a_filter_of_a_stops_force_by_modes_and_by_time_stepping():
    """A mass that rests on a stop presses it with its weight; an impulse is no force, but the force of a step."""
    m = cd.Mechanism("block")
    m.body("mass", mass=MASS)
    m.joint("z", cd.Prismatic(axis=(0, 0, 1)), m.ground, "mass", start=0.0)
    m.stop("floor", "z", lower=0.0)
    m.drive("push", "z", lambda t, q, v: -3.0 * t)
    m.filter("felt", lambda s: s.force("floor"), [1.0], [T_F, 1.0])
    model, t = m.build(), np.linspace(0, 1, 11)
    want = (MASS * 9.81) * (1 - np.exp(-t / T_F)) + 3.0 * (t - T_F * (1 - np.exp(-t / T_F)))
    for more, tight in (({}, 1e-5), ({"method": "moreau", "step": 1e-3}, 0.1)):
        run = cd.simulate(model, 1.0, samples=11, **more)
        assert np.abs(run["felt"] - want).max() < tight
    heavy = cd.Event("heavy", lambda s: s.force("floor") - 20.0)
    with pytest.raises(cd.InputError, match=r"event 'heavy': the force of 'floor' .* in a step, .*filter"):
        cd.simulate(model, 1.0, method="moreau", step=1e-3, events=[heavy])


def test_a_cascade_is_the_matrix_of_its_parts():
    """Position loop, velocity loop and motor with a current: the outputs are signals, in any order of declaration."""
    kp, kv, ki, k, R, L = 3.0, 8.0, 5.0, 0.5, 2.0, 0.1
    m = slider()
    motor = cd.Motor(constant=k, resistance=R, inductance=L)
    m.controller("drive", "x", motor, inputs={"voltage": "speed.output"})
    speed = cd.PID(kv, ki, sees=lambda s: s.rate("x"))
    m.controller("speed", None, speed, inputs={"reference": "place.output"})
    m.controller("place", None, cd.PID(kp, sees=lambda s: s.coordinate("x")), inputs={"reference": 1.0})
    m.signal("error", lambda s: s["place.output"] - s.rate("x"), unit="m/s")
    run = cd.simulate(m.build(), 2.0, samples=21)
    # x, v, integral, current
    A = np.array([[0, 1, 0, 0], [0, 0, 0, k / MASS], [-ki * kp, -ki, 0, 0],
                  [-kv * kp / L, (-kv - k) / L, 1 / L, -R / L]])  # fmt: skip
    b = np.array([0, 0, ki * kp, kv * kp / L])
    want = np.array([(linalg.expm(A * t) - np.eye(4)) @ np.linalg.solve(A, b) for t in run.time])
    found = np.stack([run["x.coordinate"], run["x.rate"], run["speed.integral"], run["drive.current"]], axis=-1)
    assert np.abs(found - want).max() < 1e-6
    outer = kp * (1 - run["x.coordinate"])
    assert np.allclose(run["place.output"], outer, atol=1e-12)
    assert np.allclose(run["speed.output"], kv * (outer - run["x.rate"]) + run["speed.integral"], atol=1e-12)
    assert np.allclose(run["error"], outer - run["x.rate"], atol=1e-12)
    linear = cd.linearise(m.build(), m.build().state(x=0.0))
    assert np.allclose(np.sort_complex(linear.eigenvalues), np.sort_complex(np.linalg.eigvals(A)), rtol=1e-9)


@pytest.mark.parametrize("lag", [0, 1])
def test_sampled_loops_run_in_order_and_drive_a_continuous_motor(lag):
    """Two sampled loops of one interval, the inner declared first, hold the voltage of a motor: `x+ = F x + G u`."""
    kp, kv, k, R, T = 3.0, 8.0, 0.5, 2.0, 0.02
    m = slider()
    inner = cd.PID(kv, sees=lambda s: s.rate("x"))
    m.controller("speed", None, inner, inputs={"reference": "place.output"}, every=T)
    outer = cd.PID(kp, sees=lambda s: s.coordinate("x"))
    m.controller("place", None, outer, inputs={"reference": 1.0}, every=T, delay=lag * T)
    m.controller("drive", "x", cd.Motor(constant=k, resistance=R), inputs={"voltage": "speed.output"})
    run = cd.simulate(m.build(), 1.0, samples=51)
    A, B = np.array([[0, 1], [0, -k * k / R / MASS]]), np.array([0, k / R / MASS])
    whole = linalg.expm(np.block([[A, B[:, None]], [np.zeros((1, 3))]]) * T)
    x, found, held = np.zeros(2), [], [0.0] * lag
    for _ in range(51):
        found.append(x)
        held.append(kp * (1 - x[0]))
        x = whole[:2, :2] @ x + whole[:2, 2] * kv * (held.pop(0) - x[1])
    assert np.abs(np.hstack([run.q, run.v]) - found).max() < 1e-9


def two(first, second, **more):
    """Two signals and what reads them."""
    m = slider()
    m.signal("a", first)
    m.signal("b", second)
    m.controller("c", "x", lambda s: s["a"], **more)
    return m


REFUSED = {
    "feedthrough": (
        lambda m: m.controller("c", "x", lambda s: s.reaction("x")[1]),
        r"controller 'c': its effort on joint 'x' depends on the reaction of joint 'x' at the .*every=.*filter.*spring",
    ),
    "feedthrough by a signal": (
        lambda m: (m.signal("a", lambda s: s.acceleration("mass")[0]), m.controller("c", "x", lambda s: s["a"])),
        r"controller 'c': its effort on joint 'x' depends on the acceleration of 'mass' at the same instant",
    ),
    "a cycle of signals": (
        lambda m: (m.signal("a", lambda s: s["b"]), m.signal("b", lambda s: 2 * s["a"])),
        r"signal 'a' depends on itself at the same instant: .*a.*b.*filter",
    ),
    "a cycle of controllers": (
        lambda m: (m.controller("a", None, lambda s: s["b.output"]), m.controller("b", "x", lambda s: s["a.output"])),
        r"'a.output' depends on itself at the same instant: .*b.output",
    ),
    "no such signal": (
        lambda m: m.controller("c", "x", cd.Motor(1.0, 1.0), inputs={"voltage": "lop.output"}),
        r"controller 'c': input 'voltage': 'lop.output' is not a state or input",
    ),
    "no such input": (
        lambda m: m.controller("c", "x", cd.Motor(1.0, 1.0), inputs={"voltge": "x"}),
        r"controller 'c': its law has no state or input 'voltge' there; did you mean 'voltage'",
    ),
    "another size": (
        lambda m: m.controller("c", "x", cd.Motor(1.0, 1.0), inputs={"voltage": lambda s: [1.0, 2.0]}),
        r"controller 'c': input 'voltage' has 1 numbers, and its function gives 2",
    ),
    "no such joint": (
        lambda m: m.filter("f", lambda s: s.reaction("y")[0], [1.0], [1.0, 1.0]),
        r"variable 'f': joint 'y' is not in model",
    ),
    "no such element": (
        lambda m: m.signal("f", lambda s: s.force("spring")),
        r"signal 'f': there is no element 'spring' that has a force",
    ),
    "sees nothing": (lambda m: m.controller("c", None, cd.PID(1.0)), r"controller 'c': a PID without joints regulates"),
    "acts on joints": (lambda m: m.controller("c", None, cd.Motor(1.0, 1.0)), r"controller 'c': Motor acts on joints"),
    "a derivative": (
        lambda m: m.controller("c", "x", cd.PID(1.0, kd=1.0, sees=lambda s: s.rate("x"))),
        r"controller 'c': kd with sees= needs filter=",
    ),
    "the name of a number": (
        lambda m: (m.torsion("spring", "x", stiffness=1.0), m.signal("spring.stiffness", lambda s: s.t)),
        r"signal 'spring.stiffness': such are the names of numbers of 'spring'",
    ),
    "a taken name": (lambda m: (m.variable("a"), m.signal("a", lambda s: s.t)), r"variable 'a': the name is taken"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused(case):
    """One sentence with the names."""
    add, message = REFUSED[case]
    m = slider()
    with pytest.raises(cd.CardanError, match=message):
        add(m)
        cd.simulate(m.build(), 0.1)


def test_signals_in_files(tmp_path):
    """Signals, cascades and what reads reactions go into a file and come back; so do processes and saved runs."""
    m = slider()
    m.body("tool", mass=1.0)
    m.joint("wrist", cd.Rigid(), "mass", "tool")
    m.signal("felt", lambda s: [s.reaction("wrist", "ground")[3], s.accelerometer("tool")[0]], unit="N")
    m.signal("place", lambda s: s.coordinate("x"))
    m.filter("smooth", lambda s: s["felt"][0] + s.angular_velocity("tool")[2], [1.0], [0.05, 1.0])
    m.controller("outer", None, cd.PID(3.0, sees="place"), inputs={"reference": 1.0}, every=0.02)
    m.controller("inner", None, cd.PID(8.0, 2.0, sees=lambda s: s.rate("x")), inputs={"reference": "outer.output"})
    m.controller("drive", "x", cd.Motor(0.5, 2.0, 0.1), inputs={"voltage": "inner.output"})
    both = lambda s: [s["felt"][1], s["smooth"] + s["gain"]]
    m.controller("both", None, both, inputs={"gain": lambda s: s.rate("x")}, outputs=2)
    m.variable("seen", 0.0, every=0.1, update=lambda s: s["both.output"][1])
    model = m.build()
    cd.save(model, tmp_path / "m.yaml")
    text = (tmp_path / "m.yaml").read_text()
    assert "voltage: inner.output" in text and "sees: place" in text and "reaction: wrist" in text
    want = cd.simulate(model, 0.5, samples=6)
    run = cd.simulate(cd.load(tmp_path / "m.yaml"), 0.5, samples=6)
    for name in ("q", "felt", "both.output", "seen", "outer.output"):
        assert np.array_equal(run[name], want[name]), name
    assert np.abs(want["felt"][:, 0] - want["felt"][:, 1]).max() < 1e-9 and np.abs(want["felt"]).max() > 0.1
    m = slider()
    m.signal("place", lambda s: s.coordinate("x"))
    m.controller("outer", None, cd.PID(3.0, sees=lambda s: s["place"]), inputs={"reference": lambda s: ca.sin(s.t)})
    m.controller("inner", "x", lambda s: s["outer.output"] - s.rate("x"))
    model = m.build()
    sent = pickle.loads(pickle.dumps(model))
    assert np.array_equal(cd.simulate(sent, 0.5, samples=6).q, cd.simulate(model, 0.5, samples=6).q)
    (tmp_path / "bad.yaml").write_text(text.replace("voltage: inner.output", "voltage: iner.output"))
    with pytest.raises(cd.CardanError, match=r"controller 'drive': input 'voltage': 'iner.output' is not"):
        cd.load(tmp_path / "bad.yaml")


def test_forces_of_elements_are_those_of_the_run():
    """Of couplings, motions, constraints and springs: at samples, and through a fast filter, in two formulations."""
    m = cd.Mechanism("many")
    for k, name in enumerate("abcd"):
        m.body(name, mass=1.0 + k, com=(0.3, 0, 0), inertia=(0.1, 0.2, 0.3))
        m.joint(name, cd.Revolute(axis=(0, 1, 0)), m.ground, name, at=(0, k, 0))
    m.body("f", mass=2.0, inertia=(0.1, 0.1, 0.1))
    m.joint("f", cd.Free(), m.ground, "f", start=[0.8, 3, 0.6, 1, 0, 0, 0])
    m.couple("gear", {"a": 1.0, "b": 2.0})
    m.belt("belt", "b", "c", radius1=0.2, radius2=0.3)
    m.motion("turn", "d", lambda t: 0.5 * t**2)
    m.distance("rod", "d", "f", at1=(0.5, 0, 0), length=1.0)
    m.wrench("side", "f", (0, 0, 0, 0, 1, 0))
    m.constraint("plane", "f", lambda t, poses, twists: poses[0][1][1] - 3.0)
    m.spring("spring", m.ground, "f", stiffness=10.0, length=0.5, at1=(0, 3, 1))
    m.torsion("twist", "a", stiffness=3.0)
    names = ("gear", "belt", "turn", "rod", "plane", "spring", "twist")
    m.variable("held", np.zeros(8), every=0.1, update=lambda s: ca.vertcat(*(s.force(name) for name in names)))
    m.filter("all", lambda s: sum(ca.sum1(s.force(name)) for name in names), [1.0], [1e-4, 1.0])
    model = m.build()
    run = cd.simulate(model, 0.4, samples=5)
    forces = [run[next(full for word in ("force", "torque") if (full := f"{name}.{word}") in run)] for name in names]
    want = np.column_stack(forces)
    assert np.abs(run["held"] - want)[:-1].max() < 1e-9 and (np.abs(want[1:]).max(axis=0) > 0.5).all()
    assert np.abs(run["all"] - want.sum(axis=1))[1:].max() < 1e-2
    other = cd.simulate(model, 0.4, samples=5, formulation="absolute")
    assert np.abs(other["all"] - run["all"]).max() < 1e-9
