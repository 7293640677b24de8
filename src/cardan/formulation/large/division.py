"""A large mechanism divided into pieces, and what connects them, sorted into classes of equal structure.

A piece is a subtree on the ground, in the tree's own coordinates; where subtrees are large it is a single link, with
six rates of its own. A connection is what makes constraint rows: a joint between pieces, a coupling, a constraint of
the user. An element is a force element. Members of a class differ in their numbers alone: those that are the same for
all are literals of the class, the others are read for each member.

Each class has a template: a small `Model` of the pieces that are concerned. Graphs are recorded with it by the same
text that records a whole mechanism.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from cardan.algebra.free_number import FreeNumber, is_free
from cardan.formulation.large.steps import Cell, Step
from cardan.model.body import Body, Joint
from cardan.model.graph_digest import graph_digest
from cardan.model.joint import FREE, Kind
from cardan.model.memory import Slot
from cardan.model.model import Model
from cardan.model.pose import Pose
from cardan.model.tree import GROUND, Link, Tree

SIMPLE = (0.0, 1.0, -1.0)
Frame = tuple[np.ndarray, np.ndarray]  # axes (3, 3) and origin (3,) in a link, which may be free numbers
UNMOVED: Frame = (np.eye(3), np.zeros(3))
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
    """The numbers (count, k) of the members of a class: literals, constants of each member, and free ones.

    Free numbers follow from the free parameters; `free` is their cell, None without any. `values` (k,) stand for the
    numbers in the template: floats, and `FreeNumber` where members differ.
    """

    def __init__(self, rows: Sequence[np.ndarray]) -> None:
        import casadi as ca

        table = np.array(rows, dtype=object if any(map(is_free, rows)) else float).reshape(len(rows), -1)
        self.given: np.ndarray = np.array([[is_free(x) for x in row] for row in table]) if table.dtype == object else (
            np.zeros(table.shape, dtype=bool)
        )  # fmt: skip
        free = self.given[0]
        plain = np.where(self.given, 0.0, table).astype(float)
        varying = (plain != plain[0]).any(axis=0) & ~free
        self.constants = np.ascontiguousarray(plain[:, varying])
        self.C = ca.SX.sym("C", int(varying.sum()))
        self.free: Cell | None = None
        self.expressions: list[Any] = []
        values: list[Any] = list(plain[0])
        for k, at in enumerate(np.flatnonzero(varying)):
            values[at] = FreeNumber(self.C[k], float(plain[0, at]))
        if free.any():
            self.free = Cell(len(table))
            self.expressions = [ca.vertcat(*(x.graph for x in row[free])) for row in table]
            for at in np.flatnonzero(free):
                values[at] = FreeNumber(self.free.symbols[self.free.place()], table[0, at].nominal)
        self.values = values
        self._used = 0

    def take(self, *shape: int) -> Any:
        """The next numbers, in a shape."""
        n = int(np.prod(shape)) if shape else 1
        part = self.values[self._used : self._used + n]
        self._used += n
        if not shape:
            return part[0]
        return np.array(part, dtype=object if any(isinstance(x, FreeNumber) for x in part) else float).reshape(shape)

    def step(self, members: np.ndarray | None = None) -> Step:
        """A step for some members, all if not said, which reads their numbers."""
        members = np.arange(len(self.constants)) if members is None else members
        step = Step(len(members), self.constants, self.C, members=members)
        if self.free is not None:
            view = step.view(self.free, members)
            view.seen = dict(enumerate(self.free.symbols))
        return step


def pattern(rotation: np.ndarray) -> tuple[float, ...]:
    """Which entries of a rotation are 0, 1 or -1; 2 stands for others."""
    return tuple(x if isinstance(x, float) and x in SIMPLE else 2.0 for x in rotation.ravel().tolist())


def flat(*arrays: Any) -> np.ndarray:
    """Numbers one after the other, free ones among them."""
    parts = [np.ravel(np.asarray(a)) for a in arrays]
    return np.concatenate(parts) if parts else np.zeros(0)


def pose_of(numbers: Numbers) -> Pose:
    """A pose from the next twelve numbers: rotation, then position."""
    rotation, position = numbers.take(3, 3), numbers.take(3)
    return Pose(position, rotation)


@dataclass(eq=False)
class PieceClass:
    """Pieces of one structure; `links` (count, n) are the numbers of their links, parents first."""

    kinds: tuple[Kind, ...]
    parents: tuple[int, ...]
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


@dataclass(frozen=True)
class Place:
    """A link of a piece: number of the class, of the member, and of the link within the piece."""

    cls: int
    member: int
    link: int


@dataclass(eq=False)
class Group:
    """Connections or elements of one structure: the pieces they concern, and a template of these.

    `pieces` are the numbers of the classes, `members` (count, len(pieces)) which piece of each; `owners` what they are
    in the model: numbers of joints, couplings, constraints or forces. `joints` are those of the template
    that make rows, `kept` the numbers of the rows kept among its own, and `rows` (count, len(kept)) their numbers among
    those of the mechanism.
    """

    pieces: tuple[int, ...]
    members: np.ndarray
    owners: list[int]
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
        return len(self.owners)


class Places:
    """Where every link of a model is: in which class of pieces, in which piece, and at which place in it.

    `model` may have free numbers; with `bodies_apart` every link is a piece. `members` are the links of the pieces of
    each class, `link_number` the link that each joint of the tree carries.
    """

    def __init__(self, model: Model, bodies_apart: bool) -> None:
        self.model, self.bodies_apart = model, bodies_apart
        self.has_free = any(map(is_free, (model.gravity, *(x for link in model.tree.links for x in _of_link(link)))))
        self.has_free |= any(is_free(pose.position) for pose in model.tree.body_pose)
        self.bodies_of: list[list[int]] = [[] for _ in model.tree.links]
        for b, i in enumerate(model.tree.body_link):
            if i != GROUND:
                self.bodies_of[i].append(b)
        self.link_number = {link.joint: i for i, link in enumerate(model.tree.links)}
        self.place: list[Place] = [Place(-1, -1, -1)] * len(model.tree.links)
        self.members = self._sorted()
        self.items: dict[Hashable, Item] = {}

    def _sorted(self) -> list[list[list[int]]]:
        links = self.model.tree.links
        groups: dict[Hashable, list[list[int]]] = {}
        for members in [[i] for i in range(len(links))] if self.bodies_apart else subtrees(self.model.tree):
            local = {i: k for k, i in enumerate(members)}
            key = tuple(
                (
                    links[i].kind.identity, local.get(links[i].parent, GROUND), links[i].armature is None,
                    pattern(links[i].E), len(self.bodies_of[i]), self._freed(i) if self.has_free else (),
                )
                for i in members
            )  # fmt: skip
            groups.setdefault(key, []).append(members)
        for cls, members_of in enumerate(groups.values()):
            for m, members in enumerate(members_of):
                for k, i in enumerate(members):
                    self.place[i] = Place(cls, m, k)
        return list(groups.values())

    def _freed(self, i: int) -> tuple[bool, ...]:
        """Which numbers of a link are free."""
        poses = [self.model.tree.body_pose[b].position for b in self.bodies_of[i]]
        return _which_free(*_of_link(self.model.tree.links[i]), *poses)

    def side(self, body: int) -> tuple[Place | None, Frame]:
        """The link that carries a body, None for the ground, and the body's axes and origin in it."""
        if body == GROUND:
            return None, UNMOVED
        i, pose = self.model.tree.body_link[body], self.model.tree.body_pose[body]
        return None if i == GROUND else self.place[i], (pose.rotation, pose.position)

    def remembered(self, key: Hashable, make: Callable[[], Item]) -> Item:
        """An item that was made before."""
        if key not in self.items:
            self.items[key] = make()
        return self.items[key]


def _of_link(link: Link) -> tuple[Any, ...]:
    """The numbers of a link that can be free."""
    return link.r, np.asarray(link.mass), link.com, link.I_C, np.asarray(link.armature)


_PLACES: Slot[bool, Places] = Slot("pieces of a large mechanism, by whether links are apart")


def places_of(model: Model, bodies_apart: bool) -> Places:
    """The pieces of a model; found once."""
    return _PLACES.find(model, bodies_apart, lambda: Places(model, bodies_apart))


class Division:
    """Classes of pieces with templates and memory of their own, for one program."""

    def __init__(self, places: Places) -> None:
        self.places, self.model, self.bodies_apart = places, places.model, places.bodies_apart
        self.bodies_of = places.bodies_of
        self.pieces = [self._piece_class(members) for members in places.members]

    def _piece_class(self, members: list[list[int]]) -> PieceClass:
        tree, first = self.model.tree, members[0]
        local = {i: k for k, i in enumerate(first)}
        kinds = tuple(tree.links[i].kind for i in first)
        parents = tuple(GROUND if self.bodies_apart else local.get(tree.links[i].parent, GROUND) for i in first)
        bodies = tuple(k for k, i in enumerate(first) for _ in self.bodies_of[i])
        numbers = Numbers([self._numbers_of(piece) for piece in members])
        armatures = [tree.links[i].armature for i in first]
        template, placement = self._piece_template(kinds, parents, bodies, numbers, armatures)
        body_numbers = np.array([[b for i in piece for b in self.bodies_of[i]] for piece in members], dtype=int)
        return PieceClass(
            kinds, parents, bodies, np.array(members), body_numbers.reshape(len(members), -1), numbers, template,
            Cell(len(members)), placement,
        )  # fmt: skip

    def _numbers_of(self, piece: list[int]) -> np.ndarray:
        tree = self.model.tree
        parts: list[Any] = [self.model.gravity]
        for i in piece:
            link = tree.links[i]
            parts += [link.E, link.r, link.mass, link.com, link.I_C]
            parts += [] if link.armature is None else [link.armature]
        for i in piece:
            for b in self.bodies_of[i]:
                parts += [tree.body_pose[b].rotation, tree.body_pose[b].position]
        return flat(*parts)

    def _piece_template(
        self, kinds: Sequence[Kind], parents: Sequence[int], bodies: Sequence[int], numbers: Numbers, armatures: Any
    ) -> tuple[Model, tuple[np.ndarray, np.ndarray]]:
        gravity = numbers.take(3)
        links, nq, nv = [], 0, 0
        for k, (kind, parent, armature) in enumerate(zip(kinds, parents, armatures, strict=True)):
            E, r, mass, com, I_C = (numbers.take(*shape) for shape in ((3, 3), (3,), (), (3,), (3, 3)))
            A = None if armature is None else numbers.take(len(armature))
            if k == 0:
                placement = E, r
            if self.bodies_apart:
                kind, E, r = POSED, np.eye(3), np.zeros(3)
            at = slice(nq, nq + kind.nq), slice(nv, nv + kind.nv)
            links.append(Link(f"link{k}", parent, k, kind, E, r, mass, com, I_C, *at, A))
            nq, nv = nq + kind.nq, nv + kind.nv
        poses = tuple(pose_of(numbers) for _ in bodies)
        template = _model(gravity, links, bodies, poses, [_joint(k, link.kind) for k, link in enumerate(links)])
        return template, placement

    # Connections and elements.

    def groups(self, items: Sequence[Item]) -> list[Group]:
        """Sort connections or elements into classes."""
        found: dict[Hashable, list[tuple[Item, tuple[tuple[int, int], ...]]]] = {}
        for item in items:
            pieces = tuple(dict.fromkeys((p.cls, p.member) for p in item.places if p is not None))
            local = tuple(None if p is None else (pieces.index((p.cls, p.member)), p.link) for p in item.places)
            key = (item.key, local, tuple(cls for cls, _ in pieces))
            found.setdefault(key, []).append((item, pieces))
        return [self._group([i for i, _ in group], [p for _, p in group]) for group in found.values()]

    def _group(self, items: list[Item], pieces: list[tuple[tuple[int, int], ...]]) -> Group:
        first, classes = items[0], tuple(cls for cls, _ in pieces[0])
        numbers = Numbers([item.numbers for item in items])
        starts = np.cumsum([0, *(len(self.pieces[cls].kinds) for cls in classes)])
        start_of = {piece: int(start) for piece, start in zip(pieces[0], starts, strict=False)}
        sides = [GROUND if p is None else start_of[p.cls, p.member] + p.link for p in first.places]
        draft = Draft(self._union(classes), numbers)
        joints = first.write(draft, sides)
        members = np.array([[member for _, member in piece] for piece in pieces], dtype=int)
        members = members.reshape(len(items), len(classes))
        rows = np.array([item.rows for item in items], dtype=int).reshape(len(items), -1)
        owners = [item.owner for item in items]
        links = np.array([item.links for item in items], dtype=int).reshape(len(items), -1)
        at = np.array([item.first for item in items], dtype=int)
        return Group(
            classes, members, owners, numbers, draft.model(), joints, first.kept, rows, tuple(draft.given), links, at
        )  # fmt: skip

    def _union(self, classes: Sequence[int]) -> Model:
        """A template of several pieces side by side, without bodies."""
        links: list[Link] = []
        nq = nv = 0
        gravity: Any = np.zeros(3)
        for cls in classes:
            piece, shift = self.pieces[cls].template, len(links)
            gravity = piece.gravity
            for link in piece.tree.links:
                parent = GROUND if link.parent == GROUND else link.parent + shift
                q, v = (slice(s.start + n, s.stop + n) for s, n in ((link.q, nq), (link.v, nv)))
                links.append(replace(link, parent=parent, joint=len(links), q=q, v=v))
            nq, nv = nq + piece.nq, nv + piece.nv
        return _model(gravity, links, (), (), [_joint(k, link.kind) for k, link in enumerate(links)])


def subtrees(tree: Tree) -> list[list[int]]:
    """The links of each subtree on the ground, parents first."""
    found: dict[int, list[int]] = {}
    root: list[int] = []
    for i, link in enumerate(tree.links):
        root.append(i if link.parent == GROUND else root[link.parent])
        found.setdefault(root[i], []).append(i)
    return list(found.values())


def _model(
    gravity: Any, links: Sequence[Link], body_link: Sequence[int], body_pose: Sequence[Pose], joints: Sequence[Joint]
) -> Model:
    bodies = [Body(f"body{b}", 1.0, np.zeros(3), np.zeros((3, 3))) for b in range(len(body_link))]
    nq, nv = (sum(getattr(link.kind, n) for link in links) for n in ("nq", "nv"))
    tree = Tree(tuple(links), tuple(body_link), tuple(body_pose), nq, nv)
    tree.__dict__.update(mobility=({}, 1.0), moves_inertia=True)  # judged with the whole mechanism
    model = Model("piece", gravity, tuple(bodies), tuple(joints), (), tree)
    model.__dict__["separate"] = model  # whose links are those of the whole mechanism
    return model


@dataclass
class Draft:
    """A template under construction: pieces side by side, and what is added between their links."""

    union: Model
    numbers: Numbers
    links: list[int] = field(default_factory=list)
    poses: list[Pose] = field(default_factory=list)
    joints: dict[int, Joint] = field(default_factory=dict)
    cuts: list[int] = field(default_factory=list)
    given: list[int] = field(default_factory=list)
    more: dict[str, Any] = field(default_factory=dict)

    def body(self, link: int) -> int:
        """A body on a link, at the pose that the next numbers say; its number."""
        self.links.append(link)
        self.poses.append(pose_of(self.numbers))
        return len(self.links) - 1

    def joint(self, kind: Kind, parent: int, child: int, given: bool) -> int:
        """A joint between two bodies, and its number; `given`: its coordinates are those of the tree."""
        number = len(self.union.joints) + len(self.cuts)
        self.cuts.append(number)
        self.joints[number] = Joint(f"own{number}", kind, parent, child, Pose(), Pose())
        self.given += [number] if given else []
        return number

    def model(self) -> Model:
        """The template."""
        every = len(self.union.joints) + len(self.cuts)
        joints = tuple(self.joints[k] if k in self.joints else self.union.joints[k] for k in range(every))
        bodies = tuple(Body(f"body{b}", 1.0, np.zeros(3), np.zeros((3, 3))) for b in range(len(self.links)))
        tree = replace(self.union.tree, body_link=tuple(self.links), body_pose=tuple(self.poses))
        found = replace(
            self.union, bodies=bodies, tree=tree, joints=joints, cuts=tuple(self.cuts), **self.more
        )  # fmt: skip
        found.__dict__["separate"] = found
        return found


def _joint(k: int, kind: Kind) -> Joint:
    return Joint(f"joint{k}", kind, GROUND, GROUND, Pose(), Pose())


@dataclass
class Item:
    """One connection or element on its way into a class: those of equal `key` at like places are one class.

    `write(draft, links)` adds it to a template, given the links at its `places`; it returns its joints that make rows.
    """

    owner: int
    key: Hashable
    places: tuple[Place | None, ...]
    numbers: np.ndarray
    write: Callable[[Draft, Sequence[int]], tuple[int, ...]]
    links: tuple[int, ...] = ()
    """Links of joints of the tree whose coordinates are needed."""
    kept: tuple[int, ...] = ()
    rows: tuple[int, ...] = ()
    first: int = 0

    def keeping(self, kept: tuple[int, ...], first: int) -> Item:
        """The same with the numbers of its rows that are kept; `first` is the number of its first row of all."""
        return replace(self, key=(self.key, kept), kept=kept, rows=tuple(first + k for k in kept), first=first)


@dataclass
class Reference:
    """A joint that something depends on: where it is, and how it enters a template; `write` gives its number."""

    key: Hashable
    places: tuple[Place | None, ...]
    numbers: np.ndarray
    write: Callable[[Draft, Sequence[int]], int]
    links: tuple[int, ...] = ()


def reference(places: Places, j: int) -> Reference:
    """A joint by its coordinates, or measured between its two bodies where it is cut or pieces are single links."""
    model = places.model
    own = model.link_of_joint(j)
    if own is not None and not places.bodies_apart:
        return Reference("tree", (places.place[places.link_number[j]],), np.zeros(0), lambda draft, links: links[0])
    joint = model.joints[j]
    (p, P), (c, C) = places.side(joint.parent), places.side(joint.child)
    F, M = _on(P, joint.at), _on(C, joint.child_at)
    given = own is not None

    def write(draft: Draft, links: Sequence[int]) -> int:
        return draft.joint(joint.kind, draft.body(links[0]), draft.body(links[1]), given)

    key = (joint.kind.identity, given, *_shape((F, M)))
    return Reference(key, (p, c), _of_frames(F, M), write, (places.link_number[j],) if given else ())


def _on(frame: Frame, at: Pose) -> Frame:
    """A frame on a body, in the link that carries the body."""
    R, r = frame
    return R @ at.rotation, r + R @ at.position


def joint_rows(places: Places, j: int) -> Item:
    """A joint between two pieces, whose constraint makes rows."""
    return places.remembered(("joint", j), lambda: _joint_rows(places, j))


def _joint_rows(places: Places, j: int) -> Item:
    found = reference(places, j)

    def write(draft: Draft, links: Sequence[int]) -> tuple[int, ...]:
        return (found.write(draft, links),)

    return Item(j, ("joint", found.key), found.places, found.numbers, write, found.links)


def coupling_rows(places: Places, k: int) -> Item:
    """A coupling or a prescribed motion."""
    own = places.model.couplings[k]
    sides = [reference(places, j) for j in own.joints]
    added = () if own.added is None else tuple(own.added)

    def write(draft: Draft, links: Sequence[int]) -> tuple[int, ...]:
        joints, at = [], 0
        for side in sides:
            joints.append(side.write(draft, links[at : at + len(side.places)]))
            at += len(side.places)
        offset, more = draft.numbers.take(), tuple(draft.numbers.take() for _ in added)
        draft.more["couplings"] = (replace(own, joints=tuple(joints), offset=offset, added=more or None),)
        return ()

    numbers = flat(*(side.numbers for side in sides), own.offset, *added)
    coefficients = tuple(float(c) for c in own.coefficients)
    text = None if own.function is None else graph_digest(own.function)
    key = ("coupling", own.what, coefficients, text, *(side.key for side in sides), _which_free(own.offset, *added))
    at = tuple(place for side in sides for place in side.places)
    return Item(k, key, at, numbers, write, tuple(i for side in sides for i in side.links))


def constraint_rows(places: Places, k: int) -> Item:
    """A constraint of the user."""
    own = places.model.constraints[k]
    sides = [places.side(b) for b in own.on if b != GROUND]

    def write(draft: Draft, links: Sequence[int]) -> tuple[int, ...]:
        bodies = iter([draft.body(link) for link in links])
        draft.more["constraints"] = (replace(own, on=tuple(GROUND if b == GROUND else next(bodies) for b in own.on)),)
        return ()

    poses = [pose for _, pose in sides]
    grounded = tuple(b == GROUND for b in own.on)
    key = ("constraint", graph_digest(own.function), own.unit, grounded, *_shape(poses))
    return Item(k, key, tuple(place for place, _ in sides), _of_frames(*poses), write)


def force_element(places: Places, k: int) -> Item:
    """A force element along a joint, or between bodies."""
    own = places.model.forces[k]
    values = [own.numbers[name] for name in own.numbers]
    graphs = tuple(None if g is None else graph_digest(g) for g in (own.function, own.graph))
    key: tuple[Hashable, ...] = ("force", id(own.kind), graphs, _which_free(*values))

    def with_numbers(draft: Draft, on: tuple[int, ...]) -> None:
        numbers = {name: np.asarray(draft.numbers.take(*np.shape(x))) for name, x in own.numbers.items()}
        draft.more["forces"] = (replace(own, on=on, numbers=numbers),)

    if own.kind.on == "joint":
        side = reference(places, own.on[0])

        def along(draft: Draft, links: Sequence[int]) -> tuple[int, ...]:
            with_numbers(draft, (side.write(draft, links),))
            return ()

        return Item(k, (*key, side.key), side.places, flat(side.numbers, *values), along, side.links)
    sides = [places.side(b) for b in own.on if b != GROUND]

    def between(draft: Draft, links: Sequence[int]) -> tuple[int, ...]:
        bodies = iter([draft.body(link) for link in links])
        with_numbers(draft, tuple(GROUND if b == GROUND else next(bodies) for b in own.on))
        return ()

    poses = [pose for _, pose in sides]
    key = (*key, tuple(b == GROUND for b in own.on), *_shape(poses))
    return Item(k, key, tuple(place for place, _ in sides), flat(_of_frames(*poses), *values), between)


def _of_frames(*frames: Frame) -> np.ndarray:
    return flat(*(x for frame in frames for x in frame))


def _shape(frames: Sequence[Frame]) -> tuple[Hashable, ...]:
    """What tells classes apart: zeros and ones of the axes, and which numbers are free."""
    return (*(pattern(R) for R, _ in frames), *(_which_free(r) if r.dtype == object else () for _, r in frames))


def _which_free(*values: Any) -> tuple[bool, ...]:
    return tuple(is_free(x) for value in values for x in np.ravel(np.asarray(value)))
