"""Mechanisms and models written as YAML, without loss: numbers are read back to the last bit.

Bodies and joints are written as they are kept. The axes of a joint are written where its placement gives them exactly;
otherwise its frames are written with their rotation. A function is written as the expressions of its graph. Before a
text is returned it is read and written again, and the two texts are compared.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from textwrap import fill
from typing import Any

import numpy as np

from cardan.errors import FileError, ModelError
from cardan.io.mesh_path import mesh_name
from cardan.io.yaml.controllers import controller_entries
from cardan.io.yaml.expression import number
from cardan.io.yaml.function import (
    WrittenTables,
    curve_entries,
    function_entries,
    plain_function_entries,
    value_entries,
)
from cardan.io.yaml.instant import signal_entries, variable_entries, written_variables
from cardan.io.yaml.read import SIZE_LIMIT, Description, read_yaml
from cardan.io.yaml.schema import AXES as AXIS_NAMES
from cardan.io.yaml.schema import SHAPES, VERSION
from cardan.model.body import Body, Frame, Joint, JointData
from cardan.model.builder import SNAPPING, Mechanism
from cardan.model.constraint import Constraint
from cardan.model.constraint_kind import ConstraintElement
from cardan.model.constraint_table import constraint_kinds
from cardan.model.curve import Curve
from cardan.model.field import (
    AXES,
    AXIS,
    CURVE,
    FUNCTION,
    FUNCTIONS,
    LIMIT,
    MOMENT_AND_FORCE,
    POSE,
    SIX_AXES,
    TEXT,
    Field,
)
from cardan.model.force import Coupling, Force, coordinate_names, force_kinds
from cardan.model.idle_data import idle_data
from cardan.model.inertia import check_inertia, read_inertia
from cardan.model.joint import joint_types
from cardan.model.model import Actuator, Model
from cardan.model.pose import Pose
from cardan.model.shape import Mesh, MeshFile, Shape, read_colour
from cardan.model.table import Table
from cardan.model.tree import GROUND, choose_tree, joints_to_keep, notes_on_turns
from cardan.model.values import floats

ZERO = np.zeros(3)
SETTLED, KEPT = "; with the bodies fixed to it the rules hold", "; kept as given"
Entries = dict[str, Any]
HEADER = "# A mechanism of Cardan. SI units: m, kg, s, rad, N.\n"


def write_yaml(mechanism: Mechanism | Model) -> str:
    """The text of a YAML file that describes a mechanism or a model; `load` makes the same of it."""
    if isinstance(mechanism, Model):
        mechanism.require_one("save")
    text = _written(mechanism)
    again = _read_again(mechanism.name, text)
    same = _written(again.mechanism, again.free)
    if same != text:
        pairs = zip(text.splitlines(), same.splitlines(), strict=False)
        line = next((a.strip() for a, b in pairs if a != b), "its length")
        raise ModelError(f"mechanism {mechanism.name!r}: it cannot be written without loss; what differs is {line!r}")
    return text


def _read_again(name: str, text: str) -> Description:
    """What `load` makes of the text; a text beyond the limits of `load` is not written."""
    try:
        if (size := len(text.encode("utf-8", "replace"))) > SIZE_LIMIT:
            raise FileError(f"YAML text: it has {size / 2**20:.0f} MiB, and {SIZE_LIMIT / 2**20:.0f} are read")
        return read_yaml(text)
    except FileError as error:
        why = str(error).removeprefix("YAML text: ")
        raise ModelError(f"mechanism {name!r}: its file could not be read again: {why}") from None


def _written(thing: Mechanism | Model, free: tuple[str, ...] = ()) -> str:
    """The text: one section after another, without empty ones."""
    names = [body.name for body in thing.bodies]

    def body_name(index: int) -> str:
        return "ground" if index == GROUND else names[index]

    given = thing  # whose functions of the instant see the free numbers
    if isinstance(thing, Model):
        own = {variable.name for variable in thing.variables}
        free = tuple(name for name in thing.parameters.names if name not in own)
        thing = thing if thing.values is None else thing.settled()
    tables = WrittenTables()
    sections: Entries = {
        "cardan": VERSION,
        "name": thing.name,
        "gravity": _numbers(thing.gravity),
        "tables": {},
        "curves": {},
        "bodies": {body.name: _body(thing, body) for body in thing.bodies},
        "ground": {"shape": _shapes(thing.ground_shapes)} if thing.ground_shapes else {},
        "joints": {joint.name: _joint(joint, body_name, tables) for joint in thing.joints},
        "frames": {frame.name: _frame(frame, body_name) for frame in thing.frames},
        "forces": {force.name: _force(force, body_name, thing.joints, tables) for force in thing.forces},
        "constraints": {c.name: _coupling(c, thing.joints, tables) for c in thing.couplings}
        | {c.name: _constraint(c, body_name, tables) for c in thing.own_constraints},
        "variables": {x.name: variable_entries(given, x, tables) for x in written_variables(thing)},
        "signals": {x.name: signal_entries(given, x, tables) for x in thing.signals},
        "states": _states(thing),
        "actuators": {a.name: _actuator(a) for a in thing.actuators},
        "controllers": {c.name: controller_entries(thing, c, tables) for c in thing.controllers},
        "cut": _cut(thing),
        "snapping": None if thing.snapping == SNAPPING else number(thing.snapping),
        "free": list(free),
        "losses": _losses(thing),
        "notes": _notes(thing),
    }
    sections["curves"] = {name: curve_entries(curve, tables) for name, curve in tables.curves.items()}
    sections["tables"] = {name: _table(table) for name, table in tables.found.items()}
    return HEADER + block({key: value for key, value in sections.items() if value not in (None, {}, [])})


def _cut(thing: Mechanism | Model) -> list[str]:
    """Joints to cut; of a model only where they differ from those that `build` would choose."""
    if isinstance(thing, Mechanism):
        return list(thing.cut)
    keep = joints_to_keep(thing.joints, thing.forces, thing.couplings).union(*(c.joints for c in thing.controllers))
    chosen = set(choose_tree(thing.bodies, thing.joints, keep=keep))
    cuts = tuple(j for j in range(len(thing.joints)) if j not in chosen)
    return [] if cuts == thing.cuts else [thing.joints[j].name for j in thing.cuts]


def _notes(thing: Mechanism | Model) -> list[str]:
    """Notes, without those that `build` adds by itself."""
    whys = [why.partition(";")[0] for body in thing.bodies if (why := _doubt(body))]
    added = {why + end for why in whys for end in (SETTLED, KEPT)}
    if isinstance(thing, Model):
        added |= set(notes_on_turns(thing.joints, thing.cuts, thing.forces))
    return [note for note in thing.notes if isinstance(thing, Mechanism) or note not in added]


def _losses(thing: Mechanism | Model) -> list[str]:
    """Losses, without those that `build` adds by itself."""
    if isinstance(thing, Mechanism):
        return list(thing.losses)
    added = set(idle_data(thing.joints, thing.forces, thing.couplings))
    return [loss for loss in thing.losses if loss not in added]


def _states(thing: Mechanism | Model) -> Entries:
    """Named states, by joint; rates of joints at rest are left out."""
    if isinstance(thing, Mechanism):
        given = dict(thing.states)
    else:
        links = [(thing.joints[link.joint].name, link) for link in thing.tree.links if link.kind.nv]
        given = {
            name: ({j: state.q[k.q] for j, k in links}, {j: state.v[k.v] for j, k in links}, state.time)
            for name, state in thing.states.items()
        }
    found: Entries = {}
    for name, (q, v, time) in given.items():
        moving = {joint: rate for joint, rate in v.items() if np.any(rate)}
        parts = {"q": {j: _few(x) for j, x in q.items()}, "v": {j: _few(x) for j, x in moving.items()}}
        found[name] = {"time": number(time)} | {what: table for what, table in parts.items() if table}
    return found


def _few(values: Any) -> Any:
    """Numbers as a list; a single one without brackets."""
    texts = [number(x) for x in values]
    return texts[0] if len(texts) == 1 else texts


def _actuator(actuator: Actuator) -> Entries:
    entries: Entries = {"kind": actuator.kind, "joint": actuator.joint, "gear": [number(x) for x in actuator.gear]}
    entries |= {"gain": number(actuator.gain), "bias": [number(x) for x in actuator.bias]}
    entries |= {"slopes": [number(x) for x in actuator.slopes]} if actuator.slopes.any() else {}
    entries |= {"dynamics": actuator.dynamics, "time": number(actuator.time)} if actuator.dynamics else {}
    ranges = {"control": actuator.control, "force": actuator.force, "activation": actuator.activation}
    return entries | {key: [number(x) for x in ends] for key, ends in ranges.items() if ends is not None}


def _table(table: Table) -> Entries:
    entries: Entries = dict(zip("xy", map(_numbers, table.axes), strict=False))
    entries["z" if len(table.axes) == 2 else "y"] = _numbers(table.values)
    ends = list(dict.fromkeys(table.ends))
    return entries | {"smooth": str(table.smooth), "ends": ends[0] if len(ends) == 1 else list(table.ends)}


# Bodies, joints, frames.


def _body(thing: Mechanism | Model, body: Body) -> Entries:
    entries: Entries = {}
    if not _same(body.mass, 0.0):
        entries["mass"] = number(body.mass)
    given = bool(body.shapes) and bool(body.mass)  # left out, they would be those of the shape
    if given or not _same(body.com, ZERO):
        entries["com"] = _numbers(body.com)
    if given or not _same(body.inertia, np.zeros((3, 3))):
        entries["inertia"] = _inertia(body.inertia)
    if doubt := _doubt(body):
        # the inertia may break the rules even with all bodies fixed to it
        noted = isinstance(thing, Model) and f"{doubt.partition(';')[0]}{KEPT}" in thing.notes
        unjudged = body.name in thing.unjudged if isinstance(thing, Mechanism) else noted
        entries["judge"] = "nothing" if unjudged else "link"
    if body.shapes:
        entries["shape"] = _shapes(body.shapes)
    return entries


def _shapes(shapes: tuple[Shape, ...]) -> Any:
    """One shape, or a list of them."""
    found = [_shape(shape) for shape in shapes]
    return found[0] if len(found) == 1 else found


def _shape(shape: Shape) -> Entries:
    name = next((name for name, (made, _, _) in SHAPES.items() if made is type(shape)), None)
    if name is None:
        raise ModelError(f"shape {type(shape).__name__}: files have no such shape; use one of cd.shape")
    if isinstance(shape, MeshFile):
        entries: Entries = {"file": mesh_name(shape)}
        scale = shape.scale[0] if np.ptp(shape.scale) == 0 else shape.scale
        entries |= {} if _same(scale, 1.0) else {"scale": _numbers(scale)}
    elif isinstance(shape, Mesh):
        entries = {
            "vertices": " ".join(number(float(x)) for x in shape.vertices.flat),
            "faces": " ".join(str(k) for k in shape.faces.flat),
        }
    else:
        entries = {key: _shape_entry(key, getattr(shape, key)) for key in SHAPES[name][1]}
        entries = {key: value for key, value in entries.items() if value not in ([], "z") or key != "axis"}
        entries = {key: value for key, value in entries.items() if value != []}
    if not _is_origin(shape.at):
        entries["at"] = _pose(shape.at)
    if shape.colour is not None:
        entries["colour"] = _colour(shape.colour)
    return {name: entries}


def _shape_entry(key: str, value: Any) -> Any:
    if key == "axis":
        return _axis(value)
    return [_numbers(hole) for hole in value] if key == "holes" else _numbers(np.asarray(value))


def _colour(colour: tuple[float, ...]) -> Any:
    """As text where that is exact, as numbers elsewhere."""
    text = "#" + "".join(f"{round(255 * x):02x}" for x in (colour if colour[3] != 1 else colour[:3]))
    return text if read_colour("", text) == colour else _numbers(np.array(colour))


def _doubt(body: Body) -> str:
    """The rule that a body's own inertia breaks; empty where it breaks none."""
    try:
        check_inertia(f"body {body.name!r}", body.mass, body.inertia)
    except ModelError as error:
        return str(error)
    return ""


def _inertia(I: np.ndarray) -> list[Any]:
    """An inertia as 3 principal values, 6 entries or 3 rows: the shortest form that is exact."""
    six = [I[0, 0], I[1, 1], I[2, 2], I[0, 1], I[0, 2], I[1, 2]]
    for values in (six[:3], six):
        if _same(read_inertia("", values), I):
            return _numbers(np.array(values))
    return _numbers(I)


def _joint(joint: Joint, body_name: Any, tables: WrittenTables) -> Entries:
    type = next((name for name, type in joint_types().items() if type is joint.type.__class__), None)
    if type is None:
        raise ModelError(
            f"joint {joint.name!r}: its type {joint.type.__class__.__name__} is not registered; call cd.add_joint with "
            "the class, so that files can name it"
        )
    entries: Entries = {"type": type, "parent": body_name(joint.parent), "child": body_name(joint.child)}
    own, at, child_at = next(way for way in _placements(joint) if _reproduces(joint, *way))
    plain = joint.type.fields if joint.type is not None else {}
    for key, value in own.items():
        if not (isinstance(value, bool) and value == plain[key].default):
            entries[key] = _own_entry(joint, key, value, tables)
    entries |= {key: _pose(pose) for key, pose in (("at", at), ("child_at", child_at)) if not _is_origin(pose)}
    own_numbers = {"start": joint.start, "armature": joint.armature}
    entries |= {key: _few(values) for key, values in own_numbers.items() if values is not None}
    if data := _data(joint):
        entries["data"] = data
    return entries


def _placements(joint: Joint) -> Iterator[tuple[Entries, Pose, Pose]]:
    """Ways to say where a joint is, the most readable first: its axes, and its frames before they were turned."""
    assert joint.type is not None
    fields = joint.type.declared()
    plain = {name: getattr(joint.type, name) for name, field in fields.items() if field.form != AXIS}
    given = {name: getattr(joint.type, name) for name, field in fields.items() if field.form == AXIS}
    given = {name: axis for name, axis in given.items() if axis is not None}
    at, child_at = joint.at, joint.child_at
    for R in (child_at.rotation, at.rotation):
        for tidy in (_tidy, np.asarray):
            own = {name: tidy(axis) for name, axis in _axes(fields, R).items()} | plain
            axes = joint.type.__class__(**own).orientation("joint")
            yield own, Pose(at.position), Pose(child_at.position)
            yield own, _turned_back(at, axes), _turned_back(child_at, axes)
    yield plain, at, child_at
    axes = joint.type.orientation("joint")
    yield plain | given, _turned_back(at, axes), _turned_back(child_at, axes)
    raise ModelError(f"joint {joint.name!r}: its placement cannot be written without loss")


def _tidy(axis: np.ndarray) -> np.ndarray:
    """The axis as the user probably wrote it: not normalised, with few digits."""
    return np.round(axis / np.abs(axis).max(), 12) + 0.0


def _turned_back(pose: Pose, axes: np.ndarray) -> Pose:
    """The frame before it was turned to the joint's axes; no rotation at all where the two agree."""
    if _same(pose.rotation, axes):
        return Pose(pose.position)
    return Pose(pose.position, rotation=pose.rotation @ axes.T)


def _axes(fields: dict[str, Field], R: np.ndarray) -> Entries:
    """Axes of a joint type from the rotation of its frame; none where they are the canonical ones."""
    axes = {name: R[:, field.column] for name, field in fields.items() if field.form == AXIS}
    canonical = all(_same(axis, np.eye(3)[fields[name].column]) for name, axis in axes.items())
    return {} if canonical else axes


def _reproduces(joint: Joint, own: Entries, at: Pose, child_at: Pose) -> bool:
    """Whether reading this description makes the same joint, to the last bit."""
    m = Mechanism("trial")
    m.body("a")
    assert joint.type is not None
    type = joint.type.__class__(**{key: _read_axis(value) for key, value in own.items()})
    at, child_at = (Pose(**_read_pose(pose)) for pose in (at, child_at))
    m.joint("j", type, "ground", "a", at=at, child_at=child_at)
    made = m.joints[0]
    same = _same(made.at.matrix, joint.at.matrix) and _same(made.child_at.matrix, joint.child_at.matrix)
    return same and (made.kind is joint.kind or made.kind.identity == joint.kind.identity)


def _own_entry(joint: Joint, name: str, value: Any, tables: WrittenTables) -> Any:
    """A field of a joint type as text; an axis by its name where it has one, a curve by its own."""
    if isinstance(value, Curve):
        return tables.name_of_curve(value)
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, np.ndarray):
        return _axis(value)
    try:
        return _numbers(floats(value))
    except TypeError:
        raise ModelError(
            f"joint {joint.name!r}: its field {name!r} is {value!r}, and files hold only numbers"
        ) from None


def _axis(axis: np.ndarray) -> Any:
    """The name of a coordinate axis, or a vector."""
    return next((name for name, unit in AXIS_NAMES.items() if np.array_equal(axis, unit)), _numbers(axis))


def _read_axis(axis: Any) -> Any:
    """An axis, or a number, as it will be read."""
    written = _axis(axis) if isinstance(axis, np.ndarray) else ""
    return AXIS_NAMES[written] if isinstance(written, str) and written else axis


def _is_origin(pose: Pose) -> bool:
    return _same(pose.position, ZERO) and _same(pose.rotation, np.eye(3))


def _pose(pose: Pose) -> Any:
    """A position, or a table with the rotation: a quaternion where that is exact, a matrix elsewhere."""
    entries = {key: _numbers(np.asarray(value)) for key, value in _read_pose(pose).items()}
    return entries["position"] if list(entries) == ["position"] else entries


def _read_pose(pose: Pose) -> Entries:
    """Arguments of `Pose` that make the same pose to the last bit."""
    if _same(pose.rotation, np.eye(3)):
        return {"position": pose.position}
    position = {} if _same(pose.position, ZERO) else {"position": pose.position}
    if _same(Pose(quaternion=pose.quaternion).rotation, pose.rotation):
        return position | {"quaternion": pose.quaternion}
    return position | {"rotation": pose.rotation}


def _data(joint: Joint) -> Entries:
    entries: Entries = {}
    empty = JointData()
    for key in ("lower", "upper", "velocity", "effort", "damping", "friction"):
        value = getattr(joint.data, key)
        if value is not None and not (value == getattr(empty, key) == 0):
            entries[key] = _finite(f"joint {joint.name!r}", key, value)
    if joint.data.mimic is not None:
        other, multiplier, offset = joint.data.mimic
        owner = f"joint {joint.name!r}: mimic"
        numbers = {"multiplier": multiplier, "offset": offset}
        entries["mimic"] = {"joint": other} | {key: _finite(owner, key, value) for key, value in numbers.items()}
    return entries


def _finite(owner: str, what: str, value: Any) -> str:
    if not isinstance(value, int | float | np.number) or not math.isfinite(value):
        raise ModelError(f"{owner}: {what} is {value!r}, which is not a finite number and cannot be written")
    return number(float(value))


def _frame(frame: Frame, body_name: Any) -> Entries:
    entries: Entries = {"body": body_name(frame.body)}
    return entries if _is_origin(frame.at) else entries | {"at": _pose(frame.at)}


# Forces and constraints.


def _force(force: Force, body_name: Any, joints: tuple[Joint, ...], tables: WrittenTables) -> Entries:
    kind = force.kind
    if force_kinds().get(kind.in_files) is not kind:
        raise ModelError(
            f"{force.owner}: its kind is not registered; call cd.add_force with it, so that files can name it"
        )
    entries: Entries = {"type": kind.in_files}
    if kind.on == "joints":
        names = coordinate_names(zip(force.on, force.along, strict=True), joints)
        entries["along"] = {name: number(c) for name, c in zip(names, force.numbers["along"], strict=True)}
    else:
        entries |= {"joint": force.joint_name(joints)} if kind.on == "joint" else _bodies(force, body_name)
    if force.function is not None:
        entries |= function_entries(force, joints, tables)
    for name, field in kind.fields.items():
        if field.form not in FUNCTIONS and field.form != TEXT:
            entries |= _field(force, name, field)
    return entries | force.texts


def _bodies(element: Force | ConstraintElement, body_name: Any) -> Entries:
    """The bodies of an element, as its kind writes them."""
    names = [body_name(b) for b in element.on]
    if element.kind.bodies == 1:
        return {"body": names[0]}
    return {"body1": names[0], "body2": names[1]} if element.kind.bodies == 2 else {"bodies": names}


def _field(force: Force | ConstraintElement, name: str, field: Field) -> Entries:
    """The entries of one number of an element; none where it is the default."""
    if field.form == AXES:
        return {name: "body"} if force.numbers["follows"] else {}
    if name not in force.numbers:
        return {}
    value = force.numbers[name]
    if field.form == MOMENT_AND_FORCE:
        return {key: _numbers(part) for key, part in (("moment", value[:3]), ("force", value[3:])) if part.any()}
    if field.form == POSE:
        pose = Pose(value, rotation=force.numbers[f"{name}_rotation"])
        return {} if _is_origin(pose) else {name: _pose(pose)}
    if (
        not field.needed
        and field.default is not None
        and _same(value, np.broadcast_to(np.asarray(field.default, dtype=float), value.shape))
    ):
        return {}
    if field.form == LIMIT:
        limits = [number(x) if np.isfinite(x) else "none" for x in value]
        return {name: limits[0] if len(limits) == 1 else limits} if np.isfinite(value).any() else {}
    if field.form == SIX_AXES and _same(np.diag(np.diag(value)), value):
        value = np.diag(value)
    return {name: number(value[0]) if value.shape == (1,) else _numbers(value)}


def _coupling(coupling: Coupling, joints: tuple[Joint, ...], tables: WrittenTables) -> Entries:
    names = coupling.coordinate_names(joints)
    if coupling.what == "motion":
        entries: Entries = {"type": "motion", "joint": names[0]}
        if coupling.function is None:
            return entries | {"value": number(coupling.offset)}
        return entries | value_entries(coupling, tables)
    unit = {"unit": coupling.unit} if coupling.unit else {}
    if coupling.is_relation:
        on = {"type": "relation", "joints": list(names)}
        return on | value_entries(coupling, tables) | unit
    pairs = zip(names, coupling.coefficients, strict=True)
    entries = {"type": "coupling", "coefficients": {name: number(c) for name, c in pairs}}
    return entries | unit if _same(coupling.offset, 0.0) else entries | unit | {"offset": number(coupling.offset)}


def _constraint(constraint: Constraint | ConstraintElement, body_name: Any, tables: WrittenTables) -> Entries:
    if isinstance(constraint, ConstraintElement):
        return _constraint_element(constraint, body_name, tables)
    entries: Entries = {"type": "user", "bodies": [body_name(b) for b in constraint.on]}
    return entries | value_entries(constraint, tables) | ({} if constraint.unit == "m" else {"unit": constraint.unit})


def _constraint_element(element: ConstraintElement, body_name: Any, tables: WrittenTables) -> Entries:
    kind = element.kind
    if constraint_kinds().get(kind.in_files) is not kind:
        raise ModelError(
            f"{element.owner}: its kind is not registered; call cd.add_constraint with it, so that files can name it"
        )
    entries: Entries = {"type": kind.in_files} | _bodies(element, body_name)
    entries |= plain_function_entries(element, tables)
    for name, field in kind.fields.items():
        if field.form == CURVE:
            entries[name] = tables.name_of_curve(element.functions[name])
        elif field.form != FUNCTION:
            entries |= _field(element, name, field)
    if element.holds != tuple(k for k, row in enumerate(kind.rows) if row.held):
        entries["holds"] = [kind.rows[k].name for k in element.holds]
    return entries


def _numbers(array: np.ndarray) -> Any:
    """Nested lists of the texts of numbers."""
    return number(float(array)) if np.ndim(array) == 0 else [_numbers(part) for part in array]


def _same(a: Any, b: Any) -> bool:
    """Whether two arrays agree to the last bit, signs of zeros included."""
    a, b = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
    return a.shape == b.shape and np.ascontiguousarray(a).tobytes() == np.ascontiguousarray(b).tobytes()


# YAML text: short tables and lists on one line, long ones indented.

WIDTH = 100
"""Longest line, in characters, for a table or list on one line."""
MANY = 9
"""Numbers of a list past which each has no line of its own."""
# Words that every YAML reader takes as text.
PLAIN = re.compile(r"[A-Za-z_](?:[\w./-]| (?=[\w./-]))*", re.ASCII)
WORDS = {"true", "false", "yes", "no", "on", "off", "null", "nan", "inf"}
NUMBER = re.compile(r"-?\d+(\.\d+)?(e[+-]?\d+)?", re.ASCII)
APART = ("cut", "snapping", "free", "losses", "notes")
"""Sections at the end of a file, with a blank line before each."""
CALCULATION = re.compile(r"=[\w .+*/^()-]+", re.ASCII)


def block(sections: dict[str, Any]) -> str:
    """The text of a file from nested tables: sections, elements, entries; numbers are given as text."""
    lines: list[str] = []
    for name, value in sections.items():
        if isinstance(value, dict):
            lines += ["", f"{name}:"]
            for key, element in value.items():
                lines += _entry(key, element, 1, inline=not element)
        else:
            lines += [""] * (name in APART) + _entry(name, value, 0)
    return "\n".join(lines) + "\n"


def _entry(key: str, value: Any, depth: int, inline: bool | None = None) -> list[str]:
    """Lines of one key and its value."""
    head = f"{'  ' * depth}{word(key)}:"
    short = flow(value)
    fits = len(head) + len(short) < WIDTH and not (depth == 1 and isinstance(value, dict))
    if inline or (inline is None and fits) or not isinstance(value, dict | list):
        return [f"{head} {short}"]
    if isinstance(value, dict):
        return [head, *(line for k, v in value.items() for line in _entry(k, v, depth + 1))]
    if len(value) > MANY and not any(isinstance(item, dict | list) for item in value):
        blanks = "  " * (depth + 2)
        return fill(short, WIDTH, initial_indent=f"{head} ", subsequent_indent=blanks, break_on_hyphens=False).split(
            "\n"
        )
    return [head, *(line for item in value for line in _item(item, depth + 1))]


def _item(item: Any, depth: int) -> list[str]:
    """One entry of a list: a long table begins after the dash."""
    short = flow(item)
    if len(short) < WIDTH or not isinstance(item, dict):
        return [f"{'  ' * depth}- {short}"]
    lines = [line for k, v in item.items() for line in _entry(k, v, depth + 1)]
    return [f"{'  ' * depth}- {lines[0].lstrip()}", *lines[1:]]


def flow(value: Any) -> str:
    """A value on one line."""
    if isinstance(value, dict):
        return f"{{{', '.join(f'{word(k)}: {flow(v)}' for k, v in value.items())}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(flow, value))}]"
    return word(str(value), numeric=True)


def word(text: str, numeric: bool = False) -> str:
    """A scalar, in quotes where YAML would not read it as text."""
    if numeric and (NUMBER.fullmatch(text) or CALCULATION.fullmatch(text)):
        return text
    if PLAIN.fullmatch(text) and text.lower() not in WORDS:
        return text
    return '"' + "".join(map(_escaped, text)) + '"'


def _escaped(character: str) -> str:
    if character in '"\\':
        return "\\" + character
    code = ord(character)
    return character if character.isprintable() else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
