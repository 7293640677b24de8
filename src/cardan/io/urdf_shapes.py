"""What is seen of the links of a URDF: `<visual>`, or in a robot that has none anywhere, `<collision>`.

Nothing here concerns dynamics: what cannot be read is left out, with a note.

Source: the URDF specification of ROS, pages visual, collision, material.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from cardan.errors import CardanError
from cardan.io.mesh_path import MeshFolders
from cardan.io.policy import STRICT
from cardan.io.urdf_joint import origin_of
from cardan.io.xml_element import Element
from cardan.meshes.part import Colour
from cardan.model.builder import Mechanism
from cardan.model.shape import Box, Capsule, Cylinder, Shape, Sphere, read_colour


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
