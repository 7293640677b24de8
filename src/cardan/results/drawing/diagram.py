"""The kinematic diagram of a mechanism: its geometry at given poses, drawn on a canvas by symbols.

The symbol of a joint is a small solid: a hinge is a cylinder about its axis, a slider a box along it, so that the flat
view shows a hinge as a circle and a slider as a rectangle. Springs, supports and arrows are flat. A joint or force
element is drawn by the mark that its kind declares (`JOINTS`, `BETWEEN_POINTS`); an unknown mark is drawn as "joint" or
"element". Sizes are in units `u` of the canvas.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cardan.errors import InputError
from cardan.model.model import Model
from cardan.model.tree import GROUND
from cardan.results.drawing.canvas import Canvas, View, hull, ring
from cardan.results.figure import COLOURS, GREY, INK
from cardan.results.geometry import DrawnElement, DrawnJoint, Geometry, place, pose_of, upwards

PAPER = "#ffffff"
SPRING, ACTION = "#009E73", "#D55E00"
PARTICLE, LARGEST_PARTICLE = "#6A3D9A", 0.9  # colour, and radius of the heaviest in sizes of a joint symbol
WIDTH = 0.9  # pt
SQUARE = np.array([(-1, -1), (1, -1), (1, 1), (-1, 1)])


def across(z: np.ndarray, canvas: Canvas) -> tuple[np.ndarray, np.ndarray]:
    """Two directions perpendicular to a unit vector and to each other, the first as far upwards as possible."""
    for guide in (canvas.view.axes[1], canvas.view.axes[2]):
        x = guide - z * (z @ guide)
        if np.linalg.norm(x) > 0.2:
            x = x / np.linalg.norm(x)
            return x, np.cross(z, x)
    raise AssertionError("a direction cannot be parallel to two perpendicular ones")


def cylinder(canvas: Canvas, at: np.ndarray, z: np.ndarray, radius: float, length: float, layer: str = "joint") -> None:
    """A cylinder about an axis, with the end that faces the viewer."""
    x, y = across(z, canvas)
    rim = ring() @ np.array([x, y]) * radius
    z = z if z @ canvas.view.axes[2] >= 0 else -z
    near, far = at + z * length / 2 + rim, at - z * length / 2 + rim
    depth = canvas.view.depth(at)
    canvas.flat_area(hull(canvas.view(np.vstack([near, far]))), depth, PAPER, layer, edge=INK)
    canvas.flat_area(canvas.view(near), depth + 1e-6 * canvas.unit, PAPER, layer, edge=INK)


def _rail(canvas: Canvas, at: np.ndarray, axes: list[np.ndarray]) -> None:
    """A block along an axis; the faces towards the viewer are drawn."""
    u, z = canvas.unit, axes[0]
    x, y = across(z, canvas)
    sides = [(x, 0.55 * u), (y, 0.55 * u), (z, 1.1 * u)]
    depth = canvas.view.depth(at)
    for k, (n, h) in enumerate(sides):
        (a, ha), (b, hb) = sides[(k + 1) % 3], sides[(k + 2) % 3]
        toward = float(n @ canvas.view.axes[2])
        if abs(toward) < 1e-6:
            continue
        middle = at + n * h * np.sign(toward)
        corners = np.array([middle + s * a * ha + t * b * hb for s, t in SQUARE])
        shade = "#ffffff" if abs(toward) > 0.6 else "#ececec" if abs(toward) > 0.3 else "#dcdcdc"
        canvas.flat_area(canvas.view(corners), depth, shade, "slider", edge=INK)


def _pin(canvas: Canvas, at: np.ndarray, axes: list[np.ndarray]) -> None:
    u = canvas.unit
    if not canvas.view.flat:
        _axis_line(canvas, at, axes[0], 2.2)
    cylinder(canvas, at, axes[0], 0.45 * u, 1.3 * u)


def _sleeve(canvas: Canvas, at: np.ndarray, axes: list[np.ndarray]) -> None:
    cylinder(canvas, at, axes[0], 0.5 * canvas.unit, 2.2 * canvas.unit, "slider")


def _thread(canvas: Canvas, at: np.ndarray, axes: list[np.ndarray]) -> None:
    """A cylinder with a thread."""
    u = canvas.unit
    _sleeve(canvas, at, axes)
    x, y = across(axes[0], canvas)
    towards = canvas.view.axes[2]
    angle = np.linspace(0, 8 * np.pi, 161)
    out = np.cos(angle)[:, None] * x + np.sin(angle)[:, None] * y
    helix = at + 0.5 * u * out + np.linspace(-1, 1, len(angle))[:, None] * u * axes[0]
    seen = out @ towards > 0
    turns = np.split(np.arange(len(angle)), np.flatnonzero(np.diff(seen)) + 1)
    for part in (turn for turn in turns if seen[turn[0]] and len(turn) > 1):
        canvas.flat_line(canvas.view(helix[part]), canvas.view.depth(at) + 1e-5 * u, INK, 0.7, "slider")


def _cross(canvas: Canvas, at: np.ndarray, axes: list[np.ndarray]) -> None:
    for z in axes:
        cylinder(canvas, at, z, 0.2 * canvas.unit, 1.9 * canvas.unit)


def _ball(canvas: Canvas, at: np.ndarray, axes: list[np.ndarray]) -> None:
    u, depth = canvas.unit, canvas.view.depth(at)
    canvas.disk(canvas.view(at), depth, 0.58 * u, PAPER, "joint", INK)
    canvas.disk(canvas.view(at), depth + 1e-6 * u, 0.34 * u, INK, "joint", None)


def _plate(canvas: Canvas, at: np.ndarray, axes: list[np.ndarray]) -> None:
    """A patch of the plane in which the child moves; nothing in the flat view, which shows that plane itself."""
    if canvas.view.flat:
        return
    x, y = across(axes[0], canvas)
    corners = at + 2.0 * canvas.unit * np.array([x + y, x - y, -x - y, y - x])
    canvas.flat_area(canvas.view(corners), canvas.view.depth(at), "#ececec", "plate", edge=GREY, opacity=0.7)
    _axis_line(canvas, at, axes[0], 2.0)


def _weld(canvas: Canvas, at: np.ndarray, axes: list[np.ndarray]) -> None:
    square = 0.26 * canvas.unit * SQUARE
    canvas.flat_area(canvas.view(at) + square, canvas.view.depth(at), INK, "joint")


def _bead(canvas: Canvas, at: np.ndarray, axes: list[np.ndarray]) -> None:
    """What runs along a curve: a sleeve along the tangent where it turns with it, else a ball."""
    if axes:
        _sleeve(canvas, at, axes)
    else:
        canvas.disk(canvas.view(at), canvas.view.depth(at), 0.5 * canvas.unit, INK, "joint", INK)


def _ring(canvas: Canvas, at: np.ndarray, axes: list[np.ndarray]) -> None:
    """A plain ring, for joints without a symbol of their own, and the axes that they show."""
    for z in axes:
        _axis_line(canvas, at, z, 2.0)
    canvas.disk(canvas.view(at), canvas.view.depth(at), 0.5 * canvas.unit, PAPER, "joint", INK)


@dataclass(frozen=True)
class JointSymbol:
    """The symbol of a joint, drawn at a point with axes in ground components.

    `axes` is the number of axes that it needs; `ground`, "support", "clamp" or "none", tells how it meets the ground.
    """

    draw: Callable[[Canvas, np.ndarray, list[np.ndarray]], None]
    axes: int = 0
    ground: str = "support"


JOINTS: dict[str, JointSymbol] = {
    "pin": JointSymbol(_pin, 1), "rail": JointSymbol(_rail, 1), "sleeve": JointSymbol(_sleeve, 1),
    "thread": JointSymbol(_thread, 1), "cross": JointSymbol(_cross, 2), "ball": JointSymbol(_ball),
    "plate": JointSymbol(_plate, 1, ground="none"), "weld": JointSymbol(_weld, ground="clamp"),
    "bead": JointSymbol(_bead, ground="none"),
    "none": JointSymbol(lambda canvas, at, axes: None, ground="none"), "joint": JointSymbol(_ring),
}  # fmt: skip
"""The symbols of joints by mark."""


def joint_symbol(joint: DrawnJoint) -> JointSymbol:
    """The symbol of a joint; the ring if its mark is unknown or needs more axes than the joint shows."""
    found = JOINTS.get(joint.mark, JOINTS["joint"])
    return found if len(joint.axes) >= found.axes else JOINTS["joint"]


def _axis_line(canvas: Canvas, at: np.ndarray, z: np.ndarray, reach: float) -> None:
    canvas.line([at - reach * canvas.unit * z, at + reach * canvas.unit * z], GREY, 0.7, "axis", dash=(5, 2, 1, 2))


def centre(canvas: Canvas, at: np.ndarray) -> None:
    """A centre of mass: a quartered circle."""
    u, middle, depth = canvas.unit, canvas.view(at), canvas.view.depth(at)
    canvas.disk(middle, depth, 0.36 * u, PAPER, "centre", INK)
    arc = 0.36 * u * ring(32)
    for start in (0, 16):
        quarter = np.vstack([[0, 0], arc[start : start + 9]])
        canvas.flat_area(middle + quarter, depth + 1e-6 * u, INK, "centre")


def hatching(canvas: Canvas, a: np.ndarray, b: np.ndarray, side: np.ndarray, depth: float) -> None:
    """A ground line from a to b (2,), hatched on the side (2,)."""
    u = canvas.unit
    canvas.flat_line(np.array([a, b]), depth, INK, WIDTH, "ground")
    along = (b - a) / max(float(np.linalg.norm(b - a)), 1e-300)
    count = max(int(np.linalg.norm(b - a) / (0.42 * u)), 2)
    for k in range(count):
        foot = a + (b - a) * (k + 0.75) / count
        canvas.flat_line(np.array([foot, foot + 0.4 * u * (side - along)]), depth, INK, 0.6, "ground")


def support(canvas: Canvas, at: np.ndarray, side: np.ndarray, clamp: bool) -> None:
    """A support on the ground on the side (2,) of a joint: a triangle on a hatched line; a clamp has no triangle."""
    u, foot, depth = canvas.unit, canvas.view(at), canvas.view.depth(at)
    across = np.array([-side[1], side[0]])
    if not clamp:
        base = foot + 1.25 * u * side
        corners = np.array([foot, base + 0.75 * u * across, base - 0.75 * u * across])
        canvas.flat_area(corners, depth, "#f2f2f2", "ground", edge=INK)
        foot = base
    hatching(canvas, foot - 1.15 * u * across, foot + 1.15 * u * across, side, depth)


def _zigzag(length: float, u: float) -> list[np.ndarray]:
    """A spring along x: straight, turns, straight."""
    lead = min(0.18 * length, 1.2 * u)
    count = 2 * int(np.clip((length - 2 * lead) / (1.1 * u), 4, 20))
    x = np.linspace(lead, length - lead, count + 1)
    y = np.where(np.arange(count + 1) % 2, 1.0, -1.0) * 0.5 * u
    y[0] = y[-1] = 0.0
    return [np.vstack([[0, 0], np.column_stack([x, y]), [length, 0]])]


def _dashpot(length: float, u: float) -> list[np.ndarray]:
    """A damper along x: rod, piston, cylinder open to the first end, rod."""
    middle, h = 0.5 * length, 0.5 * u
    a, b = middle - 0.7 * u, middle + 0.7 * u
    rod, piston = [(0, 0), (middle, 0)], [(middle, -0.75 * h), (middle, 0.75 * h)]
    return [np.array(line) for line in (rod, piston, [(a, h), (b, h), (b, -h), (a, -h)], [(b, 0), (length, 0)])]


@dataclass(frozen=True)
class ElementSymbol:
    """A force element between two points: lines along x, given its length and the unit; they may be dotted."""

    lines: Callable[[float, float], list[np.ndarray]] = lambda length, u: [np.array([(0.0, 0.0), (length, 0.0)])]
    dotted: bool = True
    box: bool = False


BETWEEN_POINTS: dict[str, ElementSymbol] = {
    "spring": ElementSymbol(_zigzag, dotted=False), "damper": ElementSymbol(_dashpot, dotted=False),
    "bushing": ElementSymbol(box=True), "user": ElementSymbol(), "element": ElementSymbol(box=True),
    "rod": ElementSymbol(dotted=False),
}  # fmt: skip
"""The symbols of force elements between two points by mark."""


def between(canvas: Canvas, mark: str, a: np.ndarray, b: np.ndarray, shift: float) -> None:
    """A force element between two points (3,); its middle is shifted sideways if another element is there."""
    p, q, u = canvas.view(a), canvas.view(b), canvas.unit
    depth = canvas.view.depth(np.array([a, b]))
    length = float(np.linalg.norm(q - p))
    symbol = BETWEEN_POINTS.get(mark, BETWEEN_POINTS["element"])
    if length > 1e-9 * u:
        x = (q - p) / length
        turn = np.array([x, (-x[1], x[0])])
        colour, dash = (GREY, (1.0, 2.0)) if symbol.dotted else (SPRING, ())
        for line in symbol.lines(length, u):
            canvas.flat_line(p + (line + np.array([0.0, shift])) @ turn, depth, colour, 1.1, "element", dash=dash)
        for end, foot in ((0.0, p), (length, q)) if shift else ():
            canvas.flat_line(np.array([foot, p + np.array([end, shift]) @ turn]), depth, SPRING, 1.1, "element")
    if symbol.box:
        element_box(canvas, (p + q) / 2, depth)


def element_box(canvas: Canvas, middle: np.ndarray, depth: float) -> None:
    """A small square at a point (2,) of the canvas: a bushing, or an element without a symbol of its own."""
    canvas.flat_area(middle + 0.6 * canvas.unit * SQUARE, depth, "#ececec", "element", edge=SPRING)


def spiral(canvas: Canvas, at: np.ndarray) -> None:
    """A torsion spring around a joint."""
    angle = np.linspace(0.2 * np.pi, 3.6 * np.pi, 90)
    radius = np.linspace(0.6, 1.25, 90) * canvas.unit
    points = canvas.view(at) + radius[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
    canvas.flat_line(points, canvas.view.depth(at), SPRING, 1.1, "element")


def turning_arrow(canvas: Canvas, at: np.ndarray) -> None:
    """A drive or a prescribed motion about a joint."""
    u, angle = canvas.unit, np.linspace(0.15 * np.pi, 1.35 * np.pi, 40)
    points = canvas.view(at) + 1.15 * u * np.column_stack([np.cos(angle), np.sin(angle)])
    depth = canvas.view.depth(at)
    canvas.flat_line(points, depth, ACTION, 1.2, "element")
    _head(canvas, points[-1], points[-1] - points[-4], depth)


def _beside(canvas: Canvas, at: np.ndarray) -> None:
    """A small square beside a joint, for elements without a symbol of their own."""
    shift = 1.3 * canvas.unit * np.array([1.0, 1.0])
    depth = canvas.view.depth(at)
    canvas.flat_line(np.array([canvas.view(at), canvas.view(at) + shift]), depth, SPRING, 1.1, "element")
    element_box(canvas, canvas.view(at) + shift, depth)


ON_JOINT: dict[str, Callable[[Canvas, np.ndarray], None]] = {
    "torsion": spiral,
    "drive": turning_arrow,
    "friction": lambda canvas, at: None,
    "element": _beside,
}
"""The symbols of elements along the coordinates of a joint by mark; friction has none."""


def arrow(canvas: Canvas, tail: np.ndarray, tip: np.ndarray, depth: float, colour: str = ACTION) -> None:
    """A straight arrow on the canvas."""
    canvas.flat_line(np.array([tail, tip]), depth, colour, 1.2, "element")
    _head(canvas, tip, tip - tail, depth, colour)


def _head(canvas: Canvas, tip: np.ndarray, along: np.ndarray, depth: float, colour: str = ACTION) -> None:
    u, x = canvas.unit, along / max(float(np.linalg.norm(along)), 1e-300)
    y = np.array([-x[1], x[0]])
    back = tip - 0.25 * u * x
    corners = np.array([tip + 0.35 * u * x, back + 0.28 * u * y, back - 0.28 * u * y])
    canvas.flat_area(corners, depth, colour, "element")


BODY_WIDTH = 2.6  # pt
SMALLEST, LARGEST = 0.022, 0.06  # size of a joint symbol, relative to the whole picture
VIEWS = tuple((azimuth, elevation) for elevation in (22.0, 35.0) for azimuth in (-60.0, -30.0, -75.0, -120.0, -150.0))
FRONT_VIEWS = ((-40.0, 20.0), (-65.0, 22.0), (-20.0, 20.0))  # of robots and other shapes, whose front looks along x
BETTER = 1.25  # factor by which another view must show more than the first to be chosen
DIRECTIONS = np.array([(0.0, -1.0), (0.0, 1.0), (-1.0, 0.0), (1.0, 0.0)])  # sides for a support, best first


def body_colour(body: int) -> str:
    """Colour of a body; the ground has the colour of ink, and no body is black."""
    return INK if body == GROUND else COLOURS[body % (len(COLOURS) - 1)]


def begin(model: Model, geometry: Geometry, poses: np.ndarray, view: Any) -> Canvas:
    """An empty canvas for body poses (..., nb, 4, 4), with the given view or the one that shows most."""
    points = np.vstack([_points(geometry, one) for one in poses.reshape(-1, *poses.shape[-3:])])
    chosen = chosen_view("draw", model, geometry, points, view)
    seen = chosen(points)
    whole = float(np.max(np.ptp(seen, axis=0))) or geometry.length
    return Canvas(chosen, float(np.clip(geometry.size, SMALLEST * whole, LARGEST * whole)))


def add_all(
    canvas: Canvas, model: Model, geometry: Geometry, poses: np.ndarray, travelled: np.ndarray, centres: bool
) -> None:
    """Draw everything at poses (nb, 4, 4); `travelled` are the poses that rails must reach."""
    add_bodies(canvas, geometry, poses)
    add_elements(canvas, model, geometry, poses)
    add_joints(canvas, geometry, poses, travelled)
    if centres:
        add_centres(canvas, geometry, poses)


def add_particles(canvas: Canvas, points: np.ndarray, masses: np.ndarray) -> None:
    """Draw particles at points (n, 3) as circles whose area is the mass; one of negative mass is open, and orange."""
    heaviest = np.abs(masses).max(initial=0.0)
    for at, mass in sorted(zip(points, masses, strict=True), key=lambda one: -abs(one[1])):
        if mass:
            radius = LARGEST_PARTICLE * canvas.unit * max(float(np.sqrt(abs(mass) / heaviest)), 0.15)
            face, edge = (PARTICLE, PAPER) if mass > 0 else (PAPER, ACTION)
            canvas.disk(canvas.view(at), canvas.view.depth(at), radius, face, "particle", edge)


def add_bodies(canvas: Canvas, geometry: Geometry, poses: np.ndarray) -> None:
    """Draw rods and plates; in the flat view a compact body is a wheel about its hinge, or the block of its slider."""
    compact = _compact(geometry) if canvas.view.flat else {}
    geometry = replace(  # a body with a shape is seen as its shape
        geometry, strokes=tuple(s for s in geometry.strokes if s.body not in geometry.shaped),
        plates=tuple(p for p in geometry.plates if p.body not in geometry.shaped),
    )  # fmt: skip
    compact = {body: wheel for body, wheel in compact.items() if body not in geometry.shaped}
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
            # a margin where it passes in front of another body
            canvas.line(points, "#ffffff", BODY_WIDTH + 1.8, "body")
        canvas.line(points, body_colour(stroke.body), BODY_WIDTH, "body")


def _compact(geometry: Geometry) -> dict[int, tuple[np.ndarray, float]]:
    """Bodies held at one point by a hinge or a slider: their middle, and the radius of a wheel, or 0 for a slider."""
    found = {}
    for plate in (plate for plate in geometry.plates if plate.radius):
        marks = {joint.mark for joint in geometry.joints if plate.body in (joint.parent, joint.child)}
        if marks & {"pin", "rail"}:
            found[plate.body] = (plate.corners.mean(axis=0), 0.0 if "rail" in marks else plate.radius)
    return found


def add_centres(canvas: Canvas, geometry: Geometry, poses: np.ndarray) -> None:
    """Draw centres of mass, except those under the symbol of a joint."""
    joints = [canvas.view(joint_position(joint, poses)) for joint in geometry.joints if joint.holds]
    sticks = geometry.sticks if geometry.shaped else frozenset(point.body for point in geometry.centres)
    for point in (point for point in geometry.centres if point.body in sticks):
        at = place(poses, point.body, point.position)
        if all(np.linalg.norm(canvas.view(at) - other) > 0.6 * canvas.unit for other in joints):
            canvas.nearest = _nearest(canvas, geometry, poses, point.body)
            centre(canvas, at)
    canvas.nearest = -np.inf


def add_joints(canvas: Canvas, geometry: Geometry, poses: np.ndarray, travelled: np.ndarray) -> None:
    """Draw the joints, their supports on the ground, and rails as long as their travel over the poses `travelled`."""
    standing: list[np.ndarray] = []
    for joint in geometry.joints:
        if not geometry.needs_symbol(joint):
            continue
        at, symbol = joint_position(joint, poses), joint_symbol(joint)
        collar = joint.collar(travelled) if joint.slides else None
        if collar is not None:
            at = place(poses, joint.parent, joint.at.position) + collar * joint.axes[0].in_ground(poses)
        elif joint.slides:
            _draw_rail(canvas, joint, poses, travelled)
        if GROUND in (joint.parent, joint.child) and symbol.ground != "none":
            on_rail = joint.slides and joint.parent == GROUND
            if not on_rail and all(np.linalg.norm(canvas.view(at) - other) > canvas.unit for other in standing):
                standing.append(canvas.view(at))
                support(canvas, at, _side(canvas, geometry, joint, poses), symbol.ground == "clamp")
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
            between(canvas, element.mark, points[0], points[1], 1.3 * canvas.unit * same)
            for end, at, other in zip(element.ends, points, points[::-1], strict=True):
                away = canvas.view(at - other)
                if end.body == GROUND and np.linalg.norm(away) > 1e-9 * canvas.unit:
                    support(canvas, at, away / np.linalg.norm(away), clamp=True)
        elif element.load is not None:
            _draw_load(canvas, element, points[0], poses)
        elif element.mark != "user":  # a user's force on one body, or on more than two, is not drawn
            for at in points:
                element_box(canvas, canvas.view(at), canvas.view.depth(at))
    for coupling in model.couplings:
        if len(coupling.joints) == 1:
            _on_joint(canvas, "drive", geometry.joints[coupling.joints[0]], poses)


def chosen_view(what: str, model: Model, geometry: Geometry, points: np.ndarray, view: Any) -> View:
    """The given view, azimuth and elevation in degrees; by default flat, or that of a few which shows most points."""
    if view is None and geometry.plane is not None:
        return View(geometry.plane, True)
    if view is not None:
        try:
            azimuth, elevation = (float(angle) for angle in view)
        except (TypeError, ValueError):
            azimuth = elevation = np.nan
        if not np.isfinite(azimuth + elevation):
            raise InputError(f"{what}: view must be two angles, azimuth and elevation in degrees, got {view!r}")
        return _from_angles(model, azimuth, elevation)
    views = [_from_angles(model, *angles) for angles in (FRONT_VIEWS if geometry.shaped else VIEWS)]
    # a measure of the area that the points cover
    shown = [float(np.linalg.det(np.cov(each(points).T))) if len(points) > 1 else 0.0 for each in views]
    best = int(np.argmax(shown))
    return views[best] if shown[best] > BETTER**2 * shown[0] else views[0]


def _from_angles(model: Model, azimuth: float, elevation: float) -> View:
    """View from an azimuth (deg, from the first horizontal axis) and an elevation (deg) above the horizontal."""
    up = upwards(model)
    first = np.eye(3)[0] if abs(up[0]) < 0.9 else np.eye(3)[1]
    first = first - up * (up @ first)
    first /= np.linalg.norm(first)
    second = np.cross(up, first)
    a, e = np.radians(azimuth), np.radians(np.clip(elevation, -90, 90))
    towards = np.cos(e) * (np.cos(a) * first + np.sin(a) * second) + np.sin(e) * up
    right = -np.sin(a) * first + np.cos(a) * second
    return View(np.array([right, np.cross(towards, right), towards]), False)


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
    ends = np.array([start + s * z for s in joint.rail(travelled, (2.4 if joint.parent == GROUND else 1.6) * u)])
    if joint.parent != GROUND:
        canvas.line(ends, body_colour(joint.parent), 1.6, "rail")
        return
    a, b = canvas.view(ends)
    along = (b - a) / max(float(np.linalg.norm(b - a)), 1e-300)
    side = np.array([along[1], -along[0]])
    side = -side if side[1] > 1e-9 or (abs(side[1]) <= 1e-9 and side[0] > 0) else side
    if canvas.view.flat and joint.mark == "rail":
        hatching(canvas, a + 0.55 * u * side, b + 0.55 * u * side, side, canvas.view.depth(ends))
        return
    canvas.line(ends, INK, 1.4, "rail")
    for end, foot in zip(ends, (a, b), strict=True):
        hatching(canvas, foot - 0.5 * u * side, foot + 0.5 * u * side, along * (1 if foot is b else -1),
                         canvas.view.depth(end))  # fmt: skip


def _on_joint(canvas: Canvas, mark: str, joint: DrawnJoint, poses: np.ndarray) -> None:
    """An element along the coordinates of a joint: a torsion spring, a drive or a prescribed motion."""
    at = joint_position(joint, poses)
    along_rail = joint.slides and joint.mark == "rail"
    if mark == "torsion" and along_rail:
        between(canvas, "spring", place(poses, joint.parent, joint.at.position), at, 0.0)
    elif mark == "drive" and along_rail:
        z = canvas.view(joint.axes[0].in_ground(poses))
        side = np.array([-z[1], z[0]]) / max(float(np.linalg.norm(z)), 1e-300)
        side = side if side[1] >= 0 else -side
        tail = canvas.view(at) + 1.0 * canvas.unit * side - 1.2 * canvas.unit * z
        arrow(canvas, tail, tail + 2.4 * canvas.unit * z, canvas.view.depth(at))
    else:
        ON_JOINT.get(mark, ON_JOINT["element"])(canvas, at)


def _draw_load(canvas: Canvas, element: DrawnElement, at: np.ndarray, poses: np.ndarray) -> None:
    """An arrow along the force of a wrench, with its tip where it acts; a moment alone is an arrow around the point."""
    assert element.load is not None
    force = element.load[3:]
    if element.follows:
        force = pose_of(poses, element.ends[0].body)[:3, :3] @ force
    along = canvas.view(force)
    length = float(np.linalg.norm(along))
    if length <= 1e-9 * max(float(np.linalg.norm(force)), 1e-300):
        turning_arrow(canvas, at)
        return
    tip = canvas.view(at)
    arrow(canvas, tip - 4.0 * canvas.unit * along / length, tip - 0.35 * canvas.unit * along / length,
                  canvas.view.depth(at))  # fmt: skip
