"""The page of F6: two bodies and a hinge with 6-D vectors, from the givens to F6(7).

Equations: F6(1)-(7).
"""

from __future__ import annotations

from cardan.textbook.f6 import F6_1, F6_2, F6_3, F6_4, F6_5, F6_6, F6_7, articulated_inertia
from cardan.textbook.pages.sheet import Sheet
from cardan.textbook.pages.two_bodies import agreement, problem


def text(sheet: Sheet) -> None:
    """Write the page."""
    sheet.title = "Two bodies and a hinge, with 6-D vectors"
    sheet.introduction = [
        "Two bodies at rest are joined by a hinge. A force acts on the first. What is its acceleration?",
        "Move the sliders: every number below is computed again, and so is the answer of the 3-D derivation and of "
        "Cardan's general engine.",
    ]
    two = problem(sheet)
    agreement(sheet, two)
    sheet.draw("dot", "axis", 0 * two.C1.T, label="O")
    (I1, I2), s, f = two.inertias, two.axis, two.force
    a1 = F6_7(I1, I2, s, f)
    alpha = F6_6(I2, s, a1)
    a2, fJ = F6_3(a1, s, alpha), F6_5(I2, a1, s, alpha)

    sheet.heading("Given")
    sheet.given(
        "The inertias of the bodies are 6x6 matrices about O, a point of the hinge. The first three rows and columns "
        "are angular.",
        ("I_1", "inertia of B1", "kg m^2, kg m, kg", I1),
        ("I_2", "inertia of B2", "kg m^2, kg m, kg", I2),
    )
    sheet.given(
        "The axis of the hinge and the force on B1 are 6-D vectors: direction and moment of the line, couple about O "
        "and force.",
        ("s", "axis of the hinge", "1, m", s),
        ("f", "force on B1", "N m, N", f),
    )
    sheet.heading("Four statements")
    sheet.step("B1 feels the force and the hinge. Its net force accelerates it.", F6_1, I1, a1)
    sheet.step("B2 feels only the hinge.", F6_2, I2, a2)
    sheet.step("The hinge lets B2 accelerate about its axis relative to B1.", F6_3, a1, s, alpha)
    sheet.step("The force of the hinge does no work along that motion.", F6_4, s, fJ)
    sheet.heading("Eliminate the hinge")
    sheet.step("Put the motion into the equation of B2.", F6_5, I2, a1, s, alpha)
    sheet.step(
        "Multiply by $s^T$: the left side vanishes, and the acceleration of the hinge is known.", F6_6, I2, s, a1
    )
    sheet.heading("The answer")
    sheet.step(
        "Now the force is a matrix times $a_1$: the articulated inertia of B1, symmetric and positive definite. Its "
        "last term is all that the hinge changes; without it the bodies would be welded.",
        articulated_inertia,
        I1,
        I2,
        s,
    )
    sheet.step("It has an inverse, and this is the acceleration of B1.", F6_7, I1, I2, s, f)
