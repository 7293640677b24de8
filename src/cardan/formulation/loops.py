"""Closed loops of a tree: each cut joint as rows of `J vdot = gamma` and `phi = 0` in the tree's own coordinates.

Notation: as in `formulation.spatial` and `formulation.constraint`. A unit constraint force `T` acts on the child at
M and backwards on the parent; carried along the tree to where the two ways meet, its work along the joints on the
way is a row of `J`, as in `formulation.jacobian`. Below that point the two cancel, so nothing is computed there.

Source: RBDA chapter 8; the rows themselves from KJ, see `formulation.constraint`.
"""

from __future__ import annotations

from dataclasses import dataclass

from cardan.algebra.matrix import Matrix, constant, zeros
from cardan.algebra.spatial import Transform, shifted, turned
from cardan.formulation.joint_rows import JointRows, joint_rows
from cardan.formulation.recursion import Node, Nodes, Recursion, Sweep
from cardan.formulation.spatial import force_to_parent, pose, velocity
from cardan.model.model import Model
from cardan.model.pose import Pose
from cardan.model.tree import GROUND, Tree


def motion(b: Node, p: Node) -> None:
    """Outwards: pose, velocity, and the acceleration that velocities alone cause."""
    pose(b, p)
    velocity(b, p)
    b.a = b.X @ p.a + b.c


MOTION = Recursion(
    "motion", ("q", "qd"), {"R": "matrix3", "r0": "vector3", "v": "vector6", "a": "vector6"},
    (Sweep("down", motion),), (), ground={"R": "identity"},
)  # fmt: skip


@dataclass(frozen=True)
class Measured:
    """A joint measured between two links: its rows, and the transforms that take motion from the links to M."""

    rows: JointRows
    parent: int
    child: int
    X_p: Transform
    X_c: Transform


def frame_in_link(model: Model, body: int, at: Pose) -> tuple[int, Pose]:
    """The link that carries a frame on a body, and where in it."""
    if body == GROUND:
        return GROUND, at
    return model.tree.body_link[body], model.tree.body_pose[body] @ at


def fixed_transform(at: Pose) -> Transform:
    """Motion transform from a link to a frame fixed in it."""
    return Transform((turned(constant(at.rotation.T)), shifted(constant(at.position))))


def measure(model: Model, nodes: Nodes, j: int) -> Measured:
    """Measure a joint between the links that it connects; `nodes` come from `MOTION`."""
    joint = model.joints[j]
    (ip, F), (ic, M) = frame_in_link(model, joint.parent, joint.at), frame_in_link(model, joint.child, joint.child_at)
    p, c = nodes.carrier(ip), nodes.carrier(ic)
    R_F, r_F = p.R @ constant(F.rotation), p.r0 + p.R @ constant(F.position)
    R_M, r_M = c.R @ constant(M.rotation), c.r0 + c.R @ constant(M.position)
    X_c = fixed_transform(M)
    X_p = Transform((turned(R_M.T @ p.R), shifted(p.R.T @ (r_M - p.r0))))
    rows = joint_rows(joint.kind, R_F.T @ R_M, R_F.T @ (r_M - r_F), X_c @ c.v, X_p @ p.v)
    return Measured(rows, ip, ic, X_p, X_c)


def work_along(model: Model, nodes: Nodes, m: Measured, force: Matrix) -> Matrix:
    """Work (k, nv) along the joints of unit forces (6, k) on the child at M, and backwards on the parent."""
    J = type(force)(force.shape[1], model.nv)
    meeting = common_ancestor(model.tree, m.parent, m.child)
    forces: tuple[Matrix, ...]
    for i, forces in ((m.child, (m.X_c.T @ force,)), (m.parent, (-(m.X_p.T @ force),))):
        while i != meeting:
            link, b = model.tree.links[i], nodes.links[i]
            J[:, link.v] = forces[0].T @ b.S
            forces = force_to_parent(b, forces)
            i = link.parent
    return J


def velocity_terms(nodes: Nodes, m: Measured) -> Matrix:
    """`a_c - a_p` (6,) at M when no coordinate accelerates."""
    return m.X_c @ nodes.carrier(m.child).a - m.X_p @ nodes.carrier(m.parent).a


def cut_rows(model: Model, nodes: Nodes) -> tuple[Matrix, Matrix, Matrix]:
    """`J` (nl, nv), `gamma` (nl,) and `phi` (nl,) of all cut joints, one below the other."""
    import casadi as ca

    blocks: list[tuple[Matrix, Matrix, Matrix]] = []
    for j in model.cuts:
        m = measure(model, nodes, j)
        J = work_along(model, nodes, m, m.rows.T)
        blocks.append((J, m.rows.gamma - m.rows.T.T @ velocity_terms(nodes, m), m.rows.phi))
    if not blocks:
        like = nodes.ground.R
        return zeros(0, model.nv, like), zeros(0, None, like), zeros(0, None, like)
    return ca.vertcat(*(b[0] for b in blocks)), ca.vertcat(*(b[1] for b in blocks)), ca.vertcat(*(b[2] for b in blocks))


def common_ancestor(tree: Tree, a: int, b: int) -> int:
    """The last link that the ways to the root share, or the ground."""
    way = []
    while a != GROUND:
        way.append(a)
        a = tree.links[a].parent
    while b != GROUND and b not in way:
        b = tree.links[b].parent
    return b
