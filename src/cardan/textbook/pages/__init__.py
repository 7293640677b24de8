"""Pages of the sources that a browser runs: `cd.textbook.page("F6", "f6.html")`.

- `sheet`: what a page is, as data, collected while its text is recorded over CasADi symbols.
- `html`: a sheet as one HTML file; the numbers come from the recorded function, printed as JavaScript.
- `f6`, `f3`, `fx`, `kj`, `at`: the text of each page. `two_bodies` is the problem of F6 and F3; `engine` and `geometry`
  serve all of them.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache
from importlib import import_module

from cardan.atomic_file import whole_file
from cardan.errors import InputError, UnknownNameError, nearest
from cardan.textbook.pages.sheet import Sheet

PAGES = ("F6", "F3", "FX", "KJ", "AT")


@cache
def recorded(source: str) -> Sheet:
    """The sheet of a source, with its text recorded."""
    text: Callable[[Sheet], None] = import_module(f"cardan.textbook.pages.{source.lower()}").text
    sheet = Sheet()
    text(sheet)
    return sheet


def page(source: str, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
    """Write the derivation of a source as one HTML file that any browser runs offline.

    It has the formulas, sliders for the givens, a figure, every numbered result, and the agreement of the forms, all
    computed again when a slider moves.

    Args:
        source: "F6", "F3", "FX", "KJ" or "AT".
        path: file to write; it appears only when it is complete.
        overwrite: whether an existing file may be replaced.

    """
    text = page_text(source)
    with whole_file(path, overwrite) as part:
        part.write_text(text, encoding="utf-8")


def page_text(source: str) -> str:
    """The HTML of a source's page."""
    from cardan.textbook import SOURCES
    from cardan.textbook.pages.html import page_html

    require_page(source)
    return page_html(source, recorded(source), SOURCES[source].title)


def require_page(source: str) -> None:
    """Refuse the name of a source that has no page."""
    if not isinstance(source, str):
        raise InputError(f"page: source must be one of {', '.join(PAGES)}, got {source!r}")
    if source not in PAGES:
        raise UnknownNameError(f"page: {source!r} is not one of {', '.join(PAGES)}{nearest(source.upper(), PAGES)}")
