"""The page of F3: the same two bodies with 3-D vectors, from the givens to F3(26).

Equations: F3(1)-(26).
"""

from __future__ import annotations

from cardan.textbook import f3
from cardan.textbook.pages.sheet import Sheet
from cardan.textbook.pages.two_bodies import agreement, problem


def text(sheet: Sheet) -> None:
    """Write the page."""
    sheet.title = "The same two bodies, with 3-D vectors"
    sheet.introduction = [
        "Two bodies at rest are joined by a hinge through the point P. A force through C1 and a couple act on the "
        "first. What are the acceleration of C1 and its angular acceleration?",
        "The problem of F6 takes 26 equations when forces, couples, accelerations and angular accelerations are kept "
        "apart. All of them hold at every position of the sliders.",
    ]
    two = problem(sheet)
    answer = agreement(sheet, two)
    m1, m2, I1, I2, s, f, tau = two.m1, two.m2, two.I1, two.I2, two.s, two.f, two.tau
    r1, r2, a1, w1dot = -two.C1, -two.C2, answer[:3], answer[3:]
    sheet.draw("dot", "one", two.C1.T, label="C₁")
    sheet.draw("dot", "two", two.C2.T, label="C₂")
    sheet.draw("dot", "axis", 0 * two.C1.T, label="P")
    alpha = f3.F3_18(m2, I2, r1, r2, s, a1, w1dot)
    w2dot, a2 = f3.F3_16(w1dot, s, alpha), f3.F3_17(a1, r1, r2, w1dot, s, alpha)

    sheet.heading("Given")
    sheet.given(
        "Each body has a mass and an inertia about its centre of mass. Both vectors end at P.",
        ("I_1", "inertia of B1 about C1", "kg m^2", I1),
        ("I_2", "inertia of B2 about C2", "kg m^2", I2),
        ("r_1", "from C1 to P", "m", r1),
        ("r_2", "from C2 to P", "m", r2),
    )
    sheet.given(
        "The hinge has a direction. The load acts on B1, through C1.",
        ("s", "direction of the hinge", "1", s),
        ("f", "force", "N", f),
        (r"\tau", "couple", "N m", tau),
    )
    sheet.heading("Newton and Euler, for each body")
    f1 = sheet.step("The net force on B1 accelerates its centre.", f3.F3_1, m1, a1)
    tau1 = sheet.step("Its net couple turns it.", f3.F3_2, I1, w1dot)
    f2 = sheet.step("The same for B2.", f3.F3_3, m2, a2)
    tau2 = sheet.step("There are no velocity terms, since the bodies are at rest.", f3.F3_4, I2, w2dot)
    sheet.heading("From one point to another")
    Pa1 = sheet.step("The acceleration of B1's point at P.", f3.F3_5, a1, r1, w1dot)
    sheet.step("The acceleration of B2's point at P.", f3.F3_6, a2, r2, w2dot)
    Pw1dot = sheet.step("An angular acceleration is the same at every point.", f3.F3_7, w1dot)
    sheet.step("So for B2.", f3.F3_8, w2dot)
    sheet.step("A force is the same at every point.", f3.F3_9, f2)
    Ptau2 = sheet.step("A couple is not: it gains the moment of the force.", f3.F3_10, tau2, r2, f2)
    sheet.step("All external force acts on B1; the sum of both net forces is that force.", f3.F3_11, f1, f2)
    sheet.step("The same for the couple, about C1.", f3.F3_12, tau1, tau2, r1, r2, f2)
    sheet.heading("The hinge")
    sheet.step("At P both bodies accelerate alike.", f3.F3_13, Pa1)
    sheet.step("They may turn relative to one another about the hinge.", f3.F3_14, Pw1dot, s, alpha)
    sheet.step("The hinge transmits no couple about its direction.", f3.F3_15, s, Ptau2)
    sheet.heading("The motion of B2 from that of B1")
    sheet.step("From (8), (14) and (7).", f3.F3_16, w1dot, s, alpha)
    sheet.step("From (6), (13), (5) and (16).", f3.F3_17, a1, r1, r2, w1dot, s, alpha)
    sheet.step(
        "Put both into (15) and solve for the acceleration of the hinge.", f3.F3_18, m2, I2, r1, r2, s, a1, w1dot
    )
    sheet.heading("The matrices J and K")
    J = sheet.step(
        "The denominator is $s^T J s$ with the inertia of B2 about P. It is positive definite, so (18) never divides "
        "by zero.",
        f3.F3_19,
        m2,
        I2,
        r2,
    )
    sheet.step("The same acceleration with J.", f3.F3_20, m2, r1, r2, s, J, a1, w1dot)
    sheet.step(
        "The force, with the hinge eliminated: the force that was given.", f3.F3_21, m1, m2, r1, r2, s, J, a1, w1dot
    )
    K = f3.F3_23(m2, r1, r2, J)
    sheet.step("The couple, with a second matrix K.", f3.F3_22, m2, I1, I2, r1, r2, s, K, a1, w1dot, alpha)
    sheet.step("This is K.", f3.F3_23, m2, r1, r2, J)
    sheet.step("With it the acceleration of the hinge has the form of F6(6).", f3.F3_24, m2, r2, s, J, K, a1, w1dot)
    sheet.step("The couple, with the hinge eliminated.", f3.F3_25, m2, I1, I2, r1, r2, s, J, K, a1, w1dot)
    sheet.heading("The answer")
    blocks = sheet.step(
        "Force and couple are a 6x6 matrix times the accelerations. A and D are symmetric, and B is the transpose of "
        "C: it is the matrix of F6(7), referred to C1.",
        f3.F3_26_blocks,
        m1,
        m2,
        I1,
        I2,
        r1,
        r2,
        s,
        J,
        K,
    )
    sheet.step("Its inverse gives the accelerations of B1.", f3.F3_26, *blocks, f, tau)
