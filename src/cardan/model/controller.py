"""Controllers: efforts along joints and wrenches on bodies as a function of all that can be seen of the mechanism.

    law(s) -> efforts                   a number for each rate of the joints, then 6 for each body; or a dict by name
    law(s) -> efforts, {state: rate}    where it has states; of a sampled one their next values

`s` is read as an instant is: `s.t`, `s.coordinate("A")`, `s.rate("A")`, `s.position("tip")`, `s["pid.integral"]`, own
states and inputs also by their short names, `s["integral"]`. The law is run on symbols when the model is built; what it
read then (`Sight`) are the arguments of its graph. A sampled controller has its efforts in a variable, which is held.

One that acts on nothing has an output, a signal, which other controllers read as `s["name.output"]` or take as input.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from cardan.algebra.matrix import Matrix, is_symbol
from cardan.errors import CardanError, ModelError, nearest
from cardan.model.graph_digest import graph_digest
from cardan.model.held_state import refuse_held_state
from cardan.model.sight import Recorded, Recorder, Sight, record
from cardan.model.signal import in_order, told_cycle
from cardan.model.values import counted, shown

if TYPE_CHECKING:
    from cardan.model.control_law import ControlLaw
    from cardan.model.model import Model


def recorded(s: Any) -> Any:
    """In place of the law of a built model, which is a graph."""
    raise ModelError("a controller of a built model is its graph; take the law from the mechanism")


@dataclass(frozen=True, eq=False)
class Controller:
    """One controller: the joints and bodies, by number, that it acts on, its states and inputs, and its law.

    `states` and `inputs` have their start values by short name; `wires` are the inputs that functions of the instant or
    signals give, with their sizes. `every` is its interval, s, 0 if it is continuous; `lag` by how many intervals its
    efforts come late. `called` is a law in plain Python. In a built model `recorded` is the graph of the efforts and of
    the rates, or next values, of the states.
    """

    name: str
    joints: tuple[int, ...]
    bodies: tuple[int, ...]
    law: Callable[..., Any] = field(repr=False)
    states: Mapping[str, np.ndarray] = field(default_factory=dict)
    inputs: Mapping[str, np.ndarray] = field(default_factory=dict)
    wires: Mapping[str, tuple[str | Callable[[Any], Any], int]] = field(default_factory=dict, repr=False)
    every: float = 0.0
    lag: int = 0
    called: bool = False
    recorded: Recorded | None = field(default=None, repr=False)
    behind: tuple[Sight, ...] = ()
    """What its efforts depend on at the same instant, also through signals."""
    ready: ControlLaw | None = None
    """The ready-made law that `law` is, if it is one whose numbers say all."""
    sizes: tuple[int, ...] = ()
    """How many numbers act along each joint, then on each body; or how many it gives as a signal."""

    @property
    def owner(self) -> str:
        """Its name in messages."""
        return f"controller {self.name!r}"

    @property
    def size(self) -> int:
        """How many efforts and components of wrenches it gives."""
        return sum(self.sizes)

    @property
    def acts(self) -> bool:
        """Whether it acts on joints or bodies; else its output is a signal only."""
        return bool(self.joints or self.bodies)

    @property
    def output(self) -> str:
        """Name of its efforts as a signal; of a sampled one that of the variable that holds them."""
        return f"{self.name}.output"

    @property
    def registers(self) -> list[str]:
        """Names of the variables that its efforts pass through if it is sampled: the last is held."""
        if not self.every:
            return []
        early = ["computed", *(f"delayed{k}" for k in range(1, self.lag))] if self.lag else []
        return [*(f"{self.name}.{what}" for what in early), self.output]

    def labels(self, model: Model) -> list[tuple[str, str]]:
        """Name and unit of each effort along its joints, then of each component of the wrenches on its bodies."""
        found = []
        for j in self.joints:
            kind, name = model.joints[j].kind, model.joint_names[j]
            names = [name] if kind.nv == 1 else [f"{name}[{k}]" for k in range(kind.nv)]
            found += [(n, "N m" if unit == "rad/s" else "N") for n, unit in zip(names, kind.v_units, strict=True)]
        for b in self.bodies:
            parts = ("mx", "my", "mz", "fx", "fy", "fz")
            found += [(f"{model.body_names[b]} {x}", "N m" if x[0] == "m" else "N") for x in parts]
        return found

    @property
    def depends_on_time(self) -> bool:
        """Whether time appears in its efforts."""
        return not self.every and any(sight.what == "t" for sight in self.behind)

    def size_in(self, model: Model, path: tuple[str, ...] = ()) -> int:
        """How many numbers its output has, as `Signal.size_in`."""
        return self.size

    def digest(self, place: Callable[[int], str]) -> bytes:
        """All that enters the equations."""
        graph = "" if self.recorded is None else graph_digest(self.recorded.function)
        sights = () if self.recorded is None else self.recorded.sights
        on = [place(j) for j in self.joints], list(self.bodies)
        return repr(("controller", self.name, on, self.every > 0, sights, graph)).encode()

    def part(self, k: int, s: Any) -> Any:
        """Efforts (0), or the rate or next value of a state, at what an observer sees."""
        assert self.recorded is not None
        return self.recorded.result(k, s)

    def at(self, s: Any) -> Any:
        """What acts, as a column, at what an observer sees."""
        return s[self.output] if self.every else self.part(0, s)

    def efforts(self, s: Any) -> list[Any]:
        """What acts along each joint, then on each body, at what an observer sees."""
        column = self.at(s)
        ends = np.cumsum(self.sizes)
        return [column[int(end) - n : int(end), 0] for n, end in zip(self.sizes, ends, strict=True)]

    def traced(self, model: Model) -> Controller:
        """The same with its law as a graph; rejects one that is no function of what it sees."""
        if self.called:
            return self
        refuse_held_state(self.owner, self.law, "states=")
        for wire, _ in self.wires.values():
            if callable(wire):
                refuse_held_state(self.owner, wire, "states=")
        first, again = (
            record(
                self.owner,
                lambda recorder: self._columns(model, recorder),
                self._not_a_function,
                Recorder(model, self.name, self.wires),
            )
            for _ in range(2)
        )  # on symbols of their own
        if first.sights != again.sights or first.function.serialize() != again.function.serialize():
            raise ModelError(self._not_a_function)
        wires = {name: (recorded if callable(wire) else wire, n) for name, (wire, n) in self.wires.items()}
        ready = None if callable(getattr(self.ready, "sees", None)) else self.ready
        return replace(
            self, recorded=first, law=recorded, wires=wires, ready=ready
        )  # which other processes can be sent

    @property
    def _not_a_function(self) -> str:
        return (
            f"{self.owner}: its law gives another result each time it is run. It is run when the model is built, and "
            "state that it keeps in Python, random numbers or a clock would stay as they were then; declare state with "
            "states= and return its rate, make the clock s.t, and numbers constants or variables"
        )

    def _columns(self, model: Model, recorder: Recorder) -> tuple[list[Any], list[int]]:
        """Efforts, and rates or next values of the states, from what the law returns; and their sizes."""
        import casadi as ca

        from cardan.model.plain_symbols import plain_symbols

        with plain_symbols():
            try:
                value = self.law(recorder)
            except CardanError as error:
                raise type(error)(f"{self.owner}: {error}") from None
            except Exception as error:
                why = str(error).partition("\n")[0]
                raise ModelError(
                    f"{self.owner}: its law cannot be traced, {type(error).__name__}: {why}; "
                    "it is run on CasADi symbols, so use casadi.if_else for a choice, and functions of casadi or numpy"
                ) from error
        paired = isinstance(value, tuple) and len(value) == 2 and isinstance(value[1], Mapping)
        efforts, rates = value if paired else (value, {})
        word = "next value" if self.every else "rate"
        if set(rates) != set(self.states):
            odd = sorted(map(str, set(rates) ^ set(self.states)))[0]
            told = f"no {word} of state {odd!r}" if odd in self.states else f"a {word} of {odd!r}, which is no state"
            raise ModelError(
                f"{self.owner}: its law returns {told}; with states it returns efforts, {{state: {word}}}, and states "
                "are declared with states={name: start}"
            )
        if isinstance(efforts, Mapping):
            efforts = self._by_name(model, efforts)
        found = [_numbers(self.owner, "efforts", efforts, self.size, self._told(model))]
        found += [_numbers(self.owner, f"the {word} of {k!r}", rates[k], len(x)) for k, x in self.states.items()]
        sizes = [self.size, *(len(x) for x in self.states.values())]
        return [ca.vertcat(*x) if isinstance(x, list) else x for x in found], sizes

    def _names(self, model: Model) -> list[str]:
        return [model.joint_names[j] for j in self.joints] + [model.body_names[b] for b in self.bodies]

    def _told(self, model: Model) -> str:
        if not self.acts:
            return "its output"
        return ", ".join(f"{n} for {name!r}" for n, name in zip(self.sizes, self._names(model), strict=True))

    def _by_name(self, model: Model, efforts: Mapping[str, Any]) -> list[Any]:
        names = self._names(model)
        if unknown := [name for name in efforts if name not in names]:
            raise ModelError(f"{self.owner}: it does not act on {unknown[0]!r}{nearest(unknown[0], names)}")
        found: list[Any] = []
        for n, name in zip(self.sizes, names, strict=True):
            found += _split(_numbers(self.owner, f"the effort of {name!r}", efforts.get(name, [0.0] * n), n))
        return found


@dataclass(frozen=True)
class ControllerPart:
    """Rate or next value of one state, or the sampled efforts, of a traced controller, as a function of an instant."""

    controller: Controller
    k: int

    def __call__(self, s: Any) -> Matrix:
        """At an instant."""
        return self.controller.part(self.k, s)


@dataclass(frozen=True)
class PreviousValue:
    """What another variable was before: a register of a delay."""

    name: str

    def __call__(self, s: Any) -> Matrix:
        """At an instant."""
        return s[self.name]


def _split(column: Any) -> list[Any]:
    return [column[k] for k in range(column.numel())] if is_symbol(column) else list(np.ravel(column))


def _numbers(owner: str, what: str, value: Any, n: int, each: str = "") -> Any:
    """A column of n numbers or expressions."""
    import casadi as ca

    parts = value if isinstance(value, list | tuple | np.ndarray) and np.ndim(value) else [value]
    try:
        column = ca.vertcat(*(ca.SX(x if is_symbol(x) else float(x)) for x in parts))
    except Exception:
        raise ModelError(f"{owner}: {what} must be {counted(n, 'number')}, got {shown(value)}") from None
    if column.numel() != n or min(column.shape) > 1:
        more = f" ({each})" if each and n > 1 else ""
        raise ModelError(f"{owner}: {what} must be {counted(n, 'number')}{more}, got {column.numel()}")
    return ca.densify(ca.vec(column))


def settled_controllers(model: Model, controllers: Iterable[Controller]) -> tuple[Controller, ...]:
    """Traced controllers with what their efforts depend on at the same instant, also through signals.

    Rejects signals that depend on themselves, and continuous efforts that depend on what follows from them: reactions
    and accelerations.
    """
    own = {c.output: c for c in controllers if not c.every}
    reads = {signal.name: signal.reads for signal in model.signals}
    results = {signal.name: signal.recorded.reads[0] for signal in model.signals if signal.recorded is not None}
    for name, c in own.items():
        assert c.recorded is not None
        results[name] = c.recorded.reads[0]
        reads[name] = tuple(sight.of[0] for sight in results[name] if sight.what == "number")
    behind: dict[str, tuple[Sight, ...]] = {}
    order = in_order(reads, told_cycle)
    sampled = {c.output: c.recorded.reads[0] for c in controllers if c.every and c.recorded is not None}
    for name, own_sights in {**{name: results[name] for name in order}, **sampled}.items():
        found: dict[Sight, None] = {}
        for sight in own_sights:
            through = behind.get(sight.of[0]) if sight.what == "number" and sight.of[0] not in sampled else None
            found |= dict.fromkeys((sight,) if through is None else through)
        behind[name] = tuple(found)
    settled = tuple(replace(c, behind=behind.get(c.output, ())) for c in controllers)
    for c in settled:
        answers = [sight for sight in c.behind if sight.is_answer]
        if c.acts and answers and not c.every:
            of = answers[0]
            on = f"joint {model.joint_names[c.joints[0]]!r}" if c.joints else f"body {model.body_names[c.bodies[0]]!r}"
            raise ModelError(
                f"{c.owner}: its effort on {on} depends on {of.told} at the same instant, which depends on the effort, "
                "an algebraic loop; sample it with every=..., read it through m.filter(...), or measure the force by a "
                "spring or bushing in place of the joint"
            )
    return settled
