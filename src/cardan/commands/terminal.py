"""Output on the terminal: tables, progress bars and errors."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeVar

from rich.console import Console
from rich.table import Table

T = TypeVar("T")
# What error messages say of Python arguments, and the same for command-line options.
OPTIONS = {
    "simulate: ": "",
    "pass overwrite=True": "give --force",
    "load: ": "",
    "simplify=False": "--plain",
    "step=1e-3 (s)": "--step 1ms",
    "; what was computed until then is in error.partial": "",
}


def screen() -> Console:
    """The console for results; without colour if it is not a terminal or NO_COLOR is set."""
    return Console(highlight=False)


def plain_table(headings: Sequence[str], rows: Iterable[Sequence[Any]], *, right: Sequence[int] = ()) -> Table:
    """A table without lines; the columns numbered in `right` are aligned to the right."""
    table = Table(box=None, padding=(0, 2, 0, 0), show_header=any(headings), header_style="bold")
    for k, heading in enumerate(headings):
        table.add_column(heading, justify="right" if k in right else "left", no_wrap=k == 0)
    for row in rows:
        table.add_row(*(_cell(x) for x in row))
    return table


def _cell(value: Any) -> Any:
    from rich.text import Text

    return Text(str(value))  # brackets in names are not markup


def tracked(items: Sequence[T], what: str) -> Iterator[T]:
    """The items, with a progress bar on a terminal."""
    if not sys.stderr.isatty():
        yield from items
        return
    from rich.progress import track

    yield from track(items, what, console=Console(stderr=True), transient=True)


def say_error(sentence: str) -> None:
    """Print an error."""
    print(f"cardan: {as_typed(sentence)}", file=sys.stderr)


def as_typed(sentence: str) -> str:
    """An error message with Python arguments replaced by command-line options."""
    for argument, option in OPTIONS.items():
        sentence = sentence.replace(argument, option)
    return sentence
