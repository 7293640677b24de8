"""Fit the coefficients of the elementary functions, and measure the error of each.

    python docs/make_elementary.py fit        # prints src/cardan/machines/llvm/elementary/coefficients.py
    python docs/make_elementary.py            # prints the table of measured errors

A polynomial goes through the function at Chebyshev's nodes, in 400 bits, which is within a small factor of the best
one; its degree is such that the error is below what rounding does.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import mpmath as mp

mp.mp.prec = 400


def fit(f: Callable[[mp.mpf], mp.mpf], a: mp.mpf, b: mp.mpf, degree: int) -> list[float]:
    """Coefficients of the polynomial through f at Chebyshev's nodes of [a, b], the highest power first."""
    n = degree + 1
    nodes = [(a + b) / 2 + (b - a) / 2 * mp.cos(mp.pi * (2 * i + 1) / (2 * n)) for i in range(n)]
    powers = mp.matrix(n, n)
    for i, x in enumerate(nodes):
        for j in range(n):
            powers[i, j] = x**j
    return [float(c) for c in reversed(list(mp.lu_solve(powers, mp.matrix([f(x) for x in nodes]))))]


def parts(value: mp.mpf, zeros: int = 0) -> tuple[float, float]:
    """A number as the sum of two doubles, the first with so many zeros at its end."""
    unit = mp.mpf(2) ** (mp.floor(mp.log(value, 2)) - 52 + zeros)
    high = float(mp.nint(value / unit) * unit)
    return high, float(value - mp.mpf(high))


def coefficients() -> str:
    """The text of the file of coefficients."""
    root = mp.sqrt
    edge = mp.mpf("1.001")
    tail = mp.mpf(4)

    def of_tail(u: mp.mpf) -> mp.mpf:
        x = tail * (1 + u) / (1 - u)
        return mp.exp(x * x) * mp.erfc(x)

    ln2, eighth = mp.log(2), (root(2) - 1) ** 2
    tables = {
        "EXP": (fit(lambda r: (mp.exp(r) - 1 - r - r * r / 2) / r**3, -ln2 / 2 * edge, ln2 / 2 * edge, 9),
                "(e^r - 1 - r - r^2/2)/r^3 for |r| <= ln(2)/2"),
        "LOG": (fit(lambda z: (mp.atanh(root(z)) / root(z) - 1 - z / 3) / z**2, mp.mpf(0), eighth**2 * edge, 7),
                "(atanh(s)/s - 1 - s^2/3)/s^4 of s^2, for |s| <= (sqrt(2) - 1)^2"),
        "ASIN": (fit(lambda z: (mp.asin(root(z)) / root(z) - 1) / z, mp.mpf(0), mp.mpf("0.25"), 12),
                 "(asin(s)/s - 1)/s^2 of s^2, for |s| <= 1/2"),
        "ATAN": (fit(lambda z: (mp.atan(root(z)) / root(z) - 1) / z, mp.mpf(0), eighth * edge, 11),
                 "(atan(t)/t - 1)/t^2 of t^2, for |t| <= tan(pi/8)"),
        "SIN": (fit(lambda z: (mp.sin(root(z)) / root(z) - 1) / z, mp.mpf(0), (mp.pi / 4) ** 2 * edge, 6),
                "(sin(r)/r - 1)/r^2 of r^2, for |r| <= pi/4"),
        "COS": (fit(lambda z: (mp.cos(root(z)) - 1 + z / 2) / z**2, mp.mpf(0), (mp.pi / 4) ** 2 * edge, 6),
                "(cos(r) - 1 + r^2/2)/r^4 of r^2, for |r| <= pi/4"),
        "ERF": (fit(lambda z: (mp.erf(root(z)) / root(z) - 2 / root(mp.pi)) / z, mp.mpf(0), mp.mpf(1), 11),
                "(erf(x)/x - 2/sqrt(pi))/x^2 of x^2, for |x| <= 1"),
        "ERFC": (fit(of_tail, (1 - tail) / (1 + tail), (6 - tail) / (6 + tail), 16),
                 "e^(x^2) (1 - erf(x)) of (x - 4)/(x + 4), for x from 1 to 6"),
    }  # fmt: skip
    constants = {
        "LN2": (parts(ln2, 11), "ln 2, the first part with 11 zeros at its end"),
        "THIRD": (parts(mp.mpf(1) / 3), "1/3"),
        "PI": (parts(+mp.pi), "pi"),
        "THREE_QUARTER_PI": (parts(3 * mp.pi / 4), "3 pi/4"),
        "TWO_OVER_SQRT_PI": (parts(2 / root(mp.pi)), "2/sqrt(pi)"),
    }
    lines = [
        '"""Coefficients of the elementary functions, fitted by `docs/make_elementary.py`; highest power first."""',
        "",
    ]
    for name, (values, what) in {**tables, **constants}.items():
        lines += [f"# {what}", f"{name} = (", *(f"    {v!r}," for v in values), ")"]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    if sys.argv[1:] == ["fit"]:
        print(coefficients(), end="")
