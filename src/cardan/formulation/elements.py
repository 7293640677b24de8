"""What force elements and couplings bring into the equations, whatever the coordinates.

Notation: `t` time; `q`, `v` of a joint are its own coordinates and rates; a pose is `R`, `r`, the axes and origin of
a body in ground components; a twist and a wrench have their angular part first, in body components at the body's
origin; `tau` is a force along a joint's coordinates; `S` spans its motion. The laws are rows of `model.force`; here
they are summed over the model.

Source: RBDA section 3.5 for the wrench of a joint force, `Ta tau` with `Ta^T S = 1`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from cardan.algebra.matrix import Matrix, Scalar, as_graph, eye, zeros
from cardan.formulation.joint_rows import dual
from cardan.model.force import BodyPose
from cardan.model.joint import Kind
from cardan.model.model import Model
from cardan.model.tree import GROUND

Of = Callable[[int], Any] | Mapping[int, Any]
"""Something known of each joint or body, by its index."""


class CouplingRow(NamedTuple):
    """An equation `sum c_j q_j = g(t)`: the coefficients by joint, and `g` with its two time derivatives."""

    name: str
    coefficients: dict[int, float]
    g: Matrix
    gdot: Matrix
    gddot: Matrix


def joint_effects(model: Model, t: Scalar, q: Of, v: Of) -> dict[int, Matrix]:
    """Force (nv of the joint) along the coordinates of each joint that has elements, tree joint or cut."""
    q, v = _lookup(q), _lookup(v)
    total: dict[int, Matrix] = {}
    for force in model.forces:
        if force.kind.on == "joint":
            j = force.on[0]
            tau = force.kind.law(force, t, q(j), v(j))
            total[j] = total[j] + tau if j in total else tau
    return total


def body_effects(model: Model, t: Scalar, pose: Of, twist: Of) -> dict[int, Matrix]:
    """Wrench (6) on each body that has elements; what acts on the ground is left out."""
    pose, twist = _lookup(pose), _lookup(twist)
    total: dict[int, Matrix] = {}
    for force in model.forces:
        if force.kind.on == "bodies":
            poses = _poses(pose, force.on)
            twists = [zeros(6, None, poses[0].position) if b == GROUND else twist(b) for b in force.on]
            for b, f in zip(force.on, force.kind.law(force, t, poses, twists), strict=True):
                if b != GROUND:
                    total[b] = total[b] + f if b in total else f
    return total


def coupling_rows(model: Model, t: Scalar) -> list[CouplingRow]:
    """The equations between joint coordinates: couplings and prescribed motions."""
    rows = []
    for coupling in model.couplings:
        coefficients = dict(zip(coupling.joints, map(float, coupling.coefficients), strict=True))
        rows.append(CouplingRow(coupling.name, coefficients, *coupling.rows(t)))
    return rows


def potential(model: Model, q: Of, pose: Of) -> Matrix:
    """Potential energy (J) of springs along joints, between points, and of bushings; gravity's is not in it."""
    import casadi as ca

    q, pose = _lookup(q), _lookup(pose)
    V = ca.SX(1, 1)
    for force in model.forces:
        if force.kind.energy is not None:
            V = V + force.kind.energy(force, q(force.on[0]) if force.kind.on == "joint" else _poses(pose, force.on))
    return V


def joint_force_as_wrench(kind: Kind, q: Matrix, tau: Matrix) -> Matrix:
    """Wrench (6) on the child at M whose power is `v^T tau`: `S (S^T S)^-1 tau`; its opposite acts on the parent.

    Of all wrenches with that power it is the shortest; any other differs by a constraint force of the joint.
    """
    return dual(as_graph(kind.S(q), q)) @ tau


def _lookup(of: Of) -> Callable[[int], Any]:
    return of if callable(of) else of.__getitem__


def _poses(pose: Callable[[int], Any], bodies: tuple[int, ...]) -> list[BodyPose]:
    """Poses of an element's bodies, the ground's being the identity."""
    known = {b: BodyPose(*pose(b)) for b in bodies if b != GROUND}
    if GROUND in bodies:
        like = next(iter(known.values())).rotation
        known[GROUND] = BodyPose(eye(3, like), zeros(3, None, like))
    return [known[b] for b in bodies]
