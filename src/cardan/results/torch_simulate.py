"""`cd.torch_simulate`: a run as a function of torch tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cardan.functions.torch_function import applied, require_torch
from cardan.model.model import Model
from cardan.results.motion_operation import arguments_of_run, motion_of


def torch_simulate(model: Model, duration: float, **options: Any) -> Callable[..., Any]:
    """`cd.simulate` as a function of torch tensors: `backward`, double backward, forward mode, `torch.func`.

        f = cd.torch_simulate(model, 1.0, method="rk4", step=1e-2, samples=11)
        q, v = f(q0, v0)                # or f(q0, v0, tau, p); (..., samples, nq) and (..., samples, nv)
        q[..., -1, 0].sum().backward()

    Args:
        model: the mechanism; its free parameters are the argument `p`, in the order of `model.parameters`.
        duration: simulated time, s.
        **options: as of `cd.simulate`: `formulation`, `method`, `step`, `rtol`, `atol`, `max_step`, `max_steps`,
            `samples`, `start`, `breaks`, `events`, `threads`, `device`.

    Returns:
        The function `f(q0, v0, tau=None, p=None)` of any batch; tensors are all float64 or all float32, the run itself
        is computed in float64. With events that stop a run its results are `q, v, t`, `t` (..., samples) being the
        times, s; after a stop all three stay as they are there. Quaternions in `q0` are normalised, and a start that
        leaves loops open is assembled first. From tensors on a GPU the steps are taken there, and followed back there
        for derivatives; samples and gradients pass through the host.

    Derivatives are by the numbers in `q0`, exact for the steps that were taken, as `run.vjp` and `sensitivities=` give
    them. Second and higher ones are there for steps of fixed length without events, and are taken step by step.

    """
    owner = "torch_simulate"
    require_torch(owner)
    motion = motion_of(owner, model, duration, options)

    def call(q0: Any, v0: Any, tau: Any = None, p: Any = None) -> tuple[Any, ...]:
        filled = [name for name, x in (("tau", tau), ("p", p)) if x is None]
        return applied(owner, motion, arguments_of_run(motion, model, q0, v0, tau, p), filled)

    call.__name__ = call.__qualname__ = "simulate"
    call.__doc__ = f"{', '.join(motion.results)} of a run of model {model.name!r}, for torch."
    return call
