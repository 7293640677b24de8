"""Plots of studies: lines, heat maps, scatter, tornado and histogram; members that failed are shown as such."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from cardan.errors import InputError
from cardan.results.figure import COLOURS, GREY, INK, WIDTH, FigureOutput, new_figure, owner_of, style
from cardan.results.plots import BAND, LEGEND_UP_TO
from cardan.studies.indices import ANALYSES, indices_of
from cardan.studies.selection import Selected, measure_name, measure_names, missing, parameter, selected, varied

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from cardan.studies.study import Study

FAILED = COLOURS[1]
LINES = 40  # more lines than this are drawn as a median and a band
POINTS = 20_000  # most points of a scatter plot; more are thinned evenly
BINS = 60
PANEL = 1.9  # inch, one side of a panel of a scatter matrix
MAP_COLOURS = "viridis"


@dataclass(frozen=True)
class _Axis:
    """What a plot is drawn over: a parameter, or a dimension of the measure such as time."""

    dim: str | None
    name: str
    units: str
    values: np.ndarray

    @property
    def label(self) -> str:
        return f"{self.name} ({self.units})" if self.units else self.name


def plot_lines(
    study: Study, measure: str | None, over: str | None, at: Mapping[str, Any] | None, angle: str, output: FigureOutput
) -> Figure:  # fmt: skip
    """A measure over one parameter, or over time; other axes of the design are a family of lines, or a band."""
    owner = "plot"
    axis = _axis(owner, study, measure, over, at, angle)
    found = selected(owner, study, measure, at, angle=angle, over=axis.dim)
    figure, (axes,) = _figure(output, (WIDTH, 3.4), owner, ["lines"])
    with style():
        if axis.dim is None:  # a sampled parameter: its values have no order
            _points(axes, study, axis, found)
        else:
            _family(axes, study, axis, found)
        axes.set_xlabel(axis.label)
        axes.set_ylabel(found.label)
        _say_missing(axes, study)
    return output.write(figure)


def _axis(
    owner: str, study: Study, measure: str | None, over: str | None, at: Mapping[str, Any] | None, angle: str
) -> _Axis:  # fmt: skip
    """What to draw over: by default time if the measure has it, otherwise the first axis of the design."""
    dims, taken = study.design.dims, at or {}
    own = [str(d) for d in study.dataset[measure_name(owner, study, measure)].dims if d not in dims and d not in taken]
    if over is None:
        names = [name for name in varied(study) if not set(study.design.coordinates[name][0]) & set(taken)]
        spanned = [name for name in names if study.design.coordinates[name][0] == (name,)]
        over = "time" if "time" in own else next(iter(spanned or names), None)
        if over is None:
            raise InputError(f"{owner}: nothing is left to draw over; take no value of at least one parameter in at=")
    if over in own:
        values = study.dataset[over].values if over in study.dataset.coords else np.arange(study.dataset.sizes[over])
        if values.dtype.kind not in "fiu":
            raise InputError(f"{owner}: {over!r} has names, not numbers; draw over a parameter, or over 'time'")
        return _Axis(over, over, "s" if over == "time" else "", np.asarray(values, dtype=float))
    found = parameter(owner, study, over, angle)
    along = study.design.coordinates[over][0]
    dim = along[0] if along == (over,) else None
    if dim is not None and dim in taken:
        raise InputError(f"{owner}: {over!r} is what is drawn over; take no value of it in at=")
    return _Axis(dim, over, found.units.replace("^2", "²"), np.asarray(found.array.values))


def _family(axes: Axes, study: Study, axis: _Axis, found: Selected) -> None:
    """Lines along one dimension, one for each combination of the others; samples as a median and a band."""
    assert axis.dim is not None
    order = np.argsort(axis.values, kind="stable")
    x = axis.values[order]
    array = found.array.transpose(..., axis.dim)
    others = [str(dim) for dim in array.dims[:-1]]
    unordered = [dim for dim in others if dim in ("sample", "member")]
    lines = [dim for dim in others if dim not in unordered]
    array = array.transpose(*lines, *unordered, axis.dim)
    shape = array.shape[: len(lines)]
    rows = array.values.reshape(int(np.prod(shape)), -1, len(x))[..., order]
    names = [_combination(study, lines, k, shape) for k in range(len(rows))]
    colours = _colours(len(rows))
    if len(rows) == 1 and rows.shape[1] <= LINES:  # each member by itself
        for k, y in enumerate(rows[0]):
            many = rows.shape[1] > 1
            axes.plot(x, y, color=COLOURS[0] if many else COLOURS[k], linewidth=0.8 if many else 1.3,
                      alpha=0.7 if many else 1.0, **_marks(x))  # fmt: skip
    else:
        for k, own in enumerate(rows):
            _line_or_band(axes, x, own, colours[k], names[k])
        _legend(axes, names)
        if rows.shape[1] > 1:
            words = f"median and {BAND[0]:g} to {BAND[2]:g} % of {rows.shape[1]} samples"
            axes.set_title(words, loc="left", fontsize=7.5, color=GREY)
    bad = ~np.isfinite(rows)
    if axis.dim in study.design.dims and bad.any():
        _mark_failed(axes, x[bad.any(axis=(0, 1))])


def _line_or_band(axes: Axes, x: np.ndarray, rows: np.ndarray, colour: Any, name: str) -> None:
    if len(rows) == 1:
        axes.plot(x, rows[0], color=colour, label=name, **_marks(x))
        return
    low, middle, high = _percentiles(rows)
    axes.fill_between(x, low, high, color=colour, alpha=0.2, linewidth=0)
    axes.plot(x, middle, color=colour, label=name, **_marks(x))


def _percentiles(rows: np.ndarray) -> np.ndarray:
    """Percentiles `BAND` (3, n) over the finite ones of rows (m, n)."""
    found = np.full((len(BAND), rows.shape[1]), np.nan)
    kept = np.isfinite(rows).any(axis=0)
    found[:, kept] = np.nanpercentile(rows[:, kept], BAND, axis=0)
    return found


def _marks(x: np.ndarray) -> dict[str, Any]:
    """Few values are marked, since a line between them is a guess."""
    return {"marker": "o", "markersize": 3} if len(x) <= 25 else {}


def _combination(study: Study, dims: Sequence[str], k: int, shape: tuple[int, ...]) -> str:
    """The values of some axes at one of their combinations."""
    places = np.unravel_index(k, shape) if shape else ()
    words = []
    for dim, place in zip(dims, places, strict=True):
        at = study.dataset.coords.get(dim)
        value = f"{at.values[place]:.4g}" if at is not None else f"#{int(place)}"
        units = "" if at is None else str(at.attrs.get("units", ""))
        words.append(f"{dim} = {value} {units}".rstrip(" 1") if units == "1" else f"{dim} = {value} {units}".rstrip())
    return "\n".join(words)


def _colours(count: int) -> list[Any]:
    """A colour for each of a few lines; from dark to light for an ordered family of many."""
    if count <= 3:
        return list(COLOURS[:count])
    from matplotlib import colormaps

    return list(colormaps[MAP_COLOURS](np.linspace(0, 0.9, count)))


def _legend(axes: Axes, names: Sequence[str]) -> None:
    """Names beside the axes; of many lines the first and the last."""
    if not any(names):
        return
    handles, labels = axes.get_legend_handles_labels()
    if len(labels) > LEGEND_UP_TO:
        handles, labels = [handles[0], handles[-1]], [labels[0], f"{labels[-1]}\n(last of {len(labels)})"]
    axes.legend(handles, labels, loc="center left", bbox_to_anchor=(1.005, 0.5), borderaxespad=0.2, labelspacing=0.4)


def _points(axes: Axes, study: Study, axis: _Axis, found: Selected) -> None:
    """One point for each member over a sampled parameter."""
    x, y = _flat(study, axis, found)
    good = np.isfinite(y)
    axes.plot(*_thinned(x[good], y[good]), "o", color=COLOURS[0], markersize=_size(good.sum()), alpha=0.6,
              markeredgewidth=0)  # fmt: skip
    if (~good).any():
        _mark_failed(axes, x[~good])


def _flat(study: Study, axis: _Axis, found: Selected) -> tuple[np.ndarray, np.ndarray]:
    """A parameter and a measure, one number for each member that was selected."""
    along = study.design.coordinates[axis.name][0]
    where = found.array.copy(data=np.zeros(found.array.shape))
    x = (where.drop_vars(list(where.coords)) + _array(axis.values, along)).transpose(*found.array.dims)
    return np.asarray(x.values).ravel(), np.asarray(found.array.values).ravel()


def _array(values: np.ndarray, dims: Sequence[str]) -> Any:
    import xarray

    return xarray.DataArray(values, dims=tuple(dims))


def _thinned(x: np.ndarray, y: np.ndarray, *more: np.ndarray) -> tuple[np.ndarray, ...]:
    """At most `POINTS` points, evenly chosen."""
    kept = np.unique(np.linspace(0, max(len(x) - 1, 0), min(len(x), POINTS)).astype(int)) if len(x) else slice(0)
    return tuple(each[kept] for each in (x, y, *more))


def _size(count: int) -> float:
    return float(np.clip(60 / np.sqrt(max(count, 1)), 1.0, 4.0))


def _mark_failed(axes: Axes, x: np.ndarray) -> None:
    """Crosses along the bottom where members failed."""
    x = np.unique(x)
    axes.plot(x, np.full(len(x), 0.02), "x", color=FAILED, markersize=4, transform=axes.get_xaxis_transform(),
              clip_on=False, gid="failed")  # fmt: skip


def _say_missing(axes: Axes, study: Study) -> None:
    if words := missing(study):
        if left := axes.get_title(loc="left"):
            axes.set_title(f"{left}\n", loc="left", fontsize=7.5, color=GREY)
        axes.set_title(f"× {words}" if study.status.failed else words, loc="right", fontsize=7.5, color=FAILED)


def plot_map(
    study: Study, measure: str | None, x: str | None, y: str | None, at: Mapping[str, Any] | None, angle: str,
    output: FigureOutput,
) -> Figure:  # fmt: skip
    """A measure over two parameters: cells of a grid, or coloured points of samples."""
    owner = "plot_map"
    found = selected(owner, study, measure, at, angle=angle)
    taken = set(at or {})
    names = [name for name in varied(study) if not set(study.design.coordinates[name][0]) & taken]
    spanned = [name for name in names if study.design.coordinates[name][0] == (name,)]
    x, y = _two(owner, x, y, spanned if len(spanned) > 1 else names)
    first, second = parameter(owner, study, x, angle), parameter(owner, study, y, angle)
    figure, (axes,) = _figure(output, (WIDTH * 0.85, 3.8), owner, ["map"])
    with style():
        if (x,) == study.design.coordinates[x][0] and (y,) == study.design.coordinates[y][0]:
            drawn = _cells(axes, study, found, first, second)
        else:
            drawn = _coloured(axes, study, found, first, second)
        axes.set_xlabel(first.label)
        axes.set_ylabel(second.label)
        axes.grid(False)
        owner_of(axes).colorbar(drawn, ax=axes, label=found.label)
        _say_missing(axes, study)
    return output.write(figure)


def _two(owner: str, x: str | None, y: str | None, names: list[str]) -> tuple[str, str]:
    """Two parameters to draw over; those not given are the first of the others."""
    left = [name for name in names if name not in (x, y)]
    chosen = [each if each is not None else (left.pop(0) if left else None) for each in (x, y)]
    if chosen[0] is None or chosen[1] is None or chosen[0] == chosen[1]:
        raise InputError(f"{owner}: a map needs two parameters that differ between members, and there are {names}")
    return chosen[0], chosen[1]


def _cells(axes: Axes, study: Study, found: Selected, x: Selected, y: Selected) -> Any:
    """Cells of a grid; the median of samples in each. Cells of failed members have a cross."""
    others = [str(dim) for dim in found.array.dims if dim not in (x.name, y.name)]
    if grids := [dim for dim in others if dim not in ("sample", "member")]:
        entries = study.dataset.coords[grids[0]].values if grids[0] in study.dataset.coords else [0]
        raise InputError(
            f"plot_map: {grids[0]!r} has {found.array.sizes[grids[0]]} values; take one of them, as "
            f"at={{{grids[0]!r}: {float(entries[0]):g}}}"
        )
    values = found.array.transpose(y.name, x.name, *others).values
    values = values.reshape(*values.shape[:2], -1)
    middle = np.full(values.shape[:2], np.nan)
    known = np.isfinite(values).any(axis=-1)
    middle[known] = np.nanmedian(values[known], axis=-1)
    columns, rows = np.argsort(x.array.values), np.argsort(y.array.values)
    across, up = x.array.values[columns], y.array.values[rows]
    middle = middle[np.ix_(rows, columns)]
    axes.set_facecolor("#f2f2f2")
    drawn = axes.pcolormesh(_edges(across), _edges(up), np.ma.masked_invalid(middle), cmap=MAP_COLOURS)
    i, j = np.nonzero(~np.isfinite(middle))
    if len(i):
        axes.plot(across[j], up[i], "x", color=FAILED, markersize=4, gid="failed")
    return drawn


def _edges(centres: np.ndarray) -> np.ndarray:
    """Limits (n + 1) of cells around values (n)."""
    if len(centres) == 1:
        return np.array([centres[0] - 0.5, centres[0] + 0.5])
    between = (centres[1:] + centres[:-1]) / 2
    return np.concatenate([[2 * centres[0] - between[0]], between, [2 * centres[-1] - between[-1]]])


def _coloured(axes: Axes, study: Study, found: Selected, x: Selected, y: Selected) -> Any:
    """Coloured points of members."""
    across, value = _flat(study, _Axis(None, x.name, x.units, x.array.values), found)
    up, _ = _flat(study, _Axis(None, y.name, y.units, y.array.values), found)
    good = np.isfinite(value)
    a, b, c = _thinned(across[good], up[good], value[good])
    drawn = axes.scatter(a, b, c=c, s=max(_size(len(a)) ** 2 * 2, 4), cmap=MAP_COLOURS, linewidths=0)
    if (~good).any():
        axes.plot(across[~good], up[~good], "x", color=FAILED, markersize=4, gid="failed")
    return drawn


def plot_scatter(
    study: Study, measures: Sequence[str] | str | None, parameters: Sequence[str] | str | None,
    at: Mapping[str, Any] | None, angle: str, output: FigureOutput,
) -> Figure:  # fmt: skip
    """Every measure over every parameter, one point for each member."""
    owner = "plot_scatter"
    columns = _list(parameters) or varied(study)
    taken = _list(measures) or [name for name in measure_names(study) if _is_number(study, name, at)]
    if not columns or not taken:
        raise InputError(f"{owner}: no measure has one number for each member; name one, and its component in at=")
    rows = [selected(owner, study, name, at, angle=angle) for name in taken]
    across = [parameter(owner, study, name, angle) for name in columns]
    size = (0.8 + PANEL * len(columns), 0.5 + 0.85 * PANEL * len(rows))
    names = [f"{row.name} over {column.name}" for row in rows for column in across]
    figure, panels = _figure(output, size, owner, names, (len(rows), len(columns)))
    with style():
        for k, axes in enumerate(panels):
            row, column = rows[k // len(columns)], across[k % len(columns)]
            _points(axes, study, _Axis(None, column.name, column.units, column.array.values), row)
            if k // len(columns) == len(rows) - 1 or output.ax is not None:
                axes.set_xlabel(column.label)
            if k % len(columns) == 0 or output.ax is not None:
                axes.set_ylabel(row.label)
        _say_missing(panels[len(columns) - 1], study)
    return output.write(figure)


def _list(names: Sequence[str] | str | None) -> list[str]:
    return [names] if isinstance(names, str) else list(names or ())


def _is_number(study: Study, name: str, at: Mapping[str, Any] | None) -> bool:
    """Whether a measure has one number for each member."""
    sizes = study.dataset[name].sizes
    return all(size == 1 for dim, size in sizes.items() if dim not in study.design.dims and dim not in (at or {}))


def plot_histogram(
    study: Study, measure: str | None, at: Mapping[str, Any] | None, levels: Sequence[float], angle: str,
    output: FigureOutput,
) -> Figure:  # fmt: skip
    """How often values of a measure occur, with quantiles."""
    owner = "plot_histogram"
    found = selected(owner, study, measure, at, angle=angle)
    y = np.asarray(found.array.values).ravel()
    y = y[np.isfinite(y)]
    if not len(y):
        raise InputError(f"{owner}: no member has a finite {found.name!r}")
    if not all(0 <= level <= 1 for level in levels):
        raise InputError(f"{owner}: levels are parts of the members, 0 to 1, got {list(levels)}")
    figure, (axes,) = _figure(output, (WIDTH * 0.85, 3.2), owner, ["histogram"])
    with style():
        # counted in units of the largest value, so that numbers that differ by rounding alone are one bar
        bins = min(BINS, max(8, int(np.sqrt(len(y)) * 1.5))) if np.ptp(y) > 1e-12 * np.abs(y).max() else 1
        axes.hist(y, bins=bins, color=COLOURS[0], alpha=0.75, linewidth=0)
        quantiles = np.quantile(y, levels)
        for level, value in zip(levels, quantiles, strict=True):
            axes.axvline(value, color=INK, linewidth=0.9, linestyle=(0, (3, 2)) if level != 0.5 else "-")
        words = [f"{100 * level:g} %: {value:.4g}" for level, value in zip(levels, quantiles, strict=True)]
        spread = f", standard deviation {y.std(ddof=1):.3g}" if len(y) > 1 else ""
        about = f"{'   '.join(words)}\nmean {y.mean():.4g}{spread}"
        axes.set_title(about, loc="left", fontsize=7.5, color=GREY)
        axes.set_xlabel(found.label)
        axes.set_ylabel("members")
        _say_missing(axes, study)
    return output.write(figure)


@dataclass(frozen=True)
class _Bars:
    """Bars of a tornado: from, to (k, 2 layers) by parameter, their meaning, and whiskers."""

    names: list[str]
    low: np.ndarray
    high: np.ndarray
    legend: tuple[str, str]
    label: str
    centre: float
    whiskers: tuple[np.ndarray, np.ndarray] | None = None
    note: str = ""
    colours: tuple[str, str] = (COLOURS[0], COLOURS[1])


def plot_tornado(
    study: Study, measure: str | None, at: Mapping[str, Any] | None, most: int, angle: str, output: FigureOutput
) -> Figure:  # fmt: skip
    """Which parameters matter most: bars, the longest on top."""
    owner = "plot_tornado"
    kind = study.design.kind
    bars = _one_at_a_time(study, measure, at, angle) if kind in CENTRED else _of_indices(study, measure, at)
    reach = np.maximum(np.abs(bars.low - bars.centre), np.abs(bars.high - bars.centre)).max(axis=1)
    order = np.argsort(reach, kind="stable")[::-1][: max(1, most)][::-1]  # the largest on top
    figure, (axes,) = _figure(output, (WIDTH * 0.9, 1.1 + 0.32 * len(order)), owner, ["tornado"])
    rows = np.arange(len(order))
    with style():
        axes.use_sticky_edges = bool((bars.low == 0).all())
        for k, (colour, name) in enumerate(zip(bars.colours, bars.legend, strict=True)):
            if name:
                low, high = bars.low[order, k], bars.high[order, k]
                height = 0.62 if k == 0 or bars.centre else 0.3
                axes.barh(rows, high - low, left=low, height=height, color=colour, label=name, linewidth=0)
        if bars.whiskers is not None:
            middle, half = (each[order] for each in bars.whiskers)
            axes.errorbar(middle, rows, xerr=half, fmt="none", ecolor=INK, elinewidth=0.9, capsize=2)
        axes.axvline(bars.centre, color=INK, linewidth=0.8)
        axes.set_yticks(rows, [bars.names[k] for k in order])
        axes.set_xlabel(bars.label)
        axes.grid(False, axis="y")
        axes.margins(y=0.02 + 0.1 / len(order))
        if sum(map(bool, bars.legend)) > 1:
            axes.legend(loc="center left", bbox_to_anchor=(1.005, 0.5), borderaxespad=0.2)
        if bars.note:
            axes.set_title(bars.note, loc="left", fontsize=7.5, color=GREY)
        _say_missing(axes, study)
    return output.write(figure)


CENTRED = ("grid", "one_at_a_time")
"""Designs with a member in the middle, from which one parameter after the other is changed."""


def _one_at_a_time(study: Study, measure: str | None, at: Mapping[str, Any] | None, angle: str) -> _Bars:
    """The measure at the lowest and at the highest value of each parameter, with the others in the middle."""
    owner, design = "plot_tornado", study.design
    found = selected(owner, study, measure, at, angle=angle)
    if set(found.array.dims) != set(design.dims):
        raise InputError(f"{owner}: it takes all parameters; at= takes dimensions of the measure")
    y = np.asarray(found.array.values).reshape(len(design))
    middle = design.values[0] if design.kind == "one_at_a_time" else np.array([
        np.sort(np.unique(column))[len(np.unique(column)) // 2] for column in design.values.T
    ])  # fmt: skip
    names = varied(study)
    ends = np.full((len(names), 2), np.nan)
    for k, name in enumerate(names):
        column = design.names.index(name)
        same = np.delete(design.values == middle, column, axis=1).all(axis=1) & np.isfinite(y)
        if same.any():
            place = np.flatnonzero(same)
            order = np.argsort(design.values[place, column])
            ends[k] = y[place[order[[0, -1]]]]
    if (base := np.flatnonzero((design.values == middle).all(axis=1))).size == 0 or not np.isfinite(y[base[0]]):
        raise InputError(
            f"{owner}: the member in the middle of all ranges failed or is not computed; narrow the ranges"
        )
    centre = float(y[base[0]])
    ends = np.where(np.isfinite(ends), ends, centre)
    note = f"others at their middle values, where it is {centre:.4g}"
    return _Bars(names, np.minimum(ends, centre), np.maximum(ends, centre), ("at the lowest", "at the highest"),
                 found.label, centre, None, note)  # fmt: skip


def _of_indices(study: Study, measure: str | None, at: Mapping[str, Any] | None) -> _Bars:
    """Indices of sensitivity as bars."""
    found = indices_of(study, measure, at)
    names, zero = list(found.names), np.zeros(len(found.names))
    if found.kind == "morris":
        high = np.stack([found["mu_star"], zero], axis=1)
        label = f"mean magnitude of elementary effects on {selected('plot_tornado', study, measure, at).label}"
        whiskers = (found["mu_star"], found["mu_star_interval"])
        return _Bars(names, np.zeros_like(high), high, ("effect", ""), label, 0.0, whiskers)
    if found.kind in ANALYSES:
        high = np.stack([found["total"], found["first"]], axis=1)
        label, legend = f"part of the variance of {found.measure}", ("total", "alone")
        return _Bars(names, np.minimum(high, 0), np.maximum(high, 0), legend, label, 0.0,
                     (found["total"], found["total_interval"]), colours=(COLOURS[4], COLOURS[0]))  # fmt: skip
    bars = np.stack([found["coefficient"], zero], axis=1)
    note = f"a line explains {100 * found.explained:.0f} % of the variance (R²)"
    label = f"standardised regression coefficient of {found.measure}"
    return _Bars(names, np.minimum(bars, 0), np.maximum(bars, 0), ("coefficient", ""), label, 0.0, None, note)


def _figure(
    output: FigureOutput, size: tuple[float, float], owner: str, names: Sequence[str], grid: tuple[int, int] = (1, 1)
) -> tuple[Figure, list[Axes]]:  # fmt: skip
    """A new figure, or that of the user's axes, and its axes."""
    given = output.axes(owner, names)
    if given is not None:
        return owner_of(given[0]), given
    figure = new_figure(*(output.size or size))
    with style():
        axes = figure.subplots(*grid, squeeze=False, sharex="col" if grid[0] > 1 else False,
                               sharey="row" if grid[1] > 1 else False)  # fmt: skip
    return figure, list(axes.ravel())
