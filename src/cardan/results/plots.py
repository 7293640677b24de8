"""Plots of a run over time, in phase space, and of its balance of energy, with matplotlib."""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import cycle, pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from cardan.errors import InputError
from cardan.results.panels import Panel, chosen, panels_of, turned
from cardan.results.paper import COLOURS, FAINT, GREY, INK, WIDTH, look, new_figure, require_file, save_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from cardan.results.trajectory import Trajectory

HEIGHT = 1.55  # inch, of a panel
LABEL_UP_TO = 30  # characters beside a panel; a longer name of a single line goes to a legend
LEGEND_UP_TO = 14  # lines; more are coloured from dark to light, and the ends are named
MARKS_UP_TO = 12  # events that are marked with a line; more are ticks along the top
BAND = (5.0, 50.0, 95.0)  # percentiles of a large batch: a band, and the median in it


def plot(
    run: Trajectory,
    panels: Sequence[str],
    joints: Sequence[str] | str | None,
    reactions: Sequence[str] | str,
    angle: str,
    lines: int,
    size: tuple[float, float] | None,
    path: str | os.PathLike[str] | None,
    overwrite: bool,
) -> Figure:
    """Panels over time, one below the other."""
    _require(lines, path, size)
    found = panels_of(run, panels, chosen(run, joints, reactions, angle))
    if not found:
        raise InputError(f"plot: the run of {run._about.labels.model!r} has nothing to show in these panels")
    figure = new_figure(*(size or (WIDTH, 0.4 + HEIGHT * len(found))))
    with look():
        axes = np.atleast_1d(figure.subplots(len(found), 1, sharex=True))
        for at, panel in zip(axes, found, strict=True):
            _draw_panel(at, run, panel, lines)
        axes[-1].set_xlabel("time (s)")
        axes[-1].set_xlim(*_span(run))
        _head(list(axes), run, lines)
        figure.align_ylabels(list(axes))
    return _finished(figure, path, overwrite)


def plot_phase(
    run: Trajectory,
    joints: Sequence[str],
    angle: str,
    lines: int,
    size: tuple[float, float] | None,
    path: str | os.PathLike[str] | None,
    overwrite: bool,
) -> Figure:
    """Rate over coordinate, one pair of axes a coordinate."""
    _require(lines, path, size)
    choice = chosen(run, joints or None, (), angle)
    labels = run._about.labels
    places: list[tuple[int, int]] = []
    for joint in choice.joints or dict.fromkeys(name.rpartition("[")[0] or name for name in labels.rate):
        q, v = run._places("coordinate", joint), run._places("rate", joint)
        if q.stop - q.start != v.stop - v.start:
            if choice.joints:
                raise InputError(
                    f"plot_phase: joint {joint!r} has a quaternion among its coordinates, whose rates are not its v; "
                    "choose joints without"
                )
            continue
        places += zip(range(q.start, q.stop), range(v.start, v.stop), strict=True)
    if not places:
        raise InputError(f"plot_phase: no joint of {labels.model!r} has coordinates whose rates are v")
    columns = min(len(places), 3)
    rows = -(-len(places) // columns)
    figure = new_figure(*(size or (min(WIDTH, 0.4 + 2.9 * columns), 0.2 + (2.6 if columns < 3 else 2.0) * rows)))
    with look():
        axes = np.atleast_1d(figure.subplots(rows, columns)).ravel()
        for at, (k, i) in zip(axes, places, strict=False):
            q_values, q_unit = turned(run.q[..., k], labels.coordinate_unit[k], angle)
            v_values, v_unit = turned(run.v[..., i], labels.rate_unit[i], angle)
            _draw_orbits(at, _rows(q_values), _rows(v_values), lines)
            at.set_xlabel(f"{labels.coordinate[k]} ({q_unit})")
            at.set_ylabel(f"rate of {labels.rate[i]} ({v_unit})")
        for at in axes[len(places) :]:
            at.remove()
    return _finished(figure, path, overwrite)


def plot_power(
    run: Trajectory,
    lines: int,
    size: tuple[float, float] | None,
    path: str | os.PathLike[str] | None,
    overwrite: bool,
) -> Figure:
    """Power, the change of energy with the work that power does, and what is between the two."""
    _require(lines, path, size)
    change, done = run.energy - run.energy[..., :1], work(run)
    found = [
        Panel("power", "W", {"power": run.power}),
        Panel("energy", "J", {"change of energy": change, "work of power": done}),
        Panel("difference", "J", {"difference": change - done}),
    ]
    figure = new_figure(*(size or (WIDTH, 0.4 + HEIGHT * len(found))))
    with look():
        axes = list(figure.subplots(len(found), 1, sharex=True))
        for at, panel in zip(axes, found, strict=True):
            _draw_panel(at, run, panel, lines)
        for line in axes[1].lines[len(axes[1].lines) // 2 :]:
            line.set_linestyle((0, (3, 2)))  # both are to be seen where they agree
        if axes[1].get_legend():
            axes[1].get_legend().remove()
            _legend(axes[1], len(axes[1].lines))
        axes[-1].set_xlabel("time (s)")
        axes[-1].set_xlim(*_span(run))
        _head(axes, run, lines)
        figure.align_ylabels(axes)
    return _finished(figure, path, overwrite)


def work(run: Trajectory) -> np.ndarray:
    """Integral (..., n) of the run's power from its start, J, by cubic splines between jumps."""
    from scipy.interpolate import CubicSpline

    power = _rows(run.power)
    times = np.broadcast_to(run.time, run.valid.shape).reshape(power.shape)
    total = np.full(power.shape, np.nan)
    for t, P, W in zip(times, power, total, strict=True):
        count = int((np.isfinite(t) & np.isfinite(P)).sum())
        ends = [0, *(np.flatnonzero(np.diff(t[:count]) <= 0) + 1), count]
        for lo, hi in pairwise(ends):
            W[lo:hi] = W[lo - 1] if lo else 0.0
            if hi - lo > 1:
                W[lo:hi] += CubicSpline(t[lo:hi], P[lo:hi]).antiderivative()(t[lo:hi])
    return total.reshape(run.power.shape)


def _require(lines: Any, path: str | os.PathLike[str] | None, size: Any) -> None:
    """Refuse options that cannot be before anything is computed."""
    if not isinstance(lines, int | np.integer) or lines < 0:
        raise InputError(f"plot: lines must be how many systems are drawn one by one, 0 or more, got {lines!r}")
    require_file(path, size)


def _finished(figure: Figure, path: str | os.PathLike[str] | None, overwrite: bool) -> Figure:
    from matplotlib.text import Text

    for text in figure.findobj(Text):  # a name with signs of the dollar is a name, not a formula
        if isinstance(text, Text) and "$" in text.get_text():
            text.set_parse_math(False)
    if path is not None:
        save_figure(figure, path, overwrite)
    return figure


def _rows(values: np.ndarray) -> np.ndarray:
    """Batch axes as one."""
    return values.reshape(-1, values.shape[-1])


def _span(run: Trajectory) -> tuple[float, float]:
    first, last = float(np.nanmin(run.time)), float(np.nanmax(run.time))
    return (first, last) if last > first else (first - 0.5, last + 0.5)


def _colours(count: int) -> list[Any]:
    """As many as there are lines; past those that one can tell apart, a scale from dark to light."""
    if count <= LEGEND_UP_TO:
        return [colour for colour, _ in zip(cycle(COLOURS), range(count), strict=False)]
    from matplotlib import colormaps

    return list(colormaps["viridis"](np.linspace(0, 0.92, count)))


def _draw_panel(at: Axes, run: Trajectory, panel: Panel, most: int) -> None:
    """Lines of one system; of a few, each; of many, the median and a band."""
    count = len(panel.lines)
    systems = int(np.prod(run.batch))
    styles = [("-", (0, (4, 1.5)))[k // len(COLOURS) % 2] if count <= LEGEND_UP_TO else "-" for k in range(count)]
    for (name, values), colour, style in zip(panel.lines.items(), _colours(count), styles, strict=True):
        rows, times = _rows(values), _rows(np.broadcast_to(run.time, values.shape))
        if panel.log:
            rows = np.where(rows > 0, rows, np.nan)  # exactly closed: below any scale
        look: dict[str, Any] = {"color": colour, "linestyle": style}
        if panel.log:
            look |= {"marker": ".", "markersize": 1.0, "linewidth": 0.7}
        if systems <= max(most, 1):
            if systems > 1:
                look |= {"linewidth": 0.8, "alpha": 0.8}
            for k, (t, y) in enumerate(zip(times, rows, strict=True)):
                at.plot(t, y, label=name if k == 0 else None, **look)
        else:
            t, (low, middle, high) = _percentiles(times, rows)
            at.fill_between(t, low, high, color=colour, alpha=0.2, linewidth=0)
            at.plot(t, middle, label=name, **look)
    at.set_ylabel(panel.label.replace(" (", "\n("))
    if panel.log and any(np.nanmax(values, initial=0.0) > 0 for values in panel.lines.values()):
        at.set_yscale("log")
    if count > 1 or len(panel.label) > LABEL_UP_TO:
        _legend(at, count)
    at.margins(y=0.08)


def _legend(at: Axes, count: int) -> None:
    """Names beside the axes, where they hide nothing; of too many lines only the first and the last."""
    handles, names = at.get_legend_handles_labels()
    if count > LEGEND_UP_TO:
        handles, names = [handles[0], handles[-1]], [f"{names[0]}, first", f"{names[-1]}, last of {count}"]
    two = len(names) > 7
    at.legend(handles, names, loc="center left", bbox_to_anchor=(1.005, 0.5), borderaxespad=0.2,
              ncols=2 if two else 1, columnspacing=0.9, labelspacing=0.25)  # fmt: skip


def _percentiles(times: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Percentiles over systems, on the times of the one that went furthest; systems count while they run."""
    grid = times[int(np.argmax(np.nanmax(times, axis=1)))]
    grid = grid[np.isfinite(grid)]
    if (times[:, : len(grid)] != grid).any():
        rows = np.stack([_carried(grid, t, y) for t, y in zip(times, rows, strict=True)])
    rows = rows[:, : len(grid)]
    kept = np.isfinite(rows).any(axis=0)
    found = np.full((len(BAND), len(grid)), np.nan)
    found[:, kept] = np.nanpercentile(rows[:, kept], BAND, axis=0)
    return grid, found


def _carried(grid: np.ndarray, t: np.ndarray, y: np.ndarray) -> np.ndarray:
    """One system's samples on other times, nothing after its end."""
    kept = np.isfinite(t)
    return np.interp(grid, t[kept], y[kept], left=np.nan, right=np.nan) if kept.any() else np.full(grid.shape, np.nan)


def _head(axes: list[Axes], run: Trajectory, most: int) -> None:
    """Say above the panels what the lines are of a batch, and which events there were."""
    systems = int(np.prod(run.batch))
    if systems > max(most, 1):
        words = f"median and {BAND[0]:g} to {BAND[2]:g} % of {systems} systems"
        axes[0].set_title(words, loc="right", fontsize=7.5, color=GREY)
    _mark_events(axes, run)


def _mark_events(axes: list[Axes], run: Trajectory) -> None:
    """Dotted lines through all panels with names above them; of many events, ticks along the top."""
    times = [event.time for event in run.events]
    if not times:
        return
    if len(times) > MARKS_UP_TO or run.batch:
        top = axes[0].get_xaxis_transform()
        axes[0].plot(times, np.full(len(times), 1.0), "v", color=INK, markersize=3, transform=top, clip_on=False,
                     linestyle="none", gid="events")  # fmt: skip
        names = ", ".join(dict.fromkeys(event.name for event in run.events))
        axes[0].set_title(f"▾ {names}", loc="left", fontsize=7.5, color=GREY)
        return
    for at in axes:
        for t in times:
            at.axvline(t, color=INK, linewidth=0.8, linestyle=(0, (1, 2)), zorder=1, gid="event")
    taken = -np.inf
    first, last = _span(run)
    for event in sorted(run.events, key=lambda event: event.time):
        if (event.time - taken) / (last - first) > 0.012 * len(event.name) + 0.01:
            over = axes[0].get_xaxis_transform()
            axes[0].text(event.time, 1.03, event.name, transform=over, ha="center", fontsize=7.5, color=GREY)
            taken = event.time


def _draw_orbits(at: Axes, q: np.ndarray, v: np.ndarray, most: int) -> None:
    """Orbits with a dot at the start of each; of a large batch, as many as are asked for, evenly."""
    kept = np.unique(np.linspace(0, len(q) - 1, min(len(q), max(most, 1))).astype(int))
    many = len(kept) > 1
    for k in kept:
        at.plot(q[k], v[k], color=COLOURS[0], linewidth=0.7 if many else 1.3, alpha=0.7 if many else 1.0)
        at.plot(q[k, :1], v[k, :1], "o", color=COLOURS[1], markersize=2.5 if many else 4.0)
    at.axhline(0, color=FAINT, linewidth=0.8, zorder=0)
    if len(kept) < len(q):
        at.set_title(f"{len(kept)} of {len(q)} systems", loc="right", fontsize=7, color=GREY)
