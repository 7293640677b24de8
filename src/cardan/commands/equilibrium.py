"""`cardan equilibrium`: equilibrium or steady motion of a mechanism, or a path of equilibria; with a picture."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from cardan.commands.arguments import (
    Changes,
    File,
    Force,
    Formulation,
    Json,
    Rate,
    Root,
    Start,
    by_joint,
    measured,
    read_model,
)
from cardan.commands.output import plain_table, planned, screen
from cardan.errors import InputError
from cardan.results.progress import progress_bar

if TYPE_CHECKING:
    from cardan.analysis.statics.continuation import EquilibriumPath
    from cardan.analysis.statics.equilibrium import Equilibrium
    from cardan.model.model import Model

Names = list[str] | None


def equilibrium(
    file: File,
    start: Start = None,
    rate: Rate = None,
    drive: Annotated[
        Names,
        typer.Option(metavar="JOINT=VALUE", show_default=False, help="Drive of a joint: A=2N*m; repeatable."),
    ] = None,
    hold: Annotated[
        Names, typer.Option(metavar="JOINT", show_default=False, help="Joint that a drive holds; repeatable.")
    ] = None,
    free: Annotated[
        Names,
        typer.Option(metavar="NUMBER", show_default=False,
                     help="Free a number of the model, such as spring.stiffness; repeatable."),
    ] = None,
    solve_for: Annotated[
        Names,
        typer.Option(metavar="NAME", show_default=False,
                     help="Unknown beside the coordinates: a joint's drive, JOINT.rate or a free number; repeatable."),
    ] = None,
    stable: Annotated[bool, typer.Option("--stable", metavar="", help="Ask for a stable one.")] = False,
    along: Annotated[
        str | None,
        typer.Option(metavar="NAME", show_default=False,
                     help="Follow a path: along a free number, a drive JOINT, JOINT.rate or JOINT.q."),
    ] = None,
    to: Annotated[
        str | None,
        typer.Option(metavar="FIRST,LAST", show_default=False, help="Range of what --along names, SI units."),
    ] = None,
    plot: Annotated[
        str | None,
        typer.Option(metavar="JOINT", show_default=False, help="Joint whose coordinate is plotted over the path."),
    ] = None,
    out: Annotated[
        str | None,
        typer.Option("--out", "-o", metavar="NAME", show_default=False,
                     help="Write NAME.png: the mechanism there, or the path."),
    ] = None,
    formulation: Formulation = "spatial",
    force: Force = False,
    changes: Changes = None,
    root: Root = "fixed",
    as_json: Json = False,
) -> None:  # fmt: skip
    """Find an equilibrium or a steady motion with its stability, or follow it along a parameter.

    Exit status 1 if there is none near the start, or not a stable one where that was asked for.

    Examples: [bold]cardan equilibrium four_bar --stable[/bold],
    [bold]cardan equilibrium four_bar --along A.q --to 1,7 --out path[/bold]
    """
    paths = planned(out, [".png"], force)
    model = read_model(file, root, changes).free(*(free or ()))
    options: dict[str, Any] = {
        "tau": by_joint(model, "--drive", drive or ()) or None, "rates": by_joint(model, "--rate", rate or ()) or None,
        "hold": hold or (), "solve_for": solve_for, "stable": stable, "formulation": formulation,
    }  # fmt: skip
    q = by_joint(model, "--start", start or ()) or None
    import cardan as cd

    if along is None:
        if to is not None or plot is not None:
            raise InputError("--to and --plot belong to a path; give --along too")
        found = cd.equilibrium(model, q, **options)
        for path in paths:
            found.draw(path=path, overwrite=force)
        facts, rows = facts_of(found), found.rows()
    else:
        with progress_bar(None, "following the path", 1.0) as progress:
            followed = cd.equilibrium_path(model, along, _range(to), q, progress=progress, **options)
        for path in paths:
            followed.plot(plot, path=path, overwrite=force)
        facts, rows = facts_of_path(followed), followed.rows()
    if as_json:
        print(json.dumps(facts | {"files": [str(path) for path in paths]}, indent=1))
        return
    rows += [("plot", str(path)) for path in paths]
    screen().print(plain_table(("", ""), rows))


def _range(to: str | None) -> tuple[float, float]:
    parts = [] if to is None else to.split(",")
    if len(parts) != 2:
        raise InputError(f"--to takes the first and the last value, such as 0,10, got {to!r}")
    first, last = (measured("--to", part, "1") for part in parts)
    return first, last


def facts_of(found: Equilibrium) -> dict[str, Any]:
    """An equilibrium as plain data, in SI units."""
    known = found.eigenvalues[np.isfinite(found.eigenvalues)]
    return {
        "model": found.model.name,
        "kind": str(found.kind),
        "unstable": int(found.unstable),
        "neutral": int(found.neutral),
        "steady": bool(found.is_steady),
        "q": _by_joint(found.model, found.q, of_rates=False),
        "v": _by_joint(found.model, found.v),
        "tau": _by_joint(found.model, found.tau),
        "unknowns": {name: float(x) for name, x in found.unknowns.items()},
        "residual": float(found.residual),
        "iterations": int(found.iterations),
        "eigenvalues": [[float(s.real), float(s.imag)] for s in known],
    }


def facts_of_path(path: EquilibriumPath) -> dict[str, Any]:
    """A path of equilibria as plain data, in SI units."""
    return {
        "model": path.model.name,
        "along": path.along,
        "unit": path.unit,
        "values": path.values.tolist(),
        "q": path.q.tolist(),
        "tau": path.tau.tolist(),
        "unstable": path.unstable.tolist(),
        "special": [{"kind": p.kind, "value": p.value, "q": p.q.tolist()} for p in path.special],
        "end": path.end,
    }


def _by_joint(model: Model, x: np.ndarray, of_rates: bool = True) -> dict[str, list[float]]:
    return {
        model.joints[link.joint].name: x[link.v if of_rates else link.q].tolist()
        for link in model.tree.links
        if link.kind.nv
    }
