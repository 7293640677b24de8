"""Reactions in `points` where bodies only shift: in the plane nothing tells their moments about the normal.

Joints at an angle to the plane tie these moments to forces out of the plane, so that space determines some of them.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import cardan as cd
from cardan.formulation.registry import find_formulation
from cardan.structure.dynamics import reaction_formulation

from ..identity.robustness_errors import interpreted
from .comparison import random_state
from .joint_motions import Array
from .maximal_coordinates import Judge
from .random_mechanisms import random_rotation

pytestmark = pytest.mark.usefixtures("quick_code")


def slides(kinds: str, seed: int) -> cd.Mechanism:
    """Three bodies on slides in a random plane; `kinds` are those of the joints ground-1, 1-2, ground-3 and 2-3.

    P, C: prismatic and cylindrical along the plane; R, U, O: revolute, universal and planar at any angle to it; V:
    planar, its normal in the plane; W: rigid.
    """
    rng = np.random.default_rng(seed)
    plane = random_rotation(rng)

    def within() -> Array:
        angle = rng.uniform(0, 2 * np.pi)
        return plane @ (np.cos(angle), np.sin(angle), 0.0)

    def anyhow() -> Array:
        return random_rotation(rng)

    types: dict[str, Callable[[], cd.JointType]] = {
        "P": lambda: cd.Prismatic(axis=within()), "C": lambda: cd.Cylindrical(axis=within()), "W": cd.Rigid,
        "R": lambda: cd.Revolute(axis=anyhow()[:, 0]), "U": lambda: cd.Universal(*anyhow().T[:2]),
        "O": lambda: cd.Planar(normal=anyhow()[:, 0]), "V": lambda: cd.Planar(normal=within()),
    }  # fmt: skip
    m = cd.Mechanism(f"slides {kinds} {seed}", gravity=rng.uniform(-10, 10, 3))
    origin = {m.ground: np.zeros(3)}
    for name in ("b1", "b2", "b3"):
        m.body(
            name, mass=rng.uniform(0.5, 2), com=rng.uniform(-0.3, 0.3, 3), inertia=cd.inertia.box(1, (0.2, 0.3, 0.4))
        )
        origin[name] = rng.uniform(-0.6, 0.6, 3)
    ends = ((m.ground, "b1"), ("b1", "b2"), (m.ground, "b3"), ("b2", "b3"))
    for k, (kind, (parent, child)) in enumerate(zip(kinds, ends, strict=True)):
        at = rng.uniform(-0.5, 0.5, 3)
        m.joint(f"{k}", types[kind](), parent, child, at=at - origin[parent], child_at=at - origin[child])
    return m


@pytest.mark.parametrize(("kinds", "open_in_plane"), [
    ("CRCC", True), ("CUPC", True), ("PUPO", True), ("PRCV", True), ("CWPO", True), ("PPPC", False),
])  # fmt: skip
def test_reactions_of_bodies_that_only_shift_are_as_judged(kinds: str, open_in_plane: bool) -> None:
    with interpreted():
        model = slides(kinds, 1).build()
        q, v, tau = random_state(model, np.random.default_rng(2), cd.assemble(model)[0])
        right = Judge(model).solve(q, v, tau)
        assert right.is_clear and np.abs(cd.body_twists(model, q, v)[:, :3]).max() < 1e-12
        found = cd.reactions(model, q, v, tau, formulation="points")
        points = find_formulation("points")
        assert (reaction_formulation(model, points) is not points) == open_in_plane
    P = cd.in_plane(model)
    determined = ~((np.abs(P) > 1e-9) @ ~right.determined[..., None])[..., 0]
    wanted = (P @ right.wrenches[..., None])[..., 0]
    assert determined.any()
    size = np.repeat([right.moment, right.force], 3)
    assert np.abs(np.where(determined, found - wanted, 0) / size).max() < 1e-11
