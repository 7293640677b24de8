"""A progress bar for what takes long, on a terminal and in a notebook."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from html import escape
from time import perf_counter
from typing import Any, cast

from cardan.machines.waiting import in_notebook, is_watched

DELAY = 1.0  # s before a bar appears; a shorter task shows nothing
PERIOD = 0.2  # s between two changes of a bar in a notebook
Report = Callable[[float], None]


@contextmanager
def progress_bar(
    wanted: bool | None, label: str, total: float, *, unit: str = "", before: float = 0.0
) -> Iterator[Report]:
    """A function that takes how much of a total is done and shows it; the bar disappears at the end.

    Args:
        wanted: whether to show the bar, from the start; None shows it on a terminal and in a notebook, after 1 s,
            unless `CARDAN_QUIET=1`.
        label: what is being done.
        total: the whole task, in any unit.
        unit: if it is given, how many of these are done in a second is shown too.
        before: how much was done before this call.

    """
    notebook = in_notebook()
    if not (is_watched() if wanted is None else wanted):
        yield lambda done: None
        return
    began = perf_counter()
    shown_at = began + (0.0 if wanted else DELAY)
    bar: Any = None

    def report(done: float) -> None:
        nonlocal bar
        if bar is None and perf_counter() >= shown_at:
            bar = (_NotebookBar if notebook else _TerminalBar)(label, total, _Pace(unit, before, began))
        if bar is not None:
            bar.update(done)

    try:
        yield report
    finally:
        if bar is not None:
            bar.close()


@dataclass(frozen=True)
class _Pace:
    """How fast a task goes: what is counted, how much was done before, and when it began, s."""

    unit: str
    before: float
    began: float

    def text(self, done: float, total: float) -> str:
        """Rate and time left in words; empty if nothing is counted, or known yet."""
        passed, own = perf_counter() - self.began, done - self.before
        if not self.unit or own <= 0 or passed <= 0:
            return ""
        rate = own / passed
        left = max(total - done, 0.0) / rate
        minutes, seconds = divmod(round(left), 60)
        hours, minutes = divmod(minutes, 60)
        return f"{rate:,.4g} {self.unit}/s, {hours}:{minutes:02}:{seconds:02} left"


class _TerminalBar:
    def __init__(self, label: str, total: float, pace: _Pace) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        self._total, self._pace = total, pace
        last = TextColumn("{task.fields[pace]}") if pace.unit else TimeRemainingColumn()
        columns = (TextColumn(label), BarColumn(), TextColumn("{task.percentage:>3.0f} %"), last)
        self._bar = Progress(*columns, console=Console(stderr=True), transient=True)
        self._task = self._bar.add_task(label, total=total, pace="")
        self._bar.start()

    def update(self, done: float) -> None:
        self._bar.update(self._task, completed=done, pace=self._pace.text(done, self._total))

    def close(self) -> None:
        self._bar.stop()


class _NotebookBar:
    def __init__(self, label: str, total: float, pace: _Pace) -> None:
        from IPython.display import HTML, display

        show: Any = display
        self._html: Callable[[str], Any] = lambda text: cast(Any, HTML)(text)
        self._label, self._total, self._next, self._pace = escape(label), total, 0.0, pace
        self._handle: Any = show(self._html(""), display_id=True)

    def update(self, done: float) -> None:
        if self._handle is not None and perf_counter() >= self._next:
            part = min(max(done / self._total, 0.0), 1.0) if self._total else 1.0
            bar = f"<progress value='{part:.4f}' max='1' style='width:16em'></progress>"
            pace = escape(self._pace.text(done, self._total))
            self._handle.update(self._html(f"{self._label} {bar} {100 * part:.0f} % {pace}"))
            self._next = perf_counter() + PERIOD

    def close(self) -> None:
        if self._handle is not None:
            self._handle.update(self._html(""))
