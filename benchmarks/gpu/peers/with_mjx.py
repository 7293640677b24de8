"""MJX, MuJoCo in JAX: `mjx.forward` and `mjx.step`."""

from __future__ import annotations

import os

from benchmarks.gpu.peers.mujoco_model import gap, load
from benchmarks.gpu.peers.task import Prepared, Task, relative, serve

INSIDE = 20  # steps in one call
LONG, FEW = 1000, 4096  # steps after which the gap of loops is looked at, in batches up to this


def prepare(task: Task) -> Prepared:
    """Compile for this batch, and compare with Cardan's numbers."""
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    import jax

    jax.config.update("jax_enable_x64", task.precision == "float64")
    jax.config.update("jax_platforms", "cpu" if task.device == "cpu" else "cuda")
    jax.config.update("jax_default_matmul_precision", "highest")
    import jax.numpy as jnp
    import numpy as np
    from mujoco import mjx

    model, q_order, v_order = load(task)
    put = mjx.put_model(model)
    data = mjx.make_data(put)
    dtype = task.precision

    if task.kind == "forward dynamics":
        given = [task.array(name)[:, order] for name, order in (("q", q_order), ("v", v_order), ("tau", v_order))]
        arrays = [jnp.asarray(task.filled(array), dtype) for array in given]

        def value(q: jax.Array, v: jax.Array, tau: jax.Array) -> jax.Array:
            return mjx.forward(put, data.replace(qpos=q, qvel=v, qfrc_applied=tau)).qacc

        function = jax.jit(jax.vmap(value)).lower(*arrays).compile()
        found = np.asarray(function(*arrays))[: len(given[0])]

        def run(count: int) -> None:
            for _ in range(count):
                result = function(*arrays)
            jax.block_until_ready(result)

        return Prepared(run, task.rows, relative(found, task.array("a")[:, v_order]), {})

    given = [task.array(name)[:, order] for name, order in (("q", q_order), ("v", v_order))]
    state = [jnp.asarray(task.filled(array), dtype) for array in given]

    def steps(q: jax.Array, v: jax.Array) -> tuple[jax.Array, jax.Array]:
        end = jax.lax.fori_loop(0, INSIDE, lambda _, d: mjx.step(put, d), data.replace(qpos=q, qvel=v))
        return end.qpos, end.qvel

    function = jax.jit(jax.vmap(steps)).lower(*state).compile()
    wanted, more, moving = task.array("end")[:, q_order], {}, state
    for _ in range(0, task.facts["compared"], INSIDE):
        moving = function(*moving)
    difference = float(np.abs(np.asarray(moving[0])[: len(wanted)] - wanted).max())
    if model.neq and task.rows <= FEW and task.device != "cpu":
        for _ in range(task.facts["compared"], LONG, INSIDE):
            moving = function(*moving)
        more = {"gap": gap(model, np.asarray(moving[0])[:64]), "after": LONG * task.facts["step"]}

    def run(count: int) -> None:
        now = state
        for _ in range(count):
            now = function(*now)
        jax.block_until_ready(now)

    return Prepared(run, task.rows * INSIDE, difference, more)


if __name__ == "__main__":
    serve(prepare)
