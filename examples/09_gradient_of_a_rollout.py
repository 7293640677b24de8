"""The gradient of a rollout of a four-bar with `jax.grad`: RK4 in `jax.lax.scan`; needs the extra `jax`."""

import numpy as np
from scipy.optimize import minimize

import cardan as cd
from cardan.mechanisms import four_bar

try:
    import jax
except ImportError:
    print("skipped: the extra 'jax' is not installed")
    raise SystemExit(0) from None
import jax.numpy as jnp

jax.config.update("jax_enable_x64", True)

model = four_bar().build()
f = cd.jax_function(model, "forward_dynamics")  # (q, v, tau) -> a, with the loop
q0, v0 = cd.assemble(model, model.start(), np.zeros(3))
h, N = 0.01, 60  # s, steps


def rollout(torques: jax.Array) -> tuple[jax.Array, jax.Array]:
    """State at the end, under a torque (N,) on the crank that is constant in each step; all coordinates are angles."""

    def step(state: tuple[jax.Array, jax.Array], torque: jax.Array) -> tuple[tuple[jax.Array, jax.Array], None]:
        q, v = state
        tau = jnp.zeros(3).at[0].set(torque)
        a1 = f(q, v, tau)
        v2 = v + h / 2 * a1
        a2 = f(q + h / 2 * v, v2, tau)
        v3 = v + h / 2 * a2
        a3 = f(q + h / 2 * v2, v3, tau)
        v4 = v + h * a3
        a4 = f(q + h * v3, v4, tau)
        return (q + h / 6 * (v + 2 * v2 + 2 * v3 + v4), v + h / 6 * (a1 + 2 * a2 + 2 * a3 + a4)), None

    return jax.lax.scan(step, (jnp.asarray(q0), jnp.asarray(v0)), torques)[0]


@jax.jit
def loss(torques: jax.Array) -> jax.Array:
    """Distance from the wanted crank angle at rest, and the effort."""
    q, v = rollout(torques)
    return (q[0] - q0[0] - 0.5) ** 2 + 0.1 * v[0] ** 2 + 1e-4 * h * jnp.sum(torques**2)


gradient = jax.jit(jax.grad(loss))
torques = jnp.asarray(5.0 + np.sin(np.arange(N)))
g = gradient(torques)

# Exact: reverse mode against forward mode along a direction, and against differences.
along = jnp.asarray(np.cos(np.arange(N)))
_, rate = jax.jvp(loss, (torques,), (along,))
difference = (loss(torques + 1e-5 * along) - loss(torques - 1e-5 * along)) / 2e-5
print(f"along a direction: reverse {g @ along:.12e}, forward {rate:.12e}, differences {difference:.12e}")
assert np.isclose(g @ along, rate, rtol=1e-11)
assert np.isclose(rate, difference, rtol=1e-6)

# Many rollouts at once: vmap makes batches of Cardan's kernels.
many = jax.vmap(rollout)(torques + jnp.linspace(-1, 1, 16)[:, None])
assert many[0].shape == (16, 3)

# An optimiser with this gradient finds the torques.
start = loss(torques)
found = minimize(loss, torques, jac=gradient, method="L-BFGS-B", options={"maxiter": 30})
q, v = rollout(jnp.asarray(found.x))
print(f"loss {start:.4f} -> {found.fun:.4f}; the crank turned by {q[0] - q0[0]:.4f} rad and goes at {v[0]:.4f} rad/s")
assert found.fun < start / 100
