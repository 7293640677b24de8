"""The logarithm and what is made of it: log, log1p, asinh, acosh, atanh.

u = 2^k (1 + f) with 1 + f between sqrt(1/2) and sqrt(2), and s = f/(2 + f). Then
log u = k ln 2 + 2 atanh(s) = k ln 2 + 2 s (1 + s^2 (1/3 + s^2 Q(s^2))).
"""

from __future__ import annotations

from cardan.machines.llvm.elementary.coefficients import LN2, LOG, THIRD
from cardan.machines.llvm.elementary.exponential import power_of_two
from cardan.machines.llvm.elementary.lanes import (
    INFINITY,
    Number,
    Whole,
    absolute,
    bits_of,
    fma,
    polynomial,
    raised_infinity,
    raised_nan,
    select,
    sqrt,
    with_sign,
)
from cardan.machines.llvm.elementary.pairs import Pair, exact_product, exact_sum, ordered_sum, quotient, root

_SQRT_HALF = bits_of(0.7071067811865476)
_ALL_BUT_FRACTION = -(2**52)
_ONE = bits_of(1.0)
_SMALLEST_NORMAL = bits_of(2.0**-1022)
# from here on x + 1 is x, and sqrt(x^2 + 1) too
_HUGE = 2.0**300


def _split(u: Number) -> tuple[Number, Number, Whole]:
    """`u = 2^k m` with m between sqrt(1/2) and sqrt(2), for normal u > 0: k, m, and the integer k + 1024."""
    above = u.bits() + (0x4000000000000000 - _SQRT_HALF)  # the exponent field is k + 1024
    k_bits = above >> 52
    k = (k_bits | bits_of(2.0**52)).number() - (2.0**52 + 1024.0)
    return k, (u.bits() - ((above & _ALL_BUT_FRACTION) - 0x4000000000000000)).number(), k_bits


def precise_logarithm(u: Number, powers: Number | None = None) -> Pair:
    """`log u` plus `powers` times ln 2 as a pair, for normal u > 0; to about 2^-65 of itself."""
    k, m, _ = _split(u)
    f = m - 1.0
    s = quotient(Pair(f, f.code.number(0.0)), ordered_sum(2.0, f))
    z = exact_product(s.high, s.high)
    z = Pair(z.high, fma(s.high + s.high, s.low, z.low))
    q = polynomial(z.high, LOG)
    p = fma(z.high, q, THIRD[0])
    p_low = fma(z.low, q, fma(z.high, q, THIRD[0] - p) + THIRD[1])
    w = exact_product(z.high, p)
    w_low = fma(z.low, p, fma(z.high, p_low, w.low))
    v = exact_product(s.high, w.high)
    v_low = fma(s.low, w.high, s.low) + fma(s.high, w_low, v.low)
    whole = ordered_sum(s.high, v.high).scaled(2.0)
    if powers is not None:
        k = k + powers
    total = ordered_sum(k * LN2[0], whole.high)
    return Pair(total.high, fma(k, LN2[1], fma(v_low, 2.0, total.low + whole.low))).normal()


def _logarithm(u: Number, powers: Number | None = None) -> Number:
    """`log u` plus `powers` times ln 2, for normal u > 0."""
    k, m, _ = _split(u)
    return _sum(k if powers is None else k + powers, m - 1.0, u.code.number(0.0))


def _logarithm_of_one_plus(x: Number, low: Number | None = None) -> Number:
    """`log(1 + x + low)` for -1 < x <= 2^1000: 1 + x = 2^k (m + c) with a small c, and f = x itself where k = 0."""
    u = exact_sum(x, 1.0)
    k, m, k_bits = _split(u.high)
    near = k.equals(0.0)
    f = select(near, x, m - 1.0)
    c = (u.low if low is None else u.low + low) * power_of_two(1024 - k_bits)
    c = select(near, 0.0 if low is None else low, c)
    return _sum(k, f, fma(f, f - 1.0, 1.0) * c)


def _sum(k: Number, f: Number, rest: Number) -> Number:
    """`k ln 2 + log(1 + f) + rest`. As 2s = f - s f, the logarithm is f + s (2 s^2 (1/3 + s^2 Q(s^2)) - f)."""
    s = f / (f + 2.0)
    z = s * s
    inner = z * fma(z, polynomial(z, LOG), THIRD[0])
    total = ordered_sum(k * LN2[0], f)
    return total.high + (total.low + fma(s, fma(inner, 2.0, -f), fma(k, LN2[1], rest)))


def log(x: Number) -> Number:
    """The natural logarithm."""
    bits = x.bits()
    x.code.leave((bits < _SMALLEST_NORMAL) | (bits > INFINITY - 1), x)
    return _logarithm(x)


def log_anywhere(x: Number) -> Number:
    """The natural logarithm, also of 0, negative and subnormal numbers, infinity and NaN."""
    bits = x.bits()
    ordinary, small = (bits > 0) & (bits < INFINITY), (bits > 0) & (bits < _SMALLEST_NORMAL)
    a = select(ordinary, select(small, select(small, x, 2.0) * 2.0**54, x), 1.0)
    r = _logarithm(a, select(small, -54.0, 0.0))
    return select(ordinary, r, _end(x, x))


def log1p(x: Number) -> Number:
    """`log(1 + x)`."""
    size = x.size()
    x.code.leave((x.negative() & (size > _ONE - 1)) | (size > bits_of(_HUGE)), x)
    return select(x.equals(0.0), x, _logarithm_of_one_plus(x))


def log1p_anywhere(x: Number) -> Number:
    """`log(1 + x)`, also from -1 down, of huge numbers, infinity and NaN."""
    size = x.size()
    ordinary, huge = (size < INFINITY) & ~(x.negative() & (size > _ONE - 1)), size > bits_of(_HUGE)
    r = _logarithm_of_one_plus(select(ordinary & ~huge, x, 0.0))
    r = select(huge, _logarithm(select(ordinary & huge, x, 1.0)), r)
    return select(x.equals(0.0), x, select(ordinary, r, _end(x, 1.0 + x)))


def _end(x: Number, u: Number) -> Number:
    """Of the logarithm of u, where u is not a positive finite number: NaN and infinity of x, the pole, or NaN."""
    kept = x.is_nan() | x.equals(float("inf"))
    pole = u.equals(0.0)
    return select(kept, x, select(pole, -raised_infinity(pole), raised_nan(~kept & u.negative() & ~pole)))


def asinh(x: Number) -> Number:
    """`log(x + sqrt(x^2 + 1))`, of f = x + x^2/(1 + sqrt(x^2 + 1)) as `log(1 + f)`."""
    x.code.leave(x.size() > bits_of(_HUGE), x)
    return _near_asinh(x)


def asinh_anywhere(x: Number) -> Number:
    """`log(x + sqrt(x^2 + 1))`, also of huge numbers, where it is `log(2x)`, of infinity and NaN."""
    finite, huge = x.size() < INFINITY, x.size() > bits_of(_HUGE)
    far = _logarithm(select(finite & huge, absolute(x), 1.0), x.code.number(1.0))
    r = select(huge, with_sign(far, x.sign()), _near_asinh(select(huge, 0.0, x)))
    return select(finite, r, x)


def _near_asinh(x: Number) -> Number:
    """`asinh x` for |x| <= 2^300."""
    a = absolute(x)
    f = ordered_sum(a, a * a / (1.0 + sqrt(fma(a, a, 1.0))))
    r = with_sign(_logarithm_of_one_plus(f.high, f.low), x.sign())
    return select(x.size() < bits_of(2.0**-28), x, r)


def acosh(x: Number) -> Number:
    """`log(x + sqrt(x^2 - 1))`, of d = x - 1 and f = d + sqrt(d^2 + 2d) as `log(1 + f)`."""
    x.code.leave((x.bits() < _ONE) | (x.bits() > bits_of(_HUGE)), x)
    return _near_acosh(x)


def acosh_anywhere(x: Number) -> Number:
    """`log(x + sqrt(x^2 - 1))`, also of huge numbers, where it is `log(2x)`; NaN below 1."""
    kept, below, huge = x.is_nan() | x.equals(float("inf")), x.bits() < _ONE, x.size() > bits_of(_HUGE)
    far = _logarithm(select(kept | below, 1.0, x), x.code.number(1.0))
    r = select(huge, far, _near_acosh(select(huge | below, 1.0, x)))
    bad = below & ~kept
    return select(kept, x, select(bad, raised_nan(bad), r))


def _near_acosh(x: Number) -> Number:
    """`acosh x` for 1 <= x <= 2^300."""
    d = x - 1.0
    square = fma(d, d, d + d)
    s = root(Pair(square, fma(d, d, (d + d) - square)))
    f = exact_sum(d, s.high)
    return _logarithm_of_one_plus(f.high, f.low + s.low)


def atanh(x: Number) -> Number:
    """`log((1 + x)/(1 - x))/2`, of f = 2x/(1 - x) as `log(1 + f)`."""
    size = x.size()
    inside, pole = size < _ONE, absolute(x).equals(1.0)
    a = select(inside, absolute(x), 0.5)
    f = quotient(Pair(a + a, a.code.number(0.0)), ordered_sum(1.0, -a))
    r = 0.5 * _logarithm_of_one_plus(f.high, f.low)
    outside = select(pole, raised_infinity(pole), raised_nan(~(inside | pole | x.is_nan())))
    r = with_sign(select(inside, r, outside), x.sign())
    return select((size < bits_of(2.0**-28)) | x.is_nan(), x, r)
