"""Native files that are wrong: each is refused with its line, its element, the rule and a likely fix."""

import re
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import cardan as cd
from cardan.io.yaml.read import SIZE_LIMIT, read_yaml

GOOD = """cardan: 1
name: demo
parameters:
  length: 400 mm
bodies:
  rod:
    mass: 1 kg
    com: [=length/2, 0, 0]
    inertia: [0.1, 0.1, 0.1]
  ball: {mass: 1, inertia: {sphere: {radius: 1 cm}}}
joints:
  A: {type: revolute, axis: z, parent: ground, child: rod, start: 30 deg}
  B: {type: spherical, parent: rod, child: ball}
forces:
  s: {type: spring, body1: rod, body2: ground, stiffness: 10, length: 0.1}
  d: {type: drive, joint: A, effort: =sin(t)}
constraints:
  m: {type: motion, joint: A, value: =t}
"""

# what is replaced, by what, and the sentence
WRONG = [
    ("mass: 1 kg", "mass: 12 mm", "line 7: body 'rod': mass must be a mass (kg), and '12 mm' is a length (m)"),
    ("mass: 1 kg", "mass: no", "line 7: body 'rod': mass must be a mass (kg), got 'no', a word"),
    ("mass: 1 kg", "mass: .nan", "line 7: body 'rod': mass must be a mass (kg), got '.nan'; it must be finite: "),
    ("mass: 1 kg", "mass: -.inf", "line 7: body 'rod': mass must be a mass (kg), got '-.inf'; it must be finite: "),
    ("mass: 1 kg", "mass: 1,5", "line 7: body 'rod': mass must be a mass (kg), got '1,5'; write a point before"),
    ("mass: 1 kg", "mass: 1_000", "line 7: body 'rod': mass must be a mass (kg), got '1_000'; leave out the _"),
    ("mass: 1 kg", "mass: 010", "got '010'; leave out the leading zeros, which could mean an octal number"),
    ("mass: 1 kg", "mass: 1:30", "line 7: body 'rod': mass cannot be '1:30': ':30' is not a unit"),
    ("mass: 1 kg", "mass: 0x10", "line 7: body 'rod': mass cannot be '0x10'"),
    ("mass: 1 kg", "mass: 1e999", "line 7: body 'rod': mass cannot be '1e999': 1e999 is beyond the range of numbers"),
    ("mass: 1 kg", "mass: -1", "line 7: body 'rod': mass is negative: -1 kg"),
    ("mass: 1 kg", "mass:", "line 7: body 'rod': mass must be a mass (kg), got nothing; give it, or leave the line"),
    ("mass: 1 kg", "mass: [1]", "line 7: body 'rod': mass must be a mass (kg), got a list of 1"),
    (
        "mass: 1 kg",
        "mass: 1 kgg",
        "body 'rod': mass cannot be '1 kgg': 'kgg' is not a unit; did you mean 'kg'?",
    ),
    ("mass: 1 kg", "mass: 1 N/m s", "could mean two things; put what is below the line in parentheses"),
    ("mass: 1 kg", "mass: 1/2", "is not a unit: '2' does not belong in it; a calculation begins with ="),
    ("mass: 1 kg", "mas: 1", "line 7: body 'rod': there is no entry 'mas'; did you mean 'mass'?"),
    ("mass: 1 kg", "mass: =length", "line 7: body 'rod': mass must be a mass (kg), and '=length' is a length (m)"),
    (
        "mass: 1 kg",
        "mass: =2*lenght",
        "line 7, column 14: body 'rod': mass: 'lenght' is neither a parameter nor a variable here; did you mean "
        "'length'?\n    =2*lenght\n       ^^^^^^",
    ),
    ("mass: 1 kg", "mass: =__import__('os').system('x')", "'__import__' is not a function of this format"),
    ("mass: 1 kg", "mass: =open.read", "the character '.' has no place in an expression; it has no attributes"),
    ("mass: 1 kg", "mass: &a 1", "line 7: anchors and aliases are not read; give the number a name under 'parameters'"),
    ("mass: 1 kg", "mass: *a", "line 7: anchors and aliases are not read"),
    ("mass: 1 kg", "mass: !!python/name:os.system 1", "line 7: the tag 'tag:yaml.org,2002:python/name:os.system' is"),
    ("mass: 1 kg", "<<: {mass: 1}", "line 7: body 'rod': there is no entry '<<'"),
    ("mass: 1 kg", "mass: 1\n    mass: 2", "line 8: 'mass' is given twice, first in line 7"),
    ("    mass: 1 kg", "\tmass: 1", "line 7: it is indented with a tab; YAML wants blanks"),
    ("mass: 1 kg", "mass: \0", "line 7: it contains the character NUL"),
    ("mass: 1 kg", "mass: \x07", "the YAML is malformed"),
    ("mass: 1 kg", "? [a, b]\n    : 2", "line 7: a name should be here, not a list of 2"),
    ("=length/2, 0, 0", "0, 0", "line 8: body 'rod': com must be 3 numbers in brackets, [..., ..., ...], got 2"),
    (
        "=length/2, 0, 0",
        "=min(length, 1), 0",
        "com[0]: ')' is missing before the end; put a calculation that",
    ),
    ("=length/2, 0, 0", "=min(length, 1), 0, 0", "got 4; put a calculation that has a comma in quotes"),
    ("=length/2, 0, 0", "0, 0, 1 kg", "line 8: body 'rod': com[2] must be a length (m), and '1 kg' is a mass (kg)"),
    ("[0.1, 0.1, 0.1]", "[10, 1, 1]", "line 9: body 'rod': inertia about the centre of mass breaks the triangle rule"),
    ("[0.1, 0.1, 0.1]", "[1, 1]", "line 9: body 'rod': inertia must be 3 principal values, 6 entries"),
    ("[0.1, 0.1, 0.1]", "{rod: {lenght: 1}}", "line 9: body 'rod': inertia of a rod has no 'lenght'; did you mean"),
    ("[0.1, 0.1, 0.1]", "{rodd: {length: 1}}", "line 9: body 'rod': inertia has no solid 'rodd'; did you mean 'rod'?"),
    ("[0.1, 0.1, 0.1]", "{rod: {}}", "line 9: body 'rod': inertia of a rod needs length; give it"),
    ("[0.1, 0.1, 0.1]", "{rod: {length: -1}}", "length must be positive, got -1"),
    ("ball: {", "rod: {", "line 10: 'rod' is given twice, first in line 6"),
    (
        "{mass: 1, inertia: {sphere: {radius: 1 cm}}}",
        "{}",
        "line 10: body 'ball': it, with all it carries, has no",
    ),
    ("type: revolute", "type: revolut", "line 12: joint 'A': type must be one of"),
    ("type: revolute, ", "", "line 12: joint 'A': 'type' must be given; it is one of rigid, revolute"),
    ("axis: z", "axis: w", "line 12: joint 'A': axis must be one of x, y, z, -x, -y, -z, got 'w'"),
    ("axis: z", "axis: [0, 0, 0]", "line 12: joint 'A': axis (0.0, 0.0, 0.0) has no direction"),
    ("child: rod", "child: rdo", "line 12: joint 'A': child 'rdo' is not a body; did you mean 'rod'?"),
    ("start: 30 deg", "start: 30 mm", "line 12: joint 'A': start must be an angle (rad), and '30 mm' is a length (m)"),
    ("start: 30 deg", "start: 60 rpm", "start must be an angle (rad), and '60 rpm' is an angular velocity (rad/s)"),
    ("start: 30 deg", "start: [1, 2]", "line 12: joint 'A': start must be 1 number in brackets, [...], got 2"),
    ("type: revolute", "type: screw", "line 12: joint 'A': 'pitch' must be given"),
    ("type: revolute", "type: screw, pitch: 5 mm", "pitch must be a pitch (m/rad), and '5 mm' is a length (m)"),
    ("child: ball", "child: ball, at: {postion: [1, 2, 3]}", "line 13: joint 'B': at has no entry 'postion'; did"),
    ("child: ball", "child: ball, at: {rpy: [1, 2, 3], quaternion: [1, 0, 0, 0]}", "give the rotation once"),
    ("child: ball", "child: ball, data: {lower: 3 kg}", "line 13: joint 'B': data.lower must be an angle (rad)"),
    ("child: ball", "child: ball, start: [2, 0, 0, 0]", "line 13: joint 'B': start: quaternion [2., 0., 0., 0.] has"),
    ("stiffness: 10", "stiffness: 10 N*m", "line 15: spring 's': stiffness must be a stiffness (N/m), and '10 N*m' is"),
    ("stiffness: 10, ", "", "line 15: spring 's': 'stiffness' must be given"),
    ("stiffness: 10", "stiffness: -10", "line 15: spring 's': stiffness must not be negative, got -10"),
    ("type: drive", "type: drvie", "line 16: force 'd': type must be one of"),
    ("joint: A, effort", "joint: Q, effort", "line 16: drive 'd': joint 'Q' is not one of the joints so far"),
    (
        "=sin(t)",
        "=sin(t",
        "column 44: drive 'd': effort: ')' is missing before the end\n    =sin(t\n          ^",
    ),
    ("=sin(t)", "=2 t", "line 16, column 41: drive 'd': effort: unit 't': "),
    ("=sin(t)", '"=q[1]"', "line 16, column 40: drive 'd': effort: 'q' has 1 entries, counted from 0"),
    ("=sin(t)", "=t[0]", "line 16"),
    ("=sin(t)", "[1, 2]", "line 16: drive 'd': effort must have a number or expression for each rate, 1, got 2"),
    ("=sin(t)", "5 kg", "line 16: drive 'd': effort must be a moment (N*m), and '5 kg' is a mass (kg)"),
    ("=sin(t)", "=2*length", "line 16: drive 'd': effort must be a moment (N*m), and '=2*length' is a length (m)"),
    ("=sin(t)}", "=x, where: {t: 1}}", "line 16: drive 'd': where.t cannot have this name: that is a variable"),
    ("=sin(t)}", "=x, where: {length: 1}}", "where.length cannot have this name: that is a parameter"),
    ("=t}", "=sqrt(t)}", "line 18: motion 'm': its rate at t = 0 is inf"),
    ("=t}", "=t + q}", "line 18, column 43: motion 'm': value: 'q' is neither a parameter nor a variable here"),
    ("joint: A, value", "joint: B, value", "line 18: motion 'm': joint 'B' (spherical) has 3 coordinates"),
    ("  s: {type", "  d: {type", "line 16: 'd' is given twice, first in line 15"),
    ("cardan: 1", "cardan: 2", "line 1: cardan must be 1, got '2'; it is the format's version"),
    ("cardan: 1\n", "", "line 1: the file does not say 'cardan: 1'; is it a mechanism of this format?"),
    ("name: demo\n", "", "file: 'name' must be given"),
    ("bodies:\n", "bodys:\n", "line 5: file: there is no entry 'bodys'; did you mean 'bodies'?"),
    ("length: 400 mm", "t: 1", "line 4: parameter 't': value cannot have this name: that is a variable of functions"),
    (
        "length: 400 mm",
        "sin: 1",
        "line 4: parameter 'sin': value cannot have this name: that is a name of the",
    ),
    ("length: 400 mm", "length: =2*width\n  width: 1", "line 4: parameter 'length': value uses 'width', which is not"),
    ("length: 400 mm", "length: =1/0", "line 4, column 12: parameter 'length': value: '/' of 1, 0 has no finite value"),
    ("name: demo", "name: [x", "the YAML is malformed"),
    ("name: demo", "name: x\n---\nname: y", "line 3: a second document begins here; one file describes one mechanism"),
    ("constraints:\n", "cut: [Z]\nconstraints:\n", "mechanism 'demo': cut 'Z' is not a joint"),
    ("constraints:\n", "snapping: 1\nconstraints:\n", "mechanism 'demo': snapping must be from 0 to 0.001, got 1"),
    ("constraints:\n", "free: [rod.mas]\nconstraints:\n", "mas"),
    (
        "  m: {type: motion, joint: A, value: =t}",
        "  m: {type: coupling, coefficients: {A: 1 m, B: 1}}",
        "line 18: coupling 'm': joint 'B' (spherical) has 3 coordinates; it must have one",
    ),
]


def refusal(text: str) -> str:
    with pytest.raises(cd.FileError) as error:
        read_yaml(text).build()
    return str(error.value)


def test_the_good_file_is_good() -> None:
    model = read_yaml(GOOD).build()
    assert model.body("rod").com[0] == 0.2
    assert model.joint("A").start == pytest.approx(0.5235987755982988)


@pytest.mark.parametrize(("old", "new", "sentence"), WRONG, ids=[f"{new[:30]!r}" for _, new, _ in WRONG])
def test_a_wrong_file_is_refused(old: str, new: str, sentence: str) -> None:
    assert GOOD.count(old) >= 1
    said = refusal(GOOD.replace(old, new, 1))
    assert said.startswith("YAML text: ")
    assert sentence in said


PIECES = (
    "", " ", "\n", ":", "=", "[", "]", "{", "}", "0", "-", "1e400", ".nan", "no", "t", "q[0]", "mm", ", ", '"', "&a ",
    "# ", "!!x ", "\t", "(", ")", "=t", "/", "sin(", "|", "%", "@", "A", "rod", "[1, 2, 3]", "{}", "1 kg", "\U0001f4ce",
)  # fmt: skip


@given(st.integers(0, len(GOOD)), st.integers(0, 12), st.sampled_from(PIECES))
def test_any_damage_is_explained(start: int, length: int, piece: str) -> None:
    try:
        read_yaml(GOOD[:start] + piece + GOOD[start + length :]).build()
    except cd.FileError as error:
        assert str(error).startswith("YAML text: ")


def test_products_of_a_coupling_that_differ_in_unit_are_refused() -> None:
    said = refusal(
        "cardan: 1\nname: x\nbodies:\n  a: {mass: 1, inertia: [1, 1, 1]}\n  b: {mass: 1, inertia: [1, 1, 1]}\njoints:\n"
        "  A: {type: revolute, parent: ground, child: a}\n  B: {type: prismatic, parent: ground, child: b}\n"
        "constraints:\n  c: {type: coupling, coefficients: {A: 1 m/rad, B: 2 s}}\n"
    )
    assert "line 10: coupling 'c': coefficients of 'A' and 'B' give products in different units" in said


JOINTS = """cardan: 1
name: x
bodies: {a: {mass: 1, inertia: [1, 1, 1]}, b: {mass: 1, inertia: [1, 1, 1]}, c: {mass: 1, inertia: [1, 1, 1]}}
joints:
  R: {type: revolute, parent: ground, child: a, data: {lower: -90 deg, velocity: 60 rpm, effort: 3 N*m}}
  P: {type: prismatic, parent: ground, child: b, data: {upper: 3 mm, velocity: 2 m/s, effort: 1 kN}}
  C: {type: cylindrical, parent: ground, child: c, start: [30 deg, 5 mm]}
forces:
  f: """


@pytest.mark.parametrize(
    ("force", "sentence"),
    [
        ("{type: torsion, joint: R, stiffness: 5 N*m/rad, rest: 30 deg}", ""),
        ("{type: torsion, joint: P, stiffness: 5 N/mm, rest: 1 cm}", ""),
        ("{type: torsion, joint: C, stiffness: [5 N*m/rad, 5 N/mm]}", ""),
        ("{type: torsion, joint: C, stiffness: 5 N/mm}", "stiffness must be a torsional stiffness (N*m/rad)"),
        ("{type: torsion, joint: P, stiffness: 5 N*m}", "stiffness must be a stiffness (N/m), and '5 N*m' is a moment"),
        ("{type: torsion, joint: R, rest: 5 mm}", "rest must be an angle (rad), and '5 mm' is a length (m)"),
        ("{type: friction, joint: C, coulomb: [1 N*m, 2 N], smoothing: [1 rad/s, 1 mm/s]}", ""),
        ("{type: friction, joint: R, viscous: 1 N*s/m}", "viscous must be a torsional damping (N*m*s/rad)"),
        ("{type: drive, joint: C, effort: [1 N*m, 2 N]}", ""),
        ("{type: drive, joint: C, effort: [1 N, 2 N]}", "effort[0] must be a moment (N*m), and '1 N' is a force (N)"),
        ("{type: drive, joint: P, effort: '=5 [N*m]'}", "effort must be a force (N), and '=5 [N*m]' is a moment (N*m)"),
        ("{type: wrench, body: a, moment: [1 N, 0, 0]}", "moment[0] must be a moment (N*m), and '1 N' is a force (N)"),
        ("{type: user, bodies: [a], wrenches: [{}, {}]}", "has 1 bodies and 2 wrenches; give one for each"),
        ("{type: bushing, body1: a, body2: b, stiffness: [1 N*m/rad, 1, 1, 2 N/m, 2, 2]}", ""),
        ("{type: bushing, body1: a, body2: b, stiffness: [1 N/m, 1, 1, 2, 2, 2]}", "stiffness[0] must be a torsional"),
    ],
)
def test_units_along_a_joint_follow_its_type(force: str, sentence: str) -> None:
    if sentence:
        said = refusal(JOINTS + force + "\n")
        assert sentence in said
        assert re.search(r": line 9: [a-z ]+ 'f': ", said)
    else:
        assert read_yaml(JOINTS + force + "\n").build().joint("R").data.velocity == pytest.approx(6.283185307179586)


HEAD = "cardan: 1\nname: x\n"
HOSTILE: dict[str, Callable[[], str]] = {
    "alias bomb": lambda: HEAD + "a: &a [x, x]\n" + "".join(f"b{i}: &b{i} [*a, *a]\n" for i in range(30)),
    "lists in lists": lambda: HEAD + "bodies: " + "[" * 5_000_000,
    "tables in tables": lambda: HEAD + "bodies: " + "{a: " * 2_000_000,
    "dashes": lambda: "- " * 5_000_000,
    "many bodies": lambda: HEAD + "bodies:\n" + "".join(f"  b{i}: {{mass: 1}}\n" for i in range(400_000)),
    "a long number": lambda: HEAD + "bodies: {a: {mass: " + "1" * 9_000_000 + "}}",
    "a long unit": lambda: HEAD + "bodies: {a: {mass: 1 " + "k" * 9_000_000 + "}}",
    "a long text": lambda: HEAD + 'bodies: "' + "x" * 9_000_000,
    "empty lines": lambda: "\n" * 9_000_000,
    "a long sum": lambda: HEAD + "gravity: [=" + "1+" * 9_000 + "1, 0, 0]\nbodies: {}",
    "parentheses": lambda: HEAD + "gravity: [=" + "(" * 9_000 + ", 0, 0]\nbodies: {}",
    "towers of powers": lambda: HEAD + "parameters: {a: =" + "9^" * 90 + "9}\nbodies: {}",
    "a far exponent": lambda: HEAD + "parameters: {a: 0e999999999 mm, b: 1e-999999999 mm}\nbodies: {}",
}


@pytest.mark.parametrize("what", HOSTILE)
def test_a_hostile_file_is_refused_at_once(what: str, tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_text(HOSTILE[what]())
    before = time.process_time()
    with pytest.raises(cd.FileError) as error:
        cd.load(path)
    assert time.process_time() - before < 1
    assert str(path) in str(error.value)
    assert len(str(error.value)) < 1000


def test_a_huge_file_is_refused_by_its_size(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    with path.open("wb") as file:
        file.truncate(2**30)
    with pytest.raises(cd.FileError):
        cd.load(path)  # and the modules that it needs
    before = time.process_time()
    with pytest.raises(cd.FileError, match=f"has 1024 MiB; at most {SIZE_LIMIT // 2**20} are read"):
        cd.load(path)
    assert time.process_time() - before < 0.1


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (b"", "the file is empty"),
        (b"# only a comment\n", "the file has no content but comments"),
        (b"cardan: 1\nname: \xff\n", "line 2: byte 0xff is not UTF-8 text"),
        (b"- a\n- b\n", "line 1: the file must be a table of sections"),
        (b"just words\n", "line 1: the file must be a table of sections"),
        (b"\x89PNG\r\n\x1a\n", "is not UTF-8 text"),
    ],
)
def test_what_is_no_native_file_is_refused(data: bytes, sentence: str, tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_bytes(data)
    with pytest.raises(cd.FileError, match=re.escape(sentence)):
        cd.load(path)


def test_a_missing_file_says_so(tmp_path: Path) -> None:
    with pytest.raises(cd.FileError, match=r"x\.yaml: there is no such file$"):
        cd.load(tmp_path / "x.yaml")


def test_arguments_for_another_format_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_text(GOOD)
    with pytest.raises(cd.InputError, match=r"root is for \.urdf files"):
        cd.load(path, root="free")
    with pytest.raises(cd.InputError, match=r"mimic is for \.urdf files"):
        cd.load(path, mimic=False)
    with pytest.raises(cd.InputError, match=r"parameters is for \.yaml, \.yml files"):
        cd.load("arm.urdf", parameters={"a": 1})
    with pytest.raises(cd.FileError, match="parameter 'lenght' is not in the file; did you mean 'length'"):
        cd.load(path, parameters={"lenght": 1})
    with pytest.raises(cd.FileError, match="parameter 'length': value given to load must be"):
        cd.load(path, parameters={"length": "x"})
