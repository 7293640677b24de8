"""The two-body problem of F6 and F3: one matrix found three ways, with 6-D vectors, 3-D vectors and the engine."""

from __future__ import annotations

from typing import NamedTuple

import casadi as ca
import numpy as np
import pytest
from hypothesis import given, settings

import cardan as cd
from cardan import mechanisms, textbook
from cardan.algebra.rotation import skew
from cardan.algebra.spatial import inertia_about_origin, rigid_inertia

from ..formulations import parts_of, solved
from ..trees import close, random_rotation, seeds

pytestmark = pytest.mark.usefixtures("quick_code")

FORMULATIONS = ("spatial", "newton_euler")
LINEAR_FIRST = [3, 4, 5, 0, 1, 2]  # F3 writes [a1; w1dot], F6 the angular part first


class Bodies(NamedTuple):
    """The data of F3: r1 = C1 P, r2 = C2 P."""

    m1: float
    I1: np.ndarray
    r1: np.ndarray
    m2: float
    I2: np.ndarray
    r2: np.ndarray
    s: np.ndarray

    @property
    def spatial(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The data of F6, in a frame at C1: the axis passes through r1, and C2 is at r1 - r2."""
        c2 = self.r1 - self.r2
        I1 = rigid_inertia(self.m1, np.zeros(3), self.I1)
        I2 = rigid_inertia(self.m2, self.m2 * c2, inertia_about_origin(self.m2, c2, self.I2))
        return I1, I2, np.concatenate([self.s, np.cross(self.r1, self.s)])

    @property
    def J(self) -> np.ndarray:
        return textbook.F3_19(self.m2, self.I2, self.r2)

    @property
    def K(self) -> np.ndarray:
        return textbook.F3_23(self.m2, self.r1, self.r2, self.J)

    def alpha(self, a1: np.ndarray, w1dot: np.ndarray) -> float:
        return textbook.F3_24(self.m2, self.r2, self.s, self.J, self.K, a1, w1dot)


def random_bodies(rng: np.random.Generator) -> Bodies:
    def body() -> tuple[float, np.ndarray, np.ndarray]:
        R = random_rotation(rng)
        return rng.uniform(0.1, 10), R @ mechanisms.random_inertia(rng) @ R.T, rng.uniform(-2, 2, 3)

    return Bodies(*body(), *body(), random_rotation(rng)[0])


def bodies_of(model: cd.Model, q: np.ndarray) -> Bodies:
    """F3's data of the catalogue's mechanism at a configuration, in B1's axes."""
    T1, T2 = cd.body_poses(model, q)
    R = T1[:3, :3].T @ T2[:3, :3]
    one, two = model.body("B1"), model.body("B2")
    hinge = model.joint("hinge").at
    return Bodies(
        one.mass, one.inertia, hinge.position, two.mass, R @ two.inertia @ R.T, -(R @ two.com), hinge.rotation[:, 2]
    )


@given(seed=seeds)
@settings(max_examples=25)
def test_F6_7_and_F3_26_are_one_matrix_symmetric_and_positive_definite(seed: int) -> None:
    b = random_bodies(np.random.default_rng(seed))
    six = textbook.articulated_inertia(*b.spatial)
    three = textbook.two_body_matrix(*b)
    close(six[np.ix_(LINEAR_FIRST, LINEAR_FIRST)], three, 1e-12)
    close(three, three.T, 1e-13)
    assert np.linalg.eigvalsh(three)[0] > 0
    assert np.linalg.eigvalsh(six)[0] > 0


@given(seed=seeds)
@settings(max_examples=25)
def test_F3_21_and_F3_25_follow_from_Newton_and_Euler_of_each_body(seed: int) -> None:
    """F3(11), F3(12) with any a1, w1dot: forces of both bodies, B2 moving by F3(16), F3(17)."""
    rng = np.random.default_rng(seed)
    b = random_bodies(rng)
    a1, w1dot = rng.standard_normal((2, 3))
    alpha = b.alpha(a1, w1dot)
    w2dot = w1dot + alpha * b.s
    a2 = a1 - np.cross(b.r1, w1dot) + np.cross(b.r2, w2dot)
    f2, tau2 = b.m2 * a2, b.I2 @ w2dot
    f = b.m1 * a1 + f2
    tau = b.I1 @ w1dot + tau2 + np.cross(b.r1 - b.r2, f2)
    close(textbook.two_body_matrix(*b) @ np.concatenate([a1, w1dot]), np.concatenate([f, tau]), 1e-12)
    assert abs(b.s @ (tau2 - np.cross(b.r2, f2))) < 1e-11 * max(1, np.abs(tau2).max(), np.abs(f2).max())  # F3(15)


@given(seed=seeds)
@settings(max_examples=25)
def test_joint_acceleration_F6_6_is_F3_18_is_F3_20_is_F3_24(seed: int) -> None:
    rng = np.random.default_rng(seed)
    b = random_bodies(rng)
    a1, w1dot = rng.standard_normal((2, 3))
    _, I2, s = b.spatial
    expected = textbook.F6_6(I2, s, np.concatenate([w1dot, a1]))
    close(textbook.F3_18(b.m2, b.I2, b.r1, b.r2, b.s, a1, w1dot), expected, 1e-12)
    close(textbook.F3_20(b.m2, b.r1, b.r2, b.s, b.J, a1, w1dot), expected, 1e-12)
    close(b.alpha(a1, w1dot), expected, 1e-12)


@pytest.mark.parametrize("formulation", FORMULATIONS)
@pytest.mark.parametrize("number", range(3))
def test_the_engine_accelerates_B1_as_F6_7_says(number: int, formulation: str) -> None:
    model = mechanisms.two_body(seed=number).build()
    rng = np.random.default_rng(number)
    q, v = model.random_state(rng)
    wrenches = np.zeros((model.nb, 6))
    wrenches[0] = rng.standard_normal(6)
    a = cd.forward_dynamics(model, q, 0 * v, wrenches=wrenches, formulation=formulation)
    b = bodies_of(model, q)
    I1, I2, s = b.spatial
    close(a[:6], np.linalg.solve(textbook.articulated_inertia(I1, I2, s), wrenches[0]), 1e-12)
    close(a[:6][LINEAR_FIRST], np.linalg.solve(textbook.two_body_matrix(*b), wrenches[0][LINEAR_FIRST]), 1e-12)
    close(a[6], textbook.F6_6(I2, s, a[:6]), 1e-12)


@pytest.mark.parametrize("formulation", ["absolute", "absolute_body", "relative"])
def test_constrained_formulations_accelerate_B1_as_F3_26_says(formulation: str) -> None:
    """With the hinge as constraint equations, KJ(1)-(16): the same accelerations of B1 as F3(26), and of the hinge."""
    for number in range(3):
        model = mechanisms.two_body(seed=number).build()
        rng = np.random.default_rng(number)
        q, v = model.random_state(rng)
        wrenches = np.zeros((model.nb, 6))
        wrenches[0] = rng.standard_normal(6)
        x, u = ca.SX.sym("q", model.nq), ca.SX.sym("v", model.nv)
        parts = parts_of(model, formulation, x, u, wrenches=ca.SX(ca.DM(wrenches)))
        a, _ = solved(model, formulation, parts, list(range(len(parts.rows))))
        found = np.array(ca.Function("a", [x, u], [a])(q, 0 * v)).ravel()
        b = bodies_of(model, q)
        A, B, C, D = textbook.F3_26_blocks(b.m1, b.m2, b.I1, b.I2, b.r1, b.r2, b.s, b.J, b.K)
        answer = textbook.F3_26(A, B, C, D, wrenches[0, 3:], wrenches[0, :3])
        close(found[:6][LINEAR_FIRST], answer, 1e-11)
        close(found[6], b.alpha(answer[:3], answer[3:]), 1e-11)


def test_F6_7_and_F3_26_are_batched_in_the_textbook() -> None:
    rng = np.random.default_rng(7)
    grid = [[random_bodies(rng) for _ in range(5)] for _ in range(4)]
    columns = [np.array([[b[k] for b in row] for row in grid]) for k in range(7)]
    spatial = [np.array([[b.spatial[k] for b in row] for row in grid]) for k in range(3)]
    six, three = cd.textbook.articulated_inertia(*spatial), cd.textbook.two_body_matrix(*columns)
    assert six.shape == three.shape == (4, 5, 6, 6)
    close(six[..., LINEAR_FIRST, :][..., LINEAR_FIRST], three, 1e-12)
    close(six[2, 3], textbook.articulated_inertia(*grid[2][3].spatial), 1e-13)


@given(seed=seeds)
@settings(max_examples=15)
def test_F6_1_to_7_hold_together(seed: int) -> None:
    """A force on B1: what F6(7) and F6(6) answer satisfies each equation that the derivation starts from."""
    rng = np.random.default_rng(seed)
    I1, I2, s = random_bodies(rng).spatial
    f = rng.standard_normal(6)
    a1 = textbook.F6_7(I1, I2, s, f)
    alpha = textbook.F6_6(I2, s, a1)
    fJ = textbook.F6_5(I2, a1, s, alpha)
    size = np.abs(f).max()
    assert abs(textbook.F6_4(s, fJ)) < 1e-11 * size
    close(textbook.F6_2(I2, textbook.F6_3(a1, s, alpha)), fJ, 1e-12)
    close(textbook.F6_1(I1, a1), f - fJ, 1e-11)


@given(seed=seeds)
@settings(max_examples=15)
def test_F3_1_to_26_hold_together(seed: int) -> None:
    """A force and a couple on B1: what F3(26) and F3(24) answer satisfies each equation before them."""
    rng, t = np.random.default_rng(seed), textbook
    b = random_bodies(rng)
    f, tau = rng.standard_normal((2, 3))
    J = t.F3_19(b.m2, b.I2, b.r2)
    K = t.F3_23(b.m2, b.r1, b.r2, J)
    close(K, b.I2 + b.m2 * (skew(b.r1) - skew(b.r2)) @ skew(b.r2), 1e-12)  # its first form
    A, B, C, D = t.F3_26_blocks(b.m1, b.m2, b.I1, b.I2, b.r1, b.r2, b.s, J, K)
    close(B, C.T, 1e-12)
    motion = t.F3_26(A, B, C, D, f, tau)
    a1, w1dot = motion[:3], motion[3:]
    alpha = t.F3_24(b.m2, b.r2, b.s, J, K, a1, w1dot)
    f1, tau1 = t.F3_1(b.m1, a1), t.F3_2(b.I1, w1dot)
    Pa1, Pw1dot = t.F3_5(a1, b.r1, w1dot), t.F3_7(w1dot)
    Pa2, Pw2dot = t.F3_13(Pa1), t.F3_14(Pw1dot, b.s, alpha)
    w2dot, a2 = t.F3_16(w1dot, b.s, alpha), t.F3_17(a1, b.r1, b.r2, w1dot, b.s, alpha)
    close(t.F3_8(w2dot), Pw2dot, 1e-12)
    close(t.F3_6(a2, b.r2, w2dot), Pa2, 1e-11)
    f2, tau2 = t.F3_3(b.m2, a2), t.F3_4(b.I2, w2dot)
    Pf2, Ptau2 = t.F3_9(f2), t.F3_10(tau2, b.r2, f2)
    close(Ptau2 + np.cross(b.r2, Pf2), tau2, 1e-12)
    assert abs(t.F3_15(b.s, Ptau2)) < 1e-10 * max(1, np.abs(Ptau2).max())
    close(t.F3_11(f1, f2), f, 1e-10)
    close(t.F3_12(tau1, tau2, b.r1, b.r2, f2), tau, 1e-10)
    close(t.F3_21(b.m1, b.m2, b.r1, b.r2, b.s, b.J, a1, w1dot), f, 1e-10)
    close(t.F3_22(b.m2, b.I1, b.I2, b.r1, b.r2, b.s, b.K, a1, w1dot, alpha), tau, 1e-10)
    close(t.F3_25(b.m2, b.I1, b.I2, b.r1, b.r2, b.s, b.J, b.K, a1, w1dot), tau, 1e-10)
