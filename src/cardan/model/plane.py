"""Whether a mechanism moves in a plane, and what it looks like there.

Every link turns about the plane's normal `K` alone, so `K` is constant in the link's own axes. A link has a line, from
its frame's origin P (the joint that carries it) to a second point Q, preferably its next joint; any other point is
`P + nu d + lam K x d` with `d = Q - P`, and `(nu, lam)` never change. In the plane a joint is a pin (it turns), a
slide, a float (both: no constraint), or rigid. Units: m, rad, kg, kg m^2.

Where each joint by itself keeps to the plane (`Kind.in_plane`) nothing else is needed. A mechanism that only its loops
keep in the plane is described from a `Plane`: its normal, and one position of every joint (found by
`structure.planarity`).
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np

from cardan.algebra.free_number import nominal, scalar
from cardan.algebra.matrix import snap
from cardan.errors import ModelError
from cardan.lazy import cached_property
from cardan.model.body import Joint
from cardan.model.joint import TABLE, Kind
from cardan.model.memory import Slot
from cardan.model.model import Model
from cardan.model.pose import Pose
from cardan.model.tree import GROUND, Link

APART = 1e-9  # m: smallest distance between the two points of a line
EXACT = 1e-12  # numbers this near to 0, 1 or -1 are rounded to that

Place = tuple[float, float]


@dataclass(frozen=True, eq=False)
class Line:
    """Axes of a link in its own components, x along its line, z the normal, and the line's length, m."""

    axes: np.ndarray
    length: float

    def place(self, c: np.ndarray) -> Place:
        """`(nu, lam)` of a point, or of a direction, in the link."""
        nu, lam = snap(self.axes[:2] @ c / self.length, EXACT)
        return scalar(nu), scalar(lam)

    @property
    def normal(self) -> np.ndarray:
        """`K` in the link's components."""
        return np.asarray(self.axes[2])


@dataclass(frozen=True, eq=False)
class PlanarLink:
    """A link in the plane.

    `at` is where its joint sits on the parent's line, `offset` the angle from the parent's line to its own at rest.
    A joint coordinate k turns it by `turn[k]` and shifts it along `slide[k]`, a direction on the parent's line, or on
    its own if the joint is met `backwards`. If its coordinates are more than that it has a `kind`, which tells where M
    is in F; `seen` are the axes of the parent's line (rows) in F. `first` is mass times `(nu, lam)` of the centre of
    mass; `inertia` is about P; `rise` how far P is above the parent's, along the normal.
    """

    name: str
    parent: int
    joint: int
    role: str
    backwards: bool
    kind: Kind | None
    seen: np.ndarray
    line: Line
    at: Place
    offset: float
    turn: tuple[float, ...]
    slide: tuple[Place, ...]
    mass: float
    first: Place
    inertia: float
    rise: float
    q: slice
    v: slice


@dataclass(frozen=True, eq=False)
class PlanarCut:
    """A joint that closes a loop, between links `parent` and `child`; as in `PlanarLink`.

    `simple` says that `turn` and `slide` are those of its own coordinates.
    """

    joint: int
    role: str
    parent: int
    child: int
    at: Place
    child_at: Place
    offset: float
    turn: tuple[float, ...]
    slide: tuple[Place, ...]
    simple: bool


@dataclass(frozen=True, eq=False)
class Plane:
    """Where a mechanism keeps to a plane: `normal` (3,) in the ground's axes, and the pose of M in F of every joint."""

    normal: np.ndarray
    joints: tuple[tuple[np.ndarray, np.ndarray], ...]

    @cached_property
    def digest(self) -> str:
        """Hex digest of both."""
        parts = [self.normal, *(part for pose in self.joints for part in pose)]
        return hashlib.sha256(b"".join(np.ascontiguousarray(part).tobytes() for part in parts)).hexdigest()


@dataclass(frozen=True, eq=False)
class PlanarModel:
    """A mechanism in its plane: axes of the ground (rows x, y, normal), gravity there, links and cuts."""

    ground: Line
    gravity: np.ndarray
    links: tuple[PlanarLink, ...]
    cuts: tuple[PlanarCut, ...]

    def line(self, link: int) -> Line:
        """The line of a link, or of the ground for -1."""
        return self.ground if link == GROUND else self.links[link].line

    @property
    def own_rows(self) -> int:
        """Constraint rows of the links themselves: a distance each, two more on a slide, none if rigid."""
        return sum({"slide": 3, "rigid": 0}.get(link.role, 1) for link in self.links)


PLANE: Slot[None, Plane | None] = Slot("plane that only loops keep the mechanism in")
_DESCRIBED: Slot[None, PlanarModel] = Slot("mechanism in its plane")


def planar_model(model: Model) -> PlanarModel:
    """A mechanism in its plane; the error names the first joint that leads out of it.

    A mechanism that only its loops keep in the plane is known here once `structure.planarity.find_plane` was called.
    """
    return _DESCRIBED.find(model, None, lambda: described(model, PLANE.find(model, None, lambda: None)))


def put_planar_model(model: Model, planar: PlanarModel) -> None:
    """Describe a model by another text of the same mechanism: with symbols for its numbers."""
    _DESCRIBED.put(model, None, planar)


def plane_digest(model: Model) -> str:
    """Digest of the plane and the position that a mechanism is described from; empty where joints' axes suffice."""
    planar_model(model)
    plane = PLANE.find(model, None, lambda: None)
    return "" if plane is None else plane.digest


def described(model: Model, plane: Plane | None) -> PlanarModel:
    """A mechanism in its plane, by its joints' axes or from a known plane."""
    ground = Line(_ground_axes(_normal(model) if plane is None else plane.normal), 1.0)
    lines, links = {GROUND: ground}, []
    for i, link in enumerate(model.tree.links):
        above = lines[link.parent]
        K, R, p = link.E @ above.normal, np.eye(3), np.zeros(3)
        if plane is not None and not is_simple(link.kind, K):
            R, p = plane.joints[link.joint]
            R, p = (R.T, -(R.T @ p)) if link.kind.backwards else (R, p)
            role, u = role_of_motion(model, link.joint, link.kind, R, p, K)
            lines[i] = _line(model, i, snap(R.T @ K, EXACT))
            links.append(_measured_link(link, role, above, lines[i], (R, p, u)))
            continue
        role = role_of_axis(model, link.joint, link.kind, K, ground.normal, in_tree=True)
        lines[i] = _line(model, i, K)
        links.append(_planar_link(link, role, above, lines[i]))
    cuts = tuple(_planar_cut(model, j, lines, plane) for j in model.cuts)
    planar = PlanarModel(ground, ground.axes[:2] @ model.gravity, tuple(links), cuts)
    for cut in cuts:
        _require_rigid_loop(model, planar, cut)
    return planar


def in_plane(model: Model) -> np.ndarray:
    """Projectors (number of joints, 6, 6): the part of a joint's wrench, in its own axes, that acts in the plane."""
    planar = planar_model(model)
    result = np.zeros((len(model.joints), 6, 6))
    for j, joint in enumerate(model.joints):
        i, M = placed(model, joint.child, joint.child_at)
        K = M.rotation.T @ planar.line(i).normal
        result[j, :3, :3] = np.outer(K, K)
        result[j, 3:, 3:] = np.eye(3) - np.outer(K, K)
    return result


def placed(model: Model, body: int, at: Pose) -> tuple[int, Pose]:
    """The link that carries a frame on a body, and where in it."""
    return (GROUND, at) if body == GROUND else (model.tree.body_link[body], model.tree.body_pose[body] @ at)


def _normal(model: Model) -> np.ndarray:
    """The normal in ground axes: of the first joint that turns in a plane, else of the directions of the slides."""
    turned = {GROUND: np.eye(3)}  # axes of the links that do not turn, in ground components
    slides = []
    for i, link in enumerate(model.tree.links):
        if link.parent not in turned:
            continue
        R = turned[link.parent] @ link.E.T
        known = link.kind.in_plane
        if known.turns:
            return upwards(R[:, 2])
        if known.coordinates:
            slides.append(R[:, 2])
            turned[i] = R
    for j in model.cuts:
        joint = model.joints[j]
        i, F = placed(model, joint.parent, joint.at)
        if joint.kind.in_plane.turns and i in turned:
            return upwards(turned[i] @ F.rotation[:, 2])
    for k, u in enumerate(slides):
        for w in slides[:k]:
            if np.linalg.norm(np.cross(u, w)) > FLAT:
                return upwards(np.cross(w, u) / np.linalg.norm(np.cross(w, u)))
    return across_one(slides[0] if slides else np.zeros(3))


def across_one(u: np.ndarray) -> np.ndarray:
    """A normal across one direction (or any, for the zero vector), as near to a coordinate axis as possible."""
    axis = np.eye(3)[[2, 1, 0]][int(np.argmin(np.abs(u[[2, 1, 0]])))]
    return upwards((axis - u * (axis @ u)) / np.linalg.norm(axis - u * (axis @ u)))


def upwards(K: np.ndarray) -> np.ndarray:
    """The normal or its opposite: the one whose largest component is positive."""
    K = snap(K / np.linalg.norm(K), EXACT)
    return np.asarray(K * np.sign(K[np.argmax(np.abs(K))]))


def _ground_axes(K: np.ndarray) -> np.ndarray:
    """Rows x, y, K: x is as near to a coordinate axis as the plane allows."""
    x = np.eye(3)[int(np.argmin(np.abs(K)))]
    x = x - K * (K @ x)
    x = snap(x / np.linalg.norm(x), EXACT)
    return np.array([x, snap(np.cross(K, x), EXACT), K])


def _line(model: Model, i: int, K: np.ndarray) -> Line:
    """A link's line: to its next joint, else to a joint that closes a loop, else twice as far as the centre of mass,
    which is the end of a uniform rod, else any.

    With free numbers it is the line at their nominal values: any line of the link describes it.
    """
    links = [link for link in model.tree.links if link.parent == i]
    ends = [link.r for link in links if link.kind.in_plane.turns and link.kind.in_plane.along == "pin"]
    for j in model.cuts:
        for body, at in (
            (model.joints[j].parent, model.joints[j].at),
            (model.joints[j].child, model.joints[j].child_at),
        ):
            link, pose = placed(model, body, at)
            ends += [pose.position] if link == i else []
    ends.append(2 * model.tree.links[i].com)
    ends = [c - K * (K @ c) for c in map(nominal, ends)]
    far = max(float(np.linalg.norm(c)) for c in ends)
    for c in ends:
        length = float(np.linalg.norm(c))
        if length > max(APART, 1e-3 * far):
            x = snap(c / length, EXACT)
            return Line(np.array([x, snap(np.cross(K, x), EXACT), K]), length)
    return Line(_ground_axes(K), 1.0)


def _freedoms(kind: Kind, axes: np.ndarray, K: np.ndarray, line: Line) -> tuple[tuple[float, ...], tuple[Place, ...]]:
    """How each coordinate of a joint turns and shifts; the joint's x, y, z are rows of `axes`, on the line's link."""
    turn: list[float] = []
    slide: list[Place] = []
    for motion in kind.motions or ():
        axis, turns = axes[motion.axis], motion.what == "turn"
        turn.append(float(snap(np.array(axis @ K), EXACT)) if turns else 0.0)
        slide.append((0.0, 0.0) if turns else line.place(axis))
    return tuple(turn), tuple(slide)


def _planar_link(link: Link, role: str, above: Line, line: Line) -> PlanarLink:
    backwards = link.kind.backwards
    offset = _offset(link.E @ above.axes[0], link.E @ above.axes[1], line.axes[0])
    if backwards and role == "float":
        turn, slide = _freedoms(link.kind, np.eye(3), line.normal, line)
    else:
        turn, slide = _freedoms(link.kind, link.E, above.normal, above)
    if backwards:
        turn = tuple(-t for t in turn)
        slide = slide if role == "float" else tuple((-a, -b) for a, b in slide)
    seen, rise = above.axes @ link.E.T, scalar(above.normal @ link.r)
    return PlanarLink(
        link.name, link.parent, link.joint, role, backwards, None, seen, line, above.place(link.r), offset, turn, slide,
        *_inertia(link, line), rise, link.q, link.v,
    )  # fmt: skip


def _measured_link(
    link: Link, role: str, above: Line, line: Line, at: tuple[np.ndarray, np.ndarray, np.ndarray]
) -> PlanarLink:
    """A link whose joint has other coordinates than the plane's: from the pose of M in F, and a slide's direction."""
    R, p, u = at
    seen = above.axes @ link.E.T
    offset = _offset(seen[0], seen[1], R @ line.axes[0])
    place = above.place(link.r + (link.E.T @ p if role == "rigid" else 0.0))
    turn = (1.0,) if role == "pin" else (0.0,)
    rise = scalar(above.normal @ (link.r + link.E.T @ p))
    return PlanarLink(
        link.name, link.parent, link.joint, role, False, link.kind, seen, line, place, offset, turn,
        (above.place(link.E.T @ u),), *_inertia(link, line), rise, link.q, link.v,
    )  # fmt: skip


def _inertia(link: Link, line: Line) -> tuple[float, Place, float]:
    """Mass, first moment on the line, and inertia about P."""
    nu, lam = line.place(link.com)
    K = line.normal
    off = link.com - K * (K @ link.com)
    return link.mass, (link.mass * nu, link.mass * lam), scalar(K @ link.I_C @ K + link.mass * (off @ off))


def _offset(ahead: np.ndarray, left: np.ndarray, own: np.ndarray) -> float:
    """Angle from the parent's line, along `ahead`, to a link's own."""
    return float(np.arctan2(own @ left, own @ ahead))


def _planar_cut(model: Model, j: int, lines: dict[int, Line], plane: Plane | None) -> PlanarCut:
    joint = model.joints[j]
    (i, F), (c, M) = placed(model, joint.parent, joint.at), placed(model, joint.child, joint.child_at)
    K_F, K_M = F.rotation.T @ lines[i].normal, M.rotation.T @ lines[c].normal
    if plane is not None:
        R, p = plane.joints[j]
        role, u = role_of_motion(model, j, joint.kind, R, p, K_F)
    else:
        role, p, u = _role_of_axes(model, j, (K_F, K_M), lines[GROUND].normal), np.zeros(3), np.array([0.0, 0.0, 1.0])
        R = _about_z(K_F, K_M) if _turns_about_slide(joint.kind, role) else np.eye(3)
    # angle of the child's line to the parent's where the joint is closed
    ahead, left = (F.rotation.T @ axis for axis in lines[i].axes[:2])
    offset = _offset(ahead, left, R @ (M.rotation.T @ lines[c].axes[0]))
    at = lines[i].place(F.position + (F.rotation @ p if role == "rigid" else 0.0))
    simple = is_simple(joint.kind, K_F)
    freedoms = ((0.0,), (lines[i].place(F.rotation @ u),))
    turn, slide = _freedoms(joint.kind, F.rotation.T, lines[i].normal, lines[i]) if simple else freedoms
    return PlanarCut(j, role, i, c, at, lines[c].place(M.position), offset, turn, slide, simple)


def _role_of_axes(model: Model, j: int, K: tuple[np.ndarray, np.ndarray], normal: np.ndarray) -> str:
    """What a cut joint is in the plane; both of its sides must agree."""
    joint = model.joints[j]
    role, _ = (role_of_axis(model, j, joint.kind, own, normal, in_tree=False) for own in K)
    apart = float(np.linalg.norm(K[0] - K[1]))
    if role in ("slide", "rigid") and not _turns_about_slide(joint.kind, role) and apart > FLAT:
        raise ModelError(
            f"{not_planar(model)}: joint {joint.name!r} ({joint.kind.name}) takes body {child_name(model, joint)!r} "
            f"out of the plane; its two frames must see the normal alike, they differ by {apart:.4g}"
        )
    return role


def _turns_about_slide(kind: Kind, role: str) -> bool:
    """Whether a joint that slides in the plane also turns about its axis, which does not show in the plane."""
    return role == "slide" and kind.in_plane.along == "pin"


def _about_z(K_F: np.ndarray, K_M: np.ndarray) -> np.ndarray:
    """Rotation about z from one normal across z to the other; the identity for normals along z."""
    if abs(K_F[2]) > 0.5:
        return np.eye(3)
    angle = np.arctan2(K_F[1], K_F[0]) - np.arctan2(K_M[1], K_M[0])
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[c, -s, 0], [s, c, 0], [0, 0, 1.0]])


def _require_rigid_loop(model: Model, planar: PlanarModel, cut: PlanarCut) -> None:
    """Reject a loop of parallel slides: nothing holds its bodies along them, so its equations are singular."""
    way = _loop(planar, cut)
    if cut.role != "slide" or any(planar.links[i].role not in ("slide", "rigid") for i in way):
        return
    directions = [_angle(planar, cut.parent, cut.slide[-1])]
    slides = [planar.links[i] for i in way if planar.links[i].role == "slide"]
    directions += [_angle(planar, link.parent, link.slide[0]) for link in slides]
    spread = max(abs(np.sin(a - directions[0])) for a in directions)
    if spread <= FLAT:
        raise ModelError(
            f"model {model.name!r}: in the plane the loop closed by joint {model.joints[cut.joint].name!r} is "
            f"singular: all of its {len(directions)} joints are prismatic and parallel (largest sine between them "
            f"{spread:.2g}); one slide must have another direction, or be a revolute joint"
        )


def _loop(planar: PlanarModel, cut: PlanarCut) -> list[int]:
    """Links whose joints are in a cut's loop: on one way to the ground and not on the other."""
    ways: list[set[int]] = []
    for end in (cut.parent, cut.child):
        way = set()
        while end != GROUND:
            way.add(end)
            end = planar.links[end].parent
        ways.append(way)
    return sorted(ways[0] ^ ways[1])


def _angle(planar: PlanarModel, i: int, direction: Place) -> float:
    """Angle of a direction on a link's line to the ground's x axis, with every joint at rest."""
    angle = float(np.arctan2(direction[1], direction[0]))
    while i != GROUND:
        angle += planar.links[i].offset
        i = planar.links[i].parent
    return angle


FLAT = 1e-8  # largest sine of an angle that counts as none
AWAY = (0.3, -0.5)  # rad or m: how far a joint is displaced


def named_plane(normal: np.ndarray) -> str:
    """The plane in words; `normal` in the ground's axes."""
    return f"the plane with normal ({', '.join(f'{x + 0.0:.4g}' for x in normal)})"


def child_name(model: Model, joint: Joint) -> str:
    """The body that a joint carries, in messages."""
    return model.bodies[joint.child if joint.child != GROUND else joint.parent].name


def is_simple(kind: Kind, K: np.ndarray) -> bool:
    """Whether a joint's coordinates are angle and shifts in the plane as they stand."""
    along, within, coordinates = kind.in_plane
    if not coordinates:
        return False
    return bool(np.linalg.norm(K[:2]) <= FLAT) if along else bool(within and abs(K[2]) <= FLAT)


def _roles(kind: Kind, in_tree: bool) -> tuple[str | None, str | None]:
    """What a kind is with its axis along the normal, and in the plane; None where that is not known."""
    known = kind.in_plane.coordinates or not in_tree
    return (kind.in_plane.along, kind.in_plane.within) if known else (None, None)


def not_planar(model: Model) -> str:
    """How errors about it begin."""
    return f"model {model.name!r} is not planar"


def role_of_axis(model: Model, j: int, kind: Kind, K: np.ndarray, normal: np.ndarray, *, in_tree: bool) -> str:
    """What a joint is in the plane by its axis; the error names it, its body, the rule and the angle."""
    joint = model.joints[j]
    along, within = _roles(kind, in_tree)
    cosine = float(abs(K[2]))
    out = f"joint {joint.name!r} ({kind.title}) takes body {child_name(model, joint)!r} out of {named_plane(normal)}"
    if along is None and within is None:
        known = ", ".join(other.title for other in TABLE.values() if any(_roles(other, in_tree)))
        raise ModelError(f"{not_planar(model)}: {out}; a {kind.title} joint has no planar meaning here, use {known}")
    if along is not None and np.linalg.norm(K[:2]) <= FLAT:
        return along
    if within is not None and (cosine <= FLAT or along == within):
        return within
    angle = np.degrees(np.arccos(min(cosine, 1.0)))
    rule = "along the normal" if within is None else "in the plane" if along is None else "along it or in the plane"
    raise ModelError(
        f"{not_planar(model)}: {out}; its axis must be {rule}, it makes {angle:.4g} degrees with the normal"
    )


def role_of_motion(
    model: Model, j: int, kind: Kind, R: np.ndarray, p: np.ndarray, K: np.ndarray
) -> tuple[str, np.ndarray]:
    """What a joint is in the plane by how it moves there, from the pose of M in F, and a slide's direction (3,)."""
    turns = all(_allows(kind, _turn(K, angle) @ R, p) for angle in AWAY)
    shifts = [u for u in _shifts(kind, R, p, K) if all(_allows(kind, R, p + s * u) for s in AWAY)]
    roles = {(True, 0): "pin", (False, 1): "slide", (True, 2): "float", (False, 0): "rigid"}
    if (turns, len(shifts)) not in roles or (roles[turns, len(shifts)] == "rigid" and _moves_in_plane(kind, R, p, K)):
        raise ModelError(
            f"model {model.name!r}: joint {model.joints[j].name!r} ({kind.title}) is not a joint that `points` has in "
            f"the plane: turning {'is' if turns else 'is not'} free and shifting is in {len(shifts)} directions"
        )
    return roles[turns, len(shifts)], shifts[0] if shifts else np.zeros(3)


def _allows(kind: Kind, R: np.ndarray, p: np.ndarray) -> bool:
    return bool(np.abs(np.asarray(kind.phi(R, p))).max(initial=0.0) < 1e-7)


def _moves_in_plane(kind: Kind, R: np.ndarray, p: np.ndarray, K: np.ndarray) -> bool:
    """Whether a joint that neither turns about a point nor shifts along a line still moves in the plane."""
    q, plane = _measured(kind, R, p), np.linalg.svd(K[None, :])[2][1:]
    S = np.asarray(kind.S(q), dtype=float)
    if not S.shape[1]:
        return False
    B = np.zeros((6, 3))
    B[:3, 0], B[3:, 1:] = R.T @ K, R.T @ plane.T  # motions in the plane: a turn and two shifts, in M
    _, size, V = np.linalg.svd(B - S @ (np.linalg.pinv(S) @ B), full_matrices=True)
    rates = [np.linalg.pinv(S) @ (B @ V[k]) for k in range(3) if size[k] < 1e-7]
    return any(all(_stays(kind, kind.plus(q, s * v), R, p, K) for s in AWAY) for v in rates)


def _stays(kind: Kind, q: np.ndarray, R: np.ndarray, p: np.ndarray, K: np.ndarray) -> bool:
    """Whether the joint at other coordinates is turned about the normal and shifted in the plane only."""
    turned = np.eye(3) if kind.E is None else np.asarray(kind.E(q), dtype=float).T
    shifted = np.zeros(3) if kind.r is None else np.asarray(kind.r(q), dtype=float).ravel()
    return bool(np.abs(turned.T @ K - R.T @ K).max() < 1e-7 and abs(K @ (shifted - p)) < 1e-7)


def _measured(kind: Kind, R: np.ndarray, p: np.ndarray) -> np.ndarray:
    return np.asarray(kind.measure(R, p), dtype=float)


def _shifts(kind: Kind, R: np.ndarray, p: np.ndarray, K: np.ndarray) -> list[np.ndarray]:
    """Directions in the plane, in F, along which the joint's motion subspace has a shift."""
    plane = np.linalg.svd(K[None, :])[2][1:]  # two rows across K
    S = np.asarray(kind.S(_measured(kind, R, p)), dtype=float)
    B = np.concatenate([np.zeros((3, 2)), R.T @ plane.T])
    left = B - S @ (np.linalg.pinv(S) @ B) if S.shape[1] else B
    _, size, V = np.linalg.svd(left)
    return [V[k] @ plane for k in range(2) if size[k] < 1e-7]


def _turn(K: np.ndarray, angle: float) -> np.ndarray:
    """Rotation about K."""
    x, y, z = nominal(K)
    W = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return np.asarray(np.eye(3) + np.sin(angle) * W + (1 - np.cos(angle)) * W @ W)
