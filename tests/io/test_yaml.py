"""The native format: what is saved is what was built, to the last bit; the catalogue as files; the schema current."""

import importlib.util
import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cardan as cd
from cardan.errors import OBEYED
from cardan.io.load import mechanism_texts, write_mechanisms
from cardan.io.yaml.read import read_yaml
from cardan.io.yaml.write import write_yaml
from cardan.mechanisms import CATALOGUE, chain, four_bar
from cardan.mechanisms import pendulum as pendulum_of

from ..graphs import graph_mechanism
from ..trees import Rng, random_pose, seeds, tree_mechanism

pytestmark = pytest.mark.usefixtures("quick_code")

ROOT = Path(__file__).resolve().parents[2]


ROUNDING = 1e-13  # of what NumPy computes when a mechanism is made: it differs from processor to processor


def same(a: cd.Model, b: cd.Model, *, rounding: float = 0.0) -> None:
    """Assert that two models are the same in all that they say; with `rounding` their numbers up to that."""
    assert rounding or a.key == b.key

    def near(x: Any, y: Any) -> None:
        size = np.maximum(1, np.abs(np.asarray(y, dtype=float)))
        assert x.shape == y.shape and (np.abs(np.asarray(x - y, dtype=float)) <= rounding * size).all()

    for what in ("name", "body_names", "joint_names", "frame_names", "notes", "cuts", "snapping"):
        assert getattr(a, what) == getattr(b, what), what
    assert a.parameters.names == b.parameters.names
    for x, y in zip(a.joints, b.joints, strict=True):
        assert x.data == y.data
        assert (x.start is None) == (y.start is None)
        assert x.kind.name == y.kind.name
        if x.start is not None:
            near(x.start, y.start)
        near(x.at.matrix, y.at.matrix)
        near(x.child_at.matrix, y.child_at.matrix)
    for x, y in zip(a.bodies, b.bodies, strict=True):
        near(np.array(x.mass), np.array(y.mass))
        near(x.com, y.com)
        near(x.inertia, y.inertia)
    for x, y in zip(a.frames, b.frames, strict=True):
        assert x.body == y.body
        near(x.at.matrix, y.at.matrix)
    for x, y in zip(a.forces, b.forces, strict=True):
        for name in {*x.numbers, *y.numbers}:
            near(x.numbers[name], y.numbers[name])
    for x, y in zip(a.couplings, b.couplings, strict=True):
        near(x.coefficients, y.coefficients)
    assert [(f.name, f.kind.name, f.on) for f in a.forces] == [(f.name, f.kind.name, f.on) for f in b.forces]
    assert [(c.name, c.what, c.joints) for c in a.couplings] == [(c.name, c.what, c.joints) for c in b.couplings]


def again(thing: cd.Mechanism | cd.Model) -> cd.Model:
    return read_yaml(write_yaml(thing)).build()


# The catalogue.


@pytest.mark.parametrize("name", CATALOGUE)
def test_a_file_of_the_catalogue_is_the_mechanism(name: str) -> None:
    same(read_yaml(mechanism_texts()[name]).build(), CATALOGUE[name]().build(), rounding=ROUNDING)


@pytest.mark.parametrize("name", CATALOGUE)
def test_the_catalogue_is_saved_without_loss(name: str) -> None:
    mechanism = CATALOGUE[name]()
    model = mechanism.build()
    same(again(mechanism), model)
    same(again(model), model)


def test_the_catalogue_is_written_to_a_folder(tmp_path: Path) -> None:
    paths = write_mechanisms(tmp_path / "mine")
    assert sorted(path.stem for path in paths) == sorted(CATALOGUE)
    with pytest.raises(cd.FileError, match="there is such a file already; pass overwrite=True"):
        write_mechanisms(tmp_path / "mine")
    assert write_mechanisms(tmp_path / "mine", overwrite=True) == paths


def test_parameters_of_a_file_are_replaced(tmp_path: Path) -> None:
    write_mechanisms(tmp_path)
    read = cd.load(tmp_path / "four_bar.yaml", parameters={"crank": "30 cm"})
    same(read, four_bar(crank=0.3).build(), rounding=ROUNDING)
    pendulum = cd.load(tmp_path / "pendulum.yaml", parameters={"length": 2}, gravity=(0, 0, -1.62))
    assert pendulum.body("rod").com[2] == -1
    assert pendulum.gravity[2] == -1.62


# Random mechanisms.

NAMES = st.text(min_size=1, max_size=12).filter(lambda s: s.strip() and not OBEYED.search(s))
LAWS: list[Callable[..., Any]] = [
    lambda t, q, v: -2.5 * v,
    lambda t, q, v: ca.sin(3 * t) * v - ca.if_else(t > 1, 2, 3) * ca.tanh(v / 0.1),
    lambda t, q, v: [ca.exp(-t) * (k + 1) for k in range(v.shape[0])],
    lambda t, q, v: t**2 * v**3 + q[0] / 3,
    lambda t, q, v: np.arange(v.shape[0], dtype=float),
]


def decorate(m: cd.Mechanism, rng: Rng, names: list[str]) -> None:
    """Add forces, motions, couplings, frames, notes and joint data of random kinds."""
    bodies = [body.name for body in m.bodies]
    joints = {joint.name: joint.kind for joint in m.joints if joint.kind.nv}
    plain = [name for name, kind in joints.items() if kind.nv == 1]
    take = iter(names)
    a, b = rng.choice([*bodies, m.ground], 2, replace=False)
    points = {"at1": rng.standard_normal(3), "at2": rng.standard_normal(3)}
    m.spring(next(take), a, b, stiffness=rng.uniform(0, 100), length=rng.uniform(0, 1), **points)
    m.damper(next(take), a, b, damping=rng.uniform(0, 9), at2=rng.standard_normal(3))
    square = rng.standard_normal((6, 6))
    stiffness = [square @ square.T, rng.uniform(0, 9, 6), 3.0][rng.integers(3)]
    m.bushing(next(take), a, b, stiffness=stiffness, damping=rng.uniform(0, 1, 6), at1=random_pose(rng))
    m.wrench(next(take), bodies[0], rng.standard_normal(6), axes=["ground", "body"][rng.integers(2)])
    m.user_force(
        next(take), [bodies[0]],
        lambda t, poses, twists: [ca.vertcat(poses[0].rotation.T @ poses[0].position, -t * twists[0][3:])],
    )  # fmt: skip
    joint = list(joints)[rng.integers(len(joints))]
    m.drive(next(take), joint, LAWS[rng.integers(len(LAWS))])
    m.friction(next(take), joint, viscous=rng.uniform(0, 1, joints[joint].nv), coulomb=rng.uniform(0, 1))
    for name in plain[:2]:
        m.torsion(next(take), name, stiffness=rng.uniform(0, 9), rest=rng.standard_normal(), damping=1e-3)
    if plain:
        m.motion(next(take), plain[0], [0.25, lambda t: ca.cos(2 * t) / 3, lambda t: 0.5][rng.integers(3)])
        m.couple(next(take), dict(zip(plain, rng.uniform(1, 2, len(plain)), strict=True)), offset=rng.uniform(-1, 1))
    m.frame(next(take), bodies[-1], at=random_pose(rng))
    m.note(next(take))


def renamed(m: cd.Mechanism, rng: Rng) -> cd.Mechanism:
    """A body and a joint with data and names of any kind besides."""
    extra = m.body('no: "yes" #1', mass=1.0, com=rng.standard_normal(3), inertia=(1.0, 1.0, 1.0))
    data = cd.JointData(lower=-1.5, upper=rng.uniform(), effort=3.0, damping=1e-300, mimic=("x", -2.0, 0.1))
    kind = [cd.Screw(axis=(0, -1, 0), pitch=rng.uniform()), cd.Planar(), cd.Free()][rng.integers(3)]
    m.joint("007", kind, m.ground, extra, at=random_pose(rng), data=data)
    return m


@settings(max_examples=10)
@given(seeds, st.booleans(), st.lists(NAMES, min_size=20, max_size=20, unique=True))
def test_random_mechanisms_are_saved_without_loss(seed: int, loops: bool, names: list[str]) -> None:
    rng = np.random.default_rng(seed)
    m = renamed(graph_mechanism(seed % 1000) if loops else tree_mechanism(seed % 1000), rng)
    decorate(m, rng, names)
    model = m.build()
    text = write_yaml(m)
    assert write_yaml(model) == text
    same(read_yaml(text).build(), model)


def test_cuts_snapping_and_free_numbers_are_saved() -> None:
    m = four_bar()
    for cut in ("A", "B", "C", "D"):
        model = m.build(cut=[cut], snapping=0.0).free("crank.mass", "gravity")
        assert [model.joints[j].name for j in model.cuts] == [cut]
        same(again(model), model)
    m.cut, m.snapping = ("B",), 1e-6
    same(again(m), m.build(cut=["B"], snapping=1e-6))
    heavy = model.at({"crank.mass": 3.0})
    assert again(heavy).body("crank").mass == 3.0
    with pytest.raises(cd.InputError, match="save: model 'four_bar' has values of batch shape"):
        write_yaml(model.at({"crank.mass": [1.0, 2.0]}))


def test_a_body_judged_with_its_link_is_saved_with_its_note_once() -> None:
    m = pendulum_of()
    m.body("flat", mass=1e-3, inertia=(1.0, 1e-3, 1e-3), judge="link")
    m.body("heavy", mass=100.0, inertia=(50.0, 50.0, 50.0))
    m.joint("a", cd.Rigid(), "rod", "flat")
    m.joint("b", cd.Rigid(), "rod", "heavy")
    model = m.build()
    assert len(model.notes) == 1
    same(again(model), model)
    same(again(m), model)


def test_a_robot_is_saved_without_loss(tmp_path: Path) -> None:
    model = cd.load(ROOT / "tests" / "data" / "arm.urdf")
    cd.save(model, tmp_path / "arm.yaml")
    same(cd.load(tmp_path / "arm.yaml"), model)


def test_signs_of_zeros_survive() -> None:
    m = cd.Mechanism("zeros", gravity=(-0.0, 0.0, -0.0))
    m.body("a", mass=1.0, com=(-0.0, 0.0, -0.0), inertia=[[1, -0.0, 0], [-0.0, 1, 0], [0, 0, 1]])
    turn = np.array([[-0.0, -1.0, 0.0], [1.0, -0.0, -0.0], [0.0, 0.0, 1.0]])
    m.joint("j", cd.Spherical(), m.ground, "a", at=cd.Pose((-0.0, 1.0, 2.0), rotation=turn), start=(1, -0.0, 0, 0))
    same(again(m), m.build())


def test_laws_of_any_size_and_with_structural_zeros_are_saved() -> None:
    m = pendulum_of()

    def force(t: Any, poses: Any, twists: Any) -> list[Any]:
        wrench = ca.SX(6, 1)
        wrench[3] = t
        return [wrench]

    m.user_force("sparse", ["rod"], force)
    m.drive("none", "pivot", lambda t, q, v: ca.SX(1, 1))
    m.drive("long sum", "pivot", lambda t, q, v: sum(ca.sin(k * t) for k in range(1, 300)))
    m.drive("bush", "pivot", lambda t, q, v: balanced([ca.sin(k * t) for k in range(1, 600)]))
    same(again(m), m.build())


def balanced(terms: list[Any]) -> Any:
    half = len(terms) // 2
    return terms[0] if half == 0 else balanced(terms[:half]) * balanced(terms[half:])


def test_expressions_are_the_functions_that_they_say() -> None:
    """A file with expressions, and the builder with Python functions, give the same model."""
    m = pendulum_of()
    m.drive("motor", "pivot", lambda t, q, v: 5 * ca.sin(2 * t) - 0.1 * v + ca.if_else(q > 1, 2, 3))
    m.user_force("wind", "rod", lambda t, p, w: [[0, 0, 0, -p[0].position[0], p[0].rotation[0, 2] * t, w[0][5]]])
    m.motion("swing", "pivot", lambda t: ca.cos(t) / 4)
    text = """
forces:
  motor: {type: drive, joint: pivot, effort: "=amount*sin(2*t) - 0.1*v + if(1 < q, 2, 3)"}
  wind: {type: user, bodies: rod, wrenches: [{force: ["=-position1[0]", "=rotation1[0, 2]*t", "=twist1[5]"]}]}
constraints:
  swing: {type: motion, joint: pivot, value: =cos(t)/4}
"""
    file = mechanism_texts()["pendulum"].replace("parameters:\n", "parameters:\n  amount: 5 N*m\n")
    same(read_yaml(file + text).build(), m.build())


def test_constraints_of_the_users_own_are_saved() -> None:
    """On rates and on positions, of time and of several bodies, the ground among them."""
    m = cd.Mechanism("own constraints")
    for name in ("sleigh", "cart"):
        m.body(name, mass=1.0, inertia=(1.0, 1.0, 1.0))
        m.joint(f"under {name}", cd.Planar(), m.ground, name)
    m.constraint("edge", "sleigh", lambda t, poses, twists: twists[0][4])
    m.constraint("rod", ["sleigh", "cart"], lambda t, poses, twists: poses[0].position[0] - poses[1].position[1] - t)
    m.constraint("turn", ["cart", m.ground], lambda t, p, v: ca.sin(p[0].rotation[1, 0]) - t, unit="rad")
    same(again(m), m.build())
    assert write_yaml(m) == write_yaml(m.build())
    text = """
constraints:
  edge: {type: user, bodies: sleigh, value: "=twist1[4]"}
  rod: {type: user, bodies: [sleigh, cart], value: "=position1[0] - position2[1] - t"}
  turn: {type: user, bodies: [cart, ground], value: "=sin(rotation1[1, 0]) - t", unit: rad}
"""
    same(read_yaml(write_yaml(m).partition("\nconstraints:")[0] + text).build(), m.build())


def test_a_constraint_that_no_expression_says_is_refused(tmp_path: Path) -> None:
    m = pendulum_of()
    m.constraint("odd", "rod", lambda t, poses, twists: ca.erfinv(poses[0].position[0]))
    for what in (m, m.build()):
        with pytest.raises(cd.ModelError, match="constraint 'odd': its function cannot be written as expressions"):
            cd.save(what, tmp_path / "odd.yaml")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ("bodies: rod", "line 15: constraint 'c': 'value' must be given"),
        ('bodies: rod, value: "=force1[0]"', "line 15, column .*: constraint 'c': value: 'force1' is neither"),
        ('bodies: rod, value: "=twist2[0]"', "'twist2' is neither"),
        ('bodies: no, value: "=twist1[0]"', "line 15: constraint 'c': body 'no'"),
        ('bodies: rod, value: "=twist1[0]^2"', "constraint 'c': it must be affine in the twists"),
        ("bodies: rod, value: 3", "constraint 'c': it depends on no pose"),
        ('bodies: [rod, rod, rod], value: "=twist1[0]"', "constraint 'c': has 3 bodies, and there are 1"),
    ],
)
def test_a_wrong_constraint_in_a_file_is_refused(entries: str, message: str) -> None:
    text = mechanism_texts()["pendulum"].rstrip() + f"\nconstraints:\n  c: {{type: user, {entries}}}\n"
    line = text.count("\n")
    with pytest.raises(cd.FileError, match=message.replace("15", str(line))):
        read_yaml(text).build()


def test_a_loaded_mechanism_can_be_built_on(tmp_path: Path) -> None:
    cd.save(pendulum_of(), tmp_path / "x.yaml")
    m = cd.load_mechanism(tmp_path / "x.yaml")
    m.body("lower", mass=1.0, inertia=(1.0, 1.0, 1.0))
    m.joint("elbow", cd.Revolute(axis=(0, 1, 0)), "rod", "lower", at=(0, 0, -1))
    assert m.build().nv == 2
    assert isinstance(cd.load_mechanism(ROOT / "tests" / "data" / "arm.urdf"), cd.Mechanism)


# Files.


def test_a_file_is_written_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.yaml"
    cd.save(pendulum_of(), path)
    text = path.read_text()
    with pytest.raises(cd.FileError, match="there is such a file already; pass overwrite=True to replace it"):
        cd.save(chain(2), path)
    assert path.read_text() == text
    cd.save(chain(2), path, overwrite=True)
    assert path.read_text() != text

    def full(*args: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(cd.FileError, match="cannot be written, No space left on device"):
        cd.save(chain(3), path, overwrite=True)
    assert "chain_2" in path.read_text()
    assert [p.name for p in tmp_path.iterdir()] == ["x.yaml"]


def test_what_cannot_be_saved_says_why(tmp_path: Path) -> None:
    with pytest.raises(cd.FileError, match=r"suffix '\.sdf' is not that of a file that can be written; use \.yaml"):
        cd.save(pendulum_of(), tmp_path / "x.sdf")
    with pytest.raises(cd.InputError, match="give a Mechanism or a Model, got str"):
        cd.save("x", tmp_path / "x.yaml")  # type: ignore[arg-type]
    with pytest.raises(cd.FileError, match="cannot be written, No such file or directory"):
        cd.save(pendulum_of(), tmp_path / "no" / "x.yaml")
    with pytest.raises(cd.FileError, match="it is a folder"):
        (tmp_path / "folder.yaml").mkdir()
        cd.save(pendulum_of(), tmp_path / "folder.yaml")
    m = pendulum_of()
    m.body("x", mass=1.0, inertia=(1.0, 1.0, 1.0))
    m.joint("j", cd.Revolute(), m.ground, "x", data=cd.JointData(upper=float("inf")))
    with pytest.raises(cd.ModelError, match="joint 'j': upper is inf, which is not a finite number"):
        cd.save(m, tmp_path / "x.yaml")


# What is made from the tables.


def maker() -> Any:
    spec = importlib.util.spec_from_file_location("make_format", ROOT / "docs" / "make_format.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_schema_page_and_made_files_are_current() -> None:
    make = maker()
    assert make.SCHEMA.read_text() == make.schema_text(), "run python docs/make_format.py"
    assert make.PAGE.read_text() == make.page(make.PAGE.read_text()), "run python docs/make_format.py"
    texts = mechanism_texts()
    for name in make.MADE:
        made = make.mechanism_text(name)
        assert texts[name].partition("\n")[0] == made.partition("\n")[0], "run python docs/make_format.py"
        same(read_yaml(texts[name]).build(), read_yaml(made).build(), rounding=ROUNDING)


def test_the_schema_refers_to_nothing_that_is_missing() -> None:
    schema = json.loads((ROOT / "docs" / "schema" / "cardan.schema.json").read_text())
    found = re.findall(r'"\$ref": "#/\$defs/(\w+)"', json.dumps(schema))
    assert found
    assert set(found) == set(schema["$defs"])


def test_every_file_shown_in_the_documentation_is_a_mechanism() -> None:
    page = (ROOT / "docs" / "format.md").read_text()
    blocks = re.findall(r"^```yaml\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    assert len(blocks) >= 2
    for block in blocks:
        model = read_yaml(block).build()
        same(again(model), model)
