"""The page of AT: a plate as three particles, floating, on a fixed axis, and in a chain of two.

Equations: AT(1)-(12).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

from cardan.algebra.plane import across, moment
from cardan.model.builder import Mechanism
from cardan.model.joint import Planar, Revolute
from cardan.model.model import Model
from cardan.textbook import at
from cardan.textbook.pages.engine import engine
from cardan.textbook.pages.geometry import six
from cardan.textbook.pages.sheet import Sheet

Symbol = Any  # casadi.SX
G = 9.81  # m/s^2
INERTIA = ((0.3, 0, 0), (0, 0.4, 0), (0, 0, 0.5))


@dataclass(frozen=True)
class Plate:
    """Mass, centre of mass `rG` (2,) and inertia `I0` about particle 1, in axes of the body; its particles."""

    m: Symbol
    rG: Symbol
    I0: Symbol
    masses: tuple[Symbol, Symbol, Symbol]
    places: tuple[Symbol, Symbol, Symbol]
    nu: Symbol
    lam: Symbol

    def parameters(self, name: str) -> dict[str, Symbol]:
        """Its numbers as the engine's model has them; of the inertia only that about the normal enters."""
        import casadi as ca

        own = self.I0 - self.m * ca.dot(self.rG, self.rG)
        return {
            f"{name}.mass": self.m,
            f"{name}.com": ca.vertcat(self.rG, 0),
            f"{name}.inertia": six(own * ca.SX.eye(3)),
        }


@dataclass(frozen=True)
class Placed:
    """A plate in the plane: vectors from particle 1 to the centre of mass and to particles 2, 3, and its turning."""

    plate: Plate
    rG: Symbol
    r21: Symbol
    r31: Symbol
    turning: Symbol

    def rate(self, r: Symbol) -> Symbol:
        """Velocity (2,) of a point of the body less that of particle 1."""
        return self.turning * across(r)


def placed(plate: Plate, angle: Symbol, turning: Symbol) -> Placed:
    """The plate at an angle."""
    import casadi as ca

    R = ca.vertcat(ca.horzcat(ca.cos(angle), -ca.sin(angle)), ca.horzcat(ca.sin(angle), ca.cos(angle)))
    return Placed(plate, R @ plate.rG, R @ plate.places[1], R @ plate.places[2], turning)


@cache
def planar_model(bodies: int, floats: bool) -> Model:
    """The engine's model: a floating body, or a chain of bodies on pins with gravity along -y; its numbers are free."""
    m = Mechanism("plates", gravity=(0, 0, 0) if floats else (0, -G, 0))
    for k in range(bodies):
        m.body(f"plate{k}", mass=1.0, com=(0.3, 0.2, 0), inertia=INERTIA)
        before = f"plate{k - 1}" if k else m.ground
        joint = Planar() if floats else Revolute(axis=(0, 0, 1))
        m.joint(f"pin{k}", joint, before, f"plate{k}", at=(0.5, 0, 0) if k else (0, 0, 0))
    free = [f"plate{k}.{field}" for k in range(bodies) for field in ("mass", "com", "inertia")]
    return m.build().free(*free, *(f"pin{k}.at" for k in range(1, bodies)))


def text(sheet: Sheet) -> None:
    """Write the page."""
    import casadi as ca

    sheet.title = "A planar body as three particles"
    sheet.introduction = [
        "A plate in a plane is replaced by three particles at fixed distances. Their equations have no angle: the "
        "unknowns are accelerations of points.",
        "Choose the body, where particle 3 is and how heavy. Particles 1 and 2 follow, and masses may come out "
        "negative (hollow circles): only their sums have a meaning.",
    ]
    sheet.flat, sheet.reach, sheet.centre = True, 0.85, (0.27, 0.02)
    sheet.group = "Body"
    m = sheet.slider("m", "m", "mass", "kg", 0.5, 5, 2.0, 0.1)
    gx = sheet.slider("gx", r"\bar x_G", "centre of mass", "m", -0.1, 0.6, 0.22, 0.01)
    gy = sheet.slider("gy", r"\bar y_G", "centre of mass", "m", 0.04, 0.4, 0.12, 0.01)
    k = sheet.slider("k", "k", "radius of gyration", "m", 0.05, 0.4, 0.2, 0.01)
    sheet.group = "Particle 3"
    d = sheet.slider("d", "d_{3,1}", "distance from 1", "m", 0.2, 0.8, 0.5, 0.01)
    m3 = sheet.slider("m3", "m_3", "its mass", "kg", -1, 3, 0.4, 0.02)
    sheet.group = "Motion"
    angle = sheet.slider("theta", r"\theta", "angle", "°", -180, 180, 25, 1)
    turning = sheet.slider("w", r"\omega", "turning", "rad/s", -5, 5, 1.5, 0.1)
    v1 = ca.vertcat(
        sheet.slider("vx", r"\dot x_1", "particle 1", "m/s", -2, 2, 0.6, 0.1),
        sheet.slider("vy", r"\dot y_1", "particle 1", "m/s", -2, 2, 0.3, 0.1),
    )
    sheet.group = "Load at G"
    R = ca.vertcat(
        sheet.slider("Rx", "R_x", "force", "N", -20, 20, 8, 0.5),
        sheet.slider("Ry", "R_y", "force", "N", -20, 20, 5, 0.5),
    )
    couple = sheet.slider("couple", "M", "couple", "N m", -3, 3, 0.5, 0.1)
    sheet.group = "Second body of the chain"
    angle2 = sheet.slider("theta2", r"\theta_2", "angle", "°", -180, 180, -110, 1)
    turning2 = sheet.slider("w2", r"\omega_2", "turning", "rad/s", -5, 5, -2.0, 0.1)

    rG, rbar3 = ca.vertcat(gx, gy), ca.vertcat(d, 0)
    I0 = m * (k**2 + ca.dot(rG, rG))
    sheet.rule(
        ca.fabs(I0 - m3 * d**2) > 0.01 * I0,
        "Here m₃ |r₃|² is within 1 % of I₀, and particle 2 would be at infinity: choose another mass or place of "
        "particle 3.",
    )
    plate = _particles(sheet, m, rG, I0, m3, rbar3)
    _floating(sheet, placed(plate, angle, turning), angle, v1, R, couple)
    _fixed_axis(sheet, placed(plate, angle, turning), angle)
    _chain(sheet, plate, [angle, angle2], [turning, turning2])


def _particles(sheet: Sheet, m: Symbol, rG: Symbol, I0: Symbol, m3: Symbol, rbar3: Symbol) -> Plate:
    """Section 2.1."""
    import casadi as ca

    sheet.heading("2.1 Equivalent particles")
    sheet.given(
        "Particle 1 is the origin of the body's axes, particle 3 lies on its x axis.",
        (r"\bar r_G", "centre of mass", "m", rG),
        ("I_0", "polar inertia about particle 1", "kg m^2", I0),
        (r"\bar r_3", "place of particle 3", "m", rbar3),
        ("m_3", "its mass", "kg", m3),
    )
    m2 = sheet.step("Particle 2 supplies what is left of first moment and inertia.", at.AT_m2, m, rG, I0, m3, rbar3)
    m1 = sheet.step("Particle 1 supplies what is left of the mass.", at.AT_m1, m, m2, m3)
    rbar2 = sheet.step("Where particle 2 is.", at.AT_r2, m, rG, m2, m3, rbar3)
    none = ca.SX.zeros(2)
    back = sheet.step(
        "Check: mass, first moment and inertia are those of the body.", at.AT_1, m1, m2, m3, none, rbar2, rbar3
    )
    sheet.compare(
        "particles",
        "Mass, first moment, inertia",
        "kg, kg m, kg m^2",
        {"the particles, AT(1)": ca.vertcat(*back), "the body": ca.vertcat(m, m * rG, I0)},
    )
    nu, lam = at.AT_invariants(rbar2, rbar3)
    return Plate(m, rG, I0, (m1, m2, m3), (none, rbar2, rbar3), nu, lam)


def _accelerations(found: Symbol, body: Placed) -> Symbol:
    """Accelerations (6,) of the particles from the engine's (x, y, angle)."""
    import casadi as ca

    return ca.vertcat(
        *(found[:2] + found[2] * across(r) - body.turning**2 * r for r in (0 * body.r21, body.r21, body.r31))
    )


def _floating(sheet: Sheet, body: Placed, angle: Symbol, v1: Symbol, R: Symbol, couple: Symbol) -> None:
    """Sections 2.2 and 2.3."""
    import casadi as ca

    plate, r21, r31 = body.plate, body.r21, body.r31
    (m1, m2, m3), nu, lam, r32 = plate.masses, plate.nu, plate.lam, body.r31 - body.r21
    v21, v31, v32 = body.rate(r21), body.rate(r31), body.rate(r32)
    G1 = moment(body.rG, R) + couple
    sheet.heading("2.2 A floating body: six equations")
    a = at.AT_unreduced(m1, m2, m3, r21, r31, r32, v21, v31, v32, R, G1)
    a1, a2, a3 = a[:2], a[2:4], a[4:]
    sheet.given(
        "The body has this position and motion; the load acts at G.",
        ("r_{2,1}", "from particle 1 to 2", "m", r21),
        ("r_{3,1}", "from particle 1 to 3", "m", r31),
        (r"\dot r_{3,1}", "its rate", "m/s", v31),
        ("R", "force", "N", R),
        ("G_1", "moment about particle 1", "N m", G1),
    )
    sheet.step("Internal forces cancel. What remains is linear momentum,", at.AT_2, m1, m2, m3, a1, a2, a3)
    sheet.step("angular momentum about particle 1,", at.AT_3, m2, m3, r21, r31, a2, a3)
    lengths = [ca.sqrt(ca.dot(r, r)) for r in (plate.places[1], plate.places[2], plate.places[2] - plate.places[1])]
    sheet.step("and three distances that stay as they are.", at.AT_4, r21, r31, r32, *lengths)
    sheet.step("Differentiated once,", at.AT_5, r21, r31, r32, v21, v31, v32)
    sheet.step("and twice. Accelerations along the lines are known.", at.AT_6, v21, v31, v32)
    sheet.step("Six equations for six accelerations.", at.AT_unreduced, m1, m2, m3, r21, r31, r32, v21, v31, v32, R, G1)
    sheet.heading("2.3 Particle 2 follows from 1 and 3: four equations")
    sheet.step("Particle 2 keeps its distances along the line from 1 to 3 and across it.", at.AT_lengths, r21, r31)
    sheet.step("Relative to the length of the line they are two numbers.", at.AT_invariants, r21, r31)
    sheet.step("Its position, with particle 1 at the origin,", at.AT_7, 0 * r31, r31, nu, lam)
    sheet.step("its velocity,", at.AT_8, v1, v31, nu, lam)
    sheet.step("and its acceleration have the same form: no velocity enters.", at.AT_9, a1, a3 - a1, nu, lam)
    sheet.step("Put into linear momentum,", at.AT_10, m1, m2, m3, nu, lam, a1, a3)
    sheet.step("into angular momentum,", at.AT_11, m2, m3, nu, lam, r21, r31, a1, a3)
    sheet.step("and one distance is left.", at.AT_12, v31)
    four = sheet.step("Four equations for four accelerations.", at.AT_reduced, m1, m2, m3, nu, lam, r31, v31, R, G1)
    b1, b3 = four[:2], four[2:]
    model = planar_model(1, True)
    inside = ca.vertcat(ca.cos(angle) * R[0] + ca.sin(angle) * R[1], ca.cos(angle) * R[1] - ca.sin(angle) * R[0])
    load = ca.vertcat(0, 0, couple + moment(plate.rG, inside), inside, 0).T
    state = {"q": ca.vertcat(0, 0, angle), "v": ca.vertcat(v1, body.turning), "wrenches": load}

    def by_engine(formulation: str) -> Symbol:
        found = engine(model, "forward_dynamics_loaded", formulation, plate.parameters("plate0"), **state)["a"]
        return _accelerations(found, body)

    sheet.compare(
        "floating",
        "Accelerations of particles 1, 2 and 3",
        "m/s^2",
        {
            "six equations, AT(2), (3), (6)": a,
            "four equations, AT(10)-(12), and AT(9)": ca.vertcat(b1, at.AT_9(b1, b3 - b1, nu, lam), b3),
            "engine, `spatial`": by_engine("spatial"),
            "engine, `points`": by_engine("points"),
        },
    )
    _draw(sheet, body, ca.DM([-0.55, -0.2]), ca.DM([0, 0]), "one", "G")
    at_1 = ca.DM([-0.55, -0.2])
    sheet.draw("arrow", "force", (at_1 + body.rG).T, R.T, label="R")
    for r, own in ((0 * r31, a1), (r21, a2), (r31, a3)):
        sheet.draw("arrow", "motion", (at_1 + r).T, own.T)


def _draw(sheet: Sheet, body: Placed, place: Symbol, start: Symbol, style: str, label: str) -> None:
    """The plate, a circle of its radius of gyration, with its particles."""
    import casadi as ca

    at_1, plate = place + start, body.plate
    k = ca.sqrt(ca.fmax(plate.I0 / plate.m - ca.dot(plate.rG, plate.rG), 0))
    rim = at_1 + body.rG + ca.vertcat(k, 0)
    sheet.draw("circle", style, (at_1 + body.rG).T, rim.T, label=label)
    sheet.draw("line", style, ca.horzcat(at_1, at_1 + body.r31).T)
    sheet.draw("line", "faint dashed", ca.horzcat(at_1, at_1 + body.r21, at_1 + body.r31).T)
    for n, (r, mass) in enumerate(zip((0 * body.r31, body.r21, body.r31), plate.masses, strict=True)):
        sheet.draw("particle", style, (at_1 + r).T, ca.vertcat(mass, plate.m).T, label=str(n + 1) if label else "")


def _fixed_axis(sheet: Sheet, body: Placed, angle: Symbol) -> None:
    """The end of section 2.3."""
    import casadi as ca

    plate, r31 = body.plate, body.r31
    (_, m2, m3), nu, lam = plate.masses, plate.nu, plate.lam
    weight = ca.vertcat(0, -G * plate.m)
    sheet.heading("On a fixed axis: a pendulum")
    sheet.given(
        "Now particle 1 is held, and the weight is the load.",
        ("R", "weight", "N", weight),
        ("G_1", "its moment about the axis", "N m", moment(body.rG, weight)),
    )
    a3 = sheet.step(
        "Angular momentum and one distance give the acceleration of particle 3,",
        at.AT_fixed_axis,
        m2,
        m3,
        nu,
        lam,
        r31,
        body.rate(r31),
        moment(body.rG, weight),
    )
    force = sheet.step("and linear momentum the force of the axis.", at.AT_reaction, m2, m3, nu, lam, a3, weight)
    model, numbers = planar_model(1, False), plate.parameters("plate0")
    state = {"q": angle, "v": body.turning}
    found = engine(model, "forward_dynamics", "spatial", numbers, **state)["a"]
    wrench = engine(model, "joint_wrenches", "spatial", numbers, a=found, **state)["f"]
    c, s = ca.cos(angle), ca.sin(angle)
    carried = ca.vertcat(c * wrench[0, 3] - s * wrench[0, 4], s * wrench[0, 3] + c * wrench[0, 4])
    sheet.compare(
        "axis",
        "Acceleration of particle 3, and the force of the axis",
        "m/s^2, N",
        {
            "AT(11), (12), (10)": ca.vertcat(a3, force),
            "engine": ca.vertcat(found * across(r31) - body.turning**2 * r31, carried),
        },
    )


def _chain(sheet: Sheet, plate: Plate, angles: list[Symbol], turning: list[Symbol]) -> None:
    """Section 2.4, for two bodies: `a3` of the pin between them and `a5` of the last particle are unknown."""
    import casadi as ca

    bodies = [placed(plate, *both) for both in zip(angles, turning, strict=True)]
    (m1, m2, m3), nu, lam = plate.masses, plate.nu, plate.lam
    first, last = bodies
    weight = ca.vertcat(0, -G * plate.m)
    loads = moment(last.rG, weight)
    all_loads = moment(first.rG, weight) + moment(first.r31 + last.rG, weight)

    def rows(a3: Symbol, a5: Symbol) -> tuple[Symbol, Symbol]:
        """Angular momenta of the last body about its pin, and of both about the fixed one."""
        none = ca.SX.zeros(2)
        N2 = at.AT_chain_moment(m2, m3, nu, lam, last.r21, last.r31, a3, a5)
        F2 = at.AT_10(m1, m2, m3, nu, lam, a3, a5)
        own = at.AT_11(m2, m3, nu, lam, first.r21, first.r31, none, a3)
        return N2, at.AT_chain_moment_of_all(N2, first.r31, F2, own)

    distances = [at.AT_chain_distance(body.rate(body.r31)) for body in bodies]

    def residual(x: Symbol) -> Symbol:
        a3, a5 = x[:2], x[2:]
        N2, N1 = rows(a3, a5)
        along = [ca.dot(first.r31, a3) - distances[0], ca.dot(last.r31, a5 - a3) - distances[1]]
        return ca.vertcat(N1 - all_loads, N2 - loads, *along)

    x = _root_of_linear(residual, 4)
    a3, a5 = x[:2], x[2:]
    sheet.heading("2.4 A chain of two")
    sheet.given(
        "A second plate of the same kind hangs on particle 3 of the first; the two share that particle. Unknown are "
        "the accelerations of the particles 3 and 5. For each body there is one moment and one distance.",
        (r"\ddot r_3", "acceleration of particle 3", "m/s^2", a3),
        (r"\ddot r_5", "acceleration of particle 5", "m/s^2", a5),
    )
    N2 = sheet.step(
        "The last body, about the pin it hangs on: the moment of its weight.",
        at.AT_chain_moment,
        m2,
        m3,
        nu,
        lam,
        last.r21,
        last.r31,
        a3,
        a5,
    )
    sheet.step("Its length.", at.AT_chain_distance, last.rate(last.r31))
    F2 = at.AT_10(m1, m2, m3, nu, lam, a3, a5)
    own = at.AT_11(m2, m3, nu, lam, first.r21, first.r31, ca.SX.zeros(2), a3)
    sheet.step(
        "From there inwards: the row beyond, moved to the next pin, plus the body's own. The pin carries no moment.",
        at.AT_chain_moment_of_all,
        N2,
        first.r31,
        F2,
        own,
    )
    model = planar_model(2, False)
    numbers = plate.parameters("plate0") | plate.parameters("plate1")
    numbers["pin1.at"] = ca.vertcat(plate.places[2], 0)
    state = {"q": ca.vertcat(angles[0], angles[1] - angles[0]), "v": ca.vertcat(turning[0], turning[1] - turning[0])}

    def by_engine(formulation: str) -> Symbol:
        qdd = engine(model, "forward_dynamics", formulation, numbers, **state)["a"]
        pin = qdd[0] * across(first.r31) - turning[0] ** 2 * first.r31
        return ca.vertcat(pin, pin + (qdd[0] + qdd[1]) * across(last.r31) - turning[1] ** 2 * last.r31)

    sheet.compare(
        "chain",
        "Accelerations of particles 3 and 5",
        "m/s^2",
        {
            "AT 2.4, four equations": x,
            "engine, `spatial`": by_engine("spatial"),
            "engine, `points`": by_engine("points"),
        },
    )
    place = ca.DM([0.6, 0.3])
    for body, start in ((first, ca.DM([0, 0])), (last, first.r31)):
        _draw(sheet, body, place, start, "two", "")
    sheet.draw("dot", "axis", place.T)


def _root_of_linear(function: Callable[[Symbol], Symbol], n: int) -> Symbol:
    """Where a linear function (n,) of (n,) vanishes."""
    import casadi as ca

    x = ca.SX.sym("x", n)
    value = function(x)
    return ca.solve(ca.jacobian(value, x), -ca.substitute(value, x, ca.SX.zeros(n)))
