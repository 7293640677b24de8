"""Powers of any base: x^y = e^(y log x), with the logarithm and its product with y as pairs."""

from __future__ import annotations

from cardan.machines.llvm.elementary.exponential import clamp, power_of_e, power_of_two, scale
from cardan.machines.llvm.elementary.lanes import (
    INFINITY,
    Mask,
    Number,
    absolute,
    bits_of,
    fma,
    raised_infinity,
    raised_nan,
    select,
    with_sign,
)
from cardan.machines.llvm.elementary.logarithm import precise_logarithm
from cardan.machines.llvm.elementary.pairs import Pair, exact_product


def pow(x: Number, y: Number) -> Number:
    """`x^y`."""
    base = precise_logarithm(x)
    product, low = _product(y, base)
    ordinary = (x.bits() > bits_of(2.0**-1022) - 1) & (x.bits() < INFINITY)
    x.code.leave(~ordinary | (product.size() > bits_of(708.0)), x, y)
    power = power_of_e(product, low)
    return power.value().rounded() * power_of_two(power.k)


def pow_anywhere(x: Number, y: Number) -> Number:
    """`x^y`, also where x is not a positive normal number, or the result is none; the cases of C99, annex F."""
    size, nan = x.size(), x.is_nan() | y.is_nan()
    ordinary, small = (size > 0) & (size < INFINITY), size < bits_of(2.0**-1022)
    a = absolute(x)
    base = precise_logarithm(
        select(ordinary, select(small, select(small, a, 2.0) * 2.0**54, a), 1.0), powers=select(small, -54.0, 0.0)
    )
    # past 2^66 the result of any base but 1 is 0 or infinite; so infinity needs no care
    product, low = _product(select(y.is_nan(), 1.0, clamp(y, 2.0**66)), base)
    low = select(product.size() < bits_of(750.0), low, 0.0)
    power = power_of_e(clamp(product, 750.0), low)
    r = scale(power.value().rounded(), power.k)
    pole = x.equals(0.0) & y.negative() & ~y.is_nan()
    upward = ~(size < INFINITY) & ~y.negative()
    r = select(ordinary, r, select(upward, float("inf"), raised_infinity(pole)))
    whole, odd = _parity(y)
    r = with_sign(r, select(odd, x, 0.0).sign())
    bad = x.negative() & ordinary & ~whole & ~nan
    r = select(bad, raised_nan(bad), r)
    one = x.equals(1.0) | y.equals(0.0)
    return select(one, 1.0, select(nan, select(x.is_nan(), x, y), r))


def _product(y: Number, base: Pair) -> tuple[Number, Number]:
    """The product of a number and a pair."""
    product = exact_product(y, base.high)
    return product.high, fma(y, base.low, product.low)


def _parity(y: Number) -> tuple[Mask, Mask]:
    """Where y is an integer, and where it is an odd one; infinity counts as even."""
    small = y.size() < bits_of(2.0**53)
    a = select(small, absolute(y), 0.0)
    half = 0.5 * a
    whole = ((a + 2.0**52) - 2.0**52).equals(a) | (a > 2.0**52)
    even = ((half + 2.0**52) - 2.0**52).equals(half)
    return whole, whole & ~even
