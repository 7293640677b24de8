"""Gear's method: backward differentiation of variable order and step on the differential-algebraic equations.

The equations are those of `formulation.dae`, in a formulation's own coordinates; SUNDIALS IDA integrates them with
their exact Jacobian. What goes in and comes out are coordinates of the tree, on the constraints to rounding.

Source: A. C. Hindmarsh et al., SUNDIALS, ACM Trans. Math. Softw. 31 (2005) 363-396; K. E. Brenan, S. L. Campbell,
L. R. Petzold, Numerical Solution of Initial-Value Problems in Differential-Algebraic Equations (SIAM 1996), chapter 5.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cardan.errors import InputError, ModelError
from cardan.formulation import dae, native
from cardan.formulation.contract import Quantity, fixed
from cardan.integrate.independence import generic_configurations, pivots, scaled, usual
from cardan.integrate.stepper import Arrival
from cardan.integrate.sundials import March, Progress, make
from cardan.kernels.evaluate import compile_quantity
from cardan.model.model import Model

CONSISTENT = 1e-8  # largest residual of the equations at the start, beside their largest term
CLOSED = 1e-6  # largest gap in positions and velocities that a start may have, m and rad; it is closed exactly
DEPENDENT = 1e-6  # of rows of unit length: a combination smaller than this is not corrected along
IGNORED = 1e30  # absolute tolerance of multipliers: no error test, no part in Newton's
DENSE = 40  # unknowns up to which the dense solver is the faster
COMPILED = 20_000  # operations up to which a Jacobian is worth compiling; beyond, CasADi's interpreter runs it
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


Reached = tuple[March, np.ndarray, np.ndarray, int]


def gather(reached: Sequence[Reached]) -> Arrival:
    """One arrival from those of all systems: how each went, its q and v, and its steps."""
    marches = [march for march, *_ in reached]
    return Arrival(
        np.array([m.t for m in marches]),
        np.stack([q for _, q, _, _ in reached]),
        np.stack([v for _, _, v, _ in reached]),
        np.array([int(m.outcome) for m in marches]),
        np.array([m.event for m in marches]),
        np.array([steps for *_, steps in reached]),
        next((m.words for m in marches if m.words), ""),
    )


class System:
    """The equations of a model in one formulation, compiled."""

    def __init__(self, model: Model, key: str, form: str) -> None:
        self.model, self.key = model, key
        self.is_tree = key in native.TREE
        self.state = self._kernel(dae.state(model, key), key)
        if not self.is_tree:
            self.into = self._kernel(dae.into(model, key), key)
            self.out_of = self._kernel(dae.out_of(model, key), key)
        self.layout = self._layout(form)
        self.residual = self._kernel(dae.residual(model, self.layout), self.layout.name).ufunc(wide=False)
        self.jacobian, self.sparsity = self._jacobian()

    def _kernel(self, quantity: Quantity, name: str) -> Any:
        place = ("gear", name, quantity.name)
        if place not in self.model.kernels:
            self.model.kernels[place] = compile_quantity(self.model, quantity, f"gear {name}")
        return self.model.kernels[place]

    def _layout(self, form: str) -> dae.Layout:
        """Keep rows that are independent where nothing is special, of `J` and of `d phi / dt` alike."""
        still, found = np.zeros(self.model.nv), []
        for q in generic_configurations(self.model):
            own_q, own_v = (q, still) if self.is_tree else self.into(q, still)
            _, _, J, _, _, G, _, N = self.state(np.asarray(0.0), own_q, own_v, still)
            found.append((pivots(scaled(J)), pivots(scaled(G @ N))) if len(J) else ([], []))
        rank = usual([len(rows) for rows, _ in found])
        rows, places = next(pair for pair in found if len(pair[0]) == rank)
        sizes = native.sizes(self.model, self.key)
        unit = dae.quaternions(self.model, self.key)
        return dae.Layout(self.key, form, *sizes, tuple(sorted(rows)), tuple(sorted(places)), unit)

    def _jacobian(self) -> tuple[Callable[..., Any], Any]:
        """A function that fills (nonzeros,) or (n, n), and the pattern or None."""
        import casadi as ca

        place = ("gear", self.layout.name, "jacobian")
        if place in self.model.kernels:
            return self.model.kernels[place]  # type: ignore[no-any-return]
        n, model = self.layout.n, self.model
        function = dae.jacobian(model, self.layout)
        dense = n <= DENSE
        pattern = function.sparsity_out(0)
        shape = (n, n) if dense else (pattern.nnz(),)

        def write(model: Model, s: Any) -> list[Any]:
            K = function(*s.values())
            return [ca.densify(K) if dense else ca.vertcat(*K.nonzeros())]

        shapes = {"t": (), "cj": (), "y": (n,), "yp": (n,), "tau": (model.nv,)}
        quantity = Quantity("dae_jacobian", tuple(shapes), (("K", fixed(*shape)),), write=write, shapes=shapes)
        if function.n_instructions() <= COMPILED:
            fill = compile_quantity(model, quantity, f"gear {self.layout.name}").ufunc(wide=False)
        else:
            fill = _interpreted(quantity, function)
        model.kernels[place] = fill, None if dense else _scipy_pattern(pattern)
        return model.kernels[place]  # type: ignore[no-any-return]

    def events(self, graph: Any) -> Any:
        """The compiled function of (t, y, about), (ne,)."""
        digest = hashlib.sha256(graph.serialize().encode()).hexdigest()
        return self._kernel(dae.events(self.model, self.layout, graph), f"{self.layout.name} {digest}").ufunc(wide=False)
