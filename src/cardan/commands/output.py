"""Output of commands: tables, progress bars and errors on the terminal, and the files of a run."""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from rich.console import Console
from rich.table import Table
from rich.text import Text

from cardan.errors import CardanError, FileError
from cardan.results.progress import progress_bar

if TYPE_CHECKING:
    from cardan.results.trajectory.trajectory import Trajectory

T = TypeVar("T")
# What error messages say of Python arguments, and the same for command-line options.
OPTIONS = {
    "simulate: ": "",
    "assemble: q of joint ": "--start of joint ",
    "pass overwrite=True": "give --force",
    "equilibrium: ": "",
    "equilibrium_path: ": "",
    "(q=)": "(--start)",
    "(hold=)": "(--hold)",
    "(tau=, a spring, ": "(--drive, a spring, ",
    "solve_for=": "--solve-for",
    ", or allow more (iterations=)": "",
    "load: ": "",
    "assemble: q of joint": "--start of joint",
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
        table.add_row(*(Text(str(cell)) for cell in row))  # brackets in names are not markup
    return table


def tracked(items: Sequence[T], what: str) -> Iterator[T]:
    """The items, with a progress bar on a terminal."""
    with progress_bar(None, what, len(items)) as report:
        for k, item in enumerate(items):
            report(k)
            yield item


def say_error(sentence: str) -> None:
    """Print an error."""
    print(f"cardan: {as_typed(sentence)}", file=sys.stderr)


@contextmanager
def warnings_as_sentences() -> Iterator[None]:
    """Print warnings as one sentence each, without the line of code that they come from."""

    def say(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
        if issubclass(category, DeprecationWarning):
            usual(message, category, *where, **more)
        else:
            say_error(f"warning: {message}")

    with warnings.catch_warnings():
        usual = warnings.showwarning
        warnings.showwarning = say
        yield


def as_typed(sentence: str) -> str:
    """An error message with Python arguments replaced by command-line options."""
    for argument, option in OPTIONS.items():
        sentence = sentence.replace(argument, option)
    sentence = re.sub(r"at=\{'(.*?)': '?(.*?)'?\}", r"--at \1=\2", sentence)
    return re.sub(r"cd\.deg\((.*?)\)", r"\1deg", sentence)


QUANTITIES = ("a", "energy", "kinetic", "potential", "power", "position_residual", "velocity_residual")
"""Quantities written in addition to the states."""
WRITERS: dict[str, Callable[[Any, Path, bool], None]] = {
    ".nc": lambda run, path, force: run.save(path, *QUANTITIES, overwrite=force),
    ".csv": lambda run, path, force: run.to_csv(path, *QUANTITIES, overwrite=force),
    ".parquet": lambda run, path, force: run.to_parquet(path, *QUANTITIES, overwrite=force),
    ".png": lambda run, path, force: run.plot(path=path, overwrite=force),
    ".html": lambda run, path, force: run.page(path, overwrite=force),
    **{end: lambda run, path, force: run.video(path, overwrite=force) for end in (".mp4", ".webm", ".gif")},
}
DESCRIPTIONS = {".nc": "trajectory", ".csv": "table", ".parquet": "table", ".png": "plot", ".html": "page",
                **dict.fromkeys((".mp4", ".webm", ".gif"), "video")}  # fmt: skip


def planned(out: str | None, suffixes: list[str], force: bool) -> list[Path]:
    """The files to write, `out` with each suffix; an error if one of them cannot be written."""
    if out is None:
        return []
    stem = Path(out)
    if stem.suffix in WRITERS:
        stem = stem.with_suffix("")
    if not stem.name or stem.name in (".", ".."):
        raise FileError(f"--out takes a file name without suffix, such as run, got {out!r}")
    paths = [stem.with_name(stem.name + suffix) for suffix in suffixes]
    for path in paths:
        require_writable(path, force)
    if ".parquet" in suffixes:
        from importlib.util import find_spec

        if find_spec("pyarrow") is None:
            raise FileError(f"{paths[-1]}: Parquet files need pyarrow; pip install 'cardan[parquet]'")
    return paths


def planned_video(path: Path | None, force: bool) -> list[Path]:
    """The video to write, if any; an error if its kind is unknown or it cannot be written."""
    if path is None:
        return []
    from cardan.results.video import video_format

    video_format(path)
    require_writable(path, force)
    return [path]


def require_writable(path: Path, force: bool) -> None:
    """Refuse a file that exists or cannot be created."""
    from cardan.atomic_file import begin_file, cannot_write

    try:
        if path.exists() and not path.is_dir() and not force:
            raise FileError(f"{path}: there is such a file already; give --force to replace it, or another name")
        begin_file(path, overwrite=True).unlink()
    except FileError:
        raise
    except (OSError, ValueError) as error:
        raise cannot_write(path, error) from None


def written(run: Trajectory, paths: list[Path], force: bool) -> tuple[list[Path], list[str]]:
    """Write the files of a run; return those written, and an error message for each of the others."""
    done, failed = [], []
    for path in paths:
        try:
            WRITERS[path.suffix.lower()](run, path, force)
            done.append(path)
        except CardanError as error:
            failed.append(str(error))
    return done, failed
