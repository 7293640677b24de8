"""Inverse kinematics: a platform on six legs, a redundant arm with limits and priorities, and a target out of reach."""

import numpy as np

import cardan as cd
from cardan.mechanisms import stewart_platform

# a closed-loop machine: the lengths of six legs for a thousand poses of the platform, in one call
model = stewart_platform().build()
rng = np.random.default_rng(0)
poses = np.tile(np.eye(4), (1000, 1, 1))
poses[:, :3, 3] = rng.uniform((-0.1, -0.1, 0.9), (0.1, 0.1, 1.1), (1000, 3))
found = cd.inverse_kinematics(model, {"platform": poses})
print(found)
foot, head = model.joint("foot1").at.position, model.joint("ball1").child_at.position
expected = np.linalg.norm(poses[:, :3, 3] + head - foot, axis=1)  # the closed form
assert found.reached.all()
assert np.abs(found.q[:, model.q_slice("slider1").start] - expected).max() < 1e-9
assert np.abs(cd.constraint_residual(model, found.q)).max() < 1e-13

# a planar arm with more joints than needed: first the tip, then its direction, the rest near the start
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
q0 = np.array([0.3, 0.3, 0.0, 0.0])
best = cd.inverse_kinematics(arm, [tip, level], q0, prefer="near")
print(best, best.q)
assert best.reached and np.abs(best.q).max() <= 2.0

# out of reach: how far it gets, and why
short = cd.inverse_kinematics(arm, {"tip": [-1.0, 0.0, 0.0]}, limits={"joint0": (-1.0, 1.0)})
print(short.why())
assert not short.reached and short.held_back.any()
