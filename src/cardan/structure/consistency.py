"""How well states satisfy the constraints, as four numbers for each: a quick look at the starts of large batches."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from cardan.formulation.dynamics import constraint_residual, constraint_rows
from cardan.machines.cuda.place import Place
from cardan.machines.ufunc.kernel import Kernel, compile_program
from cardan.model.memory import Slot
from cardan.model.model import Model
from cardan.program.program import Port, Program
from cardan.structure.assemble import STEEP
from cardan.structure.kernels import function_of, parameter_arguments

MEASURES = ("gap", "steep", "missing", "volume")
_KERNELS: Slot[str, Kernel] = Slot("how well states satisfy the constraints, by the rows looked at")


def measures(
    model: Model, q: np.ndarray, v: np.ndarray, t: float, rows: list[int], lengths: np.ndarray,
    threads: int | Place | None = None,
) -> dict[str, np.ndarray]:  # fmt: skip
    """Measures (B,) of states q (B, nq), v (B, nv) at time t, s.

    - `gap`: the largest residual, m or rad.
    - `steep`: positive where a joint closes with its directions opposite (`structure.assemble.flipped`).
    - `missing`: the largest residual of the velocities, divided by the largest rate if that is above 1.
    - `volume`: the determinant of `J J^T` for some `rows`, divided by their usual `lengths`; small near singular
      positions.
    """
    kernel = _kernel(model.unbound, rows, lengths)
    found = kernel(q, v, np.asarray(float(t)), *parameter_arguments(model), threads=threads)
    return dict(zip(MEASURES, found, strict=True))


def _kernel(model: Model, rows: list[int], lengths: np.ndarray) -> Kernel:
    digest = hashlib.sha256(repr((model.key, "consistency", rows, lengths.tolist())).encode()).hexdigest()
    free = (Port("p", (model.parameters.size,)),) if model.parameters else ()

    def record() -> Any:
        import casadi as ca

        q, v, t = ca.SX.sym("q", model.nq), ca.SX.sym("v", model.nv), ca.SX.sym("t")
        p = [ca.SX.sym("p", model.parameters.size)] if free else []
        given = [q, *([t] if model.depends_on_time else []), *p]
        phi, slope = function_of(model, constraint_residual(model)).call(given)
        J, beta = function_of(model, constraint_rows(model)).call(given)
        steep = [
            ca.norm_inf(slope[i, :] - J[i, :]) - STEEP * ca.fmax(1.0, ca.norm_inf(J[i, :])) for i in range(J.shape[0])
        ]
        missing = ca.norm_inf(J @ v - beta) / ca.fmax(1.0, ca.norm_inf(v))
        unit = J[rows, :] / lengths[:, None] if rows else ca.SX(0, model.nv)
        D = ca.ldl(ca.densify(unit @ unit.T))[0] if rows else ca.SX(0, 1)
        volume = ca.SX(1)
        for d in ca.vertsplit(D) if rows else []:
            volume = volume * d
        found = [ca.norm_inf(phi), ca.mmax(ca.vertcat(*steep)), missing, volume]
        return ca.Function("consistency", [q, v, t, *p], [ca.densify(x) for x in found])

    inputs = (Port("q", (model.nq,)), Port("v", (model.nv,)), Port("t", ()), *free)
    outputs = tuple(Port(name, ()) for name in MEASURES)
    return _KERNELS.find(
        model, digest, lambda: compile_program(Program("consistency", inputs, outputs, digest, record))
    )
