"""Gear's method: backward differentiation of variable order and step on the differential-algebraic equations.

The equations are those of `formulation.dae`, in a formulation's own coordinates; SUNDIALS IDA integrates them with
their exact Jacobian. What goes in and comes out are coordinates of the tree, on the constraints to rounding.

Source: A. C. Hindmarsh et al., SUNDIALS, ACM Trans. Math. Softw. 31 (2005) 363-396; K. E. Brenan, S. L. Campbell,
L. R. Petzold, Numerical Solution of Initial-Value Problems in Differential-Algebraic Equations (SIAM 1996), chapter 5.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cardan.errors import InputError, ModelError
from cardan.formulation import dae, native
from cardan.integrate.implicit import System
from cardan.integrate.stepper import Arrival, Outcome
from cardan.integrate.sundials import Course, Progress, make
from cardan.model.model import Model

CONSISTENT = 1e-8  # largest residual of the equations at the start, beside their largest term
CLOSED = 1e-6  # largest gap in positions and velocities that a start may have, m and rad; it is closed exactly
IGNORED = 1e30  # absolute tolerance of multipliers: no error test, no part in Newton's
LINEAR = (("dense", 300), ("sparse", np.inf))  # which solver, up to how many unknowns
DRIFT = 100.0  # tolerances that the constraints may be broken by before an index 1 run starts again


@dataclass(frozen=True)
class Settings:
    """What every multistep method is told: tolerances on q and v (m, rad, and per s), order, steps (s)."""

    rtol: float = 1e-8
    atol: float = 1e-10
    max_order: int = 5
    max_step: float = np.inf
    first_step: float = 0.0
    max_steps: int = 1_000_000

    @property
    def options(self) -> dict[str, Any]:
        """As SUNDIALS has them."""
        return {
            "max_order": self.max_order,
            "max_step": 0.0 if np.isinf(self.max_step) else float(self.max_step),
            "first_step": float(self.first_step),
            "max_num_steps": self.max_steps,
        }


class Gear:
    """Integrates a model by Gear's method, in any formulation; fills `integrate.stepper.Stepper`.

    `form` is "stabilised" (index 2, positions and velocities both kept on the constraints) or "index1". `tau` (nv,) or
    (B, nv) are constant drives, N m and N. `events` is a CasADi function of (t, q, v) of the tree with one vector of
    values, whose zeros stop the run; `directions` has 1 for those that count when rising, -1 when falling, 0 both.
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
        self.model, self.settings = model, Settings(**settings)
        self.system = System(model, native.formulation_key(formulation, frame), form)
        self.tau = np.atleast_2d(np.zeros(model.nv) if tau is None else np.asarray(tau, dtype=float))
        self.events = None if events is None else self.system.events(events)
        self.events_count = 0 if events is None else int(events.numel_out(0))
        self.directions = directions
        self.runs: list[_Run] = []

    def begin(self, t: float, q: np.ndarray, v: np.ndarray) -> None:
        """Start at a consistent state: q (B, nq), v (B, nv), time in s."""
        tau = np.broadcast_to(self.tau, (len(q), self.model.nv))
        self.runs = [_Run(self, row) for row in np.ascontiguousarray(tau)]
        for run, own_q, own_v in zip(self.runs, q, v, strict=True):
            run.begin(float(t), np.array(own_q, dtype=float), np.array(own_v, dtype=float))

    def advance(self, t: float) -> Arrival:
        """Move every system to time `t`, s, or to an event before it."""
        return gather([run.advance(t) for run in self.runs])


Reached = tuple[Course, np.ndarray, np.ndarray, int]


def gather(reached: Sequence[Reached]) -> Arrival:
    """One arrival from those of all systems: how each went, its q and v, and its steps."""
    courses = [course for course, *_ in reached]
    return Arrival(
        np.array([c.t for c in courses]),
        np.stack([q for _, q, _, _ in reached]),
        np.stack([v for _, _, v, _ in reached]),
        np.array([int(c.outcome) for c in courses]),
        np.array([c.event for c in courses]),
        np.array([steps for *_, steps in reached]),
        next((c.words for c in courses if c.words), ""),
    )


class _Run:
    """One system on its way."""

    def __init__(self, gear: Gear, tau: np.ndarray) -> None:
        self.gear, self.system, self.tau = gear, gear.system, tau
        self.about = np.zeros(gear.model.nq)  # the tree's configuration a step ago
        self.earlier = 0  # steps before the solver was started again

    def begin(self, t: float, q: np.ndarray, v: np.ndarray) -> None:
        """Start at a state of the tree."""
        self.about[:] = q
        q, v, gap = self.system.project(t, *self.system.own(q, v), self.tau)
        if gap > CLOSED:
            raise InputError(
                f"model {self.gear.model.name!r}: the state at t = {t:g} s breaks a constraint by {gap:.3g} (m, rad, "
                "and per s); start from what `cd.assemble` gives"
            )
        self._start(t, q, v)

    def _start(self, t: float, q: np.ndarray, v: np.ndarray) -> None:
        """Start the solver at a state of the formulation that satisfies the constraints."""
        y, yp = self.system.start(t, q, v, self.tau)
        F = np.zeros_like(y)
        self.system.residual(np.asarray(t), y, yp, self.tau, F)
        self.progress = Progress(t)
        self.course = Course(self._solver(), self.progress, t, (y, yp), self.gear.settings.max_steps)
        if not np.isfinite(F).all():
            self.course.not_finite()
        elif np.abs(F).max() > CONSISTENT * max(1.0, float(np.abs(yp).max()), float(np.abs(y).max())):
            raise ModelError(
                f"model {self.gear.model.name!r}: at t = {t:g} s no accelerations and reactions satisfy the equations "
                f"of motion (residual {np.abs(F).max():.3g}); its constraints conflict there"
            )

    def advance(self, t: float) -> Reached:
        """Move to time `t`."""
        course, layout = self.course, self.system.layout
        course.advance(t)
        q, v = course.y[: layout.nq], course.y[layout.nq : layout.nq + layout.nv]
        if np.isfinite(course.y).all():
            q, v, gap = self.system.project(course.t, q, v, self.tau)
            if layout.form == "index1" and course.outcome == Outcome.ARRIVED and gap > self._allowed(course.y):
                self.earlier += self.progress.steps
                self._start(course.t, q, v)
        return (self.course, *self.system.tree(q, v, self.about), self.earlier + self.progress.steps)

    def _allowed(self, y: np.ndarray) -> float:
        """How far the constraints may be broken."""
        s = self.gear.settings
        return DRIFT * (s.rtol * float(np.abs(y[: self.system.layout.nq]).max()) + s.atol)

    def _solver(self) -> Any:
        """IDA on this system's equations."""
        from sksundae.ida import IDA

        gear, layout = self.gear, self.system.layout
        linear = next(name for name, size in LINEAR if layout.n <= size)
        moving = layout.nq + layout.nv
        share = (moving / layout.n) ** 0.5  # SUNDIALS' norm is a mean over all unknowns, the multipliers too
        weights = np.full(layout.n, IGNORED)
        weights[:moving] = share * gear.settings.atol
        options = gear.settings.options | {
            "rtol": share * gear.settings.rtol, "atol": weights, "algebraic_idx": range(moving, layout.n),
            "jacfn": self._jacobian(linear == "sparse"), "linsolver": linear,
        }  # fmt: skip
        if linear == "sparse":
            options["sparsity"] = self.system.pattern
        if gear.events is not None:
            options |= {"eventsfn": self._events(), "num_events": gear.events_count}
        return make(IDA, self._residual(), **options)

    def _residual(self) -> Callable[..., None]:
        """Fill the residual; where angles are measured, follow them from step to step."""
        evaluate, tau, progress, attempt = self.system.residual, self.tau, self.progress, self.progress.attempt
        if self.system.is_tree:

            def residual(t: float, y: np.ndarray, yp: np.ndarray, out: np.ndarray) -> None:
                if t != progress.tried:
                    attempt(t)
                evaluate(t, y, yp, tau, out)

            return residual
        system, layout, about = self.system, self.system.layout, self.about
        last = np.zeros(layout.n)

        def following(t: float, y: np.ndarray, yp: np.ndarray, out: np.ndarray) -> None:
            if t != progress.tried:
                if t > progress.tried and progress.steps:
                    about[:] = system.out_of(last[: layout.nq], last[layout.nq : layout.nq + layout.nv], about)[0]
                attempt(t)
            last[:] = y
            evaluate(t, y, yp, tau, out)

        return following

    def _jacobian(self, sparse: bool) -> Callable[..., None]:
        """Fill the Jacobian; a singular system shows here first, where there is time to look."""
        fill, tau, look, pattern = self.system.jacobian, self.tau, self.progress.look, self.system.pattern
        if sparse:

            def nonzeros(t: float, y: np.ndarray, yp: np.ndarray, F: np.ndarray, cj: float, out: np.ndarray) -> None:
                look(t, y, yp, F)
                fill(t, cj, y, yp, tau, out)

            return nonzeros
        columns = np.repeat(np.arange(pattern.shape[1]), np.diff(pattern.indptr))
        places = pattern.indices * pattern.shape[1] + columns
        values = np.zeros(pattern.nnz)

        def dense(t: float, y: np.ndarray, yp: np.ndarray, F: np.ndarray, cj: float, out: np.ndarray) -> None:
            look(t, y, yp, F)
            fill(t, cj, y, yp, tau, values)
            out.reshape(-1)[places] = values

        return dense

    def _events(self) -> Callable[..., None]:
        evaluate, about = self.gear.events, self.about

        def events(t: float, y: np.ndarray, yp: np.ndarray, out: np.ndarray) -> None:
            evaluate(t, y, about, out)

        if self.gear.directions is not None:
            events.direction = list(self.gear.directions)  # type: ignore[attr-defined]
        return events
