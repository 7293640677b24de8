"""What `points` can express: every joint kind, in the tree and cut, with its axis along the normal and in the plane."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import cardan as cd
from cardan.analysis.check import consistent_states
from cardan.model.joint import TABLE, JointType

from ..trees import close

ROOT = Path(__file__).resolve().parents[2]
NORMAL, WITHIN = (0.0, 0.0, 1.0), (0.6, 0.8, 0.0)
AXES = {"normal": NORMAL, "plane": WITHIN}
# joint, role, axis -> what it is in the plane; all others are refused by name
EXPRESSED = {
    ("rigid", "tree", "normal"): "rigid", ("rigid", "tree", "plane"): "rigid",
    ("revolute", "tree", "normal"): "pin", ("prismatic", "tree", "plane"): "slide",
    ("planar", "tree", "normal"): "float",
    ("rigid", "cut", "normal"): "rigid", ("rigid", "cut", "plane"): "rigid",
    ("revolute", "cut", "normal"): "pin", ("prismatic", "cut", "plane"): "slide",
    ("planar", "cut", "normal"): "float",
    ("cylindrical", "cut", "normal"): "pin", ("cylindrical", "cut", "plane"): "slide",
    ("spherical", "cut", "normal"): "pin", ("spherical", "cut", "plane"): "pin",
    ("free", "cut", "normal"): "float", ("free", "cut", "plane"): "float",
}  # fmt: skip
CASES = [(kind.partition("(")[0], role, axis) for kind in TABLE for role in ("tree", "cut") for axis in AXES]


def joint_of(kind: str, axis: tuple[float, ...]) -> JointType:
    across = np.cross(axis, (0.0, 0.3, 0.9))
    types: dict[str, JointType] = {
        "rigid": cd.Rigid(), "revolute": cd.Revolute(axis), "prismatic": cd.Prismatic(axis),
        "screw": cd.Screw(axis, pitch=0.1), "universal": cd.Universal(axis, across), "planar": cd.Planar(axis),
        "cylindrical": cd.Cylindrical(axis), "spherical": cd.Spherical(), "free": cd.Free(),
    }  # fmt: skip
    return types[kind]


def model_of(kind: str, role: str, axis: str) -> cd.Model:
    """A hinge, a body, the joint, another body; where the joint is cut a planar joint carries the second body too."""
    m = cd.Mechanism(f"{kind} {role} {axis}", gravity=(1.0, -9.0, 2.0))
    for k, name in enumerate(("near", "far")):
        m.body(name, mass=1.0 + k, com=(0.2, 0.1 * k, 0.05), inertia=cd.inertia.box(1.0 + k, (0.3, 0.2, 0.1)))
    m.joint("hinge", cd.Revolute(), m.ground, "near", start=0.4)
    if role == "cut":
        c, s = np.cos(0.4), np.sin(0.4)
        start = (0.5 * c + 0.1 * s - 0.3 * c, 0.5 * s - 0.1 * c - 0.3 * s, 0.4)
        m.joint("float", cd.Planar(x=(1, 0, 0)), m.ground, "far", start=start)
    m.joint("joint", joint_of(kind, AXES[axis]), "near", "far", at=(0.5, -0.1, 0), child_at=(0.3, 0, 0))
    return m.build(cut=["joint"] if role == "cut" else [])


@pytest.mark.parametrize(("kind", "role", "axis"), CASES)
def test_each_joint_runs_or_is_refused_by_name(kind: str, role: str, axis: str) -> None:
    model = model_of(kind, role, axis)
    if (kind, role, axis) not in EXPRESSED:
        with pytest.raises(
            cd.ModelError, match=rf"formulation 'points': joint 'joint' \({kind}\) takes body 'far' out of"
        ):
            cd.equations(model, formulation="points").nq  # noqa: B018
        return
    rng = np.random.default_rng(0)
    q, v = consistent_states(model, rng, 3)
    tau, wrenches = rng.standard_normal(v.shape), rng.standard_normal((3, model.nb, 6))
    expected = cd.forward_dynamics(model, q, v, tau, wrenches=wrenches, formulation="absolute")
    close(cd.forward_dynamics(model, q, v, tau, wrenches=wrenches, formulation="points"), expected, 1e-10)
    single = [x.astype(np.float32) for x in (q, v, tau, wrenches)]
    close(cd.forward_dynamics(model, *single[:3], wrenches=single[3], formulation="points"), expected, 1e-4)


def test_the_page_has_the_same_table() -> None:
    text = (ROOT / "docs" / "points.md").read_text(encoding="utf-8")
    for kind in dict.fromkeys(kind for kind, _, _ in CASES):
        cells = [EXPRESSED.get((kind, role, axis), "-") for role in ("tree", "cut") for axis in AXES]
        assert f"| {kind} | {' | '.join(cells)} |" in text
