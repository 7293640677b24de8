"""Filters of signals: a transfer function without feedthrough, as variables of a mechanism whose first is its output.

In observer form, with `u` the signal and `y = x_1`:

    x_i' = x_(i+1) - a_i y + b_i u        Y/U = (b_1 s^(n-1) + ... + b_n) / (s^n + a_1 s^(n-1) + ... + a_n)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import factorial
from typing import Any

import numpy as np

from cardan.errors import ModelError
from cardan.model.pose import numbers


@dataclass(frozen=True)
class FilterRates:
    """Rates of the states `first` to `last` of a filter; `y` and `chain` name its output and its other states."""

    y: str
    chain: str
    signal: Callable[[Any], Any]
    a: np.ndarray
    b: np.ndarray
    first: int
    last: int

    def __call__(self, s: Any) -> Any:
        """At an instant."""
        import casadi as ca

        n, y = len(self.a), s[self.y]
        x = ca.vertcat(y, s[self.chain], 0) if n > 1 else ca.vertcat(y, 0)
        u = self.signal(s)
        return ca.vertcat(*(x[i + 1] - self.a[i] * y + self.b[i] * u for i in range(self.first, self.last)))


def coefficients(owner: str, numerator: Any, denominator: Any) -> tuple[np.ndarray, np.ndarray]:
    """`a` (n,) and `b` (n,) of a transfer function given by falling powers of s; reject one with feedthrough."""
    b, a = (
        numbers(owner, what, np.atleast_1d(x), np.atleast_1d(x).shape)
        for what, x in (("numerator", numerator), ("denominator", denominator))
    )
    if b.ndim > 1 or a.ndim > 1 or len(a) < 2 or a[0] == 0 or len(b) >= len(a):
        raise ModelError(
            f"{owner}: the degree of the numerator must be below that of the denominator, whose first number is not 0; "
            f"got {len(b)} and {len(a)} numbers; what passes at once is read off the signal itself"
        )
    return a[1:] / a[0], np.concatenate([np.zeros(len(a) - 1 - len(b)), b]) / a[0]


def pade(delay: float, order: int) -> tuple[list[float], list[float]]:
    """Numerator and denominator, by falling powers of s, of Pade's approximation (order - 1, order) of a delay, s."""

    def side(m: int, other: int, sign: float) -> Sequence[float]:
        whole = factorial(m + other)
        return [
            factorial(m + other - k) * factorial(m) / (whole * factorial(k) * factorial(m - k)) * (sign * delay) ** k
            for k in range(m + 1)
        ]

    return list(side(order - 1, order, -1.0))[::-1], list(side(order, order - 1, 1.0))[::-1]
