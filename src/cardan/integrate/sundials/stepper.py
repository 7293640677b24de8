"""SUNDIALS at work: Gear's method (IDA) on differential-algebraic equations, and multistep methods (CVODE) on trees.

Gear's method is backward differentiation of variable order and step on the equations of `sundials.equations`, in a
formulation's own coordinates, with their exact Jacobian. CVODE integrates `y = (q, v)` of a tree without couplings by
backward differentiation or Adams' formulas. Inputs and results are in coordinates of the tree, on the constraints to
rounding.

Source: A. C. Hindmarsh et al., SUNDIALS, ACM Trans. Math. Softw. 31 (2005) 363-396; K. E. Brenan, S. L. Campbell,
L. R. Petzold, Numerical Solution of Initial-Value Problems in Differential-Algebraic Equations (SIAM 1996), chapter 5.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from cardan.errors import InputError, LoopError, ModelError
from cardan.formulation.formulation import Formulation
from cardan.formulation.spatial import SPATIAL
from cardan.integrate.integrators import Request
from cardan.integrate.kernel import Layout
from cardan.integrate.stepper import Outcome
from cardan.integrate.sundials.equations import (
    DaeLayout,
    ImplicitSystem,
    explicit_jacobian,
    explicit_rates,
    kernel_of_row,
    matrix_of_row,
)
from cardan.integrate.sundials.solver import SerialStepper, Solver, SolverProgress, SolverRun, SystemArrival
from cardan.model.model import Model
from cardan.model.modes import has_modes
from cardan.structure.formulation import formulation_of
from cardan.structure.projection import project

CONSISTENT = 1e-8  # largest residual of the equations at the start, relative to the largest value in them
CLOSED = 1e-6  # m and rad: largest gap in positions and velocities that a start may have; it is then closed
OPEN = 1e-3  # m and rad: gap beyond which an index 1 run has lost its constraints
DRIFT = 100.0  # times the tolerance: constraint residual beyond which an index 1 run restarts on the constraints
ROUNDING = 100 * float(np.finfo(float).eps)
SOFT = 1e-4  # times the tolerance: softness of the constraints
FRESH = 20  # steps: a solver that fails after more than these is restarted
RETRIES = 50  # largest number of restarts
CAUTIOUS = 0.5  # times the tolerance: largest change of the state in the first step of CVODE
LONGEST_FIRST = 1e-3  # s
IGNORED = 1e30  # absolute tolerance of multipliers: excludes them from error and convergence tests


class GearStepper(SerialStepper):
    """Integrates a model by Gear's method, in any formulation; fills `integrate.stepper.Stepper`.

    `form` is "stabilised" (index 2, positions and velocities both on the constraints) or "index1".
    """

    def __init__(
        self, model: Model, formulation: str | Formulation = "spatial", request: Request | None = None, *,
        tau: Any = None, form: str = "stabilised", max_order: int = 5,
    ) -> None:  # fmt: skip
        self.system = system = self.make_system(model.unbound, formulation_of(model, formulation), form == "stabilised")
        self.layout, self.jacobian, self.pattern = system.layout, system.jacobian, system.pattern
        super().__init__(model, request, tau, max_order)

    def make_system(self, model: Model, formulation: Formulation, stabilised: bool) -> ImplicitSystem:
        """The equations."""
        return ImplicitSystem(model, formulation, stabilised)

    def start(self, given: Sequence[np.ndarray], at: SystemArrival) -> GearRun:
        """Make the run of a system."""
        return GearRun(self, given, at)


class GearRun(SolverRun):
    """The run of one system."""

    def __init__(self, gear: GearStepper, given: Sequence[np.ndarray], at: SystemArrival) -> None:
        super().__init__(gear, given, at)
        self.system, self.retries = gear.system, RETRIES
        self.tail = tail = self.system.tail(self.about, *given)
        q, v = self.system.own(at.q, at.v, tail)
        gap = self.system.gap(at.t, q, v, tail)
        if gap > CLOSED:
            raise InputError(
                f"model {gear.model.name!r}: the state at t = {at.t:g} s breaks a constraint by {gap:.3g} (m, rad, "
                "and per s); start from what `cd.assemble` gives"
            )
        self._start_on_constraints(at.t, q, v)

    def _start_on_constraints(self, t: float, q: np.ndarray, v: np.ndarray) -> None:
        """Start the solver at a state of the formulation near the constraints, brought onto them."""
        self._start(t, *self.system.own(*self.system.projected(t, q, v, self.tail), self.tail))

    def _start(self, t: float, q: np.ndarray, v: np.ndarray) -> None:
        """Start the solver at a state of the formulation that satisfies the constraints."""
        y, yp = self.system.start(t, q, v, self.work, self.tail)
        self.soft = self.system.soft(t, y, self.tail, SOFT * self.owner.request.atol)
        self.progress, self.atol = SolverProgress(t, self._look), self._tolerance(q, v)
        self.solver = Solver(self._sundials, self.progress, self.owner.request.stops, t, y, yp)
        F = np.zeros_like(y)
        self.system.residual(t, y, yp, np.zeros_like(self.soft), *self.tail, F)  # without softness
        if not np.isfinite(F).all():
            self.solver.not_finite()
        elif np.abs(F).max() > CONSISTENT * max(1.0, float(np.abs(y).max()), float(np.abs(yp).max())):
            raise ModelError(
                f"model {self.owner.model.name!r}: at t = {t:g} s no accelerations and reactions satisfy the equations "
                f"of motion (residual {np.abs(F).max():.3g}); its constraints conflict there"
            )

    def advance(self, t: float) -> SystemArrival:
        """Move to time `t`."""
        while True:
            solver = self.solver
            solver.advance(t)
            q, v = self._split(solver.y)
            self._take_states(solver.y)
            if not np.isfinite(solver.y).all():
                return self._noted(solver.arrival(*self.system.tree(q, v, self.tail), self._steps), solver.y)
            if self._should_restart(q, v):
                self.earlier += self.progress.steps
                self.work = float(solver.y[-1])
                self._start_on_constraints(solver.t, q, v)
            elif solver.outcome == Outcome.TOO_MANY_STEPS and self._steps < self.owner.max_steps:
                solver.go_on()
            else:
                break
        return self._noted(solver.arrival(*self.system.projected(solver.t, q, v, self.tail), self._steps), solver.y)

    def _should_restart(self, q: np.ndarray, v: np.ndarray) -> bool:
        """Whether the solver should be restarted at this state."""
        solver = self.solver
        if solver.outcome in (Outcome.NEWTON, Outcome.SMALL_STEP) and self.progress.steps > FRESH and self.retries:
            self.retries -= 1
            return True
        if solver.outcome > Outcome.EVENT:  # at these speeds the tolerance may be below rounding
            return bool((self._tolerance(q, v) > 2 * self.atol).any())
        if self.system.layout.stabilised:
            return False
        gap = self.system.gap(solver.t, q, v, self.tail)
        if gap > OPEN:
            solver.fail(Outcome.OPEN_LOOP, f"the constraints opened by {gap:.3g} (m, rad, and per s)")
        return solver.outcome == Outcome.ARRIVED and gap > self._drift(q)

    def _look(self, y: np.ndarray) -> None:
        """Look at a state on the way."""
        q, v = self._split(y)
        self._see(self.system.tree(q, v, self.tail)[1])

    def _split(self, y: np.ndarray) -> list[np.ndarray]:
        layout = self.system.layout.of
        return np.split(y[: layout.nq + layout.nv], [layout.nq])

    def _tolerance(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Absolute tolerances of q and v (2,), not below the rounding of the largest value: constraints couple them."""
        size = [float(np.abs(x).max(initial=0.0)) for x in (q, v)]
        return np.maximum(self.owner.request.atol, ROUNDING * np.array(size))

    def _drift(self, q: np.ndarray) -> float:
        """Largest residual of the constraints before the solver is restarted on them."""
        asked = self.owner.request
        return DRIFT * (asked.rtol * max(1.0, float(np.abs(q).max(initial=0.0))) + asked.atol)

    def _sundials(self) -> Any:
        """IDA on this system's equations."""
        from sksundae.ida import IDA

        layout = self.system.layout
        moving, own = layout.of.nq + layout.of.nv, len(layout.states)
        share = ((moving + own) / layout.n) ** 0.5  # SUNDIALS' norm is a mean over all unknowns, multipliers included
        weights = np.full(layout.n, IGNORED)
        weights[: layout.of.nq], weights[layout.of.nq : moving] = share * self.atol
        weights[layout.x] = share * self.owner.request.atol
        soft, tail, check, fill = self.soft, self.tail, self.progress.check, self._filler()
        events_at, given, silence = self.owner.events, (tail[0], self.about, *self.parameters), self._silence

        def jacobian(t: float, y: np.ndarray, yp: np.ndarray, F: np.ndarray, cj: float, out: np.ndarray) -> None:
            check(t, y, yp, F)  # that the equations have finite values
            fill(t, cj, y, yp, soft, *tail, out)

        def events(t: float, y: np.ndarray, yp: np.ndarray, out: np.ndarray) -> None:
            events_at(t, y, *given, out)
            silence(out)

        algebraic = range(moving, layout.x.start)
        options = {"rtol": share * self.owner.request.rtol, "atol": weights, "algebraic_idx": algebraic}
        return self._make(IDA, self._residual(), jacobian, events, **options)

    def _residual(self) -> Callable[..., None]:
        """Callback that fills the residual; it also follows measured angles from step to step."""
        evaluate, soft, tail = self.system.residual, self.soft, self.tail
        progress, attempt = self.progress, self.progress.attempt
        if self.system.is_tree:

            def residual(t: float, y: np.ndarray, yp: np.ndarray, out: np.ndarray) -> None:
                if t != progress.tried:
                    attempt(t, y)
                evaluate(t, y, yp, soft, *tail, out)

            return residual
        last = np.zeros(self.system.layout.n)
        q, v = self._split(last)

        def following(t: float, y: np.ndarray, yp: np.ndarray, out: np.ndarray) -> None:
            if t != progress.tried:
                if t > progress.tried and progress.steps:
                    self.about[:] = self.system.tree(q, v, tail)[0]
                attempt(t, y)
            last[:] = y
            evaluate(t, y, yp, soft, *tail, out)

        return following


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
        self, model: Model, formula: str = "BDF", request: Request | None = None, *, tau: Any = None,
        max_order: int = 5,
    ) -> None:  # fmt: skip
        self.formula, free = formula, model.unbound
        self.unit = tuple(at.start for at in free.quaternions)
        tree = Layout(SPATIAL, SPATIAL.key, model.nq, model.nv, (), (), self.unit)
        self.layout = DaeLayout.with_states(free, tree, stabilised=False)
        name = f"tree {self.layout.rates}" if self.layout.states else "tree"
        self.rates = kernel_of_row(free, explicit_rates(free), name).ufunc(wide=False)
        self.jacobian, self.pattern = matrix_of_row(free, explicit_jacobian(free), name)
        super().__init__(model, request, tau, max_order)

    def start(self, given: Sequence[np.ndarray], at: SystemArrival) -> MultistepRun:
        """Make the run of a system."""
        return MultistepRun(self, given, at)


class MultistepRun(SolverRun):
    """The run of one system."""

    owner: MultistepStepper

    def __init__(self, owner: MultistepStepper, tail: Sequence[np.ndarray], at: SystemArrival) -> None:
        super().__init__(owner, tail, at)
        self.tail = tail
        self._start(at.t, at.q, at.v)

    def _start(self, t: float, q: np.ndarray, v: np.ndarray) -> None:
        """Start the solver at a state."""
        owner = self.owner
        own = self.parameters[0][list(owner.layout.states)] if owner.layout.states else np.zeros(0)
        y = np.concatenate([q, v, own, [self.work]])
        self.rates, self.progress = np.zeros_like(y), SolverProgress(t, self._look)  # rates of the state at the start
        self.solver = Solver(self._sundials, self.progress, owner.request.stops, t, y)
        owner.rates(t, y, *self.tail, self.rates)
        if not np.isfinite(self.rates).all():
            self.solver.not_finite()

    def advance(self, t: float) -> SystemArrival:
        """Move to time `t`."""
        solver = self.solver
        solver.advance(t)
        while solver.outcome == Outcome.TOO_MANY_STEPS and self._steps < self.owner.max_steps:
            solver.go_on()
            solver.advance(t)
        nq, nv = self.owner.model.nq, self.owner.model.nv
        q, v = solver.y[:nq], solver.y[nq : nq + nv]
        self._take_states(solver.y)
        for at in self.owner.unit:
            q[at : at + 4] /= np.linalg.norm(q[at : at + 4])
        y = solver.y
        if has_modes(self.owner.model) and solver.outcome <= Outcome.EVENT:
            q, v = self._on_closed_rows(q, v)
            solver = self.solver
        return self._noted(solver.arrival(q, v, self._steps), y)

    def _on_closed_rows(self, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The state with the rows at zero that are closed; the solver is restarted there if it has drifted off them."""
        solver, asked = self.solver, self.owner.request
        x, w, _ = project(self.owner.model.unbound, q, v, solver.t, parameters=self.parameters)
        off = max(float(np.abs(x - q).max(initial=0.0)), float(np.abs(w - v).max(initial=0.0)))
        size = max(1.0, float(np.abs(q).max(initial=0.0)), float(np.abs(v).max(initial=0.0)))
        if solver.outcome == Outcome.ARRIVED and off > DRIFT * (asked.rtol * size + asked.atol):
            self.earlier += self.progress.steps
            self.work = float(solver.y[-1])
            self._start(solver.t, x, w)
        return x, w

    def _look(self, y: np.ndarray) -> None:
        """Look at a state on the way."""
        nq, nv = self.owner.model.nq, self.owner.model.nv
        self._see(y[nq : nq + nv])

    def _first_step(self, rtol: float, atol: np.ndarray) -> float:
        """Length of the first step, s: as asked for, or cautious, as IDA chooses it, with tolerances `atol` (n,).

        CVODE's own choice depends on the first sample; so would every later step.
        """
        asked, t, y = self.owner.request, self.solver.t, self.solver.y
        if asked.step is not None:
            return float(min(asked.step, asked.max_step))
        change = float(np.sqrt(np.mean((self.rates / (rtol * np.abs(y) + atol)) ** 2)))  # tolerances a second
        longest = min(LONGEST_FIRST, asked.max_step)
        return float(max(longest / max(1.0, longest * change / CAUTIOUS), ROUNDING * abs(t)))

    def _sundials(self) -> Any:
        """CVODE on this system's equations."""
        from sksundae.cvode import CVODE

        owner, tail, progress, attempt = self.owner, self.tail, self.progress, self.progress.attempt
        evaluate, check, fill = owner.rates, progress.check, self._filler()
        events_at, known, silence = owner.events, (tail[0], self.about, *self.parameters), self._silence

        def rates(t: float, y: np.ndarray, out: np.ndarray) -> None:
            if t != progress.tried:
                attempt(t, y)
            evaluate(t, y, *tail, out)

        def jacobian(t: float, y: np.ndarray, yp: np.ndarray, out: np.ndarray) -> None:
            check(t, y, yp, yp)  # that the equations have finite values
            fill(t, y, *tail, out)

        def events(t: float, y: np.ndarray, out: np.ndarray) -> None:
            events_at(t, y, *known, out)
            silence(out)

        n = owner.layout.n
        share = ((n - 1) / n) ** 0.5  # SUNDIALS' norm is a mean over all unknowns, the work included
        atol = np.append(np.full(n - 1, share * owner.request.atol), IGNORED)
        rtol = share * owner.request.rtol
        given = {"method": owner.formula, "rtol": rtol, "atol": atol, "first_step": self._first_step(rtol, atol)}
        return self._make(CVODE, rates, jacobian, events, **given)
