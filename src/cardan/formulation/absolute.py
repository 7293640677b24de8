"""Absolute coordinates: every body by itself, every joint as constraint equations with Lagrange multipliers.

Notation of KJ: a body has the position `p_G` of its centre of mass and a quaternion; its rates are `u = (w, v_G)`
with `v_G` in the fixed frame and the angular velocity either in the fixed frame (`absolute`, w) or in the body's own
axes (`absolute_body`, w'). `R` takes link components to fixed ones (KJ's `[R_B]^T`). A prime means body components.
`v = B u` is the link's twist about its origin, `c` its centre of mass in the link; `A` are the body's axes in the link,
whose frame follows its joint.

    M u' + J^T lam = f        J u' = gamma        M = diag(I_G, m 1)

The rows of `J` are those of `formulation.measured_joint`, in the joint's axes. Links are those of `Model.separate`.

Equations: KJ(2), KJ(3), KJ(7)-(10); FX(A4).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import SimpleNamespace

import numpy as np

from cardan.algebra.linsolve import ldl_factor, ldl_solve
from cardan.algebra.matrix import Matrix, block, constant, eye, segment, stack, zeros
from cardan.algebra.rotation import (
    cross,
    quaternion_exp,
    quaternion_of_rotation,
    quaternion_product,
    quaternion_rates,
    rotation_of_quaternion,
    skew,
)
from cardan.formulation.armature import Rotor, less_rotors, with_rotors
from cardan.formulation.elements import Loads, on_links
from cardan.formulation.formulation import (
    Formulation,
    LetterGroup,
    Parts,
    all_drives,
    completed,
    joint_wrench,
    kind_letters,
)
from cardan.formulation.kinematics import Kinematics, kinematics_of_tree
from cardan.formulation.light import lent_to_links
from cardan.formulation.measured_joint import dual
from cardan.formulation.quantity import links_from_bodies
from cardan.formulation.recursion import Nodes
from cardan.formulation.rows import LinkRows, Rows
from cardan.formulation.solve import Elimination, Inverse, solve_constrained
from cardan.formulation.spatial import JOINT_WRENCHES
from cardan.model.joint import FREE
from cardan.model.model import Model
from cardan.model.tree import GROUND, Link


class Absolute(Formulation):
    """Six coordinates a body from the ground, angular rates in the fixed frame."""

    name = "absolute"
    about = "six coordinates a body from the ground, joints are constraints"
    eliminates_along_tree = True
    divides = True
    in_body = False
    """Whether angular rates are in the body's axes."""
    width = 6
    """Rates a link."""

    def sizes(self, model: Model) -> tuple[int, int]:
        """Seven coordinates and six rates a link."""
        n = len(model.separate.tree.links)
        return 7 * n, 6 * n

    def leading_rows(self, model: Model) -> int:
        """All, without loops: rows of the tree's joints never depend on one another."""
        apart = model.separate
        return 0 if apart.cuts else sum(link.kind.freedoms_removed for link in apart.tree.links)

    def quaternions(self, model: Model) -> list[tuple[str, int]]:
        """One a link."""
        return [(link.name, 7 * i + 3) for i, link in enumerate(model.separate.tree.links)]

    def kinematics(self, model: Model, q: Matrix, v: Matrix, about: Matrix | None = None) -> Kinematics:
        """From positions, quaternions and rates of the links."""
        apart, links = model.separate, []
        for i, link in enumerate(apart.tree.links):
            c = constant(link.com)
            R = rotation_of_quaternion(q[7 * i + 3 : 7 * i + 7]) @ constant(body_axes(apart, i).T)
            twist = self.twist_matrix(apart, i, R) @ v[6 * i : 6 * i + 6]
            links.append(SimpleNamespace(R=R, r0=q[7 * i : 7 * i + 3] - R @ c, v=twist))
        ground = SimpleNamespace(R=eye(3, q), r0=zeros(3, None, q), v=zeros(6, None, q))
        return Kinematics(apart, Nodes(links, [], ground), about=about)

    def kinematics_of_tree(self, model: Model, q: Matrix, v: Matrix) -> Kinematics:
        """Along the tree whose links are those with mass."""
        return kinematics_of_tree(model.separate, q, v)

    def twist_matrix(self, model: Model, i: int, R: Matrix) -> Matrix:
        """`B` (6, 6) with `v = B u`, of link i at axes R."""
        turn = constant(body_axes(model, i)) if self.in_body else R.T
        c = constant(model.tree.links[i].com)
        return block([[turn, zeros(3, 3, R)], [skew(c) @ turn, R.T]])

    def own_rates(self, model: Model, i: int, R: Matrix, v: Matrix) -> Matrix:
        """`u = (w, v_G)` from the twist of link i."""
        c, w = constant(model.tree.links[i].com), v[:3]
        turn = constant(body_axes(model, i).T) if self.in_body else R
        return stack(turn @ w, R @ (v[3:] + cross(w, c)))

    def equations(self, model: Model, kin: Kinematics, loads: Loads) -> Parts:
        """Newton's and Euler's equations of every link, a row for every constraint of every joint."""
        import casadi as ca

        apart, n = kin.model, self.width * len(kin.model.tree.links)
        joints = [j for j in range(len(apart.joints)) if kin.measured(j).parent != kin.measured(j).child]
        driven = self._driven(kin, loads, joints)
        gravity = constant(apart.gravity)
        parts = [self._body(apart, i, kin, driven[i], gravity) for i in range(len(apart.tree.links))]
        M, f = (ca.vertcat(*x) if k else ca.diagcat(*x) for k, x in enumerate(zip(*parts, strict=True)))
        rotors = [self._rotor(kin, link) for link in apart.tree.links if link.armature is not None]
        rows = self.constraint_rows(kin, loads, joints, n, *self._body_rows(kin))
        rates = stack(*(self.own_rates(apart, i, b.R, b.v) for i, b in enumerate(kin.nodes.links)))
        whole = with_rotors(M, f, rotors)
        return Parts(model, kin, loads, rates, *whole, rows, self._lent(apart), (M, f, rotors))

    def _body_rows(self, kin: Kinematics) -> Iterator[Rows]:
        """Rows among a body's own rates: none."""
        yield from ()

    def _lent(self, model: Model) -> np.ndarray | None:
        """Inertia lent to links without, on the diagonal."""
        lent = lent_to_links(model)
        return np.diag(lent) if lent.any() else None

    def _body(self, model: Model, i: int, kin: Kinematics, wrench: Matrix, gravity: Matrix) -> tuple[Matrix, Matrix]:
        """`M` (6, 6) and `f` (6,) of one link under a wrench about its origin, in its own components."""
        link, R, v = model.tree.links[i], kin.nodes.links[i].R, kin.nodes.links[i].v
        m, c, I = link.mass, constant(link.com), constant(link.I_C)
        w = v[:3]
        n_G = wrench[:3] - cross(c, wrench[3:]) - cross(w, I @ w)  # FX(A4)
        f = R @ wrench[3:] + m * gravity
        turn = constant(body_axes(model, i).T) if self.in_body else R
        I, n_G = turn @ I @ turn.T, turn @ n_G
        return block([[I, zeros(3, 3, R)], [zeros(3, 3, R), m * eye(3, R)]]), stack(n_G, f)

    def _driven(self, kin: Kinematics, loads: Loads, joints: Sequence[int]) -> list[Matrix]:
        """Wrenches on the links, with those of the joints' drives."""
        total = on_links(kin.model, loads.wrenches)
        for j in joints:
            if j in loads.tau:
                m = kin.measured(j)
                for i, force in m.on_links(m.rows.W @ loads.tau[j]):
                    if i != GROUND:
                        total[i] = total[i] + force
        return total

    def _rotor(self, kin: Kinematics, link: Link) -> Rotor:
        """Armature of a joint in the links' rates."""
        _, row, rest = Formulation.coordinate(self, kin, link.joint)
        assert link.armature is not None
        return Rotor(constant(np.diag(link.armature)), row, rest)

    def work(self, kin: Kinematics, rows: LinkRows) -> Matrix:
        """Link by link."""
        k, n = rows.forces[0][1].shape[1] if rows.forces else 0, self.width
        J = type(kin.nodes.ground.R)(k, n * len(kin.model.tree.links))
        for i, force in rows.forces:
            if i != GROUND:  # KJ(2),(7),(8) in the fixed frame, KJ(3),(9),(10) in the body
                J[:, n * i : n * i + n] = force.T @ self.twist_matrix(kin.model, i, kin.nodes.links[i].R)
        return J

    def bias(self, kin: Kinematics, link: int) -> Matrix:
        """`Bdot u`."""
        c, v = constant(kin.model.tree.links[link].com), kin.nodes.links[link].v
        w = v[:3]
        return stack(zeros(3, None, v), -cross(w, v[3:] + cross(w, c)))  # KJ(2),(3): the terms of velocities

    def solve(self, parts: Parts, kept: Sequence[int]) -> tuple[Matrix, Matrix]:
        """Body by body; a rotor's acceleration is one more unknown, which a row holds to its joint's."""
        import casadi as ca

        M, f, rotors = parts.own
        rows, n = parts.rows.kept(kept), M.shape[0]
        lent = np.zeros(n) if parts.lent is None else np.diag(parts.lent)
        armed = [link for link, of in enumerate(parts.kin.model.tree.links) if of.armature is not None]
        own = [
            (i, float(r.A[i, i]), r, link)
            for link, r in zip(armed, rotors, strict=True)
            for i in range(r.A.shape[0])
            if float(r.A[i, i])
        ]
        order = from_the_leaves(parts.kin.model, self.width, parts.rows, kept, [link for *_, link in own])
        if not own:
            return solve_constrained(body_by_body, M, lent, rows.J, f, rows.gamma, order)
        k = len(own)
        K: Matrix = ca.vertcat(*(r.K[i, :] for i, _, r, _ in own))
        J: Matrix = ca.blockcat([[rows.J, type(K)(len(kept), k)], [K, -eye(k, K)]])
        gamma = stack(rows.gamma, *(-r.rest[i] for i, _, r, _ in own))
        A = np.array([a for _, a, _, _ in own])

        def inverse(M: Matrix) -> Inverse:
            bodies = body_by_body(M[:n, :n])
            return lambda B: stack(bodies(B[:n, :]), constant(np.diag(1 / A)) @ B[n:, :])

        whole = ca.diagcat(M, constant(np.diag(A)))
        lent = np.concatenate([lent, np.zeros(k)])
        udot, lam = solve_constrained(inverse, whole, lent, J, stack(f, zeros(k, None, K)), gamma, order)
        return udot[:n], segment(lam, slice(len(kept)))

    def tree_accelerations(self, parts: Parts, vdot: Matrix) -> Matrix:
        """From the spatial accelerations of the links, joint by joint."""
        kin, links, n = parts.kin, parts.kin.model.tree.links, self.width
        a = [
            self.twist_matrix(kin.model, i, b.R) @ vdot[n * i : n * i + n] + self.bias(kin, i)
            for i, b in enumerate(kin.nodes.links)
        ]
        found = []
        for i, (link, b) in enumerate(zip(links, kin.nodes.links, strict=True)):
            carried = b.X @ a[link.parent] if link.parent != GROUND else zeros(6, None, vdot)
            found.append(dual(b.S).T @ (a[i] - carried - b.c))
        return stack(*found)

    def wrenches(self, parts: Parts, vdot: Matrix, lam: Matrix) -> Matrix:
        """Of every joint by its multipliers; of joints inside a link by balance."""
        kin, rows, a = parts.kin, parts.rows, self.tree_accelerations(parts, vdot)
        drives = less_rotors(kin.model, all_drives(parts, lam), a)
        known = {}
        for j, joint in enumerate(kin.model.joints):
            if kin.measured(j).parent != kin.measured(j).child:
                known[j] = joint_wrench(kin.measured(j), segment(lam, rows.of(f"joint {joint.name!r}")), drives.get(j))
        return completed(parts, known, lam, a, JOINT_WRENCHES)

    def rates(self, model: Model, q: Matrix, v: Matrix) -> Matrix:
        """Velocity of the centre of mass, and the rate of the quaternion."""
        parts = []
        for i in range(len(model.separate.tree.links)):
            e, rate = q[7 * i + 3 : 7 * i + 7], v[6 * i : 6 * i + 6]
            turn = rate[:3] if self.in_body else rotation_of_quaternion(e).T @ rate[:3]
            parts.append(stack(rate[3:], quaternion_rates(e, turn)))
        return stack(*parts) if parts else q

    def plus(self, model: Model, q: Matrix, v: Matrix) -> Matrix:
        """Position and orientation of every link by themselves."""
        parts = []
        for i in range(len(model.separate.tree.links)):
            own, rate = q[7 * i : 7 * i + 7], v[6 * i : 6 * i + 6]
            e, turn = own[3:7], quaternion_exp(rate[:3])
            turned = quaternion_product(e, turn) if self.in_body else quaternion_product(turn, e)
            parts.append(stack(own[:3] + rate[3:], turned))
        return stack(*parts) if parts else q

    def project(self, model: Model, poses: Matrix, twists: Matrix) -> tuple[Matrix, Matrix]:
        """Centre of mass, orientation and rates of every link."""
        apart, q, v = model.separate, [], []
        at = links_from_bodies(apart, poses, twists)
        for i, link in enumerate(apart.tree.links):
            R, r, twist = at[i]
            q.append(stack(r + R @ constant(link.com), quaternion_of_rotation(R @ constant(body_axes(apart, i)))))
            v.append(self.own_rates(apart, i, R, twist))
        return stack(*q), stack(*v)

    def letters(self, model: Model) -> Iterator[LetterGroup]:
        """Position, quaternion and rates of every link."""
        coordinates, rates = kind_letters(FREE)
        velocities = tuple((f"{x}dot", f"velocity along {x}", "m/s") for x in "xyz")
        for link in model.separate.tree.links:
            where = " in its axes" if self.in_body else ""
            yield link.name, coordinates, (*rates[:3], *velocities), where


class AbsoluteBody(Absolute):
    """Six coordinates a body from the ground, angular rates in the body's own axes."""

    name = "absolute_body"
    about = "as absolute, with angular rates in the axes of each body"
    in_body = True


def body_by_body(M: Matrix) -> Inverse:
    """`M^-1` of a matrix of 3x3 blocks, the second of each pair a multiple of one."""
    import casadi as ca

    factors = [(ldl_factor(M[k : k + 3, k : k + 3]), M[k + 3, k + 3]) for k in range(0, M.shape[0], 6)]

    def apply(B: Matrix) -> Matrix:
        parts = []
        for i, (turning, mass) in enumerate(factors):
            parts += [ldl_solve(turning, B[6 * i : 6 * i + 3, :]), B[6 * i + 3 : 6 * i + 6, :] / mass]
        result: Matrix = ca.vertcat(*parts)
        return result

    return apply


def from_the_leaves(
    model: Model, width: int, every: Rows, kept: Sequence[int], rotors: Sequence[int]
) -> Elimination | None:
    """Eliminate each link, its rotors, the rows of its joint, and those of loops that are complete with it.

    Unknowns are `width` rates a link, accelerations of rotors on the links `rotors`, and the multipliers of the rows
    kept and of one more row a rotor. None where rows of the tree's joints are left out.

    A loop is complete when all of it below the link where it closes is eliminated: its rows move nothing nearer to the
    root. Rows that are not those of a loop may move all links from theirs to the root.
    """
    links, held = model.tree.links, set(kept)
    joint_of = {f"joint {model.joints[link.joint].name!r}": i for i, link in enumerate(links)}
    if any(label.owner in joint_of and k not in held for k, label in enumerate(every.labels)):
        return None
    rows, n = every.kept(kept), width * len(links)
    after: dict[int, list[int]] = {i: [] for i in range(-1, len(links))}
    first = n + len(rotors)
    for k, i in enumerate(rotors):
        after[i] += [n + k, first + len(rows) + k]
    others = [k for k, label in enumerate(rows.labels) if label.owner not in joint_of]
    for k, label in enumerate(rows.labels):
        if label.owner in joint_of:
            after[joint_of[label.owner]].append(first + k)
    for k, i in zip(others, _completing(model, width, rows, others), strict=True):
        after[i].append(first + k)
    order = [k for i in reversed(range(len(links))) for k in (*range(width * i, width * (i + 1)), *after[i])]
    return Elimination((*order, *after[-1]), settled=not others)


def _completing(model: Model, width: int, rows: Rows, chosen: Sequence[int]) -> Iterator[int]:
    """For some rows the link nearest to the root that they move; -1 for a row that moves none."""
    inside = {f"joint {model.joints[j].name!r}" for j in model.cuts} | {c.owner for c in model.couplings}
    paths: list[set[int]] = []
    for i, link in enumerate(model.tree.links):
        paths.append({i} if link.parent == GROUND else {i} | paths[link.parent])
    touched: list[set[int]] = [set() for _ in rows.labels]
    for row, rate in zip(*rows.J.sparsity().get_triplet(), strict=True):
        touched[row].add(rate // width)
    for k in chosen:
        on = [paths[i] for i in touched[k]]
        moved = set().union(*on)
        if rows.labels[k].owner in inside and len(on) > 1:
            moved -= on[0].intersection(*on)
        yield min(moved, default=-1)


def body_axes(model: Model, i: int) -> np.ndarray:
    """Axes (3, 3) of a link's own body, the one with mass, in the link, whose frame follows its joint."""
    members = [b for b, link in enumerate(model.tree.body_link) if link == i]
    heaviest = max(members, key=lambda b: model.bodies[b].mass)
    return np.asarray(model.tree.body_pose[heaviest].rotation)


ABSOLUTE, ABSOLUTE_BODY = Absolute(), AbsoluteBody()
