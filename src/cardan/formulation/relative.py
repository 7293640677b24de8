"""Relative coordinates: six a body, relative to its neighbour, and the joint between them is a constraint.

Notation of KJ: `s'` is the position of the body's joint frame M in the neighbour's joint frame F, zero for joints
that share a point; the relative twist in M components, `(w^, s'dot)`, is the body's `v`. The tree is that of the
model with every joint replaced by a free one, so its recursions give `M` and `f`; a joint's rows act on the body's
own six rates only:

    T^T v = 0        T^T v' = T^T Sdot qd

Links are those of `Model.separate`.

Equations: KJ(4), KJ(11)-(16).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from cardan.algebra.matrix import Matrix, as_graph, constant, matrix, mirrored, segment, stack, zeros
from cardan.algebra.rotation import quaternion_of_rotation, rotation_of_quaternion
from cardan.algebra.spatial import Transform, shifted, turned
from cardan.formulation.armature import Rotor, less_rotors, with_rotors
from cardan.formulation.elements import Loads
from cardan.formulation.formulation import (
    Formulation,
    LetterGroup,
    Parts,
    all_drives,
    completed,
    joint_wrench,
    kind_letters,
)
from cardan.formulation.kinematics import MOTION, Kinematics
from cardan.formulation.light import lent_to_joints, lent_to_links
from cardan.formulation.measured_joint import drives_of, dual, near
from cardan.formulation.quantity import links_from_bodies
from cardan.formulation.recursion import run, unroll
from cardan.formulation.rows import LinkRows, Rows
from cardan.formulation.solve import along_tree, solve_constrained
from cardan.formulation.spatial import INVERSE_DYNAMICS, INVERSE_DYNAMICS_LOADED, JOINT_WRENCHES, MASS_MATRIX, SPATIAL
from cardan.formulation.tree import with_cut_drives
from cardan.model.joint import FREE, Kind, configuration_rate
from cardan.model.model import Model
from cardan.model.row import RowTable, joint_labels
from cardan.model.tree import Link, Tree

# Six freedoms, placed by a rotation matrix (rows of E) and a position instead of a quaternion: what the tree's own
# coordinates give without a square root.
POSED = replace(
    FREE,
    name="posed",
    nq=12,
    neutral=(1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0),
    E=lambda q: matrix([[q[3 * i + j] for j in range(3)] for i in range(3)]),
    r=lambda q: q[9:12],
)


@dataclass(frozen=True, kw_only=True)
class RelativeKinematics(Kinematics):
    """With the free joints' coordinates, and every tree joint's own as measured there, with its residual."""

    six: Model
    q6: Matrix
    v6: Matrix
    own: tuple[tuple[Matrix, Matrix, Matrix], ...]

    def joint(self, j: int) -> tuple[Matrix, Matrix]:
        """A tree joint's own coordinates and rates; of a cut joint as measured."""
        for i, link in enumerate(self.six.tree.links):
            if link.joint == j:
                kind = self.model.tree.links[i].kind
                x, rate, _ = self.own[i]
                if self.about is not None and kind.nq:
                    place = self.model.tree.links[i].q
                    return near(kind, x, segment(self.about, place)), rate
                return x, rate
        return super().joint(j)


class Relative(Formulation):
    """Six coordinates a body from its neighbour, joints are constraints."""

    name = "relative"
    about = "six coordinates a body from its neighbour, joints are constraints"
    eliminates_along_tree = True

    @property
    def solved_as(self) -> Formulation:
        """In the tree's coordinates, once the rows of the tree's joints are eliminated."""
        return SPATIAL

    def sizes(self, model: Model) -> tuple[int, int]:
        """Seven coordinates and six rates a link."""
        n = len(model.separate.tree.links)
        return 7 * n, 6 * n

    def leading_rows(self, model: Model) -> int:
        """Those of the tree's joints, which never depend on one another."""
        return sum(link.kind.freedoms_removed for link in model.separate.tree.links)

    def quaternions(self, model: Model) -> list[tuple[str, int]]:
        """One a link."""
        return [(model.joints[link.joint].name, 7 * i + 3) for i, link in enumerate(model.separate.tree.links)]

    def kinematics(self, model: Model, q: Matrix, v: Matrix, about: Matrix | None = None) -> Kinematics:
        """From positions, quaternions and twists of the links relative to their neighbours."""
        apart = model.separate
        six = relative_model(apart, FREE)
        own = []
        for i, link in enumerate(apart.tree.links):
            place = q[7 * i : 7 * i + 7]
            R, p = rotation_of_quaternion(place[3:7]), place[:3]
            x = link.kind.measure(R, p)
            S = as_graph(link.kind.S(x), q)
            own.append((x, drives_of(link.kind, x, S).T @ v[6 * i : 6 * i + 6], link.kind.phi(R, p)))
        nodes = run(MOTION, six, {"q": q, "v": v})
        return RelativeKinematics(apart, nodes, about=about, six=six, q6=q, v6=v, own=tuple(own))

    def kinematics_of_tree(self, model: Model, q: Matrix, v: Matrix) -> Kinematics:
        """The tree's own joints are closed."""
        apart = model.separate
        six = relative_model(apart, POSED)
        q6, v6 = posed_coordinates(apart, q, v)
        own = tuple(
            (segment(q, link.q), segment(v, link.v), zeros(link.kind.freedoms_removed, None, q))
            for link in apart.tree.links
        )
        return RelativeKinematics(apart, run(MOTION, six, {"q": q6, "v": v6}), q, v, six=six, q6=q6, v6=v6, own=own)

    def equations(self, model: Model, kin: Kinematics, loads: Loads) -> Parts:
        """The recursions of the free joints; rows of the tree's joints, then of the cut ones."""
        import casadi as ca

        assert isinstance(kin, RelativeKinematics)
        apart, six = kin.model, kin.six
        rows = self.constraint_rows(kin, loads, apart.cuts, six.nv, *self._tree_rows(kin))
        wrenches = with_cut_drives(six, kin, loads)
        C = unroll(INVERSE_DYNAMICS_LOADED.at_rest("qdd"), six, {"q": kin.q6, "v": kin.v6, "wrenches": wrenches})[0]
        f = ca.vertcat(*(self._drive_force(kin, i, loads.tau) for i in range(len(apart.tree.links)))) - C
        M, f = with_rotors(unroll(MASS_MATRIX, six, {"q": kin.q6})[0], f, self._rotors(kin))
        lent = lent_to_links(apart)
        return Parts(model, kin, loads, kin.v6, M, f, rows, np.diag(lent) if lent.any() else None)

    def inertia_force(self, parts: Parts, vdot: Matrix) -> Matrix:
        """By the recursion of the free joints: a fifth of the operations, and a third in the derivatives."""
        kin = parts.kin
        assert isinstance(kin, RelativeKinematics)
        still = replace(kin.six, gravity=np.zeros(3))
        force: Matrix = unroll(INVERSE_DYNAMICS.at_rest("qd"), still, {"q": kin.q6, "a": vdot})[0]
        for rotor in self._rotors(kin):
            force = force + rotor.K.T @ (rotor.A @ (rotor.K @ vdot))
        return force

    def _tree_rows(self, kin: RelativeKinematics) -> Iterator[Rows]:
        """A tree joint's rows act on its body's own six rates."""
        n, like = 6 * len(kin.own), kin.q6
        for i, (link, (x, rate, phi)) in enumerate(zip(kin.model.tree.links, kin.own, strict=True)):
            T = as_graph(link.kind.T(x), like)
            J = type(like)(T.shape[1], n)
            J[:, 6 * i : 6 * i + 6] = T.T  # KJ(4),(11),(12)
            gamma = T.T @ _bias(link, x, rate, like)  # KJ(4),(13)-(16)
            labels = RowTable(joint_labels(kin.model.joints[link.joint].name, link.kind.base))
            yield Rows(labels, J, gamma, type(like).zeros(T.shape[1]), phi)

    def _drive_force(self, kin: RelativeKinematics, i: int, drives: dict[int, Matrix]) -> Matrix:
        """A joint's drive as a wrench (6,) on the link at its frame."""
        link = kin.model.tree.links[i]
        if link.joint not in drives:
            return type(kin.q6).zeros(6)
        x = kin.own[i][0]
        return drives_of(link.kind, x, as_graph(link.kind.S(x), kin.q6)) @ drives[link.joint]

    def _rotors(self, kin: RelativeKinematics) -> list[Rotor]:
        """Armature of the tree's joints."""
        found = []
        for link in kin.model.tree.links:
            if link.armature is not None:
                _, row, rest = self.coordinate(kin, link.joint)
                found.append(Rotor(constant(np.diag(link.armature)), row, rest))
        return found

    def work(self, kin: Kinematics, rows: LinkRows) -> Matrix:
        """Along the tree of free joints."""
        assert isinstance(kin, RelativeKinematics)
        return SPATIAL.work(replace(kin, model=kin.six), rows)

    def bias(self, kin: Kinematics, link: int) -> Matrix:
        """What velocities alone cause."""
        return kin.nodes.links[link].a

    def coordinate(self, kin: Kinematics, j: int) -> tuple[Matrix, Matrix, Matrix]:
        """A tree joint's coordinates in its body's own six rates."""
        assert isinstance(kin, RelativeKinematics)
        for i, link in enumerate(kin.model.tree.links):
            if link.joint == j:
                x, rate, _ = kin.own[i]
                W = drives_of(link.kind, x, as_graph(link.kind.S(x), kin.q6))
                row = type(kin.q6)(link.kind.nv, 6 * len(kin.own))
                row[:, 6 * i : 6 * i + 6] = W.T
                return kin.joint(j)[0], row, -(W.T @ _bias(link, x, rate, kin.q6))
        return super().coordinate(kin, j)

    def solve(self, parts: Parts, kept: Sequence[int]) -> tuple[Matrix, Matrix]:
        """With `v' = S qdd + Sdot qd`, which keeps every tree joint's rows; their multipliers are what is left.

        So `S^T M S`, the inertia of the tree, is all that is factored, along the tree. A set of rows without some of
        the tree joints', which come first, is solved along the tree of free joints.
        """
        import casadi as ca

        kin = parts.kin
        assert isinstance(kin, RelativeKinematics)
        links, own, like = kin.model.tree.links, kin.own, kin.q6
        first = self.leading_rows(parts.model)
        if [*kept[:first]] != [*range(first)]:
            rows, lent = parts.rows.kept(kept), np.zeros(kin.six.nv) if parts.lent is None else np.diag(parts.lent)
            return solve_constrained(along_tree(kin.six), parts.M, lent, rows.J, parts.f, rows.gamma)
        S = ca.diagcat(*(as_graph(link.kind.S(x), like) for link, (x, _, _) in zip(links, own, strict=True)))
        bias = stack(*(_bias(link, x, rate, like) for link, (x, rate, _) in zip(links, own, strict=True)))
        rest = parts.rows.kept(kept[first:])
        force = S.T @ (parts.f - self.inertia_force(parts, bias))
        inertia = mirrored(S.T @ parts.M @ S)
        qdd, lam = solve_constrained(
            along_tree(kin.model), inertia, lent_to_joints(kin.model), rest.J @ S, force, rest.gamma - rest.J @ bias
        )
        vdot = S @ qdd + bias
        left = parts.f - self.inertia_force(parts, vdot) - rest.J.T @ lam
        held = [
            dual(as_graph(link.kind.T(x), like)).T @ left[6 * i : 6 * i + 6]
            for i, (link, (x, _, _)) in enumerate(zip(links, own, strict=True))
            if link.kind.freedoms_removed
        ]
        return vdot, stack(*held, lam)

    def tree_accelerations(self, parts: Parts, vdot: Matrix) -> Matrix:
        """Each joint's from its body's relative acceleration."""
        assert isinstance(parts.kin, RelativeKinematics)
        kin, found = parts.kin, []
        for i, (link, (x, rate, _)) in enumerate(zip(kin.model.tree.links, kin.own, strict=True)):
            W = drives_of(link.kind, x, as_graph(link.kind.S(x), vdot))
            found.append(W.T @ (vdot[6 * i : 6 * i + 6] - _bias(link, x, rate, vdot)))
        return stack(*found)

    def wrenches(self, parts: Parts, vdot: Matrix, lam: Matrix) -> Matrix:
        """Of every joint by its multipliers; of joints inside a link by balance."""
        kin, rows, a = parts.kin, parts.rows, self.tree_accelerations(parts, vdot)
        assert isinstance(kin, RelativeKinematics)
        apart = kin.model
        drives = less_rotors(apart, all_drives(parts, lam), a)
        known = {
            j: joint_wrench(kin.measured(j), segment(lam, rows.of(f"joint {apart.joints[j].name!r}")), drives.get(j))
            for j in apart.cuts
        }
        for i, link in enumerate(apart.tree.links):
            own = segment(lam, rows.of(f"joint {apart.joints[link.joint].name!r}"))
            force = self._drive_force(kin, i, drives) - as_graph(link.kind.T(kin.own[i][0]), lam) @ own
            backwards = -(Transform(kin.nodes.links[i].X.factors[:-2]).T @ force)
            known[link.joint] = backwards if link.kind.backwards else force
        return completed(parts, known, lam, a, JOINT_WRENCHES)

    def rates(self, model: Model, q: Matrix, v: Matrix) -> Matrix:
        """Those of a free joint, link by link."""
        n = len(model.separate.tree.links)
        parts = [configuration_rate(FREE, q[7 * i : 7 * i + 7], v[6 * i : 6 * i + 6]) for i in range(n)]
        return stack(*parts) if parts else q

    def plus(self, model: Model, q: Matrix, v: Matrix) -> Matrix:
        """That of a free joint, link by link."""
        n = len(model.separate.tree.links)
        parts = [FREE.plus(q[7 * i : 7 * i + 7], v[6 * i : 6 * i + 6]) for i in range(n)]
        return stack(*parts) if parts else q

    def project(self, model: Model, poses: Matrix, twists: Matrix) -> tuple[Matrix, Matrix]:
        """Every link measured from its neighbour."""
        apart, q, v = model.separate, [], []
        at = links_from_bodies(apart, poses, twists)
        for i, link in enumerate(apart.tree.links):
            (R, r, twist), (R_p, r_p, v_p) = at[i], at[link.parent]
            R_F, r_F = R_p @ constant(link.E.T), r_p + R_p @ constant(link.r)
            E, p = R.T @ R_F, R_F.T @ (r - r_F)
            X = Transform((turned(E), shifted(p), turned(constant(link.E)), shifted(constant(link.r))))
            q.append(stack(p, quaternion_of_rotation(E.T)))
            v.append(twist - X @ v_p)
        return stack(*q), stack(*v)

    def letters(self, model: Model) -> Iterator[LetterGroup]:
        """Those of a free joint, link by link."""
        for link in model.separate.tree.links:
            yield model.joints[link.joint].name, *kind_letters(FREE), ", between its frames"


def relative_model(model: Model, kind: Kind = FREE) -> Model:
    """The same mechanism with six coordinates a link."""
    links: list[Link] = []
    for i, link in enumerate(model.tree.links):
        q, v = slice(kind.nq * i, kind.nq * (i + 1)), slice(6 * i, 6 * (i + 1))
        links.append(replace(link, kind=kind, q=q, v=v, armature=None))
    tree: Tree = replace(model.tree, links=tuple(links), nq=kind.nq * len(links), nv=6 * len(links))
    return replace(model, tree=tree)


def posed_coordinates(model: Model, q: Matrix, v: Matrix) -> tuple[Matrix, Matrix]:
    """Coordinates and rates of `relative_model(model, POSED)` from those of the tree."""
    places, twists = [], []
    for link in model.tree.links:
        own = segment(q, link.q)
        E = as_graph(link.kind.E(own), q) if link.kind.E is not None else type(q).eye(3)
        r = as_graph(link.kind.r(own), q) if link.kind.r is not None else zeros(3, None, q)
        places.append(stack(*(E[i, :].T for i in range(3)), r))
        twists.append(as_graph(link.kind.S(own), q) @ segment(v, link.v))
    return (stack(*places), stack(*twists)) if places else (q, v)


def _bias(link: Link, q: Matrix, v: Matrix, like: Matrix) -> Matrix:
    """`Sdot qd` (6,) of a tree joint."""
    return link.kind.bias(q, v) if link.kind.bias is not None else zeros(6, None, like)


RELATIVE = Relative()
