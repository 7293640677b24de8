"""How joints, force elements, supports and centres of mass are drawn: the signs of kinematic diagrams.

A joint's sign is a small solid, hinges cylinders about their axis, sliders boxes along it, so that the flat view shows
a hinge as a circle and a slider as a rectangle. Springs, supports and arrows lie in the sheet. Sizes are in units
`u` of the scene.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from cardan.results.paper import GREY, INK
from cardan.results.scene import Scene, hull, ring

PAPER = "#ffffff"
SPRING, ACTION = "#009E73", "#D55E00"
WIDTH = 0.9  # pt


def across(z: np.ndarray, scene: Scene) -> tuple[np.ndarray, np.ndarray]:
    """Two directions perpendicular to a unit vector and each other, the first as much upwards as can be."""
    for guide in (scene.view.axes[1], scene.view.axes[2]):
        x = guide - z * (z @ guide)
        if np.linalg.norm(x) > 0.2:
            x = x / np.linalg.norm(x)
            return x, np.cross(z, x)
    raise AssertionError("two of three perpendicular directions are never both along the third")


def cylinder(scene: Scene, at: np.ndarray, z: np.ndarray, radius: float, length: float, kind: str = "joint") -> None:
    """A round body about an axis, with the end that is towards the viewer."""
    x, y = across(z, scene)
    rim = ring() @ np.array([x, y]) * radius
    z = z if z @ scene.view.axes[2] >= 0 else -z
    near, far = at + z * length / 2 + rim, at - z * length / 2 + rim
    depth = scene.view.depth(at)
    scene.sheet_area(hull(scene.view(np.vstack([near, far]))), depth, PAPER, kind, edge=INK)
    scene.sheet_area(scene.view(near), depth + 1e-6 * scene.unit, PAPER, kind, edge=INK)


def box(scene: Scene, at: np.ndarray, z: np.ndarray, half: tuple[float, float, float]) -> None:
    """A block: half its sides across, across and along an axis; the faces that are towards the viewer."""
    x, y = across(z, scene)
    sides = [(x, half[0]), (y, half[1]), (z, half[2])]
    depth = scene.view.depth(at)
    for k, (n, h) in enumerate(sides):
        (a, ha), (b, hb) = sides[(k + 1) % 3], sides[(k + 2) % 3]
        toward = float(n @ scene.view.axes[2])
        if abs(toward) < 1e-6:
            continue
        middle = at + n * h * np.sign(toward)
        corners = np.array([middle + s * a * ha + t * b * hb for s, t in ((-1, -1), (1, -1), (1, 1), (-1, 1))])
        shade = "#ffffff" if abs(toward) > 0.6 else "#ececec" if abs(toward) > 0.3 else "#dcdcdc"
        scene.sheet_area(scene.view(corners), depth, shade, "slider", edge=INK)


def _revolute(scene: Scene, at: np.ndarray, axes: list[np.ndarray]) -> None:
    u = scene.unit
    if not scene.view.flat:
        _axis_line(scene, at, axes[0], 2.2)
    cylinder(scene, at, axes[0], 0.45 * u, 1.3 * u)


def _prismatic(scene: Scene, at: np.ndarray, axes: list[np.ndarray]) -> None:
    u = scene.unit
    box(scene, at, axes[0], (0.55 * u, 0.55 * u, 1.1 * u))


def _cylindrical(scene: Scene, at: np.ndarray, axes: list[np.ndarray]) -> None:
    cylinder(scene, at, axes[0], 0.5 * scene.unit, 2.2 * scene.unit, "slider")


def _screw(scene: Scene, at: np.ndarray, axes: list[np.ndarray]) -> None:
    """A cylinder with a thread."""
    u = scene.unit
    _cylindrical(scene, at, axes)
    x, y = across(axes[0], scene)
    towards = scene.view.axes[2]
    angle = np.linspace(0, 8 * np.pi, 161)
    out = np.cos(angle)[:, None] * x + np.sin(angle)[:, None] * y
    helix = at + 0.5 * u * out + np.linspace(-1, 1, len(angle))[:, None] * u * axes[0]
    seen = out @ towards > 0
    turns = np.split(np.arange(len(angle)), np.flatnonzero(np.diff(seen)) + 1)
    for part in (turn for turn in turns if seen[turn[0]] and len(turn) > 1):
        scene.sheet_line(scene.view(helix[part]), scene.view.depth(at) + 1e-5 * u, INK, 0.7, "slider")


def _universal(scene: Scene, at: np.ndarray, axes: list[np.ndarray]) -> None:
    """A cross whose arms are the two axes."""
    u = scene.unit
    for z in axes:
        cylinder(scene, at, z, 0.2 * u, 1.9 * u)


def _spherical(scene: Scene, at: np.ndarray, axes: list[np.ndarray]) -> None:
    u, depth = scene.unit, scene.view.depth(at)
    scene.disk(scene.view(at), depth, 0.58 * u, PAPER, "joint", INK)
    scene.disk(scene.view(at), depth + 1e-6 * u, 0.34 * u, INK, "joint", None)


def _planar(scene: Scene, at: np.ndarray, axes: list[np.ndarray]) -> None:
    """A patch of the plane in which the child moves; in the flat view that is the sheet itself."""
    if scene.view.flat:
        return
    x, y = across(axes[0], scene)
    corners = at + 2.0 * scene.unit * np.array([x + y, x - y, -x - y, y - x])
    scene.sheet_area(scene.view(corners), scene.view.depth(at), "#ececec", "plate", edge=GREY, opacity=0.7)
    _axis_line(scene, at, axes[0], 2.0)


def _rigid(scene: Scene, at: np.ndarray, axes: list[np.ndarray]) -> None:
    square = 0.26 * scene.unit * np.array([(-1, -1), (1, -1), (1, 1), (-1, 1)])
    scene.sheet_area(scene.view(at) + square, scene.view.depth(at), INK, "joint")


def _nothing(scene: Scene, at: np.ndarray, axes: list[np.ndarray]) -> None:
    """A free joint holds nothing."""


JOINTS: dict[str, Callable[[Scene, np.ndarray, list[np.ndarray]], None]] = {
    "revolute": _revolute,
    "prismatic": _prismatic,
    "cylindrical": _cylindrical,
    "screw": _screw,
    "universal": _universal,
    "spherical": _spherical,
    "planar": _planar,
    "rigid": _rigid,
    "free": _nothing,
}
"""The sign of each kind of joint, at a point with axes in ground components."""


def _axis_line(scene: Scene, at: np.ndarray, z: np.ndarray, reach: float) -> None:
    scene.line([at - reach * scene.unit * z, at + reach * scene.unit * z], GREY, 0.7, "axis", dash=(5, 2, 1, 2))


def centre(scene: Scene, at: np.ndarray) -> None:
    """The quartered circle of a centre of mass."""
    u, middle, depth = scene.unit, scene.view(at), scene.view.depth(at)
    scene.disk(middle, depth, 0.36 * u, PAPER, "centre", INK)
    arc = 0.36 * u * ring(32)
    for start in (0, 16):
        quarter = np.vstack([[0, 0], arc[start : start + 9]])
        scene.sheet_area(middle + quarter, depth + 1e-6 * u, INK, "centre")


def hatching(scene: Scene, a: np.ndarray, b: np.ndarray, side: np.ndarray, depth: float) -> None:
    """A line of the ground from a to b (2,), hatched on a side (2,)."""
    u = scene.unit
    scene.sheet_line(np.array([a, b]), depth, INK, WIDTH, "ground")
    along = (b - a) / max(float(np.linalg.norm(b - a)), 1e-300)
    count = max(int(np.linalg.norm(b - a) / (0.42 * u)), 2)
    for k in range(count):
        foot = a + (b - a) * (k + 0.75) / count
        scene.sheet_line(np.array([foot, foot + 0.4 * u * (side - along)]), depth, INK, 0.6, "ground")


def support(scene: Scene, at: np.ndarray, side: np.ndarray, clamp: bool) -> None:
    """Hold a joint on the ground that lies on a side (2,) of it: a triangle on a hatched line; a clamp has none."""
    u, foot, depth = scene.unit, scene.view(at), scene.view.depth(at)
    across = np.array([-side[1], side[0]])
    if not clamp:
        base = foot + 1.25 * u * side
        corners = np.array([foot, base + 0.75 * u * across, base - 0.75 * u * across])
        scene.sheet_area(corners, depth, "#f2f2f2", "ground", edge=INK)
        foot = base
    hatching(scene, foot - 1.15 * u * across, foot + 1.15 * u * across, side, depth)


def _zigzag(length: float, u: float) -> np.ndarray:
    """A spring along x: straight, turns, straight."""
    lead = min(0.18 * length, 1.2 * u)
    count = 2 * int(np.clip((length - 2 * lead) / (1.1 * u), 4, 20))
    x = np.linspace(lead, length - lead, count + 1)
    y = np.where(np.arange(count + 1) % 2, 1.0, -1.0) * 0.5 * u
    y[0] = y[-1] = 0.0
    return np.vstack([[0, 0], np.column_stack([x, y]), [length, 0]])


def _dashpot(length: float, u: float) -> list[np.ndarray]:
    """A damper along x: rod, piston, cup open to the first end, rod."""
    a, b, h = 0.5 * length - 0.7 * u, 0.5 * length + 0.7 * u, 0.5 * u
    piston = 0.5 * length
    return [
        np.array([(0, 0), (piston, 0)]),
        np.array([(piston, -0.75 * h), (piston, 0.75 * h)]),
        np.array([(a, h), (b, h), (b, -h), (a, -h)]),
        np.array([(b, 0), (length, 0)]),
    ]


def between(scene: Scene, kind: str, a: np.ndarray, b: np.ndarray, shift: float) -> None:
    """A force element between two points (3,), its middle shifted sideways where another is there already."""
    p, q, u = scene.view(a), scene.view(b), scene.unit
    depth = scene.view.depth(np.array([a, b]))
    length = float(np.linalg.norm(q - p))
    if length < 1e-9 * u:
        return
    x = (q - p) / length
    turn = np.array([x, (-x[1], x[0])])
    lines = {"spring": lambda: [_zigzag(length, u)], "damper": lambda: _dashpot(length, u)}
    dash = () if kind in lines else (1.0, 2.0)
    for line in lines.get(kind, lambda: [np.array([(0, 0), (length, 0)])])():
        local = np.array(line, dtype=float)
        local[:, 1] += shift
        scene.sheet_line(p + local @ turn, depth, SPRING if kind in lines else GREY, 1.1, "element", dash=dash)
    if shift:
        for end, foot in ((0.0, p), (length, q)):
            scene.sheet_line(np.array([foot, p + np.array([end, shift]) @ turn]), depth, SPRING, 1.1, "element")
    if kind == "bushing":
        square = 0.6 * u * np.array([(-1, -1), (1, -1), (1, 1), (-1, 1)])
        scene.sheet_area((p + q) / 2 + square, depth, "#ececec", "element", edge=SPRING)


def spiral(scene: Scene, at: np.ndarray) -> None:
    """A torsion spring around a joint."""
    angle = np.linspace(0.2 * np.pi, 3.6 * np.pi, 90)
    radius = np.linspace(0.6, 1.25, 90) * scene.unit
    points = scene.view(at) + radius[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
    scene.sheet_line(points, scene.view.depth(at), SPRING, 1.1, "element")


def turning_arrow(scene: Scene, at: np.ndarray) -> None:
    """A drive or a prescribed motion about a joint."""
    u, angle = scene.unit, np.linspace(0.15 * np.pi, 1.35 * np.pi, 40)
    points = scene.view(at) + 1.15 * u * np.column_stack([np.cos(angle), np.sin(angle)])
    depth = scene.view.depth(at)
    scene.sheet_line(points, depth, ACTION, 1.2, "element")
    _head(scene, points[-1], points[-1] - points[-4], depth)


def arrow(scene: Scene, tail: np.ndarray, tip: np.ndarray, depth: float, colour: str = ACTION) -> None:
    """A straight arrow on the sheet."""
    scene.sheet_line(np.array([tail, tip]), depth, colour, 1.2, "element")
    _head(scene, tip, tip - tail, depth, colour)


def _head(scene: Scene, tip: np.ndarray, along: np.ndarray, depth: float, colour: str = ACTION) -> None:
    u, x = scene.unit, along / max(float(np.linalg.norm(along)), 1e-300)
    y = np.array([-x[1], x[0]])
    back = tip - 0.25 * u * x
    corners = np.array([tip + 0.35 * u * x, back + 0.28 * u * y, back - 0.28 * u * y])
    scene.sheet_area(corners, depth, colour, "element")
