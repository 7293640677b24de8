"""The equations of motion as integrators use them: graphs in the tree's coordinates.

    qdot = N(q) v      vdot = a(t, q, v)      phi(q, t) = 0      G v = beta(t)

`a` is the formulation's own answer, constraints included; the last two are what rounding and the integrator's error
move away from, and what a `Correction` brings back, as impulses of the constraints would: that leaves the motion along
them as it is, also where a nearly singular position has let them slip.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from cardan.algebra.linsolve import tree_factor, tree_solve
from cardan.algebra.matrix import Matrix, Scalar, beside, mirrored
from cardan.formulation.absolute import with_lent_inertia
from cardan.formulation.dynamics import forward_dynamics, residual
from cardan.formulation.looping import record_schedule
from cardan.formulation.power import velocity_of_rates
from cardan.formulation.quantity import PLUS, RATES, Inputs, Quantity, square
from cardan.formulation.recursion import unroll
from cardan.formulation.recursions import quantity
from cardan.formulation.solve import regularisation
from cardan.formulation.spatial import MASS_MATRIX
from cardan.model.model import Model
from cardan.model.tree import weightless_links
from cardan.structure.kernels import function_of, is_large


def _metric(model: Model, inputs: Inputs) -> list[Matrix]:
    """The joint-space inertia, with a little lent to links that have none, so that every change has a size."""
    weightless = weightless_links(model.tree)
    return unroll(MASS_MATRIX, with_lent_inertia(model, weightless) if weightless else model, {"q": inputs["q"]})


METRIC = Quantity("metric", ("q",), (("M", square),), write=_metric)


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
        rolled = " looped" if self.looped else ""
        return f"{self.formulation}{rolled} rows {self.rows} {self.tree_rows} baumgarte {self.baumgarte}"

    @property
    def projects(self) -> bool:
        """Whether positions and velocities are closed after every step."""
        return bool(self.tree_rows) and self.baumgarte is None

    @property
    def looped(self) -> bool:
        """Whether the accelerations are a loop over the links, as those of large trees are."""
        model = self.model
        return is_large(model) and model.is_plain and self.formulation == "spatial" and not model.parameters

    def graphs(self) -> Graphs:
        """Record the graphs."""
        model = self.model
        loop = None
        if model.is_plain and self.formulation in ("spatial", "newton_euler"):
            forward = quantity(self.formulation, "forward_dynamics")
            if self.looped:
                assert forward.recursion is not None
                loop = record_schedule(forward.recursion, model)
        else:
            forward = forward_dynamics(model, self.formulation, self.rows, False)
        return Graphs(
            self,
            loop,
            None if loop is not None else function_of(model, forward),
            function_of(model, RATES),
            function_of(model, PLUS),
            function_of(model, residual(model)) if self.tree_rows else None,
            function_of(model, METRIC) if self.tree_rows else None,
            function_of(model, velocity_of_rates(model)) if self.tree_rows else None,
        )


@dataclass(frozen=True)
class Graphs:
    """CasADi functions of a `Motion`, called on symbols: each call writes the graph once more.

    Of a large tree the accelerations are a `loop` over its links instead, the schedule of its recursion.
    """

    motion: Motion
    loop: Any
    forward: Any
    rates_function: Any
    plus_function: Any
    residual: Any
    mass: Any
    tangent: Any

    def accelerations(self, t: Scalar, q: Matrix, v: Matrix, loads: Loads) -> Matrix:
        """`vdot`."""
        a = self.forward(q, v, loads.tau, *self._time(t, self.forward, 3, loads), *loads.parameters)
        pull = self.motion.baumgarte
        if pull is None or not self.motion.tree_rows:
            return a
        c = self.correction(t, q, loads)
        return a - c.smallest(2 * pull * (c.G @ v - c.beta) + pull**2 * c.phi)

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
        for at in self.motion.model.quaternions:
            q[at] = q[at] / ca.norm_2(q[at])
        return q

    def correction(self, t: Scalar, q: Matrix, loads: Loads) -> Correction:
        """What brings states near q back onto the constraints."""
        import casadi as ca

        phi, G, beta = self._rows(t, q, loads)
        above = self.motion.model.tree.coordinate_ancestor()
        Y = tree_solve(tree_factor(self.mass(q, *loads.parameters), above), above, G.T)
        A = mirrored(G @ Y)
        factor = ca.ldl(A + ca.diag(regularisation(A)), True)
        return Correction(phi, G, beta, Y, factor)

    def nudged(self, c: Correction, q: Matrix, v: Matrix, loads: Loads) -> tuple[Matrix, Matrix]:
        """Position and velocity moved onto the constraints: one step of Newton's method for both."""
        change = c.smallest(beside(c.phi, c.G @ v - c.beta))
        return self.plus(q, -change[:, 0], loads), v - change[:, 1]

    def along(self, c: Correction, q: Matrix, dq: Matrix, dv: Matrix, loads: Loads) -> tuple[Matrix, Matrix]:
        """The part of an error (nq,), (nv,) that a correction at q leaves."""
        tangent = self.tangent(q, dq, *loads.parameters)
        off = c.smallest(c.G @ beside(tangent, dv))
        return dq - self.rates(q, off[:, 0], loads), dv - off[:, 1]

    def gap(self, t: Scalar, q: Matrix, loads: Loads) -> Matrix:
        """Position residual of every row, kept or not."""
        return self.residual(q, *self._time(t, self.residual, 1, loads), *loads.parameters)[0]

    def _rows(self, t: Scalar, q: Matrix, loads: Loads) -> tuple[Matrix, Matrix, Matrix]:
        """`phi`, `G` and `beta` of the rows kept."""
        import casadi as ca

        model, rows = self.motion.model, list(self.motion.tree_rows)
        phi, G = self.residual(q, *self._time(t, self.residual, 1, loads), *loads.parameters)
        first = phi.shape[0] - len(model.couplings)
        beta = ca.vertcat(ca.SX(first, 1), *(coupling.rows(t)[1] for coupling in model.couplings))
        return phi[rows], G[rows, :], beta[rows]

    def _time(self, t: Scalar, function: Any, before: int, loads: Loads) -> tuple[Scalar, ...]:
        return (t,) if function.n_in() - len(loads.parameters) > before else ()


@dataclass(frozen=True)
class Correction:
    """The constraints at a configuration, linearised: `phi`, `G`, `beta`, and `Y = M^-1 G^T` with `G Y` factored."""

    phi: Matrix
    G: Matrix
    beta: Matrix
    Y: Matrix
    factor: Any

    def smallest(self, b: Matrix) -> Matrix:
        """The change `x` of least kinetic energy with `G x = b`: what impulses of the constraints would do.

        Where `G` loses rank it stays bounded.
        """
        import casadi as ca

        return self.Y @ ca.ldl_solve(b, *self.factor)


@dataclass(frozen=True)
class Loads:
    """What else the graphs depend on: drives (nv,) and free parameters."""

    tau: Matrix | None
    parameters: Sequence[Matrix] = ()
