"""Events: a user's expression whose zero crossing stops or changes a run or is recorded, and how it is located."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar
from weakref import WeakSet

import numpy as np

from cardan.algebra.free_number import expression
from cardan.algebra.matrix import Matrix, is_symbol, where
from cardan.errors import CardanError, InputError
from cardan.formulation.instant import Instant
from cardan.model.elements import read_name
from cardan.model.model import Model
from cardan.model.plain_symbols import plain_symbols
from cardan.structure.answers import answers_at
from cardan.structure.kernels import symbolic

ACTIONS = ("stop", "record", "change")

# What a user gives


@dataclass(frozen=True)
class Event:
    """A zero crossing of an expression, which stops a run, changes it, or is recorded.

    Args:
        name: name of the event in the run's records.
        when: function of a `cd.Instant` (symbols) that returns a scalar; the event is its zero crossing.
        action: "stop" the run there, "change" it and go on, or only "record" the event; by default "change" if `then`
            or `call` is given, else "stop".
        direction: 1 for upward crossings only, -1 for downward ones, 0 for both.
        then: function of a `cd.Instant` (symbols) that returns a `cd.Change`: new rates, new values of parameters. It
            is recorded once and compiled.
        call: the same as plain Python, called at every event: `call(t, q, v, parameters)` with arrays (k,), (k, nq),
            (k, nv) and a dict of arrays for the k systems that meet the event at once; None changes nothing.
        active: function of a `cd.Instant` that returns a condition of held variables, as `s["mode"] == 1`: the event
            counts only while it is true.
        limit: as `then`, where events accumulate: what becomes of a ball after infinitely many bounces. Without it
            the run of the system ends there.

    """

    name: str
    when: Callable[[Instant], Any]
    action: str = ""
    direction: int = 0
    then: Callable[[Instant], Any] | None = None
    call: Callable[..., Any] | None = None
    limit: Callable[[Instant], Any] | None = None
    active: Callable[[Instant], Any] | None = None
    turns_back: ClassVar[bool] = True
    """Whether its value may have passed zero when a system goes on from it, so that a return must be looked for."""

    def __post_init__(self) -> None:
        read_name("event", self.name)
        changes = self.then is not None or self.call is not None
        if self.action == "":
            object.__setattr__(self, "action", "change" if changes else "stop")
        if self.action not in ACTIONS:
            raise InputError(f"event {self.name!r}: action must be 'stop', 'change' or 'record', got {self.action!r}")
        if (self.action == "change") != changes:
            told = "needs then= or call=, what it changes" if not changes else "and then= or call= exclude each other"
            raise InputError(f"event {self.name!r}: action {self.action!r} {told}")
        if self.then is not None and self.call is not None:
            raise InputError(f"event {self.name!r}: give then= or call=, not both")
        for what in ("then", "call", "limit", "active"):
            if getattr(self, what) is not None and not callable(getattr(self, what)):
                raise InputError(f"event {self.name!r}: {what} must be a function, got {getattr(self, what)!r}")
        if self.limit is not None and self.then is None:
            raise InputError(f"event {self.name!r}: limit= goes with then=")
        if self.direction not in (-1, 0, 1):
            raise InputError(f"event {self.name!r}: direction must be -1, 0 or 1, got {self.direction!r}")
        if not callable(self.when):
            raise InputError(
                f"event {self.name!r}: `when` must be a function of an instant, e.g. lambda s: s.q[0]; got "
                f"{self.when!r}"
            )


# As graphs


def trace_events(model: Model, events: Sequence[Event], loaded: bool = True) -> Any:
    """CasADi function `(t, q, v, tau, p) -> g` (ne,) of all events; reject what is not a scalar of the state.

    `p` are the model's free parameters; a model without any has no such input. Unless it is `loaded` the function has
    no drives `tau`, and nothing that follows from them may be read.
    """
    import casadi as ca

    names = [event.name for event in events]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(f"event {twice!r} is given twice; give each its own name")
    t, q, v, tau = (ca.SX.sym(x, n) for x, n in (("t", 1), ("q", model.nq), ("v", model.nv), ("tau", model.nv)))
    written, p = symbolic(model)
    instant = Instant(written, t, q, v, reads=answers_at(model, tau) if loaded else None)
    values = []
    for event in events:
        try:
            with plain_symbols():
                value = event.when(instant)
        except CardanError as error:
            raise InputError(f"event {event.name!r}: {error}") from None
        except Exception as error:
            raise InputError(
                f"event {event.name!r}: its expression failed on symbols: {type(error).__name__}: {error}; use "
                "arithmetic and casadi functions (casadi.sin, casadi.fmin, ...) of the instant's t, q, v"
            ) from None
        if not is_symbol(value) or value.shape != (1, 1):
            what = f"shape {value.shape}" if is_symbol(value) else repr(value)
            raise InputError(f"event {event.name!r}: its expression must be a scalar of the instant, got {what}")
        _require_crossing(event, value)
        if event.active is not None:
            value = where(_condition(event, instant), value, 1.0)
        values.append(value)
    g = ca.vertcat(*values) if values else ca.SX(0, 1)
    known = ca.vertcat(t, q, v, tau, p)
    for event, value in zip(events, values, strict=True):
        for symbol in ca.symvar(value):
            if not ca.depends_on(known, symbol):
                raise InputError(
                    f"event {event.name!r}: its expression has the symbol {symbol}, which is not of the instant"
                )
    given = [t, q, v, *([tau] if loaded else []), *([p] if model.parameters else [])]
    return ca.Function("events", given, [g])


def _condition(event: Event, instant: Instant) -> Any:
    """Whether an event counts, as an expression; reject one that depends on more than held variables."""
    import casadi as ca

    assert event.active is not None
    try:
        with plain_symbols():
            found = event.active(instant)
    except CardanError as error:
        raise InputError(f"event {event.name!r}: active: {error}") from None
    if not is_symbol(found) or found.shape != (1, 1):
        raise InputError(f"event {event.name!r}: active must return a condition of variables, got {found!r}")
    held = [x for x in instant.model.free_numbers.values() for x in np.ravel(x)]
    if not {x.element_hash() for x in ca.symvar(found)} <= {
        x.element_hash() for number in held for x in ca.symvar(ca.SX(expression(number)))
    }:
        raise InputError(
            f"event {event.name!r}: active depends on time or state; it may read variables only, s['mode'] == 1, and "
            "what moves belongs into `when`"
        )
    return found


_REPEATABLE: WeakSet[Event] = WeakSet()  # events that were found to be functions


def require_functions(model: Model, events: Sequence[Event]) -> None:
    """Reject an event that cannot be traced, or whose expression is another one each time; looks once at each."""
    trace_events(model, events)
    for event in events:
        if event not in _REPEATABLE:
            first, again = (trace_events(model, [event]).serialize() for _ in range(2))
            if first != again:
                raise InputError(
                    f"event {event.name!r}: its expression is another one each time it is run; random numbers, a clock "
                    "or state that it keeps would stay as they were at the start"
                )
            _REPEATABLE.add(event)


def _require_crossing(event: Event, value: Any) -> None:
    """Reject constants and conditions: a condition is 0 or 1, never negative, so its crossing would be missed."""
    import casadi as ca

    entry = value.elements()[0] if value.nnz() else None
    if entry is None or entry.is_constant():
        raise InputError(f"event {event.name!r}: its expression is always {value}; it must depend on the instant")
    if entry.op() in (ca.OP_LT, ca.OP_LE, ca.OP_EQ, ca.OP_NE, ca.OP_NOT, ca.OP_AND, ca.OP_OR):
        raise InputError(
            f"event {event.name!r}: its expression is a condition, true or false, and never passes through zero; give "
            "a difference, as s.t - 1.5 for s.t > 1.5"
        )


def crossing(before: Matrix, after: Matrix, directions: np.ndarray) -> tuple[Matrix, Matrix]:
    """Whether one of the events' values changed sign in its direction, and the index of the first that did."""
    import casadi as ca

    crossed, which = ca.SX(0), ca.SX(-1)
    for k in reversed(range(after.shape[0])):
        up = ca.logic_and(before[k] < 0, after[k] >= 0)
        down = ca.logic_and(before[k] > 0, after[k] <= 0)
        own = {1: up, -1: down, 0: ca.logic_or(up, down)}[int(directions[k])]
        crossed, which = ca.logic_or(crossed, own), where(own, float(k), which)
    return crossed, which


# Locating an event inside a step

States = dict[str, np.ndarray]
EPS = float(np.finfo(float).eps)
BISECTIONS, DONE = 80, -1.0  # trials at most; no more
TIGHT = 4 * EPS  # of the time: a bracket this narrow is the event
MARGIN = 0.01  # of the bracket: so far from its ends, once it has shrunk from one side only


def locate(
    at: Callable[[np.ndarray], States], start: States, h: np.ndarray, directions: np.ndarray
) -> tuple[States, np.ndarray]:
    """Find the earliest event inside a step of each system, by the Illinois method on the length of the step.

    Return the states (n, ...) just past it, and all events (n, ne) that are met there.

    `at(h)` gives the states after steps of lengths h (n,), s, from `start`; among them are the time `t` (n,) and the
    events' values `g` (n, ne). A step of the given length must cross an event in every system. The result of a system
    does not depend on the others: one that is done stays as it is. `Bracket` is the same as a graph.
    """
    far, hi = at(h), h.copy()
    lo, g_lo = np.zeros(len(h)), start["g"]
    side = np.zeros(len(h))
    weight_lo, weight_hi = np.ones(len(h)), np.ones(len(h))
    each = np.arange(len(h))
    for _ in range(BISECTIONS):
        which = np.argmax(changed_sign(g_lo, far["g"], directions), axis=1)
        a, b = weight_lo * g_lo[each, which], weight_hi * far["g"][each, which]
        tight = hi - lo <= TIGHT * np.maximum(np.abs(start["t"]), hi)
        if tight.all():
            break
        with np.errstate(divide="ignore", invalid="ignore"):
            mid = np.where(b != a, hi - b * (hi - lo) / (b - a), 0.5 * (lo + hi))
        # keep away from the ends, so that the bracket shrinks from both sides
        margin = np.maximum(MARGIN * (hi - lo) * (np.abs(side) > 2), EPS * np.abs(start["t"]))
        mid = np.clip(mid, lo + np.minimum(margin, 0.5 * (hi - lo)), hi - np.minimum(margin, 0.5 * (hi - lo)))
        there = at(np.where(tight, hi, mid))
        crosses: np.ndarray = np.any(changed_sign(g_lo, there["g"], directions), axis=1)
        beyond, before = ~tight & crosses, ~tight & ~crosses
        far = {name: np.where(per_system(beyond, far[name]), there[name], far[name]) for name in far}
        hi, lo = np.where(beyond, mid, hi), np.where(before, mid, lo)
        g_lo = np.where(before[:, None], there["g"], g_lo)
        side = np.where(beyond, np.maximum(side, 0) + 1, np.minimum(side, 0) - 1)
        weight_lo = np.where(beyond & (side > 1), 0.5 * weight_lo, np.where(beyond, weight_lo, 1.0))
        weight_hi = np.where(~beyond & (side < -1), 0.5 * weight_hi, np.where(beyond, 1.0, weight_hi))
    return far, changed_sign(g_lo, far["g"], directions)


@dataclass
class Bracket:
    """The bracket of `locate` for one system, as columns of symbols: all that is carried from one trial to the next.

    The event lies between the lengths `lo` and `hi` (s) of the step, where the events' values are `g_lo` and `g_hi`
    (ne,). `turn` counts the trials: the first, 0, is at `hi`, and after the last it is `DONE`.
    """

    lo: Matrix
    hi: Matrix
    g_lo: Matrix
    g_hi: Matrix
    side: Matrix
    weight_lo: Matrix
    weight_hi: Matrix
    turn: Matrix

    def trial(self, t: Matrix, directions: np.ndarray) -> tuple[Matrix, Matrix]:
        """Length of the next step to try from the time `t`, s, and whether it is the last, to the event."""
        import casadi as ca

        tight = self.hi - self.lo <= TIGHT * ca.fmax(ca.fabs(t), self.hi)
        last = ca.logic_and(self.turn > 0, ca.logic_or(tight, self.turn > BISECTIONS))
        width, a, b = self.hi - self.lo, self.g_lo[0], self.g_hi[0]
        for k in reversed(range(self.g_lo.shape[0])):
            own = crossing(self.g_lo[k], self.g_hi[k], directions[k : k + 1])[0]
            a, b = where(own, self.g_lo[k], a), where(own, self.g_hi[k], b)
        a, b = self.weight_lo * a, self.weight_hi * b
        mid = where(a == b, self.lo + 0.5 * width, self.hi - b * width / (b - a))
        margin = ca.fmax(where(ca.fabs(self.side) > 2, MARGIN * width, 0.0), EPS * ca.fabs(t))
        margin = ca.fmin(margin, 0.5 * width)
        mid = ca.fmin(ca.fmax(mid, self.lo + margin), self.hi - margin)
        return where(ca.logic_or(last, self.turn == 0), self.hi, mid), last

    def narrowed(self, h: Matrix, before: Matrix, g: Matrix, directions: np.ndarray) -> Bracket:
        """The bracket after a trial of length `h` with the values `g`; `before` are those at the start of the step."""
        import casadi as ca

        beyond = crossing(self.g_lo, g, directions)[0]
        side = where(beyond, ca.fmax(self.side, 0) + 1, ca.fmin(self.side, 0) - 1)
        again = Bracket(
            where(beyond, self.lo, h),
            where(beyond, h, self.hi),
            where(beyond, self.g_lo, g),
            where(beyond, g, self.g_hi),
            side,
            where(beyond, where(side > 1, 0.5, 1.0) * self.weight_lo, 1.0),
            where(beyond, 1.0, where(side < -1, 0.5, 1.0) * self.weight_hi),
            self.turn + 1,
        )
        first = Bracket(ca.SX(0), h, before, g, ca.SX(0), ca.SX(1), ca.SX(1), ca.SX(1))
        begins = self.turn == 0
        return first.where(begins, again)

    def where(self, condition: Matrix, other: Bracket) -> Bracket:
        """Choose between it and another bracket."""
        pairs = zip(vars(self).values(), vars(other).values(), strict=True)
        return Bracket(*(where(condition, x, y) for x, y in pairs))


def keep_side(before: np.ndarray, now: np.ndarray) -> np.ndarray:
    """Values of events (n, ne) after a restart: one that passed zero meanwhile keeps its sign, so it is still met."""
    return np.where((before != 0) & (np.sign(now) != np.sign(before)), np.copysign(5e-324, before), now)


def per_system(mask: np.ndarray, array: np.ndarray) -> np.ndarray:
    """Reshape a mask (n,) of systems so that it broadcasts against an array (n, ...)."""
    return mask.reshape(-1, *([1] * (array.ndim - 1)))


def changed_sign(before: np.ndarray, after: np.ndarray, directions: np.ndarray) -> np.ndarray:
    """Which events (n, ne) changed sign in their direction."""
    up, down = (before < 0) & (after >= 0), (before > 0) & (after <= 0)
    return np.where(directions > 0, up, np.where(directions < 0, down, up | down))
