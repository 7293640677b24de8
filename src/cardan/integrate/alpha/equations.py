"""The equations that the generalised-alpha method integrates, with their derivatives, as graphs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from cardan.algebra.matrix import Matrix, constant
from cardan.formulation.coordinates import own_equations
from cardan.integrate.layout import Layout
from cardan.model.model import Model
from cardan.structure.kernels import symbolic


@dataclass(frozen=True)
class AlphaEquations:
    """CasADi functions of one model in one layout, called on symbols.

    The layout's `lent` inertia is added to Newton's matrix but not to the equations: it costs iterations, not accuracy.
    """

    layout: Layout
    balance: Any
    geometry: Any
    start: Any
    plus: Any

    @property
    def m(self) -> int:
        """Number of multipliers `lam`."""
        return len(self.layout.rows)

    @property
    def m_positions(self) -> int:
        """Number of multipliers `eta`, of rows at position level."""
        return len(self.layout.positions)

    @classmethod
    def record(cls, model: Model, layout: Layout) -> AlphaEquations:
        """Record `r = M vdot + J^T lam - f`, `J v - beta`, `phi` and their derivatives."""
        import casadi as ca

        (written, p), formulation, m = symbolic(model), layout.formulation, len(layout.rows)
        sizes = {"t": 1, "q": layout.nq, "v": layout.nv, "vdot": layout.nv, "lam": m, "tau": model.nv}
        t, q, v, vdot, lam, tau = (ca.SX.sym(name, n) for name, n in sizes.items())
        about = [] if formulation.in_tree else [ca.SX.sym("about", model.nq)]
        state = {"t": t, "q": q, "v": v, "tau": tau, **({"about": about[0]} if about else {})}
        parts = own_equations(written, formulation, state)
        rows, phi = parts.rows.kept(layout.rows), parts.rows.kept(layout.positions).phi
        M, f, free = parts.M, parts.f, [p] if model.parameters else []
        r, excess = M @ vdot + rows.J.T @ lam - f, rows.J @ v - rows.beta
        slopes = ca.vertsplit(ca.jacobian(ca.vertcat(r, excess), q), [0, layout.nv, layout.nv + m])
        D = ca.SX.sym("D", layout.nv)
        moved, last = formulation.plus(written, q, D), [*about, *free]
        balance = [r, excess, M, rows.J, -ca.jacobian(f, v), *slopes]
        return cls(
            layout,
            ca.Function("balance", [t, q, v, vdot, lam, tau, *last], balance),
            ca.Function("geometry", [t, q, *last], [phi, ca.jacobian(phi, q)]),
            ca.Function("start", [t, q, v, tau, *last], [M, f, rows.J, rows.gamma]),
            ca.Function("plus", [q, D, *free], [moved, ca.jacobian(moved, D)]),
        )

    def lend(self, M: Matrix) -> Matrix:
        """`M` with the added inertia."""
        return M + constant(np.array(self.layout.lent)) if self.layout.lent else M
