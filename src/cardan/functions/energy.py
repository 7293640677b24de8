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
from cardan.formulation.dynamics import potential_energy as own_potential_energy
from cardan.formulation.dynamics import power as own_power
from cardan.formulation.formulation import Formulation
from cardan.formulation.quantity import Inputs, Quantity, fixed
from cardan.formulation.spatial import SPATIAL
from cardan.functions import looped
from cardan.functions.constraints import multipliers
from cardan.functions.derivatives import (
    Derivatives,
    Names,
    given,
    tree_derivatives,
    whole_kernel,
    with_derivatives,
)
from cardan.machines.cuda.place import place_of
from cardan.model.memory import KernelSlot, require_model
from cardan.model.model import Model
from cardan.model.values import array
from cardan.on_card import is_device_array, require_host
from cardan.structure.assemble import constraint_kernels
from cardan.structure.dynamics import power_kernel
from cardan.structure.formulation import formulation_of
from cardan.structure.kernels import compile_quantity, is_large, time_argument, tree_kernel, tree_quantity
from cardan.structure.planarity import prepare

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

_KINETIC: KernelSlot[str] = KernelSlot("kinetic energy in formulations without recursions")
_ELEMENTS: KernelSlot[str] = KernelSlot("potential energy and power of force elements")


def kinetic_energy(
    model: Model, q: ArrayLike, v: ArrayLike, *, formulation: str | Formulation = "spatial", by: Names = None,
    chart: str = "tangent", out: Any = None, device: str | None = None,
) -> Any:  # fmt: skip
    """Kinetic energy (...), J. FX(C1); in formulations with their own coordinates, `v M v / 2` there.

    With `by` ("q", "v", "parameters"): partial derivatives too, by q along the tangent (nv columns);
    `chart="coordinates"`: by the nq numbers in q; `chart="independent"`: along the constraints.

    `device="gpu"` computes on the GPU; arrays that are on a GPU are computed there (docs/gpu.md).
    """
    threads = None if device is None else place_of("kinetic_energy", device)
    found = formulation_of(model, formulation)
    if by is not None:
        own = tree_quantity(found, "kinetic_energy") if found.has_recursions else own_kinetic_energy(found)
        return with_derivatives("kinetic_energy", model, by, chart, own, found, (q, v), out=out, threads=threads)
    if found.has_recursions:
        return tree_kernel(model, "kinetic_energy", formulation)(q, v, out=out, threads=threads)

    def make() -> Any:
        prepare(model, found)
        return compile_quantity(model, own_kinetic_energy(found), found.facts(model))

    return _KINETIC.find(model, found.key, make)(q, v, out=out, threads=threads)


def potential_energy(
    model: Model, q: ArrayLike, *, formulation: str | Formulation = "spatial", by: Names = None, chart: str = "tangent",
    out: Any = None, device: str | None = None,
) -> Any:  # fmt: skip
    """Potential energy (...), J, of gravity, zero with the centre of mass at the ground's origin, and of springs.

    With `by` ("q", "parameters"): partial derivatives too, by q along the tangent (nv columns); `chart="coordinates"`:
    by the nq numbers in q; `chart="independent"`: along the constraints.

    `device="gpu"` computes on the GPU; arrays that are on a GPU are computed there (docs/gpu.md).
    """
    require_model("potential_energy", model)
    threads = None if device is None else place_of("potential_energy", device)
    if by is not None:
        found = formulation_of(model, formulation)
        whole = own_potential_energy(tree_quantity(found, "potential_energy"))
        return with_derivatives("potential_energy", model, by, chart, whole, found, (q,), out=out, threads=threads)
    if model.has_loads and is_device_array(q):
        found = formulation_of(model, formulation)
        return whole_kernel(model, own_potential_energy(tree_quantity(found, "potential_energy")), found)(q, out=out)
    gravity = tree_kernel(model, "potential_energy", formulation)(q, threads=threads)
    if not model.has_loads:
        return given("potential_energy", out, gravity)
    kernel = _ELEMENTS.find(model, "potential", lambda: compile_quantity(model, element_potential(), "tree"))
    return given("potential_energy", out, gravity + kernel(q, threads=threads))


def momentum(
    model: Model, q: ArrayLike, v: ArrayLike, *, formulation: str | Formulation = "spatial", by: Names = None,
    chart: str = "tangent", out: Any = None, device: str | None = None,
) -> Any:  # fmt: skip
    """Momentum (..., 6) of all bodies about the ground's origin. FX(C1).

    With `by` ("q", "v", "parameters"): partial derivatives too, by q along the tangent (nv columns);
    `chart="coordinates"`: by the nq numbers in q; `chart="independent"`: along the constraints.

    `device="gpu"` computes on the GPU; arrays that are on a GPU are computed there (docs/gpu.md).
    """
    require_model("momentum", model)
    threads = None if device is None else place_of("momentum", device)
    if by is not None:
        return tree_derivatives("momentum", model, by, chart, formulation, (q, v), out=out, threads=threads)
    return tree_kernel(model, "momentum", formulation)(q, v, out=out, threads=threads)


def subtree_kinetic_energy(
    model: Model, q: ArrayLike, v: ArrayLike, *, by: Names = None, chart: str = "tangent",
    out: Any = None, device: str | None = None,
) -> Any:  # fmt: skip
    """Kinetic energy (..., nb), J, of each body and all bodies beyond it in the tree: `T_i` of FX(C1).

    With `by` ("q", "v", "parameters"): partial derivatives too, by q along the tangent (nv columns);
    `chart="coordinates"`: by the nq numbers in q; `chart="independent"`: along the constraints.

    The tree is that of the model, `model.tree`; joints that close loops are cut in it.

    `device="gpu"` computes on the GPU; arrays that are on a GPU are computed there (docs/gpu.md).
    """
    require_model("subtree_kinetic_energy", model)
    threads = None if device is None else place_of("subtree_kinetic_energy", device)
    if by is not None:
        return _subtrees_by("subtree_kinetic_energy", 0, model, q, v, by, chart, out, threads)
    if is_device_array(q) or is_device_array(v):
        quantity = _subtree_quantity("subtree_kinetic_energy", 0, model)
        return whole_kernel(model.unmerged, quantity, SPATIAL)(q, v, out=out)
    return given("subtree_kinetic_energy", out, _subtrees(model, q, v, threads)[0])


def subtree_momentum(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    *,
    by: Names = None,
    chart: str = "tangent",
    out: Any = None,
    device: str | None = None,
) -> Any:
    """Momentum (..., nb, 6) about the ground's origin of each body and all beyond it in the tree: `h_i` of FX(C1).

    With `by` ("q", "v", "parameters"): partial derivatives too, by q along the tangent (nv columns);
    `chart="coordinates"`: by the nq numbers in q; `chart="independent"`: along the constraints.

    `device="gpu"` computes on the GPU; arrays that are on a GPU are computed there (docs/gpu.md).
    """
    require_model("subtree_momentum", model)
    threads = None if device is None else place_of("subtree_momentum", device)
    if by is not None:
        return _subtrees_by("subtree_momentum", 1, model, q, v, by, chart, out, threads)
    if is_device_array(q) or is_device_array(v):
        quantity = _subtree_quantity("subtree_momentum", 1, model)
        return whole_kernel(model.unmerged, quantity, SPATIAL)(q, v, out=out)
    return given("subtree_momentum", out, _subtrees(model, q, v, threads)[1])


def _subtrees_by(
    owner: str, part: int, model: Model, q: Any, v: Any, by: Any, chart: Any, out: Any, threads: Any
) -> Derivatives:  # fmt: skip
    """One of the two with its derivatives, in the order of the bodies."""
    one = _subtree_quantity(owner, part, model)
    return with_derivatives(owner, model.unmerged, by, chart, one, SPATIAL, (q, v), out=out, threads=threads)


def _subtree_quantity(owner: str, part: int, model: Model) -> Quantity:
    """One of the two in the order of the bodies."""
    whole, links = tree_quantity("spatial", "subtrees"), list(model.unmerged.tree.body_link)
    name, _ = whole.outputs[part]
    shape = fixed(model.nb) if part == 0 else fixed(model.nb, 6)

    def write(apart: Model, inputs: Inputs) -> list[Any]:
        return [whole.graph(apart, inputs)[part][links, :]]

    return Quantity(owner, whole.inputs, ((name, shape),), write=write)


def _subtrees(model: Model, q: ArrayLike, v: ArrayLike, threads: Any = None) -> tuple[NDArray[Any], NDArray[Any]]:
    apart = model.unmerged  # every body has a link of its own
    T, h = tree_kernel(apart, "subtrees")(q, v, threads=threads)
    of_body = list(apart.tree.body_link)
    return T[..., of_body], h[..., of_body, :]


def centroidal_momentum(
    model: Model, q: ArrayLike, v: ArrayLike, *, formulation: str | Formulation = "spatial", by: Names = None,
    chart: str = "tangent", out: Any = None, device: str | None = None,
) -> Any:  # fmt: skip
    """Momentum (..., 6) of all bodies about their common centre of mass.

    With `by` ("q", "v", "parameters"): partial derivatives too, by q along the tangent (nv columns);
    `chart="coordinates"`: by the nq numbers in q; `chart="independent"`: along the constraints.

    `device="gpu"` computes on the GPU; arrays that are on a GPU are computed there (docs/gpu.md).
    """
    require_model("centroidal_momentum", model)
    threads = None if device is None else place_of("centroidal_momentum", device)
    if by is not None:
        return tree_derivatives("centroidal_momentum", model, by, chart, formulation, (q, v), out=out, threads=threads)
    if is_large(model):
        require_host(f"centroidal_momentum of {len(model.tree.links)} links", q=q, v=v)
        return given(
            "centroidal_momentum",
            out,
            looped.centroidal_momentum(model, q, v, formulation_of(model, formulation), threads),
        )
    return tree_kernel(model, "centroidal_momentum", formulation)(q, v, out=out, threads=threads)


def center_of_mass(
    model: Model, q: ArrayLike, *, formulation: str | Formulation = "spatial", by: Names = None, chart: str = "tangent",
    out: Any = None, device: str | None = None,
) -> Any:  # fmt: skip
    """Centre of mass (..., 3) of all bodies, m, ground components.

    With `by` ("q", "parameters"): partial derivatives too, by q along the tangent (nv columns); `chart="coordinates"`:
    by the nq numbers in q; `chart="independent"`: along the constraints.

    `device="gpu"` computes on the GPU; arrays that are on a GPU are computed there (docs/gpu.md).
    """
    require_model("center_of_mass", model)
    threads = None if device is None else place_of("center_of_mass", device)
    if by is not None:
        return tree_derivatives("center_of_mass", model, by, chart, formulation, (q,), out=out, threads=threads)
    return tree_kernel(model, "center_of_mass", formulation)(q, out=out, threads=threads)


def power(
    model: Model, q: ArrayLike, v: ArrayLike, tau: ArrayLike | None = None, *, t: ArrayLike = 0.0, by: Names = None,
    chart: str = "tangent", out: Any = None, device: str | None = None,
) -> Any:  # fmt: skip
    """Power (...), W, that enters the mechanism: the rate of its kinetic and potential energy at a consistent state.

    With `by` ("q", "v", "tau", "t", "parameters"): partial derivatives too, by q along the tangent (nv columns);
    `chart="coordinates"`: by the nq numbers in q; `chart="independent"`: along the constraints.

    It is that of the drives `tau`, of prescribed motions, and of the force elements less what their own potential
    energy takes up: springs give none, dampers and friction take it away.

    `device="gpu"` computes on the GPU; arrays that are on a GPU are computed there (docs/gpu.md).
    """
    require_model("power", model)
    threads = None if device is None else place_of("power", device)
    if any(map(is_device_array, (q, v, tau, t))):
        return _power_on_card(model, q, v, np.zeros(model.nv) if tau is None else tau, t, by, chart, out)
    q, v, t = array("power", "q", q, model.nq), array("power", "v", v, model.nv), array("power", "t", t)
    tau = None if tau is None else array("power", "tau", tau, model.nv)
    if by is not None:
        return _power_by(model, q, v, np.zeros(model.nv) if tau is None else tau, t, by, chart, out, threads)
    try:
        drives = np.zeros(model.nv) if tau is None else tau
        total = np.zeros(np.broadcast_shapes(q.shape[:-1], t.shape)) + np.einsum("...i,...i", v, drives)
    except ValueError:
        shapes = f"q {q.shape}, v {v.shape}, tau {drives.shape}, t {t.shape}"
        raise InputError(f"power: the batches do not fit together: {shapes}") from None
    if model.has_loads:
        kernel = _ELEMENTS.find(model, "power", lambda: compile_quantity(model, element_power(model), "tree"))
        total = total + kernel(q, v, *time_argument(model, t), threads=threads)
    held = any(x.depends_on_time or x.is_at_rate_level for x in model.constraints)
    if held or any(x.depends_on_time for x in model.couplings):
        beta = constraint_kernels(model)[1](q, *time_argument(model, t), threads=threads)[1]
        total = total - np.einsum("...i,...i", multipliers(model, q, v, tau, t=t, device=device), beta)
    return given("power", out, total)


def _power_by(
    model: Model, q: Any, v: Any, tau: Any, t: Any, by: Any, chart: Any, out: Any, threads: Any = None
) -> Derivatives:
    """The power with its derivatives."""
    args = (q, v, tau, *time_argument(model, t))
    make = lambda wanted: power_kernel(model, SPATIAL, wanted)
    whole = own_power(model, SPATIAL, ())
    return with_derivatives("power", model, by, chart, whole, SPATIAL, args, make=make, out=out, threads=threads)


def _power_on_card(model: Model, q: Any, v: Any, tau: Any, t: Any, by: Any, chart: Any, out: Any) -> Any:
    """The power from one kernel."""
    if by is not None:
        return _power_by(model, q, v, tau, t, by, chart, out)
    return power_kernel(model, SPATIAL)(q, v, tau, *time_argument(model, t), out=out)
