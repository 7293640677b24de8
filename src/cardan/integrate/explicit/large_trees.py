"""A step of an explicit integrator for a large tree: loops over its links and over its coordinates.

The text is that of `explicit.step`, for one coordinate at a time: unrolled over all coordinates, a thousand links would
take minutes to compile.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import numpy as np

from cardan.algebra.matrix import Matrix, where
from cardan.integrate.events import Event, trace_events
from cardan.integrate.explicit import step as text
from cardan.integrate.explicit.step import CONTROL, STATE, ExplicitState, Graphs, Step, StepControl, StepResult
from cardan.integrate.explicit.tableau import Tableau
from cardan.integrate.kernel import Given
from cardan.program.march import BUSY, Each, March, Scheduled


@dataclass(frozen=True)
class StepArguments:
    """The arguments of a step by name, in order: rows and columns of each."""

    shapes: dict[str, tuple[int, int]]

    def number(self, name: str) -> int:
        """Index of an argument."""
        return BUSY if name == "busy" else list(self.shapes).index(name)

    def each(self, write: Callable[..., Sequence[Any]], reads: str, writes: str, count: int = 1) -> Each:
        """A piece that applies `write` to every row of the arguments it reads; their names are separated by spaces."""
        import casadi as ca

        read, written = reads.split(), writes.split()
        symbols = [self._row(name, count) for name in read]
        graph = ca.Function("piece", symbols, [ca.SX(x) for x in write(*symbols)])
        return Each(graph, tuple(map(self.number, read)), tuple(map(self.number, written)), count)

    def _row(self, name: str, count: int) -> Any:
        import casadi as ca

        rows, columns = self.shapes[name]
        return ca.SX.sym(name, 1 if rows == count else rows, columns)


def large_tree_march(graphs: Graphs, tableau: Tableau, events: tuple[Event, ...], *, controlled: bool) -> March:
    """A march of steps whose error is controlled or, if not `controlled`, of one step of given length."""
    return LargeTreeStep(graphs, tableau, events, controlled).march()


class LargeTreeStep:
    """A march under construction. `kq0`, `kq1`, ... and `kv0`, ... are the stages."""

    def __init__(self, graphs: Graphs, tableau: Tableau, events: tuple[Event, ...], controlled: bool) -> None:
        self.graphs, self.tableau, self.events, self.controlled = graphs, tableau, events, controlled
        self.model = graphs.motion.model
        self.nq, self.nv = self.model.nq, self.model.nv
        self.pause = ["pause"] if tableau.adaptive else []
        data = {name: (1, 1) for name in ((*CONTROL, *self.pause) if controlled else ("h",))}
        data["tau"] = (self.nv, 1)
        if self.model.parameters:
            data["p"] = (self.model.parameters.size, 1)
        state, scratch = self._state(), self._scratch()
        self.carried, self.scratch = len(state), len(scratch)
        self.arguments = StepArguments({**state, **scratch, **data})
        self.each = self.arguments.each

    def _state(self) -> dict[str, tuple[int, int]]:
        """What is carried from step to step: rows and columns of each."""
        one, v = (1, 1), (self.nv, 1)
        state = {"t": one, "q": (self.nq, 1), "v": v, "a": v}
        if self.controlled:
            state |= {name: one for name in ("h", "e", "steps", "outcome", "event")}
        state["work"] = one
        state |= {"speed": one} if self.controlled else {}
        return state | ({"g": (len(self.events), 1)} if self.events else {})

    def _scratch(self) -> dict[str, tuple[int, int]]:
        """What lasts for one step."""
        one, q, v = (1, 1), (self.nq, 1), (self.nv, 1)
        scratch = {name: one for name in ("length", "squares", "size", "accept", "mean_power", "new_speed")}
        scratch |= {"new_q": q, "new_v": v, "new_g": (len(self.events), 1)}
        return scratch | {
            f"k{name}{i}": size for i in range(self.tableau.stages) for name, size in (("q", q), ("v", v))
        }

    def march(self) -> March:
        """All its parts."""
        sizes = tuple(rows * columns for rows, columns in self.arguments.shapes.values())
        rates = self.each(lambda q, v: [self.graphs.rates(q, v, _NOTHING)], "q v", "kq0")
        pieces = [self._length(), *(self._stage(i, rates) for i in range(self.tableau.stages)), self._finish()]
        return March(((tuple(chain(*pieces)), 1),), self.carried, self.scratch, sizes)

    def _for_both(self, write: Callable[..., Sequence[Any]], reads: str, writes: str) -> list[Each]:
        """A piece for positions and one for velocities: `*` in the names stands for `q` and `v`."""
        return [
            self.each(write, reads.replace("*", name), writes.replace("*", name), count)
            for name, count in (("q", self.nq), ("v", self.nv))
        ]

    def _length(self) -> list[Each]:
        """The length of the step; the sums are set to zero."""

        def choose(t: Matrix, h: Matrix, outcome: Matrix, *control: Matrix) -> Sequence[Any]:
            return text.step_length(state_of(t=t, h=h, outcome=outcome), self._control(*control)), 0, 0, 0, 0

        if self.controlled:
            reads = " ".join(["t h outcome end max_step", *self.pause])
            return [self.each(choose, reads, "length squares size mean_power new_speed")]
        return [self.each(lambda h: [h, 0], "h", "length mean_power")]

    def _control(self, end: Matrix, max_step: Matrix, pause: Matrix | None = None) -> StepControl:
        return StepControl(end, 0, 0, max_step, pause=pause)

    def _stage(self, i: int, rates: Each) -> list[Any]:
        """`k_i`; the first is evaluated at the start of the step, or known from the step before."""
        number, tableau = self.arguments.number, self.tableau
        if i == 0:
            known = self.each(lambda a: [a], "a", "kv0", self.nv)
            return [rates, known if tableau.adaptive else self._accelerations("q", "v", "kv0")]

        def aim(length: Matrix, y: Matrix, *k: Matrix) -> Sequence[Any]:
            return [text.stage_state(tableau, step_of_one(length, y, k), i)[1]]

        at = tuple(map(number, ("new_q", "new_v")))
        return [
            *self._for_both(aim, f"length * {stages_of(i)}", "new_*"),
            replace(rates, reads=at, writes=(number(f"kq{i}"),)),
            self._accelerations("new_q", "new_v", f"kv{i}"),
        ]

    def _mean(self, length: Matrix, v: Matrix, k: Sequence[Matrix]) -> Matrix:
        """The mean velocity `sum_i b_i v_i` of the stages, which gives the work of constant drives."""
        return text.moved(step_of_one(length, v, k), list(self.tableau.b @ self.tableau.A))[0]

    def _accelerations(self, q: str, v: str, a: str) -> Scheduled:
        number = self.arguments.number
        return Scheduled(self.graphs.loop, (number(q), number(v), number("tau")), (number(a),))

    def _advanced(self) -> list[Any]:
        """Position and velocity after the step."""
        tableau, each = self.tableau, self.each

        def move(length: Matrix, y: Matrix, *k: Matrix) -> Sequence[Any]:
            return [text.moved(step_of_one(length, y, k), list(tableau.b))[0]]

        pieces = self._for_both(move, f"length * {stages_of(tableau.stages)}", "new_*")
        if tableau.semi_implicit:
            plus = each(lambda h, q, v: [self.graphs.plus(q, h * v, _NOTHING)], "length q new_v", "new_q")
            pieces = [pieces[1], plus]
        if self.model.quaternions:
            pieces.append(each(lambda q: [self.graphs.normalised(q)], "new_q", "new_q"))
        return pieces

    def _finish(self) -> list[Any]:
        """The state after the step."""
        pieces = self._advanced()
        if self.events:
            trace = trace_events(self.model, self.events)
            free = " p" if self.model.parameters else ""
            pieces.append(
                self.each(lambda t, h, q, v, *p: [trace(t + h, q, v, *p)], f"t length new_q new_v tau{free}", "new_g")
            )
        return [*pieces, *(self._accepted_or_not() if self.controlled else self._always_accepted())]

    def _accepted_or_not(self) -> list[Each]:
        import casadi as ca

        tableau = self.tableau
        names = ["t", "h", "e", "steps", "outcome", "event", *(["g"] if self.events else [])]

        def measure(*x: Matrix) -> Sequence[Any]:
            squares, size, length, y, new, rtol, atol, *k = x
            step = step_of_one(length, y, k)
            more = text.measure(step, StepResult(new, _none(), *text.estimate(tableau, step)), rtol, atol)
            return squares + more[0], size + more[1]

        def measure_and_power(speed: Matrix, total: Matrix, tau: Matrix, *x: Matrix) -> Sequence[Any]:
            return *measure(*x), total + tau * self._mean(x[2], x[3], x[7:]), speed + x[4] ** 2

        def decide(*x: Matrix) -> Sequence[Any]:
            length, squares, size, new_g, *rest = x
            control, s = self._control(*rest[len(names) :]), state_of(**dict(zip(names, rest, strict=False)))
            directions = np.array([event.direction for event in self.events])
            accept, to = text.decide(tableau, s, control, length, squares, size, new_g, directions, self.nq + self.nv)
            return [*(getattr(to, name) for name in names), accept, text.is_running(to, control)]

        def account(*x: Matrix) -> Sequence[Any]:
            accept, W, length, power, new_speed, speed = x
            return where(accept, W + length * power, W), where(accept, ca.fmax(new_speed, speed), speed)

        measured = f"squares size length * new_* rtol atol {stages_of(tableau.stages)}"
        own, limits = " ".join(names), " ".join(["end max_step", *self.pause])
        pieces = [
            self.each(measure, measured.replace("*", "q"), "squares size", self.nq),
            self.each(
                measure_and_power,
                f"new_speed mean_power tau {measured.replace('*', 'v')}",
                "squares size mean_power new_speed",
                self.nv,
            ),
            self.each(decide, f"length squares size new_g {own} {limits}", f"{own} accept busy"),
            self.each(account, "accept work length mean_power new_speed speed", "work speed"),
            *self._for_both(lambda accept, new, y: [where(accept, new, y)], "accept new_* *", "*"),
        ]
        if tableau.adaptive:
            pieces.append(
                self.each(lambda accept, k, a: [where(accept, k, a)], f"accept kv{tableau.stages - 1} a", "a", self.nv)
            )
        return pieces

    def _always_accepted(self) -> list[Each]:
        pieces = [
            self.each(
                lambda total, tau, length, v, *k: [total + tau * self._mean(length, v, k)],
                f"mean_power tau length v {stages_of(self.tableau.stages).replace('*', 'v')}",
                "mean_power",
                self.nv,
            ),
            *self._for_both(lambda new: [new], "new_*", "*"),
            self.each(lambda t, length: (t + length, 0), "t length", "t busy"),
            self.each(lambda W, h, P: [W + h * P], "work length mean_power", "work"),
        ]
        if self.tableau.adaptive:
            pieces.append(self.each(lambda k: [k], f"kv{self.tableau.stages - 1}", "a", self.nv))
        return [*pieces, self.each(lambda g: [g], "new_g", "g")] if self.events else pieces


_NOTHING = Given(None)  # a large tree has no free parameters here, and the drives are read by the loop over its links


def _none() -> Any:
    import casadi as ca

    return ca.SX(0, 1)


def stages_of(count: int) -> str:
    """Names of the first stages."""
    return " ".join(f"k*{i}" for i in range(count))


def step_of_one(length: Matrix, y: Matrix, k: Sequence[Matrix]) -> Step:
    """A step of one coordinate, in the place of a position."""
    return Step(0.0, y, _none(), length, [(kj, _none(), _none()) for kj in k])


def state_of(**known: Matrix) -> ExplicitState:
    """A state of which only some parts are used."""
    return ExplicitState(**{name: known.get(name, _none()) for name in STATE})
