"""Cold start and start from the cache, in fresh processes."""

from __future__ import annotations

import json
import os
import tempfile
from statistics import median
from unittest.mock import patch

from benchmarks.compiling import python
from benchmarks.gpu.work import FUNCTIONS, JACOBIANS, SMALL, VALUE, VJP, Robots
from benchmarks.report import Run
from benchmarks.tables import ms, table

COLD, CACHED = 1.0, 0.1  # s, of Panda's forward dynamics
CHOSEN = (("Panda", VALUE), ("ANYmal", VALUE), ("Talos", VALUE), ("Panda", JACOBIANS), ("ANYmal", VJP))


def section(run: Run, robots: Robots) -> str:
    """First calls of fresh processes."""
    rows = []
    for function in FUNCTIONS:
        if (function.robot, function.kind) not in CHOSEN[: 1 if run.quick else None]:
            continue
        for precision in ("float32", "float64"):
            with run.step(f"gpu start {function.title} {precision}"):
                cold, cached = [], []
                for _ in range(1 if run.quick else 3):
                    # the driver has a cache of its own, which would hide its work
                    with tempfile.TemporaryDirectory() as cache, patch.dict(os.environ, CUDA_CACHE_DISABLE="1"):
                        what = [str(robots.folder), function.robot, function.kind, precision, str(SMALL)]
                        for found in (cold, cached):
                            found.append(json.loads(python(["-m", "benchmarks.gpu.first", *what], cache)))
                first, second = (median(t["call"] for t in found) for found in (cold, cached))
                started = median(t["driver"] for t in cold + cached)
                if (function.robot, function.kind) == ("Panda", VALUE):
                    what = f"{function.title}, {precision}: first call"
                    run.below(f"{what}, cold, ms", COLD, first, ms)
                    run.below(f"{what}, from the cache, ms", CACHED, second, ms)
                rows.append((function.title, precision, ms(first), ms(second), ms(started)))
    head = ("work", "precision", "cold", "from the cache", "starting the driver")
    return (
        f"## First call\n\nThe first call of a fresh process with {SMALL:,} states on the card, until its result is on "
        "the host, ms; the model is built. Cold is with an empty cache: record, print, LLVM, driver. Starting the "
        "driver, which every program does once, and uploading the states are not in it.\n\n"
        + table(head, rows, text_columns=2)
        + "\n"
    )
