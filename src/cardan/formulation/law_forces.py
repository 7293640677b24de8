"""Forces of rows with laws as loads, and what they are measured by, whatever the coordinates.

A force x along a row of joint coordinates is a drive of these joints, along a row between bodies a wrench on each.
Accelerations and reactions are then affine in the forces, in any formulation.
"""

from __future__ import annotations

from cardan.algebra.matrix import Matrix, as_graph, dot, zeros
from cardan.formulation.elements import Loads, constraint_forces, with_wrenches
from cardan.formulation.kinematics import Kinematics
from cardan.model.force import Coupling
from cardan.model.model import Model


def with_law_forces(kin: Kinematics, loads: Loads, x: Matrix) -> Loads:
    """The loads with forces `x` (m,) of the rows with laws: drives of joints, and wrenches on bodies."""
    drives, k = dict(loads.tau), 0
    more: dict[int, Matrix] = {}
    for law in kin.model.laws:
        for row in law.rows:
            if isinstance(row, Coupling):
                for j, c in zip(row.joints, map(float, row.coefficients), strict=True):
                    drives[j] = drives.get(j, zeros(1, None, x)) + c * x[k]
            else:
                for b, F in constraint_forces(kin, row, loads.t).items():
                    more[b] = more.get(b, zeros(6, None, x)) + F * x[k]
            k += 1
    return with_wrenches(Loads(drives, loads.wrenches, loads.t), more)


def holding_force(model: Model, j: int, wrenches: Matrix) -> Matrix:
    """Force (3,) with which a joint holds its child, N, of the wrenches of all: what acts along a slide is left out."""
    force, kind = wrenches[j, 3:].T, model.joints[j].kind
    if kind.q_units != ("m",):
        return force
    along = as_graph(kind.S(zeros(1, None, force)), force)[3:]
    return force - along * (dot(along, force) / dot(along, along))
