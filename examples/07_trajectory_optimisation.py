"""A four-bar swung from rest to rest with the least effort: trajectory optimisation with CasADi's Opti and IPOPT."""

import casadi as ca
import numpy as np

import cardan as cd
from cardan.mechanisms import four_bar

model = four_bar().build()
f = cd.casadi_function(model, "forward_dynamics")  # (q, v, tau) -> a, with the loop; CasADi differentiates it
T, N = 0.8, 30  # s, intervals with a constant torque each
h = T / N

# The loop is closed at the start, and the equations keep it closed: only the crank's end is prescribed.
q0, v0 = cd.assemble(model, model.start(), np.zeros(3))
crank = q0[0] + 1.0


def step(q: ca.MX, v: ca.MX, torque: ca.MX) -> tuple[ca.MX, ca.MX]:
    """One step of RK4; all coordinates are angles, so that qdot = v."""
    tau = ca.vertcat(torque, 0, 0)
    a1 = f(q, v, tau)
    v2 = v + h / 2 * a1
    a2 = f(q + h / 2 * v, v2, tau)
    v3 = v + h / 2 * a2
    a3 = f(q + h / 2 * v2, v3, tau)
    v4 = v + h * a3
    a4 = f(q + h * v3, v4, tau)
    return q + h / 6 * (v + 2 * v2 + 2 * v3 + v4), v + h / 6 * (a1 + 2 * a2 + 2 * a3 + a4)


state = [ca.MX.sym("q", 3), ca.MX.sym("v", 3), ca.MX.sym("torque")]
rk4 = ca.Function("rk4", state, list(step(*state))).map(N)

opti = ca.Opti()
q, v, torque = opti.variable(3, N + 1), opti.variable(3, N + 1), opti.variable(1, N)
q_next, v_next = rk4(q[:, :-1], v[:, :-1], torque)
opti.minimize(h * ca.sumsqr(torque))
opti.subject_to(q[:, 1:] == q_next)
opti.subject_to(v[:, 1:] == v_next)
opti.subject_to(q[:, 0] == q0)
opti.subject_to(v[:, 0] == v0)
opti.subject_to(q[0, -1] == crank)
opti.subject_to(v[0, -1] == 0)

# The guess: the crank turns evenly, and the loop is closed at each angle.
turned = np.linspace(q0[0], crank, N + 1)
guess = [q0]
for angle in turned[1:]:
    guess.append(cd.assemble(model, [angle, *guess[-1][1:]], hold=["A"])[0])
opti.set_initial(q, np.array(guess).T)
opti.solver("ipopt", {"print_time": False}, {"print_level": 0, "sb": "yes"})
found = opti.solve()

torques, qs, vs = found.value(torque), found.value(q).T, found.value(v).T
print(f"{found.stats()['iter_count']} iterations, effort {found.value(opti.f):.4f} (N m)^2 s, ", end="")
print(f"torque between {torques.min():.2f} and {torques.max():.2f} N m")
assert found.stats()["success"]

# The same equations, compiled: the path is the motion under these torques, and the loop stayed closed.
x, y = q0, v0
for k in range(N):
    x, y = (part.full().ravel() for part in step(ca.DM(x), ca.DM(y), torques[k]))
print(f"loop open by {np.abs(cd.constraint_residual(model, qs)).max():.1e} m at most")
assert np.allclose(x, qs[-1], atol=1e-6) and np.allclose(y, vs[-1], atol=1e-5)
assert np.abs(cd.constraint_residual(model, qs)).max() < 1e-4
assert np.allclose(vs[-1], 0.0, atol=1e-3)
