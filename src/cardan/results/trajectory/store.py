"""Runs too large for memory: a file that is written in parts and then read as a trajectory."""

from __future__ import annotations

import contextlib
import os
import weakref
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from cardan.atomic_file import SYSTEM_ERRORS, begin_file, cannot_write, file_path, finish_file
from cardan.errors import InputError
from cardan.model.model import Model
from cardan.model.values import array, batch, whole
from cardan.results.trajectory.files import (
    NetCDF,
    event_variables,
    header,
    knot_variables,
    load_run,
    parameter_variables,
    variable,
)
from cardan.results.trajectory.interpolation import Knots
from cardan.results.trajectory.quantities import labels_of, with_values
from cardan.results.trajectory.trajectory import EventRecord, Metadata, Trajectory


class Store(contextlib.AbstractContextManager["Store"]):
    """A NetCDF-4 file of a batch, written in parts: `with cd.Store(...) as store: store.write(first, q, v)`.

    Args:
        path: the file; it appears when `finish` is called, until then a temporary file beside it holds the parts.
        model: the mechanism.
        time: (n,), s; or the number of samples if each system has its own times, which `write` then takes.
        batch_size: number of systems.
        tau: constant drives (nv,) or (batch_size, nv), N m and N.
        values: of the free parameters, (batch_size, size), if the model does not have them.
        method: the integrator.
        formulation: the formulation in which accelerations and reactions are computed.
        settings: of the integrator; numbers and strings, stored with the run.
        overwrite: whether an existing file may be replaced.

    Only the part being written is in memory. Systems that are never written are NaN. If the `with` block ends with an
    exception, no file remains.

    """

    def __init__(
        self, path: str | os.PathLike[str], model: Model, time: Any, batch_size: int, *, tau: Any = None,
        values: Any = None, method: str = "", formulation: str = "spatial", settings: Mapping[str, Any] | None = None,
        overwrite: bool = False,
    ) -> None:  # fmt: skip
        if not isinstance(model, Model):
            raise InputError(f"store: model must be a cd.Model, got {type(model).__name__}")
        whole("store", "batch_size", batch_size)
        model = model if values is None else with_values(model, np.asarray(values, dtype=float))
        self.path, self.model, self.batch_size = file_path(path), model, int(batch_size)
        self._metadata = Metadata(labels_of(model), method, formulation, dict(settings or {}), {})
        self._time = None if np.ndim(time) == 0 else batch("store", "time", time)
        self.samples = whole("store", "time, a number of samples,", time) if self._time is None else len(self._time)
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
        self._knots: Knots | None = None
        self._part = begin_file(self.path, overwrite)
        with self._writing():
            self._file = NetCDF(self._part)
            self._cleanup = weakref.finalize(self, _remove, self._file, self._part)
            self._begin(self._file)

    def write(
        self, first: int, q: Any, v: Any, *, time: Any = None, outcome: Iterable[str] = (),
        events: Iterable[EventRecord] = (), knots: Knots | None = None,
    ) -> None:  # fmt: skip
        """Write q (k, n, nq) and v (k, n, nv) of the systems `first`, `first + 1`, ...; NaN after a system's end.

        `time` (k, n) is needed if the systems have their own times. `outcome` has a string for each of the k systems.
        `events` carry the number of their system in the whole batch. `knots` are the states of the k systems at breaks.
        """
        whole("store", "first", first, least=0)
        parts = {"q": array("store", "q", q), "v": array("store", "v", v)}
        if self._time is None:
            parts["time"] = array("store", "time", np.nan if time is None else time)
        elif time is not None:
            raise InputError(
                "store: all systems share the times given at its creation; to write times of each system, create it "
                "with the number of samples instead"
            )
        k = len(parts["q"]) if parts["q"].ndim else 0
        widths = {"q": (self.model.nq,), "v": (self.model.nv,), "time": ()}
        for name, part in parts.items():
            wanted = (k, self.samples, *widths[name])
            if part.shape != wanted:
                raise InputError(f"store: {name} must have the shape {wanted}, got {part.shape}")
        if first + k > self.batch_size:
            raise InputError(f"store: systems {first} to {first + k - 1} are outside its batch of {self.batch_size}")
        if not self._cleanup.alive:
            raise InputError(f"store: {self.path} is finished; nothing more can be written")
        with self._writing():
            for name, part in parts.items():
                self._file.fill(name, first, part)
        self._outcome |= {first + i: word for i, word in enumerate(outcome) if word}
        self._events += [replace(event, system=event.index) for event in events]
        if knots is not None:
            if self._knots is None:
                empty = (np.full((self.batch_size, *x.shape[1:]), np.nan) for x in (knots.q, knots.v))
                self._knots = Knots(knots.time, *empty)
            self._knots.q[first : first + k], self._knots.v[first : first + k] = knots.q, knots.v

    def finish(self, statistics: Mapping[str, Any] | None = None) -> Trajectory:
        """Put the file in its place and return the run, whose arrays are read from the file on first use."""
        if not self._cleanup.alive:
            raise InputError(f"store: {self.path} is finished already")
        with self._writing():
            self._end(statistics or {})
            self._file.close()
            finish_file(self._part, self.path)
        self._cleanup.detach()
        return load_run(self.path, self.model)

    def abandon(self) -> None:
        """Remove the unfinished file."""
        self._cleanup()

    def __exit__(self, *error: object) -> None:
        """Remove the file unless it is finished."""
        self.abandon()

    @contextlib.contextmanager
    def _writing(self) -> Any:
        try:
            yield
        except SYSTEM_ERRORS as error:
            self.abandon()
            raise cannot_write(self.path, error) from error

    def _begin(self, file: NetCDF) -> None:
        """Write names, units and coordinates, and prepare empty arrays."""
        labels, when = self._metadata.labels, "time" if self._time is not None else "sample"
        made: dict[str, Any] = {}
        if self._tau is not None:
            made["tau"] = variable(labels, "tau", ("system",) if self._tau.ndim > 1 else (), self._tau)
        made |= parameter_variables(self.model, (self.batch_size,))
        head = header(self._metadata, (self.batch_size,), self._time, np.full(self.batch_size, ""), made)
        file.add(head.drop_vars("outcome"))
        sizes = {"system": self.batch_size, when: self.samples}
        if self._time is None:
            file.empty("time", sizes, {"units": "s", "long_name": "time"})
        for name, axis, size in (("q", "coordinate", self.model.nq), ("v", "rate", self.model.nv)):
            file.empty(name, {**sizes, axis: size}, variable(labels, name, (), None)[2])

    def _end(self, statistics: Mapping[str, Any]) -> None:
        """Add outcomes, events and statistics, which are known only at the end."""
        outcome = np.array([self._outcome.get(i, "") for i in range(self.batch_size)])
        metadata = replace(self._metadata, statistics=dict(statistics))
        events = event_variables(self._events, (self.batch_size,), metadata.labels)
        if self._knots is not None:
            events |= knot_variables(self._knots, (self.batch_size,), metadata.labels)
        last = header(metadata, (self.batch_size,), None, outcome, events)
        self._file.add(last.drop_vars(list(last.coords)))


def _remove(file: NetCDF, part: Path) -> None:
    """Close and remove an unfinished file; a file that HDF5 still holds when Python ends can crash the process."""
    with contextlib.suppress(*SYSTEM_ERRORS):
        file.close(keep=False)
    with contextlib.suppress(OSError):
        part.unlink(missing_ok=True)
