"""Drives of joints in the plane: the forces with which a joint's coordinates act on the two links that it connects.

A coordinate that is an angle or a shift in the plane acts with a unit couple or force. Of any other the drive is the
wrench `W tau` at the frame M, with `W^T S = 1`, and its part in the plane is what counts.
"""

from __future__ import annotations

from cardan.algebra.matrix import Matrix, Scalar, as_graph, constant, dot
from cardan.algebra.plane import carried, invariants
from cardan.formulation.joint_rows import dual
from cardan.formulation.loops import measure
from cardan.formulation.points.motion import Motion, in_space
from cardan.formulation.points.rows import Act, Place, freedom
from cardan.model.model import Model
from cardan.model.plane import Line, PlanarCut, PlanarModel, placed

Sized = tuple[tuple[Act, ...], Scalar]


def tree_drive(planar: PlanarModel, motion: Motion, i: int, q: Matrix, tau: Matrix) -> list[Sized]:
    """Forces of the joint that carries link i, at its coordinates q, and how large they are."""
    link = planar.links[i]
    if link.kind is None:
        return [(freedom(planar, motion, link.joint, k), tau[k]) for k in range(tau.shape[0])]
    wrench = dual(as_graph(link.kind.S(q), q)) @ tau
    return [_pair(motion, (link.parent, i), link.line, (0, 0), wrench)]


def cut_drive(model: Model, planar: PlanarModel, motion: Motion, cut: PlanarCut, tau: Matrix) -> list[Sized]:
    """The same of a joint that closes a loop."""
    if cut.simple:
        return [(freedom(planar, motion, cut.joint, k), tau[k]) for k in range(tau.shape[0])]
    joint = model.joints[cut.joint]
    R = constant(placed(model, joint.child, joint.child_at)[1].rotation)
    wrench = measure(model, in_space(planar, motion), cut.joint).rows.W @ tau
    turned = type(wrench)(6, 1)
    turned[:3], turned[3:] = R @ wrench[:3], R @ wrench[3:]
    return [_pair(motion, (cut.parent, cut.child), planar.line(cut.child), cut.child_at, turned)]


def _pair(motion: Motion, ends: tuple[int, int], line: Line, place: Place, wrench: Matrix) -> Sized:
    """What a wrench (6,) in the child's components, at a place on its line, does there and backwards on the parent."""
    p, c = (motion.carrier(end) for end in ends)
    x, y, K = (constant(axis) for axis in line.axes)
    force = carried(dot(x, wrench[3:]) / line.length, dot(y, wrench[3:]) / line.length, c.d)
    couple, arm = dot(K, wrench[:3]), carried(*place, c.d)
    away = c.P + arm - p.P
    return ((ends[1], force, place, arm, couple), (ends[0], -force, invariants(away, p.d), away, -couple)), 1
