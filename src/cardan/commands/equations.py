"""`cardan equations`: the equations of motion in symbols, as text, LaTeX or JSON, or as a JavaScript module."""

from __future__ import annotations

import json
import re
import textwrap
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cardan.commands.arguments import Changes, File, Formulation, Json, Root, read_model
from cardan.errors import InputError

if TYPE_CHECKING:
    from cardan.readable.symbols import Symbols

NAMES = {
    "M": "mass matrix", "f": "forces", "J": "constraint rows", "gamma": "right side of J vdot = gamma",
    "phi": "position constraints", "N": "qdot = N v",
}  # fmt: skip


def equations(
    file: File,
    formulation: Formulation = "spatial",
    name: Annotated[
        str | None,
        typer.Option("--name", "-n", metavar="NAME", show_default=False,
                     autocompletion=lambda incomplete: [row for row in NAMES.items() if row[0].startswith(incomplete)],
                     help="One of M, f, J, gamma, phi, N; all of them by default."),
    ] = None,
    latex: Annotated[bool, typer.Option("--latex", metavar="", help="Print LaTeX.")] = False,
    numbers: Annotated[bool, typer.Option("--numbers", metavar="", help="Use the numbers of the model.")] = False,
    javascript: Annotated[
        str | None,
        typer.Option("--javascript", metavar="QUANTITY", show_default=False,
                     help="Print a quantity as an ES module: forward_dynamics, mass_matrix, system, ..."),
    ] = None,
    plain: Annotated[bool, typer.Option("--plain", metavar="", help="Do not simplify; for large models.")] = False,
    changes: Changes = None,
    root: Root = "fixed",
    as_json: Json = False,
) -> None:  # fmt: skip
    """Print the equations of motion, in symbols: M vdot + J^T lam = f, J vdot = gamma, qdot = N v, phi = 0.

    With --javascript, print what computes a quantity of the model, as an ES module.

    Example: [bold]cardan equations pendulum --formulation absolute --latex[/bold]
    """
    import cardan as cd

    if latex and as_json:
        raise InputError("--latex and --json cannot be combined; give one of them")
    model = read_model(file, root, changes)
    if javascript is not None:
        if latex or as_json or numbers or plain or name is not None:
            raise InputError("--javascript takes no other option than --formulation, --set and --root")
        print(cd.javascript(model, javascript, formulation=formulation), end="")
        return
    eq = cd.equations(model, formulation=formulation)
    symbols = eq.sympy(symbols=() if numbers else "all", simplify=not plain)
    if name is not None:
        symbols.matrix(name)
    if latex:
        print(symbols.latex(name))
    elif as_json:
        print(json.dumps(as_data(symbols, name), indent=1))
    else:
        print(as_text(symbols, name))


def as_data(symbols: Symbols, name: str | None) -> dict[str, Any]:
    """Matrices as rows of strings that SymPy can parse, and the meaning of the symbols."""
    chosen = {one: symbols.matrix(one) for one in ([name] if name else NAMES)}
    lists = {"q": symbols.q, "v": symbols.v, "tau": symbols.tau, "lambda": symbols.lam}
    return {
        "title": symbols.title,
        **{letter: [str(x) for x in own] for letter, own in lists.items()},
        "matrices": {one: [[str(x) for x in row] for row in matrix.tolist()] for one, matrix in chosen.items()},
        "definitions": {str(x): str(value) for x, value in symbols.definitions.items()},
        "symbols": {
            str(x): {"meaning": m.text, "value": m.value, "unit": m.unit} for x, m in symbols.meanings.items()
        },
    }  # fmt: skip


def as_text(symbols: Symbols, name: str | None, width: int = 80) -> str:
    """The nonzero entries as text, and a legend."""
    lines = [symbols.title]
    if name is None:
        loops = "M vdot + J^T lambda = f    J vdot = gamma    phi = 0    qdot = N v"
        lines.append(loops if symbols.J.rows else "M vdot = f    qdot = N v")
        lines += _row("q", symbols.q, width) + _row("v", symbols.v, width)
    for one in [name] if name else NAMES:
        lines += _entries(one, symbols.matrix(one), width)
    if name is None:
        lines += [x for a, b in symbols.definitions.items() for x in _equation(str(a), b, width)]
        lines += _legend(symbols)
    return "\n".join(lines)


def _row(letter: str, symbols: Any, width: int) -> list[str]:
    text = f"{letter} = ({', '.join(map(str, symbols))})"
    return textwrap.wrap(text, width, subsequent_indent="     ", break_long_words=False)


def _entries(name: str, matrix: Any, width: int) -> list[str]:
    """An equation for each nonzero entry; for a symmetric matrix, the upper half."""
    rows, columns = matrix.shape
    if not rows:
        return []
    symmetric = name == "M"
    title = f"{name} ({rows} x {columns}{', symmetric' if symmetric and rows > 1 else ''}), {NAMES[name]}"
    if rows == columns and matrix.is_Identity:
        return ["", f"{title}: the identity"]
    lines = ["", title + (": zero" if matrix.is_zero_matrix else "")]
    for i in range(rows):
        for j in range(i if symmetric else 0, columns):
            if matrix[i, j] != 0:
                place = f"{i + 1}" if columns == 1 else f"{i + 1},{j + 1}"
                lines += _equation(f"{name}[{place}]", matrix[i, j], width)
    return lines


def _equation(left: str, right: Any, width: int) -> list[str]:
    text = re.sub(r"\*\*", "^", str(right))
    start = f"  {left} = "
    return textwrap.wrap(
        start + text, width, subsequent_indent=" " * len(start), break_long_words=False, break_on_hyphens=False
    )


def _legend(symbols: Symbols) -> list[str]:
    """The meaning of the symbols."""
    rows = [(str(x), m) for x, m in symbols.meanings.items() if x not in symbols.definitions]
    longest = max((len(letter) for letter, _ in rows), default=0)
    lines = ["", "where"]
    for letter, m in rows:
        value = "" if m.value is None else f" = {m.value:.6g}"
        unit = "" if m.unit == "1" else f" {m.unit}" if value else f", {m.unit}"
        lines.append(f"  {letter:{longest}}  {m.text}{value}{unit}")
    return lines
