"""Derivatives of the equations of a mechanism with loops, at given accelerations and multipliers, with 6-D vectors.

The rest of the equations, `f - M a - J^T lam` and `gamma - J a`, is differentiated by q and v with `a` and `lam` held.
The first is inverse dynamics with the multipliers' forces on the links: the recursion of `spatial_derivatives` takes
these as fixed in their links, and what they change in their links' axes is added here. The second is the acceleration
of one link against another, which only the joints on the ways to the two change.

Notation: that of `measured_joint` and `spatial_derivatives`, all vectors in the axes of the cut joint's frame M at its
origin. `w = -T lam` is the joint's force on its child. A small motion of M against F is `x` (6,), and

    g = gamma - T^T (a_c - a_p)        g changes by  g_x x + g_c dv_c + g_p dv_p + g_a d(a_c - a_p)
                                       w changes by  w_x x

When a joint i before the child moves by `delta`, M moves by `S_i delta`. The parent is seen from M: it moves backwards.
When i is before the parent, the parent moves and M does not:

                    before the child                  before the parent
    x                S_i                               -S_i
    dv_c             Psid_i                            0
    dv_p             v_p x S_i                         Psid_i - v_p x S_i
    d(a_c - a_p)     Psidd_i - v_c x Psid_i            -(Psidd_i - v_p x Psid_i)
                       - a_p x S_i                       + a_p x S_i
    force on p       -(w_x S_i + S_i x* w)             w_x S_i + S_i x* w

A unit of the rate of i changes the velocity of all beyond it by `S_i`, and their acceleration by `Omega_i - v x S_i`.
A joint before both moves both alike, and nothing of this changes.

Source: as `spatial_derivatives`; the rows are those of `measured_joint`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cardan.algebra.matrix import Matrix, segment, zeros
from cardan.algebra.rotation import skew
from cardan.algebra.spatial import Transform, crf_bar, crm
from cardan.formulation.formulation import Parts, between_bodies
from cardan.formulation.measured_joint import joint_rows
from cardan.formulation.recursion import Nodes, run
from cardan.formulation.response import Changes
from cardan.formulation.spatial_derivatives import INVERSE_DYNAMICS_LOADED_DERIVATIVES
from cardan.formulation.tree import common_ancestor, stacked_drives
from cardan.model.joint import Kind
from cardan.model.model import Model
from cardan.model.tree import GROUND

if TYPE_CHECKING:
    import casadi


def has_only_cut_joints(model: Model) -> bool:
    """Whether nothing but cut joints and sums of coordinates tie links, and forces act along tree joints only."""
    joints = [j for coupling in model.couplings for j in coupling.joints]
    joints += [force.on[0] for force in model.forces if force.kind.on == "joint"]
    apart = any(force.kind.on != "joint" for force in model.forces) or bool(model.constraints or model.controllers)
    apart = apart or any(coupling.is_relation for coupling in model.couplings)
    return not apart and not set(joints) & set(model.cuts)


def equation_changes(parts: Parts, kept: Sequence[int], a: Matrix, lam: Matrix) -> tuple[Changes, Changes]:
    """The rest of the equations at `a` (nv,), `lam` (kept rows,), differentiated by q along the tangent and by v."""
    import casadi as ca

    from cardan.formulation.formulation import tangent

    model, kin = parts.model, parts.kin
    q, v = kin.tree_state
    every = ca.SX(len(parts.rows), 1)
    every[list(kept)] = lam
    forces = {j: -(kin.measured(j).rows.T @ segment(every, _rows_of(parts, j))) for j in model.cuts}
    wrenches = parts.own.wrenches
    for j, w in forces.items():
        wrenches = between_bodies(model, kin.measured(j), j, w, wrenches)
    nodes = run(INVERSE_DYNAMICS_LOADED_DERIVATIVES, model, {"q": q, "v": v, "a": a, "wrenches": wrenches})
    drives = stacked_drives(model, parts.loads.tau, q)
    f_q = ca.jacobian(drives, q) @ tangent(model, q) - nodes.ground.tau_q
    f_v = ca.jacobian(drives, v) - nodes.ground.tau_v
    g_q, g_v = ca.SX(len(parts.rows), model.nv), ca.SX(len(parts.rows), model.nv)
    columns: dict[int, _Columns] = {}
    for j, w in forces.items():
        cut = _Cut(parts, nodes, j, w, segment(every, _rows_of(parts, j)), columns)
        rows = list(range(len(parts.rows)))[_rows_of(parts, j)]
        for side in (cut.child, cut.parent):
            by_q, by_v = cut.row_changes(side)
            g_q[rows, side.own], g_v[rows, side.own] = by_q, by_v
            for other in (cut.child, cut.parent):
                f_q[other.all, side.own] += cut.force_changes(other, side)
    kept = list(kept)
    return Changes(ca.sparsify(f_q), ca.sparsify(g_q[kept, :])), Changes(ca.sparsify(f_v), ca.sparsify(g_v[kept, :]))


def _rows_of(parts: Parts, j: int) -> slice:
    return parts.rows.of(f"joint {parts.model.joints[j].name!r}")


@dataclass(frozen=True)
class _Columns:
    """Of all joints on the way to a link, in its own frame: coordinates, and the vectors of `spatial_derivatives`."""

    at: list[int]
    S: Matrix
    Psid: Matrix
    Psidd: Matrix
    Omega: Matrix

    @property
    def vectors(self) -> tuple[Matrix, ...]:
        return self.S, self.Psid, self.Psidd, self.Omega

    def seen(self, X: Transform[Matrix]) -> _Columns:
        """The same in another frame."""
        return _Columns(self.at, *(X @ V for V in self.vectors))


def _columns(model: Model, nodes: Nodes, i: int, found: dict[int, _Columns]) -> _Columns:
    """The columns of a link, or of the ground, which has none."""
    import casadi as ca

    if i == GROUND:
        return _Columns([], *(zeros(6, 0, nodes.ground.v) for _ in range(4)))
    if i not in found:
        link, b = model.tree.links[i], nodes.links[i]
        before = _columns(model, nodes, link.parent, found).seen(b.X)
        own = (b.S, b.Psid, b.Psidd, b.Omega)
        coordinates = [*before.at, *range(link.v.start, link.v.stop)]
        found[i] = _Columns(coordinates, *(ca.horzcat(*pair) for pair in zip(before.vectors, own, strict=True)))
    return found[i]


@dataclass(frozen=True)
class _Side:
    """The joints before one of the two links of a cut joint, seen at M; the first `shared` are before both."""

    columns: _Columns
    shared: int
    is_child: bool

    @property
    def all(self) -> list[int]:
        """Coordinates of all of them."""
        return self.columns.at

    @property
    def own(self) -> list[int]:
        """Coordinates of those that are not before the other link too."""
        return self.columns.at[self.shared :]


class _Cut:
    """A cut joint: what changes its rows and its force."""

    def __init__(self, parts: Parts, nodes: Nodes, j: int, w: Matrix, lam: Matrix, found: dict[int, _Columns]) -> None:
        model, m = parts.model, parts.kin.measured(j)
        meeting = common_ancestor(model.tree, m.child, m.parent)
        shared = len(_columns(model, nodes, meeting, found).at)
        c, p = nodes.carrier(m.child), nodes.carrier(m.parent)
        v_c, v_p, a_p = m.X_c @ c.v, m.X_p @ p.v, m.X_p @ p.a
        g_x, g_c, g_p, g_a, w_x = local_changes(model.joints[j].kind)(m.R, m.p, v_c, v_p, m.X_c @ c.a - a_p, lam)
        self.g_x = g_x + g_p @ crm(v_p) - g_a @ crm(a_p)
        self.g_a = g_a
        self.w_x, self.moved = w_x, w_x + crf_bar(w)
        self.by_velocity = {True: g_c - g_a @ crm(v_c), False: g_p + g_a @ crm(v_p)}
        self.child = _Side(_columns(model, nodes, m.child, found).seen(m.X_c), shared, True)
        self.parent = _Side(_columns(model, nodes, m.parent, found).seen(m.X_p), shared, False)

    def row_changes(self, side: _Side) -> tuple[Matrix, Matrix]:
        """How `g` changes with q and v of the joints before one of its links."""
        S, Psid, Psidd, Omega = (V[:, side.shared :] for V in side.columns.vectors)
        sign, g_v = 1 if side.is_child else -1, self.by_velocity[side.is_child]
        return sign * (self.g_x @ S + self.g_a @ Psidd) + g_v @ Psid, g_v @ S + sign * (self.g_a @ Omega)

    def force_changes(self, on: _Side, moved: _Side) -> Matrix:
        """How the joint's force along the joints on one side changes, in its link's axes, with q of one side."""
        S = moved.columns.S[:, moved.shared :]
        change = (self.w_x if on.is_child else self.moved) @ S
        return (1 if on.is_child == moved.is_child else -1) * (on.columns.S.T @ change)


def local_changes(kind: Kind) -> casadi.Function:
    """`g_x`, `g_c`, `g_p`, `g_a` (rows, 6) and `w_x` (6, 6) of a cut joint: functions of R, p, v_c, v_p, a_r, lam."""
    import casadi as ca

    R, p, x = ca.SX.sym("R", 3, 3), ca.SX.sym("p", 3), ca.SX.sym("x", 6)
    v_c, v_p, a_r = (ca.SX.sym(name, 6) for name in ("v_c", "v_p", "a_r"))
    rows = joint_rows(kind, R @ (ca.SX.eye(3) + skew(x[:3])), p + R @ x[3:], v_c, v_p)
    lam = ca.SX.sym("lam", rows.T.shape[1])
    g, w = rows.gamma - rows.T.T @ a_r, -(rows.T @ lam)
    found = [ca.jacobian(g, by) for by in (x, v_c, v_p, a_r)] + [ca.jacobian(w, x)]
    still = ca.substitute(found, [x], [ca.SX.zeros(6)])
    return ca.Function("local_changes", [R, p, v_c, v_p, a_r, lam], [ca.sparsify(D) for D in still])
