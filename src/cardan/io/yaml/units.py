"""Units of mechanics: what each measures, and conversion of numbers with a unit to SI.

A dimension is the powers of (m, kg, s, rad). An angle has a dimension of its own, so that `60 rpm` is not taken for a
frequency, nor `5 mm` for a pitch: that is `5 mm/rev` or `5 mm/rad`. Scales are fractions times a power of pi, so that
`35 mm` is the number 0.035 to the last bit and `180 deg` is pi.
"""

from __future__ import annotations

import math
import re
from fractions import Fraction
from functools import cache, lru_cache
from typing import NamedTuple

from cardan.errors import nearest

Dimension = tuple[int, int, int, int]
BASE = ("m", "kg", "s", "rad")
PLAIN: Dimension = (0, 0, 0, 0)
LONGEST = 64
"""Most characters of a number or a unit."""
HIGHEST = 99
"""Largest power of a unit; powers of powers would be numbers of millions of digits."""


class UnitError(ValueError):
    """A unit that is not in the table, or is ambiguous."""


class Unit(NamedTuple):
    """`scale * pi^turns` of the SI unit with this dimension."""

    dimension: Dimension
    scale: Fraction = Fraction(1)
    turns: int = 0

    def times(self, other: Unit, power: int = 1) -> Unit:
        """Multiply by a power of another unit."""
        dimension = tuple(a + power * b for a, b in zip(self.dimension, other.dimension, strict=True))
        if max(map(abs, dimension)) > HIGHEST or abs(self.turns + power * other.turns) > HIGHEST:
            raise UnitError(f"a unit has no power beyond {HIGHEST}")
        scale = self.scale * other.scale**power
        return Unit(dimension, scale, self.turns + power * other.turns)  # type: ignore[arg-type]


FORCE: Dimension = (1, 1, -2, 0)
# unit: its size, and whether it takes a prefix such as milli
TABLE: dict[str, tuple[Unit, bool]] = {
    "m": (Unit((1, 0, 0, 0)), True),
    "g": (Unit((0, 1, 0, 0), Fraction(1, 1000)), True),
    "s": (Unit((0, 0, 1, 0)), True),
    "rad": (Unit((0, 0, 0, 1)), True),
    "N": (Unit(FORCE), True),
    "J": (Unit((2, 1, -2, 0)), True),
    "W": (Unit((2, 1, -3, 0)), True),
    "Pa": (Unit((-1, 1, -2, 0)), True),
    "min": (Unit((0, 0, 1, 0), Fraction(60)), False),
    "h": (Unit((0, 0, 1, 0), Fraction(3600)), False),
    "deg": (Unit((0, 0, 0, 1), Fraction(1, 180), 1), False),
    "rev": (Unit((0, 0, 0, 1), Fraction(2), 1), False),
    "rpm": (Unit((0, 0, -1, 1), Fraction(1, 30), 1), False),
    "tonne": (Unit((0, 1, 0, 0), Fraction(1000)), False),
    "in": (Unit((1, 0, 0, 0), Fraction(254, 10000)), False),
    "ft": (Unit((1, 0, 0, 0), Fraction(3048, 10000)), False),
    "lb": (Unit((0, 1, 0, 0), Fraction(45359237, 10**8)), False),
    "lbf": (Unit(FORCE, Fraction(44482216152605, 10**13)), False),
}
PREFIXES = {
    "p": Fraction(1, 10**12), "n": Fraction(1, 10**9), "u": Fraction(1, 10**6), "µ": Fraction(1, 10**6),
    "μ": Fraction(1, 10**6), "m": Fraction(1, 1000), "c": Fraction(1, 100), "k": Fraction(1000),
    "M": Fraction(10**6), "G": Fraction(10**9),
}  # fmt: skip
# What people write that could be mistaken for something else.
REFUSED = {
    "Hz": "a frequency is not an angular velocity; write rev/s, rpm or rad/s",
    "t": "write tonne for 1000 kg; a product with time is written with *",
    "°": "write deg",
    "sec": "write s",
    "kgf": "write N",
    "Nm": "write N*m",
}

# Units of each quantity, the SI unit first. Any other quantity is named by its unit.
QUANTITIES: dict[str, tuple[str, ...]] = {
    "number": ("1",), "length": ("m",), "angle": ("rad",), "mass": ("kg",), "time": ("s",), "inertia": ("kg*m^2",),
    "acceleration": ("m/s^2",), "velocity": ("m/s",), "angular velocity": ("rad/s",), "force": ("N",),
    "moment": ("N*m",), "stiffness": ("N/m",), "torsional stiffness": ("N*m/rad", "N*m"),
    "cross stiffness": ("N", "N/rad"), "damping": ("N*s/m",), "torsional damping": ("N*m*s/rad", "N*m*s"),
    "cross damping": ("N*s", "N*s/rad"), "pitch": ("m/rad",), "density": ("kg/m^3",), "line density": ("kg/m",),
    "power": ("W",), "pressure": ("Pa",),
}  # fmt: skip
UNSIGNED = r"(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?"
NUMBER = re.compile(rf"[+-]?{UNSIGNED}", re.ASCII)
MEASURE = re.compile(rf"([+-]?{UNSIGNED})\s*(\S.*)?", re.ASCII | re.DOTALL)
_TOKEN = re.compile(r"\s*(?:([A-Za-zµμ°]+)|(\^\s*[+-]?\d{1,2}|\*\*\s*[+-]?\d{1,2})|([*/()·]))", re.ASCII)


def to_si(number: str, unit: Unit | None = None) -> float:
    """Convert the text of a number and its unit to SI: the float nearest to the exact product."""
    if len(number) > LONGEST:
        raise UnitError(f"the number {number[:20]}... has more than {LONGEST} characters")
    value = float(number)
    if not math.isfinite(value):
        raise UnitError(f"{number} is beyond the range of numbers")
    if unit is None or value == 0:
        return value
    try:
        result = float(Fraction(number) * unit.scale) * math.pi**unit.turns
    except OverflowError:
        result = math.inf
    if not math.isfinite(result):
        raise UnitError(f"{number} with its unit is beyond the range of numbers")
    return result


@lru_cache(1000)
def read_unit(text: str) -> Unit:
    """Read a unit such as `N*m/rad`, `kg m^2`, `m/s^2` or `N/(m s)`."""
    if len(text) > LONGEST:
        raise UnitError(f"the unit {text[:20]!r}... has more than {LONGEST} characters")
    plain = text.replace("²", "^2").replace("³", "^3").strip()
    if not plain:
        raise UnitError("the unit is empty")
    tokens, at = [], 0
    while at < len(plain):
        match = _TOKEN.match(plain, at)
        if match is None or match.end() == at:
            raise UnitError(f"{text!r} is not a unit: {plain[at:].strip()[:1]!r} does not belong in it")
        tokens.append(match[0].strip().replace("**", "^").replace("·", "*").replace(" ", ""))
        at = match.end()
    unit, rest = _product(tokens, text)
    if rest:
        raise UnitError(f"{text!r} is not a unit: {rest[0]!r} does not belong there")
    return unit


def _product(tokens: list[str], text: str, depth: int = 0) -> tuple[Unit, list[str]]:
    """Read units multiplied and divided, from left to right, up to a closing parenthesis or the end."""
    result, power, divided = Unit(PLAIN), 1, False
    while True:
        factor, tokens = _factor(tokens, text, depth)
        result = result.times(factor, power)
        if not tokens or tokens[0] == ")":
            return result, tokens
        power = 1
        if tokens[0] == "/":
            power, divided, tokens = -1, True, tokens[1:]
        elif divided:
            raise UnitError(f"{text!r} could mean two things; put what is below the line in parentheses")
        elif tokens[0] == "*":
            tokens = tokens[1:]


def _factor(tokens: list[str], text: str, depth: int) -> tuple[Unit, list[str]]:
    if not tokens:
        raise UnitError(f"{text!r} is not a unit: it ends too early")
    head, rest = tokens[0], tokens[1:]
    if head == "(" and depth < 4:
        unit, rest = _product(rest, text, depth + 1)
        if not rest:
            raise UnitError(f"{text!r} is not a unit: a parenthesis is not closed")
        rest = rest[1:]
    elif head[0].isalpha() or head == "°":
        unit = _named(head)
    else:
        raise UnitError(f"{text!r} is not a unit: {head!r} does not belong there")
    if rest and rest[0][0] == "^":
        unit, rest = Unit(PLAIN).times(unit, int(rest[0][1:])), rest[1:]
    return unit, rest


def _named(name: str) -> Unit:
    if name in TABLE:
        return TABLE[name][0]
    if name in REFUSED:
        raise UnitError(f"unit {name!r}: {REFUSED[name]}")
    unit, prefixed = TABLE.get(name[1:], (Unit(PLAIN), False))
    if prefixed and name[0] in PREFIXES:
        return unit._replace(scale=unit.scale * PREFIXES[name[0]])
    known = [*TABLE, "mm", "cm", "km", "kg", "kN", "mrad", "ms"]
    raise UnitError(f"{name!r} is not a unit{nearest(name, known)}")


@cache
def dimensions_of(quantity: str) -> tuple[Dimension, ...]:
    """The dimensions that a quantity may have."""
    units = QUANTITIES.get(quantity, (quantity,))
    return tuple(PLAIN if unit == "1" else read_unit(unit).dimension for unit in units)


@cache
def quantity_of(unit: str) -> str:
    """The quantity that a unit measures; one without a name is named by the unit itself."""
    dimension = dimensions_of(unit)[0]
    return next((name for name in QUANTITIES if dimensions_of(name)[0] == dimension), unit)


def fits(dimension: Dimension, quantity: str, *, angles: bool = True) -> bool:
    """Whether a dimension is that of a quantity; without `angles`, powers of rad do not count."""
    counted = 4 if angles else 3
    return any(dimension[:counted] == accepted[:counted] for accepted in dimensions_of(quantity))


def described(dimension: Dimension) -> str:
    """A dimension in words: `a mass (kg)`; one without a name as its unit."""
    for quantity in QUANTITIES:
        if dimension == dimensions_of(quantity)[0]:
            return called(quantity)
    powers = [f"{unit}^{n}" if n != 1 else unit for unit, n in zip(BASE, dimension, strict=True) if n]
    return f"a quantity in {'*'.join(powers)}"


def called(quantity: str) -> str:
    """A quantity with its article and unit: `an angle (rad)`."""
    if quantity not in QUANTITIES:
        return f"a number in {quantity}"
    article = "an" if quantity[0] in "aeiou" else "a"
    unit = QUANTITIES[quantity][0]
    return f"{article} {quantity}{'' if unit == '1' else f' ({unit})'}"
