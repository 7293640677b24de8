"""The kernels of Moreau's midpoint rule, and its stepper.

A step is one graph where a single sweep solves the laws of its rows: rows that have nothing to do with one another, or
one contact. Otherwise it is in parts, with the iterations as a loop in the kernel.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from cardan.algebra.matrix import Matrix, where
from cardan.formulation.complementarity import ITERATIONS, NEWTON, second_forces, second_phase, without_gain
from cardan.integrate.explicit.step import Step
from cardan.integrate.explicit.stepper import ExplicitKernels
from cardan.integrate.moreau.step import TERMS, MoreauEquations, MoreauGraphs, Terms, shapes_of
from cardan.program.march import Each, March


@dataclass(frozen=True)
class MoreauKernels(ExplicitKernels):
    """The kernels of Moreau's rule for one model and its events; each is recorded when first used."""

    def _record(self, step_of: Any) -> March:
        """A march of steps; `step_of` says how a step begins and ends."""
        import casadi as ca

        graphs, s, given, data = self._symbols()
        assert isinstance(graphs, MoreauGraphs) and isinstance(self.motion, MoreauEquations)
        state, control, h, finish = step_of(graphs, s, given)
        terms, q_m = graphs.terms_at(s.t, s.q, s.v, s.a, h, given)
        m = terms.b.shape[0]

        def ended(h: Matrix, terms: Terms, q_m: Matrix, x: Matrix, left: Matrix) -> list[Any]:
            """The state after the step with forces x, and whether it goes on."""
            k = graphs.stage_of(s.v, h, terms, q_m, x, given)
            after, busy = finish(Step(s.t, s.q, s.v, h, [k]))
            controlled = step_of == self._controlled_step
            names = self.names if controlled else self.stepped
            after[names.index("a")] = where(h > 0, k[1], s.a)
            if controlled:
                after[names.index("e")] = ca.fmax(s.e, where(h > 0, left, 0.0))
            return [*after, busy]

        if m == 0 or (self._problem(terms).is_direct and not self.motion.restitutes):
            x = self._problem(terms).iteration(ca.SX(m, 1))[0] if m else ca.SX(0, 1)
            return March(((ca.Function("step", [*state, *control, *data], ended(h, terms, q_m, x, ca.SX(1, 1))), 1),),
                         len(state))  # fmt: skip
        return self._in_parts(graphs, state, [*control, *data], h, terms, q_m, ended)

    def _problem(self, terms: Terms) -> Any:
        return terms.bounds.problem(self.model, terms.W, terms.b, terms.active)

    def _in_parts(
        self, graphs: MoreauGraphs, state: list[Any], data: list[Any], h: Matrix, terms: Terms, q_m: Matrix, ended: Any
    ) -> March:
        """The march with a loop of iterations for each phase of an impact; what they share is scratch."""
        import casadi as ca

        shapes = shapes_of(self.model)
        own = Terms(*(ca.SX.sym(name, *shapes[name]) for name in TERMS))
        m = terms.b.shape[0]
        more = {"q_m": q_m.shape[0], "h": 1, "x": m, "y": m, "left": 1, "b2": m, "constant2": own.constant.shape[0]}
        extra = {name: ca.SX.sym(name, n) for name, n in more.items()}
        scratch = [*vars(own).values(), *extra.values()]
        inputs = [*state, *scratch, *data]
        places = {name: len(state) + k for k, name in enumerate((*TERMS, *more))}
        zeros = {name: ca.SX.zeros(n) for name, n in more.items()} | {"q_m": q_m, "h": h}
        first = [ca.densify(x) for x in (*vars(terms).values(), *(zeros[name] for name in more))]
        opening = ca.Function("begin", inputs, [*state, *first, 0])
        problem = self._problem(own)
        times = 1 if problem.is_direct else ITERATIONS
        parts: list[tuple[Any, int]] = [(opening, 1), (self._iterate(problem, own, extra, places, "x"), times)]
        x, left, rule = extra["x"], extra["left"], self.motion.rule  # type: ignore[attr-defined]
        if self.motion.restitutes:  # type: ignore[attr-defined]
            b2, again = second_phase(own.bounds, problem, rule, own.u, x)
            start = x if rule == NEWTON else 0 * x
            names = ("y", "b2", "constant2")
            written = [ca.densify(ca.SX(value)) for value in (start, b2, again.constant)]
            between = Each(ca.Function("between", scratch, written), tuple(places.values()),
                           tuple(places[name] for name in names))  # fmt: skip
            later = Terms(**{**vars(own), "b": extra["b2"], "constant": extra["constant2"]})
            parts += [((between,), 1), (self._iterate(self._problem(later), own, extra, places, "y"), times)]
            x = without_gain(problem, own.u, x, second_forces(own.bounds, rule, x, extra["y"]))
        relative = ca.sqrt(left / (problem.scale(x) + 1e-300))
        after = ended(extra["h"], own, extra["q_m"], x, relative)
        closing = ca.Function("finish", inputs, [*after[:-1], *scratch, after[-1]])
        return March((*parts, (closing, 1)), len(state), len(scratch))

    def _iterate(self, problem: Any, own: Terms, extra: dict[str, Any], places: dict[str, int], name: str) -> Any:
        """A piece that improves the forces `name` of a problem."""
        import casadi as ca

        x, left = problem.iteration(extra[name])
        reads = [n for n in places if n not in ("a0", "P", "Y", "q_m", "h")]
        symbols = {**vars(own), **extra}
        function = ca.Function("iterate", [symbols[n] for n in reads], [ca.densify(x), ca.densify(left)])
        return (Each(function, tuple(places[n] for n in reads), (places[name], places["left"])),)
