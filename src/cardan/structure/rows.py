"""Which constraint rows to keep: an independent set, found at configurations that nothing singles out.

Free parameters are at their nominal values here.
"""

from __future__ import annotations

import hashlib

import numpy as np

from cardan.errors import ModelError
from cardan.formulation.absolute import Absolute
from cardan.formulation.dynamics import shape_of
from cardan.formulation.formulation import Formulation
from cardan.model.memory import Slot
from cardan.model.model import Model
from cardan.structure.assemble import assemble, closed_start, constraint_kernels, moved_by
from cardan.structure.kernels import equations_at, time_argument
from cardan.structure.sparse_assembly import consistent_velocity
from cardan.structure.sparse_rank import independent_at, left_out_by_plane, spans
from cardan.structure.sparse_rows import has_sparse_rows, row_labels

SMALL = 1e-8  # of rows of unit length: less is dependence
ROUNDING = 1e-11  # of what a row is computed from: less is none
SAMPLES = 5
LARGE_SAMPLES = 3

_KEPT: Slot[str, list[int]] = Slot("constraint rows that are kept, by formulation")
_INDEPENDENT: Slot[None, list[int]] = Slot("independent rows of the tree")
_SIZES: Slot[None, np.ndarray] = Slot("sizes of the tree's rows")
_GENERIC: Slot[None, list[np.ndarray]] = Slot("configurations that nothing singles out")


def kept_rows(model: Model, formulation: Formulation) -> list[int]:
    """Constraint rows that a formulation solves with: an independent set."""
    return list(_KEPT.find(model, formulation.key, lambda: _kept_rows(model.unbound, formulation)))


def solving_facts(model: Model, formulation: Formulation) -> str:
    """All that kernels which solve the equations depend on beside `model.key`, which knows no start: the rows too."""
    return f"{formulation.facts(model)} rows {kept_rows(model, formulation)}"


def _kept_rows(model: Model, formulation: Formulation) -> list[int]:
    if formulation.in_tree:
        return independent_rows(model)
    leading = range(formulation.leading_rows(model))
    if not model.has_rows and leading:
        return list(leading)
    large = has_sparse_rows(model) and isinstance(formulation, Absolute) and formulation.divides
    labels = row_labels(model) if large else shape_of(model, formulation).labels
    number = {label.name: k for k, label in enumerate(labels)}
    if set(model.rows.names) <= number.keys():
        # rows of the tree's joints never depend on one another, and they leave to the others what the tree leaves
        left_out = set(range(len(model.rows))) - set(independent_rows(model))
        dropped = {number[model.rows[row].name] for row in left_out}
        return [k for k in number.values() if k not in dropped]
    configurations = generic_configurations(model) if model.rows_at is None else [model.rows_at]
    matrices = [np.asarray(equations_at(model, formulation, q)[2]) for q in configurations]
    chosen = [pivots(scaled(J)) for J in matrices]
    rows = sorted(chosen[usual([len(rows) for rows in chosen])])
    if set(leading) <= set(rows):
        return rows
    kept = list(leading)
    for row in range(len(kept), len(matrices[0])):
        J = matrices[0]
        if np.linalg.matrix_rank(J[[*kept, row]], tol=1e-8 * np.linalg.norm(J, 2)) > len(kept):
            kept.append(row)
    return kept


def independent_rows(model: Model) -> list[int]:
    """Numbers of the tree's constraint rows that span all of them."""
    return list(_INDEPENDENT.find(model, None, lambda: _independent_rows(model.unbound)))


def _independent_rows(model: Model) -> list[int]:
    if not model.has_rows:
        return []
    if has_sparse_rows(model):
        return _independent_large(model)
    if model.rows_at is not None:
        return sorted(pivots(scaled_rows(model, model.rows_at)))
    chosen = [pivots(scaled_rows(model, q)) for q in generic_configurations(model)]
    return sorted(chosen[usual([len(rows) for rows in chosen])])


def _independent_large(model: Model) -> list[int]:
    """The same by sparse elimination: where the start has full rank, so have all configurations near it."""
    if model.rows_at is not None:
        return independent_at(model, model.rows_at)
    home, q = closed_start(model)
    if len(home.rows) == len(model.rows):
        rows = independent_at(model, q)
        if len(rows) + len(left_out_by_plane(model)) == len(model.rows):
            return rows
    places = generic_configurations(model)
    chosen = [independent_at(model, q) for q in places]
    best = usual([len(rows) for rows in chosen])
    # rows that are dependent with open loops too are left out rather than others, since they are so everywhere
    open_loops = moved_by(model, places[best], np.random.default_rng(2).uniform(-0.5, 0.5, model.nv))
    rows = independent_at(model, open_loops)
    return rows if len(rows) == len(chosen[best]) and spans(model, places[best], rows) else chosen[best]


def usual(ranks: list[int]) -> int:
    """Where the rank met most often is: a lower one is a special position, a higher one not quite a closed one."""
    return ranks.index(max(set(ranks), key=lambda rank: (ranks.count(rank), rank)))


def generic_configurations(model: Model) -> list[np.ndarray]:
    """A few consistent configurations (nq,) that nothing singles out."""
    return list(_GENERIC.find(model, None, lambda: _generic_configurations(model.unbound)))


def settle_rows(model: Model, configurations: list[np.ndarray], rows: list[int]) -> None:
    """Give a model its configurations and independent rows, as they are known from one with the same constraints.

    Then no kernels are compiled in order to find them.
    """
    _GENERIC.put(model, None, configurations)
    _INDEPENDENT.put(model, None, rows)


def usual_key(model: Model) -> str:
    """Digest of these configurations: what is usual there enters kernels as numbers, and `model.key` has no start."""
    digits = np.round(generic_configurations(model), 6) + 0.0
    return hashlib.sha256(digits.tobytes()).hexdigest()[:16]


def _generic_configurations(model: Model) -> list[np.ndarray]:
    rng = np.random.default_rng(1)
    model, q = closed_start(model)
    found = [] if model.has_rows else [q]
    samples = LARGE_SAMPLES if has_sparse_rows(model) else SAMPLES
    for _ in range(20 * samples):
        try:
            found.append(assemble(model, _nudged(model, q, rng))[0])
        except ModelError:
            continue  # that nudge led nowhere; another will do
        if len(found) == samples:
            break
    return found or [q]


def _nudged(model: Model, q: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A configuration up to a third of a radian or metre away, along the freedoms that there are at q."""
    wish = rng.uniform(-1, 1, model.nv)
    if has_sparse_rows(model):
        still = np.zeros(len(model.rows))
        along = consistent_velocity(model, q, wish, np.ones(model.nv, dtype=bool), 0.0, still)[0]
    else:
        J = scaled_rows(model, q)
        along = wish - np.linalg.pinv(J, rcond=SMALL) @ (J @ wish)
    length = float(np.linalg.norm(along))
    if length > 1e-9:
        wish = along
    return moved_by(model, q, rng.uniform(0.15, 0.3) * wish / max(float(np.abs(wish).max(initial=0.0)), 1e-300))


def row_matrix(model: Model, q: np.ndarray) -> np.ndarray:
    """`J` (nl, nv) in the tree's coordinates."""
    return np.asarray(constraint_kernels(model)[1](q, *time_argument(model, 0.0))[0])


def scaled(J: np.ndarray, size: np.ndarray | float = 1.0) -> np.ndarray:
    """Rows of unit length, so that metres and radians weigh alike; mere rounding beside `size` becomes zero."""
    length = np.linalg.norm(J, axis=1)
    real = length > ROUNDING * np.broadcast_to(size, length.shape)
    return np.where(real[:, None], J / np.where(real, length, 1.0)[:, None], 0.0)


def real_rows(model: Model, J: np.ndarray) -> np.ndarray:
    """The tree's constraint rows (..., nl, n) with zeros for those that are mere rounding: a loop that adds none."""
    length = np.linalg.norm(J, axis=-1, keepdims=True)
    return np.where(length <= ROUNDING * row_sizes(model)[:, None], 0.0, J)  # NaN stays


def scaled_rows(model: Model, q: np.ndarray) -> np.ndarray:
    """The tree's constraint rows (nl, nv), scaled."""
    return scaled(row_matrix(model, q), row_sizes(model))


def row_sizes(model: Model) -> np.ndarray:
    """What the tree's constraint rows (nl,) are computed from: moments of size 1, forces of the mechanism's length."""
    return _SIZES.find(model, None, lambda: _row_sizes(model.unbound))


def _row_sizes(model: Model) -> np.ndarray:
    reach = [np.linalg.norm(x) for link in model.tree.links for x in (link.r, link.com)]
    reach += [np.linalg.norm(model.tree.body_pose[b].position) for b in range(model.nb)]
    reach += [np.linalg.norm(at.position) for joint in model.joints for at in (joint.at, joint.child_at)]
    size = float(np.max(reach, initial=1e-9))
    return np.array([size if label.unit == "m" else 1.0 for label in model.rows])


def pivots(J: np.ndarray) -> list[int]:
    """Rows that span the row space, by QR with pivoting."""
    from scipy.linalg import qr

    if J.size == 0:
        return []
    _, R, order = qr(J.T, mode="economic", pivoting=True)
    size = np.abs(np.diag(R))
    return [int(k) for k in order[: int((size > SMALL).sum())]]
