"""`cardan convert`: convert a model from one format to another, and report what is lost."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cardan.commands.arguments import Changes, File, Force, Json, Root, read_model
from cardan.model.values import bodies_and_joints, counted

if TYPE_CHECKING:
    from cardan.model.model import Model


def convert(
    file: File,
    out: Annotated[
        Path,
        typer.Argument(
            metavar="OUT", show_default=False, help="File to write: .yaml keeps all, .urdf and .xml what they can."
        ),
    ],
    strict: Annotated[bool, typer.Option("--strict", metavar="", help="Fail if anything would be lost.")] = False,
    force: Force = False,
    changes: Changes = None,
    root: Root = "fixed",
    as_json: Json = False,
) -> None:
    """Convert a model from one format to another, and report what is lost.

    Example: [bold]cardan convert robot.urdf robot.yaml[/bold]
    """
    import cardan as cd
    from cardan.commands.output import require_writable

    model = read_model(file, root, changes, tell=False)
    if out.suffix:
        require_writable(out, force)
    lost = cd.save(model, out, overwrite=force, strict=strict)
    report = _report(file, model, out, lost)
    if as_json:
        print(json.dumps(report, indent=1))
    else:
        print(
            f"{file} -> {out}: {bodies_and_joints(report['bodies'], report['joints'])}, "
            f"{counted(report['forces'], 'force')}"
        )
        for what in report["lost"] or ["nothing"]:
            print(f"lost: {what}")
        if report["same"] is not None:
            print("read back: " + ("the same model, to the last bit" if report["same"] else "NOT the same model"))
    raise typer.Exit(1 if report["same"] is False else 0)


def _report(file: str, model: Model, out: Path, lost: list[str]) -> dict[str, Any]:
    """What was written, what was lost, and whether it reads back as the same model."""
    import cardan as cd
    from cardan.io.load import NATIVE

    suffix = Path(file).suffix.lower()
    gone = [*model.losses, *(model.notes if suffix and suffix not in NATIVE else ())]
    if suffix in NATIVE:
        gone.append("comments and expressions of the source; their values are written")
    return {
        "from": file, "to": str(out), "bodies": model.nb, "joints": len(model.joints), "forces": len(model.forces),
        "lost": gone + list(lost), "same": cd.load(out).key == model.key if out.suffix.lower() in NATIVE else None,
    }  # fmt: skip
