"""Where the links of a mechanism are and how they move.

Notation: all of a body's vectors in its own frame. `X` takes motion vectors from the parent p to the body b; `S` spans
the joint's motion, `S qd` is its velocity and `c` what velocities add to acceleration; `v` is a body's velocity, `a`
the acceleration that velocities alone cause; `R`, `r0` axes and origin of the body in ground components.

Source: RBDA section 4.1 and table 5.1; FX. Equations: FX(C1).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from cardan.algebra.matrix import Matrix, as_graph, constant, eye, segment, zeros
from cardan.algebra.spatial import Transform, crm, shift_of, shifted, turned
from cardan.formulation.measured_joint import MeasuredJoint, fixed_transform, frame_in_link, measure, near
from cardan.formulation.recursion import Node, Nodes, Recursion, Sweep, run
from cardan.model.force import BodyPose
from cardan.model.joint import joint_transform
from cardan.model.model import Model
from cardan.model.pose import Pose
from cardan.model.tree import GROUND


def joint(b: Node, p: Node) -> None:
    """Transform and motion subspace of the joint."""
    b.X = joint_transform(b.kind, b.q, b.E, b.r)
    b.S = as_graph(b.kind.S(b.q), b.q)


def velocity(b: Node, p: Node) -> None:
    """Outwards: velocities, and the part of the acceleration that they cause."""
    joint(b, p)
    vJ = b.S @ b.qd
    b.v = b.X @ p.v + vJ  # FX(C1)
    b.c = crm(b.v) @ vJ
    if b.kind.bias is not None:
        b.c = b.c + b.kind.bias(b.q, b.qd)


def pose(b: Node, p: Node) -> None:
    """Outwards: axes and origin in ground components."""
    joint(b, p)
    b.R, b.r0 = p.R, p.r0
    for F in reversed(b.X.factors):
        b.R, b.r0 = _moved(b.R, b.r0, F)


def _moved(R: Matrix, r0: Matrix, F: Matrix) -> tuple[Matrix, Matrix]:
    """Axes and origin after a factor `[E 0; -E r x E]`, of which either E is 1 or r is 0."""
    r = shift_of(F)
    return (R @ F[:3, :3].T, r0) if r is None else (R, r0 + R @ r)


def fixed_in_link(b: Node) -> Transform:
    """Motion transform from a link to a body fixed in it."""
    return Transform((turned(b.E), shifted(b.r)))


def body_wrench(b: Node, p: Node) -> None:
    """A wrench on a body, carried to its link."""
    p.fx = p.fx + fixed_in_link(b).T @ b.wrench


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
class Kinematics:
    """Poses and velocities of all links as graphs, and what follows from them.

    Args:
        model: the mechanism whose links `nodes` are.
        nodes: axes `R`, origin `r0` and twist `v` of every link and of the ground.
        q: coordinates (nq,) of the tree, None where the state is given in other coordinates.
        v: rates (nv,) of the tree, or None.
        about: configuration (nq,) of the tree near which measured angles are taken; None takes principal values.

    """

    model: Model
    nodes: Nodes
    q: Matrix | None = None
    v: Matrix | None = None
    about: Matrix | None = None
    _measured: dict[int, MeasuredJoint] = field(default_factory=dict, repr=False)

    @property
    def tree_state(self) -> tuple[Matrix, Matrix]:
        """Coordinates and rates of the tree, for formulations that are given their state in them."""
        assert self.q is not None and self.v is not None
        return self.q, self.v

    def measured(self, j: int) -> MeasuredJoint:
        """A joint measured between its links."""
        if j not in self._measured:
            self._measured[j] = measure(self.model, self.nodes, j)
        return self._measured[j]

    def joint(self, j: int) -> tuple[Matrix, Matrix]:
        """A joint's own coordinates and rates: those of the tree, or as measured."""
        link = self.model.link_of_joint(j)
        if link is not None and self.q is not None and self.v is not None:
            return segment(self.q, link.q), segment(self.v, link.v)
        rows = self.measured(j).rows
        if link is not None and self.about is not None and link.kind.nq:
            return near(link.kind, rows.q, segment(self.about, link.q)), rows.qd
        return rows.q, rows.qd

    def counts_turns(self, j: int) -> bool:
        """Whether a joint's angle counts whole turns: a tree joint's does, where the tree's configuration is known."""
        return self.model.link_of_joint(j) is not None and (self.q is not None or self.about is not None)

    def pose(self, b: int) -> BodyPose:
        """Pose of a body; -1 is the ground."""
        i, at = frame_in_link(self.model, b, Pose())
        link = self.nodes.carrier(i)
        if b == GROUND:
            return BodyPose(eye(3, link.R), zeros(3, None, link.R))
        return BodyPose(link.R @ constant(at.rotation), link.r0 + link.R @ constant(at.position))

    def twist(self, b: int) -> Matrix:
        """Twist of a body; -1 is the ground, which rests."""
        i, at = frame_in_link(self.model, b, Pose())
        link = self.nodes.carrier(i)
        return zeros(6, None, link.R) if b == GROUND else fixed_transform(at) @ link.v


def kinematics_of_tree(model: Model, q: Matrix, v: Matrix) -> Kinematics:
    """From coordinates and rates of the tree."""
    return Kinematics(model, run(MOTION, model, {"q": q, "v": v}), q, v)
