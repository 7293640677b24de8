"""Dynamics of any mechanism on arrays: loops, force elements, couplings, absolute and relative coordinates.

What users call is in `analysis.dynamics` and `analysis.loops`; here a quantity of `formulation.general` gets its
independent rows and its kernel.
"""

from __future__ import annotations

from typing import Any

from cardan.analysis.redundancy import independent_rows, require_motion
from cardan.errors import InputError, UnknownNameError, nearest
from cardan.formulation import general
from cardan.formulation.constrained import BUILDERS
from cardan.formulation.general import is_plain as is_plain
from cardan.integrate.assemble import time_argument as time_argument
from cardan.kernels.evaluate import compile_quantity
from cardan.model.model import Model

FRAMES = ("fixed", "body")


def formulation_key(formulation: str, frame: str = "fixed") -> str:
    """The name under which a formulation is built, from the words that the user gives."""
    if frame not in FRAMES:
        raise InputError(f"frame must be 'fixed' or 'body', got {frame!r}")
    known = [name for name in BUILDERS if name != "absolute_body"]
    if formulation not in known:
        raise UnknownNameError(f"formulation {formulation!r} is not one{nearest(formulation, known)}")
    return "absolute_body" if formulation == "absolute" and frame == "body" else formulation


def needs_general(model: Model, formulation: str) -> bool:
    """Whether a question goes beyond the recursions of a plain tree."""
    return formulation not in ("spatial", "newton_euler") or not is_plain(model)


def forward_kernel(model: Model, key: str, loaded: bool) -> Any:
    """Accelerations of the tree's coordinates."""
    return _kernel(model, key, "forward", loaded)


def reaction_kernel(model: Model, key: str) -> Any:
    """Wrenches of all joints."""
    return _kernel(model, key, "reactions", True)


def equations_kernel(model: Model, key: str) -> Any:
    """`M`, `f`, `J`, `gamma`, `phi` in the formulation's own rates."""
    return _kernel(model, key, "equations", True)


def _kernel(model: Model, key: str, what: str, loaded: bool) -> Any:
    place = ("general", key, what, loaded)
    if place not in model.kernels:
        if what == "equations":
            quantity, note = general.equations_of_motion(model, key), ""
        else:
            require_motion(model)
            rows = independent_rows(model, key)
            make = general.reactions if what == "reactions" else general.forward_dynamics
            arguments = (model, key, rows) if what == "reactions" else (model, key, rows, loaded)
            quantity, note = make(*arguments), f" rows {rows} loaded {loaded}"
        model.kernels[place] = compile_quantity(model, quantity, f"{key}{note}")
    return model.kernels[place]
