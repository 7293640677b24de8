"""`cd.compare`: runs beside each other, as a table of their largest differences and as curves in one figure.

The first run is the reference. Others are interpolated to its samples (`Trajectory.at`) within the time that all have
in common, and quantities are computed there. Quantities are found by name, so that models may differ.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from cardan.errors import InputError, UnknownNameError
from cardan.model.html import html_table
from cardan.results.figure import COLOURS, WIDTH, FigureOutput, new_figure, style
from cardan.results.trajectory.trajectory import Trajectory

if TYPE_CHECKING:
    from os import PathLike

    from matplotlib.figure import Figure

USUAL = ("q", "v", "energy")
DASHES: tuple[Any, ...] = ("-", (0, (4, 1.5)), (0, (1, 1.2)), (0, (5, 1.2, 1, 1.2)))
MOST_ROWS, MOST_LINES, HEIGHT = 24, 7, 1.7  # rows of a printed table, lines of a panel, inch


@dataclass(frozen=True)
class Difference:
    """How far a quantity of a run is from that of the first run, at most: `difference` in its unit, at `time`, s.

    `largest` is the largest value of the quantity, and of those with it in one vector, in the first run.
    """

    run: str
    name: str
    unit: str
    difference: float
    time: float
    largest: float

    @property
    def relative(self) -> float:
        """The difference over the largest value; infinite where that is zero and the difference is not."""
        if self.difference == 0:
            return 0.0
        return self.difference / self.largest if self.largest else float("inf")


@dataclass(frozen=True, eq=False)
class Comparison:
    """Runs beside each other: print it, plot it, or look at `rows` (`cd.Difference`)."""

    labels: tuple[str, ...]
    runs: tuple[Trajectory, ...]
    names: tuple[str, ...]
    rows: tuple[Difference, ...]
    span: tuple[float, float]
    """Time that all runs have in common, s."""

    @property
    def largest(self) -> Difference:
        """The row with the largest relative difference."""
        return max(self.rows, key=lambda row: row.relative)

    def __getitem__(self, name: str) -> Difference:
        """The row of a quantity, or the largest of its components and runs."""
        found = [row for row in self.rows if row.name == name or row.name.startswith(f"{name}.")]
        if not found:
            raise UnknownNameError(f"compare: {name!r} is not among {', '.join(map(repr, self.names))}")
        return max(found, key=lambda row: row.relative)

    def __str__(self) -> str:
        """The table: the largest relative differences first."""
        head, rows = self._table()
        columns = [max(len(row[k]) for row in (head, *rows)) for k in range(len(head))]
        left = {0, 1} if len(self.runs) > 2 else {0}
        lines = [
            "  ".join(
                c.ljust(w) if k in left else c.rjust(w) for k, (c, w) in enumerate(zip(row, columns, strict=True))
            )
            for row in (head, *rows)
        ]
        return "\n".join([self._title(), *(line.rstrip() for line in lines), *self._more()])

    def _repr_html_(self) -> str:
        head, rows = self._table()
        return html_table("; ".join((self._title(), *self._more())), rows, head)

    def _title(self) -> str:
        others = ", ".join(map(repr, self.labels[1:]))
        return f"{others} compared with {self.labels[0]!r}, {self.span[0]:g} s to {self.span[1]:g} s"

    def _more(self) -> list[str]:
        left = len(self.rows) - MOST_ROWS
        return [f"and {left} more with smaller differences"] if left > 0 else []

    def _table(self) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        several = len(self.runs) > 2
        rows = [
            (row.name, *([row.run] if several else []), f"{row.difference:.3g}", row.unit, f"{row.time:.6g}",
             f"{row.largest:.3g}", f"{row.relative:.2g}")
            for row in sorted(self.rows, key=lambda row: -row.relative)[:MOST_ROWS]
        ]  # fmt: skip
        run = ["run"] if several else []
        return ("quantity", *run, "difference", "unit", "at t (s)", "largest value", "relative"), rows

    def plot(
        self, *names: str, size: tuple[float, float] | None = None, path: str | PathLike[str] | None = None,
        overwrite: bool = False,
    ) -> Figure:  # fmt: skip
        """Draw the curves of all runs in one figure, a panel for each quantity and unit, and return it.

        Components differ in colour, runs in dashes. Of many components those that differ most are drawn.

        Args:
            names: quantities; those compared by default.
            size: width and height, inches.
            path: file to write, .png, .svg or .pdf; it appears only when it is complete.
            overwrite: whether an existing file may be replaced.

        """
        output = FigureOutput(size, path, overwrite)
        for run in self.runs:
            if run.batch:
                raise InputError("compare: plot one system of each batch, as cd.compare(*(run[0] for run in runs))")
        panels = [(name, unit, kept) for name in names or self.names for unit, kept in self._panels(name)]
        figure = new_figure(*(output.size or (WIDTH, 0.5 + HEIGHT * len(panels))))
        with style():
            axes = list(np.atleast_1d(figure.subplots(len(panels), 1, sharex=True)))
            for at, (name, unit, kept) in zip(axes, panels, strict=True):
                for k, column in enumerate(kept):
                    for run, dashes in zip(self.runs, DASHES * len(self.runs), strict=False):
                        values = run.quantity(column)[run.valid]
                        at.plot(run.time[run.valid], values, color=COLOURS[k % len(COLOURS)], linestyle=dashes)
                at.set_ylabel(f"{name}\n({unit.replace('^2', '²')})" if unit != "1" else name)
                at.margins(y=0.08)
                if len(kept) > 1:
                    from matplotlib.lines import Line2D

                    shown = [Line2D([], [], color=COLOURS[k % len(COLOURS)]) for k in range(len(kept))]
                    words = [column.removeprefix(f"{name}.") for column in kept]
                    at.legend(shown, words, loc="center left", bbox_to_anchor=(1.005, 0.5), borderaxespad=0.2)
            axes[-1].set_xlabel("time (s)")
            lines = [axes[0].plot([], [], color="#222222", linestyle=d)[0] for d in (DASHES * 4)[: len(self.runs)]]
            figure.legend(lines, self.labels, loc="outside upper left", ncols=len(self.runs), handlelength=2.6)
            figure.align_ylabels(axes)
        return output.write(figure)

    def _panels(self, name: str) -> Iterator[tuple[str, list[str]]]:
        """Units of a quantity's components and, for each, the components to draw."""
        columns = _columns(self.runs, name)
        worst = {row.name: row.relative for row in self.rows}
        for unit in dict.fromkeys(columns.values()):
            own = [column for column, u in columns.items() if u == unit]
            if len(own) > MOST_LINES:
                chosen = sorted(own, key=lambda column: -worst.get(column, 0.0))[:MOST_LINES]
                own = [column for column in own if column in chosen]
            yield unit, own


def compare(*runs: Trajectory, names: Sequence[str] | str = (), labels: Sequence[str] | str = ()) -> Comparison:
    """Compare runs with the first of them: print the result for a table, `.plot()` it for curves in one figure.

    Args:
        runs: two or more runs of one system each, or of batches of one shape, such as those of `cd.load_run`. Their
            models, samples and methods may differ.
        names: quantities that all of them have, as `run[name]` takes; `"q"`, `"v"` and `"energy"` by default.
        labels: what to call the runs; by default the methods, models or settings in which they differ.

    """
    if len(runs) < 2 or not all(isinstance(run, Trajectory) for run in runs):
        kinds = ", ".join(type(run).__name__ for run in runs) or "nothing"
        raise InputError(f"compare: give two or more runs, as cd.compare(one, other), got {kinds}")
    first = runs[0]
    if any(run.batch != first.batch for run in runs):
        shapes = ", ".join(str(run.batch) for run in runs)
        raise InputError(f"compare: the runs have batches of shapes {shapes}; give one system of each, as run[0]")
    wanted = ((names,) if isinstance(names, str) else tuple(names)) or USUAL
    called = _labels(runs, (labels,) if isinstance(labels, str) else tuple(labels))
    span = max(float(np.nanmin(run.time)) for run in runs), min(float(np.nanmax(run.time)) for run in runs)
    if span[0] > span[1]:
        raise InputError(f"compare: no time is in all runs: one begins at {span[0]:g} s, one ends at {span[1]:g} s")
    times, every = _on_one_grid(runs, span)
    rows = []
    for name in wanted:
        for column, unit in _columns(runs, name).items():
            values = [run.quantity(column) for run in every]
            size = _size(every[0], name, unit)
            for label, value in zip(called[1:], values[1:], strict=True):
                off = np.abs(value - values[0]).reshape(-1, len(times))
                if np.isnan(off).all():
                    raise InputError(f"compare: {column!r} is nan at all times in {label!r} or {called[0]!r}")
                k = int(np.nanargmax(off.max(axis=0) if not np.isnan(off).any() else np.nanmax(off, axis=0)))
                rows.append(Difference(label, column, unit, float(np.nanmax(off)), float(times[k]), size))
    return Comparison(called, runs, wanted, tuple(rows), span)


def _size(run: Trajectory, name: str, unit: str) -> float:
    """Largest value among the components of a quantity that have a unit."""
    about, values = run.about(name), run.quantity(name).reshape(*run.valid.shape, -1)
    own = [k for k, u in enumerate(about.units) if u == unit]
    return float(np.nanmax(np.abs(values[..., own]), initial=0.0))


def _columns(runs: Sequence[Trajectory], name: str) -> dict[str, str]:
    """Components of a quantity that all runs have, as names, with their unit."""
    tables = []
    for run in runs:
        about = run.about(name)
        tables.append({f"{name}.{label}": unit for label, unit in zip(about.labels, about.units, strict=False)}
                      if about.labels else {name: about.units[0]})  # fmt: skip
    found = {column: unit for column, unit in tables[0].items() if all(t.get(column) == unit for t in tables)}
    if not found:
        raise InputError(f"compare: the runs have no component of {name!r} in common")
    return found


def _on_one_grid(runs: Sequence[Trajectory], span: tuple[float, float]) -> tuple[np.ndarray, list[Trajectory]]:
    """The samples of the first run in the common time, and the runs there."""
    first = runs[0]
    if all(run.time.shape == first.time.shape and np.array_equal(run.time, first.time, equal_nan=True) for run in runs):
        return (
            first.time if first.time.ndim == 1 else np.nanmax(first.time.reshape(-1, first.time.shape[-1]), axis=0)
        ), [*runs]
    if first.time.ndim > 1:
        raise InputError("compare: systems of a batch that ended at different times are compared one by one, as run[0]")
    times = first.time[(first.time >= span[0]) & (first.time <= span[1])]
    times = np.unique([*times, *span])
    return times, [
        Trajectory(run.model, times, *run.at(times), tau=run.tau, method=run.method, formulation=run.formulation)
        for run in runs
    ]


def _labels(runs: Sequence[Trajectory], given: tuple[str, ...]) -> tuple[str, ...]:
    """What to call the runs: as given, or by what tells them apart."""
    if given:
        if len(given) != len(runs) or len(set(given)) < len(given) or not all(isinstance(x, str) for x in given):
            raise InputError(f"compare: labels must be {len(runs)} different names, got {given!r}")
        return given
    said = []
    for run in runs:
        settings = {f"{name}={value}": "" for name, value in run.settings.items() if name != "batch"}
        about = {"method": run.method, "formulation": run.formulation, "model": run._metadata.labels.model}
        said.append(about | settings)
    for key in ("method", "formulation", "model"):
        if len({each[key] for each in said}) == len(runs):
            return tuple(each[key] for each in said)
    shared = set.intersection(*({*each} for each in said))
    own = tuple(", ".join(name for name in each if name not in shared) for each in said)
    if len({*own}) == len(runs) and all(own):
        return own
    return tuple(f"run {k + 1}" for k in range(len(runs)))
