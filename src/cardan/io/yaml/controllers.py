"""Controllers in a YAML file: ready-made laws by their numbers, laws of the user by expressions of the instant."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

import numpy as np

from cardan.errors import ModelError
from cardan.io.yaml.expression import number
from cardan.io.yaml.function import Entries, WrittenTables
from cardan.io.yaml.instant import instant_entries
from cardan.model.builder import Mechanism
from cardan.model.control_law import CONTROL_LAWS, ControlLaw, StateFeedback, StateSpace, of_linear
from cardan.model.controller import Controller
from cardan.model.model import Model

IN_FILES = {"states": "feeds"}
"""Fields of ready-made laws that have another name in files, where controllers have states of their own."""


def ready_law(kind: str, values: dict[str, Any]) -> ControlLaw:
    """A ready-made law from the entries of a file; takes those that are its own."""
    law = CONTROL_LAWS[kind]
    if law is StateSpace:
        return StateSpace(*(values.pop(name) for name in "ABCD"), sees=values.pop("sees", None))
    own = {each.name: IN_FILES.get(each.name, each.name) for each in fields(law)}  # type: ignore[arg-type]
    given = {name: values.pop(key) for name, key in own.items() if key in values}
    single = {name: x[0] if isinstance(x, list) and len(x) == 1 and name not in ("K", "states") else x
              for name, x in given.items()}  # fmt: skip
    return law(**single)


def law_of_column(column: Callable[[Any], Any], efforts: int, states: dict[str, int]) -> Callable[[Any], Any]:
    """A law from expressions: efforts, then rates or next values of states, which have so many numbers."""

    def law(s: Any) -> Any:
        found, at, rates = column(s), efforts, {}
        for name, size in states.items():
            rates[name], at = found[at : at + size, 0], at + size
        return found[:efforts, 0], rates

    return law


def controller_entries(thing: Mechanism | Model, c: Controller, tables: WrittenTables) -> Entries:
    """A controller as entries."""
    starts = {x.name: x.value for x in thing.variables}
    joints, bodies = [joint.name for joint in thing.joints], [body.name for body in thing.bodies]
    wires = {what: wire for what, (wire, _) in c.wires.items()}
    plain = not callable(getattr(c.ready, "sees", None)) and all(isinstance(wire, str) for wire in wires.values())
    plain = plain and c.ready is not None
    on: Entries = {"joints": [joints[j] for j in c.joints]} if c.joints else {}
    on |= {"every": number(c.every)} if c.every else {}
    on |= {"delay": number(c.lag * c.every)} if c.lag else {}
    for what, own in (("states", c.states), ("inputs", c.inputs)):
        values = {name: starts[f"{c.name}.{name}"] for name in own}
        kept = {name: x for name, x in values.items() if not plain or np.any(x)}
        on |= {what: {name: _plain(x) for name, x in kept.items()}} if kept else {}
    if c.called:
        raise ModelError(
            f"{c.owner}: its law is plain Python, which no file holds; write it as a function of an instant"
        )
    if plain:
        if wires:
            on["inputs"] = {**on.get("inputs", {}), **{what: str(wire) for what, wire in wires.items()}}
        kind = next(name for name, law in CONTROL_LAWS.items() if type(c.ready) is law)
        return {"type": kind, **on, **_numbers_of(c, [joints[j] for j in c.joints])}
    traced = (
        c if c.recorded is not None else thing.build().controllers[[x.name for x in thing.controllers].index(c.name)]
    )
    assert traced.recorded is not None

    def column(s: Any) -> Any:
        results = [traced.part(k, s) for k in range(1 + len(c.states))]
        return [x[k] for x in results for k in range(x.numel())]

    on |= {"bodies": [bodies[b] for b in c.bodies]} if c.bodies else {}
    on |= {"outputs": c.size} if not c.acts and c.size > 1 else {}
    return {"type": "user", **on, **instant_entries(thing, c.owner, "law", column, tables)}


def _numbers_of(c: Controller, joints: list[str]) -> Entries:
    """The numbers of a ready-made law."""
    law: Any = c.ready
    if isinstance(law, StateFeedback) and hasattr(law.states, "point"):
        names, at, effort = of_linear(c.owner, law.states, joints)
        law = replace(law, states=names, at=at, effort=effort)
    entries: Entries = {}
    for each in fields(law):
        value, default = getattr(law, each.name), each.default
        if value is None or each.name == "start" or (np.isscalar(value) and value == default):
            continue
        key = IN_FILES.get(each.name, each.name)
        texts = each.name == "states"
        entries[key] = (
            list(value)
            if texts
            else value
            if isinstance(value, str)
            else _plain(value, rows=each.name in ("K", "A", "B", "C", "D"))
        )
    return entries


def _plain(value: Any, rows: bool = False) -> Any:
    """Numbers as text: one, a list or a list of lists."""
    array = np.atleast_2d(np.asarray(value, dtype=float)) if rows else np.asarray(value, dtype=float)
    if array.ndim == 0 or (array.size == 1 and not rows):
        return number(float(array.reshape(-1)[0]))
    return [_plain(x) if array.ndim == 1 else [number(float(y)) for y in x] for x in array]
