"""The tables of the YAML format: every section, element and entry, with its form; and the JSON Schema made of them.

The reader, the schema that editors use and the page of the documentation all come from these tables. The entries of
joint types and of force elements come from their declarations in `cardan.model`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from cardan.errors import FileError, ModelError, nearest
from cardan.io.yaml.nodes import List, NodeReader, Scalar, Table, described
from cardan.io.yaml.units import UnitError, quantity_of
from cardan.model import field as declared
from cardan.model import inertia
from cardan.model.field import Field
from cardan.model.force import FORCES, ForceKind
from cardan.model.joint import OWN_TYPES, JointType
from cardan.model.pose import Pose

Schema = dict[str, Any]
MEASURE: Schema = {"$ref": "#/$defs/measure"}


class Form(Protocol):
    """How a value is written in a file."""

    def read(self, reader: NodeReader) -> Any:
        """Read the value at a place of a file."""
        ...

    def schema(self) -> Schema:
        """Describe the value for editors."""
        ...


@dataclass(frozen=True)
class Measure:
    """A number, in one of several quantities."""

    quantities: tuple[str, ...] = ("number",)

    def read(self, reader: NodeReader) -> float:
        """Read it, in SI units."""
        return reader.number(*self.quantities)

    def schema(self) -> Schema:
        """A number or text with a unit."""
        return MEASURE


def number(*quantities: str) -> Measure:
    """Make the form of a number."""
    return Measure(quantities or ("number",))


@dataclass(frozen=True)
class Vector:
    """Three numbers of a quantity."""

    quantity: str = "length"

    def read(self, reader: NodeReader) -> list[float]:
        """Read it, in SI units."""
        return several(reader, [self.quantity] * 3)

    def schema(self) -> Schema:
        """A list of three."""
        return {"$ref": "#/$defs/vector"}


def several(reader: NodeReader, quantities: list[str]) -> list[float]:
    """Read a list of numbers of these quantities."""
    count = f"{len(quantities)} number{'s' * (len(quantities) != 1)}"
    wanted = f"{count} in brackets, [{', '.join('...' for _ in quantities)}]"
    if not isinstance(reader.node, List):
        raise reader.error(f"must be {wanted}, got {described(reader.node)}")
    items = reader.items()
    if len(items) != len(quantities):
        torn = any(item.is_expression and "(" in item.written and ")" not in item.written for item in items)
        hint = "; put a calculation that has a comma in quotes" if torn else ""
        raise reader.error(f"must be {wanted}, got {len(items)}{hint}")
    return [item.number(quantity) for item, quantity in zip(items, quantities, strict=True)]


def matrix(reader: NodeReader, quantities: list[list[str]]) -> list[list[float]]:
    """Read a list of rows of numbers of these quantities."""
    rows = reader.items()
    if len(rows) != len(quantities):
        raise reader.error(f"must be {len(quantities)} rows, got {len(rows)}")
    return [several(row, row_quantities) for row, row_quantities in zip(rows, quantities, strict=True)]


@dataclass(frozen=True)
class Words:
    """Text: a name, a sentence."""

    doc: str = "text"

    def read(self, reader: NodeReader) -> str:
        """Read it."""
        return reader.text()

    def schema(self) -> Schema:
        """A string; a name may look like a number."""
        return {"type": ["string", "number", "boolean"]}


@dataclass(frozen=True)
class Choice:
    """One of several words."""

    words: tuple[str, ...]

    def read(self, reader: NodeReader) -> str:
        """Read it."""
        return reader.choice(self.words)

    def schema(self) -> Schema:
        """The words."""
        return {"enum": list(self.words)}


@dataclass(frozen=True)
class ListOf:
    """A list of values of one form; a single one may be written without brackets."""

    form: Form

    def read(self, reader: NodeReader) -> list[Any]:
        """Read them."""
        if isinstance(reader.node, Scalar):
            return [self.form.read(reader)]
        return [self.form.read(item) for item in reader.items()]

    def schema(self) -> Schema:
        """A list."""
        return {"anyOf": [self.form.schema(), {"type": "array", "items": self.form.schema()}]}


AXES: dict[str, tuple[float, float, float]] = {
    "x": (1.0, 0.0, 0.0), "y": (0.0, 1.0, 0.0), "z": (0.0, 0.0, 1.0),
    "-x": (-1.0, 0.0, 0.0), "-y": (0.0, -1.0, 0.0), "-z": (0.0, 0.0, -1.0),
}  # fmt: skip


@dataclass(frozen=True)
class Axis:
    """A direction: the name of a coordinate axis, or a vector of any length."""

    def read(self, reader: NodeReader) -> tuple[float, ...]:
        """Read it."""
        if isinstance(reader.node, Scalar):
            return AXES[reader.choice(tuple(AXES))]
        return tuple(several(reader, ["number"] * 3))

    def schema(self) -> Schema:
        """A word or a vector."""
        return {"anyOf": [{"enum": list(AXES)}, {"$ref": "#/$defs/vector"}]}


ROTATIONS = ("rotation", "quaternion", "rpy")


@dataclass(frozen=True)
class Placement:
    """Where a frame is: a position, or a table of `position` and one of `rotation`, `quaternion`, `rpy`."""

    def read(self, reader: NodeReader) -> Pose:
        """Read it."""
        if isinstance(reader.node, List):
            return Pose(several(reader, ["length"] * 3))
        table = reader.table("{position: [0, 0, 0.1], rpy: [0, 90 deg, 0]}")
        values: dict[str, Any] = {}
        for key, node in table.entries.items():
            inner = reader.inner(node, f"{reader.what}.{key}")
            if key == "position":
                values[key] = several(inner, ["length"] * 3)
            elif key in ROTATIONS:
                values[key] = read_rotation(inner, key)
            else:
                known = ("position", *ROTATIONS)
                raise reader.error(f"has no entry {key!r}{nearest(key, known)}", table.keys[key].line)
        try:
            return Pose(**values)
        except ModelError as error:
            fault = reader.error(str(error).replace("pose: ", "is no pose: ", 1))
        return Pose(**values | _settled(reader, fault, values))

    def schema(self) -> Schema:
        """A vector or a table."""
        return {"$ref": "#/$defs/placement"}


def _settled(reader: NodeReader, fault: FileError, values: dict[str, Any]) -> dict[str, Any]:
    """The rotation to use where the one given is not a rotation, if the policy allows."""
    given = [key for key in ROTATIONS if key in values]
    if given not in (["quaternion"], ["rotation"]):
        raise fault
    return {given[0]: reader.policy.settle(given[0], fault, values[given[0]])}


def read_rotation(reader: NodeReader, key: str) -> list[Any]:
    """Read a rotation in one of its forms."""
    if key == "rpy":
        return several(reader, ["angle"] * 3)
    return several(reader, ["number"] * 4) if key == "quaternion" else matrix(reader, [["number"] * 3] * 3)


@dataclass(frozen=True)
class Turn:
    """A rotation alone: a matrix of three rows, or a table of one of `rotation`, `quaternion`, `rpy`."""

    def read(self, reader: NodeReader) -> np.ndarray:
        """Read it as a matrix (3, 3)."""
        if isinstance(reader.node, List):
            return np.array(matrix(reader, [["number"] * 3] * 3))
        if "position" in reader.table("{rpy: [0, 0, 30 deg]}").entries:
            raise reader.error("is a direction only and has no position")
        return Placement().read(reader).rotation

    def schema(self) -> Schema:
        """A matrix or a table."""
        return {"anyOf": [{"type": "array", "items": {"$ref": "#/$defs/vector"}}, {"$ref": "#/$defs/placement"}]}


# Solids: how the inertia of each is computed, and its dimensions besides the mass.
SOLIDS: dict[str, tuple[Callable[..., np.ndarray], dict[str, str]]] = {
    "rod": (inertia.rod, {"length": "length", "axis": "axis"}),
    "box": (inertia.box, {"size": "vector"}),
    "cylinder": (inertia.cylinder, {"radius": "length", "length": "length", "axis": "axis"}),
    "sphere": (inertia.sphere, {"radius": "length"}),
    "point": (inertia.point, {}),
}


@dataclass(frozen=True)
class Inertia:
    """An inertia: 3 principal values, 6 entries, 3 rows, or a solid such as `{rod: {length: 1, axis: x}}`.

    The value is a function of the body's mass.
    """

    def read(self, reader: NodeReader) -> Callable[[float], Any]:
        """Read it."""
        if isinstance(reader.node, List):
            value = self._numbers(reader)
            return lambda mass: value
        if isinstance(reader.node, Scalar):
            solid, inner = reader.choice(("point",)), None
        else:
            table = reader.table("{rod: {length: 1 m, axis: x}}")
            if len(table.entries) != 1:
                raise reader.error(f"must name one solid of {', '.join(SOLIDS)}, got {described(table)}")
            solid, node = next(iter(table.entries.items()))
            if solid not in SOLIDS:
                raise reader.error(f"has no solid {solid!r}{nearest(solid, SOLIDS)}")
            inner = reader.inner(node, f"inertia.{solid}")
        return self._solid(reader, solid, inner)

    def _numbers(self, reader: NodeReader) -> list[Any]:
        items = reader.items()
        if any(isinstance(item.node, List) for item in items):
            return matrix(reader, [["inertia"] * 3] * 3)
        if len(items) not in (3, 6):
            raise reader.error(
                f"must be 3 principal values, 6 entries [Ixx, Iyy, Izz, Ixy, Ixz, Iyz] or 3 rows, got {len(items)}"
            )
        return [item.number("inertia") for item in items]

    def _solid(self, reader: NodeReader, solid: str, inner: NodeReader | None) -> Callable[[float], Any]:
        make, fields = SOLIDS[solid]
        table = inner.table(f"{{{', '.join(fields)}}}") if inner and fields else Table(0, 0)
        values: dict[str, Any] = {}
        for key, node in table.entries.items():
            if key not in fields:
                raise reader.error(f"of a {solid} has no {key!r}{nearest(key, fields)}", table.keys[key].line)
            at = reader.inner(node, f"inertia.{solid}.{key}")
            forms: dict[str, Form] = {"length": number("length"), "axis": Axis(), "vector": Vector()}
            values[key] = forms[fields[key]].read(at)
        missing = [key for key in fields if key not in values and key != "axis"]
        if missing:
            raise reader.error(f"of a {solid} needs {' and '.join(missing)}; give it")

        def of_mass(mass: float) -> Any:
            try:
                return make(mass, **values)
            except ModelError as error:
                raise reader.error(f"is wrong: {error}") from None

        return of_mass

    def schema(self) -> Schema:
        """A list or a solid."""
        solids = {
            name: {
                "type": "object",
                "properties": {
                    key: {"length": MEASURE, "axis": Axis().schema(), "vector": {"$ref": "#/$defs/vector"}}[what]
                    for key, what in fields.items()
                },
                "required": [key for key in fields if key != "axis"],
                "additionalProperties": False,
            }
            for name, (_, fields) in SOLIDS.items()
            if fields
        }
        solid = {
            "type": "object",
            "properties": solids,
            "additionalProperties": False,
            "minProperties": 1,
            "maxProperties": 1,
        }
        return {"anyOf": [{"type": "array", "minItems": 3, "maxItems": 6}, {"const": "point"}, solid]}


# Units along the coordinates of a joint: for an angle, and for a length.
COORDINATE, RATE, EFFORT = "rad|m", "rad/s|m/s", "N m|N"
DAMPING, ROTOR = "N m s/rad|N s/m", "kg m^2|kg"


def along(reader: NodeReader, units: str) -> list[str]:
    """Quantities along the coordinates of the joint: one for each of q for a coordinate, one for each of v else."""
    assert reader.kind is not None
    if units == COORDINATE:
        return [quantity_of(unit) for unit in reader.kind.q_units]
    turning, shifting = map(quantity_of, units.split("|"))
    return [shifting if unit == "m/s" else turning for unit in reader.kind.v_units]


@dataclass(frozen=True)
class Each:
    """A number for each coordinate of a joint, or one for all; `units` for an angle and for a length."""

    units: str

    def read(self, reader: NodeReader) -> Any:
        """Read a list, or a single number that fits every coordinate."""
        quantities = along(reader, self.units)
        if isinstance(reader.node, List):
            return several(reader, quantities)
        values = [reader.number(quantity) for quantity in quantities or [quantity_of(self.units.partition("|")[0])]]
        return values[0]

    def schema(self) -> Schema:
        """A number or a list."""
        return {"anyOf": [MEASURE, {"type": "array", "items": MEASURE}]}


@dataclass(frozen=True)
class Single:
    """One number that belongs to a joint, in the quantity of any of its coordinates."""

    units: str

    def read(self, reader: NodeReader) -> float:
        """Read it."""
        found = list(dict.fromkeys(q for q in along(reader, self.units) if q != "number"))
        return reader.number(*(found or map(quantity_of, self.units.split("|"))))

    def schema(self) -> Schema:
        """A number."""
        return MEASURE


@dataclass(frozen=True)
class SixAxes:
    """Stiffness or damping of a bushing: a number, six, or a matrix of six rows; angular part first."""

    what: str

    def read(self, reader: NodeReader) -> Any:
        """Read it."""
        if not isinstance(reader.node, List):
            return reader.number("number")
        rows = [f"torsional {self.what}"] * 3 + [self.what] * 3
        if any(isinstance(item.node, List) for item in reader.items()):
            across = f"cross {self.what}"
            return matrix(reader, [[q if r == q else across for q in rows] for r in rows])
        return several(reader, rows)

    def schema(self) -> Schema:
        """A number, a list, a list of lists."""
        row = {"type": "array", "items": MEASURE, "minItems": 6, "maxItems": 6}
        return {"anyOf": [MEASURE, row, {"type": "array", "items": row, "minItems": 6, "maxItems": 6}]}


VERSION = 1


@dataclass(frozen=True)
class Entry:
    """One line of an element: its form, what it means, and whether it must be there."""

    form: Form | None
    doc: str
    needed: bool = False


Entries = dict[str, Entry]


@dataclass(frozen=True)
class Function:
    """A number, or an expression of time and state; `many` for a list of them."""

    many: bool = False

    def read(self, reader: Any) -> Any:
        """Leave it to the reader of the element, which knows the variables."""
        return reader

    def schema(self) -> Schema:
        """A number, text, or a list."""
        return {"anyOf": [MEASURE, {"type": "array", "items": MEASURE}]} if self.many else MEASURE


@dataclass(frozen=True)
class Named:
    """A table of names and values, which the reader of the element takes apart."""

    example: str

    def read(self, reader: Any) -> Any:
        """Check that it is a table."""
        reader.table(self.example)
        return reader

    def schema(self) -> Schema:
        """A table of numbers and expressions."""
        return {"type": "object", "additionalProperties": MEASURE}


BODY = Words("name of a body, or ground")
JOINT = Words("name of a joint")

BODIES: Entries = {
    "mass": Entry(number("mass"), "kg; a body without mass has none"),
    "com": Entry(Vector(), "centre of mass, m, in the body frame"),
    "inertia": Entry(Inertia(), "kg m^2 about the centre of mass: 3 principal values, 6 entries, 3 rows, or a solid"),
    "inertia_about": Entry(Vector(), "the point that the inertia refers to, if not the centre of mass, m"),
    "inertia_axes": Entry(Turn(), "the axes that the inertia refers to, if not those of the body"),
    "judge": Entry(
        Choice(("body", "link", "nothing")), "what must obey the rules of inertia: the body, or all fixed to it"
    ),
}

JOINTS: Entries = {
    "type": Entry(Words("type"), "kind of joint", needed=True),
    "parent": Entry(BODY, "body, or ground", needed=True),
    "child": Entry(BODY, "body, or ground", needed=True),
    "at": Entry(Placement(), "joint frame on the parent: a position, or position and rotation"),
    "child_at": Entry(Placement(), "joint frame on the child"),
    "start": Entry(Each(COORDINATE), "guess of the coordinates that assembly begins with"),
    "armature": Entry(Each(ROTOR), "inertia of the drive's rotor along the rates, kg m^2 or kg"),
    "data": Entry(Named("{lower: -90 deg, upper: 90 deg}"), "limits and the like"),
}
DATA: Entries = {
    "lower": Entry(Single(COORDINATE), "least coordinate"),
    "upper": Entry(Single(COORDINATE), "largest coordinate"),
    "velocity": Entry(Single(RATE), "largest speed"),
    "effort": Entry(Single(EFFORT), "largest force or moment"),
    "damping": Entry(Single(DAMPING), "as data only: it acts if given as a force of type friction"),
    "friction": Entry(Single(EFFORT), "as data only: it acts if given as a force of type friction"),
    "mimic": Entry(Named("{joint: A, multiplier: 1, offset: 0}"), "the joint that it follows, as data"),
}
MIMIC: Entries = {
    "joint": Entry(JOINT, "the joint followed", needed=True),
    "multiplier": Entry(number(), "of its coordinate", needed=True),
    "offset": Entry(Single(COORDINATE), "added", needed=True),
}
STATES: Entries = {
    "time": Entry(number("time"), "s"),
    "q": Entry(Named("{A: 20 deg}"), "coordinates of joints by name; those not named are at their start"),
    "v": Entry(Named("{A: 2 rad/s}"), "rates of joints by name; those not named are at rest"),
}
ACTUATORS: Entries = {
    "kind": Entry(Words("kind of actuator"), "what it is, such as motor", needed=True),
    "joint": Entry(JOINT, "the joint", needed=True),
    "gear": Entry(ListOf(number()), "force along each rate for unit force of the actuator", needed=True),
    "gain": Entry(number(), "force for unit control"),
    "bias": Entry(ListOf(number()), "force: a constant, and what length and speed add"),
    "control": Entry(ListOf(number()), "least and largest control"),
    "force": Entry(ListOf(number()), "least and largest force"),
}
FRAMES: Entries = {
    "body": Entry(BODY, "body, or ground", needed=True),
    "at": Entry(Placement(), "place on the body"),
}

PAIR: Entries = {
    "body1": Entry(BODY, "body, or ground", needed=True),
    "body2": Entry(BODY, "body, or ground", needed=True),
}
WHERE = Entry(Named("{w: =2*pi*t}"), "named values that the expressions share")
ALONG: Entries = {"joint": Entry(JOINT, "the joint", needed=True)}
BODY_LIST: Entries = {"bodies": Entry(ListOf(BODY), "the bodies, counted from 1 in the expressions", needed=True)}
WRENCH: Entries = {
    "moment": Entry(Function(many=True), "N m; three numbers or expressions"),
    "force": Entry(Function(many=True), "N; three numbers or expressions"),
}


# What a field of `cardan.model` is in a file, by its form.
FORMS: dict[str, Callable[[Field], Form | None]] = {
    declared.NUMBER: lambda field: number(quantity_of(field.unit)),
    declared.VECTOR: lambda field: Vector(quantity_of(field.unit)),
    declared.AXIS: lambda field: Axis(),
    declared.POSE: lambda field: Placement(),
    declared.EACH: lambda field: Each(field.unit),
    declared.SIX_AXES: lambda field: SixAxes(quantity_of(field.unit.rpartition(", ")[2])),
    declared.AXES: lambda field: Choice(("ground", "body")),
    declared.EFFORT: lambda field: Function(many=True),
    declared.WRENCHES: lambda field: None,
}


def _declared(owner: str, fields: Mapping[str, Field]) -> Entries:
    """Entries of the fields of a joint type or force element."""
    found: Entries = {}
    for name, field in fields.items():
        if field.form == declared.MOMENT_AND_FORCE:
            found |= {"moment": Entry(Vector("moment"), "N m"), "force": Entry(Vector("force"), "N")}
            continue
        try:
            found[name] = Entry(FORMS[field.form](field), field.doc, field.needed)
        except UnitError as error:
            raise ModelError(f"{owner}: the unit of {name!r} is not a unit of files: {error}") from None
    return found


def joint_entries(type: type[JointType]) -> Entries:
    """The entries that a joint type has besides those of every joint."""
    owner = f"joint type {type.__name__}"
    entries = _declared(owner, type.declared())
    if taken := sorted(entries.keys() & JOINTS.keys()):
        raise ModelError(f"{owner}: its field {taken[0]!r} has the name of an entry of every joint; rename it")
    return entries


def force_entries(kind: ForceKind) -> Entries:
    """The entries of a kind of force element: what it acts on, and its numbers."""
    owner = f"force kind {kind.name!r}"
    if kind.on == "joint":
        on = ALONG
    else:
        on = {1: {"body": Entry(BODY, "the body", needed=True)}, 2: PAIR}.get(kind.bodies, BODY_LIST)
    entries = _declared(owner, kind.fields)
    if taken := sorted(entries.keys() & {*on, "type", "where"}):
        raise ModelError(f"{owner}: its field {taken[0]!r} has the name of another entry; rename it")
    return on | entries | ({"where": WHERE} if kind.function else {})


def own_joints() -> dict[str, Entries]:
    """Entries of Cardan's own joint types by name."""
    return {name: joint_entries(type) for name, type in OWN_TYPES.items()}


def own_forces() -> dict[str, Entries]:
    """Entries of Cardan's own force elements by name."""
    return {kind.in_files: force_entries(kind) for kind in FORCES.values()}


CONSTRAINT_TYPES: dict[str, Entries] = {
    "motion": {
        **ALONG,
        "value": Entry(Function(), "rad or m; an expression of t, or a number, where the joint is locked", needed=True),
        "where": WHERE,
    },
    "coupling": {
        "coefficients": Entry(Named("{A: 1, B: 3}"), "joints and the coefficients of their coordinates", needed=True),
        "offset": Entry(number("number", "angle", "length"), "what the sum of the products is"),
    },
}

SECTIONS: Entries = {
    "cardan": Entry(number(), f"version of the format, {VERSION}", needed=True),
    "name": Entry(Words(), "name of the mechanism", needed=True),
    "gravity": Entry(Vector("acceleration"), "acceleration of free fall in ground axes; [0, 0, -9.81] unless given"),
    "parameters": Entry(None, "numbers by name, for expressions"),
    "bodies": Entry(None, "rigid bodies by name", needed=True),
    "joints": Entry(None, "joints by name; one that closes a loop is just another joint"),
    "frames": Entry(None, "frames fixed to bodies, by name"),
    "forces": Entry(None, "forces and drives by name"),
    "constraints": Entry(None, "prescribed motions and couplings of joints by name"),
    "cut": Entry(ListOf(JOINT), "joints to cut where loops are opened; the others are chosen"),
    "snapping": Entry(number(), "placements within this of 0, 1 or -1 are taken as that"),
    "free": Entry(ListOf(Words()), "numbers that are inputs of every function, such as crank.mass"),
    "states": Entry(None, "named states"),
    "actuators": Entry(None, "inputs on joints, as data"),
    "losses": Entry(ListOf(Words("sentence")), "what the file that this came from says of dynamics, and this does not"),
    "notes": Entry(ListOf(Words("sentence")), "what the report of the model should say"),
}


def json_schema() -> Schema:
    """The JSON Schema of the format, for editors: `# yaml-language-server: $schema=cardan.schema.json`.

    It knows Cardan's own joint types and force elements.
    """
    vector = {"type": "array", "items": MEASURE, "minItems": 3, "maxItems": 3}
    rotation = {"type": "array", "items": {"$ref": "#/$defs/vector"}, "minItems": 3, "maxItems": 3}
    placement = {
        "position": {"$ref": "#/$defs/vector"},
        "rpy": {"$ref": "#/$defs/vector"},
        "quaternion": {"type": "array", "items": MEASURE, "minItems": 4, "maxItems": 4},
        "rotation": rotation,
    }
    joints = {type: JOINTS | entries for type, entries in own_joints().items()}
    forces, constraints = (
        {type: with_type(types) | entries for type, entries in types.items()}
        for types in (own_forces(), CONSTRAINT_TYPES)
    )
    inner: dict[str, Schema] = {
        "cardan": {"const": VERSION},
        "parameters": {"type": "object", "additionalProperties": MEASURE},
        "bodies": _by_name(_object(BODIES)),
        "joints": _by_name(_by_type(joints)),
        "frames": _by_name(_object(FRAMES)),
        "forces": _by_name(_by_type(forces)),
        "constraints": _by_name(_by_type(constraints)),
        "states": _by_name(_object(STATES)),
        "actuators": _by_name(_object(ACTUATORS)),
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Cardan mechanism",
        "description": "One mechanism: bodies, joints, forces. Numbers are SI, text with a unit, or = an expression.",
        **_object(SECTIONS, inner),
        "$defs": {
            "measure": {"anyOf": [{"type": "number"}, {"type": "string", "pattern": r"^\s*(=|[+-]?(\d|\.\d))"}]},
            "vector": vector,
            "placement": {
                "anyOf": [
                    {"$ref": "#/$defs/vector"},
                    {"type": "object", "properties": placement, "additionalProperties": False},
                ]
            },
        },
    }


def with_type(types: Iterable[str]) -> Entries:
    """The entry that tells elements of a section apart."""
    return {"type": Entry(Choice(tuple(types)), "kind of element", needed=True)}


def _object(entries: Entries, inner: dict[str, Schema] | None = None) -> Schema:
    properties = {}
    for name, entry in entries.items():
        form = (inner or INNER).get(name) or (entry.form.schema() if entry.form else {})
        properties[name] = {"description": entry.doc, **form}
    needed = [name for name, entry in entries.items() if entry.needed]
    return {"type": "object", "properties": properties, "required": needed, "additionalProperties": False}


def _by_name(schema: Schema) -> Schema:
    return {"type": "object", "additionalProperties": schema}


def _by_type(types: dict[str, Entries]) -> Schema:
    """One of several shapes, told apart by `type`."""
    shapes = []
    for type, entries in types.items():
        shape = _object(entries)
        shape["properties"]["type"] = {"const": type}
        shapes.append(shape)
    return {"type": "object", "required": ["type"], "oneOf": shapes}


INNER: dict[str, Schema] = {}
INNER |= {
    "mimic": _object(MIMIC),
    "wrenches": {"type": "array", "items": _object(WRENCH)},
}
INNER |= {"data": _object(DATA)}
