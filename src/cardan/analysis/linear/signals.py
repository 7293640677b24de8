"""Inputs and outputs of a linear model, by name.

A name is `kind.element`, such as `tau.crank` or `position.tool`; the tables `INPUTS` and `OUTPUTS` have every kind. The
kind may be left out where an element of that name is of one kind only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from cardan.algebra.matrix import Matrix, is_symbol, stack
from cardan.errors import CardanError, InputError, UnknownNameError, nearest
from cardan.formulation.dynamics import potential_energy, time_of
from cardan.formulation.formulation import Formulation, tree_rates
from cardan.formulation.instant import Instant, Seen
from cardan.formulation.kinematics import kinematics_of_tree
from cardan.formulation.quantity import Inputs, Quantity, fixed
from cardan.formulation.readings import acting
from cardan.formulation.spatial import SPATIAL
from cardan.functions.constraints import multipliers, reactions
from cardan.functions.derivatives import with_derivatives
from cardan.functions.energy import power
from cardan.model.graph_digest import graph_digest
from cardan.model.memory import RecentSlot
from cardan.model.model import Model
from cardan.model.parameter import find_parameter
from cardan.model.plain_symbols import plain_symbols
from cardan.model.tree import GROUND
from cardan.model.values import shown
from cardan.results.trajectory.quantities import SCREW, WRENCH, XYZ
from cardan.structure.kernels import function_of, tree_quantity

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from cardan.analysis.linear.operating_point import OperatingPoint

Names = str | Sequence[str] | None
WRENCH_UNITS = ("N m",) * 3 + ("N",) * 3


# Inputs.


@dataclass(frozen=True)
class InputSignal:
    """One input: its name and unit, what it is a number of (`tau`, `wrenches`, `parameters` or `motion`), and which."""

    name: str
    unit: str
    of: str
    number: int


@dataclass(frozen=True)
class InputKind:
    """A kind of input: `elements(model)` are the names it has, `signals(model, element)` its inputs."""

    about: str
    elements: Callable[[Model], Sequence[str]]
    signals: Callable[[Model, str], list[InputSignal]]
    one_by_one: bool = False
    """Whether an element's components have names of their own after a dot."""
    bare: bool = True
    """Whether the name of an element alone may mean it."""


def _coordinates(model: Model) -> list[str]:
    """Names of tree joints, and of the single coordinates of those that have several."""
    joints = [model.joints[link.joint].name for link in model.tree.links if link.kind.nv]
    return [*joints, *(name for name in model.coordinate_names if name not in joints)]


def _places(model: Model, name: str) -> list[int]:
    """Numbers among the tree's rates of a joint or a single coordinate."""
    if name in model.coordinate_names:
        return [model.coordinate_names.index(name)]
    return list(range(*model.v_slice(name).indices(model.nv)))


def rate_units(model: Model) -> list[str]:
    """Unit of each of the tree's rates."""
    return [unit for link in model.tree.links for unit in link.kind.v_units]


def coordinate_unit(rate_unit: str) -> str:
    """Unit of a coordinate's change from that of its rate."""
    return rate_unit.removesuffix("/s")


def _tau(model: Model, name: str) -> list[InputSignal]:
    units = ["N" if unit == "m/s" else "N m" for unit in rate_units(model)]
    return [InputSignal(f"tau.{model.coordinate_names[k]}", units[k], "tau", k) for k in _places(model, name)]


def _wrench(model: Model, body: str) -> list[InputSignal]:
    first = 6 * model.body_index(body)
    return [
        InputSignal(f"wrench.{body}.{label}", unit, "wrenches", first + i)
        for i, (label, unit) in enumerate(zip(WRENCH, WRENCH_UNITS, strict=True))
    ]


def _motion(model: Model, name: str) -> list[InputSignal]:
    number = [c.name for c in model.couplings].index(name)
    unit = model.couplings[number].labels(model.joints)[0].unit
    parts = (("value", unit), ("rate", f"{unit}/s"), ("acceleration", f"{unit}/s^2"))
    return [InputSignal(f"motion.{name}.{part}", u, "motion", 3 * number + i) for i, (part, u) in enumerate(parts)]


def parameter_signals(model: Model, name: str) -> list[InputSignal]:
    """The numbers of a free parameter, or one of them, by name."""
    whole = name if name in model.parameters.names else name.rpartition("[")[0]
    found, at = model.parameters[whole], model.parameters.slice_of(whole)
    labels = [""] if found.size == 1 else [f"[{k}]" for k in range(found.size)]
    signals = [InputSignal(f"{whole}{label}", found.unit, "parameters", at.start + k) for k, label in enumerate(labels)]
    return signals if whole == name else [s for s in signals if s.name == name]


def _numbers(model: Model, states: bool) -> list[str]:
    """Names of variables that are states, or of all other free parameters, and of the single numbers of each."""
    own = {x.name for x in model.variables if x.is_state}
    names = [x for x in model.parameters.names if (x in own) == states]
    several = [x for x in names if model.parameters[x].size > 1]
    return [*names, *(s.name for x in several for s in parameter_signals(model, x))]


def _drive(model: Model, name: str) -> list[InputSignal]:
    force = next(f for f in model.forces if f.name == name)
    joint = model.joints[force.on[0]].name
    return [InputSignal(f"{name}{s.name[len(f'tau.{joint}') :]}", s.unit, s.of, s.number) for s in _tau(model, joint)]


INPUTS: dict[str, InputKind] = {
    "tau": InputKind("forces of drives along the coordinates of tree joints", _coordinates, _tau),
    "drive": InputKind(
        "forces added to a drive element",
        lambda m: [f.name for f in m.forces if f.kind.name == "drive" and f.on[0] not in m.cuts], _drive,
    ),
    "motion": InputKind(
        "changes of the value, rate and acceleration of a prescribed motion or of a coupling's right side",
        lambda m: [c.name for c in m.couplings], _motion, one_by_one=True,
    ),
    "wrench": InputKind(
        "moment and force on a body at its origin, in its own axes", lambda m: m.body_names, _wrench, one_by_one=True
    ),
    "parameters": InputKind(
        "free parameters or held variables", lambda m: _numbers(m, states=False), parameter_signals
    ),
}  # fmt: skip
"""Kinds of inputs."""


def read_inputs(owner: str, model: Model, names: Any) -> list[InputSignal]:
    """Inputs by name; None are all drives of the tree."""
    if names is None:
        return [signal for name in model.coordinate_names for signal in _tau(model, name)]
    names = (names,) if isinstance(names, str) else names
    if not isinstance(names, Iterable) or isinstance(names, bytes):
        raise InputError(f"{owner}: inputs must be names, such as ['tau.{_any(_coordinates(model))}'], got {names!r}")
    found: list[InputSignal] = []
    for name in names:
        kind, element = _resolved(owner, "input", model, INPUTS, name)
        elements = _all_elements(model, kind) if element is None else [element]
        if not elements:
            raise InputError(f"{owner}: input {name!r}: model {model.name!r} has no {kind.about}")
        for one in elements:
            stem, _, part = one.rpartition(".")
            whole = one in kind.elements(model)
            signals = kind.signals(model, one if whole else stem)
            found += signals if whole else [s for s in signals if s.name.endswith(f".{part}")]
    _require_different(owner, "inputs", [s.name for s in found])
    return found


def _any(names: Sequence[str]) -> str:
    return names[0] if names else "joint"


def _resolved(owner: str, what: str, model: Model, table: Mapping[str, Any], name: Any) -> tuple[Any, str | None]:
    """The kind and element that a name means; the element is None for all of the kind."""
    if not isinstance(name, str):
        raise InputError(f"{owner}: an {what} is named by text, got {shown(name)}")
    if name in table:
        return table[name], None
    head, _, tail = name.partition(".")
    if head in table and _has(table[head], model, tail):
        return table[head], tail
    meant = [key for key, kind in table.items() if kind.bare and _has(kind, model, name)]
    if len(meant) == 1:
        return table[meant[0]], name
    if meant:
        ways = " or ".join(repr(f"{key}.{name}") for key in meant)
        raise InputError(f"{owner}: {what} {name!r} has several meanings; write {ways}")
    if head in table:
        known = table[head].elements(model)
        raise UnknownNameError(
            f"{owner}: {what} {name!r}: {tail!r} is not known to {head!r} in model {model.name!r}"
            f"{nearest(tail, known) or ', which has none'}"
        )
    if table is INPUTS and name in _numbers(model, states=True):
        raise InputError(f"{owner}: input {name!r} has a rate and is a state; it is among the outputs, and no input")
    if table is INPUTS and _can_be_freed(model, name):
        raise UnknownNameError(f"{owner}: input {name!r} is not a free parameter; free it with model.free({name!r})")
    known = [*table, *(f"{key}.{element}" for key, kind in table.items() for element in kind.elements(model))]
    raise UnknownNameError(f"{owner}: {what} {name!r} is not known in model {model.name!r}{nearest(name, known)}")


def _can_be_freed(model: Model, name: str) -> bool:
    try:
        find_parameter(model, name)
    except CardanError:
        return False
    return True


def _has(kind: Any, model: Model, element: str) -> bool:
    known = kind.elements(model)
    if element in known:
        return True
    stem, _, part = element.rpartition(".")
    if kind.elements is _no_element:
        return not stem and any(s.name == f".{part}" for s in kind.signals(model, ""))
    return kind.one_by_one and stem in known and any(s.name.endswith(f".{part}") for s in kind.signals(model, stem))


def _require_different(owner: str, what: str, names: list[str]) -> None:
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise InputError(f"{owner}: {what} name {twice[0]!r} twice")


# Outputs.


@dataclass(frozen=True)
class MovingInstant(Instant):
    """An instant with accelerations `a` (nv,), for outputs."""

    a: Any = None

    def acceleration(self, body: str, point: Sequence[float] = (0.0, 0.0, 0.0)) -> Matrix:
        """Acceleration (3,) of a point of a body or frame, in ground components, m/s^2; gravity is not in it."""
        return self._rate(self.velocity(body, point))

    def angular_acceleration(self, body: str) -> Matrix:
        """Angular acceleration (3,) of a body or frame, in ground components, rad/s^2."""
        return self._rate(self.angular_velocity(body))

    def _rate(self, x: Matrix) -> Matrix:
        import casadi as ca

        return ca.jtimes(x, self.q, tree_rates(self.model, self.q, self.v)) + ca.jtimes(x, self.v, self.a)


Write = Callable[[MovingInstant, Inputs, str], Matrix]


@dataclass(frozen=True)
class OutputKind:
    """A kind of output: which elements it is of, names and units of its components, and how it is computed.

    One that is written as an expression has `write`; the others have `partial`, which gives derivatives by name.
    """

    about: str
    elements: Callable[[Model], Sequence[str]]
    labels: Callable[[Model, str], Sequence[tuple[str, str]]]
    write: Write | None = None
    partial: Callable[[OperatingPoint, Formulation, str, tuple[str, ...]], Mapping[str, Any]] | None = None
    by_rates: bool = False
    """Whether the output is the integral of what is written: its derivative by `q` is that by `v`."""
    one_by_one: bool = False
    bare: bool = False
    plain: bool = False
    """Whether the names of its outputs are those of the elements alone."""
    own: Any = None
    """The user's function."""

    def signals(self, model: Model, element: str) -> list[OutputSignal]:
        """Components, for single ones to be named."""
        return [OutputSignal(f"{element}.{label}", unit, self, element, k) for k, (label, unit) in
                enumerate(self.labels(model, element))]  # fmt: skip


@dataclass(frozen=True)
class OutputSignal:
    """One output: its name and unit, its kind, the element, and its number among the components."""

    name: str
    unit: str
    kind: OutputKind
    element: str
    number: int


def _frames(model: Model) -> list[str]:
    return [*model.body_names, *(f for f in model.frame_names if f not in model.body_names)]


def _no_element(model: Model) -> list[str]:
    return []


def _axes(unit: str) -> Callable[[Model, str], list[tuple[str, str]]]:
    return lambda model, element: [(axis, unit) for axis in XYZ]


def _each_coordinate(unit: Callable[[str], str]) -> Callable[[Model, str], list[tuple[str, str]]]:
    def labels(model: Model, element: str) -> list[tuple[str, str]]:
        units = rate_units(model)
        return [(model.coordinate_names[k], unit(units[k])) for k in _places(model, element)]

    return labels


def _rows(column: str) -> Callable[..., dict[str, Any]]:
    def partial(point: OperatingPoint, formulation: Formulation, element: str, by: tuple[str, ...]) -> dict[str, Any]:
        return {column: np.eye(point.model.nv)[_places(point.model, element)]}

    return partial


def _graph(name: str) -> Write:
    def write(s: MovingInstant, inputs: Inputs, element: str) -> Matrix:
        return tree_quantity("spatial", name).graph(s.model, inputs)[0]

    return write


def _potential(s: MovingInstant, inputs: Inputs, element: str) -> Matrix:
    return potential_energy(tree_quantity("spatial", "potential_energy")).graph(s.model, inputs)[0]


def _energy(s: MovingInstant, inputs: Inputs, element: str) -> Matrix:
    return _potential(s, inputs, element) + tree_quantity("spatial", "kinetic_energy").graph(s.model, inputs)[0]


def _force_labels(model: Model, name: str) -> list[tuple[str, str]]:
    force = next(f for f in model.forces if f.name == name)
    if force.kind.on == "joint":
        along = force.part_of(model.joints[force.on[0]].kind).v_units
        units = ["N" if unit == "m/s" else "N m" for unit in along]
        return [("", units[0])] if len(units) == 1 else [(str(k), unit) for k, unit in enumerate(units)]
    return list(zip(WRENCH, WRENCH_UNITS, strict=True))


def _force(s: MovingInstant, inputs: Inputs, name: str) -> Matrix:
    kin, t = kinematics_of_tree(s.model, s.q, s.v), s.t
    force = next(f for f in s.model.forces if f.name == name)
    if force.kind.on == "joint":
        return force.law(t, *force.picked(*kin.joint(force.on[0])))
    acting = force.law(t, [kin.pose(b) for b in force.on], [kin.twist(b) for b in force.on])
    return [f for b, f in zip(force.on, acting, strict=True) if b != GROUND][-1]


def _state_labels(model: Model, name: str) -> list[tuple[str, str]]:
    whole = model.parameters.names
    return [(s.name[len(name) :] if name in whole else "", s.unit) for s in parameter_signals(model, name)]


def _named(s: MovingInstant, inputs: Inputs, name: str) -> Matrix:
    """A variable or signal by name, or one of its numbers."""
    if not name.endswith("]"):
        return s[name]
    whole, _, k = name[:-1].rpartition("[")
    return s[whole][int(k)]


def _signal_names(model: Model) -> list[str]:
    several = [name for name in model.signal_names if _size_of_signal(model, name) > 1]
    return [*model.signal_names, *(f"{name}[{k}]" for name in several for k in range(_size_of_signal(model, name)))]


def _size_of_signal(model: Model, name: str) -> int:
    signal = model.signal(name)
    assert signal is not None
    return signal.size_in(model)


def _signal_labels(model: Model, name: str) -> list[tuple[str, str]]:
    signal = model.signal(name if name in model.signal_names else name.rpartition("[")[0])
    unit, size = getattr(signal, "unit", ""), 1
    if name in model.signal_names:
        size = _size_of_signal(model, name)
    return [("", unit)] if size == 1 else [(f"[{k}]", unit) for k in range(size)]


def _efforts(model: Model) -> list[str]:
    return [f"{c.name}.effort" for c in acting(model)]


def _effort_labels(model: Model, name: str) -> list[tuple[str, str]]:
    labels = acting(model)[_efforts(model).index(name)].labels(model)
    return labels if len(labels) > 1 else [("", unit) for _, unit in labels]


def _effort(s: MovingInstant, inputs: Inputs, name: str) -> Matrix:
    seen = Seen(kinematics_of_tree(s.model, s.q, s.v), s.t)
    return stack(*acting(s.model)[_efforts(s.model).index(name)].efforts(seen))


def _reactions(point: OperatingPoint, formulation: Formulation, joint: str, by: tuple[str, ...]) -> dict[str, Any]:
    number = point.model.joint_names.index(joint)
    found = reactions(
        point.model, point.q, point.v, point.tau, wrenches=point.wrenches, t=point.t, formulation=formulation,
        by=_asked(point, by, "q", "v", "tau", "wrenches", "parameters"),
    )  # fmt: skip
    return {name: D[..., number, :, :] if name != "wrenches" else D[..., number, :, :, :] for name, D in
            found.by.items()}  # fmt: skip


def _multipliers(point: OperatingPoint, formulation: Formulation, element: str, by: tuple[str, ...]) -> dict[str, Any]:
    if point.wrenches is not None or "wrenches" in by:
        raise InputError(
            "linearise: multipliers are not known under wrenches on bodies; ask for 'reactions', or leave them out"
        )
    wanted = _asked(point, by, "q", "v", "tau", "parameters")
    way = formulation if formulation.in_tree else SPATIAL  # rows are named in the tree's coordinates
    found = multipliers(point.model, point.q, point.v, point.tau, t=point.t, formulation=way, by=wanted)
    return dict(found.by)


def _power(point: OperatingPoint, formulation: Formulation, element: str, by: tuple[str, ...]) -> dict[str, Any]:
    if point.wrenches is not None or "wrenches" in by:
        raise InputError("linearise: 'power' is not known under wrenches on bodies; leave it or them out")
    wanted = _asked(point, by, "q", "v", "tau", "parameters")
    found = power(point.model, point.q, point.v, point.tau, t=point.t, by=wanted)
    return {name: D[..., None, :] for name, D in found.by.items()}


def _asked(point: OperatingPoint, by: tuple[str, ...], *known: str) -> tuple[str, ...]:
    return tuple(name for name in known if name in by)


def _multiplier_labels(model: Model, element: str) -> list[tuple[str, str]]:
    return [(label.name, label.force_unit) for label in model.rows]


def _wrench_labels(model: Model, element: str) -> list[tuple[str, str]]:
    return list(zip(WRENCH, WRENCH_UNITS, strict=True))


def _screw_labels(angular: str, linear: str) -> Callable[[Model, str], list[tuple[str, str]]]:
    return lambda model, element: [(label, angular if k < 3 else linear) for k, label in enumerate(SCREW)]


OUTPUTS: dict[str, OutputKind] = {
    "q": OutputKind(
        "coordinates of tree joints", _coordinates, _each_coordinate(coordinate_unit), partial=_rows("q"), bare=True
    ),
    "v": OutputKind("rates of tree joints", _coordinates, _each_coordinate(str), partial=_rows("v")),
    "a": OutputKind(
        "accelerations of tree joints", _coordinates, _each_coordinate(lambda unit: f"{unit}^2"), partial=_rows("a")
    ),
    "position": OutputKind(
        "origin of a body or frame, ground axes", _frames, _axes("m"), lambda s, x, f: s.position(f), one_by_one=True,
        bare=True,
    ),
    "velocity": OutputKind(
        "its velocity, ground axes", _frames, _axes("m/s"), lambda s, x, f: s.velocity(f), one_by_one=True
    ),
    "acceleration": OutputKind(
        "its acceleration, ground axes", _frames, _axes("m/s^2"), lambda s, x, f: s.acceleration(f), one_by_one=True
    ),
    "rotation": OutputKind(
        "rotation of a body or frame, as a vector in ground axes", _frames, _axes("rad"),
        lambda s, x, f: s.angular_velocity(f), by_rates=True, one_by_one=True,
    ),
    "angular_velocity": OutputKind(
        "its angular velocity, ground axes", _frames, _axes("rad/s"), lambda s, x, f: s.angular_velocity(f),
        one_by_one=True,
    ),
    "angular_acceleration": OutputKind(
        "its angular acceleration, ground axes", _frames, _axes("rad/s^2"), lambda s, x, f: s.angular_acceleration(f),
        one_by_one=True,
    ),
    "energy": OutputKind("kinetic and potential energy", _no_element, lambda m, e: [("", "J")], _energy),
    "kinetic_energy": OutputKind(
        "kinetic energy", _no_element, lambda m, e: [("", "J")], _graph("kinetic_energy")
    ),
    "potential_energy": OutputKind(
        "potential energy of gravity and springs", _no_element, lambda m, e: [("", "J")], _potential
    ),
    "momentum": OutputKind(
        "momentum about the ground's origin", _no_element, _screw_labels("N m s", "N s"), _graph("momentum")
    ),
    "center_of_mass": OutputKind("centre of mass of all bodies", _no_element, _axes("m"), _graph("center_of_mass")),
    "force": OutputKind(
        "force of an element along its joint, or its wrench on its last body in the body's axes",
        lambda m: [f.name for f in m.forces], _force_labels, _force, one_by_one=True, bare=True,
    ),
    "state": OutputKind(
        "variables with a rate", lambda m: _numbers(m, states=True), _state_labels, _named,
        bare=True, plain=True,
    ),
    "signal": OutputKind(
        "signals and outputs of controllers", _signal_names, _signal_labels, _named, bare=True, plain=True
    ),
    "effort": OutputKind(
        "efforts of controllers", _efforts, _effort_labels, _effort, one_by_one=True,
        bare=True, plain=True,
    ),
    "reactions": OutputKind(
        "wrench of a joint on its child, at and in the joint frame", lambda m: m.joint_names, _wrench_labels,
        partial=_reactions, one_by_one=True,
    ),
    "multipliers": OutputKind(
        "multipliers of the constraint rows", _no_element, _multiplier_labels, partial=_multipliers
    ),
    "power": OutputKind("power that enters", _no_element, lambda m, e: [("", "W")], partial=_power),
}  # fmt: skip
"""Kinds of outputs."""


def read_outputs(owner: str, model: Model, names: Any) -> list[OutputSignal]:
    """Outputs by name; a dict has names of the user's own, for names of the table or functions of an instant."""
    if isinstance(names, str):
        names = (names,)
    if not isinstance(names, Iterable) or isinstance(names, bytes):
        raise InputError(f"{owner}: outputs must be names, such as ['q.{_any(_coordinates(model))}'], got {names!r}")
    given = list(names.items()) if isinstance(names, Mapping) else [(None, name) for name in names]
    found: list[OutputSignal] = []
    for own, name in given:
        if own is not None and not isinstance(own, str):
            raise InputError(f"{owner}: an output is named by text, got {shown(own)}")
        if callable(name):
            if own is None:
                raise InputError(f"{owner}: an output that is a function needs a name: outputs={{'name': function}}")
            found += _own(owner, model, own, name)
            continue
        kind, element = _resolved(owner, "output", model, OUTPUTS, name)
        key = next(key for key, other in OUTPUTS.items() if other is kind)
        elements = _all_elements(model, kind) if element is None else [element]
        several: list[OutputSignal] = []
        for one in elements:
            whole = one == "" or one in kind.elements(model)
            stem, _, part = one.rpartition(".")
            of = one if whole else stem
            for k, (label, unit) in enumerate(kind.labels(model, of)):
                if whole or label == part:
                    several.append(OutputSignal(_output_name(key, of, label), unit, kind, of, k))
        if not several:
            raise InputError(f"{owner}: output {name!r}: model {model.name!r} has no {kind.about}")
        if own is not None:
            ends = [kind.labels(model, s.element)[s.number][0] for s in several]
            several = [
                replace(s, name=own if len(several) == 1 else f"{own}.{end}")
                for s, end in zip(several, ends, strict=True)
            ]
        found += several
    _require_different(owner, "outputs", [s.name for s in found])
    return found


def _all_elements(model: Model, kind: InputKind | OutputKind) -> list[str]:
    """Every element once, "" for a kind that has none."""
    known = list(kind.elements(model))
    known = [name for name in known if name.rpartition("[")[0] not in known]  # single numbers are in the whole
    return known or ([""] if kind.elements is _no_element else [])


def _output_name(key: str, element: str, label: str) -> str:
    if OUTPUTS[key].elements is _coordinates:
        return f"{key}.{label}"
    if label.startswith("["):
        element, label = element + label, ""
    return ".".join(part for part in ("" if OUTPUTS[key].plain else key, element, label) if part)


def _own(owner: str, model: Model, name: str, function: Callable[[MovingInstant], Any]) -> list[OutputSignal]:
    """A user's function of an instant, traced once for its size."""
    import casadi as ca

    def write(s: MovingInstant, inputs: Inputs, element: str) -> Matrix:
        try:
            with plain_symbols():
                value = function(s)
        except CardanError as error:
            raise InputError(f"{owner}: output {name!r}: {error}") from None
        except Exception as error:
            raise InputError(
                f"{owner}: output {name!r}: its expression failed on symbols: {type(error).__name__}: {error}; use "
                "arithmetic and casadi functions of the instant's t, q, v, a"
            ) from None
        if isinstance(value, list | tuple | np.ndarray):
            value = ca.vertcat(*value)
        if not is_symbol(value) or 1 not in value.shape:
            raise InputError(f"{owner}: output {name!r} must be a number or column of the instant, got {shown(value)}")
        for symbol in ca.symvar(value):
            if not any(ca.depends_on(x, symbol) for x in inputs.values() if x.numel()):
                raise InputError(f"{owner}: output {name!r} has the symbol {symbol}, which is not of the instant")
        return ca.vec(value)

    size = _traced_size(model, write)
    every = [(str(k), "") for k in range(size)] if size > 1 else [("", "")]
    kind = OutputKind(name, _no_element, lambda m, e: every, write, own=function)
    return [OutputSignal(f"{name}.{label}" if label else name, "", kind, "", k) for k, (label, _) in enumerate(every)]


def _traced_size(model: Model, write: Write) -> int:
    quantity = Quantity("output", _PORTS, (("y", fixed()),), write=lambda m, x: [write(_instant(m, x), x, "")])
    return int(function_of(model, quantity).size1_out(0))


# Derivatives of the outputs.

_PORTS = ("q", "v", "a", "t")
_WRITTEN: RecentSlot[tuple[Any, ...], Quantity] = RecentSlot("outputs of linear models", 32)


def _instant(model: Model, inputs: Inputs) -> MovingInstant:
    return MovingInstant(model, time_of(inputs), inputs["q"], inputs["v"], a=inputs["a"])


def output_slopes(
    owner: str, point: OperatingPoint, formulation: Formulation, signals: Sequence[OutputSignal], a: NDArray[Any],
    by: tuple[str, ...],
) -> dict[str, NDArray[Any]]:  # fmt: skip
    """Partial derivatives (..., outputs, columns) of the outputs by `q`, `v`, `a` and by those of `by`.

    `a` (..., nv) are the accelerations at the point. By wrenches there are 6 nb columns.
    """
    model = point.model
    sizes = {"q": model.nv, "v": model.nv, "a": model.nv, "tau": model.nv, "wrenches": 6 * model.nb,
             "parameters": model.parameters.size}  # fmt: skip
    batch = np.broadcast_shapes(point.batch, a.shape[:-1])
    found = {name: np.zeros((*batch, len(signals), sizes[name])) for name in dict.fromkeys(("q", "v", "a", *by))}
    groups: dict[tuple[int, str], list[int]] = {}
    for k, signal in enumerate(signals):
        groups.setdefault((id(signal.kind), signal.element), []).append(k)
    written = [(signals[own[0]], own) for own in groups.values() if signals[own[0]].kind.write is not None]
    if written:
        _place_written(owner, point, [first for first, _ in written], [own for _, own in written], signals, a, found)
    for own in groups.values():
        kind, element = signals[own[0]].kind, signals[own[0]].element
        if kind.partial is None:
            continue
        slopes = kind.partial(point, formulation, element, ("q", "v", *by))
        rows = [signals[k].number for k in own]
        for name, D in slopes.items():
            flat = D.reshape(*D.shape[:-2], -1) if name == "wrenches" else D
            found[name][..., own, :] = flat[..., rows, :]
    return found


def _place_written(
    owner: str, point: OperatingPoint, firsts: list[OutputSignal], places: list[list[int]],
    signals: Sequence[OutputSignal], a: NDArray[Any], found: dict[str, NDArray[Any]],
) -> None:  # fmt: skip
    """Those that are written as expressions, from one kernel."""
    model = point.model
    counts = [len(s.kind.labels(model, s.element)) for s in firsts]
    quantity = _written(model, firsts, sum(counts))
    by = ("q", "v", "a", *(("parameters",) if "parameters" in found else ()))
    args = (point.q, point.v, a, point.t)
    slopes = with_derivatives(owner, model, by, "tangent", quantity, SPATIAL, args)
    first = 0
    for signal, own, count in zip(firsts, places, counts, strict=True):
        rows = [first + signals[k].number for k in own]
        first += count
        for name in by:
            D = slopes.by[name]
            if signal.kind.by_rates:  # a rotation: what is written is its rate
                if name == "q":
                    found["q"][..., own, :] = slopes.by["v"][..., rows, :]
                continue
            found[name][..., own, :] = D[..., rows, :]


def _written(model: Model, signals: Sequence[OutputSignal], count: int) -> Quantity:
    """All of some outputs as one quantity, whose name has a digest of what it computes."""

    def write(model: Model, inputs: Inputs) -> list[Matrix]:
        import casadi as ca

        s = _instant(model, inputs)
        return [ca.vertcat(*(ca.vec(x.kind.write(s, inputs, x.element)) for x in signals if x.kind.write))]

    def make() -> Quantity:
        plain = Quantity("outputs", _PORTS, (("y", fixed(count)),), write=write)
        return replace(plain, name=f"outputs {graph_digest(function_of(model, plain))}")

    return _WRITTEN.find(model, tuple((x.kind.own or id(x.kind), x.element) for x in signals), make)
