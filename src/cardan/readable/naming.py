"""Textbook symbols for a mechanism: for its coordinates in each formulation, its drives and its parameters.

Names are chosen so that SymPy prints them well: `thetadot_A` prints as a theta with a dot and the index A. The index is
left out where a letter occurs once. The user may name a parameter, or give it as a formula of other names:
`{"rod.mass": "m", "rod.com": "l/2"}`.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cardan.errors import InputError, UnknownNameError, nearest
from cardan.formulation.formulation import Formulation
from cardan.model.field import AXIS
from cardan.model.model import Model
from cardan.model.parameter import Parameter, free_fields

AXES = ("x", "y", "z")
Letter = tuple[str, str, str]  # letter, meaning, unit
INERTIA_ENTRIES = ("xx", "yy", "zz", "xy", "xz", "yz")


@dataclass(frozen=True)
class Coordinate:
    """One entry of `q` or `v`: the name of its symbol, its meaning and its unit."""

    name: str
    meaning: str
    unit: str


def index_of(name: str) -> str:
    """Make the index of a symbol from the name of a body, joint or force element."""
    return re.sub(r"\W+", "", name) or "0"


def coordinates(model: Model, formulation: Formulation) -> tuple[list[Coordinate], list[Coordinate]]:
    """Name the entries of `q` and of `v`."""
    groups = list(formulation.letters(model))
    uses = Counter(letter for _, q, _, _ in groups for letter, _, _ in q)
    first: list[Coordinate] = []
    second: list[Coordinate] = []
    for owner, q, v, where in groups:
        unique = all(uses[letter] == 1 for letter, _, _ in q)
        for entries, result in ((q, first), (v, second)):
            for letter, meaning, unit in entries:
                name = letter if unique else f"{letter}_{index_of(owner)}"
                result.append(Coordinate(name, f"{meaning} of {owner}{where}", unit))
    return first, second


def every_parameter(model: Model) -> list[str]:
    """Names of all parameters that can be symbols; those that are zero are left out."""
    names = ["gravity"] if model.gravity.any() else []
    for body in model.bodies:
        names += [f"{body.name}.{what}" for what in free_fields(body) if body.mass and np.any(getattr(body, what))]
    for joint in model.joints:
        names += [f"{joint.name}.{what}" for what in free_fields(joint) if getattr(joint, what).position.any()]
    for force in model.forces:
        names += [f"{force.name}.{what}" for what in free_fields(force) if force.numbers[what].any()]
    for element in model.constraint_elements:  # directions stay numbers: letters would have to be of unit length
        fields = {what: field for what, field in free_fields(element).items() if field.form != AXIS}
        names += [f"{element.name}.{what}" for what in fields if element.numbers[what].any()]
    return names


@dataclass(frozen=True)
class Component:
    """One number of a parameter that becomes a symbol.

    `place` is its index in the vector of all parameters, `key` what users call it (`rod.com.x`), `name` its symbol. The
    symbol stands for a positive number: the equations have `sign` in front of it. Products of inertia keep their sign.
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
    """The nonzero numbers of some parameters, each with a unique name."""
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
            meaning = _component_meaning(what if sort == "model" else _meaning(model, parameter), axis, sign)
            found.append(
                Component(
                    first + k, parameter.name, key, name, meaning, parameter.unit,
                    float(values[k]) * sign, sign,
                )
            )  # fmt: skip
        first += values.size
    return unique(found)


def _axis(what: str, size: int, k: int) -> str:
    """Name of entry k of a parameter with several entries."""
    if size == 1:
        return ""
    return INERTIA_ENTRIES[k] if what == "inertia" else AXES[k] if size == 3 else f"{k + 1}"


def _component_meaning(meaning: str, axis: str, sign: int) -> str:
    """What the legend says of an entry: "gravity along -z" where its symbol is the negative of a negative number."""
    if sign > 0:
        return f"{meaning} {axis}".strip()
    return f"{meaning} along -{axis}" if axis in AXES else f"minus {meaning} {axis}".strip()


def _meaning(model: Model, parameter: Parameter) -> str:
    """What the legend says, such as "mass of crank"."""
    sort, k, what = parameter.place
    owner = parameter.name.rpartition(".")[0]
    if sort == "joint":
        body = model.joints[k].parent if what == "at" else model.joints[k].child
        return f"place of {owner} on {model.bodies[body].name if body >= 0 else 'ground'}"
    return f"{ {'com': 'centre of mass', 'inertia': 'moment of inertia'}.get(what, what) } of {owner}"


def _owner_index(model: Model, parameter: Parameter) -> str:
    """Index of a parameter's symbol: its body, joint or force element, if there are several."""
    sort, k, what = parameter.place
    if sort == "model":
        return ""
    if sort == "body":
        return index_of(model.bodies[k].name) if model.nb > 1 else ""
    if sort in ("force", "constraint"):
        alike = model.forces if sort == "force" else model.constraint_elements
        return index_of(alike[k].name) if len(alike) > 1 else ""
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


def unique(found: list[Component]) -> list[Component]:
    """Number the names that occur several times."""
    seen: Counter[str] = Counter()
    result = []
    for component in found:
        seen[component.name] += 1
        n = seen[component.name]
        result.append(component if n == 1 else replace(component, name=f"{component.name}_{n}"))
    return result


@dataclass(frozen=True)
class Meaning:
    """A row of the legend: meaning of a symbol, its value (None for a variable) and its unit."""

    text: str
    value: float | None
    unit: str


@dataclass(frozen=True)
class Letters:
    """Symbols of all inputs of the graph. Wrenches on bodies, and drives without a symbol, are 0."""

    q: list[Any]
    v: list[Any]
    tau: list[Any]
    t: Any
    p: list[Any]
    components: list[Component]
    meanings: dict[Any, Meaning]
    named: frozenset[Any]
    """Parameter symbols that the user named."""

    def expression(self, port: int, element: int) -> Any:
        """SymPy expression of an input of the graph; ports in the order q, v, tau, wrenches, t, p."""
        import sympy

        if port == 3:
            return sympy.Integer(0)
        return (self.q, self.v, self.tau, [], [self.t], self.p)[port][element]

    def renamed(self, new: Mapping[Any, Any]) -> Letters:
        """Replace the symbols of some parameters."""
        meanings = {new.get(x, x): meaning for x, meaning in self.meanings.items()}
        return replace(self, p=[new.get(p, p) for p in self.p], meanings=meanings)

    def factoring_order(self) -> list[Any]:
        """Symbols in the order in which they are factored out of a sum where several would do: masses first."""
        masses = [p for c, p in zip(self.components, self.p, strict=True) if c.parameter.endswith(".mass")]
        weights = [p for c, p in zip(self.components, self.p, strict=True) if c.parameter == "gravity"]
        return [x for x in (*masses, *weights, *self.p, *self.v, *self.q) if x.is_Symbol]


def letters_of(
    model: Model, found: list[Component], coordinates: tuple[Sequence[Coordinate], Sequence[Coordinate]],
    drives: Sequence[str], names: Mapping[str, str],
) -> Letters:  # fmt: skip
    """Choose the symbols of coordinates, of the named drives and of the parameters `found`."""
    import sympy

    meanings: dict[Any, Meaning] = {}
    for group in coordinates:
        meanings |= {sympy.Symbol(c.name): Meaning(c.meaning, None, c.unit) for c in group}
    q, v = ([sympy.Symbol(c.name) for c in group] for group in coordinates)
    tau = [sympy.Integer(0)] * model.nv
    for joint in drives:
        at, units = model.v_slice(joint), model.joint(joint).kind.v_units
        for k in range(at.start, at.stop):
            name = f"tau_{index_of(joint)}" + (f"_{k - at.start + 1}" if at.stop - at.start > 1 else "")
            tau[k] = sympy.Symbol(name)
            meanings[tau[k]] = Meaning(f"drive of {joint}", None, "N m" if units[k - at.start] == "rad/s" else "N")
    p, named, legend = _parameters(model, found, names, {str(x) for x in meanings})
    t = sympy.Symbol("t")
    if model.depends_on_time:
        meanings[t] = Meaning("time", None, "s")
    return Letters(q, v, tau, t, p, found, meanings | legend, frozenset(named))


def _parameters(
    model: Model, found: list[Component], names: Mapping[str, str], taken: set[str]
) -> tuple[list[Any], set[Any], dict[Any, Meaning]]:
    """Expression of each component, the symbols that the user named, and the meanings of all symbols."""
    import sympy

    keys = {key for c in found for key in (c.key, c.parameter)}
    for name in names:
        if name not in keys:
            raise UnknownNameError(
                f"names: {name!r} is not a parameter that is a symbol here{nearest(name, sorted(keys))}"
            )
    given = {c.key: names.get(c.key, names.get(c.parameter)) for c in found}
    formulas = {key: _formula(model, key, text) for key, text in given.items() if text is not None}
    user = set().union(*(formula.free_symbols for formula in formulas.values())) if formulas else set()
    for x in user:
        if str(x) in taken:
            raise InputError(f"names of {model.name!r}: {x} is already the symbol of a coordinate; choose another")
    meanings: dict[Any, Meaning] = {}
    for c in found:
        plain = formulas.get(c.key)
        if plain is not None and plain.is_Symbol and plain not in meanings:
            meanings[plain] = Meaning(c.meaning, c.value, c.unit)
    for c in found:
        if c.key in formulas:
            _solve(model, c, formulas[c.key], meanings)
    result = []
    for c in found:
        if c.key in formulas:
            result.append(formulas[c.key])
            continue
        name = c.name
        while name in taken or sympy.Symbol(name) in user:
            name += "_0"
        taken.add(name)
        result.append(sympy.Symbol(name))
        meanings[result[-1]] = Meaning(c.meaning, c.value, c.unit)
    return result, user, meanings


def _formula(model: Model, key: str, text: str) -> Any:
    """Parse the user's name or formula of a parameter."""
    import sympy
    from sympy.parsing.sympy_parser import parse_expr

    # SymPy's parser evaluates its text as Python, so only arithmetic may pass: names, numbers, operators, brackets
    if re.fullmatch(r"[\w\s+\-*/().]+", str(text)) and not re.search(r"__|\.\s*[^\W\d]|[^\W\d]\w*\s*\(", str(text)):
        letters = {name: sympy.Symbol(name) for name in re.findall(r"[^\W\d]\w*", text)}
        with suppress(SyntaxError, TypeError, ValueError, AttributeError):
            formula = parse_expr(text, local_dict=letters)
            if isinstance(formula, sympy.Expr) and formula.free_symbols:
                return formula
    raise InputError(f"names of {model.name!r}: {key!r} must be a name or a formula such as 'l/2', got {text!r}")


def _solve(model: Model, c: Component, formula: Any, meanings: dict[Any, Meaning]) -> None:
    """Find the value of the unknown letter of a formula; reject a formula that contradicts the model."""
    import sympy

    known = {x: meanings[x].value for x in formula.free_symbols if x in meanings}
    unknown = sorted(formula.free_symbols - set(known), key=str)
    if len(unknown) > 1:
        raise InputError(
            f"names of {model.name!r}: {c.key!r} = {formula} has the unknown letters {unknown[0]} and {unknown[1]}; "
            "give these names to parameters of their own"
        )
    rest = formula.subs(known)
    if unknown:
        roots = [x for x in sympy.solve(rest - c.value, unknown[0]) if x.is_real]
        if not roots:
            raise InputError(
                f"names of {model.name!r}: no value of {unknown[0]} gives {c.key!r} = {formula} its value {c.value:g}"
            )
        value = float(max(roots))
        meanings[unknown[0]] = Meaning(f"from {c.key} = {formula}", value, "")
    elif not math.isclose(float(rest), c.value, rel_tol=1e-9):
        raise InputError(
            f"names of {model.name!r}: {c.key!r} = {formula} would be {float(rest):g}, but in the model it is "
            f"{c.value:g} {c.unit}"
        )
