"""One measure of a study as numbers: its component, its unit, and which members have it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from cardan.errors import InputError, UnknownNameError, nearest
from cardan.model.values import shown
from cardan.results.plots import in_angle

if TYPE_CHECKING:
    import xarray

    from cardan.studies.study import Study


@dataclass(frozen=True)
class Selected:
    """A measure, or a parameter, of the members of a study.

    Args:
        name: with the component, as "peak, x".
        units: SI, or degrees.
        array: with the dimensions of the design and, if allowed, one more; NaN where there is none.

    """

    name: str
    units: str
    array: xarray.DataArray

    @property
    def label(self) -> str:
        """Name and unit, for an axis."""
        shown_units = self.units.replace("^2", "²").replace("^3", "³")
        return f"{self.name} ({shown_units})" if self.units and self.units != "1" else self.name


def measure_names(study: Study) -> list[str]:
    """The measures of a study."""
    return list(study.variables)


def measure_name(owner: str, study: Study, measure: str | None) -> str:
    """A measure of the study by name; None for the first one."""
    names = measure_names(study)
    if measure is not None and measure not in names:
        raise UnknownNameError(f"{owner}: {measure!r} is not a measure of the study{nearest(str(measure), names)}")
    return names[0] if measure is None else measure


def selected(
    owner: str, study: Study, measure: str | None, at: Mapping[str, Any] | None = None, *, angle: str = "rad",
    over: str | None = None,
) -> Selected:  # fmt: skip
    """A measure with one number for each member, or along `over` for each.

    Args:
        owner: for messages.
        study: the results.
        measure: its name; None for the first one.
        at: by dimension the value to take: a label, or the number nearest to one; of a parameter's axis too.
        angle: "rad" or "deg".
        over: a dimension of the measure that is kept, as "time".

    """
    measure = measure_name(owner, study, measure)
    if angle not in ("rad", "deg"):
        raise InputError(f"{owner}: angle must be 'rad' or 'deg', got {angle!r}")
    array = study.dataset[measure]
    words = [measure]
    for dim, value in (at or {}).items():
        if dim not in array.dims:
            raise UnknownNameError(
                f"{owner}: {measure!r} has no dimension {dim!r} to take a value at{nearest(dim, map(str, array.dims))}"
            )
        array = _taken(owner, array, dim, value)
        if dim not in study.design.dims:
            words.append(_named(array, dim, value))
    extra = [str(dim) for dim in array.dims if dim not in study.design.dims and dim != over]
    for dim in extra:
        if array.sizes[dim] > 1:
            entries = _entries(array, dim)
            raise InputError(
                f"{owner}: {measure!r} has {array.sizes[dim]} numbers along {dim!r} for each member; take one of them, "
                f"as at={{{dim!r}: {entries[0]!r}}}"
            )
        array = array.isel({dim: 0})
    values, units = in_angle(np.asarray(array.values, dtype=float), str(array.attrs.get("units", "")), angle)
    return Selected(", ".join(words), units, array.copy(data=values))


def parameter(owner: str, study: Study, name: str, angle: str = "rad") -> Selected:
    """Values of a parameter along its axes."""
    if name not in study.design.coordinates:
        raise UnknownNameError(
            f"{owner}: {name!r} is not a parameter of the study{nearest(name, study.design.coordinates)}"
        )
    array = study.dataset.coords[name]
    values, units = in_angle(np.asarray(array.values, dtype=float), str(array.attrs.get("units", "")), angle)
    return Selected(name, units, array.copy(data=values).drop_vars(list(array.coords)))


def varied(study: Study) -> list[str]:
    """The parameters that are not the same in all members."""
    return [name for k, name in enumerate(study.design.names) if np.ptp(study.design.values[:, k]) > 0]


def missing(study: Study) -> str:
    """How many members failed or are not computed yet, in words; "" if all are there."""
    status = study.status
    left = status.members - status.done - status.failed
    parts = [f"{status.failed:,} failed"] if status.failed else []
    parts += [f"{left:,} not computed"] if left else []
    return f"{' and '.join(parts)} of {status.members:,} members" if parts else ""


def _entries(array: xarray.DataArray, dim: str) -> list[Any]:
    return list(array[dim].values.tolist()) if dim in array.coords else list(range(array.sizes[dim]))


def _named(array: xarray.DataArray, dim: str, value: Any) -> str:
    """A value along a dimension in words: "x", or "time 0.5"."""
    return str(value) if isinstance(value, str) else f"{dim} {value:g}"


def _taken(owner: str, array: xarray.DataArray, dim: str, value: Any) -> xarray.DataArray:
    """The entry of a label, or the one nearest to a number."""
    entries = _entries(array, dim)
    if isinstance(value, str):
        if value not in entries:
            raise UnknownNameError(
                f"{owner}: {dim!r} has no entry {value!r}{nearest(value, [str(x) for x in entries])}"
            )
        return array.isel({dim: entries.index(value)})
    try:
        distance = np.abs(np.asarray(entries, dtype=float) - float(value))
    except (TypeError, ValueError):
        raise InputError(f"{owner}: {dim!r} is taken at one of {shown(entries)}, got {shown(value)}") from None
    return array.isel({dim: int(distance.argmin())})
