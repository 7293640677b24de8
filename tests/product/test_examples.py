"""Examples run, and the reference page is that of the docstrings."""

import runpy
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.usefixtures("quick_code")

EXAMPLES = [
    pytest.param(path, id=path.stem, marks=pytest.mark.bridges if path.stem[:2] in ("08", "09") else ())
    for path in sorted((ROOT / "examples").glob("*.py"))
    if path.stem != "06_attia_multibranch"  # its page
]


@pytest.mark.parametrize("path", EXAMPLES)
def test_example_runs(
    path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "assert " in path.read_text(encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [str(path)])
    try:
        runpy.run_path(str(path), run_name="__main__")
    except SystemExit as end:
        assert not end.code
    printed = capsys.readouterr().out
    if printed.startswith("skipped: "):
        pytest.skip(printed.removeprefix("skipped: ").strip())


def test_an_example_runs_in_a_process_of_its_own(tmp_path: Path) -> None:
    command = [sys.executable, ROOT / "examples" / "01_two_bodies.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0 and done.stdout, done.stderr


def test_reference_is_up_to_date() -> None:
    made = runpy.run_path(str(ROOT / "docs" / "make_reference.py"))
    pages = made["pages"]()
    assert {made["PAGE"], *made["FOLDER"].iterdir()} == pages.keys(), "run: python docs/make_reference.py"
    for page, text in pages.items():
        assert page.read_text(encoding="utf-8") == text, "run: python docs/make_reference.py"


def test_the_page_of_the_multibranch_example_is_what_it_prints() -> None:
    """The example itself compares its numbers with the other formulations, to 1e-10."""
    made = runpy.run_path(str(ROOT / "docs" / "make_attia.py"))
    assert made["PAGE"].read_text(encoding="utf-8") == made["page"](), "run: python docs/make_attia.py"
