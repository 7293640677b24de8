"""The equations of motion as integrators use them: graphs in the tree's coordinates.

    qdot = N(q) v      vdot = a(t, q, v)      phi(q, t) = 0      G v = beta(t)

`a` is the formulation's own answer, constraints included; the last two are what rounding and the integrator's error
move away from, and what `nudged` brings back.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from cardan.algebra.matrix import Matrix, beside, mirrored
from cardan.formulation.catalogue import quantity
from cardan.formulation.contract import PLUS, RATES
from cardan.formulation.general import forward_dynamics, is_plain, residual
from cardan.formulation.saddle import REGULARISATION
from cardan.kernels.evaluate import function_of
from cardan.model.model import Model


@dataclass(frozen=True)
class Motion:
    """Graphs of one model in one formulation.

    `rows` are the independent constraint rows that the formulation keeps, `tree_rows` those of the position residual
    in the tree's coordinates, with which positions and velocities are closed. `baumgarte` (1/s) is None, or how fast
    the accelerations themselves pull the constraints together.
    """

    model: Model
    formulation: str
    rows: tuple[int, ...]
    tree_rows: tuple[int, ...]
    baumgarte: float | None = None

    @property
    def key(self) -> str:
        """What tells this motion's graphs from those of another of the same model."""
        return f"{self.formulation} rows {self.rows} {self.tree_rows} baumgarte {self.baumgarte}"

    @property
    def projects(self) -> bool:
        """Whether positions and velocities are closed after every step."""
        return bool(self.tree_rows) and self.baumgarte is None

    def graphs(self) -> Graphs:
        """Record the graphs."""
        model = self.model
        if is_plain(model) and self.formulation in ("spatial", "newton_euler"):
            forward = quantity(self.formulation, "forward_dynamics")
        else:
            forward = forward_dynamics(model, self.formulation, self.rows, False)
        return Graphs(
            self,
            function_of(model, forward),
            function_of(model, RATES),
            function_of(model, PLUS),
            function_of(model, residual(model)) if self.tree_rows else None,
        )


@dataclass(frozen=True)
class Graphs:
    """CasADi functions of a `Motion`, called on symbols: each call writes the graph once more."""

    motion: Motion
    forward: Any
    rates_function: Any
    plus_function: Any
    residual: Any

    def accelerations(self, t: Matrix, q: Matrix, v: Matrix, loads: Loads) -> Matrix:
        """`vdot`."""
        a = self.forward(q, v, loads.tau, *self._time(t, self.forward, 3, loads), *loads.parameters)
        pull = self.motion.baumgarte
        if pull is None or not self.motion.tree_rows:
            return a
        phi, G, beta = self._rows(t, q, loads)
        rate = G @ v - beta
        return a - smallest(G, 2 * pull * rate + pull**2 * phi)

    def rates(self, q: Matrix, v: Matrix, loads: Loads) -> Matrix:
        """`qdot`."""
        return self.rates_function(q, v, *loads.parameters)

    def plus(self, q: Matrix, v: Matrix, loads: Loads) -> Matrix:
        """Configuration after moving with `v` for unit time."""
        return self.plus_function(q, v, *loads.parameters)

    def normalised(self, q: Matrix) -> Matrix:
        """Quaternions brought back to unit length."""
        import casadi as ca

        q = ca.SX(q)
        for link in self.motion.model.tree.links:
            if link.kind.nq != link.kind.nv:
                at = slice(link.q.stop - 4, link.q.stop)
                q[at] = q[at] / ca.norm_2(q[at])
        return q

    def nudged(self, t: Matrix, q: Matrix, v: Matrix, loads: Loads) -> tuple[Matrix, Matrix]:
        """Position and velocity moved towards the constraints: one step of Newton's method for both, from one `G`.

        After a step of an integrator that is as near as its own error; repeated, it converges.
        """
        phi, G, beta = self._rows(t, q, loads)
        change = smallest(G, beside(phi, G @ v - beta))
        return self.plus(q, -change[:, 0], loads), v - change[:, 1]

    def gap(self, t: Matrix, q: Matrix, loads: Loads) -> Matrix:
        """Position residual of every row, kept or not."""
        return self.residual(q, *self._time(t, self.residual, 1, loads), *loads.parameters)[0]

    def _rows(self, t: Matrix, q: Matrix, loads: Loads) -> tuple[Matrix, Matrix, Matrix]:
        """`phi`, `G` and `beta` of the rows kept."""
        import casadi as ca

        model, rows = self.motion.model, list(self.motion.tree_rows)
        phi, G = self.residual(q, *self._time(t, self.residual, 1, loads), *loads.parameters)
        first = phi.shape[0] - len(model.couplings)
        beta = ca.vertcat(ca.SX(first, 1), *(coupling.rows(t)[1] for coupling in model.couplings))
        return phi[rows], G[rows, :], beta[rows]

    def _time(self, t: Matrix, function: Any, before: int, loads: Loads) -> tuple[Matrix, ...]:
        return (t,) if function.n_in() - len(loads.parameters) > before else ()


@dataclass(frozen=True)
class Loads:
    """What else the graphs depend on: drives (nv,) and free parameters."""

    tau: Matrix
    parameters: Sequence[Matrix] = ()


def smallest(G: Matrix, b: Matrix) -> Matrix:
    """The smallest `x` with `G x = b`; where `G` loses rank it stays bounded. Newton's method corrects the rest."""
    import casadi as ca

    A = mirrored(G @ G.T)
    D, LT, p = ca.ldl(A + ca.diag(REGULARISATION * ca.diag(A)), True)
    return G.T @ ca.ldl_solve(b, D, LT, p)
