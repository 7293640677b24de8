"""Everything that docs/gpu.md shows is run: blocks marked `py` need a card and one of the libraries."""

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parents[2] / "docs" / "gpu.md"
BLOCK = re.compile(r"^```(python|py)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.usefixtures("card")
@pytest.mark.parametrize("library", ["torch", "cupy", "jax"])
def test_what_is_shown_runs(library: str) -> None:
    pytest.importorskip(library, reason=f"{library} is not installed")
    names: dict = {}
    shown = 0
    for kind, code in BLOCK.findall(PAGE.read_text()):
        if kind == "python" or f"import {library}\n" in code:
            exec(compile(code, str(PAGE), "exec"), names)
            shown += kind == "py"
    assert shown == 1 and "error" not in names and names["a"].shape == (4096, 3)
