"""Tests that need a card: each takes the fixture `card`, which skips it with the reason where there is none."""

import datetime
import os
import platform

import numpy as np
import pytest

from cardan.errors import CardanError
from cardan.machines.cuda import driver, report

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # JAX would take most of the card's memory


@pytest.fixture(scope="session")
def card() -> driver.Card:
    """The first card of this machine."""
    try:
        return driver.card(0)
    except CardanError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def torch(card: driver.Card):
    """The library torch, if it can use the card."""
    module = pytest.importorskip("torch", reason="torch is not installed")
    if not module.cuda.is_available():
        pytest.skip("torch is installed without CUDA")
    return module


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say when and on which card the tests ran; docs/make_gpu.py puts this into docs/gpu.md."""
    if any("tests/gpu/" in done.nodeid for done in terminalreporter.stats.get("passed", [])):
        import llvmlite

        now = f"{datetime.datetime.now(datetime.UTC):%Y-%m-%d %H:%M} UTC"
        versions = f"Python {platform.python_version()}, NumPy {np.__version__}, llvmlite {llvmlite.__version__}"
        terminalreporter.write_line(f"{now}; {versions}\n{report.report()}")
