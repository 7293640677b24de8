"""The equations of motion as the explicit integrators use them: graphs in the tree's coordinates.

    qdot = N(q) v      vdot = a(t, q, v)      phi(q, t) = 0      J v = beta(t)

`a` are the formulation's accelerations, constraints included. Rounding and the integrator's error move the state off
the last two equations; `structure.projection` brings it back, or Baumgarte's feedback pulls it there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from cardan.algebra.matrix import Matrix, Scalar
from cardan.formulation.dynamics import forward_dynamics
from cardan.formulation.formulation import Formulation
from cardan.formulation.looping import record_schedule
from cardan.formulation.spatial import SPATIAL
from cardan.formulation.tree import PLUS, RATES
from cardan.integrate.kernel import Given
from cardan.model.model import Model
from cardan.structure.kernels import function_of, is_large, tree_quantity
from cardan.structure.projection import Projection
from cardan.structure.rows import kept_rows


@dataclass(frozen=True)
class ExplicitEquations:
    """The equations of one model in one formulation.

    `rows` are the independent constraint rows that the formulation keeps. `baumgarte` (1/s) is None, or the rate of
    Baumgarte's feedback, which then replaces the projection.
    """

    model: Model
    formulation: Formulation
    rows: tuple[int, ...]
    baumgarte: float | None = None

    @property
    def key(self) -> str:
        """Everything that distinguishes these equations from others of the same model."""
        looped = " looped" if self.looped else ""
        tree_rows = kept_rows(self.model.unbound, SPATIAL)
        return f"{self.formulation.key}{looped} rows {self.rows} {tree_rows} baumgarte {self.baumgarte}"

    @property
    def projects(self) -> bool:
        """Whether positions and velocities are projected after every step."""
        return self.model.has_rows and self.baumgarte is None

    @property
    def has_recursion(self) -> bool:
        """Whether the accelerations are those of a recursion for plain trees."""
        return self.model.is_plain and self.formulation.has_recursions

    @property
    def looped(self) -> bool:
        """Whether the accelerations are computed by a loop over the links, as for large trees."""
        return self.has_recursion and self.formulation is SPATIAL and is_large(self.model)

    def graphs(self) -> Graphs:
        """Record the graphs."""
        model = self.model
        loop = None
        if self.has_recursion:
            forward = tree_quantity(self.formulation, "forward_dynamics")
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
            Projection.of(model) if model.has_rows else None,
        )


@dataclass(frozen=True)
class Graphs:
    """CasADi functions of `ExplicitEquations`, called on symbols: each call writes the graph once more.

    For a large tree the accelerations are a `loop` over its links instead, the schedule of the recursion.
    """

    motion: ExplicitEquations
    loop: Any
    forward: Any
    rates_function: Any
    plus_function: Any
    projection: Projection | None

    def accelerations(self, t: Scalar, q: Matrix, v: Matrix, given: Given) -> Matrix:
        """`vdot`."""
        time = (t,) if self.forward.n_in() - len(given.parameters) > 3 else ()
        a = self.forward(q, v, given.tau, *time, *given.parameters)
        pull = self.motion.baumgarte
        if pull is None or self.projection is None:
            return a
        c = self.projection.at(t, q, given.parameters)
        return a - c.smallest(2 * pull * (c.J @ v - c.beta) + pull**2 * c.phi)

    def rates(self, q: Matrix, v: Matrix, given: Given) -> Matrix:
        """`qdot`."""
        return self.rates_function(q, v, *given.parameters)

    def plus(self, q: Matrix, v: Matrix, given: Given) -> Matrix:
        """Configuration after moving with `v` for unit time."""
        return self.plus_function(q, v, *given.parameters)

    def normalised(self, q: Matrix) -> Matrix:
        """Quaternions brought back to unit length."""
        import casadi as ca

        q = ca.SX(q)
        for at in self.motion.model.quaternions:
            q[at] = q[at] / ca.norm_2(q[at])
        return q


def equations_of(model: Model, formulation: Formulation, baumgarte: float | None = None) -> ExplicitEquations:
    """The equations of a model for the explicit integrators, with the constraint rows that are kept."""
    found = ExplicitEquations(model, formulation, (), baumgarte)
    if found.has_recursion:
        return found
    return ExplicitEquations(model, formulation, tuple(kept_rows(model, formulation)), baumgarte)
