"""A trajectory as an `xarray.Dataset` and back, as a table for pandas, and as a NetCDF-4, CSV or Parquet file.

Dimensions: `system` (several batch axes: `system0`, `system1`, ...), `time`, `coordinate` (of q), `rate` (of v, a,
tau), `body`, `joint`, `constraint`, and the components of vectors and poses. If the systems of a batch have different
times, the dimension is `sample` and `time` has a row for each system. Names are index coordinates; every variable has
`units` and `long_name`; `coordinate_unit` and `rate_unit` have the unit of each entry.

NetCDF-4 is written by h5netcdf. NetCDF-3, which SciPy writes, has no strings of variable length, no arrays past 2 GB,
and no chunks, by which part of a large batch can be written and read alone.
"""

from __future__ import annotations

import io
import json
import math
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cardan.atomic_file import file_path, whole_file
from cardan.errors import FileError, InputError, UnknownNameError
from cardan.model.model import Model
from cardan.results.trajectory.interpolation import Knots
from cardan.results.trajectory.named import NamedQuantity
from cardan.results.trajectory.quantities import QUANTITIES, STATES, Labels, labels_of, with_values
from cardan.results.trajectory.stored_model import MESHES, StoredModel, model_in, model_variables

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

    from cardan.results.trajectory.trajectory import EventRecord, Metadata, Trajectory

SLASH = "%2F"  # in the names of arrays, where "/" would be a folder in the file
FORMAT = 1
"""Version of the file layout, stored in the attribute `cardan_run`."""
TABLE = {**STATES, **QUANTITIES}


def unique(names: Iterable[Any]) -> tuple[str, ...]:
    """Names of quantities without duplicates."""
    names = tuple(names)
    for name in names:
        if not isinstance(name, str):
            raise UnknownNameError(f"trajectory: names of quantities must be strings, got {name!r}")
    return tuple(dict.fromkeys(names))


OF_FILES = ("body", "joint")
"""Axes that a file has names along whatever it holds: a run is read without its model until that is needed."""


def dataset(run: Trajectory, names: Iterable[str], axes: Iterable[str] = ()) -> xr.Dataset:
    """The states of a run and the named quantities, with names along some more axes."""
    systems, when = system_axes(run.batch), "time" if run.time.ndim == 1 else "sample"
    names = unique(names)
    made = {name: _described(run, name, (*systems, when)) for name in ("q", "v", *names)}
    if run.tau is not None:
        made["tau"] = variable(run._metadata.labels, "tau", systems if run.tau.ndim > 1 else (), run.tau)
    if run._model is not None:
        made |= parameter_variables(run._model, run.batch)
    if run.parameters is not None:
        made[CHANGING] = (*systems, when, "parameter"), run.parameters, changing_words()
        if run._model is not None:
            made |= parameter_names(run._model)
    made |= event_variables(run.events, run.batch, run._metadata.labels)
    if run.knots is not None:
        made |= knot_variables(run.knots, run.batch, run._metadata.labels)
    return header(run._metadata, run.batch, run.time, run._outcome, made, axes)


def header(
    metadata: Metadata, batch: tuple[int, ...], time: Any, outcome: Any, variables: dict[str, Any],
    axes: Iterable[str] = (),
) -> xr.Dataset:  # fmt: skip
    """A dataset with these variables, named coordinates along their axes and some more, and the run's metadata."""
    import xarray as xr

    labels, systems = metadata.labels, system_axes(batch)
    used = {axis for dims, *_ in variables.values() for axis in dims} | {"coordinate", "rate", *axes}
    coords: dict[str, Any] = {system: np.arange(size) for system, size in zip(systems, batch, strict=True)}
    coords |= {axis: _text(names) for axis in sorted(used) if (names := labels.along(axis)) is not None}
    coords["coordinate_unit"] = ("coordinate", _text(labels.coordinate_unit))
    coords["rate_unit"] = ("rate", _text(labels.rate_unit))
    if time is not None:
        dims = "time" if np.ndim(time) == 1 else (*systems, "sample")
        coords["time"] = (dims, time, {"units": "s", "long_name": "time"})
    stated = {
        "cardan_run": FORMAT, "model": labels.model, "model_key": labels.key, "method": metadata.method,
        "formulation": metadata.formulation,
        "settings": _json(metadata.settings), "statistics": _json(metadata.statistics),
    }  # fmt: skip
    words = (systems, _text(outcome), {"long_name": "why a system stopped early, empty if it did not"})
    return xr.Dataset({**variables, "outcome": words}, coords, stated)


def _described(run: Trajectory, name: str, lead: tuple[str, ...]) -> tuple[Any, ...]:
    """Dimensions, values and attributes of a quantity of a run."""
    value = run.quantity(name)
    if name in TABLE:
        return variable(run._metadata.labels, name, lead, value)
    about = run.about(name)
    words = {"units": " and ".join(dict.fromkeys(about.units)), "long_name": about.description}
    words["components"] = json.dumps([about.labels, about.units])
    return (*lead, *about.axes), value, words


def variable(labels: Labels, name: str, lead: tuple[str, ...], value: Any) -> tuple[Any, ...]:
    """Dimensions, values and attributes of a quantity."""
    quantity = TABLE[name]
    units = labels.units(name, quantity)
    said = units if isinstance(units, str) else " and ".join(dict.fromkeys(units))
    return (*lead, *quantity.axes), value, {"units": said, "long_name": quantity.description}


def system_axes(batch: tuple[int, ...]) -> tuple[str, ...]:
    """Names of the batch axes."""
    return ("system",) * len(batch) if len(batch) < 2 else tuple(f"system{k}" for k in range(len(batch)))


def parameter_variables(model: Model, batch: tuple[int, ...]) -> dict[str, Any]:
    """Values and names of the free parameters; empty if they have no values."""
    values = model.values
    if values is None:
        return {}
    lead = () if values.ndim == 1 else system_axes(batch)
    values = values if values.ndim == 1 else np.broadcast_to(values, (*batch, values.shape[-1]))
    words = {"long_name": "values of the free parameters", "units": "SI"}
    return {"parameter_value": ((*lead, "parameter"), values, words), **parameter_names(model)}


CHANGING = "parameter_over_time"


def changing_words() -> dict[str, str]:
    """Attributes of the parameters of a run that changes them."""
    return {"long_name": "free parameters, which the run changes", "units": "SI"}


def parameter_names(model: Model) -> dict[str, Any]:
    """Names along the dimension `parameter`."""
    names = [p.name if p.size == 1 else f"{p.name}[{k}]" for p in model.parameters for k in range(p.size)]
    return {"parameter_name": ("parameter", _text(names))}


def event_variables(events: Iterable[EventRecord], batch: tuple[int, ...], labels: Labels) -> dict[str, Any]:
    """The events along the dimension `event`; empty if there are none."""
    events = list(events)
    if not events:
        return {}
    numbers = [int(np.ravel_multi_index(e.index, batch)) if batch else 0 for e in events]
    more: dict[str, Any] = {}
    if any(e.changed for e in events):
        after = [e.v_after if e.v_after is not None else np.full(np.shape(e.v), np.nan) for e in events]
        more["event_v_after"] = variable(labels, "v", ("event",), np.stack(after))
        size = max(0 if e.p is None else len(e.p) for e in events)
        for name in ("p", "p_after") if size else ():
            rows = [getattr(e, name) for e in events]
            values = np.stack([np.full(size, np.nan) if x is None else x for x in rows])
            more[f"event_{name}"] = ("event", "parameter"), values, changing_words()
    return more | {
        "event_name": ("event", _text([e.name for e in events])),
        "event_system": ("event", np.array(numbers), {"long_name": "number of the system, batch axes flattened"}),
        "event_time": ("event", np.array([e.time for e in events], dtype=float), {"units": "s"}),
        "event_q": variable(labels, "q", ("event",), np.stack([np.asarray(e.q, dtype=float) for e in events])),
        "event_v": variable(labels, "v", ("event",), np.stack([np.asarray(e.v, dtype=float) for e in events])),
    }


def knot_variables(knots: Knots, batch: tuple[int, ...], labels: Labels) -> dict[str, Any]:
    """States at the breaks of a run, along the dimension `knot`."""
    words = {"units": "s", "long_name": "time of a break, and just before and after it"}
    more: dict[str, Any] = {}
    if knots.after is not None:
        more["knot_after"] = variable(labels, "v", (*system_axes(batch), "knot"), knots.after)
    if knots.p is not None and knots.p.shape[-1]:
        more["knot_p"] = (*system_axes(batch), "knot", "jump_side", "parameter"), knots.p, changing_words()
    return more | {
        "knot_time": (("knot", "knot_side"), knots.time, words),
        "knot_q": variable(labels, "q", (*system_axes(batch), "knot"), knots.q),
        "knot_v": variable(labels, "v", (*system_axes(batch), "knot"), knots.v),
    }


def _text(words: Any) -> np.ndarray:
    return np.asarray(words, dtype=object if np.size(words) == 0 else str)


def _json(values: Any) -> str:
    """Values as JSON; NumPy scalars and arrays become numbers and lists."""
    return json.dumps(dict(values), default=lambda x: x.tolist() if hasattr(x, "tolist") else str(x))


# From a dataset to a trajectory.


def run_of(data: xr.Dataset, model: Model | None, path: Any) -> Trajectory:
    """The trajectory in the dataset of a file, whose arrays are read on first use; KeyError if something is missing."""
    from cardan.results.trajectory.trajectory import EventRecord, Metadata, Trajectory

    stated = data.attrs
    metadata = Metadata(
        labels_of(model) if model is not None else _labels(data),
        str(stated["method"]), str(stated["formulation"]),
        json.loads(stated["settings"]), json.loads(stated["statistics"]),
    )  # fmt: skip
    arrays = {name: data.variables[name] for name in ("time", "q", "v")}
    if CHANGING in data.variables:
        arrays["p"] = data.variables[CHANGING]
    batch = tuple(arrays["q"].shape[:-2])
    tau = data.variables["tau"].values if "tau" in data.variables else None
    if model is not None and "parameter_value" in data.variables:
        model = with_values(model, data.variables["parameter_value"].values)
    given: Model | StoredModel | None = model
    why = ""
    if model is None:
        given, why = model_in(path, data, metadata.labels)
    computed = {name: data.variables[name] for name in QUANTITIES if name in data.variables}
    named = dict(_named_in(data))
    computed |= {name: variable for name, (variable, _) in named.items()}
    outcome = data.variables["outcome"].values.astype(str)
    events = [EventRecord(*fields) for fields in _events_in(data, batch)]
    stored = "knot_time" in data.variables
    more = (data.variables[f"knot_{k}"].values if f"knot_{k}" in data.variables else None for k in ("after", "p"))
    known = (data.variables[f"knot_{name}"].values for name in ("time", "q", "v")) if stored else ()
    knots = Knots(*known, *more) if stored else None
    run = Trajectory.__new__(Trajectory)._fill(metadata, given, arrays, tau, events, outcome, computed, knots)
    run._stored, run._no_model = {name: row for name, (_, row) in named.items()}, why
    run._changes = "p" in arrays or any(event.changed for event in events)
    return run


def _named_in(data: xr.Dataset) -> Iterator[tuple[str, tuple[Any, NamedQuantity]]]:
    """Names, variables and rows of the quantities in a dataset that were read off by name."""
    for key, variable in data.variables.items():
        if "components" in variable.attrs:
            labels, units = json.loads(variable.attrs["components"])
            name = str(key).replace(SLASH, "/")
            words = str(variable.attrs["long_name"])
            yield name, (variable, NamedQuantity(name, tuple(labels), tuple(units), words, _reader(name)))


def _reader(name: str) -> Callable[[Trajectory], np.ndarray]:
    return lambda run: run.quantity(name)


def _labels(data: xr.Dataset) -> Labels:
    def names(axis: str) -> tuple[str, ...]:
        return tuple(map(str, data.variables[axis].values)) if axis in data.variables else ()

    axes = ("coordinate", "coordinate_unit", "rate", "rate_unit", "body", "joint")
    return Labels(str(data.attrs["model"]), str(data.attrs["model_key"]), *map(names, axes))


def _events_in(data: xr.Dataset, batch: tuple[int, ...]) -> Iterator[tuple[Any, ...]]:
    """Fields of the events in a dataset, in the order of `EventRecord`."""
    if "event_name" not in data.variables:
        return
    name, number, time, q, v = (data.variables[f"event_{k}"].values for k in ("name", "system", "time", "q", "v"))
    kept = {
        k: data.variables[f"event_{k}"].values for k in ("p", "v_after", "p_after") if f"event_{k}" in data.variables
    }
    none = np.zeros(0)  # of a model without parameters
    for k in range(len(name)):
        system = tuple(map(int, np.unravel_index(int(number[k]), batch))) if batch else ()
        changed = "v_after" in kept and np.isfinite(kept["v_after"][k]).all()
        p = kept["p"][k] if "p" in kept else none if "v_after" in kept else None
        jump = (kept["v_after"][k], kept["p_after"][k] if "p_after" in kept else none) if changed else (None, None)
        yield str(name[k]), system, float(time[k]), q[k], v[k], p, *jump


# Tables.


def table(run: Trajectory, names: Iterable[str]) -> pd.DataFrame:
    """One row per sample, without padding; columns `time`, `q.joint`, `v.joint`, `reactions.joint.force x`, ..."""
    import pandas as pd

    keep, labels = run.valid, run._metadata.labels
    columns: dict[str, np.ndarray] = {}
    units = {"time": "s"}
    for system, index in zip(system_axes(run.batch), np.nonzero(keep), strict=False):
        columns[system] = index
    columns["time"] = np.broadcast_to(run.time, keep.shape)[keep]
    for name in ("q", "v", *unique(names)):
        rows, about = run.quantity(name)[keep], run.about(name)
        rows = rows.reshape(len(rows), -1)
        for k, label in enumerate(about.labels or ("",)):
            column = f"{name}.{label}" if label else name
            columns[column], units[column] = rows[:, k], about.units[k]
    frame = pd.DataFrame(columns)
    frame.attrs = {"units": units, "model": labels.model}
    return frame


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
            dims = tuple(str(axis).replace("/", SLASH) for axis in variable.dims)
            self._dimensions(dict(zip(dims, variable.shape, strict=True)))
            values = variable.values
            kind = h5py.string_dtype() if values.dtype.kind in "OU" else values.dtype
            packed = {"compression": "gzip", "shuffle": True} if name in MESHES else {}
            made = self.file.create_variable(str(name).replace("/", SLASH), dims, kind, **packed)
            made[...] = values.astype(object) if values.dtype.kind in "OU" else values
            made.attrs.update(variable.attrs)
        self.file.attrs.update(data.attrs)
        self.file.attrs["coordinates"] = " ".join(str(name) for name in data.coords if name not in data.indexes)
        self.raw.check()

    def empty(self, name: str, systems: dict[str, int], own: dict[str, int], attributes: dict[str, str]) -> None:
        """Create an array of NaN in chunks of whole systems, about 256 kB each."""
        sizes = {**systems, **own}
        self._dimensions(sizes)
        chunks = [*own.values()]
        for size in reversed(systems.values()):
            chunks.insert(0, min(size, max(1, 2**18 // max(8 * math.prod(chunks), 1))))
        made = self.file.create_variable(name, tuple(sizes), "f8", chunks=tuple(chunks), fillvalue=np.nan)
        made.attrs.update(attributes)
        self.raw.check()

    def fill(self, name: str, first: int, values: np.ndarray, axes: int = 1) -> None:
        """Write some systems (k, ...) of an array that has so many batch axes; they count along the last one first."""
        array = self.file[name]
        for place, part in _blocks(first, first + len(values), array.shape[:axes]):
            sizes = [axis.stop - axis.start for axis in place if isinstance(axis, slice)]
            block = values[part.start - first : part.stop - first].reshape(*sizes, *array.shape[len(place) :])
            array[place or ...] = block
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


def _blocks(first: int, last: int, shape: tuple[int, ...]) -> Iterator[tuple[tuple[int | slice, ...], slice]]:
    """Cut systems `first` to `last` of a batch into blocks: where each lies in the array, and which systems it has."""
    if not shape:
        yield (), slice(first, last)
        return
    row = math.prod(shape[1:])
    begin, end = -(-first // row), last // row  # whole rows of the first axis
    if begin > end:
        begin = end = last // row + 1
    for k, lo, hi in ((begin - 1, first, min(begin * row, last)), (end, max(end * row, first), last)):
        if lo < hi:
            for place, part in _blocks(lo - k * row, hi - k * row, shape[1:]):
                yield (k, *place), slice(part.start + k * row, part.stop + k * row)
    if begin < end:
        yield (slice(begin, end),), slice(begin * row, end * row)


# What writes the files of a suffix.
WRITERS = {
    ".nc": "run.save(path)", ".csv": "run.to_csv(path)", ".parquet": "run.to_parquet(path)",
    ".html": "run.page(path)", ".htm": "run.page(path)",
    **dict.fromkeys((".png", ".svg", ".pdf", ".jpg"), "run.plot(path=...) or run.draw(...)"),
    **dict.fromkeys((".mp4", ".gif", ".webm"), "run.video(path)"),
    **dict.fromkeys((".xlsx", ".xls", ".ods"), "run.to_dataframe(...).to_excel(path)"),
}  # fmt: skip


def require_suffix(path: str | os.PathLike[str], own: str, what: str) -> None:
    """Refuse to write a file of one kind under a suffix of another: programs would not read it."""
    suffix = file_path(path).suffix.lower()
    if WRITERS.get(suffix, WRITERS[own]) != WRITERS[own]:
        raise FileError(f"{path}: this writes {what}, a {own} file; for a {suffix} file call {WRITERS[suffix]}")


def save(run: Trajectory, path: str | os.PathLike[str], names: Iterable[str], overwrite: bool) -> None:
    """Write a run as NetCDF-4, with its model."""
    require_suffix(path, ".nc", "NetCDF")
    data = dataset(run, names, OF_FILES).assign(model_variables(os.fspath(path), run._model))
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
    require_suffix(path, ".csv", "a table as text")
    frame = table(run, names)
    with whole_file(path, overwrite) as part, open(part, "w", encoding="utf-8", newline="") as file:
        if units:
            file.write(f"# {', '.join(f'{column}: {unit}' for column, unit in frame.attrs['units'].items())}\n")
        frame.to_csv(file, index=False, lineterminator="\n")


def to_parquet(run: Trajectory, path: str | os.PathLike[str], names: Iterable[str], overwrite: bool) -> None:
    """Write the table of a run as Parquet."""
    require_suffix(path, ".parquet", "a table as Parquet")
    try:
        import pyarrow  # noqa: F401
    except ImportError:
        raise FileError(f"{os.fspath(path)}: Parquet files need pyarrow; pip install 'cardan[parquet]'") from None
    frame = table(run, names)
    with whole_file(path, overwrite) as part:
        frame.to_parquet(part, engine="pyarrow", index=False)


def load_run(path: str | os.PathLike[str], model: Model | None = None) -> Trajectory:
    """Read a run saved by `Trajectory.save` or a `Store`.

    Arrays are read from the file on first use, and so is the model in it, from which all quantities are computed. If
    the model could not be saved, only the stored quantities are available; give the model, which must be the one that
    was simulated.
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
    stored = data.variables.get("parameter_value")
    if (
        model is not None
        and model.values is not None
        and not (stored is not None and np.array_equal(np.broadcast_to(model.values, stored.shape), stored))
    ):
        raise FileError(
            f"{name}: the free parameters of model {model.name!r} have other values than in the run; give the model "
            "without values, those of the run are in the file"
        )
    try:
        return run_of(data, model, path)
    except (KeyError, ValueError, TypeError, AttributeError) as error:
        raise FileError(f"{name}: it is damaged: {str(error).strip(chr(34))}") from error


def _require_whole(file: Any) -> None:
    """Refuse a file whose arrays lie elsewhere: reading them would read, or wait for, any file of the user."""
    import h5py

    def fault_of_link(name: str, link: Any) -> str | None:
        if not isinstance(link, h5py.ExternalLink | h5py.SoftLink):
            return None
        where = f"in {link.filename!r}" if isinstance(link, h5py.ExternalLink) else f"at {link.path!r}"
        return f"{name!r} is a link to something {where}"

    def fault_of_array(name: str, item: Any) -> str | None:
        if not isinstance(item, h5py.Dataset):
            return None
        made = item.id.get_create_plist()
        outside = made.get_external_count() or made.get_layout() == h5py.h5d.VIRTUAL
        return f"the array {name!r} lies in other files" if outside else None

    fault = file.visititems_links(fault_of_link) or file.visititems(fault_of_array)
    if fault:
        raise ValueError(f"{fault}; a run has all its arrays in its own file")


def _open(path: str | os.PathLike[str]) -> Any:
    import h5py
    import xarray as xr

    if not file_path(path).is_file():
        raise FileError(f"{os.fspath(path)}: there is no such file")
    try:
        sizes: list[int] = []  # bytes of the arrays according to the headers of the file
        with h5py.File(path) as file:
            _require_whole(file)
            file.visititems(lambda _, item: sizes.append(item.nbytes if isinstance(item, h5py.Dataset) else 0))
        stated, size = sum(sizes), file_path(path).stat().st_size
        if stated > max(LARGEST_RATIO * size, 2**30):
            raise ValueError(f"a file of {size:,} bytes cannot hold arrays of {stated:,} bytes")
        return xr.open_dataset(path, engine="h5netcdf", cache=False, decode_times=False)
    except Exception as error:  # the libraries raise many types for a file that is not NetCDF
        why = str(error).strip().partition("\n")[0]
        if file_path(path).suffix.lower() in (".yaml", ".yml", ".urdf", ".xml"):
            why = "it is a model file, which cd.load(path) reads"
        raise FileError(f"{os.fspath(path)}: it cannot be read as NetCDF-4: {why}") from error
