"""Pages: one file that opens offline, moves, and shows the numbers of the run; in a real browser where there is one."""

from __future__ import annotations

import io
import json
import re
import shutil
import sys
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
from cardan.results.page.page import MOST_SAMPLES, html
from cardan.results.page.scene_3d import JOINTS, ROUND, Solid, arrow, ball, box, coil, cone, dashpot, rod, scene_3d

from ..user_kinds import WIRE, bead

pytest.importorskip("k3d", reason="pages need K3D-jupyter: pip install 'cardan[view]'")
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


def numbers(text: str, width: int, kind: str = "<f4") -> np.ndarray:
    import base64

    return np.frombuffer(base64.b64decode(text), kind).reshape(-1, width)


def test_a_page_is_one_small_file_without_addresses(tmp_path: Path) -> None:
    path = tmp_path / "run.html"
    four_bar().page(path)
    assert path.stat().st_size < 5e6
    text = path.read_text(encoding="utf-8")
    assert not re.search(r"<(?:script|link|img|iframe)[^>]*(?:src|href)=", text)
    with pytest.raises(cd.FileError, match="overwrite=True"):
        four_bar().page(path)
    assert path.read_text(encoding="utf-8") == text
    four_bar().page(path, "energy", overwrite=True)
    assert [plot["title"] for plot in about(path.read_text(encoding="utf-8"))["plots"]] == [
        "kinetic and potential energy"
    ]
    assert [p.name for p in tmp_path.iterdir()] == ["run.html"]


def test_numbers_of_a_page_are_those_of_the_run() -> None:
    run = four_bar()
    told = about(html(run))
    data, model = told["data"], run.model
    np.testing.assert_array_equal(numbers(data["time"], 1, "<f8")[:, 0], run.time)
    poses = numbers(data["poses"], 7 * model.nb).reshape(len(run.time), model.nb, 7)
    np.testing.assert_allclose(poses[..., :3], run.poses[..., :3, 3], atol=1e-6)
    w, x, y, z = np.moveaxis(poses[..., 3:].astype(float), -1, 0)
    np.testing.assert_allclose(w**2 + x**2 - y**2 - z**2, run.poses[..., 0, 0], atol=1e-5)
    np.testing.assert_allclose(2 * (x * y + w * z), run.poses[..., 1, 0], atol=1e-5)
    force = numbers(data["reactions"], 6 * 4).reshape(len(run.time), 4, 2, 3)[..., 1, :]
    np.testing.assert_allclose(
        np.linalg.norm(force, axis=-1), np.linalg.norm(run.reactions[..., 3:], axis=-1), rtol=1e-5
    )
    # together with the weight, what the ground's joints give changes the momentum
    on_ground = [k for k, joint in enumerate(model.joints) if joint.parent < 0]
    change = make_interp_spline(run.time, run.momentum[:, 3:], k=5).derivative()(run.time)
    error = np.abs(force[:, on_ground].sum(axis=1) + model.total_mass * model.gravity - change).max()
    assert error < 0.01 * np.abs(force).max()
    names = [curve for plot in told["plots"] for curve in plot["curves"]]
    assert names == ["A", "B", "D"] * 2 + ["energy", "kinetic", "potential"]


def test_long_runs_are_thinned_and_keep_their_ends() -> None:
    t = np.linspace(0, 50, 3 * MOST_SAMPLES)
    run = cd.Trajectory(mechanisms.pendulum().build(), t, np.sin(t)[:, None], np.cos(t)[:, None])
    kept = numbers(about(html(run, ["q"]))["data"]["time"], 1, "<f8")[:, 0]
    assert len(kept) == MOST_SAMPLES and kept[0] == t[0] and kept[-1] == t[-1]


def test_a_name_cannot_end_the_script() -> None:
    text = html(hung().build())
    assert "a </script>" not in text
    assert about(text)["name"] == "a </script><b>&"


def test_what_cannot_be_written_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run, model = four_bar(), four_bar().model
    with pytest.raises(cd.FileError, match="cannot be written"):
        run.page(tmp_path / "no" / "run.html")
    with pytest.raises(cd.FileError, match="folder"):
        run.page(tmp_path)
    with pytest.raises(cd.UnknownNameError, match="energy"):
        run.page(tmp_path / "run.html", "enrgy")
    two = cd.Trajectory(model, run.time, np.stack([run.q] * 2), np.stack([run.v] * 2))
    with pytest.raises(cd.InputError, match=r"run\[0\]"):
        two.page(tmp_path / "run.html")
    with pytest.raises(cd.InputError, match="shape"):
        model.page(tmp_path / "run.html", q=[0.0])
    with pytest.raises(cd.InputError, match="run or a model"):
        cd.page(3, tmp_path / "run.html")  # type: ignore[arg-type]
    monkeypatch.setitem(sys.modules, "k3d", None)
    with pytest.raises(cd.FileError, match=r"cardan\[view\]"):
        run.page(tmp_path / "run.html")
    assert not list(tmp_path.iterdir())


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
    told = about(html(run, ["q", "reactions"]))
    assert {"object": "span/0", "layer": "force elements"}.items() <= told["spans"][0].items()
    assert "joint wire" in [point["name"] for point in told["points"]]
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
        self.tab = browser.new_page(viewport={"width": 800, "height": 700})
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
    four_bar().page(path)
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
    mesh = window(f"cardan.meshes['bodies/{coupler}'].matrix.elements")
    pose = cd.body_poses(run.model, q)[coupler]
    np.testing.assert_allclose(np.reshape(mesh, (4, 4)).T, pose, atol=2e-3)
    # the mechanism is seen, in the colours of its bodies, and moves
    first = window.picture()
    assert min(near(first, colour) for colour in BODIES[: run.model.nb]) > 100
    window.seek(t + 0.5)
    moved = window.picture()
    assert (np.abs(moved - first).max(axis=-1) > 0.2).sum() > 500
    # reactions appear when asked for
    assert near(moved, FORCE) < 50
    window.tab.check("#forces")
    window.seek(t + 0.5)
    assert near(window.picture(), FORCE) > 50
    assert window.wrong == []


def test_playing_keeps_time(crank: Window) -> None:
    window = crank
    window.tab.select_option("#speed", "2")
    window.tab.click("#play")
    seen = window("""() => new Promise((done) => {
        const state = () => [cardan.clock.t, performance.now() / 1000, cardan.clock.drawn];
        const start = state();
        setTimeout(() => done(state().map((x, k) => x - start[k])), 1500);
    })""")
    window.tab.click("#play")
    passed, seconds, drawn = seen
    assert passed == pytest.approx(2 * seconds, abs=0.5)
    assert drawn / seconds > 8  # software rendering on a busy machine; docs/pages.md has what an idle one does
    stopped = window("cardan.clock.t")
    window.tab.wait_for_timeout(100)
    assert window("cardan.clock.t") == stopped
    # all that a frame needs from the page itself, of which 30 a second must be possible
    assert (
        window("""() => { const t = performance.now(); for (let k = 0; k < 50; k++) cardan.seek(k / 10);
                             return (performance.now() - t) / 50; }""")
        < 30
    )
    # the slider and the plots are tied to the cursor
    window.tab.locator("#scrub").fill("0.5")
    assert window("cardan.clock.t") == pytest.approx(5.0)
    area = window.tab.locator(".area").first
    width = area.bounding_box()["width"]
    area.click(position={"x": 64 + 0.25 * (width - 72), "y": 40})
    assert window("cardan.clock.t") == pytest.approx(2.5, abs=0.05)
    assert window.wrong == []


def test_follow_trace_and_layers_in_space(browser: Any, tmp_path: Path) -> None:
    run, path = hanging(), tmp_path / "run.html"
    run.page(path)
    window = Window(browser, path.as_uri())
    assert window("document.title") == run.model.name
    assert not window.tab.is_visible("#flatness")
    window.tab.select_option("#trace", label="frame tip")
    window.tab.wait_for_function("() => cardan.world.ObjectsById[1]")
    window.seek(0.5)
    k = int(np.flatnonzero(run.time == 0.5)[0])
    tip = run.position("tip")[k]
    found = window("cardan.pointNow(cardan.about.points.find((p) => p.name === 'frame tip'))")
    np.testing.assert_allclose(found, tip, atol=1e-5)
    # the spring reaches from its point on the ground to its point on the bar
    matrix = np.reshape(window("cardan.meshes['span/0'].matrix.elements"), (4, 4)).T
    np.testing.assert_allclose(matrix @ (0, 0, 0, 1), (1, 0, 1, 1), atol=1e-6)
    np.testing.assert_allclose(matrix @ (0, 0, 1, 1), (*tip, 1), atol=1e-5)
    # the camera follows a body
    origin = run.position("bar")
    window.tab.select_option("#follow", label="bar")
    target = "cardan.world.controls.target.toArray()"
    window.seek(0.0)
    here = np.array(window(target))
    window.seek(1.0)
    np.testing.assert_allclose(np.array(window(target)) - here, origin[-1] - origin[0], atol=1e-5)
    for layer in window.tab.locator("#layers input").all():
        layer.check()
    window.tab.check("#names")
    assert window("cardan.meshes['frames/0'].visible && cardan.meshes['joint axes/0'] === undefined")
    assert window.tab.locator("#labels span:visible").count() == 2
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
    mechanisms.slider_crank().build().page(path)
    window = Window(browser, path.as_uri())
    assert not window.tab.is_visible("#play")
    assert near(window.picture(), 0x0072B2) > 100
    window.close()
