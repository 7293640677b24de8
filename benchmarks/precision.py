"""Batches in float32 against float64."""

from __future__ import annotations

from benchmarks.report import Run
from benchmarks.tables import ns, table, times
from benchmarks.throughput import FUNCTIONS, batch_block, batch_size
from benchmarks.timing import interleave


def section(run: Run) -> str:
    """One thread, all functions."""
    rows = []
    for robot in run.robots.values():
        cells = [robot.name]
        with run.step(f"float32 {robot.name}"):
            for function in FUNCTIONS.values():
                batch = batch_size(run, robot, matrix=function.matrix)
                blocks = {d: batch_block(function, robot, batch, 1, d) for d in ("float64", "float32")}
                timing = interleave(blocks, rounds=run.rounds, least=run.least)
                wide, narrow = timing["float64"], timing["float32"]
                cells += [ns(wide.median), ns(narrow.median), times(narrow.times_faster_than(wide))]
            rows.append(cells)
    head = ["robot"]
    for function in FUNCTIONS.values():
        head += [f"{function.key}, float64", "float32", "ratio"]
    return (
        "## float32 against float64\n\nBatches as above, one thread, ns per evaluation; float32 has twice the lanes "
        "and half the bytes.\n\n" + table(head, rows) + "\n"
    )
