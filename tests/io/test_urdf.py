"""URDF: all that the format says about dynamics is in the model; what is wrong is said in a sentence."""

import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cardan.errors import CardanError, FileError, InputError, ModelError
from cardan.io.load import load
from cardan.io.text_file import SIZE_LIMIT
from cardan.io.urdf import read_urdf
from cardan.model.model import Model

ARM = Path(__file__).parents[1] / "data" / "arm.urdf"

INERTIA = '<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/>'
INERTIAL = f'<inertial><mass value="1"/>{INERTIA}</inertial>'
ENDS = '<parent link="a"/><child link="b"/>'
BOTH = f'<link name="a"/><link name="b">{INERTIAL}</link>'


def robot(*parts: str) -> str:
    return f'<robot name="r">{"".join(parts)}</robot>'


def hinge(inside: str = "", kind: str = "revolute") -> str:
    return robot(BOTH, f'<joint name="j" type="{kind}">{ENDS}{inside}</joint>')


def inertial(inside: str) -> str:
    return robot(f'<link name="a"><inertial>{inside}</inertial></link>')


def build(text: str, **options: str) -> Model:
    return read_urdf(text, **options).build()  # type: ignore[arg-type]


# What the format says


def test_every_joint_type() -> None:
    model = load(ARM)
    kinds = {joint.name: joint.kind.name for joint in model.joints}
    assert kinds == {
        "root": "rigid", "floor": "planar", "lift": "prismatic", "turn": "revolute", "bracket": "rigid",
        "bend": "revolute", "grip_left": "prismatic", "grip_right": "prismatic", "flange": "rigid",
        "release": "free",
    }  # fmt: skip
    assert (model.name, model.nq, model.nv) == ("arm", 15, 14)
    assert [note.partition(",")[0] for note in model.notes] == ["damping of 2 joints acts"]


def test_inertial_origin_turns_and_shifts_the_inertia() -> None:
    forearm = load(ARM).body("forearm")
    assert forearm.mass == 1.2
    np.testing.assert_allclose(forearm.com, [0.2, 0, 0])
    np.testing.assert_allclose(forearm.inertia, np.diag([0.001, 0.02, 0.0202]), atol=1e-15)


def test_products_of_inertia() -> None:
    inertia = load(ARM).body("cart").inertia
    np.testing.assert_array_equal(inertia, [[0.2, 0.01, 0], [0.01, 0.3, -0.02], [0, -0.02, 0.25]])


def test_a_link_without_inertial_has_no_mass() -> None:
    model = load(ARM)
    assert model.body("tool").mass == 0
    assert model.placement("tool")[0] == model.placement("forearm")[0]
    np.testing.assert_allclose(model.placement("elbow")[1].position, [0.3, 0, 0], atol=1e-15)


def test_joint_origin_and_axis() -> None:
    model = load(ARM)
    lift, turn = model.joint("lift"), model.joint("turn")
    np.testing.assert_allclose(lift.at.position, [0.1, 0, 0.2])
    np.testing.assert_allclose(lift.at.rotation[:, 2], np.array([0, 0.1, 2]) / math.hypot(0.1, 2))
    np.testing.assert_allclose(lift.at.rotation, lift.child_at.rotation)
    np.testing.assert_array_equal(lift.child_at.position, 0)
    c, s = math.cos(0.4), math.sin(0.4)
    np.testing.assert_allclose((turn.at @ turn.child_at.inverse).rotation, [[c, -s, 0], [s, c, 0], [0, 0, 1]])


def test_the_axis_is_x_by_default() -> None:
    np.testing.assert_allclose(load(ARM).joint("bend").at.rotation[:, 2], [1, 0, 0], atol=1e-15)


def test_roll_pitch_yaw_turn_about_fixed_axes() -> None:
    text = hinge('<origin rpy="0.1 0.2 0.3"/>', "fixed")
    r, p, y = (np.array([math.cos(a), math.sin(a)]) for a in (0.1, 0.2, 0.3))
    x = np.array([[1, 0, 0], [0, r[0], -r[1]], [0, r[1], r[0]]])
    yy = np.array([[p[0], 0, p[1]], [0, 1, 0], [-p[1], 0, p[0]]])
    z = np.array([[y[0], -y[1], 0], [y[1], y[0], 0], [0, 0, 1]])
    np.testing.assert_allclose(build(text).joint("j").at.rotation, z @ yy @ x, atol=1e-15)


def test_quaternions_of_urdf_1_2() -> None:
    by_quaternion = build(hinge('<origin xyz="1 2 3" quat_xyzw="0 0 0.6 0.8"/>', "fixed")).joint("j").at
    by_angle = build(hinge(f'<origin xyz="1 2 3" rpy="0 0 {2 * math.atan2(0.6, 0.8)}"/>', "fixed")).joint("j").at
    np.testing.assert_allclose(by_quaternion.matrix, by_angle.matrix, atol=1e-15)


def test_limits_damping_and_friction_are_data() -> None:
    data = load(ARM).joint("lift").data
    assert (data.lower, data.upper, data.velocity, data.effort) == (-0.1, 0.5, 0.25, 400)
    assert (data.damping, data.friction, data.mimic) == (20, 3, None)


def test_a_limit_may_be_the_largest_number() -> None:
    data = build(hinge('<limit upper="1.79769e+308" effort="1e99"/>')).joint("j").data
    assert (data.upper, data.effort) == (1.79769e308, 1e99)


def test_data_left_out() -> None:
    model = load(ARM)
    turn, floor, bend, grip = (model.joint(name).data for name in ("turn", "floor", "bend", "grip_left"))
    assert (turn.lower, turn.upper, turn.velocity) == (None, None, 2)
    assert (floor.lower, floor.upper, floor.velocity, floor.effort) == (None,) * 4
    assert (bend.damping, bend.friction) == (0.5, 0)
    assert (grip.lower, grip.upper) == (0, 0.04)


def test_mimic_is_data() -> None:
    assert load(ARM).joint("grip_right").data.mimic == ("grip_left", 0.9, 0.001)
    text = robot(
        BOTH, f'<link name="c">{INERTIAL}</link><joint name="j" type="revolute">{ENDS}</joint>',
        '<joint name="k" type="revolute"><parent link="b"/><child link="c"/><mimic joint="j"/></joint>',
    )  # fmt: skip
    assert build(text).joint("k").data.mimic == ("j", 1, 0)


def test_the_root_is_fixed_or_free() -> None:
    fixed, free = load(ARM), load(ARM, root="free")
    assert free.nv == fixed.nv + 6
    assert free.coordinate_names[0] == "root[0]"
    assert free.joint("root").kind.name == "free"


def test_the_root_joint_takes_a_free_name() -> None:
    massive = BOTH.replace('<link name="a"/>', f'<link name="a">{INERTIAL}</link>')
    text = robot(massive, f'<joint name="root" type="revolute">{ENDS}</joint>')
    assert build(text, root="free").joint_names == ("root_", "root")


def test_gravity_and_snapping_reach_the_model() -> None:
    model = load(ARM, gravity=(0, -1.62, 0), snapping=0.0)
    np.testing.assert_array_equal(model.gravity, [0, -1.62, 0])


def test_coordinates_come_in_the_order_of_the_file() -> None:
    assert [name.partition("[")[0] for name in load(ARM).coordinate_names] == (
        ["floor"] * 3 + ["lift", "turn", "bend", "grip_left", "grip_right"] + ["release"] * 6
    )


def test_a_world_link_is_a_link() -> None:
    text = robot(
        f'<link name="world"/><link name="b">{INERTIAL}</link>',
        '<joint name="j" type="revolute"><parent link="world"/><child link="b"/></joint>',
    )
    assert build(text).body_names == ("world", "b")


def test_a_link_called_ground_is_renamed_with_a_note() -> None:
    text = robot(
        f'<link name="ground"/><link name="b">{INERTIAL}</link>',
        '<joint name="j" type="revolute"><parent link="ground"/><child link="b"/></joint>',
    )
    model = build(text)
    assert model.body_names == ("ground_", "b")
    assert model.notes == ("link 'ground' is called 'ground_' here, because 'ground' is what the robot stands on",)


def test_a_link_with_two_parents_closes_a_loop() -> None:
    links = "".join(f'<link name="{name}">{INERTIAL}</link>' for name in "abc")
    ends = [("a", "b"), ("b", "c"), ("a", "c")]
    joints = "".join(
        f'<joint name="{p}{c}" type="revolute"><parent link="{p}"/><child link="{c}"/></joint>' for p, c in ends
    )
    model = build(robot(links, joints))
    assert (model.nv, len(model.cuts)) == (2, 1)


def test_one_link_alone() -> None:
    model = build(robot(f'<link name="a">{INERTIAL}</link>'))
    assert (model.nv, model.total_mass) == (0, 1)
    assert build(robot(f'<link name="a">{INERTIAL}</link>'), root="free").nv == 6


def test_the_axis_of_a_fixed_joint_does_not_matter() -> None:
    assert build(hinge('<axis xyz="0 0 0"/>', "fixed")).nv == 0


def test_numbers_as_files_write_them() -> None:
    at = build(hinge('<origin xyz=" +1.  -.5\n1E-3 "/>', "fixed")).joint("j").at
    np.testing.assert_array_equal(at.position, [1, -0.5, 1e-3])


def test_text_and_byte_order_mark(tmp_path: Path) -> None:
    file = tmp_path / "Robot.URDF"
    file.write_bytes(b'\xef\xbb\xbf<?xml version="1.0"?>\n' + hinge().encode())
    assert load(str(file)).nv == load(file).nv == 1
    assert build('\ufeff\n  <?xml version="1.0" encoding="utf-8"?>' + hinge()).nv == 1


def test_a_robot_without_name_takes_the_name_of_its_file(tmp_path: Path) -> None:
    file = tmp_path / "crane.urdf"
    file.write_text(hinge().replace('name="r"', ""))
    assert load(file).name == "crane"


# What is not read is noted; what only looks is not


def test_what_is_unread_is_noted_once_and_counted() -> None:
    text = robot(
        BOTH, '<gazebo reference="a"/><gazebo/><transmission name="t"/>',
        f'<joint name="j" type="revolute" dont_collapse="true">{ENDS}<safety_controller k_velocity="1"/>'
        '<dynamics damping="1" spring_stiffness="2"/></joint>',
    )  # fmt: skip
    model = build(text)
    assert model.notes == (
        "'dont_collapse' of <joint> was not read (1 time); it does not enter the dynamics",
        "<safety_controller> in <joint> was not read (1 time); it does not enter the dynamics",
        "<transmission> in <robot> was not read (1 time); it does not enter the dynamics",
    )
    assert model.losses[0] == "'spring_stiffness' of <dynamics> was not read (1 time); it may concern dynamics"


def test_limits_of_a_continuous_joint_are_noted() -> None:
    model = build(hinge('<limit lower="-1" upper="1" effort="1" velocity="1"/>', "continuous"))
    assert model.joint("j").data.lower is None
    assert "of a continuous <joint> was not read" in model.notes[0]


def test_names_with_a_namespace_are_noted() -> None:
    text = f'<robot name="r" xmlns:xacro="http://www.ros.org/wiki/xacro">{BOTH}<xacro:arg name="x"/></robot>'
    text = text.replace("</robot>", f'<joint name="j" type="revolute">{ENDS}</joint></robot>')
    assert "<xacro:arg> in <robot>" in build(text).notes[0]


def test_looks_are_passed_over() -> None:
    look = '<visual><geometry><mesh filename="package://none/a.dae"/></geometry></visual><collision/><material/>'
    text = hinge().replace('<link name="a"/>', f'<link name="a">{look}</link><material name="m"/>')
    assert build(text).notes == ()


# Inertia, judged by what moves as one

SIX = " ".join(f'{entry}="1e-6"' for entry in ("ixx", "iyy", "izz", "ixy", "ixz", "iyz"))
ODD = f'<inertial><mass value="0.01"/><inertia {SIX}/></inertial>'


def welded(first: str, second: str) -> str:
    return robot(
        f'<link name="a">{first}</link><link name="b">{second}</link>',
        f'<joint name="j" type="fixed">{ENDS}<origin xyz="1 0 0" rpy="0 0 1.5707963267948966"/></joint>',
    )


@pytest.mark.parametrize("odd_first", [True, False])
def test_an_odd_inertia_is_judged_with_the_link_it_is_fixed_to(odd_first: bool) -> None:
    model = build(welded(*((ODD, INERTIAL) if odd_first else (INERTIAL, ODD))), root="free")
    odd = "a" if odd_first else "b"
    np.testing.assert_allclose(model.body(odd).inertia, np.full((3, 3), 1e-6))
    (note,) = model.notes
    assert note.startswith(f"body '{odd}': inertia about the centre of mass breaks the triangle rule")
    assert note.endswith("with the bodies fixed to it the rules hold")


def test_moments_without_mass_count_with_the_link_they_are_fixed_to() -> None:
    massless = f'<inertial><mass value="0"/>{INERTIA}</inertial>'
    model = build(welded(massless, INERTIAL), root="free")
    (link,) = model.tree.links
    np.testing.assert_allclose(link.I_C, 2 * np.eye(3), atol=1e-15)
    assert "mass is zero but its inertia is not" in model.notes[0]


def test_an_odd_inertia_that_moves_alone_is_refused() -> None:
    with pytest.raises(ModelError, match=r"'b': .* triangle rule"):
        build(hinge().replace(INERTIAL, ODD))


def test_an_odd_inertia_is_refused_where_the_sum_is_odd_too() -> None:
    large = ODD.replace("1e-6", "100")
    with pytest.raises(ModelError, match=r"'a': .* triangle rule"):
        build(welded(large, INERTIAL), root="free")


# What is wrong, in a sentence: bad files are in tests/broken


@pytest.mark.parametrize(
    ("name", "data", "words"),
    [
        ("none.urdf", None, "there is no such file"),
        ("none/none.urdf", None, "no such file; its folder .* does not exist"),
        ("empty.urdf", b" \n", "the file is empty"),
        ("latin.urdf", b"<robot>\n<!-- \xe9 -->\n</robot>", "line 2: byte 0xe9 is not UTF-8"),
        ("a.obj", b"v 0 0 0", r"suffix '.obj' is not a known model format; known: .*\.urdf"),
        ("a", b"x", r"suffix '' is not a known model format"),
        ("a.xacro", b"<robot/>", "expand it with xacro"),
        ("none.obj", None, "there is no such file"),
    ],
)
def test_a_file_that_cannot_be_read(name: str, data: bytes | None, words: str, tmp_path: Path) -> None:
    if data is not None:
        (tmp_path / name).write_bytes(data)
    with pytest.raises(FileError, match=words):
        load(tmp_path / name)


def test_a_directory(tmp_path: Path) -> None:
    (tmp_path / "robot.urdf").mkdir()
    with pytest.raises(FileError, match="it is a directory"):
        load(tmp_path / "robot.urdf")


def test_a_file_of_unreasonable_size(tmp_path: Path) -> None:
    with (tmp_path / "large.urdf").open("wb") as file:
        file.truncate(SIZE_LIMIT + 1)
    with pytest.raises(FileError, match="16 MiB; at most 16 are read"):
        load(tmp_path / "large.urdf")


def test_a_path_with_a_null_character() -> None:
    with pytest.raises(FileError, match=r"no such file|not a path"):
        load("a\0.urdf")


@pytest.mark.parametrize("path", [None, 3, b"a.urdf", ["a.urdf"]])
def test_a_path_of_the_wrong_type(path: object) -> None:
    with pytest.raises(InputError, match="path must be the name of a model file"):
        load(path)  # type: ignore[arg-type]


@pytest.mark.parametrize("root", ["floating", None, 1, []])
def test_an_unknown_root(root: object) -> None:
    for read in (load, read_urdf):
        with pytest.raises(InputError, match="root must be 'fixed' or 'free'"):
            read(ARM, root=root)  # type: ignore[arg-type]


def test_bad_gravity() -> None:
    with pytest.raises(CardanError, match="gravity must be 3 numbers"):
        load(ARM, gravity=(0, 1))


def test_entities_are_never_expanded() -> None:
    laughs = "".join(f'<!ENTITY l{i} "{f"&l{i - 1};" * 10}">' for i in range(1, 10))
    text = f'<!DOCTYPE r [<!ENTITY l0 "ha">{laughs}]><robot name="&l9;"/>'
    with pytest.raises(FileError, match="document type or entities"):
        read_urdf(text)
    with pytest.raises(FileError, match="document type or entities"):
        read_urdf('<!DOCTYPE r [<!ENTITY x SYSTEM "secret.txt">]><robot name="&x;"/>')


def test_deep_nesting_is_no_trouble() -> None:
    text = robot(f'<link name="a">{INERTIAL}{"<v>" * 100_000}{"</v>" * 100_000}</link>')
    assert build(text).nb == 1


PIECES = [
    "",
    "<",
    '"',
    "0",
    "-1",
    "nan",
    "1e308",
    "1e-308",
    "a b",
    "<link/>",
    "base",
    "fixed",
    "&x;",
    "\0",
    "é",
    "\ud800",
]


@settings(max_examples=300, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_any_damage_is_explained(data: st.DataObject) -> None:
    text = ARM.read_text()
    for _ in range(data.draw(st.integers(1, 3))):
        start = data.draw(st.integers(5, len(text)))
        stop = min(len(text), start + data.draw(st.integers(0, 40)))
        text = text[:start] + data.draw(st.sampled_from(PIECES)) + text[stop:]
    try:
        build(text)
    except CardanError as error:
        assert "\n" not in str(error)


NUMBERS = st.sampled_from(["0", "-1", "1e308", "-1e308", "1e-308", "1e155", "1e200", "5e-324"])


@settings(max_examples=200)
@given(st.lists(NUMBERS, min_size=13, max_size=13))
def test_extreme_numbers_are_explained(n: list[str]) -> None:
    inside = f'<origin xyz="{n[0]} {n[1]} {n[2]}" rpy="{n[3]} {n[4]} {n[5]}"/><mass value="{n[6]}"/>'
    inside += f'<inertia ixx="{n[7]}" iyy="{n[8]}" izz="{n[9]}" ixy="{n[10]}" ixz="{n[11]}" iyz="{n[12]}"/>'
    try:
        build(inertial(inside), root="free")
    except CardanError as error:
        assert "\n" not in str(error)


def test_importing_the_package_does_not_import_an_xml_parser() -> None:
    code = "import sys, cardan.io.load; print(any('defusedxml' in m for m in sys.modules))"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "False"
