"""Shapes in files: meshes of every format, and what URDF, MJCF and the native format show of bodies."""

from __future__ import annotations

import base64
import json
import pickle
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cardan as cd
from cardan.errors import FileError
from cardan.meshes.read import read_mesh
from cardan.meshes.surface import joined
from cardan.model.shape import Shape, visible_parts

from ..mesh_files import MATERIALS, every_format, tetrahedron

S = cd.shape
RED, BLUE = (1.0, 0.0, 0.0, 1.0), (0.0, 0.0, 1.0, 1.0)


def put_all(folder: Path) -> list[Path]:
    """Every format as a file, and the material file of one."""
    (folder / "m.mtl").write_text(MATERIALS)
    for name, data in every_format().items():
        (folder / name).write_bytes(data)
    return [folder / name for name in every_format()]


def triangles(vertices: np.ndarray, faces: np.ndarray) -> set[tuple[tuple[float, ...], ...]]:
    """Triangles as sets of corners, each beginning at its least."""
    found = []
    for triangle in np.round(vertices[faces], 6) + 0.0:
        corners = [tuple(corner.tolist()) for corner in triangle]
        first = corners.index(min(corners))
        found.append((*corners[first:], *corners[:first]))
    return set(found)


def test_every_format_has_the_same_triangles(tmp_path: Path) -> None:
    wanted = triangles(*tetrahedron())
    for path in put_all(tmp_path):
        parts = read_mesh(path)
        whole = joined([part.surface for part in parts])
        assert triangles(whole.vertices, whole.faces) == wanted, path
        colours = [part.colour for part in parts]
        assert colours == ([None] if path.suffix in (".stl", ".msh") else [RED, BLUE]), path
        mesh = S.Mesh.from_file(path, scale=(2, 1, 1))
        assert np.isclose(mesh.volume, 2 * 0.5 * 0.25 * 2 / 6, rtol=1e-6)
        mirrored = S.MeshFile(path, (-1, 1, 1))
        assert np.isclose(mirrored.com[0], -0.125, rtol=1e-6)  # still facing outwards


def test_files_are_read_when_looked_at(tmp_path: Path) -> None:
    """A missing mesh costs a warning where it would be seen, and nothing else."""
    path = tmp_path / "part.stl"
    shape = S.MeshFile(path, colour=RED)
    m = cd.Mechanism("m")
    m.body("b", mass=1, com=(0, 0, 0), inertia=(1, 1, 1), shape=[shape, S.Sphere(1)])
    m.joint("j", cd.Free(), m.ground, "b")
    model = m.build()
    with pytest.warns(RuntimeWarning, match="there is no such file; the body is shown without it"):
        assert len(list(visible_parts(model.bodies[0].shapes))) == 1
    path.write_bytes(every_format()["binary.stl"])
    seen = pickle.loads(pickle.dumps(model)).bodies[0].shapes
    assert [part.colour for part in visible_parts(seen)] == [RED, None]


HOSTILE: dict[str, tuple[str, Any, str]] = {
    "an entity": ("a.dae", '<!DOCTYPE x [<!ENTITY a "b">]><COLLADA/>', "document type or entities"),
    "another document": ("a.dae", "<html/>", "not <COLLADA>"),
    "nothing there": ("a.dae", '<COLLADA><scene><instance_visual_scene url="#s"/></scene></COLLADA>', "'#s'"),
    "a node in itself": (
        "a.dae",
        '<COLLADA><library_visual_scenes><visual_scene id="s"><node id="n"><instance_node url="#n"/></node>'
        '</visual_scene></library_visual_scenes><scene><instance_visual_scene url="#s"/></scene></COLLADA>',
        "nested in each other",
    ),
    "deep": ("a.dae", "<COLLADA>" + "<node>" * 50_000 + "</node>" * 50_000 + "</COLLADA>", "no triangles"),
    "a child of itself": ("a.gltf", json.dumps({"nodes": [{"children": [0]}], "scenes": [{"nodes": [0]}]}), "nested"),
    "a buffer elsewhere": (
        "a.gltf",
        every_format()["part.gltf"].decode().replace("data:", "../../../etc/passwd?"),
        "which is not in its folder",
    ),
    "compressed": ("a.gltf", '{"extensionsRequired": ["KHR_draco_mesh_compression"]}', "save it without compression"),
    "deep JSON": ("a.gltf", "[" * 100_000, "damaged"),
    "a huge count": ("a.stl", b"\0" * 80 + b"\xff\xff\xff\xff" + b"\0" * 50, "has 214748364"),
    "not finite": ("a.obj", "v nan 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n", "not finite"),
    "another kind": ("a.step", "ISO-10303-21;", "files of this kind are not read; known: .stl"),
    "empty": ("a.glb", b"", "not a binary glTF file"),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_hostile_meshes_are_one_sentence(what: str, tmp_path: Path) -> None:
    name, data, sentence = HOSTILE[what]
    (tmp_path / name).write_bytes(data if isinstance(data, bytes) else data.encode())
    start = time.process_time()
    with pytest.raises(FileError) as caught:
        read_mesh(tmp_path / name)
    assert sentence in str(caught.value)
    assert len(str(caught.value)) < 1000
    assert time.process_time() - start < 2


@pytest.mark.parametrize("name", ["part.dae", "part.gltf"])
def test_many_instances_of_a_few_triangles_take_little_memory(name: str, tmp_path: Path) -> None:
    """Vertices that no triangle uses are not copied for each instance."""
    text = every_format()[name].decode()
    if name == "part.dae":
        many = text.replace("</float_array>", " 0 0 0" * 100_000 + "</float_array>", 1)
        at, end = many.index("<instance_geometry"), many.index("</instance_geometry>") + len("</instance_geometry>")
        many = many[:end] + 100 * many[at:end] + many[end:]
    else:
        tables = json.loads(text)
        tables["nodes"][0]["children"] = [1] * 101
        head, _, data = tables["buffers"][0]["uri"].partition(",")
        longer = base64.b64decode(data) + bytes(12 * 100_000)
        tables["accessors"][0]["count"] = 50_000
        tables["bufferViews"][0]["byteLength"] = len(longer)
        tables["buffers"][0] = {"uri": f"{head},{base64.b64encode(longer).decode()}", "byteLength": len(longer)}
        many = json.dumps(tables)
    (tmp_path / name).write_text(many)
    parts = read_mesh(tmp_path / name)
    assert len(parts) == 2 * 101
    assert all(len(part.surface.vertices) <= 4 for part in parts)


URDF = """<robot name="r"><material name="skin"><color rgba="1 0.5 0.25 1"/></material>
<link name="base"><visual><geometry><box size="1 2 3"/></geometry><material name="skin"/></visual></link>
<link name="arm"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>
<visual><origin xyz="1 0 0" rpy="0 1.5707963267948966 0"/><geometry><cylinder radius="0.1" length="2"/></geometry>
<material name="own"><color rgba="0 0 1 1"/></material></visual>
<visual><geometry><mesh filename="package://parts/meshes/part.dae" scale="2 2 2"/></geometry></visual>
<visual><geometry><mesh filename="../meshes/part.obj"/></geometry><material name="own"/></visual>
<visual><geometry><sphere radius="-1"/></geometry></visual><visual/>
<visual><geometry><mesh filename="http://example.org/part.stl"/></geometry></visual>
<visual><geometry><mesh filename="package://elsewhere/part.stl"/></geometry></visual>
<visual><geometry><mesh filename="../../../outside.stl"/></geometry></visual>
<visual><geometry><mesh filename="package://parts/../outside.stl"/></geometry></visual>
<collision><geometry><sphere radius="5"/></geometry></collision></link>
<joint name="j" type="continuous"><parent link="base"/><child link="arm"/></joint></robot>"""


def test_visuals_of_urdf(tmp_path: Path) -> None:
    """Materials by name, packages, relative paths; the rest is a note, or a warning when somebody looks."""
    package = tmp_path / "ws" / "parts"
    for folder in ("urdf", "meshes"):
        (package / folder).mkdir(parents=True)
    put_all(package / "meshes")
    (tmp_path / "outside.stl").write_bytes(every_format()["binary.stl"])
    path = package / "urdf" / "robot.urdf"
    path.write_text(URDF)
    model = cd.load(path)
    base, arm = model.bodies
    assert base.shapes[0].colour == (1, 0.5, 0.25, 1)
    assert [note for note in model.notes if "left out of pictures" in note and "; and 1 more" in note]
    assert not [loss for loss in model.losses if "visual" in loss]
    with pytest.warns(RuntimeWarning) as caught:
        parts = list(visible_parts(arm.shapes))
    reasons = ["nothing is fetched", "'elsewhere'", "is outside the folder", "is not a file of a package"]
    assert all(any(reason in str(warning.message) for warning in caught) for reason in reasons)
    assert len(caught) == len(reasons)
    rod, *meshes = parts
    assert np.allclose(np.ptp(rod.surface.vertices, axis=0), (2, 0.2, 0.2), atol=1e-12)
    assert rod.colour == BLUE
    wanted = triangles(2 * tetrahedron()[0], tetrahedron()[1])
    assert triangles(*_whole(meshes[:2])) == wanted and [part.colour for part in meshes[:2]] == [RED, BLUE]
    assert triangles(*_whole(meshes[2:])) == triangles(*tetrahedron()) and {part.colour for part in meshes[2:]} == {
        BLUE
    }
    bare = cd.load(_put(tmp_path / "bare.urdf", URDF.replace("<visual", "<x").replace("</visual", "</x")))
    assert [type(shape).__name__ for shape in bare.bodies[1].shapes] == ["Sphere"]  # no visual anywhere: collision


def _whole(parts: Any) -> tuple[np.ndarray, np.ndarray]:
    surface = joined([part.surface for part in parts])
    return surface.vertices, surface.faces


def _put(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def every_shape(folder: Path) -> list[Shape]:
    """One of each, with poses and colours, and a mesh beside the model."""
    points, faces = tetrahedron()
    rng = np.random.default_rng(5)
    own = [
        S.Box(rng.uniform(0.1, 1, 3)), S.Sphere(0.1, colour="red"), S.Ellipsoid(rng.uniform(0.1, 1, 3)),
        S.Cylinder(0.1, 0.3, axis=rng.normal(size=3)), S.Capsule(0.1, 0.3, axis="y"),
        S.Rod(rng.normal(size=3), rng.normal(size=3), 0.1), S.Mesh(points, faces),
        S.Extrusion([(0, 0), (1, 0), (0, 1)], 0.1, holes=[[(0.1, 0.1), (0.2, 0.1), (0.1, 0.2)]]),
        S.MeshFile(folder / "binary.stl", 0.5), S.MeshFile(folder / "part.dae", (1, 2, -3)),
    ]  # fmt: skip
    for shape in own:
        object.__setattr__(shape, "at", cd.Pose(rng.normal(size=3), rpy=rng.normal(size=3)))
        object.__setattr__(shape, "colour", tuple(rng.integers(0, 256, 4) / 255) if rng.random() < 0.7 else None)
    return own


def test_shapes_come_back_from_files(tmp_path: Path) -> None:
    """To the last bit from the native format; where MJCF and URDF can express them, in the same place."""
    put_all(tmp_path)
    m = cd.Mechanism("m")
    m.body("b", mass=2, com=(0.1, 0.2, 0.3), inertia=(1, 1, 1.5), shape=every_shape(tmp_path))
    m.joint("j", cd.Revolute(axis=(0, 1, 0)), m.ground, "b", at=(1, 2, 3), child_at=(0.3, 0.2, 0.1))
    m.shape(m.ground, S.Box((1, 2, 3), at=(1, 0, 0)))
    model = m.build()
    q = [0.7]
    for suffix, lost in (("yaml", ()), ("xml", ("part.dae",)), ("urdf", ("Extrusion", "Ellipsoid", "Mesh "))):
        losses = [loss for loss in cd.save(model, tmp_path / f"m.{suffix}") if "shape" in loss or "mesh" in loss]
        assert len(losses) == len(lost) and all(any(name in loss for loss in losses) for name in lost)
        again = cd.load(tmp_path / f"m.{suffix}")
        for name in ("b", "ground"):
            kept = [
                s for s in _shapes(model, name) if not any(word in f"{type(s).__name__} {vars(s)}" for word in lost)
            ]
            wanted, found = _extent(model, name, q, kept), _extent(again, name, q, _shapes(again, name))
            assert np.allclose(wanted, found, atol=1e-6 if suffix == "xml" else 1e-12), suffix
    cd.save(again := cd.load(tmp_path / "m.yaml"), tmp_path / "again.yaml")
    assert (tmp_path / "again.yaml").read_text() == (tmp_path / "m.yaml").read_text()
    assert again.key == model.key


def _shapes(model: cd.Model, name: str) -> tuple[Shape, ...]:
    """Shapes of a body or of the ground, which in a URDF is a link of its own."""
    if name == "ground":
        return model.body("world").shapes if "world" in model.body_names else model.ground_shapes
    return model.body(name).shapes


def _extent(model: cd.Model, name: str, q: Any, shapes: Any) -> np.ndarray:
    """Least and largest coordinates of what is seen, in ground axes (2, 3)."""
    pose = np.eye(4) if name == "ground" else cd.body_poses(model, q)[model.body_index(name)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        parts = list(visible_parts(shapes))
    points = np.concatenate([part.surface.vertices for part in parts]) @ pose[:3, :3].T + pose[:3, 3]
    return np.array([points.min(axis=0), points.max(axis=0)])
