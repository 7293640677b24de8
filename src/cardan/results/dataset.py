"""A trajectory as an `xarray.Dataset` and back, and as a table for pandas.

Dimensions: `system` (several batch axes: `system0`, `system1`, ...), `time`, `coordinate` (of q), `rate` (of v, a,
tau), `body`, `joint`, `constraint`, and the components of vectors and poses. Where the systems of a batch have times of
their own, the dimension is `sample` and `time` has a row for each. Names are index coordinates; every variable has
`units` and `long_name`; `coordinate_unit` and `rate_unit` have the unit of each entry.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from cardan.errors import UnknownNameError
from cardan.model.model import Model
from cardan.results.quantities import QUANTITIES, STATES, Labels, labels_of, unit_at, with_values
from cardan.results.record import About, EventRecord, as_index

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

    from cardan.results.trajectory import Trajectory

FORMAT = 1
"""Version of the layout, in the attribute `cardan_run`."""
TABLE = {**STATES, **QUANTITIES}


def unique(names: Iterable[Any]) -> tuple[str, ...]:
    """Names of quantities, each once."""
    names = tuple(names)
    for name in names:
        if not isinstance(name, str):
            raise UnknownNameError(f"trajectory: quantities are named one by one, as text, got {name!r}")
    return tuple(dict.fromkeys(names))


def dataset(run: Trajectory, names: Iterable[str]) -> xr.Dataset:
    """The states of a run and the quantities named."""
    systems, when = _systems(run.batch), "time" if run.time.ndim == 1 else "sample"
    names = unique(names)
    arrays = {name: run.quantity(name) for name in ("q", "v", *names)}
    made = {name: variable(run._about.labels, name, (*systems, when), value) for name, value in arrays.items()}
    if run.tau is not None:
        made["tau"] = variable(run._about.labels, "tau", systems if run.tau.ndim > 1 else (), run.tau)
    if run._model is not None:
        made |= parameter_variables(run._model, run.batch)
    made |= event_variables(run.events, run.batch, run._about.labels)
    return header(run._about, run.batch, run.time, run._outcome, made)


def header(about: About, batch: tuple[int, ...], time: Any, outcome: Any, variables: dict[str, Any]) -> xr.Dataset:
    """A dataset with these variables, named coordinates, and what the run says of itself."""
    import xarray as xr

    labels, systems = about.labels, _systems(batch)
    used = {axis for dims, *_ in variables.values() for axis in dims} | {"coordinate", "rate"}
    coords: dict[str, Any] = {system: np.arange(size) for system, size in zip(systems, batch, strict=True)}
    coords |= {axis: _text(names) for axis in sorted(used) if (names := labels.along(axis)) is not None}
    coords["coordinate_unit"] = ("coordinate", _text(labels.coordinate_unit))
    coords["rate_unit"] = ("rate", _text(labels.rate_unit))
    if time is not None:
        dims = "time" if np.ndim(time) == 1 else (*systems, "sample")
        coords["time"] = (dims, time, {"units": "s", "long_name": "time"})
    stated = {
        "cardan_run": FORMAT, "model": labels.model, "model_key": labels.key, "method": about.method,
        "formulation": about.formulation,
        "settings": _json(about.settings), "statistics": _json(about.statistics),
    }  # fmt: skip
    words = (systems, _text(outcome), {"long_name": "why a system stopped early, empty if it did not"})
    return xr.Dataset({**variables, "outcome": words}, coords, stated)


def variable(labels: Labels, name: str, lead: tuple[str, ...], value: Any) -> tuple[Any, ...]:
    """Dimensions, values and attributes of a quantity."""
    quantity = TABLE[name]
    units = labels.units(name, quantity)
    said = units if isinstance(units, str) else " and ".join(dict.fromkeys(units))
    return (*lead, *quantity.axes), value, {"units": said, "long_name": quantity.words}


def _systems(batch: tuple[int, ...]) -> tuple[str, ...]:
    return ("system",) * len(batch) if len(batch) < 2 else tuple(f"system{k}" for k in range(len(batch)))


def parameter_variables(model: Model, batch: tuple[int, ...]) -> dict[str, Any]:
    """Values of the free parameters, and which they are; nothing where they have been given none."""
    free, values = model.parameters, model.values
    if values is None:
        return {}
    names = [p.name if p.size == 1 else f"{p.name}[{k}]" for p in free for k in range(p.size)]
    lead = () if values.ndim == 1 else _systems(batch)
    values = values if values.ndim == 1 else np.broadcast_to(values, (*batch, values.shape[-1]))
    words = {"long_name": "values of the free parameters", "units": "SI"}
    return {"parameter_value": ((*lead, "parameter"), values, words), "parameter_name": ("parameter", _text(names))}


def event_variables(events: Iterable[EventRecord], batch: tuple[int, ...], labels: Labels) -> dict[str, Any]:
    """The events met, along `event`; none if there are none."""
    events = list(events)
    if not events:
        return {}
    numbers = [int(np.ravel_multi_index(as_index(e.system), batch)) if batch else 0 for e in events]
    return {
        "event_name": ("event", _text([e.name for e in events])),
        "event_system": ("event", np.array(numbers), {"long_name": "number of the system, batch axes flattened"}),
        "event_time": ("event", np.array([e.time for e in events], dtype=float), {"units": "s"}),
        "event_q": variable(labels, "q", ("event",), np.stack([np.asarray(e.q, dtype=float) for e in events])),
        "event_v": variable(labels, "v", ("event",), np.stack([np.asarray(e.v, dtype=float) for e in events])),
    }


def _text(words: Any) -> np.ndarray:
    return np.asarray(words, dtype=object if np.size(words) == 0 else str)


def _json(values: Any) -> str:
    """Plain values as JSON; NumPy's numbers and arrays as numbers and lists."""
    return json.dumps(dict(values), default=lambda x: x.tolist() if hasattr(x, "tolist") else str(x))


# Back again.


def run_of(data: xr.Dataset, model: Model | None) -> Trajectory:
    """The trajectory in a dataset, whose arrays are read when first asked for; KeyError where something is missing."""
    from cardan.results.trajectory import Trajectory

    stated = data.attrs
    about = About(
        labels_of(model) if model is not None else _labels(data),
        str(stated["method"]), str(stated["formulation"]),
        json.loads(stated["settings"]), json.loads(stated["statistics"]),
    )  # fmt: skip
    arrays = {name: data.variables[name] for name in ("time", "q", "v")}
    batch = tuple(arrays["q"].shape[:-2])
    tau = data.variables["tau"].values if "tau" in data.variables else None
    if model is not None and "parameter_value" in data.variables:
        model = with_values(model, data.variables["parameter_value"].values)
    computed = {name: data.variables[name] for name in QUANTITIES if name in data.variables}
    outcome = data.variables["outcome"].values.astype(str)
    return Trajectory.__new__(Trajectory)._fill(
        about, model, arrays, tau, list(_events_in(data, batch)), outcome, computed
    )


def _labels(data: xr.Dataset) -> Labels:
    def names(axis: str) -> tuple[str, ...]:
        return tuple(map(str, data.variables[axis].values)) if axis in data.variables else ()

    axes = ("coordinate", "coordinate_unit", "rate", "rate_unit", "body", "joint")
    return Labels(str(data.attrs["model"]), str(data.attrs["model_key"]), *map(names, axes))


def _events_in(data: xr.Dataset, batch: tuple[int, ...]) -> Iterator[EventRecord]:
    if "event_name" not in data.variables:
        return
    name, number, time, q, v = (data.variables[f"event_{k}"].values for k in ("name", "system", "time", "q", "v"))
    for k in range(len(name)):
        system = tuple(map(int, np.unravel_index(int(number[k]), batch))) if batch else ()
        yield EventRecord(str(name[k]), system, float(time[k]), q[k], v[k])


# As a table.


def table(run: Trajectory, names: Iterable[str]) -> pd.DataFrame:
    """One row a sample, padding left out; columns `time`, `q.joint`, `v.joint`, `reactions.joint.force x`, ..."""
    import pandas as pd

    keep, labels = run.valid, run._about.labels
    columns: dict[str, np.ndarray] = {}
    units = {"time": "s"}
    for system, index in zip(_systems(run.batch), np.nonzero(keep), strict=False):
        columns[system] = index
    columns["time"] = np.broadcast_to(run.time, keep.shape)[keep]
    for name in ("q", "v", *unique(names)):
        rows, quantity = run.quantity(name)[keep], TABLE[name]
        for place in np.ndindex(rows.shape[1:]):
            along = (_name(labels, axis, k) for axis, k in zip(quantity.axes, place, strict=True))
            column = ".".join([name, *along])
            columns[column] = rows[(slice(None), *place)]
            units[column] = unit_at(labels.units(name, quantity), quantity.axes, place)
    frame = pd.DataFrame(columns)
    frame.attrs = {"units": units, "model": labels.model}
    return frame


def _name(labels: Labels, axis: str, k: int) -> str:
    names = labels.along(axis)
    return str(k) if names is None else names[k]
