"""Variables with rates, sampled variables, inputs over time, and machines of states, against closed forms."""

import numpy as np
import pytest

import cardan as cd
from cardan.io.yaml.read import read_yaml

pytestmark = pytest.mark.usefixtures("quick_code")
METHODS = [("dormand_prince", None), ("rk4", 1e-2)]


def swing(**variables) -> cd.Model:
    """A mass on a spring, x = cos(2 t), with variables."""
    m = cd.Mechanism("swing", gravity=(0, 0, 0))
    m.body("mass", mass=1.0)
    m.joint("x", cd.Prismatic(axis=(1, 0, 0)), m.ground, "mass", start=1.0)
    m.torsion("spring", "x", stiffness=4.0)
    for name, options in variables.items():
        m.variable(name, **options)
    return m.build()


@pytest.mark.parametrize(("method", "step"), [*METHODS, ("gear", None), ("adams", None)])
def test_states_are_integrated_with_the_motion(method, step):
    """The integral of x is sin(2 t) / 2; a lag of first order behind the time has its closed form."""
    model = swing(
        area={"rate": lambda s: s.coordinate("x")}, lag={"value": 0.5, "rate": lambda s: 3 * (s.t - s["lag"])}
    )
    run = cd.simulate(model, 2.0, method=method, step=step, samples=21)
    t = run.time
    close = 1e-8 if (method, step) in METHODS else 2e-7
    assert np.abs(run["area"] - np.sin(2 * t) / 2).max() < close
    assert np.abs(run["lag"] - (t - 1 / 3 + 5 / 6 * np.exp(-3 * t))).max() < close
    starts = model.at({"lag": np.array([0.5, 2.0])})
    both = cd.simulate(starts, 2.0, method=method, step=step, samples=21)
    assert np.array_equal(both[0].parameters, run.parameters) and np.array_equal(both[0].q, run.q)
    assert both["lag"][1, 0] == 2.0


@pytest.mark.parametrize("formulation", ["spatial", "absolute"])
def test_alpha_integrates_states_to_second_order(formulation):
    """States that act on the motion, and are reset by events: errors go with the square of the step."""
    m = cd.Mechanism("servo")
    m.body("arm", mass=2.0, com=(0.3, 0, 0), inertia=[0.1, 0.1, 0.1])
    m.joint("A", cd.Revolute(axis=(0, 1, 0)), m.ground, "arm", start=0.7)
    m.controller(
        "servo", "A", lambda s: ([-40 * s["servo.e"] - 2 * s.rate("A")], {"e": s.coordinate("A") - 0.9}),
        states={"e": 0.3},
    )  # fmt: skip
    m.variable("area", 0.0, rate=lambda s: s.rate("A") * s["servo.e"] - 5 * s["area"])
    reset = cd.Event("reset", lambda s: s["servo.e"] - 0.25, then=lambda s: cd.Change(parameters={"area": 0.1}))
    given = {"samples": 5, "events": [reset], "formulation": formulation}
    model = m.build()
    exact = cd.simulate(model, 0.4, rtol=1e-10, atol=1e-12, **given)
    coarse, fine = (cd.simulate(model, 0.4, method="alpha", step=h, **given) for h in (4e-3, 2e-3))
    assert [e.name for e in exact.events] == [e.name for e in fine.events] == ["reset"]
    for name in ("servo.e", "area", "A.coordinate"):
        errors = [np.abs(run[name] - exact[name]).max() for run in (coarse, fine)]
        assert 0 < errors[1] < 2e-4 and 3 < errors[0] / errors[1] < 5, (name, errors)


@pytest.mark.parametrize("formulation", ["absolute", "points"])
def test_states_beside_loops_in_other_coordinates(formulation):
    """Gear's method integrates a state beside a four-bar as the explicit one does."""
    m = cd.mechanisms.four_bar()
    m.variable("area", 0.0, rate=lambda s: s.q[0])
    model = m.build()
    one = cd.simulate(model, 0.5, samples=3)
    other = cd.simulate(model, 0.5, samples=3, method="gear", formulation=formulation)
    assert np.abs(one["area"] - other["area"]).max() < 1e-7 and abs(one["area"][-1]) > 1e-3


def test_error_control_sees_the_states():
    """A state that is a thousand times faster than the motion takes shorter steps, and is right all the same."""
    fast = swing(fast={"value": 1.0, "rate": lambda s: -200.0 * s["fast"]})
    run = cd.simulate(fast, 0.1, samples=11, rtol=1e-9, atol=1e-12)
    assert np.abs(run["fast"] - np.exp(-200 * run.time)).max() < 1e-7
    assert (
        run.statistics["steps"] > 2 * cd.simulate(swing(), 0.1, samples=11, rtol=1e-9, atol=1e-12).statistics["steps"]
    )


@pytest.mark.parametrize(("method", "step"), METHODS)
def test_inputs_over_time(method, step):
    """Inputs are held, or follow straight lines; each system has its own; integrals are those of the closed form."""
    model = swing(
        held={"value": 7.0}, line={"linear": True}, area={"rate": lambda s: s["held"]},
        line_area={"rate": lambda s: s["line"]},
    )  # fmt: skip
    times, heights = np.array([0.0, 0.25, 1.0]), np.array([[1.0, -2.0, 3.0], [0.5, 0.0, 1.0]])
    given = {"held": (times, heights), "line": (times, heights)}
    both = cd.simulate(model, 1.5, method=method, step=step, samples=31, inputs=given)
    for run, h in zip((both[0], both[1]), heights, strict=True):
        step_of = np.interp(run.time, times, h)
        assert np.abs(run["line"] - step_of).max() < 1e-12
        assert np.array_equal(run["held"], h[np.searchsorted(times, run.time, side="right") - 1])
        assert run["area"][-1] == pytest.approx(0.25 * h[0] + 0.75 * h[1] + 0.5 * h[2], abs=1e-12)
        line = 0.125 * (h[0] + h[1]) + 0.375 * (h[1] + h[2]) + 0.5 * h[2]
        assert run["line_area"][-1] == pytest.approx(line, abs=1e-12)
    one = cd.simulate(model, 1.5, method=method, step=step, samples=31, inputs={k: (times, heights[1]) for k in given})
    assert np.array_equal(one.q, both[1].q) and np.array_equal(one.parameters, both[1].parameters)


def test_variables_may_have_the_names_of_modes():
    """Variables called mode, direction and closed are not those of rows with laws: a stop behaves as without them."""
    runs = []
    for names in ((), ("mode", "a.mode", "direction", "closed")):
        m = cd.Mechanism("stopped", gravity=(0, 0, 0))
        m.body("mass", mass=1.0)
        m.joint("x", cd.Prismatic(axis=(1, 0, 0)), m.ground, "mass", start=1.0)
        m.torsion("spring", "x", stiffness=4.0)
        for name in names:
            m.variable(name, 3.0)
        swings = cd.simulate(m.build(), 1.0, samples=3)
        m.stop("stop", "x", lower=0.5, restitution=0.5)
        runs.append((swings, cd.simulate(m.build(), 1.0, samples=3)))
    for one, other in zip(*runs, strict=True):
        assert np.array_equal(one.q, other.q) and (other["mode"] == 3.0).all() and (other["a.mode"] == 3.0).all()


def test_a_sampled_variable_is_a_difference_equation():
    """u' = u / 2 + x at every 0.1 s, with the x of that time, whatever the steps."""
    model = swing(u={"every": 0.1, "update": lambda s: 0.5 * s["u"] + s.coordinate("x")})
    run = cd.simulate(model, 1.0, samples=np.linspace(0, 0.95, 20))
    u, expected = 0.0, []
    for t in run.time[:20]:
        k = round(t / 0.05)
        u = 0.5 * u + np.cos(2 * t) if k % 2 == 0 else u
        expected.append(u)
    assert np.abs(run["u"][:20] - expected).max() < 1e-7


def test_a_machine_counts_events_in_its_own_states_only():
    """A shuttle goes up with speed 1 and down with speed 2; each end is met in its own state."""
    model = swing(phase={"value": 0}).free("spring.stiffness").at({"spring.stiffness": 0.0})
    machine = cd.Machine("phase", ["up", "down"])
    machine.on("up", "down", lambda s: s.coordinate("x") - 1, then=lambda s: cd.Change({"x": -2.0}))
    machine.on("down", "up", lambda s: s.coordinate("x"), then=lambda s: cd.Change({"x": 1.0}))
    run = cd.simulate(model, 4.2, [0.0], [1.0], events=machine.events, samples=43)
    assert [e.name for e in run.events] == ["up to down", "down to up"] * 2 + ["up to down"]
    assert np.allclose([e.time for e in run.events], [1.0, 1.5, 2.5, 3.0, 4.0], atol=1e-9)
    assert run["phase"][-1] == machine.number("down") == 1.0


def test_runs_with_changes_are_saved(tmp_path):
    """A file has the parameters over time and what events changed; a store is the same."""
    times, heights = [0.0, 0.3], np.array([[1.0, 2.0], [3.0, 4.0]])
    reset = cd.Event("reset", lambda s: s["area"] - 0.35, then=lambda s: cd.Change({"x": 0.0}, {"area": 0.0}))
    model = swing(held={}, area={"rate": lambda s: s["held"]})
    arguments = {"samples": 11, "events": [reset], "inputs": {"held": (times, heights)}}
    run = cd.simulate(model, 1.0, **arguments)
    run.save(tmp_path / "run.nc")
    cd.simulate(model, 1.0, store=tmp_path / "store.nc", **arguments)
    for name in ("run.nc", "store.nc"):
        again = cd.load_run(tmp_path / name)  # with the model that is in the file
        assert np.array_equal(again.parameters, run.parameters) and np.array_equal(again["held"], run["held"])
        assert [e.time for e in again.events] == [e.time for e in run.events]
        assert np.array_equal(again.events[0].v_after, run.events[0].v_after)
        assert np.array_equal(np.array(again.at(0.31)), np.array(run.at(0.31)))
        assert np.array_equal(again.energy, run.energy)


def test_variables_in_files(tmp_path):
    """Rates and updates are written as expressions of what they read; the run of the file is the same to the bit."""
    m = cd.Mechanism("swing 2")
    m.body("a 1", mass=2.0)
    m.joint("a1", cd.Revolute(axis=(0, 1, 0)), m.ground, "a 1", start=0.4)
    m.body("b", mass=1.0, com=(0.1, 0, -0.2), inertia=[0.1, 0.1, 0.1])
    m.joint("ball", cd.Spherical(), "a 1", "b", at=(0.3, 0, -0.4))
    m.torsion("k", "a1", stiffness=3.0)
    m.variable("phase", 2)
    m.variable("x", 0.5, unit="m", rate=lambda s: s["y"][1] * s.velocity("b", (0, 0, 0.1))[2] - s["k.stiffness"])
    m.variable("y", [1.0, 2.0], rate=lambda s: [s["x"] * s.q[0], s.rate("ball")[2] + s["phase"]])
    m.variable("seen", 1.0, every=0.1, update=lambda s: s.coordinate("a1") + s.position("b")[2] + s["seen"] * s.t)
    m.variable("line", 0.25, linear=True, unit="N")
    model = m.build().free("k.stiffness")
    cd.save(model, tmp_path / "swing.yaml")
    again, inputs = cd.load(tmp_path / "swing.yaml"), {"line": ([0.0, 0.4], [1.0, 2.0])}
    assert again.parameters.names == model.parameters.names
    runs = [cd.simulate(each, 0.4, v0=[1, 2, 0, 1], samples=5, inputs=inputs) for each in (model, again)]
    assert np.array_equal(runs[0].parameters, runs[1].parameters) and np.array_equal(runs[0].q, runs[1].q)
    assert np.ptp(runs[0].parameters, axis=0)[:-1].tolist().count(0.0) == 2  # phase, and the slope of the line
    text = (tmp_path / "swing.yaml").read_text()
    for old, new, words in (
        ("{coordinate: a1}", "{coordinate: a2}", "no joint 'a2'"), ("{position: b}", "{position: c}", "frame 'c'"),
        ("{number: phase}", "{number: phases}", "'phases'"), ("{rate: ball}", "{rate: ball, number: x}", "one of"),
        ("value: [1, 2]", "value: [1, 2, 3]", "3, got 2"), ("value: 0.25", "value: 0.25 s", "time"),
        ("every: 0.1", "every: 0", "every must be above 0"), ("seen*t", "seen*u", "'u' is neither"),
    ):  # fmt: skip
        assert text.count(old) == 1 or old == "{coordinate: a1}", old
        with pytest.raises(cd.FileError, match=words):
            read_yaml(text.replace(old, new)).build()


def test_bad_variables_and_inputs_are_refused():
    """Each with the name of the variable, in one sentence."""
    model = swing(u={}, area={"rate": lambda s: s["u"]})
    for inputs, words in (
        ({"v": ([0.0], [0.0])}, "input 'v' is not"), ({"u": [1.0, 2.0, 3.0]}, "input 'u': give"),
        ({"u": ([1.0, 0.0], [0.0, 0.0])}, "'u'.*increasing"), ({"u": ([0.0, 1.0], [0.0])}, "'u'.*shape"),
        ({"u": ([0.0], [np.nan])}, "'u' must be finite"), ({"area": ([0.0], [0.0])}, "'area'.*rate of its own"),
    ):  # fmt: skip
        with pytest.raises(cd.CardanError, match=words):
            cd.simulate(model, 0.1, inputs=inputs)
    for rate, words in (
        (lambda s: s["missing"], "'x'.*'missing' is not a variable"), (lambda s: [1.0, 2.0], "'x'.*1 numbers, got 2"),
        (lambda s: np.random.default_rng().random() * s.t, "'x'.*another one each time"),
        (lambda s: "no", "'x'.*expression"),
    ):  # fmt: skip
        with pytest.raises(cd.CardanError, match=words):
            cd.simulate(swing(x={"rate": rate}), 0.1)
    with pytest.raises(cd.ModelError, match=r"'spring\.mode': such are the names of numbers of 'spring'"):
        swing(**{"spring.mode": {}})
    with pytest.raises(cd.ModelError, match=r"'u'.*every"):
        swing(u={"every": 0.0, "update": lambda s: s.t})
    with pytest.raises(cd.InputError, match=r"'e'.*active depends"):
        cd.simulate(model, 0.1, events=[cd.Event("e", lambda s: s.t - 0.05, active=lambda s: s.t > 0)])


def test_inputs_of_a_sweep():
    """Every member of a study gets the inputs of its run: it is the run with its own numbers."""
    model = swing(push={"value": 0.0}, area={"rate": lambda s: s["push"] * s.coordinate("x")}).free("spring.stiffness")
    given = {"samples": 5, "method": "rk4", "step": 0.02, "inputs": {"push": ([0.0, 0.3], [1.0, -2.0])}}
    stiffness = [4.0, 9.0]
    study = cd.sweep(model, {"spring.stiffness": stiffness}, run=cd.Run(0.6, **given), measure={"area": "area"})
    runs = cd.simulate(model.at({"spring.stiffness": stiffness}), 0.6, **given)
    assert np.array_equal(study.dataset["area"], runs["area"])
    w = np.sqrt(stiffness)  # of the closed form
    assert np.allclose(runs["area"][:, -1], (3 * np.sin(0.3 * w) - 2 * np.sin(0.6 * w)) / w, atol=1e-6)
