"""A large mechanism as a sum of small parts, its components, each written by the formulation itself.

`M vdot + J^T lam - f`, `J v - beta` and `phi` are sums over links, joints, force elements, couplings and constraints.
Each of these is a component: a small model with the links that it touches and nothing else. Only the components that
are links, or pieces of the tree, have mass; the others have what acts between them.

    six rates a link      a component for each link, for each joint (rows, drive, armature, forces along it), for each
                          force element between bodies, coupling and constraint
    the tree's rates      a component for each piece, a subtree that is attached to the ground, with its drives and the
                          forces along its joints; for each cut joint, force element between bodies, coupling and
                          constraint, with the links on the way to the ground

Components of equal structure are a class. Its numbers (lengths, frames, inertias, stiffnesses) are a table with a row
for each member. Numbers that are the same for all members are constants of the class; the others are symbols of one
`Model`, on which the formulation writes its equations once. So recording takes as long for three bodies as for a
hundred thousand.

With six rates a link the frame of a link is placed in its centre of mass, along the axes of its own body, of which its
coordinates are those already: its equations do not depend on where the frame is.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
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

    `bodies` has the link of each body. `rows` are the rows, of those that the formulation writes of the component,
    that belong to it and are kept; `positions` those of them at position level. `driven` says whether the drives of its
    joints belong to it, `has_mass` whether its links are its own.
    """

    links: tuple[LinkOutline, ...]
    bodies: tuple[int, ...]
    joints: tuple[JointOutline, ...]
    cuts: tuple[int, ...] = ()
    forces: tuple[Force, ...] = ()
    couplings: tuple[Coupling, ...] = ()
    constraints: tuple[Constraint, ...] = ()
    rows: tuple[int, ...] = ()
    positions: tuple[int, ...] = ()
    driven: bool = False
    has_mass: bool = False

    @property
    def nv(self) -> int:
        """Number of rates of the joints that carry its links."""
        return sum(link.kind.nv for link in self.links)

    def model(self, numbers: np.ndarray) -> Model:
        """The component as a model with these numbers, floats or `FreeNumber`s, in the order of `Tables`."""
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
        bodies = tuple(Body(f"{b}", 1.0, np.zeros(3), np.eye(3)) for b in range(len(self.bodies)))
        tree = Tree(tuple(links), self.bodies, poses, nq, nv)
        model = Model(
            "component", gravity, bodies, tuple(joints), (), tree, self.cuts, forces=forces, couplings=self.couplings,
            constraints=self.constraints,
        )  # fmt: skip
        model.__dict__["separate"] = model
        return model


@dataclass(frozen=True)
class ComponentClass:
    """Components of one outline, m of them, with their numbers and their places in the whole.

    `values` (n,) are the numbers that all members share, NaN where they differ; `numbers` (m, k) are those that differ.
    `q`, `v` (m, .) are places among the formulation's coordinates and rates, `x`, `tau` (m, .) among coordinates and
    rates of the tree, `rows`, `positions` (m, .) among the rows kept and among those of them at position level.
    `bodies` (m, .) are the model's, -1 for what stands for a link.
    `free` are the places in `numbers` that depend on free parameters, and their expressions.
    """

    outline: Outline
    values: np.ndarray
    numbers: np.ndarray
    q: np.ndarray
    v: np.ndarray
    x: np.ndarray
    tau: np.ndarray
    rows: np.ndarray
    positions: np.ndarray
    bodies: np.ndarray
    free: tuple[tuple[int, int, Any], ...] = field(default=(), repr=False)

    def __len__(self) -> int:
        """How many members."""
        return len(self.q)

    @property
    def key(self) -> str:
        """All that its graphs depend on."""
        return f"{_outline_key(self.outline)} {self.values.tolist()}"

    def written(self, C: Any) -> Model:
        """The model to write graphs with; `C` (k, 1) are symbols for the numbers that differ."""
        entries = np.array(self.values, dtype=object)
        for k, at in enumerate(np.flatnonzero(np.isnan(self.values))):
            entries[at] = FreeNumber(C[k], float(self.numbers[0, k]))
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


def _with_numbers(force: Force, read: _Reader) -> Force:
    own = {name: read(force.numbers[name].size).reshape(force.numbers[name].shape) for name in force.kind.free_fields}
    return replace(force, numbers={**force.numbers, **own})


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


@dataclass
class _Member:
    """One component on its way into a class."""

    outline: Outline
    links: tuple[int, ...]
    bodies: tuple[int, ...]  # -1 is the link's own frame
    joints: tuple[int, ...]  # of those measured
    rows: tuple[int, ...]
    positions: tuple[int, ...]
    forces: tuple[Force, ...] = ()


class Division:
    """The components of a model in one formulation.

    `kept` are the numbers, among the formulation's rows, of those that it solves with, in order. `home` is the model
    whose links are the formulation's.
    """

    def __init__(self, model: Model, formulation: Formulation, kept: Sequence[int]) -> None:
        self.model, self.formulation = model, formulation
        self.in_tree = formulation.in_tree
        self.home = model if self.in_tree else model.separate
        self.tables = Tables(self.home, at_centres=not self.in_tree)
        self.place = {row: k for k, row in enumerate(kept)}
        self.first_row, self.levels = row_places(model, formulation)
        at_position = [row for row in kept if self.levels[row]]
        self.position_place = {row: k for k, row in enumerate(at_position)}
        self.link_of_joint = {link.joint: i for i, link in enumerate(self.home.tree.links)}
        self.cuts = frozenset(self.home.cuts)
        self._plain: dict[Any, Outline] = {}

    def classes(self) -> list[ComponentClass]:
        """All of them."""
        groups: dict[Any, list[_Member]] = {}
        keys: dict[int, Any] = {}
        members = self._pieces() if self.in_tree else self._bodies_and_joints()
        every = [*members, *self._elements()]
        for member in every:
            outline = member.outline
            key = keys[id(outline)] if id(outline) in keys else keys.setdefault(id(outline), _outline_key(outline))
            groups.setdefault(key, []).append(member)
        return [cls for group in groups.values() for cls in self._split(group)]

    # components with mass, and joints

    def _bodies_and_joints(self) -> Iterable[_Member]:
        links = self.home.tree.links
        alone = Outline((LinkOutline(GROUND, RIGID, -1, False),), (0,), (), has_mass=True)
        for i in range(len(links)):
            yield _Member(alone, (i,), (int(self.tables.heaviest[i]),), (), (), ())
        along = self._forces_along()
        for j in range(len(self.home.joints)):
            if f"joint {j}" in self.first_row:
                yield self._joint(j, along.get(j, ()))

    def _joint(self, j: int, along: Sequence[Force]) -> _Member:
        """A joint between links with six rates each: rows, drive, rotor and what acts along it."""
        first, joint = self.first_row[f"joint {j}"], self.home.joints[j]
        rows, carries = self._own_rows(range(first, first + joint.kind.freedoms_removed), 0), self.link_of_joint.get(j)
        ends = self._end(joint.parent), self._end(joint.child)
        links = [i for i in dict.fromkeys(ends) if i != GROUND]
        kind = None if carries is None else self.home.tree.links[carries].kind
        at = -1 if carries is None else links.index(carries)
        key = (id(joint.kind), ends[0] == GROUND, ends[1] == GROUND, id(kind), at, *map(tuple, rows[::2]))
        is_plain = not along and (carries is None or self._armature(carries) is None)
        if is_plain and key in self._plain:
            return _Member(self._plain[key], tuple(links), (GROUND,) * len(links), (j,), tuple(rows[1]), tuple(rows[3]))
        outline, links = self._around((j,))
        forces = tuple(_on(force, (0,)) for force in along)
        carried = tuple(
            LinkOutline(of.parent, of.kind, of.joint, of.joint == 0 and self._armature(i) is not None)
            for of, i in zip(outline.links, links, strict=True)
        )
        found = self._member(
            outline, links, (GROUND,) * len(links), (j,), rows, links_=carried, forces=forces, driven=True
        )
        if is_plain:
            self._plain[key] = found.outline
        return found

    def _pieces(self) -> Iterable[_Member]:
        along, roots = self._forces_along(), roots_of(self.home.tree)
        of: dict[int, list[int]] = {}
        for i, root in enumerate(roots):
            of.setdefault(root, []).append(i)
        for links in of.values():
            outline = self._subtree(links)
            joints = [self.home.tree.links[i].joint for i in links]
            forces = tuple(_on(force, (k,)) for k, j in enumerate(joints) for force in along.get(j, ()))
            armed = tuple(
                LinkOutline(o.parent, o.kind, o.joint, self._armature(i) is not None)
                for o, i in zip(outline.links, links, strict=True)
            )
            none: tuple[list[int], list[int], list[int], list[int]] = ([], [], [], [])
            yield self._member(
                outline,
                links,
                (GROUND,) * len(links),
                (),
                none,
                links_=armed,
                forces=forces,
                driven=True,
                has_mass=True,
            )

    # components without mass

    def _elements(self) -> Iterable[_Member]:
        model = self.home
        if self.in_tree:
            along = self._forces_along()
            for j in model.cuts:
                yield self._cut(j, along.get(j, ()))
        for force in model.forces:
            if force.kind.on == "bodies":
                yield self._between(force.on, forces=(force,))
        for k, coupling in enumerate(model.couplings):
            yield self._coupled(k, coupling)
        for k, constraint in enumerate(model.constraints):
            first = self.first_row[f"constraint {k}"]
            yield self._between(constraint.on, constraints=(constraint,), rows=range(first, first + 1))

    def _cut(self, j: int, along: Sequence[Force]) -> _Member:
        """A cut joint, with the links on the way to the ground."""
        joint, body_link = self.home.joints[j], self.home.tree.body_link
        ends = [GROUND if b == GROUND else body_link[b] for b in (joint.parent, joint.child)]
        links = self._ways([i for i in ends if i != GROUND])
        outline, first = self._subtree(links), self.first_row[f"joint {j}"]
        n = len(outline.joints)
        at = [GROUND if i == GROUND else links.index(i) for i in ends]
        joints = (*outline.joints, JointOutline(joint.kind, at[0], at[1], True))
        rows = self._own_rows(range(first, first + joint.kind.freedoms_removed), 0)
        forces = tuple(_on(force, (n,)) for force in along)
        return self._member(outline, links, (GROUND,) * len(links), (j,), rows, joints=joints, cuts=(n,), forces=forces)

    def _coupled(self, k: int, coupling: Coupling) -> _Member:
        """A coupling or a prescribed motion, with its joints."""
        first = self.first_row[f"coupling {k}"]
        if not self.in_tree:
            outline, links = self._around(coupling.joints)
            written = sum(joint.kind.freedoms_removed for joint in outline.joints)
            rows = self._own_rows([first], written)
            own = replace(coupling, joints=tuple(range(len(coupling.joints))))
            return self._member(outline, links, (GROUND,) * len(links), coupling.joints, rows, couplings=(own,))
        if any(j in self.cuts for j in coupling.joints):
            return self._coupled_cut(first, coupling)
        links = self._ways([self.link_of_joint[j] for j in coupling.joints])
        outline = self._subtree(links)
        joints = [self.home.tree.links[i].joint for i in links]
        own = replace(coupling, joints=tuple(joints.index(j) for j in coupling.joints))
        rows = self._own_rows([first], 0)
        return self._member(outline, links, (GROUND,) * len(links), (), rows, couplings=(own,))

    def _coupled_cut(self, first: int, coupling: Coupling) -> _Member:
        """A coupling with joints that are cut, in the tree's coordinates."""
        model = self.home
        cut = [j for j in coupling.joints if j in self.cuts]
        ends = {j: [self._end(b) for b in (model.joints[j].parent, model.joints[j].child)] for j in cut}
        touched = [self.link_of_joint[j] for j in coupling.joints if j not in cut]
        touched += [i for pair in ends.values() for i in pair if i != GROUND]
        links = self._ways(touched)
        outline = self._subtree(links)
        numbers = {model.tree.links[i].joint: k for k, i in enumerate(links)}
        joints = list(outline.joints)
        for j in cut:
            numbers[j] = len(joints)
            at = [GROUND if i == GROUND else links.index(i) for i in ends[j]]
            joints.append(JointOutline(model.joints[j].kind, at[0], at[1], True))
        written = sum(model.joints[j].kind.freedoms_removed for j in cut)
        own = replace(coupling, joints=tuple(numbers[j] for j in coupling.joints))
        cuts = tuple(numbers[j] for j in cut)
        rows = self._own_rows([first], written)
        return self._member(
            outline, links, (GROUND,) * len(links), tuple(cut), rows, joints=tuple(joints), cuts=cuts, couplings=(own,)
        )

    def _between(
        self, on: Sequence[int], *, forces: Sequence[Force] = (), constraints: Sequence[Constraint] = (),
        rows: Iterable[int] = (),
    ) -> _Member:  # fmt: skip
        """What acts on bodies, with these bodies."""
        bodies = [b for b in dict.fromkeys(on) if b != GROUND]
        touched = [self._end(b) for b in bodies]
        moving = [i for i in touched if i != GROUND]
        if self.in_tree:
            links = self._ways(moving)
            outline = self._subtree(links)
        else:
            links = list(dict.fromkeys(moving))
            outline = Outline(tuple(LinkOutline(GROUND, RIGID, -1, False) for _ in links), (), ())
        stubs = len(outline.bodies)
        number = {b: stubs + k for k, b in enumerate(bodies)} | {GROUND: GROUND}
        local = tuple(number[b] for b in on)
        carriers = tuple(GROUND if i == GROUND else links.index(i) for i in touched)
        return self._member(
            outline, links, (*(GROUND,) * stubs, *bodies), (), self._own_rows(rows, 0),
            bodies_=(*outline.bodies, *carriers),
            forces=tuple(replace(force, on=local) for force in forces),
            constraints=tuple(replace(c, on=local) for c in constraints),
        )  # fmt: skip

    # parts of these

    def _end(self, body: int) -> int:
        return GROUND if body == GROUND else self.home.tree.body_link[body]

    def _armature(self, i: int) -> np.ndarray | None:
        return self.home.tree.links[i].armature

    def _forces_along(self) -> dict[int, list[Force]]:
        found: dict[int, list[Force]] = {}
        for force in self.home.forces:
            if force.kind.on == "joint":
                found.setdefault(force.on[0], []).append(force)
        return found

    def _ways(self, links: Sequence[int]) -> list[int]:
        """Links, with all on their ways to the ground, parents first."""
        found = set()
        for link in links:
            i = link
            while i != GROUND and i not in found:
                found.add(i)
                i = self.home.tree.links[i].parent
        return sorted(found)

    def _subtree(self, links: Sequence[int]) -> Outline:
        """Links with their joints, in the tree's coordinates; a body on each, in the link's own frame."""
        at = {i: k for k, i in enumerate(links)} | {GROUND: GROUND}
        every = [self.home.tree.links[i] for i in links]
        outlines = tuple(LinkOutline(at[link.parent], link.kind, k, False) for k, link in enumerate(every))
        joints = tuple(JointOutline(link.kind, at[link.parent], k, False) for k, link in enumerate(every))
        return Outline(outlines, tuple(range(len(links))), joints)

    def _around(self, numbers: Sequence[int]) -> tuple[Outline, list[int]]:
        """Joints with the links at their ends, each of six rates; a body on each, in the link's own frame."""
        ends = [[self._end(b) for b in (self.home.joints[j].parent, self.home.joints[j].child)] for j in numbers]
        links = list(dict.fromkeys(i for pair in ends for i in pair if i != GROUND))
        at = {i: k for k, i in enumerate(links)} | {GROUND: GROUND}
        carried = {self.link_of_joint.get(j): k for k, j in enumerate(numbers)}
        outlines = tuple(
            LinkOutline(GROUND, self.home.tree.links[i].kind, carried[i], False)
            if i in carried
            else LinkOutline(GROUND, RIGID, -1, False)
            for i in links
        )
        joints = tuple(
            JointOutline(self.home.joints[j].kind, at[pair[0]], at[pair[1]], True)
            for j, pair in zip(numbers, ends, strict=True)
        )
        cuts = tuple(k for k, j in enumerate(numbers) if j in self.cuts)
        return Outline(outlines, tuple(range(len(links))), joints, cuts), links

    def _own_rows(self, rows: Iterable[int], first: int) -> tuple[list[int], list[int], list[int], list[int]]:
        """Of a component's rows, whose first is the number `first` there, those kept: number there, place here."""
        kept = [(first + k, row) for k, row in enumerate(rows) if row in self.place]
        at_position = [(k, row) for k, row in kept if row in self.position_place]
        return (
            [k for k, _ in kept], [self.place[row] for _, row in kept],
            [k for k, _ in at_position], [self.position_place[row] for _, row in at_position],
        )  # fmt: skip

    def _member(
        self, outline: Outline, links: Sequence[int], bodies: Sequence[int], measured: Sequence[int],
        rows: tuple[list[int], list[int], list[int], list[int]], *,
        links_: tuple[LinkOutline, ...] | None = None, bodies_: tuple[int, ...] | None = None, **more: Any,
    ) -> _Member:  # fmt: skip
        own = replace(
            outline, links=links_ or outline.links, bodies=outline.bodies if bodies_ is None else bodies_,
            rows=tuple(rows[0]), positions=tuple(rows[2]), **more,
        )  # fmt: skip
        return _Member(own, tuple(links), tuple(bodies), tuple(measured), tuple(rows[1]), tuple(rows[3]), own.forces)

    # classes

    def _split(self, group: list[_Member]) -> list[ComponentClass]:
        """Members of one outline, in classes by which of their numbers are 0, 1 or -1."""
        numbers = self._numbers(group)
        plain = nominal(numbers)
        simple = np.where(np.isin(plain, (0.0, 1.0, -1.0)), plain + 0.0, np.nan)
        patterns, of = np.unique(simple, axis=0, return_inverse=True)
        if len(patterns) > MANY_CLASSES or len(group) <= FEW:
            of = np.zeros(len(group), dtype=int)
        return [
            self._class([group[k] for k in chosen], numbers[chosen], plain[chosen])
            for c in range(int(of.max()) + 1)
            for chosen in (np.flatnonzero(of.ravel() == c),)
        ]

    def _numbers(self, group: list[_Member]) -> np.ndarray:
        """Numbers (m, n) of members of one outline, in the order in which `Outline.model` reads them."""
        tables, outline, m = self.tables, group[0].outline, len(group)
        parts = [np.broadcast_to(tables.gravity, (m, 3))]
        links = np.array([member.links for member in group], dtype=int).reshape(m, -1)
        for k, of in enumerate(outline.links):
            own = tables.links[links[:, k]]
            if not outline.has_mass:
                own = np.concatenate([np.broadcast_to(STILL[:10], (m, 10)), own[:, 10:]], axis=1)
            parts.append(own)
            if of.has_armature:
                parts.append(np.array([self._armature(i) for i in links[:, k]]))
        bodies = np.array([member.bodies for member in group], dtype=int).reshape(m, -1)
        for k in range(len(outline.bodies)):
            real = bodies[0, k] != GROUND
            parts.append(tables.bodies[bodies[:, k]] if real else np.broadcast_to(HERE, (m, FRAME)))
        joints = np.array([member.joints for member in group], dtype=int).reshape(m, -1)
        parts += [tables.joints[joints[:, k]] for k in range(joints.shape[1])]
        for k, force in enumerate(outline.forces):
            for name in force.kind.free_fields:
                parts.append(np.array([np.ravel(member.forces[k].numbers[name]) for member in group]))
        return np.concatenate(parts, axis=1)

    def _class(self, group: list[_Member], numbers: np.ndarray, plain: np.ndarray) -> ComponentClass:
        outline, m = group[0].outline, len(group)
        same = (plain == plain[0]).all(axis=0)
        free: list[tuple[int, int, Any]] = []
        if numbers.dtype == object:
            held = np.array([[isinstance(x, FreeNumber) for x in row] for row in numbers])
            same &= ~held.any(axis=0)
            differ = numbers[:, ~same]
            free = [(i, k, x.graph) for (i, k), x in np.ndenumerate(differ) if isinstance(x, FreeNumber)]
        values = np.where(same, plain[0] + 0.0, np.nan)
        links = np.array([member.links for member in group], dtype=int).reshape(m, -1)
        x, tau = self._tree_places(outline, links)
        if self.in_tree:
            q, v = x, tau
        else:
            q = (7 * links[:, :, None] + np.arange(7)).reshape(m, -1)
            v = (6 * links[:, :, None] + np.arange(6)).reshape(m, -1)
        rows, positions, bodies = (
            np.array([getattr(member, name) for member in group], dtype=int).reshape(m, -1)
            for name in ("rows", "positions", "bodies")
        )
        return ComponentClass(
            outline, values, plain[:, ~same], q, v, x, tau, rows, positions, bodies, tuple(free)
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


def _on(force: Force, on: tuple[int, ...]) -> Force:
    return replace(force, on=on)


def roots_of(tree: Tree) -> list[int]:
    """For each link the one on its way to the ground that the ground carries."""
    found: list[int] = []
    for i, link in enumerate(tree.links):
        found.append(i if link.parent == GROUND else found[link.parent])
    return found


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


def _outline_key(outline: Outline) -> Any:
    """What tells outlines apart."""
    return (
        tuple((of.parent, of.kind.identity, of.joint, of.has_armature) for of in outline.links),
        outline.bodies,
        tuple((of.kind.identity, of.parent, of.child, of.frames) for of in outline.joints),
        outline.cuts,
        tuple(_force_key(force) for force in outline.forces),
        tuple(coupling.digest(str) for coupling in outline.couplings),
        tuple(constraint.digest(str) for constraint in outline.constraints),
        outline.rows,
        outline.positions,
        outline.driven,
        outline.has_mass,
    )


def _force_key(force: Force) -> Any:
    free = force.kind.free_fields
    fixed = tuple((name, x.tobytes()) for name, x in sorted(force.numbers.items()) if name not in free)
    shapes = tuple((name, force.numbers[name].shape) for name in free)
    graphs = tuple(graph_digest(graph) for graph in (force.function, force.graph) if graph is not None)
    return force.kind.name, force.on, fixed, shapes, graphs
