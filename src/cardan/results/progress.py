"""A progress bar for long runs: on a terminal, after a moment, and only if wanted."""

from __future__ import annotations

import sys
from time import perf_counter
from types import TracebackType
from typing import Any

PATIENCE = 1.0  # s: a shorter run shows nothing


class Bar:
    """Shows how far a run has come; `progress` True, False, or None for "on a terminal, when it takes long"."""

    def __init__(self, progress: bool | None, name: str, start: float, end: float, systems: int) -> None:
        self.wanted = sys.stderr.isatty() if progress is None else progress
        self.patience = 0.0 if progress else PATIENCE
        self.name, self.start, self.end, self.systems = name, start, end, systems
        self.began = perf_counter()
        self.bar: Any = None

    def __enter__(self) -> Bar:
        """Begin to count the time."""
        return self

    def tell(self, t: float) -> None:
        """The run has come to time `t`, s."""
        if not self.wanted:
            return
        if self.bar is None:
            if perf_counter() - self.began < self.patience:
                return
            self._open()
        self.bar.update(self.task, completed=t - self.start)

    def _open(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        label = f"{self.name}, {self.systems} systems" if self.systems > 1 else self.name
        columns = (TextColumn(label), BarColumn(), TextColumn("{task.percentage:>3.0f} %"), TimeRemainingColumn())
        self.bar = Progress(*columns, console=Console(stderr=True), transient=True)
        self.task = self.bar.add_task(label, total=self.end - self.start)
        self.bar.start()

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, tb: TracebackType | None) -> None:
        """Take the bar away."""
        if self.bar is not None:
            self.bar.stop()
