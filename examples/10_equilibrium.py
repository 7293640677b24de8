"""A governor that rises with its speed, and a truss that snaps through under its load."""

import numpy as np

import cardan as cd

# steady motion with loops: a governor of Porter, at 50 speeds at once
ball, sleeve, arm = 2.0, 3.0, 0.3  # kg, kg, m
m = cd.Mechanism("governor", gravity=(0, 0, -9.81))
m.body("spindle", mass=1.0, inertia=0.01 * np.eye(3))
m.body("sleeve", mass=sleeve, inertia=np.zeros((3, 3)))
m.joint("spin", cd.Revolute(axis=(0, 0, 1)), m.ground, "spindle")
m.joint("slide", cd.Prismatic(axis=(0, 0, 1)), "spindle", "sleeve", start=-1.8 * arm)
for side, y in (("left", 1.0), ("right", -1.0)):
    m.body(f"{side} arm", mass=ball, com=(0, 0, -arm), inertia=np.zeros((3, 3)))
    m.body(f"{side} link", mass=0.0, inertia=np.zeros((3, 3)))
    m.joint(f"{side} top", cd.Revolute(axis=(0, y, 0)), "spindle", f"{side} arm", start=-0.45)
    m.joint(f"{side} knee", cd.Revolute(axis=(0, y, 0)), f"{side} arm", f"{side} link", at=(0, 0, -arm), start=0.9)
    m.joint(f"{side} foot", cd.Revolute(axis=(0, y, 0)), "sleeve", f"{side} link", child_at=(0, 0, -arm))
governor = m.build()
speeds = np.linspace(9.5, 20.0, 50)  # rad/s
steady = cd.equilibrium(governor, rates={"spin": speeds}, stable=True)
height = -steady.coordinate("slide") / 2
print(f"the arms stand {height[0]:.3f} m below the top at {speeds[0]} rad/s, {height[-1]:.3f} m at {speeds[-1]} rad/s")
assert np.abs(height - (ball + sleeve) / ball * 9.81 / speeds**2).max() < 1e-12
assert steady.is_stable.all() and steady.is_steady.all()

# load and deflection of a shallow truss: the path turns back twice, where the truss snaps through
m = cd.Mechanism("truss", gravity=(0, 0, 0))
m.body("node", mass=1.0, inertia=np.zeros((3, 3)))
m.joint("y", cd.Prismatic(axis=(0, 1, 0)), m.ground, "node", start=0.2)
for name, x in (("left", -1.0), ("right", 1.0)):
    m.spring(name, "ground", "node", stiffness=1000.0, length=np.hypot(1, 0.2), at1=(x, 0, 0))
path = cd.equilibrium_path(m.build(), "y", (0.0, -10.0), max_step=0.3)
print(path)
y = np.sqrt(np.hypot(1, 0.2) ** (2 / 3) - 1)
limit = 2000 * y * (np.hypot(1, 0.2) / np.hypot(1, y) - 1)
assert len(path.turning_points) == 2 and abs(path.turning_points[0].value + limit) < 1e-10
