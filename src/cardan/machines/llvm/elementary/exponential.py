"""The exponential function and what is made of it: exp, expm1, sinh, cosh, tanh.

x = k ln 2 + r with |r| <= ln(2)/2. Then e^x = 2^k (1 + r + q) with q = r^2/2 + r^3 P(r).
"""

from __future__ import annotations

from dataclasses import dataclass

from cardan.machines.llvm.elementary.coefficients import EXP, LN2
from cardan.machines.llvm.elementary.lanes import (
    INFINITY,
    Number,
    Whole,
    absolute,
    bits_of,
    choose,
    fma,
    polynomial,
    select,
    with_sign,
)
from cardan.machines.llvm.elementary.pairs import Pair, exact_product, exact_sum, ordered_sum, quotient

# adding it rounds to an integer, left in the low bits
MAGIC = 6755399441055744.0
# past it e^x is 0 or infinite
_LIMIT = 750.0
_TINY = 2.0**-54


@dataclass(frozen=True)
class Power:
    """`2^k (1 + r + q)`, with `|r| <= ln(2)/2` and q about `r^2/2`."""

    k: Whole
    r: Number
    q: Number

    def value(self) -> Pair:
        """`1 + r + q`."""
        one = ordered_sum(1.0, self.r)
        return Pair(one.high, one.low + self.q)

    def inverse(self) -> Number:
        """`2^-k`, or `2^-100` where that is larger; for k >= -1000."""
        return power_of_two(0 - choose(self.k > 100, self.k.code.whole(100), self.k))

    def less_one(self, inverse: Number) -> Pair:
        """`2^-k` times the whole less one: `(1 - 2^-k) + r + q`."""
        one = ordered_sum(1.0, -inverse)  # for k < 0 exact in its high part
        s = exact_sum(one.high, self.r)
        return Pair(s.high, s.low + (one.low + self.q))


def power_of_two(k: Whole) -> Number:
    """`2^k` for -1022 <= k <= 1023."""
    return ((k + 1023) << 52).number()


def scale(x: Number, k: Whole) -> Number:
    """`2^k x` for |k| < 2000, rounded once where it is subnormal."""
    half = ((k + 4096) >> 1) - 2048
    return x * power_of_two(half) * power_of_two(k - half)


def clamp(x: Number, limit: float) -> Number:
    """`x`, no further from 0 than `limit`; NaN becomes `limit`."""
    return select(x.size() > bits_of(limit), with_sign(x.code.number(limit), x.sign()), x)


def power_of_e(x: Number, low: Number | None = None, fine: bool = False) -> Power:
    """`e^(x + low)` for |x| < 1400 and |low| < 2^-40; `fine` for what is near 0 after 1 was taken off."""
    shifted = fma(x, 1.4426950408889634, MAGIC)
    k = shifted - MAGIC
    first = fma(k, -LN2[0], x)  # exact: LN2[0] has 11 zeros at its end
    r = fma(k, -LN2[1], first)
    rest = fma(k, -LN2[1], first - r)  # what r lost in its rounding
    square, p = exact_product(r, r), polynomial(r, EXP)
    if fine:
        q = fma(square.high, 0.5, fma(r * square.high, p, fma(square.low, 0.5, fma(rest, r, rest))))
    elif low is None:
        q = fma(square.high, fma(p, r, 0.5), rest)
    else:
        main, rest = square.high * fma(p, r, 0.5), rest + low
        q = main + fma(rest, r + main, rest)
    return Power(shifted.bits() - bits_of(MAGIC), r, q)


def exp(x: Number) -> Number:
    """`e^x`."""
    x.code.leave(x.size() > bits_of(708.0), x)
    power = power_of_e(x)
    return power.value().rounded() * power_of_two(power.k)


def exp_anywhere(x: Number) -> Number:
    """`e^x`, also where it is infinite, subnormal or 0."""
    finite = x.size() < INFINITY
    power = power_of_e(select(finite, clamp(x, _LIMIT), 0.0))
    end = select(x.negative() & ~x.is_nan(), 0.0, x)
    return select(finite, scale(power.value().rounded(), power.k), end)


def expm1(x: Number) -> Number:
    """`e^x - 1`."""
    x.code.leave(x.size() > bits_of(40.0), x)
    power = power_of_e(x, fine=True)
    r = power.less_one(power_of_two(0 - power.k)).rounded() * power_of_two(power.k)
    return select(x.size() < bits_of(_TINY), x, r)


def expm1_anywhere(x: Number) -> Number:
    """`e^x - 1`, also where it is -1 or infinite."""
    finite, one = x.size() < INFINITY, x.negative() & (x.size() > bits_of(40.0))
    power = power_of_e(select(finite, select(one, -40.0, clamp(x, _LIMIT)), 0.0), fine=True)
    r = scale(power.less_one(power.inverse()).rounded(), power.k)
    end = select(x.negative() & ~x.is_nan(), -1.0, x)
    return select(x.size() < bits_of(_TINY), x, select(finite, r, end))


def sinh(x: Number) -> Number:
    """`(e^x - e^-x)/2`, of u = e^x - 1 as `(u + u/(1 + u))/2`."""
    x.code.leave(x.size() > bits_of(708.0), x)
    y, k = _twice_sinh(absolute(x))
    return _odd(x, y * power_of_two(k - 1))


def sinh_anywhere(x: Number) -> Number:
    """`(e^x - e^-x)/2`, also where it is infinite."""
    finite = x.size() < INFINITY
    y, k = _twice_sinh(select(finite, clamp(absolute(x), _LIMIT), 0.0))
    return select(finite, _odd(x, scale(y, k - 1)), x)


def _twice_sinh(x: Number) -> tuple[Number, Whole]:
    """`2^-k (e^x - e^-x)` for 0 <= x <= 750, and k."""
    power = power_of_e(x, fine=True)
    inverse = power.inverse()
    u = power.less_one(inverse).normal()
    q = quotient(u, power.value().normal())
    total = ordered_sum(u.high, q.high * inverse)
    return total.high + (total.low + fma(q.low, inverse, u.low)), power.k


def cosh(x: Number) -> Number:
    """`(e^x + e^-x)/2`."""
    x.code.leave(x.size() > bits_of(708.0), x)
    y, k = _twice_cosh(absolute(x))
    return y * power_of_two(k - 1)


def cosh_anywhere(x: Number) -> Number:
    """`(e^x + e^-x)/2`, also where it is infinite."""
    finite = x.size() < INFINITY
    y, k = _twice_cosh(select(finite, clamp(absolute(x), _LIMIT), 0.0))
    return select(finite, scale(y, k - 1), absolute(x))


def _twice_cosh(x: Number) -> tuple[Number, Whole]:
    """`2^-k (e^x + e^-x)` for 0 <= x <= 750, and k."""
    power = power_of_e(x)
    value, inverse = power.value(), power.inverse()
    total = ordered_sum(value.high, inverse * inverse / value.rounded())
    return total.high + (total.low + value.low), power.k


def tanh(x: Number) -> Number:
    """`u/(u + 2)` of u = e^(2x) - 1."""
    a = clamp(absolute(x), 22.0)  # from there on it is 1
    power = power_of_e(a + a, fine=True)
    inverse = power_of_two(0 - power.k)
    u = power.less_one(inverse).normal()
    below = exact_sum(u.high, inverse + inverse)
    q = quotient(u, Pair(below.high, below.low + u.low))
    return select(x.is_nan(), x, _odd(x, q.rounded()))


def _odd(x: Number, result: Number) -> Number:
    """The result for |x| with the sign of x; x itself where that is tiny."""
    return select(x.size() < bits_of(2.0**-28), x, with_sign(result, x.sign()))
