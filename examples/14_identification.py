"""A manipulator with friction and a closed-loop machine, recovered from noisy measurements."""

import numpy as np

import cardan as cd
from cardan.mechanisms import slider_crank

rng = np.random.default_rng(1)

# a manipulator of three links with friction; its model has wrong masses and knows nothing of the load in its hand
m = cd.Mechanism("manipulator", gravity=(0, 0, -9.81))
m.body("shoulder", mass=4.0, com=(0, 0, 0.1), inertia=cd.inertia.cylinder(4.0, 0.08, 0.25))
m.body("upper", mass=6.0, com=(0.2, 0, 0), inertia=cd.inertia.cylinder(6.0, 0.06, 0.45, axis="x"))
m.body("fore", mass=2.0, com=(0.15, 0, 0), inertia=cd.inertia.cylinder(2.0, 0.04, 0.4, axis="x"))
m.joint("pan", cd.Revolute(axis=(0, 0, 1)), m.ground, "shoulder", data=cd.JointData(-2.5, 2.5))
m.joint("lift", cd.Revolute(axis=(0, 1, 0)), "shoulder", "upper", at=(0, 0.1, 0.25), data=cd.JointData(-2.0, 1.0))
m.joint("elbow", cd.Revolute(axis=(0, 1, 0)), "upper", "fore", at=(0.42, -0.1, 0), data=cd.JointData(-2.4, 2.4))
for joint in ("pan", "lift", "elbow"):
    m.friction(f"{joint} friction", joint, viscous=0.5, coulomb=1.0, smoothing=1e-2)
model = m.build()
print(cd.base_parameters(model))

true = model.free("fore.mass", "fore.com", "elbow friction.viscous")
true = true.at({"fore.mass": 3.1, "fore.com": (0.22, 0.01, 0.0), "elbow friction.viscous": 0.8})
motion = cd.excitation(model, 8.0, rate=3.0, acceleration=15.0, starts=16, generations=4)
print(motion)
q, v, a = motion.motion(np.linspace(0, 8, 600, endpoint=False))
tau = cd.inverse_dynamics(true, q, v, a) + rng.normal(0, [0.5, 1.0, 0.4], (600, 3))
found = cd.identify(model, q, v, a, tau)
print(found)
truth = found.base.of(cd.regressor(true, q[0]).nominal)
assert found.physical
assert (np.abs(found.base_values - truth) < 4 * found.base_std).all()
better = cd.inverse_dynamics(found.model, q, v, a) - cd.inverse_dynamics(true, q, v, a)
worse = cd.inverse_dynamics(model, q, v, a) - cd.inverse_dynamics(true, q, v, a)
print(f"torques off by {np.abs(worse).max():.2f} N m before, {np.abs(better).max():.2f} N m after")
assert np.abs(better).max() < 0.1 * np.abs(worse).max()

# a slider-crank: only its crank is driven, and a spring acts on the slider
m = slider_crank()
m.spring("return", m.ground, "slider", stiffness=40.0, length=0.3, damping=2.0)
machine = m.build()
heavy = machine.free("slider.mass", "return.stiffness").at({"slider.mass": 2.4, "return.stiffness": 55.0})
motion = cd.excitation(machine, 5.0, driven=["bearing"], rate=10.0, position=(-3.0, 3.0), starts=16, generations=4)
q, v, a = motion.motion(np.linspace(0, 5, 400, endpoint=False))
tau = cd.inverse_dynamics(heavy, q, v, a, driven=["bearing"])[:, :1] + rng.normal(0, 0.05, (400, 1))
found = cd.identify(machine, q, v, a, tau, driven=["bearing"])
print(found)
truth = found.base.of(cd.regressor(heavy, q[0], driven=["bearing"]).nominal)
low, high = found.interval("return.stiffness", 0.999)
print(f"stiffness of the spring: {low:.1f} to {high:.1f} N/m")
assert low < 55.0 < high
assert (np.abs(found.base_values - truth) < 4 * found.base_std).all()
