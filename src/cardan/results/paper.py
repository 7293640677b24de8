"""How figures look, and how they become files: of a paper's width, in colours that all can tell apart.

Figures are matplotlib's objects, made without `pyplot`: nothing is shown by itself and no global state is touched.
Colours are those of Okabe and Ito, Color Universal Design (2008), which people with any colour vision can tell apart.
"""

from __future__ import annotations

import io
import os
from functools import cache
from typing import TYPE_CHECKING, Any

from cardan.errors import FileError, InputError, nearest
from cardan.results.files import named, whole_file

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
INK, GREY, FAINT = "#222222", "#7f7f7f", "#d9d9d9"
FORMATS = ("png", "svg", "pdf")
WIDTH = 6.3  # inch, the text width of an A4 page
LOOK: Any = {
    "font.size": 9.0,
    "axes.titlesize": 9.0,
    "axes.labelsize": 9.0,
    "xtick.labelsize": 8.0,
    "ytick.labelsize": 8.0,
    "legend.fontsize": 8.0,
    "legend.frameon": False,
    "legend.handlelength": 1.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.linewidth": 0.7,
    "xtick.major.width": 0.7,
    "ytick.major.width": 0.7,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e6e6e6",
    "grid.linewidth": 0.6,
    "lines.linewidth": 1.3,
    "axes.formatter.useoffset": False,
    "axes.formatter.limits": (-3, 4),
    "axes.formatter.use_mathtext": True,
    "axes.unicode_minus": True,
    "figure.facecolor": "white",
    "savefig.dpi": 200,
    "pdf.fonttype": 42,
    "svg.fonttype": "path",
    "svg.hashsalt": "cardan",
}
"""Settings of matplotlib, laid over the user's own while a figure is made."""


def look() -> Any:
    """A context in which figures look as they should."""
    import matplotlib

    return matplotlib.rc_context(LOOK)


def require_size(size: Any) -> None:
    """Refuse a size that is not two lengths in inches."""
    try:
        width, height = (float(length) for length in ((1.0, 1.0) if size is None else size))
    except (TypeError, ValueError):
        width = height = 0.0
    if not (0.2 < width < 200 and 0.2 < height < 200):
        raise InputError(f"a figure's size must be its width and height in inches, 0.2 to 200, got {size!r}")


def new_figure(width: float, height: float, by_hand: bool = False) -> Figure:
    """An empty figure, inches, whose axes are laid out by matplotlib, or by hand."""
    with look():
        return _figure_class()(figsize=(width, height), layout=None if by_hand else "constrained")


@cache
def _figure_class() -> type[Figure]:
    """Matplotlib's figure, that a notebook shows when it is the value of a cell, with or without `pyplot`."""
    from matplotlib.figure import Figure

    class Picture(Figure):
        """A figure."""

        def savefig(self, *arguments: Any, **options: Any) -> None:
            """Write it, with the fonts of the look."""
            with look():
                super().savefig(*arguments, **options)

        def _repr_png_(self) -> bytes:
            return image(self, "png", dpi=120)

    Picture.__module__, Picture.__qualname__ = "cardan.results.paper", "Picture"
    return Picture


def image(figure: Figure, kind: str, dpi: float | None = None) -> bytes:
    """A figure as the bytes of a file, the same whenever it is made."""
    file = io.BytesIO()
    figure.savefig(file, format=kind, dpi=dpi or LOOK["savefig.dpi"], metadata=_METADATA[kind])
    return file.getvalue()


_METADATA: dict[str, dict[str, Any]] = {"png": {"Software": None}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}


def save_figure(figure: Figure, path: str | os.PathLike[str], overwrite: bool) -> None:
    """Write a figure as its name ends, .png, .svg or .pdf, whole or not at all."""
    contents = image(figure, kind_of(path))
    with whole_file(path, overwrite) as part:
        part.write_bytes(contents)


def require_file(path: str | os.PathLike[str] | None, size: Any) -> None:
    """Refuse a name that no picture can have, and a size, before anything is computed."""
    if path is not None:
        kind_of(path)
    require_size(size)


def kind_of(path: str | os.PathLike[str]) -> str:
    """The kind of a picture's file, refused if it is none of those known."""
    kind = named(path).suffix.lower().removeprefix(".")
    if kind not in FORMATS:
        raise FileError(
            f"{os.fspath(path)}: a picture's name ends in .png, .svg or .pdf, this one in {'.' + kind!r}"
            f"{nearest(kind, FORMATS)}"
        )
    return kind
