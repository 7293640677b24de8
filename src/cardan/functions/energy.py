"""Energy, power, momentum and centre of mass: batched functions of a model.

Shapes: `q` (..., nq), `v`, `tau` (..., nv), time `t` (...); leading axes broadcast. Momentum is (angular, linear) in
N m s and N s, ground components. SI units.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cardan.errors import InputError
from cardan.formulation.dynamics import element_potential, element_power
from cardan.formulation.dynamics import kinetic_energy as own_kinetic_energy
from cardan.formulation.formulation import Formulation
from cardan.functions import looped
from cardan.functions.constraints import multipliers
from cardan.model.memory import KernelSlot
from cardan.model.model import Model
from cardan.model.values import array
from cardan.structure.assemble import constraint_kernels
from cardan.structure.formulation import formulation_of
from cardan.structure.kernels import compile_quantity, is_large, time_argument, tree_kernel
from cardan.structure.planarity import prepare

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

_KINETIC: KernelSlot[str] = KernelSlot("kinetic energy in formulations without recursions")
_ELEMENTS: KernelSlot[str] = KernelSlot("potential energy and power of force elements")


def kinetic_energy(
    model: Model, q: ArrayLike, v: ArrayLike, *, formulation: str | Formulation = "spatial"
) -> NDArray[Any]:
    """Kinetic energy (...), J. FX(C1); in formulations with their own coordinates, `v M v / 2` there."""
    found = formulation_of(model, formulation)
    if found.has_recursions:
        return tree_kernel(model, "kinetic_energy", formulation)(q, v)

    def make() -> Any:
        prepare(model, found)
        return compile_quantity(model, own_kinetic_energy(found), found.facts(model))

    return _KINETIC.find(model, found.key, make)(q, v)


def potential_energy(model: Model, q: ArrayLike, *, formulation: str | Formulation = "spatial") -> NDArray[Any]:
    """Potential energy (...), J, of gravity, zero with the centre of mass at the ground's origin, and of springs."""
    gravity = tree_kernel(model, "potential_energy", formulation)(q)
    if not model.forces:
        return gravity
    kernel = _ELEMENTS.find(model, "potential", lambda: compile_quantity(model, element_potential(), "tree"))
    return gravity + kernel(q)


def momentum(model: Model, q: ArrayLike, v: ArrayLike, *, formulation: str | Formulation = "spatial") -> NDArray[Any]:
    """Momentum (..., 6) of all bodies about the ground's origin. FX(C1)."""
    return tree_kernel(model, "momentum", formulation)(q, v)


def subtree_kinetic_energy(model: Model, q: ArrayLike, v: ArrayLike) -> NDArray[Any]:
    """Kinetic energy (..., nb), J, of each body and all bodies beyond it in the tree: `T_i` of FX(C1).

    The tree is that of the model, `model.tree`; joints that close loops are cut in it.
    """
    return _subtrees(model, q, v)[0]


def subtree_momentum(model: Model, q: ArrayLike, v: ArrayLike) -> NDArray[Any]:
    """Momentum (..., nb, 6) about the ground's origin of each body and all beyond it in the tree: `h_i` of FX(C1)."""
    return _subtrees(model, q, v)[1]


def _subtrees(model: Model, q: ArrayLike, v: ArrayLike) -> tuple[NDArray[Any], NDArray[Any]]:
    apart = model.unmerged  # every body has a link of its own
    T, h = tree_kernel(apart, "subtrees")(q, v)
    of_body = list(apart.tree.body_link)
    return T[..., of_body], h[..., of_body, :]


def centroidal_momentum(
    model: Model, q: ArrayLike, v: ArrayLike, *, formulation: str | Formulation = "spatial"
) -> NDArray[Any]:
    """Momentum (..., 6) of all bodies about their common centre of mass."""
    if is_large(model):
        return looped.centroidal_momentum(model, q, v, formulation_of(model, formulation))
    return tree_kernel(model, "centroidal_momentum", formulation)(q, v)


def center_of_mass(model: Model, q: ArrayLike, *, formulation: str | Formulation = "spatial") -> NDArray[Any]:
    """Centre of mass (..., 3) of all bodies, m, ground components."""
    return tree_kernel(model, "center_of_mass", formulation)(q)


def power(
    model: Model, q: ArrayLike, v: ArrayLike, tau: ArrayLike | None = None, *, t: ArrayLike = 0.0
) -> NDArray[Any]:
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
        kernel = _ELEMENTS.find(model, "power", lambda: compile_quantity(model, element_power(model), "tree"))
        total = total + kernel(q, v, *time_argument(model, t))
    held = any(x.depends_on_time or x.is_at_rate_level for x in model.constraints)
    if held or any(x.depends_on_time for x in model.couplings):
        beta = constraint_kernels(model)[1](q, *time_argument(model, t))[1]
        total = total - np.einsum("...i,...i", multipliers(model, q, v, tau, t=t), beta)
    return total
