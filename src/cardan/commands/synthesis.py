"""`cardan synthesise` and `cardan balance`: dimensions for a task, counterweights and springs."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from cardan.commands.arguments import Changes, File, Force, Json, Root, measured, read_model, split_setting
from cardan.commands.output import require_writable, screen
from cardan.errors import FileError, InputError

Plot = Annotated[
    Path | None, typer.Option(metavar="FILE", show_default=False, help="Draw it: a .png, .svg or .pdf file.")
]
Save = Annotated[
    Path | None, typer.Option(metavar="FILE", show_default=False, help="Write the new model: a .yaml file.")
]
Input = Annotated[str | None, typer.Option(metavar="NAME", show_default=False, help="Joint that drives.")]
Motion = Annotated[
    str | None,
    typer.Option(metavar="RANGE", show_default=False, help="turn, or LOW,HIGH of the input: where it must work."),
]


def synthesise(
    file: File,
    free: Annotated[
        list[str],
        typer.Option(metavar="NAME[:AXES]", show_default=False, help="Unknown dimension: B.at:x; repeatable."),
    ],
    output: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=LIST", show_default=False, help="Output joint and its values: D=60deg,80deg."),
    ] = None,
    points: Annotated[
        Path | None,
        typer.Option(metavar="FILE", show_default=False, help="Path: a .csv file with columns x, y, z, at (m, rad)."),
    ] = None,
    frame: Annotated[
        str | None, typer.Option(metavar="NAME", show_default=False, help="Body or frame that follows the path.")
    ] = None,
    free_point: Annotated[bool, typer.Option("--free-point", metavar="", help="Its point is unknown, too.")] = False,
    input: Input = None,
    at: Annotated[
        str | None, typer.Option(metavar="LIST", show_default=False, help="Values of the input: 30deg,60deg,90deg.")
    ] = None,
    offset: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", show_default=False, help="Joint that counts from an unknown zero; repeatable."),
    ] = None,
    bound: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=LOW,HIGH", show_default=False, help="Bounds: B.at=0.1,0.5; repeatable."),
    ] = None,
    motion: Motion = None,
    transmission: Annotated[
        list[str] | None,
        typer.Option(
            metavar="A,B=ANGLE", show_default=False, help="Smallest angle of coupler and output: coupler,rocker=40deg."
        ),
    ] = None,
    grashof: Annotated[
        str | None, typer.Option(metavar="TYPE", show_default=False, help="crank-rocker, double-crank, ...")
    ] = None,
    starts: Annotated[int, typer.Option(min=1, metavar="COUNT", help="Sets of dimensions to start from.")] = 64,
    plot: Plot = None,
    save: Save = None,
    force: Force = False,
    changes: Changes = None,
    root: Root = "fixed",
    as_json: Json = False,
) -> None:  # fmt: skip
    """Find dimensions with which a linkage follows a path or a function, from many starts.

    Example: [bold]cardan synthesise four_bar --free B.at:x --free C.at:x --free C.child_at:x --input A
    --at 40deg,60deg,80deg --output D=110deg,118deg,128deg[/bold]
    """
    import cardan as cd

    for path in (plot, save):
        if path is not None:
            require_writable(path, force)
    model = read_model(file, root, changes)
    names = [name.partition(":") for name in free]
    targets, timing = _path(points, frame)
    found = cd.synthesise(
        model.free(*(name for name, _, _ in names)),
        targets,
        output=dict(_joint_values(model, "--output", text) for text in output or ()) or None,
        input=input,
        at=timing if at is None else _values(model, "--at", input, at),
        offsets=tuple(offset or ()),
        free_point=free_point,
        along={name: axes for name, _, axes in names if axes},
        bounds=dict(_bound(text) for text in bound or ()),
        motion=_range(model, input, motion),
        transmission=dict(_transmission(text) for text in transmission or ()),
        grashof=grashof,
        starts=starts,
    )
    if plot is not None:
        found.plot(path=plot, overwrite=force)
    if save is not None:
        cd.save(found.model, save, overwrite=force)
    if not as_json:
        screen().print(str(found), markup=False, soft_wrap=True)
        return
    rows = [
        {"values": {name: x.tolist() for name, x in s.values.items()}, "points": s.points.tolist(),
         "offsets": s.offsets, "rms": s.rms, "position_error": s.position_error.tolist(),
         "angle_error": s.angle_error.tolist(), "converged": s.converged, "defect": s.defect, "q": s.q.tolist()}
        for s in found.solutions
    ]  # fmt: skip
    facts = {"model": model.name, "starts": found.starts, "failures": found.failures, "solutions": rows}
    print(json.dumps(facts, indent=1))


def balance(
    file: File,
    shaking: Annotated[
        list[str] | None,
        typer.Option(metavar="KIND", show_default=False, help="force or moment; repeatable, the force comes first."),
    ] = None,
    gravity: Annotated[bool, typer.Option("--gravity", metavar="", help="Balance its weight.")] = False,
    counterweight: Annotated[
        list[str] | None,
        typer.Option(metavar="BODY[=MASS]", show_default=False, help="Body that gets one: crank=2kg; repeatable."),
    ] = None,
    free: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", show_default=False, help="Unknown number: spring.stiffness; repeatable."),
    ] = None,
    input: Input = None,
    motion: Motion = None,
    save: Save = None,
    force: Force = False,
    changes: Changes = None,
    root: Root = "fixed",
    as_json: Json = False,
) -> None:  # fmt: skip
    """Find counterweights and springs that balance shaking force, shaking moment or gravity.

    Example: [bold]cardan balance four_bar --shaking force --counterweight crank=2kg --counterweight rocker=3kg[/bold]
    """
    import cardan as cd

    if save is not None:
        require_writable(save, force)
    model = read_model(file, root, changes)
    weights: dict[str, float | None] = {}
    for text in counterweight or ():
        body, given, mass = text.partition("=")
        weights[body] = measured("--counterweight", mass, "kg") if given else None
    found = cd.balance(
        model.free(*(free or ())), shaking=tuple(shaking or ()), gravity=gravity, counterweights=weights, input=input,
        motion=_range(model, input, motion),
    )  # fmt: skip
    if save is not None:
        cd.save(found.model, save, overwrite=force)
    if not as_json:
        screen().print(str(found), markup=False, soft_wrap=True)
        return
    facts = {
        "model": model.name, "before": found.before, "after": found.after, "converged": found.converged,
        "values": {name: x.tolist() for name, x in found.values.items()},
        "counterweights": {
            body: {"mass": w.mass, "position": w.position.tolist()} for body, w in found.counterweights.items()
        },
    }  # fmt: skip
    print(json.dumps(facts, indent=1))


def _path(points: Path | None, frame: str | None) -> tuple[Any, np.ndarray | None]:
    """The target of a path, and the input's values if the file has them."""
    import cardan as cd

    if (points is None) != (frame is None):
        raise InputError("--points and --frame belong together: the path, and what follows it")
    if points is None or frame is None:
        return None, None
    try:
        with points.open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file, skipinitialspace=True))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise FileError(f"{points}: cannot be read as a table: {error}") from None
    known = [name for name in ("x", "y", "z", "at") if rows and rows[0].get(name) is not None]
    if not any(name in known for name in "xyz"):
        raise FileError(f"{points}: its first line must name columns x, y, z (m) and at (rad or m), some of them")
    try:
        columns = {name: np.array([float(row[name]) for row in rows]) for name in known}
    except (TypeError, ValueError) as error:
        raise FileError(f"{points}: every cell must be a number: {error}") from None
    along = "".join(name for name in "xyz" if name in known)
    place = np.stack([columns.get(name, np.zeros(len(rows))) for name in "xyz"], axis=-1)
    return cd.Target(frame, position=place, along=along), columns.get("at")


def _unit(model: Any, joint: str | None) -> str:
    """Unit of a joint's coordinate."""
    if joint is None:
        raise InputError("--at and --motion are values of the input; name it with --input")
    model.q_slice(joint)
    return str(model.joint(joint).kind.q_units[0])


def _values(model: Any, option: str, joint: str | None, text: str) -> np.ndarray:
    unit = _unit(model, joint)
    return np.array([measured(option, part, unit) for part in text.split(",")])


def _joint_values(model: Any, option: str, text: str) -> tuple[str, np.ndarray]:
    joint, values = split_setting(option, text)
    return joint, _values(model, option, joint, values)


def _pair(option: str, text: str, unit: str) -> tuple[float, float]:
    parts = text.split(",")
    if len(parts) != 2:
        raise InputError(f"{option} takes LOW,HIGH, got {text!r}")
    return measured(option, parts[0], unit), measured(option, parts[1], unit)


def _bound(text: str) -> tuple[str, tuple[float, float]]:
    name, values = split_setting("--bound", text)
    return name, _pair("--bound", values, "m")


def _range(model: Any, joint: str | None, text: str | None) -> str | tuple[float, float] | None:
    return text if text is None or text == "turn" else _pair("--motion", text, _unit(model, joint))


def _transmission(text: str) -> tuple[tuple[str, str], float]:
    bodies, angle = split_setting("--transmission", text)
    coupler, comma, output = bodies.partition(",")
    if not comma:
        raise InputError(f"--transmission takes COUPLER,OUTPUT=ANGLE, got {text!r}")
    return (coupler, output), measured("--transmission", angle, "rad")
