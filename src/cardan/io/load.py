"""`load` and `save`: from a model file of any known format to a model, and back."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from cardan.errors import FileError, InputError
from cardan.io.native import Description, read_native
from cardan.io.text import read_text, write_text
from cardan.io.urdf import Root, check_root, naming, read_urdf
from cardan.model.builder import Mechanism
from cardan.model.model import Model

NATIVE = (".yaml", ".yml")
DOWN = (0.0, 0.0, -9.81)


def load(
    path: str | os.PathLike[str],
    *,
    root: Root = "fixed",
    gravity: Any = None,
    snapping: float | None = None,
    mimic: bool = True,
    parameters: Mapping[str, float | str] | None = None,
) -> Model:
    """Load a model from a file; the suffix tells the format: `.yaml`, the format of Cardan, or `.urdf`.

    Args:
        path: the file.
        root: of a URDF, how the root link is joined to ground: "fixed", or "free" for a floating base.
        gravity: acceleration of free fall (3,), m/s^2, in ground axes; what the file says, or (0, 0, -9.81).
        snapping: constants of joint placements (m, or direction cosines) within this of 0, 1 or -1 are taken
            as exactly that; 0 switches it off; what the file says, or 1e-12.
        mimic: of a URDF, whether joints that mimic another are coupled to it; otherwise that is data on the joint.
        parameters: of a `.yaml` file, values that replace those of its parameters: SI numbers, or text with a unit.

    """
    reader = _reader(path, root, gravity, mimic, parameters)
    found = reader()
    if isinstance(found, Description):
        return found.build(snapping)
    with naming(str(Path(path))):
        return found.build(snapping=snapping)


def load_mechanism(
    path: str | os.PathLike[str],
    *,
    root: Root = "fixed",
    gravity: Any = None,
    mimic: bool = True,
    parameters: Mapping[str, float | str] | None = None,
) -> Mechanism:
    """Load a file as `load` does, but as a `Mechanism` to go on building with; the arguments are those of `load`."""
    found = _reader(path, root, gravity, mimic, parameters)()
    return found.mechanism if isinstance(found, Description) else found


def save(
    mechanism: Mechanism | Model, path: str | os.PathLike[str], *, overwrite: bool = False, strict: bool = False
) -> list[str]:
    """Save a mechanism or a model; the file is written whole or not at all. Returns what the format could not say.

    The suffix tells the format. `.yaml` says everything: a function of yours (a drive, a motion, a user's force) is
    written as the expression that its graph stands for. `.urdf` says what it can; the rest is returned, a sentence
    each, and stands at the head of the file.

    Args:
        mechanism: a `Mechanism`, for a `.yaml` file finished or not, or a `Model`.
        path: the file; its suffix is `.yaml`, `.yml` or `.urdf`.
        overwrite: whether an existing file is replaced.
        strict: whether a file that cannot say everything is refused instead.

    """
    if not isinstance(mechanism, Mechanism | Model):
        raise InputError(f"save: a Mechanism or a Model is saved, got {type(mechanism).__name__}")
    file = _path(path)
    write = _writer(file)
    text, losses = write(mechanism)
    if strict and losses:
        more = f"; and {len(losses) - 1} more" if len(losses) > 1 else ""
        raise FileError(f"{file}: the format cannot say all of {mechanism.name!r}: {losses[0]}{more}")
    write_text(file, text, overwrite)
    return losses


def _writer(file: Path) -> Callable[[Mechanism | Model], tuple[str, list[str]]]:
    """How to write a file, by its suffix: its text, and what that does not say."""
    suffix = file.suffix.lower()
    if suffix in NATIVE:
        from cardan.io.write import write_native

        return lambda mechanism: (write_native(mechanism), [])
    if suffix == ".urdf":
        from cardan.io.urdf_write import write_urdf

        return lambda mechanism: write_urdf(mechanism.build() if isinstance(mechanism, Mechanism) else mechanism)
    raise FileError(f"{file}: suffix {file.suffix!r} is not that of a file that can be written; use .yaml or .urdf")


def _reader(
    path: Any, root: Root, gravity: Any, mimic: bool, parameters: Mapping[str, float | str] | None
) -> Callable[[], Mechanism | Description]:
    """How to read a file, by its suffix; arguments that are for another format are refused."""
    file = _path(path)
    check_root(root)
    suffix = file.suffix.lower()
    if suffix in NATIVE:
        for name, foreign in (("root", root != "fixed"), ("mimic", not mimic)):
            if foreign:
                raise InputError(f"load: {name} is for URDF files; a {suffix} file says such things itself")
        return lambda: read_native(file, parameters=parameters, gravity=gravity)
    if parameters:
        raise InputError(f"load: parameters are for .yaml files, and {str(file)!r} is not one")
    if suffix != ".urdf":
        read_text(file)  # a file that cannot be read at all says so first
        known = ", ".join((".urdf", *NATIVE))
        fix = "expand it with xacro into a .urdf first" if suffix == ".xacro" else "rename or convert the file"
        raise FileError(f"{file}: suffix {file.suffix!r} is not a known model format; known: {known}; {fix}")
    return lambda: read_urdf(file, root=root, gravity=DOWN if gravity is None else gravity, mimic=mimic)


def _path(path: Any) -> Path:
    if not isinstance(path, str | os.PathLike) or not isinstance(os.fspath(path), str):
        raise InputError(f"path must be the name of a model file, got {path!r}")
    return Path(path)
