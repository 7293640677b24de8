"""The kernels of Moreau's midpoint rule, and its stepper.

Where a single sweep solves the laws of its rows, a step is straight on: rows that have nothing to do with one another,
or one contact. Otherwise a pass of the kernel makes one iteration, beginning with the forces of the step before, which
are nearly always those of this step. A system whose forces are not found yet stays where it is and makes another pass,
while its neighbours go on.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from cardan.algebra.complementarity import Complementarity
from cardan.algebra.matrix import Matrix, where
from cardan.errors import InputError
from cardan.formulation.complementarity import (
    NEWTON,
    SEQUENTIAL,
    SOLVABLE,
    one_after_the_other,
    second_forces,
    second_phase,
    solved,
    without_gain,
)
from cardan.integrate.explicit.step import STATE, ExplicitState, Step
from cardan.integrate.explicit.stepper import ExplicitKernels, ExplicitStepper
from cardan.integrate.kernel import Given
from cardan.integrate.moreau.step import MoreauEquations, MoreauGraphs, Terms
from cardan.integrate.stepper import States
from cardan.program.march import March
from cardan.structure.laws import gaps_and_rates

PASSES = 60  # for one step; then it is taken with the forces found so far
AFRESH = 8  # passes after which the forces begin with zero again
STALLED = 4, 0.9  # passes after which a step is taken if the last left more than this part of a residual that will do
FOUND = 1e-12  # relative residual at which forces are found
VIOLATED = 1e-7  # m or rad
MORE = ("force", "restoring", "tries", "left")


@dataclass
class MoreauState(ExplicitState):
    """With the forces (m,) of the two phases of an impact, the passes of this step and what the last one left."""

    force: Matrix
    restoring: Matrix
    tries: Matrix
    left: Matrix


@dataclass(frozen=True)
class MoreauKernels(ExplicitKernels):
    """The kernels of Moreau's rule for one model and its events; each is recorded when first used."""

    motion: MoreauEquations

    @property
    def _m(self) -> int:
        return len(self.model.lawful_rows)

    @property
    def names(self) -> tuple[str, ...]:
        """Parts of the state that the equations and events need."""
        return self._present(*STATE, *(MORE if self._m else ()))

    @property
    def _shapes(self) -> dict[str, tuple[int, ...]]:
        m: dict[str, tuple[int, ...]] = {"force": (self._m,), "restoring": (self._m,), "tries": (), "left": ()}
        return super()._shapes | m

    def _symbols(self) -> tuple[Any, ExplicitState, Given, list[Any]]:
        import casadi as ca

        graphs, s, given, data = super()._symbols()
        more = [ca.SX.sym(name, *(self._shapes[name] or (1,))) for name in MORE]
        return graphs, MoreauState(*(getattr(s, f.name) for f in fields(ExplicitState)), *more), given, data

    def _record(self, step_of: Any) -> March:
        """A march of steps; `step_of` says how a step begins and ends."""
        import casadi as ca

        graphs, s, given, data = self._symbols()
        assert isinstance(graphs, MoreauGraphs) and isinstance(s, MoreauState)
        state, control, h, finish = step_of(graphs, s, given)
        at = given.with_states(s.x, self.motion.states)
        terms, q_m = graphs.terms_at(s.t, s.q, s.v, s.a, h, at)
        marches = step_of == self._controlled_step
        if not self._m:
            forces, left, ready = _Forces(ca.SX(0, 1), ca.SX(0, 1), ca.SX(0, 1)), ca.SX(1, 1), ca.SX(1)
        else:
            fresh = s.tries == AFRESH
            start = where(fresh, 0.0, s.force), where(fresh, 0.0, s.restoring)
            forces, left, largest = self._forces(terms, start if marches else None)
            stalls = ca.logic_and(s.tries >= STALLED[0], largest > STALLED[1] * s.left)
            stalls = ca.logic_and(stalls, largest <= SOLVABLE)
            over = ca.logic_or(s.tries >= PASSES - 1, stalls)
            ready = ca.logic_or(largest <= FOUND, over) if marches else ca.SX(1)
        length = where(ready, h, 0.0) if marches and self._m else h
        k = graphs.stage_of(s.t, s.v, h, terms, q_m, forces.all, at)
        y = ca.vertcat(s.q, s.x) if self.motion.states else s.q
        after, busy = finish(Step(s.t, y, s.v, length, [k]))
        names = self.names if marches else self.stepped
        new = dict(zip(names, after, strict=False))
        new["a"] = where(length > 0, k[1], s.a)
        if marches and self._m:
            waits = ca.logic_and(h > 0, ca.logic_not(ready))
            new["steps"] = where(waits, s.steps, new["steps"])
            new["e"] = ca.fmax(s.e, where(length > 0, left, 0.0))
            new |= {"force": forces.first, "restoring": forces.second, "tries": where(waits, s.tries + 1, 0.0)}
            new["left"] = largest
            for name in MORE:  # a system that is done stays as it is while its neighbours go on
                new[name] = where(h > 0, new[name], getattr(s, name))
        others = after[len(names) :]  # the bracket of trial steps
        step = ca.Function("step", [*state, *control, *data], [*new.values(), *others, busy])
        return March(((step, 1),), len(state))

    def _forces(self, terms: Terms, start: tuple[Matrix, Matrix] | None) -> tuple[_Forces, Matrix, Matrix]:
        """Forces of the rows after one iteration from those of `start`, or, without it, solved at once; residuals.

        These are relative to the size of the forces: of the first phase, and the larger one of both.
        """
        import casadi as ca

        first = self._problem(terms)
        x, left = _improved(first, None if start is None else start[0])
        if not self.motion.restitutes:
            return _Forces(x, 0 * x, x), left, left
        rule = self.motion.rule
        if rule == SEQUENTIAL:
            done = one_after_the_other(terms.bounds, first, self.model, terms.u)
            second = self._problem(replace(terms, b=first.rate(done)), terms.u)
            y, more = _improved(second, None if start is None else start[1])
            restores = more <= SOLVABLE
            every = where(restores, without_gain(first, terms.u, x, done + y), x)
            return _Forces(x, y, every), left, ca.fmax(left, more)
        b, bounds = second_phase(terms.bounds, first, rule, terms.u, x)
        second = self._problem(replace(terms, b=b, constant=bounds.constant), terms.u)
        y, more = _improved(second, start[1] if start is not None else x if rule == NEWTON else None)
        restores = more <= SOLVABLE
        every = where(restores, without_gain(first, terms.u, x, second_forces(terms.bounds, rule, x, y)), x)
        return _Forces(x, y, every), left, ca.fmax(left, more)

    def _problem(self, terms: Terms, before: Matrix | None = None) -> Complementarity:
        return terms.bounds.problem(self.model, terms.W, terms.b, terms.active, before)


@dataclass
class _Forces:
    """Forces (m,) of the first and of the second phase, and all together."""

    first: Matrix
    second: Matrix
    all: Matrix


def _improved(problem: Complementarity, x: Matrix | None) -> tuple[Matrix, Matrix]:
    """Forces after one iteration from x, or, without it, solved at once; and the relative residual."""
    import casadi as ca

    if x is None or problem.is_direct:
        return solved(problem)
    x, left = problem.iteration(x)
    return x, ca.sqrt(left / (problem.scale(x) + 1e-300))


class MoreauStepper(ExplicitStepper):
    """Integrates a model by Moreau's rule."""

    reads_accelerations = True

    def begin(self, t: float, q: np.ndarray, v: np.ndarray) -> None:
        """Start at a state; reject a first one in which a gap is closed by more than steps of this length leave it."""
        if not self.s and self.model.laws:
            gaps, _ = gaps_and_rates(self.model, q, v, t, self.parameters)
            low = gaps < -(VIOLATED + (self.step or 0.0))
            if low.any():
                system, row = (int(k) for k in np.argwhere(low)[0])
                of = f" of system {system}" if len(q) > 1 else ""
                label = self.model.lawful_rows[row]
                raise InputError(
                    f"simulate: the start{of} violates {label.owner}, row {label.name!r}: its gap is "
                    f"{gaps[system, row]:.6g} {label.unit}, and must not be negative; move q0"
                )
        super().begin(t, q, v)

    def law_residual(self, s: States) -> np.ndarray:
        """As every stepper."""
        return s["e"].copy() if self.model.laws else np.zeros(len(s["t"]))

    def _first(self, q: np.ndarray, v: np.ndarray) -> States:
        m, B = len(self.model.lawful_rows), len(q)
        sizes = {"force": (B, m), "restoring": (B, m), "tries": (B,), "left": (B,)}
        return super()._first(q, v) | {name: np.zeros(shape) for name, shape in sizes.items()}
