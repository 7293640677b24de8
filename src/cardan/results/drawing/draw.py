"""Drawings of a mechanism at one configuration, or at several times of a run with the paths of points."""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from cardan.errors import CardanError, InputError
from cardan.functions.constraints import constraint_residual
from cardan.functions.kinematics import body_poses
from cardan.functions.particles import particle_system
from cardan.model.model import Model
from cardan.model.values import one
from cardan.results.drawing import diagram
from cardan.results.drawing.canvas import Canvas, Raster, svg
from cardan.results.figure import GREY, INK, TRACES, FigureOutput, new_figure, owner_of, style
from cardan.results.geometry import Geometry, geometry_of, place
from cardan.structure.assemble import assemble, configuration

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from cardan.results.trajectory.trajectory import Trajectory
    from cardan.structure.assemble import Start

CLOSED = 1e-6  # m and rad: a loop with a smaller gap counts as closed
STROBES = 7
DOTS, SKIP = 1000, 20  # pixels of shapes along the longer side of a picture; every so many poses are looked at for room
SMALL_DOTS = 520  # pixels in a notebook
LARGEST = (5.2, 4.6)  # inch
NARROWEST = 2.2  # inch, enough for axes, gravity and scale below the picture
SHORTEST, STRIP = 0.9, 0.5  # inch, least height of the picture and height of the strip below it
FONT = 8.0  # pt
AXES_COLOURS = ("#D55E00", "#009E73", "#0072B2")


def draw(
    model: Model, q: Start = None, *, view: tuple[float, float] | None = None, names: bool = False,
    centres: bool = True, scale: bool = True, particles: bool = False,
    size: tuple[float, float] | None = None, path: str | os.PathLike[str] | None = None, overwrite: bool = False,
    ax: Axes | None = None,
) -> Figure:  # fmt: skip
    """Draw a mechanism as a kinematic diagram: bodies, joints by their kind, force elements, ground, centres of mass.

    A planar mechanism is drawn flat in its plane, a spatial one from above at an angle. Bodies are drawn through the
    points where joints and force elements act. Returns a `matplotlib.figure.Figure`; nothing is shown unless asked for.

    Args:
        model: the mechanism, at one value of its free parameters.
        q: configuration (nq,), rad and m, or coordinates of some joints by name; by default the model's own start, with
            its loops closed.
        view: azimuth and elevation of the viewer, degrees; by default flat, or a direction that shows much.
        names: whether to write the names of bodies and joints.
        centres: whether to mark the centres of mass.
        scale: whether to draw axes, the direction of gravity and a scale below.
        particles: whether to draw the equivalent particles of a planar mechanism, those at a pin as one; the area of a
            circle is the mass, an open circle has a negative one.
        size: width and height, inches; by default fitted to the mechanism.
        path: file to write, .png, .svg or .pdf; it appears only when it is complete.
        overwrite: whether an existing file may be replaced.
        ax: axes of matplotlib to draw into, in place of a new figure.

    """
    if not isinstance(model, Model):
        raise InputError(f"draw: give a model, as mechanism.build() makes it, got {type(model).__name__}")
    if isinstance(q, str) and q not in model.states and os.path.splitext(q)[1]:
        raise InputError(f"draw: the configuration comes first, and {q!r} looks like a file; write path={q!r}")
    model.require_one("draw")
    output = FigureOutput(size, path, overwrite, ax)
    geometry, poses = geometry_of(model), _poses(model, q)
    canvas = _canvas(model, geometry, poses, view, centres)
    if particles:
        found = particle_system(model)
        diagram.add_particles(canvas, found.placed(poses), found.unified_masses)
    return _figure(canvas, model, geometry, poses, names, scale, output)


def strobe(
    run: Trajectory, t: Any, trace: Any, view: Any, names: bool, centres: bool, scale: bool, output: FigureOutput
) -> Figure:
    """Draw several positions of a run in one picture, the last one in full, with the paths of points."""
    if run.batch:
        raise InputError(f"draw: the run is a batch of shape {run.batch}; draw one of its systems, run[0].draw()")
    model = run._require("a drawing")
    if t is None:
        t = np.linspace(run.time[0], run.time[-1], STROBES) if len(run.time) > 1 else run.time
    if np.size(t) == 0:
        raise InputError("draw: t has no time; give one or several times, s, or leave it out")
    poses = body_poses(model, np.atleast_2d(run.at(np.atleast_1d(t))[0]))
    paths = [run.position(*point) for point in traced("draw", trace)]
    return overlaid(model, poses, run.poses, paths, view, names, centres, scale, output)


def overlaid(
    model: Model, poses: np.ndarray, swept: np.ndarray, paths: Sequence[np.ndarray], view: Any, names: bool,
    centres: bool, scale: bool, output: FigureOutput,
) -> Figure:  # fmt: skip
    """Draw several positions (n, nb, 4, 4) in one picture, the last one in full, with paths (k, 3) of points.

    `swept` (m, nb, 4, 4) are positions for which there must be room.
    """
    geometry = geometry_of(model)
    canvas = diagram.begin(model, geometry, np.concatenate([poses, swept]), view)
    _add_shapes(canvas, _shapes(model, geometry), list(poses), swept)
    for k, earlier in enumerate(poses[:-1]):
        canvas.ghost, canvas.opacity = True, 0.18 + 0.3 * k / max(len(poses) - 1, 1)
        diagram.add_bodies(canvas, geometry, earlier)
    canvas.ghost, canvas.opacity = False, 1.0
    for k, points in enumerate(paths):
        canvas.line(points, TRACES[k % len(TRACES)], 1.1, "trace")
    diagram.add_all(canvas, model, geometry, poses[-1], swept, centres)
    return _figure(canvas, model, geometry, poses[-1], names, scale, output)


def thumbnail(model: Model) -> str:
    """A small SVG of a model, made without matplotlib; empty if it cannot be drawn."""
    try:
        geometry = geometry_of(model)
        return svg(_canvas(model, geometry, _poses(model, None), None, True, SMALL_DOTS))
    except CardanError:
        return ""


def _canvas(model: Model, geometry: Geometry, poses: np.ndarray, view: Any, centres: bool, dots: int = DOTS) -> Canvas:
    canvas = diagram.begin(model, geometry, poses, view)
    _add_shapes(canvas, _shapes(model, geometry), [poses], poses, dots)
    diagram.add_all(canvas, model, geometry, poses, poses, centres)
    return canvas


def _shapes(model: Model, geometry: Geometry) -> Any:
    """The shapes of a model's bodies; None if there are none, for which nothing is imported."""
    if not geometry.shaped:
        return None
    from matplotlib.colors import to_rgb

    from cardan.results.drawing.shaded import shaped_bodies

    return shaped_bodies(model, geometry, [np.array(to_rgb(diagram.body_colour(b))) for b in (*range(model.nb), -1)])


def _add_shapes(
    canvas: Canvas, shapes: Any, shown: Sequence[np.ndarray], swept: np.ndarray, pixels: int = DOTS
) -> None:
    """Add pictures of shapes at poses (nb, 4, 4), the last in full; there must be room for those `swept`."""
    if shapes is None:
        return
    room = [canvas.view(shapes.corners(poses)) for poses in (*shown, *swept.reshape(-1, *swept.shape[-3:])[::SKIP])]
    dots = pixels / float(np.ptp(np.vstack(room), axis=0).max())
    for k, poses in enumerate(shown):
        last = k == len(shown) - 1
        opacity = 1.0 if last else 0.15 + 0.25 * k / len(shown)
        picture, low, high = shapes.picture(canvas.view, poses, dots)
        canvas.rasters.append(Raster(picture, low, high, opacity))


def traced(what: str, trace: Any) -> list[tuple[str, Any]]:
    """The bodies or frames and the points whose paths are drawn: `trace` has names, or pairs (body, point)."""
    found: list[tuple[str, Any]] = []
    if not isinstance(trace, Sequence):
        raise InputError(f"{what}: trace takes names of bodies or pairs (body, point), got {trace!r}")
    for point in (trace,) if isinstance(trace, str) else trace:
        try:
            body, at = (point, (0.0, 0.0, 0.0)) if isinstance(point, str) else point
        except (TypeError, ValueError):
            raise InputError(f"{what}: trace takes names of bodies or pairs (body, point), got {point!r}") from None
        found.append((body, at))
    return found


def _poses(model: Model, q: Any) -> np.ndarray:
    """Poses (nb, 4, 4) at a configuration; by default at the model's start with its loops closed."""
    if q is None:
        q = model.start()
        if (model.cuts or model.couplings) and np.abs(constraint_residual(model, q)).max(initial=0.0) > CLOSED:
            q, _ = assemble(model, q)
    q = one("draw", "q", configuration("draw", model, q), model.nq)
    found: np.ndarray = np.asarray(body_poses(model, q)).reshape(model.nb, 4, 4)
    return found


def _figure(
    canvas: Canvas, model: Model, geometry: Geometry, poses: np.ndarray, names: bool, scale: bool, output: FigureOutput
) -> Figure:
    """The canvas as a figure without axes, with equal scales."""
    from matplotlib.collections import PathCollection
    from matplotlib.colors import to_rgba
    from matplotlib.path import Path as Outline

    low, high = canvas.bounds()
    margin = 0.8 * canvas.unit
    low, high = low - margin, high + margin
    span = high - low
    strip = STRIP if scale else 0.0
    given = output.axes("draw", ["the drawing"])
    size = output.size if given is None else _inches(given[0])
    room = LARGEST if size is None else (size[0], max(size[1] - strip, 0.1))
    per_inch = float(np.max(span / np.array(room)))
    fitted = (max(span[0] / per_inch, NARROWEST), max(span[1] / per_inch, SHORTEST) + strip)
    width, height = size or fitted
    figure = new_figure(width, height, by_hand=True) if given is None else owner_of(given[0])
    with style():
        at = figure.add_axes((0.0, 0.0, 1.0, 1.0)) if given is None else given[0]
        at.set_axis_off()
        for raster in canvas.rasters:
            place_at = (raster.low[0], raster.high[0], raster.low[1], raster.high[1])
            at.imshow(raster.picture, extent=place_at, alpha=raster.opacity, interpolation="antialiased")
        patches = canvas.sorted()
        outlines = [
            Outline(np.vstack([p.points, p.points[:1]]) if p.closed else p.points, closed=p.closed) for p in patches
        ]
        at.add_collection(
            PathCollection(
                outlines,
                facecolors=[to_rgba(p.face or "none", p.opacity if p.face else 0.0) for p in patches],
                edgecolors=[to_rgba(p.edge or "none", p.opacity if p.edge else 0.0) for p in patches],
                linewidths=[p.width if p.edge else 0.0 for p in patches],
                linestyles=[(0, tuple(d / p.width for d in p.dash)) if p.dash else "solid" for p in patches],
                capstyle="round", joinstyle="round", gid="mechanism",
            ),
            autolim=False,
        )  # fmt: skip
        strip *= per_inch
        middle, width, height = (low + high) / 2, width * per_inch, height * per_inch
        at.set_xlim(middle[0] - width / 2, middle[0] + width / 2)
        at.set_ylim(low[1] - strip - (height - strip - span[1]) / 2, high[1] + (height - strip - span[1]) / 2)
        at.set_aspect("equal", adjustable="datalim")
        if scale:
            _add_scale(at, canvas, model, per_inch)
        _add_names(at, canvas, geometry, poses, per_inch, names)
    return output.write(figure)


def _inches(at: Axes) -> tuple[float, float]:
    """Width and height of axes, inches."""
    figure = owner_of(at)
    box = at.get_position()
    width, height = figure.get_size_inches()
    return max(float(box.width * width), 0.2), max(float(box.height * height), 0.2)


def _add_scale(at: Axes, canvas: Canvas, model: Model, per_inch: float) -> None:
    """Draw axes, gravity and a scale in a strip below the picture."""
    (left, right), bottom = at.get_xlim(), at.get_ylim()[0]
    foot = np.array([left + 0.14 * per_inch, bottom + 0.12 * per_inch])
    shown = canvas.view.axes[:2].T  # row k is the direction of ground axis k on the canvas
    low = np.minimum(shown * 0.26 * per_inch, 0).min(axis=0)
    foot = foot - low
    for way, name, colour in zip(shown, "xyz", AXES_COLOURS, strict=True):
        if np.linalg.norm(way) > 0.1:
            tip = foot + 0.26 * per_inch * way
            _arrow(at, foot, tip, colour)
            away = tip + 0.085 * per_inch * way / np.linalg.norm(way)
            at.text(away[0], away[1], name, color=colour, fontsize=FONT - 1, ha="center", va="center", style="italic")
    g = canvas.view(model.unbound.gravity)
    if np.linalg.norm(g) > 1e-9:
        way = g / np.linalg.norm(g)
        start = np.array([left + 0.8 * per_inch, bottom + 0.25 * per_inch]) - 0.14 * per_inch * way
        _arrow(at, start, start + 0.28 * per_inch * way, GREY)
        beside = start + 0.14 * per_inch * way + 0.1 * per_inch * np.array([abs(way[1]) + 0.2, -abs(way[0])])
        at.text(beside[0], beside[1], "g", color=GREY, fontsize=FONT - 0.5, ha="center", va="center", style="italic")
    longest = 0.22 * (right - left)
    power = 10.0 ** np.floor(np.log10(longest))
    length = float(max(k for k in (1, 2, 5) if k * power <= longest * (1 + 1e-9)) * power)
    end = np.array([right - 0.15 * per_inch, bottom + 0.14 * per_inch])
    at.plot([end[0] - length, end[0]], [end[1]] * 2, color=INK, linewidth=1.4, solid_capstyle="butt", gid="scale")
    at.text(end[0] - length / 2, end[1] + 0.05 * per_inch, f"{length:g} m", fontsize=FONT - 1, ha="center", va="bottom")


def _arrow(at: Axes, start: np.ndarray, end: np.ndarray, colour: str) -> None:
    style = {"arrowstyle": "-|>", "color": colour, "linewidth": 0.9, "shrinkA": 0, "shrinkB": 0, "mutation_scale": 6}
    at.annotate("", tuple(end), tuple(start), arrowprops=style)


def _add_names(at: Axes, canvas: Canvas, geometry: Geometry, poses: np.ndarray, per_inch: float, every: bool) -> None:
    """Write names of joints in ink and of bodies in their colours, placed to cover little.

    Without `every`, only joints and force elements that have no symbol of their own are named.
    """
    wanted: list[tuple[np.ndarray, str, str]] = []
    for joint in geometry.joints:
        if joint.holds and (every or diagram.joint_symbol(joint) is diagram.JOINTS["joint"]):
            wanted.append((canvas.view(diagram.joint_position(joint, poses)), joint.name, INK))
    for element in geometry.elements:
        if element.mark == "element":
            ends = [place(poses, end.body, end.position) for end in element.ends]
            wanted.append((canvas.view(np.mean(ends, axis=0)), element.name, diagram.SPRING))
    for body, name in enumerate(geometry.names if every else ()):
        own = [place(poses, body, stroke.points).mean(axis=0) for stroke in geometry.strokes if stroke.body == body]
        if own:
            wanted.append((canvas.view(np.mean(own, axis=0)), name, diagram.body_colour(body)))
    if not wanted:
        return
    drawn = _samples(canvas, 0.06 * per_inch)
    boxes: list[tuple[np.ndarray, np.ndarray]] = []
    for anchor, name, colour in wanted:
        half = np.array([0.5 * 0.62 * FONT * len(name), 0.55 * FONT]) / 72 * per_inch
        middle = _clear_place(anchor, half, boxes, drawn, canvas.unit, per_inch)
        boxes.append((middle - half, middle + half))
        x, y, slant = *map(float, middle), "normal" if colour == INK else "italic"
        where: dict[str, Any] = {"ha": "center", "va": "center", "gid": "name"}
        at.text(x, y, name, color=colour, fontsize=FONT, style=slant, parse_math=False, **where)
    pad = 0.06 * per_inch
    _widen(at, np.min([low for low, _ in boxes], axis=0) - pad, np.max([high for _, high in boxes], axis=0) + pad)


def _clear_place(
    anchor: np.ndarray, half: np.ndarray, boxes: list[tuple[np.ndarray, np.ndarray]], drawn: np.ndarray, unit: float,
    per_inch: float,
) -> np.ndarray:  # fmt: skip
    """Where to put the middle of a name: near its anchor, over no other name and over as little as possible."""
    best, least = anchor, np.inf
    for reach in (0.7, 1.3, 2.2, 3.2):
        for angle in np.radians([45, 135, -45, -135, 90, -90, 0, 180]):
            way = np.array([np.cos(angle), np.sin(angle)])
            middle = anchor + way * (reach * unit + 0.01 * per_inch) + np.round(way) * half
            low, high = middle - half, middle + half
            over_names = sum(bool((low < h).all() and (l < high).all()) for l, h in boxes)
            over_drawn = int(((drawn > low) & (drawn < high)).all(axis=1).sum())
            cost = 1000 * over_names + 10 * over_drawn + 12 * reach
            if cost < least:
                best, least = middle, cost
    return best


def _samples(canvas: Canvas, spacing: float) -> np.ndarray:
    """Points along all lines, which names should not cover."""
    found = []
    for patch in canvas.patches:
        if patch.ghost or patch.layer == "plate":
            continue
        ends = np.vstack([patch.points, patch.points[:1]]) if patch.closed else patch.points
        for a, b in pairwise(ends):
            count = min(int(np.linalg.norm(b - a) / spacing) + 1, 200)
            found.append(a + (b - a) * np.linspace(0, 1, count + 1)[:, None])
    return np.vstack(found) if found else np.zeros((0, 2))


def _widen(at: Axes, low: np.ndarray, high: np.ndarray) -> None:
    """Extend the view to include names at the edge; both axes keep the same scale."""
    (left, right), (bottom, top) = at.get_xlim(), at.get_ylim()
    ratio = (top - bottom) / (right - left)
    grow = max(left - low[0], high[0] - right, (bottom - low[1]) / ratio, (high[1] - top) / ratio, 0.0)
    if grow:
        at.set_xlim(left - grow, right + grow)
        at.set_ylim(bottom - grow * ratio, top + grow * ratio)
