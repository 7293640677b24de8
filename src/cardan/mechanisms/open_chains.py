"""Open chains: pendulums, a cart with a pole, a gyroscope, a robot, two floating bodies.

Gravity is along -z unless stated.
"""

from __future__ import annotations

import numpy as np

from cardan.mechanisms.rings import ring as ring_of_rods
from cardan.model import inertia
from cardan.model.builder import Mechanism
from cardan.model.joint import Free, Prismatic, Revolute
from cardan.model.shape import Box, Cylinder, Rod, Sphere


def pendulum(*, mass: float = 1.0, length: float = 1.0) -> Mechanism:
    """A uniform rod hung from one end, swinging about y; q = 0 hangs along -z.

    Small swings have the period `2 pi sqrt(2 length / (3 g))`.
    """
    m = Mechanism("pendulum")
    rod = m.body("rod", mass=mass, com=(0, 0, -length / 2), inertia=inertia.rod(mass, length, axis="z"))
    m.joint("pivot", Revolute(axis=(0, 1, 0)), m.ground, rod)
    return m


def double_pendulum(*, mass: float = 1.0, length: float = 1.0) -> Mechanism:
    """Two equal uniform rods, hinged end to end, swinging about y."""
    m = pendulum(mass=mass, length=length)
    m.name = "double_pendulum"
    lower = m.body("lower", mass=mass, com=(0, 0, -length / 2), inertia=inertia.rod(mass, length, axis="z"))
    m.joint("elbow", Revolute(axis=(0, 1, 0)), "rod", lower, at=(0, 0, -length))
    return m


def cart_pole(*, cart: float = 1.0, pole: float = 0.1, length: float = 1.0) -> Mechanism:
    """A cart on rails along x with a uniform pole hinged on it; q = (x, angle), upright at angle 0."""
    m = Mechanism("cart_pole")
    m.body("cart", mass=cart, inertia=inertia.box(cart, (0.4, 0.2, 0.2)))
    m.body("pole", mass=pole, com=(0, 0, length / 2), inertia=inertia.rod(pole, length, axis="z"))
    m.joint("rail", Prismatic(axis=(1, 0, 0)), m.ground, "cart")
    m.joint("hinge", Revolute(axis=(0, 1, 0)), "cart", "pole")
    m.shape("cart", Box((0.4, 0.2, 0.2), colour="#3f5fbf"))
    m.shape("pole", Rod((0, -0.12, 0), (0, -0.12, length), 0.02, colour="#d9731a"))
    return m


def gyroscope(*, rotor: float = 2.0, radius: float = 0.1, weight: float = 0.5, arm: float = 0.22) -> Mechanism:
    """A rotor (kg, a disc of `radius` m) in two gimbals, with a `weight` (kg) on its axis, `arm` (m) from the centre.

    The outer gimbal turns about z, the inner one about x, and the rotor about y of the inner one. With the axis level
    and the rotor turning at `w` (rad/s) the weight does not sink: the axis turns about z with
    `weight g arm / (rotor radius^2 / 2 w)`, exactly.
    """
    m = Mechanism("gyroscope")
    ring = 1.6 * radius
    m.body("outer gimbal", mass=0.4, inertia=inertia.cylinder(0.4, 1.2 * ring, radius / 5, axis="x"))
    frame, com = inertia.cylinder(0.3, ring, radius / 5, axis="z"), weight * arm / (0.3 + weight)
    offset = np.diag([1.0, 0.0, 1.0]) * (0.3 * com**2 + weight * (arm - com) ** 2)
    m.body("inner gimbal", mass=0.3 + weight, com=(0, com, 0), inertia=frame + offset)
    m.body("rotor", mass=rotor, inertia=inertia.cylinder(rotor, radius, radius / 2, axis="y"))
    m.joint("precession", Revolute(axis=(0, 0, 1)), m.ground, "outer gimbal")
    m.joint("nutation", Revolute(axis=(1, 0, 0)), "outer gimbal", "inner gimbal")
    m.joint("spin", Revolute(axis=(0, 1, 0)), "inner gimbal", "rotor")
    m.frame("weight", "inner gimbal", at=(0, arm, 0))
    m.shape("outer gimbal", *ring_of_rods(1.2 * ring, radius / 8, (0, 1, 0), colour="#3f5fbf"))
    m.shape("inner gimbal", *ring_of_rods(ring, radius / 8, (0, 0, 1), colour="#2e8b57"))
    if arm:
        m.shape("inner gimbal", Rod((0, 0, 0), (0, arm, 0), radius / 20, colour="#2e8b57"))
    m.shape("inner gimbal", Sphere(radius / 4, at=(0, arm, 0), colour="#3b4149"))
    m.shape("rotor", Cylinder(radius, radius / 2, "y", colour="brass"), Rod((0, -ring, 0), (0, ring, 0), radius / 25))
    m.shape("rotor", Box((radius / 4, radius / 1.9, radius / 4), at=(0.7 * radius, 0, 0), colour="#3b4149"))
    return m


def scara(*, arm: float = 0.3, forearm: float = 0.25, load: float = 1.0) -> Mechanism:
    """A SCARA robot: two hinges about z, then a quill that slides along z and turns about it with a load (kg).

    The tool is at `(arm cos(A) + forearm cos(A+B), arm sin(A) + forearm sin(A+B))`, heading `A + B + C`; gravity loads
    the slide alone.
    """
    m = Mechanism("scara")
    for name, length, mass in (("arm", arm, 6.0), ("forearm", forearm, 4.0)):
        m.body(name, mass=mass, com=(length / 2, 0, 0), inertia=inertia.box(mass, (length, 0.1, 0.08)))
    m.body("quill", mass=0.8, com=(0, 0, -0.1), inertia=inertia.cylinder(0.8, 0.015, 0.3, axis="z"))
    m.body("gripper", mass=load, com=(0, 0, -0.04), inertia=inertia.box(load, (0.06, 0.04, 0.08)))
    m.joint("shoulder", Revolute(axis=(0, 0, 1)), m.ground, "arm", at=(0, 0, 0.4), start=0.5)
    m.joint("elbow", Revolute(axis=(0, 0, 1)), "arm", "forearm", at=(arm, 0, 0), start=0.8)
    m.joint("lift", Prismatic(axis=(0, 0, 1)), "forearm", "quill", at=(forearm, 0, 0))
    m.joint("wrist", Revolute(axis=(0, 0, 1)), "quill", "gripper", at=(0, 0, -0.25))
    m.frame("tool", "gripper", at=(0, 0, -0.08))
    m.shape(m.ground, Cylinder(0.08, 0.36, at=(0, 0, 0.18), colour="#65707d"), Box((0.3, 0.3, 0.03), colour="#3b4149"))
    for name, length, colour, z in (("arm", arm, "#d9731a", 0.0), ("forearm", forearm, "#f0f0f0", 0.08)):
        m.shape(name, Box((length, 0.1, 0.08), at=(length / 2, 0, z), colour=colour))
        m.shape(name, *(Cylinder(0.05, 0.08, at=(x, 0, z), colour=colour) for x in (0, length)))
    m.shape("quill", Rod((0, 0, -0.25), (0, 0, 0.2), 0.015, colour="silver"))
    m.shape("gripper", Box((0.06, 0.04, 0.03), at=(0, 0, -0.015), colour="#3b4149"))
    m.shape("gripper", *(Box((0.012, 0.03, 0.06), at=(x, 0, -0.055), colour="#3b4149") for x in (-0.022, 0.022)))
    return m


def two_body(*, seed: int = 0) -> Mechanism:
    """Two floating bodies and a hinge, the problem of F6 and F3, with random inertias and no gravity.

    B1's frame is at its centre of mass.
    """
    rng = np.random.default_rng(seed)
    m = Mechanism("two_body", gravity=(0, 0, 0))
    for name, com in (("B1", np.zeros(3)), ("B2", rng.uniform(-0.5, 0.5, 3))):
        m.body(name, mass=rng.uniform(0.5, 2), com=com, inertia=random_inertia(rng))
    m.joint("root", Free(), m.ground, "B1")
    m.joint("hinge", Revolute(axis=rng.standard_normal(3)), "B1", "B2", at=rng.uniform(-0.5, 0.5, 3))
    return m


def chain(links: int, *, length: float = 0.2, mass: float = 1.0) -> Mechanism:
    """A hanging chain of equal rods on hinges with axes that alternate between y and x."""
    m = Mechanism(f"chain_{links}")
    before = m.ground
    for k in range(links):
        rod = inertia.cylinder(mass, length / 10, length, axis="z")
        link = m.body(f"link{k + 1}", mass=mass, com=(0, 0, -length / 2), inertia=rod)
        axis = (0, 1, 0) if k % 2 == 0 else (1, 0, 0)
        m.joint(f"joint{k + 1}", Revolute(axis=axis), before, link, at=(0, 0, -length if k else 0))
        before = link
    return m


def random_inertia(rng: np.random.Generator) -> np.ndarray:
    """Inertia (3, 3) of a random solid: any mass distribution along three axes obeys the triangle rule."""
    A = rng.standard_normal((3, 3))
    P = A @ A.T + 0.1 * np.eye(3)  # second moments of mass
    return np.trace(P) * np.eye(3) - P
