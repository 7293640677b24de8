"""The table of force elements: one row for each kind, with everything that any part of Cardan needs to know of it.

An element acts on bodies, by wrenches, or on a joint, by generalised forces along the joint's own coordinates. One on
several joints has no law of its own, but a row with a law (`model.law`).

    on bodies   law(f, t, poses, twists) -> wrenches   on each body, (moment, force), at its origin, its components
    on a joint  law(f, t, q, v) -> tau                 along the coordinates of the joint, from its own q and v
    energy      energy(f, poses) or energy(f, q): potential energy (J); None where there is none
    fields      the element's numbers: unit, form, rule, default, letter, meaning
    readings    what is read off it over time: length, rate, tension, power; with the arguments of the law

`f` is the element; the law reads its numbers as `f["stiffness"]`. A pose is `R`, `r`: axes and origin of the body in
ground components. A twist is angular part first, in body components. Units: N, m, rad, s. The laws are written for
symbols. A function that the user gives is run on symbols by `build` (`trace`) and is a graph from then on.

A `Coupling` is an equation between joint coordinates, linear or not, or a prescribed motion.
"""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cardan.algebra.free_number import expression, scalar, with_symbols
from cardan.algebra.matrix import Matrix, Scalar, constant, cos, dot, eye, is_symbol, sin, sqrt, stack, where, zeros
from cardan.algebra.rotation import TINY, cross, rotation_log, skew
from cardan.errors import InputError, ModelError
from cardan.lookup import called_functions, kind_of
from cardan.model.body import Joint
from cardan.model.field import (
    AXES,
    EACH,
    EFFORT,
    FUNCTIONS,
    MOMENT_AND_FORCE,
    NOT_NEGATIVE,
    POSE,
    POSITIVE,
    SIX_AXES,
    STIFFNESS,
    TABLE,
    VECTOR,
    WRENCHES,
    Field,
)
from cardan.model.graph_digest import graph_digest
from cardan.model.held_state import refuse_held_state
from cardan.model.plain_symbols import plain_symbols
from cardan.model.row import RowLabel
from cardan.model.table import Table, outside, require_smooth
from cardan.model.values import counted, floats

if TYPE_CHECKING:
    from cardan.model.joint import Kind as JointKind

# Added to a spring's squared length (m^2) before the root: the force is finite and smooth at zero length, and
# changes by less than 1e-16 of itself where the ends are a ten-thousandth of a millimetre apart.
SMOOTHING = 1e-30


class BodyPose(NamedTuple):
    """Where a body is: `rotation` (3, 3) from body to ground components, `position` (3) of its origin, m."""

    rotation: Matrix
    position: Matrix


@dataclass(frozen=True)
class Reading:
    """What can be read off an element at a state, as `run["spring.force"]`.

    Args:
        unit: SI; of an element along a joint "N m|N", for a turning and a sliding coordinate; of six components
            "N m and N".
        meaning: a few words, with the sign.
        of: with the arguments of the law, on symbols.
        labels: names of its components; `()` is a single number, None one number for each rate of the joint.

    In the table its name, too, may depend on the joint: "torque|force".

    """

    unit: str
    meaning: str
    of: Callable[..., Any]
    labels: tuple[str, ...] | None = ()


@dataclass(frozen=True)
class ElementReading:
    """A reading of one element: name, units and labels of its components (no labels: one number), meaning, graph."""

    force: Force
    name: str
    units: tuple[str, ...]
    labels: tuple[str, ...]
    meaning: str
    of: Callable[..., Any]

    @property
    def size(self) -> int:
        """How many numbers it has."""
        return max(len(self.labels), 1)

    @property
    def element(self) -> Force:
        """The element that it is read off."""
        return self.force

    def graph(self, t: Scalar, *at: Any) -> Matrix:
        """Record it, with the arguments of the element's law; what a user's function gives is checked."""
        if self.force.kind.is_own:
            return self.of(self.force, t, *at)
        what = f"reading {self.name!r}"
        return _column(self.force.owner, _run(self.force.owner, self.of, (self.force, t, *at), what), self.size, what)


@dataclass(frozen=True, eq=False)
class ForceKind:
    """One row of the table of force elements.

    Use one of your own with `Mechanism.force`, and register it with `cd.add_force` so that files can name it.

    Args:
        name: what messages and files call it.
        on: "bodies" or "joint"; "joints" of one whose only force is that of its row with a law.
        law: `law(f, t, poses, twists)` gives a wrench for each body; `law(f, t, q, v)` a force along each rate.
        energy: `energy(f, poses)` or `energy(f, q)`, potential energy (J); None where there is none.
        fields: its numbers by name, which the law reads as `f[name]`.
        bodies: how many bodies it acts on; 0 is any number.
        mark: how drawings show it: "spring", "damper", "bushing", "wrench", "torsion", "friction", "drive", "user" or
            "element".
        file_name: what files call it; by default its name.
        power: `power(f, poses, twists)` or `power(f, q, v)` (W), that of the law less what the energy takes up, where
            it is simpler than the two; by default it is computed from them.
        readings: what is read off it over time, by name (`cd.Reading`), beside what every element has: its force or
            wrench, power and energy.
        lawful: `lawful(f, joints)` gives its rows with laws, a `model.law.LawfulElement`, or None if it has none. Its
            `law` is then only what acts beside them.

    """

    name: str
    on: str
    law: Callable[..., Any]
    energy: Callable[..., Any] | None = None
    fields: Mapping[str, Field] = field(default_factory=dict)
    bodies: int = 0
    mark: str = "element"
    file_name: str = ""
    power: Callable[..., Any] | None = None
    readings: Mapping[str, Reading] = field(default_factory=dict)
    lawful: Callable[..., Any] | None = None

    def __post_init__(self) -> None:
        """Check what can be checked without an element."""
        if self.on not in ("bodies", "joint") and not (self.on == "joints" and self.lawful is not None):
            raise ModelError(f"force kind {self.name!r}: on must be 'bodies' or 'joint', got {self.on!r}")
        for name, number in self.fields.items():
            if not isinstance(number, Field):
                raise ModelError(f"force kind {self.name!r}: {name} in fields must be a cd.Field, got {number!r}")
        for name, reading in self.readings.items():
            if not isinstance(reading, Reading):
                raise ModelError(f"force kind {self.name!r}: {name} in readings must be a cd.Reading, got {reading!r}")

    @property
    def in_files(self) -> str:
        """Its name in files."""
        return self.file_name or self.name

    @property
    def is_own(self) -> bool:
        """Whether it is a row of Cardan's own table."""
        return FORCES.get(self.name) is self

    @property
    def function(self) -> str:
        """Name of the field that is a function of the user's; empty where there is none."""
        return next((name for name, number in self.fields.items() if number.form in FUNCTIONS), "")

    @property
    def free_fields(self) -> dict[str, Field]:
        """The numbers that `model.free` may name."""
        return {name: number for name, number in self.fields.items() if number.free and number.form not in FUNCTIONS}

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Pickle a row of Cardan's own table by its name."""
        return (_own_kind, (self.name,)) if self.is_own else super().__reduce_ex__(protocol)


@dataclass(frozen=True, eq=False)
class Force:
    """One force element: its kind, the bodies (index -1 is ground) or the joint it acts on, and its numbers.

    `function` is what the user wrote; in a built model it is the `casadi.Function` that tracing made of it. `graph` is
    the law (and energy) of a kind that is not Cardan's own, as a function of its arguments and of the free numbers.
    `along` are the numbers of the joint's coordinates that it acts along, () for all; `q` and `v` of its law are these.
    Of one on several joints it is the number of the coordinate of each, and the number `along` their coefficients.
    `texts` are what its fields of text say.
    """

    name: str
    kind: ForceKind
    on: tuple[int, ...]
    numbers: dict[str, np.ndarray] = field(default_factory=dict)
    function: Any = None
    graph: Any = None
    along: tuple[int, ...] = ()
    texts: dict[str, str] = field(default_factory=dict)

    @property
    def owner(self) -> str:
        """Its name in error messages."""
        return f"{self.kind.name} {self.name!r}"

    def __getitem__(self, name: str) -> Matrix:
        """A number (float) or an array (graph constant) of the element, for its law."""
        value = self.numbers[name]
        if value.ndim:
            return constant(value)
        return expression(scalar(value[()]))

    @property
    def free_fields(self) -> dict[str, Field]:
        """The numbers that it has and that `model.free` may name."""
        return {name: number for name, number in self.kind.free_fields.items() if name in self.numbers}

    def number(self, name: str, k: int = 0) -> Scalar:
        """One number, number k of several; 0 where the element has no such number."""
        return expression(scalar(self.numbers[name].ravel()[k])) if name in self.numbers else 0.0

    def part_of(self, kind: JointKind) -> JointKind:
        """The kind of its joint with the coordinates that it acts along."""
        return kind.part(self.along) if self.along else kind

    def joint_name(self, joints: Sequence[Joint]) -> str:
        """Name of its joint, with the number of the coordinate if it acts along one of several."""
        return joints[self.on[0]].name + "".join(f"[{k}]" for k in self.along)

    def picked(self, *columns: Matrix) -> tuple[Matrix, ...]:
        """Of coordinates, or rates, of its joint those that it acts along."""
        return tuple(x[list(self.along)] for x in columns) if self.along else columns

    def spread(self, tau: Matrix, nv: int) -> Matrix:
        """Forces along all rates of its joint, `nv`, from those along its own."""
        if not self.along:
            return tau
        whole = zeros(nv, None, tau)
        for k, own in zip(self.along, range(len(self.along)), strict=True):
            whole[k] = tau[own]
        return whole

    def law(self, t: Scalar, *at: Any) -> Any:
        """The law of its kind, at poses and twists or at `q` and `v` along it; of a user's as `build` traced it."""
        if self.graph is None:
            return self.kind.law(self, t, *at)
        if self.kind.on == "joint":
            return self._traced(t, *at)[0]
        poses, twists = at
        return self._traced(t, *(part for pose in poses for part in pose), *twists)[:-1]

    def energy(self, where: Any) -> Scalar:
        """Potential energy (J) at poses, or at a joint's `q`; 0 of a kind that has none."""
        if self.graph is None:
            return 0.0 if self.kind.energy is None else self.kind.energy(self, where)
        at = [where] if self.kind.on == "joint" else [part for pose in where for part in pose]
        rates = [0.0] * (self.graph.n_in() - 1 - len(at) - len(self._free))  # it does not depend on them
        return self._traced(0.0, *at, *rates)[-1]

    @property
    def _free(self) -> list[Any]:
        """The numbers that may be free, in the order in which the graph takes them."""
        return [expression(x) for name in self.kind.free_fields for x in self.numbers[name].flat]

    def _traced(self, *at: Any) -> list[Any]:
        """The graph's forces and, last, energy."""
        import casadi as ca

        return list(self.graph.call([ca.SX(x) for x in (*at, *self._free)]))

    @property
    def depends_on_time(self) -> bool:
        """Whether time appears in the law."""
        return depends(self.function, 0) or depends(self.graph, 0)

    @property
    def depends_on_coordinates(self) -> bool:
        """Whether the law, once traced, is along a joint and depends on where the joint is."""
        if self.kind.on == "bodies":
            return False
        stiff = self.kind is TORSION and bool(np.any(self.numbers["stiffness"]))
        return stiff or self.kind.lawful is not None or depends(self.function, 1) or depends(self.graph, 1)

    def traced(self, joints: Sequence[Joint]) -> Force:
        """The same element with the user's function, and the law of a user's kind, as graphs; validates both."""
        if self.function is None and self.kind.is_own:
            return self
        if isinstance(self.function, Table):
            return replace(self, function=self.function.with_integral())
        import casadi as ca

        t = ca.SX.sym("t")
        if self.kind.on == "joint":
            kind = self.part_of(joints[self.on[0]].kind)
            ports = [t, ca.SX.sym("q", kind.nq), ca.SX.sym("v", kind.nv)]
            arguments: tuple[Any, ...] = tuple(ports)
            still: tuple[Any, ...] = (ports[1],)
            sizes: tuple[int, ...] = (kind.nv,)
        else:
            poses = [BodyPose(ca.SX.sym("R", 3, 3), ca.SX.sym("r", 3)) for _ in self.on]
            twists = [ca.SX.sym("v", 6) for _ in self.on]
            ports = [t, *(part for pose in poses for part in pose), *twists]
            arguments, still, sizes = (t, poses, twists), (poses,), (6,) * len(self.on)
        listed = self.kind.on == "bodies" and self.kind.lawful is None
        if self.kind.lawful is not None and self.function is not None:
            sizes = (_length(self.owner, self.function, arguments),)
        result = self
        if self.function is not None:
            refuse_held_state(self.owner, self.function, "mechanism.controller(..., states=...)")
            result = replace(self, function=trace(self.owner, self.function, ports, arguments, sizes, listed))
        return result if self.kind.is_own else replace(result, graph=result._law(ports, arguments, still, sizes))

    def _law(self, ports: list[Any], arguments: tuple[Any, ...], still: tuple[Any, ...], sizes: tuple[int, ...]) -> Any:
        """Graph of the law and energy of a user's kind, over its arguments and the numbers that may be free."""
        import casadi as ca

        numbers, inputs = with_symbols(self.numbers, self.kind.free_fields)
        kind, varied = self.kind, replace(self, numbers=numbers)
        every = [*ports, *inputs]

        def law(*given: Any) -> Any:
            return kind.law(varied, *given)

        def energy(*given: Any) -> Any:
            return 0.0 if kind.energy is None else kind.energy(varied, *still)

        parts = [
            trace(self.owner, law, every, arguments, sizes, listed=kind.on == "bodies", what="law"),
            trace(self.owner, energy, every, arguments, (1,), what="energy"),
        ]
        if kind.power is not None:
            power = kind.power

            def dissipated(*given: Any) -> Any:
                return power(varied, *given[1:])

            parts.append(trace(self.owner, dissipated, every, arguments, (1,), what="power"))
        return ca.Function("law", every, [column for part in parts for column in part.call(every)])

    def readings(self, joints: Sequence[Joint], bodies: Sequence[str]) -> list[ElementReading]:
        """What can be read off it; `bodies` are the names of all bodies."""
        own = self.kind.readings
        left_out = {*own, "wrench"} if "force" in own else {*own}  # wrenches say less clearly what the force says
        of_all = {} if self.kind.lawful is not None else _READINGS_OF_ALL[self.kind.on]
        table = {**own, **{name: r for name, r in of_all.items() if name not in left_out}}
        if self.kind.energy is not None:
            table["energy"] = ENERGY
        along = self.part_of(joints[self.on[0]].kind).v_units if self.kind.on == "joint" else ()
        turns = [unit == "rad/s" for unit in along]
        found = []
        for names, reading in table.items():
            turning, _, sliding = names.partition("|")
            labels, units = reading.labels, _units_of(reading.unit, turns)
            if names == "wrench":  # one on each body
                ends = ["ground" if b < 0 else bodies[b] for b in self.on]
                labels = tuple(f"{end} {label}" if len(ends) > 1 else label for end in ends for label in SIX)
                units = units * len(ends)
            elif labels is None:
                labels = tuple(map(str, self.along or range(len(turns)))) if len(turns) > 1 else ()
            else:
                units = units if len(units) == len(labels) else units[:1] * max(len(labels), 1)
            name = turning if not sliding or all(turns) else sliding
            found.append(ElementReading(self, name, units, labels, reading.meaning, reading.of))
        return found

    def digest(self, place: Callable[[int], str]) -> bytes:
        """Digest of all that enters the equations; `place(joint)` says where a joint is in them."""
        on: list[Any] = list(self.on) if self.kind.on == "bodies" else [place(j) for j in self.on]
        more: list[Any] = [x for x in (self.along, sorted(self.texts.items())) if x]
        return digest(self.kind.name, [*on, *more], self.numbers, self.function, self.graph)


def coordinate_names(ends: Iterable[tuple[int, int]], joints: Sequence[Joint]) -> tuple[str, ...]:
    """Names of coordinates, by joint and number: that of the joint, with the number where it has several."""
    each = [(joints[j], k) for j, k in ends]
    return tuple(joint.name if joint.kind.nv == 1 else f"{joint.name}[{k}]" for joint, k in each)


@dataclass(frozen=True, eq=False)
class Coupling:
    """An equation `sum c_j q_j = g` between one-coordinate joints; `g` is `offset`, or a function of time (s).

    A prescribed motion is a coupling of one joint with coefficient 1. `added` are numbers, free where motions are
    inputs, that are added to the value, rate and acceleration of `g`.

    A relation is a coupling whose `function` is one of the joints' coordinates and must stay zero; in a built model its
    graph takes time before them. Its `coefficients` are then what the function grows by over each turn, per rad: nan
    where that is not the same everywhere. `unit` is that of the residual; by default that of the joints.

    `places` are the numbers of the coordinates of joints that have several; () is the first of each.
    """

    name: str
    what: str
    joints: tuple[int, ...]
    coefficients: np.ndarray
    offset: float = 0.0
    function: Any = None
    added: Any = None
    unit: str = ""
    places: tuple[int, ...] = ()

    @property
    def owner(self) -> str:
        """Its name in error messages."""
        return f"{self.what} {self.name!r}"

    @property
    def ends(self) -> list[tuple[int, int]]:
        """Joint and number of the coordinate, of each coordinate that it couples."""
        return list(zip(self.joints, self.places or (0,) * len(self.joints), strict=True))

    def coordinate_names(self, joints: Sequence[Joint]) -> tuple[str, ...]:
        """Name of each coordinate: that of its joint, with a number where it has several."""
        return coordinate_names(self.ends, joints)

    @property
    def is_relation(self) -> bool:
        """Whether it is a function of coordinates, not a sum of them."""
        return self.what == RELATION

    @property
    def depends_on_time(self) -> bool:
        """Whether the right-hand side changes with time."""
        return depends(self.function, 0)

    def labels(self, joints: Sequence[Joint]) -> list[RowLabel]:
        """Its one row, with the unit of its joints' coordinates; where they differ, of one with coefficient 1."""
        if self.unit:
            return [RowLabel(self.owner, self.name, self.unit)]
        units = [joints[j].kind.v_units[k].removesuffix("/s") for j, k in self.ends]
        units = [unit for unit, c in zip(units, self.coefficients, strict=True) if abs(c) == 1.0] or units
        return [RowLabel(self.owner, self.name, units[0])]

    def right_side(self, t: Scalar) -> tuple[Matrix, Matrix, Matrix]:
        """The right-hand side `g(t)` and its first two time derivatives."""
        import casadi as ca

        if self.function is None:
            found = (ca.SX(expression(self.offset)), ca.SX(1, 1), ca.SX(1, 1))
        else:
            s = ca.SX.sym("s")
            g = self.function(s)
            gdot = ca.jacobian(g, s)
            at_t: Any = ca.Function("g", [s], [g, gdot, ca.jacobian(gdot, s)])
            found = at_t(t)
        if self.added is not None:
            found = tuple(x + expression(more) for x, more in zip(found, self.added, strict=True))
        value, rate, acceleration = found
        return value, rate, acceleration

    def slopes(self, t: Scalar, x: Sequence[Matrix]) -> list[Scalar]:
        """What the residual grows by with each of the joints' coordinates `x`."""
        if not self.is_relation:
            return [float(c) for c in self.coefficients]
        return self.related(t, x, [0 * part for part in x])[1]

    def related(
        self, t: Scalar, x: Sequence[Matrix], rates: Sequence[Matrix]
    ) -> tuple[Matrix, list[Scalar], Matrix, Matrix]:
        """Of a relation the residual, its slopes by the coordinates `x`, and the right sides `gamma` and `beta`.

        `sum slope * rate = beta` and `sum slope * acceleration = gamma`.
        """
        import casadi as ca

        s, at, moving = ca.SX.sym("s"), ca.SX.sym("x", len(x)), ca.SX.sym("v", len(x))
        value = self.function(s, *ca.vertsplit(at))
        whole, rate = ca.vertcat(s, at), ca.vertcat(1, moving)
        first = ca.jtimes(value, whole, rate)
        parts = [value, ca.jacobian(value, at), -ca.jtimes(first, whole, rate), -ca.jacobian(value, s)]
        graph: Any = ca.Function("relation", [s, at, moving], parts)
        phi, slopes, gamma, beta = graph(t, ca.vertcat(*x), ca.vertcat(*rates))
        return phi, [slopes[k] for k in range(len(x))], gamma, beta

    def _traced_relation(self) -> Coupling:
        """The relation as a graph of time and coordinates, with what it grows by over a turn."""
        import casadi as ca

        t, x = ca.SX.sym("t"), [ca.SX.sym(f"q{k + 1}") for k in range(len(self.joints))]
        graph = trace(self.owner, self.function, [t, *x], tuple(x), (1,))
        require_smooth(self.owner, graph)
        grows = []
        for k in range(len(x)):
            if not depends(graph, k + 1):
                raise ModelError(
                    f"{self.owner}: its function does not depend on coordinate {k + 1} of {len(x)}; leave it out"
                )
            turned = [graph(0.0, *place) for place in _places(len(x), k)]
            change = np.array([float(turned[i + 1] - turned[i]) for i in (0, 2, 4)]) / (2 * np.pi)
            same = np.isfinite(change).all() and np.ptp(change) <= 1e-9 * max(1.0, float(np.abs(change).max()))
            grows.append(float(np.round(change[0], 12)) if same else np.nan)
        return replace(self, function=graph, coefficients=np.array(grows))

    def traced(self) -> Coupling:
        """The same coupling with its function of time as a graph; reject one that is not smooth at the start."""
        if self.function is None:
            return self
        if self.is_relation:
            return self._traced_relation()
        import casadi as ca

        t = ca.SX.sym("t")
        result = replace(self, function=trace(self.owner, self.function, [t], (t,), (1,)))
        require_smooth(self.owner, result.function)
        values = [float(x) for x in ca.Function("g", [t], list(result.right_side(t)))(0.0)]
        for what, value in zip(("value", "rate", "acceleration"), values, strict=True):
            if not np.isfinite(value):
                fix = outside(result.function) or "give a function smooth from t = 0 on"
                raise ModelError(f"{self.owner}: its {what} at t = 0 is {value:g}; {fix}")
        return result

    def digest(self, place: Callable[[int], str]) -> bytes:
        """Digest of all that enters the equations; `place(joint)` says where a joint is in them."""
        own = {"coefficients": self.coefficients, "offset": np.array(self.offset)}
        on: list[Any] = [place(j) for j in self.joints]
        return digest("coupling", [*on, *([self.places] if self.places else [])], own, self.function)


RELATION = "relation"
"""What a coupling that is a function of coordinates is called."""


def _places(n: int, k: int) -> list[list[float]]:
    """Three places of n coordinates that nothing singles out, each followed by the same a turn of coordinate k on."""
    found = []
    for start in (0.137, 0.731, 1.913):
        x = [start + 0.317 * i for i in range(n)]
        found += [x, [v + 2 * np.pi * (i == k) for i, v in enumerate(x)]]
    return found


def digest(what: str, on: Sequence[object], values: dict[str, np.ndarray], *graphs: Any) -> bytes:
    """Digest of an element: what it is, what it acts on, its numbers and its graphs."""
    texts = [graph_digest(graph) for graph in graphs if graph is not None]
    h = hashlib.sha256(f"{what} {on} {' '.join(texts)}".encode())
    for name, value in sorted(values.items()):
        h.update(f"{name} {value.shape}".encode() + np.ascontiguousarray(value).tobytes())
    return h.digest()


# Elements between two points: `d` from point 1 to point 2, `l` its length; all in ground components.


def _point(pose: BodyPose, twist: Matrix, p: Matrix) -> tuple[Matrix, Matrix]:
    """Position and velocity of the point `p` of a body."""
    R, r = pose
    return r + R @ p, R @ (twist[3:] + cross(twist[:3], p))


def _force_at(pose: BodyPose, p: Matrix, force: Matrix) -> Matrix:
    """Wrench on a body of a force, in ground components, at its point `p`."""
    f = pose.rotation.T @ force
    return stack(cross(p, f), f)


def _line(f: Force, poses: Sequence[BodyPose], twists: Sequence[Matrix]) -> tuple[Matrix, Scalar, Scalar]:
    """`d`, `l^2` and `l ldot`."""
    sides = (_point(*side) for side in zip(poses, twists, (f["at1"], f["at2"]), strict=True))
    (x1, v1), (x2, v2) = sides
    d = x2 - x1
    return d, dot(d, d) + SMOOTHING, dot(d, v2 - v1)


def _pulled(
    f: Force, poses: Sequence[BodyPose], twists: Sequence[Matrix], tension_over_l: Callable[..., Scalar]
) -> list[Matrix]:
    """Wrenches of a tension along the line of the two points, from `l^2` and `l ldot`."""
    p1, p2 = f["at1"], f["at2"]
    d, square, rate = _line(f, poses, twists)
    force = tension_over_l(f, square, rate) * d
    return [_force_at(poses[0], p1, force), _force_at(poses[1], p2, -force)]


def _line_readings(tension_over_l: Callable[..., Scalar]) -> dict[str, Reading]:
    """Length, rate, tension and power of an element between two points."""

    def tension(f: Force, t: Scalar, *at: Any) -> Scalar:
        _, square, rate = _line(f, *at)
        return tension_over_l(f, square, rate) * sqrt(square)

    def rate(f: Force, t: Scalar, *at: Any) -> Scalar:
        _, square, rate = _line(f, *at)
        return rate / sqrt(square)

    return {
        "length": Reading("m", "distance of its two points", lambda f, t, *at: sqrt(_line(f, *at)[1])),
        "rate": Reading("m/s", "rate of its length", rate),
        "force": Reading("N", "tension; negative where it pushes", tension),
        "power": Reading("W", POWER_MEANING, lambda f, t, *at: -tension(f, t, *at) * rate(f, t, *at)),
    }


def _spring_pull(f: Force, square: Scalar, rate: Scalar) -> Scalar:
    """Tension `k (l - l0) + c ldot`, over `l`."""
    k, l0, c = f["stiffness"], f["length"], f["damping"]
    return k * (1 - l0 / sqrt(square)) + c * rate / square


def _spring(f: Force, t: Scalar, poses: Sequence[BodyPose], twists: Sequence[Matrix]) -> list[Matrix]:
    return _pulled(f, poses, twists, _spring_pull)


def _spring_power(f: Force, poses: Sequence[BodyPose], twists: Sequence[Matrix]) -> Scalar:
    """`-c ldot^2`."""
    _, square, rate = _line(f, poses, twists)
    return -f["damping"] * rate * rate / square


def _damper_pull(f: Force, square: Scalar, rate: Scalar) -> Scalar:
    """Tension `c ldot`, over `l`."""
    return f["damping"] * rate / square


def _damper(f: Force, t: Scalar, poses: Sequence[BodyPose], twists: Sequence[Matrix]) -> list[Matrix]:
    return _pulled(f, poses, twists, _damper_pull)


def _spring_energy(f: Force, poses: Sequence[BodyPose]) -> Scalar:
    still = zeros(6, None, poses[0].rotation)
    d = _point(poses[1], still, f["at2"])[0] - _point(poses[0], still, f["at1"])[0]
    stretch = sqrt(dot(d, d) + SMOOTHING) - f["length"]
    return f["stiffness"] * stretch * stretch / 2


# Springs whose tension, and torque, is a table of the stretch.


def _nonlinear_pull(f: Force, square: Scalar, rate: Scalar) -> Scalar:
    """Tension `T(l - l0) + c ldot`, over `l`."""
    l = sqrt(square)
    return f.function(0.0, l - f["length"])[0] / l + f["damping"] * rate / square


def _nonlinear_spring(f: Force, t: Scalar, poses: Sequence[BodyPose], twists: Sequence[Matrix]) -> list[Matrix]:
    return _pulled(f, poses, twists, _nonlinear_pull)


def _nonlinear_spring_energy(f: Force, poses: Sequence[BodyPose]) -> Scalar:
    _, square, _ = _line(f, poses, [zeros(6, None, poses[0].rotation)] * 2)
    return f.function(0.0, sqrt(square) - f["length"])[1] - f.function(0.0, 0.0)[1]


def _nonlinear_torsion(f: Force, t: Scalar, q: Matrix, v: Matrix) -> Matrix:
    return -f.function(0.0, q - f["rest"])[0] - f["damping"] * v


def _nonlinear_torsion_energy(f: Force, q: Matrix) -> Scalar:
    return f.function(0.0, q - f["rest"])[1] - f.function(0.0, 0.0)[1]


# The bushing: `x = (theta, d)` is the rotation vector and displacement of frame 2 in frame 1, in its components.


def _bushing_state(f: Force, poses: Sequence[BodyPose]) -> tuple[Matrix, Matrix, Matrix]:
    """Axes of frame 1, and `theta` and `d`."""
    (R1, r1), (R2, r2) = poses
    A1, A2 = R1 @ f["at1_rotation"], R2 @ f["at2_rotation"]
    d = A1.T @ (r2 + R2 @ f["at2"] - r1 - R1 @ f["at1"])
    return A1, rotation_log(A1.T @ A2), d


def _rotation_rate(theta: Matrix) -> Matrix:
    """Matrix `B` with `thetadot = B w`, `w` the angular velocity in the components of the frame turned from."""
    square = dot(theta, theta) + TINY
    half = sqrt(square) / 2
    # (1 - h cot h) / (4 h^2) cancels for small angles; its series is exact to rounding below 1/4 rad
    series = 1 / 12 + square * (1 / 720 + square * (1 / 30240 + square * (1 / 1209600 + square / 47900160)))
    c = where(square < 0.0625, series, (1 - half * cos(half) / sin(half)) / square)
    return eye(3, theta) - skew(theta) / 2 + c * (skew(theta) @ skew(theta))


def _bushing_motion(f: Force, poses: Sequence[BodyPose], twists: Sequence[Matrix]) -> tuple[Matrix, ...]:
    """Axes of frame 1, `x`, `xdot`, the matrix `B` of its rotation, and `F = K x + C xdot`."""
    (R1, _), (R2, _) = poses
    A1, theta, d = _bushing_state(f, poses)
    (_, v1), (_, v2) = (_point(*side) for side in zip(poses, twists, (f["at1"], f["at2"]), strict=True))
    w1 = A1.T @ (R1 @ twists[0][:3])
    w = A1.T @ (R2 @ twists[1][:3]) - w1
    B = _rotation_rate(theta)
    x = stack(theta, d)
    xdot = stack(B @ w, A1.T @ (v2 - v1) - cross(w1, d))
    return A1, x, xdot, B, f["stiffness"] @ x + f["damping"] @ xdot


def _bushing(f: Force, t: Scalar, poses: Sequence[BodyPose], twists: Sequence[Matrix]) -> list[Matrix]:
    """Force `-(K x + C xdot)` conjugate to `x`, so that its power is `-xdot^T (K x + C xdot)` at any angle."""
    (R1, _), (R2, _) = poses
    A1, x, _, B, F = _bushing_motion(f, poses, twists)
    d = x[3:]
    moment, force = A1 @ (B.T @ F[:3]), A1 @ F[3:]  # on body 1, in ground components, at the origin of frame 2
    first = _force_at(poses[0], f["at1"], force) + stack(R1.T @ (moment + A1 @ cross(d, F[3:])), zeros(3, None, x))
    return [first, _force_at(poses[1], f["at2"], -force) - stack(R2.T @ moment, zeros(3, None, x))]


def _bushing_energy(f: Force, poses: Sequence[BodyPose]) -> Scalar:
    """Energy of the symmetric part of the stiffness."""
    _, theta, d = _bushing_state(f, poses)
    x = stack(theta, d)
    return dot(x, f["stiffness"] @ x) / 2


def _bushing_power(f: Force, t: Scalar, *at: Any) -> Scalar:
    _, _, xdot, _, F = _bushing_motion(f, *at)
    return -dot(xdot, F)


# Loads on bodies.


def _wrench(f: Force, t: Scalar, poses: Sequence[BodyPose], twists: Sequence[Matrix]) -> list[Matrix]:
    """Moment and force at a point, in axes that stay with the ground or follow the body."""
    value, R = f["value"], poses[0].rotation
    n, force = (value[:3], value[3:]) if f["follows"] else (R.T @ value[:3], R.T @ value[3:])
    return [stack(n + cross(f["at"], force), force)]


def _user_force(f: Force, t: Scalar, poses: Sequence[BodyPose], twists: Sequence[Matrix]) -> list[Matrix]:
    return list(f.function.call([t, *(part for pose in poses for part in pose), *twists]))


# Elements along a joint's coordinates.


def _torsion(f: Force, t: Scalar, q: Matrix, v: Matrix) -> Matrix:
    return -(f["stiffness"] * (q - f["rest"])) - f["damping"] * v


def _torsion_energy(f: Force, q: Matrix) -> Scalar:
    stretch = q - f["rest"]
    return dot(stretch, f["stiffness"] * stretch) / 2


def _torsion_power(f: Force, q: Matrix, v: Matrix) -> Scalar:
    return -dot(v, f["damping"] * v)


def _friction(f: Force, t: Scalar, q: Matrix, v: Matrix) -> Matrix:
    """Viscous part, and Coulomb's with its jump smoothed over a speed: it creeps where it should stick.

    With `static` the level falls from it to `coulomb` over the speed `stribeck`. Along an angular velocity, and along a
    velocity, of a joint with a quaternion it is one vector against the motion.
    """
    level, speed = f["coulomb"], v
    along: Scalar = 1.0
    if q.shape[0] != v.shape[0]:
        speeds = [sqrt(dot(v[k : k + 3], v[k : k + 3]) + TINY) for k in range(0, v.shape[0], 3)]
        speed = stack(*(each for each in speeds for _ in range(3)))
        along = v / speed
    if "static" in f.numbers:
        more = f["static"] - level
        level = level + where(more > 0, more, 0.0) * (-((speed / f["stribeck"]) ** 2)).exp()
    return -(f["viscous"] * v) - level * (speed / f["smoothing"]).tanh() * along


def _drive(f: Force, t: Scalar, q: Matrix, v: Matrix) -> Matrix:
    return f.function(t, q, v)


# Readings that every element has: they follow from the law.


def _wrenches_read(f: Force, t: Scalar, *at: Any) -> Matrix:
    return stack(*f.law(t, *at))


def _power_on_bodies(f: Force, t: Scalar, poses: Sequence[BodyPose], twists: Sequence[Matrix]) -> Scalar:
    pairs = zip(twists, f.law(t, poses, twists), strict=True)
    return sum((dot(twist, wrench) for twist, wrench in pairs), zeros(1, None, poses[0].rotation))


SIX = ("moment x", "moment y", "moment z", "force x", "force y", "force z")
SIX_MOTIONS = ("angular x", "angular y", "angular z", "linear x", "linear y", "linear z")
POWER_MEANING = "power that it gives to the mechanism"
ENERGY = Reading("J", "its potential energy", lambda f, t, *at: f.energy(at[0]))
_READINGS_OF_ALL: dict[str, dict[str, Reading]] = {
    "bodies": {
        "wrench": Reading("N m and N", "wrench on each body, at its origin, in its axes", _wrenches_read, SIX),
        "power": Reading("W", POWER_MEANING, _power_on_bodies),
    },
    "joint": {
        "torque|force": Reading("N m|N", "along the joint's coordinate", lambda f, t, *at: f.law(t, *at), None),
        "rate": Reading("rad/s|m/s", "rate of the joint", lambda f, t, q, v: v, None),
        "power": Reading("W", POWER_MEANING, lambda f, t, q, v: dot(v, f.law(t, q, v))),
    },
}


def _units_of(unit: str, turns: Sequence[bool]) -> tuple[str, ...]:
    """Unit of each component: of six, of each rate of a joint, which `turns` or slides, or of one number."""
    turning, _, sliding = unit.partition("|")
    if sliding:
        return tuple(turning if turn else sliding for turn in turns)
    angular, _, linear = unit.partition(" and ")
    return (angular,) * 3 + (linear,) * 3 if linear else (unit,)


ON_BODY1 = Field("m", "point on body1, m", VECTOR, default=0.0, letter="a")
ON_BODY2 = Field("m", "point on body2, m", VECTOR, default=0.0, letter="b")
SPRING = ForceKind(
    "spring", "bodies", _spring, _spring_energy, bodies=2, mark="spring", power=_spring_power,
    readings=_line_readings(_spring_pull),
    fields={
        "stiffness": Field("N/m", "N/m", rule=NOT_NEGATIVE, letter="k", linear=True),
        "length": Field("m", "m, at which it is slack", rule=NOT_NEGATIVE, letter="l0"),
        "damping": Field("N s/m", "N s/m", rule=NOT_NEGATIVE, default=0.0, letter="d", linear=True),
        "at1": ON_BODY1, "at2": ON_BODY2,
    },
)  # fmt: skip
DAMPER = ForceKind(
    "damper", "bodies", _damper, bodies=2, mark="damper", readings=_line_readings(_damper_pull),
    fields={
        "damping": Field("N s/m", "N s/m", rule=NOT_NEGATIVE, letter="d", linear=True),
        "at1": ON_BODY1, "at2": ON_BODY2,
    },
)  # fmt: skip
BUSHING = ForceKind(
    "bushing", "bodies", _bushing, _bushing_energy, bodies=2, mark="bushing",
    fields={
        "stiffness": Field(
            "N m/rad, N/m", "a number, six, or six rows; angular part first", SIX_AXES, STIFFNESS, letter="k",
            linear=True,
        ),
        "damping": Field(
            "N m s/rad, N s/m", "the same on the rates", SIX_AXES, STIFFNESS, default=0.0, letter="d", linear=True
        ),
        "at1": Field("m", "frame on body1", POSE, default=(0.0, 0.0, 0.0), letter="a"),
        "at2": Field("m", "frame on body2", POSE, default=(0.0, 0.0, 0.0), letter="b"),
    },
    readings={
        "displacement": Reading(
            "rad and m", "rotation vector and displacement of frame 2 in frame 1",
            lambda f, t, *at: _bushing_motion(f, *at)[1], SIX_MOTIONS,
        ),
        "rate": Reading(
            "rad/s and m/s", "rates of the displacement", lambda f, t, *at: _bushing_motion(f, *at)[2], SIX_MOTIONS
        ),
        "force": Reading(
            "N m and N", "stiffness times displacement and damping times rate, in frame 1: it pulls frame 2 back",
            lambda f, t, *at: _bushing_motion(f, *at)[4], SIX,
        ),
        "power": Reading("W", POWER_MEANING, _bushing_power),
    },
)  # fmt: skip
WRENCH = ForceKind(
    "wrench", "bodies", _wrench, bodies=1, mark="wrench",
    fields={
        "value": Field("N m, N", "moment and force", MOMENT_AND_FORCE, default=0.0, letter="w", linear=True),
        "at": Field("m", "point of the body, m", VECTOR, default=0.0, letter="l"),
        "axes": Field(
            "1", "ground: it keeps its direction; body: it follows", AXES, default="ground", free=False
        ),
    },
)  # fmt: skip
USER_FORCE = ForceKind(
    "user force", "bodies", _user_force, mark="user", file_name="user",
    fields={"wrenches": Field("N m, N", "a moment and a force for each body, at its origin, in its axes", WRENCHES)},
)  # fmt: skip
TORSION = ForceKind(
    "torsion", "joint", _torsion, _torsion_energy, mark="torsion", power=_torsion_power,
    fields={
        "stiffness": Field("N m/rad|N/m", "N m/rad or N/m", EACH, NOT_NEGATIVE, default=0.0, letter="k", linear=True),
        "rest": Field("rad|m", "rad or m, where it is slack", EACH, default=0.0, letter="q0"),
        "damping": Field(
            "N m s/rad|N s/m", "N m s/rad or N s/m", EACH, NOT_NEGATIVE, default=0.0, letter="d", data="damping",
            linear=True,
        ),
    },
    readings={"deflection": Reading("rad|m", "coordinate less that at rest", lambda f, t, q, v: q - f["rest"], None)},
)  # fmt: skip
NONLINEAR_SPRING = ForceKind(
    "nonlinear spring", "bodies", _nonlinear_spring, _nonlinear_spring_energy, bodies=2, mark="spring",
    file_name="nonlinear_spring", power=_spring_power, readings=_line_readings(_nonlinear_pull),
    fields={
        "tension": Field("N", "a table of the tension, N, over the stretch, m", TABLE, free=False),
        "length": Field("m", "m, from which the stretch counts", rule=NOT_NEGATIVE, default=0.0, letter="l0"),
        "damping": Field("N s/m", "N s/m", rule=NOT_NEGATIVE, default=0.0, letter="d", linear=True),
        "at1": ON_BODY1, "at2": ON_BODY2,
    },
)  # fmt: skip
NONLINEAR_TORSION = ForceKind(
    "nonlinear torsion", "joint", _nonlinear_torsion, _nonlinear_torsion_energy, mark="torsion",
    file_name="nonlinear_torsion", power=_torsion_power,
    fields={
        "effort": Field("N m|N", "a table of what pulls back, N m or N, over the deflection", TABLE, free=False),
        "rest": Field("rad|m", "rad or m, from which the deflection counts", EACH, default=0.0, letter="q0"),
        "damping": Field(
            "N m s/rad|N s/m", "N m s/rad or N s/m", EACH, NOT_NEGATIVE, default=0.0, letter="d", data="damping",
            linear=True,
        ),
    },
    readings={"deflection": Reading("rad|m", "coordinate less that at rest", lambda f, t, q, v: q - f["rest"], None)},
)  # fmt: skip
FRICTION = ForceKind(
    "friction", "joint", _friction, mark="friction",
    fields={
        "viscous": Field(
            "N m s/rad|N s/m", "N m s/rad or N s/m", EACH, NOT_NEGATIVE, default=0.0, letter="d", data="damping",
            linear=True,
        ),
        "coulomb": Field(
            "N m|N", "N m or N", EACH, NOT_NEGATIVE, default=0.0, letter="F_c", data="friction", linear=True
        ),
        "smoothing": Field(
            "rad/s|m/s",
            "speed over which Coulomb friction changes sign, rad/s or m/s; it creeps where it should stick",
            EACH, POSITIVE, default=1e-3, letter="v0",
        ),
        "static": Field("N m|N", "level at rest, N m or N; coulomb by default", EACH, NOT_NEGATIVE, None, "F_s"),
        "stribeck": Field(
            "rad/s|m/s", "speed over which it falls from static to coulomb, rad/s or m/s", EACH, POSITIVE, None, "v_s"
        ),
    },
)  # fmt: skip
DRIVE = ForceKind(
    "drive", "joint", _drive, mark="drive",
    fields={"effort": Field("N m|N", "N m or N; an expression of t, q and v; one for each rate", EFFORT)},
)  # fmt: skip

FORCES: dict[str, ForceKind] = {
    kind.name: kind
    for kind in (
        SPRING,
        DAMPER,
        BUSHING,
        WRENCH,
        TORSION,
        FRICTION,
        DRIVE,
        USER_FORCE,
        NONLINEAR_SPRING,
        NONLINEAR_TORSION,
    )
}
"""Cardan's own kinds of force elements."""
ADDED_FORCES: dict[str, ForceKind] = {}
"""Those that `add_force` registered, by their names in files."""


def add_force(kind: ForceKind) -> ForceKind:
    """Register a kind of force element of your own, so that files can name it; returns the kind.

    A kind registered again under its name replaces the one before. A kind that is not registered works everywhere but
    in `save` and `load`.
    """
    if not isinstance(kind, ForceKind):
        raise InputError(f"add_force: a kind of force element is a cd.ForceKind, got {kind!r}")
    if kind.name in FORCES or kind.in_files in (own.in_files for own in FORCES.values()):
        raise InputError(f"add_force: force {kind.name!r} is Cardan's own; choose another name")
    ADDED_FORCES[kind.in_files] = kind
    return kind


def force_kinds() -> dict[str, ForceKind]:
    """Every kind of force element that files can name, by name."""
    return {kind.in_files: kind for kind in FORCES.values()} | ADDED_FORCES


def _own_kind(name: str) -> ForceKind:
    return FORCES[name]


# Tracing: a function of the user runs once, on symbols.


def trace(
    owner: str, function: Any, ports: list[Any], arguments: tuple[Any, ...], sizes: tuple[int, ...],
    listed: bool = False, what: str = "function",
) -> Any:  # fmt: skip
    """Record a user's function as a `casadi.Function` giving columns of these sizes: a list of them, or one."""
    import casadi as ca

    value, again = (_run(owner, function, arguments, what) for _ in range(2))
    graph = _graph(owner, value, ports, sizes, listed, what)
    if graph.serialize() != _graph(owner, again, ports, sizes, listed, what).serialize():
        raise ModelError(
            f"{owner}: its {what} gives another result each time it is run. It is run when the model is built, and "
            "random numbers, a clock or state that it keeps would stay as they were then; draw numbers before and make "
            "them constants or free parameters, make the clock `t`, and declare state with "
            "mechanism.variable(..., rate=...) or mechanism.controller(..., states=...)"
        )
    codes = [graph.instruction_id(k) for k in range(graph.n_instructions())]
    if any(np.isnan(graph.instruction_constant(k)) for k, code in enumerate(codes) if code == ca.OP_CONST):
        raise ModelError(
            f"{owner}: its result contains nan; a symbol put into an array of floats becomes nan, "
            "collect symbols in a list or with casadi.vertcat"
        )
    if not all(kind_of(called.name()) for called in called_functions(graph).values()):
        raise ModelError(f"{owner}: it calls a casadi.Function that is not written in SX; write it out in SX")
    return graph


def _run(owner: str, function: Any, arguments: tuple[Any, ...], what: str) -> Any:
    """What a user's function returns for symbols."""
    _require_arguments(owner, function, arguments, what)
    with plain_symbols():
        try:
            return function(*arguments)
        except Exception as error:  # whatever a user's function may raise
            why = str(error).strip().partition("\n")[0].rpartition(": ")[2].rstrip(".") or "no reason given"
            raise ModelError(
                f"{owner}: its {what} cannot be traced, {type(error).__name__}: {why}; it is run on CasADi "
                "symbols, so use casadi.if_else for a choice, and functions of casadi or numpy, not of math"
            ) from error


def _length(owner: str, function: Any, arguments: tuple[Any, ...]) -> int:
    """How many numbers a user's function returns; `trace` checks them."""
    if hasattr(function, "numel_out"):  # it is traced already
        return int(function.numel_out(0))
    value = _run(owner, function, arguments, "function")
    return int(value.numel()) if is_symbol(value) else len(value) if isinstance(value, list | tuple | np.ndarray) else 1


def _require_arguments(owner: str, function: Any, arguments: tuple[Any, ...], what: str) -> None:
    """Reject a function that cannot be called with so many arguments."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # of a function in C: it is called then
        return
    try:
        signature.bind(*arguments)
    except TypeError:
        given = [str(x) if is_symbol(x) and x.shape == (1, 1) else f"x{k}" for k, x in enumerate(arguments)]
        many, named = counted(len(arguments), "argument"), ", ".join(given)
        raise ModelError(
            f"{owner}: its {what} is called with {many}, ({named}), and takes {signature}; write lambda {named}: ..."
        ) from None


def _graph(owner: str, value: Any, ports: list[Any], sizes: tuple[int, ...], listed: bool, what: str) -> Any:
    """What a user's function returned, as a `casadi.Function`."""
    import casadi as ca

    several = isinstance(value, list | tuple) or (isinstance(value, np.ndarray) and value.ndim > 0)
    if listed and (not several or len(value) != len(sizes)):
        count = f"{len(value)} of them" if several else f"one {_shown(value)}"
        raise ModelError(
            f"{owner}: its {what} must return a list of {len(sizes)} wrenches of 6 numbers, one for each of its "
            f"bodies, got {count}"
        )
    columns = [_column(owner, part, n, what) for part, n in zip(value if listed else [value], sizes, strict=True)]
    try:
        return ca.Function("law", ports, columns)
    except RuntimeError:
        free = ", ".join(str(s) for s in ca.symvar(ca.vertcat(*columns)) if not ca.depends_on(ca.vvcat(ports), s))
        raise ModelError(f"{owner}: its result contains the symbol {free}, which is not one of its arguments") from None


def _column(owner: str, value: Any, n: int, what: str) -> Any:
    """Read what a function returned as a column of n entries."""
    import casadi as ca

    def flat(part: Any) -> Any:
        if isinstance(part, np.ndarray | np.generic) and part.dtype != object:
            return floats(part)[()]  # CasADi crashes on long doubles and misreads other types
        return ca.vertcat(*map(flat, part)) if isinstance(part, list | tuple | np.ndarray) and len(part) else part

    wanted = "a number" if n == 1 else f"{n} numbers"
    try:
        column = ca.SX(flat(value))
    except Exception:
        raise ModelError(f"{owner}: its {what} must return {wanted}, got {_shown(value)}") from None
    if sorted(column.shape) != [1, n]:
        raise ModelError(f"{owner}: its {what} must return {wanted}, got {_shown(value)} of shape {column.shape}")
    if column.is_constant() and np.isinf(ca.DM(column).full()).any():
        raise ModelError(f"{owner}: its result is not finite: {_shown(value)}")
    return ca.vec(ca.densify(column))  # dense, so that two ways to write one law give one graph


def _shown(value: Any) -> str:
    text = " ".join(repr(value).split())
    return text if len(text) < 60 else f"{text[:56]} ..."


def depends(function: Any, argument: int) -> bool:
    """Whether an argument of a traced function appears in a result."""
    return function is not None and any(function.jac_sparsity(k, argument).nnz() for k in range(function.n_out()))
