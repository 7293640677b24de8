"""`cardan ik`, `cardan branches` and `cardan workspace`: where a mechanism can be, and how it gets there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
import typer

from cardan.commands.arguments import Changes, File, Force, Json, Root, Start, measured, read_model, start_state
from cardan.commands.output import plain_table, require_writable, screen
from cardan.errors import InputError

if TYPE_CHECKING:
    from cardan.model.model import Model

Frame = Annotated[str, typer.Option(metavar="NAME", show_default=False, help="Body or frame of the model.")]
Point = Annotated[str, typer.Option(metavar="X,Y,Z", help="Point of the frame, in its own axes: 0.1,0,20mm.")]
Plot = Annotated[
    Path | None, typer.Option(metavar="FILE", show_default=False, help="Draw it: a .png, .svg or .pdf file.")
]
NoLimits = Annotated[bool, typer.Option("--no-limits", metavar="", help="Leave limits of joints out.")]


def ik(
    file: File,
    frame: Frame,
    position: Annotated[
        str | None, typer.Option(metavar="X,Y,Z", show_default=False, help="Where it shall be: 0.4,0.1,300mm.")
    ] = None,
    rpy: Annotated[
        str | None,
        typer.Option(metavar="R,P,Y", show_default=False, help="Roll, pitch and yaw about fixed axes: 180deg,0,0."),
    ] = None,
    direction: Annotated[
        str | None, typer.Option(metavar="X,Y,Z", show_default=False, help="Where its axis shall point.")
    ] = None,
    axis: Annotated[str, typer.Option(metavar="X,Y,Z", help="Its axis, for --direction.")] = "0,0,1",
    point: Point = "0,0,0",
    start: Start = None,
    starts: Annotated[int, typer.Option(min=1, metavar="COUNT", help="Configurations to start from.")] = 20,
    prefer: Annotated[
        str | None,
        typer.Option(metavar="WORD", show_default=False, help="With freedom left: near, centre or manipulability."),
    ] = None,
    every: Annotated[bool, typer.Option("--all", metavar="", help="Find all solutions.")] = False,
    no_limits: NoLimits = False,
    changes: Changes = None,
    root: Root = "fixed",
    as_json: Json = False,
) -> None:  # fmt: skip
    """Find joint coordinates that bring a frame to a pose, a position or a direction; status 1 if out of reach.

    Example: [bold]cardan ik five_bar --frame "left link" --point 0.7,0,0 --position 0.4,0.5,0[/bold]
    """
    import cardan as cd
    from cardan.algebra.rotation import rotation_of_rpy

    model = read_model(file, root, changes)
    target = cd.Target(
        frame,
        position=None if position is None else _triple("--position", position, "m"),
        orientation=None if rpy is None else rotation_of_rpy(_triple("--rpy", rpy, "rad")),
        direction=None if direction is None else _triple("--direction", direction, "1"),
        axis=_triple("--axis", axis, "1"),
        point=_triple("--point", point, "m"),
    )
    q0 = start_state(model, start or (), ())[0]
    found = cd.inverse_kinematics(
        model, target, q0, starts=starts, limits=not no_limits, prefer=prefer, all=every or prefer is not None
    )
    some = found.solutions[0] if every and found.solutions is not None else found.q[None]
    if as_json:
        facts = {
            "model": model.name, "reached": bool(found.reached), "position_error": float(found.position_error),
            "rotation_error": float(found.rotation_error), "why": found.why(),
            "held_back": [name for name, at in zip(model.coordinate_names, found.held_back, strict=True) if at],
            "q": found.q.tolist(), "solutions": some.tolist() if found.reached else [],
        }  # fmt: skip
        print(json.dumps(facts, indent=1))
    else:
        screen().print(str(found), markup=False, soft_wrap=True)
        _show(model, some if found.reached else found.q[None])
    raise typer.Exit(0 if found.reached else 1)


def _triple(option: str, text: str, unit: str) -> np.ndarray:
    """Three numbers with units."""
    parts = text.split(",")
    if len(parts) != 3:
        raise InputError(f"{option} takes three numbers, as in 0.4,0.1,300mm, got {text!r}")
    return np.array([measured(option, part, unit) for part in parts])


def _show(model: Model, some: np.ndarray) -> None:
    """A table of configurations: a row for each coordinate."""
    rows = []
    for link in model.tree.links:
        name, units = model.joints[link.joint].name, link.kind.q_units
        for k, unit in enumerate(units):
            label = name if len(units) == 1 else f"{name}[{k}]"
            rows.append((label, *(f"{q[link.q.start + k]:.6f}" for q in some), unit.replace("1", "")))
    headings = ["joint", *(f"q{k}" if len(some) > 1 else "q" for k in range(len(some))), "unit"]
    screen().print(plain_table(headings, rows, right=range(1, len(some) + 1)))


def branches(
    file: File,
    joint: Annotated[str, typer.Option(metavar="NAME", show_default=False, help="Joint that drives.")],
    output: Annotated[
        str | None, typer.Option(metavar="NAME", show_default=False, help="Joint that is driven.")
    ] = None,
    hold: Annotated[
        list[str] | None, typer.Option(metavar="NAME", show_default=False, help="Joint that stays; repeatable.")
    ] = None,
    plot: Plot = None,
    force: Force = False,
    changes: Changes = None,
    root: Root = "fixed",
    as_json: Json = False,
) -> None:  # fmt: skip
    """Follow all branches of a linkage over a driven joint; find dead points and where the output rests.

    Example: [bold]cardan branches four_bar --joint A --output D[/bold]
    """
    import cardan as cd

    if plot is not None:
        require_writable(plot, force)
    found = cd.branches(read_model(file, root, changes), joint, output=output, hold=hold or ())
    if plot is not None:
        found.plot(path=plot, overwrite=force)
    if not as_json:
        screen().print(str(found), markup=False, soft_wrap=True)
        return
    singular = [
        {"kind": s.kind, "branch": s.branch, "input": s.input, "output": None if np.isnan(s.output) else s.output,
         "q": s.q.tolist()}
        for s in found.singular
    ]  # fmt: skip
    curves = [{"closed": b.closed, "input": b.input.tolist(), "q": b.q.tolist()} for b in found.branches]
    print(json.dumps({"model": found.model.name, "branches": curves, "singular": singular}, indent=1))


def workspace(
    file: File,
    frame: Frame,
    point: Point = "0,0,0",
    samples: Annotated[int, typer.Option(min=10, metavar="COUNT", help="Configurations of the cloud.")] = 4000,
    no_limits: NoLimits = False,
    plot: Plot = None,
    force: Force = False,
    changes: Changes = None,
    root: Root = "fixed",
    as_json: Json = False,
) -> None:  # fmt: skip
    """Find where a point of a frame can be: a cloud of points, its boundary and its extent.

    Example: [bold]cardan workspace five_bar --frame "left link" --point 0.7,0,0 --plot reach.png[/bold]
    """
    import cardan as cd

    if plot is not None:
        require_writable(plot, force)
    model = read_model(file, root, changes)
    at = _triple("--point", point, "m")
    found = cd.workspace(model, frame, point=at, samples=samples, limits=not no_limits)
    if plot is not None:
        found.plot(path=plot, overwrite=force)
    if not as_json:
        screen().print(str(found), markup=False, soft_wrap=True)
        return
    facts = {
        "model": model.name, "frame": frame, "dimension": found.dimension,
        "extent": None if np.isnan(found.extent) else found.extent,
        "lower": found.points.min(axis=0).tolist(), "upper": found.points.max(axis=0).tolist(),
        "boundary": found.boundary.tolist(),
    }  # fmt: skip
    print(json.dumps(facts, indent=1))
