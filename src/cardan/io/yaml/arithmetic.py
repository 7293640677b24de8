"""The value of an expression: a number with its dimension, or a CasADi graph where it contains symbols.

Numbers carry their dimension where it is known. A parameter without a unit, and time, q and v, are plain SI numbers of
unknown dimension. Different quantities cannot be added or compared, except that angles are ignored, because a radius
times an angle is a length.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from cardan.io.yaml.expression import Call, Expression, ExpressionError, Literal, Name
from cardan.io.yaml.units import PLAIN, Dimension, UnitError, described, read_unit, to_si


@dataclass(slots=True)
class Measured:
    """A number in SI units with its dimension, None where it is not known; `bare` if it was written without a unit."""

    value: float
    dimension: Dimension | None = None
    bare: bool = False


Value = Any
"""A `Measured`, or a scalar `casadi.SX`."""
Lookup = Callable[[Name], Value]


def evaluate(node: Expression, lookup: Lookup) -> Value:
    """Evaluate an expression; `lookup` gives the value of a name, or raises `ExpressionError`."""
    if isinstance(node, Literal):
        return _number(node)
    if isinstance(node, Name):
        return Measured(math.pi, PLAIN, bare=True) if node.name == "pi" and not node.index else lookup(node)
    values = [evaluate(argument, lookup) for argument in node.arguments]
    if all([isinstance(value, Measured) for value in values]):
        return _numeric(node, values)
    return _symbolic(node.function, values)


def _number(node: Literal) -> Measured:
    try:
        unit = read_unit(node.unit) if node.unit else None
        return Measured(to_si(node.text, unit), PLAIN if unit is None else unit.dimension, bare=unit is None)
    except UnitError as error:
        raise ExpressionError(str(error), node.span) from None


# Numbers.

NUMERIC: dict[str, Callable[..., float]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "^": math.pow, "neg": operator.neg,
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq, "!=": operator.ne,
    "abs": abs, "min": min, "max": max, "mod": math.fmod, "sign": lambda x: (x > 0) - (x < 0),
    "and": lambda a, b: a != 0 and b != 0, "or": lambda a, b: a != 0 or b != 0, "not": lambda a: a == 0,
    "if": lambda c, x, y: x if c != 0 else y,
    **{name: getattr(math, name) for name in (
        "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "sqrt", "exp",
        "expm1", "log", "log1p", "floor", "ceil", "erf", "atan2", "hypot", "copysign")},
}  # fmt: skip
ALIKE = {"+", "-", "<", "<=", ">", ">=", "==", "!=", "min", "max", "mod", "atan2", "hypot", "copysign", "if"}
KEPT = {"+", "-", "neg", "abs", "min", "max", "mod", "hypot", "copysign", "if"}
"""Functions whose result has the dimension of their arguments."""
TRUTH = {"<", "<=", ">", ">=", "==", "!=", "and", "or", "not", "sign"}
OF_ANGLES = {"sin", "cos", "tan"}
ANGLES = {"asin", "acos", "atan", "atan2"}


def _numeric(node: Call, values: list[Measured]) -> Measured:
    try:
        number = float(NUMERIC[node.function](*[value.value for value in values]))
    except (ValueError, ZeroDivisionError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        shown = ", ".join(f"{value.value:g}" for value in values)
        sign = "the sign" if node.function == "neg" else repr(node.function)
        raise ExpressionError(f"{sign} of {shown} has no finite value", node.span)
    if all([value.bare for value in values]):
        angle = node.function in ANGLES
        return Measured(number, (0, 0, 0, 1) if angle else PLAIN, bare=not angle)
    return Measured(number, _dimension(node, values))


def _dimension(node: Call, values: list[Measured]) -> Dimension | None:
    """Dimension of the result, if it is known."""
    name = node.function
    compared = values[1:] if name == "if" else values
    common = _common(node, compared) if name in ALIKE else None
    if name in KEPT:
        return common if name not in ("neg", "abs") else values[0].dimension
    if name in TRUTH:
        return PLAIN
    if name in ANGLES:
        return (0, 0, 0, 1)
    if name in ("*", "/"):
        return _product(*values, sign=1 if name == "*" else -1)
    if name in ("^", "sqrt"):
        return _power(node, values)
    for value in values:
        if value.dimension is not None and any(value.dimension[:3]):
            wanted = "an angle" if name in OF_ANGLES else "a plain number"
            raise ExpressionError(f"{name} takes {wanted}, not {described(value.dimension)}", node.span)
    return PLAIN


def _common(node: Call, values: list[Measured]) -> Dimension | None:
    """The common dimension of values that must agree; zero without a unit agrees with all."""
    known = [v for v in values if v.dimension is not None and not (v.bare and v.value == 0)]
    for value in known[1:]:
        a, b = known[0].dimension, value.dimension
        assert a is not None and b is not None
        if a[:3] != b[:3]:
            raise ExpressionError(
                f"{node.function!r} of {described(a)} and {described(b)}; give both the same kind of unit", node.span
            )
    if len(known) < len([v for v in values if not v.bare or v.value != 0]):
        return None
    return known[0].dimension if known else PLAIN


def _product(a: Measured, b: Measured, *, sign: int) -> Dimension | None:
    if a.dimension is None or b.dimension is None:
        return None
    return tuple(x + sign * y for x, y in zip(a.dimension, b.dimension, strict=True))  # type: ignore[return-value]


def _power(node: Call, values: list[Measured]) -> Dimension | None:
    base, power = values[0], values[1] if node.function == "^" else Measured(0.5, PLAIN)
    if power.dimension is not None and any(power.dimension[:3]):
        raise ExpressionError(f"an exponent is a plain number, not {described(power.dimension)}", node.span)
    if base.dimension is None:
        return None
    powers = [power.value * n for n in base.dimension[:3]]
    if any(n != round(n) or abs(n) > 99 for n in powers):
        raise ExpressionError(f"the power {power.value:g} of {described(base.dimension)} is not a quantity", node.span)
    return int(powers[0]), int(powers[1]), int(powers[2]), 0


# Symbols: the same operations on CasADi graphs. A number among the operands is a constant of the graph.

SYMBOLIC: dict[str, str] = {
    "abs": "fabs", "min": "fmin", "max": "fmax", "mod": "fmod", "and": "logic_and", "or": "logic_or",
    "not": "logic_not",
}  # fmt: skip
OPERATORS: dict[str, Callable[..., Any]] = {
    **{name: NUMERIC[name] for name in ("+", "-", "*", "/", "<", "<=", ">", ">=", "==", "!=")},
    "^": operator.pow,
    "neg": operator.neg,
}


def _symbolic(name: str, values: list[Value]) -> Any:
    import casadi as ca

    symbols: list[Any] = [ca.SX(value.value) if isinstance(value, Measured) else value for value in values]
    if name in OPERATORS:
        return OPERATORS[name](*symbols)
    if name == "if":
        return ca.if_else(*symbols)
    function: Any = getattr(ca, SYMBOLIC.get(name, name))
    result = function(*symbols[:2])
    for symbol in symbols[2:]:  # min and max of more than two
        result = function(result, symbol)
    return result
