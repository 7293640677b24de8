"""The motions that constraints leave, as columns in chosen coordinates: forces of constraints do no work along them.

`J Z = 0`, and `Z` is the unit matrix in the rows of the coordinates chosen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from cardan.errors import InputError
from cardan.functions.along_constraints import DEGENERATE
from cardan.model.memory import Slot
from cardan.model.model import Model
from cardan.structure.assemble import constraint_kernels
from cardan.structure.kernels import time_argument
from cardan.structure.rows import generic_configurations, row_sizes

if TYPE_CHECKING:
    from numpy.typing import NDArray

_CHOICE: Slot[None, list[int]] = Slot("independent rates")
SMALL = 1e-9  # a singular value of the scaled rows below this part of the largest is none


@dataclass(frozen=True, eq=False)
class Motions:
    """`Z` (..., nv, freedoms), and the names of the coordinates that it is written with."""

    Z: NDArray[Any]
    names: tuple[str, ...]


def driven_rates(owner: str, model: Model, driven: Sequence[str]) -> list[int]:
    """Numbers among the tree's rates of driven joints; names of coordinates are allowed too."""
    names = [driven] if isinstance(driven, str) else list(driven)
    found: list[int] = []
    for name in names:
        if name in model.coordinate_names:
            found.append(model.coordinate_names.index(name))
        else:
            at = model.v_slice(name)
            found += range(at.start, at.stop)
    if len(set(found)) != len(found):
        raise InputError(f"{owner}: driven names a joint twice: {', '.join(map(repr, names))}")
    return found


def free_motions(
    owner: str, model: Model, q: NDArray[Any], t: NDArray[Any], driven: Sequence[str] | None = None
) -> Motions:
    """The motions at `q` (..., nq), written with the driven coordinates if these are as many as the freedoms."""
    J = scaled_constraints(model, q, t)
    column = _units(model)
    chosen = driven_rates(owner, model, driven) if driven is not None else []
    usual = _independent(model)
    free = chosen if len(chosen) == len(usual) else usual
    rest = [k for k in range(model.nv) if k not in free]
    if not rest:
        return Motions(np.broadcast_to(np.eye(model.nv)[:, free], (*J.shape[:-2], model.nv, len(free))),
                       tuple(model.coordinate_names[k] for k in free))  # fmt: skip
    scaled = (J * column)[..., rest]
    s = np.linalg.svd(scaled, compute_uv=False)
    worst = float((s[..., 0] / np.maximum(s[..., min(len(rest), s.shape[-1]) - 1], 1e-300)).max(initial=1.0))
    if scaled.shape[-2] < len(rest) or not worst <= DEGENERATE:
        names = ", ".join(repr(model.coordinate_names[k]) for k in free) or "none"
        raise InputError(
            f"{owner}: at some q the coordinates {names} do not determine the others (condition {worst:.1e}): a dead "
            "point or a singular position; leave these states out, or name other joints as driven"
        )
    Z = np.zeros((*J.shape[:-2], model.nv, len(free)))
    Z[..., free, :] = np.eye(len(free))
    follow = -np.linalg.pinv(scaled, rcond=SMALL) @ J[..., free]
    Z[..., rest, :] = follow * column[rest][:, None]
    return Motions(Z, tuple(model.coordinate_names[k] for k in free))


def scaled_constraints(model: Model, q: NDArray[Any], t: Any) -> NDArray[Any]:
    """`J` (..., rows, nv) of all constraints, each row in units of its size."""
    J = np.asarray(constraint_kernels(model)[1](q, *time_argument(model, t))[0])
    return J / row_sizes(model)[:, None]


def _independent(model: Model) -> list[int]:
    """Coordinates that determine the others at a configuration that nothing singles out."""
    from scipy.linalg import qr

    def choose() -> list[int]:
        here = np.asarray(generic_configurations(model.unbound)[0])
        J = scaled_constraints(model.unbound, here, 0.0) * _units(model)
        parts, order = qr(J, mode="r", pivoting=True)[-2:]
        size = np.abs(np.diag(parts))
        rank = int((size > SMALL * size.max(initial=0.0)).sum())
        return sorted(order[rank:].tolist())

    return _CHOICE.find(model.unbound, None, choose)


def _units(model: Model) -> NDArray[Any]:
    """The mechanism's size (nv,) for rates in m/s, 1 for rad/s: in these units lengths and angles weigh alike."""
    size = float(row_sizes(model).max(initial=1.0))
    return np.where([unit == "m/s" for link in model.tree.links for unit in link.kind.v_units], size, 1.0)


def freedoms(model: Model) -> int:
    """Number of rates that constraints leave free."""
    return len(_independent(model)) if model.has_rows else model.nv
