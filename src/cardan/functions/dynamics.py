"""Forces and accelerations of a tree: batched functions of a model.

Shapes: `q` (..., nq), `v`, `a`, `tau` (..., nv), `wrenches` (..., nb, 6); leading axes broadcast. Units: q in rad
and m, v in rad/s and m/s, a in rad/s^2 and m/s^2, tau in N m and N. A wrench is (moment, force) in N m and N on a
body, in the body's components, about its origin. float32 arrays give float32 results.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from cardan.errors import CardanError, InputError, Removed, no_such_argument
from cardan.formulation.formulation import Formulation
from cardan.formulation.spatial import SPATIAL
from cardan.formulation.spatial_derivatives import has_joint_laws
from cardan.functions import looped
from cardan.functions.derivatives import (
    Derivatives,
    Names,
    chosen,
    given,
    is_looped,
    names_of,
    tree_derivatives,
    whole_kernel,
    with_derivatives,
)
from cardan.machines.cuda.place import place_of
from cardan.model.memory import KernelSlot, Slot, not_a_model, require_model
from cardan.model.model import Model
from cardan.on_card import is_device_array, require_host
from cardan.structure.formulation import formulation_of
from cardan.structure.kernels import compile_quantity, is_large, time_argument, tree_kernel, tree_quantity
from cardan.structure.rounding import warn_of_tree

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

LOADS = ("wrenches",)  # inputs of kernels only where wrenches act
_FORWARD: KernelSlot[str | Formulation] = KernelSlot("forward dynamics under drives alone, by formulation")
_INVERSE: KernelSlot[str | Formulation] = KernelSlot("inverse dynamics of a tree, by formulation")
_TOLD: Slot[str, bool] = Slot("whether long compiling was told, by function")
_JOINT_WRENCHES: KernelSlot[str] = KernelSlot("joint wrenches of a tree with force elements, by formulation")


def forward_dynamics(
    model: Model, q: ArrayLike, v: ArrayLike, tau: ArrayLike | None = None, *, wrenches: ArrayLike | None = None,
    t: ArrayLike = 0.0, formulation: str | Formulation = "spatial", by: Names = None, chart: str = "tangent",
    out: Any = None, threads: int | None = None, device: str | None = None, **removed: Unpack[Removed],
) -> Any:  # fmt: skip
    """Accelerations `a` (..., nv) under joint forces `tau` (none by default), wrenches and the model's force elements.

    With `by` ("q", "v", "tau", "wrenches", "t", "parameters"): partial derivatives too, by q along the tangent (nv
    columns); `chart="coordinates"`: by the nq numbers in q; `chart="independent"`: along the constraints.

    With loops or couplings the state should be consistent (`cd.assemble`). Where q leaves them open the answer is that
    of the same equations there, by which the gap does not accelerate: `cd.constraint_residual` tells the gap, and a
    formulation's first call warns of a wide one; later calls do not look, for speed. `formulation` is "spatial",
    "newton_euler", "absolute", "absolute_body" (angular rates in body axes), "relative", "points" (particles)
    or one of your own; `t` is time, s.

    `device="gpu"` computes on the GPU; arrays that are on a GPU are computed there (docs/gpu.md).
    """
    if device is not None:
        threads = place_of("forward_dynamics", device, threads)
    if removed:
        raise no_such_argument("forward_dynamics", removed)
    try:
        kernel = model.memory.get((_FORWARD, formulation))
    except AttributeError as error:
        raise error if isinstance(error, CardanError) else not_a_model(model) from None
    if tau is None:
        tau = np.zeros(model.nv, _kind(q))
    if by is not None:
        return _forward_by(model, q, v, tau, wrenches, t, formulation, by, chart, out, threads)
    if kernel is not None and wrenches is None:
        return kernel(q, v, tau, out=out, threads=threads)
    found, loads = formulation_of(model, formulation), () if wrenches is None else (wrenches,)
    if not model.is_plain and looped.is_looped_tree(model, found):
        warn_of_tree(model, found)
        return given("forward_dynamics", out, looped.forward_dynamics(model, q, v, tau, wrenches, t, threads))
    if not (model.is_plain and found.in_tree and found.has_recursions):
        from cardan.structure.condition import watch
        from cardan.structure.dynamics import (
            forward_kernel,  # which plain trees do without: their first answer is quick
        )

        kernel = forward_kernel(model, found, wrenches is not None)
        watch(model, found, kernel, q, t)
        if wrenches is None and not (model.depends_on_time or found.added):
            _FORWARD.find(model, formulation, lambda: kernel)
        return kernel(q, v, tau, *loads, *time_argument(model, t), out=out, threads=threads)
    warn_of_tree(model, found)
    if found.solves_mass_matrix and is_large(model):
        require_host(f"forward_dynamics of {len(model.tree.links)} links by {found.name!r}", q=q, v=v, tau=tau)
        return given("forward_dynamics", out, looped.solve_forward(model, q, v, tau, wrenches, found, threads))
    if wrenches is None:
        kernel = _FORWARD.find(model, formulation, lambda: tree_kernel(model, "forward_dynamics", found))
        return kernel(q, v, tau, out=out, threads=threads)
    return tree_kernel(model, "forward_dynamics_loaded", found)(q, v, tau, wrenches, out=out, threads=threads)


def _has_derivative_recursion(model: Model, formulation: Formulation, by: Any, chart: Any, inputs: set[str]) -> bool:
    """Whether a recursion of its own gives these derivatives, in fewer operations than differentiating the value's."""
    names = names_of(by)
    plain = (model.is_plain or has_joint_laws(model)) and formulation is SPATIAL and chart == "tangent"
    plain = plain and all(isinstance(name, str) for name in names)
    return plain and 0 < len(set(names)) == len(names) and set(names) <= inputs


def _derivative_kernel(model: Model, formulation: Formulation, name: str) -> Any:
    """The kernel of a recursion for derivatives."""
    if model.parameters and _TOLD.first_time(model, name):
        looped.warn_of_compiling(name, model, name, model.nv, model.nv)
    return tree_kernel(model, f"{name}_derivatives", formulation)


def _is_put_together(model: Model, formulation: Formulation, by: Any, chart: Any, inputs: set[str]) -> bool:
    known = inputs | ({"t"} if model.depends_on_time else set())
    return is_looped(model, formulation, by, chart) and set(names_of(by)) <= known


def _with_wrench_axes(
    model: Model, owner: str, by: Any, found: tuple[np.ndarray, dict[str, np.ndarray]], out: Any
) -> Derivatives:
    """Derivatives of a vector (..., nv), those by wrenches with the axes (nb, 6)."""
    value, every = found
    if "wrenches" in every:
        every["wrenches"] = every["wrenches"].reshape(*value.shape, model.nb, 6)
    return chosen(owner, by, value, every, out)


def _forward_by(
    model: Model, q: Any, v: Any, tau: Any, wrenches: Any, t: Any, formulation: Any, by: Any, chart: Any, out: Any,
    threads: int | None,
) -> Derivatives:  # fmt: skip
    found = formulation_of(model, formulation)
    loaded = wrenches is not None or "wrenches" in names_of(by)
    loads = (np.zeros((model.nb, 6), _kind(q)) if wrenches is None else wrenches,) if loaded else ()
    make: Any = None
    if _has_derivative_recursion(model, found, by, chart, {"q", "v", "tau"}) and wrenches is None:
        kernel = _derivative_kernel(model, found, "forward_dynamics")
        value, *every = kernel(q, v, tau, threads=threads)
        return chosen("forward_dynamics", by, value, dict(zip(("q", "v", "tau"), every, strict=True)), out)
    if _is_put_together(model, found, by, chart, {"q", "v", "tau", "wrenches"}):
        from cardan.functions.looped_derivatives import forward_dynamics as put_together

        load = loads[0] if loads else None
        result = put_together(model, names_of(by), q, v, tau, load, t, threads)
        return _with_wrench_axes(model, "forward_dynamics", by, result, out)
    if model.is_plain and found.in_tree and found.has_recursions:
        quantity = tree_quantity(found, f"forward_dynamics{'_loaded' if loaded else ''}")
    else:
        from cardan.formulation.dynamics import forward_dynamics as written
        from cardan.structure.dynamics import forward_kernel

        quantity = written(model, found, (), loaded)  # its ports; the kernel chooses the rows
        make = lambda wanted: forward_kernel(model, found, loaded, wanted)
    args = (q, v, tau, *loads, *time_argument(model, t))
    return with_derivatives(
        "forward_dynamics", model, by, chart, quantity, found, args, make=make, out=out, threads=threads, also=LOADS
    )


def inverse_dynamics(
    model: Model, q: ArrayLike, v: ArrayLike, a: ArrayLike, *, driven: Sequence[str] | None = None,
    wrenches: ArrayLike | None = None, t: ArrayLike = 0.0, formulation: str | Formulation = "spatial",
    by: Names = None, chart: str = "tangent", out: Any = None, threads: int | None = None,
    device: str | None = None, **removed: Unpack[Removed],
) -> Any:  # fmt: skip
    """Joint forces `tau` (..., nv) that give accelerations `a`: for a tree `tau = M a + bias_force`.

    With `by` ("q", "v", "a", "wrenches", "t", "parameters"): partial derivatives too, by q along the tangent (nv
    columns); `chart="coordinates"`: by the nq numbers in q; `chart="independent"`: along the constraints.

    With loops or couplings name the joints that are `driven`; the others get none. If the drives cannot give `a` it
    is an error; if there are more drives than freedoms the smallest forces are returned (see `cd.actuation`), and with
    fewer there are no derivatives. The model's force elements act too. Every `formulation` answers from its own
    equations.

    `device="gpu"` computes on the GPU; arrays that are on a GPU are computed there (docs/gpu.md).
    """
    if device is not None:
        threads = place_of("inverse_dynamics", device, threads)
    if removed:
        raise no_such_argument("inverse_dynamics", removed)
    try:
        kernel = model.memory.get((_INVERSE, formulation))
    except AttributeError as error:
        raise error if isinstance(error, CardanError) else not_a_model(model) from None
    if by is not None:
        return _inverse_by(model, q, v, a, driven, wrenches, t, formulation, by, chart, out, threads)
    if kernel is not None and wrenches is None and driven is None:
        return kernel(q, v, a, out=out, threads=threads)
    found = formulation_of(model, formulation)
    if found.has_recursions and model.is_plain and driven is None:
        if wrenches is None:
            kernel = _INVERSE.find(model, formulation, lambda: tree_kernel(model, "inverse_dynamics", found))
            return kernel(q, v, a, out=out, threads=threads)
        return tree_kernel(model, "inverse_dynamics_loaded", found)(q, v, a, wrenches, out=out, threads=threads)
    if model.has_rows:
        driven = _driven(model, driven)
    if driven is None and looped.is_looped_tree(model, found):
        return given("inverse_dynamics", out, looped.inverse_dynamics(model, q, v, a, wrenches, t, threads))
    from cardan.functions.constraints import drive_forces
    from cardan.structure.dynamics import inverse_kernel

    if wrenches is None and driven is None:
        kernel = inverse_kernel(model, found, loaded=False)
        if not (model.depends_on_time or found.added):
            _INVERSE.find(model, formulation, lambda: kernel)
        return kernel(q, v, a, *time_argument(model, t), out=out, threads=threads)
    wrenches = np.zeros((model.nb, 6), _kind(q)) if wrenches is None else wrenches
    if driven is not None:
        require_host("inverse_dynamics with driven=", q=q, v=v, a=a, wrenches=wrenches)
    if looped.has_looped_forces(model, found):
        force = looped.inverse_dynamics(model, q, v, a, wrenches, t, threads)
    else:
        force = inverse_kernel(model, found)(q, v, a, wrenches, *time_argument(model, t), threads=threads)
    return given("inverse_dynamics", out, force if driven is None else drive_forces(model, q, v, a, force, driven, t))


def _driven(model: Model, driven: Sequence[str] | None) -> Sequence[str]:
    """The joints that are driven, which must be told where there are loops."""
    if driven is None:
        raise InputError(
            f"inverse_dynamics: model {model.name!r} has loops or couplings; say which joints are driven, e.g. "
            f"driven=[{model.coordinate_names[0]!r}]{model.without_mimics}"
        )
    return driven


def _inverse_by(
    model: Model, q: Any, v: Any, a: Any, driven: Any, wrenches: Any, t: Any, formulation: Any, by: Any, chart: Any,
    out: Any, threads: int | None,
) -> Derivatives:  # fmt: skip
    found = formulation_of(model, formulation)
    if driven is not None or model.has_rows:
        from cardan.functions.drive_derivatives import drives_by

        require_host("inverse_dynamics with driven=", q=q, v=v, a=a, wrenches=wrenches)
        loads = np.zeros((model.nb, 6), _kind(q)) if wrenches is None else wrenches
        return drives_by(model, q, v, a, _driven(model, driven), loads, t, found, by, chart, out, threads)
    loaded = wrenches is not None or "wrenches" in names_of(by)
    if _has_derivative_recursion(model, found, by, chart, {"q", "v", "a"}) and wrenches is None:
        kernel = _derivative_kernel(model, found, "inverse_dynamics")
        value, *every = kernel(q, v, a, threads=threads)
        return chosen("inverse_dynamics", by, value, dict(zip(("q", "v", "a"), every, strict=True)), out)
    if _is_put_together(model, found, by, chart, {"q", "v", "a", "wrenches"}):
        from cardan.functions.looped_derivatives import inverse_dynamics as put_together

        result = put_together(model, names_of(by), q, v, a, wrenches, t, threads)
        return _with_wrench_axes(model, "inverse_dynamics", by, result, out)
    if found.has_recursions and model.is_plain:
        quantity = tree_quantity(found, f"inverse_dynamics{'_loaded' if loaded else ''}")
    else:
        from cardan.formulation.dynamics import inverse_dynamics as written

        quantity, loaded = written(model, found), True
    loads = (np.zeros((model.nb, 6), _kind(q)) if wrenches is None else wrenches,) if loaded else ()
    args = (q, v, a, *loads, *(time_argument(model, t) if "t" in quantity.inputs else ()))
    return with_derivatives(
        "inverse_dynamics", model, by, chart, quantity, found, args, out=out, threads=threads, also=LOADS
    )


def mass_matrix(
    model: Model, q: ArrayLike, *, formulation: str | Formulation = "spatial", by: Names = None,
    chart: str = "tangent", out: Any = None, threads: int | None = None, device: str | None = None,
) -> Any:  # fmt: skip
    """Joint-space inertia `M` (..., nv, nv) of the tree, symmetric positive definite.

    With `by` ("q", "parameters"): partial derivatives too, by q along the tangent (nv columns); `chart="coordinates"`:
    by the nq numbers in q; `chart="independent"`: along the constraints.

    With loops it is still the tree's: the constraints are not in it.

    `device="gpu"` computes on the GPU; arrays that are on a GPU are computed there (docs/gpu.md).
    """
    if device is not None:
        threads = place_of("mass_matrix", device, threads)
    if by is not None:
        return tree_derivatives("mass_matrix", model, by, chart, formulation, (q,), out=out, threads=threads)
    return tree_kernel(model, "mass_matrix", formulation)(q, out=out, threads=threads)


def inverse_mass_matrix(
    model: Model, q: ArrayLike, *, formulation: str | Formulation = "spatial", by: Names = None,
    chart: str = "tangent", out: Any = None, threads: int | None = None, device: str | None = None,
) -> Any:  # fmt: skip
    """Inverse of the tree's mass matrix (..., nv, nv); with loops it is still the tree's.

    With `by` ("q", "parameters"): partial derivatives too, by q along the tangent (nv columns); `chart="coordinates"`:
    by the nq numbers in q; `chart="independent"`: along the constraints.

    `device="gpu"` computes on the GPU; arrays that are on a GPU are computed there (docs/gpu.md).
    """
    if device is not None:
        threads = place_of("inverse_mass_matrix", device, threads)
    if by is not None:
        return tree_derivatives("inverse_mass_matrix", model, by, chart, formulation, (q,), out=out, threads=threads)
    if is_large(model):
        require_host(f"inverse_mass_matrix of {len(model.tree.links)} links", q=q)
        return given(
            "inverse_mass_matrix",
            out,
            looped.inverse_mass_matrix(model, q, formulation_of(model, formulation), threads),
        )
    return tree_kernel(model, "inverse_mass_matrix", formulation)(q, out=out, threads=threads)


def bias_force(
    model: Model, q: ArrayLike, v: ArrayLike, *, formulation: str | Formulation = "spatial",
    by: Names = None, chart: str = "tangent", out: Any = None, threads: int | None = None, device: str | None = None,
) -> Any:  # fmt: skip
    """Velocity and gravity terms (..., nv) of the tree: the joint forces at zero acceleration, FX(B3)'s `C`.

    With `by` ("q", "v", "parameters"): partial derivatives too, by q along the tangent (nv columns);
    `chart="coordinates"`: by the nq numbers in q; `chart="independent"`: along the constraints.

    Loops, couplings and force elements are not in it; `inverse_dynamics` has them.

    `device="gpu"` computes on the GPU; arrays that are on a GPU are computed there (docs/gpu.md).
    """
    if device is not None:
        threads = place_of("bias_force", device, threads)
    if by is not None:
        return tree_derivatives("bias_force", model, by, chart, formulation, (q, v), out=out, threads=threads)
    return tree_kernel(model, "bias_force", formulation)(q, v, out=out, threads=threads)


def gravity_force(
    model: Model, q: ArrayLike, *, formulation: str | Formulation = "spatial", by: Names = None,
    chart: str = "tangent", out: Any = None, threads: int | None = None, device: str | None = None,
) -> Any:  # fmt: skip
    """Joint forces (..., nv) that hold the tree at rest against gravity; loops and force elements are not in them.

    With `by` ("q", "parameters"): partial derivatives too, by q along the tangent (nv columns); `chart="coordinates"`:
    by the nq numbers in q; `chart="independent"`: along the constraints.

    `device="gpu"` computes on the GPU; arrays that are on a GPU are computed there (docs/gpu.md).
    """
    if device is not None:
        threads = place_of("gravity_force", device, threads)
    if by is not None:
        return tree_derivatives("gravity_force", model, by, chart, formulation, (q,), out=out, threads=threads)
    return tree_kernel(model, "gravity_force", formulation)(q, out=out, threads=threads)


def coriolis_matrix(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    *,
    by: Names = None,
    chart: str = "tangent",
    out: Any = None,
    threads: int | None = None,
    device: str | None = None,
) -> Any:
    """Matrix `C` (..., nv, nv) of the tree: `C v = bias_force - gravity_force` and `Mdot - 2 C` is skew-symmetric.

    With `by` ("q", "v", "parameters"): partial derivatives too, by q along the tangent (nv columns);
    `chart="coordinates"`: by the nq numbers in q; `chart="independent"`: along the constraints.

    `device="gpu"` computes on the GPU; arrays that are on a GPU are computed there (docs/gpu.md).
    """
    if device is not None:
        threads = place_of("coriolis_matrix", device, threads)
    if by is not None:
        return tree_derivatives("coriolis_matrix", model, by, chart, "spatial", (q, v), out=out, threads=threads)
    return tree_kernel(model, "coriolis_matrix")(q, v, out=out, threads=threads)


def joint_wrenches(
    model: Model, q: ArrayLike, v: ArrayLike, a: ArrayLike, *, wrenches: ArrayLike | None = None, t: ArrayLike = 0.0,
    formulation: str | Formulation = "spatial", by: Names = None, chart: str = "tangent", out: Any = None,
    device: str | None = None,
) -> Any:  # fmt: skip
    """Wrench (..., number of joints, 6) that each joint exerts on its child, at the joint frame on the child.

    With `by` ("q", "v", "a", "wrenches", "t", "parameters"): partial derivatives too, by q along the tangent (nv
    columns); `chart="coordinates"`: by the nq numbers in q; `chart="independent"`: along the constraints.

    It is (moment, force), N m and N, in the joint's axes (z along its axis), and includes the drive: along the joint's
    freedoms it is `tau`, with what the joint's force elements and couplings give. Force elements between bodies act, at
    time `t`, s. For mechanisms with loops or constraints see `cd.reactions`.

    `device="gpu"` computes on the GPU; arrays that are on a GPU are computed there (docs/gpu.md).
    """
    require_model("joint_wrenches", model)
    threads = None if device is None else place_of("joint_wrenches", device)
    if wrenches is None:
        wrenches = np.zeros((model.nb, 6), _kind(q))
    model.require_tree("joint_wrenches")
    if by is not None:
        from cardan.formulation.dynamics import joint_wrenches as written

        found = formulation_of(model, formulation)
        whole = written(model, tree_quantity(found, "joint_wrenches"))
        args = (q, v, a, wrenches, *time_argument(model, t))
        return with_derivatives("joint_wrenches", model, by, chart, whole, found, args, out=out, threads=threads)
    if model.has_loads:
        kernel = _joint_wrench_kernel(model, formulation_of(model, formulation))
        return given("joint_wrenches", out, kernel(q, v, a, wrenches, *time_argument(model, t), threads=threads))
    if any(map(is_device_array, (q, v, a, wrenches))):
        from cardan.formulation.dynamics import joint_wrenches as written

        found = formulation_of(model, formulation)
        kernel = whole_kernel(model, written(model, tree_quantity(found, "joint_wrenches")), found)
        return kernel(q, v, a, wrenches, *time_argument(model, t), out=out)
    apart = model.unmerged
    rows = tree_kernel(apart, "joint_wrenches", formulation)(q, v, a, wrenches, threads=threads)
    return given("joint_wrenches", out, rows[..., np.argsort([link.joint for link in apart.tree.links]), :])


def _joint_wrench_kernel(model: Model, formulation: Formulation) -> Any:
    """Joint wrenches with the model's force elements."""
    from cardan.formulation.dynamics import joint_wrenches  # which plain trees do without

    def make() -> Any:
        quantity = joint_wrenches(model, tree_quantity(formulation, "joint_wrenches"))
        return compile_quantity(model, quantity, f"with forces {formulation.key}")

    return _JOINT_WRENCHES.find(model, formulation.key, make)


def plus(
    model: Model, q: ArrayLike, v: ArrayLike, *, by: Names = None, chart: str = "tangent", out: Any = None,
    device: str | None = None,
) -> Any:  # fmt: skip
    """Configuration (..., nq) after moving from `q` with constant `v` for one second; quaternions stay unit.

    With `by` ("q", "v", "parameters"): partial derivatives too, by q along the tangent (nv columns);
    `chart="coordinates"`: by the nq numbers in q; `chart="independent"`: along the constraints.

    Derivatives have nq rows, those of the numbers in the configuration.

    `device="gpu"` computes on the GPU; arrays that are on a GPU are computed there (docs/gpu.md).
    """
    threads = None if device is None else place_of("plus", device)
    if by is not None:
        return tree_derivatives("plus", model, by, chart, "spatial", (q, v), out=out, threads=threads)
    return tree_kernel(model, "plus")(q, v, out=out, threads=threads)


def rates(
    model: Model, q: ArrayLike, v: ArrayLike, *, by: Names = None, chart: str = "tangent", out: Any = None,
    device: str | None = None,
) -> Any:  # fmt: skip
    """Time derivative `qdot = N(q) v` (..., nq).

    With `by` ("q", "v", "parameters"): partial derivatives too, by q along the tangent (nv columns);
    `chart="coordinates"`: by the nq numbers in q; `chart="independent"`: along the constraints.

    `device="gpu"` computes on the GPU; arrays that are on a GPU are computed there (docs/gpu.md).
    """
    threads = None if device is None else place_of("rates", device)
    if by is not None:
        return tree_derivatives("rates", model, by, chart, "spatial", (q, v), out=out, threads=threads)
    return tree_kernel(model, "rates")(q, v, out=out, threads=threads)


def _kind(like: Any) -> Any:
    """Precision for arrays made here: that of the array given."""
    return getattr(like, "dtype", None) if getattr(like, "dtype", None) == np.float32 else np.float64
