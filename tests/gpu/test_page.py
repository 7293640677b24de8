"""Everything that docs/gpu.md shows is run: blocks marked `py` need a card and one of the libraries."""

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parents[2] / "docs" / "gpu.md"
BLOCK = re.compile(r"^```(python|py)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


HAS_CARD = {
    "torch": lambda torch: torch.cuda.is_available(),
    "cupy": lambda cupy: cupy.cuda.is_available(),
    "jax": lambda jax: jax.default_backend() == "gpu",
}


@pytest.mark.usefixtures("card")
@pytest.mark.parametrize("library", ["torch", "cupy", "jax", ""])
def test_what_is_shown_runs(library: str) -> None:
    """With each library; without one, what NumPy's arrays do."""
    if library:
        module = pytest.importorskip(library, reason=f"{library} is not installed")
        if not HAS_CARD[library](module):
            pytest.skip(f"{library} is installed without CUDA")
    names: dict = {}
    shown = 0
    for kind, code in BLOCK.findall(PAGE.read_text()):
        mine = f"import {library}\n" in code if library else not re.match("import ", code)
        if kind == "python" or mine:
            exec(compile(code, str(PAGE), "exec"), names)
            shown += kind == "py"
    assert shown == (1 if library else 2) and "error" not in names
    assert names["a"].shape == (4096, 3)
