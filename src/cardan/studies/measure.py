"""What is kept of each run of a study: a quantity by name, or a function of the run, over time or reduced to a number.

Reductions add up in the order of time, one number after the other. NumPy's own sums group numbers by the shape of an
array, so that a member's last bits would depend on the members computed together with it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from cardan.errors import InputError, nearest
from cardan.model.values import shown
from cardan.results.trajectory.quantities import QUANTITIES, STATES

if TYPE_CHECKING:
    from cardan.results.trajectory.trajectory import Trajectory

Reducer = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]
WHOLE = "time"


@dataclass(frozen=True)
class Described:
    """What a measure's array is: dimensions after that of members with their labels, units and description."""

    dims: tuple[str, ...] = ()
    labels: tuple[tuple[str, ...] | None, ...] = ()
    units: str = ""
    description: str = ""


@dataclass(frozen=True)
class Measure:
    """One thing that is kept of each member of a study.

    Args:
        of: name of a quantity, as `run[...]` takes it ("A.reaction_force", "energy", "crank.position.x"); or a function
            of a `cd.Trajectory` of k systems that returns an array (k, ...).
        over: what is made of it over time: "time" keeps all samples; "max", "min", "peak" (the largest magnitude),
            "mean", "rms", "first", "final", "range" (max less min), "time_of_max", "time_of_min", "integral".
        units: of the result of a function.
        description: of the result of a function.

    A function is reduced only if `over` is not "time"; then it returns (k, n) or (k, n, ...), n the samples.

    """

    of: str | Callable[[Trajectory], Any]
    over: str = WHOLE
    units: str = field(default="", kw_only=True)
    description: str = field(default="", kw_only=True)

    def __post_init__(self) -> None:
        if not isinstance(self.of, str) and not callable(self.of):
            raise InputError(f"measure: give the name of a quantity or a function of a run, got {shown(self.of)}")
        if self.over != WHOLE and self.over not in REDUCTIONS:
            known = nearest(self.over, [WHOLE, *REDUCTIONS])
            raise InputError(f"measure of {self.title}: over={shown(self.over)} is not a reduction over time{known}")

    @property
    def title(self) -> str:
        """The quantity, or the function's name."""
        return repr(self.of) if isinstance(self.of, str) else getattr(self.of, "__name__", "a function")

    def values(self, run: Trajectory) -> np.ndarray:
        """The measure (k, ...) of a run of k systems."""
        found = np.asarray(run[self.of] if isinstance(self.of, str) else self.of(run))
        if found.dtype.kind not in "fiub":
            raise InputError(f"measure of {self.title}: it must return numbers, got {shown(found)}")
        if found.shape[:1] != run.batch:
            raise InputError(
                f"measure of {self.title}: it must return an array with one entry for each of {run.batch[0]} runs "
                f"first, got the shape {found.shape}"
            )
        if self.over == WHOLE:
            return np.asarray(found, dtype=float)
        if found.shape[:2] != run.valid.shape:
            raise InputError(
                f"measure of {self.title}: to be reduced over time it must have the shape {run.valid.shape}, got "
                f"{found.shape}"
            )
        time = np.broadcast_to(run.time, run.valid.shape)
        return REDUCTIONS[self.over](np.asarray(found, dtype=float), run.valid, time)

    def about(self, run: Trajectory, shape: tuple[int, ...]) -> Described:
        """Dimensions, labels and units of an array (k, *shape) of this measure."""
        if not isinstance(self.of, str):
            dims = tuple(f"{self.title} {k}" for k in range(len(shape)))
            return Described(dims, (None,) * len(shape), self.units, self.description or self.title)
        about, labels = run.about(self.of), run._metadata.labels
        row = {**STATES, **QUANTITIES}.get(self.of)
        axes = about.axes if row is None else row.axes
        along = (about.labels,) * len(axes) if row is None else tuple(labels.along(axis) for axis in axes)
        units = " and ".join(dict.fromkeys(about.units))
        if self.over == WHOLE:
            return Described(("time", *axes), (None, *along), units, about.description)
        if self.over in _UNITS:
            units = _UNITS[self.over](units)
        return Described(axes, along, units, f"{WORDS[self.over]} {about.description}")


def measures_of(given: Any) -> dict[str, Measure]:
    """Measures by name: from names of quantities, a dict, one measure, or one function of a run."""
    if isinstance(given, str):
        given = [given]
    if isinstance(given, Measure) or callable(given):
        given = {getattr(given, "__name__", "measure") if callable(given) else _short(given): given}
    if isinstance(given, Sequence):
        given = {_short(each): each for each in given}
    if not isinstance(given, Mapping) or not given:
        raise InputError(
            "sweep: measure must be names of quantities, a dict of measures by name, or a function of a run, got "
            f"{shown(given)}"
        )
    for name in given:
        require_name(name)
    return {name: each if isinstance(each, Measure) else Measure(each) for name, each in given.items()}


AXES = ("status", "member", "time", "sample")
FILES = (".", "..", "cardan.json", "chunks.txt", "lock", "zarr.json")
"""What else lies in the folder of a store, in which every measure and parameter has a folder of its own."""


def require_name(name: Any, parameters: Sequence[str] = ()) -> None:
    """Reject what cannot be the name of a measure."""
    if not isinstance(name, str) or not name or "/" in name or name in (*AXES, *FILES):
        raise InputError(f"sweep: {shown(name)} cannot be the name of a measure; take a word, without '/'")
    if name in parameters:
        raise InputError(f"sweep: {name!r} is a parameter of the study, and a measure cannot have its name too")


def _short(given: Any) -> str:
    """A name for what has none."""
    measure = given if isinstance(given, Measure) else Measure(given)
    title = measure.of if isinstance(measure.of, str) else measure.title
    return title if measure.over == WHOLE else f"{measure.over} of {title}"


# Reductions over time of values (k, n, ...) where valid (k, n), at times (k, n), s.


def _masked(values: np.ndarray, valid: np.ndarray, empty: float) -> np.ndarray:
    return np.where(valid.reshape(*valid.shape, *(1,) * (values.ndim - 2)), values, empty)


def _or_nan(found: np.ndarray, valid: np.ndarray) -> np.ndarray:
    return np.where(valid.any(axis=1).reshape(-1, *(1,) * (found.ndim - 1)), found, np.nan)


def _extreme(values: np.ndarray, valid: np.ndarray, sign: float) -> np.ndarray:
    return sign * _or_nan(_masked(sign * values, valid, -np.inf).max(axis=1), valid)


def _at(values: np.ndarray, valid: np.ndarray, place: np.ndarray) -> np.ndarray:
    return _or_nan(values[np.arange(len(values)), place], valid)


def _time_of(values: np.ndarray, valid: np.ndarray, time: np.ndarray, sign: float) -> np.ndarray:
    place = _masked(sign * values, valid, -np.inf).argmax(axis=1)
    rows = np.arange(len(values)).reshape(-1, *(1,) * (place.ndim - 1))
    return _or_nan(time[rows, place], valid)


def _integral(values: np.ndarray, valid: np.ndarray, time: np.ndarray) -> np.ndarray:
    """Trapezoidal rule, added up from the start on."""
    both = valid[:, 1:] & valid[:, :-1]
    width = np.where(both, np.diff(time, axis=1), 0.0).reshape(*both.shape, *(1,) * (values.ndim - 2))
    mean = _masked((values[:, 1:] + values[:, :-1]) / 2, both, 0.0)
    total = np.zeros((len(values), *values.shape[2:]))
    for k in range(both.shape[1]):
        total += width[:, k] * mean[:, k]
    return _or_nan(total, valid)


def _mean(values: np.ndarray, valid: np.ndarray, time: np.ndarray) -> np.ndarray:
    length = np.ptp(np.where(valid, time, time[:, :1]), axis=1).reshape(-1, *(1,) * (values.ndim - 2))
    still = length == 0
    return np.where(still, _first(values, valid), _integral(values, valid, time) / np.where(still, 1.0, length))


def _first(values: np.ndarray, valid: np.ndarray, time: np.ndarray | None = None) -> np.ndarray:
    return _at(values, valid, valid.argmax(axis=1))


def _final(values: np.ndarray, valid: np.ndarray, time: np.ndarray | None = None) -> np.ndarray:
    return _at(values, valid, valid.shape[1] - 1 - valid[:, ::-1].argmax(axis=1))


REDUCTIONS: dict[str, Reducer] = {
    "max": lambda x, valid, t: _extreme(x, valid, 1.0),
    "min": lambda x, valid, t: _extreme(x, valid, -1.0),
    "peak": lambda x, valid, t: _extreme(np.abs(x), valid, 1.0),
    "range": lambda x, valid, t: _extreme(x, valid, 1.0) - _extreme(x, valid, -1.0),
    "mean": _mean,
    "rms": lambda x, valid, t: np.sqrt(_mean(x * x, valid, t)),
    "integral": _integral,
    "first": _first,
    "final": _final,
    "time_of_max": lambda x, valid, t: _time_of(x, valid, t, 1.0),
    "time_of_min": lambda x, valid, t: _time_of(x, valid, t, -1.0),
}
"""By name; padding after the end of a run is left out."""

WORDS = {
    "max": "largest", "min": "smallest", "peak": "largest magnitude of", "range": "range of",
    "mean": "mean over time of", "rms": "root mean square over time of",
    "integral": "integral over time of", "first": "first", "final": "final",
    "time_of_max": "time of the largest", "time_of_min": "time of the smallest",
}  # fmt: skip
_UNITS: dict[str, Callable[[str], str]] = {
    "time_of_max": lambda unit: "s", "time_of_min": lambda unit: "s", "integral": lambda unit: f"{unit} s",
}  # fmt: skip


# Short forms.


def peak(of: Any) -> Measure:
    """Largest magnitude over time of a quantity of a run, by name, or of a function of the run."""
    return Measure(of, "peak")


def largest(of: Any) -> Measure:
    """Largest value over time."""
    return Measure(of, "max")


def smallest(of: Any) -> Measure:
    """Smallest value over time."""
    return Measure(of, "min")


def mean(of: Any) -> Measure:
    """Mean over time, by the trapezoidal rule between samples."""
    return Measure(of, "mean")


def rms(of: Any) -> Measure:
    """Root mean square over time."""
    return Measure(of, "rms")


def final(of: Any) -> Measure:
    """Value at the end of the run."""
    return Measure(of, "final")
