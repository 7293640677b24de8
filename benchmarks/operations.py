"""Operations of each kernel, and the fraction of peak performance that a batch reaches."""

from __future__ import annotations

from typing import Any

from benchmarks.ceilings import copy_block, peak_block, write_block
from benchmarks.report import Run
from benchmarks.robots import Robot
from benchmarks.tables import ns, number, table
from benchmarks.throughput import FUNCTIONS, Function, batch_block, batch_size
from benchmarks.timing import interleave
from cardan.structure.kernels import tree_kernel

ADDS, MULTIPLIES = ("add", "sub", "twice"), ("mul", "sq")
OTHERS = ("div", "inv", "sqrt", "sin", "cos")
QUANTITY = {"forward": "forward_dynamics", "inverse": "inverse_dynamics", "mass": "mass_matrix"}


def counted(kernel: Any) -> dict[str, int]:
    """Operations of one evaluation; a looped kernel may consist of two kernels."""
    if hasattr(kernel, "operations"):
        return dict(kernel.operations)
    first, second = counted(kernel.first), counted(kernel.second)
    return {op: first.get(op, 0) + second.get(op, 0) for op in {*first, *second}}


def _row(run: Run, robot: Robot, function: Function) -> tuple[str, ...]:
    kernel = tree_kernel(robot.model, QUANTITY[function.key])
    batch = batch_size(run, robot, matrix=function.matrix)
    blocks = {"peak": peak_block(), "cardan": batch_block(function, robot, batch, 1)}
    timing = interleave(blocks, rounds=run.rounds, least=run.least)
    ops = counted(kernel)
    adds, products = (sum(ops.get(op, 0) for op in kinds) for kinds in (ADDS, MULTIPLIES))
    others = [ops.get(op, 0) for op in OTHERS]
    total = adds + products + sum(others)
    nq, nv = robot.model.nq, robot.model.nv
    numbers = nq + nv * nv if function.matrix else nq + 3 * nv
    seconds, peak = timing["cardan"].median, timing["peak"].median
    share = timing["cardan"].times_faster_than(timing["peak"]) * total
    counts = [adds, products, others[0] + others[1], others[2], others[3] + others[4], total]
    return (
        f"{robot.name}, {function.key}",
        *(f"{n:,}" for n in counts),
        ns(seconds),
        number(total / seconds / 1e9),
        number(1 / peak / 1e9),
        f"{100 * share:.0f} %",
        f"{8 * numbers:,}",
        number(8 * numbers / seconds / 1e9),
    )


def section(run: Run) -> str:
    """Operations, rates, and the measured limits of the core."""
    rows = []
    for function in FUNCTIONS.values():
        for robot in run.robots.values():
            with run.step(f"operations {function.key} {robot.name}"):
                rows.append(_row(run, robot, function))
    blocks = {"peak": peak_block(), "copy": copy_block(), "write": write_block()}
    ceiling = interleave(blocks, rounds=run.rounds, least=run.least)
    rates = {name: 1e-9 / timing.median for name, timing in ceiling.items()}
    head = (
        "robot and function", "adds", "products", "divisions", "roots", "sines", "all", "ns", "GFLOP/s",
        "peak", "fraction of peak", "bytes in and out", "GB/s",
    )  # fmt: skip
    return (
        "## Operations and fraction of peak performance\n\n"
        "Operations of one evaluation, counted in the recorded graph: additions, products (a fused multiply-add is one "
        "of each), divisions, square roots, sines and cosines. A sine counts as one operation, although it takes many; "
        "negations are not counted. One thread, batches as above.\n\n"
        f"Limits of one core, measured in this run: {number(rates['peak'])} GFLOP/s (independent fused multiply-adds "
        f"on all lanes, in registers), {number(rates['copy'])} GB/s copying memory (read plus written), "
        f"{number(rates['write'])} GB/s writing memory. `peak` is the first of these, measured in "
        "the same rounds as the row.\n\n" + table(head, rows) + "\n"
    )
