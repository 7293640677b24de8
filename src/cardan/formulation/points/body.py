"""One body in plane motion as three particles: AT's equations as worked problems, on numbers or symbols.

Notation of AT: particles at `r1`, `r2`, `r3` with masses `m1`, `m2`, `m3`; `r31 = r3 - r1`; `R` is the sum of the
external forces, `G1` the moment of forces and couples about particle 1. The unknowns are accelerations of particles.
Three particles on one line leave the unreduced set singular; the reduced one never is.

Equations: AT(2)-(6), AT(9)-(12).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cardan.algebra.matrix import Matrix, Scalar, block, dot, stack, vector, zeros
from cardan.algebra.plane import Particles, across, carried, moment


def unreduced_equations(body: Particles, r: Sequence[Any], rd: Sequence[Any], R: Any, G1: Scalar) -> tuple[Any, Any]:
    """`A` (6, 6), `b` (6,) with `A (r1'', r2'', r3'') = b`: momentum, and the three distances.

    `r`, `rd` have positions (m) and velocities (m/s) of the three particles, `R` is in N, `G1` in N m.
    """
    m, one = body.masses, np.eye(2)
    momentum = [m[i] * one for i in range(3)]  # AT(2)
    spin = [0 * one[:1]] + [m[i] * _row(across(r[i] - r[0])) for i in (1, 2)]  # AT(3)
    rows, right = [momentum, spin], [stack(R), vector(G1)]
    for i, j in ((1, 0), (2, 0), (2, 1)):  # the distances of AT(4), their rates AT(5)
        d, rate = r[i] - r[j], rd[i] - rd[j]
        along = {i: _row(d), j: -_row(d)}
        rows.append([along.get(k, 0 * one[:1]) for k in range(3)])  # AT(6)
        right.append(vector(-dot(rate, rate)))
    return block(rows), stack(*right)


def reduced_equations(body: Particles, r1: Any, r3: Any, rd1: Any, rd3: Any, R: Any, G1: Scalar) -> tuple[Any, Any]:
    """`A` (4, 4), `b` (4,) with `A (r1'', r3'') = b`: a floating body.

    Positions in m, velocities in m/s, `R` in N, `G1` in N m.
    """
    (m1, m2, m3), nu, lam = body.masses, body.nu, body.lam
    one, K = np.eye(2), np.array([[0.0, -1.0], [1.0, 0.0]])
    d, dd = r3 - r1, rd3 - rd1
    r21 = carried(nu, lam, d)
    first = (m1 + (1 - nu) * m2) * one - m2 * lam * K  # AT(10)
    third = (m3 + nu * m2) * one + m2 * lam * K  # AT(10)
    spin1 = m2 * ((1 - nu) * _row(across(r21)) - lam * _row(r21))  # AT(11)
    spin3 = m3 * _row(across(d)) + m2 * (nu * _row(across(r21)) + lam * _row(r21))  # AT(11)
    A = block([[first, third], [spin1, spin3], [-_row(d), _row(d)]])  # AT(12)
    return A, stack(stack(R), vector(G1, -dot(dd, dd)))


def fixed_axis(body: Particles, r1: Any, r3: Any, rd3: Any, R: Any, G1: Scalar) -> tuple[np.ndarray, np.ndarray]:
    """A body on an axis through particle 1: acceleration (2,) of particle 3, m/s^2, and the axis' force (2,) on it, N.

    The moment and distance rows give the acceleration, linear momentum then the reaction.
    """
    A, b = reduced_equations(body, r1, r3, zeros(2, None, r1), rd3, R, G1)
    a3 = np.linalg.solve(A[2:, 2:], b[2:])  # AT(11),(12)
    return a3, A[:2, 2:] @ a3 - np.asarray(R)  # AT(10)


def second_acceleration(body: Particles, a1: Any, a3: Any) -> Matrix:
    """Acceleration (2,) of particle 2 from those of 1 and 3."""
    return a1 + carried(body.nu, body.lam, a3 - a1)  # AT(9)


def kinetic_energy(body: Particles, v: Sequence[Any]) -> Scalar:
    """Energy (J) of the three particles at velocities `v` (m/s)."""
    return sum(m * dot(u, u) for m, u in zip(body.masses, v, strict=True)) / 2


def angular_momentum(body: Particles, r: Sequence[Any], v: Sequence[Any]) -> Scalar:
    """Angular momentum (kg m^2/s) of the three particles about the plane's origin."""
    return sum(m * moment(p, u) for m, p, u in zip(body.masses, r, v, strict=True))


def _row(a: Any) -> Any:
    """A vector as a row (1, 2)."""
    return a.reshape(1, 2) if isinstance(a, np.ndarray) else a.T
