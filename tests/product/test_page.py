"""Pages: one file that opens offline, moves, and shows the numbers of the run; in a real browser where there is one."""

from __future__ import annotations

import base64
import io
import json
import re
import shutil
import zlib
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.interpolate import make_interp_spline

import cardan as cd
from cardan import mechanisms
from cardan.results.drawing import diagram
from cardan.results.geometry import geometry_of, place
from cardan.results.page.packing import packed
from cardan.results.page.page import html
from cardan.results.page.samples import MOST_GHOSTS, MOST_SAMPLES
from cardan.results.page.scene_3d import JOINTS, ROUND, Solid, arrow, ball, box, coil, cone, dashpot, rod, scene_3d

from ..user_kinds import WIRE, bead

pytestmark = pytest.mark.usefixtures("quick_code")
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
FLAGS = ("--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--disable-gpu-compositing")


@cache
def four_bar() -> cd.Trajectory:
    """Ten seconds of a crank that turns."""
    model = mechanisms.four_bar().build()
    q, v = cd.assemble(model)
    v[0] = 4.0
    q, v = cd.assemble(model, q, v)
    return cd.simulate(model, 10.0, q, v, rtol=1e-6)


def hung() -> cd.Mechanism:
    """A bar in space on a ball, with a spring, a load and a frame; its name would end a script."""
    m = cd.Mechanism("a </script><b>&", gravity=(0, 0, -9.81))
    m.body("bar", mass=1.0, com=(0.5, 0, 0), inertia=(0.01, 0.1, 0.1))
    m.joint("ball", cd.Spherical(), m.ground, "bar")
    m.spring("s", m.ground, "bar", stiffness=30.0, length=0.5, at1=(1, 0, 1), at2=(1, 0, 0))
    m.wrench("load", "bar", (0, 0, 0, 0, 1, 0), at=(1, 0, 0))
    m.frame("tip", "bar", at=(1.0, 0, 0))
    return m


@cache
def hanging() -> cd.Trajectory:
    return cd.simulate(hung().build(), 1.0, samples=41, rtol=1e-6)


# The file.


def about(text: str) -> dict[str, Any]:
    """What a page has been told."""
    found = re.search(r"^const ABOUT = (.*);$", text, re.M)
    assert found
    return json.loads(found[1])


def unpacked(data: dict[str, Any]) -> dict[str, np.ndarray]:
    """The arrays of a page, each (rows, columns)."""
    raw, found, at = np.frombuffer(zlib.decompress(base64.b64decode(data["text"])), np.uint8), {}, 0
    for name, kind, rows, columns in data["layout"]:
        each, wide = (2 if kind == "u2" else 4), (2 * columns if kind == "f8" else columns)
        planes = raw[at : at + each * rows * wide].reshape(each, wide, rows)
        steps = sum(plane.astype(f"u{each}") << np.array(8 * k, f"u{each}") for k, plane in enumerate(planes))
        whole = np.cumsum(steps, axis=1, dtype=f"u{each}").T
        found[name], at = np.ascontiguousarray(whole).view(f"<{kind}"), at + each * rows * wide
    assert at == len(raw)
    return found


def test_packing_loses_nothing() -> None:
    rng = np.random.default_rng(0)
    arrays = {
        "a": rng.normal(size=(7, 3)), "b": rng.normal(size=(5, 2)).astype(np.float32),
        "none": np.zeros((4, 0), np.float32),
        "c": rng.integers(0, 2**32, (6, 3), dtype=np.uint32), "d": rng.integers(0, 2**16, (9, 1), dtype=np.uint16),
    }  # fmt: skip
    arrays["a"][3, 1], arrays["b"][2, 1] = np.nan, -np.inf
    for name, array in unpacked(packed(arrays)).items():
        np.testing.assert_array_equal(array, arrays[name])


def test_a_page_is_one_small_file_without_addresses(tmp_path: Path) -> None:
    path = tmp_path / "run.html"
    four_bar().page(path, simulate=False)
    assert path.stat().st_size < 3e5
    text = path.read_text(encoding="utf-8")
    assert not re.search(r"<(?:script|link|img|iframe)[^>]*(?:src|href)=", text)
    assert (
        "default-src 'none'" in text
        and "connect-src" not in text
        and "http" not in text.replace("http-equiv", "").replace("http://www.w3.org/2000/svg", "")
    )
    with pytest.raises(cd.FileError, match="overwrite=True"):
        four_bar().page(path, simulate=False)
    assert path.read_text(encoding="utf-8") == text
    four_bar().page(path, "energy", simulate=False, overwrite=True)
    assert about(path.read_text(encoding="utf-8"))["plotted"] == ["energy, J"]
    assert [p.name for p in tmp_path.iterdir()] == ["run.html"]


def test_numbers_of_a_page_are_those_of_the_run() -> None:
    run = four_bar()
    told = about(html(run))
    data, model = unpacked(told["data"]), run.model
    np.testing.assert_array_equal(data["time0"][:, 0], run.time)
    poses = data["poses0"].reshape(len(run.time), model.nb, 7)
    np.testing.assert_allclose(poses[..., :3], run.poses[..., :3, 3], atol=1e-6)
    w, x, y, z = np.moveaxis(poses[..., 3:].astype(float), -1, 0)
    np.testing.assert_allclose(w**2 + x**2 - y**2 - z**2, run.poses[..., 0, 0], atol=1e-5)
    np.testing.assert_allclose(2 * (x * y + w * z), run.poses[..., 1, 0], atol=1e-5)
    moment, force = np.moveaxis(data["reactions0"].reshape(len(run.time), 4, 2, 3), 2, 0)
    np.testing.assert_allclose(
        np.linalg.norm(force, axis=-1), np.linalg.norm(run.reactions[..., 3:], axis=-1), rtol=1e-5
    )
    assert not moment.any()  # what is computed of them is rounding
    assert np.abs(run.reactions[..., :3]).max() > 0
    # together with the weight, what the ground's joints give changes the momentum
    on_ground = [k for k, joint in enumerate(model.joints) if joint.parent < 0]
    change = make_interp_spline(run.time, run.momentum[:, 3:], k=5).derivative()(run.time)
    error = np.abs(force[:, on_ground].sum(axis=1) + model.total_mass * model.gravity - change).max()
    assert error < 0.01 * np.abs(force).max()
    plots = {plot["key"]: (k, plot) for k, plot in enumerate(told["runs"][0]["plots"])}
    names = [curve for key in told["plotted"] for curve in plots[key][1]["curves"]]
    assert names == ["A", "B", "D"] * 2 + ["energy", "kinetic", "potential"]
    k, _ = plots["power, W"]
    np.testing.assert_allclose(data[f"plot0.{k}"][:, 0], run.power, atol=1e-6)


def test_long_runs_are_thinned_and_keep_their_ends() -> None:
    t = np.linspace(0, 50, 3 * MOST_SAMPLES)
    run = cd.Trajectory(mechanisms.pendulum().build(), t, np.sin(t)[:, None], np.cos(t)[:, None])
    kept = unpacked(about(html(run, ["q"]))["data"])["time0"][:, 0]
    assert len(kept) == MOST_SAMPLES and kept[0] == t[0] and kept[-1] == t[-1]


def test_a_name_cannot_end_the_script() -> None:
    text = html(hung().build())
    assert "a </script>" not in text
    assert about(text)["name"] == "a </script><b>&"


def test_what_cannot_be_written_is_refused(tmp_path: Path) -> None:
    run, model = four_bar(), four_bar().model
    with pytest.raises(cd.FileError, match="cannot be written"):
        run.page(tmp_path / "no" / "run.html", simulate=False)
    with pytest.raises(cd.FileError, match="folder"):
        run.page(tmp_path, simulate=False)
    with pytest.raises(cd.UnknownNameError, match="energy"):
        run.page(tmp_path / "run.html", "enrgy")
    with pytest.raises(cd.InputError, match="shape"):
        model.page(tmp_path / "run.html", q=[0.0])
    two = cd.Trajectory(model, run.time, np.stack([run.q] * 2), np.stack([run.v] * 2))
    for bad, message in (
        (3, "a run, a list of runs or a model, got int"),
        ([], "empty list"),
        ([run, two], r"run 1 .*run\[0\]"),
    ):
        with pytest.raises(cd.InputError, match=message):
            cd.page(bad, tmp_path / "run.html")  # type: ignore[arg-type]
    with pytest.raises(cd.InputError, match="2 names"):
        run.page(tmp_path / "run.html", others=[run], labels=["one"])
    assert not list(tmp_path.iterdir())


def test_several_runs_and_systems_of_a_batch() -> None:
    """Runs of one model share its solids; of a large batch some systems are shown, its first and last among them."""
    run, t = four_bar(), np.linspace(0, 1, 5)
    other = cd.Trajectory(mechanisms.pendulum().build(), t, np.sin(t)[:, None], np.cos(t)[:, None])
    told = about(html([run, run, other], labels=["a", "b", "c"]))
    assert [(r["label"], r["machine"], r["ghost"]) for r in told["runs"]] == [
        ("a", 0, False),
        ("b", 0, True),
        ("c", 1, True),
    ]
    size = 3 * MOST_GHOSTS
    q = np.linspace(0, 1, size)[:, None, None] * np.ones((5, 1))
    batch = cd.Trajectory(other.model, t, q, np.zeros((size, 5, 1)))
    told = about(html(batch, ["q"]))
    shown = [run["label"] for run in told["runs"]]
    assert len(shown) == MOST_GHOSTS and (shown[0], shown[-1]) == ("system 0", f"system {size - 1}")
    data = unpacked(told["data"])
    for k, label in enumerate(shown):
        np.testing.assert_allclose(data[f"plot{k}.0"], q[int(label.split()[1])], rtol=1e-6)


# The picture.


@pytest.mark.parametrize("name", ["four_bar", "slider_crank", "andrews", "cardan_joint", "rscr", "sarrus"])
def test_marks_of_a_joint_meet_and_bodies_reach_them(name: str) -> None:
    model = mechanisms.CATALOGUE[name]().build()
    geometry, poses = geometry_of(model), cd.body_poses(model, cd.assemble(model)[0])
    assert (geometry.plane is None) != cd.is_planar(model)
    for joint in geometry.joints:
        gap = place(poses, joint.child, joint.child_at.position) - place(poses, joint.parent, joint.at.position)
        if joint.slides:
            axis = poses[joint.axes[0].body] if joint.axes[0].body >= 0 else np.eye(4)
            gap = np.cross(gap, axis[:3, :3] @ joint.axes[0].direction)
        np.testing.assert_allclose(gap, 0, atol=1e-9)
    drawn = {stroke.body for stroke in geometry.strokes}
    assert drawn == set(range(model.nb))


def test_every_kind_of_joint_has_a_mark() -> None:
    from cardan.model.joint import TABLE

    assert set(JOINTS) == {*(kind.mark for kind in TABLE.values()), "joint"}
    assert set(diagram.JOINTS) == set(JOINTS)
    m = cd.Mechanism("kinds")
    kinds = [cd.Revolute(), cd.Prismatic(), cd.Cylindrical(), cd.Screw(pitch=0.1), cd.Universal(), cd.Spherical(),
             cd.Planar(), cd.Rigid(), cd.Free()]  # fmt: skip
    parent = m.ground
    for k, kind in enumerate(kinds):
        body = m.body(f"b{k}", mass=1.0, inertia=(1, 1, 1), com=(0.5, 0, 0))
        m.joint(f"j{k}", kind, parent, body, at=(1, 0, 0))
        parent = body
    model = m.build()
    scene = scene_3d(model, cd.body_poses(model, model.neutral()))
    for part in scene.parts:
        assert np.isfinite(part.solid.corners).all() and len(part.solid.triangles) > 0
        assert part.solid.triangles.max() < len(part.solid.corners)


@pytest.mark.parametrize("mark", [*JOINTS, "new"])
@pytest.mark.parametrize("axes", [(), (("parent", 0),), (("child", 1), ("parent", 0))])
def test_kinds_of_a_user_have_pages(mark: str, axes: tuple[tuple[str, int], ...]) -> None:
    """A joint kind and force elements that only the tests define are part of the scene, whatever mark they declare."""
    model = bead(replace(WIRE, mark=mark, shown_axes=axes, slides=bool(axes))).build()
    run = cd.simulate(model, 0.1, [0.3, 0.3], samples=5)
    scene = scene_3d(model, run.poses)
    for part in scene.parts:
        assert np.isfinite(part.solid.corners).all() and len(part.solid.triangles) > 0
    assert [span.name for span in scene.spans] == ["two pulls"]
    (machine,) = about(html(run, ["q", "reactions"]))["machines"]
    assert len(machine["spans"]) == 1 and [model.nb + 1, "force elements"] in [part[:2] for part in machine["parts"]]
    assert "joint wire" in [point["name"] for point in machine["points"]]
    drawn = {(part.layer, part.body) for part in scene.parts}
    assert (mark == "none") or ("bodies", 0) in drawn


def volume(solid: Solid) -> float:
    """By the divergence theorem; positive where triangles are seen from outside."""
    a, b, c = np.moveaxis(solid.corners[solid.triangles], 1, 0)
    return float(np.einsum("ij,ij", a, np.cross(b, c)) / 6)


def test_solids_are_closed_and_seen_from_outside() -> None:
    n = ROUND
    polygon = n / 2 * np.sin(2 * np.pi / n)  # area of one in a unit circle
    shift = np.array([0.3, -1.0, 2.0])
    for solid, expected in (
        (rod(shift, shift + np.array([0.6, 0, 0.8]), 0.5), polygon * 0.25),
        (box((1, 2, 3)).moved(shift), 48.0),
        (cone(2.0, 3.0), polygon * 4.0),
        (dashpot(1.0), polygon * (0.6 * 0.25**2 + 0.4)),
    ):
        assert volume(solid) == pytest.approx(expected)
        a, b, c = np.moveaxis(solid.corners[solid.triangles], 1, 0)
        area = np.cross(b - a, c - a) / 2
        np.testing.assert_allclose(area.sum(axis=0), 0, atol=1e-12)
        assert (np.linalg.norm(area, axis=1) > 0).all()
    assert 0.8 < volume(ball(shift, 1.0)) / (4 / 3 * np.pi) < 1
    assert volume(coil(1.0, 0.1)) > 0 and volume(arrow(2)) > 0


# In a browser.


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    api = pytest.importorskip("playwright.sync_api", reason="no Playwright: pip install playwright")
    path = next((found for name in BROWSERS if (found := shutil.which(name))), None)
    if path is None:
        pytest.skip(f"no browser on this machine: none of {', '.join(BROWSERS)} is installed")
    with api.sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=path, args=list(FLAGS))
        yield chromium
        chromium.close()


class Window:
    """A page in a window, and what went wrong in it."""

    def __init__(self, browser: Any, url: str) -> None:
        self.tab = browser.new_page(viewport={"width": 800, "height": 620}, reduced_motion="reduce")
        self.wrong: list[str] = []
        self.asked: list[str] = []
        self.tab.on("console", lambda m: self.wrong.append(m.text) if m.type == "error" else None)
        self.tab.on("pageerror", lambda error: self.wrong.append(str(error)))
        self.tab.on("request", lambda request: self.asked.append(request.url))
        self.tab.goto(url)
        self.tab.wait_for_selector("body[data-ready]", state="attached", timeout=60_000)

    def __call__(self, script: str, value: Any = None) -> Any:
        return self.tab.evaluate(script, value)

    def seek(self, t: float) -> None:
        self("t => cardan.seek(t)", t)

    def legend(self) -> list[float]:
        """The numbers under the cursor."""
        return [float(x) for x in self("[...document.querySelectorAll('.legend b')].map(b => b.textContent)")]

    def picture(self) -> np.ndarray:
        """Pixels (height, width, 3) of the mechanism."""
        from matplotlib.image import imread

        png = self.tab.locator("#stage").screenshot()
        return np.asarray(imread(io.BytesIO(png), format="png"))[..., :3]

    def close(self) -> None:
        assert self.wrong == []
        assert all(url.startswith(("file:", "blob:", "data:", "http://127.0.0.1:")) for url in self.asked)
        self.tab.close()


def near(picture: np.ndarray, colour: int) -> int:
    """How many pixels have the hue of a colour."""
    wanted = np.array([colour >> 16, colour >> 8 & 255, colour & 255]) / 255
    bright = np.linalg.norm(picture, axis=-1, keepdims=True)
    same = (picture / np.maximum(bright, 1e-9)) @ (wanted / np.linalg.norm(wanted)) > 0.985
    coloured = picture.max(axis=-1) - picture.min(axis=-1) > 0.2
    return int((same & coloured).sum())


@pytest.fixture(scope="module")
def crank(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Window]:
    """The page of the four-bar's run."""
    path = tmp_path_factory.mktemp("page") / "run.html"
    four_bar().page(path, simulate=False)
    window = Window(browser, path.as_uri())
    yield window
    window.close()


def test_a_run_in_a_browser(crank: Window) -> None:
    from cardan.results.page.scene_3d import BODIES, FORCE

    run, window = four_bar(), crank
    assert all(url.startswith(("file:", "blob:", "data:")) for url in window.asked)
    # numbers at samples, and between them
    for k in (0, 137, 500):
        window.seek(float(run.time[k]))
        expected = [*run.q[k], *run.v[k], run.energy[k], run.kinetic[k], run.potential[k]]
        np.testing.assert_allclose(window.legend(), expected, rtol=1e-5, atol=1e-6)
        assert window("document.getElementById('time').value") == f"{run.time[k]:.3f} s"
    t = float(run.time[200] + 0.4 * (run.time[201] - run.time[200]))
    window.seek(t)
    q, v = run.at(t)
    np.testing.assert_allclose(window.legend()[:6], [*q, *v], atol=0.02 * np.abs(run.v).max())
    # the bodies are where they should be
    coupler = run.model.body_index("coupler")
    pose = cd.body_poses(run.model, q)[coupler]
    np.testing.assert_allclose(np.reshape(window(f"cardan.scene.placement({coupler})"), (3, 4)), pose[:3], atol=2e-3)
    # the mechanism is seen, in the colours of its bodies, and moves
    first = window.picture()
    assert min(near(first, colour) for colour in BODIES[: run.model.nb]) > 100
    window.seek(t + 0.5)
    moved = window.picture()
    assert (np.abs(moved - first).max(axis=-1) > 0.2).sum() > 500
    # reactions appear when asked for
    assert near(moved, FORCE) < 50
    window.tab.click("#arrowed summary")
    window.tab.check("#forces")
    window.seek(t + 0.5)
    assert near(window.picture(), FORCE) > 50
    assert window.wrong == []


def test_playing_keeps_time(crank: Window) -> None:
    window = crank
    window.tab.fill("#speed", "2")
    window.tab.click("#play")
    seen = window("""() => new Promise((done) => {
        const state = () => [cardan.clock.t, performance.now() / 1000, cardan.clock.drawn];
        const start = state();
        setTimeout(() => done(state().map((x, k) => x - start[k])), 700);
    })""")
    window.tab.click("#play")
    passed, seconds, drawn = seen
    assert drawn > 1  # software rendering on a busy machine; docs/pages.md has what a card does
    assert passed == pytest.approx(2 * seconds, abs=0.3 + 4 * seconds / drawn)  # the time of the last frame
    stopped = window("cardan.clock.t")
    window.tab.wait_for_timeout(50)
    assert window("cardan.clock.t") == stopped
    # what a frame needs from the page itself, of which 60 a second must be possible
    spent = window("""() => {
        const gl = cardan.canvas.getContext("webgl2"), own = gl.drawArraysInstanced;
        gl.drawArraysInstanced = () => {};
        let least = Infinity;  // of several, as the machine may be busy
        for (let run = 0; run < 10; run++) {
            const t = performance.now();
            for (let k = 0; k < 5; k++) cardan.seek(run / 2 + k / 10);
            least = Math.min(least, (performance.now() - t) / 5);
        }
        gl.drawArraysInstanced = own;
        return least;
    }""")
    assert spent < 16
    # the slider, the plots and the keys are tied to the cursor
    window.tab.locator("#scrub").fill("0.5")
    assert window("cardan.clock.t") == pytest.approx(5.0)
    area = window.tab.locator(".area").first
    width = area.bounding_box()["width"]
    area.click(position={"x": 62 + 0.25 * (width - 78), "y": 40})
    assert window("cardan.clock.t") == pytest.approx(2.5, abs=0.05)
    window.tab.locator("#picture").focus()
    for key, after in (("ArrowRight", 1), ("ArrowLeft", -1)):
        before = window("cardan.clock.t")
        window.tab.keyboard.press(key)
        assert (window("cardan.clock.t") - before) * after > 0
    window.tab.keyboard.press("[")
    assert window("document.getElementById('speed').value") == "1"
    window.tab.keyboard.press("?")
    assert window.tab.is_visible("#help")
    window.tab.keyboard.press("Escape")
    # a curve that is chosen from the list: the force of a joint, in ground axes
    run = four_bar()
    window.tab.select_option("#chooser", label="A.reaction_force in ground axes, N")
    window.seek(float(run.time[40]))
    pose = run.poses[40, run.model.joints[0].child]
    expected = pose[:3, :3] @ run.model.joints[0].child_at.rotation @ run.reaction("A")[40, 3:]
    np.testing.assert_allclose(window.legend()[-3:], expected, rtol=1e-4, atol=1e-3)
    assert window.wrong == []


def test_what_is_measured_and_cut(crank: Window) -> None:
    """Clicks on the two ends of the coupler measure its length; the middle of its section is hatched, or gone."""
    run, window = four_bar(), crank
    window.tab.keyboard.press("h")
    window.tab.keyboard.press("m")
    window.seek(0.0)
    canvas = window.tab.locator("#picture")

    def click(body: str, point: list[float]) -> None:
        x, y = window(
            f"cardan.camera.screen(cardan.scene.pointNow({{body: {run.model.body_index(body)}, point: {point}}}))"
        )
        canvas.click(position={"x": x, "y": y})

    coupler = float(
        np.linalg.norm(run.position("rocker", run.model.joints[3].child_at.position)[0] - run.position("coupler")[0])
    )
    click("coupler", [0.0, 0.0, 0.0])
    click("rocker", run.model.joints[3].child_at.position.tolist())
    found = window("cardan.measure.result()")
    pixel = window("cardan.camera.pixel(cardan.camera.target)")
    assert found["distance"] == pytest.approx(coupler, abs=3 * pixel)
    click("crank", [0.0, 0.0, 0.0])
    a, b, c = (
        run.position(*at)[0] for at in (("coupler",), ("rocker", run.model.joints[3].child_at.position), ("crank",))
    )
    angle = np.arccos((a - b) @ (c - b) / np.linalg.norm(a - b) / np.linalg.norm(c - b))
    assert window("cardan.measure.result().angle") == pytest.approx(angle, abs=0.02)
    window.tab.keyboard.press("Escape")
    # a section: all that lies beyond the plane is not seen, and cannot be clicked on
    before = window.picture()
    window("() => { document.querySelector('#cutting').open = true; }")
    window.tab.select_option("#cut", "0")
    window.tab.locator("#depth").fill("0")
    window.seek(0.0)
    assert near(before, 0xD55E00) > 100 > near(window.picture(), 0xD55E00)
    x, y = window("cardan.camera.screen(cardan.scene.pointNow({body: 1, point: [0.1, 0, 0]}))")
    box = canvas.bounding_box()
    assert window(f"cardan.pick({box['x'] + x}, {box['y'] + y})") is None
    window.tab.select_option("#cut", "")
    window.seek(0.0)
    assert window(f"cardan.pick({box['x'] + x}, {box['y'] + y})")["body"] == run.model.body_index("coupler")


def test_follow_trace_and_layers_in_space(browser: Any, tmp_path: Path) -> None:
    run, path = hanging(), tmp_path / "run.html"
    run.page(path, simulate=False)
    window = Window(browser, path.as_uri())
    assert window("document.title") == run.model.name
    assert window("document.getElementById('flat').checked") is False
    window.tab.select_option("#trace", label="frame tip")
    window.seek(0.5)
    k = int(np.flatnonzero(run.time == 0.5)[0])
    tip = run.position("tip")[k]
    found = window("cardan.scene.pointNow(cardan.scene.runs[0].machine.points.find((p) => p.name === 'frame tip'))")
    np.testing.assert_allclose(found, tip, atol=1e-5)
    # the spring reaches from its point on the ground to its point on the bar
    matrix = np.reshape(window("cardan.scene.placement(cardan.scene.machines[0].spans)"), (3, 4))
    np.testing.assert_allclose(matrix @ (0, 0, 0, 1), (1, 0, 1), atol=1e-6)
    np.testing.assert_allclose(matrix @ (0, 0, 1, 1), tip, atol=1e-5)
    # the camera shows all of the run, and follows a body
    points = run.position("tip")
    width, height = window("[cardan.canvas.clientWidth, cardan.canvas.clientHeight]")
    for point in points:
        x, y = window("(p) => cardan.camera.screen(p)", point.tolist())
        assert 0 < x < width and 0 < y < height
    window.tab.select_option("#follow", label="bar")
    window.seek(0.0)
    here = np.array(window("cardan.camera.target"))
    window.seek(1.0)
    bar = run.position("bar")
    np.testing.assert_allclose(np.array(window("cardan.camera.target")) - here, bar[-1] - bar[0], atol=1e-5)
    for layer in window.tab.locator("#layers input").all():
        layer.check()
    window.tab.check("#names")
    window.seek(1.0)
    assert window.tab.locator("#labels span:visible").count() == 2
    # dark, and narrow: everything is still there
    window.tab.click("#dark")
    window.tab.set_viewport_size({"width": 390, "height": 844})
    assert window("document.documentElement.scrollWidth") <= 390
    window.seek(0.5)
    assert window.picture().mean() < 0.4
    window.close()


def test_a_simulation_is_watched_while_it_runs(browser: Any) -> None:
    model = mechanisms.pendulum().build()
    with cd.view(model, "q", q=[1.0], live=True, open_browser=False) as viewer:
        window = Window(browser, viewer.url)
        run = viewer.simulate(0.6, [1.0], pace=None)
        viewer.finish()
        window.tab.wait_for_function("() => document.getElementById('note').textContent === ''")
        assert window("cardan.clock.t") == pytest.approx(0.6)
        np.testing.assert_allclose(window.legend(), run.q[-1], rtol=1e-5)
        with pytest.raises(cd.InputError, match="live"):
            viewer.add(run)
        with pytest.raises(cd.FileError, match="port"):
            cd.view(model, port=int(viewer.url.split(":")[2].rstrip("/")), open_browser=False)
        window.close()
    whole = cd.simulate(model, 0.6, [1.0], samples=run.time)
    np.testing.assert_allclose(run.q, whole.q, atol=1e-7)
    with pytest.raises(cd.InputError, match="model"):
        cd.view(run, live=True, open_browser=False)


def test_a_model_at_rest(browser: Any, tmp_path: Path) -> None:
    path = tmp_path / "model.html"
    mechanisms.slider_crank().build().page(path, simulate=False)
    window = Window(browser, path.as_uri())
    assert not window.tab.is_visible("#play")
    assert near(window.picture(), 0x0072B2) > 100
    window.close()


def test_a_notebook_shows_a_frame_that_moves(browser: Any, tmp_path: Path) -> None:
    """In a sandbox, of a size that cells can have; a run without its model, or too large, has only its table."""
    run, path = hanging(), tmp_path / "cell.html"
    cell = run._repr_html_()
    assert len(cell) < 2e5
    path.write_text(f"<!DOCTYPE html><meta charset=utf-8>{cell}", encoding="utf-8")
    tab = browser.new_page(viewport={"width": 700, "height": 500}, reduced_motion="reduce")
    asked: list[str] = []
    tab.on("request", lambda request: asked.append(request.url))
    tab.goto(path.as_uri())
    frame = tab.wait_for_selector("iframe", state="attached").content_frame()
    frame.wait_for_selector("body[data-ready]", state="attached", timeout=60_000)
    k = int(np.flatnonzero(run.time == 0.5)[0])
    tip = frame.evaluate("(cardan.seek(0.5), cardan.scene.pointNow({body: 0, point: [1, 0, 0]}))")  # it plays meanwhile
    np.testing.assert_allclose(tip, run.position("tip")[k], atol=1e-4)
    assert frame.evaluate("document.getElementById('stage').clientHeight") > 200
    assert {url.partition(":")[0] for url in asked} <= {"file", "about"}
    tab.close()
    cell = run.model._repr_html_()
    assert "<svg" in cell and "<iframe" in cell


def test_events_are_marked(browser: Any, tmp_path: Path) -> None:
    t = np.linspace(0, 0.03, 61)
    events = [cd.EventRecord(name, (), at, np.zeros(1), np.zeros(1)) for name, at in (("hit", 0.012), ("late", 0.024))]
    run = cd.Trajectory(mechanisms.pendulum().build(), t, np.sin(100 * t)[:, None], np.cos(t)[:, None], events=events)
    run.page(tmp_path / "run.html", "q", simulate=False)
    window = Window(browser, (tmp_path / "run.html").as_uri())
    assert [mark.get_attribute("title") for mark in window.tab.locator("#marks button").all()] == [
        "hit, 0.012 s",
        "late, 0.024 s",
    ]
    window.tab.keyboard.press("n")
    window.tab.keyboard.press("n")
    assert window("cardan.clock.t") == pytest.approx(0.024)
    window.tab.keyboard.press("b")
    assert window("cardan.clock.t") == pytest.approx(0.012)
    # a run of 0.03 s lasts some seconds
    assert 2 <= 0.03 / float(window("document.getElementById('speed').value")) <= 10
    window.close()
