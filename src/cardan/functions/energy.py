"""Energy, momentum and centre of mass: batched functions of a model.

Shapes: `q` (..., nq), `v` (..., nv); leading axes broadcast. Momentum is (angular, linear) in N m s and N s, ground
components.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cardan.formulation.dynamics import element_potential
from cardan.functions import large
from cardan.functions.equations import equations
from cardan.model.model import Model
from cardan.structure.kernels import compile_quantity, is_large, kernel_of


def kinetic_energy(model: Model, q: Any, v: Any, *, formulation: str = "spatial") -> Any:
    """Kinetic energy (...), J. FX(C1); in formulations with their own coordinates, `v M v / 2` there."""
    if formulation not in ("spatial", "newton_euler"):
        own = equations(model, formulation=formulation)
        x, u = own.project(*equations(model).lift(q, v))
        return np.einsum("...i,...ij,...j", u, own.M(x), u) / 2
    return kernel_of(model, "kinetic_energy", formulation)(q, v)


def potential_energy(model: Model, q: Any, *, formulation: str = "spatial") -> Any:
    """Potential energy (...), J, of gravity, zero with the centre of mass at the ground's origin, and of springs."""
    gravity = kernel_of(model, "potential_energy", formulation)(q)
    if not model.forces:
        return gravity
    if "element_potential" not in model.kernels:
        model.kernels["element_potential"] = compile_quantity(model, element_potential(), "spatial")
    return gravity + model.kernels["element_potential"](q)


def momentum(model: Model, q: Any, v: Any, *, formulation: str = "spatial") -> Any:
    """Momentum (..., 6) of all bodies about the ground's origin. FX(C1)."""
    return kernel_of(model, "momentum", formulation)(q, v)


def centroidal_momentum(model: Model, q: Any, v: Any, *, formulation: str = "spatial") -> Any:
    """Momentum (..., 6) of all bodies about their common centre of mass."""
    if is_large(model):
        return large.centroidal_momentum(model, q, v, formulation)
    return kernel_of(model, "centroidal_momentum", formulation)(q, v)


def center_of_mass(model: Model, q: Any, *, formulation: str = "spatial") -> Any:
    """Centre of mass (..., 3) of all bodies, m, ground components."""
    return kernel_of(model, "center_of_mass", formulation)(q)
