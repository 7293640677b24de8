"""Plots of a run over time, in phase space, and of its energy balance.

`PANELS` is the table of panels: for each name, the axes to draw and their lines over time. Values are in SI units;
angles may be in degrees.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from cardan.errors import InputError, UnknownNameError, nearest
from cardan.functions.constraints import undetermined_reactions
from cardan.model.sight import require_axes
from cardan.results.energy_balance import work
from cardan.results.figure import COLOURS, FAINT, GREY, INK, WIDTH, FigureOutput, new_figure, owner_of, style
from cardan.results.laws import held_intervals, what_happens
from cardan.results.rounding import OF_FORCES, without_rounding, wrenches_without_rounding
from cardan.results.trajectory.quantities import STATES, WRENCH
from cardan.structure.redundancy import redundancy

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from cardan.results.trajectory.trajectory import Trajectory


@dataclass(frozen=True)
class Panel:
    """One panel: its title, unit, and lines (..., n) by name; `log` for a logarithmic scale."""

    title: str
    unit: str
    lines: dict[str, np.ndarray]
    log: bool = False
    shaded: tuple[str, list[tuple[float, float]]] = ("", [])
    """What holds in some intervals of time, s."""

    @property
    def label(self) -> str:
        """Label of the vertical axis; it includes the name of a single line."""
        name = next(iter(self.lines))
        title = self.title
        if len(self.lines) == 1 and name != title:
            title += f", {name}" if " of " in title else f" of {name}"
        return f"{title} ({self.unit})" if self.unit else title


@dataclass(frozen=True)
class Selection:
    """What to plot: tree joints (None for all), joints whose reactions are shown, "rad" or "deg", axes of reactions."""

    joints: tuple[str, ...] | None
    reactions: tuple[str, ...]
    angle: str
    axes: str = "joint"


def selection_of(
    run: Trajectory, joints: Sequence[str] | str | None, reactions: Sequence[str] | str, angle: str,
    axes: str = "joint",
) -> Selection:  # fmt: skip
    """Check a selection against the run."""
    if angle not in ("rad", "deg"):
        raise InputError(f"plot: angle must be 'rad' or 'deg', got {angle!r}")
    pick = None if joints is None else _names(joints)
    wanted = _names(reactions)
    for joint in wanted:
        if joint not in run._metadata.labels.joint:
            raise UnknownNameError(
                f"plot: joint {joint!r} is not in the model{nearest(joint, run._metadata.labels.joint)}"
            )
    for joint in pick or ():
        run._places("coordinate", joint)
    require_axes("plot: reaction_axes", axes)
    return Selection(pick, wanted, angle, axes)


def panels_of(run: Trajectory, names: Sequence[str], selection: Selection) -> list[Panel]:
    """The panels by name, or the default panels of the run."""
    if not names:
        model, names = run._model, ["coordinates", "rates", "energy"]
        constrained = "position_residual" in run._computed if model is None else model.cuts or model.couplings
        names += ["residuals"] if constrained else []
        names += ["reactions"] if selection.reactions else []
        if model is None:  # without the model, only what the file holds
            names = [name for name in names if NEEDS[name] <= {"q", "v", *run._computed}]
    elif selection.reactions and "reactions" not in names:
        names = [*names, "reactions"]
    found = []
    for name in names:
        panels = PANELS[name](run, selection) if name in PANELS else _named(run, name, selection)
        found += [_without_rounding(run, panel) for panel in panels]
    return found


def _without_rounding(run: Trajectory, panel: Panel) -> Panel:
    """A panel whose values that are rounding are 0, unless its scale is logarithmic."""
    if panel.log:
        return panel
    values = without_rounding(run, np.stack(list(panel.lines.values())), panel.unit)
    return replace(panel, lines=dict(zip(panel.lines, values, strict=True)))


def _named(run: Trajectory, name: str, selection: Selection) -> list[Panel]:
    """Panels of a quantity by name, as `run[name]`, one for each unit among its components."""
    try:
        about, values = run.about(name), run.quantity(name)
    except UnknownNameError:
        raise UnknownNameError(
            f"plot: {name!r} is neither a panel nor a quantity of the run{run._meant(name, PANELS)}"
        ) from None
    values = values.reshape(*run.valid.shape, -1)
    found, held = {}, held_intervals(run, name.rpartition(".")[0])
    for unit in dict.fromkeys(about.units):
        lines = {}
        for k, own in enumerate(about.units):
            if own == unit:
                label = about.labels[k] if about.labels else name
                lines[label], shown = in_angle(values[..., k], unit, selection.angle)
        where = ", joint axes" if ".reaction_" in name else ""  # their x is seldom that of the ground
        found[unit] = Panel(name + where, shown.replace("^2", "²"), lines, shaded=held)
    return list(found.values())


def in_angle(values: np.ndarray, unit: str, angle: str) -> tuple[np.ndarray, str]:
    """Values and their unit, with angles in "rad" or "deg"."""
    if angle == "deg" and unit.startswith("rad"):
        return np.degrees(values), unit.replace("rad", "deg", 1)
    return values, unit


def _names(names: Sequence[str] | str) -> tuple[str, ...]:
    if isinstance(names, str):
        return (names,)
    if not isinstance(names, Iterable):
        raise InputError(f"plot: joints and reactions must be lists of joint names, got {names!r}")
    return tuple(names)


def _by_unit(quantity: str, axis: str, title: str) -> Callable[[Trajectory, Selection], list[Panel]]:
    """Panels of a quantity of the tree joints, one for each unit."""

    def panels(run: Trajectory, selection: Selection) -> list[Panel]:
        labels = run._metadata.labels
        names = labels.along(axis) or ()
        units = labels.units(quantity, STATES["q" if axis == "coordinate" else "v"])
        every = range(len(names))
        kept = [
            k for joint in selection.joints for k in every[run._places(axis, joint)]
        ] if selection.joints is not None else list(every)  # fmt: skip
        values, found = run.quantity(quantity), {}
        for unit in dict.fromkeys(units[k] for k in kept):
            lines = {}
            for k in (k for k in kept if units[k] == unit):
                lines[names[k]], shown = in_angle(values[..., k], unit, selection.angle)
            found[unit] = Panel(title, "quaternion" if shown == "1" else shown.replace("^2", "²"), lines)
        return list(found.values())

    return panels


def _curves(
    title: str, unit: str, log: bool = False, **quantities: str
) -> Callable[[Trajectory, Selection], list[Panel]]:
    """One panel of quantities without axes; `quantities` are their names in `QUANTITIES` by their labels."""
    return lambda run, selection: [Panel(title, unit, {label: run.quantity(n) for label, n in quantities.items()}, log)]


def _momentum(run: Trajectory, selection: Selection) -> list[Panel]:
    H, p = run.momentum[..., :3], run.momentum[..., 3:]
    return [
        Panel("angular momentum", "N m s", {x: H[..., k] for k, x in enumerate("xyz")}),
        Panel("linear momentum", "N s", {x: p[..., k] for k, x in enumerate("xyz")}),
    ]


def _reactions(run: Trajectory, selection: Selection) -> list[Panel]:
    """Nonzero components for selected joints; magnitudes for all joints if none is selected.

    Components that redundant constraints leave undetermined are one possible solution, and are labelled so.
    """
    joints, unknown = run._metadata.labels.joint, _undetermined(run)
    if not selection.reactions:
        wrenches = wrenches_without_rounding(run, run.reactions)
        sizes = {w: np.linalg.norm(wrenches[..., at], axis=-1) for w, at in (("force", FORCE), ("moment", MOMENT))}
        unknown &= bool(np.nanmax(np.abs(wrenches) * unknown, initial=0.0) > 0)  # not labelled if they are all zero
        return [
            Panel(
                f"reaction {what}",
                UNIT[what],
                {_marked(joint, bool(unknown[k, at].any())): size[..., k] for k, joint in enumerate(joints)},
            )
            for (what, size), at in zip(sizes.items(), (FORCE, MOMENT), strict=True)
            if np.nanmax(size, initial=0.0) > 0
        ]
    found = []
    for joint in selection.reactions:
        wrench = wrenches_without_rounding(run, run.reaction(joint, selection.axes))
        loose = unknown[joints.index(joint)]
        if selection.axes != "joint":  # a component along other axes is of all those along the joint's
            loose = np.repeat([loose[MOMENT].any(), loose[FORCE].any()], 3)
        sizes = np.nanmax(np.abs(wrench), axis=tuple(range(wrench.ndim - 1)))
        for what, at in (("force", FORCE), ("moment", MOMENT)):
            if sizes[at].max() > 0:
                kept = [k for k in range(6)[at] if sizes[k] > 0]
                lines = {_marked(WRENCH[k].split()[1], bool(loose[k])): wrench[..., k] for k in kept}
                found.append(Panel(f"{what} of {joint}, {selection.axes} axes", UNIT[what], lines))
    return found


def _marked(name: str, undetermined: bool) -> str:
    return f"{name}, undetermined" if undetermined else name


def _undetermined(run: Trajectory) -> np.ndarray:
    """Mask (joints, 6) of components that redundant constraints leave undetermined, at the first sample."""
    model = run._model
    if model is None or model.batch or not (model.cuts or model.couplings) or not redundancy(model).redundant:
        return np.zeros((len(run._metadata.labels.joint), 6), dtype=bool)
    return undetermined_reactions(model, run.q.reshape(-1, model.nq)[0], t=float(run.time.flat[0]))


SMALLEST = 1e-18  # on a logarithmic scale: what is below it is drawn there, for it is far below rounding
FORCE, MOMENT = slice(3, 6), slice(0, 3)
UNIT = {"force": "N", "moment": "N m"}

PANELS: dict[str, Callable[[Trajectory, Selection], list[Panel]]] = {
    "coordinates": _by_unit("q", "coordinate", "coordinate"),
    "rates": _by_unit("v", "rate", "rate"),
    "accelerations": _by_unit("a", "rate", "acceleration"),
    "energy": _curves("energy", "J", kinetic="kinetic", potential="potential", total="energy"),
    "power": _curves("power", "W", power="power"),
    "momentum": _momentum,
    "residuals": _curves(
        "largest residual",
        "",
        True,
        **{"position (m, rad)": "position_residual", "velocity (m/s, rad/s)": "velocity_residual"},
    ),
    "reactions": _reactions,
}
"""Panels of `run.plot` by name."""

NEEDS: dict[str, set[str]] = {
    "coordinates": {"q"},
    "rates": {"v"},
    "energy": {"kinetic", "potential", "energy"},
    "residuals": {"position_residual", "velocity_residual"},
    "reactions": {"reactions"},
}
"""Quantities that the default panels need."""


HEIGHT = 1.55  # inch, of a panel
LABEL_UP_TO = 30  # characters; a longer label of a single line goes to a legend
LEGEND_UP_TO = 14  # lines; more are coloured from dark to light, and only the first and last are named
MARKS_UP_TO = 12  # events marked with a line; more are marked along the top
BAND = (5.0, 50.0, 95.0)  # percentiles drawn for a large batch: a band and the median


def plot(run: Trajectory, panels: Sequence[str], selection: Selection, lines: int, output: FigureOutput) -> Figure:
    """Panels over time, one below the other."""
    _require(lines)
    found = panels_of(run, panels, selection)
    if not found:
        raise InputError(f"plot: the run of {run._metadata.labels.model!r} has nothing to show in these panels")
    return _finished(_over_time(run, found, lines, output), output)


def _over_time(run: Trajectory, panels: list[Panel], lines: int, output: FigureOutput) -> Figure:
    """A figure of panels over time, one below the other."""
    given = output.axes("plot", [panel.label for panel in panels])
    if given is None:
        figure = new_figure(*(output.size or (WIDTH, 0.4 + HEIGHT * len(panels))))
    with style():
        axes = given or list(np.atleast_1d(figure.subplots(len(panels), 1, sharex=True)))
        for at, panel in zip(axes, panels, strict=True):
            _draw_panel(at, run, panel, lines)
        axes[-1].set_xlabel("time (s)")
        axes[-1].set_xlim(*_span(run))
        if (systems := int(np.prod(run.batch))) > max(lines, 1):
            words = f"median and {BAND[0]:g} to {BAND[2]:g} % of {systems} systems"
            axes[0].set_title(words, loc="right", fontsize=7.5, color=GREY)
        _mark_events(axes, run)
        if given is None:
            figure.align_ylabels(axes)
            return figure
        for at in given:
            at.set_xlabel("time (s)")
            at.set_xlim(*_span(run))
            _legend_inside(at)
    return owner_of(given[0])


def plot_phase(run: Trajectory, selection: Selection, lines: int, output: FigureOutput) -> Figure:
    """Rate over coordinate, one panel for each coordinate."""
    _require(lines)
    labels = run._metadata.labels
    places: list[tuple[int, int]] = []
    for joint in selection.joints or dict.fromkeys(name.rpartition("[")[0] or name for name in labels.rate):
        q, v = run._places("coordinate", joint), run._places("rate", joint)
        if q.stop - q.start != v.stop - v.start:
            if selection.joints:
                raise InputError(
                    f"plot_phase: joint {joint!r} has a quaternion, whose time derivative is not v; choose joints "
                    "without a quaternion"
                )
            continue
        places += zip(range(q.start, q.stop), range(v.start, v.stop), strict=True)
    if not places:
        raise InputError(f"plot_phase: no joint of {labels.model!r} has coordinates whose time derivative is v")
    columns = min(len(places), 3)
    rows = -(-len(places) // columns)
    given = output.axes("plot_phase", [labels.coordinate[k] for k, _ in places])
    size = output.size or (min(WIDTH, 0.4 + 2.9 * columns), 0.2 + (2.6 if columns < 3 else 2.0) * rows)
    figure = new_figure(*size) if given is None else owner_of(given[0])
    with style():
        axes = list(np.atleast_1d(figure.subplots(rows, columns)).ravel()) if given is None else given
        for at, (k, i) in zip(axes, places, strict=False):
            q_values, q_unit = in_angle(run.q[..., k], labels.coordinate_unit[k], selection.angle)
            v_values, v_unit = in_angle(run.v[..., i], labels.rate_unit[i], selection.angle)
            _draw_orbits(at, _rows(q_values), _rows(v_values), lines)
            at.set_xlabel(f"{labels.coordinate[k]} ({q_unit})")
            at.set_ylabel(f"rate of {labels.rate[i]} ({v_unit})")
        for at in axes[len(places) :]:
            at.remove()
    return _finished(figure, output)


def plot_power(run: Trajectory, lines: int, output: FigureOutput) -> Figure:
    """Power, the change of energy with the work of that power, and their difference."""
    _require(lines)
    change, done = run.energy - run.energy[..., :1], work(run)
    found = [
        Panel("power", "W", {"power": run.power}),
        Panel("energy", "J", {"change of energy": change, "work of power": done}),
        Panel("difference", "J", {"difference": change - done}),
    ]
    figure = _over_time(run, found, lines, output)
    energy = figure.axes[1]
    with style():
        for line in energy.lines[len(energy.lines) // 2 :]:
            line.set_linestyle((0, (3, 2)))  # so that both lines are visible where they agree
        if legend := energy.get_legend():
            legend.remove()
            _legend(energy, len(energy.lines))
    return _finished(figure, output)


def _require(lines: Any) -> None:
    """Check the number of lines before anything is computed."""
    if not isinstance(lines, int | np.integer) or lines < 0:
        raise InputError(f"plot: lines must be the number of systems to draw one by one, 0 or more, got {lines!r}")


def _finished(figure: Figure, output: FigureOutput) -> Figure:
    from matplotlib.text import Text

    for text in figure.findobj(Text):  # dollar signs in a name are not a formula
        if isinstance(text, Text) and "$" in text.get_text():
            text.set_parse_math(False)
    return output.write(figure)


def _rows(values: np.ndarray) -> np.ndarray:
    """All batch axes as one."""
    return values.reshape(-1, values.shape[-1])


def _span(run: Trajectory) -> tuple[float, float]:
    first, last = float(np.nanmin(run.time)), float(np.nanmax(run.time))
    return (first, last) if last > first else (first - 0.5, last + 0.5)


def _colours(count: int) -> list[Any]:
    """A colour for each line; for many lines, a scale from dark to light."""
    if count <= LEGEND_UP_TO:
        return [COLOURS[k % len(COLOURS)] for k in range(count)]
    from matplotlib import colormaps

    return list(colormaps["viridis"](np.linspace(0, 0.92, count)))


def _draw_panel(at: Axes, run: Trajectory, panel: Panel, most: int) -> None:
    """Draw the lines of each system or, for a large batch, the median and a band."""
    count = len(panel.lines)
    systems = int(np.prod(run.batch))
    patterns = [("-", (0, (4, 1.5)))[k // len(COLOURS) % 2] if count <= LEGEND_UP_TO else "-" for k in range(count)]
    for (name, values), colour, dashes in zip(panel.lines.items(), _colours(count), patterns, strict=True):
        rows, times = _rows(values), _rows(np.broadcast_to(run.time, values.shape))
        if panel.log:
            rows = np.where(rows > 0, np.maximum(rows, SMALLEST), np.nan)  # exact zeros have no place on such a scale
        options: dict[str, Any] = {"color": colour, "linestyle": dashes}
        if panel.log:
            options |= {"marker": ".", "markersize": 1.0, "linewidth": 0.7}
        if systems <= max(most, 1):
            if systems > 1:
                options |= {"linewidth": 0.8, "alpha": 0.8}
            for k, (t, y) in enumerate(zip(times, rows, strict=True)):
                at.plot(t, y, label=name if k == 0 else None, **options)
        else:
            t, (low, middle, high) = _percentiles(times, rows)
            at.fill_between(t, low, high, color=colour, alpha=0.2, linewidth=0)
            at.plot(t, middle, label=name, **options)
    word, intervals = panel.shaded
    for start, end in intervals:
        at.axvspan(start, end, color=FAINT, alpha=0.5, linewidth=0, zorder=0, gid="held")
    if intervals:
        at.text(0.995, 0.96, f"shaded: {word}", transform=at.transAxes, ha="right", va="top", fontsize=7, color=GREY)
    at.set_ylabel(_in_two_lines(panel.label))
    if panel.log and any(np.nanmax(values, initial=0.0) > 0 for values in panel.lines.values()):
        at.set_yscale("log")
    if count > 1 or len(panel.label) > LABEL_UP_TO:
        _legend(at, count)
    at.margins(y=0.08)
    every = np.concatenate([_rows(values).ravel() for values in panel.lines.values()])
    every = every[np.isfinite(every)]
    middle = float(np.abs(every).max(initial=0.0))
    if not panel.log and len(every) and np.ptp(every) <= OF_FORCES * middle:  # constant but for rounding
        at.set_ylim(every[0] - 0.1 * middle, every[0] + 0.1 * middle) if middle else at.set_ylim(-1, 1)


def _in_two_lines(label: str) -> str:
    """A label of two lines: a long one would run into the next panel."""
    what, comma, where = label.partition(", ")
    if comma:
        return f"{what}\n{where}"
    element, dot, quantity = label.partition(".")
    if dot and len(label) > LABEL_UP_TO - 5:
        return f"{element}\n{quantity}"
    return label.replace(" (", "\n(")


def _legend(at: Axes, count: int) -> None:
    """Names beside the axes; of many lines only the first and the last."""
    handles, names = at.get_legend_handles_labels()
    if count > LEGEND_UP_TO:
        handles, names = [handles[0], handles[-1]], [f"{names[0]}, first", f"{names[-1]}, last of {count}"]
    two = len(names) > 7
    at.legend(handles, names, loc="center left", bbox_to_anchor=(1.005, 0.5), borderaxespad=0.2,
              ncols=2 if two else 1, columnspacing=0.9, labelspacing=0.25)  # fmt: skip


def _legend_inside(at: Axes) -> None:
    """Move the legend of axes into them: beside axes of the user there may be no room."""
    if legend := at.get_legend():
        names = [text.get_text() for text in legend.get_texts()]
        handles: Any = legend.legend_handles
        at.legend(handles, names, loc="best")


def _percentiles(times: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Percentiles over the systems that are still running, at the times of the longest one."""
    grid = times[int(np.argmax(np.nanmax(times, axis=1)))]
    grid = grid[np.isfinite(grid)]
    if (times[:, : len(grid)] != grid).any():
        pairs = [(t[np.isfinite(t)], y[np.isfinite(t)]) for t, y in zip(times, rows, strict=True)]
        nothing = np.full(grid.shape, np.nan)
        rows = np.stack([np.interp(grid, t, y, np.nan, np.nan) if len(t) else nothing for t, y in pairs])
    rows = rows[:, : len(grid)]
    kept = np.isfinite(rows).any(axis=0)
    found = np.full((len(BAND), len(grid)), np.nan)
    found[:, kept] = np.nanpercentile(rows[:, kept], BAND, axis=0)
    return grid, found


def _mark_events(axes: list[Axes], run: Trajectory) -> None:
    """Mark events with dotted lines and names; many events with markers along the top."""
    times = [event.time for event in run.events]
    if not times:
        return
    if len(times) > MARKS_UP_TO or run.batch:
        top = axes[0].get_xaxis_transform()
        axes[0].plot(times, np.full(len(times), 1.0), "v", color=INK, markersize=3, transform=top, clip_on=False,
                     linestyle="none", gid="events")  # fmt: skip
        names = ", ".join(dict.fromkeys(what_happens(run._model, event) for event in run.events))
        axes[0].set_title(f"▾ {names}", loc="left", fontsize=7.5, color=GREY)
        return
    for at in axes:
        for t in times:
            at.axvline(t, color=INK, linewidth=0.8, linestyle=(0, (1, 2)), zorder=1, gid="event")
    taken = -np.inf
    first, last = _span(run)
    for event in sorted(run.events, key=lambda event: event.time):
        name = what_happens(run._model, event)
        if (event.time - taken) / (last - first) > 0.012 * len(name) + 0.01:
            over = axes[0].get_xaxis_transform()
            axes[0].text(event.time, 1.03, name, transform=over, ha="center", fontsize=7.5, color=GREY)
            taken = event.time


def _draw_orbits(at: Axes, q: np.ndarray, v: np.ndarray, most: int) -> None:
    """Orbits with a dot at the start; of a large batch an even selection."""
    kept = np.unique(np.linspace(0, len(q) - 1, min(len(q), max(most, 1))).astype(int))
    many = len(kept) > 1
    for k in kept:
        at.plot(q[k], v[k], color=COLOURS[0], linewidth=0.7 if many else 1.3, alpha=0.7 if many else 1.0)
        at.plot(q[k, :1], v[k, :1], "o", color=COLOURS[1], markersize=2.5 if many else 4.0)
    at.axhline(0, color=FAINT, linewidth=0.8, zorder=0)
    if len(kept) < len(q):
        at.set_title(f"{len(kept)} of {len(q)} systems", loc="right", fontsize=7, color=GREY)
