"""The geometry of a drawn mechanism: points, lines and plates in body axes, independent of any graphics library.

A body without a shape is a rod or a plate through its joints, the points where force elements act and its named
frames. Where its mass lies beyond these points it reaches as far as a uniform body with its inertia would; one that is
held at its centre of mass only is the box with its inertia. What rolls has circles of its radius. A joint or element is
drawn by the mark that its kind declares. All points are in m, in the axes of a body; body -1 is the ground. With the
poses of the bodies the drawing moves.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from cardan.algebra.rotation import rotation_to_axis
from cardan.errors import ModelError
from cardan.functions.kinematics import body_poses
from cardan.model.body import Body
from cardan.model.curve import Curve
from cardan.model.field import MOMENT_AND_FORCE
from cardan.model.model import Model
from cardan.model.pose import Pose
from cardan.model.shape import MeshFile
from cardan.model.tree import GROUND
from cardan.structure.planarity import find_plane

SYMBOL = 0.06  # size of a joint symbol, relative to the typical length of a body
NEAR = 1e-6  # points nearer than this, relative to that length, are one
SMALLEST, LARGEST = 0.012, 0.04  # size of a joint symbol, relative to the whole mechanism
FLAT = 0.03  # a body thinner than this, relative to its length, is a rod
BESIDE = 0.1  # mass farther than this from the points of its body, relative to its size, is drawn
ALIKE = 0.05  # two principal moments that differ by less, relative to the largest, are those of a cylinder
ROUND = 24  # corners of a circle
LIGHT = 1e-3  # a body lighter than this, relative to the whole mass, is small
ROLLING = (("at1", "radius"), ("at2", "radius2"))  # centre and radius of what rolls, and of what it rolls on
BEYOND = 0.5  # mass farther than this reaches as far as a uniform rod


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
    """A plate or solid of a body: corners (n, 3), m, and triangles (k, 3) of corner numbers.

    A solid that stands for the inertia of a body held at one point has the `radius` (m) of a disk with this inertia; 0
    for others.
    """

    body: int
    corners: np.ndarray
    triangles: np.ndarray
    radius: float = 0.0


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

    `slides` tells that the child moves along the first axis, on a rail of the parent. `reach` has, along that axis,
    the least and largest coordinates, m, of the parent from its frame F and of the child from its frame M.
    `track` are points (n, 3) of the parent, m, of a line along which the child runs.
    """

    name: str
    mark: str
    parent: int
    child: int
    at: Pose
    child_at: Pose
    axes: tuple[JointAxis, ...]
    slides: bool
    reach: tuple[tuple[float, float], tuple[float, float]] = ((0.0, 0.0), (0.0, 0.0))
    track: np.ndarray | None = None

    @property
    def holds(self) -> bool:
        """Whether the joint connects its bodies visibly; a free joint does not."""
        return self.mark != "none"

    def travel(self, poses: np.ndarray) -> tuple[float, float]:
        """Least and largest travel, m, of the child along the first axis over body poses (..., nb, 4, 4)."""
        start, end = (place(poses, b, at.position) for b, at in ((self.parent, self.at), (self.child, self.child_at)))
        along = np.sum((end - start) * self.axes[0].in_ground(poses), axis=-1)
        return float(np.nanmin(along)), float(np.nanmax(along))

    def collar(self, poses: np.ndarray) -> float | None:
        """Where the end of a parent guides the child, as a cylinder its piston rod.

        Decided at the first of body poses (..., nb, 4, 4). A coordinate along the first axis, m, from the frame on the
        parent. None if the child does not pass through an end of the parent: it is a block, and the parent has a rail.
        """
        (low, high), (near, far) = self.reach
        if self.parent == GROUND or near == far:
            return None
        at, _ = self.travel(poses.reshape(-1, *poses.shape[-3:])[0])
        ends = [end for end in (high, low) if at + near <= end <= at + far]
        return ends[0] if ends else None

    def rail(self, poses: np.ndarray, block: float) -> tuple[float, float]:
        """The ends of the rail of a block with this half length, m: its travel over poses (..., nb, 4, 4).

        On a body, the rail also goes as far as the nearest part of the body.
        """
        least, most = self.travel(poses)
        least, most = least - block, most + block
        if self.parent == GROUND:
            return least, most
        low, high = self.reach[0]
        return min(least, max(low, min(high, least))), max(most, min(high, max(low, most)))


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
    Bodies that are `shaped` (-1 is the ground) have shapes of their own; their rods and plates are a skeleton inside.
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
    shaped: frozenset[int] = frozenset()
    arms: tuple[Stroke, ...] = ()
    """Thin rods from joints to the shapes of their bodies, where these are clearly apart."""

    def hangs(self, joint: DrawnJoint, poses: np.ndarray, up: np.ndarray) -> bool:
        """Whether the rods and plates of a joint's child are below it at the first of body poses (..., nb, 4, 4)."""
        first = poses.reshape(-1, *poses.shape[-3:])[0]
        at = place(first, joint.child, joint.child_at.position)
        own = [place(first, joint.child, stroke.points) for stroke in self.strokes if stroke.body == joint.child]
        way = np.vstack(own).mean(axis=0) - at if own else np.zeros(3)
        return bool(np.linalg.norm(way) > 2 * self.size and way @ up < -0.6 * np.linalg.norm(way))

    @property
    def sticks(self) -> frozenset[int]:
        """Bodies that are drawn as rods and plates."""
        return frozenset(stroke.body for stroke in self.strokes if stroke.body not in self.shaped)

    def needs_symbol(self, joint: DrawnJoint) -> bool:
        """Whether a joint is between rods and plates; shapes show by themselves how they are joined."""
        return not self.shaped or (not self.shaped & {joint.parent, joint.child} and joint.child in self.sticks)


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
    every = _held(model, joints, elements)
    held = [_reached(body, points) for body, points in zip(model.bodies, every, strict=True)]
    spans = [_span(body, points) for body, points in zip(model.bodies, held, strict=True)]
    usual = [span for span in spans if span > 0] or [1.0]
    length = float(np.median(usual))
    tracks = [Stroke(joint.parent, joint.track) for joint in joints if joint.track is not None]
    for element in model.constraint_elements:
        curves = [x for x in element.functions.values() if isinstance(x, Curve)]
        tracks += [
            Stroke(element.on[1], element.numbers["at2"] + curve.line() @ element.numbers["at2_rotation"].T)
            for curve in curves
        ]
    whole = max(_extent(model, held), max(usual))
    size = float(np.clip(SYMBOL * length, SMALLEST * whole, LARGEST * whole))
    joints = tuple(_with_reach(joint, held) for joint in joints)
    mass = sum(body.mass for body in model.bodies)
    shaped = {b for b, body in enumerate(model.bodies) if body.shapes} | ({GROUND} if model.ground_shapes else set())
    strokes: list[Stroke] = [*tracks]
    plates: list[Plate] = []
    for b, (body, points) in enumerate(zip(model.bodies, held, strict=True)):
        light = body.mass < LIGHT * mass  # such as the frame of a sensor, whose inertia is a made-up number
        if shaped and b not in shaped and (light or _widest(every[b]) <= NEAR * length):
            continue  # a frame of a robot whose parts have shapes
        slides = any(joint.slides and b in (joint.parent, joint.child) for joint in joints)
        most = size if light else 5 * size if slides else length
        outline, plate = _outline(b, body, points, most, size, round_=not slides)
        strokes += outline
        plates += plate
    strokes += [stroke for stroke in _contacts(model, size) if stroke.body not in shaped]
    centres = tuple(BodyPoint(b, body.com) for b, body in enumerate(model.bodies) if body.mass > 0)
    return Geometry(model.body_names, size, length, tuple(strokes), tuple(plates), centres, joints, elements, plane,
                    frozenset(shaped), tuple(_arms(model, joints, size)))  # fmt: skip


def _arms(model: Model, joints: tuple[DrawnJoint, ...], size: float) -> list[Stroke]:
    """A rod from every joint that lies outside the box around the shapes of its body, to the middle of that box.

    Meshes in files are left out: they are read only to be shown, and a robot's reach their joints.
    """
    found = []
    for b, body in enumerate(model.bodies):
        if not body.shapes or any(isinstance(shape, MeshFile) for shape in body.shapes):
            continue
        vertices = np.vstack([shape.surface().vertices for shape in body.shapes])
        low, high = vertices.min(axis=0), vertices.max(axis=0)
        apart = max(size, 0.1 * float(np.linalg.norm(high - low)))
        ends = [joint.at.position for joint in joints if joint.holds and not joint.slides and joint.parent == b]
        ends += [joint.child_at.position for joint in joints if joint.holds and not joint.slides and joint.child == b]
        outside = [end for end in ends if np.linalg.norm(end - np.clip(end, low, high)) > apart]
        found += [Stroke(b, np.array([end, (low + high) / 2])) for end in outside]
    return found


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
        track = None if kind.track is None else joint.at.position + kind.track() @ joint.at.rotation.T
        found.append(
            DrawnJoint(joint.name, kind.mark, joint.parent, joint.child, joint.at, joint.child_at, axes,
                       kind.slides and bool(axes), track=track)
        )  # fmt: skip
    return tuple(found)


def _elements(model: Model) -> tuple[DrawnElement, ...]:
    found = []
    for force in model.forces:
        mark, given = force.kind.mark, force.numbers
        if force.kind.on != "bodies":
            joint = model.joints[force.on[0]]
            end = BodyPoint(joint.child, joint.child_at.position)
            found.append(DrawnElement(force.name, mark, (end,), force.on[0]))
            continue
        if mark == "contact":  # where it acts depends on the pose
            continue
        points = [given[name] for name in ("at", "at1", "at2") if name in given]
        on = force.on
        if len(points) == 1 and "at" in given:
            on = force.on[:1]  # one point where it holds several, as a latch: of the first body
        elif len(points) != len(on):
            points = [np.zeros(3) if b == GROUND else model.bodies[b].com for b in on]
        loads = [name for name, field in force.kind.fields.items() if field.form == MOMENT_AND_FORCE]
        load = given[loads[0]] if loads else None
        ends = tuple(map(BodyPoint, on, points))
        found.append(DrawnElement(force.name, mark, ends, None, load, bool(given.get("follows", False))))
    for element in model.constraint_elements:
        points = [element.numbers[name] for name in ("at", "at1", "at2") if name in element.numbers]
        if element.kind.mark != "contact" and len(points) == len(element.on):
            found.append(DrawnElement(element.name, element.kind.mark, tuple(map(BodyPoint, element.on, points))))
    return tuple(found)


def _contacts(model: Model, size: float) -> list[Stroke]:
    """Circles of what rolls: one of a wheel, two of a sphere; a short line along an edge. None on the ground."""
    found = []
    angle = np.linspace(0.0, 2 * np.pi, ROUND + 1)
    circle = np.column_stack([np.cos(angle), np.sin(angle), 0 * angle])
    for element in (element for element in model.constraint_elements if element.kind.mark == "contact"):
        given = element.numbers
        if "edge" in given:
            way = given["edge"] / np.linalg.norm(given["edge"])
            found.append(Stroke(element.on[0], given["at1"] + 3 * size * np.outer([-1.0, 1.0], way)))
        wheels = [(element.on[k], given[at], given[r]) for k, (at, r) in enumerate(ROLLING) if r in given]
        for body, at, radius in wheels:
            axes = [given["axis"]] if "axis" in given else [np.array([0.0, 0, 1]), np.array([1.0, 0, 0])]
            for axis in axes:
                found.append(Stroke(body, at + radius * circle @ rotation_to_axis(axis / np.linalg.norm(axis)).T))
    return [stroke for stroke in found if stroke.body != GROUND]


def _held(model: Model, joints: tuple[DrawnJoint, ...], elements: tuple[DrawnElement, ...]) -> list[np.ndarray]:
    """For each body the points (n, 3) of its joints, force elements and named frames."""
    points: list[list[np.ndarray]] = [[] for _ in range(model.nb + 1)]  # the last is the ground
    for joint in joints:
        if joint.holds:
            points[joint.parent].append(joint.at.position)
            points[joint.child].append(joint.child_at.position)
    for element in elements:
        if element.joint is None:
            for end in element.ends:
                points[end.body].append(end.position)
    for frame in model.frames:
        points[frame.body].append(frame.at.position)
    return [np.array(own).reshape(-1, 3) for own in points[: model.nb]]


def _extent(model: Model, held: list[np.ndarray]) -> float:
    """Largest distance along a ground axis, m, between points of the bodies at the model's start."""
    poses = np.asarray(body_poses(model, model.start())) if model.nb else np.zeros((0, 4, 4))
    placed = [place(poses, b, points) for b, points in enumerate(held) if len(points)]
    return float(np.ptp(np.vstack(placed), axis=0).max()) if placed else 0.0


def _with_reach(joint: DrawnJoint, held: list[np.ndarray]) -> DrawnJoint:
    """A joint with the reach of its bodies along its first axis, if it slides."""
    if not joint.slides:
        return joint
    column, reach = joint.axes[0].column, []
    for body, at in ((joint.parent, joint.at), (joint.child, joint.child_at)):
        points = held[body] if body != GROUND else np.zeros((0, 3))
        along = np.append((points - at.position) @ at.rotation[:, column], 0.0)
        reach.append((float(along.min()), float(along.max())))
    return replace(joint, reach=(reach[0], reach[1]))


def _reached(body: Body, points: np.ndarray) -> np.ndarray:
    """The points of a body, and where its mass reaches beyond them.

    Along the line from the nearest of the points to the centre of mass, mass with the second moment m s^2 about its
    centre is a uniform rod that reaches sqrt(3) s to both sides. A link whose mass lies between its joints, and a wheel
    held at its centre, have nothing beyond their points. Mass beside the points is reached at its centre.
    """
    if body.mass == 0 or not len(points):
        return points
    foot = _nearest_point(points, body.com)
    offset, widest = float(np.linalg.norm(body.com - foot)), _widest(points)
    if offset == 0:
        return points
    along = (body.com - foot) / offset
    second = float(np.trace(body.inertia) / 2 - along @ body.inertia @ along) / body.mass
    half = np.sqrt(3 * max(second, 0.0))
    if offset < BESIDE * max(half, widest):
        return points
    if offset < BEYOND * half or offset + half < BEYOND * widest:
        return np.vstack([points, body.com])
    ends = [body.com + half * along]
    if widest == 0 and half > (1 + FLAT) * offset:
        ends.append(body.com - half * along)  # the joint is between both ends
    return np.vstack([points, ends])


def _nearest_point(points: np.ndarray, to: np.ndarray) -> np.ndarray:
    """The point nearest to another one in the convex hull of points (n, 3): weights >= 0 with the sum 1."""
    from scipy.optimize import nnls

    scale = max(float(np.abs(points - to).max()), 1e-300)
    rows = np.vstack([(points - to).T / scale, np.full(len(points), 1e3)])
    weights, _ = nnls(rows, np.array([0.0, 0.0, 0.0, 1e3]))
    found: np.ndarray = weights @ points / weights.sum()
    return found


def _widest(points: np.ndarray) -> float:
    """Largest distance between points, m."""
    return max((float(np.linalg.norm(a - b)) for a, b in combinations(points, 2)), default=0.0)


def _span(body: Body, points: np.ndarray) -> float:
    """Largest distance between points of a body; with one point only, twice its radius of gyration."""
    far = _widest(points)
    if far > 0 or body.mass == 0:
        return far
    return 2 * float(np.sqrt(np.trace(body.inertia) / (2 * body.mass)))


def _outline(
    b: int, body: Body, points: np.ndarray, length: float, size: float, round_: bool
) -> tuple[list[Stroke], list[Plate]]:
    """A body as a rod or a plate through its points; with one point only, its inertia as a box of at most `length`."""
    every = _apart(points, NEAR * length)
    rank, axes = _directions(every)
    if len(every) < 2 or rank == 0:
        return _box(b, body, length, size, round_)
    if rank == 1:
        along = (every - every[0]) @ axes[0]
        return [Stroke(b, every[np.argsort(along)][[0, -1]])], []
    corners, triangles, edges = _hull(every, rank, axes)
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


def _box(b: int, body: Body, length: float, size: float, round_: bool) -> tuple[list[Stroke], list[Plate]]:
    """The inertia of a body as a cylinder, if it may be `round_`, or as a box: large enough to see, up to `length`."""
    if body.mass == 0:
        return [], []
    moments, axes = np.linalg.eigh(body.inertia / body.mass)
    squares = 6 * (moments.sum() - 2 * moments)  # sides^2: Ixx = m (b^2 + c^2) / 12
    half = np.sqrt(np.maximum(squares, 0)) / 2
    lone = 0 if moments[2] - moments[1] < moments[1] - moments[0] else 2  # the moment that is not as the other two
    radius = float(np.sqrt(2 * max(moments[lone], 0.0)))  # a moment of 0 may be -1e-20
    limit = max(size, length / 2)
    factor = min(1.0, limit / max(float(half.max()), radius, 1e-300))
    pair = [k for k in range(3) if k != lone]
    alike = round_ and abs(moments[pair[0]] - moments[pair[1]]) < ALIKE * moments[2]
    if alike and abs(moments[lone] - moments[pair].mean()) > ALIKE * moments[2]:
        thick = float(np.sqrt(max(3 * moments[pair].mean() - 0.75 * radius**2, 0.0)))  # half the length of a cylinder
        return _cylinder(b, body, np.roll(axes, 2 - lone, axis=1), max(factor * radius, 0.3 * size),
                         max(factor * thick, 0.1 * size))  # fmt: skip
    half = np.maximum(factor * half, 0.3 * size)
    signs = np.array([(x, y, z) for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)])
    corners = body.com + (signs * half) @ axes.T
    _, triangles, edges = _hull(corners, 3, axes.T)
    widest = float(np.linalg.norm(np.sort(half)[1:])) * np.sqrt(2 / 3)
    return [Stroke(b, corners[list(edge)]) for edge in edges], [Plate(b, corners, triangles, widest)]


def _cylinder(b: int, body: Body, axes: np.ndarray, radius: float, half: float) -> tuple[list[Stroke], list[Plate]]:
    """A cylinder about the last of the axes (columns), with half its length."""
    angle = 2 * np.pi * np.arange(ROUND) / ROUND
    rim = radius * np.column_stack([np.cos(angle), np.sin(angle), 0 * angle])
    rings = [body.com + (rim + np.array([0.0, 0.0, z])) @ axes.T for z in (-half, half)]
    corners = np.vstack(rings)
    _, triangles, _ = _hull(corners, 3, axes.T)
    return [Stroke(b, np.vstack([ring, ring[:1]])) for ring in rings], [Plate(b, corners, triangles, radius)]
