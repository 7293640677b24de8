"""`cd.jax_simulate`: a run as a function of JAX arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cardan.functions.jax_function import applied, require_jax
from cardan.model.memory import require_model
from cardan.model.model import Model
from cardan.results.motion_operation import arguments_of_run, motion_of


def jax_simulate(model: Model, duration: float, *, dtype: str = "float64", **options: Any) -> Callable[..., Any]:
    """`cd.simulate` as a function of JAX arrays: `jit`, `vmap`, `grad`, `jvp`, `jacfwd`, `jacrev`, `hessian` work.

        f = cd.jax_simulate(model, 1.0, method="rk4", step=1e-2, samples=11)
        q, v = f(q0, v0)                # or f(q0, v0, tau, p); (..., samples, nq) and (..., samples, nv)
        jax.grad(lambda p: f(q0, v0, None, p)[0][-1, 0])(model.parameters.nominal)

    Args:
        model: the mechanism; its free parameters are the argument `p`, in the order of `model.parameters`.
        duration: simulated time, s.
        dtype: of the arrays, "float64" or "float32"; the run itself is computed in float64.
        **options: as of `cd.simulate`: `formulation`, `method`, `step`, `rtol`, `atol`, `max_step`, `max_steps`,
            `samples`, `start`, `breaks`, `events`, `threads`, `device`.

    Returns:
        The function `f(q0, v0, tau=None, p=None)` of any batch. With events that stop a run its results are `q, v, t`,
        `t` (..., samples) being the times, s; after a stop all three stay as they are there. Quaternions in `q0` are
        normalised, and a start that leaves loops open is assembled first.

    Derivatives are by the numbers in `q0`, exact for the steps that were taken, as `run.vjp` and `sensitivities=` give
    them. Second and higher ones are there for steps of fixed length without events, and are taken step by step. In
    compiled programs a run is a callback.

    """
    require_model("jax_simulate", model)
    owner = "jax_simulate"
    require_jax(owner, dtype)
    motion = motion_of(owner, model, duration, options)

    def call(q0: Any, v0: Any, tau: Any = None, p: Any = None) -> tuple[Any, ...]:
        return applied(owner, motion, arguments_of_run(motion, model, q0, v0, tau, p), dtype)

    call.__name__ = call.__qualname__ = "simulate"
    call.__doc__ = f"{', '.join(motion.results)} of a run of model {model.name!r}, for JAX."
    return call
