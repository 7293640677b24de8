"""What is seen of the bodies of a file: their geoms, in the groups that MuJoCo's viewer shows, with their colours.

Nothing here concerns dynamics: what cannot be shown is left out, with a note. Planes and height fields are left out
without one, since a picture has a floor of its own.

Source: MuJoCo's XML reference, pages body/geom, asset/mesh, asset/material, asset/texture, visual.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cardan.algebra.rotation import rotation_to_axis
from cardan.errors import CardanError, FileError
from cardan.io.export import add, words
from cardan.io.mesh_path import mesh_name
from cardan.io.mjcf.defaults import Defaults
from cardan.io.mjcf.item import Angles, Item
from cardan.io.mjcf.solids import Geom, Meshes, fitted, hull, mesh_frame, place, size_of_geom
from cardan.io.mjcf.world import BodyItem
from cardan.meshes.part import Colour
from cardan.model.builder import Mechanism
from cardan.model.pose import Pose
from cardan.model.shape import Box, Capsule, Cylinder, Ellipsoid, Mesh, MeshFile, Rod, Shape, Sphere, read_colour

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element as Node

SHOWN = range(3)
"""Groups of geoms that the viewer shows at first."""
UNSEEN = ("plane", "hfield", "sdf")
GREY = (0.5, 0.5, 0.5, 1.0)
"""Colour of a geom that gives none."""


class Shapes:
    """Adds the shapes of bodies to a mechanism; `faults` are sentences about those left out."""

    def __init__(self, assets: Iterable[Item], defaults: Defaults, meshes: Meshes, angles: Angles) -> None:
        self.meshes, self.angles = meshes, angles
        self.faults: list[str] = []
        textures: dict[str, np.ndarray] = {}
        self.materials: dict[str, Colour] = {}
        known = [defaults.of(item) for item in assets if item.tag in ("texture", "material")]
        for item in sorted(known, key=lambda item: item.tag == "material"):
            try:
                if item.tag == "texture":
                    textures[item.get("name")] = _mean_colour(item)
                else:
                    tint = textures.get(item.get("texture"), np.ones(3))
                    rgba = item.exactly("rgba", (1.0, 1.0, 1.0, 1.0)) * [*tint, 1.0]
                    self.materials[item.get("name")] = _colour(rgba)
            except CardanError as error:
                self.faults.append(str(error))

    def add(self, mechanism: Mechanism, bodies: Iterable[BodyItem], names: Mapping[int, str]) -> None:
        """Give every body, and the ground, its shapes."""
        bodies = list(bodies)
        groups = SHOWN if any(_group(geom) in SHOWN for body in bodies for geom in body.geoms) else range(6)
        for body in bodies:
            found = []
            for geom in body.geoms:
                if _group(geom) not in groups:
                    continue
                try:
                    found.append(self._shape(geom))
                except CardanError as error:
                    self.faults.append(str(error))
            mechanism.shape(names[id(body)], *(shape for shape in found if shape is not None))
        if self.faults:
            more = f"; and {len(self.faults) - 1} more" if len(self.faults) > 1 else ""
            mechanism.note(f"shapes are left out of pictures: {self.faults[0]}{more}")

    def _shape(self, geom: Geom) -> Shape | None:
        """The shape of a geom; None of one that is not seen."""
        item, kind = geom.item, geom.type
        colour = self._colour(item)
        if kind in UNSEEN or colour[3] == 0:
            return None
        at = geom.frame @ place(item, kind, self.angles)
        if kind == "mesh":
            return self._mesh(item, at, colour)
        if item.has("mesh"):
            own, size = fitted(item, kind, self.meshes)
            at = at @ own
        else:
            size = size_of_geom(item, kind)
        given: dict[str, Any] = {"at": at, "colour": colour}
        match kind:
            case "box":
                return Box(2 * size, **given)
            case "ellipsoid":
                return Ellipsoid(size, **given)
            case "cylinder":
                return Cylinder(size[0], 2 * size[1], **given)
            case "capsule":
                return Capsule(size[0], 2 * size[1], **given)
        return Sphere(size[0], **given)

    def _colour(self, item: Item) -> Colour:
        """The colour of a geom: its own, that of its material, or grey."""
        own = _colour(item.exactly("rgba", GREY))
        return own if own != GREY else self.materials.get(item.get("material"), GREY)

    def _mesh(self, geom: Item, at: Pose, colour: Colour) -> Shape:
        """The mesh of a geom; a file is not read here."""
        item = self.meshes.asset(geom)
        scale, turn, shift = mesh_frame(item)
        if not np.array_equal(turn, np.eye(3)) and np.ptp(scale) > 0:
            raise item.error("a mesh with both 'refquat' and a scale that differs along the axes is not shown")
        at = at @ Pose(-scale * (turn.T @ shift), turn.T)
        if item.has("vertex") or item.has("builtin"):
            points, faces = self.meshes.points(item)
            faces = hull(item, points) if faces is None else faces
            return Mesh(points * scale, faces if np.prod(scale) > 0 else faces[:, ::-1], at=at, colour=colour)
        try:
            return MeshFile(self.meshes.path(item), scale, at=at, colour=colour)
        except FileError as error:
            return MeshFile(item.text("file"), scale, str(error), at=at, colour=colour)


def _group(geom: Geom) -> int:
    return geom.item.integer("group", 0)


def _colour(rgba: np.ndarray) -> Colour:
    colour = read_colour("rgba", np.clip(rgba, 0.0, 1.0))
    assert colour is not None
    return colour


def _mean_colour(texture: Item) -> np.ndarray:
    """Mean colour (3,) of a texture that MuJoCo makes; of one in a file, which is not read, white."""
    if texture.get("builtin", "none") == "none":
        return np.ones(3)
    first = texture.exactly("rgb1", (0.8, 0.8, 0.8))
    if texture.get("builtin") == "flat":
        return first
    return (first + texture.exactly("rgb2", (0.5, 0.5, 0.5))) / 2


# Writing.

READ_BY_MUJOCO = (".stl", ".obj", ".msh")


class GeomWriter:
    """Writes shapes as geoms that touch nothing and weigh nothing, and the meshes that they need as assets."""

    def __init__(self, root: Node) -> None:
        self.assets = add(root, "asset")
        self.meshes: dict[tuple[Any, ...], str] = {}

    def write(self, body: Node, owner: str, shapes: tuple[Shape, ...], place: Pose) -> Iterator[str]:
        """Add geoms to a body whose frame in the file is at `place` in its own; yield what is left out."""
        for shape in shapes:
            if isinstance(shape, MeshFile) and Path(mesh_name(shape)).suffix.lower() not in READ_BY_MUJOCO:
                known = ", ".join(READ_BY_MUJOCO)
                yield f"{owner}: its mesh {mesh_name(shape)!r} is not of a kind that MuJoCo reads ({known}); left out"
                continue
            entries, at = self._entries(shape)
            pose = place.inverse @ shape.at @ at
            if not pose.is_identity:
                turned = {} if np.array_equal(pose.rotation, np.eye(3)) else {"quat": words(pose.quaternion)}
                entries |= {"pos": words(pose.position)} | turned
            colour = {} if shape.colour is None else {"rgba": words(np.array(shape.colour))}
            add(body, "geom", **entries, **colour, contype="0", conaffinity="0")

    def _entries(self, shape: Shape) -> tuple[dict[str, str], Pose]:
        """Type and size of a geom, and its place in the frame of the shape."""
        match shape:
            case Box():
                return {"type": "box", "size": words(shape.size / 2)}, Pose()
            case Sphere():
                return {"type": "sphere", "size": words(shape.radius)}, Pose()
            case Ellipsoid():
                return {"type": "ellipsoid", "size": words(shape.radii)}, Pose()
            case Cylinder() | Capsule():
                kind = "cylinder" if isinstance(shape, Cylinder) else "capsule"
                size = words(np.array([shape.radius, shape.length / 2]))
                return {"type": kind, "size": size}, Pose(rotation=rotation_to_axis(shape.axis))
            case Rod():
                line = rotation_to_axis((shape.end - shape.start) / shape.length)
                size = words(np.array([shape.radius, shape.length / 2]))
                return {"type": "cylinder", "size": size}, Pose((shape.start + shape.end) / 2, line)
            case MeshFile():
                scale = {} if (shape.scale == 1).all() else {"scale": words(shape.scale)}
                return {"type": "mesh", "mesh": self._asset(file=mesh_name(shape), **scale)}, Pose()
        surface = replace(shape, at=Pose()).surface()
        points, faces = words(surface.vertices.reshape(-1)), " ".join(map(str, surface.faces.flat))
        return {"type": "mesh", "mesh": self._asset(vertex=points, face=faces)}, Pose()

    def _asset(self, **entries: str) -> str:
        """The name of a mesh, which is written once."""
        key = tuple(entries.items())
        if key not in self.meshes:
            self.meshes[key] = f"mesh_{len(self.meshes) + 1}"
            add(self.assets, "mesh", name=self.meshes[key], inertia="shell", **entries)
        return self.meshes[key]
