"""Regressors against Pinocchio's computeJointTorqueRegressor."""

from pathlib import Path

import numpy as np
import pytest

import cardan as cd

pin = pytest.importorskip("pinocchio")
cmeel = pytest.importorskip("cmeel")

ROBOTS = Path(cmeel.__file__).parents[1] / "cmeel.prefix" / "share" / "example-robot-data" / "robots"
PINOCCHIO = ("mass", "mx", "my", "mz", "Ixx", "Ixy", "Iyy", "Ixz", "Iyz", "Izz")


def test_regressor_of_ur5_is_pinocchios() -> None:
    path = ROBOTS / "ur_description" / "urdf" / "ur5_robot.urdf"
    model, theirs = cd.load(path, damping=False), pin.buildModelFromUrdf(str(path))
    data, rng = theirs.createData(), np.random.default_rng(0)
    q, v = model.random_state(rng, 3)
    a = rng.standard_normal((3, model.nv))
    W = cd.regressor(model, q, v, a)
    expected = np.stack([pin.computeJointTorqueRegressor(theirs, data, *state) for state in zip(q, v, a, strict=True)])
    columns = [W.names.index(f"{link.name}.{what}") for link in model.tree.links for what in PINOCCHIO]
    assert np.allclose(W.matrix[..., columns], expected, rtol=1e-12, atol=1e-12)
    assert len(cd.base_parameters(model)) == 36
