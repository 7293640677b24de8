"""What is fuzzed: every loader, the expression grammar, units, and files of meshes, each a function of bytes.

A target returns where the input was read or refused by a `CardanError` of ours; anything else is a crash.
"""

from __future__ import annotations

import atexit
import shutil
import tempfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import cast

from tests.mesh_files import every_format

from cardan.errors import CardanError
from cardan.io.mjcf.read import read_mjcf
from cardan.io.policy import Word
from cardan.io.urdf import read_urdf
from cardan.io.yaml.expression import ExpressionError, Measured, Name, as_text, evaluate, parse
from cardan.io.yaml.read import read_yaml
from cardan.io.yaml.units import UnitError, read_unit, to_si
from cardan.meshes.read import READERS, read_mesh
from cardan.meshes.simplify import simplified

ROOT = Path(__file__).parents[2]
REFUSALS = (CardanError, ExpressionError, UnitError)


@dataclass(frozen=True)
class Target:
    """A reader of bytes, what it begins with, and the words of its language."""

    read: Callable[[bytes], object]
    seeds: Callable[[], Iterator[bytes]]
    words: tuple[str, ...]


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def _policy(data: bytes) -> Word:
    """Each policy for a third of the inputs, the same one for the same input."""
    return cast(Word, ("strict", "warn", "repair")[zlib.crc32(data) % 3])


@cache
def folder() -> Path:
    """A folder for this process, with a mesh and a file to include."""
    made = Path(tempfile.mkdtemp(prefix="cardan-fuzz-"))
    atexit.register(shutil.rmtree, made, ignore_errors=True)
    (made / "in.xml").write_text('<mujoco><worldbody><body name="in"/></worldbody></mujoco>')
    (made / "m.obj").write_bytes(next(_meshes()))
    return made


def urdf(data: bytes) -> object:
    return read_urdf("<" + _text(data).lstrip("<\ufeff \t\r\n"), policy=_policy(data)).build()


def yaml(data: bytes) -> object:
    return read_yaml(_text(data) + "\n", policy=_policy(data)).build()


def mjcf(data: bytes) -> object:
    file = folder() / "model.xml"
    file.write_bytes(data)
    return read_mjcf(file).build()


def mesh(data: bytes) -> object:
    """The first byte chooses the kind of file and of inertia."""
    kind = data[0] if data else 0
    name = f"own.{('stl', 'obj', 'msh')[kind % 3]}"
    (folder() / name).write_bytes(data[1:])
    how = ("convex", "exact", "legacy", "shell")[kind // 3 % 4]
    text = f'<mujoco><asset><mesh name="m" file="{name}" inertia="{how}"/></asset><worldbody><body><freejoint/>'
    (folder() / "mesh.xml").write_text(text + '<geom type="mesh" mesh="m"/></body></worldbody></mujoco>')
    return read_mjcf(folder() / "mesh.xml").build()


def shape(data: bytes) -> object:
    """A mesh that is shown; the first byte chooses the kind of file."""
    suffix = sorted(READERS)[(data[0] if data else 0) % len(READERS)]
    path = folder() / f"shown{suffix}"
    path.write_bytes(data[1:])
    parts = read_mesh(path)
    return [simplified(part.surface, 10) for part in parts]


def expression(data: bytes) -> object:
    """What is read is printed and read again as the same; its value is a finite number, or a graph."""
    tree = parse(_text(data))
    assert parse(as_text(tree)) == tree
    return evaluate(tree, _lookup)


def _lookup(name: Name) -> object:
    import casadi as ca

    return ca.SX.sym(name.name) if name.name in ("t", "q", "v") else Measured(1.5)


def units(data: bytes) -> object:
    """A number and a unit, as files write them."""
    number, _, unit = _text(data).partition(" ")
    return to_si(number if number.strip("0123456789.eE+-") == "" and _is_float(number) else "1e300", read_unit(unit))


def _is_float(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


def _files(*patterns: str) -> Callable[[], Iterator[bytes]]:
    def seeds() -> Iterator[bytes]:
        for pattern in patterns:
            for file in sorted(ROOT.glob(pattern)):
                yield file.read_bytes()

    return seeds


def _expressions() -> Iterator[bytes]:
    yield from (
        b"1 + 2*t",
        b"2.5 [N/m]*q",
        b"if(t < 1, sin(2*pi*t), 0)",
        b"-2^-2",
        b"9^9^9^9",
        b"min(q[0], v[1, 2], 3 mm)",
    )
    yield from (b"and(t >= 0, not(t > 1))", b"atan2(1e308, 1e-308)", b"sqrt(-1)", b"10^10^10", b"1e999", b"mod(7, 0)")


def _units() -> Iterator[bytes]:
    yield from (
        b"1 m",
        b"35 mm",
        b"1e300 km^99",
        b"2 N*m/rad",
        b"1 kg m^2",
        b"3 N/(m s)",
        b"5 rev^99*rev^99",
        b"1 ((m^9)^9)^9",
    )


def _meshes() -> Iterator[bytes]:
    corners = ((0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1))
    faces = ((1, 3, 2), (1, 2, 4), (1, 4, 3), (2, 3, 4))
    lines = [f"v {x} {y} {z}" for x, y, z in corners] + [f"f {a} {b} {c}" for a, b, c in faces]
    yield ("\n".join(lines) + "\n").encode()
    import numpy as np

    points, triangles = np.array(corners, "<f4"), np.array(faces, "<i4") - 1
    rows = b"".join(bytes(12) + points[list(face)].tobytes() + bytes(2) for face in triangles)
    yield bytes(80) + (4).to_bytes(4, "little") + rows
    yield np.array([4, 0, 0, 4], "<i4").tobytes() + points.tobytes() + triangles.tobytes()


def _mesh_seeds() -> Iterator[bytes]:
    obj, stl, msh = _meshes()
    for k in range(4):
        yield from (bytes([3 * k]) + stl, bytes([3 * k + 1]) + obj, bytes([3 * k + 2]) + msh)


def _shape_seeds() -> Iterator[bytes]:
    kinds = sorted(READERS)
    for name, data in every_format().items():
        yield bytes([kinds.index(Path(name).suffix)]) + data


NUMBERS = ("0", "-1", "1e999999", "-1e308", "1e-320", "nan", "inf", "0x10", "1_0", "1e60", "٣", "1 2 3")
XML = (
    "<!DOCTYPE x>",
    "<![CDATA[",
    "&#0;",
    "&lt;",
    "&#xD800;",
    "<?xml version='1.0' encoding='utf-16'?>",
    "/>",
    "</",
    '="',
)
TARGETS = {
    "urdf": Target(
        urdf,
        _files("src/cardan/data/*.urdf", "tests/broken/urdf/*.urdf", "tests/broken/slight/*.urdf"),
        (
            *NUMBERS,
            *XML,
            *[
                "link",
                "joint",
                "inertial",
                "origin",
                "mass",
                "inertia",
                "axis",
                "limit",
                "dynamics",
                "mimic",
                "parent",
                "child",
            ],
            *[
                "revolute",
                "continuous",
                "prismatic",
                "planar",
                "fixed",
                "floating",
                "xyz",
                "rpy",
                "ixx",
                "multiplier",
                "offset",
                "lower",
                "upper",
            ],
        ),
    ),
    "yaml": Target(
        yaml,
        _files("src/cardan/data/mechanisms/*.yaml", "tests/broken/yaml/*.yaml", "tests/broken/slight/*.yaml"),
        (
            *NUMBERS,
            "&a",
            "*a",
            "<<: ",
            "!!int ",
            "--- ",
            "? ",
            "|\n",
            "[",
            "]",
            "{",
            "}",
            ": ",
            "- ",
            "=9^9^9",
            "= 1 +",
            "bodies",
            "joints",
            "forces",
            "constraints",
            "parameters",
            "where",
            "free",
            "cut",
            "snapping",
            "mm",
            "[N/m]",
        ),
    ),
    "mjcf": Target(
        mjcf,
        _files("tests/data/*.xml", "tests/data/*/*.xml", "tests/broken/mjcf/*.xml"),
        (
            *NUMBERS,
            *XML,
            '<include file="in.xml"/>',
            '<mesh name="m" file="m.obj"/>',
            '<mesh name="m" file="../m.obj"/>',
            *[
                "body",
                "joint",
                "geom",
                "site",
                "frame",
                "default",
                "class",
                "childclass",
                "inertial",
                "connect",
                "weld",
                "keyframe",
                "qpos",
                "compiler",
            ],
            *[
                "hinge",
                "slide",
                "ball",
                "free",
                "sphere",
                "box",
                "capsule",
                "cylinder",
                "ellipsoid",
                "mesh",
                "euler",
                "axisangle",
                "zaxis",
                "fromto",
            ],
        ),
    ),
    "mesh": Target(mesh, _mesh_seeds, (*NUMBERS, "\nf ", "\nv ", "1//2", "-1", "solid", "\xff\xff\xff\x7f")),
    "shape": Target(
        shape,
        _shape_seeds,
        (
            *NUMBERS,
            *XML,
            "4294967295",
            "\nf ",
            "#g",
            '"nodes"',
            '"count":',
            '"byteOffset": -1',
            "[0]",
            "[]",
            "null",
            "{}",
            "vcount",
            "<p>",
        ),
    ),
    "expression": Target(
        expression,
        _expressions,
        (
            *NUMBERS,
            *[
                "(",
                ")",
                "[",
                "]",
                ",",
                "+",
                "-",
                "*",
                "/",
                "^",
                "**",
                "<",
                "<=",
                "==",
                "!=",
                "sin",
                "sqrt",
                "min",
                "if",
                "and",
                "not",
                "atan2",
                "pi",
                "t",
                "q[0]",
                "mm",
                "[N/m]",
            ],
        ),
    ),
    "units": Target(
        units,
        _units,
        (
            *[
                "m",
                "kg",
                "s",
                "rad",
                "N",
                "J",
                "W",
                "Pa",
                "min",
                "h",
                "deg",
                "rev",
                "rpm",
                "tonne",
                "in",
                "ft",
                "lb",
                "lbf",
                "(",
                ")",
                "*",
                "/",
                "^",
                "²",
                "³",
                "µ",
                "·",
                "^99",
                "^-99",
            ],
        ),
    ),
}
