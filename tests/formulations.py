"""The formulations, for tests that look inside them."""

from __future__ import annotations

from typing import Any

import casadi as ca

import cardan as cd
from cardan.formulation.dynamics import parts_at
from cardan.formulation.formulation import Parts
from cardan.formulation.newton_euler import NEWTON_EULER
from cardan.formulation.spatial import SPATIAL
from cardan.structure.formulation import formulation_of
from cardan.structure.planarity import prepare

RECURSIONS = {"spatial": SPATIAL.quantities, "newton_euler": NEWTON_EULER.quantities}
"""Quantities of plain trees by formulation and name."""
ALL = ("spatial", "newton_euler", "absolute", "absolute_body", "relative")
"""Formulations that take any mechanism."""


def parts_of(
    model: cd.Model, formulation: str, q: Any, v: Any, tau: Any = None, wrenches: Any = None, t: Any = None
) -> Parts:
    """A formulation's equations at a state of the tree, over symbols."""
    found = formulation_of(model, formulation)
    prepare(model, found)
    given = {"q": q, "v": v, "tau": tau, "wrenches": wrenches, "t": t}
    return parts_at(model, found, {name: x for name, x in given.items() if x is not None})


def solved(model: cd.Model, formulation: str, parts: Parts, rows: list[int]) -> tuple[Any, Any]:
    """Accelerations of the tree and wrenches of the joints, with some rows kept."""
    found = formulation_of(model, formulation)
    vdot, lam = found.solve(parts, rows)
    every = ca.SX(len(parts.rows), 1)
    for k, row in enumerate(rows):
        every[row] = lam[k]
    return found.tree_accelerations(parts, vdot), found.wrenches(parts, vdot, every)
