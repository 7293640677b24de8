"""The two-body problem in closed form, with 6-D and with 3-D vectors.

Bodies B1 and B2, at rest, joined by a hinge; a force acts on B1; what is B1's acceleration? Both answers are a 6x6
matrix, the inertia that B1 shows with B2 attached. `articulated_inertia` is the base case of the articulated-body
algorithm (`spatial.articulated_in`).

Notation of F6: `I1`, `I2` 6x6 inertias, `s` the hinge axis as a 6-D vector, `f` force, `a1` acceleration, all in
one frame. Notation of F3: masses `m1`, `m2`; inertias `I1`, `I2` (3x3) about the centres of mass C1, C2; `s` the
unit axis; `r1 = C1 P`, `r2 = C2 P` for a point P of the axis; `f` through C1, couple `tau`; `a1` of C1 and `w1dot`.

Equations: F6(6), F6(7); F3(18), F3(19), F3(21), F3(23), F3(24), F3(25), F3(26).
"""

from __future__ import annotations

from cardan.algebra.matrix import Matrix, Scalar, block, dot, eye, outer
from cardan.algebra.rotation import cross, skew


def articulated_inertia(I1: Matrix, I2: Matrix, s: Matrix) -> Matrix:
    """Articulated inertia (6, 6) of B1: `f = IA a1`."""
    U = I2 @ s
    return I1 + I2 - outer(U, U) / dot(s, U)  # F6(7)


def joint_acceleration(I2: Matrix, s: Matrix, a1: Matrix) -> Scalar:
    """Hinge acceleration (rad/s^2) that goes with B1's acceleration."""
    return -dot(s, I2 @ a1) / dot(s, I2 @ s)  # F6(6)


def two_body_matrix(m1: Scalar, I1: Matrix, r1: Matrix, m2: Scalar, I2: Matrix, r2: Matrix, s: Matrix) -> Matrix:
    """The matrix `[A B; C D]` (6, 6) with `[f; tau] = [A B; C D] [a1; w1dot]`."""
    J = I2 + m2 * (skew(r2).T @ skew(r2))  # F3(19)
    K = J + m2 * (skew(r1) @ skew(r2))  # F3(23)
    d = dot(s, J @ s)
    r21 = skew(r2) - skew(r1)
    A = (m1 + m2) * eye(3, I1) - m2 * m2 * outer(skew(r2) @ s, skew(r2) @ s) / d  # F3(21)
    B = m2 * r21 - m2 * outer(skew(r2) @ s, K @ s) / d  # F3(21)
    D = I1 + I2 - m2 * (r21 @ r21) - outer(K @ s, K @ s) / d  # F3(25)
    return block([[A, B], [B.T, D]])  # F3(26)


def joint_acceleration_3d(
    m2: Scalar, I2: Matrix, r1: Matrix, r2: Matrix, s: Matrix, a1: Matrix, w1dot: Matrix
) -> Scalar:
    """Hinge acceleration (rad/s^2), before the matrices J and K are introduced."""
    carried = a1 + cross(r2 - r1, w1dot)
    numerator = dot(s, I2 @ w1dot - m2 * cross(r2, carried))
    return -numerator / dot(s, I2 @ s - m2 * cross(r2, cross(r2, s)))  # F3(18)


def joint_acceleration_short(
    m2: Scalar, I2: Matrix, r1: Matrix, r2: Matrix, s: Matrix, a1: Matrix, w1dot: Matrix
) -> Scalar:
    """The same, with J and K."""
    J = I2 + m2 * (skew(r2).T @ skew(r2))  # F3(19)
    K = J + m2 * (skew(r1) @ skew(r2))  # F3(23)
    return -dot(s, K.T @ w1dot - m2 * (skew(r2) @ a1)) / dot(s, J @ s)  # F3(24)
