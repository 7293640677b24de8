"""Derivatives of inverse dynamics with chosen drives, through loops.

The drives are the smallest `u` with `B u + J^T lam = F(q, v, a)`: `u = A^+ F`, where `A = P B` and `P = 1 - J^+ J`.
With `y = A^+T u`, and since `P y = y` and `P J^T = 0`, the derivative of the pseudoinverse leaves

    du = A^+ (dF - dJ^T lam) - (1 - A^+ A) B^T J^+ dJ y

where the second part is that of drives that work against each other: without such drives `A^+ A = 1`. Only the products
`F - J^T lam` and `J y` are differentiated, at fixed `lam` and `y`.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from cardan.errors import InputError
from cardan.formulation.derivative import rest_of_drives
from cardan.formulation.dynamics import inverse_dynamics
from cardan.formulation.formulation import Formulation
from cardan.functions.along_constraints import along_constraints
from cardan.functions.constraints import SolvedDrives, solved_drives
from cardan.functions.derivatives import Derivatives, by_of, placed, with_derivatives
from cardan.model.model import Model
from cardan.model.values import counted
from cardan.structure.dynamics import inverse_kernel
from cardan.structure.kernels import time_argument
from cardan.structure.redundancy import redundancy
from cardan.structure.row_sets import is_settled

OWNER = "inverse_dynamics"


def drives_by(
    model: Model, q: Any, v: Any, a: Any, driven: Sequence[str], wrenches: Any, t: Any, formulation: Formulation,
    by: Any, chart: Any, out: Any, threads: int | None,
) -> Derivatives:  # fmt: skip
    """Drives `tau` (..., nv) of the joints `driven` that give accelerations `a`, with their derivatives."""
    wanted = by_of(OWNER, model, by, chart, inverse_dynamics(model, formulation))
    args = (q, v, a, wrenches, *time_argument(model, t))
    force = inverse_kernel(model, formulation)(*args, threads=threads)
    found = solved_drives(model, q, v, a, force, driven, t)
    _require_derivative(model, found, driven, wanted.chart)

    along = wanted.chart == "independent"
    names = tuple(dict.fromkeys((*("q", "v", "a"), *wanted.names))) if along else wanted.names
    tau = (found.B @ found.u[..., None])[..., 0]
    lam = (np.swapaxes(found.J_inverse, -1, -2) @ (force - tau)[..., None])[..., 0]
    y = (np.swapaxes(found.back, -1, -2) @ found.u[..., None])[..., 0]
    rest = with_derivatives(
        OWNER, model, names, "tangent" if along else wanted.chart, rest_of_drives(model, formulation), formulation,
        (*args, lam, y), threads=threads,
    )  # fmt: skip
    partial = {name: _drives(model, found, D, () if name == "t" else D.shape[y.ndim :]) for name, D in rest.by.items()}
    if along:
        given = {"q": q, "v": v, "a": a, "t": t}
        partial = along_constraints(OWNER, model, wanted, given, Derivatives(tau, partial), 1)
    return placed(OWNER, Derivatives(tau, partial), out)


def _drives(model: Model, found: SolvedDrives, D: np.ndarray, columns: tuple[int, ...]) -> np.ndarray:
    """Derivatives (..., nv, *columns) of the drives from those `D` (..., nv + nl, *columns) of the rest."""
    batch = D.shape[: D.ndim - 1 - len(columns)]
    flat = D.reshape(*batch, D.shape[len(batch)], prod(columns))
    du = found.back @ flat[..., : model.nv, :]
    spare = np.eye(found.B.shape[1]) - found.back @ found.free @ found.B
    du = du - spare @ found.B.T @ found.J_inverse @ flat[..., model.nv :, :]
    return (found.B @ du).reshape(*batch, model.nv, *columns)


def _require_derivative(model: Model, found: SolvedDrives, driven: Sequence[str], chart: str) -> None:
    """Refuse what has no derivative: too few drives, a singular position, rows that depend on the configuration."""
    if chart != "independent" and not is_settled(model):
        raise InputError(
            f"{OWNER}: which constraints of model {model.name!r} are redundant depends on the configuration, so that "
            "drives have no derivative off the constraints; ask with chart='independent'"
        )
    freedoms = redundancy(model).freedoms
    here = np.rint(np.trace(found.free, axis1=-2, axis2=-1))
    if (here != freedoms).any():
        raise InputError(
            f"{OWNER}: at some q model {model.name!r} has {counted(int(here.max()), 'freedom')} instead of {freedoms}: "
            "a singular position, where drives have no derivative; move q away from it"
        )
    commanded = np.rint(np.trace(found.back @ found.free @ found.B, axis1=-2, axis2=-1))
    if (commanded < freedoms).any():
        names = ", ".join(repr(name) for name in ([driven] if isinstance(driven, str) else driven)) or "no joint"
        raise InputError(
            f"{OWNER}: by= needs a drive for each freedom: model {model.name!r} has {counted(freedoms, 'freedom')}, "
            f"and driving {names} commands {int(commanded.min())}; drive more joints"
        )
