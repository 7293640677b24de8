"""`python -m benchmarks.gpu`: Cardan, other programs and the limits of the card in one run, in one file of tables.

options:
  --quick           small batches and few rounds, to test that everything works
  --only A,B        some sections only
  --peers A,B       other programs, or none
  --beside A,B      mechanisms that the other programs compute
  --robots FOLDER   robots, laid out as in the package example-robot-data
  --out FILE        where the tables go
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter, strftime

from benchmarks.gpu import limits, rates, runs, starts
from benchmarks.gpu.peers.compare import PACKAGES, RUNS, Peers, measure, versions
from benchmarks.gpu.rates import Kernel, Rate
from benchmarks.gpu.runs import RunRate
from benchmarks.gpu.work import DRIVER_GOAL, FUNCTIONS, LARGE, SMALL, STEPS, Function, Robots, Steps, example_robots
from benchmarks.machine import machine_text
from benchmarks.report import Run, Target
from benchmarks.tables import NONE, number, table
from cardan.machines.cuda import driver

SECTIONS = ("limits", "functions", "runs", "loops", "starts", "peers")
PRECISIONS = ("float32", "float64")


class Benchmark:
    """One run: what was measured so far."""

    def __init__(self, run: Run, robots: Robots, sections: list[str]) -> None:
        self.run, self.robots, self.sections = run, robots, sections
        self.start = perf_counter()
        self.card = driver.card(0)
        self.limits: limits.Limits | None = None
        self.rates: dict[tuple[Function, str, int], Rate] = {}
        self.runs: dict[tuple[Steps, str, int], RunRate] = {}
        self.kernels: list[Kernel] = []
        self.peers = Peers()
        self.texts: dict[str, str] = {}
        self.targets: list[Target] = []  # of sections whose text is finished

    def measure_limits(self) -> None:
        """The card's own limits."""
        with self.run.step("gpu limits"):
            self.limits = limits.Limits(self.card, self.run.rounds)
            self.texts["limits"] = limits.section(self.run, self.limits)

    def measure_functions(self) -> None:
        """Functions of a state."""
        for function in FUNCTIONS:
            for precision in PRECISIONS:
                for rows in (64,) if self.run.quick else (SMALL, LARGE):
                    with self.run.step(f"gpu {function.title} {precision} {rows:,}"):
                        rate, facts = rates.measure(self.run, self.robots, function, precision, rows)
                        self.rates[function, precision, rows] = rate
                        self._add(facts)

    def measure_runs(self) -> None:
        """Runs with RK4."""
        for chosen in STEPS:
            for precision in PRECISIONS:
                for rows in (64,) if self.run.quick else (SMALL, LARGE):
                    with self.run.step(f"gpu {chosen.title} {precision} {rows:,}"):
                        rate, facts = runs.measure(self.run, self.robots, chosen, precision, rows)
                        self.runs[chosen, precision, rows] = rate
                        self._add(facts)

    def _add(self, facts: Kernel) -> None:
        """Keep what is known of a kernel that was compiled just now."""
        if facts.driver is not None:
            self.kernels.append(facts)

    def add(self, name: str, make: Callable[[], str]) -> None:
        """Add a section that is measured and written at once."""
        self.run.targets = []
        self.texts[name] = make()
        self.targets += self.run.targets

    def text(self, command: str, machine: str) -> str:
        """Everything measured so far."""
        self.run.targets = list(self.targets)
        parts = [self._head(command, machine)]
        body = [self._functions_text(), self._runs_text(), *self.texts.values()]
        if self.kernels:
            body.insert(2, runs.kernels_text(self.kernels))
            for facts in self.kernels:
                goal = next((g for (r, k), g in DRIVER_GOAL.items() if facts.title == f"{r}, {k}"), None)
                if goal is not None:
                    what = f"{facts.title}, {facts.precision}: the driver's compilation, s"
                    self.run.below(what, goal, facts.driver or 0.0, number)
        if self.run.targets:
            parts.append(f"## Targets\n\n{self.run.targets_text()}\n")
        notes = [*self.peers.missing, *self.run.failures]
        if notes:
            parts.append("## Not measured\n\n" + "\n".join(f"- {note}" for note in notes) + "\n")
        return "\n".join(filter(None, [*parts, *body]))

    def _head(self, command: str, machine: str) -> str:
        kind = "A quick run to test that everything works; its numbers are rough.\n\n" if self.run.quick else ""
        version = driver.driver_version()
        return (
            f"# Results on a GPU\n\n{kind}Written by `{command}` on {strftime('%Y-%m-%d')} in "
            f"{(perf_counter() - self.start) / 60:.1f} minutes; nothing here is typed by hand.\n\n"
            f"- card: {self.card.name}, {self.card.multiprocessors} multiprocessors, compute capability "
            f"{self.card.capability / 10:.1f}, driver for CUDA {version // 1000}.{version % 1000 // 10}\n{machine}\n"
            f"- other programs: {versions() or 'none'}\n\n"
            "Results are compared with the CPU's before anything is timed. Times are those of the card, between CUDA "
            "events, of launches repeated in a CUDA graph on arrays on the card; batches of "
            f"{SMALL:,} stay in its caches, those of {LARGE:,} do not. `rows`: arrays (states, n) in C order; "
            "`columns`: the first axis is nearest in memory. A goal is judged by the faster of the two.\n"
        )

    def _functions_text(self) -> str:
        if not self.rates:
            return ""
        programs = [
            name for name in PACKAGES if any(job.program == name and job.kind != RUNS for job in self.peers.answers)
        ]
        rows = []
        for (function, precision, count), rate in self.rates.items():
            cells = rates.row(self.run, self.limits, function, precision, count, rate)
            for program in programs:
                cells.append(self._peer(program, function.robot, function.kind, precision, count))
            rows.append(cells)
        return (
            "## Functions of a state\n\nEvaluations a second. The limit of memory is that of reading the arguments "
            "and writing the results once. `of peak`: additions and multiplications of the kernel, without divisions "
            "and sines, as a share of what multiply-adds reach. `a call` is the time of the host for one call with "
            "torch's tensors, `bound` that of `cd.compile(...).bind(...)`. Differences are relative to the largest "
            "entry of their row and array; the error of float32 is that against float64. The other programs have the "
            "same robots and states and are compared with Cardan's accelerations; where the batch is another, theirs "
            "is in brackets.\n\n" + table((*rates.HEAD, *programs), rows, text_columns=2) + "\n"
        )

    def _runs_text(self) -> str:
        if not self.runs:
            return ""
        programs = [
            name for name in PACKAGES if any(job.program == name and job.kind == RUNS for job in self.peers.answers)
        ]
        rows = []
        for (chosen, precision, count), rate in self.runs.items():
            cells = runs.row(self.run, chosen, precision, count, rate)
            for program in programs:
                cells.append(self._peer(program, chosen.robot, RUNS, precision, count))
            theirs = self.peers.best("MuJoCo Warp", chosen.robot, RUNS, "float32")
            if theirs and chosen.times_warp and (precision, count) == ("float32", LARGE):
                what = f"{chosen.title}, float32: times MuJoCo Warp's best"
                self.run.at_least(what, chosen.times_warp, rate.kernel / theirs[0], number)
            rows.append(cells)
        return (
            '## RK4 steps\n\nSteps a second of `cd.simulate(..., method="rk4", device="gpu")`, loops closed to '
            "rounding in every step: of the kernel that steps, and of the whole call with NumPy arrays. Differences "
            "and the error of float32, against float64, are of coordinates at the end of the runs, rad or m. The other "
            "programs hold loops by springs and dampers. Where their batch is another, it is in brackets.\n\n"
            + table((*runs.HEAD, *programs), rows, text_columns=2)
            + "\n"
        )

    def _peer(self, program: str, robot: str, kind: str, precision: str, rows: int) -> str:
        """The rate of another program in this batch, or its best one where the batch is large."""
        found = self.peers.best(program, robot, kind, precision, None if rows == LARGE else rows)
        if found is None:
            return NONE
        rate, batch = found
        return f"{rate:.3g}" + ("" if batch == rows else f" ({batch:,})")

    def peers_text(self) -> str:
        """What the other programs' rows rest on."""
        rows = [
            (job.program, f"{job.robot}, {job.kind}", job.precision, f"{job.rows:,}", f"{answer['rate']:.3g}",
             f"{answer['difference']:.1e}", number(answer["compile"]))
            for job, answer in self.peers.answers.items()
        ]  # fmt: skip
        head = ("program", "work", "precision", "batch", "a second", "difference from Cardan", "preparing, s")
        return (
            "## Other programs\n\nEach in a process of its own, one after the other, on arrays on the card. JAX's are "
            "queued calls of one compiled function; `mjx.step` and `mujoco_warp.step` with RK4, contacts and limits "
            "off; MuJoCo Warp's are captured in a CUDA graph. Differences: of accelerations, relative to the largest "
            "of a state; of runs, of coordinates after 0.1 s, rad or m. Products of matrices in JAX are in full "
            "precision. Preparing is mostly compiling.\n\n" + table(head, rows, text_columns=3) + "\n"
            if rows
            else ""
        )


def main() -> int:
    """Run the chosen sections; return 1 if a measurement failed (a missed target is not a failure)."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu", description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small batches and few rounds")
    parser.add_argument("--only", default=",".join(SECTIONS), help=f"some of: {','.join(SECTIONS)}")
    parser.add_argument("--peers", default=",".join(PACKAGES), help=f"some of: {','.join(PACKAGES)}; or none")
    parser.add_argument("--beside", default="", help="mechanisms that the other programs compute; all by default")
    parser.add_argument("--patience", type=float, default=240.0, help="s, for other programs to prepare")
    parser.add_argument("--together", type=int, default=os.cpu_count() or 1, help="other programs' processes at a time")
    parser.add_argument("--robots", type=Path, help="folder of robots, laid out as in example-robot-data")
    parser.add_argument("--out", type=Path, default=Path(__file__).parents[1] / "RESULTS_gpu.md")
    options = parser.parse_args()
    os.environ.setdefault("CARDAN_QUICK", "0")  # rates are those of full code
    chosen = options.only.split(",")
    if unknown := sorted(set(chosen) - set(SECTIONS)):
        parser.error(f"no section {', '.join(unknown)}; there are {', '.join(SECTIONS)}")
    # compile times are wanted: no cache, neither Cardan's nor the driver's
    os.environ |= {"CARDAN_CACHE": "0", "CUDA_CACHE_DISABLE": "1"}
    try:
        benchmark = Benchmark(Run(quick=options.quick), Robots(options.robots or example_robots()), chosen)
    except driver.DeviceError as error:
        print(error, file=sys.stderr)
        return 2
    command = " ".join(["python -m benchmarks.gpu", *sys.argv[1:]])
    machine, run = machine_text(), benchmark.run

    def write() -> None:
        options.out.write_text(benchmark.text(command, machine))

    steps = {
        "limits": benchmark.measure_limits,
        "functions": benchmark.measure_functions,
        "runs": benchmark.measure_runs,
    }
    for name, step in steps.items():
        if name in chosen:
            step()
            write()
    if "starts" in chosen:
        benchmark.add("starts", lambda: starts.section(run, benchmark.robots))
        write()
    if "peers" in chosen and options.peers != "none":
        with tempfile.TemporaryDirectory() as folder:
            benchmark.peers = measure(
                run, benchmark.robots, Path(folder), programs=options.peers.split(","), device="gpu",
                mechanisms=options.beside.split(",") if options.beside else None,
                patience=options.patience, together=options.together,
            )  # fmt: skip
        benchmark.texts["peers"] = benchmark.peers_text()
        write()
    if "loops" in chosen:
        benchmark.add("loops", lambda: runs.loops(run, benchmark.robots, benchmark.peers.gaps()))
        write()
    print(options.out.read_text())
    return 1 if run.failures else 0


if __name__ == "__main__":
    sys.exit(main())
