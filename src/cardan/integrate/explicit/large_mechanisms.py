"""A step of an explicit integrator for a large mechanism with loops, which is divided into pieces.

As for a large tree (`explicit.large_trees`), with schedules that loop over pieces and connections: accelerations, rates
and power of a stage; and the correction onto the constraints at the end of a step, and in careful steps of each stage.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cardan.algebra.matrix import Matrix, where
from cardan.integrate.events import Event
from cardan.integrate.explicit import step as text
from cardan.integrate.explicit.large_trees import LargeTreeStep, stages_of, state_of, step_of_one
from cardan.integrate.explicit.step import STAGE_NEWTON_STEPS, Graphs, StepControl, VelocityCorrection
from cardan.integrate.explicit.tableau import Tableau
from cardan.program.march import Each, March, Scheduled
from cardan.program.schedule import Schedule
from cardan.structure.large import LargeSchedules


def large_mechanism_march(graphs: Graphs, tableau: Tableau, events: tuple[Event, ...], *, controlled: bool) -> March:
    """A march of steps whose error is controlled or, if not `controlled`, of one step of given length."""
    return _LargeMechanismStep(graphs, tableau, events, controlled).march()


class _LargeMechanismStep(LargeTreeStep):
    """A march under construction. The power of stage i is `P0`, `P1`, ..., its time is `at`."""

    def __init__(self, graphs: Graphs, tableau: Tableau, events: tuple[Event, ...], controlled: bool) -> None:
        self.large: LargeSchedules = graphs.large
        self.projects = self.large.correction is not None
        self._nearer: Schedule | None = None
        super().__init__(graphs, tableau, events, controlled)

    def _state(self) -> dict[str, tuple[int, int]]:
        one, state = (1, 1), super()._state()
        found: dict[str, tuple[int, int]] = {}
        for name, shape in state.items():
            found[name] = shape
            if name == "work":
                found["power"] = one
            if name == "speed" and self.projects:
                found |= {"correction": one, "correction_time": one}
        return found

    def _scratch(self) -> dict[str, tuple[int, int]]:
        one, q, v = (1, 1), (self.nq, 1), (self.nv, 1)
        more = {"at": one, **{f"P{i}": one for i in range(self.tableau.stages)}}
        more |= {"off_q": q, "off_v": v, "eq": q, "ev": v, "left_q": q, "left_v": v}
        if self.projects:
            more |= {name: one for name in ("removed", "energy", "inertia", "independence", "small", "dependent")}
        return super()._scratch() | more

    def march(self) -> March:
        """All its parts."""
        sizes = tuple(rows * columns for rows, columns in self.arguments.shapes.values())
        pieces = [*self._length()]
        for i in range(self.tableau.stages):
            pieces += self._stage(i)
        return March((((*pieces, *self._finish()), 1),), self.carried, self.scratch, sizes)

    def _run(self, schedule: Schedule, reads: str, writes: str) -> Scheduled:
        """A schedule as a piece; time and free parameters are read where the model has them."""
        names = reads.split()
        names += ["at"] if self.model.depends_on_time else []
        names += ["p"] if self.model.parameters else []
        number = self.arguments.number
        return Scheduled(schedule, tuple(map(number, names)), tuple(map(number, writes.split())))

    def _at(self, share: float) -> Each:
        """The time of a stage."""
        return self.each(lambda t, length: [t + share * length], "t length", "at")

    def _near(self, q: str, v: str) -> list[Any]:
        """Onto the constraints, for careful steps."""
        if self.large.near is None or not self.graphs.motion.careful:
            return []
        if self._nearer is None:
            self._nearer = self.large.near()
        once = [
            self._run(self._nearer, f"{q} {v}", "off_q off_v"),
            self.each(lambda y: [y], "off_q", q, self.nq),
            self.each(lambda y: [y], "off_v", v, self.nv),
        ]
        return once * STAGE_NEWTON_STEPS

    def _by_joint(self, schedule: Schedule, reads: str, writes: str) -> Scheduled:
        number = self.arguments.number
        return Scheduled(schedule, tuple(map(number, reads.split())), tuple(map(number, writes.split())))

    def _stage(self, i: int, rates: Each | None = None) -> list[Any]:
        """`k_i`; the first is evaluated at the start of the step, or known from the step before."""
        tableau = self.tableau
        if i == 0:
            if not tableau.adaptive:
                start, near = self._for_both(lambda y: [y], "*", "new_*"), self._near("new_q", "new_v")
                motion = self._run(self.large.motion, "new_q new_v tau", "kv0 kq0 P0")
                return [*start, self._at(0.0), *near, motion]
            known = self.each(lambda a: [a], "a", "kv0", self.nv)
            power = self.each(lambda P: [P], "power", "P0")
            return [self._by_joint(self.large.rates, "q v", "kq0"), known, power]

        def aim(length: Matrix, y: Matrix, *k: Matrix) -> Sequence[Any]:
            return [text.stage_state(tableau, step_of_one(length, y, k), i)[1]]

        return [
            *self._for_both(aim, f"length * {stages_of(i)}", "new_*"),
            self._at(float(tableau.c[i])),
            *self._near("new_q", "new_v"),
            self._run(self.large.motion, "new_q new_v tau", f"kv{i} kq{i} P{i}"),
        ]

    def _advanced(self) -> list[Any]:
        """Position and velocity after the step, on the constraints, with the part of its error along them."""
        tableau = self.tableau

        def move(length: Matrix, y: Matrix, *k: Matrix) -> Sequence[Any]:
            return [text.moved(step_of_one(length, y, k), list(tableau.b))[0]]

        pieces: list[Any] = self._for_both(move, f"length * {stages_of(tableau.stages)}", "new_*")
        turned = self.each(lambda h, v: [h * v], "length new_v", "off_v", self.nv)
        if tableau.semi_implicit:
            pieces = [pieces[1], turned, self._by_joint(self.large.plus, "q off_v", "new_q")]
        if self.large.correction is None:
            if self.model.quaternions:
                still = self.each(lambda v: [0 * v], "new_v", "off_v", self.nv)
                pieces += [still, self._by_joint(self.large.plus, "new_q off_v", "off_q")]
                pieces.append(self.each(lambda y: [y], "off_q", "new_q", self.nq))
            return pieces
        pieces += [self._at(1.0), *(self._errors() if tableau.adaptive else [])]
        errors = "eq ev" if tableau.adaptive else ""
        left = "left_q left_v" if tableau.adaptive else ""
        time = ["at"] if self.model.depends_on_time else []
        free = ["p"] if self.model.parameters else []
        reads = " ".join(["new_q new_v", *time, errors, *free])
        writes = f"off_q off_v {left} removed energy inertia independence"
        pieces.append(self._by_joint(self.large.correction(tableau.adaptive), reads, writes))
        pieces += self._for_both(lambda y: [y], "off_*", "new_*")
        if tableau.adaptive:
            pieces += self._for_both(lambda y: [y], "left_*", "e*")
        return [*pieces, *self._near("new_q", "new_v")]

    def _accepted_or_not(self) -> list[Each]:
        tableau, careful = self.tableau, self.graphs.motion.careful
        names = ["t", "h", "e", "steps", "outcome", "event", *(["g"] if self.events else [])]

        def measure(*x: Matrix) -> Sequence[Any]:
            squares, size, y, new, error, rtol, atol = x
            new_state = text.StepResult(new, _none(), error, _none())
            more = text.measure(step_of_one(y, y, []), new_state, rtol, atol)
            return squares + more[0], size + more[1]

        def judge(*x: Matrix) -> Sequence[Any]:
            removed, energy, inertia, independence, rtol, atol = x
            c = VelocityCorrection(removed, _none(), independence / self.large.usual)
            return c.judged_by(energy, inertia, StepControl(0, rtol, atol, 0), tableau.adaptive, careful)

        def decide(*x: Matrix) -> Sequence[Any]:
            length, squares, size, new_g, *rest = x
            judged = (rest.pop(0), rest.pop(0)) if self.projects else None
            control, s = self._control(*rest[len(names) :]), state_of(**dict(zip(names, rest, strict=False)))
            directions = np.array([event.direction for event in self.events])
            accept, to = text.decide(
                tableau, s, control, length, squares, size, new_g, directions, self.nq + self.nv, judged, careful
            )
            return [*(getattr(to, name) for name in names), accept, text.is_running(to, control)]

        def account(*x: Matrix) -> Sequence[Any]:
            import casadi as ca

            accept, W, length, new_speed, speed, *P = x
            return where(accept, W + length * self._mean_power(P), W), where(accept, ca.fmax(new_speed, speed), speed)

        own, limits = " ".join(names), " ".join(["end max_step", *self.pause])
        powers = " ".join(f"P{i}" for i in range(tableau.stages))
        judged = "small dependent" if self.projects else ""
        pieces = [] if self.projects and tableau.adaptive else self._errors()
        pieces += [
            self.each(measure, "squares size q new_q eq rtol atol", "squares size", self.nq),
            self.each(measure, "squares size v new_v ev rtol atol", "squares size", self.nv),
            self.each(lambda speed, v: [speed + v**2], "new_speed new_v", "new_speed", self.nv),
        ]
        if self.projects:
            pieces.append(self.each(judge, "removed energy inertia independence rtol atol", "small dependent"))
        pieces += [
            self.each(decide, f"length squares size new_g {judged} {own} {limits}", f"{own} accept busy"),
            self.each(account, f"accept work length new_speed speed {powers}", "work speed"),
        ]
        if self.projects:
            pieces.append(
                self.each(_largest, "accept removed correction t correction_time", "correction correction_time")
            )
        pieces += self._for_both(lambda accept, new, y: [where(accept, new, y)], "accept new_* *", "*")
        if tableau.adaptive:
            last = tableau.stages - 1
            pieces.append(self.each(lambda accept, k, a: [where(accept, k, a)], f"accept kv{last} a", "a", self.nv))
            pieces.append(self.each(lambda accept, P, old: [where(accept, P, old)], f"accept P{last} power", "power"))
        return pieces

    def _mean_power(self, P: Sequence[Matrix]) -> Matrix:
        return sum((float(b) * power for b, power in zip(self.tableau.b, P, strict=True)), 0 * P[0])

    def _errors(self) -> list[Each]:
        """The estimated error of the step, zero if the method has no estimate."""

        def error(length: Matrix, y: Matrix, *k: Matrix) -> Sequence[Any]:
            return [text.estimate(self.tableau, step_of_one(length, y, k))[0]]

        return self._for_both(error, f"length * {stages_of(self.tableau.stages)}", "e*")

    def _always_accepted(self) -> list[Each]:
        powers = " ".join(f"P{i}" for i in range(self.tableau.stages))
        pieces = [
            *self._for_both(lambda new: [new], "new_*", "*"),
            self.each(lambda t, length: (t + length, 0), "t length", "t busy"),
            self.each(lambda W, h, *P: [W + h * self._mean_power(P)], f"work length {powers}", "work"),
        ]
        if self.tableau.adaptive:
            last = self.tableau.stages - 1
            pieces.append(self.each(lambda k: [k], f"kv{last}", "a", self.nv))
            pieces.append(self.each(lambda P: [P], f"P{last}", "power"))
        return [*pieces, self.each(lambda g: [g], "new_g", "g")] if self.events else pieces


def _largest(accept: Matrix, removed: Matrix, most: Matrix, t: Matrix, at: Matrix) -> Sequence[Any]:
    """The largest correction so far, as kinetic energy, and its time."""
    import casadi as ca

    larger = ca.logic_and(accept, removed / 2 > most)
    return where(larger, removed / 2, most), where(larger, t, at)


def _none() -> Any:
    import casadi as ca

    return ca.SX(0, 1)
