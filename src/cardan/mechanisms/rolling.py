"""What rolls, slides on edges, or follows a cam: mechanisms with constraint elements. The ground is the plane z = 0."""

from __future__ import annotations

import numpy as np

from cardan.algebra.rotation import turn_x, turn_y
from cardan.errors import ModelError
from cardan.mechanisms.rings import ring
from cardan.model import inertia
from cardan.model.builder import Mechanism
from cardan.model.joint import Free, Planar, Prismatic, Revolute
from cardan.model.pose import Pose
from cardan.model.shape import Box, Cylinder, Extrusion, Rod, Sphere

X, Y, Z = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)
WIDTH = 0.18  # of a tyre, m


def rolling_disc(*, radius: float = 0.3, mass: float = 2.0) -> Mechanism:
    """A thin disc that rolls on the ground like a coin; its axis is y of the body, and at the start it stands upright.

    Three freedoms of its rates: it turns about the vertical, leans and rolls. With the axis at an angle b from the
    vertical it precesses steadily at the rate W if it spins about its axis at w, where
    `6 r W w sin b - r W^2 sin b cos b + 4 g cos b = 0`.
    """
    m = Mechanism("rolling_disc")
    m.body("disc", mass=mass, inertia=np.diag([mass * radius**2 / 4, mass * radius**2 / 2, mass * radius**2 / 4]))
    m.joint("float", Free(), m.ground, "disc", start=(0, 0, radius, 1, 0, 0, 0))
    m.roll("rim", "disc", m.ground, radius=radius, axis=Y)
    m.shape(
        "disc", Cylinder(radius, 0.04 * radius, "y", colour="#d9731a"), *ring(radius, 0.06 * radius, Y, colour="brass")
    )
    m.shape("disc", Rod((0, 0, -0.9 * radius), (0, 0, 0.9 * radius), 0.04 * radius, colour="#ffffff"))
    return m


def chaplygin_sleigh(*, ahead: float = 0.3, mass: float = 10.0, inertia_about_centre: float = 0.6) -> Mechanism:
    """A sleigh on ice on one blade and two sliding feet; its centre of mass is `ahead` (m) of the blade.

    Two freedoms of its rates, the speed u along the blade and the turning w: `u' = ahead w^2` and
    `w' = -mass ahead u w / (I + mass ahead^2)`. It ends up running straight, centre of mass first.
    """
    m = Mechanism("chaplygin_sleigh")
    I = inertia_about_centre
    m.body("sleigh", mass=mass, com=(ahead, 0, 0.15), inertia=(I / 2, I / 2, I))
    m.joint("ice", Planar(), m.ground, "sleigh")
    m.knife_edge("blade", "sleigh", edge=X)
    m.shape("sleigh", Box((0.5, 0.02, 0.06), at=(0, 0, 0.03), colour="#65707d"))
    m.shape("sleigh", Box((0.9, 0.5, 0.04), at=(ahead, 0, 0.15), colour="wood"))
    for y in (-0.2, 0.2):
        m.shape("sleigh", Rod((0.65, y, 0.02), (0.65, y, 0.15), 0.02, colour="#65707d"))
    m.shape("sleigh", Sphere(0.06, at=(ahead, 0, 0.23), colour="#d9731a"))
    return m


def snakeboard(*, length: float = 0.25, board: float = 4.0, rotor: float = 3.0, truck: float = 0.8) -> Mechanism:
    """A snakeboard: a board whose two trucks turn against each other, `length` (m) from its middle; masses in kg.

    The rider is the rotor in its middle. Three freedoms of its rates: turning of the board, the trucks, the rotor. Who
    swings rotor and trucks in step is carried along without pushing off.
    """
    m = Mechanism("snakeboard")
    m.body("board", mass=board, inertia=inertia.box(board, (2 * length, 0.2, 0.03)))
    m.joint("floor", Planar(), m.ground, "board")
    m.body("rotor", mass=rotor, inertia=inertia.box(rotor, (0.1, 0.5, 0.05)))
    m.joint("rider", Revolute(axis=Z), "board", "rotor", at=(0, 0, 0.1))
    for name, x in (("front", length), ("back", -length)):
        m.body(name, mass=truck, inertia=inertia.box(truck, (0.05, 0.3, 0.05)))
        m.joint(name, Revolute(axis=Z), "board", name, at=(x, 0, 0), start=0.4 if x > 0 else -0.4)
        m.knife_edge(f"{name} wheels", name, edge=X)
        m.shape(name, Rod((0, -0.12, -0.03), (0, 0.12, -0.03), 0.012, colour="#65707d"))
        m.shape(name, *(Cylinder(0.03, 0.03, "y", at=(0, y, -0.03), colour="#3b4149") for y in (-0.12, 0.12)))
    m.couple("steering", {"front": 1.0, "back": 1.0})
    m.shape("board", Box((2.6 * length, 0.18, 0.02), at=(0, 0, 0.01), colour="wood"))
    m.shape("rotor", Box((0.08, 0.5, 0.05), colour="#3f5fbf"), Cylinder(0.03, 0.12, at=(0, 0, -0.04), colour="#8d97a3"))
    return m


def ball_on_turntable(*, radius: float = 0.05, mass: float = 0.2, place: float = 0.1) -> Mechanism:
    """A uniform ball (kg) that rolls on a turntable about z, at the start `place` (m) from its axis.

    Four freedoms of its rates. While the table turns at the rate W the ball goes round in circles at 2/7 W, about a
    place that depends on how it was set down.
    """
    m = Mechanism("ball_on_turntable")
    m.body("table", mass=5.0, inertia=inertia.cylinder(5.0, 0.6, 0.03, axis="z"))
    m.joint("axle", Revolute(axis=Z), m.ground, "table")
    m.body("ball", mass=mass, inertia=inertia.sphere(mass, radius))
    m.joint("float", Free(), m.ground, "ball", start=(place, 0, radius, 1, 0, 0, 0))
    m.roll("contact", "ball", "table", radius=radius)
    m.shape("table", Cylinder(0.6, 0.03, at=(0, 0, -0.015), colour="#3f5fbf"))
    m.shape("table", Box((0.5, 0.03, 0.002), at=(0.3, 0, 0.0), colour="#ffffff"))
    m.shape("ball", Sphere(radius, colour="#d9731a"), *ring(1.005 * radius, 0.1 * radius, X, colour="#ffffff"))
    return m


def vehicle(*, base: float = 2.6, track: float = 1.5, radius: float = 0.32, chassis: float = 1200.0) -> Mechanism:
    """A car: four wheels that roll, Ackermann's steering and its column; `base`, `track` and `radius` in m.

    Two freedoms of its rates, speed and steering. The body runs on a plane, so that the wheels hold along and across,
    not up. The wheels of the rear axle hold the same across, and with Ackermann's angles,
    `cot(right) - cot(left) = track / base`, the second front wheel adds nothing either: it holds along only.
    """
    import casadi as ca

    m = Mechanism("vehicle")
    m.body("chassis", mass=chassis, com=(0.48 * base, 0, 0.5), inertia=inertia.box(chassis, (4.2, 1.6, 1.0)))
    m.joint("road", Planar(), m.ground, "chassis")
    m.body("column", mass=2.0, inertia=inertia.cylinder(2.0, 0.18, 0.05, axis="z"))
    m.joint("column", Revolute(axis=Z), "chassis", "column", at=(0.55 * base, 0.2 * track, 0.9))
    for side, y in (("left", track / 2), ("right", -track / 2)):
        m.body(f"rear {side}", mass=18.0, inertia=inertia.cylinder(18.0, 0.8 * radius, WIDTH, axis="y"))
        m.joint(f"rear {side}", Revolute(axis=Y), "chassis", f"rear {side}", at=(0, y, radius))
        m.body(f"knuckle {side}", mass=12.0, inertia=inertia.box(12.0, (0.2, 0.2, 0.2)))
        m.joint(f"steer {side}", Revolute(axis=Z), "chassis", f"knuckle {side}", at=(base, y, radius))
        m.body(f"front {side}", mass=18.0, inertia=inertia.cylinder(18.0, 0.8 * radius, WIDTH, axis="y"))
        m.joint(f"front {side}", Revolute(axis=Y), f"knuckle {side}", f"front {side}")
        m.roll(f"rear {side} tyre", f"rear {side}", m.ground, holds=("longitudinal", "lateral"), radius=radius, axis=Y)
        holds = ("longitudinal", "lateral") if side == "left" else ("longitudinal",)
        m.roll(f"front {side} tyre", f"front {side}", m.ground, holds=holds, radius=radius, axis=Y)
        for wheel in (f"rear {side}", f"front {side}"):
            m.shape(wheel, Cylinder(radius, WIDTH, "y", colour="#3b4149"))
            m.shape(wheel, Cylinder(0.6 * radius, 1.05 * WIDTH, "y", colour="#c9d0d8"))
            m.shape(wheel, Box((1.1 * radius, 1.1 * WIDTH, 0.05), colour="#65707d"))
    m.couple("gear", {"column": 1.0, "steer left": -12.0})
    ratio = track / base
    law = lambda a, b: ca.sin(a - b) - ratio * ca.sin(a) * ca.sin(b)
    m.couple("ackermann", ["steer left", "steer right"], law)
    m.torsion("self-centring", "steer left", stiffness=30.0)
    m.shape("chassis", Box((4.2, 1.5, 0.5), at=(base / 2, 0, 0.55), colour="#c0392b"))
    m.shape("chassis", Box((2.0, 1.3, 0.45), at=(0.42 * base, 0, 1.02), colour="#dfe6ec"))
    m.shape("column", *ring(0.18, 0.03, Z, colour="#222222", rods=16))
    return m


def cam_follower(*, base: float = 0.05, lift: float = 0.012, spring: float = 800.0) -> Mechanism:
    """A cam about z and a roller follower along y, with a spring (N/m) that presses it on; gravity along -y.

    One freedom. The roller's centre is at `base + lift cos(angle)` (m) from the axis of the cam, at any angle of the
    cam; above the axis the height of the follower is `base + lift sin(turn)`.
    """
    import casadi as ca

    if not 0 < lift < base:
        raise ModelError(f"cam_follower: lift must be above 0 and below base, got {lift:g} and {base:g} m")
    m = Mechanism("cam_follower", gravity=(0, -9.81, 0))
    m.body("cam", mass=1.0, inertia=inertia.cylinder(1.0, base, 0.02, axis="z"))
    m.joint("shaft", Revolute(axis=Z), m.ground, "cam")
    m.body("follower", mass=0.3, com=(0, 0.05, 0), inertia=inertia.rod(0.3, 0.1, axis="y"))
    m.joint("guide", Prismatic(axis=Y), m.ground, "follower", start=base)
    m.cam("contact", "follower", "cam", lambda angle: base + lift * ca.cos(angle))
    top = base + 0.2
    m.spring("spring", m.ground, "follower", stiffness=spring, length=0.14, at1=(0, top, 0), at2=(0, 0.08, 0))
    roller = 0.4 * (base - lift)
    turns = 2 * np.pi * np.arange(48) / 48
    pitch = (base + lift * np.cos(turns))[:, None] * np.column_stack([np.cos(turns), np.sin(turns)])
    along = np.roll(pitch, -1, 0) - np.roll(pitch, 1, 0)
    outline = pitch - roller * np.column_stack([along[:, 1], -along[:, 0]]) / np.linalg.norm(along, axis=1)[:, None]
    m.shape(
        "cam",
        Extrusion([tuple(corner) for corner in outline], 0.02, colour="#3f5fbf"),
        Cylinder(0.2 * roller, 0.024, colour="#ffffff"),
    )
    m.shape(
        "follower",
        Cylinder(roller, 0.02, colour="#d9731a"),
        Box((0.012, 0.12, 0.02), at=(0, 0.06, 0), colour="#65707d"),
    )
    return m


def rzeppa(*, angle: float = 0.5) -> Mechanism:
    """Two shafts in fixed bearings at an `angle` (rad), joined by a constant-velocity joint; the first lies along x.

    One freedom: whatever the angle, the shafts turn alike. A `cardan_joint` in the same place does not.
    """
    if not abs(angle) < np.pi / 2:
        raise ModelError(f"rzeppa: angle must be below a right angle, got {angle:g} rad")
    m = Mechanism("rzeppa", gravity=(0, 0, 0))
    along = turn_y(np.pi / 2)  # takes z, along which the joint has its shafts, to x
    tilt = Pose(rotation=turn_x(np.pi / 2) @ turn_y(angle) @ turn_x(-np.pi / 2))
    for name, x in (("in", -0.5), ("out", 0.5)):
        m.body(name, mass=2.0, com=(x / 2, 0, 0), inertia=inertia.cylinder(2.0, 0.04, 0.5, axis="x"))
        m.shape(name, Rod((0, 0, 0), (x, 0, 0), 0.02, colour="#65707d"), Sphere(0.05, colour="#8d97a3"))
        m.shape(name, Box((0.03, 0.03, 0.14), at=(0.8 * x, 0, 0.05), colour="#d9731a" if x < 0 else "#3f5fbf"))
    m.joint("input", Revolute(axis=X), m.ground, "in")
    m.joint("output", Revolute(axis=X), m.ground, "out", at=tilt)
    m.constant_velocity("joint", "in", "out", at1=Pose(rotation=along), at2=Pose(rotation=along), holds="twist")
    return m
