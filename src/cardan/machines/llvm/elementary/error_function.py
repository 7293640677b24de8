"""The error function: x (2/sqrt(pi) + x^2 P(x^2)) up to 1, then 1 - e^(-x^2) G((x - 4)/(x + 4))."""

from __future__ import annotations

from cardan.machines.llvm.elementary.coefficients import ERF, ERFC, TWO_OVER_SQRT_PI
from cardan.machines.llvm.elementary.exponential import clamp, power_of_e, power_of_two
from cardan.machines.llvm.elementary.lanes import Number, absolute, fma, polynomial, select, with_sign
from cardan.machines.llvm.elementary.pairs import exact_product


def erf(x: Number) -> Number:
    """`2/sqrt(pi)` times the integral of e^(-t^2) from 0 to x."""
    a = clamp(absolute(x), 6.0)  # from there on it is 1
    square = exact_product(a, a)
    near = select(a > 1.0, 1.0, a)
    z = near * near
    inner = fma(near, TWO_OVER_SQRT_PI[0], near * fma(z, polynomial(z, ERF), TWO_OVER_SQRT_PI[1]))
    power = power_of_e(-square.high, -square.low)
    tail = power.value().rounded() * power_of_two(power.k) * polynomial((a - 4.0) / (a + 4.0), ERFC)
    r = with_sign(select(a > 1.0, 1.0 - tail, inner), x.sign())
    return select(x.is_nan(), x, r)
