"""Which constraint rows to keep: an independent set, found at configurations that nothing singles out."""

from __future__ import annotations

import numpy as np

from cardan.errors import ModelError
from cardan.formulation.dynamics import equations_of_motion, row_count
from cardan.model.model import Model
from cardan.structure.assemble import assemble, constraint_kernels, time_argument
from cardan.structure.kernels import compile_quantity, kernel_of

DIRECTIONS = ("moment x", "moment y", "moment z", "force x", "force y", "force z")
SMALL = 1e-8  # of rows of unit length: less is dependence
SAMPLES = 5


def independent_rows(model: Model, formulation: str) -> list[int]:
    """Numbers of constraint rows that span all of them, in a formulation's own rates; kept with the model.

    Free parameters are at their nominal values here, as for everything in this file.
    """
    model, key = model.unbound, ("rows", formulation)
    if key not in model.kernels:
        model.kernels[key] = _independent_rows(model, formulation)
    return list(model.kernels[key])


def _independent_rows(model: Model, formulation: str) -> list[int]:
    if formulation in ("spatial", "newton_euler"):
        if row_count(model) == 0:
            return []
        matrices = [scaled_rows(model, q) for q in generic_configurations(model)]
    else:
        matrices = [scaled(_rows_at(model, formulation, q)) for q in generic_configurations(model)]
    return usual_pivots(matrices)[0]


def kept_rows(model: Model, formulation: str) -> list[int]:
    """Constraint rows that a formulation solves with: independent, and for `points` all of the links' own first.

    Its recursion solves those; of the others it takes what they leave open.
    """
    model = model.unbound
    if formulation != "points":
        return independent_rows(model, formulation)
    from cardan.structure.planarity import find_plane  # which needs the configurations of this file

    own = find_plane(model).own_rows
    rows = independent_rows(model, "points") if model.cuts or model.couplings else list(range(own))
    if set(range(own)) <= set(rows):
        return rows
    J = _rows_at(model, "points", generic_configurations(model)[0])
    kept = list(range(own))
    for row in range(own, len(J)):
        if np.linalg.matrix_rank(J[[*kept, row]], tol=1e-8 * np.linalg.norm(J, 2)) > len(kept):
            kept.append(row)
    return kept


def position_rows(model: Model) -> list[int]:
    """Numbers of the rows of the position residual whose derivatives span all of them; kept with the model.

    A joint's residual need not list its rows in the order of its constraint forces.
    """
    model = model.unbound
    if row_count(model) == 0:
        return []
    if "position rows" not in model.kernels:
        derivative = constraint_kernels(model)[0]
        found = [derivative(q, *time_argument(model, 0.0))[1] for q in generic_configurations(model)]
        size = max(1.0, *(float(np.abs(G).max()) for G in found))
        model.kernels["position rows"] = usual_pivots([scaled(G, size) for G in found])[0]
    return list(model.kernels["position rows"])


def _rows_at(model: Model, formulation: str, q: np.ndarray) -> np.ndarray:
    """`J` (nl, n) in a formulation's own rates."""
    place = ("general", formulation, "equations", True)
    if place not in model.kernels:
        model.kernels[place] = compile_quantity(model, equations_of_motion(model, formulation), formulation)
    still = np.zeros(model.nv)
    J = model.kernels[place](q, still, still, np.zeros((model.nb, 6)), *time_argument(model, 0.0))[2]
    return np.asarray(J)


def usual_pivots(*families: list[np.ndarray]) -> list[list[int]]:
    """Rows that span each family's matrices, one a configuration, all chosen where the first has its usual rank."""
    chosen = [[pivots(J) for J in matrices] for matrices in families]
    place = usual([len(rows) for rows in chosen[0]])
    return [sorted(rows[place]) for rows in chosen]


def usual(ranks: list[int]) -> int:
    """Where the rank met most often is: a lower one is a special position, a higher one not quite a closed one."""
    return ranks.index(max(set(ranks), key=lambda rank: (ranks.count(rank), rank)))


def generic_configurations(model: Model) -> list[np.ndarray]:
    """A few consistent configurations (nq,) that nothing singles out; kept with the model."""
    model = model.unbound
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
    """A configuration up to a third of a radian or metre away, along the freedoms that there are at q."""
    J = scaled_rows(model, q)
    wish = rng.uniform(-1, 1, model.nv)
    along = wish - np.linalg.pinv(J, rcond=SMALL) @ (J @ wish)
    length = float(np.linalg.norm(along))
    if length > 1e-9:
        wish = along
    return np.asarray(
        kernel_of(model, "plus")(q, rng.uniform(0.15, 0.3) * wish / max(float(np.abs(wish).max(initial=0.0)), 1e-300))
    )


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


def scaled(J: np.ndarray, size: np.ndarray | float = 1.0) -> np.ndarray:
    """Rows of unit length, so that metres and radians weigh alike; mere rounding beside `size` becomes zero."""
    length = np.linalg.norm(J, axis=1)
    real = length > 1e-11 * np.broadcast_to(size, length.shape)
    return np.where(real[:, None], J / np.where(real, length, 1.0)[:, None], 0.0)


def scaled_rows(model: Model, q: np.ndarray) -> np.ndarray:
    """The tree's constraint rows (nl, nv), scaled."""
    return scaled(row_matrix(model, q), row_sizes(model))


def row_sizes(model: Model) -> np.ndarray:
    """What the tree's constraint rows (nl,) are computed from: moments of size 1, forces of the mechanism's length."""
    reach = [np.linalg.norm(x) for link in model.tree.links for x in (link.r, link.com)]
    reach += [np.linalg.norm(model.tree.body_pose[b].position) for b in range(model.nb)]
    reach += [np.linalg.norm(at.position) for joint in model.joints for at in (joint.at, joint.child_at)]
    return np.array([float(np.max(reach, initial=1e-9)) if ": force" in name else 1.0 for name in row_names(model)])


def pivots(J: np.ndarray) -> list[int]:
    """Rows that span the row space, by QR with pivoting."""
    from scipy.linalg import qr

    if J.size == 0:
        return []
    _, R, order = qr(J.T, mode="economic", pivoting=True)
    size = np.abs(np.diag(R))
    return [int(k) for k in order[: int((size > SMALL).sum())]]
