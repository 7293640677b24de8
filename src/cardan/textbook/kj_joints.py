"""Universal, prismatic, cylindrical, planar and screw joints, each as KJ treats the ball joint and the hinge.

The notation is KJ's (`textbook.kj`). `s2` leads from the joint's point on B1 to that on B2: KJ(1) without the demand
that it vanishes. A joint is made of a few conditions. Each is one text at position, rate and acceleration level, for
fixed-frame and body-frame components of angular velocity and for relative coordinates:

    no turn about e     two bodies keep their directions; the rows of KJ(5)-(16) for any direction `e` of B1
    no slide along e    `s2` has no component along `e`, fixed in B1
    e square to k       an axis `e` of B1 stays perpendicular to an axis `k` of B2
    advance with turn   `s2` along `h` is the pitch times the angle about `h`

    universal KJ-U      points coincide, KJ(1)-(4); e square to k
    prismatic KJ-P      no turn about f, g, h; no slide along f, g
    cylindrical KJ-C    no turn about f, g; no slide along f, g
    planar KJ-L         no turn about f, g; no slide along h, the normal
    screw KJ-S          no turn about f, g; no slide along f, g; advance with turn along h

Every joint numbers its conditions from (1): `KJ_P_1` is KJ-P(1).

Source: KJ. Equations: KJ(1)-(3), KJ(5)-(16).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import FunctionType

import numpy as np

from cardan.textbook import kj, rules
from cardan.textbook.equation import Source
from cardan.textbook.notation import Quantity, Text, cross, divide, dot, skew

LETTERS = {
    **kj.LETTERS,
    "e_B1_": Quantity(r"\{e'_{B_1}\}", (3,), "direction fixed in B1, in its components", "1", rules.not_zero),
    "e_B2_": Quantity(r"\{e'_{B_2}\}", (3,), "direction fixed in B2, in its components", "1", rules.not_zero),
    "k_B2_": Quantity(r"\{k'_{B_2}\}", (3,), "direction fixed in B2, in its components", "1", rules.not_zero),
    "h_B1_": Quantity(r"\{h'_{B_1}\}", (3,), "axis of the screw, a unit vector, in B1", "1", rules.unit),
    "e": Quantity(r"\{e_{B_1}\}", (3,), "direction fixed in B1, fixed-frame components", "1", rules.not_zero),
    "k": Quantity(r"\{k_{B_2}\}", (3,), "direction fixed in B2, fixed-frame components", "1", rules.not_zero),
    "pitch": Quantity("p", (), "advance per turn of one radian", "m/rad"),
    "theta": Quantity(r"\theta", (), "angle from f_B1 to f_B2 about h", "rad"),
    "tangent": Quantity(r"\tan\theta", (), "tangent of the angle from f_B1 to f_B2 about h", "1"),
    "cosine": Quantity("", (), "cosine of the angle between two axes, zero on the joint", "1"),
    "cosinedot": Quantity("", (), "rate of the cosine, zero on the joint", "1/s"),
    "cosineddot": Quantity("", (), "second rate of the cosine, zero on the joint", "1/s^2"),
    "shift": Quantity("", (), "component of what is left, zero on the joint", "m"),
    "shiftdot": Quantity("", (), "rate of the component, zero on the joint", "m/s"),
    "shiftddot": Quantity("", (), "second rate of the component, zero on the joint", "m/s^2"),
}  # fmt: skip


# No turn about e.


def turn_fixed(e_B1_: Text, R_B1: Text, w1: Text, w2: Text) -> Text:
    """No turn about `e`: rate, with fixed-frame components."""
    return kj.turn_rate(e_B1_, R_B1, w1, w2)  # KJ(5),(6)


def turndot_fixed(e_B1_: Text, R_B1: Text, w1: Text, wdot1: Text, w2: Text, wdot2: Text) -> Text:
    """No turn about `e`: acceleration, with fixed-frame components."""
    return kj.turn_acceleration(e_B1_, R_B1, w1, wdot1, w2, wdot2)  # KJ(7),(8)


def turn_body(e_B1_: Text, R_B1: Text, w_1: Text, R_B2: Text, w_2: Text) -> Text:
    """No turn about `e`: rate, with body-frame components."""
    return kj.turn_rate_body(e_B1_, R_B1, w_1, R_B2, w_2)  # KJ(5),(6)


def turndot_body(e_B1_: Text, R_B1: Text, w_1: Text, wdot_1: Text, R_B2: Text, w_2: Text, wdot_2: Text) -> Text:
    """No turn about `e`: acceleration, with body-frame components."""
    return kj.turn_acceleration_body(e_B1_, R_B1, w_1, wdot_1, R_B2, w_2, wdot_2)  # KJ(9),(10)


def turn_relative(e_B1_: Text, what: Text) -> Text:
    """No turn about `e`: relative rate, components in B1."""
    return dot(e_B1_, what)  # KJ(11),(12)


def turndot_relative(e_B1_: Text, whatdot: Text) -> Text:
    """No turn about `e`: relative acceleration, components in B1."""
    return dot(e_B1_, whatdot)  # KJ(13),(14)


def turndot_relative_2(e_B2_: Text, whatdot_: Text) -> Text:
    """No turn about `e`, fixed in B2: relative acceleration, components in B2."""
    return dot(e_B2_, whatdot_)  # KJ(15),(16)


# No slide along e. `q2 + s2` leads from G1 to the joint's point on B2.


def slide_place(e_B1_: Text, R_B1: Text, s2: Text) -> Text:
    """No slide along `e`: position."""
    return dot(e_B1_, R_B1 @ s2)


def slide_fixed(
    e_B1_: Text, R_B1: Text, v_G1: Text, v_G2: Text, q2: Text, s2: Text, w1: Text, r2: Text, w2: Text
) -> Text:
    """No slide along `e`: rate, with fixed-frame components."""
    return dot(e_B1_, R_B1 @ (v_G2 - v_G1 + (skew(q2) + skew(s2)) @ w1 + skew(r2) @ w2))  # KJ(1), its rate


def slidedot_fixed(
    e_B1_: Text, R_B1: Text, a_G1: Text, a_G2: Text, q2: Text, q2dot: Text, s2: Text, s2dot: Text, w1: Text,
    wdot1: Text, r2: Text, r2dot: Text, w2: Text, wdot2: Text,
) -> Text:  # fmt: skip
    """No slide along `e`: acceleration, with fixed-frame components."""
    of_accelerations = a_G2 - a_G1 + (skew(q2) + skew(s2)) @ wdot1 + skew(r2) @ wdot2
    of_rates = skew(q2dot) @ w1 + skew(r2dot) @ w2 + 2 * (skew(s2dot) @ w1) + skew(w1) @ (skew(w1) @ s2)
    return dot(e_B1_, R_B1 @ of_accelerations) + dot(e_B1_, R_B1 @ of_rates)  # KJ(2)


def slide_body(
    e_B1_: Text, R_B1: Text, v_G1: Text, v_G2: Text, q2_: Text, s2_: Text, w_1: Text, R_B2: Text, r2_: Text, w_2: Text
) -> Text:
    """No slide along `e`: rate, with body-frame components."""
    arms = (skew(q2_) + skew(s2_)) @ w_1 + R_B1 @ R_B2.T @ skew(r2_) @ w_2
    return dot(e_B1_, R_B1 @ (v_G2 - v_G1) + arms)  # KJ(1), its rate


def slidedot_body(
    e_B1_: Text, R_B1: Text, a_G1: Text, a_G2: Text, q2_: Text, s2_: Text, s2dot_: Text, w_1: Text, wdot_1: Text,
    R_B2: Text, r2_: Text, w_2: Text, wdot_2: Text,
) -> Text:  # fmt: skip
    """No slide along `e`: acceleration, with body-frame components."""
    arms = (skew(q2_) + skew(s2_)) @ wdot_1 + R_B1 @ R_B2.T @ skew(r2_) @ wdot_2
    of_1 = skew(w_1) @ ((skew(q2_) + skew(s2_)) @ w_1) - 2 * (skew(w_1) @ s2dot_)
    of_rates = of_1 + R_B1 @ R_B2.T @ skew(w_2) @ skew(r2_) @ w_2
    return dot(e_B1_, R_B1 @ (a_G2 - a_G1) + arms) + dot(e_B1_, of_rates)  # KJ(3)


def slide_relative_place(e_B1_: Text, s2_: Text) -> Text:
    """No slide along `e`: relative position."""
    return dot(e_B1_, s2_)


def slide_relative(e_B1_: Text, s2dot_: Text) -> Text:
    """No slide along `e`: relative rate."""
    return dot(e_B1_, s2dot_)


def slidedot_relative(e_B1_: Text, s2ddot_: Text) -> Text:
    """No slide along `e`: relative acceleration."""
    return dot(e_B1_, s2ddot_)


# e square to k. Written as the cosine between them and its rates.


def square_place(e_B1_: Text, R_B1: Text, R_B2: Text, k_B2_: Text) -> Text:
    """`e` of B1 is perpendicular to `k` of B2: position."""
    return dot(e_B1_, R_B1 @ R_B2.T @ k_B2_)


def square_fixed(e: Text, k: Text, w1: Text, w2: Text) -> Text:
    """`e` stays perpendicular to `k`: rate, with fixed-frame components."""
    return dot(skew(k) @ e, w2 - w1)


def squaredot_fixed(e: Text, k: Text, w1: Text, wdot1: Text, w2: Text, wdot2: Text) -> Text:
    """`e` stays perpendicular to `k`: acceleration, with fixed-frame components."""
    moving = skew(k) @ (skew(w1) @ e) - skew(e) @ (skew(w2) @ k)
    return dot(skew(k) @ e, wdot2 - wdot1) + dot(moving, w2 - w1)


def square_body(e_B1_: Text, R_B1: Text, w_1: Text, R_B2: Text, w_2: Text, k_B2_: Text) -> Text:
    """`e` stays perpendicular to `k`: rate, with body-frame components; the bracket is that of KJ(9)."""
    return dot(e_B1_, (R_B1 @ R_B2.T @ skew(w_2) - skew(w_1) @ R_B1 @ R_B2.T) @ k_B2_)  # KJ(9)


def squaredot_body(
    e_B1_: Text, R_B1: Text, w_1: Text, wdot_1: Text, R_B2: Text, w_2: Text, wdot_2: Text, k_B2_: Text
) -> Text:
    """`e` stays perpendicular to `k`: acceleration, with body-frame components."""
    of_accelerations = (R_B1 @ R_B2.T @ skew(wdot_2) - skew(wdot_1) @ R_B1 @ R_B2.T) @ k_B2_
    bracket = R_B1 @ R_B2.T @ skew(w_2) - skew(w_1) @ R_B1 @ R_B2.T
    return dot(e_B1_, of_accelerations) + dot(e_B1_, bracket @ (skew(w_2) @ k_B2_) - skew(w_1) @ (bracket @ k_B2_))


def square_relative_place(e_B1_: Text, R_B1B2: Text, k_B2_: Text) -> Text:
    """`e` of B1 is perpendicular to `k` of B2: relative position."""
    return dot(e_B1_, R_B1B2.T @ k_B2_)


def square_relative(e_B1_: Text, R_B1B2: Text, k_B2_: Text, what: Text) -> Text:
    """`e` stays perpendicular to `k`: relative rate, components in B1."""
    return dot(cross(R_B1B2.T @ k_B2_, e_B1_), what)


def squaredot_relative(e_B1_: Text, R_B1B2: Text, k_B2_: Text, what: Text, whatdot: Text) -> Text:
    """`e` stays perpendicular to `k`: relative acceleration, components in B1."""
    k = R_B1B2.T @ k_B2_
    return dot(cross(k, e_B1_), whatdot) + dot(cross(skew(what) @ k, e_B1_), what)


def square_relative_2(e_B1_: Text, R_B1B2: Text, k_B2_: Text, what_: Text) -> Text:
    """`e` stays perpendicular to `k`: relative rate, components in B2."""
    return dot(cross(k_B2_, R_B1B2 @ e_B1_), what_)


def squaredot_relative_2(e_B1_: Text, R_B1B2: Text, k_B2_: Text, what_: Text, whatdot_: Text) -> Text:
    """`e` stays perpendicular to `k`: relative acceleration, components in B2."""
    e = R_B1B2 @ e_B1_
    return dot(cross(k_B2_, e), whatdot_) - dot(cross(k_B2_, skew(what_) @ e), what_)


# Advance with turn: what slides along h beyond the pitch times what turns about it.


def screw_angle(f_B1_: Text, g_B1_: Text, R_B1: Text, R_B2: Text, f_B2_: Text) -> Text:
    """Angle of the screw: from `f` of B1 to `f` of B2 about `h`."""
    return divide(dot(g_B1_, R_B1 @ R_B2.T @ f_B2_), dot(f_B1_, R_B1 @ R_B2.T @ f_B2_))


def screw_place(h_B1_: Text, R_B1: Text, s2: Text, pitch: Text, theta: Text) -> Text:
    """The advance is the pitch times the angle: position."""
    return slide_place(h_B1_, R_B1, s2) - pitch * theta


def screw_fixed(
    h_B1_: Text, R_B1: Text, v_G1: Text, v_G2: Text, q2: Text, s2: Text, w1: Text, r2: Text, w2: Text, pitch: Text
) -> Text:
    """The advance is the pitch times the angle: rate, with fixed-frame components."""
    return slide_fixed(h_B1_, R_B1, v_G1, v_G2, q2, s2, w1, r2, w2) - pitch * turn_fixed(h_B1_, R_B1, w1, w2)


def screwdot_fixed(
    h_B1_: Text, R_B1: Text, a_G1: Text, a_G2: Text, q2: Text, q2dot: Text, s2: Text, s2dot: Text, w1: Text,
    wdot1: Text, r2: Text, r2dot: Text, w2: Text, wdot2: Text, pitch: Text,
) -> Text:  # fmt: skip
    """The advance is the pitch times the angle: acceleration, with fixed-frame components."""
    slide = slidedot_fixed(h_B1_, R_B1, a_G1, a_G2, q2, q2dot, s2, s2dot, w1, wdot1, r2, r2dot, w2, wdot2)
    return slide - pitch * turndot_fixed(h_B1_, R_B1, w1, wdot1, w2, wdot2)


def screw_body(
    h_B1_: Text, R_B1: Text, v_G1: Text, v_G2: Text, q2_: Text, s2_: Text, w_1: Text, R_B2: Text, r2_: Text,
    w_2: Text, pitch: Text,
) -> Text:  # fmt: skip
    """The advance is the pitch times the angle: rate, with body-frame components."""
    slide = slide_body(h_B1_, R_B1, v_G1, v_G2, q2_, s2_, w_1, R_B2, r2_, w_2)
    return slide - pitch * turn_body(h_B1_, R_B1, w_1, R_B2, w_2)


def screwdot_body(
    h_B1_: Text, R_B1: Text, a_G1: Text, a_G2: Text, q2_: Text, s2_: Text, s2dot_: Text, w_1: Text, wdot_1: Text,
    R_B2: Text, r2_: Text, w_2: Text, wdot_2: Text, pitch: Text,
) -> Text:  # fmt: skip
    """The advance is the pitch times the angle: acceleration, with body-frame components."""
    slide = slidedot_body(h_B1_, R_B1, a_G1, a_G2, q2_, s2_, s2dot_, w_1, wdot_1, R_B2, r2_, w_2, wdot_2)
    return slide - pitch * turndot_body(h_B1_, R_B1, w_1, wdot_1, R_B2, w_2, wdot_2)


def screw_relative_place(h_B1_: Text, s2_: Text, pitch: Text, theta: Text) -> Text:
    """The advance is the pitch times the angle: relative position."""
    return dot(h_B1_, s2_) - pitch * theta


def screw_relative(h_B1_: Text, s2dot_: Text, pitch: Text, what: Text) -> Text:
    """The advance is the pitch times the angle: relative rate."""
    return dot(h_B1_, s2dot_) - pitch * dot(h_B1_, what)


def screwdot_relative(h_B1_: Text, s2ddot_: Text, pitch: Text, whatdot: Text) -> Text:
    """The advance is the pitch times the angle: relative acceleration."""
    return dot(h_B1_, s2ddot_) - pitch * dot(h_B1_, whatdot)


def angle_has_a_tangent(
    f_B1_: np.ndarray, R_B1: np.ndarray, R_B2: np.ndarray, f_B2_: np.ndarray
) -> str | None:  # fmt: skip
    """Refuse a right angle, whose tangent is infinite."""
    cosine = np.einsum("...i,...ij,...kj,...k->...", f_B1_, R_B1, R_B2, f_B2_)
    sizes = np.linalg.norm(f_B1_, axis=-1) * np.linalg.norm(f_B2_, axis=-1)
    if (np.abs(cosine) <= 1e-14 * sizes).any():
        return (
            "f_B1 and f_B2 are perpendicular, so theta is a right angle and its tangent infinite; turn f_B1 with g_B1"
        )
    return None


Condition = Callable[..., Text]
SQUARE: tuple[Condition, ...] = (
    square_place, square_fixed, squaredot_fixed, square_body, squaredot_body, square_relative_place, square_relative,
    squaredot_relative, square_relative_2, squaredot_relative_2,
)  # fmt: skip
TURN: tuple[Condition, ...] = (
    square_place, turn_fixed, turndot_fixed, turn_body, turndot_body, square_relative_place, turn_relative,
    turndot_relative, turndot_relative_2,
)  # fmt: skip
SLIDE: tuple[Condition, ...] = (
    slide_place, slide_fixed, slidedot_fixed, slide_body, slidedot_body, slide_relative_place, slide_relative,
    slidedot_relative,
)  # fmt: skip
SCREW: tuple[Condition, ...] = (
    screw_angle, screw_place, screw_fixed, screwdot_fixed, screw_body, screwdot_body, screw_relative_place,
    screw_relative, screwdot_relative,
)  # fmt: skip
GIVEN: dict[Condition, str] = {
    screw_angle: "tangent",
    **dict.fromkeys((square_place, square_relative_place), "cosine"),
    **dict.fromkeys((square_fixed, square_body, square_relative, square_relative_2), "cosinedot"),
    **dict.fromkeys((squaredot_fixed, squaredot_body, squaredot_relative, squaredot_relative_2), "cosineddot"),
    **dict.fromkeys((turn_fixed, turn_body, turn_relative), "turn"),
    **dict.fromkeys((turndot_fixed, turndot_body, turndot_relative, turndot_relative_2), "turndot"),
    **dict.fromkeys((slide_place, slide_relative_place, screw_place, screw_relative_place), "shift"),
    **dict.fromkeys((slide_fixed, slide_body, slide_relative, screw_fixed, screw_body, screw_relative), "shiftdot"),
    **dict.fromkeys((slidedot_fixed, slidedot_body, slidedot_relative), "shiftddot"),
    **dict.fromkeys((screwdot_fixed, screwdot_body, screwdot_relative), "shiftddot"),
}
"""What each condition returns."""


def _joint(short: str, kind: str, *conditions: Sequence[Condition]) -> Source:
    """The numbered equations of a joint: its conditions in order."""
    source = Source(short, f"The {kind} joint, as KJ treats the hinge", LETTERS, r"\{0\}")
    for number, condition in enumerate((c for group in conditions for c in group), 1):
        name = f"{short.replace('-', '_')}_{number}"
        text = FunctionType(condition.__code__, globals(), name)
        text.__doc__, text.__annotations__ = condition.__doc__, condition.__annotations__
        given = GIVEN[condition]
        needs = [angle_has_a_tangent] if condition is screw_angle else []
        source.equation(f"{short}({number})", gives=given, is_zero=given != "tangent", needs=needs)(text)
    return source


UNIVERSAL = _joint("KJ-U", "universal", SQUARE)
PRISMATIC = _joint("KJ-P", "prismatic", TURN, SLIDE)
CYLINDRICAL = _joint("KJ-C", "cylindrical", TURN, SLIDE)
PLANAR = _joint("KJ-L", "planar", TURN, SLIDE)
SCREW_JOINT = _joint("KJ-S", "screw", TURN, SLIDE, SCREW)
JOINTS = (UNIVERSAL, PRISMATIC, CYLINDRICAL, PLANAR, SCREW_JOINT)
