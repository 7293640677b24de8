"""`cardan info`, `cardan check` and `cardan mechanisms`: describe and check a model, list the catalogue."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from textwrap import fill, shorten
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cardan.commands.arguments import Changes, File, Force, Json, Root, complete_mechanism, read_model
from cardan.commands.output import plain_table, screen, tracked
from cardan.errors import UnknownNameError, nearest

if TYPE_CHECKING:
    from cardan.model.model import Model


def info(file: File, changes: Changes = None, root: Root = "fixed", as_json: Json = False) -> None:
    """Print a model's tree, joints and cuts.

    Example: [bold]cardan info anymal.urdf --root free[/bold]
    """
    model = read_model(file, root, changes, tell=False)
    if as_json:
        print(json.dumps(facts_of(model), indent=1))
        return
    console = screen()
    console.print(model.report(), markup=False, soft_wrap=True)
    rows = []
    for row in facts_of(model)["joints"]:
        if row["q"] is not None:
            limits = "" if row["lower"] is None else f"{row['lower']:.4g} to {row['upper']:.4g}"
            q, v = (f"{a}" if a + 1 == b else f"{a}..{b - 1}" for a, b in (row["q"], row["v"]))
            damping = f"{row['damping']:.4g}" if row["damping"] else ""
            rows.append((row["name"], row["kind"], q, v, limits, damping, row["mimics"] or ""))
    if rows:
        console.print("joints of the tree")
        headings = ("joint", "kind", "q", "v", "limits", "damping", "mimics")
        used = [k for k in range(len(headings)) if k < 4 or any(row[k] for row in rows)]
        console.print(plain_table([headings[k] for k in used], [[row[k] for k in used] for row in rows]))


def check(
    file: File, states: Annotated[int, typer.Option(min=1, metavar="COUNT", help="Number of random states.")] = 64,
    changes: Changes = None, root: Root = "fixed", as_json: Json = False,
) -> None:  # fmt: skip
    """Test every identity and compare every formulation on a model; status 1 on failure.

    Example: [bold]cardan check double_pendulum[/bold]
    """
    import cardan as cd

    model = read_model(file, root, changes)
    report = cd.check(model, states=states)
    if as_json:
        rows = [{"name": r.name, "error": r.error, "bound": r.bound, "passed": r.passed} for r in report.rows]
        facts = {"model": report.model, "passed": report.passed, "rows": rows, "losses": list(model.losses)}
        print(json.dumps(facts, indent=1))
    else:
        print(report)
    raise typer.Exit(0 if report.passed else 1)


def mechanisms(
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME", show_default=False, help="Show one mechanism in detail.",
                       autocompletion=complete_mechanism),
    ] = None,
    write: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", show_default=False, help="Write them as .yaml files to this folder."),
    ] = None,
    force: Force = False,
    as_json: Json = False,
) -> None:  # fmt: skip
    """List the catalogue of mechanisms, describe one of them, or write them as files.

    Examples: [bold]cardan mechanisms[/bold], [bold]cardan mechanisms four_bar[/bold],
    [bold]cardan mechanisms four_bar --write models[/bold]
    """
    from cardan.mechanisms import CATALOGUE

    if name is not None and name not in CATALOGUE:
        raise UnknownNameError(f"mechanism {name!r} is not in the catalogue{nearest(name, CATALOGUE)}")
    if write is not None:
        _write_files(name, write, force, as_json)
    elif name is None:
        _list(as_json)
    else:
        _describe(name, as_json)


def _write_files(name: str | None, folder: Path, force: bool, as_json: bool) -> None:
    from cardan.commands.output import require_writable
    from cardan.io.load import mechanism_texts, write_mechanisms

    names = [name] if name else list(mechanism_texts())
    for path in (folder / f"{each}.yaml" for each in names if folder.is_dir()):
        require_writable(path, force)
    paths = write_mechanisms(folder, names, overwrite=force)
    if as_json:
        print(json.dumps([str(path) for path in paths], indent=1))
    else:
        print(f"{len(paths)} file{'s' if len(paths) > 1 else ''} in {folder}")


def _list(as_json: bool) -> None:
    from cardan.mechanisms import CATALOGUE

    found = [_entry(name) for name in tracked(list(CATALOGUE), "counting freedoms")]
    if as_json:
        print(json.dumps(found, indent=1))
        return
    console = screen()
    headings = ("mechanism", "bodies", "free", "loops", "")
    taken = max(len(row["name"]) for row in found) + sum(map(len, headings[1:])) + 2 * len(headings)
    rows = [
        (row["name"], row["bodies"], row["freedoms"], row["loops"],
         shorten(row["about"], 2 * max(console.width - taken, 20), placeholder=" ..."))
        for row in found
    ]  # fmt: skip
    console.print(plain_table(headings, rows, right=(1, 2, 3)))


def _describe(name: str, as_json: bool) -> None:
    from cardan.io.load import mechanism_texts
    from cardan.mechanisms import CATALOGUE

    paragraphs = [" ".join(part.split()) for part in (CATALOGUE[name].__doc__ or "").split("\n\n") if part.strip()]
    if as_json:
        print(json.dumps(_entry(name) | {"text": paragraphs, "file": mechanism_texts()[name]}, indent=1))
        return
    import cardan as cd

    model = CATALOGUE[name]().build()
    console = screen()
    for words in paragraphs:
        print(f"{fill(words, console.width)}\n")
    console.print(model.report(), markup=False, soft_wrap=True)
    console.print(str(cd.redundancy(model)), markup=False, soft_wrap=True)
    if values := _parameters(mechanism_texts()[name]):
        console.print("parameters, for --set")
        console.print(plain_table(("", ""), [(f"  {key}", value) for key, value in values.items()]))


def _parameters(text: str) -> dict[str, str]:
    """The parameters of a native file with numeric values."""
    from cardan.io.yaml.nodes import Scalar, Table, parse_yaml

    top = parse_yaml(text, "catalogue")
    section = top.entries.get("parameters") if isinstance(top, Table) else None
    entries = section.entries if isinstance(section, Table) else {}
    return {
        name: node.text for name, node in entries.items() if isinstance(node, Scalar) and not node.text.startswith("=")
    }


@cache
def _entry(name: str) -> dict[str, Any]:
    """One line of the catalogue."""
    import cardan as cd
    from cardan.mechanisms import CATALOGUE

    model = CATALOGUE[name]().build()
    sentence = " ".join((CATALOGUE[name].__doc__ or "").split("\n\n")[0].split())
    about = sentence.split(": ")[0].split("; ")[0].rstrip(".")
    freedoms = cd.redundancy(model).freedoms
    return {"name": name, "bodies": model.nb, "freedoms": freedoms, "loops": len(model.cuts), "about": about}


def facts_of(model: Model) -> dict[str, Any]:
    """The output of `info` as plain data."""
    places, names = {link.joint: link for link in model.tree.links}, (*model.body_names, "ground")
    joints = []
    for j, joint in enumerate(model.joints):
        link, data = places.get(j), joint.data
        joints.append({
            "name": joint.name, "kind": joint.kind.name, "parent": names[joint.parent], "child": names[joint.child],
            "q": [link.q.start, link.q.stop] if link else None, "v": [link.v.start, link.v.stop] if link else None,
            "cut": j in model.cuts, "lower": data.lower, "upper": data.upper, "damping": data.damping,
            "mimics": data.mimic[0] if data.mimic else None,
        })  # fmt: skip
    bodies = [{"name": body.name, "mass": body.mass} for body in model.bodies]
    return {
        "name": model.name, "bodies": bodies, "nq": model.nq, "nv": model.nv, "mass": model.total_mass,
        "joints": joints, "losses": list(model.losses), "notes": list(model.notes),
    }  # fmt: skip
