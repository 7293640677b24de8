"""`make test` says the same everywhere: its random examples depend on nothing but the test itself."""

import subprocess
import sys
from pathlib import Path

DRAW = """
from hypothesis import given, settings, strategies as st
{imports}
DRAWN = []

@settings(max_examples=300)
@given(x=st.floats(), n=st.integers())
def test_draw(x, n):
    DRAWN.append((x, n))

def test_print():
    print("DRAWN", hash(repr(DRAWN)), len(DRAWN))
"""


def drawn(folder: Path, imports: str, *arguments: str) -> str:
    """What a fresh pytest with this project's conftest draws, after the imports."""
    root = Path(__file__).parents[1]
    (folder / "conftest.py").write_text((root / "conftest.py").read_text())
    (folder / "test_draw.py").write_text(DRAW.format(imports=imports))
    command = [sys.executable, "-m", "pytest", "-s", "-q", "-p", "no:cacheprovider"]
    command += ["-p", "_hypothesis_pytestplugin", *arguments, str(folder)]
    words = {"PYTHONHASHSEED": "0", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}  # others take as long to load as all else
    done = subprocess.run(command, cwd=folder, env=words, capture_output=True, text=True, check=True)
    return next(line for line in done.stdout.splitlines() if "DRAWN" in line)


def test_the_examples_do_not_depend_on_the_modules_loaded(tmp_path: Path) -> None:
    """The source is local to the project, so by default Hypothesis would draw its constants."""
    bare = drawn(tmp_path, "")
    assert bare == drawn(tmp_path, "import cardan.model.joint, cardan.integrate.alpha.step")


def test_a_search_draws_anew(tmp_path: Path) -> None:
    """The profile of `make search` is another."""
    search = "--hypothesis-profile=search"
    assert drawn(tmp_path, "", search) != drawn(tmp_path, "", search)
