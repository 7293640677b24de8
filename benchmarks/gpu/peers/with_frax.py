"""frax, a robot dynamics package for JAX: forward dynamics with CRBA and RNEA, derivatives by JAX."""

from __future__ import annotations

import os

from benchmarks.gpu.peers.task import Prepared, Task, relative, reordered, serve

_BASE = ["x_prismatic", "y_prismatic", "z_prismatic", "roll_joint", "pitch_joint", "yaw_joint"]


def prepare(task: Task) -> Prepared:
    """Compile for this batch, and compare with Cardan's accelerations."""
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    import jax

    jax.config.update("jax_enable_x64", task.precision == "float64")
    jax.config.update("jax_platforms", "cpu" if task.device == "cpu" else "cuda")
    jax.config.update("jax_default_matmul_precision", "highest")
    import jax.numpy as jnp
    import numpy as np
    from frax.core.robot import Robot

    joints = [(name, nq, nv) for name, nq, nv in task.facts["joints"]]
    free = joints[0][1] == 7
    robot = Robot(str(task.folder / f"{task.name}.urdf"), floating_base="quaternion" if free else None)
    names = list(robot.joint_names)
    if free:
        assert names[:6] == _BASE
        names[:6] = [joints[0][0]]
    q_order = reordered([(name, nq) for name, nq, _ in joints], names, "frax")
    v_order = reordered([(name, nv) for name, _, nv in joints], names, "frax")

    def value(q: jax.Array, v: jax.Array, tau: jax.Array) -> jax.Array:
        return robot.forward_dynamics(q, v, tau, None)

    def jacobians(q: jax.Array, v: jax.Array, tau: jax.Array) -> tuple[jax.Array, ...]:
        return value(q, v, tau), *jax.jacfwd(value, argnums=(0, 1, 2))(q, v, tau)

    def vjp(q: jax.Array, v: jax.Array, tau: jax.Array) -> tuple[jax.Array, ...]:
        found, pull = jax.vjp(value, q, v, tau)
        return found, *pull(jnp.ones_like(found))

    given = [task.array(name)[:, order] for name, order in (("q", q_order), ("v", v_order), ("tau", v_order))]
    arrays = [jnp.asarray(task.filled(array), task.precision) for array in given]
    chosen = {"forward dynamics": value, "with Jacobians": jacobians, "VJP": vjp}[task.kind]
    function = jax.jit(jax.vmap(chosen)).lower(*arrays).compile()
    found = function(*arrays)
    first = np.asarray(found if task.kind == "forward dynamics" else found[0])

    def run(count: int) -> None:
        for _ in range(count):
            result = function(*arrays)
        jax.block_until_ready(result)

    return Prepared(run, task.rows, relative(first[: len(given[0])], task.array("a")[:, v_order]), {})


if __name__ == "__main__":
    serve(prepare)
