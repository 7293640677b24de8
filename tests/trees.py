"""Random trees for tests: every joint kind, branches, joints met from their child, rigid joints, massless bodies.

A tree is known by a seed, so that tests share its compiled kernels; states are drawn from another seed.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
from hypothesis import strategies as st

import cardan as cd
from cardan.mechanisms import random_inertia
from cardan.model.joint import JointType

Rng = np.random.Generator
KINDS: dict[str, Callable[[Rng], JointType]] = {
    "rigid": lambda rng: cd.Rigid(),
    "revolute": lambda rng: cd.Revolute(axis=rng.standard_normal(3)),
    "prismatic": lambda rng: cd.Prismatic(axis=rng.standard_normal(3)),
    "screw": lambda rng: cd.Screw(axis=rng.standard_normal(3), pitch=rng.uniform(-0.5, 0.5)),
    "universal": lambda rng: cd.Universal(*random_rotation(rng)[:2]),
    "cylindrical": lambda rng: cd.Cylindrical(axis=rng.standard_normal(3)),
    "spherical": lambda rng: cd.Spherical(),
    "planar": lambda rng: cd.Planar(*random_rotation(rng)[:2]),
    "free": lambda rng: cd.Free(),
}
TREES = 5  # how many random mixtures the tests share; together they hold every kind, both ways round
seeds = st.integers(0, 2**32 - 1)


def random_rotation(rng: Rng) -> np.ndarray:
    """Any rotation matrix."""
    return cd.Pose(quaternion=random_quaternion(rng)).rotation


def random_quaternion(rng: Rng) -> np.ndarray:
    quaternion = rng.standard_normal(4)
    return quaternion / np.linalg.norm(quaternion)


def random_pose(rng: Rng) -> cd.Pose:
    """Any placement within half a metre."""
    return cd.Pose(rng.uniform(-0.5, 0.5, 3), random_rotation(rng))


def add_body(m: cd.Mechanism, name: str, rng: Rng) -> str:
    """A solid body, its centre of mass anywhere within half a metre."""
    return m.body(name, mass=rng.uniform(0.5, 2), com=rng.uniform(-0.5, 0.5, 3), inertia=random_inertia(rng))


def join(m: cd.Mechanism, kind: str, near: str, far: str, rng: Rng, *, backwards: bool = False) -> str:
    """A joint of a kind, anywhere; `backwards` declares the body nearer to ground as its child."""
    ends = (far, near) if backwards else (near, far)
    return m.joint(f"{kind} {far}", KINDS[kind](rng), *ends, at=random_pose(rng), child_at=random_pose(rng))


@cache
def kind_model(kind: str, backwards: bool = False) -> cd.Model:
    """A hinge from ground, the joint in question, and a ball joint beyond it."""
    rng = np.random.default_rng([sum(kind.encode()), backwards])
    m = cd.Mechanism(f"{kind}{' backwards' * backwards}", gravity=rng.uniform(-10, 10, 3))
    for name in ("base", "moved", "tip"):
        add_body(m, name, rng)
    join(m, "revolute", m.ground, "base", rng)
    join(m, kind, "base", "moved", rng, backwards=backwards)
    join(m, "spherical", "moved", "tip", rng)
    m.frame("tool", "tip", at=random_pose(rng))
    return m.build()


def tree_mechanism(seed: int, bodies: int = 7, kinds: tuple[str, ...] = tuple(KINDS), root: str = "") -> cd.Mechanism:
    """A random tree; `root` names the kind of its first joint, else it is drawn like the others."""
    rng = np.random.default_rng([2026, seed])
    m = cd.Mechanism(f"tree {seed}", gravity=rng.uniform(-10, 10, 3))
    order = list(rng.permutation(kinds))
    names = [m.ground]
    massless = ""
    for k in range(bodies):
        near = massless or names[rng.integers(bool(k and root), len(names))]
        kind = order[k % len(order)] if k or not root else root
        if massless:  # what a massless body carries must resist each of its motions
            kind, massless = "revolute", ""
        elif 0 < k < bodies - 1 and rng.random() < 0.25:
            kind, massless = "prismatic", f"b{k}"
        name = m.body(f"b{k}") if massless else add_body(m, f"b{k}", rng)
        join(m, kind, near, name, rng, backwards=bool(rng.random() < 0.4))
        names.append(name)
    m.frame("tool", names[-1], at=random_pose(rng))
    m.frame("mark", m.ground, at=random_pose(rng))
    return m


@cache
def tree_model(seed: int, bodies: int = 7) -> cd.Model:
    """A frozen random tree."""
    return tree_mechanism(seed, bodies).build()


@cache
def floating_model(seed: int) -> cd.Model:
    """A random tree on a free joint, without gravity."""
    m = tree_mechanism(seed, 4, ("revolute", "spherical", "cylindrical", "universal"), root="free")
    m.gravity = np.zeros(3)
    return m.build()


def state(model: cd.Model, seed: int, *batch: int) -> tuple[np.ndarray, ...]:
    """q, v, an acceleration or joint force, and wrenches on every body."""
    rng = np.random.default_rng(seed)
    q, v = model.random_state(rng, *batch)
    return q, v, rng.standard_normal((*batch, model.nv)), rng.standard_normal((*batch, model.nb, 6))


def moved(model: cd.Model, q: np.ndarray, v: np.ndarray, h: float) -> np.ndarray:
    """Configuration after a time h along constant v."""
    return cd.plus(model, q, h * v)


def close(a: object, b: object, tolerance: float = 1e-10) -> None:
    """Assert that two arrays agree, relative to the largest number in them."""
    a, b = np.asarray(a), np.asarray(b)
    assert a.shape == b.shape, f"{a.shape} is not {b.shape}"
    scale = max(1.0, float(np.abs(a).max(initial=0.0)), float(np.abs(b).max(initial=0.0)))
    error = float(np.abs(a - b).max(initial=0.0)) / scale
    assert error <= tolerance, f"differ by {error:.3g} of the largest number, {scale:.3g}; allowed {tolerance:g}"
