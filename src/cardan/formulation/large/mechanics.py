"""Equations of motion of a large mechanism, piece by piece and connection by connection.

    M_p a_p + sum_c J_cp^T lam_c = f_p   for every piece p        sum_p J_cp a_p = gamma_c   for every connection c

so that with `Y_cp = M_p^-1 J_cp^T` and `a0_p = M_p^-1 f_p`

    A lam = J a0 - gamma      A_cd = sum_p J_cp Y_dp      a_p = a0_p - sum_c Y_cp lam_c

`A` is a sparse matrix of small blocks, two of which touch where connections share a piece. The equations of a piece and
the rows of a connection come from the text of `spatial`, recorded with the template of each class.

Where pieces are single links (`bodies_apart`), all joints are connections. The links' poses and twists come from the
tree's coordinates by a sweep outwards, and the accelerations of its coordinates from those of the links, joint by
joint. Entries of poses and twists that are zero or one for all links of a class are literals: so a mechanism in a plane
has three rates a link, without further ado, and rows on which nothing asked for depends are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import numpy as np

from cardan.algebra.linsolve import tree_factor, tree_solve
from cardan.algebra.matrix import Matrix, constant, dot, eye, mirrored, segment, zeros
from cardan.formulation import elements
from cardan.formulation.coordinates import velocity_of_change
from cardan.formulation.elements import Loads, loads_at, on_links
from cardan.formulation.formulation import joint_wrench
from cardan.formulation.kinematics import Kinematics, pose, velocity
from cardan.formulation.large.pieces import Group, PieceClass, Pieces
from cardan.formulation.large.steps import Cell, Stage, Step, View
from cardan.formulation.large.system import System
from cardan.formulation.measured_joint import dual, fixed_transform
from cardan.formulation.recursion import Nodes
from cardan.formulation.rows import LinkRows, Rows
from cardan.formulation.spatial import SPATIAL
from cardan.formulation.tree import stacked_drives, with_cut_drives
from cardan.model.graph_digest import graph_digest
from cardan.model.joint import Kind
from cardan.model.model import Model
from cardan.model.tree import GROUND

MOVING = ("X", "S", "R", "r0", "v", "c", "a")  # of a link, as later steps see it
LARGEST = 1e300
LIFTED = {"R": (3, 3), "r0": (3, 1), "v": (6, 1)}  # of a link by itself


@dataclass
class ConnectionClass:
    """Connections of one class, recorded: their cell, and what they keep for each of their pieces.

    `number` (count,) is each one's block row.
    """

    group: Group
    cell: Cell
    number: np.ndarray
    J: list[Any] = field(default_factory=list)
    Y: list[Any] = field(default_factory=list)
    known: dict[str, Any] = field(default_factory=dict)


@dataclass
class JointClass:
    """Joints of the tree between links by themselves: those of links `members` of a class on parents of another."""

    piece: PieceClass
    members: np.ndarray
    parent: PieceClass | None
    parents: np.ndarray
    known: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Target:
    """What is added to what pieces keep as `name`: `sign` times what a column of the solution does.

    To the sum `total` is added `sign` times that column's product with what connections keep as `by`.
    """

    name: str
    sign: float
    column: int = 0
    total: str | None = None
    by: str = ""


@dataclass(frozen=True)
class GivenJoints(Kinematics):
    """Links whose motion is known, and joints whose coordinates and rates are."""

    given: dict[int, tuple[Matrix, Matrix]] = field(default_factory=dict)

    def joint(self, j: int) -> tuple[Matrix, Matrix]:
        """As given, or measured."""
        return self.given[j] if j in self.given else super().joint(j)

    def counts_turns(self, j: int) -> bool:
        """Whether a joint's angle counts whole turns."""
        return j in self.given or super().counts_turns(j)


class LargeMechanics:
    """The stages of a program for a large mechanism.

    Args:
        model: with its free parameters as free numbers, expressions of `p`.
        kept: the constraint rows, in the tree's coordinates, that are solved with.
        inputs: names of the input ports.
        outputs: names of the output ports.
        bodies_apart: whether every link is a piece.
        p: symbols of the free parameters.
        changes: input ports with small changes, of the coordinates or of the rates, which pieces keep as rates.
        columns: how many right sides are solved for.
        normalises: whether quaternions are brought to unit length first.
        rooms: names of rates, zero at first, that pieces keep for what connections add.

    """

    def __init__(
        self, model: Model, kept: Sequence[int], inputs: Sequence[str], outputs: Sequence[str], *, bodies_apart: bool,
        p: Matrix | None = None, changes: Sequence[str] = (), columns: int = 1, normalises: bool = False,
        rooms: Sequence[str] = (),
    ) -> None:  # fmt: skip
        self.model, self.inputs, self.outputs, self.p = model, tuple(inputs), tuple(outputs), p
        self.bodies_apart, self.changes, self.normalises, self.rooms = bodies_apart, tuple(changes), normalises, rooms
        self.division = division = Pieces(model, bodies_apart, kept)
        self.pieces = division.pieces
        members = division.connections(with_tree="phi" not in self.outputs)
        self.connections = division.groups([member for member in members if member.own.rows])
        spare = [member for member in members if not member.own.rows] if {"gap", "phi"} & {*self.outputs} else []
        self.spare = division.groups(spare)
        self.elements = division.elements()
        self.drives = division.drives() if bodies_apart and "tau" in self.inputs else []
        self.cells: list[Cell] = [piece.cell for piece in self.pieces]
        every: tuple[Any, ...] = (*self.pieces, *self.connections, *self.elements, *self.drives, *self.spare)
        self.numbers = [x.numbers for x in every]
        self.cells += [n.free for n in self.numbers if n.free is not None]
        self.totals: dict[str, int] = {}
        self.joints = list(self._joint_classes()) if bodies_apart else []
        if bodies_apart:
            self._find_literals()
        self.before = [*self.parameters(), *self.lift(), self.motion()]
        self.moved: set[tuple[int, int]] = set()
        if bodies_apart:
            self._leave_out_rows()
        if "nothing" in self.outputs:
            return
        self.connected: list[ConnectionClass] = []
        self._shared: list[tuple[int, int, int, int, int, int]] | None = None
        self.system = System(self.sizes(), self.touching(), columns, first=len(self.outputs))

    # Inputs.

    def time(self, step: Step) -> Matrix:
        """Time, zero where it is not an input."""
        import casadi as ca

        return step.input(self.inputs.index("t"), 1, 0) if "t" in self.inputs else ca.SX(1, 1)

    def of_joint(self, step: Step, port: str, links: np.ndarray) -> Matrix:
        """The part of an input with an entry for each coordinate, or rate, that belongs to joints of one kind."""
        import casadi as ca

        tree = self.model.tree.links
        kind = tree[links[0]].kind
        n = kind.nq if port in AS_Q else kind.nv
        if port not in self.inputs or not n:
            return ca.SX(n, 1)
        at = np.array([(tree[i].q if port in AS_Q else tree[i].v).start for i in links])
        return step.input(self.inputs.index(port), n, at)

    def coordinates(self, step: Step, links: np.ndarray) -> Matrix:
        """Coordinates of joints of one kind; if `normalises`, a quaternion is brought to unit length."""
        q = self.of_joint(step, "q", links)
        return normalised(self.model.tree.links[links[0]].kind, q) if self.normalises else q

    def of_piece(self, step: Step, piece: PieceClass, port: str) -> Matrix:
        """The same of all joints of a piece."""
        import casadi as ca

        return ca.vertcat(ca.SX(0, 1), *(self.of_joint(step, port, links) for links in piece.links.T))

    def change_of_joint(self, step: Step, port: str, links: np.ndarray, q: Matrix) -> Matrix:
        """A change of joints' coordinates, or of their rates, as rates."""
        change = self.of_joint(step, port, links)
        return velocity_of_change(self.model.tree.links[links[0]].kind, q, change) if port in AS_Q else change

    def _wrenches(self, step: Step, piece: PieceClass) -> Matrix:
        import casadi as ca

        if "wrenches" not in self.inputs:
            return ca.SX(len(piece.bodies), 6)
        number = self.inputs.index("wrenches")
        rows = [step.input(number, 6, 6 * piece.body_numbers[:, k]).T for k in range(len(piece.bodies))]
        return ca.vertcat(ca.SX(0, 6), *rows)

    def parameters(self) -> list[Stage]:
        """What follows from the free parameters, for every member of every class that has free numbers."""
        import casadi as ca

        if self.p is None:
            return []
        place = {self.p[k].element_hash(): k for k in range(self.p.numel())}
        steps = []
        for numbers in self.numbers:
            groups: dict[Any, list[tuple[int, list[int], Any, Any]]] = {}
            for m, e in enumerate(numbers.expressions):
                symbols = ca.symvar(e)
                text = graph_digest(ca.Function("free", [ca.vertcat(*symbols)], [e]))
                at = [place[s.element_hash()] for s in symbols]
                groups.setdefault((text, len(at)), []).append((m, at, symbols, e))
            for members in groups.values():
                step = Step(len(members), np.zeros((len(members), 0)), _none())
                own = step.view(numbers.free, np.array([m for m, *_ in members]))
                _, _, symbols, e = members[0]
                for k, symbol in enumerate(symbols):
                    offsets = np.array([each[1][k] for each in members])
                    step.inputs.append((self.inputs.index("p"), symbol, offsets))
                own.put(ca.vertcat(*numbers.free.symbols), e)
                steps.append(step)
        return [Stage(steps)] if steps else []

    # Pieces.

    def _joint_classes(self) -> Iterator[JointClass]:
        links, (of, member) = self.model.tree.links, (self.division.cls, self.division.member)
        for piece in self.pieces:
            parents = np.array([links[i].parent for i in piece.links[:, 0]])
            classes = np.where(parents == GROUND, GROUND, of[parents])
            for cls in dict.fromkeys(classes.tolist()):
                own = np.flatnonzero(classes == cls)
                yield JointClass(piece, own, None if cls == GROUND else self.pieces[cls], member[parents[own]])

    def _find_literals(self) -> None:
        """Which entries of poses and twists are the same constant for all links of a class, whatever the motion."""
        import casadi as ca

        found: dict[int, dict[str, Any]] = {}
        again = True
        while again:
            again = False
            for joint in self.joints:
                if joint.parent is not None and id(joint.parent) not in found:
                    continue
                parent = None if joint.parent is None else found[id(joint.parent)]
                b = self._moved(joint, None if parent is None else _with_symbols(parent))[0]
                own = {name: [_literal(e) for e in _entries(getattr(b, name))] for name in LIFTED}
                before = found.get(id(joint.piece), own)
                met = {
                    name: [x if x == y else None for x, y in zip(own[name], before[name], strict=True)]
                    for name in LIFTED
                }
                if found.get(id(joint.piece)) != met:
                    found[id(joint.piece)], again = met, True
        for piece in self.pieces:
            cell, known = piece.cell, {}
            for name, shape in LIFTED.items():
                literals = found[id(piece)][name]
                values = [cell.symbols[cell.place()] if x is None else ca.SX(x) for x in literals]
                known[name] = ca.reshape(ca.vertcat(*values), *shape)
            for name in self.changes:
                literals = found[id(piece)]["v"]
                values = [cell.symbols[cell.place()] if x is None else ca.SX(x) for x in literals]
                piece.known[name] = ca.vertcat(*values)
            piece.known["lifted"] = known

    def _moved(self, joint: JointClass, parent: dict[str, Any] | None, step: Step | None = None) -> tuple[Any, Any]:
        """A link by itself on its parent, after its joint's motion; the symbols are a step's, or thrown away."""
        step = Step(len(joint.members), np.zeros((0, 0)), _none()) if step is None else step
        links = joint.piece.links[joint.members, 0]
        E, r = joint.piece.placement
        q, v = self.coordinates(step, links), self.of_joint(step, "v", links)
        b = SimpleNamespace(kind=joint.piece.kinds[0], E=constant(E), r=constant(r), q=q, qd=v)
        p = _ground(q) if parent is None else SimpleNamespace(**parent)
        pose(b, p)
        velocity(b, p)
        return b, p

    def lift(self) -> list[Stage]:
        """Poses and twists of links by themselves, from the root outwards."""
        import casadi as ca

        steps = []
        for joint in self.joints:
            step = joint.piece.numbers.step(joint.members)
            step.order = joint.piece.links[joint.members, 0]
            own = step.view(joint.piece.cell, joint.members)
            parent = None
            if joint.parent is not None:
                above = step.view(joint.parent.cell, joint.parents)
                parent = {name: ca.sparsify(above.read(x)) for name, x in joint.parent.known["lifted"].items()}
            b, _ = self._moved(joint, parent, step)
            for name, kept in joint.piece.known["lifted"].items():
                own.put(kept, ca.densify(getattr(b, name)))
            for name in self.changes:
                change = b.S @ self.change_of_joint(step, name, joint.piece.links[joint.members, 0], b.q)
                if joint.parent is not None:
                    change = change + b.X @ ca.sparsify(above.read(joint.parent.known[name]))
                own.put(joint.piece.known[name], ca.densify(change))
            joint.known = {name: own.keep(getattr(b, name)) for name in ("X", "S", "c")}
            steps.append(step)
        return [Stage(steps)] if steps else []

    def motion(self) -> Stage:
        """Where the links of every piece are and how they move; mass matrix, factored, and force."""
        return Stage([self._motion(piece) for piece in self.pieces])

    def _state(self, step: Step, own: View, piece: PieceClass) -> tuple[Matrix, Matrix]:
        """Coordinates and rates of a piece."""
        import casadi as ca

        if not self.bodies_apart:
            links = [piece.links[:, k] for k in range(len(piece.kinds))]
            q = [self.coordinates(step, own) for own in links]
            return ca.vertcat(_none(), *q), self.of_piece(step, piece, "v")
        R, r0, v = (ca.sparsify(own.read(x)) for x in piece.known["lifted"].values())
        return ca.vertcat(ca.vec(R), r0), v

    def _motion(self, piece: PieceClass) -> Step:
        import casadi as ca

        step, T = piece.numbers.step(), piece.template
        own, known = step.view(piece.cell, np.arange(piece.count)), piece.known
        q, v = self._state(step, own, piece)
        kin = SPATIAL.kinematics_of_tree(T, q, v)
        tau = zeros(T.nv, None, q) if self.bodies_apart else self.of_piece(step, piece, "tau")
        loads = loads_at(kin, tau, self._wrenches(step, piece), self.time(step))
        parts = SPATIAL.equations(T, kin, loads)
        nodes = [{name: getattr(b, name) for name in MOVING} for b in kin.nodes.links]
        known["nodes"] = [{name: own.keep(x) for name, x in b.items()} for b in nodes]
        known["q"], known["v"], known["M"] = own.keep(q), own.keep(v), parts.M.sparsity()
        for name in self.changes if not self.bodies_apart else ():
            parts_of = [
                self.change_of_joint(step, name, piece.links[:, k], segment(q, link.q))
                for k, link in enumerate(T.tree.links)
            ]
            known[name] = own.keep(ca.vertcat(*parts_of))
        above = T.tree.coordinate_ancestor()
        factor = tree_factor(parts.M, above)
        known["factor"] = own.keep(factor)
        if "P" in self.outputs and not self.bodies_apart:
            self.add(step, "P", dot(v, tau))
        if "energy" in self.outputs:  # twice the kinetic energy, about, and the sum of all inertias
            self.add(step, "energy", dot(_diagonal(parts.M), v**2))
            self.add(step, "inertia", ca.sum1(_diagonal(parts.M)))
        if "wrenches" in self.outputs:
            known["w"] = own.room(ca.vertcat(*on_links(T, loads.wrenches)))
        if self.elements or self.drives:
            known["f"] = own.room(parts.f)
        else:
            known["a"] = own.room(tree_solve(factor, above, parts.f))
        for name in self.rooms:
            known[name] = own.room(zeros(T.nv, None, q))
        return step

    def forces(self) -> list[Stage]:
        """What drives and force elements add; then the accelerations of the pieces as if nothing connected them."""
        if not self.elements and not self.drives:
            return []
        steps = [self._force(group) for group in self.elements] + [self._driven(group) for group in self.drives]
        return [Stage(steps), Stage([self._free(p) for p in self.pieces])]

    def _driven(self, group: Group) -> Step:
        step = group.numbers.step()
        views, kin = self.seen(step, group)
        tau = self.of_joint(step, "tau", group.links[:, 0])
        none = type(tau)
        self._act(group, views, kin, Loads({group.joints[0]: tau}, none(group.template.nb, 6), none(1, 1)))
        if "P" in self.outputs:
            self.add(step, "P", dot(kin.joint(group.joints[0])[1], tau))
        return step

    def _force(self, group: Group) -> Step:
        step, T = group.numbers.step(), group.template
        views, kin = self.seen(step, group)
        q, t = kin.tree_state[0], self.time(step)
        self._act(group, views, kin, loads_at(kin, zeros(T.nv, None, q), type(q)(T.nb, 6), t))
        if "P" in self.outputs:
            self.add(step, "P", elements.element_power(kin, t))
        return step

    def _act(self, group: Group, views: list[View], kin: Kinematics, loads: Loads) -> None:
        """Add the forces of loads along the rates of the pieces."""
        T = group.template
        drives = {j: tau for j, tau in loads.tau.items() if j not in T.cuts}
        forces = tuple(enumerate(on_links(T, with_cut_drives(T, kin, loads))))
        none = zeros(1, 1, kin.tree_state[0])
        f = SPATIAL.work(kin, LinkRows((), forces, none, none, none, internal=False)).T
        f = f + stacked_drives(T, drives, none)
        for view, cls, at in zip(views, group.pieces, self.columns(group), strict=True):
            view.add(self.pieces[cls].known["f"], segment(f, at))
        if "wrenches" in self.outputs:  # but for what acts along joints of the tree, which carry it
            others = {j: tau for j, tau in loads.tau.items() if j not in group.coordinates}
            acting = with_cut_drives(T, kin, Loads(others, loads.wrenches, loads.t))
            self._load(group, views, dict(enumerate(on_links(T, acting))))

    def _load(self, group: Group, views: list[View], wrenches: dict[int, Matrix]) -> None:
        """Add wrenches on the links of a template to those that their pieces keep."""
        first = 0
        for view, cls in zip(views, group.pieces, strict=True):
            piece = self.pieces[cls]
            none = zeros(6, None, _none())
            own = [wrenches.get(first + k, none) for k in range(len(piece.kinds))]
            view.add(piece.known["w"], type(none)(_stack(own)))
            first += len(piece.kinds)

    def _free(self, piece: PieceClass) -> Step:
        step = piece.numbers.step()
        own, known = step.view(piece.cell, np.arange(piece.count)), piece.known
        known["a"] = own.room(self.solved(piece, own, own.read(known["f"])))
        return step

    def solved(self, piece: PieceClass, own: View, b: Matrix) -> Matrix:
        """`M^-1 b` of a piece."""
        return tree_solve(own.read(piece.known["factor"]), piece.template.tree.coordinate_ancestor(), b)

    # Connections.

    def seen(self, step: Step, group: Group) -> tuple[list[View], Kinematics]:
        """The pieces that a connection or element concerns, and the motion of their links."""
        import casadi as ca

        views, links, q, v = [], [], [], []
        for k, cls in enumerate(group.pieces):
            piece = self.pieces[cls]
            view = step.view(piece.cell, group.members[:, k])
            views.append(view)
            for b, own in zip(piece.known["nodes"], piece.template.tree.links, strict=True):
                links.append(_Seen(view, b, own.kind))
            q.append(view.read(piece.known["q"]))
            v.append(view.read(piece.known["v"]))
        given = {}
        for k, j in enumerate(group.coordinates):
            at = group.links[:, k]
            given[j] = self.coordinates(step, at), self.of_joint(step, "v", at)
        none = ca.SX(0, 1)
        nodes = Nodes(links, [], _ground(none))
        return views, GivenJoints(group.template, nodes, ca.vertcat(none, *q), ca.vertcat(none, *v), given=given)

    def columns(self, group: Group) -> list[slice]:
        """Which of a template's rates belong to each piece."""
        ends = np.cumsum([0, *(self.pieces[cls].template.nv for cls in group.pieces)])
        return [slice(int(a), int(b)) for a, b in pairwise(ends)]

    def rows_at(self, step: Step, group: Group) -> tuple[list[View], Rows]:
        """All rows of a connection in the rates of its pieces."""
        views, kin = self.seen(step, group)
        loads = Loads({}, zeros(group.template.nb, 6, kin.tree_state[0]), self.time(step))
        return views, SPATIAL.constraint_rows(kin, loads, group.joints, group.template.nv)

    def _leave_out_rows(self) -> None:
        """Drop rows on which no acceleration of the tree's joints depends, as those out of a plane.

        `moved` are then the rates that are left: (class of pieces, number).
        """
        groups = _Groups()
        for cls, piece in enumerate(self.pieces):
            for i, j in zip(*piece.known["M"].get_triplet(), strict=True):
                groups.join((cls, i), (cls, j))
        touched = []
        for group in self.connections:
            _, rows = self.rows_at(group.numbers.step(), group)
            owner = [(cls, k) for cls in group.pieces for k in range(self.pieces[cls].template.nv)]
            on = {r: [owner[c] for c in np.flatnonzero(_pattern(rows.J[r, :]))] for r in group.kept}
            touched.append(on)
            for columns in on.values():
                for c in columns[1:]:
                    groups.join(columns[0], c)
        wanted = {groups.find(c) for joint in self.joints for c in self._asked(joint)}
        if {"lam", "cuts"} & {*self.outputs}:
            asked = [on for g, on in zip(self.connections, touched, strict=True) if not (g.coordinates and g.joints)]
            wanted |= {groups.find(columns[0]) for on in asked for columns in on.values() if columns}
        every = ((cls, k) for cls, piece in enumerate(self.pieces) for k in range(piece.template.nv))
        self.moved = {c for c in every if groups.find(c) in wanted}
        kept = []
        for group, on in zip(self.connections, touched, strict=True):
            own = [n for n, r in enumerate(group.kept) if on[r] and groups.find(on[r][0]) in wanted]
            if own:
                kept.append(replace(group, kept=tuple(group.kept[n] for n in own), rows=group.rows[:, own]))
        self.connections = kept

    def _asked(self, joint: JointClass) -> list[tuple[int, int]]:
        """The rates of links on whose rates of change the accelerations of joints depend."""
        import casadi as ca

        a, above = ca.SX.sym("a", 6), ca.SX.sym("above", 6)
        found = _joint_acceleration(joint, a, above if joint.parent is not None else None)
        own = self.pieces.index(joint.piece)
        columns = [(own, int(k)) for k in np.flatnonzero(_pattern(ca.sum1(ca.jacobian(found, a) ** 2)))]
        if joint.parent is not None:
            parent = self.pieces.index(joint.parent)
            columns += [(parent, int(k)) for k in np.flatnonzero(_pattern(ca.sum1(ca.jacobian(found, above) ** 2)))]
        return columns

    def rows(self, right: Callable[[Step, View, ConnectionClass, list[View], Rows], Matrix]) -> Stage:
        """The rows of every connection, and its block and right sides of the system; `right` gives the latter."""
        number, steps = 0, []
        for group in self.connections:
            step, numbers = group.numbers.step(), number + np.arange(group.count)
            number += group.count
            views, every = self.rows_at(step, group)
            rows = every.kept(group.kept)
            one = ConnectionClass(group, Cell(group.count), numbers)
            self.cells.append(one.cell)
            own = step.view(one.cell, np.arange(group.count))
            A: Matrix = zeros(len(group.kept), len(group.kept), rows.J)
            for view, cls, at in zip(views, group.pieces, self.columns(group), strict=True):
                J, piece = rows.J[:, at], self.pieces[cls]
                Y = self.solved(piece, view, J.T)
                A = A + J @ Y
                one.J.append(own.keep(J))
                one.Y.append(own.keep(Y))
            one.known = {"beta": own.keep(rows.beta)}
            if "independence" in self.outputs:
                one.known["size"] = own.keep(_sizes(A, [label.unit for label in rows.labels]))
            step.block(A.numel(), self.system.diagonal[numbers]).written = _dense(mirrored(A))
            b = right(step, own, one, views, rows)
            for k in range(b.shape[1]):
                address = self.system.right[numbers] + k * self.system.stride
                step.block(b.shape[0], address).written = _dense(b[:, k])
            if "gap" in self.outputs:
                self.largest(step, "gap", every.phi)
            self.connected.append(one)
            steps.append(step)
        for group in self.spare:
            step = group.numbers.step()
            self.largest(step, "gap", self.rows_at(step, group)[1].phi)
            steps.append(step)
        return Stage(steps)

    def residuals(self) -> Stage:
        """The residuals of all rows of positions, `phi`, and of velocities, `J v - beta`."""
        steps = []
        for group in self.spare:
            step = group.numbers.step()
            views, rows = self.rows_at(step, group)
            rate = -rows.beta
            for view, cls, at in zip(views, group.pieces, self.columns(group), strict=True):
                rate = rate + rows.J[:, at] @ view.read(self.pieces[cls].known["v"])
            step.output(self.outputs.index("phi"), rows.phi, group.first)
            if "rate" in self.outputs:
                step.output(self.outputs.index("rate"), rate, group.first)
            steps.append(step)
        return Stage(steps)

    def gaps(self, step: Step, own: View, one: ConnectionClass, views: list[View], rows: Rows) -> Matrix:
        """Residuals of positions and of velocities, and what changes do to both, as columns."""
        import casadi as ca

        vectors = ["v", *self.changes]
        columns = [zeros(rows.J.shape[0], None, rows.J) for _ in vectors]
        for view, cls, at in zip(views, one.group.pieces, self.columns(one.group), strict=True):
            for k, name in enumerate(vectors):
                columns[k] = columns[k] + rows.J[:, at] @ view.read(self.pieces[cls].known[name])
        columns[0] = columns[0] - rows.beta
        if "eq" in vectors:  # rows at rate level do not correct positions
            levels = constant(np.array([label.level == "position" for label in rows.labels], dtype=float))
            columns[vectors.index("eq")] = levels * columns[vectors.index("eq")]
        one.known["r"] = own.keep(columns[0])
        return ca.horzcat(rows.phi, *columns)

    def independence(self) -> Stage:
        """The smallest pivot of the system, each relative to the diagonal that it comes from, or one beside it."""
        import casadi as ca

        steps = []
        for one in self.connected:
            count, n = one.group.count, len(one.group.kept)
            step = Step(count, np.zeros((count, 0)), _none())
            own = step.view(one.cell, np.arange(count))
            pivots, size = step.block(n, self.system.pivots[one.number]).symbols, own.read(one.known["size"])
            least = ca.mmin(pivots / ca.densify(size + (size == 0)))
            block = step.block(1, self.outputs.index("independence"))
            block.written = ca.fmin(block.symbols, least)
            steps.append(step)
        return Stage(steps)

    def acceleration_gap(self, step: Step, own: View, one: ConnectionClass, views: list[View], rows: Rows) -> Matrix:
        """`J a0 - gamma`."""
        b = -rows.gamma
        for view, cls, at in zip(views, one.group.pieces, self.columns(one.group), strict=True):
            b = b + rows.J[:, at] @ view.read(self.pieces[cls].known["a"])
        return b

    def coupled(self) -> Stage:
        """The blocks of pairs of connections that share a piece."""
        pairs: dict[tuple[int, int, int, int], list[tuple[int, int]]] = {}
        for i, c, k, j, d, n in self._pairs():
            if not self.system.is_below(self.connected[c].number[i], self.connected[d].number[j]):
                i, c, k, j, d, n = j, d, n, i, c, k
            pairs.setdefault((c, k, d, n), []).append((i, j))
        steps = []
        for (c, k, d, n), members in pairs.items():
            one, other = self.connected[c], self.connected[d]
            first, second = np.array(members).T
            step = Step(len(members), np.zeros((len(members), 0)), _none())
            J = step.view(one.cell, first).read(one.J[k])
            Y = step.view(other.cell, second).read(other.Y[n])
            numbers = zip(one.number[first].tolist(), other.number[second].tolist(), strict=True)
            block = step.block(J.shape[0] * Y.shape[1], np.array([self.system.below[pair] for pair in numbers]))
            block.written = block.symbols + _dense(J @ Y)
            steps.append(step)
        return Stage(steps)

    def _pairs(self) -> list[tuple[int, int, int, int, int, int]]:
        """Pairs of connections that share a piece: member, class and place of the piece of each."""
        if self._shared is not None:
            return self._shared
        touching: dict[tuple[int, int], list[tuple[int, int, int]]] = {}
        for c, group in enumerate(self.connections):
            for k, cls in enumerate(group.pieces):
                for i, member in enumerate(group.members[:, k].tolist()):
                    touching.setdefault((cls, member), []).append((i, c, k))
        self._shared = [(*a, *b) for ends in touching.values() for n, a in enumerate(ends) for b in ends[:n]]
        return self._shared

    def sizes(self) -> list[int]:
        """How many rows every connection has."""
        return [len(group.kept) for group in self.connections for _ in range(group.count)]

    def touching(self) -> set[tuple[int, int]]:
        """Pairs of connections that share a piece, by number, the larger first."""
        first = np.cumsum([0, *(group.count for group in self.connections)]).tolist()
        pairs = ((first[c] + i, first[d] + j) for i, c, _, j, d, _ in self._pairs())
        return {(max(a, b), min(a, b)) for a, b in pairs}

    # Results.

    def pulled(self, *targets: Target) -> Stage:
        """What the connections do to the pieces: `sign sum_c Y_cp x_c` is added, x a column of the solution."""
        pull = []
        for one in self.connected:
            count, n = one.group.count, len(one.group.kept)
            step = Step(count, np.zeros((count, 0)), _none())
            step.order = -one.number if self.system.in_order else None
            own = step.view(one.cell, np.arange(count))
            Y = [own.read(Y_p) for Y_p in one.Y]
            views = [
                step.view(self.pieces[cls].cell, one.group.members[:, k]) for k, cls in enumerate(one.group.pieces)
            ]
            for to in targets:
                x = step.block(n, self.system.right[one.number] + to.column * self.system.stride).symbols
                for view, cls, Y_p in zip(views, one.group.pieces, Y, strict=True):
                    view.add(self.pieces[cls].known[to.name], to.sign * (Y_p @ x))
                if to.total is not None:
                    self.add(step, to.total, to.sign * dot(x, own.read(one.known[to.by])))
            pull.append(step)
        return Stage(pull)

    def _turns(self, cls: int, members: np.ndarray) -> np.ndarray | None:
        """Where pieces come in a stage so that it goes over them in step with `pulled`; None: as they are."""
        if not self.system.in_order:
            return None
        first = np.full(self.pieces[cls].count, len(self.system.right))
        for one in self.connected:
            for k, of in enumerate(one.group.pieces):
                if of == cls:
                    np.minimum.at(first, one.group.members[:, k], one.number)
        return -first[members]

    def multipliers(self) -> list[Stage]:
        """Write the multipliers of the rows in the tree's coordinates; those of rows not kept are zero."""
        number, nl = self.outputs.index("lam"), len(self.model.rows)
        zero = Step(nl, np.zeros((nl, 0)), _none())
        zero.output(number, type(_none()).zeros(1), np.arange(nl))
        steps = []
        for one in self.connected:
            if one.group.coordinates and one.group.joints:
                continue  # a joint of the tree between links by themselves
            step = Step(one.group.count, np.zeros((one.group.count, 0)), _none())
            lam = step.block(len(one.group.kept), self.system.right[one.number]).symbols
            for k in range(len(one.group.kept)):
                step.output(number, lam[k], one.group.rows[:, k])
            steps.append(step)
        return [Stage([zero] if nl else []), Stage(steps)]

    def loads(self) -> list[Stage]:
        """Wrenches of cut joints on their children, at M, and all that acts on the bodies beside the tree's joints."""
        steps = []
        for one in self.connected:
            group, kept = one.group, one.group.kept
            if (group.coordinates and group.joints) or group.template.couplings:
                continue  # joints of the tree, and what acts along them
            step = group.numbers.step()
            views, kin = self.seen(step, group)
            lam = step.block(len(kept), self.system.right[one.number]).symbols
            if group.joints:
                m = kin.measured(group.joints[0])
                wrench = joint_wrench(m, _spread(lam, kept, m.rows.T.shape[1]), None)
                step.output(self.outputs.index("cuts"), wrench, 6 * self._cut_numbers(group))
                on: tuple[tuple[int, Matrix], ...] = m.on_links(wrench)
            else:
                forces = elements.constraint_rows(kin, group.template.constraints[0], self.time(step)).forces
                on = tuple((i, -(F @ lam)) for i, F in forces)
            wrenches: dict[int, Matrix] = {}
            for i, w in on:
                wrenches[i] = wrenches[i] + w if i in wrenches else w
            self._load(group, views, wrenches)
            steps.append(step)
        return [*self._nothing("cuts", "wrenches"), Stage(steps), Stage([self._on_bodies(p) for p in self.pieces])]

    def _cut_numbers(self, group: Group) -> np.ndarray:
        return np.array([self.model.cuts.index(j) for j in group.owners[:, 0]])

    def _nothing(self, *names: str) -> list[Stage]:
        """Set outputs of rows of six to zero."""
        rows = {"cuts": len(self.model.cuts), "wrenches": self.model.nb}
        steps = []
        for name in names:
            if rows[name]:
                step = Step(rows[name], np.zeros((rows[name], 0)), _none())
                step.output(self.outputs.index(name), type(_none()).zeros(6), 6 * np.arange(rows[name]))
                steps.append(Stage([step]))
        return steps

    def _on_bodies(self, piece: PieceClass) -> Step:
        """The wrench on each link as one on the first of its bodies."""
        step, tree = piece.numbers.step(), piece.template.tree
        w = step.view(piece.cell, np.arange(piece.count)).read(piece.known["w"])
        for k in range(len(piece.kinds)):
            body = piece.bodies.index(k)
            to_link = fixed_transform(tree.body_pose[body]).inverse
            value = to_link.T @ w[6 * k : 6 * k + 6]
            step.output(self.outputs.index("wrenches"), value, 6 * piece.body_numbers[:, body])
        return step

    def give(self, names: Sequence[str], write: Callable[[Step, Any, np.ndarray, list[Matrix]], None]) -> Stage:
        """Hand what pieces keep under some names, as rates of the tree's joints, to `write`, joint by joint."""
        steps = []
        for joint in self.joints:
            if not joint.piece.kinds[0].nv:
                continue
            step = joint.piece.numbers.step(joint.members)
            own = step.view(joint.piece.cell, joint.members)
            above = None if joint.parent is None else step.view(joint.parent.cell, joint.parents)
            known = {k: own.read(x) for k, x in joint.known.items()}
            values = []
            for name in names:
                a, on = own.read(joint.piece.known[name]), None
                if joint.parent is not None and above is not None:
                    on = above.read(joint.parent.known[name])
                values.append(_joint_acceleration(joint, a, on, known, at_rest=name != "a"))
            write(step, joint.piece.kinds[0], joint.piece.links[joint.members, 0], values)
            steps.append(step)
        for cls, piece in enumerate(self.pieces if not self.bodies_apart else []):
            step = piece.numbers.step()
            step.order = self._turns(cls, np.arange(piece.count))
            view = step.view(piece.cell, np.arange(piece.count))
            whole = [view.read(piece.known[name]) for name in names]
            for k, link in enumerate(piece.template.tree.links):
                if link.kind.nv:
                    write(step, link.kind, piece.links[:, k], [segment(value, link.v) for value in whole])
            steps.append(step)
        return Stage(steps)

    def output(self, step: Step, port: str, links: np.ndarray, value: Matrix) -> None:
        """Write a joint's part of an output with an entry for each coordinate or rate."""
        tree = self.model.tree.links
        at = np.array([(tree[i].q if port in AS_Q else tree[i].v).start for i in links])
        step.output(self.outputs.index(port), value, at)

    # Sums over the mechanism.

    def add(self, step: Step, name: str, value: Matrix) -> None:
        """Add to a sum over all nodes."""
        block = step.block(1, self.outputs.index(name))
        block.written = block.symbols + value

    def largest(self, step: Step, name: str, values: Matrix) -> None:
        """Let a number be the largest magnitude of all nodes."""
        import casadi as ca

        block = step.block(1, self.outputs.index(name))
        block.written = ca.fmax(block.symbols, ca.norm_inf(ca.densify(values)))

    def clear(self, *names: str) -> Stage:
        """Set sums to zero, and the independence to what is larger than any."""
        step = Step(1, np.zeros((1, 0)), _none())
        for name in names:
            start = LARGEST if name == "independence" else 0.0
            step.block(1, self.outputs.index(name)).written = type(_none())([start])
        return Stage([step] if names else [])

    def told(self, *names: str) -> Stage:
        """Write sums to the outputs."""
        step = Step(1, np.zeros((1, 0)), _none())
        for name in names:
            number = self.outputs.index(name)
            step.output(number, step.block(1, number).symbols, 0)
        return Stage([step] if names else [])


def normalised(kind: Kind, q: Matrix) -> Matrix:
    """A joint's coordinates with its quaternion, if it has one, brought to unit length."""
    import casadi as ca

    if kind.nq == kind.nv:
        return q
    e = q[kind.nq - 4 : kind.nq]
    return ca.vertcat(q[: kind.nq - 4], e / ca.norm_2(e))


AS_Q = ("q", "qdot", "eq", "new_q", "new_eq")  # ports with an entry for each coordinate, not for each rate


class _Seen:
    """A link whose attributes are read when they are asked for."""

    def __init__(self, view: View, values: dict[str, Any], kind: Any) -> None:
        self._view, self._values, self.kind = view, values, kind

    def __getattr__(self, name: str) -> Any:
        found = self._view.read(self._values[name])
        setattr(self, name, found)
        return found


class _Groups:
    """Things that belong together."""

    def __init__(self) -> None:
        self.above: dict[Any, Any] = {}

    def find(self, x: Any) -> Any:
        """Who stands for all that belong with x."""
        while self.above.get(x, x) != x:
            x = self.above[x]
        return x

    def join(self, x: Any, y: Any) -> None:
        """Let two belong together."""
        self.above[self.find(x)] = self.find(y)


def _joint_acceleration(
    joint: JointClass, a: Matrix, above: Matrix | None, known: dict[str, Any] | None = None, at_rest: bool = False
) -> Matrix:
    """Acceleration of a joint's coordinates from those of its link and of the link above it."""
    known = joint.known if known is None else known
    rest = a if at_rest else a - known["c"]
    if above is not None:
        rest = rest - known["X"] @ above
    return dual(known["S"]).T @ rest


def _ground(like: Matrix) -> Any:
    return SimpleNamespace(R=eye(3, like), r0=zeros(3, None, like), v=zeros(6, None, like), a=zeros(6, None, like))


def _entries(value: Matrix) -> list[Any]:
    import casadi as ca

    return ca.densify(value).nonzeros()


def _literal(e: Any) -> float | None:
    return float(e) if e.is_constant() and float(e) in (0.0, 1.0, -1.0) else None


def _with_symbols(literals: dict[str, list[float | None]]) -> dict[str, Any]:
    import casadi as ca

    return {
        name: ca.sparsify(
            ca.reshape(ca.vertcat(*(ca.SX.sym("x") if x is None else ca.SX(x) for x in literals[name])), *shape)
        )
        for name, shape in LIFTED.items()
    }


def _pattern(row: Matrix) -> np.ndarray:
    """Which entries of a row or column are structurally there."""
    found = np.zeros(row.numel(), dtype=bool)
    found[[i + j * row.shape[0] for i, j in zip(*row.sparsity().get_triplet(), strict=True)]] = True
    return found


def _diagonal(M: Matrix) -> Matrix:
    import casadi as ca

    return ca.diag(M)


def _sizes(A: Matrix, units: Sequence[str]) -> Matrix:
    """For each row of a connection the largest entry of its block's diagonal of the same unit: a row may vanish."""
    import casadi as ca

    d = ca.densify(_diagonal(A))
    return ca.vertcat(*(ca.mmax(d[[k for k, other in enumerate(units) if other == unit]]) for unit in units))


def _stack(parts: Sequence[Matrix]) -> Matrix:
    import casadi as ca

    return ca.vertcat(*parts)


def _spread(lam: Matrix, kept: Sequence[int], count: int) -> Matrix:
    """Multipliers of all rows of a joint, zero for those not kept."""
    every = type(lam)(count, 1)
    for k, row in enumerate(kept):
        every[row] = lam[k]
    return every


def _dense(value: Matrix) -> Matrix:
    import casadi as ca

    return ca.densify(ca.vec(value))


def _none() -> Matrix:
    import casadi as ca

    return ca.SX(0, 1)
