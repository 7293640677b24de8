"""Mass and inertia of bodies: given, or inferred from their geoms and meshes as in MuJoCo.

A geom is a solid of uniform density (kg/m^3), or with `shellinertia` a shell (kg/m^2), about its centre, with size
parameters as MJCF has them: radius, half lengths. A mesh is an STL, OBJ or MSH file, or numbers in the model; its
inertia comes from its triangles (`meshes/measure.py`).

Source: MuJoCo's XML reference, pages compiler, body/inertial, body/geom (attributes mesh and fitscale) and asset/mesh.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
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
from cardan.meshes.formats import TRIANGLES, binary_stl, msh, obj, single
from cardan.meshes.measure import Unit, convex_hull, measure
from cardan.model.pose import Pose
from cardan.model.solid import (
    Solid,
    box,
    box_shell,
    capsule,
    capsule_shell,
    cylinder,
    cylinder_shell,
    ellipsoid,
    ellipsoid_shell,
    sphere,
    sphere_shell,
)

INERTIAS = ("convex", "exact", "legacy", "shell")
FILES = 64 * 2**20
"""Most bytes of all mesh files of a model together."""


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
        item = self.asset(geom)
        if name not in self.done:
            self.done[name] = self._measure(item)
        return self.done[name]

    def asset(self, geom: Item) -> Item:
        """The mesh that a geom names."""
        name = geom.text("mesh").strip()
        if name not in self.items:
            raise geom.error(f"its mesh {name!r} is not an asset{nearest(name, self.items)}")
        return self.items[name]

    def _measure(self, item: Item) -> Unit:
        points, faces = self.points(item)
        scale, R, shift = mesh_frame(item)
        points = (points - shift) @ R * scale
        how = item.choice("inertia", INERTIAS, "legacy")
        if faces is None or how == "convex":
            faces = hull(item, points)
        elif np.prod(scale) < 0:
            faces = faces[:, [0, 2, 1]]
        try:
            return measure(points[faces], how)
        except ValueError as error:
            raise item.error(f"{error}; give the body an <inertial>, or repair the mesh") from None

    def path(self, item: Item) -> Path:
        """The file of a mesh, which must be in the folder."""
        name = item.text("file").replace("\\", "/")
        base, strip = self.base / self.directory, self.strip
        if item.origin:
            base, strip = item.origin.base / item.origin.mesh_directory, item.origin.strip
        return self.folder.find(item, base, Path(name).name if strip else name)

    def points(self, item: Item) -> tuple[np.ndarray, np.ndarray | None]:
        """Vertices (n, 3), and triangles (m, 3) if there are any."""
        if item.has("builtin") or any(child.tag == "plugin" for child in item.children):
            raise item.error("a mesh that MuJoCo generates is not read; give the body an <inertial>")
        if item.has("vertex"):
            points = single(_numbers(item, "vertex", float)).reshape(-1, 3)
            faces = _numbers(item, "face", int).reshape(-1, 3) if item.has("face") else None
        else:
            file = self.path(item)
            name = item.text("file")
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


def mesh_frame(item: Item) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Scale (3,), rotation (3, 3) and shift (3,) of a mesh: its points are `scale * ((p - shift) @ rotation)`."""
    quaternion = item.exactly("refquat", (1.0, 0.0, 0.0, 0.0))
    R = rotation_of_quaternion(quaternion / max(float(np.linalg.norm(quaternion)), 1e-300))
    return item.exactly("scale", (1.0, 1.0, 1.0)), R, item.exactly("refpos", (0.0, 0.0, 0.0))


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
    readers: dict[str, Callable[[bytes], Any]] = {".stl": binary_stl, ".obj": obj, ".msh": msh}
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


def hull(item: Item, points: np.ndarray) -> np.ndarray:
    """Triangles of the convex hull, facing outwards."""
    if item.has("maxhullvert") and item.integer("maxhullvert", -1) > 0:
        raise item.error("'maxhullvert' simplifies the hull in a way that is not known; give the body an <inertial>")
    try:
        return convex_hull(points)
    except ValueError as error:
        raise item.error(str(error)) from None


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


# How many sizes each type has, and how they make a solid and a shell.
SHAPES: dict[str, tuple[int, Solid, Solid]] = {
    "sphere": (1, sphere, sphere_shell),
    "capsule": (2, capsule, capsule_shell),
    "ellipsoid": (3, ellipsoid, ellipsoid_shell),
    "cylinder": (2, cylinder, cylinder_shell),
    "box": (3, box, box_shell),
}
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
        size, moments = _unit_solid(item, kind, size_of_geom(item, kind))
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


def size_of_geom(item: Item, kind: str) -> np.ndarray:
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
