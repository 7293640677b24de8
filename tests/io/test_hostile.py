"""Hostile files: every loader against every attack, each refused within a second and 200 MB.

One process of its own loads all files, one after the other, and tells what each took; see `LOAD`.
"""

from __future__ import annotations

import gzip
import json
import os
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from cardan.errors import OBEYED

SECONDS, MEGABYTES = 1.0, 200.0
LOAD = """
import json, resource, sys, time
import casadi, scipy.spatial
import cardan as cd
peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
cd.load(sys.argv[1])
for path in sys.argv[2:]:
    base, start = peak(), time.process_time()
    try:
        cd.load(path)
        said = "read"
    except cd.CardanError as error:
        said = str(error)
    except BaseException as error:
        said = f"CRASH {type(error).__name__}: {error}"[:300]
    print(json.dumps([path, said, time.process_time() - start, base, peak()]), flush=True)
"""

Attack = Callable[[], str | bytes]
LAUGHS = "".join(f'<!ENTITY l{i} "{f"&l{i - 1};" * 10}">' for i in range(1, 10))


def flood(name: str, count: int) -> str:
    """Attributes, as many as asked for."""
    return " ".join(f'{name.format(k)}="{k}"' for k in range(count))


def xml(top: str, unit: Callable[[int], str], attribute: str, number: str) -> dict[str, Attack]:
    """Attacks on a format of XML: its top element, element k of it, elements with the words NAME and NUMBER."""

    def robot(inside: str) -> str:
        return f"<{top}>{inside}</{top}>"

    def with_number(text: str) -> str:
        return robot(number.replace("NUMBER", text))

    def with_name(text: str) -> str:
        return robot(attribute.replace("NAME", text))

    return {
        "entities": lambda: f'<!DOCTYPE r [<!ENTITY l0 "ha">{LAUGHS}]>' + with_name("&l9;"),
        "a long entity": lambda: f'<!DOCTYPE r [<!ENTITY a "{"x" * 10**5}">]>' + robot("&a;" * 10**5),
        "an external entity": lambda: '<!DOCTYPE r [<!ENTITY x SYSTEM "../secret.txt">]>' + with_name("&x;"),
        "an external type": lambda: f'<!DOCTYPE {top} SYSTEM "http://localhost/x.dtd">' + robot(""),
        "a parameter entity": lambda: '<!DOCTYPE r [<!ENTITY % p SYSTEM "x.dtd"> %p;]>' + robot(""),
        "nesting": lambda: robot("<a>" * 200_000),
        "elements": lambda: robot("<a/>" * 300_000),
        "other elements": lambda: robot("".join(f"<a{k}/>" for k in range(20_000))),
        "attributes": lambda: robot(f"<a {flood('b{}', 100_000)}/>"),
        "names of spaces": lambda: robot(f"<a {flood('xmlns:b{}', 50_000)}/>"),
        "things": lambda: robot("".join(map(unit, range(8_000)))),
        "a long name": lambda: with_name("x" * 12_000_000),
        "a long tag": lambda: robot(f"<{'x' * 2_000_000}/>"),
        "a long number": lambda: with_number("1" * 2_000_000),
        "a long fraction": lambda: with_number("0." + "1" * 2_000_000),
        "many numbers": lambda: with_number("1 " * 2_000_000),
        "signs": lambda: with_number("+-" * 2_000_000),
        "a far exponent": lambda: with_number("1e999999999"),
        "a long exponent": lambda: with_number("1e" + "9" * 2_000_000),
        "no number": lambda: with_number("nan"),
        "NUL": lambda: with_name("a\0b").encode(),
        "NUL only": lambda: bytes(10**7),
        "not UTF-8": lambda: with_name("é").encode("latin-1"),
        "UTF-16": lambda: with_name("x").encode("utf-16"),
        "another encoding": lambda: "<?xml version='1.0' encoding='utf-16'?>" + with_number("x"),
        "half a character": lambda: with_name("&#xD800;"),
        "a comment": lambda: f"<!--{'x' * 2_000_000}",
        "brackets": lambda: "<" * 2_000_000,
        "blanks": lambda: " " * 2_000_000,
        "too large": lambda: " " * (17 * 2**20),
        "gzip": lambda: gzip.compress(bytes(10**7)),
    }


def link(k: int) -> str:
    if k == 0:
        return '<link name="a0"/>'
    return f'<link name="a{k}"/><joint name="j{k}" type="fixed"><parent link="a0"/><child link="a{k}"/></joint>'


def twins() -> str:
    deep = f'<link name="a">{"<v>" * 25_000}{"</v>" * 25_000}</link>'
    return f"<robot>{deep}{deep}</robot>"


def strangers(count: int, length: int) -> str:
    links = "".join(f'<link name="{"ab" * (length // 2)}{k}"/>' for k in range(count))
    joint = f'<joint name="j" type="fixed"><parent link="{"ba" * (length // 2)}"/><child link="x"/></joint>'
    return f"<robot>{links}{joint}</robot>"


URDF = xml("robot", link, '<link name="NAME"/><joint name="NAME"/>', '<link name="a"><inertial><mass value="NUMBER"/>'
           '<inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial></link>')  # fmt: skip
URDF |= {
    "deep twins": twins,
    "strange names": lambda: strangers(30_000, 50),
    "long strange names": lambda: strangers(100, 100_000),
    "a macro": lambda: (
        '<robot><link name="a"><inertial><mass value="${' + "x" * 10**7 + '}"/></inertial></link></robot>'
    ),
}


def defaults(count: int, attributes: int) -> str:
    one = "".join(f'<default class="c{k}"><geom {flood(f"a{k}_{{}}", attributes)}/>' for k in range(count))
    return f"<mujoco><default>{one}{'</default>' * count}</default></mujoco>"


MANY = "".join(f'<body name="b{k}"><joint/><geom size="1"/></body>' for k in range(100))
MANY, WELD = f"<worldbody>{MANY}</worldbody>", '<weld body1="b0"/>'
BODY = '<worldbody><body><freejoint/><geom type="mesh" mesh="m"/></body></worldbody>'
MJCF = xml("mujoco", lambda k: f'<worldbody><body><joint/><geom size="1" name="g{k}"/></body></worldbody>',
           '<worldbody><body name="NAME" childclass="NAME"/></worldbody>',
           '<worldbody><body pos="NUMBER 0 0"/></worldbody>')  # fmt: skip
MJCF |= {
    "sections": lambda: f"<mujoco>{'<worldbody/>' * 20_000}</mujoco>",
    "geoms": lambda: f"<mujoco><worldbody>{'<geom/>' * 25_000}</worldbody></mujoco>",
    "pairs": lambda: f"<mujoco><contact>{'<pair/>' * 15_000}</contact></mujoco>",
    "cameras": lambda: f"<mujoco><worldbody>{'<camera/>' * 15_000}</worldbody></mujoco>",
    "classes": lambda: defaults(20_000, 1),
    "attributes of classes": lambda: defaults(1_000, 50),
    "vertices": lambda: f'<mujoco><asset><mesh name="m" vertex="{"1 " * 2_000_000}"/></asset>{BODY}</mujoco>',
    "keys": lambda: f"<mujoco>{MANY}<keyframe>{'<key/>' * 4_000}</keyframe></mujoco>",
    "more keys": lambda: f"<mujoco>{MANY}<keyframe>{'<key/>' * 40_000}</keyframe></mujoco>",
    "joints of a body": lambda: f"<mujoco><worldbody><body>{'<joint/>' * 9_000}<geom/></body></worldbody></mujoco>",
    "welds": lambda: f"<mujoco>{MANY}<equality>{WELD * 50_000}</equality></mujoco>",
    "a name that a terminal obeys": lambda: (
        '<mujoco><worldbody><body name="&#x9b;31m"><joint/></body></worldbody></mujoco>'
    ),
    "a long vertex": lambda: f'<mujoco><asset><mesh name="m" vertex="{"1" * 10**7} 0 0"/></asset>{BODY}</mujoco>',
}
HEAD = "cardan: 1\nname: x\n"
STAR = "bodies:\n" + "".join(f"  b{k}: {{mass: 1, inertia: [1, 1, 1]}}\n" for k in range(500)) + "joints:\n"
STAR += "".join(f"  j{k}: {{type: free, parent: ground, child: b{k}}}\n" for k in range(500))
P = "p" * 49
NAMES = [f"{P}{k}" for k in range(30_000)]
NATIVE: dict[str, Attack] = {
    "powers of powers of units": lambda: HEAD + "bodies: {a: {mass: 1 ((((Mg^99)^99)^99)^99)^99}}\n",
    "units beyond numbers": lambda: HEAD + "bodies: {a: {mass: 1e300 Gg^40}}\n",
    "turns": lambda: HEAD + "parameters: {a: 1 rev^99*rev^99*rev^99*rev^99*rev^99*rev^99*rev^99}\nbodies: {}\n",
    "powers": lambda: HEAD + "parameters: {a: =10^10^10}\nbodies: {}\n",
    "a far exponent": lambda: HEAD + "bodies: {a: {mass: 1e999999999 kg}}\n",
    "a long exponent": lambda: HEAD + f"bodies: {{a: {{mass: 1e{'9' * 2_000_000} kg}}}}\n",
    "parameters": lambda: HEAD + "parameters:\n" + "".join(f"  p{k}: {k}\n" for k in range(30_000)) + "bodies: {}\n",
    "expressions": lambda: HEAD + "parameters:\n" + "".join(f"  p{k}: ={SUM}\n" for k in range(900)) + "bodies: {}\n",
    "names in expressions": lambda: HEAD + "parameters:\n" + "".join(map("  {}: 1\n".format, NAMES)) + f"  x: ={P}q\n",
    "bodies": lambda: HEAD + "bodies:\n" + "".join(f"  b{k}: {{}}\n" for k in range(30_000)),
    "strange bodies": lambda: HEAD + "bodies:\n" + "".join(f"  b{k}: {{nass: 1}}\n" for k in range(8_000)),
    "states": lambda: HEAD + STAR + "states:\n" + "".join(f"  s{k}: {{}}\n" for k in range(20_000)),
    "cuts": lambda: HEAD + STAR + f"cut: [{', '.join(['j1'] * 60_000)}]\n",
    "bodies of a force": lambda: HEAD + STAR + f"forces: {{f: {{type: user, bodies: [{', '.join(['b1'] * 30_000)}], "
    f"wrenches: [{', '.join(['{}'] * 30_000)}]}}}}\n",
    "a name that a terminal obeys": lambda: HEAD.replace("x", r'"\e[31m"') + STAR,
    "a long name": lambda: HEAD + f"bodies: {{? {'x' * 2_000_000} : {{nass: 1}}}}\n",
    "a long section": lambda: HEAD + f"? {'x' * 2_000_000}\n: 1\n",
    "NUL": lambda: b"cardan: 1\nname: a\0b\n",
    "an escaped NUL": lambda: HEAD.replace("x", r'"a\0b"') + "bodies: {a: {mass: nan}}\n",
    "half a character": lambda: HEAD.replace("x", r'"\ud800"') + "bodies: {}\n",
    "not UTF-8": lambda: b"cardan: 1\nname: \xe9\n",
    "UTF-16": lambda: HEAD.encode("utf-16"),
    "UTF-16 without a mark": lambda: HEAD.encode("utf-16-le"),
    "aliases": lambda: HEAD + "a: &a [x, x]\nbodies: *a\n",
    "a merge": lambda: HEAD + "bodies: {<<: {a: 1}}\n",
    "code": lambda: HEAD + "bodies: !!python/object/apply:os.system [ls]\n",
    "nesting": lambda: HEAD + "bodies: " + "[" * 2_000_000,
    "indentation": lambda: HEAD + "".join(" " * k + "a:\n" for k in range(4000)),
    "keys": lambda: HEAD + "? " * 4_000_000,
    "quotes": lambda: HEAD + "name: '" + "''" * 4_000_000,
    "comments": lambda: "#\n" * 4_500_000,
    "documents": lambda: "---\n" * 2_000_000,
    "directives": lambda: "%TAG !a! tag:a,1:\n" * 100_000 + "---\n" + HEAD,
    "too large": lambda: " " * (11 * 2**20),
    "gzip": lambda: gzip.compress(bytes(10**7)),
}  # fmt: skip
SUM = "*".join(["(1" + "+1" * 40 + ")"] * 50)
MESHES: dict[str, tuple[str, Attack]] = {
    "triangles": ("stl", lambda: bytes(80) + struct.pack("<I", 330_000) + bytes(50 * 330_000)),
    "a false count": ("stl", lambda: bytes(80) + b"\xff" * 54),
    "empty": ("stl", lambda: b""),
    "signalling NaN": ("stl", lambda: bytes(80) + struct.pack("<I", 4) + (b"\x01\x00\xa0\x7f" * 12 + bytes(2)) * 4),
    "negative counts": ("msh", lambda: struct.pack("<4i", -1, -1, -1, 2**31 - 1)),
    "no vertices": ("msh", lambda: struct.pack("<4i", 0, 0, 0, 0)),
    "vertices": ("obj", lambda: "v 0 0 0\n" * 600_000),
    "a hull": ("msh", lambda: struct.pack("<4i", 160_000, 0, 0, 0) + bytes(12 * 160_000)),
    "lines": ("obj", lambda: "\n" * 2_000_000),
    "a polygon": ("obj", lambda: "v 0 0 0\n" * 4 + "f" + " 1" * 2_000_000),
    "faces": ("obj", lambda: "v 0 0 0\n" * 4 + "f 1 2 3\n" * 500_000),
    "a long index": ("obj", lambda: "v 0 0 0\n" * 4 + "f 1 2 " + "9" * 2_000_000),
    "a long number": ("obj", lambda: "v 0 0 " + "9" * 2_000_000),
    "a far vertex": ("obj", lambda: "v 1e999 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 2 3\n"),
    "too large": ("obj", lambda: "#" * (17 * 2**20)),
}


def put(path: Path, attack: Attack) -> Path:
    data = attack()
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return path


def links(folder: Path) -> dict[str, Path]:
    """Files that are no files, or lie elsewhere."""
    outside = folder.parent / "outside"
    outside.mkdir()
    (outside / "secret.xml").write_text("<mujoco><worldbody><body/></worldbody></mujoco>")
    (outside / "secret.stl").write_bytes(bytes(84))
    found: dict[str, Path] = {}
    for suffix in ("urdf", "yaml", "xml"):
        for what, to in (("loop", f"loop.{suffix}"), ("device", "/dev/zero"), ("nowhere", "/nowhere")):
            (folder / f"{what}.{suffix}").symlink_to(to)
            found[f"{suffix}: a link to {what}"] = folder / f"{what}.{suffix}"
        os.mkfifo(folder / f"pipe.{suffix}")
        found[f"{suffix}: a pipe"] = folder / f"pipe.{suffix}"
    for suffix in ("xml", "stl"):
        (folder / f"out.{suffix}").symlink_to(outside / f"secret.{suffix}")
        (folder / f"zero.{suffix}").symlink_to("/dev/zero")
        if suffix == "stl":
            os.mkfifo(folder / "pipe.stl")
    names = ["out", "zero", "pipe", "loop", "..", ".", "C:/secret", "..\\\\secret", "/etc/secret", "x" * 5000]
    names += ["../outside/secret", "a/../../outside/secret"]
    for name in names:
        for suffix, text in (
            ("xml", '<include file="{}"/>'),
            ("stl", '<asset><mesh name="m" file="{}"/></asset>' + BODY),
        ):
            path = folder / f"refers{len(found)}.xml"
            path.write_text(f"<mujoco>{text.format(f'{name}.{suffix}')}</mujoco>")
            found[f"mjcf: {suffix} at {name[:30]}"] = path
    for k in range(600):
        rest = f'<worldbody><body name="b{k}"/></worldbody>' + "<worldbody/>" * 5
        (folder / f"chain{k}.xml").write_text(f'<mujoco><include file="chain{k + 1}.xml"/>{rest}</mujoco>')
    found["mjcf: a chain of includes"] = folder / "chain0.xml"
    for k in range(6):
        (folder / f"part{k}.xml").write_text(f"<mujoco>{'<worldbody/>' * 20_000}</mujoco>")
    parts = "".join(f'<include file="part{k}.xml"/>' for k in range(6))
    (folder / "parts.xml").write_text(f"<mujoco>{parts}</mujoco>")
    found["mjcf: large includes"] = folder / "parts.xml"
    return found


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list]:
    """What loading each file said, and took."""
    folder = tmp_path_factory.mktemp("hostile") / "in"
    folder.mkdir()
    files: dict[str, Path] = {}
    for kind, suffix, attacks in (("urdf", "urdf", URDF), ("mjcf", "xml", MJCF), ("yaml", "yaml", NATIVE)):
        for k, (what, attack) in enumerate(attacks.items()):
            files[f"{kind}: {what}"] = put(folder / f"{kind}{k}.{suffix}", attack)
    for k, (what, (suffix, attack)) in enumerate(MESHES.items()):
        put(folder / f"mesh{k}.{suffix}", attack)
        files[f"mesh: {what}"] = folder / f"of_mesh{k}.xml"
        asset = f'<asset><mesh name="m" file="mesh{k}.{suffix}"/></asset>'
        files[f"mesh: {what}"].write_text(f"<mujoco>{asset}{BODY}</mujoco>")
    files |= links(folder)
    good = put(
        folder / "good.yaml",
        lambda: HEAD + "bodies: {a: {mass: 1}}\njoints: {j: {type: rigid, parent: ground, child: a}}\n",
    )
    done = subprocess.run(
        [sys.executable, "-c", LOAD, good, *files.values()], capture_output=True, text=True, timeout=120, check=False
    )
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(rows) == len(files), f"{list(files)[len(rows)]}: the process ended: {done.stderr[-500:]}"
    return {name: row[1:] for name, row in zip(files, rows, strict=True)}


def test_every_attack_is_refused_in_time_and_space(told: dict[str, list]) -> None:
    wrong = []
    first = next(iter(told.values()))[2]
    for name, (said, seconds, _, peak) in told.items():
        if said.startswith("CRASH") or said == "read" or len(said) > 5000 or OBEYED.search(said.replace("\n", "")):
            wrong.append(f"{name}: {said[:200]}")
        if seconds > SECONDS or peak - first > MEGABYTES:
            wrong.append(f"{name}: {seconds:.2f} s, {peak - first:.0f} MB")
    assert not wrong, "\n".join(wrong)
