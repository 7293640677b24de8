"""From a graph of bodies and joints to a spanning tree of links, with the joints that are cut.

A link is a set of bodies connected by rigid joints. Its frame is the frame M of the joint that carries it, so that
every joint moves along its canonical axes, and a link has two constants: placement and inertia.
"""

from __future__ import annotations

import hashlib
import heapq
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from cardan.algebra.free_number import nominal, plain, scalar
from cardan.algebra.matrix import snap
from cardan.algebra.spatial import Transform, inertia_about_origin, rigid_inertia, shifted, turned
from cardan.errors import ModelError
from cardan.lazy import cached_property
from cardan.model.body import Body, Joint
from cardan.model.force import Coupling, Force
from cardan.model.joint import RIGID, Kind, joint_transform, reversed_kind
from cardan.model.pose import Pose

GROUND = -1


@dataclass(frozen=True, eq=False)
class Link:
    """One node of the tree. `E`, `r` place its joint frame F in the parent link; `I` is 6x6 about its own origin."""

    name: str
    parent: int
    joint: int
    kind: Kind
    E: np.ndarray
    r: np.ndarray
    mass: float
    com: np.ndarray
    I_C: np.ndarray
    q: slice
    v: slice
    armature: np.ndarray | None = None

    @cached_property
    def I(self) -> np.ndarray:
        """Inertia (6, 6) about the link's origin."""
        I_O = inertia_about_origin(self.mass, self.com, self.I_C)
        I: np.ndarray = rigid_inertia(self.mass, self.mass * self.com, I_O)
        I.flags.writeable = False
        return I


@dataclass(frozen=True, eq=False)
class Tree:
    """Links, parents first; and the link of each body and its pose there."""

    links: tuple[Link, ...]
    body_link: tuple[int, ...]
    body_pose: tuple[Pose, ...]
    nq: int
    nv: int

    @cached_property
    def mobility(self) -> tuple[dict[int, str], float]:
        """What `judge_mobility` finds."""
        return judge_mobility(self)

    @cached_property
    def moves_inertia(self) -> bool:
        """Whether it is plain that every joint moves inertia, without a look at the whole tree."""
        return _all_move_inertia(self)

    def coordinate_ancestor(self) -> list[int]:
        """For each rate the one before it on the path to the root, or -1."""
        above: list[int] = []
        for link in self.links:
            parent = link.parent
            while parent != GROUND and self.links[parent].kind.nv == 0:
                parent = self.links[parent].parent
            last = self.links[parent].v.stop - 1 if parent != GROUND else -1
            above += [last if k == 0 else link.v.start + k - 1 for k in range(link.kind.nv)]
        return above

    def digest(self) -> str:
        """Hex digest of everything that enters the equations."""
        h = hashlib.sha256()
        for link in self.links:
            h.update(f"{link.parent} {link.kind.identity} {link.q} {link.v}".encode())
            for a in (link.E, link.r, np.array(link.mass), link.com, link.I_C):
                h.update(np.ascontiguousarray(a).tobytes())
            if link.armature is not None:
                h.update(b"armature" + link.armature.tobytes())
        for index, pose in zip(self.body_link, self.body_pose, strict=True):
            h.update(f"{index}".encode() + pose.position.tobytes() + np.ascontiguousarray(pose.rotation).tobytes())
        return h.hexdigest()


def choose_tree(
    bodies: Sequence[Body], joints: Sequence[Joint], cut: Sequence[int] = (), keep: Collection[int] = ()
) -> list[int]:
    """Choose tree joints: first those to `keep`, then by most constraint rows, then nearest to ground.

    The other joints are cut. A cut joint costs as many equations as it has constraint rows, and its angles are known
    up to whole turns only. Joints in `cut` are always cut.
    """
    touching: dict[int, list[int]] = {}
    for j, joint in enumerate(joints):
        for end in (joint.parent, joint.child) if j not in cut else ():
            touching.setdefault(end, []).append(j)
    depth = {GROUND: 0}
    queue: list[tuple[bool, int, int, int]] = []
    chosen = []

    def reach(body: int) -> None:
        for j in touching.get(body, ()):
            heapq.heappush(queue, (j not in keep, -joints[j].kind.freedoms_removed, depth[body], j))

    reach(GROUND)
    while queue:
        *_, d, j = heapq.heappop(queue)
        ends = [b for b in (joints[j].parent, joints[j].child) if b not in depth]
        if ends:
            depth[ends[0]] = d + 1
            chosen.append(j)
            reach(ends[0])
    for b, body in enumerate(bodies):
        if b not in depth:
            first = [joints[j].name for j in touching.get(b, ())]
            why = f"its joint {first[0]!r} leads to no ground" if first else "it has no joint"
            if cut:
                why += f", with {', '.join(repr(joints[j].name) for j in cut)} cut"
            raise ModelError(
                f"body {body.name!r}: {why}; connect it, for a floating body with joint(..., cd.Free(), ground, "
                f"{body.name!r})"
            )
    return chosen


def joints_to_keep(joints: Sequence[Joint], forces: Sequence[Force], couplings: Sequence[Coupling]) -> set[int]:
    """Joints that should keep their coordinates: a force, a coupling or an armature depends on them."""
    keep = {j for j, joint in enumerate(joints) if joint.armature is not None}
    keep |= {j for force in forces if force.depends_on_coordinates for j in force.on}
    return keep.union(*(coupling.joints for coupling in couplings))


def notes_on_turns(joints: Sequence[Joint], cuts: Collection[int], forces: Sequence[Force]) -> list[str]:
    """A note for each force that depends on the angle of a cut joint, whose whole turns are not counted."""
    return [
        f"{force.owner}: its joint {joints[force.on[0]].name!r} closes a loop, so that its angle is known within half "
        "a turn of zero only; name another joint of the loop in cut if it goes further"
        for force in forces
        if force.kind.on == "joint"
        and force.depends_on_coordinates
        and force.on[0] in cuts
        and any(force.part_of(joints[force.on[0]].kind).periods)
    ]


def grow_tree(
    bodies: Sequence[Body], joints: Sequence[Joint], tree_joints: Sequence[int], snapping: float, merge: str = "all",
) -> Tree:  # fmt: skip
    """Make the links, in the order in which their joints were declared as far as the tree allows.

    `merge` says which rigid joints make two bodies one link: "all", "massless" (those with a massless body), or "none".
    """
    body_link: dict[int, int] = {GROUND: GROUND}
    body_pose: dict[int, Pose] = {GROUND: Pose()}
    members: dict[int, list[int]] = {}
    outline: list[tuple[int, int, Kind, Pose]] = []  # parent link, joint, kind, pose of F in the parent link
    waiting: dict[int, list[int]] = {}
    for j in tree_joints:
        waiting.setdefault(joints[j].parent, []).append(j)
        waiting.setdefault(joints[j].child, []).append(j)
    ready = list(waiting.get(GROUND, ()))
    heapq.heapify(ready)
    while ready:
        j = heapq.heappop(ready)
        joint = joints[j]
        forward = joint.parent in body_link
        near, far = (joint.parent, joint.child) if forward else (joint.child, joint.parent)
        F, M = (joint.at, joint.child_at) if forward else (joint.child_at, joint.at)
        base = body_link[near]
        placement = body_pose[near] @ F
        massless = any(b != GROUND and bodies[b].mass == 0 for b in (near, far))
        if joint.kind is RIGID and (merge == "all" or (merge == "massless" and massless)):
            body_link[far], body_pose[far] = base, placement @ M.inverse
        else:
            body_link[far], body_pose[far] = len(outline), M.inverse
            outline.append((base, j, joint.kind if forward else reversed_kind(joint.kind), placement))
        members.setdefault(body_link[far], []).append(far)
        for k in waiting.get(far, ()):
            if k != j:
                heapq.heappush(ready, k)
    nq = nv = 0
    links = []
    for index, (base, j, kind, placement) in enumerate(outline):
        mass, com, I_C = merged_inertia(bodies, members[index], body_pose)
        at = snap(placement.rotation.T, snapping), snap(placement.position, snapping)
        own = slice(nq, nq + kind.nq), slice(nv, nv + kind.nv)
        links.append(Link(bodies[members[index][0]].name, base, j, kind, *at, mass, com, I_C, *own, joints[j].armature))
        nq, nv = nq + kind.nq, nv + kind.nv
    count = range(len(bodies))
    return Tree(tuple(links), tuple(body_link[b] for b in count), tuple(body_pose[b] for b in count), nq, nv)


def merged_inertia(
    bodies: Sequence[Body], members: Sequence[int], pose: Mapping[int, Pose] | Sequence[Pose]
) -> tuple[float, np.ndarray, np.ndarray]:
    """Mass, centre of mass and inertia about it, in the link frame, of bodies moving as one."""
    parts = []
    for b in members:
        R, body = pose[b].rotation, bodies[b]
        parts.append((body.mass, pose[b].position + R @ body.com, R @ body.inertia @ R.T))
    mass = scalar(sum(m for m, _, _ in parts))
    com = sum((m * c for m, c, _ in parts), np.zeros(3)) / (mass or 1.0)
    I_C = np.zeros((3, 3))
    for m, c, I in parts:
        I_C = I_C + inertia_about_origin(m, c - com, I)
    return mass, plain(com), plain((I_C + I_C.T) / 2)


def check_mobility(tree: Tree, joints: Sequence[Joint], held_bodies: set[int]) -> None:
    """Reject a joint that can move without moving any inertia: the mass matrix would be singular.

    Links held by a loop or a coupling, and the links that carry them, are checked later with the whole mechanism.
    """
    if tree.moves_inertia:
        return
    held = {tree.body_link[b] for b in held_bodies} - {GROUND}
    for i in reversed(range(len(tree.links))):
        if i in held and tree.links[i].parent != GROUND:
            held.add(tree.links[i].parent)
    for i, what in weightless_links(tree).items():
        if i not in held:
            link, joint = tree.links[i], joints[tree.links[i].joint]
            raise ModelError(
                f"body {link.name!r}: it, with all it carries, {what}, so joint {joint.name!r} ({joint.kind.name}) "
                "would move nothing; give it mass and inertia, or a rigid joint"
            )


def _all_move_inertia(tree: Tree) -> bool:
    """Whether it is plain that every joint moves inertia: at least that of its own link, and no link is a small part.

    Compared with the largest of all links, at the joints' reference; a joint moves its own link whatever others do.
    """
    groups: dict[Kind, list[Link]] = {}
    for link in tree.links:
        if link.kind.nv:
            groups.setdefault(link.kind, []).append(link)
    if not groups:
        return True
    mass, com, I_C = (nominal(np.array([getattr(x, part) for x in tree.links])) for part in ("mass", "com", "I_C"))
    turning = float(np.max(np.trace(I_C, axis1=1, axis2=2) + 2 * mass * np.sum(com**2, axis=1), initial=0.0))
    most = np.repeat([turning, float(np.max(mass, initial=0.0))], 3)
    for links in groups.values():
        S = links[0].kind.S(np.array(links[0].kind.neutral)).astype(float)
        largest = np.sqrt(np.maximum(np.sum(most[:, None] * S**2, axis=0), 1e-300))
        turns, slides = (S / largest)[:3].T, (S / largest)[3:].T
        mass, com, I_C = (nominal(np.array([getattr(x, part) for x in links])) for part in ("mass", "com", "I_C"))
        speed = slides + np.cross(turns, com[:, None])
        D = turns @ I_C @ turns.T + mass[:, None, None] * (speed @ speed.swapaxes(1, 2))
        if not np.linalg.eigvalsh(D)[:, 0].min() > 1e-9:  # or NaN
            return False
    return True


def weightless_links(tree: Tree) -> dict[int, str]:
    """Links whose joint can move without moving any inertia, and why."""
    return {} if tree.moves_inertia else tree.mobility[0]


def judge_mobility(tree: Tree, seed: int = 0) -> tuple[dict[int, str], float]:
    """Links whose joint moves no inertia, and why; and the worst ratio of inertias that a joint carries and moves.

    At one arbitrary configuration, tips first: composite inertia `IC` is what a joint carries, articulated inertia
    `IA` what it moves when the joints beyond it are free. Free numbers have their nominal values.
    """
    rng = np.random.default_rng(seed)
    IC = [nominal(link.I) for link in tree.links]
    IA = list(IC)
    found: dict[int, str] = {}
    least = 1.0
    for i in reversed(range(len(tree.links))):
        link = tree.links[i]
        q = link.kind.plus(np.array(link.kind.neutral), rng.uniform(-1, 1, link.kind.nv))
        S = link.kind.S(q)
        A = np.zeros(link.kind.nv) if link.armature is None else nominal(link.armature)
        D = S.T @ IA[i] @ S + np.diag(A)
        if link.kind.nv and not (A > 0).all() and not _moves_inertia(S, D, IC[i]):
            found[i] = "has no mass" if not IC[i].any() else "has no inertia along a motion of that joint"
        elif link.kind.nv:
            least = min(least, _smallest_share(D, S.T @ IC[i] @ S + np.diag(A)))
        if link.parent != GROUND:
            X = joint_transform(link.kind, q, link.E, nominal(link.r))
            left = IA[i] if i in found else IA[i] - IA[i] @ S @ np.linalg.solve(D, S.T @ IA[i])
            IC[link.parent] = IC[link.parent] + X.congruence(IC[i])
            IA[link.parent] = IA[link.parent] + X.congruence(left)
    return found, 1 / least if least > 0 else np.inf


def _smallest_share(D: np.ndarray, whole: np.ndarray) -> float:
    """The least eigenvalue of `D`, scaled so that the diagonal of `whole` is one."""
    size = np.sqrt(np.diag(whole))
    return float(D[0, 0] / whole[0, 0] if len(D) == 1 else np.linalg.eigvalsh(D / np.outer(size, size))[0])


def _moves_inertia(S: np.ndarray, D: np.ndarray, IC: np.ndarray) -> bool:
    """Whether a joint moves inertia, compared with the largest inertia it could move."""
    turning, mass = np.trace(IC[:3, :3]), IC[3, 3]
    largest = np.sqrt(np.maximum(np.diag(S.T @ np.diag([turning] * 3 + [mass] * 3) @ S), 1e-300))
    return bool(np.linalg.eigvalsh(D / np.outer(largest, largest))[0] > 1e-13)


def regrouped_inertias(tree: Tree) -> list[np.ndarray]:
    """Inertia (6, 6) of each link after moving to the parent, tips first, the part that acts the same on both sides.

    For a hinge that is mass along the axis; for a ball joint, mass at its centre; for a slider, rotational inertia
    (`Kind.unmoved`). Moving it changes no acceleration, joint force or energy, and makes most entries of the link's
    inertia structural zeros. Only the forces between bodies change: reactions are computed with the true inertias.
    Source: the base parameters of Gautier and Khalil (1990). Docs: docs/decisions/0004.
    """
    inertias = [link.I for link in tree.links]
    for i in reversed(range(len(tree.links))):
        link = tree.links[i]
        if link.kind.unmoved is None:
            continue
        part = link.kind.unmoved(inertias[i])
        kept = inertias[i] - part
        kept[part == inertias[i]] = 0.0
        inertias[i] = kept
        if link.parent != GROUND:
            X = Transform((turned(link.E), shifted(link.r)))
            inertias[link.parent] = inertias[link.parent] + X.congruence(part)
    return inertias
