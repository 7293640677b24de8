"""Symbols of kinematic diagrams: joints, force elements, supports and centres of mass.

The symbol of a joint is a small solid: a hinge is a cylinder about its axis, a slider a box along it, so that the flat
view shows a hinge as a circle and a slider as a rectangle. Springs, supports and arrows are flat. A joint or force
element is drawn by the mark that its kind declares (`JOINTS`, `BETWEEN_POINTS`); an unknown mark is drawn as "joint" or
"element". Sizes are in units `u` of the canvas.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from cardan.results.drawing.canvas import Canvas, hull, ring
from cardan.results.figure import GREY, INK
from cardan.results.geometry import DrawnJoint

PAPER = "#ffffff"
SPRING, ACTION = "#009E73", "#D55E00"
WIDTH = 0.9  # pt


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


def box(canvas: Canvas, at: np.ndarray, z: np.ndarray, half: tuple[float, float, float]) -> None:
    """A block with half sides across, across and along an axis; the faces towards the viewer are drawn."""
    x, y = across(z, canvas)
    sides = [(x, half[0]), (y, half[1]), (z, half[2])]
    depth = canvas.view.depth(at)
    for k, (n, h) in enumerate(sides):
        (a, ha), (b, hb) = sides[(k + 1) % 3], sides[(k + 2) % 3]
        toward = float(n @ canvas.view.axes[2])
        if abs(toward) < 1e-6:
            continue
        middle = at + n * h * np.sign(toward)
        corners = np.array([middle + s * a * ha + t * b * hb for s, t in ((-1, -1), (1, -1), (1, 1), (-1, 1))])
        shade = "#ffffff" if abs(toward) > 0.6 else "#ececec" if abs(toward) > 0.3 else "#dcdcdc"
        canvas.flat_area(canvas.view(corners), depth, shade, "slider", edge=INK)


def _pin(canvas: Canvas, at: np.ndarray, axes: list[np.ndarray]) -> None:
    u = canvas.unit
    if not canvas.view.flat:
        _axis_line(canvas, at, axes[0], 2.2)
    cylinder(canvas, at, axes[0], 0.45 * u, 1.3 * u)


def _rail(canvas: Canvas, at: np.ndarray, axes: list[np.ndarray]) -> None:
    u = canvas.unit
    box(canvas, at, axes[0], (0.55 * u, 0.55 * u, 1.1 * u))


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
    """A cross whose arms are the two axes."""
    u = canvas.unit
    for z in axes:
        cylinder(canvas, at, z, 0.2 * u, 1.9 * u)


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
    square = 0.26 * canvas.unit * np.array([(-1, -1), (1, -1), (1, 1), (-1, 1)])
    canvas.flat_area(canvas.view(at) + square, canvas.view.depth(at), INK, "joint")


def _nothing(canvas: Canvas, at: np.ndarray, axes: list[np.ndarray]) -> None:
    """A free joint has no symbol."""


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
    "none": JointSymbol(_nothing, ground="none"), "joint": JointSymbol(_ring),
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
    a, b, h = 0.5 * length - 0.7 * u, 0.5 * length + 0.7 * u, 0.5 * u
    piston = 0.5 * length
    return [
        np.array([(0, 0), (piston, 0)]),
        np.array([(piston, -0.75 * h), (piston, 0.75 * h)]),
        np.array([(a, h), (b, h), (b, -h), (a, -h)]),
        np.array([(b, 0), (length, 0)]),
    ]


def _straight(length: float, u: float) -> list[np.ndarray]:
    return [np.array([(0.0, 0.0), (length, 0.0)])]


@dataclass(frozen=True)
class ElementSymbol:
    """A force element between two points: lines along x, given its length and the unit; they may be dotted."""

    lines: Callable[[float, float], list[np.ndarray]] = _straight
    dotted: bool = True
    box: bool = False


BETWEEN_POINTS: dict[str, ElementSymbol] = {
    "spring": ElementSymbol(_zigzag, dotted=False),
    "damper": ElementSymbol(_dashpot, dotted=False),
    "bushing": ElementSymbol(box=True),
    "user": ElementSymbol(),
    "element": ElementSymbol(box=True),
}
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
    square = 0.6 * canvas.unit * np.array([(-1, -1), (1, -1), (1, 1), (-1, 1)])
    canvas.flat_area(middle + square, depth, "#ececec", "element", edge=SPRING)


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
