"""Derivatives along the constraints: by independent coordinates and rates, and by parameters through assembly.

With loops and constraints only some of the tree's coordinates are independent; the others follow from `phi(q, p, t) =
0`, their rates from `J(q, p, t) v = beta`, their accelerations from `J a = gamma(q, v, p, t)`. A change of an
independent coordinate, a parameter or the time, the other independent numbers held, moves

    J dq = -phi_p dp - phi_t dt             with dq given in the independent coordinates
    J dv = -(J v - beta)_q dq - (J v - beta)_p dp - (J v - beta)_t dt
    J da = -(J a - gamma)_q dq - (J a - gamma)_v dv - (J a - gamma)_p dp - (J a - gamma)_t dt

so that the derivative of any function of these along the constraints is `D_q dq + D_v dv + D_a da + D_p dp`. Rows that
are redundant are consistent with the others there and do no harm. Near a dead point of the independent coordinates the
others follow with ever larger errors: a warning says how many digits hold, and which coordinates to take instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from cardan.errors import InputError, UnknownNameError, nearest
from cardan.formulation.derivative import PARAMETERS, By
from cardan.formulation.dynamics import constraint_state, parts_at, time_port
from cardan.formulation.quantity import Inputs, Quantity, fixed
from cardan.formulation.spatial import SPATIAL
from cardan.functions.derivatives import Derivatives, with_derivatives
from cardan.machines.noise import EPS
from cardan.model.memory import Slot, require_model
from cardan.model.model import Model
from cardan.model.values import counted
from cardan.structure.digits import ENOUGH, digits
from cardan.structure.kernels import time_argument
from cardan.structure.rounding import warn_outside
from cardan.structure.rows import generic_configurations, row_sizes
from cardan.structure.sparse_rows import has_sparse_rows, sparse_rows

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

_CHOICE: Slot[None, tuple[int, ...]] = Slot("independent coordinates")
STATE = ("q", "v", "a")  # what follows from independent numbers
DEGENERATE = 1e8  # condition of the dependent coordinates' columns beyond which they do not determine anything
CONFLICT = 1e-6  # part of what a parameter opens that stays open, beyond which rows conflict
SHOWN = 6  # names in a message
HARMLESS = 1e3  # condition of the same columns below which derivatives lose no digits that matter


def independent_coordinates(model: Model) -> tuple[str, ...]:
    """Names of the tree's rates that are independent where constraints hold: those that derivatives are by.

    All of them without loops and constraints. The choice is made once for a model, at a generic configuration.
    """
    require_model("independent_coordinates", model)
    return tuple(model.coordinate_names[k] for k in independent_rates(model))


def independent_rates(model: Model) -> tuple[int, ...]:
    """Their numbers among the tree's rates."""

    def choose() -> tuple[int, ...]:
        if not model.has_rows:
            return tuple(range(model.nv))
        from scipy.linalg import qr

        q = np.asarray(generic_configurations(model.unbound)[0])
        if has_sparse_rows(model):
            rows = sparse_rows(model.unbound)
            J = rows.in_tree(rows.residual(q, 0.0)[1], q)
        else:
            J = with_derivatives(
                "independent rates", model.unbound, "q", "tangent", residual_of_rows(model), SPATIAL, _still(model, q)
            )["q"]
        triangle, order = qr(J, mode="r", pivoting=True)[-2:]
        size = np.abs(np.diag(triangle))
        rank = int((size > 1e-8 * size.max(initial=0.0)).sum())
        return tuple(sorted(order[rank:].tolist()))

    return _CHOICE.find(model.unbound, None, choose)


def moving_along(
    owner: str, model: Model, names: tuple[str, ...], q: ArrayLike, v: ArrayLike | None, t: ArrayLike,
    a: ArrayLike | None = None, coordinates: tuple[str, ...] = (),
) -> dict[str, tuple[NDArray[Any], ...]]:  # fmt: skip
    """`dq`, `dv` and, for accelerations `a`, `da` (..., nv, columns) that go with a unit of each number of a name.

    The independent coordinates are `independent_coordinates(model)`, or `coordinates`.
    """
    return _moving(owner, model, names, q, v, t, a, coordinates)[0]


def _moving(
    owner: str, model: Model, names: tuple[str, ...], q: ArrayLike, v: ArrayLike | None, t: ArrayLike,
    a: ArrayLike | None, coordinates: tuple[str, ...],
) -> tuple[dict[str, tuple[NDArray[Any], ...]], NDArray[Any], NDArray[Any]]:  # fmt: skip
    """The same, how far errors are magnified in them (...,), and the rows `J` (..., nl, nv) in units of their sizes."""
    if any(x.is_at_rate_level for x in model.constraints):
        raise InputError(
            f"{owner}: model {model.name!r} has constraints on rates only, so coordinates and rates have different "
            "freedoms; ask with chart='tangent'"
        )
    free = list(_numbers(owner, model, coordinates))
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
    size = row_sizes(model)[:, None]  # in its units metres and radians weigh alike
    J = rate["v"] / size
    magnified = _magnified(owner, model, J, rest)
    _require_good(owner, model, J, magnified, free)
    solve = np.linalg.pinv(J[..., rest], rcond=1e-12)

    def completed(given: np.ndarray, right: np.ndarray) -> np.ndarray:
        """The motion with these independent parts (..., free, n) and `J d = right`."""
        shape = (*np.broadcast_shapes(given.shape[:-2], right.shape[:-2]), model.nv, right.shape[-1])
        whole = np.zeros(shape)
        whole[..., free, :] = given
        whole[..., rest, :] = solve @ (right / size - J[..., free] @ given)
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
            if name == PARAMETERS:
                _watch_conflicts(owner, model, J @ dq, own / size)
        else:
            continue
        found[name] = (dq, dv)
        if a is not None:
            right = -acceleration["q"] @ dq - acceleration["v"] @ dv
            if own is not None:
                right = right - (acceleration[name] if name != "t" else acceleration[name][..., None])
            found[name] = (dq, dv, Z if name == "a" else completed(np.zeros((n, dq.shape[-1])), right))
    return found, magnified, J


def _watch_conflicts(owner: str, model: Model, closing: np.ndarray, opened: np.ndarray) -> None:
    """Warn of parameters that open rows by `opened` (..., nl, np), which the motion `closing` does not close again.

    Only redundant rows can conflict. What opens rows that nothing can close, as a shift out of the plane of a linkage,
    moves nothing and is not told.
    """
    whole = _largest(opened, 2)[..., None]  # of all parameters: one that moves nothing has only rounding
    left, moved = (np.abs(x).max(axis=-2, initial=0.0) for x in (opened + closing, closing))
    conflicting = ((left > CONFLICT * whole) & (moved > CONFLICT * whole)).reshape(-1, opened.shape[-1]).any(axis=0)
    if conflicting.any():
        entries = [
            f"{p.name}{list(index) if index else ''}" for p in model.parameters for index in np.ndindex(*p.shape)
        ]
        these = [name for name, is_one in zip(entries, conflicting, strict=True) if is_one]
        names = ", ".join(these[:SHOWN]) + (f" and {len(these) - SHOWN} more" if len(these) > SHOWN else "")
        warn_outside(
            f"{owner}: no closed position of model {model.name!r} follows a change of {names} alone: redundant "
            "constraints would conflict. Derivatives along the constraints are those of least squares, and right "
            "together with other changes that keep the loops closed"
        )


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


def _numbers(owner: str, model: Model, coordinates: tuple[str, ...]) -> tuple[int, ...]:
    """Numbers among the tree's rates of the independent coordinates that a user names; the model's choice if none."""
    if not coordinates:
        return independent_rates(model)
    known, count = model.coordinate_names, len(independent_rates(model))
    for name in coordinates:
        if name not in known:
            raise UnknownNameError(f"{owner}: there is no coordinate {name!r}{nearest(name, known)}")
    if len(set(coordinates)) < len(coordinates):
        raise InputError(f"{owner}: chart names a coordinate twice: {', '.join(map(repr, coordinates))}")
    if len(coordinates) != count:
        raise InputError(
            f"{owner}: model {model.name!r} has {counted(count, 'independent coordinate')}, and chart names "
            f"{len(coordinates)}: {', '.join(map(repr, coordinates))}"
        )
    return tuple(known.index(name) for name in coordinates)


def _magnified(owner: str, model: Model, J: np.ndarray, rest: list[int]) -> np.ndarray:
    """Condition (...,) of the dependent coordinates' columns, in units of the mechanism's size."""
    if not rest or not J.size:
        return np.ones(J.shape[:-2])
    if not np.isfinite(J).all():
        raise InputError(f"{owner}: some q or t gives constraints that are not finite; look for nan and inf")
    size = float(row_sizes(model).max())
    sliding = [unit != "rad/s" for link in model.tree.links for unit in link.kind.v_units]
    s = np.linalg.svd((J * np.where(sliding, size, 1.0))[..., rest], compute_uv=False)
    return np.asarray(s[..., 0] / np.maximum(s[..., -1], 1e-300))


def _require_good(owner: str, model: Model, J: np.ndarray, magnified: np.ndarray, free: list[int]) -> None:
    """Refuse configurations where the dependent coordinates do not follow from the others at all."""
    worst = float(magnified.max(initial=1.0))
    if not worst <= DEGENERATE:
        names = ", ".join(repr(model.coordinate_names[k]) for k in free)
        raise InputError(
            f"{owner}: at some q the coordinates {names} do not determine the others (condition {worst:.1e}): "
            f"{_advice(model, J, magnified)}"
        )


def _advice(model: Model, J: np.ndarray, magnified: np.ndarray) -> str:
    """What to ask for at the worst configuration: other coordinates where these are at a dead point."""
    from scipy.linalg import qr

    worst = int(np.argmax(magnified))
    here = J.reshape(-1, *J.shape[-2:])[worst]
    n = len(independent_rates(model))
    order = qr(here, mode="r", pivoting=True)[-1].tolist()
    others = sorted(order[model.nv - n :])
    if _magnified("", model, here, sorted(order[: model.nv - n])) < np.sqrt(magnified.flat[worst]):
        names = ", ".join(model.coordinate_names[k] for k in others)
        return f"near a dead point the others turn without them; ask with chart='independent: {names}' or 'tangent'"
    return "near a singular position, where motions branch, no coordinates do; ask beside it, or with chart='tangent'"


def along_constraints(
    owner: str, model: Model, wanted: By, given: Mapping[str, Any], found: Derivatives, core: int
) -> dict[str, NDArray[Any]]:
    """Derivatives along the constraints at `given` arguments from partial ones, whose value has `core` axes."""
    q, v, t = given["q"], given.get("v"), given.get("t", 0.0)
    moving, magnified, J = _moving(owner, model, wanted.names, q, v, t, given.get("a"), wanted.coordinates)
    partial, along, lost = found.by, {}, 0.0
    doubtful = float(magnified.max(initial=1.0)) > HARMLESS
    for name in wanted.names:
        if name not in moving:
            along[name] = partial[name]
            continue
        parts = [(partial[x], d) for x, d in zip(STATE, moving[name], strict=False) if x in partial]
        total = np.sum([_product(D, d, core) for D, d in parts], axis=0)
        total = total[..., 0] if name == "t" else total
        total = total if name in STATE else total + partial[name]
        along[name] = total.astype(partial["q"].dtype, copy=False)
        if doubtful:
            # d is off by eps times its condition, which D may magnify: large parts that cancel leave few digits
            off = EPS * magnified * sum(_largest(D, core + 1) * _largest(d, 2) for D, d in parts)
            speed = np.maximum(_largest(np.asarray(v, dtype=float), 1), 1.0) if name == "v" else 1.0
            size = np.maximum(_largest(along[name], core + (name != "t")), _largest(found.value, core) / speed)
            lost = max(lost, float(np.where(off > 0, off / np.maximum(size, 1e-300), 0.0).max(initial=0.0)))
    if digits(lost) < ENOUGH:
        warn_outside(
            f"{owner}: the derivative by {', '.join(map(repr, wanted.names))} along the constraints has about "
            f"{digits(lost)} digits at some q, of its own size or the value's: {_advice(model, J, magnified)}"
        )
    return along


def _largest(x: np.ndarray, axes: int) -> np.ndarray:
    """The largest entry along the last axes, whatever its sign."""
    return np.abs(x).max(axis=tuple(range(-axes, 0)), initial=0.0) if axes else np.abs(x)


def _product(D: np.ndarray, moving: np.ndarray, core: int) -> np.ndarray:
    """`D` (batch, core axes, nv) times `moving` (batch, nv, columns)."""
    shape = D.shape[D.ndim - core - 1 : -1]
    product = D.reshape(*D.shape[: D.ndim - core - 1], prod(shape), D.shape[-1]) @ moving
    return product.reshape(*product.shape[:-2], *shape, product.shape[-1])
