"""F6: two bodies and a hinge with 6-D vectors.

Bodies B1 and B2, at rest, joined by a hinge with axis `s`; a force `f` acts on B1; what is B1's acceleration? `I1`,
`I2` are 6x6 inertias, all in one frame, angular part first. The matrix of F6(7) is the articulated inertia of B1, the
base case of the articulated-body algorithm (`formulation.spatial`).

Source: R. Featherstone, Solving a two-body dynamics problem using 6-D vectors. Equations: F6(1)-(7).
"""

from __future__ import annotations

import numpy as np

from cardan.textbook import rules
from cardan.textbook.equation import Source
from cardan.textbook.notation import Quantity, Text, divide, dot, outer, solve_symmetric

F6 = Source(
    "F6",
    "R. Featherstone, Solving a two-body dynamics problem using 6-D vectors",
    {
        "I1": Quantity("I_{1}", (6, 6), "inertia of B1", "kg m^2, kg m, kg", rules.inertia, symmetric=True),
        "I2": Quantity("I_{2}", (6, 6), "inertia of B2", "kg m^2, kg m, kg", rules.inertia, symmetric=True),
        "s": Quantity("s", (6,), "axis of the hinge", "1, m", rules.not_zero),
        "f": Quantity("f", (6,), "force on B1", "N m, N"),
        "fJ": Quantity("f_{J}", (6,), "force from B1 to B2 through the hinge", "N m, N"),
        "net1": Quantity("f - f_{J}", (6,), "net force on B1", "N m, N"),
        "a1": Quantity("a_{1}", (6,), "acceleration of B1", "rad/s^2, m/s^2"),
        "a2": Quantity("a_{2}", (6,), "acceleration of B2", "rad/s^2, m/s^2"),
        "alpha": Quantity(r"{\alpha}", (), "acceleration of the hinge", "rad/s^2"),
        "work": Quantity("s^{T} f_{J}", (), "power of the hinge's force per rate of the hinge", "N m"),
        "IA": Quantity("I_{1}^{A}", (6, 6), "articulated inertia of B1", "kg m^2, kg m, kg", symmetric=True),
    },
)


def about_the_hinge(I2: np.ndarray, s: np.ndarray) -> str | None:
    """Refuse a body without inertia about the axis of its hinge, where F6(6) divides by zero."""
    about = np.einsum("...i,...ij,...j->...", s, I2, s)
    size = np.einsum("...i,...i->...", s, s) * np.abs(I2).max(axis=(-1, -2))
    if (about <= 1e-13 * size).any():
        return (
            f"s^T I2 s is {about.min():.3g}, so B2 has no inertia about the axis of the hinge, as a thin rod about "
            "itself; its motion is undetermined: give it a radius, or weld it to B1"
        )
    return None


@F6.equation("F6(1)", gives="net1", left=lambda f, fJ: f - fJ)
def F6_1(I1: Text, a1: Text) -> Text:
    """Equation of motion of B1, at rest: the net force on it, `f - fJ`."""
    return I1 @ a1  # F6(1)


@F6.equation("F6(2)", gives="fJ")
def F6_2(I2: Text, a2: Text) -> Text:
    """Equation of motion of B2, at rest: the only force on it is that of the hinge."""
    return I2 @ a2  # F6(2)


@F6.equation("F6(3)", gives="a2")
def F6_3(a1: Text, s: Text, alpha: Text) -> Text:
    """Acceleration of B2: the hinge lets it turn about `s`."""
    return a1 + s * alpha  # F6(3)


@F6.equation("F6(4)", gives="work", is_zero=True)
def F6_4(s: Text, fJ: Text) -> Text:
    """The force of the hinge does no work along the motion that the hinge allows: this vanishes."""
    return dot(s, fJ)  # F6(4)


@F6.equation("F6(5)", gives="fJ")
def F6_5(I2: Text, a1: Text, s: Text, alpha: Text) -> Text:
    """Force of the hinge, F6(3) in F6(2)."""
    return I2 @ (a1 + s * alpha)  # F6(5)


@F6.equation("F6(6)", gives="alpha", needs=[about_the_hinge])
def F6_6(I2: Text, s: Text, a1: Text) -> Text:
    """Acceleration of the hinge that goes with the acceleration of B1, F6(5) in F6(4)."""
    return -divide(dot(s, I2 @ a1), dot(s, I2 @ s))  # F6(6)


@F6.equation("F6(7)", gives="IA", needs=[about_the_hinge])
def articulated_inertia(I1: Text, I2: Text, s: Text) -> Text:
    """Articulated inertia of B1: the inertia that it shows with B2 on its hinge, `f = IA a1`."""
    U = I2 @ s
    return I1 + I2 - divide(outer(U, U), dot(s, U))  # F6(7)


def moves(I1: np.ndarray, I2: np.ndarray, s: np.ndarray) -> str | None:
    """Refuse bodies that together have no inertia in some direction, where F6(7) has no inverse."""
    wrong = rules.definite(articulated_inertia.kernel()(I1, I2, s))
    return f"the articulated inertia of B1 {wrong}" if wrong else None


@F6.equation("F6(7)", gives="a1", needs=[about_the_hinge, moves])
def F6_7(I1: Text, I2: Text, s: Text, f: Text) -> Text:
    """Acceleration of B1 under the force: the answer to the problem."""
    return solve_symmetric(articulated_inertia.text(I1, I2, s), f)  # F6(7)
