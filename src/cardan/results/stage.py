"""The picture of a mechanism as solids: parts that move with a body, and parts that stretch between points.

Made of a `Shape`; which library shows it is another matter. A part belongs to a layer that can be shown or hidden.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from cardan.algebra.rotation import rotation_to_axis
from cardan.model.model import Model
from cardan.model.pose import Pose
from cardan.model.tree import GROUND
from cardan.results.shape import ElementMark, JointMark, Point, Shape, shape_of
from cardan.results.solid import ROUND, Solid, arrow, ball, box, coil, cone, dashpot, joined, lathe, rod, tube

# Colours that people with any colour vision can tell apart: Okabe and Ito, Color Universal Design (2008).
BODIES = (0x0072B2, 0xD55E00, 0x009E73, 0xCC79A7, 0x56B4E9, 0xE69F00)
STEEL, GROUND_GREY, AXIS, ELEMENT, CENTRE = 0x4A4A4A, 0x9A9A9A, 0x6A3D9A, 0x1B7837, 0x222222
FORCE, MOMENT = 0xC00000, 0x7B1FA2
TRIAD = (0xD62728, 0x2CA02C, 0x1F77B4)


@dataclass(frozen=True, eq=False)
class Part:
    """A solid in one colour, its layer, and the body it moves with, or -1."""

    layer: str
    body: int
    solid: Solid
    colour: int
    opacity: float = 1.0


@dataclass(frozen=True, eq=False)
class Span:
    """A solid along z from 0 to 1 that stretches between two points; or, with one end, that points in a direction.

    The direction (3,) is in ground axes, or in those of the body if it `follows` it.
    """

    name: str
    layer: str
    ends: tuple[Point, ...]
    solid: Solid
    colour: int
    direction: np.ndarray | None = None
    follows: bool = False


@dataclass(frozen=True, eq=False)
class Stage:
    """All of a picture."""

    shape: Shape
    parts: list[Part] = field(default_factory=list)
    spans: list[Span] = field(default_factory=list)

    def add(self, layer: str, body: int, colour: int, *solids: Solid, opacity: float = 1.0) -> None:
        """Add solids that move with a body."""
        self.parts.append(Part(layer, body, joined(solids), colour, opacity))


def stage_of(model: Model, poses: np.ndarray) -> Stage:
    """Make the picture of a model whose bodies take these poses (..., nb, 4, 4)."""
    shape = shape_of(model)
    stage = Stage(shape)
    down = _down(model, shape)
    _bodies(stage)
    for mark in shape.joints:
        JOINTS[mark.kind](stage, mark, poses)
        _axes(stage, mark)
        if mark.parent == GROUND and mark.kind != "free":
            _foot(stage, mark, poses, down)
    for element in shape.elements:
        _element(stage, model, element)
    _triads(stage, model)
    return stage


def colour_of(body: int) -> int:
    """Colour of a body; grey of the ground."""
    return GROUND_GREY if body == GROUND else BODIES[body % len(BODIES)]


def _down(model: Model, shape: Shape) -> np.ndarray:
    """Where the feet of the ground point, in ground axes."""
    if shape.plane is not None:
        return -shape.plane[1]
    g = model.unbound.gravity
    return g / np.linalg.norm(g) if np.linalg.norm(g) > 0 else np.array([0.0, 0.0, -1.0])


def _bodies(stage: Stage) -> None:
    shape, size = stage.shape, stage.shape.size
    plated = {plate.body for plate in shape.plates}
    for stroke in shape.strokes:
        thick = 0.18 if stroke.body in plated else 0.38
        ends = zip(stroke.points, stroke.points[1:], strict=False)
        stage.add("bodies", stroke.body, colour_of(stroke.body), *(rod(a, b, thick * size) for a, b in ends))
    for plate in shape.plates:
        stage.add("plates", plate.body, colour_of(plate.body), Solid(plate.corners, plate.triangles), opacity=0.45)
    for centre in shape.centres:
        stage.add("centres of mass", centre.body, CENTRE, ball(centre.position, 0.5 * size))


# One function a kind of joint. F is the joint's frame on the parent, M on the child; marks are drawn along z.


def _put(stage: Stage, body: int, at: Pose, colour: int, *solids: Solid) -> None:
    stage.add("bodies", body, colour, *(solid.moved(at.position, at.rotation) for solid in solids))


def _barrel(radius: float, half: float, sides: int = ROUND) -> Solid:
    return lathe([(0, -half), (radius, -half), (radius, half), (0, half)], sides)


def _revolute(stage: Stage, mark: JointMark, poses: np.ndarray) -> None:
    s = stage.shape.size
    _put(stage, mark.child, mark.child_at, colour_of(mark.child), _barrel(0.85 * s, 0.8 * s))
    _put(stage, mark.parent, mark.at, STEEL, _barrel(0.4 * s, 1.15 * s))


def _ends(stage: Stage, mark: JointMark, poses: np.ndarray) -> tuple[float, float]:
    """The ends of a slide's rail along its axis, a little beyond what it runs over."""
    least, most = mark.travel(poses)
    return min(least, 0.0) - 3 * stage.shape.size, max(most, 0.0) + 3 * stage.shape.size


def _rail(stage: Stage, mark: JointMark, poses: np.ndarray) -> None:
    low, high = _ends(stage, mark, poses)
    z = np.array([0.0, 0.0, 1.0])
    _put(stage, mark.parent, mark.at, STEEL, rod(low * z, high * z, 0.25 * stage.shape.size))


def _prismatic(stage: Stage, mark: JointMark, poses: np.ndarray) -> None:
    s = stage.shape.size
    _rail(stage, mark, poses)
    _put(stage, mark.child, mark.child_at, colour_of(mark.child), box((0.9 * s, 0.9 * s, 1.6 * s)))


def _cylindrical(stage: Stage, mark: JointMark, poses: np.ndarray) -> None:
    s = stage.shape.size
    _rail(stage, mark, poses)
    _put(stage, mark.child, mark.child_at, colour_of(mark.child), _barrel(0.9 * s, 1.6 * s))


def _screw(stage: Stage, mark: JointMark, poses: np.ndarray) -> None:
    """A rail with a thread, and a nut on it."""
    s = stage.shape.size
    _rail(stage, mark, poses)
    low, high = _ends(stage, mark, poses)
    turns = int(np.clip((high - low) / s, 4, 60))
    z = np.linspace(low, high, 10 * turns)
    angle = 2 * np.pi * turns * (z - low) / (high - low)
    line = np.column_stack([0.35 * s * np.cos(angle), 0.35 * s * np.sin(angle), z])
    _put(stage, mark.parent, mark.at, STEEL, tube(line, 0.08 * s, 4))
    _put(stage, mark.child, mark.child_at, colour_of(mark.child), _barrel(1.1 * s, 0.6 * s, 6))


def _universal(stage: Stage, mark: JointMark, poses: np.ndarray) -> None:
    """The cross: one arm with each body."""
    s = stage.shape.size
    x, y = 1.4 * s * np.eye(3)[:2]
    _put(stage, mark.parent, mark.at, colour_of(mark.parent), rod(-x, x, 0.4 * s))
    _put(stage, mark.child, mark.child_at, colour_of(mark.child), rod(-y, y, 0.4 * s), ball(np.zeros(3), 0.6 * s))


def _spherical(stage: Stage, mark: JointMark, poses: np.ndarray) -> None:
    _put(stage, mark.child, mark.child_at, colour_of(mark.child), ball(np.zeros(3), stage.shape.size))


def _planar(stage: Stage, mark: JointMark, poses: np.ndarray) -> None:
    s = stage.shape.size
    _put(stage, mark.child, mark.child_at, STEEL, box((s, s, 0.3 * s)))


def _rigid(stage: Stage, mark: JointMark, poses: np.ndarray) -> None:
    s = 0.45 * stage.shape.size
    _put(stage, mark.child, mark.child_at, STEEL, box((s, s, s)))


def _free(stage: Stage, mark: JointMark, poses: np.ndarray) -> None:
    """It holds nothing."""


JOINTS: dict[str, Callable[[Stage, JointMark, np.ndarray], None]] = {
    "revolute": _revolute, "prismatic": _prismatic, "cylindrical": _cylindrical, "screw": _screw,
    "universal": _universal, "spherical": _spherical, "planar": _planar, "rigid": _rigid, "free": _free,
}  # fmt: skip
"""How each kind of joint is drawn."""


def _axes(stage: Stage, mark: JointMark) -> None:
    s = stage.shape.size
    for axis in mark.axes:
        at = mark.at if axis.body == mark.parent else mark.child_at
        reach = 5 * s * axis.direction
        stage.add("joint axes", axis.body, AXIS, rod(at.position - reach, at.position + reach, 0.1 * s, 6))


def _foot(stage: Stage, mark: JointMark, poses: np.ndarray, down: np.ndarray) -> None:
    """The ground's symbol under a joint; under both ends of a rail."""
    s, z = stage.shape.size, mark.at.rotation[:, 2]
    along = _ends(stage, mark, poses) if mark.slides else (0.0,)
    turn = rotation_to_axis(-down)
    feet = [cone(1.3 * s, 1.8 * s, 4), box((1.8 * s, 1.8 * s, 0.15 * s)).moved(np.array([0, 0, -1.9 * s]))]
    spots = [mark.at.position + x * z for x in along]
    stage.add("ground", GROUND, GROUND_GREY, *(foot.moved(spot, turn) for spot in spots for foot in feet))


def _element(stage: Stage, model: Model, mark: ElementMark) -> None:
    """A force element: between two points, at a point, or about a joint."""
    s, layer = stage.shape.size, "force elements"
    lines = {"spring": coil(0.9 * s, 0.12 * s), "damper": dashpot(0.7 * s), "bushing": coil(1.2 * s, 0.3 * s, 3)}
    if mark.kind in lines:
        stage.spans.append(Span(mark.name, layer, mark.ends, lines[mark.kind], ELEMENT))
    elif mark.kind == "wrench":
        _load(stage, model, mark)
    elif mark.joint is not None:
        joint = stage.shape.joints[mark.joint]
        spiral = _spiral(s).moved(joint.child_at.position, joint.child_at.rotation)
        stage.add(layer, joint.child, ELEMENT, spiral)
    else:
        for end in mark.ends:
            stage.add(layer, end.body, ELEMENT, ball(end.position, 0.7 * s))


def _load(stage: Stage, model: Model, mark: ElementMark) -> None:
    """An arrow along a constant force, or along a moment where there is no force."""
    force = next(force for force in model.settled().forces if force.name == mark.name)
    value = np.asarray(force.numbers["value"], float)
    push = bool(value[3:].any())
    way = value[3:] if push else value[:3]
    if way.any():
        direction = 8 * stage.shape.size * way / np.linalg.norm(way)
        solid, colour, follows = arrow(1 if push else 2), FORCE if push else MOMENT, bool(force.numbers["follows"])
        stage.spans.append(Span(mark.name, "force elements", mark.ends, solid, colour, direction, follows))


def _spiral(size: float) -> Solid:
    """Something that acts along a joint: a spiral about its axis."""
    angle = np.linspace(0, 4 * np.pi, 60)
    radius = size * np.linspace(1.0, 2.2, 60)
    return tube(np.column_stack([radius * np.cos(angle), radius * np.sin(angle), np.zeros(60)]), 0.12 * size, 5)


def _triads(stage: Stage, model: Model) -> None:
    """Axes of the ground, of every body and of every named frame: x red, y green, z blue."""
    s = stage.shape.size
    spots = [(GROUND, Pose()), *((b, Pose()) for b in range(model.nb)), *((f.body, f.at) for f in model.frames)]
    for body, at in spots:
        for k, colour in enumerate(TRIAD):
            stage.add("frames", body, colour, rod(at.position, at.position + 3 * s * at.rotation[:, k], 0.14 * s, 6))
