"""Constraint rows against KJ's equations, by number, and against differentiation of the position-level constraint.

KJ's `[R_B]` takes ground to body components, so it is `R_B.T` here; a prime means body components. Rows are in the
joint's axes, KJ's in the ground's. Everything runs through CasADi's interpreter: no kernel is compiled.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import casadi as ca
import numpy as np
import pytest

import cardan as cd
from cardan.formulation import relative
from cardan.model.joint import TABLE, configuration_rate

from ..formulations import ALL, parts_of
from ..graphs import joint_coordinates, pose_of, rates_of
from ..trees import KINDS, add_body, close, random_pose

pytestmark = pytest.mark.usefixtures("quick_code")


def skew(a: np.ndarray) -> np.ndarray:
    return np.array([[0, -a[2], a[1]], [a[2], 0, -a[0]], [-a[1], a[0], 0]])


def derivatives(model: cd.Model, formulation: str) -> Callable[..., list[np.ndarray]]:
    """Of the rows of the last joint: J, gamma, u, udot, and phi with its two time derivatives, by CasADi."""
    q, v, a = (ca.SX.sym(name, n) for name, n in (("q", model.nq), ("v", model.nv), ("a", model.nv)))
    parts = parts_of(model, formulation, q, v)
    rows = parts.rows.of(f"joint {model.joints[-1].name!r}")
    along = rates_of(model, q, v)
    u = parts.rates
    udot = ca.jtimes(u, q, along) + ca.jtimes(u, v, a)
    phi = parts.rows.phi[rows]
    phid = ca.jtimes(phi, q, along)
    phidd = ca.jtimes(phid, q, along) + ca.jtimes(phid, v, a)
    outputs = [
        parts.rows.J[rows, :],
        parts.rows.gamma[rows],
        u,
        udot,
        phi,
        phid,
        phidd,
        ca.jacobian(u, v),
        ca.jacobian(phid, v),
    ]
    graph = ca.Function("rows", [q, v, a], outputs)
    return lambda *state: [np.array(x).squeeze(axis=1) if x.shape[1] == 1 else np.array(x) for x in graph(*state)]


def loop(kind: str, backwards: bool) -> cd.Model:
    """Two bodies on a hinge and a universal joint, a third that floats, and the joint in question between the tips."""
    rng = np.random.default_rng([sum(kind.encode()), backwards])
    m = cd.Mechanism(f"loop of {kind}")
    for name in ("base", "arm", "afloat"):
        add_body(m, name, rng)
    places = iter([random_pose(rng) for _ in range(8)])
    m.joint("hinge", KINDS["revolute"](rng), m.ground, "base", at=next(places), child_at=next(places))
    m.joint("cross", KINDS["universal"](rng), "base", "arm", at=next(places), child_at=next(places))
    m.joint("float", cd.Free(), m.ground, "afloat", at=next(places))
    ends = ("afloat", "arm") if backwards else ("arm", "afloat")
    m.joint("cut", KINDS[kind](rng), *ends, at=next(places), child_at=next(places))
    return m.build(cut=["cut"])


def closed(model: cd.Model, rng: np.random.Generator) -> np.ndarray:
    """A random configuration of `loop` with the cut closed: the floating body goes where the joint puts it."""
    q = model.random_state(rng)[0]
    at = {-1: cd.Pose()}
    for joint, link in zip(model.joints[:2], model.tree.links[:2], strict=True):
        at[joint.child] = at[joint.parent] @ joint.at @ pose_of(joint.kind, q[link.q]) @ joint.child_at.inverse
    float_, cut = model.joints[2:]
    X = pose_of(cut.kind, joint_coordinates(cut.kind, rng))
    if cut.parent == 2:  # declared from the floating body
        at[2] = at[1] @ cut.child_at @ X.inverse @ cut.at.inverse
    else:
        at[2] = at[1] @ cut.at @ X @ cut.child_at.inverse
    place = float_.at.inverse @ at[2] @ float_.child_at
    q[model.tree.links[2].q] = (*place.position, *place.quaternion)
    return q


@pytest.mark.parametrize("backwards", [False, True], ids=["forwards", "backwards"])
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "free"])
def test_rows_of_a_cut_joint_are_the_derivatives_of_its_residual(kind: str, backwards: bool) -> None:
    """`d/dt phi = A J u` and, where J u = 0, `d2/dt2 phi = A (J udot - gamma)` with one invertible A, in every form."""
    model = loop(kind, backwards)
    rng = np.random.default_rng(1)
    states = [(closed(model, rng), *rng.standard_normal((2, model.nv))) for _ in range(3)]
    for formulation in ALL:
        of = derivatives(model, formulation)
        for q, wish, a in states:
            J, gamma, u, _, phi, phid, _, du, Phi = of(q, wish, a)
            k = model.joints[-1].kind.freedoms_removed
            assert J.shape[0] == k == np.linalg.matrix_rank(Phi)
            close(phi, np.zeros(k), 1e-11)
            A = Phi @ np.linalg.pinv(J @ du)
            assert np.linalg.cond(A) < 100, (formulation, np.linalg.cond(A))
            close(A @ J @ du, Phi)
            close(A @ J @ u, phid)
            v = wish - np.linalg.pinv(Phi) @ (Phi @ wish)
            J, gamma, u, udot, _, phid, phidd, _, _ = of(q, v, a)
            close(phid, np.zeros(k))
            close(A @ (J @ udot - gamma), phidd)


def test_a_free_joint_has_no_rows() -> None:
    model = loop("free", False)
    for formulation in ALL:
        J, gamma, *_ = derivatives(model, formulation)(*model.random_state(np.random.default_rng(0)), np.ones(model.nv))
        assert J.shape[0] == 0 == gamma.size


class Pair:
    """Two floating bodies with a joint between them at a consistent state, and KJ's symbols for it.

    Body i has centre of mass `p_G[i]` and axes `R[i]` (KJ's `[R_B]^T`), rates `w[i]`, `w_[i]` (primed) and `v_G[i]`;
    `q_`, `r_` are KJ's q'2 and r'2; `f`, `g` span what is across the hinge, `_1` fixed in B1, `_2` in B2.
    """

    def __init__(self, kind: str, seed: int, consistent: bool = True) -> None:
        rng = np.random.default_rng(seed)
        m = cd.Mechanism("pair")
        for name in ("B1", "B2"):
            add_body(m, name, rng)
            m.joint(f"float {name}", cd.Free(), m.ground, name)
        m.joint("joint", KINDS[kind](rng), "B1", "B2", at=random_pose(rng), child_at=random_pose(rng))
        self.model = m.build(cut=["joint"])
        joint = self.model.joints[-1]
        B1 = random_pose(rng)
        coordinates = joint_coordinates(joint.kind, rng)
        B2 = B1 @ joint.at @ pose_of(joint.kind, coordinates) @ joint.child_at.inverse
        if not consistent:
            B2 = B2 @ random_pose(rng)
        self.R = B1.rotation, B2.rotation
        c1, c2 = (body.com for body in self.model.bodies)
        self.p_G = B1.position + self.R[0] @ c1, B2.position + self.R[1] @ c2
        self.q_, self.r_ = joint.at.position - c1, c2 - joint.child_at.position
        self.R_F, self.R_M = self.R[0] @ joint.at.rotation, self.R[1] @ joint.child_at.rotation
        w1, dw = rng.standard_normal((2, 3))
        h = self.R_M[:, 2]
        self.w = w1, w1 + (dw if kind == "spherical" else h * dw[0])
        self.w_ = self.R[0].T @ self.w[0], self.R[1].T @ self.w[1]
        v1 = rng.standard_normal(3)
        arm = skew(self.w[0]) @ self.R[0] @ self.q_ + skew(self.w[1]) @ self.R[1] @ self.r_
        self.v_G = v1, v1 + arm
        self.f_1, self.g_1 = (joint.at.rotation[:, k] for k in (0, 1))  # primed: components in B1
        self.f_2, self.g_2 = (joint.child_at.rotation[:, k] for k in (0, 1))
        self.turn = np.array([[f @ m_ for m_ in self.R_M.T[:2]] for f in self.R_F.T[:2]])
        self.q = np.concatenate([B1.position, B1.quaternion, B2.position, B2.quaternion])
        twists = [
            np.concatenate([w_, R.T @ v_G - skew(w_) @ c])
            for w_, R, v_G, c in zip(self.w_, self.R, self.v_G, (c1, c2), strict=True)
        ]
        self.v = np.concatenate(twists)
        self.random = rng

    def rows(self, frame: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """J, gamma and phi in absolute coordinates."""
        of = derivatives(self.model, "absolute" if frame == "fixed" else "absolute_body")
        J, gamma, _, _, phi, *_ = of(self.q, self.v, np.zeros(12))
        return J, gamma, phi

    def errors(self, frame: str) -> tuple[np.ndarray, np.ndarray, tuple[np.ndarray, ...]]:
        """`J u`, `J u' - gamma` for a random u' = (wdot1, a_G1, wdot2, a_G2), which is the last."""
        J, gamma, _ = self.rows(frame)
        w = self.w if frame == "fixed" else self.w_
        u = np.concatenate([w[0], self.v_G[0], w[1], self.v_G[1]])
        udot = self.random.standard_normal(12)
        return J @ u, J @ udot - gamma, (udot[:3], udot[3:6], udot[6:9], udot[9:])


SEEDS = range(3)
JOINTS = ("spherical", "revolute")


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("kind", JOINTS)
def test_points_coincide_KJ1(kind: str, seed: int) -> None:
    s = Pair(kind, seed, consistent=False)
    phi = s.rows("fixed")[2]
    close(s.R_M @ phi[-3:], s.p_G[1] - s.p_G[0] - s.R[0] @ s.q_ - s.R[1] @ s.r_, 1e-14)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("kind", JOINTS)
def test_point_accelerations_with_fixed_frame_rates_KJ2(kind: str, seed: int) -> None:
    s = Pair(kind, seed)
    _, error, (wdot1, a_G1, wdot2, a_G2) = s.errors("fixed")
    q2, r2 = s.R[0] @ s.q_, s.R[1] @ s.r_
    qdot2, rdot2 = skew(s.w[0]) @ q2, skew(s.w[1]) @ r2
    expected = a_G2 - a_G1 + skew(q2) @ wdot1 + skew(qdot2) @ s.w[0] + skew(r2) @ wdot2 + skew(rdot2) @ s.w[1]
    close(s.R_M @ error[-3:], expected, 1e-13)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("kind", JOINTS)
def test_point_accelerations_with_body_frame_rates_KJ3(kind: str, seed: int) -> None:
    s = Pair(kind, seed)
    _, error, (wdot1, a_G1, wdot2, a_G2) = s.errors("body")
    (R1, R2), (w1, w2), q, r = s.R, s.w_, s.q_, s.r_
    of_1 = R1 @ skew(q) @ wdot1 + R1 @ skew(w1) @ skew(q) @ w1
    of_2 = R2 @ skew(r) @ wdot2 + R2 @ skew(w2) @ skew(r) @ w2
    close(s.R_M @ error[-3:], a_G2 - a_G1 + of_1 + of_2, 1e-13)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("kind", JOINTS)
def test_point_velocities_before_KJ2(kind: str, seed: int) -> None:
    s = Pair(kind, seed)
    u = s.random.standard_normal(12)  # any rates: the rows are linear in them
    expected = u[9:] - u[3:6] + skew(s.R[0] @ s.q_) @ u[:3] + skew(s.R[1] @ s.r_) @ u[6:9]
    close(s.R_M @ s.rows("fixed")[0][-3:] @ u, expected, 1e-13)
    expected = u[9:] - u[3:6] + s.R[0] @ skew(s.q_) @ u[:3] + s.R[1] @ skew(s.r_) @ u[6:9]
    close(s.R_M @ s.rows("body")[0][-3:] @ u, expected, 1e-13)


@pytest.mark.parametrize("seed", SEEDS)
def test_hinge_leaves_no_turn_across_it_KJ5_KJ6(seed: int) -> None:
    s = Pair("revolute", seed)
    u = s.random.standard_normal(12)
    across = s.rows("fixed")[0][:2] @ u
    close(across, [(s.R[1] @ f) @ (u[6:9] - u[:3]) for f in (s.f_2, s.g_2)], 1e-14)
    close(s.turn @ across, [(s.R[0] @ f) @ (u[6:9] - u[:3]) for f in (s.f_1, s.g_1)], 1e-13)


@pytest.mark.parametrize("seed", SEEDS)
def test_hinge_with_fixed_frame_rates_KJ7_KJ8(seed: int) -> None:
    s = Pair("revolute", seed)
    _, error, (wdot1, _, wdot2, _) = s.errors("fixed")
    R_B1, difference = s.R[0].T, s.w[1] - s.w[0]
    expected = [f @ R_B1 @ (wdot2 - wdot1) + f @ R_B1 @ skew(s.w[0]).T @ difference for f in (s.f_1, s.g_1)]
    close(s.turn @ error[:2], expected, 1e-13)


@pytest.mark.parametrize("seed", SEEDS)
def test_hinge_with_body_frame_rates_KJ9_KJ10(seed: int) -> None:
    s = Pair("revolute", seed)
    _, error, (wdot1, _, wdot2, _) = s.errors("body")
    R12, (w1, w2) = s.R[0].T @ s.R[1], s.w_  # [R_B1][R_B2]^T
    expected = [f @ (R12 @ wdot2 - wdot1) + f @ (R12 @ skew(w2) - skew(w1) @ R12) @ w2 for f in (s.f_1, s.g_1)]
    close(s.turn @ error[:2], expected, 1e-13)


@cache
def relative_rows(kind: str) -> tuple[cd.model.joint.Kind, ca.Function]:
    """Of a tree joint in six relative coordinates: its rows and gamma at its own q, qd; and the pose of M in F."""
    k = next(row for row in TABLE.values() if row.name.startswith(kind))
    m = cd.Mechanism("one")
    m.body("B2", mass=1.0, inertia=(1, 1, 1))
    pitch = {"pitch": 0.1} if kind == "screw" else {}
    m.joint("joint", getattr(cd, kind.capitalize())(**pitch), m.ground, "B2")
    model = m.build().separate
    assert model.joints[0].kind is k
    q, v = ca.SX.sym("q", k.nq), ca.SX.sym("v", k.nv)
    rows = parts_of(model, "relative", q, v).rows
    q6, v6 = relative.posed_coordinates(model, q, v)
    return k, ca.Function("rows", [q, v], [rows.J, rows.gamma, q6, v6])


def six(kind: str, seed: int) -> tuple[np.ndarray, ...]:
    """J, gamma, R of M in F, the consistent relative twist `(w^', s'dot in M)`, and a random rate of it."""
    k, of = relative_rows(kind)
    rng = np.random.default_rng(seed)
    J, gamma, q6, v6 = (np.array(x) for x in of(joint_coordinates(k, rng), rng.standard_normal(k.nv)))
    close(q6[9:], np.zeros((3, 1)))  # KJ(4): s' = 0
    return J, gamma.ravel(), q6.ravel()[:9].reshape(3, 3).T, v6.ravel(), rng.standard_normal(6)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("kind", JOINTS)
def test_relative_position_and_its_rates_vanish_KJ4(kind: str, seed: int) -> None:
    """`s' = s'dot = s'ddot = 0`, s' in F: with twist (w^', sdot in M) on the joint, s'ddot = R vdot + w x 0."""
    J, gamma, R, v, vdot = six(kind, seed)
    close(R @ (J @ v)[-3:], np.zeros(3))
    any_v = np.random.default_rng(seed).standard_normal(6)
    close(R @ (J @ any_v)[-3:], R @ any_v[3:], 1e-14)
    close(R @ (J @ vdot - gamma)[-3:], R @ vdot[3:], 1e-14)


@pytest.mark.parametrize("seed", SEEDS)
def test_relative_rates_across_the_hinge_KJ11_KJ12(seed: int) -> None:
    J, _, R, _, any_v = six("revolute", seed)
    w = R @ any_v[:3]  # w^ in B1 components
    close((J @ any_v)[:2], [R[:, 0] @ w, R[:, 1] @ w], 1e-14)  # f, g of B2


@pytest.mark.parametrize("seed", SEEDS)
def test_relative_accelerations_across_the_hinge_KJ13_to_KJ16(seed: int) -> None:
    J, gamma, R, v, vdot = six("revolute", seed)
    error = (J @ vdot - gamma)[:2]
    close(error, vdot[:2], 1e-14)  # (15), (16): f', g' of B2 times the rate of w^' in B2
    w, in_B1 = v[:3], R @ vdot[:3] + R @ np.cross(v[:3], v[:3])  # the rate of w^ in B1 components
    close(np.cross(w, [0, 0, 1]), np.zeros(3))
    close(R[:2, :2] @ error, in_B1[:2], 1e-14)  # (13), (14)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "free"])
def test_relative_rows_are_the_derivatives_of_the_residual(kind: str) -> None:
    """For every kind: phi of the six coordinates, differentiated along them, is `A (J v)` and `A (J vdot - gamma)`."""
    k, of = relative_rows(kind)
    rng = np.random.default_rng(7)
    free = TABLE["free"]
    q7, v, a = ca.SX.sym("q", 7), ca.SX.sym("v", 6), ca.SX.sym("a", 6)
    phi = k.phi(free.E(q7).T, q7[:3])
    along = configuration_rate(free, q7, v)
    phid = ca.jtimes(phi, q7, along)
    phidd = ca.jtimes(phid, q7, along) + ca.jtimes(phid, v, a)
    by_hand = ca.Function("phi", [q7, v, a], [phi, phid, phidd, ca.jacobian(phid, v)])
    for _ in range(3):
        q = joint_coordinates(k, rng)
        J, gamma, _, v6 = (np.array(x) for x in of(q, rng.standard_normal(k.nv)))
        place = pose_of(k, q)
        here = np.concatenate([place.position, place.quaternion])
        anyhow, a_ = rng.standard_normal((2, 6))
        value, phid_, _, Phi = (np.array(x) for x in by_hand(here, anyhow, a_))
        close(value, np.zeros_like(value), 1e-12)
        A = Phi @ np.linalg.pinv(J)
        assert np.linalg.cond(A) < 100
        close(A @ J, Phi)
        close(A @ (J @ anyhow), phid_.ravel())
        phidd_ = np.array(by_hand(here, v6, a_)[2]).ravel()
        close(A @ (J @ a_ - gamma.ravel()), phidd_)
