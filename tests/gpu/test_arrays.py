"""Arrays of other libraries on a card: the tests of `arrays_of_libraries.py`, each library in a process of its own.

Several CUDA libraries in one process share the card's context; what one breaks would be seen in another.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.usefixtures("card")
TESTS = Path(__file__).with_name("arrays_of_libraries.py")


@pytest.mark.parametrize("library", ["torch", "cupy", "jax", "numba", "warp", "DeviceArray", "mixtures"])
def test_arrays_of(library: str, capsys: pytest.CaptureFixture[str]) -> None:
    command = [sys.executable, "-X", "faulthandler", "-m", "pytest", "-p", "no:cacheprovider", "-v", "-rs", str(TESTS)]
    environment = os.environ | {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
    done = subprocess.run(
        [*command, "-k", library], capture_output=True, text=True, env=environment, timeout=300, check=False
    )
    said = f"{done.stdout}\n{done.stderr[-4000:]}"
    assert done.returncode == 0, said[-12_000:]
    with capsys.disabled():
        print("".join(f"\n  {line.strip()}" for line in done.stdout.splitlines() if re.search(r": [0-9.]+ us$", line)))
    if " passed" not in done.stdout:
        pytest.skip(next((line for line in done.stdout.splitlines() if line.startswith("SKIPPED")), "nothing ran"))
