"""Open chains: pendulums, a cart with a pole, two floating bodies. Gravity is along -z unless stated."""

from __future__ import annotations

import numpy as np

from cardan.model import inertia
from cardan.model.builder import Mechanism
from cardan.model.joint import Free, Prismatic, Revolute


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
