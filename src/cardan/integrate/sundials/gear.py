"""Gear's method: backward differentiation of variable order and step on the differential-algebraic equations.

The equations are those of `formulation.dae`, in a formulation's own coordinates; SUNDIALS IDA integrates them with
their exact Jacobian. What goes in and comes out are coordinates of the tree, on the constraints to rounding.

Source: A. C. Hindmarsh et al., SUNDIALS, ACM Trans. Math. Softw. 31 (2005) 363-396; K. E. Brenan, S. L. Campbell,
L. R. Petzold, Numerical Solution of Initial-Value Problems in Differential-Algebraic Equations (SIAM 1996), chapter 5.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from cardan.errors import InputError, ModelError
from cardan.formulation import native
from cardan.integrate import dae
from cardan.integrate.stepper import Outcome
from cardan.integrate.sundials.course import (
    Course,
    Progress,
    Reached,
    Run,
    Serial,
    Settings,
    linear_solver,
    make,
    spread,
)
from cardan.integrate.sundials.equations import System, events_of_row
from cardan.model.model import Model

HIGHEST_ORDER = 5
CONSISTENT = 1e-8  # largest residual of the equations at the start, beside the largest value in them
CLOSED = 1e-6  # largest gap in positions and velocities that a start may have, m and rad; it is closed
OPEN = 1e-3  # gap beyond which an index 1 run has lost its constraints
DRIFT = 100.0  # tolerances by which the constraints may be broken before an index 1 run starts again on them
ROUNDING = 100 * float(np.finfo(float).eps)
SOFT = 1e-4  # of the tolerance: what the constraints give way
FRESH = 20  # steps: one that fails later than this may do better with a new start
RETRIES = 50
IGNORED = 1e30  # absolute tolerance of multipliers: no error test, no part in Newton's


class Gear(Serial):
    """Integrates a model by Gear's method, in any formulation; fills `integrate.stepper.Stepper`.

    `form` is "stabilised" (index 2, positions and velocities both kept on the constraints) or "index1". `tau` (nv,) or
    (B, nv) are constant drives, N m and N. `events` is a CasADi function of (t, q, v) of the tree with one vector of
    values, whose zeros stop the run; `directions` has 1 for those that count when rising, -1 when falling, 0 both.
    `settings` are those of `integrate.sundials.Settings`.
    """

    def __init__(
        self,
        model: Model,
        formulation: str = "spatial",
        *,
        frame: str = "fixed",
        form: str = "stabilised",
        tau: Any = None,
        events: Any = None,
        directions: Sequence[int] | None = None,
        **settings: Any,
    ) -> None:
        if form not in dae.FORMS:
            raise InputError(f"form must be one of {', '.join(map(repr, dae.FORMS))}, got {form!r}")
        super().__init__(model, tau)
        self.settings = Settings(**settings)
        self.options = self.settings.options(HIGHEST_ORDER)
        self.system = System(model.unbound, native.formulation_key(formulation, frame), form)
        self.count = 0 if events is None else int(events.numel_out(0))
        self.events = None if not self.count else events_of_row(self.system.model, self.system.layout, events)
        self.directions = directions

    def start(self, loads: Sequence[np.ndarray], at: Reached) -> Run:
        """Put a system on its way."""
        return _Run(self, loads, at)


class _Run:
    """One system on its way."""

    def __init__(self, gear: Gear, loads: Sequence[np.ndarray], at: Reached) -> None:
        self.gear, self.system, self.parameters = gear, gear.system, loads[1:]
        self.about = at.q.copy()  # the tree's configuration a step ago
        self.tail = tail = self.system.tail(self.about, *loads)
        self.earlier, self.retries = at.steps, RETRIES  # steps before the solver was started
        q, v, gap = self.system.project(at.t, *self.system.own(at.q, at.v, tail), tail)
        if gap > CLOSED:
            raise InputError(
                f"model {gear.model.name!r}: the state at t = {at.t:g} s breaks a constraint by {gap:.3g} (m, rad, "
                "and per s); start from what `cd.assemble` gives"
            )
        self._start(at.t, q, v)

    def _start(self, t: float, q: np.ndarray, v: np.ndarray) -> None:
        """Start the solver at a state of the formulation that satisfies the constraints."""
        y, yp = self.system.start(t, q, v, self.tail)
        self.soft = self.system.soft(t, y, self.tail, SOFT * self.gear.settings.atol)
        self.progress, self.atol = Progress(t), self._tolerance(q, v)
        self.course = Course(self._solver, self.progress, t, y, yp)
        F = np.zeros_like(y)
        self.system.residual(t, y, yp, np.zeros_like(self.soft), *self.tail, F)  # softness is no conflict
        if not np.isfinite(F).all():
            self.course.not_finite()
        elif np.abs(F).max() > CONSISTENT * max(1.0, float(np.abs(y).max()), float(np.abs(yp).max())):
            raise ModelError(
                f"model {self.gear.model.name!r}: at t = {t:g} s no accelerations and reactions satisfy the equations "
                f"of motion (residual {np.abs(F).max():.3g}); its constraints conflict there"
            )

    def advance(self, t: float) -> Reached:
        """Move to time `t`."""
        while True:
            course = self.course
            course.advance(t)
            q, v = self._split(course.y)
            if not np.isfinite(course.y).all():
                break
            q, v, gap = self.system.project(course.t, q, v, self.tail)
            if self._should_start_again(q, v, gap):
                self.earlier += self.progress.steps
                self._start(course.t, q, v)
            elif course.outcome == Outcome.STEPS and self._steps < self.gear.settings.max_steps:
                course.go_on()
            else:
                break
        return self.course.reached(*self.system.tree(q, v, self.tail), self._steps)

    def _should_start_again(self, q: np.ndarray, v: np.ndarray, gap: float) -> bool:
        """Whether the solver is better off with a new start at this state."""
        course = self.course
        if course.outcome in (Outcome.NEWTON, Outcome.SMALL_STEP) and self.progress.steps > FRESH and self.retries:
            self.retries -= 1
            return True
        if course.outcome > Outcome.EVENT:  # perhaps for asking for more digits than there are at these speeds
            return bool((self._tolerance(q, v) > 2 * self.atol).any())
        if self.system.layout.form != "index1":
            return False
        if gap > OPEN:
            course.fail(Outcome.OPEN_LOOP, f"constraints came apart by {gap:.3g} (m, rad, and per s)")
        return course.outcome == Outcome.ARRIVED and gap > self._drift(q)

    def _split(self, y: np.ndarray) -> list[np.ndarray]:
        layout = self.system.layout
        return np.split(y[: layout.nq + layout.nv], [layout.nq])

    @property
    def _steps(self) -> int:
        return self.earlier + self.progress.steps

    def _tolerance(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Absolute tolerances of q and v (2,): constraints tie a small value to large ones, and to their rounding."""
        size = [float(np.abs(x).max(initial=0.0)) for x in (q, v)]
        return np.maximum(self.gear.settings.atol, ROUNDING * np.array(size))

    def _drift(self, q: np.ndarray) -> float:
        """How far the constraints may be broken before the solver is started again on them."""
        s = self.gear.settings
        return DRIFT * (s.rtol * max(1.0, float(np.abs(q).max(initial=0.0))) + s.atol)

    def _solver(self) -> Any:
        """IDA on this system's equations."""
        from sksundae.ida import IDA

        gear, layout = self.gear, self.system.layout
        moving = layout.nq + layout.nv
        share = (moving / layout.n) ** 0.5  # SUNDIALS' norm is a mean over all unknowns, the multipliers too
        weights = np.full(layout.n, IGNORED)
        weights[: layout.nq], weights[layout.nq : moving] = share * self.atol
        linear = linear_solver(layout.n)
        options = gear.options | {
            "rtol": share * gear.settings.rtol, "atol": weights, "algebraic_idx": range(moving, layout.n),
            "jacfn": self._jacobian(linear == "sparse"), "linsolver": linear,
        }  # fmt: skip
        if linear == "sparse":
            options["sparsity"] = self.system.pattern
        if gear.events is not None:
            options |= {"eventsfn": self._events(), "num_events": gear.count}
        return make(IDA, self._residual(), **options)

    def _residual(self) -> Callable[..., None]:
        """Fill the residual; where angles are measured, follow them from step to step."""
        evaluate, soft, tail = self.system.residual, self.soft, self.tail
        progress, attempt = self.progress, self.progress.attempt
        if self.system.is_tree:

            def residual(t: float, y: np.ndarray, yp: np.ndarray, out: np.ndarray) -> None:
                if t != progress.tried:
                    attempt(t)
                evaluate(t, y, yp, soft, *tail, out)

            return residual
        last = np.zeros(self.system.layout.n)
        q, v = self._split(last)

        def following(t: float, y: np.ndarray, yp: np.ndarray, out: np.ndarray) -> None:
            if t != progress.tried:
                if t > progress.tried and progress.steps:
                    self.about[:] = self.system.tree(q, v, tail)[0]
                attempt(t)
            last[:] = y
            evaluate(t, y, yp, soft, *tail, out)

        return following

    def _jacobian(self, sparse: bool) -> Callable[..., None]:
        """Fill the Jacobian; values that are not finite show here, at a new linearisation."""
        fill = self.system.jacobian if sparse else spread(self.system.jacobian, self.system.pattern)
        soft, tail, look = self.soft, self.tail, self.progress.look

        def jacobian(t: float, y: np.ndarray, yp: np.ndarray, F: np.ndarray, cj: float, out: np.ndarray) -> None:
            look(t, y, yp, F)
            fill(t, cj, y, yp, soft, *tail, out)

        return jacobian

    def _events(self) -> Callable[..., None]:
        evaluate: Any = self.gear.events
        about, parameters = self.about, self.parameters

        def events(t: float, y: np.ndarray, yp: np.ndarray, out: np.ndarray) -> None:
            evaluate(t, y, about, *parameters, out)

        if self.gear.directions is not None:
            events.direction = list(self.gear.directions)  # type: ignore[attr-defined]
        return events
