"""The contract of `points` in its own coordinates: the points that describe a planar mechanism, and their rates.

One point, Q, of a link on a pin, two, P and Q, of a link on a slide or floating, x then y, in the plane's axes.
Nothing here is an angle; `qdot = v`, and the mass matrix is constant.

Equations: AT(7), AT(8).
"""

from __future__ import annotations

from cardan.algebra.matrix import Matrix, constant, stack, vector
from cardan.algebra.rotation import cross
from cardan.formulation.angles import counted
from cardan.formulation.constrained import Loads, body_motion, drives_of, with_elements
from cardan.formulation.loops import measure
from cardan.formulation.points.equations import write_parts
from cardan.formulation.points.motion import Motion, from_points, in_space
from cardan.formulation.points.rows import Coordinates
from cardan.formulation.quantity import Inputs
from cardan.formulation.recursion import Nodes
from cardan.model.model import Model
from cardan.model.plane import PlanarModel, planar_model


def size(model: Model) -> int:
    """How many coordinates there are."""
    return Coordinates(planar_model(model)).n


def system(model: Model, inputs: Inputs) -> list[Matrix]:
    """`M`, `f`, `J`, `gamma`, `phi`."""
    planar, motion, nodes = _motion(model, inputs["q"], inputs["v"])
    rows = {j: measure(model, nodes, j).rows for j in _moving_joints(model)}
    loads = Loads(drives_of(model, inputs["tau"]), inputs["wrenches"])
    joints = counted(model, {j: (r.q, r.qd) for j, r in rows.items()}, inputs)
    loads = with_elements(model, loads, nodes, joints, inputs["t"])
    p = write_parts(model, planar, motion, loads, {j: r.q for j, r in rows.items()})
    return [p.M, p.f, p.J, p.gamma, p.phi]


def lift(model: Model, inputs: Inputs) -> list[Matrix]:
    """Poses (nb, 16) and twists (nb, 6) of all bodies."""
    import casadi as ca

    pose, twist = body_motion(model, _motion(model, inputs["q"], inputs["v"])[2])
    last = ca.SX([[0, 0, 0, 1]])
    poses = [ca.vertcat(ca.horzcat(*pose(b)), last) for b in range(model.nb)]
    return [ca.vertcat(*(ca.vec(P.T).T for P in poses)), ca.vertcat(*(twist(b).T for b in range(model.nb)))]


def project(model: Model, inputs: Inputs) -> list[Matrix]:
    """The other way: the points and their rates from poses and twists of all bodies."""
    planar = planar_model(model)
    places = Coordinates(planar)
    plane = constant(planar.ground.axes[:2])
    ends, rates = [], []
    for i, link in enumerate(planar.links):
        b = model.tree.body_link.index(i)
        row, twist, place = inputs["poses"][b, :], inputs["twists"][b, :].T, model.tree.body_pose[b].inverse
        R = stack(*(row[4 * k : 4 * k + 3] for k in range(3)))
        r = vector(*(row[4 * k + 3] for k in range(3)))
        at, rate = [], []
        for c in (0 * link.line.axes[0], link.line.length * link.line.axes[0]):
            own = constant(place.position + place.rotation @ c)  # the point on the body
            at.append(plane @ (r + R @ own))
            rate.append(plane @ (R @ (twist[3:] + cross(twist[:3], own))))
        ends.append((at[0], at[1]))
        rates.append((rate[0], rate[1]))
    return [places.points(ends), places.points(rates)]


def _motion(model: Model, x: Matrix, xd: Matrix) -> tuple[PlanarModel, Motion, Nodes]:
    planar = planar_model(model)
    places = Coordinates(planar)
    motion = from_points(planar, places.ends(x), places.ends(xd, moving=True))
    return planar, motion, in_space(planar, motion)


def _moving_joints(model: Model) -> list[int]:
    """Joints with coordinates: of the tree, and cut."""
    return [*(link.joint for link in model.tree.links), *model.cuts]
