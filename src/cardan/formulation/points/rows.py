"""The equations of a planar mechanism's points with every constraint written out.

    M x'' + J^T lam = f        J x'' = gamma        phi = 0

`x` are the points that describe the mechanism: one, Q, of a link on a pin, since P is a point of the link below; two of
a link on a slide or floating. `M` is constant. A `PlanarRow` is a constraint as the forces with which it acts: on
links, at a place `(nu, lam)` of their line, with a couple. The same forces give its row of `J` and its column in the
recursion.

Equations: AT(4), AT(6), AT(7), AT(9), AT(12).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cardan.algebra.free_number import nominal
from cardan.algebra.matrix import Matrix, Scalar, as_graph, constant, dot, vector
from cardan.algebra.plane import across, carried, invariants, moment
from cardan.formulation.kinematics import Kinematics
from cardan.formulation.measured_joint import dual
from cardan.formulation.points.motion import Moving, PlanarMotion
from cardan.formulation.points.recursion import Answer, Lent, PointLoads
from cardan.lazy import cached_property
from cardan.model.model import Model
from cardan.model.plane import Line, PlanarCut, PlanarLink, PlanarModel, placed
from cardan.model.row import RowLabel
from cardan.model.tree import GROUND

Place = tuple[Scalar, Scalar]
Act = tuple[int, Matrix, Place, Matrix, Scalar]  # link, force, where on its line, from P, couple


@dataclass(frozen=True)
class PlanarRow:
    """One constraint: its unit forces, `gamma`, `beta` and the residual `phi`.

    `stretch` is a link whose distance it keeps. `pin` is the cut joint of which it is one of two rows, along x and y.
    """

    label: RowLabel
    acts: tuple[Act, ...]
    gamma: Scalar
    phi: Scalar
    beta: Scalar = 0.0
    stretch: int | None = None
    pin: int | None = None


@dataclass(frozen=True)
class Coordinates:
    """The points that describe a mechanism: for each link, P and d as `matrix @ x + number`."""

    planar: PlanarModel

    @cached_property
    def own(self) -> list[slice]:
        """Where each link's points are in x: Q, or P and Q."""
        places, n = [], 0
        for link in self.planar.links:
            size = {"pin": 2, "rigid": 0}.get(link.role, 4)
            places.append(slice(n, n + size))
            n += size
        return places

    @property
    def n(self) -> int:
        """Length of x."""
        return self.own[-1].stop if self.own else 0

    @cached_property
    def maps(self) -> dict[int, tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]]:
        """P's matrix and number, d's matrix and number, of every link and the ground."""
        none = np.zeros((2, self.n))
        found = {GROUND: (none, np.zeros(2), none, np.array([1.0, 0.0]))}
        for i, link in enumerate(self.planar.links):
            unit = np.eye(self.n)[self.own[i]]
            if link.role in ("pin", "rigid"):
                P, p, d, e = found[link.parent]
                Z = turning(link.at)
                P, p = P + Z @ d, p + Z @ e  # AT(7)
                found[i] = (P, p, unit - P, -p) if link.role == "pin" else (P, p, *self._kept(link, d, e))
            else:
                found[i] = (unit[:2], np.zeros(2), unit[2:] - unit[:2], np.zeros(2))
        return found

    def _kept(self, link: PlanarLink, d: np.ndarray, e: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The line of a rigid link, at a fixed angle to its parent's."""
        ratio = link.line.length / self.planar.line(link.parent).length
        Z = turning((ratio * np.cos(link.offset), ratio * np.sin(link.offset)))
        return Z @ d, Z @ e

    @cached_property
    def M(self) -> np.ndarray:
        """The constant mass matrix (n, n)."""
        M = np.zeros((self.n, self.n))
        for i, link in enumerate(self.planar.links):
            P, _, d, _ = self.maps[i]
            cross = P.T @ turning(link.first) @ d
            M = M + link.mass * P.T @ P + cross + cross.T + link.inertia / link.line.length**2 * d.T @ d
        return (M + M.T) / 2

    def inertia(self, lent: Lent) -> np.ndarray:
        """What mass at P and inertia about it, by link, add to the mass matrix (n, n)."""
        M = np.zeros((self.n, self.n))
        for i, (mass, inertia) in lent.items():
            P, _, d, _ = (nominal(x) for x in self.maps[i])
            M = M + mass * P.T @ P + inertia / self.planar.links[i].line.length ** 2 * d.T @ d
        return M

    def ends(self, x: Matrix, moving: bool = False) -> list[tuple[Matrix, Matrix]]:
        """P and Q of every link at x; of rates or accelerations if `moving`."""
        result = []
        for i in range(len(self.planar.links)):
            P, p, d, e = self.maps[i]
            start = constant(P) @ x + (0 if moving else constant(p))
            result.append((start, start + constant(d) @ x + (0 if moving else constant(e))))
        return result

    def points(self, ends: list[tuple[Matrix, Matrix]]) -> Matrix:
        """X, or its rates or accelerations, from those of P and Q of every link."""
        import casadi as ca

        parts = []
        for link, (P, Q) in zip(self.planar.links, ends, strict=True):
            parts += {"pin": [Q], "rigid": []}.get(link.role, [P, Q])
        return ca.vertcat(*parts) if parts else ca.SX(0, 1)

    def work(self, motion: PlanarMotion, acts: Any) -> Matrix:
        """Row (1, n) of the work of forces along x; a couple turns `d`."""
        import casadi as ca

        row = ca.SX(1, self.n)
        for i, force, (nu, lam), _, couple in acts:
            if i == GROUND:
                continue
            d, L = motion.links[i].d, self.planar.links[i].line.length
            on_d = carried(nu, -lam, force) + couple / L**2 * across(d)
            P, _, D, _ = self.maps[i]
            row = row + force.T @ constant(P) + on_d.T @ constant(D)
        return row


def turning(place: tuple[float, float]) -> np.ndarray:
    """`nu + lam K x` as a matrix (2, 2)."""
    return np.array([[place[0], -place[1]], [place[1], place[0]]])


def link_rows(model: Model, planar: PlanarModel, motion: PlanarMotion, i: int) -> list[PlanarRow]:
    """Constraints of a tree's link: its distance, and what its slide holds."""
    link, b = planar.links[i], motion.links[i]
    if link.role == "rigid":
        return []
    p = motion.carrier(link.parent)
    zero = type(b.P)(2, 1)
    stretch = (dot(b.d, b.d) - link.line.length**2) / 2  # AT(4)
    label = RowLabel(f"body {link.name!r}", f"{link.name}: half the square of its length", "m^2")
    acts = ((i, b.d, (1, 0), b.d, 0), (i, -b.d, (0, 0), zero, 0))
    distance = PlanarRow(label, acts, -dot(b.dd, b.dd), stretch, stretch=i)  # AT(6),(12)
    if link.role != "slide":
        return [distance]
    name = model.joints[link.joint].name
    return [distance, *_slide_rows(planar, motion, link, name, (link.parent, i), b.P, (0, 0), p, b.u[0])]


def cut_rows(model: Model, planar: PlanarModel, motion: PlanarMotion, cut: PlanarCut) -> list[PlanarRow]:
    """Constraints of a cut joint: its two sides' points stay together, or on a line, and lines keep their angle."""
    p, c, name = motion.carrier(cut.parent), motion.carrier(cut.child), model.joints[cut.joint].name
    F, M = p.P + carried(*cut.at, p.d), c.P + carried(*cut.child_at, c.d)
    if cut.role == "slide":
        u = carried(*cut.slide[-1], p.d)
        return _slide_rows(planar, motion, cut, name, (cut.parent, cut.child), M, cut.child_at, p, u)
    rows = []
    child, parent = (cut.child_at, M - c.P), (cut.at, F - p.P)
    for k in range(2) if cut.role in ("pin", "rigid") else ():
        e = vector(*(type(F)(float(k == m)) for m in range(2)))
        acts = ((cut.child, e, *child, 0), (cut.parent, -e, *parent, 0))
        label = RowLabel(f"joint {name!r}", f"{name}: force {'xy'[k]} of the plane", "m")
        rows.append(PlanarRow(label, acts, type(F)(1, 1), (M - F)[k], pin=cut.joint))
    if cut.role == "rigid":
        rows.append(_angle_row(planar, motion, name, (cut.parent, cut.child), cut.offset))
    return rows


def _slide_rows(
    planar: PlanarModel, motion: PlanarMotion, joint: PlanarLink | PlanarCut, name: str, ends: tuple[int, int],
    M: Matrix, place: Place, p: Moving, u: Matrix,
) -> list[PlanarRow]:  # fmt: skip
    """A point of the child stays on a line of the parent along u, and the angle between the links is constant."""
    parent, child = ends
    c, n = motion.carrier(child), across(u)
    on_parent = invariants(M - p.P, p.d)
    slip = dot(u, c.Pd + carried(*place, c.dd) - p.Pd - carried(*on_parent, p.dd))
    away = dot(n, M - p.P - carried(*joint.at, p.d))
    label = RowLabel(f"joint {name!r}", f"{name}: force across the slide", "m")
    acts = ((child, n, place, M - c.P, 0), (parent, -n, on_parent, M - p.P, 0))
    return [PlanarRow(label, acts, 2 * p.w * slip, away), _angle_row(planar, motion, name, ends, joint.offset)]


def _angle_row(planar: PlanarModel, motion: PlanarMotion, name: str, ends: tuple[int, int], offset: float) -> PlanarRow:
    """The lines of two links keep their angle: residual is twice the tangent of half of what it differs by."""
    parent, child = ends
    size = planar.line(parent).length * planar.line(child).length
    p, c = motion.carrier(parent), motion.carrier(child)
    ahead = carried(np.cos(offset) / size, np.sin(offset) / size, p.d)
    zero = type(p.P)(2, 1)
    phi = 2 * moment(ahead, c.d) / (1 + dot(ahead, c.d) + 1e-12)
    label = RowLabel(f"joint {name!r}", f"{name}: moment", "rad")
    acts = ((child, zero, (0, 0), zero, 1), (parent, zero, (0, 0), zero, -1))
    return PlanarRow(label, acts, type(zero)(1, 1), phi)


def freedom(planar: PlanarModel, motion: PlanarMotion, j: int, k: int) -> tuple[Act, ...]:
    """Unit force along coordinate k of a joint, of the tree or cut; its work is the coordinate's second rate."""
    for i, link in enumerate(planar.links):
        if link.joint == j:
            p, b = motion.carrier(link.parent), motion.links[i]
            u, turn = b.u[k], link.turn[k]
            if link.backwards and link.role == "float":
                child, parent = invariants(b.shift, b.d), link.at
                return ((i, -u, child, b.shift, turn), (link.parent, u, parent, carried(*parent, p.d), -turn))
            arm = b.P - p.P
            return ((i, u, (0, 0), 0 * u, turn), (link.parent, -u, invariants(arm, p.d), arm, -turn))
    cut = next(cut for cut in planar.cuts if cut.joint == j)
    p, c = motion.carrier(cut.parent), motion.carrier(cut.child)
    u, turn = carried(*cut.slide[k], p.d), cut.turn[k]
    arm = carried(*cut.child_at, c.d)
    away = c.P + arm - p.P
    return ((cut.child, u, cut.child_at, arm, turn), (cut.parent, -u, invariants(away, p.d), away, -turn))


def as_loads(acts: Any, size: Scalar = 1, loads: PointLoads | None = None) -> PointLoads:
    """Forces of a row as loads on the links."""
    loads = PointLoads() if loads is None else loads
    for i, force, _, arm, couple in acts:
        if i != GROUND:
            loads.add(i, size * force, arm, size * couple)
    return loads


def along(motion: PlanarMotion, answer: Answer, acts: Any) -> Matrix:
    """Work of a row's forces along accelerations: what `gamma` is compared with."""
    total = type(motion.ground.P)(1, 1)
    for i, force, _, arm, couple in acts:
        b = motion.carrier(i)
        a = answer.a[i] + answer.y[i] * across(arm) - b.w2 * arm  # AT(9)
        total = total + dot(force, a) + couple * answer.y[i]
    return total


# Drives of joints: the forces with which a joint's coordinates act on the two links that it connects. A coordinate that
# is an angle or a shift in the plane acts with a unit couple or force. Of any other the drive is the wrench `W tau` at
# the frame M, with `W^T S = 1`, and its part in the plane is what counts.

Sized = tuple[tuple[Act, ...], Scalar]


def tree_drive(planar: PlanarModel, motion: PlanarMotion, i: int, q: Matrix, tau: Matrix) -> list[Sized]:
    """Forces of the joint that carries link i, at its coordinates q, and how large they are."""
    link = planar.links[i]
    if link.kind is None:
        return [(freedom(planar, motion, link.joint, k), tau[k]) for k in range(tau.shape[0])]
    wrench = dual(as_graph(link.kind.S(q), q)) @ tau
    return [_pair(motion, (link.parent, i), link.line, (0, 0), wrench)]


def cut_drive(kin: Kinematics, planar: PlanarModel, motion: PlanarMotion, cut: PlanarCut, tau: Matrix) -> list[Sized]:
    """The same of a joint that closes a loop."""
    if cut.simple:
        return [(freedom(planar, motion, cut.joint, k), tau[k]) for k in range(tau.shape[0])]
    joint = kin.model.joints[cut.joint]
    R = constant(placed(kin.model, joint.child, joint.child_at)[1].rotation)
    wrench = kin.measured(cut.joint).rows.W @ tau
    turned = type(wrench)(6, 1)
    turned[:3], turned[3:] = R @ wrench[:3], R @ wrench[3:]
    return [_pair(motion, (cut.parent, cut.child), planar.line(cut.child), cut.child_at, turned)]


def _pair(motion: PlanarMotion, ends: tuple[int, int], line: Line, place: Place, wrench: Matrix) -> Sized:
    """What a wrench (6,) in the child's components, at a place on its line, does there and backwards on the parent."""
    p, c = (motion.carrier(end) for end in ends)
    x, y, K = (constant(axis) for axis in line.axes)
    force = carried(dot(x, wrench[3:]) / line.length, dot(y, wrench[3:]) / line.length, c.d)
    couple, arm = dot(K, wrench[:3]), carried(*place, c.d)
    away = c.P + arm - p.P
    return ((ends[1], force, place, arm, couple), (ends[0], -force, invariants(away, p.d), away, -couple)), 1


# The forces of cut joints, along the plane's axes or along a link's line. A pin that closes a loop has two rows, along
# the plane's x and y. Where it sits on the line of a link that other loops share, a force along that line has no moment
# about the link's P and does nothing to those loops. So the pair may be turned to the line, `f = lam1 d + lam2 K x d`,
# which leaves fewer forces tied together, and the answer turned back.


@dataclass(frozen=True)
class Closing:
    """Rows to solve for, their unit loads, and what takes their multipliers back to the rows given."""

    rows: list[PlanarRow]
    loads: list[PointLoads]
    back: Callable[[list[Scalar]], list[Scalar]]


def as_given(rows: list[PlanarRow]) -> Closing:
    """The rows as they are."""
    return Closing(rows, [as_loads(row.acts) for row in rows], lambda lam: lam)


def turned(planar: PlanarModel, motion: PlanarMotion, rows: list[PlanarRow]) -> Closing:
    """Rows of cut joints and couplings, those of pins turned to a line where they sit on one."""
    found: list[PlanarRow] = []
    loads: list[PointLoads] = []
    lines: dict[int, Matrix] = {}  # by the first row of a turned pair, the line
    k = 0
    while k < len(rows):
        pair = rows[k : k + 2]
        on_line = _on_line(planar, pair) if len(pair) == 2 and pair[0].pin is not None else None
        if on_line is None or pair[0].pin != pair[1].pin:
            found.append(rows[k])
            loads.append(as_loads(rows[k].acts))
            k += 1
            continue
        lines[k] = motion.links[on_line].d
        for force in (lines[k], across(lines[k])):
            row, load = _turned(planar, motion, pair[0], on_line, force, force is lines[k])
            found.append(row)
            loads.append(load)
        k += 2

    def back(lam: list[Scalar]) -> list[Scalar]:
        forces = list(lam)
        for k, d in lines.items():
            force = lam[k] * d + lam[k + 1] * across(d)
            forces[k], forces[k + 1] = force[0], force[1]
        return forces

    return Closing(found, loads, back)


def _on_line(planar: PlanarModel, pair: list[PlanarRow]) -> int | None:
    """The link on whose line a pin sits; of two the one nearer to the ground, which more loops share."""
    found = [i for i, _, (_, lam), _, _ in pair[0].acts if i != GROUND and isinstance(lam, float | int) and lam == 0]
    return min(found, key=lambda i: _depth(planar, i)) if found else None


def _depth(planar: PlanarModel, i: int) -> int:
    return 0 if i == GROUND else 1 + _depth(planar, planar.links[i].parent)


def _turned(
    planar: PlanarModel, motion: PlanarMotion, row: PlanarRow, on_line: int, force: Matrix, lengthwise: bool
) -> tuple[PlanarRow, PointLoads]:
    """A pin's row along another force, and its loads with the moment on the link of that line as known."""
    loads, acts = PointLoads(), []
    for sign, (i, _, place, arm, _) in zip((1, -1), row.acts, strict=True):
        acts.append((i, sign * force, place, arm, 0))
        if i == on_line:
            moment = 0 if lengthwise else sign * place[0] * planar.links[i].line.length ** 2
            none = type(force)(2, 1)
            loads.add(i, sign * force, none, type(force)(1, 1) + moment)
        else:
            loads.add(i, sign * force, arm)
    return replace(row, acts=tuple(acts)), loads
