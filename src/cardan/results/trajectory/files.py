"""Files of runs: NetCDF-4, CSV and Parquet.

NetCDF-4 is written by h5netcdf. NetCDF-3, which SciPy writes, has no strings of variable length, no arrays past 2 GB,
and no chunks, by which part of a large batch can be written and read alone.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cardan.errors import FileError, InputError
from cardan.model.model import Model
from cardan.results.atomic_file import file_path, whole_file
from cardan.results.trajectory.dataset import FORMAT, dataset, run_of, table

if TYPE_CHECKING:
    import xarray as xr

    from cardan.results.trajectory.trajectory import Trajectory

# Largest ratio of array size to file size: chunks that no system reached take no space in the file.
LARGEST_RATIO = 1000


class DeferredErrorFile(io.FileIO):
    """A file whose writes never raise; `error` is the first error that occurred.

    HDF5 cannot abandon a file that it cannot finish: after a failed write, closing the file or leaving Python crashes
    the process. So writes to a full disk appear to succeed here, and `check` raises the error afterwards.
    """

    error: OSError | None = None

    def write(self, data: Any) -> int:
        """Write all data, or nothing after an error."""
        view = memoryview(data).cast("B")
        done = 0
        try:
            while self.error is None and done < len(view):
                done += super().write(view[done:]) or 0
        except OSError as error:
            self.error = error
        return len(view)

    def truncate(self, size: int | None = None) -> int:
        """Set the length, or do nothing after an error."""
        try:
            return super().truncate(size) if self.error is None else int(size or 0)
        except OSError as error:
            self.error = error
            return int(size or 0)

    def check(self) -> None:
        """Raise the first error, if any."""
        if self.error is not None:
            raise self.error


class NetCDF:
    """A NetCDF-4 file being written: variables of a dataset, and arrays that are filled in parts."""

    def __init__(self, path: Path) -> None:
        import h5netcdf
        import h5py

        self.raw = DeferredErrorFile(path, "w+b")
        self.h5 = h5py.File(self.raw, "w")
        self.file = h5netcdf.File(self.h5, "a")

    def add(self, data: xr.Dataset) -> None:
        """Write the variables and attributes of a dataset."""
        import h5py

        for name, variable in data.variables.items():
            self._dimensions(dict(zip(variable.dims, variable.shape, strict=True)))
            values = variable.values
            kind = h5py.string_dtype() if values.dtype.kind in "OU" else values.dtype
            made = self.file.create_variable(str(name), variable.dims, kind)
            made[...] = values.astype(object) if values.dtype.kind in "OU" else values
            made.attrs.update(variable.attrs)
        self.file.attrs.update(data.attrs)
        self.file.attrs["coordinates"] = " ".join(str(name) for name in data.coords if name not in data.indexes)
        self.raw.check()

    def empty(self, name: str, sizes: dict[str, int], attributes: dict[str, str]) -> None:
        """Create an array of NaN in chunks of whole rows along its first dimension, about 256 kB each."""
        self._dimensions(sizes)
        first, *rest = sizes.values()
        rows = max(1, 2**18 // max(8 * int(np.prod(rest)), 1))
        made = self.file.create_variable(name, tuple(sizes), "f8", chunks=(min(first, rows), *rest), fillvalue=np.nan)
        made.attrs.update(attributes)
        self.raw.check()

    def fill(self, name: str, first: int, values: np.ndarray) -> None:
        """Write some rows of an array."""
        self.file[name][first : first + len(values)] = values
        self.raw.check()

    def close(self, keep: bool = True) -> None:
        """Close the file; with `keep`, raise the first error that occurred while writing."""
        self.file.close()
        self.h5.close()
        self.raw.close()
        if keep:
            self.raw.check()

    def _dimensions(self, sizes: dict[Any, int]) -> None:
        for name, size in sizes.items():
            if name not in self.file.dimensions:
                self.file.dimensions[str(name)] = size


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
    """Write the table of a run as CSV, with numbers that read back exactly."""
    frame = table(run, names)
    with whole_file(path, overwrite) as part, open(part, "w", encoding="utf-8", newline="") as file:
        if units:
            file.write(f"# {', '.join(f'{column}: {unit}' for column, unit in frame.attrs['units'].items())}\n")
        frame.to_csv(file, index=False, lineterminator="\n")


def to_parquet(run: Trajectory, path: str | os.PathLike[str], names: Iterable[str], overwrite: bool) -> None:
    """Write the table of a run as Parquet."""
    try:
        import pyarrow  # noqa: F401
    except ImportError:
        raise FileError(f"{os.fspath(path)}: Parquet files need pyarrow; pip install 'cardan[parquet]'") from None
    frame = table(run, names)
    with whole_file(path, overwrite) as part:
        frame.to_parquet(part, engine="pyarrow", index=False)


def load_run(path: str | os.PathLike[str], model: Model | None = None) -> Trajectory:
    """Read a run saved by `Trajectory.save` or a `Store`.

    Arrays are read from the file on first use. Without the model only the stored quantities are available. With the
    model, which must be the one that was simulated, all quantities can be computed.
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
    """Whether the values of the free parameters, if the model has any, are those of the file."""
    if model.values is None:
        return True
    stored = data.variables["parameter_value"].values if "parameter_value" in data.variables else None
    return stored is not None and np.array_equal(np.broadcast_to(model.values, stored.shape), stored)


def _open(path: str | os.PathLike[str]) -> Any:
    import xarray as xr

    if not file_path(path).is_file():
        raise FileError(f"{os.fspath(path)}: there is no such file")
    try:
        stated, size = _stated_size(path), file_path(path).stat().st_size
        if stated > max(LARGEST_RATIO * size, 2**30):
            raise ValueError(f"a file of {size:,} bytes cannot hold arrays of {stated:,} bytes")
        return xr.open_dataset(path, engine="h5netcdf", cache=False, decode_times=False)
    except Exception as error:  # the libraries raise many types for a file that is not NetCDF
        why = str(error).strip().partition("\n")[0]
        raise FileError(f"{os.fspath(path)}: it cannot be read as NetCDF-4: {why}") from error


def _stated_size(path: str | os.PathLike[str]) -> int:
    """Bytes of all arrays of an HDF5 file according to its headers."""
    import h5py

    sizes: list[int] = []
    with h5py.File(path) as file:
        file.visititems(lambda _, item: sizes.append(item.nbytes if isinstance(item, h5py.Dataset) else 0))
    return sum(sizes)
