"""The wheel and the source distribution: complete, installable, and the same thing.

`python -m tests.product.package` does the long version: it installs them in clean environments, at the lower bounds of
the dependencies and on other interpreters.
"""

import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from importlib.metadata import version
from pathlib import Path

import pytest
from tests.product.package import PART, RUN, SMOKE, build, lower_bounds

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return build(ROOT, tmp_path_factory.mktemp("dist"))


def test_the_wheel_has_all_files_and_nothing_else(built: tuple[Path, Path]) -> None:
    tracked = subprocess.run(
        ["git", "ls-files", "src/cardan"], cwd=ROOT, capture_output=True, text=True, check=False
    ).stdout.split()
    if not tracked:
        pytest.skip("not a git checkout: what belongs in the wheel is not known")
    inside = {name for name in zipfile.ZipFile(built[0]).namelist() if ".dist-info" not in name}
    assert {f.removeprefix("src/") for f in tracked if (ROOT / f).exists()} <= inside
    assert not [name for name in inside if not name.startswith("cardan/") or "__pycache__" in name]


def test_the_source_distribution_builds_the_same_wheel(built: tuple[Path, Path], tmp_path: Path) -> None:
    wheel, source = built
    with tarfile.open(source) as archive:
        archive.extractall(tmp_path, filter="data")
    again, _ = build(next(tmp_path.iterdir()), tmp_path / "dist")
    assert zipfile.ZipFile(again).namelist() == zipfile.ZipFile(wheel).namelist()


def test_the_wheel_works_away_from_the_checkout(built: tuple[Path, Path], tmp_path: Path) -> None:
    with zipfile.ZipFile(built[0]) as archive:
        archive.extractall(tmp_path)
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n{SMOKE}"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert str(tmp_path) in done.stdout


def test_the_lower_bounds_are_stated_and_tried() -> None:
    """`make bounds` pins every dependency at its bound; what is installed here is not below any of them."""
    dependencies = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    pins = [pin.split("==") for pin in lower_bounds(ROOT)]
    assert [pin[0] for pin in pins] == [re.split(r"[<>=!~ ]", wanted)[0] for wanted in dependencies]
    for name, *bound in pins:
        assert len(bound) == 1, f"{name} has no lower bound"
        assert numbers(version(name)) >= numbers(bound[0]), f"{name} is older here than its lower bound"
    assert all((ROOT / part).exists() for part in PART)


def numbers(version: str) -> list[int]:
    return [int(part) for part in re.findall(r"\d+", version)[:3]]


def test_a_run_is_read_with_its_model(tmp_path: Path) -> None:
    """What `make bounds` writes with one version of the dependencies and reads with another."""
    for verb in ("write", "read"):
        done = subprocess.run(
            [sys.executable, "-c", RUN, verb, "run.nc"], cwd=tmp_path, stderr=subprocess.PIPE, check=False
        )
        assert done.returncode == 0, done.stderr
