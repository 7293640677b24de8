"""Polynomials over the inputs of a graph, into which its operations are expanded before they are simplified.

A monomial is a tuple of (generator, power), sorted by generator; powers may be negative. A polynomial maps monomials to
exact coefficients. A generator is a SymPy object that is not expanded further: a symbol, the sine of an angle, a root.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import combinations_with_replacement
from typing import Any

from cardan.algebra.rotation import TINY
from cardan.lookup import label_of
from cardan.model.force import SMOOTHING
from cardan.model.joint import FLIPPED
from cardan.program.graph import Lookup

Exact = int | Fraction
Monomial = tuple[tuple[int, int], ...]
Polynomial = dict[Monomial, Exact]

ONE: Monomial = ()
# Constants that only keep roots and divisions finite; they are left out of readable equations.
GUARDS = (TINY, SMOOTHING, FLIPPED)


def exact(value: float) -> Exact:
    """Exact value of a float: a fraction with a small denominator if it equals one, else its decimals."""
    if value in GUARDS:
        return 0
    if value - FLIPPED == 1 or value == int(value):
        return round(value)
    short = Fraction(value).limit_denominator(1000)
    return short if float(short) == value else Fraction(repr(value))


def constant(value: Exact) -> Polynomial:
    """A number as a polynomial."""
    return {ONE: value} if value else {}


def add(a: Polynomial, b: Polynomial, sign: int = 1) -> Polynomial:
    """`a + sign b`."""
    total = dict(a)
    for monomial, c in b.items():
        value = total.get(monomial, 0) + sign * c
        if value:
            total[monomial] = value
        else:
            del total[monomial]
    return total


def scale(a: Polynomial, by: Exact) -> Polynomial:
    """`a` times a number."""
    return {monomial: tidy(c * by) for monomial, c in a.items()} if by else {}


def times(a: Monomial, b: Monomial) -> Monomial:
    """Product of two monomials."""
    if not a or not b:
        return a or b
    powers = dict(a)
    for generator, power in b:
        powers[generator] = powers.get(generator, 0) + power
    return tuple(sorted((g, p) for g, p in powers.items() if p))


def multiply(a: Polynomial, b: Polynomial) -> Polynomial:
    """`a b`, written out."""
    if len(a) > len(b):
        a, b = b, a
    total: Polynomial = {}
    for m, c in a.items():
        for n, d in b.items():
            key = times(m, n)
            total[key] = total.get(key, 0) + c * d
    return {m: tidy(c) for m, c in total.items() if c}


def power(a: Polynomial, n: int) -> Polynomial:
    """`a^n`; for a negative `n`, `a` must be a single term."""
    if n < 0:
        ((monomial, c),) = a.items()
        return {tuple((g, n * p) for g, p in monomial): tidy(Fraction(1, 1) / c**-n)}
    result: Polynomial = {ONE: 1}
    for _ in range(n):
        result = multiply(result, a)
    return result


def tidy(c: Exact) -> Exact:
    """Turn a fraction that is a whole number into an int, which is faster."""
    return int(c) if isinstance(c, Fraction) and c.denominator == 1 else c


@dataclass
class Generators:
    """The generators in order of appearance.

    For a generator k that is a sine or cosine, `angle[k]` is the index of its angle in `angles`, and "sin" or "cos".
    """

    objects: list[Any] = field(default_factory=list)
    angle: dict[int, tuple[int, str]] = field(default_factory=dict)
    angles: list[Any] = field(default_factory=list)
    _number: dict[Any, int] = field(default_factory=dict)

    def of(self, thing: Any) -> Polynomial:
        """A generator as a polynomial."""
        return {((self.index(thing), 1),): 1}

    def index(self, thing: Any) -> int:
        """Index of a generator; a new one is added."""
        k = self._number.get(thing)
        if k is None:
            k = self._number[thing] = len(self.objects)
            self.objects.append(thing)
            name = type(thing).__name__
            if name in ("sin", "cos"):
                argument = thing.args[0]
                if argument not in self.angles:
                    self.angles.append(argument)
                self.angle[k] = (self.angles.index(argument), name)
        return k

    def expression(self, a: Polynomial) -> Any:
        """A polynomial as an expanded sum in SymPy."""
        import sympy

        return sympy.Add(*(self.term(monomial, c) for monomial, c in a.items()))

    def term(self, monomial: Monomial, c: Exact) -> Any:
        """One term in SymPy."""
        import sympy

        return sympy.Mul(rational(c), *(self.objects[g] ** p for g, p in monomial))


def rational(c: Exact) -> Any:
    """An exact number in SymPy; decimals if the denominator is large."""
    import sympy

    if isinstance(c, int):
        return sympy.Integer(c)
    if c.denominator > 1000:
        return sympy.Float(float(c), 17)
    return sympy.Rational(c.numerator, c.denominator)


@dataclass
class Expander:
    """Expands the operations of a graph into polynomials.

    `simplify` turns a polynomial that is the argument of a function into a SymPy expression. `reduce` applies
    identities between the generators. A product of more than `most` terms is not expanded: its factors become
    generators. `ones` are polynomials known to equal 1.
    """

    generators: Generators
    simplify: Callable[[Polynomial], Any]
    reduce: Callable[[Polynomial], Polynomial]
    most: int = 3000
    ones: list[Polynomial] = field(default_factory=list)

    def apply(self, op: str, args: list[Polynomial]) -> Polynomial:
        """The result of one operation."""
        a = args[0]
        if op in _ARITHMETIC:
            return self.reduce(_ARITHMETIC[op](self, *args))
        if op == "constpow" or op == "pow":
            exponent = args[1].get(ONE, 0) if len(args[1]) < 2 else None
            if isinstance(exponent, int) and (exponent >= 0 or len(a) == 1):
                return power(a, exponent)
        return self.function(op, [self.simplify(arg) for arg in args])

    def function(self, op: str, args: list[Any]) -> Polynomial:
        """The result of a function: a generator, unless SymPy evaluates it to a rational number."""
        value = function_named(op)(*args)
        if value.is_Rational:
            return constant(tidy(Fraction(int(value.p), int(value.q))))
        if value.is_Mul and value.args[0] == -1:  # sin(-x)
            return scale(self.generators.of(-value), -1)
        return self.generators.of(value)

    def product(self, a: Polynomial, b: Polynomial) -> Polynomial:
        """`a b`; long factors become generators if the product would be too long."""
        if len(a) * len(b) > self.most:
            a, b = (p if len(p) < 8 else self.generators.of(self.simplify(p)) for p in (a, b))
        return multiply(a, b)

    def quotient(self, a: Polynomial, b: Polynomial) -> Polynomial:
        """`a / b`."""
        if len(b) == 1:
            return self.product(a, power(b, -1))
        for one in self.ones:
            monomial = next(iter(one))
            if b == scale(one, b.get(monomial, 0)):
                return scale(a, Fraction(1) / b[monomial])
        return self.product(a, power(self.generators.of(self.simplify(b)), -1))


_ARITHMETIC: dict[str, Callable[..., Polynomial]] = {
    "add": lambda w, a, b: add(a, b),
    "sub": lambda w, a, b: add(a, b, -1),
    "mul": lambda w, a, b: w.product(a, b),
    "div": lambda w, a, b: w.quotient(a, b),
    "inv": lambda w, a: w.quotient({ONE: 1}, a),
    "neg": lambda w, a: scale(a, -1),
    "twice": lambda w, a: scale(a, 2),
    "sq": lambda w, a: w.product(a, a),
}


def function_named(op: str) -> Callable[..., Any]:
    """SymPy's function for an operation that is not arithmetic; of an array an undefined one with its label."""
    import sympy as sp

    if isinstance(op, Lookup):
        return sp.Function(label_of(op))
    return functions()[op]


def functions() -> dict[str, Callable[..., Any]]:
    """SymPy's function for each operation of a graph that is not arithmetic."""
    import sympy as sp

    same = ("sqrt", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh")
    table = {name: getattr(sp, name) for name in (*same, "exp", "log", "erf", "floor", "atan2", "sign")}
    return table | {
        "log1p": lambda x: sp.log(1 + x),
        "expm1": lambda x: sp.exp(x) - 1,
        "fabs": sp.Abs,
        "ceil": sp.ceiling,
        "pow": sp.Pow,
        "constpow": sp.Pow,
        "hypot": lambda x, y: sp.sqrt(x**2 + y**2),
        "fmod": lambda x, y: sp.sign(x) * sp.Mod(sp.Abs(x), sp.Abs(y)),
        "fmin": sp.Min,
        "fmax": sp.Max,
        "copysign": lambda x, y: sp.Abs(x) * sp.Piecewise((1, sp.Ge(y, 0)), (-1, True)),
        **{op: _truth(relation) for op, relation in (("lt", sp.Lt), ("le", sp.Le), ("eq", sp.Eq), ("ne", sp.Ne))},
        "and": lambda x, y: x * y,
        "or": sp.Max,
        "not": lambda x: 1 - x,
        "if_else_zero": lambda condition, x: condition * x,
    }


def _truth(relation: Callable[..., Any]) -> Callable[..., Any]:
    """A relation as the number 1 or 0."""
    import sympy as sp

    return lambda x, y: sp.Piecewise((1, relation(x, y)), (0, True))


Pair = tuple[int, int]
# An identity `sum of coefficient * product of two entries = result`; the result is a monomial, or None for zero.
Identity = tuple[dict[Pair, int], Monomial | None]


@dataclass
class RotationIdentities:
    """Identities between generators, by the pairs of generators in them."""

    identities: dict[Pair, list[Identity]] = field(default_factory=dict)
    members: set[int] = field(default_factory=set)

    def add(self, R: list[list[int]]) -> None:
        """Add those of a rotation matrix, given its generators (3, 3)."""
        self.members |= {g for row in R for g in row}
        columns = [list(column) for column in zip(*R, strict=True)]
        for rows in (R, columns):
            for i, j in combinations_with_replacement(range(3), 2):
                self._add({_pair(rows[i][k], rows[j][k]): 1 for k in range(3)}, ONE if i == j else None)
        for i in range(3):
            for j in range(3):
                a, b, c, d = (i + 1) % 3, (j + 1) % 3, (i + 2) % 3, (j + 2) % 3
                cofactor = {_pair(R[a][b], R[c][d]): 1, _pair(R[a][d], R[c][b]): -1}
                self._add(cofactor, ((R[i][j], 1),))

    def _add(self, pairs: dict[Pair, int], result: Monomial | None) -> None:
        """Add one identity, under each of its pairs."""
        for pair in pairs:
            self.identities.setdefault(pair, []).append((pairs, result))

    def reduce(self, a: Polynomial) -> Polynomial:
        """Apply identities as long as each makes the sum shorter."""
        if not self.members or len(a) < 2:
            return a
        result = dict(a)
        waiting = list(a)
        while waiting:
            monomial = waiting.pop()
            if monomial in result:
                waiting += self._use(result, monomial)
        return result

    def _use(self, a: Polynomial, monomial: Monomial) -> list[Monomial]:
        """Apply the first identity that contains a term and shortens the sum; return the terms that changed."""
        own = [(g, p) for g, p in monomial if g in self.members and p > 0]
        pairs = [(g, g) for g, p in own if p > 1]
        pairs += [(g, h) for k, (g, _) in enumerate(own) for h, _ in own[k + 1 :]]
        for pair in pairs:
            for products, result in self.identities.get(pair, ()):
                rest = times(monomial, times(((pair[0], -1),), ((pair[1], -1),)))
                c = a[monomial] * products[pair]
                changes = {times(rest, _product(p)): -sign * c for p, sign in products.items()}
                if result is not None:
                    changes[times(rest, result)] = c
                if _gain(a, changes) > 0:
                    for m, change in changes.items():
                        value = a.get(m, 0) + change
                        if value:
                            a[m] = value
                        else:
                            a.pop(m, None)
                    return list(changes)
        return []


def _gain(a: Polynomial, changes: dict[Monomial, Exact]) -> int:
    """By how many terms some changes shorten a sum."""
    return sum((m in a) - (a.get(m, 0) + change != 0) for m, change in changes.items())


def _pair(g: int, h: int) -> Pair:
    """Two generators, sorted."""
    return (g, h) if g <= h else (h, g)


def _product(pair: Pair) -> Monomial:
    """Product of two generators."""
    g, h = pair
    return ((g, 2),) if g == h else ((g, 1), (h, 1))
