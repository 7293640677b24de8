"""A step of an explicit integrator for a large tree: loops over its links and over its coordinates.

The text is that of `explicit`, of one coordinate at a time: written out for all of them, a thousand links would take
minutes to compile.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import numpy as np

from cardan.algebra.matrix import Matrix, where
from cardan.integrate.events import Event, trace_events
from cardan.integrate.explicit import step as explicit
from cardan.integrate.explicit.motion import Graphs, Loads
from cardan.integrate.explicit.step import Control, Method, Result, State, Step
from cardan.program.march import BUSY, Each, March, Scheduled


@dataclass(frozen=True)
class Arguments:
    """Of a step: rows and columns of each by name, in order."""

    shapes: dict[str, tuple[int, int]]

    def number(self, name: str) -> int:
        """Its place in the order."""
        return BUSY if name == "busy" else list(self.shapes).index(name)

    def each(self, write: Callable[..., Sequence[Any]], reads: str, writes: str, count: int = 1) -> Each:
        """A piece that does with every row of the arguments it reads, named in a line, what `write` does with one."""
        import casadi as ca

        read, written = reads.split(), writes.split()
        symbols = [self._row(name, count) for name in read]
        graph = ca.Function("piece", symbols, [ca.SX(x) for x in write(*symbols)])
        return Each(graph, tuple(map(self.number, read)), tuple(map(self.number, written)), count)

    def _row(self, name: str, count: int) -> Any:
        import casadi as ca

        rows, columns = self.shapes[name]
        return ca.SX.sym(name, 1 if rows == count else rows, columns)


def roll(graphs: Graphs, method: Method, events: tuple[Event, ...], *, whole: bool) -> March:
    """A march of steps that are judged, or, if not `whole`, of one step that is taken as it is."""
    return _Roller(graphs, method, events, whole).march()


class _Roller:
    """One march under construction. `kq0`, `kq1`, ... and `kv0`, ... are the stages."""

    def __init__(self, graphs: Graphs, method: Method, events: tuple[Event, ...], whole: bool) -> None:
        self.graphs, self.method, self.events, self.whole = graphs, method, events, whole
        self.model = graphs.motion.model
        self.nq, self.nv = self.model.nq, self.model.nv
        q, v, g = (self.nq, 1), (self.nv, 1), (len(events), 1)
        state = {"t": (1, 1), "q": q, "v": v, "a": v}
        if whole:
            state |= {name: (1, 1) for name in ("h", "e", "steps", "outcome", "event")}
        state |= {"g": g} if events else {}
        scratch = {name: (1, 1) for name in ("length", "squares", "size", "keep")}
        scratch |= {"new_q": q, "new_v": v, "new_g": g}
        scratch |= {f"k{name}{i}": size for i in range(method.stages) for name, size in (("q", q), ("v", v))}
        data = {name: (1, 1) for name in (("end", "rtol", "atol", "longest") if whole else ("h",))}
        self.carried, self.scratch = len(state), len(scratch)
        self.arguments = Arguments({**state, **scratch, **data, "tau": v})
        self.each = self.arguments.each

    def march(self) -> March:
        """All its parts."""
        sizes = tuple(rows * columns for rows, columns in self.arguments.shapes.values())
        rates = self.each(lambda q, v: [self.graphs.rates(q, v, _NO_LOADS)], "q v", "kq0")
        pieces = [self._length(), *(self._stage(i, rates) for i in range(self.method.stages)), self._finish()]
        return March(((tuple(chain(*pieces)), 1),), self.carried, self.scratch, sizes)

    def _for_both(self, write: Callable[..., Sequence[Any]], reads: str, writes: str) -> list[Each]:
        """A piece for positions and one for velocities: `*` in the names stands for `q` and `v`."""
        return [
            self.each(write, reads.replace("*", name), writes.replace("*", name), count)
            for name, count in (("q", self.nq), ("v", self.nv))
        ]

    def _length(self) -> list[Each]:
        """The length of the step; sums begin at zero."""

        def choose(t: Matrix, h: Matrix, outcome: Matrix, end: Matrix, longest: Matrix) -> Sequence[Any]:
            s, control = _state(t=t, h=h, outcome=outcome), Control(end, 0, 0, longest)
            return explicit.length(self.method, s, control), 0, 0

        if self.whole:
            return [self.each(choose, "t h outcome end longest", "length squares size")]
        return [self.each(lambda h: [h], "h", "length")]

    def _stage(self, i: int, rates: Each) -> list[Any]:
        """`k_i`; the first, which may be known from the step before, is where the step starts."""
        number, method = self.arguments.number, self.method
        if i == 0:
            known = self.each(lambda a: [a], "a", "kv0", self.nv)
            return [rates, known if method.adaptive else self._accelerations("q", "v", "kv0")]

        def aim(length: Matrix, y: Matrix, *k: Matrix) -> Sequence[Any]:
            return [explicit.argument(method, _step(length, y, k), i)[1]]

        at = tuple(map(number, ("new_q", "new_v")))
        return [
            *self._for_both(aim, f"length * {_stages(i)}", "new_*"),
            replace(rates, reads=at, writes=(number(f"kq{i}"),)),
            self._accelerations("new_q", "new_v", f"kv{i}"),
        ]

    def _accelerations(self, q: str, v: str, a: str) -> Scheduled:
        number = self.arguments.number
        return Scheduled(self.graphs.loop, (number(q), number(v), number("tau")), (number(a),))

    def _finish(self) -> list[Any]:
        """The state after the step; of a whole one, if it is good."""
        method, each = self.method, self.each

        def move(length: Matrix, y: Matrix, *k: Matrix) -> Sequence[Any]:
            return [explicit.moved(_step(length, y, k), list(method.b))[0]]

        pieces = self._for_both(move, f"length * {_stages(method.stages)}", "new_*")
        if method is explicit.EULER:
            plus = each(lambda h, q, v: [self.graphs.plus(q, h * v, _NO_LOADS)], "length q new_v", "new_q")
            pieces = [pieces[1], plus]
        if self.model.quaternions:
            pieces.append(each(lambda q: [self.graphs.normalised(q)], "new_q", "new_q"))
        if self.events:
            trace = trace_events(self.model, self.events)
            pieces.append(each(lambda t, h, q, v: [trace(t + h, q, v)], "t length new_q new_v", "new_g"))
        return [*pieces, *(self._judged() if self.whole else self._taken())]

    def _judged(self) -> list[Each]:
        method = self.method
        names = ["t", "h", "e", "steps", "outcome", "event", *(["g"] if self.events else [])]

        def measure(*x: Matrix) -> Sequence[Any]:
            squares, size, length, y, new, rtol, atol, *k = x
            step = _step(length, y, k)
            more = explicit.measure(step, Result(new, _none(), *explicit.estimate(method, step)), rtol, atol)
            return squares + more[0], size + more[1]

        def judge(*x: Matrix) -> Sequence[Any]:
            length, squares, size, end, new_g, *rest = x
            control, s = Control(end, 0, 0, 0), _state(**dict(zip(names, rest, strict=True)))
            directions = np.array([event.direction for event in self.events])
            to = explicit.judge(method, s, control, length, squares, size, new_g, directions, self.nq + self.nv)
            return [
                *(getattr(to, name) for name in names),
                to.keep,
                explicit.is_going(_state(t=to.t, outcome=to.outcome), control),
            ]

        own = " ".join(names)
        pieces = [
            *self._for_both(measure, f"squares size length * new_* rtol atol {_stages(method.stages)}", "squares size"),
            self.each(judge, f"length squares size end new_g {own}", f"{own} keep busy"),
            *self._for_both(lambda keep, new, y: [where(keep, new, y)], "keep new_* *", "*"),
        ]
        if method.adaptive:
            pieces.append(
                self.each(lambda keep, k, a: [where(keep, k, a)], f"keep kv{method.stages - 1} a", "a", self.nv)
            )
        return pieces

    def _taken(self) -> list[Each]:
        pieces = [
            *self._for_both(lambda new: [new], "new_*", "*"),
            self.each(lambda t, length: (t + length, 0), "t length", "t busy"),
        ]
        if self.method.adaptive:
            pieces.append(self.each(lambda k: [k], f"kv{self.method.stages - 1}", "a", self.nv))
        return [*pieces, self.each(lambda g: [g], "new_g", "g")] if self.events else pieces


_NO_LOADS = Loads(None)  # a model that is looped over has no free parameters, and its loop reads the drives


def _none() -> Any:
    import casadi as ca

    return ca.SX(0, 1)


def _stages(count: int) -> str:
    """Names of the first stages."""
    return " ".join(f"k*{i}" for i in range(count))


def _step(length: Matrix, y: Matrix, k: Sequence[Matrix]) -> Step:
    """A step of one coordinate, as if a position."""
    return Step(0.0, y, _none(), length, [(kj, _none()) for kj in k])


def _state(**known: Matrix) -> State:
    """A state of which only some is known."""
    names = ("t", "q", "v", "a", "h", "e", "steps", "outcome", "event", "g")
    return State(**{name: known.get(name, _none()) for name in names})
