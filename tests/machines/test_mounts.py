"""The cache on mounts that are full, read-only or gone; `python -m tests.machines.mounts` tries files too."""

import subprocess
import sys
from pathlib import Path

import pytest

from .mounts import CACHE, why_not


def test_cache_on_real_mounts():
    """Every trial, in a name space of its own."""
    if why := why_not():
        pytest.skip(f"name spaces of mounts are not allowed here: {why}")
    command = [sys.executable, "-m", "tests.machines.mounts", "cache"]
    root = Path(__file__).parents[2]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count(": right") == len(CACHE)
