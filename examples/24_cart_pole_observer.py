"""A pole on a cart, upright: LQR with a sampled observer that measures the two positions only."""

import numpy as np
from scipy import linalg

import cardan as cd

T = 0.01  # s, interval of the controller
plain = cd.mechanisms.cart_pole().build()
linear = cd.linearise(plain, plain.state(hinge=0.0), inputs=["tau.rail"], outputs=["q.rail", "q.hinge"])

# the motion over one interval with a held force, and gains of regulator and observer
whole = linalg.expm(T * np.block([[linear.A, linear.B], [np.zeros((1, 5))]]))
A, B, C = whole[:4, :4], whole[:4, 4:], linear.C
P = linalg.solve_discrete_are(A, B, np.diag([1, 10, 1, 1]), np.eye(1))
K = np.linalg.solve(np.eye(1) + B.T @ P @ B, B.T @ P @ A)
S = linalg.solve_discrete_are(A.T, C.T, np.diag([1e-6, 1e-6, 1e-2, 1e-2]), 1e-6 * np.eye(2))
L = A @ S @ C.T @ np.linalg.inv(C @ S @ C.T + 1e-6 * np.eye(2))

# x+ = A x + B u + L (y - C x), u = -K x
law = cd.StateSpace(
    A - B @ K - L @ C, L, -K, np.zeros((1, 2)), sees=lambda s: [s.coordinate("rail"), s.coordinate("hinge")]
)
m = cd.mechanisms.cart_pole()
m.controller("regulator", "rail", law, every=T)
run = cd.simulate(m.build(), 10.0, {"hinge": 0.2})

peak, end = np.abs(run["regulator.effort"]).max(), np.abs(run.q[-1])
print(f"largest force {peak:.1f} N; after 10 s the cart is {end[0]:.4f} m and the pole {end[1]:.5f} rad off")
assert end.max() < 0.02
