"""Everything shown is run: the Python blocks of a page, in order, in one namespace; they print what is shown."""

import contextlib
import io
import re
from pathlib import Path
from typing import Any

import pytest

import cardan
from cardan.formulation import registry
from cardan.model import constraint_table, force, joint

pytestmark = pytest.mark.usefixtures("quick_code")

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(
    r"^```python[^\n]*\n(?P<code>.*?)^```[ \t]*$(?:\n\n```output\n(?P<output>.*?)^```[ \t]*$)?",
    re.MULTILINE | re.DOTALL,
)
FIGURE = re.compile(r"\]\(figures/(?P<name>[\w-]+)_(?P<file>[a-z-]+\.png)\)")
NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?", re.IGNORECASE)


def run(page: Path, text: str) -> int:
    """Run every Python block of a page; how many there were. Tracebacks name the page and its line."""
    namespace: dict[str, Any] = {"__name__": "__main__"}
    blocks = list(BLOCK.finditer(text))
    for block in blocks:
        above = text.count("\n", 0, block.start("code"))
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile("\n" * above + block["code"], str(page), "exec"), namespace)
        if block["output"] is not None:
            wrong = difference(printed.getvalue(), block["output"])
            assert not wrong, f"{page}:{above + 1}: {wrong}; run python docs/make_tutorials.py {page.name}"
    return len(blocks)


def difference(printed: str, shown: str) -> str:
    """Where two texts differ: words must be equal, numbers to one unit of the last digit.

    Differences below 1e-8 are errors of methods; counts from a hundred, as those of steps, may differ by a tenth from
    processor to processor.
    """
    if NUMBER.sub("#", printed).split() != NUMBER.sub("#", shown).split():
        return f"prints {printed!r} and shows {shown!r}"
    for x, y in zip(NUMBER.findall(printed), NUMBER.findall(shown), strict=True):
        digits, _, exponent = y.lower().partition("e")
        unit = 10.0 ** (int(exponent or 0) - len(digits.partition(".")[2]))
        count = abs(float(y)) >= 100 and digits.isdigit()
        if abs(float(x) - float(y)) > max(1.01 * unit, 1e-8, 0.1 * float(y) if count else 0.0):
            return f"prints {x} and shows {y}"
    return ""


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_what_is_shown_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not hasattr(cardan, "__all__") and not (ROOT / "src" / "cardan" / "cli.py").exists():
        pytest.skip("cardan exports nothing yet")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(joint, "ADDED_TYPES", {})  # what a page registers is forgotten afterwards
    monkeypatch.setattr(force, "ADDED_FORCES", {})
    monkeypatch.setattr(constraint_table, "ADDED_CONSTRAINTS", {})
    monkeypatch.setattr(registry, "ADDED", {})
    count = run(page, page.read_text())
    assert count or page != ROOT / "README.md", "the README shows no Python"
    for name, file in FIGURE.findall(page.read_text()):
        assert name != page.stem or (tmp_path / file).exists(), f"no block writes {file}"


def test_blocks_share_a_namespace_and_may_fail() -> None:
    page = Path("a.md")
    assert run(page, "# A\n```python\nx = 1\n```\n```sh\nls\n```\n```python\nassert x == 1\n```\n") == 2
    with pytest.raises(ZeroDivisionError) as error:
        run(page, "# A\n\n```python\n1 / 0\n```\n")
    assert error.traceback[-1].lineno == 3  # counted from 0


@pytest.mark.parametrize(
    ("printed", "shown", "wrong"),
    [
        ("peak 3.14 N m", "peak 3.14 N m", ""),
        ("peak 3.15 N m", "peak 3.14 N m", ""),  # the last digit may differ
        ("peak 3.24 N m", "peak 3.14 N m", "prints 3.24 and shows 3.14"),
        ("peak 3.14 N", "peak 3.14 N m", "prints 'peak 3.14 N'"),
        ("drift 3e-09 J", "drift 5e-10 J", ""),  # next to nothing
        ("drift 3e-06 J", "drift 1e-06 J", "prints 3e-06 and shows 1e-06"),
        ("752 steps", "754 steps", ""),
        ("652 steps", "754 steps", "prints 652 and shows 754"),
        ("[ 1.0  2.0]", "[1.0 2.0]", "prints '[ 1.0"),
    ],
)
def test_an_output_that_is_stale_is_found(printed: str, shown: str, wrong: str) -> None:
    assert difference(printed, shown).startswith(wrong) and bool(difference(printed, shown)) == bool(wrong)
