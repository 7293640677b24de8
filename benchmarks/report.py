"""State of a benchmark run: settings, targets and whether they were met, failures."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import perf_counter

from benchmarks.robots import Robot, robots
from benchmarks.tables import table


@dataclass(frozen=True)
class Target:
    """A target and the measured value."""

    what: str
    goal: str
    measured: str
    met: bool


@dataclass
class Run:
    """One run of the benchmarks: a quick one, to test that everything works, or a full one."""

    quick: bool
    robots: dict[str, Robot] = field(default_factory=robots)
    targets: list[Target] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)

    @property
    def rounds(self) -> int:
        """Number of rounds of a comparison; each round runs every block once."""
        return 3 if self.quick else 7

    @property
    def least(self) -> float:
        """Minimum duration of one block, s."""
        return 0.005 if self.quick else 0.04

    @property
    def most_rows(self) -> int:
        """Rows of a batch, unless the arrays get too large."""
        return 4096 if self.quick else 65536

    def at_least(self, what: str, goal: float, value: float, show: Callable[[float], str]) -> None:
        """Add a target: the value must be at least `goal`."""
        self.targets.append(Target(what, f"≥ {show(goal)}", show(value), value >= goal))

    def below(self, what: str, goal: float, value: float, show: Callable[[float], str]) -> None:
        """Add a target: the value must be below `goal`."""
        self.targets.append(Target(what, f"< {show(goal)}", show(value), value < goal))

    @contextmanager
    def step(self, what: str) -> Iterator[None]:
        """Print what is measured; report a failure and continue with the rest."""
        print(f"{what} ...", end=" ", flush=True, file=sys.stderr)
        start = perf_counter()
        try:
            yield
        except Exception as error:
            self.failures.append(f"{what}: {type(error).__name__}: {error}")
            print("failed", end=" ", file=sys.stderr)
        print(f"{perf_counter() - start:.1f} s", file=sys.stderr)

    def targets_text(self) -> str:
        """Every target in one table."""
        rows = [(t.what, t.goal, t.measured, "yes" if t.met else "**no**") for t in self.targets]
        return table(("target", "goal", "measured", "met"), rows)
