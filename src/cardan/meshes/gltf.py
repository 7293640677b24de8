"""glTF 2.0 (.glb, .gltf): triangles of the scene, with the base colour of their materials.

Coordinates are in the file's own axes. Textures are not read; a part that has one is grey. Buffers are in the file, or
in files beside it.

Source: glTF 2.0 specification, Khronos 2021.
"""

from __future__ import annotations

import base64
import binascii
import json
from pathlib import Path
from typing import Any

import numpy as np

from cardan.meshes.formats import DISPLAYED, beside, used_part
from cardan.meshes.part import TEXTURED, Colour, Part
from cardan.meshes.surface import Surface

INSTANCES, DEEPEST = 20_000, 64
"""Most nodes and primitives of the scene, those that are instances of others counted again; most nested ones."""
ENTRIES = 1_000_000
"""Most tables, lists and commas of the JSON part."""
READ = 12 * DISPLAYED
"""Most entries of all accessors together; several may be of the same bytes."""
BUFFER = 64 * 2**20
"""Most bytes of a buffer in a file of its own."""
COMPONENTS = {5120: "<i1", 5121: "<u1", 5122: "<i2", 5123: "<u2", 5125: "<u4", 5126: "<f4"}
WIDTHS = {"SCALAR": 1, "VEC2": 2, "VEC3": 3, "VEC4": 4}


def glb(data: bytes, path: Path) -> tuple[Part, ...]:
    """Parts of a binary glTF file."""
    if data[:4] != b"glTF" or int.from_bytes(data[4:8], "little") != 2:
        raise ValueError("it is not a binary glTF file of version 2")
    chunks: dict[bytes, bytes] = {}
    at = 12
    while at + 8 <= len(data):
        size = int.from_bytes(data[at : at + 4], "little")
        chunks.setdefault(data[at + 4 : at + 8], data[at + 8 : at + 8 + size])
        at += 8 + size
    if b"JSON" not in chunks:
        raise ValueError("it has no JSON part")
    return _File(chunks[b"JSON"], chunks.get(b"BIN\0"), path).parts()


def gltf(data: bytes, path: Path) -> tuple[Part, ...]:
    """Parts of a glTF file in text."""
    return _File(data, None, path).parts()


class _File:
    """The tables of a file."""

    def __init__(self, text: bytes, binary: bytes | None, path: Path) -> None:
        if (many := sum(map(text.count, (b"{", b"[", b",")))) > ENTRIES:
            raise ValueError(f"its JSON has {many} entries; at most {ENTRIES} are read")
        try:
            self.tables = json.loads(text.decode("utf-8-sig"))
        except RecursionError:
            raise ValueError("its JSON is nested too deeply") from None
        if not isinstance(self.tables, dict):
            raise ValueError("its JSON is not a table")
        compressed = [name for name in self.tables.get("extensionsRequired", []) if "compression" in str(name)]
        if compressed:
            raise ValueError(f"it is compressed ({compressed[0]}), which is not read; save it without compression")
        self.binary, self.path = binary, path
        self.buffers: dict[int, bytes] = {}
        self.surfaces: dict[tuple[Any, ...], Surface] = {}
        self.left = READ

    def one(self, table: str, index: Any) -> dict[str, Any]:
        """An entry of a table."""
        entries = self.tables.get(table, [])
        if not isinstance(index, int) or isinstance(index, bool) or not 0 <= index < len(entries):
            raise ValueError(f"it refers to number {index!r} of {table!r}, which has {len(entries)}")
        entry = entries[index]
        if not isinstance(entry, dict):
            raise ValueError(f"number {index} of {table!r} is not a table")
        return entry

    def parts(self) -> tuple[Part, ...]:
        """All triangles of the scene."""
        found: list[Part] = []
        scenes = self.tables.get("scenes")
        shown = self.one("scenes", self.tables.get("scene", 0)).get("nodes", []) if scenes else []
        ahead = [(node, np.eye(4), 0) for node in reversed(shown)]
        if not scenes:
            ahead = [(node, np.eye(4), 0) for node in range(len(self.tables.get("nodes", [])))]
        left, triangles = INSTANCES, DISPLAYED
        while ahead:
            index, place, depth = ahead.pop()
            node = self.one("nodes", index)
            primitives = self.one("meshes", node["mesh"]).get("primitives", []) if "mesh" in node else []
            children = node.get("children", [])
            left -= len(primitives) + len(children)
            if left < 0 or depth > DEEPEST:
                raise ValueError(f"its scene has more than {INSTANCES} nodes, or they are nested in each other")
            own = place @ _transform(node)
            for primitive in primitives:
                surface = self._surface(primitive)
                triangles -= len(surface.faces)
                if triangles < 0:
                    raise ValueError(f"it has more than {DISPLAYED} triangles")
                if len(surface.faces):
                    found.append(Part(surface.moved(own[:3, :3], own[:3, 3]), self._colour(primitive)))
            ahead += [(child, own, depth + 1) for child in reversed(children)]
        return tuple(found)

    def _surface(self, primitive: dict[str, Any]) -> Surface:
        """Triangles of a primitive; of those that share their numbers the first is read."""
        key = primitive["attributes"]["POSITION"], primitive.get("indices"), primitive.get("mode", 4)
        if key not in self.surfaces:
            self.surfaces[key] = self._read_surface(primitive)
        return self.surfaces[key]

    def _read_surface(self, primitive: dict[str, Any]) -> Surface:
        points = self._accessor(primitive["attributes"]["POSITION"], 3).astype(float)
        indices = (
            self._accessor(primitive["indices"], 1).reshape(-1).astype(np.int64)
            if "indices" in primitive
            else np.arange(len(points))
        )
        match primitive.get("mode", 4):
            case 4:  # triangles
                faces = indices[: len(indices) // 3 * 3].reshape(-1, 3)
            case 5:  # a strip
                faces = np.column_stack([indices[:-2], indices[1:-1], indices[2:]])
                faces[1::2] = faces[1::2][:, [1, 0, 2]]
            case 6:  # a fan
                faces = np.column_stack([np.full(max(len(indices) - 2, 0), indices[0]), indices[1:-1], indices[2:]])
            case _:
                faces = np.zeros((0, 3), dtype=np.int64)  # points and lines
        return used_part(points, faces)  # many primitives may share a long list of vertices

    def _accessor(self, index: Any, width: int) -> np.ndarray:
        """Numbers (n, width) of an accessor."""
        accessor = self.one("accessors", index)
        kind = np.dtype(COMPONENTS[accessor["componentType"]])
        count, own = int(accessor["count"]), WIDTHS[accessor["type"]]
        if own != width or not 0 <= count <= 3 * DISPLAYED:
            raise ValueError(f"an accessor has {count} entries of {own} numbers, and {width} are needed")
        self.left -= count
        if self.left < 0:
            raise ValueError(f"its accessors have more than {READ} entries")
        if "sparse" in accessor or "bufferView" not in accessor:
            raise ValueError("a sparse accessor is not read; save it without")
        view = self.one("bufferViews", accessor["bufferView"])
        size = own * kind.itemsize
        stride = int(view.get("byteStride", size))
        start, within = int(view.get("byteOffset", 0)), int(accessor.get("byteOffset", 0))
        data = self._buffer(view["buffer"])
        end = start + within + stride * (count - 1) + size
        if min(start, within) < 0 or stride < size or end > min(len(data), start + int(view["byteLength"])):
            raise ValueError(f"an accessor needs {end} bytes, and its buffer has {len(data)}")
        rows = np.ndarray((count, own), kind, data, start + within, (stride, kind.itemsize))
        return np.array(rows)

    def _buffer(self, index: Any) -> bytes:
        if index not in self.buffers:
            uri = self.one("buffers", index).get("uri")
            if uri is None:
                if self.binary is None:
                    raise ValueError("its binary part is missing")
                self.buffers[index] = self.binary
            elif str(uri).startswith("data:"):
                try:
                    self.buffers[index] = base64.b64decode(str(uri).partition(",")[2], validate=True)
                except binascii.Error as error:
                    raise ValueError(f"a buffer is damaged: {error}") from None
            else:
                self.buffers[index] = beside(self.path, str(uri), BUFFER)
        return self.buffers[index]

    def _colour(self, primitive: dict[str, Any]) -> Colour | None:
        if "material" not in primitive:
            return None
        shading = self.one("materials", primitive["material"]).get("pbrMetallicRoughness", {})
        factor = shading.get("baseColorFactor")
        if factor is None:
            return TEXTURED if "baseColorTexture" in shading else None
        r, g, b, a = np.clip(np.array(factor, dtype=float), 0.0, 1.0)
        return _display(r), _display(g), _display(b), float(a)


def _display(linear: float) -> float:
    """A component of a colour as screens have it (sRGB), from its amount of light."""
    return round(float(12.92 * linear if linear <= 0.0031308 else 1.055 * linear ** (1 / 2.4) - 0.055), 9)


def _transform(node: dict[str, Any]) -> np.ndarray:
    """Place of a node (4, 4) in its parent."""
    if "matrix" in node:
        return np.array(node["matrix"], dtype=float).reshape(4, 4).T
    x, y, z, w = np.array(node.get("rotation", (0, 0, 0, 1)), dtype=float)
    n = x * x + y * y + z * z + w * w
    s = 2 / n if n > 0 else 0.0
    R = np.array(
        [
            [1 - s * (y * y + z * z), s * (x * y - z * w), s * (x * z + y * w)],
            [s * (x * y + z * w), 1 - s * (x * x + z * z), s * (y * z - x * w)],
            [s * (x * z - y * w), s * (y * z + x * w), 1 - s * (x * x + y * y)],
        ]
    )
    total = np.eye(4)
    total[:3, :3] = R * np.array(node.get("scale", (1, 1, 1)), dtype=float)
    total[:3, 3] = np.array(node.get("translation", (0, 0, 0)), dtype=float)
    return total
