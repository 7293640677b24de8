"""A million states of a double pendulum in one call, checked by conservation of energy."""

import time

import numpy as np

import cardan as cd
from cardan.mechanisms import double_pendulum

model = double_pendulum().build()
q, v = model.random_state(np.random.default_rng(0), 1000, 1000)  # any batch shape
cd.forward_dynamics(model, q[:2, :2], v[:2, :2])  # compiles
start = time.perf_counter()
a = cd.forward_dynamics(model, q, v)
print(f"{q[..., 0].size:,} evaluations in {time.perf_counter() - start:.3f} s")

# Without external forces the energy is constant: v (M a + bias) = 0.
M, bias = cd.mass_matrix(model, q), cd.bias_force(model, q, v)
power = np.einsum("...i,...i", v, np.einsum("...ij,...j->...i", M, a) + bias)
assert np.abs(power).max() < 1e-9
