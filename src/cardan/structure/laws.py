"""Rows with laws at states: their gaps and rates, and what an impact does to velocities."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from cardan.algebra.complementarity import Complementarity
from cardan.algebra.matrix import where
from cardan.formulation.complementarity import (
    SOLVABLE,
    Bounds,
    has_restitution,
    impact_terms,
    lawful_state,
    second_forces,
    second_phase,
    without_gain,
)
from cardan.formulation.spatial import SPATIAL
from cardan.machines.ufunc.kernel import compile_program
from cardan.model.memory import Slot
from cardan.model.model import Model
from cardan.model.row import Law
from cardan.program.march import March
from cardan.program.program import Port, Program
from cardan.structure.kernels import compile_quantity, time_argument
from cardan.structure.rows import kept_rows

_KERNELS: Slot[str, Any] = Slot("rows with laws at states, and impacts by their rule")


def gaps_and_rates(
    model: Model, q: np.ndarray, v: np.ndarray, t: np.ndarray | float, parameters: Sequence[np.ndarray] = ()
) -> tuple[np.ndarray, np.ndarray]:
    """Gaps (..., m), m or rad, infinite in rows without one, and rates (..., m) of the rows with laws at states."""
    make = lambda: compile_quantity(model.unbound, lawful_state(model), "laws")
    kernel = _with_values(_KERNELS.find(model, "state", make), model, parameters)
    phi, u = kernel(q, v, *time_argument(model, t))
    unilateral = np.array([row.law is Law.UNILATERAL for row in model.lawful_rows])
    return np.where(unilateral, phi, np.inf), np.asarray(u)


def after_impact(
    model: Model, q: np.ndarray, v: np.ndarray, closed: np.ndarray, rule: str, t: np.ndarray | float = 0.0,
    parameters: Sequence[np.ndarray] = (),
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:  # fmt: skip
    """Velocities (..., nv) after an impact of the rows `closed` (..., m), impulses (..., m) and relative residual.

    `rule` is "newton" or "poisson". The velocities before must fit the equality rows, which share the impact.
    """
    rows = tuple(kept_rows(model.unbound, SPATIAL))
    make = lambda: compile_quantity(model.unbound, impact_terms(model, rows), f"laws rows {rows}")
    kernel = _with_values(_KERNELS.find(model, "impact", make), model, parameters)
    terms = dict(zip(("Y", "W", "u", *BOUNDS), kernel(q, v, *time_argument(model, t)), strict=True))
    closed = np.broadcast_to(closed, terms["u"].shape).astype(float)
    P, left = impulses(model, rule, terms | {"b": terms["u"], "closed": closed})
    return v + (terms["Y"] @ P[..., None])[..., 0], P, left


def impulses(model: Model, rule: str, terms: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Forces or impulses (..., m) of a problem with restitution, and the relative residual.

    `terms` are `W` and `b` with rates `b + W x` after it, the rates `u` before, which rows are `closed`, and the parts
    of `Bounds`.
    """
    phases = ImpactPhases(model.unbound, rule)
    given = [terms[name] for name in ("W", "b", "u", "closed", *BOUNDS)]
    x, left = phases.solve(*given)
    if not has_restitution(model):
        return x, left
    b, constant = phases.between(*given, x)
    y, more = phases.solve(given[0], b, *given[2:4], constant, *given[5:])
    restores = more <= SOLVABLE
    P = np.where(restores[..., None], phases.finish(*given, x, y), x)
    return P, np.where(restores, np.maximum(left, more), left)


BOUNDS = tuple(f.name for f in fields(Bounds))
FOUND = 1e-12  # relative residual at which forces are found
ITERATIONS = 100.0


@dataclass(frozen=True)
class ImpactPhases:
    """The kernels that solve impacts of a model, from the terms of `impact_terms`."""

    model: Model
    rule: str

    def _symbols(self) -> tuple[dict[str, Any], Complementarity, Bounds]:
        import casadi as ca

        shapes = {port.name: port.shape for port in self._ports}
        given = {name: ca.SX.sym(name, *(shape or (1,))) for name, shape in shapes.items()}
        bounds = Bounds(*(given[name] for name in BOUNDS))
        return given, bounds.problem(self.model, *(given[name] for name in ("W", "b", "closed", "u"))), bounds

    @property
    def _ports(self) -> tuple[Port, ...]:
        m = (len(self.model.lawful_rows),)
        sizes = {"W": 2 * m, "b": m, "u": m, "closed": m, **Bounds.sizes(self.model)}
        return tuple(Port(name, shape) for name, shape in sizes.items())

    def _kernel(
        self, name: str, outputs: dict[str, int], record: Any, first: tuple[Port, ...] = (), last: Any = ()
    ) -> Any:
        key = hashlib.sha256(f"{self.model.key} laws {self.rule} {name} {FOUND}".encode()).hexdigest()
        made = tuple(Port(n, (size,) if n != "left" else ()) for n, size in outputs.items())
        program = Program(name, (*first, *self._ports, *last), made, key, record)
        return _KERNELS.find(self.model, f"{name} {self.rule}", lambda: compile_program(program))

    def solve(self, *terms: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Forces (..., m) and relative residual of the problem of these terms."""
        m = len(self.model.lawful_rows)
        state = (Port("x", (m,)), Port("left", ()))

        def record() -> March:
            import casadi as ca

            given, problem, _ = self._symbols()
            x, left = ca.SX.sym("x", m), ca.SX.sym("left")
            new, now = problem.iteration(x)
            now = ca.sqrt(now / (problem.scale(new) + 1e-300))
            goes_on = left > FOUND  # a system that is done stays as it is
            after = [where(goes_on, new, x), where(goes_on, now, left)]
            return March(((ca.Function("solve", [x, left, *given.values()], [*after, after[1] > FOUND]), 1),), 2)

        kernel = self._kernel("solve", {"x": m, "left": 1}, record, state, (Port("limit", ()),))
        start = np.zeros_like(terms[1]), np.ones(terms[1].shape[:-1])
        found: tuple[np.ndarray, np.ndarray] = kernel(*start, *terms, np.asarray(ITERATIONS))
        return found

    def between(self, *terms: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """`b` (..., m) and constant bounds of the second phase, from the terms of the first and its forces."""
        m, port = len(self.model.lawful_rows), self._ports[4]

        def record() -> Any:
            import casadi as ca

            given, problem, bounds = self._symbols()
            x = ca.SX.sym("x", m)
            b, again = second_phase(bounds, problem, self.rule, given["u"], x)
            return ca.Function("between", [*given.values(), x], [ca.densify(b), ca.densify(again.constant)])

        kernel = self._kernel("between", {"b2": m, "constant2": port.shape[0]}, record, (), (Port("x", (m,)),))
        found: tuple[np.ndarray, np.ndarray] = kernel(*terms)
        return found

    def finish(self, *terms: np.ndarray) -> np.ndarray:
        """Impulses (..., m) from the terms of the first phase and the forces of both."""
        m = len(self.model.lawful_rows)

        def record() -> Any:
            import casadi as ca

            given, problem, bounds = self._symbols()
            x, y = ca.SX.sym("x", m), ca.SX.sym("y", m)
            every = second_forces(bounds, self.rule, x, y)
            return ca.Function("finish", [*given.values(), x, y], [without_gain(problem, given["u"], x, every)])

        found: np.ndarray = self._kernel("finish", {"P": m}, record, (), (Port("x", (m,)), Port("y", (m,))))(*terms)
        return found


def _with_values(kernel: Any, model: Model, parameters: Sequence[np.ndarray]) -> Any:
    if not model.parameters:
        return kernel
    values = parameters[0] if parameters else model.parameters.nominal if model.values is None else model.values
    return kernel.at_values(values)
