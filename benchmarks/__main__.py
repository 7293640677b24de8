"""`python -m benchmarks`: measure Cardan and other programs in one run and write the tables.

options:
  --quick           small batches and few rounds, to test that everything works
  --only A,B        some sections only
  --out FILE        where the tables go
"""

from __future__ import annotations

import argparse
import os
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
    derivatives,
    equations,
    gradients,
    growth,
    inverse_kinematics,
    linear,
    operations,
    points,
    precision,
    rolling,
    simulating,
    throughput,
    two_step,
)
from benchmarks.machine import machine_text
from benchmarks.report import Run

SECTIONS: dict[str, Callable[[Run], str]] = {
    **{key: partial(throughput.section, key=key) for key in throughput.FUNCTIONS},
    "derivatives": derivatives.section,
    "loops": closed.section,
    "points": points.section,
    "two_step": two_step.section,
    "simulate": simulating.section,
    "rolling": rolling.section,
    "batch": batches.section,
    "gradients": gradients.section,
    "linear": linear.section,
    "inverse_kinematics": inverse_kinematics.section,
    "agreement": agreement.section,
    "operations": operations.section,
    "compile": compiling.section,
    "growth": growth.section,
    "float32": precision.section,
    "equations": equations.section,
}


def main() -> int:
    """Run the chosen sections; return 1 if a measurement failed (a missed target is not a failure)."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small batches and few rounds")
    parser.add_argument("--only", default=",".join(SECTIONS), help=f"some of: {','.join(SECTIONS)}")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "RESULTS.md")
    options = parser.parse_args()
    os.environ.setdefault("CARDAN_QUICK", "0")  # rates are those of full code
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
    kind = "A quick run to test that everything works; its numbers are rough.\n\n" if run.quick else ""
    head = (
        f"# Results\n\n{kind}Written by `{command}` in {seconds / 60:.1f} minutes; nothing here is typed by hand.\n\n"
        f"{machine}\n\n"
        f"In every comparison the programs run alternately, {run.rounds} rounds, each for at least "
        f"{run.least * 1e3:g} ms. A ratio is the median over the rounds. `least` is the fastest round, and `of leasts` "
        "the ratio of the fastest rounds, which other load on the machine disturbs less. A target uses the smaller of "
        "the two ratios. Arrays are float64: in C order for Cardan, one state per column in Fortran order for "
        "Pinocchio, the fastest layout for each. Result arrays are allocated beforehand. All programs have the same "
        "mechanisms; their agreement is measured below.\n"
    )
    parts = [head, f"## Targets\n\n{run.targets_text()}\n"] if run.targets else [head]
    if run.failures:
        parts.append("## Not measured\n\n" + "\n".join(f"- {failure}" for failure in run.failures) + "\n")
    return "\n".join([*parts, *texts])


if __name__ == "__main__":
    sys.exit(main())
