"""The speeds in README.md and docs/comparison.md are those that benchmarks/RESULTS.md measured."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RESULTS = (ROOT / "benchmarks/RESULTS.md").read_text()
# Rows of the comparison, and how the row with its figure begins; the figure is the last one with an x before the end.
ROWS = {
    "forward dynamics, Panda, batch, one thread": "Panda, forward: batch, times `pin.abaInParallel`",
    "forward dynamics, Talos, batch, one thread": "Talos, forward: batch, times `pin.abaInParallel`",
    "inverse dynamics, ANYmal, batch, one thread": "ANYmal, inverse: batch, times `pin.rneaInParallel`",
    "four-bar with its loop, one thread": "four-bar, forward, one thread: times `pin.constraintDynamics`",
    "Andrews' mechanism, one run to 1e-6, compiling left out": "Andrews, one run to 1e-06",
    "slider-crank, one run to 1e-5, compiling left out": "slider-crank, one run to 1e-05",
    "forty four-bars, 20 s to 1e-3, compiling left out": "A02 40, one run to 0.001",
    "4,096 four-bars, 1,000 Runge-Kutta steps, one thread": "four-bar, batch of RK4 steps, one thread",
    "forward dynamics, Panda, one call from Python": "Panda, forward: one call from Python",
    "inverse dynamics, Panda, one call from Python": "`pin.rnea`",
    "mass matrix, Panda, one call from Python": "`pin.crba`",
}


def measured(begin: str) -> float:
    """The ratio in RESULTS.md: of a target, or of Panda's row in the table of single calls of a function."""
    if begin.startswith("`"):
        table = RESULTS[RESULTS.index(f"| robot | Cardan | least | bound | {begin} |") :]
        return float(re.search(r"\n\| Panda \|.*?([\d.]+)x", table)[1])
    return float(re.search(rf"\n\| {re.escape(begin)}.*\| ([\d.]+)x \| yes \|", RESULTS)[1])


def agrees(stated: str, exact: float) -> bool:
    """Whether a number as written is the exact one, rounded to its digits."""
    unit = 10.0 ** -len(stated.partition(".")[2])
    return abs(float(stated) - exact) <= 0.5001 * unit


def test_the_comparison_has_the_figures_that_were_measured() -> None:
    rows = dict(re.findall(r"\n\| ([^|]+) \| [^|]+ \| ([\d.]+)x \|", (ROOT / "docs/comparison.md").read_text()))
    assert rows.keys() == ROWS.keys()
    assert {
        name: measured(ROWS[name]) for name, stated in rows.items() if not agrees(stated, measured(ROWS[name]))
    } == {}


@pytest.mark.parametrize("page", ["README.md", "docs/index.md"])
def test_the_front_pages_have_the_figures_that_were_measured(page: str) -> None:
    stated = re.findall(r"\*\*(\d+) times\*\*", (ROOT / page).read_text())
    exact = measured("Panda, forward: batch, times `pin.abaInParallel`"), measured("Andrews, one run to 1e-06")
    assert all(agrees(one, other) for one, other in zip(stated, exact, strict=True)), exact
