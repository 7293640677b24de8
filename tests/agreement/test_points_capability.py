"""What `points` can express: every joint kind, in the tree and cut, with its axis along the normal and in the plane."""

from __future__ import annotations

import numpy as np
import pytest

import cardan as cd
from cardan.functions.check import consistent_states

from ..trees import close
from .test_capability import make

pytestmark = pytest.mark.usefixtures("quick_code")

SAME = {("rigid", "plane"), ("spherical", "plane"), ("free", "plane")}  # no axis of their own
LEAVES = ("curvilinear", "plane")  # a curve out of the plane, along which nothing can move in it
CASES = [
    (kind, role, axis) for kind in make.JOINTS for role in ("held", "cut") for axis in make.PLANAR_AXES
    if (kind, axis) not in {*SAME, LEAVES}
]  # fmt: skip


@pytest.mark.parametrize(("kind", "role", "axis"), CASES)
def test_each_joint_runs_where_a_loop_keeps_the_plane(kind: str, role: str, axis: str) -> None:
    model = make.planar_mechanism(kind, role, axis)
    rng = np.random.default_rng(0)
    q, v = consistent_states(model, rng, 3)
    tau, wrenches = rng.standard_normal(v.shape), rng.standard_normal((3, model.nb, 6))
    expected = cd.forward_dynamics(model, q, v, tau, wrenches=wrenches)
    assert np.abs(expected).max() > 0.1
    close(cd.forward_dynamics(model, q, v, tau, wrenches=wrenches, formulation="points"), expected, 1e-10)
    if role == "cut":
        q, v, tau, wrenches = (x.astype(np.float32) for x in (q, v, tau, wrenches))
        found = cd.forward_dynamics(model, q, v, tau, wrenches=wrenches, formulation="points")
        assert found.dtype == np.float32
        close(found, expected, 1e-4)


@pytest.mark.parametrize("axis", make.PLANAR_AXES)
@pytest.mark.parametrize("kind", ["screw", "universal", "cylindrical", "spherical", "free"])
def test_what_nothing_holds_has_no_plane_and_is_told_by_name(kind: str, axis: str) -> None:
    with pytest.raises(cd.ModelError, match=rf"not planar: joint 'joint' \({kind}\) takes body 'far' out of the plane"):
        cd.in_plane(make.planar_mechanism(kind, "tree", axis))
