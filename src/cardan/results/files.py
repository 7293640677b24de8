"""Files of runs: NetCDF-4, CSV, Parquet. A file is written whole or not at all.

NetCDF-4 by h5netcdf, not the NetCDF-3 that SciPy writes: it has text of any length, arrays past 2 GB, and chunks, by
which a part of a large batch can be written and read alone.
"""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cardan.errors import FileError, InputError
from cardan.model.model import Model
from cardan.results.dataset import FORMAT, dataset, run_of, table
from cardan.results.netcdf import NetCDF

if TYPE_CHECKING:
    from cardan.results.trajectory import Trajectory

# What HDF5 raises when the system below it fails.
SYSTEM_ERRORS = (OSError, RuntimeError)
# Times the size of a file that its arrays may take: samples that no system reached take no room in it.
INFLATED = 1000


@contextlib.contextmanager
def whole_file(path: str | os.PathLike[str], overwrite: bool) -> Iterator[Path]:
    """Give a temporary file beside the target to write; it becomes the target at the end, or vanishes."""
    part = begin_file(path, overwrite)
    try:
        yield part
        finish_file(part, Path(path))
    except SYSTEM_ERRORS as error:
        raise cannot_write(path, error) from error
    finally:
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)


def named(path: Any) -> Path:
    """A file by its name, which is text or a path."""
    if not isinstance(path, str | os.PathLike):
        raise InputError(f"path must be the name of a file, got {path!r}")
    if "\0" in os.fspath(path):
        raise InputError(f"path must be the name of a file, without null characters, got {path!r}")
    return Path(path)


def begin_file(path: str | os.PathLike[str], overwrite: bool) -> Path:
    """Make an empty temporary file beside the target."""
    target = named(path)
    if target.is_dir():
        raise FileError(f"{target}: it is a folder; give the name of a file")
    if target.exists() and not overwrite:
        raise FileError(f"{target}: there is such a file already; pass overwrite=True to replace it")
    part = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
    try:
        os.close(os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
    except OSError as error:
        raise cannot_write(target, error) from error
    return part


def finish_file(part: Path, target: Path) -> None:
    """Put a temporary file in the target's place once it is on the disk."""
    with open(part, "r+b") as file:
        os.fsync(file.fileno())
    os.replace(part, target)


def cannot_write(path: str | os.PathLike[str], error: BaseException) -> FileError:
    """Say why a file was not written."""
    why = getattr(error, "strerror", None) or str(error).strip().partition("\n")[0] or type(error).__name__
    return FileError(f"{os.fspath(path)}: cannot be written, {why}; is its folder there, writable, and not full?")


def save(run: Trajectory, path: str | os.PathLike[str], names: Iterable[str], overwrite: bool) -> None:
    """Write a run as NetCDF-4."""
    data = dataset(run, names)
    with whole_file(path, overwrite) as part:
        file = NetCDF(part)
        try:
            file.add(data)
        except BaseException:
            file.close(keep=False)
            raise
        file.close()


def to_csv(run: Trajectory, path: str | os.PathLike[str], names: Iterable[str], units: bool, overwrite: bool) -> None:
    """Write a run's table as CSV, numbers exact."""
    frame = table(run, names)
    with whole_file(path, overwrite) as part, open(part, "w", encoding="utf-8", newline="") as file:
        if units:
            file.write(f"# {', '.join(f'{column}: {unit}' for column, unit in frame.attrs['units'].items())}\n")
        frame.to_csv(file, index=False, lineterminator="\n")


def to_parquet(run: Trajectory, path: str | os.PathLike[str], names: Iterable[str], overwrite: bool) -> None:
    """Write a run's table as Parquet."""
    try:
        import pyarrow  # noqa: F401
    except ImportError:
        raise FileError(f"{os.fspath(path)}: Parquet files need pyarrow; pip install 'cardan[parquet]'") from None
    frame = table(run, names)
    with whole_file(path, overwrite) as part:
        frame.to_parquet(part, engine="pyarrow", index=False)


def load_run(path: str | os.PathLike[str], model: Model | None = None) -> Trajectory:
    """Read a run saved by `Trajectory.save` or a `Store`.

    Arrays are read from the file when first asked for. Without the model there is what the file holds; with it, which
    must be the one that was simulated, everything can be computed.
    """
    if model is not None and not isinstance(model, Model):
        raise InputError(f"load_run: model must be the model that was simulated, got {type(model).__name__}")
    data = _open(path)
    name, stated = os.fspath(path), data.attrs
    if "cardan_run" not in stated:
        raise FileError(f"{name}: it is not a run saved by Cardan: the attribute 'cardan_run' is missing")
    layout = stated["cardan_run"]
    if not isinstance(layout, int | np.integer):
        raise FileError(f"{name}: it is damaged: the attribute 'cardan_run' is {layout!r}, not a number")
    if layout > FORMAT:
        raise FileError(f"{name}: it has layout {layout}, newer than this Cardan's {FORMAT}; update Cardan")
    if model is not None and model.key != stated.get("model_key"):
        raise FileError(
            f"{name}: it is a run of {stated.get('model')!r}, which differs from model {model.name!r} in numbers or "
            "structure; give the model that was simulated"
        )
    if model is not None and not _same_values(data, model):
        raise FileError(
            f"{name}: the free parameters of model {model.name!r} have other values than in the run; give the model "
            "without values, those of the run are in the file"
        )
    try:
        return run_of(data, model)
    except (KeyError, ValueError, TypeError, AttributeError) as error:
        raise FileError(f"{name}: it is damaged: {str(error).strip(chr(34))}") from error


def _same_values(data: Any, model: Model) -> bool:
    """Whether a model's values of its free parameters, if it has been given any, are those of the file."""
    if model.values is None:
        return True
    stored = data.variables["parameter_value"].values if "parameter_value" in data.variables else None
    return stored is not None and np.array_equal(np.broadcast_to(model.values, stored.shape), stored)


def _open(path: str | os.PathLike[str]) -> Any:
    import xarray as xr

    if not named(path).is_file():
        raise FileError(f"{os.fspath(path)}: there is no such file")
    try:
        stated, size = _stated_size(path), named(path).stat().st_size
        if stated > max(INFLATED * size, 2**30):
            raise ValueError(f"{size:,} bytes cannot hold the {stated:,} that it says")
        return xr.open_dataset(path, engine="h5netcdf", cache=False, decode_times=False)
    except Exception as error:  # whatever the libraries below say of a file that is not theirs
        why = str(error).strip().partition("\n")[0]
        raise FileError(f"{os.fspath(path)}: it cannot be read as NetCDF-4: {why}") from error


def _stated_size(path: str | os.PathLike[str]) -> int:
    """Bytes of all arrays of an HDF5 file, as it says."""
    import h5py

    sizes: list[int] = []
    with h5py.File(path) as file:
        file.visititems(lambda _, item: sizes.append(item.nbytes if isinstance(item, h5py.Dataset) else 0))
    return sum(sizes)
