"""The problem of F6 and F3: two boxes on a hinge, at rest, and a force on the first. Both pages have it.

The hinge passes through O = P, the origin. Box B1 ends there; box B2 begins there and is folded about the hinge.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

from cardan.algebra.rotation import cross, rotation_of_quaternion
from cardan.algebra.spatial import inertia_about_origin, rigid_inertia
from cardan.model.builder import Mechanism
from cardan.model.joint import Free, Revolute
from cardan.model.model import Model
from cardan.textbook import f3, f6
from cardan.textbook.pages.engine import engine
from cardan.textbook.pages.geometry import box_corners, box_inertia, direction, quaternion_to, rotation, six
from cardan.textbook.pages.sheet import Sheet

Symbol = Any  # casadi.SX


@dataclass(frozen=True)
class TwoBodies:
    """The data in ground axes: for body k mass, centre `C`, inertia `I` about it; axis `s` of the hinge; load on B1."""

    m1: Symbol
    m2: Symbol
    C1: Symbol
    C2: Symbol
    I1: Symbol
    I2: Symbol
    s: Symbol
    f: Symbol
    tau: Symbol
    turn: Symbol
    fold: Symbol

    @property
    def inertias(self) -> tuple[Symbol, Symbol]:
        """The 6x6 inertias about O."""
        return tuple(
            rigid_inertia(m, m * C, inertia_about_origin(m, C, I))
            for m, C, I in ((self.m1, self.C1, self.I1), (self.m2, self.C2, self.I2))
        )

    @property
    def axis(self) -> Symbol:
        """The hinge as a 6-D vector: its line passes through O."""
        import casadi as ca

        return ca.vertcat(self.s, ca.SX.zeros(3))

    @property
    def force(self) -> Symbol:
        """The load as a 6-D vector about O."""
        import casadi as ca

        return ca.vertcat(self.tau + cross(self.C1, self.f), self.f)


def problem(sheet: Sheet) -> TwoBodies:
    """Sliders and figure of the two bodies."""
    import casadi as ca

    sheet.reach, sheet.centre = 0.95, (0.05, 0.0, 0.0)
    sheet.group = "Bodies"
    m1 = sheet.slider("m1", "m_1", "mass of B1", "kg", 0.5, 10, 1.5, 0.1)
    m2 = sheet.slider("m2", "m_2", "mass of B2", "kg", 0.5, 10, 5.0, 0.1)
    l1 = sheet.slider("l1", "l_1", "length of B1", "m", 0.2, 1.2, 0.8, 0.01)
    l2 = sheet.slider("l2", "l_2", "length of B2", "m", 0.2, 1.2, 1.0, 0.01)
    sheet.group = "Hinge"
    azimuth = sheet.slider("azimuth", r"\varphi", "direction of the hinge", "°", -90, 90, 70, 1)
    elevation = sheet.slider("elevation", r"\vartheta", "its elevation", "°", -80, 80, 25, 1)
    fold = sheet.slider("fold", r"\beta", "fold of B2 about it", "°", -150, 150, 40, 1)
    sheet.group = "Load on B1, at C1"
    f = ca.vertcat(
        sheet.slider("fx", "f_x", "force", "N", -40, 40, -25, 0.5),
        sheet.slider("fy", "f_y", "force", "N", -40, 40, 0, 0.5),
        sheet.slider("fz", "f_z", "force", "N", -40, 40, 20, 0.5),
    )
    tau = ca.vertcat(0, 0, sheet.slider("tz", r"\tau_z", "couple", "N m", -5, 5, 1, 0.1))
    s, R2 = direction(azimuth, elevation), rotation(direction(azimuth, elevation), fold)
    size1, size2 = ca.vertcat(l1, 0.3, 0.15), ca.vertcat(l2, 0.2, 0.2)
    C1, C2 = ca.vertcat(-l1 / 2, 0, 0), R2 @ ca.vertcat(l2 / 2, 0, 0)
    I2 = R2 @ box_inertia(m2, size2) @ R2.T
    two = TwoBodies(m1, m2, C1, C2, box_inertia(m1, size1), I2, s, f, tau, quaternion_to(azimuth, elevation), fold)
    sheet.draw("box", "one", box_corners(C1, ca.SX.eye(3), size1), label="B₁")
    sheet.draw("box", "two", box_corners(C2, R2, size2), label="B₂")
    sheet.draw("line", "axis dashed", ca.horzcat(-0.6 * s, 0.6 * s).T, label="s")
    sheet.draw("arrow", "force", C1.T, f.T, label="f")
    return two


def motion_6d(two: TwoBodies) -> Symbol:
    """Accelerations (6,) of B1, of its centre and angular, by F6(7)."""
    import casadi as ca

    a1 = f6.F6_7(*two.inertias, two.axis, two.force)
    return ca.vertcat(a1[3:] + cross(a1[:3], two.C1), a1[:3])


def motion_3d(two: TwoBodies) -> Symbol:
    """The same by F3(26)."""
    r1, r2 = -two.C1, -two.C2
    J = f3.F3_19(two.m2, two.I2, r2)
    K = f3.F3_23(two.m2, r1, r2, J)
    blocks = f3.F3_26_blocks(two.m1, two.m2, two.I1, two.I2, r1, r2, two.s, J, K)
    return f3.F3_26(*blocks, two.f, two.tau)


@cache
def two_body_model() -> Model:
    """The engine's model: both body frames at the hinge with z along it, all numbers free, no gravity."""
    m = Mechanism("two bodies", gravity=(0, 0, 0))
    m.body("B1", mass=1.0, com=(-0.3, 0.1, 0.2), inertia=((0.3, 0.02, 0.01), (0.02, 0.4, 0.03), (0.01, 0.03, 0.5)))
    m.body("B2", mass=1.0, com=(0.3, 0.2, 0.1), inertia=((0.3, 0.01, 0.02), (0.01, 0.4, 0.03), (0.02, 0.03, 0.5)))
    m.joint("root", Free(), m.ground, "B1")
    m.joint("hinge", Revolute(axis=(0, 0, 1)), "B1", "B2")
    return m.build().free("B1.mass", "B1.com", "B1.inertia", "B2.mass", "B2.com", "B2.inertia")


def motion_by_engine(two: TwoBodies, formulation: str) -> Symbol:
    """The same by the engine's forward dynamics: its body frames have z along the hinge."""
    import casadi as ca

    R = rotation_of_quaternion(two.turn)
    back = rotation(ca.DM([0, 0, 1]), -two.fold) @ R.T  # ground to B2
    parameters = {
        "B1.mass": two.m1,
        "B1.com": R.T @ two.C1,
        "B1.inertia": six(R.T @ two.I1 @ R),
        "B2.mass": two.m2,
        "B2.com": back @ two.C2,
        "B2.inertia": six(back @ two.I2 @ back.T),
    }
    load = ca.vertcat(R.T @ two.force[:3], R.T @ two.force[3:])
    q = ca.vertcat(0, 0, 0, two.turn, two.fold)
    found = engine(
        two_body_model(),
        "forward_dynamics_loaded",
        formulation,
        parameters,
        q=q,
        wrenches=ca.vertcat(load.T, ca.SX.zeros(1, 6)),
    )["a"]
    wdot, a = R @ found[:3], R @ found[3:6]
    return ca.vertcat(a + cross(wdot, two.C1), wdot)


def agreement(sheet: Sheet, two: TwoBodies) -> Symbol:
    """Compare the four answers; the acceleration of C1 is drawn."""
    answer = motion_6d(two)
    sheet.compare(
        "motion",
        r"Acceleration of B1: $a_1$ of its centre, and $\dot\omega_1$",
        "m/s^2, rad/s^2",
        {
            "F6(7), 6-D vectors": answer,
            "F3(26), 3-D vectors": motion_3d(two),
            "engine, `spatial`": motion_by_engine(two, "spatial"),
            "engine, `absolute`": motion_by_engine(two, "absolute"),
        },
    )
    sheet.draw("arrow", "motion", two.C1.T, answer[:3].T, label="a₁")
    return answer
