"""Read a mesh file for display: its parts with their colours.

Nothing but the named file and files in its folder is read. What is too large, damaged or of an unknown kind raises
`FileError` with one sentence.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from cardan.errors import FileError
from cardan.meshes.collada import collada
from cardan.meshes.formats import Read, coloured_obj, msh, stl
from cardan.meshes.gltf import glb, gltf
from cardan.meshes.measure import convex_hull
from cardan.meshes.part import Part
from cardan.meshes.simplify import welded
from cardan.meshes.surface import Surface

SIZE = 48 * 2**20
"""Largest mesh file that is read, bytes."""


def _plain(reader: Callable[[bytes], Read]) -> Callable[[bytes, Path], tuple[Part, ...]]:
    """A reader of one surface without a colour."""

    def read(data: bytes, path: Path) -> tuple[Part, ...]:
        vertices, faces = reader(data)
        if faces is None:
            faces = convex_hull(vertices)
        return (Part(welded(Surface(vertices, faces))),)

    return read


READERS: dict[str, Callable[[bytes, Path], tuple[Part, ...]]] = {
    ".stl": _plain(stl),
    ".obj": coloured_obj,
    ".dae": collada,
    ".glb": glb,
    ".gltf": gltf,
    ".msh": _plain(msh),
}


def read_mesh(path: Path) -> tuple[Part, ...]:
    """Parts of a mesh file in the file's own units and axes."""
    reader = READERS.get(path.suffix.lower())
    if reader is None:
        raise FileError(f"mesh {str(path)!r}: files of this kind are not read; known: {', '.join(READERS)}")
    try:
        if not path.is_file():
            raise FileError(f"mesh {str(path)!r}: there is no such file")
        if path.stat().st_size > SIZE:
            raise FileError(f"mesh {str(path)!r}: it is larger than {SIZE // 2**20} MiB; simplify it")
        with path.open("rb") as file, np.errstate(all="ignore"):
            parts = reader(file.read(SIZE), path)
    except FileError:
        raise
    except OSError as error:
        raise FileError(f"mesh {str(path)!r}: it cannot be read: {error.strerror or error}") from None
    except (ValueError, LookupError, TypeError, AttributeError, OverflowError) as error:
        raise FileError(f"mesh {str(path)!r}: the file is damaged: {error}") from None
    for part in parts:
        vertices, faces = part.surface.vertices, part.surface.faces
        if not np.isfinite(vertices).all() or np.abs(vertices).max(initial=0) > 1e60:
            raise FileError(f"mesh {str(path)!r}: the file is damaged: a vertex is not finite")
        if len(faces) and not 0 <= faces.min() <= faces.max() < len(vertices):
            raise FileError(f"mesh {str(path)!r}: a face names a vertex that is not there; there are {len(vertices)}")
    if not any(len(part.surface.faces) for part in parts):
        raise FileError(f"mesh {str(path)!r}: it has no triangles")
    return parts
