"""Where the mesh files are that a model file names.

A name is a path relative to the model file, an address that begins with `file:`, or `package://NAME/path` as ROS writes
it (`model://` in Gazebo). A package is a folder of that name: in `ROS_PACKAGE_PATH` or the share folders of
`AMENT_PREFIX_PATH`, among the folders that the model file is in, or beside one of them. Only files inside these
packages, or in the folder of the model file and those beside it, are read; nothing is fetched from a network. Whether a
file is there is found out when somebody looks at it.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from cardan.model.builder import Mechanism
from cardan.model.model import Model
from cardan.model.shape import MeshFile, Shape

NEAR = 5
"""How many folders above the model file packages are looked for in."""


class MeshFolders:
    """The folders of one model file; `file` is None for text without a file, `folder` widens what may be read."""

    def __init__(self, file: Path | None, folder: Path | None = None) -> None:
        self.base = None if file is None else Path(os.path.abspath(file)).parent
        inside = folder if folder is not None else None if self.base is None else self.base.parent
        self.inside = None if inside is None else Path(os.path.realpath(inside))
        self.packages: dict[str, Path | None] = {}

    def mesh(self, name: str, scale: Any, **given: Any) -> MeshFile:
        """The shape for a mesh file of this name; one that may not be read says why when somebody looks at it."""
        try:
            return MeshFile(self.find(name), scale, **given)
        except ValueError as error:
            return MeshFile(name, scale, str(error), **given)

    def find(self, name: str) -> Path:
        """The path that a name stands for; ValueError with a sentence if it may not be read."""
        kind, mark, rest = name.partition("://")
        if "\0" in name or "\\" in name.removeprefix(".\\"):
            raise ValueError(f"{name!r} is not a path of a file")
        if mark and kind in ("package", "model"):
            return self._in_package(name, unquote(rest).lstrip("/"))
        if mark and kind != "file":
            raise ValueError(f"{name!r} is not on this machine, and nothing is fetched; save it beside the model")
        path = Path(unquote(rest) if mark else name)
        if self.base is None and not path.is_absolute():
            raise ValueError(f"{name!r} is relative to a model file, and there is none; load the model from its file")
        found = Path(os.path.realpath(path if self.base is None else self.base / path))
        if self.inside is None or self.inside not in found.parents:
            raise ValueError(
                f"{name!r} is outside the folder {str(self.inside)!r}, and only meshes inside that are read; pass "
                "folder=... to load if you trust the file"
            )
        return found

    def _in_package(self, name: str, rest: str) -> Path:
        package, _, path = rest.partition("/")
        if package in ("", ".", "..") or ".." in Path(path).parts or Path(path).is_absolute():
            raise ValueError(f"{name!r} is not a file of a package, package://NAME/path")
        if package not in self.packages:
            self.packages[package] = self._package(package)
        root = self.packages[package]
        if root is None:
            raise ValueError(
                f"package {package!r} of {name!r} is not found; name the folder that contains it in ROS_PACKAGE_PATH"
            )
        return root / path

    def _package(self, package: str) -> Path | None:
        """The folder of a package."""
        told = os.environ.get("ROS_PACKAGE_PATH", "").split(os.pathsep)
        told += [str(Path(p, "share")) for p in os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep) if p]
        places = [Path(p) for p in told if p]
        if self.base is not None:
            above = [self.base, *self.base.parents]
            places += [folder for folder in above[: NEAR + 1] if folder != folder.parent]
        for place in places:
            for found in (place, place / package):
                if found.name == package and found.is_dir():
                    return found
        return None


def with_relative_meshes(thing: Mechanism | Model, folder: Path) -> Mechanism | Model:
    """A model with the paths of mesh files relative to a folder, where they are in it or beside it."""
    base = Path(os.path.realpath(folder))

    def near(shape: Shape) -> Shape:
        if not isinstance(shape, MeshFile) or shape.fault:
            return shape
        path = Path(os.path.realpath(shape.path))
        return replace(shape, path=os.path.relpath(path, base)) if base.parent in path.parents else shape

    return thing.with_shapes(lambda shapes: tuple(near(shape) for shape in shapes))


def mesh_name(shape: MeshFile) -> str:
    """What a file calls the file of a mesh."""
    return shape.path.as_posix() if isinstance(shape.path, Path) else str(shape.path)
