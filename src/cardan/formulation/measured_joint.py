"""A joint measured between two moving links: its coordinates, its constraint rows, and the forces along both.

Notation: frame F on the parent, M on the child; `R`, `p` the pose of M in F; `v_c`, `v_p` the velocities of child
and parent, both in M components at M's origin; `v_r = v_c - v_p`; `a_c`, `a_p` accelerations likewise. With the
joint's `S` and `T` in M:

    T^T v_r = 0        T^T (a_c - a_p) = gamma = T^T (Sdot qd - v_r x v_c)        phi(R, p) = 0

The second follows by differentiation in M: `a_c - a_p + v_r x v_p` is the rate of `v_r`, `v_r x v_p = v_r x v_c`,
and on the joint's motion `v_r = S qd`, so that `Tdot^T v_r = -T^T Sdot qd`. For a ball joint the rows are
KJ(1)-(3), for a hinge KJ(1) with KJ(5)-(10), in M's axes instead of ground's; with six coordinates a body relative
to its neighbour they are KJ(4),(11)-(16), in `formulation.relative`.

Equations: KJ(1), KJ(2), KJ(3), KJ(5)-(10).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd, lcm, pi
from typing import NamedTuple

from cardan.algebra.linsolve import ldl_factor, ldl_solve
from cardan.algebra.matrix import Matrix, arctan2, as_graph, constant, cos, dot, sin, stack, where, zeros
from cardan.algebra.spatial import Transform, crm, shifted, turned
from cardan.formulation.recursion import Node, Nodes
from cardan.formulation.rows import LinkRows
from cardan.model.joint import Kind
from cardan.model.model import Model
from cardan.model.pose import Pose
from cardan.model.row import joint_labels
from cardan.model.tree import GROUND


@dataclass(frozen=True)
class JointRows:
    """A joint measured between two bodies.

    `T` (6, 6 - nv) and `gamma` make its constraint; `W` (6, nv) and `rate` its coordinates: `W^T (a_c - a_p) = qdd
    + rate`. `q`, `qd` are its own coordinates and rates, `phi` its position residual.
    """

    T: Matrix
    gamma: Matrix
    phi: Matrix
    W: Matrix
    rate: Matrix
    q: Matrix
    qd: Matrix


def joint_rows(kind: Kind, R: Matrix, p: Matrix, v_c: Matrix, v_p: Matrix) -> JointRows:
    """Measure a joint between two moving bodies."""
    q = kind.measure(R, p)
    S, T = as_graph(kind.S(q), R), as_graph(kind.T(q), R)  # T^T v_r = 0: the rate of KJ(1), and KJ(5),(6)
    W = drives_of(kind, q, S)
    v_r = v_c - v_p
    qd = W.T @ v_r
    c = crm(v_r) @ v_c  # KJ(2),(3): the velocity terms of a moving frame
    if kind.bias is not None:
        c = c - kind.bias(q, qd)
    gamma = -(T.T @ c)  # KJ(2),(3), and KJ(7)-(10)
    return JointRows(T, gamma, kind.phi(R, p), W, -(W.T @ c), q, qd)


def drives_of(kind: Kind, q: Matrix, S: Matrix) -> Matrix:
    """The forces `W` (6, nv) that do unit work on a joint's coordinates, one by one; `S` are its motions at `q`."""
    return dual(S) if kind.W is None else as_graph(kind.W(q), S)


def dual(S: Matrix) -> Matrix:
    """The forces `W` (6, nv), `W^T S = 1`, that do unit work on the joint's coordinates, one by one.

    Shifts and turns are inverted apart: together, `S (S^T S)^-1` would square the metres between them.
    """
    n = S.shape[1]
    shifts = [k for k in range(n) if S[:3, k].is_zero()]
    turns = [k for k in range(n) if k not in shifts]
    if not (shifts and turns):
        return _left_inverse(S).T if n else zeros(6, 0, S)
    moment, force = _left_inverse(S[:3, turns]).T, _left_inverse(S[3:, shifts]).T
    W = zeros(6, n, S)
    W[:3, turns], W[3:, shifts] = moment, force
    W[:3, shifts] = -(moment @ (S[3:, turns].T @ force))
    return W


def _left_inverse(S: Matrix) -> Matrix:
    """`(S^T S)^-1 S^T`."""
    return ldl_solve(ldl_factor(S.T @ S), S.T)


@dataclass(frozen=True)
class MeasuredJoint:
    """A joint measured between two links: its rows, and the transforms that take motion from the links to M.

    `R`, `p` are the pose of M in F.
    """

    rows: JointRows
    parent: int
    child: int
    X_p: Transform
    X_c: Transform
    R: Matrix
    p: Matrix

    def on_links(self, force: Matrix) -> tuple[tuple[int, Matrix], tuple[int, Matrix]]:
        """Forces (6, k) on the child at M, and backwards on the parent, in the links' components at their origins."""
        return (self.child, self.X_c.T @ force), (self.parent, -(self.X_p.T @ force))

    def constraint(self, model: Model, j: int) -> LinkRows:
        """The constraint rows of the joint, number `j`."""
        rows, joint = self.rows, model.joints[j]
        beta = type(rows.gamma).zeros(rows.T.shape[1])
        labels = tuple(joint_labels(joint.name, joint.kind))
        return LinkRows(labels, self.on_links(rows.T), rows.gamma, beta, rows.phi, internal=True)


def frame_in_link(model: Model, body: int, at: Pose) -> tuple[int, Pose]:
    """The link that carries a frame on a body, and where in it."""
    if body == GROUND:
        return GROUND, at
    return model.tree.body_link[body], model.tree.body_pose[body] @ at


def fixed_transform(at: Pose) -> Transform:
    """Motion transform from a link to a frame fixed in it."""
    return Transform((turned(constant(at.rotation.T)), shifted(constant(at.position))))


class Moving(NamedTuple):
    """Axes `R` and origin `r0` of something in ground components, and its twist `v`."""

    R: Matrix
    r0: Matrix
    v: Matrix


def measure(model: Model, nodes: Nodes, j: int) -> MeasuredJoint:
    """Measure a joint between the links that it connects; `nodes` have their poses and velocities."""
    joint = model.joints[j]
    (ip, F), (ic, M) = frame_in_link(model, joint.parent, joint.at), frame_in_link(model, joint.child, joint.child_at)
    return measure_between(joint.kind, (ip, F, nodes.carrier(ip)), (ic, M, nodes.carrier(ic)))


def measure_between(
    kind: Kind, parent: tuple[int, Pose, Node | Moving], child: tuple[int, Pose, Node | Moving]
) -> MeasuredJoint:
    """Measure a joint between its frames F and M on two things that move, each with its number."""
    (ip, F, p), (ic, M, c) = parent, child
    R_F, r_F = p.R @ constant(F.rotation), p.r0 + p.R @ constant(F.position)
    R_M, r_M = c.R @ constant(M.rotation), c.r0 + c.R @ constant(M.position)
    X_c = fixed_transform(M)
    X_p = Transform((turned(R_M.T @ p.R), shifted(p.R.T @ (r_M - p.r0))))
    R, shift = R_F.T @ R_M, R_F.T @ (r_M - r_F)
    return MeasuredJoint(joint_rows(kind, R, shift, X_c @ c.v, X_p @ p.v), ip, ic, X_p, X_c, R, shift)


def principal(x: Matrix, period: float = 2 * pi) -> Matrix:
    """`x` less the multiple of the period that brings it nearest to zero."""
    w = 2 * pi / period
    return arctan2(sin(w * x), cos(w * x)) / w


def common_period(factors: Sequence[float]) -> float:
    """Largest period of a sum of angles times factors when each angle may jump by whole turns; 0 if there is none.

    A coordinate of another period is an angle times a factor.
    """
    if not factors:
        return 0.0
    from fractions import Fraction  # takes milliseconds to import

    parts = [Fraction(c / factors[0]).limit_denominator(1000) for c in factors]
    if any(abs(float(p) * factors[0] - c) > 1e-12 * c for p, c in zip(parts, factors, strict=True)):
        return 0.0
    return 2 * pi * factors[0] * gcd(*(p.numerator for p in parts)) / lcm(*(p.denominator for p in parts))


def near(kind: Kind, x: Matrix, about: Matrix) -> Matrix:
    """Of all coordinates of a joint that mean the same as `x`, those nearest to `about`."""
    parts = []
    for k, unit in enumerate(kind.q_units):
        if kind.periods[k]:
            parts.append(about[k] + principal(x[k] - about[k], kind.periods[k]))
        elif unit != "1":
            parts.append(x[k])
    if kind.nq != kind.nv:
        e = x[kind.nq - 4 : kind.nq]
        parts.append(e * where(dot(e, about[kind.nq - 4 : kind.nq]) < 0, -1.0, 1.0))
    return stack(*parts) if parts else x
