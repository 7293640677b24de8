"""What is seen of the links of a URDF: `<visual>`, or in a robot that has none anywhere, `<collision>`.

Nothing here concerns dynamics: what cannot be read is left out, with a note. Shapes are written as `<visual>`.

Source: the URDF specification of ROS, pages visual, collision, material.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from cardan.algebra.rotation import rotation_to_axis
from cardan.errors import CardanError
from cardan.io.export import add, rpy_of_rotation, words
from cardan.io.mesh_path import MeshFolders, mesh_name
from cardan.io.policy import STRICT
from cardan.io.urdf_joint import origin_of
from cardan.io.xml_element import Element
from cardan.meshes.part import Colour
from cardan.model.builder import Mechanism
from cardan.model.pose import Pose
from cardan.model.shape import Box, Capsule, Cylinder, MeshFile, Rod, Shape, Sphere, read_colour

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element as Node


def add_shapes(
    mechanism: Mechanism, robot: Element, links: dict[str, Element], bodies: dict[str, str], folders: MeshFolders
) -> None:
    """Give every link its shapes; a note says what is left out."""
    faults: list[str] = []
    materials = _materials(robot, links.values(), faults)
    tag = "visual" if any(link.node.find("visual") is not None for link in links.values()) else "collision"
    for name, link in links.items():
        found = []
        for element in link.all(tag):
            try:
                found.append(_shape(element, materials, folders))
            except (CardanError, ValueError) as error:
                faults.append(f"link {name!r}: {str(error).removeprefix(f'{link.place}: {link.owner}: ')}")
        if found:
            mechanism.shape(bodies[name], *found)
    if faults:
        more = f"; and {len(faults) - 1} more" if len(faults) > 1 else ""
        mechanism.note(f"shapes are left out of pictures: {faults[0]}{more}")


def _materials(robot: Element, links: Any, faults: list[str]) -> dict[str, Colour]:
    """Colours by name: those of the robot, and those that links define where they use them."""
    found: dict[str, Colour] = {}
    inside = [visual for link in links for visual in link.all("visual")]
    for owner in (robot, *inside):
        for material in owner.all("material"):
            try:
                colour = _colour(material)
            except CardanError as error:
                faults.append(str(error).removeprefix(f"{material.place}: "))
                continue
            if colour is not None:
                found.setdefault(material.node.get("name", ""), colour)
    return found


def _colour(material: Element) -> Colour | None:
    """The `<color>` of a material, if it has one."""
    colour = material.one("color")
    if colour is None or not colour.has("rgba"):
        return None
    return read_colour(material.owner, np.clip(colour.numbers("rgba", 4), 0.0, 1.0))


def _shape(element: Element, materials: dict[str, Colour], folders: MeshFolders) -> Shape:
    """One `<visual>` or `<collision>`."""
    geometry = element.needed("geometry", '<geometry><box size="1 1 1"/></geometry>')
    given: dict[str, Any] = {"at": origin_of(Element(element.node, element.source, element.owner, Counter()), STRICT)}
    material = element.one("material")
    if material is not None:
        given["colour"] = _colour(material) or materials.get(material.node.get("name", ""))
    for form in geometry.children:
        match form.tag:
            case "box":
                return Box(form.numbers("size", 3), **given)
            case "cylinder":
                return Cylinder(form.number("radius"), form.number("length"), **given)
            case "capsule":
                return Capsule(form.number("radius"), form.number("length"), **given)
            case "sphere":
                return Sphere(form.number("radius"), **given)
            case "mesh":
                scale = form.numbers("scale", 3) if form.has("scale") else np.ones(3)
                return folders.mesh(form.text("filename").strip(), scale, **given)
    tags = ", ".join(form.tag for form in geometry.children)
    raise element.error(f"its geometry {tags or '(none)'} is not one of box, cylinder, capsule, sphere, mesh")


# Writing.


def write_visuals(link: Node, owner: str, shapes: tuple[Shape, ...], place: Pose) -> Iterator[str]:
    """Add a `<visual>` for each shape to a link whose frame is at `place` in the body; yield what is left out."""
    for shape in shapes:
        simple = list(_simple(shape))
        if not simple:
            kind = type(shape).__name__
            yield f"{owner}: its shape {kind} is not one of URDF, which has meshes in files only; left out"
        for tag, entries, at in simple:
            visual = add(link, "visual")
            pose = place.inverse @ shape.at @ at
            if not pose.is_identity:
                turned = not np.array_equal(pose.rotation, np.eye(3))
                rpy = {"rpy": words(rpy_of_rotation(pose.rotation))} if turned else {}
                add(visual, "origin", xyz=words(pose.position), **rpy)
            add(add(visual, "geometry"), tag, **entries)
            if shape.colour is not None:
                colour = words(np.array(shape.colour))
                add(add(visual, "material", name=f"rgba {colour}"), "color", rgba=colour)


def _simple(shape: Shape) -> Iterator[tuple[str, dict[str, str], Pose]]:
    """A shape as elements of URDF, each with its place in the shape; a capsule is a cylinder and two spheres."""
    match shape:
        case Box():
            yield "box", {"size": words(shape.size)}, Pose()
        case Sphere():
            yield "sphere", {"radius": words(shape.radius)}, Pose()
        case Cylinder() | Capsule() | Rod():
            line = (shape.end - shape.start) / shape.length if isinstance(shape, Rod) else shape.axis
            middle = (shape.start + shape.end) / 2 if isinstance(shape, Rod) else np.zeros(3)
            size = {"radius": words(shape.radius), "length": words(shape.length)}
            yield "cylinder", size, Pose(middle, rotation_to_axis(line))
            for side in (-1, 1) if isinstance(shape, Capsule) else ():
                yield "sphere", {"radius": words(shape.radius)}, Pose(side * shape.length / 2 * line)
        case MeshFile():
            scale = {} if (shape.scale == 1).all() else {"scale": words(shape.scale)}
            yield "mesh", {"filename": mesh_name(shape), **scale}, Pose()
