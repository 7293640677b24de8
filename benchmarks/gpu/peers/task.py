"""One measurement of another program: what the process reads, and how it talks to the benchmark.

The benchmark writes a folder with the mechanisms as MJCF and URDF and their states. A process prepares (compiles and
compares with Cardan's numbers), prints `ready`, waits for a line, times, and prints one JSON object. So the processes
compile side by side, and the card belongs to one of them while it is timed.

Joints are blocks of coordinates by name. A free joint has MuJoCo's coordinates: position and quaternion (w, x, y, z),
rates: velocity of the origin in world axes and angular velocity in the body's.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np

ROUNDS = 5
LEAST = 0.2  # s, of a round


@dataclass(frozen=True)
class Task:
    """What to measure, from the command line."""

    folder: Path
    name: str
    kind: str
    precision: str
    rows: int
    device: str

    @property
    def facts(self) -> dict[str, Any]:
        """The joints, and for runs the step and the number of steps."""
        return dict(json.loads((self.folder / f"{self.name}.json").read_text()))

    def array(self, name: str) -> np.ndarray:
        """An array of states, in the order of Cardan's joints; float64, at most as many rows as wanted."""
        with np.load(self.folder / f"{self.name}.npz") as stored:
            return np.asarray(stored[name])[: self.rows]

    def filled(self, array: np.ndarray) -> np.ndarray:
        """The array over and over, until it has all rows."""
        return np.tile(array, (-(-self.rows // len(array)), 1))[: self.rows]


def reordered(blocks: list[tuple[str, int]], names: list[str], key: str) -> np.ndarray:
    """Places in Cardan's order of what another program has in the order `names`; blocks are (name, length)."""
    place, start = {}, 0
    for name, length in blocks:
        place[name] = range(start, start + length)
        start += length
    missing = sorted(set(place) ^ set(names))
    if missing:
        raise ValueError(f"{key}: joints {', '.join(missing)} are in one program only")
    return np.concatenate([list(place[name]) for name in names]).astype(int)


def relative(found: np.ndarray, wanted: np.ndarray) -> float:
    """Largest difference relative to the largest entry of its row."""
    scale = np.abs(wanted).max(axis=1, keepdims=True)
    return float((np.abs(found - wanted) / scale).max())


@dataclass(frozen=True)
class Prepared:
    """What a process is ready to time: `run` starts the work and waits for it; `evaluations` in one run."""

    run: Callable[[int], None]
    evaluations: int
    difference: float
    more: dict[str, float]


def serve(prepare: Callable[[Task], Prepared]) -> None:
    """The life of a process: prepare, tell, wait, time, tell."""
    folder, name, kind, precision, rows, device = sys.argv[1:]
    task = Task(Path(folder), name, kind, precision, int(rows), device)
    start = perf_counter()
    prepared = prepare(task)
    compiled = perf_counter() - start
    print("ready", flush=True)
    sys.stdin.readline()
    seconds = _timed(prepared.run)
    answer = {"rate": prepared.evaluations / seconds, "difference": prepared.difference, "compile": compiled}
    print(json.dumps(answer | prepared.more), flush=True)


def _timed(run: Callable[[int], None]) -> float:
    """Seconds of one run: the median of rounds, each with as many queued runs as last long enough."""
    run(1)
    start = perf_counter()
    run(1)
    count = max(1, min(1000, round(LEAST / (perf_counter() - start))))
    taken = []
    for _ in range(ROUNDS):
        start = perf_counter()
        run(count)
        taken.append((perf_counter() - start) / count)
    return median(taken)
