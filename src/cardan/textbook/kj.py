"""KJ: ball joint and hinge as constraint equations, in absolute and in relative coordinates.

Bodies `B1`, `B2` have their centres of mass at `p_G1`, `p_G2`. `[R_B]` takes fixed-frame components to those of body B;
a prime means body components. The point at `q2` from G1, fixed in B1, and the point at `-r2` from G2, fixed in B2, are
the points of the joint; `s2` leads from the first to the second, `s2'` in the axes of B1. `f`, `g` are perpendicular to
the hinge, `h` is parallel to it. A hat means relative to B1: `what` has components in B1, `what_` those in B2.

A name that ends with an underscore is a quantity with a prime. `KJ_1_rate`, `KJ_5_fixed` and their like are the
equations without a number that the source derives on the way from one number to the next.

Source: J. Kamman, Multibody Dynamics, Connecting Joints, Part I. Equations: KJ(1)-(16).
"""

from __future__ import annotations

from cardan.textbook import rules
from cardan.textbook.equation import Source
from cardan.textbook.notation import Quantity, Text, dot, inner, skew


def _column(latex: str, meaning: str, unit: str) -> Quantity:
    return Quantity(rf"\{{{latex}\}}", (3,), meaning, unit)


def _direction(latex: str, meaning: str) -> Quantity:
    return Quantity(latex, (3,), meaning, "1", rules.not_zero)


def _two_bodies(name: str, latex: str, meaning: str, unit: str) -> dict[str, Quantity]:
    """The quantity of each body."""
    return {f"{name}{k}": _column(latex.replace("#", str(k)), f"{meaning} {k}", unit) for k in (1, 2)}


def _directions(letter: str, meaning: str) -> dict[str, Quantity]:
    """A direction fixed in each body, as a vector and by its components in the body."""
    found = {}
    for k in (1, 2):
        found[f"{letter}_B{k}"] = _direction(f"{letter}_{{B_{k}}}", f"{meaning}, fixed in B{k}")
        name = rf"\{{{letter}'_{{B_{k}}}\}}"
        found[f"{letter}_B{k}_"] = _direction(name, f"{meaning}, fixed in B{k}, in its components")
    return found


def _residual(meaning: str, unit: str, shape: tuple[int, ...] = ()) -> Quantity:
    return Quantity("", shape, meaning, unit)


LETTERS = {
    "R_B1": Quantity("[R_{B_1}]", (3, 3), "rotation from fixed components to those of B1", "1", rules.rotation),
    "R_B2": Quantity("[R_{B_2}]", (3, 3), "rotation from fixed components to those of B2", "1", rules.rotation),
    "R_B1B2": Quantity("[{}^{B_1}R_{B_2}]", (3, 3), "rotation from B1 to B2 components", "1", rules.rotation),
    **_two_bodies("p_G", "p_{G_#}", "position of the centre of mass of B", "m"),
    **_two_bodies("v_G", "v_{G_#}", "velocity of the centre of mass of B", "m/s"),
    **_two_bodies("a_G", "a_{G_#}", "acceleration of the centre of mass of B", "m/s^2"),
    **_two_bodies("w", r"\omega_{B_#}", "angular velocity, fixed components, of B", "rad/s"),
    **_two_bodies("wdot", r"\dot{\omega}_{B_#}", "angular acceleration, fixed components, of B", "rad/s^2"),
    **_two_bodies("w_", r"\omega'_{B_#}", "angular velocity in the body's components, of B", "rad/s"),
    **_two_bodies("wdot_", r"\dot{\omega}'_{B_#}", "rate of the body components of angular velocity, of B", "rad/s^2"),
    "omega1": Quantity(r"{}^{R}\omega_{B_1}", (3,), "angular velocity of B1", "rad/s"),
    "omega2": Quantity(r"{}^{R}\omega_{B_2}", (3,), "angular velocity of B2", "rad/s"),
    "omegahat": Quantity(r"\hat{\omega}_{B_2}", (3,), "angular velocity of B2 relative to B1", "rad/s"),
    "what": _column(r"\hat{\omega}_{B_2}", "relative angular velocity of B2, components in B1", "rad/s"),
    "whatdot": _column(r"\dot{\hat{\omega}}_{B_2}", "rate of the components in B1 of the relative one", "rad/s^2"),
    "what_": _column(r"\hat{\omega}'_{B_2}", "relative angular velocity of B2, components in B2", "rad/s"),
    "whatdot_": _column(r"\dot{\hat{\omega}}'_{B_2}", "rate of the components in B2 of the relative one", "rad/s^2"),
    "q2": _column("q_2", "vector from G1 to the joint's point on B1, fixed components", "m"),
    "q2dot": _column(r"\dot{q}_2", "rate of q2, w_B1 x q2", "m/s"),
    "q2_": _column("q'_2", "vector from G1 to the joint's point on B1, components in B1", "m"),
    "r2": _column("r_2", "vector from the joint's point on B2 to G2, fixed components", "m"),
    "r2dot": _column(r"\dot{r}_2", "rate of r2, w_B2 x r2", "m/s"),
    "r2_": _column("r'_2", "vector from the joint's point on B2 to G2, components in B2", "m"),
    "s2": _column("s_2", "vector from the joint's point on B1 to that on B2, fixed components", "m"),
    "s2dot": _column(r"\dot{s}_2", "rate of s2", "m/s"),
    "s2_": _column("s'_2", "vector from the joint's point on B1 to that on B2, components in B1", "m"),
    "s2dot_": _column(r"\dot{s}'_2", "rate of the components in B1 of s2", "m/s"),
    "s2ddot_": _column(r"\ddot{s}'_2", "second rate of the components in B1 of s2", "m/s^2"),
    **_directions("f", "direction perpendicular to the axis"),
    **_directions("g", "second direction perpendicular to the axis"),
    "distance": _residual("what is left of it, zero on the joint", "m", (3,)),
    "slip": _residual("rate of what is left, zero on the joint", "m/s", (3,)),
    "slipdot": _residual("second rate of what is left, zero on the joint", "m/s^2", (3,)),
    "turn": _residual("component of the relative angular velocity, zero on the joint", "rad/s"),
    "turndot": _residual("component of the relative angular acceleration, zero on the joint", "rad/s^2"),
}  # fmt: skip
"""Every letter of KJ, and of the joints that are treated as it does."""

KJ = Source("KJ", "J. Kamman, Multibody Dynamics, Connecting Joints, Part I", LETTERS, r"\{0\}")


# Ball joint, absolute coordinates.


@KJ.equation("KJ(1)", gives="p_G2")
def KJ_1_place(p_G1: Text, R_B1: Text, q2_: Text, R_B2: Text, r2_: Text) -> Text:
    """Where the centre of mass of B2 is when the two points of the joint coincide."""
    return p_G1 + R_B1.T @ q2_ + R_B2.T @ r2_  # KJ(1)


@KJ.equation("KJ(1)", gives="distance", is_zero=True)
def KJ_1(p_G1: Text, p_G2: Text, R_B1: Text, q2_: Text, R_B2: Text, r2_: Text) -> Text:
    """The two points of the joint coincide: the vector between them."""
    return p_G2 - p_G1 - R_B1.T @ q2_ - R_B2.T @ r2_  # KJ(1)


@KJ.equation("KJ(1)", gives="slip", is_zero=True)
def KJ_1_rate(v_G1: Text, v_G2: Text, q2: Text, w1: Text, r2: Text, w2: Text) -> Text:
    """KJ(1) differentiated, with fixed-frame components of angular velocity."""
    return v_G2 - v_G1 + skew(q2) @ w1 + skew(r2) @ w2  # KJ(1), its rate


@KJ.equation("KJ(2)", gives="slipdot", is_zero=True)
def KJ_2(
    a_G1: Text, a_G2: Text, q2: Text, q2dot: Text, w1: Text, wdot1: Text, r2: Text, r2dot: Text, w2: Text, wdot2: Text
) -> Text:
    """KJ(1) differentiated twice, with fixed-frame components of angular velocity."""
    return a_G2 - a_G1 + skew(q2) @ wdot1 + skew(q2dot) @ w1 + skew(r2) @ wdot2 + skew(r2dot) @ w2  # KJ(2)


@KJ.equation("KJ(1)", gives="slip", is_zero=True)
def KJ_1_rate_body(v_G1: Text, v_G2: Text, R_B1: Text, q2_: Text, w_1: Text, R_B2: Text, r2_: Text, w_2: Text) -> Text:
    """KJ(1) differentiated, with body-frame components of angular velocity."""
    return v_G2 - v_G1 + R_B1.T @ skew(q2_) @ w_1 + R_B2.T @ skew(r2_) @ w_2  # KJ(1), its rate


@KJ.equation("KJ(3)", gives="slipdot", is_zero=True)
def KJ_3(
    a_G1: Text, a_G2: Text, R_B1: Text, q2_: Text, w_1: Text, wdot_1: Text, R_B2: Text, r2_: Text, w_2: Text,
    wdot_2: Text,
) -> Text:  # fmt: skip
    """KJ(1) differentiated twice, with body-frame components of angular velocity."""
    of_1 = R_B1.T @ skew(q2_) @ wdot_1, R_B1.T @ skew(w_1) @ skew(q2_) @ w_1
    of_2 = R_B2.T @ skew(r2_) @ wdot_2, R_B2.T @ skew(w_2) @ skew(r2_) @ w_2
    return a_G2 - a_G1 + of_1[0] + of_1[1] + of_2[0] + of_2[1]  # KJ(3)


# Ball joint, relative coordinates.


@KJ.equation("KJ(4)", gives="distance slip slipdot", is_zero=True)
def KJ_4(s2_: Text, s2dot_: Text, s2ddot_: Text) -> tuple[Text, Text, Text]:
    """In relative coordinates the position of the joint's point on B2 vanishes, with its rates."""
    return +s2_, +s2dot_, +s2ddot_  # KJ(4)


# Hinge, absolute coordinates.


@KJ.equation("KJ(5)", gives="turn", is_zero=True)
def KJ_5(f_B1: Text, omega1: Text, omega2: Text) -> Text:
    """The hinge lets nothing turn about `f`; here `f` is fixed in B1."""
    return inner(f_B1, omega2 - omega1)  # KJ(5)


@KJ.equation("KJ(5)", gives="turn", is_zero=True)
def KJ_5_B2(f_B2: Text, omega1: Text, omega2: Text) -> Text:
    """The same with `f` fixed in B2."""
    return inner(f_B2, omega2 - omega1)  # KJ(5)


@KJ.equation("KJ(6)", gives="turn", is_zero=True)
def KJ_6(g_B1: Text, omega1: Text, omega2: Text) -> Text:
    """The hinge lets nothing turn about `g`; here `g` is fixed in B1."""
    return inner(g_B1, omega2 - omega1)  # KJ(6)


@KJ.equation("KJ(6)", gives="turn", is_zero=True)
def KJ_6_B2(g_B2: Text, omega1: Text, omega2: Text) -> Text:
    """The same with `g` fixed in B2."""
    return inner(g_B2, omega2 - omega1)  # KJ(6)


@KJ.equation("KJ(5)", gives="turn", is_zero=True)
def KJ_5_fixed(f_B1_: Text, R_B1: Text, w1: Text, w2: Text) -> Text:
    """KJ(5) with fixed-frame components of angular velocity."""
    return turn_rate(f_B1_, R_B1, w1, w2)  # KJ(5)


@KJ.equation("KJ(6)", gives="turn", is_zero=True)
def KJ_6_fixed(g_B1_: Text, R_B1: Text, w1: Text, w2: Text) -> Text:
    """KJ(6) with fixed-frame components of angular velocity."""
    return turn_rate(g_B1_, R_B1, w1, w2)  # KJ(6)


def turn_rate(e: Text, R_B1: Text, w1: Text, w2: Text) -> Text:
    """Component of the relative angular velocity along `e` in B1, by fixed-frame components."""
    return dot(e, R_B1 @ (w2 - w1))


def turn_acceleration(e: Text, R_B1: Text, w1: Text, wdot1: Text, w2: Text, wdot2: Text) -> Text:
    """Rate of `turn_rate`."""
    return dot(e, R_B1 @ (wdot2 - wdot1)) + dot(e, R_B1 @ skew(w1).T @ (w2 - w1))


@KJ.equation("KJ(7)", gives="turndot", is_zero=True)
def KJ_7(f_B1_: Text, R_B1: Text, w1: Text, wdot1: Text, w2: Text, wdot2: Text) -> Text:
    """KJ(5) differentiated, with fixed-frame components of angular velocity."""
    return turn_acceleration(f_B1_, R_B1, w1, wdot1, w2, wdot2)  # KJ(7)


@KJ.equation("KJ(8)", gives="turndot", is_zero=True)
def KJ_8(g_B1_: Text, R_B1: Text, w1: Text, wdot1: Text, w2: Text, wdot2: Text) -> Text:
    """KJ(6) differentiated, with fixed-frame components of angular velocity."""
    return turn_acceleration(g_B1_, R_B1, w1, wdot1, w2, wdot2)  # KJ(8)


@KJ.equation("KJ(5)", gives="turn", is_zero=True)
def KJ_5_body(f_B1_: Text, R_B1: Text, w_1: Text, R_B2: Text, w_2: Text) -> Text:
    """KJ(5) with body-frame components of angular velocity."""
    return turn_rate_body(f_B1_, R_B1, w_1, R_B2, w_2)  # KJ(5)


@KJ.equation("KJ(6)", gives="turn", is_zero=True)
def KJ_6_body(g_B1_: Text, R_B1: Text, w_1: Text, R_B2: Text, w_2: Text) -> Text:
    """KJ(6) with body-frame components of angular velocity."""
    return turn_rate_body(g_B1_, R_B1, w_1, R_B2, w_2)  # KJ(6)


def turn_rate_body(e: Text, R_B1: Text, w_1: Text, R_B2: Text, w_2: Text) -> Text:
    """Component of the relative angular velocity along `e` in B1, by body-frame components."""
    return dot(e, R_B1 @ R_B2.T @ w_2 - w_1)


def turn_acceleration_body(e: Text, R_B1: Text, w_1: Text, wdot_1: Text, R_B2: Text, w_2: Text, wdot_2: Text) -> Text:
    """Rate of `turn_rate_body`."""
    of_rates = (R_B1 @ R_B2.T @ skew(w_2) - skew(w_1) @ R_B1 @ R_B2.T) @ w_2
    return dot(e, R_B1 @ R_B2.T @ wdot_2 - wdot_1) + dot(e, of_rates)


@KJ.equation("KJ(9)", gives="turndot", is_zero=True)
def KJ_9(f_B1_: Text, R_B1: Text, w_1: Text, wdot_1: Text, R_B2: Text, w_2: Text, wdot_2: Text) -> Text:
    """KJ(5) differentiated, with body-frame components of angular velocity."""
    return turn_acceleration_body(f_B1_, R_B1, w_1, wdot_1, R_B2, w_2, wdot_2)  # KJ(9)


@KJ.equation("KJ(10)", gives="turndot", is_zero=True)
def KJ_10(g_B1_: Text, R_B1: Text, w_1: Text, wdot_1: Text, R_B2: Text, w_2: Text, wdot_2: Text) -> Text:
    """KJ(6) differentiated, with body-frame components of angular velocity."""
    return turn_acceleration_body(g_B1_, R_B1, w_1, wdot_1, R_B2, w_2, wdot_2)  # KJ(10)


# Hinge, relative coordinates.


@KJ.equation("KJ(11)", gives="turn", is_zero=True)
def KJ_11(f_B1: Text, omegahat: Text) -> Text:
    """The relative angular velocity has no component along `f`, fixed in B1."""
    return inner(f_B1, omegahat)  # KJ(11)


@KJ.equation("KJ(11)", gives="turn", is_zero=True)
def KJ_11_B2(f_B2: Text, omegahat: Text) -> Text:
    """The same with `f` fixed in B2."""
    return inner(f_B2, omegahat)  # KJ(11)


@KJ.equation("KJ(12)", gives="turn", is_zero=True)
def KJ_12(g_B1: Text, omegahat: Text) -> Text:
    """The relative angular velocity has no component along `g`, fixed in B1."""
    return inner(g_B1, omegahat)  # KJ(12)


@KJ.equation("KJ(12)", gives="turn", is_zero=True)
def KJ_12_B2(g_B2: Text, omegahat: Text) -> Text:
    """The same with `g` fixed in B2."""
    return inner(g_B2, omegahat)  # KJ(12)


@KJ.equation("KJ(13)", gives="turndot", is_zero=True)
def KJ_13(f_B1_: Text, whatdot: Text) -> Text:
    """KJ(11) differentiated, with components in B1."""
    return dot(f_B1_, whatdot)  # KJ(13)


@KJ.equation("KJ(14)", gives="turndot", is_zero=True)
def KJ_14(g_B1_: Text, whatdot: Text) -> Text:
    """KJ(12) differentiated, with components in B1."""
    return dot(g_B1_, whatdot)  # KJ(14)


@KJ.equation("KJ(15)", gives="turndot", is_zero=True)
def KJ_15(f_B2_: Text, whatdot_: Text) -> Text:
    """KJ(11) differentiated, with components in B2."""
    return dot(f_B2_, whatdot_)  # KJ(15)


@KJ.equation("KJ(16)", gives="turndot", is_zero=True)
def KJ_16(g_B2_: Text, whatdot_: Text) -> Text:
    """KJ(12) differentiated, with components in B2."""
    return dot(g_B2_, whatdot_)  # KJ(16)
