"""The logarithm and what is made of it: log, log1p, asinh, acosh, atanh.

u = 2^k (1 + f) with 1 + f between sqrt(1/2) and sqrt(2), and s = f/(2 + f). Then
log u = k ln 2 + 2 atanh(s) = k ln 2 + 2 s (1 + s^2 (1/3 + s^2 Q(s^2))), as a pair.
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
    with_sign,
)  # fmt: skip
from cardan.machines.llvm.elementary.pairs import (
    Pair,
    exact_product,
    exact_sum,
    ordered_sum,
    quick_quotient,
    quotient,
    root,
)  # fmt: skip

_SQRT_HALF = bits_of(0.7071067811865476)
_EXPONENT = -(2**52)  # all bits but those of the fraction
_ONE = bits_of(1.0)


def _split(u: Number) -> tuple[Number, Number, Whole]:
    """`u = 2^k m` with m between sqrt(1/2) and sqrt(2): k, m, and the integer k + 1024."""
    above = u.bits() + (0x4000000000000000 - _SQRT_HALF)  # the exponent field is k + 1024
    k_bits = above >> 52
    k = (k_bits | bits_of(2.0**52)).number() - (2.0**52 + 1024.0)
    return k, (u.bits() - ((above & _EXPONENT) - 0x4000000000000000)).number(), k_bits


def logarithm(u: Number, low: Number | None = None, powers: Number | None = None) -> Pair:
    """`log(u + low)` plus `powers` times ln 2, for normal u > 0; near 1 right relative to itself."""
    k, m, k_bits = _split(u)
    f = Pair(m - 1.0, u.code.number(0.0))
    if low is not None:
        f = exact_sum(f.high, low * 0.5 * ((2048 - k_bits) << 52).number())
    below = ordered_sum(2.0, f.high)
    s = quick_quotient(f, Pair(below.high, below.low + f.low))
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
    return ordered_sum(total.high, fma(k, LN2[1], fma(v_low, 2.0, total.low + whole.low)))


def logarithm_of_one_plus(f: Pair, powers: Number | None = None) -> Pair:
    """`log(1 + f)` plus `powers` times ln 2, for f > -1."""
    u = exact_sum(f.high, 1.0)
    return logarithm(u.high, u.low + f.low, powers)


def log(x: Number) -> Number:
    """The natural logarithm."""
    bits = x.bits()
    x.code.leave((bits < bits_of(2.0**-1022)) | (bits > INFINITY - 1), x)
    return _rounded_logarithm(x)


def log_anywhere(x: Number) -> Number:
    """The natural logarithm, also of 0, negative and subnormal numbers, infinity and NaN."""
    bits = x.bits()
    ordinary, small = (bits > 0) & (bits < INFINITY), bits < bits_of(2.0**-1022)
    a = select(ordinary, select(small, x * 2.0**54, x), 1.0)
    r = _rounded_logarithm(a, select(small, -54.0, 0.0))
    return select(ordinary, r, _past_the_end(x, x))


def _rounded_logarithm(u: Number, powers: Number | None = None) -> Number:
    """`log u` plus `powers` times ln 2, for normal u > 0."""
    k, m, _ = _split(u)
    return _rounded(k if powers is None else k + powers, m - 1.0, u.code.number(0.0))


def _rounded(k: Number, f: Number, rest: Number) -> Number:
    """`k ln 2 + log(1 + f) + rest`. As 2s = f - s f, the logarithm is f + s (2 s^2 (1/3 + s^2 Q(s^2)) - f)."""
    s = f / (f + 2.0)
    z = s * s
    inner = z * fma(z, polynomial(z, LOG), THIRD[0])
    total = ordered_sum(k * LN2[0], f)
    return total.high + (total.low + fma(s, fma(inner, 2.0, -f), fma(k, LN2[1], rest)))


def log1p(x: Number) -> Number:
    """`log(1 + x)`."""
    size = x.size()
    x.code.leave((x.negative() & (size > _ONE - 1)) | (size > bits_of(2.0**1000)), x)
    return select(x.equals(0.0), x, _rounded_logarithm_of_one_plus(x))


def log1p_anywhere(x: Number) -> Number:
    """`log(1 + x)`, also from -1 down, of huge numbers, infinity and NaN."""
    size = x.size()
    ordinary, huge = (size < INFINITY) & ~(x.negative() & (size > _ONE - 1)), size > bits_of(2.0**1000)
    r = _rounded_logarithm_of_one_plus(select(ordinary & ~huge, x, 0.0))
    r = select(huge, _rounded_logarithm(select(ordinary & huge, x, 1.0)), r)
    return select(x.equals(0.0), x, select(ordinary, r, _past_the_end(x, 1.0 + x)))


def _rounded_logarithm_of_one_plus(x: Number) -> Number:
    """`log(1 + x)` for -1 < x <= 2^1000: 1 + x = 2^k (m + c) with a small c, and f = x itself where k = 0."""
    u = exact_sum(x, 1.0)
    k, m, k_bits = _split(u.high)
    near = k.equals(0.0)
    f = select(near, x, m - 1.0)
    c = select(near, 0.0, u.low * power_of_two(1024 - k_bits))
    return _rounded(k, f, fma(f, f - 1.0, 1.0) * c)


def _past_the_end(x: Number, u: Number) -> Number:
    """Of the logarithm of u, where u is not a positive finite number: NaN and infinity of x, the pole, or NaN."""
    kept = ~(x.size() < INFINITY) & (x.is_nan() | ~x.negative())
    pole = u.equals(0.0)
    return select(kept, x, select(pole, -raised_infinity(pole), raised_nan(~(kept | pole) & ~(u.bits() > 0))))


def asinh(x: Number) -> Number:
    """`log(x + sqrt(x^2 + 1))`, of f = x + x^2/(1 + sqrt(x^2 + 1)) as `log(1 + f)`."""
    size = x.size()
    large = size > bits_of(2.0**300)
    a = select(large, 1.0, absolute(x))
    square = exact_product(a, a)
    s = exact_sum(square.high, 1.0)
    w = root(Pair(s.high, s.low + square.low))
    below = exact_sum(w.high, 1.0)
    g = quotient(square, Pair(below.high, below.low + w.low))
    f = exact_sum(a, g.high)
    u = exact_sum(f.high, 1.0)
    finite = select(size < INFINITY, absolute(x), 1.0)
    low = select(large, 0.0, u.low + (f.low + g.low))
    r = logarithm(select(large, finite, u.high), low, select(large, 1.0, 0.0)).rounded()
    kept = (size < bits_of(2.0**-28)) | ~(size < INFINITY)
    return select(kept, x, with_sign(r, x.sign()))


def acosh(x: Number) -> Number:
    """`log(x + sqrt(x^2 - 1))`, of f = x - 1 + sqrt(x^2 - 1) as `log(1 + f)`."""
    bits = x.bits()
    ordinary = (bits > _ONE - 1) & (bits < INFINITY)
    large = bits > bits_of(2.0**300)
    a = select(ordinary, select(large, 2.0, x), 1.0)
    square = exact_product(a, a)
    s = exact_sum(square.high, -1.0)
    w = root(ordered_sum(s.high, s.low + square.low))
    less = exact_sum(a, -1.0)
    f = exact_sum(less.high, w.high)
    u = exact_sum(f.high, 1.0)
    low = select(large, 0.0, u.low + (f.low + (less.low + w.low)))
    r = logarithm(select(ordinary & large, x, u.high), low, select(large, 1.0, 0.0)).rounded()
    kept = ~(x.size() < INFINITY) & (x.is_nan() | ~x.negative())
    return select(ordinary, r, select(kept, x, raised_nan(~(ordinary | kept))))


def atanh(x: Number) -> Number:
    """`log((1 + x)/(1 - x))/2`, of f = 2x/(1 - x) as `log(1 + f)`."""
    size = x.size()
    inside, pole = size < _ONE, absolute(x).equals(1.0)
    a = select(inside, absolute(x), 0.5)
    below = ordered_sum(1.0, -a)
    f = quotient(Pair(a + a, a.code.number(0.0)), below)
    r = 0.5 * logarithm_of_one_plus(f).rounded()
    outside = select(pole, raised_infinity(pole), raised_nan(~(inside | pole | x.is_nan())))
    r = with_sign(select(inside, r, outside), x.sign())
    return select((size < bits_of(2.0**-28)) | x.is_nan(), x, r)
