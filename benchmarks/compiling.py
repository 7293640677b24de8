"""The first call of a fresh process: without a cache, and with one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

import cardan as cd
from benchmarks.report import Run
from benchmarks.tables import ms, number, table
from cardan.structure.kernels import LOOP_PAST

ROOT = Path(__file__).parents[1]
BATCH = 1024
COLD, CACHED = {"Panda": 0.5, "Talos": 2.0}, 0.05
IMPORT, FIRST_OF_1000 = 0.3, 10.0
UNROLLED_UP_TO = 100

_IMPORT = "import time; t = time.perf_counter(); import {0}; print(time.perf_counter() - t)"


def python(arguments: list[str], cache: str) -> str:
    """Standard output of a fresh process that has this kernel cache."""
    places = [str(ROOT), str(Path(cd.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    env = os.environ | {
        "CARDAN_CACHE_DIR": cache,
        "CARDAN_CACHE": "1",
        "CARDAN_QUICK": "1",
        "PYTHONPATH": os.pathsep.join(filter(None, places)),
    }
    env.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed package has its bytecode
    done = subprocess.run([sys.executable, *arguments], env=env, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr.strip().splitlines()[-1])
    return done.stdout


def first_calls(name: str, rows: int, drive: str, tries: int) -> dict[str, float]:
    """Medians over fresh processes: a cold call, the same with a cache, importing, building the model."""
    cold, warm = [], []
    for _ in range(tries):
        with tempfile.TemporaryDirectory() as cache:
            # the cache needs a private folder
            arguments = ["-m", "benchmarks.first_answer", name, str(rows), drive]
            cold.append(json.loads(python(arguments, cache)))
            warm.append(json.loads(python(arguments, cache)))
    return {
        "cold": median(t["call"] for t in cold),
        "cached": median(t["call"] for t in warm),
        "model": median(t["model"] for t in cold),
        "answer": median(sum(t.values()) for t in cold),
    }


def section(run: Run) -> str:
    """First calls, and importing."""
    tries, rows = (1 if run.quick else 3), []
    names = ("Panda", "Talos", "chain 10", "chain 100", "chain 1000")
    with run.step("compile import"):
        with tempfile.TemporaryDirectory() as cache:
            seconds = {
                m: [float(python(["-c", _IMPORT.format(m)], cache)) for _ in range(5)] for m in ("numpy", "cardan")
            }
        run.below("`import cardan`, ms", IMPORT, median(seconds["cardan"]), ms)
    for name in names:
        longest = int(name.split()[1]) if name.startswith("chain") else 0
        chosen, other = ("looped", "unrolled") if longest > LOOP_PAST else ("unrolled", "looped")
        for drive in ("auto", other):
            if drive == "unrolled" and longest > (30 if run.quick else UNROLLED_UP_TO):
                continue
            with run.step(f"compile {name} {drive}"):
                again = 1 if drive == "unrolled" and longest >= 100 else tries
                one, batch = (first_calls(name, n, drive, again) for n in (1, BATCH))
                what = f"{chosen}, as chosen" if drive == "auto" else drive
                cells = one["cold"], one["cached"], batch["cold"], batch["cached"]
                rows.append((name, what, *map(ms, cells), ms(one["model"])))
                if drive == "auto":
                    _judge(run, name, one, batch)
    head = (
        "robot", "kernel", "one state, cold", "from cache", f"batch of {BATCH}, cold", "from cache",
        "building the model",
    )  # fmt: skip
    return (
        "## First call\n\nForward dynamics, ms: the first call of a fresh process, with the model already built. Cold "
        "is with an empty cache folder, `from cache` with the folder that this left. One state compiles a scalar "
        f"kernel, a batch a vector kernel. `import cardan` takes {ms(median(seconds['cardan']))} ms, of which NumPy "
        f"alone {ms(median(seconds['numpy']))} ms.\n\n" + table(head, rows, text_columns=2) + "\n"
    )


def _judge(run: Run, name: str, one: dict[str, float], batch: dict[str, float]) -> None:
    for what, first in (("one state", one), (f"batch of {BATCH}", batch)):
        if name in COLD:
            run.below(f"{name}: first call, {what}, cold, ms", COLD[name], first["cold"], ms)
            run.below(f"{name}: first call, {what}, from the cache, ms", CACHED, first["cached"], ms)
    if name == "chain 1000":
        what = "chain 1000: import, building the model and first result, cold, s"
        run.below(what, FIRST_OF_1000, one["answer"], number)
