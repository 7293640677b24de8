"""Writing NetCDF-4, so that a full disk is an error and not the end of the process.

HDF5 cannot give up a file that it cannot finish: after a failed write, closing it or leaving Python ends in a crash. So
HDF5 writes into a `Patient` file, which takes everything, keeps the first error to itself, and tells it when asked.
"""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import xarray as xr


class Patient(io.FileIO):
    """A file whose writes always seem to succeed; `error` is the first that did not."""

    error: OSError | None = None

    def write(self, data: Any) -> int:
        """Write all of it, or nothing more once something has failed."""
        view = memoryview(data).cast("B")
        done = 0
        try:
            while self.error is None and done < len(view):
                done += super().write(view[done:]) or 0
        except OSError as error:
            self.error = error
        return len(view)

    def truncate(self, size: int | None = None) -> int:
        """Set the length, likewise."""
        try:
            return super().truncate(size) if self.error is None else int(size or 0)
        except OSError as error:
            self.error = error
            return int(size or 0)

    def check(self) -> None:
        """Raise what went wrong."""
        if self.error is not None:
            raise self.error


class NetCDF:
    """A NetCDF-4 file being written: variables of a dataset, and arrays to be filled by parts."""

    def __init__(self, path: Path) -> None:
        import h5netcdf
        import h5py

        self.raw = Patient(path, "w+b")
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

    def empty(self, name: str, sizes: dict[str, int], words: dict[str, str]) -> None:
        """Prepare an array of NaN in chunks of whole rows along its first dimension, of about a quarter megabyte."""
        self._dimensions(sizes)
        first, *rest = sizes.values()
        rows = max(1, 2**18 // max(8 * int(np.prod(rest)), 1))
        made = self.file.create_variable(name, tuple(sizes), "f8", chunks=(min(first, rows), *rest), fillvalue=np.nan)
        made.attrs.update(words)
        self.raw.check()

    def fill(self, name: str, first: int, values: np.ndarray) -> None:
        """Write some rows of an array."""
        self.file[name][first : first + len(values)] = values
        self.raw.check()

    def close(self, keep: bool = True) -> None:
        """Close it; `keep` asks whether all went well, and raises what did not."""
        self.file.close()
        self.h5.close()
        self.raw.close()
        if keep:
            self.raw.check()

    def _dimensions(self, sizes: dict[Any, int]) -> None:
        for name, size in sizes.items():
            if name not in self.file.dimensions:
                self.file.dimensions[str(name)] = size
