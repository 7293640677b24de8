"""The geometry of a drawn mechanism: points, lines and plates in body axes, independent of any graphics library.

A model has no visual geometry, so it is derived from its structure. A body is a rod or a plate through the points where
joints and force elements act and its centre of mass; with only one such point it is the box with its inertia. A joint
or force element is drawn by the mark that its kind declares. All points are in m, in the axes of a body; body -1 is the
ground. With the poses of the bodies the drawing moves.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np

from cardan.errors import ModelError
from cardan.model.body import Body
from cardan.model.field import MOMENT_AND_FORCE
from cardan.model.model import Model
from cardan.model.pose import Pose
from cardan.model.tree import GROUND
from cardan.structure.planarity import find_plane

SYMBOL = 0.06  # size of a joint symbol, relative to the typical length of a body
NEAR = 1e-6  # points nearer than this, relative to that length, are one
FLAT = 0.03  # a body thinner than this, relative to its length, is a rod


@dataclass(frozen=True, eq=False)
class BodyPoint:
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
    """A plate or solid of a body: corners (n, 3), m, and triangles (k, 3) of corner numbers."""

    body: int
    corners: np.ndarray
    triangles: np.ndarray


@dataclass(frozen=True, eq=False)
class JointAxis:
    """An axis of a joint: a column of its frame on a body, and its direction (3,) in the axes of that body."""

    body: int
    column: int
    direction: np.ndarray

    def in_ground(self, poses: np.ndarray) -> np.ndarray:
        """The direction (..., 3) in ground axes, for body poses (..., nb, 4, 4)."""
        return np.asarray(pose_of(poses, self.body)[..., :3, :3] @ self.direction)


@dataclass(frozen=True, eq=False)
class DrawnJoint:
    """A joint to draw: the mark of its kind, frame F on the parent, M on the child, and the axes to show.

    `slides` tells that the child moves along the first axis, on a rail of the parent.
    """

    name: str
    mark: str
    parent: int
    child: int
    at: Pose
    child_at: Pose
    axes: tuple[JointAxis, ...]
    slides: bool

    @property
    def holds(self) -> bool:
        """Whether the joint connects its bodies visibly; a free joint does not."""
        return self.mark != "none"

    def travel(self, poses: np.ndarray) -> tuple[float, float]:
        """Least and largest travel, m, of the child along the first axis over body poses (..., nb, 4, 4)."""
        start, end = (place(poses, b, at.position) for b, at in ((self.parent, self.at), (self.child, self.child_at)))
        along = np.sum((end - start) * self.axes[0].in_ground(poses), axis=-1)
        return float(np.nanmin(along)), float(np.nanmax(along))


@dataclass(frozen=True, eq=False)
class DrawnElement:
    """A force element to draw: the mark of its kind and the points where it acts.

    It has a point for each of its bodies. An element on a joint has the number of the joint, and one point, the origin
    of the joint frame on the child. `load` (6,) is the value of a constant wrench, moment (N m) and force (N), None for
    other elements; it is in ground axes, or in the axes of the body if it `follows` the body.
    """

    name: str
    mark: str
    ends: tuple[BodyPoint, ...]
    joint: int | None = None
    load: np.ndarray | None = None
    follows: bool = False


@dataclass(frozen=True, eq=False)
class Geometry:
    """The geometry of a model. `size` (m) is that of a joint symbol, `length` (m) the typical length of a body.

    `plane` (3, 3) has the rows x, y, normal (ground axes) of a planar mechanism's plane; None for a spatial mechanism.
    """

    names: tuple[str, ...]
    size: float
    length: float
    strokes: tuple[Stroke, ...]
    plates: tuple[Plate, ...]
    centres: tuple[BodyPoint, ...]
    joints: tuple[DrawnJoint, ...]
    elements: tuple[DrawnElement, ...]
    plane: np.ndarray | None


def pose_of(poses: np.ndarray, body: int) -> np.ndarray:
    """Pose (..., 4, 4) of a body or the ground, from the poses (..., nb, 4, 4) of all bodies."""
    return np.eye(4) if body == GROUND else poses[..., body, :, :]


def place(poses: np.ndarray, body: int, points: np.ndarray) -> np.ndarray:
    """Points (n, 3) of a body, or one point (3,), in ground axes: (..., n, 3) or (..., 3)."""
    pose = pose_of(poses, body)
    R, p = pose[..., :3, :3], pose[..., :3, 3]
    if points.ndim == 1:
        return R @ points + p
    return points @ np.swapaxes(R, -1, -2) + p[..., None, :]


def upwards(model: Model) -> np.ndarray:
    """Unit vector (3,) opposite to gravity, in ground axes; z without gravity."""
    g = model.unbound.gravity
    return -g / np.linalg.norm(g) if g.any() else np.array([0.0, 0.0, 1.0])


def geometry_of(model: Model) -> Geometry:
    """Derive the geometry of a model; a batch of free parameters is refused."""
    model.require_one("draw")
    plane, model = _plane(model), model.settled()
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
    centres = tuple(BodyPoint(b, body.com) for b, body in enumerate(model.bodies) if body.mass > 0)
    return Geometry(model.body_names, size, length, tuple(strokes), tuple(plates), centres, joints, elements, plane)


def _plane(model: Model) -> np.ndarray | None:
    """Rows x, y, normal: y is opposite to gravity if it acts in the plane; x is nearly along a ground axis."""
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


def _joints(model: Model) -> tuple[DrawnJoint, ...]:
    found = []
    for joint in model.joints:
        kind, sides = joint.kind, {"parent": (joint.parent, joint.at), "child": (joint.child, joint.child_at)}
        axes = tuple(JointAxis(sides[s][0], k, sides[s][1].rotation[:, k]) for s, k in kind.shown_axes)
        found.append(
            DrawnJoint(joint.name, kind.mark, joint.parent, joint.child, joint.at, joint.child_at, axes,
                       kind.slides and bool(axes))
        )  # fmt: skip
    return tuple(found)


def _elements(model: Model) -> tuple[DrawnElement, ...]:
    found = []
    for force in model.forces:
        mark, given = force.kind.mark, force.numbers
        if force.kind.on == "joint":
            joint = model.joints[force.on[0]]
            end = BodyPoint(joint.child, joint.child_at.position)
            found.append(DrawnElement(force.name, mark, (end,), force.on[0]))
            continue
        points = [given[name] for name in ("at", "at1", "at2") if name in given]
        if len(points) != len(force.on):
            points = [np.zeros(3) if b == GROUND else model.bodies[b].com for b in force.on]
        loads = [name for name, field in force.kind.fields.items() if field.form == MOMENT_AND_FORCE]
        load = given[loads[0]] if loads else None
        ends = tuple(map(BodyPoint, force.on, points))
        found.append(DrawnElement(force.name, mark, ends, None, load, bool(given.get("follows", False))))
    return tuple(found)


def _held(model: Model, joints: tuple[DrawnJoint, ...], elements: tuple[DrawnElement, ...]) -> list[np.ndarray]:
    """For each body the points (n, 3) where joints and force elements act."""
    points: list[list[np.ndarray]] = [[] for _ in range(model.nb + 1)]  # the last is the ground
    for joint in joints:
        if joint.holds:
            points[joint.parent].append(joint.at.position)
            points[joint.child].append(joint.child_at.position)
    for element in elements:
        if element.joint is None:
            for end in element.ends:
                points[end.body].append(end.position)
    return [np.array(own).reshape(-1, 3) for own in points[: model.nb]]


def _span(body: Body, points: np.ndarray) -> float:
    """Largest distance between points of a body; with one point only, twice its radius of gyration."""
    every = np.vstack([points, body.com]) if body.mass > 0 else points
    far = max((float(np.linalg.norm(a - b)) for a, b in combinations(every, 2)), default=0.0)
    if far > 0 or body.mass == 0:
        return far
    return 2 * float(np.sqrt(np.trace(body.inertia) / (2 * body.mass)))


def _outline(b: int, body: Body, points: np.ndarray, length: float, size: float) -> tuple[list[Stroke], list[Plate]]:
    """A body as a rod or a plate through its points; with one point only, the box with its inertia."""
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
    """Remove points that are near an earlier one."""
    kept: list[np.ndarray] = []
    for p in points:
        if all(np.linalg.norm(p - other) > tolerance for other in kept):
            kept.append(p)
    return np.array(kept).reshape(-1, 3)


def _directions(points: np.ndarray) -> tuple[int, np.ndarray]:
    """Number of directions in which points extend, and these directions as rows."""
    if len(points) < 2:
        return 0, np.eye(3)
    _, s, axes = np.linalg.svd(points - points.mean(axis=0))
    return int((s > FLAT * s[0]).sum()) if s[0] > 0 else 0, axes


def _hull(points: np.ndarray, rank: int, axes: np.ndarray) -> tuple[np.ndarray, np.ndarray, list[tuple[int, int]]]:
    """Convex hull of points in a plane or in space: corners, triangles, and edges between faces."""
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
    """The box with the inertia of a body, limited in size."""
    if body.mass == 0:
        return [], []
    moments, axes = np.linalg.eigh(body.inertia)
    squares = 6 * (moments.sum() - 2 * moments) / body.mass  # sides^2: Ixx = m (b^2 + c^2) / 12
    half = np.clip(np.sqrt(np.maximum(squares, 0)) / 2, 0.5 * size, 2.2 * size)
    signs = np.array([(x, y, z) for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)])
    corners = body.com + (signs * half) @ axes.T
    _, triangles, edges = _hull(corners, 3, axes.T)
    return [Stroke(b, corners[list(edge)]) for edge in edges], [Plate(b, corners, triangles)]
