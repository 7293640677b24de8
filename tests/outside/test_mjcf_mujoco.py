"""MJCF files as MuJoCo compiles them: masses, inertia with armature, poses and forces agree."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import cardan as cd
from cardan.io.mjcf.solids import measure
from cardan.io.mjcf.vocabulary import EXACTLY, UP_TO

from ..mjcf import OWN, PACKAGES, compare, inertia_apart, inertias, models, packaged
from ..trees import close

mujoco = pytest.importorskip("mujoco")

FILES = sorted(path.stem for path in OWN.glob("*.xml"))
MESH = 1e-7
"""Where MuJoCo stops to look for the principal axes of a mesh, whose vertices are of single precision."""
FACES = "0 2 1 0 1 3 0 3 2 1 2 3"
LARGEST = 40
"""Rates of the largest packaged model that is compared here; `docs/make_files.py` compares all."""


@pytest.mark.parametrize("name", FILES)
def test_our_files_are_what_mujoco_makes_of_them(name: str) -> None:
    if name == "lossy":
        pytest.skip("it names things that do not exist, to be lost")
    errors = compare(OWN / f"{name}.xml")
    assert {"mass matrix", "poses"} <= set(errors)
    assert max(errors.values()) < 1e-10, errors


@pytest.mark.parametrize("package", PACKAGES)
def test_models_in_packages_are_what_mujoco_makes_of_them(package: str) -> None:
    folder, _ = packaged(package)
    compared = 0
    for _, path in models(package):
        size = _size(path)
        if not 0 < size <= LARGEST:
            continue
        meshes = "<mesh" in path.read_text()
        try:
            errors = compare(path, folder=folder, compiled=meshes)
        except cd.FileError as error:
            assert "would move nothing" in str(error), error
            continue
        compared += 1
        assert max(errors.values()) < 1e-10, f"{path}: {errors}"
        if meshes:  # three products of inertia, of up to MESH of the largest entry each, are left out
            assert inertia_apart(path, folder=folder) < np.sqrt(6) * MESH, path
    if not compared:
        pytest.skip(f"{package} is not installed, or has no model of up to {LARGEST} rates")


def test_inertias_of_meshes_are_mujocos_before_its_iteration_stops() -> None:
    """MuJoCo's inertia of a mesh is ours without the products that its search for principal axes leaves over."""
    rng = np.random.default_rng(7)
    solids = [np.float32(rng.normal(size=(4, 3)) * rng.uniform(0.1, 1, 3)) for _ in range(40)]
    solids = [D if np.linalg.det(D[1:] - D[0]) > 0 else D[[1, 0, 2, 3]] for D in solids]
    meshes = "".join(
        f'<mesh name="m{k}" inertia="exact" vertex="{" ".join(map(str, D.ravel()))}" face="{FACES}"/>'
        for k, D in enumerate(solids)
    )
    bodies = "".join(f'<body><freejoint/><geom type="mesh" mesh="m{k}"/></body>' for k in range(len(solids)))
    theirs = mujoco.MjModel.from_xml_string(f"<mujoco><asset>{meshes}</asset><worldbody>{bodies}</worldbody></mujoco>")
    faces = np.array(FACES.split(), dtype=int).reshape(-1, 3)
    left_over = 0.0
    for D, (mass, _, compiled) in zip(solids, inertias(theirs), strict=True):
        volume, _, I = measure(D.astype(float)[faces], "exact")
        I = volume * 1000 * I
        close(mass, volume * 1000, 1e-12 * mass)
        stopped = _principal(I, MESH)
        assert np.abs(stopped - compiled).max() < 1e-11 * np.abs(I).max()
        left_over = max(left_over, np.abs(I - compiled).max() / np.abs(I).max())
    assert 1e-9 < left_over < np.sqrt(6) * MESH


def _principal(I: np.ndarray, tolerance: float) -> np.ndarray:
    """An inertia without its products about the axes where Jacobi's rotations, largest product first, stop."""
    R = np.eye(3)
    while True:
        D = R.T @ I @ R
        i, j = max(((0, 1), (0, 2), (1, 2)), key=lambda pair: abs(D[pair]))
        if abs(D[i, j]) <= tolerance * np.abs(I).max():
            return R @ np.diag(np.diag(D)) @ R.T
        angle = np.arctan(2 * D[i, j] / (D[i, i] - D[j, j])) / 2  # of the two that clear the product, the smaller
        G = np.eye(3)
        G[[i, i, j, j], [i, j, i, j]] = np.cos(angle), -np.sin(angle), np.sin(angle), np.cos(angle)
        R = R @ G


@pytest.mark.parametrize("name", ["negative_damping", "negative_damping_of_a_ball", "negative_stiffness"])
def test_what_is_kept_of_a_file_that_breaks_a_rule_acts_as_in_mujoco(name: str) -> None:
    errors = compare(OWN.parents[1] / "broken" / "slight" / f"{name}.xml", policy="warn")
    assert "forces" in errors and max(errors.values()) < 1e-12, errors


# An element with an attribute, {}, and those that it may have, each with as many numbers as it must or may have.
HINGE, BALL = '<joint name="j" axis="0 1 0"/>', '<geom size="0.1"/>'
WORLD = "<worldbody><body>{}</body></worldbody>"
POSED = "pos=0 1 2; quat=1 0 0 1; euler=1 2 3; axisangle=1 0 0 1; xyaxes=1 0 0 0 1 0; zaxis=0 1 1"
NUMBERS = {
    f"<worldbody><body {{}}>{HINGE}{BALL}</body></worldbody>": f"{POSED}; gravcomp=1",
    f"<worldbody><frame {{}}><body>{HINGE}{BALL}</body></frame></worldbody>": POSED,
    WORLD.format(f'{HINGE}<geom size="0.1" {{}}/>'): f"{POSED}; mass=1; density=1; friction=1 1 1; solref=1 1; "
    "margin=1; solimp=.9 .9 .1 .5 2; rgba=1 1 1 1; group=1; condim=3; contype=1; conaffinity=1; priority=1; "
    "solmix=1; gap=1",
    WORLD.format(f"{HINGE}{BALL}<site {{}}/>"): f"{POSED}; size=1 1 1; rgba=1 1 1 1; group=1",
    WORLD.format(f'{HINGE}<geom type="capsule" size="1" {{}}/>'): "fromto=0 0 0 1 1 1",
    WORLD.format(f'{HINGE}<geom type="box" {{}}/>'): "size=1 2 3",
    WORLD.format(f'{HINGE}<inertial mass="1" pos="0 0 0" {{}}/>'): "diaginertia=1 1 1; fullinertia=1 1 1 0 0 0",
    WORLD.format(BALL + '<joint name="j" {}/>'): "pos=0 1 2; axis=0 1 2; armature=1; damping=1 1 1; stiffness=1 1 1; "
    "range=-1 1; ref=1; springref=1; frictionloss=1; springdamper=1 1; actuatorfrcrange=-1 1; margin=1; group=1; "
    "solreflimit=1 1; solimplimit=.9 .9 .1 .5 2; solreffriction=1 1; solimpfriction=.9 .9 .1 .5 2",
    "<option {}/>" + WORLD.format(HINGE + BALL): "gravity=0 0 1; timestep=1; wind=1 1 1; magnetic=1 1 1; density=1; "
    "viscosity=1; impratio=1; o_margin=1; o_solref=1 1; o_solimp=.9 .9 .1 .5 2; o_friction=1 1 1 1 1",
    "<compiler {}/>" + WORLD.format(HINGE + BALL): "boundmass=1; boundinertia=1; settotalmass=1; inertiagrouprange=0 3",
    WORLD.format(HINGE + BALL) + '<actuator><general joint="j" {}/></actuator>': "gear=1 1 1 1 1 1; ctrlrange=-1 1; "
    "forcerange=-1 1; armature=1; damping=1 1 1; gainprm=1 1 1 1 1 1 1 1 1 1; biasprm=1 1 1 1 1 1 1 1 1 1",
}  # fmt: skip


def test_numbers_too_many_or_too_few_are_refused_where_mujoco_refuses_them(tmp_path: Path) -> None:
    file = tmp_path / "m.xml"
    unlike, known = [], EXACTLY | UP_TO
    for template, attributes in NUMBERS.items():
        for attribute, _, value in (each.strip().partition("=") for each in attributes.split("; ")):
            words = value.split()
            assert len(words) == known[attribute], attribute
            for given in (words[:-1], words, [*words, "1"]):
                numbers = " ".join(given)
                file.write_text("<mujoco>" + template.format(f'{attribute}="{numbers}"') + "</mujoco>")
                try:
                    cd.load_mechanism(file)
                    ours = True
                except cd.FileError:
                    ours = False
                if given and ours != (_size(file) > 0):
                    unlike.append(f"{template} with {attribute} = {given}: {ours} here")
    assert not unlike


def _size(path: Path) -> int:
    """Rates of a model; 0 where MuJoCo does not compile it."""
    try:
        return int(mujoco.MjModel.from_xml_path(str(path)).nv)
    except ValueError:
        return 0


SEEN = {"Sphere": 2, "Capsule": 3, "Ellipsoid": 4, "Cylinder": 5, "Box": 6}
"""MuJoCo's numbers of the types of geoms."""


def test_shapes_are_the_geoms_that_mujoco_shows() -> None:
    """Type, place, size and own colour of every geom of the visible groups that is not a mesh."""
    compared = 0
    for name in FILES:
        if name == "lossy":
            continue
        ours, theirs = cd.load(OWN / f"{name}.xml"), mujoco.MjModel.from_xml_path(str(OWN / f"{name}.xml"))
        for b in range(theirs.nbody):
            owner = theirs.body(b).name
            if b and owner not in ours.body_names:
                continue
            shapes = [s for s in (ours.body(owner).shapes if b else ours.ground_shapes) if type(s).__name__ in SEEN]
            geoms = [g for g in range(theirs.ngeom) if theirs.geom_bodyid[g] == b and theirs.geom_group[g] < 3]
            geoms = [g for g in geoms if theirs.geom_type[g] in SEEN.values() and theirs.geom_rgba[g, 3] > 0]
            assert [SEEN[type(s).__name__] for s in shapes] == [theirs.geom_type[g] for g in geoms], (name, owner)
            for shape, g in zip(shapes, geoms, strict=True):
                R = np.zeros(9)
                mujoco.mju_quat2Mat(R, theirs.geom_quat[g])
                a, h = theirs.geom_size[g][0], theirs.geom_size[g][1]
                extents = {2: (a, a, a), 3: (a, a, a + h), 5: (a, a, h)}.get(theirs.geom_type[g], theirs.geom_size[g])
                points = (shape.surface().vertices - theirs.geom_pos[g]) @ R.reshape(3, 3)
                assert np.allclose(points.max(axis=0), extents, rtol=1e-2, atol=1e-9), (name, owner)
                assert np.allclose((points.max(axis=0) + points.min(axis=0)), 0, atol=1e-6)
                if theirs.geom_matid[g] < 0:
                    assert np.allclose(shape.colour, theirs.geom_rgba[g], atol=1e-6)
                compared += 1
    assert compared > 20
