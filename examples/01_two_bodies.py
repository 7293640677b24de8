"""Two bodies and a hinge: with 6-D vectors, with 3-D vectors, and with the general algorithms (F6, F3)."""

import numpy as np

import cardan as cd
from cardan.mechanisms import random_inertia

rng = np.random.default_rng(7)
m1, m2 = 1.5, 0.7
I1, I2 = random_inertia(rng), random_inertia(rng)
P, C2 = np.array([0.3, 0.0, 0.1]), np.array([0.5, 0.2, 0.1])  # hinge, and B2's centre of mass, from B1's
s = np.array([0.0, 0.6, 0.8])
force, couple = np.array([1.0, 0.0, 2.0]), np.array([0.0, 0.3, 0.0])

# F3(26): 3-D vectors, about B1's centre of mass.
ABCD = cd.textbook.two_body_matrix(m1, I1, P, m2, I2, P - C2, s)
a1, w1dot = np.split(np.linalg.solve(ABCD, np.r_[force, couple]), 2)

# The general algorithms: a free body with another one on a hinge.
m = cd.Mechanism("two_body", gravity=(0, 0, 0))
m.body("B1", mass=m1, inertia=I1)
m.body("B2", mass=m2, com=C2 - P, inertia=I2)
m.joint("root", cd.Free(), m.ground, "B1")
m.joint("hinge", cd.Revolute(axis=s), "B1", "B2", at=P)
model = m.build()
wrenches = np.array([np.r_[couple, force], np.zeros(6)])
a = cd.forward_dynamics(model, model.neutral(), np.zeros(model.nv), wrenches=wrenches)

print("B1 turns ", w1dot, a[:3])
print("B1 moves ", a1, a[3:6])
assert np.allclose(a[:6], np.r_[w1dot, a1], rtol=1e-12, atol=1e-13)
