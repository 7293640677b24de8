"""The site builds without a warning and without the network, every page is in it, and formulas are formulas."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from cardan.mechanisms import CATALOGUE

from .test_page import browser as browser

pytest.importorskip("material", reason="the site needs mkdocs-material: pip install 'cardan[docs]'")

ROOT = Path(__file__).resolve().parents[2]
REMOTE = re.compile(r'<(?:script|link|img|iframe|source)\b[^>]*\b(?:src|href)="(?:https?:)?//[^"]*"')


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built as `make docs` does."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    quiet = {**os.environ, "NO_MKDOCS_2_WARNING": "1", "CARDAN_GALLERY": ""}  # without its pages, for time
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, env=quiet)
    assert built.returncode == 0 and not built.stderr, built.stdout + built.stderr
    return folder


def test_every_page_is_there(site: Path) -> None:
    for page in (ROOT / "docs").rglob("*.md"):
        built = site / page.relative_to(ROOT / "docs").with_suffix(".html")
        assert built.exists() or (page.name == "README.md" and built.with_name("index.html").exists()), page


def test_nothing_is_fetched(site: Path) -> None:
    found = {m[0] for page in site.rglob("*.html") for m in REMOTE.finditer(page.read_text())}
    assert not found
    assert REMOTE.search('<script src="https://cdn.example/katex.js">')


def test_search_works_from_the_file_system(site: Path, browser: Any) -> None:
    tab = browser.new_page()
    asked: list[str] = []
    tab.on("request", lambda request: asked.append(request.url))
    tab.goto((site / "sources" / "f6.html").as_uri())
    tab.keyboard.press("/")
    tab.keyboard.type("undetermined_reactions")
    found = tab.locator(".md-search-result__link").first
    found.wait_for(timeout=20_000)
    assert "cd.undetermined_reactions" in tab.locator(".md-search-result__item").first.inner_text()
    assert found.get_attribute("href", timeout=20_000).partition("#")[0].endswith("reference/loops.html")
    assert all(url.startswith(("file" + ":", "about:", "data:")) for url in asked)
    tab.close()


def test_formulas_are_mathematics(site: Path) -> None:
    page = (site / "sources" / "f6.html").read_text()
    assert page.count("<math") > 15
    for built in site.rglob("*.html"):
        assert 'class="arithmatex"' not in built.read_text(), built.name


def test_source_is_shown_beside_its_equations(site: Path) -> None:
    page = (site / "sources" / "f6.html").read_text()
    target = re.search(r'href="([^"]*f6\.py\.html)"', page)
    assert target is not None
    assert "articulated_inertia" in (site / "sources" / target[1]).resolve().read_text()


def test_live_pages_are_there_and_linked(site: Path) -> None:
    for source in ("f6", "f3", "fx", "kj", "at"):
        assert f'href="../live/{source}.html"' in (site / "sources" / f"{source}.html").read_text()
        assert "export function" in (site / "live" / f"{source}.html").read_text()


def test_the_gallery_has_a_picture_and_a_file_for_each_mechanism(site: Path) -> None:
    page = (site / "gallery.html").read_text()
    for name in CATALOGUE:
        assert f'src="figures/gallery/{name}.png"' in page, f"run python docs/make_gallery.py {name}"
        assert (site / "figures" / "gallery" / f"{name}.png").exists()
        assert f"mechanisms/{name}.yaml.html" in page
    assert len(CATALOGUE) >= 30


def test_the_front_pages_say_the_same() -> None:
    """README and site: the same picture, the same lines (run with the README), and numbers of the benchmarks."""
    readme, front = ((ROOT / name).read_text() for name in ("README.md", "docs/index.md"))
    lines = re.search(r"^```python\n(.*?)^```", readme, re.MULTILINE | re.DOTALL)
    assert lines is not None and len(lines[1].strip().splitlines()) <= 12
    assert f"```py\n{lines[1]}```" in front
    table = (ROOT / "docs" / "comparison.md").read_text()
    for page in (readme, front):
        assert "figures/engine.gif" in page
        numbers = re.findall(r"\*\*(\d+) times\*\*", page)
        assert len(numbers) == 2 and all(f"| {number}x |" in table for number in numbers)
