"""What a law reads of a mechanism: `Recorder` gives it symbols, and `Recorded` is its graph with what these stand for.

A law is run on symbols when the model is built. What it reads, each a `Sight`, are the arguments of its graph; an
observer (`formulation.instant`) fills them, whatever the coordinates.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cardan.errors import CardanError, InputError, ModelError, UnknownNameError, nearest
from cardan.lazy import cached_property
from cardan.model.measured_force import find_force
from cardan.model.parameter import find_parameter
from cardan.model.tree import GROUND
from cardan.model.values import shown

if TYPE_CHECKING:
    from cardan.model.model import Model

ORIGIN = (0.0, 0.0, 0.0)
ANSWERS = ("joint_wrench", "force", "acceleration", "angular_acceleration")
"""What is read of the answer of a mechanism to what acts on it: known only once all that acts is."""


AXES = ("joint", "child", "parent", "ground")
"""Axes of reactions; in all of them the moment is about the origin of the joint frame on the child."""
GROUND_AXES = ("world", "global", "inertial", "space")  # what others call the axes of the ground


def require_axes(what: str, axes: object) -> None:
    """Refuse axes of reactions that are none of `AXES`; `what` is how the message calls them."""
    if axes not in AXES:
        hint = "; those are 'ground' here" if axes in GROUND_AXES else ""
        raise InputError(f"{what} must be one of {', '.join(map(repr, AXES))}, got {axes!r}{hint}")


@dataclass(frozen=True)
class Sight:
    """One thing that a law reads: the method of the observer, its arguments, and the shape of what it gives."""

    what: str
    of: tuple[Any, ...]
    shape: tuple[int, int]

    @property
    def is_answer(self) -> bool:
        """Whether it depends on what acts at the same instant."""
        return self.what in ANSWERS

    @property
    def told(self) -> str:
        """What it is, for messages."""
        what, of = ("reaction", "joint ") if self.what == "joint_wrench" else (self.what.replace("_", " "), "")
        return f"the {what} of {of}{self.of[0]!r}"

    def at(self, s: Any) -> Any:
        """What an observer sees of it."""
        if self.what == "t":
            return s.t
        return s[self.of[0]] if self.what == "number" else getattr(s, self.what)(*self.of)


@dataclass(frozen=True)
class Recorded:
    """A law as a graph: its results as a function of what `sights` say."""

    function: Any
    sights: tuple[Sight, ...]

    def result(self, k: int, s: Any) -> Any:
        """Result k at what an observer sees; only what it depends on is looked at."""
        import casadi as ca

        needed = self.reads[k]
        given = [ca.SX(x.at(s)) if x in needed else ca.SX.zeros(*x.shape) for x in self.sights]
        return self.function.call(given)[k]

    @cached_property
    def reads(self) -> tuple[tuple[Sight, ...], ...]:
        """What each result depends on."""
        import casadi as ca

        ports = self.function.sx_in()
        found = []
        for result in self.function.call(ports):
            used = {x.element_hash() for x in ca.symvar(result)}
            pairs = zip(self.sights, ports, strict=True)
            found.append(tuple(own for own, port in pairs if any(x.element_hash() in used for x in port.elements())))
        return tuple(found)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what is computed again."""
        return {"function": self.function, "sights": self.sights}


class SensorReadings:
    """What sensors show, from what an observer sees; a class has `model` and the methods used here."""

    def reaction(self: Any, joint: str, axes: str = "joint") -> Any:
        """Moment and force (6,) of a joint on its child, N m and N, as `run.reaction` has them.

        The moment is about the origin of the joint frame on the child. Components are along the axes of that frame
        (`axes="joint"`), of the child body ("child"), of the parent body ("parent") or of the ground ("ground").
        """
        import casadi as ca

        wrench, own = self.joint_wrench(joint), self.model.joint(joint)
        require_axes(f"reaction of {joint!r}", axes)
        if axes == "joint":
            return wrench
        names = {GROUND: "ground", **dict(enumerate(self.model.body_names))}
        R = ca.SX(ca.DM(own.child_at.rotation))
        if axes != "child":
            R = self.rotation(names[own.child]) @ R
        if axes == "parent":
            R = self.rotation(names[own.parent]).T @ R
        return ca.vertcat(R @ wrench[:3], R @ wrench[3:])

    def accelerometer(self: Any, body: str, point: Sequence[float] = ORIGIN) -> Any:
        """What an accelerometer (3,) at a point of a body or frame shows, in its axes, m/s^2.

        That is the acceleration less gravity: 9.81 upwards at rest, and 0 in free fall.
        """
        import casadi as ca

        return self.rotation(body).T @ (self.acceleration(body, point) - ca.SX(ca.DM(self.model.gravity)))

    def gyroscope(self: Any, body: str) -> Any:
        """What a gyroscope (3,) on a body or frame shows: its angular velocity in its own axes, rad/s."""
        return self.rotation(body).T @ self.angular_velocity(body)


class Recorder(SensorReadings):
    """What a law is run on: gives symbols, and remembers what they stand for.

    It has the methods of `formulation.instant.Observer`, and own states and inputs of a controller, the `owner`, by
    their short names. `wires` are inputs that are functions of the instant or names of signals.
    """

    def __init__(self, model: Model, owner: str = "", wires: Any = None, path: tuple[str, ...] = ()) -> None:
        """Nothing is seen yet; `path` are signals that are recorded at present, each reading the next."""
        self.model, self._owner, self._wires, self._path = model, owner, wires or {}, path
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
        """A state or input of its own, a variable, a signal, the output of a controller, or a number of the model."""
        if name in self._wires:
            return self._wired(name)
        known = {x.name: x.value.size for x in self.model.variables}
        for full in (f"{self._owner}.{name}", name):
            if full in known:
                return self._see("number", (full,), known[full])
        signal = self.model.signal(name)
        if signal is not None:
            return self._see("number", (name,), signal.size_in(self.model, self._path))
        try:
            return self._see("number", (name,), find_parameter(self.model, name).size)
        except CardanError:
            near = [*known, *(x.removeprefix(f"{self._owner}.") for x in known if x.startswith(f"{self._owner}."))]
            near += [*self.model.signal_names, *self._wires]
            raise UnknownNameError(
                f"{name!r} is not a state or input of it, a variable, a signal or a number of the "
                f"model{nearest(name, near)}"
            ) from None

    def _wired(self, name: str) -> Any:
        """An input that another signal, or a function of the instant, gives."""
        import casadi as ca

        wire, size = self._wires[name]
        try:
            found = wire(self) if callable(wire) else self[wire]
            column = ca.vertcat(*(found if isinstance(found, list | tuple) else [found]))
        except CardanError as error:
            raise type(error)(f"input {name!r}: {error}") from None
        if size and column.numel() != size:
            of = "its function" if callable(wire) else repr(wire)
            raise ModelError(f"input {name!r} has {size} numbers, and {of} gives {column.numel()}")
        return ca.vec(column)

    def coordinate(self, joint: str) -> Any:
        """Coordinates of a joint."""
        return self._see("coordinate", (joint,), self._kind(joint).nq)

    def rate(self, joint: str) -> Any:
        """Rates of a joint."""
        return self._see("rate", (joint,), self._kind(joint).nv)

    def position(self, body: str, point: Sequence[float] = ORIGIN) -> Any:
        """Position (3,) of a point of a body or frame, in ground components, m."""
        return self._see("position", self._point(body, point), 3)

    def velocity(self, body: str, point: Sequence[float] = ORIGIN) -> Any:
        """Velocity (3,) of a point of a body or frame, in ground components, m/s."""
        return self._see("velocity", self._point(body, point), 3)

    def acceleration(self, body: str, point: Sequence[float] = ORIGIN) -> Any:
        """Acceleration (3,) of a point of a body or frame, in ground components, m/s^2; gravity is not in it."""
        return self._see("acceleration", self._point(body, point), 3)

    def rotation(self, body: str) -> Any:
        """Axes (3, 3) of a body or frame as columns, in ground components."""
        self.model.placement(body)
        return self._see("rotation", (body,), 3, 3)

    def angular_velocity(self, body: str) -> Any:
        """Angular velocity (3,) of a body or frame, in ground components, rad/s."""
        self.model.placement(body)
        return self._see("angular_velocity", (body,), 3)

    def angular_acceleration(self, body: str) -> Any:
        """Angular acceleration (3,) of a body or frame, in ground components, rad/s^2."""
        self.model.placement(body)
        return self._see("angular_acceleration", (body,), 3)

    def joint_wrench(self, joint: str) -> Any:
        """Moment and force (6,) of a joint on its child, at and in its joint frame."""
        self.model.joint(joint)
        return self._see("joint_wrench", (joint,), 6)

    def force(self, name: str) -> Any:
        """Force of an element, as `run["name.force"]` has it."""
        found = find_force(self.model, name)
        return self._see("load" if found.is_load else "force", (name,), found.size)

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


def record(
    owner: str, law: Callable[[Any], tuple[list[Any], Sequence[int]]], again: str, recorder: Recorder
) -> Recorded:
    """The graph of one run of a law on a recorder, which returns columns and how many numbers each has.

    Rejects symbols that are not of this run; `again` says then what the law did.
    """
    import casadi as ca

    from cardan.model.force import trace

    columns, sizes = law(recorder)
    ports = list(recorder.sights.values())
    if any(not ca.depends_on(ca.veccat(*ports), symbol) for symbol in ca.symvar(ca.vertcat(*columns))):
        raise ModelError(again)
    return Recorded(
        trace(owner, lambda: columns, ports, (), tuple(sizes), listed=True, what="law"), tuple(recorder.sights)
    )
