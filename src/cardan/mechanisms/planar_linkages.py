"""Planar mechanisms with closed loops, modelled in space: hinges about z, gravity along -y unless stated.

In space a planar loop of hinges and sliders has three redundant constraints: those out of the plane. The last three
have published reference solutions; `n_four_bar` has its hinges about -z.
"""

from __future__ import annotations

import numpy as np

from cardan.errors import ModelError
from cardan.mechanisms.planar_bars import DOWN, Z, angle_of, bar, corner, direction, hinge
from cardan.model import inertia
from cardan.model.builder import Mechanism
from cardan.model.joint import Prismatic, Revolute, Spherical, Universal
from cardan.model.shape import Box, Cylinder


def four_bar(
    *, base: float = 1.0, crank: float = 0.4, coupler: float = 0.9, rocker: float = 0.7, angle: float = 1.0,
    density: float = 2.0,
) -> Mechanism:  # fmt: skip
    """Crank AB, coupler BC and rocker DC on the base AD; `angle` (rad) of the crank at the start, `density` in kg/m.

    One freedom; Kutzbach -2. With shortest + longest <= sum of the others (Grashof; so by default) the shortest bar
    turns fully. Rocker and coupler are in line in a dead position, where the rocker cannot drive.
    """
    m = Mechanism("four_bar", gravity=DOWN)
    B, D = crank * direction(angle), np.array([base, 0.0])
    C = corner("four_bar", B, coupler, D, rocker)
    angles = {m.ground: 0.0, "crank": angle, "coupler": angle_of(C - B), "rocker": angle_of(C - D)}
    for name, length in (("crank", crank), ("coupler", coupler), ("rocker", rocker)):
        bar(m, name, length, density)
    hinge(m, "A", m.ground, "crank", angles)
    hinge(m, "B", "crank", "coupler", angles, at=crank)
    hinge(m, "C", "coupler", "rocker", angles, at=coupler, child_at=rocker)
    hinge(m, "D", m.ground, "rocker", angles, at=base)
    return m


def five_bar(
    *, base: float = 0.8, crank: float = 0.5, link: float = 0.7, angles: tuple[float, float] = (2.0, 0.9),
    density: float = 2.0,
) -> Mechanism:  # fmt: skip
    """Two equal cranks AB and ED on the base AE, joined by two equal links BC and DC: two freedoms; Kutzbach -1.

    `angles` (rad) of the two cranks at the start; `density` in kg/m. Where the links are in line the cranks lose
    control of C.
    """
    m = Mechanism("five_bar", gravity=DOWN)
    E = np.array([base, 0.0])
    B, D = crank * direction(angles[0]), E + crank * direction(angles[1])
    C = corner("five_bar", B, link, D, link)
    turned = {m.ground: 0.0, "left crank": angles[0], "right crank": angles[1]}
    turned |= {"left link": angle_of(C - B), "right link": angle_of(C - D)}
    for side in ("left", "right"):
        bar(m, f"{side} crank", crank, density)
        bar(m, f"{side} link", link, density)
    hinge(m, "A", m.ground, "left crank", turned)
    hinge(m, "E", m.ground, "right crank", turned, at=base)
    hinge(m, "B", "left crank", "left link", turned, at=crank)
    hinge(m, "D", "right crank", "right link", turned, at=crank)
    hinge(m, "C", "left link", "right link", turned, at=link, child_at=link)
    return m


def parallelogram(
    *, base: float = 1.0, crank: float = 0.5, cranks: int = 3, angle: float = 1.0, density: float = 2.0
) -> Mechanism:
    """Equal parallel cranks from the base to a coupler as long as the base: five bars with the default three cranks.

    One freedom, the coupler moving without turning; Kutzbach -6, and in the plane Grübler's count is 0, because the
    third crank is redundant. Flat (`angle` 0 or pi) it can change to another branch if it has two cranks.
    """
    if cranks < 2:
        raise ModelError(f"parallelogram: cranks must be 2 or more, got {cranks}")
    m = Mechanism("parallelogram", gravity=DOWN)
    angles = {m.ground: 0.0, "coupler": 0.0}
    bar(m, "coupler", base, density)
    places = [base * k / (cranks - 1) for k in range(cranks)]
    for k, x in enumerate(places):
        angles[f"crank{k + 1}"] = angle
        bar(m, f"crank{k + 1}", crank, density)
        hinge(m, f"A{k + 1}", m.ground, f"crank{k + 1}", angles, at=x)
    for k, x in enumerate(places):
        hinge(m, f"B{k + 1}", f"crank{k + 1}", "coupler", angles, at=crank, child_at=x)
    return m


def slider_crank(
    *, crank: float = 0.2, rod: float = 0.5, slider: float = 1.0, angle: float = 0.8, density: float = 2.0,
    variant: str = "planar",
) -> Mechanism:  # fmt: skip
    """Crank, connecting rod and a slider (kg) along x, at `crank cos(angle) + sqrt(rod^2 - crank^2 sin(angle)^2)`.

    One freedom. Variant "planar" has hinges at both ends of the rod: Kutzbach -2, three redundant constraints.
    Variant "spatial" has a ball at the crank pin and a universal joint at the slider: Kutzbach 1, none redundant.
    In the dead positions, `angle` 0 and pi, the slider cannot drive. `density` of crank and rod in kg/m.
    """
    if variant not in ("planar", "spatial"):
        raise ModelError(f"slider_crank: variant must be 'planar' or 'spatial', got {variant!r}")
    if abs(crank * np.sin(angle)) > rod:
        raise ModelError(f"slider_crank: a rod of {rod:g} m does not reach the line of the slider from {angle:g} rad")
    m = Mechanism("slider_crank" if variant == "planar" else "slider_crank_spatial", gravity=DOWN)
    pin = crank * direction(angle)
    x = pin[0] + float(np.sqrt(rod**2 - pin[1] ** 2))
    angles = {m.ground: 0.0, "slider": 0.0, "crank": angle, "rod": angle_of(np.array([x, 0.0]) - pin)}
    bar(m, "crank", crank, density)
    bar(m, "rod", rod, density)
    m.body("slider", mass=slider, inertia=inertia.box(slider, (0.1, 0.06, 0.06)))
    hinge(m, "bearing", m.ground, "crank", angles)
    if variant == "planar":
        hinge(m, "pin", "crank", "rod", angles, at=crank)
        hinge(m, "wrist", "slider", "rod", angles, child_at=rod)
    else:
        half = (angles["rod"] - angle) / 2
        turn = (np.cos(half), 0, 0, np.sin(half))
        m.joint("pin", Spherical(), "crank", "rod", at=(crank, 0, 0), start=turn)
        hook = Universal(axis1=Z, axis2=(0, 1, 0))
        m.joint("wrist", hook, "slider", "rod", child_at=(rod, 0, 0), start=(angles["rod"], 0))
    m.joint("guide", Prismatic(axis=(1, 0, 0)), m.ground, "slider", start=x)
    return m


def scotch_yoke(*, crank: float = 0.3, yoke: float = 2.0, angle: float = 0.7, density: float = 2.0) -> Mechanism:
    """A crank whose pin carries a block in the upright slot of a yoke (kg) that slides along x.

    One freedom; Kutzbach -2. The yoke is at `crank cos(angle)` exactly, the block at `crank sin(angle)` in its slot.
    """
    m = Mechanism("scotch_yoke", gravity=DOWN)
    block = density * crank / 5
    bar(m, "crank", crank, density)
    m.body("block", mass=block, inertia=inertia.box(block, (crank / 5,) * 3))
    m.body("yoke", mass=yoke, inertia=inertia.box(yoke, (crank / 5, 2.4 * crank, crank / 5)))
    angles = {m.ground: 0.0, "crank": angle, "block": 0.0, "yoke": 0.0}
    x, y = crank * direction(angle)
    hinge(m, "bearing", m.ground, "crank", angles)
    hinge(m, "pin", "crank", "block", angles, at=crank)
    m.joint("slot", Prismatic(axis=(0, 1, 0)), "yoke", "block", start=y)
    m.joint("guide", Prismatic(axis=(1, 0, 0)), m.ground, "yoke", start=x)
    return m


def rack_and_pinion(*, radius: float = 0.1, pinion: float = 1.5, rack: float = 0.8) -> Mechanism:
    """A pinion (kg, a solid disc) on z and an upright rack (kg) that it raises by `radius` a radian.

    One freedom: the coupling takes one of two. Left alone the rack falls with `g rack / (rack + pinion / 2)`.
    """
    m = Mechanism("rack_and_pinion", gravity=DOWN)
    m.body("pinion", mass=pinion, inertia=inertia.cylinder(pinion, radius, radius / 2, axis="z"))
    m.body("rack", mass=rack, inertia=inertia.box(rack, (radius / 2, 10 * radius, radius / 2)))
    m.joint("bearing", Revolute(axis=Z), m.ground, "pinion")
    m.joint("guide", Prismatic(axis=(0, 1, 0)), m.ground, "rack", at=(radius, 0, 0))
    m.couple("teeth", {"guide": 1.0, "bearing": -radius})
    m.shape("pinion", Cylinder(radius, radius / 2, colour="#3f5fbf"))
    m.shape("pinion", Cylinder(0.15 * radius, 0.1 * radius, at=(0.65 * radius, 0, radius / 4), colour="#ffffff"))
    m.shape("rack", Box((radius / 2, 10 * radius, radius / 2), at=(radius / 4, 0, 0), colour="#d9731a"))
    return m


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
    m.shape("slider", Box((0.25, 0.12, 0.12), colour="#2e8b57"))
    return m
