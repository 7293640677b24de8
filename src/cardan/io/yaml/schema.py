"""The tables of the YAML format: every section, element and entry, with its form; and the JSON Schema made of them.

The reader, the schema that editors use and the page of the documentation all come from these tables. The entries of
joint types and of force elements come from their declarations in `cardan.model`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from cardan.errors import ModelError, nearest
from cardan.io.yaml.nodes import List, NodeReader, Scalar, Table, described
from cardan.io.yaml.units import UnitError, quantity_of
from cardan.model import field as declared
from cardan.model import inertia
from cardan.model.constraint_kind import ConstraintKind
from cardan.model.constraint_table import CONSTRAINTS
from cardan.model.field import Field
from cardan.model.force import FORCES, ForceKind
from cardan.model.joint import OWN_TYPES, JointType
from cardan.model.pose import Pose
from cardan.model.shape import Box, Capsule, Cylinder, Ellipsoid, Extrusion, Mesh, MeshFile, Rod, Shape, Sphere
from cardan.model.table import ENDS

Schema = dict[str, Any]
MEASURE: Schema = {"$ref": "#/$defs/measure"}
VECTOR: Schema = {"$ref": "#/$defs/vector"}
PLACEMENT: Schema = {"$ref": "#/$defs/placement"}
SOME: Schema = {"anyOf": [MEASURE, {"type": "array", "items": MEASURE}]}


@dataclass(frozen=True)
class Form:
    """How a value is written in a file: how it is read at its place, and the JSON Schema for editors."""

    read: Callable[[NodeReader], Any]
    schema: Schema


def _array(items: Schema, count: int) -> Schema:
    return {"type": "array", "items": items, "minItems": count, "maxItems": count}


# Numbers, in SI units.


def number(*quantities: str) -> Form:
    """A number, in one of several quantities."""
    return Form(lambda reader: reader.number(*quantities or ("number",)), MEASURE)


def vector(quantity: str = "length") -> Form:
    """Three numbers of a quantity."""
    return Form(lambda reader: several(reader, [quantity] * 3), VECTOR)


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


# Words, lists and tables.

TEXT = Form(NodeReader.text, {"type": ["string", "number", "boolean"]})  # a name may look like a number


def choice(*words: str) -> Form:
    """One of several words."""
    return Form(lambda reader: reader.choice(words), {"enum": list(words)})


TRUTH = Form(lambda reader: reader.choice(("true", "false")), {"enum": [True, False, "true", "false"]})


def list_of(form: Form) -> Form:
    """A list of values of one form; a single one may be written without brackets."""

    def read(reader: NodeReader) -> list[Any]:
        return [form.read(item) for item in ([reader] if isinstance(reader.node, Scalar) else reader.items())]

    return Form(read, {"anyOf": [form.schema, {"type": "array", "items": form.schema}]})


def function(many: bool = False) -> Form:
    """An expression of time and state, or a list of them, which the reader of the element takes apart."""
    return Form(lambda reader: reader, SOME if many else MEASURE)


def named(example: str) -> Form:
    """A table of names and values, which the reader of the element takes apart."""
    return Form(lambda reader: (reader.table(example), reader)[1], {"type": "object", "additionalProperties": MEASURE})


# Directions and placements.

AXES: dict[str, tuple[float, float, float]] = {
    "x": (1.0, 0.0, 0.0), "y": (0.0, 1.0, 0.0), "z": (0.0, 0.0, 1.0),
    "-x": (-1.0, 0.0, 0.0), "-y": (0.0, -1.0, 0.0), "-z": (0.0, 0.0, -1.0),
}  # fmt: skip
ROTATIONS = ("rotation", "quaternion", "rpy")


def _read_axis(reader: NodeReader) -> tuple[float, ...]:
    """A direction: the name of a coordinate axis, or a vector of any length."""
    if isinstance(reader.node, Scalar):
        return AXES[reader.choice(tuple(AXES))]
    return tuple(several(reader, ["number"] * 3))


def _read_pose(reader: NodeReader) -> Pose:
    """Where a frame is: a position, or a table of `position` and one of `rotation`, `quaternion`, `rpy`."""
    if isinstance(reader.node, List):
        return Pose(several(reader, ["length"] * 3))
    table = reader.table("{position: [0, 0, 0.1], rpy: [0, 90 deg, 0]}")
    values: dict[str, Any] = {}
    for key, node in table.entries.items():
        inner = reader.inner(node, f"{reader.what}.{key}")
        if key == "rotation":
            values[key] = matrix(inner, [["number"] * 3] * 3)
        elif key in ("position", *ROTATIONS):
            numbers = {"position": ["length"] * 3, "quaternion": ["number"] * 4, "rpy": ["angle"] * 3}
            values[key] = several(inner, numbers[key])
        else:
            raise reader.error(f"has no entry {key!r}{nearest(key, ('position', *ROTATIONS))}", table.keys[key].line)
    try:
        return Pose(**values)
    except ModelError as error:
        fault = reader.error(str(error).replace("pose: ", "is no pose: ", 1))
    given = [key for key in ROTATIONS if key in values]
    if given not in (["quaternion"], ["rotation"]):
        raise fault
    return Pose(**values | {given[0]: reader.policy.settle(given[0], fault, values[given[0]])})


def _read_turn(reader: NodeReader) -> np.ndarray:
    """A rotation alone (3, 3): a matrix of three rows, or a table of one of `rotation`, `quaternion`, `rpy`."""
    if isinstance(reader.node, List):
        return np.array(matrix(reader, [["number"] * 3] * 3))
    if "position" in reader.table("{rpy: [0, 0, 30 deg]}").entries:
        raise reader.error("is a direction only and has no position")
    return _read_pose(reader).rotation


AXIS = Form(_read_axis, {"anyOf": [{"enum": list(AXES)}, VECTOR]})
POSE = Form(_read_pose, PLACEMENT)
TURN = Form(_read_turn, {"anyOf": [{"type": "array", "items": VECTOR}, PLACEMENT]})

# Inertia.

SOLIDS: dict[str, tuple[Callable[..., np.ndarray], dict[str, Form]]] = {
    "rod": (inertia.rod, {"length": number("length"), "axis": AXIS}),
    "box": (inertia.box, {"size": vector()}),
    "cylinder": (inertia.cylinder, {"radius": number("length"), "length": number("length"), "axis": AXIS}),
    "sphere": (inertia.sphere, {"radius": number("length")}),
    "point": (inertia.point, {}),
}
"""How the inertia of each solid is computed, and its dimensions besides the mass."""


def _read_inertia(reader: NodeReader) -> Callable[[float], Any]:
    """3 principal values, 6 entries, 3 rows, or a solid such as `{rod: {length: 1, axis: x}}`; a function of mass."""
    if isinstance(reader.node, List):
        value = _read_moments(reader)
        return lambda mass: value
    if isinstance(reader.node, Scalar):
        return _read_solid(reader, reader.choice(("point",)), None)
    table = reader.table("{rod: {length: 1 m, axis: x}}")
    if len(table.entries) != 1:
        raise reader.error(f"must name one solid of {', '.join(SOLIDS)}, got {described(table)}")
    solid, node = next(iter(table.entries.items()))
    if solid not in SOLIDS:
        raise reader.error(f"has no solid {solid!r}{nearest(solid, SOLIDS)}")
    return _read_solid(reader, solid, reader.inner(node, f"inertia.{solid}"))


def _read_moments(reader: NodeReader) -> list[Any]:
    items = reader.items()
    if any(isinstance(item.node, List) for item in items):
        return matrix(reader, [["inertia"] * 3] * 3)
    if len(items) not in (3, 6):
        raise reader.error(
            f"must be 3 principal values, 6 entries [Ixx, Iyy, Izz, Ixy, Ixz, Iyz] or 3 rows, got {len(items)}"
        )
    return [item.number("inertia") for item in items]


def _read_solid(reader: NodeReader, solid: str, inner: NodeReader | None) -> Callable[[float], Any]:
    make, fields = SOLIDS[solid]
    table = inner.table(f"{{{', '.join(fields)}}}") if inner and fields else Table(0, 0)
    values: dict[str, Any] = {}
    for key, node in table.entries.items():
        if key not in fields:
            raise reader.error(f"of a {solid} has no {key!r}{nearest(key, fields)}", table.keys[key].line)
        values[key] = fields[key].read(reader.inner(node, f"inertia.{solid}.{key}"))
    missing = [key for key in fields if key not in values and key != "axis"]
    if missing:
        raise reader.error(f"of a {solid} needs {' and '.join(missing)}; give it")

    def of_mass(mass: float) -> Any:
        try:
            return make(mass, **values)
        except ModelError as error:
            raise reader.error(f"is wrong: {error}") from None

    return of_mass


def _solid_schema() -> Schema:
    solids = {
        name: {
            "type": "object",
            "properties": {key: form.schema for key, form in fields.items()},
            "required": [key for key in fields if key != "axis"],
            "additionalProperties": False,
        }
        for name, (_, fields) in SOLIDS.items()
        if fields
    }
    one = {"additionalProperties": False, "minProperties": 1, "maxProperties": 1}
    return {"type": "object", "properties": solids, **one}


INERTIA = Form(
    _read_inertia, {"anyOf": [{"type": "array", "minItems": 3, "maxItems": 6}, {"const": "point"}, _solid_schema()]}
)

# Shapes.


def _read_corners(reader: NodeReader) -> list[list[float]]:
    """Corners [x, y] of a plane figure."""
    return [several(item, ["length"] * 2) for item in reader.items()]


def _read_scale(reader: NodeReader) -> Any:
    return several(reader, ["number"] * 3) if isinstance(reader.node, List) else reader.number("number")


def _read_colour(reader: NodeReader) -> Any:
    """A name, "#rrggbb", or 3 or 4 numbers from 0 to 1."""
    return [item.number("number") for item in reader.items()] if isinstance(reader.node, List) else reader.text()


def _triples(kind: type) -> Callable[[NodeReader], np.ndarray]:
    def read(reader: NodeReader) -> np.ndarray:
        words = reader.text().split()
        try:
            return np.array([kind(word) for word in words]).reshape(-1, 3)
        except (ValueError, OverflowError):
            raise reader.error(f"must be text of triples of numbers, got {len(words)} words") from None

    return read


CORNERS = Form(_read_corners, {"type": "array", "items": _array(MEASURE, 2), "minItems": 3})
HOLES = Form(
    lambda reader: [_read_corners(item) for item in reader.items()], {"type": "array", "items": CORNERS.schema}
)
SCALE = Form(_read_scale, {"anyOf": [MEASURE, VECTOR]})
COLOUR = Form(_read_colour, {"anyOf": [{"type": "string"}, {"type": "array", "minItems": 3, "maxItems": 4}]})
TRIPLES = {kind: Form(_triples(kind), {"type": "string"}) for kind in (float, int)}
LENGTH = number("length")

SHAPES: dict[str, tuple[Callable[..., Shape], dict[str, Form], tuple[str, ...]]] = {
    "box": (Box, {"size": vector()}, ("size",)),
    "sphere": (Sphere, {"radius": LENGTH}, ("radius",)),
    "ellipsoid": (Ellipsoid, {"radii": vector()}, ("radii",)),
    "cylinder": (Cylinder, {"radius": LENGTH, "length": LENGTH, "axis": AXIS}, ("radius", "length")),
    "capsule": (Capsule, {"radius": LENGTH, "length": LENGTH, "axis": AXIS}, ("radius", "length")),
    "rod": (Rod, {"start": vector(), "end": vector(), "radius": LENGTH}, ("start", "end", "radius")),
    "extrusion": (
        Extrusion, {"outline": CORNERS, "thickness": LENGTH, "holes": HOLES}, ("outline", "thickness"),
    ),
    "mesh": (MeshFile, {"file": TEXT, "scale": SCALE}, ("file",)),
    "triangles": (Mesh, {"vertices": TRIPLES[float], "faces": TRIPLES[int]}, ("vertices", "faces")),
}  # fmt: skip
"""How each shape is made, its entries, and which of them must be given; all have `at` and `colour` too."""
ANY_SHAPE: dict[str, Form] = {"at": POSE, "colour": COLOUR}
ShapeRecipe = tuple[str, dict[str, Any], NodeReader]
"""The name of a shape, its values, and where it is in the file."""


def _read_shapes(reader: NodeReader) -> list[ShapeRecipe]:
    """One shape such as `{box: {size: [1, 2, 3]}}`, or a list of them."""
    return [_read_shape(item) for item in (reader.items() if isinstance(reader.node, List) else [reader])]


def _read_shape(reader: NodeReader) -> ShapeRecipe:
    table = reader.table("{box: {size: [0.1, 0.1, 0.4]}}")
    if len(table.entries) != 1:
        raise reader.error(f"must name one shape of {', '.join(SHAPES)}, got {described(table)}")
    name, node = next(iter(table.entries.items()))
    if name not in SHAPES:
        raise reader.error(f"has no shape {name!r}{nearest(name, SHAPES)}")
    _, forms, needed = SHAPES[name]
    inner = reader.inner(node, f"{reader.what}.{name}")
    entries = inner.table(f"{{{', '.join(forms)}}}")
    forms = forms | ANY_SHAPE
    for key in entries.entries:
        if key not in forms:
            raise inner.error(f"has no entry {key!r}{nearest(key, forms)}", entries.keys[key].line)
    missing = [key for key in needed if key not in entries.entries]
    if missing:
        raise inner.error(f"needs {' and '.join(missing)}; give it")
    values = {key: forms[key].read(inner.inner(node, f"{inner.what}.{key}")) for key, node in entries.entries.items()}
    return name, values, inner


def _shape_schema() -> Schema:
    shapes = {
        name: {
            "type": "object",
            "properties": {key: form.schema for key, form in (forms | ANY_SHAPE).items()},
            "required": list(needed),
            "additionalProperties": False,
        }
        for name, (_, forms, needed) in SHAPES.items()
    }
    return {
        "type": "object", "properties": shapes, "additionalProperties": False, "minProperties": 1, "maxProperties": 1,
    }  # fmt: skip


SHAPE = Form(_read_shapes, {"anyOf": [_shape_schema(), {"type": "array", "items": _shape_schema()}]})

# Numbers that belong to a joint: their units along a coordinate that is an angle, and along one that is a length.

COORDINATE, RATE, EFFORT = "rad|m", "rad/s|m/s", "N m|N"
DAMPING, ROTOR = "N m s/rad|N s/m", "kg m^2|kg"


def along(reader: NodeReader, units: str) -> list[str]:
    """Quantities along the coordinates of the joint: one for each of q for a coordinate, one for each of v else."""
    assert reader.kind is not None
    if units == COORDINATE:
        return [quantity_of(unit) for unit in reader.kind.q_units]
    turning, shifting = map(quantity_of, units.split("|"))
    return [shifting if unit == "m/s" else turning for unit in reader.kind.v_units]


def each(units: str) -> Form:
    """A number for each coordinate of a joint, or a single one that fits them all."""

    def read(reader: NodeReader) -> Any:
        quantities = along(reader, units)
        if isinstance(reader.node, List):
            return several(reader, quantities)
        values = [reader.number(quantity) for quantity in quantities or [quantity_of(units.partition("|")[0])]]
        return values[0]

    return Form(read, SOME)


def limits(units: str) -> Form:
    """The same, where `none` is no limit."""

    def read(reader: NodeReader) -> Any:
        if not isinstance(reader.node, List):
            return each(units).read(reader)
        quantities, items = along(reader, units), reader.items()
        if len(items) != len(quantities):
            raise reader.error(f"must be {len(quantities)} numbers in brackets, or none for no limit, got {len(items)}")
        pairs = zip(items, quantities, strict=True)
        return [None if item.written == "none" else item.number(quantity) for item, quantity in pairs]

    limit: Schema = {"anyOf": [MEASURE, {"const": "none"}]}
    return Form(read, {"anyOf": [MEASURE, {"type": "array", "items": limit}]})


def single(units: str) -> Form:
    """One number that belongs to a joint, in the quantity of any of its coordinates."""

    def read(reader: NodeReader) -> float:
        found = list(dict.fromkeys(q for q in along(reader, units) if q != "number"))
        return reader.number(*(found or map(quantity_of, units.split("|"))))

    return Form(read, MEASURE)


def six_axes(what: str) -> Form:
    """Stiffness or damping of a bushing: a number, six, or a matrix of six rows; angular part first."""

    def read(reader: NodeReader) -> Any:
        if not isinstance(reader.node, List):
            return reader.number("number")
        rows = [f"torsional {what}"] * 3 + [what] * 3
        if any(isinstance(item.node, List) for item in reader.items()):
            return matrix(reader, [[q if r == q else f"cross {what}" for q in rows] for r in rows])
        return several(reader, rows)

    return Form(read, {"anyOf": [MEASURE, _array(MEASURE, 6), _array(_array(MEASURE, 6), 6)]})


# The tables.

POINTS = Form(
    lambda reader: [item.quantity().value for item in reader.items()], {"type": "array", "items": MEASURE}
)  # fmt: skip
ROWS = Form(lambda reader: [POINTS.read(row) for row in reader.items()], {"type": "array", "items": POINTS.schema})
VERSION = 1


@dataclass(frozen=True)
class Entry:
    """One line of an element: its form, what it means, and whether it must be there."""

    form: Form | None
    doc: str
    needed: bool = False


Entries = dict[str, Entry]

BODIES: Entries = {
    "mass": Entry(number("mass"), "kg; a body without mass has none"),
    "com": Entry(vector(), "centre of mass, m, in the body frame"),
    "inertia": Entry(INERTIA, "kg m^2 about the centre of mass: 3 principal values, 6 entries, 3 rows, or a solid"),
    "inertia_about": Entry(vector(), "the point that the inertia refers to, if not the centre of mass, m"),
    "inertia_axes": Entry(TURN, "the axes that the inertia refers to, if not those of the body"),
    "judge": Entry(
        choice("body", "link", "nothing"), "what must obey the rules of inertia: the body, or all fixed to it"
    ),
    "shape": Entry(SHAPE, "what is seen of it: a shape such as {box: {size: [1, 2, 3]}}, or a list of them"),
    "density": Entry(number("density"), "kg/m^3; mass, centre of mass and inertia are then those of the shape"),
}
GROUND: Entries = {"shape": Entry(SHAPE, "what is seen of the ground: a shape, or a list of them")}

JOINTS: Entries = {
    "type": Entry(TEXT, "kind of joint", needed=True),
    "parent": Entry(TEXT, "body, or ground", needed=True),
    "child": Entry(TEXT, "body, or ground", needed=True),
    "at": Entry(POSE, "joint frame on the parent: a position, or position and rotation"),
    "child_at": Entry(POSE, "joint frame on the child"),
    "start": Entry(each(COORDINATE), "guess of the coordinates that assembly begins with"),
    "armature": Entry(each(ROTOR), "inertia of the drive's rotor along the rates, kg m^2 or kg"),
    "data": Entry(named("{lower: -90 deg, upper: 90 deg}"), "limits and the like"),
}
DATA: Entries = {
    "lower": Entry(single(COORDINATE), "least coordinate"),
    "upper": Entry(single(COORDINATE), "largest coordinate"),
    "velocity": Entry(single(RATE), "largest speed"),
    "effort": Entry(single(EFFORT), "largest force or moment"),
    "damping": Entry(single(DAMPING), "as data only: it acts if given as a force of type friction"),
    "friction": Entry(single(EFFORT), "as data only: it acts if given as a force of type friction"),
    "mimic": Entry(named("{joint: A, multiplier: 1, offset: 0}"), "the joint that it follows, as data"),
}
MIMIC: Entries = {
    "joint": Entry(TEXT, "the joint followed", needed=True),
    "multiplier": Entry(number(), "of its coordinate", needed=True),
    "offset": Entry(single(COORDINATE), "added", needed=True),
}
STATES: Entries = {
    "time": Entry(number("time"), "s"),
    "q": Entry(named("{A: 20 deg}"), "coordinates of joints by name; those not named are at their start"),
    "v": Entry(named("{A: 2 rad/s}"), "rates of joints by name; those not named are at rest"),
}
ACTUATORS: Entries = {
    "kind": Entry(TEXT, "what it is, such as motor", needed=True),
    "joint": Entry(TEXT, "the joint", needed=True),
    "gear": Entry(list_of(number()), "force along each rate for unit force of the actuator", needed=True),
    "gain": Entry(number(), "force for unit control"),
    "bias": Entry(list_of(number()), "force: a constant, and what length and speed add"),
    "control": Entry(list_of(number()), "least and largest control"),
    "force": Entry(list_of(number()), "least and largest force"),
    "slopes": Entry(list_of(number()), "what length and speed add to the gain"),
    "dynamics": Entry(choice("filter", "integrator"), "how an activation follows the control; none unless given"),
    "time": Entry(number("time"), "time constant of the filter"),
    "activation": Entry(list_of(number()), "least and largest activation"),
}
STARTS = Form(
    lambda reader: {
        name: (POINTS if isinstance(node, List) else number()).read(reader.inner(node, name))
        for name, node in reader.table("{integral: 0.5}").entries.items()
    },
    {"type": "object", "additionalProperties": SOME},
)  # fmt: skip


def _read_input(reader: NodeReader) -> Any:
    """A start value, or the name of a signal: text that begins as no number does."""
    if isinstance(reader.node, List):
        return POINTS.read(reader)
    text = reader.node.text if isinstance(reader.node, Scalar) else ""
    return TEXT.read(reader) if re.match(r"[^\W\d]", text) else number().read(reader)


GIVEN = Form(
    lambda reader: {
        name: _read_input(reader.inner(node, name))
        for name, node in reader.table("{reference: 0.5}").entries.items()
    },
    {"type": "object", "additionalProperties": {"anyOf": [SOME, {"type": "string"}]}},
)  # fmt: skip
SEES = Entry(TEXT, "the signal that it regulates in place of the coordinates of its joints")
CONTROLLERS: Entries = {
    "joints": Entry(list_of(TEXT), "the joints that it drives; without any it gives a signal, NAME.output"),
    "every": Entry(number("time"), "interval of one that is sampled"),
    "delay": Entry(number("time"), "by which its efforts come late, a multiple of every"),
    "states": Entry(STARTS, "start values of its states by name"),
    "inputs": Entry(GIVEN, "start values of its inputs by name, or the names of the signals that they are"),
}
CONTROLLER_TYPES: dict[str, Entries] = {
    "pid": {
        "kp": Entry(list_of(number()), "effort for unit error"),
        "ki": Entry(list_of(number()), "rate of effort for unit error"),
        "kd": Entry(list_of(number()), "effort for unit rate of the error"),
        "filter": Entry(number("time"), "time constant of the derivative; without it the rate is measured"),
        "limits": Entry(list_of(number()), "least and largest effort"),
        "tracking": Entry(number("time"), "time constant with which the integral follows past the limits"),
        "sees": SEES,
    },
    "state_feedback": {
        "K": Entry(ROWS, "gains of coordinates, then rates, then variables, a row for each effort", needed=True),
        "feeds": Entry(list_of(TEXT), "joints that are fed back, then variables; the joints driven by default"),
        "at": Entry(list_of(number()), "coordinates, then rates, then variables about which it regulates"),
        "effort": Entry(list_of(number()), "efforts there"),
    },
    "state_space": {
        "A": Entry(ROWS, "x' = A x + B y, u = C x + D y, y the errors of the joints", needed=True),
        "B": Entry(ROWS, "see A", needed=True),
        "C": Entry(ROWS, "see A", needed=True),
        "D": Entry(ROWS, "see A", needed=True),
        "sees": SEES,
    },
    "motor": {
        "constant": Entry(number(), "N m/A, or N/A", needed=True),
        "resistance": Entry(number(), "ohm", needed=True),
        "inductance": Entry(number(), "H"),
        "gear": Entry(number(), "turns of the motor for one of the joint"),
        "voltage": Entry(number(), "largest voltage, V"),
    },
    "user": {
        "bodies": Entry(list_of(TEXT), "bodies that it acts on by wrenches"),
        "outputs": Entry(number(), "how many numbers it gives where it acts on nothing; 1 unless given"),
        "reads": Entry(named("{x: {coordinate: A}}"), "names for what the expressions read, as of variables"),
        "law": Entry(
            function(many=True), "efforts of the joints, wrenches, and then rates or next values of the states",
            needed=True,
        ),
    },
}  # fmt: skip
TABLES: Entries = {
    "file": Entry(TEXT, "a CSV file with the columns x, y and, of a table of two arguments, z; or give the lists"),
    "x": Entry(POINTS, "the points, ascending; numbers, with units where you like"),
    "y": Entry(POINTS, "the values; of a table of two arguments the points of the second"),
    "z": Entry(ROWS, "the values of a table of two arguments: a row for each x"),
    "smooth": Entry(number(), "continuous derivatives: 2, 1 or 0; 2 unless given"),
    "ends": Entry(
        list_of(choice(*ENDS)), "what is outside: error, hold, linear or periodic; error unless given"
    ),
}  # fmt: skip
CURVES: Entries = {
    "points": Entry(ROWS, "points, three numbers each, through which a cubic spline goes; or give x, y and z"),
    "x": Entry(function(), "x of the points of the curve, an expression of u; m"),
    "y": Entry(function(), "y, m"),
    "z": Entry(function(), "z, m"),
    "start": Entry(number(), "u where the curve begins"),
    "stop": Entry(number(), "u where it ends"),
    "closed": Entry(TRUTH, "whether it goes from its last point to its first; false unless given"),
    "up": Entry(
        Form(lambda reader: reader, {"anyOf": [{"const": "carried"}, VECTOR, {"type": "array", "items": VECTOR}]}),
        "the direction that z of its frame keeps to: three numbers or expressions of u, three for each point, or "
        "carried, without twist; z unless given",
    ),
    "bank": Entry(
        Form(lambda reader: reader, SOME),
        "angle by which the frame is turned about the tangent: a number, an expression of u, or one for each point",
    ),
}
READS: Entries = {
    "coordinate": Entry(TEXT, "joint, whose coordinates are read"),
    "rate": Entry(TEXT, "joint, whose rates are read"),
    "reaction": Entry(TEXT, "joint, whose moment and force on its child are read, in its joint frame, N m and N"),
    "force": Entry(TEXT, "element, whose force is read as runs have it"),
    "position": Entry(TEXT, "body or frame, whose position in ground axes is read, m"),
    "velocity": Entry(TEXT, "body or frame, whose velocity in ground axes is read, m/s"),
    "acceleration": Entry(TEXT, "body or frame, whose acceleration in ground axes is read, m/s^2, without gravity"),
    "point": Entry(vector(), "of the body, whose position, velocity or acceleration it is; its origin unless given"),
    "rotation": Entry(TEXT, "body or frame, whose axes in ground axes are read: 9 numbers, axis by axis"),
    "angular_velocity": Entry(TEXT, "body or frame, whose angular velocity in ground axes is read, rad/s"),
    "angular_acceleration": Entry(TEXT, "body or frame, whose angular acceleration in ground axes is read, rad/s^2"),
    "number": Entry(TEXT, "variable, signal, or number that is free"),
}
VARIABLES: Entries = {
    "value": Entry(Form(lambda reader: reader, SOME), "at which runs begin: a number, or several", needed=True),
    "unit": Entry(TEXT, "SI unit, for labels"),
    "reads": Entry(named("{x: {coordinate: A}}"), "names in its expressions, and what each is"),
    "rate": Entry(function(many=True), "rate of change: a number or an expression for each number"),
    "every": Entry(number("time"), "interval, s, after which it takes a new value"),
    "update": Entry(function(many=True), "this value: a number or an expression for each number"),
    "linear": Entry(TRUTH, "whether an input follows straight lines; false unless given"),
}
SIGNALS: Entries = {
    "value": Entry(function(many=True), "a number or expression, or several", needed=True),
    "unit": Entry(TEXT, "SI unit, for labels"),
    "reads": Entry(named("{x: {coordinate: A}}"), "names in its expressions, and what each is"),
}
FRAMES: Entries = {
    "body": Entry(TEXT, "body, or ground", needed=True),
    "at": Entry(POSE, "place on the body"),
}

PAIR: Entries = {
    "body1": Entry(TEXT, "body, or ground", needed=True),
    "body2": Entry(TEXT, "body, or ground", needed=True),
}
WHERE = Entry(named("{w: =2*pi*t}"), "named values that the expressions share")
CURVES["where"] = WHERE
VARIABLES["where"] = SIGNALS["where"] = CONTROLLER_TYPES["user"]["where"] = WHERE
ALONG_SEVERAL: Entries = {
    "along": Entry(named("{A: 1, B: 3}"), "joints and the coefficients of their rates", needed=True)
}
ALONG: Entries = {"joint": Entry(TEXT, "the joint, or one of its coordinates by number, A[1]", needed=True)}
BODY_LIST: Entries = {"bodies": Entry(list_of(TEXT), "the bodies, counted from 1 in the expressions", needed=True)}
WRENCH: Entries = {
    "moment": Entry(function(many=True), "N m; three numbers or expressions"),
    "force": Entry(function(many=True), "N; three numbers or expressions"),
}


def _read_table_name(reader: NodeReader) -> Any:
    """A table of the file by its name."""
    if not reader.tables:
        raise reader.error("names a table, and the file has none; add a section 'tables'")
    return reader.tables[reader.choice(tuple(reader.tables))]


def _read_curve_name(reader: NodeReader) -> Any:
    """A curve of the file by its name."""
    if not reader.curves:
        raise reader.error("names a curve, and the file has none; add a section 'curves'")
    return reader.curves[reader.choice(tuple(reader.curves))]


# What a field of `cardan.model` is in a file, by its form.
FORMS: dict[str, Callable[[Field], Form | None]] = {
    declared.TEXT: lambda field: TEXT,
    declared.NUMBER: lambda field: number(quantity_of(field.unit)),
    declared.VECTOR: lambda field: vector(quantity_of(field.unit)),
    declared.AXIS: lambda field: AXIS,
    declared.POSE: lambda field: POSE,
    declared.EACH: lambda field: each(field.unit),
    declared.LIMIT: lambda field: limits(field.unit),
    declared.SIX_AXES: lambda field: six_axes(quantity_of(field.unit.rpartition(", ")[2])),
    declared.AXES: lambda field: choice("ground", "body"),
    declared.EFFORT: lambda field: function(many=True),
    declared.WRENCHES: lambda field: None,
    declared.FUNCTION: lambda field: function(),
    declared.TABLE: lambda field: Form(_read_table_name, TEXT.schema),
    declared.GAP: lambda field: function(many=True),
    declared.CURVE: lambda field: Form(_read_curve_name, TEXT.schema),
    declared.TRUTH: lambda field: Form(lambda reader: TRUTH.read(reader) == "true", TRUTH.schema),
}


def _declared(owner: str, fields: Mapping[str, Field]) -> Entries:
    """Entries of the fields of a joint type or force element."""
    found: Entries = {}
    for name, field in fields.items():
        if field.form == declared.MOMENT_AND_FORCE:
            found |= {"moment": Entry(vector("moment"), "N m"), "force": Entry(vector("force"), "N")}
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
    return _element_entries(f"force kind {kind.name!r}", kind)


def constraint_entries(kind: ConstraintKind) -> Entries:
    """The entries of a kind of constraint element: the bodies, its numbers, and the rows that it holds."""
    entries = _element_entries(f"constraint kind {kind.name!r}", kind, "holds")
    if len(kind.rows) == 1:
        return entries
    names = [row.name for row in kind.rows]
    usual = ", ".join(row.name for row in kind.rows if row.held)
    return entries | {"holds": Entry(list_of(choice(*names)), f"the rows that it holds: {usual} unless given")}


def _element_entries(owner: str, kind: ForceKind | ConstraintKind, *taken: str) -> Entries:
    if kind.on != "bodies":
        on = ALONG if kind.on == "joint" else ALONG_SEVERAL
    else:
        on = {1: {"body": Entry(TEXT, "the body", needed=True)}, 2: PAIR}.get(kind.bodies, BODY_LIST)
    entries = _declared(owner, kind.fields)
    if same := sorted(entries.keys() & {*on, "type", "where", *taken}):
        raise ModelError(f"{owner}: its field {same[0]!r} has the name of another entry; rename it")
    shares = kind.function and kind.fields[kind.function].form != declared.TABLE
    return on | entries | ({"where": WHERE} if shares else {})


def own_joints() -> dict[str, Entries]:
    """Entries of Cardan's own joint types by name."""
    return {name: joint_entries(type) for name, type in OWN_TYPES.items()}


def own_forces() -> dict[str, Entries]:
    """Entries of Cardan's own force elements by name."""
    return {kind.in_files: force_entries(kind) for kind in FORCES.values()}


CONSTRAINT_TYPES: dict[str, Entries] = {
    "motion": {
        **ALONG,
        "value": Entry(function(), "rad or m; an expression of t, or a number, where the joint is locked", needed=True),
        "where": WHERE,
    },
    "coupling": {
        "coefficients": Entry(named("{A: 1, B: 3}"), "joints and the coefficients of their coordinates", needed=True),
        "offset": Entry(number("number", "angle", "length"), "what the sum of the products is"),
        "unit": Entry(choice("m", "rad"), "of the sum; that of the joints unless given"),
    },
    "relation": {
        "joints": Entry(list_of(TEXT), "joints with one coordinate each", needed=True),
        "value": Entry(function(), "what must stay zero; an expression of their coordinates q1, q2, ...", needed=True),
        "unit": Entry(choice("m", "rad"), "of the value; that of the joints unless given"),
        "where": WHERE,
    },
    "user": {
        **BODY_LIST,
        "value": Entry(function(), "what must stay zero; an expression of t and of the bodies", needed=True),
        "unit": Entry(TEXT, "of the value, or of its integral if it is a rate: m unless given"),
        "where": WHERE,
    },
}


def own_constraints() -> dict[str, Entries]:
    """Entries of prescribed motions, couplings, constraints of the user, and Cardan's own constraint elements."""
    return CONSTRAINT_TYPES | {kind.in_files: constraint_entries(kind) for kind in CONSTRAINTS.values()}


SECTIONS: Entries = {
    "cardan": Entry(number(), f"version of the format, {VERSION}", needed=True),
    "name": Entry(TEXT, "name of the mechanism", needed=True),
    "gravity": Entry(vector("acceleration"), "acceleration of free fall in ground axes; [0, 0, -9.81] unless given"),
    "parameters": Entry(None, "numbers by name, for expressions"),
    "tables": Entry(None, "tables by name, which expressions call as functions: =cam(t)"),
    "curves": Entry(None, "curves by name, along which joints run and on which points stay"),
    "bodies": Entry(None, "rigid bodies by name", needed=True),
    "ground": Entry(None, "the shapes of the ground"),
    "joints": Entry(None, "joints by name; one that closes a loop is just another joint"),
    "frames": Entry(None, "frames fixed to bodies, by name"),
    "forces": Entry(None, "forces and drives by name"),
    "constraints": Entry(None, "prescribed motions, couplings of joints, rolling and other constraints by name"),
    "variables": Entry(None, "numbers that change during a run, by name"),
    "signals": Entry(None, "functions of the instant by name, which rates, updates and laws read"),
    "cut": Entry(list_of(TEXT), "joints to cut where loops are opened; the others are chosen"),
    "snapping": Entry(number(), "placements within this of 0, 1 or -1 are taken as that"),
    "free": Entry(list_of(TEXT), "numbers that are inputs of every function, such as crank.mass"),
    "states": Entry(None, "named states"),
    "actuators": Entry(None, "inputs on joints, as data"),
    "controllers": Entry(None, "controllers by name"),
    "losses": Entry(list_of(TEXT), "what the file that this came from says of dynamics, and this does not"),
    "notes": Entry(list_of(TEXT), "what the report of the model should say"),
}


def json_schema() -> Schema:
    """The JSON Schema of the format, for editors: `# yaml-language-server: $schema=cardan.schema.json`.

    It knows Cardan's own joint types, force elements and constraint elements.
    """
    rotations = {"rpy": VECTOR, "quaternion": _array(MEASURE, 4), "rotation": _array(VECTOR, 3)}
    placement = {"type": "object", "properties": {"position": VECTOR, **rotations}, "additionalProperties": False}
    joints = {type: JOINTS | entries for type, entries in own_joints().items()}
    forces, constraints = (
        {type: with_type(types) | entries for type, entries in types.items()}
        for types in (own_forces(), own_constraints())
    )
    inner: dict[str, Schema] = {
        "cardan": {"const": VERSION},
        "parameters": {"type": "object", "additionalProperties": MEASURE},
        "tables": _by_name(_object(TABLES)),
        "curves": _by_name(_object(CURVES)),
        "bodies": _by_name(_object(BODIES)),
        "ground": _object(GROUND),
        "joints": _by_name(_by_type(joints)),
        "frames": _by_name(_object(FRAMES)),
        "forces": _by_name(_by_type(forces)),
        "constraints": _by_name(_by_type(constraints)),
        "states": _by_name(_object(STATES)),
        "actuators": _by_name(_object(ACTUATORS)),
        "variables": _by_name(_object(VARIABLES)),
        "signals": _by_name(_object(SIGNALS)),
        "controllers": _by_name(
            _by_type({type: with_type(CONTROLLER_TYPES) | CONTROLLERS | own for type, own in CONTROLLER_TYPES.items()})
        ),
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Cardan mechanism",
        "description": "One mechanism: bodies, joints, forces. Numbers are SI, text with a unit, or = an expression.",
        **_object(SECTIONS, inner),
        "$defs": {
            "measure": {"anyOf": [{"type": "number"}, {"type": "string", "pattern": r"^\s*(=|[+-]?(\d|\.\d))"}]},
            "vector": _array(MEASURE, 3),
            "placement": {"anyOf": [VECTOR, placement]},
        },
    }


def with_type(types: Iterable[str]) -> Entries:
    """The entry that tells elements of a section apart."""
    return {"type": Entry(choice(*types), "kind of element", needed=True)}


def _object(entries: Entries, inner: dict[str, Schema] | None = None) -> Schema:
    properties = {}
    for name, entry in entries.items():
        form = (inner or INNER).get(name) or (entry.form.schema if entry.form else {})
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
INNER |= {"mimic": _object(MIMIC), "wrenches": {"type": "array", "items": _object(WRENCH)}}
INNER |= {"data": _object(DATA), "reads": _by_name(_object(READS))}
