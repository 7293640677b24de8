"""Motion of a whole mechanism from that of its driven coordinates, batched: loops are closed at every sample.

Configurations by Newton's method from sample to sample; rates and accelerations from `J v = beta`, `J a = gamma`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cardan.formulation.spatial import SPATIAL
from cardan.functions.dynamics import plus
from cardan.model.model import Model
from cardan.structure.kernels import equations_at
from cardan.structure.rows import row_sizes

if TYPE_CHECKING:
    from numpy.typing import NDArray

CLOSED = 1e-11  # m and rad
NEAR = 12  # Newton steps of a sample
LONGEST = 0.5  # rad or m, of a driven coordinate between two configurations that are closed one after the other
WORST = 1e4  # condition of the dependent coordinates beyond which a motion comes too near a dead point


def whole_motion(
    model: Model, driven: list[int], q_d: NDArray[Any], v_d: NDArray[Any], a_d: NDArray[Any]
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]]:
    """`q` (n, T, nq), `v`, `a` (n, T, nv) from driven ones (n, T, driven), and which motions (n,) are possible."""
    n, T = q_d.shape[:2]
    place = coordinate_places(model)
    q = np.tile(start_of(model), (n, T, 1))
    v, a = np.zeros((n, T, model.nv)), np.zeros((n, T, model.nv))
    coordinates = [place[k] for k in driven]
    v[..., driven], a[..., driven] = v_d, a_d
    if not model.has_rows:
        q[..., coordinates] = q_d
        return q, v, a, np.ones(n, dtype=bool)
    rest = [k for k in range(model.nv) if k not in driven]
    size = row_sizes(model)[:, None]
    good = np.ones(n, dtype=bool)
    here = q[:, 0]
    for k in range(T):
        way = q_d[:, k] - here[:, coordinates]
        steps = max(int(np.ceil(float(np.abs(way).max(initial=0.0)) / LONGEST)), 1)
        for part in range(1, steps + 1):
            here = np.array(here)
            here[:, coordinates] = q_d[:, k] - way * (1 - part / steps)
            here, closed = _closed(model, here, rest, size)
            good &= closed
        here = np.where(good[:, None], here, q[:, 0])
        q[:, k] = here
    _, _, J, _, beta, _ = equations_at(model, SPATIAL, q)
    J = J / size
    inverse = np.linalg.pinv(J[..., rest], rcond=1e-9)
    s = np.linalg.svd(J[..., rest], compute_uv=False)[..., : len(rest)]
    good &= (s[..., 0] <= WORST * s[..., -1]).all(axis=-1)

    def follow(right: NDArray[Any], given: NDArray[Any]) -> NDArray[Any]:
        lack = right / size[:, 0] - np.einsum("...ij,...j->...i", J[..., driven], given)
        return np.einsum("...ij,...j->...i", inverse, lack)

    v[..., rest] = follow(beta, v_d)
    gamma = equations_at(model, SPATIAL, q, 0.0, v)[3]
    a[..., rest] = follow(gamma, a_d)
    return q, v, a, good


def _closed(model: Model, q: NDArray[Any], rest: list[int], size: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Configurations (n, nq) with the loops closed by the dependent coordinates, and where that worked."""
    for _ in range(NEAR):
        found = equations_at(model, SPATIAL, q)
        J, phi = found[2] / size, found[5] / size[:, 0]
        if np.abs(phi).max(initial=0.0) <= CLOSED:
            break
        step = np.zeros((len(q), model.nv))
        step[:, rest] = -np.einsum("nij,nj->ni", np.linalg.pinv(J[..., rest], rcond=1e-9), phi)
        most = np.abs(step).max(axis=1, keepdims=True)
        q = np.asarray(plus(model, q, step * np.minimum(1.0, 0.5 / np.maximum(most, 1e-300))))
    return q, np.abs(phi).max(axis=1, initial=0.0) <= 1e3 * CLOSED


def coordinate_places(model: Model) -> dict[int, int]:
    """Where in q the coordinate of a rate is, of joints with one coordinate for each rate."""
    found: dict[int, int] = {}
    for link in model.tree.links:
        if link.kind.nq == link.kind.nv:
            found |= dict(zip(range(link.v.start, link.v.stop), range(link.q.start, link.q.stop), strict=True))
    return found


def start_of(model: Model) -> NDArray[Any]:
    """The start (nq,), with loops closed."""
    from cardan.structure.assemble import closed_start

    return closed_start(model)[1] if model.has_rows else model.start()
