"""A recursion over a large model as a schedule: which recorded step is called for which node, and in what order.

One array holds the state of all nodes, the ground's first. A round calls a step for every link or body, with offsets
into the constants, the inputs, the state and the outputs. The steps come from `tracing`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cardan.algebra.spatial import first_moment
from cardan.formulation.recursion import (
    BODY_INPUTS,
    JOINT_INPUTS,
    Climb,
    Output,
    Recursion,
    Sweep,
    armatures,
    ground_value,
)
from cardan.formulation.tracing import LinkClass, Tracer, shared_places
from cardan.model.model import Model
from cardan.model.tree import GROUND, regrouped_inertias
from cardan.program.schedule import ClimbRound, Round, Schedule

if TYPE_CHECKING:
    import casadi

# Beyond this many classes each joint kind is one class: its zeros and ones are read from arrays like other numbers.
MANY_CLASSES = 12


def record_schedule(recursion: Recursion, model: Model) -> Schedule:
    """Record a recursion for looping over a model's links and bodies."""
    return _Recorder(recursion, model).schedule()


class _Recorder:
    """Classes, memory layout, and the rounds of one recursion on one model."""

    def __init__(self, recursion: Recursion, model: Model) -> None:
        self.recursion, self.model, self.tree = recursion, model, model.tree
        self.shared = shared_places(recursion)
        self.shared_size = max((at.stop for at in self.shared.values()), default=0)
        self.link_constants = _link_constants(recursion, model)
        self.class_of, classes = _classes(model, self.link_constants)
        bodies = LinkClass(None, (np.nan,) * 12)
        final = self._final_after(Tracer(recursion, classes[0]), Tracer(recursion, bodies))
        self.tracers = [Tracer(recursion, cls, final) for cls in classes]
        self.body_tracer = Tracer(recursion, bodies, final)

    def _final_after(self, link: Tracer, body: Tracer) -> list[frozenset[str]]:
        """For each pass the shared attributes that no later pass sets."""
        sets: list[set[str]] = []
        for k, item in enumerate(self.recursion.passes):
            if isinstance(item, Sweep):
                taken = (body if item.order.startswith("bodies") else link).step(k, item.step)
                sets.append(set(taken.own) | set(taken.carrier))
            else:
                sets.append(set())
        return [frozenset(self.shared) - set().union(*sets[k + 1 :]) for k in range(len(sets))]

    def schedule(self) -> Schedule:
        """Trace all passes, lay out the memory, make the rounds."""
        taken = []
        for k, item in enumerate(self.recursion.passes):
            group = self.tracers if isinstance(item, Sweep) else []
            if isinstance(item, Sweep) and item.order.startswith("bodies"):
                group = [self.body_tracer]
            taken.append([tracer.step(k, item.step) for tracer in group] if isinstance(item, Sweep) else [])
        sizes = [self.tracers[k].state for k in self.class_of]
        ends = self.shared_size + np.cumsum([0, *sizes])
        self.state_of = ends[:-1]  # by link; the ground is at 0
        self.body_state = int(ends[-1])  # all bodies use the same place in turn: they leave nothing for a later pass
        rounds: list[Round | ClimbRound] = []
        for k, item in enumerate(self.recursion.passes):
            if isinstance(item, Climb):
                rounds.append(self._climb(item))
                continue
            of_bodies = item.order.startswith("bodies")
            levels = ("body",) if of_bodies else ("joint", "link")
            outputs = [o for o in self.recursion.outputs if o.of in levels and self._set_last(o, taken) == k]
            group = [self.body_tracer] if of_bodies else self.tracers
            calls = [
                tracer.call(result, [_c_order(result.own[o.attribute]) for o in outputs])
                for tracer, result in zip(group, taken[k], strict=True)
            ]
            rounds.append(self._round(item, calls, outputs))
        rounds += self._totals()
        constants = np.concatenate([self.link_constants.ravel(), self._body_constants().ravel()])
        return Schedule(
            tuple(rounds), constants, self.body_state + self.body_tracer.state, self._initial()
        ).with_literals()

    def _set_last(self, output: Output, taken: list[list[Any]]) -> int:
        """The pass after which an attribute is final."""
        return max(k for k, group in enumerate(taken) if any(output.attribute in t.own for t in group))

    def _round(self, sweep: Sweep, calls: list[casadi.Function], outputs: list[Output]) -> Round:
        of_bodies = sweep.order.startswith("bodies")
        rows = [self._body_row(b, outputs) for b in range(self.model.nb)] if of_bodies else [
            self._link_row(i, outputs) for i in range(len(self.tree.links))
        ]  # fmt: skip
        table = np.array(rows[::-1] if sweep.order.endswith("up") else rows, dtype=np.int64)
        names = [name for name in (BODY_INPUTS if of_bodies else JOINT_INPUTS) if name in self.recursion.inputs]
        inputs = tuple(self.recursion.inputs.index(name) for name in names)
        return Round(tuple(calls), inputs, tuple(self.recursion.outputs.index(o) for o in outputs), table)

    def _link_row(self, i: int, outputs: list[Output]) -> list[int]:
        link = self.tree.links[i]
        at = [link.q.start if name == "q" else link.v.start for name in JOINT_INPUTS if name in self.recursion.inputs]
        out = [(link.v.start if o.of == "joint" else i) * int(np.prod(o.shape)) for o in outputs]
        return [
            self.class_of[i],
            i * self.link_constants.shape[1],
            *at,
            int(self.state_of[i]),
            self._carrier(link.parent),
            *out,
        ]

    def _body_row(self, b: int, outputs: list[Output]) -> list[int]:
        at = [6 * b for name in BODY_INPUTS if name in self.recursion.inputs]
        out = [b * int(np.prod(o.shape)) for o in outputs]
        first = self.link_constants.size
        return [0, first + 12 * b, *at, self.body_state, self._carrier(self.tree.body_link[b]), *out]

    def _carrier(self, link: int) -> int:
        return 0 if link == GROUND else int(self.state_of[link])

    def _climb(self, climb: Climb) -> ClimbRound:
        import casadi as ca

        start, carry, give = [], [], []
        width = 0
        for tracer in self.tracers:
            message = climb.start(tracer.node())
            parts = [part.shape[0] for part in message]
            width = sum(parts)
            # all parts of one column side by side, column after column
            start.append(ca.Function("start", tracer.ports(), [ca.densify(ca.vec(ca.vertcat(*message)))]))
            column = ca.SX.sym("column", width)
            pieces = tuple(ca.vertsplit(column, list(np.cumsum([0, *parts]))))
            ports = [*tracer.ports(), column]
            carry.append(ca.Function("carry", ports, [ca.densify(ca.vertcat(*climb.carry(tracer.node(), pieces)))]))
            give.append(ca.Function("give", ports, [*map(ca.densify, climb.give(tracer.node(), pieces))]))
        names = [name for name in JOINT_INPUTS if name in self.recursion.inputs]
        rows = [
            [*self._link_row(i, [])[:-1], link.parent, link.v.start, link.kind.nv]
            for i, link in enumerate(self.tree.links)
        ]
        attributes = [o.attribute for o in self.recursion.outputs]
        numbers = tuple(attributes.index(attribute) for attribute in climb.attributes)
        inputs = tuple(self.recursion.inputs.index(name) for name in names)
        table = np.array(rows, dtype=np.int64)
        return ClimbRound(tuple(start), tuple(carry), tuple(give), inputs, table, width, numbers, self.tree.nv)

    def _totals(self) -> list[Round]:
        """A round that writes the sums on the ground to the outputs."""
        import casadi as ca

        outputs = [o for o in self.recursion.outputs if o.of == "total"]
        if not outputs:
            return []
        ground = self.body_tracer
        values = [_c_order(ca.densify(ground.carrier(o.attribute))) for o in outputs]
        empty = [ca.SX(ground.state, 1), ca.SX(self.shared_size, 1)]
        call = ca.Function("totals", ground.ports(), [*empty, *values])
        names = [name for name in BODY_INPUTS if name in self.recursion.inputs]
        row = [0, 0, *[0] * len(names), 0, 0, *[0] * len(outputs)]
        inputs = tuple(self.recursion.inputs.index(name) for name in names)
        numbers = tuple(self.recursion.outputs.index(o) for o in outputs)
        return [Round((call,), inputs, numbers, np.array([row], dtype=np.int64))]

    def _initial(self) -> tuple[tuple[int, float], ...]:
        """The ground's state, and zeros where sums start."""
        ground = np.zeros(self.shared_size)
        for name, value in self.recursion.ground.items():
            ground[self.shared[name]] = ground_value(value, self.model).T.ravel()
        start = list(enumerate(ground.tolist()))
        for at in self.state_of:
            for name in self.recursion.accumulate:
                start += [(int(at) + k, 0.0) for k in range(self.shared[name].start, self.shared[name].stop)]
        return tuple(start)

    def _body_constants(self) -> np.ndarray:
        if not self.recursion.has_bodies:
            return np.zeros((0, 12))
        return np.array([[*pose.rotation.T.ravel(), *pose.position] for pose in self.tree.body_pose])


def _c_order(value: Any) -> Any:
    """A matrix as a column of its entries, row after row."""
    import casadi as ca

    return ca.densify(ca.vec(value.T))


def _link_constants(recursion: Recursion, model: Model) -> np.ndarray:
    """A row for each link: E (9), r (3), m, m c (3), Jxx, Jyy, Jzz, Jxy, Jxz, Jyz about the origin; armature (6)."""
    tree = model.tree
    inertias = regrouped_inertias(tree) if recursion.regrouped else [link.I for link in tree.links]
    rows = []
    for link, I, A in zip(tree.links, inertias, armatures(tree), strict=True):
        J = [I[0, 0], I[1, 1], I[2, 2], I[0, 1], I[0, 2], I[1, 2]]
        rows.append([*link.E.ravel(), *link.r, I[3, 3], *first_moment(I), *J, *(() if A is None else A)])
    return np.array(rows) + 0.0


def _classes(model: Model, constants: np.ndarray) -> tuple[list[int], list[LinkClass]]:
    """Sort links into classes by joint kind and by which constants are 0, 1 or -1."""
    simple = np.where(np.isin(constants, (0.0, 1.0, -1.0)), constants, np.nan)
    for patterns in (simple, np.full_like(simple, np.nan)):
        found: dict[tuple[Any, ...], int] = {}
        classes: list[LinkClass] = []
        class_of = []
        for link, pattern in zip(model.tree.links, patterns, strict=True):
            key = (link.kind.identity, pattern.tobytes())
            if key not in found:
                found[key] = len(classes)
                classes.append(LinkClass(link.kind, tuple(pattern.tolist())))
            class_of.append(found[key])
        if len(classes) <= MANY_CLASSES:
            break
    return class_of, classes
