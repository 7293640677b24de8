"""Pages of the sources in a real browser: offline, on a phone, by keyboard, and number for number like the kernels."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cardan as cd
from cardan.machines.ufunc.kernel import compile_program
from cardan.textbook.pages import PAGES, recorded
from cardan.textbook.pages.html import page_html
from cardan.textbook.pages.sheet import Sheet

from ..machines.javascript import open_browser

pytest.importorskip("latex2mathml", reason="pages need latex2mathml: pip install 'cardan[symbols]'")
pytestmark = pytest.mark.usefixtures("quick_code")
NUMBERED = {
    "F6": [f"F6({k})" for k in range(1, 8)],
    "F3": [f"F3({k})" for k in range(1, 27)],
    "FX": [f"FX({x})" for x in ("A1", "A2", "A3", "A4", "B1", "B2", "B3", "B4", "C1")],
    "KJ": [f"KJ({k})" for k in range(1, 17)],
    "AT": [f"AT({k})" for k in range(1, 13)],
}


@cache
def kernel(source: str) -> Any:
    return compile_program(recorded(source).program(source))


def wrong_sheet() -> Sheet:
    """A page whose forms differ, by 0.5 in 2."""
    sheet = Sheet(title="wrong </script>")
    x = sheet.slider("x", "x", "a number", "m", 0.0, 3.0, 1.5, 0.5)
    sheet.compare("both", "Two forms", "m", {"right": x, "wrong": x + 0.5})
    return sheet


class Tab:
    """A page in a browser without a network, and what went wrong in it."""

    def __init__(self, context: Any, source: str, folder: Path) -> None:
        path = self.path = folder / f"{source}.html"
        if source in PAGES:
            self.sheet = recorded(source)
            cd.textbook.page(source, path)
        else:
            self.sheet = wrong_sheet()
            path.write_text(page_html(source, self.sheet, "no source"), encoding="utf-8")
        self.tab = context.new_page()
        self.wrong: list[str] = []
        self.asked: list[str] = []
        self.tab.on("console", lambda m: self.wrong.append(m.text) if m.type in ("error", "warning") else None)
        self.tab.on("pageerror", lambda error: self.wrong.append(str(error)))
        self.tab.on("request", lambda request: self.asked.append(request.url))
        self.tab.goto(path.as_uri())
        self.tab.wait_for_selector("body[data-ready]", state="attached", timeout=20_000)

    def __call__(self, script: str, value: Any = None) -> Any:
        return self.tab.evaluate(script, value)

    def set(self, values: list[float]) -> tuple[np.ndarray, np.ndarray]:
        """Move the sliders; their values, rounded to their steps, and all numbers of the page."""
        given, y = self("x => { cardan.set(x); return [cardan.given, Array.from(cardan.y)]; }", values)
        return np.array(given, dtype=float), np.array(y, dtype=float)

    def random(self, rng: np.random.Generator) -> tuple[dict[str, float], dict[str, np.ndarray]]:
        """Random values of the sliders for which the rules hold: those values, and the page's numbers by key."""
        while True:
            given, y = self.set([float(rng.uniform(s.low, s.high)) for s in self.sheet.sliders])
            if not self("cardan.broken.length"):
                return dict(zip((s.name for s in self.sheet.sliders), given, strict=True)), self.sheet.split(y)


@pytest.fixture(scope="module")
def tabs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Tab]]:
    """All pages, opened once."""
    folder = tmp_path_factory.mktemp("pages")
    with open_browser() as browser:
        context = browser.new_context(viewport={"width": 390, "height": 800}, offline=True)
        yield {source: Tab(context, source, folder) for source in (*PAGES, "wrong")}


@pytest.mark.parametrize("source", PAGES)
def test_numbers_are_those_of_the_kernel(tabs: dict[str, Tab], source: str) -> None:
    """At random positions of the sliders: 1e-12 of the largest entry of each value; and all forms agree."""
    tab, rng = tabs[source], np.random.default_rng(7)
    for _ in range(5):
        given, found = tab.random(rng)
        wanted = tab.sheet.split(kernel(source)(np.array(list(given.values()))))
        for key, value in found.items():
            size = 1e-12 * max(float(np.abs(wanted[key]).max()), 1.0)
            np.testing.assert_allclose(value, wanted[key], rtol=1e-12, atol=size, err_msg=f"{source} {key} at {given}")
        for one in tab.sheet.comparisons:
            assert found[one.difference] < 1e-10, f"{one.title} at {given}"
        text = tab("document.body.innerText")
        assert "They differ" not in text and not re.search("NaN|Infinity|undefined|not defined", text)


@pytest.mark.parametrize("source", PAGES)
def test_forms_agree_wherever_the_sliders_are(source: str) -> None:
    """Without a browser, at 2,000 positions, of which half have some sliders at their ends."""
    sheet, rng = recorded(source), np.random.default_rng(11)
    low, high, step = (np.array([getattr(s, name) for s in sheet.sliders]) for name in ("low", "high", "step"))
    part = rng.uniform(size=(2000, len(low)))
    part[::2] = np.where(rng.uniform(size=part[::2].shape) < 0.5, np.round(part[::2]), part[::2])
    y = sheet.split(kernel(source)(low + np.round(part * (high - low) / step) * step))
    held = np.all([y[rule.key] > 0 for rule in sheet.rules], axis=0) | np.zeros(2000, bool)
    assert held.mean() > 0.9
    for key, value in y.items():
        assert np.isfinite(value[held]).all(), key
    for one in sheet.comparisons:
        assert y[one.difference][held].max() < 1e-10, one.title


@pytest.mark.parametrize("source", PAGES)
def test_a_page_is_small_complete_and_alone(tabs: dict[str, Tab], source: str) -> None:
    tab, text = tabs[source], tabs[source].path.read_text(encoding="utf-8")
    assert len(text.encode()) < 300_000 and not re.search(r"https?:|\bsrc=|@import|<link", text)
    shown = set(tab("[...document.querySelectorAll('.number')].map(b => b.textContent)"))
    assert set(NUMBERED[source]) <= shown
    assert tab("document.querySelectorAll('math').length") > 3 * len(NUMBERED[source])
    assert tab("document.querySelectorAll('merror').length") == 0
    assert tab("document.documentElement.scrollWidth") <= 390
    labels = tab("[...document.querySelectorAll('input')].map(i => [i.labels.length, i.getAttribute('aria-label')])")
    assert len(labels) == len(tab.sheet.sliders) and all(n == 1 and label for n, label in labels)
    assert tab("figure => document.querySelectorAll('#figure path').length") > 4
    assert tab.wrong == [] and all(url.startswith("file:") for url in tab.asked)


def test_a_slider_by_keyboard_moves_numbers_and_figure(tabs: dict[str, Tab]) -> None:
    tab = tabs["F6"]
    tab.tab.bring_to_front()  # a page in the background is drawn once a second
    tab.tab.click("#reset")
    before = tab("[cardan.values['F6(7) a1'][0], document.getElementById('figure').innerHTML]")
    tab.tab.focus("#l2")
    for _ in range(5):
        tab.tab.keyboard.press("ArrowRight")
    slider = next(s for s in tab.sheet.sliders if s.name == "l2")
    assert tab("document.getElementById('l2.now').textContent") == f"{slider.start + 5 * slider.step:.4g} m"
    after = tab("[cardan.values['F6(7) a1'][0], document.getElementById('figure').innerHTML]")
    assert before[0] != after[0] and before[1] != after[1]
    figure = tab("document.getElementById('figure').innerHTML")
    tab.tab.focus("#figure")
    tab.tab.keyboard.press("ArrowLeft")
    assert tab("document.getElementById('figure').innerHTML") != figure
    tab.tab.click("#reset")
    assert tab("cardan.values['F6(7) a1'][0]") == before[0]


def test_forms_that_differ_are_told(tabs: dict[str, Tab]) -> None:
    tab = tabs["wrong"]
    assert tab("cardan.values['both difference']") == 0.25
    assert "They differ: largest difference 0.2500" in tab("document.body.innerText")
    assert tab("document.querySelector('.verdict').classList.contains('bad')") and tab.wrong == []
    assert tab("document.title") == "wrong </script>"


def test_impossible_particles_are_told(tabs: dict[str, Tab]) -> None:
    """Where m3 |r3|^2 = I0 particle 2 is at infinity: a sentence, and no number."""
    tab = tabs["AT"]
    tab.tab.bring_to_front()
    start = {s.name: s.start for s in tab.sheet.sliders} | {
        "m": 2.0,
        "gx": 0.0,
        "gy": 0.3,
        "k": 0.4,
        "d": 0.5,
        "m3": 2.0,
    }
    tab.set(list(start.values()))
    assert "particle 2 would be at infinity" in tab("document.getElementById('told').textContent")
    text = tab("document.body.innerText")
    assert "not defined for these values" in text and "They agree" not in text
    assert not re.search("NaN|Infinity|undefined", text)
    tab.tab.click("#reset")
    assert tab("document.getElementById('told').textContent") == ""
    assert tab.wrong == []


# The same numbers by the public functions, on models that are built here from what the page shows.


def rigid(I: np.ndarray) -> dict[str, Any]:
    """Mass, centre of mass and inertia about it of a 6x6 inertia."""
    m, mc = I[5, 5], np.array([I[2, 4], I[0, 5], I[1, 3]])
    c = mc / m
    return {"mass": m, "com": c, "inertia": I[:3, :3] - m * (c @ c * np.eye(3) - np.outer(c, c))}


def close(found: Any, wanted: Any) -> None:
    wanted = np.asarray(wanted)
    np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-12 * max(float(np.abs(wanted).max()), 1.0))


def test_two_bodies_by_the_public_functions(tabs: dict[str, Tab]) -> None:
    _, y = tabs["F6"].random(np.random.default_rng(1))
    I1, I2, s, f = (y[key] for key in ("inertia of B1", "inertia of B2", "axis of the hinge", "force on B1"))
    close(y["F6(7) a1"], cd.textbook.F6_7(I1, I2, s, f))
    m = cd.Mechanism("two", gravity=(0, 0, 0))
    m.body("B1", **rigid(I1))
    m.body("B2", **rigid(I2))
    m.joint("root", cd.Free(), m.ground, "B1")
    m.joint("hinge", cd.Revolute(axis=s[:3]), "B1", "B2")
    model = m.build()
    load = np.stack([f, np.zeros(6)])
    for formulation in ("spatial", "absolute"):
        a = cd.forward_dynamics(model, model.neutral(), np.zeros(7), wrenches=load, formulation=formulation)
        found = np.r_[y["F6(7) a1"], y["F6(6) alpha"]]
        np.testing.assert_allclose(found, a, rtol=1e-11, atol=1e-11 * np.abs(a).max())  # the model's own frames
    _, y = tabs["F3"].random(np.random.default_rng(2))
    close(y["F3(26) motion"], cd.textbook.F3_26(*(y[f"F3(26) {x}"] for x in "ABCD"), y["force"], y["couple"]))


def test_one_body_by_the_public_functions(tabs: dict[str, Tab]) -> None:
    _, y = tabs["FX"].random(np.random.default_rng(3))
    m = cd.Mechanism("one", gravity=(0, 0, 0))
    m.body("body", **rigid(y["inertia about O"]))
    m.joint("root", cd.Free(), m.ground, "body")
    model = m.build()
    close(np.r_[y["FX(A1) h_O"], y["FX(A1) h"]], cd.momentum(model, model.neutral(), y["velocity"]))
    close(y["FX(A2) I_Binv"], cd.inverse_mass_matrix(model, model.neutral()))


def test_joints_by_the_public_functions(tabs: dict[str, Tab]) -> None:
    given, y = tabs["KJ"].random(np.random.default_rng(4))
    R1, R2, q, r = y["rotation of B1"].T, y["rotation of B2"].T, y["from G1 to the joint"], y["from the joint to G2"]
    m = cd.Mechanism("two", gravity=(0, 0, 0))
    for name in ("B1", "B2"):
        m.body(name, mass=1.0, inertia=(0.3, 0.4, 0.5))
    m.joint("root", cd.Free(), m.ground, "B1")
    m.joint("ball", cd.Spherical(), "B1", "B2", at=q, child_at=-r)
    eq = cd.equations(m.build(), formulation="absolute")
    poses = np.zeros((2, 4, 4))
    poses[:, 3, 3] = 1
    poses[0, :3, :3], poses[1, :3, :3] = R1, R2
    poses[1, :3, 3] = R1 @ q + R2 @ r + given["gap"] * np.array([0.6, 0, 0.8])
    state, _ = eq.project(poses, np.zeros((2, 6)))
    close(y["KJ(1) distance"], R2 @ eq.phi(state))


def test_a_plate_by_the_public_functions(tabs: dict[str, Tab]) -> None:
    given, y = tabs["AT"].random(np.random.default_rng(5))
    g = dict(given)
    rG, m = np.array([g["gx"], g["gy"]]), cd.Mechanism("plate", gravity=(0, 0, 0))
    m.body("plate", mass=g["m"], com=(*rG, 0), inertia=np.eye(3) * g["m"] * g["k"] ** 2)
    m.joint("plane", cd.Planar(), m.ground, "plate")
    model, theta = m.build(), np.radians(g["theta"])
    turn = np.array([[np.cos(theta), -np.sin(theta)], [np.sin(theta), np.cos(theta)]])
    force = turn.T @ (g["Rx"], g["Ry"])
    load = np.array([[0, 0, g["couple"] + rG[0] * force[1] - rG[1] * force[0], *force, 0]])
    state = np.array([0, 0, theta]), np.array([g["vx"], g["vy"], g["w"]])
    for formulation in ("spatial", "points"):
        a = cd.forward_dynamics(model, *state, wrenches=load, formulation=formulation)
        r31 = turn @ (g["d"], 0)
        a3 = a[:2] + a[2] * np.array([-r31[1], r31[0]]) - g["w"] ** 2 * r31
        close(y["AT(10)-(12) four"], np.r_[a[:2], a3])


def test_what_cannot_be_written_is_refused(tmp_path: Path) -> None:
    with pytest.raises(cd.UnknownNameError, match="'F7' is not one of F6, F3, FX, KJ, AT"):
        cd.textbook.page("F7", tmp_path / "a.html")
    with pytest.raises(cd.InputError, match="source must be one of"):
        cd.textbook.page(6, tmp_path / "a.html")  # type: ignore[arg-type]
    with pytest.raises(cd.FileError, match="cannot be written"):
        cd.textbook.page("F6", tmp_path / "no" / "a.html")
    assert not list(tmp_path.iterdir())
    cd.textbook.page("F6", tmp_path / "a.html")
    with pytest.raises(cd.FileError, match="there is such a file already"):
        cd.textbook.page("F6", tmp_path / "a.html")
