"""Mesh files as vertices and triangles: STL, OBJ and MuJoCo's MSH.

A reader takes the bytes of a file and returns vertices (n, 3), and triangles (m, 3) or None; it raises ValueError where
the file is damaged. Numbers that are not finite are for the caller to reject.
"""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np

from cardan.meshes.part import Colour, Part
from cardan.meshes.surface import Surface

TRIANGLES = 200_000
"""Most triangles of a mesh; MuJoCo's limit for STL files. Three times as many vertices are read."""
DISPLAYED = 1_000_000
"""Most triangles of a mesh that is only shown."""
CUTS = 1_200_000
"""Most corners looked at to cut polygons of more than four corners into triangles, which then takes about a second."""
LIBRARIES, MATERIALS = 16, 2**20
"""Most material files of an OBJ file, and bytes of each."""
LINE = 110_000
"""Most characters of a line; a polygon of 10,000 corners has about as many."""

Read = tuple[np.ndarray, np.ndarray | None]


def binary_stl(data: bytes) -> tuple[np.ndarray, np.ndarray]:
    """Binary STL: 80 bytes, a count, and 50 bytes for each triangle."""
    count = int.from_bytes(data[80:84], "little")
    if len(data) != 84 + 50 * count or not count:
        raise ValueError(f"a binary STL file of {count} triangles has {84 + 50 * count} bytes, not {len(data)}")
    rows = np.frombuffer(data, dtype=np.dtype([("numbers", "<f4", 12), ("extra", "<u2")]), offset=84)
    return rows["numbers"][:, 3:].astype(float).reshape(-1, 3), np.arange(3 * count).reshape(-1, 3)


def ascii_stl(data: bytes) -> tuple[np.ndarray, np.ndarray]:
    """ASCII STL: three lines `vertex x y z` for each triangle."""
    count = data.count(b"vertex")
    if not 0 < count <= 3 * DISPLAYED or count % 3:
        raise ValueError(f"an ASCII STL file has three vertices for each triangle, this has {count} vertices")
    lines: list[bytes] = re.findall(rb"vertex[ \t]+([^\r\n]{0,200})", data)
    points = read_numbers(b" ".join(lines).decode("ascii", "replace"))
    if len(points) != 3 * count:
        raise ValueError(f"its {count} vertices have {len(points)} numbers")
    return points.reshape(-1, 3), np.arange(count).reshape(-1, 3)


def read_numbers(text: str) -> np.ndarray:
    """Numbers separated by blanks; no object is made for each, as a file may have many."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            return np.fromstring(text, dtype=float, sep=" ")
        except DeprecationWarning:
            raise ValueError("something stands where a number should") from None


def stl(data: bytes) -> tuple[np.ndarray, np.ndarray]:
    """Binary or ASCII STL; a binary file may begin with "solid" too, and has the length that its count demands."""
    binary = len(data) == 84 + 50 * int.from_bytes(data[80:84], "little")
    return binary_stl(data) if binary or not data.lstrip().startswith(b"solid") else ascii_stl(data)


def msh(data: bytes) -> Read:
    """MuJoCo's own format: four counts, then vertices, normals, texture coordinates, faces."""
    counts = np.frombuffer(data[:16], dtype="<i4")
    nv, nn, nt, nf = map(int, counts)
    expected = 16 + 12 * (nv + nn + nf) + 8 * nt
    if min(nv, nn, nt, nf) < 0 or len(data) != expected:
        raise ValueError(f"a MSH file of these counts has {expected} bytes, not {len(data)}")
    points = np.frombuffer(data, "<f4", 3 * nv, 16).astype(float).reshape(-1, 3)
    if not nf:
        return points, None
    faces = np.frombuffer(data, "<i4", 3 * nf, 16 + 12 * (nv + nn) + 8 * nt).astype(np.int64)
    return points, faces.reshape(-1, 3)


class ObjLines:
    """The lines of a Wavefront file that matter: `v x y z`, `f a b c ...`, `usemtl name`, `mtllib file`."""

    def __init__(self, data: bytes, most: int = TRIANGLES) -> None:
        """Read them; at most so many faces and vertices."""
        self.points: list[list[float]] = []
        self.faces: list[list[int]] = []
        self.materials: list[str] = []
        """The material of each face."""
        self.libraries: list[str] = []
        material, left = "", 8 * most
        if data.count(b"\n") + data.count(b"\r") > 10 * most:
            raise ValueError(f"it has more than {10 * most} lines")
        for line in data.splitlines():
            words = line[:LINE].decode("utf-8", "replace").split()
            if not words:
                continue
            if len(line) > LINE or max(len(self.points), len(self.faces)) > most:
                raise ValueError(f"a line has {len(line)} characters, or there are more than {most} faces or vertices")
            if words[0] == "v":
                self.points.append([float(word) for word in words[1:4]])
            elif words[0] == "f":
                left -= len(words)
                if left < 0:
                    raise ValueError(f"its faces have more than {8 * most} corners")
                corners = [int(word.split("/")[0]) for word in words[1:]]
                self.faces.append([c - 1 if c > 0 else len(self.points) + c for c in corners])
                self.materials.append(material)
            elif words[0] == "usemtl":
                material = " ".join(words[1:])
            elif words[0] == "mtllib":
                self.libraries.append(" ".join(words[1:]))
        if any(len(point) != 3 for point in self.points):
            raise ValueError("a vertex has fewer than 3 numbers")
        if any(not 0 <= corner < len(self.points) for corners in self.faces for corner in corners):
            raise ValueError(f"a face names a vertex that is not there; there are {len(self.points)}")
        self.vertices = single(np.array(self.points, dtype=float)).reshape(-1, 3)


def obj(data: bytes) -> Read:
    """Wavefront, with polygons cut into triangles as MuJoCo cuts them."""
    lines = ObjLines(data)
    return lines.vertices, _triangles(lines.vertices, lines.faces) if lines.faces else None


def coloured_obj(data: bytes, path: Path) -> tuple[Part, ...]:
    """Wavefront, a part for each material, with colours `Kd` from the material files beside it."""
    lines = ObjLines(data, DISPLAYED // 2)
    colours: dict[str, Colour] = {}
    for name in lines.libraries[:LIBRARIES]:
        with suppress(ValueError, OSError):  # a material file that is missing costs the colours only
            colours |= _mtl(beside(path, name, MATERIALS))
    groups: dict[str, list[list[int]]] = {}
    for material, corners in zip(lines.materials, lines.faces, strict=True):
        groups.setdefault(material, []).append(corners)
    parts = []
    for material, polygons in groups.items():
        counts = np.array([len(corners) for corners in polygons])
        faces = fans(np.array([c for corners in polygons for c in corners], dtype=np.int64), counts)
        parts.append(Part(used_part(lines.vertices, faces), colours.get(material)))
    return tuple(parts)


def _mtl(data: bytes) -> dict[str, Colour]:
    """Colours of a material file by name."""
    found: dict[str, Colour] = {}
    name = ""
    for line in data.splitlines():
        words = line[:LINE].decode("utf-8", "replace").split()
        if words[:1] == ["newmtl"]:
            name = " ".join(words[1:])
        elif words[:1] == ["Kd"] and len(words) >= 4:
            r, g, b = np.clip(np.nan_to_num([float(word) for word in words[1:4]]), 0.0, 1.0)
            found[name] = (float(r), float(g), float(b), 1.0)
    return found


def used_part(vertices: np.ndarray, faces: np.ndarray) -> Surface:
    """Triangles with only the vertices that they use; ValueError where they name one that is not there."""
    if len(faces) and not 0 <= faces.min() <= faces.max() < len(vertices):
        raise ValueError(f"a face names a vertex that is not there; there are {len(vertices)}")
    used, at = np.unique(faces, return_inverse=True)
    return Surface(vertices[used], at.reshape(-1, 3))


def fans(corners: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Polygons, listed one after the other, cut into triangles (m, 3) from their first corner."""
    if (counts < 0).any() or counts.sum() != len(corners):
        raise ValueError(f"its polygons have {int(counts.sum())} corners, and {len(corners)} are listed")
    starts = np.cumsum(counts) - counts
    triangles = np.maximum(counts - 2, 0)
    first = np.repeat(starts, triangles)
    k = np.arange(triangles.sum()) - np.repeat(np.cumsum(triangles) - triangles, triangles)
    faces: np.ndarray = np.column_stack([corners[first], corners[first + k + 1], corners[first + k + 2]])
    return faces


def beside(path: Path, name: str, most: int) -> bytes:
    """The bytes of a file in the folder of another, or in a folder inside that; at most so many."""
    folder = Path(os.path.realpath(path.parent))
    found = Path(os.path.realpath(folder / name)) if "\0" not in name and "\\" not in name else folder
    if folder not in found.parents:
        raise ValueError(f"it names the file {name[:60]!r}, which is not in its folder")
    if not found.is_file() or found.stat().st_size > most:
        raise ValueError(f"it names the file {name[:60]!r}, which is not there, or too large")
    with found.open("rb") as file:
        return file.read(most)


def _triangles(points: np.ndarray, faces: list[list[int]]) -> np.ndarray:
    """Polygons cut into triangles (n, 3): a quadrangle along its shorter diagonal, larger ones ear by ear.

    Where corners do not lie in a plane the cuts shape the solid.
    """
    single = points.astype(np.float32)
    found = [np.array([corners for corners in faces if len(corners) == 3], dtype=np.int64).reshape(-1, 3)]
    quads = np.array([corners for corners in faces if len(corners) == 4], dtype=np.int64).reshape(-1, 4)
    with np.errstate(over="ignore", invalid="ignore"):
        first, second = (((single[quads[:, k + 2]] - single[quads[:, k]]) ** 2).sum(axis=1) for k in (0, 1))
        along = (first < second)[:, None]
        found.append(np.where(along, quads[:, [0, 1, 2]], quads[:, [0, 1, 3]]))
        found.append(np.where(along, quads[:, [0, 2, 3]], quads[:, [1, 2, 3]]))
        left = CUTS
        for corners in (corners for corners in faces if len(corners) > 4):
            ears, left = _ears(single, corners, left)
            found.append(np.array(ears, dtype=np.int64).reshape(-1, 3))
    return np.concatenate(found)


def _ears(points: np.ndarray, corners: list[int], left: int) -> tuple[list[list[int]], int]:
    """Triangles of a polygon, and how many corners may still be looked at.

    Cut off where no other corner lies inside, seen along the axis nearest to the normal of the first proper corner.
    The sense of turning is compared with that about the origin, and a polygon without such ears keeps those found: so
    does the reader of MuJoCo, and its solid is what counts.
    """
    axes = [1, 2]
    for k in range(len(corners)):
        a, b, c = (points[corners[(k + m) % len(corners)]] for m in range(3))
        normal = np.abs(np.cross(b - a, c - b))
        if (normal > np.finfo(np.float32).eps).any():
            x, y, z = normal
            axes = [1, 2] if x > y and x > z else [0, 1] if z > x and z > y else [0, 2]
            break
    flat = dict(zip(corners, points[corners][:, axes].tolist(), strict=True))
    rest, at, tries, ears = list(corners), 0, len(corners), []
    while len(rest) > 3 and tries > 0:
        left, tries = left - 20 - len(rest), tries - 1
        if left < 0:
            raise ValueError("its faces of more than four corners take too long to cut into triangles; triangulate it")
        at %= len(rest)
        three = [rest[(at + k) % len(rest)] for k in range(3)]
        a, b, c = (flat[corner] for corner in three)
        turning = (b[0] - a[0]) * (c[1] - b[1]) - (b[1] - a[1]) * (c[0] - b[0])
        about = a[0] * b[1] - a[1] * b[0]
        others = (flat[rest[(at + k) % len(rest)]] for k in range(3, len(rest)))
        if turning * about < 0 or any(_inside((a, b, c), *other) for other in others):
            at += 1
            continue
        ears.append(three)
        del rest[(at + 1) % len(rest)]
        tries = len(rest) + 1
    return ears + ([rest] if len(rest) == 3 else []), left


def _inside(triangle: Sequence[Sequence[float]], x: float, y: float) -> bool:
    """Whether a point of a plane lies inside a triangle: a ray from it crosses the edges an odd number of times."""
    odd = False
    xj, yj = triangle[-1]
    for xi, yi in triangle:
        if (yi > y) != (yj > y) and x < (xj - xi) * (y - yi) / (yj - yi) + xi:
            odd = not odd
        xj, yj = xi, yi
    return odd


def single(numbers: np.ndarray) -> np.ndarray:
    """Numbers in single precision, as meshes have them; larger ones become infinite and are rejected later."""
    with np.errstate(over="ignore"):
        return numbers.astype(np.float32).astype(float)
