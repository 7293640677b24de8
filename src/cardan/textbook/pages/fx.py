"""The page of FX: nine identities of 6-D vectors on a free body, a body on a universal joint, and a small tree.

Equations: FX(A1)-(A4), FX(B1)-(B4), FX(C1).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

from cardan.algebra.rotation import cross
from cardan.algebra.spatial import crm, inertia_about_origin, rigid_inertia, shifted
from cardan.model.builder import Mechanism
from cardan.model.joint import Free, Revolute, Universal
from cardan.model.model import Model
from cardan.textbook import fx
from cardan.textbook.pages.engine import engine
from cardan.textbook.pages.geometry import box_corners, box_inertia, rotation, six
from cardan.textbook.pages.sheet import Sheet

Symbol = Any  # casadi.SX
INERTIA = ((0.3, 0.02, 0.01), (0.02, 0.4, 0.03), (0.01, 0.03, 0.5))


@dataclass(frozen=True)
class Body:
    """Mass, size (3,) of a box, centre of mass `c` (3,) and inertia `I_C` (3, 3) about it, in axes at O."""

    m: Symbol
    size: Symbol
    c: Symbol
    I_C: Symbol

    @property
    def inertia(self) -> Symbol:
        """The 6x6 inertia about O."""
        return rigid_inertia(self.m, self.m * self.c, inertia_about_origin(self.m, self.c, self.I_C))

    def turned(self, R: Symbol) -> Body:
        """The body turned about O."""
        return Body(self.m, self.size, R @ self.c, R @ self.I_C @ R.T)

    def parameters(self, name: str) -> dict[str, Symbol]:
        """Its numbers as the engine's model has them."""
        return {f"{name}.mass": self.m, f"{name}.com": self.c, f"{name}.inertia": six(self.I_C)}


@cache
def one_body_model(joint: type[Free] | type[Universal]) -> Model:
    """The engine's model of the body on a joint at O, its numbers free, without gravity."""
    m = Mechanism("one body", gravity=(0, 0, 0))
    m.body("body", mass=1.0, com=(0.3, 0.2, 0.1), inertia=INERTIA)
    m.joint("joint", joint(), m.ground, "body")
    return m.build().free("body.mass", "body.com", "body.inertia")


@cache
def tree_model() -> Model:
    """The engine's model of the tree: link 1 turns about z at O; links 2 and 3 about y at its end."""
    m = Mechanism("tree", gravity=(0, 0, 0))
    for k in (1, 2, 3):
        m.body(f"link{k}", mass=1.0, com=(0.3, 0.2, 0.1), inertia=INERTIA)
    m.joint("one", Revolute(axis=(0, 0, 1)), m.ground, "link1")
    m.joint("two", Revolute(axis=(0, 1, 0)), "link1", "link2", at=(0.4, 0.1, 0.2))
    m.joint("three", Revolute(axis=(0, 1, 0)), "link1", "link3", at=(0.4, 0.1, 0.2))
    free = [f"link{k}.{field}" for k in (1, 2, 3) for field in ("mass", "com", "inertia")]
    return m.build().free(*free, "two.at", "three.at")


def text(sheet: Sheet) -> None:
    """Write the page."""
    import casadi as ca

    sheet.title = "Nine identities of 6-D vectors"
    sheet.introduction = [
        "Part A is about a free body, part B about the same body on a universal joint at O, part C about a tree of "
        "three such bodies. Angular parts come first.",
        "Each answer is compared with another way to the same number, and with Cardan's engine.",
    ]
    sheet.reach, sheet.centre = 0.95, (0.1, 0.0, 0.0)
    sheet.group = "Body"
    m = sheet.slider("m", "m", "mass", "kg", 0.5, 10, 2.0, 0.1)
    length = sheet.slider("l", "l", "length", "m", 0.3, 0.9, 0.62, 0.01)
    cx = sheet.slider("cx", "c_x", "centre of mass from O", "m", 0.1, 0.6, 0.35, 0.01)
    cy = sheet.slider("cy", "c_y", "centre of mass from O", "m", -0.4, 0.4, 0.15, 0.01)
    sheet.group = "A: velocity of the free body"
    w = ca.vertcat(
        *(
            sheet.slider(f"w{x}", rf"\omega_{x}", "turning", "rad/s", -4, 4, w0, 0.1)
            for x, w0 in zip("xyz", (1.0, -0.5, 2.0), strict=True)
        )
    )
    v_O = ca.vertcat(
        sheet.slider("vx", "v_x", "its point at O", "m/s", -2, 2, 0.5, 0.1),
        sheet.slider("vy", "v_y", "its point at O", "m/s", -2, 2, -0.8, 0.1),
        0,
    )
    sheet.group = "B, C: angles of the joints"
    q = [sheet.slider(f"q{k}", f"q_{k}", "angle", "°", -120, 120, q0, 1) for k, q0 in ((1, 30), (2, -40), (3, 50))]
    sheet.group = "B, C: their rates"
    qd = [
        sheet.slider(f"qd{k}", rf"\dot q_{k}", "rate", "rad/s", -4, 4, v0, 0.1)
        for k, v0 in ((1, 1.5), (2, -2.0), (3, 1.0))
    ]
    sheet.group = "Load, at C"
    load = ca.vertcat(
        0,
        sheet.slider("fy", "f_y", "force", "N", -20, 20, 6, 0.5),
        sheet.slider("fz", "f_z", "force", "N", -20, 20, -10, 0.5),
    )

    size = ca.vertcat(length, 0.25, 0.15)
    body = Body(m, size, ca.vertcat(cx, cy, 0), box_inertia(m, size))
    _free_body(sheet, body, w, v_O, load)
    _constrained_body(sheet, body, q[:2], qd[:2], load)
    _tree(sheet, body, q, qd)


def _free_body(sheet: Sheet, body: Body, w: Symbol, v_O: Symbol, load: Symbol) -> None:
    """A1 to A4."""
    import casadi as ca

    m, c, I_C, I = body.m, body.c, body.I_C, body.inertia
    v, model, numbers = ca.vertcat(w, v_O), one_body_model(Free), body.parameters("body")
    place = ca.DM([-0.9, 0.1, 0.1])
    sheet.draw("box", "one", box_corners(c + place, ca.SX.eye(3), body.size), label="A, B")
    sheet.draw("dot", "axis", place.T, label="O")
    sheet.draw("dot", "one", (c + place).T, label="C")
    sheet.draw("line", "faint", ca.horzcat(place, c + place).T)
    sheet.heading("A1: momentum about any point")
    sheet.given(
        "The body has this inertia about O, and moves with this velocity.",
        ("I", "inertia about O", "kg m^2, kg m, kg", I),
        ("v", "velocity", "rad/s, m/s", v),
    )
    h_O, h = sheet.step(
        "Linear momentum is that of the centre of mass. About O its moment is added.", fx.FX_A1, m, c, I_C, w, v_O
    )
    sheet.draw("arrow", "velocity", (c + place).T, (h / m).T, label="v")
    at_rest = ca.vertcat(0, 0, 0, 1, 0, 0, 0)
    sheet.compare(
        "A1",
        "A1, momentum about O",
        "kg m^2/s, kg m/s",
        {
            "FX(A1), 3-D vectors": ca.vertcat(h_O, h),
            "$I v$, 6-D vectors": I @ v,
            "engine": engine(model, "momentum", "spatial", numbers, q=at_rest, v=v)["h"],
        },
    )
    sheet.heading("A2: the inverse in other coordinates")
    at_C = rigid_inertia(m, ca.SX.zeros(3), I_C)
    by_transform = sheet.step(
        "An inverse inertia takes forces to motions and is transformed like that; here from C, where it is block "
        "diagonal, to O.",
        fx.FX_A2,
        shifted(-c),
        at_C,
    )
    inverse = engine(model, "inverse_mass_matrix", "spatial", numbers, q=at_rest)["Minv"]
    sheet.compare(
        "A2",
        "A2, inverse inertia about O; its first row",
        "",
        {"FX(A2)": by_transform, "closed form": fx.inverse_inertia(m, c, I_C), "engine": inverse},
        show=lambda matrix: matrix[0, :],
    )
    sheet.heading("A3: a force between two bodies")
    other = body.turned(rotation(ca.DM([0, 0, 1]), ca.pi)).inertia
    sum_of_inverses = sheet.step(
        "A second body lies opposite of O. For a force between the two their inverses add.", fx.FX_A3, I, other
    )
    product = fx.relative_inertia(I, other) @ sum_of_inverses
    sheet.compare(
        "A3",
        "A3, relative inertia times its inverse; the diagonal",
        "",
        {"harmonic sum": product, "one": ca.SX.eye(6)},
        show=ca.diag,
    )
    sheet.heading("A4: Newton's and Euler's laws in one equation")
    force = ca.vertcat(cross(c, load), load)
    a = engine(model, "forward_dynamics_loaded", "spatial", numbers, q=at_rest, v=v, wrenches=force.T)["a"]
    wdot = a[:3]
    a_C = a[3:] + cross(w, v_O) + cross(wdot, c) + cross(w, cross(w, c))
    sheet.given(
        "Under the load the engine finds these accelerations.",
        (r"\dot\omega", "angular acceleration", "rad/s^2", wdot),
        (r"\ddot c", "acceleration of C", "m/s^2", a_C),
    )
    balance = sheet.step("Put into the laws about C they give the load back.", fx.FX_A4, m, I_C, w, wdot, a_C)
    sheet.compare(
        "A4",
        "A4, couple about C and force",
        "N m, N",
        {"FX(A4), of the engine's acceleration": balance, "the load": ca.vertcat(0, 0, 0, load)},
    )


def _constrained_body(sheet: Sheet, body: Body, q: list[Symbol], qd: list[Symbol], load: Symbol) -> None:
    """B1 to B4."""
    import casadi as ca

    numbers, model = body.parameters("body"), one_body_model(Universal)
    first = rotation(ca.DM([1, 0, 0]), q[0])
    R = first @ rotation(ca.DM([0, 1, 0]), q[1])
    turned, none = body.turned(R), ca.SX.zeros(3)
    I, alpha = turned.inertia, ca.vertcat(*qd)
    s1, s2 = ca.vertcat(1, 0, 0, none), ca.vertcat(first @ ca.DM([0, 1, 0]), none)
    S = ca.horzcat(s1, s2)
    v, Sdot_alpha = S @ alpha, crm(s1 * qd[0]) @ s2 * qd[1]
    f = ca.vertcat(cross(turned.c, load), load)
    sheet.heading("B1: a body that may only move along S")
    sheet.given(
        "Now a universal joint holds the body at O: the first axis is x, the second turns with the first angle.",
        ("S", "motions that the joint allows", "", S),
        ("v", "velocity", "rad/s, m/s", v),
        (r"\dot S \alpha", "its rate, at constant rates", "rad/s^2", Sdot_alpha),
        ("f", "load about O", "N m, N", f),
    )
    Phi, b = sheet.step(
        "The constraint forces do no work along S: multiply the equation of motion by $S^T$.",
        fx.FX_B1,
        I,
        S,
        Sdot_alpha,
        v,
    )
    inside = ca.vertcat(R.T @ f[:3], R.T @ f[3:]).T
    state = {"q": ca.vertcat(*q), "v": alpha}

    def by_engine(formulation: str) -> Symbol:
        qdd = engine(model, "forward_dynamics_loaded", formulation, numbers, wrenches=inside, **state)["a"]
        return S @ qdd + Sdot_alpha

    sheet.compare(
        "B1",
        "B1, acceleration of the body",
        "rad/s^2, m/s^2",
        {
            "FX(B1), $\\Phi f + b$": Phi @ f + b,
            "engine, `spatial`": by_engine("spatial"),
            "engine, `absolute`": by_engine("absolute"),
        },
    )
    sheet.heading("B2: when velocity terms vanish")
    T = ca.SX(ca.DM.eye(6)[:, 1:])
    sheet.step(
        "On the first axis alone S and the constraint's directions T are fixed in the body: $v \\times v = 0$, and "
        "no term in the velocity is left.",
        fx.FX_B2,
        s1,
        T,
        qd[0],
        qd[1],
    )
    sheet.heading("B3, B4: the same in joint space")
    H, C = sheet.step(
        "Call the accelerations along S $\\ddot q$ and the force along it $\\tau$: then $\\tau = H \\ddot q + C$.",
        fx.FX_B3,
        I,
        S,
        Sdot_alpha,
        v,
    )
    M = engine(model, "mass_matrix", "spatial", numbers, q=state["q"])["M"]
    bias = engine(model, "bias_force", "spatial", numbers, **state)["tau"]
    sheet.compare(
        "B3",
        "B3, entries of H, then C",
        "kg m^2, N m",
        {"FX(B3)": ca.vertcat(H[0, 0], H[0, 1], H[1, 1], C), "engine": ca.vertcat(M[0, 0], M[0, 1], M[1, 1], bias)},
    )
    energy = sheet.step("Kinetic energy needs only H and the rates.", fx.FX_B4, H, alpha)
    sheet.compare(
        "B4",
        "B4, kinetic energy",
        "J",
        {
            "FX(B4)": energy,
            "$\\tfrac12 v^T I v$": fx.body_kinetic_energy(I, v),
            "engine": engine(model, "kinetic_energy", "spatial", numbers, **state)["T"],
        },
    )


def _tree(sheet: Sheet, body: Body, q: list[Symbol], qd: list[Symbol]) -> None:
    """C1."""
    import casadi as ca

    length, z, y = body.size[0], ca.DM([0, 0, 1]), ca.DM([0, 1, 0])
    link = Body(body.m, body.size, ca.vertcat(length / 2, 0, 0), body.I_C)
    R1 = rotation(z, q[0])
    end = R1 @ ca.vertcat(length, 0, 0)
    turns = [R1, R1 @ rotation(y, q[1]), R1 @ rotation(y, q[2])]
    starts = [ca.SX.zeros(3), end, end]
    place = ca.DM([0.15, 0.2, -0.15])
    axes = [ca.vertcat(z, ca.SX.zeros(3)), *[ca.vertcat(R1 @ y, cross(end, R1 @ y))] * 2]
    placed = [link.turned(R) for R in turns]
    placed = [Body(b.m, b.size, b.c + start, b.I_C) for b, start in zip(placed, starts, strict=True)]
    for k, (b, R, start) in enumerate(zip(placed, turns, starts, strict=True)):
        thin = ca.vertcat(b.size[0], 0.1, 0.1)
        sheet.draw("box", "two" if k else "axis", box_corners(b.c + place, R, thin), label=str(k + 1))
        sheet.draw("dot", "axis", (start + place).T, label="" if k else "tree")
    inertias = [b.inertia for b in placed]
    sheet.heading("C1: energy and momentum by recursion")
    none, still = ca.SX.zeros(6), ca.SX(0)
    v1, _, _ = fx.FX_C1(none, axes[0], qd[0], inertias[0], still, none)
    _, T2, h2 = sheet.step(
        "Velocities go outwards, sums come back. Link 2 has no children.",
        fx.FX_C1,
        v1,
        axes[1],
        qd[1],
        inertias[1],
        still,
        none,
        index="2",
    )
    _, T3, h3 = sheet.step(
        "Link 3 has none either.", fx.FX_C1, v1, axes[2], qd[2], inertias[2], still, none, again=True, index="3"
    )
    _, T1, h1 = sheet.step(
        "Link 1 carries both: its subtree is the whole tree.",
        fx.FX_C1,
        none,
        axes[0],
        qd[0],
        inertias[0],
        T2 + T3,
        h2 + h3,
        again=True,
        index="1",
    )
    model = tree_model()
    numbers = {"two.at": ca.vertcat(length, 0, 0), "three.at": ca.vertcat(length, 0, 0)}
    for k in (1, 2, 3):
        numbers |= link.parameters(f"link{k}")
    state = {"q": ca.vertcat(*q), "v": ca.vertcat(*qd)}
    subtrees = engine(model, "subtrees", "spatial", numbers, **state)
    sheet.compare(
        "C1 energy",
        "C1, kinetic energy of the subtrees of links 1, 2, 3",
        "J",
        {"FX(C1)": ca.vertcat(T1, T2, T3), "engine": subtrees["T"]},
    )
    sheet.compare(
        "C1 momentum",
        "C1, momentum of the whole tree",
        "kg m^2/s, kg m/s",
        {
            "FX(C1)": h1,
            "engine, recursion": subtrees["h"][0, :].T,
            "engine, `momentum`": engine(model, "momentum", "spatial", numbers, **state)["h"],
        },
    )
