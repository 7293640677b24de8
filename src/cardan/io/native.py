"""The native format: one YAML file describes a mechanism with everything that the builder can say.

The tables of the format are in `cardan.io.schema`; docs/format.md explains it. What is wrong in a file is said with
its line, its element and the rule; what the builder finds wrong is given the line of the entry it speaks of.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from cardan.errors import FileError, nearest, visible
from cardan.io import law, schema
from cardan.io.arithmetic import Quantity
from cardan.io.document import List, Scalar, Table, described, parse_yaml
from cardan.io.forms import Each, along
from cardan.io.policy import Policy, Word
from cardan.io.schema import Entries
from cardan.io.spot import Spot
from cardan.io.text import BODIES, placing, read_text, too_many_states
from cardan.model.body import JointData
from cardan.model.builder import SNAPPING, Mechanism
from cardan.model.joint import (
    Cylindrical,
    Free,
    JointType,
    Kind,
    Planar,
    Prismatic,
    Revolute,
    Rigid,
    Screw,
    Spherical,
    Universal,
)
from cardan.model.model import Model

SIZE_LIMIT = 10 * 2**20
"""Largest native file that is read, bytes."""
JOINT_TYPES: dict[str, Callable[..., JointType]] = {
    "rigid": Rigid, "revolute": Revolute, "prismatic": Prismatic, "cylindrical": Cylindrical, "screw": Screw,
    "universal": Universal, "spherical": Spherical, "planar": Planar, "free": Free,
}  # fmt: skip
OWNER = re.compile(r"(?P<owner>[a-z ]+ '(?:[^'\\]|\\.)*'|[a-z ]+ \"(?:[^\"\\]|\\.)*\"): (?P<rest>.*)", re.DOTALL)


@dataclass
class Description:
    """What a file says: the mechanism, and which of its numbers are free."""

    mechanism: Mechanism
    source: str
    free: tuple[str, ...] = ()
    places: dict[str, Spot] = field(default_factory=dict)
    """Where each element is, by how error messages call it."""

    def build(self, snapping: float | None = None) -> Model:
        """Build the model; what is wrong with the whole is said with the file, and the line where there is one."""
        with self.naming():
            model = self.mechanism.build(snapping=snapping)
            return model.free(*self.free) if self.free else model

    def naming(self) -> AbstractContextManager[None]:
        """Put file and line before what the builder says is wrong."""
        return placing(lambda sentence: f"{self.source}: {self._line(sentence)}{sentence}")

    def _line(self, sentence: str) -> str:
        """The line of the entry that a sentence speaks of, or of the element."""
        match = OWNER.match(sentence)
        spot = self.places.get(match["owner"]) if match else None
        if match is None or spot is None:
            return ""
        line = spot.node.line
        if isinstance(spot.node, Table):
            words = re.findall(r"[a-z_0-9]+", match["rest"])[:1]
            line = next((spot.node.entries[word].line for word in words if word in spot.node.entries), line)
        return f"line {line}: "


def read_native(
    path_or_text: str | Path,
    *,
    parameters: Mapping[str, float | str] | None = None,
    gravity: Any = None,
    policy: Word = "strict",
) -> Description:
    """Read a native file, or its text (a string of several lines); `parameters` and `gravity` replace the file's."""
    if isinstance(path_or_text, str) and "\n" in path_or_text:
        source, text = "native text", path_or_text
    else:
        source, text = str(path_or_text), read_text(Path(path_or_text), SIZE_LIMIT)
    top = Spot(parse_yaml(text, source), source, policy=Policy(policy))
    return _Reader(top, dict(parameters or {}), gravity).read()


class _Reader:
    """From the nodes of a file to a mechanism, section by section."""

    def __init__(self, top: Spot, replaced: dict[str, float | str], gravity: Any) -> None:
        self.top, self.replaced = top, replaced
        table = top.table("")
        if "cardan" not in table.entries:
            raise top.error(f"the file does not say 'cardan: {schema.VERSION}'; is it a mechanism of this format?", 1)
        version = top.inner(table.entries["cardan"], "cardan")
        if version.number("number") != schema.VERSION:
            raise version.error(f"must be {schema.VERSION}, got {described(version.node)}; it is the format's version")
        check_keys(top.owned("file"), schema.SECTIONS)
        self.top = replace(top, parameters=self.parameters())
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
        sections: dict[str, Callable[[str, Spot], None]] = {
            "bodies": self.body, "joints": self.joint, "frames": self.frame, "forces": self.force,
            "constraints": self.constraint, "states": self.state, "actuators": self.actuator,
        }  # fmt: skip
        if len(self.section("bodies").entries) > BODIES:
            raise self.top.error(f"the file has more than {BODIES} bodies; no more are read")
        if why := too_many_states(len(self.section("states").entries), len(self.section("joints").entries)):
            raise self.top.error(why)
        for section, add in sections.items():
            for name, spot in self.named(section):
                add(name, spot)
        for loss in self.head.get("losses", ()):
            m.lose(visible(loss))
        for note in (*self.head.get("notes", ()), *self.top.policy.notes):
            m.note(visible(note.removeprefix(f"{self.top.source}: ")))
        m.cut = tuple(self.head.get("cut", ()))
        m.snapping = self.head.get("snapping", SNAPPING)
        result.free = tuple(self.head.get("free", ()))
        result.places["mechanism " + repr(m.name)] = self.top
        return result

    def parameters(self) -> dict[str, Quantity]:
        """Read the parameters in their order; each may use those before it."""
        known: dict[str, Quantity] = {}
        table = self.section("parameters")
        unknown = set(self.replaced) - set(table.entries)
        if unknown:
            name = min(unknown)
            raise FileError(f"{self.top.source}: parameter {name!r} is not in the file{nearest(name, table.entries)}")
        for name, node in table.entries.items():
            spot = replace(self.top.inner(node, "value"), owner=f"parameter {name!r}", parameters=known)
            if why := law.taken(name):
                raise spot.error(f"cannot have this name: {why}")
            if name in self.replaced:
                scalar = Scalar(str(self.replaced[name]), True, node.line, node.column)
                spot = replace(spot, node=scalar, what="value given to load")
            known[name] = self.parameter(spot, table)
        return known

    def parameter(self, spot: Spot, table: Table) -> Quantity:
        try:
            value = spot.quantity()
        except FileError as error:
            match = re.search(r": '(\w+)' is neither", str(error))
            if match and match[1] in table.entries:
                raise spot.error(f"uses {match[1]!r}, which is not defined above it; move one of them") from None
            raise
        return Quantity(value.value, None if value.bare else value.dimension)

    def section(self, name: str) -> Table:
        node = self.top.table("").entries.get(name)
        if node is None:
            return Table(0, 0)
        return self.top.inner(node, name).table(f"{name}: {{...}}")

    def named(self, section: str) -> Iterator[tuple[str, Spot]]:
        singular = {"bodies": "body"}.get(section, section.removesuffix("s"))
        for name, node in self.section(section).entries.items():
            yield name, replace(self.top, node=node, owner=f"{singular} {name!r}", what="")

    def adding(self, spot: Spot, owner: str) -> AbstractContextManager[None]:
        """Add an element to the mechanism: what the builder refuses is told with its place."""
        self.result.places.setdefault(owner, spot)
        return self.result.naming()

    def body(self, name: str, spot: Spot) -> None:
        values = entries_of(spot, schema.BODIES)
        if "inertia" in values:
            values["inertia"] = values["inertia"](values.get("mass", 0.0))
        with self.adding(spot, f"body {name!r}"):
            spot.policy.add_body(self.mechanism, name, spot.error, **values)

    def joint(self, name: str, spot: Spot) -> None:
        types = schema.JOINT_TYPES[type_of(spot, tuple(schema.JOINT_TYPES))]
        table = spot.table("")
        places = schema.JOINTS | types
        check_keys(spot, places)
        with self.adding(spot, f"joint {name!r}"):
            own = entries_of(replace(spot, node=part(table, types)), types)
            type = JOINT_TYPES[spot.inner(table.entries["type"], "type").text()](**own)
            kind = type.kind
            values = entries_of(replace(spot, node=part(table, schema.JOINTS), kind=kind), schema.JOINTS)
            values.pop("type")
            if "data" in values:
                values["data"] = self.data(values["data"], kind)
            self.mechanism.joint(name, type, values.pop("parent"), values.pop("child"), **values)
        self.kinds[name] = kind

    def data(self, spot: Spot, kind: Kind) -> JointData:
        values = entries_of(replace(spot, kind=kind), schema.DATA, "data.")
        if "mimic" in values:
            mimic = entries_of(values["mimic"], schema.MIMIC, "data.mimic.")
            values["mimic"] = (mimic["joint"], mimic["multiplier"], mimic["offset"])
        return spot.policy.check_data(JointData(**values), replace(spot, what="").error)

    def frame(self, name: str, spot: Spot) -> None:
        values = entries_of(spot, schema.FRAMES)
        with self.adding(spot, f"frame {name!r}"):
            self.mechanism.frame(name, values.pop("body"), **values)

    def state(self, name: str, spot: Spot) -> None:
        values = entries_of(spot, schema.STATES)
        given: dict[str, dict[str, Any]] = {"q": {}, "v": {}}
        with self.adding(spot, f"state {name!r}"):
            for what, form in (("q", Each("coordinate")), ("v", Each("rate"))):
                inner: Spot | None = values.get(what)
                for joint, node in inner.table("").entries.items() if inner is not None else ():
                    place = spot.inner(node, f"{what}.{joint}").along(self.kinds.get(joint, Free.kind))
                    given[what][joint] = form.read(place)
            self.mechanism.state(name, given["q"], given["v"], time=values.get("time", 0.0))

    def actuator(self, name: str, spot: Spot) -> None:
        values = entries_of(spot, schema.ACTUATORS)
        with self.adding(spot, f"actuator {name!r}"):
            self.mechanism.actuator(name, values.pop("joint"), **values)

    def force(self, name: str, spot: Spot) -> None:
        type = type_of(spot, tuple(schema.FORCE_TYPES))
        what = "user force" if type == "user" else type
        spot = spot.owned(f"{what} {name!r}")
        entries = schema.with_type(schema.FORCE_TYPES) | schema.FORCE_TYPES[type]
        check_keys(spot, entries)
        with self.adding(spot, spot.owner):
            if "joint" in entries:
                spot = self.on_joint(spot)
            values = entries_of(spot, entries)
            values.pop("type")
            if type in ("drive", "user"):
                (self.drive if type == "drive" else self.user_force)(name, spot, values)
            elif type == "wrench":
                wrench = [*values.pop("moment", (0.0,) * 3), *values.pop("force", (0.0,) * 3)]
                self.mechanism.wrench(name, values.pop("body"), wrench, **values)
            else:
                ends = [values.pop(end) for end in ("joint", "body1", "body2") if end in values]
                getattr(self.mechanism, type)(name, *ends, **values)

    def on_joint(self, spot: Spot) -> Spot:
        """Tell a place which kind of joint its quantities are along; an unknown joint is left to the builder."""
        node = spot.table("").entries.get("joint")
        kind = self.kinds.get(node.text) if isinstance(node, Scalar) else None
        return spot.along(kind if kind is not None else Free.kind)

    def drive(self, name: str, spot: Spot, values: dict[str, Any]) -> None:
        kind = spot.kind
        assert kind is not None
        given: Spot = values["effort"]
        outputs = given.items() if isinstance(given.node, List) else [given]
        known = values["joint"] in self.kinds
        if known and kind.nv and len(outputs) != kind.nv:
            raise given.error(f"must have a number or expression for each rate, {kind.nv}, got {len(outputs)}")
        quantities = along(spot, "effort")[: len(outputs)]
        function: Any = 0.0
        if known and kind.nv:
            function = self.law(spot, values, outputs, quantities, law.of_joint(kind.nq, kind.nv), law.drive_function)
        self.mechanism.drive(name, values["joint"], function)

    def user_force(self, name: str, spot: Spot, values: dict[str, Any]) -> None:
        bodies = values["bodies"]
        wrenches = spot.inner(spot.table("").entries["wrenches"], "wrenches").items()
        if len(wrenches) != len(bodies):
            raise spot.error(f"has {len(bodies)} bodies and {len(wrenches)} wrenches; give one for each")
        if len(bodies) > len(self.mechanism.bodies):
            raise spot.error(f"has {len(bodies)} bodies, and there are {len(self.mechanism.bodies)}; name each once")
        zero = Scalar("0", True, spot.node.line, spot.node.column)
        outputs, quantities = [], []
        for wrench in wrenches:
            parts = entries_of(wrench, schema.WRENCH, f"{wrench.what}.")
            for part_name, quantity in (("moment", "moment"), ("force", "force")):
                quantities += [quantity] * 3
                if part_name not in parts:
                    outputs += [spot.inner(zero, part_name)] * 3
                    continue
                items = parts[part_name].items()
                if len(items) != 3:
                    raise parts[part_name].error(f"must be 3 numbers or expressions, got {len(items)}")
                outputs += items
        function = self.law(spot, values, outputs, quantities, law.of_bodies(len(bodies)), law.force_function)
        self.mechanism.user_force(name, bodies, function)

    def law(
        self,
        spot: Spot,
        values: dict[str, Any],
        outputs: list[Spot],
        quantities: list[str],
        variables: law.Variables,
        wrap: Callable[[law.Law], Callable[..., Any]],
    ) -> Callable[..., Any]:
        """Make the function of an element from its expressions."""
        where: dict[str, Spot] = {}
        for name, node in values["where"].node.entries.items() if "where" in values else ():
            inner = spot.inner(node, f"where.{name}")
            why = law.taken(name) or ("that is a parameter" if name in spot.parameters else "")
            if why:
                raise inner.error(f"cannot have this name: {why}")
            where[name] = inner
        return wrap(law.Law(variables, outputs, quantities, where))

    def constraint(self, name: str, spot: Spot) -> None:
        type = type_of(spot, tuple(schema.CONSTRAINT_TYPES))
        spot = spot.owned(f"{type} {name!r}")
        entries = schema.with_type(schema.CONSTRAINT_TYPES) | schema.CONSTRAINT_TYPES[type]
        check_keys(spot, entries)
        with self.adding(spot, spot.owner):
            if type == "coupling":
                values = entries_of(spot, entries)
                self.mechanism.couple(name, self.coefficients(values), offset=values.get("offset", 0.0))
                return
            spot = self.on_joint(spot)
            values = entries_of(spot, entries)
            value: Spot = values["value"]
            function: Any = 0.0
            if values["joint"] in self.kinds and spot.kind and spot.kind.nv == 1:
                quantities = along(spot, "coordinate")
                function = value.number(*quantities) if not value.is_expression else None
                if function is None:
                    function = self.law(spot, values, [value], quantities, law.TIME, law.motion_function)
            self.mechanism.motion(name, values["joint"], function)

    def coefficients(self, values: dict[str, Any]) -> dict[str, float]:
        """Read the coefficients of a coupling; products whose units are known must agree."""
        spot: Spot = values["coefficients"]
        numbers: dict[str, float] = {}
        products: dict[tuple[int, ...], str] = {}
        for joint, node in spot.table("").entries.items():
            inner = spot.inner(node, f"coefficients.{joint}")
            value = inner.quantity()
            kind = self.kinds.get(joint)
            if kind is not None and kind.nv == 1 and value.dimension is not None and not value.bare:
                length = kind.q_units[0] == "m"
                products.setdefault((value.dimension[0] + length, *value.dimension[1:3]), joint)
            numbers[joint] = value.value
        if len(products) > 1:
            first, second = list(products.values())[:2]
            raise spot.error(f"of {first!r} and {second!r} give products in different units; they are added")
        return numbers


def entries_of(spot: Spot, entries: Entries, prefix: str = "") -> dict[str, Any]:
    """Read the entries of a table by their forms; unknown and missing ones are refused."""
    check_keys(spot, entries, prefix)
    table = spot.table(f"{{{', '.join(list(entries)[:2])}}}")
    values = {}
    for name, entry in entries.items():
        if name in table.entries and entry.form is not None:
            values[name] = entry.form.read(spot.inner(table.entries[name], prefix + name))
    return values


def check_keys(spot: Spot, entries: Entries, prefix: str = "") -> None:
    """Refuse entries that the format does not know, and the lack of those that it needs."""
    table = spot.table(f"{{{', '.join(list(entries)[:3])}}}")
    where = f" in {prefix.rstrip('.')}" if prefix else ""
    for key, scalar in table.keys.items():
        if key not in entries:
            plain = replace(spot, what="")
            raise plain.error(f"there is no entry {key!r}{where}{nearest(key, entries)}", scalar.line)
    missing = [name for name, entry in entries.items() if entry.needed and name not in table.entries]
    if missing:
        raise replace(spot, what="").error(f"{' and '.join(map(repr, missing))} must be given{where}")


def part(table: Table, entries: Entries) -> Table:
    """Only those entries of a table."""
    kept = [key for key in table.entries if key in entries]
    return Table(table.line, table.column, {k: table.entries[k] for k in kept}, {k: table.keys[k] for k in kept})


def type_of(spot: Spot, types: tuple[str, ...]) -> str:
    """Read the type of an element, which decides about its other entries."""
    table = spot.table(f"{{type: {types[0]}, ...}}")
    if "type" not in table.entries:
        raise spot.error(f"'type' must be given; it is one of {', '.join(types)}")
    return spot.inner(table.entries["type"], "type").choice(types)
