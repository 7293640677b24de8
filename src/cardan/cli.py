"""The command line: `cardan demo | info | check`.

Exit status: 0 done, 1 a check failed, 2 the input was wrong.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cardan.errors import CardanError, FileError, nearest

if TYPE_CHECKING:
    from cardan.model.model import Model

app = typer.Typer(
    add_completion=True,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    help="Multibody dynamics: one mechanism, every formulation.",
)

File = Annotated[str, typer.Argument(help="a .urdf file, or the name of a mechanism of the catalogue")]
Root = Annotated[str, typer.Option(help="how the root link of a robot meets the ground: fixed or free")]
Json = Annotated[bool, typer.Option("--json", help="print JSON for a program to read")]


def main() -> None:
    """Run the command line; errors of Cardan become one sentence and status 2."""
    try:
        app()
    except CardanError as error:
        print(f"cardan: {error}", file=sys.stderr)
        sys.exit(2)
    except BrokenPipeError:
        sys.exit(1)


@app.callback()
def _cardan() -> None:
    pass


@app.command()
def demo() -> None:
    """Solve the two-body problem three ways, load a robot, and show how the answers agree and how fast.

    Example: [bold]cardan demo[/bold]
    """
    from cardan.demonstration import show

    show()


@app.command()
def info(file: File, root: Root = "fixed", as_json: Json = False) -> None:
    """Print a model's tree, joints and cuts.

    Example: [bold]cardan info anymal.urdf --root free[/bold]
    """
    model = _read(file, root)
    if as_json:
        print(json.dumps(_facts(model), indent=1))
        return
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False)
    console.print(model.report(), markup=False, soft_wrap=True)
    table = Table(title="joints of the tree", title_justify="left", box=None, padding=(0, 2, 0, 0))
    for heading in ("joint", "kind", "q", "v", "limits", "damping", "mimics"):
        table.add_column(heading)
    for row in _facts(model)["joints"]:
        if row["q"] is not None:
            limits = "" if row["lower"] is None else f"{row['lower']:.4g} to {row['upper']:.4g}"
            q, v = (f"{a}" if a + 1 == b else f"{a}..{b - 1}" for a, b in (row["q"], row["v"]))
            damping = f"{row['damping']:.4g}" if row["damping"] else ""
            table.add_row(row["name"], row["kind"], q, v, limits, damping, row["mimics"] or "")
    if model.nv:
        console.print(table)


@app.command()
def check(
    file: File,
    root: Root = "fixed",
    states: Annotated[int, typer.Option(min=1, help="how many random states")] = 64,
    as_json: Json = False,
) -> None:
    """Run every identity and compare every formulation on a model.

    Example: [bold]cardan check double_pendulum[/bold]
    """
    import cardan as cd

    report = cd.check(_read(file, root), states=states)
    if as_json:
        rows = [{"name": r.name, "error": r.error, "bound": r.bound, "passed": r.passed} for r in report.rows]
        print(json.dumps({"model": report.model, "passed": report.passed, "rows": rows}, indent=1))
    else:
        print(report)
    raise typer.Exit(0 if report.passed else 1)


def _read(file: str, root: str) -> Model:
    """A model from a file or the catalogue."""
    import cardan as cd
    from cardan.mechanisms import CATALOGUE

    if file in CATALOGUE:
        return CATALOGUE[file]().build()
    if not Path(file).suffix and not Path(file).exists():
        raise FileError(f"{file!r} is neither a file nor a mechanism of the catalogue{nearest(file, CATALOGUE)}")
    if root not in ("fixed", "free"):
        raise FileError(f"--root must be fixed or free, got {root!r}")
    return cd.load(file, root="free" if root == "free" else "fixed")


def _facts(model: Model) -> dict[str, Any]:
    """What `info` tells, as plain data."""
    places = {link.joint: link for link in model.tree.links}
    joints = []
    for j, joint in enumerate(model.joints):
        link = places.get(j)
        joints.append(
            {
                "name": joint.name,
                "kind": joint.kind.name,
                "parent": "ground" if joint.parent < 0 else model.body_names[joint.parent],
                "child": "ground" if joint.child < 0 else model.body_names[joint.child],
                "q": [link.q.start, link.q.stop] if link else None,
                "v": [link.v.start, link.v.stop] if link else None,
                "cut": j in model.cuts,
                "lower": joint.data.lower,
                "upper": joint.data.upper,
                "damping": joint.data.damping,
                "mimics": joint.data.mimic[0] if joint.data.mimic else None,
            }
        )
    return {
        "name": model.name,
        "bodies": [{"name": b.name, "mass": b.mass} for b in model.bodies],
        "nq": model.nq,
        "nv": model.nv,
        "mass": model.total_mass,
        "joints": joints,
        "notes": list(model.notes),
    }


if __name__ == "__main__":
    main()
