"""A progress bar for long runs."""

from __future__ import annotations

import sys
from time import perf_counter
from types import TracebackType
from typing import Any

DELAY = 1.0  # s before the bar appears; a shorter run shows nothing


class ProgressBar:
    """Shows the progress of a run; `progress` is True, False, or None for "on a terminal, if the run takes long"."""

    def __init__(self, progress: bool | None, name: str, start: float, end: float, systems: int) -> None:
        self.wanted = sys.stderr.isatty() if progress is None else progress
        self.delay = 0.0 if progress else DELAY
        self.name, self.start, self.end, self.systems = name, start, end, systems
        self.began = perf_counter()
        self.bar: Any = None

    def __enter__(self) -> ProgressBar:
        """Start."""
        return self

    def tell(self, t: float) -> None:
        """Report that the run has reached time `t`, s."""
        if not self.wanted:
            return
        if self.bar is None:
            if perf_counter() - self.began < self.delay:
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
        """Remove the bar."""
        if self.bar is not None:
            self.bar.stop()
