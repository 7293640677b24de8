"""The length of a vector in the plane."""

from __future__ import annotations

from cardan.machines.llvm.elementary.lanes import INFINITY, Number, absolute, bits_of, choose, select
from cardan.machines.llvm.elementary.pairs import Pair, exact_product, ordered_sum, root


def hypot(x: Number, y: Number) -> Number:
    """`sqrt(x^2 + y^2)`."""
    a, b = x.size(), y.size()
    larger, smaller = choose(a > b, a, b), choose(a > b, b, a)
    x.code.leave((larger > bits_of(2.0**500)) | (larger > 0) & (larger < bits_of(2.0**-450)), x, y)
    return _length(larger.number(), smaller.number())


def hypot_anywhere(x: Number, y: Number) -> Number:
    """`sqrt(x^2 + y^2)`, also where the squares are too large or too small, and of infinity and NaN."""
    finite = (x.size() < INFINITY) & (y.size() < INFINITY)
    a, b = select(finite, absolute(x), 2.0), select(finite, absolute(y), 2.0)
    larger, smaller = select(a > b, a, b), select(a > b, b, a)
    huge, tiny = larger > 2.0**500, larger < 2.0**-450
    there, back = (select(huge, f, select(tiny, 1 / f, 1.0)) for f in (2.0**-600, 2.0**600))
    infinite = absolute(x).equals(float("inf")) | absolute(y).equals(float("inf"))
    r = _length(larger * there, smaller * there) * back
    return select(finite, r, select(infinite, float("inf"), select(x.is_nan(), x, y)))


def _length(a: Number, b: Number) -> Number:
    """`sqrt(a^2 + b^2)` for a >= b >= 0 and a from 2^-450 to 2^500, or 0."""
    long, short = exact_product(a, a), exact_product(b, b)
    s = ordered_sum(long.high, short.high)
    return root(Pair(s.high, s.low + (long.low + short.low))).rounded()
