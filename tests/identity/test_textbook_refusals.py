"""Wrong numbers given to the textbook: one sentence with the equation, the quantity, the value and the likely fix."""

from __future__ import annotations

from typing import Any

import casadi as ca
import numpy as np
import pytest

import cardan as cd

pytestmark = pytest.mark.usefixtures("quick_code")

sympy = pytest.importorskip("sympy")
t = cd.textbook
ROD = np.diag([0.0, 1 / 3, 1 / 3])  # thin, along x, about one end
UNIT3, UNIT6 = np.eye(3), np.eye(6)
e = np.eye(6)
S = np.array([[1.0, 2], [0, 0], [0, 0], [0, 0], [0, 0], [0, 0]])


def thin_rod() -> np.ndarray:
    """6x6 inertia of a thin rod of 1 kg and 1 m along x, about its end."""
    from cardan.algebra.spatial import inertia_about_origin, rigid_inertia

    c = np.array([0.5, 0, 0])
    return rigid_inertia(1.0, c, inertia_about_origin(1.0, c, np.diag([0, 1 / 12, 1 / 12])))


def point_mass() -> np.ndarray:
    """6x6 inertia of 1 kg at (1, 0, 0)."""
    from cardan.algebra.spatial import inertia_about_origin, rigid_inertia

    c = np.array([1.0, 0, 0])
    return rigid_inertia(1.0, c, inertia_about_origin(1.0, c, np.zeros((3, 3))))


CASES: dict[str, tuple[Any, list[str]]] = {
    "thin rod about itself, F6": (
        lambda: t.F6_7(UNIT6, thin_rod(), e[0], np.ones(6)),
        ["F6(7)", "s^T I2 s is 0", "thin rod", "give it a radius"],
    ),
    "thin rod about itself, in a batch": (
        lambda: t.articulated_inertia(UNIT6, np.stack([UNIT6, thin_rod()]), e[0]),
        ["F6(7)", "no inertia about the axis"],
    ),
    "thin rod about itself, F3": (
        lambda: t.two_body_matrix(1.0, UNIT3, np.zeros(3), 1.0, np.diag([0, 1, 1]), np.array([0.5, 0, 0]), [1, 0, 0]),
        ["F3(26)", "s^T J s is 0", "give it a radius"],
    ),
    "S without full rank": (
        lambda: t.FX_B1(UNIT6, S, np.zeros(6), np.zeros(6)),
        ["FX(B1)", "S, motions", "independent columns", "got 2 of rank 1", "leave out"],
    ),
    "a body without inertia along S": (
        lambda: t.FX_B1(thin_rod(), np.stack([e[0], e[1]], axis=1), np.zeros(6), np.zeros(6)),
        ["FX(B1)", "S^T I S has no inverse", "thin rod"],
    ),
    "zero axis": (lambda: t.F6_6(UNIT6, np.zeros(6), e[0]), ["F6(6)", "s, axis of the hinge", "zero vector"]),
    "zero direction": (
        lambda: t.F3_18(1.0, UNIT3, e[0][:3], e[0][:3], np.zeros(3), e[0][:3], e[0][:3]),
        ["F3(18)", "s, direction of the hinge", "zero vector"],
    ),
    "components of a body by no rotation": (
        lambda: t.KJ_5_fixed([1, 0, 0], 2 * UNIT3, [0, 0, 1], [0, 1, 0]),
        ["KJ(5)", "R_B1", "must be a rotation matrix", "differs from 1 by 3"],
    ),
    "a screw's axis that is not a unit vector": (
        lambda: t.KJ_S_24([0, 0, 2], [0, 0, 1], 0.1, 0.5),
        ["KJ-S(24)", "h_B1_, axis of the screw", "must have the length 1, got 2", "divide it by its length"],
    ),
    "a right angle has no tangent": (
        lambda: t.KJ_S_18([1, 0, 0], [0, 1, 0], UNIT3, UNIT3, [0, 1, 0]),
        ["KJ-S(18)", "f_B1 and f_B2 are perpendicular", "tangent infinite"],
    ),
    "negative mass": (lambda: t.F3_1(-2.0, np.ones(3)), ["F3(1)", "m1, mass of B1", "positive", "-2"]),
    "inertia that is not symmetric": (
        lambda: t.F3_2(np.array([[1.0, 0.5, 0], [0, 1, 0], [0, 0, 1]]), np.ones(3)),
        ["F3(2)", "I1, inertia of B1 about C1", "symmetric"],
    ),
    "negative inertia": (lambda: t.F3_2(np.diag([1.0, -1, 1]), np.ones(3)), ["F3(2)", "negative", "eigenvalue is -1"]),
    "wrong shape": (lambda: t.F3_1(1.0, np.ones(4)), ["F3(1)", "a1, acceleration of C1", "(..., 3)", "(4,)"]),
    "sizes that do not fit": (
        lambda: t.FX_B2(np.eye(6)[:, :2], np.eye(6)[:, 2:], np.ones(3), np.ones(2)),
        ["FX(B2)", "alpha, rates along S", "(..., k)", "(3,)"],
    ),
    "text": (lambda: t.F3_1("heavy", np.ones(3)), ["F3(1)", "m1, mass of B1", "must be numbers", "heavy"]),
    "not finite": (lambda: t.F3_1(np.nan, np.ones(3)), ["F3(1)", "m1, mass of B1", "must be finite"]),
    "an argument too few": (lambda: t.F6_7(UNIT6), ["F6(7)", "missing", "it takes I1, I2, s, f"]),
    "a batch beside a SymPy matrix": (
        lambda: t.F3_1(sympy.Symbol("m"), np.ones((2, 2, 3))),
        ["F3(1)", "a1", "batch"],
    ),
    "a matrix that is no rotation": (lambda: t.rotation_log(2 * UNIT3), ["rotation_log", "rotation matrix", "differs"]),
    "a mirror": (lambda: t.rotation_log(np.diag([1.0, 1, -1])), ["rotation_log", "right-handed", "exchange two axes"]),
    "two point masses at one place": (
        lambda: t.F6_7(point_mass(), point_mass(), e[1], np.ones(6)),
        ["F6(7)", "the articulated inertia of B1 must have an inverse"],
    ),
    "a matrix without inverse": (
        lambda: t.F3_26(UNIT3, UNIT3, UNIT3, UNIT3, np.ones(3), np.ones(3)),
        ["F3(26)", "[A B; C D] has no inverse"],
    ),
    "inverse of a thin rod": (
        lambda: t.FX_A2(UNIT6, thin_rod()),
        ["FX(A2)", "must have an inverse", "give it a radius"],
    ),
    "inverse of two thin rods": (lambda: t.FX_A3(thin_rod(), thin_rod()), ["FX(A3)", "must have an inverse"]),
    "two thin rods along one line": (lambda: t.relative_inertia(thin_rod(), thin_rod()), ["FX(A3)", "I_A + I_B"]),
    "a thin rod in closed form": (lambda: t.inverse_inertia(1.0, np.ones(3), ROD), ["FX(A2)", "I_C must have an"]),
    "no transform": (lambda: t.FX_A2(np.ones((6, 6)), UNIT6), ["FX(A2)", "X, transform", "must be a transform"]),
    "a place of nothing": (lambda: t.AT_r2(1, [0.1, 0], 0, 1, [0.5, 0]), ["AT 2.1", "m2 must not be zero"]),
    "vectors of no triangle": (
        lambda: t.AT_unreduced(1, 4, 1, [1, 1], [2, 0], [5, 0], [0, 0], [0, 0], [0, 0], [1, 0], 0),
        ["r32 must be r31 - r21"],
    ),
    "complex numbers": (lambda: t.F3_1(1.0, np.ones(3) * 1j), ["F3(1)", "a1", "must be numbers"]),
    "nothing at all": (lambda: t.F3_1(None, np.ones(3)), ["F3(1)", "m1", "must be numbers"]),
    "numbers as text": (lambda: t.F3_1("2", np.ones(3)), ["F3(1)", "m1", "must be numbers"]),
    "batches that do not fit": (
        lambda: t.AT_particles(np.ones(2), np.ones((3, 2)), 5.0, 1.0, [1.0, 0.0]),
        ["the batches do not fit together", "m (2,)", "rG (3,)"],
    ),
    "a zero axis beside symbols": (
        lambda: t.F3_18(ca.SX.sym("m"), UNIT3, e[0][:3], e[0][:3], np.zeros(3), e[0][:3], e[0][:3]),
        ["F3(18)", "s, direction of the hinge", "zero vector"],
    ),
    "S without full rank beside symbols": (
        lambda: t.FX_B1(ca.SX.sym("I", 6, 6), S, np.zeros(6), np.zeros(6)),
        ["FX(B1)", "independent columns"],
    ),
    "a negative mass among SymPy's numbers": (
        lambda: t.F3_1(sympy.Integer(-2), sympy.Matrix(sympy.symbols("x y z"))),
        ["F3(1)", "m1", "positive"],
    ),
    "two kinds of CasADi": (lambda: t.F3_1(ca.SX.sym("m"), ca.MX.sym("a", 3)), ["F3(1)", "mix MX and SX"]),
    "a size that is a letter": (
        lambda: t.F3_1(1.0, sympy.MatrixSymbol("a", sympy.Symbol("n"), 1)),
        ["F3(1)", "a1", "which must be numbers"],
    ),
    "no form in print": (lambda: t.momentum_about_origin.latex(), ["momentum_about_origin", "FX_A1"]),
}


@pytest.mark.parametrize("case", CASES)
def test_a_sentence_says_what_is_wrong(case: str) -> None:
    call, words = CASES[case]
    with pytest.raises(cd.InputError) as found:
        call()
    message = str(found.value)
    assert all(word in message for word in words), message
    assert "Traceback" not in message


def test_an_unknown_equation_names_the_nearest() -> None:
    with pytest.raises(AttributeError, match=r"F6_8.*F6_"):
        t.F6_8  # noqa: B018
