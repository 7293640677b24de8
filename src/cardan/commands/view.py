"""`cardan view`: show a mechanism, at rest or moving, or a saved run in the browser."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from time import sleep
from typing import Annotated, Any

import typer

from cardan.commands.arguments import (
    Changes,
    Force,
    Rate,
    Root,
    Start,
    complete_file,
    measured,
    read_model,
    start_state,
)
from cardan.commands.output import require_writable
from cardan.commands.plot import System, is_run, open_run
from cardan.errors import FileError, InputError


def view(
    file: Annotated[
        str,
        typer.Argument(metavar="FILE", show_default=False, autocompletion=complete_file,
                       help="A .urdf, .yaml or MJCF .xml file, a mechanism of the catalogue, or a saved run, .nc."),
    ],
    time: Annotated[
        str | None,
        typer.Option("--time", "-t", metavar="TIME", show_default=False, help="Simulate it first: 10, 500ms, 2min."),
    ] = None,
    start: Start = None,
    rate: Rate = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="PAGE", show_default=False,
                     help="Write a page, a .html file, instead."),
    ] = None,
    no_browser: Annotated[bool, typer.Option("--no-browser", metavar="", help="Only print the address.")] = False,
    port: Annotated[int, typer.Option(min=0, max=65535, metavar="PORT", help="Port; 0 takes any free one.")] = 0,
    force: Force = False,
    changes: Changes = None,
    root: Root = "fixed",
    system: System = None,
) -> None:  # fmt: skip
    """Show a mechanism in the browser, at rest or, with --time, moving, or a saved run; or write it as a page.

    A server on this computer runs until Ctrl-C; a page needs no server.

    Examples: [bold]cardan view four_bar --time 5[/bold], [bold]cardan view run.nc[/bold]
    """
    if out is not None:
        if out.suffix.lower() not in (".html", ".htm"):
            raise FileError(f"{out}: a page is a .html file; name it {out.name}.html")
        require_writable(out, force)
    if rate and time is None:
        raise InputError("--rate needs a simulation; give --time too")
    duration = None if time is None else measured("--time", time, "s")
    import cardan as cd

    given: dict[str, Any] = {}
    if is_run(file):
        used = {"--time": time, "--start": start, "--rate": rate, "--set": changes}
        if useless := [option for option, value in used.items() if value]:
            raise InputError(f"{file}: it is a saved run, and {useless[0]} is for mechanisms; leave it out")
        thing: Any = open_run(file, system)
    else:
        if system is not None:
            raise InputError("--system is for saved runs, .nc files")
        model = read_model(file, root, changes)
        q, v = start_state(model, start or (), rate or ())
        thing = model if duration is None else cd.simulate(model, duration, q, v)
        given = {"q": q} if duration is None else {}
    if out is not None:
        cd.page(thing, out, overwrite=force, **given)
        print(out)
        return
    with cd.view(thing, port=port, open_browser=not no_browser, **given) as viewer:
        print(f"{viewer.url}  (Ctrl-C ends it)", flush=True)
        with suppress(KeyboardInterrupt):
            wait()


def wait() -> None:
    """Wait until Ctrl-C."""
    while True:
        sleep(3600)
