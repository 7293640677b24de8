"""Components of a large mechanism (`formulation.division`) as nodes of a program: pieces, and what connects them.

A piece is a subtree on the ground, in the tree's own coordinates; where subtrees are large it is a single link, with
six rates of its own. A connection is what makes constraint rows: a joint between pieces, a coupling, a constraint of
the user. An element is a force element. Each class has a template: a small `Model` of the pieces that are concerned.
Graphs are recorded with it by the same text that records a whole mechanism.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from cardan.formulation.division import ComponentClass, Division, Member, RowPlaces, Tables, subtrees
from cardan.formulation.large.steps import Cell, Step
from cardan.formulation.spatial import SPATIAL
from cardan.model.joint import FREE, Kind
from cardan.model.memory import Slot
from cardan.model.model import Model
from cardan.model.tree import GROUND

MOST_LINKS = 8  # of a subtree that is one piece


def _posed(q: Any) -> Any:
    """Ground components to those of a link whose axes are the first nine numbers, by columns."""
    return q[:9].reshape((3, 3)).T


# A link by itself: its coordinates are its axes and origin in ground components, its rates are its twist.
POSED = replace(
    FREE, name="posed", nq=12, neutral=(1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0), E=_posed,
    r=lambda q: q[9:12], q_units=("1",) * 9 + ("m",) * 3, letters=(("x", "coordinate"),) * 12,
)  # fmt: skip


class Numbers:
    """The numbers of the members of a class that differ: constants (count, k) of each member, and free ones.

    Free numbers follow from the free parameters; `free` is their cell, None without any, and `expressions` has a column
    for each member. `symbols` stand for all numbers that differ.
    """

    def __init__(self, cls: ComponentClass) -> None:
        import casadi as ca

        is_free = np.zeros(cls.numbers.shape[1], dtype=bool)
        is_free[[k for _, k, _ in cls.free]] = True
        self.constants = np.ascontiguousarray(cls.numbers[:, ~is_free])
        self.C = ca.SX.sym("C", self.constants.shape[1])
        self.free = Cell(len(cls)) if is_free.any() else None
        graphs: list[list[Any]] = [[] for _ in range(len(cls))]
        for member, _, graph in cls.free:
            graphs[member].append(graph)
        self.expressions = [ca.vertcat(*each) for each in graphs] if self.free else []
        constants = iter(range(self.C.numel()))
        self.symbols = [
            self.free.symbols[self.free.place()] if self.free and free else self.C[next(constants)] for free in is_free
        ]

    def step(self, members: np.ndarray | None = None) -> Step:
        """A step for some members, all if not said, which reads their numbers."""
        members = np.arange(len(self.constants)) if members is None else members
        step = Step(len(members), self.constants, self.C, members=members)
        if self.free is not None:
            view = step.view(self.free, members)
            view.seen = dict(enumerate(self.free.symbols))
        return step


@dataclass(eq=False)
class PieceClass:
    """Pieces of one structure; `links` (count, n) are the numbers of their links, parents first."""

    kinds: tuple[Kind, ...]
    bodies: tuple[int, ...]
    """The link, within the piece, of each body."""
    links: np.ndarray
    body_numbers: np.ndarray
    numbers: Numbers
    template: Model
    cell: Cell
    placement: tuple[np.ndarray, np.ndarray]
    """`E`, `r` of the first link's joint, which a template of a single link leaves out."""
    known: dict[str, Any] = field(default_factory=dict)
    """What steps have kept."""

    @property
    def count(self) -> int:
        """How many pieces."""
        return len(self.links)


@dataclass(eq=False)
class Group:
    """Connections or elements of one structure: the pieces they concern, and a template of these.

    `pieces` are the numbers of the classes, `members` (count, len(pieces)) which piece of each; `owners` (count, .) are
    the model's joints that are measured. `joints` are those of the template that make rows, `kept` the numbers of the
    rows kept among its own, and `rows` (count, len(kept)) their numbers among those of the mechanism.
    """

    pieces: tuple[int, ...]
    members: np.ndarray
    owners: np.ndarray
    numbers: Numbers
    template: Model
    joints: tuple[int, ...]
    kept: tuple[int, ...]
    rows: np.ndarray
    coordinates: tuple[int, ...]
    """Joints of the template whose coordinates are among those of the tree."""
    links: np.ndarray
    """The links (count, len(coordinates)) whose coordinates these are."""
    first: np.ndarray
    """The number (count,) of each one's first row, kept or not, among those of the mechanism."""

    @property
    def count(self) -> int:
        """How many."""
        return len(self.members)


class _Pieces:
    """Classes of the pieces of a model, and where every link is: its class, the piece, and the links of the piece.

    With `bodies_apart` every link is a piece.
    """

    def __init__(self, model: Model, bodies_apart: bool) -> None:
        tree, self.tables = model.tree, Tables(model, at_centres=False)
        pieces = [(i,) for i in range(len(tree.links))] if bodies_apart else [tuple(x) for x in subtrees(tree)]
        of = {i: piece for piece in pieces for i in piece}
        self.piece_of = [of[i] for i in range(len(tree.links))]
        bodies: list[list[int]] = [[] for _ in tree.links]
        for b, i in enumerate(tree.body_link):
            if i != GROUND:
                bodies[i].append(b)
        division = Division(model, not bodies_apart, RowPlaces({}, [], {}, {}), self.tables, self.piece_of)
        members = [division.piece(piece, bodies=[b for i in piece for b in bodies[i]]) for piece in pieces]
        self.classes = division.classes(members)
        self.cls, self.member = np.zeros((2, len(tree.links)), dtype=int)
        for k, found in enumerate(self.classes):
            self.cls[found.links], self.member[found.links] = k, np.arange(len(found))[:, None]


_PIECES: Slot[bool, _Pieces] = Slot("pieces of a large mechanism, by whether links are apart")


class Pieces:
    """Pieces, connections and elements of a model with templates and memory of their own, for one program.

    `model` may have free numbers; with `bodies_apart` every link is a piece. `kept` are the constraint rows, in the
    tree's coordinates, that are solved with.
    """

    def __init__(self, model: Model, bodies_apart: bool, kept: Sequence[int]) -> None:
        self.model, self.bodies_apart = model, bodies_apart
        found = _PIECES.find(model, bodies_apart, lambda: _Pieces(model, bodies_apart))
        self.cls, self.member = found.cls, found.member
        rows = RowPlaces.of(model, SPATIAL, kept)
        self.division = Division(model, not bodies_apart, rows, found.tables, found.piece_of)
        self.pieces = [self._piece(cls) for cls in found.classes]

    def _piece(self, cls: ComponentClass) -> PieceClass:
        numbers, outline = Numbers(cls), cls.outline
        template = cls.written(numbers.symbols)
        placement = template.tree.links[0].E, template.tree.links[0].r
        kinds = tuple(of.kind for of in outline.links)
        return PieceClass(
            kinds, outline.bodies, cls.links, cls.bodies, numbers, self._template(template), Cell(len(cls)), placement
        )  # fmt: skip

    def _template(self, component: Model) -> Model:
        """A component as a model whose links are pieces by themselves, if they are; its joints are then measured."""
        tree, cuts = component.tree, component.cuts
        if self.bodies_apart:
            links = tuple(
                replace(
                    link, parent=GROUND, joint=-1, kind=POSED, E=np.eye(3), r=np.zeros(3),
                    q=slice(12 * k, 12 * k + 12), v=slice(6 * k, 6 * k + 6),
                )
                for k, link in enumerate(tree.links)
            )  # fmt: skip
            tree, cuts = (
                replace(tree, links=links, nq=12 * len(links), nv=6 * len(links)),
                (*range(len(component.joints)),),
            )
        tree = replace(tree)
        tree.__dict__.update(mobility=({}, 1.0), moves_inertia=True)  # judged with the whole mechanism
        found = replace(component, tree=tree, cuts=cuts)
        found.__dict__["separate"] = found  # whose links are those of the whole mechanism
        return found

    # Connections and elements.

    def connections(self, with_tree: bool) -> list[Member]:
        """All that makes constraint rows; `with_tree`, of links by themselves also the joints of the tree."""
        model, make = self.model, self.division
        carrying = [link.joint for link in model.tree.links if link.kind.freedoms_removed]
        joints = [*(carrying if self.bodies_apart and with_tree else ()), *model.cuts]
        return [
            *map(make.joint, joints),
            *map(make.coupling, range(len(model.couplings))),
            *map(make.constraint, range(len(model.constraints))),
        ]

    def elements(self) -> list[Group]:
        """All force elements."""
        return self.groups([self.division.force(force) for force in self.model.forces])

    def drives(self) -> list[Group]:
        """Joints of the tree between links by themselves, along which drives act."""
        moving = [link.joint for link in self.model.tree.links if link.kind.nv]
        return self.groups([self.division.joint(j) for j in moving])

    def groups(self, members: Sequence[Member]) -> list[Group]:
        """Sort connections or elements into classes, whose pieces are of the same classes too."""
        of = self.cls.tolist()
        return [self._group(cls) for cls in self.division.classes(members, lambda c: tuple(of[i] for i in c.links))]

    def _group(self, cls: ComponentClass) -> Group:
        numbers, outline, at, pieces, members = Numbers(cls), cls.outline, 0, [], []
        while at < cls.links.shape[1]:
            pieces.append(int(self.cls[cls.links[0, at]]))
            members.append(self.member[cls.links[:, at]])
            at += len(self.pieces[pieces[-1]].kinds)
        measured = range(len(outline.joints)) if self.bodies_apart else outline.cuts
        given = [k for k in measured if k not in outline.cuts]
        links = [[self.division.link_of_joint[j] for j in row] for row in cls.joints[:, given].tolist()]
        return Group(
            tuple(pieces),
            np.stack(members, axis=1) if members else np.zeros((len(cls), 0), dtype=int),
            cls.joints,
            numbers,
            self._template(cls.written(numbers.symbols)),
            () if outline.couplings else tuple(measured),
            outline.rows,
            cls.first[:, None] + np.array(outline.rows, dtype=int),
            tuple(given),
            np.array(links, dtype=int).reshape(len(cls), -1),
            cls.first,
        )
