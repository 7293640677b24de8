"""Events: a user's expression whose zero crossing stops a run or is recorded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from cardan.algebra.matrix import Matrix, Scalar, constant, is_symbol
from cardan.algebra.rotation import cross
from cardan.errors import CardanError, InputError
from cardan.formulation.loops import MOTION
from cardan.formulation.recursion import run
from cardan.model.elements import read_name
from cardan.model.force import plain_symbols
from cardan.model.model import Model
from cardan.model.tree import GROUND
from cardan.model.values import one
from cardan.structure.kernels import symbolic

ACTIONS = ("stop", "record")


@dataclass(frozen=True)
class Event:
    """Something that happens when an expression passes through zero.

    Args:
        name: how the run calls it.
        when: function of a `Moment` (symbols) that returns a scalar; the event is its zero crossing.
        action: "stop" the run there, or only "record" it.
        direction: 1 for upward crossings only, -1 for downward ones, 0 for both.

    """

    name: str
    when: Callable[[Moment], Any]
    action: str = "stop"
    direction: int = 0

    def __post_init__(self) -> None:
        read_name("event", self.name)
        if self.action not in ACTIONS:
            raise InputError(f"event {self.name!r}: action must be 'stop' or 'record', got {self.action!r}")
        if self.direction not in (-1, 0, 1):
            raise InputError(f"event {self.name!r}: direction must be -1, 0 or 1, got {self.direction!r}")
        if not callable(self.when):
            raise InputError(
                f"event {self.name!r}: `when` must be a function of a moment, e.g. lambda s: s.q[0]; got {self.when!r}"
            )


@dataclass(frozen=True)
class Moment:
    """A state of the mechanism as symbols, for an event's expression: time s, coordinates rad and m, rates per s."""

    model: Model
    t: Scalar
    q: Matrix
    v: Matrix

    def coordinate(self, joint: str) -> Matrix:
        """Coordinates of a tree joint."""
        return self.q[self.model.q_slice(joint)]

    def rate(self, joint: str) -> Matrix:
        """Rates of a tree joint."""
        return self.v[self.model.v_slice(joint)]

    def position(self, body: str, point: Sequence[float] = (0.0, 0.0, 0.0)) -> Matrix:
        """Position (3,) of a point of a body or frame, in ground components, m."""
        link, pose = self.model.placement(body)
        at = constant(pose.position + pose.rotation @ one("position", "point", point, 3))
        node = self._node(link)
        return at if node is None else node.r0 + node.R @ at

    def velocity(self, body: str, point: Sequence[float] = (0.0, 0.0, 0.0)) -> Matrix:
        """Velocity (3,) of a point of a body or frame, in ground components, m/s."""
        link, pose = self.model.placement(body)
        at = constant(pose.position + pose.rotation @ one("velocity", "point", point, 3))
        node = self._node(link)
        if node is None:
            return at * 0
        return node.R @ (node.v[3:] + cross(node.v[:3], at))

    def _node(self, link: int) -> Any:
        if link == GROUND:
            return None
        return run(MOTION, self.model, {"q": self.q, "v": self.v}).links[link]


def trace_events(model: Model, events: Sequence[Event]) -> Any:
    """CasADi function `(t, q, v, p) -> g` (ne,) of all events; refuse an expression that is not a scalar of the state.

    `p` are the model's free parameters; without any it is not there.
    """
    import casadi as ca

    names = [event.name for event in events]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(f"event {twice!r} is given twice; give each its own name")
    t, q, v = ca.SX.sym("t"), ca.SX.sym("q", model.nq), ca.SX.sym("v", model.nv)
    written, p = symbolic(model)
    moment = Moment(written, t, q, v)
    values = []
    for event in events:
        try:
            with plain_symbols():
                value = event.when(moment)
        except CardanError as error:
            raise InputError(f"event {event.name!r}: {error}") from None
        except Exception as error:
            raise InputError(
                f"event {event.name!r}: its expression failed on symbols: {type(error).__name__}: {error}; use "
                "arithmetic and casadi functions (casadi.sin, casadi.fmin, ...) of the moment's t, q, v"
            ) from None
        if not is_symbol(value) or value.shape != (1, 1):
            what = f"shape {value.shape}" if is_symbol(value) else repr(value)
            raise InputError(f"event {event.name!r}: its expression must be a scalar of the moment, got {what}")
        _require_crossing(event, value)
        values.append(value)
    g = ca.vertcat(*values) if values else ca.SX(0, 1)
    known = ca.vertcat(t, q, v, p)
    for event, value in zip(events, values, strict=True):
        for symbol in ca.symvar(value):
            if not ca.depends_on(known, symbol):
                raise InputError(f"event {event.name!r}: its expression has the symbol {symbol}, not of the moment")
    return ca.Function("events", [t, q, v, *([p] if model.parameters else [])], [g])


def _require_crossing(event: Event, value: Any) -> None:
    """Refuse what is true or false: it is never below zero, so that it would pass through zero unseen."""
    import casadi as ca

    entry = value.elements()[0] if value.nnz() else None
    if entry is None or entry.is_constant():
        raise InputError(f"event {event.name!r}: its expression is always {value}; it must change with the moment")
    if entry.op() in (ca.OP_LT, ca.OP_LE, ca.OP_EQ, ca.OP_NE, ca.OP_NOT, ca.OP_AND, ca.OP_OR):
        raise InputError(
            f"event {event.name!r}: its expression is a condition, true or false, and never passes through zero; give "
            "a difference, as s.t - 1.5 for s.t > 1.5"
        )
