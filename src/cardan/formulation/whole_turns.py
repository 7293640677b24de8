"""Angles measured from poses are known up to whole turns; here the value near a known configuration is taken."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import gcd, lcm, pi

from cardan.algebra.matrix import Matrix, arctan2, cos, dot, sin, stack, where
from cardan.model.joint import Kind


def principal(x: Matrix, period: float = 2 * pi) -> Matrix:
    """`x` less the multiple of the period that brings it nearest to zero."""
    w = 2 * pi / period
    return arctan2(sin(w * x), cos(w * x)) / w


def common_period(factors: Sequence[float]) -> float:
    """Largest period of a sum of angles times factors when each angle may jump by whole turns; 0 if there is none."""
    if not factors:
        return 0.0
    parts = [Fraction(c / factors[0]).limit_denominator(1000) for c in factors]
    if any(abs(float(p) * factors[0] - c) > 1e-12 * c for p, c in zip(parts, factors, strict=True)):
        return 0.0
    return 2 * pi * factors[0] * gcd(*(p.numerator for p in parts)) / lcm(*(p.denominator for p in parts))


def near(kind: Kind, x: Matrix, about: Matrix) -> Matrix:
    """Of all coordinates of a joint that mean the same as `x`, those nearest to `about`."""
    parts = []
    for k, unit in enumerate(kind.q_units):
        if unit == "rad":
            parts.append(about[k] + principal(x[k] - about[k]))
        elif unit != "1":
            parts.append(x[k])
    if kind.nq != kind.nv:
        e = x[kind.nq - 4 : kind.nq]
        parts.append(e * where(dot(e, about[kind.nq - 4 : kind.nq]) < 0, -1.0, 1.0))
    return stack(*parts) if parts else x
