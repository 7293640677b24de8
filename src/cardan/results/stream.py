"""Runs too large for memory: a file that takes some systems at a time, and is a trajectory in the end."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from cardan.errors import InputError
from cardan.model.model import Model
from cardan.results.dataset import event_variables, header, parameter_variables, variable
from cardan.results.files import SYSTEM_ERRORS, begin_file, cannot_write, finish_file, load_run
from cardan.results.quantities import labels_of
from cardan.results.record import About, EventRecord, as_index
from cardan.results.trajectory import Trajectory


class Store:
    """A NetCDF-4 file of a batch, written by parts: `with cd.Store(...) as store: store.write(first, q, v)`.

    Args:
        path: the file; it appears when `finish` is called, until then the parts are in a temporary one beside it.
        model: the mechanism.
        time: (n,), s; or the number of samples, where each system has times of its own, given to `write`.
        batch_size: number of systems.
        tau: constant drives (nv,) or (batch_size, nv), N m and N.
        method: the integrator.
        formulation: in which accelerations and reactions are computed.
        frame: of its angular rates, for "absolute".
        settings: plain numbers and strings, kept with the run.
        overwrite: whether an existing file may be replaced.

    Memory in use is that of the part being written. What is never written is NaN. Left by an exception, nothing
    remains.

    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        model: Model,
        time: Any,
        batch_size: int,
        *,
        tau: Any = None,
        method: str = "",
        formulation: str = "spatial",
        frame: str = "fixed",
        settings: Mapping[str, Any] | None = None,
        overwrite: bool = False,
    ) -> None:
        if batch_size < 1:
            raise InputError(f"store: batch_size must be at least 1, got {batch_size}")
        self.path, self.model, self.batch_size = Path(path), model, int(batch_size)
        self._about = About(labels_of(model), method, formulation, frame, dict(settings or {}), {})
        self._time = None if np.ndim(time) == 0 else np.array(time, dtype=float)
        self.samples = int(time) if self._time is None else len(self._time)
        """Number of samples of each system."""
        if self._time is not None and self._time.ndim != 1:
            raise InputError(f"store: time must have the shape (n,), got {self._time.shape}")
        self._tau = None if tau is None else np.asarray(tau, dtype=float)
        if self._tau is not None and self._tau.shape not in ((model.nv,), (self.batch_size, model.nv)):
            raise InputError(
                f"store: tau must have the shape {(model.nv,)} or {(self.batch_size, model.nv)}, got {self._tau.shape}"
            )
        self._outcome: dict[int, str] = {}
        self._events: list[EventRecord] = []
        self._part = begin_file(self.path, overwrite)
        self._file: Any = None
        with self._writing():
            self._file = self._begin()

    def write(
        self,
        first: int,
        q: Any,
        v: Any,
        *,
        time: Any = None,
        outcome: Iterable[str] = (),
        events: Iterable[EventRecord] = (),
    ) -> None:
        """Write q (k, n, nq) and v (k, n, nv) of the systems `first`, `first + 1`, ...; NaN after a system's end.

        `time` (k, n) where the systems have times of their own; `outcome` a word for each of the k systems; `events`
        with the number of their system in the whole batch.
        """
        parts = {"q": np.asarray(q, dtype=float), "v": np.asarray(v, dtype=float)}
        if self._time is None:
            parts["time"] = np.asarray(np.nan if time is None else time, dtype=float)
        elif time is not None:
            raise InputError("store: all systems share the times it was made with; make it with the number of samples")
        k = len(parts["q"]) if parts["q"].ndim else 0
        widths = {"q": (self.model.nq,), "v": (self.model.nv,), "time": ()}
        for name, part in parts.items():
            wanted = (k, self.samples, *widths[name])
            if part.shape != wanted:
                raise InputError(f"store: {name} must have the shape {wanted}, got {part.shape}")
        if not 0 <= first <= first + k <= self.batch_size:
            raise InputError(f"store: systems {first} to {first + k - 1} are not among its {self.batch_size}")
        if self._file is None:
            raise InputError(f"store: {self.path} is finished; nothing more can be written")
        with self._writing():
            for name, part in parts.items():
                self._file[name][first : first + k] = part
        self._outcome |= {first + i: word for i, word in enumerate(outcome) if word}
        self._events += [replace(event, system=as_index(event.system)) for event in events]

    def finish(self, statistics: Mapping[str, Any] | None = None) -> Trajectory:
        """Put the file in its place, and return the run, which is read from there as it is asked for."""
        if self._file is None:
            raise InputError(f"store: {self.path} is finished already")
        with self._writing():
            self._file.close()
            self._file = None
            self._end(statistics or {})
            finish_file(self._part, self.path)
        return load_run(self.path, self.model)

    def discard(self) -> None:
        """Give up: remove what was written."""
        if self._file is not None:
            with contextlib.suppress(*SYSTEM_ERRORS):
                self._file.close()
            self._file = None
        with contextlib.suppress(OSError):
            self._part.unlink(missing_ok=True)

    def __enter__(self) -> Store:
        """Use it in a `with` block."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Leave nothing behind unless finished."""
        self.discard()

    @contextlib.contextmanager
    def _writing(self) -> Any:
        try:
            yield
        except SYSTEM_ERRORS as error:
            self.discard()
            raise cannot_write(self.path, error) from error

    def _begin(self) -> Any:
        """Names, units and coordinates, and empty arrays in chunks of whole systems."""
        import h5netcdf

        labels, when = self._about.labels, "time" if self._time is not None else "sample"
        made: dict[str, Any] = {}
        if self._tau is not None:
            made["tau"] = variable(labels, "tau", ("system",) if self._tau.ndim > 1 else (), self._tau)
        made |= parameter_variables(self.model, (self.batch_size,))
        head = header(self._about, (self.batch_size,), self._time, np.full(self.batch_size, ""), made)
        head.drop_vars("outcome").to_netcdf(self._part, engine="h5netcdf")
        file = h5netcdf.File(self._part, "a")
        if self._time is None:
            file.dimensions["sample"] = self.samples
            self._empty(file, "time", ("system", "sample"), {"units": "s", "long_name": "time"})
        for name in ("q", "v"):
            dims, _, words = variable(labels, name, ("system", when), None)
            self._empty(file, name, dims, words)
        return file

    def _empty(self, file: Any, name: str, dims: tuple[str, ...], words: Mapping[str, str]) -> None:
        shape = tuple(file.dimensions[axis].size for axis in dims)
        one = int(np.prod(shape[1:])) * 8
        chunk = (min(self.batch_size, max(1, 2**18 // max(one, 1))), *shape[1:])
        made = file.create_variable(name, dims, "f8", chunks=chunk, fillvalue=np.nan)
        made.attrs.update(words)

    def _end(self, statistics: Mapping[str, Any]) -> None:
        """Add what is known only now: outcomes, events, statistics."""
        import xarray as xr

        outcome = np.array([self._outcome.get(i, "") for i in range(self.batch_size)])
        about = replace(self._about, statistics=dict(statistics))
        events = event_variables(self._events, (self.batch_size,), about.labels)
        last = header(about, (self.batch_size,), None, outcome, events)
        kept = [name for name in last.variables if name == "outcome" or str(name).startswith("event_")]
        xr.Dataset({name: last[name].variable for name in kept}, attrs=last.attrs).to_netcdf(
            self._part, mode="a", engine="h5netcdf"
        )
