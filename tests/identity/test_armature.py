"""Armature, the inertia of a drive's rotor: M + A in every formulation, and every identity with it."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.trees import close, seeds, state, tree_mechanism

import cardan as cd
from cardan.structure.kernels import compile_quantity

from ..formulations import RECURSIONS

pytestmark = pytest.mark.usefixtures("quick_code")


@cache
def with_rotors(seed: int, bodies: int = 7) -> tuple[cd.Model, cd.Model]:
    """A random tree, and the same with armature on two joints of three; on some of their rates only."""
    rng = np.random.default_rng([7, seed])
    m = tree_mechanism(seed, bodies)
    plain = m.build()
    for k, (name, joint) in enumerate(m._joints.items()):
        rotor = rng.uniform(0, 2, joint.kind.nv) * (rng.random(joint.kind.nv) < 0.8)
        if k % 3 and rotor.any():
            m._joints[name] = replace(joint, armature=rotor)
    return plain, m.build()


def test_every_formulation_agrees_and_every_identity_holds() -> None:
    report = cd.check(with_rotors(1, 4)[1], states=8, bound=1e-9)
    assert any("absolute" in row.name for row in report.rows)
    assert report.passed, str(report)


@given(tree=st.integers(1, 2), seed=seeds)
def test_armature_is_a_diagonal_on_the_mass_matrix_and_nothing_else(tree: int, seed: int) -> None:
    plain, model = with_rotors(tree)
    q, v, a, w = state(model, seed)
    A = np.zeros(model.nv)
    for link in model.tree.links:
        if link.armature is not None:
            A[link.v] = link.armature
    assert A.any()
    for formulation in ("spatial", "newton_euler"):
        M = cd.mass_matrix(model, q, formulation=formulation)
        close(M, cd.mass_matrix(plain, q) + np.diag(A))
        tau = cd.inverse_dynamics(model, q, v, a, wrenches=w, formulation=formulation)
        close(tau, cd.inverse_dynamics(plain, q, v, a, wrenches=w) + A * a)
    close(cd.joint_wrenches(model, q, v, a), cd.joint_wrenches(plain, q, v, a))


@pytest.mark.parametrize("name", ["forward_dynamics", "inverse_dynamics", "mass_matrix", "kinetic_energy"])
def test_the_looped_drive_knows_armature(name: str) -> None:
    _, model = with_rotors(3)
    q, v, tau, _ = state(model, 5, 3)
    for formulation in RECURSIONS:
        quantity = RECURSIONS[formulation][name]
        if quantity.recursion is None:
            continue
        arguments = [{"q": q, "v": v, "tau": tau, "a": tau}[port] for port in quantity.inputs]
        one, other = (compile_quantity(model, quantity, formulation, looped=way)(*arguments) for way in (False, True))
        close(one, other)


def pendulum(**given: object) -> cd.Mechanism:
    m = cd.Mechanism("pendulum")
    m.body("arm", mass=2.0, com=(0.5, 0, 0))
    m.joint("hinge", cd.Revolute(axis=(0, 1, 0)), m.ground, "arm", **given)
    return m


def test_a_geared_rotor_slows_a_pendulum_as_the_book_has_it() -> None:
    model = pendulum(armature=1.5).build()
    q, v = np.array([0.0]), np.array([0.0])
    close(cd.forward_dynamics(model, q, v), np.array([2 * 9.81 * 0.5 / (2 * 0.25 + 1.5)]), 1e-14)
    close(cd.kinetic_energy(model, q, np.array([3.0])), (2 * 0.25 + 1.5) * 9 / 2, 1e-14)


def test_a_joint_with_armature_may_move_a_body_without_mass() -> None:
    m = pendulum()
    m.body("sensor")
    m.joint("scan", cd.Revolute(), "arm", "sensor", armature=1e-3)
    close(cd.mass_matrix(m.build(), np.zeros(2))[1, 1], 1e-3)


def test_armature_is_saved_and_loaded(tmp_path) -> None:
    for armature in (1.5, (0.0, 0.5, 0.25)):
        m = pendulum() if isinstance(armature, tuple) else pendulum(armature=armature)
        if isinstance(armature, tuple):
            m.body("ball", mass=1.0, inertia=(1, 1, 1))
            m.joint("socket", cd.Spherical(), "arm", "ball", armature=armature)
        cd.save(m, tmp_path / "m.yaml", overwrite=True)
        assert cd.load(tmp_path / "m.yaml").key == m.build().key


def test_what_cannot_have_armature_says_so() -> None:
    with pytest.raises(cd.ModelError, match=r"joint 'hinge': armature must not be negative, got -1"):
        pendulum(armature=-1.0)
    with pytest.raises(cd.ModelError, match=r"joint 'hinge': armature must be finite"):
        pendulum(armature=np.nan)
    with pytest.raises(
        cd.ModelError, match=r"joint 'hinge' has armature, which the formulation 'points' does not know"
    ):
        cd.forward_dynamics(pendulum(armature=1.0).build(), np.zeros(1), np.zeros(1), formulation="points")
    m = pendulum()
    m.joint("again", cd.Revolute(axis=(0, 1, 0)), m.ground, "arm", armature=1.0)
    with pytest.raises(cd.ModelError, match=r"joint 'again': it has armature, but it closes a loop"):
        m.cut = ("again",)
        m.build()
