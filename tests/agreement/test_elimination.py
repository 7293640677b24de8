"""Six coordinates a body, eliminated along the tree: as many operations as bodies, and the same motion."""

import casadi as ca
import numpy as np
import pytest

import cardan as cd
from cardan import mechanisms
from cardan.formulation import solve
from cardan.formulation.dynamics import parts_at
from cardan.structure.formulation import formulation_of
from cardan.structure.rows import generic_configurations, kept_rows

from ..trees import close

WAYS = ("absolute", "absolute_body", "relative", "points")


def star(arms: int) -> cd.Model:
    """A free trunk with arms of two links, each of which carries a body that is fixed to it."""
    m = cd.Mechanism("star")
    m.body("trunk", mass=5.0, inertia=(1.0, 2.0, 1.5))
    m.joint("base", cd.Free(), m.ground, "trunk")
    for k in range(arms):
        angle = 2 * np.pi * k / arms
        for part in ("upper", "lower", "foot"):
            m.body(f"{part}{k}", mass=1.0, com=(0.1, 0.2, 0.3), inertia=(0.3, 0.2, 0.25))
        m.joint(f"hip{k}", cd.Revolute((0, 1, 0)), "trunk", f"upper{k}", at=(np.cos(angle), np.sin(angle), 0))
        m.joint(f"knee{k}", cd.Revolute((1, 0, 0)), f"upper{k}", f"lower{k}", at=(0, 0, -0.5))
        m.joint(f"sole{k}", cd.Rigid(), f"lower{k}", f"foot{k}", at=(0, 0, -0.5))
    return m.build()


def solved(model: cd.Model, way: str) -> ca.Function:
    """Accelerations from q, v and tau."""
    formulation = formulation_of(model, way)
    q, v, tau = (ca.SX.sym(name, n) for name, n in (("q", model.nq), ("v", model.nv), ("tau", model.nv)))
    parts = parts_at(model, formulation, {"q": q, "v": v, "tau": tau})
    vdot, _ = formulation.solve(parts, kept_rows(model, formulation))
    return ca.Function("solved", [q, v, tau], [formulation.tree_accelerations(parts, vdot)])


@pytest.mark.parametrize("way", ["absolute", "relative"])
def test_operations_grow_with_the_number_of_bodies(way: str) -> None:
    """Not with its square, though every arm shares the trunk."""
    few, many = (solved(star(arms), way).n_instructions() for arms in (2, 4))
    assert many < 2.1 * few


@pytest.mark.parametrize(
    ("name", "way"), [*(("star", way) for way in WAYS), ("bennett", "absolute"), ("andrews", "absolute")]
)
def test_the_motion_is_that_of_the_tree(name: str, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With loops too, where elimination together is not what takes fewest operations."""
    monkeypatch.setattr(solve, "_operations_apart", lambda *given: np.inf)
    model = star(2) if name == "star" else getattr(mechanisms, name)().build()
    rng = np.random.default_rng(3)
    q = model.random_state(rng)[0] if name == "star" else generic_configurations(model)[0]
    v = np.zeros(model.nv) if model.has_rows else rng.standard_normal(model.nv)
    tau = rng.standard_normal(model.nv)
    expected = np.array(solved(model, "spatial")(q, v, tau)).ravel()
    close(np.array(solved(model, way)(q, v, tau)).ravel(), expected, 1e-9)
