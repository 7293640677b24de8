"""A large mechanism divided into components of equal structure, each of which is a small model.

`M vdot + J^T lam - f`, `J v - beta` and `phi` are sums over links, joints, force elements, couplings and constraints.
Each of these is a component: a small model with the links that it touches and nothing else. Only the components that
are links, or pieces of the tree, have mass; the others have what acts between them.

    six rates a link      a component for each link, for each joint (rows, drive, armature, forces along it), for each
                          force element between bodies, coupling and constraint
    the tree's rates      a component for each piece, a subtree that is attached to the ground; for each cut joint,
                          force element, coupling and constraint, with the links that they need

Components of equal structure are a class. Its numbers (lengths, frames, inertias, stiffnesses) are a table with a row
for each member. Numbers that are the same for all members are constants of the class; the others are symbols of one
`Model`, on which the text of a formulation writes its equations once. So recording takes as long for three bodies as
for a hundred thousand.

Two users add components up. `structure.component_sums` writes each one's equations on their own and adds vectors and
sparse matrices: there a component without mass has the links on the way to the ground. `formulation.large` loops over
components in one program: there the motion of the links is known when a component without mass is evaluated, so that it
has the links of whole pieces, without numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from cardan.algebra.free_number import FreeNumber, nominal
from cardan.formulation.formulation import Formulation
from cardan.model.body import Body, Joint
from cardan.model.constraint import Constraint
from cardan.model.force import Coupling, Force
from cardan.model.graph_digest import graph_digest
from cardan.model.joint import RIGID, Kind
from cardan.model.model import Model
from cardan.model.parameter import ENTRIES
from cardan.model.pose import Pose
from cardan.model.tree import GROUND, Link, Tree

# Beyond this many classes of one structure, or for so few components, zeros and ones are numbers like others.
MANY_CLASSES, FEW = 6, 8
LINK, FRAME = 22, 12  # numbers of a link (mass, com, I_C, E, r) and of a frame (position, rotation)
STILL = np.array([0.0] * 10 + [1.0, 0, 0, 0, 1.0, 0, 0, 0, 1.0] + [0.0] * 3)  # of a link that has none of its own
HERE = np.array([0.0] * 3 + [1.0, 0, 0, 0, 1.0, 0, 0, 0, 1.0])  # of a frame that is the link's own


@dataclass(frozen=True)
class LinkOutline:
    """A link of a component: its parent there (-1 is the ground), the joint that carries it, if that is there too."""

    parent: int
    kind: Kind
    joint: int
    has_armature: bool


@dataclass(frozen=True)
class JointOutline:
    """A joint of a component, between bodies of it; `frames` says whether it is measured between its two frames."""

    kind: Kind
    parent: int
    child: int
    frames: bool


@dataclass(frozen=True)
class Outline:
    """What all members of a class of components have in common, but for their numbers.

    `bodies` has the link of each body. `rows` are the numbers, among the component's own rows, of those kept;
    `positions` those of them at position level; a formulation writes `before` others before them. `driven` says whether
    the drives of its joints belong to it, `has_mass` whether its links are its own.
    """

    links: tuple[LinkOutline, ...]
    bodies: tuple[int, ...] = ()
    joints: tuple[JointOutline, ...] = ()
    cuts: tuple[int, ...] = ()
    forces: tuple[Force, ...] = ()
    couplings: tuple[Coupling, ...] = ()
    constraints: tuple[Constraint, ...] = ()
    rows: tuple[int, ...] = ()
    positions: tuple[int, ...] = ()
    before: int = 0
    driven: bool = False
    has_mass: bool = False

    @property
    def nq(self) -> int:
        """Number of coordinates of the joints that carry its links."""
        return sum(link.kind.nq for link in self.links)

    def model(self, numbers: np.ndarray) -> Model:
        """The component as a model with these numbers, floats or `FreeNumber`s, in the order of `Division._numbers`."""
        read = _Reader(numbers)
        gravity = read(3)
        links, nq, nv = [], 0, 0
        for i, of in enumerate(self.links):
            mass, com, inertia, E, r = read(1)[0], read(3), read(6), read(9).reshape(3, 3), read(3)
            armature = read(of.kind.nv) if of.has_armature else None
            own = slice(nq, nq + of.kind.nq), slice(nv, nv + of.kind.nv)
            links.append(Link(f"{i}", of.parent, of.joint, of.kind, E, r, mass, com, _square(inertia), *own, armature))
            nq, nv = nq + of.kind.nq, nv + of.kind.nv
        poses = tuple(_pose(read(FRAME)) for _ in self.bodies)
        joints = []
        for j, at in enumerate(self.joints):
            frames = (_pose(read(FRAME)), _pose(read(FRAME))) if at.frames else (Pose(), Pose())
            joints.append(Joint(f"{j}", at.kind, at.parent, at.child, *frames))
        forces = tuple(_with_numbers(force, read) for force in self.forces)
        couplings = tuple(_coupling_with_numbers(coupling, read) for coupling in self.couplings)
        constraints = tuple(_constraint_with_numbers(constraint, read) for constraint in self.constraints)
        bodies = tuple(Body(f"{b}", 1.0, np.zeros(3), np.eye(3)) for b in range(len(self.bodies)))
        tree = Tree(tuple(links), self.bodies, poses, nq, nv)
        model = Model(
            "component", gravity, bodies, tuple(joints), (), tree, self.cuts, forces=forces, couplings=couplings,
            constraints=constraints,
        )  # fmt: skip
        model.__dict__["separate"] = model
        return model


@dataclass(frozen=True)
class ComponentClass:
    """Components of one outline, m of them, with their numbers and their places in the whole.

    `values` (n,) are the numbers that all members share, NaN where they differ; `numbers` (m, k) are those that differ.
    `links`, `joints` (m, .) are the model's, those joints that are measured between two frames; `bodies` (m, .) too, -1
    for what stands for a link. `q`, `v` (m, .) are places among the coordinates and rates, `x`, `tau` (m, .) among
    those of the tree, `rows`, `positions` (m, .) among the rows kept and among those of them at position level; `first`
    (m,) is the number of the first row of each among all rows. `free` are the places in `numbers` that depend on free
    parameters, and their expressions.
    """

    outline: Outline
    values: np.ndarray
    numbers: np.ndarray
    links: np.ndarray
    bodies: np.ndarray
    joints: np.ndarray
    q: np.ndarray
    v: np.ndarray
    x: np.ndarray
    tau: np.ndarray
    rows: np.ndarray
    positions: np.ndarray
    first: np.ndarray
    free: tuple[tuple[int, int, Any], ...] = field(default=(), repr=False)

    def __len__(self) -> int:
        """How many members."""
        return len(self.links)

    @property
    def key(self) -> str:
        """All that its graphs depend on."""
        return f"{_outline_key(self.outline)} {self.values.tolist()}"

    def written(self, symbols: Any) -> Model:
        """The model to write graphs with; `symbols` [k] stand for the numbers that differ."""
        entries = np.array(self.values, dtype=object)
        for k, at in enumerate(np.flatnonzero(np.isnan(self.values))):
            entries[at] = FreeNumber(symbols[k], float(self.numbers[0, k]))
        return self.outline.model(entries)


class _Reader:
    """Takes numbers one after the other."""

    def __init__(self, numbers: np.ndarray) -> None:
        self.numbers, self.at = numbers, 0

    def __call__(self, n: int) -> np.ndarray:
        self.at += n
        taken = self.numbers[self.at - n : self.at]
        return taken if any(isinstance(x, FreeNumber) for x in taken) else taken.astype(float)


def _square(entries: np.ndarray) -> np.ndarray:
    I = np.empty((3, 3), dtype=entries.dtype)
    I[ENTRIES] = I[ENTRIES[1], ENTRIES[0]] = entries
    return I


def _pose(numbers: np.ndarray) -> Pose:
    return Pose(numbers[:3], numbers[3:].reshape(3, 3))


def _with_numbers(element: Any, read: _Reader) -> Any:
    """A force element, or a constraint element, with its numbers that may be free."""
    names = _free_names(element)
    own = {name: read(element.numbers[name].size).reshape(element.numbers[name].shape) for name in names}
    return replace(element, numbers={**element.numbers, **own})


def _constraint_with_numbers(constraint: Constraint, read: _Reader) -> Constraint:
    element = constraint.element
    return constraint if element is None else replace(constraint, element=_with_numbers(element, read))


def _coupling_with_numbers(coupling: Coupling, read: _Reader) -> Coupling:
    offset, added = read(1)[0], coupling.added
    return replace(coupling, offset=offset, added=None if added is None else tuple(read(len(added))))


def _free_names(element: Any) -> list[str]:
    """The numbers that an element has and that may be free."""
    return [name for name in element.kind.free_fields if name in element.numbers]


def _own_numbers(outline: Outline) -> list[Any]:
    """Numbers of the forces, couplings and constraints of an outline, in the order in which they are read."""
    parts: list[Any] = [np.ravel(force.numbers[name]) for force in outline.forces for name in _free_names(force)]
    parts += [_numbers_of_coupling(coupling) for coupling in outline.couplings]
    elements = [constraint.element for constraint in outline.constraints if constraint.element is not None]
    parts += [np.ravel(element.numbers[name]) for element in elements for name in _free_names(element)]
    return [x for part in parts for x in part]


def _numbers_of_coupling(coupling: Coupling) -> list[Any]:
    return [coupling.offset, *(() if coupling.added is None else coupling.added)]


class Tables:
    """The numbers of all links, bodies, frames of joints, in the frames that components have."""

    def __init__(self, model: Model, at_centres: bool) -> None:
        tree = model.tree
        self.gravity = np.asarray(model.gravity)
        link_of = np.array([*tree.body_link], dtype=int)
        mass, com = _array([link.mass for link in tree.links], ()), _array([link.com for link in tree.links], (3,))
        I, E = (_array([getattr(link, name) for link in tree.links], (3, 3)) for name in ("I_C", "E"))
        r = _array([link.r for link in tree.links], (3,))
        place = _array([pose.position for pose in tree.body_pose], (3,))
        axes = _array([pose.rotation for pose in tree.body_pose], (3, 3))
        self.heaviest = heaviest_bodies(model)
        if at_centres:
            A = axes[self.heaviest]
            I, E, r = A.transpose(0, 2, 1) @ I @ A, np.tile(np.eye(3), (len(A), 1, 1)), 0.0 * nominal(r)
            place, axes = _moved(link_of, (A, com), place, axes)
            com = 0.0 * nominal(com)
        self.links = np.concatenate(
            [mass[:, None], com, I[:, *ENTRIES], E.reshape(-1, 9), r], axis=1
        )  # fmt: skip
        self.bodies = np.concatenate([place, axes.reshape(-1, 9)], axis=1)
        frames = []
        for end, at in (("parent", "at"), ("child", "child_at")):
            body = np.array([getattr(joint, end) for joint in model.joints], dtype=int)
            p = _array([getattr(joint, at).position for joint in model.joints], (3,))
            R = _array([getattr(joint, at).rotation for joint in model.joints], (3, 3))
            fixed = body == GROUND
            R_b = np.where(fixed[:, None, None], np.eye(3), axes[body])
            p_b = np.where(fixed[:, None], 0.0, place[body])
            turned = (R_b @ p[..., None])[..., 0]
            frames += [p_b + turned, (R_b @ R).reshape(-1, 9)]
        self.joints = np.concatenate(frames, axis=1)
        snapped = (self.links, self.bodies, self.joints) if model.snapping else ()
        for table in snapped:
            _snap(table, model.snapping)


def _array(values: Sequence[Any], shape: tuple[int, ...]) -> np.ndarray:
    """An array of floats, or of objects where one is a `FreeNumber`."""
    array = np.array(values) if len(values) else np.zeros((0, *shape))
    return array.reshape(len(values), *shape)


def _moved(link: np.ndarray, frame: tuple[np.ndarray, np.ndarray], p: np.ndarray, R: np.ndarray) -> tuple[Any, Any]:
    """Positions and axes of bodies in frames `(A, c)` of their links; those on the ground stay."""
    A, c = frame
    A = np.concatenate([A, np.eye(3)[None]])[link].transpose(0, 2, 1)
    c = np.concatenate([c, np.zeros((1, 3))])[link]
    return (A @ (p - c)[..., None])[..., 0], A @ R


def _snap(table: np.ndarray, tolerance: float) -> None:
    """Round what is within the tolerance of 0, 1 or -1; free numbers stay."""
    if table.dtype == object:
        return
    nearest = np.clip(np.round(table), -1.0, 1.0)
    near = np.abs(table - nearest) <= tolerance
    table[near] = nearest[near] + 0.0


def heaviest_bodies(model: Model) -> np.ndarray:
    """The heaviest body of each link (n links,), whose axes are those of the link's quaternion."""
    found: dict[int, int] = {}
    for b, i in enumerate(model.tree.body_link):
        if i != GROUND and (i not in found or model.bodies[b].mass > model.bodies[found[i]].mass):
            found[i] = b
    return np.array([found[i] for i in range(len(model.tree.links))], dtype=int)


@dataclass(frozen=True)
class RowPlaces:
    """Where rows are: the `first` of each joint, coupling and constraint; of all rows whether they are of positions.

    `place` and `position` have the places of the rows kept among these, and among those of them at position level.
    """

    first: dict[str, int]
    levels: list[bool]
    place: dict[int, int]
    position: dict[int, int]

    @classmethod
    def of(cls, model: Model, formulation: Formulation, kept: Sequence[int]) -> RowPlaces:
        """Of a formulation that solves with the rows `kept`, in order."""
        first, levels = row_places(model, formulation)
        places = ({row: k for k, row in enumerate(rows)} for rows in (kept, [row for row in kept if levels[row]]))
        return cls(first, levels, *places)


@dataclass(frozen=True)
class _OwnRows:
    """The rows of a component that are kept, and those of them at position level: number there, place in the whole."""

    rows: tuple[int, ...] = ()
    places: tuple[int, ...] = ()
    positions: tuple[int, ...] = ()
    position_places: tuple[int, ...] = ()
    first: int = 0


@dataclass(frozen=True)
class Member:
    """One component on its way into a class: its outline, with its own numbers, and what it has of the model."""

    outline: Outline
    links: tuple[int, ...]
    bodies: tuple[int, ...] = ()  # -1 is the link's own frame
    joints: tuple[int, ...] = ()  # of those measured
    own: _OwnRows = _OwnRows()


class Division:
    """Makes components of a model, and sorts them into classes.

    Args:
        home: the model whose links they have.
        in_tree: whether the links have the rates of the tree's joints, and not six of their own.
        rows: where rows are.
        tables: the numbers of the model.
        piece_of: the links of the piece that each link is part of, where their motion is known when components without
            mass are evaluated; None where it is not.

    """

    def __init__(
        self, home: Model, in_tree: bool, rows: RowPlaces, tables: Tables,
        piece_of: Sequence[tuple[int, ...]] | None = None,
    ) -> None:  # fmt: skip
        self.home, self.in_tree, self.rows, self.tables, self.piece_of = home, in_tree, rows, tables, piece_of
        self.link_of_joint = {link.joint: i for i, link in enumerate(home.tree.links)}
        self.cuts = frozenset(home.cuts)
        self._plain: dict[Hashable, Outline] = {}

    # components

    def link(self, i: int) -> Member:
        """A link with six rates, and its heaviest body."""
        make = lambda: Outline((LinkOutline(GROUND, RIGID, -1, False),), (0,), has_mass=True)
        return Member(self._remembered("link", make), (i,), (int(self.tables.heaviest[i]),))

    def piece(self, links: Sequence[int], along: Sequence[Force] = (), bodies: Sequence[int] | None = None) -> Member:
        """Links that carry one another, with drives and forces along their joints, and `bodies`, if not one each."""
        outline, local = self._subtree(links, driven=True), {i: k for k, i in enumerate(links)}
        if bodies is not None:
            on = tuple(local[self.home.tree.body_link[b]] for b in bodies)
            joints = tuple(replace(joint, parent=GROUND, child=GROUND) for joint in outline.joints)
            outline = replace(outline, bodies=on, joints=joints)
        forces = tuple(replace(force, on=(local[self.link_of_joint[force.on[0]]],)) for force in along)
        outline = replace(outline, forces=forces, driven=True, has_mass=True)
        return Member(outline, tuple(links), (GROUND,) * len(links) if bodies is None else tuple(bodies))

    def joint(self, j: int, along: Sequence[Force] = (), has_rows: bool = True) -> Member:
        """A joint: rows, drive and rotor if its links have rates of their own, and what acts along it."""
        own = self._own_rows(f"joint {j}", self.home.joints[j].kind.freedoms_removed) if has_rows else _OwnRows()
        if self.in_tree or along:
            return self._joint(j, along, own)
        carries, ends = self.link_of_joint.get(j), self._ends(j)
        link = None if carries is None else self.home.tree.links[carries]
        if link is not None and link.armature is not None:
            return self._joint(j, along, own)
        at = (ends[0] == GROUND, ends[1] == GROUND, carries == ends[0])
        key = (id(self.home.joints[j].kind), id(link and link.kind), at, own.rows, own.positions)
        outline = self._remembered(key, lambda: self._joint(j, along, own).outline)
        links = tuple(i for i in dict.fromkeys(ends) if i != GROUND)
        return Member(outline, links, (GROUND,) * len(links), (j,), own)

    def _joint(self, j: int, along: Sequence[Force], own: _OwnRows) -> Member:
        outline, links, local, measured = self._around((j,), driven=not self.in_tree)
        forces = tuple(replace(force, on=(local[j],)) for force in along)
        return _member(outline, links, measured, own, forces=forces, driven=not self.in_tree)

    def coupling(self, k: int) -> Member:
        """A coupling or a prescribed motion, with its joints."""
        coupling = self.home.couplings[k]
        outline, links, local, measured = self._around(coupling.joints)
        before = sum(self.home.joints[j].kind.freedoms_removed for j in measured)
        couplings = (replace(coupling, joints=tuple(local[j] for j in coupling.joints)),)
        own = self._own_rows(f"coupling {k}", 1)
        return _member(outline, links, measured, own, couplings=couplings, before=before)

    def constraint(self, k: int) -> Member:
        """A constraint of the user, with its bodies."""
        constraint = self.home.constraints[k]
        on = lambda local: {"constraints": (replace(constraint, on=local),)}
        return self._between(constraint.on, self._own_rows(f"constraint {k}", 1), on)

    def force(self, force: Force) -> Member:
        """A force element by itself, with its joint or its bodies."""
        if force.kind.on == "joint":
            return self.joint(force.on[0], (force,), has_rows=False)
        return self._between(force.on, _OwnRows(), lambda local: {"forces": (replace(force, on=local),)})

    def _between(self, on: Sequence[int], own: _OwnRows, acting: Callable[[tuple[int, ...]], dict[str, Any]]) -> Member:
        """What acts on bodies, with these bodies; `acting` has it for the numbers that these have there."""
        bodies = [b for b in dict.fromkeys(on) if b != GROUND]
        carriers = [self._end(b) for b in bodies]
        moving = [i for i in carriers if i != GROUND]
        if self.in_tree:
            links = self._reached(moving)
            outline = self._subtree(links)
        else:
            links = list(dict.fromkeys(moving))
            outline = Outline(tuple(LinkOutline(GROUND, RIGID, -1, False) for _ in links))
        stubs, at = len(outline.bodies), {i: k for k, i in enumerate(links)} | {GROUND: GROUND}
        number = {b: stubs + k for k, b in enumerate(bodies)} | {GROUND: GROUND}
        found = _member(outline, links, (), own, **acting(tuple(number[b] for b in on)))
        outline = replace(found.outline, bodies=(*outline.bodies, *(at[i] for i in carriers)))
        return replace(found, outline=outline, bodies=(*(GROUND,) * stubs, *bodies))

    # parts of these

    def _end(self, body: int) -> int:
        return GROUND if body == GROUND else self.home.tree.body_link[body]

    def _ends(self, j: int) -> tuple[int, int]:
        return self._end(self.home.joints[j].parent), self._end(self.home.joints[j].child)

    def _remembered(self, key: Hashable, make: Callable[[], Outline]) -> Outline:
        if key not in self._plain:
            self._plain[key] = make()
        return self._plain[key]

    def _reached(self, links: Sequence[int]) -> list[int]:
        """Links of whole pieces, where their motion is known; else links with all on their ways to the ground."""
        if self.piece_of is not None:
            return [i for piece in dict.fromkeys(self.piece_of[i] for i in links) for i in piece]
        found = set()
        for link in links:
            i = link
            while i != GROUND and i not in found:
                found.add(i)
                i = self.home.tree.links[i].parent
        return sorted(found)

    def _subtree(self, links: Sequence[int], driven: bool = False) -> Outline:
        """Links with their joints, in the tree's coordinates; a body on each, in the link's own frame."""
        at = {i: k for k, i in enumerate(links)}
        every = [self.home.tree.links[i] for i in links]
        parents = [at.get(link.parent, GROUND) for link in every]
        outlines = tuple(
            LinkOutline(parent, link.kind, k, driven and link.armature is not None)
            for k, (link, parent) in enumerate(zip(every, parents, strict=True))
        )
        joints = tuple(JointOutline(link.kind, parents[k], k, False) for k, link in enumerate(every))
        return Outline(outlines, tuple(range(len(links))), joints)

    def _around(
        self, joints: Sequence[int], driven: bool = False
    ) -> tuple[Outline, list[int], dict[int, int], tuple[int, ...]]:
        """Joints with the links that they need, on each of which is a body in the link's own frame.

        Outline, links, the numbers that joints have there, and those that are measured between two frames.
        """
        tree, ends = self.home.tree, {j: self._ends(j) for j in joints}
        if self.in_tree:
            measured = tuple(j for j in joints if j in self.cuts)
            needed = [ends[j] if j in self.cuts else (self.link_of_joint[j],) for j in joints]
            links = self._reached([i for some in needed for i in some if i != GROUND])
            outline, local = self._subtree(links), {tree.links[i].joint: k for k, i in enumerate(links)}
        else:
            measured, local = tuple(joints), {}
            links = list(dict.fromkeys(i for pair in ends.values() for i in pair if i != GROUND))
            carried = {self.link_of_joint.get(j): k for k, j in enumerate(joints)}
            kinds = ((tree.links[i].kind, carried[i]) if i in carried else (RIGID, -1) for i in links)
            armed = [driven and i in carried and tree.links[i].armature is not None for i in links]
            outlines = (LinkOutline(GROUND, *each, rotor) for each, rotor in zip(kinds, armed, strict=True))
            outline = Outline(tuple(outlines), tuple(range(len(links))))
        at, found = {i: k for k, i in enumerate(links)} | {GROUND: GROUND}, list(outline.joints)
        for j in measured:
            local[j] = len(found)
            found.append(JointOutline(self.home.joints[j].kind, at[ends[j][0]], at[ends[j][1]], True))
        cuts = tuple(local[j] for j in measured if j in self.cuts)
        return replace(outline, joints=tuple(found), cuts=cuts), links, local, measured

    def _own_rows(self, name: str, count: int) -> _OwnRows:
        """Of a component's rows those kept; all of a joint of the tree whose rows the whole does not count."""
        every = tuple(range(count))
        if name not in self.rows.first:
            return _OwnRows(every, every, every, every)
        first, kept, at_position = self.rows.first[name], self.rows.place, self.rows.position
        rows, positions = (tuple(k for k in every if first + k in some) for some in (kept, at_position))
        places, position_places = tuple(kept[first + k] for k in rows), tuple(at_position[first + k] for k in positions)
        return _OwnRows(rows, places, positions, position_places, first)

    # classes

    def classes(
        self, members: Sequence[Member], apart: Callable[[Member], Hashable] = lambda member: None
    ) -> list[ComponentClass]:
        """Members of equal structure, and for which `apart` is equal, in classes, in their order."""
        groups: dict[Hashable, list[Member]] = {}
        keys: dict[int, Hashable] = {}
        for member in members:
            outline = member.outline
            key = keys[id(outline)] if id(outline) in keys else keys.setdefault(id(outline), _outline_key(outline))
            groups.setdefault((key, apart(member)), []).append(member)
        return [cls for group in groups.values() for cls in self._split(group)]

    def _split(self, group: list[Member]) -> list[ComponentClass]:
        """Members of one outline by which of their numbers are free, and which entries of rotations are 0, 1 or -1."""
        numbers, is_rotation = self._numbers(group)
        plain, held = nominal(numbers), _held(numbers)
        simple = np.where(np.isin(plain, (0.0, 1.0, -1.0)) & ~held, plain + 0.0, 2.0)[:, is_rotation]
        free = held[:, held.any(axis=0)]
        of, count = _patterns(np.concatenate([simple, free], axis=1))
        if self.piece_of is None and (count > MANY_CLASSES or len(group) <= FEW):
            of, count = _patterns(free)
        chosen = [np.flatnonzero(of == c) for c in range(count)]
        return [self._class([group[k] for k in own], numbers[own], plain[own], held[own]) for own in chosen]

    def _numbers(self, group: list[Member]) -> tuple[np.ndarray, np.ndarray]:
        """Numbers (m, n) of members of one outline, in the order of `Outline.model`, and which are of rotations."""
        tables, outline, m = self.tables, group[0].outline, len(group)
        links, bodies, joints = (_table(group, name) for name in ("links", "bodies", "joints"))
        is_known = self.piece_of is not None and not outline.has_mass
        parts = [np.broadcast_to(np.zeros(3) if is_known else tables.gravity, (m, 3))]
        turns = [np.zeros(3, dtype=bool)]
        for k, of in enumerate(outline.links):
            own = tables.links[links[:, k]]
            if not outline.has_mass:
                of_joint = np.broadcast_to(STILL[10:], (m, 12)) if is_known else own[:, 10:]
                own = np.concatenate([np.broadcast_to(STILL[:10], (m, 10)), of_joint], axis=1)
            parts.append(own)
            turns.append(_LINK_TURNS)
            if of.has_armature:
                parts.append(np.array([self.home.tree.links[i].armature for i in links[:, k]]))
                turns.append(np.zeros(of.kind.nv, dtype=bool))
        for k in range(len(outline.bodies)):
            real = bodies[0, k] != GROUND
            parts.append(tables.bodies[bodies[:, k]] if real else np.broadcast_to(HERE, (m, FRAME)))
        parts += [tables.joints[joints[:, k]] for k in range(joints.shape[1])]
        turns += [_FRAME_TURNS] * (len(outline.bodies) + 2 * joints.shape[1])
        if own_numbers := _own_numbers(outline):
            parts.append(np.array([_own_numbers(member.outline) for member in group]).reshape(m, len(own_numbers)))
        numbers = np.concatenate(parts, axis=1)
        is_rotation = np.concatenate(turns)
        return numbers, np.pad(is_rotation, (0, numbers.shape[1] - len(is_rotation)))

    def _class(self, group: list[Member], numbers: np.ndarray, plain: np.ndarray, held: np.ndarray) -> ComponentClass:
        outline, m = group[0].outline, len(group)
        same = (plain == plain[0]).all(axis=0)
        same &= ~held.any(axis=0)
        differ = numbers[:, ~same]
        free = [(i, k, differ[i, k].graph) for i, k in np.argwhere(held[:, ~same]).tolist()]
        values = np.where(same, plain[0] + 0.0, np.nan)
        links, bodies, joints = (_table(group, name) for name in ("links", "bodies", "joints"))
        x, tau = self._tree_places(outline, links)
        if self.in_tree:
            q, v = x, tau
        else:
            q = (7 * links[:, :, None] + np.arange(7)).reshape(m, -1)
            v = (6 * links[:, :, None] + np.arange(6)).reshape(m, -1)
        rows, positions = (_table([c.own for c in group], name) for name in ("places", "position_places"))
        first = np.array([member.own.first for member in group], dtype=int)
        return ComponentClass(
            outline, values, plain[:, ~same], links, bodies, joints, q, v, x, tau, rows, positions, first, tuple(free)
        )  # fmt: skip

    def _tree_places(self, outline: Outline, links: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Places of the coordinates and rates of the joints that carry a component's links, in those of the tree."""
        every, found = self.home.tree.links, []
        for what, count in (("q", "nq"), ("v", "nv")):
            columns = [
                np.array([getattr(every[i], what).start for i in links[:, k]])[:, None]
                + np.arange(getattr(of.kind, count))
                for k, of in enumerate(outline.links)
            ]
            found.append(np.concatenate([np.zeros((len(links), 0), dtype=int), *columns], axis=1).astype(int))
        return found[0], found[1]


_LINK_TURNS = np.isin(np.arange(LINK), np.arange(10, 19))
_FRAME_TURNS = np.arange(FRAME) >= 3


def _member(outline: Outline, links: Sequence[int], joints: Sequence[int], own: _OwnRows, **more: Any) -> Member:
    """A component without mass, whose bodies stand for its links."""
    outline = replace(outline, rows=own.rows, positions=own.positions, **more)
    return Member(outline, tuple(links), (GROUND,) * len(links), tuple(joints), own)


def _table(members: Sequence[Any], name: str) -> np.ndarray:
    return np.array([getattr(member, name) for member in members], dtype=int).reshape(len(members), -1)


def _held(numbers: np.ndarray) -> np.ndarray:
    """Which numbers are free."""
    if numbers.dtype != object:
        return np.zeros(numbers.shape, dtype=bool)
    return np.array([[isinstance(x, FreeNumber) for x in row] for row in numbers]).reshape(numbers.shape)


def _patterns(rows: np.ndarray) -> tuple[np.ndarray, int]:
    """Which pattern each row has, counted in the order in which they come, and how many there are."""
    if not rows.shape[1]:
        return np.zeros(len(rows), dtype=int), 1
    _, first, of = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[of.ravel()], len(first)


def components_of(
    model: Model, formulation: Formulation, kept: Sequence[int]
) -> tuple[list[ComponentClass], RowPlaces]:  # fmt: skip
    """The components whose equations add up to those of a model in one formulation, in classes, and where rows are.

    `kept` are the numbers, among the formulation's rows, of those that it solves with, in order.
    """
    home, rows = model if formulation.in_tree else model.separate, RowPlaces.of(model, formulation, kept)
    division = Division(home, formulation.in_tree, rows, Tables(home, at_centres=not formulation.in_tree))
    along: dict[int, list[Force]] = {}
    for force in home.forces:
        if force.kind.on == "joint":
            along.setdefault(force.on[0], []).append(force)
    if formulation.in_tree:
        joint_of = [link.joint for link in home.tree.links]
        members = [
            division.piece(links, [force for i in links for force in along.get(joint_of[i], ())])
            for links in subtrees(home.tree)
        ]
    else:
        members = [division.link(i) for i in range(len(home.tree.links))]
    members += [division.joint(j, along.get(j, ())) for j in range(len(home.joints)) if f"joint {j}" in rows.first]
    members += [division.force(force) for force in home.forces if force.kind.on == "bodies"]
    members += [division.coupling(k) for k in range(len(home.couplings))]
    members += [division.constraint(k) for k in range(len(home.constraints))]
    return division.classes(members), rows


def subtrees(tree: Tree) -> list[list[int]]:
    """The links of each subtree on the ground, parents first."""
    found: dict[int, list[int]] = {}
    roots: list[int] = []
    for i, link in enumerate(tree.links):
        roots.append(i if link.parent == GROUND else roots[link.parent])
        found.setdefault(roots[i], []).append(i)
    return list(found.values())


def longest_subtree(model: Model) -> int:
    """The largest number of links of a subtree on the ground."""
    return max(map(len, subtrees(model.tree)), default=0)


def row_places(model: Model, formulation: Formulation) -> tuple[dict[str, int], list[bool]]:
    """First row of each joint, coupling and constraint in a formulation; of all rows whether they are of positions."""
    home = model if formulation.in_tree else model.separate
    body_link = home.tree.body_link

    def ends(joint: Joint) -> list[int]:
        return [GROUND if b == GROUND else body_link[b] for b in (joint.parent, joint.child)]

    if formulation.in_tree:
        joints: Iterable[int] = home.cuts
    else:
        joints = (j for j, joint in enumerate(home.joints) if len(set(ends(joint))) == 2)
    first: dict[str, int] = {}
    levels: list[bool] = []
    for j in joints:
        first[f"joint {j}"] = len(levels)
        levels += [True] * home.joints[j].kind.freedoms_removed
    for k in range(len(home.couplings)):
        first[f"coupling {k}"] = len(levels)
        levels.append(True)
    for k, constraint in enumerate(home.constraints):
        first[f"constraint {k}"] = len(levels)
        levels.append(not constraint.is_at_rate_level)
    return first, levels


def _outline_key(outline: Outline) -> Hashable:
    """What tells outlines apart."""
    couplings = (
        (replace(c, offset=0.0, added=None).digest(str), len(_numbers_of_coupling(c))) for c in outline.couplings
    )
    return (
        tuple((of.parent, of.kind.identity, of.joint, of.has_armature) for of in outline.links),
        outline.bodies,
        tuple((of.kind.identity, of.parent, of.child, of.frames) for of in outline.joints),
        outline.cuts,
        tuple(_force_key(force) for force in outline.forces),
        tuple(couplings),
        tuple(_constraint_key(constraint) for constraint in outline.constraints),
        outline.rows,
        outline.positions,
        outline.before,
        outline.driven,
        outline.has_mass,
    )


def _force_key(force: Force) -> Hashable:
    graphs = tuple(graph_digest(graph) for graph in (force.function, force.graph) if graph is not None)
    return force.kind.name, force.on, _fixed(force), graphs


def _constraint_key(constraint: Constraint) -> Hashable:
    element = constraint.element
    if element is None:
        return constraint.digest(str)
    return element.kind.name, constraint.on, constraint.row, _fixed(element), graph_digest(element.graph)


def _fixed(element: Any) -> Hashable:
    """Numbers of an element that cannot be free, and the shapes of the others."""
    names = _free_names(element)
    fixed = tuple((name, x.tobytes()) for name, x in sorted(element.numbers.items()) if name not in names)
    return fixed, tuple((name, element.numbers[name].shape) for name in names)
