"""A four-bar from end to end: its branches, dead points and transmission angle."""

import numpy as np

import cardan as cd
from cardan.mechanisms import four_bar

base, crank, coupler, rocker = 1.0, 0.4, 0.9, 0.7
model = four_bar(base=base, crank=crank, coupler=coupler, rocker=rocker).build()

# the crank drives: two ways to assemble it, and the rocker rests where crank and coupler are in line
driven = cd.branches(model, "A", output="D")
print(driven)
ends = [
    np.pi - np.arccos((base**2 + rocker**2 - x**2) / (2 * base * rocker)) for x in (coupler + crank, coupler - crank)
]
assert len(driven) == 2 and not driven.dead_points
assert np.allclose(sorted(s.output for s in driven.singular), [-ends[1], -ends[0], ends[0], ends[1]])

# the rocker drives: the same positions are dead points
assert len(cd.branches(model, "D", output="A").dead_points) == 4

# the transmission angle over a turn of the crank, and its extremes where the crank lies along the base
q = driven.branches[0].q
mu = cd.transmission_angle(model, q, "coupler", "rocker")
extremes = [np.arccos((coupler**2 + rocker**2 - x**2) / (2 * coupler * rocker)) for x in (base - crank, base + crank)]
print(f"transmission angle {np.degrees(mu.min()):.1f} to {np.degrees(mu.max()):.1f} deg")
assert np.allclose([mu.min(), mu.max()], extremes, atol=1e-3)
