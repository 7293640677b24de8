"""F3: the same two bodies with 3-D vectors.

Masses `m1`, `m2`; inertias `I1`, `I2` (3x3) about the centres of mass C1, C2; `s` the hinge's direction through a point
P, `r1 = C1 P`, `r2 = C2 P`; `f` acts through C1 with the couple `tau`. A left superscript P means: referred to P. The
matrices J and K are letters of the source: F3(19) and F3(23) give them.

Source: R. Featherstone, Solving a two-body dynamics problem using 3-D vectors (2002). Equations: F3(1)-(26).
"""

from __future__ import annotations

import numpy as np

from cardan.textbook import rules
from cardan.textbook.equation import Source
from cardan.textbook.notation import Quantity, Text, block, cross, divide, dot, identity, skew, solve


def _vector(latex: str, meaning: str, unit: str) -> Quantity:
    return Quantity(latex, (3,), meaning, unit)


F3 = Source(
    "F3",
    "R. Featherstone, Solving a two-body dynamics problem using 3-D vectors (2002)",
    {
        "m1": Quantity("m_{1}", (), "mass of B1", "kg", rules.positive),
        "m2": Quantity("m_{2}", (), "mass of B2", "kg", rules.positive),
        "I1": Quantity("I_{1}", (3, 3), "inertia of B1 about C1", "kg m^2", rules.inertia, symmetric=True),
        "I2": Quantity("I_{2}", (3, 3), "inertia of B2 about C2", "kg m^2", rules.inertia, symmetric=True),
        "r1": _vector("r_{1}", "vector from C1 to P", "m"),
        "r2": _vector("r_{2}", "vector from C2 to P", "m"),
        "s": Quantity("s", (3,), "direction of the hinge", "1", rules.not_zero),
        "f": _vector("f", "force on B1 through C1", "N"),
        "tau": _vector(r"\tau{}", "couple on B1", "N m"),
        "f1": _vector("f_{1}", "net force on B1", "N"),
        "f2": _vector("f_{2}", "net force on B2", "N"),
        "tau1": _vector(r"\tau_{1}", "net couple on B1 about C1", "N m"),
        "tau2": _vector(r"\tau_{2}", "net couple on B2 about C2", "N m"),
        "a1": _vector("a_{1}", "acceleration of C1", "m/s^2"),
        "a2": _vector("a_{2}", "acceleration of C2", "m/s^2"),
        "w1dot": _vector(r"\dot{\omega}_{1}", "angular acceleration of B1", "rad/s^2"),
        "w2dot": _vector(r"\dot{\omega}_{2}", "angular acceleration of B2", "rad/s^2"),
        "Pa1": _vector("{}^{P}a_{1}", "acceleration of B1's point at P", "m/s^2"),
        "Pa2": _vector("{}^{P}a_{2}", "acceleration of B2's point at P", "m/s^2"),
        "Pw1dot": _vector(r"{}^{P}\dot{\omega}_{1}", "angular acceleration of B1, referred to P", "rad/s^2"),
        "Pw2dot": _vector(r"{}^{P}\dot{\omega}_{2}", "angular acceleration of B2, referred to P", "rad/s^2"),
        "Pf2": _vector("{}^{P}f_{2}", "force on B2, referred to P", "N"),
        "Ptau2": _vector(r"{}^{P}\tau_{2}", "couple on B2, referred to P", "N m"),
        "alpha": Quantity(r"{\alpha}", (), "acceleration of the hinge", "rad/s^2"),
        "work": Quantity(r"s^{T}\,{}^{P}\tau_{2}", (), "couple of the hinge about its axis", "N m"),
        "J": Quantity("J", (3, 3), "inertia of B2 about P", "kg m^2", rules.inertia, symmetric=True),
        "K": Quantity("K", (3, 3), "the matrix K of F3(23)", "kg m^2"),
        "A": Quantity("A", (3, 3), "force per acceleration of C1", "kg", symmetric=True),
        "B": Quantity("B", (3, 3), "force per angular acceleration of B1", "kg m"),
        "C": Quantity("C", (3, 3), "couple per acceleration of C1", "kg m"),
        "D": Quantity("D", (3, 3), "couple per angular acceleration of B1", "kg m^2", symmetric=True),
        "motion": Quantity("", (6,), "acceleration of C1, then angular acceleration of B1", "m/s^2, rad/s^2"),
        "ABCD": Quantity("", (6, 6), "matrix from accelerations to force and couple", "kg, kg m, kg m^2"),
    },
)


def about_the_hinge(J: np.ndarray, s: np.ndarray) -> str | None:
    """Refuse a body without inertia about the axis of its hinge, where F3(18) divides by zero."""
    about = np.einsum("...i,...ij,...j->...", s, J, s)
    size = np.einsum("...i,...i->...", s, s) * np.abs(J).max(axis=(-1, -2))
    if (about <= 1e-13 * size).any():
        return (
            f"s^T J s is {about.min():.3g}, so B2 has no inertia about the axis of the hinge, as a thin rod about "
            "itself; its motion is undetermined: give it a radius, or weld it to B1"
        )
    return None


def about_the_axis(m2: np.ndarray, I2: np.ndarray, r2: np.ndarray, s: np.ndarray) -> str | None:
    """The same, from the data of B2."""
    return about_the_hinge(F3_19.kernel()(m2, I2, r2), s)


@F3.equation("F3(1)", gives="f1")
def F3_1(m1: Text, a1: Text) -> Text:
    """Newton's law for B1."""
    return m1 * a1  # F3(1)


@F3.equation("F3(2)", gives="tau1")
def F3_2(I1: Text, w1dot: Text) -> Text:
    """Euler's law for B1, at rest."""
    return I1 @ w1dot  # F3(2)


@F3.equation("F3(3)", gives="f2")
def F3_3(m2: Text, a2: Text) -> Text:
    """Newton's law for B2."""
    return m2 * a2  # F3(3)


@F3.equation("F3(4)", gives="tau2")
def F3_4(I2: Text, w2dot: Text) -> Text:
    """Euler's law for B2, at rest."""
    return I2 @ w2dot  # F3(4)


@F3.equation("F3(5)", gives="Pa1")
def F3_5(a1: Text, r1: Text, w1dot: Text) -> Text:
    """Acceleration of B1 transferred from C1 to P, at rest."""
    return a1 - cross(r1, w1dot)  # F3(5)


@F3.equation("F3(6)", gives="Pa2")
def F3_6(a2: Text, r2: Text, w2dot: Text) -> Text:
    """Acceleration of B2 transferred from C2 to P, at rest."""
    return a2 - cross(r2, w2dot)  # F3(6)


@F3.equation("F3(7)", gives="Pw1dot")
def F3_7(w1dot: Text) -> Text:
    """The angular acceleration of B1 is the same at every point."""
    return +w1dot  # F3(7)


@F3.equation("F3(8)", gives="Pw2dot")
def F3_8(w2dot: Text) -> Text:
    """The angular acceleration of B2 is the same at every point."""
    return +w2dot  # F3(8)


@F3.equation("F3(9)", gives="Pf2")
def F3_9(f2: Text) -> Text:
    """The force on B2 is the same at every point."""
    return +f2  # F3(9)


@F3.equation("F3(10)", gives="Ptau2")
def F3_10(tau2: Text, r2: Text, f2: Text) -> Text:
    """Couple on B2 transferred from C2 to P."""
    return tau2 - cross(r2, f2)  # F3(10)


@F3.equation("F3(11)", gives="f")
def F3_11(f1: Text, f2: Text) -> Text:
    """The force on the system is the sum of the net forces."""
    return f1 + f2  # F3(11)


@F3.equation("F3(12)", gives="tau")
def F3_12(tau1: Text, tau2: Text, r1: Text, r2: Text, f2: Text) -> Text:
    """The couple on the system about C1."""
    return tau1 + tau2 + cross(r1 - r2, f2)  # F3(12)


@F3.equation("F3(13)", gives="Pa2")
def F3_13(Pa1: Text) -> Text:
    """At P both bodies have the same acceleration."""
    return +Pa1  # F3(13)


@F3.equation("F3(14)", gives="Pw2dot")
def F3_14(Pw1dot: Text, s: Text, alpha: Text) -> Text:
    """The hinge lets B2 turn about `s`."""
    return Pw1dot + s * alpha  # F3(14)


@F3.equation("F3(15)", gives="work", is_zero=True)
def F3_15(s: Text, Ptau2: Text) -> Text:
    """The hinge transmits no couple about its axis: this vanishes."""
    return dot(s, Ptau2)  # F3(15)


@F3.equation("F3(16)", gives="w2dot")
def F3_16(w1dot: Text, s: Text, alpha: Text) -> Text:
    """Angular acceleration of B2, from F3(8), (14) and (7)."""
    return w1dot + s * alpha  # F3(16)


@F3.equation("F3(17)", gives="a2")
def F3_17(a1: Text, r1: Text, r2: Text, w1dot: Text, s: Text, alpha: Text) -> Text:
    """Acceleration of C2, from F3(6), (13), (5) and (16)."""
    return a1 + cross(r2 - r1, w1dot) + cross(r2, s) * alpha  # F3(17)


@F3.equation("F3(18)", gives="alpha", needs=[about_the_axis])
def F3_18(m2: Text, I2: Text, r1: Text, r2: Text, s: Text, a1: Text, w1dot: Text) -> Text:
    """Acceleration of the hinge, before the matrices J and K are introduced."""
    carried = a1 + cross(r2 - r1, w1dot)
    numerator = dot(s, I2 @ w1dot - m2 * cross(r2, carried))
    return -divide(numerator, dot(s, I2 @ s - m2 * cross(r2, cross(r2, s))))  # F3(18)


@F3.equation("F3(19)", gives="J")
def F3_19(m2: Text, I2: Text, r2: Text) -> Text:
    """Inertia of B2 about P: a positive definite matrix plus one that is not negative."""
    return I2 + m2 * (skew(r2).T @ skew(r2))  # F3(19)


@F3.equation("F3(20)", gives="alpha", needs=[about_the_hinge])
def F3_20(m2: Text, r1: Text, r2: Text, s: Text, J: Text, a1: Text, w1dot: Text) -> Text:
    """Acceleration of the hinge with J."""
    return -divide(dot(s, J @ w1dot - m2 * cross(r2, a1 - cross(r1, w1dot))), dot(s, J @ s))  # F3(20)


@F3.equation("F3(21)", gives="f", needs=[about_the_hinge])
def F3_21(m1: Text, m2: Text, r1: Text, r2: Text, s: Text, J: Text, a1: Text, w1dot: Text) -> Text:
    """Force on the system by the acceleration of B1."""
    R1, R2, d = skew(r1), skew(r2), dot(s, J @ s)
    A = (m1 + m2) * identity(3, J) + divide(m2**2 * (R2 @ s @ s.T @ R2), d)
    B = m2 * (R2 - R1) - divide(m2 * (R2 @ s @ s.T @ (J + m2 * (R2 @ R1))), d)
    return A @ a1 + B @ w1dot  # F3(21)


@F3.equation("F3(22)", gives="tau")
def F3_22(
    m2: Text, I1: Text, I2: Text, r1: Text, r2: Text, s: Text, K: Text, a1: Text, w1dot: Text, alpha: Text
) -> Text:
    """Couple on the system about C1 by the accelerations of B1 and of the hinge."""
    r12 = skew(r1) - skew(r2)
    return (I1 + I2 - m2 * (r12 @ r12)) @ w1dot + m2 * (r12 @ a1) + K @ s * alpha  # F3(22)


@F3.equation("F3(23)", gives="K")
def F3_23(m2: Text, r1: Text, r2: Text, J: Text) -> Text:
    """The matrix K."""
    return J + m2 * (skew(r1) @ skew(r2))  # F3(23)


@F3.equation("F3(24)", gives="alpha", needs=[about_the_hinge])
def F3_24(m2: Text, r2: Text, s: Text, J: Text, K: Text, a1: Text, w1dot: Text) -> Text:
    """Acceleration of the hinge with J and K: the form of F6(6)."""
    return -divide(dot(s, K.T @ w1dot - m2 * (skew(r2) @ a1)), dot(s, J @ s))  # F3(24)


@F3.equation("F3(25)", gives="tau", needs=[about_the_hinge])
def F3_25(m2: Text, I1: Text, I2: Text, r1: Text, r2: Text, s: Text, J: Text, K: Text, a1: Text, w1dot: Text) -> Text:
    """Couple on the system about C1 by the acceleration of B1."""
    r12, R2, d = skew(r1) - skew(r2), skew(r2), dot(s, J @ s)
    D = I1 + I2 - m2 * (r12 @ r12) - divide(K @ s @ s.T @ K.T, d)
    C = m2 * r12 + divide(m2 * (K @ s @ s.T @ R2), d)
    return D @ w1dot + C @ a1  # F3(25)


@F3.equation("F3(26)", gives="A B C D", needs=[about_the_hinge])
def F3_26_blocks(
    m1: Text, m2: Text, I1: Text, I2: Text, r1: Text, r2: Text, s: Text, J: Text, K: Text
) -> tuple[Text, Text, Text, Text]:
    """Four blocks of the matrix: A and D are symmetric, B is the transpose of C."""
    R1, R2, d = skew(r1), skew(r2), dot(s, J @ s)
    A = (m1 + m2) * identity(3, J) + divide(m2**2 * (R2 @ s @ s.T @ R2), d)
    B = m2 * (R2 - R1) - divide(m2 * (R2 @ s @ s.T @ K.T), d)
    C = m2 * (R1 - R2) + divide(m2 * (K @ s @ s.T @ R2), d)
    r12 = R1 - R2
    D = I1 + I2 - m2 * (r12 @ r12) - divide(K @ s @ s.T @ K.T, d)
    return A, B, C, D  # F3(26)


def solvable(A: np.ndarray, B: np.ndarray, C: np.ndarray, D: np.ndarray) -> str | None:
    """Refuse blocks whose matrix has no inverse."""
    parts = np.broadcast_arrays(A, B, C, D)
    whole = np.concatenate([np.concatenate(parts[:2], axis=-1), np.concatenate(parts[2:], axis=-1)], axis=-2)
    s = np.linalg.svd(whole, compute_uv=False)
    if (s[..., -1] <= 1e-13 * s[..., 0]).any():
        return "the matrix [A B; C D] has no inverse: the bodies have no inertia in some direction; give them a size"
    return None


@F3.equation("F3(26)", gives="motion", needs=[solvable], left=lambda a1, w1dot: block([[a1], [w1dot]]))
def F3_26(A: Text, B: Text, C: Text, D: Text, f: Text, tau: Text) -> Text:
    """Accelerations of B1 under force and couple: the answer to the problem."""
    return solve(block([[A, B], [C, D]]), block([[f], [tau]]))  # F3(26)


@F3.equation("F3(26)", gives="ABCD", needs=[about_the_axis], left=lambda A, B, C, D: block([[A, B], [C, D]]))
def two_body_matrix(m1: Text, I1: Text, r1: Text, m2: Text, I2: Text, r2: Text, s: Text) -> Text:
    """The whole matrix from `[a1; w1dot]` to `[f; tau]`, from the data of the bodies."""
    J = F3_19.text(m2, I2, r2)
    A, B, C, D = F3_26_blocks.text(m1, m2, I1, I2, r1, r2, s, J, F3_23.text(m2, r1, r2, J))
    return block([[A, B], [C, D]])  # F3(26)
