"""Other programs beside Cardan: their mechanisms and states written to a folder, their processes started and asked."""

from __future__ import annotations

import json
import os
import queue
import shutil
import subprocess
import sys
import threading
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from time import monotonic
from typing import Any
from xml.etree import ElementTree

import numpy as np

import cardan as cd
from benchmarks.gpu.work import JACOBIANS, SMALL, STEP, VALUE, VJP, Robots
from benchmarks.report import Run

COMPARED = 100  # steps after which runs are compared
STATES = 1024  # states that are written, and compared
MEDIUM, BIG, LARGE = 1 << 16, 1 << 18, 1 << 20
PACKAGES = {"frax": ("frax", "jax"), "MJX": ("mujoco-mjx", "jax"), "MuJoCo Warp": ("mujoco-warp", "warp-lang")}
RUNS = "RK4 steps"
ROOT = Path(__file__).parents[3]


@dataclass(frozen=True)
class Job:
    """One measurement of one program."""

    program: str
    robot: str
    kind: str
    precision: str
    rows: int

    @property
    def title(self) -> str:
        """For messages."""
        return f"{self.program}, {self.robot}, {self.kind}, {self.precision}, {self.rows:,}"


# fmt: off
JOBS = (
    *(Job("frax", robot, VALUE, "float32", SMALL) for robot in ("Panda", "ANYmal", "Talos")),
    *(Job("frax", robot, VALUE, precision, rows) for precision in ("float32", "float64")
      for robot, rows in (("Panda", LARGE), ("ANYmal", BIG), ("Talos", BIG))),
    *(Job("frax", "Panda", JACOBIANS, precision, BIG) for precision in ("float32", "float64")),
    *(Job("frax", robot, VJP, "float32", BIG) for robot in ("Panda", "ANYmal")),
    *(Job("MJX", robot, VALUE, "float32", rows) for robot in ("Panda", "ANYmal", "Talos") for rows in (SMALL, BIG)),
    *(Job("MJX", robot, RUNS, "float32", rows)
      for robot in ("four-bar", "Panda", "Stewart platform") for rows in (SMALL, MEDIUM)),
    *(Job("MuJoCo Warp", robot, VALUE, "float32", rows)
      for robot in ("Panda", "ANYmal", "Talos") for rows in (SMALL, BIG)),
    *(Job("MuJoCo Warp", robot, RUNS, "float32", rows)
      for robot in ("four-bar", "Panda", "Stewart platform") for rows in (SMALL, MEDIUM, BIG)),
)
# fmt: on
QUICK = (
    Job("frax", "Panda", VALUE, "float32", 64),
    Job("MJX", "four-bar", RUNS, "float32", 64),
    Job("MuJoCo Warp", "four-bar", RUNS, "float32", 64),
)


@dataclass
class Peers:
    """What the other programs answered."""

    answers: dict[Job, dict[str, float]] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)

    def best(
        self, program: str, robot: str, kind: str, precision: str, rows: int | None = None
    ) -> tuple[float, int] | None:
        """The best rate of a program and its batch; of one batch, or of all."""
        found = [
            (answer["rate"], job.rows)
            for job, answer in self.answers.items()
            if (job.program, job.robot, job.kind, job.precision) == (program, robot, kind, precision)
            and rows in (None, job.rows)
        ]
        return max(found, default=None)

    def gaps(self) -> dict[str, float]:
        """Gaps of loops that were held by springs and dampers."""
        return {
            f"{job.program}, {job.precision}, after {answer['after']:g} s": answer["gap"]
            for job, answer in self.answers.items()
            if "gap" in answer and job.robot == "four-bar"
        }


def joints_of(model: cd.Model) -> list[tuple[str, int, int]]:
    """Joints as blocks (name, coordinates, rates) in the model's order, named as in the MJCF that Cardan writes."""
    blocks: list[tuple[str, int, int]] = []
    names = list(dict.fromkeys(name.partition("[")[0] for name in model.coordinate_names))
    for name in names:
        q, v = model.q_slice(name), model.v_slice(name)
        nq, nv = q.stop - q.start, v.stop - v.start
        if nq == nv and nq > 1:
            blocks += [(f"{name}_{k + 1}", 1, 1) for k in range(nq)]
        else:
            blocks.append((name, nq, nv))
    return blocks


def _rotations(quaternions: np.ndarray) -> np.ndarray:
    """Rotation matrices (n, 3, 3) of quaternions (w, x, y, z)."""
    w, x, y, z = quaternions.T
    rows = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
    ]
    return np.moveaxis(np.array(rows), -1, 0)


def as_mujoco(model: cd.Model, q: np.ndarray, v: np.ndarray, tau: np.ndarray, a: np.ndarray) -> list[np.ndarray]:
    """The arrays with a free joint's rates as MuJoCo has them: (velocity in world axes, angular in the body's)."""
    arrays = [v.copy(), tau.copy(), a.copy()]
    if joints_of(model)[0][1:] == (7, 6):
        R = _rotations(q[:, 3:7])
        turned = lambda x: np.einsum("nij,nj->ni", R, x)
        w, u = v[:, :3], v[:, 3:6]
        linear = turned(u), turned(tau[:, 3:6]), turned(a[:, 3:6] + np.cross(w, u))
        for array, first in zip(arrays, linear, strict=True):
            array[:, 3:6] = array[:, :3]
            array[:, :3] = first
    return [q, *arrays]


def write(robots: Robots, folder: Path, jobs: tuple[Job, ...]) -> None:
    """Write the mechanisms and states that the jobs need."""
    for name in sorted({job.robot for job in jobs}):
        model, path = robots.model(name), robots.path(name)
        cd.save(model, folder / f"{name}.xml", overwrite=True)
        _one_connect(folder / f"{name}.xml")
        if path is not None:
            shutil.copy(path, folder / f"{name}.urdf")
        for kind in sorted({job.kind for job in jobs if job.robot == name}):
            facts = {"joints": joints_of(model), "step": STEP, "compared": COMPARED}
            if kind == RUNS:
                q, v = (array[:: SMALL // STATES] for array in robots.moving(name))
                duration = COMPARED * STEP
                run = cd.simulate(model, duration, q, v, method="rk4", step=STEP, samples=2, progress=False)
                arrays = {"q": q, "v": v, "end": np.asarray(run.q)[:, -1]}
            else:
                q, v, tau = robots.states(name, STATES)
                q, v, tau, a = as_mujoco(model, q, v, tau, cd.forward_dynamics(model, q, v, tau))
                arrays = {"q": q, "v": v, "tau": tau, "a": a}
            stem = _stem(name, kind)
            (folder / f"{stem}.json").write_text(json.dumps(facts))
            np.savez(folder / f"{stem}.npz", **arrays)
            for suffix in (".xml", ".urdf"):
                if (folder / f"{name}{suffix}").exists():
                    shutil.copy(folder / f"{name}{suffix}", folder / f"{stem}{suffix}")


def _one_connect(path: Path) -> None:
    """Hold a plane loop by one point: the second that Cardan writes, for the axis of its pin, only costs time."""
    tree = ElementTree.parse(path)
    for equality in tree.getroot().iter("equality"):
        for connect in equality.findall("connect"):
            if (connect.get("name") or "").endswith("_"):
                equality.remove(connect)
    tree.write(path)


def _stem(robot: str, kind: str) -> str:
    return f"{robot} {'run' if kind == RUNS else 'state'}".replace(" ", "_")


class _Process:
    """A job under way."""

    def __init__(self, job: Job, folder: Path, device: str) -> None:
        self.job, self.lines = job, queue.Queue[str]()
        module = {"frax": "with_frax", "MJX": "with_mjx", "MuJoCo Warp": "with_warp"}[job.program]
        command = [sys.executable, "-m", f"benchmarks.gpu.peers.{module}", str(folder), _stem(job.robot, job.kind),
                   job.kind, job.precision, str(job.rows), device]  # fmt: skip
        self.errors = (folder / f"{abs(hash(job))}.log").open("w+")
        environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors, text=True, env=environment
        )
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.put(line)
        self.lines.put("")

    def wait(self, wanted: str, until: float) -> str:
        """The next line that starts so; other lines are the program's own talk."""
        while True:
            try:
                line = self.lines.get(timeout=max(until - monotonic(), 0.01))
            except queue.Empty:
                self.end()
                raise RuntimeError("it took too long") from None
            if not line:
                raise RuntimeError(self._reason())
            if line.startswith(wanted):
                return line

    def go(self) -> None:
        """Let it time."""
        assert self.process.stdin is not None
        self.process.stdin.write("go\n")
        self.process.stdin.flush()

    def _reason(self) -> str:
        self.process.wait()
        self.errors.seek(0)
        lines = [line.strip() for line in self.errors if line.strip()]
        told = [line for line in lines if "Error" in line or "error" in line]
        return (told or lines or [f"it ended with {self.process.returncode}"])[-1][:200]

    def end(self) -> None:
        """Stop it, if it still runs."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.errors.close()


def measure(
    run: Run, robots: Robots, folder: Path, *, programs: list[str], mechanisms: list[str] | None, device: str,
    patience: float, together: int,
) -> Peers:  # fmt: skip
    """Ask the programs about some mechanisms, or all; `patience` s for preparing, `together` processes at a time."""
    peers, jobs = Peers(), []
    for program, packages in PACKAGES.items():
        if program not in programs:
            continue
        absent = [name for name in packages if not _installed(name)]
        if absent:
            peers.missing.append(f"{program} was left out: {', '.join(absent)} is not installed")
        else:
            mine = [job for job in (QUICK if run.quick else JOBS) if job.program == program]
            jobs += [job for job in mine if mechanisms is None or job.robot in mechanisms]
    with run.step("gpu peers: writing"):
        write(robots, folder, tuple(jobs))
    for wave in sorted({_wave(job) for job in jobs}):
        waiting = [job for job in jobs if _wave(job) == wave]
        for low in range(0, len(waiting), together):
            chosen = waiting[low : low + together]
            with run.step(f"gpu peers: {len(chosen)} of {len(jobs)}"):
                _group(run, peers, chosen, folder, device, patience)
    return peers


def _wave(job: Job) -> int:
    """MuJoCo Warp compiles for a mechanism once, into its cache: its other batches come later."""
    return int(job.program == "MuJoCo Warp" and job.rows > SMALL)


def _group(run: Run, peers: Peers, jobs: list[Job], folder: Path, device: str, patience: float) -> None:
    """Prepare some jobs side by side, then time one after the other."""
    running = [_Process(job, folder, device) for job in jobs]
    until, ready = monotonic() + patience, []
    try:
        for process in running:
            try:
                process.wait("ready", until)
                ready.append(process)
            except RuntimeError as error:
                run.failures.append(f"{process.job.title}: {error}")
        for process in ready:
            try:
                process.go()
                answer: dict[str, Any] = json.loads(process.wait("{", monotonic() + 60))
                peers.answers[process.job] = answer
                print(f"  {process.job.title}: {answer['rate']:.3g} /s", file=sys.stderr)
            except RuntimeError as error:
                run.failures.append(f"{process.job.title}: {error}")
            process.end()
    finally:
        for process in running:
            process.end()


def _installed(package: str) -> bool:
    try:
        version(package)
    except PackageNotFoundError:
        return False
    return True


def versions() -> str:
    """The versions of the other programs."""
    names = dict.fromkeys(name for packages in PACKAGES.values() for name in packages)
    return ", ".join(f"{name} {version(name)}" for name in (*names, "mujoco") if _installed(name))
