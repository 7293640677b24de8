"""Growth of run time and compile time with the length of a chain: unrolled and looped kernels."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np

from benchmarks.report import Run
from benchmarks.robots import Robot, chain
from benchmarks.tables import NONE, ns, number, table, times
from benchmarks.throughput import batch_size
from benchmarks.timing import Block, interleave
from cardan.formulation.spatial import SPATIAL
from cardan.structure.kernels import LOOP_PAST, compile_quantity

SIZES, UNROLLED_UP_TO = (10, 30, 64, 100, 300, 1000), 300
QUICK_SIZES, QUICK_UNROLLED_UP_TO = (10, 30, 100), 30
FORWARD = "forward_dynamics"


def _kernel(robot: Robot, *, looped: bool) -> tuple[Any, float]:
    """A kernel and the seconds that it took to compile, without a cache."""
    kernel = compile_quantity(robot.model, SPATIAL.quantities[FORWARD], "spatial", looped=looped)
    start = perf_counter()
    kernel(*robot.states(64), threads=1)
    return kernel, perf_counter() - start


def _row(run: Run, n: int, unrolled_too: bool) -> tuple[str, ...]:
    robot = chain(n)
    batch = min(batch_size(run, robot, matrix=False), 16384)
    arrays, out = robot.states(batch), np.zeros((batch, n))
    kernels = {"looped": _kernel(robot, looped=True)}
    if unrolled_too:
        kernels["unrolled"] = _kernel(robot, looped=False)
    blocks = {name: Block(partial(k, *arrays, out=out, threads=1), batch) for name, (k, _) in kernels.items()}
    timing = interleave(blocks, rounds=run.rounds, least=run.least)
    looped, unrolled = timing["looped"], timing.get("unrolled")
    return (
        f"{n}",
        f"{batch:,}",
        ns(unrolled.median / n) if unrolled else NONE,
        ns(looped.median / n),
        times(unrolled.times_faster_than(looped)) if unrolled else NONE,
        number(kernels["unrolled"][1]) if unrolled else NONE,
        number(kernels["looped"][1]),
    )


def section(run: Run) -> str:
    """Nanoseconds per body, and the time to compile."""
    sizes, limit = (QUICK_SIZES, QUICK_UNROLLED_UP_TO) if run.quick else (SIZES, UNROLLED_UP_TO)
    rows = []
    with no_cache():
        for n in sizes:
            with run.step(f"growth chain {n}"):
                rows.append(_row(run, n, n <= limit))
    head = (
        "bodies", "batch", "unrolled, ns per body", "looped, ns per body", "looped / unrolled",
        "unrolled: s to compile", "looped: s to compile",
    )  # fmt: skip
    return (
        "## Growth with size\n\nForward dynamics of chains, one thread. Models of more than "
        f"{LOOP_PAST} links are looped (`LOOP_PAST`). Compiling includes recording, printing and compiling the vector "
        f"kernel, without a cache; unrolled kernels are measured up to {limit} bodies.\n\n" + table(head, rows) + "\n"
    )


@contextmanager
def no_cache() -> Iterator[None]:
    """Within this context kernels are neither read from the cache nor written to it."""
    before = os.environ.get("CARDAN_CACHE")
    os.environ["CARDAN_CACHE"] = "0"
    try:
        yield
    finally:
        os.environ.pop("CARDAN_CACHE")
        if before is not None:
            os.environ["CARDAN_CACHE"] = before
