"""What a mechanism looks like: a description in numbers, for whichever library draws it.

A model has no visual geometry, so its picture follows from its structure. A body is a rod or a plate through the points
where joints and force elements hold it and its centre of mass; held at one point only, it is the box with its inertia.
A joint is a mark of its kind, a force element a line between its ends. Everything is fixed to a body: points in m in
its axes, body -1 is the ground. With the poses of the bodies the picture moves.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np

from cardan.errors import ModelError
from cardan.model.body import Body
from cardan.model.model import Model
from cardan.model.pose import Pose
from cardan.model.tree import GROUND
from cardan.structure.planarity import find_plane

SYMBOL = 0.06  # size of a joint's mark, of the usual length of a body
NEAR = 1e-6  # points nearer than this, of that length, are one
FLAT = 0.03  # of its length: a body thinner than this is a rod

# The axes a joint shows, and on which side: column of its frame F on the parent or M on the child.
AXES: dict[str, tuple[tuple[str, int], ...]] = {
    "revolute": (("child", 2),),
    "prismatic": (("parent", 2),),
    "cylindrical": (("parent", 2),),
    "screw": (("parent", 2),),
    "planar": (("parent", 2),),
    "universal": (("parent", 0), ("child", 1)),
}
SLIDING = ("prismatic", "cylindrical", "screw")


@dataclass(frozen=True, eq=False)
class Point:
    """A point (3,) of a body, m, in its axes."""

    body: int
    position: np.ndarray


@dataclass(frozen=True, eq=False)
class Stroke:
    """A line through points (n, 3), m, of a body."""

    body: int
    points: np.ndarray


@dataclass(frozen=True, eq=False)
class Plate:
    """A solid: corners (n, 3), m, of a body, and triangles (k, 3) of their numbers, seen from both sides."""

    body: int
    corners: np.ndarray
    triangles: np.ndarray


@dataclass(frozen=True, eq=False)
class Axis:
    """A unit direction (3,) of a body."""

    body: int
    direction: np.ndarray


@dataclass(frozen=True, eq=False)
class JointMark:
    """A joint: its number, kind ("revolute", "screw", ...), frame F on the parent, M on the child, and its axes."""

    index: int
    name: str
    kind: str
    parent: int
    child: int
    at: Pose
    child_at: Pose
    axes: tuple[Axis, ...]

    @property
    def slides(self) -> bool:
        """Whether the child moves along the first axis, on a rail of the parent."""
        return self.kind in SLIDING

    def travel(self, poses: np.ndarray) -> tuple[float, float]:
        """How far, m, the child slides along the axis, least and most over body poses (..., nb, 4, 4)."""
        F, M = (pose_of(poses, body) @ at.matrix for body, at in ((self.parent, self.at), (self.child, self.child_at)))
        along = np.sum((M[..., :3, 3] - F[..., :3, 3]) * F[..., :3, 2], axis=-1)
        return float(np.nanmin(along)), float(np.nanmax(along))


@dataclass(frozen=True, eq=False)
class ElementMark:
    """A force element: kind ("spring", "damper", "bushing", "wrench", "torsion", ...) and the points it acts on.

    Two points for what acts between bodies, one for a load. An element along a joint, with its number, has the
    joint's frame on the child.
    """

    name: str
    kind: str
    ends: tuple[Point, ...]
    joint: int | None = None


@dataclass(frozen=True, eq=False)
class Shape:
    """The picture of a model. `size` (m) is that of a joint's mark; `length` (m) the usual length of a body.

    `plane` (3, 3) are the rows x, y, normal (ground axes) of a planar mechanism's plane, None of another.
    """

    names: tuple[str, ...]
    size: float
    length: float
    strokes: tuple[Stroke, ...]
    plates: tuple[Plate, ...]
    centres: tuple[Point, ...]
    joints: tuple[JointMark, ...]
    elements: tuple[ElementMark, ...]
    plane: np.ndarray | None


def pose_of(poses: np.ndarray, body: int) -> np.ndarray:
    """Pose (..., 4, 4) of a body, or of the ground, out of poses (..., nb, 4, 4)."""
    return np.eye(4) if body == GROUND else poses[..., body, :, :]


def place(poses: np.ndarray, body: int, points: np.ndarray) -> np.ndarray:
    """Points (n, 3) of a body, or one (3,), in ground axes: (..., n, 3) or (..., 3)."""
    pose = pose_of(poses, body)
    R, p = pose[..., :3, :3], pose[..., :3, 3]
    if points.ndim == 1:
        return R @ points + p
    return points @ np.swapaxes(R, -1, -2) + p[..., None, :]


def shape_of(model: Model) -> Shape:
    """Derive the picture of a model, one mechanism at a time."""
    model.require_one("shape")
    plane = _plane(model)
    model = model.settled()
    joints, elements = _joints(model), _elements(model)
    held = _held(model, joints, elements)
    spans = [_span(body, points) for body, points in zip(model.bodies, held, strict=True)]
    usual = [span for span in spans if span > 0] or [1.0]
    length = float(np.median(usual))
    size = float(np.clip(0.012 * sum(usual), max(SYMBOL * length, 0.01 * max(usual)), 0.25 * max(usual)))
    strokes: list[Stroke] = []
    plates: list[Plate] = []
    for b, (body, points) in enumerate(zip(model.bodies, held, strict=True)):
        outline, plate = _outline(b, body, points, length, size)
        strokes += outline
        plates += plate
    centres = tuple(Point(b, body.com) for b, body in enumerate(model.bodies) if body.mass > 0)
    return Shape(model.body_names, size, length, tuple(strokes), tuple(plates), centres, joints, elements, plane)


def _plane(model: Model) -> np.ndarray | None:
    """Rows x, y, normal: gravity, if it acts in the plane, points down, and x along the ground's axes, not against."""
    if model.nv == 0:
        return None
    try:
        x, y, K = find_plane(model).ground.axes
    except ModelError:
        return None
    down = model.unbound.gravity - K * (K @ model.unbound.gravity)
    if np.linalg.norm(down) > 0:
        y = -down / np.linalg.norm(down)
        x = np.cross(y, K)
    if x[np.argmax(np.abs(x))] < 0:
        x, K = -x, -K
    return np.array([x, y, K])


def _joints(model: Model) -> tuple[JointMark, ...]:
    marks = []
    for j, joint in enumerate(model.joints):
        kind = joint.kind.title
        side = {"parent": (joint.parent, joint.at), "child": (joint.child, joint.child_at)}
        axes = tuple(Axis(side[where][0], side[where][1].rotation[:, k]) for where, k in AXES.get(kind, ()))
        marks.append(JointMark(j, joint.name, kind, joint.parent, joint.child, joint.at, joint.child_at, axes))
    return tuple(marks)


def _elements(model: Model) -> tuple[ElementMark, ...]:
    marks = []
    for force in model.forces:
        kind = force.kind.name
        if force.kind.on == "joint":
            joint = model.joints[force.on[0]]
            marks.append(ElementMark(force.name, kind, (Point(joint.child, joint.child_at.position),), force.on[0]))
            continue
        given = [force.numbers[name] for name in ("at", "at1", "at2") if name in force.numbers]
        spots = given or [_centre(model, b) for b in force.on]
        marks.append(ElementMark(force.name, kind, tuple(map(Point, force.on, spots))))
    return tuple(marks)


def _centre(model: Model, body: int) -> np.ndarray:
    return np.zeros(3) if body == GROUND else model.bodies[body].com


def _held(model: Model, joints: tuple[JointMark, ...], elements: tuple[ElementMark, ...]) -> list[np.ndarray]:
    """For each body the points (n, 3) where joints and force elements hold it; a free joint holds nothing."""
    points: list[list[np.ndarray]] = [[] for _ in range(model.nb + 1)]  # the last is the ground
    for mark in joints:
        if mark.kind == "free":
            continue
        points[mark.parent].append(mark.at.position)
        points[mark.child].append(mark.child_at.position)
    for element in elements:
        if element.joint is None:
            for end in element.ends:
                points[end.body].append(end.position)
    return [np.array(own).reshape(-1, 3) for own in points[: model.nb]]


def _span(body: Body, points: np.ndarray) -> float:
    """Largest distance between points that belong to a body; of a body held at one, twice its radius of gyration."""
    every = np.vstack([points, body.com]) if body.mass > 0 else points
    far = max((float(np.linalg.norm(a - b)) for a, b in combinations(every, 2)), default=0.0)
    if far > 0 or body.mass == 0:
        return far
    return 2 * float(np.sqrt(np.trace(body.inertia) / (2 * body.mass)))


def _outline(b: int, body: Body, points: np.ndarray, length: float, size: float) -> tuple[list[Stroke], list[Plate]]:
    """Draw a body through its points: a rod, a plate, or where it has one point only the box with its inertia."""
    every = _apart(points, NEAR * length)
    with_com = _apart(np.vstack([every, body.com]), 0.3 * size) if body.mass > 0 else every
    rank, axes = _directions(with_com)
    if len(with_com) < 2 or rank == 0:
        return _box(b, body, with_com, size)
    if rank == 1:
        along = (with_com - with_com[0]) @ axes[0]
        return [Stroke(b, with_com[np.argsort(along)][[0, -1]])], []
    corners, triangles, edges = _hull(with_com, rank, axes)
    return [Stroke(b, corners[list(edge)]) for edge in edges], [Plate(b, corners, triangles)]


def _apart(points: np.ndarray, tolerance: float) -> np.ndarray:
    """Leave out points that are near an earlier one."""
    kept: list[np.ndarray] = []
    for p in points:
        if all(np.linalg.norm(p - other) > tolerance for other in kept):
            kept.append(p)
    return np.array(kept).reshape(-1, 3)


def _directions(points: np.ndarray) -> tuple[int, np.ndarray]:
    """In how many directions points extend, and these as rows."""
    if len(points) < 2:
        return 0, np.eye(3)
    _, s, axes = np.linalg.svd(points - points.mean(axis=0))
    return int((s > FLAT * s[0]).sum()) if s[0] > 0 else 0, axes


def _hull(points: np.ndarray, rank: int, axes: np.ndarray) -> tuple[np.ndarray, np.ndarray, list[tuple[int, int]]]:
    """Convex hull of points in a plane or in space: corners, triangles, and the edges between faces."""
    from scipy.spatial import ConvexHull

    flat = (points - points.mean(axis=0)) @ axes[:rank].T
    hull = ConvexHull(flat)
    if rank == 2:
        ring = hull.vertices
        fan = np.array([(0, k, k + 1) for k in range(1, len(ring) - 1)])
        return points[ring], fan, [(k, (k + 1) % len(ring)) for k in range(len(ring))]
    sides: dict[tuple[int, int], list[np.ndarray]] = {}
    for triangle, equation in zip(hull.simplices, hull.equations, strict=True):
        for i, j in combinations(sorted(triangle.tolist()), 2):
            sides.setdefault((i, j), []).append(equation[:3])
    edges = [edge for edge, normals in sides.items() if normals[0] @ normals[-1] < 1 - 1e-6]
    return points, hull.simplices, edges


def _box(b: int, body: Body, points: np.ndarray, size: float) -> tuple[list[Stroke], list[Plate]]:
    """The box with a body's inertia, but not very small or large beside the rest."""
    if body.mass == 0:
        return [], []
    moments, axes = np.linalg.eigh(body.inertia)
    squares = 6 * (moments.sum() - 2 * moments) / body.mass  # sides^2: Ixx = m (b^2 + c^2) / 12
    half = np.clip(np.sqrt(np.maximum(squares, 0)) / 2, 0.5 * size, 2.2 * size)
    signs = np.array([(x, y, z) for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)])
    corners = body.com + (signs * half) @ axes.T
    _, triangles, edges = _hull(corners, 3, axes.T)
    return [Stroke(b, corners[list(edge)]) for edge in edges], [Plate(b, corners, triangles)]
