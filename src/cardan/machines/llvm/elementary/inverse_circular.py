"""Inverse circular functions: atan and atan2 as angles of a point, asin and acos of their sine and cosine.

The angle of a point between the x axis and the diagonal is t + t^3 P(t^2) with t the ratio of its coordinates; or pi/4
more, with t the ratio of their difference and sum, so that |t| <= tan(pi/8). The other octants are mirrored.

asin x = x + x^3 P(x^2) up to 1/2, and pi/2 - 2 asin(sqrt((1 - x)/2)) from there on.
"""

from __future__ import annotations

from cardan.machines.llvm.elementary.coefficients import ASIN, ATAN, PI, THREE_QUARTER_PI
from cardan.machines.llvm.elementary.lanes import (
    Mask,
    Number,
    absolute,
    bits_of,
    choose,
    fma,
    polynomial,
    raised_nan,
    select,
    sqrt,
    with_sign,
)
from cardan.machines.llvm.elementary.pairs import Pair, ordered_sum, quotient

_TAN_PI_8 = 0.4142135623730951


def atan(x: Number) -> Number:
    """The angle whose tangent is x."""
    # past 2^60 the angle is a right one
    a = select(x.size() > bits_of(2.0**60), 2.0**60, absolute(x))
    r = _angle(a, x.code.number(1.0))
    return select(x.is_nan(), x, with_sign(r, x.sign()))


def atan2(y: Number, x: Number) -> Number:
    """The angle of the point (x, y), from -pi to pi."""
    x.code.leave(_is_far(y, x), y, x)
    return with_sign(_angle(absolute(y), absolute(x), x.negative()), y.sign())


def _is_far(y: Number, x: Number) -> Mask:
    """Where a coordinate is very large, or very small and not 0, or both are 0, or one is NaN."""
    a, b, small = y.size(), x.size(), bits_of(2.0**-400)
    larger, smaller = choose(a > b, a, b), choose(a > b, b, a)
    return (larger > bits_of(2.0**500)) | (larger < small) | (smaller > 0) & (smaller < small)


def atan2_anywhere(y: Number, x: Number) -> Number:
    """The angle of the point (x, y), also at the origin, very near to it or an axis, and infinitely far."""
    nan = x.is_nan() | y.is_nan()
    a, b = (select(nan, 1.0, absolute(v)) for v in (y, x))
    larger = select(a > b, a, b)
    infinite, origin = larger.equals(float("inf")), larger.equals(0.0)
    a, b = (select(infinite, select(v.equals(float("inf")), 1.0, 0.0), v) for v in (a, b))
    b = select(origin, 1.0, b)
    factor = select(larger > 2.0**500, 2.0**-600, select(larger < 2.0**-400, 2.0**600, 1.0))
    r = _angle(a * factor, b * factor, x.negative())
    # so small an angle is the quotient, also where that is subnormal
    slight = _is_far(y, x) & (a * factor < b * factor * 2.0**-500) & ~x.negative()
    r = select(slight, select(slight, a, 2.0) / select(slight, b, 2.0), r)
    return select(nan, select(x.is_nan(), x, y), with_sign(r, y.sign()))


def _angle(y: Number, x: Number, behind: Mask | None = None) -> Number:
    """Angle of the point (x, y) to the x axis, or of (-x, y) where it is `behind`.

    x, y >= 0, the larger between 2^-400 and 2^500, the smaller above 2^-900 or 0.
    """
    code = x.code
    steep = y > x
    low, high = select(steep, x, y), select(steep, y, x)
    middle = low > _TAN_PI_8 * high
    less, more = ordered_sum(high, -low), ordered_sum(high, low)
    mirrored = steep ^ middle if behind is None else steep ^ middle ^ behind
    sign = code.sign_where(mirrored)
    above = Pair(select(middle, less.high, low), select(middle, less.low, 0.0))
    below = Pair(select(middle, more.high, high), select(middle, more.low, 0.0))
    t = quotient(Pair(with_sign(above.high, sign), with_sign(above.low, sign)), below)
    z = t.high * t.high
    cubic = fma(-t.low, z, t.low) + t.high * z * polynomial(z, ATAN)
    turn = []
    for whole, three_quarters in zip(PI, THREE_QUARTER_PI, strict=True):
        quarter, none = code.number(whole / 4), code.number(0.0)
        if behind is not None:
            quarter, none = select(behind, three_quarters, quarter), select(behind, whole, none)
        turn.append(select(middle, quarter, select(steep, whole / 2, none)))
    s = ordered_sum(turn[0], t.high)
    return s.high + (s.low + (turn[1] + cubic))


def asin(x: Number) -> Number:
    """The angle whose sine is x."""
    outside, large, s, cubic = _arc(x)
    right = ordered_sum(PI[0] / 2, -2.0 * s.high)
    far = right.high + (right.low + fma(s.low + cubic, -2.0, PI[1] / 2))
    r = with_sign(select(large, far, s.high + cubic), x.sign())
    bad = outside & ~x.is_nan()
    return select(outside, select(bad, raised_nan(bad), x), r)


def acos(x: Number) -> Number:
    """The angle whose cosine is x."""
    outside, large, s, cubic = _arc(x)
    # twice the arc or pi less it, and pi/2 less the arc of x or more
    part, negative = select(large, 2.0 * s.high, s.high), x.negative()
    low = select(large, 2.0 * (s.low + cubic), cubic)
    sign = x.code.sign_where(negative ^ ~large)
    start, start_low = (select(large, select(negative, p, 0.0), p / 2) for p in PI)
    total = ordered_sum(start, with_sign(part, sign))
    r = total.high + (total.low + (start_low + with_sign(low, sign)))
    bad = outside & ~x.is_nan()
    return select(outside, select(bad, raised_nan(bad), x), r)


def _arc(x: Number) -> tuple[Mask, Mask, Pair, Number]:
    """Where |x| > 1 or NaN; where |x| > 1/2; s = |x| or there sqrt((1 - |x|)/2) as a pair; and asin(s) - s."""
    outside, large = x.size() > bits_of(1.0), x.size() > bits_of(0.5)
    a = select(outside, 0.0, absolute(x))
    half = fma(a, -0.5, 0.5)  # exact for a >= 1/2
    z = select(large, half, a * a)
    root = sqrt(half)
    rest = fma(-root, root, half) / select(root.equals(0.0), 2.0, root + root)
    s = Pair(select(large, root, a), select(large, rest, 0.0))
    return outside, large, s, s.high * z * polynomial(z, ASIN)
