"""Multistep methods for trees: SUNDIALS CVODE on `y = (q, v)`, by backward differentiation or Adams' formulas.

Source: A. C. Hindmarsh et al., SUNDIALS, ACM Trans. Math. Softw. 31 (2005) 363-396.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from cardan.errors import InputError, LoopError
from cardan.formulation.formulation import Formulation
from cardan.formulation.spatial import SPATIAL
from cardan.integrate.integrators import Request
from cardan.integrate.kernel import Layout
from cardan.integrate.stepper import Outcome
from cardan.integrate.sundials.equations import (
    DaeLayout,
    explicit_jacobian,
    explicit_rates,
    kernel_of_row,
    matrix_of_row,
)
from cardan.integrate.sundials.solver import SerialStepper, Solver, SolverProgress, SolverRun, SystemArrival
from cardan.model.model import Model


def require_open_tree(model: Model, formulation: Formulation, method: str) -> None:
    """Reject what is not an ordinary differential equation in the tree's coordinates."""
    if formulation is not SPATIAL:
        raise InputError(
            f"method {method!r} integrates the tree's own coordinates, formulation 'spatial', not "
            f"{formulation.name!r}; method 'gear' takes every formulation"
        )
    held = [f"loops, cut at joint {model.joints[j].name!r}" for j in model.cuts]
    held += [coupling.owner for coupling in model.couplings] + [c.owner for c in model.constraints]
    if held:
        raise LoopError(
            f"model {model.name!r} has {held[0]}, and method {method!r} integrates trees without couplings only; use "
            "method 'gear'"
        )


class MultistepStepper(SerialStepper):
    """Integrates a tree without couplings by CVODE; fills `integrate.stepper.Stepper`.

    `formula` is "BDF" or "Adams", as CVODE calls them.
    """

    def __init__(
        self,
        model: Model,
        formula: str = "BDF",
        request: Request | None = None,
        *,
        tau: Any = None,
        max_order: int = 5,
    ) -> None:
        self.formula, free = formula, model.unbound
        self.rates = kernel_of_row(free, explicit_rates(free), "tree").ufunc(wide=False)
        self.jacobian, self.pattern = matrix_of_row(free, explicit_jacobian(free), "tree")
        self.unit = tuple(at.start for at in free.quaternions)
        self.layout = DaeLayout(Layout(SPATIAL, model.nq, model.nv, (), (), self.unit), "index1")
        super().__init__(model, request, tau, max_order)

    def start(self, given: Sequence[np.ndarray], at: SystemArrival) -> MultistepRun:
        """Make the run of a system."""
        return MultistepRun(self, given, at)


class MultistepRun(SolverRun):
    """The run of one system."""

    owner: MultistepStepper

    def __init__(self, owner: MultistepStepper, tail: Sequence[np.ndarray], at: SystemArrival) -> None:
        super().__init__(owner, tail, at)
        self.tail, self.progress = tail, SolverProgress(at.t)
        y, rates = np.concatenate([at.q, at.v]), np.zeros(len(at.q) + len(at.v))
        self.solver = Solver(self._sundials, self.progress, at.t, y)
        owner.rates(at.t, y, *tail, rates)
        if not np.isfinite(rates).all():
            self.solver.not_finite()

    def advance(self, t: float) -> SystemArrival:
        """Move to time `t`."""
        solver = self.solver
        solver.advance(t)
        while solver.outcome == Outcome.TOO_MANY_STEPS and self._steps < self.owner.max_steps:
            solver.go_on()
            solver.advance(t)
        q, v = np.split(solver.y, [self.owner.model.nq])
        for at in self.owner.unit:
            q[at : at + 4] /= np.linalg.norm(q[at : at + 4])
        return solver.arrival(q, v, self._steps)

    def _sundials(self) -> Any:
        """CVODE on this system's equations."""
        from sksundae.cvode import CVODE

        owner = self.owner
        given = {"method": owner.formula, "rtol": owner.request.rtol, "atol": owner.request.atol}
        return self._make(CVODE, self._rates(), self._jacobian, self._events(), **given)

    def _rates(self) -> Callable[..., None]:
        evaluate, tail, progress, attempt = self.owner.rates, self.tail, self.progress, self.progress.attempt

        def rates(t: float, y: np.ndarray, out: np.ndarray) -> None:
            if t != progress.tried:
                attempt(t)
            evaluate(t, y, *tail, out)

        return rates

    def _jacobian(self, fill: Callable[..., Any]) -> Callable[..., None]:
        """Callback that fills the Jacobian; it also checks that the equations have finite values."""
        tail, check = self.tail, self.progress.check

        def jacobian(t: float, y: np.ndarray, yp: np.ndarray, out: np.ndarray) -> None:
            check(t, y, yp, yp)
            fill(t, y, *tail, out)

        return jacobian

    def _events(self) -> Callable[..., None]:
        evaluate: Any = self.owner.events
        about, parameters = self.about, self.parameters

        def events(t: float, y: np.ndarray, out: np.ndarray) -> None:
            evaluate(t, y, about, *parameters, out)

        return events
