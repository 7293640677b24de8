"""The answers of FX, by number, on random bodies."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cardan as cd
from cardan.algebra import spatial as sp
from cardan.algebra.rotation import rotation_exp, rotation_integral, skew
from cardan.mechanisms import random_inertia
from cardan.model.joint import TABLE
from cardan.model.tree import GROUND

from ..trees import close, random_rotation, seeds, tree_model

pytestmark = pytest.mark.usefixtures("quick_code")

few = settings(max_examples=20)


class Solid:
    """A random rigid body and its 6x6 inertia about the origin, put together from blocks."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.m, self.c, self.I_C = rng.uniform(0.1, 5), rng.standard_normal(3), random_inertia(rng)
        C = skew(self.c)
        self.I = np.block([[self.I_C + self.m * C @ C.T, self.m * C], [self.m * C.T, self.m * np.eye(3)]])


@given(seed=seeds)
@few
def test_FX_A1_momentum_about_O_is_inertia_times_velocity(seed: int) -> None:
    rng = np.random.default_rng(seed)
    b, v = Solid(rng), rng.standard_normal(6)
    h = cd.textbook.momentum_about_origin(b.m, b.c, b.I_C, v)
    close(h, b.I @ v, 1e-13)
    v_C = v[3:] + np.cross(v[:3], b.c)
    close(h[3:], b.m * v_C, 1e-13)
    close(h[:3], b.I_C @ v[:3] + np.cross(b.c, b.m * v_C), 1e-13)
    close(sp.rigid_inertia(b.m, b.m * b.c, sp.inertia_about_origin(b.m, b.c, b.I_C)), b.I, 1e-14)
    close(np.concatenate(cd.textbook.FX_A1(b.m, b.c, b.I_C, v[:3], v[3:])), h, 1e-13)


@given(seed=seeds)
@few
def test_FX_A2_inverse_inertia_changes_coordinates_as_a_motion(seed: int) -> None:
    """I_B^-1 = X I_A^-1 X^T with X from A to B; and the closed form is the inverse."""
    rng = np.random.default_rng(seed)
    b = Solid(rng)
    X = sp.Transform((sp.turned(random_rotation(rng)), sp.shifted(rng.standard_normal(3))))
    A = np.linalg.multi_dot(X.factors)
    I_B = X.inverse.congruence(b.I)  # B's X* of F6: force transform to B is X^-T
    W = cd.textbook.inverse_inertia(b.m, b.c, b.I_C)
    close(W @ b.I, np.eye(6), 1e-12)
    close(np.linalg.inv(I_B), A @ W @ A.T, 1e-11)
    close(cd.textbook.FX_A2(A, b.I), A @ W @ A.T, 1e-10)


@given(seed=seeds)
@few
def test_FX_A3_relative_inertia_is_the_harmonic_sum(seed: int) -> None:
    rng = np.random.default_rng(seed)
    A, B = Solid(rng), Solid(rng)
    f = rng.standard_normal(6)
    relative = cd.textbook.relative_inertia(A.I, B.I)
    close(np.linalg.inv(relative), np.linalg.inv(A.I) + np.linalg.inv(B.I), 1e-10)
    close(relative @ (np.linalg.solve(B.I, f) + np.linalg.solve(A.I, f)), f, 1e-10)
    close(relative, cd.textbook.relative_inertia(B.I, A.I), 1e-11)
    close(cd.textbook.FX_A3(A.I, B.I), np.linalg.inv(A.I) + np.linalg.inv(B.I), 1e-10)


@given(seed=seeds)
@few
def test_FX_A4_the_6D_equation_is_Newton_and_Euler(seed: int) -> None:
    """About C, with a = [wdot; cdd - w x v_C], I a + v x* I v = [I_C wdot + w x I_C w; m cdd]."""
    rng = np.random.default_rng(seed)
    b = Solid(rng)
    w, v_C, wdot, cdd = rng.standard_normal((4, 3))
    I = sp.rigid_inertia(b.m, np.zeros(3), b.I_C)
    v, a = np.concatenate([w, v_C]), np.concatenate([wdot, cdd - np.cross(w, v_C)])
    expected = np.concatenate([b.I_C @ wdot + np.cross(w, b.I_C @ w), b.m * cdd])
    close(I @ a + sp.crf(v) @ I @ v, expected, 1e-13)
    close(cd.textbook.FX_A4(b.m, b.I_C, w, wdot, cdd), expected, 1e-13)
    v, a = rng.standard_normal((2, 6))
    close(sp.inertial_force(b.I, v, a), b.I @ a + sp.crf(v) @ b.I @ v, 1e-12)  # and about any point
    close(sp.first_moment(b.I), b.m * b.c, 1e-15)


@given(seed=seeds, k=st.integers(1, 5))
@few
def test_FX_B1_a_constrained_body_accelerates_by_Phi_f_plus_b(seed: int, k: int) -> None:
    """Solved instead as one linear system in a, alpha_dot and the constraint force T lam, with T^T S = 0."""
    rng = np.random.default_rng(seed)
    b, S = Solid(rng), rng.standard_normal((6, k))
    Sdot_alpha, f = rng.standard_normal((2, 6))
    v = S @ rng.standard_normal(k)
    T = np.linalg.svd(S.T)[2][k:].T
    system = np.block([[b.I, -T], [T.T, np.zeros((6 - k, 6 - k))]])
    right = np.concatenate([f - sp.crf(v) @ b.I @ v, T.T @ Sdot_alpha])
    Phi, bias = cd.textbook.FX_B1(b.I, S, Sdot_alpha, v)
    close(Phi @ f + bias, np.linalg.solve(system, right)[:6], 1e-9)
    close(Phi, S @ np.linalg.inv(S.T @ b.I @ S) @ S.T, 1e-10)
    close(Phi @ b.I @ Phi, Phi, 1e-9)
    close(Phi @ T, np.zeros((6, 6 - k)), 1e-11)  # constraint forces move nothing


def test_FX_B1_is_batched_in_the_textbook() -> None:
    rng = np.random.default_rng(0)
    bodies, S, c, v = [Solid(rng) for _ in range(3)], *(rng.standard_normal((3, *n)) for n in ((6, 2), (6,), (6,)))
    assert cd.textbook.constrained_body is cd.textbook.FX_B1
    Phi, bias = cd.textbook.FX_B1(np.array([b.I for b in bodies]), S, c, v)
    for k, b in enumerate(bodies):
        for got, expected in zip((Phi[k], bias[k]), cd.textbook.FX_B1(b.I, S[k], c[k], v[k]), strict=True):
            close(got, expected, 1e-12)


@pytest.mark.parametrize("kind", ["revolute", "prismatic", "screw(0.1)", "spherical", "cylindrical", "free"])
def test_FX_B2_a_is_S_alpha_dot_and_Tdot_v_vanishes_where_S_moves_with_the_body(kind: str) -> None:
    """In ground axes Sdot = v x S, so Sdot alpha = v x v = 0; then T^T S = 0 gives Tdot^T v = 0."""
    row, rng, h = TABLE[kind], np.random.default_rng(1), 1e-6
    alpha = rng.standard_normal(row.nv)
    S, T = row.S(np.array(row.neutral)), row.T(np.array(row.neutral))
    v = S @ alpha

    def to_ground(t: float) -> np.ndarray:
        """Motion transform from the moving body at time t, by the exponential of its twist."""
        R, u = rotation_exp(t * v[:3]), rotation_integral(t * v[:3]) @ (t * v[3:])
        return np.linalg.inv(sp.turned(R.T) @ sp.shifted(u))

    rate = lambda A: (A(h) - A(-h)) / (2 * h)
    close(rate(lambda t: to_ground(t) @ S) @ alpha, np.zeros(6), 1e-8)
    close(rate(lambda t: to_ground(t) @ S), sp.crm(v) @ S, 1e-8)
    close(rate(lambda t: np.linalg.inv(to_ground(t)).T @ T).T @ v, np.zeros(6 - row.nv), 1e-8)
    v_again, a, Tdot_v = cd.textbook.FX_B2(S, T, alpha, alphadot := rng.standard_normal(row.nv))
    close(v_again, v, 1e-13)
    close(a, S @ alphadot, 1e-13)
    close(Tdot_v, np.zeros(6 - row.nv), 1e-13)


@given(seed=seeds, k=st.integers(1, 5))
@few
def test_FX_B3_H_and_C_give_the_joint_force_and_B4_the_energy(seed: int, k: int) -> None:
    rng = np.random.default_rng(seed)
    b, S, Sdot_alpha = Solid(rng), rng.standard_normal((6, k)), rng.standard_normal(6)
    qd, qdd = rng.standard_normal((2, k))
    v, a = S @ qd, S @ qdd + Sdot_alpha
    H, C = cd.textbook.FX_B3(b.I, S, Sdot_alpha, v)
    close(H @ qdd + C, S.T @ (b.I @ a + sp.crf(v) @ b.I @ v), 1e-12)
    close(cd.textbook.FX_B4(H, qd), qd @ H @ qd / 2, 1e-12)
    close(qd @ H @ qd / 2, cd.textbook.body_kinetic_energy(b.I, v), 1e-12)  # FX B4
    Phi, bias = cd.textbook.FX_B1(b.I, S, Sdot_alpha, v)
    f = rng.standard_normal(6)
    close(S @ np.linalg.solve(H, S.T @ f - C) + Sdot_alpha, Phi @ f + bias, 1e-9)  # FX B1 by FX B3
    v_C = v[3:] + np.cross(v[:3], b.c)
    close(cd.textbook.body_kinetic_energy(b.I, v), (b.m * v_C @ v_C + v[:3] @ b.I_C @ v[:3]) / 2, 1e-12)


def test_FX_B3_and_B4_are_batched_in_the_textbook() -> None:
    rng = np.random.default_rng(0)
    bodies, S, c, v = [Solid(rng) for _ in range(3)], *(rng.standard_normal((3, *n)) for n in ((6, 2), (6,), (6,)))
    I = np.array([b.I for b in bodies])
    H, C = cd.textbook.joint_space_body(I, S, c, v)
    for k, b in enumerate(bodies):
        for got, expected in zip((H[k], C[k]), cd.textbook.FX_B3(b.I, S[k], c[k], v[k]), strict=True):
            close(got, expected, 1e-12)
    close(
        cd.textbook.body_kinetic_energy(I, v),
        [cd.textbook.body_kinetic_energy(b.I, u) for b, u in zip(bodies, v, strict=True)],
        1e-12,
    )


@pytest.mark.parametrize("seed", range(3))
def test_FX_C1_energy_and_momentum_of_every_subtree(seed: int) -> None:
    """Against sums over the bodies beyond, each by its own twist; and one step of the recursion as FX has it."""
    rng = np.random.default_rng(seed)
    model = tree_model(seed)
    q, v = model.random_state(rng, 2)
    T, h = cd.subtree_kinetic_energy(model, q, v), cd.subtree_momentum(model, q, v)
    assert T.shape == (2, model.nb) and h.shape == (2, model.nb, 6)
    poses, twists = cd.body_poses(model, q), cd.body_twists(model, q, v)
    I = np.array([inertia_of(b) for b in model.bodies])
    own_T = cd.textbook.body_kinetic_energy(I, twists)
    to_ground = np.array([[force_to_ground(P) for P in row] for row in poses])
    own_h = np.einsum("tbij,bjk,tbk->tbi", to_ground, I, twists)
    parent = parents(model)
    for i in range(model.nb):
        beyond = [k for k in range(model.nb) if i in path(k, parent)]
        close(T[:, i], own_T[:, beyond].sum(axis=1), 1e-12)
        close(h[:, i], own_h[:, beyond].sum(axis=1), 1e-11)
    roots = [i for i in range(model.nb) if parent[i] == GROUND]
    close(T[:, roots].sum(axis=1), cd.kinetic_energy(model, q, v), 1e-12)
    close(h[:, roots].sum(axis=1), cd.momentum(model, q, v), 1e-11)
    last = next(i for i in range(model.nb) if i not in parent.values())
    w = twists[0, last]
    beyond = rng.standard_normal(6)
    found = cd.textbook.FX_C1(w - 2.0 * beyond, beyond, 2.0, I[last], 3.0, beyond)
    close(found[0], w, 1e-13)
    close(found[1] - 3.0, T[0, last], 1e-12)
    close(to_ground[0, last] @ (found[2] - beyond), h[0, last], 1e-11)


def parents(model: cd.Model) -> dict[int, int]:
    """The next body towards the ground, of every body; joints may point either way."""
    found: dict[int, int] = {}
    reached = {GROUND}
    while len(found) < model.nb:
        for joint in model.joints:
            for near, far in ((joint.parent, joint.child), (joint.child, joint.parent)):
                if near in reached and far not in reached:
                    found[far] = near
                    reached.add(far)
    return found


def path(k: int, parent: dict[int, int]) -> list[int]:
    """A body and all bodies between it and the ground."""
    found = [k]
    while parent[found[-1]] != GROUND:
        found.append(parent[found[-1]])
    return found


def inertia_of(body: cd.model.body.Body) -> np.ndarray:
    return sp.rigid_inertia(body.mass, body.mass * body.com, sp.inertia_about_origin(body.mass, body.com, body.inertia))


def force_to_ground(P: np.ndarray) -> np.ndarray:
    """From moment and force at a body's origin to those at the ground's."""
    R, p = P[:3, :3], P[:3, 3]
    return np.block([[R, skew(p) @ R], [np.zeros((3, 3)), R]])


def test_FX_C1_subtrees_of_a_loop_and_of_welded_bodies() -> None:
    """In a cut loop each chain has its own; a body welded to another is beyond it."""
    m = cd.Mechanism("welded")
    for name in ("arm", "tool", "tip"):
        m.body(name, mass=2.0, com=(0.1, 0, 0), inertia=np.diag([0.1, 0.2, 0.3]))
    m.joint("hinge", cd.Revolute(axis=(0, 0, 1)), m.ground, "arm")
    m.joint("weld", cd.Rigid(), "arm", "tool", at=(0.5, 0, 0))
    m.joint("wrist", cd.Revolute(axis=(0, 1, 0)), "tool", "tip", at=(0.2, 0, 0))
    model = m.build()
    q, v = np.array([0.3, 0.4]), np.array([1.0, 2.0])
    T = cd.subtree_kinetic_energy(model, q, v)
    own = cd.textbook.body_kinetic_energy(np.array([inertia_of(b) for b in model.bodies]), cd.body_twists(model, q, v))
    close(T, own[::-1].cumsum()[::-1], 1e-13)


def test_FX_C1_subtrees_of_a_long_chain_are_looped_and_the_same() -> None:
    """Past 64 links recursions are looped: energy and momentum of each subtree are sums over the bodies beyond."""
    from cardan.mechanisms import chain

    model = chain(70).build()
    q, v = model.random_state(np.random.default_rng(4), 2)
    T, h = cd.subtree_kinetic_energy(model, q, v), cd.subtree_momentum(model, q, v)
    I = np.array([inertia_of(b) for b in model.bodies])
    own = cd.textbook.body_kinetic_energy.kernel()(I, cd.body_twists(model, q, v))
    close(T, own[:, ::-1].cumsum(axis=1)[:, ::-1], 1e-11)
    close(h[:, 0], cd.momentum(model, q, v), 1e-11)
