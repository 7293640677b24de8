"""Planar mechanisms with published reference solutions, modelled in space: all hinges about z or -z."""

from __future__ import annotations

import numpy as np

from cardan.errors import ModelError
from cardan.model import inertia
from cardan.model.builder import Mechanism
from cardan.model.joint import Prismatic, Revolute

Z = (0.0, 0.0, 1.0)
CLOCKWISE = (0.0, 0.0, -1.0)


def n_four_bar(n: int = 2) -> Mechanism:
    """N four-bar windows in a row, benchmark A02 of the IFToMM library: 2 n + 1 thin rods, each 1 m and 1 kg.

    Upright rods from the ground at (i, 0) to (i, 1), i = 0..n, and level rods between their tops; gravity 9.81 m/s^2
    along -y. The coordinate of hinge `A{i}` is the clockwise angle th of upright rod i, of hinge `B{i}` that of level
    rod i to upright rod i, so that during the motion all `A{i}` are th and all `B{i}` are -th. The benchmark starts at
    th = 0 with 1 rad/s and obeys `th'' = c sin th`, `c = g ((n + 1)/2 + n) / ((n + 1)/3 + n)`.

    One freedom; Kutzbach `1 - 3 n`. Each time the rods are flat, th = +-pi/2, it has n + 1 freedoms for a moment.
    """
    if n < 1:
        raise ModelError(f"n_four_bar: n must be 1 or more, got {n}")
    m = Mechanism(f"n_four_bar_{n}", gravity=(0, -9.81, 0))
    for i in range(n + 1):
        m.body(f"upright{i}", mass=1.0, com=(0, 0.5, 0), inertia=inertia.rod(1.0, 1.0, axis="y"))
        m.joint(f"A{i}", Revolute(axis=CLOCKWISE), m.ground, f"upright{i}", at=(i, 0, 0), start=0.0)
    for i in range(n):
        m.body(f"level{i}", mass=1.0, com=(0.5, 0, 0), inertia=inertia.rod(1.0, 1.0, axis="x"))
        m.joint(f"B{i}", Revolute(axis=CLOCKWISE), f"upright{i}", f"level{i}", at=(0, 1, 0), start=0.0)
    for i in range(n):
        hinge = Revolute(axis=CLOCKWISE)
        m.joint(f"C{i + 1}", hinge, f"level{i}", f"upright{i + 1}", at=(1, 0, 0), child_at=(0, 1, 0), start=0.0)
    return m


# Andrews' mechanism: hinge points O, A, B, C on the ground (m).
ANDREWS_A, ANDREWS_B, ANDREWS_C = (-0.06934, -0.00227, 0.0), (-0.03635, 0.03273, 0.0), (0.014, 0.072, 0.0)

# Bodies: mass (kg), centre of mass (x, y in m, body frame), inertia about it (kg m^2).
ANDREWS_BODIES = {
    "K1": (0.04325, (92e-5, 0.0), 2.194e-6),
    "K2": (0.00365, (-115e-4, 0.0), 4.410e-7),
    "K3": (0.02373, (1043e-5, -1874e-5), 5.255e-6),
    "K4": (0.00706, (0.0, -(2e-2 - 1421e-5)), 5.667e-7),
    "K5": (0.07050, (2308e-5, 916e-5), 1.169e-5),
    "K6": (0.00706, (2e-2 - 1421e-5, 0.0), 5.667e-7),
    "K7": (0.05498, (-449e-5, -1228e-5), 1.912e-5),
}

# Tree hinges: name, first body, second body, place on the first; and the coordinate at the start (rad).
ANDREWS_HINGES = {
    "beta": ("ground", "K1", (0.0, 0.0, 0.0), -0.0617138900142764496358948458001),
    "theta": ("K1", "K2", (7e-3, 0.0, 0.0), 0.0),
    "gamma": ("ground", "K3", ANDREWS_B, 0.455279819163070380255912382449),
    "delta": ("ground", "K5", ANDREWS_A, 0.487364979543842550225598953530),
    "phi": ("K5", "K4", (4e-2, 0.0, 0.0), 0.222668390165885884674473185609),
    "epsilon": ("ground", "K7", ANDREWS_A, 1.23054744454982119249735015568),
    "Omega": ("K7", "K6", (0.0, -4e-2, 0.0), -0.222668390165885884674473185609),
}


def andrews() -> Mechanism:
    """Andrews' squeezing mechanism: seven bodies that meet in one point E, a spring, a drive of 0.033 N m; no gravity.

    The hinges are named after the angles of the test set for initial value problems (University of Bari), which are
    their coordinates exactly, as is the start: beta and theta lead over K1 to K2, gamma to K3, delta and phi over K5
    to K4, epsilon and Omega over K7 to K6. K3, K4 and K6 are hinged to K2 in E; these three close the loops, and each
    has two of the test set's six constraints, there in ground axes, here in those of K2.

    One freedom; Kutzbach -8. Only the inertias in the plane matter; the bodies are assumed flat.
    """
    m = Mechanism("andrews", gravity=(0, 0, 0))
    for name, (mass, (x, y), I) in ANDREWS_BODIES.items():
        m.body(name, mass=mass, com=(x, y, 0), inertia=(I / 2, I / 2, I))
    for name, (parent, child, at, start) in ANDREWS_HINGES.items():
        m.joint(name, Revolute(axis=Z), parent, child, at=at, start=start)
    angle = {name: start for name, (_, _, _, start) in ANDREWS_HINGES.items()}
    turned = {"E3": angle["gamma"], "E4": angle["phi"] + angle["delta"], "E6": angle["Omega"] + angle["epsilon"]}
    for name, body, at in (("E3", "K3", (0, -35e-3, 0)), ("E4", "K4", (0, -2e-2, 0)), ("E6", "K6", (2e-2, 0, 0))):
        start = angle["beta"] + angle["theta"] - turned[name]
        m.joint(name, Revolute(axis=Z), body, "K2", at=at, child_at=(-28e-3, 0, 0), start=start)
    m.spring("spring", m.ground, "K3", at1=ANDREWS_C, at2=(2e-2, -18e-3, 0), stiffness=4530.0, length=7785e-5)
    m.drive("motor", "beta", 33e-3)
    return m


def sundials_slider_crank(*, crank: float = 0.5) -> Mechanism:
    """The slider-crank of the SUNDIALS example idaSlCrank_dns: spring and damper between crank and rod, no gravity.

    The rod is 1 m long; its angle p to x, the crank's angle q and the slider's place x are the example's coordinates:
    hinge `crank` is q, hinge `pin` is p - q, `guide` is x. It starts with q = pi/2, at rest.

    The example's kinetic energy is `(J1 q'^2 + m2 x'^2 + J2 p'^2) / 2` with J1 = 1, m2 = 1, J2 = 2: the rod's mass is
    at its end on the slider's line. A slider needs mass, so half of it is the slider's. The force of 1 N along x acts
    1 m beyond the slider in the direction of the rod, which gives the example's `-F sin p` along p.

    One freedom; Kutzbach -2.
    """
    m = Mechanism("sundials_slider_crank", gravity=(0, 0, 0))
    m.body("crank", mass=1.0, inertia=(0.5, 0.5, 1.0))
    m.body("rod", mass=0.5, com=(1, 0, 0), inertia=(1.0, 1.0, 2.0))
    m.body("slider", mass=0.5, inertia=(1.0, 1.0, 1.0))
    p = float(np.arcsin(-crank))
    m.joint("crank", Revolute(axis=Z), m.ground, "crank", start=np.pi / 2)
    m.joint("pin", Revolute(axis=Z), "crank", "rod", at=(crank, 0, 0), start=p - np.pi / 2)
    m.joint("guide", Prismatic(axis=(1, 0, 0)), m.ground, "slider", start=np.cos(p))
    m.joint("wrist", Revolute(axis=Z), "slider", "rod", child_at=(1, 0, 0), start=p)
    middle = (crank / 2, 0, 0)
    m.spring("spring", "crank", "rod", stiffness=1.0, damping=1.0, length=1.0, at1=middle, at2=(0.5, 0, 0))
    m.wrench("push", "rod", (0, 0, 0, 1.0, 0, 0), at=(2, 0, 0))
    return m
