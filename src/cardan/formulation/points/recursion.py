"""Accelerations of a planar mechanism's points by a recursion from tip to base.

Notation: `a` is the acceleration of a link's point P, less gravity; its other point has `a + d''`, and the distance
between them leaves `d'' = -w^2 d + y K x d`, with `y` the one unknown number. `h = m (rG - P)` is the first moment of
mass, `I0` the inertia about P. What P would have if no joint accelerated, `still`, is known beforehand; `a` below is
what it has besides. Everything beyond a joint together asks for a force F and a moment N about P:

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

from cardan.algebra.free_number import is_free, scalar
from cardan.algebra.linsolve import ldl_factor, ldl_solve
from cardan.algebra.matrix import Matrix, Scalar, as_graph, block, constant, dot, eye, mirrored, snap, stack, vector
from cardan.algebra.plane import across, carried
from cardan.formulation.measured_joint import dual
from cardan.formulation.points.motion import Moving, PlanarMotion
from cardan.model.plane import PlanarLink, PlanarModel
from cardan.model.tree import GROUND

Lent = dict[int, tuple[float, float]]  # by link: mass (kg) at P and inertia (kg m^2) about it
MOST = 2.0  # of a link's mass is given to its next pin at most: more would cost digits


@dataclass
class Beyond:
    """What a link and all beyond it ask for, and what they ask of the link below through the joint (`shown`)."""

    A: Matrix
    B: Matrix
    D: Matrix
    h: Matrix
    e: Matrix  # K x (P - P of the link below)
    mass: float = 0.0
    pin: float = 0.0  # mass of particles at the joint itself
    pivot: Any = None
    U: Any = None
    V: Any = None  # U over the pivot
    c: Any = None


@dataclass
class PointLoads:
    """What acts on the links: force and couple about P on each, and drives of joint coordinates."""

    forces: dict[int, Matrix] = field(default_factory=dict)
    couples: dict[int, Matrix] = field(default_factory=dict)
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
    acceleration if the link below stood still. The response of one load along another is the sum of `force` of the
    one times `free` of the other.
    """

    force: list[Matrix]
    free: list[Matrix]

    def along(self, other: Pushed) -> Scalar:
        """Response to another load along this one."""
        total: Scalar = 0
        for force, free in zip(self.force, other.free, strict=True):
            if force.nnz() and free.nnz():
                total = total + dot(force, free)
        return total

    def plus(self, others: list[Pushed], sizes: list[Scalar]) -> Pushed:
        """These loads and others times their sizes."""
        force, free = list(self.force), list(self.free)
        for other, size in zip(others, sizes, strict=True):
            for i, part in enumerate(other.free):
                if part.nnz():
                    force[i], free[i] = force[i] + size * other.force[i], free[i] + size * part
        return Pushed(force, free)


@dataclass(frozen=True)
class Answer:
    """Accelerations: `a` and `y` of every link, `qdd` of every joint (a column)."""

    a: dict[int, Matrix]
    y: dict[int, Matrix]
    qdd: list[Matrix]


def gather(planar: PlanarModel, motion: PlanarMotion, lent: Lent | None = None) -> list[Beyond]:
    """Inwards, once for all loads: inertias of everything beyond each joint; `lent` has mass and inertia to add."""
    like = motion.ground.P
    found: list[Beyond] = []
    own, pins = unified_masses(planar)
    for i, (link, b) in enumerate(zip(planar.links, motion.links, strict=True)):
        more = (lent or {}).get(i, (0.0, 0.0))
        mass, inertia = own[i][0] + more[0], own[i][2] + more[1]
        h = carried(*own[i][1], b.d)
        e = across(b.P - motion.carrier(link.parent).P) if link.role in ("slide", "float") else _arm(link, motion)
        A, D = mass * eye(2, like), inertia * type(like)(1)
        found.append(Beyond(A, across(h), D, h, e, mass, pins[i]))  # AT(10),(11)
    for i in reversed(range(len(found))):
        link, s = planar.links[i], found[i]
        if link.role == "float":
            s.pivot = ldl_factor(block([[s.A, s.B], [s.B.T, s.D]]))
            continue
        A, B, D = _shown(link, motion, i, s)
        if link.parent != GROUND:
            below, T = found[link.parent], A @ s.e
            below.A = below.A + A
            below.B = below.B + B + T
            below.D = below.D + D + 2 * dot(s.e, B) + dot(s.e, T)
    return found


def _shown(link: PlanarLink, motion: PlanarMotion, i: int, s: Beyond) -> tuple[Matrix, Matrix, Matrix]:
    """What of A, B, D is left to the link below when the joint gives way."""
    like = motion.ground.P
    if link.role == "rigid":
        return s.A, s.B, s.D
    if link.role == "pin":
        s.pivot, s.U = 1 / s.D, s.B
        s.V = s.U * s.pivot
        return mirrored(s.A - s.V @ s.U.T) + s.pin * eye(2, like), type(like)(2, 1), type(like)(1, 1)
    u = motion.links[i].u[0]
    s.U, s.c = s.A @ u, dot(u, s.B)
    s.pivot = 1 / dot(u, s.U)
    s.V = s.U * s.pivot
    return mirrored(s.A - s.V @ s.U.T), s.B - s.V * s.c, s.D - s.pivot * s.c * s.c


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


def still(planar: PlanarModel, motion: PlanarMotion, found: list[Beyond]) -> dict[int, Matrix]:
    """Acceleration of every P, less gravity, if no joint accelerated; none for a floating link."""
    a: dict[int, Matrix] = {GROUND: -constant(planar.gravity)}
    for i, (link, s) in enumerate(zip(planar.links, found, strict=True)):
        p, b = motion.carrier(link.parent), motion.links[i]
        if link.role == "float":
            a[i] = type(b.P)(2, 1)
            continue
        a[i] = a[link.parent] + p.w2 * across(s.e)  # -w^2 (P - P below): AT(6),(12)
        if link.role == "slide":
            a[i] = a[i] + 2 * p.w * across(b.slip)
    return a


def inwards(
    planar: PlanarModel, motion: PlanarMotion, found: list[Beyond], loads: PointLoads,
    rest: dict[int, Matrix] | None = None,
) -> Pushed:  # fmt: skip
    """From tip to base: what loads do at each joint, with what velocities and gravity ask if `rest` is from `still`."""
    like = motion.ground.P
    zero, none = type(like)(2, 1), type(like)(1, 1)
    p = [-loads.forces.get(i, zero) for i in range(len(found))]
    n = [-loads.couples.get(i, none) for i in range(len(found))]
    if rest is not None:
        for i, s in enumerate(found):
            p[i] = p[i] - motion.links[i].w2 * s.h + s.mass * rest[i]
            n[i] = n[i] + dot(across(s.h), rest[i])
    force: list[Matrix] = [none] * len(found)
    free: list[Matrix] = [none] * len(found)
    for i in reversed(range(len(found))):
        link, s = planar.links[i], found[i]
        tau = loads.drives.get(i, type(like)(3 if link.role == "float" else 1, 1))
        if link.role == "float":
            F, N = float_drive(link, motion.links[i], tau, like) if i in loads.drives else (zero, none)
            force[i] = stack(F - p[i], N - n[i])
            free[i] = ldl_solve(s.pivot, force[i])
            p_shown, n_shown = F, N
        elif link.role == "pin":
            drive = link.turn[0] * tau if i in loads.drives else none
            force[i] = drive - n[i]  # AT(11) of all beyond
            free[i] = s.pivot * force[i]
            p_shown, n_shown = p[i] + s.U * free[i], drive
            p_shown = p_shown + s.pin * rest[i] if rest is not None else p_shown
        elif link.role == "slide":
            force[i] = (tau if i in loads.drives else none) - dot(motion.links[i].u[0], p[i])  # AT(10), along the slide
            free[i] = s.pivot * force[i]
            p_shown, n_shown = p[i] + s.U * free[i], n[i] + s.c * free[i]
        else:
            p_shown, n_shown = p[i], n[i]
        if link.parent != GROUND:
            p[link.parent] = p[link.parent] + p_shown
            n[link.parent] = n[link.parent] + n_shown + dot(s.e, p_shown)
    return Pushed(force, free)


def outwards(
    planar: PlanarModel, motion: PlanarMotion, found: list[Beyond], pushed: Pushed, rest: dict[int, Matrix]
) -> Answer:
    """From base to tip: accelerations of the points, and of the joints' coordinates."""
    like = motion.ground.P
    a: dict[int, Matrix] = {GROUND: type(like)(2, 1)}  # besides those in `rest`
    y: dict[int, Matrix] = {GROUND: type(like)(1, 1)}
    rates: list[Matrix] = []
    for i, s in enumerate(found):
        link, free = planar.links[i], pushed.free[i]
        a[i], y[i], rate = a[link.parent] + y[link.parent] * s.e, y[link.parent], type(like)(1, 1)  # AT(9)
        if link.role == "pin":
            y[i] = free - dot(s.V, a[i])
        elif link.role == "slide":
            rate = free - dot(s.V, a[i]) - s.pivot * s.c * y[link.parent]
            a[i] = a[i] + rate * motion.links[i].u[0]
        elif link.role == "float":
            a[i], y[i] = free[:2], free[2]
        rates.append(rate)
    total = {i: a[i] + rest[i] for i in a}
    return Answer(total, y, [joint_rates(planar, motion, i, total, y, rate) for i, rate in enumerate(rates)])


def joint_rates(
    planar: PlanarModel, motion: PlanarMotion, i: int, a: dict[int, Matrix], y: dict[int, Matrix], rate: Matrix
) -> Matrix:
    """Second rates of a joint's coordinates; `rate` is that of a slide."""
    link = planar.links[i]
    if link.kind is not None:
        return _measured_rates(link, motion, i, a, y, rate)
    if link.role == "pin":
        return link.turn[0] * (y[i] - y[link.parent])
    return rate if link.role == "slide" else float_rates(link, motion, i, a, y)


def _measured_rates(
    link: PlanarLink, motion: PlanarMotion, i: int, a: dict[int, Matrix], y: dict[int, Matrix], rate: Matrix
) -> Matrix:
    """The same for a joint with other coordinates: `S qdd` and its bias are the rate of the twist across the joint."""
    b, p, kind = motion.links[i], motion.carrier(link.parent), link.kind
    assert kind is not None
    shift = rate * b.u[0] if link.role == "slide" else 0 * b.d
    if link.role == "float":
        arm = b.P - p.P
        shift = a[i] - a[link.parent] + p.w2 * arm - y[link.parent] * across(arm) - (b.w + p.w) * across(b.slip)
    x, left, K = (constant(axis) for axis in link.line.axes)
    L = link.line.length
    twist = stack((y[i] - y[link.parent]) * K, dot(b.d, shift) / L * x + dot(across(b.d), shift) / L * left)
    bias = kind.bias(b.q, b.v) if kind.bias is not None else 0
    return dual(as_graph(kind.S(b.q), b.q)).T @ (twist - bias)


def float_rates(link: PlanarLink, motion: PlanarMotion, i: int, a: dict[int, Matrix], y: dict[int, Matrix]) -> Matrix:
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


def float_drive(link: PlanarLink, b: Moving, tau: Matrix, like: Matrix) -> tuple[Matrix, Matrix]:
    """Force and moment about P of a floating joint's drives."""
    F = tau[0] * b.u[0] + tau[1] * b.u[1]
    if not link.backwards:
        return F, link.turn[2] * tau[2]
    return -F, link.turn[2] * tau[2] - dot(across(b.shift), F)


def _arm(link: PlanarLink, motion: PlanarMotion) -> Matrix:
    """`K x` the way from the parent's P to a pin."""
    return across(carried(*link.at, motion.carrier(link.parent).d))
