"""From the shape of a model and the poses of its bodies to a scene: what is drawn where, seen from which side."""

from __future__ import annotations

from typing import Any

import numpy as np

from cardan.errors import InputError
from cardan.model.model import Model
from cardan.model.tree import GROUND
from cardan.results import signs
from cardan.results.paper import COLOURS, INK
from cardan.results.scene import Scene, View, ring
from cardan.results.shape import JointMark, Shape, place, pose_of

BODY_WIDTH = 2.6  # pt
SMALLEST, LARGEST = 0.022, 0.06  # size of a joint's mark, of the whole picture
VIEWS = tuple((azimuth, elevation) for elevation in (22.0, 35.0) for azimuth in (-60.0, -30.0, -75.0, -120.0, -150.0))
BETTER = 1.25  # how much more another view must show than the first to be chosen
DIRECTIONS = np.array([(0.0, -1.0), (0.0, 1.0), (-1.0, 0.0), (1.0, 0.0)])  # where the ground may lie, best first


def body_colour(body: int) -> str:
    """Colour of a body; the ground is ink, and so no body is black."""
    return INK if body == GROUND else COLOURS[body % (len(COLOURS) - 1)]


def begin(model: Model, shape: Shape, poses: np.ndarray, view: Any) -> Scene:
    """An empty scene for body poses (..., nb, 4, 4), seen from the side that is asked for or shows most."""
    points = np.vstack([_spots(shape, one) for one in poses.reshape(-1, *poses.shape[-3:])])
    chosen = _chosen_view(model, shape, points, view)
    seen = chosen(points)
    whole = float(np.max(np.ptp(seen, axis=0))) or shape.length
    return Scene(chosen, float(np.clip(shape.size, SMALLEST * whole, LARGEST * whole)))


def add_bodies(scene: Scene, shape: Shape, poses: np.ndarray) -> None:
    """Rods and plates; a body held at one point is a wheel about its hinge, or in the sign of its slider."""
    compact = _compact(shape) if scene.view.flat else {}
    for body, (middle, radius) in compact.items():
        if radius:
            rim = scene.view(place(poses, body, middle)) + radius * ring(64)
            scene.sheet_area(rim, 0.0, body_colour(body), "plate", opacity=0.18, width=0.0)
            scene.sheet_line(np.vstack([rim, rim[:1]]), 0.0, body_colour(body), 1.6, "body")
    for plate in (plate for plate in shape.plates if plate.body not in compact):
        corners = place(poses, plate.body, plate.corners)
        scene.area(corners, body_colour(plate.body), "plate", width=0.0, opacity=0.18)
    for stroke in (stroke for stroke in shape.strokes if stroke.body not in compact):
        points = place(poses, stroke.body, stroke.points)
        if not (scene.view.flat or scene.ghost):
            scene.line(points, "#ffffff", BODY_WIDTH + 1.8, "body")  # a margin, where it passes over another
        scene.line(points, body_colour(stroke.body), BODY_WIDTH, "body")


def _compact(shape: Shape) -> dict[int, tuple[np.ndarray, float]]:
    """Bodies held at one point that joints hold well visibly: their middle, and the radius of a wheel or 0."""
    found = {}
    for plate in shape.plates:
        middle = plate.corners.mean(axis=0)
        is_box = len(plate.corners) == 8 and np.allclose(plate.corners + plate.corners[::-1], 2 * middle)
        kinds = {mark.kind for mark in shape.joints if plate.body in (mark.parent, mark.child)}
        if is_box and kinds & {"prismatic", "revolute"}:
            half = np.sort(np.ptp(plate.corners, axis=0))[1] / 2
            found[plate.body] = (middle, 0.0 if "prismatic" in kinds else float(half))
    return found


def add_centres(scene: Scene, shape: Shape, poses: np.ndarray) -> None:
    """Centres of mass, but not under the sign of a joint."""
    joints = [scene.view(_where(mark, poses)) for mark in shape.joints if mark.kind != "free"]
    for point in shape.centres:
        at = place(poses, point.body, point.position)
        if all(np.linalg.norm(scene.view(at) - other) > 0.6 * scene.unit for other in joints):
            scene.nearest = _nearest(scene, shape, poses, point.body)
            signs.centre(scene, at)
    scene.nearest = -np.inf


def add_joints(scene: Scene, shape: Shape, poses: np.ndarray, travelled: np.ndarray) -> None:
    """The signs of the joints, their rails as far as they are used over `travelled` poses, and the ground."""
    standing: list[np.ndarray] = []
    for mark in shape.joints:
        at = _where(mark, poses)
        axes = [pose_of(poses, axis.body)[:3, :3] @ axis.direction for axis in mark.axes]
        if mark.slides:
            _rail(scene, mark, poses, travelled)
        if GROUND in (mark.parent, mark.child) and mark.kind not in ("free", "planar"):
            on_rail = mark.slides and mark.parent == GROUND
            if not on_rail and all(np.linalg.norm(scene.view(at) - other) > scene.unit for other in standing):
                standing.append(scene.view(at))
                signs.support(scene, at, _side(scene, shape, mark, poses), mark.kind == "rigid")
        scene.nearest = _nearest(scene, shape, poses, mark.parent, mark.child)
        signs.JOINTS[mark.kind](scene, at, axes)
        scene.nearest = -np.inf


def _nearest(scene: Scene, shape: Shape, poses: np.ndarray, *bodies: int) -> float:
    """How near to the viewer some bodies are drawn."""
    solids = [(s.body, s.points) for s in shape.strokes] + [(p.body, p.corners) for p in shape.plates]
    depths = [scene.view.depth(place(poses, body, points)) for body, points in solids if body in bodies]
    return max(depths, default=-np.inf)


def add_elements(scene: Scene, model: Model, shape: Shape, poses: np.ndarray) -> None:
    """Springs, dampers, loads and drives."""
    taken: list[np.ndarray] = []
    for mark in shape.elements:
        points = [place(poses, end.body, end.position) for end in mark.ends]
        if mark.joint is not None:
            _along_joint(scene, mark.kind, shape.joints[mark.joint], poses)
        elif len(points) == 2:
            middle = scene.view((points[0] + points[1]) / 2)
            same = sum(float(np.linalg.norm(middle - other)) < scene.unit for other in taken)
            taken.append(middle)
            signs.between(scene, mark.kind, points[0], points[1], 1.3 * scene.unit * same)
            for end, at, other in zip(mark.ends, points, points[::-1], strict=True):
                away = scene.view(at - other)
                if end.body == GROUND and np.linalg.norm(away) > 1e-9 * scene.unit:
                    signs.support(scene, at, away / np.linalg.norm(away), clamp=True)
        elif mark.kind == "wrench":
            _load(scene, model, mark.name, points[0], poses)
    for coupling in model.couplings:
        if len(coupling.joints) == 1:
            _along_joint(scene, "motion", shape.joints[coupling.joints[0]], poses)


def _chosen_view(model: Model, shape: Shape, points: np.ndarray, view: Any) -> View:
    if view is None and shape.plane is not None:
        return View(shape.plane, True)
    if view is not None:
        return _from_angles(model, *_angles(view))
    views = [_from_angles(model, *angles) for angles in VIEWS]
    shown = [_spread(each(points)) for each in views]
    best = int(np.argmax(shown))
    return views[best] if shown[best] > BETTER * shown[0] else views[0]


def _angles(view: Any) -> tuple[float, float]:
    try:
        azimuth, elevation = (float(angle) for angle in view)
    except (TypeError, ValueError):
        azimuth = np.nan
    if not np.isfinite(azimuth) or not np.isfinite(elevation):
        raise InputError(f"draw: view must be two angles, azimuth and elevation in degrees, got {view!r}")
    return azimuth, elevation


def _from_angles(model: Model, azimuth: float, elevation: float) -> View:
    """Look from an azimuth (deg, from the first horizontal axis) and an elevation (deg) above the horizontal."""
    g = model.unbound.gravity
    up = -g / np.linalg.norm(g) if np.linalg.norm(g) > 0 else np.array([0.0, 0.0, 1.0])
    first = np.eye(3)[0] if abs(up[0]) < 0.9 else np.eye(3)[1]
    first = first - up * (up @ first)
    first /= np.linalg.norm(first)
    second = np.cross(up, first)
    a, e = np.radians(azimuth), np.radians(np.clip(elevation, -90, 90))
    towards = np.cos(e) * (np.cos(a) * first + np.sin(a) * second) + np.sin(e) * up
    right = -np.sin(a) * first + np.cos(a) * second
    return View(np.array([right, np.cross(towards, right), towards]), False)


def _spread(points: np.ndarray) -> float:
    """How much of the sheet points (n, 2) cover."""
    return float(np.sqrt(max(np.linalg.det(np.cov(points.T)), 0.0))) if len(points) > 1 else 0.0


def _spots(shape: Shape, poses: np.ndarray) -> np.ndarray:
    """Everything that has a place (n, 3)."""
    found = [place(poses, stroke.body, stroke.points) for stroke in shape.strokes]
    found += [_where(mark, poses)[None] for mark in shape.joints if mark.kind != "free"]
    found += [place(poses, end.body, end.position)[None] for mark in shape.elements for end in mark.ends]
    found += [place(poses, point.body, point.position)[None] for point in shape.centres]
    return np.vstack(found) if found else np.zeros((1, 3))


def _where(mark: JointMark, poses: np.ndarray) -> np.ndarray:
    """Where a joint's sign is: on its child."""
    return place(poses, mark.child, mark.child_at.position)


def _side(scene: Scene, shape: Shape, mark: JointMark, poses: np.ndarray) -> np.ndarray:
    """On which side of a joint the ground lies: below, unless the body itself is there."""
    body = mark.child if mark.parent == GROUND else mark.parent
    at = scene.view(_where(mark, poses))
    ways = []
    for stroke in (stroke for stroke in shape.strokes if stroke.body == body):
        ends = scene.view(place(poses, body, stroke.points)) - at
        ways += [end / np.linalg.norm(end) for end in ends if np.linalg.norm(end) > scene.unit]
    hidden = [max((float(way @ side) for way in ways), default=-1.0) for side in DIRECTIONS]
    clear = [k for k, cosine in enumerate(hidden) if cosine < 0.6]
    side: np.ndarray = DIRECTIONS[clear[0] if clear else int(np.argmin(hidden))]
    return side


def _rail(scene: Scene, mark: JointMark, poses: np.ndarray, travelled: np.ndarray) -> None:
    """The way of a slider: a hatched line beneath it on the ground, a line through it on a body."""
    F = pose_of(poses, mark.parent) @ mark.at.matrix
    z, u = F[:3, 2], scene.unit
    lowest, highest = mark.travel(travelled)
    if mark.parent != GROUND:
        reach = [min(lowest, 0.0) - 1.6 * u, max(highest, 0.0) + 1.6 * u]
        scene.line([F[:3, 3] + s * z for s in reach], body_colour(mark.parent), 1.6, "rail")
        return
    ends = np.array([F[:3, 3] + (lowest - 3.2 * u) * z, F[:3, 3] + (highest + 3.2 * u) * z])
    a, b = scene.view(ends)
    along = (b - a) / max(float(np.linalg.norm(b - a)), 1e-300)
    side = np.array([along[1], -along[0]])
    side = -side if side[1] > 1e-9 or (abs(side[1]) <= 1e-9 and side[0] > 0) else side
    if scene.view.flat and mark.kind == "prismatic":
        signs.hatching(scene, a + 0.55 * u * side, b + 0.55 * u * side, side, scene.view.depth(ends))
        return
    scene.line(ends, INK, 1.4, "rail")
    for end, foot in zip(ends, (a, b), strict=True):
        signs.hatching(scene, foot - 0.5 * u * side, foot + 0.5 * u * side, along * (1 if foot is b else -1),
                       scene.view.depth(end))  # fmt: skip


def _along_joint(scene: Scene, kind: str, mark: JointMark, poses: np.ndarray) -> None:
    """An element along a joint's coordinate: a torsion spring, a drive, a prescribed motion."""
    at = _where(mark, poses)
    if not mark.slides or mark.kind != "prismatic":
        draw = {"torsion": signs.spiral, "drive": signs.turning_arrow, "motion": signs.turning_arrow}.get(kind)
        if draw is not None:
            draw(scene, at)
        return
    F = pose_of(poses, mark.parent) @ mark.at.matrix
    if kind == "torsion":
        signs.between(scene, "spring", F[:3, 3], at, 0.0)
    elif kind in ("drive", "motion"):
        z = scene.view(F[:3, 2])
        side = np.array([-z[1], z[0]]) / max(float(np.linalg.norm(z)), 1e-300)
        side = side if side[1] >= 0 else -side
        tail = scene.view(at) + 1.0 * scene.unit * side - 1.2 * scene.unit * z
        signs.arrow(scene, tail, tail + 2.4 * scene.unit * z, scene.view.depth(at))


def _load(scene: Scene, model: Model, name: str, at: np.ndarray, poses: np.ndarray) -> None:
    """An arrow along the force of a wrench, its tip where it acts; a moment alone is an arrow around the point."""
    force = next(force for force in model.forces if force.name == name)
    way = np.asarray(force.numbers["value"])[3:]
    if force.numbers["follows"]:
        way = pose_of(poses, force.on[0])[:3, :3] @ way
    along = scene.view(way)
    length = float(np.linalg.norm(along))
    if length <= 1e-9 * max(float(np.linalg.norm(way)), 1e-300):
        signs.turning_arrow(scene, at)
        return
    tip = scene.view(at)
    signs.arrow(scene, tip - 4.0 * scene.unit * along / length, tip - 0.35 * scene.unit * along / length,
                scene.view.depth(at))  # fmt: skip
