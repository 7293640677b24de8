"""Where the points of a planar mechanism are: from the tree's coordinates, from the points, and back to space.

Notation: a link's line runs from P to Q, `d = Q - P`; `Pd`, `dd` are rates; `w` is what `dd = w K x d` says, so that
`|dd|^2 = w^2 |d|^2`; `w2` is its square. `u` are the directions of a joint's coordinates and `shift`, `slip` their sum
with the coordinates and with their rates. All vectors in the plane's axes.

Equations: AT(7), AT(8).
"""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np

from cardan.algebra.matrix import (
    Matrix,
    Scalar,
    as_graph,
    constant,
    cos,
    dot,
    eye,
    segment,
    sin,
    snap,
    vector,
    where,
    zeros,
)
from cardan.algebra.plane import across, carried, moment
from cardan.formulation.recursion import Nodes
from cardan.model.plane import PlanarLink, PlanarModel
from cardan.model.tree import GROUND

IN_PLANE = 1e-6  # what the cosine of a link's tilt may differ from 1


@dataclass(frozen=True)
class Moving:
    """A link's two points and their rates, and its joint's directions."""

    P: Matrix
    d: Matrix
    Pd: Matrix
    dd: Matrix
    w: Scalar
    w2: Scalar
    u: tuple[Matrix, ...] = ()
    shift: Any = None
    slip: Any = None
    q: Any = None
    v: Any = None


@dataclass(frozen=True)
class PlanarMotion:
    """Every link, and the ground."""

    links: list[Moving]
    ground: Moving

    def carrier(self, i: int) -> Moving:
        """A link, or the ground for -1."""
        return self.ground if i == GROUND else self.links[i]


def from_tree(planar: PlanarModel, q: Matrix, v: Matrix) -> PlanarMotion:
    """The points of all links from coordinates and rates of the tree, outwards."""
    motion = PlanarMotion([], _ground(q))
    angle: dict[int, Scalar | None] = {GROUND: 0.0}  # to the ground's x, or None where no coordinate is an angle
    for i, link in enumerate(planar.links):
        p, L = motion.carrier(link.parent), link.line.length
        own, rate = segment(q, link.q), segment(v, link.v)
        if link.kind is not None:
            motion.links.append(_measured(planar, link, p, own, rate))
            angle[i] = None
            continue
        turned: Any = link.offset
        w = p.w
        for k, turn in enumerate(link.turn):
            if turn:
                turned, w = turned + turn * own[k], w + turn * rate[k]
        below = angle[link.parent]
        own_angle: Scalar | None = None if below is None else below + turned
        angle[i] = own_angle
        if link.role == "slide":
            d = _along(planar, link, p)
        elif own_angle is None:
            ratio = L / planar.line(link.parent).length
            d = carried(ratio * cos(turned), ratio * sin(turned), p.d)
        else:
            d = L * vector(cos(own_angle), sin(own_angle))
        C = p.P + carried(*link.at, p.d)  # AT(7)
        Cd = p.Pd + carried(*link.at, p.dd)  # AT(8)
        backwards = link.backwards and link.role == "float"
        u = tuple(carried(*place, d if backwards else p.d) for place in link.slide)
        shift, slip = _sum(own, u, q), _sum(rate, u, q)
        P, Pd = C + shift, Cd + slip + p.w * across(shift)
        if backwards:
            P, Pd = C - shift, Cd - slip - w * across(shift)
        motion.links.append(Moving(P, d, Pd, w * across(d), w, w**2 if link.turn != (0.0,) else p.w2, u, shift, slip))
    return motion


def _measured(planar: PlanarModel, link: PlanarLink, p: Moving, q: Matrix, v: Matrix) -> Moving:
    """A link whose joint has other coordinates than the plane's, from where its kind says that M is in F.

    A state that is not in the plane gives NaN.
    """
    kind, line, Lp = link.kind, link.line, planar.line(link.parent).length
    assert kind is not None
    x, y, K = (constant(axis) for axis in line.axes)
    ahead, left, up = (constant(axis) for axis in link.seen)
    R = as_graph(kind.E(q), q).T if kind.E is not None else eye(3, q)
    r = as_graph(kind.r(q), q) if kind.r is not None else zeros(3, None, q)
    C, Cd = p.P + carried(*link.at, p.d), p.Pd + carried(*link.at, p.dd)  # AT(7),(8)
    u = tuple(carried(*place, p.d) for place in link.slide)
    if link.role in ("slide", "rigid"):
        d, w = _along(planar, link, p), p.w
        turned = np.cos(link.offset) * dot(ahead, R @ x) + np.sin(link.offset) * dot(left, R @ x)
    else:
        ratio, turned = line.length / Lp, 1
        d = carried(ratio * dot(ahead, R @ x), ratio * dot(left, R @ x), p.d)
        w = p.w + dot(K, (as_graph(kind.S(q), q) @ v)[:3])
    d = d / where(_least(dot(up, R @ K), turned) > 1 - IN_PLANE, 1.0, np.nan)
    shift, slip = zeros(2, None, p.P), zeros(2, None, p.P)
    if link.role in ("slide", "float"):
        shift = carried(dot(ahead, r) / Lp, dot(left, r) / Lp, p.d)
        V = (as_graph(kind.S(q), q) @ v)[3:]
        slip = carried(dot(x, V) / line.length, dot(y, V) / line.length, d)
    P, Pd = C + shift, Cd + slip + p.w * across(shift)
    return Moving(P, d, Pd, w * across(d), w, w**2 if link.role in ("pin", "float") else p.w2, u, shift, slip, q, v)


def _least(a: Scalar, b: Scalar) -> Scalar:
    import casadi as ca

    return ca.fmin(a, b) if not isinstance(b, int) else a


def from_points(
    planar: PlanarModel, ends: list[tuple[Matrix, Matrix]], rates: list[tuple[Matrix, Matrix]]
) -> PlanarMotion:
    """The same from P and Q of every link, and their rates."""
    motion = PlanarMotion([], _ground(ends[0][0]))
    for i, link in enumerate(planar.links):
        p = motion.carrier(link.parent)
        (P, Q), (Pd, Qd) = ends[i], rates[i]
        d, dd = Q - P, Qd - Pd
        w = moment(d, dd) / link.line.length**2
        backwards = link.backwards and link.role == "float"
        u = tuple(carried(*place, d if backwards else p.d) for place in link.slide)
        C, Cd = p.P + carried(*link.at, p.d), p.Pd + carried(*link.at, p.dd)  # AT(7),(8)
        shift, slip = P - C, Pd - Cd - p.w * across(P - C)
        if backwards:
            shift, slip = C - P, Cd - Pd - w * across(C - P)
        motion.links.append(Moving(P, d, Pd, dd, w, w**2, u, shift, slip))
    return motion


def in_space(planar: PlanarModel, motion: PlanarMotion) -> Nodes:
    """Pose and twist of every link in space, for what is written there: the links stay at their height."""
    links = []
    ground = constant(planar.ground.axes.T)
    heights = {GROUND: 0.0}
    for i, link in enumerate(planar.links):
        b = motion.links[i]
        heights[i] = heights[link.parent] + link.rise
        e = b.d / link.line.length
        axes = constant(link.line.axes)
        R = ground @ _turned(e) @ axes
        r0 = ground @ vector(b.P[0], b.P[1], heights[i])
        turn = axes.T @ vector(0, 0, b.w)
        links.append(SimpleNamespace(R=R, r0=r0, v=_pair(turn, R.T @ (ground @ vector(b.Pd[0], b.Pd[1], 0)))))
    like = motion.ground.P
    still = SimpleNamespace(R=type(like).eye(3), r0=type(like)(3, 1), v=type(like)(6, 1))
    return Nodes(links, [], still)


def _turned(e: Matrix) -> Matrix:
    """Turn about the normal that takes x to `e`."""
    import casadi as ca

    R = ca.SX(3, 3)
    R[0, 0], R[0, 1], R[1, 0], R[1, 1], R[2, 2] = e[0], -e[1], e[1], e[0], 1
    return R


def _pair(a: Matrix, b: Matrix) -> Matrix:
    import casadi as ca

    return ca.vertcat(a, b)


def _ground(like: Matrix) -> Moving:
    zero = type(like)(2, 1)
    return Moving(zero, constant(np.array([1.0, 0.0])), zero, zero, type(like)(1, 1), type(like)(1, 1))


def _along(planar: PlanarModel, link: PlanarLink, p: Moving) -> Matrix:
    """The line of a link on a slide: at a fixed angle to its parent's."""
    scale = link.line.length / planar.line(link.parent).length
    c, s = snap(np.array([np.cos(link.offset), np.sin(link.offset)]), 1e-12)
    return carried(scale * c, scale * s, p.d)


def _sum(x: Matrix, u: tuple[Matrix, ...], like: Matrix) -> Matrix:
    total = type(like)(2, 1)
    for k, direction in enumerate(u):
        total = total + x[k] * direction
    return total
