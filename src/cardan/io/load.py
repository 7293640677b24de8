"""`load` and `save`: a model from a file of any known format, and back; and the catalogue of mechanisms as files."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from cardan.errors import FileError, InputError, NoOthers, no_such_argument
from cardan.io.acting import Acting, FrictionWord, LimitsWord
from cardan.io.mesh_path import with_relative_meshes
from cardan.io.mjcf.read import read_mjcf
from cardan.io.policy import Policy, Word
from cardan.io.text_file import read_text, write_text
from cardan.io.urdf import Root, check_root, read_urdf, write_urdf
from cardan.io.urdf_joint import naming
from cardan.io.xml_element import top_tag
from cardan.io.yaml.read import Description, read_yaml
from cardan.model.builder import Mechanism
from cardan.model.model import Model

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

NATIVE = (".yaml", ".yml")
DOWN = (0.0, 0.0, -9.81)
TAKES = {
    ".urdf": ("root", "mimic", "folder"),
    ".xml": ("folder",),
    ".yaml": ("parameters", "folder"),
    ".yml": ("parameters", "folder"),
}
"""Arguments that only some formats take."""


def load(
    path: str | os.PathLike[str], *, root: Root = "fixed", gravity: ArrayLike | None = None,
    snapping: float | None = None, mimic: bool = True, parameters: Mapping[str, float | str] | None = None,
    folder: str | os.PathLike[str] | None = None, strict: bool = False, policy: Word = "strict",
    limits: LimitsWord = "ignore", friction: FrictionWord = "ignore", damping: bool | None = None,
    actuators: bool = False, **others: Unpack[NoOthers],
) -> Model:  # fmt: skip
    """Load a model from a file: `.yaml`, the format of Cardan, `.urdf`, or `.xml`, MJCF or URDF by its top element.

    Unsupported features of a file that concern dynamics are listed in `model.losses`, and in its report.

    Args:
        path: the file.
        root: of a URDF, how the root link is joined to ground: "fixed", or "free" for a floating base.
        gravity: acceleration of free fall (3,), m/s^2, in ground axes; by default the file's, or (0, 0, -9.81).
        snapping: constants of joint placements (m, or direction cosines) within this of 0, 1 or -1 are rounded to
            that; 0 switches it off; by default the file's, or 1e-12.
        mimic: of a URDF, whether joints that mimic another are coupled to it; otherwise that is data on the joint.
        parameters: of a `.yaml` file, values that replace those of its parameters: SI numbers, or text with a unit.
        folder: of an MJCF file, the folder in which its meshes and files that it includes may be; its own by default.
            Of others, the folder of its meshes, where they are not in packages; the one above its own by default.
        strict: whether a loss is an error.
        policy: what to do where a file breaks a rule: "strict" rejects the file, "warn" keeps the value where it can be
            computed with, "repair" corrects slight violations. `model.notes` lists each.
        limits: "hard" makes the limits of joints stops without restitution, "spring" compliant stops (the largest
            effort of the joint, or 100 N m or N, presses them in by 0.01 rad or 1 mm); "ignore" leaves them as data.
        friction: "stick" makes the dry friction of joints act and stick, "smooth" smooths it over a speed of
            0.001 rad/s or m/s (`Mechanism.friction`); "ignore" leaves it as data.
        damping: whether the damping of joints acts; by default that of URDF and MJCF does, and data of a `.yaml` file,
            which has elements of its own, does not.
        actuators: whether actuators drive, by free numbers such as "motor.command"; otherwise they are data.
        **others: none; an error says what an argument is called here.

    """
    if others:
        raise no_such_argument("load", others)
    acting = _acting(path, limits, friction, damping, actuators)
    found, bodies = _read(path, root, gravity, mimic, parameters, folder, policy)
    with naming(str(Path(path)), bodies):
        acting.apply(found.mechanism if isinstance(found, Description) else found)
    if isinstance(found, Description):
        model = found.build(snapping)
    else:
        with naming(str(Path(path)), bodies):
            model = found.build(snapping=snapping)
    if actuators and model.actuators:
        named = {*model.parameters.names}
        commands = [f"{actuator.name}.command" for actuator in model.actuators if not actuator.dynamics]
        model = model.free(*(command for command in commands if command not in named))
    if strict and model.losses:
        raise FileError(f"{path}: strict, and this would be lost: {'; '.join(model.losses)}")
    return model


def load_mechanism(
    path: str | os.PathLike[str], *, root: Root = "fixed", gravity: ArrayLike | None = None, mimic: bool = True,
    parameters: Mapping[str, float | str] | None = None, folder: str | os.PathLike[str] | None = None,
    policy: Word = "strict", limits: LimitsWord = "ignore", friction: FrictionWord = "ignore",
    damping: bool | None = None, actuators: bool = False,
) -> Mechanism:  # fmt: skip
    """Load a file as a `Mechanism`, to continue building; the arguments are those of `load`."""
    acting = _acting(path, limits, friction, damping, actuators)
    found, bodies = _read(path, root, gravity, mimic, parameters, folder, policy)
    mechanism = found.mechanism if isinstance(found, Description) else found
    with naming(str(Path(path)), bodies):
        acting.apply(mechanism)
    return mechanism


def _acting(path: Any, limits: LimitsWord, friction: FrictionWord, damping: bool | None, actuators: bool) -> Acting:
    """What acts; damping by default where files have no elements of their own for it."""
    native = _path(path).suffix.lower() in NATIVE
    return Acting(limits, friction, not native if damping is None else damping, actuators)


def save(
    mechanism: Mechanism | Model, path: str | os.PathLike[str], *, overwrite: bool = False, strict: bool = False
) -> list[str]:
    """Save a mechanism or a model; the file is written completely or not at all. Returns what is lost.

    The suffix decides the format. `.yaml` holds everything; a function (of a drive, motion, force or constraint) is
    written as the expressions of its graph. `.urdf` and `.xml` (MJCF) hold what these formats can express; each loss is
    returned as a sentence, and listed in a comment at the head of the file.

    Args:
        mechanism: a `Mechanism`, for a `.yaml` file finished or not, or a `Model`.
        path: the file; its suffix is `.yaml`, `.yml`, `.urdf` or `.xml`.
        overwrite: whether an existing file is replaced.
        strict: whether a loss is an error.

    """
    if not isinstance(mechanism, Mechanism | Model):
        raise InputError(f"save: give a Mechanism or a Model, got {type(mechanism).__name__}")
    file = _path(path)
    text, losses = _written(file, mechanism)
    if strict and losses:
        more = f"; and {len(losses) - 1} more" if len(losses) > 1 else ""
        raise FileError(f"{file}: the format cannot express all of {mechanism.name!r}: {losses[0]}{more}")
    write_text(file, text, overwrite)
    return losses


def _written(file: Path, mechanism: Mechanism | Model) -> tuple[str, list[str]]:
    """The text of a file, by its suffix, and the losses."""
    suffix = file.suffix.lower()
    mechanism = with_relative_meshes(mechanism, file.parent)
    if suffix in NATIVE:
        from cardan.io.yaml.write import write_yaml

        return write_yaml(mechanism), []
    if suffix not in (".urdf", ".xml", ".mjcf"):
        known = ".yaml, .urdf or .xml"
        raise FileError(f"{file}: suffix {file.suffix!r} is not that of a file that can be written; use {known}")
    from cardan.io.mjcf.write import write_mjcf

    write = write_urdf if suffix == ".urdf" else write_mjcf
    return write(mechanism.build() if isinstance(mechanism, Mechanism) else mechanism)


def _read(path: Any, root: Root, gravity: ArrayLike | None, mimic: bool, parameters: Any, folder: Any, policy: Word,
          ) -> tuple[Mechanism | Description, str]:  # fmt: skip
    """The contents of a file, by its suffix, and what it calls bodies; arguments for other formats are rejected."""
    file = _path(path)
    check_root(root)
    Policy(policy)  # reject a wrong word before the file is read
    if parameters is not None and not isinstance(parameters, Mapping):
        raise InputError(f"load: parameters must be a dict of names and values, got {parameters!r}")
    suffix = file.suffix.lower()
    if suffix in (".xml", ".mjcf"):
        suffix = ".xml" if top_tag(read_text(file), str(file)) != "robot" else ".urdf"
    foreign = {"root": root != "fixed", "mimic": not mimic, "parameters": parameters, "folder": folder is not None}
    for name, given in foreign.items():
        if given and suffix in TAKES and name not in TAKES[suffix]:
            whose = ", ".join(sorted(kind for kind, names in TAKES.items() if name in names))
            raise InputError(f"load: {name} is for {whose} files; {str(file)!r} is not one of them")
    inside = None if folder is None else _path(folder)
    if suffix in NATIVE:
        return read_yaml(file, parameters=parameters, gravity=gravity, policy=policy, folder=inside), "body"
    if suffix == ".xml":
        return read_mjcf(file, gravity=gravity, folder=inside, policy=policy), "body"
    if suffix != ".urdf":
        read_text(file)  # a file that cannot be read at all is reported first
        known = ", ".join((".urdf", ".xml", *NATIVE))
        fix = "expand it with xacro into a .urdf first" if suffix == ".xacro" else "rename or convert the file"
        raise FileError(f"{file}: suffix {file.suffix!r} is not a known model format; known: {known}; {fix}")
    down = DOWN if gravity is None else gravity
    return read_urdf(file, root=root, gravity=down, mimic=mimic, policy=policy, folder=inside), "link"


def _path(path: Any) -> Path:
    if not isinstance(path, str | os.PathLike) or not isinstance(os.fspath(path), str):
        raise InputError(f"path must be the name of a model file, got {path!r}")
    return Path(path)


def mechanism_texts() -> dict[str, str]:
    """The text of each file of the catalogue, by the name of its mechanism."""
    folder = files("cardan") / "data" / "mechanisms"
    found = [file for file in folder.iterdir() if file.name.endswith(".yaml")]
    return {file.name.removesuffix(".yaml"): file.read_text("utf-8") for file in sorted(found, key=lambda f: f.name)}


def write_mechanisms(
    folder: str | os.PathLike[str], names: Iterable[str] | None = None, *, overwrite: bool = False
) -> list[Path]:
    """Write files of the catalogue, by default all, into a folder, which is created if need be; return their paths.

    Nothing is written if one of the files already exists, unless `overwrite` is set.
    """
    place = Path(folder)
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(f"{place}: the folder cannot be created, {error.strerror or error}") from None
    found = mechanism_texts()
    texts = {place / f"{name}.yaml": found[name] for name in (found if names is None else names)}
    taken = [path for path in texts if path.exists()]
    if taken and not overwrite:
        raise FileError(f"{taken[0]}: there is such a file already; pass overwrite=True to replace it")
    for path, text in texts.items():
        write_text(path, text, overwrite)
    return list(texts)
