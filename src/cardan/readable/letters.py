"""The SymPy symbols of a mechanism: of its coordinates, drives and parameters, with what each means.

The user may name a parameter, or give it as a formula of other names: `{"rod.mass": "m", "rod.com": "l/2"}`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from cardan.errors import InputError, UnknownNameError, nearest
from cardan.model.model import Model
from cardan.readable.naming import Component, Coordinate, index_of
from cardan.readable.polynomial import Generators, Polynomial, constant, number


@dataclass(frozen=True)
class Meaning:
    """A row of the legend: what a symbol means, its value (None for a variable) and its unit."""

    text: str
    value: float | None
    unit: str


@dataclass(frozen=True)
class Letters:
    """Symbols of all inputs of the graph; a drive left out is the number 0, as are wrenches on bodies."""

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
        """The SymPy expression of an input, ports in the order q, v, tau, wrenches, t, p."""
        import sympy

        if port == 3:
            return sympy.Integer(0)
        return (self.q, self.v, self.tau, [], [self.t], self.p)[port][element]

    def renamed(self, new: Mapping[Any, Any]) -> Letters:
        """The same with other symbols for some parameters."""
        meanings = {new.get(x, x): meaning for x, meaning in self.meanings.items()}
        return replace(self, p=[new.get(p, p) for p in self.p], meanings=meanings)

    def in_order(self) -> list[Any]:
        """Symbols in the order in which they are drawn out of a sum where it is all the same: masses first."""
        masses = [p for c, p in zip(self.components, self.p, strict=True) if c.parameter.endswith(".mass")]
        weights = [p for c, p in zip(self.components, self.p, strict=True) if c.parameter == "gravity"]
        return [x for x in (*masses, *weights, *self.p, *self.v, *self.q) if x.is_Symbol]

    def polynomial(self, generators: Generators) -> Callable[[int, int], Polynomial]:
        """The same as polynomials over generators."""

        def leaf(port: int, element: int) -> Polynomial:
            return _polynomial(self.expression(port, element), generators)

        return leaf


def _polynomial(expression: Any, generators: Generators) -> Polynomial:
    """A formula of the user, or a symbol."""
    import sympy

    if expression.is_Symbol:
        return generators.of(expression)
    if expression.is_number:
        return constant(number(float(expression)))
    symbols = sorted(expression.free_symbols, key=str)
    try:
        terms = sympy.Poly(expression, *symbols).terms()
    except sympy.PolynomialError:
        return generators.of(expression)
    own = [generators.index(x) for x in symbols]
    return {
        tuple(sorted((g, n) for g, n in zip(own, powers, strict=True) if n)): number(float(c)) for powers, c in terms
    }


def letters_of(
    model: Model,
    found: list[Component],
    coordinates: tuple[Sequence[Coordinate], Sequence[Coordinate]],
    drives: Sequence[str],
    names: Mapping[str, str],
) -> Letters:
    """Choose the symbols."""
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
    p, named, told = _parameters(model, found, names, {str(x) for x in meanings})
    t = sympy.Symbol("t")
    if model.depends_on_time:
        meanings[t] = Meaning("time", None, "s")
    return Letters(q, v, tau, t, p, found, meanings | told, frozenset(named))


def _parameters(
    model: Model, found: list[Component], names: Mapping[str, str], taken: set[str]
) -> tuple[list[Any], set[Any], dict[Any, Meaning]]:
    """The expression of each component, the symbols that the user named, and what all symbols mean."""
    import sympy

    keys = {key for c in found for key in (c.key, c.parameter)}
    for name in names:
        if name not in keys:
            raise UnknownNameError(
                f"names: {name!r} is not a number that is a symbol here{nearest(name, sorted(keys))}"
            )
    given = {c.key: names.get(c.key, names.get(c.parameter)) for c in found}
    formulas = {key: _formula(model, key, text) for key, text in given.items() if text is not None}
    user = set().union(*(formula.free_symbols for formula in formulas.values())) if formulas else set()
    for x in user:
        if str(x) in taken:
            raise InputError(f"names of {model.name!r}: {x} is a coordinate's name already; choose another letter")
    meanings: dict[Any, Meaning] = {}
    for c in found:
        plain = formulas.get(c.key)
        if plain is not None and plain.is_Symbol and plain not in meanings:
            meanings[plain] = Meaning(c.meaning, c.value, c.unit)
    for c in found:
        if c.key in formulas:
            _settle(model, c, formulas[c.key], meanings)
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
    import sympy
    from sympy.parsing.sympy_parser import parse_expr

    # the parser runs its text, so let through arithmetic alone: names, numbers, operators, brackets
    if re.fullmatch(r"[\w\s+\-*/().]+", str(text)) and not re.search(r"__|\.\s*[^\W\d]|[^\W\d]\w*\s*\(", str(text)):
        letters = {name: sympy.Symbol(name) for name in re.findall(r"[^\W\d]\w*", text)}
        with suppress(SyntaxError, TypeError, ValueError, AttributeError):
            formula = parse_expr(text, local_dict=letters)
            if isinstance(formula, sympy.Expr) and formula.free_symbols:
                return formula
    raise InputError(f"names of {model.name!r}: {key!r} must be a name or a formula such as 'l/2', got {text!r}")


def _settle(model: Model, c: Component, formula: Any, meanings: dict[Any, Meaning]) -> None:
    """Find the value of the one unknown letter of a formula; refuse one that contradicts the model."""
    import sympy

    known = {x: meanings[x].value for x in formula.free_symbols if x in meanings}
    unknown = sorted(formula.free_symbols - set(known), key=str)
    if len(unknown) > 1:
        raise InputError(
            f"names of {model.name!r}: {c.key!r} = {formula} has the unknown letters {unknown[0]} and {unknown[1]}; "
            "name the parameters whose letters they are"
        )
    rest = formula.subs(known)
    if unknown:
        roots = [x for x in sympy.solve(rest - c.value, unknown[0]) if x.is_real]
        if not roots:
            raise InputError(
                f"names of {model.name!r}: {c.key!r} = {formula} is {c.value:g} for no value of {unknown[0]}"
            )
        value = float(max(roots))
        meanings[unknown[0]] = Meaning(f"from {c.key} = {formula}", value, "")
    elif not math.isclose(float(rest), c.value, rel_tol=1e-9):
        raise InputError(
            f"names of {model.name!r}: {c.key!r} = {formula} would be {float(rest):g}, but in the model it is "
            f"{c.value:g} {c.unit}"
        )
