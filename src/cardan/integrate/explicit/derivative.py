"""Derivatives of one step of an explicit integrator: kernels for directions (forward) and weights (backward).

A step takes `(t, q, v, x, a)` to the same at its end, with its length h, drives and parameters; `x` are the parameters
that are states, if there are any. `a` is carried only by methods that estimate their error, whose first stage is the
last one of the step before. The kernels are automatic derivatives of the
very graph that is stepped, correction onto the constraints included: one step of Newton's method, since that is what is
taken (docs/decisions/0035). Directions and weights of `q` are along the tangent, nv numbers.

    pushed:  dx' = x'_x dx + x'_h dh + x'_tau dtau + x'_p dp
    pulled:  x'_x^T w, x'_h^T w, and sums of x'_tau^T w, x'_p^T w

A kernel takes one direction; many of them are rows of a batch.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any

from cardan.algebra.matrix import Matrix, mirrored, where
from cardan.formulation.coordinates import velocity_of_rates
from cardan.formulation.quantity import Inputs, Quantity, Shape, fixed
from cardan.integrate.events import Event
from cardan.integrate.explicit import step as text
from cardan.integrate.explicit.step import ExplicitEquations, ExplicitState, Graphs, Step
from cardan.integrate.explicit.stepper import ExplicitKernels
from cardan.integrate.explicit.tableau import Tableau
from cardan.integrate.kernel import Given
from cardan.lazy import cached_property
from cardan.machines.ufunc.kernel import Kernel
from cardan.model.memory import Slot
from cardan.model.model import Model
from cardan.program.march import March
from cardan.program.program import Port
from cardan.structure.kernels import function_of

BLOCK = 8  # steps that are taken, or followed backward, in one call
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
        return (*self.place[1:], *(["a"] if self.tableau.adaptive else []))

    @property
    def place(self) -> tuple[str, ...]:
        """What says where a system is: time, coordinates, rates, and the parameters that are states."""
        return ("t", "q", "v", *(["x"] if self.motion.states else []))

    @cached_property
    def pushed_step(self) -> Kernel:
        """`t, q, v, (x, a), h, dt, dq, dv, (dx, da), dh, tau, (p), dtau, (dp)` to `dq, dv, (dx, da)`."""
        return self._pushed("step", ("t", *self.moving, "h"), self.moving, self._stepped)

    @cached_property
    def pulled_step(self) -> Kernel:
        """`t, q, v, (x, a), h, wq, wv, (wx, wa), tau, (p), sums` to `wt, wq, wv, (wx, wa), wh`, and new sums."""
        return self._pulled("step", ("t", *self.moving, "h"), self.moving, self._stepped)

    @cached_property
    def pushed_sample(self) -> Kernel:
        """The projection of a sample: `t, q, v, (x), dt, dq, dv, (dx), tau, (p), dtau, (dp)` to `dq, dv`."""
        return self._pushed("sample", self.place, ("q", "v"), self._sampled)

    @cached_property
    def pulled_sample(self) -> Kernel:
        """`t, q, v, (x), wq, wv, tau, (p), sums` to `wt, wq, wv, (wx)` and new sums."""
        return self._pulled("sample", self.place, ("q", "v"), self._sampled)

    @cached_property
    def pushed_start(self) -> Kernel:
        """Accelerations where steps begin: `t, q, v, (x), dt, dq, dv, (dx), tau, (p), dtau, (dp)` to `da`."""
        return self._pushed("start", self.place, ("a",), self._started)

    @cached_property
    def pulled_start(self) -> Kernel:
        """`t, q, v, (x), wa, tau, (p), sums` to `wt, wq, wv, (wx)` and new sums."""
        return self._pulled("start", self.place, ("a",), self._started)

    @cached_property
    def recorded_march(self) -> Kernel:
        """As `march`, with `last`, `ahead`, `count` and `X` as the last four of the state.

        The start and the length of the n-th step that is accepted become row n of `X` (BLOCK, `row`), and `count` is
        how many there are. A call takes at most BLOCK steps.

        The root of the rows' independence (`structure.projection`) is proportional to the distance from a singular
        position. `last` is that after the last step, `ahead` the least that it is, or will be after another such step:
        negative if a singular position lies between two steps.
        """
        numbers = (Port("last", ()), Port("ahead", ()), Port("count", ()))
        state = (*self._ports(*self.names), *numbers, Port("X", (BLOCK * self.row,)))
        inputs = (*state, *self._data_ports(*self.control), Port("limit", ()))
        return self._kernel("recorded_march", inputs, state, lambda: self._record(self._recorded_step), BLOCK)

    @cached_property
    def pulled_block(self) -> Kernel:
        """Weights back through the steps of a block: `wq, wv, (wx, wa), sums, done, count, X, tau, (p), limit`.

        The first of them are the state, and the results: `done` is 0 at the beginning.
        """
        sums = tuple(replace(port, name=f"s{port.name}") for port in self._data_ports())
        state = (*self._tangent_ports("w", self.moving), *sums, Port("done", ()))
        data = (Port("count", ()), Port("X", (BLOCK * self.row,)), *self._data_ports())
        return self._kernel("pulled_block", (*state, *data, Port("limit", ())), state, self._record_block, BLOCK)

    @property
    def row(self) -> int:
        """Numbers of a step in a block: `t`, `h`, and what is carried."""
        return 2 + sum(port.size for port in self._ports(*self.moving))

    @cached_property
    def ended_step(self) -> Kernel:
        """Where a step ends: `t, q, v, (x, a), h, tau, (p)` to `q, v, (x)`."""
        inputs = ("t", *self.moving, "h")

        def record() -> Any:
            import casadi as ca

            graphs, s, given, data = self._symbols()
            after = self._stepped(graphs, s, given)
            x = [*(getattr(s, key) for key in inputs), *data]
            return ca.Function("ended_step", x, [ca.densify(getattr(after, name)) for name in self.place[1:]])

        outputs = self._ports(*self.place[1:])
        return self._kernel("ended_step", (*self._ports(*inputs), *self._data_ports()), outputs, record)

    @cached_property
    def event_rates(self) -> Kernel:
        """The events' values `g` (ne,) and their derivatives: `t, q, v, (x), tau, (p)` to `g, g_t, g_q, ..., (g_p)`.

        Derivatives by `t` are (ne,), by `q` and `v` (ne, nv), by the others (ne, size).
        """
        ne, ports = len(self.events), (*self._ports(*self.place), *self._data_ports())
        sizes = {port.name: (self.model.nv,) if port.name == "q" else port.shape for port in ports}
        outputs = [Port("g", (ne,)), *(Port(f"g_{name}", (ne, *shape)) for name, shape in sizes.items())]

        def record() -> Any:
            import casadi as ca

            graphs, s, given, data = self._symbols()
            given = self._with_states(s, given)
            g, d = self._events(s.t, s.q, s.v, given), ca.SX.sym("d", self.model.nv)
            N = ca.jacobian(graphs.rates(s.q, d, given), d)
            x = [*(getattr(s, name) for name in self.place), *data]
            found = [ca.jacobian(g, y) for y in x]
            found[1] = found[1] @ N
            return ca.Function("event_rates", x, [ca.densify(D) for D in (g, *found)])

        return self._kernel("event_rates", ports, tuple(outputs), record)

    @cached_property
    def quantities(self) -> tuple[Quantity, ...]:
        """The parts of a run as quantities, by the numbers in their inputs, for derivatives of higher order.

        They are `stage`, `finish` and `sample`. The first takes `q, v, tau, t` to the rates `kq, kv`, `finish` takes
        `q, v, tau, t, h` and the rates `kq0, kv0, kq1, ...` of all stages to `q, v` after the step, and `sample` takes
        `q, v, tau, t` to `q, v`.
        """
        tableau, shapes = self.tableau, self._shapes
        assert not (tableau.adaptive or self.motion.states)  # whose accelerations and states would be carried too
        rates = {f"k{x}{i}": shapes[x] for i in range(tableau.stages) for x in ("q", "v")}

        def stage(graphs: Graphs, x: Inputs, given: Given) -> list[Matrix]:
            step = Step(x["t"], x["q"], x["v"], x["t"] * 0, [])
            return [*text.stage(graphs, tableau, step, 0, given)[:2]]

        def finish(graphs: Graphs, x: Inputs, given: Given) -> list[Matrix]:
            K = [(x[f"kq{i}"], x[f"kv{i}"], x["t"]) for i in range(tableau.stages)]
            new = text.result(graphs, tableau, Step(x["t"], x["q"], x["v"], x["h"], K), given)
            return [new.q, new.v]

        return (
            self._quantity("stage", {}, stage),
            self._quantity("finish", {"h": ()} | rates, finish),
            self._quantity("sample", {}, self._mapped(self._sampled)),
        )

    @cached_property
    def assembly(self) -> Quantity:
        """The start: `q, v, tau, t` near the constraints to `q, v` on them."""
        return self._quantity("start", {}, self._mapped(self._assembled))

    def _mapped(self, of: Map) -> Written:
        def write(graphs: Graphs, x: Inputs, given: Given) -> list[Matrix]:
            after = of(graphs, replace(self._symbols()[1], q=x["q"], v=x["v"], t=x["t"]), given)
            return [after.q, after.v]

        return write

    def _quantity(self, name: str, more: dict[str, Shape], of: Written) -> Quantity:
        shapes = {"q": (self.model.nq,), "v": (self.model.nv,), "tau": (self.model.nv,), "t": (), **more}

        def write(_: Model, inputs: Inputs) -> list[Matrix]:
            import casadi as ca

            given = Given(inputs["tau"], [inputs["p"]] if self.parameters else [])
            return [ca.densify(x) for x in of(self._graphs, inputs, given)]

        outputs = (("q", fixed(self.model.nq)), ("v", fixed(self.model.nv)))
        digest = hashlib.sha256(repr(self.facts).encode()).hexdigest()[:16]
        return Quantity(f"{name} of {digest}", tuple(shapes), outputs, write=write, shapes=shapes)

    # The maps, of symbols.

    def _assembled(self, graphs: Graphs, s: ExplicitState, given: Given) -> ExplicitState:
        """The start, as assembly moves it: steps of Newton's method with the smallest change of coordinates."""
        import casadi as ca

        q, v, projection = graphs.normalised(s.q), s.v, graphs.projection
        if projection is None or not projection.rows:
            return replace(s, q=q, v=v)
        time = (s.t,) if self.model.depends_on_time else ()
        positions = [row for row in projection.rows if self.model.rows[row].level == "position"]
        x, d = ca.SX.sym("x", self.model.nq), ca.SX.sym("d", self.model.nv)
        phi = projection.state(x, *time, *given.parameters)[0][positions, 0]
        G = ca.jacobian(phi, x) @ ca.jacobian(graphs.rates(x, d, given), d)
        moved = graphs.plus(x, -_smallest(G, phi), given)
        newton = ca.Function("newton", [x, *time, *given.parameters], [moved])
        for _ in range(SAMPLE_NEWTON_STEPS):
            q = newton(q, *time, *given.parameters)
        _, J, beta = projection.state(q, *time, *given.parameters)
        rows = list(projection.rows)
        return replace(s, q=q, v=v - _smallest(J[rows, :], J[rows, :] @ v - beta[rows, 0]))

    def _stepped(self, graphs: Graphs, s: ExplicitState, given: Given) -> ExplicitState:
        import casadi as ca

        first = int(self.tableau.adaptive)
        at = self._with_states(s, given)
        # rates of states that read reactions are those of the state, not of the stage before the projection
        rates = graphs.slopes(s.t, s.q, s.v, at)[0] if self.motion.sights else graphs.all_rates(s.t, s.q, s.v, at)
        known = [(rates, s.a, s.power)] if first else []
        step = Step(s.t, ca.vertcat(s.q, s.x) if self.motion.states else s.q, s.v, s.h, known)
        for i in range(first, self.tableau.stages):
            step.K.append(text.stage(graphs, self.tableau, step, i, given))
        new = text.result(graphs, self.tableau, step, given)
        return replace(s, q=new.q, v=new.v, x=s.x if new.x is None else new.x, a=step.K[-1][1])

    def _with_states(self, s: ExplicitState, given: Given) -> Given:
        """What is given, with the states in the places of parameters."""
        return given.with_states(s.x, self.motion.states)

    def _sampled(self, graphs: Graphs, s: ExplicitState, given: Given) -> ExplicitState:
        q, v, given = s.q, s.v, self._with_states(s, given)
        if graphs.projection is not None and self.motion.projects:
            for _ in range(SAMPLE_NEWTON_STEPS):
                c = graphs.projection.at(s.t, q, given.parameters)
                q, v = graphs.projection.moved(c, q, v, given.parameters)
        return replace(s, q=q, v=v)

    def _started(self, graphs: Graphs, s: ExplicitState, given: Given) -> ExplicitState:
        return replace(s, a=graphs.accelerations(s.t, s.q, s.v, self._with_states(s, given))[0])

    def _recorded_step(self, graphs: Graphs, s: ExplicitState, given: Given) -> Any:
        """A step that is accepted or retried, and noted if it is accepted."""
        import casadi as ca

        state, control, h, finish = self._controlled_step(graphs, s, given)
        last, ahead, count = (ca.SX.sym(name) for name in ("last", "ahead", "count"))
        flat = ca.SX.sym("X", BLOCK * self.row)
        X = ca.horzsplit(ca.reshape(flat, self.row, BLOCK))

        def recorded(step: Step) -> tuple[list[Any], Any]:
            after, busy = finish(step)
            accepted = after[self.names.index("steps")] - s.steps
            x = ca.vertcat(step.t, step.h, *(getattr(s, name) for name in self.moving))
            place = where(accepted > 0, count, -1.0)
            noted = [where(place == j, x, old) for j, old in enumerate(X)]
            seen = [last, ahead]
            correction = text.result(graphs, self.tableau, step, given).correction
            if correction is not None:
                near = ca.sqrt(ca.fmax(correction.independence, 0.0))
                least = ca.fmin(ahead, near - ca.fmax(last - near, 0.0))
                seen = [where(accepted > 0, near, last), where(accepted > 0, least, ahead)]
            return [*after, *seen, count + accepted, ca.vertcat(*noted)], busy

        return [*state, last, ahead, count, flat], control, h, recorded

    def _record_block(self) -> March:
        import casadi as ca

        _, _, _, data = self._symbols()
        w = [ca.SX.sym(port.name, *port.shape) for port in self._tangent_ports("w", self.moving)]
        sums = [ca.SX.sym("s", *y.shape) for y in data]
        done, count, flat = ca.SX.sym("done"), ca.SX.sym("count"), ca.SX.sym("X", BLOCK * self.row)
        left = count - 1 - done
        x, *later = ca.horzsplit(ca.reshape(flat, self.row, BLOCK))
        for j, other in enumerate(later, start=1):
            x = where(left == j, other, x)
        active = done < count
        sizes = [port.size for port in self._ports(*self.moving)]
        t, h, *rest = ca.vertsplit(x, [0, 1, *(2 + n for n in [0, *accumulate(sizes)])])
        of = self._pulled_graph("step", ("t", *self.moving, "h"), self.moving, self._stepped)
        seen = [where(active, y, 0.0) for y in w]
        _, *found = of.call([t, *rest, h, *seen, *data, *sums])
        bars, totals = found[: len(w)], found[len(w) + 1 :]
        after = [where(active, new, old) for new, old in zip(bars, w, strict=True)]
        outputs = [*after, *totals, done + active, done + 1 < count]
        step = ca.Function("pulled_block", [*w, *sums, done, count, flat, *data], outputs)
        return March(((step, 1),), len(w) + len(sums) + 1)

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
            dy = ca.vertsplit(ca.jtimes(ca.vertcat(*y), ca.vertcat(*x), ca.vertcat(*rates, *rest)), _places([*y]))
            found = [self._velocity(after.q, d, given) if key == "q" else d for key, d in zip(outputs, dy, strict=True)]
            sizes = [*x[: len(inputs)], *directions, *data, *rest]
            return ca.Function(f"pushed_{name}", sizes, [ca.densify(d) for d in found])

        return self._kernel(f"pushed_{name}", ports, self._tangent_ports("d", outputs), record)

    def _pulled(self, name: str, inputs: tuple[str, ...], outputs: tuple[str, ...], of: Map) -> Kernel:
        sums = tuple(replace(port, name=f"s{port.name}") for port in self._data_ports())
        ports = (*self._ports(*inputs), *self._tangent_ports("w", outputs), *self._data_ports(), *sums)
        record = lambda: self._pulled_graph(name, inputs, outputs, of)
        return self._kernel(f"pulled_{name}", ports, (*self._tangent_ports("w", inputs), *sums), record)

    def _pulled_graph(self, name: str, inputs: tuple[str, ...], outputs: tuple[str, ...], of: Map) -> Any:
        """CasADi function of the inputs, the weights of the outputs, data and sums: weights of the inputs, sums."""
        import casadi as ca

        graphs, s, given, data = self._symbols()
        after = of(graphs, s, given)
        x = [*(getattr(s, key) for key in inputs), *data]
        weights = [ca.SX.sym(port.name, *(port.shape or (1,))) for port in self._tangent_ports("w", outputs)]
        sums = [ca.SX.sym("s", *y.shape) for y in data]
        y = [getattr(after, key) for key in outputs]
        w = [
            _transposed(lambda d: self._velocity(after.q, d, given), self.model.nq, w) if key == "q" else w
            for key, w in zip(outputs, weights, strict=True)
        ]
        bars = ca.vertsplit(ca.jtimes(ca.vertcat(*y), ca.vertcat(*x), ca.vertcat(*w), True), _places(x))
        found = [
            _transposed(lambda d: graphs.rates(s.q, d, given), self.model.nv, bar) if key == "q" else bar
            for key, bar in zip(inputs, bars, strict=False)
        ]
        found += [total + bar for total, bar in zip(sums, bars[len(inputs) :], strict=True)]
        return ca.Function(
            f"pulled_{name}", [*x[: len(inputs)], *weights, *data, *sums], [ca.densify(bar) for bar in found]
        )

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


def _smallest(J: Matrix, b: Matrix) -> Matrix:
    """The smallest `x` with `J x = b`, for independent rows."""
    import casadi as ca

    return J.T @ ca.ldl_solve(b, *ca.ldl(mirrored(J @ J.T), True))


Map = Callable[[Graphs, ExplicitState, Given], ExplicitState]
Written = Callable[[Graphs, Inputs, Given], list[Matrix]]


def _transposed(linear: Callable[[Matrix], Matrix], columns: int, w: Matrix) -> Matrix:
    """`L^T w` of a linear map `L` with so many columns."""
    import casadi as ca

    d = ca.SX.sym("d", columns)
    return ca.jtimes(linear(d), d, w, True)


def _places(parts: list[Matrix]) -> list[int]:
    """Where each of some columns begins when they are stacked, and the end."""
    return [0, *accumulate(part.shape[0] for part in parts)]


_DERIVATIVES: Slot[tuple[str, str], StepDerivatives] = Slot("derivatives of explicit steps, by equations and tableau")


def step_derivatives(motion: ExplicitEquations, tableau: Tableau, events: tuple[Event, ...]) -> StepDerivatives:
    """The kernels for derivatives of an integrator's steps; kept with the model unless there are events."""
    model = motion.model.unbound  # parameters are an input of the kernels
    size = model.parameters.size if model.parameters else 0

    def make() -> StepDerivatives:
        return StepDerivatives(model, events, size, replace(motion, model=model), tableau)

    return make() if events else _DERIVATIVES.find(model, (motion.key, tableau.key), make)
