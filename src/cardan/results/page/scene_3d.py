"""A mechanism in three dimensions: solids that move with a body, and solids that stretch between points.

Solids are triangles, with lengths in m; some have unit length along z. The scene is made from a `Geometry`, independent
of the library that shows it. Every part belongs to a layer, which can be shown or hidden. Joints and force elements are
drawn by the mark that their kind declares; an unknown mark is drawn as "joint" or "element".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from cardan.algebra.rotation import rotation_to_axis
from cardan.model.model import Model
from cardan.model.pose import Pose
from cardan.model.shape import Shape, shared_parts
from cardan.model.tree import GROUND
from cardan.results.geometry import BodyPoint, DrawnElement, DrawnJoint, Geometry, geometry_of, upwards

ROUND = 16  # corners of a circle
MOST_FACES = 160_000  # of all shapes of a model; finer meshes are made coarser
LAYERS = {
    "bodies": True, "plates": True, "ground": True, "force elements": True, "joints": False, "skeleton": False,
    "joint axes": False, "frames": False, "centres of mass": False,
}  # fmt: skip
"""The layers of a scene, and which are shown at first. A body with a shape has its rods in `skeleton`."""


@dataclass(frozen=True, eq=False)
class Solid:
    """Corners (n, 3) and triangles (k, 3) of corner numbers, counter-clockwise from outside; edges split corners."""

    corners: np.ndarray
    triangles: np.ndarray

    def moved(self, position: np.ndarray, rotation: np.ndarray | None = None) -> Solid:
        """Rotate by a matrix (3, 3), then translate."""
        turned = self.corners if rotation is None else self.corners @ rotation.T
        return Solid(turned + position, self.triangles)


def joined(solids: Iterable[Solid]) -> Solid:
    """Join several solids into one."""
    corners, triangles, count = [np.zeros((0, 3))], [np.zeros((0, 3), int)], 0
    for solid in solids:
        corners.append(solid.corners)
        triangles.append(solid.triangles + count)
        count += len(solid.corners)
    return Solid(np.vstack(corners), np.vstack(triangles))


def lathe(profile: Iterable[tuple[float, float]], sides: int = ROUND) -> Solid:
    """A solid of revolution about z from a profile of (radius, height) points, with edges between its pieces."""
    angle = 2 * np.pi * np.arange(sides) / sides
    circle = np.column_stack([np.cos(angle), np.sin(angle), np.zeros(sides)])
    pieces = []
    for (r1, z1), (r2, z2) in pairwise(profile):
        corners = np.vstack([r1 * circle + (0, 0, z1), r2 * circle + (0, 0, z2)])
        lower, upper = _bands(1, sides)
        pieces.append(Solid(corners, np.vstack([lower] * (r1 > 0) + [upper] * (r2 > 0))))
    return joined(pieces)


def _bands(count: int, sides: int) -> tuple[np.ndarray, np.ndarray]:
    """Lower and upper triangles of bands between rings of `sides` corners, one ring after the other."""
    k = np.arange(count * sides)
    right = k - k % sides + (k + 1) % sides
    return np.column_stack([k, right, right + sides]), np.column_stack([k, right + sides, k + sides])


def rod(start: np.ndarray, end: np.ndarray, radius: float, sides: int = ROUND) -> Solid:
    """A cylinder between two points."""
    along = np.asarray(end, float) - start
    length = float(np.linalg.norm(along))
    if length == 0:
        return joined(())
    plain = lathe([(0, 0), (radius, 0), (radius, length), (0, length)], sides)
    return plain.moved(start, rotation_to_axis(along / length))


def ball(centre: np.ndarray, radius: float) -> Solid:
    """A sphere with a smooth surface."""
    rings, sides = 8, ROUND
    latitude = np.pi * np.arange(rings + 1) / rings
    angle = 2 * np.pi * np.arange(sides) / sides
    ring, round_z = np.meshgrid(latitude, angle, indexing="ij")
    sphere = [np.sin(ring) * np.cos(round_z), np.sin(ring) * np.sin(round_z), -np.cos(ring)]
    return Solid(radius * np.stack(sphere, axis=-1).reshape(-1, 3) + centre, np.vstack(_bands(rings, sides)))


def box(half: Iterable[float]) -> Solid:
    """A box about the origin with given half sides."""
    faces = []
    for axis in range(3):
        for sign in (-1.0, 1.0):
            n, u, w = sign * np.eye(3)[axis], sign * np.eye(3)[(axis + 1) % 3], np.eye(3)[(axis + 2) % 3]
            corners = np.array([n - u - w, n + u - w, n + u + w, n - u + w]) * np.array(list(half))
            faces.append(Solid(corners, np.array([(0, 1, 2), (0, 2, 3)])))
    return joined(faces)


def cone(base: float, height: float, sides: int = ROUND) -> Solid:
    """A cone with its tip at the origin that widens along -z; with four sides, a pyramid."""
    return lathe([(0, -height), (base, -height), (0, 0)], sides)


def arrow(heads: int = 1) -> Solid:
    """An arrow from the origin to (0, 0, 1), with two heads for a moment."""
    tips = [lathe([(0, z - 0.22), (0.075, z - 0.22), (0, z)]) for z in (1.0, 0.82)[:heads]]
    return joined([lathe([(0, 0), (0.025, 0), (0.025, 0.8)]), *tips])


def tube(points: np.ndarray, radius: float, sides: int = 6) -> Solid:
    """A tube along a smooth line of points."""
    tangent = np.gradient(points, axis=0)
    tangent /= np.linalg.norm(tangent, axis=1, keepdims=True)
    angle = 2 * np.pi * np.arange(sides) / sides
    u = rotation_to_axis(tangent[0])[:, 0]
    rings = []
    for p, t in zip(points, tangent, strict=True):
        u = u - t * (t @ u)  # transported along the line without twist
        u /= np.linalg.norm(u)
        rings.append(p + radius * (np.outer(np.cos(angle), u) + np.outer(np.sin(angle), np.cross(t, u))))
    return Solid(np.vstack(rings), np.vstack(_bands(len(points) - 1, sides)))


def coil(radius: float, wire: float, turns: int = 7) -> Solid:
    """A coil spring from the origin to (0, 0, 1) with straight ends."""
    s = np.linspace(0, 1, 12 * turns + 1)
    swell = radius * np.clip(np.minimum(s, 1 - s) * 12, 0, 1)
    angle = 2 * np.pi * turns * s
    return tube(np.column_stack([swell * np.cos(angle), swell * np.sin(angle), s]), wire, 5)


def dashpot(radius: float) -> Solid:
    """A damper from the origin to (0, 0, 1): a cylinder and a piston rod."""
    thin = 0.25 * radius
    return lathe([(0, 0), (thin, 0), (thin, 0.3), (radius, 0.3), (radius, 0.7), (thin, 0.7), (thin, 1), (0, 1)])


# Colours that people with any colour vision can distinguish: Okabe and Ito, Color Universal Design (2008).
BODIES = (0x0072B2, 0xD55E00, 0x009E73, 0xCC79A7, 0x56B4E9, 0xE69F00)
STEEL, GROUND_GREY, AXIS, ELEMENT, CENTRE = 0x4A4A4A, 0x9A9A9A, 0x6A3D9A, 0x1B7837, 0x222222
FORCE, MOMENT = 0xD01C1C, 0x7B1FA2
TRIAD = (0xD62728, 0x2CA02C, 0x1F77B4)
Z = np.array([0.0, 0.0, 1.0])


@dataclass(frozen=True, eq=False)
class Part:
    """A solid in one colour, its layer, and the body that it moves with; -1 is the ground."""

    layer: str
    body: int
    solid: Solid
    colour: int
    opacity: float = 1.0


@dataclass(frozen=True, eq=False)
class Span:
    """A solid along z from 0 to 1 that stretches between two points or, with one end, points in a direction.

    The direction (3,) is in ground axes, or in the axes of the body if it `follows` the body.
    """

    name: str
    layer: str
    ends: tuple[BodyPoint, ...]
    solid: Solid
    colour: int
    direction: np.ndarray | None = None
    follows: bool = False


@dataclass(frozen=True, eq=False)
class Scene3D:
    """All parts of a scene. Bodies that are `shaped` (-1 is the ground) are seen as their shapes."""

    geometry: Geometry
    shaped: frozenset[int] = frozenset()
    parts: list[Part] = field(default_factory=list)
    spans: list[Span] = field(default_factory=list)

    def add(self, layer: str, body: int, colour: int, *solids: Solid, opacity: float = 1.0) -> None:
        """Add solids that move with a body."""
        self.parts.append(Part(layer, body, joined(solids), colour, opacity))


def scene_3d(model: Model, poses: np.ndarray, most_faces: int = MOST_FACES) -> Scene3D:
    """The scene of a model whose bodies take poses (..., nb, 4, 4); shapes have at most `most_faces` triangles."""
    geometry = geometry_of(model)
    shapes = {b: body.shapes for b, body in enumerate(model.bodies)} | {GROUND: model.ground_shapes}
    scene = Scene3D(geometry, _shaped(geometry, {b for b, own in shapes.items() if own}))
    _shapes(scene, shapes, most_faces)
    up = geometry.plane[1] if geometry.plane is not None else upwards(model)
    _bodies(scene, poses)
    for joint in geometry.joints:
        _joint(scene, joint, poses)
        _axes(scene, joint)
        if joint.parent == GROUND and joint.holds and joint.track is None:
            _support(scene, joint, poses, -up if geometry.hangs(joint, poses, up) else up)
    for element in geometry.elements:
        _element(scene, element)
    _triads(scene, model)
    return scene


def add_cloud(scene: Scene3D, points: np.ndarray) -> None:
    """Show positions (n, 3) in ground axes, m, as small cubes in a layer of their own."""
    cube = box([0.08 * scene.geometry.size] * 3)
    scene.add("points", GROUND, BODIES[4], *(cube.moved(point) for point in points))


def colour_of(body: int) -> int:
    """Colour of a body; the ground is grey."""
    return GROUND_GREY if body == GROUND else BODIES[body % len(BODIES)]


def _shaped(geometry: Geometry, bodies: set[int]) -> frozenset[int]:
    """Bodies with shapes, and those welded to them: a sensor or a sole of a robot, which is seen as a part of it."""
    found, before = set(bodies), -1
    while len(found) != before:
        before = len(found)
        found |= {
            body for j in geometry.joints if j.mark == "weld" and {j.parent, j.child} & found - {GROUND}
            for body in (j.parent, j.child)
        }  # fmt: skip
    return frozenset(found if GROUND in bodies else found - {GROUND})


def _shapes(scene: Scene3D, shapes: Mapping[int, Sequence[Shape]], most_faces: int) -> None:
    """The shapes of bodies, in their own colours or that of the body."""
    for body, part in shared_parts(shapes, most_faces):
        r, g, b, a = part.colour or (0, 0, 0, 1)
        own = sum(round(255 * x) << k for x, k in ((r, 16), (g, 8), (b, 0)))
        colour = colour_of(body) if part.colour is None else own
        scene.add("bodies", body, colour, Solid(part.surface.vertices, part.surface.faces), opacity=float(a))


def _bodies(scene: Scene3D, poses: np.ndarray) -> None:
    geometry, size = scene.geometry, scene.geometry.size
    plated = {plate.body for plate in geometry.plates}
    cylinders = {joint.parent for joint in geometry.joints if joint.slides and joint.collar(poses) is not None}
    for stroke in geometry.strokes:
        thick = 0.18 if stroke.body in plated else 0.5 if stroke.body in cylinders else 0.38
        ends = zip(stroke.points, stroke.points[1:], strict=False)
        layer = "skeleton" if stroke.body in scene.shaped else "bodies"
        scene.add(layer, stroke.body, colour_of(stroke.body), *(rod(a, b, thick * size) for a, b in ends))
    for arm in geometry.arms:
        scene.add("bodies", arm.body, colour_of(arm.body), rod(arm.points[0], arm.points[1], 0.25 * size))
    for plate in geometry.plates:
        layer = "skeleton" if plate.body in scene.shaped else "plates"
        scene.add(layer, plate.body, colour_of(plate.body), Solid(plate.corners, plate.triangles), opacity=0.45)
    for centre in geometry.centres:
        scene.add("centres of mass", centre.body, CENTRE, ball(centre.position, 0.5 * size))


def _put(scene: Scene3D, joint: DrawnJoint, side: str, colour: int | None, *solids: Solid) -> None:
    """Add solids given in the joint frame on the child or the parent, in a colour or that of the body.

    On the "child axis" or "parent axis", solids along z are turned onto the first axis of the joint.
    """
    body, at = (joint.child, joint.child_at) if side.startswith("child") else (joint.parent, joint.at)
    turned = side.endswith("axis") and joint.axes[0].column != 2
    R = at.rotation @ rotation_to_axis(_first_axis(joint)) if turned else at.rotation
    own = colour_of(body) if colour is None else colour
    scene.add(_layer(scene, joint, "bodies"), body, own, *(solid.moved(at.position, R) for solid in solids))


def _layer(scene: Scene3D, joint: DrawnJoint, usual: str) -> str:
    """The layer of what is drawn of a joint: with shapes around it, its symbol is shown only when asked for."""
    return usual if scene.geometry.needs_symbol(joint) else "joints"


def _first_axis(joint: DrawnJoint) -> np.ndarray:
    """The first axis (3,) of a joint, in its frame."""
    return np.asarray(np.eye(3)[joint.axes[0].column])


def _barrel(radius: float, half: float, sides: int = ROUND) -> Solid:
    return lathe([(0, -half), (radius, -half), (radius, half), (0, half)], sides)


def _rail_ends(scene: Scene3D, joint: DrawnJoint, poses: np.ndarray) -> tuple[float, float]:
    """The ends of a rail along its axis: the travel and the block itself."""
    return joint.rail(poses, 1.8 * scene.geometry.size)


def _thread(s: float, low: float, high: float) -> Solid:
    """The thread of a screw along z."""
    turns = int(np.clip((high - low) / s, 4, 60))
    z = np.linspace(low, high, 10 * turns)
    angle = 2 * np.pi * turns * (z - low) / (high - low)
    return tube(np.column_stack([0.35 * s * np.cos(angle), 0.35 * s * np.sin(angle), z]), 0.08 * s, 4)


def _arm(s: float, joint: DrawnJoint, k: int) -> Solid:
    """An arm of the cross of a universal joint, along its axis k."""
    reach = 1.4 * s * np.eye(3)[joint.axes[k].column]
    return rod(-reach, reach, 0.4 * s)


Symbol = list[tuple[str, int | None, Solid]]
JOINTS: dict[str, tuple[Callable[[float, DrawnJoint], Symbol], int]] = {
    "pin": (lambda s, joint: [("child axis", None, _barrel(0.85 * s, 0.8 * s)),
                              ("parent axis", STEEL, _barrel(0.4 * s, 1.15 * s))], 1),
    "rail": (lambda s, joint: [("child axis", None, box((0.9 * s, 0.9 * s, 1.6 * s)))], 1),
    "sleeve": (lambda s, joint: [("child axis", None, _barrel(0.9 * s, 1.6 * s))], 1),
    "thread": (lambda s, joint: [("child axis", None, _barrel(1.1 * s, 0.6 * s, 6))], 1),
    "cross": (lambda s, joint: [("parent", None, _arm(s, joint, 0)), ("child", None, _arm(s, joint, 1)),
                                ("child", None, ball(np.zeros(3), 0.6 * s))], 2),
    "ball": (lambda s, joint: [("child", None, ball(np.zeros(3), s))], 0),
    "plate": (lambda s, joint: [("child axis", STEEL, box((s, s, 0.3 * s)))], 1),
    "weld": (lambda s, joint: [("child", STEEL, box((0.45 * s,) * 3))], 0),
    "bead": (lambda s, joint: [("child", None, ball(np.zeros(3), 0.6 * s))], 0),
    "none": (lambda s, joint: [], 0),
    "joint": (lambda s, joint: [("child", None, box((0.8 * s,) * 3))], 0),
}  # fmt: skip
"""Solids of joints of a size by mark: where each is, its colour, None for that of the body; and the axes needed.

A sliding joint has a rail too, and a screw a thread on it.
"""


def _joint(scene: Scene3D, joint: DrawnJoint, poses: np.ndarray) -> None:
    s = scene.geometry.size
    symbol, axes = JOINTS.get(joint.mark, JOINTS["joint"])
    collar = joint.collar(poses) if joint.slides else None
    if collar is not None:
        _put(scene, joint, "parent axis", STEEL, _barrel(0.75 * s, 1.2 * s).moved(collar * Z))
        return
    if joint.slides:
        low, high = _rail_ends(scene, joint, poses)
        _put(scene, joint, "parent axis", STEEL, rod(low * Z, high * Z, 0.25 * s))
        if joint.mark == "thread":
            _put(scene, joint, "parent axis", STEEL, _thread(s, low, high))
    for side, colour, solid in (symbol if len(joint.axes) >= axes else JOINTS["joint"][0])(s, joint):
        _put(scene, joint, side, colour, solid)


def _axes(scene: Scene3D, joint: DrawnJoint) -> None:
    s = scene.geometry.size
    for axis in joint.axes:
        at = joint.at if axis.body == joint.parent else joint.child_at
        reach = 5 * s * axis.direction
        scene.add("joint axes", axis.body, AXIS, rod(at.position - reach, at.position + reach, 0.1 * s, 6))


def _support(scene: Scene3D, joint: DrawnJoint, poses: np.ndarray, up: np.ndarray) -> None:
    """The ground symbol under a joint, or under both ends of a rail."""
    s = scene.geometry.size
    spots = [joint.at.position]
    if joint.slides:
        spots = [spots[0] + x * (joint.at.rotation @ _first_axis(joint)) for x in _rail_ends(scene, joint, poses)]
    turn = rotation_to_axis(up)
    feet = [cone(1.3 * s, 1.8 * s, 4), box((1.8 * s, 1.8 * s, 0.15 * s)).moved(np.array([0, 0, -1.9 * s]))]
    scene.add(
        _layer(scene, joint, "ground"),
        GROUND,
        GROUND_GREY,
        *(foot.moved(spot, turn) for spot in spots for foot in feet),
    )


BETWEEN_POINTS: dict[str, Callable[[float], Solid]] = {
    "spring": lambda s: coil(0.9 * s, 0.12 * s),
    "damper": lambda s: dashpot(0.7 * s),
    "bushing": lambda s: coil(1.2 * s, 0.3 * s, 3),
    "element": lambda s: rod(np.zeros(3), Z, 0.15 * s),
    "rod": lambda s: rod(np.zeros(3), Z, 0.25 * s),
}
"""Solids from (0, 0, 0) to (0, 0, 1) of force elements between two points by mark, for the size of a symbol."""


def _element(scene: Scene3D, element: DrawnElement) -> None:
    """A force element: between two points, at its points, or a spiral about a joint."""
    s, layer = scene.geometry.size, "force elements"
    if element.joint is not None:
        joint = scene.geometry.joints[element.joint]
        angle, radius = np.linspace(0, 4 * np.pi, 60), s * np.linspace(1.0, 2.2, 60)
        line = np.column_stack([radius * np.cos(angle), radius * np.sin(angle), np.zeros(60)])
        spiral = tube(line, 0.12 * s, 5).moved(joint.child_at.position, joint.child_at.rotation)
        scene.add(layer, joint.child, ELEMENT, spiral)
    elif element.load is not None:
        _load(scene, element)
    else:
        stretched = len(element.ends) == 2 and element.mark in BETWEEN_POINTS
        if stretched:
            scene.spans.append(Span(element.name, layer, element.ends, BETWEEN_POINTS[element.mark](s), ELEMENT))
        if not stretched or element.mark == "element":
            for end in element.ends:
                scene.add(layer, end.body, ELEMENT, ball(end.position, 0.7 * s))


def _load(scene: Scene3D, element: DrawnElement) -> None:
    """An arrow along a constant force, or along the moment if there is no force."""
    assert element.load is not None
    moment, force = element.load[:3], element.load[3:]
    solid, colour, way = (arrow(1), FORCE, force) if force.any() else (arrow(2), MOMENT, moment)
    if way.any():
        direction = 8 * scene.geometry.size * way / np.linalg.norm(way)
        span = Span(element.name, "force elements", element.ends, solid, colour, direction, element.follows)
        scene.spans.append(span)


def _triads(scene: Scene3D, model: Model) -> None:
    """Axes of the ground, of every body and of every named frame: x red, y green, z blue."""
    s = scene.geometry.size
    spots = [(GROUND, Pose()), *((b, Pose()) for b in range(model.nb)), *((f.body, f.at) for f in model.frames)]
    for body, at in spots:
        for k, colour in enumerate(TRIAD):
            scene.add("frames", body, colour, rod(at.position, at.position + 3 * s * at.rotation[:, k], 0.14 * s, 6))
