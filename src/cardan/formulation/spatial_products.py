"""Products with the derivatives of a tree's dynamics with 6-D vectors: recursions without the derivatives themselves.

Notation: that of `formulation.spatial_derivatives`, all of a body's vectors in its own frame. Inverse dynamics is
weighted with `mu` (nv,). With `w_k` the velocity of body k that the rates `mu` alone would give, the weighted force is
the work of all bodies' forces, and when joint i moves by `delta` all `w_k` beyond it change by `Psiw_i delta`:

    mu^T tau = sum_k w_k^T f_k          w_i = X w_p + S_i mu_i          Psiw_i = w_p x S_i + (S_i mu_i)'

So the changes of `f_k` need not be carried to the joints, and each gradient is a sum over the bodies beyond a joint,
which climbs as a force does:

    by q_i:    Psiw_i^T fC_i + Psid_i^T gC_i + Psidd_i^T lC_i       gC_i = sum_k 2 B_k^T w_k    lC_i = sum_k I_k w_k
    by qd_i:   S_i^T gC_i + Omega_i^T lC_i
    by qdd_i:  S_i^T lC_i = (M mu)_i

`2 B^T w` is a pure couple, since `2 B = [K 0; P x 0]`: three numbers that a shift does not change. Along directions
`dq`, `dqd`, `dqdd` all changes of a body add up on the way outwards,

    s_i = X s_p + S_i dq_i                            the body is turned and shifted by s_i
    y_i = X y_p + Psid_i dq_i + S_i dqd_i             so that f_k changes by 2 B_k y_k + I_k z_k in components that
    z_i = X z_p + Psidd_i dq_i + Omega_i dqd_i + S_i dqdd_i                                     move with the body

and the rate of a joint force is `S_i^T (eC_i - s_i x* fC_i) + (S_i^T fC_i)' dq_i` with `eC_i` the sum of these changes
and `s_k x* f_k` over all bodies beyond. In forward dynamics the forces are given, so that with the change `dID` of
inverse dynamics at fixed accelerations

    da = M^-1 (dtau - dID)              weight^T da = mu^T (dtau - dID)         mu = M^-1 weight

`M^-1` is applied along the tree with the articulated inertias that the accelerations need anyway: a second force `pw`
goes inwards beside `pA`, a second acceleration outwards.

Source: the weighted form is that of S. Singh, R. P. Russell, P. M. Wensing, On second-order derivatives of rigid-body
dynamics, 2023 (modified inverse dynamics), carried over to body frames and to `S` that depends on q.
Equations: F6(4), F6(5), F6(6); FX(C1).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from cardan.algebra.linsolve import ldl_solve
from cardan.algebra.matrix import Matrix, stack, zeros
from cardan.algebra.rotation import cross
from cardan.algebra.spatial import crf_bar, crm
from cardan.formulation.armature import drive_force
from cardan.formulation.formulation import tangent
from cardan.formulation.kinematics import joint
from cardan.formulation.quantity import Inputs, Quantity
from cardan.formulation.recursion import JOINT_INPUTS, Node, Output, Recursion, Sweep, unroll
from cardan.formulation.spatial import FORWARD_DYNAMICS, INVERSE_DYNAMICS, articulated_in, articulated_out
from cardan.formulation.spatial_derivatives import (
    changed_motion,
    force_and_products,
    force_change,
    forward_parts,
    subspace_changes,
)
from cardan.model.model import Model

# Gradients of inverse dynamics.


def weighted_motion(b: Node, p: Node) -> None:
    """Motion, force and momentum of a body, its weighted velocity, and how they change with its joint."""
    changed_motion(b, p)
    w_p = b.X @ p.w
    b.w = w_p + b.S @ b.mu  # FX(C1) with other rates
    b.Psiw = crm(w_p) @ b.S
    if not b.S.is_constant():
        b.Psiw = b.Psiw + subspace_changes(b.kind)(b.q, b.mu, b.mu)[0]
    b.f, K, P = force_and_products(b)
    b.l = b.I @ b.w
    b.g = K.T @ b.w[:3] + cross(b.w[3:], P)


def weighted_out(b: Node, p: Node) -> None:
    """Outwards: motions and how they change."""
    joint(b, p)
    weighted_motion(b, p)


def weighted_in(b: Node, p: Node) -> None:
    """Inwards: joint force, and the gradients from the sums over each body and all beyond."""
    b.tau = b.S.T @ b.f + drive_force(b)  # F6(4) with a drive
    b.by_q = b.Psiw.T @ b.f + b.Psid[:3, :].T @ b.g + b.Psidd.T @ b.l
    b.by_qd = b.S[:3, :].T @ b.g + b.Omega.T @ b.l
    b.by_qdd = b.S.T @ b.l if b.armature is None else b.S.T @ b.l + b.armature @ b.mu
    p.f = p.f + b.X.T @ b.f
    p.l = p.l + b.X.T @ b.l
    p.g = p.g + (b.X.T @ stack(b.g, zeros(3, 1, b.g)))[:3]


# Rates of inverse dynamics.


def directed_motion(b: Node, p: Node) -> None:
    """Motion and force of a body, and their changes along the directions."""
    changed_motion(b, p)
    b.s = b.X @ p.s + b.S @ b.dq
    b.y = b.X @ p.y + b.Psid @ b.dq + b.S @ b.dqd
    b.z = b.X @ p.z + b.Psidd @ b.dq + b.Omega @ b.dqd + b.S @ b.dqdd
    b.f, K, P = force_and_products(b)
    y = b.y[:3]
    b.e = b.I @ b.z + stack(K @ y, cross(P, y)) + crf_bar(b.f) @ b.s


def directed_out(b: Node, p: Node) -> None:
    """Outwards: motions and their changes."""
    joint(b, p)
    directed_motion(b, p)


def directed_in(b: Node, p: Node) -> None:
    """Inwards: joint force and its rate."""
    b.tau = b.S.T @ b.f + drive_force(b)  # F6(4) with a drive
    b.dtau = b.S.T @ (b.e - crf_bar(b.f) @ b.s)
    if not b.S.is_constant():
        b.dtau = b.dtau + force_change(b.kind)(b.q, b.f) @ b.dq
    if b.armature is not None:
        b.dtau = b.dtau + b.armature @ b.dqdd
    p.f = p.f + b.X.T @ b.f
    p.e = p.e + b.X.T @ b.e


# Forward dynamics: the same at its accelerations, and a second solution with the articulated inertias.


def carried_force(b: Node, p: Node, force: Matrix) -> Matrix:
    """What a joint force leaves for the joint's rate, with the second force `pw` beyond it, which goes on inwards."""
    left = force - b.S.T @ b.pw
    p.pw = p.pw + b.X.T @ (b.pw + b.U @ ldl_solve(b.D, left))  # F6(5)
    return left


def solved_in(b: Node, p: Node) -> None:
    """Inwards: what a body shows its parent under the drives, and under the weights as forces."""
    articulated_in(b, p)
    b.left = carried_force(b, p, b.weight)


def solved_acceleration(b: Node, p: Node) -> None:
    """The joint's acceleration."""
    b.qdd = ldl_solve(b.D, b.u - b.U.T @ (b.X @ p.a + b.c))  # F6(6)


def solved_weights_out(b: Node, p: Node) -> None:
    """Outwards: accelerations, weights `mu = M^-1 weight`, motions and how they change."""
    solved_acceleration(b, p)
    b.mu = ldl_solve(b.D, b.left - b.U.T @ (b.X @ p.w))  # F6(6)
    weighted_motion(b, p)


def gradients_in(b: Node, p: Node) -> None:
    """Inwards: those of the accelerations are those of inverse dynamics with the other sign."""
    weighted_in(b, p)
    b.by_q, b.by_qd = -b.by_q, -b.by_qd


def solved_directions_out(b: Node, p: Node) -> None:
    """Outwards: accelerations, motions and their changes at fixed accelerations."""
    solved_acceleration(b, p)
    b.dqdd = zeros(b.kind.nv, 1, b.dq)
    directed_motion(b, p)


def directed_forces_in(b: Node, p: Node) -> None:
    """Inwards: the change of inverse dynamics, and what it leaves of the change of the drive."""
    directed_in(b, p)
    b.left = carried_force(b, p, b.dforce - b.dtau)


def directed_acceleration(b: Node, p: Node) -> None:
    """Outwards again: rates of the joint accelerations."""
    w = b.X @ p.w
    b.da = ldl_solve(b.D, b.left - b.U.T @ w)  # F6(6)
    b.w = w + b.S @ b.da


_MOTION = {"v": "vector6", "a": "vector6", "f": "vector6"}
_WEIGHTED = {**_MOTION, "w": "vector6", "l": "vector6", "g": "vector3"}
_DIRECTED = {**_MOTION, "s": "vector6", "y": "vector6", "z": "vector6", "e": "vector6"}
_SOLVED = {"IA": "symmetric6", "pA": "vector6", "pw": "vector6"}
_OUT, _IN = "down", "up"

INVERSE_PULLED = Recursion(
    "inverse_dynamics_pulled", ("q", "qd", "qdd", "mu"), _WEIGHTED,
    (Sweep(_OUT, weighted_out), Sweep(_IN, weighted_in)),
    (Output("tau", "tau", "joint"), Output("w_q", "by_q", "joint"), Output("w_v", "by_qd", "joint"),
     Output("w_a", "by_qdd", "joint")),
    ground={"a": "gravity"}, regrouped=True,
)  # fmt: skip
INVERSE_PUSHED = Recursion(
    "inverse_dynamics_pushed", ("q", "qd", "qdd", "dq", "dqd", "dqdd"), _DIRECTED,
    (Sweep(_OUT, directed_out), Sweep(_IN, directed_in)),
    (Output("tau", "tau", "joint"), Output("dtau", "dtau", "joint")), ground={"a": "gravity"}, regrouped=True,
)  # fmt: skip
FORWARD_PULLED = Recursion(
    "forward_dynamics_pulled", ("q", "qd", "tau", "weight"), {**_WEIGHTED, **_SOLVED},
    (Sweep(_OUT, articulated_out), Sweep(_IN, solved_in), Sweep(_OUT, solved_weights_out), Sweep(_IN, gradients_in)),
    (Output("a", "qdd", "joint"), Output("w_q", "by_q", "joint"), Output("w_v", "by_qd", "joint"),
     Output("w_tau", "mu", "joint")),
    ground={"a": "gravity"}, accumulate=("pw",), regrouped=True,
)  # fmt: skip
FORWARD_PUSHED = Recursion(
    "forward_dynamics_pushed", ("q", "qd", "tau", "dq", "dqd", "dforce"), {**_DIRECTED, **_SOLVED, "w": "vector6"},
    (Sweep(_OUT, articulated_out), Sweep(_IN, articulated_in), Sweep(_OUT, solved_directions_out),
     Sweep(_IN, directed_forces_in), Sweep(_OUT, directed_acceleration)),
    (Output("a", "qdd", "joint"), Output("da", "da", "joint")),
    ground={"a": "gravity"}, accumulate=("pw",), regrouped=True,
)  # fmt: skip

_PULLED = ((INVERSE_DYNAMICS, INVERSE_PULLED), (FORWARD_DYNAMICS, FORWARD_PULLED))
_PUSHED = ((INVERSE_DYNAMICS, INVERSE_PUSHED), (FORWARD_DYNAMICS, FORWARD_PUSHED))


def pulled_recursion(quantity: Quantity, names: tuple[str, ...]) -> Recursion | None:
    """The recursion for the value of a quantity and the gradients of its weighted sum by `names`, if there is one."""
    for value, product in _PULLED:
        outputs = {output.name: output for output in product.outputs}
        if quantity.recursion is value and quantity.finish is None and {f"w_{name}" for name in names} <= set(outputs):
            return replace(product, outputs=(product.outputs[0], *(outputs[f"w_{name}"] for name in names)))
    return None


def pushed_recursion(quantity: Quantity, names: tuple[str, ...]) -> Recursion | None:
    """The recursion for the value of a quantity and its rate along directions of `names`, if there is one."""
    for value, product in _PUSHED:
        known = {JOINT_INPUTS[name]: name for name in product.inputs}
        if quantity.recursion is value and quantity.finish is None and {f"d{name}" for name in names} <= set(known):
            directions = tuple(known[f"d{name}"] for name in names)
            at = product.inputs[: len(value.inputs)]
            zero = tuple(name for name in product.inputs if name not in (*at, *directions))
            return replace(product, inputs=(*at, *directions), zero=zero)
    return None


# Second derivatives of forward dynamics.


def curved_by_recursion(
    quantity: Quantity, names: tuple[str, ...]
) -> Callable[[Model, Inputs, tuple[str, ...]], Matrix] | None:
    """The text of second derivatives by these names, if the gradient has a recursion for it."""
    known = quantity.recursion is FORWARD_DYNAMICS and set(names) <= {"q", "v", "tau"}
    return _curved_forward if known else None


def _curved_forward(model: Model, inputs: Inputs, names: tuple[str, ...]) -> Matrix:
    """Second derivatives of `w . a`, up to a part that is not symmetric.

    With `G` the gradients of `mu . ID` at fixed accelerations and `mu = M^-1 w`, they are
    `-(G_x + G_a a_x + (G_a a_x)^T)`; the last part is that of `mu`.
    """
    import casadi as ca

    at, nv, q, v = forward_parts(model, inputs), model.nv, inputs["q"], inputs["v"]
    a_x = {"q": at.solved(-at.tau_q), "v": at.solved(-at.tau_v), "tau": at.Minv}
    a0, mu0 = ca.SX.sym("a", nv), ca.SX.sym("mu", nv)
    _, G_q, G_v, _ = unroll(INVERSE_PULLED, model, {"q": q, "v": v, "a": a0, "w": mu0})
    G_qq, G_qv, G_qa = ca.jacobian(G_q, q) @ tangent(model, q), ca.jacobian(G_q, v), ca.jacobian(G_q, a0)
    symbols = [q, v, a0, mu0]
    found = ca.Function("second", symbols, [G_qq, G_qv, ca.jacobian(G_v, v), G_qa])
    G_qq, G_qv, G_vv, G_qa = found(q, v, at.a, at.solved(inputs["w"]))
    blocks = {("q", "q"): G_qq + 2 * G_qa @ a_x["q"], ("v", "v"): G_vv}  # twice, since the symmetric part is taken
    blocks |= {("q", "v"): G_qv + G_qa @ a_x["v"], ("q", "tau"): G_qa @ a_x["tau"]}
    rows = []
    for one in names:
        row = []
        for two in names:
            transposed = blocks.get((two, one))
            below = ca.SX(nv, nv) if transposed is None else transposed.T
            row.append(-blocks.get((one, two), below))
        rows.append(row)
    return ca.blockcat(rows)
