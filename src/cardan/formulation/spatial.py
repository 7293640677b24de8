"""Dynamics of a tree with 6-D vectors: Featherstone's algorithms.

Notation: all of a body's vectors in its own frame. `X` takes motion vectors from the parent p to the body b; `S`
spans the joint's motion, `S qd` is its velocity and `c` what velocities add to acceleration; `v`, `a` are a body's
velocity and acceleration, `I` its inertia, `f` the force across its joint, `fx` external force; `IA`, `pA`
articulated inertia and bias force; `IC` composite inertia; `R`, `r0` axes and origin of the body in ground
components; `h` momentum, `T` kinetic energy.

Source: RBDA tables 5.1, 6.2 and 7.1; F6; FX; the Coriolis matrix after Echeandia and Wensing (2021).
Equations: F6(2), F6(3), F6(4), F6(5), F6(6), F6(7); FX(A2), FX(B3), FX(C1).
"""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING

from cardan.algebra.linsolve import ldl_factor, ldl_solve
from cardan.algebra.matrix import Matrix, constant, eye, mirrored, segment
from cardan.algebra.spatial import (
    Transform,
    annihilating,
    crf,
    crf_bar,
    crm,
    first_moment,
    inertial_force,
    kinetic_energy,
    shifted,
    turned,
)
from cardan.formulation.armature import drive_force, not_carried, own_columns, rotor_energy, with_own
from cardan.formulation.formulation import Parts
from cardan.formulation.kinematics import body_wrench, fixed_in_link, joint, pose, velocity
from cardan.formulation.quantity import Inputs, Quantity, fixed, per_body, per_velocity, square
from cardan.formulation.recursion import Climb, Node, Output, Recursion, Sweep, run
from cardan.formulation.spatial_derivatives import FORWARD, INVERSE, INVERSE_LOADED, changed_motion
from cardan.formulation.tree import TreeFormulation, joint_space_quantities, quantity_table, totals
from cardan.model.joint import configuration_rate
from cardan.model.model import Model
from cardan.model.tree import GROUND

if TYPE_CHECKING:
    from cardan.formulation.response import Changes


def newton_euler_out(b: Node, p: Node) -> None:
    """Outwards: accelerations, and the force each body needs."""
    velocity(b, p)
    b.a = b.X @ p.a + b.S @ b.qdd + b.c
    b.f = inertial_force(b.I, b.v, b.a)  # I a + v x* I v: F6(2) of a moving body


def newton_euler_in(b: Node, p: Node) -> None:
    """Inwards: each joint carries its body and all beyond."""
    b.tau = b.S.T @ b.f + drive_force(b)  # F6(4) with a drive
    p.f = p.f + b.X.T @ b.f


# Forward dynamics: the articulated-body algorithm, RBDA table 7.1.


def articulated_out(b: Node, p: Node) -> None:
    """Outwards: velocities, and the bodies as if they were free."""
    velocity(b, p)
    b.IA = b.I
    b.pA = crf(b.v) @ (b.I @ b.v)


def articulated_in(b: Node, p: Node) -> None:
    """Inwards: what a body shows its parent through the joint."""
    b.U = b.IA @ b.S
    b.D = ldl_factor(b.S.T @ b.U if b.armature is None else b.S.T @ b.U + b.armature)
    b.u = b.tau - b.S.T @ b.pA
    Ia = mirrored(b.IA - b.U @ ldl_solve(b.D, b.U.T))  # F6(7): I2 - I2 s s^T I2 / (s^T I2 s)
    if b.armature is None:
        Ia = annihilating(Ia, b.S)
    pa = b.pA + Ia @ b.c + b.U @ ldl_solve(b.D, b.u)  # F6(5)
    p.IA = p.IA + b.X.congruence(Ia)  # F6(7): I1 + ...
    p.pA = p.pA + b.X.T @ pa


def articulated_acceleration(b: Node, p: Node) -> None:
    """Outwards again: joint accelerations, then body accelerations."""
    a = b.X @ p.a + b.c
    b.qdd = ldl_solve(b.D, b.u - b.U.T @ a)  # F6(6)
    b.a = a + b.S @ b.qdd  # F6(3)


# Mass matrix: the composite-rigid-body algorithm, RBDA table 6.2.


def composite_out(b: Node, p: Node) -> None:
    """Outwards: each composite begins with its own body."""
    joint(b, p)
    b.IC = b.I


def composite_in(b: Node, p: Node) -> None:
    """Inwards: bodies beyond a joint add up to one."""
    p.IC = p.IC + b.X.congruence(b.IC)  # FX(A2)


def composite_force(b: Node) -> tuple[Matrix, ...]:
    """Force that accelerates the composite along its joint."""
    return b.IC @ b.S, own_columns(b)


def force_to_parent(c: Node, forces: tuple[Matrix, ...]) -> tuple[Matrix, ...]:
    """Take forces across a joint."""
    return tuple(c.X.T @ F for F in forces)


def carry_composite(c: Node, forces: tuple[Matrix, ...]) -> tuple[Matrix, ...]:
    """Take the composite's force across a joint."""
    return c.X.T @ forces[0], not_carried(forces[1])


def mass_block(j: Node, forces: tuple[Matrix, ...]) -> tuple[Matrix, Matrix]:
    """Its part along the joint above."""
    H = with_own(j, j.S.T @ forces[0], forces[1])  # FX(B3)
    return H, H


# Coriolis matrix C with Hdot - 2 C skew: velocity products gathered like inertias.


def coriolis_out(b: Node, p: Node) -> None:
    """Outwards: velocity, and the body's velocity-product matrix B, with B v = v x* I v."""
    velocity(b, p)
    b.Sdot = crm(b.v) @ b.S + _subspace_rate(b)
    b.IC = b.I
    b.BC = (crf(b.v) @ b.I - b.I @ crm(b.v) + crf_bar(b.I @ b.v)) / 2


def _subspace_rate(b: Node) -> Matrix:
    """Rate of `S` in the joint frame along the motion, a column a coordinate."""
    import casadi as ca

    if b.S.is_constant():
        return type(b.S)(*b.S.shape)
    qdot = configuration_rate(b.kind, b.q, b.qd)
    return ca.horzcat(*(ca.jtimes(b.S[:, k], b.q, qdot) for k in range(b.S.shape[1])))


def coriolis_in(b: Node, p: Node) -> None:
    """Inwards: composite inertia and velocity products."""
    composite_in(b, p)
    p.BC = p.BC + b.X.congruence_general(b.BC)


def coriolis_force(b: Node) -> tuple[Matrix, ...]:
    """The three forces whose work along the joints above fills a row and a column of C."""
    return b.IC @ b.Sdot + b.BC @ b.S, b.IC @ b.S, b.BC.T @ b.S


def coriolis_block(j: Node, forces: tuple[Matrix, ...]) -> tuple[Matrix, Matrix]:
    """Column and row of C."""
    F1, F2, F3 = forces
    return j.S.T @ F1, j.Sdot.T @ F2 + j.S.T @ F3


# Energy and momentum, FX(C1); poses; what external wrenches add.


def energy_out(b: Node, p: Node) -> None:
    """Outwards: velocity and own kinetic energy."""
    velocity(b, p)
    b.T = kinetic_energy(b.I, b.v) + rotor_energy(b)


def energy_in(b: Node, p: Node) -> None:
    """Inwards: kinetic energy of all beyond."""
    p.T = p.T + b.T  # FX(C1)


def momentum_out(b: Node, p: Node) -> None:
    """Outwards: velocity and own momentum."""
    velocity(b, p)
    b.h = b.I @ b.v
    b.IC = b.I


def momentum_in(b: Node, p: Node) -> None:
    """Inwards: momentum of all beyond, and their inertia."""
    p.h = p.h + b.X.T @ b.h  # FX(C1)
    composite_in(b, p)


def subtree_out(b: Node, p: Node) -> None:
    """Outwards: pose, velocity, own kinetic energy and momentum."""
    pose(b, p)
    energy_out(b, p)
    b.h = b.I @ b.v


def subtree_in(b: Node, p: Node) -> None:
    """Inwards: kinetic energy and momentum of all beyond; the momentum also about the ground's origin."""
    b.T0 = b.T  # set here, because here the sum is complete
    energy_in(b, p)
    p.h = p.h + b.X.T @ b.h  # FX(C1)
    b.h0 = shifted(b.r0).T @ (turned(b.R) @ b.h)


def axes(b: Node, p: Node) -> None:
    """Outwards: each column of S as a twist about the ground's origin, in ground components."""
    pose(b, p)
    S = turned(b.R) @ b.S
    b.axes = (shifted(-b.r0) @ S).T


def changed_axes(b: Node, p: Node) -> None:
    """As `axes`; also by how much a unit of each coordinate changes the velocities and accelerations beyond.

    These are `Psid`, `Psidd` and `Omega` of `formulation.spatial_derivatives`.
    """
    pose(b, p)
    changed_motion(b, p)
    to_ground = shifted(-b.r0) @ turned(b.R)
    b.axes, b.Psid0 = (to_ground @ b.S).T, (to_ground @ b.Psid).T
    b.Psidd0, b.Omega0 = (to_ground @ b.Psidd).T, (to_ground @ b.Omega).T


def body_pose(b: Node, p: Node) -> None:
    """A body fixed to its link: homogeneous matrix."""
    import casadi as ca

    top = ca.horzcat(p.R @ b.E.T, p.r0 + p.R @ b.r)
    b.pose = ca.vertcat(top, ca.SX([[0, 0, 0, 1]]))


def body_twist(b: Node, p: Node) -> None:
    """A body fixed to its link: its velocity in its own frame."""
    b.v = fixed_in_link(b) @ p.v


def body_acceleration(b: Node, p: Node) -> None:
    """A body fixed to its link: its spatial acceleration in its own frame."""
    b.a = fixed_in_link(b) @ p.a


def acceleration_out(b: Node, p: Node) -> None:
    """Outwards: velocities and accelerations alone."""
    velocity(b, p)
    b.a = b.X @ p.a + b.S @ b.qdd + b.c


def reaction_in(b: Node, p: Node) -> None:
    """As `newton_euler_in`; the wrench on the joint's child, at its frame M, also where the tree runs the other way."""
    newton_euler_in(b, p)
    b.reaction = -(Transform(b.X.factors[:-2]).T @ b.f) if b.kind.backwards else b.f


def newton_euler_out_loaded(b: Node, p: Node) -> None:
    """As `newton_euler_out`, with external force."""
    newton_euler_out(b, p)
    b.f = b.f - b.fx


def articulated_out_loaded(b: Node, p: Node) -> None:
    """As `articulated_out`, with external force."""
    articulated_out(b, p)
    b.pA = b.pA - b.fx


_OUT, _IN = "down", "up"
_MOTION = {"v": "vector6", "a": "vector6"}
_ARTICULATED = (Sweep(_IN, articulated_in), Sweep(_OUT, articulated_acceleration))
_LOADS = Sweep("bodies_up", body_wrench)
_LOADED = {"fx": "vector6"}

FORWARD_DYNAMICS = Recursion(
    "forward_dynamics", ("q", "qd", "tau"), {**_MOTION, "IA": "symmetric6", "pA": "vector6"},
    (Sweep(_OUT, articulated_out), *_ARTICULATED), (Output("a", "qdd", "joint"),),
    ground={"a": "gravity"}, regrouped=True,
)  # fmt: skip
FORWARD_DYNAMICS_LOADED = Recursion(
    "forward_dynamics_loaded", ("q", "qd", "tau", "wrench"), {**FORWARD_DYNAMICS.shared, **_LOADED},
    (_LOADS, Sweep(_OUT, articulated_out_loaded), *_ARTICULATED), (Output("a", "qdd", "joint"),),
    ground={"a": "gravity"}, accumulate=("fx",), regrouped=True,
)  # fmt: skip
INVERSE_DYNAMICS = Recursion(
    "inverse_dynamics", ("q", "qd", "qdd"), {**_MOTION, "f": "vector6"},
    (Sweep(_OUT, newton_euler_out), Sweep(_IN, newton_euler_in)), (Output("tau", "tau", "joint"),),
    ground={"a": "gravity"}, regrouped=True,
)  # fmt: skip
INVERSE_DYNAMICS_LOADED = Recursion(
    "inverse_dynamics_loaded", ("q", "qd", "qdd", "wrench"), {**INVERSE_DYNAMICS.shared, **_LOADED},
    (_LOADS, Sweep(_OUT, newton_euler_out_loaded), Sweep(_IN, newton_euler_in)), (Output("tau", "tau", "joint"),),
    ground={"a": "gravity"}, accumulate=("fx",), regrouped=True,
)  # fmt: skip
JOINT_WRENCHES = Recursion(
    "joint_wrenches", INVERSE_DYNAMICS_LOADED.inputs, INVERSE_DYNAMICS_LOADED.shared,
    (_LOADS, Sweep(_OUT, newton_euler_out_loaded), Sweep(_IN, reaction_in)), (Output("f", "reaction", "link", (6,)),),
    ground={"a": "gravity"}, accumulate=("fx",),
)  # fmt: skip
MASS_MATRIX = Recursion(
    "mass_matrix", ("q",), {"IC": "symmetric6"},
    (Sweep(_OUT, composite_out), Sweep(_IN, composite_in), Climb(composite_force, carry_composite, mass_block, ("H",))),
    (Output("M", "H", "matrix"),), regrouped=True,
)  # fmt: skip
CORIOLIS_MATRIX = Recursion(
    "coriolis_matrix", ("q", "qd"), {"v": "vector6", "IC": "symmetric6", "BC": "general6"},
    (Sweep(_OUT, coriolis_out), Sweep(_IN, coriolis_in),
     Climb(coriolis_force, force_to_parent, coriolis_block, ("C",))),
    (Output("C", "C", "matrix"),), regrouped=True,
)  # fmt: skip
KINETIC_ENERGY = Recursion(
    "kinetic_energy", ("q", "qd"), {"v": "vector6", "T": "scalar"},
    (Sweep(_OUT, energy_out), Sweep(_IN, energy_in)), (Output("T", "T", "total"),), regrouped=True,
)  # fmt: skip
MOMENTUM = Recursion(
    "momentum", ("q", "qd"), {"v": "vector6", "h": "vector6", "IC": "symmetric6"},
    (Sweep(_OUT, momentum_out), Sweep(_IN, momentum_in)),
    (Output("h", "h", "total", (6,)), Output("IC", "IC", "total", (6, 6))),
)  # fmt: skip
SUBTREES = Recursion(
    "subtrees", ("q", "qd"), {"R": "matrix3", "r0": "vector3", "v": "vector6", "T": "scalar", "h": "vector6"},
    (Sweep(_OUT, subtree_out), Sweep(_IN, subtree_in)),
    (Output("T", "T0", "link"), Output("h", "h0", "link", (6,))), ground={"R": "identity"},
)  # fmt: skip
COMPOSITE_INERTIA = Recursion(
    "composite_inertia", ("q",), {"IC": "symmetric6"},
    (Sweep(_OUT, composite_out), Sweep(_IN, composite_in)), (Output("IC", "IC", "total", (6, 6)),),
)  # fmt: skip
BODY_POSES = Recursion(
    "body_poses", ("q",), {"R": "matrix3", "r0": "vector3"},
    (Sweep(_OUT, pose), Sweep("bodies_down", body_pose)), (Output("pose", "pose", "body", (16,)),),
    ground={"R": "identity"},
)  # fmt: skip
JOINT_AXES = Recursion(
    "joint_axes", ("q",), BODY_POSES.shared, (Sweep(_OUT, axes),), (Output("axes", "axes", "joint", (6,)),),
    ground={"R": "identity"},
)  # fmt: skip
CHANGED_AXES = Recursion(
    "changed_axes", ("q", "qd", "qdd"), {**BODY_POSES.shared, **_MOTION}, (Sweep(_OUT, changed_axes),),
    (Output("axes", "axes", "joint", (6,)), Output("Psid", "Psid0", "joint", (6,)),
     Output("Psidd", "Psidd0", "joint", (6,)), Output("Omega", "Omega0", "joint", (6,))), ground={"R": "identity"},
)  # fmt: skip
BODY_TWISTS = Recursion(
    "body_twists", ("q", "qd"), {"v": "vector6"},
    (Sweep(_OUT, velocity), Sweep("bodies_down", body_twist)), (Output("v", "v", "body", (6,)),),
)  # fmt: skip
BODY_ACCELERATIONS = Recursion(
    "body_accelerations", ("q", "qd", "qdd"), _MOTION,
    (Sweep(_OUT, acceleration_out), Sweep("bodies_down", body_acceleration)), (Output("a", "a", "body", (6,)),),
)  # fmt: skip


class Spatial(TreeFormulation):
    """Featherstone's recursions with 6-D vectors, in the tree's coordinates."""

    name = "spatial"
    about = "six-dimensional vectors, joint coordinates"
    has_recursions = True
    solves_mass_matrix = False
    divides = True
    inverse = INVERSE_DYNAMICS_LOADED
    mass = MASS_MATRIX
    forward = FORWARD_DYNAMICS_LOADED
    joint_wrenches = JOINT_WRENCHES
    quantities = quantity_table(
        Quantity("forward_dynamics", ("q", "v", "tau"), (("a", per_velocity),), FORWARD_DYNAMICS),
        Quantity(
            "forward_dynamics_loaded", ("q", "v", "tau", "wrenches"), (("a", per_velocity),), FORWARD_DYNAMICS_LOADED
        ),
        *joint_space_quantities(INVERSE_DYNAMICS, INVERSE_DYNAMICS_LOADED, MASS_MATRIX),
        INVERSE,
        INVERSE_LOADED,
        FORWARD,
        Quantity("coriolis_matrix", ("q", "v"), (("C", square),), CORIOLIS_MATRIX),
        *totals(
            KINETIC_ENERGY, MOMENTUM, COMPOSITE_INERTIA,
            moment=lambda model, results: [results[0][3, 3], first_moment(results[0])],
            spin=lambda model, results: results[:1],
        ),
        Quantity(
            "joint_wrenches", ("q", "v", "a", "wrenches"), (("f", lambda model: (len(model.tree.links), 6)),),
            JOINT_WRENCHES,
        ),
        Quantity(
            "subtrees", ("q", "v"),
            (("T", lambda model: (len(model.tree.links),)), ("h", lambda model: (len(model.tree.links), 6))), SUBTREES,
        ),
        Quantity("body_poses", ("q",), (("pose", per_body(16)),), BODY_POSES),
        Quantity("body_twists", ("q", "v"), (("v", per_body(6)),), BODY_TWISTS),
        Quantity("joint_axes", ("q",), (("axes", lambda model: (model.nv, 6)),), JOINT_AXES),
        Quantity(
            "changed_axes", ("q", "v", "a"),
            tuple((name, lambda model: (model.nv, 6)) for name in ("axes", "Psid", "Psidd", "Omega")), CHANGED_AXES,
        ),
        Quantity("body_accelerations", ("q", "v", "a"), (("a", per_body(6)),), BODY_ACCELERATIONS),
    )  # fmt: skip

    def equation_changes(
        self, parts: Parts, kept: Sequence[int], a: Matrix, lam: Matrix
    ) -> tuple[Changes, Changes] | None:
        """By a recursion and from the two sides of each cut joint, where nothing else ties links together."""
        from cardan.formulation.loop_derivatives import (  # which trees do without
            equation_changes,
            has_only_cut_joints,
        )

        if type(self) is not Spatial or not has_only_cut_joints(parts.model):
            return None
        return equation_changes(parts, kept, a, lam)


SPATIAL = Spatial()


def frame_pose_of(frame: str) -> Quantity:
    """Quantity `pose` (4, 4) of a body or frame in ground axes."""

    def write(model: Model, inputs: Inputs) -> list[Matrix]:
        import casadi as ca

        R, r = _frame_at(model, inputs["q"], frame)
        return [ca.vertcat(ca.horzcat(R, r), ca.SX([[0, 0, 0, 1]]))]

    return Quantity(f"pose of {frame}", ("q",), (("pose", fixed(4, 4)),), write=write)


def _frame_at(model: Model, q: Matrix, frame: str) -> tuple[Matrix, Matrix]:
    """Axes and origin of a body or frame in ground axes."""
    i, at = model.placement(frame)
    R, r = eye(3, q), type(q)(3, 1)
    if i != GROUND:
        link = run(BODY_POSES, model, {"q": q}).links[i]
        R, r = link.R, link.r0
    return R @ constant(at.rotation), r + R @ constant(at.position)


def frame_jacobian(frame: str, axes: str = "body") -> Quantity:
    """Quantity `J` (6, nv) with `J v` the twist of a body or frame in its own components.

    With `axes="ground"` it is the angular velocity, and the velocity of the frame's origin, in ground components.

    Six unit forces on the frame are carried to the root (RBDA section 6.3). The joint forces `S^T G` on the way are
    the transpose of the velocities per unit rate.
    """

    def write(model: Model, inputs: Inputs) -> list[Matrix]:
        i, at = model.placement(frame)
        q = inputs["q"]
        J = type(q)(6, model.nv)
        X = Transform((turned(constant(at.rotation.T)), shifted(constant(at.position))))
        forces: tuple[Matrix, ...] = (X.T @ eye(6, q),)
        while i != GROUND:
            link = model.tree.links[i]
            b = SimpleNamespace(kind=link.kind, E=constant(link.E), r=constant(link.r), q=segment(q, link.q))
            joint(b, None)
            J[:, link.v] = forces[0].T @ b.S
            forces = force_to_parent(b, forces)
            i = link.parent
        return [J if axes == "body" else turned(_frame_at(model, q, frame)[0]) @ J]

    return Quantity(f"jacobian of {frame}", ("q",), (("J", lambda model: (6, model.nv)),), write=write)
