"""A four-bar in motion: one run with its energy and reactions, an event, and a thousand cranks at once."""

import numpy as np

import cardan as cd
from cardan.mechanisms import four_bar

model = four_bar().build()
q0, v0 = cd.assemble(model, v=np.ones(model.nv))  # consistent positions and velocities

# one run: the tolerances control the steps, loops stay closed to rounding
run = cd.simulate(model, 5.0, q0, v0, rtol=1e-10, atol=1e-12)
print(run)
drift = np.ptp(run.energy) / np.abs(run.kinetic).max()
print(f"energy drifts by {drift:.1e} of the largest kinetic energy, loops open by {run.residuals.position.max():.1e} m")
print(f"the pin A carries up to {np.linalg.norm(run.reaction('A')[:, 3:], axis=1).max():.1f} N")
assert drift < 1e-8
assert run.residuals.position.max() < 1e-12

# the same motion by Gear's method, in absolute coordinates
other = cd.simulate(model, 5.0, q0, v0, method="gear", formulation="absolute", rtol=1e-10, atol=1e-12, samples=11)
assert np.abs(other.q[-1] - run.q[-1]).max() < 1e-5

# stop when the crank is vertical for the first time
upright = cd.Event("upright", lambda s: np.cos(s.coordinate("A")), "stop")
stopped = cd.simulate(model, 5.0, q0, v0, events=[upright])
print(f"the crank is upright after {stopped.events[0].time:.6f} s")
assert abs(np.cos(stopped.coordinate("A")[-1])) < 1e-12

# a thousand four-bars with different speeds and couplers, in one call
free = model.free("coupler.mass")
speeds = np.linspace(0.5, 3.0, 1000)[:, None]
many = cd.simulate(
    free.at({"coupler.mass": np.linspace(0.5, 4.0, 1000)}), 1.0, q0, speeds * v0, method="rk4", step=1e-3, samples=11
)
spread = np.ptp(many.energy, axis=-1) / np.abs(many.kinetic).max(axis=-1)
print(f"{many.q.shape[0]} systems, {many.statistics['steps']} steps, energy within {spread.max():.1e}")
assert many.q.shape == (1000, 11, model.nq)
assert spread.max() < 1e-8
