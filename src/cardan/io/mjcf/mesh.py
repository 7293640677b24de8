"""The inertia of a mesh, from its triangles: an STL, OBJ or MSH file, or numbers in the model.

Notation: a triangle with corners `D`, `E`, `F` makes a pyramid with an apex; `P` are the second moments.

    legacy   pyramids from the centroid of the surface, then from the centre of mass, all counted as positive
    exact    signed pyramids: the true volume of a closed surface whose triangles face outwards
    convex   the same of the convex hull
    shell    the triangles themselves

Source: MuJoCo's XML reference, page asset/mesh; Mirtich (1996) for second moments of simplices.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from cardan.algebra.rotation import rotation_of_quaternion
from cardan.errors import FileError, nearest
from cardan.io.mjcf.item import Folder, Item
from cardan.io.mjcf.vocabulary import ATTRIBUTES
from cardan.io.text_file import SIZE_LIMIT
from cardan.io.xml_element import LONGEST

INERTIAS = ("convex", "exact", "legacy", "shell")
SMALLEST = 1e-14
FILES = 64 * 2**20
"""Most bytes of all mesh files of a model together."""
TRIANGLES = 200_000
"""Most triangles of a mesh; MuJoCo's limit for STL files. Three times as many vertices are read."""
HULL = 150_000
"""Most vertices for a convex hull, which then takes about a second."""

Triangles = np.ndarray  # (n, 3, 3): triangle, corner, component
Unit = tuple[float, np.ndarray, np.ndarray]


class Meshes:
    """Every mesh asset by name; a file is read only if its inertia is needed."""

    def __init__(self, base: Path, folder: Folder, directory: str, strip: bool = False) -> None:
        self.base, self.folder, self.directory, self.strip = base, folder, directory, strip
        self.items: dict[str, Item] = {}
        self.done: dict[str, Unit] = {}
        self.left = FILES
        self.fit_aabb = False

    def add(self, item: Item) -> None:
        """Add an asset; without a name it is named after its file."""
        item.check(ATTRIBUTES["mesh"], ("plugin",))
        name = item.get("name") or Path(item.get("file").replace("\\", "/")).stem
        if not name:
            raise item.error("it has neither 'name' nor 'file'; give one")
        if name in self.items:
            raise item.error(f"mesh {name!r} is defined twice; the names of meshes must differ")
        item.owner = f"mesh {name!r}"
        self.items[name] = item

    def unit_solid(self, geom: Item) -> Unit:
        """Volume (or area) of a geom's mesh, centre of mass (3,), and inertia (3, 3) about it for unit mass."""
        name = geom.text("mesh").strip()
        if name not in self.items:
            raise geom.error(f"its mesh {name!r} is not an asset{nearest(name, self.items)}")
        if name not in self.done:
            self.done[name] = self._measure(self.items[name])
        return self.done[name]

    def _measure(self, item: Item) -> Unit:
        points, faces = self._points(item)
        scale = item.exactly("scale", (1.0, 1.0, 1.0))
        quaternion = item.exactly("refquat", (1.0, 0.0, 0.0, 0.0))
        R = rotation_of_quaternion(quaternion / max(float(np.linalg.norm(quaternion)), 1e-300))
        points = (points - item.exactly("refpos", (0.0, 0.0, 0.0))) @ R * scale
        how = item.choice("inertia", INERTIAS, "legacy")
        if faces is None or how == "convex":
            faces = _hull(item, points)
        elif np.prod(scale) < 0:
            faces = faces[:, [0, 2, 1]]
        try:
            return measure(points[faces], how)
        except ValueError as error:
            raise item.error(f"{error}; give the body an <inertial>, or repair the mesh") from None

    def _points(self, item: Item) -> tuple[np.ndarray, np.ndarray | None]:
        """Vertices (n, 3), and triangles (m, 3) if there are any."""
        if item.has("builtin") or any(child.tag == "plugin" for child in item.children):
            raise item.error("a mesh that MuJoCo generates is not read; give the body an <inertial>")
        if item.has("vertex"):
            points = _single(_numbers(item, "vertex", float)).reshape(-1, 3)
            faces = _numbers(item, "face", int).reshape(-1, 3) if item.has("face") else None
        else:
            name = item.text("file").replace("\\", "/")
            base, strip = self.base / self.directory, self.strip
            if item.origin:
                base, strip = item.origin.base / item.origin.mesh_directory, item.origin.strip
            name = Path(name).name if strip else name
            file = self.folder.find(item, base, name)
            self.left -= size_of(item, file, name)
            if self.left < 0:
                raise item.error(
                    f"the meshes of the model have more than {FILES / 2**20:.0f} MiB; give bodies an <inertial>"
                )
            points, faces = _read_file(item, file, name)
        if len(points) > 3 * TRIANGLES or (faces is not None and len(faces) > TRIANGLES):
            many = f"{len(points)} vertices and {0 if faces is None else len(faces)} triangles"
            raise item.error(f"it has {many}; at most {3 * TRIANGLES} and {TRIANGLES} are read: simplify it")
        if faces is not None and (faces.min(initial=0) < 0 or faces.max(initial=0) >= len(points)):
            raise item.error(f"a face names a vertex that is not there; there are {len(points)}")
        if not np.isfinite(points).all() or len(points) < 4:
            raise item.error(f"it needs 4 finite vertices or more, and has {len(points)}")
        return points, faces


def _numbers(item: Item, attribute: str, kind: type) -> np.ndarray:
    words = item.text(attribute).split(None, 3 * TRIANGLES)
    if len(words) > 3 * TRIANGLES:
        raise item.error(f"{attribute!r} of <{item.tag}> has more than {3 * TRIANGLES} numbers; simplify the mesh")
    if len(words) % 3:
        raise item.error(f"{attribute!r} of <{item.tag}> must be triples of numbers, got {len(words)} numbers")
    try:
        if max(map(len, words)) > LONGEST:
            raise ValueError
        return np.array(list(map(kind, words)), dtype=kind)
    except (ValueError, OverflowError):
        raise item.error(f"{attribute!r} of <{item.tag}> has something that is not a number") from None


def size_of(item: Item, file: Path, name: str) -> int:
    """Size of a file, bytes; reject what is not an ordinary file, or too large."""
    try:
        if not file.is_file():
            raise item.error(f"there is no file {name!r}, looked for at {str(file)!r}")
        size = file.stat().st_size
    except OSError as error:
        raise item.error(f"its file {name!r} cannot be read: {error.strerror or error}") from None
    if size > SIZE_LIMIT:
        raise item.error(f"its file {name!r} is larger than {SIZE_LIMIT / 2**20:.0f} MiB; simplify the mesh")
    return size


def _read_file(item: Item, file: Path, name: str) -> tuple[np.ndarray, np.ndarray | None]:
    readers: dict[str, Callable[[bytes], tuple[np.ndarray, np.ndarray | None]]] = {
        ".stl": _stl, ".obj": _obj, ".msh": _msh
    }  # fmt: skip
    reader = readers.get(file.suffix.lower())
    if reader is None:
        raise item.error(f"its file {name!r} is of a kind that is not read; known: {', '.join(readers)}")
    try:
        with file.open("rb") as opened, np.errstate(invalid="ignore"):  # NaN is rejected after reading
            return reader(opened.read(SIZE_LIMIT))
    except FileError:
        raise
    except OSError as error:
        raise item.error(f"its file {name!r} cannot be read: {error.strerror or error}") from None
    except (ValueError, IndexError, OverflowError) as error:
        raise item.error(f"its file {name!r} is damaged: {error}") from None


def _stl(data: bytes) -> tuple[np.ndarray, np.ndarray]:
    """Binary STL: 80 bytes, a count, and 50 bytes for each triangle."""
    count = int.from_bytes(data[80:84], "little")
    if len(data) != 84 + 50 * count or not count:
        raise ValueError(f"a binary STL file of {count} triangles has {84 + 50 * count} bytes, not {len(data)}")
    rows = np.frombuffer(data, dtype=np.dtype([("numbers", "<f4", 12), ("extra", "<u2")]), offset=84)
    return rows["numbers"][:, 3:].astype(float).reshape(-1, 3), np.arange(3 * count).reshape(-1, 3)


def _msh(data: bytes) -> tuple[np.ndarray, np.ndarray | None]:
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


def _obj(data: bytes) -> tuple[np.ndarray, np.ndarray | None]:
    """Wavefront: lines `v x y z`, and `f a b c ...` with polygons cut into triangles from their first corner."""
    points: list[list[float]] = []
    faces: list[list[int]] = []
    if data.count(b"\n") + data.count(b"\r") > 10 * TRIANGLES:
        raise ValueError(f"it has more than {10 * TRIANGLES} lines")
    for line in data.splitlines():
        words = line[: 100 * LONGEST].decode("utf-8", "replace").split()
        if not words:
            continue
        if len(line) > 100 * LONGEST or max(len(points), len(faces)) > TRIANGLES:
            raise ValueError(f"a line has {len(line)} characters, or there are more than {TRIANGLES} faces or vertices")
        if words[0] == "v":
            points.append([float(word) for word in words[1:4]])
        elif words[0] == "f":
            corners = [int(word.split("/")[0]) for word in words[1:]]
            corners = [c - 1 if c > 0 else len(points) + c for c in corners]
            faces += [[corners[0], corners[k], corners[k + 1]] for k in range(1, len(corners) - 1)]
    if any(len(point) != 3 for point in points):
        raise ValueError("a vertex has fewer than 3 numbers")
    array = _single(np.array(points, dtype=float)).reshape(-1, 3)
    return array, np.array(faces, dtype=np.int64) if faces else None


def _single(numbers: np.ndarray) -> np.ndarray:
    """Numbers in single precision, as meshes have them; larger ones become infinite and are rejected later."""
    with np.errstate(over="ignore"):
        return numbers.astype(np.float32).astype(float)


def _hull(item: Item, points: np.ndarray) -> np.ndarray:
    """Triangles of the convex hull, facing outwards."""
    from scipy.spatial import ConvexHull, QhullError

    if item.has("maxhullvert") and item.integer("maxhullvert", -1) > 0:
        raise item.error("'maxhullvert' simplifies the hull in a way that is not known; give the body an <inertial>")
    if len(points) > HULL:
        raise item.error(f"it has {len(points)} vertices; a convex hull is made of at most {HULL}: simplify it")
    try:
        hull: Any = ConvexHull(points)
    except QhullError:
        raise item.error("its vertices lie in a plane, or nearly; it has no volume") from None
    faces: np.ndarray = hull.simplices.copy()
    D, E, F = (points[faces[:, k]] for k in range(3))
    inwards = np.einsum("ij,ij->i", np.cross(E - D, F - D), hull.equations[:, :3]) < 0
    faces[inwards] = faces[inwards][:, [0, 2, 1]]
    return faces


def measure(triangles: Triangles, how: str) -> Unit:
    """Volume (or area) of triangles, centre of mass, and inertia about it for unit mass."""
    D, E, F = (triangles[:, k] for k in range(3))
    normal = np.cross(E - D, F - D)
    area = np.linalg.norm(normal, axis=1) / 2
    kept = area > SMALLEST / 2
    D, E, F, normal, area = D[kept], E[kept], F[kept], normal[kept], area[kept]
    centre = (D + E + F) / 3
    if not area.sum() > 0:
        raise ValueError("its triangles have no area")
    middle = (area @ centre) / area.sum()
    if how == "shell":
        return float(area.sum()), middle, _inertia(area / area.sum() / 12, D - middle, E - middle, F - middle)
    signed = how != "legacy"
    volume = _pyramids(centre - middle, normal, signed)
    if not volume.sum() > SMALLEST:
        raise ValueError(
            f"its volume is {volume.sum():.3g} m^3; it must be positive: are its triangles turned inwards?"
        )
    com = (volume @ (0.75 * centre + 0.25 * middle)) / volume.sum()
    D, E, F = D - com, E - com, F - com
    weight = _pyramids(centre - com, normal, signed)
    return float(weight.sum()), com, _inertia(weight / weight.sum() / 20, D, E, F)


def _pyramids(base: np.ndarray, normal: np.ndarray, signed: bool) -> np.ndarray:
    """Volume of each pyramid, from its apex to a point of its base."""
    volume = np.einsum("ij,ij->i", base, normal) / 6
    return volume if signed else np.abs(volume)


def _inertia(weight: np.ndarray, D: np.ndarray, E: np.ndarray, F: np.ndarray) -> np.ndarray:
    """Inertia from the weighted second moments `P` of triangles, or of pyramids with apex in the origin."""
    total = D + E + F
    P = sum((weight[:, None] * X).T @ X for X in (D, E, F, total))
    return np.trace(P) * np.eye(3) - P
