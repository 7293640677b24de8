"""Linear models of trees that are too large for one graph: from the recursions for the derivatives of dynamics.

With `Q(q, v, t)` the forces of elements and of wrenches along the coordinates, accelerations solve `M a + C = tau + Q`,
so that `M da = (Q_q - tau_q) dq + (Q_v - tau_v) dv + du`, `tau_q` and `tau_v` those of inverse dynamics at `a`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from cardan.algebra.matrix import Matrix
from cardan.formulation.dynamics import time_of
from cardan.formulation.elements import loads_at
from cardan.formulation.formulation import Formulation
from cardan.formulation.kinematics import kinematics_of_tree
from cardan.formulation.linear import Columns, turning
from cardan.formulation.measured_joint import fixed_transform
from cardan.formulation.quantity import Inputs, Quantity, climbs, per_velocity, square
from cardan.formulation.rows import LinkRows
from cardan.formulation.spatial import SPATIAL
from cardan.formulation.tree import stacked_drives
from cardan.functions.derivatives import with_derivatives
from cardan.functions.kinematics import jacobian
from cardan.model.memory import KernelSlot
from cardan.model.model import Model
from cardan.model.tree import GROUND
from cardan.structure.kernels import compile_quantity, tree_kernel

if TYPE_CHECKING:
    from cardan.analysis.linear.operating_point import OperatingPoint

MOST_CLIMBS = 60  # a chain of 10: from there on one graph of everything takes seconds to compile

_TURNING: KernelSlot[None] = KernelSlot("what turning axes add to the rates of coordinates' changes")


def is_large_tree(model: Model, formulation: Formulation) -> bool:
    """Whether a model is linearised here."""
    return formulation is SPATIAL and not (model.has_rows or model.parameters) and climbs(model) > MOST_CLIMBS


def linear_tree(owner: str, point: OperatingPoint, columns: Columns) -> dict[str, np.ndarray]:
    """`a`, `AB`, `dq`, `dv`, `da`, `M` as other models' kernel gives them, and the stiffness `K` (..., nv, nv)."""
    model, q, v, nv = point.model, point.q, point.v, point.model.nv
    shape = point.batch
    Q, Q_q, Q_v = (np.zeros((*shape, *size)) for size in ((nv,), (nv, nv), (nv, nv)))
    if model.has_loads or point.wrenches is not None:
        loads, quantity = ((), _FORCES) if point.wrenches is None else ((point.wrenches,), _ALL_FORCES)
        args = (q, v, *loads, point.t)
        Q, Q_q, Q_v = with_derivatives(owner, model, ("q", "v"), "tangent", quantity, SPATIAL, args)
    recursion = tree_kernel(model, "inverse_dynamics_derivatives")
    bias, _, _, M = recursion(q, v, np.zeros(nv))
    a = np.linalg.solve(M, (point.tau + Q - bias)[..., None])[..., 0]
    _, tau_q, tau_v, _ = recursion(q, v, a)
    pushes = [np.eye(nv)[:, list(columns.tau)]]
    for number in columns.wrenches:
        J = np.asarray(jacobian(model, q, model.body_names[number // 6]))
        pushes.append(J[..., number % 6, :, None])
    sides = [Q_q - tau_q, Q_v - tau_v, *pushes]
    batch = np.broadcast_shapes(shape, a.shape[:-1])
    da = np.linalg.solve(M, np.concatenate([np.broadcast_to(x, (*batch, *x.shape[-2:])) for x in sides], axis=-1))
    dq, dv = np.zeros((*batch, nv, columns.count)), np.zeros((*batch, nv, columns.count))
    dq[..., :nv] = dv[..., nv : 2 * nv] = np.eye(nv)
    change = dv.copy()
    if model.quaternions:
        change[..., :nv] += _TURNING.find(model, None, lambda: compile_quantity(model, _TURNED, "tree"))(q, v)
    AB = np.concatenate([change, da], axis=-2)
    wide = {name: np.broadcast_to(x, (*batch, nv, nv)) for name, x in (("M", M), ("K", tau_q - Q_q))}
    return {"a": a, "AB": AB, "dq": dq, "dv": dv, "da": da, **wide}


def _forces(model: Model, inputs: Inputs) -> list[Matrix]:
    """Forces (nv,) of elements and wrenches along the coordinates: their work, carried to the root."""
    q, v = inputs["q"], inputs["v"]
    kin = kinematics_of_tree(model, q, v)
    given = inputs.get("wrenches", type(q)(model.nb, 6))
    loads = loads_at(kin, type(q)(model.nv, 1), given, time_of(inputs))
    total = stacked_drives(model, loads.tau, q)
    for b in range(model.nb):
        link, wrench = model.tree.body_link[b], loads.wrenches[b, :].T
        if link != GROUND and wrench.nnz() and not wrench.is_zero():
            force = fixed_transform(model.tree.body_pose[b]).T @ wrench
            empty = type(q)(0, 1)
            total = total + SPATIAL.work(kin, LinkRows((), ((link, force),), empty, empty, empty, internal=False)).T
    return [total]


_FORCES = Quantity("forces along the tree", ("q", "v", "t"), (("Q", per_velocity),), write=_forces)
_ALL_FORCES = replace(_FORCES, inputs=("q", "v", "wrenches", "t"))
_TURNED = Quantity(
    "turning axes", ("q", "v"), (("L", square),),
    write=lambda model, inputs: [turning(model, inputs, type(inputs["q"]).eye(model.nv))],
)  # fmt: skip
