"""The tables of the YAML format: every section, element and entry, with its form; and the JSON Schema made of them.

The reader, the schema that editors use and the page of the documentation all come from these tables. The entries of
joint types and of force elements come from their declarations in `cardan.model`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from cardan.errors import ModelError
from cardan.io.yaml.units import UnitError, quantity_of
from cardan.io.yaml.values import (
    COORDINATE,
    DAMPING,
    EFFORT,
    MEASURE,
    RATE,
    ROTOR,
    Axis,
    Choice,
    Each,
    Form,
    Inertia,
    ListOf,
    Placement,
    Schema,
    Single,
    SixAxes,
    Turn,
    Vector,
    Words,
    number,
)
from cardan.model import field as declared
from cardan.model.field import Field
from cardan.model.force import FORCES, ForceKind
from cardan.model.joint import OWN_TYPES, JointType

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
