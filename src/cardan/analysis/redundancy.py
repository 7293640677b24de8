"""Which constraints depend on one another: ranks at generic configurations, freedoms, and the rows worth keeping."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cardan.errors import ModelError
from cardan.formulation.general import equations_of_motion, row_count
from cardan.integrate.assemble import assemble, constraint_kernels, time_argument
from cardan.kernels.evaluate import compile_quantity, kernel_of
from cardan.model.graph import weightless_links
from cardan.model.model import Model

DIRECTIONS = ("moment x", "moment y", "moment z", "force x", "force y", "force z")
SMALL = 1e-8  # of rows of unit length: less is dependence
SAMPLES = 5


@dataclass(frozen=True)
class Redundancy:
    """What `cd.redundancy(model)` finds.

    `kutzbach` is the Gruebler-Kutzbach count, six freedoms a body less the rows of every joint; `freedoms` the
    number that really is, from the `rank` of the tree's constraint rows; `groups` lists sets of constraints that
    depend on one another, by joint and direction; `redundant` how many rows too many there are.
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
            f"{self.model}: {self.freedoms} freedoms (Gruebler-Kutzbach count {self.kutzbach}); "
            f"{self.rows} constraint rows of rank {self.rank}"
        ]
        lines += [f"  depend on one another: {', '.join(group)}" for group in self.groups]
        return "\n".join(lines)


def redundancy(model: Model) -> Redundancy:
    """Count freedoms at generic consistent configurations, and name the constraints that depend on one another."""
    n = row_count(model)
    removed = sum(joint.kind.freedoms_removed for joint in model.joints) + len(model.couplings)
    kutzbach = 6 * model.nb - removed
    if n == 0:
        return Redundancy(model.name, kutzbach, 0, 0, model.nv, ())
    J = [_scaled_rows(model, q) for q in generic_configurations(model)]
    ranks = [len(_pivots(matrix)) for matrix in J]
    best = ranks.index(_usual(ranks))
    groups = _dependent_groups(J[best], row_names(model))
    return Redundancy(model.name, kutzbach, n, ranks[best], model.nv - ranks[best], groups)


def independent_rows(model: Model, formulation: str) -> list[int]:
    """Numbers of constraint rows that span all of them, in a formulation's own rates; kept with the model."""
    key = ("rows", formulation)
    if key not in model.kernels:
        model.kernels[key] = _independent_rows(model, formulation)
    return list(model.kernels[key])


def _independent_rows(model: Model, formulation: str) -> list[int]:
    if formulation in ("spatial", "newton_euler"):
        if row_count(model) == 0:
            return []
        matrices = [_scaled_rows(model, q) for q in generic_configurations(model)]
    else:
        kernel = compile_quantity(model, equations_of_motion(model, formulation), formulation)
        matrices = []
        for q in generic_configurations(model):
            still = np.zeros(model.nv)
            J = kernel(q, still, still, np.zeros((model.nb, 6)), *time_argument(model, 0.0))[2]
            matrices.append(_scaled(J))
    chosen = [_pivots(J) for J in matrices]
    usual = _usual([len(rows) for rows in chosen])
    return sorted(next(rows for rows in chosen if len(rows) == usual))


def _usual(ranks: list[int]) -> int:
    """The rank met most often: a lower one is a special position, a higher one a configuration not quite closed."""
    return max(set(ranks), key=lambda rank: (ranks.count(rank), rank))


def generic_configurations(model: Model) -> list[np.ndarray]:
    """A few consistent configurations (nq,) that nothing singles out; kept with the model."""
    if "generic" not in model.kernels:
        rng = np.random.default_rng(1)
        q, _ = assemble(model)
        found = [q] if not (model.cuts or model.couplings) else []
        for _ in range(20 * SAMPLES):
            try:
                found.append(assemble(model, _nudged(model, q, rng))[0])
            except ModelError:
                continue  # that nudge led nowhere; another will do
            if len(found) == SAMPLES:
                break
        model.kernels["generic"] = found or [q]
    return list(model.kernels["generic"])


def _nudged(model: Model, q: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A configuration a third of a radian or metre away, along the freedoms that there are at q."""
    J = _scaled_rows(model, q)
    wish = rng.uniform(-1, 1, model.nv)
    along = wish - np.linalg.pinv(J, rcond=SMALL) @ (J @ wish)
    length = float(np.linalg.norm(along))
    if length > 1e-9:
        wish = along
    return np.asarray(kernel_of(model, "plus")(q, 0.3 * wish / max(float(np.abs(wish).max()), 1e-300)))


def row_matrix(model: Model, q: np.ndarray) -> np.ndarray:
    """`J` (nl, nv) in the tree's coordinates."""
    return np.asarray(constraint_kernels(model)[1](q, *time_argument(model, 0.0))[0])


def row_names(model: Model) -> list[str]:
    """A name for each row of `J`: the joint, and what its reaction is in the joint's axes."""
    names = []
    for j in model.cuts:
        joint = model.joints[j]
        T = joint.kind.T(np.array(joint.kind.neutral))
        names += [f"{joint.name}: {DIRECTIONS[int(np.argmax(np.abs(T[:, k])))]}" for k in range(T.shape[1])]
    return names + [coupling.name for coupling in model.couplings]


def _scaled(J: np.ndarray, size: np.ndarray | float = 1.0) -> np.ndarray:
    """Rows of unit length, so that metres and radians weigh alike; mere rounding beside `size` becomes zero."""
    length = np.linalg.norm(J, axis=1)
    real = length > 1e-11 * np.broadcast_to(size, length.shape)
    return np.where(real[:, None], J / np.where(real, length, 1.0)[:, None], 0.0)


def _scaled_rows(model: Model, q: np.ndarray) -> np.ndarray:
    """The tree's constraint rows (nl, nv), scaled: moments are of size 1, forces of the mechanism's length."""
    reach = [np.linalg.norm(x) for link in model.tree.links for x in (link.r, link.com)]
    reach += [np.linalg.norm(model.tree.body_pose[b].position) for b in range(model.nb)]
    reach += [np.linalg.norm(at.position) for joint in model.joints for at in (joint.at, joint.child_at)]
    sizes = [float(np.max(reach, initial=1e-9)) if ": force" in name else 1.0 for name in row_names(model)]
    return _scaled(row_matrix(model, q), np.array(sizes))


def _pivots(J: np.ndarray) -> list[int]:
    """Rows that span the row space, by QR with pivoting."""
    from scipy.linalg import qr

    _, R, order = qr(J.T, mode="economic", pivoting=True)
    size = np.abs(np.diag(R))
    return [int(k) for k in order[: int((size > SMALL).sum())]]


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


def require_motion(model: Model) -> None:
    """Refuse a mechanism that cannot move, whose motions conflict, or that can move without moving any inertia."""
    found = redundancy(model)
    moved = any(c.depends_on_time for c in model.couplings)
    if found.freedoms == 0 and not moved and model.nv > 0:
        joints = ", ".join(repr(model.joints[j].name) for j in model.cuts)
        raise ModelError(
            f"model {model.name!r} is locked: {model.nv} coordinates of the tree and {found.rank} independent "
            f"constraints leave no freedom (loops closed at {joints}); remove a joint, or give one more freedom"
        )
    if moved:
        _require_consistent_motions(model)
    if weightless_links(model.tree):
        _require_inertia(model)


def _require_consistent_motions(model: Model) -> None:
    """Prescribed motions must be possible, not only at the start."""
    for t in (0.1, 0.37):
        try:
            assemble(model, generic_configurations(model)[0], t=t)
        except ModelError as error:
            names = ", ".join(repr(c.name) for c in model.couplings if c.depends_on_time)
            raise ModelError(
                f"model {model.name!r}: the prescribed motion {names} conflicts with the other constraints "
                f"at t = {t:g} s: {error}"
            ) from None


def _require_inertia(model: Model) -> None:
    """Every motion that the constraints allow must move some mass."""
    q = generic_configurations(model)[0]
    M = np.asarray(kernel_of(model, "mass_matrix")(q))
    J = _scaled_rows(model, q)
    _, s, V = np.linalg.svd(J)
    free = V[int((s > SMALL).sum()) :].T
    values, vectors = np.linalg.eigh(free.T @ M @ free)
    if values.size and values[0] <= 1e-12 * max(float(np.trace(M)), 1e-300):
        k = int(np.argmax(np.abs(free @ vectors[:, 0])))
        raise ModelError(
            f"model {model.name!r}: joint {model.coordinate_names[k]!r} can move without moving any inertia, though "
            "loops hold it; give a body of the loop mass and inertia"
        )
