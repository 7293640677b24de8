"""Inverse kinematics of a robot with a wrist: every solution is one by Pinocchio's kinematics, and all are found."""

from pathlib import Path

import numpy as np
import pytest

import cardan as cd

pin = pytest.importorskip("pinocchio")
cmeel = pytest.importorskip("cmeel")
pytestmark = pytest.mark.usefixtures("quick_code")

ROBOTS = Path(cmeel.__file__).parents[1] / "cmeel.prefix" / "share" / "example-robot-data" / "robots"


def test_all_solutions_of_a_six_joint_arm() -> None:
    """Six parallel and crossing axes: at most eight solutions, an even number, the given one among them."""
    path = ROBOTS / "ur_description" / "urdf" / "ur5_robot.urdf"
    model, theirs = cd.load(path, damping=False), pin.buildModelFromUrdf(str(path))
    data, frame = theirs.createData(), theirs.getFrameId("ee_link")
    q = np.random.default_rng(0).uniform(-np.pi, np.pi, (6, 6))

    def pose(x: np.ndarray) -> np.ndarray:
        pin.framesForwardKinematics(theirs, data, x)
        return np.array(data.oMf[frame].homogeneous)

    wanted = np.array([pose(x) for x in q])
    found = cd.inverse_kinematics(model, {"ee_link": wanted}, limits=False, all=True, starts=100)
    assert found.reached.all() and found.solutions is not None
    for x, T, some in zip(q, wanted, found.solutions, strict=True):
        assert np.abs([pose(other) - T for other in some]).max() < 1e-9
        assert np.abs(np.exp(1j * some) - np.exp(1j * x)).max(axis=1).min() < 1e-7
        assert len(some) <= 8 and len(some) % 2 == 0
    assert max(map(len, found.solutions)) == 8
