"""The command line: what it prints, and its exit status 0, 1 or 2."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ARM = Path(__file__).parents[1] / "data" / "arm.urdf"


def cardan(*args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "cardan.cli", *args], capture_output=True, text=True, timeout=120)


def test_info_prints_the_tree_and_the_joints() -> None:
    done = cardan("info", str(ARM))
    assert done.returncode == 0
    for words in ("10 bodies", "lift (prismatic) -> column", "-0.1 to 0.5", "grip_left"):
        assert words in done.stdout


def test_info_as_json_tells_the_same() -> None:
    facts = json.loads(cardan("info", str(ARM), "--root", "free", "--json").stdout)
    assert facts["nv"] == 20
    assert {joint["name"]: joint["kind"] for joint in facts["joints"]}["lift"] == "prismatic"


def test_check_prints_one_table_and_passes() -> None:
    done = cardan("check", "double_pendulum")
    assert done.returncode == 0
    assert "all checks passed" in done.stdout
    assert "accelerations: spatial = newton_euler" in done.stdout


def test_check_as_json() -> None:
    report = json.loads(cardan("check", "pendulum", "--states", "4", "--json").stdout)
    assert report["passed"] and all(row["passed"] for row in report["rows"])


def test_demo_shows_agreement_and_speed() -> None:
    done = cardan("demo")
    assert done.returncode == 0, done.stderr
    for words in ("F6(7)", "F3(26)", "Largest relative difference", "all checks passed", "forward dynamics"):
        assert words in done.stdout


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("info", "pendulun"), "did you mean 'pendulum'?"),
        (("info", "no_such.urdf"), "no_such.urdf"),
        (("info", __file__), "suffix '.py' is not a known model format"),
        (("check", str(ARM), "--root", "sideways"), "--root must be fixed or free, got 'sideways'"),
    ],
)
def test_wrong_input_is_one_sentence_and_status_2(args: tuple[str, ...], words: str) -> None:
    done = cardan(*args)
    assert done.returncode == 2
    assert words in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stderr.count("\n") == 1


def test_every_command_has_help_with_an_example() -> None:
    for command in ("demo", "info", "check"):
        done = cardan(command, "--help")
        assert done.returncode == 0
        assert "Example" in done.stdout
