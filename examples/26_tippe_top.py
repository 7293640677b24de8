"""The tippe top: a top that turns over and spins on its stem, because its point of contact slides.

Friction there acts at one point, so the angular momentum along the line from it to the centre of mass cannot change:
Jellett's number. It is kept while the top loses spin, rises and inverts. Friction grows with the speed of sliding here.
Dry friction sticks before a top that stands nearly upright has risen, and it then only rolls.
"""

from itertools import pairwise

import casadi as ca
import numpy as np

import cardan as cd

g, R, a, mass = 9.81, 0.02, 0.003, 0.006  # m/s^2; radius, centre of mass below the centre of the sphere (m); kg
spun = 2 / 5 * mass * R**2
tilted = 131 / 132 * spun

m = cd.Mechanism("tippe top", gravity=(0, 0, -g))
m.body("top", mass=mass, com=(0, 0, -a), inertia=(tilted, tilted, spun))
m.joint("free", cd.Free(), m.ground, "top", start=(0, 0, R, np.cos(0.1), np.sin(0.1), 0, 0))
m.roll("tip", "top", m.ground, radius=R, holds="normal")


def rub(t, poses, twists):
    """Friction at the point of contact, against its sliding."""
    down = poses[0].rotation.T @ ca.vertcat(0, 0, -R)
    force = -2.0 * mass * g * (twists[0][3:] + ca.cross(twists[0][:3], down))
    return [ca.vertcat(ca.cross(down, force), force)]


m.user_force("rub", ["top"], rub)

# what is seen: a ball cut off at 0.8 of its radius, and the stem
angle = np.linspace(-np.pi / 2, np.arcsin(0.8), 14)
rings = [cd.shape.Cylinder(R * np.cos(b), R * (np.sin(c) - np.sin(b)), at=(0, 0, R * (np.sin(b) + np.sin(c)) / 2),
                           colour="red" if k % 2 else "wood")
         for k, (b, c) in enumerate(pairwise(angle[1:]))]  # fmt: skip
m.shape("top", *rings, cd.shape.Cylinder(0.15 * R, 1.1 * R, at=(0, 0, 1.3 * R), colour="black"))
model = m.build()

start, rates = cd.assemble(model, v=[0, 0, 155.0, 0, 0, 0])
run = cd.simulate(model, 2.0, start, rates, samples=801, rtol=1e-7, atol=1e-9)
run.page("tippe_top.html", overwrite=True)

axes = run.poses[:, 0, :3, :3]
momentum = np.einsum("tij,tj->ti", axes, run.v[:, :3] * [tilted, tilted, spun])
jellett = (momentum * (a * axes[:, :, 2] - [0, 0, R])).sum(axis=1)
upright = axes[:, 2, 2]
print(f"it lies on its side after {run.time[upright < 0][0]:.2f} s, and stands on its stem after "
      f"{run.time[upright < -0.95][0]:.2f} s")  # fmt: skip
print(f"energy {1e3 * run.energy[0]:.2f} mJ to {1e3 * run.energy[-1]:.2f} mJ; Jellett's number to "
      f"{np.abs(jellett / jellett[0] - 1).max():.0e}")  # fmt: skip
assert upright[0] > 0.97 and upright[-1] < -0.9 and np.abs(jellett / jellett[0] - 1).max() < 1e-6
