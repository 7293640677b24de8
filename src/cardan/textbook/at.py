"""AT: a planar body as three particles, and a chain of such bodies.

A body of mass `m`, centre of mass `rG` and polar inertia `I0` about particle 1 is replaced by particles of masses `m1`,
`m2`, `m3`, which may be negative. A bar marks places in the body's axes with origin at particle 1. In the plane,
`r21 = r2 - r1`, `r31 = r3 - r1`, `r32 = r3 - r2`; `a1`, `a2`, `a3` are accelerations of the particles. `R` is the sum
of the external forces and `G1` their moment about particle 1, with couples. `K` is the normal of the plane; a tilde
means `K x`, so that `tilde(a)^T b` is the moment of `b` at the arm `a`. Particle 2 follows from 1 and 3 by `nu` and
`lam`.

The four reduced equations AT(10)-(12) have the determinant `m^2 I_G`, up to its sign, with `I_G = I0 - m |rG|^2`: they
are singular exactly for a body without mass and for a point mass. The six unreduced ones, AT(2), (3), (6), are singular
also where the three particles are on one line.

In the chain of section 2.4 body j lies between particles 2j-1 and 2j+1. The page has the equations of its last body N;
the recursion from there to the base, `AT_chain_force` and `AT_chain_moment_of_all`, is ours.

Source: H. A. Attia, planar mechanisms as equivalent particles. Equations: AT(1)-(12).
"""

from __future__ import annotations

import numpy as np

from cardan.algebra import plane
from cardan.textbook import rules
from cardan.textbook.equation import Source
from cardan.textbook.notation import (
    Quantity,
    Text,
    across,
    block,
    divide,
    dot,
    fixed,
    moment,
    norm,
    solve,
    tilde,
)

SMALL = 1e-12  # relative


def _mass(latex: str, meaning: str) -> Quantity:
    return Quantity(latex, (), meaning, "kg")


def _vector(latex: str, meaning: str, unit: str = "m") -> Quantity:
    return Quantity(latex, (2,), meaning, unit)


def _number(latex: str, meaning: str, unit: str) -> Quantity:
    return Quantity(latex, (), meaning, unit)


AT = Source(
    "AT",
    "H. A. Attia, planar mechanisms as equivalent systems of particles, sections 2.1 to 2.4",
    {
        "m": Quantity("m", (), "mass of the body", "kg", rules.positive),
        "rG": _vector(r"\bar{r}_{G}", "centre of mass in the body, from particle 1"),
        "I0": Quantity("I_{0}", (), "polar moment of inertia about particle 1", "kg m^2", rules.positive),
        "l": Quantity("l", (), "length of the rod", "m", rules.positive),
        "lG": _number("l_{G}", "distance of the rod's centre of mass from particle 1", "m"),
        "m1": _mass("m_{1}", "mass of particle 1"),
        "m2": _mass("m_{2}", "mass of particle 2"),
        "m3": _mass("m_{3}", "mass of particle 3"),
        "m2half": _mass(r"\bar{m}_{2}", "half the mass of particle 2"),
        "mrG": _vector("", "first moment of mass", "kg m"),
        "rbar1": _vector(r"\bar{r}_{1}", "place of particle 1 in the body"),
        "rbar2": _vector(r"\bar{r}_{2}", "place of particle 2 in the body"),
        "rbar3": _vector(r"\bar{r}_{3}", "place of particle 3 in the body"),
        "r1": _vector("r_{1}", "position of particle 1"),
        "r2": _vector("r_{2}", "position of particle 2"),
        "r21": _vector("r_{2,1}", "vector from particle 1 to 2"),
        "r31": Quantity("r_{3,1}", (2,), "vector from particle 1 to 3", "m", rules.not_zero),
        "r32": _vector("r_{3,2}", "vector from particle 2 to 3"),
        "v1": _vector(r"\dot{r}_{1}", "velocity of particle 1", "m/s"),
        "v2": _vector(r"\dot{r}_{2}", "velocity of particle 2", "m/s"),
        "v21": _vector(r"\dot{r}_{2,1}", "velocity of particle 2 less that of 1", "m/s"),
        "v31": _vector(r"\dot{r}_{3,1}", "velocity of particle 3 less that of 1", "m/s"),
        "v32": _vector(r"\dot{r}_{3,2}", "velocity of particle 3 less that of 2", "m/s"),
        "a1": _vector(r"\ddot{r}_{1}", "acceleration of particle 1", "m/s^2"),
        "a2": _vector(r"\ddot{r}_{2}", "acceleration of particle 2", "m/s^2"),
        "a3": _vector(r"\ddot{r}_{3}", "acceleration of particle 3", "m/s^2"),
        "a31": _vector(r"\ddot{r}_{3,1}", "acceleration of particle 3 less that of 1", "m/s^2"),
        "d21": _number("d_{2,1}", "distance of particles 1 and 2", "m"),
        "d31": _number("d_{3,1}", "distance of particles 1 and 3", "m"),
        "d32": _number("d_{3,2}", "distance of particles 2 and 3", "m"),
        "along21": _number("", "of particles 2 and 1, along the line between them", "m^2, by the order of the rate"),
        "along31": _number("", "of particles 3 and 1, along the line between them", "m^2, by the order of the rate"),
        "along32": _number("", "of particles 3 and 2, along the line between them", "m^2, by the order of the rate"),
        "R": _vector("R", "sum of the external forces", "N"),
        "G1": _number("G_{1}", "moment of the external forces and couples about particle 1", "N m"),
        "F": _vector("F", "force of the axis on the body", "N"),
        "nubar": _number(r"\bar{\nu}", "distance of particle 2 from 1, along the line to 3", "m"),
        "lambar": _number(r"\bar{\lambda}", "distance of particle 2 from that line, to its left", "m"),
        "nu": _number(r"{\nu}", "invariant of particle 2, along the line from 1 to 3", "1"),
        "lam": _number(r"{\lambda}", "invariant of particle 2, across that line", "1"),
        "six": Quantity("", (6,), "accelerations of the particles 1, 2, 3", "m/s^2"),
        "four": Quantity("", (4,), "accelerations of the particles 1 and 3", "m/s^2"),
        # the chain: body N between particles 2N-1 and 2N+1, body j between 2j-1 and 2j+1
        "m2N": _mass("m_{2N}", "mass of the second particle of body N"),
        "m2N1": _mass("m_{2N+1}", "mass of the last particle"),
        "nuN": _number(r"\nu_{N}", "invariant of particle 2N, along the line of body N", "1"),
        "lamN": _number(r"\lambda_{N}", "invariant of particle 2N, across that line", "1"),
        "r2N": _vector("r_{2N,2N-1}", "vector from particle 2N-1 to 2N"),
        "r2N1": _vector("r_{2N+1,2N-1}", "vector from particle 2N-1 to 2N+1"),
        "v2N1": _vector(r"\dot{r}_{2N+1,2N-1}", "velocity of particle 2N+1 less that of 2N-1", "m/s"),
        "a2Nm1": _vector(r"\ddot{r}_{2N-1}", "acceleration of particle 2N-1", "m/s^2"),
        "a2N1": _vector(r"\ddot{r}_{2N+1}", "acceleration of particle 2N+1", "m/s^2"),
        "GN": _number("G_{N,2N-1}", "moment of the loads on body N about particle 2N-1", "N m"),
        "alongN": _number("", "of particles 2N+1 and 2N-1, along the line between them", "m^2/s^2"),
        "r_j": _vector("r_{2j+1,2j-1}", "vector from particle 2j-1 to 2j+1"),
        "R_j": _vector("R_{j}", "rate of momentum of body j, AT(10)", "N"),
        "G_j": _number("G_{j}", "rate of angular momentum of body j about particle 2j-1, AT(11)", "N m"),
        "F_j": _vector("F_{j}", "rate of momentum of the bodies j to N", "N"),
        "F_next": _vector("F_{j+1}", "rate of momentum of the bodies j+1 to N", "N"),
        "N_j": _number("N_{j}", "rate of angular momentum of the bodies j to N about particle 2j-1", "N m"),
        "N_next": _number("N_{j+1}", "rate of angular momentum of the bodies j+1 to N about particle 2j+1", "N m"),
    },
)


# What cannot be divided by


def _square(a: np.ndarray) -> np.ndarray:
    return np.asarray((a * a).sum(axis=-1))


def particle_2_exists(m: np.ndarray, rG: np.ndarray, I0: np.ndarray, m3: np.ndarray, rbar3: np.ndarray) -> str | None:
    """The two conditions on `m3`, and a body that can exist."""
    wrong = _about_particle_1(m * _square(rG), I0)
    if wrong:
        return wrong
    first, rest = m[..., None] * rG - m3[..., None] * rbar3, I0 - m3 * _square(rbar3)
    if (_square(first) <= SMALL**2 * np.maximum(m**2 * _square(rG), m3**2 * _square(rbar3))).any():
        return "m3 r3 must differ from m rG, or particle 2 has no mass; choose another m3"
    if (np.abs(rest) <= SMALL * np.maximum(I0, np.abs(m3) * _square(rbar3))).any():
        return "m3 |r3|^2 must differ from I0, or particle 2 is at infinity; choose another m3"
    return None


def rod_exists(m: np.ndarray, lG: np.ndarray, I0: np.ndarray) -> str | None:
    """A rod whose inertia about its end is at least that of a point mass at its centre of mass."""
    return _about_particle_1(m * lG**2, I0)


def _about_particle_1(least: np.ndarray, I0: np.ndarray) -> str | None:
    short = np.asarray(I0 - least * (1 - plane.ROUNDED))
    if not (short < 0).any():
        return None
    k = int(np.argmin(short))
    about, own = (float(np.broadcast_to(x, short.shape).flat[k]) for x in (I0, least))
    return plane.too_small(about, own)


def _own_inertia(
    m1: np.ndarray, m2: np.ndarray, m3: np.ndarray, r21: np.ndarray, r31: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Mass, inertia about the centre of mass, and the size of its terms, of three particles."""
    m, first = m1 + m2 + m3, m2[..., None] * r21 + m3[..., None] * r31
    size = np.abs(m2) * _square(r21) + np.abs(m3) * _square(r31)
    return m, m * (m2 * _square(r21) + m3 * _square(r31)) - _square(first), np.abs(m) * size + _square(first)


def _not_a_point_mass(m: np.ndarray, mI: np.ndarray, size: np.ndarray, heaviest: np.ndarray) -> str | None:
    if (np.abs(m) <= SMALL * heaviest).any():
        return "the masses add up to zero; a body without mass has no equations of motion"
    if (np.abs(mI) <= SMALL * size).any():
        return (
            "the particles have no moment of inertia about their centre of mass: this is a point mass, whose rotation "
            "is undetermined; give the body an inertia, or describe it by one point, R = m a"
        )
    return None


def turns_and_moves(
    m1: np.ndarray, m2: np.ndarray, m3: np.ndarray, nu: np.ndarray, lam: np.ndarray, r31: np.ndarray
) -> str | None:
    """The determinant of the reduced equations, `m^2 I_G`, must not vanish."""
    r21 = nu[..., None] * r31 + lam[..., None] * np.stack([-r31[..., 1], r31[..., 0]], axis=-1)
    found = _own_inertia(m1, m2, m3, r21, r31)
    return _not_a_point_mass(*found, np.maximum(np.abs(m1), np.maximum(np.abs(m2), np.abs(m3))))


def not_on_one_line(m1: np.ndarray, m2: np.ndarray, m3: np.ndarray, r21: np.ndarray, r31: np.ndarray) -> str | None:
    """The determinant of the unreduced equations also has the area between the particles as a factor."""
    area = r31[..., 0] * r21[..., 1] - r31[..., 1] * r21[..., 0]
    if (np.abs(area) <= SMALL * (_square(r21) + _square(r31))).any():
        return "the three particles are on one line, where AT(2), (3), (6) are singular; use AT_reduced, AT(10)-(12)"
    found = _own_inertia(m1, m2, m3, r21, r31)
    return _not_a_point_mass(*found, np.maximum(np.abs(m1), np.maximum(np.abs(m2), np.abs(m3))))


def turns_about_the_axis(
    m2: np.ndarray, m3: np.ndarray, nu: np.ndarray, lam: np.ndarray, r31: np.ndarray
) -> str | None:
    """The determinant of AT(11), (12) for particle 3 alone is the inertia about particle 1."""
    parts = m2 * (nu**2 + lam**2), m3
    if (np.abs(parts[0] + parts[1]) <= SMALL * (np.abs(parts[0]) + np.abs(parts[1]))).any():
        return (
            "the body has no moment of inertia about its axis: all of its mass is on it; its rotation is undetermined"
        )
    return None


# 2.1 The equivalent particles


@AT.equation("AT(1)", gives="m mrG I0", left=lambda m, rG, I0: (m, m * rG, I0))
def AT_1(m1: Text, m2: Text, m3: Text, rbar1: Text, rbar2: Text, rbar3: Text) -> tuple[Text, Text, Text]:
    """The particles have the mass, the first moment and the polar inertia of the body."""
    inertia = m1 * dot(rbar1, rbar1) + m2 * dot(rbar2, rbar2) + m3 * dot(rbar3, rbar3)
    return m1 + m2 + m3, m1 * rbar1 + m2 * rbar2 + m3 * rbar3, inertia  # AT(1)


@AT.equation("AT 2.1", gives="m2", needs=[particle_2_exists])
def AT_m2(m: Text, rG: Text, I0: Text, m3: Text, rbar3: Text) -> Text:
    """Mass of particle 2 if particle 1 is at the origin."""
    return plane.second_mass(m, rG, I0, m3, rbar3)


@AT.equation("AT 2.1", gives="m1")
def AT_m1(m: Text, m2: Text, m3: Text) -> Text:
    """Mass of particle 1, of any body and of a rod."""
    return m - m2 - m3


@AT.equation("AT 2.1", gives="rbar2")
def AT_r2(m: Text, rG: Text, m2: Text, m3: Text, rbar3: Text) -> Text:
    """Place of particle 2 if particle 1 is at the origin."""
    return divide(m * rG - m3 * rbar3, m2)


@AT.equation("AT 2.1", gives="m1 m2 rbar2", needs=[particle_2_exists], printed=False)
def AT_particles(m: Text, rG: Text, I0: Text, m3: Text, rbar3: Text) -> tuple[Text, Text, Text]:
    """The particles of a body: masses of 1 and 2 and the place of 2, from `AT_m2`, `AT_m1` and `AT_r2`."""
    m2 = AT_m2.text(m, rG, I0, m3, rbar3)
    return AT_m1.text(m, m2, m3), m2, AT_r2.text(m, rG, m2, m3, rbar3)


@AT.equation("AT 2.1 rod", gives="m2 m3", needs=[rod_exists])
def AT_rod(m: Text, l: Text, lG: Text, I0: Text) -> tuple[Text, Text]:
    """Masses of the particles of a rod, at its middle and its end; `AT_m1` is that at its beginning."""
    return plane.rod_masses(m, l, lG, I0)


# 2.2 One body


@AT.equation("AT(2)", gives="R")
def AT_2(m1: Text, m2: Text, m3: Text, a1: Text, a2: Text, a3: Text) -> Text:
    """Linear momentum."""
    return m1 * a1 + m2 * a2 + m3 * a3  # AT(2)


@AT.equation("AT(3)", gives="G1")
def AT_3(m2: Text, m3: Text, r21: Text, r31: Text, a2: Text, a3: Text) -> Text:
    """Angular momentum about particle 1."""
    return moment(r21, m2 * a2) + moment(r31, m3 * a3)  # AT(3)


@AT.equation("AT(4)", gives="along21 along31 along32", is_zero=True)
def AT_4(r21: Text, r31: Text, r32: Text, d21: Text, d31: Text, d32: Text) -> tuple[Text, Text, Text]:
    """The distances of the particles are constant: these vanish."""
    return dot(r21, r21) - d21**2, dot(r31, r31) - d31**2, dot(r32, r32) - d32**2  # AT(4)


@AT.equation("AT(5)", gives="along21 along31 along32", is_zero=True)
def AT_5(r21: Text, r31: Text, r32: Text, v21: Text, v31: Text, v32: Text) -> tuple[Text, Text, Text]:
    """The distances at velocity level: these vanish."""
    return dot(r21, v21), dot(r31, v31), dot(r32, v32)  # AT(5)


@AT.equation(
    "AT(6)", gives="along21 along31 along32",
    left=lambda r21, r31, r32, a1, a2, a3: (dot(r21, a2 - a1), dot(r31, a3 - a1), dot(r32, a3 - a2)),
)  # fmt: skip
def AT_6(v21: Text, v31: Text, v32: Text) -> tuple[Text, Text, Text]:
    """The distances at acceleration level: what the accelerations along each line must be."""
    return -dot(v21, v21), -dot(v31, v31), -dot(v32, v32)  # AT(6)


def _unit(like: Text) -> Text:
    """The letter I of the source."""
    return fixed("I", np.eye(2), like)


def _K(like: Text) -> Text:
    """`K x` as a matrix."""
    return fixed(r"\tilde{K}", np.array([[0.0, -1.0], [1.0, 0.0]]), like)


@AT.equation(
    "AT(2),(3),(6)", gives="six", needs=[not_on_one_line], left=lambda a1, a2, a3: block([[a1], [a2], [a3]])
)  # fmt: skip
def AT_unreduced(
    m1: Text, m2: Text, m3: Text, r21: Text, r31: Text, r32: Text, v21: Text, v31: Text, v32: Text, R: Text, G1: Text
) -> Text:
    """Accelerations of the three particles of a floating body, from the six unreduced equations.

    They are singular where the particles are on one line, and for a point mass.
    """
    I, none = _unit(m1), fixed("0", np.zeros((1, 2)), m1)
    A = block([
        [m1 * I, m2 * I, m3 * I],  # AT(2)
        [none, m2 * tilde(r21).T, m3 * tilde(r31).T],  # AT(3)
        [-r21.T, r21.T, none],  # AT(6)
        [-r31.T, none, r31.T],
        [none, -r32.T, r32.T],
    ])  # fmt: skip
    return solve(A, block([[R], [G1], *([x] for x in AT_6.text(v21, v31, v32))]))


# 2.3 The reduced form


@AT.equation("AT 2.3", gives="nubar lambar")
def AT_lengths(r21: Text, r31: Text) -> tuple[Text, Text]:
    """The two invariant lengths of particle 2: along the line from 1 to 3, and across it."""
    return divide(dot(r21, r31), norm(r31)), divide(moment(r31, r21), norm(r31))


@AT.equation("AT(7)", gives="r2")
def AT_7(r1: Text, r31: Text, nu: Text, lam: Text) -> Text:
    """Position of particle 2 from those of 1 and 3."""
    return r1 + nu * r31 + lam * across(r31)  # AT(7)


@AT.equation("AT(7)", gives="nu lam")
def AT_invariants(r21: Text, r31: Text) -> tuple[Text, Text]:
    """The two numbers of AT(7): the invariant lengths, relative to the length of the line."""
    return divide(dot(r21, r31), norm(r31) ** 2), divide(moment(r31, r21), norm(r31) ** 2)  # AT(7)


@AT.equation("AT(8)", gives="v2")
def AT_8(v1: Text, v31: Text, nu: Text, lam: Text) -> Text:
    """Velocity of particle 2 from those of 1 and 3."""
    return v1 + nu * v31 + lam * across(v31)  # AT(8)


@AT.equation("AT(9)", gives="a2")
def AT_9(a1: Text, a31: Text, nu: Text, lam: Text) -> Text:
    """Acceleration of particle 2 from those of 1 and 3: no velocities enter."""
    return a1 + nu * a31 + lam * across(a31)  # AT(9)


@AT.equation("AT(9)", gives="a2")
def AT_9_matrices(a1: Text, a3: Text, nu: Text, lam: Text) -> Text:
    """The same with matrices, as the page goes on."""
    I, K = _unit(a1), _K(a1)
    return ((1 - nu) * I - lam * K) @ a1 + (nu * I + lam * K) @ a3  # AT(9)


def _momentum_1(m1: Text, m2: Text, nu: Text, lam: Text) -> Text:
    """What multiplies the acceleration of particle 1 in AT(10)."""
    return (m1 + (1 - nu) * m2) * _unit(m1) - m2 * lam * _K(m1)


def _momentum_3(m2: Text, m3: Text, nu: Text, lam: Text) -> Text:
    """What multiplies the acceleration of particle 3 in AT(10)."""
    return (m3 + nu * m2) * _unit(m2) + m2 * lam * _K(m2)


def _spin(m2: Text, m3: Text, nu: Text, lam: Text, r21: Text, r31: Text) -> tuple[Text, Text]:
    """What multiplies the accelerations in AT(11), rows."""
    first = m2 * (-(lam * r21.T) + (1 - nu) * tilde(r21).T)
    return first, m3 * tilde(r31).T + m2 * nu * tilde(r21).T + m2 * lam * r21.T


@AT.equation("AT(10)", gives="R")
def AT_10(m1: Text, m2: Text, m3: Text, nu: Text, lam: Text, a1: Text, a3: Text) -> Text:
    """Linear momentum by the accelerations of particles 1 and 3."""
    return _momentum_1(m1, m2, nu, lam) @ a1 + _momentum_3(m2, m3, nu, lam) @ a3  # AT(10)


@AT.equation("AT(11)", gives="G1")
def AT_11(m2: Text, m3: Text, nu: Text, lam: Text, r21: Text, r31: Text, a1: Text, a3: Text) -> Text:
    """Angular momentum about particle 1 by the accelerations of particles 1 and 3."""
    first, third = _spin(m2, m3, nu, lam, r21, r31)
    return first @ a1 + third @ a3  # AT(11)


@AT.equation("AT(12)", gives="along31", left=lambda r31, a1, a3: r31.T @ (a3 - a1))
def AT_12(v31: Text) -> Text:
    """The distance of particles 1 and 3 at acceleration level."""
    return -(v31.T @ v31)  # AT(12)


def _line(nu: Text, lam: Text, r31: Text) -> Text:
    """`r21`, from AT(7)."""
    return nu * r31 + lam * across(r31)


@AT.equation("AT(10)-(12)", gives="four", needs=[turns_and_moves], left=lambda a1, a3: block([[a1], [a3]]))
def AT_reduced(m1: Text, m2: Text, m3: Text, nu: Text, lam: Text, r31: Text, v31: Text, R: Text, G1: Text) -> Text:
    """Accelerations of particles 1 and 3 of a floating body, from the four reduced equations.

    Their determinant is `m^2 I_G`, up to its sign: they are singular for a point mass and without mass, else never.
    """
    momentum = [_momentum_1(m1, m2, nu, lam), _momentum_3(m2, m3, nu, lam)]
    spin = _spin(m2, m3, nu, lam, _line(nu, lam, r31), r31)
    return solve(block([momentum, spin, [-r31.T, +r31.T]]), block([[R], [G1], [AT_12.text(v31)]]))


@AT.equation("AT(11),(12)", gives="a3", needs=[turns_about_the_axis])
def AT_fixed_axis(m2: Text, m3: Text, nu: Text, lam: Text, r31: Text, v31: Text, G1: Text) -> Text:
    """Acceleration of particle 3 of a body on a fixed axis through particle 1."""
    spin = _spin(m2, m3, nu, lam, _line(nu, lam, r31), r31)[1]
    return solve(block([[spin], [+r31.T]]), block([[G1], [AT_12.text(v31)]]))


@AT.equation("AT(10)", gives="F")
def AT_reaction(m2: Text, m3: Text, nu: Text, lam: Text, a3: Text, R: Text) -> Text:
    """Force of a fixed axis on the body: AT(10) at rest in particle 1, less the other external forces `R`."""
    return _momentum_3(m2, m3, nu, lam) @ a3 - R  # AT(10)


@AT.equation("AT 2.3 rod", gives="m2half")
def AT_rod_half(m2: Text) -> Text:
    """The half of the middle particle's mass, which both ends of a rod carry."""
    return m2 / 2


@AT.equation("AT(10) rod", gives="R")
def AT_rod_10(m1: Text, m2half: Text, m3: Text, a1: Text, a3: Text) -> Text:
    """Linear momentum of a rod: `nu = 1/2`, `lam = 0`."""
    return (m1 + m2half) * a1 + (m3 + m2half) * a3  # AT(10)


@AT.equation("AT(11) rod", gives="G1")
def AT_rod_11(m2half: Text, m3: Text, r21: Text, r31: Text, a1: Text, a3: Text) -> Text:
    """Angular momentum of a rod about particle 1."""
    return m2half * tilde(r21).T @ a1 + (m3 * tilde(r31).T + m2half * tilde(r21).T) @ a3  # AT(11)


# 2.4 The chain


@AT.equation("AT 2.4", gives="GN")
def AT_chain_moment(
    m2N: Text, m2N1: Text, nuN: Text, lamN: Text, r2N: Text, r2N1: Text, a2Nm1: Text, a2N1: Text
) -> Text:
    """Angular momentum of the last body of a chain about its pin, particle 2N-1."""
    first, last = _spin(m2N, m2N1, nuN, lamN, r2N, r2N1)
    return first @ a2Nm1 + last @ a2N1


@AT.equation("AT 2.4", gives="alongN", left=lambda r2N1, a2Nm1, a2N1: r2N1.T @ (a2N1 - a2Nm1))
def AT_chain_distance(v2N1: Text) -> Text:
    """The length of the last body at acceleration level."""
    return -(v2N1.T @ v2N1)


@AT.equation("AT 2.4", gives="F_j")
def AT_chain_force(F_next: Text, R_j: Text) -> Text:
    """Momentum of everything from body j on: what is beyond, and the body's own by AT(10)."""
    return F_next + R_j


@AT.equation("AT 2.4", gives="N_j")
def AT_chain_moment_of_all(N_next: Text, r_j: Text, F_next: Text, G_j: Text) -> Text:
    """Angular momentum of everything from body j on about its pin: the row beyond, moved there, and AT(11).

    The pin carries no moment but its drive's: `N_j` is the moment of the loads on the bodies j to N and of that drive.
    """
    return N_next + moment(r_j, F_next) + G_j
