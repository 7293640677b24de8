"""MJCF files as MuJoCo compiles them: masses, inertia with armature, poses and forces agree."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import cardan as cd
from cardan.io.mjcf.mesh import measure

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


def _size(path: Path) -> int:
    """Rates of a model; 0 where MuJoCo does not compile it."""
    try:
        return int(mujoco.MjModel.from_xml_path(str(path)).nv)
    except ValueError:
        return 0
