"""Shapes of bodies: what is seen of them, and solids that give mass and inertia.

A shape never enters the equations by itself. `Mechanism.body(..., shape=..., density=...)` takes mass, centre of mass
and inertia from it; apart from that it is for pictures.

Each shape lies in a frame `at` of its body, a position (3,) in m or a `cd.Pose`. Its `colour` is (r, g, b) or
(r, g, b, a) from 0 to 1, "#rrggbb", or a name such as "red"; None leaves the choice to the picture.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from cardan.algebra.rotation import rotation_to_axis
from cardan.algebra.spatial import inertia_about_origin
from cardan.errors import FileError, ModelError, nearest, warn_outside
from cardan.lazy import cached_property
from cardan.meshes.measure import Unit, measure, open_edges
from cardan.meshes.part import Colour, Part
from cardan.meshes.surface import (
    Surface,
    box_surface,
    capsule_surface,
    crossing_edges,
    cylinder_surface,
    extruded,
    joined,
    segments_for,
)
from cardan.model import solid
from cardan.model.call_errors import with_call_errors
from cardan.model.field import frozen
from cardan.model.inertia import AXES
from cardan.model.pose import Pose, numbers, read_pose, unit_axis
from cardan.model.values import floats, shown

__all__ = [
    "Box", "Capsule", "Cylinder", "Ellipsoid", "Extrusion", "Mesh", "MeshFile", "Rod", "Shape", "Sphere", "Surface",
]  # fmt: skip
HEX = re.compile(r"[0-9a-fA-F]{6}([0-9a-fA-F]{2})?", re.ASCII).fullmatch
LIGHTEST = 15.0
"""Density, kg/m^3, of the lightest foams; less was probably meant in g/cm^3."""
HEAVIEST = 1e6
"""Mass, kg, of the heaviest parts of machines; more was probably measured in mm."""
CORNERS = 1000
"""Most corners of an outline; the triangles of so many take about a second."""
AROUND = 36
"""Sides of a circle of a sphere."""
FEWEST = 12
"""Triangles that any part of a mesh may have."""
COLOURS = {
    "black": "#000000", "white": "#ffffff", "grey": "#808080", "gray": "#808080", "silver": "#c0c0c0",
    "red": "#d62728", "green": "#2ca02c", "blue": "#1f77b4", "orange": "#ff7f0e", "yellow": "#f2c40f",
    "purple": "#9467bd", "brown": "#8c564b", "pink": "#e377c2", "olive": "#808000", "cyan": "#17becf",
    "steel": "#8a929b", "brass": "#b5a642", "copper": "#b87333", "wood": "#a97c50",
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class Shape:
    """A shape fixed to a body, in the frame `at` of the body."""

    _: KW_ONLY
    at: Any = (0.0, 0.0, 0.0)
    colour: Any = None

    def __post_init__(self) -> None:
        """Check and freeze."""
        self._keep(at=read_pose(self.owner, "at", self.at), colour=read_colour(self.owner, self.colour))

    def _keep(self, **values: Any) -> None:
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @property
    def owner(self) -> str:
        """What messages call it."""
        return f"shape {type(self).__name__}"

    def parts(self, most_faces: int | None = None) -> tuple[Part, ...]:
        """Its surfaces in body axes, each with its colour; about `most_faces` triangles in all."""
        local = self._local_parts(most_faces)
        pose: Pose = self.at
        return tuple(
            Part(part.surface.moved(pose.rotation, pose.position), self.colour or part.colour) for part in local
        )

    def surface(self, most_faces: int | None = None) -> Surface:
        """Its whole surface: vertices (n, 3) in m, body axes, and triangles (m, 3), counter-clockwise from outside."""
        return joined([part.surface for part in self.parts(most_faces)])

    @property
    def volume(self) -> float:
        """Volume, m^3."""
        return self._unit[0]

    @property
    def com(self) -> np.ndarray:
        """Centre of the volume (3,), m, in the body frame."""
        pose: Pose = self.at
        centre: np.ndarray = pose.position + pose.rotation @ self._unit[1]
        return centre

    @property
    def inertia(self) -> np.ndarray:
        """Inertia (3, 3) about `com` for a density of 1 kg/m^3, kg m^2, in body axes."""
        R, (volume, _, I) = self.at.rotation, self._unit
        result: np.ndarray = volume * (R @ I @ R.T)
        return (result + result.T) / 2

    @cached_property
    def _unit(self) -> Unit:
        return self._measured()

    def _local_parts(self, most_faces: int | None) -> tuple[Part, ...]:
        raise NotImplementedError

    def _measured(self) -> Unit:
        raise NotImplementedError

    def _positive(self, **values: Any) -> None:
        """Read positive numbers."""
        for name, value in values.items():
            number = float(numbers(self.owner, name, value, ()))
            if number <= 0:
                raise ModelError(f"{self.owner}: {name} must be positive, got {number:g} m")
            self._keep(**{name: number})


@dataclass(frozen=True, eq=False)
class Box(Shape):
    """A box with edges `size` (3,) in m along the axes of its frame, about its origin."""

    size: Any

    def __post_init__(self) -> None:
        """Check and freeze."""
        super().__post_init__()
        self._keep(size=_sizes(self, "size", self.size))

    def _local_parts(self, most_faces: int | None) -> tuple[Part, ...]:
        return (Part(box_surface(self.size)),)

    def _measured(self) -> Unit:
        return _principal(*solid.box(*self.size / 2))


@dataclass(frozen=True, eq=False)
class Sphere(Shape):
    """A sphere of a `radius` (m) about the origin of its frame."""

    radius: Any

    def __post_init__(self) -> None:
        """Check and freeze."""
        super().__post_init__()
        self._positive(radius=self.radius)

    def _local_parts(self, most_faces: int | None) -> tuple[Part, ...]:
        return (Part(capsule_surface(self.radius, 0.0, _round(most_faces))),)

    def _measured(self) -> Unit:
        return _principal(*solid.ellipsoid(self.radius, self.radius, self.radius))


@dataclass(frozen=True, eq=False)
class Ellipsoid(Shape):
    """An ellipsoid with semi-axes `radii` (3,) in m along the axes of its frame."""

    radii: Any

    def __post_init__(self) -> None:
        """Check and freeze."""
        super().__post_init__()
        self._keep(radii=_sizes(self, "radii", self.radii))

    def _local_parts(self, most_faces: int | None) -> tuple[Part, ...]:
        unit = capsule_surface(1.0, 0.0, _round(most_faces))
        return (Part(Surface(unit.vertices * self.radii, unit.faces)),)

    def _measured(self) -> Unit:
        return _principal(*solid.ellipsoid(*self.radii))


@dataclass(frozen=True, eq=False)
class _AlongAxis(Shape):
    """A round shape of a `radius` and `length` (m) along an `axis` ("x", "y", "z" or a vector), about its centre."""

    radius: Any
    length: Any
    axis: Any = "z"

    def __post_init__(self) -> None:
        """Check and freeze."""
        super().__post_init__()
        self._positive(radius=self.radius, length=self.length)
        self._keep(axis=_axis(self, self.axis))


@dataclass(frozen=True, eq=False)
class Cylinder(_AlongAxis):
    """A cylinder of a `radius` and `length` (m) along an `axis` ("x", "y", "z" or a vector), about its centre."""

    def _local_parts(self, most_faces: int | None) -> tuple[Part, ...]:
        surface = cylinder_surface(self.radius, self.length, segments_for(most_faces, 4))
        return (Part(surface.moved(rotation_to_axis(self.axis), np.zeros(3))),)

    def _measured(self) -> Unit:
        return _along(self.axis, *solid.cylinder(self.radius, self.length / 2))


@dataclass(frozen=True, eq=False)
class Capsule(_AlongAxis):
    """A cylinder with half spheres beyond its ends; `length` (m) is that of the cylinder, along an `axis`."""

    def _local_parts(self, most_faces: int | None) -> tuple[Part, ...]:
        surface = capsule_surface(self.radius, self.length, _round(most_faces))
        return (Part(surface.moved(rotation_to_axis(self.axis), np.zeros(3))),)

    def _measured(self) -> Unit:
        return _along(self.axis, *solid.capsule(self.radius, self.length / 2))


@dataclass(frozen=True, eq=False)
class Rod(Shape):
    """A round rod from the point `start` (3,) to the point `end` (3,) of its frame, m."""

    start: Any
    end: Any
    radius: Any

    def __post_init__(self) -> None:
        """Check and freeze."""
        super().__post_init__()
        self._positive(radius=self.radius)
        self._keep(
            start=frozen(numbers(self.owner, "start", self.start, (3,))),
            end=frozen(numbers(self.owner, "end", self.end, (3,))),
        )
        if not self.length > 0:
            raise ModelError(f"{self.owner}: start and end are the same point {self.start.tolist()}; they must differ")

    @property
    def length(self) -> float:
        """Distance of its ends, m."""
        return float(np.linalg.norm(self.end - self.start))

    def _local_parts(self, most_faces: int | None) -> tuple[Part, ...]:
        surface = cylinder_surface(self.radius, self.length, segments_for(most_faces, 4))
        along = rotation_to_axis((self.end - self.start) / self.length)
        return (Part(surface.moved(along, (self.start + self.end) / 2)),)

    def _measured(self) -> Unit:
        volume, _, I = _along((self.end - self.start) / self.length, *solid.cylinder(self.radius, self.length / 2))
        return volume, (self.start + self.end) / 2, I


@dataclass(frozen=True, eq=False)
class Extrusion(Shape):
    """A plate: the plane figure `outline` (n, 2) in x and y, m, with a `thickness` (m) along z, half on each side.

    `holes` are outlines (n, 2) of openings. The corners may be given in either direction.
    """

    outline: Any
    thickness: Any
    holes: Any = ()

    def __post_init__(self) -> None:
        """Check and freeze."""
        super().__post_init__()
        self._positive(thickness=self.thickness)
        if not isinstance(self.holes, list | tuple):
            raise ModelError(f"{self.owner}: holes must be a list of outlines, got {shown(self.holes)}")
        rings = [_ring(self, "outline", self.outline, 1), *(_ring(self, "hole", hole, -1) for hole in self.holes)]
        if crossing_edges(rings):
            raise ModelError(
                f"{self.owner}: edges of its outline or holes cross or touch; list the corners in the order in which "
                "they follow each other"
            )
        self._keep(outline=rings[0], holes=tuple(rings[1:]))
        self._keep(plate=self._made(rings))

    def _made(self, rings: list[np.ndarray]) -> Surface:
        try:
            return extruded(rings, self.thickness)
        except ValueError as error:
            raise ModelError(f"{self.owner}: {error}") from None

    def _local_parts(self, most_faces: int | None) -> tuple[Part, ...]:
        return (Part(vars(self)["plate"]),)

    def _measured(self) -> Unit:
        return _solid(self.owner, vars(self)["plate"])


@dataclass(frozen=True, eq=False)
class Mesh(Shape):
    """A surface of triangles: `vertices` (n, 3) in m, and `faces` (m, 3), counter-clockwise seen from outside."""

    vertices: Any
    faces: Any

    def __post_init__(self) -> None:
        """Check and freeze."""
        super().__post_init__()
        vertices = numbers(self.owner, "vertices", self.vertices, (*np.shape(self.vertices)[:1], 3))
        try:
            faces = np.array(self.faces)
        except ValueError:
            faces = np.zeros(0)
        if faces.dtype.kind not in "iu" or faces.ndim != 2 or faces.shape[1] != 3 or not len(faces):
            raise ModelError(f"{self.owner}: faces must be triples of indices of vertices, got {shown(self.faces)}")
        if faces.min() < 0 or faces.max() >= len(vertices):
            raise ModelError(
                f"{self.owner}: a face names vertex {int(faces.max() if faces.min() >= 0 else faces.min())}; "
                f"vertices are numbered from 0 to {len(vertices) - 1}"
            )
        faces = faces.astype(np.int64)
        faces.flags.writeable = False
        self._keep(vertices=frozen(vertices), faces=faces)

    @staticmethod
    def from_file(path: str | Path, *, scale: Any = 1.0, at: Any = (0.0, 0.0, 0.0), colour: Any = None) -> MeshFile:
        """A mesh from a file (STL, OBJ, DAE, GLB, glTF); `scale` takes its numbers to m, such as 0.001 for mm."""
        mesh = MeshFile(path, scale, at=at, colour=colour)
        if not mesh.path.is_file():
            raise FileError(f"{mesh.owner}: there is no such file")
        return mesh

    def _local_parts(self, most_faces: int | None) -> tuple[Part, ...]:
        return _simpler((Part(Surface(self.vertices, self.faces)),), most_faces)

    def _measured(self) -> Unit:
        return _solid(self.owner, Surface(self.vertices, self.faces))


@dataclass(frozen=True, eq=False)
class MeshFile(Shape):
    """A mesh in a file, which is read when somebody looks at it; `scale`, a number or (3,), takes its numbers to m."""

    path: Any
    scale: Any = 1.0
    fault: str = ""
    """Why it cannot be read, known before it is looked at: a package that is not found, a path out of the folder."""

    def __post_init__(self) -> None:
        """Check and freeze; the file is not touched."""
        if not isinstance(self.path, str | Path) or "\0" in str(self.path):
            raise ModelError(f"shape MeshFile: path must be the path of a file, got {self.path!r}")
        if not self.fault:
            self._keep(path=Path(self.path))
        super().__post_init__()
        scale = numbers(self.owner, "scale", self.scale, () if np.ndim(self.scale) == 0 else (3,))
        if not scale.all():
            raise ModelError(f"{self.owner}: scale must not be zero, got {shown(self.scale)}; 0.001 is for mm")
        self._keep(scale=frozen(np.broadcast_to(scale, 3)))

    @property
    def owner(self) -> str:
        """What messages call it."""
        return f"mesh {str(self.path)!r}"

    @cached_property
    def _read(self) -> tuple[Part, ...]:
        if self.fault:
            raise FileError(f"{self.owner}: {self.fault}")
        from cardan.meshes.read import read_mesh

        scale = np.diag(self.scale)
        return tuple(Part(part.surface.moved(scale, np.zeros(3)), part.colour) for part in read_mesh(self.path))

    def _local_parts(self, most_faces: int | None) -> tuple[Part, ...]:
        return _simpler(self._read, most_faces)

    def _measured(self) -> Unit:
        return _solid(self.owner, joined([part.surface for part in self._read]))

    def __getstate__(self) -> dict[str, Any]:
        """Pickle without what was read."""
        return {name: value for name, value in vars(self).items() if not name.startswith("_")}


def visible_parts(shapes: Iterable[Shape], most_faces: int | None = None) -> Iterator[Part]:
    """Surfaces of shapes in body axes with their colours; a mesh that cannot be read is a warning, and left out."""
    for shape in shapes:
        try:
            yield from shape.parts(most_faces)
        except FileError as error:
            warn_outside(f"{error}; the body is shown without it")


def shared_parts(shapes: Mapping[int, Sequence[Shape]], most_faces: int) -> Iterator[tuple[int, Part]]:
    """Surfaces of the shapes of several bodies, with about `most_faces` triangles in all.

    Parts of few triangles keep them all; the others have the same number each.
    """
    found = [(body, part) for body, own in shapes.items() for part in visible_parts(own)]
    left, most = most_faces, most_faces
    for k, count in enumerate(sorted(len(part.surface.faces) for _, part in found)):
        most = max(left // (len(found) - k), FEWEST)
        if count > most:
            break
        left, most = left - count, most_faces
    for body, part in found:
        yield body, _simpler((part,), most)[0]


def read_shapes(owner: str, value: Any) -> tuple[Shape, ...]:
    """One shape, or a list of them."""
    if value is None:
        return ()
    found = [value] if isinstance(value, Shape) else value
    if isinstance(found, list | tuple) and all(isinstance(shape, Shape) for shape in found):
        return tuple(found)
    raise ModelError(
        f"{owner}: shape must be a shape such as cd.shape.Box((1, 2, 3)), or a list of them, got {value!r}"
    )


def takes_shape(owner: str, shapes: tuple[Shape, ...], given: Mapping[str, Any], density: Any) -> bool:
    """Whether mass properties come from the shapes, from which of them are given; reject contradictions."""
    named = [name for name, value in given.items() if value is not None]
    if density is not None:
        if not shapes:
            raise ModelError(
                f"{owner}: density {shown(density)} needs a shape; give shape=cd.shape.Box(...) or the mass"
            )
        if named:
            raise ModelError(
                f"{owner}: density gives mass, com and inertia, and {' and '.join(named)} is given too; leave out one"
            )
        return True
    if shapes and named == ["mass"]:
        return bool(np.any(given["mass"]))  # no mass: only seen
    if shapes and {*named} >= {"mass", "com"} and "inertia" not in named:
        raise ModelError(
            f"{owner}: mass and com are given, and its inertia is not; leave out com to take both from the shape, or "
            "give the inertia too; (0, 0, 0) is a point mass"
        )
    return False


def mass_of_shapes(
    owner: str, shapes: tuple[Shape, ...], mass: Any, density: Any
) -> tuple[float, np.ndarray, np.ndarray]:
    """Mass, centre of mass and inertia about it of shapes of one density (kg/m^3), or scaled to a given mass."""
    if density is not None:
        density = float(numbers(owner, "density", density, ()))
        if density <= 0:
            raise ModelError(f"{owner}: density must be positive, got {density:g} kg/m^3; steel has 7850")
        if density < LIGHTEST:
            warn_outside(
                f"{owner}: a density of {density:g} kg/m^3 is that of a gas; {density:g} g/cm^3 is {1000 * density:g}"
            )
    try:
        volume = sum(shape.volume for shape in shapes)
    except ModelError as error:
        raise ModelError(f"{owner}: {error}") from None
    if density is None:
        mass = float(numbers(owner, "mass", mass, ()))
        density = mass / volume
    com = sum((shape.volume * shape.com for shape in shapes), np.zeros(3)) / volume
    I = np.zeros((3, 3))
    for shape in shapes:
        I = I + density * inertia_about_origin(shape.volume, shape.com - com, shape.inertia)
    if mass is None and density * volume > HEAVIEST:
        warn_outside(f"{owner}: its shapes have a mass of {density * volume:.2g} kg; lengths are in m: 50 mm is 0.05")
    return density * volume if mass is None else mass, com, (I + I.T) / 2


def read_colour(owner: str, value: Any) -> Colour | None:
    """A colour as (r, g, b, a) from 0 to 1; None is none."""
    if value is None:
        return None
    text = COLOURS.get(value, value) if isinstance(value, str) else None
    if text is not None and text.startswith("#") and HEX(text[1:]):
        digits = text[1:]
        value = [int(digits[k : k + 2], 16) / 255 for k in range(0, len(digits), 2)]
    try:
        array = floats(value)
    except TypeError:
        array = np.full(1, np.nan)
    if array.shape not in ((3,), (4,)) or not ((array >= 0) & (array <= 1)).all():
        raise ModelError(
            f"{owner}: colour must be (r, g, b) or (r, g, b, a) from 0 to 1, '#rrggbb', or one of "
            f"{', '.join(COLOURS)}, got {shown(value)}"
        )
    r, g, b, *alpha = array.tolist()
    return r, g, b, alpha[0] if alpha else 1.0


def _sizes(shape: Shape, what: str, value: Any) -> np.ndarray:
    size = numbers(shape.owner, what, value, (3,))
    if not (size > 0).all():
        raise ModelError(f"{shape.owner}: {what} must be three positive numbers in m, got {shown(value)}")
    return frozen(size)


def _ring(shape: Shape, what: str, value: Any, direction: int) -> np.ndarray:
    """A closed outline (n, 2), turned counter-clockwise for 1, clockwise for -1; a repeated first corner is dropped."""
    try:
        corners = floats(value)
    except TypeError:
        corners = np.zeros(())
    if corners.ndim != 2 or corners.shape[1] != 2 or not np.isfinite(corners).all():
        raise ModelError(f"{shape.owner}: {what} must be a list of corners (x, y) in m, got {shown(value)}")
    if len(corners) > 1 and (corners[0] == corners[-1]).all():
        corners = corners[:-1]
    if not 3 <= len(corners) <= CORNERS:
        raise ModelError(f"{shape.owner}: {what} needs from 3 to {CORNERS} corners, got {len(corners)}")
    x, y = corners.T
    area = float(x @ np.roll(y, -1) - y @ np.roll(x, -1)) / 2
    if abs(area) <= 1e-12 * float(np.ptp(x) ** 2 + np.ptp(y) ** 2):
        raise ModelError(f"{shape.owner}: {what} encloses no area; its corners lie on a line, or its edges cross")
    return frozen(corners if area * direction >= 0 else corners[::-1])


def _axis(shape: Shape, axis: Any) -> np.ndarray:
    if isinstance(axis, str) and axis not in AXES:
        raise ModelError(f"{shape.owner}: axis {axis!r} is not one of x, y, z; or give a vector")
    given = AXES[axis] if isinstance(axis, str) else axis
    unit = unit_axis(shape.owner, "axis", given)
    return frozen(given if np.abs(unit - given).max() < 1e-15 else unit)  # so that reading it again changes nothing


def _round(most_faces: int | None) -> int:
    """Sides of a circle of a sphere, which has about as many triangles as the square of that."""
    return min(AROUND, segments_for(None if most_faces is None else int(np.sqrt(max(most_faces, 1))), 1))


def _principal(volume: float, moments: np.ndarray) -> Unit:
    return volume, np.zeros(3), np.diag(moments)


def _along(axis: np.ndarray, volume: float, moments: np.ndarray) -> Unit:
    """A solid about z turned to an axis."""
    across, _, along = moments
    return volume, np.zeros(3), across * np.eye(3) + (along - across) * np.outer(axis, axis)


def _simpler(parts: tuple[Part, ...], most_faces: int | None) -> tuple[Part, ...]:
    """Parts with fewer triangles, shared among them in proportion."""
    total = sum(len(part.surface.faces) for part in parts)
    if most_faces is None or total <= most_faces:
        return parts
    from cardan.meshes.simplify import simplified

    return tuple(
        Part(simplified(part.surface, max(FEWEST, most_faces * len(part.surface.faces) // total)), part.colour)
        for part in parts
    )


def _solid(owner: str, surface: Surface) -> Unit:
    """Measure a closed surface; one that is inside out is turned."""
    gaps = open_edges(surface.vertices, surface.faces)
    if gaps:
        raise ModelError(
            f"{owner}: it has no volume, since its surface is not closed: {gaps} edges belong to one triangle only; "
            "give the body mass, com and inertia, or repair the mesh"
        )
    triangles = surface.vertices[surface.faces]
    turned = np.einsum("ij,ij->i", triangles[:, 0], np.cross(triangles[:, 1], triangles[:, 2])).sum() < 0
    try:
        return measure(triangles[:, ::-1] if turned else triangles, "exact")
    except ValueError as error:
        raise ModelError(f"{owner}: {error}") from None


for _kind in (Box, Capsule, Cylinder, Ellipsoid, Extrusion, Mesh, MeshFile, Rod, Sphere):
    _kind.__init__ = with_call_errors(_kind.__init__, f"cd.shape.{_kind.__name__}")  # type: ignore[method-assign]


def __dir__() -> list[str]:
    return __all__


def __getattr__(name: str) -> Any:
    known = next((kind for kind in __all__ if kind.lower() == name.lower()), None)
    hint = f"; it is cd.shape.{known}(...)" if known else nearest(name, __all__)
    raise AttributeError(f"cd.shape has no {name!r}{hint}")
