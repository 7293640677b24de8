"""Dynamics of any mechanism on arrays: loops, force elements, couplings, absolute and relative coordinates.

What users call is in `analysis.dynamics` and `analysis.loops`; here a quantity of `formulation.general` gets its
independent rows and its kernel.
"""

from __future__ import annotations

from typing import Any

from cardan.formulation import dynamics as general
from cardan.formulation.native import formulation_key as formulation_key
from cardan.formulation.power import multipliers
from cardan.model.model import Model
from cardan.structure.assemble import time_argument as time_argument
from cardan.structure.kernels import compile_quantity


def forward_kernel(model: Model, key: str, loaded: bool) -> Any:
    """Accelerations of the tree's coordinates."""
    return _kernel(model, key, "forward", loaded)


def inverse_kernel(model: Model, key: str) -> Any:
    """Forces along the tree's coordinates."""
    return _kernel(model, key, "inverse", True)


def reaction_kernel(model: Model, key: str) -> Any:
    """Wrenches of all joints."""
    return _kernel(model, key, "reactions", True)


def multiplier_kernel(model: Model, key: str) -> Any:
    """Multipliers of all constraint rows."""
    return _kernel(model, key, "multipliers", True)


def equations_kernel(model: Model, key: str) -> Any:
    """`M`, `f`, `J`, `gamma`, `phi` in the formulation's own rates."""
    return _kernel(model, key, "equations", True)


def _kernel(model: Model, key: str, what: str, loaded: bool) -> Any:
    place = ("general", key, what, loaded)
    if place not in model.kernels:
        if key == "points":
            from cardan.structure.planarity import find_plane

            find_plane(model)
        if what in ("equations", "inverse"):
            write = general.equations_of_motion if what == "equations" else general.inverse_dynamics
            quantity, note = write(model, key), ""
        else:
            # here, since the condition needs the equations of this file, and since plain trees need none of them
            from cardan.structure.condition import warn_of_condition
            from cardan.structure.redundancy import require_motion
            from cardan.structure.rows import kept_rows

            require_motion(model)
            warn_of_condition(model, key)
            rows = kept_rows(model, key)
            note = f" rows {rows} loaded {loaded}"
            if what == "multipliers":
                quantity = multipliers(model, key, rows)
            elif what == "reactions":
                quantity = general.reactions(model, key, rows)
            else:
                quantity = general.forward_dynamics(model, key, rows, loaded)
        model.kernels[place] = compile_quantity(model, quantity, f"{key}{note}")
    return model.kernels[place]
