"""Mechanisms of many bodies: `python -m benchmarks.large [CASE ...] [--seconds N]` writes RESULTS_large.md.

Each case runs in a fresh process with an empty cache of kernels: describing and building the model, closing its loops
and counting its freedoms, the first forward dynamics, then forward dynamics again, steps of RK4 of fixed length with
projection, loop gap and energy of that run, and the peak of memory. All times are processor time of one thread, without
what is compiled in the background. Where Exudyn has the model (A02, rows of windows) it takes steps of
generalised-alpha in the same process. What is measured is kept line by line, so that a survey that was stopped goes on;
named cases are measured anew.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
from datetime import date
from pathlib import Path
from time import thread_time
from typing import Any

import numpy as np

from benchmarks.machine import machine_text
from benchmarks.tables import NONE, number, table

CASES = (
    "n_four_bar 4", "n_four_bar 64", "n_four_bar 1000", "lattice 10", "lattice 30", "lattice 100", "lattice 223",
    "chain 1000", "chain 10000", "net 10", "net 30", "track 50", "track 200",
)  # fmt: skip
RATES = {"n_four_bar": {"A0": 1.0}, "track": {"axle": 5.0}}  # at the start, rad/s; the others start at rest
LONGEST = 900  # s of the processor after which a case is given up
STEP = 1e-3  # s
RESULTS = Path(__file__).parent / "RESULTS_large.md"
KEPT = Path(__file__).parent / ".large.json"
HEAD = ("case", "bodies", "freedoms", "describe, s", "build, s", "rows, s", "first a, s", "a again, ms", "step, ms",
        "gap, m", "energy", "memory, GB", "Exudyn step, ms")  # fmt: skip


def measure(case: str, seconds: float) -> dict[str, Any]:
    """One case, in this process; each finding is printed as soon as it is known, as one line of JSON."""
    import cardan as cd

    name, size = case.split()
    found: dict[str, Any] = {}

    def note(**values: Any) -> None:
        found.update(values, memory=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6)
        print(json.dumps(found), flush=True)

    began = thread_time()
    m = getattr(cd.mechanisms, name)(int(size))
    note(describe=thread_time() - began)
    began = thread_time()
    model = m.build()
    note(build=thread_time() - began, bodies=model.nb)
    began = thread_time()
    q, v = cd.assemble(model, None, RATES.get(name))
    freedoms = cd.redundancy(model).freedoms
    note(rows=thread_time() - began, freedoms=freedoms)
    began = thread_time()
    cd.forward_dynamics(model, q, v, threads=1)
    note(first=thread_time() - began)
    note(again=_seconds(lambda: cd.forward_dynamics(model, q, v, threads=1), seconds / 4))
    run = lambda steps: cd.simulate(model, steps * STEP, q, v, method="rk4", step=STEP, samples=2, threads=1)
    more = 1000 if model.nb < 100 else 100 if model.nb < 5000 else 10
    run(2)
    short, long = _seconds(lambda: run(2), seconds / 4), _seconds(lambda: run(2 + more), seconds / 2)
    last = run(2 + more)
    energy = np.asarray(last.energy)
    note(step=(long - short) / more, energy=float(np.ptp(energy) / max(np.abs(energy).max(), 1e-300)))
    if model.has_rows:
        from cardan.functions.constraints import constraint_residual

        note(gap=float(np.abs(constraint_residual(model, last.q[-1])).max()))
    if name == "n_four_bar":
        note(exudyn=_exudyn(model, q, v, more))
    return found


def _exudyn(model: Any, q: np.ndarray, v: np.ndarray, more: int) -> float | None:
    """Seconds of a step of Exudyn's generalised-alpha with the same model and step; None without Exudyn."""
    try:
        from benchmarks.exudyn_plane import plane

        other = plane(model, q, v)
    except ImportError:
        return None
    short, long = (_seconds(lambda n=n: other.solve(n * STEP, n), 1.0) for n in (2, 2 + more))
    return (long - short) / more


def _seconds(run: Any, seconds: float) -> float:
    """The mean processor time of a call in this thread, s, over so many seconds; the clock may tick slowly."""
    began, count = thread_time(), 0
    while not count or thread_time() - began < seconds:
        run()
        count += 1
    return (thread_time() - began) / count


def page(found: dict[str, dict[str, Any]]) -> str:
    """The table of all cases measured so far."""
    rows = []
    for case in CASES:
        if case not in found:
            continue
        x = found[case]
        small = lambda key, x=x: f"{x[key]:.1e}" if key in x else NONE
        rows.append((
            f"`{case}`", f"{x.get('bodies', NONE)}", f"{x.get('freedoms', NONE)}",
            *(number(x.get(key)) for key in ("describe", "build", "rows", "first")),
            *(number(None if x.get(key) is None else 1e3 * x[key]) for key in ("again", "step")),
            small("gap"), small("energy"), number(x.get("memory"), 2),
            number(None if x.get("exudyn") is None else 1e3 * x["exudyn"]),
        ))  # fmt: skip
    notes = [f"- `{case}`: {found[case]['failed']}" for case in CASES if "failed" in found.get(case, {})]
    return "\n".join([
        "# Mechanisms of many bodies", "",
        f"Written by `python -m benchmarks.large` on {date.today():%Y-%m-%d}. Processor time of one thread; the cache "
        "of kernels is empty.", "",
        machine_text(), "",
        "`rows`: the loops are closed and the freedoms counted. `first a`: the first forward dynamics, compiled; `a "
        "again`: one more. `step`: RK4 of 1 ms with projection onto the constraints. `gap`, `energy`: at the end of "
        "that run, the largest loop gap and the relative change of energy. Exudyn: generalised-alpha, same step.", "",
        table(HEAD, rows), "", *notes,
    ]).rstrip() + "\n"  # fmt: skip


def main() -> None:
    """Measure the cases asked for, by default those that are missing, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="*", help="such as 'lattice 30'; all that are missing by default")
    parser.add_argument("--seconds", type=float, default=2.0, help="for each measurement of a case")
    parser.add_argument("--here", action="store_true", help="measure in this process, for the program itself")
    asked = parser.parse_args()
    if asked.here:
        measure(asked.cases[0], asked.seconds)
        return
    found: dict[str, dict[str, Any]] = json.loads(KEPT.read_text()) if KEPT.exists() else {}
    for case in asked.cases or [case for case in CASES if case not in found]:
        with tempfile.TemporaryDirectory() as cache:
            command = [sys.executable, "-m", "benchmarks.large", case, "--here", "--seconds", f"{asked.seconds}"]
            limit = lambda: resource.setrlimit(resource.RLIMIT_CPU, (LONGEST, LONGEST))
            environment = {**os.environ, "CARDAN_CACHE_DIR": cache, "CARDAN_CACHE": "1", "CARDAN_QUIET": "1"}
            done = subprocess.run(command, capture_output=True, text=True, env=environment, preexec_fn=limit)
        lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
        found[case] = json.loads(lines[-1]) if lines else {}
        if done.returncode:
            last = done.stderr.strip().splitlines()[-1:] or [f"given up after {LONGEST} s of the processor"]
            found[case]["failed"] = last[0][:300]
        print(case, found[case], flush=True)
        KEPT.write_text(json.dumps(found))
        RESULTS.write_text(page(found), encoding="utf-8")


if __name__ == "__main__":
    main()
