"""The forms that values take in a YAML file: how each is read, and how the JSON Schema describes it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from cardan.errors import FileError, ModelError, nearest
from cardan.io.yaml.node_reader import NodeReader
from cardan.io.yaml.nodes import List, Scalar, Table, described
from cardan.io.yaml.units import quantity_of
from cardan.model import inertia
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
