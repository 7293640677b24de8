"""Functions of an instant in a YAML file: rates and updates of variables.

Their expressions use `t`, and names that the entry `reads` gives to what they read of the instant: coordinates and
rates of joints, positions and velocities of bodies, free numbers and variables. Reading: each name becomes a call of
the instant. Writing: the function runs on a `RecordedInstant`, which notes what is read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cardan.algebra.matrix import column_of
from cardan.errors import CardanError, ModelError, UnknownNameError, nearest
from cardan.io.yaml.expression import Name, number
from cardan.io.yaml.function import Entries, Variables, WrittenTables, calculated, printed, shared, taken
from cardan.model.body import Joint
from cardan.model.builder import Mechanism
from cardan.model.measured_force import find_force
from cardan.model.model import Model
from cardan.model.sight import SensorReadings
from cardan.model.signal import Signal
from cardan.model.values import one
from cardan.model.variable import Variable

JOINT, NUMBER = ("coordinate", "rate", "reaction"), "number"
BODY = ("position", "velocity", "acceleration")
WHOLE_BODY = {"rotation": 9, "angular_velocity": 3, "angular_acceleration": 3}
WHAT = (*JOINT, *BODY, *WHOLE_BODY, "force", NUMBER)
Point = tuple[float, ...]


@dataclass(frozen=True)
class Reading:
    """What is read of an instant: a quantity, the name of a joint, body, element or number, and of a body the point, m.

    Axes are columns, one below the other.
    """

    what: str
    of: str
    point: Point = (0.0, 0.0, 0.0)

    def at(self, s: Any) -> Any:
        """Its value at an instant."""
        if self.what == NUMBER:
            return s[self.of]
        import casadi as ca

        found = getattr(s, self.what)(self.of, *([self.point] if self.what in BODY else []))
        return ca.vec(found) if self.what == "rotation" else found

    @property
    def name(self) -> str:
        """A name for it in expressions; no value of `where` has such a one."""
        ending = {NUMBER: "", "coordinate": ""}.get(self.what, f"_{self.what}")
        plain = re.sub(r"\W", "_", self.of, flags=re.ASCII) + ending
        return f"{plain}_" if taken(plain) or re.fullmatch(r"a\d+|_.*", plain) else plain


class Sizes:
    """How many numbers a reading has in a mechanism; what does not exist is rejected."""

    def __init__(self, thing: Mechanism | Model) -> None:
        """Of a mechanism, or of a model."""
        self.thing = thing
        self.joints = {joint.name: joint for joint in thing.joints}
        self.places = {"ground", *(body.name for body in thing.bodies), *(frame.name for frame in thing.frames)}
        self.numbers = {x.name: x.value.size for x in thing.variables}
        if isinstance(thing, Model):
            self.numbers |= {name: _size_of_signal(thing, name) for name in thing.signal_names}
            self.numbers |= {p.name: int(np.prod(p.shape)) for p in thing.parameters}

    def __call__(self, reading: Reading) -> int:
        """Its numbers."""
        if reading.what in JOINT:
            joint: Joint = self._known("joint", reading.of, self.joints)
            if reading.what == "reaction":
                return 6
            return joint.kind.nq if reading.what == "coordinate" else joint.kind.nv
        if reading.what == "force":
            return find_force(self.model, reading.of).size
        if reading.what in BODY or reading.what in WHOLE_BODY:
            if reading.of not in self.places:
                raise UnknownNameError(f"there is no body or frame {reading.of!r}{nearest(reading.of, self.places)}")
            return WHOLE_BODY.get(reading.what, 3)
        if reading.of not in self.numbers and isinstance(self.thing, Mechanism):
            model = self.model
            if reading.of in model.signal_names:
                self.numbers[reading.of] = _size_of_signal(model, reading.of)
            else:
                free = model.free(reading.of).parameters
                self.numbers[reading.of] = int(np.prod(next(p.shape for p in free if p.name == reading.of)))
        return int(self._known("variable or free number", reading.of, self.numbers))

    @property
    def model(self) -> Model:
        """The mechanism as it is now."""
        return self.thing if isinstance(self.thing, Model) else self.thing.build()

    def _known(self, what: str, name: str, known: dict[str, Any]) -> Any:
        if name not in known:
            raise UnknownNameError(f"there is no {what} {name!r}{nearest(name, known)}")
        return known[name]


def _size_of_signal(model: Model, name: str) -> int:
    found = model.signal(name)
    assert found is not None
    return found.size_in(model)


# Reading.


def variables_of(readings: dict[str, Reading], size: Sizes) -> Variables:
    """Names in expressions and their shapes."""
    return {"t": (), **{name: (size(reading),) for name, reading in readings.items()}}


def of_instant(made: Callable[..., list[Any]], readings: dict[str, Reading]) -> Callable[[Any], Any]:
    """Expressions as a function of an instant, which returns a column."""

    def function(s: Any) -> Any:
        return column_of(made(t=s.t, **{name: reading.at(s) for name, reading in readings.items()}))

    return function


# Writing.


class RecordedInstant(SensorReadings):
    """An instant that notes what a function reads of it; every reading is a symbol of its own."""

    def __init__(self, thing: Mechanism | Model) -> None:
        """An instant of a mechanism or model."""
        import casadi as ca

        self._thing, self._size = thing, Sizes(thing)
        self.t = ca.SX.sym("t")
        self.symbols: dict[Reading, Any] = {}

    def coordinate(self, joint: str) -> Any:
        """Coordinates of a joint."""
        return self._symbol(Reading("coordinate", joint))

    def rate(self, joint: str) -> Any:
        """Rates of a joint."""
        return self._symbol(Reading("rate", joint))

    def position(self, body: str, point: Sequence[float] = (0.0, 0.0, 0.0)) -> Any:
        """Position of a point of a body or frame."""
        return self._symbol(Reading("position", body, tuple(one("position", "point", point, 3).tolist())))

    def velocity(self, body: str, point: Sequence[float] = (0.0, 0.0, 0.0)) -> Any:
        """Velocity of a point of a body or frame."""
        return self._symbol(Reading("velocity", body, tuple(one("velocity", "point", point, 3).tolist())))

    def acceleration(self, body: str, point: Sequence[float] = (0.0, 0.0, 0.0)) -> Any:
        """Acceleration of a point of a body or frame."""
        return self._symbol(Reading("acceleration", body, tuple(one("acceleration", "point", point, 3).tolist())))

    def rotation(self, body: str) -> Any:
        """Axes of a body or frame."""
        import casadi as ca

        return ca.reshape(self._symbol(Reading("rotation", body)), 3, 3)

    def angular_velocity(self, body: str) -> Any:
        """Angular velocity of a body or frame."""
        return self._symbol(Reading("angular_velocity", body))

    def angular_acceleration(self, body: str) -> Any:
        """Angular acceleration of a body or frame."""
        return self._symbol(Reading("angular_acceleration", body))

    def joint_wrench(self, joint: str) -> Any:
        """Moment and force of a joint on its child, in its joint frame."""
        return self._symbol(Reading("reaction", joint))

    def force(self, name: str) -> Any:
        """Force of an element."""
        return self._symbol(Reading("force", name))

    load = force

    def __getitem__(self, name: str) -> Any:
        """A variable, signal or free number."""
        return self._symbol(Reading(NUMBER, name))

    @property
    def model(self) -> Model:
        """The model."""
        return self._thing if isinstance(self._thing, Model) else self._thing.build()

    @property
    def q(self) -> Any:
        """Coordinates of all joints of the tree."""
        return self._column(self.coordinate)

    @property
    def v(self) -> Any:
        """Rates of all joints of the tree."""
        return self._column(self.rate)

    def _column(self, read: Callable[[str], Any]) -> Any:
        import casadi as ca

        model = self.model
        return ca.vertcat(*(read(model.joints[link.joint].name) for link in model.tree.links if link.kind.nv))

    def _symbol(self, reading: Reading) -> Any:
        import casadi as ca

        if reading not in self.symbols:
            self.symbols[reading] = ca.SX.sym(reading.name, self._size(reading))
        return self.symbols[reading]


def instant_entries(
    thing: Mechanism | Model, owner: str, what: str, function: Callable[[Any], Any], tables: WrittenTables
) -> Entries:
    """The function `what` of an instant as entries: what it reads, its expressions, and the values that they share."""
    import casadi as ca

    instant = RecordedInstant(thing)
    try:
        column = column_of(function(instant))
    except CardanError as error:
        raise ModelError(f"{owner}: {error}") from None
    except Exception as error:
        raise ModelError(
            f"{owner}: its {what} cannot be written as expressions of the instant: {type(error).__name__}: {error}"
        ) from None
    used = {reading: x for reading, x in instant.symbols.items() if ca.depends_on(column, x)}
    names = dict(zip(used, _distinct(used), strict=True))
    graph = ca.Function("law", [instant.t, *used.values()], [column])
    ports = [("t", 1), *((names[reading], x.numel()) for reading, x in used.items())]
    text = printed(owner, graph, lambda port, k: Name(ports[port][0], (k,) if ports[port][1] > 1 else ()), tables)
    outputs = [calculated(x) for x in text.outputs[0]]
    reads = {names[reading]: _reading(reading) for reading in used}
    entries: Entries = {"reads": reads} if reads else {}
    return entries | {what: outputs[0] if len(outputs) == 1 else outputs} | shared(text)


def _distinct(readings: dict[Reading, Any]) -> Iterator[str]:
    seen: set[str] = set()
    for reading in readings:
        name = next(n for k in range(1, 10_000) if (n := reading.name + (f"_{k}" if k > 1 else "")) not in seen)
        seen.add(name)
        yield name


def _reading(reading: Reading) -> Entries:
    point = [number(x) for x in reading.point]
    return {reading.what: reading.of} | ({"point": point} if any(reading.point) else {})


def signal_entries(thing: Mechanism | Model, signal: Signal, tables: WrittenTables) -> Entries:
    """A signal as entries."""
    entries: Entries = {"unit": signal.unit} if signal.unit else {}
    function = signal.function if signal.recorded is None else signal.at
    assert function is not None
    return entries | instant_entries(thing, signal.owner, "value", function, tables)


def variable_entries(thing: Mechanism | Model, variable: Variable, tables: WrittenTables) -> Entries:
    """A variable as entries."""
    values = [number(x) for x in variable.value]
    entries: Entries = {"value": values[0] if len(values) == 1 else values}
    entries |= {"unit": variable.unit} if variable.unit else {}
    if variable.slope:
        return entries | {"linear": "true"}
    if variable.update is not None:
        entries |= {"every": number(variable.every)}
        return entries | instant_entries(thing, variable.owner, "update", variable.update, tables)
    if variable.rate is not None:
        entries |= instant_entries(thing, variable.owner, "rate", variable.rate, tables)
    return entries


def written_variables(thing: Mechanism | Model) -> tuple[Variable, ...]:
    """The variables that a file lists: not those that an element, or an input of straight lines, brings with it."""
    slopes = {x.slope for x in thing.variables}
    return tuple(x for x in thing.variables if not x.element and x.name not in slopes)
