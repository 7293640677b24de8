"""The results of a study: a dataset with names and units, which members failed and why, and how far it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from cardan.errors import UnknownNameError, nearest
from cardan.lazy import cached_property
from cardan.results.figure import FigureOutput

if TYPE_CHECKING:
    import xarray
    from matplotlib.figure import Figure

    from cardan.studies.design import Design
    from cardan.studies.indices import StudyIndices

TODO, DONE, FAILED = 0, 1, 2
"""Status of a member: not computed yet, computed, failed."""


@dataclass(frozen=True)
class Status:
    """How far a study is: numbers of members, and the chunks in which they are computed."""

    members: int
    done: int
    failed: int
    chunks: int
    chunks_done: int

    @property
    def complete(self) -> bool:
        """Whether nothing is left to compute."""
        return self.chunks_done == self.chunks

    def __str__(self) -> str:
        """One sentence."""
        left = self.members - self.done - self.failed
        more = f", {left:,} to be computed" if left else ""
        return f"{self.members:,} members: {self.done:,} computed, {self.failed:,} failed{more}"


@dataclass(frozen=True, eq=False)
class Study:
    """Results of `cd.sweep`, or of a store that `cd.load_study` opened.

    Args:
        design: the members.
        variables: by name dimensions, array and attributes (units, long_name); the first dimension is `member`, and the
            array may be read lazily.
        coords: of the dimensions after `member`.
        state: status of each member (n,): 0 not computed, 1 computed, 2 failed.
        reasons: by the number of a failed member, why it failed.
        chunk: members that are computed together.
        about: name of the model, settings and units of the parameters.

    """

    design: Design
    variables: Mapping[str, tuple[tuple[str, ...], Any, dict[str, Any]]]
    coords: Mapping[str, Any]
    state: np.ndarray
    reasons: Mapping[int, str]
    chunk: int
    about: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def dataset(self) -> xarray.Dataset:
        """Measures along the dimensions of the design, with names, units and coordinates; NaN of failed members."""
        import xarray

        shape, dims = tuple(self.design.dims.values()), tuple(self.design.dims)
        units = self.about.get("units", {})
        coords = {
            name: (along, values, {"units": units.get(name, "")} if units.get(name) else {})
            for name, (along, values) in self.design.coordinates.items()
        }
        made = {
            name: ((*dims, *of[1:]), values.reshape((*shape, *values.shape[1:])), words)
            for name, (of, values, words) in self.variables.items()
        }
        made["status"] = (dims, self.state.reshape(shape), {"long_name": "0 not computed, 1 computed, 2 failed"})
        words = {k: v for k, v in self.about.items() if k not in ("units", "notes")}
        return xarray.Dataset(made, {**coords, **self.coords}, {**words, **self.about.get("notes", {})})

    @property
    def failed(self) -> np.ndarray:
        """Which members failed, in the shape of the design."""
        return np.asarray(self.state == FAILED).reshape(tuple(self.design.dims.values()))

    @property
    def status(self) -> Status:
        """How far the study is."""
        ends = range(0, len(self.state), self.chunk)
        done = sum(bool(self.state[lo : lo + self.chunk].all()) for lo in ends)
        return Status(
            len(self.state), int((self.state == DONE).sum()), int((self.state == FAILED).sum()), len(ends), done
        )

    def indices(self, measure: str | None = None, at: Mapping[str, Any] | None = None) -> StudyIndices:
        """What a measure depends on: Sobol's indices, elementary effects, or a regression, as the design has it.

        Args:
            measure: name of a measure; the first by default.
            at: by dimension of the measure which entry: `at={"axis": "x"}`, or the one nearest to a number.

        """
        from cardan.studies.indices import indices_of

        return indices_of(self, measure, at)

    def plot(
        self, measure: str | None = None, over: str | None = None, *, at: Mapping[str, Any] | None = None,
        angle: str = "rad", ax: Any = None, size: tuple[float, float] | None = None, path: Any = None,
        overwrite: bool = False,
    ) -> Figure:  # fmt: skip
        """Lines of a measure over a parameter or over time; other axes are a family of lines, samples a band.

        Args:
            measure: name of a measure; the first by default.
            over: a parameter, or "time"; by default time where the measure has it, else the first axis.
            at: by axis of the study or of the measure which entry: `at={"crank.mass": 1.5, "axis": "x"}`.
            angle: "rad" or "deg".
            ax: axes of matplotlib to draw into.
            size: width and height, inches.
            path: file to write: .png, .svg or .pdf.
            overwrite: whether to replace the file.

        """
        from cardan.studies.plots import plot_lines

        return plot_lines(self, measure, over, at, angle, FigureOutput(size, path, overwrite, ax))

    def plot_map(
        self, measure: str | None = None, x: str | None = None, y: str | None = None, *,
        at: Mapping[str, Any] | None = None, angle: str = "rad", ax: Any = None,
        size: tuple[float, float] | None = None, path: Any = None, overwrite: bool = False,
    ) -> Figure:  # fmt: skip
        """A heat map of a measure over two parameters `x` and `y`; coloured points where they were sampled.

        Other arguments are those of `plot`.
        """
        from cardan.studies.plots import plot_map

        return plot_map(self, measure, x, y, at, angle, FigureOutput(size, path, overwrite, ax))

    def plot_scatter(
        self, measures: Sequence[str] | str | None = None, parameters: Sequence[str] | str | None = None, *,
        at: Mapping[str, Any] | None = None, angle: str = "rad", ax: Any = None,
        size: tuple[float, float] | None = None, path: Any = None, overwrite: bool = False,
    ) -> Figure:  # fmt: skip
        """Measures over parameters, one panel for each pair and one point for each member.

        Other arguments are those of `plot`.
        """
        from cardan.studies.plots import plot_scatter

        return plot_scatter(self, measures, parameters, at, angle, FigureOutput(size, path, overwrite, ax))

    def plot_histogram(
        self, measure: str | None = None, *, levels: Sequence[float] = (0.05, 0.5, 0.95),
        at: Mapping[str, Any] | None = None, angle: str = "rad", ax: Any = None,
        size: tuple[float, float] | None = None, path: Any = None, overwrite: bool = False,
    ) -> Figure:  # fmt: skip
        """How often values of a measure occur, with the quantiles of some levels.

        Other arguments are those of `plot`.
        """
        from cardan.studies.plots import plot_histogram

        return plot_histogram(self, measure, at, levels, angle, FigureOutput(size, path, overwrite, ax))

    def plot_tornado(
        self, measure: str | None = None, *, most: int = 20, at: Mapping[str, Any] | None = None, angle: str = "rad",
        ax: Any = None, size: tuple[float, float] | None = None, path: Any = None, overwrite: bool = False,
    ) -> Figure:  # fmt: skip
        """Which parameters matter most, at most `most` of them, the longest bar on top.

        Designs "grid" and "one_at_a_time" show the measure at the ends of each range with the others in the middle,
        "saltelli", "fast" and "morris" their indices, other designs the coefficients of a regression. Other arguments
        are those of `plot`.
        """
        from cardan.studies.plots import plot_tornado

        return plot_tornado(self, measure, at, most, angle, FigureOutput(size, path, overwrite, ax))

    def __getitem__(self, name: str) -> xarray.DataArray:
        """A measure, or a parameter, by name."""
        known = [*self.variables, "status", *self.design.coordinates]
        if name not in known:
            raise UnknownNameError(f"study: {name!r} is neither a measure nor a parameter of it{nearest(name, known)}")
        return self.dataset[name]

    def _repr_html_(self) -> str:
        """The first lines and the dataset, in a notebook."""
        return f"<pre>{escape(repr(self))}</pre>{self.dataset._repr_html_()}"

    def __repr__(self) -> str:
        """How far it is, and what it holds."""
        lines = [f"Study of {self.about.get('model', 'a function')!r}: {self.status}"]
        lines += [f"  over {', '.join(f'{k} ({n})' for k, n in self.design.dims.items())}"]
        lines += [f"  parameters {', '.join(self.design.names)}"]
        lines += [f"  {name}: {words.get('long_name', '')}" for name, (_, _, words) in self.variables.items()]
        for number, reason in list(self.reasons.items())[:3]:
            lines.append(f"  member {number} failed: {reason}")
        return "\n".join(lines)
