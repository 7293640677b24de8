"""The tables of the native format: every section, element and entry, with its form; and the JSON Schema made of them.

The reader, the schema that editors use and the page of the documentation all come from these rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from cardan.io.forms import (
    MEASURE,
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

    def read(self, spot: Any) -> Any:
        """Leave it to the reader, which knows what it is a function of."""
        return spot

    def schema(self) -> Schema:
        """A number, text, or a list."""
        return {"anyOf": [MEASURE, {"type": "array", "items": MEASURE}]} if self.many else MEASURE


@dataclass(frozen=True)
class Named:
    """A table of names and values, which the reader takes apart."""

    example: str

    def read(self, spot: Any) -> Any:
        """Leave it to the reader."""
        spot.table(self.example)
        return spot

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

AXIS: Entries = {"axis": Entry(Axis(), "direction in the joint frame; z unless given")}
JOINT_TYPES: dict[str, Entries] = {
    "rigid": {},
    "revolute": AXIS,
    "prismatic": AXIS,
    "cylindrical": AXIS,
    "screw": {**AXIS, "pitch": Entry(number("pitch"), "advance, m/rad; write 5 mm/rev", needed=True)},
    "universal": {
        "axis1": Entry(Axis(), "axis fixed in the parent; x unless given"),
        "axis2": Entry(Axis(), "axis fixed in the child, square to the first; y unless given"),
    },
    "spherical": {},
    "planar": {
        "normal": Entry(Axis(), "normal of the plane; z unless given"),
        "x": Entry(Axis(), "direction of the first coordinate, square to the normal"),
    },
    "free": {},
}
JOINTS: Entries = {
    "type": Entry(Choice(tuple(JOINT_TYPES)), "kind of joint", needed=True),
    "parent": Entry(BODY, "body, or ground", needed=True),
    "child": Entry(BODY, "body, or ground", needed=True),
    "at": Entry(Placement(), "joint frame on the parent: a position, or position and rotation"),
    "child_at": Entry(Placement(), "joint frame on the child"),
    "start": Entry(Each("coordinate"), "guess of the coordinates that assembly begins with"),
    "armature": Entry(Each("joint inertia"), "inertia of the drive's rotor along the rates, kg m^2 or kg"),
    "data": Entry(Named("{lower: -90 deg, upper: 90 deg}"), "limits and the like"),
}
DATA: Entries = {
    "lower": Entry(Single("coordinate"), "least coordinate"),
    "upper": Entry(Single("coordinate"), "largest coordinate"),
    "velocity": Entry(Single("rate"), "largest speed"),
    "effort": Entry(Single("effort"), "largest force or moment"),
    "damping": Entry(Single("joint damping"), "as data only: it acts if given as a force of type friction"),
    "friction": Entry(Single("effort"), "as data only: it acts if given as a force of type friction"),
    "mimic": Entry(Named("{joint: A, multiplier: 1, offset: 0}"), "the joint that it follows, as data"),
}
MIMIC: Entries = {
    "joint": Entry(JOINT, "the joint followed", needed=True),
    "multiplier": Entry(number(), "of its coordinate", needed=True),
    "offset": Entry(Single("coordinate"), "added", needed=True),
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
POINTS: Entries = {"at1": Entry(Vector(), "point on body1, m"), "at2": Entry(Vector(), "point on body2, m")}
WHERE = Entry(Named("{w: =2*pi*t}"), "named values that the expressions share")
ALONG: Entries = {"joint": Entry(JOINT, "the joint", needed=True)}
FORCE_TYPES: dict[str, Entries] = {
    "spring": {
        **PAIR,
        "stiffness": Entry(number("stiffness"), "N/m", needed=True),
        "length": Entry(number("length"), "m, at which it is slack", needed=True),
        "damping": Entry(number("damping"), "N s/m"),
        **POINTS,
    },
    "damper": {**PAIR, "damping": Entry(number("damping"), "N s/m", needed=True), **POINTS},
    "bushing": {
        **PAIR,
        "stiffness": Entry(SixAxes("stiffness"), "a number, six, or six rows; angular part first", needed=True),
        "damping": Entry(SixAxes("damping"), "the same on the rates"),
        "at1": Entry(Placement(), "frame on body1"),
        "at2": Entry(Placement(), "frame on body2"),
    },
    "wrench": {
        "body": Entry(BODY, "the body", needed=True),
        "moment": Entry(Vector("moment"), "N m"),
        "force": Entry(Vector("force"), "N"),
        "at": Entry(Vector(), "point of the body, m"),
        "axes": Entry(Choice(("ground", "body")), "ground: it keeps its direction; body: it follows"),
    },
    "torsion": {
        **ALONG,
        "stiffness": Entry(Each("joint stiffness"), "N m/rad or N/m"),
        "rest": Entry(Each("coordinate"), "rad or m, where it is slack"),
        "damping": Entry(Each("joint damping"), "N m s/rad or N s/m"),
    },
    "friction": {
        **ALONG,
        "viscous": Entry(Each("joint damping"), "N m s/rad or N s/m"),
        "coulomb": Entry(Each("effort"), "N m or N"),
        "smoothing": Entry(Each("rate"), "speed over which Coulomb friction changes sign, rad/s or m/s"),
    },
    "drive": {
        **ALONG,
        "effort": Entry(Function(many=True), "N m or N; an expression of t, q and v; one for each rate", needed=True),
        "where": WHERE,
    },
    "user": {
        "bodies": Entry(ListOf(BODY), "the bodies, counted from 1 in the expressions", needed=True),
        "wrenches": Entry(None, "a moment and a force for each body, at its origin, in its axes", needed=True),
        "where": WHERE,
    },
}
WRENCH: Entries = {
    "moment": Entry(Function(many=True), "N m; three numbers or expressions"),
    "force": Entry(Function(many=True), "N; three numbers or expressions"),
}
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
    """The JSON Schema of the format, for editors: `# yaml-language-server: $schema=cardan.schema.json`."""
    vector = {"type": "array", "items": MEASURE, "minItems": 3, "maxItems": 3}
    rotation = {"type": "array", "items": {"$ref": "#/$defs/vector"}, "minItems": 3, "maxItems": 3}
    placement = {
        "position": {"$ref": "#/$defs/vector"},
        "rpy": {"$ref": "#/$defs/vector"},
        "quaternion": {"type": "array", "items": MEASURE, "minItems": 4, "maxItems": 4},
        "rotation": rotation,
    }
    joints = {type: JOINTS | entries for type, entries in JOINT_TYPES.items()}
    forces, constraints = (
        {type: with_type(types) | entries for type, entries in types.items()}
        for types in (FORCE_TYPES, CONSTRAINT_TYPES)
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


def with_type(types: dict[str, Entries]) -> Entries:
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
