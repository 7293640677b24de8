"""Arguments and options that commands share, their completion in a shell, and the model that they name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cardan.errors import FileError, InputError, nearest

if TYPE_CHECKING:
    from cardan.model.model import Model

SUFFIXES = (".urdf", ".xml", ".mjcf", ".yaml", ".yml")


def complete_file(incomplete: str) -> list[tuple[str, str]]:
    """Mechanisms of the catalogue, folders and model files that start with the text."""
    from cardan.mechanisms import CATALOGUE

    found = [(name, "mechanism of the catalogue") for name in CATALOGUE if name.startswith(incomplete)]
    folder, _, stem = incomplete.rpartition("/")
    place = Path(folder or ("/" if incomplete.startswith("/") else "."))
    try:
        near = sorted(path for path in place.iterdir() if path.name.startswith(stem))
    except OSError:
        return found
    before = f"{folder}/" if "/" in incomplete else ""
    for path in near:
        if path.name.startswith(".") and not stem:
            continue
        if path.is_dir():
            found.append((f"{before}{path.name}/", "folder"))
        elif path.suffix.lower() in SUFFIXES:
            found.append((f"{before}{path.name}", "model file"))
    return found


def complete_mechanism(incomplete: str) -> list[str]:
    """Mechanisms of the catalogue that start with the text."""
    from cardan.mechanisms import CATALOGUE

    return [name for name in CATALOGUE if name.startswith(incomplete)]


def complete_formulation(incomplete: str) -> list[tuple[str, str]]:
    """Formulations that start with the text."""
    from cardan.formulation.registry import find_formulation, formulation_names

    return [(name, find_formulation(name).about) for name in formulation_names() if name.startswith(incomplete)]


def complete_method(incomplete: str) -> list[tuple[str, str]]:
    """Methods that begin like this."""
    from cardan.integrate.integrators import INTEGRATORS

    return [(name, method.summary) for name, method in INTEGRATORS.items() if name.startswith(incomplete)]


def complete_root(incomplete: str) -> list[str]:
    """Values of `--root` that start with the text."""
    return [name for name in ("fixed", "free") if name.startswith(incomplete)]


File = Annotated[
    str,
    typer.Argument(
        metavar="FILE",
        show_default=False,
        help="A .urdf, .yaml or MJCF .xml file, or a mechanism of the catalogue.",
        autocompletion=complete_file,
    ),
]
Root = Annotated[
    str,
    typer.Option(metavar="WORD", help="Root of a robot on the ground: fixed or free.",
                 autocompletion=complete_root),
]  # fmt: skip
Changes = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", show_default=False,
                 help="Set a parameter of a .yaml file or of the catalogue; repeatable."),
]  # fmt: skip
Formulation = Annotated[
    str,
    typer.Option("--formulation", "-f", metavar="NAME", autocompletion=complete_formulation,
                 help="spatial, newton_euler, absolute, absolute_body, relative or points."),
]  # fmt: skip
Start = Annotated[
    list[str] | None,
    typer.Option(metavar="JOINT=VALUE", show_default=False, help="Coordinate of a joint: A=30deg; repeatable."),
]
Rate = Annotated[
    list[str] | None,
    typer.Option(metavar="JOINT=VALUE", show_default=False, help="Rate of a joint: A=2rad/s; repeatable."),
]
Json = Annotated[bool, typer.Option("--json", metavar="", help="Print JSON.")]
Force = Annotated[bool, typer.Option("--force", metavar="", help="Replace existing files.")]


def read_model(file: str, root: str = "fixed", changes: Sequence[str] | None = None) -> Model:
    """A model from a file or the catalogue."""
    import cardan as cd

    parameters = _parameters(changes or ())
    if _is_catalogue(file, root):
        return _from_catalogue(file, parameters)
    return cd.load(file, root="free" if root == "free" else "fixed", parameters=parameters)


def _from_catalogue(name: str, parameters: Mapping[str, float | str]) -> Model:
    """A mechanism of the catalogue, with values for parameters of its file."""
    from cardan.mechanisms import CATALOGUE

    if not parameters:
        return CATALOGUE[name]().build()
    from cardan.io.catalogue import mechanism_texts
    from cardan.io.yaml.read import read_yaml

    try:
        return read_yaml(mechanism_texts()[name], parameters=parameters).build()
    except FileError as error:
        raise FileError(str(error).replace("YAML text", name, 1)) from None


def _is_catalogue(file: str, root: str) -> bool:
    """Whether a name is a mechanism of the catalogue; the name of a file has a suffix."""
    from cardan.mechanisms import CATALOGUE

    if root not in ("fixed", "free"):
        raise InputError(f"--root must be fixed or free, got {root!r}")
    if file in CATALOGUE:
        if root == "free":
            raise InputError(f"--root free is for robots; {file!r} is a mechanism of the catalogue")
        return True
    if not Path(file).suffix and not Path(file).exists():
        raise FileError(f"{file!r} is neither a file nor a mechanism of the catalogue{nearest(file, CATALOGUE)}")
    return False


def _parameters(changes: Sequence[str]) -> dict[str, float | str]:
    """Values of parameters from `name=value`."""
    found: dict[str, float | str] = {}
    for text in changes:
        name, value = split_setting("--set", text)
        found[name] = value
    return found


def split_setting(option: str, text: str) -> tuple[str, str]:
    """The name and the value in `name=value`."""
    name, equals, value = text.partition("=")
    if not (name.strip() and equals and value.strip()):
        raise InputError(f"{option} takes NAME=VALUE, got {text!r}")
    return name.strip(), value.strip()
