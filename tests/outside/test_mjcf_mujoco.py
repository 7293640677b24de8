"""MJCF files as MuJoCo compiles them: masses, inertia with armature, poses and forces agree."""

from __future__ import annotations

from pathlib import Path

import pytest

import cardan as cd

from ..mjcf import OWN, PACKAGES, compare, models, packaged

mujoco = pytest.importorskip("mujoco")

FILES = sorted(path.stem for path in OWN.glob("*.xml"))
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
        try:
            errors = compare(path, folder=folder)
        except cd.FileError as error:
            assert "would move nothing" in str(error), error
            continue
        compared += 1
        # with meshes MuJoCo keeps principal axes to about 1e-9 of a turn
        bound = 1e-8 if "<mesh" in path.read_text() else 1e-10
        assert max(errors.values()) < bound, f"{path}: {errors}"
    if not compared:
        pytest.skip(f"{package} is not installed, or has no model of up to {LARGEST} rates")


def _size(path: Path) -> int:
    """Rates of a model; 0 where MuJoCo does not compile it."""
    try:
        return int(mujoco.MjModel.from_xml_path(str(path)).nv)
    except ValueError:
        return 0
