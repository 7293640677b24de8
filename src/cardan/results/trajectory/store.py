"""Runs too large for memory: a file that is written in parts and then read as a trajectory."""

from __future__ import annotations

import contextlib
import math
import os
import secrets
import weakref
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from cardan.atomic_file import SYSTEM_ERRORS, begin_file, cannot_write, file_path, finish_file
from cardan.errors import FileError, InputError
from cardan.integrate.stepper import Outcome
from cardan.model.model import Model
from cardan.model.values import array, batch, whole
from cardan.results.trajectory.files import (
    CHANGING,
    OF_FILES,
    NetCDF,
    changing_words,
    event_variables,
    header,
    knot_variables,
    load_run,
    parameter_names,
    parameter_variables,
    require_suffix,
    system_axes,
    variable,
)
from cardan.results.trajectory.interpolation import Knots
from cardan.results.trajectory.quantities import labels_of, with_values
from cardan.results.trajectory.stored_model import model_variables
from cardan.results.trajectory.trajectory import EventRecord, Metadata, Trajectory


class Store(contextlib.AbstractContextManager["Store"]):
    """A NetCDF-4 file of a batch, written in parts: `with cd.Store(...) as store: store.write(first, q, v)`.

    Args:
        path: the file; it appears when `finish` is called, until then a temporary file beside it holds the parts.
        model: the mechanism.
        time: (n,), s; or the number of samples if each system has its own times, which `write` then takes.
        batch_size: number of systems, or the shape of a batch with several axes.
        tau: constant drives (nv,) or (*batch, nv), N m and N.
        values: of the free parameters, (*batch, size), if the model does not have them.
        method: the integrator.
        formulation: the formulation in which accelerations and reactions are computed.
        settings: of the integrator; numbers and strings, stored with the run.
        changes: whether the run changes free parameters, so that `write` takes them with every sample.
        overwrite: whether an existing file may be replaced.

    Only the part being written is in memory. Systems that are never written are NaN, with the outcome "not computed".
    If the `with` block ends with an exception, no file remains.

    """

    def __init__(
        self, path: str | os.PathLike[str], model: Model, time: Any, batch_size: int | tuple[int, ...], *,
        tau: Any = None, values: Any = None, method: str = "", formulation: str = "spatial",
        settings: Mapping[str, Any] | None = None, changes: bool = False, overwrite: bool = False,
    ) -> None:  # fmt: skip
        require_suffix(path, ".nc", "NetCDF")
        if not isinstance(model, Model):
            raise InputError(f"store: model must be a cd.Model, got {type(model).__name__}")
        shape = batch_size if isinstance(batch_size, tuple) else (batch_size,)
        self.batch = tuple(whole("store", "batch_size", size) for size in shape)
        """Shape of the batch; `()` is a single system."""
        model = model if values is None else with_values(model, np.asarray(values, dtype=float))
        self.path, self.model, self.batch_size = file_path(path), model, math.prod(self.batch)
        self._metadata = Metadata(labels_of(model), method, formulation, dict(settings or {}), {})
        self._time = None if np.ndim(time) == 0 else batch("store", "time", time)
        self.samples = whole("store", "time, a number of samples,", time) if self._time is None else len(self._time)
        """Number of samples of each system."""
        if self._time is not None and self._time.ndim != 1:
            raise InputError(f"store: time must have the shape (n,), got {self._time.shape}")
        self._tau = None if tau is None else np.asarray(tau, dtype=float)
        if self._tau is not None and self._tau.shape not in ((model.nv,), (*self.batch, model.nv)):
            raise InputError(
                f"store: tau must have the shape {(model.nv,)} or {(*self.batch, model.nv)}, got {self._tau.shape}"
            )
        self._changes = changes and bool(model.parameters)
        self._outcome = np.full(self.batch_size, Outcome.NOT_COMPUTED.text, dtype=object)
        self._events: list[EventRecord] = []
        self._knots: Knots | None = None
        self._part, self._overwrite = begin_file(self.path, overwrite), overwrite
        with self._writing():
            self._file = NetCDF(self._part)
            self._cleanup = weakref.finalize(self, _remove, self._file, self._part)
            self._begin(self._file)

    def write(
        self, first: int, q: Any, v: Any, *, time: Any = None, outcome: Iterable[str] = (),
        events: Iterable[EventRecord] = (), knots: Knots | None = None, parameters: Any = None,
    ) -> None:  # fmt: skip
        """Write q (k, n, nq) and v (k, n, nv) of the systems `first`, `first + 1`, ...; NaN after a system's end.

        Systems of a batch with several axes count with the last axis fastest. `time` (k, n) is needed if the systems
        have their own times. `outcome` has a string for each of the k systems. `events` carry the index of their system
        in the whole batch. `knots` are the states of the k systems at breaks, `parameters` (k, n, np) the free
        parameters of a run that changes them.
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
        if self._changes:
            parts[CHANGING] = array("store", "parameters", np.nan if parameters is None else parameters)
        widths = {"q": (self.model.nq,), "v": (self.model.nv,), "time": (), CHANGING: (self.model.parameters.size,)}
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
                self._file.fill(name, first, part, len(self.batch))
        words = [*outcome]
        self._outcome[first : first + k] = words + [""] * (k - len(words))
        self._events += [replace(event, system=event.index) for event in events]
        if knots is not None:
            if self._knots is None:
                given = (knots.q, knots.v, knots.after, knots.p)
                empty = [None if x is None else np.full((self.batch_size, *x.shape[1:]), np.nan) for x in given]
                self._knots = Knots(knots.time, *empty)  # type: ignore[arg-type]
            for name in ("q", "v", "after", "p"):
                if (part := getattr(knots, name)) is not None:
                    getattr(self._knots, name)[first : first + k] = part

    def finish(self, statistics: Mapping[str, Any] | None = None) -> Trajectory:
        """Put the file in its place and return the run, whose arrays are read from the file on first use."""
        if not self._cleanup.alive:
            raise InputError(f"store: {self.path} is finished already")
        with self._writing():
            self._end(statistics or {})
            self._file.close()
            try:
                finish_file(self._part, self.path, self._overwrite)
            except FileExistsError:
                self._save_elsewhere()
        self._cleanup.detach()
        return load_run(self.path, self.model)

    def _save_elsewhere(self) -> None:
        """Give the finished file another name, since a file has taken its own meanwhile; and say so."""
        other = self.path.with_name(f"{self.path.stem}-{secrets.token_hex(4)}{self.path.suffix}")
        finish_file(self._part, other, overwrite=False)
        self._cleanup.detach()
        raise FileError(
            f"{self.path}: there is such a file now, which was not there when the run began; the run is in {other}; "
            "pass overwrite=True to replace a file"
        )

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
            made["tau"] = variable(labels, "tau", system_axes(self.batch) if self._tau.ndim > 1 else (), self._tau)
        made |= parameter_variables(self.model, self.batch) | model_variables(self.path, self.model)
        made |= parameter_names(self.model) if self._changes else {}
        head = header(self._metadata, self.batch, self._time, np.full(self.batch, ""), made, OF_FILES)
        file.add(head.drop_vars("outcome"))
        systems = dict(zip(system_axes(self.batch), self.batch, strict=True))
        if self._time is None:
            file.empty("time", systems, {when: self.samples}, {"units": "s", "long_name": "time"})
        for name, axis, size in (("q", "coordinate", self.model.nq), ("v", "rate", self.model.nv)):
            file.empty(name, systems, {when: self.samples, axis: size}, variable(labels, name, (), None)[2])
        if self._changes:
            own = {when: self.samples, "parameter": self.model.parameters.size}
            file.empty(CHANGING, systems, own, changing_words())

    def _end(self, statistics: Mapping[str, Any]) -> None:
        """Add outcomes, events and statistics, which are known only at the end."""
        outcome = self._outcome.astype(str).reshape(self.batch)
        metadata = replace(self._metadata, statistics=dict(statistics))
        events = event_variables(self._events, self.batch, metadata.labels)
        if self._knots is not None:
            own = (self._knots.q, self._knots.v, self._knots.after, self._knots.p)
            shaped = [None if x is None else x.reshape(*self.batch, *x.shape[1:]) for x in own]
            knots = Knots(self._knots.time, *shaped)  # type: ignore[arg-type]
            events |= knot_variables(knots, self.batch, metadata.labels)
        last = header(metadata, self.batch, None, outcome, events)
        self._file.add(last.drop_vars(list(last.coords)))


def _remove(file: NetCDF, part: Path) -> None:
    """Close and remove an unfinished file; a file that HDF5 still holds when Python ends can crash the process."""
    with contextlib.suppress(*SYSTEM_ERRORS):
        file.close(keep=False)
    with contextlib.suppress(OSError):
        part.unlink(missing_ok=True)
