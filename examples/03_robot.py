"""A robot from URDF: mass, pose of the tool, holding torques, joint loads."""

from importlib.resources import as_file, files

import numpy as np

import cardan as cd

with as_file(files("cardan") / "data" / "arm.urdf") as path:
    model = cd.load(path)
print(model.report())

q = np.array([0.3, -0.8, 1.2, 0.1, 0.5, 0.0])
rest = np.zeros(model.nv)
print("tool at", cd.frame_pose(model, q, "tool")[:3, 3], "m")
print("holding torques", cd.gravity_force(model, q), "N m")

# At rest the force in the first joint is the weight of all bodies beyond it.
wrench = cd.joint_wrenches(model, q, rest, rest)[model.joint_names.index("pan")]
carried = model.total_mass - model.body("base").mass
assert np.isclose(np.linalg.norm(wrench[3:]), 9.81 * carried)

# One kilogram at the tool: its joint torques are its weight times the tool's Jacobian.
R = cd.frame_pose(model, q, "tool")[:3, :3]
wrenches = np.zeros((model.nb, 6))
wrenches[model.body_index("tool"), 3:] = R.T @ (0, 0, -9.81)
tau = cd.inverse_dynamics(model, q, rest, rest, wrenches=wrenches)
J = cd.jacobian(model, q, "tool", axes="ground")
assert np.allclose(tau - cd.gravity_force(model, q), J[5] * 9.81)
