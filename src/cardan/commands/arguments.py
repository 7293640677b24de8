"""Arguments and options that commands share, their completion, and the model and state that they give."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import numpy as np
import typer

from cardan.commands.output import say_error
from cardan.errors import FileError, InputError, nearest

if TYPE_CHECKING:
    from cardan.io.acting import FrictionWord, LimitsWord
    from cardan.model.model import Model

LIMITS, FRICTIONS = ("hard", "spring", "ignore"), ("stick", "smooth", "ignore")
SUFFIXES = (".urdf", ".xml", ".mjcf", ".yaml", ".yml")


def complete_file(incomplete: str) -> list[tuple[str, str]]:
    """Mechanisms of the catalogue, folders and model files that start with the text."""
    found = [(name, "mechanism of the catalogue") for name in complete_mechanism(incomplete)]
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


File = Annotated[
    str,
    typer.Argument(metavar="FILE", show_default=False, autocompletion=complete_file,
                   help="A .urdf, .yaml or MJCF .xml file, or a mechanism of the catalogue."),
]  # fmt: skip
Root = Annotated[
    str,
    typer.Option(metavar="WORD", help="Root of a robot on the ground: fixed or free.",
                 autocompletion=lambda incomplete: [word for word in ("fixed", "free") if word.startswith(incomplete)]),
]  # fmt: skip
Limits = Annotated[
    str,
    typer.Option(metavar="WORD", autocompletion=lambda incomplete: [w for w in LIMITS if w.startswith(incomplete)],
                 help="Limits of joints in the file: hard stops, spring or ignore."),
]  # fmt: skip
JointFriction = Annotated[
    str,
    typer.Option(metavar="WORD", autocompletion=lambda incomplete: [w for w in FRICTIONS if w.startswith(incomplete)],
                 help="Dry friction of joints in the file: stick, smooth or ignore."),
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


def read_model(
    file: str, root: str = "fixed", changes: Sequence[str] | None = None, *, tell: bool = True,
    limits: str = "ignore", friction: str = "ignore",
) -> Model:  # fmt: skip
    """A model from a file or the catalogue; its losses go to the standard error, unless the command shows them."""
    model = _read(file, root, changes, limits, friction)
    for loss in model.losses if tell else ():
        say_error(f"{file}: lost: {loss}")
    return model


def _read(file: str, root: str, changes: Sequence[str] | None, limits: str, friction: str) -> Model:
    import cardan as cd

    parameters: dict[str, float | str] = dict(split_setting("--set", text) for text in changes or ())
    if Path(file).suffix.lower() == ".nc":
        raise FileError(f"{file}: it is a saved run; cardan view and cardan plot open it")
    if not _is_catalogue(file, root):
        return cd.load(
            file, root="free" if root == "free" else "fixed", parameters=parameters, limits=cast("LimitsWord", limits),
            friction=cast("FrictionWord", friction),
        )  # fmt: skip
    if limits != "ignore" or friction != "ignore":
        raise InputError(f"--limits and --friction are for files; {file!r} is a mechanism of the catalogue")
    if not parameters:
        return cd.mechanisms.CATALOGUE[file]().build()
    from cardan.io.load import mechanism_texts
    from cardan.io.yaml.read import read_yaml

    try:
        return read_yaml(mechanism_texts()[file], parameters=parameters).build()
    except FileError as error:
        raise FileError(str(error).replace("YAML text", file, 1)) from None


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


def split_setting(option: str, text: str) -> tuple[str, str]:
    """The name and the value in `name=value`."""
    name, equals, value = text.partition("=")
    if not (name.strip() and equals and value.strip()):
        raise InputError(f"{option} takes NAME=VALUE, got {text!r}")
    return name.strip(), value.strip()


UNIT_ERROR = 1e-3  # largest deviation of the length of a quaternion from 1


def measured(option: str, text: str, unit: str) -> float:
    """A number in SI units; text without a unit is in SI, text with one must have the dimension of `unit`."""
    from cardan.io.yaml.units import MEASURE, PLAIN, UnitError, described, read_unit, to_si

    match = MEASURE.fullmatch(text.strip())
    if match is None:
        raise InputError(f"{option}: {text!r} is not a number with a unit, such as 0.5 or 30deg")
    wanted = PLAIN if unit == "1" else read_unit(unit).dimension
    try:
        given = read_unit(match[2]) if match[2] else None
        if given is not None and given.dimension != wanted:
            what = "a number without unit" if unit == "1" else f"a number in {unit}"
            raise InputError(f"{option}: expected {what}, but {text!r} is {described(given.dimension)}")
        return to_si(match[1], given)
    except UnitError as error:
        raise InputError(f"{option}: {text!r}: {error}") from None


def start_state(model: Model, start: Sequence[str], rate: Sequence[str]) -> tuple[np.ndarray | None, np.ndarray | None]:
    """The state with coordinates and rates of some joints given by name; the others are assembled.

    None, for the model's own start, if nothing is given.
    """
    if not start and not rate:
        return None, None
    from cardan.structure.assemble import assemble

    q, v = model.start(), np.zeros(model.nv)
    placed = [_place(model, "--start", text, q) for text in start]
    moving = [_place(model, "--rate", text, v) for text in rate]
    for option, joints in (("--start", placed), ("--rate", moving)):
        if twice := {joint for joint in joints if joints.count(joint) > 1}:
            raise InputError(f"{option} gives joint {min(twice)!r} twice")
    q, still = assemble(model, q, hold=placed)
    for joint in moving:
        still[model.v_slice(joint)] = v[model.v_slice(joint)]
    return assemble(model, q, still, hold=moving)


def by_joint(model: Model, option: str, texts: Sequence[str]) -> dict[str, np.ndarray]:
    """Numbers of joints by name, from `joint=value,value` given to --start, --rate or --drive."""
    found: dict[str, np.ndarray] = {}
    for text in texts:
        if option == "--drive":
            joint, values = split_setting(option, text)
            own = model.v_slice(joint)
            units = ["N" if unit == "m/s" else "N m" for unit in model.joint(joint).kind.v_units]
            parts = values.split(",")
            if len(parts) != own.stop - own.start:
                raise InputError(f"{option} {text}: joint {joint!r} takes {len(units)} numbers, got {len(parts)}")
            numbers = [measured(f"{option} {joint}", part, unit) for part, unit in zip(parts, units, strict=True)]
            into = np.array(numbers)
        else:
            whole = model.start() if option == "--start" else np.zeros(model.nv)
            joint = _place(model, option, text, whole)
            into = whole[model.q_slice(joint) if option == "--start" else model.v_slice(joint)]
        if joint in found:
            raise InputError(f"{option} gives joint {joint!r} twice")
        found[joint] = into if len(into) > 1 else into[0]
    return found


def _place(model: Model, option: str, text: str, into: np.ndarray) -> str:
    """Store the numbers of `joint=value,value` in the array and return the name of the joint."""
    joint, values = split_setting(option, text)
    at = model.q_slice(joint) if option == "--start" else model.v_slice(joint)
    kind = model.joint(joint).kind
    units = kind.q_units if option == "--start" else kind.v_units
    parts = values.split(",")
    if len(parts) != len(units):
        raise InputError(
            f"{option} {text}: joint {joint!r} ({kind.name}) takes {len(units)} "
            f"number{'s' if len(units) > 1 else ''} ({', '.join(units)}), got {len(parts)}"
        )
    into[at] = [measured(f"{option} {joint}", part, unit) for part, unit in zip(parts, units, strict=True)]
    if option == "--start" and kind.nq != kind.nv:
        quaternion = into[at.stop - 4 : at.stop]
        length = float(np.linalg.norm(quaternion))
        if abs(length - 1) > UNIT_ERROR:
            raise InputError(f"{option} {text}: a quaternion (w, x, y, z) has length 1, this one {length:.6g}")
        quaternion /= length
    return joint
