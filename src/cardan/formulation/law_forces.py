"""Forces of rows with laws as loads, and what they are measured by, whatever the coordinates.

A force x along a row of joint coordinates is a drive of these joints, along a row between bodies a wrench on each.
Accelerations and reactions are then affine in the forces, in any formulation.
"""

from __future__ import annotations

from cardan.algebra.linsolve import ldl_factor, ldl_solve
from cardan.algebra.matrix import Matrix, as_graph, zeros
from cardan.formulation.elements import Loads, constraint_forces, with_drive, with_wrenches
from cardan.formulation.kinematics import Kinematics
from cardan.model.force import Coupling


def with_law_forces(kin: Kinematics, loads: Loads, x: Matrix) -> Loads:
    """The loads with forces `x` (m,) of the rows with laws: drives of joints, and wrenches on bodies."""
    drives, k = dict(loads.tau), 0
    more: dict[int, Matrix] = {}
    for law in kin.model.laws:
        for row in law.rows:
            if isinstance(row, Coupling):
                for (j, place), c in zip(row.ends, map(float, row.coefficients), strict=True):
                    drives[j] = with_drive(drives.get(j), kin.model.joints[j].kind.nv, place, c * x[k])
            else:
                for b, F in constraint_forces(kin, row, loads.t).items():
                    more[b] = more.get(b, zeros(6, None, x)) + F * x[k]
            k += 1
    return with_wrenches(Loads(drives, loads.wrenches, loads.t), more)


def holding_force(kin: Kinematics, j: int, wrenches: Matrix) -> Matrix:
    """Force (3,) with which a joint holds its child, N, of the wrenches of all: what acts along slides is left out."""
    force, S = wrenches[j, 3:].T, as_graph(kin.model.joints[j].kind.S(kin.joint(j)[0]), wrenches)
    slides = [k for k in range(S.shape[1]) if S[:3, k].is_zero()]
    if not slides:
        return force
    along = S[3:, slides]
    return force - along @ ldl_solve(ldl_factor(along.T @ along), along.T @ force)
