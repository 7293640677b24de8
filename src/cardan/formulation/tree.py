"""Formulations in the tree's own coordinates, and the quantities that follow from their recursions.

Loops are closed by rows for the cut joints: a unit constraint force `T` acts on the child at M and backwards on the
parent; carried along the tree to where the two ways meet, its work along the joints on the way is a row of `J`, as in
`formulation.jacobian`. Below that point the two cancel, so nothing is computed there.

Source: RBDA chapter 8.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import accumulate
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from cardan.algebra.free_number import expression
from cardan.algebra.matrix import Matrix, as_graph, constant, eye, segment, stack, zeros
from cardan.formulation.elements import Loads
from cardan.formulation.formulation import (
    Formulation,
    LetterGroup,
    Parts,
    all_drives,
    between_bodies,
    completed,
    joint_wrench,
    kind_letters,
    tree_rates,
)
from cardan.formulation.kinematics import Kinematics, kinematics_of_tree
from cardan.formulation.law_forces import with_law_forces
from cardan.formulation.light import lent_to_joints
from cardan.formulation.measured_joint import dual
from cardan.formulation.quantity import (
    Inputs,
    Quantity,
    centroidal,
    fixed,
    inverse_of,
    links_from_bodies,
    per_velocity,
    potential_of_moment,
    solve_joint_space,
    square,
)
from cardan.formulation.recursion import Recursion, unroll
from cardan.formulation.rows import LinkRows, Rows
from cardan.formulation.solve import along_tree, solve_constrained
from cardan.model.joint import joint_transform
from cardan.model.model import Model
from cardan.model.tree import GROUND, Tree

if TYPE_CHECKING:
    from cardan.formulation.response import Changes, Factors

Finish = Callable[[Model, list[Matrix]], list[Matrix]]


class TreeFormulation(Formulation):
    """A formulation in the tree's coordinates. A subclass gives its recursions, or `inertia_and_force`."""

    in_tree = True
    inverse: ClassVar[Recursion]
    """Inverse dynamics with external wrenches."""
    mass: ClassVar[Recursion]
    """The joint-space inertia."""
    forward: ClassVar[Recursion | None] = None
    """Forward dynamics with external wrenches, which answers where there are no rows; None solves with `mass`."""
    joint_wrenches: ClassVar[Recursion | None] = None
    """Wrenches of all joints by the balance beyond each; None takes those of `spatial`."""
    quantities: ClassVar[dict[str, Quantity]] = {}
    """Functions of a plain tree that have recursions of their own, by name."""

    def sizes(self, model: Model) -> tuple[int, int]:
        """Those of the tree."""
        return model.nq, model.nv

    def quaternions(self, model: Model) -> list[tuple[str, int]]:
        """Those of the joints that have one."""
        links = [link for link in model.tree.links if link.kind.nq != link.kind.nv]
        return [(link.name, link.q.stop - 4) for link in links]

    def kinematics(self, model: Model, q: Matrix, v: Matrix, about: Matrix | None = None) -> Kinematics:
        """From the tree's coordinates and rates."""
        return kinematics_of_tree(model, q, v)

    def kinematics_of_tree(self, model: Model, q: Matrix, v: Matrix) -> Kinematics:
        """The same."""
        return kinematics_of_tree(model, q, v)

    def inertia_and_force(self, model: Model, kin: Kinematics, loads: Loads) -> tuple[Matrix, Matrix]:
        """`M` (nv, nv) and `f` (nv,) of the tree under drives and wrenches."""
        q, v = kin.tree_state
        C = unroll(self.inverse.at_rest("qdd"), model, {"q": q, "v": v, "wrenches": loads.wrenches})[0]
        return unroll(self.mass, model, {"q": q})[0], stacked_drives(model, loads.tau, q) - C

    def equations(self, model: Model, kin: Kinematics, loads: Loads) -> Parts:
        """Rows for the cut joints, couplings and constraints alone."""
        rows = self.constraint_rows(kin, loads, model.cuts, model.nv)
        acting = Loads(loads.tau, with_cut_drives(model, kin, loads), loads.t)
        M, f = self.inertia_and_force(model, kin, acting)
        lent = lent_to_joints(model)
        return Parts(model, kin, loads, kin.tree_state[1], M, f, rows, np.diag(lent) if lent.any() else None, acting)

    def missing_force(self, parts: Parts, vdot: Matrix) -> Matrix:
        """By inverse dynamics, which takes fewer operations than a mass matrix."""
        if type(self).inertia_and_force is not TreeFormulation.inertia_and_force:
            return super().missing_force(parts, vdot)
        q, v = parts.kin.tree_state
        inputs = {"q": q, "v": v, "a": vdot, "wrenches": parts.own.wrenches}
        return stacked_drives(parts.model, parts.loads.tau, q) - unroll(self.inverse, parts.model, inputs)[0]

    def solve_for(self, parts: Parts, kept: Sequence[int], f: Matrix, gamma: Matrix) -> tuple[Matrix, Matrix]:
        """Accelerations and multipliers for several right sides, the columns of `f` (nv, n) and `gamma` (rows, n)."""
        return solve_constrained(along_tree(parts.model), parts.M, self._lent(parts), parts.rows.kept(kept).J, f, gamma)

    def solve_with_forces(
        self, parts: Parts, kept: Sequence[int], rows: Rows, x: Matrix
    ) -> tuple[Parts, Matrix, Matrix]:
        """Solved for the loads and for a unit of each force at once; the force of a row is its column of `J^T`."""
        import casadi as ca

        gamma = ca.horzcat(parts.rows.kept(kept).gamma, ca.SX(len(kept), len(rows)))
        a, lam = self.solve_for(parts, kept, ca.horzcat(parts.f, rows.J.T), gamma)
        loaded = replace(parts, loads=with_law_forces(parts.kin, parts.loads, x))
        return loaded, a[:, 0] + a[:, 1:] @ x, lam[:, 0] + lam[:, 1:] @ x

    def solve_many(self, parts: Parts, kept: Sequence[int], right: Sequence[Changes]) -> list[Matrix]:
        """Accelerations (nv, n) for several right sides."""
        import casadi as ca

        given = self.factors(parts, kept)
        if given is not None and sum(side.f.shape[1] for side in right) >= len(kept):
            answer = given.response
            return [answer.to_unit_forces() if side.is_unit_force else answer(side) for side in right]
        f, gamma = (ca.horzcat(*(getattr(side, name) for side in right)) for name in ("f", "gamma"))
        inverse, J = along_tree(parts.model), parts.rows.kept(kept).J
        found = solve_constrained(inverse, parts.M, self._lent(parts), J, f, gamma)[0]
        return ca.horzsplit(found, [0, *accumulate(side.f.shape[1] for side in right)])

    def factors(self, parts: Parts, kept: Sequence[int]) -> Factors | None:
        """What gives accelerations for many right sides; None with links that inertia is lent to."""
        from cardan.formulation.response import factors  # which trees do without

        return factors(parts.model, parts.M, parts.rows.kept(kept).J) if parts.lent is None else None

    def equation_changes(
        self, parts: Parts, kept: Sequence[int], a: Matrix, lam: Matrix
    ) -> tuple[Changes, Changes] | None:
        """How `f - M a - J^T lam`, `gamma - J a` change with q along the tangent and with v, at given `a` and `lam`.

        None where automatic differentiation is to find it.
        """
        return None

    @staticmethod
    def _lent(parts: Parts) -> np.ndarray:
        return np.zeros(parts.model.nv) if parts.lent is None else np.diag(parts.lent)

    def work(self, kin: Kinematics, rows: LinkRows) -> Matrix:
        """Carried along the tree to the root, or to where two forces that balance meet."""
        tree, nodes = kin.model.tree, kin.nodes
        meeting = common_ancestor(tree, *(i for i, _ in rows.forces)) if rows.internal else GROUND
        J = type(kin.nodes.ground.R)(rows.forces[0][1].shape[1] if rows.forces else 0, kin.model.nv)
        for i, force in rows.forces:
            while i != meeting:
                link, b = tree.links[i], nodes.links[i]
                J[:, link.v] = J[:, link.v] + force.T @ b.S
                force = b.X.T @ force
                i = link.parent
        return J

    def bias(self, kin: Kinematics, link: int) -> Matrix:
        """What velocities alone cause."""
        return kin.nodes.links[link].a

    def coordinate(self, kin: Kinematics, j: int) -> tuple[Matrix, Matrix, Matrix]:
        """A tree joint's coordinates are among the tree's."""
        link = kin.model.link_of_joint(j)
        if link is None:
            return super().coordinate(kin, j)
        q = kin.tree_state[0]
        row = type(q)(link.kind.nv, kin.model.nv)
        row[:, link.v] = eye(link.kind.nv, q)
        return q[link.q], row, type(q)(link.kind.nv, 1)

    def solve(self, parts: Parts, kept: Sequence[int]) -> tuple[Matrix, Matrix]:
        """Along the tree, without fill-in."""
        q, v = parts.kin.tree_state
        if not kept and self.forward is not None:
            tau = stacked_drives(parts.model, parts.loads.tau, q)
            inputs = {"q": q, "v": v, "tau": tau, "wrenches": parts.own.wrenches}
            return unroll(self.forward, parts.model, inputs)[0], zeros(0, None, q)
        rows = parts.rows.kept(kept)
        inverse, lent = along_tree(parts.model), self._lent(parts)
        return solve_constrained(inverse, parts.M, lent, rows.J, parts.f, rows.gamma)

    def tree_accelerations(self, parts: Parts, vdot: Matrix) -> Matrix:
        """They are its own."""
        return vdot

    def wrenches(self, parts: Parts, vdot: Matrix, lam: Matrix) -> Matrix:
        """Of cut joints by their multipliers, of the others by balance."""
        drives, rows, model = all_drives(parts, lam), parts.rows, parts.model
        known = {
            j: joint_wrench(
                parts.kin.measured(j), segment(lam, rows.of(f"joint {model.joints[j].name!r}")), drives.get(j)
            )
            for j in model.cuts
        }
        from cardan.formulation.spatial import JOINT_WRENCHES  # which is written with this file

        return completed(parts, known, lam, vdot, self.joint_wrenches or JOINT_WRENCHES)

    def rates(self, model: Model, q: Matrix, v: Matrix) -> Matrix:
        """`qdot = N(q) v`, joint by joint."""
        return tree_rates(model, q, v)

    def plus(self, model: Model, q: Matrix, v: Matrix) -> Matrix:
        """Joint by joint."""
        return tree_plus(model, q, v)

    def project(self, model: Model, poses: Matrix, twists: Matrix) -> tuple[Matrix, Matrix]:
        """Each joint measured between its two sides."""
        return tree_project(model, poses, twists)

    def letters(self, model: Model) -> Iterator[LetterGroup]:
        """Those of the joints."""
        for link in model.tree.links:
            yield model.joints[link.joint].name, *kind_letters(link.kind), ""


def with_cut_drives(model: Model, kin: Kinematics, loads: Loads) -> Matrix:
    """Wrenches on the bodies, with those of force elements in cut joints."""
    wrenches = loads.wrenches
    for j in model.cuts:
        if j in loads.tau:
            m = kin.measured(j)
            wrenches = between_bodies(model, m, j, m.rows.W @ loads.tau[j], wrenches)
    return wrenches


def stacked_drives(model: Model, tau: dict[int, Matrix], like: Matrix) -> Matrix:
    """Drives of the tree's joints as one column."""
    parts = [tau.get(link.joint, zeros(link.kind.nv, None, like)) for link in model.tree.links]
    return stack(*parts) if parts else zeros(0, None, like)


def common_ancestor(tree: Tree, a: int, b: int) -> int:
    """The last link that the ways to the root share, or the ground."""
    way = []
    while a != GROUND:
        way.append(a)
        a = tree.links[a].parent
    while b != GROUND and b not in way:
        b = tree.links[b].parent
    return b


# Quantities of a plain tree.


def tree_plus(model: Model, q: Matrix, v: Matrix) -> Matrix:
    """Configuration after moving with constant `v` for unit time, joint by joint."""
    parts = [link.kind.plus(segment(q, link.q), segment(v, link.v)) for link in model.tree.links if link.kind.nq]
    return stack(*parts) if parts else q


def tree_project(model: Model, poses: Matrix, twists: Matrix) -> tuple[Matrix, Matrix]:
    """Coordinates and rates of the tree from poses and twists of all bodies: each joint measured between its sides."""
    at = links_from_bodies(model, poses, twists)
    q: list[Matrix] = []
    v: list[Matrix] = []
    for i, link in enumerate(model.tree.links):
        R_p, r_p, v_p = at[link.parent]
        R_i, r_i, v_i = at[i]
        E, r = constant(link.E), constant(link.r)
        R_F, r_F = R_p @ E.T, r_p + R_p @ r
        q_i = link.kind.measure(R_F.T @ R_i, R_F.T @ (r_i - r_F))
        S = as_graph(link.kind.S(q_i), poses)
        q.append(q_i)
        v.append(dual(S).T @ (v_i - joint_transform(link.kind, q_i, E, r) @ v_p))
    return (stack(*q), stack(*v)) if q else (zeros(0, None, poses), zeros(0, None, poses))


def _state(write: Callable[..., Matrix | tuple[Matrix, ...]], *ports: str) -> Callable[[Model, Inputs], list[Matrix]]:
    """A function of the model and some ports, as quantities write it."""

    def written(model: Model, inputs: Inputs) -> list[Matrix]:
        found = write(model, *(inputs[port] for port in ports))
        return list(found) if isinstance(found, tuple) else [found]

    return written


PLUS = Quantity("plus", ("q", "v"), (("q", lambda m: (m.nq,)),), write=_state(tree_plus, "q", "v"))
RATES = Quantity("rates", ("q", "v"), (("qdot", lambda m: (m.nq,)),), write=_state(tree_rates, "q", "v"))
PROJECT = Quantity(
    "project", ("poses", "twists"), (("q", lambda m: (m.nq,)), ("v", lambda m: (m.nv,))),
    write=_state(tree_project, "poses", "twists"),
)  # fmt: skip


def joint_space_quantities(inverse: Recursion, loaded: Recursion, mass: Recursion) -> list[Quantity]:
    """Quantities that follow from inverse dynamics and the mass matrix in any formulation."""

    def inverse_mass(model: Model, inputs: Inputs) -> list[Matrix]:
        return [inverse_of(model, unroll(mass, model, inputs)[0])]

    tau = (("tau", per_velocity),)
    return [
        Quantity("inverse_dynamics", ("q", "v", "a"), tau, inverse),
        Quantity("inverse_dynamics_loaded", ("q", "v", "a", "wrenches"), tau, loaded),
        Quantity("bias_force", ("q", "v"), tau, inverse.at_rest("qdd")),
        Quantity("gravity_force", ("q",), tau, inverse.at_rest("qd", "qdd")),
        Quantity("mass_matrix", ("q",), (("M", square),), mass),
        Quantity("inverse_mass_matrix", ("q",), (("Minv", square),), write=inverse_mass),
    ]


def solved(name: str, inverse: Recursion, mass: Recursion) -> Quantity:
    """Forward dynamics by solving `H qdd = tau - C`."""

    def write(model: Model, inputs: Inputs) -> list[Matrix]:
        C = unroll(inverse.at_rest("qdd"), model, inputs)[0]
        H = unroll(mass, model, inputs)[0]
        return [solve_joint_space(model, H, inputs["tau"] - C)]

    inputs = ("q", "v", "tau", "wrenches") if name.endswith("loaded") else ("q", "v", "tau")
    return Quantity(name, inputs, (("a", per_velocity),), write=write)


def totals(
    kinetic: Recursion, momentum: Recursion, composite: Recursion, moment: Finish, spin: Finish
) -> list[Quantity]:
    """Energy, momentum and centre of mass, from sums over the tree.

    `moment` takes the composite's results to `[m, m c]`; `spin` those of momentum to `[h]`. Bodies fixed to the ground
    count too.
    """

    def whole(model: Model, results: list[Matrix]) -> tuple[Matrix, Matrix]:
        m, mc = moment(model, results)
        fixed_mass, fixed_moment = model.fixed_moment
        return m + expression(fixed_mass), mc + constant(fixed_moment)

    def potential(model: Model, results: list[Matrix]) -> list[Matrix]:
        return [potential_of_moment(model, whole(model, results)[1])]

    def com(model: Model, results: list[Matrix]) -> list[Matrix]:
        m, mc = whole(model, results)
        return [mc / m]

    def write_centroidal(model: Model, inputs: Inputs) -> list[Matrix]:
        h = spin(model, unroll(momentum, model, inputs))[0]
        return [centroidal(h, com(model, unroll(composite, model, {"q": inputs["q"]}))[0])]

    six = (("h", fixed(6)),)
    return [
        Quantity("kinetic_energy", ("q", "v"), (("T", fixed()),), kinetic),
        Quantity("potential_energy", ("q",), (("V", fixed()),), composite, finish=potential),
        Quantity("momentum", ("q", "v"), six, momentum, finish=spin),
        Quantity("center_of_mass", ("q",), (("c", fixed(3)),), composite, finish=com),
        Quantity("centroidal_momentum", ("q", "v"), six, write=write_centroidal),
    ]


def quantity_table(*quantities: Quantity) -> dict[str, Quantity]:
    """Quantities by name, with those that all tree formulations share."""
    return {quantity.name: quantity for quantity in (*quantities, PLUS, RATES, PROJECT)}
