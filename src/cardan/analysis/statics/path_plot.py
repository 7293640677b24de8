"""Plots of equilibrium paths: a coordinate or a load over what was varied, unstable parts dashed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from cardan.analysis.statics.task import SORTS, coordinates_of
from cardan.results.figure import COLOURS, WIDTH, FigureOutput, new_figure, style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from cardan.analysis.statics.continuation import EquilibriumPath, SpecialPoint
    from cardan.model.model import Model

MARKS = {"turning point": "o", "bifurcation": "s", "flutter": "^"}


def plot_paths(
    paths: Sequence[EquilibriumPath], joint: str | None, load: str | None, size: Any, path: Any, overwrite: bool
) -> Figure:
    """One curve a path, with its special points marked; see `EquilibriumPath.plot`."""
    output = FigureOutput(size, path, overwrite)
    model = paths[0].model
    if joint is None and load is None and paths[0].along.endswith(".q"):  # a coordinate over itself shows nothing
        load = paths[0].along.removesuffix(".q")
    name = load or joint or model.coordinate_names[_most_moved(paths)]
    own = coordinates_of("plot", "load" if load else "joint", model, name)[0]
    sort = "tau" if load else "q"
    units = [unit for link in model.tree.links for unit in link.kind.v_units]
    unit = SORTS[sort][units[own] != "m/s"]
    figure = new_figure(*(size or (WIDTH, 0.6 * WIDTH)))
    with style():
        axes = figure.add_subplot()
        seen: set[str] = set()
        for one, colour in zip(paths, COLOURS * (1 + len(paths) // len(COLOURS)), strict=False):
            y = one.tau[:, own] if load else one.q[:, _place(model, own)]
            for line_x, line_y, stable in _pieces(one, y, lambda p: _height(p, model, own, load)):
                label = "stable" if stable else "unstable"
                axes.plot(line_x, line_y, color=colour, ls="-" if stable else "--",
                          label=label if label not in seen else None)  # fmt: skip
                seen.add(label)
            for point in one.special:
                at = _height(point, model, own, load)
                axes.plot(point.value, at, MARKS[point.kind], color=colour, ms=5,
                          label=point.kind if point.kind not in seen else None)  # fmt: skip
                seen.add(point.kind)
        first = paths[0]
        axes.set_xlabel(f"{first.along} ({first.unit})" if first.unit else first.along)
        axes.set_ylabel(f"{'drive of ' if load else ''}{name} ({unit})")
        axes.legend()
    return output.write(figure)


def _height(point: SpecialPoint, model: Model, own: int, load: str | None) -> float:
    return float(point.node.point.tau[0, own] if load else point.q[_place(model, own)])


def _pieces(
    path: EquilibriumPath, y: np.ndarray, height: Callable[[SpecialPoint], float]
) -> list[tuple[list[float], list[float], bool]]:
    """Stretches of a path that are stable or not, from special point to special point."""
    pieces = [([float(path.values[0])], [float(y[0])], bool(path.is_stable[min(1, len(path) - 1)]))]
    for k in range(1, len(path)):
        between = [p for p in path.special if p.after == k]
        stable = bool(path.is_stable[k])
        for p in between:
            pieces[-1][0].append(p.value)
            pieces[-1][1].append(height(p))
        if stable != pieces[-1][2]:
            pieces.append(([pieces[-1][0][-1]], [pieces[-1][1][-1]], stable))
        pieces[-1][0].append(float(path.values[k]))
        pieces[-1][1].append(float(y[k]))
    return pieces


def _most_moved(paths: Sequence[EquilibriumPath]) -> int:
    """The coordinate, of a joint without quaternion, that moves most."""
    model = paths[0].model
    ranges = [np.ptp(np.concatenate([one.q[:, _place(model, k)] for one in paths])) for k in range(model.nv)]
    return int(np.argmax(ranges)) if ranges else 0


def _place(model: Model, rate: int) -> int:
    """Where the coordinate of a rate is in `q`."""
    for link in model.tree.links:
        if link.v.start <= rate < link.v.stop:
            return int(link.q.start + rate - link.v.start)
    raise IndexError(rate)
