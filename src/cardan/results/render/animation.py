"""Pictures of a run, one for each time: camera and light, traces of points, arrows of forces, title and time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cardan.algebra.rotation import rotation_to_axis
from cardan.errors import InputError, UnknownNameError, nearest
from cardan.functions.constraints import reactions
from cardan.model.model import Model
from cardan.results.drawing.diagram import chosen_view
from cardan.results.figure import TRACES
from cardan.results.geometry import place, pose_of, upwards
from cardan.results.page.scene_3d import FORCE, MOMENT, joined, lathe, tube
from cardan.results.render.camera import fitted
from cardan.results.render.moving_scene import MovingScene, moving_scene, rgb
from cardan.results.render.renderer import PLAIN, Backdrop, Placed, Renderer
from cardan.results.render.surfaces import ColouredSurface, coloured
from cardan.results.rounding import wrenches_without_rounding

if TYPE_CHECKING:
    from cardan.results.trajectory.trajectory import Trajectory

FILLED = 0.84  # part of the picture that is filled by what moves
TRACE_SIDES, TRACE_WIDTH = 5, 1.6  # sides of the tube of a trace, and its radius in pixels of a picture 720 high
LIGHT_ON_FLOOR, LIGHT_ON_WALL = (-0.55, 1.0, 0.75), (-0.35, 0.55, 1.0)  # to the right, up, towards the viewer
ARROW = 0.6  # length of a large force, relative to the typical length of a body
INK, FAINT = (40, 44, 52), (120, 126, 134)


class Frame(NamedTuple):
    """A picture (height, width, 3), bytes, and its number."""

    number: int
    picture: np.ndarray


class Animation:
    """The pictures of a run at `times` (n,), s, with states q (n, nq), v (n, nv) and body poses (n, nb, 4, 4).

    Traces go through the poses `swept` (k (n - 1) + 1, nb, 4, 4), which divide each interval into k.

    `trace` has pairs of a body or frame and a point, whose paths are drawn; `forces` is True for the reactions of all
    joints, or has the names of joints.
    """

    def __init__(
        self, run: Trajectory, times: np.ndarray, q: np.ndarray, v: np.ndarray, poses: np.ndarray, swept: np.ndarray,
        size: tuple[int, int], view: Any, trace: Sequence[tuple[str, Any]], forces: Any,
    ) -> None:  # fmt: skip
        model, self._poses = run.model, poses
        self._scene = moving_scene(model, poses)
        room = self._scene.room(poses)
        self._finer = (len(swept) - 1) // max(len(poses) - 1, 1)
        self._traces = [_trace(run, point, swept) for point in trace]
        self._forces = _Forces(run, times, q, v, poses, self._scene, forces)
        self.renderer, self.spacing = _renderer(model, self._scene, room, size, view)
        thick = TRACE_WIDTH * size[1] / 720 / self.renderer.camera.scale
        self._tubes = [
            _GrowingTube(path, thick, int(TRACES[k % len(TRACES)][1:], 16)) for k, path in enumerate(self._traces)
        ]

    @property
    def legend(self) -> list[tuple[str, int]]:
        """What arrows mean, with their colours."""
        return self._forces.legend

    def picture(self, k: int) -> np.ndarray:
        """Picture (height, width, 3), bytes, at the time of number k."""
        placed = self._scene.placed(self._poses[k])
        placed += [tube.until(self._finer * k) for tube in self._tubes]
        nearer = 1.5 * self._scene.scene.geometry.size * self.renderer.camera.axes[2]  # in front of the links
        return self.renderer.picture(placed + self._forces.placed(k, nearer))


def _trace(run: Trajectory, point: tuple[str, Any], poses: np.ndarray) -> np.ndarray:
    """The path (n, 3), m, of a point over body poses (n, nb, 4, 4)."""
    body, at = run._point(*point)
    return np.broadcast_to(place(poses, body, at), (len(poses), 3))


def _renderer(
    model: Model, scene: MovingScene, room: np.ndarray, size: tuple[int, int], view: Any
) -> tuple[Renderer, float]:
    """A renderer with room for points (n, 3), its backdrop and light; and the spacing of the grid, m."""
    geometry = scene.scene.geometry
    seen = chosen_view("video", model, geometry, room, view)
    camera = fitted(seen.axes, room, *size, True, FILLED)
    up = geometry.plane[1] if geometry.plane is not None and seen.flat else upwards(model)
    light = np.array(LIGHT_ON_WALL if seen.flat else LIGHT_ON_FLOOR) @ np.array([seen.axes[0], up, seen.axes[2]])
    normal = seen.axes[2] if seen.flat else up  # a wall behind what is flat, or a floor
    along = seen.axes[0] - normal * (normal @ seen.axes[0])
    middle, radius = (room.min(axis=0) + room.max(axis=0)) / 2, float(np.linalg.norm(np.ptp(room, axis=0))) / 2
    low = float((room @ normal).min()) - 0.1 * geometry.size
    point = middle + normal * (low - middle @ normal)
    power = 10.0 ** np.floor(np.log10(max(radius, 1e-9)))
    spacing = float(max(k for k in (0.1, 0.2, 0.5, 1, 2) if k * power <= radius / 2) * power)
    backdrop = Backdrop(point, normal, along / np.linalg.norm(along), spacing, 2.2 * max(radius, 1e-9))
    return Renderer(camera, light / np.linalg.norm(light), backdrop), spacing


class _GrowingTube:
    """The path (n, 3) of a point as a tube, up to any of its points."""

    def __init__(self, path: np.ndarray, radius: float, colour: int) -> None:
        moved = np.linalg.norm(np.diff(path, axis=0), axis=1)
        kept = np.concatenate([[True], moved > 0.2 * radius])
        self._rings = np.cumsum(kept) - 1  # the last ring at each point of the path
        self._surface: ColouredSurface | None = None
        if kept.sum() > 1:
            solid = tube(path[kept], radius, TRACE_SIDES)
            half = len(solid.triangles) // 2
            pairs = np.stack([solid.triangles[:half], solid.triangles[half:]], axis=1).reshape(-1, 3)  # ring by ring
            self._surface = coloured(solid.corners, pairs, rgb(colour), weld=False)

    def until(self, k: int) -> Placed:
        """The tube up to point k."""
        surface = self._surface
        if surface is None:
            empty = ColouredSurface(*(np.zeros(shape) for shape in ((0, 3), (0, 3), (0, 3, 3), (0, 3), 0, 0)))
            return Placed(empty, np.eye(3), np.zeros(3), np.eye(3), PLAIN)
        count = 2 * TRACE_SIDES * int(self._rings[k])
        names = ("faces", "normals", "colours", "opacity", "closed")
        part = replace(surface, **{name: getattr(surface, name)[:count] for name in names})
        return Placed(part, np.eye(3), np.zeros(3), np.eye(3), PLAIN)


class _Forces:
    """Arrows of the forces and moments that joints exert on their children."""

    def __init__(
        self, run: Trajectory, times: np.ndarray, q: np.ndarray, v: np.ndarray, poses: np.ndarray, scene: MovingScene,
        wanted: Any,
    ) -> None:  # fmt: skip
        self.legend: list[tuple[str, int]] = []
        self._arrows: list[tuple[ColouredSurface, ColouredSurface, np.ndarray, np.ndarray]] = []
        joints = _wanted_joints(run.model, wanted)
        if not joints:
            return
        every = np.asarray(reactions(run.model, q, v, run.tau, t=times, formulation=run.formulation))
        every = wrenches_without_rounding(run, every)[:, joints].reshape(len(times), len(joints), 2, 3)
        length = scene.scene.geometry.length
        thick = scene.scene.geometry.size
        self._head = 1.6 * thick
        for k, (what, unit, colour, heads) in enumerate((("moment", "N m", MOMENT, 2), ("force", "N", FORCE, 1))):
            sizes = np.linalg.norm(every[:, :, k], axis=-1)
            large = float(np.nanquantile(sizes, 0.95)) if sizes.any() else 0.0
            large = large or float(np.nanmax(sizes, initial=0.0))
            if not large:
                continue
            a_newton = ARROW * length / large
            shaft, head = _arrow(thick, heads, rgb(colour))
            usual = _rounded(large)
            self.legend.append((f"{what}: {usual:g} {unit} is {usual * a_newton:.2g} m long", colour))
            for i, number in enumerate(joints):
                joint = run.model.joints[number]
                R = pose_of(poses, joint.child)[..., :3, :3] @ joint.child_at.rotation
                along = a_newton * np.einsum("...ij,...j->...i", R, every[:, i, k])
                at = np.broadcast_to(place(poses, joint.child, joint.child_at.position), along.shape)
                self._arrows.append((shaft, head, at, along))

    def placed(self, k: int, nearer: np.ndarray) -> list[Placed]:
        """The arrows at the time of number k, moved by a vector (3,), m, towards the viewer."""
        found = []
        for shaft, head, at, along in self._arrows:
            length = float(np.linalg.norm(along[k]))
            if np.isfinite(length) and length > 0:
                turn, start = rotation_to_axis(along[k] / length), at[k] + nearer
                found.append(Placed(shaft, turn * (1.0, 1.0, length), start, turn, PLAIN))
                shrunk = min(length / self._head, 1.0)  # of an arrow shorter than its head
                found.append(Placed(head, shrunk * turn, start + along[k], turn, PLAIN))
        return found


def _arrow(size: float, heads: int, colour: np.ndarray) -> tuple[ColouredSurface, ColouredSurface]:
    """The shaft of an arrow, with unit length along z, and its head or two heads, with the tip at the origin."""
    shaft = lathe([(0, 0), (0.24 * size, 0), (0.24 * size, 1), (0, 1)])
    tips = [lathe([(0, z - 1.6 * size), (0.7 * size, z - 1.6 * size), (0, z)]) for z in (0.0, -1.2 * size)[:heads]]
    tip = joined(tips)
    return coloured(shaft.corners, shaft.triangles, colour), coloured(tip.corners, tip.triangles, colour)


def _rounded(x: float) -> float:
    """The nearest number with one digit."""
    power = 10.0 ** np.floor(np.log10(x))
    return float(round(x / power) * power)


def _wanted_joints(model: Model, wanted: Any) -> list[int]:
    """Numbers of the joints whose forces are shown."""
    if wanted is None or isinstance(wanted, bool):
        return list(range(len(model.joints))) if wanted else []
    names = [wanted] if isinstance(wanted, str) else wanted
    if not isinstance(names, Sequence):
        raise InputError(f"video: forces must be True or names of joints, got {wanted!r}")
    for name in names:
        if name not in model.joint_names:
            raise UnknownNameError(f"video: joint {name!r} is not in the model{nearest(name, model.joint_names)}")
    return [model.joint_names.index(name) for name in names]


def lettering(
    size: tuple[int, int], title: str, times: np.ndarray, speed: float, animation: Animation
) -> Callable[[Frame], np.ndarray]:
    """A function that writes title, time, speed, spacing of the grid and the meaning of arrows onto a picture."""
    import matplotlib
    from PIL import Image, ImageDraw, ImageFont

    width, height = size
    font = Path(matplotlib.get_data_path()) / "fonts" / "ttf" / "DejaVuSans.ttf"  # has Greek and other letters
    large, small = (ImageFont.truetype(font, max(round(part * height), 9)) for part in (0.034, 0.025))
    edge = round(0.03 * height)
    digits = int(np.clip(np.ceil(-np.log10(max(float(np.ptp(times)), 1e-9))) + 3, 2, 9))
    pace = "" if speed == 1 else f"   {speed:g} × real time"

    def write(frame: Frame) -> np.ndarray:
        picture = Image.fromarray(frame.picture)
        pen = ImageDraw.Draw(picture)
        pen.text((edge, edge), title, INK, large)
        clock = f"t = {times[frame.number]:.{digits}f} s{pace}"
        pen.text((edge, height - edge), clock, INK, small, "ls")
        pen.text((width - edge, height - edge), f"grid {animation.spacing:g} m", FAINT, small, "rs")
        for k, (words, colour) in enumerate(animation.legend):
            red, green, blue = (round(255 * x) for x in rgb(colour))
            pen.text((width - edge, edge + 1.4 * k * 0.026 * height), words, (red, green, blue), small, "ra")
        return np.asarray(picture)

    return write
