"""COLLADA (.dae): triangles and polygons of the visual scene, with the diffuse colour of their materials.

Coordinates are in the file's own axes, as RViz has them: `up_axis` is not applied. `unit` takes them to m. Textures are
not read; a part that has one is grey.

Source: COLLADA 1.4.1 specification, Khronos 2008.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from cardan.meshes.formats import DISPLAYED, fans, read_numbers, used_part
from cardan.meshes.part import TEXTURED, Colour, Part
from cardan.meshes.surface import Surface

ELEMENTS = 300_000
INSTANCES = 20_000
"""Most nodes and geometries of the scene, those that are instances of others counted again."""
DEEPEST = 64


def collada(data: bytes, path: Path) -> tuple[Part, ...]:
    """Parts of a COLLADA file, in m."""
    document = _Document(_parse(data))
    parts, left = [], DISPLAYED
    for geometry, matrix, materials in document.instances():
        for surface, symbol in document.surfaces(geometry):
            left -= len(surface.faces)
            if left < 0:
                raise ValueError(f"it has more than {DISPLAYED} triangles")
            colour = document.colour(materials.get(symbol, symbol))
            parts.append(Part(surface.moved(matrix[:3, :3], matrix[:3, 3]), colour))
    return tuple(parts)


def _parse(data: bytes) -> Any:
    """The top node; document types and entities are refused."""
    from xml.etree.ElementTree import ParseError

    from defusedxml import DefusedXmlException
    from defusedxml.ElementTree import DefusedXMLParser

    class Counted(DefusedXMLParser):  # type: ignore[misc]
        count = 0

        def _start(self, tag: str, attributes: Any) -> Any:
            self.count += 1
            if self.count > ELEMENTS:
                raise ValueError(f"it has more than {ELEMENTS} elements")
            return super()._start(tag, attributes)

    parser = Counted(forbid_dtd=True)
    try:
        parser.feed(data)
        return parser.close()
    except DefusedXmlException:
        raise ValueError("it declares a document type or entities, which are never read") from None
    except ParseError as error:
        raise ValueError(f"the XML is malformed, {error}") from None


def _tag(node: Any) -> str:
    name: str = node.tag.rpartition("}")[2]
    return name


def _children(node: Any, *tags: str) -> list[Any]:
    return [child for child in node if _tag(child) in tags]


def _inside(node: Any, *tags: str) -> Any:
    """The first descendant along a path of names, or None."""
    for tag in tags:
        found = _children(node, tag)
        if not found:
            return None
        node = found[0]
    return node


def _numbers(node: Any) -> np.ndarray:
    return read_numbers(node.text or "")


def _integers(node: Any) -> np.ndarray:
    found = _numbers(node)
    if not (np.abs(found) < 2**40).all():
        raise ValueError("an index is not a number of this size")
    return found.astype(np.int64)


class _Document:
    """The elements of a file by their identifiers."""

    def __init__(self, top: Any) -> None:
        if _tag(top) != "COLLADA":
            raise ValueError(f"its top element is <{_tag(top)}>, not <COLLADA>")
        self.top = top
        self.named: dict[str, Any] = {}
        ahead = [top]
        while ahead:  # no recursion: elements may be nested deeper than Python's stack
            node = ahead.pop()
            if "id" in node.attrib:
                self.named.setdefault(node.attrib["id"], node)
            ahead += node
        unit = _inside(top, "asset", "unit")
        self.unit = float(unit.get("meter", 1.0)) if unit is not None else 1.0
        self.read: dict[int, list[tuple[Surface, str]]] = {}
        self.positions: dict[str | None, np.ndarray] = {}

    def at(self, url: str | None) -> Any:
        """The element that an address names."""
        found = self.named.get((url or "").lstrip("#"))
        if found is None:
            raise ValueError(f"it refers to {url!r}, which is not in it")
        return found

    def instances(self) -> Iterator[tuple[Any, np.ndarray, dict[str, str]]]:
        """Each geometry of the scene with its place (4, 4), and the materials of its symbols."""
        start = np.diag([self.unit] * 3 + [1.0])
        scene = _inside(self.top, "scene", "instance_visual_scene")
        shown = self.at(scene.get("url")) if scene is not None else _inside(self.top, "library_visual_scenes")
        if shown is None:
            for library in _children(self.top, "library_geometries"):
                yield from ((geometry, start, {}) for geometry in _children(library, "geometry"))
            return
        ahead = [(shown, start, 0)]
        left = INSTANCES
        while ahead:
            node, place, depth = ahead.pop()
            geometries, instances = _children(node, "instance_geometry"), _children(node, "instance_node")
            inner = _children(node, "node", "visual_scene")
            left -= len(geometries) + len(instances) + len(inner)
            if left < 0 or depth > DEEPEST:
                raise ValueError(f"its scene has more than {INSTANCES} nodes, or they are nested in each other")
            own = place @ _transform(node)
            for geometry in geometries:
                yield self.at(geometry.get("url")), own, self._materials(geometry)
            inner += [self.at(instance.get("url")) for instance in instances]
            ahead += [(child, own, depth + 1) for child in reversed(inner)]

    def _materials(self, instance: Any) -> dict[str, str]:
        bound = _inside(instance, "bind_material", "technique_common")
        used = [] if bound is None else _children(bound, "instance_material")
        return {one.get("symbol", ""): one.get("target", "") for one in used}

    def colour(self, material: str) -> Colour | None:
        """The diffuse colour of a material."""
        node = self.named.get(material.lstrip("#"))
        effect = None if node is None else _inside(node, "instance_effect")
        effect = None if effect is None else self.named.get(effect.get("url", "").lstrip("#"))
        technique = None if effect is None else _inside(effect, "profile_COMMON", "technique")
        for shading in [] if technique is None else _children(technique, "phong", "lambert", "blinn", "constant"):
            diffuse = _inside(shading, "emission" if _tag(shading) == "constant" else "diffuse")
            if diffuse is None:
                continue
            colour = _inside(diffuse, "color")
            if colour is None:
                return TEXTURED if _inside(diffuse, "texture") is not None else None
            found = np.clip(np.nan_to_num(_numbers(colour)), 0.0, 1.0)
            return (float(found[0]), float(found[1]), float(found[2]), 1.0)
        return None

    def surfaces(self, geometry: Any) -> list[tuple[Surface, str]]:
        """Surfaces of a geometry, each with the symbol of its material."""
        if id(geometry) not in self.read:
            mesh = _inside(geometry, "mesh")
            found = []
            for element in [] if mesh is None else mesh:
                if _tag(element) in ("triangles", "polylist", "polygons"):
                    found.append((self._surface(element), element.get("material", "")))
            self.read[id(geometry)] = [pair for pair in found if len(pair[0].faces)]
        return self.read[id(geometry)]

    def _surface(self, element: Any) -> Surface:
        inputs = _children(element, "input")
        at = [i for i in inputs if i.get("semantic") == "VERTEX"]
        if not at:
            raise ValueError(f"<{_tag(element)}> has no vertices")
        stride = 1 + max(int(i.get("offset", 0)) for i in inputs)
        offset = int(at[0].get("offset", 0))
        lists = [_integers(p) for p in _children(element, "p")] or [np.zeros(0, dtype=np.int64)]
        if not 0 <= offset < stride <= 1000 or any(len(p) % stride for p in lists):
            raise ValueError(f"<p> of <{_tag(element)}> is not made of {stride} numbers for each corner")
        corners = [p.reshape(-1, stride)[:, offset] for p in lists]
        counts = np.array([len(c) for c in corners])
        if _tag(element) == "triangles":
            counts = np.full(sum(counts) // 3, 3)
        elif _tag(element) == "polylist":
            listed = _inside(element, "vcount")
            counts = counts[:0] if listed is None else _integers(listed)
        faces = fans(np.concatenate(corners), counts)
        source = at[0].get("source")
        if source not in self.positions:
            self.positions[source] = self._points(source)
        return used_part(self.positions[source], faces)  # many elements may share a long list of vertices

    def _points(self, url: str | None) -> np.ndarray:
        for entry in _children(self.at(url), "input"):
            if entry.get("semantic") == "POSITION":
                source = self.at(entry.get("source"))
                array = _inside(source, "float_array")
                accessor = _inside(source, "technique_common", "accessor")
                stride = 3 if accessor is None else int(accessor.get("stride", 3))
                values = np.zeros(0) if array is None else _numbers(array)
                if not 3 <= stride <= 1000 or len(values) % stride:
                    raise ValueError(f"a list of positions has {len(values)} numbers, {stride} for each")
                return values.reshape(-1, stride)[:, :3]
        raise ValueError("its vertices have no positions")


def _transform(node: Any) -> np.ndarray:
    """Place of a node (4, 4) in its parent."""
    total = np.eye(4)
    for child in node:
        match _tag(child):
            case "matrix":
                own = _numbers(child).reshape(4, 4)
            case "translate":
                own = np.eye(4)
                own[:3, 3] = _numbers(child)
            case "scale":
                own = np.diag([*_numbers(child), 1.0])
            case "rotate":
                *axis, angle = _numbers(child)
                own = np.eye(4)
                own[:3, :3] = _turn(np.array(axis), np.deg2rad(angle))
            case _:
                continue
        total = total @ own
    return total


def _turn(axis: np.ndarray, angle: float) -> np.ndarray:
    """Rotation about an axis by an angle in rad."""
    x, y, z = axis / max(float(np.linalg.norm(axis)), 1e-300)
    K = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    rotation: np.ndarray = np.eye(3) + np.sin(angle) * K + (1 - np.cos(angle)) * (K @ K)
    return rotation
