"""Equations of motion of a large mechanism, piece by piece and connection by connection.

    M_p a_p + sum_c J_cp^T lam_c = f_p   for every piece p        sum_p J_cp a_p = gamma_c   for every connection c

so that with `Y_cp = M_p^-1 J_cp^T` and `a0_p = M_p^-1 f_p`

    A lam = J a0 - gamma      A_cd = sum_p J_cp Y_dp      a_p = a0_p - sum_c Y_cp lam_c

`A` is a sparse matrix of small blocks, two of which touch where connections share a piece. The equations of a piece and
the rows of a connection come from the formulation's own text, recorded with the template of each class.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np

from cardan.algebra.linsolve import tree_factor, tree_solve
from cardan.algebra.matrix import Matrix, eye, mirrored, segment, zeros
from cardan.formulation.elements import Loads, loads_at, on_links
from cardan.formulation.formulation import Formulation
from cardan.formulation.kinematics import Kinematics
from cardan.formulation.large.division import (
    Division,
    Group,
    Item,
    PieceClass,
    constraint_rows,
    coupling_rows,
    force_element,
    joint_rows,
)
from cardan.formulation.large.steps import Cell, Stage, Step, View
from cardan.formulation.recursion import Nodes
from cardan.formulation.rows import LinkRows, Rows
from cardan.formulation.spatial import SPATIAL
from cardan.formulation.tree import stacked_drives, with_cut_drives
from cardan.model.model import Model
from cardan.model.tree import GROUND

MOVING = ("X", "S", "R", "r0", "v", "c", "a")  # of a link, as later steps see it


@dataclass
class Ports:
    """Numbers of the input and output ports by name."""

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]

    def has(self, name: str) -> bool:
        """Whether there is such an input."""
        return name in self.inputs


@dataclass
class ConnectionClass:
    """Connections of one class, recorded: their cell, and what they keep for each of their pieces."""

    group: Group
    cell: Cell
    number: np.ndarray
    """Of each member among all connections: its block row."""
    J: list[Any]
    Y: list[Any]
    known: dict[str, Any]


class LargeMechanics:
    """The stages of a program for a large mechanism, in the tree's own coordinates."""

    def __init__(self, model: Model, kept: Sequence[int], ports: Ports, formulation: Formulation = SPATIAL) -> None:
        """`model` has its free parameters as free numbers; `kept` are the constraint rows that are solved with."""
        self.model, self.ports, self.formulation = model, ports, formulation
        self.division = Division(model, bodies_apart=False)
        self.pieces = self.division.pieces
        self.connections = self.division.groups(rows_of(self.division, kept))
        self.elements = self.division.groups([force_element(self.division, k) for k in range(len(model.forces))])
        self.cells: list[Cell] = [piece.cell for piece in self.pieces]
        self.cells += [n.free for n in self._numbers if n.free is not None]

    @property
    def _numbers(self) -> list[Any]:
        return [x.numbers for x in (*self.pieces, *self.connections, *self.elements)]

    def time(self, step: Step) -> Matrix:
        """Time, zero where it is not an input."""
        import casadi as ca

        return step.input(self.ports.inputs.index("t"), 1, 0) if self.ports.has("t") else ca.SX(1, 1)

    def _own(self, step: Step, piece: PieceClass, port: str) -> Matrix:
        """The part of an input that belongs to a piece's links: `q`, or one for each rate."""
        import casadi as ca

        if not self.ports.has(port):
            return ca.SX(piece.template.nq if port == "q" else piece.template.nv, 1)
        number, links = self.ports.inputs.index(port), self.model.tree.links
        parts = []
        for k, kind in enumerate(piece.kinds):
            n = kind.nq if port == "q" else kind.nv
            at = [(links[i].q if port == "q" else links[i].v).start for i in piece.links[:, k]]
            parts += [step.input(number, n, np.array(at))] if n else []
        return ca.vertcat(ca.SX(0, 1), *parts)

    def _wrenches(self, step: Step, piece: PieceClass) -> Matrix:
        import casadi as ca

        if not self.ports.has("wrenches"):
            return ca.SX(len(piece.bodies), 6)
        number = self.ports.inputs.index("wrenches")
        rows = [step.input(number, 6, 6 * piece.body_numbers[:, k]).T for k in range(len(piece.bodies))]
        return ca.vertcat(ca.SX(0, 6), *rows)

    def parameters(self) -> list[Stage]:
        """What follows from the free parameters, for every member of every class that has free numbers."""
        import casadi as ca

        if not self.ports.has("p"):
            return []
        raise NotImplementedError(ca)

    def motion(self) -> Stage:
        """Where the links of every piece are and how they move; mass matrix, factored, and force."""
        return Stage([self._motion(piece) for piece in self.pieces])

    def _motion(self, piece: PieceClass) -> Step:
        step, T = piece.numbers.step(piece.count), piece.template
        q, v = self._own(step, piece, "q"), self._own(step, piece, "v")
        kin = self.formulation.kinematics_of_tree(T, q, v)
        tau, wrenches = self._own(step, piece, "tau"), self._wrenches(step, piece)
        parts = self.formulation.equations(T, kin, loads_at(kin, tau, wrenches, self.time(step)))
        own, known = step.view(piece.cell, np.arange(piece.count)), piece.known
        nodes = [{name: getattr(b, name) for name in MOVING} for b in kin.nodes.links]
        known["nodes"] = [{name: own.keep(x) for name, x in b.items()} for b in nodes]
        known["q"], known["v"] = own.keep(q), own.keep(v)
        above = T.tree.coordinate_ancestor()
        factor = tree_factor(parts.M, above)
        known["factor"] = own.keep(factor)
        if self.elements:
            known["f"] = own.room(parts.f)
        else:
            known["a0"] = own.keep(tree_solve(factor, above, parts.f))
        return step

    def forces(self) -> list[Stage]:
        """What force elements add; then the accelerations of the pieces as if nothing connected them."""
        if not self.elements:
            return []
        return [Stage([self._force(group) for group in self.elements]), Stage([self._free(p) for p in self.pieces])]

    def _force(self, group: Group) -> Step:
        step, T = group.numbers.step(group.count), group.template
        views, kin = self._seen(step, group)
        none = type(kin.q)
        loads = loads_at(kin, none(T.nv, 1), none(T.nb, 6), self.time(step))
        f = stacked_drives(T, loads.tau, kin.q) + self._work(kin, with_cut_drives(T, kin, loads))
        for view, cls, at in zip(views, group.pieces, self._columns(group), strict=True):
            view.add(self.pieces[cls].known["f"], segment(f, at))
        return step

    def _work(self, kin: Kinematics, wrenches: Matrix) -> Matrix:
        """Force (nv,) of wrenches on bodies along the rates."""
        forces = tuple(enumerate(on_links(kin.model, wrenches)))
        none = type(wrenches)(1, 1)
        return self.formulation.work(kin, LinkRows((), forces, none, none, none, internal=False)).T

    def _free(self, piece: PieceClass) -> Step:
        step = piece.numbers.step(piece.count)
        own, known = step.view(piece.cell, np.arange(piece.count)), piece.known
        known["a0"] = own.keep(self._solved(piece, own, own.read(known["f"])))
        return step

    def _solved(self, piece: PieceClass, own: View, b: Matrix) -> Matrix:
        """`M^-1 b` of a piece."""
        return tree_solve(own.read(piece.known["factor"]), piece.template.tree.coordinate_ancestor(), b)

    def _seen(self, step: Step, group: Group) -> tuple[list[View], Kinematics]:
        """The pieces that a connection or element concerns, and the motion of their links."""
        import casadi as ca

        views, links, q, v = [], [], [], []
        for k, cls in enumerate(group.pieces):
            piece = self.pieces[cls]
            view = step.view(piece.cell, group.members[:, k])
            views.append(view)
            for b, kind in zip(piece.known["nodes"], piece.kinds, strict=True):
                links.append(_Lazy(view, {**b, "kind": kind}))
            q.append(view.read(piece.known["q"]))
            v.append(view.read(piece.known["v"]))
        none = ca.SX(0, 1)
        ground = SimpleNamespace(
            R=eye(3, none), r0=zeros(3, None, none), v=zeros(6, None, none), a=zeros(6, None, none)
        )
        q, v = ca.vertcat(none, *q), ca.vertcat(none, *v)
        return views, Kinematics(group.template, Nodes(links, [], ground), q, v)

    def _columns(self, group: Group) -> list[slice]:
        """Which of a template's rates belong to each piece."""
        ends = np.cumsum([0, *(self.pieces[cls].template.nv for cls in group.pieces)])
        return [slice(int(a), int(b)) for a, b in zip(ends, ends[1:], strict=False)]

    def rows(self, system: Any) -> Stage:
        """The rows of every connection, and what of the system of equations it makes alone."""
        self.connected: list[ConnectionClass] = []
        number, steps = 0, []
        for group in self.connections:
            numbers = number + np.arange(group.count)
            number += group.count
            step = group.numbers.step(group.count)
            views, kin = self._seen(step, group)
            T, t = group.template, self.time(step)
            rows: Rows = self.formulation.constraint_rows(kin, Loads({}, T, t), group.joints, T.nv)
            rows = rows.kept(group.kept)
            cell = Cell(group.count)
            self.cells.append(cell)
            own = step.view(cell, np.arange(group.count))
            A: Matrix = 0
            b = -rows.gamma
            J, Y = [], []
            for view, cls, at in zip(views, group.pieces, self._columns(group), strict=True):
                piece = self.pieces[cls]
                J_p = rows.J[:, at]
                Y_p = self._solved(piece, view, J_p.T)
                A, b = A + J_p @ Y_p, b + J_p @ view.read(piece.known["a0"])
                J.append(own.keep(J_p))
                Y.append(own.keep(Y_p))
            known = {name: own.keep(getattr(rows, name)) for name in ("phi", "beta")}
            step.block(A.numel(), system.diagonal[numbers]).written = _dense(mirrored(A))
            step.block(b.numel(), system.right[numbers]).written = _dense(b)
            self.connected.append(ConnectionClass(group, cell, numbers, J, Y, known))
            steps.append(step)
        return Stage(steps)

    def coupled(self, system: Any) -> Stage:
        """The blocks of pairs of connections that share a piece."""
        pairs: dict[tuple[int, int, int, int], list[tuple[int, int, int]]] = {}
        for i, c, k, j, d, l in self._pairs():
            a, b = self.connected[c].number[i], self.connected[d].number[j]
            if a < b:
                i, c, k, j, d, l = j, d, l, i, c, k
            pairs.setdefault((c, k, d, l), []).append((i, j, 0))
        steps = []
        for (c, k, d, l), members in pairs.items():
            one, other = self.connected[c], self.connected[d]
            first, second = (np.array([m[n] for m in members]) for n in (0, 1))
            step = Step(len(members), np.zeros((len(members), 0)), _none())
            J = step.view(one.cell, first).read(one.J[k])
            Y = step.view(other.cell, second).read(other.Y[l])
            at = [system.below[int(a), int(b)] for a, b in zip(one.number[first], other.number[second], strict=True)]
            block = step.block(J.shape[0] * Y.shape[1], np.array(at))
            block.written = block.symbols + _dense(J @ Y)
            steps.append(step)
        return Stage(steps)

    def _pairs(self) -> Sequence[tuple[int, int, int, int, int, int]]:
        """Pairs of connections that share a piece: member, class and place of the piece of each."""
        touching: dict[tuple[int, int], list[tuple[int, int, int]]] = {}
        for c, group in enumerate(self.connections):
            for k, cls in enumerate(group.pieces):
                for i, member in enumerate(group.members[:, k]):
                    touching.setdefault((cls, int(member)), []).append((i, c, k))
        return [(*a, *b) for ends in touching.values() for n, a in enumerate(ends) for b in ends[:n]]

    def sizes(self) -> list[int]:
        """How many rows every connection has."""
        return [len(group.kept) for group in self.connections for _ in range(group.count)]

    def touching(self) -> set[tuple[int, int]]:
        """Pairs of connections that share a piece, by number, the larger first."""
        first = np.cumsum([0, *(group.count for group in self.connections)])
        pairs = ((int(first[c]) + i, int(first[d]) + j) for i, c, _, j, d, _ in self._pairs())
        return {(max(a, b), min(a, b)) for a, b in pairs}

    def accelerations(self, system: Any) -> list[Stage]:
        """What the connections do to the pieces, and the result."""
        start, pull, give = [], [], []
        for piece in self.pieces:
            step = piece.numbers.step(piece.count)
            own = step.view(piece.cell, np.arange(piece.count))
            piece.known["a"] = own.room(own.read(piece.known["a0"]))
            start.append(step)
        for one in self.connected:
            step = Step(one.group.count, np.zeros((one.group.count, 0)), _none())
            own = step.view(one.cell, np.arange(one.group.count))
            lam = step.block(len(one.group.kept), system.right[one.number]).symbols
            for k, cls in enumerate(one.group.pieces):
                view = step.view(self.pieces[cls].cell, one.group.members[:, k])
                view.add(self.pieces[cls].known["a"], -(own.read(one.Y[k]) @ lam))
            pull.append(step)
        for piece in self.pieces:
            step = piece.numbers.step(piece.count)
            own = step.view(piece.cell, np.arange(piece.count))
            self.give(step, piece, "a", own.read(piece.known["a"]))
            give.append(step)
        return [Stage(start), Stage(pull), Stage(give)]

    def give(self, step: Step, piece: PieceClass, port: str, value: Matrix) -> None:
        """Write an output with an entry for each rate."""
        links, number = self.model.tree.links, self.ports.outputs.index(port)
        for k, own in enumerate(piece.template.tree.links):
            if own.kind.nv:
                at = np.array([links[i].v.start for i in piece.links[:, k]])
                step.output(number, segment(value, own.v), at)


class _Lazy:
    """A link whose attributes are read when they are asked for."""

    def __init__(self, view: View, values: dict[str, Any]) -> None:
        self._view, self._values = view, values

    def __getattr__(self, name: str) -> Any:
        value = self._values[name]
        found = value if name == "kind" else self._view.read(value)
        setattr(self, name, found)
        return found


def _dense(value: Matrix) -> Matrix:
    import casadi as ca

    return ca.densify(ca.vec(value))


def _none() -> Matrix:
    import casadi as ca

    return ca.SX(0, 1)


def rows_of(division: Division, kept: Sequence[int]) -> list[Item]:
    """All that makes constraint rows in the tree's coordinates, with those that are kept."""
    model, held, first, items = division.model, set(kept), 0, []
    owners: list[tuple[Callable[[], Item], int]] = [
        *((lambda j=j: joint_rows(division, j), model.joints[j].kind.freedoms_removed) for j in model.cuts),
        *((lambda k=k: coupling_rows(division, k), 1) for k in range(len(model.couplings))),
        *((lambda k=k: constraint_rows(division, k), 1) for k in range(len(model.constraints))),
    ]
    for make, count in owners:
        own = tuple(k for k in range(count) if first + k in held)
        if own:
            items.append(make().keeping(own, first))
        first += count
    return items


__all__ = ["GROUND", "LargeMechanics", "Ports", "rows_of"]
