"""Derivatives of a tree's dynamics with 6-D vectors: a recursion for inverse dynamics, a sparse solve for forward.

Notation: that of `formulation.spatial`, all of a body's vectors in its own frame. A column of a derivative by q is
the derivative along a unit rate of a joint: q moves as `plus(q, delta)`. When joint i moves by `delta`, all bodies k
beyond it are turned and shifted together by `S_i delta`, and in components that move with them

    v_k changes by  Psid_i delta                      Psid_i  = v_p x S_i + (S_i qd)'
    a_k changes by  (Psidd_i - v_k x Psid_i) delta    Psidd_i = a_p x S_i + v_p x Psid_i + v_i x (S_i qd)'
                                                                + (S_i qdd + Sdot_i qd)'
    f_k changes by  (2 B_k Psid_i + I_k Psidd_i) delta

with p the parent of i and `'` the derivative by the joint's own q where `S` depends on it (universal, planar, joints
met from their child's side). A unit of the rate `qd_i` changes v_k by S_i and f_k by `2 B_k S_i + I_k Omega_i`, with
`Omega_i = v_p x S_i + v_i x S_i + d(Sdot_i qd)/d qd`. Sums over all bodies beyond a joint (`fC`, `IC`, `BC`) give

    d tau_j/dq_i  = S_j^T (2 BC_i Psid_i + IC_i Psidd_i + fC_i xbar* S_i)        j before i
    d tau_i/dq_i  = S_i^T (2 BC_i Psid_i + IC_i Psidd_i) + (S_i^T fC_i)'         the last with fC_i held
    d tau_i/dq_j  = (2 BC_i^T S_i)^T Psid_j + (IC_i S_i)^T Psidd_j               j before i
    d tau_j/dqd_i = S_j^T (2 BC_i S_i + IC_i Omega_i)                            j before i, or i
    d tau_i/dqd_j = (2 BC_i^T S_i)^T S_j + (IC_i S_i)^T Omega_j                  j before i
    d tau_j/dqdd_i = S_j^T IC_i S_i = M_ji

Of the matrix `2 B = v x* I - I v x + (I v) xbar*` half is zero. A particle of mass m at r with velocity u_r has
`B = -m [r x; 1] (u_r x) [1 0]`; summed over a rigid body, with `P = -2 (linear momentum)`,

    2 B = [K 0; P x 0]      K = w x (2 J - tr(J) 1) - 2 h x u x      B v = v x* I v = (K w; P x w) / 2

where `v = [w; u]`, `h = m c` and `J` the rotational inertia about the origin. A sum over bodies has this form too. So
`BC` is kept as `K` and `P`, and `IC` as mass `m`, first moment `h` and `J`: 22 numbers in place of 57.

Source: S. Singh, R. P. Russell, P. M. Wensing, Efficient analytical derivatives of rigid-body dynamics using spatial
vector algebra, IEEE Robotics and Automation Letters 7(2), 2022, carried over to body frames, to joints with several
rates along the tangent and to `S` that depends on q; `B` after Echeandia and Wensing (2021).
Equations: F6(2), F6(3), F6(4); FX(A2), FX(B3), FX(C1).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cardan.algebra.linsolve import tree_factor, tree_inverse_factor, tree_solve
from cardan.algebra.matrix import Matrix, eye, mirrored, stack, zeros
from cardan.algebra.rotation import cross, skew
from cardan.algebra.spatial import crf_bar, crm, first_moment, rigid_inertia, rotated_back, shift_of
from cardan.formulation.armature import drive_force, not_carried, own_columns, with_own
from cardan.formulation.elements import joint_forces
from cardan.formulation.formulation import tangent
from cardan.formulation.kinematics import body_wrench, joint, kinematics_of_tree
from cardan.formulation.quantity import Inputs, Quantity, climbs, per_velocity, square
from cardan.formulation.recursion import Climb, Node, Output, Recursion, Sweep, unroll
from cardan.formulation.tree import stacked_drives
from cardan.model.joint import Kind, configuration_rate
from cardan.model.model import Model

if TYPE_CHECKING:
    import casadi

    from cardan.program.stages import Stages


def changes_out(b: Node, p: Node) -> None:
    """Outwards: motion of each body, its force, and how both change with its joint."""
    joint(b, p)
    changed_motion(b, p)
    _own_sums(b)


def changes_out_loaded(b: Node, p: Node) -> None:
    """As `changes_out`, with external force, which turns with the body."""
    changes_out(b, p)
    b.f = b.f - b.fx


def changed_motion(b: Node, p: Node) -> None:
    """Motion of a body, and how it changes with its joint."""
    v_p, a_p = b.X @ p.v, b.X @ p.a
    b.v = v_p + b.S @ b.qd  # FX(C1)
    across = crm(v_p) @ b.S
    b.a = a_p + b.S @ b.qdd + across @ b.qd  # v x S qd is v_p x S qd
    b.Psid, b.Omega = across, 2 * across if b.kind.nv == 1 else across + crm(b.v) @ b.S
    b.Psidd = crm(a_p) @ b.S
    if not b.S.is_constant():
        by_q, by_q2, by_qd = subspace_changes(b.kind)(b.q, b.qd, b.qdd)
        b.Psid, b.Omega = b.Psid + by_q, b.Omega + by_qd
        b.Psidd = b.Psidd + crm(b.v) @ by_q + by_q2
    if b.kind.bias is not None:
        b.a = b.a + b.kind.bias(b.q, b.qd)  # F6(3)
    b.Psidd = b.Psidd + crm(v_p) @ b.Psid


def _own_sums(b: Node) -> None:
    """What a body adds to the sums: its force, inertia and velocity products."""
    b.m, b.h, b.J = b.I[3, 3], first_moment(b.I), b.I[:3, :3]
    b.f, b.K, b.P = force_and_products(b)


def force_and_products(b: Node) -> tuple[Matrix, Matrix, Matrix]:
    """The force (6,) that a body needs, and its velocity products `K` (3, 3) and `P` (3,)."""
    w, u, wd, ud = b.v[:3], b.v[3:], b.a[:3], b.a[3:]
    m, h, J = b.I[3, 3], first_moment(b.I), b.I[:3, :3]
    K = skew(w) @ (2 * J - (J[0, 0] + J[1, 1] + J[2, 2]) * eye(3, w)) - skew(2 * h) @ skew(u)
    P = -2 * m * u - cross(w, 2 * h)
    n = J @ wd + cross(h, ud) + K @ (w / 2)
    return stack(n, m * ud + cross(wd, h) + cross(P, w / 2)), K, P  # I a + B v: F6(2) of a moving body


def subspace_changes(kind: Kind) -> casadi.Function:
    """Of a joint whose `S` depends on q: `(S qd)'`, `(S qdd + Sdot qd)'` and `d(Sdot qd)/d qd`, (6, nv) each."""
    import casadi as ca

    q, qd, qdd, S, N = _own_motion(kind)
    bias = ca.SX(6, 1) if kind.bias is None else ca.SX(kind.bias(q, qd))
    changes = [ca.jacobian(S @ qd, q) @ N, ca.jacobian(S @ qdd + bias, q) @ N, ca.jacobian(bias, qd)]
    return ca.Function("subspace_changes", [q, qd, qdd], changes)


def force_change(kind: Kind) -> casadi.Function:
    """Of a joint whose `S` depends on q: `(S^T f)'` (nv, nv) with the force f (6,) held."""
    import casadi as ca

    q, _, _, S, N = _own_motion(kind)
    f = ca.SX.sym("f", 6)
    return ca.Function("force_change", [q, f], [ca.jacobian(S.T @ f, q) @ N])


def _own_motion(kind: Kind) -> tuple[Matrix, ...]:
    """Symbols q, qd, qdd of one joint, its `S`, and `N` with `qdot = N qd`."""
    import casadi as ca

    q, qd, qdd = ca.SX.sym("q", kind.nq), ca.SX.sym("qd", kind.nv), ca.SX.sym("qdd", kind.nv)
    return q, qd, qdd, ca.SX(kind.S(q)), ca.jacobian(configuration_rate(kind, q, qd), qd)


def changes_in(b: Node, p: Node) -> None:
    """Inwards: joint force, and the sums over each body and all beyond."""
    b.tau = b.S.T @ b.f + drive_force(b)  # F6(4) with a drive
    p.f = p.f + b.X.T @ b.f
    m, h, J, K, P = b.m, b.h, b.J, b.K, b.P
    for F in b.X.factors:
        r = shift_of(F)
        if r is None:
            J, K = mirrored(rotated_back(F, J)), rotated_back(F, K)
            h, P = F[:3, :3].T @ h, F[:3, :3].T @ P
        else:
            y = h + m / 2 * r
            J = mirrored(J - r @ y.T - y @ r.T + 2 * (r.T @ y) * eye(3, r))  # J - h x r x - r x h x - m r x r x
            h, K = h + m * r, K + skew(r) @ skew(P)
    p.m, p.h, p.J, p.K, p.P = p.m + m, p.h + h, p.J + J, p.K + K, p.P + P  # FX(A2)


def _inertia(b: Node) -> Matrix:
    return rigid_inertia(b.m, b.h, b.J)


def _twice_BC(b: Node) -> Matrix:
    import casadi as ca

    return ca.blockcat([[b.K, zeros(3, 3, b.K)], [skew(b.P), zeros(3, 3, b.K)]])


def mass_force(b: Node) -> tuple[Matrix, ...]:
    """Force that accelerates the composite along its joint."""
    return _inertia(b) @ b.S, own_columns(b)


def carry_mass_force(c: Node, forces: tuple[Matrix, ...]) -> tuple[Matrix, ...]:
    """Take the force across a joint, but for the armature of its own."""
    return c.X.T @ forces[0], not_carried(forces[1])


def mass_block(j: Node, forces: tuple[Matrix, ...]) -> tuple[Matrix, ...]:
    """Their part along the joint above."""
    H = with_own(j, j.S.T @ forces[0], forces[1])  # FX(B3)
    return H, H


def changed_forces(b: Node) -> tuple[Matrix, ...]:
    """Forces that change with q, with qd and with qdd of the joint; `2 BC^T S`; then what stays in the joint."""
    IC, B2 = _inertia(b), _twice_BC(b)
    turned_force = crf_bar(b.f) @ b.S
    F_q = B2 @ b.Psid + IC @ b.Psidd + turned_force
    own = -(b.S.T @ turned_force)
    if not b.S.is_constant():
        own = own + force_change(b.kind)(b.q, b.f)
    own = stack(own, zeros(6 - b.kind.nv, b.kind.nv, own))
    return F_q, B2 @ b.S + IC @ b.Omega, IC @ b.S, B2.T @ b.S, own, own_columns(b)


def carry_changed(c: Node, forces: tuple[Matrix, ...]) -> tuple[Matrix, ...]:
    """Take the forces across a joint, but for what stays in their own."""
    return *(c.X.T @ F for F in forces[:4]), not_carried(forces[4]), not_carried(forces[5])


def changed_blocks(j: Node, forces: tuple[Matrix, ...]) -> tuple[Matrix, ...]:
    """Columns and rows of the derivatives by q, qd and qdd."""
    F_q, F_qd, F_qdd, F_B, own, rotor = forces
    H = with_own(j, j.S.T @ F_qdd, rotor)
    by_q = j.S.T @ F_q + own[: j.kind.nv, :]
    return by_q, j.Psid.T @ F_B + j.Psidd.T @ F_qdd, j.S.T @ F_qd, j.S.T @ F_B + j.Omega.T @ F_qdd, H, H


_SUMS = {
    "v": "vector6", "a": "vector6", "f": "vector6", "m": "scalar", "h": "vector3", "J": "symmetric3", "K": "matrix3",
    "P": "vector3",
}  # fmt: skip
_SWEEPS = (Sweep("down", changes_out), Sweep("up", changes_in))
INVERSE_DYNAMICS_DERIVATIVES = Recursion(
    "inverse_dynamics_derivatives", ("q", "qd", "qdd"), _SUMS,
    (*_SWEEPS, Climb(changed_forces, carry_changed, changed_blocks, ("tau_q", "tau_v", "H"))),
    (Output("tau", "tau", "joint"), Output("tau_q", "tau_q", "matrix"), Output("tau_v", "tau_v", "matrix"),
     Output("M", "H", "matrix")),
    ground={"a": "gravity"}, regrouped=True,
)  # fmt: skip
INVERSE_DYNAMICS_LOADED_DERIVATIVES = replace(
    INVERSE_DYNAMICS_DERIVATIVES, name="inverse_dynamics_loaded_derivatives", inputs=("q", "qd", "qdd", "wrench"),
    shared={**_SUMS, "fx": "vector6"}, accumulate=("fx",),
    passes=(
        Sweep("bodies_up", body_wrench), Sweep("down", changes_out_loaded), *INVERSE_DYNAMICS_DERIVATIVES.passes[1:],
    ),
)  # fmt: skip
_FORCE_AND_MASS = Recursion(
    "force_and_mass", ("q", "qd", "qdd"), _SUMS, (*_SWEEPS, Climb(mass_force, carry_mass_force, mass_block, ("H",))),
    (Output("tau", "tau", "joint"), Output("M", "H", "matrix")), ground={"a": "gravity"}, regrouped=True,
)  # fmt: skip


class ForwardParts(NamedTuple):
    """Accelerations a, derivatives of inverse dynamics there, and `M^-1 = Li D^-1 Li^T` with `Li = L^-1`."""

    a: Matrix
    tau_q: Matrix
    tau_v: Matrix
    Li: Matrix
    reciprocal: Matrix

    @property
    def Minv(self) -> Matrix:
        """The inverse of the mass matrix (nv, nv)."""
        import casadi as ca

        return mirrored(self.Li @ (ca.diag(self.reciprocal) @ self.Li.T))

    def solved(self, B: Matrix) -> Matrix:
        """`M^-1 B` for a matrix of columns."""
        return _solved(self.Li, self.reciprocal, B)


def forward_parts(model: Model, inputs: Inputs) -> ForwardParts:
    """Inverse dynamics at the accelerations that forward dynamics gives, with `M = L^T D L` factored along the tree."""
    import casadi as ca

    above = model.tree.coordinate_ancestor()
    q, v = inputs["q"], inputs["v"]
    C, M = unroll(_FORCE_AND_MASS.at_rest("qdd"), model, {"q": q, "v": v})
    factor = tree_factor(M, above)
    law, law_q, law_v = _joint_laws(model, inputs)
    a = tree_solve(factor, above, inputs["tau"] + law - C)
    _, tau_q, tau_v, _ = unroll(INVERSE_DYNAMICS_DERIVATIVES, model, {"q": q, "v": v, "a": a})
    tau_q, tau_v = ca.sparsify(tau_q - law_q), ca.sparsify(tau_v - law_v)  # no change where a free base is shifted
    return ForwardParts(a, tau_q, tau_v, tree_inverse_factor(factor, above, q), ca.vertcat(*factor.reciprocal))


def has_joint_laws(model: Model) -> bool:
    """Whether it is a tree on which force elements act along joints only, as functions of q and v: dampers, springs.

    Derivatives by recursion take them along where the recursion is unrolled.
    """
    along = all(force.kind.on == "joint" for force in model.forces) and not model.laws
    return along and not model.has_rows and not model.depends_on_time and climbs(model) <= MOST_CLIMBS


def _joint_laws(model: Model, inputs: Inputs) -> tuple[Matrix, Matrix, Matrix]:
    """Forces (nv,) of elements along the joints, and their derivatives by q along the tangent and by v (nv, nv)."""
    import casadi as ca

    q, v = inputs["q"], inputs["v"]
    if not model.forces:
        return ca.SX(model.nv, 1), ca.SX(model.nv, model.nv), ca.SX(model.nv, model.nv)
    law = stacked_drives(model, joint_forces(kinematics_of_tree(model, q, v), 0.0), q)
    return law, ca.jacobian(law, q) @ tangent(model, q), ca.jacobian(law, v)


def _write_inverse(model: Model, inputs: Inputs) -> list[Matrix]:
    """Inverse dynamics and its derivatives, less what elements along the joints do."""
    tau, tau_q, tau_v, M = unroll(INVERSE_DYNAMICS_DERIVATIVES, model, inputs)
    law, law_q, law_v = _joint_laws(model, inputs)
    return [tau - law, tau_q - law_q, tau_v - law_v, M]


def _solved(Li: Matrix, reciprocal: Matrix, B: Matrix) -> Matrix:
    """`M^-1 B` for a matrix of columns; `reciprocal` is `D^-1` (nv,), with the other sign for `-M^-1 B`."""
    import casadi as ca

    return Li @ (ca.diag(reciprocal) @ (Li.T @ B))


def _write_forward(model: Model, inputs: Inputs) -> list[Matrix]:
    """`da = M^-1 (dtau - tau_q dq - tau_v dv)`."""
    at = forward_parts(model, inputs)
    a_q, a_v = (_solved(at.Li, -at.reciprocal, B) for B in (at.tau_q, at.tau_v))
    return [at.a, a_q, a_v, at.Minv]


def _forward_stages(model: Model, inputs: Inputs) -> Stages:
    """The same, one column after the other: columns of joints on one unbranched part of the tree share a graph."""
    import casadi as ca

    from cardan.program.stages import Stage, Stages, Window

    at, n, nv = forward_parts(model, inputs), len(inputs), model.nv
    a, a_q, a_v, a_tau, tau_q, tau_v, Li, minus = range(n, n + 8)  # the arguments: outputs, then scratch
    # zeros where one joint lies before another, beyond it, or is the same: in those rows a column has entries
    related = ca.SX((at.Li + at.Li.T + at.tau_q + at.tau_v).sparsity(), 0)
    lower = ca.tril(at.Li, False)
    entries: Any = lower.nonzeros()
    given = {(tau_q, a_q): at.tau_q, (tau_v, a_v): at.tau_v}
    results = [ca.densify(at.a), ca.densify(at.Minv), *(B + related for B in given.values())]
    first = ca.Function("first", [*inputs.values()], [*results, ca.vertcat(ca.SX(0, 1), *entries), -at.reciprocal])
    places = tuple(map(Window, (a, a_tau, tau_q, tau_v, Li, minus)))
    stages = [Stage(first, tuple(map(Window, range(n))), places)]
    symbols = ca.SX.sym("Li", lower.nnz()), ca.SX.sym("minus", nv), ca.SX.sym("b", nv)
    unit_lower = ca.SX(lower.sparsity(), symbols[0]) + ca.SX.eye(nv)

    @cache
    def solve(rows: tuple[int, ...]) -> casadi.Function:
        """`-M^-1 b` for a column whose entries are in these rows."""
        b = ca.SX(nv, 1)
        for k in rows:
            b[k] = symbols[2][k]
        return ca.Function("solve", symbols, [ca.densify(_solved(unit_lower, symbols[1], b))])

    for (read, write), B in given.items():
        rows_of = [tuple(related[:, k].sparsity().row()) if B[:, k].nnz() else () for k in range(nv)]
        for rows, group in groupby(range(nv), rows_of.__getitem__):
            first_column, *more = group
            columns = (Window(where, first_column, 1, nv) for where in (read, write))
            stages.append(Stage(solve(rows), (Window(Li), Window(minus), next(columns)), (*columns,), 1 + len(more)))
    return Stages(tuple(stages), (n, 4), (nv * nv, nv * nv, lower.nnz(), nv))


def _large_forward(
    kernel: Callable[[str], Callable[..., Any]], q: np.ndarray, v: np.ndarray, tau: np.ndarray
) -> tuple[np.ndarray, ...]:
    """The same of a model that is too large for one graph, from its looped kernels."""
    a = kernel("forward_dynamics")(q, v, tau)
    _, tau_q, tau_v, M = kernel("inverse_dynamics_derivatives")(q, v, a)
    identity = np.broadcast_to(np.eye(M.shape[-1], dtype=M.dtype), M.shape)
    solved = np.linalg.solve(M, np.concatenate([-tau_q, -tau_v, identity], axis=-1))
    a_q, a_v, a_tau = np.split(solved, 3, axis=-1)
    return a, a_q, a_v, (a_tau + np.swapaxes(a_tau, -1, -2)) / 2


# Measured (docs/decisions/0034): with more steps of climbs the loop runs as fast, and compiles in a tenth of a second
# where a straight line takes ten.
MOST_CLIMBS = 300
INVERSE = Quantity(
    "inverse_dynamics_derivatives", ("q", "v", "a"),
    (("tau", per_velocity), ("tau_q", square), ("tau_v", square), ("M", square)), INVERSE_DYNAMICS_DERIVATIVES,
    write=_write_inverse, most_climbs=MOST_CLIMBS,
)  # fmt: skip
INVERSE_LOADED = Quantity(
    "inverse_dynamics_loaded_derivatives", ("q", "v", "a", "wrenches"), INVERSE.outputs,
    INVERSE_DYNAMICS_LOADED_DERIVATIVES, most_climbs=MOST_CLIMBS,
)  # fmt: skip
FORWARD = Quantity(
    "forward_dynamics_derivatives", ("q", "v", "tau"),
    (("a", per_velocity), ("a_q", square), ("a_v", square), ("a_tau", square)), write=_write_forward,
    stages=_forward_stages, most_climbs=MOST_CLIMBS, put_together=_large_forward,
)  # fmt: skip
