"""Multistep methods for trees: SUNDIALS CVODE on `y = (q, v)`, by backward differentiation or Adams' formulas.

Source: A. C. Hindmarsh et al., SUNDIALS, ACM Trans. Math. Softw. 31 (2005) 363-396.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from cardan.errors import InputError, LoopError, UnknownNameError, nearest
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
from cardan.integrate.sundials.equations import events_of_row, kernel_of_row, matrix_of_row
from cardan.model.model import Model

HIGHEST_ORDER = {"bdf": 5, "adams": 12}


class Multistep(Serial):
    """Integrates a tree without couplings by "bdf" or "adams"; fills `integrate.stepper.Stepper`.

    Arguments are those of `integrate.gear.Gear`; the tree's own coordinates are the only ones here.
    """

    def __init__(
        self,
        model: Model,
        method: str = "bdf",
        *,
        formulation: str = "spatial",
        tau: Any = None,
        events: Any = None,
        directions: Sequence[int] | None = None,
        **settings: Any,
    ) -> None:
        if method not in HIGHEST_ORDER:
            raise UnknownNameError(f"method {method!r} is not a multistep method{nearest(method, HIGHEST_ORDER)}")
        _require_open_tree(model, method, formulation)
        super().__init__(model, tau)
        self.method, self.settings = method, Settings(**settings)
        self.options = self.settings.options(HIGHEST_ORDER[method])
        free = model.unbound
        self.rates = kernel_of_row(free, dae.explicit(free), "tree").ufunc(wide=False)
        self.jacobian, self.pattern = matrix_of_row(free, dae.explicit_jacobian(free), "tree")
        self.count = 0 if events is None else int(events.numel_out(0))
        layout = dae.Layout("spatial", "index1", model.nq, model.nv, (), (), dae.quaternions(free, "spatial"))
        self.unit = layout.unit
        self.events = None if not self.count else events_of_row(free, layout, events)
        self.directions = directions

    def start(self, loads: Sequence[np.ndarray], at: Reached) -> Run:
        """Put a system on its way."""
        return _Run(self, loads, at)


def _require_open_tree(model: Model, method: str, formulation: str) -> None:
    """Refuse what is no ordinary differential equation in the tree's coordinates."""
    if formulation != "spatial":
        raise InputError(
            f"method {method!r} integrates the tree's own coordinates, formulation 'spatial', not {formulation!r}; "
            "method 'gear' takes every formulation"
        )
    held = [f"loops, cut at joint {model.joints[j].name!r}" for j in model.cuts]
    held += [coupling.owner for coupling in model.couplings]
    if held:
        raise LoopError(
            f"model {model.name!r} has {held[0]}, and method {method!r} integrates trees without couplings only; use "
            "method 'gear'"
        )


class _Run:
    """One system on its way."""

    def __init__(self, owner: Multistep, tail: Sequence[np.ndarray], at: Reached) -> None:
        self.owner, self.tail, self.progress = owner, tail, Progress(at.t)
        self.about, self.earlier = at.q.copy(), at.steps
        y, rates = np.concatenate([at.q, at.v]), np.zeros(len(at.q) + len(at.v))
        self.course = Course(self._solver, self.progress, at.t, y)
        owner.rates(at.t, y, *tail, rates)
        if not np.isfinite(rates).all():
            self.course.not_finite()

    def advance(self, t: float) -> Reached:
        """Move to time `t`."""
        course = self.course
        course.advance(t)
        while course.outcome == Outcome.STEPS and self._steps < self.owner.settings.max_steps:
            course.go_on()
            course.advance(t)
        q, v = np.split(course.y, [self.owner.model.nq])
        for at in self.owner.unit:
            q[at : at + 4] /= np.linalg.norm(q[at : at + 4])
        return course.reached(q, v, self._steps)

    @property
    def _steps(self) -> int:
        return self.earlier + self.progress.steps

    def _solver(self) -> Any:
        """CVODE on this system's equations."""
        from sksundae.cvode import CVODE

        owner, linear = self.owner, linear_solver(self.owner.pattern.shape[0])
        options = owner.options | {
            "method": {"bdf": "BDF", "adams": "Adams"}[owner.method], "rtol": owner.settings.rtol,
            "atol": owner.settings.atol, "jacfn": self._jacobian(linear == "sparse"), "linsolver": linear,
        }  # fmt: skip
        if linear == "sparse":
            options["sparsity"] = owner.pattern
        if owner.events is not None:
            options |= {"eventsfn": self._events(), "num_events": owner.count}
        return make(CVODE, self._rates(), **options)

    def _rates(self) -> Callable[..., None]:
        evaluate, tail, progress, attempt = self.owner.rates, self.tail, self.progress, self.progress.attempt

        def rates(t: float, y: np.ndarray, out: np.ndarray) -> None:
            if t != progress.tried:
                attempt(t)
            evaluate(t, y, *tail, out)

        return rates

    def _jacobian(self, sparse: bool) -> Callable[..., None]:
        """Fill the Jacobian; values that are not finite show here, at a new linearisation."""
        fill = self.owner.jacobian if sparse else spread(self.owner.jacobian, self.owner.pattern)
        tail, look = self.tail, self.progress.look

        def jacobian(t: float, y: np.ndarray, yp: np.ndarray, out: np.ndarray) -> None:
            look(t, y, yp, yp)
            fill(t, y, *tail, out)

        return jacobian

    def _events(self) -> Callable[..., None]:
        evaluate: Any = self.owner.events
        about, parameters = self.about, self.tail[1:]

        def events(t: float, y: np.ndarray, out: np.ndarray) -> None:
            evaluate(t, y, about, *parameters, out)

        if self.owner.directions is not None:
            events.direction = list(self.owner.directions)  # type: ignore[attr-defined]
        return events
