"""`cardan plot`: curves of runs that were saved, and their differences."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cardan.commands.arguments import Force
from cardan.commands.output import plain_table, require_writable, screen
from cardan.errors import FileError, InputError

if TYPE_CHECKING:
    from cardan.results.trajectory.trajectory import Trajectory

SUFFIX = ".nc"


def is_run(file: str) -> bool:
    """Whether a name is that of a run file."""
    return Path(file).suffix.lower() == SUFFIX


def open_run(file: str, system: int | None) -> Trajectory:
    """A run of one system from a file; of a batch the one with this number."""
    import cardan as cd

    run = cd.load_run(file)
    if not run.batch:
        if system not in (None, 0):
            raise InputError(f"{file}: it has one system; leave out --system {system}")
        return run
    if system is None:
        raise InputError(f"{file}: it has a batch of {len(run)} systems; give --system NUMBER, 0 to {len(run) - 1}")
    if len(run.batch) > 1 or not 0 <= system < len(run):
        raise InputError(f"{file}: there is no system {system} in its batch of shape {run.batch}")
    return run[system]


System = Annotated[
    int | None, typer.Option("--system", metavar="NUMBER", show_default=False, help="System of a batch, from 0 on.")
]


def plot(
    given: Annotated[
        list[str],
        typer.Argument(metavar="RUN|QUANTITY", show_default=False,
                       help="Run files (.nc), and what to plot: q, energy, spring.force, crank.position."),
    ],
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FIGURE", show_default=False,
                     help="A .png, .svg or .pdf file; by default the run's name with .png."),
    ] = None,
    names: Annotated[bool, typer.Option("--names", metavar="", help="List what can be plotted.")] = False,
    system: System = None,
    degrees: Annotated[bool, typer.Option("--degrees", metavar="", help="Angles in degrees; of one run.")] = False,
    force: Force = False,
) -> None:  # fmt: skip
    """Plot quantities of a saved run by name; of several runs, compare them with the first and overlay their curves.

    Examples: [bold]cardan plot run.nc[/bold], [bold]cardan plot run.nc --names[/bold],
    [bold]cardan plot soft.nc stiff.nc spring.force energy[/bold]
    """
    files, wanted = [x for x in given if is_run(x)], [x for x in given if not is_run(x)]
    if not files:
        raise FileError(f"{given[0]}: plot takes runs that were saved, .nc files; cardan simulate --out run makes one")
    if names:
        _list(open_run(files[0], system))
        return
    path = out or Path(files[0]).with_suffix(".png")
    require_writable(path, force)
    import cardan as cd

    runs = [open_run(file, system) for file in files]
    if len(runs) == 1:
        runs[0].plot(*wanted, angle="deg" if degrees else "rad", path=path, overwrite=force)
    else:
        stems = [Path(file).stem for file in files]
        labels = stems if len({*stems}) == len(stems) else files
        if len({*labels}) < len(labels):
            raise InputError(f"plot: a run is given twice: {', '.join(files)}")
        found = cd.compare(*runs, names=wanted, labels=labels)
        found.plot(path=path, overwrite=force)
        print(found)
    print(path)


def _list(run: Trajectory) -> None:
    """The names that can be plotted, with units and meaning."""
    rows = []
    for name in run.names():
        about = run.about(name)
        rows.append((name, ", ".join(dict.fromkeys(about.units)), about.description))
    screen().print(plain_table(("quantity", "unit", ""), rows))
