"""Measurements from a table: a CSV file with the columns `q.JOINT`, `v.JOINT`, `a.JOINT`, `tau.JOINT` and `time`.

The names are those of `run.to_csv`, SI units. The joints with a column `tau.` are driven. Where rates or accelerations
are missing, splines of degree five through the coordinates over `time` give them. With loops the coordinates of the
driven joints are enough: the others follow.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cardan.analysis.identification.driven_motion import coordinate_places, whole_motion
from cardan.analysis.identification.motions import freedoms
from cardan.errors import FileError, InputError
from cardan.model.model import Model
from cardan.results.trajectory.quantities import labels_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

DEGREE = 5


@dataclass(frozen=True, eq=False)
class Measurements:
    """Samples `q` (n, nq), `v`, `a` (n, nv), `tau` (n, driven) and the names of the driven coordinates."""

    q: NDArray[Any]
    v: NDArray[Any]
    a: NDArray[Any]
    tau: NDArray[Any]
    driven: tuple[str, ...]


def read_measurements(model: Model, path: str | Path) -> Measurements:
    """Read a table of samples of a model."""
    columns = _columns(Path(path))
    labels = labels_of(model)
    driven = tuple(name for name in labels.rate if f"tau.{name}" in columns)
    if not driven:
        raise FileError(f"{path}: there is no column of forces; name them tau.JOINT, such as tau.{labels.rate[0]}")
    tau = np.stack([columns[f"tau.{name}"] for name in driven], axis=-1)
    if all(f"q.{name}" in columns for name in labels.coordinate):
        q, v, a = _whole(model, path, columns)
    elif model.has_rows and len(driven) == freedoms(model):
        places = [labels.rate.index(name) for name in driven]
        if not set(places) <= set(coordinate_places(model)):
            raise FileError(f"{path}: {driven[0]!r} has a quaternion; give the coordinates q. of every joint")
        parts = [_of(path, columns, what, driven) for what in ("q", "v", "a")]
        q, v, a, good = whole_motion(model, places, *(x[None] for x in parts))
        if not good.all():
            raise InputError(f"{path}: the loops cannot be closed along these coordinates of {', '.join(driven)}")
        q, v, a = q[0], v[0], a[0]
    else:
        missing = next(name for name in labels.coordinate if f"q.{name}" not in columns)
        raise FileError(f"{path}: there is no column q.{missing}")
    return Measurements(q, v, a, tau, driven)


def _whole(model: Model, path: Any, columns: dict[str, NDArray[Any]]) -> tuple[NDArray[Any], ...]:
    labels = labels_of(model)
    q = np.stack([columns[f"q.{name}"] for name in labels.coordinate], axis=-1)
    if model.nq != model.nv and not all(f"v.{name}" in columns for name in labels.rate):
        raise FileError(f"{path}: with quaternions the rates must be given, too: columns v.JOINT")
    found = [_of(path, columns, what, labels.rate) for what in ("v", "a")]
    return q, found[0], found[1]


def _of(path: Any, columns: dict[str, NDArray[Any]], name: str, names: tuple[str, ...]) -> NDArray[Any]:
    """Columns `q.`, `v.` or `a.` of some coordinates; rates and accelerations from splines where they are missing."""
    order = ("q", "v", "a").index(name)
    for given in range(order, -1, -1):
        letter = "qva"[given]
        if all(f"{letter}.{each}" in columns for each in names):
            x = np.stack([columns[f"{letter}.{each}"] for each in names], axis=-1)
            return x if given == order else _derivative(path, columns, x, order - given)
    raise FileError(f"{path}: there is no column q.{names[0]}")


def _derivative(path: Any, columns: dict[str, NDArray[Any]], x: NDArray[Any], order: int) -> NDArray[Any]:
    from scipy.interpolate import make_interp_spline

    t = columns.get("time")
    if t is None or len(t) <= DEGREE or not (np.diff(t) > 0).all():
        raise FileError(
            f"{path}: rates or accelerations are missing, and to derive them the column time must rise over at least "
            f"{DEGREE + 1} samples"
        )
    return np.asarray(make_interp_spline(t, x, k=DEGREE).derivative(order)(t))


def _columns(path: Path) -> dict[str, NDArray[Any]]:
    try:
        with path.open(encoding="utf-8", newline="") as file:
            rows = [row for row in csv.reader(file) if row and not row[0].startswith("#")]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        why = "there is no such file" if isinstance(error, FileNotFoundError) else "it is no readable text table"
        raise FileError(f"{path}: {why}") from None
    if len(rows) < 2:
        raise FileError(f"{path}: it has no samples; write a line of column names, then a line for each sample")
    names = [name.strip() for name in rows[0]]
    twice = next((name for k, name in enumerate(names) if name in names[:k]), None)
    if twice is not None:
        raise FileError(f"{path}: there are two columns {twice!r}")
    values = np.empty((len(rows) - 1, len(names)))
    for k, row in enumerate(rows[1:]):
        if len(row) != len(names):
            raise FileError(f"{path}: line {k + 2} has {len(row)} entries, and there are {len(names)} columns")
        for i, text in enumerate(row):
            try:
                values[k, i] = float(text)
            except ValueError:
                raise FileError(f"{path}: line {k + 2}, column {names[i]}: {text!r} is not a number") from None
    bad = np.argwhere(~np.isfinite(values))
    if len(bad):
        k, i = bad[0].tolist()
        raise FileError(f"{path}: line {k + 2}, column {names[i]}: {values[k, i]} is not finite")
    return dict(zip(names, values.T, strict=True))
