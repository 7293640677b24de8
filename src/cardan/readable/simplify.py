"""Write a polynomial in sines, cosines and symbols the way a textbook would: take the shortest of several forms.

The forms are: the sum as it is; with `sin^2` or `cos^2` eliminated by `sin^2 + cos^2 = 1`; and with products of sines
and cosines turned into those of sums of angles. Of each form common factors are factored out, level by level.
"""

from __future__ import annotations

from fractions import Fraction
from functools import reduce
from math import gcd, lcm
from typing import Any

from cardan.readable.polynomial import ONE, Exact, Generators, Monomial, Polynomial, add, power, rational, tidy, times

MOST_TERMS = 400  # a longer sum is left as it is
MOST_FACTORED, MOST_FACTORS = 6, 4  # a sum of more terms, or of more generators, is not factored as a polynomial
TRIED, MOST_TRIED = 3, 12  # first factors tried in a sum of up to so many terms; one in a longer sum
Wave = tuple[int, ...]  # multiple of each angle, in a sum of angles


class Simplifier:
    """Turns polynomials over some generators into short SymPy expressions."""

    def __init__(self, generators: Generators) -> None:
        self.generators = generators
        self.unit_quaternions: list[list[int]] = []
        """Four generators each."""
        self._known: dict[frozenset[Any], Any] = {}
        self._nested: dict[frozenset[Any], Any] = {}

    def __call__(self, a: Polynomial) -> Any:
        """The shortest expression found."""
        key = frozenset(a.items())
        if key not in self._known:
            self._known[key] = self._shortest(a)
        return self._known[key]

    def _shortest(self, a: Polynomial) -> Any:
        """Try all forms that are not much longer than the shortest."""
        import sympy

        if len(a) < 2:
            return self.generators.expression(a)
        forms = [a, *(form for form in (self._with_unit_quaternions(a),) if form != a)]
        if any(g in self.generators.angle for monomial in a for g, _ in monomial):
            forms += [form for form in self._rewritten(a) if form not in forms]
        forms = [form for form in forms if len(form) <= 2 * min(map(len, forms)) + 4]
        return min((self.factor_out(form) for form in forms), key=sympy.count_ops)

    def _with_unit_quaternions(self, a: Polynomial) -> Polynomial:
        """Replace `e0^2` of each unit quaternion by `1 - e1^2 - e2^2 - e3^2`."""
        for first, *others in self.unit_quaternions:
            square: Polynomial = {ONE: 1, **{((g, 2),): -1 for g in others}}
            while any(g == first and p > 1 for m in a for g, p in m):
                total: Polynomial = {}
                for m, c in a.items():
                    if dict(m).get(first, 0) > 1:
                        rest = times(m, ((first, -2),))
                        total = add(total, {times(rest, n): d * c for n, d in square.items()})
                    else:
                        total = add(total, {m: c})
                a = total
        return a

    def _rewritten(self, a: Polynomial) -> list[Polynomial]:
        """Three forms: without squares of sines, without those of cosines, and the shortest for each coefficient.

        A coefficient is the factor, in sines and cosines, of one product of all other generators.
        """
        by_rest: dict[Monomial, Polynomial] = {}
        for monomial, c in a.items():
            turning = tuple((g, p) for g, p in monomial if g in self.generators.angle)
            rest = tuple((g, p) for g, p in monomial if g not in self.generators.angle)
            by_rest.setdefault(rest, {})[turning] = c
        forms: list[Polynomial] = [{}, {}, {}]
        for rest, part in by_rest.items():
            ways = [self._without(part, "sin"), self._without(part, "cos"), self._waves(part)]
            best = min(ways, key=self._length)
            for k, way in enumerate((ways[0], ways[1], best)):
                forms[k] = add(forms[k], {times(rest, m): c for m, c in way.items()})
        return forms

    def _without(self, a: Polynomial, name: str) -> Polynomial:
        """Replace squares of sines, or of cosines, by 1 minus the square of the other."""
        generators, result = self.generators, a
        for g, (angle, which) in list(generators.angle.items()):
            if which != name or not any(h == g and p > 1 for m in result for h, p in m):
                continue
            other = generators.index(_other(name)(generators.angles[angle]))
            square: Polynomial = {ONE: 1, ((other, 2),): -1}
            total: Polynomial = {}
            for monomial, c in result.items():
                p = dict(monomial).get(g, 0)
                half, odd = divmod(p, 2) if p > 1 else (0, p)
                rest = tuple((h, n) for h, n in monomial if h != g)
                kept = times(rest, ((g, odd),) if odd else ONE)
                total = add(total, {times(kept, m): d * c for m, d in power(square, half).items()})
            result = total
        return result

    def _waves(self, a: Polynomial) -> Polynomial:
        """Write products of sines and cosines as a sum of sines and cosines of sums of angles."""
        if any(p < 0 or p > 6 for m in a for _, p in m):
            return a
        n = len(self.generators.angles)
        spectrum: dict[Wave, tuple[Exact, Exact]] = {}
        for monomial, c in a.items():
            lines: dict[Wave, tuple[Exact, Exact]] = {(0,) * n: (c, 0)}
            for g, p in monomial:
                for _ in range(p):
                    lines = _modulated(lines, *self.generators.angle[g])
            for wave, part in lines.items():
                spectrum[wave] = _sum(spectrum.get(wave, (0, 0)), part)
        result: Polynomial = {}
        for wave, (real, imaginary) in sorted(spectrum.items()):
            if not any(wave):
                result = add(result, {ONE: tidy(real)} if real else {})
            elif next(k for k in wave if k) > 0:
                for value, name in ((2 * real, "cos"), (-2 * imaginary, "sin")):
                    if value:
                        result = add(result, {((self._wave_generator(name, wave), 1),): tidy(value)})
        return result

    def _wave_generator(self, name: str, wave: Wave) -> int:
        """Generator of the sine or cosine of a sum of angles."""
        import sympy

        angle = sympy.Add(*(k * x for k, x in zip(wave, self.generators.angles, strict=False)))
        return self.generators.index(getattr(sympy, name)(angle, evaluate=False))

    def _length(self, a: Polynomial) -> int:
        """Approximate number of operations of a sum of sines and cosines."""
        return sum(1 + sum(p + _angle_length(self.generators.objects[g]) for g, p in m) for m in a)

    def factor_out(self, a: Polynomial) -> Any:
        """Factor out common generators, level by level, those that save most operations first.

        For a short sum a few first factors are tried and the best result is kept.
        """
        import sympy

        if len(a) < 2 or len(a) > MOST_TERMS:
            return self.generators.expression(a)
        common, content, rest = _content(a)
        if common or content != 1:
            return sympy.Mul(rational(content), self.generators.term(common, 1), self.factor_out(rest))
        key = frozenset(a.items())
        if key not in self._nested:
            self._nested[key] = self._factor_out(a)
        return self._nested[key]

    def _factor_out(self, a: Polynomial) -> Any:
        """The same for a sum without a factor common to all terms."""
        import sympy

        if factored := self._factored(a):
            return factored
        first = _savings(a)
        if not first:
            return self.generators.expression(a)
        tried = first[: TRIED if len(a) <= MOST_TRIED else 1]
        return min((self._grouped(a, g) for g in tried), key=sympy.count_ops)

    def _grouped(self, a: Polynomial, first: int) -> Any:
        """Split a sum into groups of terms that share a generator; groups that differ by a factor are merged."""
        import sympy

        groups: dict[frozenset[Any], tuple[Polynomial, Polynomial]] = {}
        rest, best = a, [first]
        while rest:
            inside = {m: c for m, c in rest.items() if not best or any(h == best[0] for h, _ in m)}
            rest = {m: c for m, c in rest.items() if m not in inside}
            common, content, sum_ = _content(inside)
            if sum_[min(sum_)] < 0:
                content, sum_ = -content, {m: -c for m, c in sum_.items()}
            before, _ = groups.get(frozenset(sum_.items()), ({}, {}))
            groups[frozenset(sum_.items())] = (add(before, {common: content}), sum_)
            best = _savings(rest)
        return sympy.Add(*(sympy.Mul(self.factor_out(by), self.factor_out(sum_)) for by, sum_ in groups.values()))

    def _factored(self, a: Polynomial) -> Any:
        """A short sum as a product of polynomials, or None if it is irreducible or too long."""
        used = sorted({g for m in a for g, _ in m})
        if not 2 < len(a) <= MOST_FACTORED or len(used) > MOST_FACTORS or any(p < 0 for m in a for _, p in m):
            return None
        import sympy
        from sympy.polys.domains import QQ
        from sympy.polys.rings import PolyRing

        place = {g: k for k, g in enumerate(used)}
        ring = PolyRing([f"x{k}" for k in range(len(used))], QQ, "lex")
        if max(sum(p for _, p in m) for m in a) < 2:
            return None
        terms = {}
        for m, c in a.items():
            powers = [0] * len(used)
            for g, p in m:
                powers[place[g]] = p
            terms[tuple(powers)] = QQ(c.numerator, c.denominator)
        content, factors = ring.from_dict(terms).factor_list()
        if len(factors) == 1 and factors[0][1] == 1:
            return None

        def exact(c: Any) -> Exact:
            return tidy(Fraction(int(c.numerator), int(c.denominator)))

        product = [rational(exact(content))]
        for factor, n in factors:
            part = {tuple((used[k], p) for k, p in enumerate(powers) if p): exact(c) for powers, c in factor.terms()}
            product.append(self.factor_out(part) ** n)
        return sympy.Mul(*product)


def _other(name: str) -> Any:
    """SymPy's cosine for "sin", and the other way round."""
    import sympy

    return sympy.cos if name == "sin" else sympy.sin


def _angle_length(thing: Any) -> int:
    """Operations in a sine or cosine and its argument."""
    return 1 + int(thing.args[0].count_ops())


def _sum(a: tuple[Exact, Exact], b: tuple[Exact, Exact]) -> tuple[Exact, Exact]:
    """Sum of two complex numbers."""
    return a[0] + b[0], a[1] + b[1]


def _modulated(lines: dict[Wave, tuple[Exact, Exact]], angle: int, name: str) -> dict[Wave, tuple[Exact, Exact]]:
    """A spectrum times `cos = (z + 1/z) / 2` or `sin = (z - 1/z) / 2i` of one angle."""
    result: dict[Wave, tuple[Exact, Exact]] = {}
    for wave, (real, imaginary) in lines.items():
        for sign in (1, -1):
            shifted = (*wave[:angle], wave[angle] + sign, *wave[angle + 1 :])
            x, y = (real, imaginary) if name == "cos" else (sign * imaginary, -sign * real)
            result[shifted] = _sum(result.get(shifted, (0, 0)), (Fraction(x) / 2, Fraction(y) / 2))
    return result


def _savings(a: Polynomial) -> list[int]:
    """Generators that occur in several terms, sorted by the operations that factoring them out saves."""
    groups: dict[int, list[Monomial]] = {}
    for m in a:
        for g, _ in m:
            groups.setdefault(g, []).append(m)
    saved = {g: (len(own) - 1) * sum(abs(p) for _, p in _shared(own)) for g, own in groups.items() if len(own) > 1}
    return sorted(saved, key=lambda g: (-saved[g], g))


def _shared(monomials: list[Monomial]) -> Monomial:
    """The greatest common factor of some monomials; negative powers are shared where all have them."""
    shared = dict(monomials[0])
    for monomial in monomials[1:]:
        powers = dict(monomial)
        for g in list(shared):
            p, own = powers.get(g, 0), shared[g]
            shared[g] = min(p, own) if p > 0 and own > 0 else max(p, own) if p < 0 and own < 0 else 0
            if not shared[g]:
                del shared[g]
    return tuple(sorted(shared.items()))


def _content(a: Polynomial) -> tuple[Monomial, Exact, Polynomial]:
    """Monomial and number common to all terms, and the sum divided by both."""
    common = _shared(list(a))
    inverse = tuple((g, -p) for g, p in common)
    numbers = [Fraction(c) for c in a.values()]
    if any(c.denominator > 1000 for c in numbers):
        content = Fraction(1)
    else:
        content = Fraction(
            reduce(gcd, (abs(c.numerator) for c in numbers)), reduce(lcm, (c.denominator for c in numbers))
        )
    if all(c < 0 for c in numbers):
        content = -content
    return common, tidy(content), {times(m, inverse): tidy(c / content) for m, c in a.items()}
