"""Mutants of `textbook`: the equations of the sources."""

from __future__ import annotations

from tests.mutants.mutant import Mutant, changes

TWO_BODIES, EXERCISES, BAD = (
    "closed_form/test_two_body.py",
    "identity/test_exercises.py",
    "identity/test_textbook_refusals.py",
)
JOINTS = "identity/test_textbook_kj.py"
PRINT = "agreement/test_textbook.py"
PAGES = "product/test_textbook_page.py"

MUTANTS: list[Mutant] = [
    *changes(
        "textbook/f6.py",
        TWO_BODIES,
        (
            "I1 + I2 - divide(outer(U, U), dot(s, U))  # F6(7)",
            "I1 + I2 + divide(outer(U, U), dot(s, U))  # F6(7)",
            "articulated inertia: wrong sign",
        ),
        ("return I2 @ (a1 + s * alpha)  # F6(5)", "return I2 @ (a1 - s * alpha)  # F6(5)", "hinge turns the other way"),
    ),
    *changes(
        "textbook/f3.py",
        TWO_BODIES,
        (
            "return J + m2 * (skew(r1) @ skew(r2))  # F3(23)",
            "return J + m2 * (skew(r2) @ skew(r1))  # F3(23)",
            "K with its factors exchanged",
        ),
        (
            "return tau2 - cross(r2, f2)  # F3(10)",
            "return tau2 + cross(r2, f2)  # F3(10)",
            "couple transferred the wrong way",
        ),
        (
            "J @ w1dot - m2 * cross(r2, a1 - cross(r1, w1dot))",
            "J @ w1dot - m2 * cross(r2, a1 + cross(r1, w1dot))",
            "F3(20) with the wrong sign",
        ),
        (
            "+ m2 * (r12 @ a1) + K @ s * alpha  # F3(22)",
            "+ m2 * (r12 @ a1) - K @ s * alpha  # F3(22)",
            "couple of the hinge's acceleration: wrong sign",
        ),
    ),
    *changes(
        "textbook/fx.py",
        EXERCISES,
        ("return I_C @ w + cross(c, h), h", "return I_C @ w - cross(c, h), h", "moment of momentum: wrong sign"),
        ("identity(3, I_C) / m + R @ W @ R.T", "identity(3, I_C) / m - R @ W @ R.T", "inverse inertia: wrong sign"),
        (
            "I_A - I_A @ solve_symmetric(I_A + I_B, I_A)",
            "I_A - I_A @ solve_symmetric(I_A + I_A, I_A)",
            "relative inertia knows one body only",
        ),
        (
            "return Phi, Sdot_alpha - Phi @ (I @ Sdot_alpha + crf(v) @ (I @ v))",
            "return Phi, Sdot_alpha - Phi @ (I @ Sdot_alpha)",
            "constrained body without its velocity force",
        ),
        ("I_i @ v + h_children", "I_i @ v - h_children", "momentum of the children subtracted"),
    ),
    *changes(
        "textbook/written.py",
        PRINT,
        (
            'return Written("product", [_transposed(part) for part in reversed(self.parts)], self._turned)',
            'return Written("product", [_transposed(part) for part in self.parts], self._turned)',
            "the transpose of a product keeps its order",
        ),
        (
            '"minus": lambda a: f"-{_within(a, PRODUCT)}"',
            '"minus": lambda a: f"{_within(a, PRODUCT)}"',
            "a sign is lost in print",
        ),
    ),
    *changes(
        "textbook/as_sympy.py",
        PRINT,
        (
            '"difference": lambda a, b: a - b',
            '"difference": lambda a, b: a + b',
            "SymPy's form adds where it should subtract",
        ),
        ("return a[0] * b[1] - a[1] * b[0]", "return a[0] * b[1] + a[1] * b[0]", "moment in the plane: wrong sign"),
    ),
    *changes(
        "textbook/rules.py",
        BAD,
        ("bad = least < -SMALL * size", "bad = least < -1e9 * size", "negative inertias pass"),
        ("bad = ~(a > 0)", "bad = ~(a > -1e9)", "negative masses pass"),
    ),
    *changes(
        "textbook/pages/two_bodies.py",
        PAGES,
        (
            "back = rotation(ca.DM([0, 0, 1]), -two.fold) @ R.T",
            "back = rotation(ca.DM([0, 0, 1]), two.fold) @ R.T",
            "page: B2 is folded the other way in the engine",
        ),
        (
            "return ca.vertcat(a1[3:] + cross(a1[:3], two.C1), a1[:3])",
            "return ca.vertcat(a1[3:], a1[:3])",
            "page: acceleration of O taken for that of C1",
        ),
    ),
    *changes(
        "textbook/pages/sheet.py",
        PAGES,
        (
            "y = ca.vertcat(*(ca.vec(value.symbols.T)",
            "y = ca.vertcat(*(ca.vec(value.symbols)",
            "page: matrices are transposed",
        ),
        (
            "for value in flat[1:] for x in ca.vertsplit(value - flat[0])",
            "for value in flat[1:] for x in ca.vertsplit(value - value)",
            "page: forms are compared with themselves",
        ),
    ),
    *changes(
        "textbook/notation.py",
        PAGES,
        ("return x + ca.solve(A, b - A @ x)", "return x", "general systems are solved without refinement"),
    ),
    *changes(
        "textbook/kj.py",
        JOINTS,
        (
            "skew(r2) @ wdot2 + skew(r2dot) @ w2  # KJ(2)",
            "skew(r2) @ wdot2 - skew(r2dot) @ w2  # KJ(2)",
            "ball joint: velocity term of body 2 with the wrong sign",
        ),
        (
            "dot(e, R_B1 @ skew(w1).T @ (w2 - w1))",
            "dot(e, R_B1 @ skew(w1) @ (w2 - w1))",
            "hinge: its direction turns the other way",
        ),
        (
            "R_B1 @ R_B2.T @ skew(w_2) - skew(w_1) @ R_B1 @ R_B2.T",
            "R_B1 @ R_B2.T @ skew(w_2) + skew(w_1) @ R_B1 @ R_B2.T",
            "hinge in body components: wrong rate of the relative rotation",
        ),
        (
            "return dot(g_B2_, whatdot_)  # KJ(16)",
            "return -dot(g_B2_, whatdot_)  # KJ(16)",
            "KJ(16) with the wrong sign",
        ),
    ),
    *changes(
        "textbook/kj_joints.py",
        JOINTS,
        ("+ 2 * (skew(s2dot) @ w1) +", "+ skew(s2dot) @ w1 +", "slide: half of Coriolis' acceleration"),
        (
            "- 2 * (skew(w_1) @ s2dot_)",
            "- skew(w_1) @ s2dot_",
            "slide in body components: half of Coriolis' acceleration",
        ),
        (
            "moving = skew(k) @ (skew(w1) @ e) - skew(e) @ (skew(w2) @ k)",
            "moving = skew(k) @ (skew(w1) @ e) + skew(e) @ (skew(w2) @ k)",
            "cross: its second axis turns the other way",
        ),
        (
            "return dot(h_B1_, s2ddot_) - pitch * dot(h_B1_, whatdot)",
            "return dot(h_B1_, s2ddot_) + pitch * dot(h_B1_, whatdot)",
            "a screw of the other hand",
        ),
    ),
    *changes(
        "readable/kj_rows.py",
        "agreement/test_styles.py",
        ("R * turning if in_body else turning * R", "turning * R", "rates of axes in the fixed frame only"),
        (
            "slide = e.R_1.T @ (e.v_2 - e.v_1 - cross(e.w_1, e.s))\n    R, p",
            "slide = e.R_1.T @ (e.v_2 - e.v_1)\n    R, p",
            "slides without the turn of body 1",
        ),
        ("else [-R[1, 2], R[0, 2]]", "else [R[1, 2], R[0, 2]]", "residual of a hinge with the wrong sign"),
    ),
]
