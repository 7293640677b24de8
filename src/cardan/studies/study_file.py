"""Study files: a model, its parameters, the run, the measures and the store of a sweep, as a YAML file.

`SECTIONS`, `RUN` and `SPAN` are the tables of the format; the page docs/sweeps.md is made from them. Numbers have units
as in model files, checked against those of the parameters. An error names the file, the line, the element and the rule.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from cardan.errors import CardanError, nearest
from cardan.integrate.integrators import find_integrator, with_options
from cardan.io.text_file import read_text
from cardan.io.yaml.nodes import List, NodeReader, Scalar, Table, described, parse_yaml
from cardan.io.yaml.read import check_keys, entries_of
from cardan.io.yaml.schema import TEXT, Entries, Entry, Form, choice, list_of, number
from cardan.model.model import Model
from cardan.studies.design import KINDS, LARGEST, Design, make_design
from cardan.studies.distribution import DISTRIBUTIONS, Distribution
from cardan.studies.measure import REDUCTIONS, WHOLE, Measure, measures_of
from cardan.studies.run import Run
from cardan.studies.task import RATE, columns_of, make_task

VERSION = 1


def _read_count(reader: NodeReader) -> int:
    value = reader.number("number")
    if value != int(value) or value < 0:
        raise reader.error(f"must be a whole number, got {described(reader.node)}")
    return int(value)


COUNT = Form(_read_count, {"type": "integer"})
SECTIONS: Entries = {
    "study": Entry(number(), f"version of the format, {VERSION}", needed=True),
    "model": Entry(TEXT, "a model file, beside this one, or a mechanism of the catalogue", needed=True),
    "set": Entry(None, "parameters of the model file by name"),
    "root": Entry(choice("fixed", "free"), "root of a robot on the ground"),
    "parameters": Entry(None, "values or distributions by name: `crank.mass`, `A` (a joint), `A.rate`, `B.at[0]`"),
    "table": Entry(TEXT, "in place of parameters: a CSV file, beside this one, with their names in the first line"),
    "design": Entry(choice(*KINDS), "how members are chosen: " + ", ".join(f"`{kind}`" for kind in KINDS)),
    "samples": Entry(COUNT, "how many samples of distributions"),
    "seed": Entry(COUNT, "of the samples; 0 unless given"),
    "run": Entry(None, "the run of each member, as of `cd.Run`", needed=True),
    "measures": Entry(None, "what is kept of each run, by name: `{peak: A.reaction_force}`, or a list of quantities",
                      needed=True),
    "store": Entry(TEXT, "folder of the results, beside this file; the file's own name with `.zarr` unless given"),
    "workers": Entry(COUNT, "number of local processes"),
    "chunk": Entry(COUNT, "members that are computed and written together"),
}  # fmt: skip
RUN: Entries = {
    "duration": Entry(number("time"), "simulated time", needed=True),
    "q0": Entry(None, "coordinates of joints at the start, by name; loops are closed from there"),
    "v0": Entry(None, "rates of joints at the start, by name; otherwise at rest"),
    "method": Entry(TEXT, "integrator, `dormand_prince` unless given"),
    "formulation": Entry(TEXT, "`spatial` unless given"),
    "step": Entry(number("time"), "length of fixed steps"),
    "rtol": Entry(number(), "relative tolerance"),
    "atol": Entry(number(), "absolute tolerance"),
    "max_step": Entry(number("time"), "longest step"),
    "max_steps": Entry(COUNT, "a run fails after this many steps"),
    "samples": Entry(COUNT, "samples of each run, evenly spaced; reductions over time look at these"),
    "start": Entry(number("time"), "time at the start"),
    "breaks": Entry(list_of(number("time")), "times of discontinuities"),
    "device": Entry(TEXT, "`cpu`, `gpu`, or `auto`"),
    "precision": Entry(choice("float64", "float32"), "of steps of fixed length"),
    "baumgarte": Entry(number("1/s"), "of explicit methods: rate of feedback on loops"),
    "damping": Entry(number(), "of `alpha`: spectral radius at infinite frequency"),
    "form": Entry(TEXT, "of `gear`: `stabilised` or `index1`"),
    "max_order": Entry(COUNT, "of `gear`, `bdf` and `adams`: highest order"),
}
# What messages say of Python arguments, and the same in a study file.
WRITTEN = {
    "sweep: ": "", "design: ": "", "simulate: ": "", "samples=, as samples=256": "'samples: 256'",
    "step=1e-3 (s)": "step: 1 ms", "design='grid'": "design: grid",
}  # fmt: skip
METHOD_OPTIONS = ("baumgarte", "damping", "form", "max_order")
SPAN: Entries = {
    "from": Entry(None, "first value", needed=True),
    "to": Entry(None, "last value", needed=True),
    "count": Entry(COUNT, "number of values", needed=True),
    "spacing": Entry(choice("even", "log"), "`even` (the default) or `log`"),
}
Load = Callable[[str, str, dict[str, str]], Model]


@dataclass(frozen=True)
class StudyFile:
    """The contents of a study file.

    Args:
        path: of the file.
        model: the mechanism.
        design: the members.
        run: settings of the runs.
        measures: what is kept, by name.
        store: folder of the results.
        workers: number of local processes, or None.
        chunk: members computed together, or None.

    """

    path: Path
    model: Model
    design: Design
    run: Run
    measures: dict[str, Measure]
    store: Path
    workers: int | None
    chunk: int | None


def read_study_file(path: Path, load: Load) -> StudyFile:
    """Read a study file; `load(name, root, parameters)` makes the model of a file or of the catalogue."""
    source = str(path)
    top = NodeReader(parse_yaml(read_text(path), source), source)
    table = top.table("")
    if "study" not in table.entries:
        words = "it is a model; name it in a study file, as 'model: FILE'"
        hint = words if "cardan" in table.entries else "is it a study file?"
        raise top.error(f"the file does not say 'study: {VERSION}'; {hint}", 1)
    version = top.inner(table.entries["study"], "study")
    if version.number("number") != VERSION:
        raise version.error(f"must be {VERSION}, got {described(version.node)}; it is the format's version")
    values = entries_of(top.owned("study"), SECTIONS)

    def part(name: str) -> NodeReader:
        return _part(top, table, name)

    model = _model(part, values, load, path.parent)
    design = _design(part, values, model, path.parent, top)
    run = _run(part("run"), model)
    measures = _measures(part("measures"), lambda own: make_task(model, design.names, run, own))
    store = path.parent / values.get("store", f"{path.stem}.zarr")
    return StudyFile(path, model, design, run, measures, store, values.get("workers"), values.get("chunk"))


def _part(top: NodeReader, table: Table, name: str) -> NodeReader:
    """A section; an empty one where it is left out."""
    node = table.entries.get(name, Table(table.line, table.column))
    return replace(top, node=node, owner=name, what="")


@contextmanager
def _placed(reader: NodeReader) -> Iterator[None]:
    """Give errors of Cardan the file and the line of a section."""
    try:
        yield
    except CardanError as error:
        text = str(error)
        if text.startswith(f"{reader.source}:"):
            raise
        for argument, entry in WRITTEN.items():
            text = text.replace(argument, entry)
        if reader.owner:
            text = text.removeprefix(f"{reader.owner}: ")
        raise reader.error(text) from None


def _model(part: Callable[[str], NodeReader], values: Mapping[str, Any], load: Load, folder: Path) -> Model:
    given = part("set")
    changes = {}
    for name, node in given.table("{length: 2 m}").entries.items():
        changes[name] = given.inner(node, name).text()
    name = values["model"]
    beside = folder / name
    with _placed(part("model")):
        return load(str(beside) if beside.is_file() else name, values.get("root", "fixed"), changes)


def _design(
    part: Callable[[str], NodeReader], values: Mapping[str, Any], model: Model, folder: Path, top: NodeReader
) -> Design:  # fmt: skip
    section = part("parameters")
    given = section.table("{crank.mass: [1 kg, 2 kg]}").entries
    if bool(given) == ("table" in values):
        raise top.error("give 'parameters' or a 'table' of them, one of the two", 1)
    settings = {"samples": values.get("samples"), "seed": values.get("seed", 0)}
    if "table" in values:
        reader = part("table")
        with _placed(reader):
            design = make_design("design", folder / values["table"], values.get("design"), **settings)
            columns_of(model, design.names)
        return design
    found = {}
    for name, node in given.items():
        reader = replace(section, node=node, owner=f"parameter {name!r}", what="")
        with _placed(reader):
            found[name] = _parameter(reader, model, name)
    with _placed(section):
        design = make_design("design", found, values.get("design"), **settings)
        columns_of(model, design.names)
        return design


def _parameter(reader: NodeReader, model: Model, name: str) -> Any:
    """Values, or a distribution, of a parameter in its unit."""
    if isinstance(reader.node, List) and reader.node.items and isinstance(reader.node.items[0], List):
        unit = columns_of(model, (f"{name}[0]",))[1][0].unit or "number"
        return [[x.number(unit) for x in row.items()] for row in reader.items()]
    unit = columns_of(model, (name,))[1][0].unit or "number"
    if isinstance(reader.node, Scalar):
        return reader.number(unit)
    if isinstance(reader.node, List):
        return [item.number(unit) for item in reader.items()]
    return _span_or_distribution(reader, unit)


def _span_or_distribution(reader: NodeReader, unit: str) -> np.ndarray | Distribution:
    entries = reader.table("").entries
    kind = next((key for key in entries if key in DISTRIBUTIONS), None)
    if kind is None:
        if not set(entries) & set(SPAN):
            known = [*DISTRIBUTIONS, *SPAN]
            first = next(iter(entries), "")
            raise reader.error(
                f"must be a list, {{from: ..., to: ..., count: ...}} or a distribution ({', '.join(DISTRIBUTIONS)}), "
                f"got {first!r}{nearest(first, known)}"
            )
        values = entries_of(reader, SPAN)
        low, high = (reader.inner(entries[end], end).number(unit) for end in ("from", "to"))
        if values["count"] > LARGEST:
            raise reader.error(f"has a count of {values['count']:.3g}; at most {LARGEST:.0e} values are read")
        if values.get("spacing") != "log":
            return np.linspace(low, high, values["count"])
        if not low * high > 0:
            raise reader.error(f"is spaced by logarithms: from and to must have one sign, got {low:g} and {high:g}")
        return np.geomspace(low, high, values["count"])
    make, names = DISTRIBUTIONS[kind]
    check_keys(reader, {kind: Entry(None, "")})
    inner = reader.inner(entries[kind], kind)
    check_keys(inner, {name: Entry(None, "", needed=True) for name in names}, f"{kind}.")
    numbers = inner.table("").entries
    return make(*(reader.inner(numbers[name], f"{kind}.{name}").number(unit) for name in names))


def _run(reader: NodeReader, model: Model) -> Run:
    values = entries_of(reader, RUN)
    entries = reader.table("").entries
    for what, suffix in (("q0", ""), ("v0", RATE)):
        if what in entries:
            joints = reader.inner(entries[what], what)
            values[what] = {}
            for name, node in joints.table("{A: 30 deg}").entries.items():
                own = reader.inner(node, f"{what}.{name}")
                with _placed(own):
                    model.q_slice(name.partition("[")[0])
                    unit = columns_of(model, (f"{name}{suffix}",))[1][0].unit
                values[what][name] = own.number(unit)
    options = {name: values.pop(name) for name in METHOD_OPTIONS if name in values}
    with _placed(reader):
        if options:
            values["method"] = with_options(find_integrator(values.get("method", "dormand_prince")), options)
        run = Run(**values)
        run.times(model)
    return run


def _measures(reader: NodeReader, check: Callable[[dict[str, Measure]], Any]) -> dict[str, Measure]:
    """Measures by name, each checked at its place."""
    if isinstance(reader.node, List | Scalar):
        items = [reader] if isinstance(reader.node, Scalar) else reader.items()
        with _placed(reader):
            listed = measures_of([item.text() for item in items])
            check(listed)
            return listed
    found: dict[str, Measure] = {}
    for name, node in reader.table("{load: {peak: A.reaction_force}}").entries.items():
        own = replace(reader, node=node, owner=f"measure {name!r}", what="")
        with _placed(own):
            one = measures_of({name: _measure(own)})
            check(one)
            found |= one
    if not found:
        raise reader.error("is empty; name at least one, as load: {peak: A.reaction_force}")
    return found


def _measure(reader: NodeReader) -> Measure:
    if isinstance(reader.node, Scalar):
        return Measure(reader.text())
    known = (WHOLE, *REDUCTIONS)
    entries = reader.table("{peak: A.reaction_force}").entries
    if len(entries) != 1 or next(iter(entries)) not in known:
        first = next(iter(entries), "")
        raise reader.error(f"must be one of {', '.join(known)} with a quantity, got {first!r}{nearest(first, known)}")
    (over, node), = entries.items()  # fmt: skip
    return Measure(reader.inner(node, over).text(), over)


def store_of(path: Path) -> Path:
    """The store of a study file, without reading its model."""
    top = NodeReader(parse_yaml(read_text(path), str(path)), str(path))
    node = top.table("").entries.get("store")
    return path.parent / (f"{path.stem}.zarr" if node is None else top.inner(node, "store").text())
