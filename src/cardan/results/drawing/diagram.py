"""The kinematic diagram of a mechanism: its geometry at given poses, drawn on a canvas."""

from __future__ import annotations

from typing import Any

import numpy as np

from cardan.errors import InputError
from cardan.model.model import Model
from cardan.model.tree import GROUND
from cardan.results.drawing import symbols
from cardan.results.drawing.canvas import Canvas, View, ring
from cardan.results.figure import COLOURS, INK
from cardan.results.geometry import DrawnElement, DrawnJoint, Geometry, place, pose_of

BODY_WIDTH = 2.6  # pt
SMALLEST, LARGEST = 0.022, 0.06  # size of a joint symbol, relative to the whole picture
VIEWS = tuple((azimuth, elevation) for elevation in (22.0, 35.0) for azimuth in (-60.0, -30.0, -75.0, -120.0, -150.0))
BETTER = 1.25  # factor by which another view must show more than the first to be chosen
DIRECTIONS = np.array([(0.0, -1.0), (0.0, 1.0), (-1.0, 0.0), (1.0, 0.0)])  # sides for a support, best first


def body_colour(body: int) -> str:
    """Colour of a body; the ground has the colour of ink, and no body is black."""
    return INK if body == GROUND else COLOURS[body % (len(COLOURS) - 1)]


def begin(model: Model, geometry: Geometry, poses: np.ndarray, view: Any) -> Canvas:
    """An empty canvas for body poses (..., nb, 4, 4), with the given view or the one that shows most."""
    points = np.vstack([_points(geometry, one) for one in poses.reshape(-1, *poses.shape[-3:])])
    chosen = _chosen_view(model, geometry, points, view)
    seen = chosen(points)
    whole = float(np.max(np.ptp(seen, axis=0))) or geometry.length
    return Canvas(chosen, float(np.clip(geometry.size, SMALLEST * whole, LARGEST * whole)))


def add_bodies(canvas: Canvas, geometry: Geometry, poses: np.ndarray) -> None:
    """Draw rods and plates; in the flat view a compact body is a wheel about its hinge, or the block of its slider."""
    compact = _compact(geometry) if canvas.view.flat else {}
    for body, (middle, radius) in compact.items():
        if radius:
            rim = canvas.view(place(poses, body, middle)) + radius * ring(64)
            canvas.flat_area(rim, 0.0, body_colour(body), "plate", opacity=0.18, width=0.0)
            canvas.flat_line(np.vstack([rim, rim[:1]]), 0.0, body_colour(body), 1.6, "body")
    for plate in (plate for plate in geometry.plates if plate.body not in compact):
        corners = place(poses, plate.body, plate.corners)
        canvas.area(corners, body_colour(plate.body), "plate", width=0.0, opacity=0.18)
    for stroke in (stroke for stroke in geometry.strokes if stroke.body not in compact):
        points = place(poses, stroke.body, stroke.points)
        if not (canvas.view.flat or canvas.ghost):
            canvas.line(
                points, "#ffffff", BODY_WIDTH + 1.8, "body"
            )  # a margin where it passes in front of another body
        canvas.line(points, body_colour(stroke.body), BODY_WIDTH, "body")


def _compact(geometry: Geometry) -> dict[int, tuple[np.ndarray, float]]:
    """Bodies held at one point by a hinge or a slider: their middle, and the radius of a wheel, or 0 for a slider."""
    found = {}
    for plate in geometry.plates:
        middle = plate.corners.mean(axis=0)
        is_box = len(plate.corners) == 8 and np.allclose(plate.corners + plate.corners[::-1], 2 * middle)
        marks = {joint.mark for joint in geometry.joints if plate.body in (joint.parent, joint.child)}
        if is_box and marks & {"pin", "rail"}:
            half = np.sort(np.ptp(plate.corners, axis=0))[1] / 2
            found[plate.body] = (middle, 0.0 if "rail" in marks else float(half))
    return found


def add_centres(canvas: Canvas, geometry: Geometry, poses: np.ndarray) -> None:
    """Draw centres of mass, except those under the symbol of a joint."""
    joints = [canvas.view(joint_position(joint, poses)) for joint in geometry.joints if joint.holds]
    for point in geometry.centres:
        at = place(poses, point.body, point.position)
        if all(np.linalg.norm(canvas.view(at) - other) > 0.6 * canvas.unit for other in joints):
            canvas.nearest = _nearest(canvas, geometry, poses, point.body)
            symbols.centre(canvas, at)
    canvas.nearest = -np.inf


def add_joints(canvas: Canvas, geometry: Geometry, poses: np.ndarray, travelled: np.ndarray) -> None:
    """Draw the joints, their supports on the ground, and rails as long as their travel over the poses `travelled`."""
    standing: list[np.ndarray] = []
    for joint in geometry.joints:
        at, symbol = joint_position(joint, poses), symbols.joint_symbol(joint)
        if joint.slides:
            _draw_rail(canvas, joint, poses, travelled)
        if GROUND in (joint.parent, joint.child) and symbol.ground != "none":
            on_rail = joint.slides and joint.parent == GROUND
            if not on_rail and all(np.linalg.norm(canvas.view(at) - other) > canvas.unit for other in standing):
                standing.append(canvas.view(at))
                symbols.support(canvas, at, _side(canvas, geometry, joint, poses), symbol.ground == "clamp")
        canvas.nearest = _nearest(canvas, geometry, poses, joint.parent, joint.child)
        symbol.draw(canvas, at, [axis.in_ground(poses) for axis in joint.axes])
        canvas.nearest = -np.inf


def _nearest(canvas: Canvas, geometry: Geometry, poses: np.ndarray, *bodies: int) -> float:
    """Depth at which the nearest of some bodies is drawn."""
    solids = [(s.body, s.points) for s in geometry.strokes] + [(p.body, p.corners) for p in geometry.plates]
    depths = [canvas.view.depth(place(poses, body, points)) for body, points in solids if body in bodies]
    return max(depths, default=-np.inf)


def add_elements(canvas: Canvas, model: Model, geometry: Geometry, poses: np.ndarray) -> None:
    """Draw springs, dampers, loads, drives and prescribed motions."""
    taken: list[np.ndarray] = []
    for element in geometry.elements:
        points = [place(poses, end.body, end.position) for end in element.ends]
        if element.joint is not None:
            _on_joint(canvas, element.mark, geometry.joints[element.joint], poses)
        elif len(points) == 2:
            middle = canvas.view((points[0] + points[1]) / 2)
            same = sum(float(np.linalg.norm(middle - other)) < canvas.unit for other in taken)
            taken.append(middle)
            symbols.between(canvas, element.mark, points[0], points[1], 1.3 * canvas.unit * same)
            for end, at, other in zip(element.ends, points, points[::-1], strict=True):
                away = canvas.view(at - other)
                if end.body == GROUND and np.linalg.norm(away) > 1e-9 * canvas.unit:
                    symbols.support(canvas, at, away / np.linalg.norm(away), clamp=True)
        elif element.load is not None:
            _draw_load(canvas, element, points[0], poses)
        elif element.mark != "user":  # a user's force on one body, or on more than two, is not drawn
            for at in points:
                symbols.element_box(canvas, canvas.view(at), canvas.view.depth(at))
    for coupling in model.couplings:
        if len(coupling.joints) == 1:
            _on_joint(canvas, "drive", geometry.joints[coupling.joints[0]], poses)


def _chosen_view(model: Model, geometry: Geometry, points: np.ndarray, view: Any) -> View:
    if view is None and geometry.plane is not None:
        return View(geometry.plane, True)
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
    """View from an azimuth (deg, from the first horizontal axis) and an elevation (deg) above the horizontal."""
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
    """A measure of the area that points (n, 2) cover."""
    return float(np.sqrt(max(np.linalg.det(np.cov(points.T)), 0.0))) if len(points) > 1 else 0.0


def _points(geometry: Geometry, poses: np.ndarray) -> np.ndarray:
    """All points (n, 3) of the drawing."""
    found = [place(poses, stroke.body, stroke.points) for stroke in geometry.strokes]
    found += [joint_position(joint, poses)[None] for joint in geometry.joints if joint.holds]
    found += [place(poses, end.body, end.position)[None] for element in geometry.elements for end in element.ends]
    found += [place(poses, point.body, point.position)[None] for point in geometry.centres]
    return np.vstack(found) if found else np.zeros((1, 3))


def joint_position(joint: DrawnJoint, poses: np.ndarray) -> np.ndarray:
    """Where the symbol of a joint is drawn: at its frame on the child."""
    return place(poses, joint.child, joint.child_at.position)


def _side(canvas: Canvas, geometry: Geometry, joint: DrawnJoint, poses: np.ndarray) -> np.ndarray:
    """The side of a joint on which its support is drawn: below, unless the body itself is there."""
    body = joint.child if joint.parent == GROUND else joint.parent
    at = canvas.view(joint_position(joint, poses))
    ways = []
    for stroke in (stroke for stroke in geometry.strokes if stroke.body == body):
        ends = canvas.view(place(poses, body, stroke.points)) - at
        ways += [end / np.linalg.norm(end) for end in ends if np.linalg.norm(end) > canvas.unit]
    hidden = [max((float(way @ side) for way in ways), default=-1.0) for side in DIRECTIONS]
    clear = [k for k, cosine in enumerate(hidden) if cosine < 0.6]
    side: np.ndarray = DIRECTIONS[clear[0] if clear else int(np.argmin(hidden))]
    return side


def _draw_rail(canvas: Canvas, joint: DrawnJoint, poses: np.ndarray, travelled: np.ndarray) -> None:
    """The rail of a slider: a hatched line beneath it on the ground, a line through it on a body."""
    start, z, u = place(poses, joint.parent, joint.at.position), joint.axes[0].in_ground(poses), canvas.unit
    lowest, highest = joint.travel(travelled)
    if joint.parent != GROUND:
        reach = [min(lowest, 0.0) - 1.6 * u, max(highest, 0.0) + 1.6 * u]
        canvas.line([start + s * z for s in reach], body_colour(joint.parent), 1.6, "rail")
        return
    ends = np.array([start + (lowest - 3.2 * u) * z, start + (highest + 3.2 * u) * z])
    a, b = canvas.view(ends)
    along = (b - a) / max(float(np.linalg.norm(b - a)), 1e-300)
    side = np.array([along[1], -along[0]])
    side = -side if side[1] > 1e-9 or (abs(side[1]) <= 1e-9 and side[0] > 0) else side
    if canvas.view.flat and joint.mark == "rail":
        symbols.hatching(canvas, a + 0.55 * u * side, b + 0.55 * u * side, side, canvas.view.depth(ends))
        return
    canvas.line(ends, INK, 1.4, "rail")
    for end, foot in zip(ends, (a, b), strict=True):
        symbols.hatching(canvas, foot - 0.5 * u * side, foot + 0.5 * u * side, along * (1 if foot is b else -1),
                         canvas.view.depth(end))  # fmt: skip


def _on_joint(canvas: Canvas, mark: str, joint: DrawnJoint, poses: np.ndarray) -> None:
    """An element along the coordinates of a joint: a torsion spring, a drive or a prescribed motion."""
    at = joint_position(joint, poses)
    along_rail = joint.slides and joint.mark == "rail"
    if mark == "torsion" and along_rail:
        symbols.between(canvas, "spring", place(poses, joint.parent, joint.at.position), at, 0.0)
    elif mark == "drive" and along_rail:
        z = canvas.view(joint.axes[0].in_ground(poses))
        side = np.array([-z[1], z[0]]) / max(float(np.linalg.norm(z)), 1e-300)
        side = side if side[1] >= 0 else -side
        tail = canvas.view(at) + 1.0 * canvas.unit * side - 1.2 * canvas.unit * z
        symbols.arrow(canvas, tail, tail + 2.4 * canvas.unit * z, canvas.view.depth(at))
    else:
        symbols.ON_JOINT.get(mark, symbols.ON_JOINT["element"])(canvas, at)


def _draw_load(canvas: Canvas, element: DrawnElement, at: np.ndarray, poses: np.ndarray) -> None:
    """An arrow along the force of a wrench, with its tip where it acts; a moment alone is an arrow around the point."""
    assert element.load is not None
    force = element.load[3:]
    if element.follows:
        force = pose_of(poses, element.ends[0].body)[:3, :3] @ force
    along = canvas.view(force)
    length = float(np.linalg.norm(along))
    if length <= 1e-9 * max(float(np.linalg.norm(force)), 1e-300):
        symbols.turning_arrow(canvas, at)
        return
    tip = canvas.view(at)
    symbols.arrow(canvas, tip - 4.0 * canvas.unit * along / length, tip - 0.35 * canvas.unit * along / length,
                  canvas.view.depth(at))  # fmt: skip
