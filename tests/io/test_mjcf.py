"""MJCF files: what becomes of each feature, what is lost, and what is refused in one sentence."""

from __future__ import annotations

import os
import struct
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cardan as cd

from ..mjcf import OWN
from ..trees import close

BALL = '<geom size="0.1"/>'
HINGE = '<joint name="j" axis="0 1 0"/>'


def load(tmp_path: Path, inside: str, **options: object) -> cd.Model:
    """A model from what is inside `<mujoco>`."""
    file = tmp_path / "m.xml"
    file.write_text(f"<mujoco>{inside}</mujoco>")
    return cd.load(file, **options)


def body(inside: str, **attributes: str) -> str:
    own = " ".join(f'{key}="{value}"' for key, value in attributes.items())
    return f"<worldbody><body {own}>{inside}</body></worldbody>"


# What is read.


def test_joints_have_mujocos_coordinates_and_start_where_the_file_has_them() -> None:
    model = cd.load(OWN / "joints.xml")
    q = model.start()
    close(q[model.q_slice("root")][:3], [1, 2, 3])
    close(q[model.q_slice("lift")], [0.2])
    close(q[model.q_slice("swing")], [np.radians(25)])
    close(cd.body_poses(model, q)[model.body_index("floating")][:3, 3], [1, 2, 3])
    swing = model.joint("swing")
    assert swing.data.friction == 0.2
    close([swing.data.lower, swing.data.upper], np.radians([-90, 90]))
    assert [body.name for body in model.bodies if body.mass == 0] == [
        "arm / lift",
        "arm / swing",
        "gantry / x",
        "gantry / y",
    ]


def test_sites_are_frames_and_a_name_taken_by_a_body_is_told_apart(tmp_path: Path) -> None:
    sites = '<site name="b" pos="1 2 3"/><site name="s" type="box" fromto="0 0 0 0 0 2"/>'
    model = load(tmp_path, body(f"{HINGE}{BALL}{sites}", name="b"))
    assert model.frame_names == ("b site", "s")
    close(model.frames[0].at.position, [1, 2, 3])
    close(model.frames[1].at.position, [0, 0, 1])


def test_keyframes_are_states_in_our_rates() -> None:
    model = cd.load(OWN / "loops.xml")
    assert tuple(model.states) == ("bent", "key_1")
    bent = model.states["bent"]
    assert bent.time == 2
    close(bent.q[model.q_slice("P")], [1, 2, 3, 1, 0, 0, 0])  # quaternions are made unit length
    close(bent.v[model.v_slice("P")], [4, 5, 6, 1, 2, 3])  # at this turn body and world axes agree
    turned = bent.v[model.v_slice("L")]  # a quarter turn about x
    close(turned, [0.4, 0.5, 0.6, 0.1, 0.3, -0.2])
    close(model.states["key_1"].q[:4], [0.5, 0, 0.3, 0.5])


def test_loops_and_couplings_hold_where_the_file_is_written() -> None:
    model = cd.load(OWN / "loops.xml")
    assert [model.joints[j].name for j in model.cuts] == ["C", "glued"]
    assert [coupling.name for coupling in model.couplings] == ["ratio"]
    q = cd.assemble(model, model.start(), np.zeros(model.nv))[0]
    a, g = q[model.q_slice("A")], q[model.q_slice("G")]
    close(g - 0.5, 0.1 - 2 * a)


def test_actuators_are_data_and_give_their_rotors_to_the_joints() -> None:
    model = cd.load(OWN / "defaults.xml")
    actuators = {a.name: a for a in model.actuators}
    assert [(a.name, a.kind, a.joint, a.gear.tolist()) for a in model.actuators][:2] == [
        ("m1", "motor", "ja", [-2.0]),
        ("m2", "motor", "jb", [3.0]),
    ]
    assert actuators["m1"].control == (-1.0, 1.0)
    assert actuators["m3"].gain == 20 and list(actuators["m3"].bias) == [0, -20, -2]
    close(model.joint("ja").armature, [0.25 * 4])


def test_copies_are_numbered_and_take_their_actuators_along() -> None:
    model = cd.load(OWN / "replicate.xml")
    assert [a.name for a in model.actuators][:4] == ["lift-0", "grip0-0", "grip1-0", "lift-1"]
    assert [a.joint for a in model.actuators][:4] == ["swing-0", "bend0-0", "bend1-0", "swing-1"]
    assert model.frame_names == ("tip-0", "tip-1", "tip-2")
    assert len(model.couplings) == 6 and len(model.bodies) == 20
    close(model.states["spread"].q[:5], [0.1, 0.2, 0.3, 0.4, 0])


def test_what_is_attached_brings_its_classes_actuators_and_units() -> None:
    model = cd.load(OWN / "attach.xml")
    names = [a.name for a in model.actuators]
    assert names[:5] == ["spin", "push", "left-raise", "left-bend", "right-bend"]  # parents first, then as attached
    assert names[5:7] == ["more-raise0", "more-bend0"] and names[-1] == "pair-one-bend_1"
    assert [a.gear.tolist() for a in model.actuators][:5] == [[5], [5], [3], [4], [4]]
    close(model.joint("turn").data.upper, np.pi / 2)  # the file's angles are degrees, those of the part radians
    close(model.joint("left-shoulder").data.upper, 1.0)
    assert any("<keyframe> of" in note and "is not read" in note for note in model.notes)


def test_models_that_are_attached_stay_in_the_folder_and_out_of_circles(tmp_path: Path) -> None:
    def attach(inside: str, file: str = "part.xml") -> str:
        return f'<asset><model name="p" file="{file}"/></asset><worldbody>{inside}</worldbody>'

    one = '<attach model="p" body="b" prefix="x-"/>'
    arm = f'<body name="b">{HINGE}{BALL}</body>'
    (tmp_path / "part.xml").write_text(f"<mujoco><worldbody>{arm}</worldbody></mujoco>")
    assert load(tmp_path, attach(one)).joint_names == ("x-j",)
    for inside, sentence in (
        (attach(one, "../part.xml"), r"model 'p': its file '\.\./part\.xml' is outside the folder"),
        (attach(one, "none.xml"), r"model 'p': its file 'none\.xml': there is no such file"),
        (attach(one, "m.xml"), r"model 'p': its file 'm\.xml' takes bodies from itself, in a circle"),
        (attach('<attach model="p" body="c" prefix=""/>'), r"its body 'c' is not one of .*; known: 'b'"),
        (attach('<attach model="q" prefix=""/>'), r"its model 'q' is not an asset; known: 'p'"),
        (attach('<attach model="p"/>'), r"<attach> has no attribute 'prefix'; give it"),
        (attach(one * 2), r"body 'x-b': the name is given to two bodies"),
        (attach(one * 2001), r"more than 2000 <attach> elements"),
    ):
        with pytest.raises(cd.FileError, match=sentence):
            load(tmp_path, inside)


def test_what_is_lost_is_listed_and_refused_if_strict() -> None:
    path = OWN / "lossy.xml"
    model = cd.load(path)
    report = model.report()
    for word in ("pull", "biceps", "servo", "filtered", "<tendon> of <equality>", "springdamper", "density 1.2",
                 "viscosity 0.1", "limits of 1 joint", "dry friction", "contact between 3 geoms", "<fixed> of <tendon>",
                 "<pair> of <contact>", "mocap"):  # fmt: skip
        assert sum(word in loss for loss in model.losses) == 1, word
        assert f"lost: {next(loss for loss in model.losses if word in loss)}" in report
    with pytest.raises(cd.FileError, match=r"lossy\.xml: strict, and this would be lost: actuator 'pull'"):
        cd.load(path, strict=True)
    assert cd.load(OWN / "rules.xml", strict=True).losses == ()


def test_flags_switch_off_what_they_name(tmp_path: Path) -> None:
    inside = body('<joint name="j" axis="0 1 0" stiffness="1" damping="2" range="-1 1"/>' + BALL + BALL)
    assert load(tmp_path, inside).forces and load(tmp_path, inside).losses
    off = (
        '<option><flag spring="disable" damper="disable" contact="disable" limit="disable" gravity="disable"/></option>'
    )
    model = load(tmp_path, off + inside)
    assert not model.forces and not model.losses and not model.gravity.any()
    assert load(tmp_path, off + inside, gravity=(0, 0, -1.0)).gravity[2] == -1


def test_an_xml_file_of_a_robot_is_urdf(tmp_path: Path) -> None:
    file = tmp_path / "r.xml"
    inertial = '<mass value="1"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/>'
    links = f'<link name="a"/><link name="b"><inertial>{inertial}</inertial></link>'
    joint = '<joint name="j" type="continuous"><parent link="a"/><child link="b"/></joint>'
    file.write_text(f'<robot name="r">{links}{joint}</robot>')
    assert cd.load(file).joint_names == ("root", "j")
    with pytest.raises(cd.InputError, match=r"load: root is for \.urdf files"):
        cd.load(OWN / "joints.xml", root="free")


def test_mesh_files_of_every_kind_give_the_same_solid(tmp_path: Path) -> None:
    corners = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]], dtype=np.float32)
    faces = np.array([[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]])
    rows = b"".join(struct.pack("<12fH", 0, 0, 0, *corners[face].ravel(), 0) for face in faces)
    (tmp_path / "t.stl").write_bytes(bytes(80) + struct.pack("<I", 4) + rows)
    (tmp_path / "t.msh").write_bytes(struct.pack("<4i", 4, 0, 0, 4) + corners.tobytes() + faces.astype("<i4").tobytes())
    lines = [f"v {x} {y} {z}" for x, y, z in corners] + [f"f {a + 1}// {b + 1}// {c - 4}//" for a, b, c in faces]
    (tmp_path / "t.obj").write_text("\n".join(lines))
    for suffix in ("stl", "msh", "obj"):
        asset = f'<asset><mesh name="t" file="t.{suffix}" inertia="exact"/></asset>'
        solid = load(tmp_path, asset + body(HINGE + '<geom type="mesh" mesh="t" density="6"/>')).bodies[0]
        close(solid.mass, 1.0)
        close(solid.com, [0.25, 0.25, 0.25])
        close(np.diag(solid.inertia), [3 / 40] * 3)


# Includes and meshes stay in the folder.


@pytest.mark.parametrize(
    "file", ["../secret.xml", "/etc/passwd", "a/../../secret.xml", "link.xml", "C:/x.xml", "..\\x.xml"]
)
def test_files_outside_the_folder_are_never_read(tmp_path: Path, file: str) -> None:
    (tmp_path / "secret.xml").write_text("<x><body name='secret'/></x>")
    inner = tmp_path / "model"
    inner.mkdir()
    os.symlink(tmp_path / "secret.xml", inner / "link.xml")
    for inside in (f'<include file="{file}"/>', f'<asset><mesh name="m" file="{file}.stl"/></asset>'
                   + body(HINGE + '<geom type="mesh" mesh="m"/>')):  # fmt: skip
        if "mesh" in inside and file == "link.xml":
            continue
        with pytest.raises(
            cd.FileError, match=r"m\.xml: line 1: .*(outside the folder|relative to the model's folder)"
        ):
            load(inner, inside)


def test_a_wider_folder_is_named_by_the_user(tmp_path: Path) -> None:
    (tmp_path / "leg.xml").write_text(f"<x>{body(HINGE + BALL, name='leg')}</x>")
    inner = tmp_path / "model"
    inner.mkdir()
    assert load(inner, '<include file="../leg.xml"/>', folder=tmp_path).body_names == ("leg",)


def test_includes_come_once_and_never_in_a_circle(tmp_path: Path) -> None:
    (tmp_path / "a.xml").write_text('<x><include file="b.xml"/></x>')
    (tmp_path / "b.xml").write_text('<x><include file="a.xml"/></x>')
    (tmp_path / "c.xml").write_text("<x/>")
    with pytest.raises(cd.FileError, match=r"b\.xml: line 1: <include>: 'a\.xml' is included a second time"):
        load(tmp_path, '<include file="a.xml"/>')
    with pytest.raises(cd.FileError, match=r"'m\.xml' is included a second time \(it is the model itself\)"):
        load(tmp_path, '<include file="m.xml"/>')
    with pytest.raises(cd.FileError, match=r"'c\.xml' has no element inside"):
        load(tmp_path, '<include file="c.xml"/>')
    with pytest.raises(cd.FileError, match=r"line 1: <include>: its file 'd\.xml': there is no such file"):
        load(tmp_path, '<include file="d.xml"/>')


def test_entities_are_never_read(tmp_path: Path) -> None:
    (tmp_path / "evil.xml").write_text('<!DOCTYPE x [<!ENTITY a "b">]><x>&a;</x>')
    with pytest.raises(cd.FileError, match=r"evil\.xml: the XML declares a document type"):
        load(tmp_path, '<include file="evil.xml"/>')


def test_nesting_may_be_deep(tmp_path: Path) -> None:
    depth = 3000
    text = f'<worldbody>{"<frame>" * depth}<body name="b">{HINGE}{BALL}</body>{"</frame>" * depth}</worldbody>'
    assert load(tmp_path, text).nv == 1


# What is refused.

HAS_ONE = body(HINGE + BALL)
MESH = body(HINGE + '<geom type="mesh" mesh="m"/>')
FITTED = body(HINGE + '<geom type="capsule" mesh="m"/>')
CORNERS = " ".join(f"{k & 1} {k >> 1 & 1} {k >> 2}" for k in range(8))
CUBE = f'<asset><mesh name="m" vertex="{CORNERS}"/></asset>'
ARM = f"<body>{HINGE}{BALL}</body>"


def copies(count: str, inside: str, deep: int = 1) -> str:
    return f'<worldbody>{f"""<replicate count="{count}">""" * deep}{inside}{"</replicate>" * deep}</worldbody>'


WRONG = [
    ('<worldbody><joint name="j"/></worldbody>', r"joint 'j': the world cannot move: put <joint> into a body"),
    ("<woldbody/>", r"<mujoco> has no element <woldbody> in MJCF; did you mean 'worldbody'\?"),
    (body(HINGE + '<geom sise="1"/>'), r"<geom> has no attribute 'sise' in MJCF; did you mean 'size'\?"),
    (body(HINGE + BALL, nam="x"), r"<body> has no attribute 'nam' in MJCF; did you mean 'name'\?"),
    (body("<jiont/>"), r"<body> has no element <jiont> in MJCF; did you mean 'joint'\?"),
    (body(HINGE + '<geom class="arm"/>'), r"class 'arm' is not a defaults class; known: 'main'"),
    (body(HINGE + BALL, childclass="arm"), r"childclass 'arm' is not a defaults class"),
    (body(HINGE), r"it moves, and has mass 0 kg"),
    (body(HINGE + '<geom size="nan"/>'), r"'size' of <geom> must be finite, got 'nan'"),
    (body(HINGE + '<geom size="0"/>'), r"a sphere has 1 positive numbers as size, got '0'"),
    (body(HINGE + '<geom type="box" size="1 1"/>'), r"a box has 3 positive numbers as size, got '1 1'"),
    (body(HINGE + '<geom type="cube" size="1"/>'), r"'type' of <geom> must be one of plane"),
    (body('<joint name="j" axis="0 0 0"/>' + BALL), r"joint 'j': 'axis' of <joint> has no direction: '0 0 0'"),
    (body('<joint name="j" type="free"/><joint/>' + BALL), r"a body with a free joint has no other joint"),
    (body(f"{BALL}<body><freejoint/>{BALL}</body>"), r"a free joint is for bodies directly in the world"),
    (body(HINGE + HINGE + BALL), r"joint 'j': the name is given to two joints"),
    (body(f"{BALL}<body name='a'>{HINGE}{BALL}</body>", name="a"), r"the name is given to two bodies"),
    (body(HINGE + BALL, quat="1 0 0 0", euler="1 2 3"), r"gives its rotation as 'quat' and as 'euler'; give it once"),
    (body(HINGE + BALL, quat="0 0 0 0"), r"'quat' of <body> has no direction"),
    (body(HINGE + '<inertial mass="1" diaginertia="1 1 1"/>'), r"it has no attribute 'pos', the centre of mass"),
    (body(HINGE + '<inertial pos="0 0 0" mass="1"/>'), r"it needs one of 'diaginertia' and 'fullinertia'"),
    (body(HINGE + '<inertial pos="0 0 0" mass="-1" diaginertia="1 1 1"/>'), r"its mass is negative: -1"),
    (body(HINGE + '<inertial pos="0 0 0" mass="1" diaginertia="1 1 9"/>'), r"breaks the triangle rule: 9 > 1 \+ 1"),
    (body(HINGE + '<geom type="mesh" mesh="m"/>'), r"its mesh 'm' is not an asset"),
    ('<asset><mesh name="m" file="no.stl"/></asset>' + MESH, r"mesh 'm': there is no file 'no.stl'"),
    ('<compiler coordinate="global"/>' + body(HINGE + BALL), r"coordinate=\"global\" is no longer part of MJCF"),
    ('<compiler eulerseq="xyw"/>' + body(HINGE + BALL), r"'eulerseq' must be three letters of xyzXYZ, got 'xyw'"),
    (HAS_ONE + '<equality><connect body1="x" anchor="0 0 0"/></equality>', r"body1 'x' is not a body"),
    (HAS_ONE + '<equality><joint joint1="k"/></equality>', r"joint1 'k' is not a joint of this file; known: 'j'"),
    (HAS_ONE + '<actuator><motor joint="k"/></actuator>', r"its joint 'k' is not a joint of this file"),
    (HAS_ONE + '<keyframe><key qpos="1 2"/></keyframe>', r"'qpos' of <key> must be from 1 to 1 numbers"),
    ("<worldbody><geom/></worldbody>", r"it has no <body>, only things that do not move"),
    ('<compiler fitaabb="true"/>' + CUBE + FITTED, r"a capsule fitted to the box about a mesh \('fitaabb'\)"),
    (CUBE + FITTED, r"its mesh has no longest axis, so that no capsule can be fitted to it; give the geom a size"),
    ('<worldbody><flexcomp/></worldbody>', r"<flexcomp> makes bodies of its own, which is not read"),
    (copies("1e9", ARM), r"1e\+09 copies of 3 elements are more than the 60000 read; make fewer"),
    (copies("6000", ARM), r"its 6000 copies hold more than 5000 elements <body>; no more are read, make fewer"),
    (copies("9", ARM, 8), r"its 9 copies hold more than 5000 elements <body>"),
    (copies("1", ARM, 9), r"more than 8 <replicate> elements are in one another"),
    (copies("2", HINGE), r"<joint> is in <replicate>, and in no body of it; put it into a body"),
    (copies("-1", ARM), r"'count' must not be negative, got -1"),
    (copies("2", ARM) + '<actuator><motor joint="j2"/></actuator>', r"its joint 'j2' is not a joint"),
    ('<default><default><geom/></default></default>' + body(HINGE + BALL), r"a nested <default> needs one"),
    ('<default class="x"/>' + body(HINGE + BALL), r"the class of a top-level <default> is 'main', got 'x'"),
    (body('<joint name="j" armature="-1"/>' + BALL), r"joint 'j': its armature is negative: -1"),
    (body('<joint name="j" range="2 1"/>' + BALL), r"'range' must go from the smaller to the larger number"),
]  # fmt: skip


@pytest.mark.parametrize(("inside", "sentence"), WRONG, ids=range(len(WRONG)))
def test_what_is_wrong_is_told_with_file_and_line(tmp_path: Path, inside: str, sentence: str) -> None:
    with pytest.raises(cd.FileError, match=sentence) as error:
        load(tmp_path, "\n" + inside)
    assert "m.xml: line " in str(error.value)


@settings(max_examples=60)
@given(
    place=st.integers(0, 10_000),
    cut=st.integers(0, 40),
    put=st.sampled_from(["", "-", "9", "nan", "<", "x", '"', "1e400"]),
)
def test_a_damaged_file_never_gives_somebody_elses_traceback(place: int, cut: int, put: str) -> None:
    import tempfile

    text = (OWN / "joints.xml").read_text()
    place %= len(text)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "m.xml"
        file.write_text(text[:place] + put + text[place + cut :])
        with suppress(cd.CardanError):
            cd.load(file)


@pytest.mark.parametrize("name", ["joints", "defaults", "loops", "lossy"])
def test_a_loaded_model_is_saved_in_our_format_without_loss(tmp_path: Path, name: str) -> None:
    model = cd.load(OWN / f"{name}.xml")
    cd.save(model, tmp_path / "m.yaml")
    again = cd.load(tmp_path / "m.yaml")
    assert again.losses == model.losses and again.notes == model.notes and again.body_names == model.body_names
    assert [(a.name, a.kind, a.joint, *a.gear, a.gain, *a.bias, a.control, a.force) for a in again.actuators] == [
        (a.name, a.kind, a.joint, *a.gear, a.gain, *a.bias, a.control, a.force) for a in model.actuators
    ]
    assert list(again.states) == list(model.states)
    for key, state in model.states.items():
        assert np.array_equal(again.states[key].q, state.q) and np.array_equal(again.states[key].v, state.v)
        assert again.states[key].time == state.time
    if name != "joints":  # whose cubic law comes back as the same expression in another graph
        assert again.key == model.key
