"""The same triangles in every format of mesh files, written independently of the readers."""

from __future__ import annotations

import base64
import json
import struct

import numpy as np

RED, BLUE = (1.0, 0.0, 0.0), (0.0, 0.0, 1.0)


def tetrahedron() -> tuple[np.ndarray, np.ndarray]:
    """Vertices (4, 3), exact in single precision, and faces (4, 3) counter-clockwise from outside."""
    corners = np.array([[0, 0, 0], [0.5, 0, 0], [0, 0.25, 0], [0, 0, 2]], dtype=float)
    return corners, np.array([[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]])


def every_format() -> dict[str, bytes]:
    """The tetrahedron by suffix; the first two faces are red and the others blue, where the format has colours."""
    points, faces = tetrahedron()
    corners = points[faces].astype("<f4")
    rows = b"".join(bytes(12) + triangle.tobytes() + bytes(2) for triangle in corners)
    facets = "".join(
        "facet normal 0 0 0\nouter loop\n" + "".join(f"vertex {x:.9g} {y:.9g} {z:.9g}\n" for x, y, z in triangle)
        + "endloop\nendfacet\n" for triangle in corners
    )  # fmt: skip
    numbers = " ".join(f"{x:.9g}" for x in points.flat)
    lines = [f"v {x:.9g} {y:.9g} {z:.9g}" for x, y, z in points]
    named = [f"f {a + 1}/1/1 {b + 1}//2 {c + 1}" for a, b, c in faces]
    obj = "\n".join(["mtllib m.mtl", *lines, "usemtl red", *named[:2], "usemtl blue", *named[2:]]) + "\n"
    return {
        "binary.stl": b"solid " + bytes(74) + len(faces).to_bytes(4, "little") + rows,
        "ascii.stl": f"solid part\n{facets}endsolid part\n".encode(),
        "part.obj": obj.encode(),
        "part.msh": struct.pack("<4i", 4, 0, 0, 4) + points.astype("<f4").tobytes() + faces.astype("<i4").tobytes(),
        "part.dae": _dae(numbers, faces).encode(),
        "part.glb": _glb(points, faces),
        "part.gltf": _gltf(points, faces),
    }  # fmt: skip


MATERIALS = "newmtl red\nKd 1 0 0\nnewmtl blue\nKd 0 0 1\n"


def _dae(numbers: str, faces: np.ndarray) -> str:
    """COLLADA in cm, with a node that turns the geometry half round z and a geometry turned back."""
    centimetres = " ".join(
        f"{100 * float(x) * sign:.9g}" for x, sign in zip(numbers.split(), [-1, -1, 1] * 4, strict=True)
    )
    effects = "".join(
        f'<effect id="{name}-effect"><profile_COMMON><technique><phong><diffuse><color>{r} {g} {b} 1</color></diffuse>'
        "</phong></technique></profile_COMMON></effect>"
        for name, (r, g, b) in (("red", RED), ("blue", BLUE))
    )
    materials = "".join(
        f'<material id="{name}"><instance_effect url="#{name}-effect"/></material>' for name in ("red", "blue")
    )
    first = " ".join(f"{k} 7" for k in faces[:2].flat)
    second = " ".join(str(k) for k in faces[2:].flat)
    bound = "".join(f'<instance_material symbol="{name}-symbol" target="#{name}"/>' for name in ("red", "blue"))
    return f"""<?xml version="1.0"?><COLLADA xmlns="http://www.collada.org/2005/11/COLLADASchema" version="1.4.1">
<asset><unit name="cm" meter="0.01"/><up_axis>Y_UP</up_axis></asset>
<library_effects>{effects}</library_effects><library_materials>{materials}</library_materials>
<library_geometries><geometry id="g"><mesh>
<source id="p"><float_array id="a" count="12">{centimetres}</float_array></source>
<vertices id="v"><input semantic="POSITION" source="#p"/></vertices>
<triangles material="red-symbol" count="2"><input semantic="VERTEX" source="#v" offset="0"/>
<input semantic="NORMAL" source="#p" offset="1"/><p>{first}</p></triangles>
<polylist material="blue-symbol" count="2"><input semantic="VERTEX" source="#v" offset="0"/>
<vcount>3 3</vcount><p>{second}</p></polylist></mesh></geometry></library_geometries>
<library_visual_scenes><visual_scene id="s"><node><rotate>0 0 1 180</rotate><node>
<instance_geometry url="#g"><bind_material><technique_common>{bound}</technique_common></bind_material>
</instance_geometry></node></node></visual_scene></library_visual_scenes>
<scene><instance_visual_scene url="#s"/></scene></COLLADA>"""


def _tables(points: np.ndarray, faces: np.ndarray, binary: bytes, buffer: dict[str, object]) -> bytes:
    """Tables of glTF: two primitives of one mesh, under a node that shifts them and one that shifts them back."""
    size = len(points) * 12
    primitives = [{"attributes": {"POSITION": 0}, "indices": 1 + k, "material": k} for k in (0, 1)]
    accessors = [{"bufferView": 0, "componentType": 5126, "count": 4, "type": "VEC3"}]
    accessors += [
        {"bufferView": 1, "componentType": 5123, "count": 6, "type": "SCALAR", "byteOffset": 12 * k} for k in (0, 1)
    ]
    tables = {
        "asset": {"version": "2.0"}, "scene": 0, "scenes": [{"nodes": [0]}],
        "nodes": [{"translation": [1, 2, 3], "children": [1]}, {"translation": [-1, -2, -3], "mesh": 0}],
        "meshes": [{"primitives": primitives}],
        "materials": [{"pbrMetallicRoughness": {"baseColorFactor": [*colour, 1]}} for colour in (RED, BLUE)],
        "accessors": accessors,
        "bufferViews": [
            {"buffer": 0, "byteLength": size}, {"buffer": 0, "byteOffset": size, "byteLength": len(binary) - size},
        ],
        "buffers": [{"byteLength": len(binary), **buffer}],
    }  # fmt: skip
    return json.dumps(tables).encode()


def _glb(points: np.ndarray, faces: np.ndarray) -> bytes:
    binary = points.astype("<f4").tobytes() + faces.astype("<u2").tobytes()
    text = _tables(points, faces, binary, {})
    text += b" " * (-len(text) % 4)
    chunks = struct.pack("<I", len(text)) + b"JSON" + text + struct.pack("<I", len(binary)) + b"BIN\0" + binary
    return b"glTF" + struct.pack("<II", 2, 12 + len(chunks)) + chunks


def _gltf(points: np.ndarray, faces: np.ndarray) -> bytes:
    binary = points.astype("<f4").tobytes() + faces.astype("<u2").tobytes()
    uri = "data:application/octet-stream;base64," + base64.b64encode(binary).decode()
    return _tables(points, faces, binary, {"uri": uri})
