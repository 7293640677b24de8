"""Robots from URDF against Pinocchio: the same file, read by both, gives the same dynamics."""

from collections.abc import Callable, Iterator
from pathlib import Path
from zlib import crc32

import numpy as np
import pytest

import cardan as cd
from cardan.errors import FileError
from cardan.io.urdf import read_urdf, write_urdf
from cardan.structure.kernels import tree_graph

from ..io.test_export import mass_matrix, mass_matrix_of_mujoco, matched
from .pinocchio_twin import Twin, mimic_differences

pytestmark = pytest.mark.usefixtures("quick_code")

pin = pytest.importorskip("pinocchio")
cmeel = pytest.importorskip("cmeel")

ROBOTS = Path(cmeel.__file__).parents[1] / "cmeel.prefix" / "share" / "example-robot-data" / "robots"
ARM = Path(__file__).parents[1] / "data" / "arm.urdf"
STATES = 4
Solve = Callable[..., Iterator[tuple[np.ndarray, ...]]]

# Files that say why they do not load: the file, and words of the sentence.
REFUSED = {
    "alex_description/urdf/alex_psyonic_hands.urdf": "it mimics 'index_q1', which is not a joint",
    "bluevolta_description/urdf/bluevolta_bravo7_gripper.urdf": "'bravo_finger2_link': .* has no mass",
    "bravo7_description/urdf/bravo7_gripper.urdf": "'bravo_finger2_link': .* has no mass",
    "falcon_description/urdf/falcon.urdf": "child 'Z_propeller' is not a link",
    "falcon_description/urdf/falcon_bravo7_gripper.urdf": "'bravo_finger2_link': .* has no mass",
    "romeo_description/urdf/romeo.urdf": "'RThumb3Link': .* has no mass",
    "romeo_description/urdf/romeo_laas_small.urdf": "'LShoulderYaw_link': inertia .* triangle rule",
    "romeo_description/urdf/romeo_small.urdf": "'RShoulderYawLink': inertia .* triangle rule",
    "ur_description/urdf/ur3.urdf": "it has no <link>",
}
# Files with nothing that moves on a fixed base.
STILL = {
    "bluevolta_description/urdf/bluevolta.urdf",
    "hector_description/robots/quadrotor_base.urdf",
    "iris_description/robots/iris_simple.urdf",
}
NAMED = {
    "panda": ("panda_description/urdf/panda.urdf", "fixed", 9),
    "ur5": ("ur_description/urdf/ur5_robot.urdf", "fixed", 6),
    "anymal": ("anymal_b_simple_description/robots/anymal.urdf", "free", 18),
    "talos": ("talos_data/robots/talos_reduced.urdf", "free", 38),
}
EVERY = sorted(str(path.relative_to(ROBOTS).as_posix()) for path in ROBOTS.rglob("*.urdf"))


def by_kernels(model: cd.Model, q: np.ndarray, v: np.ndarray, x: np.ndarray) -> Iterator[tuple[np.ndarray, ...]]:
    """Mass matrix, inverse and forward dynamics at each state, from the public functions."""
    answers = cd.mass_matrix(model, q), cd.inverse_dynamics(model, q, v, x), cd.forward_dynamics(model, q, v, x)
    return zip(*answers, strict=True)


def by_graphs(model: cd.Model, q: np.ndarray, v: np.ndarray, x: np.ndarray) -> Iterator[tuple[np.ndarray, ...]]:
    """The same without a kernel: CasADi interprets the graphs."""
    M, inverse, forward = (tree_graph(model, name) for name in ("mass_matrix", "inverse_dynamics", "forward_dynamics"))
    for at, along, given in zip(q, v, x, strict=True):
        yield np.array(M(at)), *(np.array(f(at, along, given)).ravel() for f in (inverse, forward))


def check_export(model: cd.Model) -> None:
    """The model written as URDF and read again has the same links, and so the same mass matrix."""
    text, losses = write_urdf(model)
    assert losses == []
    again = read_urdf(text, mimic=False).build(snapping=model.snapping)
    assert again.coordinate_names == model.coordinate_names
    for ours, theirs in zip(again.tree.links, model.tree.links, strict=True):
        assert (ours.parent, ours.kind) == (theirs.parent, theirs.kind)
        for what in ("E", "r", "mass", "com", "I_C"):
            np.testing.assert_allclose(getattr(ours, what), getattr(theirs, what), rtol=1e-13, atol=1e-13)


def largest_errors(path: Path, root: str, solve: Solve = by_kernels, **options: float) -> dict[str, float]:
    """Largest relative difference of each function over random states."""
    model = cd.load(path, root=root, mimic=False, damping=False, **options)  # as Pinocchio loads it
    twin = Twin(model, path, root)
    check_export(model)
    rng = np.random.default_rng(crc32(path.name.encode()))
    q, v = model.random_state(rng, STATES)
    x = rng.standard_normal((STATES, model.nv))
    errors = {"mass matrix": 0.0, "inverse dynamics": 0.0, "forward dynamics": 0.0}
    for i, ours in enumerate(solve(model, q, v, x)):
        for what, mine, theirs in zip(errors, ours, twin.answers(q[i], v[i], x[i]), strict=True):
            errors[what] = max(errors[what], float(np.abs(mine - theirs).max() / np.abs(theirs).max()))
    return errors


@pytest.mark.parametrize("name", NAMED)
def test_named_robots_agree(name: str) -> None:
    file, root, nv = NAMED[name]
    assert cd.load(ROBOTS / file, root=root).nv == nv
    errors = largest_errors(ROBOTS / file, root)
    assert max(errors.values()) < 1e-10, errors


@pytest.mark.parametrize("root", ["fixed", "free"])
def test_every_joint_type_agrees(root: str) -> None:
    errors = largest_errors(ARM, root)
    assert max(errors.values()) < 1e-10, errors


@pytest.mark.parametrize("file", [file for file in EVERY if file not in REFUSED and file not in STILL])
def test_every_robot_that_loads_agrees(file: str) -> None:
    errors = largest_errors(ROBOTS / file, "fixed", by_graphs, snapping=0.0)
    assert max(errors.values()) < 1e-10, errors


MIMICS = (
    "baxter_description/urdf/baxter.urdf", "panda_description/urdf/panda.urdf", "pr2_description/urdf/pr2.urdf",
    "tiago_pro_description/robots/tiago_pro.urdf",
)  # fmt: skip
"""Robots with joints that follow others; Pinocchio refuses Talos, of which some follow joints further on."""


@pytest.mark.parametrize("file", MIMICS)
def test_mimic_joints_are_those_of_pinocchio(file: str) -> None:
    """Mass matrix and bias force along the coordinates that are left when joints follow others."""
    errors = mimic_differences(ROBOTS / file, crc32(file.encode()))
    assert max(errors.values()) < 1e-10, errors


WRITTEN = (
    "allegro_hand_description/urdf/allegro_right_hand.urdf", "anymal_c_simple_description/urdf/anymal.urdf",
    "centauro_description/urdf/centauro.urdf", "pr2_description/urdf/pr2.urdf", "ur_description/urdf/ur5_gripper.urdf",
)  # fmt: skip
"""Robots with odd inertias, limits that lock, mimics, a link called world: all that MJCF says otherwise."""


@pytest.mark.parametrize("file", WRITTEN)
def test_a_robot_written_as_mjcf_is_the_same_to_mujoco(file: str, tmp_path: Path) -> None:
    model = cd.load(ROBOTS / file, snapping=0.0)
    cd.save(model, tmp_path / "robot.xml")
    again = cd.load(tmp_path / "robot.xml", snapping=0.0)
    q, _ = model.random_state(np.random.default_rng(crc32(file.encode())))
    q_order, v_order = matched(model, again)
    M = mass_matrix(model, q)[np.ix_(v_order, v_order)]
    for theirs in (mass_matrix(again, q[q_order]), mass_matrix_of_mujoco(tmp_path / "robot.xml", q[q_order])):
        assert np.abs(theirs - M).max() < 1e-12 * np.abs(M).max()


def test_every_robot_is_on_the_page() -> None:
    """The page of robots, made by docs/make_robots.py, has every file, and why some are refused."""
    page = (Path(__file__).parents[2] / "docs" / "robots.md").read_text(encoding="utf-8")
    for file in EVERY:
        assert f"`{file}`" in page
    assert page.count("refused") >= len(REFUSED) - 1  # one is held together by its mimics


@pytest.mark.parametrize("file", sorted(STILL))
def test_a_robot_in_one_piece_floats_alike(file: str) -> None:
    assert cd.load(ROBOTS / file).nv == 0
    errors = largest_errors(ROBOTS / file, "free", by_graphs, snapping=0.0)
    assert max(errors.values()) < 1e-10, errors


@pytest.mark.parametrize("file", REFUSED)
def test_a_faulty_file_says_why(file: str) -> None:
    with pytest.raises(FileError, match=REFUSED[file]) as error:
        cd.load(ROBOTS / file, mimic=False)  # a coupling may hold a massless link
    assert str(error.value).startswith(str(ROBOTS / file))


def test_panda_fingers_move_together() -> None:
    model = cd.load(ROBOTS / NAMED["panda"][0], damping=False)
    q, v = cd.assemble(model, v=np.ones(model.nv))
    a = cd.forward_dynamics(model, q, v, np.arange(1.0, 10.0))
    left, right = (model.v_slice(f"panda_finger_joint{k}") for k in (1, 2))
    np.testing.assert_allclose(v[left], v[right], atol=1e-12)
    np.testing.assert_allclose(a[left], a[right], rtol=1e-9)
    assert cd.redundancy(model).freedoms == 8
    assert cd.load(ROBOTS / NAMED["panda"][0], mimic=False).couplings == ()


def test_panda_fingers_keep_their_mimic() -> None:
    model = cd.load(ROBOTS / NAMED["panda"][0], damping=False)
    assert model.joint("panda_finger_joint2").data.mimic == ("panda_finger_joint1", 1.0, 0.0)
    assert model.joint("panda_finger_joint1").data.mimic is None


def test_frames_of_fixed_links_keep_their_names() -> None:
    model = cd.load(ROBOTS / NAMED["panda"][0], damping=False)
    link, _ = model.placement("panda_link8")
    assert model.tree.links[link].name == "panda_link7"
