"""Each formulation in its own coordinates: the contract that integrators and users of the equations work with.

    M(q,t) vdot + J(q,t)^T lam = f(q,v,t)      J vdot = gamma(q,v,t)      qdot = N(q) v      phi(q,t) = 0

Tree formulations have the tree's q and v. `absolute`: for every link the position of its centre of mass and a
quaternion, with rates `(w, v_G)`; `relative`: for every link position and quaternion relative to its neighbour,
with the relative twist as rates. Links are those of `Model.separate`. `points` (planar mechanisms): the points that
describe it, see `formulation.points_native`.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np

from cardan.algebra.matrix import Matrix, as_graph, constant, eye, segment, stack, zeros
from cardan.algebra.rotation import (
    quaternion_exp,
    quaternion_of_rotation,
    quaternion_product,
    quaternion_rates,
    rotation_of_quaternion,
)
from cardan.errors import InputError, UnknownNameError, nearest
from cardan.formulation import absolute, relative
from cardan.formulation.angles import counted
from cardan.formulation.armature import refuse_armature
from cardan.formulation.constrained import (
    BUILDERS,
    Loads,
    Parts,
    body_motion,
    build_parts,
    drives_of,
    on_links,
    relative_parts,
    with_elements,
)
from cardan.formulation.joint_rows import dual
from cardan.formulation.loops import MOTION, measure
from cardan.formulation.quantity import PLUS, Inputs, links_from_bodies
from cardan.formulation.recursion import Nodes, run
from cardan.model.joint import FREE
from cardan.model.model import Model
from cardan.model.transform import configuration_rate

TREE = {"spatial", "newton_euler"}  # those in the tree's own coordinates
ADDED: dict[str, str] = {}  # formulations that users added, and the key that each is built under
FRAMES = ("fixed", "body")
Five = list[Matrix]


def formulation_key(formulation: str, frame: str = "fixed") -> str:
    """The name under which a formulation is built, from the words that the user gives."""
    if frame not in FRAMES:
        raise InputError(f"frame must be 'fixed' or 'body', got {frame!r}")
    if isinstance(formulation, str) and formulation in ADDED:
        return ADDED[formulation]
    known = [name for name in BUILDERS if name != "absolute_body" and name not in ADDED.values()] + list(ADDED)
    if formulation not in known:
        raise UnknownNameError(f"formulation {formulation!r} is not one{nearest(formulation, known)}")
    return "absolute_body" if formulation == "absolute" and frame == "body" else formulation


def add_formulation(name: str, build: Callable[[Model, Matrix, Matrix, Loads], Parts]) -> None:
    """Let `formulation=name` mean equations of your own, in the tree's coordinates.

    `build(model, q, v, loads)` writes them over symbols. Its key is another one each time, so that no kernel kept in
    memory or on disk is taken for what the function says now.
    """
    if not isinstance(name, str) or not name.strip() or not callable(build):
        raise InputError(f"add_formulation: a name and a function are added, got {name!r} and {build!r}")
    if name in BUILDERS:
        raise InputError(f"formulation {name!r} is Cardan's own; give yours another name")
    key = f"{name} {os.urandom(16).hex()}"
    BUILDERS[key] = build
    TREE.add(key)
    ADDED[name] = key


def sizes(model: Model, key: str) -> tuple[int, int]:
    """How many coordinates and rates a formulation has."""
    if key == "points":
        return (_points().size(model),) * 2
    n = len(model.separate.tree.links)
    return (model.nq, model.nv) if key in TREE else (7 * n, 6 * n)


def system(model: Model, key: str, inputs: Inputs) -> Five:
    """`M`, `f`, `J`, `gamma`, `phi` at a state in the formulation's own coordinates.

    Forces along joints have the angles nearest to `about` (nq,), a configuration of the tree, where that is an input.
    """
    if key == "points":
        refuse_armature(model, key)
        return _points().system(model, inputs)
    q, v, tau, wrenches, t = (inputs[name] for name in ("q", "v", "tau", "wrenches", "t"))
    if key in TREE:
        p = build_parts(model, key, q, v, tau, wrenches, t)
        return [p.M, p.f, p.J, p.gamma, p.phi]
    apart, nodes = model.separate, nodes_of(model, key, q, v)
    loads = Loads(drives_of(model, tau), wrenches)
    if key == "relative":
        own = [_relative_joint(apart, i, q, v) for i in range(len(apart.tree.links))]
        joints = {link.joint: pair[:2] for link, pair in zip(apart.tree.links, own, strict=True)}
        joints |= {j: (m.rows.q, m.rows.qd) for j in apart.cuts for m in [measure(apart, nodes, j)]}
        loads = with_elements(apart, loads, nodes, counted(model, joints, inputs), t)
        six = relative.relative_model(apart, FREE)
        tree_q, tree_v, phi = (stack(*part) for part in zip(*own, strict=True))
        p = relative_parts(model, six, q, v, tree_q, tree_v, loads, phi)
        return [p.M, p.f, p.J, p.gamma, p.phi]
    measured = {j: measure(apart, nodes, j).rows for j in range(len(apart.joints))}
    joints = {j: (r.q, r.qd) for j, r in measured.items()}
    loads = with_elements(apart, loads, nodes, counted(model, joints, inputs), t)
    links = on_links(apart, loads.wrenches)
    s = absolute.absolute_system(apart, nodes, links, loads.tau, _frame(key), loads.couplings)
    M, f = s.whole
    if _frame(key) == "fixed":
        return [M, f, s.J, s.gamma, s.phi]
    Q = _to_link_axes(apart)
    return [Q.T @ M @ Q, Q.T @ f, s.J @ Q, s.gamma, s.phi]


def nodes_of(model: Model, key: str, q: Matrix, v: Matrix) -> Nodes:
    """Pose and velocity of every link."""
    apart = model.separate
    if key in TREE:
        return run(MOTION, apart, {"q": q, "v": v})
    if key == "relative":
        return run(MOTION, relative.relative_model(apart, FREE), {"q": q, "v": v})
    links = []
    rates = _to_link_axes(apart) @ v if _frame(key) == "body" else v
    for i, link in enumerate(apart.tree.links):
        c = constant(link.com)
        R = rotation_of_quaternion(q[7 * i + 3 : 7 * i + 7]) @ constant(_body_axes(apart, i).T)
        twist = absolute.twist_matrix(R, c, _frame(key)) @ rates[6 * i : 6 * i + 6]
        links.append(SimpleNamespace(R=R, r0=q[7 * i : 7 * i + 3] - R @ c, v=twist))
    ground = SimpleNamespace(R=eye(3, q), r0=zeros(3, None, q), v=zeros(6, None, q))
    return Nodes(links, [], ground)


def rates(model: Model, key: str, inputs: Inputs) -> Five:
    """`qdot = N(q) v`."""
    q, v = inputs["q"], inputs["v"]
    if key == "points":
        return [v]
    apart, parts = model.separate, []
    if key in TREE:
        parts = [configuration_rate(k.kind, segment(q, k.q), segment(v, k.v)) for k in model.tree.links if k.kind.nq]
    for i in range(len(apart.tree.links) if key not in TREE else 0):
        own, rate = q[7 * i : 7 * i + 7], v[6 * i : 6 * i + 6]
        if key == "relative":
            parts.append(configuration_rate(FREE, own, rate))
        else:
            turn = rate[:3] if _frame(key) == "body" else rotation_of_quaternion(own[3:7]).T @ rate[:3]
            parts.append(stack(rate[3:], quaternion_rates(own[3:7], turn)))
    return [stack(*parts) if parts else q]


def plus(model: Model, key: str, inputs: Inputs) -> Five:
    """Coordinates after moving with constant rates `v` for unit time."""
    q, v = inputs["q"], inputs["v"]
    if key == "points":
        return [q + v]
    if key in TREE:
        return PLUS.graph(model, inputs)
    parts: list[Matrix] = []
    for i in range(len(model.separate.tree.links)):
        own, rate = q[7 * i : 7 * i + 7], v[6 * i : 6 * i + 6]
        if key == "relative":
            parts.append(FREE.plus(own, rate))
        else:
            e, turn = own[3:7], quaternion_exp(rate[:3])
            turned = quaternion_product(e, turn) if _frame(key) == "body" else quaternion_product(turn, e)
            parts.append(stack(own[:3] + rate[3:], turned))
    return [stack(*parts) if parts else q]


def lift(model: Model, key: str, inputs: Inputs) -> Five:
    """Poses (nb, 16) and twists (nb, 6) of all bodies."""
    import casadi as ca

    if key == "points":
        return _points().lift(model, inputs)
    pose, twist = body_motion(model.separate, nodes_of(model, key, inputs["q"], inputs["v"]))
    last = ca.SX([[0, 0, 0, 1]])
    poses = [ca.vertcat(ca.horzcat(*pose(b)), last) for b in range(model.nb)]
    return [
        ca.vertcat(*(ca.vec(P.T).T for P in poses)),
        ca.vertcat(*(twist(b).T for b in range(model.nb))),
    ]


def project(model: Model, key: str, inputs: Inputs) -> Five:
    """The other way: coordinates and rates from poses (nb, 16) and twists (nb, 6) of all bodies."""
    if key == "points":
        return _points().project(model, inputs)
    apart = model.separate
    at = links_from_bodies(apart, inputs)
    q, v = [], []
    for i, link in enumerate(apart.tree.links):
        R, r, twist = at[i]
        if key == "relative":
            R_p, r_p, v_p = at[link.parent]
            R_F, r_F = R_p @ constant(link.E.T), r_p + R_p @ constant(link.r)
            E, p = R.T @ R_F, R_F.T @ (r - r_F)
            q.append(stack(p, quaternion_of_rotation(E.T)))
            X = relative.placed(E, p, link)
            v.append(twist - X @ v_p)
        else:
            c = constant(link.com)
            q.append(stack(r + R @ c, quaternion_of_rotation(R @ constant(_body_axes(apart, i)))))
            v.append(absolute.rates(R, c, twist, _frame(key)))
    u = stack(*v)
    return [stack(*q), _to_link_axes(apart).T @ u if key == "absolute_body" else u]


def _body_axes(model: Model, i: int) -> np.ndarray:
    """Axes (3, 3) of a link's own body, the one with mass, in the link, whose frame follows its joint."""
    members = [b for b, link in enumerate(model.tree.body_link) if link == i]
    heaviest = max(members, key=lambda b: model.bodies[b].mass)
    return np.asarray(model.tree.body_pose[heaviest].rotation)


def _to_link_axes(model: Model) -> Matrix:
    """Matrix (6n, 6n) that takes angular rates from the bodies' axes to the links'."""
    import casadi as ca

    blocks = [constant(_body_axes(model, i)) for i in range(len(model.tree.links))]
    return ca.diagcat(*(part for R in blocks for part in (R, ca.SX.eye(3))))


def _relative_joint(model: Model, i: int, q: Matrix, v: Matrix) -> tuple[Matrix, Matrix, Matrix]:
    """A link's own joint coordinates and rates, and its residual, measured in relative coordinates."""
    kind, own = model.tree.links[i].kind, q[7 * i : 7 * i + 7]
    R, p = rotation_of_quaternion(own[3:7]), own[:3]
    x = kind.measure(R, p)
    S = as_graph(kind.S(x), q)
    return x, dual(S).T @ v[6 * i : 6 * i + 6], kind.phi(R, p)


def _frame(key: str) -> str:
    return "body" if key == "absolute_body" else "fixed"


def _points() -> Any:
    """The planar formulation's own coordinates, read when first asked for: the quickest first call needs none of it."""
    from cardan.formulation.points import coordinates as points_native

    return points_native
