"""The kernels of the generalised-alpha method: a start at a state, and a march of Newton iterations and steps.

One pass of the march is one iteration of Newton's method, followed, where it has converged, by the end of the step.
Lanes are at different iterations and times; none waits for another's step.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from cardan.formulation import native
from cardan.integrate import dae
from cardan.integrate.alpha import step as alpha_step
from cardan.integrate.alpha.step import Coefficients, Control, Equations, Layout, Linear, Point, State, Unknown
from cardan.integrate.events import Event, trace_events
from cardan.integrate.explicit.kernels import compiled
from cardan.integrate.explicit.motion import Loads
from cardan.machines.ufunc.kernel import Kernel
from cardan.model.model import Model
from cardan.program.march import March
from cardan.program.program import Port
from cardan.structure.kernels import function_of, symbolic
from cardan.structure.planarity import find_plane
from cardan.structure.rows import generic_configurations, scaled, usual_pivots

LENT = 1e-3  # of the smallest inertia there is
UNROLLED = 3_000  # instructions of Newton's equations past which solving them is a part of its own
NONE = 1e-9  # of a coordinate's own inertia: less, in some direction, is none


STARTED = ("q", "v", "vdot", "a", "multipliers", "g")


@dataclass(frozen=True)
class Recipe:
    """All that the kernels depend on."""

    model: Model
    layout: Layout
    events: tuple[Event, ...]
    parameters: int
    """How many free parameters the model has."""

    @property
    def is_tree(self) -> bool:
        """Whether the formulation has the tree's own coordinates."""
        return self.layout.key in native.TREE

    @property
    def sizes(self) -> dict[str, int | None]:
        """Numbers in each port of the state; None for a scalar."""
        model, n, m = self.model, self.layout.nv, self.layout.m
        sizes: dict[str, int | None] = {"t": None, "q": self.layout.nq, "v": n, "vdot": n, "a": n, "multipliers": 2 * m}
        if not self.is_tree:
            sizes |= {"x": model.nq, "w": model.nv}
        sizes |= {"iterate": n + 2 * m, **{name: None for name in ("h", "k", "steps", "outcome", "event")}}
        sizes |= {"g": len(self.events)}
        return {name: size for name, size in sizes.items() if size != 0}

    def march(self) -> Kernel:
        """Iterations and steps until a time: state and `end, rho, heed, tau, p, limit` to state."""
        state = tuple(self._port(name) for name in self.sizes)
        data = (*(Port(name, ()) for name in ("end", "rho", "heed")), *self._data_ports(), Port("limit", ()))
        return self._compiled("march", (*state, *data), state, self.recorded)

    def begin(self) -> Kernel:
        """State at a start: `t, q, v, tau, p` of the tree to `q, v, vdot, a, multipliers, g`."""
        inputs = (Port("t", ()), Port("q", (self.model.nq,)), Port("v", (self.model.nv,)), *self._data_ports())
        outputs = tuple(self._port(name) for name in STARTED if name in self.sizes)
        return self._compiled("begin", inputs, outputs, self._record_begin)

    def _port(self, name: str) -> Port:
        size = self.sizes[name]
        return Port(name, () if size is None else (size,))

    def _data_ports(self) -> tuple[Port, ...]:
        return Port("tau", (self.model.nv,)), *((Port("p", (self.parameters,)),) if self.parameters else ())

    def _compiled(self, name: str, inputs: tuple[Port, ...], outputs: tuple[Port, ...], record: Any) -> Kernel:
        return compiled(self.model, name, ("alpha", self.layout), self.events, inputs, outputs, record)

    # graphs

    def _record_begin(self) -> Any:
        import casadi as ca

        equations, loads, data = self._equations()
        t, x, w = ca.SX.sym("t"), ca.SX.sym("q", self.model.nq), ca.SX.sym("v", self.model.nv)
        q, v = x, w
        if not self.is_tree:
            q, v = dae.into(self.model, self.layout.key).graph(symbolic(self.model)[0], {"q": x, "v": w})
            if self.parameters:
                own = ca.Function("into", [x, w, symbolic(self.model)[1]], [q, v])
                q, v = own(x, w, *loads.parameters)
        p = alpha_step.begin(equations, t, q, v, loads)
        values = {"q": p.q, "v": p.v, "vdot": p.vdot, "a": p.a, "multipliers": ca.vertcat(p.lam, p.eta)}
        values["g"] = self._events(t, x, w, loads)
        return ca.Function("begin", [t, x, w, *data], [values[name] for name in STARTED if name in self.sizes])

    def recorded(self) -> March:
        """The march as graphs: one, or two where they are long."""
        import casadi as ca

        equations, loads, data = self._equations()
        symbols = {name: ca.SX.sym(name, size or 1) for name, size in self.sizes.items()}
        control = Control(*(ca.SX.sym(name) for name in ("end", "rho", "heed")))
        s, c = self._state(symbols), Coefficients.of(control.rho)
        h = alpha_step.length(s, control)
        x = alpha_step.first(s, alpha_step.predict(c, s.point))
        linear = alpha_step.linearise(equations, c, s.point, x, h, loads)
        state, controls = list(symbols.values()), [control.end, control.rho, control.heed, *data]

        def finish(linear: Linear) -> list[Any]:
            found = alpha_step.correct(equations, c, s.point, x, h, linear, loads)
            new = found[1]
            tree = (new.q, new.v) if self.is_tree else self._tree(new.q, new.v, s.x, loads)
            directions = np.array([event.direction for event in self.events])
            after, busy = alpha_step.commit(
                s, control, found, tree, self._events(new.t, tree[0], tree[1], loads), directions
            )
            return [*self._columns(after), busy]

        values = list(vars(linear).values())
        first = ca.Function("linearise", [*state, *controls], ca.cse(values))
        if first.n_instructions() <= UNROLLED:
            return March(((ca.Function("iteration", [*state, *controls], ca.cse(finish(linear))), 1),), len(state))
        # the equations' values wait in memory, without their zeros, for the part that solves them
        kept = [ca.SX.sym("kept", value.nnz()) for value in values]
        inputs = [*state, *kept, *controls]
        filled = [ca.vertcat(*value.nonzeros()) for value in ca.cse(values)]
        held = Linear(*(ca.SX(value.sparsity(), memory) for value, memory in zip(values, kept, strict=True)))
        opening = ca.Function("linearise", inputs, [*state, *filled, 0])
        done = ca.cse(finish(held))
        closing = ca.Function("correct", inputs, [*done[:-1], *kept, done[-1]])
        return March(((opening, 1), (closing, 1)), len(state), len(kept))

    def _equations(self) -> tuple[Equations, Loads, list[Any]]:
        import casadi as ca

        p = [ca.SX.sym("p", self.parameters)] if self.parameters else []
        loads = Loads(ca.SX.sym("tau", self.model.nv), p)
        return Equations.record(self.model, self.layout), loads, [loads.tau, *p]

    def _tree(self, q: Any, v: Any, about: Any, loads: Loads) -> Any:
        """`q` and `v` of the tree."""
        return function_of(self.model, dae.out_of(self.model, self.layout.key))(q, v, about, *loads.parameters)

    def _events(self, t: Any, x: Any, w: Any, loads: Loads) -> Any:
        import casadi as ca

        return trace_events(self.model, self.events)(t, x, w, *loads.parameters) if self.events else ca.SX(0, 1)

    def _state(self, symbols: dict[str, Any]) -> State:
        import casadi as ca

        n, m, nothing = self.layout.nv, self.layout.m, ca.SX(0, 1)
        lam, eta = ca.vertsplit(symbols.get("multipliers", nothing), [0, m, 2 * m])
        t, q, v, vdot, a = (symbols.get(name, nothing) for name in ("t", "q", "v", "vdot", "a"))
        point = Point(t, q, v, vdot, a, lam, eta)
        iterate = Unknown(*ca.vertsplit(symbols.get("iterate", nothing), [0, n, n + m, n + 2 * m]))
        x, w = (symbols.get("x", point.q), symbols.get("w", point.v))
        rest = (symbols.get(name, nothing) for name in ("h", "k", "steps", "outcome", "event", "g"))
        return State(point, x, w, iterate, *rest)

    def _columns(self, s: State) -> list[Any]:
        import casadi as ca

        p = s.point
        values = {"t": p.t, "q": p.q, "v": p.v, "vdot": p.vdot, "a": p.a, "multipliers": ca.vertcat(p.lam, p.eta)}
        values |= {"iterate": ca.vertcat(s.iterate.z, s.iterate.lam, s.iterate.eta)}
        values |= {name: getattr(s, name) for name in ("x", "w", "h", "k", "steps", "outcome", "event", "g")}
        return [values[name] for name in self.sizes]


def layout_of(model: Model, key: str) -> Layout:
    """Rows of `J` and of `phi` that are independent where nothing is special, and what inertia to lend there."""
    place = ("alpha", key)
    kernels = model.unbound.kernels
    if place not in kernels:
        kernels[place] = _layout_of(model, key)
    layout: Layout = kernels[place]
    return layout


def _layout_of(model: Model, key: str) -> Layout:
    if key == "points":
        find_plane(model)
    state = function_of(model, dae.state(model, key))
    into = None if key in native.TREE else function_of(model, dae.into(model, key))
    nominal = [model.parameters.nominal] if model.parameters else []
    still, found, inertias = np.zeros(model.nv), [], []
    for q in generic_configurations(model):
        own = (q, still) if into is None else into(q, still, *nominal)
        M, _, J, _, _, G, _, N = (np.array(x) for x in state(0.0, *own, still, *nominal))
        found.append((scaled(J), scaled(G @ N)))
        inertias.append(M)
    rows, places = usual_pivots([J for J, _ in found], [G for _, G in found])
    lent = np.max([_lent(M) for M in inertias], axis=0, initial=0.0)
    return Layout(key, *native.sizes(model, key), tuple(rows), tuple(places), tuple(lent.tolist()))


def _lent(M: np.ndarray) -> np.ndarray:
    """What to add to the diagonal (n,) of a mass matrix along what has no inertia; nothing where it has an inverse."""
    own = np.diag(M)
    real = own > NONE * NONE * own.max(initial=0.0)
    size = np.where(real, np.sqrt(np.where(real, own, 1.0)), 1.0)
    values, vectors = np.linalg.eigh(np.where(np.outer(real, real), M / np.outer(size, size), 0.0))
    empty = np.abs(vectors[:, values < NONE]).max(axis=1, initial=0.0) > NONE
    return np.where(empty, LENT * own[real].min(initial=np.inf), 0.0)
