"""Relative coordinates: six a body, relative to its neighbour, and the joint between them is a constraint.

Notation of KJ: `s'` is the position of the body's joint frame M in the neighbour's joint frame F, zero for joints
that share a point; the relative twist in M components, `(w^, s'dot)`, is the body's `v`. The tree is that of the
model with every joint replaced by a free one, so its recursions give `M` and `f`; a joint's rows act on the body's
own six rates only:

    T^T v = 0        T^T v' = T^T Sdot qd

Equations: KJ(4), KJ(11)-(16).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from cardan.algebra.matrix import Matrix, as_graph, constant, matrix, segment, stack, zeros
from cardan.algebra.spatial import Transform, shifted, turned
from cardan.formulation.armature import Rotor
from cardan.formulation.joint_rows import dual
from cardan.model.joint import FREE, Kind
from cardan.model.model import Model
from cardan.model.tree import Link, Tree

# Six freedoms, placed by a rotation matrix (rows of E) and a position instead of a quaternion: what the tree's own
# coordinates give without a square root.
POSED = replace(
    FREE,
    name="posed",
    nq=12,
    neutral=(1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0),
    E=lambda q: matrix([[q[3 * i + j] for j in range(3)] for i in range(3)]),
    r=lambda q: q[9:12],
)


def relative_model(model: Model, kind: Kind = FREE) -> Model:
    """The same mechanism with six coordinates a link."""
    links: list[Link] = []
    for i, link in enumerate(model.tree.links):
        q, v = slice(kind.nq * i, kind.nq * (i + 1)), slice(6 * i, 6 * (i + 1))
        links.append(replace(link, kind=kind, q=q, v=v, armature=None))
    tree: Tree = replace(model.tree, links=tuple(links), nq=kind.nq * len(links), nv=6 * len(links))
    return replace(model, tree=tree, kernels={})


def posed_coordinates(model: Model, q: Matrix, v: Matrix) -> tuple[Matrix, Matrix]:
    """Coordinates and rates of `relative_model(model, POSED)` from those of the tree."""
    places, twists = [], []
    for link in model.tree.links:
        own = segment(q, link.q)
        E = as_graph(link.kind.E(own), q) if link.kind.E is not None else type(q).eye(3)
        r = as_graph(link.kind.r(own), q) if link.kind.r is not None else zeros(3, None, q)
        places.append(stack(*(E[i, :].T for i in range(3)), r))
        twists.append(as_graph(link.kind.S(own), q) @ segment(v, link.v))
    return (stack(*places), stack(*twists)) if places else (q, v)


def tree_rows(model: Model, q: Matrix, v: Matrix) -> tuple[Matrix, Matrix, tuple[tuple[int, slice], ...]]:
    """`J`, `gamma` and the rows of each tree joint, in relative rates; `q`, `v` are the tree's own coordinates."""
    import casadi as ca

    blocks, gammas, joints, count = [], [], [], 0
    for i, link in enumerate(model.tree.links):
        own, rate = segment(q, link.q), segment(v, link.v)
        T = as_graph(link.kind.T(own), q)
        k = T.shape[1]
        J = type(q)(k, 6 * len(model.tree.links))
        J[:, 6 * i : 6 * i + 6] = T.T  # KJ(4),(11),(12)
        bias = link.kind.bias(own, rate) if link.kind.bias is not None else zeros(6, None, q)
        blocks.append(J)
        gammas.append(T.T @ bias)  # KJ(4),(13)-(16)
        joints.append((link.joint, slice(count, count + k)))
        count += k
    return ca.vertcat(*blocks), ca.vertcat(*gammas), tuple(joints)


def placed(E: Matrix, p: Matrix, link: Link) -> Transform:
    """Motion transform from the parent link to this one, from the pose of its frame in the joint's frame F."""
    return Transform((turned(E), shifted(p), turned(constant(link.E)), shifted(constant(link.r))))


def coordinate(model: Model, q: Matrix, v: Matrix) -> Callable[[int], tuple[Matrix, Matrix, Matrix]]:
    """A tree joint's one coordinate: its value, its row in relative rates, and what its acceleration has besides."""
    places = {link.joint: i for i, link in enumerate(model.tree.links)}

    def of(j: int) -> tuple[Matrix, Matrix, Matrix]:
        i = places[j]
        link = model.tree.links[i]
        W = dual(as_graph(link.kind.S(segment(q, link.q)), q))
        row = type(q)(1, 6 * len(model.tree.links))
        row[:, 6 * i : 6 * i + 6] = W.T
        bias = (
            link.kind.bias(segment(q, link.q), segment(v, link.v)) if link.kind.bias is not None else zeros(6, None, q)
        )
        return segment(q, link.q), row, -(W.T @ bias)

    return of


def rotors(model: Model, q: Matrix, v: Matrix) -> list[Rotor]:
    """Armature of the tree's joints in relative rates."""
    found = []
    for i, link in enumerate(model.tree.links):
        if link.armature is None:
            continue
        own, rate = segment(q, link.q), segment(v, link.v)
        W = dual(as_graph(link.kind.S(own), q))
        K = type(q)(link.kind.nv, 6 * len(model.tree.links))
        K[:, 6 * i : 6 * i + 6] = W.T
        bias = link.kind.bias(own, rate) if link.kind.bias is not None else zeros(6, None, q)
        found.append(Rotor(constant(np.diag(link.armature)), K, -(W.T @ bias)))
    return found


def tree_accelerations(model: Model, q: Matrix, v: Matrix, vdot: Matrix) -> Matrix:
    """Accelerations of the tree's coordinates from those of the relative ones."""
    parts = []
    for i, link in enumerate(model.tree.links):
        own, rate = segment(q, link.q), segment(v, link.v)
        W = dual(as_graph(link.kind.S(own), q))
        bias = link.kind.bias(own, rate) if link.kind.bias is not None else zeros(6, None, q)
        parts.append(W.T @ (vdot[6 * i : 6 * i + 6] - bias))
    return stack(*parts)
