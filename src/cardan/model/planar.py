"""Whether a mechanism moves in a plane, and what it looks like there.

Every link turns about the plane's normal `K` alone, so `K` is constant in the link's own axes. A link has a line, from
its frame's origin P (the joint that carries it) to a second point Q, preferably its next joint; any other point is
`P + nu d + lam K x d` with `d = Q - P`, and `(nu, lam)` never change. In the plane a joint is a pin (it turns), a
slide, a float (both: no constraint), or rigid. Units: m, rad, kg, kg m^2.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cardan.algebra.matrix import snap
from cardan.algebra.number import nominal, scalar
from cardan.errors import ModelError
from cardan.model.body import Joint
from cardan.model.graph import GROUND, Link
from cardan.model.joint import Kind
from cardan.model.model import Model
from cardan.model.pose import Pose

FLAT = 1e-8  # largest sine of an angle that counts as none
APART = 1e-9  # m: smallest distance between the two points of a line
EXACT = 1e-12  # numbers so near to 0, 1 or -1 are that

# What a joint kind is in the plane: with its axis along the normal, with its axis in the plane, either way None.
TREE_ROLES: dict[str, tuple[str | None, str | None]] = {
    "revolute": ("pin", None), "prismatic": (None, "slide"), "planar": ("float", None),
}  # fmt: skip
CUT_ROLES: dict[str, tuple[str | None, str | None]] = {
    **TREE_ROLES, "cylindrical": ("pin", "slide"), "spherical": ("pin", "pin"), "rigid": ("rigid", "rigid"),
    "free": ("float", "float"),
}  # fmt: skip
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
    its own if the joint is met `backwards`. `first` is mass times `(nu, lam)` of the centre of mass; `inertia` is
    about P; `rise` how far P is above the parent's, along the normal.
    """

    name: str
    parent: int
    joint: int
    role: str
    backwards: bool
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
    """A joint that closes a loop, between links `parent` and `child`; as in `PlanarLink`."""

    joint: int
    role: str
    parent: int
    child: int
    at: Place
    child_at: Place
    offset: float
    turn: tuple[float, ...]
    slide: tuple[Place, ...]


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


def is_planar(model: Model) -> bool:
    """Whether a mechanism moves in a plane."""
    try:
        planar_model(model)
    except ModelError:
        return False
    return True


def planar_model(model: Model) -> PlanarModel:
    """A mechanism in its plane; if it leaves it, the error names the first joint that does."""
    if "planar" not in model.kernels:
        model.kernels["planar"] = _planar_model(model)
    found: PlanarModel = model.kernels["planar"]
    return found


def _planar_model(model: Model) -> PlanarModel:
    ground = Line(_ground_axes(_normal(model)), 1.0)
    lines, links = {GROUND: ground}, []
    for i, link in enumerate(model.tree.links):
        K = link.E @ lines[link.parent].normal
        role = _role(model, link.joint, TREE_ROLES, link.kind, K, ground.normal)
        lines[i] = _line(model, i, K)
        links.append(_planar_link(link, role, lines[link.parent], lines[i]))
    cuts = tuple(_planar_cut(model, j, lines) for j in model.cuts)
    planar = PlanarModel(ground, ground.axes[:2] @ model.gravity, tuple(links), cuts)
    for cut in cuts:
        _require_rigid_loop(model, planar, cut)
    return planar


def in_plane(model: Model) -> np.ndarray:
    """Projectors (number of joints, 6, 6): the part of a joint's wrench, in its own axes, that acts in the plane.

    The formulation `points` knows this part alone; the rest of its reactions is zero.
    """
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
        name = _base(link.kind)
        if name in ("revolute", "planar"):
            return _upwards(R[:, 2])
        if name == "prismatic":
            slides.append(R[:, 2])
            turned[i] = R
    for j in model.cuts:
        joint = model.joints[j]
        i, F = placed(model, joint.parent, joint.at)
        if joint.kind.name in ("revolute", "planar") and i in turned:
            return _upwards(turned[i] @ F.rotation[:, 2])
    for k, u in enumerate(slides):
        for w in slides[:k]:
            if np.linalg.norm(np.cross(u, w)) > FLAT:
                return _upwards(np.cross(w, u) / np.linalg.norm(np.cross(w, u)))
    u = slides[0] if slides else np.zeros(3)
    axis = np.eye(3)[[2, 1, 0]][int(np.argmin(np.abs(u[[2, 1, 0]])))]
    return _upwards((axis - u * (axis @ u)) / np.linalg.norm(axis - u * (axis @ u)))


def _upwards(K: np.ndarray) -> np.ndarray:
    """The normal or its opposite: the one whose largest component is positive."""
    K = snap(K / np.linalg.norm(K), EXACT)
    return np.asarray(K * np.sign(K[np.argmax(np.abs(K))]))


def _ground_axes(K: np.ndarray) -> np.ndarray:
    """Rows x, y, K: x is as near to a coordinate axis as the plane allows."""
    x = np.eye(3)[int(np.argmin(np.abs(K)))]
    x = x - K * (K @ x)
    x = snap(x / np.linalg.norm(x), EXACT)
    return np.array([x, snap(np.cross(K, x), EXACT), K])


def _base(kind: Kind) -> str:
    return kind.name.removeprefix("reversed ").partition("(")[0]


def _role(
    model: Model,
    j: int,
    roles: dict[str, tuple[str | None, str | None]],
    kind: Kind,
    K: np.ndarray,
    normal: np.ndarray,
) -> str:
    """What a joint is in the plane, `K` being its normal in the joint's axes."""
    joint, name = model.joints[j], _base(kind)
    along, within = roles.get(name, (None, None))
    cosine = float(abs(K[2]))
    plane = f"the plane with normal ({', '.join(f'{x:.4g}' for x in normal)})"
    if along is None and within is None:
        wanted = ", ".join(roles)
        raise ModelError(
            f"formulation 'points': joint {joint.name!r} ({name}) takes body {_child(model, joint)!r} out of {plane}; "
            f"a {name} joint has no planar meaning here, use {wanted}"
        )
    if along is not None and np.linalg.norm(K[:2]) <= FLAT:
        return along
    if within is not None and (cosine <= FLAT or along == within):
        return within
    angle = np.degrees(np.arccos(min(cosine, 1.0)))
    rule = "along the normal" if within is None else "in the plane" if along is None else "along it or in the plane"
    raise ModelError(
        f"formulation 'points': joint {joint.name!r} ({name}) takes body {_child(model, joint)!r} out of {plane}; its "
        f"axis must be {rule}, it makes {angle:.4g} degrees with the normal"
    )


def _child(model: Model, joint: Joint) -> str:
    return model.bodies[joint.child if joint.child != GROUND else joint.parent].name


def _line(model: Model, i: int, K: np.ndarray) -> Line:
    """A link's line: to its next joint, else to a joint that closes a loop, else to the centre of mass, else any.

    With free numbers it is the line at their nominal values: any line of the link describes it.
    """
    ends = [link.r for link in model.tree.links if link.parent == i and _base(link.kind) == "revolute"]
    for j in model.cuts:
        for body, at in (
            (model.joints[j].parent, model.joints[j].at),
            (model.joints[j].child, model.joints[j].child_at),
        ):
            link, pose = placed(model, body, at)
            ends += [pose.position] if link == i else []
    ends.append(model.tree.links[i].com)
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
    x, y, z = axes
    none = (0.0, 0.0)
    sign = float(snap(np.array(z @ K), EXACT))
    table: dict[str, tuple[tuple[float, ...], tuple[Place, ...]]] = {
        "revolute": ((sign,), (none,)),
        "prismatic": ((0.0,), (line.place(z),)),
        "planar": ((0.0, 0.0, sign), (line.place(x), line.place(y), none)),
        "cylindrical": ((sign, 0.0), (none, line.place(z))),
        "spherical": (tuple(float(c) for c in axes @ K), (none,) * 3),
        "rigid": ((), ()),
        "free": ((0.0,) * 6, (none,) * 6),
    }
    return table[_base(kind)]


def _planar_link(link: Link, role: str, above: Line, line: Line) -> PlanarLink:
    backwards = link.kind.name.startswith("reversed")
    x, y = link.E @ above.axes[0], link.E @ above.axes[1]  # the parent's line, in the joint's axes
    offset = float(np.arctan2(line.axes[0] @ y, line.axes[0] @ x))
    if backwards and role == "float":
        turn, slide = _freedoms(link.kind, np.eye(3), line.normal, line)
    else:
        turn, slide = _freedoms(link.kind, link.E, above.normal, above)
    if backwards:
        turn = tuple(-t for t in turn)
        slide = slide if role == "float" else tuple((-a, -b) for a, b in slide)
    nu, lam = line.place(link.com)
    K = line.normal
    off = link.com - K * (K @ link.com)
    inertia = scalar(K @ link.I_C @ K + link.mass * (off @ off))
    return PlanarLink(
        link.name, link.parent, link.joint, role, backwards, line, above.place(link.r), offset, turn, slide,
        link.mass, (link.mass * nu, link.mass * lam), inertia, scalar(above.normal @ link.r), link.q, link.v,
    )  # fmt: skip


def _planar_cut(model: Model, j: int, lines: dict[int, Line]) -> PlanarCut:
    joint = model.joints[j]
    (p, F), (c, M) = placed(model, joint.parent, joint.at), placed(model, joint.child, joint.child_at)
    K_F, K_M = F.rotation.T @ lines[p].normal, M.rotation.T @ lines[c].normal
    role = _role(model, j, CUT_ROLES, joint.kind, K_F, lines[GROUND].normal)
    _role(model, j, CUT_ROLES, joint.kind, K_M, lines[GROUND].normal)
    if role in ("slide", "rigid") and joint.kind.name != "cylindrical" and np.linalg.norm(K_F - K_M) > FLAT:
        raise ModelError(
            f"formulation 'points': joint {joint.name!r} ({joint.kind.name}) takes body {_child(model, joint)!r} out "
            f"of the plane; its two frames must see the normal alike, they differ by {np.linalg.norm(K_F - K_M):.4g}"
        )
    if joint.kind.name == "free" and any(f.kind.on == "joint" and f.on[0] == j for f in model.forces):
        raise ModelError(
            f"formulation 'points': joint {joint.name!r} (free) closes a loop and has a force element along its six "
            "coordinates, which has no planar meaning here; use a bushing between the two bodies"
        )
    # angle of the child's line to the parent's where F and M have the same axes
    ahead, left = (F.rotation.T @ axis for axis in lines[p].axes[:2])
    own = M.rotation.T @ lines[c].axes[0]
    offset = float(np.arctan2(own @ left, own @ ahead))
    turn, slide = _freedoms(joint.kind, F.rotation.T, lines[p].normal, lines[p])
    if joint.kind.name == "spherical":  # its rates are in the child's axes
        turn, slide = _freedoms(joint.kind, M.rotation.T, lines[c].normal, lines[c])
    return PlanarCut(j, role, p, c, lines[p].place(F.position), lines[c].place(M.position), offset, turn, slide)


def _require_rigid_loop(model: Model, planar: PlanarModel, cut: PlanarCut) -> None:
    """Refuse a loop of parallel slides: nothing holds its bodies along them, and its equations say nothing."""
    way = _loop(planar, cut)
    if cut.role != "slide" or any(planar.links[i].role != "slide" for i in way):
        return
    directions = [_angle(planar, cut.parent, cut.slide[-1])]
    directions += [_angle(planar, planar.links[i].parent, planar.links[i].slide[0]) for i in way]
    spread = max(abs(np.sin(a - directions[0])) for a in directions)
    if spread <= FLAT:
        raise ModelError(
            f"formulation 'points': the loop closed by joint {model.joints[cut.joint].name!r} is singular: all of its "
            f"{len(directions)} joints are prismatic and parallel (largest sine between them {spread:.2g}); one slide "
            "must have another direction, or be a revolute joint"
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
