"""Derivatives along the constraints: by independent coordinates and rates, and by parameters through assembly.

With loops and constraints only some of the tree's coordinates are independent; the others follow from `phi(q, p, t) =
0`, their rates from `J(q, p, t) v = beta`, their accelerations from `J a = gamma(q, v, p, t)`. A change of an
independent coordinate, a parameter or the time, the other independent numbers held, moves

    J dq = -phi_p dp - phi_t dt             with dq given in the independent coordinates
    J dv = -(J v - beta)_q dq - (J v - beta)_p dp - (J v - beta)_t dt
    J da = -(J a - gamma)_q dq - (J a - gamma)_v dv - (J a - gamma)_p dp - (J a - gamma)_t dt

so that the derivative of any function of these along the constraints is `D_q dq + D_v dv + D_a da + D_p dp`. Rows that
are redundant are consistent with the others there and do no harm.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from cardan.errors import InputError
from cardan.formulation.derivative import PARAMETERS
from cardan.formulation.dynamics import constraint_state, parts_at, time_port
from cardan.formulation.quantity import Inputs, Quantity, fixed
from cardan.formulation.spatial import SPATIAL
from cardan.functions.derivatives import with_derivatives
from cardan.model.memory import Slot
from cardan.model.model import Model
from cardan.structure.kernels import time_argument
from cardan.structure.rows import generic_configurations

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

_CHOICE: Slot[None, tuple[int, ...]] = Slot("independent coordinates")
STATE = ("q", "v", "a")  # what follows from independent numbers
DEGENERATE = 1e8  # condition of the dependent coordinates' columns beyond which they do not determine anything


def independent_coordinates(model: Model) -> tuple[str, ...]:
    """Names of the tree's rates that are independent where constraints hold: those that derivatives are by.

    All of them without loops and constraints. The choice is made once for a model, at a generic configuration.
    """
    return tuple(model.coordinate_names[k] for k in independent_rates(model))


def independent_rates(model: Model) -> tuple[int, ...]:
    """Their numbers among the tree's rates."""

    def choose() -> tuple[int, ...]:
        if not model.has_rows:
            return tuple(range(model.nv))
        from scipy.linalg import qr

        q = np.asarray(generic_configurations(model.unbound)[0])
        J = with_derivatives("rows", model.unbound, "q", "tangent", residual_of_rows(model), SPATIAL, _still(model, q))[
            "q"
        ]
        triangle, order = qr(J, mode="r", pivoting=True)[-2:]
        size = np.abs(np.diag(triangle))
        rank = int((size > 1e-8 * size.max(initial=0.0)).sum())
        return tuple(sorted(order[rank:].tolist()))

    return _CHOICE.find(model.unbound, None, choose)


def moving_along(
    owner: str, model: Model, names: tuple[str, ...], q: ArrayLike, v: ArrayLike | None, t: ArrayLike,
    a: ArrayLike | None = None,
) -> dict[str, tuple[NDArray[Any], ...]]:  # fmt: skip
    """`dq`, `dv` and, for accelerations `a`, `da` (..., nv, columns) that go with a unit of each number of a name."""
    if any(x.is_at_rate_level for x in model.constraints):
        raise InputError(
            f"{owner}: model {model.name!r} has constraints on rates only, so coordinates and rates have different "
            "freedoms; ask with chart='tangent'"
        )
    free = list(independent_rates(model))
    rest = [k for k in range(model.nv) if k not in free]
    rates = np.zeros(model.nv) if v is None else np.asarray(v, dtype=float)
    by = ("q", *(name for name in names if name == PARAMETERS or (name == "t" and time_port(model))))
    args = (q, *time_argument(model, t))
    phi = with_derivatives(owner, model, by, "tangent", residual_of_rows(model), SPATIAL, args)
    rate = with_derivatives(
        owner, model, ("v", *by), "tangent", rate_of_rows(model), SPATIAL, (q, rates, *time_argument(model, t))
    )
    acceleration: Mapping[str, NDArray[Any]] = {}
    if a is not None:
        args = (q, rates, np.asarray(a, dtype=float), *time_argument(model, t))
        acceleration = with_derivatives(
            owner, model, ("v", *by), "tangent", acceleration_of_rows(model), SPATIAL, args
        ).by
    J = rate["v"]
    _require_good(owner, model, J[..., rest], free)
    solve = np.linalg.pinv(J[..., rest], rcond=1e-12)

    def completed(given: np.ndarray, right: np.ndarray) -> np.ndarray:
        """The motion with these independent parts (..., free, n) and `J d = right`."""
        shape = (*np.broadcast_shapes(given.shape[:-2], right.shape[:-2]), model.nv, right.shape[-1])
        whole = np.zeros(shape)
        whole[..., free, :] = given
        whole[..., rest, :] = solve @ (right - J[..., free] @ given)
        return whole

    found: dict[str, tuple[NDArray[Any], ...]] = {}
    for name in names:
        n = len(free)
        if name in ("q", "v", "a"):
            Z = completed(np.eye(n), np.zeros((*J.shape[:-1], n)))
            dq, own, own_rate = Z if name == "q" else np.zeros_like(Z), None, None
            dv = Z if name == "v" else completed(np.zeros((n, n)), -rate["q"] @ dq)
        elif name in by:
            own, own_rate = (x[name] if name != "t" else x[name][..., None] for x in (phi, rate))
            dq = completed(np.zeros((n, own.shape[-1])), -own)
            dv = completed(np.zeros((n, own.shape[-1])), -own_rate - rate["q"] @ dq)
        else:
            continue
        found[name] = (dq, dv)
        if a is not None:
            right = -acceleration["q"] @ dq - acceleration["v"] @ dv
            if own is not None:
                right = right - (acceleration[name] if name != "t" else acceleration[name][..., None])
            found[name] = (dq, dv, Z if name == "a" else completed(np.zeros((n, dq.shape[-1])), right))
    return found


def residual_of_rows(model: Model) -> Quantity:
    """`phi` of all rows; rows at rate level have none."""
    whole = constraint_state(model)
    write = lambda model, inputs: whole.graph(model, inputs)[:1]
    return Quantity("residual along constraints", whole.inputs, whole.outputs[:1], write=write)


def rate_of_rows(model: Model) -> Quantity:
    """`J v - beta` of all rows."""

    def write(model: Model, inputs: Inputs) -> list[Any]:
        rows = parts_at(model, SPATIAL, inputs).rows
        return [rows.J @ inputs["v"] - rows.beta]

    outputs = (("rate", fixed(len(model.rows))),)
    return Quantity("rate along constraints", ("q", "v", *time_port(model)), outputs, write=write)


def acceleration_of_rows(model: Model) -> Quantity:
    """`J a - gamma` of all rows."""

    def write(model: Model, inputs: Inputs) -> list[Any]:
        rows = parts_at(model, SPATIAL, inputs).rows
        return [rows.J @ inputs["a"] - rows.gamma]

    outputs = (("acceleration", fixed(len(model.rows))),)
    return Quantity("acceleration along constraints", ("q", "v", "a", *time_port(model)), outputs, write=write)


def _still(model: Model, q: np.ndarray) -> tuple[Any, ...]:
    return (q, *time_argument(model, 0.0))


def _require_good(owner: str, model: Model, dependent: np.ndarray, free: list[int]) -> None:
    if not dependent.size:
        return
    if not np.isfinite(dependent).all():
        raise InputError(f"{owner}: some q or t gives constraints that are not finite; look for nan and inf")
    s = np.linalg.svd(dependent, compute_uv=False)
    worst = float((s[..., 0] / np.maximum(s[..., -1], 1e-300)).max())
    if worst > DEGENERATE:
        names = ", ".join(repr(model.coordinate_names[k]) for k in free)
        raise InputError(
            f"{owner}: at some q the coordinates {names} do not determine the others (condition {worst:.1e}): a dead "
            "point or a bifurcation, where there is no derivative by them; ask with chart='tangent'"
        )


def along_constraints(
    owner: str, model: Model, wanted: tuple[str, ...], given: Mapping[str, Any],
    partial: Mapping[str, NDArray[Any]], core: int,
) -> dict[str, NDArray[Any]]:  # fmt: skip
    """Derivatives along the constraints at `given` arguments from partial ones, whose value has `core` axes."""
    moving = moving_along(owner, model, wanted, given["q"], given.get("v"), given.get("t", 0.0), given.get("a"))
    found = {}
    for name in wanted:
        if name not in moving:
            found[name] = partial[name]
            continue
        total: Any = sum(
            _product(partial[by], direction, core)
            for by, direction in zip(STATE, moving[name], strict=False)
            if by in partial
        )
        total = total[..., 0] if name == "t" else total
        total = total if name in STATE else total + partial[name]
        found[name] = total.astype(partial["q"].dtype, copy=False)
    return found


def _product(D: np.ndarray, moving: np.ndarray, core: int) -> np.ndarray:
    """`D` (batch, core axes, nv) times `moving` (batch, nv, columns)."""
    shape = D.shape[D.ndim - core - 1 : -1]
    product = D.reshape(*D.shape[: D.ndim - core - 1], prod(shape), D.shape[-1]) @ moving
    return product.reshape(*product.shape[:-2], *shape, product.shape[-1])
