"""Write the pages of the joints that are treated as KJ treats the hinge: `python docs/make_joints.py`.

The formulas are printed by the equations themselves; the words between them are here.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from cardan.textbook import kj_joints
from cardan.textbook.equation import Equation, Source

PAGES = Path(__file__).resolve().parent / "sources"


class Page(NamedTuple):
    """What is said of a joint: its equations, its type in Cardan, what it is, and which directions it holds."""

    source: Source
    name: str
    type: str
    about: str
    aligned: str
    turns: tuple[int, ...]
    slides: tuple[int, ...]


JOINTS = (
    Page(
        kj_joints.UNIVERSAL, "universal", "cd.Universal()",
        "A cross connects two bodies: its first axis is $e$ in $B_1$, its second axis is $k$ in $B_2$, and they are "
        "perpendicular. Two angles are free. The two points of the joint coincide, so the translational equations are "
        "KJ(1)-(4). One more equation keeps $e$ perpendicular to $k$.",
        "", (), (),
    ),
    Page(
        kj_joints.PRISMATIC, "prismatic", "cd.Prismatic()",
        "A slider moves along $h$, fixed in $B_1$, and does not turn. One translation is free. Five equations: no turn "
        "about $f$, $g$, $h$, and no slide along $f$, $g$.",
        "$e$ and $k$ are $f_{B_1}$ and $g_{B_2}$, $g_{B_1}$ and $h_{B_2}$, $h_{B_1}$ and $f_{B_2}$.", (0, 1, 2), (0, 1),
    ),
    Page(
        kj_joints.CYLINDRICAL, "cylindrical", "cd.Cylindrical()",
        "A sleeve turns about $h$ and slides along it. Two freedoms. Four equations: no turn about $f$, $g$, and no "
        "slide along $f$, $g$. Without the slide it would be KJ's hinge.",
        "$e$ is $f_{B_1}$ and $g_{B_1}$, and $k$ is $h_{B_2}$.", (0, 1), (0, 1),
    ),
    Page(
        kj_joints.PLANAR, "planar", "cd.Planar()",
        "A plate slides on a plane with the normal $h$, fixed in $B_1$, and turns about the normal. Three freedoms. "
        "Three equations: no turn about $f$, $g$, and no slide along $h$.",
        "$e$ is $f_{B_1}$ and $g_{B_1}$, and $k$ is $h_{B_2}$.", (0, 1), (2,),
    ),
    Page(
        kj_joints.SCREW_JOINT, "screw", "cd.Screw(pitch=0.1)",
        "A nut turns about $h$ and advances by the pitch $p$ for every radian. One freedom. Five equations: no turn "
        "about $f$, $g$, no slide along $f$, $g$, and an advance along $h$ that follows the turn.",
        "$e$ is $f_{B_1}$ and $g_{B_1}$, and $k$ is $h_{B_2}$.", (0, 1), (0, 1),
    ),
)  # fmt: skip

WAYS = {
    "fixed": "With fixed-frame components of angular velocity",
    "body": "With body-frame components of angular velocity",
    "relative": "In relative coordinates",
}
TITLES = {"turn": "No turn", "slide": "No slide", "square": "The axes of the cross", "screw": "Advance with turn"}
WORDS = {
    "turn": "KJ(5),(6) hold on rates only, and leave the alignment to the initial conditions. At position level the "
    "axes are aligned when directions of the two bodies are perpendicular: {aligned}",
    "turn fixed": "Nothing turns about $e = {turns}$. $e$ moves with $B_1$, so differentiation adds a term with its "
    "rate, as from KJ(5) to KJ(7):",
    "turn body": "The rates are in the axes of the bodies, and $[R_{{B_1}}][R_{{B_2}}]^T$ brings those of $B_2$ into "
    "$B_1$, as in KJ(9):",
    "turn relative": "The relative angular velocity is itself the rate, as in KJ(11)-(16). The last equation has the "
    "direction $e = {turns_2}$ fixed in $B_2$ and components in $B_2$:",
    "slide": "$s_2$ leads from the joint's point on $B_1$ to that on $B_2$: "
    "$\\{{s_2\\}} = \\{{p_{{G_2}}\\}} - \\{{p_{{G_1}}\\}} - [R_{{B_1}}]^T \\{{q'_2\\}} - [R_{{B_2}}]^T \\{{r'_2\\}}$, "
    "the left side of KJ(1). It has no component along $e = {slides}$:",
    "slide fixed": "$[\\dot R_{{B_1}}] = [R_{{B_1}}][\\tilde\\omega_{{B_1}}]^T$, and the rate of $s_2$ is that of "
    "KJ(1). Together, $q_2 + s_2$ is the arm from $G_1$. The second derivative has Coriolis and centripetal "
    "terms of $s_2$:",
    "slide body": "With $\\{{s'_2\\}} = [R_{{B_1}}]\\{{s_2\\}}$ and its rate $\\{{\\dot s'_2\\}}$ in the axes of "
    "$B_1$:",
    "slide relative": "$s'_2$ is a coordinate, and the equations are components of KJ(4):",
    "square": "The cosine of the angle between the two axes vanishes:",
    "square fixed": "$\\{{e_{{B_1}}\\}} = [R_{{B_1}}]^T\\{{e'_{{B_1}}\\}}$ moves with $\\omega_{{B_1}}$, "
    "$\\{{k_{{B_2}}\\}} = [R_{{B_2}}]^T\\{{k'_{{B_2}}\\}}$ with $\\omega_{{B_2}}$. The rate is the component of the "
    "relative angular velocity along the normal of the cross:",
    "square body": "The rate of $[R_{{B_1}}][R_{{B_2}}]^T$ is the bracket of KJ(9):",
    "square relative": "With components in $B_1$, and after them with components in $B_2$:",
    "screw": "The angle $\\theta$ from $f_{{B_1}}$ to $f_{{B_2}}$ about $h$, whole turns counted, and the advance:",
    "screw fixed": "Where the axes are aligned the rate of $\\theta$ is the component along $h$ of the relative "
    "angular velocity. So these are the equations of a slide along $h$, less the pitch times those of a turn about "
    "$h$:",
    "screw body": "The same, with the rates in the axes of the bodies:",
    "screw relative": "The coefficients are constant:",
}
CHECK = """
## Numerical check

The rows of the engine are the same equations in the joint's axes. Accelerations that obey them, `J udot = gamma`, make
the equations of this page vanish.

```python
import numpy as np
import cardan as cd

m = cd.Mechanism("pair")
m.body("B1", mass=1.0, com=(0.1, 0.2, 0.0), inertia=(1.0, 1.2, 1.4))
m.body("B2", mass=2.0, com=(0.0, 0.1, 0.3), inertia=(1.0, 1.1, 1.3))
m.joint("free", cd.Free(), m.ground, "B1")
m.joint("joint", {type}, "B1", "B2", at=(0.5, 0.1, 0.0), child_at=(-0.3, 0.0, 0.2))
model = m.build()
eq = cd.equations(model, formulation="absolute")
state = model.random_state(np.random.default_rng(1))
q, u = (np.array(x).ravel() for x in eq.graph("project")(*cd.equations(model).graph("lift")(*state)))
system = eq.graph("system")(q, u, np.zeros(model.nv), np.zeros((2, 6)), 0.0)
J, gamma = np.array(system[2]), np.array(system[3]).ravel()
udot = np.linalg.lstsq(J, gamma)[0]

T = cd.textbook
R_B1, R_B2 = T.rotation_of_quaternion(q[3:7]).T, T.rotation_of_quaternion(q[10:14]).T
(w1, v1, w2, v2), (wdot1, a1, wdot2, a2) = u.reshape(4, 3), udot.reshape(4, 3)
{check}
```
"""
SQUARE_CHECK = """e, k = R_B1.T @ [1, 0, 0], R_B2.T @ [0, 1, 0]
assert abs(T.KJ_U_2(e, k, w1, w2)) < 1e-12
assert abs(T.KJ_U_3(e, k, w1, wdot1, w2, wdot2)) < 1e-12"""
SLIDE_CHECK = """q2, r2 = R_B1.T @ [0.4, -0.1, 0.0], R_B2.T @ [0.3, 0.1, 0.1]
q2dot, r2dot = np.cross(w1, q2), np.cross(w2, r2)
s2, s2dot = q[7:10] - q[:3] - q2 - r2, v2 - v1 - q2dot - r2dot
directions = np.eye(3)
turns, slides = directions[[{turns}]], directions[[{slides}]]
moving = q2, q2dot, s2, s2dot, w1, wdot1, r2, r2dot, w2, wdot2
assert np.allclose(T.{prefix}_3(turns, R_B1, w1, wdot1, w2, wdot2), 0, atol=1e-12)
assert np.allclose(T.{prefix}_12(slides, R_B1, a1, a2, *moving), 0, atol=1e-12)"""
SCREW_CHECK = """
assert abs(T.KJ_S_21(directions[2], R_B1, a1, a2, *moving, 0.1)) < 1e-12"""


def page(joint: Page) -> str:
    """The page of a joint."""
    short, prefix = joint.source.short, joint.source.short.replace("-", "_")
    words = {
        "aligned": joint.aligned,
        "turns": _letters(joint.turns, "B_1"),
        "turns_2": _letters(joint.turns, "B_2"),
        "slides": _letters(joint.slides, "B_1"),
    }
    lines = [
        f"# {short}: the {joint.name} joint", "",
        f"{joint.about} The notation is that of [KJ](kj.md); each equation is a function, `cd.textbook.{prefix}_1` is "
        f"{short}(1). Code: [textbook/kj_joints.py](../../src/cardan/textbook/kj_joints.py), tests: "
        "[tests/identity/test_textbook_kj.py](../../tests/identity/test_textbook_kj.py).",
    ]  # fmt: skip
    group = way = ""
    for equation in joint.source.equations.values():
        condition = next(c for c in kj_joints.GIVEN if c.__code__ is equation.text.__code__)
        part, _, rest = condition.__name__.replace("dot", "").partition("_")
        if part == "square" and joint.turns:
            part = "turn"
        new_way = next((w for w in WAYS if rest.startswith(w)), "")
        if part != group:
            lines += ["", f"## {TITLES[part]}", "", WORDS[part].format(**words)]
            group, way = part, ""
        elif new_way != way:
            lines += ["", f"{WAYS[new_way]}. {WORDS[f'{part} {new_way}'].format(**words)}"]
            way = new_way
        lines += ["", _formula(equation)]
    check = SLIDE_CHECK if joint.turns else SQUARE_CHECK
    numbers = {"turns": _numbers(joint.turns), "slides": _numbers(joint.slides), "prefix": prefix}
    check = check.format(**numbers) + (SCREW_CHECK if joint.name == "screw" else "")
    return "\n".join(lines) + "\n" + CHECK.format(type=joint.type, check=check)


def _letters(directions: tuple[int, ...], body: str) -> str:
    return ", ".join(f"{'fgh'[i]}_{{{body}}}" for i in directions)


def _numbers(directions: tuple[int, ...]) -> str:
    return ", ".join(map(str, directions))


def _formula(equation: Equation) -> str:
    return f"$${equation.latex()} \\qquad \\text{{{equation.number}}}$$"


if __name__ == "__main__":
    for joint in JOINTS:
        (PAGES / f"kj_{joint.name}.md").write_text(page(joint))
