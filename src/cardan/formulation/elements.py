"""What acts on a mechanism: drives, wrenches, force elements and constraints of the user, whatever the coordinates.

Notation: `t` time; `q`, `v` of a joint are its own coordinates and rates; a pose is `R`, `r`, the axes and origin of
a body in ground components; a twist and a wrench have their angular part first, in body components at the body's
origin; `tau` is a force along a joint's coordinates. The laws are rows of `model.force`; here they are summed over the
model at a `Kinematics`: where all links are and how they move.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from cardan.algebra.matrix import Matrix, Scalar, dot, segment
from cardan.formulation.instant import Seen
from cardan.formulation.kinematics import Kinematics
from cardan.formulation.measured_joint import fixed_transform, frame_in_link
from cardan.formulation.rows import LinkRows
from cardan.model.constraint import Constraint, pose_rate
from cardan.model.controller import Controller
from cardan.model.force import BodyPose, Force
from cardan.model.joint import Kind, configuration_rate
from cardan.model.model import Model
from cardan.model.pose import Pose
from cardan.model.tree import GROUND


@dataclass(frozen=True)
class Loads:
    """What acts: drives of joints by number, a wrench (6,) on every body (nb, 6) in its own components, at time `t`."""

    tau: dict[int, Matrix]
    wrenches: Matrix
    t: Scalar


def loads_at(kin: Kinematics, tau: Matrix, wrenches: Matrix, t: Scalar) -> Loads:
    """Drives `tau` (nv,) of the tree and wrenches (nb, 6) on the bodies, with those of the model's force elements."""
    model = kin.model
    drives = {link.joint: segment(tau, link.v) for link in model.tree.links if link.kind.nv}
    for j, force in joint_forces(kin, t).items():
        drives[j] = drives[j] + force if j in drives else force
    loads = Loads(drives, wrenches, t)
    return with_wrenches(loads, body_wrenches(kin, t))


def with_wrenches(loads: Loads, more: dict[int, Matrix]) -> Loads:
    """The same loads with more wrenches (6,) on bodies, by number."""
    wrenches = type(loads.wrenches)(loads.wrenches)
    for b, wrench in more.items():
        wrenches[b, :] = wrenches[b, :] + wrench.T
    return Loads(loads.tau, wrenches, loads.t)


def with_drive(drive: Matrix | None, nv: int, k: int, force: Matrix) -> Matrix:
    """The drive (nv,) of a joint, or none, with more force along its rate k."""
    more = type(force)(nv, 1)
    more[k] = force
    return more if drive is None else drive + more


def joint_forces(kin: Kinematics, t: Scalar) -> dict[int, Matrix]:
    """Force along the coordinates of each joint that has elements, tree joint or cut."""
    total: dict[int, Matrix] = {}
    for force in kin.model.forces:
        if force.kind.on == "joint":
            j = force.on[0]
            tau = force.spread(force.law(t, *force.picked(*kin.joint(j))), kin.model.joints[j].kind.nv)
            total[j] = total[j] + tau if j in total else tau
    for controller in kin.model.controllers:
        if not controller.joints:
            continue
        for j, tau in zip(controller.joints, controller.efforts(Seen(kin, t)), strict=False):
            total[j] = total[j] + tau if j in total else tau
    return total


def body_wrenches(kin: Kinematics, t: Scalar) -> dict[int, Matrix]:
    """Wrench (6) on each body that has elements; what acts on the ground is left out."""
    total: dict[int, Matrix] = {}
    for force in kin.model.forces:
        if force.kind.on == "bodies":
            wrenches = force.law(t, [kin.pose(b) for b in force.on], [kin.twist(b) for b in force.on])
            for b, f in zip(force.on, wrenches, strict=True):
                if b != GROUND:
                    total[b] = total[b] + f if b in total else f
    for controller in kin.model.controllers:
        if controller.bodies:
            wrenches = controller.efforts(Seen(kin, t))[len(controller.joints) :]
            for b, f in zip(controller.bodies, wrenches, strict=True):
                total[b] = total[b] + f if b in total else f
    return total


def element_potential(kin: Kinematics) -> Matrix:
    """Potential energy (J) of springs along joints, between points, and of bushings; gravity's is not in it."""
    import casadi as ca

    V = ca.SX(1, 1)
    for force in kin.model.forces:
        if force.kind.energy is not None:
            on_joint = force.kind.on == "joint"
            at: Any = force.picked(kin.joint(force.on[0])[0])[0] if on_joint else [kin.pose(b) for b in force.on]
            V = V + force.energy(at)
    return V


def element_power(kin: Kinematics, t: Scalar) -> Matrix:
    """Power (W) of the force elements less what their own potential energy takes up."""
    import casadi as ca

    P = ca.SX(1, 1)
    for force in kin.model.forces:
        kind = force.kind
        if kind.on == "joints":
            continue
        if kind.on == "joint":
            state: Any = force.picked(*kin.joint(force.on[0]))
        else:
            state = [kin.pose(b) for b in force.on], [kin.twist(b) for b in force.on]
        if kind.power is not None:
            P = P + kind.power(force, *state)
        elif kind.on == "joint":
            P = P + _power_along_joint(kin.model.joints[force.on[0]].kind, force, t, *state)
        else:
            P = P + _power_on_bodies(force, t, *state)
    for controller in kin.model.controllers:
        if controller.acts:
            P = P + controller_power(kin, controller, t)
    return P


def controller_power(kin: Kinematics, controller: Controller, t: Scalar) -> Matrix:
    """Power (W) that a controller gives to the mechanism."""
    rates = [kin.joint(j)[1] for j in controller.joints] + [kin.twist(b) for b in controller.bodies]
    P: Any = 0.0
    for rate, effort in zip(rates, controller.efforts(Seen(kin, t)), strict=True):
        P = P + dot(rate, effort)
    return P


def _power_along_joint(joint: Kind, force: Force, t: Scalar, q: Matrix, v: Matrix) -> Matrix:
    """The same of one element along a joint, from its law and energy."""
    import casadi as ca

    P = dot(v, force.kind.law(force, t, q, v))
    if force.kind.energy is None:
        return P
    x = ca.SX.sym("q", *q.shape)
    slope = ca.substitute(ca.jacobian(force.kind.energy(force, x), x), x, q)
    return P + ca.mtimes(slope, v if force.along else configuration_rate(joint, q, v))


def _power_on_bodies(force: Force, t: Scalar, poses: list[BodyPose], twists: list[Matrix]) -> Matrix:
    """The same of one element on bodies, from its law and energy."""
    import casadi as ca

    P: Any = ca.SX(1, 1)
    for twist, wrench in zip(twists, force.kind.law(force, t, poses, twists), strict=True):
        P = P + dot(twist, wrench)
    if force.kind.energy is None:
        return P
    X = [BodyPose(ca.SX.sym("R", 3, 3), ca.SX.sym("r", 3)) for _ in poses]
    V = [ca.SX.sym("v", 6) for _ in twists]
    moving = [ca.vec(part) for pose, v in zip(X, V, strict=True) for part in pose_rate(pose, v)]
    x = ca.vertcat(*(ca.vec(part) for pose in X for part in pose))
    rate = ca.jtimes(ca.SX(force.kind.energy(force, X)), x, ca.densify(ca.vertcat(*moving)))
    graph: Any = ca.Function("rate", [*(part for pose in X for part in pose), *V], [rate])
    return P + graph(*(part for pose in poses for part in pose), *twists)


def constraint_forces(kin: Kinematics, constraint: Constraint, t: Scalar) -> dict[int, Matrix]:
    """Unit forces (6, 1) of a user's constraint on its bodies, in body components."""
    forces = constraint.written(t, [kin.pose(b) for b in constraint.on], [kin.twist(b) for b in constraint.on])[0]
    return {b: F for b, F in zip(constraint.on, forces, strict=True) if b != GROUND}


def constraint_rows(kin: Kinematics, constraint: Constraint, t: Scalar) -> LinkRows:
    """The row of a user's constraint as forces on links."""
    model = kin.model
    poses, twists = [kin.pose(b) for b in constraint.on], [kin.twist(b) for b in constraint.on]
    forces, gamma, beta, phi = constraint.written(t, poses, twists)
    on_links: dict[int, Matrix] = {}
    for b, F in zip(constraint.on, forces, strict=True):
        i, at = frame_in_link(model, b, Pose())
        if i != GROUND:
            carried = fixed_transform(at).T @ F
            on_links[i] = on_links[i] + carried if i in on_links else carried
    labels = tuple(constraint.labels(model.joints))
    none = type(gamma).zeros(1)
    return LinkRows(labels, tuple(on_links.items()), gamma, beta, none if phi is None else phi, internal=False)


def on_links(model: Model, wrenches: Matrix) -> list[Matrix]:
    """Wrenches on bodies (nb, 6), gathered on their links."""
    total = [type(wrenches)(6, 1) for _ in model.tree.links]
    for b, i in enumerate(model.tree.body_link):
        if i != GROUND:
            total[i] = total[i] + fixed_transform(model.tree.body_pose[b]).T @ wrenches[b, :].T
    return total
