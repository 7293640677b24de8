"""The equations that the generalised-alpha method integrates: the rows that are kept, and graphs of derivatives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from cardan.algebra.matrix import Matrix, constant
from cardan.formulation import native
from cardan.integrate import dae
from cardan.model.model import Model
from cardan.structure.kernels import function_of, symbolic
from cardan.structure.planarity import find_plane
from cardan.structure.rows import generic_configurations, scaled, usual_pivots

LENT = 1e-3  # inertia added to rates without any, relative to the smallest inertia there is
NONE = 1e-9  # relative to a coordinate's own inertia: less, in some direction, counts as none


@dataclass(frozen=True)
class AlphaLayout:
    """The formulation, its sizes, the rows of `J` and of `phi` that are kept, and the added inertia.

    `lent` (nv,) is inertia for rates that only constraints determine. It is added to Newton's matrix but not to the
    equations: it costs iterations, not accuracy.
    """

    key: str
    nq: int
    nv: int
    rows: tuple[int, ...]
    places: tuple[int, ...]
    lent: tuple[float, ...]

    @property
    def m(self) -> int:
        """Number of multipliers."""
        return len(self.rows)


@dataclass(frozen=True)
class AlphaEquations:
    """CasADi functions of one model in one layout, called on symbols."""

    layout: AlphaLayout
    balance: Any
    geometry: Any
    start: Any
    plus: Any

    @classmethod
    def record(cls, model: Model, layout: AlphaLayout) -> AlphaEquations:
        """Record `r = M vdot + J^T lam - f`, `J v - beta`, `phi` and their derivatives."""
        import casadi as ca

        written, p = symbolic(model)
        sizes = {"t": 1, "q": layout.nq, "v": layout.nv, "vdot": layout.nv, "lam": layout.m, "tau": model.nv}
        t, q, v, vdot, lam, tau = (ca.SX.sym(name, n) for name, n in sizes.items())
        M, f, J, gamma, phi, beta, _ = dae.equations(written, layout.key, t, q, v, tau)
        rows, free = list(layout.rows), [p] if model.parameters else []
        J, phi = J[rows, :], phi[list(layout.places)]
        r, excess = M @ vdot + J.T @ lam - f, J @ v - beta[rows]
        slopes = ca.vertsplit(ca.jacobian(ca.vertcat(r, excess), q), [0, layout.nv, layout.nv + layout.m])
        D = ca.SX.sym("D", layout.nv)
        moved = native.plus(written, layout.key, {"q": q, "v": D})[0]
        return cls(
            layout,
            ca.Function("balance", [t, q, v, vdot, lam, tau, *free], [r, excess, M, J, -ca.jacobian(f, v), *slopes]),
            ca.Function("geometry", [t, q, *free], [phi, ca.jacobian(phi, q)]),
            ca.Function("start", [t, q, v, tau, *free], [M, f, J, gamma[rows]]),
            ca.Function("plus", [q, D, *free], [moved, ca.jacobian(moved, D)]),
        )

    def lend(self, M: Matrix) -> Matrix:
        """`M` with the added inertia."""
        return M + constant(np.diag(self.layout.lent)) if any(self.layout.lent) else M


def layout_of(model: Model, key: str) -> AlphaLayout:
    """Rows of `J` and of `phi` that are independent at generic configurations, and the inertia to add there."""
    place = ("alpha", key)
    kernels = model.unbound.kernels
    if place not in kernels:
        kernels[place] = _layout_of(model, key)
    layout: AlphaLayout = kernels[place]
    return layout


def _layout_of(model: Model, key: str) -> AlphaLayout:
    if key == "points":
        find_plane(model)
    state = function_of(model, dae.state(model, key))
    into = None if key in native.TREE else function_of(model, dae.into(model, key))
    nominal = [model.parameters.nominal] if model.parameters else []
    still, found, inertias = np.zeros(model.nv), [], []
    for q in generic_configurations(model):
        own = (q, still) if into is None else into(q, still, *nominal)
        M, _, J, _, _, G, _, N = (np.array(x) for x in state(0.0, *own, still, *nominal))
        found.append((scaled(J), scaled(G @ N)))
        inertias.append(M)
    rows, places = usual_pivots([J for J, _ in found], [G for _, G in found])
    lent = np.max([_lent(M) for M in inertias], axis=0, initial=0.0)
    return AlphaLayout(key, *native.sizes(model, key), tuple(rows), tuple(places), tuple(lent.tolist()))


def _lent(M: np.ndarray) -> np.ndarray:
    """What to add to the diagonal (n,) of a singular mass matrix, along its null space; zeros for a regular one."""
    own = np.diag(M)
    real = own > NONE * NONE * own.max(initial=0.0)
    size = np.where(real, np.sqrt(np.where(real, own, 1.0)), 1.0)
    values, vectors = np.linalg.eigh(np.where(np.outer(real, real), M / np.outer(size, size), 0.0))
    empty = np.abs(vectors[:, values < NONE]).max(axis=1, initial=0.0) > NONE
    return np.where(empty, LENT * own[real].min(initial=np.inf), 0.0)
