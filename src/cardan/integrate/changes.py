"""What a user's event changes: rates and free parameters, given by name; and how new rates are brought about.

New rates are those of an impulse. Where rates of joints are given by name, it acts along these joints, and loops carry
it on:

    v+ = v + M^-1 C^T P      C v+ = c

`C` has the constraint rows `J v = beta` and a row for each rate that is given. That is the change of least kinetic
energy. Where all rates are given and do not fit the constraints, the nearest in kinetic energy that do are taken.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from cardan.algebra.matrix import column_of
from cardan.errors import CardanError, InputError, UnknownNameError, nearest
from cardan.formulation.derivative import PARAMETERS, By, differentiated, impulse_rest
from cardan.formulation.formulation import tangent, tree_rates
from cardan.formulation.instant import Instant
from cardan.formulation.spatial import SPATIAL
from cardan.integrate.transition import Jump, Moment, Transition, unchanged
from cardan.lazy import cached_property
from cardan.machines.ufunc.kernel import Kernel, compile_program
from cardan.model.memory import KernelSlot
from cardan.model.model import Model
from cardan.model.plain_symbols import plain_symbols
from cardan.model.values import floats, shown
from cardan.program.program import Port, Program
from cardan.structure.answers import answers_at
from cardan.structure.kernels import compile_quantity, equations_at, symbolic, time_argument
from cardan.structure.planarity import prepare

if TYPE_CHECKING:
    from cardan.integrate.events import Event

_SLOPES: KernelSlot[str] = KernelSlot("derivatives of impulses along constraints")
FITS = 1e-9  # relative residual of rates that fit the constraints
RANK = 1e-10  # singular values below this, relative to the largest, are zero


@dataclass(frozen=True)
class Change:
    """What an event changes; what is not given stays as it is.

    Args:
        rates: new rates of joints of the tree, by name, rad/s and m/s; of a joint with several, all of them. They are
            taken exactly, and loops and couplings carry the impulse on to the other joints.
        parameters: new values of free parameters, by name, in SI units.
        v: new rates (nv,) of all joints; if they do not fit loops and couplings, the nearest in kinetic energy do.

    """

    rates: Mapping[str, Any] = field(default_factory=dict)
    parameters: Mapping[str, Any] = field(default_factory=dict)
    v: Any = None

    def __post_init__(self) -> None:
        for name, given in (("rates", self.rates), ("parameters", self.parameters)):
            if not isinstance(given, Mapping):
                raise InputError(f"change: {name} must be a dict of names and values, got {shown(given)}")
        if self.v is not None and self.rates:
            raise InputError("change: give rates of some joints by name, or all rates as v, not both")

    def __or__(self, other: Change) -> Change:
        """Both changes; of what both change, the other's."""
        v = self.v if other.v is None else other.v
        return Change({**self.rates, **other.rates}, {**self.parameters, **other.parameters}, v)


@dataclass(frozen=True)
class _Slots:
    """Where the entries of a change go: indices of rates and of parameters."""

    rates: tuple[int, ...]
    parameters: tuple[int, ...]
    whole: bool


def _slots(who: str, model: Model, change: Any) -> _Slots:
    """Look up the names of a change."""
    if not isinstance(change, Change):
        if callable(change):
            raise InputError(f"{who}: it returns a function; give that one itself, as in then=cd.lock('name')")
        raise InputError(f"{who}: it must return a cd.Change(rates=..., parameters=...), got {shown(change)}")
    try:
        rates = [k for name in change.rates for k in range(model.nv)[model.v_slice(name)]]
    except CardanError as error:
        raise UnknownNameError(f"{who}: {error}") from None
    for name in change.parameters:
        if name not in model.parameters.names:
            known = model.parameters.names
            hint = nearest(name, known) if known else "; no number of this model is free"
            raise UnknownNameError(f"{who}: parameter {name!r} is not free{hint}; free it with model.free({name!r})")
    p = [k for name in change.parameters for k in range(model.parameters.size)[model.parameters.slice_of(name)]]
    return _Slots(tuple(rates), tuple(p), change.v is not None)


def _column(who: str, what: str, value: Any, size: int) -> Any:
    """A value as a column of symbols."""
    try:
        found = column_of(value)
    except TypeError:
        raise InputError(f"{who}: {what} must be numbers or expressions of the instant, got {shown(value)}") from None
    if found.numel() != size:
        raise InputError(f"{who}: {what} must have {size} numbers, got {found.numel()}")
    return found


def trace_change(who: str, model: Model, then: Callable[[Instant], Any], loaded: bool = True) -> tuple[Any, _Slots]:
    """CasADi function `(t, q, v, tau, p) -> w, p'` of a user's change, and where its entries go.

    Unless it is `loaded` the function has no drives `tau`, and nothing that follows from them may be read.

    `w` are the rates that it gives, of the joints named or all; `p'` the values of the parameters named.
    """
    import casadi as ca

    t, q, v, tau = (ca.SX.sym(x, n) for x, n in (("t", 1), ("q", model.nq), ("v", model.nv), ("tau", model.nv)))
    written, p = symbolic(model)
    try:
        with plain_symbols():
            change = then(Instant(written, t, q, v, reads=answers_at(model, tau) if loaded else None))
    except CardanError as error:
        raise InputError(f"{who}: {error}") from None
    except Exception as error:
        raise InputError(
            f"{who}: it failed on symbols: {type(error).__name__}: {error}; use arithmetic and casadi functions of "
            "the instant, or give call= in place of then= for plain Python"
        ) from None
    slots = _slots(who, model, change)
    w = [_column(who, f"the rate of {n!r}", x, len(range(model.nv)[model.v_slice(n)])) for n, x in change.rates.items()]
    if slots.whole:
        w = [_column(who, "v", change.v, model.nv)]
    new = [_column(who, f"parameter {n!r}", x, model.parameters[n].size) for n, x in change.parameters.items()]
    given = [t, q, v, *([tau] if loaded else []), *([p] if model.parameters else [])]
    out = [ca.vertcat(ca.SX(0, 1), *w), ca.vertcat(ca.SX(0, 1), *new)]
    for symbol in ca.symvar(ca.vertcat(*out)):
        if not ca.depends_on(ca.vertcat(*given), symbol):
            raise InputError(f"{who}: it returns the symbol {symbol}, which is not of the instant")
    return ca.Function("change", given, out), slots


class _Act:
    """One change as a graph, and its kernels."""

    def __init__(self, model: Model, who: str, then: Any) -> None:
        self.model, self.who = model, who
        self.graph, self.slots = trace_change(who, model, then)
        self.empty = not self.graph.numel_out(0) and not self.graph.numel_out(1)

    @cached_property
    def kernel(self) -> Kernel:
        """`t, q, v, tau, (p)` to the rates and the values that it gives, as far as there are any."""
        symbols = self.graph.sx_in()
        kept = [x for x in self.graph(*symbols) if x.numel()]
        names = [name for name, k in (("w", 0), ("new", 1)) if self.graph.numel_out(k)]
        ports = tuple(Port(name, (x.numel(),)) for name, x in zip(names, kept, strict=True))
        return self._compiled("change", symbols, kept, ports)

    @cached_property
    def slopes(self) -> Kernel:
        """The same to the derivatives of the rates, then of the values, by `t`, `q`, `v`, (`p`) in columns."""
        import casadi as ca

        t, q, v, tau, *p = symbols = self.graph.sx_in()
        y = ca.vertcat(*self.graph(*symbols))
        if ca.depends_on(y, tau):
            raise InputError(
                f"{self.who}: it reads reactions or accelerations, and derivatives of runs through such changes are "
                "not computed; read a filtered value, or leave out the derivatives"
            )
        D = [ca.jacobian(y, t), ca.jacobian(y, q) @ tangent(self.model, q), *(ca.jacobian(y, x) for x in (v, *p))]
        whole = ca.densify(ca.horzcat(*D))
        return self._compiled("change_slopes", symbols, [whole], (Port("D", whole.shape),))

    def _compiled(self, name: str, symbols: list[Any], outputs: list[Any], ports: tuple[Port, ...]) -> Kernel:
        import casadi as ca

        model = self.model
        inputs = [Port("t", ()), Port("q", (model.nq,)), Port("v", (model.nv,)), Port("tau", (model.nv,))]
        inputs += [Port("p", (model.parameters.size,))] if model.parameters else []
        function = ca.Function(name, symbols, outputs)
        key = hashlib.sha256(f"{model.key} {name} {self.graph.serialize()}".encode()).hexdigest()
        return compile_program(Program(name, tuple(inputs), ports, key, lambda: function))

    def given(self, at: Moment) -> list[np.ndarray]:
        """The arguments of the kernels."""
        return [at.t, at.q, at.v, at.tau, *([at.p] if self.model.parameters else [])]


class EventChange(Transition):
    """What an event of the user's changes, or, with none, an update of variables."""

    model: Model
    event: Event | None = None

    def approach(self, at: Moment, v: np.ndarray) -> np.ndarray | None:
        """As every transition; a value that depends on rates has none."""
        if self.event is None or self._value_rate is None:
            return None
        p = [at.p.T] if self.model.parameters else []
        return np.asarray(self._value_rate(at.t[None], at.q.T, v.T, at.tau.T, *p)).ravel()

    @cached_property
    def _value_rate(self) -> Any:
        """The rate of the event's value along the motion `(t, q, v, tau, p)`; few systems at once, so not compiled."""
        import casadi as ca

        from cardan.integrate.events import trace_events

        assert self.event is not None
        value = trace_events(self.model, [self.event])
        t, q, v, *given = symbols = [ca.SX.sym(value.name_in(k), *value.size_in(k)) for k in range(value.n_in())]
        g = value(*symbols)
        if ca.depends_on(g, ca.vertcat(v, given[0])):
            return None
        rate = ca.jtimes(g, q, tree_rates(self.model, q, v)) + ca.jacobian(g, t)
        return ca.Function("value_rate", symbols, [ca.densify(rate)])


class TracedChange(EventChange):
    """A change that is recorded once as a graph and compiled: `then`, and `limit` where events accumulate."""

    def __init__(self, model: Model, who: str, then: Any, limit: Any = None, event: Event | None = None) -> None:
        self.model, self.event = model.unbound, event
        self.then = _Act(self.model, who, then)
        self.at_limit = None if limit is None else _Act(self.model, f"{who}, limit", limit)

    def apply(self, at: Moment) -> Jump:
        """The jump of the systems that are at the moment."""
        return self._jump(at, self.then)

    def limit(self, at: Moment) -> Jump | None:
        """The jump of systems whose events accumulate there, if the event says what happens then."""
        return None if self.at_limit is None else self._jump(at, self.at_limit)

    def slopes(self, at: Moment, jump: Jump, limited: bool) -> np.ndarray:
        """Those of the expressions, and of the impulse that brings the rates about."""
        act = self.at_limit if limited and self.at_limit is not None else self.then
        D, nv = unchanged(at), at.v.shape[1]
        if act.empty:
            return D
        n, slots = len(act.slots.rates) or nv * act.slots.whole, act.slots
        given = np.asarray(act.slopes(*act.given(at)))
        D[:, [nv + k for k in slots.parameters]] = given[:, n:]
        if not n:
            return D
        rows = list(range(nv) if slots.whole else slots.rates)
        D[:, rows] = given[:, :n]
        if not self.model.has_rows:
            return D
        if not slots.whole:
            return self._along_constraints(at, jump, D, at.v, slots.rates)
        aim: Any = act.kernel(*act.given(at))
        return self._along_constraints(at, jump, D, aim[0] if isinstance(aim, tuple) else aim, ())

    def _along_constraints(
        self, at: Moment, jump: Jump, D: np.ndarray, v: np.ndarray, rates: tuple[int, ...]
    ) -> np.ndarray:
        """The slopes of an impulse: of `M (v' - v) = J^T lam + ...`, `J v' = beta`, `v'` given in some `rates`.

        `D` has the slopes of `v'` in these rates, and of `v` (k, nv) in the others.
        """
        (k, nv), p = at.v.shape, jump.p
        model = self.model._bound(p) if self.model.parameters else self.model
        M, _, J, _, _, _ = (np.asarray(x) for x in equations_at(model, SPATIAL, at.q, at.t, at.v))
        J, nl = np.broadcast_to(J, (k, *J.shape[-2:])), J.shape[-2]
        own = np.broadcast_to(np.eye(nv)[list(rates)], (k, len(rates), nv))
        C = np.concatenate([J, own], axis=1)
        start = D[:, :nv].copy()
        start[:, list(rates)] = unchanged(at)[:, list(rates)]
        change = jump.v - v
        Y = np.linalg.solve(np.broadcast_to(M, (k, nv, nv)), np.swapaxes(C, 1, 2))
        back = np.linalg.pinv(C @ Y, rcond=RANK, hermitian=True)
        lam = np.einsum("kij,kj->ki", back, np.einsum("kij,kj->ki", C, change))[:, :nl]
        rest = _impulse_slopes(model, at, jump.v, change, lam)  # of `M change - J^T lam` and `J v' - beta` by t, q, p
        moved = rest[:, :, 1 + nv :] @ D[:, nv:]
        moved[:, :, : 1 + nv] += rest[:, :, : 1 + nv]
        free = start - np.linalg.solve(np.broadcast_to(M, (k, nv, nv)), moved[:, :nv])
        wanted = np.concatenate([-moved[:, nv:], D[:, list(rates)]], axis=1)
        D = D.copy()
        D[:, :nv] = free + Y @ (back @ (wanted - C @ free))
        return D

    def _jump(self, at: Moment, act: _Act) -> Jump:
        if act.empty:
            return Jump(at.v, at.p)
        who, slots = act.who, act.slots
        with np.errstate(all="ignore"):  # what is not finite is refused below
            found: Any = act.kernel(*act.given(at))
        values = list(found) if isinstance(found, tuple) else [found]
        w = values.pop(0) if slots.rates or slots.whole else np.zeros((len(at.t), 0))
        new = values.pop(0) if slots.parameters else np.zeros((len(at.t), 0))
        return jump_to(who, self.model, at, slots, w, new)


def _impulse_slopes(model: Model, at: Moment, y: np.ndarray, change: np.ndarray, lam: np.ndarray) -> np.ndarray:
    """Derivatives (k, nv + nl, 1 + nv + np) of `M change - J^T lam` and `J y - beta` by `t`, `q` and `p`."""
    k = len(y)
    time, by = (("t",) if model.depends_on_time else ()), ("q", *([PARAMETERS] if model.parameters else []))
    wanted = By((*time, *by))

    def make() -> Any:
        prepare(model, SPATIAL)
        written = differentiated(impulse_rest(model), wanted, model)
        return compile_quantity(model, written, f"{SPATIAL.facts(model)} {wanted.key}", looped=False)

    kernel = _SLOPES.find(model, "impulse", make)
    _, *found = kernel(at.q, change, lam, y, *time_argument(model, at.t))
    rows = found[-1].shape[-2]
    t = found.pop(0).reshape(k, rows, 1) if time else np.zeros((k, rows, 1))
    return np.concatenate([t, *found], axis=2)


class CalledChange(EventChange):
    """A change that a Python function computes at every event, for all systems that met it at once."""

    def __init__(self, model: Model, event: Event) -> None:
        self.model, self.event = model.unbound, event
        self.who, self.call = f"event {event.name!r}: call", event.call

    @property
    def told(self) -> str:
        """What it is called in messages."""
        return f"{self.who}, plain Python,"

    def apply(self, at: Moment) -> Jump:
        """The jump of the systems that are at the moment."""
        model, k = self.model, len(at.t)
        p = {x.name: at.p[:, model.parameters.slice_of(x.name)].reshape(k, *x.shape) for x in model.parameters}
        try:
            change = self.call(at.t, at.q.copy(), at.v.copy(), p)  # type: ignore[misc]
        except Exception as error:
            raise InputError(f"{self.who} failed at t = {at.t[0]:.6g} s: {type(error).__name__}: {error}") from error
        if change is None:
            return Jump(at.v, at.p)
        slots = _slots(self.who, model, change)
        sizes = {name: len(range(model.nv)[model.v_slice(name)]) for name in change.rates}
        rows = [self._rows(f"the rate of {n!r}", x, k, sizes[n]) for n, x in change.rates.items()]
        if slots.whole:
            rows = [self._rows("v", change.v, k, model.nv)]
        new = [
            np.broadcast_to(model.parameters[n].read(x), (k, model.parameters[n].size))
            for n, x in change.parameters.items()
        ]
        none = np.zeros((k, 0))
        return jump_to(
            self.who, model, at, slots, np.concatenate([none, *rows], axis=1), np.concatenate([none, *new], axis=1)
        )

    def _rows(self, what: str, value: Any, k: int, size: int) -> np.ndarray:
        """Numbers (k, size) for the k systems, from one for all, (k,), (size,) or (k, size)."""
        try:
            found = floats(value)
            if found.ndim == 1 and size == 1 and len(found) == k:
                found = found[:, None]
            return np.array(np.broadcast_to(found, (k, size)))
        except (TypeError, ValueError):
            raise InputError(
                f"{self.who}: {what} must be numbers of shape ({k}, {size}), for {k} systems; got {shown(value)}"
            ) from None


def jump_to(who: str, model: Model, at: Moment, slots: _Slots, w: np.ndarray, new: np.ndarray) -> Jump:
    """The jump to rates `w` (k, n) and values `new` (k, m) of parameters, by an impulse that the constraints share."""
    p, v = at.p.copy(), at.v
    for parameter in model.parameters:
        own = [
            j
            for j, k in enumerate(slots.parameters)
            if k in range(len(p[0]))[model.parameters.slice_of(parameter.name)]
        ]
        if own:
            try:
                parameter.read(new[:, own].reshape(len(new), *parameter.shape))
            except InputError as error:
                raise InputError(f"{who}, at t = {at.t[0]:.6g} s: {error}") from None
    p[:, list(slots.parameters)] = new
    if not slots.rates and not slots.whole:
        return Jump(v, p)
    if not np.isfinite(w).all():
        raise InputError(f"{who}: it gives rates that are not finite numbers at t = {at.t[0]:.6g} s, {w[0]}")
    aim = w if slots.whole else v.copy()
    if not slots.whole:
        aim[:, list(slots.rates)] = w
    if not model.has_rows:
        return Jump(aim, p)
    here = model._bound(p) if model.parameters else model
    M, _, J, _, beta, _ = equations_at(here, SPATIAL, at.q, at.t, v)
    return _impulse(who, (M, J, beta), aim if slots.whole else v, slots.rates, aim, p)


def _impulse(
    who: str, written: tuple[np.ndarray, np.ndarray, np.ndarray], v: np.ndarray, rows: Sequence[int],
    aim: np.ndarray, p: np.ndarray,
) -> Jump:  # fmt: skip
    """The rates nearest to `v` (k, nv) in kinetic energy that satisfy the constraints and have `aim` in some `rows`."""
    M, J, beta = (np.asarray(x) for x in written)
    k, n = v.shape
    own = np.broadcast_to(np.eye(n)[list(rows)], (k, len(rows), n))
    C = np.concatenate([np.broadcast_to(J, (k, *J.shape[-2:])), own], axis=1)
    c = np.concatenate([np.broadcast_to(beta, (k, J.shape[-2])), aim[:, list(rows)]], axis=1)
    off = c - (C @ v[..., None])[..., 0]
    scale = 1.0 + np.abs(v).max(axis=1) + np.abs(aim).max(axis=1)
    Y = np.linalg.solve(np.broadcast_to(M, (k, n, n)), np.swapaxes(C, 1, 2))
    P = np.linalg.pinv(C @ Y, rcond=RANK, hermitian=True) @ off[..., None]
    new = v + (Y @ P)[..., 0]
    missed = np.abs((C @ new[..., None])[..., 0] - c).max(axis=1) > 1e-7 * scale
    fits = np.abs(off).max(axis=1) <= FITS * scale
    message = f"{who} gives rates that loops and couplings do not allow together" if missed.any() else ""
    return Jump(np.where(fits[:, None], aim, new), p, missed, message)


def transition_of(model: Model, event: Event) -> Transition | None:
    """What an event changes, if it changes anything."""
    if event.then is not None:
        return TracedChange(model, f"event {event.name!r}: then", event.then, event.limit, event)
    return CalledChange(model, event) if event.call is not None else None


# Ready-made changes.


def lock(*names: str) -> Callable[[Instant], Change]:
    """What closes locks and latches at an event, `cd.Event("caught", when, then=cd.lock("gripper"))`.

    What moves there is stopped by an impulse, and the energy that this takes is counted in `event_energy`.
    """
    return lambda s: Change(parameters=dict.fromkeys((f"{name}.closed" for name in names), 1.0))


def release(*names: str) -> Callable[[Instant], Change]:
    """What opens locks and latches at an event: `cd.Event("dropped", when, then=cd.release("gripper"))`."""
    return lambda s: Change(parameters=dict.fromkeys((f"{name}.closed" for name in names), 0.0))


class Machine:
    """A finite-state machine: the names of its states, and the events that lead from one to another.

    Args:
        name: that of a held variable of the mechanism, the number of the state: `mechanism.variable(name, 0)`.
        states: names of the states, in order; the variable is 0 in the first.

    """

    def __init__(self, name: str, states: Sequence[str]) -> None:
        if isinstance(states, str) or not states or len(set(states)) < len(states):
            raise InputError(f"machine {name!r}: states must be a list of different names, got {shown(states)}")
        self.name, self.states = name, tuple(states)
        self._events: list[Event] = []

    def number(self, state: str) -> float:
        """The value of the variable in a state."""
        if state not in self.states:
            raise UnknownNameError(f"machine {self.name!r}: it has no state {state!r}{nearest(state, self.states)}")
        return float(self.states.index(state))

    def on(
        self, source: str, target: str, when: Callable[[Instant], Any], *, direction: int = 0,
        then: Callable[[Instant], Change] | None = None, name: str = "",
    ) -> Machine:  # fmt: skip
        """Add a transition from one state to another, and return the machine.

        It happens at a zero crossing of `when` while the machine is in `source`; `then` is what else changes.
        """
        from cardan.integrate.events import Event

        here, there = self.number(source), self.number(target)

        def change(s: Instant) -> Change:
            own = Change(parameters={self.name: there})
            return own if then is None else then(s) | own

        self._events.append(
            Event(
                name or f"{source} to {target}", when, direction=direction, then=change,
                active=lambda s: s[self.name] == here,
            )
        )  # fmt: skip
        return self

    @property
    def events(self) -> list[Event]:
        """The transitions as events, for `cd.simulate(..., events=machine.events)`."""
        return list(self._events)
