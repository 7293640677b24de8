"""Style and files of figures.

Figures are matplotlib objects made without `pyplot`, so that no global state is changed. Nothing is shown unless asked
for, by `figure.show()` or as the value of a cell of a notebook. With `ax=` a picture is drawn into axes of the user.
Colours are those of Okabe and Ito, Color Universal Design (2008), which people with any colour vision can distinguish.
"""

from __future__ import annotations

import io
import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from cardan.atomic_file import file_path, whole_file
from cardan.errors import FileError, InputError, nearest
from cardan.machines.waiting import in_notebook

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
TRACES = ("#E69F00", "#6A3D9A", "#56B4E9", "#009E73")  # paths of points; forces are red, drives vermilion
INK, GREY, FAINT = "#222222", "#7f7f7f", "#d9d9d9"
FORMATS: dict[str, dict[str, Any]] = {"png": {"Software": None}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}
"""Formats of files, with the metadata that would make equal figures differ, left empty."""
WIDTH = 6.3  # inch, the text width of an A4 page
STYLE: Any = {
    "font.size": 9.0, "axes.titlesize": 9.0, "axes.labelsize": 9.0, "xtick.labelsize": 8.0, "ytick.labelsize": 8.0,
    "legend.fontsize": 8.0, "legend.frameon": False, "legend.handlelength": 1.6,
    "axes.spines.top": False, "axes.spines.right": False, "axes.linewidth": 0.7, "lines.linewidth": 1.3,
    "xtick.major.width": 0.7, "ytick.major.width": 0.7,
    "axes.edgecolor": INK, "axes.labelcolor": INK, "text.color": INK, "xtick.color": INK, "ytick.color": INK,
    "axes.grid": True, "axes.axisbelow": True, "grid.color": "#e6e6e6", "grid.linewidth": 0.6,
    "axes.formatter.useoffset": False, "axes.formatter.limits": (-3, 4), "axes.formatter.use_mathtext": True,
    "axes.unicode_minus": True, "figure.facecolor": "white",
    "savefig.dpi": 200, "pdf.fonttype": 42, "svg.fonttype": "path", "svg.hashsalt": "cardan",
}  # fmt: skip
"""Settings of matplotlib that replace the user's while a figure is made."""


def style() -> Any:
    """A context with the settings of `STYLE`."""
    import matplotlib

    return matplotlib.rc_context(STYLE)


@dataclass(frozen=True)
class FigureOutput:
    """Size of a figure (width and height, inches, or None) and its file, checked before anything is computed.

    `ax` are axes of the user to draw into, one or several, in place of a new figure.
    """

    size: tuple[float, float] | None
    path: str | os.PathLike[str] | None
    overwrite: bool
    ax: Any = None

    def __post_init__(self) -> None:
        """Check the suffix of the file and the size."""
        if self.path is not None:
            _format(self.path)
        try:
            width, height = (float(length) for length in ((1.0, 1.0) if self.size is None else self.size))
        except (TypeError, ValueError):
            width = height = 0.0
        if not (0.2 < width < 200 and 0.2 < height < 200):
            raise InputError(
                f"the size of a figure must be its width and height in inches, 0.2 to 200, got {self.size!r}"
            )

        for axes in self._given():
            if not (hasattr(axes, "plot") and hasattr(axes, "get_figure")):
                raise InputError(f"ax must be axes of matplotlib, as figure.subplots() makes them, got {axes!r}")
        if self.ax is not None and (self.path is not None or self.size is not None):
            raise InputError("with ax= the figure is yours: give no path or size; write it with figure.savefig(...)")

    def _given(self) -> list[Any]:
        """The axes of the user."""
        if self.ax is None:
            return []
        import numpy as np

        return list(np.ravel(np.asarray(self.ax, dtype=object)))

    def axes(self, what: str, panels: Sequence[str]) -> list[Any] | None:
        """The axes of the user for panels, which have names; None if a new figure is to be made."""
        given = self._given()
        if given and len(given) != len(panels):
            raise InputError(
                f"{what}: {len(panels)} panels ({', '.join(panels)}) need as many axes in ax=, got {len(given)}; name "
                "the panels that you want"
            )
        return given or None

    def write(self, figure: Figure) -> Figure:
        """Write the figure, if there is a file for it, and return it."""
        if self.path is not None:
            contents = image(figure, _format(self.path))
            with whole_file(self.path, self.overwrite) as part:
                part.write_bytes(contents)
        return figure


def _format(path: str | os.PathLike[str]) -> str:
    """Format of a figure file, from its suffix."""
    kind = file_path(path).suffix.lower().removeprefix(".")
    if kind not in FORMATS:
        raise FileError(
            f"{os.fspath(path)}: the name of a figure file ends in .png, .svg or .pdf, this one in {'.' + kind!r}"
            f"{nearest(kind, FORMATS)}"
        )
    return kind


def new_figure(width: float, height: float, by_hand: bool = False) -> Figure:
    """An empty figure, inches, whose axes are laid out by matplotlib or, with `by_hand`, by the caller."""
    with style():
        return _figure_class()(figsize=(width, height), layout=None if by_hand else "constrained")


@cache
def _figure_class() -> type[Figure]:
    """Class of figures that a notebook shows as the value of a cell, with or without `pyplot`."""
    from matplotlib.figure import Figure

    class Picture(Figure):
        """A figure."""

        def savefig(self, *arguments: Any, **options: Any) -> None:
            """Write the figure with the fonts of `STYLE`."""
            with style():
                super().savefig(*arguments, **options)

        def show(self, warn: bool = True) -> None:
            """Show the figure: in a notebook below the cell, otherwise in a window, until it is closed."""
            if in_notebook():
                from IPython.display import display

                show: Any = display
                show(self)
            else:
                _show_window(self)

        def _repr_png_(self) -> bytes:
            return image(self, "png", dpi=120)

    Picture.__module__, Picture.__qualname__ = "cardan.results.figure", "Picture"
    return Picture


def owner_of(at: Any) -> Figure:
    """The figure that axes of the user belong to."""
    figure: Figure = at.get_figure().figure  # of a part of a figure the whole
    return figure


def _show_window(figure: Figure) -> None:
    """Show a figure in a window of the backend of `pyplot`, and wait until it is closed, as `pyplot.show` does."""
    import matplotlib.pyplot as plt
    from matplotlib._pylab_helpers import Gcf
    from matplotlib.backends.registry import backend_registry

    registry: Any = backend_registry
    module = registry.load_backend_module(plt.get_backend())
    canvas = module.FigureCanvas
    if not canvas.required_interactive_framework:
        raise InputError(
            "show: there is no display for a window here; give path='picture.png' to write a file, or show the figure "
            "in a notebook"
        )
    windows: Any = Gcf
    windows._set_new_active_manager(canvas.new_manager(figure, max(plt.get_fignums(), default=0) + 1))
    plt.show()


def image(figure: Figure, kind: str, dpi: float | None = None) -> bytes:
    """A figure as the bytes of a file, without dates, so that equal figures give equal bytes."""
    file = io.BytesIO()
    figure.savefig(file, format=kind, dpi=dpi or STYLE["savefig.dpi"], metadata=FORMATS[kind])
    return file.getvalue()
