"""Accelerations of a planar mechanism's points by a recursion from tip to base.

Notation: `a` is the acceleration of a link's point P, less gravity; its other point has `a + d''`, and the distance
between them leaves `d'' = -w^2 d + y K x d`, with `y` the one unknown number. `h = m (rG - P)` is the first moment of
mass, `I0` the inertia about P. Everything beyond a joint together asks for a force F and a moment N about P:

    F = A a + B y + p        N = B . a + D y + n

The rows of a link are those of the bodies beyond it plus `(Pj - P(j-1)) x` their momentum's rate plus its own. A pin
carries no moment but its drive's, `N = tau`: that gives `y`, and what is left is asked of the link below. A slide
carries no force along its direction `u` but its drive's, `u . F = tau`. External forces and couples enter `p` and
`n` as they are.

Equations: AT(6), AT(9), AT(10), AT(11), AT(12).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cardan.algebra.linsolve import ldl_factor, ldl_solve
from cardan.algebra.matrix import Matrix, Scalar, block, constant, dot, eye, mirrored, snap, stack, vector
from cardan.algebra.number import is_free, scalar
from cardan.algebra.planar import across, carried
from cardan.formulation.points_motion import Motion, Moving
from cardan.model.graph import GROUND
from cardan.model.planar import PlanarLink, PlanarModel

MOST = 2.0  # of a link's mass is given to its next pin at most: more would cost digits


@dataclass
class Beyond:
    """What a link and all beyond it ask for, and what they ask of the link below through the joint (`shown`)."""

    A: Matrix
    B: Matrix
    D: Scalar
    h: Matrix
    e: Matrix  # K x (P - P of the link below)
    A_shown: Matrix = None
    B_shown: Matrix = None
    pivot: Any = None
    U: Matrix = None
    V: Matrix = None  # U over the pivot
    c: Scalar = None


@dataclass
class PointLoads:
    """What acts on the links: force and couple about P on each, and drives of joint coordinates."""

    forces: dict[int, Matrix] = field(default_factory=dict)
    couples: dict[int, Scalar] = field(default_factory=dict)
    drives: dict[int, Matrix] = field(default_factory=dict)

    def add(self, link: int, force: Matrix, arm: Matrix, couple: Scalar = 0) -> None:
        """A force at `arm` from P, and a couple."""
        if link == GROUND:
            return
        turn = couple + dot(across(arm), force)
        self.forces[link] = self.forces[link] + force if link in self.forces else force
        self.couples[link] = self.couples[link] + turn if link in self.couples else turn


@dataclass(frozen=True)
class Pushed:
    """What loads do at each joint.

    `force` is the part along the joint's freedom of what is asked, `free` the same over the inertia there: the
    acceleration if the link below stood still. `biases` are what velocities add. The response of one load along another
    is the sum of `force` of the one times `free` of the other.
    """

    force: list[Matrix]
    free: list[Matrix]
    biases: list[Matrix]

    def along(self, other: Pushed) -> Scalar:
        """Response to another load along this one."""
        total = 0
        for force, free in zip(self.force, other.free, strict=True):
            if not (force.is_zero() or free.is_zero()):
                total = total + dot(force, free)
        return total

    def less(self, others: list[Pushed], sizes: Matrix) -> Pushed:
        """These loads less others times their sizes, as far as `outwards` needs them."""
        free = list(self.free)
        for k, other in enumerate(others):
            free = [own - sizes[k] * part for own, part in zip(free, other.free, strict=True)]
        return Pushed(self.force, free, self.biases)


@dataclass(frozen=True)
class Answer:
    """Accelerations: `a` and `y` of every link, `qdd` of every joint (a column)."""

    a: dict[int, Matrix]
    y: dict[int, Scalar]
    qdd: list[Matrix]


def gather(planar: PlanarModel, motion: Motion) -> list[Beyond]:
    """Inwards, once for all loads: inertias of everything beyond each joint."""
    like = motion.ground.P
    found: list[Beyond] = []
    own, pins = unified_masses(planar)
    for link, b, (mass, first, inertia) in zip(planar.links, motion.links, own, strict=True):
        h = carried(*first, b.d)
        e = across(b.P - motion.carrier(link.parent).P) if link.role != "pin" else _arm(link, motion)
        found.append(Beyond(mass * eye(2, like), across(h), inertia * type(like)(1), h, e))  # AT(10),(11)
    for i in reversed(range(len(found))):
        link, s = planar.links[i], found[i]
        if link.role == "float":
            s.pivot = ldl_factor(block([[s.A, s.B], [s.B.T, s.D]]))
            continue
        if link.role == "pin":
            s.pivot, s.U = 1 / s.D, s.B
            s.V = s.U * s.pivot
            A = mirrored(s.A - s.V @ s.U.T) + pins[i] * eye(2, like)
            B, D = type(like)(2, 1), type(like)(1, 1)
        else:
            u = motion.links[i].u[0]
            s.U, s.c = s.A @ u, dot(u, s.B)
            s.pivot = 1 / dot(u, s.U)
            s.V = s.U * s.pivot
            A = mirrored(s.A - s.V @ s.U.T)
            B, D = s.B - s.V * s.c, s.D - s.pivot * s.c * s.c
        s.A_shown, s.B_shown = A, B
        if link.parent != GROUND:
            below, T = found[link.parent], A @ s.e
            below.A = below.A + A
            below.B = below.B + B + T
            below.D = below.D + D + 2 * dot(s.e, B) + dot(s.e, T)
    return found


def unified_masses(planar: PlanarModel) -> tuple[list[tuple[float, tuple[float, float], float]], list[float]]:
    """Mass, first moment and inertia of every link when particles at pins are taken out, and the mass at each pin.

    The point of a pin is a particle of both links (AT, end of section 2.1). All of a link's mass may sit at its own
    pin, about which it has neither moment nor inertia; and a link gives its next pin so much that its first moment
    along the way there vanishes. Masses may come out negative.
    """
    pins = [0.0] * len(planar.links)
    own = []
    for i, link in enumerate(planar.links):
        mass, first, inertia = link.mass, np.array(link.first), link.inertia
        for c, child in enumerate(planar.links):
            if child.parent != i or child.role != "pin" or is_free(np.array(child.at)):
                continue  # a pin whose place is free may come to lie on P
            square = float(np.dot(child.at, child.at))
            if square > 0:
                part = scalar(first @ child.at) / square
                if abs(part) <= MOST * link.mass:
                    pins[c] += part
                    mass, first = mass - part, snap(first - part * np.array(child.at), 1e-15)
                    inertia = inertia - part * square * link.line.length**2
                    break
        if link.role == "pin":
            pins[i] += mass
            mass = 0.0
        own.append((mass, (scalar(first[0]), scalar(first[1])), inertia))
    return own, pins


def inwards(planar: PlanarModel, motion: Motion, found: list[Beyond], loads: PointLoads, moving: bool = True) -> Pushed:
    """From tip to base: what loads do at each joint; with `moving` False loads alone, without velocities."""
    like = motion.ground.P
    zero, none = type(like)(2, 1), type(like)(1, 1)
    p = [-loads.forces.get(i, zero) for i in range(len(found))]
    n = [-loads.couples.get(i, none) for i in range(len(found))]
    biases: list[Matrix] = []
    for i, s in enumerate(found):
        biases.append(_bias(planar.links[i], motion, i, s) if moving else zero)
        if moving:
            p[i] = p[i] - motion.links[i].w2 * s.h
    force: list[Matrix] = [none] * len(found)
    free: list[Matrix] = [none] * len(found)
    for i in reversed(range(len(found))):
        link, s = planar.links[i], found[i]
        tau = loads.drives.get(i, type(like)(len(link.turn), 1))
        if link.role == "float":
            F, N = _float_drive(link, motion.links[i], tau, like)
            force[i] = stack(F - p[i], N - n[i])
            free[i] = ldl_solve(s.pivot, force[i])
            p_shown, n_shown, B = F, N, zero
        elif link.role == "pin":
            drive = link.turn[0] * tau
            force[i] = drive - n[i]  # AT(11) of all beyond
            free[i] = s.pivot * force[i]
            p_shown, n_shown, B = p[i] + s.U * free[i], drive, zero
        else:
            force[i] = tau - dot(motion.links[i].u[0], p[i])  # AT(10) of all beyond, along the slide
            free[i] = s.pivot * force[i]
            p_shown, n_shown, B = p[i] + s.U * free[i], n[i] + s.c * free[i], s.B_shown
        if link.parent != GROUND:
            if moving and link.role != "float":
                p_shown, n_shown = p_shown + s.A_shown @ biases[i], n_shown + dot(B, biases[i])
            p[link.parent] = p[link.parent] + p_shown
            n[link.parent] = n[link.parent] + n_shown + dot(s.e, p_shown)
    return Pushed(force, free, biases)


def outwards(planar: PlanarModel, motion: Motion, found: list[Beyond], pushed: Pushed) -> Answer:
    """From base to tip: accelerations of the points, and of the joints' coordinates."""
    a: dict[int, Matrix] = {GROUND: -constant(planar.gravity)}
    y: dict[int, Scalar] = {GROUND: type(motion.ground.P)(1, 1)}
    qdd: list[Matrix] = []
    for i, s in enumerate(found):
        link, free = planar.links[i], pushed.free[i]
        carried_on = a[link.parent] + pushed.biases[i] + y[link.parent] * s.e  # AT(9)
        if link.role == "pin":
            a[i] = carried_on
            y[i] = free - dot(s.V, a[i])
            qdd.append(link.turn[0] * (y[i] - y[link.parent]))
        elif link.role == "slide":
            rate = free - dot(s.V, carried_on) - s.pivot * s.c * y[link.parent]
            a[i], y[i] = carried_on + rate * motion.links[i].u[0], y[link.parent]
            qdd.append(rate)
        else:
            a[i], y[i] = free[:2], free[2]
            qdd.append(float_rates(link, motion, i, a, y))
    return Answer(a, y, qdd)


def float_rates(link: PlanarLink, motion: Motion, i: int, a: dict[int, Matrix], y: dict[int, Scalar]) -> Matrix:
    """Second rates of a floating joint's coordinates from the accelerations on its two sides."""
    b, p = motion.links[i], motion.carrier(link.parent)
    if link.backwards:
        arm = carried(*link.at, p.d)
        C = a[link.parent] - p.w2 * arm + y[link.parent] * across(arm)
        left = C - a[i] + b.w2 * b.shift - y[i] * across(b.shift) - 2 * b.w * across(b.slip)
    else:
        arm = b.P - p.P
        left = a[i] - a[link.parent] + p.w2 * arm - y[link.parent] * across(arm) - 2 * p.w * across(b.slip)
    turn = link.turn[2] * (y[i] - y[link.parent])
    return vector(*(dot(b.u[k], left) for k in range(2)), turn)


def _float_drive(link: PlanarLink, b: Moving, tau: Matrix, like: Matrix) -> tuple[Matrix, Scalar]:
    """Force and moment about P of a floating joint's drives."""
    F = tau[0] * b.u[0] + tau[1] * b.u[1]
    if not link.backwards:
        return F, link.turn[2] * tau[2]
    return -F, link.turn[2] * tau[2] - dot(across(b.shift), F)


def _arm(link: PlanarLink, motion: Motion) -> Matrix:
    """`K x` the way from the parent's P to a pin."""
    return across(carried(*link.at, motion.carrier(link.parent).d))


def _bias(link: PlanarLink, motion: Motion, i: int, s: Beyond) -> Matrix:
    """What velocities add to the acceleration of P beyond the link below."""
    p, b = motion.carrier(link.parent), motion.links[i]
    bias = p.w2 * across(s.e)  # -w^2 (P - P below): AT(6),(12)
    return bias + 2 * p.w * across(b.slip) if link.role == "slide" else bias
