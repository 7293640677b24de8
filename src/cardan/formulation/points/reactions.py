"""Reactions of a planar mechanism's joints from momentum.

The force that a joint exerts is the rate of linear momentum of everything beyond it less what acts there, and its
couple the same of angular momentum; a cut joint's are its multipliers. Bodies that rigid joints make one link are
taken apart for it. Wrenches are (moment, force) on the joint's child at its frame M and in its axes.

Equations: AT(2), AT(3), AT(9).
"""

from __future__ import annotations

import numpy as np

from cardan.algebra.free_number import scalar
from cardan.algebra.matrix import Matrix, Scalar, constant
from cardan.algebra.plane import across, carried, moment
from cardan.formulation.kinematics import Kinematics
from cardan.formulation.points.motion import PlanarMotion
from cardan.formulation.points.recursion import Answer
from cardan.formulation.points.rows import PlanarRow, Sized, cut_drive
from cardan.model.model import Model
from cardan.model.plane import PlanarModel, placed
from cardan.model.tree import GROUND

Pair = tuple[Matrix, Scalar]  # force, and moment about the plane's origin


def joint_wrenches(
    kin: Kinematics,
    planar: PlanarModel,
    motion: PlanarMotion,
    answer: Answer,
    wrenches: Matrix,
    drives: dict[int, Matrix],
    held: dict[int, list[tuple[PlanarRow, Scalar]]],
) -> Matrix:
    """Wrench (number of joints, 6) of every joint; `held` has the rows of cut joints with their multipliers."""
    import casadi as ca

    model = kin.model
    needed = [_momentum_rate(model, planar, motion, answer, b, wrenches[b, :].T) for b in range(model.nb)]
    known: dict[int, Pair] = {}
    for cut in planar.cuts:
        joint = model.joints[cut.joint]
        driving = cut_drive(kin, planar, motion, cut, drives[cut.joint]) if cut.joint in drives else []
        pair = _cut_force(motion, cut.child, driving, held[cut.joint])
        known[cut.joint] = pair
        for body, sign in ((joint.child, 1), (joint.parent, -1)):
            if body != GROUND:
                needed[body] = needed[body][0] - sign * pair[0], needed[body][1] - sign * pair[1]
    tree = model.unmerged.tree
    body_of = {i: b for b, i in enumerate(tree.body_link)}
    total = {i: needed[body_of[i]] for i in range(len(tree.links))}
    for i in reversed(range(len(tree.links))):
        link, (force, turn) = tree.links[i], total[i]
        backwards = model.joints[link.joint].child != body_of[i]
        known[link.joint] = (-force, -turn) if backwards else (force, turn)
        if link.parent != GROUND:
            below = total[link.parent]
            total[link.parent] = below[0] + force, below[1] + turn
    return ca.vertcat(*(_in_joint_axes(model, planar, motion, j, *known[j]).T for j in range(len(model.joints))))


def _momentum_rate(
    model: Model, planar: PlanarModel, motion: PlanarMotion, answer: Answer, b: int, wrench: Matrix
) -> Pair:
    """Rate of a body's momentum, about the plane's origin, less what acts on it."""
    body, i, pose = model.bodies[b], model.tree.body_link[b], model.tree.body_pose[b]
    line, at = planar.line(i), motion.carrier(i)
    place = line.place(pose.position + pose.rotation @ body.com)
    arm = carried(*place, at.d)
    a = answer.a[i] - at.w2 * arm + answer.y[i] * across(arm)  # AT(9)
    x, y, K = line.axes @ pose.rotation
    inertia = scalar(K @ body.inertia @ K)
    force = body.mass * a  # AT(2)
    turn = moment(at.P + arm, force) + inertia * answer.y[i]  # AT(3)
    if wrench.nnz():
        f = carried((constant(x).T @ wrench[3:]) / line.length, (constant(y).T @ wrench[3:]) / line.length, at.d)
        origin = at.P + carried(*line.place(pose.position), at.d)
        force, turn = force - f, turn - constant(K).T @ wrench[:3] - moment(origin, f)
    return force, turn


def _cut_force(motion: PlanarMotion, child: int, driving: list[Sized], rows: list[tuple[PlanarRow, Scalar]]) -> Pair:
    """What a cut joint exerts on its child: minus its multipliers, and its drive."""
    acting: list[Sized] = [(row.acts, -lam) for row, lam in rows] + driving
    like, b = motion.ground.P, motion.carrier(child)
    force, turn = type(like)(2, 1), type(like)(1, 1)
    for acts, size in acting:
        _, f, _, arm, couple = acts[0]  # the child comes first
        force = force + size * f
        turn = turn + size * (couple + moment(b.P + arm, f))
    return force, turn


def _in_joint_axes(
    model: Model, planar: PlanarModel, motion: PlanarMotion, j: int, force: Matrix, turn: Scalar
) -> Matrix:
    """A force and its moment about the plane's origin as a wrench (6,) at the frame on the joint's child."""
    import casadi as ca

    joint = model.joints[j]
    i, M = placed(model, joint.child, joint.child_at)
    line, b = planar.line(i), motion.carrier(i)
    couple = turn - moment(b.P + carried(*line.place(M.position), b.d), force)
    axes = np.asarray(line.axes @ M.rotation)  # rows x, y, K in the joint's axes
    along, left = (b.d.T @ force) / line.length, (across(b.d).T @ force) / line.length
    return ca.vertcat(constant(axes[2]) * couple, constant(axes[0]) * along + constant(axes[1]) * left)
