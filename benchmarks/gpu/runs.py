"""Runs with RK4 on the card: compared with the CPU's, then steps a second; and how well loops stay closed."""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np

import cardan as cd
from benchmarks.gpu.card import Watch, watching
from benchmarks.gpu.rates import Kernel, kernel_facts
from benchmarks.gpu.work import SMALL, STEP, Robots, Steps
from benchmarks.report import Run
from benchmarks.tables import NONE, number, scientific, table

COMPARED = 256  # systems that the CPU runs too
LONG = 10.0  # s, of the run after which the gap of a loop is looked at
GAP = {"float32": 1e-6, "float64": 1e-12}  # m


@dataclass(frozen=True)
class RunRate:
    """Steps a second of the kernels and of the whole call with NumPy arrays; the difference from the CPU's run."""

    kernel: float
    call: float
    difference: float
    steps: int


def simulate(model: cd.Model, q: np.ndarray, v: np.ndarray, steps: int, precision: str, device: str) -> cd.Trajectory:
    """Runs from many states with a fixed step; only the start and the end are kept."""
    options: dict[str, Any] = {} if precision == "float64" else {"precision": precision}
    if device != "cpu":
        options["device"] = device
    return cd.simulate(
        model, steps * STEP, q, v, method="rk4", step=STEP, samples=2, progress=False, **options,
    )  # fmt: skip


def _seconds(watch: Watch) -> float:
    return sum(launch.seconds for launch in watch.launches)


def measure(run: Run, robots: Robots, chosen: Steps, precision: str, rows: int) -> tuple[RunRate, Kernel]:
    """Compare some systems with the CPU's run, then time."""
    model, steps = robots.model(chosen.robot), chosen.steps[rows] if not run.quick else 20
    q, v = robots.starts(chosen.robot, rows)
    with watching() as first:
        found = simulate(model, q[:COMPARED], v[:COMPARED], steps, precision, "gpu")
    wanted = simulate(model, q[:COMPARED], v[:COMPARED], steps, precision, "cpu")
    difference = float(np.abs(np.asarray(found.q)[:, -1] - np.asarray(wanted.q)[:, -1]).max())
    if not difference < 1.0:
        raise RuntimeError(f"the run differs from the CPU's by {difference:.1e}")
    longest = max(first.launches, key=lambda launch: launch.seconds)
    facts = kernel_facts(chosen.title, precision, longest, first)
    start = perf_counter()
    with watching() as watch:
        simulate(model, q, v, steps, precision, "gpu")
    taken = perf_counter() - start
    return RunRate(rows * steps / _seconds(watch), rows * steps / taken, difference, steps), facts


HEAD = (
    "work",
    "precision",
    "systems",
    "steps",
    "Cardan, kernels",
    "Cardan, whole call",
    "difference from the CPU, rad",
)


def row(run: Run, chosen: Steps, precision: str, rows: int, rate: RunRate) -> list[str]:
    """A line of the table, and its target."""
    goal = chosen.goals.get((precision, rows))
    if goal is not None:
        run.at_least(f"{chosen.title}, {precision}: a second", goal, rate.kernel, lambda x: f"{x:.3g}")
    return [
        chosen.title, precision, f"{rows:,}", f"{rate.steps:,}", f"{rate.kernel:.3g}", f"{rate.call:.3g}",
        scientific(rate.difference) if rate.difference else "0, same bits",
    ]  # fmt: skip


def gap(robots: Robots, precision: str, device: str) -> float:
    """Largest distance of the points that a four-bar's loop joins after 10 s, m, of a batch, computed in float64."""
    model = robots.model("four-bar")
    q, v = robots.starts("four-bar", SMALL)
    run = simulate(model, q, v, round(LONG / STEP), precision, device)
    residual = cd.constraint_residual(model, np.asarray(run.q, float)[:, -1])
    return float(np.abs(residual).max())


def loops(run: Run, robots: Robots, peers: dict[str, float]) -> str:
    """The gap of a loop after a long run, and that of the other programs."""
    rows = []
    for precision in ("float32", "float64"):
        with run.step(f"gpu loop gap {precision}"):
            found = gap(robots, precision, "gpu")
            run.below(f"four-bar, gap after 10 s, {precision}, m", GAP[precision], found, scientific)
            rows.append((f"Cardan, {precision}", scientific(found)))
    rows += [(name, scientific(value)) for name, value in peers.items()]
    return (
        f"## Gap of a loop\n\nA four-bar, {SMALL:,} systems, RK4 with steps of {STEP:g} s: largest gap of the loop "
        f"after {LONG:g} s, m. The other programs hold loops by springs and dampers.\n\n"
        + table(("program", "gap"), rows)
        + "\n"
    )


def kernels_text(kernels: list[Kernel]) -> str:
    """What the driver made of the kernels."""
    head = ("kernel", "precision", "registers", "local bytes a thread", "lines of PTX", "LLVM, s", "driver, s")
    rows = [
        (
            k.title, k.precision, f"{k.registers}", f"{k.local:,}", f"{k.lines:,}",
            NONE if k.llvm is None else number(k.llvm), NONE if k.driver is None else number(k.driver),
        )
        for k in kernels
    ]  # fmt: skip
    return (
        "## Kernels\n\nRegisters of 4 bytes and memory of a thread (what does not fit the registers), and the time to "
        "make the code without a cache.\n\n" + table(head, rows, text_columns=2) + "\n"
    )
