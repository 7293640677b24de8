"""Pages that simulate, in a real browser: the states of the kernels, sliders, loops that close or do not, a pull."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np
import pytest

import cardan as cd
from cardan import mechanisms
from cardan.machines.ufunc.kernel import compile_program
from cardan.results.page import program
from cardan.results.page.program import CONTROL, MOST_RATES, Simulated, page_program, simulated
from cardan.structure import kernels

from ..machines.javascript import open_browser

pytestmark = pytest.mark.usefixtures("quick_code")
SLIDERS = ["coupler.mass", "B.at"]


def linkage() -> cd.Model:
    return mechanisms.four_bar().build()


def top() -> cd.Model:
    """A body on a ball joint, with a spring: quaternions, and no loops."""
    m = cd.Mechanism("top", gravity=(0, 0, -9.81))
    m.body("top", mass=2.0, com=(0, 0, 0.3), inertia=(0.2, 0.2, 0.05))
    m.joint("ball", cd.Spherical(), m.ground, "top")
    m.spring("s", m.ground, "top", stiffness=40.0, length=0.2, at1=(1, 0, 0.5), at2=(0, 0, 0.6), damping=0.5)
    return m.build()


@pytest.fixture(scope="module")
def tab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The page of the linkage, opened from its file."""
    path = tmp_path_factory.mktemp("live") / "four_bar.html"
    cd.page(linkage(), path, sliders=SLIDERS)
    with open_browser() as browser:
        tab = browser.new_page(viewport={"width": 780, "height": 480})
        problems: list[str] = []
        tab.on("pageerror", lambda error: problems.append(str(error)))
        tab.on("request", lambda asked: asked.url.startswith("file:") or problems.append(asked.url))
        tab.goto(path.as_uri())
        until(tab, "document.body.dataset.simulates === 'yes'")
        tab.evaluate("window.simulator = cardan.simulation.simulator")
        tab.evaluate("for (const id of ['shadows', 'floor']) document.getElementById(id).checked = false")
        yield tab
        assert not problems


def until(tab: Any, condition: str) -> None:
    """Wait until an expression is true; the page's policy forbids what Playwright would wait with."""
    for _ in range(600):
        if tab.evaluate(condition):
            return
        tab.wait_for_timeout(20)
    raise AssertionError(condition)


LISTS = "(k, x) => (x instanceof Float64Array ? Array.from(x) : x)"


def plain(tab: Any, script: str, value: Any = None) -> Any:
    """What a script gives, arrays as lists."""
    return tab.evaluate(f"async (value) => JSON.parse(JSON.stringify(await ({script})(value), {LISTS}))", value)


class ByKernels:
    """The host's kernels of the programs that a page has, called as the page calls them."""

    def __init__(self, found: Simulated, p: np.ndarray, q: np.ndarray, v: np.ndarray) -> None:
        self.kernels = {name: compile_program(program) for name, program in found.programs.items()}
        self.p, self.tau = p, found.start.tau
        self.state = {port.name: np.zeros(port.shape) for port in self.kernels["march"].program.outputs}
        self.state |= {"q": q, "v": v, "h": np.asarray(1e-6)}

    def _call(self, name: str, **given: Any) -> dict[str, Any]:
        program = self.kernels[name].program
        x = self.state | {"tau": self.tau, "p": self.p} | CONTROL | given
        found = self.kernels[name](*(np.asarray(x[port.name], float) for port in program.inputs))
        return dict(zip((port.name for port in program.outputs), found, strict=True))

    def advance(self, dt: float) -> dict[str, Any]:
        end = self.state["t"] + dt
        self.state |= self._call("evaluate")
        while self.state["t"] < end:
            self.state |= self._call("march", end=end, limit=64.0)
        return self.state


def test_states_are_those_of_the_kernels(tab: Any) -> None:
    """Of a linkage that is set in motion by its sliders, and of a tree with quaternions."""
    model = linkage()
    q, v = cd.assemble(model, hold=["A"])
    v[0] = 3.0
    q, v = cd.assemble(model, q, v, hold=["A"])
    values = [model.bodies[1].mass, model.joints[1].at.position[0]]
    script = """(given) => {
      const message = simulator.set(...given), start = simulator.state(), before = simulator.quantities();
      let last;
      for (let k = 0; k < 3; k++) last = simulator.advance(0.2);
      return { message, start, before, last, after: simulator.quantities(), poses: simulator.poses() };
    }"""
    found = plain(tab, script, [values, [q[0]], [3.0]])
    assert found["message"] == "" and found["last"]["ok"]
    np.testing.assert_allclose(found["start"]["q"], q, atol=1e-12)
    np.testing.assert_allclose(found["start"]["v"], v, atol=1e-11)
    sim = simulated(model, SLIDERS)
    host = ByKernels(sim, sim.p, np.array(found["start"]["q"]), np.array(found["start"]["v"]))
    for _ in range(3):
        state = host.advance(0.2)
    for name in ("q", "v"):
        scale = np.abs(state[name]).max()
        np.testing.assert_allclose(found["last"][name], state[name], rtol=0, atol=1e-12 * scale, err_msg=name)
    poses, energy = np.reshape(found["poses"], (-1, 7)), cd.kinetic_energy(model, q, v) + cd.potential_energy(model, q)
    np.testing.assert_allclose(poses[:, :3], cd.body_poses(model, state["q"])[:, :3, 3], atol=1e-12)
    assert found["before"]["energy"] == pytest.approx(energy, rel=1e-12)
    assert found["after"]["energy"] == pytest.approx(energy, rel=1e-5) and found["after"]["gap"] < 1e-14

    script = """async (about) => {
      const other = await cardan.simulation.makeSimulator(about);
      const last = other.advance(0.7), { damping, stiffness } = other.springFor(0, [0, 0, 0.6], 1);
      return { last, poses: other.poses(), energy: other.quantities().energy, weight: damping ** 2 / stiffness / 4 };
    }"""
    model = top()
    q, v = np.array([1.0, 0, 0, 0]), np.array([0.5, 0.0, 8.0])
    start = cd.simulate(model, 0.7, q, v, rtol=1e-10, atol=1e-12)
    found = plain(tab, script, page_program(start).description)
    np.testing.assert_allclose(found["last"]["q"], start.q[-1], atol=1e-5)
    np.testing.assert_allclose(np.abs(found["poses"][3:]), np.abs(start.q[-1]), atol=1e-5)
    assert found["energy"] == pytest.approx(start.energy[-1], rel=1e-5)
    # the mass of a point l from the ball in the hand: three directions, of which two turn the body, I/l^2 each
    assert found["weight"] == pytest.approx(3 / (2 * 0.6**2 / (0.2 + 2.0 * 0.3**2)), rel=1e-9)


def test_sliders_close_loops_or_say_that_they_cannot(tab: Any) -> None:
    model = linkage().free(*SLIDERS)
    length, mass = 0.46, 3.0
    changed = model.at({"B.at": (length, 0, 0), "coupler.mass": mass})
    guess = model.start()
    guess[0] = 0.7
    q, _ = cd.assemble(changed, guess, hold=["A"])
    script = """([mass, length, angle]) => {
      const said = [simulator.set([mass, length], [angle], [0])], first = simulator.state();
      simulator.advance(0.3);
      said.push(simulator.change([mass, 0.4]));
      const pins = [simulator.placeOf(0, [0.4, 0, 0]), simulator.placeOf(1, [0, 0, 0])];
      const changed = [simulator.state().t, ...pins, simulator.quantities().gap];
      said.push(simulator.set([mass, 9], [angle], [0]));
      const kept = simulator.state(), { gap } = simulator.quantities();
      return { said, first, changed, kept, gap };
    }"""
    found = plain(tab, script, [mass, length, 0.7])
    assert found["said"][:2] == ["", ""] and "cannot be closed" in found["said"][2]
    np.testing.assert_allclose(found["first"]["q"], q, atol=1e-11)
    np.testing.assert_allclose(found["kept"]["q"], q, atol=1e-11)  # where they last could be
    assert found["gap"] < 1e-12
    np.testing.assert_array_equal(simulated(changed).p[:4], [mass, length, 0, 0])  # it begins with the model's values
    t, end, begin, gap = found["changed"]  # while it moves: the pin is where the shorter crank now has it
    assert t == 0.3 and gap < 1e-12
    np.testing.assert_allclose(end, begin, atol=1e-12)


def test_a_pull_is_a_spring(tab: Any) -> None:
    m = mechanisms.four_bar()
    k, target, point = 60.0, (0.8, -0.3, 0.0), (0.5, 0.0, 0.0)
    m.spring("hand", m.ground, "coupler", stiffness=k, length=0.0, at1=target, at2=point)
    model = m.build()
    q, v = cd.assemble(model)
    run = cd.simulate(model, 0.5, q, v, rtol=1e-10, atol=1e-12)
    script = """([mass, length, angle, pull]) => {
      simulator.set([mass, length], [angle], [0]);
      const last = simulator.advance(0.5, pull), x = simulator.placeOf(1, pull.point);
      const wrong = simulator.advance(0.1, { ...pull, stiffness: 1e305 });
      return { last, x, wrong };
    }"""
    pull = {"body": 1, "point": point, "target": target, "stiffness": k, "damping": 0.0}
    mass, length = linkage().bodies[1].mass, linkage().joints[1].at.position[0]
    found = plain(tab, script, [mass, length, q[0], pull])
    np.testing.assert_allclose(found["last"]["q"], run.q[-1], atol=1e-5)
    np.testing.assert_allclose(found["x"], (run.poses[-1, 1] @ [*point, 1.0])[:3], atol=1e-5)
    assert not found["wrong"]["ok"] and "Stopped" in found["wrong"]["message"]


def test_hands_on(tab: Any) -> None:
    """Buttons, a slider and the pointer, as people use them."""
    tab.evaluate("cardan.simulation.restarted()")
    tab.click("#simulating")
    until(tab, "simulator.state().t > 0.15")
    tab.click("#simulating")
    assert tab.inner_text("#simulating") == "Simulate"
    stopped = tab.evaluate("simulator.state().t")
    assert tab.evaluate("document.querySelector('#simulate .readings').textContent").startswith(f"{stopped:.3f} s")
    until(tab, "document.getElementById('time').value.startsWith('simulated ')")
    assert tab.evaluate("getComputedStyle(document.getElementById('line')).opacity") == "0.45"
    tab.evaluate("cardan.simulation.starts[0].range.value = 0.5")
    tab.evaluate("cardan.simulation.starts[0].range.dispatchEvent(new Event('input'))")
    assert tab.evaluate("simulator.state().t") == 0.0 < stopped
    assert tab.evaluate("Math.abs(simulator.state().q[0] - 0.5)") < 1e-12
    place = """(() => {
      const at = cardan.canvas.getBoundingClientRect();
      const [x, y] = cardan.camera.screen(simulator.placeOf(1, [0.5, 0, 0]));
      return [x + at.left, y + at.top];
    })()"""
    x, y = tab.evaluate(place)
    tab.mouse.move(x, y)
    tab.mouse.down()
    tab.mouse.move(x + 60, y + 80, steps=3)
    assert tab.evaluate("cardan.simulation.state.pull.body") == 1
    until(tab, "simulator.state().t > 0.3")
    tab.mouse.up()
    moved = tab.evaluate(place)
    assert np.hypot(moved[0] - x, moved[1] - y) > 20
    assert tab.evaluate("cardan.simulation.state.pull") is None


# Stops, friction, contacts, locks; states and samples.


def clapper() -> cd.Model:
    """A four-bar linkage whose crank has a stop, friction by the reaction of its pin, and a regulator with a state."""
    m = mechanisms.four_bar()
    m.stop("buffer", "A", upper=2.0, restitution=0.4)
    m.friction("pin", "A", coefficient=0.2, radius=0.05, stick=True)
    m.controller("servo", "A", cd.PID(kp=40.0, ki=30.0, kd=4.0, limits=30.0))
    return m.build()


def bowling() -> cd.Model:
    """A ball that falls, bounces, slips in two directions, and is driven by a sampled law with a delay."""
    r, m = 0.1, cd.Mechanism("bowling")
    m.body("ball", mass=3.0, inertia=(0.4 * 3.0 * r**2,) * 3)
    m.joint("free", cd.Free(), m.ground, "ball", start=(0, 0, 2 * r, 1, 0, 0, 0))

    def sliding(t: Any, poses: Any, twists: Any) -> Any:
        R, w, v = poses[0].rotation, twists[0][:3], twists[0][3:]
        return (R @ v + ca.cross(R @ w, ca.vertcat(0, 0, -r)))[:2]

    m.contact("lane", ["ball"], gap=lambda t, poses, twists: poses[0].position[2] - r, tangent=sliding, friction=0.3,
              restitution=0.3)  # fmt: skip
    m.controller("push", [], lambda s: {"ball": [0, 0, 0, -s.velocity("ball")[0], 0, 0]}, bodies=["ball"], every=0.05,
                 delay=0.05)  # fmt: skip
    return m.build()


def test_steps_with_laws_are_those_of_the_kernels(tab: Any) -> None:
    """Of a linkage with a stop, friction by a reaction and a state; of a ball with impacts, slipping and samples."""
    script = """async ([about, times]) => {
      const other = await cardan.simulation.makeSimulator(about);
      const now = () => ({ ...other.state(), laws: other.laws().map(({ does }) => does) });
      return times.map((dt) => ({ ...other.advance(dt), ...now() }));
    }"""
    for model, q, v, given, known, words in (  # of the forces: at rest in the buffer, what it and the pin give together
        (clapper(), *cd.assemble(clapper()), {"servo.reference": 2.5}, [[-1, 1]], ["closed", "sticks"]),
        (bowling(), bowling().start(), [0.0, 3.0, 0.0, 1.0, 0.5, 0.0], {}, np.eye(3), ["sticks"]),
    ):
        run = cd.simulate(model.at(given), 0.61, q, v, method="moreau", step=5e-4, samples=[0.0, 0.2, 0.59, 0.6, 0.61])
        found = plain(tab, script, [page_program(run).description, [0.2, 0.39, 0.01]])
        for k, at in ((0, 1), (1, 2), (2, 3)):
            assert found[k]["ok"], found[k]["message"]
            for name, now in (("q", run.q), ("v", run.v)):
                scale = max(np.abs(now).max(), 1.0)
                np.testing.assert_allclose(found[k][name], now[at], rtol=0, atol=1e-12 * scale, err_msg=name)
            np.testing.assert_allclose(found[k]["p"][: model.parameters.size], run.parameters[at], rtol=0, atol=1e-11)
        forces = np.concatenate([np.atleast_1d(run[f"{law.name}.force"][2]) for law in model.laws])
        np.testing.assert_allclose(
            np.dot(known, found[1]["forces"]), np.dot(known, forces), rtol=1e-3, atol=0.01
        )  # a step apart
        assert found[1]["laws"] == words


def bench() -> cd.Trajectory:
    """A block that sticks and slides before a stop, with a lock, and a puck that falls on ice."""
    m = cd.Mechanism("bench")
    m.body("block", mass=1.0)
    m.joint("x", cd.Prismatic(axis=(1, 0, 0)), m.ground, "block")
    m.drive("spring", "x", lambda t, q, v: 4.0 * (0.5 + 0.3 * t - q[0]))
    m.friction("rail", "x", coulomb=1.2, static=2.2, stick=True)
    m.stop("end", "x", lower=-0.2)
    m.lock("brake", "x")
    m.body("puck", mass=2.0, inertia=(1, 1, 1))
    m.joint("float", cd.Free(), m.ground, "puck", start=(1, 1, 0.3, 1, 0, 0, 0))
    m.contact("ice", ["puck"], gap=lambda t, poses, twists: poses[0].position[2] - 0.2)
    return cd.simulate(m.build(), 2.0, samples=401)


def test_a_page_shows_and_moves_stops_and_friction(tab: Any, tmp_path: Path) -> None:
    """Events by what they do, intervals of sticking, arrows of contacts; then sliders, a switch and a refused start."""
    run = bench()
    run.page(tmp_path / "bench.html")
    page = tab.context.browser.new_page(viewport={"width": 780, "height": 480}, reduced_motion="reduce")
    page.on("pageerror", lambda error: pytest.fail(str(error)))
    page.goto((tmp_path / "bench.html").as_uri())
    until(page, "document.body.dataset.simulates === 'yes'")
    lines = page.evaluate("[...document.querySelectorAll('#eventlist button')].map((line) => line.textContent)")
    told = [("ice closes", np.sqrt(2 * 0.1 / 9.81)), ("rail slides", (2.2 / 4.0 - 0.5) / 0.3)]
    assert lines == [f"{t:.3f} s  {name}" for name, t in sorted(told, key=lambda one: one[1])]
    page.evaluate("document.querySelectorAll('#eventlist button')[1].click()")
    assert page.evaluate("cardan.clock.t") == pytest.approx(max(t for _, t in told), abs=1e-6)
    page.evaluate("cardan.plots.add('rail.force, N')")
    assert "shaded: sticks" in page.inner_text("#plots")
    arrow = """() => {
      const { scene } = cardan, m = scene.placement(scene.runs[0].machine.touches);
      const at = (k) => [m[k], m[4 + k], m[8 + k]];
      return { point: at(3), force: at(2).map((x) => x * cardan.about.reactions.force) };
    }"""
    page.locator("#picture").focus()
    page.keyboard.press("r")
    page.evaluate("cardan.seek(1.0)")
    shown = page.evaluate(arrow)
    np.testing.assert_allclose(shown["point"], run["ice.point"][200], atol=1e-6)
    np.testing.assert_allclose(shown["force"], run["ice.ground_force"][200], atol=1e-4)
    # it simulates from the same start, and tells what is where
    page.evaluate("cardan.simulation.restarted(); cardan.simulation.simulator.advance(0.4); cardan.simulation.pause()")
    state = page.evaluate("Array.from(cardan.simulation.simulator.state().q)")
    np.testing.assert_allclose(state, run.at(0.4)[0], atol=2e-3)
    until(page, "document.querySelector('#simulate .contact:last-of-type b').textContent === '19.6 N'")
    words = page.evaluate("[...document.querySelectorAll('#simulate .contact')].map((x) => x.children[1].textContent)")
    assert words == ["slides", "open", "open", "closed"]
    page.evaluate("cardan.draw()")
    live = page.evaluate(arrow)
    np.testing.assert_allclose(live["point"], [1, 1, 0.2], atol=1e-3)
    np.testing.assert_allclose(live["force"], [0, 0, 2 * 9.81], atol=1e-4)
    page.locator("label", has_text="brake.closed").locator("input").check()
    page.evaluate("cardan.simulation.simulator.advance(0.1)")
    assert abs(page.evaluate("cardan.simulation.simulator.state().v[0]")) < 1e-12
    field = page.locator("input[aria-label='x, m, as a number']")
    field.fill("-0.5")
    field.press("Tab")
    assert "end: lower: its gap would be -0.3 m" in page.inner_text("#simulate [role=status]")
    assert field.input_value() == "0" and page.evaluate("cardan.simulation.simulator.state().t") == 0.0
    page.close()


def falling(restitution: float, duration: float = 2.0) -> cd.Trajectory:
    """A ball that an event throws back."""
    m = cd.Mechanism("ball")
    m.body("ball", mass=2.0)
    m.joint("height", cd.Prismatic(axis=(0, 0, 1)), m.ground, "ball", start=1.0)
    back = lambda s: cd.Change(rates={"height": -restitution * s.rate("height")})
    floor = cd.Event("floor", lambda s: s.coordinate("height"), direction=-1, then=back)
    return cd.simulate(m.build(), duration, events=[floor], samples=5)


def caught() -> cd.Trajectory:
    """A car that meets a wagon, and a latch that an event closes."""
    m = cd.Mechanism("catch", gravity=(0, 0, 0))
    for name, mass, at in (("car", 2.0, 0.0), ("wagon", 1.0, 1.0)):
        m.body(name, mass=mass, inertia=(1, 1, 1))
        m.joint(f"{name}_x", cd.Prismatic(axis=(1, 0, 0)), "ground", name, start=at)
    m.latch("hook", "car", "wagon")
    apart = lambda s: s.coordinate("wagon_x") - s.coordinate("car_x") - 0.5 + s["hook.closed"]
    meet = cd.Event("meet", apart, then=lambda s: cd.Change(parameters={"hook.closed": 1.0}))
    return cd.simulate(m.build(), 1.0, v0=[3.0, 0.0], events=[meet], samples=5)


def test_events_that_change_a_run_act_in_its_page(tab: Any) -> None:
    """With steps that choose their length, and with those of a model with laws; and they begin again."""
    script = """async (about) => {
      const other = await cardan.simulation.makeSimulator(about), names = about.sliders.map(({ name }) => name);
      const last = [0.25, 0.25, 0.25, 0.25].map((dt) => other.advance(dt)).at(-1), { p } = other.state();
      const { sliders, coordinates } = about;
      other.set(sliders.map((one) => one.value), coordinates.map((c) => c.value), coordinates.map((c) => c.rate));
      return { last, p, names, first: other.state() };
    }"""
    for run in (falling(0.8), caught()):
        found, (q, v) = plain(tab, script, page_program(run).description), run.at(1.0)
        np.testing.assert_allclose(found["last"]["q"], q, atol=1e-3 if run.model.laws else 1e-9)
        np.testing.assert_allclose(found["last"]["v"], v, atol=1e-9)
    assert found["p"][0] == 1.0 and found["first"]["p"][0] == 0.0 and "hook.closed" not in found["names"]
    for restitution in (0.1, 0.3, 0.8):
        script = "async (about) => (await cardan.simulation.makeSimulator(about)).advance(5)"
        found = plain(tab, script, page_program(falling(restitution, 0.3)).description)
        assert found["message"].startswith("Stopped: infinitely many events")
        assert found["t"] == pytest.approx(np.sqrt(2 / 9.81) * (1 + restitution) / (1 - restitution), abs=1e-3)


def test_large_trees_are_looped(tab: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A short chain that counts as large."""
    monkeypatch.setattr(kernels, "LOOP_PAST", 2)
    monkeypatch.setattr(program, "MOST_RATES", 2)
    run = cd.simulate(mechanisms.chain(3).build(), 0.5, np.array([0.4, -0.3, 0.8]), rtol=1e-10, atol=1e-12)
    script = """async (about) => {
      const other = await cardan.simulation.makeSimulator(about);
      return { pulls: other.pulls, last: other.advance(0.5), energy: other.quantities().energy };
    }"""
    found = plain(tab, script, page_program(run).description)
    assert not found["pulls"] and found["energy"] == pytest.approx(run.energy[-1], rel=1e-5)
    np.testing.assert_allclose(found["last"]["q"], run.q[-1], atol=1e-5)


def test_masses_that_rest_on_ground_have_no_slider() -> None:
    m = mechanisms.four_bar()
    m.body("frame", mass=3.0, inertia=np.eye(3))
    m.joint("bolts", cd.Rigid(), m.ground, "frame")
    names = list(program._usual_names(m.build()))
    assert "crank.mass" in names and "frame.mass" not in names


def test_what_is_left_out_is_said() -> None:
    long = mechanisms.chain(MOST_RATES + 1)
    assert page_program(long.build(), ["gravity"]).reason == page_program(long.build().free("gravity")).reason != ""
    with pytest.raises(cd.UnknownNameError, match="crank"):
        page_program(linkage(), ["cranc.mass"])
    with pytest.raises(cd.InputError, match="a list of names"):
        page_program(linkage(), "crank.mass")
    run = falling(0.8)
    assert "from a file" in page_program(pickle.loads(pickle.dumps(run))).reason
    called = cd.Event("low", lambda s: s.coordinate("height") - 0.5, call=lambda t, q, v, p: None)
    assert "plain Python" in page_program(cd.simulate(run.model, 0.4, events=[called], samples=3)).reason
    loop, w = linkage(), lambda s: cd.Change(rates={"A": 1.0})
    turned = cd.Event("turned", lambda s: s.coordinate("A") - 9.0, then=w)
    q, v = cd.assemble(loop)
    assert "share by an impulse" in page_program(cd.simulate(loop, 0.01, q, v, events=[turned], samples=2)).reason
    m = cd.Mechanism("slider", gravity=(0, 0, 0))
    m.body("mass", mass=2.0)
    m.joint("x", cd.Prismatic(axis=(1, 0, 0)), m.ground, "mass")
    m.controller("servo", "x", lambda t, q, v, parameters: -q, every=0.5, python=True)
    assert "controller 'servo' is plain Python" in page_program(m.build()).reason
