"""Everything shown is run: the Python blocks of a page, in order, in one namespace."""

import re
from pathlib import Path
from typing import Any

import pytest

import cardan
from cardan.formulation import registry
from cardan.model import force, joint

pytestmark = pytest.mark.usefixtures("quick_code")

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```python[^\n]*\n(?P<code>.*?)^```[ \t]*$", re.MULTILINE | re.DOTALL)


def run(page: Path, text: str) -> int:
    """Run every Python block of a page; how many there were. Tracebacks name the page and its line."""
    namespace: dict[str, Any] = {"__name__": "__main__"}
    blocks = list(BLOCK.finditer(text))
    for block in blocks:
        above = text.count("\n", 0, block.start("code"))
        exec(compile("\n" * above + block["code"], str(page), "exec"), namespace)
    return len(blocks)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_what_is_shown_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not hasattr(cardan, "__all__") and not (ROOT / "src" / "cardan" / "cli.py").exists():
        pytest.skip("cardan exports nothing yet")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(joint, "ADDED_TYPES", {})  # what a page registers is forgotten afterwards
    monkeypatch.setattr(force, "ADDED_FORCES", {})
    monkeypatch.setattr(registry, "ADDED", {})
    count = run(page, page.read_text())
    assert count or page != ROOT / "README.md", "the README shows no Python"


def test_blocks_share_a_namespace_and_may_fail() -> None:
    page = Path("a.md")
    assert run(page, "# A\n```python\nx = 1\n```\n```sh\nls\n```\n```python\nassert x == 1\n```\n") == 2
    with pytest.raises(ZeroDivisionError) as error:
        run(page, "# A\n\n```python\n1 / 0\n```\n")
    assert error.traceback[-1].lineno == 3  # counted from 0
