"""`load`: from a model file of any known format to a model."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cardan.errors import FileError, InputError
from cardan.io.text import read_text
from cardan.io.urdf import Root, check_root, naming, read_urdf
from cardan.model.builder import SNAPPING, Mechanism
from cardan.model.model import Model

READERS: dict[str, Callable[..., Mechanism]] = {".urdf": read_urdf}


def load(
    path: str | os.PathLike[str],
    *,
    root: Root = "fixed",
    gravity: Any = (0.0, 0.0, -9.81),
    snapping: float = SNAPPING,
    mimic: bool = True,
) -> Model:
    """Load a model from a file; the suffix tells the format: `.urdf`.

    Args:
        path: the file.
        root: how the root link is joined to ground: "fixed", or "free" for a floating base.
        gravity: acceleration of free fall (3,), m/s^2, in ground axes.
        snapping: constants of joint placements (m, or direction cosines) within this of 0, 1 or -1 are taken
            as exactly that; 0 switches it off.
        mimic: whether joints that mimic another are coupled to it; otherwise that is data on the joint only.

    """
    if not isinstance(path, str | os.PathLike) or not isinstance(os.fspath(path), str):
        raise InputError(f"path must be the name of a model file, got {path!r}")
    check_root(root)
    file = Path(path)
    reader = READERS.get(file.suffix.lower())
    if reader is None:
        read_text(file)  # a file that cannot be read at all says so first
        known = ", ".join(READERS)
        fix = "expand it with xacro into a .urdf first" if file.suffix == ".xacro" else "rename or convert the file"
        raise FileError(f"{file}: suffix {file.suffix!r} is not a known model format; known: {known}; {fix}")
    mechanism = reader(file, root=root, gravity=gravity, mimic=mimic)
    with naming(str(file)):
        return mechanism.build(snapping=snapping)
