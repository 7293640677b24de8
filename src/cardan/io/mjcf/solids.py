"""Mass and inertia of bodies: given, or inferred from their geoms as in MuJoCo.

A geom is a solid of uniform density (kg/m^3), or with `shellinertia` a shell (kg/m^2), about its centre, with size
parameters as MJCF has them: radius, half lengths.

Source: MuJoCo's XML reference, pages compiler, body/inertial and body/geom (attributes mesh and fitscale).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import pi

import numpy as np

from cardan.algebra.spatial import inertia_about_origin
from cardan.errors import FileError
from cardan.io.mjcf.item import Item
from cardan.io.mjcf.mesh import Meshes
from cardan.io.mjcf.placement import Angles, pose_of, rotation_of, to_z
from cardan.io.policy import Policy
from cardan.model.pose import Pose

SMALLEST = 1e-15
"""Mass (kg) and inertia (kg m^2) below this count as zero, as in MuJoCo."""
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


def _sphere(r: float) -> tuple[float, np.ndarray]:
    return 4 / 3 * pi * r**3, np.full(3, 0.4 * r**2)


def _box(a: float, b: float, c: float) -> tuple[float, np.ndarray]:
    return 8 * a * b * c, np.array([b * b + c * c, a * a + c * c, a * a + b * b]) / 3


def _ellipsoid(a: float, b: float, c: float) -> tuple[float, np.ndarray]:
    return 4 / 3 * pi * a * b * c, np.array([b * b + c * c, a * a + c * c, a * a + b * b]) / 5


def _cylinder(r: float, h: float) -> tuple[float, np.ndarray]:
    across = (3 * r * r + 4 * h * h) / 12
    return 2 * pi * r * r * h, np.array([across, across, r * r / 2])


def _capsule(r: float, h: float) -> tuple[float, np.ndarray]:
    """A cylinder, and two half spheres whose centres of mass are 3/8 r beyond its ends."""
    ball, each = _sphere(r)
    across = each[0] + h * (h + 3 / 4 * r)
    return _together(_cylinder(r, h), (ball, np.array([across, across, each[2]])))


def _sphere_shell(r: float) -> tuple[float, np.ndarray]:
    return 4 * pi * r * r, np.full(3, 2 / 3 * r**2)


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
    layer = d * (
        a * b + a * c + b * c + d * (a + b + c) + d * d
    )  # the difference of the two volumes, without cancellation
    squares = np.array([b * b + c * c, a * a + c * c, a * a + b * b])
    grown = 2 * d * np.array([b + c + d, a + c + d, a + b + d])
    return area, (squares + outer / layer * grown) / 5


def _tube(r: float, h: float) -> tuple[float, np.ndarray]:
    across = (6 * r * r + 4 * h * h) / 12
    return 4 * pi * r * h, np.array([across, across, r * r])


def _cylinder_shell(r: float, h: float) -> tuple[float, np.ndarray]:
    """A tube and two discs."""
    across = r * r / 4 + h * h
    return _together(_tube(r, h), (2 * pi * r * r, np.array([across, across, r * r / 2])))


def _capsule_shell(r: float, h: float) -> tuple[float, np.ndarray]:
    """A tube, and two half spheres whose centres of mass are r/2 beyond its ends."""
    ball, each = _sphere_shell(r)
    across = each[0] + h * (h + r)
    return _together(_tube(r, h), (ball, np.array([across, across, each[2]])))


def _together(*parts: tuple[float, np.ndarray]) -> tuple[float, np.ndarray]:
    whole = sum(size for size, _ in parts)
    return whole, sum((size * moments for size, moments in parts), np.zeros(3)) / whole


# type: how many sizes, and how they make a solid and a shell
SHAPES: dict[str, tuple[int, Callable[..., tuple[float, np.ndarray]], Callable[..., tuple[float, np.ndarray]]]] = {
    "sphere": (1, _sphere, _sphere_shell),
    "capsule": (2, _capsule, _capsule_shell),
    "ellipsoid": (3, _ellipsoid, _ellipsoid_shell),
    "cylinder": (2, _cylinder, _cylinder_shell),
    "box": (3, _box, _box_shell),
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
    if item.yes("shellinertia"):
        make = shell
    return make(*map(float, size))


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


def require_mass(body: Item, mass: float, inertia: np.ndarray) -> FileError | None:
    """MuJoCo's rule that a moving body has mass and inertia."""
    if mass >= SMALLEST and float(np.linalg.eigvalsh(inertia)[0]) >= SMALLEST:
        return None
    return body.error(
        f"it moves, and has mass {mass:g} kg and a least principal moment of inertia of "
        f"{float(np.linalg.eigvalsh(inertia)[0]):g} kg m^2 (with all that is fixed to it); both must be positive: give "
        "it geoms with mass, or an <inertial>"
    )
