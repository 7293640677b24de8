"""Consistent random motions of a mechanism: states at which a regressor shows all that it can tell."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cardan.analysis.identification.motions import free_motions
from cardan.errors import InputError, ModelError
from cardan.functions.dynamics import forward_dynamics, mass_matrix, plus
from cardan.model.model import Model
from cardan.structure.assemble import assemble, closed_start

if TYPE_CHECKING:
    from numpy.typing import NDArray

LONGEST = 0.8  # rad or m, of a step of the walk along the constraints


def random_motions(
    owner: str, model: Model, count: int, rng: np.random.Generator
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """`q` (count, nq), `v`, `a` (count, nv) that satisfy all constraints at time 0."""
    if not model.has_rows:
        q, v = model.random_state(rng, count)
        return q, v, 3.0 * rng.standard_normal((count, model.nv))
    q = _walk(owner, model, count, rng)
    v = assemble(model, q, 2.0 * rng.standard_normal((count, model.nv)))[1]
    wanted = 3.0 * rng.standard_normal((count, model.nv))
    tau = np.einsum("...ij,...j->...i", mass_matrix(model, q), wanted)
    a = forward_dynamics(model, q, v, tau)
    good = np.isfinite(a).all(-1)
    size = np.abs(np.where(good[:, None], a, np.inf)).max(-1)
    good &= size <= 100 * np.median(size)  # beside singular positions accelerations drown all else
    return q[good], v[good], a[good]


def _walk(owner: str, model: Model, count: int, rng: np.random.Generator) -> NDArray[Any]:
    """Configurations along the constraints, each some steps from the one before."""
    _, q = closed_start(model)
    found: list[NDArray[Any]] = []
    here = q
    for _ in range(20 * count):
        try:
            Z = free_motions(owner, model, here, np.zeros(())).Z
            if not Z.shape[-1]:
                raise InputError(f"{owner}: model {model.name!r} has no freedom, so that no drive can tell a parameter")
            along = Z @ rng.uniform(-1, 1, Z.shape[-1])
            step = rng.uniform(0, LONGEST) * along / max(float(np.abs(along).max()), 1e-300)
            there = assemble(model, np.asarray(plus(model, here, step)))[0]
            free_motions(owner, model, there, np.zeros(()))
        except ModelError:
            here = found[rng.integers(len(found))] if found else q  # a step led nowhere; begin elsewhere
            continue
        found.append(there)
        here = there
        if len(found) == count:
            break
    if not found:
        raise InputError(f"{owner}: model {model.name!r} could not be moved from its start; assemble it elsewhere")
    return np.stack(found)
