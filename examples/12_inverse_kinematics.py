"""Inverse kinematics: a closed-loop machine, an arm with limits and priorities, and a target out of reach."""

import numpy as np

import cardan as cd
from cardan.mechanisms import five_bar

# a five-bar: both cranks for a thousand positions of the pin C that joins its links, in one call
model = five_bar(base=0.8, crank=0.5, link=0.7).build()
rng = np.random.default_rng(0)
points = rng.uniform((0.2, 0.4, 0.0), (0.6, 0.8, 0.0), (1000, 3))
found = cd.inverse_kinematics(model, cd.Target("left link", position=points, point=(0.7, 0, 0)))
print(found)
distance = np.linalg.norm(points, axis=1)
inner = np.arccos((0.5**2 + distance**2 - 0.7**2) / (2 * 0.5 * distance))  # the law of cosines
either = np.arctan2(points[:, 1], points[:, 0]) + inner[:, None].T * [[1], [-1]]
assert found.reached.all()
assert np.abs(np.exp(1j * found.q[:, 0]) - np.exp(1j * either)).min(axis=0).max() < 1e-9
assert np.abs(cd.constraint_residual(model, found.q)).max() < 1e-13

# a planar arm with more joints than needed: first the tip, then its direction
m = cd.Mechanism("arm")
parent, x = m.ground, 0.0
for k, length in enumerate((0.6, 0.5, 0.4, 0.3)):
    body = m.body(f"link{k}", mass=1.0, com=(length / 2, 0, 0), inertia=0.01 * np.eye(3))
    m.joint(f"joint{k}", cd.Revolute(axis=(0, 0, 1)), parent, body, at=(x, 0, 0), data=cd.JointData(-2.0, 2.0))
    parent, x = body, length
m.frame("tip", parent, at=(x, 0, 0))
arm = m.build()
tip = cd.Target("tip", position=[1.0, 0.6, 0.0])
level = cd.Target("tip", direction=[1.0, 0.0, 0.0], axis=[1, 0, 0], priority=2)
both = cd.inverse_kinematics(arm, [tip, level], [0.3, 0.3, 0.0, 0.0])
print(both, both.q)
assert both.reached and np.abs(both.q).max() <= 2.0 and abs(both.q.sum()) < 1e-6

# out of reach: how far it gets, and why
short = cd.inverse_kinematics(arm, {"tip": [-1.0, 0.0, 0.0]}, limits={"joint0": (-1.0, 1.0)})
print(short.why())
assert not short.reached and short.held_back.any()
