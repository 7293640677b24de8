"""Machines: linkages with slides and cylinders, modelled in space; gravity along -y, in `double_wishbone` along -z.

A hinge's coordinate is the angle of its second body to its first, a slide's the distance along it.
"""

from __future__ import annotations

import numpy as np

from cardan.errors import ModelError
from cardan.mechanisms.planar_bars import DOWN, Z, angle_of, bar, corner, direction, hinge
from cardan.mechanisms.rings import ring
from cardan.model import inertia
from cardan.model.builder import Mechanism
from cardan.model.joint import Prismatic, Revolute, Spherical, Universal
from cardan.model.pose import Pose
from cardan.model.shape import Box, Cylinder, Rod


def quick_return(
    *, crank: float = 0.15, offset: float = 0.3, lever: float = 0.6, rod: float = 0.5, ram: float = 4.0,
    angle: float = 0.7, density: float = 4.0,
) -> Mechanism:  # fmt: skip
    """A shaping machine's quick return: a crank's pin slides in a slotted lever, which drives a ram (kg) over a rod.

    The lever's pivot lies `offset` (m) below the crank's centre, at the origin. Its angle to the vertical is
    `atan2(crank sin(angle), offset + crank cos(angle))` with the crank's `angle` (rad) to the vertical. It cuts slowly
    and returns fast, in times of `(pi + 2 asin(crank/offset)) : (pi - 2 asin(crank/offset))`: 2 : 1 by default. With
    `offset < crank` it is Whitworth's: the lever turns fully. `density` of the bars in kg/m.

    One freedom; Kutzbach -5.
    """
    m = Mechanism("quick_return", gravity=DOWN)
    height = 0.9 * lever  # of the ram's line above the lever's pivot
    pin = crank * direction(np.pi / 2 - angle) + np.array([0.0, offset])
    along, turn = float(np.linalg.norm(pin)), angle_of(pin)
    head = lever * direction(turn)
    if abs(height - head[1]) > rod:
        raise ModelError(f"quick_return: a rod of {rod:g} m does not reach the ram's line from {angle:g} rad")
    x = head[0] + float(np.sqrt(rod**2 - (height - head[1]) ** 2))
    angles = {m.ground: 0.0, "crank": np.pi / 2 - angle, "block": turn, "lever": turn, "ram": 0.0}
    angles["rod"] = angle_of(np.array([x, height]) - head)
    for name, length in (("crank", crank), ("lever", lever), ("rod", rod)):
        bar(m, name, length, density)
    m.body("block", mass=0.2, inertia=inertia.box(0.2, (0.06, 0.04, 0.04)))
    m.body("ram", mass=ram, com=(0.15, 0, 0), inertia=inertia.box(ram, (0.3, 0.06, 0.06)))
    hinge(m, "main", m.ground, "crank", angles, at=(0.0, offset))
    hinge(m, "pin", "crank", "block", angles, at=crank)
    m.joint("slot", Prismatic(axis=(1, 0, 0)), "lever", "block", start=along)
    hinge(m, "pivot", m.ground, "lever", angles)
    hinge(m, "head", "lever", "rod", angles, at=lever)
    hinge(m, "wrist", "ram", "rod", angles, child_at=rod)
    m.joint("guide", Prismatic(axis=(1, 0, 0)), m.ground, "ram", at=(0, height, 0), start=x)
    m.shape("crank", Cylinder(1.25 * crank, 0.04, at=(0, 0, -0.07), colour="#65707d"))
    m.shape("crank", Cylinder(0.015, 0.09, at=(crank, 0, -0.01), colour="silver"))
    m.shape("block", Box((0.07, 0.05, 0.03), colour="#d9731a"))
    for y in (-0.035, 0.035):
        m.shape("lever", Box((0.85 * lever, 0.02, 0.03), at=(0.58 * lever, y, 0), colour="#3f5fbf"))
    m.shape("lever", Box((0.25 * lever, 0.05, 0.03), at=(0.06 * lever, 0, 0), colour="#3f5fbf"))
    m.shape("lever", Box((0.05, 0.09, 0.03), at=(lever, 0, 0), colour="#3f5fbf"))
    m.shape("rod", Rod((0, 0, 0.04), (rod, 0, 0.04), 0.014, colour="#2e8b57"))
    m.shape("ram", Box((0.4, 0.08, 0.08), at=(0.2, 0, 0.02), colour="#b9c2cc"))
    m.shape("ram", Box((0.03, 0.14, 0.04), at=(0.4, -0.05, 0.02), colour="#65707d"))
    return m


def scissor_lift(
    *, bar_length: float = 1.0, stages: int = 2, load: float = 50.0, angle: float = 0.5, density: float = 4.0
) -> Mechanism:
    """Crossed bars (m) in `stages`, one above the other, that lift a platform (kg) level and straight.

    The platform is at `stages bar_length sin(angle)`, with the angle (rad) of the bars to the ground. One foot is a
    hinge at the origin, the other slides along x; so do the bars under the platform. The force on the sliding foot
    that holds a load is `stages load g / tan(angle)`, however long the bars. `density` of the bars in kg/m.

    One freedom; Kutzbach `-2 - 3 stages`.
    """
    if stages < 1:
        raise ModelError(f"scissor_lift: stages must be 1 or more, got {stages}")
    m = Mechanism("scissor_lift", gravity=DOWN)
    l, width = bar_length, bar_length * np.cos(angle)
    slide = Prismatic(axis=(1, 0, 0))
    m.body("foot", mass=0.5, inertia=inertia.box(0.5, (0.08, 0.04, 0.04)))
    m.body("platform", mass=load, com=(l / 2, 0, 0), inertia=inertia.box(load, (l, 0.05, l / 2)))
    m.body("roller", mass=0.5, inertia=inertia.box(0.5, (0.08, 0.04, 0.04)))
    angles = {m.ground: 0.0, "foot": 0.0, "platform": 0.0, "roller": 0.0}
    for k in range(1, stages + 1):
        angles |= {f"rising{k}": angle, f"falling{k}": np.pi - angle}
        bar(m, f"rising{k}", l, density)
        bar(m, f"falling{k}", l, density)
    hinge(m, "base", m.ground, "rising1", angles)
    m.joint("rail", slide, m.ground, "foot", start=width)
    hinge(m, "heel", "foot", "falling1", angles)
    for k in range(1, stages + 1):
        hinge(m, f"cross{k}", f"rising{k}", f"falling{k}", angles, at=l / 2, child_at=l / 2)
        if k < stages:
            hinge(m, f"left{k}", f"falling{k}", f"rising{k + 1}", angles, at=l)
            hinge(m, f"right{k}", f"rising{k}", f"falling{k + 1}", angles, at=l)
    hinge(m, "corner", f"falling{stages}", "platform", angles, at=l)
    m.joint("track", slide, "platform", "roller", start=width)
    hinge(m, "top", f"rising{stages}", "roller", angles, at=l)
    return m


def v_engine(
    *, crank: float = 0.045, rod: float = 0.14, bank: float = np.pi / 2, piston: float = 0.45, flywheel: float = 8.0,
    angle: float = 0.4,
) -> Mechanism:  # fmt: skip
    """A V-twin: two pistons (kg) in bores `bank` (rad) apart, their rods on one pin of a crank with a flywheel (kg).

    Each piston is at `crank cos(t) + sqrt(rod^2 - crank^2 sin(t)^2)` along its bore, with the crank's angle t to that
    bore. At 90 degrees the first-order forces of the pistons add to a force of constant size that turns with the crank:
    a counterweight balances it. `angle` (rad) of the crank to x at the start; y halves the V.

    One freedom; Kutzbach -5.
    """
    m = Mechanism("v_engine", gravity=DOWN)
    radius, small = 2.6 * crank, 0.75 * crank
    m.body("crankshaft", mass=flywheel, inertia=inertia.cylinder(flywheel, radius, 0.6 * crank, axis="z"))
    pin = crank * direction(angle)
    angles = {m.ground: 0.0, "crankshaft": angle}
    hinge(m, "main", m.ground, "crankshaft", angles)
    for side, tilt in (("left", np.pi / 2 + bank / 2), ("right", np.pi / 2 - bank / 2)):
        bore = direction(tilt)
        t = angle - tilt
        x = crank * np.cos(t) + float(np.sqrt(rod**2 - (crank * np.sin(t)) ** 2))
        angles |= {f"{side} piston": tilt, f"{side} rod": angle_of(x * bore - pin)}
        m.body(f"{side} rod", mass=0.5, com=(rod / 3, 0, 0), inertia=inertia.rod(0.5, rod, axis="x"))
        m.body(f"{side} piston", mass=piston, inertia=inertia.cylinder(piston, small, 1.2 * small, axis="x"))
        hinge(m, f"{side} pin", "crankshaft", f"{side} rod", angles, at=crank)
        hinge(m, f"{side} wrist", f"{side} piston", f"{side} rod", angles, child_at=rod)
        along = Pose(rotation=np.column_stack([[*bore, 0], [-bore[1], bore[0], 0], [0, 0, 1]]))
        m.joint(f"{side} bore", Prismatic(axis=(1, 0, 0)), m.ground, f"{side} piston", at=along, start=x)
        _show_cylinder(m, side, along, crank, rod, small)
    _show_crankshaft(m, crank, radius)
    return m


def _show_crankshaft(m: Mechanism, crank: float, radius: float) -> None:
    """Flywheel behind, web with its counterweight, journal and crank pin along z."""
    web, deep = 0.5 * crank, 0.3 * crank
    m.shape(
        "crankshaft",
        Cylinder(radius, 0.5 * crank, at=(0, 0, -1.6 * crank), colour="#65707d"),
        Cylinder(0.45 * crank, 1.2 * crank, at=(0, 0, -1.3 * crank), colour="#9aa3ad"),
        Box((1.1 * crank, web, deep), at=(0.55 * crank, 0, -0.95 * crank), colour="#8d97a3"),
        Box((1.0 * crank, 1.7 * crank, deep), at=(-0.8 * crank, 0, -0.95 * crank), colour="#8d97a3"),
        Cylinder(0.3 * crank, 1.6 * crank, at=(crank, 0, -0.1 * crank), colour="#c3c9d0"),
    )


def _show_cylinder(m: Mechanism, side: str, along: Pose, crank: float, rod: float, radius: float) -> None:
    """Connecting rod with its eyes, piston with its crown, and the walls of the bore on the ground, cut open."""
    z = 0.3 * crank if side == "left" else -0.3 * crank
    rods = "#d9731a" if side == "left" else "#2e8b57"
    m.shape(
        f"{side} rod",
        Box((rod, 0.3 * crank, 0.2 * crank), at=(rod / 2, 0, z), colour=rods),
        Cylinder(0.48 * crank, 0.45 * crank, at=(0, 0, z), colour=rods),
        Cylinder(0.3 * crank, 0.45 * crank, at=(rod, 0, z), colour=rods),
    )
    m.shape(
        f"{side} piston",
        Cylinder(radius, 0.9 * radius, "x", at=(0.35 * radius, 0, 0), colour="#b9c2cc"),
        Cylinder(0.97 * radius, 0.3 * radius, "x", at=(0.85 * radius, 0, 0), colour="#8f99a5"),
    )
    middle, length = rod + 0.45 * radius, 2 * crank + 1.9 * radius
    for y in (-1.12 * radius, 1.12 * radius):
        wall = along @ Pose((middle, y, 0))
        m.shape(m.ground, Box((length, 0.16 * radius, 1.6 * radius), at=wall, colour="#aab2bd"))
    head = along @ Pose((middle + length / 2, 0, 0))
    m.shape(m.ground, Box((0.2 * radius, 2.4 * radius, 1.6 * radius), at=head, colour="#aab2bd"))


def excavator(*, swing: float = 0.3, boom: float = 0.8, stick: float = -1.9, bucket: float = -0.6) -> Mechanism:
    """An excavator's arm: house, boom, stick and bucket with three hydraulic cylinders; y is up.

    The house swings about y; `swing`, `boom`, `stick` and `bucket` (rad) are the coordinates of the hinges of these
    names at the start: of the boom to the level, of the stick to the boom, of the bucket to the stick. A cylinder is a
    barrel and a piston on a slide, whose coordinate is the length (m) of the cylinder: by the law of cosines for boom
    and stick. That of the bucket pushes the knee of two links, a four-bar with stick and bucket.

    Four freedoms; Kutzbach -8.
    """
    m = Mechanism("excavator", gravity=DOWN)
    m.body("house", mass=8000, com=(-0.8, 0.4, 0), inertia=inertia.box(8000, (3.0, 1.4, 2.4)))
    m.joint("swing", Revolute(axis=(0, 1, 0)), m.ground, "house", at=(0, 1, 0), start=swing)
    angles, origins = {"house": 0.0}, {"house": np.zeros(2)}

    def place(body: str, point: tuple[float, float]) -> np.ndarray:
        u = direction(angles[body])
        return origins[body] + point[0] * u + point[1] * np.array([-u[1], u[0]])

    def link(name: str, parent: str, at: tuple[float, float], angle: float, length: float, mass: float) -> None:
        angles[name], origins[name] = angle, place(parent, at)
        m.body(name, mass=mass, com=(length / 2, 0, 0), inertia=inertia.cylinder(mass, length / 12, length, axis="x"))
        hinge(m, name, parent, name, angles, at=at)

    def cylinder(of: str, parent: str, at: tuple[float, float], child: str, child_at: tuple[float, float]) -> None:
        between = place(child, child_at) - place(parent, at)
        length = float(np.linalg.norm(between))
        part, barrel, piston = 0.55 * length, f"{of} barrel", f"{of} piston"
        angles[barrel] = angles[piston] = angle_of(between)
        solid = inertia.cylinder(60, 0.06, part, axis="x")
        m.body(barrel, mass=60, com=(part / 2, 0, 0), inertia=solid)
        m.body(piston, mass=60, com=(-part / 2, 0, 0), inertia=solid)
        hinge(m, f"{of} foot", parent, barrel, angles, at=at)
        m.joint(f"{of} cylinder", Prismatic(axis=(1, 0, 0)), barrel, piston, start=length)
        hinge(m, f"{of} eye", child, piston, angles, at=child_at)

    link("boom", "house", (0.4, 0.2), boom, length=4.6, mass=1200)
    link("stick", "boom", (4.6, 0.0), boom + stick, length=2.4, mass=600)
    link("bucket", "stick", (2.4, 0.0), boom + stick + bucket, length=1.2, mass=450)
    pivot, ear, bar_length = (1.95, 0.05), (0.25, 0.3), 0.5
    knee = corner("excavator", place("stick", pivot), bar_length, place("bucket", ear), bar_length)
    for name, parent, at in (("rocker", "stick", pivot), ("bucket link", "bucket", ear)):
        link(name, parent, at, angle_of(knee - place(parent, at)), length=bar_length, mass=30)
    hinge(m, "knee", "rocker", "bucket link", angles, at=bar_length, child_at=bar_length)
    cylinder("boom", "house", (0.9, 0.0), "boom", (2.0, 0.25))
    cylinder("stick", "boom", (2.4, 0.5), "stick", (-0.5, 0.25))
    cylinder("bucket", "stick", (0.3, 0.45), "rocker", (bar_length, 0.0))
    m.frame("tip", "bucket", at=(1.2, 0, 0))
    _show_excavator(m)
    return m


def _show_excavator(m: Mechanism) -> None:
    """House and tracks, an angled boom, the bucket's plates, and yellow paint."""
    paint, dark, steel = "#e8b21d", "#3b4149", "#9aa3ad"
    m.shape(
        "house",
        Box((2.6, 0.9, 2.2), at=(-0.9, 0.55, 0), colour=paint),
        Box((0.5, 1.0, 2.3), at=(-2.3, 0.6, 0), colour=dark),
    )
    m.shape("house", Box((1.2, 1.3, 0.8), at=(0.1, 0.75, 0.75), colour=dark))
    for z in (-1.0, 1.0):
        m.shape(m.ground, Box((3.6, 0.7, 0.5), at=(-0.3, 0.4, z), colour=dark))
    m.shape(m.ground, Cylinder(0.8, 0.3, "y", at=(0, 0.85, 0), colour=dark))
    m.shape(
        "boom", Rod((0, 0, 0), (2.1, 0.35, 0), 0.19, colour=paint), Rod((2.1, 0.35, 0), (4.6, 0, 0), 0.17, colour=paint)
    )
    m.shape("boom", Rod((2.1, 0.3, 0), (2.4, 0.5, 0), 0.12, colour=paint))
    m.shape(
        "stick",
        Rod((-0.5, 0.25, 0), (0.2, 0.1, 0), 0.14, colour=paint),
        Rod((0.1, 0.1, 0), (2.4, 0, 0), 0.13, colour=paint),
    )
    m.shape("stick", Rod((0.2, 0.1, 0), (0.3, 0.45, 0), 0.08, colour=paint))
    m.shape("bucket", Box((0.7, 0.06, 0.9), at=Pose((0.35, 0.32, 0), rpy=(0, 0, 0.1)), colour=dark))
    m.shape("bucket", Box((0.06, 0.6, 0.9), at=Pose((0.72, 0.12, 0), rpy=(0, 0, -0.7)), colour=dark))
    for z in (-0.42, 0.42):
        m.shape("bucket", Box((0.75, 0.4, 0.06), at=(0.45, 0.15, z), colour=dark))
    for z in (-0.3, 0.0, 0.3):
        m.shape("bucket", Box((0.3, 0.05, 0.1), at=(1.05, -0.05, z), colour=steel))
    for of in ("boom", "stick", "bucket"):
        part = 2 * float(m.bodies[[body.name for body in m.bodies].index(f"{of} barrel")].com[0])
        m.shape(f"{of} barrel", Rod((0, 0, 0), (part, 0, 0), 0.09, colour=dark))
        m.shape(f"{of} piston", Rod((-part, 0, 0), (0, 0, 0), 0.05, colour=steel))
    for name in ("rocker", "bucket link"):
        m.shape(name, Rod((0, 0, 0), (0.5, 0, 0), 0.06, colour=steel))


def double_wishbone(*, lower: float = 0.40, upper: float = 0.30, stiffness: float = 30e3) -> Mechanism:
    """A front wheel on two wishbones (m), with a steering rack and a spring (N/m); x forwards, y to the left, z up.

    The hinges of both wishbones lie along x, their balls carry the knuckle; the tie rod, from the end of the rack to
    an arm of the knuckle, is level with the lower wishbone and as long. With `upper = lower` the knuckle rises without
    turning; with a shorter upper one, as usual, the wheel's top leans inwards when it rises.

    Three freedoms: rise, steering, and the wheel's turn; Kutzbach 3, no constraint is redundant.
    """
    m = Mechanism("double_wishbone")
    ball, top, arm = np.array([0.0, 0.75, 0.20]), np.array([0.0, 0.72, 0.48]), np.array([-0.12, 0.75, 0.22])
    ends = {"lower wishbone": (ball, lower), "upper wishbone": (top, upper), "tie rod": (arm, lower)}
    for (name, (_, length)), mass in zip(ends.items(), (4.0, 2.5, 1.0), strict=True):
        solid = inertia.rod(mass, length, axis="y") if name == "tie rod" else inertia.box(mass, (0.3, length, 0.03))
        m.body(name, mass=mass, com=(0, length / 2, 0), inertia=solid)
    m.body("rack", mass=2.0, inertia=inertia.rod(2.0, 0.5, axis="y"))
    m.body("knuckle", mass=6.0, com=(0, 0.02, 0.14), inertia=inertia.box(6.0, (0.1, 0.06, 0.3)))
    m.body("wheel", mass=16.0, inertia=inertia.cylinder(16.0, 0.31, 0.2, axis="y"))
    inner = {name: end - np.array([0, length, 0]) for name, (end, length) in ends.items()}
    for name in ("lower wishbone", "upper wishbone"):
        m.joint(f"{name} hinge", Revolute(axis=(1, 0, 0)), m.ground, name, at=inner[name])
    m.joint("lower ball", Spherical(), "lower wishbone", "knuckle", at=(0, lower, 0))
    m.joint("upper ball", Spherical(), "upper wishbone", "knuckle", at=(0, upper, 0), child_at=top - ball)
    m.joint("axle", Revolute(axis=(0, 1, 0)), "knuckle", "wheel", at=(0, 0.08, 0.11))
    m.joint("rack", Prismatic(axis=(0, 1, 0)), m.ground, "rack", at=inner["tie rod"])
    m.joint("tie rod inner", Universal(axis1=(1, 0, 0), axis2=Z), "rack", "tie rod")
    m.joint("tie rod outer", Spherical(), "tie rod", "knuckle", at=(0, lower, 0), child_at=arm - ball)
    m.spring(
        "coil", m.ground, "lower wishbone", stiffness=stiffness, length=0.42, damping=2e3,
        at1=(0, 0.55, 0.58), at2=(0, 0.75 * lower, 0),
    )  # fmt: skip
    for name, length, colour in (("lower wishbone", lower, "#3f5fbf"), ("upper wishbone", upper, "#2e8b57")):
        m.shape(name, *(Rod((x, 0, 0), (0, length, 0), 0.014, colour=colour) for x in (-0.15, 0.15)))
        m.shape(name, Rod((-0.18, 0, 0), (0.18, 0, 0), 0.018, colour=colour))
    m.shape("knuckle", Rod((0, 0, 0), top - ball, 0.022, colour="#8d97a3"))
    m.shape("knuckle", Rod((0, 0, 0.11), (0, 0.10, 0.11), 0.03, colour="#8d97a3"))
    m.shape("knuckle", Rod((0, 0, 0.02), arm - ball, 0.014, colour="#8d97a3"))
    m.shape("tie rod", Rod((0, 0, 0), (0, lower, 0), 0.010, colour="#d9731a"))
    m.shape("rack", Rod((0, -0.35, 0), (0, 0, 0), 0.016, colour="#b9c2cc"))
    m.shape("wheel", Cylinder(0.2, 0.05, "y", at=(0, 0.08, 0), colour="#b9c2cc"))
    m.shape("wheel", *(Rod((0, 0.12, 0), (0.17 * c, 0.12, 0.17 * s), 0.014, colour="#65707d") for c, s in _spokes(5)))
    m.shape(
        "wheel",
        *(part for y in (0.02, 0.08, 0.14) for part in ring(0.27, 0.09, (0, 1, 0), at=(0, y, 0), colour="#2b2f36")),
    )
    return m


def _spokes(count: int) -> list[tuple[float, float]]:
    return [(float(np.cos(t)), float(np.sin(t))) for t in 2 * np.pi * np.arange(count) / count]
