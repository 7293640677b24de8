"""Forces and accelerations of a tree: batched functions of a model.

Shapes: `q` (..., nq), `v`, `a`, `tau` (..., nv), `wrenches` (..., nb, 6); leading axes broadcast. Units: q in rad
and m, v in rad/s and m/s, a in rad/s^2 and m/s^2, tau in N m and N. A wrench is (moment, force) in N m and N on a
body, in the body's components, about its origin. float32 arrays give float32 results.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cardan.errors import InputError
from cardan.functions import large
from cardan.model.model import Model
from cardan.structure.conditioning import warn_of_tree
from cardan.structure.kernels import is_large, kernel_of

RECURSIVE = ("spatial", "newton_euler")


def forward_dynamics(
    model: Model,
    q: Any,
    v: Any,
    tau: Any = None,
    *,
    wrenches: Any = None,
    t: Any = 0.0,
    formulation: str = "spatial",
    frame: str = "fixed",
    out: Any = None,
    threads: int | None = None,
) -> Any:
    """Accelerations `a` (..., nv) under joint forces `tau` (none by default), wrenches and the model's force elements.

    With loops or couplings the state should be consistent (`cd.assemble`). Where q leaves them open the answer is that
    of the same equations there, by which the gap does not accelerate: `cd.constraint_residual` tells the gap, and a
    formulation's first call warns of a wide one; later calls do not look, for speed. `formulation` is "spatial",
    "newton_euler", "absolute" (with `frame` "fixed" or "body" for its angular rates) or "relative"; `t` is time, s.
    """
    if tau is None:
        tau = np.zeros(model.nv, _kind(q))
    kernel = model.kernels.get((formulation, "forward_dynamics")) if wrenches is None else None
    if kernel is not None:
        return kernel(q, v, tau, out=out, threads=threads)
    loads = () if wrenches is None else (wrenches,)
    if not (formulation in RECURSIVE and model.is_plain):
        from cardan.functions import general  # which plain trees do without: their first answer need not wait for it

        key = general.formulation_key(formulation, frame)
        kernel = general.forward_kernel(model, key, wrenches is not None)
        if ("first", key) not in model.kernels:
            from cardan.structure.condition import warn_at_first

            warn_at_first(model, key, q, t)
        return kernel(q, v, tau, *loads, *general.time_argument(model, t), out=out, threads=threads)
    warn_of_tree(model, formulation)
    if formulation != "spatial" and is_large(model):
        return _given(out, large.solve_forward(model, q, v, tau, wrenches, formulation))
    name = "forward_dynamics" if wrenches is None else "forward_dynamics_loaded"
    return kernel_of(model, name, formulation)(q, v, tau, *loads, out=out, threads=threads)


def inverse_dynamics(
    model: Model,
    q: Any,
    v: Any,
    a: Any,
    *,
    driven: Sequence[str] | None = None,
    wrenches: Any = None,
    t: Any = 0.0,
    formulation: str = "spatial",
    frame: str = "fixed",
    out: Any = None,
    threads: int | None = None,
) -> Any:
    """Joint forces `tau` (..., nv) that give accelerations `a`: for a tree `tau = M a + bias_force`.

    With loops or couplings name the joints that are `driven`; the others get none. If the drives cannot give `a` it
    is an error; if there are more drives than freedoms the smallest forces are returned (see `cd.actuation`). The
    model's force elements act too. Every `formulation` answers from its own equations.
    """
    if wrenches is None and driven is None:
        kernel = model.kernels.get((formulation, "inverse_dynamics"))
        if kernel is not None:
            return kernel(q, v, a, out=out, threads=threads)
    loads = () if wrenches is None else (wrenches,)
    if formulation in RECURSIVE and model.is_plain and driven is None:
        name = "inverse_dynamics" if wrenches is None else "inverse_dynamics_loaded"
        return kernel_of(model, name, formulation)(q, v, a, *loads, out=out, threads=threads)
    if driven is None and (model.cuts or model.couplings):
        raise InputError(
            f"inverse_dynamics: model {model.name!r} has loops or couplings; say which joints are driven, e.g. "
            f"driven=[{model.coordinate_names[0]!r}]"
        )
    from cardan.functions import general
    from cardan.functions.constraints import drive_forces

    kernel = general.inverse_kernel(model, general.formulation_key(formulation, frame))
    loads = (np.zeros((model.nb, 6), _kind(q)),) if wrenches is None else loads
    force = kernel(q, v, a, *loads, *general.time_argument(model, t), threads=threads)
    return _given(out, force if driven is None else drive_forces(model, q, v, a, force, driven, t))


def mass_matrix(
    model: Model, q: Any, *, formulation: str = "spatial", out: Any = None, threads: int | None = None
) -> Any:
    """Joint-space inertia `M` (..., nv, nv), symmetric positive definite."""
    return kernel_of(model, "mass_matrix", formulation)(q, out=out, threads=threads)


def inverse_mass_matrix(
    model: Model, q: Any, *, formulation: str = "spatial", out: Any = None, threads: int | None = None
) -> Any:
    """Inverse of the tree's mass matrix (..., nv, nv)."""
    if is_large(model):
        return _given(out, large.inverse_mass_matrix(model, q, formulation))
    return kernel_of(model, "inverse_mass_matrix", formulation)(q, out=out, threads=threads)


def bias_force(
    model: Model, q: Any, v: Any, *, formulation: str = "spatial", out: Any = None, threads: int | None = None
) -> Any:
    """Velocity and gravity terms (..., nv): the joint forces at zero acceleration, FX(B3)'s `C`."""
    return kernel_of(model, "bias_force", formulation)(q, v, out=out, threads=threads)


def gravity_force(
    model: Model, q: Any, *, formulation: str = "spatial", out: Any = None, threads: int | None = None
) -> Any:
    """Joint forces (..., nv) that hold the mechanism at rest against gravity."""
    return kernel_of(model, "gravity_force", formulation)(q, out=out, threads=threads)


def coriolis_matrix(model: Model, q: Any, v: Any, *, out: Any = None, threads: int | None = None) -> Any:
    """Matrix `C` (..., nv, nv) with `C v = bias_force - gravity_force` and `Mdot - 2 C` skew-symmetric."""
    return kernel_of(model, "coriolis_matrix")(q, v, out=out, threads=threads)


def joint_wrenches(
    model: Model,
    q: Any,
    v: Any,
    a: Any,
    *,
    wrenches: Any = None,
    formulation: str = "spatial",
    out: Any = None,
) -> Any:
    """Wrench (..., number of joints, 6) that each joint exerts on its child, at the joint frame on the child.

    It is (moment, force), N m and N, in the joint's axes (z along its axis), and includes the drive: along the joint's
    freedoms it is `tau`.
    """
    if wrenches is None:
        wrenches = np.zeros((model.nb, 6), _kind(q))
    model.require_tree("joint_wrenches")
    apart = model.unmerged
    rows = kernel_of(apart, "joint_wrenches", formulation)(q, v, a, wrenches)
    return _given(out, rows[..., np.argsort([link.joint for link in apart.tree.links]), :])


def plus(model: Model, q: Any, v: Any, *, out: Any = None) -> Any:
    """Configuration (..., nq) after moving from `q` with constant `v` for one second; quaternions stay unit."""
    return kernel_of(model, "plus")(q, v, out=out)


def rates(model: Model, q: Any, v: Any, *, out: Any = None) -> Any:
    """Time derivative `qdot = N(q) v` (..., nq)."""
    return kernel_of(model, "rates")(q, v, out=out)


def _given(out: Any, result: np.ndarray) -> np.ndarray:
    """The result, in the caller's array if there is one."""
    if out is None:
        return result
    if not isinstance(out, np.ndarray) or out.shape != result.shape or not out.flags.writeable:
        got = f"one of shape {out.shape}" if isinstance(out, np.ndarray) else f"a {type(out).__name__}"
        raise InputError(f"out must be an array of shape {result.shape} that can be written to, got {got}")
    if not np.can_cast(result.dtype, out.dtype, "same_kind"):
        raise InputError(f"out has dtype {out.dtype}, which cannot hold {result.dtype}")
    out[...] = result
    return out


def _kind(like: Any) -> Any:
    """Precision for arrays made here: that of the array given."""
    return getattr(like, "dtype", None) if getattr(like, "dtype", None) == np.float32 else np.float64
