"""`points` where inertia is missing: light bodies that only loops hold, whatever closes them, and redundant rows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

import cardan as cd
from cardan.functions.check import consistent_states
from cardan.structure.planarity import in_plane

from ..trees import close, seeds

pytestmark = pytest.mark.usefixtures("quick_code")


def assert_agreement(model: cd.Model, *, reactions: bool = True) -> None:
    """Accelerations, and reactions in the plane where they are determined, as in space."""
    q, v = consistent_states(model, np.random.default_rng(0), 3)
    tau = np.random.default_rng(1).standard_normal(v.shape)
    a = cd.forward_dynamics(model, q, v, tau, formulation="points")
    close(a, cd.forward_dynamics(model, q, v, tau, formulation="spatial"))
    f, g = (cd.reactions(model, q, v, tau, formulation=name) for name in ("points", "spatial"))
    if reactions:
        close(f, np.einsum("jab,...jb->...ja", in_plane(model), g), 1e-9)
    else:
        assert_possible(model, tau, f, g)


def assert_possible(model: cd.Model, tau: np.ndarray, f: np.ndarray, g: np.ndarray) -> None:
    """Redundant reactions are one possible answer: a hinge carries no moment but its drive's, all balance at ground."""
    total = np.zeros((*tau.shape[:-1], 3))
    for j, joint in enumerate(model.joints):
        drive = tau[..., model.v_slice(joint.name)][..., 0] if j not in model.cuts else np.zeros(len(tau))
        close(f[..., j, 2], drive, 1e-9)
        if joint.parent < 0:  # the axes of the ground, for a crank's own hinge
            total += f[..., j, 3:] - np.einsum("ab,...b->...a", in_plane(model)[j], g[..., j, :])[..., 3:]
    close(total, np.zeros_like(total), 1e-9)


def linkage(name: str, coupler_mass: float = 0.0, **coupler: object) -> cd.Mechanism:
    """A four-bar with a light coupler."""
    m = cd.Mechanism(name, gravity=(0, -9.81, 0))
    for body, length in (("crank", 0.4), ("rocker", 0.7)):
        m.body(body, mass=length, com=(length / 2, 0, 0), inertia=cd.inertia.rod(length, length, axis="x"))
    m.body("coupler", mass=coupler_mass, **coupler)
    m.joint("A", cd.Revolute(), m.ground, "crank", start=1.0)
    m.joint("B", cd.Revolute(), "crank", "coupler", at=(0.4, 0, 0), start=-0.6)
    m.joint("C", cd.Revolute(), "coupler", "rocker", at=(0.9, 0, 0), child_at=(0.7, 0, 0), start=1.3)
    m.joint("D", cd.Revolute(), m.ground, "rocker", at=(1.0, 0, 0), start=1.7)
    return m


@pytest.mark.parametrize("closing", ["B", "C"])
def test_a_massless_coupler(closing: str) -> None:
    assert_agreement(linkage("massless coupler").build(cut=[closing]))


def test_all_the_mass_of_a_coupler_at_its_own_pin() -> None:
    assert_agreement(linkage("bead on the pin", 0.8).build(cut=["C"]))


def parallel_cranks(masses: tuple[float, ...], cut: list[str]) -> cd.Model:
    """A platform on equal cranks, all but two of them redundant; some have no mass."""
    m = cd.Mechanism("redundant", gravity=(0, -9.81, 0))
    m.body("platform", mass=2.0, com=(0.5, 0.1, 0), inertia=cd.inertia.box(2.0, (1.0, 0.1, 0.1)))
    for k, mass in enumerate(masses):
        rod = cd.inertia.rod(mass, 0.4, axis="x") if mass else None
        m.body(f"crank{k}", mass=mass, com=(0.2 if mass else 0.0, 0, 0), **({"inertia": rod} if mass else {}))
        m.joint(f"low{k}", cd.Revolute(), m.ground, f"crank{k}", at=(0.5 * k, 0, 0), start=1.1)
        at = {"at": (0.4, 0, 0), "child_at": (0.5 * k, 0, 0)}
        m.joint(f"high{k}", cd.Revolute(), f"crank{k}", "platform", **at, start=-1.1 if k == 0 else None)
    return m.build(cut=cut)


@pytest.mark.parametrize("light", [0, 1])
def test_a_light_crank_whose_pin_is_redundant(light: int) -> None:
    masses = tuple(0.0 if k == light else 0.5 for k in range(3))
    assert_agreement(parallel_cranks(masses, ["high1", "high2"]), reactions=False)


def test_every_crank_but_one_is_light() -> None:
    assert_agreement(parallel_cranks((0.5, 0.0, 0.0, 0.0), ["high1", "high2", "high3"]), reactions=False)


def scotch_yoke(cut: str) -> cd.Model:
    """A block without mass between a crank's pin and a yoke's slot."""
    m = cd.Mechanism("light block", gravity=(0, -9.81, 0))
    for name in ("crank", "yoke"):
        m.body(name, mass=1.0, com=(0.1, 0, 0), inertia=cd.inertia.box(1.0, (0.2, 0.3, 0.4)))
    m.body("block")
    m.joint("A", cd.Revolute(), m.ground, "crank", start=0.5)
    m.joint("B", cd.Revolute(), "crank", "block", at=(0.4, 0, 0), start=-0.5)
    m.joint("C", cd.Prismatic(axis=(0, 1, 0)), "yoke", "block", start=0.2)
    m.joint("D", cd.Prismatic(axis=(1, 0, 0)), m.ground, "yoke", start=0.35)
    return m.build(cut=[cut])


@pytest.mark.parametrize("cut", ["B", "C"])
def test_a_light_block_held_by_a_slide(cut: str) -> None:
    assert_agreement(scotch_yoke(cut))


def test_a_chain_of_light_bodies_in_a_loop() -> None:
    m = linkage("with a light dyad", 0.5, com=(0.4, 0.1, 0), inertia=cd.inertia.box(0.5, (0.8, 0.1, 0.1)))
    m.body("link1")
    m.body("link2", mass=0.1, com=(0.2, 0, 0), inertia=cd.inertia.rod(0.1, 0.4, axis="x"))
    m.joint("E", cd.Revolute(), "coupler", "link1", at=(0.5, 0.3, 0), start=1.0)
    m.joint("F", cd.Revolute(), "link1", "link2", at=(0.5, 0, 0), start=-1.0)
    m.joint("G", cd.Revolute(), m.ground, "link2", at=(0.9, 0.8, 0), child_at=(0.4, 0, 0))
    assert_agreement(m.build(cut=["C", "G"]))


@given(seed=seeds)
@settings(max_examples=3)
def test_a_loop_of_slides_agrees_or_is_refused_by_name(seed: int) -> None:
    rng = np.random.default_rng(seed)
    m = cd.Mechanism("slides", gravity=(1.0, -2.0, 0))
    before, parallel = m.ground, bool(rng.random() < 0.4)
    angles = np.full(3, rng.uniform(0, 3)) if parallel else rng.uniform(0, 3, 3)
    for k, angle in enumerate(angles):
        axis = (np.cos(angle), np.sin(angle), 0)
        after = m.body(f"b{k}", mass=1.0, com=(0.1, 0, 0), inertia=np.eye(3)) if k < 2 else m.ground
        m.joint(f"slide{k}", cd.Prismatic(axis=axis), before, after)
        before = after
    model = m.build()
    if parallel:
        sentence = r"loop closed by joint 'slide\d' is singular: all of its 3 joints are prismatic and parallel \(larg"
        with pytest.raises(cd.ModelError, match=sentence):
            in_plane(model)
        q, v = consistent_states(model, rng, 2)
        close(cd.forward_dynamics(model, q, v, formulation="points"), cd.forward_dynamics(model, q, v), 1e-10)
    else:
        assert_agreement(model)
