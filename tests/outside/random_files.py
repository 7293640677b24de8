"""Random files read by Cardan and by the program whose format it is, as long as one likes.

    PYTHONPATH=src python -m tests.outside.random_files mjcf --seconds 600

`mjcf` is compared with MuJoCo, `urdf` with Pinocchio. Both must give the same numbers, or both must refuse; what Cardan
alone refuses must be one of the reasons in `REASONS`. A file that breaks this is shrunk and printed.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

import cardan as cd

from . import mujoco_twin, pinocchio_twin
from .random_mjcf import MAIN, files
from .random_urdf import robots

BOUND, BOUND_OF_MESHES = 1e-10, 1e-8
"""Relative difference; of a mesh MuJoCo has the principal axes to about 1e-9 of a turn."""
REASONS = (
    "would move nothing",  # two hinges on one axis, a link without mass: no mass matrix that can be inverted
    "shell of type ellipsoid",  # has no closed form
    "it holds a body to itself",
)


def compare_mjcf(texts: dict[str, str], worst: Counter[str] | None = None) -> str:
    """What came of the files of a model: they agree, or who refuses them and why."""
    with tempfile.TemporaryDirectory() as folder:
        for name, text in texts.items():
            (Path(folder) / name).write_text(text, encoding="utf-8")
        path = Path(folder) / MAIN
        outcome = _refusal(path, lambda: mujoco_twin.mujoco.MjModel.from_xml_path(str(path)))
        if outcome:
            return outcome
        bound = BOUND_OF_MESHES if "<mesh" in "".join(texts.values()) else BOUND
        return _agreement(mujoco_twin.differences(path), bound, worst)


def compare_urdf(text: str, root: Any, worst: Counter[str] | None = None) -> str:
    """What came of a robot, with joints that mimic free, and with joints that follow where Pinocchio has them."""
    pin = pinocchio_twin.pin
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "robot.urdf"
        path.write_text(text, encoding="utf-8")
        free = (pin.JointModelFreeFlyer(),) if root == "free" else ()
        outcome = _refusal(path, lambda: pin.buildModelFromUrdf(str(path), *free), root=root, mimic=False)
        if outcome:
            return outcome
        found = pinocchio_twin.differences(path, root)
        if "<mimic" in text and root == "fixed" and not any(kind in text for kind in ('"planar"', '"floating"')):
            try:
                pin.buildModelFromUrdf(str(path), mimic=True)
            except ValueError:  # it has mimics of joints further on, and of joints of other kinds, not at all
                return _agreement(found, BOUND, worst)
            found |= pinocchio_twin.mimic_differences(path)
        return _agreement(found, BOUND, worst)


def _refusal(path: Path, theirs: Callable[[], object], **options: Any) -> str:
    """Who refuses a file, if anybody; that only the other one does, or Cardan for no good reason, is wrong."""
    why = ours = ""
    try:
        theirs()
    except ValueError as error:
        why = str(error).partition("\n")[0]
    try:
        cd.load(path, **options)
    except cd.CardanError as error:
        ours = str(error)
    assert not why or ours, f"only Cardan takes the file; the other says: {why}"
    if not ours:
        return ""
    reason = next((reason for reason in REASONS if reason in ours), "")
    assert why or reason, f"only Cardan refuses the file: {ours}"
    return "both refuse it" if why else f"Cardan refuses it: {reason}"


def _agreement(found: dict[str, float], bound: float, worst: Counter[str] | None) -> str:
    assert all(error < bound for error in found.values()), found
    if worst is not None:
        for name, error in found.items():
            worst[name] = max(worst[name], error)  # type: ignore[assignment]
    return "they agree"


def search(what: str, seconds: float) -> tuple[Counter[str], Counter[str]]:
    """Outcomes, and the worst differences; what is wrong is raised as small as it gets."""
    outcomes, worst = Counter[str](), Counter[str]()
    end, number = time.monotonic() + seconds, int(time.time())
    few = settings(max_examples=50, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    while time.monotonic() < end:
        number += 1
        if what == "mjcf":
            run: Any = given(files())(lambda texts: outcomes.update([compare_mjcf(texts, worst)]))
        else:
            roots = st.sampled_from(["fixed", "free"])
            run = given(robots(), roots)(lambda text, root: outcomes.update([compare_urdf(text, root, worst)]))
        seed(number)(few(run))()
    return outcomes, worst


def main() -> None:
    """Search, and tell what was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("mjcf", "urdf"))
    parser.add_argument("--seconds", type=float, default=60.0)
    options = parser.parse_args()
    outcomes, worst = search(options.what, options.seconds)
    for outcome, count in outcomes.most_common():
        print(f"{count:6d}  {outcome}")
    for name, error in sorted(worst.items()):
        print(f"{error:8.1e}  {name}")


if __name__ == "__main__":
    sys.exit(main())
