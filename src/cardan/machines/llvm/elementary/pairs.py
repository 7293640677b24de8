"""Numbers of twice the precision: the unevaluated sum of two, the second about an ulp of the first (T. J. Dekker 1971).

Sums and products of two numbers are exact as pairs (D. E. Knuth; the fused multiply-add gives the error of a product).
"""

from __future__ import annotations

from dataclasses import dataclass

from cardan.machines.llvm.elementary.lanes import Mask, Number, fma, select, sqrt


@dataclass(frozen=True)
class Pair:
    """`high + low`."""

    high: Number
    low: Number

    def __neg__(self) -> Pair:
        return Pair(-self.high, -self.low)

    def rounded(self) -> Number:
        """The nearest number, or one beside it."""
        return self.high + self.low

    def normal(self) -> Pair:
        """The same sum with `low` below half an ulp of `high`; for |high| >= |low|."""
        return ordered_sum(self.high, self.low)

    def scaled(self, factor: float) -> Pair:
        """The pair times a power of two."""
        return Pair(self.high * factor, self.low * factor)


def ordered_sum(a: Number | float, b: Number) -> Pair:
    """`a + b` exactly, for `|a| >= |b|` or `a = 0`."""
    s = b + a if isinstance(a, float) else a + b
    return Pair(s, b - (s - a))


def exact_sum(a: Number, b: Number | float) -> Pair:
    """`a + b` exactly."""
    s = a + b
    of_b = s - a
    return Pair(s, (a - (s - of_b)) + (b - of_b))


def exact_product(a: Number, b: Number | float) -> Pair:
    """`a b` exactly."""
    p = a * b
    return Pair(p, fma(a, b, -p))


def quotient(a: Pair, b: Pair) -> Pair:
    """`a / b` by one division, for `b` between 2^-1000 and 2^1000, and `a` from about 2^-960 on or 0."""
    inverse = 1.0 / b.high
    q = a.high * inverse
    rest = fma(-q, b.high, a.high) + fma(-q, b.low, a.low)
    return Pair(q, rest * inverse)


def root(a: Pair) -> Pair:
    """The square root of `a >= 0`."""
    s = sqrt(a.high)
    rest = fma(-s, s, a.high) + a.low
    # not 1: LLVM would divide by s + s first and choose afterwards, which raises a flag
    return Pair(s, rest / select(s.equals(0.0), 2.0, s + s))


def select_pair(mask: Mask, a: Pair, b: Pair) -> Pair:
    """`a` where the mask is true, else `b`."""
    return Pair(select(mask, a.high, b.high), select(mask, a.low, b.low))
