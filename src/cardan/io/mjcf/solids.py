"""Mass and inertia of bodies: given, or inferred from their geoms and meshes as in MuJoCo.

A geom is a solid of uniform density (kg/m^3), or with `shellinertia` a shell (kg/m^2), about its centre, with size
parameters as MJCF has them: radius, half lengths. A mesh is an STL, OBJ or MSH file, or numbers in the model; its
inertia comes from its triangles:

    legacy   pyramids from the centroid of the surface, then from the centre of mass, all counted as positive
    exact    signed pyramids: the true volume of a closed surface whose triangles face outwards
    convex   the same of the convex hull
    shell    the triangles themselves

Notation: a triangle with corners `D`, `E`, `F` makes a pyramid with an apex; `P` are the second moments.

Source: MuJoCo's XML reference, pages compiler, body/inertial, body/geom (attributes mesh and fitscale) and asset/mesh;
Mirtich (1996) for second moments of simplices.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import pi
from pathlib import Path
from typing import Any

import numpy as np

from cardan.algebra.rotation import rotation_of_quaternion
from cardan.algebra.spatial import inertia_about_origin
from cardan.errors import nearest
from cardan.io.mjcf.item import Angles, Folder, Item, pose_of, rotation_of, to_z
from cardan.io.mjcf.vocabulary import ATTRIBUTES
from cardan.io.policy import Policy
from cardan.io.text_file import SIZE_LIMIT
from cardan.io.xml_element import LONGEST
from cardan.model.pose import Pose

INERTIAS = ("convex", "exact", "legacy", "shell")
NO_VOLUME = 1e-14
FILES = 64 * 2**20
"""Most bytes of all mesh files of a model together."""
TRIANGLES = 200_000
"""Most triangles of a mesh; MuJoCo's limit for STL files. Three times as many vertices are read."""
CUTS = 1_200_000
"""Most corners looked at to cut polygons of more than four corners into triangles, which then takes about a second."""
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
    readers: dict[str, Callable[[bytes], Any]] = {".stl": _stl, ".obj": _obj, ".msh": _msh}
    reader = readers.get(file.suffix.lower())
    if reader is None:
        raise item.error(f"its file {name!r} is of a kind that is not read; known: {', '.join(readers)}")
    try:
        with file.open("rb") as opened, np.errstate(invalid="ignore"):  # NaN is rejected after reading
            return reader(opened.read(SIZE_LIMIT))
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
    """Wavefront: lines `v x y z`, and `f a b c ...` with polygons cut into triangles as MuJoCo cuts them."""
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
            faces.append([c - 1 if c > 0 else len(points) + c for c in corners])
    if any(len(point) != 3 for point in points):
        raise ValueError("a vertex has fewer than 3 numbers")
    array = _single(np.array(points, dtype=float)).reshape(-1, 3)
    if any(not 0 <= corner < len(points) for corners in faces for corner in corners):
        raise ValueError(f"a face names a vertex that is not there; there are {len(points)}")
    return array, _triangles(array, faces) if faces else None


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
    kept = area > NO_VOLUME / 2
    D, E, F, normal, area = D[kept], E[kept], F[kept], normal[kept], area[kept]
    centre = (D + E + F) / 3
    if not area.sum() > 0:
        raise ValueError("its triangles have no area")
    middle = (area @ centre) / area.sum()
    if how == "shell":
        return float(area.sum()), middle, _inertia(area / area.sum() / 12, D - middle, E - middle, F - middle)
    signed = how != "legacy"
    volume = _pyramids(centre - middle, normal, signed)
    if not volume.sum() > NO_VOLUME:
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


SMALLEST = 1e-15
"""Mass (kg), inertia (kg m^2) and length of a quaternion below this count as zero, as in MuJoCo."""
DENSITY = 1000.0
LONG = ("capsule", "box", "cylinder", "ellipsoid")
"""Geoms that `fromto` can place."""


@dataclass(frozen=True)
class Inertial:
    """Mass (kg), centre of mass (m, body frame) and inertia about it (kg m^2, body axes)."""

    mass: float
    com: np.ndarray
    inertia: np.ndarray


NOTHING = Inertial(0.0, np.zeros(3), np.zeros((3, 3)))


@dataclass(frozen=True)
class Rules:
    """Settings of `<compiler>` for inertias."""

    from_geoms: str = "auto"
    groups: tuple[int, int] = (0, 5)
    least_mass: float = 0.0
    least_inertia: float = 0.0
    balance: bool = False


# Solids and shells: the volume or area of each, and its inertia for unit mass, from the half sizes.


Shape = Callable[..., tuple[float, np.ndarray]]


def _around_z(across: float, along: float) -> np.ndarray:
    return np.array([across, across, along])


def _together(*parts: tuple[float, np.ndarray]) -> tuple[float, np.ndarray]:
    whole = sum(size for size, _ in parts)
    return whole, sum((size * moments for size, moments in parts), np.zeros(3)) / whole


_squares: Callable[..., np.ndarray] = lambda a, b, c: np.array([b * b + c * c, a * a + c * c, a * a + b * b])
_sphere: Shape = lambda r: (4 / 3 * pi * r**3, np.full(3, 0.4 * r**2))
_box: Shape = lambda a, b, c: (8 * a * b * c, _squares(a, b, c) / 3)
_ellipsoid: Shape = lambda a, b, c: (4 / 3 * pi * a * b * c, _squares(a, b, c) / 5)
_cylinder: Shape = lambda r, h: (2 * pi * r * r * h, _around_z((3 * r * r + 4 * h * h) / 12, r * r / 2))
_disc: Shape = lambda r, h: (2 * pi * r * r, _around_z(r * r / 4 + h * h, r * r / 2))  # two, at the ends of a cylinder
_tube: Shape = lambda r, h: (4 * pi * r * h, _around_z((6 * r * r + 4 * h * h) / 12, r * r))
_sphere_shell: Shape = lambda r: (4 * pi * r * r, np.full(3, 2 / 3 * r**2))


def _with_ends(middle: tuple[float, np.ndarray], ends: tuple[float, np.ndarray], h: float, beyond: float) -> Any:
    """A capsule: its middle, and a sphere cut in two halves, whose centres of mass are `beyond` the ends `h`."""
    size, each = ends
    return _together(middle, (size, _around_z(each[0] + h * (h + 2 * beyond), each[2])))


def _box_shell(a: float, b: float, c: float) -> tuple[float, np.ndarray]:
    """Three pairs of faces."""
    squares = np.array([a * a, b * b, c * c])
    pairs = []
    for k, area in enumerate((8 * b * c, 8 * a * c, 8 * a * b)):
        moments = squares / 3
        moments[k] = squares[k]
        pairs.append((area, moments.sum() - moments))
    return _together(*pairs)


def _ellipsoid_shell(a: float, b: float, c: float) -> tuple[float, np.ndarray]:
    """A layer of MuJoCo's thickness, the same along each axis; its area is Thomsen's approximation."""
    p, d = 1.6075, 1e-6
    area = 4 * pi * (((a * b) ** p + (a * c) ** p + (b * c) ** p) / 3) ** (1 / p)
    outer = (a + d) * (b + d) * (c + d)
    # the difference of the two volumes, without cancellation
    layer = d * (a * b + a * c + b * c + d * (a + b + c) + d * d)
    grown = 2 * d * np.array([b + c + d, a + c + d, a + b + d])
    return area, (_squares(a, b, c) + outer / layer * grown) / 5


# How many sizes each type has, and how they make a solid and a shell.
SHAPES: dict[str, tuple[int, Shape, Shape]] = {
    "sphere": (1, _sphere, _sphere_shell),
    "capsule": (
        2, lambda r, h: _with_ends(_cylinder(r, h), _sphere(r), h, 3 / 8 * r),
        lambda r, h: _with_ends(_tube(r, h), _sphere_shell(r), h, r / 2),
    ),
    "ellipsoid": (3, _ellipsoid, _ellipsoid_shell),
    "cylinder": (2, _cylinder, lambda r, h: _together(_tube(r, h), _disc(r, h))),
    "box": (3, _box, _box_shell),
}  # fmt: skip
TYPES = ("plane", "hfield", *SHAPES, "mesh", "sdf")


@dataclass(frozen=True)
class Geom:
    """A geom with its defaults, and the frame (of `<frame>` elements) that its own pose refers to."""

    item: Item
    frame: Pose

    @property
    def type(self) -> str:
        """Its shape; a sphere by default."""
        return self.item.choice("type", TYPES, "sphere")


def inertial_of(given: Item | None, frame: Pose, geoms: Sequence[Geom], rules: Rules, angles: Angles, meshes: Meshes,
                policy: Policy) -> Inertial:  # fmt: skip
    """Mass and inertia of a body: given by `<inertial>`, or from its geoms."""
    chosen = [geom for geom in geoms if rules.groups[0] <= geom.item.integer("group", 0) <= rules.groups[1]]
    result = None if given is None else _read(given, frame, rules, angles, policy)
    if rules.from_geoms == "true" or (rules.from_geoms == "auto" and given is None):
        parts = [part for geom in chosen if (part := solid(geom, angles, meshes)).mass > SMALLEST]
        result = merged(parts) if parts else result
    return bounded(result or NOTHING, rules)


def _read(item: Item, frame: Pose, rules: Rules, angles: Angles, policy: Policy) -> Inertial:
    """An `<inertial>`."""
    if not item.has("pos"):
        raise item.error("it has no attribute 'pos', the centre of mass; give it, such as pos=\"0 0 0\"")
    mass = item.number("mass")
    if mass < 0:
        raise item.error(f"its mass is negative: {mass:g} kg; a body has positive mass: check the sign")
    at = frame @ pose_of(item, angles)
    if item.has("fullinertia") == item.has("diaginertia"):
        both = item.has("fullinertia")
        raise item.error(f"it needs {'only one of' if both else 'one of'} 'diaginertia' and 'fullinertia'")
    if item.has("diaginertia"):
        I = np.diag(item.numbers("diaginertia", 3))
    else:
        if rotation_of(item, angles).tolist() != np.eye(3).tolist():
            raise item.error("'fullinertia' refers to the body's axes; remove the rotation of <inertial>")
        xx, yy, zz, xy, xz, yz = item.numbers("fullinertia", 6)
        I = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    least = float(np.linalg.eigvalsh(I)[0])
    if rules.least_inertia <= 0 and (least < 0 or (least == 0 and item.has("fullinertia"))):
        name = "fullinertia" if item.has("fullinertia") else "diaginertia"
        fault = item.error(
            f"{name!r} is not positive: its least principal value is {least:g} kg m^2; check signs, or the point it is "
            "given about"
        )
        I = policy.settle("sign of inertia", fault, I)
    return Inertial(mass, at.position, at.rotation @ I @ at.rotation.T)


def solid(geom: Geom, angles: Angles, meshes: Meshes) -> Inertial:
    """Mass and inertia of one geom, in the body frame."""
    item, kind = geom.item, geom.type
    if kind in ("plane", "hfield") or (item.has("mass") and item.number("mass") == 0):
        return NOTHING
    if not item.has("mass") and item.number_or("density", DENSITY) == 0:
        return NOTHING
    for name in ("mass", "density"):
        if item.has(name) and item.number(name) < 0:
            raise item.error(f"its {name} is negative: {item.number(name):g}; give 0 for a geom without mass")
    if kind == "sdf":
        raise item.error("the inertia of a signed distance field is made by a plugin; give the body an <inertial>")
    at = geom.frame @ place(item, kind, angles)
    if kind == "mesh":
        if item.has("shellinertia") and item.yes("shellinertia"):
            raise item.error("'shellinertia' is not for meshes; give inertia=\"shell\" to the <mesh>")
        size, com, I = meshes.unit_solid(item)
        at = Pose(at.position + at.rotation @ com, at.rotation)
    elif item.has("mesh"):
        own, sizes = fitted(item, kind, meshes)
        size, moments = _unit_solid(item, kind, sizes)
        at, I = at @ own, np.diag(moments)
    else:
        size, moments = _unit_solid(item, kind, _sizes(item, kind))
        I = np.diag(moments)
    mass = item.number("mass") if item.has("mass") else size * item.number_or("density", DENSITY)
    return Inertial(mass, at.position, mass * (at.rotation @ I @ at.rotation.T))


# Primitives fitted to a mesh, from the box of half sizes `a <= b <= c` along x, y, z with the inertia of the mesh.

SIZES: dict[str, Callable[[float, float, float], tuple[float, ...]]] = {
    "sphere": lambda a, b, c: ((a + b + c) / 3,),
    "capsule": lambda a, b, c: ((a + b) / 2, max(0.0, c - (a + b) / 4)),
    "cylinder": lambda a, b, c: ((a + b) / 2, c),
    "ellipsoid": lambda a, b, c: (a, b, c),
    "box": lambda a, b, c: (a, b, c),
}
"""Sizes of a geom as MJCF has them: radius, half lengths."""
ROUND = ("capsule", "cylinder")
CLEAR = 1e-6
"""Smallest difference of principal moments, relative to the largest, that defines an axis."""


def fitted(item: Item, kind: str, meshes: Meshes) -> tuple[Pose, np.ndarray]:
    """Pose of the primitive of a geom in the geom's frame, and its sizes."""
    if item.has("fromto"):
        raise item.error("it has both 'mesh' and 'fromto'; give one, or the type mesh")
    if item.origin.fit_aabb if item.origin else meshes.fit_aabb:
        raise item.error(f"a {kind} fitted to the box about a mesh ('fitaabb') is not read; give the geom a size")
    _, com, I = meshes.unit_solid(item)
    moments, axes = np.linalg.eigh(I)
    if kind in ROUND and moments[1] - moments[0] < CLEAR * moments[2]:
        raise item.error(f"its mesh has no longest axis, so that no {kind} can be fitted to it; give the geom a size")
    axes = axes[:, ::-1] * np.sign(np.linalg.det(axes[:, ::-1]))
    half = np.sqrt(1.5 * np.maximum(moments.sum() - 2 * moments[::-1], 0.0)) * item.number_or("fitscale", 1.0)
    return Pose(com, axes), np.array(SIZES[kind](*map(float, half)))


def place(item: Item, kind: str, angles: Angles) -> Pose:
    """Where a geom or a site is: its z axis points from the second point of `fromto` to the first."""
    if not item.has("fromto"):
        return pose_of(item, angles)
    if item.has("pos") and item.numbers("pos", 3).any():
        raise item.error("it has both 'pos' and 'fromto' (one may be that of its class); give its place once")
    if kind not in LONG:
        raise item.error(f"'fromto' places a {item.tag} of type {', '.join(LONG)}, and this is a {kind}")
    ends = item.numbers("fromto", 6)
    along = ends[:3] - ends[3:]
    length = float(np.linalg.norm(along))
    if length < SMALLEST:
        raise item.error(f"the two points of 'fromto' coincide: {item.get('fromto')!r}")
    return Pose((ends[:3] + ends[3:]) / 2, to_z(along / length))


def _sizes(item: Item, kind: str) -> np.ndarray:
    """Sizes of a primitive: radius, half lengths."""
    count = SHAPES[kind][0]
    size = item.up_to("size", (0.0, 0.0, 0.0))
    if item.has("fromto"):
        ends = item.numbers("fromto", 6)
        half = float(np.linalg.norm(ends[3:] - ends[:3])) / 2
        size = np.array([size[0], half, 0.0]) if count == 2 else np.array([size[0], size[0], half])
    return size[:count]


def _unit_solid(item: Item, kind: str, size: np.ndarray) -> tuple[float, np.ndarray]:
    """Volume (or area) of a primitive, and its principal moments for unit mass."""
    count, make, shell = SHAPES[kind]
    if (size <= 0).any():
        raise item.error(f"a {kind} has {count} positive numbers as size, got {item.get('size')!r}")
    return (shell if item.yes("shellinertia") else make)(*map(float, size))


def merged(parts: Sequence[Inertial]) -> Inertial:
    """Several parts as one."""
    mass = sum(part.mass for part in parts)
    com = sum((part.mass * part.com for part in parts), np.zeros(3)) / mass
    I = sum((inertia_about_origin(part.mass, part.com - com, part.inertia) for part in parts), np.zeros((3, 3)))
    return Inertial(mass, com, (I + I.T) / 2)


def bounded(given: Inertial, rules: Rules) -> Inertial:
    """Apply lower bounds to mass and principal moments; make moments that break the triangle rule equal."""
    result = given if given.mass >= rules.least_mass else replace(given, mass=rules.least_mass)
    moments, axes = np.linalg.eigh(result.inertia)
    changed = np.maximum(moments, rules.least_inertia) if rules.least_inertia > 0 else moments
    a, b, c = changed
    if c > a + b + SMALLEST and rules.balance:
        changed = np.full(3, changed.mean())
    if changed is not moments and not np.array_equal(changed, moments):
        result = replace(result, inertia=axes @ np.diag(changed) @ axes.T)
    return result


def require_mass(body: Item, mass: float, inertia: np.ndarray) -> None:
    """MuJoCo's rule that a moving body has mass and inertia."""
    least = float(np.linalg.eigvalsh(inertia)[0])
    if mass < SMALLEST or least < SMALLEST:
        raise body.error(
            f"it moves, and has mass {mass:g} kg and a least principal moment of inertia of {least:g} kg m^2 (with all "
            "that is fixed to it); both must be positive: give it geoms with mass, or an <inertial>"
        )
