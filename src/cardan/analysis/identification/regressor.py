"""Regressors: what is linear in the parameters of a model, as a matrix times them.

    tau = W(q, v, a) theta + rest        inverse dynamics
    E   = W(q, v)    theta + rest        energy
    h   = W(q, v)    theta + rest        momentum

`theta` are the standard parameters, `rest` is what does not depend on them: wrenches, drives, the forces of elements
that are not among them. With loops and constraints `tau` holds multipliers too. They do no work along the motions `Z`
that the constraints leave, so that

    Z^T tau = (Z^T W) theta + Z^T rest

has a row for each freedom. Where the coordinates that are driven are as many as the freedoms, `Z` is written with them
and the rows are the drives themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from cardan.analysis.identification.motions import Motions, free_motions
from cardan.analysis.identification.standard_parameters import StandardParameters, standard_parameters
from cardan.errors import InputError, UnknownNameError, nearest
from cardan.formulation.dynamics import inverse_dynamics as written_inverse_dynamics
from cardan.formulation.formulation import Formulation
from cardan.functions.derivatives import Derivatives, with_derivatives
from cardan.functions.dynamics import inverse_dynamics
from cardan.functions.energy import kinetic_energy, momentum, potential_energy
from cardan.machines.cuda.place import Place, place_of
from cardan.model.model import Model
from cardan.model.values import batch
from cardan.structure.formulation import formulation_of
from cardan.structure.kernels import time_argument

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray


@dataclass(frozen=True, eq=False)
class Regressor:
    """What is linear in the parameters: `value = matrix @ theta + rest`.

    `matrix` (..., rows, parameters); `rest` (..., rows), which no parameter enters; `names` and `units` of the
    parameters; `rows` are named; `nominal` (..., parameters) are the model's own numbers. With loops `motions`
    (..., nv, rows) are the motions along which forces are taken. It is an array for NumPy: `W @ theta`.
    """

    matrix: NDArray[Any]
    rest: NDArray[Any]
    names: tuple[str, ...]
    units: tuple[str, ...]
    rows: tuple[str, ...]
    nominal: NDArray[Any]
    motions: NDArray[Any] | None = None

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        """The matrix."""
        return np.array(self.matrix, dtype=dtype)

    def __matmul__(self, theta: ArrayLike) -> NDArray[Any]:
        """`matrix @ theta`."""
        return self.matrix @ np.asarray(theta)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the matrix."""
        return self.matrix.shape

    def project(self, tau: ArrayLike) -> NDArray[Any]:
        """What joint forces `tau` (..., nv) are in the rows: (..., rows). Without loops they are `tau` itself."""
        if self.motions is None:
            return batch("project", "tau", tau, len(self.rows))
        forces = batch("project", "tau", tau, self.motions.shape[-2])
        return np.einsum("...vr,...v->...r", self.motions, forces)

    def __repr__(self) -> str:
        """Sizes."""
        return f"<regressor {self.shape}: {len(self.rows)} rows, {len(self.names)} parameters>"


def require_linear(owner: str, model: Model, of: str = "inverse_dynamics") -> None:
    """Refuse forces that are not linear in the parameters: those of stops, friction that sticks and locks."""
    if of == "inverse_dynamics":
        model.require_no_laws(owner, "give friction without stick=True, and leave the others out of the model")


def regressor(
    model: Model, q: ArrayLike, v: ArrayLike | None = None, a: ArrayLike | None = None, *, of: str = "inverse_dynamics",
    driven: Sequence[str] | None = None, parameters: Sequence[str] | None = None, wrenches: ArrayLike | None = None,
    t: ArrayLike = 0.0, formulation: str | Formulation = "spatial", threads: int | None = None,
    device: str | None = None,
) -> Regressor:  # fmt: skip
    """The matrix `W` (..., rows, parameters) with `value = W theta + rest`: the dynamics are linear in `theta`.

    Args:
        model: the mechanism.
        q: configuration (..., nq), rad and m; with loops consistent, see `cd.assemble`.
        v: rates (..., nv), rad/s and m/s; at rest by default.
        a: accelerations (..., nv), rad/s^2 and m/s^2, for inverse dynamics; none by default.
        of: "inverse_dynamics" (rows: joint forces, N m and N), "energy", "kinetic_energy", "potential_energy" (one row,
            J) or "momentum" (6 rows, about the ground's origin, N m s and N s).
        driven: with loops, the joints that are driven. If they have as many coordinates as there are freedoms, the rows
            are their forces; else the rows are the forces along independent coordinates, see `Regressor.project`.
        parameters: bodies and elements whose numbers are parameters; by default all bodies with mass, and all linear
            numbers of joints and force elements (stiffness, damping, friction, armature) that are not zero.
        wrenches: wrenches (..., nb, 6) on the bodies, N m and N; they go to `rest`.
        t: time (...), s.
        formulation: whose equations are differentiated.
        threads: number of threads.
        device: "gpu" to compute on the GPU (docs/gpu.md).

    Returns:
        A `cd.Regressor`. Parameters are, for each body, `mass` (kg), `mx, my, mz` (mass times centre of mass, kg m),
        `Ixx, Iyy, Izz, Ixy, Ixz, Iyz` (inertia about the body's origin, kg m^2), in the body's axes.

    """
    if device is not None:
        threads = place_of("regressor", device, threads)
    standard = standard_parameters("regressor", model, parameters)
    require_linear("regressor", model, of)
    if of not in QUANTITIES:
        raise UnknownNameError(f"regressor: there is no regressor of {of!r}{nearest(str(of), QUANTITIES)}")
    state = {
        "q": batch("regressor", "q", q, model.nq),
        "v": batch("regressor", "v", np.zeros(model.nv) if v is None else v, model.nv),
        "a": batch("regressor", "a", np.zeros(model.nv) if a is None else a, model.nv),
        "wrenches": batch("regressor", "wrenches", np.zeros((model.nb, 6)) if wrenches is None else wrenches,
                          model.nb, 6),
        "t": batch("regressor", "t", t),
    }  # fmt: skip
    _require_batch(model, state)
    at = standard.reference(model)
    found = QUANTITIES[of](at, state, formulation_of(at, formulation), threads)
    W, value = found["parameters"][..., standard.columns], found.value
    if standard.declared:
        again = QUANTITIES[of](standard.doubled(at), state, formulation_of(at, formulation), threads)
        _require_linear(standard, W, again["parameters"][..., standard.columns])
    if of in SCALARS:
        W, value = W[..., None, :], value[..., None]
    rows, motions = ROWS[of](model), None
    if of == "inverse_dynamics" and model.has_rows:
        along: Motions = free_motions("regressor", model, state["q"], state["t"], driven)
        motions = along.Z
        W, value = np.swapaxes(motions, -1, -2) @ W, np.einsum("...vr,...v->...r", motions, value)
        rows = along.names
    reference = standard.standard_at_reference(model)
    rest = value - np.einsum("...rp,...p->...r", W, reference)
    rest = np.where(np.abs(rest) > 64 * EPS * np.einsum("...rp,...p->...r", np.abs(W), np.abs(reference)), rest, 0.0)
    return Regressor(W, rest, standard.names, standard.units, rows, standard.of(model), motions)


EPS = float(np.finfo(float).eps)


def _require_linear(standard: StandardParameters, W: NDArray[Any], again: NDArray[Any]) -> None:
    """Refuse a user's number that is called linear and is not: its column depends on its value."""
    off = np.abs(W - again)
    bad = off > 1e-9 * np.maximum(np.abs(W), np.abs(again)) + 1e-12
    if bad.any():
        k = next(k for k in standard.declared if bad[..., k].any())
        raise InputError(
            f"regressor: {standard.names[k]} is declared linear (cd.Field), but its column depends on its own value; "
            "declare it without linear=True"
        )


def _require_batch(model: Model, state: dict[str, NDArray[Any]]) -> None:
    core = {"q": 1, "v": 1, "a": 1, "wrenches": 2, "t": 0}
    try:
        np.broadcast_shapes(model.batch, *(x.shape[: x.ndim - core[name]] for name, x in state.items()))
    except ValueError:
        shapes = ", ".join(f"{name} {x.shape}" for name, x in state.items())
        raise InputError(f"regressor: the batches do not fit together: {shapes}") from None


def _inverse_dynamics(model: Model, s: Any, formulation: Formulation, threads: int | None) -> Derivatives:
    if not model.has_rows:
        return inverse_dynamics(
            model, s["q"], s["v"], s["a"], wrenches=s["wrenches"] if s["wrenches"].any() else None, t=s["t"],
            formulation=formulation, by="parameters", threads=threads,
        )  # fmt: skip
    quantity = written_inverse_dynamics(model, formulation)
    args = (s["q"], s["v"], s["a"], s["wrenches"], *time_argument(model, s["t"]))
    return with_derivatives(
        "regressor", model, "parameters", "tangent", quantity, formulation, args, threads=threads, also=("wrenches",)
    )


def _device(threads: Any) -> Any:
    """The card among what `threads` may be, for functions without threads."""
    return threads if isinstance(threads, Place) else None


def _kinetic_energy(model: Model, s: Any, formulation: Formulation, threads: int | None) -> Derivatives:
    return kinetic_energy(model, s["q"], s["v"], formulation=formulation, by="parameters", device=_device(threads))


def _potential_energy(model: Model, s: Any, formulation: Formulation, threads: int | None) -> Derivatives:
    return potential_energy(model, s["q"], by="parameters", device=_device(threads))


def _energy(model: Model, s: Any, formulation: Formulation, threads: int | None) -> Derivatives:
    T, U = _kinetic_energy(model, s, formulation, threads), _potential_energy(model, s, formulation, threads)
    return Derivatives(T.value + U.value, {"parameters": T["parameters"] + U["parameters"]})


def _momentum(model: Model, s: Any, formulation: Formulation, threads: int | None) -> Derivatives:
    return momentum(model, s["q"], s["v"], by="parameters", device=_device(threads))


QUANTITIES: dict[str, Callable[..., Derivatives]] = {
    "inverse_dynamics": _inverse_dynamics,
    "energy": _energy,
    "kinetic_energy": _kinetic_energy,
    "potential_energy": _potential_energy,
    "momentum": _momentum,
}
ROWS: dict[str, Callable[[Model], tuple[str, ...]]] = {
    "inverse_dynamics": lambda model: model.coordinate_names,
    "energy": lambda model: ("energy",),
    "kinetic_energy": lambda model: ("kinetic energy",),
    "potential_energy": lambda model: ("potential energy",),
    "momentum": lambda model: ("hx", "hy", "hz", "px", "py", "pz"),
}
SCALARS = ("energy", "kinetic_energy", "potential_energy")
