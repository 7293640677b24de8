"""The page of KJ: a ball joint and a hinge between two bodies, in three kinds of coordinates, at three levels.

The rows need not vanish here: a gap, a slip and a wobble, and accelerations that no joint would allow, are what they
measure. At each level the levels before it hold, as in a run.

Equations: KJ(1)-(16).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from cardan.algebra.rotation import cross, skew
from cardan.model.builder import Mechanism
from cardan.model.joint import Free, Revolute, Spherical
from cardan.model.model import Model
from cardan.textbook import kj
from cardan.textbook.pages.engine import engine
from cardan.textbook.pages.geometry import box_corners, rotation
from cardan.textbook.pages.sheet import Sheet

Symbol = Any  # casadi.SX
LEVELS = ("phi", "rate", "acceleration")
JOINTS = {"ball": Spherical(), "hinge": Revolute(axis=(0, 0, 1))}


@dataclass(frozen=True)
class Motion:
    """Motion of two bodies, in fixed components.

    `R` (3, 3) from body components, positions `p`, velocities `v` and accelerations `a` of the centres of mass, angular
    velocities `w` and accelerations `wdot`.
    """

    R1: Symbol
    p1: Symbol
    R2: Symbol
    p2: Symbol
    w1: Symbol
    v1: Symbol
    w2: Symbol
    v2: Symbol
    wdot1: Symbol
    a1: Symbol
    wdot2: Symbol
    a2: Symbol

    @property
    def all(self) -> Symbol:
        """All numbers as one column."""
        import casadi as ca

        return ca.vertcat(*(ca.vec(ca.SX(value)) for value in vars(self).values()))

    def rate(self, value: Symbol) -> Symbol:
        """Time derivative of an expression of this motion, whose parts must be symbols; accelerations are constant."""
        import casadi as ca

        turned = [ca.vec(skew(w) @ R) for w, R in ((self.w1, self.R1), (self.w2, self.R2))]
        moves = ca.vertcat(
            turned[0], self.v1, turned[1], self.v2, self.wdot1, self.a1, self.wdot2, self.a2, ca.SX.zeros(12)
        )
        return ca.jtimes(value, self.all, moves)


@cache
def symbols() -> Motion:
    """A motion of symbols, which expressions are differentiated by."""
    import casadi as ca

    shapes = {name: (3, 3) if name in ("R1", "R2") else (3, 1) for name in Motion.__dataclass_fields__}
    return Motion(**{name: ca.SX.sym(name, *shape) for name, shape in shapes.items()})


@cache
def joined(name: str) -> Model:
    """The engine's model: body frames at the centres of mass, the hinge along z of both; points of the joint free."""
    m = Mechanism("two bodies", gravity=(0, 0, 0))
    for body in ("B1", "B2"):
        m.body(body, mass=1.0, inertia=(0.3, 0.4, 0.5))
    m.joint("root", Free(), m.ground, "B1")
    m.joint("joint", JOINTS[name], "B1", "B2", at=(0.4, 0.1, 0.2), child_at=(-0.4, 0.1, 0.2))
    return m.build().free("joint.at", "joint.child_at")


@cache
def rows_of(name: str, formulation: str) -> Any:
    """The engine's rows at all three levels, as a function of a motion and of the points of the joint."""
    import casadi as ca

    x, model = symbols(), joined(name)
    q_, r_ = ca.SX.sym("q_", 3), ca.SX.sym("r_", 3)
    numbers = {"joint.at": q_, "joint.child_at": -r_}
    poses = [ca.vertcat(ca.horzcat(R, p), ca.DM([[0, 0, 0, 1]])) for R, p in ((x.R1, x.p1), (x.R2, x.p2))]
    twists = [ca.vertcat(R.T @ w, R.T @ v).T for R, w, v in ((x.R1, x.w1, x.v1), (x.R2, x.w2, x.v2))]
    own = engine(
        model,
        "project",
        formulation,
        numbers,
        poses=ca.vertcat(*(ca.vec(pose.T).T for pose in poses)),
        twists=ca.vertcat(*twists),
    )
    found = engine(model, "system", formulation, numbers, q=own["q"], v=own["v"])
    accelerations = found["J"] @ x.rate(own["v"]) - found["gamma"]
    levels = [found["phi"], found["J"] @ own["v"] - found["beta"], accelerations]
    return ca.Function("rows", [x.all, q_, r_], [ca.densify(level) for level in levels], ["x", "q", "r"], list(LEVELS))


def text(sheet: Sheet) -> None:
    """Write the page."""
    import casadi as ca

    sheet.title = "Joints as constraint equations"
    sheet.introduction = [
        "A ball joint lets two bodies share a point; a hinge also keeps them from turning about two directions. The "
        "equations are written for absolute coordinates, with fixed-frame and with body-frame angular rates, and for "
        "relative coordinates.",
        "Here the joint may be violated: a gap, a slip, a wobble, and accelerations that do not belong to it. The "
        "equations measure the violation, and vanish with it.",
    ]
    sheet.reach, sheet.centre = 0.95, (0.0, 0.0, 0.0)
    sheet.group = "Bodies"
    l1 = sheet.slider("l1", "l_1", "length of B1", "m", 0.3, 1.2, 0.8, 0.01)
    l2 = sheet.slider("l2", "l_2", "length of B2", "m", 0.3, 1.2, 0.7, 0.01)
    sheet.group = "Position"
    yaw = sheet.slider("yaw", r"\psi", "B1 about z", "°", -90, 90, -20, 1)
    tilt = sheet.slider("tilt", r"\vartheta", "tilt of B1", "°", -60, 60, 20, 1)
    phi = sheet.slider("phi", r"\varphi", "angle of the hinge", "°", -150, 150, 50, 1)
    gap = sheet.slider("gap", "e", "gap of the points", "m", -0.3, 0.3, 0.12, 0.01)
    sheet.group = "Rates"
    wx = sheet.slider("wx", r"\omega_{1x}", "turning of B1", "rad/s", -4, 4, 1.0, 0.1)
    wz = sheet.slider("wz", r"\omega_{1z}", "turning of B1", "rad/s", -4, 4, -0.8, 0.1)
    phid = sheet.slider("phid", r"\dot\varphi", "rate of the hinge", "rad/s", -4, 4, 2.0, 0.1)
    slip = sheet.slider("slip", r"\dot e", "slip of the points", "m/s", -2, 2, 0.5, 0.05)
    wobble = sheet.slider("wobble", r"\kappa", "wobble about f", "rad/s", -2, 2, 0.6, 0.05)
    sheet.group = "Accelerations"
    wd = sheet.slider("wd", r"\dot\omega_{1y}", "of B1", "rad/s²", -8, 8, 2.0, 0.1)
    phidd = sheet.slider("phidd", r"\ddot\varphi", "of the hinge", "rad/s²", -8, 8, -3.0, 0.1)
    push = sheet.slider("push", r"\ddot e", "of the gap", "m/s²", -5, 5, 1.5, 0.1)
    twist = sheet.slider("twist", r"\dot\kappa", "of the wobble", "rad/s²", -5, 5, 0.8, 0.1)

    q_, r_ = ca.vertcat(l1 / 2, 0, 0), ca.vertcat(l2 / 2, 0, 0)
    x, y, z = (ca.DM(e) for e in ((1, 0, 0), (0, 1, 0), (0, 0, 1)))
    R1 = rotation(z, yaw) @ rotation(y, tilt)
    R2 = R1 @ rotation(z, phi)
    p1 = -R1 @ q_
    w1, h, f = ca.vertcat(wx, 0, wz), R1 @ z, R1 @ x
    w2, q, r = w1 + phid * h, R1 @ q_, R2 @ r_
    wdot1, none = ca.vertcat(0, wd, 0), ca.SX.zeros(3)
    aside = ca.DM([0.6, 0.0, 0.8])  # direction of gap, slip and push, fixed
    wdot2 = wdot1 + cross(w1, phid * h) + phidd * h + twist * f
    a2 = cross(wdot1, q) + cross(w1, cross(w1, q)) + cross(wdot2, r) + cross(w2, cross(w2, r)) + push * aside
    p2 = kj.KJ_1_place(p1, R1.T, q_, R2.T, r_)
    closed = Motion(R1, p1, R2, p2, w1, none, w2, cross(w1, q) + cross(w2, r), wdot1, none, wdot2, a2)
    opened = replace(closed, p2=p2 + gap * aside)
    wobbling = replace(closed, w2=w2 + wobble * f)
    slipping = replace(wobbling, v2=cross(w1, q) + cross(wobbling.w2, r) + slip * aside)
    joint = _Joint(opened, slipping, closed, q_, r_, phi)
    sheet.draw("box", "one", box_corners(p1, R1, ca.vertcat(l1, 0.2, 0.2)), label="B₁")
    sheet.draw("box", "two", box_corners(opened.p2, R2, ca.vertcat(l2, 0.14, 0.14)), label="B₂")
    sheet.draw("line", "axis dashed", ca.horzcat(-0.5 * h, 0.5 * h).T, label="h")
    sheet.draw("line", "faint", ca.horzcat(none, gap * aside).T)
    for direction, name in ((f, "f"), (R1 @ y, "g")):
        sheet.draw("line", "axis", ca.horzcat(none, 0.3 * direction).T, label=name)
    sheet.draw("dot", "one", none.T)
    sheet.draw("dot", "two", (gap * aside).T)
    _ball(sheet, joint)
    _hinge(sheet, joint)


@dataclass(frozen=True)
class _Joint:
    """The motion at each level, the points of the joint in the bodies, and the angle of the hinge."""

    opened: Motion
    slipping: Motion
    closed: Motion
    q_: Symbol
    r_: Symbol
    phi: Symbol

    def at_level(self, level: str) -> Motion:
        """The motion whose rows are measured at a level."""
        return dict(zip(LEVELS, (self.opened, self.slipping, self.closed), strict=True))[level]

    def of(self, value: Symbol, level: str) -> Symbol:
        """An expression of the motion of symbols at the motion of a level."""
        import casadi as ca

        return ca.substitute(value, symbols().all, self.at_level(level).all)

    def by_engine(self, name: str, formulation: str, level: str) -> tuple[Symbol, Symbol]:
        """The engine's rows at a level: those of the points (3,) in fixed axes, those of turning in axes of B1.

        The engine has them in axes of the joint on B2.
        """
        import casadi as ca

        motion = self.at_level(level)
        found = rows_of(name, formulation)(x=motion.all, q=self.q_, r=self.r_)[level]
        turns = found[:-3]
        c, s = ca.cos(self.phi), ca.sin(self.phi)
        in_1 = ca.vertcat(c * turns[0] - s * turns[1], s * turns[0] + c * turns[1]) if turns.numel() else turns
        return motion.R2 @ found[-3:], in_1


def _ball(sheet: Sheet, joint: _Joint) -> None:
    """KJ(1) to KJ(4)."""
    q_, r_, o, s, c = joint.q_, joint.r_, joint.opened, joint.slipping, joint.closed
    R_B1, R_B2 = c.R1.T, c.R2.T  # KJ's [R_B]
    q, r = c.R1 @ q_, c.R2 @ r_
    motion = symbols()
    sheet.heading("Ball joint, absolute coordinates")
    sheet.given(
        "$[R_B]$ takes fixed-frame components to those of body B. The joint's points are given in the bodies.",
        ("[R_{B_1}]", "rotation of B1", "", R_B1),
        ("[R_{B_2}]", "rotation of B2", "", R_B2),
        (r"\{q'_2\}", "from G1 to the joint", "m", q_),
        (r"\{r'_2\}", "from the joint to G2", "m", r_),
    )
    place = sheet.step(
        "The two bodies share a point: three equations. Here the points are a gap apart.",
        kj.KJ_1,
        o.p1,
        o.p2,
        R_B1,
        q_,
        R_B2,
        r_,
    )
    rate = sheet.step(
        "Differentiated, with fixed-frame angular velocities. The points coincide now, and slip.",
        kj.KJ_1_rate,
        s.v1,
        s.v2,
        q,
        s.w1,
        r,
        s.w2,
    )
    twice = sheet.step(
        "Differentiated again. Neither gap nor slip is left, only an acceleration that does not belong to the joint.",
        kj.KJ_2,
        c.a1,
        c.a2,
        q,
        cross(c.w1, q),
        c.w1,
        c.wdot1,
        r,
        cross(c.w2, r),
        c.w2,
        c.wdot2,
    )
    rate_body = sheet.step(
        "The same with body-frame components of angular velocity,",
        kj.KJ_1_rate_body,
        s.v1,
        s.v2,
        R_B1,
        q_,
        R_B1 @ s.w1,
        R_B2,
        r_,
        R_B2 @ s.w2,
    )
    twice_body = sheet.step(
        "and again.", kj.KJ_3, c.a1, c.a2, R_B1, q_, R_B1 @ c.w1, R_B1 @ c.wdot1, R_B2, r_, R_B2 @ c.w2, R_B2 @ c.wdot2
    )
    sheet.heading("Ball joint, relative coordinates")
    apart = motion.R1.T @ (motion.p2 - motion.R2 @ r_ - motion.p1 - motion.R1 @ q_)  # s2', to be differentiated
    turned_rate, turned_twice = (
        joint.of(motion.rate(apart), "rate"),
        joint.of(motion.rate(motion.rate(apart)), "acceleration"),
    )
    relative = sheet.step(
        "The position of the joint's point on B2, in axes of B1, is a coordinate; it vanishes with its rates. They are "
        "differentiated here by the computer, from the motion of the bodies.",
        kj.KJ_4,
        joint.of(apart, "phi"),
        turned_rate,
        turned_twice,
    )
    by_hand = {
        "phi": {"KJ(1)": place, "KJ(4), turned": c.R1 @ relative[0]},
        "rate": {"fixed-frame rates": rate, "body-frame rates": rate_body, "KJ(4), turned": c.R1 @ relative[1]},
        "acceleration": {
            "KJ(2), fixed-frame rates": twice,
            "KJ(3), body-frame rates": twice_body,
            "KJ(4), turned": c.R1 @ relative[2],
        },
    }
    units = {"phi": ("position", "m"), "rate": ("velocity", "m/s"), "acceleration": ("acceleration", "m/s^2")}
    for level, (word, unit) in units.items():
        forms = by_hand[level]
        for formulation in ("absolute", "absolute_body", "relative"):
            forms[f"engine, `{formulation}`"] = joint.by_engine("ball", formulation, level)[0]
        sheet.compare(f"ball {level}", f"Ball joint at the level of {word}, three equations", unit, forms)


def _hinge(sheet: Sheet, joint: _Joint) -> None:
    """KJ(5) to KJ(16)."""
    import casadi as ca

    s, c, motion = joint.slipping, joint.closed, symbols()
    R_B1, R_B2 = c.R1.T, c.R2.T
    f_, g_ = ca.SX([1, 0, 0]), ca.SX([0, 1, 0])
    f, g = c.R1 @ f_, c.R1 @ g_
    sheet.heading("Hinge, absolute coordinates")
    sheet.given(
        "Two directions perpendicular to the hinge are fixed in B1. The points obey KJ(1) as before.",
        ("f_{B_1}", "first direction", "", f),
        ("g_{B_1}", "second direction", "", g),
    )
    sheet.step("B2 may not turn relative to B1 about f; here it wobbles,", kj.KJ_5, f, s.w1, s.w2)
    sheet.step("and not about g.", kj.KJ_6, g, s.w1, s.w2)
    rates = [
        sheet.step("With fixed-frame components,", kj.KJ_5_fixed, f_, R_B1, s.w1, s.w2),
        sheet.step("for both directions.", kj.KJ_6_fixed, g_, R_B1, s.w1, s.w2),
    ]
    twice = [
        sheet.step(
            "Differentiated: f turns with B1. Without wobble, and with an acceleration that does not belong to "
            "the hinge,",
            kj.KJ_7,
            f_,
            R_B1,
            c.w1,
            c.wdot1,
            c.w2,
            c.wdot2,
        ),
        sheet.step("and for g.", kj.KJ_8, g_, R_B1, c.w1, c.wdot1, c.w2, c.wdot2),
    ]
    of_1, of_2 = (R_B1 @ c.w1, R_B1 @ c.wdot1), (R_B2, R_B2 @ c.w2, R_B2 @ c.wdot2)
    body = [
        sheet.step("The same with body-frame components.", kj.KJ_9, f_, R_B1, *of_1, *of_2),
        sheet.step("And for g.", kj.KJ_10, g_, R_B1, *of_1, *of_2),
    ]
    body_rates = [kj.KJ_5_body(e, R_B1, R_B1 @ s.w1, R_B2, R_B2 @ s.w2) for e in (f_, g_)]
    sheet.heading("Hinge, relative coordinates")
    hat = motion.R1.T @ (motion.w2 - motion.w1)  # components in B1, to be differentiated
    hat_ = motion.R2.T @ (motion.w2 - motion.w1)  # in B2
    relative_rates = [
        sheet.step("The angular velocity relative to B1 has no component along f,", kj.KJ_11, f, s.w2 - s.w1),
        sheet.step("and none along g.", kj.KJ_12, g, s.w2 - s.w1),
    ]
    in_1, in_2 = joint.of(motion.rate(hat), "acceleration"), joint.of(motion.rate(hat_), "acceleration")
    relative = [
        sheet.step("Differentiated, with components in B1, the coefficients are constant:", kj.KJ_13, f_, in_1),
        sheet.step("both of them.", kj.KJ_14, g_, in_1),
    ]
    both = [
        sheet.step("With components in B2 and with f and g fixed there,", kj.KJ_15, f_, in_2),
        sheet.step("the same.", kj.KJ_16, g_, in_2),
    ]
    cosine, sine = ca.cos(joint.phi), ca.sin(joint.phi)
    turned = ca.vertcat(cosine * both[0] - sine * both[1], sine * both[0] + cosine * both[1])
    forms = {
        "rate": {
            "KJ(5), (6), fixed-frame rates": ca.vertcat(*rates),
            "body-frame rates": ca.vertcat(*body_rates),
            "KJ(11), (12), relative": ca.vertcat(*relative_rates),
        },
        "acceleration": {
            "KJ(7), (8), fixed-frame rates": ca.vertcat(*twice),
            "KJ(9), (10), body-frame rates": ca.vertcat(*body),
            "KJ(13), (14), relative, in B1": ca.vertcat(*relative),
            "KJ(15), (16), relative, in B2, turned": turned,
        },
    }
    for level, (word, unit) in {"rate": ("velocity", "rad/s"), "acceleration": ("acceleration", "rad/s^2")}.items():
        for formulation in ("absolute", "absolute_body", "relative"):
            forms[level][f"engine, `{formulation}`"] = joint.by_engine("hinge", formulation, level)[1]
        sheet.compare(f"hinge {level}", f"Hinge at the level of {word}, two equations of turning", unit, forms[level])
