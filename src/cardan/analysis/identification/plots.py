"""Figure of an identification."""

from __future__ import annotations

from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np

from cardan.results.figure import COLOURS, GREY, INK, FigureOutput, new_figure, style

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    from cardan.analysis.identification.estimate import Identification


def plot_estimates(found: Identification, true: NDArray[Any] | None, size: Any, path: Any, overwrite: bool) -> Figure:
    """Base parameters with their intervals, nominal values, and true ones (base,) if known."""
    output = FigureOutput(size, path, overwrite)
    count = len(found.base)
    figure = new_figure(*(output.size or (6.4, 1.0 + 0.36 * count)))
    nominal, half = found.base.of(found.nominal), 1.96 * found.base_std
    values = [found.base_values, nominal] + ([] if true is None else [true])
    unit = np.max(np.abs(values), axis=0)
    unit = np.where(unit > 3 * half, unit, np.maximum(3 * half, 1e-300))
    y = np.arange(count)
    with style():
        at = figure.subplots()
        at.plot(nominal / unit, y, "s", color=GREY, markersize=5, label="nominal")
        if true is not None:
            at.plot(true / unit, y, "x", color=INK, markersize=7, label="true")
        at.errorbar(
            found.base_values / unit, y, xerr=half / unit, fmt="o", color=COLOURS[0], markersize=4, capsize=3,
            label="estimate, 95 %",
        )  # fmt: skip
        at.set_yticks(y, [fill(name, 44) for name in found.base.names], fontsize=7)
        at.invert_yaxis()
        at.set_xlabel("part of the largest value")
        at.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3)
    return output.write(figure)
