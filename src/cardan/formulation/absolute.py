"""Absolute coordinates: every body by itself, every joint as constraint equations with Lagrange multipliers.

Notation of KJ: a body has the position `p_G` of its centre of mass and a quaternion; its rates are `u = (w, v_G)`
with `v_G` in the fixed frame and the angular velocity either in the fixed frame (`frame="fixed"`, w) or in the body
(`frame="body"`, w'). `R` takes body components to fixed ones (KJ's `[R_B]^T`). A prime means body components. `v =
B u` is the body's twist about its origin, `c` its centre of mass in the body.

    M u' + J^T lam = f        J u' = gamma        M = diag(I_G, m 1)

The rows of `J` are those of `formulation.constraint`, in the joint's axes.

Equations: KJ(1), KJ(2), KJ(3), KJ(5)-(10); FX(A4).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from cardan.algebra.free_number import nominal
from cardan.algebra.linsolve import ldl_factor, ldl_solve
from cardan.algebra.matrix import Matrix, block, constant, eye, stack, zeros
from cardan.algebra.rotation import cross, skew
from cardan.formulation.armature import Rotor, with_rotors
from cardan.formulation.loops import Measured, measure
from cardan.formulation.recursion import Nodes
from cardan.formulation.solve import solve_lent, solve_saddle
from cardan.model.model import Model
from cardan.model.tree import GROUND, Link

Couplings = tuple[tuple[dict[int, float], Matrix, Matrix, Matrix], ...]

# A link is light if its inertia cannot be inverted: no mass, or a principal moment below this part of the largest.
LIGHT = 1e-9
LENT = 1e-6


@dataclass(frozen=True)
class System:
    """Equations of motion in absolute coordinates.

    `M` (6n, 6n), `f` (6n,), `J` (nl, 6n), `gamma` (nl,), `phi` (nl,); `joints` has each joint's number and its rows.
    `M` and `f` are those of the bodies; `rotors` come on top of them.
    """

    M: Matrix
    f: Matrix
    J: Matrix
    gamma: Matrix
    phi: Matrix
    joints: tuple[tuple[int, slice], ...]
    rotors: tuple[Rotor, ...] = ()

    @property
    def whole(self) -> tuple[Matrix, Matrix]:
        """`M` and `f`, rotors included."""
        return with_rotors(self.M, self.f, self.rotors)


def rates(R: Matrix, c: Matrix, v: Matrix, frame: str) -> Matrix:
    """`u = (w, v_G)` from a body's twist."""
    w = v[:3]
    v_G = R @ (v[3:] + cross(w, c))
    return stack(w if frame == "body" else R @ w, v_G)


def twist_matrix(R: Matrix, c: Matrix, frame: str) -> Matrix:
    """`B` with `v = B u`."""
    turn = eye(3, R) if frame == "body" else R.T
    return block([[turn, zeros(3, 3, R)], [skew(c) @ turn, R.T]])


def twist_rate(c: Matrix, v: Matrix) -> Matrix:
    """`Bdot u`: what the twist's rate has besides `B u'`."""
    w = v[:3]
    return stack(zeros(3, None, v), -cross(w, v[3:] + cross(w, c)))


def body_equations(
    link: Link, R: Matrix, v: Matrix, wrench: Matrix, gravity: Matrix, frame: str
) -> tuple[Matrix, Matrix]:
    """`M` (6, 6) and `f` (6,) of one body under a wrench about its origin, in its own components."""
    m, c, I = link.mass, constant(link.com), constant(link.I_C)
    w = v[:3]
    n_G = wrench[:3] - cross(c, wrench[3:]) - cross(w, I @ w)  # FX(A4)
    f = R @ wrench[3:] + m * gravity
    if frame == "fixed":
        I, n_G = R @ I @ R.T, R @ n_G
    return block([[I, zeros(3, 3, R)], [zeros(3, 3, R), m * eye(3, R)]]), stack(n_G, f)


def absolute_system(
    model: Model,
    nodes: Nodes,
    wrenches: list[Matrix],
    tau: dict[int, Matrix],
    frame: str,
    couplings: Couplings = (),
) -> System:
    """The equations of all links of a model.

    `nodes` have the links' pose and velocity, `wrenches` a force on each link in its components, `tau` the drives
    of joints, `couplings` sums of joint coordinates that follow time.
    """
    import casadi as ca

    links, like = model.tree.links, nodes.ground.R
    measured = {j: measure(model, nodes, j) for j in range(len(model.joints))}
    measured = {j: m for j, m in measured.items() if m.parent != m.child}
    driven = _with_drives(wrenches, measured, tau)
    gravity = constant(model.gravity)
    parts = [
        body_equations(link, nodes.links[i].R, nodes.links[i].v, driven[i], gravity, frame)
        for i, link in enumerate(links)
    ]
    J, gamma, phi = [zeros(0, 6 * len(links), like)], [zeros(0, None, like)], [zeros(0, None, like)]
    joints, count = [], 0
    for j, m in measured.items():
        k = m.rows.T.shape[1]
        J.append(_row(model, nodes, m, m.rows.T, frame))
        gamma.append(m.rows.gamma - m.rows.T.T @ _velocity_terms(model, nodes, m))
        phi.append(m.rows.phi)
        joints.append((j, slice(count, count + k)))
        count += k
    for coefficients, g, _, gdd in couplings:
        row, right, value = zeros(1, 6 * len(links), like), gdd, -g
        for j, c in coefficients.items():
            m = measured[j]
            row = row + c * _row(model, nodes, m, m.rows.W, frame)
            right = right - c * _coordinate_terms(model, nodes, m)
            value = value + c * m.rows.q
        J, gamma, phi = [*J, row], [*gamma, right], [*phi, value]
    M, f = ca.diagcat(*(part[0] for part in parts)), ca.vertcat(*(part[1] for part in parts))
    rotors = [
        Rotor(
            constant(np.diag(link.armature)),
            _row(model, nodes, measured[link.joint], measured[link.joint].rows.W, frame),
            _coordinate_terms(model, nodes, measured[link.joint]),
        )
        for link in links
        if link.armature is not None
    ]
    return System(M, f, ca.vertcat(*J), ca.vertcat(*gamma), ca.vertcat(*phi), tuple(joints), tuple(rotors))


def _with_drives(wrenches: list[Matrix], measured: dict[int, Measured], tau: dict[int, Matrix]) -> list[Matrix]:
    """Wrenches on the links, with those of the joints' drives."""
    total = list(wrenches)
    for j, m in measured.items():
        if j in tau:
            drive = m.rows.W @ tau[j]
            for i, on in ((m.child, m.X_c.T @ drive), (m.parent, -(m.X_p.T @ drive))):
                if i != GROUND:
                    total[i] = total[i] + on
    return total


def _row(model: Model, nodes: Nodes, m: Measured, force: Matrix, frame: str) -> Matrix:
    """Rows of `J` for forces (6, k) in a joint; with T, KJ(2),(7),(8) in the fixed frame, KJ(3),(9),(10) in body."""
    J = type(force)(force.shape[1], 6 * len(model.tree.links))
    for i, X, sign in ((m.child, m.X_c, 1), (m.parent, m.X_p, -1)):
        if i != GROUND:
            B = twist_matrix(nodes.links[i].R, constant(model.tree.links[i].com), frame)
            J[:, 6 * i : 6 * i + 6] = sign * (force.T @ (X @ B))
    return J


def _velocity_terms(model: Model, nodes: Nodes, m: Measured) -> Matrix:
    """`a_c - a_p` at M when no rate changes."""
    total = zeros(6, None, m.rows.T)
    for i, X, sign in ((m.child, m.X_c, 1), (m.parent, m.X_p, -1)):
        if i != GROUND:
            total = total + sign * (X @ twist_rate(constant(model.tree.links[i].com), nodes.links[i].v))
    return total


def _coordinate_terms(model: Model, nodes: Nodes, m: Measured) -> Matrix:
    """Accelerations of a joint's coordinates when no rate changes."""
    return m.rows.W.T @ _velocity_terms(model, nodes, m) - m.rows.rate


def solve(model: Model, system: System, rows: list[int]) -> tuple[Matrix, Matrix]:
    """Rates `u'` and multipliers of the rows kept; the others are left out."""
    if system.rotors:
        return _solve_with_rotors(model, system, rows)
    J, gamma = system.J[rows, :], system.gamma[rows]
    M = lent_mass_matrix(model, system.M)
    if M is system.M:
        return solve_saddle(lambda B: _body_by_body(M, B), J, system.f, gamma)
    return solve_lent(lambda B: _body_by_body(M, B), system.M, J, system.f, gamma)


def _solve_with_rotors(model: Model, system: System, rows: list[int]) -> tuple[Matrix, Matrix]:
    """The same with every rotor's acceleration as one more unknown, which a row holds to its joint's."""
    import casadi as ca

    n, kept = system.M.shape[0], len(rows)
    own = [(i, float(r.A[i, i]), r) for r in system.rotors for i in range(r.A.shape[0]) if float(r.A[i, i])]
    k = len(own)
    K: Matrix = ca.vertcat(*(r.K[i, :] for i, _, r in own))
    J: Matrix = ca.blockcat([[system.J[rows, :], type(K)(kept, k)], [K, -eye(k, K)]])
    gamma = stack(system.gamma[rows], *(-r.rest[i] for i, _, r in own))
    f = stack(system.f, zeros(k, None, K))
    A = constant(np.diag([a for _, a, _ in own]))
    inverse = constant(np.diag([1 / a for _, a, _ in own]))
    heavy = lent_mass_matrix(model, system.M)

    def apply(B: Matrix) -> Matrix:
        result: Matrix = ca.vertcat(_body_by_body(heavy, B[:n, :]), inverse @ B[n:, :])
        return result

    if heavy is system.M:
        udot, lam = solve_saddle(apply, J, f, gamma)
    else:
        udot, lam = solve_lent(apply, ca.diagcat(system.M, A), J, f, gamma)
    return udot[:n], lam[:kept]


def lent_mass_matrix(model: Model, M: Matrix) -> Matrix:
    """`M` with a little inertia lent to every light link; `M` itself where there is none."""
    light = [i for i, link in enumerate(model.tree.links) if is_light(link)]
    if not light:
        return M
    M = type(M)(M)
    mass, moment = lent_inertia(model)
    for i in light:
        for k in range(6 * i, 6 * i + 6):
            M[k, k] = M[k, k] + (moment if k < 6 * i + 3 else mass)
    return M


def _body_by_body(M: Matrix, B: Matrix) -> Matrix:
    """`M^-1 B` for a matrix of 3x3 blocks."""
    import casadi as ca

    parts = []
    for k in range(0, M.shape[0], 6):
        parts.append(ldl_solve(ldl_factor(M[k : k + 3, k : k + 3]), B[k : k + 3, :]))
        parts.append(B[k + 3 : k + 6, :] / M[k + 3, k + 3])
    return ca.vertcat(*parts)


def is_light(link: Link) -> bool:
    """Whether a link's inertia cannot be inverted."""
    moments = np.linalg.eigvalsh(nominal(link.I_C))
    return link.mass == 0 or bool(moments[0] <= LIGHT * max(moments[-1], 1e-300))


def lent_inertia(model: Model) -> tuple[float, float]:
    """Mass (kg) and moment (kg m^2), a millionth of the usual link's, to lend to a light one."""
    heavy = [link for link in model.tree.links if link.mass > 0]
    mass = float(np.mean([nominal(link.mass) for link in heavy]))
    return LENT * mass, LENT * float(np.mean([np.trace(nominal(link.I[:3, :3])) / 3 for link in heavy]))


def with_lent_inertia(model: Model, links: Iterable[int]) -> Model:
    """The model with a little inertia lent to some links."""
    mass, moment = lent_inertia(model)
    lent = set(links)
    changed = [
        replace(link, mass=link.mass + mass, I_C=link.I_C + moment * np.eye(3)) if i in lent else link
        for i, link in enumerate(model.tree.links)
    ]
    return replace(model, tree=replace(model.tree, links=tuple(changed)), kernels={})
