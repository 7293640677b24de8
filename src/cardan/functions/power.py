"""Power and constraint forces: batched functions of a model.

Shapes: `q` (..., nq), `v`, `tau` (..., nv), time `t` (...); leading axes broadcast. SI units.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cardan.errors import InputError
from cardan.formulation.power import element_power
from cardan.functions.general import formulation_key, multiplier_kernel, time_argument
from cardan.model.model import Model
from cardan.model.values import array
from cardan.structure.assemble import constraint_kernels
from cardan.structure.kernels import compile_quantity


def power(model: Model, q: Any, v: Any, tau: Any = None, *, t: Any = 0.0) -> Any:
    """Power (...), W, that enters the mechanism: the rate of its kinetic and potential energy at a consistent state.

    It is that of the drives `tau`, of prescribed motions, and of the force elements less what their own potential
    energy takes up: springs give none, dampers and friction take it away.
    """
    q, v, t = array("power", "q", q, model.nq), array("power", "v", v, model.nv), array("power", "t", t)
    tau = None if tau is None else array("power", "tau", tau, model.nv)
    try:
        drives = np.zeros(model.nv) if tau is None else tau
        total = np.zeros(np.broadcast_shapes(q.shape[:-1], t.shape)) + np.einsum("...i,...i", v, drives)
    except ValueError:
        shapes = f"q {q.shape}, v {v.shape}, tau {drives.shape}, t {t.shape}"
        raise InputError(f"power: the batches do not fit together: {shapes}") from None
    if model.forces:
        if "element_power" not in model.kernels:
            model.kernels["element_power"] = compile_quantity(model, element_power(model), "spatial")
        total = total + model.kernels["element_power"](q, v, *time_argument(model, t))
    if any(coupling.depends_on_time for coupling in model.couplings):
        beta = constraint_kernels(model)[1](q, *time_argument(model, t))[1]
        total = total - np.einsum("...i,...i", multipliers(model, q, v, tau, t=t), beta)
    return total


def multipliers(
    model: Model,
    q: Any,
    v: Any,
    tau: Any = None,
    *,
    t: Any = 0.0,
    formulation: str = "spatial",
    frame: str = "fixed",
) -> Any:
    """Multipliers `lam` (..., nl), N m and N, of a formulation's constraint rows: `M vdot + J^T lam = f`.

    Rows are those of `cd.equations(model, formulation=...)`, in the tree's coordinates those of the cut joints and
    then one for each motion and coupling. Rows that depend on others have none.
    """
    tau = np.zeros(model.nv) if tau is None else tau
    return multiplier_kernel(model, formulation_key(formulation, frame))(q, v, tau, *time_argument(model, t))
