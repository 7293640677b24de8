"""Read a mesh file for display: its parts with their colours.

Nothing but the named file and files in its folder is read. What is too large, damaged or of an unknown kind raises
`MeshError` with one sentence.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from cardan.errors import FileError
from cardan.meshes.formats import Read, obj, stl
from cardan.meshes.surface import Surface

SIZE = 64 * 2**20
"""Largest mesh file that is read, bytes."""

Colour = tuple[float, float, float, float]


@dataclass(frozen=True, eq=False)
class Part:
    """A surface in one colour (r, g, b, a) from 0 to 1; None where the file has none."""

    surface: Surface
    colour: Colour | None = None


def _single(reader: Callable[[bytes], Read]) -> Callable[[bytes, Path], tuple[Part, ...]]:
    def read(data: bytes, path: Path) -> tuple[Part, ...]:
        vertices, faces = reader(data)
        if faces is None:
            raise ValueError("it has vertices and no faces")
        return (Part(Surface(vertices, faces)),)

    return read


READERS: dict[str, Callable[[bytes, Path], tuple[Part, ...]]] = {".stl": _single(stl), ".obj": _single(obj)}


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
    except OSError as error:
        raise FileError(f"mesh {str(path)!r}: it cannot be read: {error.strerror or error}") from None
    except (ValueError, IndexError, KeyError, TypeError, OverflowError) as error:
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
