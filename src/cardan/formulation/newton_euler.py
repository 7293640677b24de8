"""Dynamics of a tree with 3-D vectors: Newton and Euler, body by body.

Notation: all of a body's vectors in its own frame. `E` takes components of the parent p to the body b, `r` is b's
origin in p; `w`, `wd` angular velocity and acceleration, `vO`, `aO` velocity and acceleration of the origin (`aO`
minus gravity); the joint adds `wJ`, `vJ`. `m`, `mc`, `J` are mass, first moment and rotational inertia about the
origin, of the body or of all beyond it; `f`, `n` the force across the joint and its moment about the origin; `R`,
`r0` axes and origin in ground components.

Source: Luh, Walker and Paul (1980) for the recursion; F3 for transfer rules and balances; FX. Equations: F3(1),
F3(2), F3(5), F3(9), F3(10), F3(11), F3(12), F3(14), F3(15), F3(16), F3(17), F3(19); FX(A1), FX(A4), FX(B3), FX(C1).
"""

from __future__ import annotations

from cardan.algebra.matrix import Matrix, as_graph, dot, eye, mirrored, stack, zeros
from cardan.algebra.rotation import cross, skew
from cardan.algebra.spatial import first_moment
from cardan.formulation.armature import drive_force, not_carried, own_columns, rotor_energy, with_own
from cardan.formulation.quantity import Quantity, per_body
from cardan.formulation.recursion import Climb, Node, Output, Recursion, Sweep
from cardan.formulation.tree import TreeFormulation, joint_space_quantities, quantity_table, solved, totals


def joint(b: Node, p: Node) -> None:
    """Turn, shift and motion directions of the joint; mass parameters about the origin."""
    b.turnJ = b.kind.E(b.q) if b.kind.E is not None else eye(3, b.E)
    b.shiftJ = as_graph(b.kind.r(b.q), b.q) if b.kind.r is not None else zeros(3, None, b.E)
    b.turn, b.shift = b.turnJ @ b.E, b.r + b.E.T @ b.shiftJ
    S = as_graph(b.kind.S(b.q), b.q)
    b.Sw, b.Sv = S[:3, :], S[3:, :]
    b.m, b.J = b.I[3, 3], b.I[:3, :3]
    b.mc = first_moment(b.I)


def velocity(b: Node, p: Node) -> None:
    """Outwards: velocities of the body and of its origin."""
    joint(b, p)
    b.wJ, b.vJ = b.Sw @ b.qd, b.Sv @ b.qd
    b.w = b.turn @ p.w + b.wJ  # F3(14), as rates
    b.vO = b.turn @ (p.vO - cross(b.shift, p.w)) + b.vJ  # F3(5), as rates


def acceleration(b: Node, p: Node) -> None:
    """Outwards: accelerations of the body and of its origin."""
    velocity(b, p)
    cw, cv = _bias(b)
    b.wd = b.turn @ p.wd + b.Sw @ b.qdd + cw + cross(b.w, b.wJ)  # F3(16), moving
    carried = p.aO - cross(b.shift, p.wd) + cross(p.w, cross(p.w, b.shift))  # F3(17), moving
    b.aO = b.turn @ carried + b.Sv @ b.qdd + cv + cross(2 * b.w - b.wJ, b.vJ)


def _bias(b: Node) -> tuple[Matrix, Matrix]:
    if b.kind.bias is None:
        return zeros(3, None, b.E), zeros(3, None, b.E)
    c = b.kind.bias(b.q, b.qd)
    return c[:3], c[3:]


# Inverse dynamics: Newton's and Euler's equations outwards, balance of forces inwards.


def newton_euler_out(b: Node, p: Node) -> None:
    """Outwards: accelerations, and the force each body needs."""
    acceleration(b, p)
    b.f = b.m * b.aO + cross(b.wd, b.mc) + cross(b.w, cross(b.w, b.mc))  # F3(1); FX(A4)
    b.n = b.J @ b.wd + cross(b.w, b.J @ b.w) + cross(b.mc, b.aO)  # F3(2); FX(A4)


def newton_euler_in(b: Node, p: Node) -> None:
    """Inwards: each joint carries its body and all beyond."""
    b.tau = b.Sw.T @ b.n + b.Sv.T @ b.f + drive_force(b)  # F3(15) with a drive
    f = b.turn.T @ b.f  # F3(9)
    p.f = p.f + f  # F3(11)
    p.n = p.n + b.turn.T @ b.n + cross(b.shift, f)  # F3(10),(12)


# Mass matrix: the bodies beyond a joint as one, and the force that moves it.


def composite_out(b: Node, p: Node) -> None:
    """Outwards: each composite begins with its own body."""
    joint(b, p)
    b.mC, b.mcC, b.JC = b.m, b.mc, b.J


def composite_in(b: Node, p: Node) -> None:
    """Inwards: mass, first moment and inertia of all beyond, about the parent's origin."""
    r, mc = b.shift, b.turn.T @ b.mcC
    p.mC = p.mC + b.mC
    p.mcC = p.mcC + mc + b.mC * r
    A = skew(r) @ skew(mc)
    p.JC = p.JC + mirrored(b.turn.T @ b.JC @ b.turn - A - A.T - b.mC * (skew(r) @ skew(r)))  # F3(19), twice


def composite_force(b: Node) -> tuple[Matrix, ...]:
    """Moment and force that accelerate the composite along its joint."""
    n, f = b.JC @ b.Sw + skew(b.mcC) @ b.Sv, b.mC * b.Sv - skew(b.mcC) @ b.Sw  # FX(A1), as rates
    return n, f, own_columns(b)


def force_to_parent(c: Node, forces: tuple[Matrix, ...]) -> tuple[Matrix, ...]:
    """Take moment and force across a joint."""
    n, f = c.turn.T @ forces[0], c.turn.T @ forces[1]
    return n + skew(c.shift) @ f, f, not_carried(forces[2])  # F3(9),(10)


def mass_block(j: Node, forces: tuple[Matrix, ...]) -> tuple[Matrix, Matrix]:
    """Their part along the joint above."""
    H = with_own(j, j.Sw.T @ forces[0] + j.Sv.T @ forces[1], forces[2])  # FX(B3)
    return H, H


# Energy and momentum, FX(C1); poses; what external wrenches add.


def energy_out(b: Node, p: Node) -> None:
    """Outwards: velocity and own kinetic energy."""
    velocity(b, p)
    b.T = (b.m * dot(b.vO, b.vO) + dot(b.w, b.J @ b.w)) / 2 + dot(b.vO, cross(b.w, b.mc)) + rotor_energy(b)


def energy_in(b: Node, p: Node) -> None:
    """Inwards: kinetic energy of all beyond."""
    p.T = p.T + b.T  # FX(C1)


def momentum_out(b: Node, p: Node) -> None:
    """Outwards: velocity and own momentum."""
    velocity(b, p)
    b.hl = b.m * b.vO + cross(b.w, b.mc)  # FX(A1)
    b.hn = b.J @ b.w + cross(b.mc, b.vO)


def momentum_in(b: Node, p: Node) -> None:
    """Inwards: momentum of all beyond."""
    h = b.turn.T @ b.hl
    p.hl = p.hl + h  # FX(C1)
    p.hn = p.hn + b.turn.T @ b.hn + cross(b.shift, h)


def pose(b: Node, p: Node) -> None:
    """Outwards: axes and origin in ground components."""
    joint(b, p)
    b.R, b.r0 = p.R @ b.turn.T, p.r0 + p.R @ b.shift


def body_pose(b: Node, p: Node) -> None:
    """A body fixed to its link: homogeneous matrix."""
    import casadi as ca

    top = ca.horzcat(p.R @ b.E.T, p.r0 + p.R @ b.r)
    b.pose = ca.vertcat(top, ca.SX([[0, 0, 0, 1]]))


def body_twist(b: Node, p: Node) -> None:
    """A body fixed to its link: its velocity in its own frame."""
    import casadi as ca

    b.v = ca.vertcat(b.E @ p.w, b.E @ (p.vO - cross(b.r, p.w)))


def body_wrench(b: Node, p: Node) -> None:
    """A wrench on a body, carried to its link."""
    n, f = b.E.T @ b.wrench[:3], b.E.T @ b.wrench[3:]
    p.fx, p.nx = p.fx + f, p.nx + n + cross(b.r, f)


def reaction_in(b: Node, p: Node) -> None:
    """As `newton_euler_in`; the wrench on the joint's child, at its frame M, also where the tree runs the other way."""
    newton_euler_in(b, p)
    b.reaction = stack(b.n, b.f)
    if b.kind.backwards:
        f = b.turnJ.T @ b.f
        b.reaction = -stack(b.turnJ.T @ b.n + cross(b.shiftJ, f), f)


def newton_euler_out_loaded(b: Node, p: Node) -> None:
    """As `newton_euler_out`, with external force."""
    newton_euler_out(b, p)
    b.f, b.n = b.f - b.fx, b.n - b.nx


_OUT, _IN = "down", "up"
_VELOCITY = {"w": "vector3", "vO": "vector3"}
_MOTION = {**_VELOCITY, "wd": "vector3", "aO": "vector3"}
_FORCE = {"f": "vector3", "n": "vector3"}
_LOADED = {"fx": "vector3", "nx": "vector3"}
_COMPOSITE = {"mC": "scalar", "mcC": "vector3", "JC": "symmetric3"}

INVERSE_DYNAMICS = Recursion(
    "inverse_dynamics", ("q", "qd", "qdd"), {**_MOTION, **_FORCE},
    (Sweep(_OUT, newton_euler_out), Sweep(_IN, newton_euler_in)), (Output("tau", "tau", "joint"),),
    ground={"aO": "gravity3"},
)  # fmt: skip
INVERSE_DYNAMICS_LOADED = Recursion(
    "inverse_dynamics_loaded", ("q", "qd", "qdd", "wrench"), {**INVERSE_DYNAMICS.shared, **_LOADED},
    (Sweep("bodies_up", body_wrench), Sweep(_OUT, newton_euler_out_loaded), Sweep(_IN, newton_euler_in)),
    (Output("tau", "tau", "joint"),), ground={"aO": "gravity3"}, accumulate=("fx", "nx"),
)  # fmt: skip
JOINT_WRENCHES = Recursion(
    "joint_wrenches", INVERSE_DYNAMICS_LOADED.inputs, INVERSE_DYNAMICS_LOADED.shared,
    (Sweep("bodies_up", body_wrench), Sweep(_OUT, newton_euler_out_loaded), Sweep(_IN, reaction_in)),
    (Output("f", "reaction", "link", (6,)),), ground={"aO": "gravity3"}, accumulate=("fx", "nx"),
)  # fmt: skip
MASS_MATRIX = Recursion(
    "mass_matrix", ("q",), _COMPOSITE,
    (Sweep(_OUT, composite_out), Sweep(_IN, composite_in), Climb(composite_force, force_to_parent, mass_block, ("H",))),
    (Output("M", "H", "matrix"),),
)  # fmt: skip
KINETIC_ENERGY = Recursion(
    "kinetic_energy", ("q", "qd"), {**_VELOCITY, "T": "scalar"},
    (Sweep(_OUT, energy_out), Sweep(_IN, energy_in)), (Output("T", "T", "total"),),
)  # fmt: skip
MOMENTUM = Recursion(
    "momentum", ("q", "qd"), {**_VELOCITY, "hn": "vector3", "hl": "vector3"},
    (Sweep(_OUT, momentum_out), Sweep(_IN, momentum_in)),
    (Output("n", "hn", "total", (3,)), Output("l", "hl", "total", (3,))),
)  # fmt: skip
COMPOSITE_INERTIA = Recursion(
    "composite_inertia", ("q",), _COMPOSITE, (Sweep(_OUT, composite_out), Sweep(_IN, composite_in)),
    (Output("m", "mC", "total"), Output("mc", "mcC", "total", (3,)), Output("J", "JC", "total", (3, 3))),
)  # fmt: skip
BODY_POSES = Recursion(
    "body_poses", ("q",), {"R": "matrix3", "r0": "vector3"},
    (Sweep(_OUT, pose), Sweep("bodies_down", body_pose)), (Output("pose", "pose", "body", (16,)),),
    ground={"R": "identity"},
)  # fmt: skip
BODY_TWISTS = Recursion(
    "body_twists", ("q", "qd"), _VELOCITY,
    (Sweep(_OUT, velocity), Sweep("bodies_down", body_twist)), (Output("v", "v", "body", (6,)),),
)  # fmt: skip


class NewtonEuler(TreeFormulation):
    """Newton's and Euler's equations body by body with 3-D vectors, in the tree's coordinates."""

    name = "newton_euler"
    about = "three-dimensional vectors, joint coordinates"
    has_recursions = True
    inverse = INVERSE_DYNAMICS_LOADED
    mass = MASS_MATRIX
    joint_wrenches = JOINT_WRENCHES
    quantities = quantity_table(
        solved("forward_dynamics", INVERSE_DYNAMICS, MASS_MATRIX),
        solved("forward_dynamics_loaded", INVERSE_DYNAMICS_LOADED, MASS_MATRIX),
        *joint_space_quantities(INVERSE_DYNAMICS, INVERSE_DYNAMICS_LOADED, MASS_MATRIX),
        *totals(
            KINETIC_ENERGY, MOMENTUM, COMPOSITE_INERTIA,
            moment=lambda model, results: results[:2],
            spin=lambda model, results: [stack(*results)],
        ),
        Quantity(
            "joint_wrenches", ("q", "v", "a", "wrenches"), (("f", lambda model: (len(model.tree.links), 6)),),
            JOINT_WRENCHES,
        ),
        Quantity("body_poses", ("q",), (("pose", per_body(16)),), BODY_POSES),
        Quantity("body_twists", ("q", "v"), (("v", per_body(6)),), BODY_TWISTS),
    )  # fmt: skip


NEWTON_EULER = NewtonEuler()
