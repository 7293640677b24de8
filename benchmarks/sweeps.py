"""`python -m benchmarks.sweeps`: what the machinery of `cd.sweep` costs, and that it survives what happens to it.

options:
  --members N   members of the studies (default 100,000; with --kill a million)
  --kill        four local workers, one of which is killed every 20 s; the result is compared with an undisturbed run
  --dask        workers of a Dask cluster are killed and its scheduler is restarted
  --every S     seconds between two kills
  --out FILE    where the tables go

Each run replaces its own section of the file.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import resource
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from threading import Event, Thread
from time import perf_counter, process_time, sleep, strftime
from typing import Any

import numpy as np

import cardan as cd
from benchmarks.machine import machine_text
from benchmarks.tables import table

STEPS = 1000
RUN = cd.Run(1.0, method="rk4", step=1.0 / STEPS, samples=2)
MEASURE = {"q": cd.final("q"), "v": cd.final("v")}
ROUNDS = 3
FILE = Path(__file__).with_name("RESULTS_sweeps.md")


def study(model: cd.Model, members: int, **words: Any) -> cd.Study:
    """Runs of a four-bar with cranks of different mass and angle."""
    spread = {"crank.mass": cd.uniform(0.5, 2.0), "A": cd.uniform(0.2, 6.0)}
    return cd.sweep(model, spread, samples=members, design="random", run=RUN, measure=MEASURE, **words)


def overhead(members: int) -> str:
    """Seconds of one in-process batch and of sweeps with the same runs."""
    model = cd.mechanisms.four_bar().build()
    free, mass = model.free("crank.mass"), np.linspace(0.5, 2.0, members)
    q, v = cd.assemble(model)

    def batch() -> np.ndarray:
        start = np.broadcast_to(q, (members, model.nq)), np.broadcast_to(v, (members, model.nv))
        run = cd.simulate(
            free.at({"crank.mass": mass}), 1.0, *start, method="rk4", step=1.0 / STEPS, samples=2, failures="keep"
        )
        return run.q[:, -1]

    def swept(**words: Any) -> np.ndarray:
        found = cd.sweep(model, {"crank.mass": mass}, run=RUN, measure=MEASURE, **words)
        return np.asarray(found.dataset["q"])

    with tempfile.TemporaryDirectory() as folder:
        names = iter(range(10**6))
        ways: dict[str, Callable[[], np.ndarray]] = {
            "one batch, `cd.simulate`": batch,
            "`cd.sweep`, in memory": swept,
            "`cd.sweep`, to a store": lambda: swept(store=f"{folder}/{next(names)}.zarr"),
        }
        known = batch()
        best: dict[str, tuple[float, float]] = {}
        for _ in range(ROUNDS):
            for name, way in ways.items():
                began, used = perf_counter(), process_time()
                same = np.array_equal(way(), known)
                spent = perf_counter() - began, process_time() - used
                assert same, f"{name} differs"
                best[name] = tuple(map(min, best.get(name, spent), spent))  # type: ignore[assignment]
    first = best["one batch, `cd.simulate`"]
    rows = [
        [name, f"{wall:.2f}", f"{used:.2f}", f"{100 * (used / first[1] - 1):+.1f} %", f"{members / wall:,.0f}"]
        for name, (wall, used) in best.items()
    ]
    head = ["", "s", "processor s", "more", "members a second"]
    words = f"{members:,} runs of a four-bar, {STEPS:,} steps of RK4 each; least of {ROUNDS} rounds; equal to the bit."
    return f"{words} The aim is at most 5 % more.\n\n{table(head, rows)}"


def children(pid: int) -> list[int]:
    """Processes that a process has started."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(stat.read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
        if parent == pid:
            found.append(int(stat.parent.name))
    return found


class Killer(Thread):
    """Kills one of some processes every few seconds."""

    def __init__(self, every: float, pids: Callable[[], list[int]]) -> None:
        super().__init__(daemon=True)
        self.every, self.pids, self.kills, self.over = every, pids, 0, Event()

    def run(self) -> None:
        """Kill until it is over."""
        while not self.over.wait(self.every):
            if pids := self.pids():
                os.kill(random.choice(pids), signal.SIGKILL)
                self.kills += 1

    def __enter__(self) -> Killer:
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.over.set()
        self.join()


def compared(members: int, disturbed: cd.Study, model: cd.Model) -> str:
    """Compare with the same study in this process, in other chunks; seconds that it took."""
    began = perf_counter()
    alone = study(model, members, chunk=10_000)
    assert disturbed.status.complete and disturbed.status.failed == alone.status.failed
    for name in MEASURE:
        assert np.array_equal(np.asarray(disturbed.dataset[name]), alone.dataset[name], equal_nan=True), name
    return f"{perf_counter() - began:.0f}"


def killed(members: int, every: float) -> str:
    """Four local workers, one killed every few seconds."""
    model = cd.mechanisms.four_bar().build()
    with tempfile.TemporaryDirectory() as folder:
        began = perf_counter()
        with Killer(every, lambda: children(os.getpid())) as killer:
            found = study(model, members, workers=4, store=f"{folder}/study.zarr", progress=sys.stderr.isatty())
        wall = perf_counter() - began
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        size = sum(file.stat().st_size for file in Path(folder).rglob("*") if file.is_file()) / 1e6
        alone = compared(members, found, model)
    rows = [[
        f"{members:,}", str(killer.kills), f"{wall:.0f}", alone, f"{found.status.failed:,}", "equal to the bit",
        f"{most:,.0f}", f"{size:,.0f}",
    ]]  # fmt: skip
    head = [
        "runs", "workers killed", "s with four workers", "s undisturbed, in process", "failed members", "results",
        "MB of the master", "MB on disk",
    ]  # fmt: skip
    return f"Four local workers, one killed every {every:g} s; {STEPS:,} steps of RK4 each.\n\n{table(head, rows)}"


def on_dask(members: int, every: float) -> str:
    """Processes of a Dask cluster are killed, then its scheduler, which is started again at the same address."""
    from distributed import Client

    model = cd.mechanisms.four_bar().build()
    port, env = 18786, {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    command = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--port", str(port), "--no-dashboard"]
    quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "env": env}
    address, started = f"tcp://127.0.0.1:{port}", []

    def start(*words: str) -> subprocess.Popen[bytes]:
        process = subprocess.Popen([sys.executable, "-m", *words], **quiet)
        started.append(process)
        return process

    def worker() -> subprocess.Popen[bytes]:
        return start("distributed.cli.dask_worker", address, "--no-nanny", "--nthreads", "1", "--no-dashboard")

    restarts = kills = 0
    over = Event()

    def disturb(scheduler: subprocess.Popen[bytes], workers: list[subprocess.Popen[bytes]]) -> None:
        """Kill by turns a worker and, once, the scheduler; what has ended is started again at once."""
        nonlocal restarts, kills
        due = perf_counter() + every
        while not over.wait(0.2):
            for k, process in enumerate(workers):
                if process.poll() is not None:  # killed, or it has lost its scheduler
                    workers[k] = worker()
            if perf_counter() < due:
                continue
            due = perf_counter() + every
            if kills == 1 and not restarts:
                scheduler.kill()
                scheduler.wait()
                scheduler = start(*command[2:])
                restarts += 1
            else:
                random.choice(workers).kill()
                kills += 1

    try:
        scheduler = start(*command[2:])
        workers = [worker(), worker()]
        with Client(address, timeout=60) as client, tempfile.TemporaryDirectory() as folder:
            client.wait_for_workers(2, timeout=60)
            thread = Thread(target=disturb, args=(scheduler, workers), daemon=True)
            began = perf_counter()
            thread.start()
            try:
                found = study(model, members, client=client, store=f"{folder}/study.zarr", chunk=2048)
            finally:
                over.set()
                thread.join()
            wall = perf_counter() - began
            alone = compared(members, found, model)
    finally:
        for process in started:
            process.kill()
            process.wait()
        sleep(0.1)
    rows = [[f"{members:,}", str(kills), str(restarts), f"{wall:.0f}", alone, "equal to the bit"]]
    head = ["runs", "workers killed", "schedulers killed", "s on Dask", "s undisturbed, in process", "results"]
    return (
        f"Two workers of `dask worker`; every {every:g} s one is killed and replaced, the second time the scheduler is "
        f"killed and started again instead.\n\n{table(head, rows)}"
    )


def write(file: Path, title: str, command: str, text: str) -> None:
    """Replace one section of the file."""
    sections = dict(re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", file.read_text() if file.exists() else "", re.M | re.S))
    sections[title] = (
        f"\n`{command}`, {strftime('%Y-%m-%d')}; nothing here is typed by hand.\n\n{machine_text()}\n\n{text}\n\n"
    )
    body = "".join(f"## {name}\n{part}" for name, part in sorted(sections.items()))
    file.write_text(f"# Sweeps\n\n{body.rstrip()}\n")


def main() -> None:
    """Measure what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--members", type=lambda text: int(float(text)))
    parser.add_argument("--kill", action="store_true")
    parser.add_argument("--dask", action="store_true")
    parser.add_argument("--every", type=float)
    parser.add_argument("--out", type=Path, default=FILE)
    given = parser.parse_args()
    command = "python -m benchmarks.sweeps"
    if given.kill:
        text = killed(given.members or 1_000_000, given.every or 20.0)
        write(given.out, "Killed workers", f"{command} --kill", text)
    elif given.dask:
        text = on_dask(given.members or 50_000, given.every or 10.0)
        write(given.out, "Dask", f"{command} --dask", text)
    else:
        text = overhead(given.members or 100_000)
        write(given.out, "Cost of the machinery", command, text)
    print(text)


if __name__ == "__main__":
    main()
