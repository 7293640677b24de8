"""`cardan modes` and `cardan linearise`: eigenvalues, mode shapes and linear models of a mechanism about a state."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
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
    read_model,
    start_state,
)
from cardan.commands.output import plain_table, require_writable, say_error, screen
from cardan.errors import FileError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cardan.analysis.linear.linear_model import LinearModel
    from cardan.model.model import Model

PICTURES = (".png", ".svg", ".pdf")
Balance = Annotated[
    bool,
    typer.Option("--equilibrium", "-e", metavar="",
                 help="Go from the start to an equilibrium, with --rate to a steady motion."),
]  # fmt: skip


def modes(
    file: File,
    start: Start = None,
    rate: Rate = None,
    balance: Balance = False,
    mode: Annotated[int, typer.Option("--mode", "-m", metavar="NUMBER", help="Mode to show with --out.")] = 0,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FILE", show_default=False,
                     help="Write one mode as a page that moves, .html, or a picture, .png, .svg or .pdf."),
    ] = None,
    formulation: Formulation = "spatial",
    force: Force = False,
    changes: Changes = None,
    root: Root = "fixed",
    as_json: Json = False,
) -> None:  # fmt: skip
    """Print the modes of a mechanism: eigenvalues, frequencies, damping and what moves.

    They are those about a state, at rest by default; --equilibrium goes to an equilibrium or a steady motion first.

    Examples: [bold]cardan modes four_bar --equilibrium[/bold],
    [bold]cardan modes double_pendulum --mode 1 --out second.html[/bold]
    """
    if out is not None:
        if out.suffix.lower() not in (".html", *PICTURES):
            raise FileError(f"{out}: a mode is written to a .html, .png, .svg or .pdf file")
        require_writable(out, force)
    model = read_model(file, root, changes)
    at = _state(model, start or (), rate or (), balance, formulation)
    import cardan as cd

    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        found = cd.modes(model, at, formulation=formulation)
        listed = list(found)
    for warning in told:
        say_error(str(warning.message))
    if as_json:
        rows = [
            {"eigenvalue": [m.eigenvalue.real, m.eigenvalue.imag], "frequency": m.frequency, "damping": m.damping,
             "shape": {name: [x.real, x.imag] for name, x in zip(model.coordinate_names, m.shape, strict=True)},
             "participation": dict(zip(model.body_names, m.participation.tolist(), strict=True))}
            for m in listed
        ]  # fmt: skip
        print(json.dumps({"model": model.name, "stability": found.stability, "modes": rows}, indent=1))
    else:
        print(f"{model.name}: {found.stability}")
        rows_of_text = found.table()
        screen().print(plain_table(rows_of_text[0], rows_of_text[1:]))
    if out is not None:
        if out.suffix.lower() == ".html":
            found.page(out, mode, overwrite=force)
        else:
            found.draw(mode, path=out, overwrite=force)
        if not as_json:
            print(out)


def linearise(
    file: File,
    start: Start = None,
    rate: Rate = None,
    balance: Balance = False,
    inputs: Annotated[
        list[str] | None,
        typer.Option("--input", "-i", metavar="NAME", show_default=False,
                     help="tau.JOINT, wrench.BODY, motion.NAME; all drives by default; repeatable."),
    ] = None,
    outputs: Annotated[
        list[str] | None,
        typer.Option("--output", metavar="NAME", show_default=False,
                     help="q.JOINT, position.FRAME, reactions.JOINT, energy; the states by default; repeatable."),
    ] = None,
    bode: Annotated[
        Path | None,
        typer.Option(metavar="FILE", show_default=False, help="Write the frequency response as a .png, .svg or .pdf."),
    ] = None,
    formulation: Formulation = "spatial",
    force: Force = False,
    changes: Changes = None,
    root: Root = "fixed",
    as_json: Json = False,
) -> None:  # fmt: skip
    """Print the linear model of a mechanism about a state: A, B, C, D with names.

    The states are independent coordinates and rates; loops are closed in them.

    Example: [bold]cardan linearise cart_pole --input tau.rail --output q[/bold]
    """
    if bode is not None:
        if bode.suffix.lower() not in PICTURES:
            raise FileError(f"{bode}: a plot is a .png, .svg or .pdf file")
        require_writable(bode, force)
    model = read_model(file, root, changes)
    at = _state(model, start or (), rate or (), balance, formulation)
    import cardan as cd

    linear = cd.linearise(model, at, inputs=inputs or None, outputs=outputs or None, formulation=formulation)
    if as_json:
        facts: dict[str, Any] = {name: x.tolist() for name, x in zip("ABCD", linear, strict=True)}
        facts |= {what: list(getattr(linear, what)) for what in ("states", "inputs", "outputs")}
        print(json.dumps({"model": model.name, **facts, "units": linear.units}, indent=1))
    else:
        _show(linear)
    if bode is not None:
        linear.bode(path=bode, overwrite=force)
        if not as_json:
            print(bode)


def _state(model: Model, start: Sequence[str], rate: Sequence[str], balance: bool, formulation: str) -> Any:
    """The state to linearise about; None for the model's own start at rest."""
    import cardan as cd

    if balance:
        near, rates = by_joint(model, "--start", start) or None, by_joint(model, "--rate", rate) or None
        return cd.equilibrium(model, near, rates=rates, formulation=formulation)
    q, v = start_state(model, start, rate)
    return None if q is None else (q, v)


def _show(linear: LinearModel) -> None:
    """Print the matrices, with the names of rows and columns."""
    console = screen()
    matrices = {
        "A": (linear.states, linear.states), "B": (linear.states, linear.inputs),
        "C": (linear.outputs, linear.states), "D": (linear.outputs, linear.inputs),
    }  # fmt: skip
    for (letter, (rows, columns)), M in zip(matrices.items(), linear, strict=True):
        if rows and columns:
            cells = [(name, *(f"{x:.6g}" for x in np.round(row, 12) + 0.0)) for name, row in zip(rows, M, strict=True)]
            console.print(plain_table((letter, *columns), cells, right=range(1, len(columns) + 1)))
