"""Letters for a mechanism: its coordinates in each formulation, its parameters, as a textbook would call them.

A name is what SymPy prints well: `thetadot_A` is a theta with a dot and an index. The index is left out where there is
nothing to tell apart.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from cardan.formulation.formulation import Formulation
from cardan.model.model import Model
from cardan.model.parameter import Parameter, free_fields

AXES = ("x", "y", "z")
Letter = tuple[str, str, str]  # letter, what it is, unit
ENTRIES = ("xx", "yy", "zz", "xy", "xz", "yz")


@dataclass(frozen=True)
class Coordinate:
    """One entry of `q` or `v`: its name, what it means, its unit."""

    name: str
    meaning: str
    unit: str


def index_of(name: str) -> str:
    """A name of the model as the index of a symbol."""
    return re.sub(r"\W+", "", name) or "0"


def coordinates(model: Model, formulation: Formulation) -> tuple[list[Coordinate], list[Coordinate]]:
    """The entries of `q` and of `v`."""
    groups = list(formulation.letters(model))
    told = Counter(letter for _, q, _, _ in groups for letter, _, _ in q)
    first: list[Coordinate] = []
    second: list[Coordinate] = []
    for owner, q, v, where in groups:
        alone = all(told[letter] == 1 for letter, _, _ in q)
        for entries, result in ((q, first), (v, second)):
            for letter, meaning, unit in entries:
                name = letter if alone else f"{letter}_{index_of(owner)}"
                result.append(Coordinate(name, f"{meaning} of {owner}{where}", unit))
    return first, second


def quaternions(model: Model, formulation: Formulation) -> list[tuple[str, int]]:
    """Where quaternions begin in `q`, with an index for each."""
    found = formulation.quaternions(model)
    return [(index_of(name) if len(found) > 1 else "", at) for name, at in found]


def every_parameter(model: Model) -> list[str]:
    """Names of all the numbers that can be symbols and are not all zero."""
    names = ["gravity"] if model.gravity.any() else []
    for body in model.bodies:
        names += [f"{body.name}.{what}" for what in free_fields(body) if body.mass and np.any(getattr(body, what))]
    for joint in model.joints:
        names += [f"{joint.name}.{what}" for what in free_fields(joint) if getattr(joint, what).position.any()]
    for force in model.forces:
        names += [f"{force.name}.{what}" for what in free_fields(force) if force.numbers[what].any()]
    return names


@dataclass(frozen=True)
class Component:
    """One number of a parameter that becomes a symbol: `place` in `p`, key and name, what it means, value, sign.

    The symbol is positive and carries the sign of the value before it, but for products of inertia.
    """

    place: int
    parameter: str
    key: str
    name: str
    meaning: str
    unit: str
    value: float
    sign: int


def components(model: Model, parameters: Sequence[Parameter]) -> list[Component]:
    """The numbers that are not zero, each with a name of its own."""
    found, first = [], 0
    for parameter in parameters:
        values = parameter.nominal.ravel()
        nonzero = [k for k in range(values.size) if values[k]]
        sort, _, what = parameter.place
        for k in nonzero:
            axis = _axis(what, values.size, k)
            signed = what == "inertia" and k > 2
            sign = -1 if values[k] < 0 and not signed else 1
            letter, index = parameter.letter, _owner_index(model, parameter)
            shown = axis if what == "inertia" or len(nonzero) > 1 else ""
            name = "_".join(part for part in (letter, index, shown) if part)
            key = f"{parameter.name}.{axis}" if axis else parameter.name
            meaning = what if sort == "model" else _meaning(model, parameter)
            found.append(
                Component(
                    first + k, parameter.name, key, name, f"{meaning} {axis}".strip(), parameter.unit,
                    float(values[k]) * sign, sign,
                )
            )  # fmt: skip
        first += values.size
    return _unlike(found)


def _axis(what: str, size: int, k: int) -> str:
    if size == 1:
        return ""
    return ENTRIES[k] if what == "inertia" else AXES[k] if size == 3 else f"{k + 1}"


def _meaning(model: Model, parameter: Parameter) -> str:
    """Mass of crank, say."""
    sort, k, what = parameter.place
    owner = parameter.name.rpartition(".")[0]
    if sort == "joint":
        body = model.joints[k].parent if what == "at" else model.joints[k].child
        return f"place of {owner} on {model.bodies[body].name if body >= 0 else 'ground'}"
    return f"{ {'com': 'centre of mass', 'inertia': 'moment of inertia'}.get(what, what) } of {owner}"


def _owner_index(model: Model, parameter: Parameter) -> str:
    """The index that tells a parameter from others of its letter: its body, joint or force element."""
    sort, k, what = parameter.place
    if sort == "model":
        return ""
    if sort == "body":
        return index_of(model.bodies[k].name) if model.nb > 1 else ""
    if sort == "force":
        return index_of(model.forces[k].name) if len(model.forces) > 1 else ""
    joint = model.joints[k]
    body = joint.parent if what == "at" else joint.child
    if body < 0:
        return index_of(joint.name)
    placed = [
        (j.name, end)
        for j in model.joints
        for end, on, pose in (("at", j.parent, j.at), ("child_at", j.child, j.child_at))
        if on == body and pose.position.any()
    ]
    own = index_of(model.bodies[body].name) if model.nb > 1 else ""
    return own if len(placed) == 1 else f"{own}_{index_of(joint.name)}".strip("_")


def _unlike(found: list[Component]) -> list[Component]:
    """Equal names told apart by a number."""
    seen: Counter[str] = Counter()
    result = []
    for component in found:
        seen[component.name] += 1
        n = seen[component.name]
        result.append(component if n == 1 else replace(component, name=f"{component.name}_{n}"))
    return result
