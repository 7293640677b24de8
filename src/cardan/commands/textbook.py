"""`cardan textbook`: a derivation of one of the sources, as a page that a browser runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cardan.commands.arguments import Force
from cardan.commands.output import require_writable
from cardan.errors import FileError

SOURCES = {
    "F6": "two bodies and a hinge, with 6-D vectors", "F3": "the same, with 3-D vectors",
    "FX": "identities of 6-D vectors", "KJ": "joints as constraints", "AT": "planar bodies as particles",
}  # fmt: skip


def textbook(
    source: Annotated[
        str,
        typer.Argument(metavar="SOURCE", help="One of F6, F3, FX, KJ, AT.",
                       autocompletion=lambda incomplete: [x for x in SOURCES.items() if x[0].startswith(incomplete)]),
    ],
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="PAGE", show_default=False, help="The .html file; f6.html for F6."),
    ] = None,
    force: Force = False,
) -> None:  # fmt: skip
    """Write the derivation of a source as a page: formulas, sliders, a figure, and the agreement of the forms.

    A browser opens and runs the page without a server and without the network.

    Example: [bold]cardan textbook F6 -o f6.html[/bold]
    """
    from cardan.textbook.pages import page, require_page

    require_page(source)
    path = Path(f"{source.lower()}.html") if out is None else out
    if path.suffix.lower() not in (".html", ".htm"):
        raise FileError(f"{path}: a page is a .html file; name it {path.name}.html")
    require_writable(path, force)
    page(source, path, overwrite=force)
    print(path)
