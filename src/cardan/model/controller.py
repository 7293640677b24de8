"""Controllers: efforts along joints and wrenches on bodies as a function of all that can be seen of the mechanism.

    law(s) -> efforts                   a number for each rate of the joints, then 6 for each body; or a dict by name
    law(s) -> efforts, {state: rate}    where it has states; of a sampled one their next values

`s` is read as an instant is: `s.t`, `s.coordinate("A")`, `s.rate("A")`, `s.position("tip")`, `s["pid.integral"]`, own
states and inputs also by their short names, `s["integral"]`. The law is run on symbols when the model is built; what it
read then (`Sight`) are the arguments of its graph. A sampled controller has its efforts in a variable, which is held.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from cardan.algebra.matrix import Matrix, is_symbol
from cardan.errors import CardanError, ModelError, UnknownNameError, nearest
from cardan.model.force import trace
from cardan.model.graph_digest import graph_digest
from cardan.model.held_state import refuse_held_state
from cardan.model.parameter import find_parameter
from cardan.model.values import counted, shown

if TYPE_CHECKING:
    from cardan.model.control_law import ControlLaw
    from cardan.model.model import Model


@dataclass(frozen=True)
class Sight:
    """One thing that a law reads: the method of the observer, its arguments, and the shape of what it gives."""

    what: str
    of: tuple[Any, ...]
    shape: tuple[int, int]

    def at(self, s: Any) -> Any:
        """What an observer sees of it."""
        if self.what == "t":
            return s.t
        return s[self.of[0]] if self.what == "number" else getattr(s, self.what)(*self.of)


class Recorder:
    """What a law is run on: gives symbols, and remembers what they stand for.

    It has the methods of `formulation.instant.Observer`, and own states and inputs by their short names.
    """

    def __init__(self, model: Model, owner: str) -> None:
        """Nothing is seen yet."""
        self.model, self._owner = model, owner
        self.sights: dict[Sight, Any] = {}

    def _see(self, what: str, of: tuple[Any, ...], rows: int, columns: int = 1) -> Any:
        import casadi as ca

        sight = Sight(what, of, (rows, columns))
        if sight not in self.sights:
            self.sights[sight] = ca.SX.sym(what, rows, columns)
        return self.sights[sight]

    @property
    def t(self) -> Any:
        """Time, s."""
        return self._see("t", (), 1)

    @property
    def q(self) -> Any:
        """Coordinates (nq,) of the tree."""
        import casadi as ca

        return ca.vertcat(*(self.coordinate(name) for name in self._tree))

    @property
    def v(self) -> Any:
        """Rates (nv,) of the tree."""
        import casadi as ca

        return ca.vertcat(*(self.rate(name) for name in self._tree))

    @property
    def _tree(self) -> list[str]:
        return [self.model.joints[link.joint].name for link in self.model.tree.links if link.kind.nv]

    def __getitem__(self, name: str) -> Any:
        """A state or input of its own, a variable, or a number of the model by name."""
        known = {x.name: x.value.size for x in self.model.variables}
        for full in (f"{self._owner}.{name}", name):
            if full in known:
                return self._see("number", (full,), known[full])
        try:
            return self._see("number", (name,), find_parameter(self.model, name).size)
        except CardanError:
            near = [*known, *(x.removeprefix(f"{self._owner}.") for x in known if x.startswith(f"{self._owner}."))]
            raise UnknownNameError(
                f"{name!r} is not a state or input of it, a variable or a number of the model{nearest(name, near)}"
            ) from None

    def coordinate(self, joint: str) -> Any:
        """Coordinates of a joint."""
        return self._see("coordinate", (joint,), self._kind(joint).nq)

    def rate(self, joint: str) -> Any:
        """Rates of a joint."""
        return self._see("rate", (joint,), self._kind(joint).nv)

    def position(self, body: str, point: Sequence[float] = (0.0, 0.0, 0.0)) -> Any:
        """Position (3,) of a point of a body or frame, in ground components, m."""
        return self._see("position", self._point(body, point), 3)

    def velocity(self, body: str, point: Sequence[float] = (0.0, 0.0, 0.0)) -> Any:
        """Velocity (3,) of a point of a body or frame, in ground components, m/s."""
        return self._see("velocity", self._point(body, point), 3)

    def rotation(self, body: str) -> Any:
        """Axes (3, 3) of a body or frame as columns, in ground components."""
        self.model.placement(body)
        return self._see("rotation", (body,), 3, 3)

    def angular_velocity(self, body: str) -> Any:
        """Angular velocity (3,) of a body or frame, in ground components, rad/s."""
        self.model.placement(body)
        return self._see("angular_velocity", (body,), 3)

    def reaction(self, joint: str) -> Any:
        """Refused: efforts and reactions depend on each other."""
        raise UnknownNameError(
            f"the reaction of joint {joint!r} depends on the efforts at the same instant, an algebraic loop; measure "
            "the force by a spring or bushing in place of the joint"
        )

    def _point(self, body: str, point: Sequence[float]) -> tuple[str, tuple[float, ...]]:
        self.model.placement(body)
        at = tuple(float(x) for x in point)
        if len(at) != 3:
            raise ModelError(f"a point of {body!r} must be 3 numbers, m, got {shown(point)}")
        return body, at

    def _kind(self, joint: str) -> Any:
        kind = self.model.joint(joint).kind
        if not kind.nv:
            raise UnknownNameError(f"joint {joint!r} is rigid and has no coordinates of its own")
        return kind


def recorded(s: Any) -> Any:
    """In place of the law of a built model, which is a graph."""
    raise ModelError("a controller of a built model is its graph; take the law from the mechanism")


@dataclass(frozen=True, eq=False)
class Controller:
    """One controller: the joints and bodies, by number, that it acts on, its states and inputs, and its law.

    `states` and `inputs` have their start values by short name. `every` is its interval, s, 0 if it is continuous;
    `lag` by how many intervals its efforts come late. `called` is a law in plain Python. In a built model `function` is
    the graph of the efforts and of the rates, or next values, of the states, of what `sights` say.
    """

    name: str
    joints: tuple[int, ...]
    bodies: tuple[int, ...]
    law: Callable[..., Any] = field(repr=False)
    states: Mapping[str, np.ndarray] = field(default_factory=dict)
    inputs: Mapping[str, np.ndarray] = field(default_factory=dict)
    every: float = 0.0
    lag: int = 0
    called: bool = False
    function: Any = field(default=None, repr=False)
    sights: tuple[Sight, ...] = ()
    ready: ControlLaw | None = None
    """The ready-made law that `law` is, if it is one."""
    sizes: tuple[int, ...] = ()
    """How many numbers act along each joint, then on each body."""

    @property
    def owner(self) -> str:
        """Its name in messages."""
        return f"controller {self.name!r}"

    @property
    def size(self) -> int:
        """How many efforts and components of wrenches it gives."""
        return sum(self.sizes)

    @property
    def held(self) -> str:
        """Name of the variable that has the efforts of a sampled one; empty if it is continuous."""
        return "" if not self.every else f"{self.name}.delayed{self.lag}" if self.lag else f"{self.name}.output"

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
        at = [k for k, sight in enumerate(self.sights) if sight.what == "t"]
        return not self.every and bool(at) and bool(self.function.jac_sparsity(0, at[0]).nnz())

    def digest(self, place: Callable[[int], str]) -> bytes:
        """All that enters the equations."""
        graph = "" if self.function is None else graph_digest(self.function)
        on = [place(j) for j in self.joints], list(self.bodies)
        return repr(("controller", on, self.every > 0, self.held, self.sights, graph)).encode()

    def outputs(self, s: Any) -> list[Any]:
        """Efforts, then rates or next values of the states, at what an observer sees."""
        import casadi as ca

        return list(self.function.call([ca.SX(sight.at(s)) for sight in self.sights]))

    def efforts(self, s: Any) -> list[Any]:
        """What acts along each joint, then on each body, at what an observer sees."""
        column = s[self.held] if self.every else self.outputs(s)[0]
        ends = np.cumsum(self.sizes)
        return [column[int(end) - n : int(end), 0] for n, end in zip(self.sizes, ends, strict=True)]

    def traced(self, model: Model) -> Controller:
        """The same with its law as a graph; rejects one that is no function of what it sees."""
        if self.called:
            return self
        refuse_held_state(self.owner, self.law, "states=")
        (first, sights), (again, others) = (self._recorded(model) for _ in range(2))  # on symbols of their own
        if sights != others or first.serialize() != again.serialize():
            raise ModelError(self._not_a_function)
        return replace(self, function=first, sights=sights, law=recorded)  # which other processes can be sent

    def _recorded(self, model: Model) -> tuple[Any, tuple[Sight, ...]]:
        """The graph of one run of the law, and what it takes."""
        import casadi as ca

        recorder = Recorder(model, self.name)
        columns = self._columns(model, recorder)
        ports = list(recorder.sights.values())
        if any(not ca.depends_on(ca.veccat(*ports), symbol) for symbol in ca.symvar(ca.vertcat(*columns))):
            raise ModelError(self._not_a_function)
        sizes = (self.size, *(len(x) for x in self.states.values()))
        return trace(self.owner, lambda: columns, ports, (), sizes, listed=True, what="law"), tuple(recorder.sights)

    @property
    def _not_a_function(self) -> str:
        return (
            f"{self.owner}: its law gives another result each time it is run. It is run when the model is built, and "
            "state that it keeps in Python, random numbers or a clock would stay as they were then; declare state with "
            "states= and return its rate, make the clock s.t, and numbers constants or variables"
        )

    def _columns(self, model: Model, recorder: Recorder) -> list[Any]:
        """Efforts, and rates or next values of the states, from what the law returns."""
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
        return [ca.vertcat(*x) if isinstance(x, list) else x for x in found]

    def _names(self, model: Model) -> list[str]:
        return [model.joint_names[j] for j in self.joints] + [model.body_names[b] for b in self.bodies]

    def _told(self, model: Model) -> str:
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
        return self.controller.outputs(s)[self.k]


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
