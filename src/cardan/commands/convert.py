"""`cardan convert`: from one model format to another, and what is lost on the way."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cardan.commands.source import Changes, File, Force, Json, Root, read_model
from cardan.errors import FileError

if TYPE_CHECKING:
    from cardan.model.model import Model

UNWRITTEN = {".urdf": "URDF", ".xml": "MJCF"}


def convert(
    file: File,
    out: Annotated[Path, typer.Argument(metavar="OUT", show_default=False, help="The .yaml file to write.")],
    force: Force = False,
    changes: Changes = None,
    root: Root = "fixed",
    as_json: Json = False,
) -> None:
    """Convert a model to a .yaml file, the format of Cardan, and say what is lost.

    Example: [bold]cardan convert robot.urdf robot.yaml[/bold]
    """
    import cardan as cd
    from cardan.commands.outputs import require_writable
    from cardan.io.load import NATIVE

    suffix = out.suffix.lower()
    if suffix not in NATIVE:
        what = f"suffix {out.suffix!r} is not that of a format that can be written"
        if suffix in UNWRITTEN:
            what = f"{UNWRITTEN[suffix]} is read but not written yet"
        raise FileError(f"{out}: {what}; write a .yaml file")
    model = read_model(file, root, changes)
    require_writable(out, force)
    cd.save(model, out, overwrite=force)
    report = _report(file, model, out)
    if as_json:
        print(json.dumps(report, indent=1))
    else:
        print(f"{file} -> {out}: {report['bodies']} bodies, {report['joints']} joints, {report['forces']} forces")
        print("read back: " + ("the same model, to the last bit" if report["same"] else "NOT the same model"))
        print("lost: " + ("; ".join(report["lost"]) or "nothing"))
        for note in report["notes"]:
            print(f"note: {note}")
    raise typer.Exit(0 if report["same"] else 1)


def _report(file: str, model: Model, out: Path) -> dict[str, Any]:
    """What was written, whether it reads back as the same model, and what of the source is not in it."""
    import cardan as cd

    again = cd.load(out)
    foreign = Path(file).suffix.lower() in (".urdf", ".xml")
    lost = list(model.notes) if foreign else ["comments and expressions, of which the values are written"]
    return {
        "from": file, "to": str(out), "bodies": model.nb, "joints": len(model.joints), "forces": len(model.forces),
        "same": again.key == model.key, "lost": lost, "notes": [] if foreign else list(model.notes),
    }  # fmt: skip
