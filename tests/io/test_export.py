"""URDF and MJCF written: what is read back moves alike, and what the format cannot say is told."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

import cardan as cd
from cardan.io.export import rpy_of_rotation
from cardan.io.urdf import Root, read_urdf, write_urdf
from cardan.mechanisms import CATALOGUE
from cardan.model.joint import TABLE

from ..trees import KINDS, add_body, close, join, kind_model, random_pose, random_rotation, seeds

ARM = Path(__file__).parents[1] / "data" / "arm.urdf"
SINGLE = ("rigid", "revolute", "prismatic", "cylindrical")  # the same motion from either side
FORWARD = ("universal", "planar", "free")
STARTED = ("revolute", "prismatic", "cylindrical", "universal", "planar")


def mass_matrix(model: cd.Model, q: np.ndarray) -> np.ndarray:
    """From the graph, without compiling."""
    return np.array(cd.equations(model).graph("mass_matrix")(q)).reshape(model.nv, model.nv)


def some_tree(seed: int, kinds: tuple[str, ...] = SINGLE + FORWARD, started: float = 0.0) -> cd.Model:
    """A random tree of joints that URDF has, by themselves or in a row, and a massless body inside it."""
    rng = np.random.default_rng(seed)
    m = cd.Mechanism("tree")
    names = [m.ground]
    for k, kind in enumerate(rng.permutation(kinds)[:5]):
        add_body(m, f"b{k}", rng)
        near, backwards = names[rng.integers(len(names))], kind in SINGLE and rng.random() < 0.4
        start = rng.uniform(-1, 1, TABLE[kind].nq) if kind in STARTED and rng.random() < started else None
        ends = (f"b{k}", near) if backwards else (near, f"b{k}")
        placed = {"at": random_pose(rng), "child_at": random_pose(rng)}
        m.joint(f"{kind} b{k}", KINDS[kind](rng), *ends, start=start, **placed)
        names.append(f"b{k}")
    m.body("cross")
    add_body(m, "end", rng)
    join(m, "prismatic", names[-1], "cross", rng)
    join(m, "revolute", "cross", "end", rng)
    m.frame("tool", "end", at=cd.Pose(rng.uniform(-1, 1, 3), random_rotation(rng)))
    return m.build(snapping=0.0)


def urdf_again(model: cd.Model, **options: bool) -> cd.Model:
    text, _ = write_urdf(model)
    return read_urdf(text, gravity=model.gravity, **options).build(snapping=0.0)  # type: ignore[arg-type]


@given(seeds)
@settings(max_examples=12)
def test_a_tree_written_as_urdf_has_the_same_mass_matrix(seed: int) -> None:
    model = some_tree(seed)
    again = urdf_again(model)
    q, _ = model.random_state(np.random.default_rng(seed))
    close(mass_matrix(again, q), mass_matrix(model, q), 1e-12)
    assert set(model.body_names) <= set(again.body_names)
    close(pose(again, "tool", q), pose(model, "tool", q), 1e-12)
    assert write_urdf(again)[1] == []


def pose(model: cd.Model, name: str, q: np.ndarray) -> np.ndarray:
    """Of a frame, or of a body that stands for it."""
    link, at = model.placement(name)
    M = np.eye(4)
    chain = []
    while link >= 0:
        chain.append(model.tree.links[link])
        link = chain[-1].parent
    for part in reversed(chain):
        step = np.eye(4)
        step[:3, :3], step[:3, 3] = np.asarray(part.E).T, np.asarray(part.r).ravel()
        M = M @ step
        own = q[part.q]
        if part.kind.r is not None:
            M[:3, 3] += M[:3, :3] @ np.array(part.kind.r(own)).ravel()
        if part.kind.E is not None:
            M[:3, :3] = M[:3, :3] @ np.array(part.kind.E(own)).T
    return M @ at.matrix


@pytest.mark.parametrize("root", ["fixed", "free"])
def test_a_file_of_every_joint_type_is_written_as_it_was_read(root: Root) -> None:
    model = cd.load(ARM, root=root)
    again = urdf_again(model)
    assert [j.name for j in again.joints if j.name in model.joint_names] == list(model.joint_names)
    for joint in model.joints:
        assert again.joint(joint.name).data == joint.data
        if root == "fixed":
            close(again.joint(joint.name).at.matrix, joint.at.matrix, 1e-15)
    assert len(again.couplings) == len(model.couplings)


@pytest.mark.parametrize("kind", ["universal", "planar"])
def test_a_joint_met_from_its_child_has_its_coordinates_in_the_opposite_order(kind: str) -> None:
    model = kind_model(kind, True)
    text, losses = write_urdf(model)
    assert any("opposite order" in loss for loss in losses)
    again = read_urdf(text).build(snapping=0.0)
    rng = np.random.default_rng(1)
    n = again.nv
    angles = rng.uniform(-1, 1, 3)
    ball = turn(0, angles[0]) @ turn(1, angles[1]) @ turn(2, angles[2])
    middle = rng.uniform(-1, 1, n - 4)
    ours = np.concatenate([[0.3], middle, cd.Pose(rotation=ball).quaternion])
    theirs = np.concatenate([[0.3], middle[::-1], angles])
    order = [0, *range(n - 4, 0, -1)]
    close(mass_matrix(again, theirs)[: n - 3, : n - 3], mass_matrix(model, ours)[np.ix_(order, order)], 1e-12)


def turn(axis: int, angle: float) -> np.ndarray:
    rpy = np.zeros(3)
    rpy[axis] = angle
    return cd.Pose(rpy=rpy).rotation


@given(seeds)
def test_roll_pitch_yaw_are_exact_everywhere(seed: int) -> None:
    rng = np.random.default_rng(seed)
    near_lock = cd.Pose(rpy=(rng.uniform(-3, 3), np.pi / 2 + rng.choice([0, 1e-9, -1e-7, 1e-4]), rng.uniform(-3, 3)))
    for R in (random_rotation(rng), near_lock.rotation):
        close(cd.Pose(rpy=rpy_of_rotation(R)).rotation, R, 1e-15)


def test_what_urdf_cannot_say_is_told_and_written(tmp_path: Path) -> None:
    m = cd.Mechanism("four bar", gravity=(0, -9.81, 0))
    for name in ("crank", "rod", "rocker"):
        m.body(name, mass=1, inertia=(1, 1, 1))
    m.joint("A", cd.Revolute(), m.ground, "crank", armature=0.1, start=0.2)
    m.joint("B", cd.Revolute(), "crank", "rod", at=(1, 0, 0))
    m.joint("C", cd.Revolute(), "rod", "rocker", at=(3, 0, 0))
    m.joint("D", cd.Revolute(), m.ground, "rocker", at=(3, -2, 0), child_at=(0, -3, 0))
    m.spring("s -- 1", "crank", "rod", stiffness=1, length=1)
    m.couple("gear", {"A": 1, "B": 2, "C": 1})
    m.motion("push", "A", lambda t: t)
    losses = cd.save(m, tmp_path / "a.urdf")
    for words in (
        "gravity (0.0, -9.81, 0.0)", "joint 'A': URDF has no armature, 0.1", "joint 'A': URDF has no start, 0.2",
        "it closes a loop", "spring 's -- 1': URDF has no force elements", "coupling 'gear': ", "motion 'push': ",
    ):  # fmt: skip
        assert sum(words in loss for loss in losses) == 1, (words, losses)
    written = (tmp_path / "a.urdf").read_text()
    for loss in losses:
        assert loss.replace("--", "- -") in written
    assert cd.load(tmp_path / "a.urdf").nv == 3
    with pytest.raises(cd.FileError, match=r"a\.urdf: there is such a file already"):
        cd.save(m, tmp_path / "a.urdf")
    cd.save(m, tmp_path / "a.urdf", overwrite=True)
    with pytest.raises(cd.FileError, match=r"b\.urdf: the format cannot express all of 'four bar': .*; and \d+ more"):
        cd.save(m, tmp_path / "b.urdf", strict=True)
    assert [file.name for file in tmp_path.iterdir()] == ["a.urdf"]


@pytest.mark.parametrize("file", ["a.urdf", "a.xml"])
def test_an_infinite_limit_is_written_as_none(file: str, tmp_path: Path) -> None:
    m = cd.Mechanism("m")
    m.body("a", mass=1, inertia=(1, 1, 1))
    m.joint("A", cd.Revolute(), m.ground, "a", data=cd.JointData(lower=-np.inf, upper=np.inf, effort=np.inf))
    m.body("b", mass=1, inertia=(1, 1, 1))
    m.joint("B", cd.Prismatic(), "a", "b", data=cd.JointData(lower=-1, upper=1, effort=np.inf))
    cd.save(m, tmp_path / file)
    again = cd.load(tmp_path / file)
    assert again.joint("A").data == cd.JointData()
    assert again.joint("B").data == cd.JointData(lower=-1, upper=1)


def test_what_urdf_says_whole_is_not_refused(tmp_path: Path) -> None:
    assert cd.save(cd.load(ARM), tmp_path / "a.urdf", strict=True) == []
    assert cd.save(cd.load(ARM), tmp_path / "a.yaml", strict=True) == []


# MJCF


def mjcf_again(model: cd.Model, folder: Path) -> cd.Model:
    cd.save(model, folder / "a.xml", overwrite=True)
    return cd.load(folder / "a.xml", snapping=0.0)


def matched(model: cd.Model, again: cd.Model) -> tuple[list[int], list[int]]:
    """Where each entry of the other's q and v is in the model's."""
    q, v = [], []
    for link in again.tree.links:
        name, _, number = again.joints[link.joint].name.rpartition("_")
        if not name or name not in model.joint_names:
            name, number = again.joints[link.joint].name, ""
        for places, at in ((q, model.q_slice(name)), (v, model.v_slice(name))):
            places += [at.start + int(number) - 1] if number else list(range(at.start, at.stop))
    return q, v


@given(seeds)
@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_tree_written_as_mjcf_has_the_same_mass_matrix(tmp_path: Path, seed: int) -> None:
    model = some_tree(seed, (*SINGLE, "universal", "planar", "spherical"), 0.5)
    again = mjcf_again(model, tmp_path)
    q, _ = model.random_state(np.random.default_rng(seed))
    q_order, v_order = matched(model, again)
    M = mass_matrix(model, q)[np.ix_(v_order, v_order)]
    close(mass_matrix(again, q[q_order]), M, 1e-12)
    close(pose(again, "tool", q[q_order]), pose(model, "tool", q), 1e-12)
    close(again.start(), model.start()[q_order], 0)
    close(mass_matrix(mjcf_again(again, tmp_path), q[q_order]), M, 1e-12)
    close(mass_matrix_of_mujoco(tmp_path / "a.xml", q[q_order]), M, 1e-10)


def mass_matrix_of_mujoco(file: Path, q: np.ndarray) -> np.ndarray:
    """From MuJoCo itself; its coordinates are ours for hinges, slides and balls."""
    mujoco = pytest.importorskip("mujoco")
    model = mujoco.MjModel.from_xml_path(str(file))
    data = mujoco.MjData(model)
    data.qpos[:] = q
    mujoco.mj_forward(model, data)
    M = np.zeros((model.nv, model.nv))
    mujoco.mj_fullM(model, data, M)
    return M


def test_a_floating_body_and_a_loop_in_mjcf(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    m = cd.Mechanism("floating", gravity=(0, 0, -1.62))
    add_body(m, "base", rng)
    m.joint("root", cd.Free(), m.ground, "base", child_at=cd.Pose((0.1, 0, 0), random_rotation(rng)))
    for name, near in (("left", "base"), ("far", "left"), ("right", "base")):
        add_body(m, name, rng)
        join(m, "revolute", near, name, rng)
    m.joint("ball", cd.Spherical(), "far", "right", at=(0, 0, 0.3), child_at=(0.2, 0, 0))
    m.joint("pin", cd.Revolute(), "far", "base", at=(0, 0, 0.3), child_at=(0.2, 0, 0))
    m.couple("gear", {"revolute left": 1.0, "revolute right": -2.0}, offset=0.1)
    m.torsion("spring", "revolute far", stiffness=3.0, rest=0.2, damping=0.1)
    m.damper("lost", "base", "far", damping=1.0)
    model = m.build(cut=["ball", "pin"])
    again = mjcf_again(model, tmp_path)
    losses = cd.save(model, tmp_path / "b.xml")
    assert [loss.partition(":")[0] for loss in losses] == ["damper 'lost'", "body 'base'", "joint 'pin' (revolute)"]
    assert [again.joints[j].kind.name for j in again.cuts] == ["spherical"] * 3
    ends = [again.joints[j].at.position.tolist() for j in again.cuts]
    close(ends, [[0, 0, 0.3], [0, 0, 0.3], [0, 0, 0.4]], 1e-15)
    q, _ = model.random_state(rng)
    close(mass_matrix(again, q), mass_matrix(model, q), 1e-12)
    close(again.gravity, model.gravity, 0)
    assert again.couplings[0].coefficients.tolist() == [1.0, -2.0]
    assert again.couplings[0].offset == 0.1
    for key, value in model.forces[0].numbers.items():
        close(again.forces[0].numbers[key], value, 0)


def test_a_four_bar_closes_in_mjcf_too(tmp_path: Path) -> None:
    model = CATALOGUE["four_bar"]().build()
    again = mjcf_again(model, tmp_path)
    assert cd.redundancy(again).freedoms == cd.redundancy(model).freedoms == 1


@pytest.mark.parametrize("kind", ["screw", "free", "spherical", "universal", "planar"])
def test_what_mjcf_says_otherwise_is_told(kind: str, tmp_path: Path) -> None:
    model = kind_model(kind, backwards=kind != "screw")
    losses = cd.save(model, tmp_path / "a.xml")
    assert any(f"joint '{kind} moved'" in loss or "reordered" in loss for loss in losses)
    with pytest.raises(cd.FileError, match="the format cannot express all of"):
        cd.save(model, tmp_path / "b.xml", strict=True)
    again = cd.load(tmp_path / "a.xml")
    assert again.total_mass == pytest.approx(model.total_mass)
    assert again.nv - len(again.couplings) == model.nv


@pytest.mark.parametrize("name", CATALOGUE)
def test_every_mechanism_of_the_catalogue_can_be_written(name: str, tmp_path: Path) -> None:
    model = CATALOGUE[name]().build()
    text, losses = write_urdf(model)
    again = read_urdf(text)
    assert sum(body.mass for body in again.bodies) == pytest.approx(model.total_mass)
    assert len([loss for loss in losses if "closes a loop" in loss]) == len(model.cuts)


def test_names_that_xml_cannot_hold_are_refused(tmp_path: Path) -> None:
    m = cd.Mechanism('<a & "b">')
    m.body("a <&> '", mass=1, inertia=(1, 1, 1))
    m.joint("é", cd.Revolute(), m.ground, "a <&> '")
    cd.save(m, tmp_path / "a.urdf")
    assert cd.load(tmp_path / "a.urdf").body("a <&> '").mass == 1
    m.frame("none \ufffe", "a <&> '")
    with pytest.raises(cd.ModelError, match=r"frame 'none \\ufffe': .* XML"):
        cd.save(m, tmp_path / "b.urdf")
    assert not (tmp_path / "b.urdf").exists()


def star(count: int, chained: bool = False) -> cd.Model:
    """Bodies on hinges, all on ground or each on the one before."""
    m = cd.Mechanism("star")
    last = m.ground
    for k in range(count):
        m.body(f"b{k}", mass=1.0, inertia=np.eye(3))
        m.joint(f"j{k}", cd.Revolute(), last, f"b{k}")
        last = f"b{k}" if chained else m.ground
    return m.build()


@pytest.mark.parametrize("suffix", ["urdf", "xml"])
def test_constraints_of_the_users_own_are_told_by_name(suffix: str, tmp_path: Path) -> None:
    m = cd.Mechanism("sleigh")
    m.body("sleigh", mass=1.0, inertia=(1.0, 1.0, 1.0))
    m.joint("ice", cd.Planar(), m.ground, "sleigh")
    for name in ("left edge", "right edge"):
        m.constraint(name, "sleigh", lambda t, poses, twists: twists[0][4])
    losses = cd.save(m, tmp_path / f"sleigh.{suffix}")
    for name in ("left edge", "right edge"):
        assert [loss for loss in losses if f"constraint '{name}'" in loss]
    with pytest.raises(cd.FileError, match="constraint 'left edge'"):
        cd.save(m, tmp_path / f"strict.{suffix}", strict=True)


@pytest.mark.parametrize("suffix", ["urdf", "xml"])
def test_what_load_would_not_read_is_told(suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Limits are meant for hostile files; a file beyond them is for other programs, and `strict` refuses it."""
    from cardan.io import mjcf, urdf
    from cardan.io.mjcf import item, write

    monkeypatch.setattr(urdf, "BODIES", 4)
    monkeypatch.setitem(item.COUNTED, "body", 4)
    assert mjcf.write.COUNTED is write.COUNTED is item.COUNTED
    for count in (2, 3, 4, 5):
        path = tmp_path / f"{count}.{suffix}"
        losses = cd.save(star(count), path)
        if any("more than load reads" in loss for loss in losses):
            with pytest.raises(cd.FileError, match="at most 4 are read"):
                cd.load(path)
            with pytest.raises(cd.FileError, match="more than load reads"):
                cd.save(star(count), path, overwrite=True, strict=True)
        else:
            assert cd.load(path).nv == count
    assert losses


def test_a_yaml_file_that_load_would_not_read_is_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from cardan.io.yaml import nodes, read, write

    for place, name, value in ((nodes, "LARGEST", 20), (read, "BODIES", 2), (write, "SIZE_LIMIT", 200)):
        with monkeypatch.context() as lowered:
            lowered.setattr(place, name, value)
            with pytest.raises(cd.ModelError, match=r"'star': its file could not be read again: .*read"):
                cd.save(star(3), tmp_path / "star.yaml")
    assert not list(tmp_path.iterdir())
    cd.save(star(3), tmp_path / "star.yaml")


def test_bodies_nested_deeper_than_mujoco_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from cardan.io import export

    monkeypatch.setattr(export, "DEEPEST", 43)
    model = star(41, chained=True)
    with pytest.raises(cd.ModelError, match="nested 44 levels deep"):
        cd.save(model, tmp_path / "chain.xml")
    assert cd.save(model, tmp_path / "chain.urdf") == []
    assert cd.save(star(40, chained=True), tmp_path / "chain.xml") == []


@pytest.mark.parametrize("suffix", ["xml", "urdf"])
@pytest.mark.parametrize("backwards", [False, True])
def test_a_screw_has_one_coordinate_more_which_is_said_and_moves_the_same(
    tmp_path: Path, suffix: str, backwards: bool
) -> None:
    """Neither format has a screw: a slide that is held to the hinge stands for its advance."""
    rng, pitch = np.random.default_rng(8), 0.3
    m = cd.Mechanism("m")
    m.body("nut", mass=1.0, com=rng.normal(size=3), inertia=(1.0, 1.1, 1.2))
    m.body("arm", mass=2.0, com=rng.normal(size=3), inertia=(1.0, 1.1, 1.2))
    ends = ("nut", m.ground) if backwards else (m.ground, "nut")
    m.joint("S", cd.Screw(axis=(0, 1, 1), pitch=pitch), *ends, at=rng.normal(size=3), child_at=rng.normal(size=3))
    m.joint("T", cd.Revolute(axis=(1, 0, 0)), "nut", "arm", at=(0.5, 0, 0))
    model = m.build()
    losses = cd.save(model, tmp_path / f"m.{suffix}")
    assert sum("joint 'S' (screw)" in loss and "nq and nv are larger by one" in loss for loss in losses) == 1
    copy = cd.load(tmp_path / f"m.{suffix}")
    assert (copy.nq, copy.nv) == (model.nq + 1, model.nv + 1)
    (coupling,) = copy.couplings
    advance = next(copy.joints[j].name for j in coupling.joints if copy.joints[j].name != "S")
    q, v = rng.normal(size=(2, 2))
    state = {"S": 0, advance: 0, "T": 1}
    G = np.zeros((copy.nv, 2))
    for name, k in state.items():
        G[copy.v_slice(name), k] = pitch if name == advance else 1.0
    close(cd.forward_dynamics(copy, G @ q, G @ v), G @ cd.forward_dynamics(model, q, v), 1e-10)
