"""Functions of a state on the card: their results against the CPU's, then their rates."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np

import cardan as cd
from benchmarks.gpu.card import Launch, Watch, repeated, watching
from benchmarks.gpu.limits import Limits
from benchmarks.gpu.work import Function, Robots
from benchmarks.report import Run
from benchmarks.tables import NONE, number, scientific
from cardan.machines.cuda.device_array import to_device

CHECKED = 2048  # rows at each end of a batch that are compared with the CPU's
LEAST = 0.02  # s, of a round of launches
LAYOUTS = ("rows", "columns")


@dataclass(frozen=True)
class Kernel:
    """A kernel as the driver made it."""

    title: str
    precision: str
    registers: int
    local: int
    lines: int
    llvm: float | None
    driver: float | None


@dataclass(frozen=True)
class Rate:
    """One measurement: evaluations a second of each layout, seconds of a call from Python, differences."""

    by_layout: dict[str, float]
    call: float
    difference: float
    error: float | None
    bytes: int

    @property
    def best(self) -> float:
        """Of the faster layout."""
        return max(self.by_layout.values())


def on_card(array: np.ndarray, layout: str) -> Any:
    """The array on the card: row after row as NumPy has it, or each element of all rows side by side."""
    return to_device(array) if layout == "rows" else to_device(np.ascontiguousarray(array.T)).T


def worst(found: list[np.ndarray], wanted: list[np.ndarray]) -> float:
    """Largest difference relative to the largest entry of its row and array; infinite where one is not finite."""
    differences = []
    for mine, theirs in zip(found, wanted, strict=True):
        flat, reference = (np.asarray(x, float).reshape(len(x), -1) for x in (mine, theirs))
        if not np.isfinite(flat).all():
            return float("inf")
        scale = np.maximum(np.abs(reference).max(1), np.finfo(float).tiny)
        differences.append(float((np.abs(flat - reference).max(1) / scale).max()))
    return max(differences)


def kernel_facts(title: str, precision: str, launch: Launch, watch: Watch) -> Kernel:
    """What the driver made of a kernel, and how long it took where it was compiled here."""
    compiled = watch.compiles.get(launch.function)
    return Kernel(
        title, precision, launch.function.registers, launch.function.local_bytes, compiled.lines if compiled else 0,
        compiled.llvm if compiled else None, compiled.driver if compiled else None,
    )  # fmt: skip


def measure(run: Run, robots: Robots, function: Function, precision: str, rows: int) -> tuple[Rate, Kernel]:
    """Check against the CPU, then time."""
    model = robots.model(function.robot)
    arrays = [array.astype(precision) for array in function.arrays(robots, rows)]
    ends = np.r_[:CHECKED, rows - CHECKED : rows] if rows > 2 * CHECKED else np.r_[:rows]
    same = [np.asarray(x) for x in function.call(model, *(array[ends] for array in arrays))]
    exact = same
    if precision == "float32":
        exact = [np.asarray(x) for x in function.call(model, *(array[ends].astype(float) for array in arrays))]
    by_layout: dict[str, float] = {}
    difference, error, call, facts = 0.0, 0.0, 0.0, None
    for layout in LAYOUTS:
        held = [on_card(array, layout) for array in arrays]
        with watching(timed=False, keep=True) as watch:
            results = function.call(model, *held)
        found = [_ends(result, rows) for result in results]
        difference = max(difference, worst(found, same))
        error = max(error, worst(found, exact))
        if not difference < 1e-2:
            raise RuntimeError(f"{layout}: the results differ from the CPU's by {difference:.1e} of their size")
        by_layout[layout] = rows / sum(
            median(repeated(launch, rounds=run.rounds, least=LEAST if not run.quick else LEAST / 10))
            for launch in watch.launches
        )
        if layout == "rows":
            facts = kernel_facts(function.title, precision, watch.launches[-1], watch)
            call = _call_seconds(function, model, held)
        del results, held
    assert facts is not None
    size = sum(x.nbytes for x in arrays) + rows * sum(x.nbytes // len(x) for x in same)
    return Rate(by_layout, call, difference, error if precision == "float32" else None, size), facts


def _ends(result: Any, rows: int) -> np.ndarray:
    """The compared rows of an array on the card, copied to the host."""
    if rows <= 2 * CHECKED:
        return np.asarray(result.numpy())
    return np.concatenate([result[:CHECKED].numpy(), result[rows - CHECKED :].numpy()])


def _call_seconds(function: Function, model: cd.Model, held: list[Any], calls: int = 50) -> float:
    """Time of the host for one call, which returns before the card is done; results are allocated by each call."""
    function.call(model, *held)[0].numpy()
    start = perf_counter()
    for _ in range(calls):
        results = function.call(model, *held)
    taken = (perf_counter() - start) / calls
    results[0].numpy()
    return taken


HEAD = (
    "work", "precision", "batch", "Cardan, rows", "Cardan, columns", "limit of memory", "a call, us",
    "difference from the CPU", "error of float32",
)  # fmt: skip


def row(run: Run, limits: Limits | None, function: Function, precision: str, rows: int, rate: Rate) -> list[str]:
    """A line of the table, and its target."""
    goal = function.goals.get((precision, rows))
    if goal is not None:
        what = f"{function.title}, {precision}, {rows:,} states: a second"
        run.at_least(what, goal, rate.best, lambda x: f"{x:.3g}")
    of_memory = NONE if limits is None else f"{limits.copied * rows / rate.bytes:.3g}"
    return [
        function.title, precision, f"{rows:,}", *(f"{rate.by_layout[layout]:.3g}" for layout in LAYOUTS), of_memory,
        number(rate.call * 1e6), scientific(rate.difference) if rate.difference else "0, same bits",
        scientific(rate.error),
    ]  # fmt: skip
