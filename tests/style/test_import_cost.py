"""`import cardan` is cheap: heavy parts come when they are used."""

import subprocess
import sys

LIMIT = 0.3  # s
HEAVY = {"casadi", "llvmlite", "scipy", "typer", "matplotlib"}
PROBE = """
import sys, time
start = time.perf_counter()
import {module}
print(time.perf_counter() - start, *sorted({{name.partition(".")[0] for name in sys.modules}}))
"""


def probe(module: str) -> tuple[float, set[str]]:
    """Seconds to import a module in a fresh process, and the top-level modules that are then present."""
    command = [sys.executable, "-c", PROBE.format(module=module)]
    seconds, *present = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    return float(seconds), set(present)


def test_import_is_quick() -> None:
    assert min(probe("cardan")[0] for _ in range(5)) < LIMIT


def test_import_leaves_heavy_parts_alone() -> None:
    _, present = probe("cardan")
    assert "cardan" in present
    assert present & HEAVY == set()


def test_the_probe_sees_a_heavy_module() -> None:
    assert "llvmlite" in probe("llvmlite.binding")[1]
