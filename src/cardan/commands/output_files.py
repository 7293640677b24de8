"""Output files of a run: checked before anything is computed, and each complete or absent."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cardan.errors import CardanError, FileError

if TYPE_CHECKING:
    from cardan.results.trajectory.trajectory import Trajectory

QUANTITIES = ("a", "energy", "kinetic", "potential", "power", "position_residual", "velocity_residual")
"""Quantities written in addition to the states."""
WRITERS: dict[str, Callable[[Any, Path, bool], None]] = {
    ".nc": lambda run, path, force: run.save(path, *QUANTITIES, overwrite=force),
    ".csv": lambda run, path, force: run.to_csv(path, *QUANTITIES, overwrite=force),
    ".parquet": lambda run, path, force: run.to_parquet(path, *QUANTITIES, overwrite=force),
    ".png": lambda run, path, force: run.plot(path=path, overwrite=force),
    ".html": lambda run, path, force: run.page(path, overwrite=force),
}
DESCRIPTIONS = {".nc": "trajectory", ".csv": "table", ".parquet": "table", ".png": "plot", ".html": "page"}


def can_make_pages() -> bool:
    """Whether K3D-jupyter, which pages need, is installed."""
    from importlib.util import find_spec

    return find_spec("k3d") is not None


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


def require_writable(path: Path, force: bool) -> None:
    """Refuse a file that exists or cannot be created."""
    from cardan.results.atomic_file import begin_file, cannot_write

    try:
        if path.exists() and not path.is_dir() and not force:
            raise FileError(f"{path}: there is such a file already; give --force to replace it, or another name")
        begin_file(path, overwrite=True).unlink()
    except (OSError, ValueError) as error:
        if isinstance(error, FileError):
            raise
        raise cannot_write(path, error) from None


def written(run: Trajectory, paths: list[Path], force: bool) -> tuple[list[Path], list[str]]:
    """Write the files of a run; return those written, and an error message for each of the others."""
    done, failed = [], []
    for path in paths:
        try:
            WRITERS[path.suffix](run, path, force)
            done.append(path)
        except CardanError as error:
            failed.append(str(error))
    return done, failed
