"""A mechanism read from a YAML file.

The tables of the format are in `cardan.io.yaml.schema`; docs/format.md explains it. An error names the line, the
element and the rule. Errors of the builder are given the line of the entry that they speak of.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from cardan.errors import CardanError, FileError, ModelError, nearest, visible
from cardan.io.mesh_path import MeshFolders
from cardan.io.policy import Policy, Word
from cardan.io.table_file import table, table2, table_of_file
from cardan.io.text_file import BODIES, placing, read_text, too_many_states
from cardan.io.yaml import function, instant, schema
from cardan.io.yaml.controllers import law_of_column, ready_law
from cardan.io.yaml.expression import Measured
from cardan.io.yaml.nodes import List, NodeReader, Scalar, Table, described, parse_yaml
from cardan.io.yaml.schema import COORDINATE, RATE, Entries, along, each
from cardan.io.yaml.units import UnitError, quantity_of
from cardan.model import table as model_table
from cardan.model.body import JointData
from cardan.model.builder import SNAPPING, Mechanism
from cardan.model.constraint_kind import ConstraintKind
from cardan.model.constraint_table import constraint_kinds
from cardan.model.curve import CARRIED, Curve, curve
from cardan.model.field import EFFORT, FUNCTION, FUNCTIONS, GAP, MOMENT_AND_FORCE, TABLE, Field
from cardan.model.force import ForceKind, force_kinds
from cardan.model.joint import NUMBERED, Free, Kind, joint_types
from cardan.model.model import Model
from cardan.model.shape import Shape

SIZE_LIMIT = 10 * 2**20
"""Largest file that is read, bytes."""
OWNER = re.compile(r"(?P<owner>[\w ]+ '(?:[^'\\]|\\.)*'|[\w ]+ \"(?:[^\"\\]|\\.)*\"): (?P<rest>.*)", re.DOTALL)


@dataclass
class Description:
    """The contents of a file: the mechanism, and which of its numbers are free."""

    mechanism: Mechanism
    source: str
    free: tuple[str, ...] = ()
    places: dict[str, NodeReader] = field(default_factory=dict)
    """Where each element is, by its name in error messages."""

    def build(self, snapping: float | None = None) -> Model:
        """Build the model; an error names the file, and the line where there is one."""
        with self.naming():
            model = self.mechanism.build(snapping=snapping)
            return model.free(*self.free) if self.free else model

    def naming(self) -> AbstractContextManager[None]:
        """Put file and line before the errors of the builder."""
        return placing(lambda sentence: f"{self.source}: {self._line(sentence)}{sentence}")

    def _line(self, sentence: str) -> str:
        """The line of the entry that a sentence speaks of, or of the element."""
        match = OWNER.match(sentence)
        reader = self.places.get(match["owner"]) if match else None
        if match is None or reader is None:
            return ""
        line = reader.node.line
        if isinstance(reader.node, Table):
            words = re.findall(r"[a-z_0-9]+", match["rest"])[:1]
            line = next((reader.node.entries[word].line for word in words if word in reader.node.entries), line)
        return f"line {line}: "


def read_yaml(
    path_or_text: str | Path, *, parameters: Mapping[str, float | str] | None = None, gravity: Any = None,
    policy: Word = "strict", folder: Path | None = None,
) -> Description:  # fmt: skip
    """Read a YAML file, or its text (a string of several lines); `parameters` and `gravity` replace the file's.

    `folder` is the one that meshes must be in; by default the one above the file's.
    """
    path = None if isinstance(path_or_text, str) and "\n" in path_or_text else Path(path_or_text)
    source, text = ("YAML text", str(path_or_text)) if path is None else (str(path), read_text(path, SIZE_LIMIT))
    top = NodeReader(parse_yaml(text, source), source, policy=Policy(policy))
    return _MechanismReader(top, dict(parameters or {}), gravity, MeshFolders(path, folder)).read()


class _MechanismReader:
    """From the nodes of a file to a mechanism, section by section."""

    def __init__(self, top: NodeReader, replaced: dict[str, float | str], gravity: Any, folders: MeshFolders) -> None:
        self.top, self.replaced, self.folders = top, replaced, folders
        table = top.table("")
        if "cardan" not in table.entries:
            raise top.error(f"the file does not say 'cardan: {schema.VERSION}'; is it a mechanism of this format?", 1)
        version = top.inner(table.entries["cardan"], "cardan")
        if version.number("number") != schema.VERSION:
            raise version.error(f"must be {schema.VERSION}, got {described(version.node)}; it is the format's version")
        check_keys(top.owned("file"), schema.SECTIONS)
        self.top = replace(top, parameters=self.parameters())
        self.top = replace(self.top, tables=self.tables())
        self.top = replace(self.top, curves=dict(self.curves()))
        self.head = entries_of(self.top.owned("file"), schema.SECTIONS)
        values = self.head
        given = {} if "gravity" not in values else {"gravity": values["gravity"]}
        if gravity is not None:
            given = {"gravity": gravity}
        self.mechanism = Mechanism(values["name"], **given)
        self.result = Description(self.mechanism, top.source)
        self.kinds: dict[str, Kind] = {}

    def read(self) -> Description:
        m, result = self.mechanism, self.result
        sections: dict[str, Callable[[str, NodeReader], None]] = {
            "bodies": self.body, "joints": self.joint, "frames": self.frame, "forces": self.force,
            "constraints": self.constraint, "states": self.state, "actuators": self.actuator,
        }  # fmt: skip
        if len(self.section("bodies").entries) > BODIES:
            raise self.top.error(f"the file has more than {BODIES} bodies; no more are read")
        if why := too_many_states(len(self.section("states").entries), len(self.section("joints").entries)):
            raise self.top.error(why)
        for section, add in sections.items():
            for name, reader in self.named(section):
                add(name, reader)
        signals = self.sizes_of_signals()
        self.variables(signals)
        for name, reader in self.named("signals"):
            self.signal(name, reader, signals)
        for name, reader in self.named("controllers"):
            self.controller(name, reader, signals)
        if self.section("ground").entries:
            ground = replace(self.top, node=self.section("ground"), owner="ground", what="")
            m.shape(m.ground, *self.shapes(entries_of(ground, schema.GROUND).get("shape", ())))
        for loss in self.head.get("losses", ()):
            m.lose(visible(loss))
        for note in (*self.head.get("notes", ()), *self.top.policy.notes):
            m.note(visible(note.removeprefix(f"{self.top.source}: ")))
        m.cut = tuple(self.head.get("cut", ()))
        m.snapping = self.head.get("snapping", SNAPPING)
        result.free = tuple(self.head.get("free", ()))
        result.places["mechanism " + repr(m.name)] = self.top
        return result

    def parameters(self) -> dict[str, Measured]:
        """Read the parameters in their order; each may use those before it."""
        known: dict[str, Measured] = {}
        table = self.section("parameters")
        unknown = set(self.replaced) - set(table.entries)
        if unknown:
            name = min(unknown)
            raise FileError(f"{self.top.source}: parameter {name!r} is not in the file{nearest(name, table.entries)}")
        for name, node in table.entries.items():
            reader = replace(self.top.inner(node, "value"), owner=f"parameter {name!r}", parameters=known)
            if why := function.taken(name):
                raise reader.error(f"cannot have this name: {why}")
            if name in self.replaced:
                scalar = Scalar(str(self.replaced[name]), True, node.line, node.column)
                reader = replace(reader, node=scalar, what="value given to load")
            known[name] = self.parameter(reader, table)
        return known

    def parameter(self, reader: NodeReader, table: Table) -> Measured:
        try:
            value = reader.quantity()
        except FileError as error:
            match = re.search(r": '(\w+)' is neither", str(error))
            if match and match[1] in table.entries:
                raise reader.error(f"uses {match[1]!r}, which is not defined above it; move one of them") from None
            raise
        return Measured(value.value, None if value.bare else value.dimension)

    def tables(self) -> dict[str, model_table.Table]:
        """Read the tables, which expressions may call."""
        found: dict[str, model_table.Table] = {}
        for name, reader in self.named("tables"):
            why = function.taken(name) or ("that is a parameter" if name in reader.parameters else "")
            if name != model_table.table_name(name):
                why = why or "a table's name has no _ twice, at its beginning or at its end"
            if why:
                raise reader.error(f"cannot have this name: {why}")
            found[name] = self.read_table(name, reader)
        return found

    def read_table(self, name: str, reader: NodeReader) -> model_table.Table:
        values = entries_of(reader, schema.TABLES)
        given = [key for key in ("x", "y", "z") if key in values]
        options: dict[str, Any] = {"smooth": values.get("smooth", 2), "name": name}
        ends = values.get("ends", ["error"])
        options["ends"] = ends[0] if len(ends) == 1 else ends
        try:
            if "file" in values:
                if given:
                    raise reader.error(f"gives a file and {given[0]}; give one of them")
                path = self.folders.find(values["file"])
                return table_of_file(path, **options)
            if "z" in values and len(given) == 3:
                return table2(values["x"], values["y"], values["z"], **options)
            if given != ["x", "y"]:
                raise reader.error("must have a file, or x and y, or x, y and z")
            return table(values["x"], values["y"], **options)
        except FileError:
            raise
        except (CardanError, ValueError) as error:
            raise reader.error(str(error).removeprefix(f"table {name!r}: ")) from None

    def curves(self) -> Iterator[tuple[str, Curve]]:
        """Read the curves, which joints and constraints may name."""
        for name, reader in self.named("curves"):
            if name != model_table.table_name(name):
                raise reader.error("cannot have this name: a curve's name is a word of letters, digits and single _")
            try:
                yield name, self.read_curve(name, reader)
            except FileError:
                raise
            except (CardanError, ValueError) as error:
                raise reader.error(str(error).removeprefix(f"curve {name!r}: ")) from None

    def read_curve(self, name: str, reader: NodeReader) -> Curve:
        values = entries_of(reader, schema.CURVES)
        options: dict[str, Any] = {what: values[what] for what in ("start", "stop") if what in values}
        options |= {"name": name, "closed": values.get("closed") == "true"}
        variables: function.Variables = {"u": ()}

        def over_u(what: str, outputs: list[NodeReader], quantity: str) -> Any:
            """Numbers of each point, numbers, or a function of u."""
            if outputs and isinstance(outputs[0].node, List):
                return schema.ROWS.read(values[what])
            if not any(output.is_expression for output in outputs):
                return [output.number(quantity) for output in outputs]
            made = self.expressions(reader, values, outputs, [quantity] * len(outputs), variables)
            return lambda u: made(u=u)

        if "up" in values:
            up: NodeReader = values["up"]
            carried = isinstance(up.node, Scalar)
            options["up"] = up.choice((CARRIED,)) if carried else over_u("up", up.items(), "number")
        if "bank" in values:
            bank: NodeReader = values["bank"]
            many = isinstance(bank.node, List)
            found = over_u("bank", bank.items() if many else [bank], "angle")
            options["bank"] = found if many else (lambda u: found(u)[0]) if callable(found) else found[0]
        if "points" in values:
            return curve(values["points"], **options)
        if missing := [what for what in "xyz" if what not in values]:
            raise reader.error(f"must have points, or x, y and z; {missing[0]} is missing")
        made = self.expressions(reader, values, [values[what] for what in "xyz"], ["length"] * 3, variables)
        return curve(lambda u: made(u=u), **options)

    def section(self, name: str) -> Table:
        node = self.top.table("").entries.get(name)
        if node is None:
            return Table(0, 0)
        return self.top.inner(node, name).table(f"{name}: {{...}}")

    def named(self, section: str) -> Iterator[tuple[str, NodeReader]]:
        singular = {"bodies": "body"}.get(section, section.removesuffix("s"))
        for name, node in self.section(section).entries.items():
            yield name, replace(self.top, node=node, owner=f"{singular} {name!r}", what="")

    def adding(self, reader: NodeReader, owner: str) -> AbstractContextManager[None]:
        """Add an element to the mechanism; errors of the builder are given its place."""
        self.result.places.setdefault(owner, reader)
        return self.result.naming()

    def body(self, name: str, reader: NodeReader) -> None:
        values = entries_of(reader, schema.BODIES)
        if "inertia" in values:
            values["inertia"] = values["inertia"](values.get("mass", 0.0))
        values |= {"shape": self.shapes(values["shape"])} if "shape" in values else {}
        with self.adding(reader, f"body {name!r}"):
            reader.policy.add_body(self.mechanism, name, reader.error, **values)

    def shapes(self, recipes: Sequence[schema.ShapeRecipe]) -> list[Shape]:
        """Make the shapes of a body or of the ground; mesh files are found, not read."""
        made: list[Shape] = []
        for name, values, reader in recipes:
            try:
                if name == "mesh":
                    file, scale = values.pop("file"), values.pop("scale", 1.0)
                    made.append(self.folders.mesh(file, scale, **values))
                else:
                    made.append(schema.SHAPES[name][0](**values))
            except ModelError as error:
                raise reader.error(f"is wrong: {str(error).partition(': ')[2]}") from None
        return made

    def joint(self, name: str, reader: NodeReader) -> None:
        types = joint_types()
        type = types[type_of(reader, tuple(types))]
        table = reader.table("")
        with self.adding(reader, f"joint {name!r}"):
            own = schema.joint_entries(type)
            check_keys(reader, schema.JOINTS | own)
            made = type(**entries_of(replace(reader, node=part(table, own)), own))
            kind = made.kind
            values = entries_of(replace(reader, node=part(table, schema.JOINTS), kind=kind), schema.JOINTS)
            values.pop("type")
            if "data" in values:
                values["data"] = self.data(values["data"], kind)
            self.mechanism.joint(name, made, values.pop("parent"), values.pop("child"), **values)
        self.kinds[name] = kind

    def data(self, reader: NodeReader, kind: Kind) -> JointData:
        values = entries_of(replace(reader, kind=kind), schema.DATA, "data.")
        if "mimic" in values:
            mimic = entries_of(values["mimic"], schema.MIMIC, "data.mimic.")
            values["mimic"] = (mimic["joint"], mimic["multiplier"], mimic["offset"])
        return reader.policy.check_data(JointData(**values), replace(reader, what="").error)

    def frame(self, name: str, reader: NodeReader) -> None:
        values = entries_of(reader, schema.FRAMES)
        with self.adding(reader, f"frame {name!r}"):
            self.mechanism.frame(name, values.pop("body"), **values)

    def state(self, name: str, reader: NodeReader) -> None:
        values = entries_of(reader, schema.STATES)
        given: dict[str, dict[str, Any]] = {"q": {}, "v": {}}
        with self.adding(reader, f"state {name!r}"):
            for what, form in (("q", each(COORDINATE)), ("v", each(RATE))):
                inner: NodeReader | None = values.get(what)
                for joint, node in inner.table("").entries.items() if inner is not None else ():
                    place = reader.inner(node, f"{what}.{joint}")
                    given[what][joint] = form.read(replace(place, kind=self.kinds.get(joint, Free.kind)))
            self.mechanism.state(name, given["q"], given["v"], time=values.get("time", 0.0))

    def sizes_of_signals(self) -> dict[str, int]:
        """How many numbers each signal of the file has, and each output of a controller."""
        found = {}
        for name, reader in self.named("signals"):
            given: NodeReader = entries_of(reader, schema.SIGNALS)["value"]
            found[name] = len(given.items()) if isinstance(given.node, List) else 1
        kinds = {joint.name: joint.kind for joint in self.mechanism.joints}
        for name, reader in self.named("controllers"):
            kind = type_of(reader, tuple(schema.CONTROLLER_TYPES))
            values = entries_of(reader, self.controller_schema(kind))
            joints, bodies = values.get("joints", []), values.get("bodies", [])
            alone = [np.size(values[gain]) for gain in ("kp", "ki", "kd") if gain in values]
            alone += [len(values[rows]) for rows in ("D", "K") if rows in values] + [int(values.get("outputs", 1))]
            acting = 6 * len(bodies) + sum(kinds[joint].nv for joint in joints if joint in kinds)
            found[f"{name}.output"] = acting if joints or bodies else max(alone)
        return found

    def signal(self, name: str, reader: NodeReader, signals: dict[str, int]) -> None:
        """Add a signal."""
        values = entries_of(reader, schema.SIGNALS)
        with self.adding(reader, f"signal {name!r}"):
            size = instant.Sizes(self.mechanism)
            size.numbers |= signals
            made = self.of_instant(reader, values, "value", size, signals[name])
            self.mechanism.signal(name, made, unit=values.get("unit", ""))

    def variables(self, signals: dict[str, int]) -> None:
        """Add the variables; the expressions of each may read all of them, and all signals."""
        found = [(name, reader, entries_of(reader, schema.VARIABLES)) for name, reader in self.named("variables")]
        size, starts = instant.Sizes(self.mechanism), {}
        size.numbers |= signals
        for name, _, values in found:
            starts[name] = self.start_of(values["value"], values.get("unit", ""))
            size.numbers[name] = np.size(starts[name])
        for name, reader, values in found:
            with self.adding(reader, f"variable {name!r}"):
                made = {
                    what: self.of_instant(reader, values, what, size, np.size(starts[name]))
                    for what in ("rate", "update")
                    if what in values
                }
                plain = {what: values[what] for what in ("unit", "every") if what in values}
                self.mechanism.variable(name, starts[name], linear=values.get("linear") == "true", **plain, **made)

    def start_of(self, given: NodeReader, unit: str) -> Any:
        """The value of a variable, in its unit where that is one of files."""
        try:
            quantity = quantity_of(unit) if unit else ""
        except UnitError:
            quantity = ""
        places = given.items() if isinstance(given.node, List) else [given]
        values = [place.number(quantity) if quantity else place.quantity().value for place in places]
        return values if isinstance(given.node, List) else values[0]

    def of_instant(self, reader: NodeReader, values: dict[str, Any], what: str, size: instant.Sizes, count: int) -> Any:
        """A function of an instant from its expressions, `count` numbers."""
        readings: dict[str, instant.Reading] = {}
        for name, node in values["reads"].node.entries.items() if "reads" in values else ():
            inner = reader.inner(node, f"reads.{name}")
            if why := function.taken(name) or ("that is a parameter" if name in reader.parameters else ""):
                raise inner.error(f"cannot have this name: {why}")
            parts = entries_of(inner, schema.READS, f"reads.{name}.")
            point = parts.pop("point", None)
            if len(parts) != 1 or (point is not None and not parts.keys() & {*instant.BODY}):
                raise inner.error(f"must be one of {', '.join(instant.WHAT)}, and of a body may have a point")
            ((quantity, of),) = parts.items()
            readings[name] = instant.Reading(quantity, of, *([tuple(point)] if point is not None else []))
            try:
                size(readings[name])
            except CardanError as error:
                raise inner.error(f"is unknown: {error}") from None
        given: NodeReader = values[what]
        outputs = given.items() if isinstance(given.node, List) else [given]
        if len(outputs) != count:
            raise given.error(
                f"must have a number or expression for each number of the variable, {count}, got {len(outputs)}"
            )
        made = self.expressions(reader, values, outputs, ["number"] * count, instant.variables_of(readings, size))
        return instant.of_instant(made, readings)

    @staticmethod
    def controller_schema(kind: str) -> schema.Entries:
        """Entries of a controller of one type."""
        types = schema.CONTROLLER_TYPES
        return schema.with_type(types) | schema.CONTROLLERS | types[kind]

    def controller(self, name: str, reader: NodeReader, signals: dict[str, int]) -> None:
        """Add a controller: a ready-made law, or one of expressions of the instant."""
        kind = type_of(reader, tuple(schema.CONTROLLER_TYPES))
        values = entries_of(reader, self.controller_schema(kind))
        values.pop("type")
        m, on = self.mechanism, {what: values.pop(what, []) for what in ("joints", "bodies")}
        with self.adding(reader, f"controller {name!r}"):
            if kind != "user":
                law: Any = ready_law(kind, values)
            else:
                size = instant.Sizes(m)
                size.numbers |= signals
                given = {what: values.get(what, {}) for what in ("states", "inputs")}
                own = {
                    what: {k: size.numbers.get(x, 1) if isinstance(x, str) else np.size(x) for k, x in each.items()}
                    for what, each in given.items()
                }
                size.numbers |= {f"{name}.{k}": n for each in own.values() for k, n in each.items()}
                efforts = signals[f"{name}.output"]
                if "outputs" in values:
                    values["outputs"] = int(values["outputs"])
                column = self.of_instant(reader, values, "law", size, efforts + sum(own["states"].values()))
                law = law_of_column(column, efforts, own["states"])
                values = {k: x for k, x in values.items() if k not in ("law", "reads", "where")}
            acts = on["joints"] or on["bodies"]
            m.controller(name, on["joints"] if acts else None, law, bodies=on["bodies"], **values)

    def actuator(self, name: str, reader: NodeReader) -> None:
        values = entries_of(reader, schema.ACTUATORS)
        with self.adding(reader, f"actuator {name!r}"):
            self.mechanism.actuator(name, values.pop("joint"), **values)

    def force(self, name: str, reader: NodeReader) -> None:
        kinds = force_kinds()
        kind = kinds[type_of(reader, tuple(kinds))]
        reader = reader.owned(f"{kind.name} {name!r}")
        with self.adding(reader, reader.owner):
            entries = schema.with_type(kinds) | schema.force_entries(kind)
            check_keys(reader, entries)
            if kind.on == "joint":
                reader = self.on_joint(reader)
            values = entries_of(reader, entries)
            on: Any = next((values[what] for what in ("joint", "along", "body", "bodies") if what in values), None)
            if kind.bodies == 2:
                on = (values["body1"], values["body2"])
            elif kind.on == "joints":
                on = self.coefficients(values["along"], "along")
            for what, field in kind.fields.items():
                if field.form in FUNCTIONS and field.form != TABLE:
                    read = {EFFORT: self.efforts, GAP: self.gap}.get(field.form, self.wrenches)
                    values[what] = read(reader, kind, values)
                elif field.form == MOMENT_AND_FORCE:
                    values[what] = [*values.get("moment", (0.0,) * 3), *values.get("force", (0.0,) * 3)]
            self.mechanism.force(name, kind, on, **{what: values[what] for what in kind.fields if what in values})

    def on_joint(self, reader: NodeReader) -> NodeReader:
        """Set the kind of joint that quantities are along; an unknown joint is rejected by the builder."""
        node = reader.table("").entries.get("joint")
        kind = self.kind_along(node.text) if isinstance(node, Scalar) else None
        return replace(reader, kind=kind if kind is not None else Free.kind)

    def kind_along(self, name: str) -> Kind | None:
        """The kind of a joint, of "A[1]" with one of its coordinates; None of one that there is not."""
        numbered = NUMBERED.fullmatch(name) if name not in self.kinds else None
        kind = self.kinds.get(numbered[1] if numbered else name)
        if kind is None or numbered is None:
            return kind
        k = int(numbered[2])
        return kind.part([k]) if kind.nq == kind.nv and k < kind.nv else None

    def efforts(self, reader: NodeReader, kind: ForceKind, values: dict[str, Any]) -> Any:
        """The function of an element along a joint, with a number or an expression for each rate."""
        joint = reader.kind
        assert joint is not None
        given: NodeReader = values[kind.function]
        outputs = given.items() if isinstance(given.node, List) else [given]
        if self.kind_along(values["joint"]) is None or not joint.nv:
            return 0.0  # the builder rejects the joint
        if len(outputs) != joint.nv:
            raise given.error(f"must have a number or expression for each rate, {joint.nv}, got {len(outputs)}")
        quantities = along(reader, kind.fields[kind.function].unit)
        variables: function.Variables = {"t": (), "q": (joint.nq,), "v": (joint.nv,)}
        made = self.expressions(reader, values, outputs, quantities, variables)
        return lambda t, q, v: made(t=t, q=q, v=v)

    def wrenches(self, reader: NodeReader, kind: ForceKind, values: dict[str, Any]) -> Any:
        """The function of an element on bodies, with a moment and a force for each."""
        bodies = values["bodies"]
        wrenches = reader.inner(reader.table("").entries[kind.function], kind.function).items()
        if len(wrenches) != len(bodies):
            raise reader.error(f"has {len(bodies)} bodies and {len(wrenches)} wrenches; give one for each")
        variables = self.of_bodies(reader, bodies)
        zero = Scalar("0", True, reader.node.line, reader.node.column)
        outputs, quantities = [], []
        for wrench in wrenches:
            parts = entries_of(wrench, schema.WRENCH, f"{wrench.what}.")
            for what in ("moment", "force"):
                quantities += [what] * 3
                if what not in parts:
                    outputs += [reader.inner(zero, what)] * 3
                    continue
                items = parts[what].items()
                if len(items) != 3:
                    raise parts[what].error(f"must be 3 numbers or expressions, got {len(items)}")
                outputs += items
        made = self.expressions(reader, values, outputs, quantities, variables)

        def numbers(t: Any, poses: Any, twists: Any) -> list[list[Any]]:
            every = made(**function.body_values(t, poses, twists))
            return [every[k : k + 6] for k in range(0, len(every), 6)]

        return numbers

    def gap(self, reader: NodeReader, kind: ForceKind, values: dict[str, Any]) -> Any:
        """The function of a contact, its gap and the velocities of sliding; or of a stop, one expression."""
        given: NodeReader = values[kind.function]
        outputs = given.items() if isinstance(given.node, List) else [given]
        first = quantity_of(kind.fields[kind.function].unit.partition(",")[0])
        quantities = [first, *["velocity"] * (len(outputs) - 1)]
        made = self.expressions(reader, values, outputs, quantities, self.of_bodies(reader, values["bodies"]))
        return lambda t, poses, twists: made(**function.body_values(t, poses, twists))

    def of_bodies(self, reader: NodeReader, bodies: list[str]) -> function.Variables:
        """The variables of a function of some bodies."""
        if len(bodies) > len(self.mechanism.bodies) + 1:
            raise reader.error(f"has {len(bodies)} bodies, and there are {len(self.mechanism.bodies)}; name each once")
        return function.of_bodies(len(bodies))

    def expressions(
        self, reader: NodeReader, values: dict[str, Any], outputs: list[NodeReader], quantities: list[str],
        variables: function.Variables,
    ) -> function.ExpressionFunction:  # fmt: skip
        """Make the function of an element from its expressions."""
        where: dict[str, NodeReader] = {}
        for name, node in values["where"].node.entries.items() if "where" in values else ():
            inner = reader.inner(node, f"where.{name}")
            why = function.taken(name) or ("that is a parameter" if name in reader.parameters else "")
            why = why or ("that is a table" if name in reader.tables else "")
            why = why or ("that is a variable of functions" if name in variables else "")
            if why:
                raise inner.error(f"cannot have this name: {why}")
            where[name] = inner
        return function.ExpressionFunction(variables, outputs, quantities, where)

    def constraint(self, name: str, reader: NodeReader) -> None:
        kinds = constraint_kinds()
        type = type_of(reader, (*schema.CONSTRAINT_TYPES, *kinds))
        if type in kinds:
            return self.constraint_element(name, kinds[type], reader)
        reader = reader.owned(f"{'constraint' if type == 'user' else type} {name!r}")
        entries = schema.with_type(schema.CONSTRAINT_TYPES) | schema.CONSTRAINT_TYPES[type]
        check_keys(reader, entries)
        with self.adding(reader, reader.owner):
            if type == "coupling":
                values = entries_of(reader, entries)
                given = {what: values[what] for what in ("offset", "unit") if what in values}
                self.mechanism.couple(name, self.coefficients(values["coefficients"], "coefficients"), **given)
                return
            if type == "relation":
                values = entries_of(reader, entries)
                names = [f"q{k + 1}" for k in range(len(values["joints"]))]
                of_joints = self.expressions(reader, values, [values["value"]], ["number"], dict.fromkeys(names, ()))
                related = lambda *q: of_joints(**dict(zip(names, q, strict=True)))[0]
                self.mechanism.couple(name, values["joints"], related, unit=values.get("unit", ""))
                return
            if type == "user":
                values = entries_of(reader, entries)
                variables = self.of_bodies(reader, values["bodies"])
                made = self.expressions(reader, values, [values["value"]], ["number"], variables)
                own = lambda t, poses, twists: made(**function.body_values(t, poses, twists))[0]
                self.mechanism.constraint(name, values["bodies"], own, unit=values.get("unit", "m"))
                return
            reader = self.on_joint(reader)
            values = entries_of(reader, entries)
            value: NodeReader = values["value"]
            moved: Any = 0.0
            if self.kind_along(values["joint"]) and reader.kind and reader.kind.nv == 1:
                quantities = along(reader, COORDINATE)
                if value.is_expression:
                    of_time = self.expressions(reader, values, [value], quantities, function.TIME)
                    moved = lambda t: of_time(t=t)[0]
                else:
                    moved = value.number(*quantities)
            self.mechanism.motion(name, values["joint"], moved)

    def constraint_element(self, name: str, kind: ConstraintKind, reader: NodeReader) -> None:
        reader = reader.owned(f"{kind.name} {name!r}")
        with self.adding(reader, reader.owner):
            types = (*schema.CONSTRAINT_TYPES, *constraint_kinds())
            values = entries_of(reader, schema.with_type(types) | schema.constraint_entries(kind))
            on: Any = values.get("body", values.get("bodies"))
            if kind.bodies == 2:
                on = (values["body1"], values["body2"])
            elif kind.on == "joints":
                on = self.coefficients(values["along"], "along")
            for what, field in kind.fields.items():
                if field.form == FUNCTION:
                    values[what] = self.plain_function(reader, values, what, field)
            given = {what: values[what] for what in kind.fields if what in values}
            self.mechanism.constrain(name, kind, on, holds=values.get("holds"), **given)

    def plain_function(self, reader: NodeReader, values: dict[str, Any], what: str, field: Field) -> Any:
        """A function of numbers, such as the profile of a cam, from its expression."""
        names = [argument for argument, _ in field.arguments]
        variables: function.Variables = dict.fromkeys(names, ())
        made = self.expressions(reader, values, [values[what]], [quantity_of(field.unit)], variables)
        return lambda *at: made(**dict(zip(names, at, strict=True)))[0]

    def coefficients(self, reader: NodeReader, what: str) -> dict[str, float]:
        """Read the coefficients of a sum of coordinates; products whose units are known must agree."""
        numbers: dict[str, float] = {}
        products: dict[tuple[int, ...], str] = {}
        for joint, node in reader.table("").entries.items():
            inner = reader.inner(node, f"{what}.{joint}")
            value = inner.quantity()
            kind = self.kind_along(joint)
            if kind is not None and kind.nv == 1 and value.dimension is not None and not value.bare:
                length = kind.q_units[0] == "m"
                products.setdefault((value.dimension[0] + length, *value.dimension[1:3]), joint)
            numbers[joint] = value.value
        if len(products) > 1:
            first, second = list(products.values())[:2]
            raise reader.error(f"of {first!r} and {second!r} give products in different units; they are added")
        return numbers


def entries_of(reader: NodeReader, entries: Entries, prefix: str = "") -> dict[str, Any]:
    """Read the entries of a table by their forms; reject unknown and missing ones."""
    check_keys(reader, entries, prefix)
    table = reader.table(f"{{{', '.join(list(entries)[:2])}}}")
    values = {}
    for name, entry in entries.items():
        if name in table.entries and entry.form is not None:
            values[name] = entry.form.read(reader.inner(table.entries[name], prefix + name))
    return values


def check_keys(reader: NodeReader, entries: Entries, prefix: str = "") -> None:
    """Reject unknown entries, and a table without the needed ones."""
    table = reader.table(f"{{{', '.join(list(entries)[:3])}}}")
    where = f" in {prefix.rstrip('.')}" if prefix else ""
    for key, scalar in table.keys.items():
        if key not in entries:
            plain = replace(reader, what="")
            raise plain.error(f"there is no entry {key!r}{where}{nearest(key, entries)}", scalar.line)
    missing = [name for name, entry in entries.items() if entry.needed and name not in table.entries]
    if missing:
        raise replace(reader, what="").error(f"{' and '.join(map(repr, missing))} must be given{where}")


def part(table: Table, entries: Entries) -> Table:
    """The table with only these entries."""
    kept = [key for key in table.entries if key in entries]
    return Table(table.line, table.column, {k: table.entries[k] for k in kept}, {k: table.keys[k] for k in kept})


def type_of(reader: NodeReader, types: tuple[str, ...]) -> str:
    """Read the type of an element, which decides about its other entries."""
    table = reader.table(f"{{type: {types[0]}, ...}}")
    if "type" not in table.entries:
        raise reader.error(f"'type' must be given; it is one of {', '.join(types)}")
    return reader.inner(table.entries["type"], "type").choice(types)
