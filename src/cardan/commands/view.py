"""`cardan view`: a mechanism, at rest or moving, in the browser."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cardan.commands.measure import measured, start_state
from cardan.commands.outputs import require_writable
from cardan.commands.source import Changes, File, Force, Rate, Root, Start, read_model
from cardan.errors import FileError, InputError

if TYPE_CHECKING:
    from cardan.model.model import Model


def view(
    file: File,
    time: Annotated[
        str | None,
        typer.Option("--time", "-t", metavar="TIME", show_default=False, help="Simulate it first: 10, 500ms, 2min."),
    ] = None,
    start: Start = None,
    rate: Rate = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="PAGE", show_default=False,
                     help="Where to leave the page, a .html file; a temporary one by default."),
    ] = None,
    no_browser: Annotated[bool, typer.Option("--no-browser", metavar="", help="Write the page only.")] = False,
    force: Force = False,
    changes: Changes = None,
    root: Root = "fixed",
) -> None:  # fmt: skip
    """Look at a mechanism in the browser, at rest or, with --time, moving.

    Example: [bold]cardan view four_bar --time 5[/bold]
    """
    if out is not None:
        if out.suffix.lower() not in (".html", ".htm"):
            raise FileError(f"{out}: a page is a .html file; name it {out.name}.html")
        require_writable(out, force)
    if rate and time is None:
        raise InputError("--rate is for a mechanism that moves; give --time too")
    duration = None if time is None else measured("--time", time, "s")
    model = read_model(file, root, changes)
    thing, given = _what_to_show(model, duration, start or (), rate or ())
    path = out or _temporary(model.name)
    from cardan.results.page import page

    page(thing, path, overwrite=force or out is None, **given)
    print(path)
    if not no_browser and sys.stdout.isatty():
        typer.launch(path.resolve().as_uri())


def _what_to_show(model: Model, duration: float | None, start: Any, rate: Any) -> tuple[Any, dict[str, Any]]:
    """A run, or the model with its configuration."""
    import cardan as cd

    q, v = start_state(model, start, rate)
    return (model, {"q": q}) if duration is None else (cd.simulate(model, duration, q, v), {})


def _temporary(name: str) -> Path:
    """A page that nobody else can write to."""
    import os
    import tempfile

    plain = "".join(c if c.isalnum() else "_" for c in name)[:40]
    handle, path = tempfile.mkstemp(prefix=f"cardan-{plain}-", suffix=".html")
    os.close(handle)
    return Path(path)
