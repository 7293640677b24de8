"""`python -m benchmarks`: measure Cardan and the peers in one run and write the tables.

options:
  --quick           small batches and few rounds, to see that everything works
  --only A,B        some sections only
  --out FILE        where the tables go
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from time import perf_counter

from benchmarks import (
    agreement,
    batches,
    closed,
    compiling,
    equations,
    growth,
    operations,
    points,
    precision,
    simulating,
    throughput,
)
from benchmarks.machine import machine_text
from benchmarks.report import Run

SECTIONS: dict[str, Callable[[Run], str]] = {
    **{key: partial(throughput.section, key=key) for key in throughput.FUNCTIONS},
    "loops": closed.section,
    "points": points.section,
    "simulate": simulating.section,
    "batch": batches.section,
    "agreement": agreement.section,
    "operations": operations.section,
    "compile": compiling.section,
    "growth": growth.section,
    "float32": precision.section,
    "equations": equations.section,
}


def main() -> int:
    """Run the sections asked for; 1 where something failed to run (a missed target is no failure)."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small batches and few rounds")
    parser.add_argument("--only", default=",".join(SECTIONS), help=f"some of: {','.join(SECTIONS)}")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "RESULTS.md")
    options = parser.parse_args()
    chosen = options.only.split(",")
    if unknown := sorted(set(chosen) - set(SECTIONS)):
        parser.error(f"no section {', '.join(unknown)}; there are {', '.join(SECTIONS)}")
    run, start, texts = Run(quick=options.quick), perf_counter(), []
    command = " ".join(["python -m benchmarks", *sys.argv[1:]])
    machine = machine_text()
    for name, section in SECTIONS.items():
        if name in chosen:
            texts.append(section(run))
            options.out.write_text(_document(run, command, machine, texts, perf_counter() - start))
    print(run.targets_text())
    print("\n".join(run.failures), file=sys.stderr)
    return 1 if run.failures else 0


def _document(run: Run, command: str, machine: str, texts: list[str], seconds: float) -> str:
    kind = "A quick run: it shows that everything works, its numbers are rough.\n\n" if run.quick else ""
    head = (
        f"# Results\n\n{kind}Written by `{command}` in {seconds / 60:.1f} minutes; nothing here is typed by hand.\n\n"
        f"{machine}\n\n"
        f"In every comparison the engines take turns, {run.rounds} rounds, each block at least {run.least * 1e3:g} ms; "
        "a ratio is the median of the rounds' ratios. `least` is the best round; where another program disturbed the "
        "machine, the ratio of the leasts tells, and a target is judged by the smaller of the two. "
        "Arrays are float64 in C order for Cardan, a state a column in Fortran order for Pinocchio, "
        "which is what each reads best; results go to arrays made before. The mechanisms are the same in all: the "
        "agreement is measured below.\n"
    )
    parts = [head, f"## Targets\n\n{run.targets_text()}\n"] if run.targets else [head]
    if run.failures:
        parts.append("## Not measured\n\n" + "\n".join(f"- {failure}" for failure in run.failures) + "\n")
    return "\n".join([*parts, *texts])


if __name__ == "__main__":
    sys.exit(main())
