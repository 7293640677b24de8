"""Which constraints depend on one another: ranks at generic configurations, and freedoms."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cardan.errors import ModelError
from cardan.model.html import html_table
from cardan.model.memory import Slot, require_model
from cardan.model.model import Model
from cardan.model.tree import weightless_links
from cardan.model.values import counted
from cardan.structure.assemble import assemble
from cardan.structure.kernels import tree_kernel
from cardan.structure.rows import SMALL, generic_configurations, independent_rows, pivots, scaled_rows, usual
from cardan.structure.sparse_rank import independent_at, left_out_by_plane
from cardan.structure.sparse_rows import has_sparse_rows

_TIED: Slot[None, bool] = Slot("whether prescribed motions depend on other constraints, of a mechanism that can move")


@dataclass(frozen=True)
class Redundancy:
    """What `cd.redundancy(model)` finds.

    `kutzbach` is the Gruebler-Kutzbach count, six freedoms a body less the rows of every joint; `freedoms` the
    number that really is, from the `rank` of the tree's constraint rows; `groups` lists sets of constraints that
    depend on one another, by joint and direction (of a large mechanism, more than 64 links, only those that are
    redundant because it moves in a plane); `redundant` how many rows too many there are.
    """

    model: str
    kutzbach: int
    rows: int
    rank: int
    freedoms: int
    groups: tuple[tuple[str, ...], ...]

    @property
    def redundant(self) -> int:
        """Rows more than the rank."""
        return self.rows - self.rank

    def __str__(self) -> str:
        """A few lines."""
        lines = [
            f"{self.model}: {counted(self.freedoms, 'freedom')} (Gruebler-Kutzbach count {self.kutzbach}); "
            f"{counted(self.rows, 'constraint row')} of rank {self.rank}"
        ]
        lines += [f"  depend on one another: {', '.join(group)}" for group in self.groups]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        rows = [
            ("freedoms", f"{self.freedoms}"),
            ("Gruebler-Kutzbach count", f"{self.kutzbach}"),
            ("constraint rows", f"{self.rows}"),
            ("their rank", f"{self.rank}"),
            *(("depend on one another", ", ".join(group)) for group in self.groups),
        ]
        return html_table(f"Redundancy of {self.model!r}", rows)


def redundancy(model: Model) -> Redundancy:
    """Count freedoms at generic consistent configurations, and name the constraints that depend on one another.

    Free parameters are at their nominal values.
    """
    require_model("redundancy", model)
    model = model.unbound
    n = len(model.rows)
    removed = sum(joint.kind.freedoms_removed for joint in model.joints) + len(model.couplings) + len(model.constraints)
    kutzbach = 6 * model.nb - removed
    if n == 0:
        return Redundancy(model.name, kutzbach, 0, 0, model.nv, ())
    if has_sparse_rows(model):
        kept = independent_rows(model)
        alone = tuple((model.rows[k].name,) for k in left_out_by_plane(model))
        return Redundancy(model.name, kutzbach, n, len(kept), model.nv - len(kept), alone)
    J = [scaled_rows(model, q) for q in generic_configurations(model)]
    ranks = [len(pivots(matrix)) for matrix in J]
    best = usual(ranks)
    groups = _dependent_groups(J[best], model.rows.names)
    return Redundancy(model.name, kutzbach, n, ranks[best], model.nv - ranks[best], groups)


def _dependent_groups(J: np.ndarray, names: list[str]) -> tuple[tuple[str, ...], ...]:
    """Sets of rows tied together by a vanishing combination."""
    U, s, _ = np.linalg.svd(J)
    rank = int((s > SMALL).sum())
    null = U[:, rank:]
    tied = np.abs(null @ null.T) > 1e-6  # a projector: rows in different groups do not meet in it
    left, groups = {k for k in range(len(names)) if tied[k, k]}, []
    while left:
        group, ahead = set(), [min(left)]
        while ahead:
            k = ahead.pop()
            if k not in group:
                group.add(k)
                ahead += [m for m in left if tied[k, m]]
        left -= group
        groups.append(tuple(names[k] for k in sorted(group)))
    return tuple(groups)


def require_motion(model: Model, span: tuple[float, float] = (0.0, 1.0)) -> None:
    """Refuse a mechanism that cannot move, whose motions conflict, or that can move without moving any inertia.

    `span` are the times, s, between which motions are needed.
    """
    if _TIED.find(model, None, lambda: _require_motion(model.unbound)):
        _require_consistent_motions(model.unbound, span)


def _require_motion(model: Model) -> bool:
    """Refuse a mechanism that cannot move; return whether prescribed motions depend on other constraints."""
    found = redundancy(model)
    moved = {c.owner for c in model.couplings if c.depends_on_time}
    moved |= {c.owner for c in model.constraints if c.depends_on_time}
    if found.freedoms == 0 and not moved and model.nv > 0:
        owners = [repr(model.joints[j].name) for j in model.cuts] + [c.owner for c in model.couplings]
        held = ", ".join(dict.fromkeys([*owners, *(c.owner for c in model.constraints)]))
        raise ModelError(
            f"model {model.name!r} is locked: {model.nv} coordinates of the tree and {found.rank} independent "
            f"constraints leave no freedom (held by {held}); remove a joint, or give one more freedom"
        )
    if weightless_links(model.tree):
        _require_inertia(model)
    if not moved:
        return False
    fixed = [row.owner not in moved for row in model.rows]
    if has_sparse_rows(model):
        return found.rank < len(independent_at(model, generic_configurations(model)[0], np.array(fixed))) + fixed.count(
            False
        )
    J = scaled_rows(model, generic_configurations(model)[0])
    return len(pivots(J)) < len(pivots(J[fixed])) + fixed.count(False)


def _require_consistent_motions(model: Model, span: tuple[float, float]) -> None:
    """Motions that depend on other constraints must fit them, not only at the start."""
    for t in (span[0] + part * (span[1] - span[0]) for part in (0.1, 0.37)):
        try:
            assemble(model, generic_configurations(model)[0], t=t)
        except ModelError as error:
            names = [repr(c.name) for c in model.couplings if c.depends_on_time]
            what = f"motion {names[0]} conflicts with the other constraints"
            if len(names) > 1:
                what = f"motions {', '.join(names)} conflict; a freedom follows one motion, so remove those too many"
            raise ModelError(f"model {model.name!r}: the prescribed {what} at t = {t:g} s: {error}") from None


def _require_inertia(model: Model) -> None:
    """Every motion that the constraints allow must move some mass."""
    q = generic_configurations(model)[0]
    M = np.asarray(tree_kernel(model, "mass_matrix")(q))
    J = scaled_rows(model, q)
    _, s, V = np.linalg.svd(J)
    free = V[int((s > SMALL).sum()) :].T
    values, vectors = np.linalg.eigh(free.T @ M @ free)
    if values.size and values[0] <= 1e-12 * max(float(np.trace(M)), 1e-300):
        k = int(np.argmax(np.abs(free @ vectors[:, 0])))
        raise ModelError(
            f"model {model.name!r}: joint {model.coordinate_names[k]!r} can move without moving any inertia, though "
            "loops hold it; give a body of the loop mass and inertia"
        )
