"""Functions of a state on the card: their results against the CPU's, then their rates."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np

import cardan as cd
from benchmarks.gpu.card import Launch, Watch, repeated, watching
from benchmarks.gpu.limits import Limits
from benchmarks.gpu.work import JACOBIANS, SMALL, VALUE, Function, Robots
from benchmarks.operations import ADDS, MULTIPLIES, counted
from benchmarks.report import Run
from benchmarks.tables import NONE, scientific, us
from cardan.machines.cuda.copy import copy_into
from cardan.machines.cuda.device_array import DeviceArray, to_device
from cardan.structure.kernels import tree_kernel

CHECKED = 2048  # rows at each end of a batch that are compared with the CPU's
LEAST = 0.02  # s, of a round of launches
LAYOUTS = ("rows", "columns")
QUANTITY = {VALUE: "forward_dynamics", JACOBIANS: "forward_dynamics_derivatives"}


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
    """One measurement: evaluations a second of each layout, seconds of a call and of a bound one, differences."""

    by_layout: dict[str, float]
    call: float | None
    bound: float | None
    difference: float
    error: float | None
    bytes: int
    operations: int | None

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
    difference, error, facts, size = 0.0, 0.0, None, 0
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
            size = sum(x.nbytes for x in (*held, *results))
        del results, held
    assert facts is not None
    call, bound = _call_seconds(function, model, arrays) if rows <= SMALL else (None, None)
    known = error if precision == "float32" else None
    return Rate(by_layout, call, bound, difference, known, size, _operations(function, model)), facts


def _operations(function: Function, model: cd.Model) -> int | None:
    """Additions and multiplications of one evaluation, where its kernel is one of the tree's."""
    if function.kind not in QUANTITY:
        return None
    found = counted(tree_kernel(model, QUANTITY[function.kind]))
    return sum(found.get(name, 0) for name in (*ADDS, *MULTIPLIES))


def _ends(result: Any, rows: int) -> np.ndarray:
    """The compared rows of an array on the card, copied to the host."""
    if rows <= 2 * CHECKED:
        return np.asarray(result.numpy())
    parts = []
    for part in (result[:CHECKED], result[rows - CHECKED :]):
        side_by_side = DeviceArray.empty(part.shape, part.dtype)  # else all memory between its numbers is copied, too
        parts.append(copy_into("benchmark", "rows", part, side_by_side).numpy())
    return np.concatenate(parts)


def _call_seconds(function: Function, model: cd.Model, arrays: list[np.ndarray]) -> tuple[float | None, float | None]:
    """Time of the host for a call with torch's tensors, which returns before the card is done, and for a bound one."""
    try:
        import torch
    except ImportError:
        return None, None
    if not torch.cuda.is_available():
        return None, None
    tensors = [torch.as_tensor(array).cuda() for array in arrays]
    bound = None
    if function.kind == VALUE:
        bound = _each(cd.compile(model, "forward_dynamics").bind(*tensors), torch.cuda.synchronize)
    return _each(lambda: function.call(model, *tensors), torch.cuda.synchronize), bound


def _each(call: Callable[[], Any], wait: Callable[[], Any], calls: int = 100, rounds: int = 5) -> float:
    """Seconds of the host for one call, of the fastest round; the card's queue holds all calls of a round."""
    call()
    taken = []
    for _ in range(rounds):
        wait()
        start = perf_counter()
        for _ in range(calls):
            call()
        taken.append((perf_counter() - start) / calls)
    return min(taken)


HEAD = (
    "work", "precision", "batch", "Cardan, rows", "Cardan, columns", "limit of memory", "of peak", "a call, us",
    "bound, us", "difference from the CPU", "error of float32",
)  # fmt: skip


def row(run: Run, limits: Limits | None, function: Function, precision: str, rows: int, rate: Rate) -> list[str]:
    """A line of the table, and its target."""
    goal = function.goals.get((precision, rows))
    if goal is not None:
        what = f"{function.title}, {precision}, {rows:,} states: a second"
        run.at_least(what, goal, rate.best, lambda x: f"{x:.3g}")
    of_memory = NONE if limits is None else f"{limits.copied * rows / rate.bytes:.3g}"
    share = NONE
    if limits is not None and rate.operations is not None:
        most = 2 * limits.multiply_adds[precision.replace("float", "f")]
        share = f"{100 * rate.best * rate.operations / most:.0f} %"
    return [
        function.title, precision, f"{rows:,}", *(f"{rate.by_layout[layout]:.3g}" for layout in LAYOUTS), of_memory,
        share, us(rate.call), us(rate.bound), scientific(rate.difference) if rate.difference else "0, same bits",
        scientific(rate.error),
    ]  # fmt: skip
