"""Derivatives of one step of an explicit integrator: kernels for directions (forward) and weights (backward).

A step takes `x = (t, q, v, a)` to `x'`, with its length h, drives and parameters; `a` is carried only by methods that
estimate their error, whose first stage is the last one of the step before. The kernels are automatic derivatives of the
very graph that is stepped, correction onto the constraints included: one step of Newton's method, since that is what is
taken (docs/decisions/0035). Directions and weights of `q` are along the tangent, nv numbers.

    pushed:  dx' = x'_x dx + x'_h dh + x'_tau dtau + x'_p dp
    pulled:  x'_x^T w, x'_h^T w, and sums of x'_tau^T w, x'_p^T w

A kernel takes one direction; many of them are rows of a batch.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from cardan.algebra.matrix import Matrix
from cardan.formulation.coordinates import velocity_of_rates
from cardan.integrate.events import Event
from cardan.integrate.explicit import step as text
from cardan.integrate.explicit.step import ExplicitEquations, ExplicitState, Graphs, Step
from cardan.integrate.explicit.stepper import ExplicitKernels
from cardan.integrate.explicit.tableau import Tableau
from cardan.integrate.kernel import Given
from cardan.lazy import cached_property
from cardan.machines.ufunc.kernel import Kernel
from cardan.model.memory import Slot
from cardan.program.program import Port
from cardan.structure.kernels import function_of

SAMPLE_NEWTON_STEPS = 2  # of the projection of a sample that are differentiated; the third moves nothing any more


@dataclass(frozen=True)
class StepDerivatives(ExplicitKernels):
    """Kernels of the derivatives of a step, of the start of a run and of the projection of a sample.

    Each comes twice, `pushed_...` and `pulled_...`. Inputs are those of the map, then the directions or weights, then
    for `pulled_...` the sums for drives and parameters so far. Outputs are the directions, or weights, on the other
    side.
    """

    @cached_property
    def moving(self) -> tuple[str, ...]:
        """What a step carries to the next one, beside time."""
        return ("q", "v", "a") if self.tableau.adaptive else ("q", "v")

    @cached_property
    def pushed_step(self) -> Kernel:
        """`t, q, v, (a), h, dt, dq, dv, (da), dh, tau, (p), dtau, (dp)` to `dq, dv, (da)`."""
        return self._pushed("step", ("t", *self.moving, "h"), self.moving, self._stepped)

    @cached_property
    def pulled_step(self) -> Kernel:
        """`t, q, v, (a), h, wq, wv, (wa), tau, (p), sums` to `wt, wq, wv, (wa), wh` before the step, and new sums."""
        return self._pulled("step", ("t", *self.moving, "h"), self.moving, self._stepped)

    @cached_property
    def pushed_sample(self) -> Kernel:
        """The projection of a sample: `t, q, v, dt, dq, dv, tau, (p), dtau, (dp)` to `dq, dv`."""
        return self._pushed("sample", ("t", "q", "v"), ("q", "v"), self._sampled)

    @cached_property
    def pulled_sample(self) -> Kernel:
        """`t, q, v, wq, wv, tau, (p), sums` to `wt, wq, wv` and new sums."""
        return self._pulled("sample", ("t", "q", "v"), ("q", "v"), self._sampled)

    @cached_property
    def pushed_start(self) -> Kernel:
        """Accelerations where steps begin: `t, q, v, dt, dq, dv, tau, (p), dtau, (dp)` to `da`."""
        return self._pushed("start", ("t", "q", "v"), ("a",), self._started)

    @cached_property
    def pulled_start(self) -> Kernel:
        """`t, q, v, wa, tau, (p), sums` to `wt, wq, wv` and new sums."""
        return self._pulled("start", ("t", "q", "v"), ("a",), self._started)

    @cached_property
    def ended_step(self) -> Kernel:
        """Where a step ends: `t, q, v, (a), h, tau, (p)` to `q, v`."""
        inputs = ("t", *self.moving, "h")

        def record() -> Any:
            import casadi as ca

            graphs, s, given, data = self._symbols()
            after = self._stepped(graphs, s, given)
            return ca.Function("ended_step", [*(getattr(s, key) for key in inputs), *data], [after.q, after.v])

        return self._kernel("ended_step", (*self._ports(*inputs), *self._data_ports()), self._ports("q", "v"), record)

    @cached_property
    def event_rates(self) -> Kernel:
        """Derivatives of the events' values: `t, q, v, (p)` to `g_t` (ne,), `g_q`, `g_v` (ne, nv), `(g_p)`."""
        ne, nv = len(self.events), self.model.nv
        p = self._data_ports()[1:]
        outputs = [Port("g_t", (ne,)), Port("g_q", (ne, nv)), Port("g_v", (ne, nv))]
        outputs += [Port("g_p", (ne, port.size)) for port in p]

        def record() -> Any:
            import casadi as ca

            graphs, s, given, data = self._symbols()
            g, d = self._events(s.t, s.q, s.v, given), ca.SX.sym("d", nv)
            N = ca.jacobian(graphs.rates(s.q, d, given), d)
            x = [s.t, s.q, s.v, *data[1:]]
            found = [ca.jacobian(g, y) for y in x]
            found[1] = found[1] @ N
            return ca.Function("event_rates", x, [ca.densify(D) for D in found])

        return self._kernel("event_rates", (*self._ports("t", "q", "v"), *p), tuple(outputs), record)

    # The maps, of symbols.

    def _stepped(self, graphs: Graphs, s: ExplicitState, given: Given) -> ExplicitState:
        first = int(self.tableau.adaptive)
        known = [(graphs.rates(s.q, s.v, given), s.a, s.power)] if first else []
        step = Step(s.t, s.q, s.v, s.h, known)
        for i in range(first, self.tableau.stages):
            step.K.append(text.stage(graphs, self.tableau, step, i, given))
        new = text.result(graphs, self.tableau, step, given)
        return replace(s, q=new.q, v=new.v, a=step.K[-1][1])

    def _sampled(self, graphs: Graphs, s: ExplicitState, given: Given) -> ExplicitState:
        q, v = s.q, s.v
        if graphs.projection is not None and self.motion.projects:
            for _ in range(SAMPLE_NEWTON_STEPS):
                c = graphs.projection.at(s.t, q, given.parameters)
                q, v = graphs.projection.moved(c, q, v, given.parameters)
        return replace(s, q=q, v=v)

    def _started(self, graphs: Graphs, s: ExplicitState, given: Given) -> ExplicitState:
        return replace(s, a=graphs.accelerations(s.t, s.q, s.v, given)[0])

    # Their derivatives.

    def _pushed(self, name: str, inputs: tuple[str, ...], outputs: tuple[str, ...], of: Map) -> Kernel:
        ports = (*self._ports(*inputs), *self._tangent_ports("d", inputs), *self._data_ports())
        ports = (*ports, *(replace(port, name=f"d{port.name}") for port in self._data_ports()))

        def record() -> Any:
            import casadi as ca

            graphs, s, given, data = self._symbols()
            after = of(graphs, s, given)
            x = [*(getattr(s, key) for key in inputs), *data]
            directions = [ca.SX.sym(port.name, *(port.shape or (1,))) for port in self._tangent_ports("d", inputs)]
            rest = [ca.SX.sym("d", *y.shape) for y in data]
            rates = [
                graphs.rates(s.q, d, given) if key == "q" else d for key, d in zip(inputs, directions, strict=True)
            ]
            y = [getattr(after, key) for key in outputs]
            dy = ca.vertsplit(
                ca.jtimes(ca.vertcat(*y), ca.vertcat(*x), ca.vertcat(*rates, *rest)), _places([*y])
            )
            found = [
                self._velocity(after.q, d, given) if key == "q" else d for key, d in zip(outputs, dy, strict=True)
            ]
            sizes = [*x[: len(inputs)], *directions, *data, *rest]
            return ca.Function(f"pushed_{name}", sizes, [ca.densify(d) for d in found])

        return self._kernel(f"pushed_{name}", ports, self._tangent_ports("d", outputs), record)

    def _pulled(self, name: str, inputs: tuple[str, ...], outputs: tuple[str, ...], of: Map) -> Kernel:
        sums = tuple(replace(port, name=f"s{port.name}") for port in self._data_ports())
        ports = (*self._ports(*inputs), *self._tangent_ports("w", outputs), *self._data_ports(), *sums)

        def record() -> Any:
            import casadi as ca

            graphs, s, given, data = self._symbols()
            after = of(graphs, s, given)
            x = [*(getattr(s, key) for key in inputs), *data]
            weights = [ca.SX.sym(port.name, *(port.shape or (1,))) for port in self._tangent_ports("w", outputs)]
            so_far = [ca.SX.sym("s", *y.shape) for y in data]
            y = [getattr(after, key) for key in outputs]
            w = [
                _transposed(lambda d: self._velocity(after.q, d, given), self.model.nq, w) if key == "q" else w
                for key, w in zip(outputs, weights, strict=True)
            ]
            all_bars = ca.jtimes(ca.vertcat(*y), ca.vertcat(*x), ca.vertcat(*w), True)
            bars = ca.vertsplit(all_bars, _places(x))
            found = [
                _transposed(lambda d: graphs.rates(s.q, d, given), self.model.nv, bar) if key == "q" else bar
                for key, bar in zip(inputs, bars, strict=False)
            ]
            totals = [total + bar for total, bar in zip(so_far, bars[len(inputs) :], strict=True)]
            return ca.Function(
                f"pulled_{name}", [*x[: len(inputs)], *weights, *data, *so_far], [ca.densify(b) for b in found + totals]
            )

        return self._kernel(f"pulled_{name}", ports, (*self._tangent_ports("w", inputs), *sums), record)

    def _tangent_ports(self, letter: str, names: tuple[str, ...]) -> tuple[Port, ...]:
        """Ports of directions or weights."""
        ports = self._ports(*names)
        return tuple(Port(letter + port.name, (self.model.nv,) if port.name == "q" else port.shape) for port in ports)

    def _velocity(self, q: Matrix, dq: Matrix, given: Given) -> Matrix:
        """The direction (nv,) along which numbers `q` move with the rates `dq` (nq,)."""
        return self._velocity_function(q, dq, *given.parameters)

    @cached_property
    def _velocity_function(self) -> Any:
        return function_of(self.model, velocity_of_rates(self.model))


Map = Callable[[Graphs, ExplicitState, Given], ExplicitState]


def _transposed(linear: Callable[[Matrix], Matrix], columns: int, w: Matrix) -> Matrix:
    """`L^T w` of a linear map `L` with so many columns."""
    import casadi as ca

    d = ca.SX.sym("d", columns)
    return ca.jtimes(linear(d), d, w, True)


def _places(parts: list[Matrix]) -> list[int]:
    """Where each of some columns begins when they are stacked, and the end."""
    places = [0]
    for part in parts:
        places.append(places[-1] + part.shape[0])
    return places


_DERIVATIVES: Slot[tuple[str, str], StepDerivatives] = Slot("derivatives of explicit steps, by equations and tableau")


def step_derivatives(motion: ExplicitEquations, tableau: Tableau, events: tuple[Event, ...]) -> StepDerivatives:
    """The kernels for derivatives of an integrator's steps; kept with the model unless there are events."""
    model = motion.model.unbound  # parameters are an input of the kernels
    size = model.parameters.size if model.parameters else 0

    def make() -> StepDerivatives:
        return StepDerivatives(model, events, size, replace(motion, model=model), tableau)

    return make() if events else _DERIVATIVES.find(model, (motion.key, tableau.key), make)
