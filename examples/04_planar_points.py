"""A press with two loops, hinges, slides, springs and a drive: as particles in a plane, and as bodies in space."""

import numpy as np

import cardan as cd

# A crank turns a triangular rocker through a rod. A second rod from the rocker pushes the ram in its guide. A bob on a
# spring slides along the rocker. So there are two loops that share the rocker, and a branch.
m = cd.Mechanism("press", gravity=(0, -9.81, 0))
LENGTH = {"crank": 0.2, "rod": 0.8, "push rod": 0.6}
for name, length in LENGTH.items():
    rod = cd.inertia.rod(mass=2 * length, length=length, axis="x")
    m.body(name, mass=2 * length, com=(length / 2, 0, 0), inertia=rod)
m.body("rocker", mass=3.0, com=(0.25, 0.1, 0), inertia=cd.inertia.box(3.0, (0.5, 0.3, 0.05)))
m.body("ram", mass=5.0, inertia=cd.inertia.box(5.0, (0.1, 0.3, 0.1)))
m.body("bob", mass=0.4, inertia=cd.inertia.box(0.4, (0.05, 0.05, 0.05)))

m.joint("main", cd.Revolute(), m.ground, "crank", start=1.2)
m.joint("crank pin", cd.Revolute(), "crank", "rod", at=(0.2, 0, 0), start=-1.0)
m.joint("pivot", cd.Revolute(), m.ground, "rocker", at=(0.8, -0.3, 0), start=1.2)
m.joint("rod end", cd.Revolute(), "rod", "rocker", at=(0.8, 0, 0), child_at=(0.5, 0, 0), start=1.0)
m.joint("rocker pin", cd.Revolute(), "rocker", "push rod", at=(0.3, 0.2, 0), start=-2.5)
m.joint("guide", cd.Prismatic(axis=(0, 1, 0)), m.ground, "ram", at=(0.9, -1.0, 0))
m.joint("wrist", cd.Revolute(), "push rod", "ram", at=(0.6, 0, 0), start=1.3)
m.joint("track", cd.Prismatic(axis=(1, 0, 0)), "rocker", "bob", at=(0.1, 0.1, 0))

m.spring("return", m.ground, "ram", stiffness=200.0, length=0.3, damping=5.0, at1=(0.9, -1.4, 0))
m.torsion("bob spring", "track", stiffness=80.0, damping=1.0)
m.drive("motor", "main", lambda t, q, v: 6.0 - 0.5 * v)
model = m.build()
print(model.report())

q, v = cd.assemble(model, model.start(), np.ones(model.nv))
a = {name: cd.forward_dynamics(model, q, v, formulation=name) for name in ("spatial", "newton_euler", "absolute")}
a |= {name: cd.forward_dynamics(model, q, v, formulation=name) for name in ("relative", "points")}
for name, accelerations in a.items():
    print(f"{name:>12}", accelerations)
    assert np.allclose(accelerations, a["spatial"], rtol=1e-10, atol=1e-9)

# The coordinates of `points` are positions of points: the mass matrix is constant, and there are no angles.
eq = cd.equations(model, formulation="points")
x, xd = eq.project(cd.body_poses(model, q), cd.body_twists(model, q, v))
print(f"points: {eq.nq} coordinates, {eq.nl} constraints, kinetic energy {xd @ eq.M(x) @ xd / 2:.6f} J")
assert np.isclose(xd @ eq.M(x) @ xd / 2, cd.kinetic_energy(model, q, v), rtol=1e-12)

# Reactions in the plane: force x, force y and the couple of every joint.
for name, f, g in zip(
    model.joint_names, cd.reactions(model, q, v, formulation="points"), cd.reactions(model, q, v), strict=True
):
    print(f"{name:>12}", f)
    if model.joint(name).kind.name == "revolute":
        assert np.allclose(f[2:5], g[2:5], rtol=1e-9, atol=1e-8)
assert cd.check(model, states=8).passed
