"""Runs with RK4 on the card: compared with the CPU's, then steps a second; and how well loops stay closed."""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np

import cardan as cd
from benchmarks.gpu.card import Launch, Watch, watching
from benchmarks.gpu.rates import Kernel, kernel_facts
from benchmarks.gpu.work import SMALL, STEP, Robots, Steps
from benchmarks.report import Run
from benchmarks.tables import NONE, number, scientific, table
from cardan.machines.cuda import driver

COMPARED = 256  # systems that the CPU runs too
LONG = 10.0  # s, of the run after which the gap of a loop is looked at
GAP = {"float32": 1e-6, "float64": 1e-12}  # m


@dataclass(frozen=True)
class RunRate:
    """Steps a second of the kernel and of the whole call with NumPy arrays; the difference from the CPU's run."""

    kernel: float
    call: float
    difference: float
    error: float | None
    steps: int


def simulate(model: cd.Model, q: np.ndarray, v: np.ndarray, steps: int, precision: str, device: str) -> cd.Trajectory:
    """Runs from many states with a fixed step; only the start and the end are kept."""
    options: dict[str, Any] = {} if precision == "float64" else {"precision": precision}
    if device != "cpu":
        options["device"] = device
    return cd.simulate(
        model, steps * STEP, q, v, method="rk4", step=STEP, samples=2, progress=False, **options,
    )  # fmt: skip


def _apart(run: cd.Trajectory, other: cd.Trajectory) -> float:
    """Largest difference of coordinates at the end of two runs, rad or m."""
    return float(np.abs(np.asarray(run.q)[:, -1] - np.asarray(other.q)[:, -1]).max())


def _stepping(watch: Watch) -> tuple[Launch, float]:
    """A launch of the kernel that took most of the time, which is the one that steps, and the time of all of them."""
    seconds: dict[driver.Function, float] = {}
    for launch in watch.launches:
        seconds[launch.function] = seconds.get(launch.function, 0.0) + launch.seconds
    function = max(seconds, key=lambda each: seconds[each])
    return next(launch for launch in watch.launches if launch.function is function), seconds[function]


def measure(run: Run, robots: Robots, chosen: Steps, precision: str, rows: int) -> tuple[RunRate, Kernel]:
    """Compare some systems with the CPU's run, then time."""
    model, steps = robots.model(chosen.robot), chosen.steps[rows] if not run.quick else 20
    q, v = robots.starts(chosen.robot, rows)
    few = q[:COMPARED], v[:COMPARED]
    with watching() as first:
        found = simulate(model, *few, steps, precision, "gpu")
    difference = _apart(found, simulate(model, *few, steps, precision, "cpu"))
    error = None if precision == "float64" else _apart(found, simulate(model, *few, steps, "float64", "cpu"))
    if not difference < 1.0:
        raise RuntimeError(f"the run differs from the CPU's by {difference:.1e}")
    start = perf_counter()
    with watching() as watch:
        simulate(model, q, v, steps, precision, "gpu")
    taken = perf_counter() - start
    launch, seconds = _stepping(watch)
    facts = kernel_facts(chosen.title, precision, launch, first)
    return RunRate(rows * steps / seconds, rows * steps / taken, difference, error, steps), facts


HEAD = (
    "work",
    "precision",
    "systems",
    "steps",
    "Cardan, kernel",
    "Cardan, whole call",
    "difference from the CPU",
    "error of float32",
)


def row(run: Run, chosen: Steps, precision: str, rows: int, rate: RunRate) -> list[str]:
    """A line of the table, and its target."""
    goal = chosen.goals.get((precision, rows))
    if goal is not None:
        run.at_least(f"{chosen.title}, {precision}: a second", goal, rate.kernel, lambda x: f"{x:.3g}")
    return [
        chosen.title, precision, f"{rows:,}", f"{rate.steps:,}", f"{rate.kernel:.3g}", f"{rate.call:.3g}",
        scientific(rate.difference) if rate.difference else "0, same bits", scientific(rate.error),
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
