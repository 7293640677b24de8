"""Gears: bodies on hinges, with couplings for their teeth. No gravity."""

from __future__ import annotations

import numpy as np

from cardan.errors import ModelError
from cardan.mechanisms.rings import ring as ring_of_rods
from cardan.model import inertia
from cardan.model.builder import Mechanism
from cardan.model.joint import Revolute
from cardan.model.shape import Box, Cylinder, Rod

X, Y, Z = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)
WIDTH = 0.03  # of a gear, m


def planetary_gear(*, sun: int = 24, ring: int = 72, planets: int = 3, module: float = 0.004) -> Mechanism:
    """Sun, ring and carrier about z with planets between; `sun` and `ring` are numbers of teeth, `module` in m.

    Willis: `sun w_sun + ring w_ring = (sun + ring) w_carrier`. With the ring held the carrier turns `1 + ring/sun`
    times slower than the sun, four times by default. The hinge of a planet is on the carrier; its coordinate is the
    angle to it.

    Two freedoms: the couplings of the teeth take one for each planet, and one for the ring.
    """
    if not 0 < sun < ring or (ring - sun) % 2:
        raise ModelError(f"planetary_gear: ring - sun must be positive and even, got {ring} and {sun} teeth")
    m = Mechanism("planetary_gear", gravity=(0, 0, 0))
    teeth = (ring - sun) // 2
    centres = module * (sun + teeth) / 2
    for name, number, mass in (("sun", sun, 1.0), ("carrier", sun + teeth, 2.0), ("ring", ring, 4.0)):
        m.body(name, mass=mass, inertia=inertia.cylinder(mass, module * number / 2, WIDTH, axis="z"))
        m.joint(name, Revolute(axis=Z), m.ground, name)
    for k in range(1, planets + 1):
        turn = 2 * np.pi * (k - 1) / planets
        m.body(f"planet{k}", mass=0.8, inertia=inertia.cylinder(0.8, module * teeth / 2, WIDTH, axis="z"))
        at = (centres * np.cos(turn), centres * np.sin(turn), 0)
        m.joint(f"planet{k}", Revolute(axis=Z), "carrier", f"planet{k}", at=at)
        m.couple(f"sun and planet{k}", {"sun": sun, "carrier": -sun, f"planet{k}": teeth})
    m.couple("ring and planet1", {"ring": ring, "carrier": -ring, "planet1": -teeth})
    _show_gear(m, "sun", module * sun / 2, "#d9731a")
    m.shape("ring", *ring_of_rods(module * ring / 2 + 0.006, 0.016, colour="#65707d", rods=36))
    m.shape("ring", Box((0.02, 0.02, WIDTH), at=(module * ring / 2 + 0.012, 0, 0), colour="#3b4149"))
    for k in range(1, planets + 1):
        _show_gear(m, f"planet{k}", module * teeth / 2, "#3f5fbf")
        end = centres * np.array([np.cos(2 * np.pi * (k - 1) / planets), np.sin(2 * np.pi * (k - 1) / planets), 0])
        m.shape("carrier", Rod((0, 0, -0.03), end - [0, 0, 0.03], 0.008, colour="#2e8b57"))
        m.shape("carrier", Rod((0, 0, -0.03), (0, 0, 0.02), 0.006, at=end, colour="#2e8b57"))
    return m


def _show_gear(m: Mechanism, name: str, radius: float, colour: str) -> None:
    """A disc, with a spot from which its turn is seen."""
    m.shape(name, Cylinder(0.98 * radius, WIDTH, colour=colour))
    m.shape(name, Cylinder(0.15 * radius, 0.2 * WIDTH, at=(0.65 * radius, 0, 0.5 * WIDTH), colour="#ffffff"))


def differential(*, case: float = 3.0, shaft: float = 2.0, pinion: float = 0.4) -> Mechanism:
    """The differential of a car: case and two half-shafts about x, and a bevel pinion (masses in kg) in the case.

    The speeds of the shafts add to twice that of the case, and the pinion turns by half their difference: side gears
    and pinion are of equal size. Whatever the speeds, the torques on the two shafts are equal without inertia.

    Two freedoms: the couplings of the teeth take two of four.
    """
    m = Mechanism("differential", gravity=(0, 0, 0))
    m.body("case", mass=case, inertia=inertia.cylinder(case, 0.1, 0.15, axis="x"))
    m.joint("case", Revolute(axis=X), m.ground, "case")
    for side, x in (("left", -0.4), ("right", 0.4)):
        m.body(f"{side} shaft", mass=shaft, com=(x / 2, 0, 0), inertia=inertia.cylinder(shaft, 0.05, 0.4, axis="x"))
        m.joint(side, Revolute(axis=X), m.ground, f"{side} shaft")
        m.frame(f"{side} hub", f"{side} shaft", at=(x, 0, 0))
    m.body("pinion", mass=pinion, inertia=inertia.cylinder(pinion, 0.05, 0.03, axis="y"))
    m.joint("pinion", Revolute(axis=Y), "case", "pinion", at=(0, 0.05, 0))
    m.couple("left teeth", {"left": 1.0, "case": -1.0, "pinion": -1.0})
    m.couple("right teeth", {"right": 1.0, "case": -1.0, "pinion": 1.0})
    m.shape(
        "case", *(part for x in (-0.07, 0.07) for part in ring_of_rods(0.1, 0.02, X, at=(x, 0, 0), colour="#8d97a3"))
    )
    m.shape(
        "case", *(Rod((-0.07, y, z), (0.07, y, z), 0.008, colour="#8d97a3") for y, z in ((0.1, 0), (0, 0.1), (0, -0.1)))
    )
    for side, x, colour in (("left", -1, "#3f5fbf"), ("right", 1, "#2e8b57")):
        m.shape(f"{side} shaft", Cylinder(0.05, 0.02, "x", at=(0.04 * x, 0, 0), colour=colour))
        m.shape(f"{side} shaft", Rod((0.04 * x, 0, 0), (0.4 * x, 0, 0), 0.015, colour=colour))
        m.shape(f"{side} shaft", Cylinder(0.07, 0.02, "x", at=(0.4 * x, 0, 0), colour=colour))
        m.shape(f"{side} shaft", Box((0.024, 0.02, 0.05), at=(0.4 * x, 0, 0.04), colour="#ffffff"))
    m.shape("pinion", Cylinder(0.045, 0.02, "y", colour="#d9731a"))
    m.shape("pinion", Rod((0, 0, 0), (0, 0.05, 0), 0.012, colour="#d9731a"))
    return m
